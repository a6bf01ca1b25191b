"""Reinforcement learning of a policy from rewards: advantages, PPO, GRPO, and the optimum under a KL penalty."""

import numpy as np

from ..autodiff import Array, ArrayLike, WithPullback, primitive
from ..errors import within
from ..exponentials import exp
from ..probability import distribution
from ..shapes import contract
from ..softmax import softmax


@contract("... T, ... T -> ... T")
def advantages(rewards: ArrayLike, values: ArrayLike, *, discount: float = 1.0, decay: float = 0.95) -> np.ndarray:
    """Generalised advantage estimation: how much better than expected each step turned out.

        δₜ = Rₜ + γ vₜ₊₁ − vₜ,      Aₜ = δₜ + γλ Aₜ₊₁,      v after the end = 0      (15.8)

    discount: γ   decay: λ; 0 trusts the value of the next step, 1 only the rewards that came

    Raises: ValueError for γ or λ outside [0, 1].
    Source: Schulman et al. 2016.

    >>> advantages([0.0, 0.0, 1.0], [0.5, 0.5, 0.5], decay=1.0)
    array([0.5, 0.5, 0.5])
    """
    within("advantages", "[0, 1]", discount=discount, decay=decay)
    dtype = np.result_type(rewards, values, 1.0)
    rewards, values = rewards.astype(float), values.astype(float)
    following = np.concatenate([values[..., 1:], np.zeros_like(values[..., :1])], axis=-1)
    delta = rewards + discount * following - values
    result, later = np.zeros_like(delta), 0.0
    for t in reversed(range(delta.shape[-1])):
        later = delta[..., t] + discount * decay * later
        result[..., t] = later
    return result.astype(dtype)


@primitive(nondiff=("advantage",), shapes="*, * -> *")
def clipped_surrogate(ratio: Array, advantage: Array, *, epsilon: float = 0.2) -> WithPullback:
    """PPO's objective for each action, to be maximised: nothing is gained by moving the ratio beyond 1 ± ε.

        min(r A, clip(r, 1 − ε, 1 + ε) A),      r = π(a|s)/π_old(a|s)               (15.9)
        derivative by r: A where the first is the smaller, 0 where the clipped one is

    ratio: r   advantage: A

    Raises: ShapeError if the shapes differ; ValueError for ε outside (0, 1).
    Source: Schulman et al. 2017, eq. 7.

    >>> clipped_surrogate([1.5, 0.5, 1.5, 0.5], [1, 1, -1, -1])
    array([ 1.2,  0.5, -1.5, -0.8])
    """
    within("clipped_surrogate", "(0, 1)", epsilon=epsilon)
    advantage = advantage.astype(ratio.dtype)
    free, clipped = ratio * advantage, np.clip(ratio, 1 - epsilon, 1 + epsilon).astype(ratio.dtype) * advantage
    return np.minimum(free, clipped), lambda dy: (np.where(free <= clipped, dy * advantage, 0), None)


@contract("... n+, ... n -> ... n")
def kl_optimal_policy(reference: ArrayLike, reward: ArrayLike, *, beta: float) -> np.ndarray:
    """The optimal policy under a KL penalty: the reference policy, reweighted by the exponential of the reward.

        maximise E_π[R] − β KL(π‖π_ref):      π*(y) = π_ref(y) e^(R(y)/β) / Z       (15.4)

    reference: a distribution   beta: β > 0; β → ∞ gives the reference, β → 0 the outcome of highest reward

    Raises: ValueError for β ≤ 0, or a reference that is no distribution.
    Source: Rafailov et al. 2023, eq. 4.

    >>> kl_optimal_policy([0.5, 0.3, 0.2], [1.0, 0.0, 2.0], beta=0.5).round(4)
    array([0.2477, 0.0201, 0.7322])
    """
    within("kl_optimal_policy", "(0, ∞)", beta=beta)
    reference = distribution(reference)
    best = np.where(reference > 0, reward, -np.inf).max(axis=-1, keepdims=True)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # where the reference is 0, any reward may be
        scores = np.log(reference) + (reward - best) / beta  # without `best`, quotients might be ∞ − ∞
    return softmax(np.where(reference > 0, scores, -np.inf))


