"""Chapter 04, exponentials and logarithms: rules by hand, sums in log space, what underflows and what overflows."""

import numpy as np

import mathllm as ml

from ..cases import each, normals
from ..compare import numeric
from ..item import Check, Item, Mistake, gradient, keeps_dtype, leaves_inputs, values

# Warm-up ------------------------------------------------------------------------------------------------------------

THREE_POWERS = Item(
    id="04.exponentials.three_powers",
    kind="value",
    title="Above one, below one",
    difficulty=1,
    minutes=3,
    source="The primer (003), chapter IV, exercise 8",
    answer="three_powers",
    task="""
Compute $e^0$, $e^1$ and $e^{-1}$. Put the three numbers, right to three decimals and **from the smallest to the
largest**, into the list `three_powers`.
""",
    expected=lambda: sorted(ml.exp([0.0, 1.0, -1.0])),
    checks=(values(2, decimals=3),),
    mistakes=(
        Mistake(lambda: [1.0, 2.718, 0.368], "The values are right. Sort them: the smallest first."),
        Mistake(lambda: [-2.718, 1.0, 2.718], "e⁻¹ is not −e but 1/e: the exponential is never negative."),
        Mistake(lambda: [-0.368, 1.0, 2.718], "e⁻¹ is 1/e: the exponential is never negative."),
        Mistake(lambda: [0.0, 0.368, 2.718], "e⁰ is 1, not 0."),
        Mistake(lambda: [2.718, 1.0, 0.368], "The other way round: the smallest first."),
    ),
    hints=("e⁻¹ · e¹ = e⁰ = 1.", "e ≈ 2.718, so e⁻¹ = 1/2.718."),
    references=("primer.ch04.q8.values", "primer.ch04.q8.largest", "primer.ch04.q8.smallest"),
)

SOLVE_LOG = Item(
    id="04.exponentials.solve_log",
    kind="value",
    title="Undo the logarithm",
    difficulty=1,
    minutes=3,
    source="The primer (003), chapter IV, exercise 9",
    answer="x",
    task="""
Solve $\\ln(x) = 3$, and put $x$, right to two decimals, into `x`.
""",
    expected=lambda: ml.exp(3.0),
    checks=(values(1, decimals=2),),
    mistakes=(
        Mistake(lambda: np.log(3), "This is ln 3. The equation asks which x has the logarithm 3."),
        Mistake(lambda: 1000, "That is 10³: the base is e, not 10."),
        Mistake(lambda: 8, "That is 2³: the base is e, not 2."),
        Mistake(lambda: "e**3", "Without quotes Python works it out: `np.exp(3)`."),
        Mistake(lambda: 3 * np.e, "You multiplied e by 3. Wanted is its third power."),
    ),
    hints=("What undoes ln?", "e ≈ 2.718, three times as a factor."),
    references=("primer.ch04.q9.x",),
)

SUM_OF_LOGS = Item(
    id="04.exponentials.sum_of_logs",
    kind="value",
    title="Two ways to eight",
    difficulty=1,
    minutes=4,
    source="The primer (003), chapter IV, exercise 10",
    answer="parts_and_sum",
    task="""
Find $\\ln(e^5\\cdot e^3)$ without a calculator, by the rule for products. Give three numbers in a list,
`parts_and_sum`: the two logarithms that are added, then their sum.
""",
    expected=lambda: [*ml.exponentials.log(ml.exp([5.0, 3.0])), ml.exponentials.log_product(ml.exp([5.0, 3.0]))],
    checks=(values(2),),
    mistakes=(
        Mistake(lambda: 8, "The sum is right. Three numbers were asked for: its two parts come first."),
        Mistake(lambda: [5, 3, 15], "The logarithms are added, not multiplied."),
        Mistake(lambda: [5, 3, np.exp(8)], "That is the product itself, e⁸. Its logarithm is asked for: 5 + 3."),
        Mistake(lambda: [5, 3], "These are the parts. A third number was asked for: their sum."),
        Mistake(
            lambda: [np.e**5, np.e**3, np.e**8],
            "These are the exponentials. The logarithm undoes them: ln(e⁵) = 5.",
        ),
        Mistake(lambda: [5, 3, 2], "You subtracted, which belongs to a quotient. A product adds."),
    ),
    hints=("ln(ab) = ln a + ln b.", "ln(e⁵) is 5, since ln undoes exp."),
    references=("primer.ch04.q10.parts", "primer.ch04.q10.sum"),
)


# Core ---------------------------------------------------------------------------------------------------------------

