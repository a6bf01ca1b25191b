"""Chapter 12, the transformer: norms and their gradients, counting, three families, and one block from scratch."""

from itertools import pairwise

import numpy as np

import mathllm as ml
from mathllm.exhibits.transformer import layer_norm_gradient_as_printed

from ..cases import each, normals, refusing
from ..item import Item, Mistake, gradient, keeps_dtype, leaves_inputs, quick, refuses, values

# Warm-up ------------------------------------------------------------------------------------------------------------


def _four_numbers(rng):
    """Four whole numbers whose mean is whole and not zero, and that are not all equal."""
    while True:
        x = rng.integers(-6, 10, size=4)
        if x.sum() % 4 == 0 and x.sum() != 0 and x.std() > 1:
            return {"x": x.tolist()}


def _normed(x, ddof=0, root=True, shift=True):
    x = np.array(x, float)
    spread = x.std(ddof=ddof)
    return (x - x.mean() if shift else x) / (spread if root else spread**2)


OWN_LAYER_NORM = Item(
    id="12.transformer.own_layer_norm",
    kind="value",
    title="Tame four numbers",
    difficulty=1,
    minutes=5,
    source="Foundations (001), section 5.2",
    answer="normed",
    task="""
`mine.x` holds four numbers. Give their layer norm with $\\gamma = 1$, $\\beta = 0$ and $\\epsilon = 0$, by hand: four
numbers in `normed`, right to three decimals.
""",
    numbers=_four_numbers,
    expected=_normed,
    checks=(values(2, decimals=3),),
    mistakes=(
        Mistake(
            lambda x: _normed(x, ddof=1),
            "You divided the squares by D − 1 = 3. Layer norm takes their mean: divide by 4.",
        ),
        Mistake(lambda x: _normed(x, root=False), "You divided by the variance. Divide by its root."),
        Mistake(lambda x: _normed(x, shift=False), "The mean was not taken away from the numbers themselves."),
        Mistake(
            lambda x: np.array(x) / np.sqrt(np.mean(np.square(x))),
            "This is RMS norm. Layer norm takes the mean away first.",
        ),
        Mistake(
            lambda x: np.array(x) - np.mean(x), "These are the deviations. Divide them by the root of the variance."
        ),
        Mistake(lambda x: -_normed(x), "The signs: number minus mean, not mean minus number."),
        Mistake(
            lambda x: _normed(x) / 2,
            "The squares were added up, not averaged: these have length 1, not mean square 1.",
        ),
        Mistake(
            lambda x: (np.array(x) - np.mean(x)) / np.mean(np.abs(np.array(x) - np.mean(x))),
            "You divided by the mean size of the deviations. Square them, take the mean, then the root.",
        ),
    ),
    hints=("Mean, deviations, mean of their squares, root.", "The four results have mean 0 and mean square 1."),
)

MLP_PARAMETERS = Item(
    id="12.transformer.mlp_parameters",
    kind="value",
    title="The heavy half of a block",
    difficulty=1,
    minutes=4,
    source="Foundations (001), section 8.1",
    answer="counts",
    task="""
The network of a block has width $D = 4096$ and hidden width $F = 4D$. Give two whole numbers in a list, `counts`: its
weights, and its weights together with both biases.
""",
    expected=lambda: [2 * 4096 * 4 * 4096, 2 * 4096 * 4 * 4096 + 5 * 4096],
    checks=(values(2, rtol=0),),
    mistakes=(
        Mistake(
            lambda: [4 * 4096**2, 4 * 4096**2 + 5 * 4096],
            "There are two matrices: one to widen and one to narrow again.",
        ),
        Mistake(
            lambda: [8 * 4096**2, 8 * 4096**2 + 2 * 4096], "The biases have the widths F and D: 5 D numbers, not 2 D."
        ),
        Mistake(
            lambda: [134e6, 134e6], "This is the rounded number that a document prints. The exact ones were asked for."
        ),
        Mistake(
            lambda: [12 * 4096**2, 12 * 4096**2 + 5 * 4096],
            "12 D² includes the attention's 4 D². Here is the network alone.",
        ),
        Mistake(
            lambda: [8 * 4096**2, 8 * 4096**2 + 4 * 4096],
            "The first bias is counted. The second, after the narrowing matrix, has D entries more.",
        ),
        Mistake(
            lambda: [8 * 4096**2, 8 * 4096**2 + 8 * 4096], "The second bias has the width of what comes out: D, not F."
        ),
        Mistake(lambda: [8 * 4096**2, 5 * 4096], "The second number should hold weights *and* biases."),
        Mistake(
            lambda: [8 * 4096**2 + 5 * 4096, 8 * 4096**2], "Both are right, but exchanged: first the weights alone."
        ),
    ),
    hints=("Shapes (D, 4D) and (4D, D).", "The first bias has F entries, the second D."),
    references=("foundations.mlp.params", "foundations.mlp.params_exact"),
)


def _some_ids(rng):
    return {"ids": rng.permutation(20)[:6].tolist()}


OWN_TARGETS = Item(
    id="12.transformer.own_targets",
    kind="value",
    title="What is asked at each position",
    difficulty=1,
    minutes=4,
    source="Part II (004), the transformer trace, step 8",
    answer="inputs_and_targets",
    task="""
`mine.ids` are the six tokens of a text. A GPT is trained on it: what goes in, and what should come out at each
position? Give two lists of equal length in a list, `inputs_and_targets`.
""",
    numbers=_some_ids,
    expected=lambda ids: [ids[:-1], ids[1:]],
    checks=(values(2, rtol=0),),
    mistakes=(
        Mistake(lambda ids: [ids[1:], ids[:-1]], "Inputs and targets have changed places: the target comes after."),
        Mistake(lambda ids: [ids[:-1], ids[:-1]], "The model would be asked for the token that it sees."),
        Mistake(lambda ids: [ids, ids], "Six inputs have no six targets: after the last token nothing is known."),
        Mistake(lambda ids: [ids[:-2], ids[1:-1]], "You lost one: six tokens give five pairs."),
        Mistake(
            lambda ids: [list(pair) for pair in pairwise(ids)],
            "The pairs are right. Give two lists instead: all inputs, and then all targets.",
        ),
        Mistake(lambda ids: [ids, ids[1:]], "The last token is never an input: nothing is known of what follows it."),
        Mistake(lambda ids: [ids[:-1], ids[-1:]], "Every position is asked, not the last alone."),
        Mistake(
            lambda ids: [ids, [*ids[1:], ids[0]]], "The last token is not followed by the first: leave that pair out."
        ),
    ),
    hints=("Position 1 sees the first token and is asked for the second.", "Six tokens, five pairs."),
    references=("part2.tf.targets", "part2.tf.signals"),
)


