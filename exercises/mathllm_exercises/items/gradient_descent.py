"""Chapter 09, gradient descent: one step by hand, momentum, Adam, decay, schedules, minibatches, a training loop."""

import math

import numpy as np

import mathllm as ml

from ..cases import each, refusing
from ..item import Item, Mistake, gradient, leaves_inputs, quick, refuses, values

# Warm-up ------------------------------------------------------------------------------------------------------------

ONE_STEP = Item(
    id="09.gradient_descent.one_step",
    kind="value",
    title="One step against a negative slope",
    difficulty=1,
    minutes=3,
    source="The primer (003), chapter IX, exercise 19",
    answer="change_and_weight",
    task="""
A weight $w = 5.0$ has the gradient $\\partial\\mathcal{L}/\\partial w = -2.0$; the learning rate is $0.05$. Give two
numbers in the list `change_and_weight`: by how much one step of gradient descent changes $w$, and the new $w$.
""",
    expected=lambda: [-0.05 * -2.0, 5.0 - 0.05 * -2.0],
    checks=(values(2),),
    mistakes=(
        Mistake(lambda: [-0.1, 4.9], "Minus times minus: against a negative slope the weight grows."),
        Mistake(lambda: [2.0, 7.0], "The learning rate is missing: the step is 0.05 times the gradient."),
        Mistake(lambda: [0.1, 4.9], "The change is right; add it to 5.0."),
        Mistake(lambda: [-0.1, 5.1], "The new weight is right: from 5.0 to 5.1, what is the sign of the change?"),
        Mistake(lambda: [5.1, 0.1], "Both numbers are right, but exchanged: the change comes first."),
        Mistake(lambda: 5.1, "The new weight is right. Two numbers were asked for: the change comes first."),
        Mistake(lambda: [1.0, 6.0], "0.05 · 2 is 0.1."),
    ),
    hints=("w ← w − η g", "−0.05 · (−2.0) = +0.1"),
    references=("primer.ch09.q19.step", "primer.ch09.q19.w_new", "primer.ch09.ex9.step", "primer.ch09.ex9.w_new"),
)

GRADIENT_LENGTH = Item(
    id="09.gradient_descent.gradient_length",
    kind="value",
    title="Seven billion slopes",
    difficulty=1,
    minutes=4,
    source="The primer (003), chapter IX, exercise 20",
    answer="numbers_and_gigabytes",
    task="""
A model has 7 billion parameters. Give two numbers in the list `numbers_and_gigabytes`: how many numbers its gradient
has, and how many gigabytes ($10^9$ bytes) are needed to keep the gradient *and* Adam's two running means in float32
(4 bytes each).
""",
    expected=lambda: [7e9, 3 * 4 * 7],
    checks=(values(2),),
    mistakes=(
        Mistake(lambda: [7e9, 28], "28 GB hold the gradient alone. Adam's m and v have the same size, each."),
        Mistake(lambda: [7e9, 112], "This includes the weights themselves. Asked for are the gradient, m and v."),
        Mistake(lambda: [7e9, 56], "Gradient, m and v are three arrays, not two."),
        Mistake(lambda: [1, 84], "There is one slope for every parameter."),
        Mistake(lambda: [21e9, 84], "The gradient has one number for each parameter; m and v are not part of it."),
        Mistake(lambda: [7, 84], "The numbers were asked for, not the billions: 7 · 10⁹."),
        Mistake(lambda: [7e9, 84e9], "These are bytes; a gigabyte is 10⁹ of them."),
        Mistake(lambda: [7e9, 84e9 / 2**30], "These are gibibytes of 2³⁰ bytes; a gigabyte has 10⁹."),
        Mistake(lambda: [7e9, 168], "float32 takes 4 bytes a number, not 8."),
        Mistake(lambda: [7e9, 21], "There are 4 bytes to each of these numbers."),
    ),
    hints=("One component for each parameter.", "Three arrays of 7 · 10⁹ numbers of 4 bytes."),
    references=("primer.ch09.q20.len",),
)


def _valley(rng):
    return {
        "curvature": float(rng.choice([2.0, 4.0, 5.0, 8.0])),
        "w": float(rng.choice([-3.0, -2.0, 3.0, 5.0])),
        "rate": float(rng.choice([0.05, 0.15, 0.3])),
    }


OWN_VALLEY = Item(
    id="09.gradient_descent.own_valley",
    kind="value",
    title="Your own valley",
    difficulty=1,
    minutes=6,
    source="after the primer (003), chapter IX, example 9 and figure 6",
    answer="limit_and_place",
    task="""
Your loss is $\\mathcal{L}(w) = \\tfrac12 c\\,w^2$ with the curvature $c$ = `mine.curvature`. You start at `mine.w` with
the learning rate `mine.rate`. Give two numbers in the list `limit_and_place`, right to six decimals: the learning rate
above which the descent runs away, and the place after **three** steps.
""",
    numbers=_valley,
    expected=lambda curvature, w, rate: [2 / curvature, w * (1 - rate * curvature) ** 3],
    checks=(values(2, decimals=6),),
    mistakes=(
        Mistake(
            lambda curvature, w, rate: [1 / curvature, w * (1 - rate * curvature) ** 3],
            "1/c arrives in one step. The descent runs away only above 2/c, where the factor 1 − ηc is below −1.",
        ),
        Mistake(
            lambda curvature, w, rate: [2 / curvature, w * (1 - rate * curvature)],
            "This is the place after one step: the factor 1 − ηc comes three times.",
        ),
        Mistake(
            lambda curvature, w, rate: [2 / curvature, w - 3 * rate * curvature * w],
            "The slope changes on the way: each step is computed at the new place.",
        ),
        Mistake(
            lambda curvature, w, rate: [2 / curvature, w * (1 - rate * curvature / 2) ** 3],
            "The slope of ½cw² is cw: the ½ is gone.",
        ),
        Mistake(
            lambda curvature, w, rate: [4 / curvature, w * (1 - rate * curvature / 2) ** 3],
            "The slope of ½cw² is cw: the ½ is gone, in both numbers.",
        ),
        Mistake(
            lambda curvature, w, rate: [2 / curvature, w * (1 + rate * curvature) ** 3],
            "The sign: a step goes against the slope, so the factor is 1 − ηc.",
        ),
        Mistake(
            lambda curvature, w, rate: [2 / curvature, w * (1 - rate * curvature) ** 2],
            "This is the place after two steps; the start is no step.",
        ),
        Mistake(
            lambda curvature, w, rate: [2 / curvature, w * (1 - rate * curvature) ** 4],
            "This is the place after four steps: the start is step 0.",
        ),
        Mistake(
            lambda curvature, w, rate: [1 / curvature, w * (1 - rate * curvature)],
            "1/c arrives in one step, the limit is 2/c; and of three steps you have made one.",
        ),
    ),
    hints=("The slope of ½cw² is cw, so one step multiplies w by 1 − ηc.", "|1 − ηc| < 1 means ηc < 2."),
)

