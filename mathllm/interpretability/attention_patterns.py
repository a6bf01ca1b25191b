"""Attention patterns, weighted by the values that they move: which positions contribute to the output of a head."""

import numpy as np

from ..autodiff import ArrayLike
from ..errors import ShapeError
from ..shapes import contract
from ..vectors import norm


@contract("... H T S, ... G+ S K, W D -> ... H T S")
def value_weighted_attention(weights: ArrayLike, value: ArrayLike, output: ArrayLike | None = None) -> np.ndarray:
    """Attention weights times the norm of what they move: a high weight on a value near zero moves nothing.

        N_ij = A_ij · ‖v_j‖          or, through the output projection,          A_ij · ‖v_j W_O^h‖   (16.4)

    value: of G = H heads, or of fewer that are shared evenly   output: the output projection, optional, W = H·K

    The names of a record are "blocks.0.attention.weights" and "blocks.0.attention.value".
    Raises: ShapeError if H is no multiple of G, or W ≠ H·K.
    Source: Kobayashi et al. 2020.

    >>> value_weighted_attention(np.array([[[0.9, 0.1]]]), np.array([[[0.01, 0.0], [3.0, 4.0]]])).round(3)
    array([[[0.009, 0.5  ]]])
    """
    return weights * norm(_moved("value_weighted_attention", weights, value, output))[..., None, :]


@contract("... H T S, ... G+ S K, W D -> ... H T D")
def head_contributions(weights: ArrayLike, value: ArrayLike, output: ArrayLike) -> np.ndarray:
    """What each head adds to the residual stream: the terms of the sum that is the output of the attention sublayer.

        y = Σ_h y_h,      y_h = A_h V_h W_O^h                                       (16.5)

    value: of G = H heads, or of fewer that are shared evenly   output: the output projection, W = H·K

    The sum over the heads is the output of the attention sublayer without its bias.
    Raises: ShapeError if H is no multiple of G, or W ≠ H·K.
    Source: Elhage et al. 2021.

    >>> value, output = np.array([[[1.0]], [[2.0]]]), np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> head_contributions(np.ones((2, 1, 1)), value, output)[:, 0]
    array([[1., 0.],
           [0., 2.]])
    """
    return weights @ _moved("head_contributions", weights, value, output)


def _moved(name, weights, value, output):
    """What each head moves from each position, (..., H, S, ·): its value, through its rows of the output projection."""
    heads, groups, width = weights.shape[-3], value.shape[-3], value.shape[-1]
    if heads % groups:
        raise ShapeError(f"{name}() needs heads that share the values evenly, got {heads} heads and {groups} of values")
    value = np.repeat(value, heads // groups, axis=-3)  # (..., H, S, K)
    if output is None:
        return value
    if len(output) != heads * width:
        raise ShapeError(f"{name}() needs an output projection of {heads} · {width} rows, got shape {output.shape}")
    return value @ output.reshape(heads, width, -1)  # (..., H, S, D)
