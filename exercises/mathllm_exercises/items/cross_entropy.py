"""Chapter 07, cross-entropy: losses and units, entropies and divergences, the training loss, the shortest code."""

import math
from fractions import Fraction

import numpy as np

import mathllm as ml

from ..cases import each, refusing, tells_apart
from ..item import Item, Mistake, gradient, keeps_dtype, leaves_inputs, refuses, values

# Warm-up ------------------------------------------------------------------------------------------------------------

LOSS_BY_HAND = Item(
    id="07.cross_entropy.loss_by_hand",
    kind="value",
    title="Three chances in ten",
    difficulty=1,
    minutes=3,
    source="The primer (003), chapter VII, exercise 15",
    answer="loss_and_perplexity",
    task="""
A model gave the correct next token the probability 0.3. Put two numbers into the list `loss_and_perplexity`, right
to two decimals: the cross-entropy loss in nats, and the perplexity.
""",
    expected=lambda: [ml.surprise(0.3), 1 / 0.3],
    checks=(values(2, decimals=2),),
    mistakes=(
        Mistake(lambda: [np.log(0.3), 1 / 0.3], "The sign: ln 0.3 is negative, the loss is −ln 0.3."),
        Mistake(lambda: [-np.log2(0.3), 1 / 0.3], "The loss is in bits. In nats it is −ln 0.3."),
        Mistake(
            lambda: [-np.log2(0.3), np.exp(-np.log2(0.3))],
            "Two bases are mixed: you took e to the power of a number of bits.",
        ),
        Mistake(lambda: [-np.log(0.3), 2 ** -np.log(0.3)], "Two bases are mixed: 2 to the power of nats."),
        Mistake(lambda: [0.7, np.exp(0.7)], "0.7 is what is missing to 1. The loss is the logarithm of 0.3, negative."),
        Mistake(lambda: [1 / 0.3, -np.log(0.3)], "Both are right, but the loss comes first."),
        Mistake(lambda: [-np.log10(0.3), 1 / 0.3], "The logarithm is to base 10. In nats the loss is −ln 0.3."),
        Mistake(
            lambda: [np.log(0.3), 0.3],
            "The sign: the loss is −ln 0.3, and e to that power is above one, as a number of choices must be.",
        ),
    ),
    hints=("−ln 0.3", "e to the power of the loss; without a calculator: one over 0.3."),
    references=("primer.ch07.q15.loss", "primer.ch07.q15.ppl"),
)

BITS_AND_CHOICES = Item(
    id="07.cross_entropy.bits_and_choices",
    kind="value",
    title="One loss, two units",
    difficulty=1,
    minutes=4,
    source="The primer (003), chapter VII, exercise 16; Foundations (001), section 2.2",
    answer="bits_and_choices",
    task="""
A model has an average loss of 2.0 nats on a test set. Put two numbers into the list `bits_and_choices`, right to two
decimals: the same loss in bits, and the perplexity.
""",
    expected=lambda: [2 / np.log(2), np.exp(2.0)],
    checks=(values(2, decimals=2),),
    mistakes=(
        Mistake(
            lambda: [2 / np.log(2), np.exp(2 / np.log(2))], "e belongs to nats: e^2.0, or 2 to the power of the bits."
        ),
        Mistake(lambda: [2 / np.log(2), 4.0], "2 belongs to bits: e^2.0, or 2 to the power of 2.885."),
        Mistake(
            lambda: [2 * np.log(2), np.exp(2.0)],
            "A bit is smaller than a nat, so there are more of them: divide by ln 2.",
        ),
        Mistake(lambda: [2.0, np.exp(2.0)], "2.0 is the loss in nats. One nat is 1/ln 2 bits."),
        Mistake(lambda: [np.exp(2.0), 2 / np.log(2)], "Both are right, but the bits come first."),
        Mistake(
            lambda: [1.0, np.exp(2.0)],
            "log₂ 2.0 is not wanted: 2.0 is a logarithm already. A change of unit divides it by ln 2.",
        ),
    ),
    hints=("ln 2 nats are one bit.", "Both 2^bits and e^nats give the second number."),
    references=("primer.ch07.q16.ppl",),
)


def _passage(rng):
    tokens = int(rng.integers(150, 400))
    return {
        "nats": float(np.round(rng.uniform(2.5, 4.0) * tokens, 1)),
        "tokens": tokens,
        "characters": int(tokens * rng.uniform(3.2, 4.6)),
    }


def _units(nats, tokens, characters):
    return [np.exp(nats / tokens), nats / characters / np.log(2)]


OWN_UNITS = Item(
    id="07.cross_entropy.own_units",
    kind="value",
    title="Per what?",
    difficulty=1,
    minutes=6,
    source="ours, after The Four Pillars (002), perplexity in practice",
    answer="own_units",
    task="""
A model gives a text of `mine.tokens` tokens, or `mine.characters` characters, the log-probability −`mine.nats` nats,
all in all. Put two numbers into the list `own_units`, right to two decimals: its perplexity per token, and its bits
per character.
""",
    numbers=_passage,
    expected=_units,
    checks=(values(2, decimals=2),),
    mistakes=(
        Mistake(
            lambda nats, tokens, characters: [np.exp(nats / tokens), nats / characters],
            "The second number is in nats. Divide by ln 2 for bits.",
        ),
        Mistake(
            lambda nats, tokens, characters: [np.exp(nats / characters), nats / characters / np.log(2)],
            "The perplexity is per character; it was asked for per token.",
        ),
        Mistake(
            lambda nats, tokens, characters: [2 ** (nats / tokens), nats / characters / np.log(2)],
            "2 to the power of nats mixes two bases.",
        ),
        Mistake(
            lambda nats, tokens, characters: [np.exp(nats / tokens), nats / tokens / np.log(2)],
            "These are the bits per token. Divide by the characters.",
        ),
        Mistake(
            lambda nats, tokens, characters: [nats / tokens, nats / characters / np.log(2)],
            "The first number is the loss per token. Its exponential is the perplexity.",
        ),
    ),
    hints=("First the mean loss per token, then its exponential.", "One nat is 1/ln 2 bits."),
)

