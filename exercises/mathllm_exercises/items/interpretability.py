"""Chapter 16, interpretability: crowded spaces, reading the stream, patching, an honest dictionary, a circuit found."""

import numpy as np

import mathllm as ml

from ..cases import each, refusing
from ..item import Item, Mistake, gradient, leaves_inputs, quick, refuses, values

# Warm-up ------------------------------------------------------------------------------------------------------------


def _own_crowd(rng):
    return {"d": int(rng.choice([256, 512, 768, 1024])), "N": int(rng.choice([10_000, 20_000, 50_000]))}


def _overlaps(d, N, log=np.log, pairs=4, bound=None):
    return [
        1 / np.sqrt(d),
        np.sqrt(pairs * log(N) / d),
        ml.interpretability.welch_bound(N, d) if bound is None else bound,
    ]


OWN_OVERLAP = Item(
    id="16.interpretability.own_overlap",
    kind="value",
    title="Almost orthogonal",
    difficulty=1,
    minutes=6,
    source="Part II (004), interpretability exercises (c)",
    answer="overlaps",
    task="""
`mine.N` features are to live in `mine.d` dimensions, each with a direction of length 1. Give three numbers in the
list `overlaps`, right to four decimals:

1. the typical overlap $|u\\cdot v|$ of two random directions,
2. the largest $|u\\cdot v|$ to expect among all pairs of $N$ random directions (the largest of $m$ normal numbers is
   about $\\sqrt{2\\ln m}$ standard deviations out; take $m = N^2$),
3. the Welch bound: no arrangement, however clever, has a smaller largest overlap.
""",
    numbers=_own_crowd,
    expected=_overlaps,
    checks=(values(2, decimals=4),),
    mistakes=(
        Mistake(
            lambda d, N: [1 / d, *_overlaps(d, N)[1:]],
            "1/d is the mean *square* of the overlap. Its root says how large an overlap is.",
        ),
        Mistake(
            lambda d, N: [_overlaps(d, N)[0], 4 * np.log(N) / d, _overlaps(d, N)[2]],
            "The second is the *root* of 4 ln N/d.",
        ),
        Mistake(
            lambda d, N: [_overlaps(d, N)[0], np.sqrt(4 * np.log(N)), _overlaps(d, N)[2]],
            "So many standard deviations is the largest out. One standard deviation is 1/√d: multiply.",
        ),
        Mistake(
            lambda d, N: _overlaps(d, N, pairs=2),
            "√(2 ln N/d) is the largest of N overlaps. There are about N²/2 pairs, and ln N² = 2 ln N.",
        ),
        Mistake(lambda d, N: _overlaps(d, N, log=np.log10), "The natural logarithm, not the one to base 10."),
        Mistake(lambda d, N: _overlaps(d, N, log=np.log2), "The natural logarithm, not the one to base 2."),
        Mistake(
            lambda d, N: [1 / np.sqrt(N), *_overlaps(d, N)[1:]],
            "How far apart two directions are depends on the d dimensions they have, not on how many others there are.",
        ),
        Mistake(
            lambda d, N: _overlaps(d, N, bound=1 / np.sqrt(d)),
            "The first two are right. The Welch bound is close to 1/√d, and a little below it.",
        ),
        Mistake(
            lambda d, N: _overlaps(d, N, bound=(N - d) / (d * (N - 1))),
            "The first two are right. The Welch bound is the *root* of (N − d)/(d(N − 1)).",
        ),
    ),
    hints=(
        "The typical overlap is 1/√d.",
        "The largest among N random ones is about √(4 ln N/d).",
        "The Welch bound is √((N − d)/(d(N − 1))).",
    ),
    references=("part2.interpq.c_typical_overlap", "part2.interpq.c_max_overlap", "part2.interpq.c_welch"),
)


def _own_pair(rng):
    return {"a": int(rng.integers(50, 90)) / 100, "b": int(rng.integers(15, 45)) / 100}


SHARING = Item(
    id="16.interpretability.sharing",
    kind="value",
    title="Two features, one dimension",
    difficulty=1,
    minutes=6,
    source="Part II (004), superposition; Elhage et al. 2022",
    answer="losses",
    task="""
Two features share one dimension as opposites: $W = \\begin{pmatrix}1\\\\-1\\end{pmatrix}$, bias 0. A pair of
strengths $x$ is squeezed to $h = xW$ and comes back as $\\hat x = \\operatorname{relu}(hW^\\top)$. The loss is
$\\sum_i (x_i - \\hat x_i)^2$.

Give the loss for $x = (a, 0)$ and for $x = (a, b)$, with `mine.a` and `mine.b`, in a list `losses`, right to three
decimals. What follows for features that are seldom active together?
""",
    numbers=_own_pair,
    expected=lambda a, b: [0, 2 * b**2],
    checks=(values(2, decimals=3),),
    mistakes=(
        Mistake(
            lambda a, b: [a**2, a**2 + b**2],
            "The ReLU is missing: it takes away what is negative, and that is what makes sharing possible.",
        ),
        Mistake(lambda a, b: [0, b**2], "Both features come back wrong, each by b: add up two squares."),
        Mistake(
            lambda a, b: [0, (a - b) ** 2],
            "The second is the square of what comes back, a − b. The loss compares it with x, feature by feature.",
        ),
        Mistake(lambda a, b: [0, 0], "With both on, h = a − b: the stronger comes back too small, the weaker as 0."),
        Mistake(lambda a, b: [0, np.sqrt(2) * b], "No root: the loss is a sum of squares."),
        Mistake(lambda a, b: [a - b, 0], "This is x̂ for the second pair. Asked for are two losses, one for each pair."),
        Mistake(lambda a, b: [a**2, (a - b) ** 2], "This is the square of what comes back. Compare it with x."),
        Mistake(
            lambda a, b: [0, a**2 + b**2],
            "Not both are lost. h = a − b is positive: the stronger comes back as a − b, the weaker as 0.",
        ),
    ),
    hints=("h is one number: a for the first pair, a − b for the second.", "x̂ = (relu(h), relu(−h))."),
)

