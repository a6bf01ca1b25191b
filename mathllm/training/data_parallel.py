"""How do two cores share one training step? Each takes some rows of the batch; the gradients are averaged.

The workers are processes: threads of one process would wait for Python's lock. A forked process begins with everything
its parent had, also the loss. Only batches go through a pipe, because parameters and gradients lie in memory that all
processes share. Each worker's matrix products use one thread: two workers with two threads each would compete for the
cores.
"""

import itertools
import mmap
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any

import numpy as np

from ..autodiff import value_and_grad
from ..cross_entropy import IGNORED
from ..errors import ShapeError, within
from ..trees import flatten, tree_leaves, tree_map


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


def shared(params: Any) -> tuple[Any, np.ndarray]:
    """A copy of the parameters in memory that forked processes share: nested arrays, and the vector they are views of.

    Raises: as `flatten`.

    >>> params, vector = shared({"W": np.ones((2, 2)), "b": np.zeros(1)})
    >>> params["b"] += 3
    >>> vector
    array([1., 1., 1., 1., 3.])
    """
    start, views = flatten(params)
    vector = np.frombuffer(mmap.mmap(-1, max(start.nbytes, 1)), start.dtype, start.size)
    vector[...] = start
    return views(vector), vector


@contextmanager
def parallel_value_and_grad(
    params: Any, loss: Callable, workers: int = 1, count: Callable = target_count
) -> Iterator[Callable]:
    """A function (params, batch) -> loss, gradient that divides the batch among workers, while the `with` lasts.

        L = Σ_i (n_i/n) L_i,      ∇L = Σ_i (n_i/n) ∇L_i,      n = Σ_i n_i           (13.13)

    params: those of `shared`, in which the workers read the parameters of each call   loss: loss(params, batch) -> mean
    over the targets   workers: processes   count: count(shard) -> n_i, the targets in a part of the batch
    ->   a function of params and a batch whose arrays are divided along their first axis. Its gradient lies in shared
    memory, too: the next call overwrites it.

    The shards need not be equal: the weights n_i account for it, and for padding that does not count. The result is
    that of one worker up to the order of additions; with the same number of workers it is the same to the last bit.
    The library of matrix products is limited to one thread by threadpoolctl, if that is installed (extra "train");
    without it set OPENBLAS_NUM_THREADS=1 before the start. Afterwards the limit is lifted.
    Raises: ShapeError for arrays with different numbers of rows; RuntimeError if a worker ends too early.

    >>> w, _ = shared(np.ones(1))
    >>> x = np.array([1.0, 2.0, 6.0])
    >>> with parallel_value_and_grad(w, lambda w, x: ((w * x) ** 2).mean(), workers=2) as gradient:
    ...     value, slope = gradient(w, x)
    >>> round(float(value), 6), slope.round(6)  # (1 + 4 + 36)/3, and twice as much
    (13.666667, array([27.333333]))
    """
    (gradient, total), *others = (shared(params) for _ in range(workers))
    vectors = [total, *(vector for _, vector in others)]
    weighted = value_and_grad(lambda params, batch, weight: loss(params, batch) * weight)

    def work(number, errors, shard, weight):
        try:
            with np.errstate(**errors):
                value, found = weighted(params, shard, weight)
            np.concatenate([np.ravel(leaf) for leaf in tree_leaves(found)], out=vectors[number])
        except Exception as error:  # raised when all have answered: what stays in a pipe would be the next answer
            return error
        return value

    def divided(given, batch):
        if given is not params:
            tree_map(np.copyto, params, given)
        shards, weights = divide(batch, workers, count) if workers > 1 else ([batch], [1])
        busy = team[: len(shards) - 1]
        for worker, *task in zip(busy, shards[1:], weights[1:], strict=True):
            worker.ask(np.geterr(), *task)
        values = [work(0, {}, shards[0], weights[0]), *(worker.answer() for worker in busy)]
        for value in values:
            if isinstance(value, Exception):
                raise value
        for other in vectors[1 : len(values)]:
            total[...] += other
        return sum(values), gradient

    team = []
    with one_blas_thread():
        try:
            team.extend(_Worker(work, number) for number in range(1, workers))
            yield divided
        finally:
            for worker in reversed(team):  # a process has the connections of those that were started before it
                worker.connection.close()
                worker.process.join()


def usable_workers(params: Any, workers: int) -> int:
    """How many processes can share these parameters: one where the system cannot fork, or for a mixture of dtypes.

    Raises: ValueError for fewer than one worker.

    >>> usable_workers([np.ones(2, np.float32), np.ones(1)], 4)
    1
    """
    import multiprocessing  # imported here, so that `import mathllm` stays quick

    within("train", "whole [1, ∞)", workers=workers)
    can_fork = "fork" in multiprocessing.get_all_start_methods() and sys.platform != "emscripten"
    dtypes = {np.asarray(leaf).dtype for leaf in tree_leaves(params)}
    return workers if can_fork and len(dtypes) == 1 else 1


class _Worker:
    """A process that waits for shards of a batch and answers with the loss, or with the exception."""

    def __init__(self, work, number):
        import multiprocessing

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
                connection.send(work(number, *task))

    def ask(self, *task):
        with suppress(ConnectionError):  # the process has ended: its answer says so
            self.connection.send(task)

    def answer(self):
        """The loss, or the exception to raise."""
        try:
            return self.connection.recv()
        except (EOFError, ConnectionResetError):
            self.process.join()
            return RuntimeError(f"a worker process ended too early (exit code {self.process.exitcode})")


def divide(batch: Any, parts: int, count: Callable = target_count) -> tuple[list, list[float]]:
    """Cut a batch into nearly equal shards of its rows that have targets, with the weights n_i/n of their mean losses.

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
