"""From data to parameters: the likelihood, its maximum, and what one knew before."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..autodiff import Tensor, primitive
from ..errors import ShapeError
from ..exponentials import exp, log_product, log_sum_exp
from ..matrices import matrix_vector_product
from .distributions import distribution
from .expectation import normal_log_density


@primitive
def bernoulli_log_likelihood(theta, *, successes: int, trials: int):
    """How well a coin that shows heads with probability θ explains what was thrown.

        ln P(D | θ) = s ln θ + (n − s) ln(1 − θ),      d/dθ = s/θ − (n − s)/(1 − θ)   (5.9)

    theta: (...), from 0 to 1   ->   (...)

    The derivative is zero at θ = s/n: the share of heads is the maximum-likelihood estimate.
    Raises: ValueError for θ outside 0 … 1, or more successes than trials.
    Source: 002, maximum likelihood; 001, §2.3.

    >>> bernoulli_log_likelihood([0.5, 0.7], successes=7, trials=10).round(3)
    array([-6.931, -6.109])
    """
    if not 0 <= successes <= trials:
        raise ValueError(f"bernoulli_log_likelihood() needs 0 ≤ successes ≤ trials, got {successes} of {trials}")
    if not np.all((theta >= 0) & (theta <= 1)):
        raise ValueError("bernoulli_log_likelihood() needs probabilities θ from 0 to 1 (see chapter 05)")
    failures = trials - successes
    with np.errstate(divide="ignore"):  # ln 0 = −∞: this θ rules the data out
        heads = successes * np.log(theta) if successes else np.zeros_like(theta)
        tails = failures * np.log1p(-theta) if failures else np.zeros_like(theta)

    def pullback(dy):
        with np.errstate(divide="ignore"):
            up = successes / theta if successes else 0
            down = failures / (1 - theta) if failures else 0
        return dy * (up - down)

    return heads + tails, pullback


def maximum_likelihood(log_likelihood: Callable, candidates):
    """The candidate under which the data are most probable.

        θ* = argmax_θ ln P(D | θ)                                                   (5.10)

    log_likelihood: maps candidates, (n, ...), to one number each, (n,)   candidates: (n, ...)   ->   one of them

    Of several equally good ones the first. The logarithm does not move the maximum, because it never falls.
    Raises: ValueError if there is no candidate, or none under which the data are possible.
    Source: 002, maximum likelihood estimation; 001, §2.3.

    >>> heads = lambda theta: bernoulli_log_likelihood(theta, successes=7, trials=10)
    >>> round(float(maximum_likelihood(heads, np.linspace(0, 1, 101))), 9)
    0.7
    """
    candidates = np.asarray(candidates)
    if candidates.ndim == 0 or len(candidates) == 0:
        raise ValueError("maximum_likelihood() needs at least one candidate")
    scores = np.asarray(log_likelihood(candidates))
    if scores.shape != candidates.shape[:1]:
        raise ShapeError(f"maximum_likelihood() needs one score for each candidate, got shape {scores.shape}")
    best = np.argmax(np.where(np.isnan(scores), -np.inf, scores))
    if not scores[best] > -np.inf:
        raise ValueError("maximum_likelihood() found no candidate under which the data are possible")
    return candidates[best]


def posterior(prior, likelihood) -> np.ndarray:
    """Bayes' theorem: what to believe after the data, from what one believed before.

        P(θ | D) = P(D | θ) P(θ) / P(D),      P(D) = Σ_θ P(D | θ) P(θ)              (5.16)

    prior: (..., K), a distribution   likelihood: (..., K), probability of the data under each θ   ->   (..., K)

    Raises: ValueError if the prior is no distribution, a likelihood is negative, or no θ allows the data.
    Source: 001, §2.3; 002, Bayes' theorem.

    >>> posterior([0.2, 0.8], [0.9, 0.3]).round(4)
    array([0.4286, 0.5714])
    """
    prior, likelihood = distribution(prior), np.asarray(likelihood)
    if likelihood.ndim == 0 or likelihood.shape[-1] != prior.shape[-1]:
        raise ShapeError(
            f"posterior() needs one likelihood for each of {prior.shape[-1]} hypotheses, got shape {likelihood.shape}"
        )
    if not np.all(likelihood >= 0):
        raise ValueError("posterior() needs likelihoods that are not negative (see chapter 05)")
    joint = prior * likelihood
    evidence = joint.sum(axis=-1, keepdims=True)
    if not np.all(evidence > 0):
        raise ValueError("posterior() needs a hypothesis that allows the data; here the evidence P(D) is 0")
    return joint / evidence


def sequential_posterior(prior, likelihoods) -> np.ndarray:
    """Belief after each observation: yesterday's posterior is today's prior.

        P(θ | x₁ … xₜ) ∝ P(θ) Πₛ≤ₜ P(xₛ | θ)                                        (5.17)

    prior: (K,)   likelihoods: (T, K), row t: probability of observation t under each θ   ->   (T + 1, K)

    Computed in log space, so a thousand observations do not underflow. With tasks as hypotheses and the examples of a
    prompt as observations, this is the Bayesian picture of in-context learning.
    Raises: ValueError if the prior is no distribution, a likelihood is negative, or the data are impossible.
    Source: 002, Bayes' theorem in LLMs.

    >>> sequential_posterior([0.5, 0.5], [[0.9, 0.3], [0.9, 0.3]]).round(3)
    array([[0.5 , 0.5 ],
           [0.75, 0.25],
           [0.9 , 0.1 ]])
    """
    prior, likelihoods = distribution(prior), np.asarray(likelihoods, float)
    if prior.ndim != 1 or likelihoods.ndim != 2 or likelihoods.shape[1] != len(prior):
        raise ShapeError(
            "sequential_posterior() needs a prior (K,) and likelihoods (T, K), "
            f"got {prior.shape} and {likelihoods.shape} (see chapter 05)"
        )
    log_steps = log_product(np.vstack([prior, likelihoods])[..., None])  # (T + 1, K), where 0 becomes −∞
    log_joint = np.cumsum(log_steps, axis=0)
    log_evidence = log_sum_exp(log_joint, keepdims=True)
    if np.any(np.isneginf(log_evidence)):
        raise ValueError("sequential_posterior() needs a hypothesis that allows the data; here none is left")
    return exp(log_joint - log_evidence)


@dataclass(frozen=True)
class Beta:
    """A belief about the probability of heads: as if a − 1 heads and b − 1 tails had been seen before.

        f(θ) = θ^(a−1) (1 − θ)^(b−1) / B(a, b),      B(a, b) = Γ(a) Γ(b) / Γ(a + b)   (5.21)

    a, b: positive; both 1 for "anything is possible"

    Raises: ValueError for parameters that are not positive.
    Source: 001, §2.3.

    >>> belief = Beta(1, 1).update(successes=7, failures=3)
    >>> belief, round(belief.mean, 3), belief.mode
    (Beta(a=8, b=4), 0.667, 0.7)
    """

    a: float
    b: float

    def __post_init__(self):
        if not (self.a > 0 and self.b > 0):
            raise ValueError(f"Beta() needs positive parameters, got {self.a} and {self.b} (see chapter 05)")

    def update(self, successes: float, failures: float) -> "Beta":
        """The belief after more data: the posterior is a Beta distribution again, Beta(a + s, b + f)."""
        if min(successes, failures) < 0:
            raise ValueError(f"Beta.update() needs counts of at least 0, got {successes} and {failures}")
        return Beta(self.a + successes, self.b + failures)

    @property
    def mean(self) -> float:
        """The probability that the next throw shows heads: a / (a + b)."""
        return self.a / (self.a + self.b)

    @property
    def mode(self) -> float:
        """The most plausible θ, the MAP estimate: (a − 1)/(a + b − 2). Raises: ValueError where none stands out."""
        if self.a < 1 or self.b < 1 or self.a + self.b == 2:
            raise ValueError(f"the density of {self} has no single highest point")
        return (self.a - 1) / (self.a + self.b - 2)

    @property
    def variance(self) -> float:
        """How uncertain θ still is: ab / ((a + b)² (a + b + 1)), which shrinks as data arrive."""
        return self.mean * (1 - self.mean) / (self.a + self.b + 1)

    def density(self, theta) -> np.ndarray:
        """The density of the belief at θ, an array of numbers strictly between 0 and 1."""
        theta = np.asarray(theta, float)
        if not np.all((theta > 0) & (theta < 1)):
            raise ValueError("Beta.density() needs θ strictly between 0 and 1")
        return np.exp((self.a - 1) * np.log(theta) + (self.b - 1) * np.log1p(-theta) - self._log_beta)

    def log_evidence(self, successes: int, failures: int) -> float:
        """ln P(D), the probability of these throws in this order with θ averaged away: ln B(a + s, b + f)/B(a, b)."""
        return self.update(successes, failures)._log_beta - self._log_beta

    @property
    def _log_beta(self):
        return math.lgamma(self.a) + math.lgamma(self.b) - math.lgamma(self.a + self.b)


def linear_log_posterior(w, X, y, *, noise: float, prior: float):
    """How plausible weights are, given data and a Gaussian belief that they are small (without the constant ln P(D)).

        ln P(w | D) = Σᵢ ln N(yᵢ; xᵢ·w, σ²) + Σⱼ ln N(wⱼ; 0, τ²) + const             (5.22)

    w: (d,)   X: (n, d)   y: (n,)   noise: σ   prior: τ, the standard deviations   ->   one number

    Raises: ValueError for standard deviations that are not positive; ShapeError if the sizes do not fit.
    Source: 001, §2.3; 002, weight decay as a prior.

    >>> w = np.array([0.5])
    >>> round(float(linear_log_posterior(w, [[1.0], [2.0]], [1.0, 2.0], noise=1.0, prior=1.0)), 4)
    -3.5068
    """
    X, y = _require_data("linear_log_posterior", X, y)
    w = w if isinstance(w, Tensor) else np.asarray(w, float)
    if w.shape != X.shape[1:]:
        raise ShapeError(f"linear_log_posterior() needs {X.shape[1]} weights, got shape {w.shape}")
    log_likelihood = normal_log_density(y, matrix_vector_product(X, w), noise).sum()
    log_prior = normal_log_density(w, 0.0, prior).sum()
    return log_likelihood + log_prior


def ridge_regression(X, y, penalty: float) -> np.ndarray:
    """Least squares with a price on large weights, in closed form.

        w = argmin ‖y − Xw‖² + λ‖w‖² = (XᵀX + λI)⁻¹ Xᵀy                             (5.23)

    X: (n, d)   y: (n,)   penalty: λ ≥ 0   ->   w: (d,)

    Solved as ordinary least squares with √λ·I as further rows of X and zeros as further y, which is more exact than
    inverting. For λ = 0 with more unknowns than data, the shortest of the solutions.
    Raises: ValueError for a negative penalty; ShapeError if the sizes do not fit.
    Source: 001, §1.4 and §2.3; 004, weight decay.

    >>> ridge_regression([[1.0], [2.0]], [1.0, 2.0], penalty=1.0).round(4)
    array([0.8333])
    """
    X, y = _require_data("ridge_regression", X, y)
    if not penalty >= 0:
        raise ValueError(f"ridge_regression() needs a penalty of at least 0, got {penalty}")
    d = X.shape[1]
    rows, targets = np.vstack([X, np.sqrt(penalty) * np.eye(d)]), np.concatenate([y, np.zeros(d)])
    return np.linalg.lstsq(rows, targets, rcond=None)[0]


def map_linear_regression(X, y, *, noise: float, prior: float) -> np.ndarray:
    """The most plausible weights under Gaussian noise and a Gaussian prior: ridge regression, with λ = σ²/τ².

        argmax_w ln P(w | D) = argmin_w ‖y − Xw‖² + (σ²/τ²) ‖w‖²                    (5.24)

    X: (n, d)   y: (n,)   noise: σ   prior: τ, the standard deviations   ->   w: (d,)

    So weight decay is a belief: the larger λ, the more firmly one holds that weights are small.
    Raises: ValueError for standard deviations that are not positive; ShapeError if the sizes do not fit.
    Source: 001, §2.3; 002, weight decay as a prior; 004, regularisation.

    >>> map_linear_regression([[1.0], [2.0]], [1.0, 2.0], noise=1.0, prior=1.0).round(4)
    array([0.8333])
    """
    if not (noise > 0 and prior > 0):
        raise ValueError(f"map_linear_regression() needs positive standard deviations, got {noise} and {prior}")
    return ridge_regression(X, y, penalty=(noise / prior) ** 2)


def _require_data(name, X, y):
    X, y = np.asarray(X, float), np.asarray(y, float)
    if X.ndim != 2 or y.shape != X.shape[:1]:
        raise ShapeError(f"{name}() needs data X (n, d) and y (n,), got {X.shape} and {y.shape} (see chapter 05)")
    return X, y
