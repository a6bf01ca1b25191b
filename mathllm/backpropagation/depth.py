"""A gradient on its way back is multiplied by one Jacobian per layer. What is left of it after fifty?"""

from __future__ import annotations  # numpy.random is loaded when it is used

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ..autodiff import vjp
from ..errors import ShapeError
from ..exponentials import sigmoid
from ..gradients import jacobian, relu
from ..matrices import eigenvalues, linear, singular_values
from ..vectors import norm
from .initialization import initial_weights

# Erratum B7: what the spectral radius of each factor says of their product. Nothing.
EXPLODING_PAIR = (((0.0, 2.0), (0.0, 0.0)), ((0.0, 0.0), (2.0, 0.0)))  # radius 0 each, yet ‖(J₁J₂)ᵏ‖ = 4ᵏ
VANISHING_PAIR = (((2.0, 0.0), (0.0, 0.1)), ((0.1, 0.0), (0.0, 2.0)))  # radius 2 each, yet J₁J₂ = 0.2 I


def spectral_radius(A) -> float:
    """The largest modulus of an eigenvalue: how a vector grows when one and the same matrix is applied forever.

        ρ(A) = max |λᵢ| = lim ‖Aᵏ‖^(1/k)                                            (11.17)

    A: (n, n)   ->   one number, at most the largest singular value

    Of a product of different matrices it says nothing: see EXPLODING_PAIR and VANISHING_PAIR.
    Raises: ShapeError if the matrix is not square; ValueError if an entry is not finite.
    Source: 001, §4.5 (erratum B7).

    >>> spectral_radius([[0, 2], [0, 0]]), spectral_radius([[2, 0], [0, 0.1]])
    (0.0, 2.0)
    """
    return float(np.abs(eigenvalues(A)[0]))


def jacobian_product(jacobians: Sequence) -> np.ndarray:
    """The Jacobian of all layers together; its singular values say what is left of a gradient.

        J = J_L ⋯ J₂ J₁,      δ₀ = Jᵀ δ_L,      σ_min(J) ‖δ_L‖ ≤ ‖δ₀‖ ≤ σ_max(J) ‖δ_L‖   (11.16)

    jacobians: from the first layer to the last, each (outputs, inputs)   ->   J: (outputs of the last, inputs)

    The lower bound holds for layers that do not narrow on the way to the input.
    Raises: ShapeError for none, or sizes that do not fit; ValueError for a product beyond the largest float.
    Source: 001, §4.5.

    >>> J1, J2 = EXPLODING_PAIR
    >>> float(singular_values(jacobian_product([J2, J1] * 10))[0])  # 4 to the power of 10
    1048576.0
    """
    if not len(jacobians):
        raise ShapeError("jacobian_product() needs at least one Jacobian")
    product = np.asarray(jacobians[0], np.float64)
    for number, J in enumerate(jacobians[1:], 2):
        J = np.asarray(J, np.float64)
        if J.ndim != 2 or product.ndim != 2 or J.shape[1] != product.shape[0]:
            raise ShapeError(f"jacobian {number} has shape {J.shape}, which does not fit after {product.shape}")
        with np.errstate(over="ignore", invalid="ignore"):
            product = J @ product
        if not np.all(np.isfinite(product)):
            raise ValueError(f"the gradient explodes: after {number} layers it is beyond the largest float")
    return product


def gradient_bounds(jacobians: Sequence) -> tuple[float, float]:
    """By what factor can a gradient at most shrink and grow, judged layer by layer?

        Π σ_min(Jₗ) ≤ ‖δ₀‖ / ‖δ_L‖ ≤ Π σ_max(Jₗ)                                    (11.18)

    jacobians: from the first layer to the last   ->   lowest and highest factor

    Below 1, the upper factor proves that gradients vanish, and above 1 the lower one that they explode; this is what
    is true of the statement about spectral radii. Between the two only the product itself can tell.
    Source: 001, §4.5 (erratum B7).

    >>> gradient_bounds([[[0.25]]] * 3)
    (0.015625, 0.015625)
    """
    stretches = [singular_values(np.asarray(J, np.float64)) for J in jacobians]
    narrow = any(np.shape(J)[0] > np.shape(J)[1] for J in jacobians)  # some direction of the error is lost altogether
    with np.errstate(over="ignore"):  # a bound of ∞ is a bound
        lowest = 0.0 if narrow else float(np.prod([s[-1] for s in stretches]))
        return lowest, float(np.prod([s[0] for s in stretches]))


