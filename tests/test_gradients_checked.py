"""The two tables of the page of checked gradients and digits. That they hold, `make check-source` proves."""

import json

import build_digits_table as digits
import build_gradient_table as gradients
import exact
import numpy as np
import pytest
from digit_cases import FORMULAS, HARD
from mpmath import mp
from primitive_cases import ALL

ERRORS, DIGITS = (json.loads(tool.TABLE.read_text(encoding="utf-8")) for tool in (gradients, digits))


@pytest.mark.parametrize("row", [row for row in ERRORS if row["name"] != "round_to"], ids=lambda row: row["name"])
def test_no_error_of_a_gradient_is_large(row):
    assert row["differences"] <= -6
    for dtype, bound in {"float64": -12, "float32": -5}.items():
        assert max(row["pytorch"][f"{what}, {dtype}"] for what in ("value", "gradient")) <= bound


def test_ordinary_arguments_cost_a_few_roundings_at_most():
    for row in DIGITS:
        if row["where"] == digits.ORDINARY:
            for dtype, least in {"float64": 14.5, "float32": 6.0, "float16": 2.7}.items():
                assert min(row[dtype]) >= least, row["name"]


def test_every_formula_and_every_hard_point_is_measured():
    assert {point.name for point in HARD} <= {*FORMULAS} <= {case.name for case in ALL}


def test_what_does_not_hold_is_named(monkeypatch):
    for tool in (digits, gradients):
        monkeypatch.setattr(tool, "public_primitives", lambda: ["norm", "brand_new"])
    fewer = [row for row in ERRORS if row["name"] != "softmax"]
    better = [ERRORS[0] | {"differences": -12}, *ERRORS[1:]]
    new = "brand_new is a primitive without a case in tests/primitive_cases.py"
    gone = "the rows are not those of tests/primitive_cases.py; missing: softmax"
    assert [*gradients.problems(fewer, ERRORS)] == [new, gone]
    assert [*gradients.problems(better, ERRORS)] == [new, "_add, differences: 1e-9, where the table says 1e-12"]
    fewer = [row for row in DIGITS if row["name"] != "softmax"]
    better = [DIGITS[0] | {"float32": [9.0, 7.2]}, *DIGITS[1:]]
    new = "brand_new is a primitive without a formula in tests/digit_cases.py"
    worse = "norm, ordinary, value in float32: 7.2 digits, where the table says 9.0"
    assert [*digits.problems(fewer, DIGITS)] == [new, "the rows are not those of tests/digit_cases.py"]
    assert [*digits.problems(better, DIGITS)] == [new, worse]


def test_digits_are_counted_from_the_relative_error():
    right = [mp.mpf(1), mp.mpf("1e-3")]
    assert digits.digits_of(np.array([1.0, 1.0001e-3]), right, each=True) == 4
    assert digits.digits_of(np.array([1.0, 1.0001e-3]), right, each=False) == 7
    assert digits.digits_of(np.array([1.0, np.nan]), right, each=True) == 0
    assert digits.digits_of(np.array([np.inf], np.float32), [mp.mpf("1e60")], each=True) == 7.2
    assert digits.digits_of(np.array([0.0], np.float32), [mp.mpf("1e-60")], each=True) == 7.2


def test_exact_gradients_are_right_to_fifty_digits():
    """The derivative of ln(1 + eˣ) is 1/(1 + e⁻ˣ), and the gradient of eᵃ · b is (eᵃ b, eᵃ)."""
    with mp.workdps(exact.DIGITS):
        _, (slope,) = exact.value_and_gradients(exact.softplus, [np.array([-7.3])], np.ones(1))
        assert abs(slope[0] * (1 + mp.exp(mp.mpf(7.3))) - 1) < mp.mpf("1e-50")
        x = [np.array([1.25]), np.array([3.0])]
        value, slopes = exact.value_and_gradients(lambda a, b: exact.exp(a) * b, x, np.array([2.0]))
        for found, factor in zip([value, *slopes], (3, 6, 2), strict=True):
            assert abs(found[0] - factor * mp.exp(1.25)) < mp.mpf("1e-50")
