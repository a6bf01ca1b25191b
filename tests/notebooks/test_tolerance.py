"""What `:tolerance:` promises: numbers are compared within it, and all between them exactly."""

from types import SimpleNamespace

import nbval_tolerance
import pytest
import tolerance
from nbval.plugin import IPyNbCell

NEAR = [
    ("loss 2.4871 after 300 steps", "loss 2.4870 after 300 steps"), ("1,234.5 MB", "1,234.6 MB"),
    ("[ 0.5  -1.25e-03]", "[0.5003 -1.2501e-03]"), ("x = 9.9996|", "x = 10.000|"), ("−0.5000", "-0.5001"),
    ("no number at all", "no number at all"),
]  # fmt: skip
OTHER = [
    ("loss 2.487", "loss 2.491"), ("loss 2.487", "Loss 2.487"), ("loss 2.487", "loss 2.487 2.487"), ("0.5", "-0.5"),
    ("float32 0.5", "float16 0.5"), ("nan", "0.0"), ("1,234", "1,239"), ("1.0\n2.0", "1.0 2.0"),
]  # fmt: skip


@pytest.mark.parametrize(("stored", "fresh"), NEAR + OTHER)
def test_numbers_that_are_near_agree_and_another_number_or_another_word_does_not(stored, fresh):
    agree = (stored, fresh) in NEAR
    assert tolerance.agree(stored, fresh, "1e-3") == tolerance.agree(fresh, stored, "1e-3") == agree


def test_near_zero_the_absolute_tolerance_counts():
    assert tolerance.read("1e-3 abs 1e-6") == (1e-3, 1e-6)
    assert tolerance.agree("gap 2e-7", "gap -3e-7", "1e-3 abs 1e-6")
    assert not tolerance.agree("gap 2e-7", "gap -3e-7", "1e-3")


@pytest.mark.parametrize(("metadata", "same"), [({"tolerance": "1e-3"}, True), ({}, False)])
def test_nbval_compares_what_a_cell_shows_within_its_tolerance(metadata, same):
    nbval_tolerance.pytest_configure(None)
    cell = SimpleNamespace(exact=lambda text: text, cell=SimpleNamespace(metadata=metadata))
    stored, near, far = (IPyNbCell.sanitize(cell, f"loss {loss}") for loss in (0.9493, 0.9494, 0.9593))
    assert (stored == near) == same
    assert stored != far


@pytest.mark.parametrize("option", ["", "small", "1e-3 1e-6", "-1e-3", "2", "nan", "1e-3 abs inf"])
def test_what_is_no_tolerance_is_refused(option):
    with pytest.raises(ValueError, match="tolerance"):
        tolerance.read(option)