WARMUP = Item(
    id="09.gradient_descent.warmup_steps",
    kind="value",
    title="How long is the warmup?",
    difficulty=1,
    minutes=4,
    source="Part II (004), optimiser exercise (c)",
    answer="steps_and_warmup",
    task="""
A 7B model is trained on 2 trillion tokens ($2\\cdot10^{12}$), with 4 million tokens ($4\\cdot10^6$) per batch and a
warmup ratio of 2 %. Give two numbers in the list `steps_and_warmup`: the number of steps of the whole training, and the
number of warmup steps.
""",
    expected=lambda: [2e12 / 4e6, 0.02 * 2e12 / 4e6],
    checks=(values(2),),
    mistakes=(
        Mistake(lambda: [500_000, 1_000_000], "2 % of 500,000: multiply by 0.02, not by 2."),
        Mistake(lambda: [500, 10], "A trillion is a million millions: 2 · 10¹² / (4 · 10⁶)."),
        Mistake(lambda: [2e12 / 7e9, 0.02 * 2e12 / 7e9], "Not by the parameters: divide by the tokens of a batch."),
        Mistake(lambda: [10_000, 500_000], "Both numbers are right, but exchanged: the whole training comes first."),
        Mistake(lambda: [500_000, 0.02], "The second is the share; the number of steps was asked for."),
        Mistake(lambda: [500_000, 100_000], "This is 20 %: 2 % are 0.02."),
        Mistake(lambda: [500_000, 500_000 / 0.02], "2 % *of* the steps: multiply, do not divide."),
        Mistake(lambda: 10_000, "The warmup is right. Two numbers were asked for: all steps come first."),
    ),
    hints=("Every step uses one batch.", "2 · 10¹² tokens, 4 · 10⁶ per step."),
    references=("part2.optq.c_total", "part2.optq.c_warmup", "part2.sched.warmup_share"),
)

# Core ---------------------------------------------------------------------------------------------------------------


def _heavy_ball(w, g, v, rate, beta):
    v = beta * v + g
    return w - rate * v, v


_careful = refusing(lambda w, g, v, rate, beta: not 0 <= beta < 1)


@each
def _places(rng, s):
    return rng.normal(size=s), rng.normal(size=s), rng.normal(size=s), float(rng.uniform(0.01, 0.5)), 0.9


def _ball_in_place(w, g, v, rate, beta):
    v *= beta
    v += g
    return w - rate * v, v


def _ball_moves_weights(w, g, v, rate, beta):
    v = beta * v + g
    w -= rate * v
    return w, v


HEAVY_BALL = Item(
    id="09.gradient_descent.heavy_ball",
    kind="function",
    title="A step with memory",
    difficulty=2,
    minutes=8,
    source="Foundations (001), section 3.2.2; Part II (004), SGD with momentum",
    answer="heavy_ball_step",
    masked=("momentum_step", "sgd_step"),
    task="""
Write `heavy_ball_step(w, g, v, rate, beta)`: one step of momentum in the form that **accelerates**. From the weights
`w`, their gradient `g` and the velocity `v` (arrays of one shape) it returns the tuple of the new weights and the new
velocity:

$$v \\leftarrow \\beta v + g, \\qquad w \\leftarrow w - \\eta v .$$

The arrays that come in stay as they are. A β outside $[0, 1)$ is refused with `ValueError`.
""",
    expected=_careful(_heavy_ball),
    checks=(
        values(
            3,
            _places(3, (2, 4)),
            public=[
                (np.array([3.0]), np.array([4.0]), np.array([1.0]), 0.1, 0.5),
                (np.array([3.0]), np.array([4.0]), np.array([1.0]), 0.1, 0.0),
            ],
        ),
        leaves_inputs(1, _places(4)),
        refuses(
            1,
            public=[(np.ones(1), np.ones(1), np.ones(1), 0.1, 1.0), (np.ones(1), np.ones(1), np.ones(1), 0.1, -0.1)],
            name="refuses β outside [0, 1)",
        ),
    ),
    mistakes=(
        Mistake(
            _careful(lambda w, g, v, rate, beta: (w - rate * (beta * v + (1 - beta) * g), beta * v + (1 - beta) * g)),
            "This is the average: it smooths, but is never longer than the gradients. The heavy ball adds g in full.",
            score=1,
        ),
        Mistake(
            _careful(lambda w, g, v, rate, beta: (w - rate * v, beta * v + g)),
            "The step used the old velocity. Update v first, then step with it.",
            score=1,
        ),
        Mistake(
            _careful(lambda w, g, v, rate, beta: (w + rate * (beta * v + g), beta * v + g)),
            "The sign: the step goes against the velocity, which is made of gradients and points uphill.",
            score=1,
        ),
        Mistake(
            _careful(_ball_in_place),
            "Your function changes the caller's velocity. Write `v = beta * v + g`, not `v *= beta`.",
            score=4,
        ),
        Mistake(
            _careful(_ball_moves_weights),
            "Your function changes the caller's weights. Write `w - rate * v`, not `w -= rate * v`.",
            score=4,
        ),
        Mistake(
            _careful(lambda w, g, v, rate, beta: (beta * v + g, w - rate * (beta * v + g))),
            "Both arrays are right, but exchanged: the weights come first.",
            score=1,
        ),
        Mistake(
            _careful(lambda w, g, v, rate, beta: w - rate * (beta * v + g)),
            "The weights are right; the new velocity must be returned with them: `return w, v`.",
            score=1,
        ),
        Mistake(
            _careful(lambda w, g, v, rate, beta: (w - beta * v - rate * g, beta * v + rate * g)),
            "The learning rate went into the velocity. Here v holds bare gradients, and η multiplies it in the step.",
            score=1,
        ),
        Mistake(
            _careful(lambda w, g, v, rate, beta: (w - rate * g, beta * v + g)),
            "The velocity is right, but the step goes along g alone: step with the new v.",
            score=1,
        ),
        Mistake(
            _careful(lambda w, g, v, rate, beta: (w - rate * (beta * v - g), beta * v - g)),
            "Two signs: v adds up gradients, `beta * v + g`; the minus comes in the step.",
            score=1,
        ),
        Mistake(
            refusing(lambda w, g, v, rate, beta: not 0 < beta < 1)(_heavy_ball),
            "β = 0 is allowed: it forgets everything, which is plain descent.",
            score=2,
        ),
        Mistake(
            refusing(lambda w, g, v, rate, beta: not 0 <= beta <= 1)(_heavy_ball),
            "The bracket of [0, 1) excludes the 1: with β = 1 nothing is ever forgotten.",
            score=4,
        ),
        Mistake(_heavy_ball, "Right, but a β of 1 forgets nothing and was not refused.", score=4),
    ),
    hints=("Two lines of arithmetic: velocity first.", "`if not 0 <= beta < 1: raise ValueError(…)`"),
    references=("part2.momentum.heavyball", "part2.momentum.constant", "foundations.momentum.window_9"),
)


