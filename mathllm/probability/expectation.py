"""What is to be expected, how far reality strays from it, and probabilities of numbers that are not on a list."""

from __future__ import annotations  # numpy.random is loaded when it is used

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..autodiff import primitive
from ..errors import ShapeError, _require_fitting
from ..exponentials import exp
from .distributions import distribution


@primitive
def expectation(values, p):
    """The mean of a random variable: each value counts as much as it is probable.

        E[X] = Σᵢ pᵢ xᵢ,      ∂/∂xᵢ = pᵢ,      ∂/∂pᵢ = xᵢ                           (5.6)

    values: x (..., n)   p: (..., n)   ->   (...)

    Raises: ValueError if p is no distribution; ShapeError if there are not as many values as probabilities.
    Source: 002, probability; 001, §2.2.1.

    >>> round(float(expectation([1, 2, 3, 4, 5, 6], [1 / 6] * 6)), 9)
    3.5
    """
    _require_same_outcomes("expectation", values, p)

    def pullback(dmean):
        dmean = dmean[..., None]
        return dmean * p, dmean * values

    return np.sum(values * p, axis=-1), pullback


@primitive
def variance(values, p):
    """How far a random variable strays from its mean, squared and averaged.

        Var[X] = E[(X − E[X])²] = E[X²] − E[X]²                                     (5.7)
        ∂/∂xᵢ = 2 pᵢ (xᵢ − E[X]),      ∂/∂pᵢ = (xᵢ − E[X])²

    values: x (..., n)   p: (..., n)   ->   (...)

    Computed in the first form: the second loses its digits when the mean is large. The shift of the mean itself adds
    nothing to the gradient, because Σ pᵢ (xᵢ − E[X]) = 0.
    Raises: ValueError if p is no distribution; ShapeError if there are not as many values as probabilities.
    Source: 002, probability.

    >>> round(float(variance([0, 1], [0.3, 0.7])), 9)
    0.21
    """
    _require_same_outcomes("variance", values, p)
    away = values - np.sum(values * p, axis=-1, keepdims=True)

    def pullback(dvariance):
        dvariance = dvariance[..., None]
        return dvariance * 2 * p * away, dvariance * away**2

    return np.sum(p * away**2, axis=-1), pullback


class Estimate(NamedTuple):
    """A mean found by drawing: the mean itself, how much single draws vary, and how far off the mean may be.

    >>> Estimate(mean=3.5, standard_deviation=1.7, standard_error=0.017).standard_error
    0.017
    """

    mean: np.ndarray
    standard_deviation: np.ndarray
    standard_error: np.ndarray


def monte_carlo(draw: Callable, rng: np.random.Generator, draws: int = 1000) -> Estimate:
    """Estimate an expectation by drawing again and again: the law of large numbers at work.

        E[X] ≈ (1/n) Σᵢ xᵢ,      off by about s/√n,      s² = Σᵢ (xᵢ − x̄)² / (n−1)    (5.8)

    draw: maps rng to one draw, a number or an array   draws: n ≥ 2   ->   Estimate, with the shape of one draw

    With a network whose neurons drop out at random as `draw`, the standard deviation says how sure it is of its
    answer: Monte Carlo dropout.
    Raises: ValueError for fewer than two draws: one draw says nothing about how draws vary.
    Source: 002, Bayes' theorem in LLMs; Gal and Ghahramani 2016.

    >>> rolls = monte_carlo(lambda rng: rng.integers(1, 7), np.random.default_rng(0), draws=10_000)
    >>> abs(float(rolls.mean) - 3.5) < 4 * float(rolls.standard_error)
    True
    """
    if draws < 2:
        raise ValueError(f"monte_carlo() needs at least 2 draws, got {draws}")
    drawn = np.array([draw(rng) for _ in range(draws)], float)
    deviation = drawn.std(axis=0, ddof=1)
    return Estimate(drawn.mean(axis=0), deviation, deviation / np.sqrt(draws))


@primitive
def normal_log_density(x, mean, standard_deviation):
    """The logarithm of the bell curve: a parabola.

        ln f(x) = −½ z² − ln σ − ½ ln 2π,      z = (x − μ)/σ                       (5.19)
        ∂/∂x = −z/σ,      ∂/∂μ = z/σ,      ∂/∂σ = (z² − 1)/σ

    x: (...)   mean: μ   standard_deviation: σ > 0, of shapes that broadcast   ->   their common shape

    Raises: ValueError for a standard deviation that is not positive.
    Source: 001, §2.1.

    >>> round(float(normal_log_density(0, 0, 1)), 6)
    -0.918939
    """
    if not np.all(standard_deviation > 0):
        wrong = standard_deviation[~(standard_deviation > 0)][0]
        raise ValueError(f"a normal distribution needs a positive standard deviation, got {wrong:g} (see chapter 05)")
    _require_fitting("normal_log_density()", x.shape, mean.shape, standard_deviation.shape)
    z = (x - mean) / standard_deviation
    constant = x.dtype.type(0.5 * np.log(2 * np.pi))

    def pullback(dy):
        slope = dy * z / standard_deviation
        return -slope, slope, dy * (z * z - 1) / standard_deviation

    return -z * z / 2 - np.log(standard_deviation) - constant, pullback


def normal_density(x, mean=0.0, standard_deviation=1.0):
    """The bell curve: how densely the probability lies at x.

        f(x) = exp(−½ ((x − μ)/σ)²) / (σ √(2π)),      ∫ f(x) dx = 1                (5.18)

    x: (...)   ->   (...). A density is no probability: it may be above 1. Only its area is one.
    Raises: ValueError for a standard deviation that is not positive.
    Source: 001, §2.1.

    >>> round(float(normal_density(0)), 4), round(float(normal_density(0, standard_deviation=0.1)), 4)
    (0.3989, 3.9894)
    """
    return exp(normal_log_density(x, mean, standard_deviation))


def integral(f: Callable, a: float, b: float, panels: int = 1000) -> float:
    """The area under a curve between a and b: a probability, if the curve is a density.

        P(a ≤ X ≤ b) = ∫ₐᵇ f(x) dx ≈ h/3 (f₀ + 4f₁ + 2f₂ + … + 4f₋₂ + f₋₁)          (5.20)

    f: takes an array of points   panels: an even number of strips, whose tops are parabolas (Simpson)   ->   one number

    Raises: ValueError for limits that are not finite, an odd or non-positive number of panels, or values that are not
    finite.
    Source: 001, §2.1.

    >>> round(integral(normal_density, -1, 1), 4), round(integral(normal_density, -10, 10), 9)
    (0.6827, 1.0)
    """
    if not (np.isfinite(a) and np.isfinite(b)):
        raise ValueError(f"integral() needs finite limits, got {a} and {b}; go so far out that nothing is left")
    if panels < 2 or panels % 2:
        raise ValueError(f"integral() needs an even number of panels, got {panels}")
    heights = np.asarray(f(np.linspace(a, b, panels + 1)), float)
    if heights.shape != (panels + 1,) or not np.all(np.isfinite(heights)):
        raise ValueError("integral() needs one finite value of f for each point")
    weights = np.ones(panels + 1)
    weights[1:-1:2], weights[2:-1:2] = 4, 2
    return float((b - a) / panels / 3 * weights @ heights)


def _require_same_outcomes(name, values, p):
    distribution(p)
    if values.ndim == 0 or values.shape[-1] != p.shape[-1]:
        raise ShapeError(f"{name}() needs one value for each of {p.shape[-1]} outcomes, got shape {values.shape}")
