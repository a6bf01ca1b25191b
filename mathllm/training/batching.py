"""Training examples: windows of the token stream, and for each token of a window the token after it as the target."""

from __future__ import annotations  # numpy.random is loaded when it is used

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from ..autodiff import ArrayLike
from ..cross_entropy import IGNORED
from ..errors import ShapeError, within
from ..shapes import contract
from ..vectors import token_ids


class Batch(NamedTuple):
    """Inputs and targets, both (B, T): the target of a position is the token that follows it."""

    inputs: np.ndarray
    targets: np.ndarray


@contract("... n")
def next_token_pairs(tokens: ArrayLike) -> Batch:
    """Inputs and targets of next-token prediction: all tokens but the last, and all tokens but the first.

        inputs = x₁ … x_T,      targets = x₂ … x_{T+1}                              (13.7)

    n = T + 1 tokens of text give T targets. The result, (..., T), holds views of the tokens.
    Raises: ShapeError for fewer than two tokens; TypeError for ids that are not integers.

    >>> next_token_pairs([0, 1, 2, 3])
    Batch(inputs=array([0, 1, 2]), targets=array([1, 2, 3]))
    """
    _require_stream("next_token_pairs", tokens, at_least=2)
    return Batch(tokens[..., :-1], tokens[..., 1:])


def token_stream(documents: Iterable[ArrayLike], end: int) -> np.ndarray:
    """One long sequence: the documents one after the other, each closed by the end-of-text token.

    documents: sequences of ids   ->   (n,) int

    Raises: TypeError for ids that are not integers; ValueError for a negative one.
    Source: Radford et al. 2019.

    >>> token_stream([[5, 6], [7]], end=0)
    array([5, 6, 0, 7, 0])
    """
    pieces = (piece for document in documents for piece in (document, [end]))
    return np.concatenate([np.empty(0, int), *(token_ids("token_stream", p).astype(int) for p in pieces)])


@contract("n")
def random_batch(tokens: ArrayLike, batch_size: int, length: int, rng: np.random.Generator | int) -> Batch:
    """A batch of windows that begin at random positions of the stream.

    batch_size: B   length: T   ->   inputs, targets: (B, T)

    Each batch takes one draw from `rng`, so a run that restores the state of `rng` continues with the same batches.
    Raises: ShapeError for a stream shorter than T + 1; ValueError for sizes below 1; TypeError for ids that are not
    integers.

    >>> batch = random_batch(np.arange(100), batch_size=2, length=3, rng=0)
    >>> batch.inputs.shape, bool(np.all(batch.targets == batch.inputs + 1))
    ((2, 3), True)
    """
    within("random_batch", "whole [1, ∞)", batch_size=batch_size, length=length)
    _require_stream("random_batch", tokens, at_least=length + 1)
    starts = np.random.default_rng(rng).integers(len(tokens) - length, size=batch_size)
    return next_token_pairs(tokens[starts[:, None] + np.arange(length + 1)])  # (B, T + 1)


@contract("n")
def validation_batches(tokens: ArrayLike, batch_size: int, length: int) -> Iterator[Batch]:
    """Batches in which every token of the stream but the first is a target exactly once, in order.

    batch_size: B   length: T   ->   batches of (B, T), the last one with fewer rows

    If the last window is not full, its inputs are padded with zeros and its targets with IGNORED (−100), which the loss
    leaves out. To average the losses of batches, weight each by its number of targets that are not IGNORED.
    Raises: ShapeError for fewer than two tokens; ValueError for sizes below 1; TypeError for ids that are not integers.

    >>> for inputs, targets in validation_batches([3, 1, 4, 1, 5], batch_size=1, length=3):
    ...     print(inputs, targets)
    [[3 1 4]] [[1 4 1]]
    [[1 0 0]] [[   5 -100 -100]]
    """
    within("validation_batches", "whole [1, ∞)", batch_size=batch_size, length=length)
    inputs, targets = next_token_pairs(tokens)
    padding = -len(inputs) % length
    inputs = np.pad(inputs, (0, padding)).reshape(-1, length)
    targets = np.pad(targets.astype(np.int64), (0, padding), constant_values=IGNORED).reshape(-1, length)
    return (Batch(inputs[i : i + batch_size], targets[i : i + batch_size]) for i in range(0, len(inputs), batch_size))


def _require_stream(function, tokens, at_least):
    if tokens.shape[-1] < at_least:
        raise ShapeError(f"{function}() needs at least {at_least} tokens, got shape {tokens.shape} (see chapter 13)")
    if tokens.dtype.kind not in "iu":
        raise TypeError(f"{function}() needs integer token ids, got {tokens.dtype} values")
