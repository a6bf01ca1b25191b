"""Give up the softmax, and the order of multiplication can change: cost grows with T instead of T²."""

import numpy as np

from ..autodiff import primitive
from .scaled_dot_product import _checked_scale, _checked_values, causal_mask


@primitive
def positive_features(x):
    """The feature map of linear attention, positive everywhere.

        φ(x) = x + 1 for x > 0,   eˣ otherwise;      φ′ = 1 or eˣ                   (10.10)

    Source: Katharopoulos et al. 2020, eq. 7.

    >>> positive_features([-1.0, 0.0, 2.0]).round(3)
    array([0.368, 1.   , 3.   ])
    """
    exponential = np.exp(np.minimum(x, 0))
    return np.where(x > 0, x + 1, exponential), lambda dy: dy * np.where(x > 0, 1, exponential).astype(x.dtype)


def linear_attention(query, key, value, causal: bool = False):
    """Attention with φ(q)·φ(k) in place of exp(q·k/√K): an approximation of another kind, not of the softmax itself.

        yᵢ = φ(qᵢ)ᵀ Σⱼ φ(kⱼ)vⱼᵀ / φ(qᵢ)ᵀ Σⱼ φ(kⱼ)      O(T·K·D) instead of O(T²·K) (10.11)

    query: (..., T, K)   key: (..., S, K)   value: (..., S, D)   ->   (..., T, D)

    The causal form sums over j ≤ i only; `linear_attention_recurrent` computes it token by token.
    Raises: ShapeError if the sizes do not fit.
    Source: 001, §7.4; Katharopoulos et al. 2020, eqs. 5 and 9.

    >>> linear_attention(np.zeros((1, 2)), np.zeros((2, 2)), np.array([[1.0], [3.0]]))
    array([[2.]])
    """
    _checked_scale("linear_attention", query, key, None, None)
    _checked_values("linear_attention", key, value)
    query, key = positive_features(query), positive_features(key)
    if causal:
        weights = query @ key.swapaxes(-1, -2) * causal_mask(query.shape[-2], key.shape[-2]).astype(query.dtype)
        return weights @ value / weights.sum(axis=-1, keepdims=True)
    normaliser = query @ key.sum(axis=-2, keepdims=True).swapaxes(-1, -2)  # (..., T, 1)
    return query @ (key.swapaxes(-1, -2) @ value) / normaliser


def linear_attention_recurrent(query, key, value) -> np.ndarray:
    """Causal linear attention as a recurrence: a state of fixed size takes in one token after the other.

        Z ← Z + φ(kₜ)vₜᵀ,   z ← z + φ(kₜ),   yₜ = φ(qₜ)ᵀZ / φ(qₜ)ᵀz

    query, key: (T, K)   value: (T, D)   ->   (T, D)

    Source: Katharopoulos et al. 2020, §3.4.

    >>> linear_attention_recurrent(np.zeros((2, 2)), np.zeros((2, 2)), np.array([[1.0], [3.0]]))
    array([[1.],
           [2.]])
    """
    query, key = positive_features(query), positive_features(key)
    state, normaliser = np.zeros((key.shape[-1], value.shape[-1]), value.dtype), np.zeros(key.shape[-1], key.dtype)
    outputs = []
    for q, k, v in zip(query, key, value, strict=True):
        state, normaliser = state + np.outer(k, v), normaliser + k
        outputs.append(q @ state / (q @ normaliser))
    return np.array(outputs)
