"""How do scores become probabilities?

A network ends in logits: numbers of any size and sign. Softmax turns them into a distribution. It depends only on the
differences between the logits, and a temperature stretches or shrinks these differences. This module has softmax, its
logarithm and its Jacobian (chapter 8), and tanh. The sigmoid is the softmax of two classes.
"""

import numpy as np

from .autodiff import Array, ArrayLike, WithPullback, primitive
from .errors import ShapeError
from .exponentials import log_sum_exp, subtract_maximum


@primitive
def softmax(logits: Array, *, axis: int = -1, temperature: float = 1.0) -> WithPullback:
    """Turn logits into probabilities: exponentials, divided by their sum.

        qᵢ = exp(zᵢ/τ) / Σⱼ exp(zⱼ/τ)                                          (6.1) (6.5)
           = exp((zᵢ − max z)/τ) / Σⱼ exp((zⱼ − max z)/τ)                           (6.4)
        dz = q ⊙ (dq − Σⱼ qⱼ dqⱼ) / τ

    logits: (..., n), or another `axis`   temperature: τ > 0   ->   q: the same shape, sums of 1 along `axis`

    Adding a constant to all logits changes nothing, so the largest logit is subtracted and no exponential overflows.
    A logit of −∞ is masked: its probability is exactly 0. As τ → 0, the probability of the largest logit approaches 1
    (argmax); as τ → ∞, all probabilities become equal. The values 0 and ∞ themselves are refused.
    Raises: ValueError for a temperature that is not positive and finite, for NaN or +∞ among the logits, and where
    every logit is masked; ShapeError where there is no logit.

    >>> softmax([2.0, 1.0, 0.5]).round(3), softmax([2.0, 1.0, 0.5], temperature=2).round(3)
    (array([0.629, 0.231, 0.14 ]), array([0.481, 0.292, 0.227]))
    >>> softmax([1000.0, 1000.0, -np.inf])
    array([0.5, 0.5, 0. ])
    """
    q = shifted_logits("softmax", logits, axis=axis, temperature=temperature)  # (z − max z)/τ
    np.exp(q, out=q)
    q /= q.sum(axis=axis, keepdims=True)
    q = q.astype(logits.dtype, copy=False)
    return q, lambda dq: softmax_gradient(q, dq, axis=axis) / temperature


@primitive
def log_softmax(logits: Array, *, axis: int = -1, temperature: float = 1.0) -> WithPullback:
    """Logarithms of the softmax probabilities, computed without a probability that could be rounded to 0.

        ln qᵢ = zᵢ/τ − ln Σⱼ exp(zⱼ/τ)                                              (6.6)
        dz = (d ln q − q Σⱼ d ln qⱼ) / τ

    logits: (..., n), or another `axis`   temperature: τ > 0   ->   ln q: the same shape, −∞ for a masked logit

    Raises: as softmax().

    >>> log_softmax([0.0, -2000.0])
    array([    0., -2000.])
    """
    log_p = shifted_logits("log_softmax", logits, axis=axis, temperature=temperature)
    log_p -= log_sum_exp(log_p, axis=axis, keepdims=True)
    with np.errstate(over="ignore"):  # what is below the smallest float16 becomes −∞
        log_p = log_p.astype(logits.dtype, copy=False)

    def pullback(dlog_p):
        return (dlog_p - np.exp(log_p) * np.sum(dlog_p, axis=axis, keepdims=True)) / temperature

    return log_p, pullback


def softmax_jacobian(logits: ArrayLike, *, temperature: float = 1.0) -> np.ndarray:
    """The Jacobian of softmax: how every probability changes with every logit.

        ∂qᵢ/∂zⱼ = qᵢ (δᵢⱼ − qⱼ) / τ

    logits: (..., n)   temperature: τ > 0   ->   J: (..., n, n), symmetric, with rows that sum to 0

    Raises: as softmax().

    >>> softmax_jacobian([2.0, 1.0, 0.5]).round(4)
    array([[ 0.2335, -0.1453, -0.0881],
           [-0.1453,  0.1778, -0.0324],
           [-0.0881, -0.0324,  0.1206]])
    """
    q = softmax(logits, temperature=temperature)
    identity = np.eye(q.shape[-1], dtype=q.dtype)
    return q[..., :, None] * (identity - q[..., None, :]) / float(temperature)


