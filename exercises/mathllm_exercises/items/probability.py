"""Chapter 05, probability: sentences, counts and draws, likelihoods and beliefs, ridge regression, n-grams."""

import itertools

import numpy as np

import mathllm as ml

from ..cases import each, refusing, tells_apart
from ..item import Item, Mistake, gradient, leaves_inputs, refuses, values

SENTENCE = np.array([0.05, 0.12, 0.08, 0.70])  # 003, chapter V, example 5: "The cat sat."

# Warm-up ------------------------------------------------------------------------------------------------------------

VALID_OR_NOT = Item(
    id="05.probability.valid_or_not",
    kind="value",
    title="Two rules",
    difficulty=1,
    minutes=3,
    source="The primer (003), chapter V, exercise 11",
    answer="sums_and_verdicts",
    task="""
A model gives four tokens the numbers $[0.4, 0.35, 0.2, 0.05]$. Is this a probability distribution? And is it one if
the last number is 0.1 instead? Give a list of four entries, `sums_and_verdicts`: the first sum, `True` or `False`,
the second sum, `True` or `False`.
""",
    expected=lambda: [1.0, True, 1.05, False],
    checks=(values(2),),
    mistakes=(
        Mistake(lambda: [1.0, True, 1.05, True], "1.05 is not 1: the second list breaks the second rule."),
        Mistake(lambda: [1.0, True], "The first half is right. The second list is asked for, too."),
        Mistake(lambda: [1.0, 1.05], "Both sums are right. After each of them comes a verdict, True or False."),
        Mistake(
            lambda: [1.0, False, 1.05, False],
            "The first list keeps both rules: nothing is negative, and 0.4 + 0.35 + 0.2 + 0.05 is 1.",
        ),
        Mistake(
            lambda: [1.0, 1.05, True, False],
            "All four are right, in another order: each sum is followed by its own verdict.",
        ),
        Mistake(lambda: [True, False], "Both verdicts are right. Before each of them comes the sum."),
    ),
    hints=("Nothing negative, and a sum of exactly one.",),
    references=(
        "primer.ch05.q11.sum",
        "primer.ch05.q11.valid",
        "primer.ch05.q11.sum_alt",
        "primer.ch05.q11.valid_alt",
    ),
)

THREE_TOKENS = Item(
    id="05.probability.three_tokens",
    kind="value",
    title="Three tokens in a row",
    difficulty=1,
    minutes=4,
    source="The primer (003), chapter V, exercise 12",
    answer="probability_and_log",
    task="""
A model writes three tokens. Their probabilities, each given the tokens before it, are 0.3, 0.5 and 0.9. Put two
numbers into the list `probability_and_log`, right to three decimals: the probability of the whole sequence, and its
natural logarithm.
""",
    expected=lambda: [0.135, np.log(0.135)],
    checks=(values(2, decimals=3),),
    mistakes=(
        Mistake(lambda: [1.7, np.log(1.7)], "You added the probabilities. They multiply; their logarithms add."),
        Mistake(lambda: [0.135, np.log2(0.135)], "The logarithm is to base 2. Wanted is ln, `np.log`."),
        Mistake(lambda: [0.135, np.log10(0.135)], "The logarithm is to base 10. Wanted is ln, `np.log`."),
        Mistake(lambda: [0.135, -np.log(0.135)], "The sign: a number below one has a negative logarithm."),
        Mistake(lambda: [0.135, np.log(0.135) / 3], "This is the mean per token. The sum was asked for."),
        Mistake(lambda: [np.log(0.135), 0.135], "The two have changed places: the probability comes first."),
        Mistake(
            lambda: [1.7 / 3, np.log(1.7 / 3)],
            "You averaged the three probabilities. The probability of the sequence is their product.",
        ),
    ),
    hints=("0.3 · 0.5 · 0.9", "ln 0.3 + ln 0.5 + ln 0.9"),
    references=("primer.ch05.q12.product", "primer.ch05.q12.logs", "primer.ch05.q12.logsum"),
)


def _pair_counts(text, first, second):
    """How often `first second` occurs, `first` with something behind it, `second` with something before it."""
    pairs = list(itertools.pairwise(text))
    return (
        pairs.count((first, second)),
        sum(a == first for a, _ in pairs),
        sum(b == second for _, b in pairs),
        len(pairs),
    )


def _own_text(rng):
    """A text of fifteen letters that ends in its own condition, so that every known mistake shows."""
    while True:
        text = "".join(rng.choice(list("abc"), size=15, p=[0.45, 0.35, 0.2]))
        own = {"text": text, "first": "a", "second": "b"}
        both, given, after, _ = _pair_counts(**own)
        if text[-1] == "a" and 0 < both < given and after > 0 and tells_apart(OWN_CONDITIONAL, own, 0.01):
            return own


OWN_CONDITIONAL = Item(
    id="05.probability.own_conditional",
    kind="value",
    title="What follows?",
    difficulty=1,
    minutes=6,
    source="ours, after The Four Pillars (002), conditional probability",
    answer="own_conditional",
    task="""
`mine.text` is a text of fifteen letters. Estimate from its counts the conditional probability that the letter
`mine.second` comes next, given that the last letter was `mine.first`. Put it into `own_conditional`, right to three
decimals. (Nothing follows the last letter of the text, so it is no occasion on which `mine.second` could have come.)
""",
    numbers=_own_text,
    expected=lambda text, first, second: _pair_counts(text, first, second)[0] / _pair_counts(text, first, second)[1],
    checks=(values(2, decimals=3),),
    mistakes=(
        Mistake(
            lambda text, first, second: _pair_counts(text, first, second)[0] / text.count(first),
            "You divided by all occurrences of the condition. The last letter of the text is followed by nothing.",
        ),
        Mistake(
            lambda text, first, second: _pair_counts(text, first, second)[0] / _pair_counts(text, first, second)[2],
            "The other way round: you divided by how often the second letter follows something. Divide by the first.",
        ),
        Mistake(
            lambda text, first, second: _pair_counts(text, first, second)[0] / (len(text) - 1),
            "This is the share of all pairs, P(first and second). Divide by how often the first one occurred.",
        ),
        Mistake(
            lambda text, first, second: text.count(second) / len(text),
            "This is the share of the second letter anywhere. What came before it is given.",
        ),
    ),
    hints=(
        "Go through the text and mark every place after which a letter follows `mine.first`.",
        "At how many of these places is it `mine.second`?",
    ),
)

