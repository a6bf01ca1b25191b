"""How does a long stream of tokens become lessons? Cut out a window; the answer to each token is the one after it."""

from __future__ import annotations  # numpy.random is loaded when it is used

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from ..cross_entropy import IGNORED
from ..errors import ShapeError
from ..gradient_descent import minibatches


class Batch(NamedTuple):
    """Inputs and targets, both (B, T): the target of a position is the token that follows it."""

    inputs: np.ndarray
    targets: np.ndarray


def next_token_pairs(tokens) -> Batch:
    """Inputs and targets from a piece of text: everything but the last token, everything but the first.

        inputs = x₁ … x_T,      targets = x₂ … x_{T+1}                              (13.7)

    tokens: (..., T + 1)   ->   inputs, targets: (..., T), views of the tokens

    T + 1 tokens of text give T signals. Where a document says T − 1 signals from length T, its T counts the text, and
    the targets are the inputs shifted to the left (erratum B15).
    Raises: ShapeError for fewer than two tokens.
    Source: 004, trace, step 8.

    >>> next_token_pairs([0, 1, 2, 3])
    Batch(inputs=array([0, 1, 2]), targets=array([1, 2, 3]))
    """
    tokens = np.asarray(tokens)
    if tokens.ndim == 0 or tokens.shape[-1] < 2:
        raise ShapeError(f"next_token_pairs() needs at least two tokens, got shape {tokens.shape} (see chapter 13)")
    return Batch(tokens[..., :-1], tokens[..., 1:])


def token_stream(documents: Iterable, end: int) -> np.ndarray:
    """One long sequence: the documents one after the other, each closed by the end-of-text token.

    documents: sequences of ids   ->   (n,) int

    Source: 004, tokenization (special tokens); Radford et al. 2019.

    >>> token_stream([[5, 6], [7]], end=0)
    array([5, 6, 0, 7, 0])
    """
    parts = [np.append(np.asarray(document, int), end) for document in documents]
    return np.concatenate([np.empty(0, int), *parts])


def random_batch(tokens, size: int, length: int, rng: np.random.Generator) -> Batch:
    """A batch of windows that begin anywhere in the stream.

    tokens: (n,)   size: B   length: T   ->   inputs, targets: (B, T)

    One draw from `rng` for each batch: who keeps the state of `rng` continues with the same batches.
    Raises: ShapeError for a stream shorter than T + 1; ValueError for sizes below 1.
    Source: 002, training loop; 004, trace, step 8.

    >>> batch = random_batch(np.arange(100), size=2, length=3, rng=np.random.default_rng(0))
    >>> batch.inputs.shape, bool(np.all(batch.targets == batch.inputs + 1))
    ((2, 3), True)
    """
    tokens = _require_stream("random_batch", tokens, size, length)
    starts = rng.integers(len(tokens) - length, size=size)
    return next_token_pairs(tokens[starts[:, None] + np.arange(length + 1)])  # (B, T + 1)


def epoch_batches(tokens, size: int, length: int, rng: np.random.Generator) -> Iterator[Batch]:
    """Every window of the stream once, in random order: one epoch.

    tokens: (n,)   ->   batches of (B, T); windows do not overlap, what is left at the end of the stream is dropped, and
    so is an incomplete last batch

    Raises: ShapeError for a stream shorter than T + 1; ValueError for sizes below 1.

    >>> batches = list(epoch_batches(np.arange(13), size=2, length=3, rng=np.random.default_rng(0)))
    >>> len(batches), sorted(int(i) for batch in batches for i in batch.inputs.ravel())
    (2, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11])
    """
    tokens = _require_stream("epoch_batches", tokens, size, length)
    windows = (len(tokens) - 1) // length
    chosen = (starts for starts in minibatches(windows, size, rng) if len(starts) == size)
    return (next_token_pairs(tokens[starts[:, None] * length + np.arange(length + 1)]) for starts in chosen)


def validation_batches(tokens, size: int, length: int) -> Iterator[Batch]:
    """Every token of the stream but the first as a target, exactly once and always in the same order.

    tokens: (n,)   ->   batches of (B, T), the last one with fewer rows

    Where the last window is not full, the inputs are continued with zeros and their targets are IGNORED (−100), which
    the loss leaves out. Weigh the loss of a batch by its number of targets that count.
    Raises: ShapeError for fewer than two tokens; ValueError for sizes below 1.

    >>> for inputs, targets in validation_batches([3, 1, 4, 1, 5], size=1, length=3):
    ...     print(inputs, targets)
    [[3 1 4]] [[1 4 1]]
    [[1 0 0]] [[   5 -100 -100]]
    """
    tokens = _require_stream("validation_batches", tokens, size, 1 if length >= 1 else length)
    inputs, targets = next_token_pairs(tokens)
    missing = -len(inputs) % length
    inputs = np.concatenate([inputs, np.zeros(missing, tokens.dtype)]).reshape(-1, length)
    ignored = np.full(missing, IGNORED)
    targets = np.concatenate([targets, ignored]).reshape(-1, length)
    return (Batch(inputs[i : i + size], targets[i : i + size]) for i in range(0, len(inputs), size))


def _require_stream(name, tokens, size, length):
    tokens = np.asarray(tokens)
    if size < 1 or length < 1:
        raise ValueError(f"{name}() needs a size and a length of at least 1, got {size} and {length}")
    if tokens.dtype.kind not in "iu" and tokens.size:
        raise TypeError(f"{name}() needs integer token ids, got {tokens.dtype} values")
    if tokens.ndim != 1 or len(tokens) < length + 1:
        raise ShapeError(f"{name}() needs one stream of at least {length + 1} tokens, got shape {tokens.shape}")
    return tokens
