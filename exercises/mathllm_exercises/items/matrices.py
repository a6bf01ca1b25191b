"""Chapter 03, matrices: products and their price, layers, a walk of attention, directions that can be left out."""

import numpy as np

import mathllm as ml

from ..cases import each, normals, refusing, tells_apart
from ..item import Item, Mistake, gradient, keeps_dtype, leaves_inputs, refuses, values

# Warm-up ------------------------------------------------------------------------------------------------------------

PRODUCT_BY_HAND = Item(
    id="03.matrices.product_by_hand",
    kind="value",
    title="Two rows, two dot products",
    difficulty=1,
    minutes=3,
    source="The primer (003), chapter III, exercise 5",
    answer="product",
    task="""
Multiply the matrix with the rows $[2, 1]$ and $[0, 3]$ by the vector $[4, 2]$. Put the result, a list of two
numbers, into `product`.
""",
    expected=lambda: ml.matrices.matrix_vector_product([[2.0, 1.0], [0.0, 3.0]], [4.0, 2.0]),
    checks=(values(2),),
    mistakes=(
        Mistake(lambda: [8, 10], "You went down the columns. Each row of the matrix meets the vector."),
        Mistake(lambda: [[8, 2], [0, 6]], "These are the products of the entries. Add them up along each row."),
        Mistake(lambda: [8, 6], "Only the diagonal was used. In the first row the 1 meets the 2 and adds 2."),
        Mistake(lambda: [6, 10], "The rows have changed places: the first row makes the first number."),
        Mistake(lambda: [[10], [6]], "The numbers are right. Write them as a plain list, without inner brackets."),
        Mistake(lambda: 16, "Two numbers were asked for, one for each row; do not add them."),
    ),
    hints=("First row: 2·4 + 1·2.", "Second row: 0·4 + 3·2."),
    references=("primer.ch03.q5.Wv",),
)

SHAPES_BY_HAND = Item(
    id="03.matrices.shapes_by_hand",
    kind="value",
    title="What fits in, what comes out",
    difficulty=1,
    minutes=3,
    source="The primer (003), chapter III, exercise 6",
    answer="sizes_in_and_out",
    task="""
A matrix $W$ has shape (512 × 768). In the product $Wx$, how many components must $x$ have, and how many has the
result? Put the two numbers, in this order, into the list `sizes_in_and_out`.
""",
    expected=lambda: [768, ml.matrices.matrix_vector_product(np.zeros((512, 768)), np.zeros(768)).size],
    checks=(values(2),),
    mistakes=(
        Mistake(lambda: [512, 768], "The other way round: a row, which meets x, has 768 entries; there are 512 rows."),
        Mistake(lambda: [768, 768], "The input is right. There is one output for each row."),
        Mistake(lambda: [512, 512], "The output is right. Each row, which x must fit, has 768 entries."),
        Mistake(lambda: 393216, "This is the number of entries of W. Wanted are the sizes of x and of Wx."),
    ),
    hints=("The first number of a shape counts rows.", "One dot product per row."),
    references=("primer.ch03.q6.input_dim", "primer.ch03.q6.output_dim"),
)

PRODUCT_SHAPES = Item(
    id="03.matrices.product_shapes",
    kind="value",
    title="One order works, the other does not",
    difficulty=1,
    minutes=4,
    source="The primer (003), chapter III, exercise 7",
    answer="shape_and_other_order",
    task="""
$A$ has shape (3 × 4) and $B$ has shape (4 × 2). Give three numbers in a list, `shape_and_other_order`: the rows and
the columns of $AB$, then 1 if $BA$ is defined too, and 0 if it is not.
""",
    expected=lambda: [*ml.matrices.product_shape((3, 4), (4, 2)), 0],
    checks=(values(2),),
    mistakes=(
        Mistake(lambda: [3, 2, 1], "For BA, the 2 columns of B would have to meet the 3 rows of A. They do not match."),
        Mistake(lambda: [4, 4, 0], "These are the inner sizes, which must match and vanish. The outer ones remain."),
        Mistake(
            lambda: [2, 3, 1],
            "Rows come from the first factor, columns from the second. And in BA, the 2 would meet the 3.",
        ),
        Mistake(lambda: [2, 3, 0], "Rows come from the first factor, columns from the second."),
        Mistake(lambda: [3, 2], "The shape is right. A third number was asked for: is BA defined?"),
    ),
    hints=("Write the shapes side by side: (3 × 4)(4 × 2).", "For BA write them the other way: (4 × 2)(3 × 4)."),
    references=("primer.ch03.q7.AB", "primer.ch03.q7.BA_defined"),
)


# Core ---------------------------------------------------------------------------------------------------------------


def _wide_layer(rng):
    """A 2 × 3 matrix, a bias and two examples, such that no known mistake gives the right table."""
    while True:
        own = {
            "W": rng.integers(-4, 5, size=(2, 3)).tolist(),
            "b": rng.choice([-3, -2, -1, 1, 2, 3], size=2, replace=False).tolist(),
            "examples": rng.integers(-4, 5, size=(2, 3)).tolist(),
        }
        if tells_apart(OWN_LAYER, own, 0.5):
            return own


