"""Who grades: processes on this machine, or the workers of a Dask cluster. A task is a learner; results as they come.

A process that dies takes only its own learner with it. The learner is reported, the others are graded.
"""

import contextlib
import ctypes
import gc
import multiprocessing
import signal
import sys
import time
from collections import deque
from dataclasses import dataclass
from multiprocessing import connection

from .grading import Graded
from .submission import Assignment

__all__ = ["Result", "Task", "on_cluster", "on_this_machine"]

ANSWER = 20  # seconds in which a scheduler should answer
DEATH_SIGNAL = 1  # for prctl
GRACE = 10  # seconds in which a process that is told to stop can end its shell


@dataclass(frozen=True)
class Task:
    """One learner's submission, and what a process anywhere must know to grade it."""

    learner: str
    assignment: Assignment
    folder: str  # what was handed in


@dataclass(frozen=True)
class Result:
    """How it went. `error` says in a line why there is no grade, `log` where it happened."""

    learner: str
    error: str | None = None
    log: str = ""
    graded: Graded | None = None


def on_this_machine(tasks, work, jobs, limit=1800):
    """Do `work` on each task, `jobs` at a time, each in a process of its own that is forked from this one.

    A learner who takes more than `limit` seconds is given up.
    """
    waiting, running, done = deque(tasks), {}, []
    gc.freeze()  # what is imported here stays shared with the processes
    try:
        while True:
            while waiting and len(running) < jobs:
                begun = _Process(work, waiting.popleft())
                running[begun.pipe] = begun
            yield from done  # while the next ones are graded
            if not running:
                return
            done = [running.pop(pipe).result() for pipe in connection.wait(running, timeout=1)]
            for begun in running.values():
                if time.monotonic() - begun.began > limit:
                    begun.process.kill()  # its pipe says so in the next round
    finally:
        for left in running.values():
            left.process.terminate()
        for left in running.values():
            left.process.join(GRACE)
            left.process.kill()
            left.process.join()


class _Process:
    """A process that grades one learner, and the pipe from it."""

    def __init__(self, work, task):
        context = multiprocessing.get_context("fork")
        self.pipe, theirs = context.Pipe(duplex=False)
        self.task, self.began = task, time.monotonic()
        self.process = context.Process(target=_send, args=(theirs, work, task), daemon=True)
        self.process.start()
        theirs.close()  # the process alone holds this end: when it dies, ours says so

    def result(self):
        """What the process has sent, or how it ended before it did."""
        result = None
        with self.pipe, contextlib.suppress(EOFError, OSError):
            result = self.pipe.recv()
        self.process.join()
        if result:
            return result
        code = self.process.exitcode
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        return Result(self.task.learner, error=f"the process that graded this learner {how}")


def _send(pipe, work, task):
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process of a terminal; one of them decides
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    ctypes.CDLL(None).prctl(DEATH_SIGNAL, signal.SIGTERM)  # a run that is killed leaves nobody who holds its lock
    with contextlib.suppress(OSError):  # nobody is there any more
        pipe.send(work(task))


def on_cluster(tasks, work, address):
    """Do `work` on each task, on the workers of the Dask cluster whose scheduler has this address.

    A task whose worker dies goes to another one, three times at most.

    Raises: ImportError without dask.distributed, OSError if no scheduler answers, or one that has no worker.
    """
    try:
        from distributed import Client, as_completed
    except ImportError:
        raise ImportError("--scheduler needs dask.distributed: pip install 'mathllm[exercises,cluster]'") from None
    try:
        client = Client(address, timeout=ANSWER)
    except OSError as error:
        raise OSError(f"no Dask scheduler answers at {address}") from error
    with client:
        try:
            client.wait_for_workers(1, timeout=ANSWER)
        except TimeoutError:
            raise OSError(f"the scheduler at {address} has no worker: start one by dask worker {address}") from None
        futures = {client.submit(work, task, pure=False): task for task in tasks}
        try:
            for future in as_completed(futures):
                task, error = futures.pop(future), future.exception()  # what nobody holds, the cluster lets go
                yield future.result() if error is None else Result(task.learner, error=str(error))
        finally:
            client.cancel(list(futures))
