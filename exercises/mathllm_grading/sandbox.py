"""Where the kernel of a submission runs: in bubblewrap, with nothing of the course in sight and nobody to talk to.

A submission is a stranger's program. Its kernel starts in namespaces of its own: no network, no other process, no file
but Python, the installed packages, mathllm and its data, all read-only; a home and a work directory in memory, of
bounded size, that vanish with it. Of `mathllm_exercises` it sees the edition in `in_sandbox/`, without the item bank.
The first program in there sets limits on memory, processes, files and processor time that nothing after it can raise;
a watch outside looks at the memory of all its processes together. The grader and the kernel speak through sockets in a
folder that both see. When the grader or its patience ends, the process namespace ends, with every process in it.

All of this is bubblewrap's work; here it is told what to do. An ordinary user needs no rights for it. Run by root, the
same sandbox is entered by an account without a name: some limits do not bind root.

A clever program can hold memory that belongs to no process. On a machine that others need, limit the whole run as well:
`systemd-run --user --scope -p MemoryMax=8G nbgrader autograde …`.

Grading where bubblewrap cannot work is refused, unless the environment says MATHLLM_UNSANDBOXED=yes.
"""

import contextlib
import json
import math
import os
import queue
import shutil
import signal
import site
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from functools import cache
from pathlib import Path

import mathllm_exercises
import psutil
import zmq
from jupyter_client import AsyncKernelClient
from jupyter_client.kernelspec import KernelSpec
from nbgrader.converters.base import NbGraderException
from traitlets import Integer, Type
from traitlets.log import get_logger

import mathllm
from mathllm import data

from .kernels import AsyncKernelManager

__all__ = ["SandboxedKernelManager", "environment", "kernel_manager_class", "problem", "require", "required"]

UNSANDBOXED = "MATHLLM_UNSANDBOXED"
SECRETS = ("MATHLLM_COURSE_KEY", "MATHLLM_GRADEBOOK")  # the gradebook's address may hold a password
ISOLATION = ["--unshare-all", "--unshare-user", "--disable-userns", "--cap-drop", "ALL", "--hostname", "sandbox"]
ISOLATION += ["--new-session", "--die-with-parent", "--proc", "/proc", "--dev", "/dev"]
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64")
SYSTEM += ("/etc/alternatives", "/etc/fonts", "/etc/ld.so.cache", "/etc/localtime")
GRADING = Path(__file__).resolve().parent
EXERCISES, MATHLLM = (Path(package.__file__).resolve().parent for package in (mathllm_exercises, mathllm))
HOME = Path("/home", "learner")
NOBODY = 61184  # an account for passing use: systemd gives 61184 to 65519 to services that need one for an hour
MEGABYTE = 2**20


def required():
    """Whether kernels must run in the sandbox: yes, unless MATHLLM_UNSANDBOXED=yes."""
    return os.environ.get(UNSANDBOXED) != "yes"


def require():
    """Before a run: refuse it where the sandbox cannot work, and say loudly where there is to be none.

    Raises: NbGraderException, after logging what is wrong.
    """
    if not required():
        get_logger().warning("NO SANDBOX (%s=yes): submissions can read and change whatever you can", UNSANDBOXED)
    elif problem():
        get_logger().error(problem())
        raise NbGraderException(problem())


def kernel_manager_class():
    """The class that starts kernels: the sandbox's, or an ordinary one where MATHLLM_UNSANDBOXED=yes."""
    return SandboxedKernelManager if required() else AsyncKernelManager


@cache
def problem():
    """Why no kernel can be started in the sandbox, with the remedy and the way out, in a sentence; None if one can."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            command = _command([sys.executable, "-c", "import zmq"], Path(folder))
            _hand_over(Path(folder))
            done = subprocess.run(command, env=_environment(), capture_output=True, text=True, timeout=60)
        said = None if done.returncode == 0 else done.stderr.strip().splitlines()[-1:]
    except (OSError, subprocess.SubprocessError) as error:
        said = [str(error)]
    if said is None:
        return None
    return (
        "Submissions are graded in a sandbox, which needs bubblewrap 0.8 or newer (apt install bubblewrap) and a system"
        f" that lets it make namespaces; here it cannot: {' '.join(said) or 'no reason given'}. To grade without a"
        f" sandbox, where every submission can read and change whatever you can, set {UNSANDBOXED}=yes."
    )


def environment():
    """The environment of a kernel: what Python needs, and no secret; unsandboxed, this process's without secrets."""
    if required():
        return _environment()
    return {name: value for name, value in os.environ.items() if name not in SECRETS}


