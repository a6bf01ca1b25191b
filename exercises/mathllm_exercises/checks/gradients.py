"""Chapter 08, gradients: derivatives by hand and by finite differences, critical points, pullbacks of chapters 1–8."""

import math

import numpy as np

import mathllm as ml

from ..cases import each, normals
from ..compare import numeric, show
from ..scoring import operations
from . import checks, draws


@draws("08.gradients.own_gradient")
def _quadratic(rng):
    """a x² + b x y + c y², and a point; the usual mistakes all give other numbers."""
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


def _critical_points(rng):
    kinds = [(1.0, 2.0, 3.0), (-1.0, -0.5), (2.0, -1.0, 3.0), (0.1, 4.0), (3.0, 1.0, -0.1), (-1.0, -2.0, -3.0)]
    return [(np.zeros(len(k)), _hessian(rng, k)) for k in kinds]


def _other_points(rng):
    return [(rng.normal(size=len(k)), _hessian(rng, k)) for k in [(1.0, 2.0), (-1.0, -2.0, -3.0), (1.0, -1.0)]]


@checks("08.gradients.repair_kind")
def _(c):
    c.values(
        3,
        _critical_points,
        public=[
            (np.zeros(2), np.array([[2.0, 3.0], [3.0, 2.0]])),
            (np.array([1e-9, 0.0]), np.diag([1.0, 2.0])),  # zero, but for a rounding error
            (np.array([0.0, 5e-7]), np.diag([1.0, 2.0])),
            (np.zeros(2), np.diag([2.0, -5e-6])),
            (np.zeros(2), np.diag([-2.0, 5e-6])),
        ],
        name="critical points",
    )
    c.values(
        1,
        _other_points,
        public=[
            (np.array([1.0]), np.array([[1.0]])),
            (np.array([0.0, 1.0]), np.diag([1.0, 2.0])),
            (np.array([0.0, 5e-6]), np.diag([1.0, 2.0])),
            (np.array([1.0, 2.0]), np.diag([1.0, -2.0])),
            (np.array([-1.0, -2.0]), np.diag([1.0, 2.0])),
            (np.array([1.0, -1.0]), np.diag([1.0, 2.0])),  # the entries cancel
        ],
        name="no critical point",
    )
    c.values(
        1,
        public=[
            (np.zeros(2), np.diag([2.0, 0.0])),
            (np.zeros(2), np.diag([0.0, -1.0])),
            (np.zeros(2), np.diag([2.0, -5e-7])),
            (np.zeros(2), np.diag([-2.0, 5e-7])),
            (np.zeros(3), np.diag([1.0, 0.0, -1.0])),
            (np.zeros(1), np.zeros((1, 1))),
        ],
        name="an eigenvalue of 0",
    )


def _malformed(value, shape):
    """What is wrong with the form of a gradient, or None."""
    dx = numeric(value)
    if dx is None or dx.shape != shape or not np.all(np.isfinite(dx)):
        return f"expected finite numbers of shape {shape}, got {show(value)}"
    return None if np.any(dx) else "the gradient is zero everywhere"


def _no_part_along_x(expected, case, observation):
    """Scaling x does not change x/‖x‖: the gradient is orthogonal to x."""
    x = case[0]
    if problem := _malformed(observation.value, x.shape):
        return problem
    dx = np.asarray(observation.value)
    along = np.abs(np.sum(dx * x, axis=-1)) / (ml.norm(dx) * ml.norm(x) + 1e-300)
    said = "the gradient must be orthogonal to x, because scaling x does not change x/‖x‖"
    return None if np.all(along < 1e-9) else said


@checks("08.gradients.normalize_pullback")
def _(c):
    c.gradient(
        2,
        ml.normalize,
        normals(3, 6, count=2),
        public=[(np.array([3.0, 4.0]), np.array([1.0, 0.0]))],
        name="one vector",
    )
    c.gradient(2, ml.normalize, normals((4, 3), (3, 3), (2, 2, 4), count=2), name="batch axes")
    c.judge("orthogonal to x", 1, normals(3, (5, 4), count=2), _no_part_along_x)


