"""Chapter 08, gradients: slopes by hand and by nudges, the chain rule, kinds of level ground, activations backwards."""

import math

import numpy as np

import mathllm as ml

from ..cases import each, normals
from . import checks, draws


@draws("08.gradients.own_gradient")
def _quadratic(rng):
    """a x² + b x y + c y², and a place; the usual mistakes all give other numbers."""
    a, b, c = (int(n) for n in rng.choice([-5, -4, -3, -2, 2, 3, 4, 5], size=3, replace=False))
    x, y = (int(n) for n in rng.choice([-3, -2, 2, 3, 4], size=2, replace=False))
    return {"a": a, "b": b, "c": c, "x": x, "y": y}


@draws("08.gradients.own_chain")
def _chain_numbers(rng):
    a, b = (int(n) for n in rng.choice([-4, -3, -2, 2, 3, 4], size=2, replace=False))
    return {"a": a, "b": b, "w": float(rng.choice([0.3, 0.7, 1.3, 1.7]))}


@each
def _polynomials(rng, shape):
    return rng.normal(size=rng.integers(4, 7)), rng.normal(size=shape), float(rng.uniform(0.05, 0.5))


@checks("08.gradients.central_slopes")
def _(c):
    c.values(
        3,
        _polynomials(1, 4, (2, 3)),
        public=[(np.array([0.0, 0, 0, 1]), np.array([2.0]), 0.1), (np.array([1.0, 2, 3]), np.array([0.0, 1]), 0.5)],
        rtol=1e-8,
        atol=1e-9,
    )
    c.values(1, public=[(np.array([0, 0, 0, 1]), np.array([2, 1, -1]), 0.25)], name="whole numbers", rtol=1e-8)
    c.refuses(1, public=[(np.ones(3), np.ones(2), 0.0), (np.ones(3), np.ones(2), -0.1)], name="refuses h ≤ 0")


@checks("08.gradients.layer_jacobian")
def _(c):
    c.values(
        3, normals([(3, 4), 3], [(2, 5), 2], [(1, 1), 1]), public=[(np.array([[1.0, -1], [2, 0]]), np.array([1.0, 1]))]
    )
    c.values(1, normals([(3, 3), 3], [(4, 4), 4]), name="square weights")
    c.values(1, public=[(np.array([[1.0, 4], [1, 2]]), np.array([1.0, -1.0]))], name="a unit at exactly 0")


def _gelu_slope(x):
    x = np.asarray(x, float)
    return 0.5 * (1 + ml.erf(x / math.sqrt(2))) + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)


@checks("08.gradients.repair_gelu", expected=_gelu_slope)
def _(c):
    c.values(3, normals(5, (2, 3)), public=[(np.array([-1.0, 0, 1, 2]),)], rtol=1e-7)
    c.values(1, public=[(np.array([-100.0, 100.0]),)], name="far out")


def _hessian(rng, eigenvalues):
    directions = np.linalg.qr(rng.normal(size=(len(eigenvalues), len(eigenvalues))))[0]
    H = directions @ np.diag(eigenvalues) @ directions.T
    return (H + H.T) / 2


def _level_ground(rng):
    kinds = [(1.0, 2.0, 3.0), (-1.0, -0.5), (2.0, -1.0, 3.0), (0.1, 4.0), (3.0, 1.0, -0.1), (-1.0, -2.0, -3.0)]
    return [(np.zeros(len(k)), _hessian(rng, k)) for k in kinds]


def _slopes_too(rng):
    return [(rng.normal(size=len(k)), _hessian(rng, k)) for k in [(1.0, 2.0), (-1.0, -2.0, -3.0), (1.0, -1.0)]]


@checks("08.gradients.repair_kind")
def _(c):
    c.values(
        3,
        _level_ground,
        public=[
            (np.zeros(2), np.array([[2.0, 3.0], [3.0, 2.0]])),
            (np.array([1e-9, 0.0]), np.diag([1.0, 2.0])),  # zero, but for a rounding error
        ],
        name="level ground",
    )
    c.values(
        1,
        _slopes_too,
        public=[
            (np.array([1.0]), np.array([[1.0]])),
            (np.array([0.0, 1.0]), np.diag([1.0, 2.0])),
            (np.array([1.0, 2.0]), np.diag([1.0, -2.0])),
            (np.array([-1.0, -2.0]), np.diag([1.0, 2.0])),
        ],
        name="not level",
    )
    c.values(
        1,
        public=[
            (np.zeros(2), np.diag([2.0, 0.0])),
            (np.zeros(2), np.diag([0.0, -1.0])),
            (np.zeros(2), np.diag([2.0, -1e-9])),
            (np.zeros(3), np.diag([1.0, 0.0, -1.0])),
            (np.zeros(1), np.zeros((1, 1))),
        ],
        name="a flat direction",
    )


@each
def _gates(rng, shape, scale=1.0):
    return scale * rng.normal(size=shape), rng.normal(size=shape), rng.normal(size=shape)


@checks("08.gradients.swiglu_pullback")
def _(c):
    c.gradient(3, ml.gradients.swiglu, _gates(4, (2, 3)), wrt=(0, 1))
    c.values(1, public=[(np.array([1.0, 0.0]), np.array([2.0, 3.0]), np.array([1.0, 1.0]))], name="by hand")
    c.values(
        1,
        _gates(3, scale=300.0),
        public=[(np.array([-1e4, 0.5, 1e4]), 2 * np.ones(3), 3 * np.ones(3))],
        name="wide gates",
    )


def _true_slopes(W, x, y):
    W = np.asarray(W, float)
    before = x @ W
    return x.T @ (2 * (ml.gelu(before) - y) * _gelu_slope(before))


@each
def _claims(rng, shape, whole=False, height=1.0, down=False):
    batch, n, m = shape
    W, x, y = rng.normal(size=(n, m)), rng.normal(size=(batch, n)), height * rng.normal(size=(batch, m))
    if down:  # no slope is above zero
        W, x, y = np.abs(W), np.abs(x), height + np.abs(y)
    if whole:
        W = rng.integers(-2, 3, size=(n, m))
    x[:, 0] = 0.0  # a feature that never occurs: its true slopes are zero
    right = _true_slopes(W, x, y)
    size = np.abs(right).max()
    claimed = right + 1e-6 * size * rng.choice([-1, 1], size=(n, m))
    wrong = rng.permutation((n - 1) * m)[: 2 + (n - 1) * m // 3]  # one is far too large, the others are off both ways
    claimed[1:].flat[wrong] += size * np.array([100.0, *0.05 * (-1.0) ** np.arange(1, wrong.size)])
    return W, x, y, claimed


@checks("08.gradients.suspects")
def _(c):
    c.values(2, _claims((4, 3, 2), (1, 2, 5), (6, 4, 4)), name="finds the wrong slopes, and no others")
    c.values(
        1,
        lambda rng: [case for down in (False, True) for case in _claims((3, 4, 3), height=1e4, down=down)(rng)],
        name="steep ground",
    )
    c.values(1, _claims((5, 3, 3), whole=True), name="weights that are whole numbers")
