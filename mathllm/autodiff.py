"""How does a change of the loss find its way back to every number that caused it?

A *primitive* is a function that returns two things: its value, and its pullback, which carries the gradient of the
loss with respect to that value back to the arguments. Called on arrays a primitive is an ordinary function. Called on
tensors it also writes down who called whom; walking that record backwards, pullback by pullback, is the whole of
reverse-mode differentiation. Everything the book trains is trained by this file.
"""

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real

import numpy as np

from .errors import ShapeError

__all__ = [
    "GradientCheck",
    "Tensor",
    "check_gradient",
    "grad",
    "hessian_vector_product",
    "primitive",
    "sum_to",
    "value_and_grad",
    "vjp",
]


# ---------------------------------------------------------------------------------------------- primitives and tensors


def primitive(function: Callable | None = None, *, nondiff: tuple[str, ...] = ()):
    """Turn `function(*arrays, **options) -> (value, pullback)` into a differentiable function.

        value = f(x, …)        pullback(dvalue) = (dx, …),   dxᵢ = Σⱼ dvalueⱼ ∂fⱼ/∂xᵢ

    Arrays in, array out; if any positional argument is a `Tensor`, the result is a `Tensor` that remembers the
    pullback. Positional arguments arrive in `function` as floating-point arrays (lists and numbers are converted,
    float32 stays float32); those named in `nondiff` (ids, masks) arrive as they are and get no gradient. Broadcasting
    needs no care in a pullback: each gradient is summed to the shape of its argument here, once for all primitives.
    A pullback of one argument may return its gradient alone; `None` stands for no gradient.

    Raises: TypeError for a tensor given as an option, or for numbers that are not real.

    >>> @primitive
    ... def square(x):
    ...     def pullback(dy):
    ...         return 2 * x * dy
    ...     return x * x, pullback
    >>> float(square(3.0)), float(grad(square)(3.0))
    (9.0, 6.0)
    """
    if function is None:
        return functools.partial(primitive, nondiff=nondiff)
    parameters = inspect.signature(function).parameters.values()
    positional = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    skipped = {positional.index(name) for name in nondiff}

    @functools.wraps(function)
    def call(*args, **options):
        if options and not options.keys().isdisjoint(positional):
            args, options = _by_position(function, args, options)
        traced = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        for name, option in options.items():
            if isinstance(option, Tensor):
                raise TypeError(f"{function.__name__}() cannot differentiate its option {name!r}")
        if len(args) > len(positional) and not variadic:
            function(*args, **options)  # lets Python word the complaint about too many arguments
        values = _as_arrays(function.__name__, args, skipped)
        value, pullback = function(*values, **options)
        if not traced:
            return value
        return Tensor(value, tuple((i, args[i]) for i in traced if i not in skipped), pullback)

    return call


def _by_position(function, args, options):
    """The same call with every positional parameter passed by position."""
    bound = inspect.signature(function).bind(*args, **options)
    bound.apply_defaults()
    return bound.args, bound.kwargs


def _as_arrays(name, args, skipped):
    """Arguments as arrays: integers become float64, Python numbers take the dtype of the arrays beside them."""
    values = [a.value if isinstance(a, Tensor) else a for a in args]
    for i, value in enumerate(values):
        if i in skipped:
            values[i] = value if value is None else np.asarray(value)
        elif value is not None and not isinstance(value, Real):
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
    if not isinstance(value, np.ndarray):
        if _holds_tensor(value):
            raise TypeError(f"{name}() got a list of tensors; give it one array, or stack them first")
        try:
            value = np.asarray(value)
        except ValueError as error:
            raise ShapeError(f"{name}() needs an array, got rows of unequal length ({error})") from None
    if value.dtype.kind == "f":
        return value
    if value.dtype.kind in "iub":
        return value.astype(np.float64)
    raise TypeError(f"{name}() needs real numbers, got {value.dtype} values")


def _holds_tensor(value):
    return isinstance(value, Tensor) or (isinstance(value, list | tuple) and any(map(_holds_tensor, value)))


