"""Which of the many weights is to blame, and by how much?

The loss is one number at the end of a long chain. Going back along the chain once, with one error per layer, gives the
gradient of every weight for about twice the price of computing the loss. This chapter builds networks of layers,
writes the recurrence out beside `value_and_grad`, follows every number of the smallest network, and asks what becomes
of an error on a long way back.

    initialization.py  where descent begins
    networks.py        a layer, and layers in a row
    logistic.py        sigmoid and binary cross-entropy: prediction minus truth
    recurrence.py      forward pass, backward pass
    trace.py           the 2-2-1 network of document 004, every number by name
    xor.py             the network that learns exclusive or
    value.py           reverse mode for single numbers, in fifty lines
    perturbation.py    the gradient by trying, and what it costs
    approximation.py   any curve from bumps; teeth from folds
    depth.py           vanishing and exploding gradients, residual connections
    listings.py        the listing of document 001, printed and mended
    bugs.py            six common bugs, broken and mended
"""

# What the modules define, written by tools/build_exports.py
from .approximation import approximation_error, bump_network, hat_network, sawtooth_network
from .bugs import (
    COMMON_BUGS, CommonBug, attention_to_padding, attention_without_padding, descent_too_fast, descent_with_warmup,
    descent_with_zeroing, descent_without_zeroing, linear_in_order, linear_transposed, log_probabilities_stable,
    log_probabilities_unstable, softmax_over_keys, softmax_over_queries,
)  # fmt: skip
from .depth import (
    DepthProfile, EXPLODING_PAIR, VANISHING_PAIR, deep_network, depth_profile, gradient_bounds, jacobian_product,
    layer_jacobians, residual, spectral_radius,
)  # fmt: skip
from .initialization import he_scale, initial_weights, xavier_scale
from .listings import (
    listing_backward, listing_backward_as_printed, listing_forward, listing_forward_as_printed, listing_gradient_gap,
    listing_problem,
)  # fmt: skip
from .logistic import binary_cross_entropy
from .networks import activation_slope, dense_layer, mlp_forward, mlp_init
from .perturbation import GradientCost, PerturbedGradient, gradient_cost, perturbation_gradient, perturbation_passes
from .recurrence import BackwardPass, ForwardPass, backward_pass, forward_pass
from .trace import Trace, trace_network
from .value import Value
from .xor import XOR_INPUTS, XOR_TARGETS, XorRun, train_xor, xor_init

__all__ = [
    "BackwardPass", "COMMON_BUGS", "CommonBug", "DepthProfile", "EXPLODING_PAIR", "ForwardPass", "GradientCost",
    "PerturbedGradient", "Trace", "VANISHING_PAIR", "Value", "XOR_INPUTS", "XOR_TARGETS", "XorRun", "activation_slope",
    "approximation_error", "attention_to_padding", "attention_without_padding", "backward_pass",
    "binary_cross_entropy", "bump_network", "deep_network", "dense_layer", "depth_profile", "descent_too_fast",
    "descent_with_warmup", "descent_with_zeroing", "descent_without_zeroing", "forward_pass", "gradient_bounds",
    "gradient_cost", "hat_network", "he_scale", "initial_weights", "jacobian_product", "layer_jacobians",
    "linear_in_order", "linear_transposed", "listing_backward", "listing_backward_as_printed", "listing_forward",
    "listing_forward_as_printed", "listing_gradient_gap", "listing_problem", "log_probabilities_stable",
    "log_probabilities_unstable", "mlp_forward", "mlp_init", "perturbation_gradient", "perturbation_passes",
    "residual", "sawtooth_network", "softmax_over_keys", "softmax_over_queries", "spectral_radius", "trace_network",
    "train_xor", "xavier_scale", "xor_init",
]  # fmt: skip
