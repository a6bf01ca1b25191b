"""Parameters are nested dicts and lists of arrays; their gradient, and what an optimiser remembers, look the same."""

from collections.abc import Callable

import numpy as np

from ..errors import ShapeError
from ..trees import _is_numbers


def tree_map(function: Callable, tree, *others):
    """Apply a function to each array of a nested structure, together with its counterparts in the others.

    tree: nested dicts, lists and tuples of arrays   others: the same structure   ->   the same structure

    Every rule for one array, such as m ← βm + (1 − β)g, becomes a rule for all parameters at once. A list of plain
    numbers is one array; None (no parameter) stays None.
    Raises: ShapeError that names the place where the structures differ.

    >>> tree_map(lambda w, g: w - 0.1 * g, {"weight": 3.0, "bias": [1.0]}, {"weight": 4.0, "bias": [0.0]})
    {'weight': 2.6, 'bias': array([1.])}
    """
    return _map(function, "", tree, others)


def tree_leaves(tree) -> list:
    """All arrays of a nested structure, in order.

    >>> tree_leaves({"blocks": [{"weight": 1.0}, {"weight": 2.0}], "bias": None, "head": 3.0})
    [1.0, 2.0, 3.0]
    """
    leaves = []
    tree_map(leaves.append, tree)
    return leaves


def _map(function, path, tree, others):
    if isinstance(tree, dict):
        if any(not isinstance(other, dict) or other.keys() != tree.keys() for other in others):
            raise ShapeError(f"params{path} has the keys {sorted(tree)}, and its counterpart has others")
        return {
            key: _map(function, f"{path}[{key!r}]", branch, [other[key] for other in others])
            for key, branch in tree.items()
        }
    if isinstance(tree, list | tuple) and not _is_numbers(tree):
        if any(not isinstance(other, list | tuple) or len(other) != len(tree) for other in others):
            raise ShapeError(f"params{path} has {len(tree)} parts, and its counterpart has not")
        rows = zip(tree, *others, strict=True)
        return type(tree)(_map(function, f"{path}[{i}]", branch, rest) for i, (branch, *rest) in enumerate(rows))
    if tree is None:
        return None
    if any(other is None or isinstance(other, dict) for other in others):
        raise ShapeError(f"params{path} is an array, and its counterpart is not")
    leaves = [np.asarray(leaf) if isinstance(leaf, list | tuple) else leaf for leaf in (tree, *others)]
    try:
        return function(*leaves)
    except ShapeError as error:
        raise ShapeError(f"params{path}: {error}") from None


def _matched(params, gradient):
    """Both as arrays, once every gradient has the shape of its parameter: else one would silently stretch the other."""
    return _map(_as_float, "", params, []), _map(_checked, "", gradient, [params])


def _as_float(leaf):
    leaf = np.asarray(leaf)
    return leaf if leaf.dtype.kind == "f" else leaf.astype(np.float64)


def _checked(slope, leaf):
    slope = _as_float(slope)
    if slope.shape != np.shape(leaf):
        raise ShapeError(f"a gradient needs the shape of its parameter, {np.shape(leaf)}, got {slope.shape}")
    return slope