class Tensor:
    """An array that remembers how it was computed: its value, the tensors it came from, and the pullback to them.

    Tensors add, multiply, index and reshape like arrays. They are made by `value_and_grad`, `grad` and `vjp`; a
    function built from primitives never needs to know whether it got arrays or tensors.

    >>> value, pullback = vjp(lambda x: (x * x + 1).sum(), np.array([1.0, 2.0]))
    >>> pullback(1.0)
    (array([2., 4.]),)
    """

    __slots__ = ("parents", "pullback", "value")
    __array_ufunc__ = None  # `array * tensor` asks the tensor

    def __init__(self, value, parents=(), pullback=None):
        self.value = np.asarray(value)
        self.parents = parents  # ((argument position, tensor), …)
        self.pullback = pullback
        if self.value.dtype.kind != "f":
            raise TypeError(f"a tensor holds floating-point numbers, got {self.value.dtype}")

    shape = property(lambda self: self.value.shape)
    dtype = property(lambda self: self.value.dtype)
    ndim = property(lambda self: self.value.ndim)
    size = property(lambda self: self.value.size)
    T = property(lambda self: transpose(self))

    def __repr__(self):
        return f"Tensor({self.value!r})"

    def __len__(self):
        return len(self.value)

    def __array__(self, *_, **__):
        raise TypeError("NumPy functions do not record gradients: use the primitives of mathllm, or tensor.value")

    def __add__(self, other):
        return add(self, other)

    def __radd__(self, other):
        return add(other, self)

    def __sub__(self, other):
        return subtract(self, other)

    def __rsub__(self, other):
        return subtract(other, self)

    def __mul__(self, other):
        return multiply(self, other)

    def __rmul__(self, other):
        return multiply(other, self)

    def __truediv__(self, other):
        return divide(self, other)

    def __rtruediv__(self, other):
        return divide(other, self)

    def __matmul__(self, other):
        return matmul(self, other)

    def __rmatmul__(self, other):
        return matmul(other, self)

    def __neg__(self):
        return multiply(self, -1)

    def __pow__(self, exponent):
        return power(self, exponent=exponent)

    def __getitem__(self, index):
        return getitem(self, index=index)

    def sum(self, axis=None, keepdims=False):
        return total(self, axis=axis, keepdims=keepdims)

    def mean(self, axis=None, keepdims=False):
        summed = total(self, axis=axis, keepdims=keepdims)
        return summed * (summed.size / self.size)

    def reshape(self, *shape):
        return reshape(self, shape=shape[0] if len(shape) == 1 else shape)

    def transpose(self, *axes):
        return transpose(self, axes=axes or None)

    def swapaxes(self, a, b):
        axes = list(range(self.ndim))
        axes[a], axes[b] = axes[b], axes[a]
        return transpose(self, axes=tuple(axes))


def sum_to(gradient, shape: tuple[int, ...]) -> np.ndarray:
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


# ------------------------------------------------------------------------------------------ arithmetic as primitives


@primitive
def add(a, b):
    """a + b; both arguments get the gradient unchanged."""
    return a + b, lambda dy: (dy, dy)


@primitive
def subtract(a, b):
    """a − b; the gradient of b changes sign."""
    return a - b, lambda dy: (dy, -dy)


@primitive
def multiply(a, b):
    """a · b, entry by entry; each factor's gradient is scaled by the other factor."""
    return a * b, lambda dy: (dy * b, dy * a)


@primitive
def divide(a, b):
    """a / b, entry by entry: da = dy / b, db = −dy · a / b²."""
    y = a / b
    return y, lambda dy: (dy / b, -dy * y / b)


@primitive
def power(x, *, exponent):
    """xⁿ for a fixed number n: dx = n · xⁿ⁻¹ · dy."""
    return x**exponent, lambda dy: dy * exponent * x ** (exponent - 1)


@primitive
def matmul(a, b):
    """a @ b:   da = dy @ bᵀ,   db = aᵀ @ dy, summed over batch axes that were broadcast."""
    if not a.ndim or not b.ndim or a.shape[-1] != b.shape[-2 if b.ndim > 1 else 0]:
        raise ShapeError(f"a @ b needs as many columns in a as rows in b, got shapes {a.shape} and {b.shape}")

    def pullback(dy):
        rows, columns = np.atleast_2d(a), b if b.ndim > 1 else b[:, None]
        dy = dy if b.ndim > 1 else np.expand_dims(dy, -1)
        dy = dy if a.ndim > 1 else np.expand_dims(dy, -2)
        da, db = dy @ columns.swapaxes(-1, -2), rows.swapaxes(-1, -2) @ dy
        return sum_to(da, rows.shape).reshape(a.shape), sum_to(db, columns.shape).reshape(b.shape)

    return a @ b, pullback


