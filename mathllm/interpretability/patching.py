"""Activation patching: an intermediate of one run takes the place of the same intermediate in another run."""

from __future__ import annotations  # NumPy loads its random numbers when they are used

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from ..autodiff import ArrayLike
from ..errors import suggest
from ..shapes import contract
from ..transformer import Transformer, record_to


def replace_with(replacements: dict[str, ArrayLike | Callable]) -> Callable:
    """A tap that replaces intermediates: `model(params, tokens, tap=replace_with({"blocks.0.output": x}))`.

    replacements: for the name of an intermediate an array of its shape, or a function of its value

    Raises: ValueError at the end of the run for a name that did not occur in it.

    >>> tap = replace_with({"embeddings": lambda x: x + 1})
    >>> tap("embeddings", np.ones(2)), tap("final_norm", np.ones(2))
    (array([2., 2.]), array([1., 1.]))
    """
    seen = set()

    def tap(name, value):
        seen.add(name)
        if name == "logits" and (missing := [name for name in replacements if name not in seen]):
            raise ValueError(f"this model has no intermediate {missing[0]!r}{suggest(missing[0], seen)}")
        if name not in replacements:
            return value
        new = replacements[name]
        return new(value) if callable(new) else np.asarray(new, value.dtype)

    return tap


@contract("_, _, B T, B T")
def patch_effect(
    model: Transformer, params: dict, clean: ArrayLike, corrupted: ArrayLike, name: str, metric: Callable,
    positions: Sequence[int] | None = None,
) -> float:  # fmt: skip
    """How much of the clean answer returns if one intermediate of the corrupted run is that of the clean run.

        effect = (μ(patched) − μ(corrupted)) / (μ(clean) − μ(corrupted))            (16.8)

    clean, corrupted: ids of two prompts of one length   name: of an intermediate, "blocks.0.attention.output"
    metric: μ, logits (B, T, V) -> one number, such as the logit of the right answer minus that of the wrong one
    positions: those to patch, all if not given   ->   0 if nothing changes, 1 if the patched run equals the clean one

    Raises: ValueError for an unknown name, or if the metric is the same in both runs, so that the effect would be
    divided by 0.
    Source: Meng et al. 2022, §2 (causal tracing); Wang et al. 2023.

    >>> from mathllm.interpretability import induction_model
    >>> model, params = induction_model(5, 4)
    >>> clean, corrupted = [[1, 2, 3, 1]], [[1, 4, 3, 1]]
    >>> prefers_2 = lambda logits: float(logits[0, -1, 2] - logits[0, -1, 4])
    >>> round(patch_effect(model, params, clean, corrupted, "blocks.1.attention.output", prefers_2), 6)
    1.0
    >>> round(patch_effect(model, params, clean, corrupted, "blocks.0.attention.output", prefers_2), 6)
    0.0
    """
    record, effect = _clean_run(model, params, clean, corrupted, metric)
    places = [slice(None) if positions is None else positions] * len(corrupted)
    return effect(_patched(model, params, corrupted, name, record, places))


@contract("_, _, 1 T, 1 T")
def patch_map(
    model: Transformer, params: dict, clean: ArrayLike, corrupted: ArrayLike, names: Sequence[str], metric: Callable
) -> np.ndarray:
    """The effect (16.8) of each intermediate at each position: at which position and depth the answer is decided.

    Takes what `patch_effect` takes, with a list of names   ->   (len(names), T)

    All positions of a name are patched in one run, each in its own copy of the prompt. In a causal model nothing before
    the first difference of the prompts can have an effect; those entries are 0.
    Raises: as `patch_effect`.

    >>> from mathllm.interpretability import induction_model
    >>> model, params = induction_model(5, 4)
    >>> names = [f"blocks.{n}.attention.output" for n in (0, 1)]
    >>> prefers_2 = lambda logits: float(logits[0, -1, 2] - logits[0, -1, 3])
    >>> patch_map(model, params, [[1, 2, 3, 1]], [[0, 2, 3, 1]], names, prefers_2).round(6)  # position 1, then the last
    array([[0., 1., 0., 0.],
           [0., 0., 0., 1.]])
    """
    record, effect = _clean_run(model, params, clean, corrupted, metric)
    first = int(np.argmax(clean[0] != corrupted[0])) if model.config.causal else 0
    places = range(first, corrupted.shape[1])
    copies = np.repeat(corrupted, len(places), axis=0)
    effects = np.zeros((len(names), corrupted.shape[1]))
    for row, name in enumerate(names):
        logits = _patched(model, params, copies, name, record, places)
        effects[row, first:] = [effect(one[None]) for one in logits]
    return effects


def without_heads(model: Transformer, params: dict, heads: Iterable[tuple[int, int]]) -> dict:
    """The parameters with some attention heads ablated: the rows of W_o that carry their output are zero.

    heads: pairs (block, head), counted from 0   ->   parameters; those given are not changed, and shared if unchanged

    Raises: IndexError for a block or a head that the model does not have.
    Source: Michel et al. 2019.

    >>> from mathllm.interpretability import induction_model
    >>> model, params = induction_model(5, 4)
    >>> ablated = without_heads(model, params, [(0, 0)])  # without the previous-token head
    >>> [int(model(p, [[1, 2, 3, 1]])[0, -1].argmax() == 2) for p in (params, ablated)]
    [1, 0]
    """
    K, H, blocks = model.config.head_width, model.config.heads, list(params["blocks"])
    for block, head in heads:
        if not (0 <= block < len(blocks) and 0 <= head < H):
            raise IndexError(f"without_heads() needs one of {len(blocks)} blocks of {H} heads, got {block, head}")
        attention = blocks[block]["attention"]
        output = attention["output"].copy()
        output[head * K : (head + 1) * K] = 0
        blocks[block] = blocks[block] | {"attention": attention | {"output": output}}
    return params | {"blocks": blocks}


def _patched(model, params, tokens, name, record, places):
    """The logits of a run with one intermediate replaced by that of the record: in row i at the positions places[i]."""

    def patch(x):
        clean, mixed = np.broadcast_to(record[name], x.shape), x.copy()
        for row, place in enumerate(places):
            mixed[row, ..., place, :] = clean[row, ..., place, :]
        return mixed

    return model(params, tokens, tap=replace_with({name: patch}))


def _clean_run(model, params, clean, corrupted, metric):
    """The record of the clean run, and the effect (16.8) as a function of the logits of a patched run."""
    best = metric(model(params, clean, tap=record_to(record := {})))
    worst = metric(model(params, corrupted))
    if best == worst:
        raise ValueError(f"patching needs prompts with different values of the metric, got {best} for both")
    return record, lambda logits: float((metric(logits) - worst) / (best - worst))