def _adam(w, g, m, v, t, rate, b1=0.9, b2=0.999, eps=1e-8, squared=np.square, weights=lambda b: (b, 1 - b)):
    (old_m, new_m), (old_v, new_v) = weights(b1), weights(b2)
    m = old_m * m + new_m * g
    v = old_v * v + new_v * squared(g)
    return w - rate * (m / (1 - b1**t)) / (np.sqrt(v / (1 - b2**t)) + eps), m, v


def _adam_cases(*shapes, steps=(1, 2, 10, 1000)):
    def cases(rng):
        drawn = []
        for shape in shapes:
            for t in steps:
                g = rng.normal(size=shape) * 10.0 ** rng.integers(-1, 3)
                first = t == 1
                m = np.zeros(shape) if first else rng.normal(size=shape)
                v = np.zeros(shape) if first else rng.uniform(0.5, 2, size=shape)
                drawn.append((rng.normal(size=shape), g, m, v, t, 0.01))
        return drawn

    return cases


def _adam_with(change):
    """Adam with one thing changed."""

    def function(w, g, m, v, t, rate, b1=0.9, b2=0.999, eps=1e-8):
        m_new = b1 * m + (1 - b1) * g
        v_new = b2 * v + (1 - b2) * g * g
        return change(w, g, m_new, v_new, t, rate, b1, b2, eps)

    return function


def _adam_without_epsilon(w, g, m, v, t, rate):
    with np.errstate(invalid="ignore"):
        return _adam(w, g, m, v, t, rate, eps=0.0)


def _adam_uncorrected_input(w, g, m, v, t, rate):
    before = _adam(w, 0 * g, m / 0.9, v / 0.999, t, rate)[0]  # the step that the old means give
    return before, *_adam(w, g, m, v, t, rate)[1:]


def _adam_in_place(w, g, m, v, t, rate):
    w, m[:], v[:] = _adam(w, g, m, v, t, rate)
    return w, m, v


def _adam_moves_weights(w, g, m, v, t, rate):
    w[:], m, v = _adam(w, g, m, v, t, rate)
    return w, m, v


ADAM = Item(
    id="09.gradient_descent.adam",
    kind="function",
    title="Adam, from its formula",
    difficulty=2,
    minutes=12,
    source="Foundations (001), section 3.2.3; Putting It Together (000), step 6; Part II (004), Adam",
    answer="adam_step",
    masked=("adam_step", "adamw_step", "rmsprop_step"),
    task="""
Write `adam_step(w, g, m, v, t, rate)`: step number `t` (counted from 1) of Adam with $\\beta_1 = 0.9$,
$\\beta_2 = 0.999$, $\\varepsilon = 10^{-8}$. It returns the tuple of the new `w`, `m` and `v`; the `m` and `v` that are
handed on are those *without* bias correction. All arrays have one shape.

- The very first step has the length `rate` for every weight whose gradient is not 0.
- A gradient of 0 moves nothing (in step 1), and gives no NaN.
- The arrays that come in stay as they are.
""",
    expected=_adam,
    checks=(
        values(
            2,
            _adam_cases(3, steps=(1,)),
            public=[(np.ones(2), np.array([5.0, -0.001]), np.zeros(2), np.zeros(2), 1, 0.01)],
            name="the first step",
            rtol=1e-6,
        ),
        values(3, _adam_cases(3, (2, 3), steps=(2, 10, 1000)), name="later steps", rtol=1e-6),
        values(1, public=[(np.ones(2), np.zeros(2), np.zeros(2), np.zeros(2), 1, 0.1)], name="a gradient of zero"),
        leaves_inputs(1, _adam_cases(4, steps=(3,)), rtol=1e-6),
    ),
    mistakes=(
        Mistake(
            _adam_with(lambda w, g, m, v, t, rate, b1, b2, eps: (w - rate * m / (np.sqrt(v) + eps), m, v)),
            "The bias correction is missing: m and v begin at 0 and are too small at first.",
            score=1,
        ),
        Mistake(
            _adam_with(
                lambda w, g, m, v, t, rate, b1, b2, eps: (
                    w - rate * (m / (1 - b1**t)) / (np.sqrt(v / (1 - b2**t)) + eps),
                    m / (1 - b1**t),
                    v / (1 - b2**t),
                )
            ),
            "The corrected means were handed on: the next step would correct them again. Return m and v as they are.",
            score=1,
        ),
        Mistake(
            _adam_with(
                lambda w, g, m, v, t, rate, b1, b2, eps: (
                    w - rate * (m / (1 - b1**t)) / (v / (1 - b2**t) + eps),
                    m,
                    v,
                )
            ),
            "The square root is missing: v is a mean of squares.",
            score=1,
        ),
        Mistake(
            _adam_with(
                lambda w, g, m, v, t, rate, b1, b2, eps: (
                    w - rate * (m / (1 - b1 ** (t + 1))) / (np.sqrt(v / (1 - b2 ** (t + 1))) + eps),
                    m,
                    v,
                )
            ),
            "The step counts from 1: at t = 1 the correction of m is 1/(1 − 0.9) = 10.",
            score=1,
        ),
        Mistake(
            lambda w, g, m, v, t, rate: _adam(w, g, m, v, t, rate, b1=0.999, b2=0.9),
            "The two β are exchanged: the mean forgets fast (0.9), the squares slowly (0.999).",
            score=1,
        ),
        Mistake(
            _adam_without_epsilon,
            "Without ε a gradient of 0 gives 0/0.",
            score=6,
        ),
        Mistake(
            _adam_with(
                lambda w, g, m, v, t, rate, b1, b2, eps: (
                    w - rate * (m / (1 - b1**t)) / np.sqrt(v / (1 - b2**t) + eps),
                    m,
                    v,
                )
            ),
            "ε stands outside the root: √v̂ + ε. Under it, small gradients make too short steps.",
            score=5,
        ),
        Mistake(
            _adam_with(
                lambda w, g, m, v, t, rate, b1, b2, eps: (
                    w + rate * (m / (1 - b1**t)) / (np.sqrt(v / (1 - b2**t)) + eps),
                    m,
                    v,
                )
            ),
            "The sign: the step goes against the mean of the slopes.",
            score=1,
        ),
        Mistake(
            _adam_with(
                lambda w, g, m, v, t, rate, b1, b2, eps: (w - rate * (m / (1 - b1**t)) / (np.sqrt(v) + eps), m, v)
            ),
            "Only m was corrected: v begins at 0 as well, and needs its 1/(1 − β₂ᵗ).",
            score=1,
        ),
        Mistake(
            _adam_with(
                lambda w, g, m, v, t, rate, b1, b2, eps: (
                    w - rate * g / (np.sqrt(v / (1 - b2**t)) + eps),
                    m,
                    v,
                )
            ),
            "The numerator is m̂, the mean of the slopes, not the last slope alone (they agree in step 1 only).",
            score=3,
        ),
        Mistake(
            lambda w, g, m, v, t, rate: _adam(w, g, m, v, t, rate, squared=lambda g: np.sum(g * g)),
            "g² is taken entry by entry: every weight has a mean of squares of its own.",
            score=1,
        ),
        Mistake(
            _adam_uncorrected_input,
            "m̂ and v̂ are made of the *new* m and v: update the means first.",
            score=1,
        ),
        Mistake(
            lambda w, g, m, v, t, rate: _adam(w, g, m, v, t, rate, weights=lambda b: (1 - b, b)),
            "The weights of old and new are exchanged: 0.9 of the old mean, 0.1 of the new slope.",
            score=1,
        ),
        Mistake(
            lambda w, g, m, v, t, rate: _adam(w, g, m, v, t, rate, weights=lambda b: (b, 1)),
            "These are sums, not means: the new slope enters m with the weight 1 − β₁, its square v with 1 − β₂.",
            score=1,
        ),
        Mistake(
            lambda w, g, m, v, t, rate: _adam(w, g, m, v, t, rate)[0],
            "The weights are right; m and v must be returned with them, for the next step.",
        ),
        Mistake(
            _adam_with(
                lambda w, g, m, v, t, rate, b1, b2, eps: (
                    w - rate * g / np.abs(g + (g == 0)) if t == 1 else np.full(g.shape, np.nan),
                    m,
                    v,
                )
            ),
            "βᵗ is a power, `0.9**t`: with `0.9 * t` the correction is negative from step 2 on.",
            score=3,
        ),
        Mistake(
            lambda w, g, m, v, t, rate: _adam(w, g, m, v, t, rate, squared=lambda g: (g - (0.9 * m + 0.1 * g)) ** 2),
            "v is the mean of g² itself, not of the square of g − m: no mean is taken off.",
            score=1,
        ),
        Mistake(
            _adam_in_place,
            "Your function changes the caller's m and v: `m *= 0.9` writes into them, `m = 0.9 * m + …` does not.",
            score=6,
        ),
        Mistake(
            _adam_moves_weights,
            "Your function changes the caller's weights: return `w - …`, not `w -= …`.",
            score=6,
        ),
    ),
    hints=(
        "First the two running means, then the two corrections, then the step.",
        "m̂ = m/(1 − β₁ᵗ), v̂ = v/(1 − β₂ᵗ), w − η m̂/(√v̂ + ε).",
    ),
    references=("part2.adam.bias1", "part2.adam.bias2", "foundations.adam.first_step", "run.step6.bias"),
)


