"""Chapter 06, softmax: shares from scores, temperature, the Jacobian and its uses, three ways to break it."""

import numpy as np

import mathllm as ml

from ..cases import each, normals, refusing
from ..item import Check, Item, Mistake, gradient, keeps_dtype, leaves_inputs, quick, refuses, values

EXAMPLE = np.array([2.0, 1.0, 0.5])  # 003, chapter VI, example 6; 004 uses it for temperature


# Warm-up ------------------------------------------------------------------------------------------------------------

EQUAL_LOGITS = Item(
    id="06.softmax.equal_logits",
    kind="value",
    title="No preference",
    difficulty=1,
    minutes=3,
    source="The primer (003), chapter VI, exercise 13",
    answer="sum_and_shares",
    task="""
Apply softmax to the logits $[0, 0, 0]$. Give four numbers in a list, `sum_and_shares`: the sum of the three
exponentials, then the three probabilities, right to three decimals.
""",
    expected=lambda: [np.exp(np.zeros(3)).sum(), *ml.softmax(np.zeros(3))],
    checks=(values(2, decimals=3),),
    mistakes=(
        Mistake(lambda: [0, 0, 0, 0], "e⁰ is 1, not 0."),
        Mistake(lambda: [3, 1, 1, 1], "These are the exponentials. Divide each by their sum."),
        Mistake(
            lambda: [1 / 3, 1 / 3, 1 / 3],
            "The probabilities are right. Four numbers were asked for: the sum of the exponentials comes first.",
        ),
        Mistake(
            lambda: [1, 1 / 3, 1 / 3, 1 / 3], "The first number is the sum of the exponentials, not of the shares: 3."
        ),
        Mistake(lambda: [1 / 3, 1 / 3, 1 / 3, 3], "All four are right, but the sum of the exponentials comes first."),
    ),
    hints=("e⁰ = 1.", "Three equal shares of one."),
    references=("primer.ch06.q13.sum", "primer.ch06.q13.softmax"),
)

DOMINANT = Item(
    id="06.softmax.dominant",
    kind="value",
    title="One logit dominates",
    difficulty=1,
    minutes=5,
    source="The primer (003), chapter VI, exercise 14",
    answer="dominant_shares",
    task="""
Apply softmax to $[10, 0, 0]$; $e^{10}\\approx 22026.47$. Give the three probabilities in a list,
`dominant_shares`, right to **six** decimals.
""",
    expected=lambda: ml.softmax([10.0, 0.0, 0.0]),
    checks=(values(2, decimals=6),),
    mistakes=(
        Mistake(lambda: [1.0, 0.0, 0.0], "So it looks when rounded to three decimals. Six were asked for."),
        Mistake(
            lambda: [0.9999, 0.00005, 0.00005],
            "These are the printed values, rounded to one significant figure. Compute 1/22028.47.",
        ),
        Mistake(lambda: [np.exp(10), 1, 1], "These are the exponentials. Divide each by their sum."),
        Mistake(
            lambda: [np.exp(10) / (np.exp(10) + 1), 1 / (np.exp(10) + 1), 1 / (np.exp(10) + 1)],
            "The sum of the exponentials has three terms: each of the two zeros contributes e⁰ = 1.",
        ),
    ),
    hints=("The sum is 22026.47 + 1 + 1.", "The second share is 1 divided by that sum."),
    references=("primer.ch06.q14.exp10", "primer.ch06.q14.sum", "primer.ch06.q14.p1", "primer.ch06.q14.p2"),
)


def _three_logits(rng):
    """Three different logits and a temperature other than 1."""
    logits = rng.choice(np.arange(-6, 7), size=3, replace=False) / 2
    return {"logits": logits.tolist(), "temperature": float(rng.choice([0.5, 2.0, 4.0]))}


def _tempered(logits, temperature):
    return ml.softmax(np.array(logits), temperature=temperature)


OWN_SHARES = Item(
    id="06.softmax.own_shares",
    kind="value",
    title="Three scores and a temperature",
    difficulty=1,
    minutes=6,
    source="after the primer (003), chapter VI, example 6, and Part II (004), temperature",
    answer="own_shares",
    task="""
`mine.logits` holds three logits, `mine.temperature` a temperature $T$. Give the three probabilities
$\\operatorname{softmax}(z/T)$ in `own_shares`, right to three decimals. (`np.exp` may help.)
""",
    numbers=_three_logits,
    expected=_tempered,
    checks=(values(2, decimals=3),),
    mistakes=(
        Mistake(
            lambda logits, temperature: _tempered(logits, 1.0),
            "The temperature is missing: divide the logits by T before the exponential.",
        ),
        Mistake(
            lambda logits, temperature: _tempered(logits, 1 / temperature),
            "You multiplied by the temperature. The logits are divided by T.",
        ),
        Mistake(
            lambda logits, temperature: ml.softmax(logits) / temperature,
            "You divided the probabilities by T: they no longer add up to one. T divides the logits.",
        ),
        Mistake(
            lambda logits, temperature: np.exp(np.divide(logits, temperature)),
            "These are the exponentials. Divide each by their sum.",
        ),
        Mistake(
            lambda logits, temperature: (
                np.exp2(np.divide(logits, temperature)) / np.exp2(np.divide(logits, temperature)).sum()
            ),
            "These are powers of 2. Softmax uses powers of e.",
        ),
    ),
    hints=("First divide every logit by T.", "Then three exponentials, their sum, three quotients."),
)


