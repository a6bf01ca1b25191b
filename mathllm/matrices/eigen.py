"""Eigenvectors, the directions that a matrix only scales, and how to find one by applying the matrix repeatedly."""

from __future__ import annotations  # numpy.random is loaded when it is used

import numpy as np

from ..autodiff import ArrayLike
from ..shapes import contract
from ..similarity import dot
from ..vectors import norm, normalize
from .products import _for_lapack


@contract("n+ n -> n")
def eigenvalues(A: ArrayLike) -> np.ndarray:
    """The eigenvalues (the spectrum) of a square matrix, the largest modulus first.

        A v = λ v,      v ≠ 0                                                       (3.11)

    The array is real if all of them are real, else complex: a rotation of the plane by 90° scales no real direction,
    and its eigenvalues are complex.

    Raises: ValueError if an entry is not finite.

    >>> eigenvalues([[2, 0], [0, -3]])
    array([-3.,  2.])
    >>> eigenvalues([[0, -1], [1, 0]])
    array([0.+1.j, 0.-1.j])
    """
    values = np.linalg.eigvals(_for_lapack("eigenvalues", A))
    values = values[np.lexsort((-values.imag, -values.real, -np.abs(values)))]
    return values.real if np.all(values.imag == 0) else values


@contract("n+ n")
def power_iteration(
    A: ArrayLike, rng: np.random.Generator | int, *, tolerance: float = 1e-12, max_steps: int = 20_000
) -> tuple[np.floating, np.ndarray]:
    """The eigenvalue of largest modulus and its eigenvector: apply the matrix, normalize, repeat.

        v ← Av / ‖Av‖,      λ = v·(Av)                                              (3.13)

    ->   λ: one number, v: (n,) of length 1

    Each step shrinks the other directions by |λ₂/λ₁|, so the gap between the two decides how long it takes. Stops when
    ‖Av − λv‖ ≤ tolerance · ‖Av‖; the sign of v is chosen so that its entry of largest modulus is positive.

    Raises: ValueError if it does not settle (two eigenvalues of the same modulus, such as ±λ or a complex pair).

    >>> value, vector = power_iteration([[2, 1], [1, 2]], np.random.default_rng(0))
    >>> round(float(value), 9), vector.round(6)
    (3.0, array([0.707107, 0.707107]))
    """
    A = _for_lapack("power_iteration", A)
    tolerance = max(tolerance, 8 * float(np.finfo(A.dtype).eps))
    v = normalize(np.random.default_rng(rng).normal(size=len(A)).astype(A.dtype))
    for _ in range(max_steps):
        image = A @ v
        length = norm(image)
        value = dot(v, image)
        if norm(image - value * v) <= tolerance * length:  # 0 ≤ 0 for a v that a nilpotent or zero matrix leads to
            return value, v * np.sign(v[np.argmax(np.abs(v))])
        v = image / length
    raise ValueError(
        f"power_iteration() did not settle in {max_steps} steps: no eigenvalue is larger in modulus than all others"
    )
