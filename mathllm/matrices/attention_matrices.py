"""A matrix of attention weights applied again and again: where does attention settle, and how fast?

Each row of such a matrix is non-negative and sums to one. Multiplying a distribution over the tokens by it, from the
left, is one step of a walk: from each token to the tokens it attends to.
"""

import numpy as np

from ..errors import ShapeError
from .eigen import _square, eigenvalues
from .products import _matrix


def is_row_stochastic(A) -> bool:
    """Is every row a list of shares, non-negative and with the sum 1 (up to rounding in the matrix's dtype)?

        Aᵢⱼ ≥ 0,      Σⱼ Aᵢⱼ = 1                                                    (3.12)

    A: (..., m, n)   ->   True or False

    Source: 002, eigenvalues and attention.

    >>> is_row_stochastic([[0.5, 0.5], [0.2, 0.8]]), is_row_stochastic([[0.5, 0.6], [0.2, 0.8]])
    (True, False)
    """
    A = _matrix(A)
    return bool(A.shape[-1] > 0 and np.all(_are_distributions(A)))


def stationary_distribution(A) -> np.ndarray:
    """The distribution over tokens that the walk does not change: the left eigenvector to the eigenvalue 1.

        πA = π,      πⱼ ≥ 0,      Σⱼ πⱼ = 1                                         (3.13)

    A: (n, n), rows sum to 1   ->   π: (n,)

    The right eigenvector to the eigenvalue 1 says nothing: it is all ones, because every row sums to one. Under a
    causal mask the first token can attend to nothing but itself, so all of π lies on it (erratum B5).
    Raises: ValueError if a row is no distribution, or if π is not unique (the identity keeps every distribution).
    Source: 002, eigenvalues and attention.

    >>> stationary_distribution([[0.5, 0.5], [0.25, 0.75]]).round(4)
    array([0.3333, 0.6667])
    """
    A = _attention("stationary_distribution", A)
    shares = A.astype(np.float64)
    shares /= shares.sum(axis=1, keepdims=True)  # float32 rows sum to one only roughly
    flow = (shares - np.eye(len(A))).T  # what comes in minus what goes out: zero for π
    _, sizes, Vt = np.linalg.svd(flow)
    if len(A) > 1 and sizes[-2] <= 1e-12 * max(sizes[0], 1):
        raise ValueError(
            "stationary_distribution() is not unique: the tokens fall into groups that attend only to themselves"
        )
    pi = np.abs(Vt[-1])  # the one direction that the flow sends to zero; all its entries have one sign
    return (pi / pi.sum()).astype(A.dtype)


def spectral_gap(A) -> float:
    """How fast repeated attention mixes: the distance of the second largest eigenvalue from the largest.

        gap = 1 − |λ₂|,      ‖xAᵏ − π‖ shrinks like |λ₂|ᵏ                           (3.14)

    A: (n, n), rows sum to 1   ->   one number in [0, 1]

    The gap measures mixing, not focus (erratum B4). Attention spread evenly has gap 1, and so has attention where all
    look at one token; attention where each looks at itself has gap 0. Compare `attention_focus`.
    Raises: ValueError if a row is no distribution.
    Source: 002, eigenvalues and attention.

    >>> round(spectral_gap([[0.5, 0.5], [0.5, 0.5]]), 9)
    1.0
    >>> round(spectral_gap([[0.9, 0.1], [0.1, 0.9]]), 9)
    0.2
    """
    moduli = np.abs(eigenvalues(_attention("spectral_gap", A)))
    return float(np.clip(1 - moduli[1], 0, 1)) if len(moduli) > 1 else 1.0


def attention_focus(A) -> float:
    """How concentrated the rows are: the mean of each row's largest weight, from 1/n (even) to 1 (one token each).

        focus = (1/m) Σᵢ maxⱼ Aᵢⱼ                                                   (3.15)

    A: (m, n), rows sum to 1   ->   one number

    Raises: ValueError if a row is no distribution.

    >>> attention_focus([[0.25, 0.25, 0.25, 0.25]]), attention_focus([[1, 0], [0, 1]])
    (0.25, 1.0)
    """
    A = _matrix(A)
    if A.shape[-2] == 0 or not is_row_stochastic(A):
        raise ValueError("attention_focus() needs rows that are non-negative and sum to 1 (see chapter 03)")
    return float(A.max(axis=-1).mean())


def repeated_attention(A, steps: int) -> np.ndarray:
    """Attention applied `steps` times; with a gap, all rows become the stationary distribution.

        Aᵏ = A A ⋯ A  →  1π                                                         (3.16)

    A: (n, n), rows sum to 1   steps: k ≥ 0   ->   (n, n)

    Raises: ValueError if a row is no distribution or `steps` is negative.
    Source: 002, eigenvalues and attention.

    >>> repeated_attention([[0.5, 0.5], [0.25, 0.75]], 20).round(4)
    array([[0.3333, 0.6667],
           [0.3333, 0.6667]])
    """
    if steps < 0:
        raise ValueError(f"repeated_attention() needs steps of at least 0, got {steps}")
    A = np.asarray(A)
    return np.linalg.matrix_power(_attention("repeated_attention", A), steps).astype(_matrix(A).dtype)


def _attention(name, A):
    A = _matrix(A)
    if A.ndim != 2 or A.shape[0] != A.shape[1] or A.size == 0:
        raise ShapeError(f"{name}() needs a square matrix, tokens × tokens, got shape {A.shape} (see chapter 03)")
    if not is_row_stochastic(A):
        raise ValueError(f"{name}() needs rows that are non-negative and sum to 1 (see chapter 03)")
    return _square(name, A)


def _are_distributions(p):
    """For each row along the last axis: non-negative, and a sum of one up to rounding?"""
    tolerance = max(1e-9, 4 * float(np.finfo(p.dtype).eps) * max(1, p.shape[-1]) ** 0.5)
    p = p.astype(np.float64)  # float16 sums of many small shares would lose them
    return np.all(p >= 0, axis=-1) & (np.abs(p.sum(axis=-1) - 1) <= tolerance)
