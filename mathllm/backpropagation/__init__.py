"""How does the loss depend on each of a million weights?

The loss is one number at the end of a long chain of layers. One backward pass along the chain, with one error for each
layer, computes the gradient of every weight for about twice the cost of the forward pass. This chapter builds networks
of layers, writes the recurrence out beside `value_and_grad`, and measures what many layers do to a gradient.

    initialization.py  initial weights
    networks.py        a layer, and layers in a row
    logistic.py        sigmoid and binary cross-entropy: prediction minus target
    recurrence.py      forward pass, backward pass
    value.py           reverse mode for single numbers, in fifty lines
    perturbation.py    the gradient by finite differences, and its cost
    approximation.py   curves approximated by networks
    depth.py           vanishing and exploding gradients, residual connections
"""

# What the modules define, written by tools/build_exports.py
from .approximation import approximation_error, bump_network, hat_network, sawtooth_network
from .depth import (
    DepthProfile, deep_network, depth_profile, gradient_bounds, jacobian_product, residual, spectral_radius,
)  # fmt: skip
from .initialization import he_scale, initial_weights, xavier_scale
from .logistic import binary_cross_entropy
from .networks import activation_derivative, dense_layer, mlp_forward, mlp_init
from .perturbation import GradientCost, PerturbedGradient, gradient_cost, perturbation_gradient
from .recurrence import BackwardPass, ForwardPass, backward_pass, forward_pass
from .value import Value

__all__ = [
    "BackwardPass", "DepthProfile", "ForwardPass", "GradientCost", "PerturbedGradient", "Value",
    "activation_derivative", "approximation_error", "backward_pass", "binary_cross_entropy", "bump_network",
    "deep_network", "dense_layer", "depth_profile", "forward_pass", "gradient_bounds", "gradient_cost", "hat_network",
    "he_scale", "initial_weights", "jacobian_product", "mlp_forward", "mlp_init", "perturbation_gradient", "residual",
    "sawtooth_network", "spectral_radius", "xavier_scale",
]  # fmt: skip
