"""Seeing says little about cause: put a number of a good run into a bad one, and see whether the answer comes back."""

import dataclasses
import re

import numpy as np

from ..errors import ShapeError


def patch_effect(model, params, clean, corrupted, name: str, metric, positions=None) -> float:
    """How much of the answer comes back if one intermediate of the corrupted run is that of the clean run.

        effect = (m(patched) − m(corrupted)) / (m(clean) − m(corrupted))            (16.8)

    clean, corrupted: (B, T) int, two prompts of one length   name: of an intermediate, "blocks.0.attention.output"
    metric: logits (B, T, V) -> one number, such as the logit of the right answer minus that of the wrong one
    positions: those to patch, all if not given   ->   0 where nothing comes back, 1 where all does

    Raises: ShapeError if the prompts differ in shape; ValueError for an unknown name, or if the metric is the same in
    both runs, so that there is nothing to bring back.
    Source: 004, circuits; Meng et al. 2022, §2 (causal tracing); Wang et al. 2023.

    >>> from mathllm.interpretability import induction_model
    >>> model, params = induction_model(5, 4)
    >>> clean, corrupted = [[1, 2, 3, 1]], [[1, 4, 3, 1]]
    >>> prefers_2 = lambda logits: float(logits[0, -1, 2] - logits[0, -1, 4])
    >>> round(patch_effect(model, params, clean, corrupted, "blocks.1.attention.output", prefers_2), 6)
    1.0
    >>> round(patch_effect(model, params, clean, corrupted, "blocks.0.attention.output", prefers_2), 6)
    0.0
    """
    effects = patch_effects(model, params, clean, corrupted, [name], metric, positions)
    return effects[name]


def patch_effects(model, params, clean, corrupted, names, metric, positions=None) -> dict[str, float]:
    """The effect (16.8) of each of several intermediates, patched one at a time.

    Takes what `patch_effect` takes, with a list of names   ->   {name: effect}

    >>> from mathllm.interpretability import induction_model
    >>> model, params = induction_model(5, 4)
    >>> names = [f"blocks.{n}.attention.output" for n in (0, 1)]
    >>> prefers_2 = lambda logits: float(logits[0, -1, 2] - logits[0, -1, 3])
    >>> effects = patch_effects(model, params, [[1, 2, 3, 1]], [[0, 2, 3, 1]], names, prefers_2, positions=[1])
    >>> {name: round(effect, 6) for name, effect in effects.items()}  # "1 stood before 2" is written at position 1
    {'blocks.0.attention.output': 1.0, 'blocks.1.attention.output': 0.0}
    """
    corrupted, record, below, best, worst = _runs(model, params, clean, corrupted, metric)

    def patched(name):
        def patch(x):
            if name not in record or positions is None:
                return record.get(name, x)
            mixed = x.copy()
            mixed[:, positions] = record[name][:, positions]
            return mixed

        return metric(_run_from(model, params, corrupted, below, name, patch))

    return {name: float((patched(name) - worst) / (best - worst)) for name in names}


def patch_map(model, params, clean, corrupted, names, metric) -> np.ndarray:
    """The effect (16.8) of each intermediate at each position: where, and at which depth, the answer is decided.

    Takes what `patch_effects` takes, with one prompt each, (1, T)   ->   (len(names), T)

    All positions of a name are patched in one run, each in a copy of the prompt of its own, and the run begins at the
    block of that name: below it nothing has changed. In a causal model nothing before the first difference of the
    prompts can matter; those entries are 0.
    Raises: as `patch_effect`; ShapeError for more than one prompt.

    >>> from mathllm.interpretability import induction_model
    >>> model, params = induction_model(5, 4)
    >>> names = [f"blocks.{n}.attention.output" for n in (0, 1)]
    >>> prefers_2 = lambda logits: float(logits[0, -1, 2] - logits[0, -1, 3])
    >>> patch_map(model, params, [[1, 2, 3, 1]], [[0, 2, 3, 1]], names, prefers_2).round(6)  # position 1, then the last
    array([[0., 1., 0., 0.],
           [0., 0., 0., 1.]])
    """
    corrupted, record, below, best, worst = _runs(model, params, clean, corrupted, metric)
    if len(corrupted) != 1:
        raise ShapeError(f"patch_map() needs one prompt of each kind, got {len(corrupted)}")
    T = corrupted.shape[1]
    first = int(np.argmax(np.asarray(clean)[0] != corrupted[0])) if model.config.causal else 0
    places, copies = np.arange(first, T), np.arange(T - first)
    many = np.repeat(corrupted, len(copies), axis=0)
    effects = np.zeros((len(names), T))
    for row, name in enumerate(names):

        def patch(x, name=name):
            mixed = x.copy()
            if name in record:
                mixed[copies, places] = record[name][0, places]
            return mixed

        logits = _run_from(model, params, many, below, name, patch)
        found = np.array([metric(logits[i : i + 1]) for i in copies])
        effects[row, places] = (found - worst) / (best - worst)
    return effects


def without_heads(model, params, heads):
    """The parameters with some attention heads silenced: the rows of W_o that carry their output are zero.

    heads: pairs (block, head), counted from 0   ->   parameters; nothing is changed in those given, and what is not
    changed is shared

    Raises: IndexError for a block or a head that the model does not have.
    Source: Michel et al. 2019.

    >>> from mathllm.interpretability import induction_model
    >>> model, params = induction_model(5, 4)
    >>> blind = without_heads(model, params, [(0, 0)])  # nobody says what stood before
    >>> [int(model(p, [[1, 2, 3, 1]])[0, -1].argmax() == 2) for p in (params, blind)]
    [1, 0]
    """
    K, blocks = model.config.head_width, list(params["blocks"])
    for block, head in heads:
        if not (0 <= block < len(blocks) and 0 <= head < model.config.heads):
            raise IndexError(
                f"without_heads() knows {len(blocks)} blocks of {model.config.heads} heads, got {block, head}"
            )
        attention = blocks[block]["attention"]
        output = attention["output"].copy()
        output[head * K : (head + 1) * K] = 0
        blocks[block] = blocks[block] | {"attention": attention | {"output": output}}
    return params | {"blocks": blocks}


def _runs(model, params, clean, corrupted, metric):
    """The corrupted prompt as an array, the records of the clean and the corrupted run, and the metric of both."""
    clean, corrupted = np.asarray(clean), np.asarray(corrupted)
    if clean.shape != corrupted.shape:
        raise ShapeError(f"patching needs two prompts of one shape, got {clean.shape} and {corrupted.shape}")
    record, below = {}, {}
    best = metric(model(params, clean, record=record))
    worst = metric(model(params, corrupted, record=below))
    if best == worst:
        raise ValueError(f"patching needs prompts that the metric tells apart, got {best} for both")
    return corrupted, record, below, best, worst


def _run_from(model, params, tokens, below, name, patch):
    """The logits of a run with one intermediate patched; the blocks below it are spared, for there nothing changes.

    below: the record of the run without a patch, of as many prompts as tokens has or of one
    """
    inside = re.match(r"blocks\.(\d+)\.", name)
    first = int(inside[1]) if inside else 0
    if not 0 < first < model.config.layers:
        return model(params, tokens, replace={name: patch})
    model._replaceable([name])
    upper = type(model)(dataclasses.replace(model.config, layers=model.config.layers - first))
    rest = params | {"blocks": params["blocks"][first:]}
    stream = below[f"blocks.{first - 1}.output"]
    stream = np.broadcast_to(stream, (len(tokens), *stream.shape[1:]))
    return upper(rest, tokens, replace={"embeddings": stream, name.replace(inside[0], "blocks.0."): patch})
