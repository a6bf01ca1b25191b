"""Logistic output: sigmoid and binary cross-entropy joined, so that the gradient is prediction minus target."""

import numpy as np

from ..autodiff import Array, WithPullback, primitive
from ..errors import ShapeError
from ..exponentials import sigmoid, softplus


@primitive(nondiff=("targets",))
def binary_cross_entropy(logits: Array, targets: Array, *, reduction: str = "mean") -> WithPullback:
    """Negative log-likelihood, in nats, of yes/no targets, computed from logits.

        L = −[y ln ŷ + (1−y) ln(1−ŷ)] = y softplus(−z) + (1−y) softplus(z),   ŷ = σ(z)   (11.3)
        dz = ŷ − y                                      prediction minus target     (11.4)

    logits: z, any shape   targets: y in [0, 1], the same shape   ->   one number; z's shape with reduction="none"

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
    _check(logits, targets, reduction)
    y = targets.astype(logits.dtype)
    losses = y * softplus(-logits) + (1 - y) * softplus(logits)
    share = 1 / logits.size if reduction == "mean" else 1.0

    def pullback(dloss):
        difference = (1 - y) * sigmoid(logits) - y * sigmoid(-logits)  # ŷ − y: subtracted directly it would lose digits
        return difference * dloss * share, None

    if reduction == "none":
        return losses, pullback
    total = losses.sum(dtype=np.promote_types(losses.dtype, np.float32)) * share
    with np.errstate(over="ignore"):  # a sum beyond the largest float16 is ∞
        return total.astype(losses.dtype), pullback


def _check(logits, targets, reduction):
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