# Core ---------------------------------------------------------------------------------------------------------------


@each
def _shares(rng, size):
    """Random conditional probabilities."""
    return (rng.uniform(0.02, 1, size=size),)


_proper = refusing(lambda p: not np.all((p >= 0) & (p <= 1)))


def _logs(p):
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(p)


def _log_sum(p):
    return float(np.sum(_logs(p)))


LOG_PROBABILITY = Item(
    id="05.probability.log_probability",
    kind="function",
    title="Score a sentence",
    difficulty=1,
    minutes=10,
    source="The primer (003), chapter V, example 5",
    answer="log_probability",
    masked=("log_product", "sequence_log_probabilities"),
    task="""
Write `log_probability(p)`: the natural logarithm of the probability of a sequence whose tokens have the conditional
probabilities `p`, shape `(T,)`. "The cat sat." with 0.05, 0.12, 0.08 and 0.70 has −7.9984.

- A thousand tokens must not underflow.
- If a token is impossible (0), so is the sequence: its logarithm is `-inf`.
- What is no probability (negative, above 1, NaN) is refused with `ValueError`.
- The input is left as it was.
""",
    expected=_proper(_log_sum),
    checks=(
        values(2, _shares(1, 3, 20), public=[(SENTENCE,), (np.array([0.3, 0.5, 0.9]),)]),
        values(2, lambda rng: [(rng.uniform(0.001, 0.1, size=1000),)], name="a long text"),
        values(1, public=[(np.array([0.5, 0.0, 0.9]),)], name="an impossible token"),
        refuses(1, public=[(np.array([0.5, 1.2]),), (np.array([-0.1, 0.5]),), (np.array([0.5, np.nan]),)]),
        leaves_inputs(1, _shares(5)),
    ),
    mistakes=(
        Mistake(
            _proper(lambda p: _log_sum(np.prod(p))),
            "You multiplied first: a thousand small factors underflow to 0. Add the logarithms instead.",
            score=5,
        ),
        Mistake(_proper(lambda p: float(np.prod(p))), "This is the probability. Its logarithm was asked for.", score=1),
        Mistake(
            _proper(lambda p: float(np.mean(np.log(p)))),
            "This is the mean per token. The logarithm of the whole probability is the sum.",
            score=2,
        ),
        Mistake(
            _proper(lambda p: float(np.sum(np.log2(p)))), "The logarithm is to base 2. Wanted is ln, `np.log`.", score=2
        ),
        Mistake(_proper(lambda p: -_log_sum(p)), "The sign: a log-probability is negative.", score=1),
        Mistake(
            _proper(lambda p: _log_sum(p[p > 0])),
            "You left the impossible token out. It makes the whole sequence impossible: −∞.",
            score=6,
        ),
        Mistake(_log_sum, "1.2 is no probability, and its logarithm looks harmless: refuse it.", score=6),
        Mistake(_proper(_logs), "These are the logarithms of the single tokens. Add them up.", score=1),
        Mistake(
            _proper(lambda p: _log_sum(p) / np.log(10)), "The logarithm is to base 10. Wanted is ln, `np.log`.", score=2
        ),
        Mistake(
            _proper(lambda p: _log_sum(p + 1e-12)),
            "The small number added to p hides the impossible token: ln 0 = −∞ is the right answer there.",
            score=6,
        ),
        Mistake(
            refusing(lambda p: not np.all((p > 0) & (p <= 1)))(_log_sum),
            "0 is a probability, that of an impossible token: answer −∞, and refuse only what is below 0.",
            score=6,
        ),
        Mistake(
            refusing(lambda p: np.any(p < 0) or np.any(p > 1))(_log_sum),
            "NaN slips through: `p < 0` and `p > 1` are both false for it. Ask for `(p >= 0) & (p <= 1)`.",
            score=6,
        ),
    ),
    hints=(
        "The logarithm of a product is the sum of the logarithms.",
        "`np.log(0)` is `-inf`; it only warns. `with np.errstate(divide='ignore'):` silences it.",
        "Every comparison with NaN is false: `not np.all((p >= 0) & (p <= 1))`.",
    ),
    references=(
        "primer.ch05.ex5.product",
        "primer.ch05.ex5.logs",
        "primer.ch05.ex5.logsum",
        "primer.ch05.ex5.logsum_of_rounded",
    ),
)


def _counted(ids, size):
    table = np.zeros((size, size))
    np.add.at(table, (ids[:-1], ids[1:]), 1)
    return table


def _counted_once(ids, size):
    """Each pair counts once, however often it occurs."""
    table = np.zeros((size, size))
    table[ids[:-1], ids[1:]] += 1
    return table


def _bigrams(ids, size, k):
    """The right answer."""
    return _share_of(_counted(ids, size) + k, axis=1)


def _share_of(counts, axis):
    total = counts.sum(axis=axis, keepdims=True)
    if np.any(total == 0):
        raise ValueError("nothing was counted")
    return counts / total


def _or_zeros(counts):
    total = counts.sum(axis=1, keepdims=True)
    return counts / np.where(total > 0, total, 1)


def _or_nan(counts, total):
    with np.errstate(divide="ignore", invalid="ignore"):
        return counts / total


@each
def _texts(rng, sizes, k):
    """A random sequence of ids (length, vocabulary); every token occurs before the last place."""
    length, vocabulary = sizes
    ids = np.concatenate([rng.permutation(vocabulary), rng.integers(vocabulary, size=length)])
    return ids, vocabulary, k


TINY = np.array([0, 1, 0, 1, 1, 2, 0])

