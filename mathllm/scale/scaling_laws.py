"""Scaling laws: how the loss falls with model size and amount of text, and how a budget is divided between the two."""

from typing import NamedTuple

import numpy as np

from ..autodiff import ArrayLike
from ..errors import all_within, within
from ..exponentials import log_sum_exp
from ..probability import ridge_regression
from ..shapes import contract
from ..softmax import softmax


class ScalingLaw(NamedTuple):
    """The five constants of L(N, D) = E + A/N^α + B/D^β."""

    E: float
    A: float
    B: float
    alpha: float
    beta: float


# Hoffmann et al. 2022, approach 3, rounded as in the paper's text. Exponents of two digits bias predictions; unrounded
# they are 0.33917 and 0.28491. Besiroglu et al. 2024 could not reproduce the fit.
CHINCHILLA = ScalingLaw(E=1.69, A=406.4, B=410.7, alpha=0.34, beta=0.28)


@contract("..., ... -> ...")
def scaling_loss(parameters: ArrayLike, tokens: ArrayLike, law: ScalingLaw = CHINCHILLA) -> np.ndarray:
    """The loss that a scaling law predicts for a model of N parameters after D tokens, in nats per token.

        L(N, D) = E + A/N^α + B/D^β                                                 (17.17)

    E is the limit of the loss for large models and much text. A/N^α is added by the finite model, B/D^β by the finite
    text. The constants hold for the tokenizer and the text of the fitted runs.
    Raises: ShapeError for shapes that do not fit; ValueError unless N and D are above 0.
    Source: Hoffmann et al. 2022, eq. 2.

    >>> [round(float(scaling_loss(*run)), 4) for run in [(175e9, 300e9), (70e9, 1.4e12)]]  # GPT-3, Chinchilla
    [2.0023, 1.9366]
    """
    N, D = np.asarray(parameters, float), np.asarray(tokens, float)
    all_within("scaling_loss", "(0, ∞]", parameters=N, tokens=D)
    return law.E + law.A / N**law.alpha + law.B / D**law.beta


class Allocation(NamedTuple):
    """A division of a budget: parameters, tokens, and the loss that the law predicts for them."""

    parameters: float
    tokens: float
    loss: float


def optimal_exponents(law: ScalingLaw = CHINCHILLA) -> tuple[float, float]:
    """The exponents with which the optimal model size and amount of text grow with the budget.

        N_opt ∝ C^(β/(α+β)),      D_opt ∝ C^(α/(α+β))                               (17.19)

    Both are ½ only if α = β.
    Raises: ValueError unless α and β are above 0.
    Source: Hoffmann et al. 2022, eq. 4.

    >>> [round(exponent, 4) for exponent in optimal_exponents()]
    [0.4516, 0.5484]
    """
    within("optimal_exponents", "(0, ∞)", alpha=law.alpha, beta=law.beta)
    return law.beta / (law.alpha + law.beta), law.alpha / (law.alpha + law.beta)


def compute_optimal(flops: float, law: ScalingLaw = CHINCHILLA) -> Allocation:
    """The model size and the number of tokens with the smallest loss for a budget C = 6ND.

        N = G (C/6)^(β/(α+β)),      D = G⁻¹ (C/6)^(α/(α+β)),      G = (αA / βB)^(1/(α+β))      (17.18)

    At the optimum, 1 % more parameters reduce the loss as much as 1 % more text: αA/N^α = βB/D^β.
    Raises: ValueError for a budget that is not above 0.
    Source: Hoffmann et al. 2022, eq. 4.

    >>> best = compute_optimal(5.88e23)
    >>> f"{best.parameters:.2e} parameters, {best.tokens:.2e} tokens, loss {best.loss:.4f}"
    '3.25e+10 parameters, 3.02e+12 tokens, loss 1.9300'
    """
    within("compute_optimal", "(0, ∞)", flops=flops)
    a, b = optimal_exponents(law)
    G = (law.alpha * law.A / (law.beta * law.B)) ** (1 / (law.alpha + law.beta))
    N, D = G * float(flops / 6) ** a, float(flops / 6) ** b / G
    return Allocation(N, D, float(scaling_loss(N, D, law)))


