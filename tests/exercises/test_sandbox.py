"""What a submission's kernel can reach from its sandbox, what it can use up, and what is left when it ends.

The first half looks around in one kernel and asks about each thing it found; the second half does harm, each case in a
kernel of its own with small limits. None of it runs anywhere but in the sandbox.
"""

import ast
import json
import os
import platform
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pytest
from grading import EXERCISES, NORM, ROOT, alive, gone, graded, run, view
from mathllm_exercises import item
from mathllm_exercises.own_numbers import own_numbers
from mathllm_grading import sandbox
from mathllm_grading.shell import Shell

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("sandboxed")]

POINTS = item("01.vectors.norm").points
DISTANCE = "01.vectors.distance"
KEPT, HERS = ("source/a1/a1.ipynb", "submitted/bob/a1/a1.ipynb", "gradebook.db"), "autograded/ada/a1"


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A course with secrets in it, which is the working directory, and a submission in it."""
    root = tmp_path_factory.mktemp("course")
    for name in (*KEPT, "backups/gradebook.db", ".course_key"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("a secret, long enough to be a key")
    (root / HERS).mkdir(parents=True)
    (root / HERS / "helper.py").write_text("answer = 42")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.setenv("MATHLLM_COURSE_KEY", "k" * 32)
        patch.setenv("SERVICE_TOKEN", "a token")
        yield root


LOOK_AROUND = """
import glob, importlib, json, os, pathlib, shutil, socket, subprocess
def attempt(action, *arguments):
    try:
        return str(action(*arguments))
    except Exception as error:
        return f"no: {type(error).__name__}"
read = lambda path: os.listdir(path) if os.path.isdir(path) else [open(path, "rb").read()]
read_text = lambda path: open(path).read()
write = lambda path: open(os.path.join(path, "mine"), "w")
connect = lambda address: socket.create_connection(address, timeout=3)
found = {
    "read": {path: attempt(read, path) for path in SECRETS},
    "write": {path: attempt(write, path) for path in FIXED},
    "imported": {name: attempt(importlib.import_module, name) for name in MODULES},
    "connected": [attempt(connect, tuple(address)) for address in ADDRESSES],
    "environment": [*os.environ, *"".join(map(read_text, glob.glob("/proc/[0-9]*/environ"))).split(chr(0))],
    "processes": [int(path.name) for path in pathlib.Path("/proc").glob("[0-9]*")],
    "status": open("/proc/self/status").read(),
    "new namespace": subprocess.run(["unshare", "--user", "true"], capture_output=True).returncode,
    "hostname": socket.gethostname(),
}
if socket.gethostname() != "sandbox":
    raise RuntimeError
shutil.rmtree(COURSE, ignore_errors=True)
shutil.rmtree("/", ignore_errors=True)
"""


@pytest.fixture(scope="module")
def found(course):
    """What a kernel found that looked around, and tried to delete all it could."""
    secrets = [course / name for name in (*KEPT, "source", "submitted", "autograded", "backups", ".course_key")]
    secrets += [EXERCISES / name for name in ("source", "assignments", "practice")]
    secrets += [EXERCISES / "mathllm_exercises" / name for name in ("checks", "bank.json")]
    secrets += [Path(place, "mathllm_course", "course") for place in sys.path]
    secrets += ["/root/.bashrc", "/etc/shadow", "/etc/passwd", "/run", "/var", ROOT / "tests", ROOT / ".git"]
    secrets += [Path.home()] * (Path.home() != Path("/"))
    names = ("bank", "checks", "checks.softmax", "registry", "marking", "report")
    modules = [*(f"mathllm_exercises.{name}" for name in names), "mathllm_grading", "mathllm_course.office"]
    fixed = ["/", "/usr", "/dev", sys.prefix, ROOT / "mathllm", EXERCISES / "mathllm_exercises", course]
    with socket.create_server(("127.0.0.1", 0)) as listening:
        addresses = [["127.0.0.1", listening.getsockname()[1]], ["192.0.2.1", 80]]
        lists = {"SECRETS": secrets, "FIXED": fixed, "MODULES": modules, "ADDRESSES": addresses, "COURSE": course}
        given = "\n".join(f"{name} = {json.loads(json.dumps(value, default=str))!r}" for name, value in lists.items())
        result = run(given, LOOK_AROUND, "print(found)", folder=course / HERS, hidden=[course])
    return ast.literal_eval(result.texts[-1])


def test_the_course_the_repository_and_the_home_directory_are_out_of_sight(found):
    for path, got in found["read"].items():
        assert got.startswith("no:") or set(ast.literal_eval(got)) <= on_the_way(Path(path)), path


def on_the_way(folder):
    """What a folder may show: the way to Python, to mathllm and to the sockets, where it leads through the folder."""
    shown = [path for path in (*sandbox._shown(), Path(tempfile.gettempdir())) if folder in path.parents]
    return {path.relative_to(folder).parts[0] for path in shown}


FILES = """
import os
from mathllm_grading import sandbox, shell
with shell.Shell("eve", sandbox.Limits()) as learner:
    names = "[os.path.join(place, name) for place, _, names in os.walk(os.environ['SITE']) for name in names]"
    for output in learner.run(f"import os; os.environ['SITE'] = {os.environ['SITE']!r}; print(*{names}, sep=chr(10))"):
        print(output["text"])
