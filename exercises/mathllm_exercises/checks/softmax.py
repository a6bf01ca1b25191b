"""Chapter 06, softmax: probabilities from scores, temperature, masks, logarithms, calibration."""

import numpy as np

import mathllm as ml

from ..cases import each, normals
from ..scoring import operations
from . import checks, draws

EXAMPLE = np.array([2.0, 1.0, 0.5])  # 003, chapter VI, example 6; 004 uses it for temperature


@draws("06.softmax.own_shares")
def _three_logits(rng):
    """Three different logits and a temperature other than 1."""
    logits = rng.choice(np.arange(-6, 7), size=3, replace=False) / 2
    return {"logits": logits.tolist(), "temperature": float(rng.choice([0.5, 2.0, 4.0]))}


@checks("06.softmax.softmax", expected=ml.softmax)
def _(c):
    c.values(2, normals(3, 7, 1), public=[(EXAMPLE,), (np.zeros(3),), (np.array([10.0, 0.0, 0.0]),)], name="one row")
    c.values(2, normals((2, 3), (4, 1, 5), (1, 2)), name="a stack of rows")
    c.values(
        2,
        normals(4, (2, 3), scale=1e4),
        public=[
            (np.array([1000.0, 1000.0]),),
            (np.array([1.0, 0.0, -np.inf]),),
            (np.array([-1e4, -np.inf]),),
            (np.array([[0.0, 1.0], [2000.0, 2001.0]]),),
        ],
        name="extreme scores",
    )
    c.keeps_dtype(1, normals(5, (2, 3), dtype=np.float32))


@each
def _with_temperatures(rng, tau):
    return rng.normal(size=5) * 2, float(tau)


@checks("06.softmax.with_temperature", expected=lambda z, tau: ml.softmax(z, temperature=tau))
def _(c):
    c.values(
        2,
        _with_temperatures(0.5, 1.0, 2.0, 7.0),
        public=[(EXAMPLE, 0.5), (EXAMPLE, 1.0), (EXAMPLE, 2.0)],
        name="ordinary temperatures",
    )
    c.values(
        2,
        _with_temperatures(0.001, 0.01),
        public=[(EXAMPLE, 0.001), (np.array([2.0, 2.001, 2.002]), 0.001)],
        name="cold",
    )
    c.values(1, _with_temperatures(1e4, 1e6), public=[(EXAMPLE, 1e6)], name="hot")
    c.refuses(1, public=[(EXAMPLE, 0.0), (EXAMPLE, -1.0)], name="refuses τ ≤ 0")


def _scores(rng):
    """Attention-like scores: queries along the first axis, keys along the last; some keys forbidden."""
    cases = []
    for queries, keys in [(2, 3), (4, 4), (3, 5)]:
        scores = rng.normal(size=(queries, keys)) * 3
        allowed = rng.random(size=(queries, keys)) < 0.7
        allowed[np.arange(queries), rng.integers(keys, size=queries)] = True
        cases.append((scores, allowed))
    return cases


@checks("06.softmax.repair_axis")
def _(c):
    c.values(
        3,
        lambda rng: [(scores, np.ones_like(allowed)) for scores, allowed in _scores(rng)],
        public=[(np.array([[2.0, 1.0, 0.5], [0.0, 5.0, 0.0]]), np.ones((2, 3), bool))],
        name="all keys allowed",
    )
    c.values(2, _scores, name="some keys forbidden")
    c.values(
        1,
        public=[
            (np.array([[0.0, 1.0, 10_000.0]]), np.array([[True, True, False]])),
            (np.array([[-10_000.0, -9_999.0, 0.0]]), np.array([[True, True, False]])),
        ],
        name="the largest score forbidden",
    )
    apart = np.array([[0.0, 1.0, 0.0], [10_000.0, 9_999.0, 9_997.0]])
    c.values(1, public=[(apart, np.ones((2, 3), bool))], name="rows far apart")
    c.leaves_inputs(1, _scores, name="leaves its inputs alone, keys forbidden")