# Core ---------------------------------------------------------------------------------------------------------------

EQUAL_AND_SURE = Item(
    id="06.softmax.equal_and_sure",
    kind="text",
    title="Undecided and sure",
    difficulty=1,
    minutes=8,
    source="The primer (003), chapter VI, exercises 13 and 14",
    task="""
Explain in three to five sentences: (a) Why does softmax answer equal logits with equal probabilities, whatever their
common value, and what does a model say that gives them? (b) What happens when one logit is far above all others, and
how would you describe such a prediction? (c) A model gives the logits $[1000, 1000]$. Is it sure of anything?
""",
    rubric=(
        (1, "(a) Equal logits have equal exponentials, so each gets the same share 1/n."),
        (1, "(a) The distribution is uniform: the model expresses no preference."),
        (1, "(b) Nearly all probability goes to the largest logit: close to one-hot, a confident model."),
        (1, "(c) No: ½ each. Only differences matter, not the size of a logit."),
    ),
    hints=("What are the exponentials in (a)? What does a common value change?", "Subtract the maximum in (c)."),
    references=("primer.ch06.q13.why", "primer.ch06.q14.dominates"),
)

PRINTED_TEMPERATURE = Item(
    id="06.softmax.printed_temperature",
    kind="value",
    title="A table that cannot be right",
    difficulty=2,
    minutes=8,
    source="Part II (004), temperature",
    answer="ratios",
    task="""
For the logits $[2, 1, 0.5]$ one of the documents prints [0.51, 0.19, 0.15, …] at $T=1$ and [0.39, 0.24, 0.18] at
$T=2$. Test both lines by one ratio. Put four numbers into the list `ratios`, right to three decimals: what the second
share divided by the third must be at $T=1$, and what it is as printed; then the same two numbers for $T=2$.
""",
    expected=lambda: [np.exp(0.5), 0.19 / 0.15, np.exp(0.25), 0.24 / 0.18],
    checks=(values(3, decimals=3),),
    mistakes=(
        Mistake(
            lambda: [np.exp(0.5), 0.19 / 0.15, np.exp(1.0), 0.24 / 0.18],
            "At T = 2 the difference of the logits is divided by 2, not multiplied.",
        ),
        Mistake(
            lambda: [np.exp(0.5), 0.19 / 0.15, np.exp(0.5), 0.24 / 0.18],
            "The temperature is missing in the third number: e to the difference over T.",
        ),
        Mistake(
            lambda: [2.0, 0.19 / 0.15, 2.0, 0.24 / 0.18],
            "This is the ratio of the logits. The ratio of the shares is e to their difference.",
        ),
        Mistake(
            lambda: [np.e, 0.51 / 0.19, np.exp(0.5), 0.39 / 0.24],
            "You compared the first share with the second. Asked for are the second and the third.",
        ),
        Mistake(
            lambda: [np.exp(0.5), np.exp(0.25), 0.19 / 0.15, 0.24 / 0.18],
            "All four are right, in another order: for each temperature what must be, then what is printed.",
        ),
        Mistake(
            lambda: [np.exp(-0.5), 0.15 / 0.19, np.exp(-0.25), 0.18 / 0.24],
            "You divided the third share by the second. Asked for is the second divided by the third.",
        ),
    ),
    hints=("Divide one share by another: the sum drops out.", "e to the power of (1 − 0.5)/T."),
    references=("part2.temp.ratio_test",),
)


def _naive(z):
    with np.errstate(all="ignore"):
        e = np.exp(z)
        return e / e.sum(axis=-1, keepdims=True)


def _shifted(z, axis=-1, exp=np.exp):
    e = exp(z - z.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def _one_maximum(z):
    e = np.exp(z - z.max())
    with np.errstate(invalid="ignore"):
        return e / e.sum(axis=-1, keepdims=True)


def _lost_axis(z):
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1)


def _without_exp(z):
    with np.errstate(divide="ignore", invalid="ignore"):
        return z / z.sum(axis=-1, keepdims=True)


def _softmax_in_place(z):
    z -= z.max(axis=-1, keepdims=True)
    return _shifted(z)


