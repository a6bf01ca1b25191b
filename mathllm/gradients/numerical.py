"""A slope can be measured: take a small step, see how far the function moves, divide.

The step must be small, since the slope changes along it, and not too small, since two nearly equal numbers lose their
digits when subtracted. Steps in both directions cancel the first error of the two; with a step near the cube root of
the rounding error about ten digits of the slope are right.
"""

from collections.abc import Callable

import numpy as np

from ..autodiff import vjp
from ..errors import ShapeError

_EPSILON = float(np.finfo(np.float64).eps)


def secant_slope(function: Callable, x, h):
    """Slope of the straight line through two points of a curve; its limit for h → 0 is the derivative.

        f′(x) = lim_{h→0} [f(x + h) − f(x)] / h                                     (8.1)

    x, h: numbers or arrays, h ≠ 0   ->   the same shape

    Raises: ValueError for h = 0, where there is no line.
    Source: 003, ch. VIII; 001, §3.1.

    >>> secant_slope(lambda x: x**2, 3.0, np.array([1.0, 0.1, 0.01])).round(2)
    array([7.  , 6.1 , 6.01])
    """
    h = np.asarray(h, np.float64)
    if not np.all(h):
        raise ValueError("secant_slope() needs two different points, got h = 0: the derivative is a limit")
    return (function(x + h) - function(x)) / h


def numerical_derivative(function: Callable, x, *, h: float | None = None):
    """Derivative of a function of one number, from a step to each side.

        f′(x) ≈ [f(x + h) − f(x − h)] / 2h,      error ∝ h²                         (8.3)

    x: a number, or an array that `function` treats entry by entry   ->   the same shape
    h: the step; by default ∛ε · max(1, |x|), with the rounding error ε = 2·10⁻¹⁶

    Raises: ValueError for a step that is not positive, or a function that is not finite there.
    Source: 001, §4.4; 003, ch. VIII, exercise 17.

    >>> round(float(numerical_derivative(lambda x: x**3, 2.0)), 6)
    12.0
    """
    x = np.asarray(x, np.float64)
    right, left = x + _step("numerical_derivative", x, h), x - _step("numerical_derivative", x, h)
    return _finite("numerical_derivative", (function(right) - function(left)) / (right - left))


def numerical_gradient(function: Callable, x, *, h: float | None = None) -> np.ndarray:
    """All partial derivatives of a scalar function: nudge one entry at a time, hold the others still.

        ∇f = [∂f/∂x₁, …, ∂f/∂xₙ],      ∂f/∂xᵢ ≈ [f(x + h eᵢ) − f(x − h eᵢ)] / 2h    (8.4)

    x: any shape   ->   ∇f: the same shape. It takes two evaluations for each entry; a pullback takes one pass for all.

    Raises: ShapeError if the function does not return one number; else as numerical_derivative().
    Source: 003, ch. VIII, example 8 and exercise 18; 001, §3.1.

    >>> numerical_gradient(lambda v: v[0] ** 2 + 3 * v[0] * v[1], [2.0, 1.0]).round(6)
    array([7., 6.])
    """
    slopes = numerical_jacobian(function, x, h=h)
    if slopes.shape != np.shape(x):
        raise ShapeError("numerical_gradient() needs a function with one number as its value; see numerical_jacobian()")
    return slopes


def numerical_jacobian(function: Callable, x, *, h: float | None = None) -> np.ndarray:
    """How every entry of the value changes with every entry of the argument.

        Jᵢⱼ = ∂fᵢ/∂xⱼ ≈ [fᵢ(x + h eⱼ) − fᵢ(x − h eⱼ)] / 2h                          (8.5)

    x: (n,)   f(x): (m,)   ->   J: (m, n); for other shapes the axes of f(x), then the axes of x

    Raises: as numerical_derivative().
    Source: 001, §3.1.1.

    >>> numerical_jacobian(lambda v: np.array([v[0] * v[1], v[0] + v[1]]), [2.0, 3.0]).round(6)
    array([[3., 2.],
           [1., 1.]])
    """
    x = np.asarray(x, np.float64)
    return _differences("numerical_jacobian", function, x, _step("numerical_jacobian", x, h))


def numerical_hessian(function: Callable, x, *, h: float | None = None) -> np.ndarray:
    """All second derivatives of a scalar function: how its gradient changes.

        Hᵢⱼ = ∂²f / (∂xᵢ ∂xⱼ) = Hⱼᵢ                                                 (8.7)

    x: (n,)   ->   H: (n, n), symmetric. h: by default ε^¼ · max(1, |xᵢ|); seven digits or so are right.

    Raises: ShapeError if x is no vector or the function has more than one value; else as numerical_derivative().
    Source: 001, §3.1.1.

    >>> numerical_hessian(lambda v: v[0] ** 2 + 3 * v[0] * v[1], [2.0, 1.0]).round(4) + 0.0
    array([[2., 3.],
           [3., 0.]])
    """
    x = np.asarray(x, np.float64)
    if x.ndim != 1:
        raise ShapeError(f"numerical_hessian() needs a vector, got shape {x.shape}")
    if np.shape(function(x)):
        raise ShapeError("numerical_hessian() needs a function with one number as its value")
    steps = _step("numerical_hessian", x, h, order=4)
    H = _differences("numerical_hessian", lambda x: _differences("numerical_hessian", function, x, steps), x, steps)
    return (H + H.T) / 2


def jacobian(function: Callable, x) -> np.ndarray:
    """The Jacobian without differences: one pullback for each entry of the value.

        Jᵢ = pullback(eᵢ),      J_{g∘f} = J_g J_f                                   (8.6)

    function: built from primitives   x: (n,)   f(x): (m,)   ->   J: (m, n); other shapes as numerical_jacobian()

    Source: 001, §3.1.1 and §3.1.2; 000, step 5.

    >>> jacobian(lambda v: v * v, [2.0, 3.0])
    array([[4., 0.],
           [0., 6.]])
    """
    x = np.asarray(x)
    x = x if x.dtype.kind == "f" else x.astype(np.float64)
    value, pullback = vjp(function, x)
    J = np.zeros(value.shape + x.shape, x.dtype)
    for entry in np.ndindex(value.shape):
        cotangent = np.zeros_like(value)
        cotangent[entry] = 1
        J[entry] = pullback(cotangent)[0]
    return J


def _differences(name, function, x, steps):
    """[f(x + h eⱼ) − f(x − h eⱼ)] / 2h for every entry j of x, with a step h for each."""
    columns = []
    for entry in np.ndindex(x.shape):
        right, left = x.copy(), x.copy()
        right[entry] += steps[entry]
        left[entry] -= steps[entry]
        columns.append(np.subtract(function(right), function(left)) / (right[entry] - left[entry]))
    if not columns:
        return np.zeros(np.shape(function(x)) + x.shape)
    J = np.stack(columns, axis=-1)
    return _finite(name, J.reshape(J.shape[:-1] + x.shape))


def _step(name, x, h, order=3):
    """The step that balances both errors: the third root of ε for first derivatives, the fourth for second ones."""
    if h is None:
        return _EPSILON ** (1 / order) * np.maximum(1, np.abs(x))
    if not h > 0:
        raise ValueError(f"{name}() needs a positive step, got {h}")
    return np.full(x.shape, float(h))


def _finite(name, slopes):
    if not np.all(np.isfinite(slopes)):
        raise ValueError(f"{name}() needs a function that is finite around x")
    return slopes
