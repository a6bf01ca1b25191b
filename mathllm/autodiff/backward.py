"""Reverse mode: walk the record backwards, from the loss to every parameter, one pullback at a time."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..trees import rebuild, tree_leaves
from .tensor import Array, Tensor, sum_to


def vjp(function: Callable, *primals: Any) -> tuple[np.ndarray, Callable]:
    """The value of `function` at `primals`, and its pullback (the vector–Jacobian product).

        pullback(w) = (∇₁⟨w, f⟩, ∇₂⟨w, f⟩, …),  one gradient per primal, in its structure

    Primals are arrays or nested dictionaries and lists of arrays. Integer arrays (token ids) are passed through; their
    gradient is None.

    Raises: ShapeError if the cotangent does not have the shape of the value.

    >>> value, pullback = vjp(lambda a, b: a * b, 3.0, 4.0)
    >>> float(value), [float(g) for g in pullback(1.0)]
    (12.0, [4.0, 3.0])
    """
    traced = [_traced(primal) for primal in primals]
    output = function(*traced)
    value = _value_of(output)

    def pullback(cotangent):
        cotangent = np.asarray(cotangent, value.dtype)
        if cotangent.shape != value.shape:
            raise ShapeError(f"the cotangent needs the shape of the value, {value.shape}, got {cotangent.shape}")
        gradients = backpropagate(output, cotangent)
        return tuple(_gradient_of(primal, gradients) for primal in traced)

    return value, pullback


def value_and_grad(function: Callable, has_aux: bool = False) -> Callable:
    """A function that returns `function(params, …)` and its gradient with respect to `params`, as in JAX.

        (L, ∂L/∂params) = value_and_grad(L)(params, batch)

    `params` is an array or nested dictionaries and lists of arrays; the gradient has the same structure. With
    `has_aux` the function returns (loss, aux) and the result is ((loss, aux), gradient).

    Raises: ShapeError if the loss is not one number; TypeError if a parameter is an integer array or already a tensor
    (gradients are not differentiated again: see `hessian_vector_product`), or if the function returns nothing.

    >>> loss = lambda params, x: ((x @ params["weight"] - 1.0) ** 2).sum()
    >>> value, gradient = value_and_grad(loss)({"weight": np.array([1.0, 2.0])}, np.array([[1.0, 1.0]]))
    >>> float(value), gradient["weight"]
    (4.0, array([4., 4.]))
    """

    @functools.wraps(function)
    def differentiated(params, *args, **options):
        traced = _traced(params, strict=True)
        output = function(traced, *args, **options)
        output, aux = output if has_aux else (output, None)
        value = _value_of(output)
        if value.size != 1:
            raise ShapeError(f"only a single number has a gradient; the loss has shape {value.shape}")
        gradients = backpropagate(output, np.ones_like(value))
        value, gradient = value.reshape(())[()], _gradient_of(traced, gradients)
        if not has_aux:
            return value, gradient
        aux = rebuild(aux, (leaf.value if isinstance(leaf, Tensor) else leaf for leaf in tree_leaves(aux)))
        return (value, aux), gradient

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


def backpropagate(output: Array, cotangent: np.ndarray) -> dict[int, np.ndarray]:
    """The gradients of the leaves below `output`, by id: every pullback runs once, with the full gradient.

        dx = Σ over all y computed from x of what the pullback of y gives x for dy  (11.9)

    output: a tensor; an array depends on nothing   cotangent: dL/d output, of its shape   ->   {id of x: dx}

    >>> x = Tensor(3.0)
    >>> float(backpropagate(x * x + x, np.ones(()))[id(x)])
    7.0
    """
    if not isinstance(output, Tensor):
        return {}
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


def _traced(tree, strict=False):
    """The same structure with a tensor for every array of floating-point numbers."""
    return rebuild(tree, (_trace(leaf, strict) for leaf in tree_leaves(tree)))


def _trace(leaf, strict):
    if isinstance(leaf, Tensor):
        raise TypeError("a gradient is not recorded, so it has no gradient itself: use hessian_vector_product")
    array = np.asarray(leaf)
    if array.dtype.kind not in "iub":
        return Tensor(array)
    if not isinstance(leaf, np.ndarray):
        return Tensor(array.astype(np.float64))  # a number or list typed by hand
    if strict:
        raise TypeError(f"parameters need floating-point numbers, got an array of {array.dtype}")
    return leaf


def _gradient_of(traced, gradients):
    """The gradients of the tensors in a nested structure: zero where none arrived, None for integer arrays."""
    return rebuild(traced, (_own_gradient(leaf, gradients) for leaf in tree_leaves(traced)))


def _own_gradient(leaf, gradients):
    if not isinstance(leaf, Tensor):
        return None
    if id(leaf) not in gradients:
        return np.zeros(leaf.shape, leaf.dtype)
    # A copy, because a pullback may have given one array to two parameters
    return np.array(gradients.pop(id(leaf)), leaf.dtype, order="C")


def _value_of(output):
    value = output.value if isinstance(output, Tensor) else np.asarray(output)
    if value.dtype.kind not in "fiub":
        raise TypeError(f"the function to differentiate must return numbers, got {output!r}")
    return value