@contract("... G++ -> ... G")
def group_advantages(rewards: ArrayLike, epsilon: float = 1e-8) -> np.ndarray:
    """GRPO's advantages: rewards of G answers to one prompt, relative to their mean, in standard deviations.

        A_i = (R_i − mean(R)) / (std(R) + ε)                                        (15.11)

    No value model is needed. Equal rewards have advantage 0.

    Raises: ShapeError for a group of fewer than two answers; ValueError for ε ≤ 0.
    Source: Shao et al. 2024, §4.1.

    >>> group_advantages([1.0, 0.0, 1.0, 0.0]).round(6)
    array([ 1., -1.,  1., -1.])
    """
    within("group_advantages", "(0, ∞)", epsilon=epsilon)
    dtype = np.result_type(rewards, 1.0)
    centred = rewards.astype(float) - rewards[..., :1]  # exactly 0 for equal rewards, whose mean may be rounded
    centred = centred - centred.mean(axis=-1, keepdims=True)
    return (centred / (centred.std(axis=-1, keepdims=True) + epsilon)).astype(dtype)


@primitive(shapes="*, * -> *")
def kl_estimate(policy: Array, reference: Array) -> WithPullback:
    """An estimate of KL(π‖π_ref) from sampled actions: never negative, and right on average.

        k = eᵈ − d − 1,      d = ln π_ref − ln π,      dk/dd = eᵈ − 1                (15.12)

    policy, reference: log-probabilities of the sampled actions

    Raises: ShapeError if the shapes differ; OverflowError where eᵈ is larger than the dtype can hold.
    Source: Schulman 2020, "Approximating KL divergence" (k3); Shao et al. 2024, eq. 4.

    >>> kl_estimate(np.log([0.5, 0.2]), np.log([0.5, 0.4])).round(4)
    array([0.    , 0.3069])
    """
    difference = reference - policy
    with np.errstate(over="ignore"):
        excess = np.expm1(difference)  # eᵈ − 1, with the digits that the subtraction would lose near d = 0
    if np.any(excess == np.inf):
        most = f"e^{difference.max():g} is more than {policy.dtype} can hold"
        raise OverflowError(f"kl_estimate() needs policies that are closer together: {most}")
    return np.maximum(excess - difference, 0), lambda dk: (-dk * excess, dk * excess)


@contract("n+, n+, n+, n+")
def grpo_loss(
    policy: Array, old: ArrayLike, reference: ArrayLike, advantage: ArrayLike,
    *, epsilon: float = 0.2, beta: float = 0.04,
) -> np.ndarray:  # fmt: skip
    """The loss of GRPO: PPO's clipped surrogate with group advantages, and the KL estimate as a penalty.

        L = −mean( min(r A, clip(r, 1 ± ε) A) − β r k ),      r = π/π_old            (15.14)

    policy, old, reference: log-probabilities of the sampled actions   ->   one number

    With the factor r, the penalty has on average the value and the gradient of β KL(π‖π_ref). Shao et al. have no r
    there: then its gradient is that of β KL(π_ref‖π).
    Raises: ValueError for ε outside (0, 1) or β < 0; OverflowError where r or k is larger than the dtype can hold.
    Source: Shao et al. 2024, eq. 3; the factor r: DeepSeek-AI 2025, eq. 7.

    >>> round(float(grpo_loss([-1.0, -2.0], [-1.1, -2.0], [-1.0, -2.0], [1.0, -1.0])), 4)  # r = e^0.1 and 1
    -0.0526
    """
    within("grpo_loss", "[0, ∞)", beta=beta)
    ratio = exp(policy - old)
    penalty = ratio * kl_estimate(policy, reference) * beta
    return -(clipped_surrogate(ratio, advantage, epsilon=epsilon) - penalty).mean()
