"""The same attention without ever holding the T × S table: tile by tile, with a running maximum and a running sum."""

import numpy as np

from ..autodiff import Array, WithPullback, primitive
from ..errors import ShapeError, within
from .scaled_dot_product import scaled_scores


@primitive(shapes="... T K, ... S+ K+, ... S D -> ... T D")
def flash_attention(
    query: Array, key: Array, value: Array, *, causal: bool = False, block_size: int = 128
) -> WithPullback:
    """Scaled dot-product attention, exact, in memory that grows with T and not with T².

        for each block of keys:   m' = max(m, max S),   ℓ' = e^(m−m') ℓ + Σ e^(S−m'),
                                  O' = e^(m−m') O + e^(S−m') V;      at the end  O/ℓ  (14.15)

    The online softmax: a new maximum rescales the sums so far. The backward pass computes each tile of weights again
    from the stored maxima and sums of the rows, so no table is kept.

    Raises: ShapeError if the sizes do not fit, or for more queries than keys if causal; ValueError for a block below 1.
    Source: Dao et al. 2022, algorithm 1.

    >>> x = np.random.default_rng(0).normal(size=(5, 4))
    >>> from mathllm.attention import attention
    >>> np.allclose(flash_attention(x, x, x, block_size=2), attention(x, x, x))
    True
    """
    keys, queries = key.shape[-2], query.shape[-2]
    within("flash_attention", "whole [1, ∞)", block_size=block_size)
    if causal and queries > keys:
        raise ShapeError(f"flash_attention() needs as many keys as queries if causal, got {keys} and {queries}")
    tiles = list(_tiles(queries, keys, block_size, causal))
    lead = np.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    wide = np.promote_types(query.dtype, np.float32)  # sums of float16 numbers overflow
    scale = wide.type(1 / np.sqrt(query.shape[-1]))
    largest = np.full((*lead, queries, 1), -np.inf, wide)
    total = np.zeros_like(largest)
    output = np.zeros((*lead, queries, value.shape[-1]), wide)
    for rows, columns, allowed in tiles:
        scores = _tile_scores(query, key, rows, columns, allowed, scale)
        new = np.maximum(largest[..., rows, :], scores.max(axis=-1, keepdims=True))
        rescale, weights = np.exp(largest[..., rows, :] - new), np.exp(scores - new)
        total[..., rows, :] = rescale * total[..., rows, :] + weights.sum(axis=-1, keepdims=True)
        output[..., rows, :] = rescale * output[..., rows, :] + weights @ value[..., columns, :]
        largest[..., rows, :] = new
    output = (output / total).astype(query.dtype, copy=False)

    def pullback(dy):
        dquery, dkey, dvalue = (np.zeros((*lead, *x.shape[-2:]), x.dtype) for x in (query, key, value))
        shared = np.sum(dy * output, axis=-1, keepdims=True)  # rowsum(dA ⊙ A)
        for rows, columns, allowed in tiles:
            scores = _tile_scores(query, key, rows, columns, allowed, scale)
            weights = np.exp(scores - largest[..., rows, :]) / total[..., rows, :]
            dvalue[..., columns, :] += weights.swapaxes(-1, -2) @ dy[..., rows, :]
            dweights = dy[..., rows, :] @ value[..., columns, :].swapaxes(-1, -2)
            dscores = weights * (dweights - shared[..., rows, :]) * scale
            dquery[..., rows, :] += dscores @ key[..., columns, :]
            dkey[..., columns, :] += dscores.swapaxes(-1, -2) @ query[..., rows, :]
        return dquery, dkey, dvalue

    return output, pullback


def _tiles(queries, keys, size, causal):
    """Rows, columns and the part of the causal mask inside each tile; tiles in which all is forbidden are skipped."""
    for first_row in range(0, queries, size):
        rows = slice(first_row, min(first_row + size, queries))
        for first_column in range(0, keys, size):
            columns = slice(first_column, min(first_column + size, keys))
            positions = np.arange(rows.start, rows.stop)[:, None] + keys - queries  # of the queries, among the keys
            if causal and first_column > positions[-1]:
                break
            inside = not causal or columns.stop - 1 <= positions[0]
            yield rows, columns, None if inside else np.arange(columns.start, columns.stop) <= positions


def _tile_scores(query, key, rows, columns, allowed, scale):
    scores = scaled_scores(query[..., rows, :], key[..., columns, :], scale)
    return scores if allowed is None else np.where(allowed, scores, -np.inf).astype(scores.dtype)
