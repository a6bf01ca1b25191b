"""The learners' edition: no solution in it, and everything that a learner needs."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from mathllm_course.edition import make_edition
from mathllm_exercises import bank, item, recorded
from mathllm_exercises.own_numbers import own_numbers
from package import ROOT

from mathllm import data

LEARNERS = ["ada", "alan"]

TRY_ALL = """
import json, sys
for name in ("IPython", "nbgrader", "nbformat", "matplotlib", "jupytext", "mathllm_grading"):
    sys.modules[name] = None  # in the browser there is no nbgrader, and a report is printed where there is no IPython
from mathllm_exercises import arrange, check, items, numbers
from mathllm_exercises.own_numbers import own_numbers
import mathllm as ml, numpy as np

answers, found = json.load(sys.stdin), {}
for entry in items():
    if entry.kind == "text":
        continue
    report = {}
    for name, code in answers[entry.id].items():
        mine = None if entry.own is None and entry.numbers is None else numbers(entry.id)
        names = {"np": np, "ml": ml, "mine": mine, "numbers": numbers, "arrange": arrange}
        exec(code, names)
        done = check(entry.id, names[entry.answer])
        report[name] = [done.passed, done.score() == entry.points, repr(done)]
    own = {} if entry.own is None else {key: repr(value) for key, value in own_numbers(entry, "ada").items()}
    found[entry.id] = {"answers": report, "own": own}
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def edition(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hand out") / "edition"
    make_edition(folder, LEARNERS, "mathllm")
    return folder


def _text(path):
    text = path.read_text(encoding="utf-8")
    return text.replace('\\"', '"') if path.suffix in (".json", ".ipynb") else text


def exercises_with_solutions(folder):
    """The exercises that count and whose solution stands in a file below a folder, with the file."""
    texts = {path: _text(path) for path in folder.rglob("*.*") if path.is_file() and path.suffix != ".pyc"}
    shown = [text for record in bank.records() for text in (record["task"], record.get("stub", ""), *record["hints"])]
    shown += [record["solution"] for record in bank.records() if not record["graded"]]
    found = {}
    for record in bank.records():
        lines = [line.strip() for line in record["solution"].splitlines() if record["graded"]]
        secret = [line for line in lines if len(line) > 25 and not any(line in text for text in shown)]
        holding = [path for path, text in texts.items() if secret and all(line in text for line in secret)]
        found |= {record["id"]: holding} if holding else {}
    return found


def test_no_solution_stands_in_the_edition(edition):
    for part in ("notebooks", "exercises", "tools"):  # the package is a book to learn from
        assert not exercises_with_solutions(edition / part)


def test_the_search_finds_the_solutions_of_the_checkout():
    assert len(exercises_with_solutions(ROOT / "exercises" / "practice")) > 200
    assert len(exercises_with_solutions(ROOT / "exercises" / "mathllm_exercises")) > 200


def test_neither_grader_nor_checks_nor_texts_of_the_exercises_are_in_it(edition):
    names = {path.name for path in edition.rglob("*")}
    assert not names & {"mathllm_grading", "mathllm_course", "source", "softmax.md", "tests", "book", "__pycache__"}
    assert [path.name for path in (edition / "exercises" / "mathllm_exercises" / "checks").iterdir()] == ["__init__.py"]
    records = json.loads((edition / "exercises" / "mathllm_exercises" / "bank.json").read_text(encoding="utf-8"))
    counted = {record["id"] for record in bank.records() if record["graded"]}
    kept = {name for record in records if record["id"] in counted for name in record}
    assert not kept & {"solution", "mistakes", "rubric", "options", "expected", "broken"}
    assert all(set(line) == {"label", "shown"} for record in records for line in record.get("lines", ()))


@pytest.fixture(scope="module")
def tried(edition):
    answers = {}
    for record in bank.records():
        if record["kind"] != "text":
            answers[record["id"]] = {name: record[name] for name in ("solution", "stub") if record.get(name)}
    environment = {"PYTHONPATH": f"{edition}:{edition / 'exercises'}", "MATHLLM_DATA": str(data.folder())}
    done = subprocess.run(
        [sys.executable, "-c", TRY_ALL], input=json.dumps(answers), capture_output=True, text=True, check=False,
        env=os.environ | environment | {"MATHLLM_LEARNER": "ada"}, cwd=edition,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_check_accepts_each_solution_and_no_stub(tried):
    assert tried.keys() == {record["id"] for record in bank.records() if record["kind"] != "text"}
    given = {(id, name): answer for id, found in tried.items() for name, answer in found["answers"].items()}
    assert not {key: answer for key, answer in given.items() if key[1] == "solution" and not all(answer[:2])}
    assert not {key: answer for key, answer in given.items() if key[1] == "stub" and answer[0]}


def test_own_numbers_are_those_that_grading_draws(tried):
    drawing = [record["id"] for record in bank.records() if item(record["id"]).numbers]
    assert len(drawing) > 15
    assert tried["01.vectors.own_length"]["own"]["v"].startswith("array(")  # whose arithmetic is that of vectors
    for id in drawing:
        assert tried[id]["own"] == {key: repr(value) for key, value in own_numbers(item(id), "ada").items()}


def test_who_is_not_in_the_class_is_told_so():
    id = "06.softmax.own_shares"
    full = next(record for record in bank.records() if record["id"] == id)
    entry = recorded.make(recorded.record(full, item(id), {"ada": {"logits": [1.0], "temperature": 2.0}}))
    assert own_numbers(entry, "ada")["temperature"] == 2.0
    with pytest.raises(ValueError, match="'eve' is not in it: set MATHLLM_LEARNER"):
        own_numbers(entry, "eve")


@pytest.mark.nightly
def test_the_edition_sets_itself_up_and_runs_a_chapter(edition, tmp_path):
    folder = shutil.copytree(edition, tmp_path / "edition")
    environment = os.environ | {"MATHLLM_DATA": str(data.folder()), "MATHLLM_LEARNER": "ada"}
    subprocess.run(["make", "setup"], cwd=folder, env=environment, check=True, capture_output=True)
    execute = ["jupyter", "nbconvert", "--to", "notebook", "--execute", "--stdout", "01_vectors.ipynb"]
    command = [str(folder / ".venv" / "bin" / execute[0]), *execute[1:]]
    done = subprocess.run(
        command, cwd=folder / "notebooks", env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
