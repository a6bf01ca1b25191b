"""Neurons and directions: how well a feature can be read from one neuron, and from a linear combination of all."""

import numpy as np

from ..autodiff import ArrayLike
from ..errors import ShapeError, all_within
from ..probability import least_squares
from ..shapes import contract


@contract("n D, n F -> F D")
def neuron_correlations(activations: ArrayLike, features: ArrayLike) -> np.ndarray:
    """The correlation of each feature with each neuron.

        ρ_ij = correlation of feature i with neuron j                               (16.18)

    Correlations lie between −1 and 1; they are 0 for a neuron or a feature that never changes.

    Raises: ShapeError for fewer than two examples; ValueError for NaN or ∞.

    >>> neuron_correlations([[1.0, 5.0], [2.0, 5.0], [3.0, 5.0]], [[0.0], [1.0], [2.0]])
    array([[1., 0.]])
    """
    x, y = _standardized("neuron_correlations", activations=activations, features=features)
    correlations = np.clip(y.T @ x / len(x), -1, 1)  # rounding may step over the edge
    return correlations.astype(np.result_type(activations, features, 1.0))


@contract("n D, n F -> F")
def direction_correlations(activations: ArrayLike, features: ArrayLike) -> np.ndarray:
    """The correlation of each feature with the direction in activation space from which it is read best.

        ρ_i = correlation of feature i with x · t_i,      t_i by least squares      (16.19)

    Correlations lie between 0 and 1, and are never below that of the best neuron, which is a direction, too.

    Raises: ShapeError for fewer than two examples; ValueError for NaN or ∞.

    >>> x = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    >>> direction_correlations(x, x[:, :1] + x[:, 1:]).round(6)  # each of the two neurons alone gives 0.71
    array([1.])
    """
    x, y = _standardized("direction_correlations", activations=activations, features=features)
    prediction = x @ least_squares(x, y)
    squares = np.clip(np.mean(prediction * y, axis=0), 0, 1)  # of a least-squares fit, r² = ⟨fit, y⟩
    return np.sqrt(squares).astype(np.result_type(activations, features, 1.0))


def _standardized(function, **arrays):
    """Yields the arrays, each column with mean 0 and variance 1, or zeros if it never changes."""
    all_within(function, "(-∞, ∞)", **arrays)
    for x in arrays.values():
        if len(x) < 2:
            raise ShapeError(f"{function}() needs at least two examples, got {len(x)} (see chapter 16)")
        centred = x - x.mean(axis=0, dtype=float)
        spread = centred.std(axis=0)
        constant = spread <= 1e-12 * np.abs(x).max(axis=0, initial=0)  # up to rounding of the mean
        yield np.where(constant, 0, centred / np.where(constant, 1, spread))
