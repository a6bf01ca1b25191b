"""Chapter 09, gradient descent: one step by hand, momentum, Adam, decay, schedules, minibatches, a training loop."""

import numpy as np

import mathllm as ml

from ..cases import each
from ..scoring import array
from . import checks, draws


@draws("09.gradient_descent.own_valley")
def _valley(rng):
    return {
        "curvature": float(rng.choice([2.0, 4.0, 5.0, 8.0])),
        "w": float(rng.choice([-3.0, -2.0, 3.0, 5.0])),
        "rate": float(rng.choice([0.05, 0.15, 0.3])),
    }


@each
def _places(rng, s):
    return rng.normal(size=s), rng.normal(size=s), rng.normal(size=s), float(rng.uniform(0.01, 0.5)), 0.9


@checks("09.gradient_descent.heavy_ball")
def _(c):
    c.values(
        3,
        _places(3, (2, 4)),
        public=[
            (np.array([3.0]), np.array([4.0]), np.array([1.0]), 0.1, 0.5),
            (np.array([3.0]), np.array([4.0]), np.array([1.0]), 0.1, 0.0),
        ],
    )
    c.refuses(
        1,
        public=[(np.ones(1), np.ones(1), np.ones(1), 0.1, 1.0), (np.ones(1), np.ones(1), np.ones(1), 0.1, -0.1)],
        name="refuses β outside [0, 1)",
    )


def _adam_cases(*shapes, steps=(1, 2, 10, 1000)):
    def cases(rng):
        drawn = []
        for shape in shapes:
            for t in steps:
                g = rng.normal(size=shape) * 10.0 ** rng.integers(-1, 3)
                first = t == 1
                m = np.zeros(shape) if first else rng.normal(size=shape)
                v = np.zeros(shape) if first else rng.uniform(0.5, 2, size=shape)
                drawn.append((rng.normal(size=shape), g, m, v, t, 0.01))
        return drawn

    return cases


@checks("09.gradient_descent.adam")
def _(c):
    c.values(
        2,
        _adam_cases(3, steps=(1,)),
        public=[(np.ones(3), np.array([5.0, -0.001, 1e-8]), np.zeros(3), np.zeros(3), 1, 0.01)],
        name="the first step",
        rtol=1e-6,
    )
    c.values(3, _adam_cases(3, (2, 3), steps=(2, 10, 1000)), name="later steps", rtol=1e-6)
    c.values(1, public=[(np.ones(2), np.zeros(2), np.zeros(2), np.zeros(2), 1, 0.1)], name="a gradient of zero")


@each
def _decay_cases(rng, shape):
    m_hat, v_hat = rng.normal(size=shape), rng.uniform(0.01, 100, size=shape)
    return rng.normal(size=shape) * 3, m_hat, v_hat, float(rng.uniform(1e-3, 0.1)), 0.1


@checks("09.gradient_descent.repair_decay")
def _(c):
    tiny = np.array([1e-6]), np.array([1e-12])  # shows an ε under the root
    c.values(
        3,
        _decay_cases(4, (2, 3)),
        public=[
            (np.array([1.0]), np.array([0.1]), np.array([0.01]), 0.01, 0.1),
            (np.array([1.0]), *tiny, 0.01, 0.1),
        ],
        rtol=1e-7,
    )
    c.values(
        1, public=[(np.array([2.0, 2.0]), np.zeros(2), np.array([1e-4, 1e4]), 0.1, 0.5)], name="decay alone", rtol=1e-7
    )


def _training_runs(rng):
    drawn = []
    for _ in range(3):
        warmup, total = int(rng.integers(10, 60)), int(rng.integers(100, 400))
        drawn.append((np.sort(rng.integers(0, total + 1, size=8)), float(rng.uniform(1e-4, 1e-2)), 1e-5, warmup, total))
    return drawn


@checks("09.gradient_descent.repair_schedule")
def _(c):
    c.values(
        3, _training_runs, public=[(np.array([50, 100, 550, 1000]), 3e-4, 3e-5, 100, 1000)], name="during the training"
    )
    c.values(1, public=[(np.array([1001, 1500, 2000]), 3e-4, 3e-5, 100, 1000)], name="after the training")
    c.values(1, public=[(np.array([100, 101]), 1.0, 0.0, 100, 10_000)], name="no jump", rtol=1e-7)


def _table_loss(W, counts):
    return -(counts * np.asarray(ml.log_softmax(W))).sum() / counts.sum()


@each
def _tables(rng, n):
    return rng.normal(size=(n, n)), rng.integers(0, 20, size=(n, n)).astype(float) + np.eye(n), float(rng.normal())


@checks("09.gradient_descent.table_pullback")
def _(c):
    c.gradient(3, _table_loss, _tables(2, 4))
    c.values(1, public=[(np.zeros((2, 2)), np.array([[3.0, 1.0], [0.0, 2.0]]), 1.0)], name="by hand")
    c.values(
        1,
        public=[(np.zeros((3, 3)), np.array([[1.0, 0.0, 1.0], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]]), 2.0)],
        name="a character that never occurs",
    )


@each
def _regressions(rng, size):
    n, d = size
    X = rng.normal(size=(n, d))
    right = rng.choice([-1, 1], size=d) * rng.uniform(0.8, 1.5, size=d)  # at first too steep, in the end not
    return X, X @ right + 0.3 * rng.normal(size=n), 40, 0.1, 0.05


