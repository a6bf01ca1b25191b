"""Arguments at which floating-point formulas fail: 0, ties, ±10⁴, the ends of the range, one step beside 1, ½ and 0.

Each draw takes a dtype and returns a list of tuples of arguments. Random numbers come from a fixed seed.
"""

from itertools import product

import numpy as np

from mathllm.softmax import softmax

FLOATS = (np.float16, np.float32, np.float64)


def generator():
    return np.random.default_rng(2024)


def once(dtype):
    """No argument: for promises about fixed settings."""
    return [()]


# Single numbers


def spread(dtype):
    """Single numbers in rising order, from the most negative to the largest."""
    limits = np.finfo(dtype)
    ends = [limits.smallest_subnormal, 3 * limits.smallest_subnormal, limits.smallest_normal, limits.eps, limits.max]
    usual = [1e-3, 0.1, 0.3, 2, 3, 5, 8, 10, 20, 40, 90, 300, 700, 1e4]
    centres = np.array([0.5, 1], dtype)
    beside = [np.nextafter(centres, dtype(0)), centres, np.nextafter(centres, dtype(2))]
    positive = np.concatenate([np.array(ends + usual, dtype), *beside])
    return np.unique(np.concatenate([-positive, np.zeros(1, dtype), positive]))


def chosen(condition):
    """The single numbers for which a condition holds."""

    def draw(dtype):
        x = spread(dtype)
        return [(x[condition(x)],)]

    return draw


numbers = chosen(np.isfinite)
moderate = chosen(lambda x: np.abs(x) <= 1e4)
positive = chosen(lambda x: x > 0)
probabilities = chosen(lambda x: (x >= 0) & (x <= 1))
gradients = chosen(lambda x: (np.abs(x) <= 1e4) & (x != 0))


def logarithms(dtype):
    """Logarithms of probabilities, −∞ for impossible ones."""
    x = spread(dtype)
    return [(np.concatenate([[dtype(-np.inf)], x[x <= 0]]),)]


def number_pairs(dtype):
    a, b = np.meshgrid(spread(dtype), spread(dtype))
    return [(a.ravel(), b.ravel())]


# Vectors and matrices


def of_three(dtype):
    """Vectors of three components whose length is representable."""
    limits = np.finfo(dtype)
    rows = [
        [0, 0, 0], [1, 1, 1], [1, -1, 0], [1e4, 1e4, -1e4], [1e4, 1, 1e-4], [0.1, 0.2, 0.3], [-0.1, -0.2, -0.3],
        [1, 1 + limits.eps, 1 - limits.epsneg], *generator().normal(size=(4, 3)),
        [limits.smallest_subnormal, 0, 0], np.array([1, 1, 2]) * limits.smallest_subnormal,
        np.array([1, -1, 3]) * limits.smallest_normal, np.array([1, -1, 1]) * (limits.max / 4),
    ]  # fmt: skip
    return [np.array(row, dtype) for row in rows]


def too_long(dtype):
    """Vectors of representable components whose length is larger than the largest number."""
    return [np.array(row, dtype) * dtype(0.9 * float(np.finfo(dtype).max)) for row in ([1, 1, 1], [1, -1, 0.5])]


def vectors(dtype):
    return [(x,) for x in [*of_three(dtype), generator().normal(size=768).astype(dtype), np.full(7, 0.1, dtype)]]


def directions(dtype):
    """Vectors that are not zero, of every length."""
    return [(x,) for (x,) in vectors(dtype) if np.any(x)] + [(x,) for x in too_long(dtype)]


def pairs(vectors):
    """All pairs of these vectors."""
    return lambda dtype: list(product(vectors(dtype), repeat=2))


vector_pairs = pairs(of_three)
moderate_pairs = pairs(lambda dtype: of_three(dtype)[:3] + of_three(dtype)[5:12])  # products are within every dtype
direction_pairs = pairs(lambda dtype: of_three(dtype)[1:] + too_long(dtype))


def row_matrices(dtype):
    """Matrices with rows that are not zero: multiples of one direction, and ties."""
    lines = generator().normal(size=(40, 5))
    return [(np.concatenate([lines, 3 * lines, -lines]).astype(dtype),), (np.full((4, 7), 0.1, dtype),)]


def matrices(dtype):
    rng = generator()
    arrays = [
        rng.normal(size=(4, 3)), np.ones((3, 3)), np.zeros((2, 3)), np.diag([100, 1, 1e-2]), np.eye(3),
        np.outer([1, 2, 3], [1, 1e-3, -1]), 1e-2 * rng.normal(size=(3, 5)),
    ]  # fmt: skip
    return [(array.astype(dtype),) for array in arrays]


def square_matrices(dtype):
    arrays = [
        generator().normal(size=(4, 4)), np.ones((3, 3)), np.diag([100, 1, 1e-2]), np.array([[0.0, 2.0], [0.0, 0.0]]),
        np.array([[0.0, -1.0], [1.0, 0.0]]), np.triu(np.ones((5, 5))),
    ]  # fmt: skip
    return [(array.astype(dtype),) for array in arrays]


# Logits and distributions


def logits(dtype):
    rng, limits = generator(), np.finfo(dtype)
    rows = [
        [0], [0, 0, 0], [1e4, -1e4, 0], [1e4, 1e4, 1e4], [-1e4, -1e4], [0, -np.inf], [5, -np.inf, -np.inf, 5],
        [1, 1 + limits.eps, 1 - limits.eps], [limits.eps, 0, -limits.eps], [0, -8, -20, -700],
        [limits.max, -limits.max], [limits.smallest_subnormal, 0],
        3 * rng.normal(size=50), rng.uniform(-1e4, 1e4, size=50), rng.normal(size=500),
    ]  # fmt: skip
    return [(np.array(row, dtype),) for row in rows]