@each
def _decay_cases(rng, shape):
    m_hat, v_hat = rng.normal(size=shape), rng.uniform(0.01, 100, size=shape)
    return rng.normal(size=shape) * 3, m_hat, v_hat, float(rng.uniform(1e-3, 0.1)), 0.1


def _decoupled(w, m_hat, v_hat, rate, decay):
    return (1 - rate * decay) * w - rate * m_hat / (np.sqrt(v_hat) + 1e-8)


def _decays_in_place(w, m_hat, v_hat, rate, decay):
    w *= 1 - rate * decay
    return w - rate * m_hat / (np.sqrt(v_hat) + 1e-8)


REPAIR_DECAY = Item(
    id="09.gradient_descent.repair_decay",
    kind="repair",
    title="Mend it: a decay that Adam undoes",
    difficulty=2,
    minutes=8,
    source="Part II (004), AdamW",
    answer="decayed_step",
    masked=("adamw_step",),
    task="""
With the corrected means $\\hat m$ and $\\hat v$ given, this function is to make one step of **AdamW**. Its author put
the decay where one puts it for plain descent, so that weights with large gradients hardly shrink:

```python
def decayed_step(w, m_hat, v_hat, rate, decay):
    direction = (m_hat + decay * w) / (np.sqrt(v_hat) + 1e-8)
    return w - rate * direction
```

Mend it: every weight loses the share `rate * decay` of itself per step, whatever its gradients. The weights that come
in stay as they are.
""",
    expected=_decoupled,
    checks=(
        values(
            3,
            _decay_cases(4, (2, 3)),
            public=[(np.array([1.0]), np.array([0.1]), np.array([0.01]), 0.01, 0.1)],
            rtol=1e-7,
        ),
        values(
            1,
            public=[(np.array([2.0, 2.0]), np.zeros(2), np.array([1e-4, 1e4]), 0.1, 0.5)],
            name="decay alone",
            rtol=1e-7,
        ),
        leaves_inputs(1, _decay_cases(5), rtol=1e-7),
    ),
    mistakes=(
        Mistake(
            lambda w, m, v, rate, decay: w - rate * (m + decay * w) / (np.sqrt(v) + 1e-8),
            "Still as printed: the decay is divided by √v̂. Take it out of the division.",
        ),
        Mistake(
            lambda w, m, v, rate, decay: (1 - decay) * w - rate * m / (np.sqrt(v) + 1e-8),
            "The decay is not multiplied by the learning rate: ten per cent of every weight per step!",
        ),
        Mistake(
            lambda w, m, v, rate, decay: (1 + rate * decay) * w - rate * m / (np.sqrt(v) + 1e-8),
            "The sign: decay makes the weights smaller.",
        ),
        Mistake(
            lambda w, m, v, rate, decay: w - rate * m / (np.sqrt(v) + 1e-8),
            "The decay is gone. It belongs beside Adam's direction: w(1 − ηλ) − η m̂/(√v̂ + ε).",
        ),
        Mistake(
            lambda w, m, v, rate, decay: (1 - rate * decay) * (w - rate * m / (np.sqrt(v) + 1e-8)),
            "Adam's step was shrunk along with the weight: only the old w loses its share, then the step is made.",
            score=1,
        ),
        Mistake(
            lambda w, m, v, rate, decay: (1 - rate * decay) * w - m / (np.sqrt(v) + 1e-8),
            "Adam's direction is not multiplied by the learning rate.",
            score=1,
        ),
        Mistake(
            lambda w, m, v, rate, decay: (1 - rate * decay) * w + rate * m / (np.sqrt(v) + 1e-8),
            "The sign of Adam's step: it goes against m̂.",
            score=1,
        ),
        Mistake(
            lambda w, m, v, rate, decay: (1 - rate * decay) * w - rate * m / (v + 1e-8),
            "The root is gone: the direction is m̂/(√v̂ + ε).",
            score=1,
        ),
        Mistake(
            lambda w, m, v, rate, decay: rate * decay * w - rate * m / (np.sqrt(v) + 1e-8),
            "This keeps the share ηλ of the weight, and throws the rest away: keep 1 − ηλ.",
        ),
        Mistake(
            _decays_in_place,
            "Your function changes the caller's weights: `w = (1 - …) * w` makes a new array, `w *= …` does not.",
            score=4,
        ),
    ),
    hints=("Two separate changes of w: Adam's, and −ηλw.", "(1 − ηλ) w − η m̂/(√v̂ + ε)"),
    references=("part2.adamw.sample", "part2.l2.identity"),
)