# Core ---------------------------------------------------------------------------------------------------------------


@each
def _norm_cases(rng, shape, dtype=float):
    D = shape[-1] if isinstance(shape, tuple) else shape
    x = rng.normal(size=shape) + 3
    return tuple(part.astype(dtype) for part in (x, rng.normal(size=D), rng.normal(size=D)))


_sized = refusing(lambda x, gain, bias: gain.shape != x.shape[-1:] or bias.shape != x.shape[-1:])


def _layer(x, gain, bias, axis=-1, ddof=0, epsilon=1e-5, root=True):
    centred = x - x.mean(axis=axis, keepdims=True)
    variance = x.var(axis=axis, keepdims=True, ddof=ddof) + np.asarray(epsilon, x.dtype)
    return centred / (np.sqrt(variance) if root else variance) * gain + bias


def _layer_in_place(x, gain, bias):
    answer = _layer(x, gain, bias)
    x -= x.mean(axis=-1, keepdims=True)
    return answer


def _over(x, statistic):
    return statistic(x, axis=-1, keepdims=True)


def _layer_without_epsilon(x, gain, bias):
    with np.errstate(invalid="ignore"):
        return _layer(x, gain, bias, epsilon=0.0)


def _layer_without_keepdims(x, gain, bias):
    variance = x.var(axis=-1) + np.asarray(1e-5, x.dtype)
    return (x - x.mean(axis=-1)) / np.sqrt(variance) * gain + bias


FOUR = np.array([1.0, 2.0, 3.0, 4.0])

LAYER_NORM = Item(
    id="12.transformer.layer_norm",
    kind="function",
    title="Layer norm",
    difficulty=2,
    minutes=12,
    source="Foundations (001), section 5.2",
    answer="layer_norm",
    masked=("layer_norm", "batch_norm"),
    task="""
Write `layer_norm(x, gain, bias)` with $\\epsilon = 10^{-5}$ under the root:

$$y = \\gamma\\odot\\frac{x-\\mu}{\\sqrt{\\sigma^2+\\epsilon}} + \\beta .$$

- `x` has shape `(..., D)`; mean and variance run along the **last** axis; `gain` and `bias` have shape `(D,)`.
- A vector whose components are all equal has variance 0: it becomes the bias, not NaN.
- A gain or bias of another width is refused with `ValueError`. (NumPy would stretch a gain of shape `(1,)`.)
- `float32` stays `float32`; the input is left as it was.
""",
    expected=ml.layer_norm,
    checks=(
        values(2, _norm_cases(4, 7), public=[(FOUR, np.ones(4), np.zeros(4))], name="one vector"),
        values(2, _norm_cases((3, 5), (2, 3, 4)), name="a batch of texts"),
        values(1, public=[(np.full(3, 7.0), np.ones(3), np.array([1.0, 2.0, 3.0]))], name="equal components"),
        keeps_dtype(1, _norm_cases((2, 6), dtype=np.float32)),
        leaves_inputs(1, _norm_cases((2, 4))),
        refuses(
            1,
            public=[
                (FOUR, np.ones(1), np.zeros(4)),
                (FOUR, np.ones(4), np.zeros(1)),
                (FOUR, np.ones(1), np.zeros(1)),
            ],
            name="refuses other widths",
        ),
    ),
    mistakes=(
        Mistake(
            _sized(lambda x, g, b: _layer(x, g, b, axis=0)),
            "You normalised along the first axis: that is batch norm. Each vector by itself: `axis=-1`.",
            score=4,
        ),
        Mistake(
            _sized(lambda x, g, b: _layer(x, g, b, axis=None)),
            "Mean and variance were taken over the whole array. Each vector has its own: `axis=-1, keepdims=True`.",
            score=4,
        ),
        Mistake(
            _sized(lambda x, g, b: _layer(x, g, b, ddof=1)),
            "You divided the squares by D − 1. Layer norm takes their mean.",
            score=2,
        ),
        Mistake(_sized(lambda x, g, b: _layer(x, g, b, root=False)), "The root of the variance is missing.", score=2),
        Mistake(
            _sized(lambda x, g, b: ml.rms_norm(x, g) + b),
            "This is RMS norm with a bias: the mean was not taken away.",
            score=1,
        ),
        Mistake(
            lambda x, g, b: _layer(x, g, b),
            "A gain of shape (1,) is silently stretched. Compare its shape with `x.shape[-1:]`.",
            score=7,
        ),
        Mistake(
            _sized(lambda x, g, b: ml.layer_norm(x.astype(float), g, b)),
            "Right, but float32 became float64 on the way. (A plain 1e-5 keeps it; an `np.float64` does not.)",
            score=7,
        ),
        Mistake(_sized(_layer_in_place), "Your function changes the caller's x: write `x - x.mean(…)`.", score=7),
        Mistake(
            _sized(lambda x, g, b: (x - _over(x, np.mean)) / (_over(x, np.std) + np.asarray(1e-5, x.dtype)) * g + b),
            "ε stands under the root, beside the variance, not beside σ.",
            score=3,
        ),
        Mistake(
            _sized(_layer_without_epsilon),
            "ε is missing: where all components are equal this is 0/0.",
            score=2,
        ),
        Mistake(_sized(lambda x, g, b: _layer(x, np.ones_like(g), b)), "The gain is missing.", score=2),
        Mistake(_sized(lambda x, g, b: _layer(x, g, np.zeros_like(b))), "The bias is missing.", score=1),
        Mistake(
            _sized(_layer_without_keepdims),
            "A stack of vectors raises an error: either the means lost an axis (`keepdims=True`), or the widths were "
            "compared with `len(x)`, which counts the rows: `x.shape[-1:]`.",
            score=4,
        ),
        Mistake(
            _sized(lambda x, g, b: _layer(g * x + b, np.ones_like(g), np.zeros_like(b))),
            "Gain and bias come after the norm; here they went in before, and it undid them.",
            score=1,
        ),
    ),
    hints=(
        "`x.mean(axis=-1, keepdims=True)` can be subtracted from every row.",
        "`x.var(axis=-1, keepdims=True)` divides by D, as it should.",
        "`gain.shape != x.shape[-1:]` finds a gain of another width.",
    ),
    references=("foundations.norm.layernorm", "foundations.norm.ln_moments"),
)