def _environment():
    kept = {name: os.environ[name] for name in ("LANG", "LC_ALL", "TZ") if name in os.environ}
    threads = {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "OMP", "MKL")}
    path = os.pathsep.join([sysconfig.get_path("scripts"), "/usr/bin", "/bin"])
    own = {"PATH": path, "HOME": str(HOME), "USER": "learner", "LOGNAME": "learner", "NBGRADER_EXECUTION": "autograde"}
    return {"LANG": "C.UTF-8", **kept, **threads, **own} | ({"MATHLLM_DATA": str(_data())} if _data() else {})


def _data():
    return data.folder() if data.folder().is_dir() else None


def _shown(hidden=()):
    """What there is in the sandbox, {path: where it comes from}, read-only; None stands for an empty folder."""
    python = Path(sys.executable)
    prefixes = [Path(sys.prefix), Path(sys.base_prefix), Path(site.getusersitepackages()), MATHLLM, _data()]
    while python.is_symlink():
        python = python.parent / os.readlink(python)
        prefixes.append(Path(os.path.normpath(python)).parents[1])
    shown = {path: path for path in [*map(Path, SYSTEM), *filter(None, prefixes)] if path.exists()}
    shown |= {path: None for path in map(Path, hidden) if path.exists() and path not in HOME.parents}
    shown |= {GRADING: None, EXERCISES: None}
    shown |= {EXERCISES / name: EXERCISES / name for name in ("codec.py", "kernel_side.py")}
    shown |= {EXERCISES / name: GRADING / "in_sandbox" / name for name in ("__init__.py", "__main__.py")}
    return dict(sorted(shown.items()))  # a folder before what lies in it


def _view(shown):
    """bubblewrap's arguments for these files."""
    arguments = []
    for path, origin in shown.items():
        arguments += _parents(path)
        if origin is None:
            arguments += ["--tmpfs", str(path)]
        elif origin.is_symlink():
            arguments += ["--symlink", os.readlink(origin), str(path)]
        else:
            arguments += ["--ro-bind", str(origin), str(path)]
    return arguments


def _parents(path):
    """The folders above, open to all; those that bubblewrap makes by itself are not."""
    return [word for parent in reversed(path.parents[:-1]) for word in ("--dir", str(parent))]


def _command(kernel, folder, hidden=(), disk=256 * MEGABYTE):
    """The command that runs `kernel` in the sandbox. The folder is shared with it."""
    bwrap, shown = shutil.which("bwrap"), _shown(hidden)
    if bwrap is None:
        raise FileNotFoundError("no program is called bwrap")
    shared = [*_parents(folder), "--bind", str(folder), str(folder)]
    writable = [word for path in ("/dev/shm", "/tmp", str(HOME)) for word in ("--size", str(disk), "--tmpfs", path)]
    emptied = [str(path) for path, origin in shown.items() if origin is None]
    fixed = [word for path in ("/", "/dev", *emptied) for word in ("--remount-ro", path)]
    first, last = [*ISOLATION, *writable], [*shared, *fixed, "--chdir", str(HOME), "--", *kernel]
    if os.geteuid() != 0:
        return [bwrap, *first, *_view(shown), *last]
    # Root shows the same files to an account without a name, which then enters the sandbox like anybody else.
    outside = [*_view(shown), "--dev-bind", "/dev", "/dev", "--bind", "/proc", "/proc", *shared]
    rights = ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    lifeline = ["setpriv", "--pdeathsig=KILL", "unshare", "--fork", "--pid", "--kill-child", "--mount-proc"]
    become_nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    seen = {path: origin and path for path, origin in shown.items()}
    return [*lifeline, bwrap, *outside, *rights, "--", *become_nobody, bwrap, *first, *_view(seen), *last]


