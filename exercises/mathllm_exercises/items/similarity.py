"""Chapter 02, the dot product and similarity: cosines, pooled sentences, a contrastive loss, analogies."""

import numpy as np

import mathllm as ml
from mathllm.exhibits.similarity import COSINE_BANDS, interpret_cosine

from ..cases import each, normals, refusing, tells_apart
from ..compare import numeric, show
from ..item import Check, Item, Mistake, gradient, keeps_dtype, leaves_inputs, refuses, values

CAT, DOG = np.array([2.0, 5.0, 1.0]), np.array([3.0, 4.0, 2.0])  # 003, chapter II, example 2
KING, QUEEN = np.array([3.0, 7.0]), np.array([4.0, 6.5])  # 003, chapter II, opening


# Warm-up ------------------------------------------------------------------------------------------------------------

DOT_BY_HAND = Item(
    id="02.similarity.dot_by_hand",
    kind="value",
    title="Multiply in pairs, then add",
    difficulty=1,
    minutes=3,
    source="The primer (003), chapter II, exercise 2",
    answer="products_and_dot",
    task="""
Take $a = [1, 3, 5]$ and $b = [2, 0, 4]$. Give four numbers in a list, `products_and_dot`: the three products of the
components that stand in the same place, then the dot product $a\\cdot b$.
""",
    expected=lambda: [*np.multiply([1, 3, 5], [2, 0, 4]), ml.dot([1, 3, 5], [2, 0, 4])],
    checks=(values(2),),
    mistakes=(
        Mistake(
            lambda: [2, 3, 20, 25], "3 · 0 is 0, not 3: where one vector has a zero, the other one does not count."
        ),
        Mistake(lambda: [2, 0, 20], "These are the products. A fourth number was asked for: their sum."),
        Mistake(lambda: 22, "The dot product is right. Four numbers were asked for: the three products come first."),
        Mistake(
            lambda: [3, 3, 9, 15],
            "You added in pairs. Multiply the components in the same place; the adding comes last.",
        ),
        Mistake(lambda: [2, 0, 20, 0], "The three products are added at the end, not multiplied."),
        Mistake(
            lambda: [2, 0, 20, 54], "This is (1 + 3 + 5)(2 + 0 + 4). Only components in the same place meet each other."
        ),
    ),
    hints=("The first product is 1 · 2.", "The last number is the sum of the first three."),
    references=("primer.ch02.q2.products", "primer.ch02.q2.dot"),
)

COSINE_BY_HAND = Item(
    id="02.similarity.cosine_by_hand",
    kind="value",
    title="Swapped components",
    difficulty=1,
    minutes=5,
    source="The primer (003), chapter II, exercise 4",
    answer="dot_norms_cosine",
    task="""
Take $a = [3, 4]$ and $b = [4, 3]$. Give four numbers in a list, `dot_norms_cosine`: the dot product $a\\cdot b$,
the two lengths $\\lVert a\\rVert$ and $\\lVert b\\rVert$, and the cosine of the angle between them.
""",
    expected=lambda: [ml.dot([3, 4], [4, 3]), ml.norm([3, 4]), ml.norm([4, 3]), ml.cosine_similarity([3, 4], [4, 3])],
    checks=(values(2),),
    mistakes=(
        Mistake(lambda: 0.96, "The cosine is right. Four numbers were asked for: dot product, two lengths, cosine."),
        Mistake(lambda: [24, 5, 5, 4.8], "You divided by one length only. Both have to go: 24 / (5 · 5)."),
        Mistake(lambda: [24, 5, 5, 2.4], "You divided by the sum of the lengths. Divide by their product."),
        Mistake(lambda: [24, 25, 25, 24 / 625], "25 is the squared length: take the root, 5, before you divide."),
        Mistake(lambda: [24, 7, 7, 24 / 49], "7 is 3 + 4. The length is the root of 9 + 16."),
        Mistake(lambda: [24, 5, 5, 0.04], "This is 1 minus the cosine, a distance. The cosine itself was asked for."),
        Mistake(lambda: [25, 5, 5, 1.0], "The dot product pairs 3 with 4 and 4 with 3: 12 + 12."),
        Mistake(lambda: [24, 5, 5, np.arccos(0.96)], "The last number is the angle. The cosine itself was asked for."),
        Mistake(lambda: [24, 5, 5, 16.26], "The last number is the angle in degrees. The cosine itself was asked for."),
    ),
    hints=(
        "Both lengths are whole numbers; you know the triangle.",
        "Dot product, divided by the product of the lengths.",
    ),
    references=("primer.ch02.q4.dot", "primer.ch02.q4.norms", "primer.ch02.q4.cosine"),
)


def _half_a_pair(rng):
    """a complete, of b the first two components; a·b must not be right already without the third."""
    a, b = rng.integers(1, 8, size=3), rng.integers(1, 8, size=2)
    a[1], a[2] = -a[1], rng.choice([2, 4, 5])
    b[1] += a[0] * b[0] + a[1] * b[1] == 0
    return {"a": a.tolist(), "b": b.tolist()}


OWN_RIGHT_ANGLE = Item(
    id="02.similarity.own_right_angle",
    kind="value",
    title="Make it a right angle",
    difficulty=1,
    minutes=5,
    source="after the primer (003), chapter II, exercise 3",
    answer="missing",
    task="""
`mine.a` is a vector with three components; of a second vector $b$ only the first two are known, `mine.b`. Which
third component makes the two vectors perpendicular? Put it into `missing`, right to three decimals.
""",
    numbers=_half_a_pair,
    expected=lambda a, b: -ml.dot(a[:2], b) / a[2],
    checks=(values(2, decimals=3),),
    mistakes=(
        Mistake(
            lambda a, b: np.dot(a[:2], b) / a[2],
            "The sign: the third product must cancel the first two, not repeat them.",
        ),
        Mistake(
            lambda a, b: -np.dot(a[:2], b),
            "This is the product that is still needed. Divide it by the third component of a.",
        ),
        Mistake(
            lambda a, b: -np.dot(a[:2], b) * a[2],
            "You multiplied by the third component of a; solving for the other factor divides by it.",
        ),
        Mistake(
            lambda a, b: [*b, -np.dot(a[:2], b) / a[2]],
            "That is all of b, and right. Only its third component was asked for.",
        ),
    ),
    hints=("Perpendicular means: the dot product is zero.", "a₁b₁ + a₂b₂ + a₃b₃ = 0 has one unknown."),
)


