"""Words on a map made of distances alone: how far is each from one landmark, and how far from another?"""

from collections.abc import Mapping, Sequence

import numpy as np
import traitlets

from ..errors import ShapeError
from .base import Figure, module

__all__ = ["WordMap"]


class WordMap(Figure):
    """Words placed by their distances from two landmark words, which the reader chooses.

    vectors: word -> its d numbers; groups: name -> words, each group in a colour and shape of its own
    landmarks: the two words that the map starts out with

    Raises: ShapeError if the vectors differ in size; ValueError for fewer than two words, or a landmark that is none.

    >>> WordMap({"king": [3, 4], "car": [0, 0]}, {"royalty": ["king"], "vehicles": ["car"]}).landmarks
    ['king', 'car']
    """

    _esm = module("word_map.js")
    words = traitlets.List(traitlets.Unicode()).tag(sync=True)
    groups = traitlets.List(traitlets.Unicode(), help="the group of each word").tag(sync=True)
    vectors = traitlets.List(traitlets.List(traitlets.Float())).tag(sync=True)
    landmarks = traitlets.List(traitlets.Unicode(), minlen=2, maxlen=2).tag(sync=True)

    def __init__(self, vectors: Mapping[str, Sequence[float]], groups: Mapping[str, Sequence[str]], landmarks=None):
        words = [word for group in groups.values() for word in group]
        if len(words) < 2:
            raise ValueError(f"WordMap needs at least two words, got {len(words)}")
        sizes = {np.size(vectors[word]) for word in words}
        if len(sizes) > 1:
            raise ShapeError(f"WordMap needs vectors of one size, got sizes {sorted(sizes)}")
        if landmarks is None:
            landmarks = [words[0], next(iter(reversed(groups.values())))[0] if len(groups) > 1 else words[1]]
        if strangers := [word for word in landmarks if word not in words]:
            raise ValueError(f"WordMap has no landmark {strangers[0]!r}; its words are {', '.join(words)}")
        super().__init__(
            words=words,
            groups=[name for name, group in groups.items() for _ in group],
            vectors=[np.asarray(vectors[word], np.float64).round(5).tolist() for word in words],
            landmarks=list(landmarks),
        )
