"""The worked example of CONTRIBUTING.md: taken out of its text, compiled and proven in a copy."""

import re
from pathlib import Path

import build_exercises
import exercise_cells
import numpy as np
import pytest
from mathllm_exercises import checks, marking
from mathllm_exercises.kernel_side import NOT_DEFINED

ROOT = Path(__file__).resolve().parents[2]
FRONT = """---
title: Softmax
kernelspec: {name: python3, display_name: Python 3}
mathllm: {slug: softmax}
---

# Softmax

"""


@pytest.fixture
def example(tmp_path, monkeypatch):
    """The path of an assignment that holds the example alone; its checks are registered."""
    section = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("## Add an exercise")[1].split("\n## ")[0]
    block = re.search(r"^````\n(.*?)^````$", section, re.DOTALL | re.MULTILINE)[1]
    code = re.search(r"^```python\n(.*?)^```$", section.split("````")[2], re.DOTALL | re.MULTILINE)[1]
    chapter = checks.module("softmax")  # its rules are registered when it is imported: before the copy
    monkeypatch.setattr(checks, "_RULES", dict(checks._RULES))
    exec(code, dict(vars(chapter)))
    path = tmp_path / "06_softmax.md"
    path.write_text(FRONT + block, encoding="utf-8")
    build_exercises.update(path)
    return path


def points(entry, answer):
    cases = marking.draw(entry, np.random.default_rng(1))
    marks = marking.mark(entry, cases, marking.read(marking.observe_all(answer, cases), cases))
    return marks.points, marks.mistakes


def defined(source, name):
    namespace = {"np": np}
    exec(source, namespace)
    return namespace.get(name, NOT_DEFINED)


def test_the_worked_example_compiles_and_is_proven(example):
    ((cell, entry),) = exercise_cells.answers(example)
    assert points(entry, defined(cell.source, entry.answer)) == (entry.points, ())
    assert points(entry, defined(exercise_cells.released(cell.source), entry.answer))[0] == 0
    assert len(entry.mistakes) == 3
    for mistake in entry.mistakes:
        assert points(entry, mistake.make) == (mistake.score, (mistake.sentence,))
    written = example.read_text(encoding="utf-8")
    assert all(re.search(rf"^- \({mistake.score:g}\) ", written, re.MULTILINE) for mistake in entry.mistakes)


def test_no_assignment_counts_its_exercises_by_hand():
    numbers = "Eight|Nine|Ten|Eleven|Twelve|Thirteen|Fourteen|Fifteen|Sixteen"
    for path in sorted((ROOT / "exercises" / "assignments").glob("*.md")):
        opening = path.read_text(encoding="utf-8").split("\n## ")[0]
        assert not re.search(rf"\b({numbers})\b.*exercises|[Cc]ount on", opening), path.name
