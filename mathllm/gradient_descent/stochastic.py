"""A few examples at a time: cheaper steps in a direction that is right on average."""

from __future__ import annotations  # numpy.random is loaded when it is used

from collections.abc import Callable, Iterator

import numpy as np

from ..autodiff import grad
from ..errors import ShapeError
from .optimizers import sgd_init, sgd_step


def minibatches(examples: int, size: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Every example once, in random order, a few at a time: one epoch.

    examples: N   size: b   ->   index arrays of b entries, the last one with what is left

    Raises: ValueError for a size below 1.
    Source: 001, §3.2.1; 003, ch. IX.

    >>> [len(batch) for batch in minibatches(10, 4, np.random.default_rng(0))]
    [4, 4, 2]
    """
    if size < 1:
        raise ValueError(f"minibatches() needs a size of at least 1, got {size}")
    order = rng.permutation(examples)
    return (order[start : start + size] for start in range(0, examples, size))


def minibatch_variance(gradients, size: int, *, replacement: bool = True):
    """How much the mean gradient of a random minibatch varies; its mean is the gradient of all examples.

        E[ḡ] = g,      Var[ḡ] = σ²/b,      without replacement times (N − b)/(N − 1) (9.2)

    gradients: (N, ...), one for each example   size: b   ->   (...), the variance of each component

    Raises: ShapeError without examples; ValueError for a size below 1, or above N without replacement.
    Source: 001, §3.2.1; 002, SGD and generalization.

    >>> [float(minibatch_variance([1.0, 3.0], size)) for size in (1, 2, 4)]
    [1.0, 0.5, 0.25]
    """
    gradients = np.asarray(gradients, np.float64)
    if gradients.ndim == 0 or len(gradients) == 0:
        raise ShapeError(f"minibatch_variance() needs one gradient for each example, got shape {gradients.shape}")
    N = len(gradients)
    if size < 1 or (size > N and not replacement):
        raise ValueError(f"minibatch_variance() needs a size from 1 to the {N} examples, got {size}")
    correction = 1.0 if replacement else (N - size) / max(N - 1, 1)
    return gradients.var(axis=0) / size * correction


def descent_path(
    loss: Callable,
    start,
    steps: int,
    *,
    learning_rate,
    init: Callable = sgd_init,
    step: Callable = sgd_step,
    **options,
) -> np.ndarray:
    """The places a descent visits: start, and after every step.

    loss: built from primitives, one number at each place (x,)   learning_rate: a number, or a function of the step
    1, 2, …   init, step: an optimiser, with its options   ->   (steps + 1, …)

    Raises: ValueError for a negative number of steps; what the optimiser refuses, such as a descent that diverged.
    Source: 003, ch. IX, figure 6.

    >>> descent_path(lambda w: (w * w).sum(), [8.0], 3, learning_rate=0.25).ravel()
    array([8., 4., 2., 1.])
    """
    if steps < 0:
        raise ValueError(f"descent_path() needs a number of steps that is not negative, got {steps}")
    rate = learning_rate if callable(learning_rate) else lambda t: learning_rate
    place = np.asarray(start)
    place = place if place.dtype.kind == "f" else place.astype(np.float64)
    state, path = init(place), [place]
    for t in range(1, steps + 1):
        place, state = step(place, grad(loss)(place), state, learning_rate=rate(t), **options)
        path.append(place)
    return np.stack(path)