# Core ---------------------------------------------------------------------------------------------------------------

ZERO_COSINE = Item(
    id="02.similarity.zero_cosine",
    kind="text",
    title="What a right angle says",
    difficulty=1,
    minutes=8,
    source="The primer (003), chapter II, exercise 3",
    task="""
Compute the dot product and the cosine similarity of $a = [1, 2]$ and $b = [2, -1]$. Then say in three or four
sentences what the result means if these are the embeddings of two words: how the vectors lie, what the model says
about the words, and what part the lengths play.
""",
    rubric=(
        (1, "Computes 1·2 + 2·(−1) = 0 and hence a cosine of 0."),
        (1, "The vectors are perpendicular (orthogonal)."),
        (1, "By this measure the model treats the two concepts as unrelated (not: as opposites)."),
        (1, "This holds independently of the magnitudes."),
    ),
    hints=("Two products, one of them negative.", "Which cosine would opposites have?"),
    references=("primer.ch02.q3.dot", "primer.ch02.q3.cosine", "primer.ch02.q3.meaning"),
)

KING_QUEEN_BAND = Item(
    id="02.similarity.king_queen_band",
    kind="value",
    title="The table against its own example",
    difficulty=2,
    minutes=6,
    source="The primer (003), chapter II, opening and reference table",
    answer="king_queen_band",
    task="""
The chapter in the primer opens with *king* = [3, 7] and *queen* = [4, 6.5]; two pages on, its table of cosines
names king/queen as the example for one of the five bands. Which band do the chapter's own vectors belong to? Put
the label, letter for letter as in the table, into `king_queen_band`.

| cosine | label |
|---|---|
| 0.90 to 1.00 | Near-identical |
| 0.70 to 0.90 | Strongly related |
| 0.40 to 0.70 | Some relationship |
| 0.00 to 0.40 | Weak or no relation |
| below 0.00 | Opposing (rare) |
""",
    expected=lambda: interpret_cosine(ml.cosine_similarity(KING, QUEEN)),
    checks=(values(2),),
    mistakes=(
        Mistake(
            lambda: "Strongly related",
            "So the table says. Compute: the dot product is 57.5, and each length is a little over 7.6.",
        ),
        Mistake(lambda: 57.5, "That is the dot product. Divide by both lengths, then look the cosine up."),
        Mistake(
            lambda: round(float(ml.cosine_similarity(KING, QUEEN)), 3), "The cosine is right. Which label does it get?"
        ),
        Mistake(lambda: ml.cosine_similarity(KING, QUEEN), "This is the cosine, and right. Which label does it get?"),
        Mistake(lambda: "0.90 to 1.00", "The band is right. Its label stands beside it."),
        Mistake(lambda: "Some relationship", "There is a slip in the cosine. Its numerator is 3·4 + 7·6.5."),
    ),
    hints=(
        "Trust the arithmetic, not the example.",
        "The primer's two pages use separate toys: a vector invented for one page need not fit the next.",
    ),
    references=(
        "primer.ch02.intro.kingqueen_dot",
        "primer.ch02.intro.kingqueen_cos",
        "primer.ch02.table.classify_kingqueen",
    ),
)


def _stretched(rng):
    """Pairs whose lengths differ by many powers of ten."""
    return [(rng.normal(size=4) * 1e6, rng.normal(size=4) * 1e-6), (rng.normal(size=3) * 1e-8, rng.normal(size=3))]


_careful = refusing(lambda a, b: a.shape[-1] != b.shape[-1] or np.any(ml.norm(a) == 0) or np.any(ml.norm(b) == 0))


_of_one_length = refusing(lambda a, b: a.shape[-1] != b.shape[-1])


def _dot(a, b):
    return np.sum(a * b, axis=-1)


def _cosine_of_the_shorter(a, b):
    """What zip() does: the longer vector is cut, without a word."""
    n = min(a.shape[-1], b.shape[-1])
    return _careful(lambda a, b: _dot(a, b) / (ml.norm(a) * ml.norm(b)))(a[..., :n], b[..., :n])


def _cosine_stretched(a, b):
    """What NumPy does: a vector with one component is repeated to fit the other."""
    lengths = ml.norm(a) * ml.norm(b)
    if np.any(lengths == 0):
        raise ValueError("a zero vector has no direction")
    return _dot(a, b) / lengths


def _cosine_or_nan(a, b):
    if a.shape[-1] != b.shape[-1]:
        raise ValueError("two lengths")
    with np.errstate(invalid="ignore", divide="ignore"):
        return _dot(a, b) / (ml.norm(a) * ml.norm(b))


def _cosine_in_place(a, b):
    cosine = ml.cosine_similarity(a, b)
    a /= ml.norm(a)[..., None]
    b /= ml.norm(b)[..., None]
    return cosine


