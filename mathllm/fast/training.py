"""Training with AdamW on one vector, in place: each part of it is updated while it is in the cache."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..gradient_descent import adamw, adamw_step, decay_of_entries
from ..training import (
    TrainingProgress,
    TrainingState,
    parallel_value_and_grad,
    shared,
    target_count,
    training_loop,
    usable_workers,
)
from ..training import train as readable_train
from ..trees import flatten, tree_leaves

_PART = 1 << 16  # numbers of the parameters that are updated at a time


def train(
    state: TrainingState, loss: Callable, batches: Callable, steps: int, *,
    step: Callable = adamw_step, workers: int = 1, count: Callable = target_count, **options: Any,
) -> tuple[TrainingState, list[TrainingProgress]]:  # fmt: skip
    """`mathllm.train` with the same arguments and, up to rounding, the same result, sooner.

    With AdamW the parameters are one vector, updated in place in parts that fit into the cache; the state of the
    beginning is not changed.

    >>> from mathllm.training import training_state
    >>> loss = lambda params, x: ((params["centre"] - x) ** 2).mean()
    >>> state = training_state({"centre": np.zeros(1)}, np.random.default_rng(0))
    >>> state, history = train(state, loss, lambda rng: rng.normal(3, 1, (50, 1)), 100, learning_rate=0.1)
    >>> state.step, state.params["centre"].round(1)
    (100, array([3.]))
    """
    if len({np.asarray(leaf).dtype for leaf in tree_leaves(state.params)}) != 1:  # one vector has one dtype
        return readable_train(state, loss, batches, steps, step=step, workers=workers, count=count, **options)
    (params, vector), workers = shared(state.params), usable_workers(state.params, workers)
    with parallel_value_and_grad(params, loss, workers, count) as value_and_gradient:
        state = state._replace(params=params)
        if step is adamw_step:
            state, step = _in_place(state, vector)
        return training_loop(state, loss, value_and_gradient, batches, steps, step=step, count=count, **options)


def _in_place(state, vector):
    """The state with means and squares of its own, and the step of AdamW that overwrites them and the parameters."""
    (m, views), (v, _) = flatten(state.optimizer["mean"]), flatten(state.optimizer["square"])
    moments = {"mean": views(m), "square": views(v)}

    def step(params, gradient, optimizer, *, weight_decay=0.01, **options):
        g, _ = flatten(gradient)
        decay = decay_of_entries("train", params, weight_decay=weight_decay)
        decay = np.broadcast_to(np.asarray(decay, vector.dtype), vector.shape)
        number = optimizer["step"] + 1
        for start in range(0, len(vector), _PART):
            part = slice(start, start + _PART)
            adamw(vector[part], g[part], m[part], v[part], number, weight_decay=decay[part], **options)
        return params, moments | {"step": number}

    return state._replace(optimizer=moments | {"step": state.optimizer["step"]}), step
