"""Depth: the backward pass multiplies the gradient by one Jacobian for each layer, so it may vanish or explode."""

from __future__ import annotations  # numpy.random is loaded when it is used

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ..autodiff import ArrayLike, vjp
from ..errors import ShapeError, one_of, within
from ..exponentials import sigmoid
from ..gradients import relu
from ..matrices import eigenvalues, linear, matrix_product, singular_values
from ..shapes import real_array
from ..vectors import norm
from .initialization import initial_weights


def spectral_radius(A: ArrayLike) -> float:
    """The largest modulus of an eigenvalue: the growth per step, in the long run, if one matrix is applied repeatedly.

        ρ(A) = max |λᵢ| = lim ‖Aᵏ‖^(1/k)                                            (11.14)

    A: (n, n)   ->   one number, at most the largest singular value

    It says nothing about a product of different matrices: the factors may have radius 0 and the product may explode.
    Raises: ShapeError if the matrix is not square; ValueError if an entry is not finite.

    >>> spectral_radius([[0, 2], [0, 0]]), spectral_radius([[2, 0], [0, 0.1]])
    (0.0, 2.0)
    """
    return float(np.abs(eigenvalues(A)[0]))


def jacobian_product(jacobians: Sequence[ArrayLike]) -> np.ndarray:
    """The Jacobian matrix of all layers together; its singular values bound the growth of the gradient.

        J = J_L ⋯ J₂ J₁,      ∂L/∂h₀ = ∂L/∂h_L · J                                  (11.12)

    jacobians: from the first layer to the last, each (outputs, inputs)   ->   J: (outputs of the last, inputs)

    The norm of the gradient is multiplied at most by σ_max(J), and at least by σ_min(J) if no layer has fewer inputs
    than outputs.
    Raises: ShapeError for none, or sizes that do not fit; ValueError for a product beyond the largest float.

    >>> J1, J2 = [[0, 2], [0, 0]], [[0, 0], [2, 0]]
    >>> round(float(singular_values(jacobian_product([J2, J1] * 10))[0]), 6)  # 4 to the power of 10
    1048576.0
    """
    if not len(jacobians):
        raise ShapeError("jacobian_product() needs at least one Jacobian")
    product = real_array("jacobian_product", jacobians[0], np.float64)
    for number, J in enumerate(jacobians[1:], 2):
        with np.errstate(over="ignore", invalid="ignore"):
            product = matrix_product(real_array("jacobian_product", J, np.float64), product)
        if not np.all(np.isfinite(product)):
            raise ValueError(f"the gradient explodes: after {number} layers it is beyond the largest float")
    return product


def gradient_bounds(jacobians: Sequence[ArrayLike]) -> tuple[float, float]:
    """The factors by which a gradient can at most shrink and grow, from the singular values of each layer.

        Π σ_min(Jₗ) ≤ ‖∂L/∂h₀‖ / ‖∂L/∂h_L‖ ≤ Π σ_max(Jₗ)                            (11.13)

    jacobians: from the first layer to the last   ->   lowest and highest factor

    If the highest factor is below 1, every gradient shrinks; if the lowest is above 1, every gradient grows. Otherwise
    the bounds do not decide. The lowest factor is 0 if a layer has fewer inputs than outputs.

    >>> gradient_bounds([[[0.25]]] * 3)
    (0.015625, 0.015625)
    """
    singular = [singular_values(real_array("gradient_bounds", J, np.float64)) for J in jacobians]
    narrow = any(np.shape(J)[0] > np.shape(J)[1] for J in jacobians)  # some direction of the error becomes zero
    with np.errstate(over="ignore"):  # a bound of ∞ is a bound
        lowest = 0.0 if narrow else float(np.prod([s[-1] for s in singular]))
        return lowest, float(np.prod([s[0] for s in singular]))