COSINE_SIMILARITY = Item(
    id="02.similarity.cosine_similarity",
    kind="function",
    title="The angle, without the lengths",
    difficulty=2,
    minutes=12,
    source="The primer (003), chapter II, example 2; Foundations (001), section 1.1.1",
    answer="cosine_similarity",
    masked=("cosine_similarity", "cosine_similarity_matrix"),
    task="""
Write `cosine_similarity(a, b)`:

$$\\cos\\theta = \\frac{a\\cdot b}{\\lVert a\\rVert\\,\\lVert b\\rVert} .$$

- The components lie along the last axis; further axes broadcast. Two vectors give one number, a stack of pairs
  gives one number per pair, and one vector against a stack gives its cosine with each of them.
- A zero vector has no direction: refuse it with `ValueError`, and do not answer NaN.
- Vectors with different numbers of components are refused with `ValueError`.
- `float32` stays `float32`, and the inputs are left as they were.
""",
    expected=ml.cosine_similarity,
    checks=(
        values(
            2,
            normals([2, 2], [5, 5], [50, 50]),
            public=[
                (CAT, DOG),
                (np.array([1.0, 2.0]), np.array([2.0, -1.0])),
                (np.array([3.0, 4.0]), np.array([4.0, 3.0])),
            ],
            name="two vectors",
        ),
        values(1, _stretched, public=[(KING, 3 * KING), (KING, -QUEEN)], name="lengths do not count"),
        values(2, normals([(4, 3), (4, 3)], [3, (5, 3)], [(2, 1, 3), (4, 3)], [(3, 3), 3]), name="batch axes"),
        keeps_dtype(1, normals(6, count=2, dtype=np.float32)),
        leaves_inputs(1, normals([4, 4], [(2, 3), (2, 3)])),
        refuses(
            1,
            public=[(np.zeros(3), np.ones(3)), (np.ones(2), np.zeros(2)), (np.eye(3)[:2] * [[1], [0]], np.ones(3))],
            name="refuses a zero vector",
        ),
        refuses(
            1,
            public=[(np.ones(3), np.ones(5)), (np.array([1.0, 2.0, 3.0]), np.ones(1))],
            name="refuses vectors of different lengths",
        ),
    ),
    mistakes=(
        Mistake(_careful(_dot), "This is the dot product: the division by the two lengths is missing.", score=2),
        Mistake(
            _careful(lambda a, b: _dot(a, b) / ml.norm(a)),
            "You divided by the length of a only. Both lengths have to go.",
            score=2,
        ),
        Mistake(
            _careful(lambda a, b: _dot(a, b) / (ml.norm(a) * ml.norm(b)) ** 2),
            "You divided by the squared lengths: take the roots.",
            score=2,
        ),
        Mistake(
            _careful(lambda a, b: _dot(a, b) / (ml.norm(a) + ml.norm(b))),
            "You divided by the sum of the lengths. Divide by their product.",
            score=2,
        ),
        Mistake(
            _careful(lambda a, b: np.arccos(np.clip(_dot(a, b) / (ml.norm(a) * ml.norm(b)), -1, 1))),
            "This is the angle. The cosine itself was asked for: leave the arccos out.",
            score=2,
        ),
        Mistake(
            _careful(lambda a, b: _dot(a, b) / ml.norm(a) * ml.norm(b)),
            "`x / y * z` divides by y only. Put brackets round the product of the two lengths.",
            score=2,
        ),
        Mistake(
            _careful(lambda a, b: 1 - _dot(a, b) / (ml.norm(a) * ml.norm(b))),
            "This is one minus the cosine, a distance. The cosine itself was asked for.",
            score=2,
        ),
        Mistake(
            _careful(lambda a, b: np.dot(a, b) / (np.linalg.norm(a) * np.linalg.norm(b))),
            "`np.dot` and `np.linalg.norm` answer for two single vectors. For stacks, sum along `axis=-1`.",
            score=6,
        ),
        Mistake(
            _careful(lambda a, b: a @ b / (ml.norm(a) * ml.norm(b))),
            "`a @ b` is the matrix product as soon as there are stacks. Multiply by `*` and sum along `axis=-1`.",
            score=6,
        ),
        Mistake(
            _careful(lambda a, b: np.sum(a * b) / np.sqrt(np.sum(a * a) * np.sum(b * b))),
            "Everything went into one sum. Sum along the last axis only: `axis=-1`.",
            score=6,
        ),
        Mistake(
            _of_one_length(lambda a, b: _dot(a, b) / (ml.norm(a) * ml.norm(b) + 1e-8)),
            "A small number in the denominator changes every cosine a little. Refuse a zero vector in its place.",
            score=2,
        ),
        Mistake(
            _of_one_length(
                lambda a, b: ml.cosine_similarity(a, b) if np.all(ml.norm(a)) and np.all(ml.norm(b)) else 0.0
            ),
            "A zero vector is answered with 0, which says: at a right angle. It has no direction; refuse it.",
            score=8,
        ),
        Mistake(
            refusing(lambda a, b: a.shape != b.shape)(ml.cosine_similarity),
            "You compared whole shapes, and refuse one vector against a stack. Compare the last axes only.",
            score=7,
        ),
        Mistake(
            _careful(lambda a, b: _dot(a, b) / np.sqrt(np.sum(a * a) * np.sum(b * b))),
            "The lengths were summed over the whole stack. Sum along the last axis: `axis=-1`.",
            score=6,
        ),
        Mistake(
            _cosine_stretched,
            "A vector with one component is silently stretched to fit the other. Compare the last axes first.",
            score=8,
        ),
        Mistake(
            _cosine_of_the_shorter,
            "The longer vector is cut to the length of the shorter, as `zip` does. Different lengths are an error.",
            score=8,
        ),
        Mistake(
            _cosine_or_nan,
            "A zero vector is answered with NaN. Refuse it with `ValueError` before you divide.",
            score=8,
        ),
        Mistake(_cosine_in_place, "Your function normalises the caller's arrays. Work on new ones.", score=8),
    ),
    hints=(
        "`np.sum(a * b, axis=-1)` is the dot product along the last axis, for any further axes.",
        "`ml.norm(a)` and `ml.norm(b)` broadcast like the dot products do.",
        "Compare `a.shape[-1]` and `b.shape[-1]` first: NumPy would stretch a vector with one component.",
    ),
    references=("primer.ch02.ex2.cosine", "primer.ch02.ex2.cosine_2dp"),
)


