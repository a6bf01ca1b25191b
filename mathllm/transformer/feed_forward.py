"""The position-wise network, applied to each token by itself: plain, gated, or a mixture of experts."""

from collections.abc import Callable

import numpy as np

from ..attention import project
from ..autodiff import Array, ArrayLike, Tensor, WithPullback, primitive
from ..errors import one_of, within
from ..gradients import gelu, gelu_tanh, relu, silu
from ..shapes import Contract, contract
from ..softmax import softmax

ACTIVATIONS = {"gelu": gelu, "gelu_tanh": gelu_tanh, "relu": relu, "silu": silu}


@contract("... D -> ... D")
def feed_forward(
    x: ArrayLike, params: dict, *, activation: str = "gelu_tanh", tap: Callable | None = None
) -> np.ndarray:
    """The position-wise network: widen, apply the activation function, narrow; with a gate if the parameters have one.

        y = φ(x W_up + b) W_down + b' (12.8)          or          (φ(x W_gate) ⊙ x W_up) W_down (12.9)

    params: {"up": (D, F), "down": (F, D)}, optionally "gate": (D, F), "up_bias", "down_bias"

    `tap(name, value)`, if given, sees "hidden", the activations (..., F), and returns what is used in their place.
    Raises: ValueError for an unknown activation; ShapeError for vectors of another width than the matrices take.
    Source: Vaswani et al. 2017, §3.3; Shazeer 2020.

    >>> feed_forward(np.array([2.0, -3.0]), {"up": np.eye(2), "down": np.eye(2)}, activation="relu")
    array([2., 0.])
    """
    one_of("feed_forward", ACTIVATIONS, activation=activation)
    function, up = ACTIVATIONS[activation], project(x, params, "up")
    hidden = function(project(x, params, "gate")) * up if "gate" in params else function(up)
    return project(hidden if tap is None else tap("hidden", hidden), params, "down")


@contract("... D -> ... D")
def mixture_of_experts(
    x: ArrayLike, params: dict, *, used: int = 2, activation: str = "silu", tap: Callable | None = None
) -> np.ndarray:
    """A router sends each token to the `used` experts with the largest logits, and mixes their outputs.

        g = softmax over the top-k of x W_r,      y = Σ_(e in top-k) g_e · FFN_e(x) (12.19)

    params: {"router": (D, m), "experts": [m times the parameters of `feed_forward`]}

    `tap(name, value)`, if given, sees "gates": g (..., m), zero for the experts that are not active.
    Raises: ValueError if `used` is not in 1 … m; ShapeError if the router has another number of columns than m.
    Source: Jiang et al. 2024, §2.1.

    >>> one = {"up": np.eye(1), "down": np.eye(1)}
    >>> params = {"router": np.array([[1.0, 2.0]]), "experts": [one, {"up": np.eye(1), "down": 5 * np.eye(1)}]}
    >>> mixture_of_experts(np.array([[1.0]]), params, used=1, activation="relu")
    array([[5.]])
    """
    experts = params["experts"]
    within("mixture_of_experts", f"whole [1, {len(experts)}]", used=used)
    tokens = x.reshape(-1, x.shape[-1])  # (N, D)
    needed = Contract(f"... D, D {len(experts)}")
    needed.check("mixture_of_experts", ["x", "router"], [x, params["router"]], __name__)
    scores = tokens @ params["router"]  # (N, m)
    values = scores.value if isinstance(scores, Tensor) else scores
    active = np.zeros(values.shape, bool)
    np.put_along_axis(active, np.argsort(-values, axis=-1, kind="stable")[:, :used], True, axis=-1)
    gates = softmax(scores + np.where(active, 0, -np.inf).astype(values.dtype))
    if tap is not None:
        gates = tap("gates", gates.reshape(*x.shape[:-1], len(experts))).reshape(values.shape)
    y = tokens * 0
    for number, expert in enumerate(experts):
        rows = np.flatnonzero(active[:, number])
        if len(rows):
            output = feed_forward(tokens[rows], expert, activation=activation) * gates[rows, number : number + 1]
            y = y + scatter(output, rows=rows, size=len(values))
    return y.reshape(x.shape)


@primitive
def scatter(x: Array, *, rows: ArrayLike, size: int) -> WithPullback:
    """The rows of x at the places `rows` of a table of `size` rows that is 0 elsewhere.

        Y[rows] = x,      dx = dY[rows]

    x: (n, ...)   rows: (n,) int, all different   ->   (size, ...)

    >>> scatter([[1.0], [2.0]], rows=[2, 0], size=3).ravel()
    array([2., 0., 1.])
    """
    table = np.zeros((size, *x.shape[1:]), x.dtype)
    table[rows] = x
    return table, lambda dy: dy[rows]