def _rate(t, peak, floor, warmup, total):
    return np.array([ml.warmup_cosine(int(s), peak=peak, floor=floor, warmup=warmup, total=total) for s in t])


def _as_printed(t, peak, floor, warmup, total):
    wave = floor + 0.5 * (peak - floor) * (1 + np.cos(np.pi * t / total))
    return np.where(t <= warmup, peak * t / warmup, wave)


def _wave(shape, rise=lambda t, peak, floor, warmup: peak * t / warmup):
    """Warmup and then floor + (peak − floor) · shape(share of the way), for mistakes in one of the two parts."""

    def rates(t, peak, floor, warmup, total):
        share = np.minimum((t - warmup) / (total - warmup), 1)
        return np.where(t <= warmup, rise(t, peak, floor, warmup), floor + (peak - floor) * shape(share))

    return rates


def _half_cosine(share):
    return 0.5 * (1 + np.cos(np.pi * share))


def _training_runs(rng):
    drawn = []
    for _ in range(3):
        warmup, total = int(rng.integers(10, 60)), int(rng.integers(100, 400))
        drawn.append((np.sort(rng.integers(0, total + 1, size=8)), float(rng.uniform(1e-4, 1e-2)), 1e-5, warmup, total))
    return drawn


REPAIR_SCHEDULE = Item(
    id="09.gradient_descent.repair_schedule",
    kind="repair",
    title="Mend it: a jump after the warmup",
    difficulty=2,
    minutes=8,
    source="Part II (004), learning rate scheduling",
    answer="learning_rates",
    masked=("warmup_cosine", "cosine_restarts"),
    task="""
A warmup followed by half a cosine, for an array of steps `t` (whole numbers). There is a jump at the end of the warmup,
and after step `total` the rate rises again:

```python
def learning_rates(t, peak, floor, warmup, total):
    wave = floor + 0.5 * (peak - floor) * (1 + np.cos(np.pi * t / total))
    return np.where(t <= warmup, peak * t / warmup, wave)
```

Mend it: the cosine begins at the peak when the warmup ends (`warmup` ≥ 1), reaches the floor at `total`, and the rate
stays there from then on.
""",
    expected=_rate,
    checks=(
        values(
            3,
            _training_runs,
            public=[(np.array([50, 100, 550, 1000]), 3e-4, 3e-5, 100, 1000)],
            name="during the training",
        ),
        values(1, public=[(np.array([1001, 1500, 2000]), 3e-4, 3e-5, 100, 1000)], name="after the training"),
        values(1, public=[(np.array([100, 101]), 1.0, 0.0, 100, 10_000)], name="no jump", rtol=1e-7),
    ),
    mistakes=(
        Mistake(_as_printed, "Still as printed: the cosine must count from the end of the warmup."),
        Mistake(
            lambda t, peak, floor, warmup, total: np.where(
                t <= warmup,
                peak * t / warmup,
                floor + 0.5 * (peak - floor) * (1 + np.cos(np.pi * (t - warmup) / (total - warmup))),
            ),
            "After the last step the cosine goes up again: keep its share at 1 (`np.minimum`).",
            score=4,
        ),
        Mistake(
            lambda t, peak, floor, warmup, total: np.where(
                t <= warmup,
                peak * t / warmup,
                floor + 0.5 * (peak - floor) * (1 + np.cos(np.pi * np.minimum((t - warmup) / total, 1))),
            ),
            "The cosine has total − warmup steps for its way, not total: so it does not reach the floor.",
            score=1,
        ),
        Mistake(
            lambda t, peak, floor, warmup, total: np.where(
                t <= warmup,
                peak * t / warmup,
                0.5 * peak * (1 + np.cos(np.pi * np.minimum((t - warmup) / (total - warmup), 1))),
            ),
            "The floor is missing: the cosine runs between the peak and the floor.",
            score=1,
        ),
        Mistake(
            _wave(lambda share: 0.5 * (1 - np.cos(np.pi * share))),
            "The sign of the cosine: 1 − cos goes from the floor up to the peak.",
        ),
        Mistake(
            _wave(lambda share: 0.5 * np.cos(np.pi * share)),
            "The 1 + is gone: cos alone runs from 1 to −1, 1 + cos from 2 to 0.",
        ),
        Mistake(
            _wave(lambda share: 1 + np.cos(np.pi * share)),
            "The ½ is gone: 1 + cos begins at 2, so the wave begins above the peak.",
            score=1,
        ),
        Mistake(
            _wave(lambda share: 0.5 * (1 + np.cos(2 * np.pi * share))),
            "A whole wave comes back to the peak: half a wave is cos(π · share).",
            score=1,
        ),
        Mistake(
            _wave(lambda share: 0.5 * (1 + np.cos(share))),
            "π is gone: at the end of the way the cosine must be −1, and that is cos π.",
            score=1,
        ),
        Mistake(
            _wave(lambda share: 1 - share),
            "This is a straight line down: half a cosine is flat at both ends.",
            score=1,
        ),
        Mistake(
            _wave(_half_cosine, lambda t, peak, floor, warmup: floor + (peak - floor) * t / warmup),
            "The warmup was right as printed: it begins at 0, not at the floor.",
            score=2,
        ),
        Mistake(
            _wave(_half_cosine, lambda t, peak, floor, warmup: peak * (t + 1) / warmup),
            "The warmup was right as printed: at t = warmup it must be the peak, and t + 1 is above it.",
            score=1,
        ),
        Mistake(
            lambda t, peak, floor, warmup, total: np.where(
                t > total, 0.0, _wave(_half_cosine)(t, peak, floor, warmup, total)
            ),
            "After `total` the rate stays at the floor; here it falls to 0.",
            score=4,
        ),
    ),
    hints=(
        "The share of the way: (t − warmup)/(total − warmup), from 0 to 1.",
        "`np.minimum(share, 1)` keeps it at 1 afterwards.",
    ),
    references=("part2.sched.points", "part2.sched.continuous"),
)


