"""Chapter 10, attention: by hand and in code, masks, heads, rotation, the way back, and a running softmax."""

import numpy as np

import mathllm as ml

from ..cases import each, normals, refusing, tells_apart
from ..item import Item, Mistake, gradient, keeps_dtype, leaves_inputs, quick, refuses, values

Q, K = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), np.array([[1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
V = np.array([[10.0, 0.0], [0.0, 10.0], [5.0, 5.0]])  # 003, chapter X, example 10
Q2, K2 = np.array([[1.0, 0.5], [0.3, 0.8], [0.1, 0.9]]), np.array([[0.9, 0.2], [0.4, 0.7], [0.2, 0.8]])  # 002
PACKAGED = (
    "attention", "attention_weights", "multi_head_attention", "flash_attention", "linear_attention",
)  # fmt: skip


def _softmax(s, axis=-1):
    e = np.exp(s - s.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


# Warm-up ------------------------------------------------------------------------------------------------------------

HEAD_SIZES = Item(
    id="10.attention.head_sizes",
    kind="value",
    title="Twelve heads",
    difficulty=1,
    minutes=4,
    source="The primer (003), chapter X, exercise 21",
    answer="sizes",
    task="""
A transformer has $d_{model} = 768$ and 12 attention heads. Give four numbers in the list `sizes`: the width $d_k$ of
one head; the number of rows and of columns of one head's $W_Q$ (in $Q = XW_Q$); and how many numbers the query
matrices of all 12 heads hold together.
""",
    expected=lambda: [64, 768, 64, 589_824],
    checks=(values(2),),
    mistakes=(
        Mistake(
            lambda: [64, 64, 768, 589_824],
            "You gave the shape of the transpose. With X W_Q the rows of W_Q meet the 768 components of a token.",
        ),
        Mistake(lambda: [64, 768, 64, 49_152], "49,152 is one head's share. There are twelve."),
        Mistake(lambda: [64, 768, 64, 1_769_472], "This counts W_K and W_V as well. Asked for are the query matrices."),
        Mistake(lambda: [768, 768, 768, 589_824], "The heads share the width: each has 768/12."),
        Mistake(
            lambda: [64, 768, 64, 12 * 768 * 768],
            "This is twelve matrices of full width. One head's has 768 · 64 numbers.",
        ),
        Mistake(
            lambda: [64, 768, 768, 12 * 768 * 768],
            "One head's W_Q makes a query of width 64 out of 768 components: 768 rows, 64 columns.",
        ),
        Mistake(
            lambda: [64, [768, 64], 589_824], "Right, but rows and columns are two numbers of one flat list of four."
        ),
    ),
    hints=("768 / 12.", "One matrix takes 768 numbers in and gives 64 out."),
    references=("primer.ch10.q21.dk", "primer.ch10.q21.shape", "primer.ch10.q21.params"),
)

DOT_PRODUCTS = Item(
    id="10.attention.dot_products",
    kind="value",
    title="How many comparisons?",
    difficulty=1,
    minutes=5,
    source="The primer (003), chapter X, exercise 23",
    answer="counts",
    task="""
A layer with 8 heads reads 100 tokens. Give four numbers in the list `counts`: how many dot products of a query with a
key one head computes; how many all heads do; by what factor this grows when the text becomes twice as long; and how
many of all heads' scores for 100 tokens are left when a causal mask forbids the others.
""",
    expected=lambda: [10_000, 80_000, 4, 40_400],
    checks=(values(2),),
    mistakes=(
        Mistake(
            lambda: [10_000, 80_000, 4, 40_000],
            "The diagonal stays: a token may see itself. That is 1 + 2 + … + 100 = 5,050 for each head.",
        ),
        Mistake(
            lambda: [10_000, 80_000, 4, 39_600],
            "The diagonal stays: a token may see itself. That is 1 + 2 + … + 100 = 5,050 for each head.",
        ),
        Mistake(lambda: [10_000, 80_000, 2, 40_400], "Twice the queries and twice the keys: 4 × the entries."),
        Mistake(lambda: [10_000, 80_000, 4, 5_050], "The last number is one head's. There are eight."),
        Mistake(lambda: [100, 800, 4, 40_400], "Every query meets every key: 100 × 100."),
        Mistake(lambda: [10_000, 80_000, 160_000, 40_400], "The third is the factor, not what is added or reached."),
        Mistake(lambda: [10_000, 80_000, 320_000, 40_400], "The third is the factor: 320,000 / 80,000."),
        Mistake(lambda: [10_000, 80_000, 8, 40_400], "The number of heads stays: only 200 × 200 is new."),
        Mistake(lambda: [5_050, 40_400, 4, 40_400], "The first two count all pairs: the mask comes with the last."),
        Mistake(lambda: [4_950, 39_600, 4, 39_600], "A query also meets its own key: 100 × 100 pairs, without a mask."),
        Mistake(lambda: [9_900, 79_200, 4, 40_400], "A query also meets the key of its own token: 100 × 100."),
    ),
    hints=("Every query with every key.", "Under the mask row i keeps i entries: 1 + 2 + … + 100."),
    references=(
        "primer.ch10.q23.per_head", "primer.ch10.q23.total", "primer.ch10.q23.doubling", "primer.ch10.causal_dots",
    ),
)  # fmt: skip


EXAMPLE_10 = Item(
    id="10.attention.example_10",
    kind="value",
    title="The third token",
    difficulty=1,
    minutes=8,
    source="The primer (003), chapter X, example 10",
    answer="third",
    task="""
The primer works out token 1 of its example. Do token 3. Its query is $[1, 1]$, the keys are $[1,1]$, $[0,1]$,
$[1,0]$, the values $[10,0]$, $[0,10]$, $[5,5]$. Give eight numbers in the list `third`, right to three decimals: the
three scores *after* scaling, the three weights, and the two components of the output.
""",
    expected=lambda: [*(Q[2] @ K.T / np.sqrt(2)), *_softmax(Q[2] @ K.T / np.sqrt(2)), *ml.attention(Q, K, V)[2]],
    checks=(values(3, decimals=3),),
    mistakes=(
        Mistake(
            lambda: [*(Q[2] @ K.T), *_softmax(Q[2] @ K.T), *(_softmax(Q[2] @ K.T) @ V)],
            "You forgot to divide by √d_k = √2.",
        ),
        Mistake(
            lambda: [*(Q[2] @ K.T / 2), *_softmax(Q[2] @ K.T / 2), *(_softmax(Q[2] @ K.T / 2) @ V)],
            "You divided by d_k = 2. The divisor is its root.",
        ),
        Mistake(
            lambda: [*(Q[2] @ K.T / np.sqrt(2)), 0.5, 0.25, 0.25, 6.25, 3.75],
            "You went on with weights rounded to two decimals. Three were asked for: round once, at the end.",
        ),
        Mistake(
            lambda: [*(Q[0] @ K.T / np.sqrt(2)), *ml.attention_weights(Q, K)[0], *ml.attention(Q, K, V)[0]],
            "This is token 1. Token 3 asks with [1, 1].",
        ),
        Mistake(
            lambda: [*(Q[2] @ K.T), *ml.attention_weights(Q, K)[2], *ml.attention(Q, K, V)[2]],
            "Weights and output are right. The first three should be the scores *after* the division by √2.",
        ),
        Mistake(
            lambda: [
                *(Q[2] @ K.T / np.sqrt(2)), *np.exp(Q[2] @ K.T / np.sqrt(2)), *(np.exp(Q[2] @ K.T / np.sqrt(2)) @ V)
            ],
            "These are the exponentials; the weights are their shares: divide by the sum, 8.169.",
        ),
        Mistake(
            lambda: [Q[2] @ K.T / np.sqrt(2), ml.attention_weights(Q, K)[2], ml.attention(Q, K, V)[2]],
            "Right, but in three lists: give the eight numbers in one, `[*scores, *weights, *output]`.",
        ),
    ),
    hints=("The dot products are 2, 1, 1.", "e^1.4142 = 4.1133 and e^0.7071 = 2.0281."),
    references=("primer.ch10.ex10.scaled", "primer.ch10.ex10.weights", "primer.ch10.ex10.out_row3"),
)  # fmt: skip

PILLARS_ROW = Item(
    id="10.attention.three_words",
    kind="value",
    title="A row that adds up to 1.001",
    difficulty=1,
    minutes=8,
    source="Pillars (002), matrix multiplication in attention",
    answer="weights",
    task="""
"The cat sat": the query of "The" is $[1.0, 0.5]$; the keys are $[0.9, 0.2]$, $[0.4, 0.7]$ and $[0.2, 0.8]$. The
source prints the weights 0.386, 0.324, 0.291. Give the right ones in the list `weights`, to three decimals.
""",
    expected=lambda: ml.attention_weights(Q2, K2)[0],
    checks=(values(2, decimals=3),),
    mistakes=(
        Mistake(
            lambda: [0.386, 0.324, 0.291], "These are the printed weights. They add up to 1.001: which one is wrong?"
        ),
        Mistake(lambda: _softmax(Q2[0] @ K2.T), "You forgot to divide by √d_k = √2."),
        Mistake(lambda: np.exp(Q2[0] @ K2.T / np.sqrt(2)), "These are the exponentials. Divide each by their sum."),
        Mistake(lambda: _softmax(Q2[0] @ K2.T / 2), "You divided by d_k = 2. The divisor is its root."),
        Mistake(lambda: Q2[0] @ K2.T / np.sqrt(2), "These are the scaled scores. Softmax makes weights of them."),
        Mistake(lambda: Q2[0] @ K2.T, "These are the dot products. Scale them, then softmax."),
        Mistake(
            lambda: Q2[0] @ K2.T / np.sum(Q2[0] @ K2.T), "Shares of the scores themselves: the exponential is missing."
        ),
    ),
    hints=("The scores are 1.0, 0.75, 0.6, each divided by 1.414.", "Keep four digits until the end."),
    references=("pillars.attn.weight00", "pillars.attn.weight01", "pillars.attn.weight02", "pillars.attn.row0_total"),
)


X_PART2 = np.array([[0.2, 0.1, -0.3, 0.5], [-0.1, 0.4, 0.2, -0.2], [0.3, -0.2, 0.1, 0.4]])
P_PART2 = np.array([[0.0, 0.0, 0.1, 0.0], [0.0, 0.1, 0.0, 0.0], [0.1, 0.0, 0.0, 0.0]])

POSITION_SUM = Item(
    id="10.attention.position_sum",
    kind="value",
    title="Told where they stand",
    difficulty=1,
    minutes=4,
    source="Part II (004), minimal transformer, step 2",
    answer="x_prime",
    task="""
The embeddings of "the cat sat" are the rows $[0.2, 0.1, -0.3, 0.5]$, $[-0.1, 0.4, 0.2, -0.2]$, $[0.3, -0.2, 0.1,
0.4]$; the learned position vectors are $[0, 0, 0.1, 0]$, $[0, 0.1, 0, 0]$, $[0.1, 0, 0, 0]$. Give the rows that
enter the attention layer as a $3\\times4$ list of rows or array, `x_prime`.
""",
    expected=lambda: X_PART2 + P_PART2,
    checks=(values(1, decimals=6),),
    mistakes=(
        Mistake(lambda: X_PART2, "These are the embeddings alone: the positions are missing."),
        Mistake(lambda: X_PART2 * P_PART2, "Positions are added, not multiplied."),
        Mistake(
            lambda: np.concatenate([X_PART2, P_PART2], axis=1),
            "You put them side by side, which would make the model wider. They are added.",
        ),
        Mistake(lambda: X_PART2 + P_PART2[::-1], "The position vectors are in the wrong order."),
        Mistake(lambda: X_PART2 - P_PART2, "Positions are added, not subtracted."),
        Mistake(lambda: (X_PART2 + P_PART2).T, "Right, but transposed: one row for each token."),
        Mistake(lambda: (X_PART2 + P_PART2).ravel(), "Right, but flat: give three rows of four numbers."),
    ),
    hints=("Add row by row, component by component.",),
    references=("part2.tf.Xprime",),
)


def _own_row(rng):
    """One query, three keys of width 4, in halves; drawn again while a slip would go unnoticed."""
    while True:
        own = {
            "query": (rng.integers(-4, 5, size=4) / 2 + 0.25).tolist(),
            "keys": (rng.integers(-4, 5, size=(3, 4)) / 2).tolist(),
        }
        if tells_apart(OWN_ROW, own, 0.004):
            return own


def _row(query, keys, divisor=2.0, mask=(0, 0, 0)):
    return _softmax(np.array(keys) @ np.array(query) / divisor + np.array(mask))


OWN_ROW = Item(
    id="10.attention.own_row",
    kind="value",
    title="A row of your own",
    difficulty=2,
    minutes=8,
    source="after the primer (003), chapter X, example 10",
    answer="own_weights",
    task="""
`mine.query` is one query of width 4, `mine.keys` holds three keys. Give six numbers in the list `own_weights`, right
to three decimals: the three attention weights, and then the three weights if the third key is hidden by a mask.
(`np.dot` and `np.exp` may help; no attention function is needed.)
""",
    numbers=_own_row,
    expected=lambda query, keys: [*_row(query, keys), *_row(query, keys, mask=(0, 0, -np.inf))],
    checks=(values(2, decimals=3),),
    mistakes=(
        Mistake(
            lambda query, keys: [*_row(query, keys, 1), *_row(query, keys, 1, (0, 0, -np.inf))],
            "You forgot to divide by √d_k = √4 = 2.",
        ),
        Mistake(
            lambda query, keys: [*_row(query, keys, 4), *_row(query, keys, 4, (0, 0, -np.inf))],
            "You divided by d_k = 4. The divisor is its root, 2.",
        ),
        Mistake(
            lambda query, keys: [*_row(query, keys), *(_row(query, keys) * [1, 1, 0])],
            "Setting a weight to 0 after the softmax leaves a row that does not add up to one. Mask the score: −∞.",
        ),
        Mistake(
            lambda query, keys: [
                *_row(query, keys), *_softmax(np.array(keys) @ np.array(query) / 2 * np.array([1, 1, 0]))
            ],
            "A score of 0 is an ordinary score. The hidden one must be −∞.",
        ),
        Mistake(
            lambda query, keys: [*_row(query, keys, mask=(0, 0, -np.inf)), *_row(query, keys)],
            "Both rows are right, but exchanged: the one without a mask comes first.",
        ),
        Mistake(
            lambda query, keys: [*_row(query, keys, 3**0.5), *_row(query, keys, 3**0.5, (0, 0, -np.inf))],
            "You divided by √3, the root of the number of keys. The width of a key counts: √4.",
        ),
        Mistake(
            lambda query, keys: [*(np.array(keys) @ np.array(query) / 2)] * 2,
            "These are the scores. Softmax makes weights of them.",
        ),
        Mistake(
            lambda query, keys: _row(query, keys), "The first row is right. The three weights under the mask follow it."
        ),
        Mistake(
            lambda query, keys: [*_row(query, keys), *_row(query, keys, mask=(0, 0, -np.inf))[:2]],
            "The hidden key has a weight, too: 0. Six numbers were asked for.",
        ),
    ),
    hints=("Three dot products, divided by √4.", "Hidden: its exponential is 0, the other two share one."),
)  # fmt: skip


def _turned(v, angle):
    c, s = np.cos(angle), np.sin(angle)
    return np.array([c * v[0] - s * v[1], s * v[0] + c * v[1]])


def _turned_score(query, key, m, n, rate, sign=1):
    return float(_turned(query, sign * m * rate) @ _turned(key, n * rate))


def _own_turn(rng):
    """One pair of components, two positions, a rate; drawn again while a slip would go unnoticed."""
    while True:
        query, key = (rng.integers(1, 9, size=(2, 2)) / 2).tolist()
        drawn = {
            "query": query,
            "key": key,
            "m": int(rng.integers(4, 10)),
            "n": int(rng.integers(1, 4)),
            "rate": float(rng.choice([0.1, 0.2, 0.3])),
        }
        wrong = (make(**drawn) for make, _ in TURN_SLIPS)
        if min(abs(_turned_score(**drawn) - slip) for slip in wrong) > 0.01:
            return drawn


TURN_SLIPS = (
    (lambda query, key, **_: float(np.dot(query, key)), "You left out the rotation: both vectors are turned first."),
    (
        lambda query, key, m, n, rate: _turned_score(query, key, m, n, rate, sign=-1),
        "Both turn the same way. You turned the query back: the angles add instead of subtracting.",
    ),
    (
        lambda query, key, m, n, rate: _turned_score(query, key, n, m, rate),
        "You swapped the positions: the query stands at m, the key at n.",
    ),
    (
        lambda query, key, m, n, rate: _turned_score(query, key, m, 0, rate),
        "You turned the query alone. The key is turned by its own position.",
    ),
    (
        lambda query, key, m, n, rate: _turned_score(query, key, 0, n, rate),
        "You turned the key alone, by its own position. Either turn both, or the key by (n − m) · rate.",
    ),
    (
        lambda query, key, m, n, rate: _turned_score(query, key, m, n, np.radians(rate)),
        "The angles are in radians already: do not convert them from degrees.",
    ),
    (
        lambda query, key, m, n, rate: _turned_score(query, key, m, n, 1.0),
        "The angle is position times rate; you turned by one radian per position.",
    ),
    (
        lambda query, key, m, n, rate: _turned_score(query, key, m, n, rate) / np.sqrt(2),
        "The bare dot product was asked for, without the division by √d_k.",
    ),
)

OWN_TURN = Item(
    id="10.attention.own_turn",
    kind="value",
    title="Two clock hands",
    difficulty=2,
    minutes=7,
    source="after Foundations (001), section 6.2.2",
    answer="own_score",
    task="""
RoPE on one pair of components: `mine.query` stands at position `mine.m`, `mine.key` at position `mine.n`, and the pair
turns by `mine.rate` radians per position. Give the dot product of the two turned vectors, `own_score`, right to three
decimals. (Can you do it with a single rotation?)
""",
    numbers=_own_turn,
    expected=_turned_score,
    checks=(values(2, decimals=3),),
    mistakes=tuple(Mistake(make, sentence) for make, sentence in TURN_SLIPS),
    hints=(
        "Turning both is the same as turning the key alone by (n − m) · rate.",
        "`np.cos` and `np.sin` take radians.",
    ),
    references=("foundations.rope.formula",),
)


# Core ---------------------------------------------------------------------------------------------------------------


@each
def _triples(rng, size, scale=1.0, dtype=float):
    """Queries, keys, values for (T, S, d_k, d_v), after optional leading axes."""
    *lead, t, s, k, v = size
    shapes = (*lead, t, k), (*lead, s, k), (*lead, s, v)
    return tuple((scale * rng.normal(size=shape)).astype(dtype) for shape in shapes)


def _attend(query, key, value, scale=None, axis=-1, divide=np.sqrt):
    scores = query @ key.swapaxes(-1, -2)
    scores = scores / divide(query.shape[-1]) if scale is None else scores * scale
    return _softmax(scores, axis) @ value


def _attend_naively(query, key, value):
    with np.errstate(all="ignore"):
        e = np.exp(query @ key.swapaxes(-1, -2) / query.shape[-1] ** 0.5)
        return e / e.sum(axis=-1, keepdims=True) @ value


def _attend_without_softmax_of_rows(query, key, value):
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    e = np.exp(scores - scores.max())
    return e / e.sum() @ value


def _attend_with_one_maximum(query, key, value):
    scores = query @ key.swapaxes(-1, -2) / query.shape[-1] ** 0.5
    with np.errstate(all="ignore"):
        e = np.exp(scores - scores.max())
        return e / e.sum(axis=-1, keepdims=True) @ value


def _attend_causally(query, key, value):
    scores = query @ key.swapaxes(-1, -2) / query.shape[-1] ** 0.5
    return _softmax(np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)) @ value


LARGE = (np.array([[100.0, 0.0], [50.0, 0.0]]), np.array([[100.0, 0.0], [99.99, 0.0]]), np.array([[0.0], [1.0]]))

ATTENTION = Item(
    id="10.attention.attention",
    kind="function",
    title="The equation",
    difficulty=2,
    minutes=12,
    source="The primer (003), chapter X; Vaswani et al. 2017, equation (1)",
    answer="attention",
    masked=PACKAGED,
    task="""
Write `attention(query, key, value)`:

$$\\operatorname{softmax}\\!\\left(\\frac{QK^{\\mathsf T}}{\\sqrt{d_k}}\\right)V .$$

- `query` has the shape $(\\dots, T, d_k)$, `key` $(\\dots, S, d_k)$, `value` $(\\dots, S, d_v)$, where $S$
  counts the keys: there may be more of them than queries, wider values than keys, and batch and head axes in front.
- Large scores must not overflow. `float32` stays `float32`.
""",
    expected=lambda query, key, value: ml.attention(query, key, value),
    checks=(
        values(3, _triples((3, 3, 4, 4), (2, 5, 3, 6), (1, 1, 2, 3)), public=[(Q, K, V)], name="one sequence"),
        values(2, _triples((2, 4, 4, 3, 3), (2, 3, 4, 5, 2, 3)), name="batch and head axes"),
        values(1, _triples((3, 4, 8, 2), scale=100.0), public=[LARGE], name="large scores"),
        keeps_dtype(1, _triples((3, 3, 4, 4), dtype=np.float32)),
    ),
    mistakes=(
        Mistake(
            lambda query, key, value: _attend(query, key, value, scale=1), "You forgot to divide by √d_k.", score=0
        ),
        Mistake(
            lambda query, key, value: _attend(query, key, value, divide=float),
            "You divided by d_k. The divisor is its root.",
            score=0,
        ),
        Mistake(
            lambda query, key, value: _attend(query, key, value, axis=-2),
            "Softmax ran over the queries: the columns add up to one. Each query shares out among the keys: axis=-1.",
            score=0,
        ),
        Mistake(
            _attend_without_softmax_of_rows,
            "The softmax ran over the whole table. Each row is a distribution of its own.",
            score=0,
        ),
        Mistake(
            _attend_naively,
            "The exponential overflows for large scores. Subtract each row's maximum first.",
            score=6,
        ),
        Mistake(
            lambda query, key, value: _attend(query.astype(float), key.astype(float), value.astype(float)),
            "Right, but float32 became float64 on the way. (`np.sqrt(d_k)` is a float64; `d_k ** 0.5` is not.)",
            score=6,
        ),
        Mistake(
            lambda query, key, value: _softmax(query @ key.T / query.shape[-1] ** 0.5) @ value,
            "Axes in front are not provided for: `key.T` turns them *all* round, and `T, d = key.shape` expects two. "
            "Use `key.swapaxes(-1, -2)` and `key.shape[-1]`.",
            score=5,
        ),
        Mistake(
            _attend_with_one_maximum,
            "The largest score of the whole table was subtracted: rows far below it underflow to 0/0. "
            "Each row has a maximum of its own.",
            score=6,
        ),
        Mistake(
            lambda query, key, value: _attend(query, key, value, scale=value.shape[-1] ** -0.5),
            "You divided by the root of the values' width. The scores are sums over the width of the keys, d_k.",
            score=1,
        ),
        Mistake(
            lambda query, key, value: _attend(query, key, value, scale=key.shape[-2] ** -0.5),
            "You divided by the root of the number of keys. The width d_k counts: `query.shape[-1]`.",
            score=1,
        ),
        Mistake(
            lambda query, key, value: _attend(query, key, value, scale=query.shape[-1] ** 0.5),
            "You multiplied by √d_k instead of dividing.",
        ),
        Mistake(
            lambda query, key, value: _attend(query, key, value, scale=1) / query.shape[-1] ** 0.5,
            "√d_k divides the scores, before the softmax, not what comes after it.",
        ),
        Mistake(
            lambda query, key, value: _softmax(query @ key.swapaxes(-1, -2) / query.shape[-1] ** 0.5),
            "These are the weights: the product with the values is missing.",
        ),
        Mistake(
            lambda query, key, value: query @ key.swapaxes(-1, -2) / query.shape[-1] ** 0.5 @ value,
            "The softmax is missing: scores may be negative, and do not add up to one.",
        ),
        Mistake(
            _attend_causally,
            "You put in a causal mask. This exercise has none: every query sees every key.",
        ),
    ),
    hints=(
        "`key.swapaxes(-1, -2)` transposes the last two axes and leaves those in front alone.",
        "scores → minus the row's maximum → exponential → divide by the row's sum → @ value.",
    ),
    references=("primer.ch10.ex10.out_row1", "primer.ch10.ex10.out_row2", "primer.ch10.ex10.out_row3"),
)


def _causal_weights(scores):
    keep = np.tril(np.ones(scores.shape, bool))
    return _softmax(np.where(keep, scores, -np.inf))


def _masked_by_product(scores):
    with np.errstate(all="ignore"):
        return _softmax(scores + np.triu(np.ones(scores.shape), k=1) * -np.inf)


def _masked_after(scores):
    return _softmax(scores) * np.tril(np.ones(scores.shape))


def _masked_with_zeros(scores):
    return _softmax(scores * np.tril(np.ones(scores.shape)))


def _masked_diagonal(scores):
    keep = np.tril(np.ones(scores.shape, bool), k=-1)
    keep[0, 0] = True
    return _softmax(np.where(keep, scores, -np.inf))


def _renormalised(scores):
    weights = _masked_after(scores)
    with np.errstate(invalid="ignore"):
        return weights / weights.sum(axis=-1, keepdims=True)


def _masked_without_shift(scores):
    with np.errstate(all="ignore"):
        e = np.exp(np.where(np.tril(np.ones(scores.shape, bool)), scores, -np.inf))
        return e / e.sum(axis=-1, keepdims=True)


def _diagonal_gone(scores):
    with np.errstate(invalid="ignore"):
        return _softmax(np.where(np.tril(np.ones(scores.shape, bool), k=-1), scores, -np.inf))


def _masked_in_place(scores):
    scores[np.triu_indices(len(scores), 1)] = -np.inf
    return _softmax(scores)


REPAIR_MASK = Item(
    id="10.attention.causal_weights",
    kind="repair",
    title="Zero times infinity",
    difficulty=2,
    minutes=8,
    source="Part II (004), trace step 5 and common bugs; Foundations (001), section 7.3",
    answer="causal_weights",
    masked=PACKAGED,
    task="""
`causal_weights(scores)` should turn a $T\\times T$ table of (already scaled) scores into causal attention weights:
token $i$ sees tokens $j \\le i$. As it stands, it returns NaN. Repair it.

```python
def causal_weights(scores):
    T = len(scores)
    mask = np.triu(np.ones((T, T)), k=1) * -np.inf
    masked = scores + mask
    e = np.exp(masked - masked.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)
```
""",
    expected=_causal_weights,
    checks=(
        values(3, normals((2, 2), (3, 3), (6, 6)), public=[(Q @ K.T / np.sqrt(2),)], name="right weights"),
        values(1, public=[(np.array([[-700.0, 900.0], [-900.0, 800.0]]),)], name="large scores"),
        leaves_inputs(1, normals((4, 4))),
    ),
    mistakes=(
        Mistake(
            _masked_by_product, "0 · ∞ is NaN, not 0. Select with `np.where`, or `np.triu(np.full(…, -np.inf), k=1)`."
        ),
        Mistake(
            _masked_after,
            "You zeroed weights after the softmax: the rows no longer add up to one. Mask the scores before it.",
        ),
        Mistake(_masked_with_zeros, "A score of 0 is an ordinary score, e⁰ = 1. Forbidden scores must be −∞."),
        Mistake(_masked_diagonal, "You hid the diagonal as well. A token may see itself: j ≤ i."),
        Mistake(
            lambda scores: _softmax(np.where(np.triu(np.ones(scores.shape, bool)), scores, -np.inf)),
            "You kept the other triangle: token i sees what comes *after* it. Allowed is j ≤ i, `np.tril`.",
        ),
        Mistake(
            lambda scores: _softmax(np.where(np.tril(np.ones(scores.shape, bool)), scores, -np.inf), axis=0),
            "The mask is right, but the softmax ran down the columns. Each row adds up to one: axis=-1.",
            score=1,
        ),
        Mistake(
            lambda scores: np.where(np.tril(np.ones(scores.shape, bool)), scores, -np.inf),
            "These are the masked scores; the softmax is missing.",
        ),
        Mistake(
            lambda scores: _softmax(np.where(np.tril(np.ones(scores.shape, bool)), scores, -100.0)),
            "−100 is a score like any other, and may even be the largest of a row. Forbidden is −∞.",
            score=4,
        ),
        Mistake(
            _renormalised,
            "Masked after the softmax and divided again: where the forbidden score was far larger, this is 0/0.",
            score=4,
        ),
        Mistake(
            _masked_without_shift,
            "The row's maximum is no longer subtracted: large scores overflow.",
            score=4,
        ),
        Mistake(
            _diagonal_gone,
            "Row 0 sees nobody, and becomes NaN: a token may see itself, j ≤ i.",
        ),
        Mistake(
            _masked_in_place,
            "Your function writes −∞ into the caller's scores. `np.where` makes a new array.",
            score=4,
        ),
    ),
    hints=("What is 0 * -np.inf?", "`np.where(np.tril(np.ones((T, T), bool)), scores, -np.inf)`."),
    references=("part2.sa.mask", "part2.tf.mask", "primer.ch10.ex10.causal_weights"),
)


def _multi_head(x, w_q, w_k, w_v, w_o, heads, split=None, scale=None, project=True):
    split = split or ml.split_heads
    q, k, v = (split(x @ w, heads) for w in (w_q, w_k, w_v))
    mixed = _attend(q, k, v, scale=scale)
    merged = mixed.swapaxes(-2, -3).reshape(*x.shape[:-1], -1)
    return merged @ w_o if project else merged


@each
def _layers(rng, size):
    """(*lead, T, D, heads): x and four square matrices."""
    *lead, t, d, heads = size
    weights = tuple(rng.normal(size=(d, d)) for _ in range(4))
    return rng.normal(size=(*lead, t, d)), *weights, heads


def _cut_tokens(x, heads):
    return x.reshape(*x.shape[:-2], heads, x.shape[-2], x.shape[-1] // heads)


def _deal_columns(x, heads):
    return np.moveaxis(x.reshape(*x.shape[:-1], x.shape[-1] // heads, heads), -1, -3)


_undivided = refusing(lambda x, w_q, w_k, w_v, w_o, heads: x.shape[-1] % heads)


@_undivided
def _causal_heads(x, w_q, w_k, w_v, w_o, heads):
    layer = {"query": w_q, "key": w_k, "value": w_v, "output": w_o}
    return ml.multi_head_attention(x, layer, heads=heads, mask=ml.causal_mask(x.shape[-2]))


@_undivided
def _heads_without_batch(x, w_q, w_k, w_v, w_o, heads):
    if x.ndim > 2:
        raise ValueError("too many values to unpack (expected 2)")
    return _multi_head(x, w_q, w_k, w_v, w_o, heads)


def _heads_of_the_first_columns(x, w_q, w_k, w_v, w_o, heads):
    used = heads * (x.shape[-1] // heads)
    return _multi_head(x, w_q[:, :used], w_k[:, :used], w_v[:, :used], w_o[:used], heads)


def _merge_wrongly(x, w_q, w_k, w_v, w_o, heads):
    q, k, v = (ml.split_heads(x @ w, heads) for w in (w_q, w_k, w_v))
    return _attend(q, k, v).reshape(x.shape) @ w_o


MULTI_HEAD = Item(
    id="10.attention.multi_head",
    kind="function",
    title="Several heads",
    difficulty=2,
    minutes=15,
    source="Foundations (001), section 7.2; the primer (003), chapter X",
    answer="multi_head",
    masked=("multi_head_attention", "split_heads", "merge_heads"),
    task="""
Write `multi_head(x, w_q, w_k, w_v, w_o, heads)` without mask:

$$\\begin{aligned}
\\operatorname{head}_h &= \\operatorname{Attention}(XW_Q^h, XW_K^h, XW_V^h), \\\\
Y &= [\\operatorname{head}_1\\cdots\\operatorname{head}_H]\\,W_O .
\\end{aligned}$$

- `x` is $(\\dots, T, D)$, each matrix $(D, D)$. The first $D/H$ columns of `w_q` belong to the first head, and so on.
- `ml.attention` may be used. A number of heads that does not divide $D$ is refused with `ValueError`.
""",
    expected=lambda x, w_q, w_k, w_v, w_o, heads: ml.multi_head_attention(
        x, {"query": w_q, "key": w_k, "value": w_v, "output": w_o}, heads=heads
    ),
    checks=(
        values(2, _layers((4, 6, 1)), name="one head"),
        values(3, _layers((4, 6, 2), (5, 12, 3), (2, 4, 4)), name="several heads"),
        values(1, _layers((2, 4, 6, 3), (2, 2, 3, 4, 2)), name="a batch"),
        refuses(1, _layers((3, 6, 4)), name="refuses heads that do not divide D"),
    ),
    mistakes=(
        Mistake(
            lambda x, w_q, w_k, w_v, w_o, heads: _multi_head(x, w_q, w_k, w_v, w_o, heads, project=False),
            "The heads' outputs still have to be mixed: multiply by w_o.",
            score=1,
        ),
        Mistake(
            lambda x, w_q, w_k, w_v, w_o, heads: _multi_head(x, w_q, w_k, w_v, w_o, heads, split=_cut_tokens),
            "You cut the tokens apart. Reshape to (T, H, d_k) first, then swap the axes of tokens and heads.",
            score=3,
        ),
        Mistake(
            lambda x, w_q, w_k, w_v, w_o, heads: _multi_head(
                x, w_q, w_k, w_v, w_o, heads, scale=1 / np.sqrt(x.shape[-1])
            ),
            "You divided by √D. A head's queries are only D/H wide.",
            score=3,
        ),
        Mistake(
            _merge_wrongly,
            "At the end the axes of heads and tokens must be swapped back before they are merged.",
            score=3,
        ),
        Mistake(
            lambda x, w_q, w_k, w_v, w_o, heads: _multi_head(x, w_q, w_k, w_v, w_o, heads, split=_deal_columns),
            "You dealt the columns out in turn, like cards. The *first* D/H of them belong to the first head: "
            "reshape to (T, H, d_k).",
            score=3,
        ),
        Mistake(
            _undivided(lambda x, w_q, w_k, w_v, w_o, heads: _multi_head(x, w_q, w_k, w_v, w_o, 1)),
            "This is one wide head: the queries, keys and values are not cut.",
            score=3,
        ),
        Mistake(
            _undivided(lambda x, w_q, w_k, w_v, w_o, heads: _multi_head(x, w_q.T, w_k.T, w_v.T, w_o.T, heads)),
            "In this book tokens are rows: x @ w, not x @ w.T.",
            score=1,
        ),
        Mistake(
            _undivided(lambda x, w_q, w_k, w_v, w_o, heads: _multi_head(x, w_q, w_k, w_v, w_o, heads, scale=1)),
            "The scores are not divided by √d_k, where d_k = D/H.",
            score=1,
        ),
        Mistake(
            _causal_heads,
            "You put in a causal mask. This exercise has none: every token sees every token.",
            score=1,
        ),
        Mistake(
            _heads_without_batch,
            "x may have axes in front of (T, D): take `x.shape[-2]` and `x.shape[-1]`, and swap the axes −2 and −3.",
            score=6,
        ),
        Mistake(
            _heads_of_the_first_columns,
            "Where the heads do not divide D, columns are left over: refuse with ValueError.",
            score=6,
        ),
        Mistake(
            _undivided(lambda x, w_q, w_k, w_v, w_o, heads: x + _multi_head(x, w_q, w_k, w_v, w_o, heads)),
            "You added x to the result. That residual connection belongs to the next chapters, not to (10.7).",
            score=1,
        ),
    ),
    hints=(
        "`(x @ w_q).reshape(*x.shape[:-1], heads, -1)` is (…, T, H, d_k). Which axes does attention need last?",
        "`ml.attention` works on the last two axes, so (…, H, T, d_k) does all heads at once.",
        "Back: swap the axes again, then reshape to (…, T, D), then @ w_o.",
    ),
    references=("foundations.mha.head_dim", "primer.ch10.text.heads"),
)


def _turn(x, positions, base=10000.0, sign=1, half=False, table=None):
    width = x.shape[-1]
    frequencies = base ** (-np.arange(0, width, 2) / width) if table is None else table
    angles = sign * np.asarray(positions)[:, None] * frequencies
    c, s = np.cos(angles), np.sin(angles)
    a, b = np.split(x, 2, axis=-1) if half else (x[..., 0::2], x[..., 1::2])
    turned = a * c - b * s, a * s + b * c
    return np.concatenate(turned, axis=-1) if half else np.stack(turned, axis=-1).reshape(x.shape)


def _turn_over_itself(x, positions):
    first = _turn(x, positions)[..., 0::2]
    mixed = x.copy()
    mixed[..., 0::2] = first
    mixed[..., 1::2] = _turn(mixed, positions)[..., 1::2]
    return mixed


def _turn_in_place(x, positions):
    x[:] = _turn(x, positions)
    return x


@each
def _placed(rng, shape):
    return rng.normal(size=shape), rng.integers(0, 500, size=shape[-2])


ROPE_Q = np.array([[0.3, -1.2, 0.7, 0.5]])

ROTATE = Item(
    id="10.attention.rope",
    kind="function",
    title="Turned by where it stands",
    difficulty=2,
    minutes=12,
    source="Foundations (001), section 6.2.2; Putting it together (000), step 1",
    answer="rope",
    masked=("rotate", "rotary_angles", "multi_head_attention"),
    task="""
Write `rope(x, positions)`: `x` is $(\\dots, T, d)$ with $d$ even, `positions` has $T$ whole numbers. Components $2i$
and $2i+1$ form pair $i$ ($i = 0, 1, \\dots$), and the pair of a token at position $t$ is turned by $\\theta =
t\\cdot10000^{-2i/d}$:

$$(x_1, x_2) \\to (x_1\\cos\\theta - x_2\\sin\\theta,\\; x_1\\sin\\theta + x_2\\cos\\theta) .$$
""",
    expected=lambda x, positions: ml.rotate(x, angles=ml.rotary_angles(positions, x.shape[-1]), pairing="adjacent"),
    checks=(
        values(1, _placed((3, 2)), public=[(np.array([[1.0, 0.0]]), np.array([1]))], name="one pair"),
        values(3, _placed((4, 4), (1, 8), (5, 6)), public=[(ROPE_Q, np.array([7]))], name="several pairs"),
        values(1, _placed((2, 3, 4)), name="a batch"),
        leaves_inputs(1, _placed((3, 4))),
    ),
    mistakes=(
        Mistake(
            lambda x, positions: _turn(x, positions, half=True),
            "You paired i with i + d/2, as model files do. Here 2i and 2i + 1 form a pair.",
            score=1,
        ),
        Mistake(lambda x, positions: _turn(x, positions, sign=-1), "You turned the other way: check the two signs."),
        Mistake(
            lambda x, positions: _turn(x, positions, table=10000.0 ** (-np.arange(x.shape[-1] // 2) / x.shape[-1])),
            "The exponent is −2i/d; you have −i/d.",
            score=1,
        ),
        Mistake(
            lambda x, positions: _turn(x, positions, table=np.ones(x.shape[-1] // 2)),
            "All pairs turn at one speed. Pair i turns by t · 10000^(−2i/d).",
            score=1,
        ),
        Mistake(
            lambda x, positions: _turn(x, positions, base=1e-4),
            "The sign of the exponent: later pairs turn ever more slowly.",
            score=1,
        ),
        Mistake(
            lambda x, positions: _turn(x, positions, base=10000.0**2),
            "The 2 came twice: if i already counts 0, 2, 4, … the exponent is −i/d.",
            score=1,
        ),
        Mistake(
            lambda x, positions: _turn(x, np.arange(x.shape[-2])),
            "You counted the rows. The tokens stand at the `positions` that are handed in.",
        ),
        Mistake(
            lambda x, positions: np.concatenate(
                [part for part in np.moveaxis(_turn(x, positions).reshape(*x.shape[:-1], -1, 2), -1, 0)], axis=-1
            ),
            "The turned components are right but stand in another order: put them back at 2i and 2i + 1.",
            score=1,
        ),
        Mistake(
            lambda x, positions: _turn(x, np.radians(positions)),
            "The angles are in radians already: do not convert them from degrees.",
        ),
        Mistake(
            lambda x, positions: _turn(x, np.asarray(positions) + 1),
            "Positions are taken as they are: at position 0 nothing turns.",
        ),
        Mistake(
            _turn_over_itself,
            "The second component was made from the first one *after* its turn. Both need the old values.",
        ),
        Mistake(
            _turn_in_place,
            "Your function writes into the caller's x. Fill a new array: `np.empty_like(x)`.",
            score=5,
        ),
    ),
    hints=(
        "`x[..., 0::2]` and `x[..., 1::2]` are the first and second components of all pairs.",
        "The angles form a table (T, d/2): positions[:, None] times the d/2 frequencies.",
    ),
    references=("foundations.rope.relative", "foundations.rope.formula", "foundations.rope.norm"),
)


# Derivation and proof -----------------------------------------------------------------------------------------------


def _softmax_back(weights, dweights):
    return weights * (dweights - np.sum(dweights * weights, axis=-1, keepdims=True))


def _pullback(query, key, value, dy, softmax_back=_softmax_back, divisor=np.sqrt, swapped=False, turned=False):
    weights = _softmax(query @ key.T / np.sqrt(query.shape[-1]))
    dscores = softmax_back(weights, dy @ value.T) / divisor(query.shape[-1])
    dkey = (dscores if turned else dscores.T) @ query
    return dscores @ key, dkey, (weights @ dy if swapped else weights.T @ dy)


@each
def _with_slopes(rng, size):
    t, k, v = size
    return rng.normal(size=(t, k)), rng.normal(size=(t, k)), rng.normal(size=(t, v)), rng.normal(size=(t, v))


PULLBACK = Item(
    id="10.attention.pullback",
    kind="gradient",
    title="The way back",
    difficulty=3,
    minutes=25,
    source="after Foundations (001), section 7.1",
    answer="attention_pullback",
    masked=(*PACKAGED, "grad", "value_and_grad", "vjp", "softmax_jacobian", "softmax_gradient", "numerical_gradient"),
    task="""
For $Y = \\operatorname{softmax}(QK^{\\mathsf T}/\\sqrt{d_k})\\,V$ write `attention_pullback(query, key, value, dy)`:
from the slopes `dy` of a loss with respect to $Y$, the three arrays `(dquery, dkey, dvalue)`. All inputs have two
axes. Derive it on paper first.
""",
    expected=_pullback,
    checks=(
        gradient(
            4,
            _attend,
            _with_slopes((2, 3, 2), (3, 2, 4)),
            public=[(Q, K, V, np.ones((3, 2)))],
            wrt=(0, 1, 2),
            rtol=1e-6,
        ),
        values(2, _with_slopes((6, 8, 5)), name="a longer sequence"),
        leaves_inputs(1, _with_slopes((3, 2, 2))),
    ),
    mistakes=(
        Mistake(
            lambda query, key, value, dy: _pullback(query, key, value, dy, lambda A, dA: A * dA),
            "Softmax's pullback is A ∘ (dA − the row sums of dA ∘ A). The subtraction is missing.",
        ),
        Mistake(
            lambda query, key, value, dy: _pullback(query, key, value, dy, lambda A, dA: dA),
            "The way through the softmax is missing: dS = A ∘ (dA − the row sums of dA ∘ A).",
        ),
        Mistake(
            lambda query, key, value, dy: _pullback(query, key, value, dy, lambda A, dA: A * (1 - A) * dA),
            "A(1 − A) is the diagonal of softmax's Jacobian alone: a score also moves the other weights of its row.",
        ),
        Mistake(
            lambda query, key, value, dy: _pullback(
                query, key, value, dy, lambda A, dA: A * (dA - np.sum(dA * A, axis=0, keepdims=True))
            ),
            "The sums of dA ∘ A go along each row, over the keys: axis=-1.",
        ),
        Mistake(
            lambda query, key, value, dy: _pullback(
                query, key, value, dy, lambda A, dA: A * (dA - np.sum(dA * A, axis=-1))
            ),
            "Without `keepdims=True` the row sums are laid along the columns.",
        ),
        Mistake(
            lambda query, key, value, dy: _pullback(
                query, key, value, dy, lambda A, dA: A * (dA - np.sum(dA, axis=-1, keepdims=True))
            ),
            "In the bracket the row sums are of dA ∘ A, not of dA.",
        ),
        Mistake(
            lambda query, key, value, dy: _pullback(query, key, value, dy, divisor=lambda width: 1.0),
            "The factor 1/√d_k stands in the scores, and so in the slopes of query and key.",
        ),
        Mistake(
            lambda query, key, value, dy: _pullback(query, key, value, dy, divisor=float),
            "The slopes of the scores are divided by √d_k, not by d_k.",
        ),
        Mistake(
            lambda query, key, value, dy: _pullback(query, key, value, dy, turned=True),
            "dK = dSᵀ Q: key j collects from all queries i. You used dS.",
        ),
        Mistake(
            lambda query, key, value, dy: _pullback(query, key, value, dy, swapped=True),
            "dV = Aᵀ dY: value j collects from all queries i that looked at it. You used A.",
        ),
        Mistake(
            lambda query, key, value, dy: _pullback(query, key, value, dy)[::-1],
            "The order is dquery, dkey, dvalue.",
        ),
    ),
    hints=(
        "dV = Aᵀ dY and dA = dY Vᵀ.",
        "dS = A ∘ (dA − rowsum(dA ∘ A)).",
        "dQ = dS K/√d_k and dK = dSᵀ Q/√d_k.",
    ),
)

WHY_ROOT = Item(
    id="10.attention.why_root",
    kind="text",
    title="Why the root of the width?",
    difficulty=2,
    minutes=15,
    source="The primer (003), chapter X, exercise 22",
    task="""
Why does attention divide by $\\sqrt{d_k}$, rather than by $d_k$ or by nothing? (a) Derive the variance of $q\\cdot
k$ for independent components with mean 0 and variance 1, and say where each assumption enters. (b) What would happen
without scaling? (c) And with $1/d_k$?
""",
    rubric=(
        (2, "(a) The variance of q·k is d_k (standard deviation √d_k): each term has 1, independent terms add up; "
            "independence and zero means are named where they are used."),
        (1, "(a) Scaled scores have variance about 1 at every width."),
        (1, "(b) Without scaling softmax saturates: nearly one-hot weights, vanishing gradients."),
        (1, "(c) Dividing by d_k over-shrinks: scores of size 1/√d_k, nearly uniform weights, no selection."),
    ),
    hints=("Var(qk) = E[q²k²] − (E[qk])².", "What does softmax do with large differences, and with tiny ones?"),
    references=("primer.ch10.q22.why_sqrt_dk",),
)  # fmt: skip


# Project ------------------------------------------------------------------------------------------------------------


@each
def _tiles(rng, size, scale=1.0):
    """(d_k, d_v, lengths of the tiles): one query, then lists of key tiles and value tiles."""
    k, v, lengths = size
    keys = [scale * rng.normal(size=(n, k)) for n in lengths]
    return rng.normal(size=k), keys, [rng.normal(size=(n, v)) for n in lengths]


def _whole(query, key_tiles, value_tiles):
    return ml.attention(query[None], np.concatenate(key_tiles), np.concatenate(value_tiles))[0]


def _stream(query, key_tiles, value_tiles, rescale=(True, True), highest=max, largest=-np.inf, inverse=False):
    total, blend = 0.0, np.zeros(value_tiles[0].shape[-1])
    with np.errstate(all="ignore"):
        for key, value in zip(key_tiles, value_tiles, strict=True):
            scores = key @ query / np.sqrt(query.size)
            new = highest(largest, scores.max())
            factor = np.exp(new - largest if inverse and largest > -np.inf else largest - new)
            sums, blends = (factor if wanted else 1.0 for wanted in rescale)
            e = np.exp(scores - new)
            total, blend, largest = sums * total + e.sum(), blends * blend + e @ value, new
        return blend / total


def _undivided_blend(query, key_tiles, value_tiles):
    scores = np.concatenate(key_tiles) @ query / np.sqrt(query.size)
    return np.exp(scores - scores.max()) @ np.concatenate(value_tiles)


def _mean_of_tiles(query, key_tiles, value_tiles):
    parts = [ml.attention(query[None], k, v)[0] for k, v in zip(key_tiles, value_tiles, strict=True)]
    return np.mean(parts, axis=0)


def _stairs(*scores):
    """One query and one key per tile, with these dot products; the values are 1, 2, …"""
    keys = [np.array([[score, 0.0]]) for score in scores]
    return np.array([1.0, 0.0]), keys, [np.array([[n + 1.0]]) for n in range(len(scores))]


STREAM = Item(
    id="10.attention.streaming",
    kind="function",
    title="Attention that never sees the whole row",
    difficulty=3,
    minutes=25,
    source="Foundations (001), section 7.4; Dao et al. 2022, algorithm 1",
    answer="streaming_attention",
    masked=PACKAGED,
    task="""
The keys and values of a very long text arrive in tiles. Write `streaming_attention(query, key_tiles, value_tiles)`
for **one** query of width $d_k$: `key_tiles` is a list of arrays $(n_b, d_k)$, `value_tiles` one of arrays $(n_b,
d_v)$. Return the output of attention over *all* keys, $(d_v,)$, going through the tiles once: keep the largest score
$m$, the sum $\\ell$, and the blend $o$, and rescale the last two when the maximum rises.

- Scores of any size are fine, also when the largest comes last.
- Do not join the tiles: a text may be larger than the memory. (The checks cannot see this. You can.)
""",
    expected=_whole,
    checks=(
        values(2, _tiles((3, 2, (4,)), (2, 1, (1,))), name="one tile"),
        values(
            3, _tiles((3, 2, (4, 1, 7)), (8, 4, (3, 3, 3, 3))), public=[_stairs(0.5, 1.0, 2.0)], name="several tiles"
        ),
        values(
            2,
            _tiles((4, 2, (3, 5, 2)), scale=1000.0),
            public=[_stairs(1.0, 1900.0, 1901.0), _stairs(-2001.0, -2000.0), _stairs(2000.0, 1.0, 2001.0)],
            name="large scores",
        ),
    ),
    mistakes=(
        Mistake(
            lambda query, key_tiles, value_tiles: _stream(query, key_tiles, value_tiles, rescale=(False, False)),
            "When the maximum rises, the old sum and the old blend must be multiplied by e^(m − m').",
            score=2,
        ),
        Mistake(
            lambda query, key_tiles, value_tiles: _stream(query, key_tiles, value_tiles, rescale=(True, False)),
            "The sum is rescaled when the maximum rises; the blend needs the same factor e^(m − m').",
            score=2,
        ),
        Mistake(
            lambda query, key_tiles, value_tiles: _stream(query, key_tiles, value_tiles, rescale=(False, True)),
            "The blend is rescaled when the maximum rises; the sum needs the same factor e^(m − m').",
            score=2,
        ),
        Mistake(
            lambda query, key_tiles, value_tiles: _stream(
                query, key_tiles, value_tiles, highest=lambda old, new: 0.0, largest=0.0
            ),
            "Without the running maximum large scores overflow.",
            score=5,
        ),
        Mistake(
            lambda query, key_tiles, value_tiles: _stream(
                query, key_tiles, value_tiles, highest=lambda old, new: new
            ),
            "m is the largest score of *all* tiles so far: m' = max(m, …). After a drop e^(m − m') overflows.",
            score=5,
        ),
        Mistake(
            lambda query, key_tiles, value_tiles: _stream(query, key_tiles, value_tiles, inverse=True),
            "The factor is e^(m − m'), old minus new: when the maximum rises it is below 1.",
            score=2,
        ),
        Mistake(
            lambda query, key_tiles, value_tiles: ml.attention(query[None], key_tiles[-1], value_tiles[-1])[0],
            "Only the last tile counts: is m set to m' after each tile, and are ℓ and o added to, not replaced?",
            score=2,
        ),
        Mistake(
            lambda query, key_tiles, value_tiles: ml.attention(query[None], key_tiles[0], value_tiles[0])[0],
            "Only the first tile was read: is the `return` inside the loop?",
            score=2,
        ),
        Mistake(
            _undivided_blend,
            "At the end the blend must be divided by the sum: o/ℓ.",
        ),
        Mistake(
            _mean_of_tiles,
            "You averaged the outputs of the tiles. A tile counts in proportion to its sum of exponentials.",
            score=2,
        ),
        Mistake(
            lambda query, key_tiles, value_tiles: _stream(query * np.sqrt(query.size), key_tiles, value_tiles),
            "You forgot to divide by √d_k.",
            score=0,
        ),
        Mistake(
            lambda query, key_tiles, value_tiles: _stream(query, key_tiles, value_tiles, largest=0.0),
            "Start the maximum at −∞. From 0 on, a row of very negative scores underflows to 0/0.",
            score=5,
        ),
    ),
    hints=(
        "Begin with m = −∞, ℓ = 0, o = 0; e^(−∞) is 0, so the first rescaling does no harm.",
        "m' = max(m, new scores); ℓ ← e^(m−m')ℓ + Σe^(s−m'); o likewise with the values.",
        "At the end o/ℓ.",
    ),
    references=("foundations.flash.speedup",),
)


# Check yourself (in the chapter, not graded) ------------------------------------------------------------------------

QUICK = [
    quick(
        "10.attention.quick_equal",
        "Nothing fits better",
        "Putting it together (000), step 2",
        "A query has the scores [0, 0, 0, 0] with four keys. What weight does each get?",
        lambda: 0.25,
        (
            Mistake(lambda: 0, "Equal scores get equal shares, and the shares add up to one."),
            Mistake(lambda: 1, "Four shares of 1 would add up to 4."),
        ),
    ),
    quick(
        "10.attention.quick_blend",
        "A weighted average",
        "Foundations (001), section 7.1",
        "The values are the numbers 2 and 6, the weights [0.75, 0.25]. What is the output?",
        lambda: 0.75 * 2 + 0.25 * 6,
        (
            Mistake(lambda: 5, "You gave the larger weight to the larger value."),
            Mistake(lambda: 4, "This is the plain mean: the weights are missing."),
        ),
    ),
    quick(
        "10.attention.quick_pairs",
        "Under the diagonal",
        "Foundations (001), section 7.3",
        "How many pairs of query and key does a causal mask allow for 5 tokens?",
        lambda: 15,
        (
            Mistake(lambda: 10, "The diagonal belongs to it: a token may see itself."),
            Mistake(lambda: 25, "These are all pairs, without a mask."),
        ),
    ),
    quick(
        "10.attention.quick_width",
        "Sixteen heads",
        "after the primer (003), chapter X, exercise 21",
        "D = 1024 and 16 heads: how wide is a head?",
        lambda: 64,
        (
            Mistake(lambda: 1024, "The heads share the width."),
            Mistake(lambda: 32, "This is the root of 1024. The heads share the width: 1024/16."),
        ),
    ),
    quick(
        "10.attention.quick_rope",
        "A hundred places on",
        "Foundations (001), section 6.2.2",
        "With RoPE, a query at 12 and a key at 9 have the score 1.7. What is it at 112 and 109?",
        lambda: 1.7,
        (
            Mistake(lambda: -1.7, "Only the distance counts, and it is the same."),
            Mistake(lambda: 0, "Only the distance counts, and it is the same."),
        ),
    ),
]

ITEMS = [
    HEAD_SIZES,
    DOT_PRODUCTS,
    EXAMPLE_10,
    PILLARS_ROW,
    POSITION_SUM,
    OWN_ROW,
    OWN_TURN,
    ATTENTION,
    REPAIR_MASK,
    MULTI_HEAD,
    ROTATE,
    PULLBACK,
    WHY_ROOT,
    STREAM,
    *QUICK,
]
