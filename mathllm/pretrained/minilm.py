"""MiniLM: a BERT of six layers that gives a sentence one vector, so that sentences of like meaning lie close together.

The vectors of the last layer are averaged over the tokens (chapter 02) and scaled to length 1: the dot product of two
sentences is then their cosine.
"""

import functools
import json
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .. import data
from ..errors import MissingDataError
from ..similarity import mean_pool
from ..transformer import Transformer
from ..vectors import normalize
from . import safetensors
from .huggingface import from_hf
from .wordpiece import WordPiece

__all__ = ["LONGEST", "MiniLM", "embed", "load", "token_vectors"]

LONGEST = 256
"""Tokens of a sentence that are read; the model was trained on no longer ones."""


class MiniLM(NamedTuple):
    """The model, its parameters (float32, mapped, not to be written) and its tokenizer."""

    model: Transformer
    params: dict
    tokenizer: WordPiece


def load() -> MiniLM:
    """all-MiniLM-L6-v2: `model, params, tokenizer = load()`. A second call gives the same objects.

    Raises: MissingDataError if the package is absent or damaged.
    Source: Wang et al. 2020, MiniLM; Reimers & Gurevych 2019, Sentence-BERT.

    >>> if data.available("minilm"):
    ...     load().params["embedding"].shape
    (30522, 384)
    """
    return _load(data.path("minilm") / "model")


def embed(sentences: str | Iterable[str], *, batch: int = 32) -> np.ndarray:
    """One vector of length 1 for each sentence: the mean of its tokens' last vectors, normalised.

        s = mean(x_L) / ‖mean(x_L)‖

    sentences: N texts, or one   batch: how many are computed at a time   ->   (N, 384) float32, or (384,) for one

    Texts of more than 256 tokens are cut. Sentences of like length are computed together, to save padding.
    Raises: MissingDataError; ValueError for a batch below 1.
    Source: Reimers & Gurevych 2019, §3.

    >>> if data.available("minilm"):
    ...     a, b, c = embed(["The cat sleeps.", "A kitten is napping.", "Interest rates rose."])
    ...     bool(a @ b > 0.5 > 0.2 > a @ c)
    True
    """
    if isinstance(sentences, str):
        return embed([sentences], batch=batch)[0]
    if batch < 1:
        raise ValueError(f"embed() needs a batch of at least 1, got {batch}")
    tokenizer = load().tokenizer
    ids = [tokenizer.encode(sentence, longest=LONGEST) for sentence in sentences]
    vectors = np.zeros((len(ids), load().model.config.width), np.float32)
    by_length = sorted(range(len(ids)), key=lambda i: len(ids[i]))
    for start in range(0, len(ids), batch):
        rows = by_length[start : start + batch]
        longest = len(ids[rows[-1]])
        tokens, mask = np.zeros((2, len(rows), longest), int)  # [PAD] is 0
        for row, i in enumerate(rows):
            tokens[row, : len(ids[i])], mask[row, : len(ids[i])] = ids[i], 1
        vectors[rows] = normalize(mean_pool(_last_vectors(tokens, mask), mask))
    return vectors


def token_vectors(sentence: str) -> tuple[list[str], np.ndarray]:
    """One vector for each token of a sentence, computed from the whole of it: contextual embeddings.

    sentence: a text   ->   its T tokens, [CLS] and [SEP] at the ends, and x_L: (T, 384) float32

    Raises: MissingDataError.
    Source: 004, static against contextual embeddings; Devlin et al. 2019, §3.

    >>> if data.available("minilm"):
    ...     tokens, vectors = token_vectors("by the bank")
    ...     print(tokens, vectors.shape)
    ['[CLS]', 'by', 'the', 'bank', '[SEP]'] (5, 384)
    """
    tokenizer = load().tokenizer
    ids = np.array([tokenizer.encode(sentence, longest=LONGEST)])
    tokens = ["[CLS]", *tokenizer.tokens(sentence)[: LONGEST - 2], "[SEP]"]
    return tokens, _last_vectors(ids, np.ones_like(ids))[0]


def _last_vectors(tokens, mask):
    """The vectors of the last layer, (B, T, 384)."""
    model, params, _ = load()
    return model.hidden(params, tokens, mask)


@functools.cache
def _load(place: Path) -> MiniLM:
    try:
        config = json.loads((place / "config.json").read_text(encoding="utf-8"))
        config, params = from_hf(config, safetensors.load(place / "model.safetensors"))
        return MiniLM(Transformer(config), params, WordPiece.load(place / "vocab.txt"))
    except ValueError as error:
        raise MissingDataError(f"minilm is damaged: {error}; `make data` fetches it again") from error
