"""Where should descent begin? Not at zero, where all units stay alike, and with a scale that survives depth."""

from __future__ import annotations  # numpy.random is loaded when it is used

import math

import numpy as np


def he_scale(inputs: int) -> float:
    """The standard deviation that keeps the size of a signal through a ReLU layer.

        Var[W] = 2/n                                                                (11.19)

    inputs: n, units that feed one unit   ->   √(2/n). A sum of n terms has n times their variance, and ReLU halves the
    mean square of what is symmetric around 0: n · Var[W] · ½ = 1.

    Raises: ValueError for fewer than one input.
    Source: 001, §4.5; 004, XOR network; He et al. 2015, eq. 10.

    >>> he_scale(512)
    0.0625
    """
    if inputs < 1:
        raise ValueError(f"he_scale() needs at least one input, got {inputs}")
    return math.sqrt(2 / inputs)


def xavier_scale(inputs: int, outputs: int) -> float:
    """The standard deviation for layers whose bend is nearly straight at 0 (tanh): a compromise of both directions.

        Var[W] = 2/(n + m)                                                          (11.20)

    Forwards 1/n keeps the size of the signal, backwards 1/m keeps that of the gradient.

    Raises: ValueError for fewer than one input or output.
    Source: Glorot and Bengio 2010, eq. 12.

    >>> xavier_scale(30, 20)
    0.2
    """
    if inputs < 1 or outputs < 1:
        raise ValueError(f"xavier_scale() needs at least one input and output, got {inputs} and {outputs}")
    return math.sqrt(2 / (inputs + outputs))


def initial_weights(
    rng: np.random.Generator, inputs: int, outputs: int, *, scheme: str = "he", scale: float = 1.0, dtype=np.float64
) -> np.ndarray:
    """A first weight matrix.

        zeros        W = 0               every unit of a layer gets the same gradient, so they never differ
        normal       N(0, s²)            s = `scale`, whatever the width
        xavier       N(0, 2/(n + m))
        he           N(0, 2/n)
        orthogonal   s Q                 QᵀQ = I or QQᵀ = I: every singular value is s          (11.21)

    inputs: n   outputs: m   scale: s   ->   W: (n, m)

    Raises: ValueError for another scheme, or for fewer than one input or output.
    Source: 001, §4.5; Glorot and Bengio 2010; He et al. 2015; Saxe et al. 2014 (orthogonal).

    >>> W = initial_weights(np.random.default_rng(0), 3, 2, scheme="orthogonal")
    >>> (W.T @ W).round(9) + 0.0
    array([[1., 0.],
           [0., 1.]])
    """
    if inputs < 1 or outputs < 1:
        raise ValueError(f"initial_weights() needs at least one input and output, got {inputs} and {outputs}")
    shape = inputs, outputs
    if scheme == "zeros":
        W = np.zeros(shape)
    elif scheme == "normal":
        W = scale * rng.normal(size=shape)
    elif scheme == "xavier":
        W = xavier_scale(inputs, outputs) * rng.normal(size=shape)
    elif scheme == "he":
        W = he_scale(inputs) * rng.normal(size=shape)
    elif scheme == "orthogonal":
        Q, R = np.linalg.qr(rng.normal(size=(max(shape), min(shape))))
        Q = Q * np.where(np.diag(R) < 0, -1, 1)  # without the signs some turns would be drawn more often than others
        W = scale * (Q if inputs >= outputs else Q.T)
    else:
        raise ValueError(f"unknown scheme {scheme!r}; schemes are zeros, normal, xavier, he, orthogonal")
    return W.astype(dtype)
