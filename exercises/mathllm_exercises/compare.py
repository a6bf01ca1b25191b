"""When is an answer the same as what was expected? One place decides it, for learners and for the grader.

Everything here works on plain data: numbers, strings, arrays, and tuples, lists and dicts of them.
"""

import numpy as np

__all__ = [
    "agree", "agreed_decimals", "difference", "form", "is_rounded", "other_brackets", "show", "tolerance",
    "which_wrong",
]  # fmt: skip


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
        text = f"{value:.10g}"
        if float(text).is_integer():  # exactly a whole number, or a little beside one
            text = repr(value)
    elif isinstance(value, (list, tuple)):
        brackets = "[]" if isinstance(value, list) else "()"
        trailing = "," if isinstance(value, tuple) and len(value) == 1 else ""
        text = brackets[0] + ", ".join(show(v) for v in value[:20]) + trailing + brackets[1]
    elif isinstance(value, dict):
        text = "{" + ", ".join(f"{k!r}: {show(v)}" for k, v in list(value.items())[:20]) + "}"
    else:
        text = repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def numeric(value):
    """The value as a numeric or boolean array, or None if it is not one."""
    if isinstance(value, (str, bytes, dict, type(None))):
        return None
    try:
        array = np.asarray(value)
    except (ValueError, TypeError):  # ragged nesting
        return None
    return array if array.dtype.kind in "biuf" else None


def form(value):
    """What can be said of a value without saying it.

    >>> form(2.5), form([1, 2]), form("dog"), form(["a", "b"]), form([1, None])
    ('a number', 'an array or list of shape (2,)', 'a string', '2 strings in a list', '2 values in a list')
    """
    if isinstance(value, (str, bool)):
        return "a string" if isinstance(value, str) else "True or False"
    array = numeric(value)
    if array is not None:
        return f"an array or list of shape {array.shape}" if array.ndim else "a number"
    if not isinstance(value, (list, tuple)):
        return f"a {type(value).__name__}"
    return f"{len(value)} {'strings' if all(isinstance(part, str) for part in value) else 'values'} in a list"


def difference(expected, got, rtol=1e-9, atol=1e-12):
    """Say how `got` differs from `expected`; None when it does not.

    Numbers agree when |got − expected| ≤ atol + rtol·|expected|, in the expected shape. A list, a tuple and
    an array of the same numbers are the same answer. NaN agrees with nothing but an expected NaN.

    >>> difference((np.zeros(2), np.ones(2)), np.zeros(2)), difference((np.zeros(2), np.ones(2)), (np.zeros(2), 1.0))
    ('expected a tuple of 2 results, got [0, 0]', 'entry 1: expected shape (2,), got shape (): 1.0')
    """
    reason = _difference(expected, got, rtol, atol)
    return reason and reason()


def _difference(expected, got, rtol, atol):
    """What writes the reason, since most comparisons only ask whether there is one; None when there is none."""
    if isinstance(expected, str):
        same = isinstance(got, str) and got.strip().casefold() == expected.strip().casefold()
        return None if same else lambda: _instead(expected, got)
    if isinstance(expected, dict):
        if not isinstance(got, dict) or set(got) != set(expected):
            return lambda: f"expected a dict with the keys {', '.join(map(str, expected))}, got {show(got)}"
        return _first((f"at {key!r}", _difference(expected[key], got[key], rtol, atol)) for key in expected)
    wanted, value = numeric(expected), numeric(got)
    arrays = isinstance(expected, tuple) and wanted is not None and wanted.ndim > 1  # of one shape, several results
    if wanted is None or (arrays and (value is None or value.shape != wanted.shape)):
        if not isinstance(expected, (list, tuple)):  # None
            same = type(got) is type(expected) and got == expected
            return None if same else lambda: _instead(expected, got)
        if not isinstance(got, (list, tuple)) or len(got) != len(expected):
            form = "a tuple of {} results" if isinstance(expected, tuple) else "{} entries"
            return lambda: f"expected {form.format(len(expected))}, got {show(got)}"
        pairs = enumerate(zip(expected, got, strict=True))
        return _first((f"entry {i}", _difference(e, g, rtol, atol)) for i, (e, g) in pairs)
    if value is None:
        return lambda: f"{_instead(expected, got)}, which is not a number or an array of numbers"
    if (wanted.dtype.kind == "b") != (value.dtype.kind == "b"):
        return lambda: f"expected {'True or False' if wanted.dtype.kind == 'b' else 'numbers'}, got {show(got)}"
    if value.shape != wanted.shape:
        return lambda: _other_shape(wanted, value, show(got), rtol, atol)
    if wanted.dtype.kind == "b":
        same = value == wanted
    else:
        same = np.isclose(value.astype(float), wanted.astype(float), rtol=rtol, atol=atol, equal_nan=True)
    if np.all(same):
        return None
    if np.any(np.isnan(value) & ~np.isnan(wanted)):
        return lambda: f"{_instead(expected, got)}, which contains NaN"
    return lambda: f"{_instead(expected, got)}{_first_place(wanted, value, same)}"


def _instead(expected, got):
    return f"expected {show(expected)}, got {show(got)}"


def _first(reasons):
    """The first reason of an entry, with its place in front."""
    place, reason = next((entry for entry in reasons if entry[1]), (None, None))
    return reason and (lambda: f"{place}: {reason()}")


def _other_shape(wanted, value, shown, rtol, atol):
    one = "" if wanted.shape else " (one number)"
    reason = f"expected shape {wanted.shape}{one}, got shape {value.shape}: {shown}"
    right = other_brackets(wanted, value, rtol, atol)
    return f"the numbers are right, but in other brackets: {reason}" if right else reason


