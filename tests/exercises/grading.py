"""What tests of grading share: cells to grade, nbgrader's commands, and a look at this machine's processes."""

import copy
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import psutil
from mathllm_exercises import item
from mathllm_exercises.marking import Marks
from mathllm_grading.grading import run_cells
from mathllm_grading.sandbox import Limits
from mathllm_grading.submission import read_submission
from nbformat.v4 import new_code_cell

EXERCISES = Path(__file__).resolve().parents[2] / "exercises"
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
NORM = """
import numpy as np
def norm(x):
    largest = np.max(np.abs(x), axis=-1, keepdims=True)
    scale = np.where(largest > 0, largest, 1)
    return scale[..., 0] * np.sqrt(np.sum((x / scale) ** 2, axis=-1))
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
    marks, missing = run_cells(cells, "ada", "a1", key, Limits(**PATIENCE | limits), files, hidden)
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


def nbgrader(command, folder, **environment):
    """Run an nbgrader command as one would type it; what it said."""
    result = subprocess.run(
        ["nbgrader", *command.split()], cwd=folder, capture_output=True, text=True,
        env=os.environ | {"PATH": PATH, "MATHLLM_COURSE_KEY": ""} | environment,
    )  # fmt: skip
    assert result.returncode == 0, f"nbgrader {command}\n{result.stdout}{result.stderr}"
    return result.stdout + result.stderr


def alive(mark):
    """The processes on this machine that carry a mark in their command."""
    assert mark
    return [p for p in psutil.process_iter(["cmdline"]) if any(mark in word for word in p.info["cmdline"] or ())]


def gone(mark):
    """Whether those processes are gone, or go now: a process that was killed takes a moment to end."""
    psutil.wait_procs(alive(mark), timeout=300)
    return not alive(mark)
