"""The table of checked gradients in the book. That it is complete and holds is proven by `make check-source`."""

import copy
import json
from pathlib import Path

import build_gradient_table as tool
import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def rows():
    return json.loads(tool.TABLE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def now(rows):
    return tool.measured(rows)


def test_every_row_has_its_errors_and_none_is_large(rows):
    for row in rows:
        assert row["differences"] is None if row["name"] == "round_to" else row["differences"] <= -6
        if row["name"] != "round_to":
            bounds = {"float64": -12, "float32": -5}
            assert {what: error <= bounds[what.split(", ")[1]] for what, error in row["pytorch"].items()} == {
                f"{what}, {dtype}": True for what in ("value", "gradient") for dtype in bounds
            }


def test_what_does_not_hold_is_named(rows, now, monkeypatch):
    (gone,) = tool.problems([row for row in rows if row["name"] != "softmax"], now)
    assert "missing: softmax" in gone
    better = copy.deepcopy(rows)
    better[0]["pytorch"]["value, float32"] = -12
    (worse,) = tool.problems(better, now)
    assert worse == "_add, value, float32: 1e-6, where the table says 1e-12"
    monkeypatch.setattr(tool, "public_primitives", lambda: ["norm", "brand_new"])
    (new,) = tool.problems(rows, now)
    assert new == "brand_new is a primitive without a case in tests/primitive_cases.py"


def test_the_page_shows_every_row():
    page = (ROOT / "book" / "gradients_checked.md").read_text(encoding="utf-8")
    assert "{{gradients}}" in page
    assert "\ngradients_checked\n" in (ROOT / "book" / "index.md").read_text(encoding="utf-8")