# Core ---------------------------------------------------------------------------------------------------------------

IS_TWO_GOOD = Item(
    id="07.cross_entropy.is_two_good",
    kind="text",
    title="Is a loss of 2.0 good?",
    difficulty=1,
    minutes=8,
    source="The primer (003), chapter VII, exercise 16",
    task="""
A model achieves an average loss of 2.0 nats per token on a test set. What is its perplexity, and is that good?
Answer in four or five sentences: what the number says about the model's choices, with what you would compare it if
the vocabulary has 50,000 tokens, and what you would have to know before you called the model better than another
with a loss of 2.3.
""",
    rubric=(
        (1, "Perplexity e² ≈ 7.39: about as uncertain as among 7 equally likely tokens."),
        (1, "It depends on task and vocabulary: no loss is good or bad by itself."),
        (1, "Small next to 50,000 tokens, or to a loss of ln 50,000 = 10.8 for a uniform guess."),
        (1, "Two losses compare only with the same test set and tokens (or after conversion to bits per character)."),
    ),
    hints=("e^2.0", "What would a model score that knows nothing at all?"),
    references=("primer.ch07.q16.good",),
)


def _distributions(*shapes):
    """Random distributions along the last axis, each with a base: 10, 2, e, and again."""
    bases = (10.0, 2.0, np.e)
    return lambda rng: [(ml.softmax(2 * rng.normal(size=shape)), bases[i % 3]) for i, shape in enumerate(shapes)]


_valid = refusing(lambda p, base: np.any(p < 0) or np.any(np.abs(p.sum(axis=-1) - 1) > 1e-6))


def _plogp(p, axis=-1):
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.sum(np.where(p > 0, p * np.log(p), 0), axis=axis)


def _nan_entropy(p, base):
    with np.errstate(divide="ignore", invalid="ignore"):
        return -np.sum(p * np.log(p), axis=-1) / np.log(base)


ENTROPY = Item(
    id="07.cross_entropy.entropy",
    kind="function",
    title="The surprise to be expected",
    difficulty=2,
    minutes=10,
    source="Foundations (001), section 2.2.1",
    answer="entropy",
    masked=("entropy", "cross_entropy_between", "kl_divergence", "mutual_information", "surprise"),
    task="""
Write `entropy(p, base)`: $-\\sum_x p(x)\\log_b p(x)$ along the last axis; a stack of distributions gives one number
each.

- $0\\log 0$ is 0, not NaN.
- What is no distribution (negative entries, or a sum that differs from 1 by more than $10^{-6}$) is refused with
  `ValueError`.
- The input is left as it was.
""",
    expected=_valid(lambda p, base: 0.0 - _plogp(p) / np.log(base)),
    checks=(
        values(
            2,
            _distributions(2, 6, 50),
            public=[(np.array([0.5, 0.5]), 2.0), (np.full(6, 1 / 6), 2.0), (np.array([0.5, 0.3, 0.2]), np.e)],
        ),
        values(1, public=[(np.array([1.0]), 2.0), (np.array([0.5, 0.0, 0.5]), 10.0)], name="with zeros"),
        values(1, _distributions((3, 4), (2, 2, 5)), name="a stack of distributions"),
        refuses(1, public=[(np.array([0.5, 0.6]), 2.0), (np.array([1.5, -0.5]), 2.0)]),
        leaves_inputs(1, _distributions(4)),
    ),
    mistakes=(
        Mistake(
            _valid(_nan_entropy), "0 · log 0 is NaN in NumPy. Let only positive probabilities into the sum.", score=5
        ),
        Mistake(
            _valid(lambda p, base: -_plogp(p)),
            "The base has no effect: divide by ln b.",
            score=1,
        ),
        Mistake(_valid(lambda p, base: _plogp(p) / np.log(base)), "The sign: an entropy is not negative.", score=1),
        Mistake(
            _valid(lambda p, base: -_plogp(p, axis=None) / np.log(base)),
            "You summed over the whole stack. Sum along the last axis: `axis=-1`.",
            score=5,
        ),
        Mistake(
            _valid(lambda p, base: -_plogp(p) * np.log(base)),
            "You multiplied by ln b. log_b p is ln p divided by ln b.",
            score=1,
        ),
        Mistake(
            lambda p, base: -_plogp(p) / np.log(base),
            "0.5 and 0.6 are accepted as a distribution. Refuse it.",
            score=5,
        ),
        Mistake(
            _valid(lambda p, base: -_plogp(p) / np.log(2)),
            "Always in bits: the base has no effect. Divide the natural logarithm by ln b.",
            score=1,
        ),
        Mistake(
            _valid(lambda p, base: -np.sum(p * np.log(p + 1e-12), axis=-1) / np.log(base)),
            "A small number inside the logarithm makes every entropy a little wrong. Leave the zeros out.",
            score=5,
        ),
        Mistake(
            _valid(lambda p, base: -np.sum(np.log(np.where(p > 0, p, 1)), axis=-1) / np.log(base)),
            "Each logarithm counts as much as its outcome is probable: multiply it by p.",
            score=1,
        ),
        Mistake(
            _valid(lambda p, base: -_plogp(p) / p.shape[-1] / np.log(base)),
            "You took a plain mean. The weights p do the averaging: add up.",
            score=1,
        ),
        Mistake(
            _valid(lambda p, base: -_plogp(p, axis=0) / np.log(base)),
            "You summed along axis 0. The outcomes stand along the last one: `axis=-1`.",
            score=5,
        ),
        Mistake(
            refusing(lambda p, base: np.any(p < 0) or abs(p.sum() - 1) > 1e-6)(
                lambda p, base: -_plogp(p) / np.log(base)
            ),
            "A stack of distributions is refused: the sum of each must be 1, not that of all. `p.sum(axis=-1)`.",
            score=5,
        ),
    ),
    hints=(
        "`np.log(p, out=np.zeros_like(p), where=p > 0)` takes the logarithm only where there is one.",
        "log_b p = ln p / ln b.",
    ),
    references=(
        "foundations.entropy.coin",
        "foundations.entropy.die",
        "foundations.entropy.deterministic",
        "foundations.entropy.max_uniform",
    ),
)


