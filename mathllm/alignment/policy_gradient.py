"""Try, be rewarded, and become a little more like what was rewarded, without losing yourself."""

import numpy as np

from ..autodiff import primitive
from ..errors import ShapeError
from ..exponentials import exp, log_sum_exp
from ..probability import distribution


def advantages(rewards, values, *, discount: float = 1.0, decay: float = 0.95) -> np.ndarray:
    """Generalised advantage estimation: how much better than expected each step turned out.

        δₜ = Rₜ + γ vₜ₊₁ − vₜ,      Aₜ = δₜ + γλ Aₜ₊₁,      v after the end = 0      (15.5)

    rewards, values: (..., T)   discount: γ   decay: λ; 0 trusts the next value, 1 only what really came   ->   (..., T)

    Raises: ShapeError if the shapes differ; ValueError for γ or λ outside [0, 1].
    Source: 001, §11.3 (A is left undefined there, erratum E4); Schulman et al. 2016.

    >>> advantages([0.0, 0.0, 1.0], [0.5, 0.5, 0.5], decay=1.0)
    array([0.5, 0.5, 0.5])
    """
    rewards, values = np.asarray(rewards, float), np.asarray(values, float)
    if rewards.shape != values.shape or rewards.ndim == 0:
        raise ShapeError(f"advantages() needs one value per reward, got shapes {rewards.shape} and {values.shape}")
    if not (0 <= discount <= 1 and 0 <= decay <= 1):
        raise ValueError(f"advantages() needs discount and decay between 0 and 1, got {discount} and {decay}")
    following = np.concatenate([values[..., 1:], np.zeros_like(values[..., :1])], axis=-1)
    surprise = rewards + discount * following - values
    result, later = np.zeros_like(surprise), 0.0
    for t in reversed(range(surprise.shape[-1])):
        later = surprise[..., t] + discount * decay * later
        result[..., t] = later
    return result


@primitive(nondiff=("advantage",))
def clipped_surrogate(ratio, advantage, *, epsilon: float = 0.2):
    """PPO's objective for each action, to be maximised: gain by moving, but not by moving far.

        min(r A, clip(r, 1 − ε, 1 + ε) A),      r = π(a|s)/π_old(a|s)               (15.6)
        slope A where the first is the smaller, 0 where the clipped one is

    ratio: r, (...)   advantage: A, (...)   ->   (...)

    Raises: ShapeError if the shapes differ; ValueError for ε outside (0, 1).
    Source: 001, §11.3, which calls it a loss (erratum E4); Schulman et al. 2017, eq. 7.

    >>> clipped_surrogate([1.5, 0.5, 1.5, 0.5], [1, 1, -1, -1])
    array([ 1.2,  0.5, -1.5, -0.8])
    """
    if ratio.shape != advantage.shape:
        raise ShapeError(f"clipped_surrogate() needs an advantage per ratio, got {advantage.shape} for {ratio.shape}")
    if not 0 < epsilon < 1:
        raise ValueError(f"clipped_surrogate() needs an epsilon between 0 and 1, got {epsilon}")
    advantage = advantage.astype(ratio.dtype)
    free, clipped = ratio * advantage, np.clip(ratio, 1 - epsilon, 1 + epsilon).astype(ratio.dtype) * advantage
    return np.minimum(free, clipped), lambda dy: (np.where(free <= clipped, dy * advantage, 0), None)


def kl_optimal_policy(reference, reward, *, beta: float) -> np.ndarray:
    """The best policy if straying from the reference costs: rewards reweight what the reference would do.

        maximise E_π[R] − β KL(π‖π_ref):      π*(y) = π_ref(y) e^(R(y)/β) / Z       (15.3)

    reference: (..., n), a distribution   reward: (..., n)   beta: β > 0   ->   (..., n)

    β → ∞ stays with the reference, β → 0 takes the highest reward.
    Raises: ShapeError if the shapes differ; ValueError for β ≤ 0 or a reference that is no distribution.
    Source: 001, §11.3; 002, KL divergence; Rafailov et al. 2023, eq. 4.

    >>> kl_optimal_policy([0.5, 0.3, 0.2], [1.0, 0.0, 2.0], beta=0.5).round(4)
    array([0.2477, 0.0201, 0.7322])
    """
    reference, reward = np.asarray(reference), np.asarray(reward, float)
    if reference.shape != reward.shape or reference.ndim == 0:
        raise ShapeError(f"kl_optimal_policy() needs a reward per outcome, got {reward.shape} for {reference.shape}")
    if not beta > 0:
        raise ValueError(f"kl_optimal_policy() needs a positive beta, got {beta}")
    with np.errstate(divide="ignore"):
        scores = np.log(distribution(reference, dtype=float)) + reward / beta
    return np.exp(scores - log_sum_exp(scores, keepdims=True))


def group_advantages(rewards, epsilon: float = 1e-8) -> np.ndarray:
    """GRPO's advantages: each answer against the other answers to the same prompt, in units of their spread.

        A_i = (R_i − mean(R)) / (std(R) + ε)                                        (15.7)

    rewards: (..., G), G answers per prompt   ->   (..., G); no value model is needed

    Raises: ShapeError for a group of fewer than two answers.
    Source: Shao et al. 2024, §4.1.

    >>> group_advantages([1.0, 0.0, 1.0, 0.0]).round(6)
    array([ 1., -1.,  1., -1.])
    """
    rewards = np.asarray(rewards, float)
    if rewards.ndim == 0 or rewards.shape[-1] < 2:
        raise ShapeError(f"group_advantages() needs at least two answers per prompt, got shape {rewards.shape}")
    centred = rewards - rewards.mean(axis=-1, keepdims=True)
    return centred / (rewards.std(axis=-1, keepdims=True) + epsilon)


def kl_estimate(policy, reference):
    """An estimate of KL(π‖π_ref) from sampled actions, never negative, with the right mean.

        k = e^(ln π_ref − ln π) − (ln π_ref − ln π) − 1                              (15.8)

    policy, reference: log-probabilities of the sampled actions, (...)   ->   (...)

    Source: Schulman 2020, "Approximating KL divergence" (k3); Shao et al. 2024, eq. 4.

    >>> kl_estimate(np.log([0.5]), np.log([0.5]))
    array([0.])
    """
    difference = reference - policy
    return exp(difference) - difference - 1


def grpo_loss(policy, old, reference, advantage, *, epsilon: float = 0.2, beta: float = 0.04):
    """The loss of GRPO: the clipped surrogate of PPO with group advantages, and the KL estimate as a price.

        L = −mean( min(r A, clip(r, 1 ± ε) A) − β k ),      r = π/π_old              (15.9)

    policy, old, reference: log-probabilities of the sampled actions, (n,)   advantage: (n,)   ->   one number

    Source: Shao et al. 2024, eq. 3.

    >>> float(grpo_loss(np.zeros(2), np.zeros(2), np.zeros(2), np.array([1.0, -1.0])))
    -0.0
    """
    gain = clipped_surrogate(exp(policy - old), advantage, epsilon=epsilon)
    return -(gain - kl_estimate(policy, reference) * beta).mean()
