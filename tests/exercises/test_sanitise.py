"""What happens to a submission before any of it runs: read without trust, graded cells put in order, never an error."""

import copy
import json
import os

import nbformat
import pytest
from mathllm_grading.sanitise import Restore, prepare_submission, read_notebook
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from nbgrader.api import Gradebook
from nbgrader.converters import Autograde
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import CheckCellMetadata, ComputeChecksums, OverwriteCells, SaveCells

FLAGS = {"schema_version": 3, "grade": False, "locked": False, "solution": False, "task": False}


def labelled(make, source, name, **flags):
    return make(source, metadata={"nbgrader": FLAGS | {"grade_id": name} | flags})


SOURCE = new_notebook(
    cells=[
        new_markdown_cell("A heading"),
        labelled(new_markdown_cell, "The card", "norm-card", locked=True),
        labelled(new_code_cell, "# your code here", "norm-answer", solution=True),
        labelled(new_code_cell, "check(norm).score()", "norm", grade=True, locked=True, points=4.0),
        labelled(new_markdown_cell, "*Your answer here.*", "why", grade=True, solution=True, points=2.0),
    ],
    metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
)


@pytest.fixture(scope="module")
def resources(tmp_path_factory):
    """A gradebook that knows the source notebook."""
    database = f"sqlite:///{tmp_path_factory.mktemp('course')}/gradebook.db"
    names = {"notebook": "nb", "assignment": "a1", "student": "ada", "db_url": database}
    with Gradebook(names["db_url"]) as gradebook:
        gradebook.add_assignment("a1")
    notebook, given = copy.deepcopy(SOURCE), {"nbgrader": names}
    for step in (ComputeChecksums, SaveCells):
        notebook, given = step().preprocess(notebook, given)
    return given


def sanitised(notebook, resources):
    """Our step and those of nbgrader that follow it; the cells with a grade id, by that id."""
    notebook, resources = Restore().preprocess(notebook, resources)
    notebook, resources = OverwriteCells().preprocess(notebook, resources)
    notebook, resources = CheckCellMetadata().preprocess(notebook, resources)
    nbformat.validate(notebook)
    known = [cell for cell in notebook.cells if "nbgrader" in cell.metadata]
    assert len({cell.metadata.nbgrader["grade_id"] for cell in known}) == len(known)
    return notebook, {cell.metadata.nbgrader["grade_id"]: cell for cell in known}


def hand_in():
    notebook = copy.deepcopy(SOURCE)
    notebook.cells[2].source = "def norm(x): return 1"
    return notebook


def assert_gradable(cells):
    assert cells["norm"].source == "check(norm).score()"
    assert cells["norm"].cell_type == "code"
    assert cells["norm"].metadata.nbgrader["points"] == 4.0
    assert cells["norm"].metadata.nbgrader["grade"]
    assert cells["why"].metadata.nbgrader["points"] == 2.0


def test_an_honest_submission_keeps_its_answers_and_its_order(resources):
    notebook, cells = sanitised(hand_in(), resources)
    assert_gradable(cells)
    assert [cell.source for cell in notebook.cells] == [cell.source for cell in hand_in().cells]


def test_deleted_cells_come_back_after_their_answer(resources):
    notebook = hand_in()
    del notebook.cells[3:]
    notebook.cells.append(new_code_cell("my_notes = 1"))
    notebook, cells = sanitised(notebook, resources)
    assert_gradable(cells)
    sources = [cell.source for cell in notebook.cells]
    assert sources.index("check(norm).score()") == sources.index("def norm(x): return 1") + 1


def test_a_duplicated_cell_counts_once(resources):
    notebook = hand_in()
    notebook.cells += [copy.deepcopy(notebook.cells[2]), copy.deepcopy(notebook.cells[3])]
    notebook.cells[5].source = "def norm(x): return 2"
    _, cells = sanitised(notebook, resources)
    assert_gradable(cells)
    assert cells["norm-answer"].source == "def norm(x): return 2"


def test_changed_points_types_sources_and_flags_are_put_right(resources):
    notebook = hand_in()
    notebook.cells[3] = labelled(new_markdown_cell, "8.0", "norm", grade=False, solution=True, points=1000)
    notebook.cells[4].metadata["nbgrader"] = FLAGS | {"grade_id": "why", "points": -5, "locked": True}
    notebook.cells[4].source = "Because."
    _, cells = sanitised(notebook, resources)
    assert_gradable(cells)
    assert cells["why"].source == "Because."


