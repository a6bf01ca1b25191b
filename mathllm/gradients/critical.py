"""Where the gradient vanishes the ground is flat; second derivatives tell a valley from a top and from a pass."""

import numpy as np

from ..errors import ShapeError


def classify_critical_point(gradient, hessian, *, tolerance: float = 1e-6) -> str:
    """What kind of place is it where a function has this gradient and this Hessian?

        ∇f = 0 and all λᵢ > 0: minimum      all λᵢ < 0: maximum      both signs: saddle point (8.8)

    gradient: (n,)   hessian: (n, n), symmetric, with eigenvalues λ   ->   "minimum", "maximum", "saddle point",
    "undecided" (an eigenvalue is zero and none has the other sign), or "not a critical point"

    Curvature alone decides nothing: eˣ has a positive second derivative everywhere and a minimum nowhere (erratum B8).
    tolerance: below it the largest entry of the gradient, and an eigenvalue relative to the largest, count as zero.
    Raises: ShapeError if the sizes do not fit; ValueError for a Hessian that is not symmetric, or NaN.
    Source: 001, §3.1.1; 002, non-convex landscapes.

    >>> classify_critical_point([0, 0], [[2, 0], [0, -1]]), classify_critical_point([1], [[1]])
    ('saddle point', 'not a critical point')
    """
    gradient, hessian = np.asarray(gradient, np.float64), np.asarray(hessian, np.float64)
    if gradient.ndim != 1 or not gradient.size or hessian.shape != 2 * gradient.shape:
        raise ShapeError(
            "classify_critical_point() needs a gradient of shape (n,) and a Hessian of shape (n, n), "
            f"got {gradient.shape} and {hessian.shape} (see chapter 08)"
        )
    if not (np.all(np.isfinite(gradient)) and np.all(np.isfinite(hessian))):
        raise ValueError("classify_critical_point() needs finite derivatives")
    if np.abs(hessian - hessian.T).max() > tolerance * max(1, np.abs(hessian).max()):
        raise ValueError("classify_critical_point() needs a symmetric Hessian: the order of differentiation is free")
    if np.abs(gradient).max() > tolerance:
        return "not a critical point"
    curvature = np.linalg.eigvalsh(hessian)
    zero = tolerance * np.abs(curvature).max()
    if np.any(curvature > zero) and np.any(curvature < -zero):
        return "saddle point"
    if np.all(curvature > zero):
        return "minimum"
    return "maximum" if np.all(curvature < -zero) else "undecided"
