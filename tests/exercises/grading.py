"""What tests of grading share: cells to grade, nbgrader's commands, and a look at this machine's processes."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
from mathllm_exercises import item
from nbformat.v4 import new_code_cell

EXERCISES = Path(__file__).resolve().parents[2] / "exercises"
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
NAMES = {"student": "ada", "assignment": "a1", "notebook": "nb"}
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


def points(cell):
    """What a graded cell has earned."""
    return float(cell.outputs[1].data["text/plain"])


class Patience:
    """Seconds for each cell of a notebook: many, but few from a cell on that does not end by itself.

    `asked` is what the kernel was asked to run. `execute`, if given, waits as briefly for what such a cell says last.
    """

    def __init__(self, endless, few=3):
        self.endless, self.few, self.asked, self.execute = endless, few, [], None

    def __call__(self, cell):
        if "_side.begin(" in cell.source:  # a new notebook
            self.asked = []
        self.asked.append(cell.source)
        if not any(self.endless in source for source in self.asked):
            return PATIENCE["timeout"]
        if self.execute:
            self.execute.iopub_timeout = self.few
        return self.few


# A busy machine may need many seconds: for a cell, for a kernel's start, for the last output after a cell's end.
PATIENCE = {"timeout": 600, "startup_timeout": 600, "iopub_timeout": 600, "notebook_timeout": 3600}


def make_course(root, assignment, more="", key="k" * 64):
    """The book's course in this folder, with one assignment, and the patience of a test; `more` is for its settings.

    The key makes the private cases the same in each run; without one, the grader makes one.
    """
    settings = (EXERCISES / "nbgrader_config.py").read_text(encoding="utf-8")
    patience = "".join(f"c.TrustedExecute.{name} = {seconds}\n" for name, seconds in PATIENCE.items())
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
