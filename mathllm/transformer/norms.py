"""How do the numbers in a deep network keep a size with which it can learn? Three norms, and what they average over."""

import numpy as np

from ..autodiff import Array, WithPullback, primitive


@primitive(shapes="... D+, D, D -> ... D")
def layer_norm(x: Array, gain: Array, bias: Array, *, epsilon: float = 1e-5) -> WithPullback:
    """Layer norm: shift and scale each vector to mean 0 and variance 1, then multiply by a gain and add a bias.

        y = γ ⊙ x̂ + β,      x̂ = (x − μ) / s,      s = √(σ² + ε)                     (12.2)
        dx = (u − mean(u) − x̂ mean(u ⊙ x̂)) / s   with u = γ ⊙ dy                    (12.5)
        dγ = Σ dy ⊙ x̂,   dβ = Σ dy, over all vectors

    The variance divides by D, not by D − 1.
    Raises: ShapeError if gain or bias do not have the width of x; ValueError for numbers whose squares overflow.
    Source: Ba et al. 2016.

    >>> layer_norm([1.0, 2.0, 3.0, 4.0], np.ones(4), np.zeros(4), epsilon=0).round(4)
    array([-1.3416, -0.4472,  0.4472,  1.3416])
    """
    unit, unit_pullback = _standardized("layer_norm", x, epsilon, axis=-1)
    return unit * gain + bias, lambda dy: (unit_pullback(dy * gain), dy * unit, dy)


@primitive(shapes="... D+, D -> ... D")
def rms_norm(x: Array, gain: Array, *, epsilon: float = 1e-5) -> WithPullback:
    """RMS norm: scale each vector to root mean square 1, then multiply by a gain.

        y = γ ⊙ x̂,      x̂ = x / r,      r = √(mean(x²) + ε)                         (12.3)
        dx = (u − x̂ mean(u ⊙ x̂)) / r   with u = γ ⊙ dy;      dγ = Σ dy ⊙ x̂, over all vectors (12.6)

    Raises: ShapeError if the gain does not have the width of x; ValueError for numbers whose squares overflow.
    Source: Zhang & Sennrich 2019, eq. 4.

    >>> rms_norm([1.0, 2.0, 3.0, 4.0], np.ones(4), epsilon=0).round(4)
    array([0.3651, 0.7303, 1.0954, 1.4606])
    """
    unit, unit_pullback = _standardized("rms_norm", x, epsilon, axis=-1, centre=False)
    return unit * gain, lambda dy: (unit_pullback(dy * gain), dy * unit)


@primitive(shapes="N++ D, D, D -> N D")
def batch_norm(x: Array, gain: Array, bias: Array, *, epsilon: float = 1e-5) -> WithPullback:
    """Batch norm in training: scale each feature to mean 0 and variance 1 over the examples of a batch.

        y = γ ⊙ (x − μ_B) / √(σ²_B + ε) + β,   μ_B, σ²_B per feature                (12.7)

    The result for one example depends on the others in its batch. A language model that generates one token at a time
    may have no others.
    Raises: ShapeError for fewer than two examples, or a gain of another width; ValueError for numbers whose squares
    overflow.
    Source: Ioffe & Szegedy 2015.

    >>> batch_norm([[1.0], [3.0]], np.ones(1), np.zeros(1), epsilon=0).ravel()
    array([-1.,  1.])
    """
    unit, unit_pullback = _standardized("batch_norm", x, epsilon, axis=0)
    return unit * gain + bias, lambda dy: (unit_pullback(dy * gain), dy * unit, dy)


def _standardized(name, x, epsilon, axis, centre=True):
    """(x − μ) / √(σ² + ε) along an axis, or x / √(mean(x²) + ε), and its pullback, whose g is the u of (12.5)."""
    wide = x.astype(np.promote_types(x.dtype, np.float32), copy=False)  # in float16, 256² is infinite
    centred, square = _centred(wide, axis) if centre else (wide, _mean_square(wide, axis))
    if np.any(square == np.inf):
        raise ValueError(f"{name}() needs numbers whose squares are finite in {square.dtype} (see chapter 12)")
    scale = 1 / np.sqrt(square + wide.dtype.type(epsilon))
    unit = (centred * scale).astype(x.dtype, copy=False)

    def pullback(g):
        along = unit * np.mean(g * unit, axis=axis, keepdims=True)
        dx = scale * ((g - g.mean(axis=axis, keepdims=True) if centre else g) - along)
        return dx.astype(x.dtype, copy=False)

    return unit, pullback


def _centred(x, axis):
    """x without its mean along an axis, and the mean of the squares of what is left."""
    mean = x.mean(axis=axis, keepdims=True)
    centred = x - mean
    square = _mean_square(centred, axis)
    if np.any(np.abs(mean) > 10 * np.sqrt(square)):  # beside small differences, the rounding of the mean is not small
        shifted = x - x.take([0], axis=axis)  # exactly 0 for equal numbers
        centred = shifted - shifted.mean(axis=axis, keepdims=True)
        square = _mean_square(centred, axis)
    return centred, square


def _mean_square(x, axis):
    return np.mean(x * x, axis=axis, keepdims=True)
