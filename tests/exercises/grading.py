"""What tests of grading share: cells to grade, nbgrader's commands, and a look at this machine's processes."""

import contextlib
import copy
import multiprocessing
import os
import shutil
import sqlite3
import sys
import tempfile
import warnings
from pathlib import Path
from types import SimpleNamespace

import nbformat
import psutil
from mathllm_exercises import item
from mathllm_exercises.marking import Marks
from mathllm_grading.grading import run_cells
from mathllm_grading.sandbox import Limits, required
from mathllm_grading.submission import Assignment, read_submission
from nbformat.v4 import new_code_cell

ROOT = Path(__file__).resolve().parents[2]
EXERCISES = ROOT / "exercises"
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
NORM = """
import numpy as np
def norm(x):
    largest = np.max(np.abs(x), axis=-1, keepdims=True)
    scale = np.where(largest > 0, largest, 1)
    return scale[..., 0] * np.sqrt(np.sum((x / scale) ** 2, axis=-1))
"""

# What an attacker's program begins with.
SUCCEEDS = """
import json, os, pathlib, shutil
def succeeds(attack):
    try:
        attack()
    except PermissionError:
        return False
    return True
"""


def graded(id="01.vectors.norm"):
    """The cell that checks an item, as nbgrader knows it."""
    entry = item(id)
    flags = {"schema_version": 3, "grade_id": entry.grade_id, "grade": True, "locked": True, "solution": False}
    metadata = {"nbgrader": flags | {"task": False, "points": entry.points}}
    return new_code_cell(f'check("{id}", {entry.answer}).score()', metadata=metadata)


def code(source):
    """A cell as it is read from a submission."""
    return {"cell_type": "code", "id": "a-cell", "metadata": {}, "source": source, "outputs": []}


def run(*cells, folder=None, hidden=(), key=b"k" * 32, **limits):
    """Run cells as a submission: the text each of them put out, points by grade id, and what is to be reviewed."""
    cells = [code(cell) if isinstance(cell, str) else copy.deepcopy(cell) for cell in cells]
    files = read_submission(folder).files if folder else {}
    assignment = Assignment("a1", {}, key, Limits(**PATIENCE | limits), hidden=hidden, sandboxed=required())
    marks, missing = run_cells(cells, "ada", assignment, files)
    print("A grade that is missing is missing because:", missing, file=sys.stderr)  # shown where a test fails
    flags = [cell["metadata"].get("nbgrader", {}) for cell in cells]
    asked = [flag["grade_id"] for flag in flags if flag.get("grade")]
    judged = {name: mark for name, mark in marks.items() if isinstance(mark, Marks)}
    return SimpleNamespace(
        texts=["".join(o.get("text") or o.get("ename") or "" for o in cell["outputs"]) for cell in cells],
        points=[judged[name].points if name in judged else 0.0 for name in asked],
        marks=judged,
        review={name: marks.get(name) or missing for name in asked if name not in judged},
    )


# A busy machine may need many seconds for a cell.
PATIENCE = {"cell_seconds": 120, "notebook_seconds": 3600}


def make_course(root, assignment, more="", key="k" * 64):
    """The book's course in this folder, with one assignment, and the patience of a test; `more` is for its settings.

    The key makes the private cases the same in each run; without one, the grader makes one.
    """
    settings = (EXERCISES / "nbgrader_config.py").read_text(encoding="utf-8")
    patience = "".join(f"c.Limits.{name} = {seconds}\n" for name, seconds in PATIENCE.items())
    (root / "nbgrader_config.py").write_text(settings + patience + more, encoding="utf-8")
    shutil.copytree(EXERCISES / "source" / assignment, root / "source" / assignment)
    if key:
        (root / ".course_key").write_text(key, encoding="utf-8")


def generated(root, assignment, only=None, **settings):
    """The same with the assignment generated, of which only these graded cells are kept, and their answers."""
    make_course(root, assignment, **settings)
    if only:
        path = root / "source" / assignment / f"{assignment}.ipynb"
        notebook = nbformat.read(path, 4)
        notebook.cells = [cell for cell in notebook.cells if grade_id(cell).removesuffix("-answer") in only]
        nbformat.write(notebook, path)
    nbgrader(f"generate_assignment {assignment}", root)
    return root