VERB_PROBE = Item(
    id="16.interpretability.verb_probe",
    kind="text",
    title="Ninety-five and sixty",
    difficulty=1,
    minutes=10,
    source="Part II (004), interpretability exercises (a); Hewitt & Liang 2019",
    task="""
A linear probe for “is this token a verb?” is right for 95 % of the tokens at layer 6 of BERT, and for 60 % at layer 1.

1. What does this say about how linguistic knowledge develops through the layers?
2. Suppose 60 % of the tokens in the test text are no verbs. What does the 60 % mean then? And does it prove that the
   information is *absent* from layer 1?
3. Which further experiment would you ask for before you believe the 95 %, and what would even then not be shown?
""",
    rubric=(
        (1, "1: part of speech is more linearly decodable at layer 6 than at layer 1."),
        (1, "1: it is built up from context through the layers; layer 1 is still close to the word itself."),
        (1, "2: 60 % is what “never a verb” earns (base rate); absent is not shown, it may be there non-linearly."),
        (1, "3: a control task or baseline (labels by lot per word), unseen words; the difference is what counts."),
        (1, "3: decodable does not mean used; that takes an intervention (patching, ablation)."),
    ),
    hints=(
        "What would a probe that always says “no verb” earn?",
        "A probe with many weights can learn a list of words by heart. How would you notice?",
    ),
    references=("part2.interpq.a_probe",),
)


# Core ---------------------------------------------------------------------------------------------------------------


@each
def _streams(rng, size):
    """Streams after each block, with the gain, the embedding and the unembedding."""
    L, T, D, V = size
    return rng.normal(size=(L, T, D)), rng.uniform(0.5, 2, size=D), rng.normal(size=(V, D)), rng.normal(size=(D, V))


def _large_logits(rng):
    """Logits with a common part of thousands."""
    return [(np.abs(x), gain, E, U + 3000) for x, gain, E, U in _streams((3, 3, 4, 5))(rng)]


def _lens(streams, gain, embedding, unembedding):
    return ml.softmax(ml.rms_norm(streams, gain) @ unembedding)


def _lens_last_scale(streams, gain, embedding, unembedding):
    last = np.sqrt(np.mean(streams[-1] ** 2, axis=-1, keepdims=True) + 1e-5)
    return ml.softmax((streams / last * gain) @ unembedding)


def _lens_overflowing(streams, gain, embedding, unembedding):
    powers = np.exp(ml.rms_norm(streams, gain) @ unembedding)
    return powers / powers.sum(axis=-1, keepdims=True)


SMALL_STREAM = (
    np.array([[[3.0, 4.0]], [[0.0, 2.0]]]), np.ones(2), np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]),
    np.array([[1.0, 0.0, 1.0], [0.0, 1.0, -1.0]]),
)  # fmt: skip

LOGIT_LENS = Item(
    id="16.interpretability.logit_lens",
    kind="function",
    title="If it ended here",
    difficulty=2,
    minutes=12,
    source="Part II (004), the residual stream view; nostalgebraist 2020",
    answer="lens",
    masked=("logit_lens",),
    task="""
Write `lens(streams, gain, embedding, unembedding)`: what a model would say if it ended after each block. `streams`,
`(L + 1, T, D)`, holds the residual stream of one text, first the embeddings, then the stream after each block. `gain`,
`(D,)`, belongs to the final RMS norm ($\\epsilon = 10^{-5}$, as in `ml.rms_norm`); `embedding` is `(V, D)`,
`unembedding` is `(D, V)`, and they are not tied.

Return probabilities of the next token, `(L + 1, T, V)`. Which of the four inputs is not needed?
""",
    expected=_lens,
    checks=(
        values(3, _streams((2, 1, 3, 4), (3, 4, 5, 6)), public=[SMALL_STREAM], name="right probabilities"),
        values(1, _large_logits, name="large logits"),
        leaves_inputs(1, _streams((2, 2, 3, 4))),
    ),
    mistakes=(
        Mistake(
            lambda streams, gain, embedding, unembedding: ml.softmax(streams @ unembedding),
            "The final norm is missing: the unembedding has only ever read streams that went through it.",
        ),
        Mistake(
            lambda streams, gain, embedding, unembedding: ml.softmax(
                ml.rms_norm(streams, np.ones_like(gain)) @ unembedding
            ),
            "The norm is there, its gain is not.",
        ),
        Mistake(
            lambda streams, gain, embedding, unembedding: ml.softmax(
                ml.layer_norm(streams, gain, np.zeros_like(gain)) @ unembedding
            ),
            "Layer norm takes the mean away first. This model has an RMS norm, which does not.",
        ),
        Mistake(
            lambda streams, gain, embedding, unembedding: ml.softmax(ml.rms_norm(streams, gain) @ embedding.T),
            "This reads with the embedding. The model speaks through its unembedding, and here the two differ.",
        ),
        Mistake(
            lambda streams, gain, embedding, unembedding: ml.softmax(
                (streams / ml.norm(streams)[..., None] * gain) @ unembedding
            ),
            "You divided by the length of the stream. RMS norm divides by the root of the *mean* square.",
        ),
        Mistake(
            lambda streams, *rest: _lens(np.cumsum(streams, axis=0), *rest),
            "You added the streams up. Each of them is the sum of all writes so far already.",
        ),
        Mistake(
            lambda streams, gain, embedding, unembedding: ml.log_softmax(ml.rms_norm(streams, gain) @ unembedding),
            "These are log-probabilities. Asked for are probabilities.",
        ),
        Mistake(
            _lens_last_scale,
            "You scaled every layer by the size of the last one. If the model ended here, this stream would be normed.",
        ),
        Mistake(
            lambda streams, gain, embedding, unembedding: ml.rms_norm(streams, gain) @ unembedding,
            "These are logits. Asked for are probabilities.",
        ),
        Mistake(_lens_overflowing, "Right, until e to a large logit is inf. Use `ml.softmax`.", score=4),
    ),
    hints=(
        "`ml.rms_norm(streams, gain)` norms all layers and positions at once.",
        "Then `@ unembedding`, then softmax.",
    ),
)


@each
def _writes(rng, size):
    n, D, V = size
    return rng.normal(size=(n, D)), rng.uniform(0.5, 2, size=D), rng.normal(size=(D, V)), int(rng.integers(V))


def _attribution(writes, gain, unembedding, token):
    scale = 1 / np.sqrt(np.mean(writes.sum(axis=0) ** 2) + 1e-5)
    return (scale * writes * gain) @ unembedding[:, token]


CANCELLING = (
    np.array([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0]]), np.ones(2), np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5]]), 2,
)  # fmt: skip

THREE_FOUR = (np.array([[1.0, 3.0], [0.0, 4.0]]), np.array([1.0, 2.0]), np.array([[1.0, 0.0], [1.0, 1.0]]), 1)

