"""Chapter 01, vectors: length, distance, lookup, and the first two gradients."""

import numpy as np

import mathllm as ml

from ..cases import each, normals
from ..scoring import operations
from . import checks, draws

TABLE = np.array(
    [  # the embedding table of the worked trace in document 004: five tokens, four components
        [0.2, 0.1, -0.3, 0.5],
        [-0.1, 0.4, 0.2, -0.2],
        [0.3, -0.2, 0.1, 0.4],
        [0.1, 0.3, -0.1, 0.2],
        [-0.3, 0.2, 0.4, -0.1],
    ]
)


@draws("01.vectors.own_length")
def _own_vector(rng):
    """Four components of size 1 to 9, every second one negative, so that signs matter."""
    return {"v": (rng.integers(1, 10, size=4) * [1, -1, 1, -1]).tolist()}


@draws("01.vectors.own_lookup")
def _own_ids(rng):
    """Three ids in an order that is neither that of the table nor its reverse."""
    while True:
        ids = rng.choice(5, size=3, replace=False).tolist()
        if sorted(ids) not in (ids, ids[::-1]):
            return {"ids": ids}


@checks("01.vectors.norm", expected=ml.norm)
def _(c):
    c.values(
        2,
        normals(2, 5, 64),
        public=[
            (np.array([3.0, 4.0]),),
            (np.array([6.0, 2.0, 3.0]),),
            (np.array([0.12, -0.85, 0.33, 0.71]),),
            (np.array([-3.0, -4.0]),),
        ],
        name="one vector",
    )
    c.values(1, public=[(np.array([-2.5]),), (np.array([-1.0, 1.0]),), (np.zeros(3),)], name="small cases")
    c.values(2, normals((4, 3), (3, 3), (2, 4, 5)), public=[(np.array([[-6.0, -8.0], [3.0, 4.0]]),)], name="batch axes")
    c.keeps_dtype(1, normals(6, dtype=np.float32), public=[(np.array([3, 4], np.float32),)])
    c.values(
        1,
        lambda rng: [(rng.normal(size=5) * 1e-200,)],
        public=[
            (np.array([3e200, -4e200]),),
            (np.array([3e200, 4.0]),),
            (np.array([[-3e200, -4e200], [3e-200, 4e-200]]),),
        ],
        atol=0.0,
        name="huge and tiny components",
    )


@checks("01.vectors.distance", expected=ml.distance)
def _(c):
    c.values(
        2, normals([2, 2], [5, 5], [50, 50]), public=[(np.array([3.0, 7.0]), np.array([4.0, 6.5]))], name="two vectors"
    )
    c.values(
        1,
        lambda rng: [(x := rng.normal(size=4), x.copy())],
        public=[(np.array([2.0]), np.array([-1.0]))],
        name="small cases",
    )
    c.values(2, normals([(4, 3), (4, 3)], [3, (5, 3)], [(2, 1, 3), (4, 3)], [(3, 3), 3]), name="batch axes")
    c.keeps_dtype(1, normals(6, count=2, dtype=np.float32))
    c.refuses(
        1,
        public=[(np.ones(3), np.ones(5)), (np.ones(3), np.ones(1)), (np.ones((2, 1)), np.ones((2, 4)))],
        name="refuses vectors of different lengths",
    )


@checks("01.vectors.frobenius_norm", expected=ml.frobenius_norm)
def _(c):
    c.values(
        2, normals((3, 3), (4, 2), (2, 6)), public=[(np.array([[1.0, 2.0], [2.0, 4.0]]),), (TABLE,)], name="a matrix"
    )
    c.values(
        1,
        normals((1, 4), (4, 1)),
        public=[(np.array([[-3.0]]),), (np.zeros((2, 3)),)],
        name="one row, one column, zeros",
    )
    c.keeps_dtype(1, normals((6, 5), dtype=np.float32))


@each
def _ids(rng, shape):
    """A random table, and random ids in this shape."""
    return rng.normal(size=(7, 3)), rng.integers(0, 7, size=shape)


@checks("01.vectors.embedding", expected=ml.embedding)
def _(c):
    c.values(2, _ids(1, 4, 9), public=[(TABLE, np.array([0, 1, 2])), (TABLE, np.array([3]))], name="a sentence")
    c.values(2, _ids((2, 4), (3, 3), (2, 1, 3)), name="a batch of sentences")
    c.keeps_dtype(1, lambda rng: [(rng.normal(size=(4, 2)).astype(np.float32), np.array([3, 0, 3]))])
    c.refuses(
        1,
        public=[(TABLE, np.array([5])), (TABLE, np.array([[0, 9], [1, 2]])), (TABLE, np.array([-1, 5]))],
        name="refuses ids beyond the table",
    )
    c.refuses(1, public=[(TABLE, np.array([0, -1])), (TABLE, np.array([[-5]]))], name="refuses negative ids")


