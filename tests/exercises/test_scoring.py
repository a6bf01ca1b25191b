"""Challenges: what is counted, what is refused, and that no other spelling of an operation escapes the count."""

import re

import numpy as np
import pytest
from mathllm_exercises import check, item, items, scoring
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


DIRECT = item("01.vectors.fewest_multiplications").expected()
CLASSIC = item("03.matrices.fewest_multiplications").expected()
ROOTS = "c12 = d12 / np.sqrt(d11 * d22)\nc13 = d13 / np.sqrt(d11 * d33)\nc23 = d23 / np.sqrt(d22 * d33)"
CODES = dict(zip("etaonshz", ["00", "01", "100", "101", "1100", "1101", "1110", "1111"], strict=True))  # costs 2.73


@pytest.mark.parametrize(
    ("id", "answer", "sentence"),
    [
        ("01.vectors.fewest_multiplications", DIRECT.replace("- ab - ab", "- ab"), "You subtracted a·b once"),
        ("01.vectors.fewest_multiplications", DIRECT.replace("+ ab + ab", ""), "You left out the mixed term"),
        ("01.vectors.fewest_multiplications", DIRECT.replace("- ab - ab +", "-"), "This is a·a − b·b"),
        ("02.similarity.fewest_roots", ROOTS.replace("np.sqrt(d11 * d33)", "(d11 * d33)"), "by the squared lengths"),
        ("02.similarity.fewest_roots", ROOTS.replace("d22 * d33", "d22 + d33"), "You added under the square root"),
        ("03.matrices.fewest_multiplications", CLASSIC.replace("- p5", "+ p5"), "with the wrong sign: subtract it"),
        ("03.matrices.fewest_multiplications", CLASSIC.replace("+ p3 + p6", "+ p6"), "lacks the product `a11 * (b12"),
        ("03.matrices.fewest_multiplications", CLASSIC.replace("= p3 + p5", "= p2 + p4"), "You exchanged `c12`"),
        ("05.probability.fewest_questions", CODES | {"z": "11110"}, "can lose its last digit"),
        ("05.probability.fewest_questions", CODES | {"e": "100", "a": "00"}, "e is more probable than t"),
        ("05.probability.fewest_questions", CODES | {"z": "01"}, "you would not know whether to stop"),
        ("05.probability.fewest_questions", CODES, "Begin with the two least probable letters"),
    ],
)
def test_likely_mistakes_of_challenges_are_named(id, answer, sentence):
    (said,) = check(id, answer).marks.mistakes
    assert sentence in said


def test_the_share_is_that_of_the_lowest_bound_that_is_reached():
    check = scoring.check("nats", float, {1.5: 1, 2: 0.5, 3: 0.25}, lambda value: [f"{value} is more than 1.5"])
    shares = [check.assess(value).share for value in (1.2, 1.5, 1.6, 2, 2.5, 3.1, float("nan"), float("inf"))]
    assert shares == [1, 1, 0.5, 0.5, 0.25, 0, 0, 0]
    assert check.assess(1.6).reason == "your answer costs 1.6 nats; aim at 1.5"
    replies = [check.assess(value).replies for value in (1.2, 1.6, 9.0)]  # advice for what earns less than all
    assert replies == [("Your answer costs 1.2 nats.",), ("1.6 is more than 1.5",), ("9.0 is more than 1.5",)]
    assert check.assess(...).reason == "no answer yet"
    assert check.assess([1]).reason == "this is not in the form that the card asks for"


@pytest.mark.parametrize("id", CHALLENGES)
def test_a_challenge_survives_any_data(id):
    lists = [[], [[]], [1, [2]], [None, 1], (), ["a", "b"], np.zeros((2, 3)), np.full(5, np.nan)]
    for answer in [0, -1, 1e308, float("nan"), True, "", "x", "a = b", "1 2 3", {}, {"a": {"b": [1]}}, *lists]:
        report = check(id, answer)
        assert report.marks.points == 0, answer
        assert str(report)