OWN_LAYER = Item(
    id="03.matrices.own_layer",
    kind="value",
    title="From the book's side to the code's",
    difficulty=2,
    minutes=8,
    source="after the primer (003), chapter III, example 3, and chapter X",
    answer="outputs",
    task="""
A book writes a layer as $y = Wx + b$, with columns. `mine.W` is its (2 × 3) matrix, `mine.b` its bias, and
`mine.examples` holds two examples as **rows**, as code does. Put the outputs of the layer into `outputs`: one row for
each example, shape (2, 2).
""",
    numbers=_wide_layer,
    expected=lambda W, b, examples: ml.linear(examples, ml.matrices.transpose(W), b),
    checks=(values(2),),
    mistakes=(
        Mistake(
            lambda W, b, examples: ml.linear(examples, ml.matrices.transpose(W)),
            "The products are right; the bias is missing. It is added to every row.",
        ),
        Mistake(
            lambda W, b, examples: np.transpose(ml.linear(examples, ml.matrices.transpose(W), b)),
            "Your table is transposed: the outputs of one example belong into one row.",
        ),
        Mistake(
            lambda W, b, examples: np.dot(W, np.transpose(examples)) + np.array(b),
            "Here the outputs of one example stand in a column, and b was added to rows. Turn the table, then add b.",
        ),
        Mistake(
            lambda W, b, examples: np.dot(W, examples[0]) + np.array(b),
            "This is the output for the first example. Put the second one below it.",
        ),
        Mistake(
            lambda W, b, examples: np.dot(examples, np.transpose(W)) + np.array(b)[:, None],
            "The bias went down the columns. Output j gets b_j, in every row.",
        ),
        Mistake(
            lambda W, b, examples: np.dot(examples, np.reshape(W, (3, 2))) + b,
            "`reshape` is not a transpose: it keeps the order of the numbers and cuts it elsewhere. Use `.T`.",
        ),
        Mistake(
            lambda W, b, examples: ml.linear(examples, ml.matrices.transpose(W), -np.array(b)),
            "A sign: the bias is added, not taken away.",
        ),
    ),
    hints=("Each output is one row of W times one example, plus its b.", "`examples @ W.T` has shape (2, 2)."),
    references=("primer.ch03.ex3.Wv", "primer.ch03.ex3.shape"),
)


def _long_chain(rng):
    """Four sizes of a chain of three matrices for which the two orders differ in price."""
    while True:
        sizes = rng.choice([2, 3, 4, 5, 6, 8, 10, 12, 20, 30], size=4, replace=False).tolist()
        m, n, p, q = sizes
        left, right = m * n * p + m * p * q, n * p * q + m * n * q
        if not 0.5 < left / right < 2:
            return {"sizes": sizes}


def _prices(sizes):
    m, n, p, q = sizes
    return m * n * p + m * p * q, n * p * q + m * n * q


OWN_ORDER = Item(
    id="03.matrices.own_order",
    kind="value",
    title="Where to cut",
    difficulty=2,
    minutes=8,
    source="after Foundations (001), section 1.2.1",
    answer="cheapest",
    task="""
Three matrices $A$, $B$, $C$ have the shapes $(m\\times n)$, $(n\\times p)$ and $(p\\times q)$; your sizes
$m, n, p, q$ are in `mine.sizes`. The product $ABC$ can be computed as $(AB)C$ or as $A(BC)$. How many multiplications
does the cheaper way cost? Put the number into `cheapest`.
""",
    numbers=_long_chain,
    expected=lambda sizes: min(_prices(sizes)),
    checks=(values(2),),
    mistakes=(
        Mistake(lambda sizes: max(_prices(sizes)), "This is the dearer way. Compute the other one, too."),
        Mistake(
            lambda sizes: int(np.prod(sizes)),
            "You multiplied all four sizes. A chain is two products, and their prices are added.",
        ),
        Mistake(
            lambda sizes: min(sizes[0] * sizes[1] * sizes[2], sizes[1] * sizes[2] * sizes[3]),
            "This is the price of the first product only. The second one costs, too.",
        ),
        Mistake(
            lambda sizes: _prices(sizes)[0] + _prices(sizes)[1],
            "You added the prices of both ways. Only one of them is taken: the cheaper.",
        ),
        Mistake(
            lambda sizes: list(_prices(sizes)),
            "These are the prices of both ways. Put only the smaller one into `cheapest`.",
        ),
        Mistake(
            lambda sizes: sizes[1] * sizes[2] * (sizes[0] + sizes[3]),
            "You added the prices of AB and BC. After AB, which has shape (m × p), comes (AB)C: m·p·q.",
        ),
        Mistake(
            lambda sizes: 2 * min(_prices(sizes)),
            "You counted additions as well. Asked for are the multiplications.",
        ),
    ),
    hints=("(AB) costs m·n·p and has shape (m × p). What does it cost to multiply it by C?", "Do the same for A(BC)."),
    references=("foundations.matmul.ops",),
)


