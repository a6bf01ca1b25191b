"""N-gram language models: relative frequencies of the next token after the last n − 1 tokens, with smoothing.

The counts are stored in a tree. Level k holds every k-gram of the text; an n-gram is found by one search per level,
from its first token on. All levels are sorted arrays, so the tokens of a whole text are searched together.

Every smoothing rule here has one form,

    q_k(x | h) = direct(h, x) + back(h) · q_{k−1}(x | h′),      h′ = h without its oldest token

with q₀ = 1/V: `direct` comes from the counts after the history h, and the probability `back` is distributed as after
the shorter history h′ (by additive smoothing, as q₀). After a history that was never seen, back(h) is 1.
"""

from __future__ import annotations  # numpy.random is loaded when it is used

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..autodiff import ArrayLike
from ..errors import one_of, within
from .distributions import sample, token_sequence

_SMOOTHING = ("kneser-ney", "witten-bell", "add-k")


class _Level(NamedTuple):
    """The k-grams of a text, sorted by keys = (row of the history in the level above) · V + last token."""

    keys: np.ndarray  # (G + 1,), the last entry above all keys, so that every search ends in the array
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
        return len(self._levels[-1].keys) - 1

    def next_probabilities(self, context: ArrayLike) -> np.ndarray:
        """The distribution of the next token after these ids, of which the last n − 1 are used: (T,) -> (V,).

        Raises: ValueError for an id outside the vocabulary.
        """
        V, context = self.vocabulary_size, np.asarray(context)
        context = token_sequence("next_probabilities", context[max(0, len(context) - (self.n - 1)) :], V)
        p = uniform = np.full(V, 1 / V)
        for level, histories, _ in self._rows(context):
            history = histories[-1]
            p = level.back[history] * (uniform if self.smoothing == "add-k" else p)
            if history >= 0:
                first = history * V
                followers = slice(*np.searchsorted(level.keys, [first, first + V]))
                p[level.keys[followers] - first] += level.direct[followers]
        return p

    def log_probabilities(self, ids: ArrayLike) -> np.ndarray:
        """ln q(xₜ | the n − 1 tokens before it) for each token of a text: (T,) -> (T,).

        The first tokens have a shorter history. Minus the mean is the cross-entropy, its exponential the perplexity.
        Raises: ValueError for an id outside the vocabulary.
        """
        ids = token_sequence("log_probabilities", ids, self.vocabulary_size)
        uniform = 1 / self.vocabulary_size
        p = np.full(len(ids), uniform)
        for k, (level, histories, grams) in enumerate(self._rows(ids)):
            lower = uniform if self.smoothing == "add-k" else p[k:]
            p[k:] = level.direct[grams] + level.back[histories[:-1]] * lower
        with np.errstate(divide="ignore"):  # add-k with k = 0 has probabilities of 0
            return np.log(p)

    def sample(self, length: int, rng: np.random.Generator | int, context: ArrayLike = ()) -> np.ndarray:
        """Draw `length` tokens that continue the context, one after another: (length,) int."""
        within("sample", "whole [0, ∞)", length=length)
        ids = list(context)
        rng = np.random.default_rng(rng)
        for _ in range(length):
            ids.append(int(sample(self.next_probabilities(ids[-self.n :]), rng)))
        return np.array(ids[len(ids) - length :], np.intp)

    def _rows(self, ids):
        """For each level k: the level, the rows of the k tokens before each place (from place k to the end of the
        text), and the rows of these k tokens with the next one; −1 where they were never seen."""
        rows = np.zeros(len(ids) + 1, np.int64)
        for k, level in enumerate(self._levels[: len(ids) + 1]):
            keys = np.where(rows[:-1] >= 0, rows[:-1] * np.int64(self.vocabulary_size) + ids[k:], -1)
            found = np.searchsorted(level.keys, keys)
            grams = np.where(level.keys[found] == keys, found, -1)
            yield level, rows, grams
            rows = grams


