"""Divide the lengths out of the dot product and only the angle is left."""

import numpy as np

from ..autodiff import primitive
from ..errors import ShapeError
from ..vectors import norm, normalize
from .dot import _require_same_length

# Lower edges, inclusive: 0.90 is "Near-identical", 0.00 is "Weak or no relation" (003, ch. II, reference table).
COSINE_BANDS = (
    (0.90, "Near-identical"),
    (0.70, "Strongly related"),
    (0.40, "Some relationship"),
    (0.00, "Weak or no relation"),
    (-1.00, "Opposing (rare)"),
)


@primitive
def cosine_similarity(a, b):
    """Cosine of the angle between two vectors, along the last axis.

        cos θ = a·b / (‖a‖ ‖b‖) ∈ [−1, 1]                                           (2.5)
        ∂cos/∂a = (b̂ − cos θ · â) / ‖a‖,      â = a/‖a‖                             (2.8)

    a, b: (..., d)   ->   (...)

    Raises: ShapeError if the vectors differ in length; ValueError for a zero vector, which has no direction.
    Source: 003, ch. II, example 2; 001, §1.1.1.

    >>> round(float(cosine_similarity([2, 5, 1], [3, 4, 2])), 3)
    0.949
    """
    _require_same_length("cosine_similarity", a, b)
    length_a, length_b = norm(a)[..., None], norm(b)[..., None]
    if np.any(length_a == 0) or np.any(length_b == 0):
        raise ValueError("cosine_similarity() needs vectors with a direction, got a zero vector (see chapter 02)")
    unit_a, unit_b = a / length_a, b / length_b
    cosine = np.clip(np.sum(unit_a * unit_b, axis=-1), -1, 1)  # rounding may step over the edge

    def pullback(dcosine):
        dcosine, c = dcosine[..., None], cosine[..., None]
        return dcosine * (unit_b - c * unit_a) / length_a, dcosine * (unit_a - c * unit_b) / length_b

    return cosine, pullback


def cosine_similarity_matrix(a, b):
    """Cosine of every row of `a` with every row of `b`: one matrix product of unit vectors.

        S = Â B̂ᵀ,      S_ij = cos(aᵢ, bⱼ)                                           (2.9)

    a: (n, d)   b: (m, d)   ->   S: (n, m)

    Raises: ShapeError if the rows differ in length; ValueError for a zero row.

    >>> cosine_similarity_matrix([[1, 0], [1, 1]], [[2, 0], [0, 3]]).round(3)
    array([[1.   , 0.   ],
           [0.707, 0.707]])
    """
    try:
        unit_a, unit_b = normalize(a), normalize(b)
    except ShapeError:
        raise
    except ValueError:
        raise ValueError(
            "cosine_similarity_matrix() needs rows with a direction, got a row of zeros (see chapter 02)"
        ) from None
    if unit_a.ndim != 2 or unit_b.ndim != 2 or unit_a.shape[1] != unit_b.shape[1]:
        raise ShapeError(
            "cosine_similarity_matrix() needs two matrices with rows of one length, "
            f"got shapes {unit_a.shape} and {unit_b.shape} (see chapter 02)"
        )
    return unit_a @ unit_b.T


def interpret_cosine(cosine: float) -> str:
    """The words of the interpretation table for a cosine; the lower edge belongs to the band.

    Raises: ValueError for what is no cosine (NaN, or outside [−1, 1]).
    Source: 003, ch. II, reference table.

    >>> interpret_cosine(0.9), interpret_cosine(0.0), interpret_cosine(-0.2)
    ('Near-identical', 'Weak or no relation', 'Opposing (rare)')
    """
    if not -1 - 1e-9 <= cosine <= 1 + 1e-9:
        raise ValueError(f"interpret_cosine() needs a cosine between −1 and 1, got {cosine}")
    for lower_edge, label in COSINE_BANDS:
        if cosine >= lower_edge:
            return label
    return COSINE_BANDS[-1][1]
