"""Markov sources: random text for which the lowest expected loss, the entropy rate, is known.

A Markov source of order k draws each symbol from a table with one distribution for every k preceding symbols. No model
can have a lower expected loss on new text of it than its entropy rate, so a model can be compared with the optimum.
"""

from __future__ import annotations  # numpy.random is loaded when it is used

import numpy as np

from ..autodiff import ArrayLike
from ..cross_entropy import entropy
from ..errors import ShapeError, within
from ..matrices import stationary_distribution
from ..probability import distribution, sample_markov_chain


def markov_source(
    vocabulary: int, order: int, rng: np.random.Generator | int, *, concentration: float = 0.3
) -> np.ndarray:
    """A random Markov source: for every context of k symbols a distribution of the next symbol.

        p(· | x₁ … x_k) ~ Dirichlet(α, …, α)                                        (13.14)

    vocabulary: V   order: k ≥ 0   concentration: α; the smaller, the lower the entropy of the distributions
    ->   (V, …, V) with k + 1 axes, a distribution along the last one

    Raises: ValueError for a vocabulary below 1, a negative order or an α that is not positive.

    >>> markov_source(4, 2, np.random.default_rng(0)).shape
    (4, 4, 4)
    """
    within("markov_source", "whole [1, ∞)", vocabulary=vocabulary)
    within("markov_source", "whole [0, ∞)", order=order)
    within("markov_source", "(0, ∞)", concentration=concentration)
    return np.random.default_rng(rng).dirichlet(np.full(vocabulary, concentration), size=(vocabulary,) * order)


def sample_source(source: ArrayLike, length: int, rng: np.random.Generator | int) -> np.ndarray:
    """Text of a Markov source whose first context is drawn from the stationary distribution.

    source: (V, …, V), as from markov_source()   length: n ≥ 0   ->   symbols: (n,) int

    Raises: as entropy_rate(); ValueError for a negative length.

    >>> alternating = np.array([[0.0, 1.0], [1.0, 0.0]])
    >>> sample_source(alternating, 5, np.random.default_rng(0))
    array([0, 1, 0, 1, 0])
    """
    _, chain, frequencies = _chain("sample_source", source)
    rng = np.random.default_rng(rng)
    start = int(rng.choice(len(frequencies), p=frequencies))
    return sample_markov_chain(chain, length, rng, start) % np.shape(source)[-1]


def entropy_rate(source: ArrayLike) -> float:
    """The entropy of the next symbol given its context, averaged over the contexts: the lowest expected loss.

        H = Σ_c π(c) H(p(· | c)),      π: how often the context c occurs            (13.15)

    source: (V, …, V) with k + 1 axes, a distribution along the last one   ->   nats per symbol

    The contexts are the states of a Markov chain: x₁ … x_k is followed by x₂ … x_{k+1}. π is its stationary
    distribution.
    Raises: ShapeError for axes of different lengths; ValueError if a row is no distribution, or if π is not unique.
    Source: Shannon 1948, §7; Cover & Thomas 2006, theorem 4.2.4.

    >>> round(entropy_rate([[0.5, 0.5], [0.5, 0.5]]), 4), entropy_rate([[0.0, 1.0], [1.0, 0.0]])
    (0.6931, 0.0)
    """
    rows, _, frequencies = _chain("entropy_rate", source)
    return float(frequencies @ entropy(rows))


def _chain(function, source):
    """The table by context, (V^k, V), the chain of contexts, (V^k, V^k), and how often each occurs, (V^k,)."""
    source = np.asarray(source)
    V = source.shape[-1] if source.ndim else 0
    if V == 0 or set(source.shape) != {V}:
        raise ShapeError(f"{function}() needs a table (V, …, V) of next-symbol distributions, got shape {source.shape}")
    rows = distribution(source, dtype=float).reshape(-1, V)  # (V^k, V)
    if source.ndim == 1:
        rows = np.repeat(rows, V, axis=0)  # order 0: the last symbol is the state, and all states have the same row
    states = len(rows)
    chain = np.zeros((states, states))
    following = (np.arange(states)[:, None] * V + np.arange(V)) % states  # drop the oldest symbol, append the newest
    np.put_along_axis(chain, following, rows, axis=1)
    return rows, chain, stationary_distribution(chain)
