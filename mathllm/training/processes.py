"""Workers that are processes: each has Python's lock for itself, and the parameters lie in memory that all can see.

A process that is forked begins with everything its parent had, the loss and what it refers to among it. What changes
afterwards is private, but for memory that was made to be shared. So a batch goes to a worker through a pipe, while
parameters and gradients never move.
"""

import itertools
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from ..gradient_descent import tree_leaves, tree_map

_LINE = 64  # bytes: where a line of the cache begins


@contextmanager
def _forked(work: list[Callable], shared=None) -> Iterator[Callable]:
    """Lends forked(own, params, shares) -> [(loss, gradient), …], while the `with` lasts.

    work: for each process work(params, share, weight) -> loss, gradient   shared: parameters of _shared_like(), if they
    are always these; any others are copied each time   own: as work, for the first share, which is computed here
    """
    import multiprocessing  # here and not above: `import mathllm` stays quick

    if "fork" not in multiprocessing.get_all_start_methods():
        raise ValueError("workers can be processes only where the system can fork one (Linux, macOS): use threads")
    team = []

    def forked(own, params, shares):
        if not team or not team[0].fits(params):
            _dismiss(team)
            seen = _shared_like(params) if shared is None else shared
            team.extend(_Worker(one, seen) for one in work)
        busy = team[: len(shares) - 1]
        for worker, share in zip(busy, shares[1:], strict=True):
            worker.begin(params, share)
        try:
            first = own(params, *shares[0])
        finally:
            answers = [worker.answer() for worker in busy]
        return [first, *(worker.result(answer) for worker, answer in zip(busy, answers, strict=True))]

    try:
        yield forked
    finally:
        _dismiss(team)


class _Worker:
    """A process that waits for shares of a batch, and the memory it has in common with this one."""

    def __init__(self, work, params):
        import multiprocessing

        self.params, self.gradient = params, _shared_like(params)
        context = multiprocessing.get_context("fork")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=self._serve, args=(work, theirs), daemon=True)
        with warnings.catch_warnings():  # newer versions of Python warn of locks that another thread holds meanwhile
            warnings.simplefilter("ignore", DeprecationWarning)
            self.process.start()
        theirs.close()

    def _serve(self, work, connection):
        self.connection.close()
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is the parent who is interrupted
        while True:
            try:
                share = connection.recv()
            except EOFError:  # the parent is done, or gone
                return
            try:
                loss, gradient = work(self.params, *share)
                tree_map(np.copyto, self.gradient, gradient)
            except Exception as error:  # whatever it is, it belongs to the parent
                loss = error
            connection.send(loss)

    def fits(self, params):
        if params is self.params:
            return True
        shapes = [[(np.shape(leaf), np.asarray(leaf).dtype) for leaf in tree_leaves(t)] for t in (self.params, params)]
        return shapes[0] == shapes[1]

    def begin(self, params, share):
        if params is not self.params:
            tree_map(np.copyto, self.params, params)
        self.connection.send(share)

    def answer(self):
        try:
            return self.connection.recv()
        except (EOFError, ConnectionResetError):
            self.process.join()
            return RuntimeError(f"a worker process ended before its time (exit code {self.process.exitcode})")

    def result(self, answer):
        if isinstance(answer, Exception):
            raise answer
        return answer, self.gradient


def _dismiss(team):
    for worker in team:
        worker.connection.close()
    for worker in team:
        worker.process.join()
    team.clear()


def _shared_like(tree):
    """Arrays of the same shapes and values, in memory that processes forked from now on have in common."""
    import mmap

    arrays = [np.asarray(leaf) for leaf in tree_leaves(tree)]
    starts = [0, *itertools.accumulate(-(-array.nbytes // _LINE) * _LINE for array in arrays)]
    memory, places = mmap.mmap(-1, max(starts[-1], 1)), iter(starts)

    def place(leaf):
        leaf = np.asarray(leaf)
        own = np.ndarray(leaf.shape, leaf.dtype, memory, next(places))
        own[...] = leaf
        return own

    return tree_map(place, tree)