@checks("09.gradient_descent.training")
def _(c):
    c.values(1, public=[(np.array([[1.0], [2.0]]), np.array([0.1, 0.2]), 1, 0.1, 0.0)], name="a single step", rtol=1e-6)
    c.values(2, _regressions((20, 3), (8, 2)), name="forty steps", rtol=1e-6)
    c.values(
        1,
        lambda rng: [(rng.normal(size=(30, 4)), 0.002 * rng.normal(size=30), 27, 0.02, 0.0)],
        name="short gradients, no decay",
        rtol=1e-6,
    )
    narrow = np.eye(2, dtype=np.float32), np.array([1.0, -3.0], np.float32)
    c.keeps_dtype(1, public=[(*narrow, 6, 0.5, 0.1)], name="float64 also for float32 data")


@draws("09.gradient_descent.own_info_nce")
def _contrast(rng):
    """Three queries and three keys with small whole components."""
    queries, keys = rng.integers(1, 6, size=(2, 3, 2)) * rng.choice([-1, 1], size=(2, 3, 2))
    return {"queries": queries, "keys": keys, "temperature": float(rng.choice([0.25, 0.5, 2.0]))}


@each
def _lines_with_prior(rng, size):
    """Random data (n, d) with a true line, noise and a prior."""
    n, d = size
    X = rng.normal(size=(n, d))
    y = X @ rng.normal(size=d) + rng.normal(size=n)
    return X, y, float(rng.uniform(0.5, 2)), float(rng.uniform(0.3, 3))


def _plausibility(w, X, y, noise, prior):
    normal = ml.probability.normal_log_density
    return float(normal(y, X @ w, noise).sum() + normal(w, 0.0, prior).sum())


def _weights_and_data(*sizes):
    return lambda rng: [
        (rng.normal(size=X.shape[1]), X, y, noise, prior, float(rng.normal()))
        for X, y, noise, prior in _lines_with_prior(*sizes)(rng)
    ]


@checks("09.gradient_descent.log_posterior_pullback")
def _(c):
    c.gradient(
        4,
        _plausibility,
        _weights_and_data((5, 2), (8, 3), (3, 4)),
        public=[(np.array([0.5]), np.array([[1.0], [2.0]]), np.array([1.0, 2.0]), 0.5, 2.0, 1.0)],
    )


def _chebyshev(n, first=0, turns=1):
    """The curvatures 1/η of the best rates of n steps; of a slip if k begins elsewhere or the angle is a multiple."""
    return 5.5 + 4.5 * np.cos(turns * (2 * (first + np.arange(n)) + 1) * np.pi / (2 * n))


def _too_slow(rates):
    """What is said of lists of rates that do not cross the valley, if it is known why."""
    n = len(rates)
    if not n:
        return ""
    if np.any(rates < 0):
        return "; a negative rate increases every distance"
    if np.any(rates > 2) and np.allclose(np.sort(rates), np.sort(_chebyshev(n))):
        return "; these are the curvatures 1/η: take 1 divided by each of them"
    if np.allclose(rates, 2 / 11):
        return "; 2/11 is the best single rate, which needs 23 steps, and different rates need far fewer"
    if np.allclose(rates, rates[0]):
        return "; with a single rate the best one is 2/(1 + 10)"
    if np.allclose(np.sort(rates), np.sort(1 / _chebyshev(n, turns=2))):
        return "; divide the angle by 2: it is (2k + 1)π/(2n)"
    if np.allclose(np.sort(rates), np.sort(1 / _chebyshev(n, first=1))):
        return "; count k from 0 to n − 1"
    if np.allclose(np.sort(rates), np.sort(1 / _chebyshev(n))):
        return f"; these are the best rates for {n} steps, so take more steps"
    if np.all(rates > 0) and np.allclose(np.sort(1 / rates), np.linspace(1, 10, n)):
        return "; the curvatures 1/η are equally spaced, but near 1 and near 10 they must be closer together"
    if np.all(rates > 0) and n > 2 and np.allclose(np.sort(1 / rates), np.geomspace(1, 10, n)):
        return "; the curvatures 1/η are closer together near 1 only, but they must be so near 10 as well"
    return ""


def _steps(rates):
    rates = array(rates, None)
    left = np.abs(np.prod(1 - np.outer(np.linspace(1, 10, 2_001), rates), axis=1)).max()
    if left > 0.01 * (1 + 1e-9):
        said = f"after these {len(rates)} steps, {left:.3g} of the distance is left for some curvature"
        raise ValueError(said + _too_slow(rates))
    return len(rates)


def _fewer(rates):
    """What is said of right lists of rates that are too long."""
    kinds = len(np.unique(np.round(array(rates, None), 9)))
    if kinds == 1:
        return ("With a single rate, 23 steps are the fewest. Steps with different rates need far fewer.",)
    return ("Two different rates are not enough for 9 steps. Take more.",) if kinds == 2 else ()


@checks("09.gradient_descent.fewest_steps")
def _(c):
    c.scored("steps", _steps, {9: 1, 14: 2 / 3, 23: 1 / 3}, _fewer)
