"""Seeing says little about cause: put a number of a good run into a bad one, and see whether the answer comes back."""

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
    clean, corrupted = np.asarray(clean), np.asarray(corrupted)
    if clean.shape != corrupted.shape:
        raise ShapeError(f"patching needs two prompts of one shape, got {clean.shape} and {corrupted.shape}")
    record = {}
    best = metric(model(params, clean, record=record))
    worst = metric(model(params, corrupted))
    if best == worst:
        raise ValueError(f"patching needs prompts that the metric tells apart, got {best} for both")

    def patched(name):
        def patch(x):
            if name not in record or positions is None:
                return record.get(name, x)
            mixed = x.copy()
            mixed[:, positions] = record[name][:, positions]
            return mixed

        return metric(model(params, corrupted, replace={name: patch}))

    return {name: float((patched(name) - worst) / (best - worst)) for name in names}