"""


def test_where_the_package_is_installed_it_shows_no_solution_either(tmp_path):
    """As with `pip install --user`: the packages lie in a folder that submissions see, here one with two names; in it
    lies a second copy of what learners have."""
    (tmp_path / "home").symlink_to("other name")
    (tmp_path / "other name").mkdir()
    user = {"PYTHONUSERBASE": str(tmp_path / "home" / "ada")}
    ask = [sys.executable, "-c", "import site; print(site.getusersitepackages())"]
    place = Path(subprocess.run(ask, env=os.environ | user, capture_output=True, text=True, check=True).stdout.strip())
    for folder in (sandbox.MATHLLM, *(EXERCISES / f"mathllm_{name}" for name in ("course", "exercises", "grading"))):
        shutil.copytree(folder, place / folder.name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(EXERCISES / "source", place / "mathllm_course" / "course" / "source")
    shutil.copytree(place / "mathllm_exercises", place / "again" / "mathllm_exercises")
    inside = os.environ | user | {"PYTHONPATH": f"{place}{os.pathsep}{place / 'again'}", "SITE": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", FILES], env=inside, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    names = place, place.resolve()
    lines = [Path(line) for line in done.stdout.split("\n") if line]
    seen = {line.relative_to(name) for line in lines for name in names if line.is_relative_to(name)}
    assert Path("mathllm", "softmax.py") in seen
    shown = {path.name for path in seen if path.parts[0] == "mathllm_exercises"}
    assert shown == {"__init__.py", "codec.py", "kernel_side.py"}
    assert {path.parts[0] for path in seen} == {"mathllm", "mathllm_exercises"}


def test_links_that_lead_to_python_show_nothing_of_the_folders_they_lie_in(tmp_path, monkeypatch):
    """As where a virtual environment was made with a link in ~/bin."""
    tmp_path.chmod(0o755)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    (tmp_path / "python").symlink_to("bin/python")
    (tmp_path / "diary").touch()
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    show = f"import os; print([*os.walk({str(tmp_path)!r})])"
    done = subprocess.run(sandbox.command([tmp_path / "bin" / "python", "-c", show]), capture_output=True, text=True)
    assert ast.literal_eval(done.stdout) == [(str(tmp_path), ["bin"], []), (str(tmp_path / "bin"), [], ["python"])]


def test_a_virtual_environment_may_be_a_link(tmp_path, monkeypatch):
    (tmp_path / "venv").symlink_to(Path(sys.prefix).resolve())
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "venv"))
    importing = [tmp_path / "venv" / "bin" / "python", "-c", "import IPython.lib.deepreload, wave"]
    subprocess.run(sandbox.command(importing), check=True)


def test_what_is_to_be_hidden_may_go_by_the_name_of_a_link(tmp_path, monkeypatch):
    """As where nbgrader's exchange, in /usr/local, is a link to a larger disk."""
    monkeypatch.setenv("MATHLLM_DATA", str(tmp_path))
    (tmp_path / "large").mkdir()
    (tmp_path / "large" / "secret").touch()
    (tmp_path / "exchange").symlink_to("large")
    tmp_path.chmod(0o755)
    (shown,) = run(f"import os; print([*os.walk({str(tmp_path)!r})])", hidden=[tmp_path / "exchange"]).texts
    assert ast.literal_eval(shown)[0][1:] == (["exchange", "large"], [])
    assert ast.literal_eval(shown)[1:] == [(str(tmp_path / "large"), [], [])]


