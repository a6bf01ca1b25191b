"""Backpropagation written out: one error for each layer, from the last to the first."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ..autodiff import ArrayLike
from ..errors import ShapeError
from ..gradients import relu
from ..matrices import linear
from ..shapes import contract
from .networks import _require_layers, activation_derivative


class ForwardPass(NamedTuple):
    """The values of the forward pass that the backward pass needs.

    >>> layer = {"weight": np.eye(1), "bias": np.ones(1)}
    >>> forward_pass([[2.0]], [layer, layer]).inputs
    [array([[2.]]), array([[3.]])]
    """

    logits: np.ndarray  # z_L
    inputs: list[np.ndarray]  # h₀ … h_{L−1}, the input of each layer
    pre_activations: list[np.ndarray]  # z₁ … z_L


class BackwardPass(NamedTuple):
    """The results of the backward pass: the gradient, in the structure of the layers, and the errors on the way.

    >>> layer = {"weight": 2 * np.eye(1), "bias": np.zeros(1)}
    >>> backward_pass([[1.0]], forward_pass([[5.0]], [layer, layer]), [layer, layer]).errors
    [array([[2.]]), array([[1.]])]
    """

    gradient: list[dict[str, np.ndarray]]
    errors: list[np.ndarray]  # δ₁ … δ_L
    dx: np.ndarray


@contract("B n")
def forward_pass(x: ArrayLike, layers: Sequence[dict], *, activation: Callable = relu) -> ForwardPass:
    """Compute the network of (11.2) and keep every intermediate value.

    layers: as of mlp_init()   ->   logits (B, m), inputs, pre-activations

    Raises: ShapeError for no layers, or sizes that do not fit.

    >>> layer = {"weight": np.eye(2), "bias": np.zeros(2)}
    >>> forward_pass([[3.0, -4.0]], [layer, layer]).logits
    array([[3., 0.]])
    """
    h, inputs, pre_activations = x, [], []
    for number, layer in enumerate(_require_layers("forward_pass", layers), 1):
        inputs.append(h)
        z = linear(h, layer["weight"], layer["bias"])  # (B, m)
        pre_activations.append(z)
        h = activation(z) if number < len(layers) else z
    return ForwardPass(h, inputs, pre_activations)


def backward_pass(
    dlogits: ArrayLike, forward: ForwardPass, layers: Sequence[dict], *, activation: Callable = relu
) -> BackwardPass:
    """The gradient of every layer, from the error at the output carried back through the layers.

        δ_L = ∂L/∂z_L                                                               (11.6)
        δₗ = (δₗ₊₁ Wₗ₊₁ᵀ) ⊙ φ′(zₗ)                                                  (11.7)
        dWₗ = hₗ₋₁ᵀ δₗ,      dbₗ = Σ over the batch of δₗ                           (11.8)

    dlogits: δ_L (B, m)   forward: of forward_pass()   ->   gradient, errors δ₁ … δ_L, dx (B, n)

    With examples as columns, (11.7) and (11.8) are (Wᵀδ) ⊙ φ′ and δhᵀ. The factor of a mean over the batch is part
    of δ_L.
    Raises: ShapeError if the error does not have the shape of the logits.

    >>> layers = [{"weight": np.array([[1.0, -1.0]]), "bias": np.zeros(2)},
    ...           {"weight": np.ones((2, 1)), "bias": np.zeros(1)}]
    >>> backward_pass([[1.0]], forward_pass([[2.0]], layers), layers).gradient[0]
    {'weight': array([[2., 0.]]), 'bias': array([1., 0.])}
    """
    delta = np.asarray(dlogits, forward.logits.dtype)
    if delta.shape != forward.logits.shape:
        raise ShapeError(f"dlogits needs the shape of the logits, {forward.logits.shape}, got {delta.shape}")
    gradient, errors = [], []
    for l in reversed(range(len(_require_layers("backward_pass", layers)))):
        h = forward.inputs[l]
        errors.insert(0, delta)
        gradient.insert(0, {"weight": h.T @ delta, "bias": delta.sum(axis=0)})
        dh = delta @ np.asarray(layers[l]["weight"]).T  # (B, n)
        if l > 0:
            delta = dh * activation_derivative(activation, forward.pre_activations[l - 1])
    return BackwardPass(gradient, errors, dh)
