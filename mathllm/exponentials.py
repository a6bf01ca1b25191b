"""How do you multiply a thousand probabilities without arriving at zero?

By adding their logarithms. The exponential turns sums into products and the logarithm turns products into sums; between
them lies everything that keeps a language model's numbers inside the range a computer can hold. This chapter has the
two functions, the limits of that range, and the tools for working in logarithms without ever leaving them.
"""

from typing import NamedTuple

import numpy as np

from .autodiff import Array, WithPullback, primitive
from .errors import _require_fitting

__all__ = [
    "ExponentRange",
    "exp",
    "exponent_range",
    "log",
    "log1m_exp",
    "log_add_exp",
    "log_product",
    "log_sigmoid",
    "log_sum_exp",
    "sigmoid",
    "softplus",
]


class ExponentRange(NamedTuple):
    """The exponents that a dtype can take: below `lowest` eˣ becomes 0, above `highest` it overflows.

    >>> round(exponent_range(np.float32).highest, 1)
    88.7
    """

    lowest: float
    highest: float


def exponent_range(dtype=np.float64) -> ExponentRange:
    """Between which numbers can x lie for eˣ to be neither zero nor infinite?

        ln(½ · smallest number) < x < ln(largest number)                            (4.4)

    Source: 001, §2.1.1; 003, ch. VI.

    >>> [tuple(round(x, 1) for x in exponent_range(dtype)) for dtype in (np.float64, np.float32, np.float16)]
    [(-745.1, 709.8), (-104.0, 88.7), (-17.3, 11.1)]
    """
    limits = np.finfo(dtype)
    half_of_the_smallest = np.log2(float(limits.smallest_subnormal)) - 1  # below that it is rounded to zero
    return ExponentRange(float(half_of_the_smallest * np.log(2)), float(np.log(float(limits.max))))


@primitive
def exp(x):
    """The exponential function: sums become products, and every result is positive.

        eˣ,      e⁰ = 1,      e^(a+b) = eᵃ eᵇ,      d eˣ/dx = eˣ                     (4.1)

    x: any shape   ->   the same shape. Far below zero the result is rounded to 0.

    Raises: OverflowError where eˣ is larger than the dtype can hold: stay in logarithms there.
    Source: 003, ch. IV.

    >>> exp([0, 1, -1]).round(3)
    array([1.   , 2.718, 0.368])
    """
    with np.errstate(over="ignore", under="ignore"):
        y = np.exp(x)
    if np.any(np.isinf(y) & np.isfinite(x)):
        raise OverflowError(
            f"exp({x[np.isinf(y) & np.isfinite(x)].max():g}) is more than {x.dtype} can hold; its limit is "
            f"exp({exponent_range(x.dtype).highest:.4g}). Work with logarithms instead (see chapter 04)"
        )
    return y, lambda dy: dy * y


@primitive
def log(x, *, base: float | None = None):
    """The logarithm, which undoes the exponential: products become sums.

        ln x,      ln 1 = 0,      ln(ab) = ln a + ln b,      log_b x = ln x / ln b   (4.2)
        d log_b x/dx = 1 / (x ln b)

    x: any shape, positive   base: e unless given   ->   the same shape

    Raises: ValueError for zero and negative numbers, which have no logarithm, and for a base that is none.
    Source: 003, ch. IV.

    >>> log([1, 20.09]).round(2), float(log(8, base=2))
    (array([0., 3.]), 3.0)
    """
    if base is not None and not (base > 0 and base != 1):
        raise ValueError(f"log() needs a positive base other than 1, got {base}")
    if not np.all(x > 0):
        raise ValueError(f"log() needs positive numbers, got {np.asarray(x)[~(x > 0)][0]:g} (see chapter 04)")
    if base in (2, 10):
        y = np.log2(x) if base == 2 else np.log10(x)  # exact at the powers of the base
    else:
        y = np.log(x) if base is None else np.log(x) / x.dtype.type(np.log(base))
    scale = 1.0 if base is None else float(np.log(base))
    return y, lambda dy: dy / (x * x.dtype.type(scale))


@primitive
def log_product(p, *, axis: int | None = -1):
    """The logarithm of a product of probabilities, as a sum that cannot run out of digits.

        ln Πᵢ pᵢ = Σᵢ ln pᵢ,      ∂/∂pᵢ = 1/pᵢ                                       (4.3)

    p: (..., n), not negative   axis: the factors, None for all   ->   (...)

    A single zero makes the product zero and its logarithm −∞. The empty product is 1, with the logarithm 0.
    Raises: ValueError for a negative number or NaN.
    Source: 003, ch. IV, example 4, and ch. V, example 5.

    >>> round(float(log_product([0.8, 0.6, 0.9])), 3)
    -0.839
    >>> float(np.prod(np.full(1000, 0.1))), round(float(log_product(np.full(1000, 0.1))), 1)
    (0.0, -2302.6)
    """
    if not np.all(p >= 0):
        raise ValueError(f"log_product() needs numbers that are not negative, got {p[~(p >= 0)][0]:g} (see chapter 04)")
    with np.errstate(divide="ignore"):
        total = np.log(p).sum(axis=axis)

    def pullback(dtotal):
        dtotal = dtotal if axis is None else np.expand_dims(dtotal, axis)
        with np.errstate(divide="ignore", invalid="ignore"):
            return dtotal / p

    return total, pullback