@each
def _two(rng, n):
    """Two random distributions."""
    return ml.softmax(rng.normal(size=n)), ml.softmax(rng.normal(size=n))


def _kl(p, q):
    """The right answer."""
    if p.shape != q.shape:
        raise ValueError("two sets of outcomes")
    if np.any((p > 0) & (q == 0)):
        return np.inf
    kept = p > 0
    return float(np.sum(p[kept] * np.log(p[kept] / q[kept])))


def _kl_finite(p, q):
    """Terms that cannot be computed are left out."""
    if p.shape != q.shape:
        raise ValueError("two sets of outcomes")
    kept = (p > 0) & (q > 0)
    return float(np.sum(p[kept] * np.log(p[kept] / q[kept])))


_same_outcomes = refusing(lambda p, q: p.shape != q.shape)


def _kl_nan(p, q):
    if p.shape != q.shape:
        raise ValueError("two sets of outcomes")
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.sum(p * np.log(p / q)))


KL_DIVERGENCE = Item(
    id="07.cross_entropy.kl_divergence",
    kind="function",
    title="The price of a false belief",
    difficulty=2,
    minutes=12,
    source="Foundations (001), section 2.2.2; The Four Pillars (002), why cross-entropy",
    answer="kl_divergence",
    masked=("kl_divergence", "cross_entropy_between", "mutual_information"),
    task="""
Write `kl_divergence(p, q)` for two distributions of shape `(n,)`, in nats:

$$\\mathrm{KL}(p\\Vert q) = \\sum_x p(x)\\ln\\frac{p(x)}{q(x)} .$$

- Where $p(x) = 0$ the term is 0, whatever $q(x)$ is.
- Where $p(x) > 0$ and $q(x) = 0$ the divergence is infinite: return `np.inf`.
- Different numbers of outcomes are refused with `ValueError`. Both inputs are left as they were.
""",
    expected=_kl,
    checks=(
        values(
            3,
            _two(2, 5, 30),
            public=[
                (np.array([0.9, 0.1]), np.array([0.5, 0.5])),
                (np.array([0.5, 0.5]), np.array([0.9, 0.1])),
                (np.array([0.5, 0.3, 0.2]), np.array([0.4, 0.4, 0.2])),
            ],
        ),
        values(
            1,
            public=[
                (np.array([1.0, 0.0]), np.array([0.5, 0.5])),
                (np.array([0.5, 0.5, 0.0]), np.array([0.25, 0.75, 0.0])),
            ],
            name="what cannot happen",
        ),
        values(1, public=[(np.array([0.5, 0.5]), np.array([1.0, 0.0]))], name="what was ruled out"),
        refuses(1, public=[(np.array([0.5, 0.5]), np.array([1.0])), (np.full(2, 0.5), np.full(3, 1 / 3))]),
        leaves_inputs(1, _two(4)),
    ),
    mistakes=(
        Mistake(lambda p, q: _kl(q, p), "p and q have changed places: the average is over p, the world.", score=1),
        Mistake(
            lambda p, q: (_kl(p, q) + _kl(q, p)) / 2,
            "This is the mean of both directions. The divergence has one.",
            score=2,
        ),
        Mistake(lambda p, q: -_kl(p, q), "The sign: a divergence is never negative.", score=1),
        Mistake(lambda p, q: _kl(p, q) / np.log(2), "In bits. Wanted are nats: `np.log`.", score=2),
        Mistake(
            lambda p, q: _kl(p, q) + float(-_plogp(p)),
            "This is the cross-entropy. Take the entropy of p away.",
            score=2,
        ),
        Mistake(_kl_nan, "Where p is 0, your term is NaN. It should be 0: leave it out.", score=6),
        Mistake(
            _kl_finite, "You left out the term where q is 0 and p is not. There the divergence is infinite.", score=6
        ),
        Mistake(
            _same_outcomes(lambda p, q: float(np.sum(p * np.log((p + 1e-12) / (q + 1e-12))))),
            "A small number in place of 0 makes the price finite. Who rules out what happens pays without limit.",
            score=6,
        ),
        Mistake(
            _same_outcomes(lambda p, q: _kl(p, q) / p.size),
            "You took a plain mean. The weights p do the averaging: add up.",
            score=2,
        ),
        Mistake(
            lambda p, q: _kl(p, np.broadcast_to(q, p.shape)),
            "NumPy stretches a q with one entry to the length of p. Compare the shapes first, and refuse.",
            score=6,
        ),
    ),
    hints=(
        "`kept = p > 0` chooses the terms that count.",
        "Ask first whether q rules out something that p allows: `np.any((p > 0) & (q == 0))`.",
    ),
    references=(
        "foundations.kl.asym",
        "foundations.kl.nonneg_self",
        "pillars.decomp.values",
        "pillars.decomp.identity",
    ),
)


@each
def _batches(rng, shape, ignored=0):
    """Logits and labels; the last `ignored` labels are −100."""
    *places, size = shape
    labels = rng.integers(size, size=places)
    if ignored:
        labels.reshape(-1)[-ignored:] = -100
    return 3 * rng.normal(size=(*places, size)), labels