@checks("01.vectors.repair_unit_rows", expected=ml.normalize)
def _(c):
    c.values(
        3,
        normals((4, 3), (3, 3), (6, 5)),
        public=[(np.array([[3.0, 4.0], [0.0, 5.0]]),), (TABLE,)],
        name="several rows",
    )
    c.values(1, normals((1, 3), (4, 1)), name="one row, one component")
    c.keeps_dtype(1, normals((3, 2), dtype=np.float32))
    c.refuses(1, public=[(np.array([[1.0, 2.0], [0.0, 0.0]]),), (np.zeros((2, 3)),)], name="refuses a row of zeros")


@each
def _search(rng, size):
    """A random table (V, d) with a query, and a k of a handful."""
    return rng.normal(size=size), rng.normal(size=size[1]), 5


def _with_twins(rng):
    """A table in which every row occurs three times: ties everywhere."""
    rows = rng.integers(-3, 4, size=(20, 2)).astype(float)
    return [(np.concatenate([rows, rows[::-1], rows]), np.zeros(2), 60)]


# Seen from [1, 1], two of these words are at distance 2 and three at distance 5, each in another direction.
ON_CIRCLES = np.array([[4.0, 5.0], [1.0, 3.0], [6.0, 1.0], [-3.0, 4.0], [1.0, -1.0]])
SMALL_MAP = np.array(
    [[1.0, 1.0], [1.0, 2.0], [2.0, 1.5], [8.0, 7.0], [9.0, 8.0], [5.0, 4.0]]
)  # two clusters and a bridge


@checks("01.vectors.nearest")
def _(c):
    c.values(
        3,
        _search((8, 2), (30, 5), (200, 10)),
        public=[(SMALL_MAP, np.array([1.5, 1.5]), 3), (SMALL_MAP, SMALL_MAP[4], 2)],
        name="nearest first",
    )
    c.values(
        1,
        lambda rng: [(x := rng.normal(size=(6, 3)), x[2], 1), (rng.normal(size=(30, 2)), rng.normal(size=2), 30)],
        public=[(np.ones((1, 4)), np.zeros(4), 1)],
        name="one word, all words",
    )
    c.values(1, _with_twins, public=[(ON_CIRCLES, np.ones(2), 5)], name="ties in the order of the table")
    c.refuses(
        1,
        public=[(SMALL_MAP, np.zeros(2), 0), (SMALL_MAP, np.zeros(2), 7), (SMALL_MAP, np.zeros(2), -1)],
        name="refuses a wrong k",
    )


def _products(program):
    def wanted(**x):
        a, b = (np.array([x[f"{name}{i}"] for i in range(1, 5)]) for name in "ab")
        squares = {"sum_squared": np.sum((a + b) ** 2), "difference_squared": np.sum((a - b) ** 2)}
        return {"aa": a @ a, "bb": b @ b, "ab": a @ b} | squares

    def slips(**x):
        a, b = ([x[f"{name}{i}"] for i in range(1, 5)] for name in "ab")
        squares, product = np.dot(a, a) + np.dot(b, b), np.dot(a, b)
        plus, minus = "‖a + b‖² = a·a + 2 a·b + b·b", "‖a − b‖² = a·a − 2 a·b + b·b"
        return {
            "sum_squared": {
                f"You added a·b once: {plus}. Add `ab` twice; additions are not counted.": squares + product,
                f"You left out the mixed term: {plus}.": squares,
                f"Your mixed term has the wrong sign: {plus}.": squares - 2 * product,
                f"You squared the sum of all components. Square each component of a + b: {plus}.": np.sum([a, b]) ** 2,
            },
            "difference_squared": {
                f"You subtracted a·b once: {minus}. Subtract `ab` twice; subtractions are not counted.": squares
                - product,
                f"You left out the mixed term: {minus}.": squares,
                f"Your mixed term has the wrong sign: {minus}.": squares + 2 * product,
                f"This is a·a − b·b. The square of a difference has another form: {minus}.": np.dot(a, a)
                - np.dot(b, b),
                f"You subtracted b·b. Add it: {minus}.": squares - 2 * product - 2 * np.dot(b, b),
            },
        }

    count = operations(program, [f"{name}{i}" for name in "ab" for i in range(1, 5)], wanted, slips=slips)
    return count["*"] + count["/"]


@checks("01.vectors.fewest_multiplications")
def _(c):
    c.scored("multiplications", _products, {12: 1, 16: 2 / 3, 20: 1 / 3})