_fitting = refusing(lambda A, B: A.shape[1] != B.shape[0])


def _by_loop(A, B, first=0, add=True, column=lambda A, k: A[:, k, None], C=None):
    """The loop over k, with a slip at one of its places."""
    C = np.zeros((A.shape[0], B.shape[1]), A.dtype) if C is None else C
    for k in range(first, A.shape[1]):
        if add:
            C += column(A, k) * B[k]
        else:
            C = column(A, k) * B[k]
    return C


def _silent_cut(A, B):
    n = min(A.shape[1], B.shape[0])
    return A[:, :n] @ B[:n]


def _in_place(A, B):
    C = A @ B
    A *= 0
    return C


MATRIX_PRODUCT = Item(
    id="03.matrices.matrix_product",
    kind="function",
    title="Without the operator",
    difficulty=2,
    minutes=15,
    source="Foundations (001), section 1.2.1",
    answer="matrix_product",
    masked=("matrix_product", "matrix_product_by_hand"),
    task="""
Write `matrix_product(A, B)`, the product of two matrices,

$$C_{ij} = \\sum_k A_{ik}\\,B_{kj} ,$$

without `@`, `np.dot`, `np.matmul` or `np.einsum` (nobody checks; it is your exercise). One loop is enough: over $k$,
adding tables of the shape of the result.

- Inner sizes that differ are refused with `ValueError`.
- `float32` stays `float32`, and the inputs are left as they were.
""",
    expected=ml.matrices.matrix_product,
    checks=(
        values(
            3,
            normals([(2, 3), (3, 4)], [(4, 1), (1, 3)], [(1, 5), (5, 1)], [(5, 2), (2, 2)]),
            public=[
                (np.array([[1.0, 2], [0, 1]]), np.array([[1.0, 0], [3, 1]])),
                (np.array([[2.0, 0], [0, 3], [1, 1]]), np.array([[4.0], [2]])),
            ],
        ),
        values(1, normals([(3, 3), (3, 3)], [(2, 2), (2, 2)]), name="square matrices"),
        keeps_dtype(1, normals((3, 3), count=2, dtype=np.float32)),
        leaves_inputs(1, normals([(2, 3), (3, 2)])),
        refuses(1, public=[(np.ones((2, 3)), np.ones((2, 3))), (np.ones((2, 2)), np.ones((1, 2)))]),
    ),
    mistakes=(
        Mistake(
            _fitting(lambda A, B: A * B),
            "You multiplied entry by entry: `*` is not the matrix product.",
            score=1,
        ),
        Mistake(_fitting(lambda A, B: B.T @ A.T), "Your result is transposed: (AB)ᵀ = BᵀAᵀ.", score=1),
        Mistake(
            _fitting(lambda A, B: B @ A),
            "This is BA. The order matters.",
            score=1,
        ),
        Mistake(
            _fitting(lambda A, B: _by_loop(A, B, first=1)),
            "The first term of each sum is missing: k runs over all columns of A, from 0 on.",
            score=1,
        ),
        Mistake(
            _fitting(lambda A, B: _by_loop(A, B, add=False)),
            "Only the last term is left: each k *adds* its table, `C += …`.",
            score=1,
        ),
        Mistake(
            _fitting(lambda A, B: _by_loop(A, B, column=lambda A, k: A[:, k])),
            "`A[:, k] * B[k]` has one axis. As a column, `A[:, k, None]`, it meets the row and makes a table.",
            score=1,
        ),
        Mistake(
            _fitting(lambda A, B: _by_loop(A, B, C=np.zeros_like(A))),
            "The result has the rows of A and the *columns of B*. `np.zeros_like(A)` has the columns of A.",
            score=3,
        ),
        Mistake(
            _fitting(lambda A, B: np.array([[np.sum(row * other) for other in B] for row in A], A.dtype)),
            "Rows of A met rows of B. Each row of A meets the *columns* of B.",
            score=1,
        ),
        Mistake(_silent_cut, "Sizes that do not match are cut to fit, in silence. Refuse them.", score=6),
        Mistake(
            _fitting(lambda A, B: A.astype(float) @ B.astype(float)),
            "float32 became float64 on the way: start from zeros in the dtype of the inputs.",
            score=6,
        ),
        Mistake(_fitting(_in_place), "Your function changes the caller's matrix A.", score=6),
    ),
    hints=(
        "`A[:, k, None]` is column k of A as a column, `B[k]` row k of B. What shape has their product by `*`?",
        "Start with `np.zeros((m, p), np.result_type(A, B))`.",
    ),
    references=("foundations.matmul.commute", "primer.ch03.fig4.Wv"),
)


@each
def _layers(rng, shape):
    """x with the given leading shape and size, a square or other W, and a bias."""
    lead, n, m = shape
    return rng.normal(size=(*lead, n)), rng.normal(size=(n, m)), rng.normal(size=m)


def _broken_linear(x, W, b):
    return x @ W.T + b


_checked = refusing(lambda x, W, b: x.shape[-1] != W.shape[0] or b.shape != W.shape[1:])


