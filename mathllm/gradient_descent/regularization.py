"""Gradient clipping, the L2 penalty with its gradient, and dropout."""

from __future__ import annotations  # numpy.random is loaded when it is used

from typing import Any

import numpy as np

from ..autodiff import Array, Tensor, WithPullback, primitive
from ..errors import within
from ..trees import flatten, tree_leaves, tree_map
from ..vectors import norm


def global_norm(tree: Any) -> float:
    """Length of a gradient as one long vector, over all parameters.

        ‖g‖ = √(Σ over all parameters of ‖gᵢ‖²)

    tree: nested arrays   ->   one number

    >>> global_norm({"weight": np.array([3.0, 0.0]), "bias": 4.0})
    5.0
    """
    vector, _ = flatten(tree)
    return float(norm(vector.astype(np.promote_types(vector.dtype, np.float32), copy=False))) if vector.size else 0.0


def clip_gradient(gradient: Any, max_norm: float) -> tuple[Any, float]:
    """Shorten a gradient that is too long, and keep its direction.

        g ← g · min(1, γ/‖g‖)                                                       (9.13)

    gradient: nested arrays   max_norm: γ > 0   ->   gradient, its length before

    Raises: ValueError for a limit that is not positive, or a gradient that is not finite and has no direction.
    Source: Pascanu, Mikolov and Bengio 2013, algorithm 1.

    >>> clip_gradient(np.array([6.0, 8.0]), max_norm=5.0)
    (array([3., 4.]), 10.0)
    """
    within("clip_gradient", "(0, ∞]", max_norm=max_norm)
    length = global_norm(gradient)
    within("clip_gradient", "[0, ∞)", length_of_the_gradient=length)
    factor = min(1.0, float(max_norm) / length) if length else 1.0
    return tree_map(lambda g: g * factor, gradient), length


def l2_penalty(params: Any, strength: float, *, half: bool = True) -> np.ndarray:
    """The L2 penalty on large weights, to be added to the loss.

        R(θ) = (ω/2) Σ θ²,      ∇R = ωθ                                             (9.17)

    params: nested arrays   strength: ω   half: False for ω Σ θ², whose gradient is twice as large   ->   one number

    Gradient descent on loss + R shrinks every weight by the factor 1 − ηω per step: weight decay. Both forms, with and
    without the half, are in use; their ω differ by a factor of 2. Under Adam, penalty and decay are not the same: see
    adam_step(l2=…) and adamw_step().
    Raises: ValueError for a negative strength.

    >>> float(l2_penalty({"weight": np.array([1.0, 2.0])}, 0.1)), float(l2_penalty([1.0, 2.0], 0.1, half=False))
    (0.25, 0.5)
    """
    within("l2_penalty", "[0, ∞)", strength=strength)
    factor = 0.5 * float(strength) if half else float(strength)
    total = 0.0
    for leaf in tree_leaves(params):
        leaf = leaf if isinstance(leaf, Tensor) else np.asarray(leaf) * 1.0
        total = (leaf * leaf).sum() * factor + total
    return total


@primitive
def dropout(x: Array, *, rate: float, rng: np.random.Generator | int) -> WithPullback:
    """Dropout: set a random part of the units to zero, and enlarge the others so that the expectation stays.

        y = μ x / (1 − ρ),      μ ~ Bernoulli(1 − ρ),      dx = μ dy / (1 − ρ)      (9.19)

    x: any shape   rate: ρ in [0, 1)   rng: draws μ   ->   the same shape

    Because of the division (inverted dropout) nothing has to be scaled at inference time: dropout is left out.
    Raises: ValueError for a rate outside [0, 1).
    Source: Srivastava et al. 2014.

    >>> dropout(np.ones(6), rate=0.5, rng=np.random.default_rng(0))
    array([2., 2., 2., 0., 0., 0.])
    """
    within("dropout", "[0, 1)", rate=rate)
    kept = np.random.default_rng(rng).random(x.shape, dtype=np.float32) >= rate
    scale = (kept / (1 - rate)).astype(x.dtype)
    return x * scale, lambda dy: dy * scale