THREE_TOKENS = Item(
    id="04.exponentials.three_tokens",
    kind="value",
    title="Three tokens, both ways",
    difficulty=1,
    minutes=5,
    source="The primer (003), chapter IV, example 4",
    answer="product_and_log",
    task="""
A model gives three tokens in a row the probabilities 0.8, 0.6 and 0.9. Give five numbers in a list,
`product_and_log`, right to three decimals: the product, the three logarithms, and their sum.
""",
    expected=lambda: [0.432, *ml.exponentials.log([0.8, 0.6, 0.9]), ml.exponentials.log_product([0.8, 0.6, 0.9])],
    checks=(values(2, decimals=3),),
    mistakes=(
        Mistake(
            lambda: [0.432, *np.log2([0.8, 0.6, 0.9]), np.log2(0.432)],
            "These are logarithms to base 2. Wanted is ln, `np.log`.",
        ),
        Mistake(
            lambda: [0.432, *np.log10([0.8, 0.6, 0.9]), np.log10(0.432)],
            "These are logarithms to base 10. Wanted is ln, `np.log`.",
        ),
        Mistake(
            lambda: [0.432, *-np.log([0.8, 0.6, 0.9]), -np.log(0.432)],
            "The sign: the logarithm of a number below one is negative.",
        ),
        Mistake(
            lambda: [0.432, *np.log([0.8, 0.6, 0.9]), np.prod(np.log([0.8, 0.6, 0.9]))],
            "You multiplied the logarithms. They are added: that is their use.",
        ),
        Mistake(
            lambda: [0.432, np.log(0.432)], "Product and sum are right. Between them the three logarithms are wanted."
        ),
        Mistake(
            lambda: [2.3, *np.log([0.8, 0.6, 0.9]), np.log(0.432)],
            "You added the probabilities. That all three happen is their product.",
        ),
    ),
    hints=("ln of a number below one is negative.", "Check: e to the sum must give the product back."),
    references=("primer.ch04.ex4.product", "primer.ch04.ex4.logs", "primer.ch04.ex4.logsum"),
)


def _two_stories(rng):
    """Two log-probabilities so low that both exponentials are zero in float64."""
    first = -int(rng.integers(760, 2000))
    return {"first": first, "second": first - float(rng.integers(2, 30)) / 10}


OWN_TWO_STORIES = Item(
    id="04.exponentials.own_two_stories",
    kind="value",
    title="One ending or the other",
    difficulty=2,
    minutes=7,
    source="ours; Foundations (001), section 2.1.1",
    answer="either",
    task="""
Two endings of a story have the log-probabilities `mine.first` and `mine.second`. Both are so unlikely that `np.exp` of
either is 0. What is the **logarithm** of the probability that one of the two is told? Put it into `either`, right to
three decimals.
""",
    numbers=_two_stories,
    expected=lambda first, second: ml.exponentials.log_add_exp(float(first), float(second)),
    checks=(values(2, decimals=3),),
    mistakes=(
        Mistake(
            lambda first, second: first + second,
            "Adding logarithms multiplies: this is the logarithm of *both*. One or the other is a sum.",
        ),
        Mistake(
            lambda first, second: float("-inf"),
            "This is what `np.log(np.exp(a) + np.exp(b))` gives: both terms were rounded to zero. Pull the larger out.",
        ),
        Mistake(
            lambda first, second: float(first),
            "The larger alone is nearly right. What the other adds is ln(1 + e^(second − first)).",
        ),
        Mistake(
            lambda first, second: first + np.exp(second - first),
            "Nearly: the other one adds ln(1 + u) with u = e^(second − first), not u itself.",
        ),
        Mistake(
            lambda first, second: second + np.log1p(np.exp(second - first)),
            "You pulled the smaller one out, but left the difference as it was. Pull out the larger.",
        ),
        Mistake(
            lambda first, second: first + np.log1p(np.exp(first - second)),
            "The difference in the exponent is turned round: second − first, which is below zero.",
        ),
        Mistake(
            lambda first, second: np.log1p(np.exp(second - first)),
            "Something is still missing: what you pulled out has to be added again.",
        ),
        Mistake(
            lambda first, second: first + np.log(2),
            "That holds for two equal probabilities. The second is smaller by a factor of its own.",
        ),
        Mistake(
            lambda first, second: (first + second) / 2,
            "This is the mean of the logarithms. A sum of probabilities is larger than each of them.",
        ),
    ),
    hints=("ln(eᵃ + eᵇ) = a + ln(1 + e^(b − a)).", "Only the difference of the two goes into an exponential."),
    references=("primer.ch04.text.exp_sum",),
)