SOFTMAX = Item(
    id="06.softmax.softmax",
    kind="function",
    title="Softmax that survives any score",
    difficulty=2,
    minutes=10,
    source="The primer (003), chapter VI; Foundations (001), section 2.1.1",
    answer="softmax",
    masked=("softmax", "softmax_in_place", "log_softmax", "softmax_jacobian"),
    task="""
Write `softmax(z)` along the **last** axis:

$$p_i = \\frac{e^{z_i}}{\\sum_j e^{z_j}} .$$

- A stack of rows gives a stack of distributions, one per row.
- Scores of ±10,000 are fine, and so is a score of $-\\infty$ (its share is 0) beside finite ones.
- `float32` stays `float32`; the input is left as it was.
""",
    expected=ml.softmax,
    checks=(
        values(2, normals(3, 7, 1), public=[(EXAMPLE,), (np.zeros(3),), (np.array([10.0, 0.0, 0.0]),)], name="one row"),
        values(2, normals((2, 3), (4, 1, 5), (1, 2)), name="a stack of rows"),
        values(
            2,
            normals(4, (2, 3), scale=1e4),
            public=[
                (np.array([1000.0, 1000.0]),),
                (np.array([1.0, 0.0, -np.inf]),),
                (np.array([[0.0, 1.0], [2000.0, 2001.0]]),),
            ],
            name="extreme scores",
        ),
        keeps_dtype(1, normals(5, (2, 3), dtype=np.float32)),
        leaves_inputs(1, normals(4, (2, 3))),
    ),
    mistakes=(
        Mistake(
            _naive,
            "The exponential overflows for large scores, and ∞/∞ is NaN. Subtract the largest score first.",
            score=6,
        ),
        Mistake(
            lambda z: _shifted(z, axis=0),
            "You normalised along axis 0. The candidates stand along the last axis: `axis=-1`.",
            score=2,
        ),
        Mistake(
            lambda z: _shifted(z, axis=None),
            "The sum ran over the whole stack. Each row is a distribution of its own: `axis=-1, keepdims=True`.",
            score=2,
        ),
        Mistake(
            lambda z: _shifted(z, exp=np.exp2), "These are powers of 2. Softmax uses powers of e: `np.exp`.", score=0
        ),
        Mistake(
            lambda z: np.exp(z - z.max(axis=-1, keepdims=True)),
            "These are exponentials, but they do not add up to one: divide by their sum.",
        ),
        Mistake(
            lambda z: _shifted(z.astype(float)),
            "Right, but float32 became float64 on the way: keep the dtype of z.",
            score=7,
        ),
        Mistake(_softmax_in_place, "Your function shifts the caller's scores. Write `z - z.max(…)`.", score=7),
        Mistake(
            _one_maximum,
            "One maximum for the whole stack: a row far below it underflows, and 0/0 is NaN. Each row has its own.",
            score=6,
        ),
        Mistake(
            _lost_axis,
            "The sum lost its axis, and no longer fits its own row: `e.sum(axis=-1, keepdims=True)`.",
            score=2,
        ),
        Mistake(
            _without_exp,
            "You divided the scores themselves by their sum. First the exponentials, then the shares.",
        ),
        Mistake(lambda z: _shifted(-z), "The order is upside down: the exponent is z, not −z."),
    ),
    hints=(
        "`z.max(axis=-1, keepdims=True)` keeps the axis, so that it can be subtracted from every row.",
        "Subtract the maximum, exponentiate, divide by the sum along the last axis.",
    ),
    references=("primer.ch06.ex6.softmax", "primer.ch06.fig5.probs", "foundations.softmax.big"),
)


@each
def _with_temperatures(rng, T):
    return rng.normal(size=5) * 2, float(T)


_careful = refusing(lambda z, T: not T > 0)


def _nan_at_zero(z, T):
    with np.errstate(all="ignore"):
        return _shifted(z / T)


TEMPERATURE = Item(
    id="06.softmax.with_temperature",
    kind="function",
    title="A dial for boldness",
    difficulty=2,
    minutes=8,
    source="The primer (003), chapter VI; Foundations (001), section 10.2.1",
    answer="softmax_with_temperature",
    masked=("softmax", "softmax_in_place", "log_softmax", "softmax_jacobian"),
    task="""
Write `softmax_with_temperature(z, T)` for one row of logits `z`: the probabilities $\\operatorname{softmax}(z/T)$.

- Temperatures from 0.001 to 1,000,000 give finite numbers.
- A temperature that is not positive is refused with `ValueError`. ($T \\to 0$ has a limit, argmax, but division by 0 is
  not the way to it.)
""",
    expected=lambda z, T: ml.softmax(z, temperature=T),
    checks=(
        values(
            2,
            _with_temperatures(0.5, 1.0, 2.0, 7.0),
            public=[(EXAMPLE, 0.5), (EXAMPLE, 1.0), (EXAMPLE, 2.0)],
            name="ordinary temperatures",
        ),
        values(
            2,
            _with_temperatures(0.001, 0.01),
            public=[(EXAMPLE, 0.001), (np.array([2.0, 2.001, 2.002]), 0.001)],
            name="cold",
        ),
        values(1, _with_temperatures(1e4, 1e6), public=[(EXAMPLE, 1e6)], name="hot"),
        refuses(1, public=[(EXAMPLE, 0.0), (EXAMPLE, -1.0)], name="refuses T ≤ 0"),
    ),
    mistakes=(
        Mistake(
            _careful(lambda z, T: _naive(z / T)),
            "At low temperatures z/T is large and the exponential overflows. Subtract the maximum.",
            score=4,
        ),
        Mistake(
            _careful(lambda z, T: _shifted(z * T)),
            "You multiplied by the temperature: cold became hot. The logits are divided by T.",
            score=1,
        ),
        Mistake(
            _careful(lambda z, T: _shifted(z) ** T / np.sum(_shifted(z) ** T)),
            "The exponent should be 1/T: pᵢ^(1/T), normalised, would be right. With T, cold became hot.",
            score=1,
        ),
        Mistake(
            _careful(lambda z, T: _shifted(z) / T),
            "You divided the probabilities by T: they no longer add up to one.",
            score=1,
        ),
        Mistake(_nan_at_zero, "At T = 0 your function divides by zero, and answers a T below 0. Refuse both.", score=5),
        Mistake(
            _careful(lambda z, T: _shifted(z)),
            "The temperature has no effect. It divides the logits, before the exponential; after it, it cancels.",
            score=1,
        ),
        Mistake(
            _careful(lambda z, T: np.exp((z - np.log(np.exp(z).sum())) / T)),
            "Shares to the power of 1/T no longer add up to one: divide by their sum.",
            score=1,
        ),
        Mistake(
            refusing(lambda z, T: T < 0)(lambda z, T: _shifted(z / T) if T else np.eye(z.size)[z.argmax()]),
            "At T = 0 you answer with the limit. It is to be refused: nobody divided by 0 to get there.",
            score=5,
        ),
    ),
    hints=("Divide by T first, then everything as before.", "`if not T > 0: raise ValueError(…)` catches NaN as well."),
    references=("part2.temp.T05", "primer.ch06.text.t_to_0", "primer.ch06.text.t_to_inf"),
)


