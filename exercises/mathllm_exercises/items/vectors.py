"""Chapter 01, vectors: length, distance, lookup, and the first two gradients."""

import numpy as np

import mathllm as ml

from ..cases import each, normals, refusing
from ..compare import numeric, show
from ..item import Check, Item, Mistake, gradient, keeps_dtype, leaves_inputs, refuses, values

TABLE = np.array(
    [  # the embedding table of the worked trace in document 004: five tokens, four components
        [0.2, 0.1, -0.3, 0.5],
        [-0.1, 0.4, 0.2, -0.2],
        [0.3, -0.2, 0.1, 0.4],
        [0.1, 0.3, -0.1, 0.2],
        [-0.3, 0.2, 0.4, -0.1],
    ]
)


# Warm-up ------------------------------------------------------------------------------------------------------------

LENGTH_BY_HAND = Item(
    id="01.vectors.length_by_hand",
    kind="value",
    title="A length on paper",
    difficulty=1,
    minutes=3,
    source="The primer (003), chapter II, exercise 1",
    answer="squares_and_length",
    task="""
Take the vector $v = [6, 2, 3]$ and a pencil. Give two numbers in a list, `squares_and_length`: first the sum of the
squared components, then the length $\\lVert v\\rVert$.
""",
    expected=lambda: [np.sum(np.square([6, 2, 3])), ml.norm([6, 2, 3])],
    checks=(values(2),),
    mistakes=(
        Mistake(lambda: [7, 49], "Both are right, in the other order: first the sum of the squares, then the length."),
        Mistake(lambda: [49, 49], "The second number is still the sum of the squares: take its square root."),
        Mistake(lambda: 7, "The length is right. Two numbers were asked for: write [sum of the squares, length]."),
        Mistake(lambda: [11, np.sqrt(11)], "You added the components themselves. Square each one first, then add."),
        Mistake(
            lambda: [49, 24.5],
            "You halved the sum of the squares. A square root asks which number, times itself, gives it.",
        ),
        Mistake(
            lambda: [121, 11], "You added first and squared then: (6 + 2 + 3)². Each component is squared by itself."
        ),
    ),
    hints=(
        "36 is the first of three terms.",
        "The length is the number whose square is the first answer.",
    ),
    references=("primer.ch02.q1.sumsq", "primer.ch02.q1.magnitude"),
)


def _own_vector(rng):
    """Four components of size 1 to 9, every second one negative, so that signs matter."""
    return {"v": (rng.integers(1, 10, size=4) * [1, -1, 1, -1]).tolist()}


OWN_LENGTH = Item(
    id="01.vectors.own_length",
    kind="value",
    title="The length of a vector of your own",
    difficulty=1,
    minutes=3,
    source="after the primer (003), chapter I, example 1",
    answer="own_length",
    task="""
`mine.v` is a vector with four components, drawn for you. Put its length $\\lVert v\\rVert$ into `own_length`, right
to three decimals. By hand or by NumPy, as you like.
""",
    numbers=_own_vector,
    expected=lambda v: ml.norm(v),
    checks=(values(2, decimals=3),),
    mistakes=(
        Mistake(lambda v: np.sum(np.square(v)), "This is the squared length: the square root is missing."),
        Mistake(lambda v: np.sum(v), "You added the components themselves. Square each one first, then add."),
        Mistake(lambda v: np.sum(np.abs(v)), "You added the sizes of the components. Square them before you add."),
        Mistake(
            lambda v: np.sqrt(np.abs(np.sum(v * np.abs(v)))),
            "A negative component counted negatively. Its square is positive: (−3)² = 9.",
        ),
        Mistake(
            lambda v: np.sqrt(np.mean(np.square(v))), "You took the mean of the squares; the length wants their sum."
        ),
    ),
    hints=("Four squares, one sum, one root.", "`np.sqrt` takes the root; `v ** 2` needs an array, not a list."),
)

OWN_LOOKUP = Item(
    id="01.vectors.own_lookup",
    kind="value",
    title="From token ids to vectors",
    difficulty=1,
    minutes=5,
    source="Part II (004), minimal transformer, step 1",
    answer="embedded",
    task="""
The first thing a model does with a text is to look it up. Here is the embedding table $E$ of a small
worked trace: five tokens, each a row of four components.

| id | | | | |
|---|---|---|---|---|
| 0 | 0.2 | 0.1 | −0.3 | 0.5 |
| 1 | −0.1 | 0.4 | 0.2 | −0.2 |
| 2 | 0.3 | −0.2 | 0.1 | 0.4 |
| 3 | 0.1 | 0.3 | −0.1 | 0.2 |
| 4 | −0.3 | 0.2 | 0.4 | −0.1 |

`mine.ids` is a text of three tokens. Put its embedded form into `embedded`: an array (or a list of lists) with one
row per token, in the order of the text.
""",
    numbers=lambda rng: {"ids": rng.choice(5, size=3, replace=False).tolist()},
    expected=lambda ids: ml.embedding(TABLE, ids),
    checks=(values(2),),
    mistakes=(
        Mistake(lambda ids: TABLE[np.subtract(ids, 1)], "You counted the rows from one. Token id 0 is the first row."),
        Mistake(
            lambda ids: TABLE[ids].T, "The numbers are right but the array lies on its side: one row per token, please."
        ),
        Mistake(lambda ids: TABLE[ids].sum(axis=0), "You added the rows up. Every token keeps a vector of its own."),
        Mistake(lambda ids: TABLE[ids[::-1]], "The right rows in another order: keep that of the text."),
        Mistake(lambda ids: TABLE[ids[0]], "That is the first token only. The other two follow, one row for each."),
        Mistake(
            lambda ids: np.eye(5)[ids],
            "These are the one-hot vectors. Multiply them by the table, or look the rows up.",
        ),
    ),
    hints=(
        "The first row of the answer is the row of the table whose number is `mine.ids[0]`.",
        "An array can be indexed by a whole list of rows at once.",
    ),
    references=("part2.tf.shape_E", "part2.tf.shape_X"),
)


