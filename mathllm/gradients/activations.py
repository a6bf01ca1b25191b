"""Activation functions and their derivatives.

Without an activation function between them, two matrix products could be replaced by a single one.
"""

import math

import numpy as np

from ..autodiff import Array, WithPullback, primitive
from ..exponentials import sigmoid


@primitive
def relu(x: Array) -> WithPullback:
    """The rectified linear unit: positive numbers stay, negative ones become 0.

        relu(x) = max(0, x),      derivative 1 for x > 0, else 0                    (8.25)

    x: any shape   ->   the same shape. At 0, where there is no derivative, the gradient is 0.

    >>> relu([-1.0, 0.0, 2.0])
    array([0., 0., 2.])
    """
    return np.maximum(x, 0), lambda dy: dy * (x > 0)


@primitive
def erf(x: Array) -> WithPullback:
    """The error function: for x ≥ 0, the probability that a normal number of mean 0 and variance ½ is in [−x, x].

        erf(x) = (2/√π) ∫₀ˣ e^(−t²) dt,      erf′(x) = (2/√π) e^(−x²)
               ≈ tanh(πx/h) − (2h/π) x e^(−x²) Σₖ e^(−tₖ²)/(tₖ² + x²),   tₖ = (k + ½)h

    x: any shape   ->   the same shape

    The second line is the midpoint rule for 1 − erf(x) = (2x/π) e^(−x²) ∫₀^∞ e^(−t²)/(t² + x²) dt. The error of the
    rule is about e^(−π²/h²), plus a contribution of the pole at t = ix that is known: it becomes the tanh. Twelve
    terms with h = ½ have a relative error of 4·10⁻¹⁵ and an absolute one of 6·10⁻¹⁶; six with h = 0.73 are enough for
    float32.
    Source: Chiarella and Reichel 1968 for the sum.

    >>> erf([-1.0, 0.0, 0.5]).round(5)
    array([-0.8427,  0.    ,  0.5205])
    """
    y, derivative = _erf(x)
    return y.astype(x.dtype, copy=False), lambda dy: (dy * derivative).astype(x.dtype, copy=False)


@primitive
def gelu(x: Array) -> WithPullback:
    """The Gaussian error linear unit: x times the probability that a standard normal number is below x.

        gelu(x) = x Φ(x),      Φ(x) = ½ (1 + erf(x/√2))
        gelu′(x) = Φ(x) + x φ(x),      φ(x) = e^(−x²/2)/√(2π)

    x: any shape   ->   the same shape

    Source: Hendrycks and Gimpel 2016.

    >>> gelu([-1.0, 0.0, 1.0, 2.0]).round(5)
    array([-0.15866,  0.     ,  0.84134,  1.9545 ])
    """
    wide = x.astype(np.promote_types(x.dtype, np.float32), copy=False)
    y, derivative = _erf(wide / math.sqrt(2))
    below = 0.5 * (1 + y)  # Φ(x)

    def pullback(dy):
        # erf′(x/√2)/√8 = φ(x)
        return (dy * (below + wide * derivative / math.sqrt(8))).astype(x.dtype, copy=False)

    return (wide * below).astype(x.dtype, copy=False), pullback


@primitive
def gelu_tanh(x: Array) -> WithPullback:
    """GELU with a tanh in place of the error function, as in GPT-2; at most 0.0005 away from GELU.

        ½ x (1 + tanh u),      u = √(2/π) (x + 0.044715 x³)
        derivative ½ (1 + tanh u) + ½ x (1 − tanh² u) √(2/π) (1 + 3 · 0.044715 x²)

    x: any shape   ->   the same shape

    Source: Hendrycks and Gimpel 2016, §2.

    >>> gelu_tanh([-1.0, 0.0, 1.0, 2.0]).round(5)
    array([-0.15881,  0.     ,  0.84119,  1.9546 ])
    """
    scale = math.sqrt(2 / math.pi)
    near = np.clip(x, -10, 10)  # beyond, tanh u is ±1; within, no cube overflows
    t = np.tanh(scale * near * (1 + 0.044715 * near * near))

    def pullback(dy):
        du = scale * (1 + 3 * 0.044715 * near * near)
        return dy * 0.5 * (1 + t + near * (1 - t * t) * du)

    return 0.5 * x * (1 + t), pullback


@primitive
def silu(x: Array, *, beta: float = 1.0) -> WithPullback:
    """The sigmoid linear unit, also called Swish: x times its own sigmoid.

        silu(x) = x σ(βx),      derivative s + βx s (1 − s),   s = σ(βx)            (8.26)

    x: any shape   beta: β; 0 gives x/2, and a large β approaches ReLU   ->   the same shape

    Source: Ramachandran, Zoph and Le 2017.

    >>> silu([-1.0, 0.0, 1.0]).round(5)
    array([-0.26894,  0.     ,  0.73106])
    """
    s = sigmoid(x if beta == 1 else beta * x)
    y = x * s
    return y, lambda dy: dy * (s + beta * y * (1 - s))


@primitive(shapes="*, * -> *")
def swiglu(gate: Array, value: Array) -> WithPullback:
    """The middle of a gated layer: one projection, after SiLU, times another, elementwise.

        u = silu(xW₁) ⊙ (xW₂) = silu(z) ⊙ v                                         (8.27)
        dz = du ⊙ v ⊙ silu′(z),      dv = du ⊙ silu(z)

    gate: z = xW₁   value: v = xW₂   ->   u

    Without SiLU, z ⊙ v is still quadratic in x. Only without the gate would the matrices before and after it merge
    into a single matrix.
    Raises: ShapeError if the shapes differ.
    Source: Shazeer 2020.

    >>> round(float(swiglu(1.0, 2.0)), 5)
    1.46212
    """
    s = sigmoid(gate)
    activated = gate * s

    def pullback(dy):
        return dy * value * (s + activated * (1 - s)), dy * activated

    return activated * value, pullback


def _erf(x):
    """erf and its derivative, in at least float32: a midpoint sum."""
    h, terms = (0.5, 12) if x.dtype.itemsize > 4 else (0.73, 6)
    x = np.clip(x, -28, 28).astype(np.promote_types(x.dtype, np.float32), copy=False)  # beyond, nothing changes
    squares = x * x
    total = np.zeros_like(x)
    for k in range(terms):
        t = (k + 0.5) * h
        total += math.exp(-t * t) / (squares + t * t)
    bell = np.exp(-squares)
    return np.tanh(x * (math.pi / h)) - x * bell * total * (2 * h / math.pi), bell * (2 / math.sqrt(math.pi))
