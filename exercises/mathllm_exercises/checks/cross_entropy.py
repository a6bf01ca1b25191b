"""Chapter 07, cross-entropy: losses and units, entropies and divergences, the training loss, the shortest code."""

import numpy as np

import mathllm as ml

from ..cases import each
from ..scoring import array
from . import checks, draws


@draws("07.cross_entropy.own_units")
def _passage(rng):
    tokens = int(rng.integers(150, 400))
    return {
        "nats": float(np.round(rng.uniform(2.5, 4.0) * tokens, 1)),
        "tokens": tokens,
        "characters": int(tokens * rng.uniform(3.2, 4.6)),
    }


def _distributions(*shapes):
    """Random distributions along the last axis, each with a base: 10, 2, e, and again."""
    bases = (10.0, 2.0, np.e)
    return lambda rng: [(ml.softmax(2 * rng.normal(size=shape)), bases[i % 3]) for i, shape in enumerate(shapes)]


@checks("07.cross_entropy.entropy")
def _(c):
    c.values(
        2,
        _distributions(2, 6, 50),
        public=[(np.array([0.5, 0.5]), 2.0), (np.full(6, 1 / 6), 2.0), (np.array([0.5, 0.3, 0.2]), np.e)],
    )
    c.values(1, public=[(np.array([1.0]), 2.0), (np.array([0.5, 0.0, 0.5]), 10.0)], name="with zeros")
    rounded = np.array([[0.7, 0.2, 0.1], [0.2, 0.7, 0.1]])  # the sums are 0.9999999999999999
    c.values(1, _distributions((3, 4), (2, 2, 5)), public=[(rounded, 2.0)], name="a stack of distributions")
    c.refuses(
        1,
        public=[
            (np.array([0.5, 0.6]), 2.0),
            (np.array([1.5, -0.5]), 2.0),
            (np.array([0.5, 0.4]), 2.0),
            (np.array([0.5, 0.500005]), 2.0),  # more than rounding
            (np.array([[0.5, 0.5], [0.5, 0.4]]), 2.0),
        ],
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


@checks("07.cross_entropy.kl_divergence", expected=_kl)
def _(c):
    c.values(
        3,
        _two(2, 5, 30),
        public=[
            (np.array([0.9, 0.1]), np.array([0.5, 0.5])),
            (np.array([0.5, 0.5]), np.array([0.9, 0.1])),
            (np.array([0.5, 0.3, 0.2]), np.array([0.4, 0.4, 0.2])),
        ],
    )
    c.values(
        1,
        public=[(np.array([1.0, 0.0]), np.array([0.5, 0.5])), (np.array([0.5, 0.5, 0.0]), np.array([0.25, 0.75, 0.0]))],
        name="what cannot happen",
    )
    c.values(1, public=[(np.array([0.5, 0.5]), np.array([1.0, 0.0]))], name="what was ruled out")
    c.refuses(1, public=[(np.array([0.5, 0.5]), np.array([1.0])), (np.full(2, 0.5), np.full(3, 1 / 3))])


@each
def _batches(rng, shape, ignored=0):
    """Logits and labels; the last `ignored` labels are −100."""
    *places, size = shape
    labels = rng.integers(size, size=places)
    if ignored:
        labels.reshape(-1)[-ignored:] = -100
    return 3 * rng.normal(size=(*places, size)), labels


@checks("07.cross_entropy.cross_entropy")
def _(c):
    c.values(
        2,
        _batches((3, 4), (2, 5, 6), (1, 2)),
        public=[
            (np.log([[0.7, 0.2, 0.1]]), np.array([0])),
            (np.log([[0.7, 0.2, 0.1]]), np.array([2])),
            (np.array([[2.0, 1.0, 0.5]]), np.array([0])),
        ],
    )
    c.values(1, _batches((4, 3), (2, 4, 5), ignored=2), name="labels that do not count")
    c.values(
        1,
        public=[
            (np.array([[1000.0, 0.0]]), np.array([1])),
            (np.array([[1000.0, 0.0]]), np.array([0])),
            (np.array([[-1000.0, -1001.0]]), np.array([0])),
            (np.array([[1000.0, 999.0], [-1000.0, -1001.0]]), np.array([0, 1])),  # each position has its own maximum
        ],
        name="large logits",
    )
    c.keeps_dtype(1, lambda rng: [(rng.normal(size=(3, 4)).astype(np.float32), rng.integers(4, size=3))])
    c.refuses(1, public=[(np.zeros((2, 3)), np.array([-100, -100]))], name="refuses a batch without a label")


@each
def _chances(rng, size):
    return (rng.uniform(0.01, 1, size=size),)


@checks("07.cross_entropy.repair_perplexity")
def _(c):
    c.values(3, _chances(1, 4, 50), public=[(np.array([0.3]),), (np.array([0.5, 1.0]),), (np.full(1000, 0.1),)])
    c.values(1, public=[(np.array([0.5, 0.0]),)], name="an impossible token")
    c.refuses(1, public=[(np.array([]),), (np.array([0.5, 1.5]),), (np.array([0.5, -0.1]),), (np.array([np.nan]),)])


@draws("07.cross_entropy.own_mutual_information")
def _tables(rng):
    """A table of counts that tells something."""
    while True:
        own = {"counts": rng.integers(1, 12, size=(2, 2))}
        if _told(**own) > 0.03:
            return own


def _told(counts):
    return ml.mutual_information(np.array(counts) / np.sum(counts), base=2)


def _messages(rng):
    drawn = []
    for size, length in ((2, 12), (3, 8), (5, 10), (4, 80)):
        counts = rng.integers(1, 12, size=size).tolist()
        message = rng.choice(size, size=length - 1, p=np.array(counts) / sum(counts)).tolist()
        drawn.append(([*message, size - 1], counts))  # only zeros would need no digit: that is another check's
    return drawn


@checks("07.cross_entropy.encode")
def _(c):
    c.values(
        4,
        _messages,
        public=[([1, 0, 2], [6, 3, 1]), ([0, 0, 1], [6, 3, 1]), ([1], [1, 1]), ([1], [1, 1, 2]), ([0, 1], [1, 1])],
        name="right codes",
    )
    c.values(1, public=[([], [6, 3, 1]), ([0] * 40, [99, 1]), ([0, 1], [1, 9])], name="very short codes")
    c.values(
        1,
        lambda rng: [([0, *rng.integers(3, size=200).tolist()], [1, 2, 4])],
        public=[([0] + [2, 1] * 100, [1, 2, 4])],  # two digits fewer than the surprisal, rounded up
        name="a long message",
    )
    c.refuses(
        1,
        public=[([0, 1], [5, 0]), ([3], [1, 1]), ([2], [1, 1]), ([-1], [1, 1])],
        name="refuses what has no probability",
    )


@checks("07.cross_entropy.quick_bytes")
def _(c):
    c.values(1, rtol=0.0, atol=1.0)


def _worse_text(q):
    q = array(q, 4)
    p, r = np.array([0.6, 0.3, 0.05, 0.05]), np.array([0.05, 0.05, 0.1, 0.8])
    if np.any(q <= 0):
        raise ValueError(
            "the four probabilities must be above 0, because both texts contain all four tokens; "
            f"your smallest is {q.min():.6g}"
        )
    if abs(q.sum() - 1) > 1e-6:
        also = "; divide p + r by 2" if np.allclose(q, p + r) else ""
        raise ValueError(f"the four probabilities must sum to 1; yours sum to {q.sum():.6g}{also}")
    for own, other, text in ((p, r, "r"), (r, p, "p")):
        if np.allclose(q, own, atol=1e-6):
            raise ValueError(
                f"you gave one text its own distribution, but predict {text} with {-other @ np.log(q):.4g} nats; "
                "mix the two distributions"
            )
    return max(-p @ np.log(q), -r @ np.log(q))


@checks("07.cross_entropy.two_texts")
def _(c):
    c.scored("nats", _worse_text, {1.2433: 1, 1.37: 2 / 3, 1.387: 1 / 3})
