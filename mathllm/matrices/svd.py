"""The singular value decomposition: rotate (or reflect), scale along the axes, rotate. Small scales can be left out."""

from typing import NamedTuple

import numpy as np

from ..autodiff import Array, ArrayLike, WithPullback, primitive
from ..errors import within
from ..shapes import contract, floating
from ..vectors import norm
from .products import _for_lapack


class SVD(NamedTuple):
    """The three factors of a matrix: output directions, singular values, input directions.

    >>> svd([[3, 0], [0, 4]]).singular_values
    array([4., 3.])
    """

    U: np.ndarray
    singular_values: np.ndarray
    Vt: np.ndarray


@contract("... m+ n+")
def svd(W: ArrayLike) -> SVD:
    """Singular value decomposition, in its thin form: r = min(m, n) directions.

        W = U Σ Vᵀ = Σᵢ σᵢ uᵢ vᵢᵀ,      σ₁ ≥ σ₂ ≥ … ≥ σ_r ≥ 0                       (3.15)

    ->   U: (..., m, r), singular values: (..., r), Vt: (..., r, n)

    The columns of U and the rows of Vt have length 1 and are orthogonal to each other. The full form adds directions
    that W never uses.

    Raises: ValueError if an entry is not finite.

    >>> U, s, Vt = svd([[2, 0], [0, 0], [0, 5]])
    >>> s, (U * s @ Vt).round(9) + 0.0
    (array([5., 2.]), array([[2., 0.],
           [0., 0.],
           [0., 5.]]))
    """
    factors = np.linalg.svd(_for_lapack("svd", W), full_matrices=False)
    return SVD(*(factor.astype(floating(W).dtype) for factor in factors))


@primitive(shapes="... m+ n+ -> ... r")
def singular_values(W: Array) -> WithPullback:
    """How much a matrix scales each of its r = min(m, n) directions; the largest value is its spectral norm.

        σ₁ = max ‖Wx‖ / ‖x‖,      dW = U diag(dσ) Vᵀ                                (11.19)

    The gradient exists where the singular values are positive and differ; for the sum of all, positive is enough.

    Raises: ValueError if an entry is not finite.

    >>> singular_values([[0, 2], [1, 0], [0, 0]])
    array([2., 1.])
    """
    U, s, Vt = svd(W)
    return s, lambda ds: (U * ds[..., None, :]) @ Vt


@contract("... m+ n+ -> ... m n")
def low_rank_approximation(W: ArrayLike, rank: int) -> np.ndarray:
    """The best matrix of a given rank (Eckart–Young): keep the largest singular values, set the others to zero.

        W_k = U_k Σ_k V_kᵀ = Σ_{i≤k} σᵢ uᵢ vᵢᵀ                                      (3.17)

    rank: k, from 0 to min(m, n)

    Raises: ValueError for a rank that no matrix of this shape can have.

    >>> low_rank_approximation([[3, 0], [0, 1]], rank=1) + 0.0
    array([[3., 0.],
           [0., 0.]])
    """
    U, s, Vt = svd(W)
    within("low_rank_approximation", f"whole [0, {s.shape[-1]}]", rank=rank)
    return (U[..., :rank] * s[..., None, :rank]) @ Vt[..., :rank, :]


@contract("... m+ n+ -> ...")
def low_rank_error(W: ArrayLike, rank: int) -> np.ndarray:
    """The distance of W from its best approximation of this rank, in the Frobenius norm.

        ‖W − W_k‖_F = √(σ²_{k+1} + … + σ²_r)                                        (3.18)

    rank: k, from 0 to min(m, n)

    Raises: ValueError for a rank that no matrix of this shape can have.
    Source: Eckart and Young 1936.

    >>> round(float(low_rank_error([[3, 0, 0], [0, 2, 0], [0, 0, 1]], rank=2)), 9)
    1.0
    """
    s = svd(W).singular_values
    within("low_rank_error", f"whole [0, {s.shape[-1]}]", rank=rank)
    return norm(s[..., rank:]) if rank < s.shape[-1] else np.zeros(s.shape[:-1], s.dtype)[()]
