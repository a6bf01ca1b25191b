"""A sentence is a walk: from what has been said to what comes next, one conditional probability at a time."""

from __future__ import annotations  # numpy.random is loaded when it is used

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence

import numpy as np

from ..errors import ShapeError, UnknownWordError, suggest
from ..exponentials import log_product
from .distributions import _edges, distribution


def sequence_log_probabilities(tokens: Sequence, conditional: Callable) -> np.ndarray:
    """The chain rule of probability: what each token adds to the log-probability of the whole.

        P(x₁, …, x_n) = Πₜ P(xₜ | x₁, …, xₜ₋₁)                                       (5.3)

    tokens: T of them, of any kind   conditional: maps (token, tokens before it) to a probability   ->   (T,)

    Their sum is the log-probability of the sequence. No assumption is made: this holds for every joint distribution.
    Raises: ValueError for a conditional that is no probability.
    Source: 003, ch. V, example 5; 002, the chain rule of probability.

    >>> table = {("The",): 0.05, ("The", "cat"): 0.12, ("The", "cat", "sat"): 0.08, ("The", "cat", "sat", "."): 0.7}
    >>> steps = sequence_log_probabilities(["The", "cat", "sat", "."], lambda token, before: table[(*before, token)])
    >>> steps.round(2), round(float(steps.sum()), 2)
    (array([-3.  , -2.12, -2.53, -0.36]), -8.0)
    """
    p = np.array([conditional(token, tokens[:t]) for t, token in enumerate(tokens)], float)
    if not np.all(p <= 1):
        raise ValueError(f"sequence_log_probabilities() needs probabilities, got {p[~(p <= 1)][0]:g}")
    return log_product(p[:, None])


def markov_order(n: int) -> int:
    """How many tokens back an n-gram model looks: one fewer than it counts together.

        P(xₜ | x₁ … xₜ₋₁) ≈ P(xₜ | xₜ₋ₖ … xₜ₋₁),      k = n − 1                      (5.11)

    A transformer looks back a whole context window, and no further.
    Raises: ValueError for n < 1.
    Source: 002, conditional independence and the Markov property.

    >>> [markov_order(n) for n in (1, 2, 3)]
    [0, 1, 2]
    """
    if n < 1:
        raise ValueError(f"markov_order() needs n-grams of at least 1 token, got {n}")
    return n - 1


def sample_markov_chain(transition, steps: int, rng: np.random.Generator, start: int = 0) -> np.ndarray:
    """Walk from state to state; where to go next depends on where one is, and on nothing before.

        xₜ ~ P(· | xₜ₋₁), row xₜ₋₁ of the transition matrix                          (5.12)

    transition: (n, n), rows sum to 1   steps: T ≥ 0   start: the state before the first step   ->   states: (T,) int

    The share of time spent in each state approaches the stationary distribution of chapter 03.
    Raises: ShapeError if the matrix is not square; ValueError if a row is no distribution or `start` no state.
    Source: 002, the Markov property.

    >>> sample_markov_chain([[0, 1, 0], [0, 0, 1], [1, 0, 0]], 5, np.random.default_rng(0))
    array([1, 2, 0, 1, 2])
    """
    transition = distribution(transition)
    if transition.ndim != 2 or transition.shape[0] != transition.shape[1]:
        raise ShapeError(f"sample_markov_chain() needs a square matrix, got shape {transition.shape}")
    if not 0 <= start < len(transition) or steps < 0:
        raise ValueError(
            f"sample_markov_chain() needs steps ≥ 0 and a start below {len(transition)}, got {steps} and {start}"
        )
    edges = _edges(transition)
    states, state = np.empty(steps, np.intp), start
    for t, dart in enumerate(rng.random(steps)):
        state = int(np.searchsorted(edges[state], dart, side="right"))
        states[t] = state
    return states


class Vocabulary:
    """The different tokens of a text, numbered: the most frequent first, equally frequent ones in order.

    tokens: a string counts as the sequence of its characters   min_count: rarer tokens are left out
    unknown: the token that stands for all that are left out, if there is one; it comes last

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

    def __len__(self):
        return len(self.tokens)

    def __contains__(self, token):
        return token in self._id

    def __repr__(self):
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

    def decode(self, ids) -> list:
        """The tokens with these ids. Raises: ValueError for an id outside the vocabulary."""
        ids = np.asarray(ids, np.intp)
        if ids.size and not 0 <= ids.min() <= ids.max() < len(self):
            raise ValueError(f"decode() needs ids from 0 to {len(self) - 1}")
        return [self.tokens[i] for i in ids.tolist()]
