"""Losses for preferences between two answers: reward models (Bradley–Terry), DPO, IPO, and KTO for single answers."""

import numpy as np

from ..autodiff import Array, ArrayLike
from ..errors import all_within, within
from ..exponentials import log_sigmoid, sigmoid
from ..shapes import contract


@contract("n+, n+")
def bradley_terry_loss(chosen: Array, rejected: Array) -> np.ndarray:
    """The loss of a reward model: the mean negative log-likelihood of the observed preferences.

        P(w preferred to l) = σ(R_w − R_l),      L = −(1/n) Σ ln σ(R_w − R_l)       (15.2)

    chosen, rejected: rewards R_w, R_l   ->   one number; ln 2 for a model that gives both the same reward

    Source: Bradley & Terry 1952.

    >>> round(float(bradley_terry_loss([2.0], [0.0])), 5)
    0.12693
    """
    return -log_sigmoid(chosen * 1.0 - rejected).mean()  # · 1.0, because unsigned integers cannot be negative


@contract("n+, n+, n+, n+")
def dpo_loss(
    policy_chosen: Array, policy_rejected: Array, reference_chosen: ArrayLike, reference_rejected: ArrayLike,
    *, beta: float = 0.1,
) -> np.ndarray:  # fmt: skip
    """The loss of direct preference optimisation: Bradley–Terry, with a reward that is computed from the policy itself.

        R(x, y) = β ln(π(y|x)/π_ref(y|x)),      L = −(1/n) Σ ln σ(R_w − R_l)       (15.15)

    Four arrays of log-probabilities of whole answers   beta: β > 0   ->   one number; ln 2 where π = π_ref

    R is the reward under which π is the optimum of (15.4), up to a constant of the prompt, which cancels in the
    difference. The result equals reward modelling and reinforcement learning only for Bradley–Terry preferences and a
    policy that can express the optimum.
    Raises: ValueError for β ≤ 0.
    Source: Rafailov et al. 2023, eq. 7.

    >>> round(float(dpo_loss([2.0], [-1.0], [0.0], [0.0], beta=0.1)), 5)
    0.55436
    """
    within("dpo_loss", "(0, ∞)", beta=beta)
    margin = (policy_chosen - reference_chosen) - (policy_rejected - reference_rejected)
    return -log_sigmoid(margin * beta).mean()


@contract("n+, n+, n+, n+")
def ipo_loss(
    policy_chosen: Array, policy_rejected: Array, reference_chosen: ArrayLike, reference_rejected: ArrayLike,
    *, beta: float = 0.1,
) -> np.ndarray:  # fmt: skip
    """The loss of identity preference optimisation: the squared distance of the margin from a fixed target.

        L = (1/n) Σ (h − 1/(2β))²,      h = ln π_w/π_ref,w − ln π_l/π_ref,l         (15.20)

    Four arrays of log-probabilities of whole answers   beta: β > 0   ->   one number

    For a preference without exceptions, DPO increases h without limit; IPO stops at 1/(2β).
    Raises: ValueError for β ≤ 0.
    Source: Azar et al. 2023, eq. 17.

    >>> float(ipo_loss([5.0], [0.0], [0.0], [0.0], beta=0.1))
    0.0
    """
    within("ipo_loss", "(0, ∞)", beta=beta)
    margin = (policy_chosen - reference_chosen) - (policy_rejected - reference_rejected)
    return ((margin - 1 / (2 * beta)) ** 2).mean()


@contract("n+, n, n")
def kto_loss(
    policy: Array, reference: ArrayLike, desirable: ArrayLike, *,
    beta: float = 0.1, divergence: float = 0.0, gain: float = 1.0, loss_aversion: float = 1.0,
) -> np.ndarray:  # fmt: skip
    """The loss of Kahneman–Tversky optimisation, for single answers that are marked good or bad.

        u = λ_D σ(β(h − z)) for a good answer,   λ_U σ(β(z − h)) for a bad one;   L = mean(λ − u)  (15.21)

    policy, reference: ln π and ln π_ref of whole answers, h their difference   desirable: 1 for good answers, 0 for bad
    divergence: z ≥ 0, an estimate of the KL divergence from the reference, held fixed   gain, loss_aversion: λ_D, λ_U
    ->   one number

    Raises: ValueError for β ≤ 0, a negative divergence, or marks other than 0 and 1.
    Source: Ethayarajh et al. 2024.

    >>> float(kto_loss([0.0], [0.0], [True]))
    0.5
    """
    within("kto_loss", "(0, ∞)", beta=beta)
    within("kto_loss", "[0, ∞)", divergence=divergence)
    all_within("kto_loss", "{0, 1}", desirable=desirable)
    margin = policy - reference - divergence
    sign, weight = (np.where(desirable, *pair).astype(margin.dtype) for pair in ((beta, -beta), (gain, loss_aversion)))
    return (weight - sigmoid(margin * sign) * weight).mean()
