"""Words with their vectors: who is near whom, and what happens when words are added and subtracted."""

import functools
from collections.abc import Iterable, Sequence

import numpy as np

from ..errors import ShapeError, UnknownWordError, suggest
from .cosine import cosine_similarity


class WordVectors:
    """A vocabulary and one vector per word.

    words: V strings   vectors: (V, d)

    Raises: ShapeError if words and rows differ in number; ValueError for a word that occurs twice.

    >>> toy = WordVectors(["man", "woman", "king", "queen"], [[1, 0, 0], [0, 1, 0], [1, 0, 1], [0, 1, 1]])
    >>> toy.analogy("man", "king", "woman", k=1)[0][0]
    'queen'
    """

    def __init__(self, words: Sequence[str], vectors):
        self.words = list(words)
        kept = getattr(vectors, "dtype", None) in (np.float32, np.float64)  # sums of smaller types overflow
        self.vectors = vectors if kept else np.asarray(vectors, float)
        if self.vectors.ndim != 2 or len(self.vectors) != len(self.words):
            raise ShapeError(f"{len(self.words)} words need as many rows of vectors, got shape {self.vectors.shape}")
        self._row = {word: row for row, word in enumerate(self.words)}
        if len(self._row) != len(self.words):
            raise ValueError("WordVectors() needs each word once; a word occurs twice")

    def __len__(self):
        return len(self.words)

    def __contains__(self, word):
        return word in self._row

    def __repr__(self):
        return f"WordVectors({len(self)} words, {self.vectors.shape[1]} components)"

    @functools.cached_property
    def _lengths(self):
        return np.sqrt(np.einsum("vd,vd->v", self.vectors, self.vectors))

    def row(self, word: str) -> int:
        """The row of a word in the table. Raises: UnknownWordError, with words spelled alike."""
        try:
            return self._row[word]
        except KeyError:
            raise UnknownWordError(f"no vector for the word {word!r}{self._alike(word)}") from None

    def _alike(self, word):
        if word.lower() in self:
            return f"; the vocabulary is in lower case: try {word.lower()!r}"
        same_start = (w for w in self.words if w[:1] == word[:1] and abs(len(w) - len(word)) <= 2)
        return suggest(word, same_start)

    def vector(self, word: str) -> np.ndarray:
        """The vector of a word, (d,)."""
        return np.array(self.vectors[self.row(word)])

    def similarity(self, a: str, b: str) -> float:
        """Cosine similarity of two words.

        >>> round(WordVectors(["cat", "dog"], [[2, 5, 1], [3, 4, 2]]).similarity("cat", "dog"), 3)
        0.949
        """
        return float(cosine_similarity(self.vector(a), self.vector(b)))

    def nearest(self, query, k: int = 10, exclude: Iterable[str] = ()) -> list[tuple[str, float]]:
        """The `k` words whose vectors make the smallest angle with `query`, a word or a vector, best first.

        A word is not its own neighbour; `exclude` leaves out more words.
        Raises: UnknownWordError; ShapeError for a vector of another size; ValueError for a zero vector or k < 1.

        >>> WordVectors(["north", "east", "northeast"], [[0, 1], [1, 0], [1, 2]]).nearest("north", k=1)[0][0]
        'northeast'
        """
        if k < 1:
            raise ValueError(f"nearest() needs k of at least 1, got {k}")
        exclude = {*exclude, query} if isinstance(query, str) else set(exclude)
        target = self.vector(query) if isinstance(query, str) else np.asarray(query, self.vectors.dtype)
        if target.shape != self.vectors.shape[1:]:
            size = self.vectors.shape[1]
            raise ShapeError(f"nearest() needs a vector of {size} components, got shape {target.shape}")
        if not np.all(np.isfinite(target)):
            raise ValueError("nearest() needs a vector of finite numbers")
        length = np.sqrt(target @ target)
        if length == 0:
            raise ValueError("nearest() needs a vector with a direction, got a zero vector (see chapter 02)")
        with np.errstate(invalid="ignore", divide="ignore"):
            cosines = self.vectors @ target / (self._lengths * length)
        cosines[self._lengths == 0] = -np.inf
        cosines[[self.row(word) for word in exclude if word in self]] = -np.inf
        k = min(k, int(np.isfinite(cosines).sum()))
        best = np.argpartition(-cosines, k - 1)[:k] if k else np.array([], int)
        best = best[np.lexsort((best, -cosines[best]))]
        return [(self.words[row], float(np.clip(cosines[row], -1, 1))) for row in best]

    def analogy(self, a: str, b: str, c: str, k: int = 5, exclude_query: bool = True) -> list[tuple[str, float]]:
        """`a` is to `b` as `c` is to …: the words nearest to b − a + c, best first.

            x = v_b − v_a + v_c                                                     (2.10)

        The three words themselves are left out, as is usual; without that the answer is nearly always b or c.
        Source: 001, §6.1; 004, word arithmetic.

        >>> toy = WordVectors(["up", "down", "left", "right"], [[0, 1], [0, -1], [-1, 0], [1, 0.1]])
        >>> toy.analogy("up", "down", "left", k=1)[0][0]
        'right'
        """
        target = self.vector(b) - self.vector(a) + self.vector(c)
        return self.nearest(target, k, exclude=(a, b, c) if exclude_query else ())
