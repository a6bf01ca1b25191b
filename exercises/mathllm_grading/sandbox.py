"""Where a submission runs: in bubblewrap, with nothing of the course in sight and nobody to talk to.

A submission is a stranger's program. It runs in namespaces of its own: no network, no other process, no file but
Python, the installed packages, mathllm and its data, all read-only; a home and a work directory in memory, of bounded
size, that vanish with it. Of `mathllm_exercises` it sees the edition in `in_sandbox/`, without the item bank. Limits on
memory, processes, files and processor time are set before it begins, and nothing in there can raise them; `shell` looks
at the memory of all its processes together. The grader and the submission share one socket and no file. When the grader
or its patience ends, the process namespace ends, with every process in it.

All of this is bubblewrap's work; here it is told what to do. An ordinary user needs no rights for it. Run by root, the
same sandbox is entered by an account without a name: some limits do not bind root.

A clever program can hold memory that belongs to no process. On a machine that others need, limit the whole run as well:
`systemd-run --user --scope -p MemoryMax=8G nbgrader autograde …`.

Grading where bubblewrap cannot work is refused, unless the environment says MATHLLM_UNSANDBOXED=yes.
"""

import os
import shutil
import site
import subprocess
import sys
import sysconfig
from functools import cache
from pathlib import Path

import mathllm_exercises
from traitlets import Integer
from traitlets.config import Configurable

import mathllm
from mathllm import data

__all__ = ["Limits", "command", "environment", "problem", "required"]

UNSANDBOXED = "MATHLLM_UNSANDBOXED"
SECRETS = ("MATHLLM_COURSE_KEY", "MATHLLM_GRADEBOOK")  # the gradebook's address may hold a password
ISOLATION = ["--unshare-all", "--unshare-user", "--disable-userns", "--cap-drop", "ALL", "--hostname", "sandbox"]
ISOLATION += ["--new-session", "--die-with-parent", "--proc", "/proc", "--dev", "/dev"]
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64")
SYSTEM += ("/etc/alternatives", "/etc/fonts", "/etc/ld.so.cache", "/etc/localtime")
OURS = ("mathllm_exercises", "mathllm_grading", "mathllm_course")  # with the solutions, wherever they are installed
EXERCISES, MATHLLM = (Path(package.__file__).resolve().parent for package in (mathllm_exercises, mathllm))
HOME = Path("/home", "learner")
NOBODY = 61184  # an account for passing use: systemd gives 61184 to 65519 to services that need one for an hour
MEGABYTE = 2**20


def required():
    """Whether submissions of a run that begins here must run in the sandbox: yes, unless MATHLLM_UNSANDBOXED=yes."""
    return os.environ.get(UNSANDBOXED) != "yes"


@cache
def problem():
    """Why no program can be started in the sandbox, with the remedy and the way out, in a sentence; None if one can."""
    try:
        subprocess.run(command(["true"]), capture_output=True, text=True, timeout=60, check=True)
        return None
    except (OSError, subprocess.SubprocessError) as error:
        said = str(getattr(error, "stderr", error)).strip() or "no reason given"
    return (
        "Submissions are graded in a sandbox, which needs bubblewrap 0.8 or newer (apt install bubblewrap) and a system"
        f" that lets it make namespaces; here it cannot: {said.splitlines()[-1]}. To grade without a sandbox, where"
        f" every submission can read and change whatever you can, set {UNSANDBOXED}=yes."
    )


def environment(sandboxed):
    """The environment of a submission: what Python needs; unsandboxed, this process's without secrets."""
    if not sandboxed:
        return {name: value for name, value in os.environ.items() if name not in SECRETS}
    kept = {name: os.environ[name] for name in ("LANG", "LC_ALL", "TZ") if name in os.environ}
    threads = {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "OMP", "MKL")}
    path = os.pathsep.join([sysconfig.get_path("scripts"), "/usr/bin", "/bin"])
    modules = os.pathsep.join(dict.fromkeys(str(package.parent) for package in (MATHLLM, EXERCISES)))
    own = {"PATH": path, "PYTHONPATH": modules, "HOME": str(HOME), "USER": "learner", "LOGNAME": "learner"}
    own |= {"NBGRADER_EXECUTION": "autograde", "MATHLLM_DATA": str(data.folder())}
    return {"LANG": "C.UTF-8", **kept, **threads, **own}