ATTRIBUTION = Item(
    id="16.interpretability.attribution",
    kind="function",
    title="Who said so?",
    difficulty=2,
    minutes=15,
    source="Foundations (001), section 8.3; Part II (004), the residual stream view",
    answer="attribution",
    masked=("logit_attribution",),
    task="""
At one position, $n$ parts of a pre-norm model have written into the stream: the rows of `writes`, `(n, D)`. The stream
is their sum $x$. The final RMS norm divides it by $\\sqrt{\\tfrac1D\\sum_i x_i^2 + 10^{-5}}$ and multiplies by
`gain`, `(D,)`; `unembedding` is `(D, V)`.

Write `attribution(writes, gain, unembedding, token)`: what each write adds to the logit of `token`, `(n,)`, with the
norm's divisor held at its value. All of them together must give the logit.
""",
    expected=_attribution,
    checks=(
        values(3, _writes((2, 3, 4), (5, 4, 3)), public=[THREE_FOUR], name="right shares"),
        values(1, public=[CANCELLING], name="two writes that cancel"),
        leaves_inputs(1, _writes((3, 4, 4))),
    ),
    mistakes=(
        Mistake(
            lambda writes, gain, unembedding, token: ml.rms_norm(writes, gain) @ unembedding[:, token],
            "Each write is normed by itself, so the parts do not add up to the logit. One divisor for all: the sum's.",
        ),
        Mistake(
            lambda writes, gain, unembedding, token: (writes * gain) @ unembedding[:, token],
            "The divisor of the final norm is missing.",
        ),
        Mistake(
            lambda writes, gain, unembedding, token: writes @ unembedding[:, token],
            "The final norm is missing, divisor and gain: before the unembedding reads the stream, it is normed.",
        ),
        Mistake(
            lambda writes, gain, unembedding, token: (
                ((writes - writes.mean(axis=-1, keepdims=True)) / np.sqrt(writes.sum(axis=0).var() + 1e-5) * gain)
                @ unembedding[:, token]
            ),
            "This is layer norm, which takes the mean away. RMS norm does not.",
        ),
        Mistake(
            lambda writes, gain, unembedding, token: _attribution(writes, np.ones_like(gain), unembedding, token),
            "The gain of the final norm is missing.",
            score=1,
        ),
        Mistake(
            lambda writes, gain, unembedding, token: (
                (writes / np.sqrt(np.sum(writes.sum(axis=0) ** 2) + 1e-5) * gain) @ unembedding[:, token]
            ),
            "You divided by the length of the stream. RMS norm divides by the root of the *mean* square.",
        ),
        Mistake(
            lambda writes, gain, unembedding, token: (
                (writes / np.sqrt(np.mean(writes**2) * len(writes) + 1e-5) * gain) @ unembedding[:, token]
            ),
            "You added up the squares of the writes. Add up the writes first: what cancels does not count.",
        ),
        Mistake(
            lambda writes, gain, unembedding, token: _attribution(writes, gain, unembedding, token).sum(),
            "This is the whole logit. Asked for is what each write adds to it, `(n,)`.",
        ),
        Mistake(
            lambda writes, gain, unembedding, token: np.full(
                len(writes), _attribution(writes, gain, unembedding, token).sum() / len(writes)
            ),
            "The logit is shared out evenly. Let each write speak for itself before you add up.",
        ),
    ),
    hints=(
        "One number `scale` for all writes, computed from `writes.sum(axis=0)`.",
        "`(scale * writes * gain) @ unembedding[:, token]`.",
    ),
)


@each
def _heads(rng, size):
    """Causal weights, values and the output projection of a layer."""
    H, T, K, D = size
    return (
        ml.softmax(np.where(ml.causal_mask(T), 0, -np.inf) + rng.normal(size=(H, T, T))),
        rng.normal(size=(H, T, K)) * rng.choice([0.01, 1, 5], size=(H, T, 1)),
        rng.normal(size=(H * K, D)),
    )


def _lengths(value, output):
    heads, _, width = value.shape
    return ml.norm(value @ output.reshape(heads, width, -1))  # (H, T)


def _interleaved(weights, value, output):
    heads, _, width = value.shape
    rows = output.reshape(width, heads, -1).swapaxes(0, 1)
    return weights * ml.norm(value @ rows)[:, None, :]


def _merged(weights, value, output):
    heads, length, width = value.shape
    return weights * ml.norm(value.swapaxes(0, 1).reshape(length, heads * width) @ output)


TWO_HEADS = (
    np.array([[[1.0, 0.0], [0.5, 0.5]], [[1.0, 0.0], [0.8, 0.2]]]), np.array([[[1.0], [2.0]], [[3.0], [-1.0]]]),
    np.array([[3.0, 4.0], [0.0, 2.0]]),
)  # fmt: skip
LOUD_AND_QUIET = (
    np.array([[[1.0, 0.0], [0.9, 0.1]]]), np.array([[[0.01, 0.0], [3.0, 4.0]]]), np.array([[1.0, 0.0], [0.0, 2.0]])
)  # fmt: skip

WHAT_ARRIVES = Item(
    id="16.interpretability.what_arrives",
    kind="function",
    title="Looked at, and heard",
    difficulty=2,
    minutes=12,
    source="Part II (004), attention visualization; Kobayashi et al. 2020",
    answer="what_arrives",
    masked=("value_weighted_attention", "head_contributions"),
    task="""
A head can look at a token whose value is almost zero, and hear nothing. Write `what_arrives(weights, value, output)`
for one text and one layer: `weights` are the attention weights $A$ of each head, `(H, T, T)`, `value` the values
`(H, T, K)`, and `output` the projection `(H·K, D)`, whose rows $hK$ to $(h+1)K - 1$ belong to head $h$.

Return for each head, query $t$ and source $s$ the length of what $s$ contributes,
$A_{ts}\\,\\lVert v_s W_o^h\\rVert$, of shape `(H, T, T)`.
""",
    expected=lambda weights, value, output: ml.interpretability.value_weighted_attention(weights, value, output),
    checks=(
        values(3, _heads((1, 3, 2, 4), (3, 4, 2, 5)), public=[TWO_HEADS], name="several heads"),
        values(1, public=[LOUD_AND_QUIET], name="a loud token and a quiet one"),
        leaves_inputs(1, _heads((2, 3, 3, 4))),
    ),
    mistakes=(
        Mistake(lambda weights, value, output: weights * 1.0, "These are the weights alone: where it looks."),
        Mistake(
            lambda weights, value, output: weights * ml.norm(value)[:, None, :],
            "You measured the value before the output projection. What arrives in the stream has gone through it.",
        ),
        Mistake(
            lambda weights, value, output: weights * _lengths(value, output)[:, :, None],
            "Each row is multiplied by its *query's* length. The source s is the last axis: `[:, None, :]`.",
        ),
        Mistake(
            lambda weights, value, output: weights * _lengths(value, output)[:, None, :] ** 2,
            "These are squared lengths.",
        ),
        Mistake(
            _interleaved,
            "The rows of the projection are dealt out in turn. The first K rows belong to the first head.",
            score=1,
        ),
        Mistake(
            _merged,
            "The heads' contributions are added up before they are measured. Each head has a length of its own.",
            score=1,
        ),
        Mistake(
            lambda weights, value, output: (
                weights
                * _lengths(value, output)[:, None, :]
                / np.sum(weights * _lengths(value, output)[:, None, :], axis=-1, keepdims=True)
            ),
            "The lengths themselves were asked for: do not divide the rows by their sums.",
        ),
    ),
    hints=(
        "`output.reshape(H, K, -1)` is a stack of the heads' own projections.",
        "`value @ …` of that stack has shape (H, T, D); `ml.norm` of it (H, T).",
        "Times the weights, with the lengths along the last axis.",
    ),
)