def _norm_slopes(x, gain, dy):
    return ml.vjp(lambda x: ml.layer_norm(x, gain, np.zeros_like(gain)), x)[1](dy)[0]


def _as_printed(x, gain, dy):
    return layer_norm_gradient_as_printed(x, gain, dy, 1e-5)


@each
def _gain_and_slope(rng, D, one=False):
    x = 2 * rng.permutation(D) + rng.uniform(size=D)  # so far apart that ε counts for nothing here
    return x, np.full(D, rng.uniform(0.5, 2)) if one else rng.normal(size=D), rng.normal(size=D)


def _only_scale(x, gain, dy):
    return gain * dy / np.sqrt(x.var() + 1e-5)


def _without_stretch(x, gain, dy):
    g = gain * dy
    return (g - g.mean()) / np.sqrt(x.var() + 1e-5)


def _one_root_too_few(x, gain, dy):
    centred, deviation, g = x - x.mean(), np.sqrt(x.var() + 1e-5), gain * dy
    return (g - g.mean() - centred / deviation * np.mean(g * centred)) / deviation


def _gain_in_the_first_term(x, gain, dy):
    unit = (x - x.mean()) / np.sqrt(x.var() + 1e-5)
    return (gain * dy - dy.mean() - unit * np.mean(dy * unit)) / np.sqrt(x.var() + 1e-5)


REPAIR_GRADIENT = Item(
    id="12.transformer.repair_gradient",
    kind="repair",
    title="Mend it: a gradient from a textbook",
    difficulty=3,
    minutes=20,
    source="Pillars (002), layer norm gradient",
    answer="layer_norm_gradient",
    masked=("layer_norm_gradient_as_printed", "vjp", "grad", "value_and_grad"),
    task="""
This is the gradient of layer norm for one vector, as one of the documents prints it:

```python
def layer_norm_gradient(x, gain, dy, epsilon=1e-5):
    centred = x - x.mean()
    variance = np.mean(centred**2)
    bracket = dy - dy.mean() - centred / variance * np.mean(dy * centred)
    return gain / np.sqrt(variance + epsilon) * bracket
```

For a gain that is the same in every component it passes a test. Mend it for a gain **vector** of shape `(D,)`, and for
every $\\epsilon$. (Where does the gain act, before or after the norm's own averages?)
""",
    expected=_norm_slopes,
    checks=(
        gradient(
            3,
            lambda x, gain: ml.layer_norm(x, gain, np.zeros_like(gain)),
            _gain_and_slope(3, 5),
            public=[
                (np.array([0.5, -1.2, 2.0, 0.3]), np.array([0.2, -0.4, 0.1, 0.7]), np.array([0.7, -0.3, 0.9, 0.4]))
            ],
            name="a gain vector",
            rtol=1e-4,  # coarse enough to let ε pass: it has a check of its own
        ),
        values(1, _gain_and_slope(4, one=True), name="one gain for all", rtol=1e-4, atol=1e-4),
        values(
            2,
            lambda rng: [(1e-3 * rng.normal(size=4), rng.normal(size=4), rng.normal(size=4)) for _ in range(2)],
            name="a small vector, where ε counts",
        ),
    ),
    mistakes=(
        Mistake(
            _as_printed,
            "Still as printed: the gain is multiplied last. Slopes pass it first: g = γ ⊙ dy, inside both averages.",
            score=1,
        ),
        Mistake(_only_scale, "Mean and variance move with x as well: two terms have to be subtracted."),
        Mistake(
            _without_stretch,
            "One term is missing: the part of g along x̂, which would only stretch the vector.",
            score=0,
        ),
        Mistake(
            lambda x, gain, dy: _as_printed(x, np.ones_like(gain), gain * dy),
            "The gain is right now. The last term divides by σ² alone: x̂ contains √(σ² + ε).",
            score=4,
        ),
        Mistake(
            lambda x, gain, dy: gain * _norm_slopes(x, gain, dy),
            "The gain acts twice now: it belongs into g = γ ⊙ dy, and not in front of the bracket as well.",
        ),
        Mistake(
            lambda x, gain, dy: _norm_slopes(x, np.ones_like(gain), dy),
            "The gain is gone. Slopes pass it first: g = γ ⊙ dy.",
        ),
        Mistake(
            _gain_in_the_first_term,
            "The gain belongs into both averages as well: replace dy by g everywhere.",
        ),
        Mistake(
            lambda x, gain, dy: _norm_slopes(x, gain, dy) * np.sqrt(x.var() + 1e-5),
            "The division by √(σ² + ε) in front is gone.",
        ),
        Mistake(
            _one_root_too_few,
            "x̂ stands in the last term twice, in front and under the mean: each time with its √(σ² + ε).",
        ),
    ),
    hints=(
        "Let g = γ ⊙ dy: the slopes with respect to x̂.",
        "Write x̂ = (x − μ)/√(σ² + ε) and use it in the last term: x̂ · mean(g ⊙ x̂).",
    ),
    references=(
        "pillars.lngrad.scalar_gamma",
        "pillars.lngrad.vector_gamma",
        "pillars.lngrad.eps_term",
        "pillars.lngrad.corrected",
        "pillars.lngrad.values",
    ),
)