@primitive
def total(x, *, axis=None, keepdims=False):
    """Σ x over `axis`; every summand gets the gradient of the sum."""
    y = x.sum(axis=axis, keepdims=keepdims)

    def pullback(dy):
        if axis is not None and not keepdims:
            dy = np.expand_dims(dy, axis)
        return np.broadcast_to(dy, x.shape)

    return y, pullback


@primitive
def reshape(x, *, shape):
    """The same entries in another shape; the gradient takes the old shape again."""
    return x.reshape(shape), lambda dy: dy.reshape(x.shape)


@primitive
def transpose(x, *, axes=None):
    """Axes in another order; the gradient's axes go back."""
    return x.transpose(axes), lambda dy: dy.transpose(None if axes is None else np.argsort(axes))


@primitive
def getitem(x, *, index):
    """x[index]; entries picked twice collect both gradients, the others get zero."""

    def pullback(dy):
        dx = np.zeros_like(x)
        np.add.at(dx, index, dy)
        return dx

    return x[index], pullback


# ------------------------------------------------------------------------------------------------------ going backwards


def vjp(function: Callable, *primals):
    """The value of `function` at `primals`, and its pullback (the vector–Jacobian product).

        pullback(w) = (∇₁⟨w, f⟩, ∇₂⟨w, f⟩, …),  one gradient per primal, in its structure

    Primals are arrays or nested dicts and lists of arrays. Integer arrays (token ids) are passed through; their
    gradient is None.

    Raises: ShapeError if the cotangent does not have the shape of the value.

    >>> value, pullback = vjp(lambda a, b: a * b, 3.0, 4.0)
    >>> float(value), [float(g) for g in pullback(1.0)]
    (12.0, [4.0, 3.0])
    """
    traced = [_tree_map(_trace, p) for p in primals]
    output = function(*traced)
    value = output.value if isinstance(output, Tensor) else np.asarray(output)

    def pullback(cotangent):
        cotangent = np.asarray(cotangent, value.dtype)
        if cotangent.shape != value.shape:
            raise ShapeError(f"the cotangent needs the shape of the value, {value.shape}, got {cotangent.shape}")
        gradients = _backpropagate(output, cotangent) if isinstance(output, Tensor) else {}
        return tuple(_tree_map(lambda leaf: _gradient_of(leaf, gradients), t) for t in traced)

    return value, pullback


def value_and_grad(function: Callable, has_aux: bool = False) -> Callable:
    """A function that returns `function(params, …)` and its gradient with respect to `params`, as in JAX.

        (L, ∂L/∂params) = value_and_grad(L)(params, batch)

    `params` is an array or a nested dict/list of arrays; the gradient has the same structure. With `has_aux` the
    function returns (loss, aux) and the result is ((loss, aux), gradient).

    Raises: ValueError if the loss is not one number; TypeError if a parameter holds integers.

    >>> loss = lambda params, x: ((x @ params["weight"] - 1.0) ** 2).sum()
    >>> value, gradient = value_and_grad(loss)({"weight": np.array([1.0, 2.0])}, np.array([[1.0, 1.0]]))
    >>> float(value), gradient["weight"]
    (4.0, array([4., 4.]))
    """

    @functools.wraps(function)
    def differentiated(params, *args, **options):
        traced = _tree_map(functools.partial(_trace, strict=True), params)
        output = function(traced, *args, **options)
        output, aux = output if has_aux else (output, None)
        value = output.value if isinstance(output, Tensor) else np.asarray(output)
        if value.size != 1:
            raise ValueError(f"only a single number has a gradient; the loss has shape {value.shape}")
        gradients = _backpropagate(output, np.ones_like(value)) if isinstance(output, Tensor) else {}
        gradient = _tree_map(lambda leaf: _gradient_of(leaf, gradients), traced)
        value = value.reshape(())[()]
        return ((value, _tree_map(_detach, aux)) if has_aux else value), gradient

    return differentiated