REPAIR_LINEAR = Item(
    id="03.matrices.repair_linear",
    kind="repair",
    title="Mend it: right only by luck",
    difficulty=2,
    minutes=10,
    source="Part II (004), common bugs; Foundations (001), section 1.2",
    answer="linear",
    task="""
This layer was copied from a book that writes $Wx$. It never complains about a square matrix, and is wrong about it:

```python
def linear(x, W, b):
    return x @ W.T + b
```

Mend it, in this book's convention: `x` has shape `(..., n)`, with any number of leading axes (none, too), `W` has
shape `(n, m)`, one column per output, `b` has shape `(m,)`, and the result has shape `(..., m)`.

- A matrix that does not fit `x` is refused with `ValueError`. So is a bias whose shape is not `(m,)`: a bias of shape
  `(m, 1)` or `(1,)` would broadcast in silence.
- The inputs are left as they were.
""",
    expected=ml.linear,
    checks=(
        values(2, _layers(((4,), 3, 3), ((2,), 2, 2)), name="square matrices"),
        values(
            2,
            _layers(((4,), 3, 5), ((2, 3), 4, 2), ((), 3, 1)),
            public=[(np.array([[3.0, 1, 4]]), np.array([[1.0, 0], [0, 3], [2, 1]]), np.zeros(2))],
            name="any shape",
        ),
        refuses(
            1,
            public=[
                (np.ones((3, 2)), np.ones((2, 3)), np.ones((3, 1))),
                (np.ones((2, 2)), np.ones((2, 4)), np.ones(1)),
            ],
            name="refuses a bias that would broadcast",
        ),
        refuses(1, public=[(np.ones((2, 3)), np.ones((2, 3)), np.ones(3))], name="refuses a matrix that does not fit"),
        leaves_inputs(1, _layers(((2,), 3, 3))),
    ),
    mistakes=(
        Mistake(_broken_linear, "Still as printed: rows of x meet the columns of W, so it is `x @ W`.", score=2),
        Mistake(
            lambda x, W, b: x @ W + b,
            "The product is right. A bias of shape (m, 1) or (1,) is broadcast in silence: compare its shape first.",
            score=6,
        ),
        Mistake(_checked(lambda x, W, b: x @ W), "The bias is missing.", score=2),
        Mistake(
            _checked(lambda x, W, b: np.array([W.T @ row + b for row in x])),
            "It works for a table of examples only. `x @ W` takes any leading axes, and none.",
            score=5,
        ),
        Mistake(
            _checked(lambda x, W, b: W @ x + b),
            "Wx is for columns. Here examples are rows: x stands in front, `x @ W`.",
            score=2,
        ),
        Mistake(_checked(lambda x, W, b: x @ W - b), "A sign: the bias is added.", score=2),
        Mistake(
            _checked(lambda x, W, b: x @ W + b[:, None]),
            "The bias went down the rows. Output j gets b_j in every row: add b as it is.",
            score=2,
        ),
        Mistake(
            _checked(lambda x, W, b: x @ (W.T if W.shape[0] == W.shape[1] else W) + b),
            "Square matrices are still transposed.",
            score=4,
        ),
    ),
    hints=(
        "Which sizes meet in `x @ W`? Which in `x @ W.T`?",
        "`b.shape != W.shape[1:]` is true for (m, 1) as well as for (1,).",
    ),
)

LORA_COUNT = Item(
    id="03.matrices.lora_count",
    kind="value",
    title="Two thin matrices",
    difficulty=1,
    minutes=4,
    source="Four Pillars (002), low-rank approximation and LoRA",
    answer="thin_full_ratio",
    task="""
An update of a square matrix with $d = 4096$ is written as a product of two thin matrices of rank $r = 8$. Give three
numbers in a list, `thin_full_ratio`: how many entries the two thin matrices have together, how many the full update
has, and how many times more that is.
""",
    expected=lambda: [2 * 4096 * 8, 4096**2, 4096**2 / (2 * 4096 * 8)],
    checks=(values(2),),
    mistakes=(
        Mistake(lambda: [32768, 4096**2, 512], "There are two thin matrices, 4096 × 8 and 8 × 4096: 2dr entries."),
        Mistake(lambda: [8192, 4096**2, 2048], "The rank is missing: each thin matrix has 8 columns, or 8 rows."),
        Mistake(lambda: [65536, 4096, 0.0625], "A square matrix has d² entries, not d."),
        Mistake(lambda: [65536, 4096**2, 1 / 256], "The ratio is upside down: full over thin."),
        Mistake(lambda: [2 * 4096 * 64, 4096**2, 32], "You squared the rank. A thin matrix has d·r entries: 4096 · 8."),
    ),
    hints=("One is 4096 × 8, the other 8 × 4096.", "The ratio is d²/(2dr) = d/(2r)."),
    references=("pillars.lora.params", "pillars.lora.full", "pillars.lora.ratio"),
)


