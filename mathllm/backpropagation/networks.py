"""Networks: a layer is a linear map and an activation function; the last layer of a network is linear."""

from __future__ import annotations  # numpy.random is loaded when it is used

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..autodiff import ArrayLike, vjp
from ..errors import ShapeError
from ..gradients import relu
from ..matrices import linear
from .initialization import initial_weights


def dense_layer(x: ArrayLike, W: ArrayLike, b: ArrayLike, *, activation: Callable = relu) -> np.ndarray:
    """A fully connected layer: the activation function of a weighted sum of all inputs and a bias.

        h = φ(z),      z = xW + b                                                   (11.1)

    x: (..., n)   W: (n, m)   b: (m,)   activation: φ, entry by entry   ->   h: (..., m)

    Raises: ShapeError if the sizes do not fit.

    >>> dense_layer([[1.0, 0.5]], [[0.15, 0.25], [0.20, 0.30]], [0.35, 0.35])
    array([[0.6 , 0.75]])
    """
    return activation(linear(x, W, b))


def mlp_init(
    sizes: Sequence[int], rng: np.random.Generator | int, *, scheme: str = "he", dtype: Any = np.float64
) -> list[dict[str, np.ndarray]]:
    """The initial parameters of a multilayer perceptron: random weights, biases of zero.

    sizes: units of the input, of every hidden layer and of the output   scheme: see initial_weights()
    ->   layers, first to last: [{"weight": (n, m), "bias": (m,)}, …]

    Raises: ShapeError for fewer than two sizes.

    >>> [layer["weight"].shape for layer in mlp_init([2, 4, 1], rng=0)]
    [(2, 4), (4, 1)]
    """
    if len(sizes) < 2:
        raise ShapeError(f"mlp_init() needs at least the sizes of input and output, got {list(sizes)}")
    rng = np.random.default_rng(rng)
    return [
        {"weight": initial_weights(n, m, rng, scheme=scheme, dtype=dtype), "bias": np.zeros(m, dtype)}
        for n, m in pairwise(sizes)
    ]


def mlp_forward(x: ArrayLike, layers: Sequence[dict], *, activation: Callable = relu) -> np.ndarray:
    """The output of a multilayer perceptron: all layers in turn, without activation function after the last.

        h₀ = x,      hₗ = φ(hₗ₋₁ Wₗ + bₗ)  for l < L,      z_L = h_{L−1} W_L + b_L   (11.2)

    x: (..., n)   layers: as of mlp_init()   ->   z_L: (..., m), logits

    Softmax or sigmoid, which turn logits into probabilities, belong to the loss, which computes both in a stable form.
    Raises: ShapeError for no layers, or sizes that do not fit.

    >>> identity = {"weight": np.eye(2), "bias": np.zeros(2)}
    >>> mlp_forward([[3.0, -4.0]], [identity, identity])
    array([[3., 0.]])
    """
    *hidden, last = _require_layers("mlp_forward", layers)
    h = x
    for layer in hidden:
        h = dense_layer(h, layer["weight"], layer["bias"], activation=activation)
    return linear(h, last["weight"], last["bias"])


def activation_derivative(activation: Callable, z: ArrayLike) -> np.ndarray:
    """The derivative φ′(z) of a function that acts entry by entry: its pullback of ones.

    z: any shape   ->   the same shape

    >>> activation_derivative(relu, [-1.0, 2.0])
    array([0., 1.])
    """
    value, pullback = vjp(activation, np.asarray(z) * 1.0)
    return pullback(np.ones_like(value))[0]


def _require_layers(name, layers):
    if not len(layers):
        raise ShapeError(f"{name}() needs at least one layer")
    return layers
