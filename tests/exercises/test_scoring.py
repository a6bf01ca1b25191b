"""Challenges: what is counted, what is refused, and that no other spelling of an operation escapes the count."""

import re

import numpy as np
import pytest
from mathllm_exercises import item, items, marking, scoring
from mathllm_exercises.scoring import operations
from mathllm_exercises.verdict import AssessedCheck

CHALLENGES = [entry.id for entry in items() if entry.kind == "value" and isinstance(entry.checks[0], AssessedCheck)]


def double(a, b):
    return {"c": 2 * (a + b)}


def test_each_operation_of_each_line_is_counted_and_a_change_of_sign_is_free():
    assert operations("c = (a + b) * 2", "ab", double) == {"+": 1, "*": 1}
    assert operations(["s = -(-a - b)", "# doubled", "c = s + s"], "ab", double) == {"-": 1, "+": 1}
    exponential = operations("c = np.exp(a) / b", "ab", lambda a, b: {"c": np.exp(a) / b}, ["np.exp"])
    assert exponential == {"np.exp": 1, "/": 1}


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("c = np.multiply(a, b)", "line 1 uses `np.multiply(a, b)`; a line may use + - * /"),
        ("c = a ** 2", "line 1 uses `a ** 2`"),
        ("s = a + b\nc = s[0]", "line 2 uses `s[0]`"),
        ("c = (lambda: 2)()", "line 1 uses"),
        ("c = sum([a, b, a, b])", "line 1 uses"),
        ("c = a.real + b", "line 1 uses `a.real`"),
        ("a = 3", "line 1 is not of the form"),
        ("a + b", "line 1 is not of the form"),
        ("c = a +", "line 1 is no expression"),
        ("c = d + a", "line 1 uses `d`"),
        ("s = a + b", "no line computes `c`"),
        ("c = a + b", "and should be"),
        ("c = (a + b) / 0", "`c` is "),
        ("", "the answer is a text"),
        ("c = a\n" * 101, "the answer is a text"),
        (7, "the answer is a text"),
    ],
)
def test_what_is_no_program_of_these_operations_is_refused_with_its_line(program, reason):
    with pytest.raises(ValueError, match=re.escape(reason)):
        operations(program, "ab", double)


def test_the_share_is_that_of_the_lowest_bound_that_is_reached():
    def said(value):
        return check.assess(value)

    check = scoring.check("nats", float, {1.5: 1, 2: 0.5, 3: 0.25})
    shares = [said(value).share for value in (1.2, 1.5, 1.6, 2, 2.5, 3.1, float("nan"), float("inf"))]
    assert shares == [1, 1, 0.5, 0.5, 0.25, 0, 0, 0]
    assert said(1.6).reason == "your answer costs 1.6 nats; aim at 1.5"
    assert said(1.2).replies == ("Your answer costs 1.2 nats.",)
    assert said(...).reason == "no answer yet"
    assert said([1]).reason == "this is not in the form that the card asks for"


@pytest.mark.parametrize("id", CHALLENGES)
def test_a_challenge_survives_any_data(id):
    entry = item(id)
    lists = [[], [[]], [1, [2]], [None, 1], (), ["a", "b"], np.zeros((2, 3)), np.full(5, np.nan)]
    for answer in [0, -1, 1e308, float("nan"), True, "", "x", "a = b", "1 2 3", {}, {"a": {"b": [1]}}, *lists]:
        cases = marking.draw(entry, np.random.default_rng(0))
        marks = marking.mark(entry, cases, marking.read(marking.observe_all(answer, cases), cases))
        assert marks.points == 0, answer
        assert marking.text(marks)