@each
def _walks(rng, n, power=1.0, even=0.7):
    """A random attention matrix, mixed with this share of even attention: |λ₂| is at most 1 − even."""
    A = rng.uniform(0.05, 1, size=(n, n)) ** power
    return ((1 - even) * A / A.sum(axis=1, keepdims=True) + even / n,)


def _causal_walks(rng):
    cases = []
    for n in (3, 5):
        A = np.tril(rng.uniform(0.2, 1, size=(n, n)))
        cases.append((A / A.sum(axis=1, keepdims=True),))
    return cases


WORKED = np.array([[0.386, 0.323, 0.291], [0.294, 0.351, 0.355], [0.269, 0.356, 0.375]])
SLOW = 0.98 * np.eye(3) + 0.02 * WORKED
CAUSAL = np.array([[1.0, 0], [0.1, 0.9]])


_judged = refusing(lambda A: np.any(A < 0) or np.any(np.abs(A.sum(axis=1) - 1) > 1e-6))


STATIONARY = Item(
    id="03.matrices.stationary",
    kind="function",
    title="Where attention settles",
    difficulty=3,
    minutes=20,
    source="Four Pillars (002), eigenvalues and attention",
    answer="stationary",
    masked=("stationary_distribution", "power_iteration"),
    task="""
Write `stationary(A)`. `A` has shape `(n, n)`, and its rows are shares: not negative, with sum 1. Return the
distribution $\\pi$, shape `(n,)`, with $\\pi A = \\pi$: the one in which the walk settles, wherever it starts.

Start with equal shares and take steps of the walk until nothing changes, or solve for the left eigenvector (NumPy may
hand it over in complex numbers: take `.real`). Either way to nine digits. Every matrix in the checks settles in fewer
than 2,000 steps.

- Rows that are no shares are refused with `ValueError`.
- `A` is left as it was.
""",
    expected=ml.stationary_distribution,
    checks=(
        values(2, _walks(2, 3, 6), public=[(WORKED,)], rtol=1e-7, name="settles"),
        values(1, _walks(4, 5, power=6.0, even=0.02), public=[(SLOW,)], rtol=1e-6, name="slow walks"),
        values(1, _causal_walks, public=[(CAUSAL,)], rtol=1e-6, atol=1e-9, name="causal attention"),
        leaves_inputs(1, _walks(3), rtol=1e-6),
        refuses(1, public=[(np.array([[0.5, 0.6], [0.5, 0.5]]),), (np.array([[1.5, -0.5], [0.5, 0.5]]),)]),
    ),
    mistakes=(
        Mistake(
            _judged(lambda A: np.full(len(A), 1 / len(A))),
            "Equal shares are (up to length) the *right* eigenvector. Wanted is the left one: π times A.",
            score=1,
        ),
        Mistake(
            _judged(lambda A: A.mean(axis=0)),
            "This is one step from equal shares. Go on until nothing changes.",
            score=1,
        ),
        Mistake(
            _judged(lambda A: np.linalg.matrix_power(A, 20).mean(axis=0)),
            "Twenty steps are not enough for a slow walk. Go on until nothing changes.",
            score=4,
        ),
        Mistake(
            _judged(lambda A: ml.normalize(ml.stationary_distribution(A))),
            "The direction is right. Divide by the sum, not by the length: shares add up to one.",
            score=2,
        ),
        Mistake(
            _judged(lambda A: np.linalg.matrix_power(A, 5000)),
            "This is the matrix after many steps. All its rows have become π: return one of them.",
            score=1,
        ),
        Mistake(
            _judged(lambda A: np.linalg.matrix_power(A, 5000)[:, 0]),
            "You took a column of the matrix after many steps. Its *rows* have become π.",
            score=1,
        ),
        Mistake(
            refusing(lambda A: np.any(A <= 0) or np.any(np.abs(A.sum(axis=1) - 1) > 1e-6))(ml.stationary_distribution),
            "A share of zero is a share: a causal mask is full of them. Refuse only what is negative.",
            score=5,
        ),
        Mistake(
            refusing(lambda A: np.any(A < 0) or np.any(np.abs(A.sum(axis=0) - 1) > 1e-6))(ml.stationary_distribution),
            "You summed the columns, and refuse good input. The shares of a token stand in its row.",
        ),
        Mistake(
            lambda A: ml.stationary_distribution(np.abs(A) / np.abs(A).sum(axis=1, keepdims=True)),
            "Rows that are no shares are repaired in silence. Refuse them.",
            score=5,
        ),
    ),
    hints=(
        "`p = p @ A` is one step. A row vector stands on the left.",
        "Compare with the step before, `np.abs(new - p).max()`, and stop below 1e-13 or so.",
        "Under a causal mask all walkers end at the first token: zeros are a right answer.",
    ),
    references=("pillars.eig.stationary", "pillars.eig.stationary_residual"),
)


# Derivation and proof -----------------------------------------------------------------------------------------------


WIDE = np.array([[1.0, 0, 2], [0, 3, 1]])  # 003, chapter III, example 3