BIGRAM_MODEL = Item(
    id="05.probability.bigram_model",
    kind="function",
    title="A language model in one table",
    difficulty=2,
    minutes=12,
    source="The Four Pillars (002), the Markov property",
    answer="bigram_model",
    masked=("bigram_counts", "conditional_probability", "distribution_from_counts", "train_ngram"),
    task="""
Write `bigram_model(ids, size, k)`: the table of shape `(V, V)` whose row $a$ holds the distribution of the token
after $a$, with $k$ added to each count:

$$P(b \\mid a) = \\frac{c(ab) + k}{\\sum_{b'} c(ab') + kV}.$$

`ids` is one sequence of token ids from 0 to `size` − 1, $V$ is `size`.

- With $k = 0$, a row in which nothing was counted has no distribution: refuse it with `ValueError`.
- The ids are left as they were.
""",
    expected=_bigrams,
    checks=(
        values(2, _texts((30, 3), (60, 5), k=0), public=[(TINY, 3, 0)], name="shares of the counts"),
        values(2, _texts((10, 4), k=1.0), public=[(TINY, 4, 1), (TINY, 3, 0.5)], name="with k added"),
        refuses(1, public=[(TINY, 4, 0), (np.array([0, 1]), 2, 0)], name="refuses an empty row"),
        leaves_inputs(1, _texts((60, 6), k=0.1)),
    ),
    mistakes=(
        Mistake(
            lambda ids, size, k: _share_of(_counted(ids, size) + k, axis=0),
            "The columns add up to one. Each row must: what follows a is divided by how often a was followed.",
            score=1,
        ),
        Mistake(
            lambda ids, size, k: _share_of(_counted(ids, size).T + k, axis=1),
            "Row and column have changed places: row a must tell what comes after a, not before it.",
            score=1,
        ),
        Mistake(
            lambda ids, size, k: (
                _share_of(_counted(ids, size) + k, axis=(0, 1)) if np.any(_bigrams(ids, size, k)) else None
            ),
            "You divided by all pairs of the text. Divide each row by its own sum.",
            score=1,
        ),
        Mistake(
            lambda ids, size, k: (
                _bigrams(ids, size, k)
                * (_counted(ids, size) + k).sum(axis=1, keepdims=True)
                / (_counted(ids, size).sum(axis=1, keepdims=True) + k)
            ),
            "k is added to V counts, so the sum of a row grows by k·V, not by k.",
            score=3,
        ),
        Mistake(
            lambda ids, size, k: _bigrams(ids, size, 0),
            "k has no effect: add it to every count before you divide.",
            score=3,
        ),
        Mistake(
            lambda ids, size, k: _or_zeros(_counted(ids, size) + k),
            "A row without counts is answered with NaN or zeros, which is no distribution. Refuse it.",
            score=5,
        ),
        Mistake(
            lambda ids, size, k: _or_nan(_counted(ids, size) + k, (_counted(ids, size) + k).sum(axis=1, keepdims=True)),
            "A row without counts is answered with NaN, which is no distribution. Refuse it.",
            score=5,
        ),
        Mistake(
            lambda ids, size, k: _share_of(_counted_once(ids, size) + k, axis=1),
            "`table[a, b] += 1` with arrays of ids counts a pair once, however often it occurs. Use `np.add.at`.",
            score=1,
        ),
        Mistake(
            lambda ids, size, k: (
                (_counted(ids, size) + k) / (_counted(ids, size) + k).sum(axis=1)
                if np.any(_bigrams(ids, size, k))
                else None
            ),
            "The sums lost their axis: NumPy divides column b by the sum of row b. Keep it with `keepdims=True`.",
            score=1,
        ),
        Mistake(
            lambda ids, size, k: _or_nan(_counted(ids, size) + k, np.bincount(ids, minlength=size)[:, None] + k * size),
            "You divided by all occurrences of a. Nothing follows the last token of the text: divide by the row's sum.",
        ),
        Mistake(
            lambda ids, size, k: _bigrams(ids, int(ids.max()) + 1, k),
            "The table needs a row for each id from 0 to `size` − 1, also for those that do not occur.",
            score=3,
        ),
        Mistake(lambda ids, size, k: _counted(ids, size) + k, "These are the counts. Divide each row by its sum."),
    ),
    hints=(
        "`np.add.at(table, (ids[:-1], ids[1:]), 1)` counts all pairs, also those that occur twice.",
        "Sum along `axis=1` with `keepdims=True`, and look at the sums before you divide.",
    ),
)


def _lotteries(rng):
    """Distributions with a dart each that lies well inside a piece."""
    cases = []
    for size in (2, 3, 8, 30):
        p = rng.dirichlet(np.ones(size))
        edges = np.concatenate([[0], np.cumsum(p)])
        piece = rng.integers(size)
        cases.append((p, float(edges[piece] + (0.2 + 0.6 * rng.random()) * p[piece])))
    return cases


HALVES = np.array([0.25, 0.25, 0.5])
FOUR = np.array([0.4, 0.35, 0.2, 0.05])  # 003, chapter V, exercise 11


_checked = refusing(lambda p, u: np.any(p < 0) or abs(p.sum() - 1) > 1e-9)


def _checked_draw(rule):
    return _checked(lambda p, u: int(rule(p, u)))


def _first_beyond(p, u):
    """The first piece that ends beyond the dart, if there is one."""
    beyond = np.flatnonzero(u < np.cumsum(p))
    return int(beyond[0]) if beyond.size else None


def _hit(p, u):
    edges = np.cumsum(p)
    return np.searchsorted(edges / edges[-1], u, side="right")


