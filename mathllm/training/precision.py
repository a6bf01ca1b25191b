"""How few digits does a network need? Numbers of 16 bits, simulated to the last bit, and what keeps training alive.

A 16-bit format divides its bits between exponent and mantissa. float16 spends them on digits and has little range:
small gradients become zero, large ones infinite. bfloat16 has the range of float32 and two or three digits. Two
remedies belong together with them: the loss is scaled so that gradients fit into the range, and the weights are kept
in float32, where a small step is not rounded away.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..autodiff import primitive, value_and_grad
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
        """The smallest number that has all its digits."""
        return 2.0 ** (2 - 2 ** (self.exponent_bits - 1))

    @property
    def smallest(self) -> float:
        """The smallest number above zero (a subnormal one, with a single digit left)."""
        return self.smallest_normal * self.epsilon

    @property
    def epsilon(self) -> float:
        """The distance from 1 to the next number."""
        return 2.0**-self.mantissa_bits


FLOAT16 = FloatFormat("float16", 5, 10)
BFLOAT16 = FloatFormat("bfloat16", 8, 7)
FLOAT32 = FloatFormat("float32", 8, 23)


@primitive
def round_to(x, *, format: FloatFormat = BFLOAT16):
    """What is left of numbers when they are stored in a shorter format; the gradient is stored in it, too.

        q = 2^(max(⌊log₂|x|⌋, e_min) − mantissa bits),      y = q · round(x/q),      dx = round_to(dy)  (13.12)

    x: any shape   ->   the same shape and dtype; ties go to the even number, what is too large becomes ±∞

    The result still sits in the array's own dtype; only its value is one the format has. Rounding is taken for the
    identity by the gradient (a straight line through the steps), and the gradient is rounded because autocast keeps
    gradients of activations in the format of the activations (erratum C4).
    Source: 001, §9.3; 004, mixed precision training; IEEE 754.

    >>> round_to([1.001, 3.14159, 1e-8]).tolist(), round_to([1.001, 70000.0, 1e-8], format=FLOAT16).tolist()
    ([1.0, 3.140625, 1.0011717677116394e-08], [1.0009765625, inf, 0.0])
    """
    return _rounded(x, format), lambda dy: _rounded(dy, format)


def _rounded(x, format):
    with np.errstate(invalid="ignore"):  # a signalling NaN
        wide = x.astype(np.float64)
    finite = np.isfinite(wide)
    number = np.where(finite, wide, 0)
    exponent = np.frexp(number)[1] - 1  # ⌊log₂|x|⌋
    lowest = 2 - 2 ** (format.exponent_bits - 1)  # of the normal numbers
    quantum = np.maximum(exponent, lowest) - format.mantissa_bits
    y = np.ldexp(np.rint(np.ldexp(number, -quantum)), quantum)
    y = np.where(np.abs(y) > format.largest, np.copysign(np.inf, y), y)
    with np.errstate(over="ignore"):  # a bfloat16 of 1e30 held in an array of float16
        return np.where(finite, y, wide).astype(x.dtype)


class LossScale(NamedTuple):
    """The factor on the loss, and for how many steps all gradients have been finite."""

    scale: float = 2.0**16
    steps: int = 0


def update_loss_scale(state: LossScale, finite: bool, *, interval: int = 2000, factor: float = 2.0) -> LossScale:
    """Halve the scale when a gradient overflowed, double it after `interval` good steps: always as large as possible.

        S ← S/2 if a gradient is not finite (and the step is skipped),   S ← 2S after so many good steps   (13.13)

    Raises: ValueError for a factor that is not above 1 or an interval below 1.
    Source: 001, §9.3 (scaler.update()); Micikevicius et al. 2018, §3.2.

    >>> update_loss_scale(LossScale(1024.0, 7), finite=False)
    LossScale(scale=512.0, steps=0)
    >>> update_loss_scale(LossScale(1024.0, 1999), finite=True)
    LossScale(scale=2048.0, steps=0)
    """
    if factor <= 1 or interval < 1:
        raise ValueError(f"update_loss_scale() needs a factor above 1 and an interval, got {factor} and {interval}")
    if not finite:
        return LossScale(state.scale / factor, 0)
    if state.steps + 1 >= interval:
        return LossScale(state.scale * factor, 0)
    return LossScale(state.scale, state.steps + 1)


class MixedGradient(NamedTuple):
    """The loss, the gradient in full precision, and whether all of it is finite: if not, skip the step."""

    loss: float
    gradient: dict
    finite: bool


def mixed_precision_gradient(
    loss: Callable, master, *args, format: FloatFormat = FLOAT16, scale: float = 1.0, **options
) -> MixedGradient:
    """The gradient as mixed precision computes it: short weights, a scaled loss, unscaling in full precision.

        w = round(master),      ∇ = (1/S) ∂(S·L)/∂w                                 (13.14)

    loss: loss(params, *args) -> one number, of primitives; where its intermediate values shall be short, it says
    `round_to` (the weights arrive rounded)   master: nested arrays of full precision   ->   loss, gradient, finite

    S changes nothing in exact arithmetic. In float16 a gradient below 6·10⁻⁸ is zero, and S·∇ is not.
    Raises: ValueError for a scale that is not above 0.
    Source: 001, §9.3; Micikevicius et al. 2018, §3.

    >>> tiny = lambda p: (round_to(p["w"] * 1e-4, format=FLOAT16) * 1e-4).sum()
    >>> [float(mixed_precision_gradient(tiny, {"w": np.ones(1)}, scale=S).gradient["w"][0].round(9)) for S in (1, 1024)]
    [0.0, 1e-08]
    """
    if not scale > 0:
        raise ValueError(f"mixed_precision_gradient() needs a scale above 0, got {scale}")

    def scaled(params):
        return loss(tree_map(lambda w: round_to(w, format=format), params), *args, **options) * scale

    with np.errstate(over="ignore", invalid="ignore"):  # an overflow is an answer here: it is looked for below
        value, gradient = value_and_grad(scaled)(master)
        gradient = tree_map(lambda g: g / scale, gradient)
    finite = all(bool(np.isfinite(g).all()) for g in tree_leaves(gradient))
    return MixedGradient(float(value) / scale, gradient, finite)