@each
def _pulls(rng, shape):
    """x, W, b and a pull of the shape of the output."""
    N, n, m = shape
    return rng.normal(size=(N, n)), rng.normal(size=(n, m)), rng.normal(size=m), rng.normal(size=(N, m))


def _pullback(x, W, b, dy):
    return dy @ W.T, x.T @ dy, dy.sum(axis=0)


LINEAR_PULLBACK = Item(
    id="03.matrices.linear_pullback",
    kind="gradient",
    title="The way back through a layer",
    difficulty=3,
    minutes=20,
    source="ours; Putting It Together (000), step 3",
    answer="linear_pullback",
    masked=("linear", "matrix_product", "vjp", "grad", "value_and_grad"),
    task="""
A linear layer takes $N$ examples at once: $y = xW + b$, with `x` of shape `(N, n)`, `W` of shape `(n, m)` and `b` of
shape `(m,)`. Given the pull `dy` of shape `(N, m)`, find $dx$, $dW$ and $db$: nudge one entry, write down which
outputs move and by how much, and add up their pulls.

Then write `linear_pullback(x, W, b, dy)`, which returns the three as a tuple, each in the shape of its variable. The
inputs are left as they were.
""",
    expected=_pullback,
    checks=(
        *(
            gradient(
                points,
                ml.linear,
                _pulls((3, 2, 4), (1, 3, 2), (2, 2, 2), (3, 3, 3)),
                public=[(np.array([[3.0, 1, 4]]), WIDE.T, np.zeros(2), np.array([[1.0, -2]]))],
                wrt=(0, 1, 2),
                only=entry,
                name=f"{name} agrees with finite differences",
            )
            for entry, (name, points) in enumerate([("dx", 2), ("dW", 2), ("db", 1)])
        ),
        leaves_inputs(1, _pulls((2, 3, 2))),
    ),
    mistakes=(
        Mistake(
            lambda x, W, b, dy: (dy @ W if W.shape[0] == W.shape[1] else dy @ W.T, x.T @ dy, dy.sum(axis=0)),
            "dx goes back through the same numbers, but transposed: dy Wᵀ. A square W hides the mistake.",
            score=4,
        ),
        Mistake(
            lambda x, W, b, dy: (W @ dy.T, x.T @ dy, dy.sum(axis=0)),
            "dx lies on its side: W dyᵀ is for columns. With rows it is dy Wᵀ, in the shape of x.",
            score=3,
        ),
        Mistake(
            lambda x, W, b, dy: (dy @ W.T, dy.T @ x, dy.sum(axis=0)),
            "dW is transposed: it has one row per input, xᵀ dy.",
            score=3,
        ),
        Mistake(
            lambda x, W, b, dy: (dy @ W.T, x.T @ dy / len(x), dy.sum(axis=0)),
            "dW is divided by the number of examples. Nothing in y = xW + b takes a mean.",
            score=3,
        ),
        Mistake(
            lambda x, W, b, dy: (dy @ W.T, x.T @ dy, dy.mean(axis=0)),
            "db: the bias moves the outputs of *every* example. The pulls are added, not averaged.",
            score=4,
        ),
        Mistake(
            lambda x, W, b, dy: (dy @ W.T, x.T @ dy, dy),
            "db must have the shape of b: add up the pulls of all examples.",
            score=4,
        ),
        Mistake(
            lambda x, W, b, dy: (dy @ W.T, x.T @ dy, dy.sum(axis=1)),
            "You added the pulls of one example. b_j collects from all examples: sum over the rows, `axis=0`.",
            score=4,
        ),
        Mistake(
            lambda x, W, b, dy: (dy @ W.T, x.T @ dy, dy.sum(axis=0, keepdims=True)),
            "db has an axis too many: leave `keepdims=True` out, for b has shape (m,).",
            score=4,
        ),
        Mistake(
            lambda x, W, b, dy: (x.T @ dy, dy @ W.T, dy.sum(axis=0)),
            "dx and dW have changed places: the order is dx, dW, db.",
            score=1,
        ),
    ),
    hints=(
        "Nudge W_kj: output j of every example t moves, by x_tk. So dW_kj = Σ_t x_tk dy_tj.",
        "Check the shapes: only one product of x and dy has the shape of W.",
        "Nudge b_j: output j of every example moves by the same amount.",
    ),
)