_proper = refusing(lambda c: not -1 <= c <= 1)


def _edges_up(c):
    return next((label for edge, label in COSINE_BANDS if c > edge), "Opposing (rare)")


INTERPRET_COSINE = Item(
    id="02.similarity.interpret_cosine",
    kind="function",
    title="A label for a number",
    difficulty=1,
    minutes=8,
    source="The primer (003), chapter II, reference table",
    answer="interpret_cosine",
    task="""
Write `interpret_cosine(c)`: the label of the band in which the cosine `c` (one number) lies.

| cosine | label |
|---|---|
| 0.90 to 1.00 | `"Near-identical"` |
| 0.70 to 0.90 | `"Strongly related"` |
| 0.40 to 0.70 | `"Some relationship"` |
| 0.00 to 0.40 | `"Weak or no relation"` |
| below 0.00 | `"Opposing (rare)"` |

As printed, three of the edges belong to two bands. We decide: **an edge belongs to the upper band**, so that 0.90
is near-identical and 0.00 is a weak or no relation. What is no cosine (NaN, or a number outside [−1, 1]) is refused
with `ValueError`.
""",
    expected=interpret_cosine,
    checks=(
        values(
            2,
            lambda rng: [
                (float(c),)
                for low, high in ((0.9, 1), (0.7, 0.9), (0.4, 0.7), (0, 0.4), (-1, 0))
                for c in rng.uniform(low + 1e-6, high - 1e-6, size=3)
            ],
            public=[(0.9493,), (0.88,), (0.66,), (0.36,), (-0.04,)],
            name="inside the bands",
        ),
        values(2, public=[(1.0,), (0.9,), (0.7,), (0.4,), (0.0,), (-1.0,)], name="on the edges"),
        refuses(1, public=[(1.5,), (-2.0,), (float("nan"),)], name="refuses what is no cosine"),
    ),
    mistakes=(
        Mistake(_proper(_edges_up), "On an edge your label is that of the lower band. Use ≥ (`>=`), not >.", score=3),
        Mistake(
            _proper(lambda c: interpret_cosine(round(c, 1))),
            "You rounded first: 0.88 is not 0.9. Compare the cosine as it is.",
            score=3,
        ),
        Mistake(
            _proper(lambda c: interpret_cosine(abs(c))),
            "Negative cosines got the label of their size. Below zero the vectors point apart: Opposing (rare).",
            score=1,
        ),
        Mistake(
            _proper(lambda c: interpret_cosine(max(c, 0.0))),
            "Negative cosines have a label of their own, Opposing (rare).",
            score=1,
        ),
        Mistake(
            _proper(lambda c: "Weak or no relation" if c >= 0 else "Opposing (rare)"),
            "Every cosine from 0 on stopped at the first question. Ask for the highest band first.",
            score=1,
        ),
        Mistake(
            refusing(lambda c: not -1 < c < 1)(interpret_cosine),
            "1 and −1 are cosines, too: of a vector with itself, and with its opposite.",
            score=3,
        ),
        Mistake(
            refusing(lambda c: c < -1 or c > 1)(lambda c: "Opposing (rare)" if c != c else interpret_cosine(c)),
            "NaN slips through: it is neither below −1 nor above 1. Ask the other way round, `not -1 <= c <= 1`.",
            score=4,
        ),
        Mistake(
            lambda c: interpret_cosine(c) if abs(c) <= 1 else ("Near-identical" if c > 1 else "Opposing (rare)"),
            "1.5 is no cosine, and NaN is not even a number: refuse them with `ValueError`.",
            score=4,
        ),
    ),
    hints=(
        "Ask for the highest band first, and return as soon as one fits.",
        "Every comparison with NaN is false, so `not -1 <= c <= 1` catches it along with the rest.",
    ),
    references=(
        "primer.ch02.table.band1",
        "primer.ch02.table.band2",
        "primer.ch02.table.band3",
        "primer.ch02.table.band4",
        "primer.ch02.table.band5",
        "primer.ch02.table.classify_catdog",
        "primer.ch02.table.classify_ex3",
        "primer.ch02.table.classify_ex4",
    ),
)


@each
def _sentences(rng, size, dtype=float):
    """A random batch (B, T, d) and its mask: each sentence has two real tokens at least, and padding behind."""
    B, T, d = size
    real = rng.integers(2, T, size=B)
    return rng.normal(size=(B, T, d)).astype(dtype), (np.arange(T) < real[:, None]).astype(int)


def _pooled(x, mask, by=None, total=None):
    """The right answer, or another total divided by something else; float32 kept, padding refused."""
    mask = mask.astype(x.dtype)
    if np.any(mask.sum(axis=1) == 0):
        raise ValueError("a sentence without a token")
    total = (x * mask[..., None]).sum(axis=1) if total is None else total
    return total / (mask.sum(axis=1, keepdims=True) if by is None else by)


