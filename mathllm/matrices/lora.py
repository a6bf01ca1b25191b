"""Teach a large matrix something new through two thin ones: LoRA, low-rank adaptation."""

from __future__ import annotations  # numpy.random is loaded when it is used

import math

import numpy as np

from ..autodiff import primitive
from ..errors import ShapeError
from .svd import low_rank_parameters


def lora_init(rng: np.random.Generator, inputs: int, outputs: int, rank: int) -> dict[str, np.ndarray]:
    """Two thin matrices whose product is zero at the start: A random, B = 0.

        ΔW = AB = 0,      A ~ N(0, 1/n),      B = 0                                 (3.22)

    inputs: n   outputs: m   rank: r   ->   {"A": (n, r), "B": (r, m)}

    With B = 0 the adapted model begins as the model it adapts, and because A ≠ 0 the gradient of B is not zero, so it
    can leave. Were both zero, neither would ever move. The paper writes the update as BA, for y = (W + BA)x; rows of x
    meet A first, so here it is x(W + AB).
    Raises: ValueError for a rank below 1 or above the smaller size.
    Source: 002, LoRA; Hu et al. 2021, §4.1.

    >>> params = lora_init(np.random.default_rng(0), 6, 4, rank=2)
    >>> params["A"].shape, params["B"].shape, float(np.abs(params["A"] @ params["B"]).max())
    ((6, 2), (2, 4), 0.0)
    """
    low_rank_parameters(inputs, outputs, rank)  # refuses sizes that cannot be right
    if rank < 1:
        raise ValueError(f"lora_init() needs a rank of at least 1, got {rank}")
    return {"A": rng.normal(0, inputs**-0.5, size=(inputs, rank)), "B": np.zeros((rank, outputs))}


@primitive(nondiff=("W",))
def lora_linear(x, W, A, B, *, scale: float = 1.0):
    """A frozen matrix with a low-rank update beside it.

        y = xW + s · (xA)B                                                          (3.23)
        dx = dy Wᵀ + s · (dy Bᵀ)Aᵀ,      dA = s · xᵀ(dy Bᵀ),      dB = s · (xA)ᵀ dy

    x: (..., n)   W: (n, m), frozen   A: (n, r)   B: (r, m)   scale: s, α/r in the paper   ->   y: (..., m)

    W gets no gradient; neither a product of the size of W nor its optimizer state is needed. That is the saving.
    Raises: ShapeError if the sizes do not fit.
    Source: 002, LoRA; Hu et al. 2021, eq. 3.

    >>> lora_linear([[1, 2]], np.eye(2), [[1], [1]], [[0.5, 0]])
    array([[2.5, 2. ]])
    """
    _require_factors("lora_linear", W, A, B)
    if x.ndim < 1 or x.shape[-1] != W.shape[0]:
        raise ShapeError(f"lora_linear() needs {W.shape[0]} components in x, got shape {x.shape}")
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


def lora_merge(W, A, B, scale: float = 1.0) -> np.ndarray:
    """Add the update to the matrix once and for all: the adapted model costs no more than the old one.

        W′ = W + s · AB                                                             (3.24)

    W: (n, m)   A: (n, r)   B: (r, m)   ->   (n, m), in the dtype of W

    Raises: ShapeError if the sizes do not fit.
    Source: 002, LoRA; Hu et al. 2021, §4.1.

    >>> lora_merge(np.eye(2), [[1], [1]], [[0.5, 0]])
    array([[1.5, 0. ],
           [0.5, 1. ]])
    """
    W, A, B = np.asarray(W), np.asarray(A), np.asarray(B)
    _require_factors("lora_merge", W, A, B)
    return (W + scale * (A @ B)).astype(W.dtype if W.dtype.kind == "f" else np.float64)


def _require_factors(name, W, A, B):
    shapes = [M.shape for M in (W, A, B)]
    if any(len(shape) != 2 for shape in shapes) or A.shape[1] != B.shape[0] or W.shape != (A.shape[0], B.shape[1]):
        raise ShapeError(f"{name}() needs W (n, m), A (n, r) and B (r, m), got {shapes[0]}, {shapes[1]}, {shapes[2]}")
