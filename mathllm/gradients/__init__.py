"""If one number is nudged, how much does the result move?

That is a derivative; the derivatives in all directions together are the gradient, and they say where to step to make a
loss smaller. This chapter measures derivatives by nudging, works them out for polynomials by rule and for everything
built from primitives by pullbacks, and reads off the second derivatives what kind of place a flat place is. It adds the
functions that make networks more than matrix products, each with its slope.

    numerical.py    slopes by small differences: derivative, gradient, Jacobian, Hessian
    polynomials.py  the power rule, on paper
    critical.py     minimum, maximum or saddle point
    activations.py  ReLU, GELU, SiLU and the gated SwiGLU
"""

# What the modules define, written by tools/build_exports.py
from .activations import dead_units, erf, gelu, gelu_tanh, leaky_relu, relu, silu, swiglu
from .critical import classify_critical_point
from .numerical import (
    jacobian, numerical_derivative, numerical_gradient, numerical_hessian, numerical_jacobian, secant_slope,
)  # fmt: skip
from .polynomials import partial_derivative

__all__ = [
    "classify_critical_point", "dead_units", "erf", "gelu", "gelu_tanh", "jacobian", "leaky_relu",
    "numerical_derivative", "numerical_gradient", "numerical_hessian", "numerical_jacobian", "partial_derivative",
    "relu", "secant_slope", "silu", "swiglu",
]  # fmt: skip
