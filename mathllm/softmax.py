"""How do scores become probabilities?

A network ends in logits: numbers of any size and sign. Softmax turns them into a distribution; only the differences
between them count, and a temperature stretches or shrinks those differences. This chapter adds softmax, its logarithm
and its Jacobian, and tanh. The sigmoid, softmax of two classes, is in chapter 02.
"""

import numpy as np

from .autodiff import primitive
from .errors import ShapeError
from .exponentials import log_sum_exp

__all__ = ["log_softmax", "softmax", "softmax_jacobian", "tanh"]


@primitive
def softmax(logits, *, axis=-1, temperature=1.0):
    """Turn logits into probabilities: exponentials, divided by their sum.

        pᵢ = exp(zᵢ/T) / Σⱼ exp(zⱼ/T)                                          (6.1, 6.5)
           = exp((zᵢ − max z)/T) / Σⱼ exp((zⱼ − max z)/T)                           (6.4)
        dz = p ⊙ (dp − Σⱼ pⱼ dpⱼ) / T                                               (6.7)

    logits: (..., n), or another `axis`   temperature: T > 0   ->   p: the same shape, sums of 1 along `axis`

    A common shift of all logits changes nothing, so the largest is taken to 0 and no exponential overflows. A logit of
    −∞ is a mask: its probability is exactly 0. As T → 0 the largest logit takes everything (argmax), as T → ∞ all get
    the same share; neither limit is a temperature.
    Raises: ValueError for a temperature that is not positive and finite, for NaN or +∞ among the logits, and where
    every logit is masked; ShapeError where there is no logit.
    Source: 003, ch. VI, example 6; 001, §2.1.1 and §10.2.1.

    >>> softmax([2.0, 1.0, 0.5]).round(3), softmax([2.0, 1.0, 0.5], temperature=2).round(3)
    (array([0.629, 0.231, 0.14 ]), array([0.481, 0.292, 0.227]))
    >>> softmax([1000.0, 1000.0, -np.inf])
    array([0.5, 0.5, 0. ])
    """
    p = _shifted("softmax", logits, axis, temperature)
    np.exp(p, out=p)
    p /= p.sum(axis=axis, keepdims=True)
    p = p.astype(logits.dtype, copy=False)

    def pullback(dp):
        return p * (dp - np.sum(p * dp, axis=axis, keepdims=True)) / float(temperature)

    return p, pullback


@primitive
def log_softmax(logits, *, axis=-1, temperature=1.0):
    """Logarithms of the softmax probabilities, without ever forming a probability that could vanish.

        ln pᵢ = zᵢ/T − ln Σⱼ exp(zⱼ/T)                                              (6.8)
        dz = (d ln p − p Σⱼ d ln pⱼ) / T                                            (6.9)

    logits: (..., n), or another `axis`   temperature: T > 0   ->   ln p: the same shape, −∞ for a masked logit

    Raises: as softmax().
    Source: 003, ch. VI and VII; the logarithm of (6.1).

    >>> log_softmax([0.0, -2000.0])
    array([    0., -2000.])
    """
    log_p = _shifted("log_softmax", logits, axis, temperature)
    log_p -= log_sum_exp(log_p, axis=axis, keepdims=True)
    with np.errstate(over="ignore"):  # below the smallest float16 stands −∞
        log_p = log_p.astype(logits.dtype, copy=False)

    def pullback(dlog_p):
        return (dlog_p - np.exp(log_p) * np.sum(dlog_p, axis=axis, keepdims=True)) / float(temperature)

    return log_p, pullback


def softmax_jacobian(logits, *, temperature: float = 1.0) -> np.ndarray:
    """How every probability changes with every logit.

        ∂pᵢ/∂zⱼ = pᵢ (δᵢⱼ − pⱼ) / T                                                 (6.6)

    logits: (..., n)   ->   J: (..., n, n), symmetric, with rows that sum to 0

    Raises: as softmax().
    Source: 002, derivative of the softmax.

    >>> softmax_jacobian([2.0, 1.0, 0.5]).round(4)
    array([[ 0.2335, -0.1453, -0.0881],
           [-0.1453,  0.1778, -0.0324],
           [-0.0881, -0.0324,  0.1206]])
    """
    p = softmax(logits, temperature=temperature)
    identity = np.eye(p.shape[-1], dtype=p.dtype)
    return p[..., :, None] * (identity - p[..., None, :]) / float(temperature)


@primitive
def tanh(x):
    """Squeeze a number into (−1, 1): the sigmoid, stretched to twice its height and moved down by one.

        tanh x = (eˣ − e⁻ˣ)/(eˣ + e⁻ˣ) = 2σ(2x) − 1,      tanh′ = 1 − tanh² ≤ 1    (6.12)

    x: any shape   ->   the same shape. Its steepest slope is 1, four times that of the sigmoid.
    Source: 001, §4.2.2, which prints the slope of the sigmoid for both (erratum B17).

    >>> tanh([0.0, 1.0, -1000.0]).round(4)
    array([ 0.    ,  0.7616, -1.    ])
    """
    y = np.tanh(x)
    return y, lambda dy: dy * (1 - y * y)


def _shifted(name, logits, axis, temperature):
    """A new array (z − max z)/T, at least in float32: 0 for the largest logit, so that no exponential overflows."""
    if not 0 < temperature < np.inf:
        limit = "; its limit at 0 is argmax, which is not a division" if temperature == 0 else ""
        raise ValueError(f"{name}() needs a positive, finite temperature, got {temperature}{limit} (see chapter 06)")
    if not -logits.ndim <= axis < logits.ndim:
        what = f"an axis {axis}" if logits.ndim else "a vector of logits"
        raise ShapeError(f"{name}() needs {what}, got an array of shape {logits.shape} (see chapter 06)")
    if logits.shape[axis] == 0:
        raise ShapeError(f"{name}() needs at least one logit along axis {axis}, got shape {logits.shape}")
    largest = logits.max(axis=axis, keepdims=True)  # NaN or ∞ if one of the logits is
    if not np.all(np.isfinite(largest)):
        raise ValueError(f"{name}() {_complaint(largest)} (see chapter 06)")
    precise = np.float64 if temperature != 1 else np.promote_types(logits.dtype, np.float32)
    with np.errstate(over="ignore"):  # a distance beyond the largest float is −∞, and its share 0
        shifted = np.subtract(logits, largest, dtype=precise)
        if temperature != 1:
            shifted /= temperature
    return shifted


def _complaint(largest):
    if np.any(np.isnan(largest)):
        return "needs numbers, got NaN among the logits"
    if np.any(largest == np.inf):
        return "needs finite logits (or −∞ for a mask), got +∞"
    return "needs one logit that is not −∞ in each row, got a row where all are masked"
