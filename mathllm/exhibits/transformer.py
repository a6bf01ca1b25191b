"""Chapter 12: the gradient of layer norm, as a source document prints it."""

import numpy as np

from ..autodiff import ArrayLike
from ..shapes import contract


@contract("D, D, D -> D")
def layer_norm_gradient_as_printed(x: ArrayLike, gain: ArrayLike, dy: ArrayLike, epsilon: float = 1e-5) -> np.ndarray:
    """A printed gradient of layer norm, with two errors: γ outside the bracket, and σ² without ε in the last term.

        dx = γ/√(σ²+ε) ⊙ (dy − mean(dy) − (x−μ)/σ² · mean(dy ⊙ (x−μ)))

    It is right for every x and dy only if all entries of the gain are equal and ε = 0 (or D is below 3 and ε = 0):
    compare with (12.5).

    >>> x, dy = np.array([0.5, -1.2, 2.0, 0.3]), np.array([0.7, -0.3, 0.9, 0.4])
    >>> layer_norm_gradient_as_printed(x, np.ones(4), dy, epsilon=0).round(3)
    array([ 0.209, -0.104, -0.116,  0.011])
    """
    centred = x - np.mean(x)
    variance = np.mean(centred**2)
    bracket = dy - np.mean(dy) - centred / variance * np.mean(dy * centred)
    return gain / np.sqrt(variance + epsilon) * bracket
