"""One neuron answers to many features, and yet each feature can be read: not from a neuron, but from a direction."""

import numpy as np

from ..errors import ShapeError


def neuron_correlations(activations, features) -> np.ndarray:
    """How well each neuron, alone, tells how strong each feature is.

        C_fi = correlation of feature f with neuron i                               (16.18)

    activations: (n, D)   features: (n, F)   ->   (F, D), from −1 to 1; 0 for a neuron that never changes

    Raises: ShapeError if the examples do not match, or are fewer than two.
    Source: 004, superposition (polysemantic neurons).

    >>> neuron_correlations([[1.0, 5.0], [2.0, 5.0], [3.0, 5.0]], [[0.0], [1.0], [2.0]])
    array([[1., 0.]])
    """
    activations, features = _matched("neuron_correlations", activations, features)
    return _standard(features).T @ _standard(activations) / len(features)


def direction_correlations(activations, features) -> np.ndarray:
    """How well the best direction in activation space tells how strong each feature is.

        r_f = correlation of feature f with x · w_f,      w_f by least squares      (16.19)

    activations: (n, D)   features: (n, F)   ->   (F,), 0 … 1; never below the best neuron, which is a direction, too

    Raises: ShapeError if the examples do not match, or are fewer than two.
    Source: 004, superposition: the features are "directions in activation space".

    >>> x = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    >>> direction_correlations(x, x[:, :1] + x[:, 1:]).round(6)  # each of the two neurons alone gives 0.71
    array([1.])
    """
    activations, features = _matched("direction_correlations", activations, features)
    x, y = _standard(activations), _standard(features)
    read = x @ np.linalg.lstsq(x, y, rcond=None)[0]
    return np.sqrt(np.clip(np.mean(read * y, axis=0), 0, 1))  # of a least-squares fit, r² = ⟨fit, y⟩


def features_per_neuron(activations, features, threshold: float = 0.2) -> np.ndarray:
    """Of how many features each neuron says something: 1 for a monosemantic neuron, more for a polysemantic one.

    activations: (n, D)   features: (n, F)   threshold: of the absolute correlation   ->   (D,) int

    Raises: as `neuron_correlations`.
    Source: 004, superposition (polysemantic neurons).

    >>> features = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]])
    >>> features_per_neuron(np.c_[features[:, 0], features.sum(axis=1)], features)
    array([1, 2])
    """
    return np.sum(np.abs(neuron_correlations(activations, features)) > threshold, axis=0)


def _standard(x):
    """Mean 0 and variance 1 for each column; zeros for one that never changes."""
    centred = x - x.mean(axis=0)
    spread = centred.std(axis=0)
    still = spread <= 1e-12 * np.abs(x).max(axis=0, initial=0)
    return np.where(still, 0, centred / np.where(still, 1, spread))


def _matched(name, activations, features):
    activations, features = np.asarray(activations, float), np.asarray(features, float)
    if activations.ndim != 2 or features.ndim != 2 or len(activations) != len(features) or len(features) < 2:
        raise ShapeError(
            f"{name}() needs activations (n, D) and features (n, F) of at least two examples, "
            f"got shapes {activations.shape} and {features.shape}"
        )
    return activations, features