def _diagonal_only(z):
    p = ml.softmax(z)
    return np.diag(p * (1 - p))


def _naive_jacobian(z):
    p = _naive(z)
    return np.diag(p) - np.outer(p, p)


def _outer_only(z):
    p = ml.softmax(z)
    return -np.outer(p, p)


JACOBIAN = Item(
    id="06.softmax.jacobian",
    kind="function",
    title="Who takes from whom",
    difficulty=2,
    minutes=10,
    source="Pillars (002), derivative of the softmax",
    answer="softmax_jacobian",
    masked=("softmax_jacobian", "vjp", "grad", "value_and_grad", "jacobian", "numerical_jacobian"),
    task="""
Write `softmax_jacobian(z)` for one row of $n$ logits: the $n\\times n$ table

$$J_{ij} = \\frac{\\partial p_i}{\\partial z_j} = p_i\\,(\\delta_{ij} - p_j) .$$
""",
    expected=ml.softmax_jacobian,
    checks=(
        values(3, normals(1, 2, 6), public=[(EXAMPLE,)], name="right values"),
        values(2, public=[(np.array([1000.0, 1000.0, 0.0]),)], name="large scores"),
        leaves_inputs(1, normals(4)),
    ),
    mistakes=(
        Mistake(_diagonal_only, "Off the diagonal stands −pᵢpⱼ: a raised score takes from all other shares.", score=0),
        Mistake(_outer_only, "The diagonal lacks its pᵢ: Jᵢᵢ = pᵢ(1 − pᵢ) = pᵢ − pᵢ².", score=0),
        Mistake(
            lambda z: np.outer(ml.softmax(z), ml.softmax(z)) - np.diag(ml.softmax(z)),
            "The sign: raising a score raises its own share, so the diagonal is positive.",
            score=0,
        ),
        Mistake(
            lambda z: np.diag(ml.softmax(z)) + np.outer(ml.softmax(z), ml.softmax(z)),
            "A sign: pᵢδᵢⱼ − pᵢpⱼ. The rows must add up to zero.",
        ),
        Mistake(
            _naive_jacobian,
            "The exponential overflows for large scores. Subtract the largest first, or take `ml.softmax`.",
            score=4,
        ),
        Mistake(
            lambda z: np.outer(ml.softmax(z), 1 - ml.softmax(z)),
            "You wrote 1 for δᵢⱼ everywhere. It is 1 on the diagonal only, and 0 elsewhere.",
        ),
        Mistake(
            lambda z: np.eye(z.size) - np.outer(ml.softmax(z), ml.softmax(z)),
            "The pᵢ in front multiplies δᵢⱼ, too: the diagonal is pᵢ − pᵢ², not 1 − pᵢ².",
        ),
        Mistake(
            lambda z: ml.softmax(z) * (np.eye(z.size) - ml.softmax(z)),
            "The p in front multiplied the columns. Row i is multiplied by pᵢ: `p[:, None]`.",
        ),
    ),
    hints=("`np.outer(p, p)` has the entries pᵢpⱼ.", "`np.diag(p)` is the table with p on its diagonal: pᵢδᵢⱼ."),
    references=("pillars.softmaxjac.values", "pillars.softmaxjac.identity", "pillars.softmaxjac.rowsum"),
)


def _scores(rng):
    """Attention-like scores: queries along the first axis, keys along the last; some keys forbidden."""
    cases = []
    for queries, keys in [(2, 3), (4, 4), (3, 5)]:
        scores = rng.normal(size=(queries, keys)) * 3
        allowed = rng.random(size=(queries, keys)) < 0.7
        allowed[np.arange(queries), rng.integers(keys, size=queries)] = True
        cases.append((scores, allowed))
    return cases


def _attention_shares(scores, allowed):
    return ml.softmax(np.where(allowed, scores, -np.inf))


