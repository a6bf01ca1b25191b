"""Divide the dot product by both lengths: what is left is the cosine of the angle."""

import numpy as np

from ..autodiff import Array, ArrayLike, WithPullback, primitive
from ..shapes import contract
from ..vectors import norm, normalize


@primitive(shapes="... d+, ... d -> ...")
def cosine_similarity(a: Array, b: Array) -> WithPullback:
    """Cosine of the angle between two vectors, along the last axis.

        cos θ = a·b / (‖a‖ ‖b‖) ∈ [−1, 1]                                           (2.5)
        ∂cos/∂a = (b̂ − cos θ · â) / ‖a‖,      â = a/‖a‖

    Raises: ValueError for a zero vector, which has no direction.

    >>> round(float(cosine_similarity([2, 5, 1], [3, 4, 2])), 3)
    0.949
    """
    unit_a, unit_b = normalize(a), normalize(b)
    cosine = np.clip(np.sum(unit_a * unit_b, axis=-1), -1, 1)  # rounding may step over the edge

    def pullback(dcosine):
        dcosine, c = dcosine[..., None], cosine[..., None]
        da = dcosine * (unit_b - c * unit_a) / norm(a)[..., None]
        return da, dcosine * (unit_a - c * unit_b) / norm(b)[..., None]

    return cosine, pullback


@contract("n d+, m d -> n m")
def cosine_similarity_matrix(a: ArrayLike, b: ArrayLike) -> np.ndarray:
    """Cosine of every row of `a` with every row of `b`: one matrix product of unit vectors.

        S = Â B̂ᵀ,      S_ij = cos(aᵢ, bⱼ)                                           (2.11)

    Raises: ValueError for a zero row, which has no direction.

    >>> cosine_similarity_matrix([[1, 0], [1, 1]], [[2, 0], [0, 3]]).round(3)
    array([[1.   , 0.   ],
           [0.707, 0.707]])
    """
    return _at_most_1(normalize(a) @ normalize(b).T)


@primitive
def _at_most_1(cosines):
    """Cosines in [−1, 1], which rounding may leave; the gradient is passed on as it is."""
    return np.clip(cosines, -1, 1), lambda dy: dy