def _first_place(wanted, value, same):
    """Where an array first differs, if the two as they are printed do not show it."""
    if wanted.size <= 6 and show(wanted) != show(value):
        return ""
    at = tuple(int(n) for n in np.argwhere(~same)[0])
    place = f"at {list(at)}" if at else "there"
    off = "" if wanted.dtype.kind == "b" else f" (off by {float(value[at]) - float(wanted[at]):.2g})"
    return f"; first difference {place}: expected {show(wanted[at])}, got {show(value[at])}{off}"


def agree(expected, got, rtol=1e-9, atol=1e-12):
    """Whether two values are the same answer.

    >>> agree(5.0, 5), agree([1.0, 2.0], (1, 2)), agree(5.0, float("nan")), agree(5.0, "5")
    (True, True, False, False)
    """
    return _difference(expected, got, rtol, atol) is None


def agreed_decimals(expected, got, atol):
    """To how many decimals, two at least, a value is the expected one rounded, where `atol` asks for more; else None.

    Decimals that are exact have no shorter form: 0.2 is not 0.25 rounded.

    >>> agreed_decimals(20.0855, 20.09, 0.0005), agreed_decimals(20.0855, 20.1, 0.0005)
    (2, None)
    >>> agreed_decimals(0.125, 0.12, 0.0005), agreed_decimals([0.004, 1.5], [0.0, 1.5], 0.0005)
    (None, None)
    >>> agreed_decimals([0.99990921, 0.00004540], [0.9999, 0.0], 5e-7)
    4
    """
    wanted, value = numeric(expected), numeric(got)
    if wanted is None or value is None or value.shape != wanted.shape:
        return None
    asked = round(-np.log10(2 * max(atol, 1e-15)))
    wrong = ~np.isclose(value, wanted, rtol=0, atol=max(atol, 1e-12))
    wanted, value = wanted[wrong], value[wrong]
    if np.any(np.isclose(wanted, np.round(wanted, asked), rtol=0, atol=1e-12)):
        return None
    for decimals in range(asked - 1, 1, -1):
        two_digits = np.abs(value).max(initial=0) >= 10.0 ** (1 - decimals)
        if two_digits and np.allclose(value, np.round(wanted, decimals), rtol=0, atol=1e-9):
            return decimals
    return None


def is_rounded(got, value):
    """Whether `got` is a value rounded to the decimals with which it is written, two at least.

    >>> is_rounded(2.33, 7 / 3), is_rounded([0.33, 0.4], [1 / 3, 2 / 5]), is_rounded(2.3, 7 / 3)
    (True, True, False)
    """
    got, value = numeric(got), numeric(value)
    if got is None or value is None or got.shape != value.shape:
        return False
    got = got.astype(float)
    decimals = next((n for n in range(12) if np.allclose(got, np.round(got, n), rtol=0, atol=1e-12)), 12)
    two_digits = np.abs(got).max(initial=0) >= 10.0 ** (1 - decimals)
    return decimals > 1 and two_digits and np.allclose(got, value, rtol=0, atol=0.5 * 10.0**-decimals + 1e-12)


def which_wrong(expected, got, rtol=1e-9, atol=1e-12):
    """Which entries of a list are wrong, in words; None for one number, and where all or none of them are.

    >>> which_wrong([0, 1, 1, 0], [0, 1, 2, 3])
    'the 3rd and 4th entries are wrong, the other 2 are right'
    """
    try:
        pairs = list(zip(expected, got, strict=True))
    except (TypeError, ValueError):
        return None
    if isinstance(got, (str, dict)) or isinstance(expected, (str, dict)):
        return None
    wrong = [_ordinal(n) for n, (e, g) in enumerate(pairs, 1) if not agree(e, g, rtol, atol)]
    right = len(pairs) - len(wrong)
    if not wrong or not right:
        return None
    named = " and ".join([", ".join(wrong[:-1]), wrong[-1]] if len(wrong) > 1 else wrong)
    others = f"the other {right} are" if right > 1 else "the other one is"
    return f"the {named} {'entries are' if len(wrong) > 1 else 'entry is'} wrong, {others} right"


def _ordinal(n):
    ending = {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{'th' if n in (11, 12, 13) else ending}"


def tolerance(rtol, value):
    """The relative tolerance for an answer that is a value: float32 keeps seven digits, so it cannot be closer.

    >>> tolerance(1e-9, np.float32(1.05)), tolerance(1e-9, [np.float32(1.05), True]), tolerance(1e-9, 1.05)
    (1e-06, 1e-06, 1e-09)
    """
    parts = value if isinstance(value, (list, tuple)) else [value]
    narrow = any(getattr(part, "dtype", None) == np.float32 for part in parts)
    return max(rtol, 1e-6) if narrow and rtol else rtol


def other_brackets(expected, got, rtol=1e-9, atol=1e-12):
    """Whether a wrong value holds the expected numbers in their order: then only the nesting is another.

    >>> other_brackets([7, -5], [[7], [-5]]), other_brackets(176, [176]), other_brackets([1, 2], [2, [1]])
    (True, True, False)
    """
    wanted, given = flattened(expected), flattened(got)
    return len(wanted) == len(given) and all(agree(e, g, rtol, atol) for e, g in zip(wanted, given, strict=True))


def flattened(value):
    """The numbers and strings of nested lists, tuples and arrays, one after the other."""
    if isinstance(value, np.ndarray):
        return value.ravel().tolist()
    if isinstance(value, (list, tuple)):
        return [entry for part in value for entry in flattened(part)]
    return [value]
