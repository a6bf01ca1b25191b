"""Five hundred damaged submissions: each is graded without an exception, within its points, and harms nobody else."""

import copy
import json
import random

import nbformat
import pytest
from grading import EXERCISES, PATIENCE, grade_id
from mathllm_grading.grading import grade_submission
from mathllm_grading.sandbox import Limits
from mathllm_grading.submission import Assignment

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("sandboxed")]

NAME = "01_vectors"
SOURCE = EXERCISES / "source" / NAME / f"{NAME}.ipynb"
ASKED = ("01-vectors-norm", "01-vectors-distance")
CASES, EVERY_DAY = 500, 12
ODD = [None, 7, -1.5, True, "", "text", "\x00\ud800", [], ["a", 1], {}, {"a": {"b": []}}, 10**400, [[[[[[]]]]]]]


def handed_in():
    """A right submission: the cells of the assignment that belong to two exercises, and one without a grade."""
    notebook = nbformat.read(SOURCE, 4)
    first = next(cell for cell in notebook["cells"] if cell["cell_type"] == "code")
    kept = [cell for cell in notebook["cells"] if grade_id(cell).removesuffix("-answer") in ASKED]
    return notebook | {"cells": [first, *kept]}


def assignment():
    cells = {grade_id(cell): nbformat.from_dict(cell) for cell in handed_in()["cells"] if grade_id(cell)}
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return Assignment(NAME, {NAME: {"kernelspec": kernel, "cells": cells}}, b"k" * 32, Limits(**PATIENCE))


# What can happen to a notebook: to its cells ...


def scramble(cells, chance):
    place = chance.choice(cells)
    for _ in range(chance.randrange(3)):
        inside = [value for value in place.values() if isinstance(value, dict) and value]
        place = chance.choice(inside) if inside else place
    if place:
        place[chance.choice([*place, "new"])] = chance.choice(ODD)


KINDS, NAMES = ["code", "markdown", "raw", "heading", *ODD], [*ASKED, *ODD]
SOURCES = ["def norm(x): return", "norm = distance = 1", "raise SystemExit", "%%bash\nexit 1", "x = " + "(" * 500]
SOURCES += ["1\n" * 99_999, *ODD]
TO_CELLS = [
    lambda cells, chance: cells.pop(chance.randrange(len(cells))),
    lambda cells, chance: cells.append(copy.deepcopy(chance.choice(cells))),
    lambda cells, chance: chance.shuffle(cells),
    lambda cells, chance: chance.choice(cells).update(cell_type=chance.choice(KINDS)),
    lambda cells, chance: chance.choice(cells).update(metadata={"nbgrader": {"grade_id": chance.choice(NAMES)}}),
    *[scramble] * 2,
    *[lambda cells, chance: chance.choice(cells).update(source=chance.choice(SOURCES))] * 2,
]

# ... to the notebook as a whole, and to its file.

FIELDS = ["cells", "metadata", "nbformat", "nbformat_minor"]
TO_NOTEBOOK = [
    lambda notebook, chance: notebook.update(cells=notebook["cells"] * (10_000 // max(1, len(notebook["cells"])))),
    lambda notebook, chance: notebook.update({chance.choice(FIELDS): chance.choice(ODD)}),
]


def flip(content, chance):
    content = bytearray(content)
    for _ in range(chance.choice([1, 1, 2, 20])):
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    return bytes(content)


def insert(content, chance):
    place = chance.randrange(len(content))
    return content[:place] + chance.choice([chance.randbytes(9), b"\xff\xfe", b"NaN", b"[" * 50_000]) + content[place:]


ENCODINGS = ["utf-16", "utf-8-sig", "utf-32"]
TO_FILE = [
    flip,
    insert,
    lambda content, chance: content[: chance.randrange(len(content))],
    lambda content, chance: content.decode("utf-8", "replace").encode(chance.choice(ENCODINGS)),
]


def damaged(seed):
    """The bytes of a submission that was damaged in one to four ways."""
    chance, notebook = random.Random(seed), handed_in()
    for change in chance.choices(TO_CELLS, k=chance.randrange(1, 5)):
        if notebook["cells"]:
            change(notebook["cells"], chance)
    if chance.random() < 0.1:
        chance.choice(TO_NOTEBOOK)(notebook, chance)
    content = json.dumps(notebook).encode()
    return chance.choice(TO_FILE)(content, chance) if chance.random() < 0.3 else content


def graded(folder, content):
    folder.mkdir(exist_ok=True)
    (folder / f"{NAME}.ipynb").write_bytes(content)
    return grade_submission(folder, "ada", assignment())


def points(grades):
    return {name: grade.points for name, grade in grades.grades[NAME].items()}


def test_the_submission_that_is_damaged_is_right(tmp_path):
    found = graded(tmp_path / "right", json.dumps(handed_in()).encode())
    assert [*points(found)] == [*ASKED]
    assert min(points(found).values()) > 0
    assert found.review == []


SEEDS = [pytest.param(seed, marks=[] if seed < EVERY_DAY else pytest.mark.nightly) for seed in range(CASES)]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_damaged_submission_is_graded_within_its_points_and_nothing_around_it_changes(tmp_path, seed):
    neighbour = tmp_path / "neighbour.txt"
    neighbour.write_text("another's work")
    found = graded(tmp_path / "submitted", content := damaged(seed))
    asked = assignment().notebooks[NAME]["cells"]
    most = {name: cell["metadata"]["nbgrader"]["points"] for name, cell in asked.items() if name in ASKED}
    assert points(found).keys() == most.keys()
    assert all(0 <= given <= most[name] for name, given in points(found).items())
    nbformat.validate(nbformat.from_dict(found.notebooks[NAME]))
    assert {path.name for path in tmp_path.rglob("*")} == {"neighbour.txt", "submitted", f"{NAME}.ipynb"}
    assert neighbour.read_text() == "another's work"
    assert (tmp_path / "submitted" / f"{NAME}.ipynb").read_bytes() == content