def _table_loss(W, counts):
    return -(counts * np.asarray(ml.log_softmax(W))).sum() / counts.sum()


def _table_pullback(W, counts, dloss):
    rows = counts.sum(axis=1, keepdims=True)
    return dloss * (rows * ml.softmax(W) - counts) / counts.sum()


@each
def _tables(rng, n):
    return rng.normal(size=(n, n)), rng.integers(0, 20, size=(n, n)).astype(float) + np.eye(n), float(rng.normal())


def _without_row_weights(W, counts, dloss):
    with np.errstate(invalid="ignore"):
        return dloss * (ml.softmax(W) - counts / counts.sum(axis=1, keepdims=True))


TABLE_PULLBACK = Item(
    id="09.gradient_descent.table_pullback",
    kind="gradient",
    title="The gradient of a letter model",
    difficulty=2,
    minutes=12,
    source="ours; Pillars (002), cross-entropy and softmax gradient",
    answer="table_pullback",
    masked=("vjp", "grad", "value_and_grad", "jacobian", "cross_entropy", "numerical_gradient", "numerical_jacobian"),
    task="""
The letter model of the chapter has the logits $W_{ij}$ for letter $j$ after letter $i$, and its loss on a text with
$N = \\sum_{ij} C_{ij}$ pairs, of which $C_{ij}$ are $(i, j)$, is

$$\\mathcal{L} = -\\frac1N\\sum_{ij} C_{ij}\\,\\ln p_{ij}, \\qquad p_{ij} = \\operatorname{softmax}(W_i)_j .$$

Write its pullback `table_pullback(W, counts, dloss)`: the slopes with respect to $W$, times the number `dloss`. Use no
nudges; `ml.softmax` may be used.
""",
    expected=_table_pullback,
    checks=(
        gradient(3, _table_loss, _tables(2, 4)),
        values(1, public=[(np.zeros((2, 2)), np.array([[3.0, 1.0], [0.0, 2.0]]), 1.0)], name="by hand"),
        values(
            1,
            public=[(np.zeros((3, 3)), np.array([[1.0, 0.0, 1.0], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]]), 2.0)],
            name="a letter that never occurs",
        ),
    ),
    mistakes=(
        Mistake(
            lambda W, C, d: d * (ml.softmax(W) - C / np.maximum(C.sum(axis=1, keepdims=True), 1)),
            "Prediction minus truth, but frequent letters count more: row i has the weight Nᵢ/N.",
        ),
        Mistake(
            lambda W, C, d: d * (C.sum(axis=1, keepdims=True) * ml.softmax(W) - C),
            "The loss is a mean over all N pairs: divide by N.",
        ),
        Mistake(
            lambda W, C, d: -_table_pullback(W, C, d), "The sign: prediction minus truth, not truth minus prediction."
        ),
        Mistake(
            lambda W, C, d: d * (ml.softmax(W) - C) / C.sum(),
            "Every one of the Nᵢ pairs of row i brings its own prediction: Nᵢ p − C.",
        ),
        Mistake(lambda W, C, d: _table_pullback(W, C, 1.0), "The factor dloss that arrives is not used.", score=1),
        Mistake(
            lambda W, C, d: d * (C.sum(axis=0)[:, None] * ml.softmax(W) - C) / C.sum(),
            "Nᵢ counts the pairs that *begin* with letter i: add up along the row, `axis=1`, not down the column.",
        ),
        Mistake(
            lambda W, C, d: d * (C.sum(axis=1) * ml.softmax(W) - C) / C.sum(),
            "`counts.sum(axis=1)` has the shape (V,) and meets the columns: `keepdims=True` puts it beside the rows.",
        ),
        Mistake(
            lambda W, C, d: d * (C.sum(axis=0) * ml.softmax(W) - C) / C.sum(),
            "Nᵢ belongs to row i: `counts.sum(axis=1, keepdims=True)`. Here column j got the sum of column j.",
        ),
        Mistake(
            lambda W, C, d: d * (C.sum(axis=1, keepdims=True) * ml.softmax(W, axis=0) - C) / C.sum(),
            "softmax went down the columns: the logits of one row belong together.",
            score=2,
        ),
        Mistake(
            lambda W, C, d: d * (C.sum(axis=1, keepdims=True) * ml.softmax(W) - C) / W.size,
            "Divide by N, the number of pairs in the text, not by the number of entries of W.",
        ),
        Mistake(
            lambda W, C, d: d * (ml.softmax(W) - C / C.sum()),
            "Only the counts were divided by N: the prediction of row i comes Nᵢ times, so its weight is Nᵢ/N.",
        ),
        Mistake(
            lambda W, C, d: -d * C * (1 - ml.softmax(W)) / C.sum(),
            "This is the slope of ln p_ij by W_ij alone. Raising W_ij also lowers the other p of its row.",
        ),
        Mistake(
            _without_row_weights,
            "Prediction minus truth, but row i has the weight Nᵢ/N; and Nᵢ is 0 for a letter that never occurs.",
        ),
    ),
    hints=(
        "For a single pair (i, j) the slope of row i is softmax(Wᵢ) − one_hot(j), from chapter 7.",
        "Add up over all pairs: Nᵢ softmax(Wᵢ) − Cᵢ, then divide by N.",
    ),
)

# Words and proofs ---------------------------------------------------------------------------------------------------

QUESTIONS = Item(
    id="09.gradient_descent.optimiser_questions",
    kind="text",
    title="Three questions about training",
    difficulty=2,
    minutes=15,
    source="Part II (004), optimiser exercises (a) and (b); the primer (003), chapter IX, exercise 20",
    task="""
Answer each in two to four sentences.

1. In Adam, what does a large $\\hat v$ of a parameter mean, and how does it affect the effective learning rate of that
   parameter?
2. Why is warmup especially important for transformers, and less critical for convolutional networks (CNNs)? Use what
   you know: how good are Adam's averages in the first steps, and what does a saturated softmax do? (CNNs are usually
   trained by plain SGD with momentum and with a normalisation over the batch; the first transformers had their
   normalisation *after* each layer, where gradients near the output are large at first.)
3. Why does the gradient of a model have exactly as many numbers as the model has parameters, and how are they all
   obtained?
""",
    rubric=(
        (1, "1: recent squared gradients of this parameter are large (in size, not in variance)."),
        (1, "1: the effective rate η/(√v̂ + ε) shrinks like 1/√v̂."),
        (1, "2: Adam's first moment estimates rest on few, noisy gradients and are unreliable."),
        (1, "2: post-norm transformers have large gradients at initialisation near the output and in attention."),
        (1, "2: large early steps destabilise, for instance by saturating softmax, and are hard to undo."),
        (1, "2: CNNs with BatchNorm and SGD are better conditioned."),
        (1, "3: one partial derivative for each parameter."),
        (1, "3: one backward pass gives them all."),
    ),
    hints=("What does Adam divide by?", "How many gradients are in m and v after two steps?"),
    references=("part2.optq.a_vhat", "part2.optq.b_warmup", "primer.ch09.q20.why"),
)

