"""How closely a stored and a fresh output must agree: numbers within a tolerance, all between them exactly.

A cell of a chapter states it as an option. `:tolerance: 1e-3` is relative; `:tolerance: 1e-3 abs 1e-6` also lets
numbers near zero differ by a millionth. A cell without the option is compared exactly.
"""

import math
import re

NUMBER = re.compile(
    r"(?<![\w.])[-+−]?(?:(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
)
FORM = re.compile(r"(\S+)(?:\s+abs\s+(\S+))?")


def read(option: str) -> tuple[float, float]:
    """Relative and absolute tolerance. Raises: ValueError for what is none."""
    match = FORM.fullmatch(option)
    try:
        relative, absolute = float(match[1]), float(match[2] or 0)
    except (TypeError, ValueError):
        raise ValueError(f"the tolerance {option!r} is not of the form `1e-3` or `1e-3 abs 1e-6`") from None
    if not (0 <= relative < 1 and 0 <= absolute < math.inf):
        raise ValueError(f"the tolerance {option!r} must be a share from 0 to 1, and abs a number from 0 on")
    return relative, absolute


def agree(stored: str, fresh: str, option: str) -> bool:
    """Whether two outputs agree. The blanks beside a number do not count: they make columns of numbers."""
    relative, absolute = read(option)
    if _between(stored) != _between(fresh):
        return False
    pairs = zip(NUMBER.findall(stored), NUMBER.findall(fresh), strict=True)
    return all(math.isclose(_value(a), _value(b), rel_tol=relative, abs_tol=absolute) for a, b in pairs)


def _between(text):
    return [part.strip(" ") for part in NUMBER.split(text)]


def _value(number):
    return float(number.replace(",", "").replace("−", "-"))
