"""N-gram language models: relative frequencies of the next token after the last n − 1 tokens, with smoothing.

The counts are stored in a tree. Level k holds every k-gram of the text; an n-gram is found by one search per level,
from its first token on. All levels are sorted arrays, so the tokens of a whole text are searched together.

Every smoothing rule here has one form,

    P_k(w | h) = direct(h, w) + back(h) · P_{k−1}(w | h′),      h′ = h without its oldest token

with P₀ = 1/V: `direct` comes from the counts after the history h, and the probability `back` is distributed as after
the shorter history h′. After a history that was never seen, back(h) is 1.
"""

from __future__ import annotations  # numpy.random is loaded when it is used

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..autodiff import ArrayLike
from ..errors import within
from .distributions import _token_sequence, sample
from .sequences import markov_order

_SMOOTHING = ("kneser-ney", "witten-bell", "add-k")


class _Level(NamedTuple):
    """The k-grams of a text, sorted by keys = (row of the history in the level above) · V + last token."""

    keys: np.ndarray  # (G,)
    direct: np.ndarray  # (G + 1,), the last entry for k-grams that were never seen
    back: np.ndarray  # (histories + 1,), the last entry for histories that were never seen


@dataclass(frozen=True, eq=False)
class NGram:
    """A trained n-gram model, as made by `train_ngram`: it predicts a distribution over all V tokens.

    >>> model = train_ngram([0, 1, 0, 1, 0, 2], n=2, smoothing="add-k", add=0)
    >>> model.next_probabilities([0]).round(3)
    array([0.   , 0.667, 0.333])
    """

    n: int
    vocabulary_size: int
    smoothing: str
    _levels: tuple[_Level, ...]

    def __repr__(self) -> str:
        return f"NGram(n={self.n}, {self.seen} different n-grams of {self.vocabulary_size} tokens, {self.smoothing})"

    @property
    def seen(self) -> int:
        """The number of different n-grams in the training text."""
        return len(self._levels[-1].keys)

    @property
    def order(self) -> int:
        """The number of tokens before the next on which the prediction depends: n − 1."""
        return markov_order(self.n)

    def next_probabilities(self, context: ArrayLike) -> np.ndarray:
        """The distribution of the next token after these ids, of which the last n − 1 are used: (T,) -> (V,).

        Raises: ValueError for an id outside the vocabulary.
        """
        context = np.asarray(context)
        context = context[max(0, len(context) - self.order) :]
        context = _token_sequence("next_probabilities", context, self.vocabulary_size)
        p = uniform = np.full(self.vocabulary_size, 1 / self.vocabulary_size)
        for k, level in enumerate(self._levels[: len(context) + 1]):
            lower = uniform if self.smoothing == "add-k" else p
            history = self._find(context[len(context) - k :])
            p = level.back[history] * lower
            if history >= 0:
                first = history * self.vocabulary_size
                followers = slice(*np.searchsorted(level.keys, [first, first + self.vocabulary_size]))
                p[level.keys[followers] - first] += level.direct[followers]
        return p

    def log_probabilities(self, ids: ArrayLike) -> np.ndarray:
        """ln P(xₜ | the n − 1 tokens before it) for each token of a text: (T,) -> (T,).

        The first tokens have a shorter history. Minus the mean is the cross-entropy, its exponential the perplexity.
        Raises: ValueError for an id outside the vocabulary.
        """
        V = self.vocabulary_size
        ids = _token_sequence("log_probabilities", ids, V)
        p = np.full(len(ids), 1 / V)
        history = np.zeros(len(ids) + 1, np.int64)  # the row of the tokens before each position, at first of none
        for k, level in enumerate(self._levels):
            history, token = history[:-1], ids[k:]
            gram = _search(level.keys, np.where(history >= 0, history * np.int64(V) + token, -1))
            lower = 1 / V if self.smoothing == "add-k" else p[k:]
            p[k:] = level.direct[gram] + level.back[history] * lower
            history = gram
        with np.errstate(divide="ignore"):  # add-k with k = 0 has probabilities of 0
            return np.log(p)

    def sample(self, rng: np.random.Generator, length: int, context: ArrayLike = ()) -> np.ndarray:
        """Draw `length` tokens that continue the context, one after another. -> (length,) int"""
        ids = [int(i) for i in context]
        start = len(ids)
        for _ in range(length):
            ids.append(int(sample(self.next_probabilities(ids[max(0, len(ids) - self.order) :]), rng)))
        return np.array(ids[start:], np.intp)

    def _find(self, tokens) -> int:
        """The row of these tokens in their level, or −1."""
        row = 0
        for level, token in zip(self._levels, tokens, strict=False):
            row = int(_search(level.keys, np.array([row * self.vocabulary_size + token]))[0]) if row >= 0 else -1
        return row