def _broken_shares(scores, allowed):
    e = np.exp(scores - scores.max(axis=0)) * allowed
    return e / e.sum(axis=0)


def _masked_afterwards(scores, allowed):
    return ml.softmax(scores) * allowed


def _maximum_of_all(scores, allowed):
    e = np.exp(scores - scores.max(axis=-1, keepdims=True)) * allowed
    with np.errstate(invalid="ignore"):
        return e / e.sum(axis=-1, keepdims=True)


def _turned_mask(scores, allowed):
    masked = np.where(allowed, -np.inf, scores)
    with np.errstate(invalid="ignore"):
        e = np.exp(masked - masked.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True)


def _masked_by_zero(scores, allowed):
    return ml.softmax(np.where(allowed, scores, 0.0))


REPAIR_AXIS = Item(
    id="06.softmax.repair_axis",
    kind="repair",
    title="Mend it: shares that do not add up",
    difficulty=2,
    minutes=10,
    source="Part II (004), common bugs",
    answer="shares",
    task="""
Row $i$ of `scores` holds the scores that query $i$ gives to all keys; `allowed` is a boolean array of the same shape.
Each query divides one unit of attention among the keys that it is allowed to see. In this function the *columns* add up
to one:

```python
def shares(scores, allowed):
    e = np.exp(scores - scores.max(axis=0)) * allowed
    return e / e.sum(axis=0)
```

Mend it. Forbidden keys get exactly 0, the others share 1 per row. Every row has at least one allowed key. Scores up to
±10,000 are fine, also where the largest score of a row is forbidden.
""",
    expected=_attention_shares,
    checks=(
        values(
            3,
            lambda rng: [(scores, np.ones_like(allowed)) for scores, allowed in _scores(rng)],
            public=[(np.array([[2.0, 1.0, 0.5], [0.0, 5.0, 0.0]]), np.ones((2, 3), bool))],
            name="all keys allowed",
        ),
        values(2, _scores, name="some keys forbidden"),
        values(
            1,
            public=[
                (np.array([[0.0, 1.0, 10_000.0]]), np.array([[True, True, False]])),
                (np.array([[-10_000.0, -9_999.0, 0.0]]), np.array([[True, True, False]])),
            ],
            name="the largest score forbidden",
        ),
    ),
    mistakes=(
        Mistake(
            _broken_shares,
            "Still as printed: the columns add up to one. The keys of one query stand along the last axis.",
        ),
        Mistake(
            _masked_afterwards,
            "Masking after the softmax leaves rows that add up to less than one. Forbid first, then divide.",
            score=3,
        ),
        Mistake(
            _masked_by_zero,
            "A score of 0 is not forbidden: e⁰ = 1. Use −∞, whose exponential is 0.",
            score=3,
        ),
        Mistake(
            lambda scores, allowed: (
                ml.softmax(np.where(allowed, scores, -np.inf), axis=None)
                if scores.ndim == 1
                else ml.softmax(np.where(allowed, scores, -np.inf).ravel()).reshape(scores.shape)
            ),
            "All queries share one unit here. Each row has its own: `axis=-1, keepdims=True`.",
            score=1,
        ),
        Mistake(
            _maximum_of_all,
            "Where the largest score is forbidden, all others underflow. Forbid before the maximum is taken.",
            score=5,
        ),
        Mistake(
            lambda scores, allowed: ml.softmax(np.where(allowed, scores, -100.0)),
            "−100 forbids nothing where the allowed scores are lower still. Use −∞.",
            score=5,
        ),
        Mistake(
            lambda scores, allowed: ml.softmax(scores),
            "Forbidden keys still get a share: `allowed` is not used.",
            score=3,
        ),
        Mistake(_turned_mask, "The mask is turned round: `allowed` is True where a key may be seen."),
        Mistake(
            lambda scores, allowed: _lost_axis(np.where(allowed, scores, -np.inf)),
            "The sum lost its axis, and no longer fits its own row: `e.sum(axis=-1, keepdims=True)`.",
            score=1,
        ),
    ),
    hints=(
        "`np.where(allowed, scores, -np.inf)` forbids before anything is computed.",
        "Maximum and sum run along `axis=-1`; `keepdims=True` lets them broadcast.",
    ),
)


def _naive_log_softmax(z):
    with np.errstate(over="ignore", divide="ignore"):
        return z - np.log(np.exp(z).sum(axis=-1, keepdims=True))


def _log_shares(z, m=0.0, axis=-1):
    shifted = z - z.max(axis=-1, keepdims=True)
    return shifted + m - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))


def _log_lost_axis(z):
    shifted = z - z.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1))


def _broken_log_softmax(z):
    with np.errstate(divide="ignore"):
        return np.log(ml.softmax(z))


