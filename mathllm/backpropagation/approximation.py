"""Approximation of curves: one hidden layer can follow any continuous curve, and depth saves units."""

from collections.abc import Callable

import numpy as np

from ..errors import within
from ..gradients import relu
from .networks import mlp_forward


def bump_network(
    function: Callable, a: float, b: float, bumps: int, *, steepness: float = 50.0
) -> list[dict[str, np.ndarray]]:
    """A sigmoid network that approximates a curve by bars: two steep units make one bar.

        f(x) ≈ Σᵢ f(cᵢ) [σ(k(x − rᵢ₋₁)) − σ(k(x − rᵢ))],      k = steepness · K/(b − a)      (11.21)

    function: on arrays, continuous on [a, b]   bumps: K, with 2K hidden units   ->   layers for mlp_forward() with
    activation=sigmoid, from (..., 1) to (..., 1)

    Bar i covers [rᵢ₋₁, rᵢ], and its height is the value of the curve at the middle cᵢ. If the curve changes by less
    than ε within each bar, the error is below ε, apart from the finite steepness: the error can be made as small as
    you like. The first and the last bar are one bar longer, so that the ends of the interval are no edges.
    Raises: ValueError for no bump, or an empty interval.
    Source: Hornik, Stinchcombe and White 1989.

    >>> from mathllm.exponentials import sigmoid
    >>> layers = bump_network(np.sin, 0, np.pi, bumps=50)
    >>> approximation_error(np.sin, layers, 0, np.pi, activation=sigmoid) < 0.04
    True
    """
    within("bump_network", "whole [1, ∞)", bumps=bumps)
    edges = _edges("bump_network", a, b, bumps)
    heights = _heights(function, (edges[:-1] + edges[1:]) / 2)
    width = (b - a) / bumps
    edges = np.concatenate([[a - width], edges[1:-1], [b + width]])
    k = steepness / width
    return [
        {"weight": np.full((1, 2 * bumps), k), "bias": -k * np.concatenate([edges[:-1], edges[1:]])},
        {"weight": np.concatenate([heights, -heights])[:, None], "bias": np.zeros(1)},
    ]


def hat_network(function: Callable, a: float, b: float, pieces: int) -> list[dict[str, np.ndarray]]:
    """A ReLU network that approximates a curve by straight pieces: each unit changes the slope at one point.

        f(x) ≈ f(r₀) + Σᵢ (gᵢ − gᵢ₋₁) relu(x − rᵢ₋₁),      gᵢ = [f(rᵢ) − f(rᵢ₋₁)] / (rᵢ − rᵢ₋₁)      (11.22)

    function: on arrays, continuous on [a, b]   pieces: K, with K hidden units   ->   layers for mlp_forward()

    If the curve has a second derivative, the error is at most (b − a)² max|f″|/(8K²): twice the units give a quarter
    of it.
    Raises: ValueError for no piece, or an empty interval.

    >>> mlp_forward([[0.0], [0.5], [1.0]], hat_network(np.square, 0, 1, pieces=2)).ravel()
    array([0.  , 0.25, 1.  ])
    """
    within("hat_network", "whole [1, ∞)", pieces=pieces)
    edges = _edges("hat_network", a, b, pieces)
    heights = _heights(function, edges)
    slopes = np.diff(heights) / np.diff(edges)
    return [
        {"weight": np.ones((1, pieces)), "bias": -edges[:-1]},
        {"weight": np.diff(slopes, prepend=0.0)[:, None], "bias": heights[:1]},
    ]


def approximation_error(
    function: Callable, layers: list, a: float, b: float, *, activation: Callable = relu, points: int = 4001
) -> float:
    """The largest distance between a curve and its approximation by a network, at evenly spaced points.

        max |f(x) − network(x)|  for x in [a, b]

    >>> approximation_error(np.square, hat_network(np.square, 0, 1, pieces=10), 0, 1) < 0.002501
    True
    """
    x = np.linspace(a, b, points)
    return float(np.abs(mlp_forward(x[:, None], layers, activation=activation)[:, 0] - function(x)).max())


def sawtooth_network(depth: int) -> list[dict[str, np.ndarray]]:
    """A ReLU network whose every layer folds the interval [0, 1] in two: 2 units a layer, 2^(L−1) teeth.

        t(x) = 2 relu(x) − 4 relu(x − ½),      network = t(t(… t(x)))                  (11.23)

    depth: L foldings   ->   layers for mlp_forward(), on [0, 1]

    A network of one hidden layer needs a unit for each of the 2ᴸ straight pieces, this network 2L in all: for such
    curves depth saves exponentially many parameters.
    Raises: ValueError for fewer than one folding.
    Source: Telgarsky 2016.

    >>> mlp_forward(np.linspace(0, 1, 9)[:, None], sawtooth_network(3)).ravel()
    array([0., 1., 0., 1., 0., 1., 0., 1., 0.])
    """
    within("sawtooth_network", "whole [1, ∞)", depth=depth)
    fold, bias = np.array([[2.0], [-4.0]]), np.array([0.0, -0.5])
    first = {"weight": np.ones((1, 2)), "bias": bias}
    again = [{"weight": fold @ np.ones((1, 2)), "bias": bias} for _ in range(depth - 1)]
    return [first, *again, {"weight": fold, "bias": np.zeros(1)}]


def _heights(function, x):
    return np.broadcast_to(np.asarray(function(x), np.float64), x.shape)  # a constant function may return one number


def _edges(name, a, b, pieces):
    within(name, f"({a}, ∞)", b=b)
    return np.linspace(a, b, pieces + 1)