def train_ngram(
    ids: ArrayLike, n: int, vocabulary_size: int | None = None, smoothing: str = "kneser-ney", add: float = 1.0
) -> NGram:
    """Count all n-grams of a text, and reserve some probability for those that did not occur (smoothing).

        add-k         direct = c(hw) / (c(h) + kV),      back = kV / (c(h) + kV),  to 1/V at once      (5.13)
        Witten–Bell   direct = c(hw) / (c(h) + t(h)),    back = t(h) / (c(h) + t(h))                   (5.14)
        Kneser–Ney    direct = max(c(hw) − δ, 0) / c(h), back = δ t(h) / c(h),  δ = n₁ / (n₁ + 2n₂)    (5.15)

    ids: (T,) int   vocabulary_size: V, by default the largest id + 1   smoothing: one of the three   add: k of add-k

    c counts, t(h) is the number of different tokens that followed h, n₁ and n₂ are the numbers of k-grams counted once
    and twice (δ is ½ where one of them is 0). Below the highest level, Kneser–Ney does not count how often a k-gram
    occurs, but after how many different tokens: "Francisco" is frequent, but follows little else than "San".
    Raises: ValueError for an empty text, n < 1, an unknown smoothing, or a negative k.
    Source: Witten and Bell 1991; Kneser and Ney 1995; Chen and Goodman 1999.

    >>> model = train_ngram([0, 1, 0, 1, 0, 2, 0, 1], n=3, smoothing="witten-bell")
    >>> model
    NGram(n=3, 5 different n-grams of 3 tokens, witten-bell)
    >>> model.next_probabilities([1, 0]).round(3)
    array([0.076, 0.561, 0.364])
    """
    within("train_ngram", "whole [1, ∞)", n=n)
    within("train_ngram", "[0, ∞)", add=add)
    if smoothing not in _SMOOTHING:
        raise ValueError(f"train_ngram() knows the smoothing {', '.join(_SMOOTHING)}; got {smoothing!r}")
    if np.size(ids) == 0:
        raise ValueError("train_ngram() needs a text of at least one token")
    V = int(np.max(ids)) + 1 if vocabulary_size is None else vocabulary_size
    ids = _token_sequence("train_ngram", ids, V)

    keys, counts = _count(ids, n, V, neighbours=smoothing == "kneser-ney")
    histories = [1, *map(len, keys)]
    levels = [_smooth(*level, V, smoothing, add) for level in zip(keys, counts, histories, strict=False)]
    return NGram(n, V, smoothing, tuple(levels))


def _count(ids, n, V, neighbours):
    """The sorted keys of each level, and the count of each k-gram: how often it occurs, or (below the highest level,
    with `neighbours`) after how many different tokens."""
    keys, counts = [], []
    rows = np.zeros(len(ids) + 1, np.int64)  # the row of the (k − 1)-gram that ends before each token
    for k in range(n):
        shorter = rows[1:]  # the (k − 1)-gram that ends with the token: the k-gram without its oldest token
        level, rows, count = _number(rows[:-1] * np.int64(V) + ids[k:])  # NumPy's own integers may have 32 bits
        if neighbours and k > 0:
            suffix = np.empty(len(level), np.intp)
            suffix[rows] = shorter
            counts[-1] = np.bincount(suffix, minlength=len(keys[-1]))
        keys.append(level)
        counts.append(count)
    return keys, counts


def _number(codes):
    """The different codes in ascending order, the row of each code among them, and how often each occurs."""
    largest = codes.max(initial=0)
    if largest > 8 * len(codes) + 1_000_000:
        return np.unique(codes, return_inverse=True, return_counts=True)
    codes = codes.astype(np.intp, copy=False)  # few enough possible codes to count without sorting
    count = np.bincount(codes, minlength=largest + 1)
    keys = np.flatnonzero(count)
    row = np.cumsum(count > 0) - 1
    return keys, row[codes], count[keys]


def _smooth(keys, count, histories, V, smoothing, add):
    """One level with `direct` and `back` as `train_ngram` defines them."""
    history = (keys // V).astype(np.intp, copy=False)
    total = np.bincount(history, weights=count, minlength=histories)  # c(h)
    kinds = np.bincount(history, weights=count > 0, minlength=histories)  # t(h)
    if smoothing == "add-k":
        taken, whole, kept = 0, total + add * V, add * V
    elif smoothing == "witten-bell":
        taken, whole, kept = 0, total + kinds, kinds
    else:
        once, twice = np.sum(count == 1), np.sum(count == 2)
        taken = once / (once + 2 * twice) if once and twice else 0.5
        whole, kept = total, taken * kinds
    seen = total > 0
    back = np.where(seen, kept / np.where(seen, whole, 1), 1)
    direct = np.maximum(count - taken, 0) / np.where(seen, whole, 1)[history]
    return _Level(keys, np.append(direct, 0.0), np.append(back, 1.0))


def _search(keys, wanted):
    """The row of each wanted key, −1 where there is none."""
    if len(keys) == 0:
        return np.full(len(wanted), -1)
    row = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[row] == wanted, row, -1)