# Core ---------------------------------------------------------------------------------------------------------------


def _norm_in_place(x):
    x *= x
    return np.sqrt(np.sum(x, axis=-1))


def _norm_scaled(x, zero=1, back=None):
    """The length by way of x/m, with a slip: where m is zero, or on the way back."""
    largest = np.abs(x).max(axis=-1, keepdims=True)
    scale = np.where(largest > 0, largest, zero).astype(x.dtype)
    with np.errstate(invalid="ignore"):
        length = np.sqrt(np.sum((x / scale) ** 2, axis=-1))
    return length * (scale[..., 0] if back is None else back)


NORM = Item(
    id="01.vectors.norm",
    kind="function",
    title="The length of every vector",
    difficulty=2,
    minutes=10,
    source="The primer (003), chapter I; Foundations (001), section 1.4",
    answer="norm",
    task="""
Write `norm(x)`, the length of each vector in an array. The components lie along the last axis:

- one vector of shape `(d,)` gives one number; a stack of shape `(..., d)` gives an array of shape `(...)`;
- the zero vector has length 0;
- an array of `float32` numbers gives `float32`, and `x` is left as it was;
- huge and tiny components work too: the square of 3e200 does not fit into a float, yet the length of [3e200, 4e200]
  does. (This is worth the last of the points; get the rest right first.)

Build it from squares, sums and roots: `np.linalg.norm` would do the job, and you would learn nothing.
""",
    expected=ml.norm,
    checks=(
        values(
            2,
            normals(2, 5, 64),
            public=[(np.array([3.0, 4.0]),), (np.array([6.0, 2.0, 3.0]),), (np.array([0.12, -0.85, 0.33, 0.71]),)],
            name="one vector",
        ),
        values(1, public=[(np.array([-2.5]),), (np.array([-1.0, 1.0]),), (np.zeros(3),)], name="small cases"),
        values(2, normals((4, 3), (3, 3), (2, 4, 5)), name="batch axes"),
        keeps_dtype(1, normals(6, dtype=np.float32), public=[(np.array([3, 4], np.float32),)]),
        leaves_inputs(1, normals(4, (2, 3))),
        values(
            1,
            lambda rng: [(rng.normal(size=5) * 1e-200,)],
            public=[(np.array([3e200, -4e200]),)],
            atol=0.0,
            name="huge and tiny components",
        ),
    ),
    mistakes=(
        Mistake(lambda x: np.sum(x * x, axis=-1), "This is the squared length: the square root is missing."),
        Mistake(
            lambda x: np.sum(np.abs(x), axis=-1),
            "You added the sizes of the components (the L1 norm). Square before you add.",
        ),
        Mistake(
            lambda x: np.abs(np.sum(x, axis=-1)),
            "You added the components before squaring, so that positive and negative ones cancel.",
        ),
        Mistake(
            lambda x: np.sqrt(np.mean(x * x, axis=-1)),
            "This is the root of the mean square. The length takes the sum, whatever the number of components.",
        ),
        Mistake(
            lambda x: np.sqrt(np.sum(x * x)),
            "All vectors of the stack went into one sum. Sum along the last axis only: `axis=-1`.",
            score=4,
        ),
        Mistake(
            lambda x: np.sqrt(np.sum(x * x, axis=0)),
            "You summed along the first axis. The components lie along the last: `axis=-1`.",
            score=4,
        ),
        Mistake(
            lambda x: np.sqrt(np.sum(x * x, axis=1)),
            "`axis=1` is the second axis, which a single vector has not got. The last one is `axis=-1`, however many.",
        ),
        Mistake(
            lambda x: np.sqrt(np.sum(x * x, axis=-1, keepdims=True)),
            "The summed axis is still there, with size one. Leave `keepdims=True` out, or drop the axis at the end.",
        ),
        Mistake(
            lambda x: _norm_scaled(x, back=1),
            "You divided by the largest component and did not multiply by it again: ‖x‖ = m · ‖x/m‖.",
        ),
        Mistake(
            lambda x: _norm_scaled(x, zero=0),
            "The zero vector became 0/0. Where the largest component is zero, divide by 1.",
            score=7,
        ),
        Mistake(
            _norm_in_place,
            "Your function overwrites its input: `x *= x` changes the caller's array. Write `x * x`.",
            score=6,
        ),
        Mistake(
            lambda x: ml.norm(x.astype(np.float64)),
            "Right, but float32 became float64 on the way. Let NumPy keep the dtype.",
            score=7,
        ),
        Mistake(
            lambda x: np.sqrt(np.sum(x * x, axis=-1)),
            "The squares of huge components overflow, those of tiny ones vanish. Divide by the largest one first.",
            score=7,
        ),
    ),
    hints=(
        "Square, sum along the last axis, take the root: `axis=-1`.",
        "For huge components: ‖x‖ = m · ‖x/m‖ for any m > 0. Which m makes every square harmless?",
        "With m the largest |component| (`keepdims=True` keeps the shapes matching); use 1 where it is zero.",
    ),
    references=("primer.ch01.ex1.magnitude", "primer.ch02.q1.magnitude", "primer.ch01.text.dim4_norm"),
)


_of_one_length = refusing(lambda a, b: a.shape[-1] != b.shape[-1])


def _distance_in_place(a, b):
    distance = ml.distance(a, b)
    if a.shape == b.shape:
        a -= b
    return distance