@primitive
def log_sum_exp(x, *, axis: int | tuple[int, ...] | None = -1, keepdims: bool = False):
    """Add numbers that are given by their logarithms, and stay in logarithms: a maximum with soft edges.

        ln Σᵢ e^xᵢ = m + ln Σᵢ e^(xᵢ−m),      m = max xᵢ                             (4.5)
        ∂/∂xᵢ = e^(xᵢ−y): the share of xᵢ in the sum

    x: (..., n)   ->   (...)

    No exponent is above zero, so nothing overflows, and the largest term is 1, so the sum is not zero. −∞ stands for an
    empty summand; the sum of nothing is −∞.
    Source: 001, §2.1.1; 003, ch. VI.

    >>> round(float(log_sum_exp([1000, 1000])), 6), round(1000 + float(np.log(2)), 6)
    (1000.693147, 1000.693147)
    """
    largest = x.max(axis=axis, keepdims=True, initial=-np.inf)
    shift = np.where(np.isfinite(largest), largest, 0).astype(x.dtype)
    with np.errstate(under="ignore", divide="ignore"):
        terms = np.exp(x - shift)
        total = terms.sum(axis=axis, keepdims=True)
        y = np.log(total) + shift

    def pullback(dy):
        # terms / total and not e^(x−y): near y = 10⁴ a float16 has no digits left behind the point
        return dy.reshape(y.shape) * terms / np.where(total > 0, total, 1)

    return y if keepdims else y.squeeze(axis)[()], pullback


@primitive
def log_add_exp(a, b):
    """Add two numbers that are given by their logarithms.

        ln(eᵃ + eᵇ) = max(a, b) + ln(1 + e^−|a−b|)                                  (4.6)
        ∂/∂a = σ(a − b),      ∂/∂b = σ(b − a)

    a, b: shapes that broadcast   ->   their common shape

    Source: 003, ch. IV (log space).

    >>> round(float(exp(log_add_exp(np.log(0.2), np.log(0.3)))), 9)
    0.5
    """
    _require_fitting("log_add_exp()", a.shape, b.shape)
    with np.errstate(under="ignore"):
        y = np.logaddexp(a, b)
    def pullback(dy):
        both_empty = np.isneginf(y)
        with np.errstate(under="ignore", invalid="ignore"):
            share = np.where(both_empty, 0, sigmoid(np.where(both_empty, 0, a - b)))
            return dy * share, dy * np.where(both_empty, 0, 1 - share)

    return y, pullback


@primitive
def log1m_exp(x):
    """The logarithm of what is left to one: from ln p to ln(1 − p), precise at both ends.

        ln(1 − eˣ) = ln(−expm1(x)) near 0, else log1p(−eˣ),      d/dx = −1/expm1(−x)  (4.7)

    x: any shape, not above 0   ->   the same shape; x = 0 gives −∞

    Written down directly, 1 − eˣ is 0 for x = −1e-20 and 1 for x = −50: `expm1` and `log1p` keep the digits.
    Raises: ValueError for x > 0: no probability has a positive logarithm.
    Source: Mächler 2012, "Accurately computing log(1 − exp(−|a|))".

    >>> round(float(exp(log1m_exp(np.log(0.75)))), 9)
    0.25
    >>> round(float(log1m_exp(-1e-20)), 3)
    -46.052
    """
    if not np.all(x <= 0):
        raise ValueError(f"log1m_exp() needs logarithms of probabilities, at most 0, got {x[~(x <= 0)][0]:g}")
    near_zero = x > -np.log(2)
    with np.errstate(divide="ignore", under="ignore"):
        y = np.where(near_zero, np.log(-np.expm1(np.where(near_zero, x, -1))), np.log1p(-np.exp(x))).astype(x.dtype)

    def pullback(dy):
        with np.errstate(divide="ignore", over="ignore", under="ignore"):
            return -dy / np.expm1(0 - x)  # 0 − x, so that x = 0 gives −∞ and not +∞

    return y, pullback


@primitive
def softplus(x):
    """A ramp with a soft foot: nearly 0 far below zero, nearly x far above.

        ln(1 + eˣ) = max(x, 0) + log1p(e^−|x|),      d/dx = σ(x)                    (4.8)

    x: any shape   ->   the same shape

    Source: 001, §2.1.1 (overflow), applied to the logistic loss.

    >>> softplus([-1000, 0, 1000]).round(3)
    array([0.00e+00, 6.93e-01, 1.00e+03])
    """
    with np.errstate(under="ignore"):
        return np.logaddexp(x.dtype.type(0), x), lambda dy: dy * sigmoid(x)


@primitive
def log_sigmoid(x):
    """The logarithm of the sigmoid, where the sigmoid itself is already rounded to 0 or 1.

        ln σ(x) = −ln(1 + e⁻ˣ) = −softplus(−x),      d/dx = σ(−x)                   (4.9)

    x: any shape   ->   the same shape

    Source: 004, binary cross-entropy.

    >>> log_sigmoid([-1000, 0, 1000]).round(3) + 0.0
    array([-1.00e+03, -6.93e-01,  0.00e+00])
    """
    return -softplus(-x), lambda dy: dy * sigmoid(-x)


@primitive
def sigmoid(x: Array) -> WithPullback:
    """Squeeze a score into (0, 1): the probability of "yes".

        σ(x) = 1 / (1 + e⁻ˣ) = ½ (1 + tanh ½x),      dσ/dx = σ (1 − σ) ≤ ¼

    x: any shape   ->   the same shape. The second form never overflows.

    >>> sigmoid([0.0, 2.0, -1000.0]).round(3)
    array([0.5  , 0.881, 0.   ])
    """
    s = 0.5 * (1 + np.tanh(0.5 * x))
    return s, lambda dy: dy * s * (1 - s)