def _restored_by(measure, bent=True, normed=True, residual=True):
    """A rule for the effect of each neuron: it gets the metric m(x, hidden) and both runs' inputs and neurons."""

    def function(clean, corrupted, up, down, read):
        def m(x, hidden):
            stream = residual * x + hidden @ down
            return (ml.rms_norm(stream, np.ones(len(x))) if normed else stream) @ read

        h_clean, h_corrupted = (np.maximum(0, x @ up) if bent else x @ up for x in (clean, corrupted))
        best, worst = m(clean, h_clean), m(corrupted, h_corrupted)
        return np.array(measure(m, clean, corrupted, h_clean, h_corrupted, best, worst))

    return function


_told_apart = refusing(lambda clean, corrupted, up, down, read: np.array_equal(clean, corrupted))


def _one_by_one(m, x, hidden, donor):
    """The metric with neuron i of `hidden` taken from the donor, for each i."""
    which = np.eye(len(hidden), dtype=bool)
    return np.array([m(x, np.where(row, donor, hidden)) for row in which])


def _piled_up(m, clean, corrupted, h_clean, h_corrupted, best, worst):
    first = np.tril(np.ones((len(h_clean), len(h_clean)), bool))
    return [(m(corrupted, np.where(row, h_clean, h_corrupted)) - worst) / (best - worst) for row in first]


def _effects(m, clean, corrupted, h_clean, h_corrupted, best, worst):
    return (_one_by_one(m, corrupted, h_corrupted, h_clean) - worst) / (best - worst)


_restored = _restored_by(_effects)


@each
def _two_runs(rng, size):
    D, F = size
    while True:
        clean, corrupted, read = rng.normal(size=(3, D))
        case = (clean, corrupted, rng.normal(size=(D, F)), rng.normal(size=(F, D)) / np.sqrt(F), read)
        both = _restored_by(lambda m, c, x, hc, hx, best, worst: [best, worst])(*case)
        before = case[2].T @ np.c_[clean, corrupted]
        active = (before > 0).any(axis=1)  # in one of the runs at least
        told_apart = abs(both[0] - both[1]) > 0.5 and _restored(*case).min() < -0.01  # one neuron makes things worse
        if told_apart and active.sum() >= 2 and before.min() < -0.1:
            return case


TWO_NEURONS = (
    np.array([2.0, 1.0]), np.array([1.0, 2.0]), np.array([[1.0, -1.0], [-1.0, 1.0]]), 2 * np.eye(2),
    np.array([1.0, -1.0]),
)  # fmt: skip

PATCH = Item(
    id="16.interpretability.patch",
    kind="function",
    title="One neuron at a time",
    difficulty=2,
    minutes=15,
    source="Part II (004), circuits; Meng et al. 2022",
    answer="patch_neurons",
    masked=("patch_effect",),
    task="""
A small network turns $x$ of shape `(D,)` into hidden neurons $h = \\operatorname{relu}(x\\,\\mathrm{up})$, adds
$h\\,\\mathrm{down}$ to $x$, applies RMS norm with gain 1, and its metric $m$ is the dot product of the result with
`read`:

```python
hidden = np.maximum(0, x @ up)  # (F,)
m = ml.rms_norm(x + hidden @ down, np.ones(len(x))) @ read
```

Write `patch_neurons(clean, corrupted, up, down, read)`. For each neuron $i$, run the **corrupted** input with neuron
$i$ alone set to what it was in the **clean** run, and return

$$\\frac{m(\\text{patched}) - m(\\text{corrupted})}{m(\\text{clean}) - m(\\text{corrupted})},$$

all of them as an array `(F,)`. If $m$ is the same in both runs there is nothing to restore: `ValueError`. Do the
effects add up to 1? Why not?
""",
    expected=_told_apart(_restored),
    checks=(
        values(4, _two_runs((3, 2), (4, 5)), public=[TWO_NEURONS], name="right effects"),
        leaves_inputs(1, _two_runs((3, 4))),
        refuses(1, public=[(np.ones(2), np.ones(2), *TWO_NEURONS[2:])], name="refuses two equal runs"),
    ),
    mistakes=(
        Mistake(
            _told_apart(_restored_by(lambda m, c, x, hc, hx, best, worst: _one_by_one(m, x, hx, hc) - worst)),
            "The change of the metric is not yet an effect: divide by the gap between the two runs.",
            score=1,
        ),
        Mistake(
            _told_apart(
                _restored_by(lambda m, c, x, hc, hx, best, worst: (_one_by_one(m, x, hx, hc) - best) / (worst - best))
            ),
            "Clean and corrupted are swapped in the formula: no effect reads as 1, a full one as 0.",
            score=1,
        ),
        Mistake(
            _told_apart(
                _restored_by(lambda m, c, x, hc, hx, best, worst: (best - _one_by_one(m, c, hc, hx)) / (best - worst))
            ),
            "You broke the clean run with corrupted neurons. Asked for is the other way: mend the corrupted run.",
            score=1,
        ),
        Mistake(
            _told_apart(_restored_by(_piled_up)),
            "The patches pile up: start each run from a fresh copy of the corrupted neurons.",
            score=1,
        ),
        Mistake(
            _told_apart(
                _restored_by(
                    lambda m, c, x, hc, hx, best, worst: (best - _one_by_one(m, c, hc, 0 * hc)) / (best - worst)
                )
            ),
            "This is ablation: neurons of the clean run set to 0. Here the corrupted run gets clean ones.",
            score=1,
        ),
        Mistake(_told_apart(_restored_by(_effects, normed=False)), "The norm before `read` is missing.", score=1),
        Mistake(
            _told_apart(_restored_by(_effects, bent=False)),
            "The ReLU is missing: neurons are `np.maximum(0, x @ up)` in both runs.",
            score=1,
        ),
        Mistake(
            _told_apart(_restored_by(_effects, residual=False)),
            "The stream x itself is missing: the network's output is *added* to it.",
            score=1,
        ),
        Mistake(
            _told_apart(
                _restored_by(lambda m, c, x, hc, hx, best, worst: (_one_by_one(m, c, hx, hc) - worst) / (best - worst))
            ),
            "You patched x as well. Everything but one neuron stays as in the corrupted run.",
            score=1,
        ),
        Mistake(
            _told_apart(lambda *case: np.abs(_restored(*case))),
            "Leave the sign: a neuron whose clean value makes things worse has a negative effect.",
            score=1,
        ),
        Mistake(_restored, "Two equal runs are accepted: 0/0. Refuse them with `ValueError`.", score=5),
    ),
    hints=(
        "Write a helper `metric(x, hidden)`: the hidden neurons are handed in, not computed from x.",
        "`patched = hidden_corrupted.copy(); patched[i] = hidden_clean[i]`.",
    ),
)