DISTANCE = Item(
    id="01.vectors.distance",
    kind="function",
    title="How far apart?",
    difficulty=2,
    minutes=10,
    source="The primer (003), chapter I, figure 1",
    answer="distance",
    task="""
In figure 1 of the primer related words lie close together. Write `distance(a, b)`, the Euclidean distance
$\\lVert a - b\\rVert$ between two vectors:

- components along the last axis; further axes broadcast, so that one vector can be held against a stack of them;
- `float32` stays `float32`, and the inputs are left as they were;
- vectors with different numbers of components are refused with `ValueError`. Beware: NumPy does not mind
  subtracting a vector with one component from one with three.
""",
    expected=ml.distance,
    checks=(
        values(
            2,
            normals([2, 2], [5, 5], [50, 50]),
            public=[(np.array([3.0, 7.0]), np.array([4.0, 6.5]))],
            name="two vectors",
        ),
        values(
            1,
            lambda rng: [(x := rng.normal(size=4), x.copy())],
            public=[(np.array([2.0]), np.array([-1.0]))],
            name="small cases",
        ),
        values(2, normals([(4, 3), (4, 3)], [3, (5, 3)], [(2, 1, 3), (4, 3)], [(3, 3), 3]), name="batch axes"),
        keeps_dtype(1, normals(6, count=2, dtype=np.float32)),
        leaves_inputs(1, normals([4, 4], [(2, 3), (2, 3)])),
        refuses(
            1,
            public=[(np.ones(3), np.ones(5)), (np.ones(3), np.ones(1)), (np.ones((2, 1)), np.ones((2, 4)))],
            name="refuses vectors of different lengths",
        ),
    ),
    mistakes=(
        Mistake(
            _of_one_length(lambda a, b: np.sum((a - b) ** 2, axis=-1)),
            "This is the squared distance: the square root is missing.",
            score=1,
        ),
        Mistake(
            _of_one_length(lambda a, b: np.sum(np.abs(a - b), axis=-1)),
            "You added the sizes of the differences: the way along the streets, not the straight line.",
            score=2,
        ),
        Mistake(
            _of_one_length(lambda a, b: np.abs(ml.norm(a) - ml.norm(b))),
            "You compared the two lengths. Vectors of equal length can be far apart: subtract first.",
            score=1,
        ),
        Mistake(
            _of_one_length(lambda a, b: np.max(np.abs(a - b), axis=-1)),
            "You kept only the largest difference; all of them count.",
            score=2,
        ),
        Mistake(
            _of_one_length(lambda a, b: np.sqrt(np.sum((a + b) ** 2, axis=-1))),
            "A sign: the arrow from one point to the other is the difference a − b.",
            score=1,
        ),
        Mistake(
            _of_one_length(lambda a, b: np.sqrt(np.mean((a - b) ** 2, axis=-1))),
            "You took the mean of the squares; the distance wants their sum.",
            score=2,
        ),
        Mistake(
            _of_one_length(lambda a, b: np.sum(a - b, axis=-1)),
            "You added the differences as they are, so that they cancel. Square them, add, and take the root.",
            score=2,
        ),
        Mistake(
            _of_one_length(lambda a, b: a - b), "This is the arrow from b to a. The distance is its length.", score=1
        ),
        Mistake(
            _of_one_length(lambda a, b: np.sqrt(np.sum((a - b) ** 2))),
            "All vectors went into one sum. Sum along the last axis only: `axis=-1`.",
            score=5,
        ),
        Mistake(
            _of_one_length(lambda a, b: np.sqrt(np.sum((a - b) ** 2, axis=0))),
            "You summed along the first axis, or looped over it. The components lie along the last: `axis=-1`.",
            score=5,
        ),
        Mistake(
            refusing(lambda a, b: a.shape != b.shape)(ml.distance),
            "You compared whole shapes, and refuse one vector held against a stack. Compare the last axes only.",
            score=6,
        ),
        Mistake(
            refusing(lambda a, b: len(a) != len(b) or a.shape[-1] != b.shape[-1])(ml.distance),
            "`len` is the size of the first axis. The components lie along the last: compare `a.shape[-1]`.",
            score=6,
        ),
        Mistake(
            lambda a, b: np.sqrt(np.sum((a - b) ** 2, axis=-1)),
            "A vector with one component is silently stretched to fit the other. Compare the last axes first.",
            score=7,
        ),
        Mistake(
            _distance_in_place,
            "Your function overwrites its input: `a -= b` changes the caller's array. Write `a - b`.",
            score=7,
        ),
    ),
    hints=("The distance is the length of the difference.", "`a.shape[-1]` is the number of components."),
)

FROBENIUS_NORM = Item(
    id="01.vectors.frobenius_norm",
    kind="function",
    title="The length of a matrix",
    difficulty=1,
    minutes=6,
    source="Foundations (001), section 1.4",
    answer="frobenius_norm",
    task="""
Write `frobenius_norm(W)` for a matrix of shape `(m, n)`:

$$\\lVert W\\rVert_F = \\sqrt{\\sum_i\\sum_j W_{ij}^2} = \\sqrt{\\operatorname{tr}(W^\\top W)} .$$

The two forms are the same number; either may be what you write. `float32` stays `float32`, and `W` is left as it
was.
""",
    expected=ml.frobenius_norm,
    checks=(
        values(
            2,
            normals((3, 3), (4, 2), (2, 6)),
            public=[(np.array([[1.0, 2.0], [2.0, 4.0]]),), (TABLE,)],
            name="a matrix",
        ),
        values(
            1,
            normals((1, 4), (4, 1)),
            public=[(np.array([[-3.0]]),), (np.zeros((2, 3)),)],
            name="one row, one column, zeros",
        ),
        keeps_dtype(1, normals((6, 5), dtype=np.float32)),
        leaves_inputs(1, normals((3, 2))),
    ),
    mistakes=(
        Mistake(lambda W: np.sum(W * W), "This is the squared norm: the square root is missing."),
        Mistake(
            lambda W: np.linalg.norm(W, 2),
            "This is the spectral norm, the largest stretch of the matrix. The Frobenius norm counts every entry.",
            score=1,
        ),
        Mistake(
            lambda W: np.sum(np.sqrt(np.sum(W * W, axis=-1))),
            "You took a root per row and added the roots. One root at the very end.",
            score=0,
        ),
        Mistake(
            lambda W: np.sqrt(np.sum(np.diag(W) ** 2)),
            "Only the diagonal entries went in. The trace is that of WᵀW, not of W.",
        ),
        Mistake(lambda W: np.sqrt(np.sum(W * W, axis=-1)), "One norm per row: sum over both axes."),
        Mistake(lambda W: np.sqrt(np.sum(W * W, axis=0)), "One norm per column: sum over both axes, without `axis`."),
        Mistake(
            lambda W: np.sqrt(np.sum(W.T @ W)),
            "You added all entries of WᵀW. The trace adds those on its diagonal, where a column meets itself.",
        ),
        Mistake(lambda W: np.sqrt(np.mean(W * W)), "You took the mean of the squares; the norm wants their sum."),
        Mistake(
            lambda W: np.sum(W), "You added the entries as they are. Square before you add, and take the root after."
        ),
        Mistake(
            lambda W: np.sum(np.abs(W)),
            "You added the sizes of the entries. Square before you add, and take the root after.",
        ),
    ),
    hints=("Think of the matrix as one long vector.", "Entry (j, j) of WᵀW is the sum of the squares of column j."),
)


