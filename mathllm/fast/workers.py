"""Training with worker processes that share the memory of the parameters, and with AdamW on one vector, in place.

The threads of one process wait for Python's lock, small models as long as for their numbers; processes have a lock
each. A forked process begins with everything its parent had, also the loss. Only batches go through a pipe: the
parameters are one vector in memory that all processes share, and so is the gradient of each.
"""

import mmap
import multiprocessing
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from ..autodiff import value_and_grad
from ..errors import within
from ..gradient_descent import adamw, adamw_step, decay_of_entries
from ..training import TrainingProgress, TrainingState, divide, one_blas_thread, target_count, training_loop
from ..training import train as readable_train
from ..trees import flatten, tree_leaves

_PART = 1 << 16  # numbers of the parameters that are updated at a time


def train(
    state: TrainingState, loss: Callable, batches: Callable, steps: int, *,
    step: Callable = adamw_step, workers: int = 1, count: Callable = target_count, **options: Any,
) -> tuple[TrainingState, list[TrainingProgress]]:  # fmt: skip
    """`mathllm.train` with the same arguments and, up to rounding, the same result, sooner.

    `workers` are processes. With AdamW the parameters are one vector, updated in place in parts that fit into the
    cache; the state of the beginning is not changed. Where the system cannot fork (Windows, a browser) only one worker
    is used.

    >>> from mathllm.training import training_state
    >>> loss = lambda params, x: ((params["centre"] - x) ** 2).mean()
    >>> state = training_state({"centre": np.zeros(1)}, np.random.default_rng(0))
    >>> state, history = train(state, loss, lambda rng: rng.normal(3, 1, (50, 1)), 100, learning_rate=0.1)
    >>> state.step, state.params["centre"].round(1)
    (100, array([3.]))
    """
    within("train", "whole [1, ∞)", workers=workers)
    if "fork" not in multiprocessing.get_all_start_methods() or sys.platform == "emscripten":
        workers = 1
    if len({np.asarray(leaf).dtype for leaf in tree_leaves(state.params)}) != 1:  # one vector has one dtype
        return readable_train(state, loss, batches, steps, step=step, workers=workers, count=count, **options)
    with one_blas_thread(), _team(state.params, loss, workers, count) as (params, vector, value_and_gradient):
        state = state._replace(params=params)
        if step is adamw_step:
            state, step = _in_place(state, vector)
        return training_loop(state, loss, value_and_gradient, batches, steps, step=step, count=count, **options)


def _in_place(state, vector):
    """The state with means and squares of its own, and the step of AdamW that overwrites them and the parameters."""
    (m, views), (v, _) = flatten(state.optimizer["mean"]), flatten(state.optimizer["square"])
    shared = {"mean": views(m), "square": views(v)}

    def step(params, gradient, optimizer, *, weight_decay=0.01, **options):
        g, _ = flatten(gradient)
        decay = decay_of_entries("train", params, weight_decay=weight_decay)
        decay = np.broadcast_to(np.asarray(decay, vector.dtype), vector.shape)
        number = optimizer["step"] + 1
        for start in range(0, len(vector), _PART):
            part = slice(start, start + _PART)
            adamw(vector[part], g[part], m[part], v[part], number, weight_decay=decay[part], **options)
        return params, shared | {"step": number}

    return state._replace(optimizer=shared | {"step": state.optimizer["step"]}), step


@contextmanager
def _team(params, loss, workers, count) -> Iterator[tuple]:
    """The parameters, as nested arrays and as the vector that these are views of, and value_and_gradient."""
    start, views = flatten(params)
    vector, *gradients = (_shared(start) for _ in range(1 + workers))
    vector[...] = start
    params, own = views(vector), views(gradients[0])
    weighted = value_and_grad(lambda params, batch, weight: loss(params, batch) * weight)

    def work(number, shard, weight):
        value, gradient = weighted(params, shard, weight)
        np.concatenate([np.ravel(leaf) for leaf in tree_leaves(gradient)], out=gradients[number])
        return value

    def value_and_gradient(given, batch):
        if given is not params:
            np.concatenate([np.ravel(leaf) for leaf in tree_leaves(given)], out=vector)
        shards, weights = divide(batch, workers, count) if workers > 1 else ([batch], [1])
        busy = team[: len(shards) - 1]
        for worker, *task in zip(busy, shards[1:], weights[1:], strict=True):
            worker.connection.send(task)
        values = [work(0, shards[0], weights[0]), *(worker.answer() for worker in busy)]
        for other in gradients[1 : len(values)]:
            gradients[0] += other
        return sum(values), own

    team = []
    try:
        team.extend(_Worker(work, number) for number in range(1, workers))
        yield params, vector, value_and_gradient
    finally:
        for worker in reversed(team):  # a process has the connections of those that were started before it
            worker.connection.close()
            worker.process.join()


class _Worker:
    """A process that waits for shards of a batch and answers with the loss, or with the exception."""

    def __init__(self, work, number):
        context = multiprocessing.get_context("fork")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=self._serve, args=(work, number, theirs), daemon=True)
        # Newer versions of Python warn of locks that another thread may hold.
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
            self.process.start()
        theirs.close()

    def _serve(self, work, number, connection):
        self.connection.close()
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C interrupts the parent
        with suppress(EOFError, BrokenPipeError):  # the parent has finished
            while task := connection.recv():
                try:
                    answer = work(number, *task)
                except Exception as error:  # the parent raises it
                    answer = error
                connection.send(answer)

    def answer(self):
        try:
            answer = self.connection.recv()
        except (EOFError, ConnectionResetError):
            self.process.join()
            raise RuntimeError(f"a worker process ended too early (exit code {self.process.exitcode})") from None
        if isinstance(answer, Exception):
            raise answer
        return answer


def _shared(array):
    """An array of the same shape and dtype in memory that forked processes share."""
    return np.frombuffer(mmap.mmap(-1, max(array.nbytes, 1)), array.dtype, array.size)
