"""Derivatives from finite differences: the values of a function at two nearby points."""

from collections.abc import Callable

import numpy as np

from ..errors import ShapeError
from ..shapes import real_array
from .backward import grad
from .tensor import ArrayLike


def central_difference(
    function: Callable, x: np.ndarray | float, direction: np.ndarray | float, h: np.ndarray | float
) -> np.ndarray:
    """The directional derivative of a function, from one step to each side.

        f′(x; v) ≈ [f(x + hv) − f(x − hv)] / 2h,      error about ∝ h² before rounding

    function: of arrays of the shape of x   direction: v   h: the step   ->   the shape of f(x)

    >>> central_difference(np.square, 3.0, 1.0, 0.5)
    np.float64(6.0)
    """
    return np.subtract(function(x + h * direction), function(x - h * direction)) / (2 * h)


def hessian_vector_product(function: Callable, x: ArrayLike, v: ArrayLike, h: float = 1e-5) -> np.ndarray:
    """The product of the Hessian with a vector: the change of the gradient of a scalar function in direction v.

        H v ≈ [∇f(x + hv) − ∇f(x − hv)] / 2h

    function: built from primitives   x, v: one shape   h: the step   ->   the same shape

    Raises: ShapeError if the shapes of x and v differ.

    >>> hessian_vector_product(lambda x: (x**3).sum(), np.array([1.0, 2.0]), np.array([1.0, 0.0])).round(6)
    array([6., 0.])
    """
    x, v = (real_array("hessian_vector_product", array).astype(float) for array in (x, v))
    if x.shape != v.shape:
        raise ShapeError(f"hessian_vector_product() needs a direction of the shape of x, {x.shape}, got {v.shape}")
    return central_difference(grad(function), x, v, h)