_checked = refusing(lambda table, ids: np.any(np.asarray(ids) < 0) or np.any(np.asarray(ids) >= len(table)))


def _unchecked(table, ids):
    return table[ids]


def _checked_in_a_loop(table, ids):
    for id in ids:
        if id < 0 or id >= len(table):
            raise ValueError("refused")
    return table[ids]


@each
def _ids(rng, shape):
    """A random table, and random ids in this shape."""
    return rng.normal(size=(7, 3)), rng.integers(0, 7, size=shape)


EMBEDDING = Item(
    id="01.vectors.embedding",
    kind="function",
    title="Lookup, with care",
    difficulty=2,
    minutes=10,
    source="The training run (000), step 1; Foundations (001), section 6.1; Part II (004), minimal transformer, step 1",
    answer="embedding",
    task="""
Write `embedding(table, ids)`: `table` has one row per token, shape `(V, d)`; `ids` is an integer array of any shape
`(...)`, such as a sentence `(T,)` or a batch of sentences `(B, T)`. The result has shape `(..., d)`: in place of
every id stands its row.

- `float32` tables give `float32`, and the inputs are left as they were;
- an id that is negative, or is V or more, is refused with `ValueError`. (NumPy takes −1 for the last row, and would
  answer V with an `IndexError`.)
""",
    expected=ml.embedding,
    checks=(
        values(2, _ids(1, 4, 9), public=[(TABLE, np.array([0, 1, 2])), (TABLE, np.array([3]))], name="a sentence"),
        values(2, _ids((2, 4), (3, 3), (2, 1, 3)), name="a batch of sentences"),
        keeps_dtype(1, lambda rng: [(rng.normal(size=(4, 2)).astype(np.float32), np.array([3, 0, 3]))]),
        leaves_inputs(1, _ids(3, (2, 2))),
        refuses(
            1, public=[(TABLE, np.array([5])), (TABLE, np.array([[0, 9], [1, 2]]))], name="refuses ids beyond the table"
        ),
        refuses(1, public=[(TABLE, np.array([0, -1])), (TABLE, np.array([[-5]]))], name="refuses negative ids"),
    ),
    mistakes=(
        Mistake(
            _checked(lambda table, ids: table[ids - 1]),
            "You counted the rows from one. Token id 0 is the first row.",
            score=2,
        ),
        Mistake(
            _checked(lambda table, ids: table[ids].sum(axis=-2)),
            "You added the rows up. Every token keeps a vector of its own.",
            score=2,
        ),
        Mistake(
            _checked(lambda table, ids: table[ids.ravel()]),
            "The rows are right, but the shape of `ids` got lost: (B, T) ids give (B, T, d).",
            score=5,
        ),
        Mistake(
            _checked(lambda table, ids: np.moveaxis(table[ids], -1, 0)),
            "The numbers are right, but the components belong on the last axis: (..., d).",
            score=2,
        ),
        Mistake(
            _checked(lambda table, ids: table[:, ids]),
            "You looked up columns. An id is the number of a row: `table[ids]`, without a colon.",
            score=2,
        ),
        Mistake(
            _checked_in_a_loop,
            "`for id in ids` meets whole rows when `ids` is a batch. `np.any(ids < 0)` looks at all of them at once.",
            score=5,
        ),
        Mistake(
            refusing(lambda table, ids: np.any(ids < 0) or np.any(ids > len(table)))(_unchecked),
            "One id too many: rows are numbered 0 to V − 1, so V itself has to be refused, too.",
            score=7,
        ),
        Mistake(
            refusing(lambda table, ids: np.all(ids < 0) or np.all(ids >= len(table)))(_unchecked),
            "You refuse when *all* ids are wrong. A single one is enough: `np.any`.",
            score=6,
        ),
        Mistake(
            refusing(lambda table, ids: np.any(ids < 0) or np.any(ids >= table.shape[1]))(_unchecked),
            "You compared the ids with the number of columns. There are as many ids as rows: `len(table)`.",
            score=2,
        ),
        Mistake(
            _unchecked,
            "No id is checked: −1 gets the last row, and V an IndexError. Compare the ids with 0 and V first.",
            score=6,
        ),
        Mistake(
            lambda table, ids: table[np.where(ids < len(table), ids, -1)],
            "Ids outside the table got some row or other. Refuse them: a wrong word is worse than an error.",
            score=6,
        ),
        Mistake(
            lambda table, ids: table[np.clip(ids, 0, len(table) - 1)],
            "Ids outside the table were clipped to the nearest row. Refuse them: a wrong word is worse than an error.",
            score=6,
        ),
    ),
    hints=(
        "Indexing an array by an integer array does it in one step.",
        "`np.any(ids < 0)` is true when there is at least one negative id, whatever the shape.",
    ),
    references=("part2.tf.X", "part2.tf.shape_X", "run.step1.onehot", "run.step1.shape"),
)


