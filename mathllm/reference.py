"""The numbers that the source documents print, and their comparison with what we compute.

Every number of the five documents is a row of `reference_values.toml`, with its inputs and its precision. A chapter
computes the number with the package and compares it with the row: a tick if they agree at the printed precision, the
erratum if the document is wrong, an error if our value is wrong.
"""

import functools
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from .errors import UnknownReferenceError, suggest

CHOICE = "a choice of the source, nothing to compute"  # said of a "setting"


class ReferenceMismatchError(AssertionError):
    """A value other than the right one."""


class Row(SimpleNamespace):
    """One value of the documents, with the fields of its row in `reference_values.toml`.

    expected: the printed value   computed: the right one   agrees: whether they are the same   erratum: its name if not
    basis: "computation", "reasoning", "literature", or "setting": a choice of the source, which nothing can confirm
    decimals: those that are printed   unit_last_place: one unit of the last printed place, if it is not 10^-decimals
    rtol: the relative tolerance
    """

    erratum = ""
    decimals = rtol = unit_last_place = None


@functools.cache
def _table() -> dict[str, Row]:
    with Path(__file__).with_name("reference_values.toml").open("rb") as file:
        return {entry["id"]: Row(**entry) for entry in tomllib.load(file)["value"]}


def row(id: str) -> Row:
    """The row with this id. Raises: UnknownReferenceError, with the nearest ids.

    >>> row("primer.ch01.ex1.magnitude").expected
    5
    """
    try:
        return _table()[id]
    except KeyError:
        raise UnknownReferenceError(f"no reference value {id!r}{suggest(id, _table())}") from None


def rows(chapter: str | None = None) -> list[Row]:
    """All rows, or those of one chapter ("01" … "17"), in the order of the table.

    Raises: UnknownReferenceError for a chapter that has no rows.

    >>> len(rows()), rows("01")[0].id
    (464, 'primer.ch01.text.dim2')
    """
    chosen = [r for r in _table().values() if chapter in (None, r.chapter)]
    if not chosen:
        raise UnknownReferenceError(f'no reference values for chapter {chapter!r}; chapters are "01" … "17"')
    return chosen


def check(id: str, value: Any) -> None:
    """Compare `value` with the row, and print the value of the document, ours, and a tick or the erratum.

    A choice of the source ("setting") gets no tick, because nothing is computed.

    Two numbers agree if they are equal after rounding to the printed decimals, or within the relative tolerance of the
    row. Words and shapes are compared exactly.

    Raises: UnknownReferenceError for a wrong id; ReferenceMismatchError for any other value than the right one, which
    is the printed one unless there is an erratum.

    >>> check("primer.ch02.ex2.cosine", 28 / 870**0.5)
    printed 0.949   ours 0.9493   ✓   Cosine similarity of cat and dog
    """
    entry = row(id)
    right = entry.expected if entry.agrees else entry.computed
    if not _agree(value, right, entry):
        raise ReferenceMismatchError(f"{id}: {entry.statement}: expected {shown(entry, right)}, got {value!r}")
    source = "printed" if entry.printed else "not printed, expected"
    reason = "" if entry.agrees else f" ({entry.note})"
    verdict = "✓" if entry.agrees else f"✗ erratum {entry.erratum}" if entry.erratum else "✗"
    result = CHOICE if entry.basis == "setting" else f"ours {shown(entry, value)}   {verdict}"
    print(f"{source} {shown(entry, entry.expected)}   {result}   {entry.statement}{reason}")


def _agree(value, target, entry):
    words = (str, bool, np.bool_)
    if isinstance(target, dict):
        same_keys = isinstance(value, Mapping) and value.keys() == target.keys()
        return same_keys and all(_agree(value[key], target[key], entry) for key in target)
    if isinstance(value, words) or isinstance(target, words):  # True does not count as 1
        return isinstance(value, words) and isinstance(target, words) and bool(value == target)
    ours, theirs = _numbers(value), _numbers(target)
    if theirs is None or theirs.dtype.kind == "b":  # a list of words, or of rows of unequal length
        is_list = isinstance(value, Sequence | np.ndarray) and getattr(value, "shape", None) != ()
        same_length = is_list and len(value) == len(target)
        return same_length and all(_agree(v, t, entry) for v, t in zip(value, target, strict=True))
    if ours is None:
        return False
    if entry.kind in ("range", "claim", "table") and {ours.shape, theirs.shape} == {(), (2,)}:  # one is an interval
        number, (low, high) = (ours, theirs) if ours.ndim == 0 else (theirs, ours)
        return bool(low <= number <= high)
    return ours.shape == theirs.shape and bool(np.allclose(ours, theirs, rtol=entry.rtol or 0.0, atol=_absolute(entry)))


def _numbers(value):
    """An array of numbers, or None."""
    try:
        array = np.asarray(value)
    except ValueError:  # rows of unequal length
        return None
    return array if array.dtype.kind in "iufb" else None


def _absolute(entry):
    """The absolute tolerance: half a unit of the last printed place, and a little for rounding in the comparison."""
    if entry.decimals is None:
        return 1e-12 if entry.kind == "identity" or entry.rtol else 0.0
    return 0.5 * (entry.unit_last_place or 10.0**-entry.decimals) * (1 + 1e-9)


def shown(row: Row, value: Any) -> str:
    """A value in the form that the notebooks print: one digit more than the document, or four significant digits.

    Below ten million, no digit before the point is rounded.

    >>> shown(row("primer.ch02.ex2.cosine"), 28 / 870**0.5)
    '0.9493'
    """
    if isinstance(value, str | bool | np.bool_):
        return str(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {shown(row, item)}" for key, item in value.items())
    if isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim):
        return "[" + ", ".join(shown(row, item) for item in value) + "]"
    number = float(value)
    if number.is_integer() and abs(number) < 1e15:
        return str(int(number))
    if row.decimals is not None:
        rounded = round(number, min(row.decimals + 1, 8))
    else:
        rounded = round(number) if 1e4 <= abs(number) < 1e7 else float(f"{number:.4g}")
    return f"{rounded + 0.0:.10g}"