def new_gradebooks_at_once():
    """Let nbgrader ask alembic itself for the version of a new gradebook, and not a program that takes six seconds."""
    import nbgrader.api
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    def version():
        with nbgrader.api._temp_alembic_ini("sqlite://") as settings:
            return ScriptDirectory.from_config(Config(settings)).get_current_head()

    nbgrader.api.get_alembic_version = version


def grade_id(cell):
    return cell.metadata.get("nbgrader", {}).get("grade_id", "")


def answered(path, answers):
    """The notebook at this path with these answers, by the grade ids of their cells."""
    notebook = nbformat.read(path, 4)
    for cell in notebook.cells:
        cell.source = answers.get(grade_id(cell), cell.source)
    return notebook


def hand_in(root, learner, notebook, time="2026-11-20 10:00:00 UTC"):
    """Put a notebook, or the bytes of a file that is none, where `collect` puts what a learner handed in."""
    (assignment,) = (path.name for path in (root / "source").iterdir())
    folder = root / "submitted" / learner / assignment
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "timestamp.txt").write_text(time)
    content = notebook if isinstance(notebook, bytes) else nbformat.writes(notebook).encode()
    (folder / f"{assignment}.ipynb").write_bytes(content)
    return folder


def grades(root):
    """{learner: {grade id: (the points that the grader gave, whether a person is asked)}} from the gradebook."""
    query = """
        SELECT student_id, base_cell.name, auto_score, needs_manual_grade FROM grade
        JOIN base_cell ON grade.cell_id = base_cell.id
        JOIN submitted_notebook ON grade.notebook_id = submitted_notebook.id
        JOIN submitted_assignment ON submitted_notebook.assignment_id = submitted_assignment.id
    """
    result = {}
    with contextlib.closing(sqlite3.connect(root / "gradebook.db")) as database:
        for learner, name, points, asked in database.execute(query):
            result.setdefault(learner, {})[name] = points, bool(asked)
    return result


def view(*command, places=(), writable=()):
    """The command that runs a command in a view of this machine: with a /tmp and a /root of its own, the Python of the
    tests and the project, which nobody can write to, and these further places; `writable` is {place: what is there}."""
    words = ["bwrap", "--dev-bind", "/", "/", "--tmpfs", "/root", "--perms", "1777", "--tmpfs", "/tmp"]
    words += [word for place, there in dict(writable).items() for word in ("--bind", str(there), str(place))]
    for place in map(Path, (sys.base_prefix, sys.prefix, ROOT, *places)):
        words += [word for parent in reversed(place.parents[:-1]) for word in ("--dir", str(parent))]
        words += ["--ro-bind", str(place), str(place)]
    return [*words, "--cap-add", "ALL", *command]


def start(main, arguments, folder, **environment):
    """A process that runs a command in a folder, and a file with what it says.

    It is forked from this one: what is imported here need not be imported there.
    """
    said = tempfile.TemporaryFile("w+")  # noqa: SIM115  end() closes it
    process = multiprocessing.get_context("fork").Process(
        target=_run, args=(main, arguments, folder, environment, said)
    )
    process.start()
    return process, said


def _run(main, arguments, folder, environment, said):
    os.chdir(folder)
    os.environ |= environment
    sys.stdout = sys.stderr = said
    for stream in (1, 2):
        os.dup2(said.fileno(), stream)
    warnings.simplefilter("ignore")
    main(arguments)


def end(process, said):
    """The exit code of that process, and what it said."""
    process.join()
    said.seek(0)
    with said:
        return process.exitcode, said.read()


def nbgrader(command, folder, **environment):
    """Run an nbgrader command as one would type it; what it said."""
    from nbgrader.apps.nbgraderapp import NbGraderApp

    new_gradebooks_at_once()
    code, said = end(
        *start(NbGraderApp.launch_instance, command.split(), folder, **{"MATHLLM_COURSE_KEY": ""} | environment)
    )
    assert code == 0, f"nbgrader {command}\n{said}"
    return said


def alive(mark):
    """The processes on this machine that carry a mark in their command."""
    assert mark
    return [p for p in psutil.process_iter(["cmdline"]) if any(mark in word for word in p.info["cmdline"] or ())]


def gone(mark):
    """Whether those processes are gone, or go now: a process that was killed takes a moment to end."""
    psutil.wait_procs(alive(mark), timeout=300)
    return not alive(mark)