def _unit_rows(table, power=1.0, epsilon=0.0, refuse=True):
    lengths = ml.norm(table)[:, None] ** power
    if refuse and np.any(lengths == 0):
        raise ValueError("a zero row")
    with np.errstate(invalid="ignore", divide="ignore"):
        return table / (lengths + epsilon)


_directed = refusing(lambda table: np.any(ml.norm(table) == 0))


def _broken_unit_rows(table):
    return table / np.sqrt(np.sum(table * table))


def _unit_columns(table):
    return table / np.sqrt(np.sum(table * table, axis=0))


def _unit_rows_by_sizes(table):
    return table / np.sum(np.abs(_unit_rows(table)) * ml.norm(table)[:, None], axis=1, keepdims=True)


def _unit_rows_in_place(table):
    table[...] = _unit_rows(table)
    return table


REPAIR_UNIT_ROWS = Item(
    id="01.vectors.repair_unit_rows",
    kind="repair",
    title="Mend it: rows of length one",
    difficulty=2,
    minutes=8,
    source="ours; Foundations (001), section 1.4",
    answer="unit_rows",
    masked=("normalize",),
    task="""
A colleague wants every word vector in a table to have length one. The function runs, the numbers look reasonable,
and it is wrong:

```python
def unit_rows(table):
    lengths = np.sqrt(np.sum(table * table))
    return table / lengths
```

Mend it. Each **row** of the result has length one and keeps its direction; a row of zeros has no direction and is
refused with `ValueError`. `float32` stays `float32`, and the table itself is left as it was.
""",
    expected=ml.normalize,
    checks=(
        values(
            3,
            normals((4, 3), (3, 3), (6, 5)),
            public=[(np.array([[3.0, 4.0], [0.0, 5.0]]),), (TABLE,)],
            name="several rows",
        ),
        values(1, normals((1, 3), (4, 1)), name="one row, one component"),
        keeps_dtype(1, normals((3, 2), dtype=np.float32)),
        leaves_inputs(1, normals((3, 2))),
        refuses(1, public=[(np.array([[1.0, 2.0], [0.0, 0.0]]),)], name="refuses a row of zeros"),
    ),
    mistakes=(
        Mistake(
            _broken_unit_rows,
            "Still as printed: one length for the whole table. Each row needs its own: `axis=1, keepdims=True`.",
        ),
        Mistake(_unit_columns, "You gave length one to the columns. Rows: sum along `axis=1`."),
        Mistake(
            _directed(lambda table: table / ml.norm(table)),
            "The lengths have shape (n,) and meet the columns. `keepdims=True` makes them (n, 1), one for each row.",
            score=1,
        ),
        Mistake(
            _directed(lambda table: table / np.sqrt(np.mean(table * table, axis=1, keepdims=True))),
            "You divided by the root of the *mean* square. The length takes the sum.",
            score=1,
        ),
        Mistake(
            refusing(lambda table: np.any(table == 0))(ml.normalize),
            "[0, 5] has a direction. Refuse a row only if *all* of it is zero, that is, if its length is.",
            score=4,
        ),
        Mistake(
            lambda table: _unit_rows(table, power=2),
            "You divided by the squared lengths: the root is missing.",
            score=1,
        ),
        Mistake(
            lambda table: _unit_rows(table, refuse=False),
            "A row of zeros comes back as NaN. Refuse it with `ValueError` before you divide.",
            score=6,
        ),
        Mistake(
            lambda table: _unit_rows(table, epsilon=1e-12, refuse=False),
            "A small number in the denominator hides the row of zeros, which stays of length zero. Refuse it.",
            score=6,
        ),
        Mistake(
            _unit_rows_by_sizes,
            "You divided by the sum of the sizes (L1). The length is the root of the sum of squares.",
            score=1,
        ),
        Mistake(_unit_rows_in_place, "Your function overwrites the caller's table. Return a new array.", score=6),
    ),
    hints=(
        "What is the shape of `lengths` in the broken version? What should it be?",
        "`keepdims=True` keeps the summed axis with size one, so that the division lines up row by row.",
    ),
)


def _scaled_rows(rng, *shapes):
    """Random stacks with a gradient for the length of each row."""
    return [(rng.normal(size=(n, d)), rng.normal(size=n)) for n, d in shapes]


def _norm_slope(x, dy):
    return ml.vjp(ml.norm, x)[1](dy)[0]


