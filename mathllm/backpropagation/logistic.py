"""Logistic output: sigmoid and binary cross-entropy joined, so that the gradient is prediction minus target."""

import numpy as np

from ..autodiff import Array, WithPullback, primitive
from ..cross_entropy import divisor
from ..errors import all_within
from ..exponentials import sigmoid, softplus


@primitive(nondiff=("targets",), shapes="*, *")
def binary_cross_entropy(logits: Array, targets: Array, *, reduction: str = "mean") -> WithPullback:
    """Negative log-likelihood, in nats, of yes/no targets, computed from logits.

        L = −[y ln ŷ + (1−y) ln(1−ŷ)] = y softplus(−z) + (1−y) softplus(z),   ŷ = σ(z)   (11.3)
        dz = ŷ − y                                      prediction minus target     (11.4)

    logits: z   targets: y in [0, 1]   ->   one number, or one for each logit with reduction="none"

    ∂L/∂ŷ = (ŷ − y)/(ŷ(1−ŷ)) is unbounded where the sigmoid is flat, and σ′ = ŷ(1−ŷ) cancels it exactly: a confident
    wrong prediction still has a gradient, and there is no division by zero. In floating point they cancel only if ŷ is
    never computed; therefore the arguments are logits.
    Raises: ShapeError if the shapes differ; ValueError for targets outside [0, 1], logits that are not finite, or a
    mean over nothing.

    >>> round(float(binary_cross_entropy(1.1775, 1)), 4)
    0.2685
    >>> float(binary_cross_entropy([-10000.0, 10000.0], [1, 1]))
    5000.0
    """
    all_within("binary_cross_entropy", "[0, 1]", targets=targets)
    all_within("binary_cross_entropy", "(-∞, ∞)", logits=logits)
    share = 1 / divisor("binary_cross_entropy", reduction, logits.size)
    y = targets.astype(logits.dtype)
    losses = y * softplus(-logits) + (1 - y) * softplus(logits)

    def pullback(dloss):
        difference = (1 - y) * sigmoid(logits) - y * sigmoid(-logits)  # ŷ − y: subtracted directly it would lose digits
        return difference * dloss * share, None

    if reduction == "none":
        return losses, pullback
    total = losses.sum(dtype=np.promote_types(losses.dtype, np.float32)) * share
    with np.errstate(over="ignore"):  # a sum beyond the largest float16 is ∞
        return total.astype(losses.dtype), pullback
