"""Byte-pair encoding, merge by merge: which pair is joined next, and what becomes of the words?"""

import traitlets

from .base import Figure, module

__all__ = ["MergeStepper"]

_CORPORA = {
    "twelve words": {"low": 5, "lowest": 2, "newer": 3, "wider": 2},
    "repeated letters": {"banana": 3, "bandana": 2, "ananas": 2, "cabana": 1},
    "verbs": {"walk": 4, "walked": 3, "walking": 3, "talk": 2, "talked": 4, "talking": 2},
}


class MergeStepper(Figure):
    """Byte-pair encoding merge by merge: words in symbols, and the commonest pairs.

    words: {word: how often it occurs}, shown first, before three small corpora   ties: "first appearance" or
    "lexicographic"   step: merges done at the start

    Raises: ValueError for no words or an unknown rule for ties.

    >>> MergeStepper(words={"aab": 2}).corpora["words from the text"]
    {'aab': 2}
    """

    _esm = module("merge_stepper.js")
    corpora = traitlets.Dict(_CORPORA).tag(sync=True)
    corpus = traitlets.Unicode("").tag(sync=True)
    ties = traitlets.Unicode("first appearance").tag(sync=True)
    step = traitlets.Int(0, min=0).tag(sync=True)

    def __init__(self, words=None, **traits):
        if words is not None:
            traits["corpora"] = {"words from the text": dict(words)} | _CORPORA
        super().__init__(**traits)
        if not self.corpora or not all(self.corpora.values()):
            raise ValueError("MergeStepper needs words, got none")
        self.corpus = self.corpus or next(iter(self.corpora))
        if self.ties not in ("first appearance", "lexicographic"):
            raise ValueError(f"MergeStepper knows the ties first appearance and lexicographic, got {self.ties!r}")