BATCH_PROOF = Item(
    id="09.gradient_descent.batch_proof",
    kind="text",
    title="Half the noise for four times the work",
    difficulty=3,
    minutes=20,
    source="Foundations (001), section 3.2.1; Pillars (002), SGD and generalization",
    task="""
The gradients of $N$ examples (one weight) are $g_1, \\dots, g_N$, with the mean $g$ and the variance
$\\sigma^2 = \\frac1N\\sum_i (g_i - g)^2$. A minibatch draws $b$ of them at random, **with** replacement; $\\bar g$ is
their mean.

1. Prove $\\mathbb{E}[\\bar g] = g$.
2. Prove $\\operatorname{Var}[\\bar g] = \\sigma^2/b$. Where do you use that the draws are independent?
3. *Without* replacement 1 still holds, 2 does not. Why is $\\operatorname{Var}[\\bar g] = 0$ for $b = N$ then?
4. One step on a loss of curvature $c$, with $0 < \\eta < 2/c$ and noise: $w \\leftarrow w - \\eta(cw + \\xi)$, where
   ξ has mean 0 and variance $s^2$, independent of $w$. Show that in the long run
   $\\operatorname{Var}[w] = \\eta s^2/(c(2 - \\eta c))$, so that a constant rate ends in a cloud whose size goes to 0
   with η only.
""",
    rubric=(
        (1, "1: each draw has the mean g; the mean of a sum is the sum of the means (no independence needed)."),
        (1, "2: variances of independent draws add; the factor 1/b comes out squared: bσ²/b²."),
        (1, "2: independence makes the mixed terms (covariances) vanish."),
        (1, "3: without replacement and b = N the batch is all examples: its mean is always g."),
        (1, "4: Var' = (1 − ηc)² Var + η² s², and Var' = Var in the long run."),
        (1, "4: solved: Var = η² s²/(1 − (1 − ηc)²) = η s²/(c(2 − ηc))."),
    ),
    hints=(
        "Var[aX] = a² Var[X]; for independent X, Y: Var[X + Y] = Var[X] + Var[Y].",
        "For 4: take the variance on both sides, and set it equal before and after.",
    ),
    references=("pillars.sgd.unbiased", "pillars.sgd.var_batch"),
)

# Project ------------------------------------------------------------------------------------------------------------


def _to_length_one(g):
    return g / max(1.0, np.sqrt(np.sum(g * g)))


def _cosine_rate(t, steps, peak, warmup):
    if t <= warmup:
        return peak * t / warmup
    return 0.5 * peak * (1 + math.cos(math.pi * (t - warmup) / (steps - warmup)))


def _shrink_then_step(w, step, shrink):
    return (1 - shrink) * w - step


