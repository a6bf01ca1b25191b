"""The equation itself: compare queries with keys, turn scores into weights, average the values."""

from collections.abc import Callable

import numpy as np

from ..autodiff import Array, ArrayLike, WithPullback, primitive
from ..errors import ShapeError, all_within, within
from ..shapes import contract, real_array
from ..softmax import softmax_gradient, softmax_in_place


def causal_mask(queries: int, keys: int | None = None) -> np.ndarray:
    """The mask of a model that predicts the next token: query i may attend to key j only if j ≤ i.

        mask_ij = (j ≤ i + S − T)                                                   (10.6)

    queries: T   keys: S, T if not given; with S > T the queries are the last T positions, as when keys are cached
    ->   (T, S) bool, True where attention is allowed

    Raises: ShapeError for no query, or fewer keys than queries.
    Source: Vaswani et al. 2017, §3.2.3.

    >>> causal_mask(3).astype(int)
    array([[1, 0, 0],
           [1, 1, 0],
           [1, 1, 1]])
    """
    keys = queries if keys is None else keys
    if not 1 <= queries <= keys:
        raise ShapeError(f"a causal mask needs at least one query and as many keys, got {queries} and {keys}")
    return distances(queries, keys) >= 0


def sliding_window_mask(queries: int, window: int, keys: int | None = None) -> np.ndarray:
    """A causal mask in which each query attends only to the last `window` positions, its own included.

        mask_ij = (0 ≤ i − j < w)                                                   (14.14)

    window: w   ->   (T, S) bool

    At most T·w scores are allowed, but `attention` with this mask still computes all T².
    Raises: ValueError for a window below 1.
    Source: Beltagy et al. 2020; Jiang et al. 2023.

    >>> sliding_window_mask(3, window=2).astype(int)
    array([[1, 0, 0],
           [1, 1, 0],
           [0, 1, 1]])
    """
    within("sliding_window_mask", "whole [1, ∞)", window=window)
    return causal_mask(queries, keys) & (distances(queries, keys) < window)


def distances(queries: int, keys: int | None = None) -> np.ndarray:
    """By how many positions key j precedes query i, where the last query and the last key are the same token.

        i + S − T − j

    queries: T   keys: S, T if not given   ->   (T, S) int

    Raises: ValueError for numbers that are not whole.

    >>> distances(2, 3)
    array([[ 1,  0, -1],
           [ 2,  1,  0]])
    """
    keys = queries if keys is None else keys
    within("distances", "whole [0, ∞)", queries=queries, keys=keys)
    return np.arange(queries)[:, None] + (keys - queries) - np.arange(keys)


@contract("B S -> B 1 1 S")
def padding_mask(attention_mask: ArrayLike) -> np.ndarray:
    """The mask that keeps every query from attending to padding.

    attention_mask: 1 for a token, 0 for padding   ->   bool, for every head and every query

    Raises: ValueError for marks other than 0 and 1.

    >>> padding_mask([[1, 1, 0]]).shape
    (1, 1, 1, 3)
    """
    all_within("padding_mask", "{0, 1}", attention_mask=attention_mask)
    return attention_mask.astype(bool)[:, None, None, :]


def additive_mask(mask: ArrayLike, dtype: type = np.float64) -> np.ndarray:
    """The mask as a matrix to be added to the scores: 0 where attention is allowed, −∞ where not.

    >>> additive_mask(causal_mask(2))
    array([[  0., -inf],
           [  0.,   0.]])
    """
    return np.where(real_array("additive_mask", mask), 0.0, -np.inf).astype(dtype)


@primitive(nondiff=("mask",), shapes="... T K, ... S+ K+, ... T? S?, ... T? S? -> ... T S")
def attention_weights(
    query: Array, key: Array, mask: Array | None = None, bias: Array | None = None, *, scale: float | None = None
) -> WithPullback:
    """The attention weights: the softmax of the scaled dot products of queries and keys.

        A = softmax(S),   S = QKᵀ/√K + bias,   Aᵢⱼ = 0 where the mask forbids       (10.3)
        dS = A ⊙ (dA − rowsum(dA ⊙ A)),   dQ = dS·K/√K,   dK = dSᵀ·Q/√K,   dbias = dS (10.16)

    `mask` is True where attention is allowed; `scale` replaces 1/√K. Each row sums to 1; a row in which the mask
    forbids every key is all zeros.
    Raises: ShapeError if query, key, mask and bias do not fit; TypeError for a mask that is not boolean.
    Source: Vaswani et al. 2017, eq. 1.

    >>> attention_weights([[1.0, 0.0]], [[1.0, 1.0], [0.0, 1.0], [1.0, 0.0]]).round(2)
    array([[0.4, 0.2, 0.4]])
    """
    if mask is not None and mask.dtype != bool:
        raise TypeError(f"attention needs a mask of booleans, True where it is allowed, got {mask.dtype}")
    wide = np.promote_types(query.dtype, np.float32)
    scale = wide.type(1 / np.sqrt(query.shape[-1]) if scale is None else scale)
    scores = scaled_scores(query, key, scale, bias)
    if mask is not None:
        scores = np.where(mask, scores, scores.dtype.type(-np.inf))
    weights = softmax_in_place(scores).astype(query.dtype, copy=False)

    def pullback(dweights):
        dscores = softmax_gradient(weights, dweights)
        dproducts = dscores * scale  # of QKᵀ
        return dproducts @ key, dproducts.swapaxes(-1, -2) @ query, None, dscores

    return weights, pullback


@contract("... T K, ... S+ K, ... S D, _, _ -> ... T D")
def attention(
    query: ArrayLike, key: ArrayLike, value: ArrayLike, mask: ArrayLike | None = None, bias: ArrayLike | None = None, *,
    scale: float | None = None, tap: Callable | None = None,
) -> np.ndarray:  # fmt: skip
    """Scaled dot-product attention: each query receives the average of the values, weighted by its attention weights.

        Attention(Q, K, V) = softmax(QKᵀ/√K) V = A V                                (10.2)
        dV = Aᵀ dY,   dA = dY Vᵀ,   then as for the weights                         (10.15)

    `mask`, `bias` and `scale` are those of `attention_weights`; a query that may attend to no key receives zeros.
    `tap("weights", A)`, if given, returns the weights that are used.
    Raises: ShapeError if the sizes do not fit.
    Source: Vaswani et al. 2017, eq. 1.

    >>> attention([[1.0, 0.0]], [[1.0, 1.0], [0.0, 1.0], [1.0, 0.0]], [[10, 0], [0, 10], [5, 5]]).round(1)
    array([[6., 4.]])
    """
    weights = attention_weights(query, key, mask, bias, scale=scale)
    if tap is not None:
        weights = tap("weights", weights)
    return weights @ value


def scaled_scores(query: np.ndarray, key: np.ndarray, scale: float, bias: np.ndarray | None = None) -> np.ndarray:
    """The scores S = scale · QKᵀ + bias, at least in float32, because products of float16 numbers overflow.

    >>> scaled_scores(np.array([[2.0, 0.0]]), np.array([[3.0, 1.0]]), 0.5)
    array([[3.]])
    """
    wide = np.promote_types(query.dtype, np.float32)
    scores = (query.astype(wide, copy=False) * scale) @ key.astype(wide, copy=False).swapaxes(-1, -2)
    if bias is not None:
        scores = scores + bias.astype(wide, copy=False)
    return scores
