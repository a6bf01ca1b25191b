"""One hidden layer can draw any curve: put enough bumps side by side. Several layers can fold one."""

from collections.abc import Callable

import numpy as np

from ..gradients import relu
from .networks import mlp_forward


def bump_network(function: Callable, a: float, b: float, bumps: int, *, steepness: float = 50.0) -> list[dict]:
    """A sigmoid network that copies a curve with bars: two steep units make one bar, up and down again.

        f(x) ≈ Σᵢ f(mᵢ) [σ(k(x − eᵢ)) − σ(k(x − eᵢ₊₁))],      w = (b − a)/n,   k = steepness/w   (11.13)

    function: on arrays, continuous on [a, b]   bumps: n, with 2n hidden units   ->   layers for mlp_forward() with
    activation=sigmoid, from (..., 1) to (..., 1)

    Bar i stands on [eᵢ, eᵢ₊₁] and is as high as the curve in its middle mᵢ, so where the curve changes by less than ε
    within a bar, the error is below ε but for what steps of finite steepness leave: a continuous curve can be met as
    closely as one likes. The outer bars reach one bar further, so that the ends of the interval are no edges.
    Raises: ValueError for no bump, or an empty interval.
    Source: 001, §4.3; 000, step 3; Hornik, Stinchcombe and White 1989.

    >>> from mathllm.exponentials import sigmoid
    >>> layers = bump_network(np.sin, 0, np.pi, bumps=50)
    >>> approximation_error(np.sin, layers, 0, np.pi, activation=sigmoid) < 0.04
    True
    """
    edges = _edges("bump_network", a, b, bumps)
    heights = _heights(function, (edges[:-1] + edges[1:]) / 2)
    width = (b - a) / bumps
    edges = np.concatenate([[a - width], edges[1:-1], [b + width]])
    k = steepness / width
    starts, ends = edges[:-1], edges[1:]
    return [
        {"weight": np.full((1, 2 * bumps), k), "bias": -k * np.concatenate([starts, ends])},
        {"weight": np.concatenate([heights, -heights])[:, None], "bias": np.zeros(1)},
    ]


def hat_network(function: Callable, a: float, b: float, pieces: int) -> list[dict]:
    """A ReLU network that copies a curve with straight pieces: each unit changes the slope at one place.

        f(x) ≈ f(e₀) + Σᵢ (sᵢ − sᵢ₋₁) relu(x − eᵢ),      sᵢ = [f(eᵢ₊₁) − f(eᵢ)]/w      (11.14)

    function: on arrays, continuous on [a, b]   pieces: n, with n hidden units   ->   layers for mlp_forward()

    Where the curve has a second derivative, the error is at most w² max|f″|/8: with twice the units, a quarter of it.
    Raises: ValueError for no piece, or an empty interval.
    Source: 001, §4.3; 000, step 3.

    >>> mlp_forward([[0.0], [0.5], [1.0]], hat_network(np.square, 0, 1, pieces=2)).ravel()
    array([0.  , 0.25, 1.  ])
    """
    edges = _edges("hat_network", a, b, pieces)
    heights = _heights(function, edges)
    slopes = np.diff(heights) / np.diff(edges)
    return [
        {"weight": np.ones((1, pieces)), "bias": -edges[:-1]},
        {"weight": np.diff(slopes, prepend=0.0)[:, None], "bias": heights[:1]},
    ]


def approximation_error(
    function: Callable, layers, a: float, b: float, *, activation=relu, points: int = 4001
) -> float:
    """The largest distance between a curve and a network's copy of it, looked for at evenly spaced points.

        max |f(x) − network(x)|  for x in [a, b]

    Source: 001, §4.3.

    >>> approximation_error(np.square, hat_network(np.square, 0, 1, pieces=10), 0, 1) < 0.002501
    True
    """
    x = np.linspace(a, b, points)
    return float(np.abs(mlp_forward(x[:, None], layers, activation=activation)[:, 0] - function(x)).max())


def sawtooth_network(depth: int) -> list[dict]:
    """A ReLU network that folds the interval [0, 1] in two, again and again: 2 units a layer, 2^(L−1) teeth.

        t(x) = 2 relu(x) − 4 relu(x − ½),      network = t(t(… t(x)))                  (11.15)

    depth: L foldings   ->   layers for mlp_forward(), on [0, 1]

    A network of one hidden layer needs a unit for each of the 2ᴸ straight pieces, this one 2L: for such curves depth
    saves exponentially many parameters.
    Raises: ValueError for fewer than one folding.
    Source: 001, §4.3; Telgarsky 2016.

    >>> mlp_forward(np.linspace(0, 1, 9)[:, None], sawtooth_network(3)).ravel()
    array([0., 1., 0., 1., 0., 1., 0., 1., 0.])
    """
    if depth < 1:
        raise ValueError(f"sawtooth_network() needs at least one folding, got {depth}")
    fold, bends = np.array([[2.0], [-4.0]]), np.array([0.0, -0.5])
    first = {"weight": np.ones((1, 2)), "bias": bends}
    again = [{"weight": fold @ np.ones((1, 2)), "bias": bends} for _ in range(depth - 1)]
    return [first, *again, {"weight": fold, "bias": np.zeros(1)}]


def _heights(function, x):
    return np.broadcast_to(np.asarray(function(x), np.float64), x.shape)  # a constant may answer with one number


def _edges(name, a, b, pieces):
    if pieces < 1:
        raise ValueError(f"{name}() needs at least one piece, got {pieces}")
    if not a < b:
        raise ValueError(f"{name}() needs an interval from a to a larger b, got {a} and {b}")
    return np.linspace(a, b, pieces + 1)