def _dtype_and_probability(rng):
    return {"probability": float(rng.choice([0.05, 0.08, 0.12, 0.15, 0.2, 0.3, 0.4])), "bits": 32}


SMALLEST = {64: -1075, 32: -150, 16: -25}  # below 2 to this power a product is rounded to zero


def _last_positive(probability, bits=32):
    """How many factors until the true product falls below half of the smallest number."""
    return int(np.floor(SMALLEST[bits] * np.log(2) / np.log(probability)))


OWN_LIMIT = Item(
    id="04.exponentials.own_limit",
    kind="value",
    title="How many tokens does float32 stand?",
    difficulty=2,
    minutes=8,
    source="after the primer (003), chapter IV",
    answer="tokens",
    task="""
Every token of a text has the probability `mine.probability`. In float32 a number is rounded to 0 when it falls below
$2^{-150}$, half of the smallest float32. What is the largest number of tokens whose **exact** product is still above
that? Put it into `tokens`. (Solve it with logarithms. A loop in float32 rounds at every step and may be one off.)
""",
    numbers=_dtype_and_probability,
    expected=_last_positive,
    checks=(values(2),),
    mistakes=(
        Mistake(
            lambda probability, bits: _last_positive(probability) + 1,
            "One more, and the product is below the limit: round down.",
        ),
        Mistake(
            lambda probability, bits: -150 * np.log(2) / np.log(probability),
            "That is where the limit lies. The largest *whole* number below it is asked for.",
        ),
        Mistake(
            lambda probability, bits: -_last_positive(probability),
            "A sign: both logarithms are negative, so their quotient is positive.",
        ),
        Mistake(
            lambda probability, bits: _last_positive(probability, 64),
            "This is the limit of float64, 2⁻¹⁰⁷⁵. Asked for is float32.",
        ),
        Mistake(
            lambda probability, bits: int(np.floor(-150 / np.log(probability))),
            "You mixed bases: the limit is a power of 2, your logarithm is natural. ln 2⁻¹⁵⁰ = −150 · ln 2.",
        ),
        Mistake(
            lambda probability, bits: int(np.floor(-127 * np.log(2) / np.log(probability))),
            "Below 2⁻¹²⁶ float32 goes on with fewer digits (subnormal numbers), down to 2⁻¹⁵⁰.",
        ),
    ),
    hints=("pⁿ > 2⁻¹⁵⁰. Take logarithms of both sides.", "Dividing by ln p, which is negative, turns the sign round."),
    references=("primer.ch04.text.log_prod",),
)


def _lse(x, shift, axis=-1):
    """log-sum-exp with a given shift, of shape (..., 1) for the last axis."""
    with np.errstate(all="ignore"):
        return np.log(np.exp(x - shift).sum(axis=axis)) + (shift[..., 0] if axis == -1 else shift)


def _in_place(x):
    y = ml.log_sum_exp(x)
    x -= x.max(axis=-1, keepdims=True)
    return y


