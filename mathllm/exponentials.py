"""How do you multiply a thousand probabilities without arriving at zero?

By adding their logarithms. The exponential turns sums into products and the logarithm turns products into sums. This
chapter has both functions, the range of exponents that a floating-point number can hold, and functions that compute
with logarithms throughout, so that no intermediate result leaves that range.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from .autodiff import Array, WithPullback, primitive
from .errors import all_within


class ExponentRange(NamedTuple):
    """The exponents that a dtype can take: below `lowest` eˣ is rounded to 0, above `highest` it overflows.

    >>> round(exponent_range(np.float32).highest, 1)
    88.7
    """

    lowest: float
    highest: float


def exponent_range(dtype: DTypeLike = np.float64) -> ExponentRange:
    """The range of exponents x for which eˣ is neither zero nor infinite.

        ln(½ · smallest number) < x < ln(largest number)                            (4.6)

    >>> [tuple(round(x, 1) for x in exponent_range(dtype)) for dtype in (np.float64, np.float32, np.float16)]
    [(-745.1, 709.8), (-104.0, 88.7), (-17.3, 11.1)]
    """
    limits = np.finfo(dtype)
    lowest_power_of_two = np.log2(np.longdouble(limits.smallest_subnormal)) - 1  # smaller numbers are rounded to zero
    return ExponentRange(float(lowest_power_of_two * np.log(2)), float(np.log(np.longdouble(limits.max))))


@primitive(shapes="... -> ...")
def exp(x: Array) -> WithPullback:
    """The exponential function: it turns sums into products, and every result is positive.

        eˣ,      e⁰ = 1,      e^(a+b) = eᵃ eᵇ,      d eˣ/dx = eˣ                     (4.1)

    Far below zero the result is rounded to 0.
    Raises: OverflowError where eˣ is larger than the dtype can hold: compute with logarithms instead.

    >>> exp([0, 1, -1]).round(3)
    array([1.   , 2.718, 0.368])
    """
    with np.errstate(over="ignore", under="ignore"):
        y = np.exp(x)
    overflowed = np.isinf(y) & np.isfinite(x)
    if np.any(overflowed):
        limit = f"more than {x.dtype} can hold; its limit is exp({exponent_range(x.dtype).highest:.4g})"
        raise OverflowError(f"exp({x[overflowed].max():g}) is {limit}: compute with logarithms (see chapter 04)")
    return y, lambda dy: dy * y


@primitive(shapes="... -> ...")
def log(x: Array, *, base: float | None = None) -> WithPullback:
    """The logarithm, the inverse of the exponential function: it turns products into sums.

        ln x,      ln 1 = 0,      ln(ab) = ln a + ln b,      log_b x = ln x / ln b   (4.3) (4.4)
        d log_b x/dx = 1 / (x ln b)

    x: positive   base: e unless given

    Raises: ValueError for zero and negative numbers, which have no logarithm, and for a base that is not positive or 1.

    >>> log([1, 20.09]).round(2), float(log(8, base=2))
    (array([0., 3.]), 3.0)
    """
    if base is not None and not (base > 0 and base != 1):
        raise ValueError(f"log() needs a positive base other than 1, got {base}")
    all_within("log", "(0, ∞]", x=x)
    scale = x.dtype.type(1 if base is None else np.log(base))
    exact = {2: np.log2, 10: np.log10}.get(base)  # exact at the powers of these bases
    y = exact(x) if exact else np.log(x) / scale
    return y, lambda dy: dy / (x * scale)


@primitive
def log_product(p: Array, *, axis: int | None = -1) -> WithPullback:
    """The logarithm of a product of probabilities, computed as a sum of logarithms, which does not underflow.

        ln Πᵢ pᵢ = Σᵢ ln pᵢ,      ∂/∂pᵢ = 1/pᵢ                                       (4.5)

    p: (..., n), not negative   axis: the factors, None for all   ->   (...)

    If one factor is zero, the product is zero and its logarithm −∞. The empty product is 1, with the logarithm 0.
    Raises: ValueError for a negative number or NaN.

    >>> round(float(log_product([0.8, 0.6, 0.9])), 3)
    -0.839
    >>> float(np.prod(np.full(1000, 0.1))), round(float(log_product(np.full(1000, 0.1))), 1)
    (0.0, -2302.6)
    """
    all_within("log_product", "[0, ∞]", p=p)
    wide = np.promote_types(p.dtype, np.float32)  # a float16 sum over many factors would stop growing
    with np.errstate(divide="ignore"):
        total = np.log(p).sum(axis=axis, dtype=wide).astype(p.dtype)

    def pullback(dtotal):
        dtotal = dtotal if axis is None else np.expand_dims(dtotal, axis)
        with np.errstate(divide="ignore", invalid="ignore"):
            return dtotal / p

    return total, pullback


def subtract_maximum(
    x: np.ndarray, *, axis: int | tuple[int, ...] | None = -1, dtype: DTypeLike = None, out: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Shift numbers so that the largest along an axis becomes 0: then the exponential of none of them overflows.

        zᵢ = xᵢ − m,      m = max xᵢ

    x: (..., n)   dtype: of z, by default that of x   out: where to write z; it may be x itself   ->   z, m (..., 1)

    If the maximum is infinite or NaN, nothing is subtracted, so that −∞ stays −∞. The largest of no numbers is −∞.
    In memory the n numbers of z are neighbours: only then does NumPy add them in pairs, which loses fewer digits.

    >>> z, m = subtract_maximum(np.array([1000.0, 999.0, -np.inf]))
    >>> z, m
    (array([  0.,  -1., -inf]), array([1000.]))
    """
    m = x.max(axis=axis, keepdims=True, initial=-np.inf)
    if out is None and isinstance(axis, int):
        out = np.moveaxis(np.empty_like(np.moveaxis(x, axis, -1), dtype, order="C"), -1, axis)
    with np.errstate(over="ignore"):  # a difference beyond the largest number is −∞, and its exponential 0
        return np.asarray(np.subtract(x, np.where(np.isfinite(m), m, 0), out=out, dtype=dtype)), m


