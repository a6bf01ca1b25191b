"""A kernel that misbehaves, seen by the step that runs it: limits hold, and what was earned before stays earned."""

import pytest
from grading import NAMES, NORM, PATIENCE, Patience, graded, points
from mathllm_exercises import item
from mathllm_grading.grader import TrustedExecute
from nbformat.v4 import new_code_cell, new_notebook

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("sandboxed")]

LEAVES = "import sys\nsys.exit(0)"
FLOODS = "for _ in range(300):\n    print('x' * 100_000)"
STUBBORN = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass"


@pytest.fixture
def execute(tmp_path, monkeypatch):
    """Run cells in a kernel; the notebook, and the cells to review."""
    monkeypatch.setenv("MATHLLM_COURSE_KEY", "k" * 32)

    def execute(*cells, patience, **settings):
        notebook = new_notebook(cells=[new_code_cell(cell) if isinstance(cell, str) else cell for cell in cells])
        trusted = patience.execute = TrustedExecute(**PATIENCE, timeout_func=patience, **settings)
        notebook, resources = trusted.preprocess(notebook, {"nbgrader": NAMES, "metadata": {"path": str(tmp_path)}})
        return notebook, list(resources["mathllm_review"])

    return execute


def test_a_loop_that_ignores_interrupts_ends_with_its_notebook_and_loses_nothing_before_it(execute):
    patience = Patience(STUBBORN)
    cells = [NORM, LEAVES, FLOODS, graded("01.vectors.norm"), STUBBORN, graded("01.vectors.distance")]
    notebook, review = execute(*cells, patience=patience, max_output=1_000_000)
    assert patience.asked[-1] == STUBBORN
    assert points(notebook.cells[3]) > 0
    assert points(notebook.cells[5]) == 0.0
    assert review == ["01-vectors-distance"]
    assert sum(len(output.text) for output in notebook.cells[2].outputs) <= 1_000_000  # of the 30 million printed
    assert "MATHLLM_COURSE_KEY" not in str(notebook)


def test_a_loop_is_interrupted_and_a_kernel_that_ends_costs_only_what_comes_after(execute):
    loop, exit = "while True: pass", "import os; os._exit(0)"
    cells = [NORM, loop, graded("01.vectors.norm"), exit, graded("01.vectors.distance")]
    notebook, review = execute(*cells, patience=lambda cell: 3 if cell.source == loop else 600)
    assert points(notebook.cells[2]) == item("01.vectors.norm").points
    assert points(notebook.cells[4]) == 0.0
    assert review == ["01-vectors-distance"]


def test_the_learners_kernel_knows_the_learner_and_not_the_course_key(execute):
    code = "import os\nfrom mathllm_exercises import learner\nprint(learner(), os.environ.get('MATHLLM_COURSE_KEY'))"
    notebook, _ = execute(code, patience=Patience(STUBBORN))
    assert notebook.cells[0].outputs[0].text == "ada None\n"