REPAIR_LOG = Item(
    id="06.softmax.repair_log",
    kind="repair",
    title="Mend it: infinitely surprised",
    difficulty=2,
    minutes=8,
    source="Part II (004), common bugs; the primer (003), chapter VI",
    answer="log_softmax",
    masked=("log_softmax", "log_sum_exp", "logsumexp"),
    task="""
This function is to return $\\ln p_i$ for a row of logits (or a stack of rows):

```python
def log_softmax(z):
    return np.log(softmax(z) + 1e-12)
```

Its author added $10^{-12}$ "against minus infinity". Now no logarithm is below −27.6, and all are a little wrong. Mend
it: exact for logits of any size, along the last axis.
""",
    expected=ml.log_softmax,
    checks=(
        values(1, normals(3, 6), public=[(EXAMPLE,)], name="one row"),
        values(1, normals((2, 3), (3, 4)), name="a stack of rows"),
        values(
            4,
            normals(4, (2, 3), scale=1e4),
            public=[(np.array([0.0, -800.0]),), (np.array([1000.0, 1000.0]),)],
            name="extreme scores",
        ),
    ),
    mistakes=(
        Mistake(
            lambda z: np.log(ml.softmax(z) + 1e-12),
            "Still as printed: the 10⁻¹² hides every share below it. Do not form the share at all.",
            score=2,
        ),
        Mistake(
            _broken_log_softmax,
            "Without the 10⁻¹² a vanished share has the logarithm −∞. Take the logarithm of the quotient first.",
            score=2,
        ),
        Mistake(
            lambda z: z - z.max(axis=-1, keepdims=True),
            "You subtracted the maximum, but not the logarithm of the sum.",
        ),
        Mistake(
            lambda z: z - np.log(np.exp(np.clip(z, -700, 700)).sum(axis=-1, keepdims=True)),
            "The exponential inside overflows for large scores (or was clipped). Subtract the maximum first.",
            score=2,
        ),
        Mistake(
            _naive_log_softmax,
            "The exponential under the logarithm overflows, or all of them vanish. Subtract the maximum first.",
            score=2,
        ),
        Mistake(
            lambda z: np.log(ml.softmax(z) + 1e-300),
            "A smaller number hides smaller shares, but it hides them. Do not form the share at all.",
            score=2,
        ),
        Mistake(
            lambda z: _log_shares(z, m=z.max(axis=-1, keepdims=True)),
            "The maximum was subtracted under the logarithm, but not from z itself.",
        ),
        Mistake(
            lambda z: _log_shares(z, axis=None),
            "The sum ran over the whole stack. Each row has its own: `axis=-1, keepdims=True`.",
            score=1,
        ),
        Mistake(lambda z: _log_shares(z) / np.log(2), "The logarithms are to base 2. Wanted is ln, `np.log`."),
        Mistake(
            _log_lost_axis,
            "The sum lost its axis, and no longer fits its own row: `keepdims=True`.",
            score=1,
        ),
    ),
    hints=(
        "ln (a/b) = ln a − ln b, and ln e^z = z.",
        "With s = z − max z: ln pᵢ = sᵢ − ln Σ e^sⱼ. The sum is at least 1.",
    ),
)


# Derivation and proof -----------------------------------------------------------------------------------------------


def _softmax_slopes(z, dp):
    return ml.vjp(ml.softmax, z)[1](dp)[0]


def _rowwise(rule):
    """A rule for dz from p and dp, along the last axis."""
    return lambda z, dp: rule(ml.softmax(z), dp)


def _no_common_part(expected, case, observation):
    """A common shift changes nothing, so the gradient has no part along (1, …, 1)."""
    if observation.error:
        return f"raised {observation.error[0]}: {observation.message}"
    dz = np.asarray(observation.value, dtype=float)
    if dz.shape != case[0].shape or not np.all(np.isfinite(dz)):
        return f"expected a finite gradient of shape {case[0].shape}"
    if not np.any(dz):
        return "the gradient is zero everywhere"
    worst = np.abs(dz.sum(axis=-1)).max()
    return None if worst < 1e-9 else f"its entries add up to {worst:.3g}, but shifting all scores changes nothing"


