"""The exchange with three accounts of the system: a teacher, a learner, and a learner who attacks.

Each command runs under its account, in a view of this machine with a list of accounts of its own.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from grading import PATH, ROOT, SUCCEEDS, make_course, view

NAME = "01_vectors"
ACCOUNTS = {"teacher": 5001, "ada": 5002, "eve": 5003}
CLASS = Path("/tmp/class")
SECRET = "own_length = 'known to ada alone'"

pytestmark = [pytest.mark.nightly, pytest.mark.usefixtures("sandboxed")]
if os.geteuid() != 0:
    pytestmark.append(pytest.mark.skip("only root can act for several accounts"))

ANSWER = f"""
import nbformat
notebook = nbformat.read("{NAME}/{NAME}.ipynb", 4)
next(cell for cell in notebook.cells if cell.id == "01-vectors-own_length-answer").source = "{SECRET}"
nbformat.write(notebook, "{NAME}/{NAME}.ipynb")
"""
ATTACKS = f"""{SUCCEEDS}
course = pathlib.Path("{CLASS}/exchange/mathllm")
inbound, outbound, released = course / "inbound", course / "outbound", course / "outbound/{NAME}/{NAME}.ipynb"
late = "+{NAME}+2030-01-01 00:00:00.000000 UTC"

attacks = {{
    "list what was handed in": lambda: os.listdir(inbound),
    "rename the course": lambda: course.rename(course.with_name("old")),
    "rename what was handed in": lambda: inbound.rename(course / "old"),
    "change what is released": lambda: released.write_text("{{}}"),
    "replace what is released": lambda: shutil.rmtree(outbound / "{NAME}"),
    "release something": lambda: (outbound / "02_similarity").mkdir(),
    "make the folder of feedback first": lambda: (course / "feedback").mkdir(),
    "look into the course": lambda: os.listdir("{CLASS}/teacher"),
    "look into another home": lambda: os.listdir("{CLASS}/ada"),
}}
print(json.dumps([name for name, attack in attacks.items() if succeeds(attack)]))
forged = shutil.copytree("{CLASS}/eve/mine", inbound / f"ada{{late}}")
(forged / "timestamp.txt").write_text("2030-01-01 00:00:00.000000 UTC")
os.symlink("{CLASS}/teacher/course/source/{NAME}", inbound / f"eve{{late}}")
"""
AFTERWARDS = f"""{SUCCEEDS}
feedback = pathlib.Path("{CLASS}/exchange/mathllm/feedback")
attacks = {{"list all feedback": lambda: os.listdir(feedback), "rename it": lambda: feedback.rename("{CLASS}/eve/old")}}
print(json.dumps([name for name, attack in attacks.items() if succeeds(attack)]))
"""


@pytest.fixture
def act(tmp_path):
    """Runs a command as one of the accounts, in its home; what it printed."""
    users = "".join(f"{name}:x:{number}:{number}::{CLASS / name}:/bin/sh\n" for name, number in ACCOUNTS.items())
    (tmp_path / "passwd").write_text(f"root:x:0:0:root:/root:/bin/sh\n{users}")
    homes = tmp_path / "class"
    for name, number in ACCOUNTS.items():
        (homes / name).mkdir(parents=True)
        os.chown(homes / name, number, number)
        (homes / name).chmod(0o700)
    homes.chmod(0o755)
    (homes / "exchange").mkdir()
    (homes / "exchange").chmod(0o1777)

    def run(name, *command, folder=""):
        number, home = ACCOUNTS[name], CLASS / name
        own = dict.fromkeys(("HOME", "MPLCONFIGDIR", "IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR"), str(home))
        own |= {"USER": name, "LOGNAME": name, "PATH": PATH, "TMPDIR": "/tmp", "PYTHONDONTWRITEBYTECODE": "1"}
        own |= {"MATHLLM_EXCHANGE": f"{CLASS}/exchange", "MATHLLM_COURSE_KEY": "", "MATHLLM_LEARNER": ""}
        own |= {"JUPYTER_CONFIG_PATH": str(ROOT / "exercises")} if name != "teacher" else {}
        become = ["--chdir", str(home / folder), "setpriv", f"--reuid={number}", f"--regid={number}", "--clear-groups"]
        there = view(*become, *command, writable={"/etc/passwd": tmp_path / "passwd", CLASS: homes})
        done = subprocess.run(there, capture_output=True, text=True, env=os.environ | own)
        assert done.returncode == 0, f"{name}: {' '.join(command)[:80]}\n{done.stdout}{done.stderr}"
        return done.stdout

    run.homes = homes
    return run


def test_a_learner_cannot_read_replace_or_forge_what_others_hand_in(act):
    course = act.homes / "teacher" / "course"
    course.mkdir()
    make_course(course, NAME)
    for path in (course, *course.rglob("*")):
        os.chown(path, ACCOUNTS["teacher"], ACCOUNTS["teacher"])

    def teach(*command):
        return act("teacher", *command, folder="course")

    for command in ("generate_assignment", "release_assignment"):
        teach("nbgrader", command, NAME)
    for name in ("ada", "eve"):
        act(name, "nbgrader", "fetch_assignment", NAME, "--course", "mathllm")
    act("ada", sys.executable, "-c", ANSWER)
    act("ada", "nbgrader", "submit", NAME, "--course", "mathllm")
    shutil.copytree(act.homes / "eve" / NAME, act.homes / "eve" / "mine")
    assert json.loads(act("eve", sys.executable, "-c", ATTACKS)) == []

    teach("nbgrader", "collect", NAME, "--update")
    assert [path.name for path in (course / "submitted").iterdir()] == ["ada"]
    collected = nbformat.read(course / "submitted" / "ada" / NAME / f"{NAME}.ipynb", 4)
    assert SECRET in [cell.source for cell in collected.cells]
    teach("python", "-m", "mathllm_grading", "grade", NAME)
    for command in ("generate_feedback", "release_feedback"):
        teach("nbgrader", command, NAME)
    assert json.loads(act("eve", sys.executable, "-c", AFTERWARDS)) == []
    act("ada", "nbgrader", "fetch_feedback", NAME, "--course", "mathllm")
    assert len([*(act.homes / "ada" / NAME).rglob("feedback/*/*.html")]) == 1