LOG_SUM_EXP = Item(
    id="04.exponentials.log_sum_exp",
    kind="function",
    title="The sum that never leaves the logarithms",
    difficulty=2,
    minutes=15,
    source="Foundations (001), section 2.1.1",
    answer="log_sum_exp",
    masked=("log_sum_exp", "log_add_exp", "softmax", "log_softmax", "cross_entropy"),
    task="""
Write `log_sum_exp(x)` along the last axis,

$$\\ln\\sum_i e^{x_i} ,$$

so that it survives any finite numbers: shape `(..., n)` goes to `(...)`.

- Numbers like 5000 or −5000 are no reason for `inf` or `-inf`.
- $-\\infty$ is an empty summand and counts nothing; if **all** are $-\\infty$, so is the result (and not NaN).
- `float32` stays `float32`, and the input is left as it was.
""",
    expected=ml.log_sum_exp,
    checks=(
        values(1, normals(3, 8), public=[(np.array([0.0, 0.0]),), (np.log([0.2, 0.3]),)], name="one list"),
        values(
            2,
            normals(6, scale=10.0, centre=3000.0),
            public=[(np.array([1000.0, 1000.0]),), (np.array([5000.0, -5000.0]),)],
            name="does not overflow",
        ),
        values(
            2,
            normals(6, scale=10.0, centre=-3000.0),
            public=[(np.array([-1000.0, -1001.0]),)],
            name="does not underflow",
        ),
        values(
            1,
            normals((4, 5), (3, 3), (2, 3, 4)),
            public=[(np.array([[-1000.0, -1001.0], [1000.0, 999.0]]),)],
            name="batch axes",
        ),
        values(1, public=[(np.array([-np.inf, 0.0, np.log(2)]),)], name="empty summands"),
        values(1, public=[(np.full(3, -np.inf),)], name="nothing but empty summands"),
        keeps_dtype(1, normals(6, dtype=np.float32)),
        leaves_inputs(1, normals(4)),
    ),
    mistakes=(
        Mistake(
            lambda x: _lse(x, np.zeros((*x.shape[:-1], 1), x.dtype)),
            "This is the formula as it stands: e to 3000 is inf. Pull the largest out of the sum first.",
            score=5,
        ),
        Mistake(
            lambda x: _lse(x, x.max(axis=-1, keepdims=True)),
            "Nearly. If all are −∞, so is the largest, and −∞ − (−∞) is NaN. Shift by 0 there.",
            score=9,
        ),
        Mistake(
            lambda x: _lse(x, x.max(axis=-1, keepdims=True)) - x.max(axis=-1),
            "You shifted and did not shift back: add the largest at the end.",
        ),
        Mistake(
            lambda x: _lse(x, np.where(np.isfinite(x.max()), x.max(), 0) * np.ones((*x.shape[:-1], 1), x.dtype)),
            "The largest of the whole array was pulled out. Each row has its own: `max(axis=-1, keepdims=True)`.",
            score=9,
        ),
        Mistake(
            lambda x: _lse(x, x.max(), axis=None),
            "Everything went into one sum. Sum along the last axis only: `axis=-1`.",
            score=8,
        ),
        Mistake(
            lambda x: _lse(x, x.max(axis=0), axis=0),
            "You worked along the first axis. The terms of a sum lie along the last: `axis=-1`.",
            score=8,
        ),
        Mistake(
            lambda x: _lse(x, x.mean(axis=-1, keepdims=True)),
            "You pulled out the mean: the terms above it can still overflow. Only the largest makes all of them safe.",
            score=6,
        ),
        Mistake(
            lambda x: _lse(x, x.max(axis=-1, keepdims=True)) - np.log(x.shape[-1]),
            "This is the logarithm of the *mean* of the exponentials. Take their sum.",
        ),
        Mistake(
            lambda x: ml.log_sum_exp(x) / np.log(2),
            "You took the logarithm to base 2. Wanted is ln, `np.log`.",
            score=1,
        ),
        Mistake(
            lambda x: ml.log_sum_exp(x)[..., None],
            "The summed axis is still there, with size one. Keep it for the subtraction, drop it in the result.",
        ),
        Mistake(
            lambda x: x.max(axis=-1),
            "This is the maximum itself. ln of the sum of e^(x − max) is missing.",
            score=1,
        ),
        Mistake(
            lambda x: ml.log_sum_exp(x.astype(float)),
            "float32 became float64 on the way.",
            score=9,
        ),
        Mistake(_in_place, "Your function shifts the caller's array. Work on a new one.", score=9),
    ),
    hints=(
        "`m = x.max(axis=-1, keepdims=True)`, then everything with x − m.",
        "The shift cancels whatever it is; where m is −∞ use 0 in its place.",
        "`np.log(0)` warns and gives −∞, which is right here: `with np.errstate(divide='ignore')`.",
    ),
)


def _broken_softplus(x):
    with np.errstate(over="ignore"):
        return np.log(1 + np.exp(x))


def _log1p_only(x):
    with np.errstate(over="ignore"):
        return np.log1p(np.exp(x))


