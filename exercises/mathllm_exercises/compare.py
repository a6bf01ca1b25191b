"""When is an answer the same as what was expected? One place decides it, for learners and for the grader.

Everything here works on plain data: numbers, strings, arrays, and tuples, lists and dicts of them.
"""

import numpy as np

__all__ = ["agree", "difference", "rounded", "show"]


def show(value, limit=160):
    """A value as one short line, printed alike in every NumPy version."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        text = np.array2string(
            value, separator=", ", threshold=20, edgeitems=3, formatter={"float_kind": lambda number: f"{number:.6g}"}
        )
        text = " ".join(text.split())
        if value.dtype not in (np.dtype(float), np.dtype(int), np.dtype(bool)):
            text += f" ({value.dtype})"
    elif isinstance(value, float):
        text = f"{value:.10g}" if value != int_or_none(value) else repr(value)
    elif isinstance(value, (list, tuple)):
        brackets = "[]" if isinstance(value, list) else "()"
        trailing = "," if isinstance(value, tuple) and len(value) == 1 else ""
        text = brackets[0] + ", ".join(show(v) for v in value[:20]) + trailing + brackets[1]
    elif isinstance(value, dict):
        text = "{" + ", ".join(f"{k!r}: {show(v)}" for k, v in list(value.items())[:20]) + "}"
    else:
        text = repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def int_or_none(value):
    """The integer equal to a float, if there is one of moderate size."""
    return int(value) if np.isfinite(value) and abs(value) < 1e15 and value == int(value) else None


def numeric(value):
    """The value as a numeric or boolean array, or None if it is not one."""
    if isinstance(value, (str, bytes, dict, type(None))):
        return None
    try:
        array = np.asarray(value)
    except (ValueError, TypeError):  # ragged nesting
        return None
    return array if array.dtype.kind in "biuf" else None


def difference(expected, got, rtol=1e-9, atol=1e-12):
    """Say how `got` differs from `expected`; None when it does not.

    Numbers agree when |got − expected| ≤ atol + rtol·|expected|, in the expected shape. A list, a tuple and
    an array of the same numbers are the same answer. NaN agrees with nothing but an expected NaN.
    """
    if isinstance(expected, str):
        if isinstance(got, str) and got.strip().casefold() == expected.strip().casefold():
            return None
        return f"expected {show(expected)}, got {show(got)}"
    if isinstance(expected, dict):
        if not isinstance(got, dict) or set(got) != set(expected):
            return f"expected a dict with the keys {', '.join(map(str, expected))}, got {show(got)}"
        reasons = ((key, difference(expected[key], got[key], rtol, atol)) for key in expected)
        return next((f"at {key!r}: {reason}" for key, reason in reasons if reason), None)
    wanted = numeric(expected)
    if wanted is None:  # a sequence of strings, or of arrays of several shapes, or None
        if not isinstance(expected, (list, tuple)):
            same = type(got) is type(expected) and got == expected
            return None if same else f"expected {show(expected)}, got {show(got)}"
        if not isinstance(got, (list, tuple)) or len(got) != len(expected):
            return f"expected {len(expected)} entries, got {show(got)}"
        reasons = (difference(e, g, rtol, atol) for e, g in zip(expected, got, strict=True))
        return next((f"entry {i}: {reason}" for i, reason in enumerate(reasons) if reason), None)
    value = numeric(got)
    if value is None:
        return f"expected {show(expected)}, got {show(got)}, which is not a number or an array of numbers"
    if (wanted.dtype.kind == "b") != (value.dtype.kind == "b"):
        return f"expected {'True or False' if wanted.dtype.kind == 'b' else 'numbers'}, got {show(got)}"
    if value.shape != wanted.shape:
        one = "" if wanted.shape else " (one number)"
        return f"expected shape {wanted.shape}{one}, got shape {value.shape}: {show(got)}"
    if wanted.dtype.kind == "b":
        same = value == wanted
    else:
        same = np.isclose(value.astype(float), wanted.astype(float), rtol=rtol, atol=atol, equal_nan=True)
    if np.all(same):
        return None
    if np.any(np.isnan(value) & ~np.isnan(wanted)):
        return f"expected {show(expected)}, got {show(got)}, which contains NaN"
    return f"expected {show(expected)}, got {show(got)}"


def agree(expected, got, rtol=1e-9, atol=1e-12):
    """Whether two values are the same answer.

    >>> agree(5.0, 5), agree([1.0, 2.0], (1, 2)), agree(5.0, float("nan")), agree(5.0, "5")
    (True, True, False, False)
    """
    return difference(expected, got, rtol, atol) is None


def rounded(expected, got, atol):
    """Whether a value is the expected one, rounded to fewer decimals than `atol` asks for (and not away to zero).

    >>> rounded(20.0855, 20.1, 0.005), rounded(20.0855, 20.2, 0.005), rounded([0.04, 1.5], [0.0, 1.5], 0.005)
    (True, False, False)
    """
    wanted, value = numeric(expected), numeric(got)
    if wanted is None or value is None or value.shape != wanted.shape or np.any((value == 0) & (wanted != 0)):
        return False
    decimals = round(-np.log10(2 * max(atol, 1e-15)))
    return any(np.allclose(value, np.round(wanted, fewer), rtol=0, atol=1e-9) for fewer in range(1, decimals))