@primitive
def log_sum_exp(x: Array, *, axis: int | tuple[int, ...] | None = -1, keepdims: bool = False) -> WithPullback:
    """The logarithm of a sum of numbers that are given by their logarithms: a smooth maximum.

        ln Σᵢ e^xᵢ = m + ln Σᵢ e^(xᵢ−m),      m = max xᵢ                             (4.7)
        ∂/∂xᵢ = e^(xᵢ−y): the fraction of the sum that comes from xᵢ

    x: (..., n)   axis: the summands, None for all   keepdims: whether they stay as axes of size 1   ->   (...)

    No exponent is above zero, so nothing overflows. The largest term is 1, so the sum is not zero. A number xᵢ = −∞
    stands for an empty summand; the sum of nothing is −∞.

    >>> round(float(log_sum_exp([1000, 1000])), 6), round(1000 + float(np.log(2)), 6)
    (1000.693147, 1000.693147)
    """
    wide = np.promote_types(x.dtype, np.float32)  # the sum of many terms may be more than the largest float16
    terms, m = subtract_maximum(x, axis=axis, dtype=wide)
    with np.errstate(under="ignore", divide="ignore", over="ignore"):
        np.exp(terms, out=terms)
        total = terms.sum(axis=axis, keepdims=True)
        y = (m + np.log(total)).astype(x.dtype)

    def pullback(dy):
        # terms / total and not e^(x−y): near y = 10⁴, y is rounded too coarsely in float16
        return dy.reshape(y.shape) * terms / np.where(total > 0, total, 1)

    return y if keepdims else y.squeeze(axis), pullback