def _nan_for_no_tokens(x, mask):
    mask = mask.astype(x.dtype)
    with np.errstate(invalid="ignore"):
        return (x * mask[..., None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)


def _zero_for_no_tokens(x, mask):
    mask = mask.astype(x.dtype)
    return (x * mask[..., None]).sum(axis=1) / np.maximum(mask.sum(axis=1, keepdims=True), 1)


def _pooled_in_place(x, mask):
    x *= mask[..., None]
    return _pooled(x, mask)


PADDED = np.array([[[2.0, 4.0], [4.0, 0.0], [9.0, 9.0]], [[1.0, 1.0], [3.0, 5.0], [5.0, 3.0]]])

REPAIR_MEAN_POOL = Item(
    id="02.similarity.repair_mean_pool",
    kind="repair",
    title="Mend it: short sentences fade",
    difficulty=2,
    minutes=10,
    source="Part II (004), sentence and document embeddings",
    answer="mean_pool",
    task="""
A sentence vector is the mean of its token vectors. The sentences of a batch have different lengths, so the shorter
ones are filled up with padding, and `mask` says which tokens are real (1) and which are padding (0). This function
leaves the padding out of the sum, and yet its sentence vectors shrink the more padding there is:

```python
def mean_pool(x, mask):
    total = (x * mask[..., None]).sum(axis=1)
    return total / x.shape[1]
```

Mend it. `x` has shape `(B, T, d)`, `mask` is an integer array of shape `(B, T)`, the result has shape `(B, d)`.

- A sentence without a single real token has no mean: refuse it with `ValueError`.
- `float32` vectors give `float32`. (An integer mask times `float32` is `float64`: look at your dtypes.)
- The inputs are left as they were.
""",
    expected=ml.similarity.mean_pool,
    checks=(
        values(
            3,
            _sentences((3, 5, 2), (4, 4, 4), (1, 6, 3)),
            public=[(PADDED, np.array([[1, 1, 0], [1, 1, 1]]))],
            name="with padding",
        ),
        values(1, lambda rng: [(rng.normal(size=(2, 4, 3)), np.ones((2, 4), int))], name="without padding"),
        keeps_dtype(1, _sentences((2, 4, 3), dtype=np.float32)),
        leaves_inputs(1, _sentences((2, 3, 2))),
        refuses(1, public=[(PADDED, np.array([[1, 0, 0], [0, 0, 0]]))], name="refuses a sentence without tokens"),
    ),
    mistakes=(
        Mistake(
            lambda x, mask: _pooled(x, mask, by=x.shape[1]),
            "Still as printed: it divides by T, padding included. Divide by the real tokens of each sentence.",
            score=2,
        ),
        Mistake(
            lambda x, mask: _pooled(x, mask, by=mask.sum(axis=1).astype(x.dtype)),
            "The counts have shape (B,) and meet the components. `keepdims=True` makes them (B, 1).",
            score=2,
        ),
        Mistake(
            lambda x, mask: _pooled(x, mask, total=x.sum(axis=1)),
            "The count leaves the padding out, the sum does not: multiply x by the mask.",
            score=2,
        ),
        Mistake(
            lambda x, mask: x.mean(axis=1), "The mask is not used: padding goes into the mean like any token.", score=1
        ),
        Mistake(
            lambda x, mask: _pooled(x, mask, by=mask.sum().astype(x.dtype)),
            "You divided by the real tokens of the whole batch. Each sentence has its own count: `mask.sum(axis=1)`.",
            score=1,
        ),
        Mistake(
            lambda x, mask: _pooled(x, mask, by=1),
            "This is the sum of the tokens; the mean divides by their number.",
            score=1,
        ),
        Mistake(
            lambda x, mask: (
                np.where(mask[..., None] > 0, x, -np.inf).max(axis=1) if mask.any(axis=1).all() else _pooled(x, mask)
            ),
            "This is max pooling: the largest value of each component. Wanted is the mean.",
            score=1,
        ),
        Mistake(
            lambda x, mask: _pooled(x.astype(float), mask),
            "Right, but float32 became float64 on the way. Bring the mask to the dtype of x: `mask.astype(x.dtype)`.",
            score=6,
        ),
        Mistake(
            _nan_for_no_tokens,
            "A sentence without tokens is answered with NaN (0/0). Refuse it with `ValueError`.",
            score=6,
        ),
        Mistake(
            _zero_for_no_tokens,
            "A sentence without tokens gets a zero vector, which has no direction. Refuse it with `ValueError`.",
            score=6,
        ),
        Mistake(
            _pooled_in_place,
            "Your function overwrites the padding in the caller's array. Write `x * mask[..., None]`.",
            score=6,
        ),
    ),
    hints=(
        "Take a sentence with two real tokens and eight of padding. By what is its sum divided? By what should it be?",
        "`mask.sum(axis=1, keepdims=True)` has shape (B, 1) and divides every sentence by its own count.",
    ),
)


def _contrast(rng):
    """Three queries and three keys with small whole components, such that each known mistake gives another loss."""
    while True:
        queries, keys = rng.integers(1, 6, size=(2, 3, 2)) * rng.choice([-1, 1], size=(2, 3, 2))
        temperature = float(rng.choice([0.25, 0.5, 2.0]))
        own = {"queries": queries.tolist(), "keys": keys.tolist(), "temperature": temperature}
        if tells_apart(OWN_INFO_NCE, own, 0.002):
            return own


def _scores(queries, keys, temperature):
    return ml.cosine_similarity_matrix(queries, keys) / temperature


def _info_nce(scores, log=np.log, total=np.mean, over=1, own=True):
    """The loss for given scores: the right one, or with another logarithm, another total or another sum below."""
    weights = np.exp(scores)
    below = weights.sum(axis=over) - (0 if own else np.diag(weights))
    return -total(log(np.diag(weights) / below))


OWN_INFO_NCE = Item(
    id="02.similarity.own_info_nce",
    kind="value",
    title="Pull together, push apart",
    difficulty=2,
    minutes=15,
    source="Part II (004), sentence and document embeddings; van den Oord et al. 2018, eq. 4",
    answer="own_loss",
    task="""
`mine.queries` and `mine.keys` hold three vectors each; query $i$ belongs to key $i$, the other two keys are its
wrong answers. With the cosines $S_{ij} = \\cos(q_i, k_j)$ and the temperature $\\tau$ = `mine.temperature` the
contrastive loss (InfoNCE) is

$$L = -\\frac{1}{3}\\sum_{i=1}^{3} \\ln \\frac{e^{S_{ii}/\\tau}}{\\sum_{j=1}^{3} e^{S_{ij}/\\tau}} .$$

Put it into `own_loss`, right to three decimals. ($e^x$ and ln are `np.exp` and `np.log`; chapter 4 says what they
are.)
""",
    numbers=_contrast,
    expected=lambda queries, keys, temperature: ml.info_nce(queries, keys, temperature=temperature),
    checks=(values(3, decimals=3),),
    mistakes=(
        Mistake(
            lambda queries, keys, temperature: ml.info_nce(queries, keys, temperature=1.0),
            "The temperature is missing: divide the cosines by τ before the exponential.",
        ),
        Mistake(
            lambda queries, keys, temperature: ml.info_nce(queries, keys, temperature=1 / temperature),
            "You multiplied by the temperature. The cosines are divided by τ.",
        ),
        Mistake(
            lambda queries, keys, temperature: 3 * ml.info_nce(queries, keys, temperature=temperature),
            "You summed the three losses. The loss is their mean.",
        ),
        Mistake(
            lambda queries, keys, temperature: ml.info_nce(queries, keys, temperature=temperature) / np.log(2),
            "You took the logarithm to base 2. Wanted is ln, `np.log`.",
        ),
        Mistake(
            lambda queries, keys, temperature: _info_nce(np.dot(queries, np.transpose(keys)) / temperature),
            "You used dot products. Divide both lengths out: the scores are cosines.",
        ),
        Mistake(
            lambda queries, keys, temperature: ml.info_nce(keys, queries, temperature=temperature),
            "Queries and keys changed places: the sum in the denominator runs over the keys of one query.",
        ),
        Mistake(
            lambda queries, keys, temperature: _info_nce(_scores(queries, keys, temperature), over=None),
            "You divided by the sum over the whole table. Each query has its own sum, over its row.",
        ),
        Mistake(
            lambda queries, keys, temperature: _info_nce(_scores(queries, keys, temperature), own=False),
            "You left the right key out of the sum. It runs over all three keys, i included.",
        ),
        Mistake(
            lambda queries, keys, temperature: _info_nce(
                _scores(queries, keys, temperature), log=lambda x: x, total=lambda x: np.log(np.mean(x))
            ),
            "You took the logarithm of the mean share. First the logarithms, then their mean.",
        ),
        Mistake(
            lambda queries, keys, temperature: -ml.info_nce(queries, keys, temperature=temperature),
            "The sign: the logarithm of a fraction is negative, and the minus in front makes the loss positive.",
        ),
    ),
    hints=(
        "First the 3 × 3 table of cosines: rows are queries, columns are keys.",
        "Divide it by τ, take `np.exp`, and divide each row by its sum. Which entries does the loss look at?",
        "The mean of −ln over the diagonal.",
    ),
)


# Derivation and proof -----------------------------------------------------------------------------------------------


@each
def _with_slope(rng, d):
    """Two random vectors, and a gradient for their cosine."""
    return rng.normal(size=d), rng.normal(size=d), float(rng.normal())


def _cosine_slopes(a, b, dy):
    return ml.vjp(ml.cosine_similarity, a, b)[1](dy)


def _turns_only(expected, case, observation):
    """Stretching a or b does not change the cosine: neither gradient has a part along its own vector."""
    if observation.error:
        return f"raised {observation.error[0]}: {observation.message}"
    pair = numeric(observation.value)
    if pair is None or pair.shape != (2, len(case[0])) or not np.all(np.isfinite(pair)):
        return f"expected two finite gradients of shape ({len(case[0])},), got {show(observation.value)}"
    for name, x, dx in zip("ab", case[:2], pair, strict=True):
        if not np.any(dx):
            return f"d{name} is zero everywhere"
        if abs(np.sum(dx * x)) > 1e-9 * ml.norm(dx) * ml.norm(x):
            return f"d{name} has a part along {name}, but stretching {name} does not change the cosine"
    return None


def _both_ways(slope):
    """A wrong rule for one vector, used for both: slope(x, other, unit x, unit other, cosine)."""

    def pullback(a, b, dy):
        u, v, cosine = ml.normalize(a), ml.normalize(b), ml.cosine_similarity(a, b)
        return dy * slope(a, b, u, v, cosine), dy * slope(b, a, v, u, cosine)

    return pullback


COSINE_PULLBACK = Item(
    id="02.similarity.cosine_pullback",
    kind="gradient",
    title="The gradient of a cosine",
    difficulty=3,
    minutes=25,
    source="ours; Foundations (001), section 1.1.1",
    answer="cosine_pullback",
    masked=("vjp", "grad", "value_and_grad"),
    task="""
Let $y = \\cos\\theta = a\\cdot b / (\\lVert a\\rVert\\,\\lVert b\\rVert)$ for two vectors of shape `(d,)`. Derive
$\\partial y/\\partial a_i$ by the quotient rule; you know the gradient of the norm from chapter 1. Bring it into a
form that contains the cosine itself.

Then write `cosine_pullback(a, b, dy)`, which returns two gradients, `da` and `db`, as a tuple:
$da_i = dy\\cdot\\partial y/\\partial a_i$, and likewise for $b$. Neither vector is zero; the inputs are left as
they were.
""",
    expected=_cosine_slopes,
    checks=(
        gradient(
            3, ml.cosine_similarity, _with_slope(2, 3, 8), public=[(CAT, DOG, 1.0), (KING, QUEEN, -2.0)], wrt=(0, 1)
        ),
        Check("no part along the vectors themselves", 1, _with_slope(3, 5), _turns_only),
        leaves_inputs(1, _with_slope(4)),
    ),
    mistakes=(
        Mistake(
            _both_ways(lambda x, other, u, v, cosine: other / (ml.norm(x) * ml.norm(other))),
            "You treated the lengths as constants. Moving a changes ‖a‖ as well: the term with the cosine is missing.",
        ),
        Mistake(
            _both_ways(lambda x, other, u, v, cosine: v - cosine * u),
            "The division by the vector's own length is missing: the longer a is, the harder it is to turn.",
            score=1,
        ),
        Mistake(
            _both_ways(lambda x, other, u, v, cosine: (v + cosine * u) / ml.norm(x)),
            "A sign: the quotient rule takes the part along a away.",
        ),
        Mistake(
            _both_ways(lambda x, other, u, v, cosine: (other - cosine * x) / ml.norm(x)),
            "Inside the bracket stand unit vectors: b/‖b‖ − cos θ · a/‖a‖.",
        ),
        Mistake(lambda a, b, dy: _cosine_slopes(a, b, dy)[::-1], "da and db have changed places."),
        Mistake(
            _both_ways(lambda x, other, u, v, cosine: (cosine * u - v) / ml.norm(x)),
            "All signs are turned: towards b comes first, and the part along a is taken away.",
            score=1,
        ),
        Mistake(
            _both_ways(lambda x, other, u, v, cosine: (v - cosine * u) / ml.norm(other)),
            "da is divided by the length of a, not of b: the longer a is, the harder *it* is to turn.",
            score=1,
        ),
        Mistake(
            _both_ways(lambda x, other, u, v, cosine: v / ml.norm(x) - cosine * u),
            "Only the first term was divided by the vector's own length: put brackets round the difference.",
        ),
        Mistake(
            _both_ways(lambda x, other, u, v, cosine: (v - u) / ml.norm(x)),
            "The cosine is missing before the second term: only the part of b's direction along a is taken away.",
        ),
        Mistake(
            lambda a, b, dy: (_cosine_slopes(a, b, dy)[0],) * 2,
            "da is right. For db the two vectors exchange their parts: it is not the same array.",
        ),
        Mistake(
            lambda a, b, dy: _cosine_slopes(a, b, 1.0),
            "The slopes are right, but they must be multiplied by `dy`.",
            score=1,
        ),
    ),
    hints=(
        "Quotient rule: numerator a·b has gradient b, denominator ‖a‖‖b‖ has gradient ‖b‖ a/‖a‖.",
        "∂y/∂a = b/(‖a‖‖b‖) − (a·b) a/(‖a‖³‖b‖). Where in the second term is the cosine?",
        "Take the factor 1/‖a‖ out: inside the bracket two unit vectors are left, one of them times the cosine.",
    ),
)

UNIT_DISTANCE = Item(
    id="02.similarity.unit_distance",
    kind="text",
    title="Nearest or most alike?",
    difficulty=2,
    minutes=15,
    source="ours; Foundations (001), sections 1.1.1 and 1.4",
    task="""
Many vector databases normalise all vectors once and then search by distance, although what is wanted is the largest
cosine. Prove that this is sound.

1. Show that $\\lVert a - b\\rVert^2 = 2 - 2\\cos\\theta$ for vectors of length one.
2. Conclude that, for unit vectors, ranking by distance (smallest first) and ranking by cosine (largest first) give
   the same order.
3. Give an example in the plane which shows that without unit length the two rankings can differ.
""",
    rubric=(
        (2, "Expands (a − b)·(a − b) and uses a·a = b·b = 1 and a·b = cos θ, with a reason for each step."),
        (
            1,
            "Argues that 2 − 2c falls as c grows, and that squaring keeps the order of what is not negative.",
        ),
        (1, "Gives three vectors with numbers, and shows that one is nearer while the other has the larger cosine."),
    ),
    hints=(
        "‖v‖² = v·v, and the dot product multiplies out like a product of sums.",
        "For the example take the query (1, 0), a long vector in its direction, and a short one at an angle.",
    ),
)


# Project ------------------------------------------------------------------------------------------------------------


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


def _analogy_in_place(table, a, b, c):
    answer = _analogy(table, a, b, c)
    table /= ml.norm(table)[:, None]
    return answer


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
        rng, lambda *case: _fair(*case) and _analogy(*case) not in [rule(*case) for rule in MISLED], (0.1, 1, 10)
    )