REPAIR_SOFTPLUS = Item(
    id="04.exponentials.repair_softplus",
    kind="repair",
    title="Mend it: a ramp that ends at 709",
    difficulty=2,
    minutes=10,
    source="Foundations (001), section 2.1.1; Mächler 2012, eq. 10",
    answer="softplus",
    masked=("softplus", "log_sigmoid", "log_add_exp", "log_sum_exp"),
    task="""
This function is printed in many places, and is wrong at both ends:

```python
def softplus(x):
    return np.log(1 + np.exp(x))
```

Above 709 it is infinite, where $\\ln(1+e^x)$ is practically $x$. Below −37 it is 0, where $\\ln(1+e^x)$ is practically
$e^x$: small, but not 0, and its logarithm is needed. Mend both, for arrays of any shape, to nine digits everywhere.
(`np.logaddexp` is allowed; `np.log1p` is more instructive.) `float32` stays `float32`.
""",
    expected=ml.exponentials.softplus,
    checks=(
        values(1, normals(6, (2, 3), scale=3.0), public=[(np.array([-1.0, 0.0, 1.0]),)], name="in the middle"),
        values(2, normals(5, scale=50.0, centre=2000.0), public=[(np.array([710.0, 1e5]),)], name="far above zero"),
        values(
            2,
            normals(5, scale=30.0, centre=-300.0),
            public=[(np.array([-40.0, -100.0]),)],
            name="far below zero",
            atol=0.0,
        ),
        keeps_dtype(1, normals(6, dtype=np.float32)),
    ),
    mistakes=(
        Mistake(_broken_softplus, "Still as printed: above 709 the exponential is infinite.", score=2),
        Mistake(
            lambda x: np.where(x > 30, x, _broken_softplus(np.minimum(x, 30))).astype(x.dtype),
            "The upper end is mended. Below −37, 1 + eˣ is rounded to 1: use `np.log1p`.",
            score=4,
        ),
        Mistake(
            _log1p_only,
            "The lower end is mended. Above 709 the exponential is still infinite: there the result is x.",
            score=4,
        ),
        Mistake(
            lambda x: np.where(x > 0, x, _log1p_only(np.minimum(x, 0))).astype(x.dtype),
            "The cut at 0 is too early: at 1, softplus is 1.313. ln(1 + eˣ) is x, to nine digits, only above 21.",
            score=4,
        ),
        Mistake(
            lambda x: _log1p_only(x) if x < 30 else x,
            "`if` asks one question of a whole array. Let every entry decide for itself: `np.where` or `np.maximum`.",
        ),
        Mistake(
            lambda x: np.logaddexp(0.0, x.astype(float)),
            "Right, but float32 became float64 on the way.",
            score=5,
        ),
        Mistake(
            lambda x: np.log1p(np.exp(np.minimum(x, 700))).astype(x.dtype),
            "The exponent is cut off at 700, and so is the ramp. Above, the result is x.",
            score=4,
        ),
        Mistake(
            lambda x: np.maximum(x, 0),
            "This is the ReLU. At 0 softplus is ln 2, and below 0 it is not quite zero.",
            score=2,
        ),
    ),
    hints=("ln(1 + eˣ) = x + ln(1 + e⁻ˣ).", "max(x, 0) + log1p(e^−|x|): no exponent is above zero."),
)


@each
def _with_pull(rng, shape, scale=1.0, centre=0.0):
    return (
        centre + scale * rng.normal(size=shape),
        np.float64(rng.normal(size=shape[:-1])),
    )


