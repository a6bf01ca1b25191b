"""Walk the record backwards: from the loss to every parameter, one pullback at a time."""

import functools
from collections.abc import Callable
from numbers import Real

import numpy as np

from ..errors import ShapeError
from .memory import _empty
from .tensor import Tensor, sum_to


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
    value = _value_of(output)

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

    Raises: ValueError if the loss is not one number; TypeError if a parameter holds integers or is a tensor already
    (gradients are not differentiated again: see `hessian_vector_product`), or if the function returns nothing.

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
        value = _value_of(output)
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
        if tensor.pullback is None or id(tensor) not in gradients:
            continue
        contributions = tensor.pullback(gradients.pop(id(tensor)))
        if not isinstance(contributions, tuple):
            contributions = (contributions,)
        for position, parent in tensor.parents:
            if contributions[position] is None:
                continue
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


# Nested parameters


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
    if isinstance(leaf, Tensor):
        raise TypeError("a gradient is not recorded, so it has no gradient itself: use hessian_vector_product")
    array = np.asarray(leaf)
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
    gradient = gradients.pop(id(leaf), None)  # gone once it is copied: its memory serves the next copy
    own = _empty(leaf.shape, leaf.dtype)  # for a pullback may have given two parameters one array
    own[...] = 0 if gradient is None else gradient
    return own


def _value_of(output):
    value = output.value if isinstance(output, Tensor) else np.asarray(output)
    if value.dtype.kind not in "fiub":
        raise TypeError(f"the function to differentiate must return numbers, got {output!r}")
    return value


def _detach(leaf):
    return leaf.value if isinstance(leaf, Tensor) else leaf
