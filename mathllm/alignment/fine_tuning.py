"""Show the model what an answer looks like: supervised fine-tuning, of all weights or through thin matrices."""

from __future__ import annotations  # numpy.random is loaded when it is used

import numpy as np

from ..errors import ShapeError
from ..matrices import lora_init, lora_merge
from ..softmax import log_softmax


def completion_labels(tokens, prompt_lengths, ignore_index: int = -100) -> np.ndarray:
    """Labels for supervised fine-tuning: the tokens, with those of the prompt marked as not to be learned.

    tokens: (B, T) int   prompt_lengths: (B,) int   ->   (B, T) int

    Raises: ShapeError if there is not one prompt length for each text; ValueError for a length outside 0 … T.
    Source: 001, §11.1 (SFT).

    >>> completion_labels([[5, 6, 7, 8]], [2])
    array([[-100, -100,    7,    8]])
    """
    tokens, lengths = np.asarray(tokens), np.asarray(prompt_lengths)
    if tokens.ndim != 2 or lengths.shape != tokens.shape[:1]:
        raise ShapeError(
            f"completion_labels() needs tokens (B, T) and B prompt lengths, got {tokens.shape} and {lengths.shape}"
        )
    if np.any((lengths < 0) | (lengths > tokens.shape[1])):
        raise ValueError(f"completion_labels() needs lengths from 0 to {tokens.shape[1]}, got {lengths.tolist()}")
    return np.where(np.arange(tokens.shape[1]) < lengths[:, None], ignore_index, tokens)


def completion_log_probabilities(logits, labels, ignore_index: int = -100):
    """How probable a model finds each completion: the sum of its tokens' log-probabilities.

        ln π(y|x) = Σₜ ln π(yₜ | x, y₁ … yₜ₋₁)                                      (15.1)

    logits: (B, T, V), position t predicts token t + 1   labels: (B, T) int, `ignore_index` where the token belongs to
    the prompt or is padding   ->   (B,)

    Raises: ShapeError if the sizes do not fit.
    Source: 001, §11.2–11.4; chapter 05 (the chain rule of probability).

    >>> completion_log_probabilities(np.zeros((1, 3, 4)), [[-100, 1, 2]]).round(4)
    array([-2.7726])
    """
    labels = np.asarray(labels)
    if logits.ndim != 3 or labels.shape != logits.shape[:2]:
        shapes = f"{logits.shape} and {labels.shape}"
        raise ShapeError(f"completion_log_probabilities() needs logits (B, T, V) and labels (B, T), got {shapes}")
    counted = labels[:, 1:] != ignore_index  # (B, T − 1)
    texts, places = np.indices(counted.shape)
    log_p = log_softmax(logits[:, :-1])[texts, places, np.where(counted, labels[:, 1:], 0)]
    return (log_p * counted.astype(float)).sum(axis=-1)


def lora_adapters(params, names, rank: int, rng: np.random.Generator):
    """Thin trainable matrices for every weight with one of these names, in the structure of the parameters.

    params: nested dicts and lists   names: of matrices, as ("query", "value")
    ->   the same structure with only these leaves, each {"A", "B"} as `lora_init` makes them

    Raises: ValueError if no matrix has one of the names.
    Source: 002, LoRA; Hu et al. 2021, §4.2.

    >>> params = {"block": {"query": np.eye(4), "bias": np.ones(4)}}
    >>> adapters = lora_adapters(params, ["query"], 2, np.random.default_rng(0))
    >>> adapters["block"]["query"]["A"].shape
    (4, 2)
    """
    adapters = _adapters(params, set(names), rank, rng)
    if adapters is None:
        raise ValueError(f"lora_adapters() found no matrix called {' or '.join(names)} in the parameters")
    return adapters


def _adapters(params, names, rank, rng):
    if isinstance(params, dict):
        found = {}
        for name, branch in params.items():
            if name in names and not isinstance(branch, dict | list):
                found[name] = lora_init(rng, *branch.shape, rank)
            elif (below := _adapters(branch, names, rank, rng)) is not None:
                found[name] = below
        return found or None
    if isinstance(params, list):
        below = [_adapters(branch, names, rank, rng) for branch in params]
        return below if any(branch is not None for branch in below) else None
    return None


def with_adapters(params, adapters, scale: float = 1.0):
    """The parameters with the adapters' updates added: W + s·AB wherever there is an adapter.

    Differentiable in the adapters: train them with `params` fixed, then call this once to merge.

    >>> W, adapter = np.eye(2), {"A": np.array([[1.0], [1.0]]), "B": np.array([[0.5, 0.0]])}
    >>> with_adapters({"query": W}, {"query": adapter})["query"]
    array([[1.5, 0. ],
           [0.5, 1. ]])
    """
    if adapters is None:
        return params
    if isinstance(params, dict):
        return {name: with_adapters(branch, adapters.get(name), scale) for name, branch in params.items()}
    if isinstance(params, list):
        return [with_adapters(p, a, scale) for p, a in zip(params, adapters, strict=True)]
    return lora_merge(params, adapters["A"], adapters["B"], scale=scale)
