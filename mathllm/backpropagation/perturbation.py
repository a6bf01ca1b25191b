"""The gradient by perturbing every parameter, and the cost of this method and of backpropagation."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ..autodiff import ArrayLike
from ..errors import within
from ..gradients import numerical_gradient
from ..matrices import multiply_adds
from ..shapes import real_array


class PerturbedGradient(NamedTuple):
    """A gradient found by perturbation, and the number of times the loss was computed.

    >>> perturbation_gradient(lambda w: float(np.sum(w)), np.zeros(4)).passes
    5
    """

    gradient: np.ndarray
    passes: int


def perturbation_gradient(
    loss: Callable, x: ArrayLike, *, central: bool = False, h: float | None = None
) -> PerturbedGradient:
    """The gradient from finite differences: change one parameter at a time by h, and compute the loss again.

        forward   [L(x + h eᵢ) − L(x)] / h                   n + 1 passes, error ∝ h      (11.10)
        central   [L(x + h eᵢ) − L(x − h eᵢ)] / 2h           2n passes, error ∝ h²

    loss: one number at each point   x: any shape   h: by default √ε · max(1, |xᵢ|), for central differences
    ∛ε · max(1, |xᵢ|), with the rounding error ε = 2·10⁻¹⁶   ->   gradient, passes. The forward form also needs the loss
    at x itself, therefore n + 1.

    Raises: ValueError for a step that is not positive, or a loss that is not finite.

    >>> found = perturbation_gradient(lambda w: float(np.sum(w**2)), [3.0, 4.0], central=True)
    >>> found.gradient.round(6), found.passes
    (array([6., 8.]), 4)
    """
    calls = []

    def counted(point):
        calls.append(None)
        return loss(point)

    x = real_array("perturbation_gradient", x, np.float64)
    if h is not None:
        within("perturbation_gradient", "(0, ∞)", h=h)
    gradient = numerical_gradient(counted, x, h=h) if central else _forward_differences(counted, x, h)
    if not np.all(np.isfinite(gradient)):
        raise ValueError("perturbation_gradient() needs a loss that is finite around x")
    return PerturbedGradient(gradient, len(calls))


def _forward_differences(loss, x, h):
    start, gradient = loss(x), np.zeros_like(x)
    for entry in np.ndindex(x.shape):
        moved = x.copy()
        moved[entry] += np.sqrt(np.finfo(np.float64).eps) * max(1, abs(x[entry])) if h is None else h
        gradient[entry] = (loss(moved) - start) / (moved[entry] - x[entry])
    return gradient


class GradientCost(NamedTuple):
    """Multiplications (each with its addition) for one gradient of a network, by method.

    >>> gradient_cost([64, 48], batch_size=32).backward
    196608
    """

    parameters: int
    forward: int  # one forward pass
    backward: int  # one backward pass
    reverse_mode: int  # forward and backward: all gradients
    forward_differences: int
    central_differences: int


def gradient_cost(sizes: Sequence[int], batch_size: int = 1) -> GradientCost:
    """The cost of the matrix products for one gradient, by backpropagation and by perturbation.

        Y = XW: B·n·m      dX = dY Wᵀ and dW = XᵀdY: B·n·m each, so backward = 2 · forward      (11.11)

    sizes: units of every layer   batch_size: B   ->   GradientCost

    With P parameters, perturbation costs P + 1 or 2P forward passes, and reverse mode three: O(P²) against O(P). (The
    dX of the first layer is counted although nothing needs it.)
    Raises: ValueError for fewer than two sizes.

    >>> cost = gradient_cost([64, 48], batch_size=32)
    >>> cost.backward / cost.forward, cost.forward_differences // cost.reverse_mode
    (2.0, 1040)
    """
    within("gradient_cost", "[2, ∞)", number_of_sizes=len(sizes))
    pairs = list(pairwise(sizes))
    parameters = sum(n * m + m for n, m in pairs)
    forward = sum(multiply_adds((batch_size, n), (n, m)) for n, m in pairs)
    inputs = sum(multiply_adds((batch_size, m), (m, n)) for n, m in pairs)
    weights = sum(multiply_adds((n, batch_size), (batch_size, m)) for n, m in pairs)
    backward = inputs + weights
    perturbed = (parameters + 1) * forward, 2 * parameters * forward  # with forward and with central differences
    return GradientCost(parameters, forward, backward, forward + backward, *perturbed)
