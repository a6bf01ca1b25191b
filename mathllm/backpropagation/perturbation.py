"""Why not simply try? What a gradient costs by nudging every weight, and what it costs by going backwards once."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ..gradients import numerical_gradient
from ..matrices import multiply_adds


class PerturbedGradient(NamedTuple):
    """A gradient found by trying, and how often the loss had to be computed.

    >>> perturbation_gradient(lambda w: float(np.sum(w)), np.zeros(4)).passes
    5
    """

    gradient: np.ndarray
    passes: int


def perturbation_gradient(loss: Callable, x, *, central: bool = False, h: float | None = None) -> PerturbedGradient:
    """The gradient from n nudges: each parameter is moved by h, and the loss computed again.

        forward   [L(x + h eᵢ) − L(x)] / h                   n + 1 passes, error ∝ h      (11.10)
        central   [L(x + h eᵢ) − L(x − h eᵢ)] / 2h           2n passes, error ∝ h²

    loss: one number at each place   x: any shape   h: by default √ε, and what (8.4) takes   ->   gradient, passes

    Document 001 counts n passes: it leaves out the loss at x itself (erratum B19).
    Raises: ValueError for a step that is not positive, or a loss that is not finite.
    Source: 001, §4.4.

    >>> found = perturbation_gradient(lambda w: float(np.sum(w**2)), [3.0, 4.0], central=True)
    >>> found.gradient.round(6), found.passes
    (array([6., 8.]), 4)
    """
    calls = []

    def counted(place):
        calls.append(None)
        return loss(place)

    x = np.asarray(x, np.float64)
    if central:
        return PerturbedGradient(numerical_gradient(counted, x, h=h), len(calls))
    steps = np.sqrt(np.finfo(np.float64).eps) * np.maximum(1, np.abs(x)) if h is None else np.full(x.shape, float(h))
    if not np.all(steps > 0):
        raise ValueError(f"perturbation_gradient() needs a positive step, got {h}")
    here, gradient = counted(x), np.zeros_like(x)
    for entry in np.ndindex(x.shape):
        moved = x.copy()
        moved[entry] += steps[entry]
        gradient[entry] = (counted(moved) - here) / (moved[entry] - x[entry])
    if not np.all(np.isfinite(gradient)):
        raise ValueError("perturbation_gradient() needs a loss that is finite around x")
    return PerturbedGradient(gradient, len(calls))


def perturbation_passes(parameters: int, *, central: bool = False) -> int:
    """How many forward passes the perturbation method needs.

        n + 1 with forward differences, 2n with central ones                        (11.11)

    Source: 001, §4.4 (erratum B19).

    >>> perturbation_passes(1000), perturbation_passes(1000, central=True)
    (1001, 2000)
    """
    if parameters < 1:
        raise ValueError(f"perturbation_passes() needs at least one parameter, got {parameters}")
    return 2 * parameters if central else parameters + 1


class GradientCost(NamedTuple):
    """Multiplications (each with its addition) that one gradient of a network costs, by method.

    >>> gradient_cost([64, 48], batch=32).backward
    196608
    """

    parameters: int
    forward: int  # one forward pass
    backward: int  # one backward pass
    reverse_mode: int  # forward and backward: all gradients
    forward_differences: int
    central_differences: int


def gradient_cost(sizes: Sequence[int], batch: int = 1) -> GradientCost:
    """Count what the matrix products of one gradient cost, by going backwards and by trying.

        Y = XW: B·n·m      dX = dY Wᵀ and dW = XᵀdY: B·n·m each, so backward = 2 · forward      (11.12)

    sizes: units of every layer   batch: B   ->   GradientCost

    With P parameters, trying costs P + 1 or 2P forward passes and reverse mode three: O(P²) against O(P). (The first
    layer could do without its dX.)
    Raises: ValueError for fewer than two sizes.
    Source: 001, §4.4; 003, ch. IX.

    >>> cost = gradient_cost([64, 48], batch=32)
    >>> cost.backward / cost.forward, cost.forward_differences // cost.reverse_mode
    (2.0, 1040)
    """
    if len(sizes) < 2:
        raise ValueError(f"gradient_cost() needs at least the sizes of input and output, got {list(sizes)}")
    pairs = list(pairwise(sizes))
    parameters = sum(n * m + m for n, m in pairs)
    forward = sum(multiply_adds((batch, n), (n, m)) for n, m in pairs)
    backward = sum(multiply_adds((batch, m), (m, n)) + multiply_adds((n, batch), (batch, m)) for n, m in pairs)
    return GradientCost(
        parameters,
        forward,
        backward,
        forward + backward,
        perturbation_passes(parameters) * forward,
        perturbation_passes(parameters, central=True) * forward,
    )