DRAW = Item(
    id="05.probability.draw",
    kind="function",
    title="Throw the dart",
    difficulty=2,
    minutes=12,
    source="The Four Pillars (002), sampling from models",
    answer="draw",
    masked=("sample",),
    task="""
Write `draw(p, u)`: which outcome does the dart $u$, with $0\\le u<1$, hit, if the outcomes 0, 1, 2 … lie end to end
on the line from 0 to 1, each as long as its probability in `p`, shape `(n,)`? Piece $i$ contains its left end, not
its right end.

- An outcome with probability 0 is never drawn, not even at $u=0$.
- Rounding may leave the sum of `p` a little below 1. A dart between that sum and 1 hits the last piece; an index
  outside the list must never come back.
- What is no distribution (a negative entry, or a sum that differs from 1 by more than $10^{-9}$) is refused with
  `ValueError`.
""",
    expected=_checked_draw(_hit),
    checks=(
        values(3, _lotteries, public=[(FOUR, 0.1), (FOUR, 0.5), (FOUR, 0.8), (FOUR, 0.99)], name="inside the pieces"),
        values(
            2,
            public=[(HALVES, 0.25), (HALVES, 0.5), (np.array([0.0, 1.0]), 0.0)],
            name="at the ends of the pieces",
        ),
        values(
            1, public=[(np.full(10, 0.1), 1 - 2**-53), (np.full(3, 1 / 3 - 3e-11), 1 - 2e-11)], name="just below one"
        ),
        refuses(1, public=[(np.array([0.4, 0.35, 0.2, 0.1]), 0.5), (np.array([1.5, -0.5]), 0.5)]),
        leaves_inputs(1, _lotteries),
    ),
    mistakes=(
        Mistake(
            _checked_draw(lambda p, u: np.searchsorted(np.cumsum(p) / np.cumsum(p)[-1], u, side="left")),
            "At the end of a piece you take that piece. A piece contains its left end only: `side='right'`.",
            score=6,
        ),
        Mistake(
            _checked_draw(lambda p, u: np.searchsorted(np.cumsum(p), u, side="right")),
            "A dart just below one leaves the list, since the rounded sum of p is below one.",
            score=7,
        ),
        Mistake(
            _checked_draw(lambda p, u: np.argmax(p)),
            "This is always the most probable outcome; the dart is not used.",
            score=1,
        ),
        Mistake(
            _checked_draw(lambda p, u: np.argmin(np.abs(np.cumsum(p) - u))),
            "You look for the nearest end of a piece. Wanted is the piece that contains the dart.",
            score=2,
        ),
        Mistake(
            _checked_draw(lambda p, u: min(int(u * len(p)), len(p) - 1)),
            "You gave all pieces the same length. Piece i is as long as p[i].",
            score=2,
        ),
        Mistake(
            lambda p, u: int(_hit(p, u)),
            "A list that sums to 1.05, or has a negative entry, is drawn from. Refuse it with `ValueError`.",
            score=7,
        ),
        Mistake(
            _checked(_first_beyond),
            "A dart between the rounded sum and 1 hits no piece of yours. It belongs to the last one.",
            score=7,
        ),
        Mistake(
            _checked_draw(lambda p, u: _hit(p, u) + 1), "You count the outcomes from 1. The first one is 0.", score=1
        ),
        Mistake(
            _checked_draw(lambda p, u: _hit(np.sort(p)[::-1], u)),
            "You sorted the pieces first, so that their numbers belong to other outcomes. Leave them in their order.",
            score=2,
        ),
    ),
    hints=(
        "`np.cumsum(p)` says where each piece ends.",
        "How many pieces end at or before u? That number is the index.",
        "Divide the ends by the last of them, and the last piece ends at 1 exactly.",
    ),
)


@each
def _experiments(rng, size):
    """A prior and the likelihoods of some observations under each hypothesis."""
    hypotheses, observations = size
    return rng.dirichlet(np.ones(hypotheses)), rng.uniform(0.2, 1, size=(observations, hypotheses))


def _belief(prior, likelihoods):
    """The right answer."""
    with np.errstate(divide="ignore"):
        logs = np.log(prior) + np.log(likelihoods).sum(axis=0)
    if not logs.max() > -np.inf:
        raise ValueError("impossible data")
    weights = np.exp(logs - logs.max())
    return weights / weights.sum()


def _by_multiplying(prior, likelihoods):
    joint = prior * likelihoods.prod(axis=0)
    with np.errstate(invalid="ignore"):
        return joint / joint.sum()


def _believed_or_nan(prior, likelihoods):
    try:
        return _belief(prior, likelihoods)
    except ValueError:
        return np.full_like(prior, np.nan)


def _by_mean(prior, likelihoods):
    with np.errstate(divide="ignore"):
        return _belief(prior, np.exp(np.log(likelihoods).mean(axis=0))[None])


def _belief_in_place(prior, likelihoods):
    prior[:] = _belief(prior, likelihoods)
    return prior


_or_refuse = refusing(lambda prior, likelihoods: np.all((likelihoods == 0).any(axis=0) | (prior == 0)))


