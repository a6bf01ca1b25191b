"""What happens to a submission before any of it runs: read without trust, graded cells put in order, never an error."""

import copy
import json
import os

import nbformat
import pytest
from mathllm_grading import gradebook
from mathllm_grading.grading import grade_submission
from mathllm_grading.submission import Assignment, read_notebook, read_submission, restored, timestamp
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from nbgrader.api import Gradebook
from nbgrader.preprocessors import CheckCellMetadata, ComputeChecksums, SaveCells

pytestmark = pytest.mark.slow

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
def known(tmp_path_factory):
    """The source notebook's cells as a gradebook gives them."""
    database = f"sqlite:///{tmp_path_factory.mktemp('course')}/gradebook.db"
    names = {"notebook": "nb", "assignment": "a1", "student": "ada", "db_url": database}
    with Gradebook(names["db_url"]) as book:
        book.add_assignment("a1")
    notebook, given = copy.deepcopy(SOURCE), {"nbgrader": names}
    for step in (ComputeChecksums, SaveCells):
        notebook, given = step().preprocess(notebook, given)
    with gradebook.opened(database, "a1") as book:
        return gradebook.asked(book, "a1")["nb"]


def sanitised(notebook, known):
    """Cells with the assignment's own in their places, and those of them with a grade id, by that id."""
    text = notebook if isinstance(notebook, str) else json.dumps(notebook)
    cells, problem = read_notebook(text.encode())
    assert problem is None
    cells, _ = restored(cells, known["cells"])
    notebook = nbformat.from_dict({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    nbformat.validate(notebook)
    CheckCellMetadata().preprocess(notebook, {})
    found = [cell for cell in notebook.cells if "nbgrader" in cell.metadata]
    assert len({cell.metadata.nbgrader["grade_id"] for cell in found}) == len(found)
    return notebook, {cell.metadata.nbgrader["grade_id"]: cell for cell in found}


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


def test_an_honest_submission_keeps_its_answers_and_its_order(known):
    notebook, cells = sanitised(hand_in(), known)
    assert_gradable(cells)
    assert [cell.source for cell in notebook.cells] == [cell.source for cell in hand_in().cells]


def test_deleted_cells_come_back_after_their_answer(known):
    notebook = hand_in()
    del notebook.cells[3:]
    notebook.cells.append(new_code_cell("my_notes = 1"))
    notebook, cells = sanitised(notebook, known)
    assert_gradable(cells)
    sources = [cell.source for cell in notebook.cells]
    assert sources.index("check(norm).score()") == sources.index("def norm(x): return 1") + 1


def test_a_duplicated_cell_counts_once(known):
    notebook = hand_in()
    notebook.cells += [copy.deepcopy(notebook.cells[2]), copy.deepcopy(notebook.cells[3])]
    notebook.cells[5].source = "def norm(x): return 2"
    _, cells = sanitised(notebook, known)
    assert_gradable(cells)
    assert cells["norm-answer"].source == "def norm(x): return 2"


def test_changed_points_types_sources_and_flags_are_put_right(known):
    notebook = hand_in()
    notebook.cells[3] = labelled(new_markdown_cell, "8.0", "norm", grade=False, solution=True, points=1000)
    notebook.cells[4].metadata["nbgrader"] = FLAGS | {"grade_id": "why", "points": -5, "locked": True}
    notebook.cells[4].source = "Because."
    _, cells = sanitised(notebook, known)
    assert_gradable(cells)
    assert cells["why"].source == "Because."


@pytest.mark.parametrize("metadata", [{}, {"nbgrader": {}}, {"nbgrader": 3}, {"nbgrader": {"grade_id": ["norm"]}}])
def test_stripped_or_mangled_metadata_lose_no_graded_cell(known, metadata):
    notebook = hand_in()
    for cell in notebook.cells:
        cell.metadata = nbformat.from_dict(metadata)
    _, cells = sanitised(notebook, known)
    assert_gradable(cells)


def test_a_cell_that_the_course_does_not_know_is_an_ordinary_cell(known):
    notebook = hand_in()
    notebook.cells.append(labelled(new_code_cell, "100.0", "extra", grade=True, locked=True, points=100))
    notebook, cells = sanitised(notebook, known)
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
def test_what_cannot_be_read_earns_nothing_and_is_for_review(tmp_path, known, data, problem):
    written(tmp_path / "nb.ipynb", data)
    graded = grade_submission(tmp_path, "ada", Assignment("a1", {"nb": known}), b"k" * 32, None)
    grade = graded.grades["nb"]["norm"]
    assert grade.points == 0.0
    assert problem in grade.review
    assert graded.notebooks["nb"]["metadata"]["mathllm"]["review"] == grade.review
    nbformat.validate(nbformat.from_dict(graded.notebooks["nb"]))
    assert_gradable({cell["metadata"]["nbgrader"]["grade_id"]: nbformat.from_dict(cell)
                     for cell in graded.notebooks["nb"]["cells"] if "nbgrader" in cell["metadata"]})  # fmt: skip


def test_a_notebook_of_another_assignment_is_known_as_such(known):
    cells, _ = read_notebook(nbformat.writes(hand_in()).encode())
    assert restored(cells, known["cells"])[1] is False
    other = new_notebook(cells=[labelled(new_code_cell, "x = 1", "another-answer", solution=True)])
    cells, _ = read_notebook(nbformat.writes(other).encode())
    assert restored(cells, known["cells"])[1] is True


def read(data):
    cells, problem = read_notebook(json.dumps(data).encode())
    assert problem is None
    return nbformat.from_dict(cells)


def test_outputs_and_odd_fields_of_a_submission_are_dropped():
    cells = read({"nbformat": 4, "metadata": 3, "cells": [CELL | {"outputs": "evil", "id": 5, "source": ["a\n", "b"]}]})
    assert cells[0].source == "a\nb"
    assert cells[0].outputs == []
    nbformat.validate(nbformat.from_dict({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))


def test_a_text_keeps_its_pictures_and_nothing_else_that_is_attached():
    attachments = {
        "dot.png": {"image/png": "iVBORw0KGgo=\n"},
        "a.svg": {"image/svg+xml": "PHN2Zz4="},
        "b.png": {'image/png" onerror="alert(1)': "iVBORw0KGgo=", "image/png": '" onerror="alert(1)'},
    }
    cells = read({"nbformat": 4, "cells": [CELL | {"cell_type": "markdown", "attachments": attachments}]})
    assert cells[0].attachments == {"dot.png": {"image/png": "iVBORw0KGgo=\n"}, "a.svg": {}, "b.png": {}}


def test_a_cell_that_is_too_long_is_cut_and_says_so():
    cells = [CELL | {"source": "x" * 300_000}, CELL | {"cell_type": "markdown", "source": "\ud800" * 30_000}]
    assert [cell.source.partition("cut here: ")[2] for cell in read({"nbformat": 4, "cells": cells})] == [
        "the cell has more than 200000 characters",
        "the cell has more than 20000 characters",
    ]


def missing(folder, known):
    """What is said of the notebook nb in a folder."""
    graded = grade_submission(folder, "ada", Assignment("a1", {"nb": known}), b"k" * 32, None)
    return graded.grades["nb"]["norm"].review


def test_links_and_pipes_are_not_followed(tmp_path, known):
    folder = tmp_path / "submitted" / "ada" / "a1"
    folder.mkdir(parents=True)
    secret = written(tmp_path / "secret.ipynb", {"nbformat": 4, "cells": [CELL]})
    (folder / "nb.ipynb").symlink_to(secret)
    (folder / "data.csv").symlink_to(secret)
    (folder / "folder").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe")
    found = read_submission(folder)
    assert found.notebooks == {"nb": "the notebook is not a regular file"}
    assert found.files == {}
    assert missing(folder, known) == "the notebook is not a regular file"


def test_a_notebook_under_another_name_is_missing_and_the_other_name_is_said(tmp_path, known):
    written(tmp_path / "nb (1).ipynb", {"nbformat": 4, "cells": [CELL]})
    assert missing(tmp_path, known) == "the notebook is missing; there is nb (1).ipynb"
    assert missing(tmp_path / "nowhere", known) == "the notebook is missing"


@pytest.mark.parametrize(
    "time", ["2026-11-21 10:00:00.000000 UTC", "the first of never", "", "9999-12-31 23:59:59 -2300", None]
)
def test_a_time_of_submission_that_nobody_can_read_is_none(tmp_path, time):
    path = tmp_path / "timestamp.txt"
    path.mkdir() if time is None else path.write_text(time)
    assert (timestamp(tmp_path) is not None) == (time is not None and time.startswith("2026"))


def test_a_submission_that_is_a_link_is_an_empty_one(tmp_path, known):
    theirs = tmp_path / "submitted" / "ada" / "a1"
    theirs.mkdir(parents=True)
    written(theirs / "nb.ipynb", {"nbformat": 4, "cells": [CELL]})
    (tmp_path / "submitted" / "mallory").symlink_to(theirs.parent)
    (tmp_path / "submitted" / "eve").mkdir()
    (tmp_path / "submitted" / "eve" / "a1").symlink_to(theirs)
    assert read_submission(theirs).notebooks
    for name in ("mallory", "eve"):
        assert missing(tmp_path / "submitted" / name / "a1", known) == "the notebook is missing"


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
    found = read_submission(folder)
    assert list(found.notebooks) == ["nb"]
    assert found.files == {}
    assert (folder / "leak.txt").is_symlink()  # nothing is changed


def test_files_are_not_too_many_not_too_deep_and_not_too_large(tmp_path, monkeypatch):
    monkeypatch.setattr("mathllm_grading.submission.MAX_FILES", 3)
    deep = tmp_path / "/".join("d" * 12)
    deep.mkdir(parents=True)
    (deep / "file").touch()
    for number in range(5):
        (tmp_path / f"{number}.csv").write_text("x" * 100)
    (tmp_path / "notes.pyc").touch()
    assert list(read_submission(tmp_path, ["*.pyc"]).files) == ["0.csv", "1.csv", "2.csv"]
    monkeypatch.setattr("mathllm_grading.submission.MAX_ALL_FILES", 150)
    assert list(read_submission(tmp_path, ["*.pyc"]).files) == ["0.csv"]