def test_the_item_bank_cannot_be_imported(found):
    assert set(found["imported"].values()) == {"no: ModuleNotFoundError"}


def test_nothing_outside_can_be_written_or_deleted(found, course):
    assert set(found["write"].values()) <= {"no: OSError", "no: PermissionError", "no: FileNotFoundError"}
    for path in (*(course / name for name in KEPT), course / HERS / "helper.py", ROOT / "mathllm/vectors.py"):
        assert path.exists()


def test_there_is_no_network_and_no_way_to_this_machine(found):
    assert all(got.startswith("no:") for got in found["connected"])
    assert found["hostname"] == "sandbox"


def test_the_environment_holds_the_learner_and_no_secret(found):
    names = {entry.split("=")[0] for entry in found["environment"]}
    assert "MATHLLM_LEARNER" in names
    assert not names & {"MATHLLM_COURSE_KEY", "SERVICE_TOKEN", "MATHLLM_EXCHANGE"}


def test_no_other_process_is_seen_and_no_right_is_left(found):
    assert len(found["processes"]) <= 3  # bubblewrap, the program that waits, and the submission
    status = dict(line.split(":\t") for line in found["status"].splitlines() if ":\t" in line)
    assert "0" not in status["Uid"].split()
    assert {status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert status["NoNewPrivs"] == "1"
    assert found["new namespace"] != 0


HONEST = """
import os
import helper, mathllm as ml
from mathllm_exercises import check, learner, numbers
mine = numbers("01.vectors.own_length")
length, points = float(ml.norm([3.0, 4.0])), check("01.vectors.norm", ml.norm).score()
print([helper.answer, learner(), mine.v.tolist(), sorted(os.listdir())[-1], length, points])
"""


def test_an_honest_notebook_finds_its_files_its_numbers_and_mathllm(course):
    borrowed = "import importlib, mathllm.vectors\ndistance = importlib.reload(mathllm.vectors).distance"
    result = run(HONEST, NORM, graded(), borrowed, graded(DISTANCE), folder=course / HERS)
    mine = own_numbers(item("01.vectors.own_length"), "ada")["v"].tolist()
    assert ast.literal_eval(result.texts[0]) == [42, "ada", mine, "helper.py", 5.0, 0.0]
    assert result.points == [POINTS, 0.0]
    assert not result.review


# Harm


def test_memory_disk_and_output_that_run_out_cost_no_points_that_were_earned(course):
    hoard = "hoard = []\nwhile True: hoard.append(bytearray(10**7))"
    fill = "for n in range(9):\n    with open(f'file{n}', 'wb') as file: file.write(bytes(10**7))"
    flood = "print('x' * 50_000_000)"
    drip = "for _ in range(500): print('x' * 100_000)"
    result = run(NORM, hoard, "del hoard", fill, flood, drip, graded(), memory=1024, disk=32, output=1_000_000)
    assert [result.texts[1], result.texts[3]] == ["MemoryError", "OSError"]
    assert 900_000 < sum(map(len, result.texts)) < 1_010_000
    assert result.points == [POINTS]
    assert not result.review


FILL = """
import os
filled = {}
for folder in WRITABLE:
    try:
        for number in range(9):
            with open(f"{folder}/file{number}", "wb") as file:
                file.write(bytes(10**7))
    except OSError as error:
        filled[folder] = error.errno
    for number in range(9):
        if os.path.exists(f"{folder}/file{number}"):
            os.remove(f"{folder}/file{number}")
writable = [line.split()[1] for line in open("/proc/mounts") if "rw" in line.split()[3].split(",")]
print([filled, writable])
"""


def test_every_place_that_can_be_written_to_is_small_and_belongs_to_the_sandbox(course):
    places = ["/tmp", "/dev/shm", str(sandbox.HOME)]
    result = run(f"WRITABLE = {places}", FILL, NORM, graded(), disk=32)
    filled, writable = ast.literal_eval(result.texts[1])
    assert filled == dict.fromkeys(places, 28)  # no space left
    assert {place for place in writable if not place.startswith(("/proc", "/dev/"))} <= {*places, "/dev"}
    assert result.points == [POINTS]


@pytest.mark.parametrize(
    "bomb",
    [
        "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
        "import os, time\ntry:\n    while os.fork(): pass\n    time.sleep(600)\nexcept OSError: os._exit(0)",
    ],
)
def test_a_fork_bomb_ends_with_its_shell(course, bomb):
    before = children_of_the_warm_process()
    result = run(NORM, graded(), bomb, cell_seconds=6, processes=40)
    assert result.points == [POINTS]
    psutil.wait_procs(children_of_the_warm_process() - before, timeout=300)
    assert children_of_the_warm_process() <= before


def children_of_the_warm_process():
    """The processes of the shells that this process has started."""
    warm = [child for child in psutil.Process().children() if "template.py" in " ".join(child.cmdline())]
    return {child for process in warm for child in process.children(recursive=True)}


def test_a_daemon_ends_with_its_shell(tmp_path, course):
    daemon = ["python", "-c", "import time; time.sleep(314159)", mark := str(tmp_path)]
    start = f"import subprocess\ndaemon = subprocess.Popen({daemon}, start_new_session=True)"
    read = "while not (said := open(f'/proc/{daemon.pid}/cmdline').read()): pass"  # it is empty while a program begins
    result = run(start, read, "print(daemon.poll(), said)")
    assert result.texts[2].startswith("None python")
    assert mark in result.texts[2]
    assert gone(mark)


GRADER = """
import sys
from mathllm_grading import sandbox, shell
one = shell.Shell("ada", sandbox.Limits())
wait = ["python", "-c", "import time; time.sleep(314159)", sys.argv[1]]
one.run(f"import subprocess; child = subprocess.Popen({wait})")
one.run("while not open(f'/proc/{child.pid}/cmdline').read(): pass")  # it is empty while a program begins
print("ready", flush=True)
one.run("while True: pass")
"""


def test_a_grader_that_is_killed_takes_its_shells_with_it(tmp_path):
    mark = f"{tmp_path}/mark"
    grader = subprocess.Popen([sys.executable, "-c", GRADER, mark], stdout=subprocess.PIPE, text=True)
    assert grader.stdout.readline() == "ready\n"
    assert len(alive(mark)) == 2
    grader.kill()
    grader.communicate()
    assert gone(mark)


STUBBORN = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass"
HOARD = "if os.fork() == 0: hoard = bytearray(3 * 10**8); time.sleep(314159)\n"
FORGED = b'{"number": 4, "outputs": [{"output_type": "display_data", "data": {"text/plain": "8.0"}}]}\n'


def written_to_the_grader(content):
    """A cell that writes this to all that is open, and so to the grader's socket."""
    return f"import os\nfor fd in range(3, 64):\n    try: os.write(fd, {content})\n    except OSError: pass"


@pytest.mark.parametrize(
    ("harm", "limits", "reason"),
    [
        ("import os; os._exit(0)", {}, "the notebook's process ended"),
        ("import time; time.sleep(2)", {"notebook_seconds": 2}, "the notebook took more than 2 seconds"),
        pytest.param(STUBBORN, {"cell_seconds": 20}, "a cell did not end", marks=pytest.mark.nightly),
        ("import os, time\n" + 8 * HOARD + "time.sleep(314159)", {"memory": 1024}, "more than 1024 MB of memory"),
        (written_to_the_grader(f"b'x' * {33 * sandbox.MEGABYTE}"), {}, "answered with too much"),
        (written_to_the_grader(b"\xff\n" * 100), {}, "answered nonsense"),
        (written_to_the_grader(b"\n"), {}, "answered nonsense"),
        (written_to_the_grader(b"{}\n"), {}, "answered nonsense"),
        (written_to_the_grader(b"[]\n" * 50), {}, "answered nonsense"),
        (written_to_the_grader(FORGED), {}, "answered what was not asked"),
    ],
)
def test_what_ends_a_notebook_costs_only_what_comes_after(harm, limits, reason):
    result = run(NORM, "import sys\nsys.exit(0)", graded(), harm, graded(DISTANCE), **limits)
    assert result.points == [POINTS, 0.0]
    assert list(result.review) == [item(DISTANCE).grade_id]
    assert reason in result.review[item(DISTANCE).grade_id]


def test_outputs_of_several_cells_are_too_much_together():
    flood = "get_ipython().taken = lambda: [{'output_type': 'x' * 20_000_000}]"
    result = run(NORM, graded(), flood, "1", graded(DISTANCE))
    assert result.points == [POINTS, 0.0]
    assert "answered with too much" in result.review[item(DISTANCE).grade_id]


def test_a_loop_is_interrupted_and_the_notebook_goes_on():
    result = run(NORM, "while True: pass", graded(), cell_seconds=6)
    assert result.texts[1] == "KeyboardInterrupt"
    assert result.points == [POINTS]


# From one learner to the next

LEAVE = """
import builtins, os, random, sys, numpy as np, mathllm, mathllm_exercises, IPython
before = [random.random(), np.random.rand(), random.getstate()[1][:5], np.random.get_state()[1][:5].tolist()]
builtins.left = mathllm.left = np.left = sys.left = mathllm_exercises.kernel_side.left = IPython.left = "left"
get_ipython().left = "left"
np.array_equal = lambda *args: True
mathllm.norm = mathllm.vectors.norm = None
sys.modules["left"] = sys
sys.path.append("/left")
os.environ["LEFT"] = "left"
os.umask(0)
for folder in (".", "/tmp", "/dev/shm", os.path.expanduser("~"), os.path.expanduser("~/.ipython")):
    os.makedirs(folder, exist_ok=True)
    open(folder + "/left.py", "w").write("left = 'left'")
secret = ["".join(["a-secret-", "of-this-notebook"]) for _ in range(1000)]
print(before)
"""
LOOK = """
import ctypes, gc, builtins, os, random, sys, socket, numpy as np, mathllm, mathllm_exercises, IPython, glob
before = [random.random(), np.random.rand(), random.getstate()[1][:5], np.random.get_state()[1][:5].tolist()]
places = [builtins, mathllm, np, sys, mathllm_exercises.kernel_side, IPython, get_ipython()]
found = [str(place) for place in places if hasattr(place, "left")]
found += [name for name in ("left", "secret") if name in globals() or name in sys.modules]
found += [os.environ["LEFT"]] if "LEFT" in os.environ else []
found += ["/left"] if "/left" in sys.path else []
for folder in (".", "/tmp", "/dev/shm", "/home"):
    found += glob.glob(folder + "/**/*left*", recursive=True)
found += ["patched"] if np.array_equal([1], [2]) or mathllm.norm is None else []
memory, remembered = b"".join([b"a-secret-", b"of-this-notebook"]), 0
for line in open("/proc/self/maps"):
    start, end = (int(part, 16) for part in line.split()[0].split("-"))
    if "r" in line.split()[1] and "[v" not in line and end - start < 2**28:
        with open("/proc/self/mem", "rb") as file:
            file.seek(start)
            try:
                remembered += file.read(end - start).count(memory)
            except OSError:
                pass
found += [name for name in os.listdir("/proc/self/fd") if int(name) > 4]
umask = os.umask(0o22)
print([before, found, umask, remembered])
"""


def test_nothing_passes_from_one_learner_to_the_next(course):
    """Files, memory, modules, environment, random state: each shell begins as the one before it began."""
    clean = ast.literal_eval(run(LOOK).texts[0])[-1]
    left = ast.literal_eval(run(LEAVE).texts[0])
    before, found, umask, remembered = ast.literal_eval(run(LOOK).texts[0])
    assert remembered < clean + 100  # the pattern itself is in memory
    assert found == []
    assert umask == 0o22
    assert not [one for one, other in zip(left, before, strict=True) if one == other]


ASK = """
import ctypes, errno, platform, socket
libc = ctypes.CDLL(None, use_errno=True)
def asked(number, *arguments):
    return "done" if libc.syscall(number, *arguments) >= 0 else errno.errorcode[ctypes.get_errno()]
def opened(family):
    try:
        socket.socket(family, socket.SOCK_STREAM if family != 16 else socket.SOCK_RAW).close()
    except OSError as error:
        return errno.errorcode[error.errno]
    return "done"
calls = {"x86_64": (248, 298, 321, 323), "aarch64": (217, 241, 280, 282)}[platform.machine()]
key = [asked(calls[0], b"user", b"MARK", b"secret", 6, keyring) for keyring in (-1, -3, -4, -5)]
others = [asked(number, 0, 0, 0) for number in (*calls[1:], 425)]
print([key, others, [opened(family) for family in (1, 2, 10, 16)], [opened(family) for family in (17, 31, 38, 40)]])
"""


@pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="the numbers are those of these machines")
def test_system_calls_that_no_notebook_needs_are_refused_and_no_key_stays_behind():
    mark = "mark-of-this-test"
    key, others, allowed, refused = ast.literal_eval(run(ASK.replace("MARK", mark)).texts[0])
    assert set(key) == set(others) == set(refused) == {"EPERM"}  # packets, Bluetooth, the kernel's ciphers, a VM's host
    assert set(allowed) == {"done"}
    assert mark not in run("print(open('/proc/keys').read())").texts[0]


