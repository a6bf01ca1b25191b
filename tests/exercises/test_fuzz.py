"""Five hundred damaged submissions: each is graded without an exception, within its points, and harms nobody else."""

import copy
import json
import random
from pathlib import Path

import nbformat
import pytest
from grading import PATIENCE
from mathllm_grading.grading import grade_submission
from mathllm_grading.sandbox import Limits
from mathllm_grading.submission import Assignment

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("sandboxed")]

NAME = "01_vectors"
SOURCE = Path(__file__).resolve().parents[2] / "exercises" / "source" / NAME / f"{NAME}.ipynb"
ASKED = ("01-vectors-norm", "01-vectors-distance")
LIMITS, KEY = Limits(**PATIENCE), b"k" * 32
CASES, EVERY_DAY = 500, 30
ODD = [None, 7, -1.5, True, "", "text", "\x00\ud800", [], ["a", 1], {}, {"a": {"b": []}}, 10**400, [[[[[[]]]]]]]


def handed_in():
    """A right submission: the cells of the assignment that belong to two exercises, and one without a grade."""
    notebook = nbformat.read(SOURCE, 4)
    first = next(cell for cell in notebook["cells"] if cell["cell_type"] == "code")
    kept = [cell for cell in notebook["cells"] if name_of(cell).removesuffix("-answer") in ASKED]
    return notebook | {"cells": [first, *kept]}


def name_of(cell):
    return cell["metadata"].get("nbgrader", {}).get("grade_id", "")


def assignment():
    cells = {name_of(cell): nbformat.from_dict(cell) for cell in handed_in()["cells"] if name_of(cell)}
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return Assignment(NAME, {NAME: {"kernelspec": kernel, "cells": cells}})


# What can happen to a notebook (changed in place) ...


def any_cell(notebook, chance):
    return chance.choice(notebook["cells"]) if notebook["cells"] else {}


def drop(notebook, chance):
    if notebook["cells"]:
        notebook["cells"].pop(chance.randrange(len(notebook["cells"])))


def double(notebook, chance):
    notebook["cells"].append(copy.deepcopy(any_cell(notebook, chance)))


def reorder(notebook, chance):
    chance.shuffle(notebook["cells"])


def retype(notebook, chance):
    any_cell(notebook, chance)["cell_type"] = chance.choice(["code", "markdown", "raw", "heading", *ODD])


def rename(notebook, chance):
    any_cell(notebook, chance).setdefault("metadata", {})["nbgrader"] = {"grade_id": chance.choice([*ASKED, *ODD])}


def scramble(notebook, chance):
    place = any_cell(notebook, chance)
    for _ in range(chance.randrange(3)):
        inside = [value for value in place.values() if isinstance(value, dict) and value]
        place = chance.choice(inside) if inside else place
    if place:
        place[chance.choice([*place, "new"])] = chance.choice(ODD)


def replace_source(notebook, chance):
    sources = [
        "def norm(x): return",
        "norm = distance = 1",
        "raise SystemExit",
        "%%bash\nexit 1",
        "x = " + "(" * 500,
        "1\n" * 99_999,
    ]
    any_cell(notebook, chance)["source"] = chance.choice([*sources, *ODD])


def swamp(notebook, chance):
    notebook["cells"] *= 10_000 // max(1, len(notebook["cells"]))


def break_the_frame(notebook, chance):
    notebook[chance.choice(["cells", "metadata", "nbformat", "nbformat_minor"])] = chance.choice(ODD)


TO_CELLS = [drop, double, reorder, retype, rename, scramble, scramble, replace_source, replace_source]

# ... and to the file.


def flip(content, chance):
    content = bytearray(content)
    for _ in range(chance.choice([1, 1, 2, 20])):
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    return bytes(content)


def cut(content, chance):
    return content[: chance.randrange(len(content))]


def insert(content, chance):
    place = chance.randrange(len(content))
    return content[:place] + chance.choice([chance.randbytes(9), b"\xff\xfe", b"NaN", b"[" * 50_000]) + content[place:]


def encode_otherwise(content, chance):
    return content.decode("utf-8", "replace").encode(chance.choice(["utf-16", "utf-8-sig", "utf-32"]))


TO_FILE = [flip, cut, insert, encode_otherwise]


def damaged(seed):
    """The bytes of a submission that was damaged in one to four ways."""
    chance, notebook = random.Random(seed), handed_in()
    for change in chance.choices(TO_CELLS, k=chance.randrange(1, 5)):
        change(notebook, chance)
    if chance.random() < 0.1:
        chance.choice([swamp, break_the_frame])(notebook, chance)
    content = json.dumps(notebook).encode()
    return chance.choice(TO_FILE)(content, chance) if chance.random() < 0.3 else content


def graded(folder, content):
    folder.mkdir(exist_ok=True)
    (folder / f"{NAME}.ipynb").write_bytes(content)
    return grade_submission(folder, "ada", assignment(), KEY, LIMITS)


def points(grades):
    return {name: grade.points for name, grade in grades.grades[NAME].items()}


def test_the_submission_that_is_damaged_is_right(tmp_path):
    found = graded(tmp_path / "right", json.dumps(handed_in()).encode())
    assert [*points(found)] == [*ASKED]
    assert min(points(found).values()) > 0
    assert found.review == {}


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