NORM_PULLBACK = Item(
    id="01.vectors.norm_pullback",
    kind="gradient",
    title="Which way is longer?",
    difficulty=2,
    minutes=12,
    source="ours; Foundations (001), section 1.4",
    answer="norm_pullback",
    masked=("vjp", "grad", "value_and_grad"),
    task="""
Let $y = \\lVert x\\rVert$. First on paper: what is $\\partial y/\\partial x_i$? (The derivative of $\\sqrt{s}$ is
$1/(2\\sqrt{s})$, and $s = \\sum_i x_i^2$.)

Then write `norm_pullback(x, dy)`. `x` is a stack of vectors, `(n, d)`; `dy` holds, for each of them, how much a
loss would change per unit of length, `(n,)`. Return how much it changes per unit of each component, `(n, d)`:

$$dx_i = dy \\cdot \\frac{\\partial y}{\\partial x_i} .$$

No row is zero, and the inputs are left as they were.
""",
    expected=_norm_slope,
    checks=(
        gradient(
            2,
            ml.norm,
            lambda rng: _scaled_rows(rng, (1, 5), (1, 1)),
            public=[(np.array([[3.0, 4.0]]), np.array([-2.0]))],
            name="one vector",
        ),
        gradient(2, ml.norm, lambda rng: _scaled_rows(rng, (4, 3), (3, 3), (2, 8)), name="a stack of vectors"),
        leaves_inputs(1, lambda rng: _scaled_rows(rng, (3, 2))),
    ),
    mistakes=(
        Mistake(
            lambda x, dy: dy[:, None] * 2 * x,
            "This is the gradient of the squared length. The root brings a factor 1/(2‖x‖).",
        ),
        Mistake(lambda x, dy: dy[:, None] * x, "You have x·dy: the division by the length ‖x‖ is missing."),
        Mistake(
            lambda x, dy: dy[:, None] * x / np.sum(x * x, axis=1, keepdims=True),
            "You divided by the squared length; the chain rule leaves one power, x/‖x‖.",
        ),
        Mistake(
            lambda x, dy: dy[:, None] * x / (2 * ml.norm(x)[:, None]),
            "Half of it: the 2 of 1/(2√s) cancels against the 2 of 2xᵢ.",
        ),
        Mistake(lambda x, dy: -dy[:, None] * x / ml.norm(x)[:, None], "The sign: pulling along x makes it longer."),
        Mistake(
            lambda x, dy: dy * x / ml.norm(x)[:, None],
            "`dy` has shape (n,) and meets the columns. As a column, `dy[:, None]`, it meets the rows.",
            score=2,
        ),
        Mistake(
            lambda x, dy: dy[:, None] * x / ml.norm(x),
            "The lengths have shape (n,) and meet the columns. As a column, with `[:, None]`, they meet the rows.",
            score=2,
        ),
        Mistake(lambda x, dy: x / ml.norm(x)[:, None], "The slope itself is right, but it must be multiplied by `dy`."),
        Mistake(
            lambda x, dy: dy[:, None] * x / np.sqrt(np.sum(x * x)),
            "One length for the whole stack: each row is divided by its own.",
            score=2,
        ),
        Mistake(
            lambda x, dy: dy[:, None] / ml.norm(x)[:, None] * np.ones_like(x),
            "The factor x_i has got lost: d(x_i²)/dx_i = 2x_i.",
        ),
    ),
    hints=(
        "Chain rule: the derivative of the root, times the derivative of the sum of squares.",
        "1/(2√s) · 2xᵢ = xᵢ/‖x‖: the gradient of the length is the unit vector.",
        "`dy[:, None]` has shape (n, 1) and multiplies whole rows.",
    ),
)


# Derivation and proof -----------------------------------------------------------------------------------------------


def _turns_only(expected, case, observation):
    """Growing longer does not turn a vector: the gradient has no part along x."""
    if observation.error:
        return f"raised {observation.error[0]}: {observation.message}"
    x, dx = case[0], numeric(observation.value)
    if dx is None or dx.shape != x.shape or not np.all(np.isfinite(dx)):
        return f"expected a finite gradient of shape {x.shape}, got {show(observation.value)}"
    if not np.any(dx):
        return "the gradient is zero everywhere"
    along = np.abs(np.sum(dx * x, axis=-1)) / (ml.norm(dx) * ml.norm(x) + 1e-300)
    return (
        None
        if np.all(along < 1e-9)
        else "along x itself the gradient should vanish: growing longer does not turn a vector"
    )


def _normalize_slope(x, dy):
    return ml.vjp(ml.normalize, x)[1](dy)[0]


def _part_along(x, dy, axis=-1):
    return np.sum(x * dy, axis=axis, keepdims=True)


NORMALIZE_PULLBACK = Item(
    id="01.vectors.normalize_pullback",
    kind="gradient",
    title="The gradient of a direction",
    difficulty=3,
    minutes=25,
    source="ours; Foundations (001), section 1.4",
    answer="normalize_pullback",
    masked=("vjp", "grad", "value_and_grad"),
    task="""
Let $u = x/\\lVert x\\rVert$. Every component of $x$ moves every component of $u$, because each one changes the
length. Derive, with the product rule and the last exercise,

$$\\frac{\\partial u_i}{\\partial x_j} = \\frac{\\delta_{ij} - u_i u_j}{\\lVert x\\rVert},$$

and from it what the gradient $dy$ for $u$ becomes for $x$: $dx_j = \\sum_i dy_i\\,\\partial u_i/\\partial x_j$.
Then write `normalize_pullback(x, dy)` for arrays of shape `(..., d)`, without ever building the $d\\times d$
matrix. No vector is zero, and the inputs are left as they were.
""",
    expected=_normalize_slope,
    checks=(
        gradient(
            2,
            ml.normalize,
            normals(3, 6, count=2),
            public=[(np.array([3.0, 4.0]), np.array([1.0, 0.0]))],
            name="one vector",
        ),
        gradient(2, ml.normalize, normals((4, 3), (3, 3), (2, 2, 4), count=2), name="batch axes"),
        Check("no part along x", 1, normals(3, (5, 4), count=2), _turns_only),
        leaves_inputs(1, normals((3, 2), count=2)),
    ),
    mistakes=(
        Mistake(
            lambda x, dy: dy / ml.norm(x)[..., None],
            "You treated the length as a constant. It moves with every component: the term −u (u·dy) is missing.",
        ),
        Mistake(
            lambda x, dy: dy - ml.normalize(x) * _part_along(ml.normalize(x), dy),
            "The division by ‖x‖ is missing: the longer the vector, the harder it is to turn.",
            score=1,
        ),
        Mistake(
            lambda x, dy: (dy - x * _part_along(x, dy)) / ml.norm(x)[..., None],
            "The projection needs unit vectors: u (u·dy), not x (x·dy).",
        ),
        Mistake(
            lambda x, dy: (dy - ml.normalize(x) * _part_along(x, dy)) / ml.norm(x)[..., None],
            "Both factors are unit vectors: u (u·dy), not u (x·dy).",
        ),
        Mistake(
            lambda x, dy: -_normalize_slope(x, dy),
            "All signs are turned: dy comes first, and its part along u is taken away from it.",
            score=1,
        ),
        Mistake(
            lambda x, dy: dy - ml.normalize(x) * _part_along(ml.normalize(x), dy) / ml.norm(x)[..., None],
            "Only the second term was divided by ‖x‖: put brackets round the difference.",
        ),
        Mistake(
            lambda x, dy: (dy - ml.normalize(x) * ml.dot(ml.normalize(x), dy)) / ml.norm(x)[..., None],
            "One u·dy for each vector has shape (...): `keepdims=True` lets it multiply whole vectors.",
            score=2,
        ),
        Mistake(
            lambda x, dy: (dy + ml.normalize(x) * _part_along(ml.normalize(x), dy)) / ml.norm(x)[..., None],
            "A sign: the part along u is taken away, not added.",
        ),
        Mistake(
            lambda x, dy: (dy - ml.normalize(x) * np.sum(ml.normalize(x) * dy)) / ml.norm(x)[..., None],
            "Right for one vector; in a stack, each vector has its own u·dy: sum along the last axis only.",
            score=2,
        ),
        Mistake(
            lambda x, dy: (1 - ml.normalize(x) ** 2) * dy / ml.norm(x)[..., None],
            "You kept only the terms with i = j. Every component of x moves every component of u.",
        ),
    ),
    hints=(
        "∂uᵢ/∂xⱼ = δᵢⱼ/‖x‖ − xᵢ/‖x‖² · ∂‖x‖/∂xⱼ, and the last factor is uⱼ.",
        "Sum over i: one term keeps dyⱼ, the other collects u·dy.",
        "In words: what remains of dy when its part along u is taken away, divided by the length.",
    ),
)

