"""Initial weights: random, so that the units of a layer differ, and with a scale that keeps signals their size."""

from __future__ import annotations  # numpy.random is loaded when it is used

import math
from typing import Any

import numpy as np

from ..errors import one_of, within


def he_scale(inputs: int) -> float:
    """The standard deviation of weights that keeps the mean square of a signal through a ReLU layer.

        Var[W] = 2/n                                                                (11.15)

    inputs: n, the inputs of a unit   ->   √(2/n). A sum of n terms has n times their variance, and ReLU halves the
    mean square of a number that is symmetric around 0: n · Var[W] · ½ = 1.

    Raises: ValueError for fewer than one input.
    Source: He et al. 2015, eq. 10.

    >>> he_scale(512)
    0.0625
    """
    within("he_scale", "[1, ∞)", inputs=inputs)
    return math.sqrt(2 / inputs)


def xavier_scale(inputs: int, outputs: int) -> float:
    """The standard deviation for layers whose activation is nearly linear at 0 (tanh).

        Var[W] = 2/(n + m)                                                          (11.16)

    A compromise: 1/n keeps the variance of the signal in the forward pass, 1/m that of the gradient in the backward
    pass.

    Raises: ValueError for fewer than one input or output.
    Source: Glorot and Bengio 2010, eq. 12.

    >>> xavier_scale(30, 20)
    0.2
    """
    within("xavier_scale", "[1, ∞)", inputs=inputs, outputs=outputs)
    return math.sqrt(2 / (inputs + outputs))


def initial_weights(
    inputs: int, outputs: int, rng: np.random.Generator | int, *, scheme: str = "he", scale: float = 1.0,
    dtype: Any = np.float64,
) -> np.ndarray:  # fmt: skip
    """Initial weights of a layer.

        zeros        W = 0               if in all layers, the units of a layer get the same gradient and never differ
        normal       N(0, s²)            s = `scale`, whatever the width
        xavier       N(0, 2/(n + m))
        he           N(0, 2/n)
        orthogonal   s Q                 QᵀQ = I or QQᵀ = I: every singular value is s          (11.17)

    inputs: n   outputs: m   scale: s   ->   W: (n, m)

    Raises: ValueError for another scheme, or for fewer than one input or output.
    Source: Glorot and Bengio 2010; He et al. 2015; Saxe et al. 2014 (orthogonal).

    >>> W = initial_weights(3, 2, rng=0, scheme="orthogonal")
    >>> (W.T @ W).round(9) + 0.0
    array([[1., 0.],
           [0., 1.]])
    """
    within("initial_weights", "whole [1, ∞)", inputs=inputs, outputs=outputs)
    deviations = {"normal": scale, "xavier": xavier_scale(inputs, outputs), "he": he_scale(inputs)}
    one_of("initial_weights", ("zeros", *deviations, "orthogonal"), scheme=scheme)
    if scheme == "zeros":
        return np.zeros((inputs, outputs), dtype)
    rng = np.random.default_rng(rng)
    if scheme == "orthogonal":
        return (scale * _orthogonal(rng, inputs, outputs)).astype(dtype)
    return (deviations[scheme] * rng.normal(size=(inputs, outputs))).astype(dtype)


def _orthogonal(rng, inputs, outputs):
    Q, R = np.linalg.qr(rng.normal(size=(max(inputs, outputs), min(inputs, outputs))))
    Q = Q * np.where(np.diag(R) < 0, -1, 1)  # without the signs some rotations would be more probable than others
    return Q if inputs >= outputs else Q.T
