"""How do two cores share one training step? Each takes some rows of the batch; the gradients are averaged.

The threads of one process see the same parameters, so nothing is copied, and NumPy lets go of Python's lock while it
computes. Each worker's matrix products use one thread: two workers with two threads each would wait for one another.
"""

import contextvars
import itertools
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import numpy as np

from ..autodiff import value_and_grad
from ..autodiff.memory import _Memory, _reused_memory
from ..errors import ShapeError
from ..gradient_descent import tree_leaves
from .batching import IGNORED

_PATIENCE = 1e-4  # seconds after which a worker asks another for Python's lock; the operations between are as short


def target_count(batch) -> int:
    """How many targets of a batch count: the weight of its mean loss, and its number of tokens.

    batch: an array, or tuples and dicts of arrays of which the last one holds the targets: integers, of which all count
    but IGNORED (−100); for other targets every row is one, and a batch without rows is one

    >>> target_count((np.zeros((2, 3)), np.array([[5, 6, 7], [8, -100, -100]])))
    4
    """
    arrays = [array for array in _arrays(batch) if np.ndim(array)]
    if not arrays:
        return 1
    targets = np.asarray(arrays[-1])
    return int(np.count_nonzero(targets != IGNORED)) if targets.dtype.kind in "iu" else len(targets)


@contextmanager
def parallel_value_and_grad(loss: Callable, workers: int = 1, count: Callable = target_count) -> Iterator[Callable]:
    """A function (params, batch) -> loss, gradient that divides the batch among threads, while the `with` lasts.

        L = Σ_w (n_w/n) L_w,      ∇L = Σ_w (n_w/n) ∇L_w,      n = Σ_w n_w           (13.29)

    loss: loss(params, batch) -> mean over what counts   workers: threads   count: count(share) -> n_w, what counts in a
    share of the batch   ->   a function of params and a batch whose arrays are divided along their first axis

    The shares need not be equal: the weights n_w make up for it, and for padding that does not count. The result is
    that of one worker up to the order of additions; with the same number of workers it is the same to the last bit.
    The library of matrix products is held to one thread by threadpoolctl, where that is installed (extra "train");
    without it set OPENBLAS_NUM_THREADS=1 before the start. Afterwards it has its threads back.
    Raises: ValueError for fewer than one worker; ShapeError for arrays with different numbers of rows.
    Source: 004, table of parallelism; 001, §9.4.

    >>> x = np.array([1.0, 2.0, 6.0])
    >>> with parallel_value_and_grad(lambda w, x: ((w * x) ** 2).mean(), workers=2) as gradient:
    ...     value, slope = gradient(np.ones(1), x)
    >>> round(float(value), 6), slope.round(6)  # (1 + 4 + 36)/3, and twice as much
    (13.666667, array([27.333333]))
    """
    with _crew(workers) as share_out:
        yield _divided_gradient(loss, workers, count, share_out)


def _divided_gradient(loss, workers, count, share_out):
    """The function that `parallel_value_and_grad` lends; `share_out` calls a function for many things at once."""

    def gradient(params, batch):
        shares = [(batch, 1)]
        if workers > 1:
            shares = [(share, n) for share in _divided(batch, workers) if (n := count(share))]
        if len(shares) < 2:
            return next(iter(share_out(lambda _: value_and_grad(loss)(params, batch), [None])))
        total = sum(n for _, n in shares)
        weighted = value_and_grad(lambda params, share, weight: loss(params, share) * weight)
        results = share_out(lambda share: weighted(params, share[0], share[1] / total), shares)
        losses, gradients = zip(*results, strict=True)
        return sum(losses), _sum_of_trees(gradients)

    return gradient


def _sum_of_trees(trees):
    """The sum, leaf by leaf, of nested arrays that nobody else holds: it is added up in the first of them."""
    for first, *others in zip(*map(tree_leaves, trees), strict=True):
        for other in others:
            first[...] += other
    return trees[0]


@contextmanager
def _crew(workers):
    """Threads that wait for work, and memory for each: lends share_out(function, things) -> the results, in order.

    The things are dealt out in turn. With one worker it is the calling thread that works.
    """
    if workers < 1:
        raise ValueError(f"parallel_value_and_grad() needs at least one worker, got {workers}")
    memory = [_Memory() for _ in range(workers)]

    def work(function, things, number):
        with _reused_memory(memory[number]):
            return [function(thing) for thing in things]

    if workers == 1:
        yield lambda function, things: work(function, things, 0)
        return
    from concurrent.futures import ThreadPoolExecutor  # here and not above: `import mathllm` stays quick

    with ExitStack() as stack:
        stack.enter_context(_one_blas_thread())
        stack.callback(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(_PATIENCE)
        pool = stack.enter_context(ThreadPoolExecutor(workers, thread_name_prefix="worker"))

        def share_out(function, things):
            hands = [things[number::workers] for number in range(min(workers, len(things)))]
            # In a copy of the caller's context: np.errstate holds for the workers, too.
            tasks = [
                pool.submit(contextvars.copy_context().run, work, function, hand, number)
                for number, hand in enumerate(hands)
            ]
            results = [task.result() for task in tasks]
            return [results[n % len(hands)][n // len(hands)] for n in range(len(things))]

        yield share_out


@contextmanager
def _one_blas_thread():
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        yield
        return
    with threadpool_limits(1, user_api="blas"):
        yield


def _divided(batch, workers):
    """Nearly equal shares of the rows; none of them empty."""
    rows = {len(array) for array in _arrays(batch) if np.ndim(array)}
    if len(rows) != 1:
        found = " and ".join(map(str, sorted(rows))) or "none"
        raise ShapeError(f"parallel_value_and_grad() needs arrays with one number of rows, got {found}")
    (rows,) = rows
    edges = np.linspace(0, rows, min(workers, rows) + 1).astype(int)
    return [_rows(batch, slice(start, end)) for start, end in itertools.pairwise(edges)]


def _rows(batch, rows):
    if isinstance(batch, dict):
        return {key: _rows(part, rows) for key, part in batch.items()}
    if isinstance(batch, list | tuple):
        parts = [_rows(part, rows) for part in batch]
        return type(batch)(*parts) if hasattr(batch, "_fields") else type(batch)(parts)
    return batch[rows] if np.ndim(batch) else batch


def _arrays(batch):
    if isinstance(batch, dict):
        batch = list(batch.values())
    if isinstance(batch, list | tuple):
        return [array for part in batch for array in _arrays(part)]
    return [] if batch is None else [batch]
