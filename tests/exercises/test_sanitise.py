"""What happens to a submission before any of it runs: read without trust, graded cells put in order, never an error.

The table of test_hostile.py has more that is handed in: links, pipes, other names, broken files, changed metadata.
"""

import copy
import json

import nbformat
import pytest
from grading import grade_id
from mathllm_grading.submission import read_notebook, read_submission, restored, timestamp
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from nbgrader.preprocessors import CheckCellMetadata

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
)


KNOWN = {grade_id(cell): cell for cell in SOURCE.cells if grade_id(cell)}


def sanitised(notebook):
    """Cells with the assignment's own in their places, and those of them with a grade id, by that id."""
    cells = restored(read_notebook(json.dumps(notebook).encode()), KNOWN)
    notebook = nbformat.from_dict({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    nbformat.validate(notebook)
    CheckCellMetadata().preprocess(notebook, {})
    found = [cell for cell in notebook.cells if "nbgrader" in cell.metadata]
    assert len({grade_id(cell) for cell in found}) == len(found)
    return notebook, {grade_id(cell): cell for cell in found}


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


def test_an_honest_submission_keeps_its_answers_and_its_order():
    notebook, cells = sanitised(hand_in())
    assert_gradable(cells)
    assert [cell.source for cell in notebook.cells] == [cell.source for cell in hand_in().cells]


def test_deleted_cells_come_back_after_their_answer():
    notebook = hand_in()
    del notebook.cells[3:]
    notebook.cells.append(new_code_cell("my_notes = 1"))
    notebook, cells = sanitised(notebook)
    assert_gradable(cells)
    sources = [cell.source for cell in notebook.cells]
    assert sources.index("check(norm).score()") == sources.index("def norm(x): return 1") + 1


def test_a_duplicated_cell_counts_once():
    notebook = hand_in()
    notebook.cells += [copy.deepcopy(notebook.cells[2]), copy.deepcopy(notebook.cells[3])]
    notebook.cells[5].source = "def norm(x): return 2"
    _, cells = sanitised(notebook)
    assert_gradable(cells)
    assert cells["norm-answer"].source == "def norm(x): return 2"


CELL = {"cell_type": "code", "source": "1", "metadata": {}, "outputs": [], "execution_count": None}


def read(data):
    return nbformat.from_dict(read_notebook(json.dumps(data).encode()))


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


@pytest.mark.parametrize(
    "time",
    [
        "2026-11-21 10:00:00.000000 UTC", "the first of never", "", "9999-12-31 23:59:59 -2300", None,
        f"-2300:{'5' * 60}+2026-11-20", "1 " * 10_000_000,
    ],
)  # fmt: skip
def test_a_time_of_submission_that_nobody_can_read_is_none(tmp_path, time):
    path = tmp_path / "timestamp.txt"
    path.mkdir() if time is None else path.write_text(time)
    assert (timestamp(tmp_path) is not None) == (time is not None and time.startswith("2026"))


def test_only_the_notebooks_that_are_asked_for_are_read(tmp_path):
    (tmp_path / "folder.ipynb").mkdir()
    for name in ("other.ipynb", "folder.ipynb/notes.txt"):
        (tmp_path / name).touch()
    (tmp_path / "asked.ipynb").write_text('{"nbformat": 4, "cells": []}')
    found = read_submission(tmp_path, asked=["asked", "folder"])
    assert (found.notebooks, found.others) == ({"asked": ([], None)}, ["other.ipynb"])
    assert found.files.keys() == {"folder.ipynb/notes.txt"}


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