@contract("n, n, n")
def fit_scaling_law(parameters: ArrayLike, tokens: ArrayLike, losses: ArrayLike) -> ScalingLaw:
    """The scaling law that fits measured runs best, by least squares on the logarithm of the loss.

        min Σᵢ [ln(E + A/Nᵢ^α + B/Dᵢ^β) − ln Lᵢ]²                                   (17.20)

    parameters, tokens, losses: of n runs; sizes and lengths must both take three values or more, or the constants are
    not determined

    E, A and B come out above 0. The start is the best point of a grid of exponents, for each of which E, A and B follow
    by linear least squares. Damped Gauss-Newton steps (Levenberg 1944) then change the logarithms of all five
    constants.
    Raises: ShapeError for lists of different lengths; ValueError for fewer than five runs, for runs of one size or one
    length, or for numbers that are not above 0.
    Source: Hoffmann et al. 2022, §3.3 (there with Huber's loss instead of the square).

    >>> N, D = np.array([1, 1, 1, 3, 3, 3, 9, 9, 9]) * 1e5, np.array([1, 4, 16] * 3) * 1e6
    >>> law = fit_scaling_law(N, D, scaling_loss(N, D, ScalingLaw(1.5, 60.0, 300.0, 0.4, 0.5)))
    >>> [round(float(constant), 3) for constant in law]
    [1.5, 60.0, 300.0, 0.4, 0.5]
    """
    N, D, L = np.array([parameters, tokens, losses], float)
    within("fit_scaling_law", "[5, ∞)", runs=len(L))
    all_within("fit_scaling_law", "(0, ∞)", parameters=N, tokens=D, losses=L)
    if np.ptp(N) == 0 or np.ptp(D) == 0:
        raise ValueError("fit_scaling_law() needs runs of several sizes and of several lengths")
    logs = np.stack([np.zeros_like(N), -np.log(N), -np.log(D)])  # ln of 1, 1/N and 1/D
    middle = logs.mean(axis=1, keepdims=True)
    theta = _gauss_newton(_grid_search(logs - middle, L), logs - middle, np.log(L))
    theta[:3] -= [0, *np.exp(theta[3:])] * middle[:, 0]
    return ScalingLaw(*np.exp(theta).tolist())


def _grid_search(logs, L):
    """(ln E, ln A, ln B, ln α, ln β) of the least relative error among pairs of exponents whose E, A, B are above 0."""
    best = np.inf, np.log([L.min() / 2, L.min() / 4, L.min() / 4, 0.4, 0.4])
    for alpha in np.geomspace(0.05, 2, 12):
        for beta in np.geomspace(0.05, 2, 12):
            terms = (np.exp(np.array([0, alpha, beta])[:, None] * logs) / L).T  # (n, 3): 1/L, N^−α/L, D^−β/L
            constants = np.linalg.lstsq(terms, np.ones_like(L), rcond=None)[0]
            error = np.sum((terms @ constants - 1) ** 2)
            if error < best[0] and constants.min() > 0:
                best = error, np.log([*constants, alpha, beta])
    return best[1]


def _gauss_newton(theta, logs, target, steps=300):
    """Damped Gauss-Newton steps: each minimises |residual + J step|² + damping² |step|²."""

    def terms(theta):
        return theta[:3, None] + np.exp([-np.inf, *theta[3:]])[:, None] * logs  # ln of E, A/N^α and B/D^β

    residual, damping = log_sum_exp(terms(theta), axis=0) - target, 1.0
    for _ in range(steps):
        fractions = softmax(terms(theta), axis=0)  # of the three terms in their sum, (3, n)
        J = np.vstack([fractions, fractions[1:] * np.exp(theta[3:, None]) * logs[1:]]).T  # (n, 5)
        step = ridge_regression(J, -residual, penalty=damping**2)
        new = log_sum_exp(terms(theta + step), axis=0) - target
        if new @ new < residual @ residual:
            theta, residual, damping = theta + step, new, damping / 3
        else:
            damping *= 3
        if np.max(np.abs(step)) < 1e-10:
            break
    return theta