def _each(logits, labels):
    """One loss per place, 0 where it is ignored."""
    top = logits.max(axis=-1, keepdims=True)
    log_p = logits - top - np.log(np.exp(logits - top).sum(axis=-1, keepdims=True))
    picked = np.take_along_axis(log_p, np.where(labels < 0, 0, labels)[..., None], axis=-1)[..., 0]
    return np.where(labels < 0, 0, -picked)


_needing_labels = refusing(lambda logits, labels: np.all(labels == -100))


def _loss(logits, labels):
    return _each(logits, labels).sum() / int(np.sum(labels != -100))


def _loss_of_shares(logits, labels):
    with np.errstate(divide="ignore"):
        p = np.take_along_axis(ml.softmax(logits), np.where(labels < 0, 0, labels)[..., None], axis=-1)[..., 0]
        return np.where(labels < 0, 0, -np.log(p)).sum() / int(np.sum(labels != -100))


def _mean_of_means(logits, labels):
    counted = np.sum(labels != -100, axis=-1).astype(logits.dtype)
    return (_each(logits, labels).sum(axis=-1) / counted).mean(dtype=logits.dtype)


def _loss_of_softmax(logits, labels):
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        p = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
        picked = np.take_along_axis(p, np.where(labels < 0, 0, labels)[..., None], axis=-1)[..., 0]
        return np.where(labels < 0, 0, -np.log(picked)).sum() / int(np.sum(labels != -100))


CROSS_ENTROPY = Item(
    id="07.cross_entropy.cross_entropy",
    kind="function",
    title="The training loss",
    difficulty=2,
    minutes=18,
    source="The primer (003), chapter VII, example 7; The Four Pillars (002)",
    answer="cross_entropy",
    masked=("cross_entropy", "log_softmax", "surprise", "cross_entropy_between"),
    task="""
Write `cross_entropy(logits, labels)`: the mean of $-\\ln\\operatorname{softmax}(z_t)_{y_t}$ over all positions that
count. `logits` has shape `(..., V)`, `labels` the shape `(...)`, with integers from 0 to $V-1$, or −100 for "does
not count".

- The mean is over the labels that count. If there is none, refuse with `ValueError`.
- Logits of a thousand give neither `inf` nor NaN: work with logarithms throughout (chapters 4 and 6).
- `float32` logits give a `float32` loss (divided by NumPy's `int64` it would be `float64`; a plain `int` keeps it). The
  inputs are left as they were.

The logits $\\ln 0.7, \\ln 0.2, \\ln 0.1$ are a prediction of 0.7, 0.2, 0.1: the loss is 0.357 for label 0 and 2.303
for label 2.
""",
    expected=_needing_labels(_loss),
    checks=(
        values(
            2,
            _batches((3, 4), (2, 5, 6), (1, 2)),
            public=[
                (np.log([[0.7, 0.2, 0.1]]), np.array([0])),
                (np.log([[0.7, 0.2, 0.1]]), np.array([2])),
                (np.array([[2.0, 1.0, 0.5]]), np.array([0])),
            ],
        ),
        values(1, _batches((4, 3), (2, 4, 5), ignored=2), name="labels that do not count"),
        values(
            1,
            public=[(np.array([[1000.0, 0.0]]), np.array([1])), (np.array([[-1000.0, -1001.0]]), np.array([0]))],
            name="large logits",
        ),
        keeps_dtype(1, lambda rng: [(rng.normal(size=(3, 4)).astype(np.float32), rng.integers(4, size=3))]),
        refuses(1, public=[(np.zeros((2, 3)), np.array([-100, -100]))], name="refuses a batch without a label"),
        leaves_inputs(1, _batches((3, 4), ignored=1)),
    ),
    mistakes=(
        Mistake(
            _needing_labels(_loss_of_softmax),
            "The logarithm of softmax: large logits overflow. Subtract the largest, and stay in logarithms.",
            score=6,
        ),
        Mistake(
            _needing_labels(lambda z, y: _each(z, y).sum()),
            "This is the sum. The loss is the mean over labels.",
            score=2,
        ),
        Mistake(
            _needing_labels(lambda z, y: _each(z, y).mean()),
            "You divided by all places, those with −100 included. Divide by the labels that count.",
            score=5,
        ),
        Mistake(_needing_labels(lambda z, y: -_loss(z, y)), "The sign: a loss is positive.", score=1),
        Mistake(
            _needing_labels(lambda z, y: _loss(z, y) / np.log(2)), "The loss is in bits. Use `np.log`, nats.", score=1
        ),
        Mistake(
            _needing_labels(lambda z, y: np.float64(_loss(z.astype(float), y))),
            "float32 logits became a float64 loss on the way.",
            score=6,
        ),
        Mistake(
            lambda z, y: _each(z, y).sum() / max(int(np.sum(y != -100)), 1),
            "With no label at all you answer 0, a perfect loss. Refuse it.",
            score=6,
        ),
        Mistake(
            _needing_labels(_loss_of_shares),
            "A softmax that does not overflow still rounds the share of e⁻¹⁰⁰⁰ to 0. Do not form the share at all.",
            score=6,
        ),
        Mistake(
            _needing_labels(lambda z, y: _each(z, np.where(y < 0, 0, y)).mean()),
            "A label of −100 is counted as label 0. It belongs neither to the sum nor to the number of labels.",
            score=5,
        ),
        Mistake(
            _needing_labels(_mean_of_means),
            "This is a mean of means: a short sequence counts as much as a long one. Divide the whole sum once.",
            score=6,
        ),
        Mistake(
            _needing_labels(lambda z, y: _each(z, y).sum() / int(np.sum(y != -100)) - np.mean(z.max(axis=-1))),
            "The largest logit was subtracted under the logarithm, but not from the logit of the label.",
            score=1,
        ),
    ),
    hints=(
        "ln softmax(z)_y = z_y − m − ln Σ e^(z_k − m), with the largest logit m.",
        "`np.take_along_axis(log_p, labels[..., None], axis=-1)[..., 0]` picks one entry per position.",
        "−100 is no index: replace it by 0 before you pick, and by a loss of 0 afterwards.",
    ),
    references=("primer.ch07.ex7.loss_the", "primer.ch07.ex7.loss_an"),
)


