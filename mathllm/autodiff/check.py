"""The gradient check: a pullback against central differences of the function itself."""

from __future__ import annotations  # numpy.random is loaded when it is used

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..shapes import real_array
from ..trees import flatten, rebuild, tree_leaves, walk
from .backward import vjp
from .differences import central_difference


@dataclass(frozen=True)
class GradientCheck:
    """The result of `check_gradient`: the largest relative error and the entry where it occurs.

    >>> print(check_gradient(lambda x: x * x, np.array([3.0])))  # doctest: +ELLIPSIS
    worst relative error ... at ...: pullback ..., central difference ...
    """

    error: float
    where: str
    analytic: float
    numeric: float

    def __str__(self) -> str:
        return (
            f"worst relative error {self.error:.1e} at {self.where}: "
            f"pullback {self.analytic:.6g}, central difference {self.numeric:.6g}"
        )


def check_gradient(
    function: Callable, *args: Any, rng: np.random.Generator | int = 0, h: float = 6e-6, entries: int = 200
) -> GradientCheck:
    """Compare the pullback of `function` at `args` with central differences, in float64.

        ⟨w, f(x + hv) − f(x − hv)⟩ / 2h   against   ⟨pullback(w), v⟩

    for a random cotangent w: once with a random tangent v over all arguments together, then with v = every single
    entry of every argument (a random sample of `entries` where there are more). Errors are relative to the largest
    entry of the gradient (at least 1e-3, so that a gradient of zero can be checked too). `rng` draws w, v and the
    sample; with a seed, every call draws the same.

    Arguments are arrays or nested dictionaries of arrays; integer arrays are held fixed.
    Raises: ValueError if the function returns something that is not finite, or nothing can be differentiated.

    >>> check_gradient(lambda x, w: x @ w, np.ones((2, 3)), np.ones((3, 2))).error < 1e-8
    True
    """
    rng = np.random.default_rng(rng)
    points = [rebuild(arg, map(_as_float64, tree_leaves(arg))) for arg in args]
    moving = [(_argument(*path), leaf) for path, leaf in walk(points) if leaf.dtype.kind == "f"]
    value, pullback = vjp(function, *points)
    if not np.all(np.isfinite(value)):
        raise ValueError("check_gradient() needs a function that is finite at this point")
    if not any(leaf.size for _, leaf in moving):
        raise ValueError("check_gradient() needs at least one floating-point argument")
    cotangent = rng.normal(size=value.shape)
    gradient, _ = flatten(list(pullback(cotangent)))
    start, views = flatten([leaf for _, leaf in moving])

    def weighted(x):
        for (_, leaf), part in zip(moving, views(x), strict=True):
            leaf[...] = part
        return np.sum(cotangent * function(*points))

    found = [
        _compared(where, gradient, v, central_difference(weighted, start, v, h))
        for where, v in _directions(rng, moving, start.size, entries)
    ]
    return max(found, key=lambda check: check.error)


def _directions(rng, moving, size, entries):
    """A random direction of all arguments together, and the directions of single entries, with their names."""
    yield "all arguments together", rng.normal(size=size) / np.sqrt(size)
    names = [f"{argument}, entry {entry}" for argument, leaf in moving for entry in np.ndindex(leaf.shape)]
    for i in rng.permutation(size)[:entries]:
        yield names[i], np.eye(1, size, i)[0]


def _compared(where, gradient, v, numeric):
    analytic = gradient @ v
    error = abs(analytic - numeric) / max(np.abs(gradient).max(), 1e-3)
    return GradientCheck(float(error) if np.isfinite(error) else np.inf, where, float(analytic), float(numeric))


def _argument(number, *keys):
    return f"argument {number}" + "".join(f"[{key!r}]" for key in keys)


def _as_float64(leaf):
    held = isinstance(leaf, np.ndarray) and leaf.dtype.kind in "iub"
    return leaf if held else np.array(real_array("check_gradient", leaf), np.float64)
