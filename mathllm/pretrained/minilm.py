"""MiniLM: a BERT of six layers that gives each sentence one vector. Sentences of similar meaning get similar vectors.

The vectors of the last layer are averaged over the tokens (chapter 02) and scaled to length 1, so the dot product of
two sentence vectors is their cosine.
"""

import functools
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from .. import data
from ..errors import within
from ..similarity import mean_pool
from ..transformer import Transformer
from ..vectors import normalize
from .huggingface import Pretrained, load_pretrained
from .wordpiece import WordPiece

LONGEST = 256
"""The number of tokens of a sentence that are read, as the files of the model say. Its training used at most 128."""


def load() -> Pretrained:
    """all-MiniLM-L6-v2: `model, params, tokenizer = load()`. A second call returns the same objects.

    Raises: MissingDataError if the package is absent or damaged; ImportError without safetensors.
    Source: Wang et al. 2020, MiniLM; Reimers & Gurevych 2019, Sentence-BERT.

    >>> if data.available("minilm"):
    ...     load().params["embedding"].shape
    (30522, 384)
    """
    return _load(data.path("minilm") / "model")


def embed(sentences: str | Iterable[str], *, batch_size: int = 32) -> np.ndarray:
    """Sentence vectors of length 1: the normalised mean of the last vectors of the tokens.

        s = mean(x_L) / ‖mean(x_L)‖

    sentences: N texts, or one   batch_size: how many are computed together   ->   (N, 384) float32, or (384,) for one

    Texts of more than 256 tokens are cut. Sentences of similar length are computed together, to save padding.
    Raises: MissingDataError; ValueError for a batch size below 1.
    Source: Reimers & Gurevych 2019, §3.

    >>> if data.available("minilm"):
    ...     a, b, c = embed(["The cat sleeps.", "A kitten is napping.", "Interest rates rose."])
    ...     bool(a @ b > 0.5 > 0.2 > a @ c)
    True
    """
    if isinstance(sentences, str):
        return embed([sentences], batch_size=batch_size)[0]
    within("embed", "whole [1, ∞)", batch_size=batch_size)
    model, params, tokenizer = load()
    ids = [tokenizer.encode(sentence, longest=LONGEST) for sentence in sentences]
    vectors = np.zeros((len(ids), model.config.width), np.float32)
    by_length = sorted(range(len(ids)), key=lambda i: len(ids[i]))
    for start in range(0, len(ids), batch_size):
        rows = by_length[start : start + batch_size]
        tokens, mask = np.zeros((2, len(rows), len(ids[rows[-1]])), int)  # [PAD] is 0
        for row, i in enumerate(rows):
            tokens[row, : len(ids[i])], mask[row, : len(ids[i])] = ids[i], 1
        vectors[rows] = normalize(mean_pool(model.hidden(params, tokens, mask), mask))
    return vectors


def token_vectors(sentence: str) -> tuple[list[str], np.ndarray]:
    """Contextual embeddings: one vector for each token of a sentence, computed from the whole sentence.

    sentence: a text   ->   its T tokens with [CLS] and [SEP] around them, and x_L: (T, 384) float32

    Raises: MissingDataError.
    Source: Devlin et al. 2019, §3.

    >>> if data.available("minilm"):
    ...     tokens, vectors = token_vectors("by the bank")
    ...     print(tokens, vectors.shape)
    ['[CLS]', 'by', 'the', 'bank', '[SEP]'] (5, 384)
    """
    model, params, tokenizer = load()
    ids = np.array([tokenizer.encode(sentence, longest=LONGEST)])
    tokens = ["[CLS]", *tokenizer.tokens(sentence)[: LONGEST - 2], "[SEP]"]
    return tokens, model.hidden(params, ids, np.ones_like(ids))[0]


@functools.cache
def _load(place: Path) -> Pretrained:
    with data.reading("minilm"):
        config, params = load_pretrained(place)
        return Pretrained(Transformer(config), params, WordPiece.load(place / "vocab.txt"))