PULLBACK = Item(
    id="06.softmax.pullback",
    kind="gradient",
    title="The gradient through softmax",
    difficulty=3,
    minutes=20,
    source="Pillars (002), derivative of the softmax",
    answer="softmax_pullback",
    masked=("vjp", "grad", "value_and_grad", "softmax_jacobian", "softmax_gradient"),
    task="""
A loss depends on the probabilities $p = \\operatorname{softmax}(z)$, and its slopes $dp_i$ are known. Derive

$$dz_j = \\sum_i dp_i\\,\\frac{\\partial p_i}{\\partial z_j}$$

and bring it into a form that needs no $n\\times n$ table. Then write `softmax_pullback(z, dp)`: for arrays of shape
`(..., n)`, softmax along the last axis, it returns `dz` of the same shape.
""",
    expected=_softmax_slopes,
    checks=(
        gradient(3, ml.softmax, normals(2, 4, count=2), public=[(EXAMPLE, np.array([1.0, 0.0, 0.0]))], name="one row"),
        gradient(2, ml.softmax, normals((2, 3), (2, 1, 4), count=2), name="a stack of rows"),
        Check("no part along a common shift", 1, normals(5, (2, 3), count=2), _no_common_part),
    ),
    mistakes=(
        Mistake(
            _rowwise(lambda p, dp: p * dp),
            "This is the diagonal without its correction: every share depends on all scores through the sum.",
        ),
        Mistake(
            _rowwise(lambda p, dp: p * (1 - p) * dp),
            "You used the diagonal of the Jacobian alone. The entries −pᵢpⱼ pass slopes on, too.",
        ),
        Mistake(
            _rowwise(lambda p, dp: p * (dp - dp.sum(axis=-1, keepdims=True))),
            "The average is weighted: Σ pᵢ dpᵢ, not Σ dpᵢ.",
        ),
        Mistake(
            _rowwise(lambda p, dp: p * (dp - np.sum(p * dp))),
            "The average was taken over the whole stack. Each row has its own: `axis=-1, keepdims=True`.",
            score=3,
        ),
        Mistake(
            _rowwise(lambda p, dp: p * (dp + np.sum(p * dp, axis=-1, keepdims=True))),
            "A sign: the average is subtracted.",
        ),
        Mistake(
            _rowwise(lambda p, dp: dp - np.sum(p * dp, axis=-1, keepdims=True)),
            "The factor pⱼ in front is missing: a share that is nearly 0 hardly moves.",
        ),
        Mistake(
            _rowwise(lambda p, dp: p * (dp - dp.mean(axis=-1, keepdims=True))),
            "You subtracted the plain mean. The average is weighted: Σ pᵢ dpᵢ.",
        ),
        Mistake(
            _rowwise(lambda p, dp: -p * (dp - np.sum(p * dp, axis=-1, keepdims=True))),
            "The sign of the whole is turned: raising a score raises its own share.",
            score=1,
        ),
        Mistake(
            _rowwise(lambda p, dp: dp - p * dp.sum(axis=-1, keepdims=True)),
            "This is the pullback of the logarithm of softmax, whose slopes are δᵢⱼ − pⱼ, without the pᵢ in front.",
            score=1,
        ),
    ),
    hints=(
        "Put pᵢ(δᵢⱼ − pⱼ) in and split the sum in two.",
        "In the first sum only i = j survives; in the second pⱼ can be taken out.",
        "dz = p ⊙ (dp − Σᵢ pᵢ dpᵢ).",
    ),
)

SHIFT_PROOF = Item(
    id="06.softmax.shift_proof",
    kind="text",
    title="What softmax cannot see",
    difficulty=2,
    minutes=12,
    source="ours; the primer (003), chapter VI; Pillars (002), derivative of the softmax",
    task="""
1. Prove that $\\operatorname{softmax}(z + c) = \\operatorname{softmax}(z)$ for every constant $c$ added to all scores.
2. Conclude, without computing it, that every **row** of the Jacobian $\\partial p_i/\\partial z_j$ adds up to zero.
3. Show by another argument that every **column** adds up to zero.
4. Show that $\\operatorname{softmax}(cz)$ for $c > 0$, however, does change the probabilities in general, but never
   their order.
""",
    rubric=(
        (1, "e^{zᵢ + c} = e^c e^{zᵢ}, and the factor e^c cancels in the quotient."),
        (1, "Rows: moving all scores together by h changes pᵢ by h Σⱼ ∂pᵢ/∂zⱼ, which is 0 by part 1."),
        (1, "Columns: Σᵢ pᵢ = 1 for all z, so its slope with respect to zⱼ, Σᵢ ∂pᵢ/∂zⱼ, is 0."),
        (1, "pᵢ/pⱼ = e^{c(zᵢ − zⱼ)} depends on c unless zᵢ = zⱼ, and is above 1 exactly when zᵢ > zⱼ."),
    ),
    hints=(
        "For 2: nudge all scores by the same tiny h, and add up what each score contributes.",
        "For 3: what do you know about the sum of all probabilities, whatever the scores?",
    ),
)


# Project ------------------------------------------------------------------------------------------------------------


def _calibrated(z, share):
    """The right answer: bisection on the logarithm of T."""
    low, high = 1e-6, 1e9
    for _ in range(70):
        middle = np.sqrt(low * high)
        low, high = (middle, high) if ml.softmax(z, temperature=middle).max() > share else (low, middle)
    return np.sqrt(low * high)


_reachable = refusing(lambda z, share: not 1 / z.size < share < 1 / np.sum(z == z.max()))


@each
def _to_calibrate(rng, n):
    z = rng.normal(size=n) * 3
    share = ml.softmax(z, temperature=rng.uniform(0.3, 3.0)).max()
    return z, float(min(share, 0.99))