TRANSPOSE_PROOF = Item(
    id="03.matrices.transpose_proof",
    kind="text",
    title="Tables of dot products are symmetric",
    difficulty=2,
    minutes=15,
    source="ours; Foundations (001), section 1.2.2",
    task="""
Let $X$ be any matrix with $T$ rows (one for each token) and $D$ columns.

1. Prove, entry by entry, that $(AB)^{\\mathsf T} = B^{\\mathsf T}A^{\\mathsf T}$ whenever $AB$ is defined.
2. Conclude that $XX^{\\mathsf T}$ is symmetric, and say what its entries are, the diagonal ones included.
3. Attention scores are $QK^{\\mathsf T}$ with $Q = XW_Q$ and $K = XW_K$. Write the scores as
   $X M X^{\\mathsf T}$: what is $M$? When $W_Q \\ne W_K$, is the table symmetric? Say in a sentence why that
   is a good thing for a language model.
""",
    rubric=(
        (2, "Writes out ((AB)ᵀ)_ij = (AB)_ji = Σ_k A_jk B_ki and recognises Σ_k (Bᵀ)_ik (Aᵀ)_kj, with reasons."),
        (1, "(XXᵀ)ᵀ = (Xᵀ)ᵀXᵀ = XXᵀ; entries are dot products of tokens, the diagonal squared lengths."),
        (1, "M = W_Q W_Kᵀ, of shape D × D, with the transpose of the product used rightly."),
        (1, "Not symmetric in general; so token i may attend to j without j attending to i."),
    ),
    hints=("Start on the left with the definition of the transpose.", "What is (Xᵀ)ᵀ? What is (XW)ᵀ?"),
    references=("foundations.transpose.product",),
)


# Project ------------------------------------------------------------------------------------------------------------


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


def _tails(W):
    """The relative error of every rank from 0 to r."""
    s = np.linalg.svd(W, compute_uv=False)
    return np.sqrt(np.append(np.cumsum((s**2)[::-1])[::-1], 0) / np.sum(s**2))


def _rank_for(W, tolerance):
    return int(np.argmax(_tails(W) <= tolerance))


def _first_below(W, tolerance):
    s = np.linalg.svd(W, compute_uv=False)
    return int(np.sum(s > tolerance * s[0]))


def _rank_by_sum(W, tolerance):
    s = np.linalg.svd(W, compute_uv=False)
    return int(np.argmax(np.append(np.cumsum(s[::-1])[::-1], 0) / np.sum(s) <= tolerance))


_positive = refusing(lambda W, tolerance: not tolerance >= 0)


SPECTRA = ([5, 3, 2, 1, 0.5], [4, 3.5, 3, 2.8, 2.5, 2.2], [10, 1, 0.9, 0.8])
DIAGONAL = np.diag([4.0, 3.0, 0.0])  # ranks 0, 1, 2 miss 1, 0.6 and 0 of its norm

SMALLEST_RANK = Item(
    id="03.matrices.smallest_rank",
    kind="function",
    title="How few directions will do?",
    difficulty=3,
    minutes=30,
    source="Foundations (001), section 1.3 (Eckart–Young)",
    answer="smallest_rank",
    masked=("low_rank_error", "low_rank_approximation"),
    task="""
Write `smallest_rank(W, tolerance)`: the smallest rank $k$ for which some matrix of that rank misses $W$ by at most
`tolerance` times its size,

$$\\lVert W - W_k\\rVert_F \\le \\text{tolerance}\\cdot\\lVert W\\rVert_F .$$

The answer is a whole number from 0 to the smaller of the two sizes. You need the singular values
(`ml.singular_values`, or NumPy's), but no approximation has to be formed.

- A negative tolerance is refused with `ValueError`; a tolerance of 1 or more is met by rank 0.
- `W` is left as it was, and is never all zeros.

Then try it on the matrices of SmolLM2: which kind can do with the fewest directions at a tolerance of 0.3? In early
blocks or in late ones?
""",
    expected=_positive(_rank_for),
    checks=(
        values(3, _with_spectrum(*SPECTRA), name="smallest rank"),
        values(
            1,
            public=[(DIAGONAL, 0.6001), (DIAGONAL, 0.5999), (DIAGONAL, 1.5), (np.eye(4), 0.7), (np.eye(4), 0.8)],
            name="by hand",
        ),
        leaves_inputs(1, public=[(np.eye(4), 0.8)]),
        refuses(1, public=[(np.eye(2), -0.1)], name="refuses a negative tolerance"),
    ),
    mistakes=(
        Mistake(
            _positive(_first_below),
            "You counted singular values above a threshold. The small ones add up: compare the root of their squares.",
            score=1,
        ),
        Mistake(
            _positive(_rank_by_sum),
            "You added the singular values. The Frobenius norm adds their squares.",
            score=1,
        ),
        Mistake(
            _positive(lambda W, tolerance: min(_rank_for(W, tolerance) + 1, min(W.shape))),
            "One too many: rank k misses σ_{k+1} and what follows, and rank 0 misses all.",
            score=1,
        ),
        Mistake(
            _positive(lambda W, tolerance: int(np.argmax(_tails(W) ** 2 <= tolerance))),
            "You compared squares with the tolerance itself. Take the root first.",
            score=1,
        ),
        Mistake(
            _positive(lambda W, tolerance: max(_rank_for(W, tolerance) - 1, 0)),
            "One too few: rank k keeps σ_1 to σ_k, so the sum of what is missed begins with σ_{k+1}.",
            score=1,
        ),
        Mistake(
            _positive(lambda W, tolerance: max(_rank_for(W, tolerance), 1)),
            "Rank 0, the table of zeros, counts as well: it misses all of W, which a tolerance of 1 allows.",
            score=5,
        ),
        Mistake(
            _positive(lambda W, tolerance: int(np.argmax(_tails(W) * ml.frobenius_norm(W) <= tolerance))),
            "You compared the error with the tolerance itself. It is a share of ‖W‖: divide by that first.",
            score=1,
        ),
        Mistake(_rank_for, "A negative tolerance can never be met. Refuse it with `ValueError`.", score=5),
    ),
    hints=(
        "‖W‖_F² is the sum of all σ². What rank k misses is the sum from the (k+1)th on.",
        "Sums from the back: `np.cumsum((s**2)[::-1])[::-1]` has the error of rank 0 first.",
        "Append a 0 for the full rank, and look for the first entry that is small enough.",
    ),
    references=("foundations.svd.eckart_young",),
)


