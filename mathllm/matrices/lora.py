"""Train a low-rank update of a large matrix, and not the matrix: LoRA, low-rank adaptation."""

from __future__ import annotations  # numpy.random is loaded when it is used

import math

import numpy as np

from ..autodiff import Array, WithPullback, primitive
from ..errors import within


def lora_init(inputs: int, outputs: int, rank: int, rng: np.random.Generator | int) -> dict[str, np.ndarray]:
    """Two low-rank factors whose product is zero at the start: A random, B = 0.

        ΔW = AB = 0,      A ~ N(0, 1/n),      B = 0                                 (15.16)

    inputs: n   outputs: m   rank: r   ->   {"A": (n, r), "B": (r, m)}

    With B = 0 the adapted model begins as the model it adapts, and because A ≠ 0 the gradient of B is not zero. If both
    were zero, so would be both gradients, at every step. The paper writes the update as BA, for y = (W + BA)x; rows of
    x are multiplied by A first, so in this package it is x(W + AB).

    Raises: ValueError for a rank below 1 or above the smaller size.
    Source: Hu et al. 2021, §4.1.

    >>> params = lora_init(6, 4, rank=2, rng=0)
    >>> params["A"].shape, params["B"].shape, float(np.abs(params["A"] @ params["B"]).max())
    ((6, 2), (2, 4), 0.0)
    """
    within("lora_init", f"whole [1, {min(inputs, outputs)}]", rank=rank)
    A = np.random.default_rng(rng).normal(0, inputs**-0.5, size=(inputs, rank))
    return {"A": A, "B": np.zeros((rank, outputs))}


@primitive(nondiff=("W",), shapes="... n, n m, n r, r m -> ... m")
def lora_linear(x: Array, W: Array, A: Array, B: Array, *, scale: float = 1.0) -> WithPullback:
    """A linear layer whose matrix is frozen, with a low-rank update beside it.

        y = xW + s · (xA)B                                                          (15.17)
        dx = dy Wᵀ + s · (dy Bᵀ)Aᵀ,      dA = s · xᵀ(dy Bᵀ),      dB = s · (xA)ᵀ dy

    scale: s, α/r in the paper

    W gets no gradient, so neither the product xᵀ dy, which has the size of W, nor an optimizer state for W is needed.

    Source: Hu et al. 2021, eq. 3.

    >>> lora_linear([[1, 2]], np.eye(2), [[1], [1]], [[0.5, 0]])
    array([[2.5, 2. ]])
    """
    rows = x.reshape(math.prod(x.shape[:-1]), x.shape[-1])
    W = W.astype(x.dtype, copy=False)
    inner = rows @ A  # (N, r)
    y = rows @ W + scale * (inner @ B)

    def pullback(dy):
        dy = dy.reshape(len(rows), W.shape[1])
        dinner = scale * (dy @ B.T)
        dx = dy @ W.T + dinner @ A.T
        return dx.reshape(x.shape), None, rows.T @ dinner, scale * (inner.T @ dy)

    return y.reshape(*x.shape[:-1], W.shape[1]), pullback


@primitive(shapes="n m, n r, r m -> n m")
def lora_merge(W: Array, A: Array, B: Array, *, scale: float = 1.0) -> WithPullback:
    """Add the low-rank update to the matrix: the adapted model then costs no more than the original one.

        W′ = W + s · AB,      dA = s · dW′ Bᵀ,      dB = s · Aᵀ dW′                 (15.18)

    The result has the dtype of W.

    Source: Hu et al. 2021, §4.1.

    >>> lora_merge(np.eye(2), [[1], [1]], [[0.5, 0]])
    array([[1.5, 0. ],
           [0.5, 1. ]])
    """

    def pullback(dW):
        return dW, scale * (dW @ B.T), scale * (A.T @ dW)

    return (W + scale * (A @ B)).astype(W.dtype), pullback
