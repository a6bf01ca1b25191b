"""From data to parameters: the likelihood and its maximum, Bayes' theorem, priors, and least squares."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..autodiff import Array, ArrayLike, WithPullback, primitive
from ..errors import ShapeError, all_within, within
from ..exponentials import exp, log_product, log_sum_exp
from ..shapes import contract
from .distributions import distribution


@primitive(shapes="... -> ...")
def bernoulli_log_likelihood(theta: Array, *, successes: int, trials: int) -> WithPullback:
    """The log-likelihood of θ, the probability of heads, after `successes` heads in `trials` throws of a coin.

        ln P(D | θ) = c ln θ + (N − c) ln(1 − θ),      d/dθ = c/θ − (N − c)/(1 − θ)   (5.12)

    theta: from 0 to 1   successes: c   trials: N

    For 0 < c < N the derivative is zero at θ = c/N. This relative frequency is the maximum-likelihood estimate, also
    for c = 0 and c = N, where the largest value is at an end.
    Raises: ValueError for θ outside 0 … 1, or more successes than trials.

    >>> bernoulli_log_likelihood([0.5, 0.7], successes=7, trials=10).round(3)
    array([-6.931, -6.109])
    """
    within("bernoulli_log_likelihood", f"[0, {trials}]", successes=successes)
    all_within("bernoulli_log_likelihood", "[0, 1]", theta=theta)
    failures = trials - successes
    with np.errstate(divide="ignore"):  # ln 0 = −∞: under this θ the data are impossible
        log_likelihood = _times(successes, np.log(theta)) + _times(failures, np.log1p(-theta))

    def pullback(dy):
        with np.errstate(divide="ignore"):
            return dy * (_times(successes, 1 / theta) - _times(failures, 1 / (1 - theta)))

    return log_likelihood, pullback


def maximum_likelihood(log_likelihood: Callable, candidates: ArrayLike) -> np.ndarray:
    """The candidate under which the data are most probable.

        θ* = argmax_θ ln P(D | θ)                                                   (5.14)

    log_likelihood: maps candidates, (n, ...), to one number each, (n,)   candidates: (n, ...)   ->   one of them

    Of several equally good ones the first. The logarithm does not move the maximum, because it is increasing.
    Raises: ValueError if there is no candidate, or none under which the data are possible.

    >>> heads = lambda theta: bernoulli_log_likelihood(theta, successes=7, trials=10)
    >>> round(float(maximum_likelihood(heads, np.linspace(0, 1, 101))), 9)
    0.7
    """
    candidates = np.asarray(candidates)
    scores = np.asarray(log_likelihood(candidates))
    if scores.ndim != 1 or scores.shape != candidates.shape[:1] or not scores.size:
        wanted = "at least one candidate, and one score for each candidate"
        raise ShapeError(f"maximum_likelihood() needs {wanted}, got shape {scores.shape}")
    best = np.argmax(np.where(np.isnan(scores), -np.inf, scores))
    if not scores[best] > -np.inf:
        raise ValueError("maximum_likelihood() found no candidate under which the data are possible")
    return candidates[best]


@contract("... K+, ... K -> ... K")
def posterior(prior: ArrayLike, likelihood: ArrayLike) -> np.ndarray:
    """Bayes' theorem: from the prior and the likelihood of the data to the posterior distribution.

        P(θ | D) = P(D | θ) P(θ) / P(D),      P(D) = Σ_θ P(D | θ) P(θ)              (5.21)

    prior: a distribution over K hypotheses θ   likelihood: probability, or density, of the data under each

    Raises: ValueError if the prior is no distribution, a likelihood is negative or infinite, or the data are impossible
    under every hypothesis that the prior allows.

    >>> posterior([0.2, 0.8], [0.9, 0.3]).round(4)
    array([0.4286, 0.5714])
    """
    prior = distribution(prior)
    all_within("posterior", "[0, ∞)", likelihood=likelihood)
    likelihood = np.where(prior > 0, likelihood, 0)
    largest = likelihood.max(axis=-1, keepdims=True)
    if not np.all(largest > 0):
        raise ValueError("posterior() needs a hypothesis that allows the data; here the evidence P(D) is 0")
    joint = prior * (likelihood / largest)  # without this division, small products would be rounded to 0
    return joint / joint.sum(axis=-1, keepdims=True)


@contract("K, T K -> T+1 K")
def sequential_posterior(prior: ArrayLike, likelihoods: ArrayLike) -> np.ndarray:
    """The posterior after each observation; each posterior is the prior of the next observation.

        P(θ | x₁ … xₜ) ∝ P(θ) Πₛ≤ₜ P(xₛ | θ)                                        (5.22)

    likelihoods: row t has the probability of observation t under each of the K hypotheses

    Computed in log space, so a thousand observations do not underflow. With tasks as hypotheses and the examples of a
    prompt as observations, this is the Bayesian view of in-context learning.
    Raises: as posterior().

    >>> sequential_posterior([0.5, 0.5], [[0.9, 0.3], [0.9, 0.3]]).round(3)
    array([[0.5 , 0.5 ],
           [0.75, 0.25],
           [0.9 , 0.1 ]])
    """
    all_within("sequential_posterior", "[0, ∞)", likelihoods=likelihoods)
    factors = np.vstack([distribution(prior), likelihoods]).astype(np.float64)  # (T + 1, K)
    log_joint = np.cumsum(log_product(factors[..., None]), axis=0)  # of one factor each, ln 0 = −∞
    log_evidence = log_sum_exp(log_joint, keepdims=True)
    if np.any(np.isneginf(log_evidence)):
        raise ValueError("sequential_posterior() needs a hypothesis that allows the data; here none is left")
    return exp(log_joint - log_evidence).astype(np.result_type(prior, likelihoods, 1.0))


@dataclass(frozen=True)
class Beta:
    """A Beta distribution of the probability of heads, as after a − 1 heads and b − 1 tails.

        f(θ) = θ^(a−1) (1 − θ)^(b−1) / B(a, b),      B(a, b) = Γ(a) Γ(b) / Γ(a + b)   (5.25)

    a, b: positive; with both 1, every θ is equally plausible

    Raises: ValueError for parameters that are not positive and finite.

    >>> belief = Beta(1, 1).update(successes=7, failures=3)
    >>> belief, round(belief.mean, 3), belief.mode
    (Beta(a=8, b=4), 0.667, 0.7)
    """

    a: float
    b: float

    def __post_init__(self):
        within("Beta", "(0, ∞)", a=self.a, b=self.b)

    def update(self, successes: float, failures: float) -> "Beta":
        """The posterior after more throws: a Beta distribution again, Beta(a + successes, b + failures).

        Raises: ValueError for a negative number of throws.
        """
        within("Beta.update", "[0, ∞)", successes=successes, failures=failures)
        return Beta(self.a + successes, self.b + failures)

    @property
    def mean(self) -> float:
        """The probability that the next throw shows heads: a / (a + b)."""
        return self.a / (self.a + self.b)

    @property
    def mode(self) -> float:
        """The θ of highest density, the MAP estimate: (a − 1)/(a + b − 2). Raises: ValueError if there are several."""
        if self.a < 1 or self.b < 1 or self.a + self.b == 2:
            raise ValueError(f"the density of {self} has no single highest point")
        return (self.a - 1) / (self.a + self.b - 2)

    @property
    def variance(self) -> float:
        """The variance of θ: ab / ((a + b)² (a + b + 1)), which is at most 1 / (4 (a + b + 1))."""
        return self.mean * (1 - self.mean) / (self.a + self.b + 1)

    def density(self, theta: ArrayLike) -> np.ndarray:
        """The density at θ, an array of numbers. Raises: ValueError unless they are strictly between 0 and 1."""
        theta = np.asarray(theta, float)
        all_within("Beta.density", "(0, 1)", theta=theta)
        log_beta = math.lgamma(self.a) + math.lgamma(self.b) - math.lgamma(self.a + self.b)
        return np.exp((self.a - 1) * np.log(theta) + (self.b - 1) * np.log1p(-theta) - log_beta)


@contract("n d, n m -> d m")
def least_squares(X: ArrayLike, y: ArrayLike) -> np.ndarray:
    """The weights of the best linear fit; if several fit equally well, those of smallest norm.

        w = argmin ‖y − Xw‖²

    X, y: one example per row

    Raises: ValueError for NaN or infinite numbers, with which the solver might not return.

    >>> least_squares([[1.0], [2.0]], [[1.0], [2.0]]).round(4)
    array([[1.]])
    """
    all_within("least_squares", "(-∞, ∞)", X=X, y=y)
    return np.linalg.lstsq(X, y, rcond=None)[0]


@contract("n d, n -> d")
def ridge_regression(X: ArrayLike, y: ArrayLike, penalty: float) -> np.ndarray:
    """Least squares with a penalty on large weights, in closed form.

        w = argmin ‖y − Xw‖² + λ‖w‖² = (XᵀX + λI)⁻¹ Xᵀy                             (5.27)

    penalty: λ ≥ 0

    Solved as ordinary least squares with √λ·I as further rows of X and zeros as further y, which loses fewer digits
    than the inverse. For λ = 0 and more unknowns than data, the solution of smallest norm.
    Raises: ValueError for a negative penalty, or numbers that are not finite.

    >>> ridge_regression([[1.0], [2.0]], [1.0, 2.0], penalty=1.0).round(4)
    array([0.8333])
    """
    within("ridge_regression", "[0, ∞)", penalty=penalty)
    all_within("ridge_regression", "(-∞, ∞)", X=X, y=y)
    d = X.shape[1]
    rows, targets = np.vstack([X, np.sqrt(penalty) * np.eye(d)]), np.append(y, np.zeros(d))
    return least_squares(rows, targets[:, None])[:, 0].astype(np.result_type(X, y, 1.0))


def map_linear_regression(X: ArrayLike, y: ArrayLike, *, noise: float, prior: float) -> np.ndarray:
    """The most probable weights under Gaussian noise and a Gaussian prior: ridge regression with λ = s²/s₀².

        argmax_w ln P(w | D) = argmin_w ‖y − Xw‖² + (s²/s₀²) ‖w‖²                   (5.27)

    X: (n, d)   y: (n,)   noise: s   prior: s₀, the standard deviations   ->   w: (d,)

    So weight decay is a prior: the larger λ, the more the prior concentrates on small weights.
    Raises: as ridge_regression(); ValueError for standard deviations that are not positive.

    >>> map_linear_regression([[1.0], [2.0]], [1.0, 2.0], noise=1.0, prior=1.0).round(4)
    array([0.8333])
    """
    within("map_linear_regression", "(0, ∞)", noise=noise, prior=prior)
    return ridge_regression(X, y, penalty=(noise / prior) ** 2)


def _times(count, amount):
    """The product, 0 if the count is 0, also where the amount is infinite."""
    return float(count) * amount if count else np.zeros_like(amount)