@each
def _dictionaries(rng, size, unit=False):
    """A batch and an autoencoder: x, encoder, encoder bias, decoder, decoder bias, penalty."""
    n, d, m = size
    x, decoder = rng.normal(size=(n, d)), ml.normalize(rng.normal(size=(m, d)))
    encoder, bias = rng.normal(size=(d, m)), rng.uniform(0.2, 1, size=m)
    stretch = np.ones(m) if unit else rng.choice([0.2, 0.5, 3, 10], size=m)
    rows = decoder * stretch[:, None]
    return x, encoder / stretch, bias / stretch, rows, rng.normal(size=d), float(rng.uniform(0.1, 1))


def _sae(x, encoder, encoder_bias, decoder, decoder_bias, penalty, price=None, rows=None):
    """The loss of an autoencoder; price: of codes and rows' lengths; rows: what is done to the decoder."""
    codes = np.maximum(0, (x - decoder_bias) @ encoder + encoder_bias)
    used = decoder if rows is None else rows(decoder)
    error = codes @ used + decoder_bias - x
    paid = codes if price is None else price(codes, ml.norm(decoder))
    return float(np.mean(np.sum(error**2, axis=-1) + penalty * np.sum(paid, axis=-1)))


def _sae_honest(*args):
    return _sae(*args, price=lambda codes, lengths: codes * lengths)


def _sae_normalised_in_place(x, encoder, encoder_bias, decoder, decoder_bias, penalty):
    lengths = ml.norm(decoder)
    decoder /= np.where(lengths > 0, lengths, 1)[:, None]
    return _sae(x, encoder * lengths, encoder_bias * lengths, decoder, decoder_bias, penalty)


def _sae_divided(x, encoder, encoder_bias, decoder, decoder_bias, penalty):
    lengths = ml.norm(decoder)
    rows = decoder / lengths[:, None]
    return _sae(x, encoder * lengths, encoder_bias * lengths, rows, decoder_bias, penalty)


LONG_ROW = (np.array([[2.0]]), np.array([[0.5]]), np.zeros(1), np.array([[2.0]]), np.zeros(1), 0.5)
EMPTY_ROW = (
    np.array([[2.0, 1.0]]), np.eye(2), np.zeros(2), np.array([[1.0, 0.0], [0.0, 0.0]]), np.zeros(2), 0.5
)  # fmt: skip

REPAIR_PRICE = Item(
    id="16.interpretability.repair_price",
    kind="repair",
    title="Mend it: a price that is dodged",
    difficulty=2,
    minutes=12,
    source="Part II (004), sparse autoencoders; Bricken et al. 2023",
    answer="honest_loss",
    masked=("sparse_autoencoder_loss",),
    task="""
The loss of a sparse autoencoder: `x` is `(n, d)`, `encoder` `(d, m)`, `decoder` `(m, d)`.

```python
def honest_loss(x, encoder, encoder_bias, decoder, decoder_bias, penalty):
    codes = np.maximum(0, (x - decoder_bias) @ encoder + encoder_bias)
    error = codes @ decoder + decoder_bias - x
    return np.mean(np.sum(error**2, axis=-1) + penalty * np.sum(codes, axis=-1))
```

Training finds a way out: encoder and its bias shrink to a tenth, the decoder's rows grow tenfold. The reconstruction
is the same, the price a tenth of it, and nothing becomes sparse. Mend the price: it has to be what the *same*
autoencoder pays when each row of the decoder has length 1 and each code is stretched to make up for it. The
reconstruction must not change. A row of zeros costs nothing.
""",
    expected=_sae_honest,
    checks=(
        values(1, _dictionaries((3, 2, 3), (2, 4, 5), unit=True), name="rows of length 1"),
        values(3, _dictionaries((3, 2, 3), (4, 3, 5)), public=[LONG_ROW], name="rows of other lengths"),
        values(1, public=[EMPTY_ROW], name="a row of zeros"),
        leaves_inputs(1, _dictionaries((4, 3, 5))),
    ),
    mistakes=(
        Mistake(_sae, "Still as printed: codes of a tenth with rows of ten pay a tenth.", score=1),
        Mistake(
            lambda *args: _sae(*args, rows=lambda W: W / ml.norm(W)[:, None]),
            "You shortened the rows and left the codes: now the reconstruction is another one.",
            score=1,
        ),
        Mistake(
            lambda *args: _sae(*args, price=lambda codes, lengths: codes / np.where(lengths > 0, lengths, np.inf)),
            "Divided, not multiplied: a long row makes the code *more* powerful, so it has to cost more.",
            score=2,
        ),
        Mistake(
            lambda *args: _sae(*args, price=lambda codes, lengths: codes * lengths**2),
            "A code on a row of length ℓ is worth ℓ times itself, not ℓ² times.",
            score=2,
        ),
        Mistake(
            lambda x, encoder, encoder_bias, decoder, decoder_bias, penalty: _sae(
                x, encoder, encoder_bias, decoder, decoder_bias, penalty, lambda codes, _: codes * ml.norm(decoder.T)
            ),
            "These are the lengths of the decoder's columns. Each code has a *row* of its own.",
            score=1,
        ),
        Mistake(_sae_divided, "Right, but a row of zeros is divided by zero. Multiply the codes instead.", score=5),
        Mistake(_sae_normalised_in_place, "The caller's decoder has been changed: it is theirs.", score=5),
    ),
    hints=(
        "With unit rows w/‖w‖ the code f must become f · ‖w‖, or the reconstruction changes.",
        "`ml.norm(decoder)` has one length for each code.",
    ),
)


