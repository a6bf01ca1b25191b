"""Chapter 02, the dot product and similarity: cosines, pooled sentences, a contrastive loss, analogies."""

import numpy as np

import mathllm as ml
from mathllm.exhibits.similarity import interpret_cosine

from ..cases import each, normals
from ..scoring import operations
from . import checks, draws

CAT, DOG = np.array([2.0, 5.0, 1.0]), np.array([3.0, 4.0, 2.0])  # 003, chapter II, example 2
KING, QUEEN = np.array([3.0, 7.0]), np.array([4.0, 6.5])  # 003, chapter II, opening


@draws("02.similarity.own_right_angle")
def _half_a_pair(rng):
    """a complete, of b the first two components; a·b must not be right already without the third."""
    a, b = rng.integers(1, 8, size=3), rng.integers(1, 8, size=2)
    a[1], a[2] = -a[1], rng.choice([2, 4, 5])
    b[1] += a[0] * b[0] + a[1] * b[1] == 0
    return {"a": a.tolist(), "b": b.tolist()}


def _stretched(rng):
    """Pairs whose lengths differ by many powers of ten, and a pair of short vectors."""
    powers = ((1e6, 1e-6), (1e-8, 1.0), (1e-8, 1e-8))
    return [(rng.normal(size=4) * left, rng.normal(size=4) * right) for left, right in powers]


@checks("02.similarity.cosine_similarity", expected=ml.cosine_similarity)
def _(c):
    c.values(
        2,
        normals([2, 2], [5, 5], [50, 50]),
        public=[
            (CAT, DOG),
            (np.array([1.0, 2.0]), np.array([2.0, -1.0])),
            (np.array([3.0, 4.0]), np.array([4.0, 3.0])),
            (np.array([0.0, 5.0]), np.array([3.0, 4.0])),
        ],
        name="two vectors",
    )
    c.values(1, _stretched, public=[(KING, 3 * KING), (KING, -QUEEN)], name="lengths do not count")
    c.values(
        2,
        normals([(4, 3), (4, 3)], [3, (5, 3)], [(2, 1, 3), (4, 3)], [(3, 3), 3], [(3, 3), (3, 3)]),
        name="batch axes",
    )
    c.keeps_dtype(1, normals(6, count=2, dtype=np.float32))
    c.refuses(
        1,
        public=[(np.zeros(3), np.ones(3)), (np.ones(2), np.zeros(2)), (np.eye(3)[:2] * [[1], [0]], np.ones(3))],
        name="refuses a zero vector",
    )
    c.refuses(
        1,
        public=[(np.ones(3), np.ones(5)), (np.array([1.0, 2.0, 3.0]), np.ones(1))],
        name="refuses vectors of different lengths",
    )


@checks("02.similarity.interpret_cosine", expected=interpret_cosine)
def _(c):
    c.values(
        2,
        lambda rng: [
            (float(c),)
            for low, high in ((0.9, 1), (0.7, 0.9), (0.4, 0.7), (0, 0.4), (-1, 0))
            for c in rng.uniform(low + 1e-6, high - 1e-6, size=3)
        ],
        public=[(0.9493,), (0.88,), (0.66,), (0.36,), (-0.04,), (0.8975,), (0.6975,), (0.3975,), (-0.0025,)],
        name="inside the bands",
    )
    c.values(2, public=[(1.0,), (0.9,), (0.7,), (0.4,), (0.0,), (-1.0,)], name="on the edges")
    c.refuses(1, public=[(1.5,), (-2.0,), (float("nan"),)], name="refuses what is no cosine")


@each
def _sentences(rng, size, dtype=float):
    """A random batch (B, T, d) and its mask: each sentence has two real tokens at least, and padding behind."""
    B, T, d = size
    real = rng.integers(2, T, size=B)
    return rng.normal(size=(B, T, d)).astype(dtype), (np.arange(T) < real[:, None]).astype(int)


PADDED = np.array([[[2.0, 4.0], [4.0, 0.0], [9.0, 9.0]], [[1.0, 1.0], [3.0, 5.0], [5.0, 3.0]]])


@checks("02.similarity.repair_mean_pool", expected=ml.similarity.mean_pool)
def _(c):
    c.values(
        3,
        _sentences((3, 5, 2), (4, 4, 4), (1, 6, 3)),
        public=[(PADDED, np.array([[1, 1, 0], [1, 1, 1]])), (PADDED, np.array([[1, 0, 0], [1, 1, 0]]))],
        name="with padding",
    )
    c.values(1, lambda rng: [(rng.normal(size=(2, 4, 3)), np.ones((2, 4), int))], name="without padding")
    c.keeps_dtype(1, _sentences((2, 4, 3), dtype=np.float32))
    none = np.zeros((2, 3), int)
    c.refuses(
        1, public=[(PADDED, np.array([[1, 1, 0], [0, 0, 0]])), (PADDED, none)], name="refuses a sentence without tokens"
    )


def _target(table, a, b, c):
    return table[b] - table[a] + table[c]


def _largest(score, *leave_out):
    score = np.array(score)
    score[list(leave_out)] = -np.inf
    return int(np.argmax(score))


def _analogy(table, a, b, c):
    """The right answer."""
    return _largest(ml.cosine_similarity(table, _target(table, a, b, c)), a, b, c)


def _with_the_question(table, a, b, c):
    return _largest(ml.cosine_similarity(table, _target(table, a, b, c)))


def _by_dot(table, a, b, c):
    return _largest(table @ _target(table, a, b, c), a, b, c)


