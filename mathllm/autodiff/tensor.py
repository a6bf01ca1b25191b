"""Primitives, functions that also return their pullback; and tensors, arrays that remember how they were computed."""

import functools
import inspect
from collections.abc import Callable
from numbers import Real

import numpy as np

from ..errors import ShapeError
from ..shapes import Contract, documented, floating, plain, real_array


def primitive(
    function: Callable | None = None, *, nondiff: tuple[str, ...] = (), shapes: str | None = None
) -> Callable:
    """Turn `function(*arrays, **options) -> (value, pullback)` into a differentiable function.

        value = f(x, …)        pullback(dvalue) = (dx, …),   dxᵢ = Σⱼ dvalueⱼ ∂fⱼ/∂xᵢ

    Arrays in, array out (a number, where the value has no axes); if any positional argument is a `Tensor`, the result
    is a `Tensor` that remembers the pullback. Positional arguments arrive in `function` as floating-point arrays (lists
    and numbers are converted, float32 stays float32); those named in `nondiff` (ids, masks) keep their type and get no
    gradient. Options that are numbers of NumPy arrive as Python's own (see `plain`). A pullback may ignore
    broadcasting: each gradient is summed to the shape of its argument afterwards, for all primitives. A pullback of one
    argument may return its gradient alone; `None` stands for no gradient. `shapes` declares the shapes of the arguments
    and of the value, as in "... m k, k n -> ... m n": see `Contract`.

    Raises: ShapeError where the shapes do not fit; TypeError for a tensor given as an option, or for numbers that are
    not real.

    >>> from mathllm import grad
    >>> @primitive
    ... def square(x):
    ...     def pullback(dy):
    ...         return 2 * x * dy
    ...     return x * x, pullback
    >>> float(square(3.0)), float(grad(square)(3.0))
    (9.0, 6.0)
    """
    if function is None:
        return functools.partial(primitive, nondiff=nondiff, shapes=shapes)
    signature = inspect.signature(function)
    parameters = [p for p in signature.parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    positional = [p.name for p in parameters]
    skipped = {positional.index(name) for name in nondiff}
    optional = {i for i, p in enumerate(parameters) if p.default is None}
    contract = Contract(shapes) if shapes else None
    name = function.__name__.strip("_")

    @functools.wraps(function)
    def call(*args, **options):
        if not options.keys().isdisjoint(positional):
            bound = signature.bind(*args, **options)
            bound.apply_defaults()
            args, options = bound.args, bound.kwargs
        traced = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        for key, option in options.items():
            if isinstance(option, Tensor):
                raise TypeError(f"{name}() cannot differentiate its option {key!r}")
        values = _as_arrays(name, args, skipped, optional)
        if contract:
            contract.check(name, positional, values, function.__module__)
        value, pullback = function(*values, **{key: plain(option) for key, option in options.items()})
        if not traced:
            return value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value
        return Tensor(value, tuple((i, args[i]) for i in traced if i not in skipped), pullback)

    call.__annotations__ = {**function.__annotations__, "return": "Array"}
    if contract:
        call.__doc__ = documented(function.__doc__, contract.line(positional))
    return call


def _as_arrays(name, args, skipped, optional):
    """Arguments as arrays: integers become float64, Python numbers take the dtype of the arrays beside them."""
    values = [a.value if isinstance(a, Tensor) else a for a in args]
    for i, value in enumerate(values):
        if value is None and i in optional:
            continue
        if i in skipped:
            values[i] = np.asarray(real_array(name, value))
        elif not isinstance(value, Real):
            values[i] = _floating(name, value)
    if any(isinstance(v, Real) for v in values):
        dtype = _common_dtype([v for i, v in enumerate(values) if i not in skipped])
        values = [np.asarray(v, dtype) if isinstance(v, Real) else v for v in values]
    return values


def _common_dtype(values):
    """The dtype of the arrays among `values`; NumPy's own scalars decide only where there is no array."""
    arrays = [v.dtype for v in values if isinstance(v, np.ndarray)]
    scalars = [v.dtype for v in values if isinstance(v, np.floating)]
    return np.result_type(*(arrays or scalars or [np.float64]))


def _floating(name, value):
    if _holds_tensor(value):
        raise TypeError(f"{name}() got a list of tensors; give it one array, or stack them first")
    value = floating(np.asarray(real_array(name, value)))
    # NumPy adds up float16 in float32 only where the numbers are side by side in memory
    return np.asarray(value, order="C") if value.dtype == np.float16 else value


def _holds_tensor(value):
    return isinstance(value, Tensor) or (isinstance(value, list | tuple) and any(map(_holds_tensor, value)))


class Tensor:
    """An array that remembers how it was computed: its value, the tensors it came from, and the pullback to them.

    Tensors add, multiply, index and reshape like arrays (`arithmetic.py` gives them their operators). They are made by
    `value_and_grad`, `grad` and `vjp`; a function built from primitives takes arrays and tensors in the same way.

    >>> from mathllm import vjp
    >>> value, pullback = vjp(lambda x: (x * x + 1).sum(), np.array([1.0, 2.0]))
    >>> pullback(1.0)
    (array([2., 4.]),)
    """

    __slots__ = ("parents", "pullback", "value")
    __array_ufunc__ = None  # so `array * tensor` calls tensor.__rmul__

    def __init__(self, value: np.ndarray | float, parents: tuple = (), pullback: Callable | None = None):
        self.value = np.asarray(value)
        self.parents = parents  # ((argument position, tensor), …)
        self.pullback = pullback
        if self.value.dtype.kind != "f":
            raise TypeError(f"a tensor holds floating-point numbers, got {self.value.dtype}")

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the value."""
        return self.value.shape

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the value."""
        return self.value.dtype

    @property
    def ndim(self) -> int:
        """The number of axes of the value."""
        return self.value.ndim

    @property
    def size(self) -> int:
        """The number of entries of the value."""
        return self.value.size

    def __repr__(self):
        return f"Tensor({self.value!r})"

    def __len__(self):
        return len(self.value)

    def __bool__(self):
        return bool(self.value)  # without it, Python would ask for the length

    def __eq__(self, other):
        raise TypeError("a tensor cannot be compared, because a comparison has no gradient: use tensor.value")

    __hash__ = object.__hash__

    def __array__(self, *_, **__):
        raise TypeError("NumPy functions do not record gradients: use the primitives of mathllm, or tensor.value")

    def __array_function__(self, function, types, args, options):
        if function in (np.shape, np.ndim, np.size):
            return function(self.value)
        raise TypeError(f"np.{function.__name__}() records no gradient: use a primitive of mathllm, or tensor.value")


Array = np.ndarray | Tensor  # what functions of primitives take; they return arrays, and tensors where they take some
ArrayLike = Array | list | tuple | float  # what np.asarray takes
WithPullback = tuple[np.ndarray, Callable]  # what a primitive returns to its decorator


def sum_to(gradient: ArrayLike, shape: tuple[int, ...]) -> np.ndarray:
    """Undo broadcasting: sum `gradient` over the axes along which an array of `shape` was repeated.

    If y = x repeated along an axis, every copy passes its gradient back to the same x, so the copies add up.

    Raises: ShapeError if `shape` does not broadcast to the shape of `gradient`.

    >>> sum_to(np.ones((3, 2)), (2,))
    array([3., 3.])
    """
    gradient = np.asarray(gradient)
    if gradient.shape == shape:
        return gradient
    extra = gradient.ndim - len(shape)
    fits = extra >= 0 and all(n in (1, m) for n, m in zip(shape, gradient.shape[extra:], strict=True))
    if not fits:
        raise ShapeError(f"a gradient of shape {gradient.shape} does not belong to an argument of shape {shape}")
    repeated = tuple(range(extra)) + tuple(
        axis for axis, n in enumerate(shape, start=extra) if n == 1 and gradient.shape[axis] != 1
    )
    return gradient.sum(axis=repeated).reshape(shape)
