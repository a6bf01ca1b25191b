"""Causal attention without the half of the table that nobody may see, and with fewer passes over the other half."""

import functools

import numpy as np

from ..autodiff.memory import _empty

_BLOCK = 64  # queries at a time: their keys end where they do


def _causal_sums(query, key, value, sums, total):
    """The two sums whose quotient is `attention(query, key, value, causal_mask(T), scale=1)`; their pullback.

        for each block of queries:   E = exp(Q Kᵀ) over the keys up to its end,   sums = E V,   total = rowsum(E)
        dS = E ∘ (dsums Vᵀ + dtotal),   dQ = dS K,   dK = dSᵀ Q,   dV = Eᵀ dsums

    So the division comes after the average, where there is a vector for each query and no longer a row of the table.
    The largest score of a row is taken off before only where a total shows that one was large: it would change both
    sums alike.

    query, sums: (..., G, R, T, K), R query heads for each key head   key, value: (..., G, 1, T, K)
    total: (..., G, R, T, 1)   Writes into sums and total; pullback(dquery, dkey, dvalue, dsums, dtotal) into the first
    three.
    """
    blocks = []
    for rows, seen in _row_blocks(query.shape[-2]):
        weights = _empty((*query.shape[:-2], rows.stop - rows.start, seen.stop), query.dtype)
        total[..., rows, :] = _exponentials(query[..., rows, :], key[..., seen, :], weights)
        np.matmul(weights, value[..., seen, :], out=sums[..., rows, :])
        blocks.append((rows, seen, weights))

    def pullback(dquery, dkey, dvalue, dsums, dtotal):
        for rows, seen, weights in reversed(blocks):
            dscores = _empty(weights.shape, weights.dtype)
            np.matmul(dsums[..., rows, :], value[..., seen, :].swapaxes(-1, -2), out=dscores)
            dscores += dtotal[..., rows, :]
            dscores *= weights
            np.matmul(dscores, key[..., seen, :], out=dquery[..., rows, :])
            last = rows.stop == query.shape[-2]  # these queries see every key: what they add is the first to come
            _add_product(dkey[..., seen, :], dscores, query[..., rows, :], last)
            _add_product(dvalue[..., seen, :], weights, dsums[..., rows, :], last)

    return pullback


def _row_blocks(length):
    """Blocks of queries, and the keys they may see between them."""
    for start in range(0, length, _BLOCK):
        stop = min(start + _BLOCK, length)
        yield slice(start, stop), slice(0, stop)


def _exponentials(query, key, weights):
    """Writes exp(Q Kᵀ), 0 for keys behind the query, into `weights` and returns the sums of its rows."""
    _scores(query, key, weights)
    with np.errstate(over="ignore"):
        total = _row_sums(np.exp(weights, out=weights))
    if not (total.min() > 1e-15 and total.max() < 1e15):  # some score is large: again, less the largest of each row
        _scores(query, key, weights)
        weights -= weights.max(axis=-1, keepdims=True)
        total = _row_sums(np.exp(weights, out=weights))
    return total


def _scores(query, key, scores):
    np.matmul(query, key.swapaxes(-1, -2), out=scores)
    later = _later(query.shape[-2], query.dtype)
    scores[..., -len(later) :] += later


@functools.lru_cache(maxsize=4)
def _later(size, dtype):
    """−∞ for the keys that come after a query of their block, else 0."""
    return np.triu(np.full((size, size), -np.inf, dtype), 1)


def _row_sums(weights):
    """Sums along the last axis, as the product with a vector of ones: faster for many short rows."""
    rows = weights.reshape(-1, weights.shape[-1])
    return (rows @ np.ones(rows.shape[-1], rows.dtype)).reshape(*weights.shape[:-1], 1)


def _add_product(total, weights, vectors, first):
    """total += weightsᵀ vectors, summed over the query heads that share a key head; the first replaces the total."""
    weights = weights.swapaxes(-1, -2)
    if weights.shape[-3] == 1 and first:
        np.matmul(weights, vectors, out=total)
        return
    product = (weights @ vectors).sum(axis=-3, keepdims=True) if weights.shape[-3] > 1 else weights @ vectors
    if first:
        total[...] = product
    else:
        total += product