@each
def _chances(rng, size):
    return (rng.uniform(0.01, 1, size=size),)


def _positive(rule):
    def function(p):
        with np.errstate(divide="ignore", over="ignore"):
            return float(rule(p))

    return refusing(lambda p: p.size == 0 or not np.all((p >= 0) & (p <= 1)))(function)


REPAIR_PERPLEXITY = Item(
    id="07.cross_entropy.repair_perplexity",
    kind="repair",
    title="Mend it: two sources, one formula each",
    difficulty=1,
    minutes=8,
    source="Foundations (001), section 2.2; The Four Pillars (002), perplexity",
    answer="perplexity",
    masked=("perplexity",),
    task="""
`p` holds the probabilities that a model gave to the tokens that came, shape `(T,)`. This function takes its entropy
from one page and its perplexity from another:

```python
def perplexity(p):
    entropy = -np.mean(np.log2(p))
    return np.exp(entropy)
```

For a single token with $p=0.3$ it says 5.68; the right answer is 3.33. Mend it.

- A thousand tokens are no problem.
- One impossible token (0) makes the perplexity infinite.
- An empty array, and what is no probability, are refused with `ValueError`.
""",
    expected=_positive(lambda p: np.exp(-np.mean(np.log(p)))),
    checks=(
        values(3, _chances(1, 4, 50), public=[(np.array([0.3]),), (np.array([0.5, 0.1]),), (np.full(1000, 0.1),)]),
        values(1, public=[(np.array([0.5, 0.0]),)], name="an impossible token"),
        refuses(1, public=[(np.array([]),), (np.array([0.5, 1.5]),), (np.array([np.nan]),)]),
        leaves_inputs(1, _chances(5)),
    ),
    mistakes=(
        Mistake(
            _positive(lambda p: np.exp(-np.mean(np.log2(p)))),
            "Still as printed: bits in the exponent of e. One base for both lines.",
            score=2,
        ),
        Mistake(
            _positive(lambda p: np.mean(1 / p)),
            "This is the mean of the single perplexities. Average the logarithms first.",
            score=2,
        ),
        Mistake(
            _positive(lambda p: 1 / np.mean(p)),
            "You averaged the probabilities. Average their logarithms.",
            score=1,
        ),
        Mistake(
            _positive(lambda p: np.exp(-np.sum(np.log(p)))),
            "This is for all tokens together. The perplexity is per token: mean, not sum.",
            score=2,
        ),
        Mistake(
            _positive(lambda p: -np.mean(np.log(p))), "This is the loss. Its exponential is the perplexity.", score=2
        ),
        Mistake(
            lambda p: float(np.exp(-np.mean(np.log(p)))) if p.size else 1.0,
            "Bad input is answered with a number. Refuse it.",
            score=5,
        ),
        Mistake(
            _positive(lambda p: np.prod(p) ** (-1 / p.size)),
            "The product of a thousand probabilities underflows to 0. Average the logarithms.",
            score=3,
        ),
        Mistake(
            _positive(lambda p: 2 ** -np.mean(np.log(p))),
            "2 to the power of nats. Nats go with e, bits with 2.",
            score=2,
        ),
        Mistake(
            _positive(lambda p: np.exp(np.mean(np.log(p)))),
            "A sign: this is the mean probability, below one. The perplexity is one over it.",
            score=1,
        ),
        Mistake(
            _positive(lambda p: np.exp(-np.mean(np.log(p + 1e-300)))),
            "A small number hides the impossible token: it makes the perplexity infinite.",
            score=5,
        ),
        Mistake(
            refusing(lambda p: p.size == 0 or not np.all((p > 0) & (p <= 1)))(
                lambda p: float(np.exp(-np.mean(np.log(p))))
            ),
            "0 is a probability, that of an impossible token. Answer infinity, and refuse only what is below 0.",
            score=5,
        ),
    ),
    hints=("Either `np.log2` with `2 **`, or `np.log` with `np.exp`.",),
    references=("pillars.ppl.mixed_base", "pillars.ppl.base_consistent"),
)


def _tables(rng):
    """A table of counts that tells something, and for which every known mistake shows."""
    while True:
        table = rng.integers(1, 12, size=(2, 2))
        own = {"counts": table.tolist()}
        if _told(**own) > 0.03 and tells_apart(OWN_MUTUAL_INFORMATION, own, 0.004):
            return own


def _told(counts):
    return ml.mutual_information(np.array(counts) / np.sum(counts), base=2)


def _logs(counts):
    joint = np.array(counts) / np.sum(counts)
    return joint, np.log2(joint / (joint.sum(1, keepdims=True) * joint.sum(0)))