# Derivation and proof -----------------------------------------------------------------------------------------------


def _dictionary_loss(encoder, bias, decoder, x, penalty):
    codes = np.maximum(0, x @ encoder + bias)
    error = codes @ decoder - x
    return ((error * error).sum() + penalty * codes.sum()) / len(x)


def _dictionary_pullback(
    encoder, bias, decoder, x, penalty, dloss, factor=2.0, active=np.greater, price="before", mean=True
):
    before = x @ encoder + bias
    codes = np.maximum(0, before)
    derror = factor * dloss * (codes @ decoder - x) / (len(x) if mean else 1)
    share = penalty * dloss / (len(x) if mean else 1)
    dcodes = derror @ decoder.T + (share if price == "before" else 0)
    dbefore = dcodes * (active(before, 0) if active else 1) + (share if price == "after" else 0)
    return x.T @ dbefore, dbefore.sum(axis=0), codes.T @ derror


@each
def _small_dictionaries(rng, size):
    n, d, m = size
    while True:
        encoder, bias, x = rng.normal(size=(d, m)), rng.normal(size=m) / 2, rng.normal(size=(n, d))
        before = x @ encoder + bias
        if np.abs(before).min() > 1e-3 and 0 < np.sum(before > 0) < before.size:
            break
    return encoder, bias, rng.normal(size=(m, d)), x, float(rng.uniform(0.2, 1)), float(rng.normal())


AT_ZERO = (np.array([[1.0, 0.0], [0.0, 0.0]]), np.zeros(2), np.eye(2), np.array([[1.0, 2.0]]), 0.5, 1.0)

SAE_PULLBACK = Item(
    id="16.interpretability.sae_pullback",
    kind="gradient",
    title="Slopes of a dictionary",
    difficulty=3,
    minutes=20,
    source="ours; Bricken et al. 2023",
    answer="dictionary_pullback",
    masked=("vjp", "grad", "value_and_grad"),
    task="""
For $n$ examples, the rows of `x`, `(n, d)`, let

$$\\begin{aligned}
f &= \\operatorname{relu}(xW_e + b),\\\\
L &= \\frac1n\\sum_{\\text{rows}}\\Bigl(\\lVert fW_d - x\\rVert^2 + \\lambda\\sum_j f_j\\Bigr).
\\end{aligned}$$

Write `dictionary_pullback(encoder, bias, decoder, x, penalty, dloss)`: given $\\lambda$ = `penalty` and the slope
`dloss` of something by $L$, return the triple of slopes by $W_e$, `(d, m)`, by $b$, `(m,)`, and by $W_d$, `(m, d)`.
Where $xW_e + b$ is exactly 0, the slope of the ReLU is 0. Why does an entry of the dictionary that is active for no
example never come back?
""",
    expected=_dictionary_pullback,
    checks=(
        gradient(4, _dictionary_loss, _small_dictionaries((2, 3, 2), (4, 2, 4)), wrt=(0, 1, 2)),
        values(1, public=[AT_ZERO], name="a code at exactly 0"),
        leaves_inputs(1, _small_dictionaries((3, 2, 3))),
    ),
    mistakes=(
        Mistake(
            lambda *args: _dictionary_pullback(*args, price="none"),
            "The price is missing: each active code adds λ/n to its own slope.",
        ),
        Mistake(
            lambda *args: _dictionary_pullback(*args)[::-1],
            "Right, in another order: first the encoder's slope, then the bias's, then the decoder's.",
        ),
        Mistake(
            lambda encoder, bias, decoder, x, penalty, dloss: _dictionary_pullback(
                encoder, bias, decoder, x, penalty * len(x), dloss
            ),
            "The price is in the mean, too: each active code adds λ/n, not λ.",
            score=1,
        ),
        Mistake(
            lambda encoder, bias, decoder, x, penalty, dloss: _dictionary_pullback(
                encoder, bias, decoder, x, penalty / dloss, dloss
            ),
            "`dloss` multiplies the price as well: λ · dloss/n.",
            score=1,
        ),
        Mistake(
            lambda *args: _dictionary_pullback(*args, price="after"),
            "The price pushes on codes that are 0, too. It goes through the ReLU: add λ/n before you mask.",
        ),
        Mistake(lambda *args: _dictionary_pullback(*args, factor=1.0), "The derivative of a square: 2 · error."),
        Mistake(
            lambda *args: _dictionary_pullback(*args, mean=False),
            "L is the mean over the examples: divide by n.",
            score=1,
        ),
        Mistake(
            lambda *args: _dictionary_pullback(*args, active=None),
            "The ReLU is missing on the way back: no slope passes where its input was negative.",
        ),
        Mistake(
            lambda *args: _dictionary_pullback(*args, active=np.greater_equal),
            "At exactly 0 the slope of the ReLU counts as 0: `> 0`, not `>= 0`.",
            score=5,
        ),
        Mistake(
            lambda *args: _dictionary_pullback(*args[:5], 1.0),
            "`dloss` has been left out: all slopes are multiplied by it.",
            score=1,
        ),
    ),
    hints=(
        "Backwards: error, then the codes (twice: through the error and through the price), then the ReLU.",
        "derror = 2 · dloss · error/n; dW_d = fᵀ derror; df = derror W_dᵀ + λ · dloss/n.",
        "Times (xW_e + b > 0); then xᵀ … and the sum over the rows.",
    ),
)

