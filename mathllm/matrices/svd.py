"""Every matrix is a turn, a stretch along the axes, and another turn; small stretches can be left out."""

from typing import NamedTuple

import numpy as np

from ..autodiff import primitive
from ..errors import ShapeError
from ..vectors import norm
from .products import _matrix


class SVD(NamedTuple):
    """The three factors of a matrix: directions out, how much each is stretched, directions in.

    >>> svd([[3, 0], [0, 4]]).singular_values
    array([4., 3.])
    """

    U: np.ndarray
    singular_values: np.ndarray
    Vt: np.ndarray


def svd(W) -> SVD:
    """Singular value decomposition, in its thin form: r = min(m, n) directions.

        W = U Σ Vᵀ = Σᵢ σᵢ uᵢ vᵢᵀ,      σ₁ ≥ σ₂ ≥ … ≥ σ_r ≥ 0                       (3.17)

    W: (..., m, n)   ->   U: (..., m, r), singular values: (..., r), Vt: (..., r, n)

    The columns of U and the rows of Vt have length 1 and stand at right angles to each other. The full form adds
    directions that W never uses.
    Raises: ShapeError for what is no matrix; ValueError if an entry is not finite.
    Source: 001, §1.3; 000, summary.

    >>> U, s, Vt = svd([[2, 0], [0, 0], [0, 5]])
    >>> s, (U * s @ Vt).round(9) + 0.0
    (array([5., 2.]), array([[2., 0.],
           [0., 0.],
           [0., 5.]]))
    """
    W = _finite("svd", W)
    U, s, Vt = np.linalg.svd(_for_lapack(W), full_matrices=False)
    return SVD(U.astype(W.dtype), s.astype(W.dtype), Vt.astype(W.dtype))


@primitive
def singular_values(W):
    """How much a matrix stretches, direction by direction; the largest is its spectral norm.

        σ₁ = max ‖Wx‖ / ‖x‖,      dW = U diag(dσ) Vᵀ                                (3.18)

    W: (..., m, n)   ->   (..., min(m, n)), the largest first

    The gradient exists where the singular values differ; for the sum of all it needs them positive only.
    Raises: ShapeError for what is no matrix; ValueError if an entry is not finite.
    Source: 001, §1.3.

    >>> singular_values([[0, 2], [1, 0], [0, 0]])
    array([2., 1.])
    """
    U, s, Vt = svd(W)
    return s, lambda ds: (U * ds[..., None, :]) @ Vt


def low_rank_approximation(W, rank: int) -> np.ndarray:
    """The best matrix of a given rank (Eckart–Young): keep the largest stretches, drop the rest.

        W_k = U_k Σ_k V_kᵀ = Σ_{i≤k} σᵢ uᵢ vᵢᵀ                                      (3.19)

    W: (..., m, n)   rank: k, from 0 to min(m, n)   ->   (..., m, n)

    Raises: ValueError for a rank that no matrix of this shape can have.
    Source: 001, §1.3; 002, low-rank approximation.

    >>> low_rank_approximation([[3, 0], [0, 1]], rank=1) + 0.0
    array([[3., 0.],
           [0., 0.]])
    """
    U, s, Vt = svd(W)
    _require_rank("low_rank_approximation", rank, s.shape[-1])
    return (U[..., :rank] * s[..., None, :rank]) @ Vt[..., :rank, :]


def low_rank_error(W, rank: int):
    """What the best approximation of this rank misses, in the Frobenius norm: the tail of the singular values.

        ‖W − W_k‖_F = √(σ²_{k+1} + … + σ²_r)                                        (3.20)

    W: (..., m, n)   rank: k   ->   (...)

    Raises: ValueError for a rank that no matrix of this shape can have.
    Source: 001, §1.3 (Eckart and Young 1936).

    >>> float(low_rank_error([[3, 0, 0], [0, 2, 0], [0, 0, 1]], rank=2))
    1.0
    """
    s = svd(W).singular_values
    _require_rank("low_rank_error", rank, s.shape[-1])
    return norm(s[..., rank:]) if rank < s.shape[-1] else np.zeros(s.shape[:-1], s.dtype)[()]


def low_rank_parameters(rows: int, columns: int, rank: int) -> int:
    """How many numbers two thin factors hold, instead of rows · columns.

        r (m + n),      for a square matrix 2dr instead of d²                       (3.21)

    Raises: ValueError for sizes that are no sizes, or a rank above the smaller of them.
    Source: 002, low-rank approximation and LoRA.

    >>> low_rank_parameters(4096, 4096, 8), 4096 * 4096 // low_rank_parameters(4096, 4096, 8)
    (65536, 256)
    """
    if min(rows, columns) < 1:
        raise ValueError(f"low_rank_parameters() needs positive sizes, got {rows} and {columns}")
    _require_rank("low_rank_parameters", rank, min(rows, columns))
    return rank * (rows + columns)


def _require_rank(name, rank, largest):
    if not 0 <= rank <= largest:
        raise ValueError(f"{name}() needs a rank from 0 to {largest}, got {rank} (see chapter 03)")


def _finite(name, W):
    W = _matrix(W)
    if 0 in W.shape[-2:]:
        raise ShapeError(f"{name}() needs a matrix with at least one entry, got shape {W.shape}")
    if not np.all(np.isfinite(W)):
        raise ValueError(f"{name}() needs finite entries, got {W[~np.isfinite(W)][0]} (see chapter 03)")
    return W


def _for_lapack(W):
    return W.astype(np.float32) if W.dtype == np.float16 else W