OWN_MUTUAL_INFORMATION = Item(
    id="07.cross_entropy.own_mutual_information",
    kind="value",
    title="What one says about the other",
    difficulty=2,
    minutes=12,
    source="The Four Pillars (002), mutual information and attention",
    answer="own_information",
    task="""
`mine.counts` is a table of two by two: how often token $x$ (row) was followed by token $y$ (column). How many
**bits** of mutual information do the two have, by the shares of these counts? Put it into `own_information`, right
to three decimals.
""",
    numbers=_tables,
    expected=_told,
    checks=(values(3, decimals=3),),
    mistakes=(
        Mistake(lambda counts: _told(counts) * np.log(2), "In nats. Divide by ln 2."),
        Mistake(
            lambda counts: float(np.mean(_logs(counts)[1])),
            "You averaged the four logarithms evenly. Each counts as much as its pair is probable.",
        ),
        Mistake(
            lambda counts: float(np.sum(_logs(counts)[1])),
            "You added the four logarithms. Each counts as much as its pair is probable.",
        ),
        Mistake(
            lambda counts: float(-np.sum(_logs(counts)[0] * np.log2(_logs(counts)[0]))),
            "This is the entropy of the pairs. Compare them with p(x) p(y).",
        ),
    ),
    hints=(
        "Divide the table by its sum; the sums of its rows are p(x), those of its columns p(y).",
        "Σ p(x, y) · log₂( p(x, y) / (p(x) p(y)) ), four terms.",
    ),
)

# Derivation and proof -----------------------------------------------------------------------------------------------


def _with_slope(*shapes):
    return lambda rng: [(*case, float(rng.normal())) for case in _batches(*shapes)(rng)]


def _mean_loss(logits, labels):
    return float(_each(logits, labels).mean())


def _pullback(logits, labels, dy):
    return dy * (ml.softmax(logits) - np.eye(logits.shape[-1])[labels]) / labels.size


CROSS_ENTROPY_PULLBACK = Item(
    id="07.cross_entropy.cross_entropy_pullback",
    kind="gradient",
    title="Prediction minus truth",
    difficulty=2,
    minutes=15,
    source="The Four Pillars (002), cross-entropy and softmax gradient derivation",
    answer="cross_entropy_pullback",
    masked=("vjp", "grad", "value_and_grad", "cross_entropy", "hessian_vector_product"),
    task="""
Let $L = -\\frac1n\\sum_t\\ln\\operatorname{softmax}(z_t)_{y_t}$ for logits of shape `(n, V)` and labels of shape
`(n,)`. Derive $\\partial L/\\partial z_{ti}$: first for $i = y_t$, then for $i\\ne y_t$, then both in one formula.

Write `cross_entropy_pullback(logits, labels, dy)`, which returns $dy\\cdot\\partial L/\\partial z$, shape `(n, V)`.
All labels count. `ml.softmax` may be used. What do the entries of each row of your gradient add up to, and why?
""",
    expected=_pullback,
    checks=(
        gradient(
            4,
            _mean_loss,
            _with_slope((3, 4), (1, 6), (5, 2)),
            public=[(np.array([[2.0, 1.0, 0.5]]), np.array([0]), 1.0)],
        ),
        leaves_inputs(1, _with_slope((3, 4))),
    ),
    mistakes=(
        Mistake(
            lambda z, y, dy: _pullback(z, y, dy) * y.size,
            "The 1/n of the mean is missing: each position has only its share of the loss.",
        ),
        Mistake(lambda z, y, dy: -_pullback(z, y, dy), "Truth minus prediction: the sign is turned."),
        Mistake(
            lambda z, y, dy: dy * ml.softmax(z) / y.size, "The truth is missing: take 1 away at the correct token."
        ),
        Mistake(
            lambda z, y, dy: _pullback(z, y, dy) * np.eye(z.shape[-1])[y],
            "Only the correct logit moves in your answer. The others take part in the sum of exponentials.",
        ),
        Mistake(lambda z, y, dy: _pullback(z, y, 1.0), "The gradient is right, but it must be multiplied by `dy`."),
        Mistake(
            lambda z, y, dy: dy * (z - np.eye(z.shape[-1])[y]) / y.size,
            "Logits minus truth. The prediction is softmax of the logits.",
        ),
        Mistake(
            lambda z, y, dy: _pullback(z, y, dy) * y.size / z.shape[-1],
            "You divided by the size of the vocabulary. The mean is over the n positions.",
        ),
        Mistake(
            lambda z, y, dy: -dy * np.eye(z.shape[-1])[y] / ml.softmax(z) / y.size,
            "This is the slope for the probabilities, −1/p at the correct token. It has to go on through softmax.",
        ),
        Mistake(
            lambda z, y, dy: dy * (ml.softmax(z, axis=0) - np.eye(z.shape[-1])[y]) / y.size,
            "Your softmax runs along the positions. The tokens that compete stand along the last axis.",
        ),
    ),
    hints=(
        "L for one position is −z_y + ln Σ_k e^(z_k).",
        "The slope of the second part with respect to z_i is softmax(z)_i.",
        "`np.eye(V)[labels]` has a 1 at the correct token of each row.",
    ),
    references=("pillars.cegrad.identity", "pillars.cegrad.values"),
)

GIBBS = Item(
    id="07.cross_entropy.gibbs",
    kind="text",
    title="Why honesty is the best policy",
    difficulty=2,
    minutes=20,
    source="The Four Pillars (002), why cross-entropy; Foundations (001), section 2.2.2",
    task="""
Let $p$ and $q$ be distributions over the same $n$ outcomes, all of whose entries are positive.

1. Prove that $H(p,q) = H(p) + \\mathrm{KL}(p\\Vert q)$, one reason per step.
2. Prove Gibbs' inequality, $\\mathrm{KL}(p\\Vert q)\\ge 0$, from $\\ln u\\le u-1$, and say when it is an equality.
3. Conclude: which prediction $q$ has the least average loss if the tokens are drawn from $p$, and what is that loss?
   And why does it follow that no distribution over $n$ outcomes has an entropy above $\\ln n$?
""",
    rubric=(
        (1, "Adds and subtracts Σ p ln p and joins the terms correctly, with reasons."),
        (
            2,
            "−KL = Σ p ln(q/p) ≤ Σ p (q/p − 1) = Σ q − Σ p = 0, naming ln u ≤ u − 1 and the sums to one.",
        ),
        (1, "Equality only if q/p = 1 everywhere, since the tangent touches ln only at 1."),
        (1, "The best q is p, with loss H(p), because H(p) does not depend on q."),
        (1, "With q uniform, KL(p‖q) = ln n − H(p) ≥ 0."),
    ),
    hints=(
        "Start from −KL, so that the fraction is q/p.",
        "What is Σ p(x) · (q(x)/p(x) − 1)?",
    ),
)

