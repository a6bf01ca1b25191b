"""Chapter 04, exponentials and logarithms: rules by hand, sums of probabilities as logarithms, under- and overflow."""

import numpy as np

import mathllm as ml

from ..cases import each, normals
from ..scoring import operations
from . import checks, draws


@draws("04.exponentials.own_two_stories")
def _two_stories(rng):
    """Two log-probabilities so low that both exponentials are zero in float64."""
    first = -int(rng.integers(760, 2000))
    return {"first": first, "second": first - float(rng.integers(2, 30)) / 10}


@draws("04.exponentials.own_limit")
def _dtype_and_probability(rng):
    """Probabilities for which the limits 2⁻¹⁵⁰ and 2⁻¹⁴⁹ give two numbers of tokens."""
    return {"probability": float(rng.choice([0.07, 0.08, 0.09, 0.1, 0.11, 0.3, 0.34, 0.4])), "bits": 32}


SMALLEST = {64: -1075, 32: -150, 16: -25}  # below 2 to this power a product is rounded to zero


@checks("04.exponentials.log_sum_exp", expected=ml.log_sum_exp)
def _(c):
    c.values(1, normals(3, 8), public=[(np.array([0.0, 0.0]),), (np.log([0.2, 0.3]),)], name="one list")
    c.values(
        2,
        normals(6, scale=10.0, centre=3000.0),
        public=[(np.array([1000.0, 1000.0]),), (np.array([5000.0, -5000.0]),)],
        name="does not overflow",
    )
    c.values(
        2, normals(6, scale=10.0, centre=-3000.0), public=[(np.array([-1000.0, -1001.0]),)], name="does not underflow"
    )
    c.values(
        1,
        normals((4, 5), (3, 3), (2, 3, 4)),
        public=[(np.array([[-1000.0, -1001.0], [1000.0, 999.0]]),)],
        name="batch axes",
    )
    c.values(1, public=[(np.array([-np.inf, 0.0, np.log(2)]),)], name="empty summands")
    c.values(
        1,
        public=[(np.full(3, -np.inf),), (np.array([[-np.inf, -np.inf], [0.0, 0.0]]),)],
        name="nothing but empty summands",
    )
    c.keeps_dtype(1, normals(6, dtype=np.float32))


@checks("04.exponentials.repair_softplus", expected=ml.exponentials.softplus)
def _(c):
    turns = [(np.array([-1.0, 0.0, 1.0]),), (np.array([12.0, 15.0, 17.0]),)]  # x itself is right from 18 on only
    c.values(1, normals(6, (2, 3), scale=3.0), public=turns, name="in the middle")
    c.values(2, normals(5, scale=50.0, centre=2000.0), public=[(np.array([710.0, 1e5]),)], name="far above zero")
    c.values(
        2, normals(5, scale=30.0, centre=-300.0), public=[(np.array([-40.0, -100.0]),)], name="far below zero", atol=0.0
    )
    c.keeps_dtype(1, normals(6, dtype=np.float32))


@each
def _mixtures(rng, shape):
    """k weights, and k models' probabilities for n tokens each."""
    k, n = shape
    weights = rng.uniform(0.2, 1, size=k)
    return weights / weights.sum(), rng.uniform(0.05, 0.95, size=(k, n))


@each
def _rivals(rng, shape):
    """A long text to which all models give similar probabilities: they differ in the first two tokens only."""
    ((weights, p),) = _mixtures(shape)(rng)
    p[1:, 2:] = p[0, 2:]
    return weights, p


LOW_AND_HIGH = np.repeat([[0.2], [0.9]], 1000, axis=1)  # the second model's logarithm is higher by 1504
EVEN = np.array([0.5, 0.5])
IMPOSSIBLE = np.array([[0.5, 0.5, 0.25], [0.9, 0.0, 0.9]])  # the second model rules its second token out


@checks("04.exponentials.log_mixture")
def _(c):
    c.values(
        2,
        _mixtures((2, 3), (3, 5), (4, 2)),
        public=[(np.array([0.5, 0.5]), np.array([[0.8, 0.6, 0.9], [0.1, 0.2, 0.3]]))],
        name="short texts",
    )
    c.values(
        3,
        _rivals((2, 1500), (3, 2000)),
        public=[(EVEN, LOW_AND_HIGH), (EVEN, LOW_AND_HIGH[::-1]), (np.array([1.0, 0.0]), LOW_AND_HIGH)],
        name="long texts",
    )
    c.values(
        1,
        public=[
            (np.array([0.5, 0.5]), IMPOSSIBLE),
            (np.array([1.0, 0.0]), np.array([[0.5, 0.1], [0.9, 0.9]])),
            (np.array([0.0, 1.0]), IMPOSSIBLE),
            (EVEN, np.array([[0.5, 0.0], [0.0, 0.9]])),
        ],
        name="zeros",
    )


def _slips(y):
    said = "Your program computes y to the power {}. Products add the exponents: they must add up to 23."
    powers = {said.format(n): y**n for n in range(60) if n != 23}
    return {"power": {"You computed 23 · y. The answer is y to the power 23.": 23 * y} | powers}


def _products(program):
    count = operations(program, ["y"], lambda y: {"power": y**23}, positive=["y"], slips=_slips)
    return count["*"] + count["/"]


@checks("04.exponentials.fewest_products")
def _(c):
    c.scored("multiplications", _products, {6: 1, 7: 2 / 3, 22: 1 / 3})
