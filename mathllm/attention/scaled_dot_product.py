"""The equation itself: compare queries with keys, turn scores into weights, average the values."""

import numpy as np

from ..autodiff import primitive
from ..errors import ShapeError, _require_fitting


def causal_mask(queries: int, keys: int | None = None) -> np.ndarray:
    """Who may see whom when nobody may look ahead: query i sees key j only if j ≤ i.

        mask_ij = (j ≤ i + S − T)                                                   (10.5)

    queries: T   keys: S, T if not given; with S > T the queries are the last T positions, as when keys are cached
    ->   (T, S) bool, True where attention is allowed

    Source: 001, §7.3; 004, trace step 5.

    >>> causal_mask(3).astype(int)
    array([[1, 0, 0],
           [1, 1, 0],
           [1, 1, 1]])
    """
    return _offsets(queries, keys) >= 0


def sliding_window_mask(queries: int, window: int, keys: int | None = None) -> np.ndarray:
    """A causal mask that reaches back over `window` positions only, the own one included.

        mask_ij = (0 ≤ i − j < w),   cost O(T·w) instead of O(T²)                   (10.6)

    ->   (T, S) bool   Raises: ValueError for a window below 1.
    Source: 001, §7.4.

    >>> sliding_window_mask(3, window=2).astype(int)
    array([[1, 0, 0],
           [1, 1, 0],
           [0, 1, 1]])
    """
    if window < 1:
        raise ValueError(f"sliding_window_mask() needs a window of at least 1, got {window}")
    back = _offsets(queries, keys)
    return (back >= 0) & (back < window)


def _offsets(queries, keys):
    """How far key j lies before query i, (T, S)."""
    keys = queries if keys is None else keys
    if not 1 <= queries <= keys:
        raise ShapeError(f"a causal mask needs a query or more, and no fewer keys, got {queries} and {keys}")
    return np.arange(queries)[:, None] + (keys - queries) - np.arange(keys)


def padding_mask(attention_mask) -> np.ndarray:
    """From one mark per token (1 token, 0 padding) to who may be seen: padding is seen by nobody.

    attention_mask: (B, S)   ->   (B, 1, 1, S) bool, for every head and every query

    Raises: ShapeError for other than two axes; ValueError for other marks than 0 and 1.

    >>> padding_mask([[1, 1, 0]]).shape
    (1, 1, 1, 3)
    """
    marks = np.asarray(attention_mask)
    if marks.ndim != 2:
        raise ShapeError(f"padding_mask() needs marks of shape (B, S), got {marks.shape}")
    if not np.all((marks == 0) | (marks == 1)):
        raise ValueError("padding_mask() needs marks that are 0 or 1")
    return marks.astype(bool)[:, None, None, :]


def additive_mask(mask, dtype=np.float64) -> np.ndarray:
    """The mask as the documents write it, to be added to the scores: 0 where allowed, −∞ where not.

    >>> additive_mask(causal_mask(2))
    array([[  0., -inf],
           [  0.,   0.]])
    """
    return np.where(mask, 0.0, -np.inf).astype(dtype)


@primitive(nondiff=("mask",))
def attention_weights(query, key, mask=None, bias=None, *, scale=None):
    """How much each query looks at each key: the softmax of their scaled dot products.

        A = softmax(S),   S = QKᵀ/√K + bias,   Aᵢⱼ = 0 where the mask forbids       (10.2)
        dS = A ∘ (dA − rowsum(dA ∘ A)),   dQ = dS·K/√K,   dK = dSᵀ·Q/√K,   dbias = dS (10.4)

    query: (..., T, K)   key: (..., S, K)   mask: (..., T, S) bool   bias: (..., T, S)   ->   A: (..., T, S)

    Rows sum to 1. A row whose mask forbids everything is all zeros: nothing to look at, and no NaN.
    Raises: ShapeError if query, key and mask do not fit.
    Source: 003, ch. X; 001, §7.1 and 7.3.

    >>> attention_weights([[1.0, 0.0]], [[1.0, 1.0], [0.0, 1.0], [1.0, 0.0]]).round(2)
    array([[0.4, 0.2, 0.4]])
    """
    scale = _checked_scale("attention_weights", query, key, mask, scale)
    weights = _softmax_rows(_scores(query, key, mask, bias, scale)).astype(query.dtype, copy=False)

    def pullback(dweights):
        dscores = weights * (dweights - np.sum(dweights * weights, axis=-1, keepdims=True))
        dproducts = dscores * scale  # of QKᵀ
        return dproducts @ key, dproducts.swapaxes(-1, -2) @ query, None, dscores

    return weights, pullback