REPAIR_POSTERIOR = Item(
    id="05.probability.repair_posterior",
    kind="repair",
    title="Mend it: a thousand observations and no belief",
    difficulty=2,
    minutes=15,
    source="Foundations (001), section 2.3; The Four Pillars (002), Bayes' theorem in LLMs",
    answer="posterior",
    masked=("posterior", "sequential_posterior"),
    task="""
Bayes' theorem as it is printed, for a prior of shape `(K,)` and a table of likelihoods, one row for each
observation, one column for each hypothesis, `(T, K)`:

```python
def posterior(prior, likelihoods):
    joint = prior * likelihoods.prod(axis=0)
    return joint / joint.sum()
```

With ten observations it works. With a thousand it returns NaN, although the data may be perfectly clear. Mend it.

- Any number of observations gives a distribution.
- A hypothesis that an observation rules out (likelihood 0), or whose prior is 0, gets exactly 0.
- If no hypothesis is left, the data are impossible: refuse them with `ValueError`.
""",
    expected=_belief,
    checks=(
        values(
            2,
            _experiments((3, 5), (2, 1)),
            public=[(np.array([0.2, 0.8]), np.array([[0.9, 0.3]])), (np.array([0.2, 0.8]), np.array([[0.9, 0.3]] * 2))],
            name="a few observations",
        ),
        values(
            3,
            lambda rng: [(rng.dirichlet(np.ones(3)), 0.001 * rng.uniform(0.999, 1.001, size=(400, 3)))],
            public=[(np.array([0.2, 0.8]), np.repeat([[0.9, 0.3], [0.1, 0.7]], [639, 361], axis=0))],
            name="hundreds of observations",
            rtol=1e-6,
        ),
        values(1, public=[(np.array([0.5, 0.5, 0.0]), np.array([[0.5, 0.0, 0.9], [0.2, 0.9, 0.9]]))], name="ruled out"),
        refuses(1, public=[(np.array([0.5, 0.5]), np.array([[0.0, 0.5], [0.5, 0.0]]))], name="refuses impossible data"),
        leaves_inputs(1, _experiments((4, 6))),
    ),
    mistakes=(
        Mistake(_by_multiplying, "Still as printed: the product underflows, and 0/0 is NaN. Add logarithms.", score=4),
        Mistake(
            _or_refuse(lambda prior, likelihoods: _by_multiplying(np.ones_like(prior), likelihoods)),
            "The prior is gone. It is one more factor for each hypothesis.",
            score=1,
        ),
        Mistake(
            _or_refuse(
                lambda prior, likelihoods: (
                    np.exp(np.log(prior) + np.log(likelihoods).sum(axis=0))
                    / np.exp(np.log(prior) + np.log(likelihoods).sum(axis=0)).sum()
                )
            ),
            "The logarithms are right, but `np.exp` brings the underflow back. Subtract the largest one first.",
            score=5,
        ),
        Mistake(
            _or_refuse(lambda prior, likelihoods: np.exp(np.log(prior) + np.log(likelihoods).sum(axis=0))),
            "The division is missing: these numbers do not add up to one.",
            score=1,
        ),
        Mistake(
            _or_refuse(lambda prior, likelihoods: _belief(prior, likelihoods + 1e-12)),
            "A tiny number added to the likelihoods lets a hypothesis live that was ruled out.",
            score=7,
        ),
        Mistake(
            _or_refuse(
                lambda prior, likelihoods: _by_multiplying(prior, likelihoods / likelihoods.max()),
            ),
            "Dividing all likelihoods by one number only delays the underflow. Add logarithms.",
            score=5,
        ),
        Mistake(
            lambda prior, likelihoods: _belief(prior, likelihoods.T),
            "The observations stand along axis 0, one in each row: sum over them, and keep the hypotheses.",
            score=1,
        ),
        Mistake(_by_mean, "You averaged the logarithms. Each observation counts in full: add them up.", score=2),
        Mistake(
            _believed_or_nan,
            "Where every hypothesis is ruled out you answer NaN. Look at the largest logarithm, and refuse −∞.",
            score=7,
        ),
        Mistake(_belief_in_place, "Your function changes the caller's prior. Work on a copy.", score=7),
    ),
    hints=(
        "Where exactly does it fail? Print `joint` for a thousand observations.",
        "Add logarithms. Before you take `np.exp`, subtract the largest of them: it cancels in the ratio.",
        "If even the largest logarithm is −∞, nothing is left.",
    ),
    references=("foundations.bayes.sample",),
)


def _own_coin(rng):
    while True:
        prior, throws = rng.integers(2, 9, size=2), rng.integers(3, 15, size=2)
        own = {"a": int(prior[0]), "b": int(prior[1]), "heads": int(throws[0]), "tails": int(throws[1])}
        if tells_apart(OWN_BELIEF, own, 0.004):
            return own


def _three(a, b, heads, tails, prior=0.0):
    """Maximum likelihood, MAP and mean, with `prior` added to both parameters."""
    after = ml.probability.Beta(a + prior, b + prior).update(heads, tails)
    return [heads / (heads + tails), after.mode, after.mean]


OWN_BELIEF = Item(
    id="05.probability.own_belief",
    kind="value",
    title="Three estimates of one coin",
    difficulty=2,
    minutes=8,
    source="Foundations (001), section 2.3; The Four Pillars (002), maximum likelihood",
    answer="own_estimates",
    task="""
Before the first throw you believe Beta(`mine.a`, `mine.b`) about a coin's probability of heads. Then it shows
`mine.heads` heads and `mine.tails` tails. Give a list of three numbers, `own_estimates`, right to three decimals: the
maximum-likelihood estimate, the MAP estimate (the peak of the posterior), and the mean of the posterior.
""",
    numbers=_own_coin,
    expected=_three,
    checks=(values(3, decimals=3),),
    mistakes=(
        Mistake(
            lambda a, b, heads, tails: [heads / (heads + tails), *_three(a, b, heads, tails)[:0:-1]],
            "MAP and mean have changed places: the peak is (a − 1)/(a + b − 2), the mean a/(a + b).",
        ),
        Mistake(
            lambda a, b, heads, tails: [heads / tails, *_three(a, b, heads, tails)[1:]],
            "The first number is the ratio of heads to tails. Divide by all throws.",
        ),
        Mistake(
            lambda a, b, heads, tails: _three(a, b, heads, tails, prior=1.0),
            "You counted a heads and b tails as seen before. Beta(a, b) stands for one fewer of each.",
        ),
        Mistake(
            lambda a, b, heads, tails: _three(1, 1, heads, tails),
            "The prior does not appear: these are the numbers for a flat one, Beta(1, 1).",
        ),
        Mistake(
            lambda a, b, heads, tails: _three(b, a, heads, tails),
            "a belongs to heads and b to tails; you added them crosswise.",
        ),
    ),
    hints=(
        "The posterior is Beta(a + heads, b + tails).",
        "Its peak is (a − 1)/(a + b − 2) and its mean a/(a + b), with the new a and b.",
    ),
    references=("pillars.mle.bernoulli",),
)


@each
def _regressions(rng, size):
    """Random data (n, d) with a true line, noise and a prior."""
    n, d = size
    X = rng.normal(size=(n, d))
    y = X @ rng.normal(size=d) + rng.normal(size=n)
    return X, y, float(rng.uniform(0.5, 2)), float(rng.uniform(0.3, 3))


def _ridge(X, y, penalty):
    return np.linalg.solve(X.T @ X + penalty * np.eye(X.shape[1]), X.T @ y)


_positive = refusing(lambda X, y, noise, prior: not (noise > 0 and prior > 0))


LINE = (np.array([[1.0], [2.0]]), np.array([1.0, 2.0]), 1.0, 1.0)