@pytest.mark.parametrize("metadata", [{}, {"nbgrader": {}}, {"nbgrader": 3}, {"nbgrader": {"grade_id": ["norm"]}}])
def test_stripped_or_mangled_metadata_lose_no_graded_cell(resources, metadata):
    notebook = hand_in()
    for cell in notebook.cells:
        cell.metadata = nbformat.from_dict(metadata)
    _, cells = sanitised(notebook, resources)
    assert_gradable(cells)


def test_a_cell_that_the_course_does_not_know_is_an_ordinary_cell(resources):
    notebook = hand_in()
    notebook.cells.append(labelled(new_code_cell, "100.0", "extra", grade=True, locked=True, points=100))
    notebook, cells = sanitised(notebook, resources)
    assert "extra" not in cells
    assert notebook.cells[-1].metadata == {}


def written(path, data):
    path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    return path


CELL = {"cell_type": "code", "source": "1", "metadata": {}, "outputs": [], "execution_count": None}


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ('{"cells": [', "cannot be read"),
        ("[" * 100_000, "cannot be read"),
        ("[]", "cannot be read"),
        ({"nbformat": 3, "worksheets": []}, "format 3"),
        ({"nbformat": 4}, "cannot be read"),
        ({"nbformat": 4, "cells": 5}, "cannot be read"),
        ({"nbformat": 4, "cells": [CELL | {"cell_type": "heading"}]}, "cannot be read"),
        ({"nbformat": 4, "cells": [CELL | {"source": 7}]}, "cannot be read"),
        ({"nbformat": 4, "cells": [None]}, "cannot be read"),
        ({"nbformat": 4, "cells": [CELL | {"cell_type": "markdown", "attachments": 3}]}, "cannot be read"),
        ({"nbformat": 4, "cells": [CELL] * 1_001}, "more than 1000 cells"),
        ({"nbformat": 4, "cells": [CELL | {"source": "x" * 100_000}] * 21}, "more than 2000000 characters"),
        ({"nbformat": "\x1b[31m4", "cells": []}, r"format '\x1b[31m4'"),
        (" " * 20_000_001, "larger than 20 MB"),
    ],
)
def test_what_cannot_be_read_becomes_an_empty_notebook_for_review(tmp_path, resources, data, problem):
    notebook, found = read_notebook(written(tmp_path / "nb.ipynb", data))
    assert problem in found
    notebook, cells = sanitised(notebook, resources | {"mathllm_problem": found})
    assert_gradable(cells)
    assert notebook.metadata.mathllm["review"] == found


def test_a_notebook_of_another_assignment_is_known_as_such(resources):
    assert not Restore().preprocess(hand_in(), resources)[0].metadata.mathllm["foreign"]
    other = new_notebook(cells=[labelled(new_code_cell, "x = 1", "another-answer", solution=True)])
    assert Restore().preprocess(other, resources)[0].metadata.mathllm["foreign"]


def test_outputs_and_odd_fields_of_a_submission_are_dropped(tmp_path):
    data = {"nbformat": 4, "metadata": 3, "cells": [CELL | {"outputs": "evil", "id": 5, "source": ["a\n", "b"]}]}
    notebook, problem = read_notebook(written(tmp_path / "nb.ipynb", data))
    assert problem is None
    assert notebook.cells[0].source == "a\nb"
    assert notebook.cells[0].outputs == []
    nbformat.validate(notebook)


def test_a_text_keeps_its_pictures_and_nothing_else_that_is_attached(tmp_path):
    attachments = {
        "dot.png": {"image/png": "iVBORw0KGgo=\n"}, "a.svg": {"image/svg+xml": "PHN2Zz4="},
        "b.png": {'image/png" onerror="alert(1)': "iVBORw0KGgo=", "image/png": '" onerror="alert(1)'},
    }  # fmt: skip
    cell = CELL | {"cell_type": "markdown", "attachments": attachments}
    notebook, problem = read_notebook(written(tmp_path / "nb.ipynb", {"nbformat": 4, "cells": [cell]}))
    assert problem is None
    assert notebook.cells[0].attachments == {"dot.png": {"image/png": "iVBORw0KGgo=\n"}, "a.svg": {}, "b.png": {}}


def test_a_cell_that_is_too_long_is_cut_and_says_so(tmp_path):
    cells = [CELL | {"source": "x" * 300_000}, CELL | {"cell_type": "markdown", "source": "\ud800" * 30_000}]
    notebook, problem = read_notebook(written(tmp_path / "nb.ipynb", {"nbformat": 4, "cells": cells}))
    assert problem is None
    assert [cell.source.partition("cut here: ")[2] for cell in notebook.cells] == [
        "the cell has more than 200000 characters",
        "the cell has more than 20000 characters",
    ]