def _trained(
    X, y, steps, peak, decay, *,
    factor=2.0, clip=_to_length_one, rates=_cosine_rate, count=lambda t: t, move=_shrink_then_step, coupled=False,
):  # fmt: skip
    """Linear regression by AdamW with warmup, cosine and clipping; the options make the known mistakes."""
    w = np.zeros(X.shape[1])
    m, v = np.zeros_like(w), np.zeros_like(w)
    for t in range(1, steps + 1):
        g = clip(factor * X.T @ (X @ w - y) / len(y) + coupled * decay * w)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        rate = rates(t, steps, peak, max(1, steps // 10))
        n = count(t)
        direction = (m / (1 - 0.9**n)) / (np.sqrt(v / (1 - 0.999**n)) + 1e-8)
        w = move(w, rate * direction, rate * decay * (not coupled))
    return w


def _with(**options):
    """A training run with one thing done otherwise."""
    return lambda X, y, steps, peak, decay: _trained(X, y, steps, peak, decay, **options)


def _decay_without_rate(X, y, steps, peak, decay):
    return _trained(X, y, steps, peak, decay, move=lambda w, step, shrink: (1 - decay) * w - step)


def _summed(X, y, steps, peak, decay):
    return _trained(X, y, steps, peak, decay, factor=2.0 * len(y))


@each
def _regressions(rng, size):
    n, d = size
    X = rng.normal(size=(n, d))
    right = rng.choice([-1, 1], size=d) * rng.uniform(0.8, 1.5, size=d)  # at first too steep, in the end not
    return X, X @ right + 0.3 * rng.normal(size=n), 40, 0.1, 0.05


TRAINING = Item(
    id="09.gradient_descent.training",
    kind="function",
    title="A whole training run",
    difficulty=3,
    minutes=35,
    source="ours; Part II (004), the evolution of gradient descent",
    answer="train",
    masked=(
        "adam_step",
        "adamw_step",
        "sgd_step",
        "momentum_step",
        "rmsprop_step",
        "descend",
        "minimize",
        "descent_path",
        "warmup_cosine",
        "clip_gradient",
        "cosine_restarts",
    ),
    task="""
Put all the parts together. Write `train(X, y, steps, peak, decay)`: it fits $Xw \\approx y$ (`X` of shape `(n, d)`) and
returns the weights `w` after the last step. Everything is fixed:

- Start with $w = 0$. The loss is the **mean** of $(Xw - y)^2$ over the $n$ examples, on all of them in every step.
- **Clip**: a gradient longer than 1 is shortened to the length 1.
- **Schedule**, for the steps $t = 1, \\dots,$ `steps`: a straight warmup to `peak` during the first
  $T_w$ = `max(1, steps // 10)` steps (at $t = T_w$ the rate is `peak`), then half a cosine down to 0 at $t$ = `steps`.
- **AdamW** with $\\beta_1 = 0.9$, $\\beta_2 = 0.999$, $\\varepsilon = 10^{-8}$, bias correction, and the decoupled
  decay $\\lambda$ = `decay`: with the rate $\\eta$ of this step, the old $w$ loses the share $\\eta\\lambda$ of itself.

The package's optimisers, schedules and clipping are out of bounds: use your own.
""",
    expected=_trained,
    checks=(
        values(
            1,
            public=[(np.array([[1.0], [2.0]]), np.array([0.1, 0.2]), 1, 0.1, 0.0)],
            name="a single step",
            rtol=1e-6,
        ),
        values(2, _regressions((20, 3), (8, 2)), name="forty steps", rtol=1e-6),
        values(
            1,
            lambda rng: [(rng.normal(size=(30, 4)), 0.05 * rng.normal(size=30), 25, 0.02, 0.0)],
            name="short gradients, no decay",
            rtol=1e-6,
        ),
        leaves_inputs(1, _regressions((10, 2)), rtol=1e-6),
    ),
    mistakes=(
        Mistake(
            _with(clip=lambda g: g),
            "Long gradients are not clipped: their length must be at most 1 before they enter m and v.",
            score=2,
        ),
        Mistake(
            _with(rates=lambda t, *rest: _cosine_rate(t - 1, *rest)),
            "The schedule lags by one step: in the first step t is 1, not 0 (where the rate would be 0).",
        ),
        Mistake(
            _with(coupled=True),
            "The decay went into the gradient, where Adam divides it away. Shrink the weights beside Adam's step.",
            score=2,
        ),
        Mistake(
            _summed,
            "The loss is the mean over the examples, not the sum: with the sum every gradient is clipped.",
            score=1,
        ),
        Mistake(
            _with(count=lambda t: max(1, t - 1)),
            "The bias correction lags by one step: at step t it is 1/(1 − βᵗ).",
            score=1,
        ),
        Mistake(
            _with(count=lambda t: math.inf),
            "The bias correction is missing: divide m by 1 − 0.9ᵗ and v by 1 − 0.999ᵗ.",
        ),
        Mistake(
            _with(factor=1.0),
            "The slope of (Xw − y)² is 2 (Xw − y): the 2 is gone (and with it, when a gradient is clipped).",
            score=1,
        ),
        Mistake(
            _with(clip=lambda g: g / max(np.sqrt(np.sum(g * g)), 1e-12)),
            "Every gradient was brought to the length 1. Short ones stay as they are: `min(1, 1 / length)`.",
            score=1,
        ),
        Mistake(
            _with(clip=lambda g: np.clip(g, -1, 1)),
            "The entries were clipped one by one, which turns the gradient. Shorten it as a whole, by one factor.",
            score=2,
        ),
        Mistake(
            _with(rates=lambda t, steps, peak, warmup: peak),
            "The rate is constant: warmup and cosine are missing.",
            score=1,
        ),
        Mistake(
            _with(rates=lambda t, steps, peak, warmup: peak * min(1, t / warmup)),
            "The cosine is missing: after the warmup the rate falls to 0 at t = steps.",
            score=1,
        ),
        Mistake(
            _with(
                rates=lambda t, steps, peak, warmup: (
                    peak * t / warmup if t <= warmup else 0.5 * peak * (1 + math.cos(math.pi * t / steps))
                )
            ),
            "The cosine must count from the end of the warmup: (t − T_w)/(steps − T_w).",
            score=1,
        ),
        Mistake(
            _with(move=lambda w, step, shrink: (1 - shrink) * (w - step)),
            "Adam's step was shrunk with the weights: the old w loses its share ηλ, then the step is made.",
            score=2,
        ),
        Mistake(
            _with(move=lambda w, step, shrink: w - step),
            "The decay is missing: every step also takes the share rate · decay of each weight.",
            score=2,
        ),
        Mistake(
            _decay_without_rate,
            "The decay is not multiplied by the learning rate: each step takes the share rate · decay.",
            score=2,
        ),
        Mistake(
            _with(move=lambda w, step, shrink: _shrink_then_step(w, -step, shrink)),
            "The sign: the steps go uphill.",
        ),
    ),
    hints=(
        "The gradient of the mean of squares is 2 Xᵀ(Xw − y)/n.",
        "In this order: gradient, clipping, m and v, corrections, rate, step.",
        "rate = peak · t/T_w up to T_w, then ½ peak (1 + cos(π (t − T_w)/(steps − T_w))).",
    ),
)

# Check yourself (in the chapter, not graded) ------------------------------------------------------------------------


QUICK = [
    quick(
        "09.gradient_descent.quick_limit",
        "Too fast",
        "after the primer (003), chapter IX, figure 6",
        "The curvature is 4. Above which learning rate does plain descent run away?",
        lambda: 2 / 4,
        (
            Mistake(lambda: 0.25, "1/c arrives in one step. The limit is 2/c."),
            Mistake(lambda: 2, "The limit is 2 divided by the curvature."),
            Mistake(lambda: 8, "The steeper the valley, the smaller the limit: 2/c."),
        ),
    ),
    quick(
        "09.gradient_descent.quick_batch",
        "A larger batch",
        "Foundations (001), section 3.2.1",
        "A batch of 16 has the noise variance 3. What is it for a batch of 64?",
        lambda: 3 * 16 / 64,
        (
            Mistake(lambda: 1.5, "The noise halves, its variance becomes a quarter."),
            Mistake(lambda: 12, "Larger batches are less noisy."),
            Mistake(lambda: 3 / 16, "Four times as large, not sixteen times."),
        ),
    ),
    quick(
        "09.gradient_descent.quick_window",
        "How far back",
        "Foundations (001), section 3.2.2",
        "What is the averaging window of β = 0.95?",
        lambda: 1 / (1 - 0.95),
        (
            Mistake(lambda: 95, "The window is 1/(1 − β)."),
            Mistake(lambda: 1 / 0.95, "Divide 1 by 1 − β, not by β."),
            Mistake(lambda: 0.05, "This is 1 − β. The window is its inverse."),
        ),
    ),
    quick(
        "09.gradient_descent.quick_first",
        "Adam's first step",
        "Foundations (001), section 3.2.3",
        "What is the length of Adam's first step, with η = 0.01 and a gradient of −250?",
        lambda: 0.01,
        (
            Mistake(lambda: 2.5, "Adam divides by the size of the gradient: only η is left."),
            Mistake(lambda: 0.1, "Both means are corrected: m̂/√v̂ = −1."),
            Mistake(lambda: 0.0316, "Both means are corrected: m̂/√v̂ = −1, not 0.1/√0.001."),
        ),
    ),
    quick(
        "09.gradient_descent.quick_scale",
        "The ones that are kept",
        "Part II (004), dropout",
        "By which factor does dropout with p = 0.2 enlarge the units it keeps?",
        lambda: 1 / (1 - 0.2),
        (
            Mistake(lambda: 5, "1/p is wrong: a share 1 − p is kept, so divide by 1 − p."),
            Mistake(lambda: 0.8, "This is the share that is kept. The factor is its inverse."),
            Mistake(lambda: 1.2, "Divide by 0.8; 1.2 does not quite make up for it."),
        ),
    ),
]

ITEMS = [
    ONE_STEP,
    GRADIENT_LENGTH,
    OWN_VALLEY,
    WARMUP,
    HEAVY_BALL,
    ADAM,
    REPAIR_DECAY,
    REPAIR_SCHEDULE,
    QUESTIONS,
    TABLE_PULLBACK,
    BATCH_PROOF,
    TRAINING,
    *QUICK,
]
