"""After the tokens have talked, each one thinks for itself: the position-wise network, plain, gated, or by experts."""

import numpy as np

from ..autodiff import primitive
from ..errors import ShapeError
from ..gradients import gelu, gelu_tanh, relu, silu
from ..softmax import softmax

_ACTIVATIONS = {"gelu": gelu, "gelu_tanh": gelu_tanh, "relu": relu, "silu": silu}


def feed_forward(x, params, *, activation: str = "gelu_tanh", record=None):
    """The position-wise network: widen, bend, narrow; with a gate if the parameters have one.

        y = φ(x W_up + b) W_down + b'          or          (φ(x W_gate) ∘ x W_up) W_down (12.6)

    x: (..., D)   params: {"up": (D, F), "down": (F, D)}, optionally "gate": (D, F), "up_bias", "down_bias"
    ->   (..., D)

    `record(name, value)`, if given, is told "hidden": the activations of the neurons, (..., F).
    Raises: ValueError for an unknown activation; ShapeError for vectors of another width than the matrices take.
    Source: 001, §8.1; 000, step 3; Shazeer 2020.

    >>> feed_forward(np.array([2.0, -3.0]), {"up": np.eye(2), "down": np.eye(2)}, activation="relu")
    array([2., 0.])
    """
    if activation not in _ACTIVATIONS:
        raise ValueError(f"unknown activation {activation!r}; activations are {', '.join(_ACTIVATIONS)}")
    for name in ("up", "gate"):
        if name in params and (not x.ndim or x.shape[-1] != params[name].shape[0]):
            wanted = f"vectors of {params[name].shape[0]} components for its matrix {name!r}"
            raise ShapeError(f"feed_forward() needs {wanted}, got shape {x.shape} (see chapter 12)")
    up = x @ params["up"]
    if "up_bias" in params:
        up = up + params["up_bias"]
    bent = _ACTIVATIONS[activation](x @ params["gate"]) * up if "gate" in params else _ACTIVATIONS[activation](up)
    if record is not None:
        record("hidden", bent)
    y = bent @ params["down"]
    return y + params["down_bias"] if "down_bias" in params else y


def mixture_of_experts(x, params, *, used: int = 2, activation: str = "silu", record=None):
    """A router sends each token to the `used` experts with the highest scores, and mixes what they answer.

        g = softmax over the top-k of x W_r,      y = Σ_(e in top-k) g_e · FFN_e(x) (12.14)

    x: (..., D)   params: {"router": (D, E), "experts": [E times the parameters of `feed_forward`]}   ->   (..., D)

    `record(name, value)`, if given, is told "shares": g, (..., E), zero for the experts that are not asked.
    Raises: ShapeError if `used` is not in 1 … E.
    Source: 004, knowledge stack; Jiang et al. 2024, §2.1.

    >>> one = {"up": np.eye(1), "down": np.eye(1)}
    >>> params = {"router": np.array([[1.0, 2.0]]), "experts": [one, {"up": np.eye(1), "down": 5 * np.eye(1)}]}
    >>> mixture_of_experts(np.array([[1.0]]), params, used=1, activation="relu")
    array([[5.]])
    """
    experts = params["experts"]
    if not 1 <= used <= len(experts):
        raise ShapeError(f"mixture_of_experts() needs 1 … {len(experts)} experts per token, got {used}")
    tokens = x.reshape(-1, x.shape[-1])  # (N, D)
    scores = tokens @ params["router"]  # (N, E)
    values = getattr(scores, "value", scores)
    chosen = np.zeros(values.shape, bool)
    np.put_along_axis(chosen, np.argsort(-values, axis=-1, kind="stable")[:, :used], True, axis=-1)
    shares = softmax(scores + np.where(chosen, 0, -np.inf).astype(values.dtype))
    if record is not None:
        record("shares", shares.reshape(*x.shape[:-1], len(experts)))
    y = tokens * 0
    for number, expert in enumerate(experts):
        rows = np.flatnonzero(chosen[:, number])
        if len(rows):
            answer = feed_forward(tokens[rows], expert, activation=activation) * shares[rows, number : number + 1]
            y = y + _scatter(answer, rows=rows, size=len(values))
    return y.reshape(x.shape)


@primitive
def _scatter(x, *, rows, size):
    """Rows of x at the places `rows` of a table of zeros; the way back picks them up again."""
    table = np.zeros((size, *x.shape[1:]), x.dtype)
    table[rows] = x
    return table, lambda dy: dy[rows]