@checks("06.softmax.repair_log", expected=ml.log_softmax)
def _(c):
    c.values(1, normals(3, 6), public=[(EXAMPLE,)], name="one row")
    c.values(1, normals((2, 3), (3, 4)), name="a stack of rows")
    c.values(
        4,
        normals(4, (2, 3), scale=1e4),
        public=[(np.array([0.0, -800.0]),), (np.array([1000.0, 1000.0]),), (np.array([[0.0, 1.0], [2000.0, 2001.0]]),)],
        name="extreme scores",
    )


@each
def _to_calibrate(rng, n):
    z = rng.normal(size=n) * 3
    share = ml.softmax(z, temperature=rng.uniform(0.3, 3.0)).max()
    return z, float(min(share, 0.99))


@checks("06.softmax.calibrate")
def _(c):
    c.values(2, _to_calibrate(2, 3, 5), public=[(EXAMPLE, 0.5), (EXAMPLE, 0.9)], name="a few scores", rtol=1e-6)
    c.values(2, _to_calibrate(1000, 5000), name="a vocabulary of scores", rtol=1e-6)
    c.values(
        2,
        lambda rng: [(rng.normal(size=4) * 1e3, 0.6), (rng.normal(size=4) * 1e-3, 0.6)],
        public=[(EXAMPLE * 1e4, 0.7)],
        name="scores of any size",
        rtol=1e-6,
    )
    c.refuses(
        1,
        public=[(EXAMPLE, 0.3), (EXAMPLE, 1 / 3), (EXAMPLE, 1.0)],
        name="refuses a share of 1/n or less, or of 1 or more",
    )
    c.refuses(1, public=[(np.array([1.0, 1.0, 0.0]), 0.6)], name="refuses a share of 1/m or more for m tied logits")


def _joined(m1, s1, m2, s2):
    m = max(m1, m2)
    return {"m": m, "s": s1 * np.exp(m1 - m) + s2 * np.exp(m2 - m)}


def _slips(m1, s1, m2, s2):
    first, second = np.exp(m1 - m2), np.exp(m2 - m1)  # one of them is above 1
    factor = min(first, second)
    larger, smaller = (s1, s2) if m1 > m2 else (s2, s1)
    always = "You always scaled the {} part. Scale the one with the smaller maximum: use `np.sign(m1 - m2)`."
    sums = {
        "Your factor is e^(m1 − m2), which is above 1 if m1 is larger. Use e^(−|m1 − m2|).": larger + smaller * first,
        "Your factor is e^(m2 − m1), which is above 1 if m2 is larger. Use e^(−|m1 − m2|).": larger + smaller * second,
        "You scaled the part with the larger maximum. Scale the other part.": larger * factor + smaller,
        always.format("second"): s1 + s2 * factor,
        always.format("first"): s1 * factor + s2,
        "You used m1 as the common maximum. Where m2 is larger, s is relative to m2.": s1 + s2 * second,
        "You used m2 as the common maximum. Where m1 is larger, s is relative to m1.": s1 * first + s2,
        "You added sums that are relative to different maxima. Scale the part with the smaller maximum first.": s1 + s2,
        "You scaled both parts. Scale only the part with the smaller maximum.": (s1 + s2) * factor,
        "This is the sum of e^z, which can overflow. Give the sum of e^(z − m).": s1 * np.exp(m1) + s2 * np.exp(m2),
    }
    return {"s": sums}


def _exponentials(program):
    functions = ["np.exp", "np.maximum", "np.abs", "np.sign"]
    count = operations(program, ["m1", "s1", "m2", "s2"], _joined, functions, ["s1", "s2"], slips=_slips)
    return count["np.exp"]


@checks("06.softmax.one_exponential")
def _(c):
    c.scored("exponentials", _exponentials, {1: 1, 2: 1 / 3})