# Project ------------------------------------------------------------------------------------------------------------


def _shortest(low, width):
    """The shortest binary fraction in [low, low + width), as its digits."""
    places = 0
    while True:
        number = math.ceil(low * 2**places)
        if number < (low + width) * 2**places:
            return f"{number:0{places}b}" if places else ""
        places += 1


def _interval(symbols, counts, update=True):
    total = int(sum(counts))
    low, width = Fraction(0), Fraction(1)
    for symbol in symbols:
        if not (0 <= symbol < len(counts)) or counts[symbol] == 0:
            raise ValueError("an impossible symbol")
        low += width * Fraction(int(sum(counts[:symbol])), total)
        width *= Fraction(int(counts[symbol]), total)
    return low, width


def _encode(symbols, counts):
    """The right answer."""
    return _shortest(*_interval(symbols, counts))


def _encode_turned(symbols, counts):
    return _encode(symbols[::-1], counts)


def _encode_from_above(symbols, counts):
    """Each symbol's part begins where it should end."""
    low, width = Fraction(0), Fraction(1)
    _interval(symbols, counts)
    total = int(sum(counts))
    for symbol in symbols:
        low += width * Fraction(int(sum(counts[: symbol + 1])), total)
        width *= Fraction(int(counts[symbol]), total)
    return _shortest(low, width)


def _encode_unshrunk(symbols, counts):
    """The shares are not scaled by the width so far."""
    low, width = Fraction(0), Fraction(1)
    _interval(symbols, counts)
    total = int(sum(counts))
    for symbol in symbols:
        low += Fraction(int(sum(counts[:symbol])), total)
        width *= Fraction(int(counts[symbol]), total)
    return _shortest(low, width)


def _encode_too_long(symbols, counts):
    """As many places as always suffice, not as few as possible."""
    low, width = _interval(symbols, counts)
    places = 1 + math.ceil(-math.log2(width)) if symbols else 0
    return f"{math.ceil(low * 2**places):0{places}b}" if places else ""


def _encode_above_low(symbols, counts):
    """The lower end does not belong to the interval."""
    low, width = _interval(symbols, counts)
    places = 0
    while (number := math.floor(low * 2**places) + 1) >= (low + width) * 2**places:
        places += 1
    return f"{number:0{places}b}" if places else ""


def _encode_width_first(symbols, counts):
    """The width is narrowed before low is moved."""
    low, width = Fraction(0), Fraction(1)
    _interval(symbols, counts)
    total = int(sum(counts))
    for symbol in symbols:
        width *= Fraction(int(counts[symbol]), total)
        low += width * Fraction(int(sum(counts[:symbol])), total)
    return _shortest(low, width)


def _encode_leading(symbols, counts):
    """Leading zeros are lost."""
    return _encode(symbols, counts).lstrip("0")


def _messages(rng):
    drawn = []
    for size, length in ((2, 12), (3, 8), (5, 10), (4, 30)):
        counts = rng.integers(1, 12, size=size).tolist()
        message = rng.choice(size, size=length - 1, p=np.array(counts) / sum(counts)).tolist()
        drawn.append(([*message, size - 1], counts))  # only zeros would need no digit: that is another check's
    return drawn


ENCODE = Item(
    id="07.cross_entropy.encode",
    kind="function",
    title="Write as briefly as you can predict",
    difficulty=3,
    minutes=35,
    source="Putting it together (000), step 4; The Four Pillars (002), information theory",
    answer="encode",
    masked=("arithmetic_encode", "arithmetic_decode", "code_length"),
    task="""
Write the encoder of the chapter's hand-made example, exactly. `encode(symbols, counts)` takes a message, a list of
symbols from 0 to $V-1$, and a list of $V$ whole numbers; at every step symbol $x$ has the probability `counts[x] /
sum(counts)`. It returns a string of binary digits: the **shortest** string `b` for which the number
$0.b_1b_2b_3\\dots$ (in binary) lies in the interval $[\\text{low}, \\text{low} + \\text{width})$ of the message, and
of all strings of that length the one with the smallest number.

- "tes" with counts [6, 3, 1] for e, t, s, that is `encode([1, 0, 2], [6, 3, 1])`, has the interval [0.762, 0.78) and
  the code `"110001"`. Leading zeros belong to the code. The empty message has the code `""`, the
  number 0, and so has every other message whose interval contains 0.
- A symbol whose count is 0, or that does not exist, cannot be written: refuse it with `ValueError`.
- `Fraction` from Python's module `fractions` computes without rounding: `Fraction(3, 10) * Fraction(6, 10)`.

How long is the code, compared with the surprise of the message in bits?
""",
    expected=_encode,
    checks=(
        values(
            4, _messages, public=[([1, 0, 2], [6, 3, 1]), ([0, 0, 1], [6, 3, 1]), ([1], [1, 1])], name="right codes"
        ),
        values(1, public=[([], [6, 3, 1]), ([0] * 40, [99, 1]), ([0, 1], [1, 9])], name="very short codes"),
        values(1, lambda rng: [([0, *rng.integers(3, size=200).tolist()], [1, 2, 4])], name="a long message"),
        refuses(1, public=[([0, 1], [5, 0]), ([3], [1, 1])], name="refuses what has no probability"),
    ),
    mistakes=(
        Mistake(_encode_turned, "You narrowed the interval from the last symbol to the first.", score=1),
        Mistake(
            _encode_from_above,
            "Each symbol's part begins at the sum of the shares before it, without its own share.",
            score=1,
        ),
        Mistake(
            _encode_unshrunk,
            "The offset of the second symbol is a share of the interval that is left: multiply it by the width so far.",
            score=1,
        ),
        Mistake(
            _encode_too_long,
            "The code lies inside the interval, but a shorter one would, too. Try 0 places, 1 place, 2 …",
            score=1,
        ),
        Mistake(_encode_leading, "Leading zeros are part of the code: 0.001 is not 0.1.", score=1),
        Mistake(_encode_above_low, "The lower end belongs to the interval: low itself may be the number.", score=2),
        Mistake(
            _encode_width_first,
            "You narrowed the width before you moved low. The offset is a share of the old width.",
            score=2,
        ),
        Mistake(lambda symbols, counts: "0." + _encode(symbols, counts), "Only the digits after the point.", score=1),
        Mistake(
            lambda symbols, counts: _encode(symbols, counts) or "0",
            "Where no digit is needed the code has no digit: the empty string stands for the number 0.",
            score=6,
        ),
    ),
    hints=(
        "First the interval: low and width, by the two assignments of the chapter.",
        "With L places, the smallest number that is not below low is ceil(low · 2^L) / 2^L. Is it below low + width?",
        '`f"{number:0{places}b}"` writes a whole number with that many binary places.',
    ),
)

