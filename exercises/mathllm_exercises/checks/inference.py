"""Chapter 14, inference: cutting a distribution, following beams, keeping keys and values, guessing ahead."""

import numpy as np

import mathllm as ml

from ..cases import each
from ..scoring import array
from . import checks, draws

EXAMPLE = np.array([0.629, 0.231, 0.140])  # softmax of [2, 1, 0.5], as 003 and 004 use it


@draws("14.inference.own_top_k")
def _sorted_shares(rng):
    """Four probabilities in falling order, in hundredths, and k = 2."""
    while True:
        shares = np.sort(rng.multinomial(80, [0.4, 0.3, 0.2, 0.1]) + 5)[::-1]
        if len(set(shares.tolist())) == 4:
            return {"P": (shares / 100).tolist()}


def _renormalised(P, k):
    P = np.array(P)
    return np.where(np.arange(len(P)) < k, P, 0) / P[:k].sum()


@draws("14.inference.own_cache")
def _model_sizes(rng):
    return {
        "layers": int(rng.choice([16, 24, 32, 40])),
        "kv_heads": int(rng.choice([3, 5, 6])),
        "head_width": int(rng.choice([64, 128])),
        "tokens": int(rng.choice([2048, 4096, 8192])),  # with 1024, KiB per token are MiB in all
    }


@each
def _distributions(rng, n):
    """A random distribution and p, which is kept away from the partial sums."""
    P = ml.softmax(2 * rng.normal(size=n))
    sums = np.concatenate([[0], np.cumsum(np.sort(P)[::-1])])
    i = int(rng.integers(n))
    return P, float((sums[i] + sums[i + 1]) / 2)


@checks("14.inference.repair_nucleus")
def _(c):
    c.values(
        3,
        _distributions(3, 10, 200),
        public=[(EXAMPLE, 0.5), (EXAMPLE, 0.8), (EXAMPLE, 0.9), (EXAMPLE[::-1].copy(), 0.7)],
        name="right distribution",
    )
    c.values(1, public=[(np.array([0.5, 0.3, 0.2]), 0.5), (EXAMPLE, 1.0)], name="at equality")
    c.refuses(1, public=[(EXAMPLE, 0.0), (EXAMPLE, 1.5)], name="refuses p outside (0, 1]")


@each
def _beam_worlds(rng, beams):
    """A world of five tokens in which greedy decoding, two beams, all texts and the two worst beams find four texts."""
    while True:
        first, second = ml.softmax(0.3 * rng.normal(size=5)), ml.softmax(2 * rng.normal(size=(5, 5)))
        found = [rule(first, second, 2) for rule in (_greedy_steps, _two_steps, _exhaustive, _worst_beams)]
        if len({*map(tuple, found)}) == 4:
            return first, second, beams


def _two_steps(first, second, beams):
    return _best_text(first, second, np.argsort(-first, kind="stable")[:beams])


def _worst_beams(first, second, beams):
    return _best_text(first, second, np.argsort(first)[:beams])


def _best_text(first, second, begin):
    """The best text of two tokens of which the first is one of `begin`."""
    scores = first[begin, None] * second[begin]
    i, j = np.unravel_index(np.argmax(scores), scores.shape)
    return [int(begin[i]), int(j)]


def _greedy_steps(first, second, beams):
    i = int(np.argmax(first))
    return [i, int(np.argmax(second[i]))]


def _exhaustive(first, second, beams):
    joint = first[:, None] * second
    return [int(n) for n in np.unravel_index(np.argmax(joint), joint.shape)]


TRAP = (np.array([0.36, 0.33, 0.31]), np.array([[0.40, 0.30, 0.30], [0.50, 0.30, 0.20], [0.04, 0.93, 0.03]]))


# Sum, product and second probability alone each prefer another text; tokens are not sorted.
WEIGHED = (np.array([0.2, 0.5, 0.3]), np.array([[0.85, 0.1, 0.05], [0.5, 0.3, 0.2], [0.8, 0.1, 0.1]]))


@checks("14.inference.beam", expected=_two_steps)
def _(c):
    c.values(2, public=[(*TRAP, 1), (*TRAP, 2), (*TRAP, 3)], name="the world of the chapter", rtol=0)
    c.values(3, _beam_worlds(2, 1, 5, 2), public=[(*WEIGHED, 3)], name="other worlds", rtol=0)


def _growing(rng):
    """Keys, values and queries of a short text, one head."""
    return [tuple(rng.normal(size=(3, T, K))) for T, K in ((2, 2), (4, 3), (7, 8))]


