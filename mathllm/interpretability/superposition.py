"""Superposition: more features than dimensions, in directions that are almost orthogonal."""

from __future__ import annotations  # NumPy loads its random numbers when they are used

import math

import numpy as np

from ..autodiff import ArrayLike
from ..errors import all_within, within
from ..gradient_descent import adam_init, adam_step, minimize, polynomial_decay
from ..gradients import relu
from ..shapes import Contract, contract
from ..vectors import norm, normalize


def welch_bound(features: int, d: int) -> float:
    """The Welch bound: every set of N unit vectors has two with at least this overlap.

        max |u_i·u_j| ≥ √((N − d) / (d (N − 1))),      0 for N ≤ d                  (16.11)

    features: N   d: dimensions   Raises: ValueError for fewer than two features or d below 1.
    Source: Welch 1974.

    >>> round(welch_bound(100_000, 4096), 6)
    0.015302
    """
    _require_sizes("welch_bound", features, d)
    return math.sqrt(max(features - d, 0) / (d * (features - 1)))


def sparse_decoding_limit(features: int, d: int) -> float:
    """About how many active features a sparse decoder can identify, at least (compressed sensing).

        k = d / (2 ln(N/k))                                                         (16.14)

    features: N   d: dimensions   ->   k, the smaller solution

    Raises: ValueError if there is none, for d ≥ 2N/e. The formula is meant for N much larger than d.
    Source: Donoho & Tanner 2009.

    >>> round(sparse_decoding_limit(100_000, 4096), 1)
    364.8
    """
    _require_sizes("sparse_decoding_limit", features, d)
    low, high = 0.0, features / math.e  # k · 2 ln(N/k) grows between them
    within("sparse_decoding_limit", f"[1, {2 * high})", d=d)
    for _ in range(200):  # bisection
        middle = (low + high) / 2
        low, high = (middle, high) if 2 * middle * math.log(features / middle) < d else (low, middle)
    return low


def random_directions(features: int, d: int, rng: np.random.Generator | int) -> np.ndarray:
    """Unit vectors in random directions, one row for each feature: (N, d).

    features: N   d: dimensions   Raises: ValueError for sizes below 1.

    >>> random_directions(3, 8, np.random.default_rng(0)).shape
    (3, 8)
    """
    within("random_directions", "whole [1, ∞)", features=features, d=d)
    return normalize(np.random.default_rng(rng).normal(size=(features, d)))


@contract("N d")
def simulate_read_out(
    directions: ArrayLike, active: int, rng: np.random.Generator | int, trials: int = 20
) -> tuple[float, float]:
    """Add up the directions of k active features, and read every feature back with a dot product.

        x = Σ_(i active) u_i,      read-out of feature j: u_j · x = [j active] + interference    (16.15)

    directions: unit rows   active: k, drawn anew in each trial   ->   the root mean square of the read-outs of inactive
    features, about √(k/d), and the fraction of trials in which a threshold of 0.5 separates active from inactive for
    all N features

    Raises: ValueError unless 1 ≤ k < N and there is a trial.

    >>> spread, right = simulate_read_out(np.eye(4), 2, np.random.default_rng(0))
    >>> spread, right
    (0.0, 1.0)
    """
    features = len(directions)
    within("simulate_read_out", f"whole [1, {features - 1}]", active=active)
    within("simulate_read_out", "whole [1, ∞)", trials=trials)
    rng = np.random.default_rng(rng)
    squares, right = 0.0, 0
    for _ in range(trials):
        chosen = np.zeros(features, bool)
        chosen[rng.choice(features, active, replace=False)] = True
        read = directions @ directions[chosen].sum(axis=0)  # (N,)
        squares += float(np.mean(read[~chosen] ** 2))
        right += bool(np.all((read > 0.5) == chosen))
    return math.sqrt(squares / trials), right / trials


# The toy autoencoder


def sparse_features(examples: int, features: int, density: float, rng: np.random.Generator | int) -> np.ndarray:
    """Sparse features: each is active with a given probability, and then uniform between 0 and 1.

    examples: B   features: n   density: the probability   ->   (B, n)

    Raises: ValueError for a density outside (0, 1].
    Source: Elhage et al. 2022, "Demonstrating Superposition".

    >>> sparse_features(2, 3, 1.0, np.random.default_rng(0)).shape
    (2, 3)
    """
    within("sparse_features", "(0, 1]", density=density)
    rng = np.random.default_rng(rng)
    return rng.uniform(size=(examples, features)) * (rng.uniform(size=(examples, features)) < density)


