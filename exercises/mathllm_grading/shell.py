"""A shell in which one submission runs: in a sandbox of its own, forked from a warm process.

    with Shell("ada", limits) as shell:
        outputs = shell.run("1 + 1")

bubblewrap shuts in a program that does nothing (`cat`). The warm process (in_sandbox/template.py) forks a child, which
enters that sandbox and runs cells for us. Both end with the shell, and with this process.
"""

import atexit
import base64
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

import psutil

from . import sandbox

__all__ = ["Gone", "Shell", "warm_up"]

TEMPLATE = Path(__file__).with_name("in_sandbox") / "template.py"
BACKEND = "module://matplotlib_inline.backend_inline"
START = 60  # seconds
GRACE = 5  # seconds from an interrupt to the end
TICK = 0.2  # seconds between two looks at a cell that runs
LARGEST = 32 * sandbox.MEGABYTE  # of all answers together; read, they may take about 24 times as much


class Gone(RuntimeError):
    """The process of a notebook has ended, or had to be ended."""


@cache
def warm_up(sandboxed):
    """Start the warm process, which this process and those forked from it share; the way to it.

    In a sandbox, its children have another environment and another home: so there may be two.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    fonts = os.environ.get("MPLCONFIGDIR") or os.path.expanduser("~/.cache/matplotlib")
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-P", str(TEMPLATE), str(theirs.fileno())], pass_fds=[theirs.fileno()], cwd="/",
            env=sandbox.environment(sandboxed) | {"MPLCONFIGDIR": fonts, "MPLBACKEND": BACKEND},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
    for last in (ours.close, process.wait, process.terminate):  # at the end, the last one comes first
        atexit.register(last)
    return ours


class Shell:
    """A notebook's process. In the sandbox it does not see the folders `hidden`, too."""

    def __init__(self, learner, limits, hidden=(), sandboxed=True):
        self.limits, self._number, self._sandbox, self._child, self._look_at = limits, 0, None, None, 0.0
        self._room = LARGEST
        with contextlib.ExitStack() as self._cleanup:
            self._connection, theirs = map(self._cleanup.enter_context, socket.socketpair())
            place = self._shut_in(hidden) if sandboxed else self._folder()
            request = {"environment": {"MATHLLM_LEARNER": learner}, "room": limits.output, **place}
            socket.send_fds(warm_up(sandboxed), [json.dumps(request).encode()], [theirs.fileno()])
            theirs.close()
            self._deadline, self._interrupted = time.monotonic() + START, True
            self._child = int(self._line())
            self._cleanup.callback(_kill, self._child)
            self._cleanup = self._cleanup.pop_all()

    def _shut_in(self, hidden):
        """Start a sandbox with a program that waits; what the child must know to enter it."""
        command = sandbox.command(["cat"], hidden, self.limits.disk * sandbox.MEGABYTE)
        settings = {"env": sandbox.environment(sandboxed=True), "start_new_session": True, "bufsize": 0}
        settings |= {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen(command, **settings)
        self._cleanup.enter_context(process)
        self._cleanup.callback(_kill, process.pid)
        process.stdin.write(b"\n")
        ready, _, _ = select.select([process.stdout], [], [], START)
        if not ready or not process.stdout.read(1):
            said = process.stderr.read() if ready else b""
            raise Gone(f"the sandbox did not start: {said.decode(errors='replace').strip()[-300:]}")
        self._sandbox = process.pid
        return {
            "sandbox": _innermost(process.pid), "account": sandbox.NOBODY if os.geteuid() == 0 else None,
            "folder": str(sandbox.HOME / "work"), "limits": self.limits.of_a_process(),
        }  # fmt: skip

    def _folder(self):
        """Without a sandbox: a folder to work in."""
        folder = self._cleanup.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
        return {"sandbox": None, "folder": folder, "limits": {}}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._cleanup.close()  # which ends every process of this shell

    def keep(self, path, content):
        """Put a file into the working directory."""
        self._ask({"file": path, "content": base64.b64encode(content).decode()})

    def run(self, source, counts=True):
        """Run a cell: its outputs, as notebooks have them, from a process that is not to be trusted. Raises: Gone."""
        return self._ask({"run": source, "counts": counts})

    def _ask(self, request):
        self._number += 1
        self._deadline, self._interrupted = time.monotonic() + self.limits.cell_seconds, False
        try:
            self._connection.settimeout(START)
            self._connection.sendall(json.dumps(request | {"number": self._number}).encode() + b"\n")
            reply = json.loads(self._line())
            if reply["number"] != self._number:
                raise Gone("the notebook's process answered what was not asked")
            return [output for output in reply["outputs"] if isinstance(output, dict)]
        except (OSError, ValueError, LookupError, TypeError, RecursionError, MemoryError) as error:
            raise Gone(f"the notebook's process ended or answered nonsense ({type(error).__name__})") from error

    def _line(self):
        """What the process says next: a line, for which there is still room."""
        line, part = bytearray(), b""
        self._connection.settimeout(TICK)
        while b"\n" not in part:
            with contextlib.suppress(TimeoutError):
                part = self._connection.recv(sandbox.MEGABYTE)
                if not part:
                    raise Gone("the notebook's process ended")
                line += part
                self._room -= len(part)
            if self._room < 0:
                raise Gone("the notebook's process answered with too much")
            if time.monotonic() > self._look_at:
                self._look()
        return line.partition(b"\n")[0]

    def _look(self):
        """While something runs: has it had its time, and how much memory does it take?"""
        now = time.monotonic()
        self._look_at = now + TICK
        if now > self._deadline:
            if self._interrupted:
                raise Gone("a cell did not end")
            self._interrupted, self._deadline = True, now + GRACE
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._child, signal.SIGINT)
        if self._sandbox and self._memory() > self.limits.memory * sandbox.MEGABYTE:
            raise Gone(f"the notebook took more than {self.limits.memory} MB of memory")

    def _memory(self):
        """Bytes of memory of all processes; what they share is counted for each."""
        total = 0
        for root in filter(None, (self._sandbox, self._child)):
            with contextlib.suppress(psutil.Error):  # it has just ended, or one of them
                for process in [*psutil.Process(root).children(recursive=True), psutil.Process(root)]:
                    with contextlib.suppress(psutil.Error):
                        total += process.memory_info().rss
        return total


def _kill(group):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def _innermost(process):
    """The last of a chain of processes each of which has started the next one."""
    while children := Path(f"/proc/{process}/task/{process}/children").read_text().split():
        process = int(children[0])
    return process
