"""Keep the numbers of a deep network where it can learn: three ways to rescale, and what they average over."""

import numpy as np

from ..autodiff import primitive
from ..errors import ShapeError


@primitive
def layer_norm(x, gain, bias, *, epsilon: float = 1e-5):
    """Shift and scale each vector to mean 0 and variance 1, then by a learned gain and bias.

        y = γ ∘ x̂ + β,      x̂ = (x − μ) / √(σ² + ε)                                 (12.1)
        dx = (g − mean(g) − x̂ mean(g ∘ x̂)) / √(σ² + ε)   with g = γ ∘ dy            (12.2)
        dγ = Σ dy ∘ x̂,   dβ = Σ dy, over all vectors

    x: (..., D)   gain, bias: (D,)   ->   (..., D). The variance divides by D, not by D − 1.
    Raises: ShapeError if gain or bias do not have the width of x.
    Source: 001, §5.2; Ba et al. 2016. 002 prints the gradient with γ outside the bracket (erratum B3).

    >>> layer_norm([1.0, 2.0, 3.0, 4.0], np.ones(4), np.zeros(4), epsilon=0).round(4)
    array([-1.3416, -0.4472,  0.4472,  1.3416])
    """
    _require_width("layer_norm", x, gain, bias)
    wide = _wide(x)
    centred, square = _centred("layer_norm", wide, axis=-1)
    scale = 1 / np.sqrt(square + wide.dtype.type(epsilon))
    unit = (centred * scale).astype(x.dtype, copy=False)

    def pullback(dy):
        g = dy * gain
        dx = scale * (g - g.mean(axis=-1, keepdims=True) - unit * np.mean(g * unit, axis=-1, keepdims=True))
        return dx.astype(x.dtype, copy=False), dy * unit, dy

    return unit * gain + bias, pullback


def layer_norm_gradient_as_printed(x, gain, dy, epsilon: float = 1e-5) -> np.ndarray:
    """The gradient of 002, kept to show its error: γ outside the bracket and σ² without ε in the last term.

        dx = γ/√(σ²+ε) ∘ (dy − mean(dy) − (x−μ)/σ² · mean(dy ∘ (x−μ)))

    Right only for a gain that is one number and ε = 0 (erratum B3).

    >>> x, dy = np.array([0.5, -1.2, 2.0, 0.3]), np.array([0.7, -0.3, 0.9, 0.4])
    >>> layer_norm_gradient_as_printed(x, 1.0, dy, epsilon=0).round(3)
    array([ 0.209, -0.104, -0.116,  0.011])
    """
    centred = x - np.mean(x)
    variance = np.mean(centred**2)
    bracket = dy - np.mean(dy) - centred / variance * np.mean(dy * centred)
    return gain / np.sqrt(variance + epsilon) * bracket


@primitive
def rms_norm(x, gain, *, epsilon: float = 1e-5):
    """Scale each vector to unit root mean square, then by a learned gain.

        y = γ ∘ x / rms(x),      rms(x) = √(mean(x²) + ε)                           (12.3)
        dx = (g − u mean(g ∘ u)) / rms(x)   with u = x / rms(x), g = γ ∘ dy

    x: (..., D)   gain: (D,)   ->   (..., D)

    Raises: ShapeError if the gain does not have the width of x.
    Source: 001, §5.3; Zhang & Sennrich 2019, eq. 4.

    >>> rms_norm([1.0, 2.0, 3.0, 4.0], np.ones(4), epsilon=0).round(4)
    array([0.3651, 0.7303, 1.0954, 1.4606])
    """
    _require_width("rms_norm", x, gain)
    wide = _wide(x)
    square = _finite("rms_norm", np.mean(wide * wide, axis=-1, keepdims=True))
    inverse_rms = 1 / np.sqrt(square + wide.dtype.type(epsilon))
    unit = (wide * inverse_rms).astype(x.dtype, copy=False)

    def pullback(dy):
        g = dy * gain
        dx = inverse_rms * (g - unit * np.mean(g * unit, axis=-1, keepdims=True))
        return dx.astype(x.dtype, copy=False), dy * unit

    return unit * gain, pullback


@primitive
def batch_norm(x, gain, bias, *, epsilon: float = 1e-5):
    """Scale each feature to mean 0 and variance 1 *over the examples of a batch*, as used in training.

        y = γ ∘ (x − μ_B) / √(σ²_B + ε) + β,   μ_B, σ²_B per feature                (12.4)

    x: (N, D)   gain, bias: (D,)   ->   (N, D). What one example becomes depends on its companions; a language model
    that generates one token at a time has none.
    Raises: ShapeError for a batch of fewer than two examples, or a gain of another width.
    Source: 001, §5.1; Ioffe & Szegedy 2015.

    >>> batch_norm([[1.0], [3.0]], np.ones(1), np.zeros(1), epsilon=0).ravel()
    array([-1.,  1.])
    """
    _require_width("batch_norm", x, gain, bias)
    if x.ndim != 2 or len(x) < 2:
        raise ShapeError(f"batch_norm() needs a batch (N, D) of at least two examples, got shape {x.shape}")
    wide = _wide(x)
    centred, square = _centred("batch_norm", wide, axis=0)
    scale = 1 / np.sqrt(square + wide.dtype.type(epsilon))
    unit = (centred * scale).astype(x.dtype, copy=False)

    def pullback(dy):
        g = dy * gain
        dx = scale * (g - g.mean(axis=0) - unit * np.mean(g * unit, axis=0))
        return dx.astype(x.dtype, copy=False), dy * unit, dy

    return unit * gain + bias, pullback


def running_statistics(mean, variance, x, momentum: float = 0.1):
    """The averages that batch norm keeps during training and uses afterwards in place of the batch's own.

        μ ← (1 − m) μ + m μ_B,      σ² ← (1 − m) σ² + m σ²_B · N/(N − 1)

    mean, variance: (D,)   x: (N, D)   ->   the new mean and variance
    Source: 001, §5.1; Ioffe & Szegedy 2015, algorithm 2.

    >>> running_statistics(np.zeros(1), np.ones(1), np.array([[1.0], [3.0]]), momentum=0.5)
    (array([1.]), array([1.5]))
    """
    return (1 - momentum) * mean + momentum * x.mean(axis=0), (
        (1 - momentum) * variance + momentum * x.var(axis=0, ddof=1)
    )


def _centred(name, x, axis):
    """x without its mean along an axis, and the mean of the squares of what is left."""
    mean = x.mean(axis=axis, keepdims=True)
    centred = x - mean
    square = np.mean(centred * centred, axis=axis, keepdims=True)
    if np.any(np.abs(mean) > 10 * np.sqrt(square)):  # beside small differences, the rounding of the mean is not small
        shifted = x - x.take([0], axis=axis)  # exactly 0 for equal numbers
        centred = shifted - shifted.mean(axis=axis, keepdims=True)
        square = np.mean(centred * centred, axis=axis, keepdims=True)
    return centred, _finite(name, square)


def _finite(name, square):
    if np.any(square == np.inf):
        raise ValueError(f"{name}() needs numbers whose squares are finite in {square.dtype} (see chapter 12)")
    return square


def _wide(x):
    """At least float32: the square of 256 is more than a float16 can hold."""
    return x.astype(np.promote_types(x.dtype, np.float32), copy=False)


def _require_width(name, x, *parameters):
    for parameter in parameters:
        if x.ndim == 0 or parameter.shape != x.shape[-1:]:
            raise ShapeError(f"{name}() needs a gain and bias of the width of x, got {parameter.shape} for {x.shape}")