def deep_network(
    depth: int, width: int, rng: np.random.Generator | int, *,
    kind: str = "relu", scheme: str = "he", scale: float = 1.0,
) -> list[Callable]:  # fmt: skip
    """A stack of layers of one width, each a function of the hidden state, for experiments with depth.

        sigmoid    h ← σ(hW)
        relu       h ← relu(hW)
        residual   h ← h + relu(hW)/√L

    depth: L   width: units   scheme, scale: see initial_weights()   ->   L functions (..., width) -> (..., width)

    The contributions of the residual stack are divided by √L, so that the variance of their sum does not grow with L.
    Raises: ValueError for another kind, or fewer than one layer.

    >>> layers = deep_network(depth=3, width=4, rng=0, kind="sigmoid", scheme="zeros")
    >>> layers[0](np.ones(4))
    array([0.5, 0.5, 0.5, 0.5])
    """
    within("deep_network", "whole [1, ∞)", depth=depth)
    activations = {"sigmoid": sigmoid, "relu": relu, "residual": lambda z: relu(z) * depth**-0.5}
    one_of("deep_network", activations, kind=kind)
    rng = np.random.default_rng(rng)

    def layer(W):
        branch = lambda h: activations[kind](linear(h, W))  # noqa: E731
        return (lambda h: residual(h, branch)) if kind == "residual" else branch

    return [layer(initial_weights(width, width, rng, scheme=scheme, scale=scale)) for _ in range(depth)]


class DepthProfile(NamedTuple):
    """The size of the signal and of its gradient, at the input and after every layer.

    >>> depth_profile([lambda h: h * 2.0] * 3, np.ones(4), np.ones(4)).gradient_norms
    array([16.,  8.,  4.,  2.])
    """

    signal: np.ndarray  # root mean square of h₀ … h_L
    gradient_norms: np.ndarray  # ‖∂L/∂h₀‖ … ‖∂L/∂h_L‖


def depth_profile(layers: Sequence[Callable], x: ArrayLike, cotangent: ArrayLike) -> DepthProfile:
    """The size of the signal and of the gradient at every layer of a stack, from one forward and one backward pass.

    layers: functions of the hidden state   x: h₀   cotangent: ∂L/∂h_L, in the shape of h_L   ->   L + 1 sizes of each

    >>> profile = depth_profile(
    ...     deep_network(depth=20, width=64, rng=0, kind="sigmoid"), np.ones(64), np.ones(64)
    ... )
    >>> bool(profile.gradient_norms[0] < 1e-6 * profile.gradient_norms[-1])
    True
    """
    states, pullbacks = [np.asarray(x) * 1.0], []  # · 1.0, because integers have no gradient
    for layer in layers:
        h, pullback = vjp(layer, states[-1])
        states.append(h)
        pullbacks.append(pullback)
    gradients = [np.asarray(cotangent, states[-1].dtype)]
    for pullback in reversed(pullbacks):
        gradients.insert(0, pullback(gradients[0])[0])
    signal = [norm(h.ravel()) / np.sqrt(h.size) for h in states]
    return DepthProfile(np.array(signal), np.array([norm(g.ravel()) for g in gradients]))


def residual(
    x: ArrayLike, sublayer: Callable, *, before: Callable | None = None, after: Callable | None = None
) -> np.ndarray:
    """A residual connection: the input plus the contribution of a sublayer.

        y = x + f(x),               ∂y/∂x = I + J_f                                 (11.18)
        y = x + f(norm(x))          pre-norm:   I + J_f J_norm
        y = norm(x + f(x))          post-norm:  J_norm (I + J_f)

    x: (..., d)   sublayer: f   before, after: the norm, if there is one   ->   (..., d)

    The identity I, which lets the gradient pass unchanged, remains only without a norm after the sum: with f = 0 a
    pre-norm block is the identity, and a post-norm block is its norm.

    >>> from mathllm import jacobian
    >>> jacobian(lambda x: residual(x, lambda x: x * 0.5), [1.0, 2.0])
    array([[1.5, 0. ],
           [0. , 1.5]])
    """
    y = x + sublayer(x if before is None else before(x))
    return y if after is None else after(y)
