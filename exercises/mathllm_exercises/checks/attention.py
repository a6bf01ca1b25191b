"""Chapter 10, attention: by hand and in code, masks, heads, rotary positions, Markov chains, the backward pass."""

import numpy as np

import mathllm as ml

from ..cases import each, normals
from ..scoring import array
from . import checks, draws

Q, K = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), np.array([[1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
V = np.array([[10.0, 0.0], [0.0, 10.0], [5.0, 5.0]])  # 003, chapter X, example 10
Q2, K2 = np.array([[1.0, 0.5], [0.3, 0.8], [0.1, 0.9]]), np.array([[0.9, 0.2], [0.4, 0.7], [0.2, 0.8]])  # 002


def _softmax(s):
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


X_PART2 = np.array([[0.2, 0.1, -0.3, 0.5], [-0.1, 0.4, 0.2, -0.2], [0.3, -0.2, 0.1, 0.4]])
P_PART2 = np.array([[0.0, 0.0, 0.1, 0.0], [0.0, 0.1, 0.0, 0.0], [0.1, 0.0, 0.0, 0.0]])


@draws("10.attention.own_row")
def _own_row(rng):
    """One query, three keys of width 4."""
    return {"query": rng.integers(-4, 5, size=4) / 2 + 0.25, "keys": rng.integers(-4, 5, size=(3, 4)) / 2}


@draws("10.attention.own_turn")
def _own_turn(rng):
    """One pair of components, two positions, a rate."""
    query, key = rng.integers(1, 9, size=(2, 2)) / 2
    m, n = int(rng.integers(4, 10)), int(rng.integers(1, 4))
    return {"query": query, "key": key, "m": m, "n": n, "rate": float(rng.choice([0.1, 0.2, 0.3]))}


@each
def _triples(rng, size, scale=1.0, dtype=float):
    """Queries, keys, values for (T, S, d_k, d_v), after optional leading axes."""
    *lead, t, s, k, v = size
    shapes = (*lead, t, k), (*lead, s, k), (*lead, s, v)
    return tuple((scale * rng.normal(size=shape)).astype(dtype) for shape in shapes)


def _attend(query, key, value):
    return _softmax(query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])) @ value


LARGE = (np.array([[100.0, 0.0], [50.0, 0.0]]), np.array([[100.0, 0.0], [99.99, 0.0]]), np.array([[0.0], [1.0]]))


@checks("10.attention.attention", expected=lambda query, key, value: ml.attention(query, key, value))
def _(c):
    c.values(
        3, _triples((3, 3, 4, 4), (2, 5, 3, 6), (1, 1, 2, 3), (4, 2, 2, 3)), public=[(Q, K, V)], name="one sequence"
    )
    c.values(2, _triples((2, 4, 4, 3, 3), (2, 3, 4, 5, 2, 3)), name="batch and head axes")
    c.values(1, _triples((3, 4, 8, 2), scale=100.0), public=[LARGE], name="large scores")
    c.keeps_dtype(1, _triples((3, 3, 4, 4), dtype=np.float32))


@checks("10.attention.causal_weights")
def _(c):
    c.values(3, normals((2, 2), (3, 3), (6, 6)), public=[(Q @ K.T / np.sqrt(2),)], name="right weights")
    c.values(1, public=[(np.array([[-2000.0, 900.0], [-900.0, 800.0]]),)], name="large scores")


def _multi_head(x, w_q, w_k, w_v, w_o, heads, split):
    q, k, v = (split(x @ w, heads) for w in (w_q, w_k, w_v))
    return _attend(q, k, v).swapaxes(-2, -3).reshape(*x.shape[:-1], -1) @ w_o


@each
def _layers(rng, size):
    """(*lead, T, D, heads): x and four square matrices."""
    *lead, t, d, heads = size
    weights = tuple(rng.normal(size=(d, d)) for _ in range(4))
    return rng.normal(size=(*lead, t, d)), *weights, heads


def _cut_tokens(x, heads):
    return x.reshape(*x.shape[:-2], heads, x.shape[-2], x.shape[-1] // heads)


def _deal_columns(x, heads):
    return np.moveaxis(x.reshape(*x.shape[:-1], x.shape[-1] // heads, heads), -1, -3)


@checks(
    "10.attention.multi_head",
    expected=lambda x, w_q, w_k, w_v, w_o, heads: ml.multi_head_attention(
        x, {"query": w_q, "key": w_k, "value": w_v, "output": w_o}, heads=heads
    ),
)
def _(c):
    unit = np.eye(2)
    c.values(2, _layers((4, 6, 1)), public=[(*[unit] * 5, 1)], name="one head")
    public = [(np.array([[1.0, 2], [0, 1]]), *[unit] * 4, 2)]
    c.values(3, _layers((4, 6, 2), (5, 12, 3), (2, 4, 4)), public=public, name="several heads")
    c.values(1, _layers((2, 4, 6, 3), (2, 2, 3, 4, 2)), name="a batch")
    c.refuses(1, _layers((3, 6, 4)), name="refuses heads that do not divide D")


@each
def _walks(rng, n, power=1.0, even=0.7):
    """A random attention matrix, mixed with this much even attention: |λ₂| is at most 1 − even."""
    A = rng.uniform(0.05, 1, size=(n, n)) ** power
    return ((1 - even) * A / A.sum(axis=1, keepdims=True) + even / n,)


def _causal_walks(rng):
    cases = []
    for n in (3, 5):
        A = np.tril(rng.uniform(0.2, 1, size=(n, n)))
        cases.append((A / A.sum(axis=1, keepdims=True),))
    return cases


WORKED = np.array([[0.386, 0.323, 0.291], [0.294, 0.351, 0.355], [0.269, 0.356, 0.375]])
SLOW = 0.98 * np.eye(3) + 0.02 * WORKED
CAUSAL = np.array([[1.0, 0], [0.1, 0.9]])
SWAPPING = np.array([[0.2, 0.8], [0.6, 0.4]])  # NumPy gives its eigenvalue 1 last
UNEVEN = np.array([[0.7, 0.2, 0.1], [0.2, 0.7, 0.1], [0.6, 0.3, 0.1]])  # rounded sums below 1
LAST_ROW_UNEVEN = np.array([[1.0, 0, 0], [0.4, 0.6, 0], [0.7, 0.2, 0.1]])


@checks("10.attention.stationary", expected=ml.stationary_distribution)
def _(c):
    c.values(2, _walks(2, 3, 6), public=[(WORKED,), (SWAPPING,), (UNEVEN,)], rtol=1e-7, name="fast walks")
    slow = [(SLOW,), (0.95 * np.eye(2) + 0.05 * SWAPPING,), (0.965 * np.eye(3) + 0.035 * UNEVEN,)]
    c.values(1, _walks(4, 5, power=6.0, even=0.02), public=slow, rtol=1e-6, name="slow walks")
    causal = [(CAUSAL,), (LAST_ROW_UNEVEN,)]
    c.values(1, _causal_walks, public=causal, rtol=1e-6, atol=1e-9, name="causal attention")
    c.refuses(1, public=[(np.array([row, [0.5, 0.5]]),) for row in ([0.5, 0.6], [0.5, 0.4], [1.5, -0.5])])


@each
def _placed(rng, shape):
    return rng.normal(size=shape), rng.integers(0, 500, size=shape[-2])


ROPE_Q = np.array([[0.3, -1.2, 0.7, 0.5]])


@checks(
    "10.attention.rope",
    expected=lambda x, positions: ml.rotate(x, angles=ml.rotary_angles(positions, x.shape[-1]), pairing="adjacent"),
)
def _(c):
    c.values(1, _placed((3, 2)), public=[(np.array([[1.0, 0.0]]), np.array([1]))], name="one pair")
    c.values(3, _placed((4, 4), (1, 8), (5, 6)), public=[(ROPE_Q, np.array([7]))], name="several pairs")
    c.values(1, _placed((2, 3, 4)), name="a batch")


@each
def _with_upstream(rng, size):
    t, k, v = size
    return rng.normal(size=(t, k)), rng.normal(size=(t, k)), rng.normal(size=(t, v)), rng.normal(size=(t, v))


@checks("10.attention.pullback")
def _(c):
    c.gradient(
        4,
        _attend,
        _with_upstream((2, 3, 2), (3, 2, 4)),
        public=[(Q, K, V, np.array([[1.0, 0], [0, 1], [1, -1]]))],
        wrt=(0, 1, 2),
        rtol=1e-6,
    )
    c.values(2, _with_upstream((6, 8, 5)), name="a longer sequence")


ANGLES = np.arange(16)[:, None] * np.array([1.0, 0.25])
PLACES = np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=-1).reshape(16, 4)


def _weights_before(M, offset):
    """Each token's weight on the token this far before it."""
    scores = np.where(np.tril(np.ones((16, 16), bool)), PLACES @ M @ PLACES.T, -np.inf)
    return np.diagonal(ml.softmax(scores), offset=-offset)


def _nats(M):
    return -np.log(_weights_before(M, 1)).mean()


def _mistake(M):
    """The sentence of the mistake that this costly M shows, if it shows one."""
    if not np.any(M):
        return ("All scores are 0, so each token attends to all tokens up to itself with equal weights.",)
    scaled = 10 * M / np.linalg.norm(M)
    if _nats(scaled) <= 0.5:
        return ("The pattern is right, but the scores are too small. Scale M to the norm 10.",)
    if _nats(scaled.T) <= 0.5:
        return ("Your rotation has the wrong direction. Use the transpose, scaled to the norm 10.",)
    if _nats(-scaled) <= 0.5:
        return ("The sign of M is wrong. Use −M, scaled to the norm 10.",)
    largest = max(range(4), key=lambda offset: _weights_before(M, offset).mean())
    found = {0: "itself", 2: "the token two positions before", 3: "the token three positions before"}
    said = "On average a token attends most to {}. It should attend to the token just before it."
    return (said.format(found[largest]),) if largest in found else ()


def _nats_of_the_token_before(M):
    M = array(M, 4, 4)
    if np.linalg.norm(M) > 10 * (1 + 1e-9):
        reason = f"the norm of M is {np.linalg.norm(M):.4g}; at most 10 is allowed"
        raise ValueError(reason, "Scale M down at the end: `10 * M / np.linalg.norm(M)`.")
    nats = _nats(M)
    if nats > 0.5:
        raise ValueError(f"your answer costs {nats:.6g} nats; aim at 0.0966", *_mistake(M))
    return nats


def _cheaper(M):
    """What makes a right, but costly M cheaper."""
    norm = np.linalg.norm(M)
    if norm < 9.9:
        return (f"The norm of M is {norm:.3g}. Scale M to the norm 10.",)
    if _nats(np.array(M, float)) > 0.117:
        return ("Use both frequencies, with a larger weight for the faster one.",)
    return ("Two rotations come no lower than 0.116. Train all 16 entries of M.",)


@checks("10.attention.previous_token")
def _(c):
    c.scored("nats", _nats_of_the_token_before, {0.0966: 1, 0.117: 2 / 3, 0.5: 1 / 3}, _cheaper)