def grad(function: Callable) -> Callable:
    """The gradient of a scalar function with respect to its first argument: `value_and_grad` without the value.

    >>> grad(lambda x: (x**2).sum())([3.0, 4.0])
    array([6., 8.])
    """
    both = value_and_grad(function)

    @functools.wraps(function)
    def gradient(params, *args, **options):
        return both(params, *args, **options)[1]

    return gradient


def hessian_vector_product(function: Callable, x, v, epsilon: float = 1e-5) -> np.ndarray:
    """How the gradient of a scalar `function` at `x` changes in direction `v`: the second derivative, numerically.

        H v ≈ [∇f(x + εv) − ∇f(x − εv)] / 2ε

    >>> hessian_vector_product(lambda x: (x**3).sum(), np.array([1.0, 2.0]), np.array([1.0, 0.0])).round(6)
    array([6., 0.])
    """
    x, v = np.asarray(x, float), np.asarray(v, float)
    if x.shape != v.shape:
        raise ShapeError(f"the direction needs the shape of x, {x.shape}, got {v.shape}")
    gradient = grad(function)
    return (gradient(x + epsilon * v) - gradient(x - epsilon * v)) / (2 * epsilon)


def _backpropagate(output: Tensor, cotangent) -> dict[int, np.ndarray]:
    """The gradients of the leaves below `output`, by id: every pullback runs once, after all who use its value."""
    gradients = {id(output): cotangent}
    for tensor in _last_to_first(output):
        if tensor.pullback is None:
            continue
        contributions = tensor.pullback(gradients.pop(id(tensor)))
        if not isinstance(contributions, tuple):
            contributions = (contributions,)
        for position, parent in tensor.parents:
            contribution = np.asarray(sum_to(contributions[position], parent.shape), parent.dtype)
            so_far = gradients.get(id(parent))
            gradients[id(parent)] = contribution if so_far is None else so_far + contribution
    return gradients


def _last_to_first(output: Tensor) -> list[Tensor]:
    """All tensors below `output`, each before the ones it was computed from (topological order, without recursion)."""
    order, seen, stack = [], set(), [(output, False)]
    while stack:
        tensor, finished = stack.pop()
        if finished:
            order.append(tensor)
        elif id(tensor) not in seen:
            seen.add(id(tensor))
            stack.append((tensor, True))
            stack.extend((parent, False) for _, parent in tensor.parents)
    return order[::-1]


# ------------------------------------------------------------------------------------------------- nested parameters


def _tree_map(function, tree):
    """Apply `function` to every array in nested dicts, lists and tuples (a list of plain numbers is one array)."""
    if isinstance(tree, dict):
        return {key: _tree_map(function, branch) for key, branch in tree.items()}
    if isinstance(tree, list | tuple) and not _is_numbers(tree):
        return type(tree)(_tree_map(function, branch) for branch in tree)
    return function(tree)


def _is_numbers(tree):
    if isinstance(tree, list | tuple):
        return bool(tree) and all(map(_is_numbers, tree))
    return isinstance(tree, Real)


def _leaves(tree):
    found = []
    _tree_map(found.append, tree)
    return found


def _trace(leaf, strict=False):
    if leaf is None:
        return None
    array = np.asarray(leaf) if not isinstance(leaf, Tensor) else leaf.value
    if array.dtype.kind in "iub":
        if not isinstance(leaf, np.ndarray):
            array = array.astype(np.float64)  # a number or list typed by hand
        elif strict:
            raise TypeError(f"parameters need floating-point numbers, got an array of {array.dtype}")
        else:
            return leaf
    return Tensor(array)


def _gradient_of(leaf, gradients):
    if not isinstance(leaf, Tensor):
        return None
    gradient = gradients.get(id(leaf))
    return np.zeros_like(leaf.value) if gradient is None else np.array(gradient)


def _detach(leaf):
    return leaf.value if isinstance(leaf, Tensor) else leaf


# -------------------------------------------------------------------------------------------------- checking gradients


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