TWO_LAYERS = Item(
    id="16.interpretability.two_layers",
    kind="text",
    title="Why it takes two",
    difficulty=2,
    minutes=15,
    source="Part II (004), circuits and interpretability exercises (b); Olsson et al. 2022",
    task="""
An induction head implements $[A][B]\\dots[A] \\to [B]$.

1. A head of the *first* layer reads only embeddings and positions. On which tokens and places does the score between
   the last token and place $j$ depend? Put another token $C$ in place of the first $A$. What happens to the score of
   $B$, which stands right after it, and what would have to happen?
2. What does a head of layer 1 have to write, and where, so that a head of layer 2 can do it? Name query, key and
   value of the second head.
3. The prompt is `cat→chat, dog→chien, fish→`. How can the mechanism help, and why can literal copying not give
   *poisson*?
""",
    rubric=(
        (1, "1: on the last token, the token at j and the two places; what stands at j − 1 does not enter."),
        (1, "1: so B's score stays the same, but it should fall once B no longer follows A."),
        (1, "2: layer 1 (previous-token head) writes at each place which token stands before it."),
        (1, "2: query: the current token; key: the token before, as layer 1 wrote it; value: the token at the place."),
        (1, "3: it attends to what followed earlier arrows and continues the pattern or format (a French word)."),
        (1, "3: poisson is not in the prompt: abstract or fuzzy matching plus stored knowledge supplies the word."),
    ),
    hints=(
        "Score = query · key. From what is the key of place j computed in layer 1?",
        "In layer 2 the stream at B's place holds what layer 1 wrote there.",
        "What stood after the earlier arrows, and what have those words in common?",
    ),
    references=("part2.interpq.b_induction",),
)

HOW_MANY = Item(
    id="16.interpretability.how_many",
    kind="text",
    title="A hundred thousand in four thousand",
    difficulty=3,
    minutes=20,
    source="Part II (004), interpretability exercises (c)",
    task="""
A model with $d = 4096$ dimensions stores $N = 100{,}000$ features as random directions of length 1.

1. Show that $\\operatorname{E}[(u\\cdot v)^2] = 1/d$ for two of them. (Turn the space until $v$ is the first axis.)
2. Let $k$ features be active with strength 1, $x = \\sum_i u_i$, and read an inactive one as $u_j\\cdot x$. Show that
   the typical disturbance is $\\sqrt{k/d}$. How large is it if all overlaps have the unlucky sign?
3. How many features can be active at once without interference, strictly; with a threshold of $\\tfrac12$ on the
   read-out of all $N$ (the largest of $N$ normal disturbances is about $\\sqrt{2\\ln N}$ times the typical one); by
   the unlucky signs; for the best sparse decoder, $k = d/(2\\ln(N/k))$? What is it that makes superposition work?
""",
    rubric=(
        (1, "1: the squared components of u have equal means and add up to 1: each 1/d; overlap about 1/√d = 1/64."),
        (1, "2: k independent overlaps of mean 0 add in squares: k/d, root √(k/d); unlucky signs: k/√d."),
        (1, "3: strictly none can be promised, only 4096 directions are orthogonal; √(2 ln N · k/d) < ½ gives k ≈ 44."),
        (1, "3: √d = 64 and about 365: tens to a few hundred (accept 40–400)."),
        (1, "3: sparsity and the tolerated error decide; few active at once is what makes superposition work."),
    ),
    hints=(
        "All components of a random direction have the same mean square, and the squares add up to 1.",
        "Variances of independent numbers add up.",
        "Square the condition of the threshold and solve for k: d/(8 ln N).",
    ),
    references=(
        "part2.interpq.c_answer",
        "part2.interpq.c_k_linear",
        "part2.interpq.c_k_sqrt",
        "part2.interpq.c_k_sparse",
        "part2.superposition.dims",
    ),
)


# Project ------------------------------------------------------------------------------------------------------------


def _look(tokens, back):
    """The places a head may look at from each place: `back` after the earlier places that hold the same token."""
    same = np.tril(tokens[:, None] == tokens, k=-1)
    return np.tril(np.pad(same, ((0, 0), (back, 0)))[:, : len(tokens)])


def _step_back(T, steps=1):
    return np.eye(T, k=-steps, dtype=bool)


def _table(rng, targets, share):
    """A causal table that gives this share to the targets, where there are any, and the rest to chance."""
    T = len(targets)
    noise = ml.softmax(np.where(ml.causal_mask(T), 0, -np.inf) + rng.normal(size=(T, T)))
    aimed = targets / np.maximum(targets.sum(axis=-1, keepdims=True), 1)
    return np.where(targets.any(axis=-1, keepdims=True), share * aimed + (1 - share) * noise, noise)


def _order(rng, layer, heads):
    """A layer's heads in random order. The first has not the layer's own number, so that no pair reads both ways."""
    while (order := rng.permutation(heads))[0] == layer:
        pass
    return order


@each
def _planted(rng, size, decoys=False):
    """Tables of L layers and H heads with a circuit in them; with decoys, others that look like one."""
    L, H = size
    tokens = np.resize(rng.permutation(15)[:5], T := 12)  # of five tokens: with fewer the heads fall together
    weights = np.array([[_table(rng, np.zeros((T, T), bool), 0) for _ in range(H)] for _ in range(L)])
    n = int(rng.integers(1, L - 1))
    below, here, above = (_order(rng, layer, H) for layer in (n - 1, n, n + 1))
    weights[n, here[0]] = _table(rng, _look(tokens, 1), 0.7)
    weights[n - 1, below[0]] = _table(rng, _step_back(T), 0.7)
    if decoys:
        weights[n, here[1]] = _table(rng, _look(tokens, 0), 0.95)  # the same token
        weights[n, here[2]] = _table(rng, _look(tokens, 2), 0.95)  # one too far
        weights[n, here[3]] = _table(rng, _step_back(T), 0.9)  # at the same time
        weights[n + 1, above[0]] = _table(rng, _step_back(T), 0.98)  # too late
        weights[n - 1, below[1]] = _table(rng, _step_back(T, 2), 0.95)  # two back
    return weights, tokens


def _circuit(weights, tokens, after=1, back=1, within=0):
    targets = _look(tokens, after)
    asked = targets.any(axis=-1)
    seen = np.sum(weights * targets, axis=-1)[..., asked].mean(axis=-1)  # (L, H)
    induction = [int(n) for n in np.unravel_index(np.argmax(seen), seen.shape)]
    before = np.sum(weights * _step_back(len(tokens), back), axis=-1)[..., back:].mean(axis=-1)
    before = before[: induction[0] + within]
    previous = [int(n) for n in np.unravel_index(np.argmax(before), before.shape)]
    return [previous, induction]


