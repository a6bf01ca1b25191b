"""How are the many parameters of a model stored? In nested dictionaries and lists, and in one long vector.

Parameters, their gradient, and the state of an optimiser are nested dictionaries and lists of arrays. `walk` visits
every array, `tree_map` applies a function to each, and `flatten` copies all of them into one vector: then a rule for
one array, such as the step of an optimiser, is a rule for all parameters.
"""

from collections.abc import Callable, Iterator
from numbers import Real
from typing import Any

import numpy as np

from .errors import ShapeError

_SEQUENCES = (list, tuple)  # isinstance is faster with a tuple than with list | tuple


def walk(tree: Any, path: tuple = ()) -> Iterator[tuple[tuple, Any]]:
    """Every array of nested dictionaries, lists and tuples, with the keys that lead to it.

    A list of plain numbers is one array; None (no parameter) is left out.

    >>> list(walk({"blocks": [{"weight": 1.0}, {"weight": 2.0}], "bias": None}))
    [(('blocks', 0, 'weight'), 1.0), (('blocks', 1, 'weight'), 2.0)]
    """
    if tree is None:
        return
    if isinstance(tree, dict):
        branches = tree.items()
    elif isinstance(tree, _SEQUENCES) and not _is_numbers(tree):
        branches = enumerate(tree)
    else:
        yield path, tree
        return
    for key, branch in branches:
        yield from walk(branch, (*path, key))


def rebuild(tree: Any, leaves: Iterator) -> Any:
    """The same structure with other leaves, taken in the order of `walk`.

    >>> rebuild({"blocks": [{"weight": 1.0}, {"weight": 2.0}]}, iter("ab"))
    {'blocks': [{'weight': 'a'}, {'weight': 'b'}]}
    """
    if tree is None:
        return None
    if isinstance(tree, dict):
        return {key: rebuild(branch, leaves) for key, branch in tree.items()}
    if isinstance(tree, _SEQUENCES) and not _is_numbers(tree):
        parts = [rebuild(branch, leaves) for branch in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    return next(leaves)


def tree_leaves(tree: Any) -> list:
    """All arrays of a nested structure, in order.

    >>> tree_leaves({"blocks": [{"weight": 1.0}, {"weight": 2.0}], "bias": None, "head": 3.0})
    [1.0, 2.0, 3.0]
    """
    return [leaf for _, leaf in walk(tree)]


def tree_map(function: Callable, tree: Any, *others: Any) -> Any:
    """Apply a function to each array of a nested structure, together with its counterparts in the others.

    tree: nested dicts, lists and tuples of arrays   others: the same structure   ->   the same structure

    Raises: ShapeError that names the place where the structures differ.

    >>> tree_map(lambda w, g: w - 0.1 * g, {"weight": 3.0, "bias": [1.0]}, {"weight": 4.0, "bias": [0.0]})
    {'weight': 2.6, 'bias': array([1.])}
    """
    pairs = list(walk(tree))
    paths = [path for path, _ in pairs]
    columns = [[leaf for _, leaf in pairs], *(_matching_leaves(paths, other) for other in others)]
    columns = [[np.asarray(leaf) if isinstance(leaf, _SEQUENCES) else leaf for leaf in leaves] for leaves in columns]
    return rebuild(tree, iter([_applied(function, *row) for row in zip(paths, *columns, strict=True)]))


def flatten(tree: Any) -> tuple[np.ndarray, Callable]:
    """One vector of all numbers, and the function that gives such a vector the structure of the tree.

        θ = [θ₁, θ₂, …, θ_n],      views(θ) = the nested arrays, each a view of its part of θ

    tree: nested arrays   ->   θ (n,), a copy; views: (n,) -> nested arrays

    >>> vector, views = flatten({"weight": np.ones((2, 2)), "bias": np.zeros(2)})
    >>> vector
    array([1., 1., 1., 1., 0., 0.])
    >>> views(2 * vector)["weight"]
    array([[2., 2.],
           [2., 2.]])
    """
    leaves = [np.asarray(leaf) for leaf in tree_leaves(tree)]
    ends = np.cumsum([0, *(leaf.size for leaf in leaves)])

    def views(vector: np.ndarray) -> Any:
        places = zip(ends, leaves, strict=False)
        return rebuild(tree, (vector[start : start + leaf.size].reshape(leaf.shape) for start, leaf in places))

    return np.concatenate([leaf.ravel() for leaf in leaves]) if leaves else np.empty(0), views


def _matching_leaves(paths, other):
    pairs = list(walk(other))
    for path, (place, _) in zip(paths, pairs, strict=False):
        if path != place:
            there = _named(place) or "one array"
            raise ShapeError(f"params{_named(path)} has no counterpart: there is {there} instead")
    if len(paths) != len(pairs):
        longer = paths if len(paths) > len(pairs) else [path for path, _ in pairs]
        place = longer[min(len(paths), len(pairs))]
        counts = f"{len(paths)} arrays and {len(pairs)}"
        raise ShapeError(f"params{_named(place)} has no counterpart in structures of {counts}")
    return [leaf for _, leaf in pairs]


def _applied(function, path, *leaves):
    try:
        return function(*leaves)
    except ShapeError as error:
        raise ShapeError(f"params{_named(path)}: {error}") from None


def _named(path):
    return "".join(f"[{key!r}]" for key in path)


def _is_numbers(tree):
    if isinstance(tree, _SEQUENCES):
        return bool(tree) and all(map(_is_numbers, tree))
    return isinstance(tree, Real)
