"""The two tables of the page of checked gradients and digits. That they hold, `make check-source` proves."""

import json

import build_digits_table as digits
import build_gradient_table as gradients
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


def test_a_number_beyond_the_dtype_may_be_infinite_or_zero_but_none_may_be_nan():
    assert digits.digits_of(np.array([1.0, np.nan]), [mp.mpf(1), mp.mpf("1e-3")], each=True) == 0
    assert digits.digits_of(np.array([np.inf], np.float32), [mp.mpf("1e60")], each=True) == 7.2
    assert digits.digits_of(np.array([0.0], np.float32), [mp.mpf("1e-60")], each=True) == 7.2
