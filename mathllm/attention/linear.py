"""Without the softmax the order of multiplication can change: the cost then grows with T instead of T²."""

import numpy as np

from ..autodiff import Array, ArrayLike, Tensor, WithPullback, primitive
from ..shapes import contract
from .scaled_dot_product import causal_mask


@primitive
def positive_features(x: Array) -> WithPullback:
    """The feature map of linear attention, positive everywhere.

        φ(x) = x + 1 for x > 0,   eˣ otherwise;      φ′ = 1 or eˣ                   (14.16)

    x: any shape   ->   the same shape
    Source: Katharopoulos et al. 2020, eq. 7.

    >>> positive_features([-1.0, 0.0, 2.0]).round(3)
    array([0.368, 1.   , 3.   ])
    """
    exponential = np.exp(np.minimum(x, 0))
    return np.where(x > 0, x + 1, exponential), lambda dy: dy * np.where(x > 0, 1, exponential).astype(x.dtype)


@contract("... T K, ... S+ K, ... S D -> ... T D")
def linear_attention(query: ArrayLike, key: ArrayLike, value: ArrayLike, causal: bool = False) -> np.ndarray:
    """Attention with φ(q)·φ(k) in place of exp(q·k/√K): another weighting, which does not approximate the softmax.

        yᵢ = φ(qᵢ)ᵀ Σⱼ φ(kⱼ)vⱼᵀ / φ(qᵢ)ᵀ Σⱼ φ(kⱼ)      O(T·K·D), not O(T²·(K+D))   (14.17)

    The causal form sums over j ≤ i only. It is computed here with a table of T × S numbers; token by token, the two
    sums are a state of fixed size.
    Raises: ShapeError if the sizes do not fit; ValueError where the divisor of a query underflows to 0 or is NaN.
    Source: Katharopoulos et al. 2020, eqs. 5 and 9.

    >>> linear_attention(np.zeros((1, 2)), np.zeros((2, 2)), np.array([[1.0], [3.0]]))
    array([[2.]])
    """
    query, key = _features(query, key)
    if causal:
        weights = query @ key.swapaxes(-1, -2) * causal_mask(query.shape[-2], key.shape[-2]).astype(query.dtype)
        return weights @ value / _positive(weights.sum(axis=-1, keepdims=True))
    normaliser = query @ key.sum(axis=-2, keepdims=True).swapaxes(-1, -2)  # (..., T, 1)
    return query @ (key.swapaxes(-1, -2) @ value) / _positive(normaliser)


def _features(query, key):
    """The features of queries and keys without common factors, which the quotient (14.17) cancels.

    Where all numbers are negative, φ(x − m) = e⁻ᵐ φ(x) with m their maximum: the largest feature becomes 1.
    """
    return positive_features(query - _shift(query, -1)), positive_features(key - _shift(key, (-2, -1)))


def _shift(x, axis):
    numbers = 1.0 * (x.value if isinstance(x, Tensor) else x)  # integers know no −∞
    return np.minimum(numbers.max(axis=axis, keepdims=True, initial=-np.inf), 0)  # a constant for the gradient


def _positive(normaliser):
    numbers = normaliser.value if isinstance(normaliser, Tensor) else normaliser
    if not np.all(numbers > 0):
        wanted = "features that add up to more than 0"
        raise ValueError(f"linear attention needs {wanted}, got {numbers.min():g} (of inputs too negative, or NaN)")
    return normaliser
