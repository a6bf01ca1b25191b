"""A kernel that misbehaves, seen by the step that runs it: limits hold, and what was earned before stays earned."""

import time

import pytest
from mathllm_exercises import item
from mathllm_exercises.grader import TrustedExecute
from nbformat.v4 import new_code_cell, new_notebook

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("sandboxed")]

GOOD = """
import numpy as np
def norm(x):
    largest = np.max(np.abs(x), axis=-1, keepdims=True)
    scale = np.where(largest > 0, largest, 1)
    return scale[..., 0] * np.sqrt(np.sum((x / scale) ** 2, axis=-1))
"""
LEAVES = "import sys\nsys.exit(0)"
FLOODS = "for _ in range(300):\n    print('x' * 100_000)"
STUBBORN = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass"


def graded(id):
    entry = item(id)
    flags = {"schema_version": 3, "grade_id": entry.grade_id, "grade": True, "locked": True, "solution": False}
    metadata = {"nbgrader": flags | {"task": False, "points": entry.points}}
    return new_code_cell(f'check("{id}", {entry.answer}).score()', metadata=metadata)


def test_a_loop_that_ignores_interrupts_ends_with_its_notebook_and_loses_nothing_before_it(tmp_path, monkeypatch):
    monkeypatch.setenv("MATHLLM_COURSE_KEY", "k" * 32)
    cells = [GOOD, LEAVES, FLOODS, graded("01.vectors.norm"), STUBBORN, graded("01.vectors.distance")]
    notebook = new_notebook(cells=[new_code_cell(cell) if isinstance(cell, str) else cell for cell in cells])
    names = {"student": "ada", "assignment": "a1", "notebook": "nb"}
    execute = TrustedExecute(timeout=8, notebook_timeout=12, max_output=1_000_000)

    started = time.monotonic()
    notebook, resources = execute.preprocess(notebook, {"nbgrader": names, "metadata": {"path": str(tmp_path)}})
    assert time.monotonic() - started < 60

    before, after = (float(notebook.cells[i].outputs[1].data["text/plain"]) for i in (3, 5))
    assert before > 0
    assert after == 0.0
    assert list(resources["mathllm_review"]) == ["01-vectors-distance"]
    assert sum(len(output.text) for output in notebook.cells[2].outputs) <= 1_000_000  # of the 30 million printed
    assert "MATHLLM_COURSE_KEY" not in str(notebook)


def test_a_loop_is_interrupted_and_a_kernel_that_ends_costs_only_what_comes_after(tmp_path, monkeypatch):
    monkeypatch.setenv("MATHLLM_COURSE_KEY", "k" * 32)
    loop, exit = "while True: pass", "import os; os._exit(0)"
    cells = [GOOD, loop, graded("01.vectors.norm"), exit, graded("01.vectors.distance")]
    notebook = new_notebook(cells=[new_code_cell(cell) if isinstance(cell, str) else cell for cell in cells])
    names = {"student": "ada", "assignment": "a1", "notebook": "nb"}
    execute = TrustedExecute(timeout=3)
    notebook, resources = execute.preprocess(notebook, {"nbgrader": names, "metadata": {"path": str(tmp_path)}})
    before, after = (float(notebook.cells[i].outputs[1].data["text/plain"]) for i in (2, 4))
    assert [before, after] == [item("01.vectors.norm").points, 0.0]
    assert list(resources["mathllm_review"]) == ["01-vectors-distance"]


def test_the_learners_kernel_knows_the_learner_and_not_the_course_key(tmp_path, monkeypatch):
    monkeypatch.setenv("MATHLLM_COURSE_KEY", "k" * 32)
    notebook = new_notebook(cells=[new_code_cell(
        "import os\nfrom mathllm_exercises import learner\nprint(learner(), os.environ.get('MATHLLM_COURSE_KEY'))"
    )])  # fmt: skip
    names = {"student": "ada", "assignment": "a1", "notebook": "nb"}
    notebook, _ = TrustedExecute().preprocess(notebook, {"nbgrader": names, "metadata": {"path": str(tmp_path)}})
    assert notebook.cells[0].outputs[0].text == "ada None\n"
