"""Who grades: processes on this machine, or the workers of a Dask cluster. A task is a learner; results as they come.

A worker that dies takes only its own learner with it. The learner is reported, somebody else goes on.
"""

import contextlib
import multiprocessing
import signal
import sys
import time
from collections import deque
from dataclasses import dataclass, field
from multiprocessing import connection

__all__ = ["Result", "Task", "on_cluster", "on_this_machine"]

ANSWER = 20  # seconds in which a scheduler should answer
GRACE = 10  # seconds in which a worker that is told to stop can end its shell


@dataclass(frozen=True)
class Task:
    """One learner's submission, and what a process anywhere must know to grade it."""

    learner: str
    assignment: object  # submission.Assignment
    folder: str  # what was handed in
    run: str  # a folder next to autograded work, for what is not finished
    key: bytes = field(default=b"", repr=False)
    limits: object = None  # sandbox.Limits
    hidden: tuple = ()
    unsandboxed: bool = False


@dataclass(frozen=True)
class Result:
    """How it went. `error` says in a line why there is no grade; `review` names graded cells and what was wrong."""

    learner: str
    seconds: float = 0.0
    review: dict = field(default_factory=dict)
    error: str | None = None
    log: str = ""
    graded: object = None  # grading.Graded
    folder: str = ""  # what is to be kept


def on_this_machine(tasks, work, jobs, limit=1800):
    """Do `work` on each task, in `jobs` processes. A learner who takes more than `limit` seconds is given up."""
    waiting, busy, idle = deque(tasks), {}, []
    try:
        while waiting or busy:
            while waiting and len(busy) < jobs:
                worker = idle.pop() if idle else _Worker(work, [*busy, *(other.pipe for other in idle)])
                worker.begin(waiting.popleft())
                busy[worker.pipe] = worker
            for pipe in connection.wait(busy, timeout=1):
                worker = busy.pop(pipe)
                result = worker.result()
                if worker.process.is_alive() and waiting:  # before the result is looked at
                    worker.begin(waiting.popleft())
                    busy[pipe] = worker
                elif worker.process.is_alive():
                    idle.append(worker)
                yield result
            for worker in [worker for worker in busy.values() if time.monotonic() - worker.began > limit]:
                worker.process.kill()  # its pipe says so in the next round
    finally:
        _stop([*idle, *busy.values()])


class _Worker:
    """A process that grades one learner after another, and the pipe to it."""

    def __init__(self, work, others):
        context = multiprocessing.get_context("fork")  # what is imported here need not be imported there
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, work, [self.pipe, *others]), daemon=True)
        self.process.start()
        theirs.close()  # the process alone holds this end: when it dies, ours says so

    def begin(self, task):
        self.task, self.began = task, time.monotonic()
        with contextlib.suppress(OSError):  # it has died idle: its pipe says so at once
            self.pipe.send(task)

    def result(self):
        try:
            return self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            code, seconds = self.process.exitcode, time.monotonic() - self.began
            how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
            return Result(self.task.learner, seconds, error=f"the process that graded this learner {how}")


def _serve(pipe, work, others):
    for other in others:  # the parent alone holds these ends: when it dies, they say so
        other.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process of a terminal; one of them decides
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with contextlib.suppress(EOFError, OSError):  # nobody is there any more
        while True:
            pipe.send(work(pipe.recv()))


def _stop(workers):
    for worker in workers:
        worker.pipe.close()
        worker.process.terminate()
    deadline = time.monotonic() + GRACE
    for worker in workers:
        worker.process.join(max(0.0, deadline - time.monotonic()))
        worker.process.kill()
        worker.process.join()


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
                error = future.exception()
                yield future.result() if error is None else Result(futures[future].learner, error=str(error))
        finally:
            client.cancel(list(futures))
