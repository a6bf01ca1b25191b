"""Supervised fine-tuning: labels for the completion alone, and low-rank adapters (LoRA) in place of all weights."""

from __future__ import annotations  # numpy.random is loaded when it is used

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..autodiff import Array, ArrayLike
from ..cross_entropy import IGNORED, cross_entropy
from ..errors import ShapeError
from ..matrices import lora_init, lora_merge
from ..shapes import contract
from ..trees import rebuild, tree_leaves, walk
from ..vectors import token_ids


@contract("B T, B -> B T")
def completion_labels(tokens: ArrayLike, prompt_lengths: ArrayLike, ignore_index: int = IGNORED) -> np.ndarray:
    """Labels for supervised fine-tuning: the tokens, with `ignore_index` in place of those of the prompt.

    Raises: ValueError for a length that is not a whole number from 0 to T, or a negative token; TypeError for tokens
    that are not integers.

    >>> completion_labels([[5, 6, 7, 8]], [2])
    array([[-100, -100,    7,    8]])
    """
    length = tokens.shape[1]
    tokens = token_ids("completion_labels", tokens).astype(np.int64)
    if not np.all((prompt_lengths >= 0) & (prompt_lengths <= length) & (prompt_lengths % 1 == 0)):
        raise ValueError(f"completion_labels() needs lengths from 0 to {length}, got {prompt_lengths.tolist()}")
    return np.where(np.arange(length) < prompt_lengths[:, None], ignore_index, tokens)


@contract("B T V, B T -> B")
def completion_log_probabilities(logits: Array, labels: ArrayLike, ignore_index: int = IGNORED) -> np.ndarray:
    """The log-probability of each completion: the sum of the log-probabilities of its tokens.

        ln π(y|x) = Σₜ ln π(yₜ | x, y₁ … yₜ₋₁)                                      (15.1)

    The logits at position t predict the token at t + 1. Labels are `ignore_index` for tokens of the prompt and padding.

    Raises: what cross_entropy() refuses, such as labels outside the vocabulary.

    >>> completion_log_probabilities(np.zeros((1, 3, 4)), [[-100, 1, 2]]).round(4)
    array([-2.7726])
    """
    losses = cross_entropy(logits[:, :-1], labels[:, 1:], ignore_index=ignore_index, reduction="none")  # (B, T − 1)
    return -losses.sum(axis=-1)


def lora_adapters(params: Any, names: Iterable[str], rank: int, rng: np.random.Generator | int) -> Any:
    """Trainable low-rank factors for every matrix with one of these names, in the structure of the parameters.

    params: nested dictionaries and lists   names: of matrices, as ("query", "value")
    ->   the same structure: {"A", "B"}, as lora_init() makes them, for these matrices, and None for all other arrays

    Raises: ValueError if no matrix has one of the names.
    Source: Hu et al. 2021, §4.2.

    >>> params = {"block": {"query": np.eye(4), "bias": np.ones(4)}}
    >>> adapters = lora_adapters(params, ["query"], 2, np.random.default_rng(0))
    >>> adapters["block"]["query"]["A"].shape
    (4, 2)
    """
    names = list(names)
    rng = np.random.default_rng(rng)

    def adapter(path, weight):
        return lora_init(*weight.shape, rank, rng) if path[-1] in names and weight.ndim == 2 else None

    adapters = rebuild(params, (adapter(*leaf) for leaf in walk(params)))
    if not tree_leaves(adapters):
        raise ValueError(f"lora_adapters() found no matrix called {' or '.join(names)} in the parameters")
    return adapters


def with_adapters(params: Any, adapters: Any, scale: float = 1.0) -> Any:
    """The parameters with the update of each adapter added to its matrix: W + s·AB.

    Differentiable in the adapters: train them with `params` fixed, then call this once more to merge them.

    Raises: ShapeError for an adapter without a matrix.

    >>> W, adapter = np.eye(2), {"A": np.array([[1.0], [1.0]]), "B": np.array([[0.5, 0.0]])}
    >>> with_adapters({"query": W}, {"query": adapter})["query"]
    array([[1.5, 0. ],
           [0.5, 1. ]])
    """
    factors = dict(walk(adapters))

    def adapted(path, weight):
        if (*path, "A") not in factors:
            return weight
        return lora_merge(weight, factors.pop((*path, "A")), factors.pop((*path, "B")), scale=scale)

    merged = rebuild(params, (adapted(*leaf) for leaf in walk(params)))
    if factors:
        raise ShapeError(f"with_adapters() found no matrix for the adapter at {next(iter(factors))[:-1]}")
    return merged