CALIBRATE = Item(
    id="06.softmax.calibrate",
    kind="function",
    title="How hot must it be?",
    difficulty=3,
    minutes=25,
    source="ours; Foundations (001), section 10.2.1",
    answer="temperature_for",
    task="""
A model is too sure of itself: its best token gets 99 % where it is right in only 80 % of such cases. Temperature can
mend that. Write `temperature_for(z, share)`: the temperature $T$ at which the **largest** of the probabilities
$\\operatorname{softmax}(z/T)$ is `share`, to a relative accuracy of $10^{-6}$. `z` is one row of at least two logits.

- The largest probability falls when $T$ rises (why?), so the search can halve an interval again and again. On which
  scale is it best to halve?
- No temperature leads down to $1/n$ or up to 1; with $m$ logits tied for the first place, not up to $1/m$. Refuse a
  share out of reach with `ValueError`.
""",
    expected=_reachable(_calibrated),
    checks=(
        values(2, _to_calibrate(2, 3, 5), public=[(EXAMPLE, 0.5), (EXAMPLE, 0.9)], name="a few scores", rtol=1e-6),
        values(2, _to_calibrate(1000, 5000), name="a vocabulary of scores", rtol=1e-6),
        values(
            2,
            lambda rng: [(rng.normal(size=4) * 1e3, 0.6), (rng.normal(size=4) * 1e-3, 0.6)],
            public=[(EXAMPLE * 1e4, 0.7)],
            name="scores of any size",
            rtol=1e-6,
        ),
        refuses(
            1,
            public=[(EXAMPLE, 0.3), (EXAMPLE, 1.0), (np.array([1.0, 1.0, 0.0]), 0.6)],
            name="refuses a share out of reach",
        ),
    ),
    mistakes=(
        Mistake(
            _reachable(lambda z, share: 1 / _calibrated(z, share)),
            "This is 1/T: the logits are divided by the temperature.",
            score=1,
        ),
        Mistake(
            _reachable(lambda z, share: np.clip(_calibrated(z, share), 0.01, 100)),
            "The search stops at its ends. With scores a thousand times as large, T is a thousand times as large.",
            score=5,
        ),
        Mistake(
            lambda z, share: _calibrated(z, share),
            "A share that no temperature reaches is answered with a number. Refuse it with `ValueError`.",
            score=6,
        ),
        Mistake(
            _reachable(lambda z, share: (np.sort(z)[-1] - np.sort(z)[-2]) / np.log(share / (1 - share))),
            "This formula is right for two scores. With more, the others take their shares as well.",
            score=1,
        ),
    ),
    hints=(
        "Write a function of T that returns the largest share; it falls from 1 (or 1/m) to 1/n.",
        "Halve on a logarithmic scale: the middle of low and high is √(low · high).",
        "Divide z by its spread first, or begin with an interval as wide as 10⁻⁶ to 10⁹.",
    ),
)


# Check yourself (in the chapter, not graded) ------------------------------------------------------------------------

QUICK = [
    quick(
        "06.softmax.quick_ratio",
        "How many times as likely",
        "after the primer (003), chapter VI, example 6",
        "The logits of two tokens differ by ln 4. How many times as likely is the better one?",
        lambda: np.exp(np.log(4)),
        (
            Mistake(lambda: np.log(4), "This is the difference of the logits. The ratio is e to that difference."),
            Mistake(lambda: 0.8, "This is its probability if there are only two. Asked for is the ratio."),
        ),
    ),
    quick(
        "06.softmax.quick_shift",
        "Three more for everybody",
        "The primer (003), chapter VI",
        "Softmax gives [0.7, 0.2, 0.1]. What does it give when 3 is added to every logit?",
        lambda: ml.softmax(np.log([0.7, 0.2, 0.1]) + 3),
        (
            Mistake(lambda: [3.7, 3.2, 3.1], "3 is added to the logits, not to the probabilities."),
            Mistake(lambda: [1 / 3, 1 / 3, 1 / 3], "The differences of the logits are still there."),
        ),
    ),
    quick(
        "06.softmax.quick_temperature",
        "Twice as hot",
        "The primer (003), chapter VI",
        "At T = 1 one token is 9 times as likely as another. How many times at T = 2?",
        lambda: np.exp(np.log(9) / 2),
        (
            Mistake(lambda: 4.5, "The logits are halved, not the ratio: e^(d/2) is the root of e^d."),
            Mistake(lambda: 81, "Hotter is flatter: the ratio shrinks."),
            Mistake(lambda: 18, "Hotter is flatter: the ratio shrinks."),
        ),
    ),
    quick(
        "06.softmax.quick_slope",
        "A slope of a sure model",
        "Pillars (002), derivative of the softmax",
        "What is ∂p₁/∂z₁ where p₁ = 0.9?",
        lambda: 0.9 * (1 - 0.9),
        (
            Mistake(lambda: 0.9, "This is p₁. Its slope is p₁(1 − p₁)."),
            Mistake(lambda: 0.1, "This is 1 − p₁. Multiply by p₁."),
            Mistake(lambda: -0.09, "Raising a score raises its own share: the slope is positive."),
        ),
    ),
    quick(
        "06.softmax.quick_sigmoid",
        "In the middle",
        "Foundations (001), section 4.2.2",
        "What is σ(0)?",
        lambda: ml.sigmoid(0.0),
        (
            Mistake(lambda: 0, "σ(x) = 1/(1 + e⁻ˣ), and e⁰ is 1."),
            Mistake(lambda: 0.25, "This is the slope at 0."),
            Mistake(lambda: 1, "1 + e⁰ = 2 stands in the denominator."),
        ),
    ),
]

ITEMS = [
    EQUAL_LOGITS,
    DOMINANT,
    OWN_SHARES,
    EQUAL_AND_SURE,
    PRINTED_TEMPERATURE,
    SOFTMAX,
    TEMPERATURE,
    JACOBIAN,
    REPAIR_AXIS,
    REPAIR_LOG,
    PULLBACK,
    SHIFT_PROOF,
    CALIBRATE,
    *QUICK,
]