# Check yourself (in the chapter, not graded) ------------------------------------------------------------------------

QUICK = [
    Item(
        id="07.cross_entropy.quick_bits",
        kind="value",
        title="One in eight",
        difficulty=1,
        minutes=1,
        source="after the primer (003), chapter VII",
        graded=False,
        answer="bits",
        task="How many bits is the surprise at an event of probability 1/8?",
        expected=lambda: 3.0,
        checks=(values(1),),
        mistakes=(
            Mistake(lambda: -3.0, "The sign: surprise is −log₂ p."),
            Mistake(lambda: np.log(8), "These are nats. log₂ 8 is a whole number."),
            Mistake(lambda: 8.0, "That is the perplexity. How many doublings are in it?"),
        ),
    ),
    Item(
        id="07.cross_entropy.quick_perplexity",
        kind="value",
        title="Back from the logarithm",
        difficulty=1,
        minutes=1,
        source="after Foundations (001), section 2.2.3",
        graded=False,
        answer="perplexity",
        task="The loss is ln 50 nats. What is the perplexity?",
        expected=lambda: 50.0,
        checks=(values(1),),
        mistakes=(
            Mistake(lambda: 2 ** np.log(50), "2 to the power of nats mixes two bases. Nats go with e."),
            Mistake(lambda: np.log(50), "This is the loss. The perplexity is e to that power."),
        ),
    ),
    Item(
        id="07.cross_entropy.quick_kl",
        kind="value",
        title="What is left",
        difficulty=1,
        minutes=1,
        source="after The Four Pillars (002), why cross-entropy",
        graded=False,
        answer="divergence",
        task="H(p) = 1.2 and H(p, q) = 1.5, both in nats. What is KL(p‖q)?",
        expected=lambda: 0.3,
        checks=(values(1),),
        mistakes=(
            Mistake(lambda: -0.3, "A divergence is never negative: H(p, q) − H(p)."),
            Mistake(lambda: 2.7, "Cross-entropy is entropy plus divergence. Take away, do not add."),
            Mistake(lambda: 1.25, "Logarithms are taken away, not divided: H(p, q) − H(p)."),
        ),
    ),
    Item(
        id="07.cross_entropy.quick_gradient",
        kind="value",
        title="Three logits",
        difficulty=1,
        minutes=1,
        source="after the primer (003), chapter VII, example 7",
        graded=False,
        answer="gradient",
        task="The prediction is [0.7, 0.2, 0.1] and the third token came. What is the gradient for the three logits?",
        expected=lambda: [0.7, 0.2, -0.9],
        checks=(values(1),),
        mistakes=(
            Mistake(lambda: [-0.7, -0.2, 0.9], "Prediction minus truth, not truth minus prediction."),
            Mistake(
                lambda: [0.0, 0.0, -10.0], "That is the slope for the probabilities. For the logits it is p − truth."
            ),
            Mistake(lambda: [-0.3, 0.2, 0.1], "The third token came, not the first."),
            Mistake(lambda: [0.7, 0.2, 0.1], "This is the prediction. Take the truth away: 1 at the third token."),
            Mistake(lambda: [0.7, 0.2, 0.9], "The sign: 0.1 − 1 is negative, and the third logit is pushed up."),
        ),
    ),
    Item(
        id="07.cross_entropy.quick_bytes",
        kind="value",
        title="A file",
        difficulty=1,
        minutes=1,
        source="after Putting it together (000), step 4",
        graded=False,
        answer="size",
        task="1,000 tokens cost 2 bits of cross-entropy each. How many bytes does an arithmetic coder need?",
        expected=lambda: 250.0,
        checks=(values(1, rtol=0.0, atol=1.0),),
        mistakes=(
            Mistake(lambda: 2000.0, "These are bits. A byte has eight."),
            Mistake(lambda: 500.0, "2,000 bits are 250 bytes: divide by 8."),
        ),
    ),
]

ITEMS = [
    LOSS_BY_HAND,
    BITS_AND_CHOICES,
    OWN_UNITS,
    IS_TWO_GOOD,
    ENTROPY,
    KL_DIVERGENCE,
    CROSS_ENTROPY,
    REPAIR_PERPLEXITY,
    OWN_MUTUAL_INFORMATION,
    CROSS_ENTROPY_PULLBACK,
    GIBBS,
    ENCODE,
    *QUICK,
]
