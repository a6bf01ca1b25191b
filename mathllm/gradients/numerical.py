"""Derivatives measured by finite differences, and the Jacobian from pullbacks.

The step must be small, because the derivative changes along it, and not too small, because the difference of two nearly
equal numbers has few correct digits. With a step to each side the largest part of the first error cancels; a step near
the cube root of the rounding error then gives about ten correct digits.
"""

from collections.abc import Callable

import numpy as np

from ..autodiff import ArrayLike, central_difference, vjp
from ..errors import ShapeError, all_within
from ..shapes import contract, real_array

_EPSILON = float(np.finfo(np.float64).eps)


def secant_slope(function: Callable, x: ArrayLike, h: ArrayLike) -> np.ndarray:
    """Slope of the straight line through two points of a curve; its limit for h → 0 is the derivative.

        f′(x) = lim_{h→0} [f(x + h) − f(x)] / h                                     (8.1)

    x, h: numbers or arrays, h ≠ 0   ->   the same shape

    Raises: ValueError for h = 0, where there is no line.

    >>> secant_slope(lambda x: x**2, 3.0, np.array([1.0, 0.1, 0.01])).round(2)
    array([7.  , 6.1 , 6.01])
    """
    x, h = (real_array("secant_slope", number, np.float64) for number in (x, h))
    if not np.all(h):
        raise ValueError("secant_slope() needs two different points, got h = 0: the derivative is a limit")
    return (function(x + h) - function(x)) / h


def numerical_derivative(function: Callable, x: ArrayLike, *, h: float | None = None) -> np.ndarray:
    """Derivative of a function of one number, from one step to each side.

        f′(x) ≈ [f(x + h) − f(x − h)] / 2h,      error ∝ h²                         (8.21)

    x: a number, or an array to which `function` applies entry by entry   ->   the same shape
    h: the step; by default ∛ε · max(1, |x|), with the rounding error ε = 2·10⁻¹⁶

    Raises: ValueError for a step that is not positive, or a function that is not finite around x.

    >>> round(float(numerical_derivative(lambda x: x**3, 2.0)), 6)
    12.0
    """
    x = real_array("numerical_derivative", x, np.float64)
    steps = _step("numerical_derivative", x, h)
    return _finite("numerical_derivative", central_difference(function, x, 1.0, steps))


def numerical_gradient(function: Callable, x: ArrayLike, *, h: float | None = None) -> np.ndarray:
    """All partial derivatives of a scalar function: change one entry at a time, and keep the others constant.

        ∇f = [∂f/∂x₁, …, ∂f/∂xₙ],      ∂f/∂xᵢ ≈ [f(x + h eᵢ) − f(x − h eᵢ)] / 2h    (8.7)

    x: any shape   ->   ∇f: the same shape. It takes two evaluations for each entry; a pullback takes one pass for all.

    Raises: ShapeError if the function does not return one number; else as numerical_derivative().

    >>> numerical_gradient(lambda v: v[0] ** 2 + 3 * v[0] * v[1], [2.0, 1.0]).round(6)
    array([7., 6.])
    """
    gradient = numerical_jacobian(function, x, h=h)
    if gradient.shape != np.shape(x):
        raise ShapeError("numerical_gradient() needs a function with one number as its value; see numerical_jacobian()")
    return gradient


def numerical_jacobian(function: Callable, x: ArrayLike, *, h: float | None = None) -> np.ndarray:
    """The Jacobian matrix: the partial derivative of every entry of the value by every entry of the argument.

        Jᵢⱼ = ∂fᵢ/∂xⱼ ≈ [fᵢ(x + h eⱼ) − fᵢ(x − h eⱼ)] / 2h                          (8.10)

    x: (n,)   f(x): (m,)   ->   J: (m, n); for other shapes the axes of f(x), then the axes of x

    Raises: as numerical_derivative().

    >>> numerical_jacobian(lambda v: np.array([v[0] * v[1], v[0] + v[1]]), [2.0, 3.0]).round(6)
    array([[3., 2.],
           [1., 1.]])
    """
    x = real_array("numerical_jacobian", x, np.float64)
    return _finite("numerical_jacobian", _partials(function, x, _step("numerical_jacobian", x, h)))


@contract("_, n -> n n")
def numerical_hessian(function: Callable, x: ArrayLike, *, h: float | None = None) -> np.ndarray:
    """All second derivatives of a scalar function: the Jacobian matrix of its gradient.

        Hᵢⱼ = ∂²f / (∂xᵢ ∂xⱼ) = Hⱼᵢ                                                 (8.22)

    h: by default ε^¼ · max(1, |xᵢ|), which gives about seven correct digits

    Raises: ShapeError if the function has more than one value; else as numerical_derivative().

    >>> numerical_hessian(lambda v: v[0] ** 2 + 3 * v[0] * v[1], [2.0, 1.0]).round(4) + 0.0
    array([[2., 3.],
           [3., 0.]])
    """
    x = np.asarray(x, np.float64)
    if np.shape(function(x)):
        raise ShapeError("numerical_hessian() needs a function with one number as its value")
    steps = _step("numerical_hessian", x, h, order=4)
    H = _finite("numerical_hessian", _partials(lambda x: _partials(function, x, steps), x, steps))
    return (H + H.T) / 2


def jacobian(function: Callable, x: ArrayLike) -> np.ndarray:
    """The exact Jacobian matrix, from one pullback for each entry of the value.

        Jᵢ = pullback(eᵢ),      J_{g∘f} = J_g J_f                                   (8.11)

    function: built from primitives   x: (n,)   f(x): (m,)   ->   J: (m, n); other shapes as numerical_jacobian()

    >>> jacobian(lambda v: v * v, [2.0, 3.0])
    array([[4., 0.],
           [0., 6.]])
    """
    x = np.asarray(real_array("jacobian", x)) * 1.0
    value, pullback = vjp(function, x)
    J = np.zeros(value.shape + x.shape, x.dtype)
    for entry in np.ndindex(value.shape):
        cotangent = np.zeros_like(value)
        cotangent[entry] = 1
        J[entry] = pullback(cotangent)[0]
    return J


def _partials(function, x, steps):
    """[f(x + h eⱼ) − f(x − h eⱼ)] / 2h for every entry j of x, with a step h for each."""
    columns = []
    for entry in np.ndindex(x.shape):
        direction = np.zeros_like(x)
        direction[entry] = 1
        columns.append(central_difference(function, x, direction, steps[entry]))
    if not columns:
        return np.zeros(np.shape(function(x)) + x.shape)
    return np.stack(columns, axis=-1).reshape(np.shape(columns[0]) + x.shape)


def _step(name, x, h, order=3):
    """The step for each entry; by default the root of ε at which the two errors are about equally large."""
    steps = _EPSILON ** (1 / order) * np.maximum(1, np.abs(x)) if h is None else np.full(x.shape, float(h))
    steps = (x + steps) - x  # rounded, so that x + h and x − h are exact
    if np.any(steps <= 0):
        raise ValueError(f"{name}() needs a positive step that is large enough to change x, got {h}")
    return steps


def _finite(name, derivatives):
    all_within(name, "(-∞, ∞)", differences_around_x=derivatives)
    return derivatives
