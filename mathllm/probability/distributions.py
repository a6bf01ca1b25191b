"""Shares of one: lists of probabilities, where they come from, and how to draw from them."""

from __future__ import annotations  # numpy.random is loaded when it is used

import numpy as np

from ..errors import ShapeError
from ..matrices import is_row_stochastic
from ..vectors import token_ids


def is_distribution(p) -> bool:
    """Is this a probability distribution: nothing negative, and a sum of one?

        pᵢ ≥ 0,      Σᵢ pᵢ = 1                                                      (5.1)

    p: (..., n), a distribution along the last axis   ->   True if all of them are, up to rounding

    Source: 003, ch. V and exercise 11; 001, §2.1.

    >>> is_distribution([0.4, 0.35, 0.2, 0.05]), is_distribution([0.4, 0.35, 0.2, 0.1])
    (True, False)
    """
    return is_row_stochastic(np.atleast_2d(np.asarray(p)))


def distribution(p) -> np.ndarray:
    """The same numbers, once it is certain that they are a probability distribution.

    p: (..., n)   ->   (..., n)

    Raises: ValueError that says which of the two rules is broken; ShapeError where there is nothing to choose from.
    Source: 003, ch. V.

    >>> distribution([0.4, 0.35, 0.2, 0.1])
    Traceback (most recent call last):
    ValueError: a distribution sums to 1, this one to 1.05 (see chapter 05)
    """
    p = np.asarray(p)
    p = p if p.dtype.kind == "f" else p.astype(np.float64)
    if p.ndim == 0 or p.shape[-1] == 0:
        raise ShapeError(f"a distribution needs at least one outcome, got shape {p.shape} (see chapter 05)")
    if not np.all(p >= 0):
        raise ValueError(f"a distribution has no negative entries, got {p[~(p >= 0)][0]:g} (see chapter 05)")
    if p.size and not is_distribution(p):
        total = p.sum(axis=-1, dtype=np.float64).ravel()
        worst = total[np.argmax(np.abs(total - 1))]
        raise ValueError(f"a distribution sums to 1, this one to {worst:.6g} (see chapter 05)")
    return p


def conditional_probability(both, condition):
    """The probability of A once B is known: how much of B is also A.

        P(A | B) = P(A and B) / P(B)                                                (5.2)

    both, condition: probabilities or counts, of any shapes that broadcast   ->   their common shape

    Raises: ValueError if the condition never occurs, or "both" occurs more often than it.
    Source: 003, ch. V; 002, the chain rule of probability.

    >>> float(conditional_probability(3, 12))  # "the" occurs 12 times, "the cat" 3 times
    0.25
    """
    both, condition = np.asarray(both), np.asarray(condition)
    if not np.all(condition > 0):
        raise ValueError("conditional_probability() needs a condition that occurs; from P(B) = 0 nothing follows")
    if not np.all((both >= 0) & (both <= condition)):
        raise ValueError("conditional_probability() needs 0 ≤ P(A and B) ≤ P(B): both cannot occur more often than one")
    return both / condition


def bigram_counts(ids, size: int) -> np.ndarray:
    """How often token b comes right after token a.

    ids: (T,) int   size: V   ->   counts: (V, V), row a, column b

    Raises: ValueError for an id outside 0 … V−1; ShapeError if ids is not one sequence.
    Source: 002, n-gram models.

    >>> bigram_counts([0, 1, 0, 1, 1], 2)
    array([[0, 2],
           [1, 1]])
    """
    ids = _require_sequence("bigram_counts", ids, size)
    pairs = (ids[:-1] * size + ids[1:]).astype(np.intp, copy=False)
    return np.bincount(pairs, minlength=size * size).reshape(size, size)


def distribution_from_counts(counts, add: float = 0.0) -> np.ndarray:
    """The shares of the counts: the most likely distribution, or a more careful one.

        P(b) = (c_b + k) / (N + kV),      N = Σ_b c_b                               (5.4)

    counts: (..., V)   add: k ≥ 0, given to each outcome beforehand   ->   (..., V)

    Of a table of counts, each row a becomes the conditional distribution P(b | a). With k = 0 what was never seen is
    impossible; that is what maximum likelihood says. With k = 1 it is Laplace's rule.
    Raises: ValueError for negative counts or k, and for k = 0 in a row in which nothing was counted.
    Source: 002, maximum likelihood and n-gram models.

    >>> distribution_from_counts([[3, 1], [0, 5]])
    array([[0.75, 0.25],
           [0.  , 1.  ]])
    >>> distribution_from_counts([0, 0, 1], add=1)
    array([0.25, 0.25, 0.5 ])
    """
    counts = np.asarray(counts)
    counts = counts if counts.dtype.kind == "f" else counts.astype(np.float64)
    if counts.ndim == 0 or counts.shape[-1] == 0:
        raise ShapeError(f"distribution_from_counts() needs at least one outcome, got shape {counts.shape}")
    if not np.all(counts >= 0) or not add >= 0:
        raise ValueError("distribution_from_counts() needs counts and an `add` that are not negative")
    total = (counts + add).sum(axis=-1, keepdims=True)
    if not np.all(total > 0):
        raise ValueError("distribution_from_counts() found a row without a single count; with add > 0 it is uniform")
    return ((counts + add) / total).astype(counts.dtype)


def sample(p, rng: np.random.Generator, size: int | tuple[int, ...] | None = None) -> np.ndarray:
    """Draw outcomes: divide the unit interval in proportion to p, throw a dart, see whose part it hits.

        P(outcome = i) = pᵢ                                                         (5.5)

    p: (..., n), a distribution along the last axis   size: draws from each   ->   size + (...) int

    Raises: ValueError if p is no distribution.
    Source: 002, language modelling as probability.

    >>> sample([0.0, 1.0, 0.0], np.random.default_rng(0), size=3)
    array([1, 1, 1])
    """
    p = distribution(p)
    edges = _edges(p)
    shape = () if size is None else (size,) if np.ndim(size) == 0 else tuple(size)
    darts = rng.random(shape + p.shape[:-1])
    if p.ndim == 1:
        return np.searchsorted(edges, darts, side="right")
    return np.sum(edges <= darts[..., None], axis=-1)


def _edges(p):
    """Where the part of each outcome ends on the unit interval; the last ends at 1 exactly, above every dart."""
    edges = np.cumsum(p, axis=-1, dtype=np.float64)
    return edges / edges[..., -1:]


def _require_sequence(name, ids, size):
    ids = token_ids(name, ids, size) if np.size(ids) else np.empty(np.shape(ids), np.intp)
    if ids.ndim != 1:
        raise ShapeError(f"{name}() needs one sequence of ids, got shape {ids.shape}")
    return ids.astype(np.int64)
