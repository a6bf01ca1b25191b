"""Critical points: where the gradient is zero, the second derivatives tell a minimum from a maximum and a saddle."""

import numpy as np

from ..autodiff import ArrayLike
from ..errors import all_within
from ..shapes import contract


@contract("n+, n n")
def classify_critical_point(gradient: ArrayLike, hessian: ArrayLike, *, tolerance: float = 1e-6) -> str:
    """The kind of a point at which a function has this gradient and this Hessian.

        ∇f = 0 and all λᵢ > 0: minimum      all λᵢ < 0: maximum      both signs: saddle point (8.24)

    hessian: symmetric, with eigenvalues λ   tolerance: the largest entry of the gradient, and an eigenvalue relative to
    the largest, count as zero below it   ->   "minimum", "maximum", "saddle point", "undecided" (an eigenvalue is zero
    and none has the other sign), or "not a critical point"

    Curvature alone decides nothing: eˣ has a positive second derivative everywhere, and no minimum.
    Raises: ValueError for a Hessian that is not symmetric, or NaN.

    >>> classify_critical_point([0, 0], [[2, 0], [0, -1]]), classify_critical_point([1], [[1]])
    ('saddle point', 'not a critical point')
    """
    gradient, hessian = np.asarray(gradient, np.float64), np.asarray(hessian, np.float64)
    all_within("classify_critical_point", "(-∞, ∞)", gradient=gradient, hessian=hessian)
    if np.abs(hessian - hessian.T).max() > tolerance * max(1, np.abs(hessian).max()):
        raise ValueError("classify_critical_point() needs a symmetric Hessian: the order of differentiation is free")
    if np.abs(gradient).max() > tolerance:
        return "not a critical point"
    eigenvalues = np.linalg.eigvalsh(hessian)
    zero = tolerance * np.abs(eigenvalues).max()
    rises, falls = np.any(eigenvalues > zero), np.any(eigenvalues < -zero)
    if rises and falls:
        return "saddle point"
    if np.any(np.abs(eigenvalues) <= zero):
        return "undecided"
    return "minimum" if rises else "maximum"