def finite_logits(dtype):
    return [(z,) for (z,) in logits(dtype) if np.all(np.isfinite(z))]


def labelled_logits(dtype):
    """Rows of finite logits up to ±10⁴, each with every label once (at most twenty)."""
    cases = []
    for (z,) in finite_logits(dtype):
        labels = np.arange(min(len(z), 20))
        cases.append((np.tile(np.clip(z, -1e4, 1e4), (len(labels), 1)).astype(dtype), labels))
    return cases


def distributions(dtype):
    """Distributions up to rounding, some of them one rounding beside an exact one."""
    limits = np.finfo(dtype)
    rows = [
        [1], [1, 0], [0, 1, 0], [0.5, 0.5], [0.1] * 10, [1 - limits.epsneg, limits.eps], [1 + limits.eps],
        [1 + limits.eps, 0], [1 - limits.epsneg, limits.smallest_subnormal], np.full(7, 1 / 7), np.full(1000, 1e-3),
        generator().dirichlet(np.ones(50)),
    ]  # fmt: skip
    return [(np.array(row, dtype),) for row in rows] + [(softmax(z),) for (z,) in logits(dtype)]


def over_three(dtype):
    limits = np.finfo(dtype)
    rows = [
        [1, 0, 0], [0, 1, 0], [0, 0.5, 0.5], [1 / 3] * 3, [0.5, 0.3, 0.2], [0.1, 0.2, 0.7], [0.25, 0.25, 0.5],
        [0.5 - limits.eps, 0.25 + limits.eps, 0.25], *generator().dirichlet(np.ones(3), size=3),
        [1 + limits.eps, 0, 0], [1 - limits.epsneg, limits.smallest_subnormal, 0],
    ]  # fmt: skip
    return [np.array(row, dtype) for row in rows]


distribution_pairs = pairs(over_three)
ordinary_distribution_pairs = pairs(lambda dtype: over_three(dtype)[:-1])  # no denormal numbers: mixtures are exact


def valued_distributions(dtype):
    """The values of a random variable, and the probability of each."""
    return list(product(of_three(dtype)[:12], over_three(dtype)))


def transitions(dtype):
    """Matrices of attention weights: every row is a distribution, and only one distribution is stationary."""
    rng = generator()
    causal = np.where(np.tril(np.ones((4, 4))) > 0, rng.normal(size=(4, 4)), -np.inf)
    scores = [rng.normal(size=(5, 5)), 3 * rng.normal(size=(4, 4)), np.zeros((3, 3)), 5 * np.eye(4), causal]
    return [(softmax(z.astype(dtype)),) for z in scores]


# Layers


def queries_keys_values(dtype):
    """Queries, keys, values, and a mask with a row that forbids everything: scores of 0, small ones, large ones."""
    rng, cases = generator(), []
    mask = np.array([[True, True, False, True], [True, False, True, True], [False] * 4])
    for scale in (0, 1e-2, 1, 3, 10):
        q, k, v = (scale * rng.normal(size=(n, 5)) for n in (3, 4, 4))
        cases.append((*(x.astype(dtype) for x in (q, k, v)), mask))
    return cases


def equal_components(dtype):
    """Vectors whose components are all the same number."""
    return [(np.full(n, c, dtype),) for n in (3, 7, 100, 768) for c in (0.1, 1.1, -333.3, 1234.5, 9999.9)]


# Settings, measurements


def schedules(dtype):
    """Peak, floor, steps and warmup of a schedule; most peaks and floors are no binary fractions."""
    rng = generator()
    simple = [(0.1, 0.0, 10, 3), (0.9, 0.3, 7, 0), (1.0, 1.0, 5, 5), (3e-4, 3e-5, 100, 10), (0.7, 0.7, 1, 1)]
    drawn = [(peak, peak * rng.random(), int(rng.integers(1, 30))) for peak in rng.random(200)]
    return simple + [(peak, floor, steps, steps // 3) for peak, floor, steps in drawn]


def activations(dtype):
    """Activations, and features that are linear functions of them, or independent, or constant."""
    rng = generator()
    x = rng.normal(size=(30, 4))
    return [(x, x), (x, 3 * x - 1), (x, x @ rng.normal(size=(4, 3))), (x, rng.normal(size=(30, 2))), (x, 0 * x + 0.1)]


def rewards(dtype):
    """Rewards of a group of answers: ties, rewards far from 0, and of very different sizes."""
    rows = [[1, 0, 1, 0], [0.1] * 7, [1e9 + 0.1] * 7, [1e6 + 1, 1e6], [0, 0], [1e-300, 0, 0], [1e4, -1e4, 3.0]]
    return [(np.array(row, float),) for row in rows]


def log_ratios(dtype):
    """Log-probabilities of two policies whose differences reach from one rounding to ten; all of them in float16."""
    powers, x = np.exp2(np.arange(np.finfo(dtype).minexp, 4), dtype=dtype), spread(dtype)
    beside = [np.nextafter(powers, dtype(0)), powers, np.nextafter(powers, dtype(9))]
    d = np.concatenate([10.0 ** -np.arange(0, 9, 0.05), np.linspace(0, 8, 50), x, *beside]).astype(dtype)
    d = np.arange(2**15, dtype=np.uint16).view(dtype) if dtype is np.float16 else d
    d = d[np.abs(d) <= 10]
    zero = np.zeros_like(d)
    return [(zero, d), (d, zero), (zero - dtype(3), d - dtype(3))]