FIND_CIRCUIT = Item(
    id="16.interpretability.find_circuit",
    kind="function",
    title="Find the circuit",
    difficulty=3,
    minutes=30,
    source="Part II (004), circuits; Olsson et al. 2022",
    answer="find_circuit",
    masked=("induction_score", "previous_token_score"),
    task="""
Somewhere in a model two heads work together. You get its attention tables, `weights`, `(L, H, T, T)`, query before
key, from a run on `tokens`, `(T,)`, in which every token occurs more than once. Write `find_circuit(weights, tokens)`,
which returns two pairs (layer, head), counted from 0: `[previous, induction]`.

- The **induction head** looks at what came right *after* the earlier places of the token it stands on: over the
  places $i$ whose token has occurred before, it gives the largest mean weight to the places $j + 1$ with $j < i$ and
  token $j$ = token $i$, taken together.
- The **previous-token head** gives the largest mean weight to the place just before, among the heads the induction
  head can build on: those of earlier layers.

Other heads look like these and are not. Then try it where you know the answer: record a run of
`ml.interpretability.induction_model(…)` on `ml.interpretability.repeated_tokens(…)`, or train one yourself with
`ml.interpretability.train_induction_model`.
""",
    expected=_circuit,
    checks=(
        values(2, _planted((4, 2)), name="nothing that distracts", rtol=0),
        values(4, _planted((3, 4), (4, 4), decoys=True), name="among heads that look alike", rtol=0),
        leaves_inputs(1, _planted((3, 2))),
    ),
    mistakes=(
        Mistake(
            lambda weights, tokens: _circuit(weights, tokens, after=0),
            "This head looks at the *same* token. An induction head looks one further, at what came after it.",
        ),
        Mistake(
            lambda weights, tokens: _circuit(weights, tokens, within=len(weights)),
            "The previous-token head you name comes too late: only what earlier layers wrote can be read.",
            score=3,
        ),
        Mistake(
            lambda weights, tokens: _circuit(weights, tokens, within=1),
            "The previous-token head you name is in the same layer: when it writes, the induction head has read.",
            score=3,
        ),
        Mistake(
            lambda weights, tokens: _circuit(weights, tokens)[::-1],
            "The right heads in the wrong order: first the previous-token head, then the induction head.",
        ),
        Mistake(
            lambda weights, tokens: [pair[::-1] for pair in _circuit(weights, tokens)],
            "The right heads, but each pair the wrong way round: (layer, head).",
        ),
        Mistake(
            lambda weights, tokens: [[n + 1 for n in pair] for pair in _circuit(weights, tokens)],
            "The right heads, counted from 1. Count layers and heads from 0.",
        ),
    ),
    hints=(
        "Build a table of booleans `(T, T)`: True at (i, j + 1) where `tokens[j] == tokens[i]` and j < i.",
        "`(weights * table).sum(axis=-1)` is what each head gives to these places; average it over the rows that have "
        "any.",
        "First the induction head; then search `weights[:layer]` for the other one.",
    ),
)


# Check yourself (in the chapter, not graded) ------------------------------------------------------------------------

QUICK = [
    quick(
        "16.interpretability.quick_overlap",
        "How far from a right angle?",
        "Part II (004), interpretability exercises (c)",
        "Two random directions in 10,000 dimensions: what is their typical overlap |u · v|?",
        lambda: 1 / np.sqrt(10_000),
        (
            Mistake(lambda: 1e-4, "This is 1/d, the mean *square*. Take the root."),
            Mistake(lambda: 0, "Zero is the mean; half of the overlaps are negative. How large are they?"),
        ),
        values(1, decimals=4),
    ),
    quick(
        "16.interpretability.quick_heard",
        "Looked at, hardly heard",
        "Part II (004), attention visualization",
        "A head gives the weights 0.9 and 0.1 to two tokens; their values have the lengths 0.02 and 3. How many times "
        "as much as the first does the second contribute? (two decimals)",
        lambda: 0.3 / 0.018,
        (
            Mistake(lambda: 0.018 / 0.3, "The other way round: the second over the first."),
            Mistake(lambda: 3 / 0.02, "The weights count as well: 0.1 · 3 against 0.9 · 0.02."),
            Mistake(lambda: 0.1 / 0.9, "These are the weights alone. The lengths of the values count as well."),
        ),
        values(1, decimals=2),
    ),
    quick(
        "16.interpretability.quick_selectivity",
        "Read or memorised?",
        "Hewitt & Liang 2019",
        "A probe is right for 95 % of the tokens. On a control task, with labels by lot for each word, it reaches "
        "70 %. What is its selectivity?",
        lambda: ml.interpretability.selectivity(0.95, 0.70),
        (
            Mistake(lambda: 0.95 / 0.70, "The difference, not the ratio."),
            Mistake(lambda: 0.70 - 0.95, "Task minus control."),
            Mistake(lambda: 0.95, "0.95 is the accuracy. Take away what it reaches by memorising words."),
            Mistake(lambda: 25, "As a share, not in per cent: 0.25."),
        ),
    ),
    quick(
        "16.interpretability.quick_patch",
        "How much came back?",
        "after Meng et al. 2022",
        "The logit of the right answer minus that of the wrong one is 3 in the clean run, −1 in the corrupted one, and "
        "2 after a patch. What is the effect of the patch?",
        lambda: (2 - -1) / (3 - -1),
        (
            Mistake(lambda: 0.25, "This is what is still missing. The effect is what came back."),
            Mistake(lambda: 3, "Divide by what there was to bring back, 3 − (−1) = 4."),
            Mistake(lambda: 2 / 3, "Measure from the corrupted run, −1, not from 0."),
        ),
    ),
    quick(
        "16.interpretability.quick_induction",
        "What comes next?",
        "Part II (004), circuits",
        "The tokens so far: 7, 3, 9, 4, 7, 3. Which token does an induction head predict?",
        lambda: 9,
        (
            Mistake(lambda: 7, "7 stood *before* the earlier 3. What came after it?"),
            Mistake(lambda: 3, "3 is where it looks for a match. What came after the earlier 3?"),
            Mistake(lambda: 4, "One too far: right after the earlier 3 came another token."),
        ),
    ),
]

ITEMS = [
    OWN_OVERLAP,
    SHARING,
    VERB_PROBE,
    LOGIT_LENS,
    ATTRIBUTION,
    WHAT_ARRIVES,
    PATCH,
    REPAIR_PRICE,
    SAE_PULLBACK,
    TWO_LAYERS,
    HOW_MANY,
    FIND_CIRCUIT,
    *QUICK,
]