@primitive(shapes="... -> ...")
def tanh(x: Array) -> WithPullback:
    """The hyperbolic tangent maps a number into (−1, 1): the sigmoid of 2x, scaled to twice its height and shifted.

        tanh x = (eˣ − e⁻ˣ)/(eˣ + e⁻ˣ) = 2σ(2x) − 1,      tanh′ = 1 − tanh² ≤ 1     (6.8)

    Its largest derivative is 1, four times that of the sigmoid.

    >>> tanh([0.0, 1.0, -1000.0]).round(4)
    array([ 0.    ,  0.7616, -1.    ])
    """

    def pullback(dy):
        small = np.exp(-2 * np.abs(x))
        return dy * 4 * small / ((1 + small) * (1 + small))  # 1 − tanh²: the subtraction would lose digits

    return np.tanh(x), pullback


# The steps of softmax, for functions that need them on their own


def shifted_logits(name: str, logits: np.ndarray, *, axis: int = -1, temperature: float = 1.0) -> np.ndarray:
    """A new array of checked logits, shifted so that the largest is 0, and divided by the temperature.

        (z − max z)/τ

    name: of the function, for its messages   logits: floating-point   ->   the same shape, at least in float32

    Raises: as softmax().

    >>> shifted_logits("softmax", np.array([1001.0, 1000.0]))
    array([ 0., -1.])
    """
    if np.ndim(temperature) or not 0 < temperature < np.inf:
        wanted = "a positive, finite temperature (for the limit 0, use argmax)"
        raise ValueError(f"{name}() needs {wanted}, got {temperature} (see chapter 06)")
    if not -logits.ndim <= axis < logits.ndim or logits.shape[axis] == 0:
        raise ShapeError(f"{name}() needs at least one logit along axis {axis}, got shape {logits.shape}")
    wide = np.float64 if temperature != 1 else np.promote_types(logits.dtype, np.float32)
    shifted, largest = subtract_maximum(logits, axis=axis, dtype=wide)
    if not np.all(np.isfinite(largest)):  # NaN or ∞ if one of the logits is; −∞ if all of them are
        wrong = largest[~np.isfinite(largest)][0]
        found = {np.inf: "+∞", -np.inf: "a row where all are masked"}.get(wrong, "NaN among the logits")
        raise ValueError(f"{name}() needs finite logits (or −∞ for a mask), got {found} (see chapter 06)")
    if temperature != 1:
        with np.errstate(over="ignore"):  # a quotient beyond the largest number is −∞, and its probability 0
            shifted /= temperature
    return shifted


def softmax_in_place(scores: np.ndarray, *, axis: int = -1) -> np.ndarray:
    """Softmax that overwrites its argument and gives zeros for a row in which every score is −∞.

    scores: (..., n), floating-point   ->   the same array

    Attention uses it: of a query that may attend to no key, all weights are 0. The scores are not checked; a row with
    NaN becomes NaN, and so does each score of +∞.

    >>> scores = np.array([[1000.0, 1000.0], [-np.inf, -np.inf]])
    >>> softmax_in_place(scores) is scores, scores
    (True, array([[0.5, 0.5],
           [0. , 0. ]]))
    """
    subtract_maximum(scores, axis=axis, out=scores)
    np.exp(scores, out=scores)
    total = scores.sum(axis=axis, keepdims=True, dtype=np.promote_types(scores.dtype, np.float32))
    total[total == 0] = 1  # of a row of −∞
    scores /= total
    return scores


def softmax_gradient(q: np.ndarray, dq: np.ndarray, *, axis: int = -1) -> np.ndarray:
    """The pullback of softmax: from the gradient of the probabilities to the gradient of the logits.

        dz = q ⊙ (dq − Σⱼ qⱼ dqⱼ)

    q, dq: one shape   ->   dz: the same shape

    >>> softmax_gradient(np.array([0.5, 0.5]), np.array([1.0, 0.0]))
    array([ 0.25, -0.25])
    """
    dz = dq - np.expand_dims(np.vecdot(q, dq, axis=axis), axis)
    dz *= q
    return dz