@primitive(shapes="..., ... -> ...")
def log_add_exp(a: Array, b: Array) -> WithPullback:
    """The logarithm of the sum of two numbers that are given by their logarithms.

        ln(eᵃ + eᵇ) = max(a, b) + ln(1 + e^−|a−b|)                                  (4.9)
        ∂/∂a = σ(a − b),      ∂/∂b = σ(b − a)

    >>> round(float(exp(log_add_exp(np.log(0.2), np.log(0.3)))), 9)
    0.5
    """
    with np.errstate(under="ignore"):
        y = np.logaddexp(a, b)

    def pullback(dy):
        with np.errstate(under="ignore", invalid="ignore"):  # where both are −∞, a − b is NaN; the gradient is 0
            da, db = (dy * np.where(np.isneginf(y), 0, sigmoid(difference)) for difference in (a - b, b - a))
        return da, db

    return y, pullback


@primitive(shapes="... -> ...")
def log1m_exp(x: Array) -> WithPullback:
    """From ln p to ln(1 − p): the logarithm of the complementary probability, accurate for p near 0 and near 1.

        ln(1 − eˣ) = ln(−expm1(x)) near 0, else log1p(−eˣ),      d/dx = −1/expm1(−x)

    x: not above 0; x = 0 gives −∞

    Computed directly, 1 − eˣ is 0 for x = −1e-20 and 1 for x = −50: `expm1` and `log1p` keep the digits.
    Raises: ValueError for x > 0: no probability has a positive logarithm.
    Source: Mächler 2012, "Accurately computing log(1 − exp(−|a|))".

    >>> round(float(exp(log1m_exp(np.log(0.75)))), 9)
    0.25
    >>> round(float(log1m_exp(-1e-20)), 3)
    -46.052
    """
    all_within("log1m_exp", "[-∞, 0]", x=x)
    near_zero = x > -np.log(2)
    with np.errstate(divide="ignore", under="ignore"):
        y = np.where(near_zero, np.log(-np.expm1(np.where(near_zero, x, -1))), np.log1p(-np.exp(x)))

    def pullback(dy):
        with np.errstate(divide="ignore", over="ignore", under="ignore"):
            return -dy / np.expm1(0 - x)  # 0 − x, so that x = 0 gives −∞ and not +∞

    return y.astype(x.dtype), pullback


@primitive(shapes="... -> ...")
def softplus(x: Array) -> WithPullback:
    """A smooth version of max(x, 0): nearly 0 far below zero, nearly x far above.

        ln(1 + eˣ) = max(x, 0) + log1p(e^−|x|),      d/dx = σ(x)                    (4.10)

    >>> softplus([-1000, 0, 1000]).round(3)
    array([0.00e+00, 6.93e-01, 1.00e+03])
    """
    with np.errstate(under="ignore"):
        return np.logaddexp(x.dtype.type(0), x), lambda dy: dy * sigmoid(x)


@primitive(shapes="... -> ...")
def log_sigmoid(x: Array) -> WithPullback:
    """The logarithm of the sigmoid, accurate also where the sigmoid itself is rounded to 0 or 1.

        ln σ(x) = −ln(1 + e⁻ˣ) = −softplus(−x),      d/dx = σ(−x)                   (4.12)

    >>> log_sigmoid([-1000, 0, 1000]).round(3) + 0.0
    array([-1.00e+03, -6.93e-01,  0.00e+00])
    """
    return -softplus(-x), lambda dy: dy * sigmoid(-x)


@primitive
def sigmoid(x: Array) -> WithPullback:
    """Squeeze a score into (0, 1): the probability of "yes".

        σ(x) = 1 / (1 + e⁻ˣ),      dσ/dx = σ(x) (1 − σ(x)) = σ(x) σ(−x) ≤ ¼

    x: any shape   ->   the same shape

    Small probabilities keep their digits as long as e⁻ˣ does not overflow, and so does the derivative in its second
    form.

    >>> sigmoid([0.0, 2.0, -1000.0]).round(3)
    array([0.5  , 0.881, 0.   ])
    """
    with np.errstate(over="ignore"):  # far below 0, e⁻ˣ is ∞ and the quotient 0
        s = 1 / (1 + np.exp(-x))

    def pullback(dy):
        with np.errstate(over="ignore"):
            return dy * np.minimum(s / (1 + np.exp(x)), 0.25)

    return s, pullback