def test_links_and_pipes_are_not_followed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "submitted" / "ada" / "a1"
    folder.mkdir(parents=True)
    (tmp_path / "source" / "a1").mkdir(parents=True)
    for name in ("nb", "second"):
        written(tmp_path / "source" / "a1" / f"{name}.ipynb", {"nbformat": 4, "cells": [CELL]})
    secret = written(tmp_path / "secret.ipynb", {"nbformat": 4, "cells": [CELL]})
    (folder / "nb.ipynb").symlink_to(secret)
    (folder / "data.csv").symlink_to(secret)
    os.mkfifo(folder / "pipe")
    assert read_notebook(folder / "nb.ipynb")[1] == "the notebook is not a regular file"

    notebooks = [str(folder / "nb.ipynb")]
    prepare_submission(assignment="a1", student="ada", notebooks=notebooks)
    assert list(folder.iterdir()) == []
    assert secret.exists()
    assert notebooks == [str(folder / "nb.ipynb"), str(folder / "second.ipynb")]
    assert [read_notebook(path)[1] for path in notebooks] == ["the notebook is missing"] * 2


def test_a_notebook_under_another_name_is_missing_and_the_other_name_is_said(tmp_path):
    written(tmp_path / "nb (1).ipynb", {"nbformat": 4, "cells": [CELL]})
    assert read_notebook(tmp_path / "nb.ipynb")[1] == "the notebook is missing; there is nb (1).ipynb"


def test_a_submission_without_a_notebook_is_found_by_nbgrader_too(tmp_path):
    written(tmp_path / "nb.ipynb", {"nbformat": 4, "cells": [CELL]})
    for folder in ("source/a1", "submitted/ada/a1", "submitted/bob/a1", "submitted/eve/a2"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "nb.ipynb").rename(tmp_path / "source" / "a1" / "nb.ipynb")
    written(tmp_path / "submitted" / "bob" / "a1" / "nb.ipynb", {"nbformat": 4, "cells": [CELL]})
    for student, found in {"ada": {"ada"}, "*": {"ada", "bob"}}.items():
        autograde = Autograde(coursedir=CourseDirectory(root=str(tmp_path), assignment_id="a1", student_id=student))
        autograde.init_notebooks()
        folders = [str(tmp_path / "submitted" / name / "a1") for name in found]
        assert autograde.assignments == {folder: [f"{folder}/nb.ipynb"] for folder in folders}


@pytest.mark.parametrize(
    "time", ["2026-11-21 10:00:00.000000 UTC", "the first of never", "", "9999-12-31 23:59:59 -2300", None]
)
def test_a_time_of_submission_that_nobody_can_read_is_put_aside(tmp_path, monkeypatch, time):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "submitted" / "ada" / "a1"
    folder.mkdir(parents=True)
    path = folder / "timestamp.txt"
    path.mkdir() if time is None else path.write_text(time)
    prepare_submission(assignment="a1", student="ada", notebooks=[str(folder / "nb.ipynb")])
    assert path.exists() == (time is not None and time.startswith("2026"))
    assert (folder / "timestamp-unreadable.txt").exists() != path.exists()


def test_a_submission_that_is_a_link_becomes_an_empty_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    theirs = tmp_path / "submitted" / "ada" / "a1"
    theirs.mkdir(parents=True)
    written(theirs / "nb.ipynb", {"nbformat": 4, "cells": [CELL]})
    (theirs / "link").symlink_to("nb.ipynb")
    (tmp_path / "submitted" / "mallory").symlink_to(theirs.parent)
    (tmp_path / "source" / "a1").mkdir(parents=True)
    written(tmp_path / "source" / "a1" / "nb.ipynb", {"nbformat": 4, "cells": [CELL]})
    notebooks = ["submitted/mallory/a1/nb.ipynb", "submitted/mallory/a1/extra.ipynb"]
    prepare_submission(assignment="a1", student="*", notebooks=notebooks)
    assert notebooks == ["submitted/mallory/a1/nb.ipynb"]
    assert not list((tmp_path / "submitted" / "mallory" / "a1").iterdir())
    assert (theirs / "link").is_symlink()  # theirs is as it was


def test_a_path_too_long_for_the_system_keeps_no_link_in_a_submission(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "submitted" / "eve" / "a1"
    folder.mkdir(parents=True)
    written(folder / "nb.ipynb", {"nbformat": 4, "cells": [CELL]})
    (folder / "leak.txt").symlink_to("/etc/hostname")
    os.chdir(folder)
    for _ in range(30):
        os.mkdir("d" * 200)
        os.chdir("d" * 200)
    os.chdir(tmp_path)
    prepare_submission(assignment="a1", student="eve", notebooks=[str(folder / "nb.ipynb")])
    assert not os.path.lexists(folder / "leak.txt")
    assert read_notebook(folder / "nb.ipynb")[1] is None
