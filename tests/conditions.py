"""Conditions on rounded numbers, for the promises in promises_of_functions.py and promises_of_models.py."""

from collections.abc import Callable
from typing import NamedTuple

import exact
import numpy as np
from hard_numbers import FLOATS
from mpmath import mp

from mathllm.autodiff import vjp

ONE = (np.float64,)  # for functions that compute in float64 whatever the dtype of their arguments


class Promise(NamedTuple):
    """What is promised, in words; hard arguments for a dtype; the condition; the dtypes for which it is promised."""

    words: str
    points: Callable
    holds: Callable
    dtypes: tuple = FLOATS


def epsilon(*arrays):
    """The distance from 1 to the next number, in the dtype with the fewest digits among these."""
    dtypes = [np.asarray(array).dtype for array in arrays]
    return max(float(np.finfo(dtype if dtype.kind == "f" else np.float64).eps) for dtype in dtypes)


def near(a, b, roundings=8, size=None):
    """Equal up to this many roundings of numbers of this size: of the larger of the two, and at least 1."""
    slack = roundings * epsilon(a, b)
    a, b = np.asarray(a).astype(np.float64), np.asarray(b).astype(np.float64)
    size = np.maximum(1, np.maximum(np.abs(a), np.abs(b))) if size is None else size
    with np.errstate(invalid="ignore"):  # ∞ − ∞
        close = np.isfinite(a) & np.isfinite(b) & (np.abs(a - b) <= slack * size)
    return close | (a == b)


def within(low, x, high):
    return (np.asarray(x) >= low) & (np.asarray(x) <= high)


def nearly_within(low, x, high, roundings=8):
    """Between two bounds, up to this many roundings of numbers of the size of the bounds."""
    slack = roundings * epsilon(x) * np.maximum(np.abs(low), np.abs(high)).astype(np.float64)
    slack = slack + float(np.finfo(np.asarray(x).dtype).smallest_normal)
    return within(low - slack, np.asarray(x, np.float64), high + slack)


def rising(x, roundings=0):
    """Never falling, but by this many roundings of the numbers, as a libm may from one float to the next."""
    slack = roundings * epsilon(x)
    x = np.asarray(x, np.float64)
    return np.diff(x) >= -slack * np.nan_to_num(np.abs(x[1:]))


def falling(x, roundings=0):
    return rising(-np.asarray(x), roundings)


def sums_to_one(p):
    """No entry below 0 or above 1, and a sum of 1 up to the rounding of each entry."""
    p = np.asarray(p)
    return within(0, p, 1).all() and near(p.sum(axis=-1, dtype=np.float64), 1, (4 + p.shape[-1]) * epsilon(p) / 2**-52)


def gradient(function, *arguments):
    """The gradient in the first argument, for a cotangent of ones."""
    value, pullback = vjp(function, *arguments)
    return pullback(np.ones_like(value))[0]


def precise(x, formula):
    """A formula of exact.py, evaluated with many digits, and rounded to float64."""
    with mp.workdps(exact.MANY_DIGITS):
        value, _ = exact.value_and_gradients(formula, [np.asarray(x)], np.ones(np.shape(x)))
        return value.astype(float)


def keeps_digits(y, right, roundings=6):
    """Right to a few roundings of the result itself, which must not be below the smallest normal number.

    Two functions of another libm, each wrong by two units in the last place, make 5 of them in log1m_exp at ln ½.
    """
    return near(y, right, roundings, size=np.maximum(np.abs(right), float(np.finfo(y.dtype).smallest_normal)))