def train_ngram(
    ids: ArrayLike, n: int, vocabulary_size: int | None = None, smoothing: str = "kneser-ney", add: float = 1.0
) -> NGram:
    """Count all n-grams of a text, and reserve some probability for those that did not occur (smoothing).

        add-k         direct = c(hx) / (c(h) + kV),      back = kV / (c(h) + kV),  to 1/V at once      (5.17)
        Witten–Bell   direct = c(hx) / (c(h) + m(h)),    back = m(h) / (c(h) + m(h))                   (5.18)
        Kneser–Ney    direct = max(c(hx) − δ, 0) / c(h), back = δ m(h) / c(h),  δ = n₁ / (n₁ + 2n₂)    (5.19)

    ids: (T,) int   vocabulary_size: V, by default the largest id + 1   smoothing: one of the three   add: k of add-k

    c counts, m(h) is the number of different tokens that followed h, n₁ and n₂ are the numbers of k-grams counted once
    and twice, on each level k (δ is ½ where one of them is 0). Below the highest level, Kneser–Ney does not count how
    often a k-gram occurs, but after how many different tokens: "Francisco" is frequent, but follows little else than
    "San".
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
    one_of("train_ngram", _SMOOTHING, smoothing=smoothing)
    if np.size(ids) == 0:
        raise ValueError("train_ngram() needs a text of at least one token")
    V = int(token_sequence("train_ngram", ids).max()) + 1 if vocabulary_size is None else vocabulary_size
    within("train_ngram", "whole [1, ∞)", vocabulary_size=V)
    ids = token_sequence("train_ngram", ids, V)

    keys, counts = _count(ids, n, V, neighbours=smoothing == "kneser-ney")
    histories = [1, *map(len, keys)]
    levels = [_smooth(*level, V, smoothing, add) for level in zip(keys, counts, histories, strict=False)]
    return NGram(n, V, smoothing, tuple(levels))


def _count(ids, n, V, neighbours):
    """The sorted keys of each level, and the count of each k-gram: how often it occurs, or (below the highest level,
    with `neighbours`) after how many different tokens."""
    T = len(ids)
    text = np.append(ids, np.full(n, V)).astype(np.min_scalar_type(V))  # V stands after the end of the text
    starts = np.lexsort([text[k : k + T] for k in reversed(range(n))])  # all places, in the order of their n-grams
    place = np.empty(T, np.intp)
    place[starts] = np.arange(T)

    keys, counts = [], []
    first = np.zeros(1, np.intp)  # among the sorted n-grams, the first that begins with each (k − 1)-gram
    differs = np.arange(T) == 0  # whether a sorted n-gram begins with another k-gram than the one before
    for k in range(n):
        token = text[starts + k]
        differs[1:] |= token[1:] != token[:-1]
        runs = np.flatnonzero(differs)
        inside = starts[runs] + k < T  # not beyond the end of the text
        shorter, first = first, runs[inside]
        if neighbours and k > 0:  # the row of each k-gram without its oldest token
            suffix = np.searchsorted(shorter, place[starts[first] + 1], side="right") - 1
            counts[-1] = np.bincount(suffix, minlength=len(shorter))
        history = np.searchsorted(shorter, first, side="right") - 1
        keys.append(history * np.int64(V) + token[first])  # NumPy's own integers may have 32 bits
        counts.append(np.diff(runs, append=T)[inside])
    return keys, counts


def _smooth(keys, count, histories, V, smoothing, add):
    """One level with `direct` and `back` as `train_ngram` defines them."""
    history = (keys // V).astype(np.intp, copy=False)
    total = np.bincount(history, weights=count, minlength=histories)  # c(h)
    kinds = np.bincount(history, weights=count > 0, minlength=histories)  # m(h)
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
    return _Level(np.append(keys, np.iinfo(np.int64).max), np.append(direct, 0.0), np.append(back, 1.0))
