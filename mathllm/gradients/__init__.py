"""If an input changes by a small amount, by how much does the result change?

The answer is the derivative. The derivatives with respect to all inputs together are the gradient, and a small step
against the gradient makes a loss smaller. This chapter measures derivatives by finite differences, works them out for
polynomials by the power rule and for everything built from primitives by pullbacks, and classifies critical points by
the second derivatives. It adds the activation functions of neural networks, each with its derivative.

    numerical.py    finite differences: derivative, gradient, Jacobian, Hessian
    polynomials.py  the power rule
    critical.py     minimum, maximum or saddle point
    activations.py  ReLU, GELU, SiLU and the gated SwiGLU
"""

# What the modules define, written by tools/build_exports.py
from .activations import erf, gelu, gelu_tanh, relu, silu, swiglu
from .critical import classify_critical_point
from .numerical import (
    jacobian, numerical_derivative, numerical_gradient, numerical_hessian, numerical_jacobian, secant_slope,
)  # fmt: skip
from .polynomials import partial_derivative

__all__ = [
    "classify_critical_point", "erf", "gelu", "gelu_tanh", "jacobian", "numerical_derivative", "numerical_gradient",
    "numerical_hessian", "numerical_jacobian", "partial_derivative", "relu", "secant_slope", "silu", "swiglu",
]  # fmt: skip
