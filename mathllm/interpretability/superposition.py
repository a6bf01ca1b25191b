"""More features than dimensions: almost orthogonal directions are plenty, as long as few are active at once."""

from __future__ import annotations  # numpy.random is loaded when it is used

import math

import numpy as np

from ..autodiff import value_and_grad
from ..errors import ShapeError
from ..gradient_descent import adam_init, adam_step
from ..gradients import relu
from ..vectors import norm, normalize


def typical_overlap(d: int) -> float:
    """How far from orthogonal two random directions are, typically.

        √E[(u·v)²] = 1/√d                                                           (16.9)

    d: dimensions   Raises: ValueError for d below 1.
    Source: 004, superposition and exercise (c).

    >>> typical_overlap(4096)
    0.015625
    """
    _require_sizes("typical_overlap", d)
    return 1 / math.sqrt(d)


def largest_overlap(features: int, d: int) -> float:
    """The largest overlap to expect among many random directions.

        max |u_i·u_j| ≈ √(4 ln N / d)                                               (16.10)

    features: N   d: dimensions   Raises: ValueError for fewer than two features or d below 1.
    Source: 004, exercise (c).

    >>> round(largest_overlap(100_000, 4096), 3)
    0.106
    """
    _require_sizes("largest_overlap", d, features)
    return math.sqrt(4 * math.log(features) / d)


def welch_bound(features: int, d: int) -> float:
    """No arrangement of N unit vectors, however clever, has a smaller largest overlap.

        max |u_i·u_j| ≥ √((N − d) / (d (N − 1))),      0 for N ≤ d                  (16.11)

    Raises: ValueError for fewer than two features or d below 1.
    Source: Welch 1974; 004, exercise (c).

    >>> round(welch_bound(100_000, 4096), 6)
    0.015302
    """
    _require_sizes("welch_bound", d, features)
    return math.sqrt(max(features - d, 0) / (d * (features - 1)))


def threshold_read_out_limit(features: int, d: int, threshold: float = 0.5) -> float:
    """How many features may be active before the loudest inactive one is read as active.

        noise of one read-out √(k/d), the loudest of N: √(2 ln N) times that;      k = θ² d / (2 ln N)   (16.12)

    features: N   d: dimensions   threshold: θ; 0.5 gives d/(8 ln N)   ->   k

    Raises: ValueError for fewer than two features, d below 1 or a threshold outside (0, 1).
    Source: 004, exercise (c).

    >>> round(threshold_read_out_limit(100_000, 4096), 1)
    44.5
    """
    _require_sizes("threshold_read_out_limit", d, features)
    if not 0 < threshold < 1:
        raise ValueError(f"threshold_read_out_limit() needs a threshold between 0 and 1, got {threshold}")
    return threshold**2 * d / (2 * math.log(features))


def worst_case_limit(d: int) -> float:
    """How many features may be active if all their overlaps have the unlucky sign: k/√d reaches 1.

        k = √d                                                                      (16.13)

    Source: 004, exercise (c).

    >>> worst_case_limit(4096)
    64.0
    """
    _require_sizes("worst_case_limit", d)
    return math.sqrt(d)


def sparse_decoding_limit(features: int, d: int) -> float:
    """How many active features the best sparse decoder can still tell apart (compressed sensing).

        k = d / (2 ln(N/k))                                                         (16.14)

    features: N   d: dimensions   ->   k, the smaller solution

    Raises: ValueError where there is none: d is too large for N, and no superposition is needed.
    Source: 004, exercise (c); Donoho & Tanner 2009.

    >>> round(sparse_decoding_limit(100_000, 4096), 1)
    364.8
    """
    _require_sizes("sparse_decoding_limit", d, features)
    if d >= 2 * features / math.e:  # k · 2 ln(N/k) is largest at k = N/e
        raise ValueError(f"sparse_decoding_limit() needs d below {2 * features / math.e:.1f} for {features} features")
    low, high = 0.0, features / math.e
    for _ in range(200):  # halving an interval in which k · 2 ln(N/k) grows
        middle = (low + high) / 2
        low, high = (middle, high) if 2 * middle * math.log(features / middle) < d else (low, middle)
    return low