def _traps(rng):
    """A word of the question itself would win."""
    return _worlds(rng, lambda *case: not _fair(*case))


# man, woman, king, queen of the toy space of 004 (two components for gender, one for royalty), and three distractors
TOY = np.array([[1, 0, 0], [0, 1, 0], [1, 0, 1], [0, 1, 1], [0.5, 0.5, 0], [0, 0, 1], [-1, 0, 0]], float)

ANALOGY = Item(
    id="02.similarity.analogy",
    kind="function",
    title="Man is to king as woman is to …",
    difficulty=3,
    minutes=30,
    source="Part II (004), word arithmetic; Foundations (001), section 6.1",
    answer="analogy",
    task="""
Write `analogy(table, a, b, c)`. `table` holds one word vector per row, `(V, d)`; `a`, `b` and `c` are three row
indices. The question is *a is to b as c is to which word?*, and the answer is the index of the row whose vector has
the largest **cosine** with $v_b - v_a + v_c$.

- The three words of the question are never the answer: leave them out. (Without that rule the winner is nearly
  always b or c, a fact that is easily forgotten when analogies are praised.)
- Rows differ in length; no row is zero. The table is left as it was.

In the toy space of the tests (rows *man*, *woman*, *king*, *queen* and three more), man is to king as woman is to
queen. With GloVe (`words = glove.load()`, then `words.vectors` and `words.row("king")`) it is the same. Man is to
brother as woman is to what? Predict, then look.
""",
    expected=_analogy,
    checks=(
        values(3, _plain, public=[(TOY, 0, 2, 1), (TOY, 2, 0, 3), (TOY, 0, 1, 2)], name="finds the word"),
        values(2, _unequal, name="lengths do not count"),
        values(1, _traps, public=[(TOY, 5, 3, 1)], name="leaves the question's words out"),
        leaves_inputs(1, _unequal),
    ),
    mistakes=(
        Mistake(
            _with_the_question,
            "A word of the question came back as the answer. Leave a, b and c out of the search.",
            score=6,
        ),
        Mistake(_by_dot, "You ranked by the dot product, which favours long vectors. Divide the lengths out.", score=4),
        Mistake(
            _by_distance,
            "You ranked by distance. Wanted is the largest cosine; the two agree for unit vectors only.",
            score=4,
        ),
        Mistake(
            _by_directions,
            "You scaled all words to length one before adding. Add them as they are; the cosine comes after.",
            score=4,
        ),
        Mistake(
            lambda table, a, b, c: _largest(ml.cosine_similarity(table, _target(table, a, b, c)), c),
            "You left out one word of the question. All three have to go: a and b, too.",
            score=6,
        ),
        Mistake(
            lambda table, a, b, c: int(
                np.argmax(np.delete(ml.cosine_similarity(table, _target(table, a, b, c)), [a, b, c]))
            ),
            "Deleting three entries moves all later ones up, so that the indices no longer fit. Set them to −∞.",
        ),
        Mistake(lambda table, a, b, c: _analogy(table, a, b, c) + 1, "You counted the rows from one. They begin at 0."),
        Mistake(_analogy_reversed, "You computed a − b + c. From a to b is b − a; add that to c."),
        Mistake(
            lambda table, a, b, c: _largest(-ml.cosine_similarity(table, _target(table, a, b, c)), a, b, c),
            "This is the word with the smallest cosine: `argmax`, not `argmin`.",
        ),
        Mistake(_by_the_relation, "You searched near b − a. That is the relation alone; add it to c."),
        Mistake(_analogy_in_place, "Your function normalises the caller's table. Work on a new array.", score=6),
    ),
    hints=(
        "The target is one vector of shape (d,). One product, `table @ target`, and the lengths give all V cosines.",
        "Set the scores of the three words to `-np.inf` before you look for the largest.",
        "The length of the target is the same for every row, so it does not change who wins.",
    ),
    references=("part2.words.analogy",),
)