class _Client(AsyncKernelClient):
    """Takes no message that is larger than it could want, and is ready as soon as the kernel is."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.context.setsockopt(zmq.MAXMSGSIZE, 64 * MEGABYTE)

    async def wait_for_ready(self, timeout=None):
        """Ask until the kernel answers on both channels. Raises: RuntimeError if it never does."""
        patience = time.monotonic() + (timeout or 60)
        while time.monotonic() < patience and await self.parent.is_alive():
            self.kernel_info()
            with contextlib.suppress(queue.Empty):
                await self.shell_channel.get_msg(timeout=1)
                await self.iopub_channel.get_msg(timeout=0.2)
                return
        raise RuntimeError("the kernel did not start")


class SandboxedKernelManager(AsyncKernelManager):
    """Starts a Python kernel in the sandbox, with which it shares its folder; an AsyncKernelManager in all else."""

    client_factory = Type(_Client)
    memory = Integer(2048, help="Megabytes for a kernel and its processes together.").tag(config=True)
    disk = Integer(256, help="Megabytes for files in its home directory, which is in memory; and for one file.").tag(
        config=True
    )
    processes = Integer(100, help="Processes and threads of a kernel.").tag(config=True)
    cpu_seconds = Integer(300, help="Processor time of a process.").tag(config=True)

    @property
    def kernel_spec(self):
        """Python as this process runs it; interrupted by a message, since no signal crosses the border."""
        limits = {"AS": self.memory * MEGABYTE, "FSIZE": self.disk * MEGABYTE, "NPROC": self.processes}
        limits |= {"CPU": self.cpu_seconds, "CORE": 0, "NOFILE": 512}
        program = [sys.executable, "-P", "-m", "mathllm_exercises", json.dumps(limits), "{connection_file}"]
        return KernelSpec(argv=program, language="python", display_name="sandbox", interrupt_mode="message")

    async def _async_launch_kernel(self, kernel_cmd, **kwargs):
        """Start the kernel's command in the sandbox, with a copy of the files in its working directory."""
        folder = self.folder
        _furnish(folder / "home", kwargs.pop("cwd", None))
        _hand_over(folder)
        hidden = [Path.cwd(), "/usr/local/share/nbgrader", self.config.get("Exchange", {}).get("root") or "/nowhere"]
        command = _command(kernel_cmd, folder, hidden, self.disk * MEGABYTE)
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        await super()._async_launch_kernel(command, **(kwargs | silent))
        threading.Thread(target=self._watch, args=(self.provisioner.process,), daemon=True).start()

    def _watch(self, process):
        """End the sandbox when its processes, or the files next to its sockets, take more memory than they may."""
        while True:
            try:
                return process.wait(0.2)
            except subprocess.TimeoutExpired:
                pass
            if _memory(process.pid) > self.memory * MEGABYTE or _size(self.folder) > self.disk * MEGABYTE:
                self.log.error("A kernel took more than %s MB of memory or wrote too much; it was ended", self.memory)
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)

    async def _async_wait(self, pollinterval=0.01):
        """Wait for the kernel's end, which is near when somebody waits for it."""
        await super()._async_wait(pollinterval)


def _furnish(home, files):
    """What is copied into the home directory: the submission's files, and matplotlib's list of fonts."""
    fonts = Path(os.environ.get("MPLCONFIGDIR") or os.path.expanduser("~/.cache/matplotlib"))
    (home / ".cache/matplotlib").mkdir(parents=True)
    for path in fonts.glob("fontlist-*.json"):  # making it anew takes seconds
        shutil.copy(path, home / ".cache/matplotlib")
    with contextlib.suppress(shutil.Error):  # a file that cannot be copied is left out
        shutil.copytree(files, home / "work", symlinks=True, ignore=shutil.ignore_patterns("*.ipynb"))


def _hand_over(folder):
    """Let the kernel's account have the folder."""
    if os.geteuid() == 0:
        for path in [folder, *folder.rglob("*")]:
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


def _memory(pid):
    """Bytes of memory of all processes below a process; what they share is counted for each."""
    total = 0
    with contextlib.suppress(psutil.Error):  # it has just ended, or one of them
        for process in psutil.Process(pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                total += process.memory_info().rss
    return total


def _size(folder):
    """Bytes of the files in a folder, a block for each at least; infinite if somebody keeps us from looking."""
    total = 0
    try:
        for _, folders, files, here in os.fwalk(folder, onerror=_raise):
            total += sum(
                4096 + os.stat(name, dir_fd=here, follow_symlinks=False).st_size for name in [*folders, *files]
            )
    except FileNotFoundError:  # one of them has just gone; there is a next time
        return total
    except (OSError, RecursionError):
        return math.inf
    return total


def _raise(error):
    raise error