# Check yourself (in the chapter, not graded) ------------------------------------------------------------------------

QUICK = [
    Item(
        id="03.matrices.quick_tall",
        kind="value",
        title="From two to three components",
        difficulty=1,
        minutes=1,
        source="The primer (003), chapter III, figure 4",
        graded=False,
        answer="product",
        task="A matrix has the rows [2, 0], [0, 3], [1, 1]. What does it make of [4, 2]?",
        expected=lambda: ml.matrices.matrix_vector_product([[2.0, 0], [0, 3], [1, 1]], [4.0, 2]),
        checks=(values(1),),
        mistakes=(
            Mistake(lambda: [8, 6], "Three rows, three outputs: the last one is 4 + 2."),
            Mistake(lambda: [8, 6, 2], "In the last row both components count: 1·4 + 1·2."),
            Mistake(lambda: 20, "One number for each row; do not add them."),
        ),
    ),
    Item(
        id="03.matrices.quick_wide",
        kind="value",
        title="From three to two components",
        difficulty=1,
        minutes=1,
        source="after the primer (003), chapter III, example 3",
        graded=False,
        answer="product",
        task="A matrix has the rows [1, 0, 2] and [0, 3, 1]. What does it make of [1, 1, 1]?",
        expected=lambda: ml.matrices.matrix_vector_product([[1.0, 0, 2], [0, 3, 1]], np.ones(3)),
        checks=(values(1),),
        mistakes=(
            Mistake(lambda: [1, 3, 3], "These are the sums of the columns. Each row meets the vector."),
            Mistake(lambda: 7, "One number for each row; do not add them."),
            Mistake(lambda: [11, 7], "That is the image of [3, 1, 4]. All ones add up each row."),
        ),
    ),
    Item(
        id="03.matrices.quick_convention",
        kind="value",
        title="Which way round?",
        difficulty=1,
        minutes=1,
        source="The primer (003), chapter III; Part II (004), common bugs",
        graded=False,
        answer="shape",
        task="A layer takes rows of 768 components to rows of 3,072, as x @ W. What is the shape of W?",
        expected=lambda: (768, 3072),
        checks=(values(1),),
        mistakes=(
            Mistake(lambda: (3072, 768), "That is the book's W, for Wx. In x @ W the rows of W meet the components."),
            Mistake(lambda: 768 * 3072, "That is the number of entries. The shape is a pair."),
        ),
    ),
    Item(
        id="03.matrices.quick_chain",
        kind="value",
        title="The dear order",
        difficulty=1,
        minutes=1,
        source="after Foundations (001), section 1.2.1",
        graded=False,
        answer="multiplications",
        task="How many multiplications does (AB)x cost, in this order, for 10 × 10 matrices and a column x?",
        expected=lambda: ml.multiply_adds((10, 10), (10, 10), (10, 1)),
        checks=(values(1),),
        mistakes=(
            Mistake(lambda: 200, "That is A(Bx). Here the two matrices are multiplied first."),
            Mistake(lambda: 1000, "That is AB alone. Multiplying it by x costs 100 more."),
            Mistake(lambda: 10_000, "The prices of the two products are added, not multiplied."),
        ),
    ),
    Item(
        id="03.matrices.quick_gap",
        kind="value",
        title="Everybody looks everywhere",
        difficulty=1,
        minutes=1,
        source="Four Pillars (002), eigenvalues and attention",
        graded=False,
        answer="gap",
        task="Four tokens attend evenly to all four. What is the spectral gap?",
        expected=lambda: 1,
        checks=(values(1),),
        mistakes=(
            Mistake(lambda: 0, "A gap of 0 never mixes. Here one step is enough: all other eigenvalues are 0."),
            Mistake(lambda: 0.25, "That is each share, and the focus. The gap is 1 − |λ₂|, and λ₂ is 0."),
            Mistake(lambda: 0.75, "λ₂ is not ¼ but 0: after one step nothing of the start is left."),
        ),
    ),
]

ITEMS = [
    PRODUCT_BY_HAND,
    SHAPES_BY_HAND,
    PRODUCT_SHAPES,
    OWN_LAYER,
    OWN_ORDER,
    MATRIX_PRODUCT,
    REPAIR_LINEAR,
    LORA_COUNT,
    STATIONARY,
    LINEAR_PULLBACK,
    TRANSPOSE_PROOF,
    SMALLEST_RANK,
    *QUICK,
]
