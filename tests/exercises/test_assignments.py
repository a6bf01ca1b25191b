"""Every assignment of the book: nbgrader generates it, and its own solution earns all points in the grading kernel.

The solutions of all sixteen run in one kernel, one notebook after the other, with the limits that a submission has.
"""

import shutil

import nbformat
import pytest
from grading import EXERCISES, PATIENCE
from mathllm_exercises import item, items
from mathllm_grading.autograde import course
from mathllm_grading.grader import TrustedExecute
from nbgrader.api import Gradebook
from nbgrader.apps.api import NbGraderAPI
from nbgrader.coursedir import CourseDirectory

pytestmark = pytest.mark.slow

NAMES = sorted(path.name for path in (EXERCISES / "source").iterdir())
POINTS = {entry.grade_id: entry.points for entry in items() if entry.graded}


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    """A course in which all assignments have been generated, in one process: its folder and what nbgrader said."""
    root = tmp_path_factory.mktemp("course")
    shutil.copy(EXERCISES / "nbgrader_config.py", root)
    shutil.copytree(EXERCISES / "source", root / "source")
    app = course(str(root))
    api = NbGraderAPI(CourseDirectory(parent=app), parent=app)
    return root, {name: api.generate_assignment(name) for name in NAMES}


@pytest.fixture(scope="module")
def earned(tmp_path_factory, sandboxed):
    """{grade id: points} of the solutions that the assignments hold, as the kernel gave them."""
    sources = [nbformat.read(EXERCISES / "source" / name / f"{name}.ipynb", 4) for name in NAMES]
    notebook = sources[0]
    notebook.cells = [cell for source in sources for cell in source.cells]
    names = {"student": "solver", "assignment": "all", "notebook": "all"}
    resources = {"nbgrader": names, "metadata": {"path": str(tmp_path_factory.mktemp("work"))}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MATHLLM_COURSE_KEY", "k" * 32)
        notebook, _ = TrustedExecute(**PATIENCE).preprocess(notebook, resources)
    graded = [cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade")]
    return {
        cell.metadata.nbgrader["grade_id"]: (float(cell.outputs[1].data["text/plain"]), cell.outputs[0].text)
        for cell in graded
        if cell.cell_type == "code"
    }


@pytest.mark.parametrize("name", NAMES)
def test_every_assignment_generates_with_its_points_and_without_its_solution(generated, name):
    root, results = generated
    assert results[name]["success"], results[name]
    released = (root / "release" / name / f"{name}.ipynb").read_text(encoding="utf-8")
    assert "SOLUTION" not in released
    with Gradebook(f"sqlite:///{root}/gradebook.db") as gradebook:
        cells = gradebook.find_notebook(name, name).grade_cells
        assert {cell.name: cell.max_score for cell in cells} == {
            id: points for id, points in POINTS.items() if id[:2] == name[:2]
        }


@pytest.mark.parametrize("name", NAMES)
def test_every_solution_earns_all_points_in_the_grading_kernel(earned, name):
    asked = [entry for entry in items(name[:2]) if entry.graded and entry.kind != "text"]
    assert asked
    for entry in asked:
        points, feedback = earned[entry.grade_id]
        assert points == entry.points, feedback


def test_nothing_is_graded_that_is_no_item(earned):
    assert set(earned) == {name for name in POINTS if item(name.replace("-", ".")).kind != "text"}
