"""Chapter 05, probability: sentences, counts and draws, likelihoods and beliefs, ridge regression, n-grams."""

import itertools

import numpy as np

from ..cases import each
from . import checks, draws

SENTENCE = np.array([0.05, 0.12, 0.08, 0.70])  # 003, chapter V, example 5: "The cat sat."


def _pair_counts(text, first, second):
    """How often `first second` occurs, `first` with something behind it, `second` with something before it."""
    pairs = list(itertools.pairwise(text))
    return (
        pairs.count((first, second)),
        sum(a == first for a, _ in pairs),
        sum(b == second for _, b in pairs),
        len(pairs),
    )


@draws("05.probability.own_conditional")
def _own_text(rng):
    """A text of fifteen letters that ends in its own condition, so that every known mistake shows.

    It does not begin with the second letter: all occurrences of it follow a letter.
    """
    while True:
        text = "".join(rng.choice(list("abc"), size=15, p=[0.45, 0.35, 0.2]))
        own = {"text": text, "first": "a", "second": "b"}
        both, given, after, _ = _pair_counts(**own)
        if text[0] != "b" and text[-1] == "a" and 0 < both < given and after > 0:
            return own


@each
def _shares(rng, size):
    """Random conditional probabilities."""
    return (rng.uniform(0.02, 1, size=size),)


@checks("05.probability.log_probability")
def _(c):
    c.values(2, _shares(1, 3, 20), public=[(SENTENCE,), (np.array([0.3, 0.5, 0.9]),), (np.array([0.5, 1.0]),)])
    c.values(2, lambda rng: [(rng.uniform(0.001, 0.1, size=1000),)], name="a long text")
    c.values(1, public=[(np.array([0.5, 0.0, 0.9]),)], name="an impossible token")
    c.refuses(1, public=[(np.array([0.5, 1.2]),), (np.array([-0.1, 0.5]),), (np.array([0.5, np.nan]),)])


@each
def _texts(rng, sizes, k):
    """A random sequence of ids (length, vocabulary); every token occurs before the last place."""
    length, vocabulary = sizes
    ids = np.concatenate([rng.permutation(vocabulary), rng.integers(vocabulary, size=length)])
    return ids, vocabulary, k


TINY = np.array([0, 1, 0, 1, 1, 2, 0])


@checks("05.probability.bigram_model")
def _(c):
    c.values(2, _texts((30, 3), (60, 5), k=0), public=[(TINY, 3, 0)], name="fractions of the counts")
    c.values(2, _texts((10, 4), k=1.0), public=[(TINY, 4, 1), (TINY, 3, 0.5)], name="with k added")
    c.refuses(1, public=[(TINY, 4, 0), (np.array([0, 1]), 2, 0)], name="refuses an empty row")


def _lotteries(rng):
    """Distributions with a number u each that lies well inside an interval."""
    cases = []
    for size in (2, 3, 8, 30):
        p = rng.dirichlet(np.ones(size))
        edges = np.concatenate([[0], np.cumsum(p)])
        piece = rng.integers(size)
        cases.append((p, float(edges[piece] + (0.2 + 0.6 * rng.random()) * p[piece])))
    return cases


HALVES = np.array([0.25, 0.25, 0.5])
FOUR = np.array([0.4, 0.35, 0.2, 0.05])  # 003, chapter V, exercise 11
BELOW_ONE = np.array([0.7, 0.2, 0.1])  # in float64 the sum is 1 - 2**-53


@checks("05.probability.draw")
def _(c):
    c.values(
        3,
        _lotteries,
        public=[(FOUR, 0.1), (FOUR, 0.5), (FOUR, 0.8), (FOUR, 0.99), (BELOW_ONE, 0.8)],
        name="inside the intervals",
    )
    c.values(
        2, public=[(HALVES, 0.25), (HALVES, 0.5), (np.array([0.0, 1.0]), 0.0)], name="at the ends of the intervals"
    )
    tenths = np.full(10, 0.1)
    just_below = [(tenths, 1 - 2**-53), (np.append(tenths, 0.0), 1 - 2**-53), (np.full(3, 1 / 3 - 3e-10), 1 - 2e-10)]
    c.values(1, public=just_below, name="just below one")
    c.refuses(
        1,
        public=[
            (np.array([0.4, 0.35, 0.2, 0.1]), 0.5),
            (np.array([0.4, 0.35, 0.2]), 0.5),
            (np.array([1.5, -0.5]), 0.5),
            (np.array([0.5, 0.5 + 5e-9]), 0.5),  # more than rounding
        ],
    )


@each
def _experiments(rng, size):
    """A prior and the likelihoods of some observations under each hypothesis."""
    hypotheses, observations = size
    return rng.dirichlet(np.ones(hypotheses)), rng.uniform(0.2, 1, size=(observations, hypotheses))