def _shown(hidden=()):
    """What there is in the sandbox, {path: where it comes from}, read-only; None stands for an empty folder."""
    links = [Path(sys.prefix), Path(sys.base_prefix), Path(site.getusersitepackages()), MATHLLM, data.folder()]
    python = Path(sys.executable)
    while python.is_symlink():
        python = Path(os.path.normpath(python.parent / os.readlink(python)))
        links.append(python)
    shown = {path: path for path in [*map(Path, SYSTEM), *(link.resolve() for link in links)] if path.exists()}
    shown |= {link: link for link in links if link.exists() and not {*shown, *links} & {*link.parents}}
    ours = [EXERCISES, *(Path(place, name) for place in sys.path for name in OURS)]
    emptied = {Path(path).resolve() for path in [*ours, *hidden]}
    for root in [path for path in shown if not path.is_symlink()]:
        inside = [path.relative_to(root.resolve()) for path in emptied if path.is_relative_to(root.resolve())]
        shown |= {root / path: None for path in inside if (root / path).exists()}
    shown |= {EXERCISES: None} | {EXERCISES / name: EXERCISES / name for name in ("codec.py", "kernel_side.py")}
    shown[EXERCISES / "__init__.py"] = Path(__file__).resolve().with_name("in_sandbox") / "__init__.py"
    return dict(sorted(shown.items()))  # a folder before what lies in it


def _view(shown):
    """bubblewrap's arguments for these files. Folders above them are open to all; those it makes by itself are not."""
    arguments = []
    for path, origin in shown.items():
        arguments += [word for parent in reversed(path.parents[:-1]) for word in ("--dir", str(parent))]
        if origin is None:
            arguments += ["--tmpfs", str(path)]
        elif origin.is_symlink():
            arguments += ["--symlink", os.readlink(origin), str(path)]
        else:
            arguments += ["--ro-bind", str(origin), str(path)]
    return arguments


def command(program, hidden=(), disk=256 * MEGABYTE):
    """The command that runs a program in the sandbox, where none of these folders is seen."""
    bwrap, shown = shutil.which("bwrap"), _shown(hidden)
    if bwrap is None:
        raise FileNotFoundError("no program is called bwrap")
    writable = [word for path in ("/dev/shm", "/tmp", str(HOME)) for word in ("--size", str(disk), "--tmpfs", path)]
    emptied = [str(path) for path, origin in shown.items() if origin is None]
    fixed = [word for path in ("/", "/dev", *emptied) for word in ("--remount-ro", path)]
    first, last = [*ISOLATION, *writable], [*fixed, "--chdir", str(HOME), "--", *program]
    if os.geteuid() != 0:
        return [bwrap, *first, *_view(shown), *last]
    # Root shows the same files to an account without a name, which then enters the sandbox like anybody else.
    outside = [*_view(shown), "--dev-bind", "/dev", "/dev", "--bind", "/proc", "/proc", "--dir", "/tmp"]
    rights = ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    lifeline = ["setpriv", "--pdeathsig=KILL", "unshare", "--fork", "--pid", "--kill-child", "--mount-proc"]
    become_nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    seen = {path: origin and path for path, origin in shown.items()}
    return [*lifeline, bwrap, *outside, *rights, "--", *become_nobody, bwrap, *first, *_view(seen), *last]


class Limits(Configurable):
    """What a submission may use up."""

    memory = Integer(2048, help="Megabytes for all processes of a submission together.").tag(config=True)
    disk = Integer(256, help="Megabytes for its files, which are in memory; and for one file.").tag(config=True)
    processes = Integer(100, help="Processes and threads.").tag(config=True)
    cpu_seconds = Integer(300, help="Processor time of a process.").tag(config=True)
    cell_seconds = Integer(30, help="Seconds for a cell, which is then interrupted.").tag(config=True)
    notebook_seconds = Integer(180, help="Seconds for all cells of a notebook together.").tag(config=True)
    output = Integer(5_000_000, help="Characters of output taken from one notebook.").tag(config=True)

    def as_plain(self):
        """A copy without settings, for other processes."""
        return Limits(**{name: getattr(self, name) for name in self.trait_names(config=True)})

    def of_a_process(self):
        """The limits that the system keeps for each process, by their names."""
        limits = {"AS": self.memory * MEGABYTE, "FSIZE": self.disk * MEGABYTE, "NPROC": self.processes}
        return limits | {"CPU": self.cpu_seconds, "CORE": 0, "NOFILE": 512}