def test_one_process_grades_with_and_without_a_sandbox(monkeypatch):
    home = "import os; print(os.environ['HOME'])"
    for unsandboxed, expected in (("yes", os.environ["HOME"]), ("", str(sandbox.HOME)), ("yes", os.environ["HOME"])):
        monkeypatch.setenv("MATHLLM_UNSANDBOXED", unsandboxed)
        assert run(home).texts == [f"{expected}\n"]


LOOK_FOR_HER = """
import os, socket
found = [name for folder in ('/tmp', '/dev/shm') for name in os.listdir(folder)]
try:
    socket.socket(socket.AF_UNIX).connect('\\0door')
    found.append('door')
except OSError:
    pass
for process in range(2, 200):
    try:
        os.kill(process, 9) if process != os.getpid() and process != 2 else None
        found.append(process) if process not in (2, os.getpid()) else None
    except OSError:
        pass
print(found)
"""


def test_two_shells_at_once_do_not_see_each_other(course):
    with Shell("ada", sandbox.Limits()) as ada, Shell("bob", sandbox.Limits()) as bob:
        ada.run("import socket; door = socket.socket(socket.AF_UNIX); door.bind('\\0door'); door.listen()")
        ada.run("import os; open('/tmp/hers', 'w').close(); open('/dev/shm/hers', 'w').close()")
        found = ast.literal_eval("".join(output.get("text", "") for output in bob.run(LOOK_FOR_HER)))
        assert [what for what in found if what in ("hers", "door") or isinstance(what, int)] == []
        assert ada.run("'well'")[0]["data"]["text/plain"] == "'well'"


