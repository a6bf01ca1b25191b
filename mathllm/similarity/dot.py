"""Multiply what stands in the same place and add it all up: the most frequent computation in a transformer."""

import numpy as np

from ..autodiff import primitive
from ..errors import ShapeError


@primitive
def dot(a, b):
    """Dot product of two vectors, along the last axis.

        a · b = a₁b₁ + a₂b₂ + … + a_d b_d                                           (2.1)
              = ‖a‖ ‖b‖ cos θ                                                       (2.4)
        ∂(a·b)/∂a = b,      ∂(a·b)/∂b = a

    a, b: (..., d)   ->   (...)

    Raises: ShapeError if the vectors differ in length or have no components.
    Source: 003, ch. II, figure 2; 001, §1.1.1.

    >>> float(dot([2, 5, 1], [3, 1, 4]))
    15.0
    """
    _require_same_length("dot", a, b)

    def pullback(dy):
        return dy[..., None] * b, dy[..., None] * a

    return np.sum(a * b, axis=-1), pullback


def _require_same_length(name, a, b):
    """Refuse what has no components, or two different numbers of them."""
    for x in (a, b):
        if x.ndim == 0 or x.shape[-1] == 0:
            raise ShapeError(f"{name}() needs vectors with at least one component, got shape {x.shape}")
    if a.shape[-1] != b.shape[-1]:
        raise ShapeError(
            f"{name}() needs two vectors of one length, got {a.shape[-1]} and {b.shape[-1]} (see chapter 02)"
        )
