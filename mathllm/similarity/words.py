"""Words with their vectors: the nearest neighbours of a word, and analogies by adding and subtracting words."""

import functools
from collections.abc import Iterable, Sequence

import numpy as np

from ..autodiff import ArrayLike
from ..errors import ShapeError, UnknownWordError, all_within, suggest, within
from ..shapes import real_array
from ..vectors import normalize
from .cosine import cosine_similarity


class WordVectors:
    """A vocabulary and one vector per word.

    words: V strings   vectors: (V, d)

    Raises: ShapeError if words and rows differ in number; ValueError for a word that occurs twice; TypeError for
    numbers that are not real.

    >>> toy = WordVectors(["man", "woman", "king", "queen"], [[1, 0, 0], [0, 1, 0], [1, 0, 1], [0, 1, 1]])
    >>> toy.analogy("man", "king", "woman", k=1)[0][0]
    'queen'
    """

    def __init__(self, words: Sequence[str], vectors: ArrayLike) -> None:
        self.words, vectors = list(words), np.asarray(real_array("WordVectors", vectors))
        if vectors.ndim != 2 or len(vectors) != len(self.words):
            raise ShapeError(f"{len(self.words)} words need as many rows of vectors, got shape {vectors.shape}")
        kept = vectors.dtype in (np.float32, np.float64)  # sums of smaller types overflow
        self.vectors = vectors if kept else vectors.astype(np.float64)
        self._row = {word: row for row, word in enumerate(self.words)}
        if len(self._row) != len(self.words):
            raise ValueError("WordVectors() needs each word once; a word occurs twice")

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: str) -> bool:
        return word in self._row

    def __repr__(self) -> str:
        return f"WordVectors({len(self)} words, {self.vectors.shape[1]} components)"

    def row(self, word: str) -> int:
        """The row of a word in the table. Raises: UnknownWordError, which names words of similar spelling."""
        try:
            return self._row[word]
        except KeyError:
            raise UnknownWordError(f"no vector for the word {word!r}{self._suggestion(word)}") from None

    def _suggestion(self, word):
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

    def nearest(self, query: str | ArrayLike, k: int = 10, exclude: Iterable[str] = ()) -> list[tuple[str, float]]:
        """The `k` words whose vectors make the smallest angle with `query`, a word or a vector, best first.

        A word is not its own neighbour; `exclude` leaves out one more word, or several.
        Raises: UnknownWordError; ShapeError for a vector of another size; ValueError for a zero vector or k < 1.

        >>> WordVectors(["north", "east", "northeast"], [[0, 1], [1, 0], [1, 2]]).nearest("north", k=1)[0][0]
        'northeast'
        """
        within("nearest", "whole [1, ∞)", k=k)
        exclude = {exclude} if isinstance(exclude, str) else set(exclude)
        if isinstance(query, str):
            query, exclude = self.vector(query), exclude | {query}
        cosines = self._cosines(np.asarray(real_array("nearest", query)))
        cosines[[self.row(word) for word in exclude if word in self]] = -np.inf
        best = np.argsort(-cosines, kind="stable")[:k]
        return [(self.words[row], float(np.clip(cosines[row], -1, 1))) for row in best if cosines[row] > -np.inf]

    def _cosines(self, vector):
        """The cosine of every word with this vector; −∞ for a word whose vector is zero and has no direction."""
        if vector.shape != self.vectors.shape[1:]:
            size = self.vectors.shape[1]
            raise ShapeError(f"nearest() needs a vector of {size} components, got shape {vector.shape}")
        all_within("nearest", "(-∞, ∞)", query=vector)
        products = self.vectors @ normalize(vector).astype(self.vectors.dtype)
        without_direction = np.full_like(products, -np.inf)
        return np.divide(products, self._lengths, out=without_direction, where=self._lengths > 0)

    @functools.cached_property
    def _lengths(self):
        squares = np.einsum("vd,vd->v", self.vectors, self.vectors, dtype=np.float64)  # float32 squares may overflow
        return np.sqrt(squares)

    def analogy(self, a: str, b: str, c: str, k: int = 5, exclude_query: bool = True) -> list[tuple[str, float]]:
        """`a` is to `b` as `c` is to …: the words nearest to b − a + c, best first.

            x = v_b − v_a + v_c                                                     (2.12)

        The three words themselves are left out, as is usual; otherwise the answer may be one of them.

        >>> toy = WordVectors(["up", "down", "left", "right"], [[0, 1], [0, -1], [-1, 0], [1, 0.1]])
        >>> toy.analogy("up", "down", "left", k=1)[0][0]
        'right'
        """
        target = self.vector(b) - self.vector(a) + self.vector(c)
        return self.nearest(target, k, exclude=(a, b, c) if exclude_query else ())