def _gpt2(V, D, L, T):
    return ml.parameter_count(ml.gpt2_config(vocabulary=V, width=D, layers=L, heads=1, context=T))["total"]


def _gpt_sizes(rng):
    return [tuple(int(n) for n in (rng.integers(10, 60_000), 8 * rng.integers(1, 200), rng.integers(1, 60), 128))] * 2


PARAMETER_COUNT = Item(
    id="12.transformer.parameter_count",
    kind="function",
    title="Count a GPT to the last number",
    difficulty=2,
    minutes=15,
    source="Foundations (001), section 8.2",
    answer="gpt_parameters",
    masked=("parameter_count", "count_parameters", "approximate_parameters", "Transformer"),
    task="""
Write `gpt_parameters(V, D, L, T)`: the exact number of parameters of a GPT-2 with vocabulary $V$, width $D$,
$L$ blocks and context $T$.

- Embedding table $(V, D)$, which is the unembedding as well; position table $(T, D)$.
- Per block: four square projections with a bias each; a network with $F = 4D$ and two biases; two layer norms, each
  with gain and bias.
- One more layer norm at the end.

GPT-2 small, `gpt_parameters(50257, 768, 12, 1024)`, has 124,439,808.
""",
    expected=_gpt2,
    checks=(
        values(2, public=[(50257, 768, 12, 1024)], name="GPT-2 small", rtol=0),
        values(3, _gpt_sizes, public=[(10, 2, 1, 4), (50257, 12288, 96, 2048)], name="other sizes", rtol=0),
    ),
    mistakes=(
        Mistake(lambda V, D, L, T: 12 * L * D * D, "This is the rule of thumb. Tables, biases and norms are missing."),
        Mistake(
            lambda V, D, L, T: V * D + T * D + 12 * L * D * D,
            "Tables and weights are right; biases and norms are missing.",
        ),
        Mistake(lambda V, D, L, T: _gpt2(V, D, L, T) - T * D, "The position table is missing."),
        Mistake(lambda V, D, L, T: _gpt2(V, D, L, T) - 2 * D, "The layer norm at the end is missing."),
        Mistake(
            lambda V, D, L, T: _gpt2(V, D, L, T) + V * D, "The table is shared: embedding and unembedding count once."
        ),
        Mistake(
            lambda V, D, L, T: _gpt2(V, D, L, T) - L * 9 * D, "The weights' biases are missing: 4 D and 5 D per block."
        ),
        Mistake(
            lambda V, D, L, T: _gpt2(V, D, L, T) - 4 * L * D, "The four projections have a bias each: 4 D per block."
        ),
        Mistake(
            lambda V, D, L, T: _gpt2(V, D, L, T) - 5 * L * D, "The network has two biases, F and D wide: 5 D per block."
        ),
        Mistake(
            lambda V, D, L, T: _gpt2(V, D, L, T) - 3 * L * D, "The network's first bias is F = 4 D wide, not D."
        ),
        Mistake(
            lambda V, D, L, T: _gpt2(V, D, L, T) - (2 * L + 1) * D, "A layer norm has a bias beside its gain: 2 D each."
        ),
        Mistake(
            lambda V, D, L, T: _gpt2(V, D, L, T) - 2 * L * D, "A block has two norms, one for each sublayer: 4 D."
        ),
        Mistake(
            lambda V, D, L, T: _gpt2(V, D, L, T) - V * D, "The embedding table is missing: V rows of width D."
        ),
        Mistake(
            lambda V, D, L, T: _gpt2(V, D, 1, T), "This is a model with one block: all of a block comes L times."
        ),
        Mistake(
            lambda V, D, L, T: _gpt2(V, D, L, T) - L * (D * D + D),
            "Three projections were counted: the one that mixes the heads is the fourth.",
        ),
    ),
    hints=(
        "Attention: 4 D² + 4 D. Network: 8 D² + 5 D. Two norms: 4 D.",
        "All together L (12 D² + 13 D) + 2 D + V D + T D.",
    ),
    references=("foundations.embed.tying",),
)


def _texts(rng):
    cases = []
    for shape in [(2, 8), (3, 20)]:
        tokens = rng.integers(100, size=shape)
        chosen = rng.random(size=shape) < 0.4
        cases.append((tokens, chosen, rng.random(size=shape), rng.integers(100, size=shape), 103))
    return cases


def _corrupt(tokens, chosen, lottery, random_tokens, mask):
    inputs = np.where(chosen & (lottery < 0.8), mask, tokens)
    inputs = np.where(chosen & (lottery >= 0.8) & (lottery < 0.9), random_tokens, inputs)
    return inputs, np.where(chosen, tokens, -100)


def _corrupt_in_place(tokens, chosen, lottery, random_tokens, mask):
    answer = _corrupt(tokens, chosen, lottery, random_tokens, mask)
    tokens[chosen] = mask
    return answer


SMALL_TEXT = (
    np.array([[5, 6, 7, 8]]), np.array([[True, True, True, False]]), np.array([[0.1, 0.85, 0.95, 0.5]]),
    np.array([[1, 2, 3, 4]]), 103,
)  # fmt: skip