@primitive(nondiff=("mask",))
def attention(query, key, value, mask=None, bias=None, *, scale=None):
    """Scaled dot-product attention: each query gets the average of the values, weighted by how well the keys fit.

        Attention(Q, K, V) = softmax(QKᵀ/√K) V = A V                                (10.1)
        dV = Aᵀ dY,   dA = dY Vᵀ,   then as for the weights                         (10.3)

    query: (..., T, K)   key: (..., S, K)   value: (..., S, D)   mask, bias: (..., T, S)   ->   (..., T, D)

    `mask` is True where attention is allowed; a row that allows nothing gives zeros. `scale` replaces 1/√K.
    Raises: ShapeError if the sizes do not fit.
    Source: 003, ch. X, example 10; Vaswani et al. 2017, eq. 1.

    >>> attention([[1.0, 0.0]], [[1.0, 1.0], [0.0, 1.0], [1.0, 0.0]], [[10, 0], [0, 10], [5, 5]]).round(1)
    array([[6., 4.]])
    """
    scale = _checked_scale("attention", query, key, mask, scale)
    _checked_values("attention", key, value)
    weights = _softmax_rows(_scores(query, key, mask, bias, scale)).astype(query.dtype, copy=False)

    def pullback(dy):
        dweights = dy @ value.swapaxes(-1, -2)
        dscores = weights * (dweights - np.sum(dweights * weights, axis=-1, keepdims=True))
        dproducts = dscores * scale  # of QKᵀ
        return dproducts @ key, dproducts.swapaxes(-1, -2) @ query, weights.swapaxes(-1, -2) @ dy, None, dscores

    return weights @ value, pullback


def _checked_scale(name, query, key, mask, scale):
    if query.ndim < 2 or key.ndim < 2 or query.shape[-1] != key.shape[-1] or 0 in key.shape[-2:]:
        raise ShapeError(
            f"{name}() needs queries (..., T, K) and at least one key (..., S, K) of one width, "
            f"got shapes {query.shape} and {key.shape} (see chapter 10)"
        )
    _require_fitting(f"{name}()", query.shape, key.shape, skipped=2)
    wanted = (query.shape[-2], key.shape[-2])
    if mask is not None and mask.dtype != bool:
        raise TypeError(f"{name}() needs a mask of booleans, True where attention is allowed, got {mask.dtype}")
    if mask is not None and any(n not in (1, m) for n, m in zip(mask.shape[-2:], wanted, strict=False)):
        raise ShapeError(f"{name}() needs a mask that ends in {wanted}, got shape {mask.shape}")
    return query.dtype.type(1 / np.sqrt(query.shape[-1]) if scale is None else scale)


def _checked_values(name, key, value):
    if value.ndim < 2 or value.shape[-2] != key.shape[-2]:
        raise ShapeError(f"{name}() needs a value for each of {key.shape[-2]} keys, got shape {value.shape}")
    _require_fitting(f"{name}()", key.shape, value.shape, skipped=2)


def _scores(query, key, mask, bias, scale):
    wide = np.promote_types(query.dtype, np.float32)  # products of float16 numbers overflow
    scores = (query * scale).astype(wide, copy=False) @ key.astype(wide, copy=False).swapaxes(-1, -2)  # (..., T, S)
    if bias is not None:
        scores = scores + bias.astype(scores.dtype)
    return scores if mask is None else np.where(mask, scores, -np.inf).astype(scores.dtype)


def _softmax_rows(scores):
    """Softmax along the last axis, with zeros for a row of −∞."""
    largest = scores.max(axis=-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isfinite(largest), largest, 0).astype(scores.dtype))
    total = weights.sum(axis=-1, keepdims=True)
    return weights / np.where(total > 0, total, 1)