MAP_WEIGHTS = Item(
    id="05.probability.map_weights",
    kind="function",
    title="A belief in small weights",
    difficulty=2,
    minutes=15,
    source="Foundations (001), section 2.3; The Four Pillars (002), weight decay as a prior",
    answer="map_weights",
    masked=("map_linear_regression", "ridge_regression"),
    task="""
Write `map_weights(X, y, noise, prior)`: the most plausible weights $w$, shape `(d,)`, of the line $y \\approx Xw$,
if the noise is normal with standard deviation `noise` ($\\sigma$) and each weight is believed to be normal around 0
with standard deviation `prior` ($\\tau$). `X` has shape `(n, d)`, `y` `(n,)`.

Put your own $\\lambda$ into $(X^{\\mathsf T}X + \\lambda I)\\,w = X^{\\mathsf T}y$ and solve it (`np.linalg.solve`).
There may be fewer data than weights: with a prior that is no problem. Standard deviations that are not positive are
refused with `ValueError`. For $X = [[1],[2]]$, $y = [1, 2]$, $\\sigma = \\tau = 1$ the weight is 5/6.
""",
    expected=_positive(lambda X, y, noise, prior: _ridge(X, y, (noise / prior) ** 2)),
    checks=(
        values(4, _regressions((6, 2), (20, 4)), public=[LINE], name="more data than weights", rtol=1e-6),
        values(1, _regressions((3, 6)), name="fewer data than weights", rtol=1e-6),
        refuses(1, public=[(*LINE[:2], 0.0, 1.0), (*LINE[:2], 1.0, -1.0)]),
        leaves_inputs(1, _regressions((5, 2)), rtol=1e-6),
    ),
    mistakes=(
        Mistake(
            _positive(lambda X, y, noise, prior: _ridge(X, y, (prior / noise) ** 2)),
            "The ratio is upside down: much noise makes the data count less, and λ larger. λ = σ²/τ².",
            score=1,
        ),
        Mistake(
            _positive(lambda X, y, noise, prior: _ridge(X, y, noise / prior)),
            "λ is the ratio of the variances, σ²/τ²: square the standard deviations.",
            score=1,
        ),
        Mistake(
            _positive(lambda X, y, noise, prior: _ridge(X, y, (noise / prior) ** 2 / 2)),
            "A factor of two: both squares in the exponent are halved, so the halves cancel. λ = σ²/τ².",
            score=1,
        ),
        Mistake(
            _positive(lambda X, y, noise, prior: _ridge(X, y, 1 / prior**2)),
            "The noise is missing: λ = σ²/τ² depends on both.",
            score=1,
        ),
        Mistake(
            _positive(lambda X, y, noise, prior: np.linalg.lstsq(X, y, rcond=None)[0]),
            "These are the weights of plain least squares: the prior has no effect.",
            score=1,
        ),
        Mistake(
            lambda X, y, noise, prior: _ridge(X, y, (noise / prior) ** 2),
            "A standard deviation of 0, or a negative one, is accepted. Refuse it.",
            score=6,
        ),
        Mistake(
            _positive(lambda X, y, noise, prior: np.linalg.solve(X.T @ X + (noise / prior) ** 2, X.T @ y)),
            "You added λ to every entry of XᵀX. λI has it on the diagonal only: `np.eye(d)`.",
            score=1,
        ),
        Mistake(
            _positive(lambda X, y, noise, prior: _ridge(X, y, noise**2)),
            "The prior is missing: λ = σ²/τ² depends on both.",
            score=1,
        ),
    ),
    hints=(
        "ln P(w | D) has two sums of squares, one divided by 2σ², one by 2τ².",
        "Multiply by −2σ²: which factor stands in front of ‖w‖²?",
    ),
)

# Derivation and proof -----------------------------------------------------------------------------------------------


def _plausibility(w, X, y, noise, prior):
    normal = ml.probability.normal_log_density
    return float(normal(y, X @ w, noise).sum() + normal(w, 0.0, prior).sum())


def _weights_and_data(*sizes):
    return lambda rng: [
        (rng.normal(size=X.shape[1]), X, y, noise, prior, float(rng.normal()))
        for X, y, noise, prior in _regressions(*sizes)(rng)
    ]


def _slope(data=1.0, belief=1.0, noise_power=2, prior_power=2, whole=1.0):
    """The slope of the log-posterior with factors in the wrong places."""

    def pullback(w, X, y, noise, prior, dy):
        fit = data * X.T @ (y - X @ w) / noise**noise_power
        return whole * (dy if whole == 1 else 1.0) * (fit - belief * w / prior**prior_power)

    return pullback


LOG_POSTERIOR_PULLBACK = Item(
    id="05.probability.log_posterior_pullback",
    kind="gradient",
    title="Which way to more plausible weights?",
    difficulty=3,
    minutes=20,
    source="ours; Foundations (001), section 2.3; Part II (004), regularisation",
    answer="log_posterior_pullback",
    masked=("vjp", "grad", "value_and_grad", "hessian_vector_product"),
    task="""
The log-posterior of weights $w$ of a line is

$$\\ln P(w\\mid D) = c - \\sum_i\\frac{(y_i - x_i\\cdot w)^2}{2\\sigma^2}
- \\sum_j\\frac{w_j^2}{2\\tau^2}$$

with a constant $c$.

Derive its slope for each $w_j$. Then write `log_posterior_pullback(w, X, y, noise, prior, dy)`, which returns `dw`
of shape `(d,)`: `dy` times the slopes. `X` has shape `(n, d)`, its rows are the $x_i$; `noise` is $\\sigma$ and
`prior` $\\tau$.

One of your terms pulls every weight towards zero, in proportion to its size. It will come back in chapter 9, under
the name of weight decay.
""",
    expected=_slope(),
    checks=(
        gradient(
            4,
            _plausibility,
            _weights_and_data((5, 2), (8, 3), (3, 4)),
            public=[(np.array([0.5]), *LINE[:2], 0.5, 2.0, 1.0)],
        ),
        leaves_inputs(1, _weights_and_data((4, 2)), rtol=1e-6),
    ),
    mistakes=(
        Mistake(_slope(belief=0.0), "The belief is missing: the second sum has a slope too, −w/τ²."),
        Mistake(_slope(belief=-1.0), "A sign: the belief pulls weights towards zero, it does not push them away."),
        Mistake(_slope(data=-1.0), "A sign: where the line lies too low (y − x·w > 0), w must move along x."),
        Mistake(_slope(data=2.0, belief=2.0), "A factor of two: each square is halved, which cancels its slope's 2."),
        Mistake(_slope(noise_power=1, prior_power=1), "You divided by σ and τ. Their squares stand in the formula."),
        Mistake(_slope(whole=1.0000000001), "The slopes are right, but they must be multiplied by `dy`."),
        Mistake(
            _slope(data=-1.0, belief=-1.0),
            "Both signs are turned: these are the slopes of −ln P. Asked for are those of ln P.",
        ),
        Mistake(_slope(data=0.0), "The data are missing: the first sum has slopes, too, Xᵀ(y − Xw)/σ²."),
        Mistake(_slope(belief=2.0), "The square of w is halved in the formula: its slope is −w/τ², without a 2."),
        Mistake(
            lambda w, X, y, noise, prior, dy: _slope(data=1 / len(y))(w, X, y, noise, prior, dy),
            "You took the mean over the data. The log-posterior has their sum.",
        ),
        Mistake(
            lambda w, X, y, noise, prior, dy: _slope()(w, X, y, prior, noise, dy),
            "σ and τ have changed places: the noise belongs to the data, the prior to the weights.",
        ),
    ),
    hints=(
        "Nudge w_j by h: the residual r_i = y_i − x_i·w changes by −x_ij h, and r_i²/2 by −r_i x_ij h.",
        "Sum over i: (1/σ²) Σ_i r_i x_ij. All j at once, that is `X.T @ (y - X @ w) / noise**2`.",
        "The second sum gives −w_j/τ².",
    ),
)

