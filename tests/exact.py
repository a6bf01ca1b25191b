"""The primitives of mathllm once more, in numbers with at least fifty digits: the reference for floats.

Each function is the formula that the book prints, without the rearrangements that keep digits in floating point:
numbers with this many digits do not need them. `value_and_gradients` evaluates a formula and differentiates it by
reverse mode, operation by operation, so its gradients do not depend on the pullbacks of mathllm.
"""

from collections.abc import Callable

import numpy as np
from mpmath import mp, mpf

DIGITS = 60
MANY_DIGITS = 400  # near the smallest float64, 10⁻³⁰⁸, more than fifty digits of 1 + x are left

TAPE: list["Exact"] = []


class Exact:
    """A number of many digits that remembers how it was computed: `Value` of chapter 11, made of mpmath's numbers.

    >>> value, (dx,) = value_and_gradients(lambda x: (x * x).sum(), [np.array([3.0])], np.ones(()))
    >>> float(value), float(dx[0])
    (9.0, 6.0)
    """

    __slots__ = ("gradient", "parents", "value")
    dtype = np.float64  # of the arguments of the formula that is being evaluated

    def __init__(self, value, parents=()):
        self.value, self.parents, self.gradient = value, parents, mpf(0)
        TAPE.append(self)

    def __add__(self, other):
        return Exact(self.value + number(other), links((self, 1), (other, 1)))

    def __sub__(self, other):
        return Exact(self.value - number(other), links((self, 1), (other, -1)))

    def __rsub__(self, other):
        return Exact(number(other) - self.value, links((self, -1)))

    def __mul__(self, other):
        return Exact(self.value * number(other), links((self, number(other)), (other, self.value)))

    def __truediv__(self, other):
        quotient = self.value / number(other)
        return Exact(quotient, links((self, 1 / number(other)), (other, -quotient / number(other))))

    def __rtruediv__(self, other):
        quotient = number(other) / self.value
        return Exact(quotient, links((self, -quotient / self.value)))

    def __neg__(self):
        return Exact(-self.value, ((self, -1),))

    __radd__, __rmul__ = __add__, __mul__


def number(x):
    return x.value if isinstance(x, Exact) else mpf(x)


def links(*pairs):
    return tuple((parent, slope) for parent, slope in pairs if isinstance(parent, Exact))


def elementwise(value: Callable, slope: Callable) -> Callable:
    """A function of arrays of exact numbers from a function of one and its derivative, slope(x, value)."""

    def apply(x):
        y = value(x.value)
        return Exact(y, ((x, slope(x.value, y)),))

    return np.frompyfunc(apply, 1, 1)


exp = elementwise(lambda x: mp.exp(x), lambda x, y: y)
log = elementwise(lambda x: mp.log(x), lambda x, y: 1 / x)
sqrt = elementwise(lambda x: mp.sqrt(x), lambda x, y: 1 / (2 * y))
tanh = elementwise(lambda x: mp.tanh(x), lambda x, y: 1 - y * y)
erf = elementwise(lambda x: mp.erf(x), lambda x, y: 2 / mp.sqrt(mp.pi) * mp.exp(-x * x))
relu = elementwise(lambda x: max(x, 0), lambda x, y: int(x > 0))


def value_and_gradients(formula: Callable, arguments: list, cotangent) -> tuple[np.ndarray, list]:
    """The value of a formula, and the gradient of its sum weighted by `cotangent`, in each floating-point argument."""
    TAPE.clear()
    Exact.dtype = next(a.dtype for a in arguments if a.dtype.kind == "f")
    inputs = [exactly(a) if a.dtype.kind == "f" else a for a in arguments]
    output = np.asarray(formula(*inputs))
    for node, weight in zip(output.ravel(), np.ravel(cotangent), strict=True):
        node.gradient += mpf(float(weight))
    for node in reversed(TAPE):
        for parent, slope in node.parents:
            parent.gradient += slope * node.gradient
    gradients = [numbers(x, "gradient") for x, a in zip(inputs, arguments, strict=True) if a.dtype.kind == "f"]
    return numbers(output, "value"), gradients


