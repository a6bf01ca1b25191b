"""Which shapes does a function take and return? One line declares them; checks, errors and docstrings follow from it.

    "... T K, ... S+ K, ... S D -> ... T D"

describes three arguments and the result. A letter stands for one size everywhere in the line. `...` stands for any axes
in front, which must broadcast; an axis `T?` may also be 1, an axis `S+` must not be empty, an axis `N++` must be at
least 2, a number stands for itself, and an argument `_` is not looked at. Arguments `*` may have any shape, but all the
same. Arguments that are None are left out.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from .errors import CHAPTERS, ShapeError

_OF_NUMPY = (np.generic, np.ndarray)  # isinstance is faster with a tuple than with a union


class Contract:
    """The shapes of the first arguments of a function, and of its result.

    >>> shapes = Contract("m k, k n -> m n")
    >>> shapes.check("product", ["a", "b"], [np.ones((2, 3)), np.ones((4, 5))])
    Traceback (most recent call last):
    mathllm.errors.ShapeError: product() needs a (m, k) and b (k, n), got shapes (2, 3) and (4, 5): k is 3 in a, 4 in b
    """

    def __init__(self, text: str):
        arguments, _, self.result = (part.strip() for part in text.partition("->"))
        self.arguments = [argument.split() for argument in arguments.split(",")]

    def check(self, function: str, names: list[str], values: list, module: str = "") -> None:
        """Raise a ShapeError unless the shapes of `values`, the arguments of these names, fit together."""
        sizes, front = {}, ()
        for axes, name, value in zip(self.arguments, names, values, strict=False):
            if value is None or axes == ["_"]:
                continue
            shape = (value.shape,) if axes == ["*"] else value.shape  # as if the shape were the size of one axis
            fixed = axes[1:] if axes[0] == "..." else axes
            lead = len(shape) - len(fixed)
            if lead < 0 or (lead and fixed is axes):
                self._complain(function, names, values, module, f"{name} has {len(shape)} axes")
            for letter, size in zip(fixed, shape[lead:], strict=True):
                if problem := _misfit(letter, size, name, sizes):
                    self._complain(function, names, values, module, problem)
            if fixed is not axes and lead:
                try:
                    front = shape[:lead] if front in ((), shape[:lead]) else np.broadcast_shapes(front, shape[:lead])
                except ValueError:
                    self._complain(function, names, values, module, "the axes in front do not fit")

    def line(self, names: list[str]) -> str:
        """The shapes in words: what a docstring says of them.

        >>> Contract("... T K, ... S+ K -> ... T S").line(["query", "key"])
        'query: (..., T, K)   key: (..., S, K)   ->   (..., T, S)'
        """
        parts = [f"{name}: {_worded(axes)}" for axes, name in zip(self.arguments, names, strict=False) if axes != ["_"]]
        return "   ".join([*parts, *(["->", _worded(self.result.split())] if self.result else [])])

    def _complain(self, function, names, values, module, problem):
        given = [
            (f"{name} {_worded(axes)}", str(value.shape))
            for axes, name, value in zip(self.arguments, names, values, strict=False)
            if value is not None and axes != ["_"]
        ]
        wanted, found = (_listed(part) for part in zip(*given, strict=True))
        shape = "shapes" if len(given) > 1 else "shape"
        raise ShapeError(f"{function}() needs {wanted}, got {shape} {found}: {problem}{_chapter(module)}")


def contract(text: str) -> Callable:
    """Declare the shapes of a function that is no primitive: lists become arrays, and misfits are refused in words.

    All other arguments are options: a number of NumPy becomes Python's own (see `plain`).

    >>> @contract("... d, d -> ...")
    ... def weighted_sum(x, weights):
    ...     '''The sum of the components of x, each times its weight.'''
    ...     return x @ weights
    >>> float(weighted_sum([1, 2], [3, 4]))
    11.0
    >>> print(weighted_sum.__doc__.splitlines()[2].strip())
    x: (..., d)   weights: (d)   ->   (...)
    """

    def declare(function):
        shapes, parameters = Contract(text), inspect.signature(function).parameters
        declared = dict(zip(parameters, shapes.arguments, strict=False))
        arrays = {name for name, axes in declared.items() if axes != ["_"]}
        optional = {name for name in arrays if parameters[name].default is None}

        def prepared(name, value):
            if name not in arrays:
                return plain(value)
            return value if value is None and name in optional else real_array(function.__name__, value)

        @functools.wraps(function)
        def call(*args, **options):
            args = [*map(prepared, parameters, args), *args[len(parameters) :]]
            options = {name: prepared(name, value) for name, value in options.items()}
            given = dict(zip(parameters, args, strict=False)) | options
            shapes.check(function.__name__, [*declared], [given.get(name) for name in declared], function.__module__)
            return function(*args, **options)

        call.__doc__ = documented(function.__doc__, shapes.line([*declared]))
        return call

    return declare


def documented(doc: str | None, line: str) -> str | None:
    """A docstring with the line of shapes below its first line.

    >>> print(documented("The first line.", "x: (T, D)"))
    The first line.
    <BLANKLINE>
        x: (T, D)
    <BLANKLINE>
    """
    if not doc:
        return doc
    first, _, rest = doc.partition("\n")
    margin = min((len(row) - len(row.lstrip()) for row in rest.splitlines() if row.strip()), default=4) * " "
    return f"{first}\n\n{margin}{line}\n{rest}"


def plain(option: Any) -> Any:
    """An option as it was given, but a number of NumPy as Python's own, which leaves a float32 beside it a float32.

    >>> (np.float64(0.5) * np.ones(1, np.float32)).dtype, (plain(np.float64(0.5)) * np.ones(1, np.float32)).dtype
    (dtype('float64'), dtype('float32'))
    """
    return option.item() if isinstance(option, _OF_NUMPY) and option.ndim == 0 else option


def floating(array: Any) -> Any:
    """The array, or tensor, if it holds floating-point numbers; integers and booleans become float64.

    >>> floating(np.array([3, 4])), floating(np.ones(1, np.float32))
    (array([3., 4.]), array([1.], dtype=float32))
    """
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def real_array(function: str, value: Any, dtype: type | None = None) -> Any:
    """Lists and numbers as an array; what has a shape already stays as it is. Only real numbers are taken.

    dtype: if given, the result is an array of this dtype

    Raises: ShapeError for rows of unequal length; TypeError for complex numbers, words, and whatever else is no number.

    >>> real_array("norm", [3, 4])
    array([3, 4])
    >>> real_array("norm", np.array([3, 4j]))
    Traceback (most recent call last):
    TypeError: norm() needs real numbers, got complex128 values
    """
    try:
        array = value if hasattr(value, "shape") else np.asarray(value)
    except ValueError as error:
        raise ShapeError(f"{function}() needs an array, got rows of unequal length ({error})") from None
    if array.dtype.kind not in "fiub":
        found = "None" if value is None else f"{array.dtype} values"
        raise TypeError(f"{function}() needs real numbers, got {found}")
    return array if dtype is None else np.asarray(array, dtype)


def _misfit(letter, size, name, sizes):
    """What is wrong with an axis of this size, or None."""
    symbol = letter.rstrip("?+")
    if (least := letter.count("+")) and size < least:
        return f"{symbol} is {size} in {name}" + (f", at least {least} are needed" if least > 1 else "")
    if letter.endswith("?") and size == 1:
        return None
    wanted, where = (int(symbol), None) if symbol.isdigit() else sizes.setdefault(symbol, (size, name))
    if size == wanted:
        return None
    return f"{symbol} is {wanted} in {where}, {size} in {name}" if where else f"{name} has {size} in place of {wanted}"


def _listed(parts):
    """The parts, divided by commas and the word "and"."""
    return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))


def _worded(axes):
    return "(" + ", ".join(axis.rstrip("?+") for axis in axes) + ")"


def _chapter(module):
    """Where to read on, from the name of the module that holds the function."""
    part = module.split(".")[1] if module.startswith("mathllm.") else ""
    return f" (see chapter {CHAPTERS.index(part) + 1:02})" if part in CHAPTERS else ""
