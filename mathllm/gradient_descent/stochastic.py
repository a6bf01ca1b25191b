"""Minibatches, the variance of their gradients, and the training loop."""

from __future__ import annotations  # numpy.random is loaded when it is used

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from numbers import Integral
from typing import Any

import numpy as np

from ..autodiff import ArrayLike, value_and_grad
from ..errors import ShapeError, within
from ..shapes import real_array
from .optimizers import sgd_init, sgd_step


def minibatch_variance(gradients: ArrayLike, batch_size: int, *, replacement: bool = True) -> np.ndarray:
    """The variance of the mean gradient of a random minibatch; its expectation is the gradient of all examples.

        E[ḡ] = g,      Var[ḡ] = s²/B,      without replacement times (N − B)/(N − 1) (9.5)

    gradients: (N, ...), one for each example   batch_size: B   ->   (...), the variance of each component

    Raises: ShapeError without examples; ValueError for a batch size below 1, or above N without replacement.

    >>> [float(minibatch_variance([1.0, 3.0], B)) for B in (1, 2, 4)]
    [1.0, 0.5, 0.25]
    """
    gradients = real_array("minibatch_variance", gradients, np.float64)
    if gradients.ndim == 0 or len(gradients) == 0:
        raise ShapeError(f"minibatch_variance() needs one gradient for each example, got shape {gradients.shape}")
    N = len(gradients)
    within("minibatch_variance", "whole [1, ∞)" if replacement else f"whole [1, {N}]", batch_size=batch_size)
    correction = 1.0 if replacement else (N - batch_size) / max(N - 1, 1)
    return gradients.var(axis=0) / batch_size * correction


def descend(
    loss: Callable, params: Any, batches: Iterable[tuple] | int, *,
    learning_rate: float | Callable[[int], float], init: Callable = sgd_init, step: Callable = sgd_step, **options: Any,
) -> Iterator[tuple[int, Any, float]]:  # fmt: skip
    """The training loop: after each step its number, the new parameters, and the loss before the step.

        (L, g) = (L(θ; batch), ∇L(θ; batch)),      (θ, state) ← step(θ, g, state)

    loss: built from primitives, of params and what a batch holds   params: nested arrays
    batches: for each step a tuple, the further arguments of the loss; or the number of steps, if it has none
    learning_rate: a number, or a function of the step 1, 2, …   init, step: an optimiser, with its options

    Clipping the gradient before a step, or normalising the parameters after it, can be a part of `step`.
    Raises: ValueError for a negative number of steps; what the optimiser refuses, such as a descent that diverged.

    >>> start = {"weight": np.array([8.0])}
    >>> for number, params, loss in descend(lambda w: (w["weight"] ** 2).sum(), start, 3, learning_rate=0.25):
    ...     print(number, params["weight"], float(loss))
    1 [4.] 64.0
    2 [2.] 16.0
    3 [1.] 4.0
    """
    if isinstance(batches, Integral):
        within("descend", "[0, ∞)", steps=batches)
        batches = repeat((), batches)
    state = init(params)
    for number, batch in enumerate(batches, 1):
        value, gradient = value_and_grad(loss)(params, *batch)
        rate = learning_rate(number) if callable(learning_rate) else learning_rate
        params, state = step(params, gradient, state, learning_rate=rate, **options)
        yield number, params, value


def minimize(loss: Callable, params: Any, batches: Iterable[tuple] | int, **optimiser: Any) -> Any:
    """The parameters after the last step of descend(), which takes the same arguments.

    >>> minimize(lambda w: (w * w).sum(), np.array([8.0]), 3, learning_rate=0.25)
    array([1.])
    """
    last = deque(descend(loss, params, batches, **optimiser), maxlen=1)
    return last[0][1] if last else params


def descent_path(loss: Callable, start: ArrayLike, steps: int, **optimiser: Any) -> np.ndarray:
    """The points that a descent visits: the start, and the point after every step.

    loss: built from primitives, one number at each point (x,)   optimiser: learning_rate, init, step and options, as
    for descend()   ->   (steps + 1, …)

    Raises: as descend().

    >>> descent_path(lambda w: (w * w).sum(), [8.0], 3, learning_rate=0.25).ravel()
    array([8., 4., 2., 1.])
    """
    start = np.asarray(start) * 1.0
    return np.stack([start, *(point for _, point, _ in descend(loss, start, steps, **optimiser))])