def exactly(array):
    """An array of exact numbers, equal to the floating-point numbers of `array`."""
    return np.frompyfunc(lambda x: Exact(mpf(float(x))), 1, 1)(np.asarray(array))


def constant(array):
    """Numbers that are no arguments, as they are after rounding to the dtype of the arguments."""
    return np.frompyfunc(lambda x: mpf(float(x)), 1, 1)(np.asarray(array, Exact.dtype))


def numbers(array, what):
    return np.frompyfunc(lambda x: getattr(x, what), 1, 1)(array)


def rows(x, axis=-1):
    return x.sum(axis=axis, keepdims=True)


# Formulas that are part of others, or are used at several places; digit_cases.py has the rest. The shapes of the
# arguments are those of the functions of the same names.


def norm(x):
    return sqrt(rows(x * x))[..., 0]


def dot(a, b):
    return (a * b).sum(axis=-1)


def sigmoid(x):
    return 1 / (1 + exp(-x))


def singular_values(W):
    """The derivative of a singular value σ with the directions u and v is the matrix u vᵀ."""
    found = np.empty((*W.shape[:-2], min(W.shape[-2:])), object)
    for place in np.ndindex(W.shape[:-2]):
        matrix = W[place]
        U, S, V = mp.svd_r(mp.matrix(numbers(matrix, "value").tolist()))
        for k in range(len(S)):
            slopes = [(matrix[i, j], U[i, k] * V[k, j]) for i, j in np.ndindex(matrix.shape)]
            found[*place, k] = Exact(S[k], tuple(slopes))
    return found


def log1m_exp(x):
    return log(1 - exp(x))


def softplus(x):
    return log(1 + exp(x))


def expectation(values, p):
    return (values * p).sum(axis=-1)


def variance(values, p):
    away = values - rows(values * p)
    return (p * away * away).sum(axis=-1)


def softmax(z):
    return exp(z) / rows(exp(z))


def log_softmax(z):
    return z - log(rows(exp(z)))


def entropy(p):
    return -(p * log(p)).sum(axis=-1)


def cross_entropy_between(p, q):
    return -(p * log(q)).sum(axis=-1)


def kl_divergence(p, q):
    return (p * log(p / q)).sum(axis=-1)


def mutual_information(joint):
    independent = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    return (joint * log(joint / independent)).sum()


def silu(x):
    return x * sigmoid(x)


ALL_ALLOWED = np.ones((1, 1), bool)


def attention_weights(query, key, mask=ALL_ALLOWED):
    weights = exp(query @ key.swapaxes(-1, -2) / mp.sqrt(query.shape[-1])) * mask.astype(object)
    return weights / rows(weights)


def attention(query, key, value, mask=ALL_ALLOWED):
    return attention_weights(query, key, mask) @ value


def rotate(x, angles):
    cosine, sine = (np.frompyfunc(turn, 1, 1)(angles) for turn in (mp.cos, mp.sin))
    first, second = np.split(x, 2, axis=-1)
    return np.concatenate([first * cosine - second * sine, first * sine + second * cosine], axis=-1)


def layer_norm(x, gain, bias, axis=-1):
    count, epsilon = x.shape[axis], mpf("1e-5")
    centred = x - rows(x, axis) / count
    return centred / sqrt(rows(centred * centred, axis) / count + epsilon) * gain + bias


def clipped_surrogate(ratio, advantage, epsilon="0.2"):
    low, high = 1 - mpf(epsilon), 1 + mpf(epsilon)
    clipped = low + relu(ratio - low) - relu(ratio - high)
    free, clipped = ratio * advantage, clipped * advantage
    return free - relu(free - clipped)


def power(x, n):
    return elementwise(lambda x: x**n, lambda x, y: n * x ** (n - 1))(x)


def mean(x):
    return x.sum() / x.size
