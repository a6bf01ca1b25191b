"""The warm process: it has imported what every submission imports, and forks a child for each of them.

    python -P template.py FD

At the socket FD come requests, each with one end of a socket pair. For each of them the process forks. The child enters
the sandbox that was made for this submission alone, gives up every right, sets limits that nothing after it can raise,
and only then listens at the socket: it runs cells and answers with their outputs. No learner's code ever runs in the
warm process itself, nothing secret is in its memory, and a child has no way back to it: another namespace of users,
processes, files and network, and no open file but the socket.
"""

import base64
import ctypes
import fcntl
import gc
import importlib.util
import io
import json
import os
import random
import resource
import signal
import socket
import struct
import sys
import tempfile
from pathlib import Path

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

NEW_USER, NS_GET_USERNS = 0x10000000, 0xB701
NAMESPACES = {"mnt": 0x20000, "pid": 0x20000000, "net": 0x40000000, "ipc": 0x08000000, "uts": 0x04000000}
DUMPABLE, DEATH_SIGNAL, SECCOMP, DROP_BOUNDING, NO_NEW_PRIVILEGES, AMBIENT = 4, 1, 22, 24, 38, 47
# Of each machine its number for seccomp, the system call `socket`, and those that no notebook needs: perf_event_open,
# bpf, userfaultfd, io_uring (which could make a socket), and keys of the kernel, which outlive their process.
URING = (425, 426, 427)
SYSTEM_CALLS = {
    "x86_64": (0xC000003E, 41, (248, 249, 250, 298, 321, 323, *URING)),
    "aarch64": (0xC00000B7, 198, (217, 218, 219, 241, 280, 282, *URING)),
}
FAMILIES = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK)  # others leave a network namespace
PACKAGE = "mathllm_exercises"

libc = ctypes.CDLL(None, use_errno=True)


# The warm process


def main(descriptor):
    """Serve until nobody holds the other end of the socket."""
    sys.modules["_warm"] = sys.modules["__main__"]  # IPython puts another module in its place
    channel = socket.socket(fileno=int(descriptor))
    with tempfile.TemporaryDirectory() as folder:
        os.environ["IPYTHONDIR"] = folder
        shell = _warm_shell()
    del os.environ["IPYTHONDIR"], os.environ["MPLCONFIGDIR"]  # matplotlib has read its list of fonts there
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        message, descriptors, _, _ = socket.recv_fds(channel, 65536, 1)
        if not message:
            return
        if os.fork() == 0:
            try:
                channel.close()
                _serve(json.loads(message), socket.socket(fileno=descriptors[0]), shell)
            finally:
                os._exit(0)
        os.close(descriptors[0])


def _warm_shell():
    """IPython as a notebook has it, with mathllm imported and the edition of the exercises that holds no answer."""
    edition = Path(__file__).with_name("__init__.py")
    places = importlib.util.find_spec(PACKAGE).submodule_search_locations
    spec = importlib.util.spec_from_file_location(PACKAGE, edition, submodule_search_locations=places)
    sys.modules[PACKAGE] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[PACKAGE])
    ipython = ("IPython.core.completer", "IPython.core.magics", "matplotlib_inline.backend_inline")
    for name in ("mathllm", "mathllm.figures.plots", "matplotlib.pyplot", *ipython, "asyncio"):
        importlib.import_module(name)
    settings = Config({"HistoryManager": {"enabled": False}})
    shell = Shell.instance(config=settings, displayhook_class=Hook, display_pub_class=Publisher, colors="nocolor")
    shell.run_cell("1 + 1; display(1); 1 / 0", store_history=False)
    shell.reset(new_session=True)
    shell.taken()
    gc.collect()
    gc.freeze()
    return shell


class Publisher(DisplayPublisher):
    def publish(self, data, metadata=None, **_):
        self.shell.add({"output_type": "display_data", "data": dict(data), "metadata": {}})

    def clear_output(self, wait=False):
        self.shell.outputs.clear()


class Hook(DisplayHook):
    def write_output_prompt(self):
        pass

    def write_format_data(self, format_dict, md_dict=None):
        self.shell.add({"output_type": "execute_result", "data": dict(format_dict), "metadata": {}})


class Shell(InteractiveShell):
    """Collects what cells put out, up to a limit."""

    outputs, room = [], 5_000_000

    def add(self, output):
        self.room -= len(str(output))
        if self.room > 0:
            self.outputs.append(output)

    def write(self, name, text):
        if self.room > 0:
            text = text[: self.room]
            self.room -= len(text)
            if self.outputs and self.outputs[-1].get("name") == name:
                self.outputs[-1]["text"].append(text)
            else:
                self.outputs.append({"output_type": "stream", "name": name, "text": [text]})

    def taken(self):
        outputs, self.outputs = self.outputs, []
        return outputs

    def ask_exit(self):
        pass

    def _showtraceback(self, etype, evalue, stb):
        shown = {"ename": str(etype.__name__), "evalue": str(evalue), "traceback": [*map(str, stb)]}
        self.add({"output_type": "error"} | shown)


class Stream(io.StringIO):
    """Standard output, or standard error, of a notebook."""

    encoding = "utf-8"

    def __init__(self, name, shell):
        super().__init__()
        self._name, self._shell = name, shell

    def write(self, text):
        self._shell.write(self._name, text)
        return len(text)


