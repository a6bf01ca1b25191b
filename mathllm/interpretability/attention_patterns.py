"""Where a head looks is half of the story; the other half is what it finds there."""

import numpy as np

from ..errors import ShapeError
from ..vectors import norm


def value_weighted_attention(weights, value, output=None) -> np.ndarray:
    """Attention weights times the length of what they bring: a high weight on a value near zero moves nothing.

        N_ts = A_ts · ‖v_s‖          or, through the output projection,          A_ts · ‖v_s W_o^h‖   (16.4)

    weights: (..., H, T, S)   value: (..., G, S, K), G = H or fewer shared ones   output: (H·K, D), optional
    ->   (..., H, T, S)

    The names of a record are "blocks.0.attention.weights" and "blocks.0.attention.value".
    Raises: ShapeError if the sizes do not fit.
    Source: 004, attention visualization; Kobayashi et al. 2020.

    >>> value_weighted_attention(np.array([[[0.9, 0.1]]]), np.array([[[0.01, 0.0], [3.0, 4.0]]])).round(3)
    array([[[0.009, 0.5  ]]])
    """
    weights, value = np.asarray(weights), np.asarray(value)
    heads = weights.shape[-3] if weights.ndim >= 3 else 0
    if value.ndim < 3 or not heads or heads % value.shape[-3] or value.shape[-2] != weights.shape[-1]:
        raise ShapeError(
            "value_weighted_attention() needs weights (..., H, T, S) and values (..., G, S, K) with H a multiple of G, "
            f"got shapes {weights.shape} and {value.shape}"
        )
    value = np.repeat(value, heads // value.shape[-3], axis=-3)  # (..., H, S, K)
    if output is not None:
        width = value.shape[-1]
        if output.ndim != 2 or len(output) != heads * width:
            raise ShapeError(f"the output projection needs {heads} · {width} rows, got shape {output.shape}")
        value = value @ output.reshape(heads, width, -1)  # (..., H, S, D): what head h writes for position s
    return weights * norm(value)[..., None, :]


def head_shares(weights, value, output) -> np.ndarray:
    """What each head writes into the stream, by itself: the heads' outputs before they are summed.

        y = Σ_h y_h,      y_h = A_h V_h W_o^h                                       (16.5)

    weights: (..., H, T, S)   value: (..., G, S, K)   output: (H·K, D)   ->   (..., H, T, D)

    Summed over the heads it is the output of the attention sublayer (without its bias).
    Raises: ShapeError if the sizes do not fit.
    Source: 001, §7.2; Elhage et al. 2021.

    >>> head_shares(np.ones((2, 1, 1)), np.array([[[1.0]], [[2.0]]]), np.array([[1.0, 0.0], [0.0, 1.0]]))[:, 0]
    array([[1., 0.],
           [0., 2.]])
    """
    weights, value = np.asarray(weights), np.asarray(value)
    heads, width = weights.shape[-3], value.shape[-1]
    if heads % value.shape[-3] or value.shape[-2] != weights.shape[-1] or len(output) != heads * width:
        raise ShapeError(
            f"head_shares() needs weights (..., H, T, S), values (..., G, S, K) and an output (H·K, D), "
            f"got shapes {weights.shape}, {value.shape} and {output.shape}"
        )
    value = np.repeat(value, heads // value.shape[-3], axis=-3)
    return weights @ value @ output.reshape(heads, width, -1)
