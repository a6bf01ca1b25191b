"""Chapter 03, matrices: products and their cost, layers, directions that can be left out."""

import numpy as np

import mathllm as ml

from ..cases import each, normals
from ..expressions import compute, parse
from ..scoring import operations
from . import checks, draws


@draws("03.matrices.own_layer")
def _wide_layer(rng):
    W, examples = rng.integers(-4, 5, size=(2, 2, 3))
    return {"W": W, "b": rng.choice([-3, -2, -1, 1, 2, 3], size=2, replace=False), "examples": examples}


@draws("03.matrices.own_order")
def _long_chain(rng):
    """Four sizes of a chain of three matrices for which the two orders differ in cost."""
    while True:
        sizes = rng.choice([2, 3, 4, 5, 6, 8, 10, 12, 20, 30], size=4, replace=False).tolist()
        m, n, p, q = sizes
        left, right = m * n * p + m * p * q, n * p * q + m * n * q
        if not 0.5 < left / right < 2:
            return {"sizes": sizes}


@checks("03.matrices.matrix_product", expected=ml.matrices.matrix_product)
def _(c):
    c.values(
        3,
        normals([(2, 3), (3, 4)], [(4, 1), (1, 3)], [(1, 5), (5, 1)], [(5, 2), (2, 2)]),
        public=[
            (np.array([[1.0, 2], [0, 1]]), np.array([[1.0, 0], [3, 1]])),
            (np.array([[2.0, 0], [0, 3], [1, 1]]), np.array([[4.0], [2]])),
        ],
    )
    c.values(1, normals([(3, 3), (3, 3)], [(2, 2), (2, 2)]), name="square matrices")
    c.keeps_dtype(1, normals((3, 3), count=2, dtype=np.float32))
    c.refuses(1, public=[(np.ones((2, 3)), np.ones((2, 3))), (np.ones((2, 2)), np.ones((1, 2)))])


@each
def _layers(rng, shape):
    """x with the given leading shape and size, a square or other W, and a bias."""
    lead, n, m = shape
    return rng.normal(size=(*lead, n)), rng.normal(size=(n, m)), rng.normal(size=m)


@checks("03.matrices.repair_linear", expected=ml.linear)
def _(c):
    c.values(2, _layers(((4,), 3, 3), ((2,), 2, 2)), name="square matrices")
    c.values(
        2,
        _layers(((4,), 3, 5), ((2, 3), 4, 2), ((), 3, 1)),
        public=[(np.array([[3.0, 1, 4]]), np.array([[1.0, 0], [0, 3], [2, 1]]), np.zeros(2))],
        name="any shape",
    )
    c.refuses(
        1,
        public=[
            (np.ones((3, 2)), np.ones((2, 3)), np.ones((3, 1))),
            (np.ones((2, 2)), np.ones((2, 4)), np.ones(1)),
            (np.ones((3, 2)), np.ones((2, 4)), np.ones((1, 4))),
        ],
        name="refuses a bias that would broadcast",
    )
    flat = np.ones((2, 3)), np.ones((2, 3)), np.ones(3)
    turned = np.ones((2, 3)), np.ones((4, 3)), np.ones(4)  # would fit, if it were transposed
    single = np.ones(3), np.ones((2, 3)), np.ones(3)
    c.refuses(1, public=[flat, turned, single], name="refuses a matrix that does not fit")


def _with_spectrum(*spectra):
    """A matrix with each of these lists of singular values, in random directions, and some tolerances."""

    def cases(rng):
        drawn = []
        for spectrum in spectra:
            s = np.array(spectrum, float)
            U = np.linalg.qr(rng.normal(size=(len(s) + 2, len(s))))[0]
            V = np.linalg.qr(rng.normal(size=(len(s), len(s))))[0]
            W = (U * s) @ V
            drawn += [(W, float(tolerance)) for tolerance in rng.uniform(0.02, 0.9, size=9)]
            drawn += [(W.T.copy(), float(rng.uniform(0.05, 0.5)))]
        return drawn

    return cases


SPECTRA = ([5, 3, 2, 1, 0.5], [4, 3.5, 3, 2.8, 2.5, 2.2], [10, 1, 0.9, 0.8])
DIAGONAL = np.diag([4.0, 3.0, 0.0])  # ranks 0, 1, 2 miss 1, 0.6 and 0 of its norm


@checks("03.matrices.smallest_rank")
def _(c):
    c.values(3, _with_spectrum(*SPECTRA), public=[(np.diag([4.0, 3.0]), 0.5)], name="smallest rank")
    c.values(
        1,
        public=[
            (DIAGONAL, 0.6001),
            (DIAGONAL, 0.5999),
            (DIAGONAL, 1.5),
            *((np.eye(4), t) for t in (0.0, 0.7, 0.8, 1.0)),
        ],
        name="by hand",
    )
    c.refuses(1, public=[(np.eye(2), -0.1)], name="refuses a negative tolerance")


STRASSEN = {
    "(a11 + a22) * (b11 + b22)": {"c11": 1, "c22": 1},
    "(a21 + a22) * b11": {"c21": 1, "c22": -1},
    "a11 * (b12 - b22)": {"c12": 1, "c22": 1},
    "a22 * (b21 - b11)": {"c11": 1, "c21": 1},
    "(a11 + a12) * b22": {"c11": -1, "c12": 1},
    "(a21 - a11) * (b11 + b12)": {"c22": 1},
    "(a12 - a22) * (b21 + b22)": {"c11": 1},
}  # the seven products, and where each is added or subtracted


def _wrong_entries(x, name, right):
    """Known mistakes of an entry of the product: {sentence: value}."""
    i, j = name[1:]
    right_one = f"`{name}` is row {i} of A times column {j} of B"
    wrong = {
        f"You multiplied rows of A by rows of B. {right_one}.": x[f"a{i}1"] * x[f"b{j}1"] + x[f"a{i}2"] * x[f"b{j}2"],
        f"You multiplied entry by entry. {right_one}.": x[f"a{i}{j}"] * x[f"b{i}{j}"],
    }
    if i != j:
        wrong[f"You exchanged `c12` and `c21`. {right_one}."] = right[f"c{j}{i}"]
    for text, signs in STRASSEN.items():
        product, sign = compute(parse(text), x).value, signs.get(name, 0)
        do = "add" if sign > 0 else "subtract"
        if sign:
            wrong[f"`{name}` has the product `{text}` with the wrong sign: {do} it."] = right[name] - 2 * sign * product
            wrong[f"`{name}` lacks the product `{text}`: {do} it."] = right[name] - sign * product
        else:
            wrong[f"You added the product `{text}` to `{name}`. Leave it out."] = right[name] + product
            wrong[f"You subtracted the product `{text}` from `{name}`. Leave it out."] = right[name] - product
    return wrong


def _products(program):
    inputs = [f"{matrix}{i}{j}" for matrix in "ab" for i in "12" for j in "12"]

    def product(**x):
        return {f"c{i}{j}": x[f"a{i}1"] * x[f"b1{j}"] + x[f"a{i}2"] * x[f"b2{j}"] for i in "12" for j in "12"}

    def slips(**x):
        right = product(**x)
        return {name: _wrong_entries(x, name, right) for name in right}

    count = operations(program, inputs, product, slips=slips)
    return count["*"] + count["/"]


@checks("03.matrices.fewest_multiplications")
def _(c):
    c.scored("multiplications", _products, {7: 1, 8: 1 / 3})