FIVE_STEPS = Item(
    id="05.probability.five_steps",
    kind="text",
    title="From “make the data probable” to a loss",
    difficulty=2,
    minutes=20,
    source="The Four Pillars (002), maximum likelihood estimation, derivation",
    task="""
Write down the five steps from "choose $\\theta$ so that the documents become as probable as possible" to "minimise
the mean of $-\\ln P_\\theta(x_t\\mid x_{<t})$ over all $N$ tokens", with the reason for each. Then answer:

1. Which single step makes an assumption about the world, and which?
2. Why is it allowed to maximise the logarithm, and to divide by $N$, although both change the value of what is
   optimised?
3. Somebody leaves out the fifth step and trains with the *sum* over tokens. The best $\\theta$ is the same. Name one
   thing in training by small steps that is not.
""",
    rubric=(
        (
            2,
            "All five lines in order: product over documents, sum of logarithms, chain rule, sign, division by N; "
            "each with its reason.",
        ),
        (1, "Only the product over documents assumes something: their independence. The chain rule does not."),
        (1, "ln rises strictly, and N is a positive constant, so neither moves the place of the optimum."),
        (1, "The slope, hence the size of a step at a given learning rate, grows with the number of tokens."),
    ),
    hints=(
        "Two of the steps use properties of the logarithm.",
        "A product of what? When is the probability of several things the product of theirs?",
    ),
)

# Project ------------------------------------------------------------------------------------------------------------


def _windows(ids, n):
    return [tuple(int(i) for i in ids[t - n + 1 : t + 1]) for t in range(n - 1, len(ids))]


def _score(train, text, n, size, k, *, last_counts=False, kv=True, log=np.log, total=np.mean, twice=False, whole=False):
    """The right answer, or with a known mistake."""
    if len(text) < n:
        raise ValueError("nothing to score")
    grams, histories = {}, {}
    for window in _windows(train, n):
        grams[window] = grams.get(window, 0) + 1
        histories[window[:-1]] = histories.get(window[:-1], 0) + 1
    if last_counts:
        end = tuple(int(i) for i in train[len(train) - n + 1 :])
        histories[end] = histories.get(end, 0) + 1
    extra = k * size if kv else k
    asked = _windows(train if twice else text, n)
    followed = [sum(grams.values()) if whole else histories.get(w[:-1], 0) for w in asked]
    p = [(grams.get(w, 0) + k) / (count + extra) for w, count in zip(asked, followed, strict=True)]
    return float(total(log(p)))


def _corpora(rng):
    """Training text, text to score, n, vocabulary size and k; the last history of the training text is asked for."""
    drawn = []
    for n, length, size in ((1, 20, 4), (2, 40, 3), (3, 60, 3)):
        train = rng.integers(size, size=length)
        text = np.concatenate([train[len(train) - n + 1 :], rng.integers(size, size=12)])
        drawn.append((train, text, n, size, float(rng.choice([0.1, 0.5, 1.0]))))
    return drawn


def _unseen(rng):
    """Histories that did not occur: every token is then equally likely."""
    return [(np.array([0, 1, 0, 1, 0]), np.array([2, 2, 2, 1]), 3, 4, 0.5)]


NGRAM_SCORE = Item(
    id="05.probability.ngram_score",
    kind="function",
    title="Train by counting, judge on other text",
    difficulty=3,
    minutes=35,
    source="The Four Pillars (002), the Markov property and n-gram models",
    answer="ngram_score",
    masked=("NGram", "train_ngram", "bigram_counts", "distribution_from_counts"),
    task="""
Write `ngram_score(train, text, n, size, k)`: the mean log-probability per token that an $n$-gram model, trained on
`train`, gives to `text`. With $h$ for the $n-1$ tokens before a token $w$, and $V$ for `size`,

$$P(w\\mid h) = \\frac{c(hw) + k}{c(h) + kV}, \\qquad c(h) = \\sum_{w} c(hw).$$

- `train` and `text` are arrays of token ids; $k > 0$.
- Score only the tokens that have $n-1$ tokens before them in `text`. Mind that $c(h)$ counts a history only where
  something followed it.
- $n = 1$ has an empty history. A history that was never seen gives every token $1/V$; the formula says so by itself.
- A text with fewer than $n$ tokens has nothing to score: refuse it with `ValueError`.

Afterwards try it on Shakespeare: `plays = data.shakespeare()`, `characters = ml.Vocabulary(plays.train)`, and both
texts through `characters.encode`. Which $n$ and which $k$ are best on the held-out text?
""",
    expected=_score,
    checks=(
        values(4, _corpora, public=[(np.array([0, 1, 0, 1, 0, 2]), np.array([0, 1, 0, 2]), 2, 3, 1.0)]),
        values(1, _unseen, name="a history that was never seen"),
        refuses(1, public=[(np.array([0, 1, 0]), np.array([0, 1]), 3, 2, 1.0)], name="refuses a text too short"),
        leaves_inputs(1, _unseen),
    ),
    mistakes=(
        Mistake(
            lambda *case: _score(*case, total=np.sum),
            "This is the sum. Divide by the number of scored tokens.",
            score=1,
        ),
        Mistake(
            lambda *case: _score(*case, last_counts=True),
            "You counted the history at the very end of the training text, too; nothing follows it.",
            score=3,
        ),
        Mistake(
            lambda *case: _score(*case, kv=False),
            "k is added to V counts: the denominator grows by k·V, not by k.",
            score=1,
        ),
        Mistake(lambda *case: _score(*case, log=np.log2), "The logarithm is to base 2. Wanted is ln.", score=1),
        Mistake(
            lambda *case: -_score(*case), "The sign: log-probabilities are negative, and so is their mean.", score=1
        ),
        Mistake(
            lambda *case: _score(*case, twice=True) if len(case[1]) >= case[2] else _score(*case),
            "You scored the training text. Score the other one: a model looks good on what it has read.",
            score=1,
        ),
        Mistake(
            lambda *case: _score(*case, log=np.asarray, total=lambda p: np.log(np.mean(p))),
            "This is the logarithm of the mean. Take the logarithm of each probability first, then the mean.",
            score=3,
        ),
        Mistake(
            lambda train, text, n, size, k: _score(train, text[:-1] if len(text) > n else text, n, size, k),
            "The last token is not scored: a text has len(text) − n + 1 windows of n tokens.",
            score=3,
        ),
        Mistake(
            lambda train, text, n, size, k: _score(train, text, n, size, k, whole=True),
            "You divided by all windows, which gives P(h and w). Divide by how often h was followed by something.",
            score=1,
        ),
    ),
    hints=(
        "Two dictionaries, one for windows of n tokens, one for their first n − 1; tuples can be keys.",
        "Fill both in the same loop over the windows of the training text. Then the last history takes care of itself.",
        "`counts.get(window, 0)` is 0 for what was never seen.",
    ),
    references=("pillars.markov.order",),
)