# Check yourself (in the chapter, not graded) ------------------------------------------------------------------------

QUICK = [
    Item(
        id="02.similarity.quick_dot",
        kind="value",
        title="One negative component",
        difficulty=1,
        minutes=1,
        source="after the primer (003), chapter II, figure 2",
        graded=False,
        answer="product",
        task="What is the dot product of [1, −2, 3] and [4, 1, 2]?",
        expected=lambda: ml.dot([1, -2, 3], [4, 1, 2]),
        checks=(values(1),),
        mistakes=(
            Mistake(lambda: 12, "The second product is negative: (−2)·1 = −2."),
            Mistake(lambda: [4, -2, 6], "These are the three products; add them up."),
            Mistake(lambda: 14, "You multiplied the sums, 2 · 7. Multiply in pairs, then add."),
        ),
    ),
    Item(
        id="02.similarity.quick_scaling",
        kind="value",
        title="Stretched and turned round",
        difficulty=1,
        minutes=1,
        source="after the primer (003), chapter II, figure 3",
        graded=False,
        answer="cosine",
        task="The cosine of a and b is 0.6. What is the cosine of −2a and 3b?",
        expected=lambda: ml.cosine_similarity([-2, 0], [1.8, 2.4]),
        checks=(values(1),),
        mistakes=(
            Mistake(lambda: -3.6, "A cosine is never below −1. Stretching cancels; only turning round counts."),
            Mistake(lambda: 3.6, "A cosine is never above 1. Stretching cancels, and the minus sign turns a round."),
            Mistake(lambda: 0.6, "Stretching does nothing, but the minus sign turns a round."),
        ),
    ),
    Item(
        id="02.similarity.quick_edge",
        kind="value",
        title="On the edge",
        difficulty=1,
        minutes=1,
        source="The primer (003), chapter II, reference table",
        graded=False,
        answer="label",
        task="Which label does a cosine of exactly 0.70 get?",
        expected=lambda: interpret_cosine(0.70),
        checks=(values(1),),
        mistakes=(
            Mistake(
                lambda: "Some relationship", "The table prints 0.70 in two bands; we give an edge to the upper one."
            ),
            Mistake(lambda: "Near-identical", "That band begins at 0.90."),
        ),
    ),
    Item(
        id="02.similarity.quick_analogy",
        kind="value",
        title="Word arithmetic",
        difficulty=1,
        minutes=1,
        source="Part II (004), word arithmetic",
        graded=False,
        answer="vector",
        task="man = [1, 0, 0], woman = [0, 1, 0], king = [1, 0, 1]. Which vector is king − man + woman?",
        expected=lambda: TOY[2] - TOY[0] + TOY[1],
        checks=(values(1),),
        mistakes=(
            Mistake(lambda: [2, -1, 1], "This is king + man − woman: take man away and add woman."),
            Mistake(lambda: [2, 1, 1], "You added all three. Man is taken away."),
            Mistake(lambda: [0, 0, 1], "This is king − man. Woman is still to be added."),
        ),
    ),
    Item(
        id="02.similarity.quick_pool",
        kind="value",
        title="Two words and some padding",
        difficulty=1,
        minutes=1,
        source="Part II (004), sentence and document embeddings",
        graded=False,
        answer="sentence",
        task="Of the token vectors [2, 4], [4, 0], [9, 9] the third is padding. What is their mean-pooled vector?",
        expected=lambda: ml.similarity.mean_pool(PADDED[0], np.array([1, 1, 0])),
        checks=(values(1),),
        mistakes=(
            Mistake(lambda: [5, 13 / 3], "The padding went into the mean. Only two of the tokens are real."),
            Mistake(
                lambda: [2, 4 / 3], "Padding is left out of the sum, but you divided by three. Two tokens are real."
            ),
            Mistake(lambda: [6, 4], "This is the sum. Divide by the two real tokens."),
        ),
    ),
]

ITEMS = [
    DOT_BY_HAND,
    COSINE_BY_HAND,
    OWN_RIGHT_ANGLE,
    ZERO_COSINE,
    KING_QUEEN_BAND,
    COSINE_SIMILARITY,
    INTERPRET_COSINE,
    REPAIR_MEAN_POOL,
    OWN_INFO_NCE,
    COSINE_PULLBACK,
    UNIT_DISTANCE,
    ANALOGY,
    *QUICK,
]