@checks("05.probability.repair_posterior")
def _(c):
    c.values(
        2,
        _experiments((3, 5), (2, 1)),
        public=[(np.array([0.2, 0.8]), np.array([[0.9, 0.3]])), (np.array([0.2, 0.8]), np.array([[0.9, 0.3]] * 2))],
        name="a few observations",
    )
    c.values(
        3,
        lambda rng: [(rng.dirichlet(np.ones(3)), 0.001 * rng.uniform(0.999, 1.001, size=(400, 3)))],
        public=[(np.array([0.2, 0.8]), np.repeat([[0.9, 0.3], [0.1, 0.7]], [639, 361], axis=0))],
        name="hundreds of observations",
        rtol=1e-6,
    )
    c.values(
        1,
        public=[
            (np.array([0.5, 0.5, 0.0]), np.array([[0.5, 0.0, 0.9], [0.2, 0.9, 0.9]])),
            (np.array([0.4, 0.6, 0.0]), np.repeat([[0.1, 0.1, 0.9]], 400, axis=0)),  # the likeliest one is ruled out
        ],
        name="ruled out",
    )
    c.refuses(1, public=[(np.array([0.5, 0.5]), np.array([[0.0, 0.5], [0.5, 0.0]]))], name="refuses impossible data")


@draws("05.probability.own_belief")
def _own_coin(rng):
    prior, throws = rng.integers(2, 9, size=2), rng.integers(3, 15, size=2)
    return {"alpha": int(prior[0]), "beta": int(prior[1]), "heads": int(throws[0]), "tails": int(throws[1])}


@each
def _regressions(rng, size):
    """Random data (n, d) with a true line, noise and a prior."""
    n, d = size
    X = rng.normal(size=(n, d))
    y = X @ rng.normal(size=d) + rng.normal(size=n)
    return X, y, float(rng.uniform(0.5, 2)), float(rng.uniform(0.3, 3))


LINE = (np.array([[1.0], [2.0]]), np.array([1.0, 2.0]), 1.0, 1.0)


@checks("05.probability.map_weights")
def _(c):
    c.values(4, _regressions((6, 2), (20, 4)), public=[LINE], name="more data than weights", rtol=1e-6)
    c.values(1, _regressions((3, 6)), name="fewer data than weights", rtol=1e-6)
    c.refuses(1, public=[(*LINE[:2], *pair) for pair in ((0.0, 1.0), (1.0, -1.0), (1.0, 0.0), (-1.0, 1.0))])


def _corpora(rng):
    """Training text, text to score, n, vocabulary size and k; the last history of the training text is asked for."""
    drawn = []
    for n, length, size in ((1, 20, 4), (2, 40, 3), (3, 60, 3)):
        train = np.append(rng.permutation(size), rng.integers(size, size=length - size))
        text = np.concatenate([train[len(train) - n + 1 :], rng.integers(size, size=12)])
        drawn.append((train, text, n, size, float(rng.choice([0.1, 0.5, 1.0]))))
    return drawn


def _unseen(rng):
    """Histories that did not occur: every token is then equally likely. The second text is as short as it may be."""
    train = np.array([0, 1, 0, 1, 0])
    return [(train, np.array([2, 2, 2, 1]), 3, 4, 0.5), (train, np.array([2, 2, 1]), 3, 4, 0.5)]


@checks("05.probability.ngram_score")
def _(c):
    c.values(4, _corpora, public=[(np.array([0, 1, 0, 1, 0, 2]), np.array([0, 1, 0, 2]), 2, 3, 1.0)])
    c.values(1, _unseen, name="a history that was never seen")
    c.refuses(1, public=[(np.array([0, 1, 0]), np.array([0, 1]), 3, 2, 1.0)], name="refuses a text too short")


LETTERS = {"e": 0.30, "t": 0.20, "a": 0.15, "o": 0.12, "n": 0.10, "s": 0.06, "h": 0.04, "z": 0.03}


def _questions(codes):
    if not isinstance(codes, dict) or set(codes) != set(LETTERS):
        raise ValueError(f"the answer is a dictionary with the letters {' '.join(LETTERS)}")
    if not all(isinstance(code, str) and set(code) <= {"0", "1"} for code in codes.values()):
        raise ValueError('each letter has a text of 0 and 1, such as "010"')
    for letter, code in codes.items():
        for other, longer in codes.items():
            if letter != other and longer.startswith(code):
                raise ValueError(
                    f"the sequence of {letter}, {code!r}, is the beginning of that of {other}, {longer!r}",
                    f"After {code!r} you would not know whether to stop. Change one of the two sequences.",
                )
    return sum(LETTERS[letter] * len(code) for letter, code in codes.items())


def _shorter(codes):
    """What makes a code cheaper."""
    for letter, code in codes.items():
        if code and sum(other.startswith(code[:-1]) for other in codes.values()) == 1:
            return [
                f"No other sequence begins with {code[:-1]!r}, so the sequence of {letter} can lose its last digit."
            ]
    for letter, code in codes.items():
        for other, longer in codes.items():
            if LETTERS[other] > LETTERS[letter] and len(longer) > len(code):
                return [
                    f"{other} is more probable than {letter}, but its sequence is longer. Exchange the two sequences."
                ]
    return ["Begin with the two least probable letters: join them, and go on with the sum of their probabilities."]


@checks("05.probability.fewest_questions")
def _(c):
    c.scored("questions", _questions, {2.7 + 1e-9: 1, 2.98 + 1e-9: 2 / 3, 3 + 1e-9: 1 / 3}, _shorter)