def deep_network(
    rng: np.random.Generator, depth: int, width: int, *, kind: str = "relu", scheme: str = "he", scale: float = 1.0
) -> list[Callable]:
    """A stack of layers of one width, each a function of the hidden state: material for experiments with depth.

        sigmoid    h ← σ(hW)
        relu       h ← relu(hW)
        residual   h ← h + relu(hW)/√L

    depth: L   width: units   scheme, scale: see initial_weights()   ->   L functions (..., width) -> (..., width)

    The branches of the residual stack are divided by √L, so that L of them add up to the size of one.
    Raises: ValueError for another kind, or fewer than one layer.
    Source: 001, §4.2.2 and §4.5; 000, step 5.

    >>> layers = deep_network(np.random.default_rng(0), depth=3, width=4, kind="sigmoid", scheme="zeros")
    >>> layers[0](np.ones(4))
    array([0.5, 0.5, 0.5, 0.5])
    """
    if depth < 1:
        raise ValueError(f"deep_network() needs at least one layer, got {depth}")
    bends = {"sigmoid": sigmoid, "relu": relu, "residual": lambda z: relu(z) * depth**-0.5}
    if kind not in bends:
        raise ValueError(f"unknown kind {kind!r}; kinds are sigmoid, relu, residual")

    def layer(W):
        branch = lambda h: bends[kind](linear(h, W))  # noqa: E731
        return (lambda h: residual(h, branch)) if kind == "residual" else branch

    return [layer(initial_weights(rng, width, width, scheme=scheme, scale=scale)) for _ in range(depth)]


class DepthProfile(NamedTuple):
    """How large the signal is after every layer, and the gradient before it.

    >>> depth_profile([lambda h: h * 2.0] * 3, np.ones(4), np.ones(4)).gradient_norms
    array([16.,  8.,  4.,  2.])
    """

    signal: np.ndarray  # root mean square of h₀ … h_L
    gradient_norms: np.ndarray  # ‖∂L/∂h₀‖ … ‖∂L/∂h_L‖


def depth_profile(layers: Sequence[Callable], x, cotangent) -> DepthProfile:
    """Send a signal forwards and a gradient backwards through a stack of layers, and measure both everywhere.

    layers: functions of the hidden state   x: h₀   cotangent: ∂L/∂h_L, in the shape of h_L   ->   L + 1 sizes of each

    Source: 001, §4.5.

    >>> profile = depth_profile(
    ...     deep_network(np.random.default_rng(0), depth=20, width=64, kind="sigmoid"), np.ones(64), np.ones(64)
    ... )
    >>> bool(profile.gradient_norms[0] < 1e-6 * profile.gradient_norms[-1])
    True
    """
    h, pullbacks = np.asarray(x), []
    states = [h]
    for layer in layers:
        h, pullback = vjp(layer, h)
        states.append(h)
        pullbacks.append(pullback)
    gradients = [np.asarray(cotangent, h.dtype)]
    for pullback in reversed(pullbacks):
        gradients.insert(0, pullback(gradients[0])[0])
    signal = [norm(state.ravel()) / np.sqrt(state.size) for state in states]
    return DepthProfile(np.array(signal), np.array([norm(g.ravel()) for g in gradients]))


def layer_jacobians(layers: Sequence[Callable], x) -> list[np.ndarray]:
    """The Jacobian of every layer, each at the hidden state that reaches it.

    layers: functions of the hidden state   x: h₀ (n,)   ->   J₁ … J_L, in the order of the layers

    Source: 001, §4.5.

    >>> layer_jacobians([lambda h: h * h, lambda h: h + 1.0], [3.0])
    [array([[6.]]), array([[1.]])]
    """
    h, found = np.asarray(x), []
    for layer in layers:
        found.append(jacobian(layer, h))
        h = layer(h)
    return found


def residual(x, sublayer: Callable, *, before: Callable | None = None, after: Callable | None = None):
    """Add what a sublayer says to what it was given: the gradient gets a road past it.

        y = x + f(x),               ∂y/∂x = I + J_f                                 (11.24)
        y = x + f(norm(x))          pre-norm:   I + J_f J_norm
        y = norm(x + f(x))          post-norm:  J_norm (I + J_f)

    x: (..., d)   sublayer: f   before, after: what normalises, if anything does   ->   (..., d)

    Only without a norm after the sum does the I survive: with f = 0 a pre-norm block is the identity, and a post-norm
    block is its norm (erratum D6).
    Source: 000, step 5; 001, §4.5 and §8.1.

    >>> jacobian(lambda x: residual(x, lambda x: x * 0.5), [1.0, 2.0])
    array([[1.5, 0. ],
           [0. , 1.5]])
    """
    y = x + sublayer(x if before is None else before(x))
    return y if after is None else after(y)