LINE_OR_PLANE = Item(
    id="01.vectors.line_or_plane",
    kind="text",
    title="Why one number per word is not enough",
    difficulty=2,
    minutes=15,
    source="The primer (003), chapter I",
    task="""
The primer claims that a single number per word cannot capture how words are related. Prove a small piece of it.
Three words are equally related to each other: all three pairwise distances shall be 1.

1. Show that no three numbers on a line have this property.
2. Give three points in the plane that do, and show it.
3. Say in two or three sentences what follows for word vectors.
""",
    rubric=(
        (
            2,
            "On a line: orders the three numbers and adds the two inner distances, so that the outer one is 2, not 1.",
        ),
        (1, "In the plane: an equilateral triangle with side 1, with all three distances verified."),
        (
            1,
            "Conclusion: one number forces an order on the words; more components give room for independent relations.",
        ),
    ),
    hints=(
        "Call the middle one of the three numbers b. What is c − a, if c − b = 1 and b − a = 1?",
        "Two of the points may be (0, 0) and (1, 0). Where is the third, by symmetry?",
    ),
)


# Project ------------------------------------------------------------------------------------------------------------


_in_range = refusing(lambda table, query, k: not 1 <= k <= len(table))


def _any_k(table, query, k):
    return np.argsort(ml.distance(table, query), kind="stable")[:k]


_nearest = _in_range(_any_k)


def _largest(score, k):
    return np.argsort(-score, kind="stable")[:k]


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

NEAREST = Item(
    id="01.vectors.nearest",
    kind="function",
    title="A search engine in ten lines",
    difficulty=3,
    minutes=30,
    source="ours, after the primer (003), chapter I, figure 1",
    answer="nearest",
    task="""
Write `nearest(table, query, k)`. `table` holds V word vectors, `(V, d)`, and `query` is one more, `(d,)`. Return
the row indices of the `k` words nearest to the query by Euclidean distance, the nearest first.

- Words at the same distance come in the order of the table, the smaller index first.
- If the query is itself a row of the table, that row is found like any other (at distance zero).
- `k` less than 1 or greater than V is refused with `ValueError`.
- The inputs are left as they were. A Python loop over the rows is allowed; with 400,000 words you will not want it.

When it works, try it on real words: `words = glove.load()` (from `mathllm.pretrained import glove`) has
`words.words` and `words.vectors`.
""",
    expected=_nearest,
    checks=(
        values(
            3,
            _search((8, 2), (30, 5), (200, 10)),
            public=[(SMALL_MAP, np.array([1.5, 1.5]), 3), (SMALL_MAP, SMALL_MAP[4], 2)],
            name="nearest first",
        ),
        values(
            1,
            lambda rng: [(x := rng.normal(size=(6, 3)), x[2], 1), (rng.normal(size=(30, 2)), rng.normal(size=2), 30)],
            public=[(np.ones((1, 4)), np.zeros(4), 1)],
            name="one word, all words",
        ),
        values(1, _with_twins, public=[(ON_CIRCLES, np.ones(2), 5)], name="ties in the order of the table"),
        leaves_inputs(1, _search((40, 3), (200, 10))),
        refuses(
            1,
            public=[(SMALL_MAP, np.zeros(2), 0), (SMALL_MAP, np.zeros(2), 7), (SMALL_MAP, np.zeros(2), -1)],
            name="refuses a wrong k",
        ),
    ),
    mistakes=(
        Mistake(
            _in_range(lambda table, query, k: _largest(ml.distance(table, query), k)),
            "These are the farthest words. Sort from small distances to large ones.",
            score=1,
        ),
        Mistake(
            _in_range(lambda table, query, k: _largest(table @ query, k)),
            "You ranked by the dot product. This exercise asks for the distance; dot products come in chapter 2.",
            score=1,
        ),
        Mistake(
            _in_range(lambda table, query, k: np.sort(ml.distance(table, query))[:k]),
            "These are the distances. Wanted are the indices of the rows: `np.argsort`.",
            score=1,
        ),
        Mistake(
            _in_range(lambda table, query, k: np.sort(_nearest(table, query, k))),
            "The right words, sorted by index. Keep them in the order of their distance.",
            score=1,
        ),
        Mistake(
            _in_range(lambda table, query, k: np.argsort(np.sum(np.abs(table - query), axis=1), kind="stable")[:k]),
            "You added the sizes of the differences (the L1 distance). Euclid squares them, adds, and takes the root.",
            score=1,
        ),
        Mistake(
            _in_range(lambda table, query, k: np.argsort(np.abs(ml.norm(table) - ml.norm(query)), kind="stable")[:k]),
            "You compared lengths. Two words of equal length can be far apart: subtract first.",
            score=1,
        ),
        Mistake(
            _in_range(lambda table, query, k: _largest(ml.dot(table, query) / ml.norm(table), k)),
            "You ranked by direction (the cosine). This exercise asks for the distance, which sees lengths, too.",
            score=1,
        ),
        Mistake(
            _in_range(lambda table, query, k: np.argsort(ml.distance(table, query), kind="stable")[1 : k + 1]),
            "You left the nearest one out. A query that is itself a row is found like any other.",
            score=1,
        ),
        Mistake(
            _in_range(lambda table, query, k: table[_nearest(table, query, k)]),
            "These are the vectors. Wanted are their row numbers.",
            score=1,
        ),
        Mistake(
            _in_range(lambda table, query, k: _nearest(table, query, k) + 1),
            "You counted the rows from one. The first row has the index 0.",
            score=1,
        ),
        Mistake(
            _in_range(lambda table, query, k: np.argsort(ml.distance(table, query))[:k]),
            'Without `kind="stable"`, `argsort` shuffles words at the same distance.',
            score=6,
        ),
        Mistake(
            _any_k,
            "Right, but a k that cannot be served is answered with some list or other. Refuse it with `ValueError`.",
            score=6,
        ),
    ),
    hints=(
        "`table - query` subtracts the query from every row at once.",
        "`np.argsort(distances)` gives the indices that would sort the distances.",
        '`kind="stable"` keeps equal distances in the order of the table.',
    ),
)


