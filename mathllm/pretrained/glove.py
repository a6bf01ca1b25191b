"""GloVe 6B: vectors of 400,000 words, trained on how often words occur near each other in six billion words of text.

The table is mapped into memory, not read: a query touches only the rows that it needs. All words are in lower case and
in the order of their frequency, so row 0 is "the".
"""

import functools
from pathlib import Path

import numpy as np

from .. import data
from ..errors import MissingDataError
from ..similarity import WordVectors

_ARRAY, _WORDS, _TABLE = "data/glove_6B_50d_emb.npy", "data/words.txt", "data/glove_6B_index.parquet"


def load() -> WordVectors:
    """The 400,000 word vectors of GloVe 6B, 50 components each, float32 and read-only.

    A second call returns the same object, which keeps what it has computed (the lengths of all rows).

    Raises: MissingDataError if the package is absent or damaged.
    Source: Pennington, Socher & Manning 2014, GloVe: Global Vectors for Word Representation.

    >>> if data.available("glove"):
    ...     round(load().similarity("king", "queen"), 3)
    0.784
    """
    return _open(data.path("glove"))


@functools.cache
def _open(place: Path) -> WordVectors:
    with data.reading("glove"):
        words = read_words(place)
        vectors = np.load(place / _ARRAY, mmap_mode="r", allow_pickle=False)
        if vectors.shape != (len(words), 50) or vectors.dtype != np.float32:
            raise ValueError(f"{len(words):,} words for {vectors.shape} of {vectors.dtype}")
        return WordVectors(words, vectors)


def read_words(place: Path) -> list[str]:
    """The words in the order of the rows, from the plain list that `make data` writes or from the parquet file.

    Raises: MissingDataError if there is only the parquet file and pyarrow, which reads it, is not installed.

    >>> if data.available("glove"):
    ...     read_words(data.path("glove"))[:4]
    ['the', ',', '.', 'of']
    """
    if (place / _WORDS).is_file():
        return (place / _WORDS).read_text(encoding="utf-8").removesuffix("\n").split("\n")
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise MissingDataError(f"glove has no {_WORDS}: run `make data`, or `pip install pyarrow`") from error
    return parquet.read_table(place / _TABLE)["index"].to_pylist()