MASK_TOKENS = Item(
    id="12.transformer.mask_tokens",
    kind="function",
    title="Hide and seek",
    difficulty=2,
    minutes=12,
    source="Part II (004), BERT's masked language modelling; Devlin et al. 2019, section 3.1",
    answer="mask_tokens",
    task="""
Write `mask_tokens(tokens, chosen, lottery, random_tokens, mask)`: BERT's corruption, with all chance handed in from
outside. `tokens` are ids of shape `(B, T)`; `chosen` (booleans) says which are asked for; `lottery` holds a number in
[0, 1) for each token, `random_tokens` an id, and `mask` is the id of [MASK].

Return a pair `(inputs, labels)`:

- A chosen token becomes `mask` if its lottery number is below 0.8, its random token if it is below 0.9, and stays
  otherwise.
- Tokens that are not chosen stay.
- `labels` are the original ids where a token was chosen (also where it stayed!), and −100 elsewhere.
- The tokens handed in are left as they were.
""",
    expected=_corrupt,
    checks=(
        values(3, _texts, public=[SMALL_TEXT], name="inputs and labels", rtol=0),
        values(
            1,
            public=[(np.array([[4, 2]]), np.zeros((1, 2), bool), np.zeros((1, 2)), np.ones((1, 2), int), 9)],
            name="nothing chosen",
            rtol=0,
        ),
        leaves_inputs(1, _texts, public=[SMALL_TEXT]),
    ),
    mistakes=(
        Mistake(
            lambda t, c, l, r, m: (np.where(c, m, t), np.where(c, t, -100)),
            "All chosen tokens became [MASK]. A tenth is replaced by a random token, and a tenth stays.",
            score=1,
        ),
        Mistake(
            lambda t, c, l, r, m: (_corrupt(t, c, l, r, m)[0], np.where(_corrupt(t, c, l, r, m)[0] != t, t, -100)),
            "A chosen token that stayed is asked for, too: labels follow `chosen`, not what has changed.",
            score=1,
        ),
        Mistake(
            lambda t, c, l, r, m: (_corrupt(t, c, l, r, m)[0], t),
            "The loss would count every token. Labels are −100 where nothing is asked.",
        ),
        Mistake(
            lambda t, c, l, r, m: (np.where(l < 0.8, m, np.where(l < 0.9, r, t)), np.where(c, t, -100)),
            "Tokens that were not chosen have been changed as well.",
        ),
        Mistake(
            lambda t, c, l, r, m: (_corrupt(t, c, l, r, m)[0], np.where(c, _corrupt(t, c, l, r, m)[0], -100)),
            "The labels are the corrupted tokens. Asked for are the original ones.",
            score=1,
        ),
        Mistake(_corrupt_in_place, "Your function overwrites the caller's tokens: work on a copy.", score=4),
        Mistake(
            lambda *args: _corrupt(*args)[::-1], "Both arrays are right, but exchanged: the inputs come first."
        ),
        Mistake(
            lambda t, c, l, r, m: (_corrupt(t, c, l, r, m)[0], np.where(c, t, -1)),
            "−1 is a token counted from the end, in NumPy. The label that is not counted is −100.",
        ),
        Mistake(
            lambda t, c, l, r, m: (_corrupt(t, c, l, r, m)[0], np.where(c & (l < 0.8), t, -100)),
            "The random and the unchanged ones are asked for, too: labels follow `chosen`.",
            score=1,
        ),
        Mistake(
            lambda t, c, l, r, m: (np.where(c & (l < 0.8), m, np.where(c, r, t)), np.where(c, t, -100)),
            "From 0.9 on a chosen token stays as it is.",
            score=1,
        ),
        Mistake(
            lambda t, c, l, r, m: (_corrupt(t, c, l, r, m)[0], np.where(c, -100, t)),
            "The labels are the other way round: the ids where a token was chosen, −100 elsewhere.",
        ),
        Mistake(
            lambda t, c, l, r, m: (np.where(c & (l < 0.8), m, t), np.where(c, t, -100)),
            "Between 0.8 and 0.9 a chosen token becomes its random token.",
            score=1,
        ),
    ),
    hints=(
        "`np.where(condition, a, b)` chooses entry by entry.",
        "First the masks, then the random ones, then the labels.",
    ),
    references=("part2.bert.mask_rate",),
)


def _logits_and_tokens(rng):
    return [
        (rng.normal(size=(B, T, V)) * 2, rng.integers(V, size=(B, T))) for B, T, V in [(1, 2, 3), (2, 5, 4), (3, 8, 11)]
    ]


def _next_token_loss(logits, tokens):
    return ml.cross_entropy(logits[:, :-1], tokens[:, 1:])


def _shifted_texts(logits, tokens):
    return ml.cross_entropy(logits[:-1], tokens[1:])


