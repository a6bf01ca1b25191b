"""Expectation and variance, and densities of continuous random variables with their integrals."""

from collections.abc import Callable

import numpy as np

from ..autodiff import Array, ArrayLike, WithPullback, primitive
from ..errors import all_within, within
from ..exponentials import exp
from .distributions import distribution


@primitive(shapes="... n+, ... n -> ...")
def expectation(values: Array, p: Array) -> WithPullback:
    """The expectation of a random variable: the mean of its values, weighted by their probabilities.

        E[X] = Σᵢ pᵢ xᵢ,      ∂/∂xᵢ = pᵢ,      ∂/∂pᵢ = xᵢ                           (5.8)

    values: xᵢ

    Raises: ValueError if p is no distribution.

    >>> round(float(expectation([1, 2, 3, 4, 5, 6], [1 / 6] * 6)), 9)
    3.5
    """
    distribution(p)
    return np.sum(values * p, axis=-1), lambda dy: (dy[..., None] * p, dy[..., None] * values)


@primitive(shapes="... n+, ... n -> ...")
def variance(values: Array, p: Array) -> WithPullback:
    """The variance of a random variable: the expectation of its squared distance from its mean.

        Var[X] = E[(X − E[X])²] = E[X²] − E[X]²                                     (5.9)
        ∂/∂xᵢ = 2 pᵢ (xᵢ − E[X]),      ∂/∂pᵢ = (xᵢ − E[X])²

    values: xᵢ

    Computed in the first form: the second loses its digits when the mean is large. The derivative of the mean adds
    nothing to the gradient, because Σ pᵢ (xᵢ − E[X]) = 0.
    Raises: ValueError if p is no distribution.

    >>> round(float(variance([0, 1], [0.3, 0.7])), 9)
    0.21
    """
    distribution(p)
    wide = values.astype(np.promote_types(values.dtype, np.float32))  # squares may be more than the largest float16
    away = wide - np.sum(wide * p, axis=-1, keepdims=True)
    value = np.sum(p * away**2, axis=-1).astype(np.result_type(values, p))
    return value, lambda dy: (dy[..., None] * (2 * p * away), dy[..., None] * away**2)


@primitive(shapes="..., ..., ... -> ...")
def normal_log_density(x: Array, mean: Array, standard_deviation: Array) -> WithPullback:
    """The logarithm of the density of a normal distribution, a parabola in x.

        ln f(x) = −½ z² − ln s − ½ ln 2π,      z = (x − μ)/s                       (5.24)
        ∂/∂x = −z/s,      ∂/∂μ = z/s,      ∂/∂s = (z² − 1)/s

    mean: μ   standard_deviation: s > 0

    Raises: ValueError for a standard deviation that is not positive.

    >>> round(float(normal_log_density(0, 0, 1)), 6)
    -0.918939
    """
    all_within("normal_log_density", "(0, ∞)", standard_deviation=standard_deviation)
    z = (x - mean) / standard_deviation
    constant = x.dtype.type(0.5 * np.log(2 * np.pi))

    def pullback(dy):
        dmean = dy * z / standard_deviation
        return -dmean, dmean, dy * (z * z - 1) / standard_deviation

    return -z * z / 2 - np.log(standard_deviation) - constant, pullback


def normal_density(x: ArrayLike, mean: ArrayLike = 0.0, standard_deviation: ArrayLike = 1.0) -> np.ndarray:
    """The density of a normal distribution at x, the bell curve.

        f(x) = exp(−½ ((x − μ)/s)²) / (s √(2π)),      ∫ f(x) dx = 1                (5.24)

    x: (...)   ->   (...). A density is not a probability and may be above 1: only its integral is 1.
    Raises: ValueError for a standard deviation that is not positive.

    >>> round(float(normal_density(0)), 4), round(float(normal_density(0, standard_deviation=0.1)), 4)
    (0.3989, 3.9894)
    """
    return exp(normal_log_density(x, mean, standard_deviation))


def integral(function: Callable, a: float, b: float, panels: int = 1000) -> float:
    """The integral of a function from a to b by Simpson's rule; of a density, the probability of [a, b].

        P(a ≤ X ≤ b) = ∫ₐᵇ f(x) dx ≈ h/3 (f₀ + 4f₁ + 2f₂ + … + 4f₋₂ + f₋₁)          (5.23)

    function: f, takes an array of points   panels: an even number of intervals of width h   ->   one number

    In place of an infinite limit, choose one beyond which f is negligible.
    Raises: ValueError for limits that are not finite, an odd or non-positive number of panels, or values that are not
    finite.

    >>> round(integral(normal_density, -1, 1), 4), round(integral(normal_density, -10, 10), 9)
    (0.6827, 1.0)
    """
    within("integral", "(-∞, ∞)", a=a, b=b)
    if panels < 2 or panels % 2:
        raise ValueError(f"integral() needs an even number of panels, got {panels}")
    heights = np.asarray(function(np.linspace(a, b, panels + 1)), float)
    if heights.shape != (panels + 1,) or not np.all(np.isfinite(heights)):
        raise ValueError("integral() needs one finite value of f for each point")
    total = heights[0] + 4 * heights[1:-1:2].sum() + 2 * heights[2:-1:2].sum() + heights[-1]
    return float((b - a) / panels / 3 * total)