@contract("_, B+ n, n")
def superposition_loss(params: dict, x: ArrayLike, importance: ArrayLike | None = None) -> np.ndarray:
    """The weighted squared error of an autoencoder with fewer dimensions than features.

        h = x W,      x̂ = relu(h Wᵀ + b),      L = mean over examples of Σ_i I_i (x_i − x̂_i)²    (16.16)

    params: {"weight": (n, d), "bias": (n,)}   importance: I, all 1 if not given   ->   one number

    Raises: ShapeError if x is not as wide as the weight.
    Source: Elhage et al. 2022, "Demonstrating Superposition".

    >>> float(superposition_loss({"weight": np.eye(2), "bias": np.zeros(2)}, np.array([[0.5, 0.0]])))
    0.0
    """
    weight = params["weight"]
    Contract("B n, n d").check("superposition_loss", ["x", "weight"], [x, weight])
    error = relu(x @ weight @ weight.T + params["bias"]) - x
    importance = np.ones(x.shape[1]) if importance is None else importance
    return (error * error * importance.astype(error.dtype)).sum(axis=-1).mean()


def train_superposition(
    features: int, d: int, density: float, rng: np.random.Generator | int, *,
    importance: ArrayLike | None = None, steps: int = 1500,
) -> dict[str, np.ndarray]:  # fmt: skip
    """Train the toy autoencoder (16.16) on fresh sparse features, to see how many it represents in d dimensions.

    features: n   density: as of `sparse_features`   ->   {"weight": (n, d), a row for each feature, "bias": (n,)}

    Raises: ValueError for sizes below 1 or a density outside (0, 1].
    Source: Elhage et al. 2022.

    >>> params = train_superposition(2, 1, 0.05, np.random.default_rng(0), steps=300)
    >>> np.sign(params["weight"][0] * params["weight"][1])  # two features share one dimension, one in each direction
    array([-1.])
    """
    within("train_superposition", "whole [1, ∞)", features=features, d=d)
    rng = np.random.default_rng(rng)
    start = {"weight": rng.normal(0, features**-0.5, size=(features, d)), "bias": np.zeros(features)}
    batches = ((sparse_features(256, features, density, rng), importance) for _ in range(steps))
    return _trained(superposition_loss, start, batches, steps)


@contract("n d -> n")
def feature_dimensions(weight: ArrayLike) -> np.ndarray:
    """The fraction of a dimension that each feature has for itself.

        D_i = ‖w_i‖² / Σ_j (ŵ_i · w_j)²                                             (16.17)

    weight: a row for each feature   ->   1 for a feature with a dimension of its own, ½ for two of equal length that
    share one as opposites, 0 for one that is not represented

    Raises: ValueError for NaN or ∞.
    Source: Elhage et al. 2022, "The Geometry of Superposition".

    >>> feature_dimensions([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    array([0.5, 0.5, 1. , 0. ])
    """
    all_within("feature_dimensions", "(-∞, ∞)", weight=weight)
    dtype = np.result_type(weight, 1.0)
    weight = np.asarray(weight, float)
    length = norm(weight)
    present = length > 0
    own = np.where(present, length, 1)[:, None]
    with np.errstate(over="ignore"):  # beside a feature that is so much longer, no dimension is left
        overlaps = np.sum(((weight / own) @ weight.T / own) ** 2, axis=-1)  # in units of ‖w_i‖², which may overflow
    return np.where(present, np.minimum(1 / np.where(present, overlaps, 1), 1), 0.0).astype(dtype)


def _trained(loss, params, batches, steps, step=adam_step):
    """The parameters after so many steps of Adam, with a learning rate that falls from 0.02 along a line to 0."""

    def rate(number):
        return polynomial_decay(number - 1, peak=0.02, total=steps)

    return minimize(loss, params, batches, init=adam_init, step=step, learning_rate=rate)


def _require_sizes(name, features, d):
    within(name, "[2, ∞)", features=features)
    within(name, "[1, ∞)", d=d)
