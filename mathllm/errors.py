"""The errors of the package: a message names what was expected and what was given, and some name a chapter."""

import difflib
from collections.abc import Iterable
from numbers import Real
from typing import Any

# The chapters and the modules of their names, in reading order
CHAPTERS = [
    "vectors", "similarity", "matrices", "exponentials", "probability", "softmax", "cross_entropy", "gradients",
    "gradient_descent", "attention", "backpropagation", "transformer", "training", "inference", "alignment",
    "interpretability", "scale",
]  # fmt: skip


class ShapeError(ValueError):
    """Arrays whose shapes do not fit. The message names what was expected and what was given."""


class MissingDataError(FileNotFoundError):
    """A real-data package (word vectors, a corpus, a model) is not installed. The message says how to get it."""


class _Unknown(KeyError):
    def __str__(self):
        return str(self.args[0]) if self.args else ""  # KeyError alone would print the message in quotes


class UnknownWordError(_Unknown):
    """A word that a vocabulary does not contain."""


class UnknownReferenceError(_Unknown):
    """An id that is not in the table of reference values."""


def suggest(name: str, candidates: Iterable[str], n: int = 3) -> str:
    """The end of an error message: the candidates nearest to `name` in spelling, or nothing.

    >>> suggest("quen", ["king", "queen", "car"])
    '; did you mean queen?'
    """
    near = difflib.get_close_matches(name, list(candidates), n=n, cutoff=0.6)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def one_of(function: str, choices: Iterable[str], /, **names: str) -> None:
    """Refuse a name that is not among the choices.

    Raises: ValueError that names the function, the name, and the choices nearest to it or, if none is near, all.

    >>> one_of("rotate", ("adjacent", "half"), pairing="half")
    >>> one_of("rotate", ("adjacent", "half"), pairing="other")
    Traceback (most recent call last):
    ValueError: rotate() has no pairing 'other'; choices are adjacent, half
    """
    for what, name in names.items():
        if name not in choices:
            hint = suggest(str(name), choices) or f"; choices are {', '.join(choices)}"
            raise ValueError(f"{function}() has no {what} {name!r}{hint}")


def within(function: str, interval: str, /, **numbers: float) -> None:
    """Refuse numbers outside an interval, such as "[0, 1)", "(0, ∞)", or "whole [1, ∞)" for whole numbers.

    Raises: ValueError that names the function, the number and the interval; NaN is in no interval. TypeError for an
    array.

    >>> within("dropout", "[0, 1)", rate=0.5)
    >>> within("dropout", "[0, 1)", rate=1.0)
    Traceback (most recent call last):
    ValueError: dropout() needs rate in [0, 1), got 1.0
    """
    whole, bounds = interval.startswith("whole "), interval.removeprefix("whole ")
    for name, number in numbers.items():
        if not isinstance(number, Real) and getattr(number, "ndim", 1):
            raise TypeError(f"{function}() needs one number {name}, got {type(number).__name__}")
        if not (_inside(bounds, number) and (not whole or number == number // 1)):
            wanted = f"a whole number {name} in {bounds}" if whole else f"{name} in {bounds}"
            raise ValueError(f"{function}() needs {wanted}, got {number}")


def all_within(function: str, interval: str, **arrays: Any) -> None:
    """Refuse arrays with a number outside an interval, or for a mask outside "{0, 1}": `within` for every number.

    Raises: ValueError that names the function, the first such number and the interval; NaN is in no interval.

    >>> import numpy as np
    >>> all_within("log", "(0, ∞]", x=np.array([1.0, 0.0]))
    Traceback (most recent call last):
    ValueError: log() needs x in (0, ∞], got 0.0
    """
    for name, array in arrays.items():
        wrong = array[~_inside(interval, array)]
        if wrong.size:
            within(function, interval, **{name: wrong.flat[0]})


def _inside(interval, number):
    """Whether a number, or each number of an array, is in an interval, or in {0, 1}."""
    if interval == "{0, 1}":
        return (number == 0) | (number == 1)
    low, high = (float(bound.strip("[]()").replace("∞", "inf")) for bound in interval.split(", "))
    above = number >= low if interval.startswith("[") else number > low
    below = number <= high if interval.endswith("]") else number < high
    return above & below


def require_broadcasting(what: str, *shapes: tuple[int, ...], skipped: int = 0) -> None:
    """Raise a ShapeError unless shapes broadcast: along each axis, counted from the last, one size (or 1).

    `what` needs them, as in "a + b"; the last `skipped` axes are not checked.

    >>> require_broadcasting("a + b", (2, 3), (3,))
    """
    if shapes[1:] == shapes[:-1]:  # all the same, as they are most of the time
        return
    for axis in range(1 + skipped, max(map(len, shapes), default=0) + 1):
        sizes = {shape[-axis] for shape in shapes if len(shape) >= axis} - {1}
        if len(sizes) > 1:
            found = " and ".join(map(str, shapes))
            raise ShapeError(f"{what} needs shapes that fit, got {found}: sizes {sorted(sizes)} along axis {-axis}")
