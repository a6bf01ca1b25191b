"""Proofs over every exercise of the book: solutions earn all, stubs nothing, known mistakes what their card says.

They take the road a submission takes — inputs drawn, values encoded, decoded, judged — without starting a kernel.
"""

import re

import build_exercises
import exercise_cells
import numpy as np
import pytest
from mathllm_exercises import check, checks, item, items, marking
from mathllm_exercises.compare import agree, numeric
from mathllm_exercises.kernel_side import NOT_DEFINED
from mathllm_exercises.own_numbers import own_numbers
from package import ROOT

ASSIGNMENTS = sorted((ROOT / "exercises" / "assignments").glob("*.md"))
CODE_ITEMS = [entry.id for entry in items() if entry.kind != "text"]
# Each seed is another grading, with other private cases and own numbers.
LEARNERS = ["reader", *(pytest.param(name, marks=pytest.mark.nightly) for name in ("ada", "grace"))]
SEEDS = {"reader": 0, "ada": 1, "grace": 2}


def marks_of(entry, answer, learner, seed):
    """What an answer earns: the road of a submission."""
    cases = marking.draw(entry, np.random.default_rng(seed))
    observations = marking.read(marking.observe_all(answer, cases), cases)
    return marking.mark(entry, cases, observations, own_numbers(entry, learner))


def run_assignment(path, source_of):
    """Run an assignment's cells in order and yield (item, answer) after each answer cell."""
    namespace = {}
    for cell in exercise_cells.read_assignment(path):
        entry = item(cell.options["item"]) if "item" in cell.options else None
        if cell.kind != "code":
            continue
        if entry:
            namespace.pop(entry.answer, None)
        exec(compile(source_of(cell.source), path.name, "exec"), namespace)
        if entry:
            yield entry, namespace.get(entry.answer, NOT_DEFINED)


@pytest.mark.parametrize("path", ASSIGNMENTS, ids=lambda path: path.stem)
@pytest.mark.parametrize("learner", LEARNERS)
def test_every_solution_scores_full(path, learner, monkeypatch):
    monkeypatch.setenv("MATHLLM_LEARNER", learner)
    for entry, answer in run_assignment(path, lambda source: source):
        marks = marks_of(entry, answer, learner, SEEDS[learner])
        assert marks.points == entry.points, marking.text(marks)


@pytest.mark.slow
@pytest.mark.parametrize("path", ASSIGNMENTS, ids=lambda path: path.stem)
def test_every_released_stub_scores_nothing(path, monkeypatch):
    monkeypatch.setenv("MATHLLM_LEARNER", "reader")
    seen = []
    for entry, answer in run_assignment(path, exercise_cells.released):
        report = check(entry.id, answer)
        assert report.marks.points == 0
        said = "still does what the printed function does" if entry.kind == "repair" else "no answer yet"
        assert said in str(report)
        seen.append(entry.id)
    assert seen == [entry.id for _, entry in exercise_cells.answers(path) if entry.kind != "text"]


def raised_by_accident(observation):
    """Whether the edit of a known mistake is broken. Of TypeErrors, `math.sqrt` of an array is a learner's own."""
    meant = observation.own or "arrays can be converted to Python scalars" in observation.message
    return not meant and {"NameError", "SyntaxError", "AttributeError", "TypeError"} & set(observation.error)


@pytest.mark.slow
@pytest.mark.parametrize("id", CODE_ITEMS)
@pytest.mark.parametrize("learner", LEARNERS)
def test_every_known_mistake_scores_what_its_card_says_and_is_named(id, learner):
    entry, own = item(id), own_numbers(item(id), learner)
    cases = marking.draw(entry, np.random.default_rng(SEEDS[learner]))
    bank = marking.known_mistakes(entry, cases, own)
    count = len(entry.mistakes)
    for mistake, (_, observations, _) in zip(entry.mistakes, bank[:count], strict=True):
        broken = [seen.message for group in observations for seen in group if raised_by_accident(seen)]
        assert not broken, f"{mistake.sentence}\n{broken[0]}"
        marks = marking.mark(entry, cases, observations, own, bank)
        assert marks.points == mistake.score, f"{mistake.sentence}\n{marking.text(marks)}"
        assert mistake.sentence in marks.mistakes, f"{mistake.sentence}\n{marking.text(marks)}"
    for sentence, observations, wrong in bank[count:]:  # with other numbers for EPSILON
        assert not wrong or sentence in marking.mark(entry, cases, observations, own, bank).mistakes


