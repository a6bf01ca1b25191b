"""How do two cores share one training step? Each takes some rows of the batch; the gradients are averaged.

The threads of one process see the same parameters, so nothing is copied, and NumPy releases Python's lock while it
computes. Each worker's matrix products use one thread: two workers with two threads each would compete for the cores.
"""

import contextvars
import itertools
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np

from ..autodiff import value_and_grad
from ..cross_entropy import IGNORED
from ..errors import ShapeError, within
from ..trees import tree_leaves, tree_map


def target_count(batch: Any) -> int:
    """The number of targets in a batch that count: the weight of its mean loss, and its number of tokens.

    batch: an array, or tuples and dicts of arrays of which the last one holds the targets: integers, of which all count
    but IGNORED (−100); for other targets every row is one, and a batch without rows is one

    >>> target_count((np.zeros((2, 3)), np.array([[5, 6, 7], [8, -100, -100]])))
    4
    """
    arrays = [array for array in tree_leaves(batch) if np.ndim(array)]
    if not arrays:
        return 1
    targets = np.asarray(arrays[-1])
    return int(np.count_nonzero(targets != IGNORED)) if targets.dtype.kind in "iu" else len(targets)


@contextmanager
def parallel_value_and_grad(loss: Callable, workers: int = 1, count: Callable = target_count) -> Iterator[Callable]:
    """A function (params, batch) -> loss, gradient that divides the batch among workers, while the `with` lasts.

        L = Σ_w (n_w/n) L_w,      ∇L = Σ_w (n_w/n) ∇L_w,      n = Σ_w n_w           (13.29)

    loss: loss(params, batch) -> mean over the targets   workers: threads   count: count(shard) -> n_w, the targets in a
    part of the batch   ->   a function of params and a batch whose arrays are divided along their first axis

    The shards need not be equal: the weights n_w account for it, and for padding that does not count. The result is
    that of one worker up to the order of additions; with the same number of workers it is the same to the last bit.
    The library of matrix products is limited to one thread by threadpoolctl, if that is installed (extra "train");
    without it set OPENBLAS_NUM_THREADS=1 before the start. Afterwards the limit is lifted.
    Raises: ValueError for fewer than one worker; ShapeError for arrays with different numbers of rows.

    >>> x = np.array([1.0, 2.0, 6.0])
    >>> with parallel_value_and_grad(lambda w, x: ((w * x) ** 2).mean(), workers=2) as gradient:
    ...     value, slope = gradient(np.ones(1), x)
    >>> round(float(value), 6), slope.round(6)  # (1 + 4 + 36)/3, and twice as much
    (13.666667, array([27.333333]))
    """
    within("parallel_value_and_grad", "whole [1, ∞)", workers=workers)
    gradient = value_and_grad(lambda params, batch, weight: loss(params, batch) * weight)
    if workers == 1 or sys.platform == "emscripten":  # Python in a browser has one thread
        yield lambda params, batch: gradient(params, batch, 1)
        return
    from concurrent.futures import ThreadPoolExecutor  # imported here, so that `import mathllm` stays quick

    def divided(params, batch):
        shards, weights = divide(batch, workers, count)
        contexts = [contextvars.copy_context() for _ in shards]  # np.errstate holds in every thread
        results = pool.map(lambda context, *part: context.run(gradient, params, *part), contexts, shards, weights)
        values, gradients = zip(*results, strict=True)
        return sum(values), tree_map(lambda *parts: sum(parts[1:], parts[0]), *gradients)

    with one_blas_thread(), ThreadPoolExecutor(workers, thread_name_prefix="worker") as pool:
        yield divided


def divide(batch: Any, parts: int, count: Callable = target_count) -> tuple[list, list[float]]:
    """Cut a batch into nearly equal shards of its rows that have targets, with the weights n_w/n of their mean losses.

    Raises: ShapeError for arrays with different numbers of rows.

    >>> divide(np.array([1.0, 2.0, 6.0]), 2)
    ([array([1.]), array([2., 6.])], [0.3333333333333333, 0.6666666666666666])
    """
    lengths = {len(array) for array in tree_leaves(batch) if np.ndim(array)}
    if len(lengths) != 1:
        found = " and ".join(map(str, sorted(lengths))) or "none"
        raise ShapeError(f"parallel_value_and_grad() needs arrays with one number of rows, got {found}")
    (rows,) = lengths
    edges = np.linspace(0, rows, min(parts, rows) + 1).astype(int)
    shards = [_rows(batch, slice(*pair)) for pair in itertools.pairwise(edges)]
    counts = [count(shard) for shard in shards]
    if not any(counts):
        return [batch], [1]  # the loss says what is missing
    return [shard for shard, n in zip(shards, counts, strict=True) if n], [n / sum(counts) for n in counts if n]


def _rows(batch, rows):
    return tree_map(lambda array: array[rows] if np.ndim(array) else array, batch)


def one_blas_thread() -> AbstractContextManager:
    """Limit the library of matrix products to one thread, if threadpoolctl is installed.

    >>> with one_blas_thread():
    ...     pass
    """
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        return nullcontext()
    return threadpool_limits(1, user_api="blas")
