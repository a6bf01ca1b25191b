"""Discrete distributions: lists of probabilities, where they come from, and how to draw from them."""

from __future__ import annotations  # numpy.random is loaded when it is used

import numpy as np
from numpy.typing import DTypeLike

from ..autodiff import ArrayLike
from ..errors import ShapeError, all_within, within
from ..matrices import is_row_stochastic
from ..shapes import contract, floating
from ..vectors import token_ids


@contract("... n")
def is_distribution(p: ArrayLike) -> bool:
    """Whether numbers are a probability distribution: none is negative, and their sum is one.

        pᵢ ≥ 0,      Σᵢ pᵢ = 1                                                      (5.1)

    Along the last axis, all must be distributions, up to rounding in the dtype of p.

    >>> is_distribution([0.4, 0.35, 0.2, 0.05]), is_distribution([0.4, 0.35, 0.2, 0.1])
    (True, False)
    """
    return is_row_stochastic(np.atleast_2d(p))


@contract("... n+ -> ... n")
def distribution(p: ArrayLike, *, dtype: DTypeLike = None) -> np.ndarray:
    """The same numbers, after a check that they are a probability distribution.

    dtype: of the result, by default that of p

    The sum may differ from 1 by what rounding in the dtype of p explains. A result in another dtype is divided by its
    sum, because it would not be a distribution up to rounding in the new dtype.
    Raises: ValueError that says which of the two rules is broken.

    >>> distribution([0.4, 0.35, 0.2, 0.1])
    Traceback (most recent call last):
    ValueError: a distribution sums to 1, this one to 1.05 (see chapter 05)
    """
    p = floating(p)
    if not np.all(p >= 0):
        raise ValueError(f"a distribution has no negative entries, got {p[~(p >= 0)][0]:g} (see chapter 05)")
    if not is_distribution(p):
        total = p.sum(axis=-1, dtype=np.float64).ravel()
        worst = total[np.argmax(np.abs(total - 1))]
        raise ValueError(f"a distribution sums to 1, this one to {worst:.6g} (see chapter 05)")
    if dtype is None or p.dtype == dtype:
        return p
    p = p.astype(dtype)
    return p / p.sum(axis=-1, keepdims=True)


@contract("..., ... -> ...")
def conditional_probability(both: ArrayLike, condition: ArrayLike) -> np.ndarray:
    """The conditional probability of A given B, from probabilities or counts.

        P(A | B) = P(A and B) / P(B)                                                (5.2)

    both: P(A and B)   condition: P(B)

    Raises: ValueError if the condition never occurs, because P(B) = 0 implies nothing about A, or if "both" occurs more
    often than it.

    >>> float(conditional_probability(3, 12))  # "the" occurs 12 times, "the cat" 3 times
    0.25
    """
    all_within("conditional_probability", "(0, ∞)", condition=condition)
    p = both / condition
    if not np.all((p >= 0) & (p <= 1 + 4 * np.finfo(p.dtype).eps)):  # P(A and B) and P(B) may be rounded sums
        raise ValueError("conditional_probability() needs 0 ≤ P(A and B) ≤ P(B): both cannot occur more often than one")
    return np.minimum(p, 1)


def bigram_counts(ids: ArrayLike, size: int) -> np.ndarray:
    """How often token b comes right after token a.

    ids: (T,) int   size: V   ->   counts: (V, V), row a, column b

    Raises: ValueError for an id outside 0 … V−1; ShapeError if ids is not one sequence.

    >>> bigram_counts([0, 1, 0, 1, 1], 2)
    array([[0, 2],
           [1, 1]])
    """
    ids = token_sequence("bigram_counts", ids, size)
    pairs = (ids[:-1] * size + ids[1:]).astype(np.intp, copy=False)
    return np.bincount(pairs, minlength=size * size).reshape(size, size)


def token_sequence(function: str, ids: ArrayLike, size: int = 2**63) -> np.ndarray:
    """One sequence of ids as int64, or an error in the name of `function`.

    ids: (T,) int, in 0 … size − 1   ->   (T,)

    Raises: ValueError for an id outside 0 … size − 1; TypeError for ids that are not integers; ShapeError if ids is not
    one sequence.

    >>> token_sequence("bigram_counts", [0, 2, 1], 3)
    array([0, 2, 1])
    """
    ids = token_ids(function, ids, size)
    if ids.ndim != 1:
        raise ShapeError(f"{function}() needs one sequence of ids, got shape {ids.shape}")
    return ids.astype(np.int64)


@contract("... V+ -> ... V")
def distribution_from_counts(counts: ArrayLike, add: float = 0.0) -> np.ndarray:
    """The relative frequencies of counts, with `add` pseudo-counts for each outcome.

        q(b) = (c_b + k) / (N + kV),      N = Σ_b c_b                       (5.6) (5.17)

    add: k ≥ 0

    In a table of counts, each row a becomes the conditional distribution q(b | a). With k = 0 the result maximises the
    likelihood, and what was never counted has probability 0. With k = 1 this is Laplace smoothing.
    Raises: ValueError for negative counts or k, and for k = 0 in a row in which nothing was counted.

    >>> distribution_from_counts([[3, 1], [0, 5]])
    array([[0.75, 0.25],
           [0.  , 1.  ]])
    >>> distribution_from_counts([0, 0, 1], add=1)
    array([0.25, 0.25, 0.5 ])
    """
    within("distribution_from_counts", "[0, ∞)", add=add)
    all_within("distribution_from_counts", "[0, ∞)", counts=counts)
    raised = counts.astype(np.float64) + add
    total = raised.sum(axis=-1, keepdims=True)
    if not np.all(total > 0):
        raise ValueError("distribution_from_counts() found a row without a single count; with add > 0 it is uniform")
    return (raised / total).astype(floating(counts).dtype)


def sample(p: ArrayLike, rng: np.random.Generator | int, size: int | tuple[int, ...] | None = None) -> np.ndarray:
    """Draw outcomes by inverse-CDF sampling: divide [0, 1) in proportion to p, and see which part a point hits.

        P(outcome = i) = pᵢ                                                         (5.7)

    p: (..., n), a distribution along the last axis   size: draws from each   ->   size + (...) int

    Raises: ValueError if p is no distribution.

    >>> sample([0.0, 1.0, 0.0], np.random.default_rng(0), size=3)
    array([1, 1, 1])
    """
    p = distribution(p)
    shape = () if size is None else np.atleast_1d(size)
    points = np.random.default_rng(rng).random((*shape, *p.shape[:-1]))
    edges = _edges(p)
    if p.ndim == 1:
        return np.searchsorted(edges, points, side="right")
    return np.count_nonzero(edges <= points[..., None], axis=-1)


def _edges(p):
    """Where the part of each outcome ends; the last part ends at exactly 1, above every point."""
    edges = p.astype(np.float64)
    edges.cumsum(axis=-1, out=edges)
    return np.divide(edges, edges[..., -1:].copy(), out=edges)
