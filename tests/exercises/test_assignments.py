"""Every assignment of the book: nbgrader generates it, and its own solution earns all points in the grading shell.

The solutions of all of them run in one shell, one notebook after the other, with the limits that a submission has.
"""

import contextlib
import functools
import shutil

import exercise_text
import nbformat
import pytest
from grading import EXERCISES, grade_id, new_gradebooks_at_once, run
from mathllm_exercises import items, marking
from mathllm_grading.run import open_course
from nbgrader.api import Gradebook
from nbgrader.apps.api import NbGraderAPI

pytestmark = pytest.mark.slow

NAMES = sorted(path.name for path in (EXERCISES / "source").iterdir())
POINTS = {entry.grade_id: entry.points for entry in items() if entry.graded}
EVERY_DAY = ("01_vectors", "18_capstone")  # with answers of all kinds
each = pytest.mark.parametrize(
    "name", [name if name in EVERY_DAY else pytest.param(name, marks=pytest.mark.nightly) for name in NAMES]
)


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    """The folder of a course, and a function that generates an assignment once: what nbgrader says."""
    root = tmp_path_factory.mktemp("course")
    shutil.copy(EXERCISES / "nbgrader_config.py", root)
    shutil.copytree(EXERCISES / "source", root / "source")
    new_gradebooks_at_once()
    with contextlib.chdir(root):
        directory, config = open_course()
    return root, functools.cache(NbGraderAPI(directory, config=config).generate_assignment)


@pytest.fixture(scope="module")
def earned(sandboxed):
    """{grade id: Marks} of the solutions that the assignments hold, as the shell gave them."""
    sources = [nbformat.read(EXERCISES / "source" / name / f"{name}.ipynb", 4) for name in NAMES]
    cells = [cell for source in sources for cell in source.cells if cell.cell_type == "code"]
    return run(*cells).marks


@each
def test_every_assignment_generates_with_its_points(generated, name):
    root, generate = generated
    assert generate(name)["success"], generate(name)
    with Gradebook(f"sqlite:///{root}/gradebook.db") as gradebook:
        cells = gradebook.find_notebook(name, name).grade_cells
        assert {cell.name: cell.max_score for cell in cells} == {
            id: points for id, points in POINTS.items() if id[:2] == name[:2]
        }


@each
def test_the_release_holds_no_solution_and_no_rubric(generated, name):
    root, generate = generated
    assert generate(name)["success"], generate(name)
    notebook = nbformat.read(root / "release" / name / f"{name}.ipynb", 4)
    stubs = {grade_id(cell): cell.source for cell in notebook.cells}
    text = "\n".join(cell.source for cell in notebook.cells)
    cards = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")  # with the broken code
    source = nbformat.read(EXERCISES / "source" / name / f"{name}.ipynb", 4)
    answers = [cell for cell in source.cells if cell.metadata.get("nbgrader", {}).get("solution")]
    assert len(answers) >= 5
    for answer in answers:
        stub = exercise_text.released(answer.source) if answer.cell_type == "code" else "*Your answer here.*"
        assert stubs[grade_id(answer)] == stub  # as in the practice edition
        solution = answer.source.partition("### BEGIN SOLUTION")[2].partition("### END SOLUTION")[0].split("\n")
        secret = [line for line in solution if line.strip() and '"""' not in line and line not in cards]
        assert {*secret}.isdisjoint(stub.split("\n"))
    assert "SOLUTION" not in text
    assert not any(criterion in text for entry in items() for _, criterion in entry.rubric)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "18_capstone"])  # its answers are texts
def test_every_solution_earns_all_points_in_the_grading_shell(earned, name):
    asked = [entry for entry in items(name[:2]) if entry.graded and entry.kind != "text"]
    assert asked
    for entry in asked:
        marks = earned[entry.grade_id]
        assert marks.points == entry.points, marking.text(marks)