# Who may grade, and where


ORDINARY = """
import os, sys
sys.path.insert(0, sys.argv[1])
from grading import NORM, graded, run
course = os.path.join(os.environ["HOME"], "a1")
os.mkdir(course)
os.chdir(course)
result = run(NORM, "import os; print(os.getuid())", graded(), hidden=[course])
print(os.getuid(), result.texts[1], result.points)
"""


@pytest.mark.nightly
def test_an_ordinary_user_grades_in_the_same_sandbox(course, tmp_path):
    """Root shows the files to an account without rights; everybody else has no rights anyway."""
    enter = view("setpriv", "--reuid=4711", "--regid=4711", "--clear-groups")
    prefix = enter if os.geteuid() == 0 else []
    home = "/tmp" if prefix else str(tmp_path)
    own = dict.fromkeys(("HOME", "MPLCONFIGDIR", "IPYTHONDIR", "JUPYTER_CONFIG_DIR"), home)
    environment = os.environ | own | {"PYTHONDONTWRITEBYTECODE": "1"} | ({"TMPDIR": "/tmp"} if prefix else {})
    command = [*prefix, sys.executable, "-c", ORDINARY, str(ROOT / "tests" / "exercises")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    uid = "4711" if prefix else str(os.getuid())
    assert done.stdout.split() == [uid, uid, f"[{POINTS}]"], done.stderr
