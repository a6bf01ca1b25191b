"""Sequences: the chain rule of probability, Markov chains, and the vocabulary of a text."""

from __future__ import annotations  # numpy.random is loaded when it is used

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence

import numpy as np

from ..autodiff import ArrayLike
from ..errors import UnknownWordError, all_within, suggest, within
from ..exponentials import log_product
from ..shapes import contract
from .distributions import _edges, distribution, token_sequence


def sequence_log_probabilities(tokens: Sequence, conditional: Callable) -> np.ndarray:
    """The chain rule of probability: what each token adds to the log-probability of the sequence.

        P(x₁, …, x_T) = Πₜ P(xₜ | x₁, …, xₜ₋₁)                                       (5.4)

    tokens: T of them, of any kind   conditional: maps (token, tokens before it) to a probability   ->   (T,)

    Their sum is the log-probability of the sequence. No assumption is made: this holds for every joint distribution.
    Raises: ValueError for a conditional probability that is negative or above 1.

    >>> table = {("The",): 0.05, ("The", "cat"): 0.12, ("The", "cat", "sat"): 0.08, ("The", "cat", "sat", "."): 0.7}
    >>> steps = sequence_log_probabilities(["The", "cat", "sat", "."], lambda token, before: table[(*before, token)])
    >>> steps.round(2), round(float(steps.sum()), 2)
    (array([-3.  , -2.12, -2.53, -0.36]), -8.0)
    """
    p = np.array([conditional(token, tokens[:t]) for t, token in enumerate(tokens)], float)
    all_within("sequence_log_probabilities", "[0, 1]", conditional=p)
    return log_product(p[:, None])


@contract("n n ->")
def sample_markov_chain(
    transition: ArrayLike, steps: int, rng: np.random.Generator | int, start: int = 0
) -> np.ndarray:
    """Draw a path of a Markov chain: the next state depends on the current state, and on nothing before.

        xₜ ~ P(· | xₜ₋₁), row xₜ₋₁ of the transition matrix                          (5.16)

    transition: rows sum to 1   steps: T ≥ 0   start: the state before the first step   ->   states: (T,) int

    The fraction of time in each state approaches the stationary distribution of chapter 10, if there is only one.
    Raises: ValueError if a row is no distribution or `start` no state.

    >>> sample_markov_chain([[0, 1, 0], [0, 0, 1], [1, 0, 0]], 5, np.random.default_rng(0))
    array([1, 2, 0, 1, 2])
    """
    edges = _edges(distribution(transition)).tolist()  # a search among few numbers is faster in a list
    within("sample_markov_chain", "whole [0, ∞)", steps=steps)
    within("sample_markov_chain", f"whole [0, {len(edges)})", start=start)
    states, state = np.empty(steps, np.intp), start
    for t, point in enumerate(np.random.default_rng(rng).random(steps).tolist()):
        states[t] = state = bisect_right(edges[state], point)
    return states


class Vocabulary:
    """The different tokens of a text with their ids: the most frequent first, equally frequent ones in order.

    tokens: a string is the sequence of its characters   min_count: rarer tokens are left out
    unknown: the token that represents all that are left out, if there is one; it comes last

    Raises: ValueError if no token is frequent enough.

    >>> letters = Vocabulary("banana")
    >>> letters.tokens, letters.encode("ban"), letters.decode([2, 0])
    (['a', 'n', 'b'], array([2, 0, 1]), ['b', 'a'])
    """

    def __init__(self, tokens: Iterable[Hashable], min_count: int = 1, unknown: Hashable | None = None):
        count = Counter(tokens)
        kept = [token for token in count if count[token] >= min_count and token != unknown]
        self.tokens = sorted(kept, key=lambda token: (-count[token], token))
        if unknown is not None:
            self.tokens.append(unknown)
        if not self.tokens:
            raise ValueError(f"Vocabulary() found no token that occurs at least {min_count} times")
        self.unknown = unknown
        self._id = {token: i for i, token in enumerate(self.tokens)}

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: Hashable) -> bool:
        return token in self._id

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} tokens)"

    def encode(self, tokens: Iterable[Hashable]) -> np.ndarray:
        """The ids of a sequence of tokens, (T,). Raises: UnknownWordError for a new token, if there is no `unknown`."""
        if self.unknown is not None:
            rest = self._id[self.unknown]
            return np.array([self._id.get(token, rest) for token in tokens], np.intp)
        try:
            return np.array([self._id[token] for token in tokens], np.intp)
        except KeyError as error:
            token = error.args[0]
            near = suggest(token, self.tokens) if isinstance(token, str) and len(token) > 1 else ""
            raise UnknownWordError(f"the vocabulary does not contain {token!r}{near}") from None

    def decode(self, ids: ArrayLike) -> list:
        """The tokens with these ids. Raises: ValueError for an id outside the vocabulary."""
        return [self.tokens[i] for i in token_sequence("decode", ids, len(self)).tolist()]
