"""How does the loss change with each of the numbers that it was computed from?

A *primitive* is a function that returns two things: its value, and its pullback, which computes the gradient of the
loss with respect to the arguments from the gradient with respect to the value. Called on arrays, a primitive is an
ordinary function. Called on tensors, it also records its arguments and its pullback. Reverse-mode differentiation goes
through these records from the loss to the parameters, and calls each pullback. The training loop of the book,
`ml.train`, uses this package.

    tensor.py      primitives and tensors: computing and recording
    arithmetic.py  + − · / @, sums and shapes of tensors
    backward.py    value_and_grad, grad, vjp: from the loss back to the parameters
    differences.py derivatives from the values at two nearby points
    check.py       the gradient check: pullbacks against central differences
"""

from . import arithmetic as _arithmetic  # noqa: F401  gives tensors their operators

# What the modules define, written by tools/build_exports.py
from .backward import backpropagate, grad, value_and_grad, vjp
from .check import GradientCheck, check_gradient
from .differences import central_difference, hessian_vector_product
from .tensor import Array, ArrayLike, Tensor, WithPullback, primitive, sum_to

__all__ = [
    "Array", "ArrayLike", "GradientCheck", "Tensor", "WithPullback", "backpropagate", "central_difference",
    "check_gradient", "grad", "hessian_vector_product", "primitive", "sum_to", "value_and_grad", "vjp",
]  # fmt: skip