# Check yourself (in the chapter, not graded) ------------------------------------------------------------------------

QUICK = [
    Item(
        id="05.probability.quick_conditional",
        kind="value",
        title="of the",
        difficulty=1,
        minutes=1,
        source="after the primer (003), chapter V",
        graded=False,
        answer="probability",
        task="“of” occurs 40 times, “of the” 10 times. What is P(the | of)?",
        expected=lambda: 0.25,
        checks=(values(1),),
        mistakes=(
            Mistake(lambda: 4.0, "No probability is above one: divide the pair by the condition."),
            Mistake(lambda: 0.2, "10/50: “of the” is among the 40, not beside them."),
            Mistake(lambda: 0.75, "This is the share of what else follows “of”: 1 − P(the | of)."),
        ),
    ),
    Item(
        id="05.probability.quick_hesitation",
        kind="value",
        title="Between how many?",
        difficulty=1,
        minutes=2,
        source="after the primer (003), chapter V, example 5",
        graded=False,
        answer="tokens",
        task="Four tokens have the conditional probabilities ½, ½, ¼ and ¼. Between how many did the model hesitate?",
        expected=lambda: np.exp(-np.mean(np.log([0.5, 0.5, 0.25, 0.25]))),
        checks=(values(1, decimals=2),),
        mistakes=(
            Mistake(lambda: 3.0, "The mean of 2, 2, 4, 4 is 3. Average the logarithms instead, then take e to that."),
            Mistake(lambda: 1.5 * np.log(2), "This is −mean ln P. Take e to the power of it."),
            Mistake(lambda: 64.0, "This is for all four tokens together; take the mean of the logarithms."),
            Mistake(lambda: 8 / 3, "You averaged the probabilities. They multiply: average their logarithms."),
        ),
    ),
    Item(
        id="05.probability.quick_order",
        kind="value",
        title="How far back?",
        difficulty=1,
        minutes=1,
        source="The Four Pillars (002), the Markov property",
        graded=False,
        answer="order",
        task="How many tokens back does a trigram model look?",
        expected=lambda: 3 - 1,
        checks=(values(1),),
        mistakes=(
            Mistake(lambda: 3, "Three tokens are counted together; the third of them is the one to be predicted."),
            Mistake(lambda: 1, "That is a bigram model."),
        ),
        references=("pillars.markov.order",),
    ),
    Item(
        id="05.probability.quick_mle",
        kind="value",
        title="Three of four",
        difficulty=1,
        minutes=1,
        source="after The Four Pillars (002), maximum likelihood",
        graded=False,
        answer="theta",
        task="A coin shows 3 heads in 4 throws. What is the maximum-likelihood estimate of θ?",
        expected=lambda: 0.75,
        checks=(values(1),),
        mistakes=(
            Mistake(lambda: 0.5, "That is a belief about coins. Maximum likelihood listens to the data alone."),
            Mistake(lambda: 3.0, "Three to one are the odds. As a share of the throws?"),
            Mistake(lambda: 4 / 6, "This is the mean of the posterior under a flat prior."),
        ),
    ),
    Item(
        id="05.probability.quick_mean",
        kind="value",
        title="With a flat prior",
        difficulty=1,
        minutes=1,
        source="after Foundations (001), section 2.3",
        graded=False,
        answer="mean",
        task="Beta(1, 1) beforehand, then 3 heads and 1 tail. What is the mean of the posterior?",
        expected=lambda: ml.probability.Beta(1, 1).update(3, 1).mean,
        checks=(values(1, decimals=3),),
        mistakes=(
            Mistake(lambda: 0.75, "This is its peak. The mean of Beta(4, 2) is a/(a + b)."),
            Mistake(lambda: 3.5 / 5, "One head and one tail are added, not half of each."),
            Mistake(lambda: 0.5, "This is the mean before the throws. Add them to the prior: Beta(1 + 3, 1 + 1)."),
        ),
    ),
]

ITEMS = [
    VALID_OR_NOT,
    THREE_TOKENS,
    OWN_CONDITIONAL,
    LOG_PROBABILITY,
    BIGRAM_MODEL,
    DRAW,
    REPAIR_POSTERIOR,
    OWN_BELIEF,
    MAP_WEIGHTS,
    LOG_POSTERIOR_PULLBACK,
    FIVE_STEPS,
    NGRAM_SCORE,
    *QUICK,
]
