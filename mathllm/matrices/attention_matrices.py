"""A matrix of attention weights as a Markov chain: to which distribution does repeated attention converge, how fast?

Each row of such a matrix A is non-negative and sums to one. If p is a distribution over the tokens, pA is the
distribution after one step of the chain: from each token to the tokens it attends to.
"""

import numpy as np

from ..autodiff import ArrayLike
from ..shapes import contract, floating
from .eigen import eigenvalues
from .products import _for_lapack


@contract("... m n")
def is_row_stochastic(A: ArrayLike) -> bool:
    """Is every row a distribution, non-negative and with the sum 1 (up to rounding in the matrix's dtype)?

        Aᵢⱼ ≥ 0,      Σⱼ Aᵢⱼ = 1                                                    (10.18)

    >>> is_row_stochastic([[0.5, 0.5], [0.2, 0.8]]), is_row_stochastic([[0.5, 0.6], [0.2, 0.8]])
    (True, False)
    """
    A = floating(A)
    tolerance = max(1e-9, 4 * float(np.finfo(A.dtype).eps) * A.shape[-1] ** 0.5)
    A = A.astype(np.float64)  # a float16 sum would lose many small probabilities
    return bool(A.shape[-1] > 0 and np.all(A >= 0) and np.all(np.abs(A.sum(axis=-1) - 1) <= tolerance))


@contract("n+ n -> n")
def stationary_distribution(A: ArrayLike) -> np.ndarray:
    """The distribution over tokens that a step does not change: the left eigenvector with eigenvalue 1.

        πA = π,      πⱼ ≥ 0,      Σⱼ πⱼ = 1                                         (10.19)

    The right eigenvector with eigenvalue 1 carries no information: it is all ones, because every row sums to one. Under
    a causal mask the first token can attend to nothing but itself, so all of π lies on it.

    Raises: ValueError if a row is no distribution, or if π is not unique (the identity keeps every distribution).

    >>> stationary_distribution([[0.5, 0.5], [0.25, 0.75]]).round(4)
    array([0.3333, 0.6667])
    """
    rows = _stochastic("stationary_distribution", A).astype(np.float64)
    rows /= rows.sum(axis=1, keepdims=True)  # float32 rows sum to one only roughly
    flow = (rows - np.eye(len(A))).T  # the probability that comes in minus what goes out: zero for π
    _, sizes, Vt = np.linalg.svd(flow)
    if len(A) > 1 and sizes[-2] <= 1e-12 * max(sizes[0], 1):
        raise ValueError(
            "stationary_distribution() is not unique: the tokens fall into groups that attend only to themselves"
        )
    pi = np.abs(Vt[-1])  # the one direction that the flow sends to zero; all its entries have one sign
    return (pi / pi.sum()).astype(floating(A).dtype)


@contract("n+ n")
def spectral_gap(A: ArrayLike) -> float:
    """How fast repeated attention mixes: 1 minus the second largest modulus of an eigenvalue, from 0 to 1.

        gap = 1 − |λ₂|,      ‖pAˢ − π‖ shrinks like |λ₂|ˢ                           (10.20)

    The gap measures mixing, not focus: uniform attention has gap 1, and so has attention in which every token attends
    to the same one; if each attends to itself, the gap is 0. Compare `attention_focus`.

    Raises: ValueError if a row is no distribution.

    >>> round(spectral_gap([[0.5, 0.5], [0.5, 0.5]]), 9)
    1.0
    >>> round(spectral_gap([[0.9, 0.1], [0.1, 0.9]]), 9)
    0.2
    """
    moduli = np.abs(eigenvalues(_stochastic("spectral_gap", A)))
    return float(np.clip(1 - moduli[1], 0, 1)) if len(moduli) > 1 else 1.0


@contract("... m+ n")
def attention_focus(A: ArrayLike) -> float:
    """How concentrated the rows are: the mean of each row's largest weight, from 1/n (even) to 1 (one token each).

        focus = (1/m) Σᵢ maxⱼ Aᵢⱼ                                                   (10.21)

    Raises: ValueError if a row is no distribution.

    >>> attention_focus([[0.25, 0.25, 0.25, 0.25]]), attention_focus([[1, 0], [0, 1]])
    (0.25, 1.0)
    """
    return float(_stochastic("attention_focus", A).max(axis=-1).mean())


def _stochastic(function, A):
    """A matrix whose rows are distributions, in a precision for LAPACK."""
    if not is_row_stochastic(A):
        raise ValueError(f"{function}() needs rows that are non-negative and sum to 1 (see chapter 10)")
    return _for_lapack(function, A)