REPAIR_SHIFT = Item(
    id="12.transformer.repair_shift",
    kind="repair",
    title="Mend it: a loss of almost zero",
    difficulty=2,
    minutes=10,
    source="Part II (004), the transformer trace, step 8",
    answer="next_token_loss",
    task="""
A GPT with a causal mask trains to a loss of almost zero within a minute, and writes nonsense. This is its loss:

```python
def next_token_loss(logits, tokens):
    return ml.cross_entropy(logits, tokens)
```

What has it learned? Mend the loss. `logits` has shape `(B, T, V)`; position $t$ has seen the tokens up to $t$.
""",
    expected=_next_token_loss,
    checks=(
        values(2, _logits_and_tokens, name="right values"),
        values(
            1,
            public=[(np.array([[[0.0, 9.0], [1.0, 0.0]]]), np.array([[0, 1]]))],
            name="a text of two tokens",
        ),
    ),
    mistakes=(
        Mistake(
            lambda logits, tokens: ml.cross_entropy(logits, tokens),
            "Still as printed: each position is asked for the token that it sees. It learns to copy.",
        ),
        Mistake(
            lambda logits, tokens: ml.cross_entropy(logits[:, 1:], tokens[:, :-1]),
            "Shifted the wrong way: each position is asked for the token before it.",
        ),
        Mistake(
            lambda logits, tokens: ml.cross_entropy(logits, np.roll(tokens, -1, axis=1)),
            "The last position is asked for the first token of the text: `np.roll` goes round. Leave it out.",
        ),
        Mistake(
            lambda logits, tokens: ml.cross_entropy(logits[:, :-1], tokens[:, 1:], reduction="sum"),
            "This is the sum. The loss is the mean over the positions that are asked.",
            score=1,
        ),
        Mistake(
            lambda logits, tokens: ml.cross_entropy(logits[:, 1:], tokens[:, 1:]),
            "Both were cut at the beginning, so each position still meets the token that it sees.",
        ),
        Mistake(
            lambda logits, tokens: ml.cross_entropy(logits[:, :-1], tokens[:, :-1]),
            "Both were cut at the end, so each position still meets the token that it sees.",
        ),
        Mistake(
            _shifted_texts,
            "You shifted along the first axis, from text to text. The positions are the second: `[:, :-1]`.",
        ),
        Mistake(
            lambda logits, tokens: ml.cross_entropy(logits[:, -2:-1], tokens[:, -1:]),
            "Only the last token is asked for. Every position counts.",
            score=1,
        ),
        Mistake(
            lambda logits, tokens: _next_token_loss(logits, tokens) / np.log(2),
            "These are bits; this book's losses are in nats, with the natural logarithm.",
        ),
        Mistake(
            lambda logits, tokens: -_next_token_loss(logits, tokens),
            "The sign: the loss is the mean of −ln p, never negative.",
        ),
        Mistake(
            lambda logits, tokens: _next_token_loss(logits, tokens) * (1 - 1 / tokens.shape[1]),
            "The sum was divided by T. T tokens give T − 1 predictions: divide by their number.",
        ),
    ),
    hints=(
        "Position 1 has seen token 1 and should predict token 2.",
        "The last position has no token after it, the first token no position before it.",
    ),
)


# Derivation and proof -----------------------------------------------------------------------------------------------


def _rms_slopes(x, gain, dy):
    return ml.vjp(ml.rms_norm, x, gain)[1](dy)


def _rms_parts(x, gain):
    r = np.sqrt(np.mean(x * x) + 1e-5)
    return r, x / r


def _rms_rule(rule):
    def pullback(x, gain, dy):
        r, u = _rms_parts(x, gain)
        return rule(dy * gain, u, r, dy), dy * u

    return pullback


def _rms_without_epsilon(x, gain, dy):
    r = np.sqrt(np.mean(x * x))
    g, u = gain * dy, x / r
    return (g - u * np.mean(g * u)) / r, dy * u


RMS_PULLBACK = Item(
    id="12.transformer.rms_pullback",
    kind="gradient",
    title="The gradient of RMS norm",
    difficulty=3,
    minutes=20,
    source="Foundations (001), section 5.3; Zhang & Sennrich 2019",
    answer="rms_norm_pullback",
    masked=("rms_norm", "vjp", "grad", "value_and_grad"),
    task="""
Let $y = \\gamma\\odot x/r$ with $r = \\sqrt{\\tfrac1D\\sum_i x_i^2 + \\epsilon}$ and $\\epsilon = 10^{-5}$, for
one vector $x$ of shape `(D,)`. Derive $\\partial r/\\partial x_i$ first. Then write
`rms_norm_pullback(x, gain, dy)`, which returns a pair `(dx, dgain)`.
""",
    expected=_rms_slopes,
    checks=(
        gradient(
            4,
            ml.rms_norm,
            normals(2, 5, count=3),
            public=[(FOUR, np.ones(4), np.array([1.0, 0.0, 0.0, 0.0]))],
            wrt=(0, 1),
        ),
        leaves_inputs(1, normals(4, count=3)),
    ),
    mistakes=(
        Mistake(
            _rms_rule(lambda g, u, r, dy: g / r),
            "You treated r as a constant. It moves with every xᵢ: ∂r/∂xᵢ = xᵢ/(D r).",
        ),
        Mistake(
            _rms_rule(lambda g, u, r, dy: (g - u * np.sum(g * u)) / r),
            "The mean of g ⊙ u, not the sum: r is a *mean* square.",
        ),
        Mistake(
            _rms_rule(lambda g, u, r, dy: (g - g.mean() - u * np.mean(g * u)) / r),
            "This is layer norm's gradient: RMS norm takes no mean away, so nothing is subtracted for it.",
        ),
        Mistake(
            _rms_rule(lambda g, u, r, dy: (dy - u * np.mean(dy * u)) / r),
            "The gain is missing: g = γ ⊙ dy goes into dx.",
        ),
        Mistake(
            lambda x, gain, dy: (_rms_slopes(x, gain, dy)[0], dy * x),
            "dγ is dy ⊙ x/r: the gain multiplies the normalised vector.",
        ),
        Mistake(
            _rms_rule(lambda g, u, r, dy: (g + u * np.mean(g * u)) / r),
            "The sign: 1/r falls when r grows, so the second term is subtracted.",
        ),
        Mistake(
            _rms_rule(lambda g, u, r, dy: (g - u * r * np.mean(g * u)) / r),
            "The second term contains u = x/r, not x.",
        ),
        Mistake(
            lambda x, gain, dy: (_rms_slopes(x, gain, dy)[0], dy * gain * x / np.sqrt(np.mean(x * x) + 1e-5)),
            "dγ is dy ⊙ u, without γ itself: a product's slope towards one factor is the other.",
        ),
        Mistake(lambda *args: _rms_slopes(*args)[::-1], "The order is dx, dgain."),
        Mistake(_rms_without_epsilon, "ε = 10⁻⁵ under the root is missing: it counts where x is small."),
        Mistake(
            lambda *args: (_rms_slopes(*args)[0], np.sum(_rms_slopes(*args)[1])),
            "The gain is a vector, and so is its gradient: nothing is added up for a single x.",
        ),
        Mistake(lambda *args: _rms_slopes(*args)[0], "dx is right. Return the gain's gradient with it: (dx, dgain)."),
    ),
    hints=(
        "r² = mean(x²) + ε. Nudge both sides: 2 r ∂r/∂xᵢ = 2 xᵢ/D.",
        "With u = x/r and g = γ ⊙ dy: first the term with r fixed, then the term through r.",
        "dx = (g − u · mean(g ⊙ u))/r, dγ = dy ⊙ u.",
    ),
    references=("foundations.norm.rmsnorm",),
)