# A child


def _serve(request, connection, shell):
    """Enter the sandbox, if there is to be one, and run the submission in a process of its own there."""
    if request["sandbox"]:
        _enter(request["sandbox"], request["account"])
        _give_up_rights()
    libc.prctl(DEATH_SIGNAL, signal.SIGKILL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    child = os.fork()  # the first process in the new namespace of processes
    if child:
        connection.sendall(b"%d\n" % child)
        connection.close()
        os.waitpid(child, 0)
        return
    libc.prctl(DEATH_SIGNAL, signal.SIGKILL)
    os.setsid()
    connection = _settle(request, connection.detach())
    sys.stdout, sys.stderr = Stream("stdout", shell), Stream("stderr", shell)
    shell.room = request["room"]
    _answer(connection, shell)


def _enter(process, account):
    """Enter the namespaces of a process that bubblewrap has shut in."""
    opened = {name: os.open(f"/proc/{process}/ns/{name}", os.O_RDONLY) for name in ("user", *NAMESPACES)}
    owner = fcntl.ioctl(opened["mnt"], NS_GET_USERNS)  # the namespace of users that owns the others
    if account:
        os.setgroups([])
        os.setresgid(account, account, account)
        os.setresuid(account, account, account)
    _setns(owner, NEW_USER)
    for name, kind in NAMESPACES.items():
        _setns(opened[name], kind)
    _setns(opened["user"], NEW_USER)  # in which no more namespaces can be made


def _setns(descriptor, kind):
    if libc.setns(descriptor, kind) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def _give_up_rights():
    """No capability is left, and no program can give one back."""
    number = 0
    while libc.prctl(DROP_BOUNDING, number, 0, 0, 0) == 0:
        number += 1
    header, nothing = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    done = [
        number > 30,
        libc.prctl(AMBIENT, 4, 0, 0, 0) == 0,
        libc.capset(header, nothing) == 0,
        libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) == 0,
        libc.prctl(DUMPABLE, 1, 0, 0, 0) == 0,
        _filter_system_calls(),
    ]
    if not all(done):
        raise OSError("a right could not be given up")


def _filter_system_calls():
    """Refuse system calls with EPERM, from now on and for all processes that follow (a program for seccomp)."""
    if os.uname().machine not in SYSTEM_CALLS:
        return True
    machine, new_socket, others = SYSTEM_CALLS[os.uname().machine]
    load, equal, at_least, refuse, allow = 0x20, 0x15, 0x35, (0x06, 0, 0, 0x50001), (0x06, 0, 0, 0x7FFF0000)
    program = [(load, 0, 0, 4), (equal, 1, 0, machine), refuse]  # (operation, lines to skip if true, if false, number)
    program += [(load, 0, 0, 0), (at_least, 0, 1, 1 << 30), refuse]  # the same calls under other numbers
    for number in others:
        program += [(equal, 0, 1, number), refuse]
    program += [(equal, 1, 0, new_socket), allow, (load, 0, 0, 16)]
    for family in FAMILIES:
        program += [(equal, 0, 1, family), allow]
    lines = b"".join(struct.pack("=HBBI", *line) for line in [*program, refuse])
    kept = ctypes.create_string_buffer(lines)
    described = struct.pack("@HP", len(lines) // 8, ctypes.addressof(kept))
    return libc.prctl(SECCOMP, 2, described, 0, 0) == 0


def _settle(request, descriptor):
    """Limits, an environment, a working directory, and no open file but the socket."""
    connection = socket.socket(fileno=os.dup2(descriptor, 3))
    os.closerange(4, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    for standard in range(3):
        os.dup2(null := os.open("/dev/null", os.O_RDWR), standard)
        os.close(null)
    for name, limit in request["limits"].items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (limit, limit))
    Path("/proc/self/oom_score_adj").write_text("1000")  # should memory run out, this goes first
    os.environ.update(request["environment"])
    random.seed()
    sys.modules["numpy"].random.seed()
    os.makedirs(request["folder"], exist_ok=True)
    os.chdir(request["folder"])
    sys.path.insert(0, "")  # a module that was handed in can be imported
    sys.path_importer_cache.clear()
    return connection


def _answer(connection, shell):
    """Run cells and keep files, as asked, until the grader hangs up."""
    for line in connection.makefile("rb"):
        request, room = json.loads(line), shell.room
        shell.room = room if request.get("counts") else 2**26  # values are not cut off
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            if "file" in request:
                path = Path(request["file"])
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(base64.b64decode(request["content"]))
            else:
                shell.run_cell(request["run"], store_history=request["counts"])
        except (Exception, KeyboardInterrupt, SystemExit) as error:
            shell.add({"output_type": "error", "ename": type(error).__name__, "evalue": "", "traceback": []})
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        shell.room = shell.room if request.get("counts") else room
        outputs = [_plain(output) for output in shell.taken() if isinstance(output, dict)]
        reply = json.dumps({"number": request["number"], "outputs": outputs}, default=str, ensure_ascii=False)
        connection.sendall(reply.encode("utf-8", "surrogatepass") + b"\n")


def _plain(output):
    return output | ({"text": "".join(map(str, output["text"]))} if "text" in output else {})


if __name__ == "__main__":
    main(*sys.argv[1:])
