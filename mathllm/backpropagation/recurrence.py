"""Backpropagation written out: one error per layer, from the last to the first."""

from typing import NamedTuple

import numpy as np

from ..errors import ShapeError
from ..gradients import relu
from ..matrices import linear
from .networks import _require_layers, activation_slope


class ForwardPass(NamedTuple):
    """What the forward pass keeps because the backward pass needs it.

    >>> layer = {"weight": np.eye(1), "bias": np.ones(1)}
    >>> forward_pass([[2.0]], [layer, layer]).inputs
    [array([[2.]]), array([[3.]])]
    """

    logits: np.ndarray  # z_L
    inputs: list[np.ndarray]  # h₀ … h_{L−1}: what each layer was given
    pre_activations: list[np.ndarray]  # z₁ … z_L


class BackwardPass(NamedTuple):
    """What the backward pass finds: the gradient, in the structure of the layers, and the errors it went through.

    >>> layer = {"weight": 2 * np.eye(1), "bias": np.zeros(1)}
    >>> backward_pass([[1.0]], forward_pass([[5.0]], [layer, layer]), [layer, layer]).errors
    [array([[2.]]), array([[1.]])]
    """

    gradient: list[dict[str, np.ndarray]]
    errors: list[np.ndarray]  # δ₁ … δ_L
    dx: np.ndarray


def forward_pass(x, layers, *, activation=relu) -> ForwardPass:
    """Compute the network of (11.2) and keep every intermediate value.

    x: (B, n)   layers: as mlp_init() makes them   ->   logits (B, m), inputs, pre-activations

    Raises: ShapeError for no layers, sizes that do not fit, or an x that is no batch.
    Source: 001, §4.4; 004, recipe, step 1.

    >>> layer = {"weight": np.eye(2), "bias": np.zeros(2)}
    >>> forward_pass([[3.0, -4.0]], [layer, layer]).logits
    array([[3., 0.]])
    """
    h = np.asarray(x)
    if h.ndim != 2:
        raise ShapeError(f"forward_pass() needs a batch (B, n) of examples, got shape {h.shape} (see chapter 11)")
    inputs, pre_activations = [], []
    for number, layer in enumerate(_require_layers("forward_pass", layers), 1):
        inputs.append(h)
        z = linear(h, layer["weight"], layer["bias"])  # (B, m)
        pre_activations.append(z)
        h = activation(z) if number < len(layers) else z
    return ForwardPass(h, inputs, pre_activations)


def backward_pass(dlogits, forward: ForwardPass, layers, *, activation=relu) -> BackwardPass:
    """Carry the error at the output back through the layers, and read every gradient off on the way.

        δ_L = ∂L/∂z_L                                                               (11.6)
        δₗ = (δₗ₊₁ Wₗ₊₁ᵀ) ⊙ φ′(zₗ)                                                  (11.7)
        dWₗ = hₗ₋₁ᵀ δₗ,      dbₗ = Σ over the batch of δₗ                           (11.8)

    dlogits: δ_L (B, m)   forward: from forward_pass()   ->   gradient, errors δ₁ … δ_L, dx (B, n)

    In the documents' column notation, (11.7) and (11.8) read (Wᵀδ) ⊙ φ′ and δhᵀ. A mean over the batch is part of δ_L.
    Raises: ShapeError if the error has not the shape of the logits.
    Source: 001, §4.4; 004, recipe, steps 2 and 3; 000, step 5.

    >>> layers = [{"weight": np.array([[1.0, -1.0]]), "bias": np.zeros(2)}, {"weight": np.ones((2, 1)), "bias": [0.0]}]
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
            delta = dh * activation_slope(activation, forward.pre_activations[l - 1])
    return BackwardPass(gradient, errors, dh)