RESIDUAL_PATH = Item(
    id="12.transformer.residual_path",
    kind="text",
    title="A path of one's own",
    difficulty=2,
    minutes=15,
    source="ours; 000, step 5; Part II (004), step 7",
    task="""
Let $J_f$ be the Jacobian of a sublayer $f$ (with its norm inside, for pre-norm), and $J_n$ that of the norm.

1. Show that the Jacobian of a pre-norm sublayer $x + f(x)$ is $I + J_f$, and write that of $L$ of them in a row as a
   product.
2. Show that for a post-norm sublayer, $\\operatorname{norm}(x + f(x))$, it is $J_n\\,(I + J_f)$. What is left of it
   when $f = 0$, and why is that not $I$?
3. Conclude why the gradient of a deep pre-norm stack cannot vanish only because *some* sublayers have small
   Jacobians, and what the price is. (What happens to the size of the stream?)
""",
    rubric=(
        (1, "Sum rule: the identity contributes I, f contributes J_f; the stack has the product of the (I + J_f)."),
        (1, "Chain rule: J_n taken at x + f(x), times (I + J_f)."),
        (1, "f = 0 leaves J_n, which removes the shift and the stretch of x and scales by 1/σ: it is singular, not I."),
        (1, "Pre-norm: a factor with J_f ≈ 0 is ≈ I and passes the gradient on; the stream grows with the depth."),
    ),
    hints=("Which part of the sum has the Jacobian I?", "Layer norm cannot see a common shift: what is J_n (1, …, 1)?"),
)


# Project ------------------------------------------------------------------------------------------------------------


def _relu(h):
    return np.maximum(0, h)


def _sublayers(
    x, gains, projections, network, heads, *,
    mask=ml.causal_mask, order="pre", residual=(True, True), scale=None, side_by_side=False, norm=ml.rms_norm,
    bend=_relu, merge=ml.merge_heads,
):  # fmt: skip
    """A block, or one with a mistake."""
    first, second = gains
    query, key, value, output = projections
    up, down = network

    def attend(h):
        T, D = h.shape
        q, k, v = (ml.split_heads(h @ W, heads) for W in (query, key, value))
        if scale is not None:
            q = q * scale(D, heads)
        allowed = mask(T) if mask else None
        return merge(ml.attention(q, k, v, mask=allowed)) @ output

    def think(h):
        return bend(h @ up) @ down

    start = x
    for f, gain, kept in ((attend, first, residual[0]), (think, second, residual[1])):
        read = norm(start if side_by_side else x, gain) if order in ("pre", "inside") else x
        x = f(read) + (read if order == "inside" else x) * kept
        if order == "post":
            x = norm(x, gain)
    return x


def _block(x, gains, projections, network, heads):
    return _sublayers(x, gains, projections, network, heads)


def _block_in_place(x, gains, projections, network, heads):
    x[:] = _block(x, gains, projections, network, heads)
    return x


@each
def _block_cases(rng, size):
    T, D, H = size
    return (
        rng.normal(size=(T, D)),
        rng.normal(size=(2, D)),
        rng.normal(size=(4, D, D)) / np.sqrt(D),
        (rng.normal(size=(D, 4 * D)) / np.sqrt(D), rng.normal(size=(4 * D, D)) / np.sqrt(4 * D)),
        H,
    )


def _wrong_block(**wrong):
    return lambda x, gains, projections, network, heads: _sublayers(x, gains, projections, network, heads, **wrong)


