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
from multiprocessing import connection, forkserver

__all__ = ["Result", "Task", "on_cluster", "on_this_machine", "warm_up"]

ANSWER = 20  # seconds in which a scheduler should answer
GRACE = 10  # seconds in which a worker that is told to stop can end its kernel
PRELOADED = ["mathllm_grading.workers", "mathllm_grading.autograde", "mathllm_grading.grader"]

# A third of what is imported for grading is one grammar, with which jsonschema could check addresses of a kind that
# nothing here contains. Without it they go unchecked, here and in the process that the others are forked from.
sys.modules.setdefault("rfc3987_syntax", None)


@dataclass(frozen=True)
class Task:
    """One learner's submission, and what a process anywhere must know to grade it."""

    learner: str
    assignment: str
    root: str
    db_url: str = field(repr=False)
    run: str  # a folder next to autograded work, for what is not finished
    environment: dict = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Result:
    """How it went. `error` says in a line why there is no grade; `review` names graded cells and what was wrong."""

    learner: str
    seconds: float = 0.0
    review: dict = field(default_factory=dict)
    error: str | None = None
    log: str = ""


def warm_up():
    """Start the process that the others are forked from: it imports what they need while this one does other things."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    forkserver.ensure_running()
    return context


def on_this_machine(tasks, work, jobs, limit=1800):
    """Do `work` on each task, in `jobs` processes. A learner who takes more than `limit` seconds is given up."""
    context = warm_up()
    waiting, idle, busy = deque(tasks), [], {}
    try:
        while waiting or busy:
            while waiting and len(busy) < jobs:
                worker = idle.pop() if idle else _Worker(context, work)
                worker.begin(waiting.popleft())
                busy[worker.pipe] = worker
            for pipe in connection.wait(busy, timeout=1):
                worker = busy.pop(pipe)
                yield worker.result()
                if worker.process.is_alive():
                    idle.append(worker)
            for worker in [worker for worker in busy.values() if time.monotonic() - worker.began > limit]:
                worker.process.kill()  # its pipe says so in the next round
    finally:
        _stop([*idle, *busy.values()])


class _Worker:
    """A process that grades one learner after another, and the pipe to it."""

    def __init__(self, context, work):
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, work), daemon=True)
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


def _serve(pipe, work):
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
