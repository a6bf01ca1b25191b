"""The directions that a matrix only stretches, found by applying the matrix again and again."""

from __future__ import annotations  # numpy.random is loaded when it is used

import numpy as np

from ..errors import ShapeError
from ..similarity import dot
from ..vectors import norm, normalize
from .products import _matrix


def eigenvalues(A) -> np.ndarray:
    """The spectrum of a square matrix, the largest modulus first.

        A v = λ v,      v ≠ 0                                                       (3.9)

    A: (n, n)   ->   (n,), real if all eigenvalues are, else complex

    A real matrix that turns the plane has no real direction that it only stretches: its eigenvalues are complex.
    Raises: ShapeError if the matrix is not square; ValueError if an entry is not finite.
    Source: 001, §1.3; 002, eigenvalues and attention.

    >>> eigenvalues([[2, 0], [0, -3]])
    array([-3.,  2.])
    >>> eigenvalues([[0, -1], [1, 0]])
    array([0.+1.j, 0.-1.j])
    """
    A = _square("eigenvalues", A)
    values = np.linalg.eigvals(A)
    values = values[np.lexsort((-values.imag, -values.real, -np.abs(values)))]
    return values.real if np.all(values.imag == 0) else values


def rayleigh_quotient(A, v):
    """How much the matrix stretches along v: for an eigenvector, exactly its eigenvalue.

        ρ(v) = v·(Av) / v·v                                                         (3.10)

    A: (n, n)   v: (n,)   ->   one number

    Raises: ShapeError if the sizes do not fit; ValueError for the zero vector, which has no direction.
    Source: 001, §1.3.

    >>> round(float(rayleigh_quotient([[2, 1], [1, 2]], [1, 1])), 9)
    3.0
    """
    A = _square("rayleigh_quotient", A)
    v = np.asarray(v, A.dtype)
    if v.shape != A.shape[1:]:
        raise ShapeError(f"rayleigh_quotient() needs a vector of {len(A)} components, got shape {v.shape}")
    unit = normalize(v)
    return dot(unit, A @ unit)


def power_iteration(A, rng: np.random.Generator, *, tolerance: float = 1e-12, max_steps: int = 20_000):
    """The eigenvalue of largest modulus and its eigenvector: apply the matrix, shorten, repeat.

        v ← Av / ‖Av‖,      λ = v·(Av)                                              (3.11)

    A: (n, n)   ->   λ: one number, v: (n,) of length 1

    Each step shrinks the other directions by |λ₂/λ₁|, so the gap between the two decides how long it takes. Stops when
    ‖Av − λv‖ ≤ tolerance · ‖Av‖; the sign of v is chosen so that its largest entry is positive.
    Raises: ValueError if it does not settle (two eigenvalues of the same modulus, such as ±λ or a complex pair);
    ShapeError if the matrix is not square.
    Source: 001, §1.3; 002, eigenvalues and attention.

    >>> value, vector = power_iteration([[2, 1], [1, 2]], np.random.default_rng(0))
    >>> round(float(value), 9), vector.round(6)
    (3.0, array([0.707107, 0.707107]))
    """
    A = _square("power_iteration", A)
    tolerance = max(tolerance, 8 * float(np.finfo(A.dtype).eps))
    v = normalize(rng.normal(size=len(A)).astype(A.dtype))
    for _ in range(max_steps):
        stretched = A @ v
        length = norm(stretched)
        if length == 0:  # v lies in the kernel; the start is random, so A is (nilpotent or) zero
            return length, v
        value = dot(v, stretched)
        if norm(stretched - value * v) <= tolerance * length:
            return value, v * np.sign(v[np.argmax(np.abs(v))])
        v = stretched / length
    raise ValueError(
        f"power_iteration() did not settle in {max_steps} steps: no eigenvalue is larger in modulus than all others"
    )


def _square(name, A):
    """A square matrix of finite numbers, in a precision that LAPACK knows."""
    A = _matrix(A)
    if A.ndim != 2 or A.shape[0] != A.shape[1] or A.size == 0:
        raise ShapeError(f"{name}() needs a square matrix, got shape {A.shape} (see chapter 03)")
    if not np.all(np.isfinite(A)):
        raise ValueError(f"{name}() needs finite entries, got {A[~np.isfinite(A)][0]}")
    return A.astype(np.float32) if A.dtype == np.float16 else A
