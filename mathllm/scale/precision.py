"""Mixed precision: 16-bit floating-point formats simulated exactly, loss scaling, master weights.

A 16-bit format divides its bits between exponent and mantissa. float16 has three to four decimal digits but a small
range: small gradients become zero, large gradients infinite. bfloat16 has the range of float32 with two to three
digits. Training needs two additions: the loss is scaled so that gradients fit into the range, and the weights are kept
in float32, where a small step is not rounded away.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..autodiff import Array, WithPullback, primitive, value_and_grad
from ..errors import within
from ..trees import tree_leaves, tree_map


class FloatFormat(NamedTuple):
    """A floating-point format: sign, exponent and mantissa.  ±1.m × 2^(e − bias), bias = 2^(exponent_bits − 1) − 1."""

    name: str
    exponent_bits: int
    mantissa_bits: int

    @property
    def largest(self) -> float:
        """The largest finite number."""
        return (2 - self.epsilon) * 2.0 ** (2 ** (self.exponent_bits - 1) - 1)

    @property
    def smallest_normal(self) -> float:
        """The smallest number with all bits of the mantissa: 2^(1 − bias)."""
        return 2.0 ** (2 - 2 ** (self.exponent_bits - 1))

    @property
    def smallest(self) -> float:
        """The smallest number above zero: a subnormal number, with one bit of the mantissa."""
        return self.smallest_normal * self.epsilon

    @property
    def epsilon(self) -> float:
        """The distance from 1 to the next number."""
        return 2.0**-self.mantissa_bits


FLOAT16 = FloatFormat("float16", 5, 10)
BFLOAT16 = FloatFormat("bfloat16", 8, 7)
FLOAT32 = FloatFormat("float32", 8, 23)


@primitive(shapes="... -> ...")
def round_to(x: Array, *, format: FloatFormat = BFLOAT16) -> WithPullback:
    """The nearest numbers in a shorter format; their gradient is rounded to this format, too.

        δ = 2^(max(⌊log₂|x|⌋, e_min) − m),      y = δ · round(x/δ),      dx = round_to(dy)  (17.4)

    m: mantissa bits   e_min: exponent of the smallest normal number

    Ties go to the even number, and numbers beyond the largest become ±∞. The result keeps the dtype of x; only its
    values are those of the format. The derivative of rounding is zero almost everywhere, so the gradient takes rounding
    for the identity (straight-through estimator). The gradient is rounded because mixed precision keeps gradients of
    activations in the format of the activations.
    Source: IEEE 754.

    >>> round_to([1.001, 3.14159, 1e-8]).tolist(), round_to([1.001, 70000.0, 1e-8], format=FLOAT16).tolist()
    ([1.0, 3.140625, 1.0011717677116394e-08], [1.0009765625, inf, 0.0])
    """
    return _rounded(x, format), lambda dy: _rounded(dy, format)


def _rounded(x, format):
    with np.errstate(invalid="ignore"):  # from a signalling NaN
        wide = x.astype(np.float64)
    finite = np.isfinite(wide)
    number = np.where(finite, wide, 0)
    exponent = np.frexp(number)[1] - 1  # ⌊log₂|x|⌋
    lowest = 2 - 2 ** (format.exponent_bits - 1)  # the exponent e_min of the smallest normal number
    log_q = np.maximum(exponent, lowest) - format.mantissa_bits
    y = np.ldexp(np.rint(np.ldexp(number, -log_q)), log_q)
    y = np.where(np.abs(y) > format.largest, np.copysign(np.inf, y), y)
    with np.errstate(over="ignore"):  # a bfloat16 number of 1e30 in an array of float16
        return np.where(finite, y, wide).astype(x.dtype)


class LossScale(NamedTuple):
    """The factor on the loss, and for how many steps all gradients have been finite."""

    scale: float = 2.0**16
    steps: int = 0


def update_loss_scale(state: LossScale, finite: bool, *, interval: int = 2000) -> LossScale:
    """Dynamic loss scaling: halve the scale after an overflow, double it after `interval` steps without overflow.

        S ← S/2 if a gradient is not finite (and the step is skipped),   S ← 2S after so many finite ones   (17.6)

    The scale thus stays close to the largest that does not overflow.
    Raises: ValueError for an interval below 1.
    Source: Micikevicius et al. 2018, §3.2.

    >>> update_loss_scale(LossScale(1024.0, 7), finite=False)
    LossScale(scale=512.0, steps=0)
    >>> update_loss_scale(LossScale(1024.0, 1999), finite=True)
    LossScale(scale=2048.0, steps=0)
    """
    within("update_loss_scale", "whole [1, ∞)", interval=interval)
    if not finite:
        return LossScale(state.scale / 2, 0)
    if state.steps + 1 >= interval:
        return LossScale(state.scale * 2, 0)
    return LossScale(state.scale, state.steps + 1)


class MixedGradient(NamedTuple):
    """The loss, the gradient in full precision, and whether all of the gradient is finite: if not, skip the step."""

    loss: float
    gradient: Any
    finite: bool


def mixed_precision_gradient(
    loss: Callable, master: Any, *args: Any, format: FloatFormat = FLOAT16, scale: float = 1.0, **options: Any
) -> MixedGradient:
    """The gradient in mixed precision: rounded weights, a scaled loss, unscaling in full precision.

        w = round(master),      ∇ = (1/S) ∂(S·L)/∂w                                 (17.5)

    loss: loss(params, *args) -> one number, built from primitives; its params are the rounded weights, and it rounds
    its intermediate values with `round_to`   master: nested arrays in full precision   ->   loss, gradient, finite

    In exact arithmetic S changes nothing. In float16 a gradient below 3·10⁻⁸ is rounded to zero; multiplied by a large
    S it is not.
    Raises: ValueError for a scale that is not above 0.
    Source: Micikevicius et al. 2018, §3.

    >>> tiny = lambda p: (round_to(p["w"] * 1e-4, format=FLOAT16) * 1e-4).sum()
    >>> [float(mixed_precision_gradient(tiny, {"w": np.ones(1)}, scale=S).gradient["w"][0].round(9)) for S in (1, 1024)]
    [0.0, 1e-08]
    """
    within("mixed_precision_gradient", "(0, ∞)", scale=scale)

    def scaled(params):
        return loss(tree_map(lambda w: round_to(w, format=format), params), *args, **options) * scale

    with np.errstate(over="ignore", invalid="ignore"):  # an overflow is expected, and reported as `finite`
        value, gradient = value_and_grad(scaled)(master)
        gradient = tree_map(lambda g: g / scale, gradient)
    finite = all(bool(np.isfinite(g).all()) for g in tree_leaves(gradient))
    return MixedGradient(float(value) / scale, gradient, finite)
