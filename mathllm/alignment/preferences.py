"""From "this answer is better than that one" to a reward, or straight to a better model."""

import numpy as np

from ..errors import ShapeError
from ..exponentials import log_sigmoid, sigmoid


def bradley_terry_loss(chosen, rejected):
    """Loss of a reward model: how surprised it is that the chosen answer was preferred.

        P(w preferred to l) = σ(R_w − R_l),      L = −(1/n) Σ ln σ(R_w − R_l)       (15.2)

    chosen, rejected: rewards R_w, R_l, (n,)   ->   one number; ln 2 for a model that sees no difference

    Raises: ShapeError if the numbers of rewards differ.
    Source: 001, §11.2; Bradley & Terry 1952.

    >>> round(float(bradley_terry_loss([2.0], [0.0])), 5)
    0.12693
    """
    chosen, rejected = _paired("bradley_terry_loss", chosen, rejected)
    return -log_sigmoid(chosen - rejected).mean()


def dpo_loss(policy_chosen, policy_rejected, reference_chosen, reference_rejected, *, beta: float = 0.1):
    """Direct preference optimisation: the reward model is the policy itself.

        R(x, y) = β ln(π(y|x)/π_ref(y|x)),      L = −(1/n) Σ ln σ(R_w − R_l)       (15.10)

    Four arrays of log-probabilities of whole answers, (n,)   beta: β > 0   ->   one number; ln 2 where π = π_ref

    The β-weighted log-ratio is the reward under which π is the optimum of (15.3); the prompt's normaliser cancels in
    the difference. Equal to reward modelling and reinforcement learning only for Bradley–Terry preferences and a
    policy that can express the optimum (erratum E3).
    Raises: ShapeError if the numbers differ; ValueError for β ≤ 0.
    Source: 001, §11.4; Rafailov et al. 2023, eq. 7.

    >>> round(float(dpo_loss([2.0], [-1.0], [0.0], [0.0], beta=0.1)), 5)
    0.55436
    """
    h = _margin("dpo_loss", beta, policy_chosen, policy_rejected, reference_chosen, reference_rejected)
    return -log_sigmoid(h * beta).mean()


def ipo_loss(policy_chosen, policy_rejected, reference_chosen, reference_rejected, *, beta: float = 0.1):
    """Identity preference optimisation: pull the margin to a fixed size, and no further.

        L = (1/n) Σ (h − 1/(2β))²,      h = ln π_w/π_ref,w − ln π_l/π_ref,l         (15.11)

    Where DPO drives h to infinity on a preference that is always the same, IPO stops at 1/(2β).
    Raises: as `dpo_loss`.
    Source: 001, §11.4 (named); Azar et al. 2023, eq. 17.

    >>> float(ipo_loss([5.0], [0.0], [0.0], [0.0], beta=0.1))
    0.0
    """
    h = _margin("ipo_loss", beta, policy_chosen, policy_rejected, reference_chosen, reference_rejected)
    return ((h - 1 / (2 * beta)) ** 2).mean()


def kto_loss(
    policy,
    reference,
    desirable,
    *,
    beta: float = 0.1,
    divergence: float = 0.0,
    gain: float = 1.0,
    loss_aversion: float = 1.0,
):
    """Kahneman–Tversky optimisation: no pairs, only answers marked good or bad.

        v = λ_D σ(β(h − z)) for a good answer,   λ_U σ(β(z − h)) for a bad one;   L = mean(λ − v)  (15.12)

    policy, reference: log-probabilities, (n,)   desirable: (n,) bool   divergence: z ≥ 0, an estimate of the KL
    divergence from the reference, held fixed   gain, loss_aversion: λ_D, λ_U   ->   one number

    Raises: ShapeError if the numbers differ; ValueError for β ≤ 0 or a negative divergence.
    Source: 001, §11.4 (named); Ethayarajh et al. 2024.

    >>> float(kto_loss([0.0], [0.0], [True]))
    0.5
    """
    policy, reference = _paired("kto_loss", policy, reference)
    desirable = np.asarray(desirable, bool)
    if desirable.shape != policy.shape:
        raise ShapeError(f"kto_loss() needs one mark per answer, got {desirable.shape} for {policy.shape}")
    if divergence < 0:
        raise ValueError(f"kto_loss() needs a divergence of at least 0, got {divergence}")
    sign = np.where(desirable, 1.0, -1.0) * _positive("kto_loss", beta)
    weight = np.where(desirable, gain, loss_aversion)
    return (weight - sigmoid((policy - reference - divergence) * sign) * weight).mean()


def _margin(name, beta, *log_probabilities):
    _positive(name, beta)
    policy_chosen, policy_rejected, reference_chosen, reference_rejected = _paired(name, *log_probabilities)
    return (policy_chosen - reference_chosen) - (policy_rejected - reference_rejected)


def _positive(name, beta):
    if not beta > 0:
        raise ValueError(f"{name}() needs a positive beta, got {beta}")
    return beta


def _paired(name, *values):
    values = [value if hasattr(value, "pullback") else np.asarray(value, float) for value in values]
    shapes = {value.shape for value in values}
    if len(shapes) > 1 or not values[0].size:
        raise ShapeError(f"{name}() needs arrays of one length, at least 1, got shapes {[v.shape for v in values]}")
    return values
