"""Yes or no: sigmoid and binary cross-entropy, joined so that the gradient is the error itself."""

import numpy as np

from ..autodiff import primitive
from ..errors import ShapeError
from ..exponentials import sigmoid, softplus


@primitive(nondiff=("targets",))
def binary_cross_entropy(logits, targets, *, reduction="mean"):
    """Surprise, in nats, of a yes/no prediction at what was true, computed from logits.

        L = −[y ln ŷ + (1−y) ln(1−ŷ)] = y softplus(−z) + (1−y) softplus(z),   ŷ = σ(z)   (11.3)
        dz = ŷ − y                                      prediction minus truth      (11.4)

    logits: z, any shape   targets: y in [0, 1], the same shape   ->   one number; z's shape with reduction="none"

    ∂L/∂ŷ = (ŷ − y)/(ŷ(1−ŷ)) grows without bound where the sigmoid is flat, and σ′ = ŷ(1−ŷ) cancels it exactly. So a
    confident error still learns, and nothing divides by zero. In floating point they only cancel if ŷ is never formed:
    hence logits.
    Raises: ShapeError if the shapes differ; ValueError for targets outside [0, 1], logits that are not finite, or a
    mean over nothing.
    Source: 004, backpropagation trace, steps 3 and 4.

    >>> round(float(binary_cross_entropy(1.1775, 1)), 4)
    0.2685
    >>> float(binary_cross_entropy([-10000.0, 10000.0], [1, 1]))
    5000.0
    """
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f'binary_cross_entropy() needs reduction "mean", "sum" or "none", got {reduction!r}')
    if logits.shape != targets.shape:
        raise ShapeError(
            "binary_cross_entropy() needs one target for each logit, "
            f"got shapes {logits.shape} and {targets.shape} (see chapter 11)"
        )
    if not np.all((targets >= 0) & (targets <= 1)):
        raise ValueError("binary_cross_entropy() needs targets from 0 to 1")
    if not np.all(np.isfinite(logits)):
        raise ValueError("binary_cross_entropy() needs finite logits")
    if reduction == "mean" and not logits.size:
        raise ValueError("binary_cross_entropy() needs at least one logit to take a mean")
    y = targets.astype(logits.dtype)
    losses = y * softplus(-logits) + (1 - y) * softplus(logits)
    share = 1 / logits.size if reduction == "mean" else 1.0

    def pullback(dloss):
        return (sigmoid(logits) - y) * dloss * share, None

    if reduction == "none":
        return losses, pullback
    total = losses.sum(dtype=np.promote_types(losses.dtype, np.float32)) * share
    with np.errstate(over="ignore"):  # a sum beyond the largest float16 is ∞
        return total.astype(losses.dtype), pullback