def _shifted_keys(rng):
    """Keys with a large common part: scores are huge, their differences are not."""
    queries, keys, values_ = rng.normal(size=(3, 5, 4))
    queries[0] = -abs(queries[0])  # its scores are far below 0, the others may be above
    return [(queries, keys + 2000.0, values_)]


@checks("14.inference.cache")
def _(c):
    c.values(3, _growing, name="right outputs")
    c.values(1, _shifted_keys, name="large scores", rtol=1e-6)


@each
def _pairs(rng, n):
    return ml.softmax(rng.normal(size=n)), ml.softmax(rng.normal(size=n))


@checks("14.inference.residual")
def _(c):
    c.values(3, _pairs(2, 5, 50), public=[(np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5]))])


def _texts_to_penalise(rng):
    """Logits, a text in which a token occurs twice, and θ."""
    texts = [rng.integers(8, size=4) for _ in range(3)]
    return [(rng.normal(size=8) * 3, np.append(text, text[0]), float(rng.uniform(1.1, 2))) for text in texts]


@checks("14.inference.repair_penalty")
def _(c):
    c.values(2, _texts_to_penalise, name="negative logits")
    c.values(1, public=[(np.array([2.0, 1.0, 3.0]), np.array([0, 0, 0, 2]), 2.0)], name="punished once")


@each
def _temperature_cases(rng, n):
    return rng.normal(size=n), float(rng.uniform(0.3, 3)), rng.normal(size=n)


@checks("14.inference.temperature_pullback")
def _(c):
    c.gradient(3, lambda z, T: ml.softmax(z, temperature=T), _temperature_cases(2, 4, 6))


@each
def _tiles(rng, size, scale=1.0):
    """(d_k, d_v, lengths of the tiles): one query, then lists of key tiles and value tiles."""
    k, v, lengths = size
    keys = [scale * rng.normal(size=(n, k)) for n in lengths]
    return rng.normal(size=k), keys, [rng.normal(size=(n, v)) for n in lengths]


def _stairs(*scores):
    """One query and one key per tile, with these dot products; the values are 1, 2, …"""
    keys = [np.array([[score, 0.0]]) for score in scores]
    return np.array([1.0, 0.0]), keys, [np.array([[n + 1.0]]) for n in range(len(scores))]


@checks("14.inference.streaming")
def _(c):
    c.values(2, _tiles((3, 2, (4,)), (2, 1, (1,))), name="one tile")
    c.values(3, _tiles((3, 2, (4, 1, 7)), (8, 4, (3, 3, 3, 3))), public=[_stairs(0.5, 1.0, 2.0)], name="several tiles")
    c.values(
        2,
        _tiles((4, 2, (3, 5, 2)), scale=1000.0),
        public=[_stairs(1.0, 1900.0, 1901.0), _stairs(-2001.0, -2000.0), _stairs(2000.0, 1.0, 2001.0)],
        name="large scores",
    )


def _marked_texts(rng):
    """Texts with lists: green[a] says which tokens are green after a. In the first, fewer than half are green."""
    cases = []
    for n, V in ((30, 10), (200, 20)):
        text, green = rng.integers(V, size=n), np.zeros((V, V), bool)
        for row in green:
            row[rng.permutation(V)[: V // 2]] = True
        cases.append((text, ~green if not cases and green[text[:-1], text[1:]].mean() > 0.5 else green))
    return cases


ALTERNATING = (np.array([0, 1, 0, 1, 0]), np.array([[False, True], [True, False]]))


@checks("14.inference.detect")
def _(c):
    green = ALTERNATING[1]
    c.values(
        2,
        public=[ALTERNATING, (np.array([0, 0, 0]), green), (np.array([0, 1]), green)],
        name="all green, none green",
    )
    in_order = np.array([0, 1, 1]), np.array([[False, True], [False, True]])  # reversed, only one is green
    c.values(3, _marked_texts, public=[in_order], name="random texts")
    c.refuses(1, public=[(np.array([1]), green), (np.zeros(0, int), green)], name="refuses a text of one token or none")


LOGITS = np.array([9.1, 8.3, 7.9, 6.6, 6.1, 5.2, 4.4, 3.7, 2.9, 1.5, 0.8, -0.6, -2.0, -3.1, -5.2, -7.4])


def _nats_of_rounding(levels):
    levels = array(levels, 4)
    rounded = levels[np.abs(LOGITS[:, None] - levels).argmin(axis=1)]
    return np.sum(ml.softmax(LOGITS) * (ml.log_softmax(LOGITS) - ml.log_softmax(rounded)))


@checks("14.inference.four_levels")
def _(c):
    c.scored("nats", _nats_of_rounding, {0.0282: 1, 0.053: 2 / 3, 0.343: 1 / 3})