def _shares(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def _slopes(x, dy):
    return np.asarray(dy)[..., None] * _shares(x)


def _plain_slopes(x, dy):
    with np.errstate(all="ignore"):
        e = np.exp(x)
        return np.asarray(dy)[..., None] * e / e.sum(axis=-1, keepdims=True)


def _rows_add_up(expected, case, observation):
    """All terms pushed up by one push the result up by one: the slopes of a row add up to dy."""
    if observation.error:
        return f"raised {observation.error[0]}: {observation.message}"
    got = numeric(observation.value)
    if got is None or got.shape != case[0].shape or not np.all(np.isfinite(got)):
        return "expected finite slopes in the shape of x"
    if np.abs(got.sum(axis=-1) - case[1]).max() > 1e-9:
        return "the slopes of a row must add up to dy: adding h to every term adds h to the result"
    return None


LOG_SUM_EXP_PULLBACK = Item(
    id="04.exponentials.log_sum_exp_pullback",
    kind="gradient",
    title="Slopes that are shares",
    difficulty=2,
    minutes=15,
    source="ours; Foundations (001), section 2.1.1",
    answer="log_sum_exp_pullback",
    masked=("log_sum_exp", "softmax", "log_softmax", "vjp", "grad", "value_and_grad"),
    task="""
Let $y = \\ln\\sum_i e^{x_i}$ along the last axis. Nudge one $x_i$ and find $\\partial y/\\partial x_i$.

Then write `log_sum_exp_pullback(x, dy)`: `x` has shape `(..., n)`, `dy` the shape of the result, `(...)`; return
`dx` in the shape of `x`. It must work for numbers near ±3000 as well. The inputs are left as they were.
""",
    expected=_slopes,
    checks=(
        gradient(2, ml.log_sum_exp, _with_pull((4,)), public=[(np.log([0.2, 0.3, 0.5]), np.float64(1))]),
        gradient(1, ml.log_sum_exp, _with_pull((2, 3), (3, 3), (2, 3, 2)), name="batch axes"),
        values(
            2,
            _with_pull((4,), scale=2.0, centre=3000.0),
            public=[(np.array([-1000.0, -1001.0]), np.float64(1))],
            name="does not overflow",
        ),
        Check("slopes add up", 1, _with_pull((5,), (2,)), _rows_add_up),
        leaves_inputs(1, _with_pull((3,))),
    ),
    mistakes=(
        Mistake(
            _plain_slopes,
            "The shares are right, but e to 3000 is inf. Subtract the largest first; it cancels.",
            score=5,
        ),
        Mistake(
            lambda x, dy: dy * _shares(x),
            "One dy for each row has shape (...) and meets the components. `dy[..., None]` meets the rows.",
            score=6,
        ),
        Mistake(
            lambda x, dy: np.asarray(dy)[..., None] * np.exp(x - x.max()) / np.exp(x - x.max()).sum(),
            "The sum ran over the whole array. Each row has its own: `axis=-1, keepdims=True`.",
            score=6,
        ),
        Mistake(
            lambda x, dy: np.asarray(dy)[..., None] * _shares(x) * (1 - _shares(x)),
            "p(1 − p) is the slope of a *share*. Asked for is the slope of the log-sum-exp, which is the share.",
        ),
        Mistake(
            lambda x, dy: -_slopes(x, dy),
            "A sign: a larger term makes the sum larger, and its logarithm, too.",
        ),
        Mistake(
            lambda x, dy: np.asarray(dy)[..., None] * np.exp(np.minimum(x, 700)),
            "The division by the sum is missing: the slope of ln s is 1/s.",
        ),
        Mistake(
            lambda x, dy: _shares(x),
            "These are the slopes; multiply them by `dy`.",
        ),
        Mistake(
            lambda x, dy: np.asarray(dy)[..., None] * np.exp(x - x.max(axis=-1, keepdims=True)),
            "The division is missing: the logarithm divides by the sum.",
        ),
        Mistake(
            lambda x, dy: np.asarray(dy)[..., None] * (x == x.max(axis=-1, keepdims=True)),
            "This is the slope of the maximum. The soft maximum gives every term its share.",
            score=1,
        ),
    ),
    hints=(
        "The sum inside grows by e^{x_i} times the nudge; the logarithm divides by the sum.",
        "`dy[..., None]` lets one number per row multiply the row.",
    ),
)


# Proof --------------------------------------------------------------------------------------------------------------

SOFT_MAXIMUM = Item(
    id="04.exponentials.soft_maximum",
    kind="text",
    title="A maximum with soft edges",
    difficulty=2,
    minutes=15,
    source="ours; Foundations (001), section 2.1.1",
    task="""
Let $y(x) = \\ln\\sum_{i=1}^{n} e^{x_i}$ and $m = \\max_i x_i$.

1. Prove that $y(x + c) = y(x) + c$ when the same number $c$ is added to every $x_i$.
2. Prove that $m \\le y(x) \\le m + \\ln n$. When does the right side hold with equality?
3. Use both to explain, in two or three sentences, why computing $m + \\ln\\sum_i e^{x_i - m}$ can neither overflow nor
   take the logarithm of zero, and what happens to terms that underflow.
""",
    rubric=(
        (2, "Takes e^c out of the sum and uses ln(ab) = ln a + ln b, with a reason for each step."),
        (1, "Lower bound: the sum is at least e^m, and ln grows."),
        (1, "Upper bound: each of n terms is at most e^m, so the sum is at most n·e^m; equality if all are equal."),
        (1, "No exponent above 0; one term is 1, so the sum is in [1, n]; lost terms are below rounding."),
    ),
    hints=("e^{x_i + c} = e^c e^{x_i}.", "Replace every term by the largest one; then keep only the largest one."),
    references=("primer.ch04.text.log_prod", "primer.ch04.text.exp_sum"),
)


# Project ------------------------------------------------------------------------------------------------------------


@each
def _mixtures(rng, shape):
    """k weights, and k models' probabilities for n tokens each."""
    k, n = shape
    weights = rng.uniform(0.2, 1, size=k)
    return weights / weights.sum(), rng.uniform(0.05, 0.95, size=(k, n))


@each
def _rivals(rng, shape):
    """A long text of which all models think nearly alike: they differ in the first two tokens alone."""
    ((weights, p),) = _mixtures(shape)(rng)
    p[1:, 2:] = p[0, 2:]
    return weights, p


def _log_mixture(weights, p):
    with np.errstate(divide="ignore"):
        terms = np.log(weights) + np.log(p).sum(axis=1)
    largest = terms.max()
    return largest + np.log(np.exp(terms - largest).sum()) if np.isfinite(largest) else largest


def _plain_mixture(weights, p):
    with np.errstate(divide="ignore"):
        return np.log(np.sum(weights * np.prod(p, axis=1)))


def _token_by_token(weights, p):
    with np.errstate(divide="ignore"):
        return np.sum(np.log(weights @ p))


def _mean_of_logs(weights, p):
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.sum(weights * np.log(p).sum(axis=1))


def _unweighted(weights, p):
    return _log_mixture(np.ones(len(weights)), p)


def _best_only(weights, p):
    with np.errstate(divide="ignore"):
        return np.max(np.log(weights) + np.log(p).sum(axis=1))


def _log_of_shares(weights, p):
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.log(weights) + np.log(p).sum(axis=1)
        return np.log(np.exp(terms - terms.max()).sum())


IMPOSSIBLE = np.array([[0.5, 0.5, 0.25], [0.9, 0.0, 0.9]])  # the second model rules its second token out

LOG_MIXTURE = Item(
    id="04.exponentials.log_mixture",
    kind="function",
    title="Which of several models wrote it?",
    difficulty=3,
    minutes=25,
    source="ours; the primer (003), chapter IV",
    answer="log_mixture",
    masked=("log_sum_exp", "log_add_exp", "log_product"),
    task="""
Somebody drew one of $k$ models, model $j$ with probability $w_j$, and let it write a whole text of $n$ tokens.
`weights` has shape `(k,)`; `p` has shape `(k, n)` and holds the probability that model $j$ gave to token $t$. Write
`log_mixture(weights, p)`, the logarithm of the probability of the text:

$$\\ln \\sum_{j=1}^{k} w_j \\prod_{t=1}^{n} p_{jt} .$$

- Texts are long: 5,000 tokens must be no problem, whichever model is the best.
- Weights and probabilities may be 0: a model that rules the text out counts nothing. If all do, the answer is
  $-\\infty$ (and not NaN, and not a warning).
- The inputs are left as they were.
""",
    expected=_log_mixture,
    checks=(
        values(
            2,
            _mixtures((2, 3), (3, 5), (4, 2)),
            public=[(np.array([0.5, 0.5]), np.array([[0.8, 0.6, 0.9], [0.1, 0.2, 0.3]]))],
            name="short texts",
        ),
        values(3, _rivals((2, 1500), (3, 2000)), name="long texts"),
        values(
            1,
            public=[
                (np.array([0.5, 0.5]), IMPOSSIBLE),
                (np.array([1.0, 0.0]), np.array([[0.5, 0.1], [0.9, 0.9]])),
                (np.array([0.0, 1.0]), IMPOSSIBLE),
            ],
            name="zeros",
        ),
        leaves_inputs(1, _mixtures((2, 4))),
    ),
    mistakes=(
        Mistake(
            _plain_mixture,
            "The product of thousands of probabilities is 0. Add logarithms, and sum over the models by log-sum-exp.",
            score=4,
        ),
        Mistake(
            _token_by_token,
            "You mixed anew for each token. Here one model writes the whole text: first products, then the sum.",
        ),
        Mistake(
            _mean_of_logs,
            "This is the mean of the logarithms. The models' probabilities are averaged, not their logarithms.",
        ),
        Mistake(
            _log_of_shares,
            "You pulled the largest term out and did not add it again at the end.",
        ),
        Mistake(
            lambda weights, p: _best_only(weights, p) + _log_of_shares(weights, p),
            "If no model allows the text, all terms are −∞, and −∞ − (−∞) is NaN. Answer −∞ there.",
            score=6,
        ),
        Mistake(
            lambda weights, p: np.exp(_log_mixture(weights, p)),
            "This is the probability itself, which is 0 for a long text. Its logarithm was asked for.",
        ),
        Mistake(
            lambda weights, p: -_log_mixture(weights, p),
            "The sign: the logarithm of a probability is never positive. (Its negative is a loss; see chapter 7.)",
        ),
        Mistake(
            lambda weights, p: _log_mixture(weights, p) / p.shape[1],
            "This is the mean per token. The logarithm of the whole text was asked for.",
        ),
        Mistake(_unweighted, "The weights are missing: add ln w_j to each model's sum."),
        Mistake(
            _best_only,
            "Only the best model was counted. The others add their share: log-sum-exp in place of the maximum.",
            score=1,
        ),
    ),
    hints=(
        "For each model ln w_j + Σ_t ln p_jt: an array of k numbers.",
        "Then the log-sum-exp of these k numbers, with the largest pulled out, unless it is −∞.",
        "`with np.errstate(divide='ignore')` lets ln 0 be −∞ in silence.",
    ),
)


# Check yourself (in the chapter, not graded) ------------------------------------------------------------------------

QUICK = [
    Item(
        id="04.exponentials.quick_powers",
        kind="value",
        title="Exponents add",
        difficulty=1,
        minutes=1,
        source="The primer (003), chapter IV",
        graded=False,
        answer="power",
        task="e² · e³ is e to which power?",
        expected=lambda: 5,
        checks=(values(1),),
        mistakes=(
            Mistake(lambda: 6, "The exponents are added, not multiplied: (e²)³ would be e⁶."),
            Mistake(lambda: 1, "You subtracted, which belongs to a quotient."),
        ),
    ),
    Item(
        id="04.exponentials.quick_inverse",
        kind="value",
        title="There and back",
        difficulty=1,
        minutes=1,
        source="The primer (003), chapter IV",
        graded=False,
        answer="value",
        task="What is ln(e⁻⁷)?",
        expected=lambda: ml.exponentials.log(ml.exp(-7.0)),
        checks=(values(1),),
        mistakes=(
            Mistake(lambda: 7, "ln undoes exp, the sign included."),
            Mistake(lambda: np.exp(-7), "That is e⁻⁷. Its logarithm is asked for."),
        ),
    ),
    Item(
        id="04.exponentials.quick_base",
        kind="value",
        title="Another base",
        difficulty=1,
        minutes=1,
        source="ours",
        graded=False,
        answer="value",
        task="What is log₂ 8?",
        expected=lambda: ml.exponentials.log(8.0, base=2),
        checks=(values(1),),
        mistakes=(
            Mistake(lambda: np.log(8), "That is ln 8. Divide by ln 2."),
            Mistake(lambda: 4, "2 · 4 is 8; asked for is the power of 2 that gives 8."),
        ),
    ),
    Item(
        id="04.exponentials.quick_log_sum_exp",
        kind="value",
        title="Two of a thousand",
        difficulty=1,
        minutes=1,
        source="Foundations (001), section 2.1.1",
        graded=False,
        answer="value",
        task="What is the log-sum-exp of [1000, 1000], to three decimals?",
        expected=lambda: ml.log_sum_exp([1000.0, 1000.0]),
        checks=(values(1, decimals=3),),
        mistakes=(
            Mistake(lambda: 1000, "That is the maximum. Two equal terms add ln 2."),
            Mistake(lambda: 2000, "Adding logarithms multiplies. Here e¹⁰⁰⁰ is counted twice: add ln 2."),
            Mistake(lambda: float("inf"), "So says the plain formula. Pull the 1000 out first."),
            Mistake(lambda: 1002, "Twice as much adds ln 2 ≈ 0.693, not 2."),
        ),
    ),
    Item(
        id="04.exponentials.quick_thousand",
        kind="value",
        title="A thousand factors",
        difficulty=1,
        minutes=1,
        source="The primer (003), chapter IV",
        graded=False,
        answer="value",
        task="A thousand tokens have probability 0.1 each. What is the logarithm of the product, to one decimal?",
        expected=lambda: ml.exponentials.log_product(np.full(1000, 0.1)),
        checks=(values(1, decimals=1),),
        mistakes=(
            Mistake(lambda: float("-inf"), "So says the logarithm of the vanished product. Add a thousand logarithms."),
            Mistake(lambda: -1000, "That is the logarithm to base 10. Multiply by ln 10 ≈ 2.3026."),
            Mistake(lambda: 2302.6, "The sign: the logarithm of 0.1 is negative."),
            Mistake(lambda: -2.3, "That is one logarithm. There are a thousand of them."),
        ),
    ),
]

ITEMS = [
    THREE_POWERS,
    SOLVE_LOG,
    SUM_OF_LOGS,
    THREE_TOKENS,
    OWN_TWO_STORIES,
    OWN_LIMIT,
    LOG_SUM_EXP,
    REPAIR_SOFTPLUS,
    LOG_SUM_EXP_PULLBACK,
    SOFT_MAXIMUM,
    LOG_MIXTURE,
    *QUICK,
]
