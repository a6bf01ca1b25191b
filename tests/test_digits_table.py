"""The table of digits in the book: every primitive is in it. That its digits are kept, `make check-source` proves."""

import copy
import json
from pathlib import Path

import build_digits_table as tool
import exact
import numpy as np
import pytest
from digit_cases import FORMULAS, HARD, WITHOUT_FORMULA
from mpmath import mp
from primitive_cases import ALL, public_primitives

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def rows():
    return json.loads(tool.TABLE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def now():
    return tool.measured()


def test_every_public_primitive_has_its_row_and_its_formula(rows):
    assert {row["name"] for row in rows} == {*FORMULAS}
    composed = {case.name for case in ALL if case.composed}
    assert {*public_primitives()} | composed == {*FORMULAS} | WITHOUT_FORMULA
    assert {point.name for point in HARD} <= {*FORMULAS}


def test_ordinary_arguments_cost_a_few_roundings_at_most(now):
    """The bounds are one digit below the least that was measured, like the margin of the table."""
    for row in now:
        if row["where"] == tool.ORDINARY:
            assert min(row["float64"]) >= 13.5, row["name"]
            assert min(row["float32"]) >= 5.6, row["name"]
            assert min(row["float16"]) >= 1.7, row["name"]


def test_what_does_not_hold_is_named(rows, now, monkeypatch):
    (gone,) = tool.problems([row for row in rows if row["name"] != "softmax"], now)
    assert gone == "the rows are not those of tests/digit_cases.py"
    better = copy.deepcopy(rows)
    better[0]["float32"] = [9.0, 7.2]
    (worse,) = tool.problems(better, now)
    assert worse == f"norm, ordinary, value in float32: {now[0]['float32'][0]} digits, where the table says 9.0"
    monkeypatch.setattr(tool, "public_primitives", lambda: ["norm", "brand_new"])
    (new,) = tool.problems(rows, now)
    assert new == "brand_new is a primitive without a formula in tests/digit_cases.py"


def test_the_page_shows_the_table():
    assert "{{digits}}" in (ROOT / "book" / "gradients_checked.md").read_text(encoding="utf-8")


# The exact numbers themselves


def test_digits_are_counted_from_the_relative_error():
    right = [mp.mpf(1), mp.mpf("1e-3")]
    assert tool.digits_of(np.array([1.0, 1.0001e-3]), right, each=True) == 4
    assert tool.digits_of(np.array([1.0, 1.0001e-3]), right, each=False) == 7
    assert tool.digits_of(np.array([1.0, np.nan]), right, each=True) == 0
    assert tool.digits_of(np.array([np.inf], np.float32), [mp.mpf("1e60")], each=True) == 7.2
    assert tool.digits_of(np.array([0.0], np.float32), [mp.mpf("1e-60")], each=True) == 7.2


def test_exact_gradients_are_right_to_fifty_digits():
    """The derivative of ln(1 + eˣ) is 1/(1 + e⁻ˣ), and the gradient of eᵃ · b is (eᵃ b, eᵃ)."""
    with mp.workdps(exact.DIGITS):
        _, (slope,) = exact.value_and_gradients(exact.softplus, [np.array([-7.3])], np.ones(1))
        assert abs(slope[0] * (1 + mp.exp(mp.mpf(7.3))) - 1) < mp.mpf("1e-50")
        x = [np.array([1.25]), np.array([3.0])]
        value, (da, db) = exact.value_and_gradients(lambda a, b: exact.exp(a) * b, x, np.array([2.0]))
        assert abs(value[0] - 3 * mp.exp(1.25)) < mp.mpf("1e-50")
        assert abs(da[0] - 6 * mp.exp(1.25)) < mp.mpf("1e-50")
        assert abs(db[0] - 2 * mp.exp(1.25)) < mp.mpf("1e-50")