# Check yourself (in the chapter, not graded) ------------------------------------------------------------------------

QUICK = [
    Item(
        id="01.vectors.quick_components",
        kind="value",
        title="How many components?",
        difficulty=1,
        minutes=1,
        source="The primer (003), chapter I",
        graded=False,
        answer="components",
        task="How many components has the vector [0.12, −0.85, 0.33, 0.71]?",
        expected=lambda: ml.vectors.vector([0.12, -0.85, 0.33, 0.71]).size,
        checks=(values(1),),
        mistakes=(
            Mistake(lambda: 1, "One is the number of axes. How many numbers are in the list?"),
            Mistake(lambda: 1.16, "That is its length. The number of components is a count.", 0),
        ),
        references=("primer.ch01.text.dim4",),
    ),
    Item(
        id="01.vectors.quick_stretch",
        kind="value",
        title="Stretched and turned round",
        difficulty=1,
        minutes=1,
        source="after the primer (003), chapter I, example 1",
        graded=False,
        answer="length",
        task="Every component of [3, 4] is multiplied by −2. How long is the result?",
        expected=lambda: ml.norm([-6, -8]),
        checks=(values(1),),
        mistakes=(
            Mistake(lambda: -10, "A length is never negative: ‖cv‖ = |c|·‖v‖."),
            Mistake(lambda: 20, "The factor comes in once, not squared: ‖cv‖ = |c|·‖v‖."),
            Mistake(lambda: 5, "Doubling every component doubles the length."),
            Mistake(lambda: 14, "You added the components. Square first, add, then take the root."),
        ),
    ),
    Item(
        id="01.vectors.quick_unit",
        kind="value",
        title="Direction only",
        difficulty=1,
        minutes=1,
        source="after the primer (003), chapter I, example 1",
        graded=False,
        answer="unit",
        task="Which vector has the direction of [3, 4] and length one?",
        expected=lambda: ml.normalize([3, 4]),
        checks=(values(1, decimals=3),),
        mistakes=(
            Mistake(lambda: [1, 1], "[1, 1] points elsewhere, and its length is √2. Divide [3, 4] by its own length."),
            Mistake(lambda: [3 / 7, 4 / 7], "You divided by the sum of the components. Divide by the length, 5."),
            Mistake(lambda: [3 / 25, 4 / 25], "You divided by the squared length. Divide by the length, 5."),
        ),
    ),
    Item(
        id="01.vectors.quick_lookup_shape",
        kind="value",
        title="The shape of a lookup",
        difficulty=1,
        minutes=1,
        source="after Part II (004), minimal transformer, step 1",
        graded=False,
        answer="shape",
        task="Seven token ids are looked up in a table of 50,257 rows and 768 columns. What shape has the result?",
        expected=lambda: ml.embedding(np.broadcast_to(0.0, (50257, 768)), np.arange(7)).shape,
        checks=(values(1),),
        mistakes=(
            Mistake(lambda: (768, 7), "The other way round: one row per token."),
            Mistake(
                lambda: (7, 50257),
                "That is the shape of the one-hot rows. The lookup replaces each of them by a row of 768 numbers.",
            ),
            Mistake(lambda: (768,), "That is one token. Seven of them are stacked."),
        ),
    ),
    Item(
        id="01.vectors.quick_frobenius",
        kind="value",
        title="The length of a small matrix",
        difficulty=1,
        minutes=1,
        source="after Foundations (001), section 1.4",
        graded=False,
        answer="length",
        task="What is the Frobenius norm of the matrix with the rows [1, 2] and [2, 4]?",
        expected=lambda: ml.frobenius_norm([[1, 2], [2, 4]]),
        checks=(values(1),),
        mistakes=(
            Mistake(lambda: 25, "That is its square: take the root."),
            Mistake(lambda: 9, "You added the entries. Square them first."),
            Mistake(lambda: np.sqrt(17), "Only the diagonal went in. All four entries count."),
        ),
    ),
]

ITEMS = [
    LENGTH_BY_HAND,
    OWN_LENGTH,
    OWN_LOOKUP,
    NORM,
    DISTANCE,
    FROBENIUS_NORM,
    EMBEDDING,
    REPAIR_UNIT_ROWS,
    NORM_PULLBACK,
    NORMALIZE_PULLBACK,
    LINE_OR_PLANE,
    NEAREST,
    *QUICK,
]