@each
def _pairs(rng, d):
    """Two random vectors, and a gradient for their cosine."""
    return rng.normal(size=d), rng.normal(size=d), float(rng.normal())


def _no_part_along_either(expected, case, observation):
    """Scaling a or b does not change the cosine: each gradient is orthogonal to its own vector."""
    if problem := _malformed(observation.value, (2, len(case[0]))):
        return problem
    for name, x, dx in zip("ab", case[:2], np.asarray(observation.value), strict=True):
        if not np.any(dx):
            return f"d{name} is zero everywhere"
        if abs(np.sum(dx * x)) > 1e-9 * ml.norm(dx) * ml.norm(x):
            return f"d{name} must be orthogonal to {name}, because scaling {name} does not change the cosine"
    return None


@checks("08.gradients.cosine_pullback")
def _(c):
    c.gradient(
        3,
        ml.cosine_similarity,
        _pairs(2, 3, 8),
        public=[(np.array([2.0, 5, 1]), np.array([3.0, 4, 2]), 1.0), (np.array([3.0, 7]), np.array([4.0, 6.5]), -2.0)],
        wrt=(0, 1),
    )
    c.judge("orthogonal to the vectors", 1, _pairs(3, 5), _no_part_along_either)


@each
def _layers(rng, shape):
    """x, W, b and an upstream gradient."""
    N, n, m = shape
    return rng.normal(size=(N, n)), rng.normal(size=(n, m)), rng.normal(size=m), rng.normal(size=(N, m))


@checks("08.gradients.linear_pullback")
def _(c):
    for entry, (name, points) in enumerate([("dx", 2), ("dW", 2), ("db", 1)]):
        c.gradient(
            points,
            ml.linear,
            _layers((3, 2, 4), (1, 3, 2), (2, 2, 2), (3, 3, 3)),
            public=[
                (np.array([[3.0, 1, 4]]), np.array([[1.0, 0], [0, 3], [2, 1]]), np.zeros(2), np.array([[1.0, -2]]))
            ],
            wrt=(0, 1, 2),
            only=entry,
            name=f"{name} agrees with finite differences",
        )


@checks("08.gradients.softmax_jacobian", expected=ml.softmax_jacobian)
def _(c):
    c.values(3, normals(1, 2, 6), public=[(np.array([2.0, 1.0, 0.5]),)], name="right values")
    c.values(2, public=[(np.array([1000.0, 1000.0, 0.0]),)], name="large scores")


def _no_common_part(expected, case, observation):
    """A common shift of the logits changes nothing, so the entries of the gradient add up to 0."""
    if problem := _malformed(observation.value, case[0].shape):
        return problem
    worst = np.abs(np.sum(observation.value, axis=-1)).max()
    said = f"a row adds up to {worst:.3g}; it must add up to 0, because a common shift of the logits changes nothing"
    return None if worst < 1e-9 else said


@checks("08.gradients.softmax_pullback")
def _(c):
    c.gradient(
        3,
        ml.softmax,
        normals(2, 4, count=2),
        public=[(np.array([2.0, 1.0, 0.5]), np.array([1.0, 0.0, 0.0]))],
        name="one row",
    )
    c.gradient(2, ml.softmax, normals((2, 3), (2, 1, 4), count=2), name="a stack of rows")
    c.judge("rows add up to 0", 1, normals(5, (2, 3), count=2), _no_common_part)


@each
def _predictions(rng, shape):
    """Logits, labels and a factor."""
    n, size = shape
    return 3 * rng.normal(size=shape), rng.integers(size, size=n), float(rng.normal())


def _mean_loss(logits, labels):
    return -float(ml.log_softmax(logits)[np.arange(len(labels)), labels].mean())


@checks("08.gradients.cross_entropy_pullback")
def _(c):
    c.gradient(
        4,
        _mean_loss,
        _predictions((3, 4), (1, 6), (5, 2)),
        public=[(np.array([[2.0, 1.0, 0.5]]), np.array([0]), 1.0), (np.eye(2), np.array([0, 1]), 1.0)],
    )


@each
def _gates(rng, shape, scale=1.0):
    return scale * rng.normal(size=shape), rng.normal(size=shape), rng.normal(size=shape)