BLOCK = Item(
    id="12.transformer.block",
    kind="function",
    title="A block of your own",
    difficulty=3,
    minutes=40,
    source="Foundations (001), section 8.1; Part II (004), step 7",
    answer="block",
    masked=("multi_head_attention", "Transformer", "feed_forward"),
    task="""
Write `block(x, gains, projections, network, heads)`: one pre-norm transformer block for one text, without biases.

- `x`: `(T, D)`, the stream. `gains`: `(2, D)`, of the RMS norms before the attention and before the network.
- `projections`: `(4, D, D)`, the matrices $W_Q, W_K, W_V, W_O$; `heads` equal slices of width $K = D/H$ of the first
  three belong to the heads, as in chapter 10. The attention is **causal** and divides by $\\sqrt K$.
- `network`: a pair of $W_{\\text{up}}$ `(D, F)` and $W_{\\text{down}}$ `(F, D)` with ReLU between.
- Each sublayer is added to the stream.

`ml.rms_norm`, `ml.attention`, `ml.causal_mask`, `ml.split_heads` and `ml.merge_heads` are at your service.
""",
    expected=_block,
    checks=(
        values(3, _block_cases((4, 8, 1), (1, 4, 1)), name="one head"),
        values(3, _block_cases((5, 8, 2), (3, 12, 4)), name="several heads"),
        leaves_inputs(1, _block_cases((3, 4, 2))),
    ),
    mistakes=(
        Mistake(_wrong_block(mask=None), "Tokens see what comes after them: the causal mask is missing."),
        Mistake(
            _wrong_block(order="post"),
            "This is post-norm: the norm stands after the sum. Here it stands before each sublayer.",
        ),
        Mistake(_wrong_block(residual=(False, False)), "The sublayers replace the stream. Add them to it."),
        Mistake(
            _wrong_block(residual=(False, True)), "What the attention writes replaces the stream: `x + …` here, too."
        ),
        Mistake(
            _wrong_block(residual=(True, False)), "What the network writes replaces the stream: `x + …` here, too."
        ),
        Mistake(
            _wrong_block(mask=lambda T: ml.causal_mask(T).T),
            "The mask is the other way round: a token sees itself and those *before* it.",
        ),
        Mistake(
            _wrong_block(merge=lambda mixed: mixed.reshape(mixed.shape[1], -1)),
            "The heads were merged without swapping the axes of heads and tokens back: `ml.merge_heads`.",
            score=3,
        ),
        Mistake(
            lambda x, gains, projections, network, heads: ml.rms_norm(
                _block(x, gains, projections, network, heads), gains[1]
            ),
            "The norm at the very end belongs to the model, not to the block.",
        ),
        Mistake(
            _wrong_block(scale=lambda D, H: 1 / np.sqrt(H)),
            "You divided by √D in place of √K: each head has the width K = D/H.",
            score=3,
        ),
        Mistake(
            lambda x, gains, projections, network, heads: _block(x, gains[::-1], projections, network, heads),
            "The two gains have changed places: the first belongs to the attention.",
        ),
        Mistake(
            lambda x, gains, projections, network, heads: _block(x, gains, projections, network, 1),
            "All of the width went into one head. Split queries, keys and values into `heads` slices.",
            score=3,
        ),
        Mistake(
            lambda x, gains, projections, network, heads: _block(x, gains[[0, 0]], projections, network, heads),
            "Both norms use the first gain: the network's norm has its own, `gains[1]`.",
        ),
        Mistake(
            lambda x, gains, projections, network, heads: _block(x, np.ones_like(gains), projections, network, heads),
            "The gains of the norms are missing.",
        ),
        Mistake(
            lambda x, gains, projections, network, heads: _block(
                x, gains, [*projections[:3], np.eye(x.shape[1])], network, heads
            ),
            "The heads' outputs still have to be mixed: multiply by W_O.",
        ),
        Mistake(
            _wrong_block(order="none"), "The norms are missing: each sublayer reads the stream through one."
        ),
        Mistake(
            _wrong_block(order="inside"),
            "The sublayers were added to the *normed* vector. The stream itself stays as it is: x + f(norm(x)).",
        ),
        Mistake(
            _wrong_block(side_by_side=True),
            "Attention and network both read the old stream. The network comes after: it reads what attention wrote.",
        ),
        Mistake(
            _wrong_block(norm=lambda x, gain: ml.layer_norm(x, gain, np.zeros_like(gain))),
            "These are layer norms, which take the mean away. Asked for are RMS norms.",
        ),
        Mistake(_wrong_block(bend=lambda h: h), "The network does not bend: there is a ReLU between the two matrices."),
        Mistake(
            _wrong_block(bend=lambda h: np.asarray(ml.gelu(h))), "The network bends with the ReLU here, not the GELU."
        ),
        Mistake(
            _block_in_place,
            "Your function changes the caller's x: `x = x + …` makes a new array, `x += …` does not.",
            score=6,
        ),
    ),
    hints=(
        "`h = ml.rms_norm(x, gains[0])`, then queries, keys and values of h, each through `ml.split_heads(…, heads)`.",
        "`ml.attention(q, k, v, mask=ml.causal_mask(T))` does all heads at once; then `ml.merge_heads` and W_O.",
        "`x = x + …` twice; the network reads `ml.rms_norm(x, gains[1])`.",
    ),
)


# Check yourself (in the chapter, not graded) ------------------------------------------------------------------------

QUICK = [
    quick(
        "12.transformer.quick_rms",
        "Root, mean, square",
        "Foundations (001), section 5.3",
        "What is the root mean square of [3, 4, 0, 0]?",
        lambda: np.sqrt(np.mean(np.square([3.0, 4.0, 0.0, 0.0]))),
        (
            Mistake(lambda: 5, "This is the length. The mean of the four squares comes under the root."),
            Mistake(lambda: 6.25, "Take the root."),
            Mistake(lambda: 1.75, "This is the mean."),
        ),
    ),
    quick(
        "12.transformer.quick_attention",
        "Four projections",
        "Foundations (001), section 8.2",
        "A block has D = 768 and F = 4D. How many weights has its attention (four projections, no biases)?",
        lambda: 4 * 768**2,
        (
            Mistake(lambda: 8 * 768**2, "These are the weights of the network."),
            Mistake(lambda: 768**2, "This is one projection; there are four."),
            Mistake(lambda: 12 * 768**2, "This is the whole block."),
        ),
    ),
    quick(
        "12.transformer.quick_signals",
        "Ten tokens",
        "Part II (004), the transformer trace, step 8",
        "A text of 10 tokens is fed to a GPT. How many predictions can be compared with the text?",
        lambda: 9,
        (
            Mistake(lambda: 10, "What comes after the tenth token, the text does not say."),
            Mistake(lambda: 1, "Every position predicts, not only the last."),
        ),
    ),
    quick(
        "12.transformer.quick_mask",
        "Fifteen and eighty",
        "Devlin et al. 2019, section 3.1",
        "Of 1,000 tokens, how many does BERT replace by [MASK], on average?",
        lambda: 1000 * 0.15 * 0.8,
        (
            Mistake(lambda: 150, "So many are chosen. Of these 80 % become [MASK]."),
            Mistake(lambda: 800, "80 % of the chosen ones, and 15 % are chosen."),
        ),
    ),
    quick(
        "12.transformer.quick_identity",
        "Two silent sublayers",
        "000, step 5",
        "In a pre-norm block both sublayers answer zero. By which factor does the block change its input?",
        lambda: 1,
        (
            Mistake(lambda: 0, "The sublayers are added to the stream; they do not replace it."),
            Mistake(lambda: 2, "x + 0 is x."),
        ),
    ),
]

ITEMS = [
    OWN_LAYER_NORM,
    MLP_PARAMETERS,
    OWN_TARGETS,
    LAYER_NORM,
    PARAMETER_COUNT,
    MASK_TOKENS,
    REPAIR_SHIFT,
    REPAIR_GRADIENT,
    RMS_PULLBACK,
    RESIDUAL_PATH,
    BLOCK,
    *QUICK,
]
