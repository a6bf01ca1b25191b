"""Trust no pullback that has not been held against differences of the function itself."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .backward import _detach, _leaves, _tree_map, vjp


@dataclass(frozen=True)
class GradientCheck:
    """What `check_gradient` found: the largest relative error and the entry where it occurs.

    >>> print(check_gradient(lambda x: x * x, np.array([3.0])))  # doctest: +ELLIPSIS
    worst relative error ... at ...: pullback ..., central difference ...
    """

    error: float
    where: str
    analytic: float
    numeric: float

    def __str__(self):
        return (
            f"worst relative error {self.error:.1e} at {self.where}: "
            f"pullback {self.analytic:.6g}, central difference {self.numeric:.6g}"
        )


def check_gradient(function: Callable, *args, rng=None, epsilon: float = 6e-6, entries: int = 200) -> GradientCheck:
    """Compare the pullback of `function` at `args` with central differences, in float64.

        ⟨w, f(x + εv) − f(x − εv)⟩ / 2ε   against   ⟨pullback(w), v⟩

    for a random cotangent w: once with a random tangent v over all arguments together, then with v = every single
    entry of every argument (a random sample of `entries` where there are more). Errors are relative to the largest
    entry of the gradient (at least 1e-3, so that a gradient of zero can be checked too).

    Arguments are arrays or nested dicts of arrays; integer arrays are held fixed. Raises: ValueError if the function
    returns something that is not finite, or nothing can be differentiated.

    >>> check_gradient(lambda x, w: x @ w, np.ones((2, 3)), np.ones((3, 2))).error < 1e-8
    True
    """
    rng = np.random.default_rng(0) if rng is None else rng
    points = [_tree_map(_as_float64, a) for a in args]
    value, pullback = vjp(function, *points)
    if not np.all(np.isfinite(value)):
        raise ValueError("check_gradient() needs a function that is finite at this point")
    cotangent = rng.normal(size=value.shape)
    slopes = pullback(cotangent)
    pairs = [pair for point, slope in zip(points, slopes, strict=True) for pair in _pairs(point, slope)]
    if not pairs:
        raise ValueError("check_gradient() needs at least one floating-point argument")
    leaves = [leaf for leaf, _ in pairs]
    start = np.concatenate([leaf.ravel() for leaf in leaves])
    gradient = np.concatenate([slope.ravel() for _, slope in pairs])
    names = [f"argument {n}, entry {e}" for n, p in enumerate(points) for leaf in _moving(p) for e in _entries(leaf)]

    def weighted(x):
        _spread(x, leaves)
        return np.sum(cotangent * _detach(function(*points)))

    def compare(where, v):
        analytic = gradient @ v
        numeric = (weighted(start + epsilon * v) - weighted(start - epsilon * v)) / (2 * epsilon)
        error = abs(analytic - numeric) / max(np.abs(gradient).max(), 1e-3)
        return GradientCheck(float(error) if np.isfinite(error) else np.inf, where, float(analytic), float(numeric))

    tangent = rng.normal(size=start.size) / np.sqrt(start.size)
    found = [compare("all arguments together", tangent)]
    for i in rng.permutation(start.size)[:entries]:
        found.append(compare(names[i], np.eye(1, start.size, i)[0]))
    return max(found, key=lambda check: check.error)


def _moving(point):
    return [leaf for leaf in _leaves(point) if leaf is not None and leaf.dtype.kind == "f"]


def _pairs(point, slope):
    return zip(_moving(point), [s for s in _leaves(slope) if s is not None], strict=True)


def _entries(leaf):
    return [tuple(map(int, index)) for index in np.ndindex(leaf.shape)]


def _spread(x, leaves):
    """Write the numbers of the flat vector `x` into `leaves`, in order."""
    ends = np.cumsum([leaf.size for leaf in leaves])
    for leaf, part in zip(leaves, np.split(x, ends[:-1]), strict=True):
        leaf[...] = part.reshape(leaf.shape)


def _as_float64(leaf):
    if leaf is None:
        return None
    array = np.asarray(leaf)
    held = isinstance(leaf, np.ndarray) and array.dtype.kind in "iub"
    return leaf if held else np.array(array, np.float64)