@checks("08.gradients.swiglu_pullback")
def _(c):
    c.gradient(3, ml.gradients.swiglu, _gates(4, (2, 3)), wrt=(0, 1))
    c.values(1, public=[(np.array([1.0, 0.0]), np.array([2.0, 3.0]), np.array([1.0, 1.0]))], name="worked by hand")
    c.values(
        1,
        _gates(3, scale=300.0),
        public=[(np.array([-1e4, 0.5, 1e4]), 2 * np.ones(3), 3 * np.ones(3))],
        name="large gates",
    )


def _true_gradient(W, x, y):
    W = np.asarray(W, float)
    before = x @ W
    return x.T @ (2 * (ml.gelu(before) - y) * _gelu_slope(before))


@each
def _claims(rng, shape, whole=False, height=1.0, down=False):
    batch, n, m = shape
    W, x, y = rng.normal(size=(n, m)), rng.normal(size=(batch, n)), height * rng.normal(size=(batch, m))
    if down:  # no partial derivative is above zero
        W, x, y = np.abs(W), np.abs(x), height + np.abs(y)
    if whole:
        W = rng.integers(-2, 3, size=(n, m))
    x[:, 0] = 0.0  # a feature that never occurs: its gradient is zero
    right = _true_gradient(W, x, y)
    size = np.abs(right).max()
    claimed = right + 1e-6 * size * rng.choice([-1, 1], size=(n, m))
    wrong = rng.permutation((n - 1) * m)[: 2 + (n - 1) * m // 3]  # one is far too large, the others are off both ways
    claimed[1:].flat[wrong] += size * np.array([100.0, *0.05 * (-1.0) ** np.arange(1, wrong.size)])
    return W, x, y, claimed


def _near_the_threshold():
    """A claim with an entry that is off by a little less than a thousandth of the largest, and one by a little more."""
    ((W, x, y, _),) = _claims((4, 3, 2))(np.random.default_rng(8))
    claimed = _true_gradient(W, x, y)
    size = np.abs(claimed).max()
    claimed[0, 0] += 0.9e-3 * size
    claimed[2, 1] -= 1.1e-3 * size
    return W, x, y, claimed


@checks("08.gradients.suspects")
def _(c):
    c.values(
        2,
        _claims((4, 3, 2), (1, 2, 5), (6, 4, 4)),
        public=[_near_the_threshold()],
        name="finds the wrong entries, and no others",
    )
    c.values(
        1,
        lambda rng: [case for down in (False, True) for case in _claims((3, 4, 3), height=1e4, down=down)(rng)],
        name="large gradients",
    )
    c.values(1, _claims((5, 3, 3), whole=True), name="weights that are whole numbers")


COMPONENTS = [f"x{i}" for i in range(1, 6)]


def _derivatives(**x):
    """The derivative with respect to each component is the product of the others."""
    return {f"g{x_i[1:]}": float(np.prod([x[x_j] for x_j in COMPONENTS if x_j != x_i])) for x_i in COMPONENTS}


def _slips(**x):
    right = _derivatives(**x)
    wrong = {}
    for i in range(1, 6):
        g = right[f"g{i}"]
        said = {f"Your g{i} still contains x{i}. Leave this factor out.": g * x[f"x{i}"]}
        said[f"The sign of your g{i} is wrong."] = -g
        for j in range(1, 6):
            if j != i:
                said[f"Your g{i} is the derivative with respect to x{j}. Leave out x{i} instead."] = right[f"g{j}"]
                said[f"Your g{i} lacks the factor x{j}."] = g / x[f"x{j}"]
                said[f"Your g{i} contains x{j} twice."] = g * x[f"x{j}"]
        wrong[f"g{i}"] = said
    return wrong


def _products(program):
    count = operations(program, COMPONENTS, _derivatives, slips=_slips)
    if count["/"]:
        raise ValueError("a division fails where a component is 0; use products only")
    return count["*"]


@checks("08.gradients.fewest_multiplications")
def _(c):
    c.scored("multiplications", _products, {9: 1, 12: 2 / 3, 15: 1 / 3})
