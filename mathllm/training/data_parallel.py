"""How do two cores share one training step? Each takes some rows of the batch; the gradients are averaged.

The threads of one process see the same parameters, so nothing is copied, and NumPy lets go of Python's lock while it
computes; processes have no lock in common (see processes.py). Each worker's matrix products use one thread: two workers
with two threads each would wait for one another.
"""

import contextvars
import itertools
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import numpy as np

from ..autodiff import value_and_grad
from ..autodiff.memory import _Memory, _reused_memory
from ..cross_entropy import IGNORED
from ..errors import ShapeError
from ..gradient_descent import tree_leaves
from .processes import _forked

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
def parallel_value_and_grad(
    loss: Callable, workers: int = 1, count: Callable = target_count, processes: bool = False
) -> Iterator[Callable]:
    """A function (params, batch) -> loss, gradient that divides the batch among workers, while the `with` lasts.

        L = Σ_w (n_w/n) L_w,      ∇L = Σ_w (n_w/n) ∇L_w,      n = Σ_w n_w           (13.29)

    loss: loss(params, batch) -> mean over what counts   workers: how many   count: count(share) -> n_w, what counts in
    a share of the batch   processes: whether the workers are processes, not threads   ->   a function of params and a
    batch whose arrays are divided along their first axis

    Threads see the same memory, and so the same parameters; but Python lets only one of them at a time say what NumPy
    should do next, for which small models wait as long as for the numbers. Processes do not wait. They are forked from
    this one at the first gradient, with the loss as it is then, and share the memory of the parameters.

    The shares need not be equal: the weights n_w make up for it, and for padding that does not count. The result is
    that of one worker up to the order of additions; with the same number of workers it is the same to the last bit.
    The library of matrix products is held to one thread by threadpoolctl, where that is installed (extra "train");
    without it set OPENBLAS_NUM_THREADS=1 before the start. Afterwards it has its threads back.
    Raises: ValueError for fewer than one worker, or for processes where the system cannot fork; ShapeError for arrays
    with different numbers of rows; RuntimeError if a worker process is killed.
    Source: 004, table of parallelism; 001, §9.4.

    >>> x = np.array([1.0, 2.0, 6.0])
    >>> with parallel_value_and_grad(lambda w, x: ((w * x) ** 2).mean(), workers=2) as gradient:
    ...     value, slope = gradient(np.ones(1), x)
    >>> round(float(value), 6), slope.round(6)  # (1 + 4 + 36)/3, and twice as much
    (13.666667, array([27.333333]))
    """
    with _hands(workers) as spread, _crew(loss, workers, spread, processes) as gradients:
        yield _divided_gradient(gradients, workers, count)


def _divided_gradient(gradients, workers, count, spread=map):
    """The function that `parallel_value_and_grad` lends; `gradients` is that of a crew, `spread` that of _hands()."""

    def gradient(params, batch):
        shares = [(share, n) for share in _divided(batch, workers) if (n := count(share))] if workers > 1 else []
        if len(shares) < 2:
            return gradients(params, [(batch, 1)])[0]
        total = sum(n for _, n in shares)
        losses, parts = zip(*gradients(params, [(share, n / total) for share, n in shares]), strict=True)
        return sum(losses), _sum_of_trees(parts, spread)

    return gradient


def _sum_of_trees(trees, spread):
    """The sum, leaf by leaf, of nested arrays that nobody else holds: it is added up in the first of them."""

    def add_up(leaves):
        first, *others = leaves
        for other in others:
            first[...] += other

    list(spread(add_up, list(zip(*map(tree_leaves, trees), strict=True))))
    return trees[0]


@contextmanager
def _hands(workers):
    """Lends spread(function, things): as `map`, the things dealt out among this thread and others of one BLAS thread.

    It returns, or raises what one of them raised, when all are done.
    """
    if workers <= 1 or sys.platform == "emscripten":  # Python in a browser has one thread: it works for all
        yield map
        return
    from concurrent.futures import ThreadPoolExecutor, wait  # here and not above: `import mathllm` stays quick

    with ExitStack() as stack:
        stack.enter_context(_one_blas_thread())
        stack.callback(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(_PATIENCE)
        pool = stack.enter_context(ThreadPoolExecutor(workers - 1, thread_name_prefix="worker"))

        def spread(function, things):
            # In a copy of the caller's context: np.errstate holds for the others, too.
            others = [
                pool.submit(contextvars.copy_context().run, list, map(function, things[number::workers]))
                for number in range(1, workers)
            ]
            try:
                own = list(map(function, things[::workers]))
            finally:
                wait(others)
            dealt = [own, *(other.result() for other in others)]
            return [dealt[number % workers][number // workers] for number in range(len(things))]

        yield spread


@contextmanager
def _crew(loss, workers, spread, processes=False, shared=None):
    """Workers, and memory for each: lends gradients(params, shares) -> [(loss, gradient), …], one for each share.

    shares: at most as many as workers, of batch and weight   spread: of _hands(workers)   shared: see _forked(). With
    one worker it is the caller who works.
    """
    if workers < 1:
        raise ValueError(f"parallel_value_and_grad() needs at least one worker, got {workers}")
    work = [_worker(loss) for _ in range(workers)]
    if processes and workers > 1:
        with _forked(work[1:], shared) as forked:
            yield lambda params, shares: forked(work[0], params, shares)
    else:
        yield lambda params, shares: list(
            spread(lambda pair: pair[0](params, *pair[1]), list(zip(work, shares, strict=False)))
        )


def _worker(loss):
    """A function (params, share, weight) -> weight · loss, its gradient; its arrays lie in memory of its own."""
    memory = _Memory()
    weighted = value_and_grad(lambda params, share, weight: loss(params, share) * weight)

    def work(params, share, weight):
        with _reused_memory(memory):
            return weighted(params, share, weight)

    return work


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