def _by_distance(table, a, b, c):
    return _largest(-ml.distance(table, _target(table, a, b, c)), a, b, c)


def _by_directions(table, a, b, c):
    return _analogy(ml.normalize(table), a, b, c)


MISLED = (_by_dot, _by_distance, _by_directions)  # by lengths that differ


def _by_the_relation(table, a, b, c):
    return _largest(ml.cosine_similarity(table, table[b] - table[a]), a, b, c)


def _analogy_reversed(table, a, b, c):
    return _analogy(table, b, a, c)


def _worlds(rng, wanted, lengths=(1.0,)):
    """Five random tables of thirty words with a question each that is of the wanted sort."""
    cases = []
    while len(cases) < 5:
        table = ml.normalize(rng.normal(size=(30, 4))) * rng.choice(lengths, size=(30, 1))
        case = (table, *map(int, rng.choice(30, size=3, replace=False)))
        if wanted(*case) and _analogy(*case) not in (_by_the_relation(*case), _analogy_reversed(*case)):
            cases.append(case)
    return cases


def _fair(*case):
    """No word of the question would win."""
    return _with_the_question(*case) == _analogy(*case)


def _plain(rng):
    """Unit vectors and fair questions: dot product, distance and cosine agree on the answer."""
    return _worlds(rng, _fair)


def _unequal(rng):
    """Words of unequal length: dot product, distance and a sum of directions are all misled."""
    return _worlds(
        rng, lambda *case: _fair(*case) and len({rule(*case) for rule in (_analogy, *MISLED)}) == 4, (0.1, 1, 10)
    )


def _traps(rng):
    """A word of the question itself would win."""
    return _worlds(rng, lambda *case: not _fair(*case))


# man, woman, king, queen of the toy space of 004 (two components for gender, one for royalty), and three distractors
TOY = np.array([[1, 0, 0], [0, 1, 0], [1, 0, 1], [0, 1, 1], [0.5, 0.5, 0], [0, 0, 1], [-1, 0, 0]], float)


# b − a + c is a multiple of a, so a itself would win, then b or c
AROUND = np.array([[1.0, 0], [1.5, 0.2], [1.5, -0.2], [2, 1], [0, 1]])
# all words but those of the question have negative cosines, and dot products below −1
OPPOSITE = np.array([[0, -1], [0, 1], [0.6, 0.8], [-0.6, -0.8], [0.8, -0.6], [0.6, -0.8], [-0.8, -0.6]])
# the best row is long: divided by its squared length it would lose to the last one
LONG = np.array([[0.0, -1], [0, 1], [1, -1], [12, 9], [0.3, 0.6]])


@checks("02.similarity.analogy", expected=_analogy)
def _(c):
    c.values(3, _plain, public=[(TOY, 0, 2, 1), (TOY, 2, 0, 3), (TOY, 0, 1, 2)], name="finds the word")
    c.values(2, _unequal, public=[(LONG, 0, 1, 2)], name="lengths do not count")
    c.values(
        1,
        _traps,
        public=[(TOY, 5, 3, 1), (AROUND, 0, 1, 2), (OPPOSITE, 0, 1, 2)],
        name="leaves the question's words out",
    )


def _wrong_cosines(d, i, j):
    """Known mistakes of the cosine of vectors i and j: {sentence: value}."""
    product, left, right, (k,) = d[f"d{i}{j}"], d[f"d{i}{i}"], d[f"d{j}{j}"], {*"123"} - {i, j}
    third, right_one = d[f"d{k}{k}"], f"`c{i}{j}` is d{i}{j} divided by √(d{i}{i}·d{j}{j})"
    wrong = {
        "You divided by the squared lengths": product / (left * right),
        f"You divided by √d{i}{i} only": product / np.sqrt(left),
        f"You divided by √d{j}{j} only": product / np.sqrt(right),
        "You added under the square root": product / np.sqrt(left + right),
        "You divided by the sum of the lengths": product / (np.sqrt(left) + np.sqrt(right)),
        f"You divided by √d{i}{i} and multiplied by √d{j}{j}, since `x / y * z` needs brackets": (
            product / np.sqrt(left) * np.sqrt(right)
        ),
        "You multiplied by the lengths": product * np.sqrt(left * right),
        "You did not divide by the lengths": product,
        f"You divided by √(d{i}{i}·d{k}{k})": product / np.sqrt(left * third),
        f"You divided by √(d{j}{j}·d{k}{k})": product / np.sqrt(right * third),
        f"You divided by d{k}{k} as well": product / (third * np.sqrt(left * right)),
        f"You divided by √d{k}{k} as well": product / np.sqrt(left * right * third),
    }
    return {f"{mistake}. {right_one}.": value for mistake, value in wrong.items()}


def _roots_and_divisions(program):
    def cosines(d11, d22, d33, d12, d13, d23):
        return {"c12": d12 / np.sqrt(d11 * d22), "c13": d13 / np.sqrt(d11 * d33), "c23": d23 / np.sqrt(d22 * d33)}

    def slips(**d):
        return {f"c{i}{j}": _wrong_cosines(d, i, j) for i, j in ("12", "13", "23")}

    squares = ["d11", "d22", "d33"]
    count = operations(program, [*squares, "d12", "d13", "d23"], cosines, ["np.sqrt"], squares, slips)
    return count["np.sqrt"] + count["/"]


@checks("02.similarity.fewest_roots")
def _(c):
    c.scored("square roots and divisions", _roots_and_divisions, {3: 1, 5: 2 / 3, 9: 1 / 3})