def random_directions(features: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Unit vectors in random directions, one row for each feature.

    ->   (N, d)   Raises: ValueError for sizes below 1.

    >>> random_directions(3, 8, np.random.default_rng(0)).shape
    (3, 8)
    """
    _require_sizes("random_directions", d)
    _require_sizes("random_directions", features)
    return normalize(rng.normal(size=(features, d)))


def simulate_read_out(directions, active: int, rng: np.random.Generator, trials: int = 20) -> tuple[float, float]:
    """Add up some of the directions and read every feature back with a dot product.

        x = Σ_(i active) u_i,      read-out of feature j: u_j · x = [j active] + interference    (16.15)

    directions: (N, d), unit rows   active: k, drawn anew in each trial   ->   the spread (root mean square) of the
    read-outs of inactive features, about √(k/d), and the share of trials in which a threshold of 0.5 tells active from
    inactive for all N features

    Raises: ShapeError for directions that are not (N, d); ValueError unless 1 ≤ k < N and there is a trial.
    Source: 004, exercise (c).

    >>> spread, share = simulate_read_out(np.eye(4), 2, np.random.default_rng(0))
    >>> spread, share
    (0.0, 1.0)
    """
    directions = np.asarray(directions)
    if directions.ndim != 2:
        raise ShapeError(f"simulate_read_out() needs directions (N, d), got shape {directions.shape}")
    features = len(directions)
    if not 1 <= active < features or trials < 1:
        limit = f"1 … {features - 1} active features and a trial"
        raise ValueError(f"simulate_read_out() needs {limit}, got {active} and {trials}")
    squares, right = 0.0, 0
    for _ in range(trials):
        chosen = np.zeros(features, bool)
        chosen[rng.choice(features, active, replace=False)] = True
        read = directions @ directions[chosen].sum(axis=0)  # (N,)
        squares += float(np.mean(read[~chosen] ** 2))
        right += bool(np.all((read > 0.5) == chosen))
    return math.sqrt(squares / trials), right / trials


def readable_together(directions, rng: np.random.Generator, *, share: float = 0.5, trials: int = 20) -> int:
    """The largest number of active features that (16.15) still tells apart in at least this share of the trials.

    directions: (N, d), unit rows   ->   k, found by halving; 0 if one feature is too many

    >>> readable_together(np.eye(8), np.random.default_rng(0))
    7
    """
    low, high = 0, len(directions)
    while high - low > 1:
        middle = (low + high) // 2
        good = simulate_read_out(directions, middle, rng, trials)[1] >= share
        low, high = (middle, high) if good else (low, middle)
    return low


# The toy autoencoder


def sparse_features(examples: int, features: int, density: float, rng: np.random.Generator) -> np.ndarray:
    """Features that are seldom active: each with this probability, and then of a strength between 0 and 1.

    ->   (B, n)   Raises: ValueError for a density outside (0, 1].
    Source: Elhage et al. 2022, "Demonstrating Superposition".

    >>> sparse_features(2, 3, 1.0, np.random.default_rng(0)).shape
    (2, 3)
    """
    if not 0 < density <= 1:
        raise ValueError(f"sparse_features() needs a density above 0 and at most 1, got {density}")
    return rng.uniform(size=(examples, features)) * (rng.uniform(size=(examples, features)) < density)


def superposition_loss(params, x, importance=None):
    """How badly features come back that were squeezed through a narrow layer.

        h = x W,      x̂ = relu(h Wᵀ + b),      L = mean over examples of Σ_i I_i (x_i − x̂_i)²    (16.16)

    params: {"weight": (n, d), "bias": (n,)}   x: (B, n)   importance: I, (n,), all 1 if not given   ->   one number

    Raises: ShapeError if the sizes do not fit.
    Source: 004, superposition; Elhage et al. 2022, "Demonstrating Superposition".

    >>> float(superposition_loss({"weight": np.eye(2), "bias": np.zeros(2)}, np.array([[0.5, 0.0]])))
    0.0
    """
    weight = params["weight"]
    if x.ndim != 2 or x.shape[1] != weight.shape[0]:
        raise ShapeError(f"superposition_loss() needs {weight.shape[0]} features in x, got shape {x.shape}")
    importance = np.ones(x.shape[1], x.dtype) if importance is None else np.asarray(importance, x.dtype)
    error = relu(x @ weight @ weight.T + params["bias"]) - x
    return (error * error * importance).sum(axis=-1).mean()


def train_superposition(
    features: int, d: int, density: float, rng: np.random.Generator, *,
    importance=None, steps: int = 1500, batch: int = 256, learning_rate: float = 0.02,
):  # fmt: skip
    """Train the toy autoencoder (16.16) on fresh sparse features: does it use d directions, or more?

    ->   {"weight": (n, d), a row for each feature, "bias": (n,)}

    Raises: ValueError for sizes below 1 or a density outside (0, 1].
    Source: 004, superposition; Elhage et al. 2022.

    >>> params = train_superposition(2, 1, 0.05, np.random.default_rng(0), steps=300)
    >>> np.sign(params["weight"][0] * params["weight"][1])  # two features share one dimension, one in each direction
    array([-1.])
    """
    _require_sizes("train_superposition", d)
    _require_sizes("train_superposition", features)
    params = {"weight": rng.normal(0, features**-0.5, size=(features, d)), "bias": np.zeros(features)}
    state = adam_init(params)
    for step in range(steps):
        x = sparse_features(batch, features, density, rng)
        _, gradient = value_and_grad(superposition_loss)(params, x, importance)
        params, state = adam_step(params, gradient, state, learning_rate=learning_rate * (1 - step / steps))
    return params


def feature_dimensions(weight) -> np.ndarray:
    """The share of a dimension that each feature has for itself.

        D_i = ‖w_i‖² / Σ_j (ŵ_i · w_j)²                                             (16.17)

    weight: (n, d), a row for each feature   ->   (n,): 1 for a feature with a dimension of its own, ½ for two that
    share one as opposites, 0 for one that is not represented

    Raises: ShapeError for other than two axes.
    Source: Elhage et al. 2022, "The Geometry of Superposition".

    >>> feature_dimensions([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    array([0.5, 0.5, 1. , 0. ])
    """
    weight = np.asarray(weight, float)
    if weight.ndim != 2:
        raise ShapeError(f"feature_dimensions() needs a matrix (n, d), got shape {weight.shape}")
    length = norm(weight)
    present = length > 0
    unit = weight / np.where(present, length, 1)[:, None]
    crowd = np.sum((unit @ weight.T) ** 2, axis=-1)
    return np.where(present, length**2 / np.where(present, crowd, 1), 0.0)


def _require_sizes(name, d, features=None):
    if d < 1:
        raise ValueError(f"{name}() needs sizes of at least 1, got {d}")
    if features is not None and features < 2:
        raise ValueError(f"{name}() needs at least 2 features, got {features}")