@pytest.mark.nightly
@pytest.mark.parametrize("id", [id for id in CODE_ITEMS if item(id).calls])
def test_no_known_mistake_passes_by_the_luck_of_the_draw(id):
    entry = item(id)
    for seed in range(25):
        bank = marking.known_mistakes(entry, marking.draw(entry, np.random.default_rng(seed)))
        for mistake, (_, _, failed) in zip(entry.mistakes, bank[: len(entry.mistakes)], strict=True):
            assert failed, mistake.sentence


@pytest.mark.parametrize("id", [id for id in CODE_ITEMS if item(id).calls])
def test_every_function_item_knows_three_mistakes(id):
    assert len(item(id).mistakes) >= 3
    assert len({mistake.sentence for mistake in item(id).mistakes}) == len(item(id).mistakes)


@pytest.mark.slow
@pytest.mark.parametrize("id", [entry.id for entry in items() if entry.kind == "value"])
def test_a_rounded_value_is_named_as_the_mistake_that_it_is_or_not_at_all(id):
    entry, own = item(id), own_numbers(item(id), "reader")
    cases = marking.draw(entry, np.random.default_rng(0))
    bank = marking.known_mistakes(entry, cases, own)
    values = [(None, entry.expected(**own)), *((sentence, seen[0][0].value) for sentence, seen, _ in bank)]
    for sentence, value in values:
        for decimals in range(2, 7) if numeric(value) is not None else ():
            rounded = np.round(numeric(value).astype(float), decimals)
            observations = marking.read(marking.observe_all(rounded, cases), cases)
            marks = marking.mark(entry, cases, observations, own, bank)
            others = [wrong for said, wrong in values if said in marks.mistakes and said != sentence]
            assert all(agree(wrong, rounded, 1e-6, 0.005) for wrong in others), marks.mistakes


def test_a_sentence_on_later_failures_waits_until_the_first_failure_is_explained():
    report = check("01.vectors.norm", lambda x: np.abs(np.prod(x, axis=-1)))
    assert not report.mistakes
    assert "Begin with the first" in str(report)
    squares = check("01.vectors.norm", lambda x: np.sum(x * x, axis=-1))
    assert "square root is missing" in str(squares)
    assert "Begin with" not in str(squares)


@pytest.mark.parametrize("tiny", [1e-15, 1e-9, 1e-6])
def test_a_small_number_is_recognised_whatever_its_size(tiny):
    report = check("05.probability.log_probability", lambda p: np.log(p + tiny).sum())
    assert "small number that you put in" in str(report)


def test_code_in_a_sentence_is_shown_as_code():
    assert "<code>axis=-1</code>" in check("01.vectors.norm", lambda x: np.linalg.norm(x))._repr_html_()


# The worked example of CONTRIBUTING.md: taken out of its text, compiled and proven in a copy

FRONT = """---
title: Softmax
kernelspec: {name: python3, display_name: Python 3}
mathllm: {slug: softmax}
---

# Softmax

"""


def defined(source, name):
    namespace = {"np": np}
    exec(source, namespace)
    return namespace.get(name, NOT_DEFINED)


def test_the_worked_example_compiles_and_is_proven(tmp_path, monkeypatch):
    section = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("## Add an exercise")[1].split("\n## ")[0]
    block = re.search(r"^````\n(.*?)^````$", section, re.DOTALL | re.MULTILINE)[1]
    code = re.search(r"^```python\n(.*?)^```$", section.split("````")[2], re.DOTALL | re.MULTILINE)[1]
    chapter = checks.module("softmax")  # its rules are registered when it is imported: before the copy
    monkeypatch.setattr(checks, "_RULES", dict(checks._RULES))
    exec(code, dict(vars(chapter)))
    path = tmp_path / "06_softmax.md"
    path.write_text(FRONT + block, encoding="utf-8")
    build_exercises.update(path)

    ((cell, entry),) = exercise_cells.answers(path)
    assert len(entry.mistakes) == 3
    answers = [(mistake.make, mistake.score, (mistake.sentence,)) for mistake in entry.mistakes]
    answers += [(defined(cell.source, entry.answer), entry.points, ())]
    answers += [(defined(exercise_cells.released(cell.source), entry.answer), 0, ())]
    for answer, points, sentences in answers:
        marks = marks_of(entry, answer, "reader", 1)
        assert (marks.points, marks.mistakes) == (points, sentences)
    written = path.read_text(encoding="utf-8")
    assert all(re.search(rf"^- \({mistake.score:g}\) ", written, re.MULTILINE) for mistake in entry.mistakes)


def test_no_assignment_counts_its_exercises_by_hand():
    numbers = "Eight|Nine|Ten|Eleven|Twelve|Thirteen|Fourteen|Fifteen|Sixteen"
    for path in ASSIGNMENTS:
        opening = path.read_text(encoding="utf-8").split("\n## ")[0]
        assert not re.search(rf"\b({numbers})\b.*exercises|[Cc]ount on", opening), path.name
