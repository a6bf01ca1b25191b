"""Chapter 16, interpretability: crowded spaces, reading the stream, patching, an honest dictionary, a circuit found."""

import numpy as np

import mathllm as ml

from ..cases import each
from ..scoring import array
from . import checks, draws


@draws("16.interpretability.own_overlap")
def _own_crowd(rng):
    """So few directions that a Welch bound with N in place of N − 1 has other decimals."""
    return {"d": int(rng.choice([40, 48, 56, 64])), "N": int(rng.choice([120, 150, 180, 200]))}


@draws("16.interpretability.sharing")
def _own_pair(rng):
    return {"a": int(rng.integers(50, 90)) / 100, "b": int(rng.integers(15, 45)) / 100}


@each
def _streams(rng, size):
    """Streams after each block, with the gain, the embedding and the unembedding."""
    L, T, D, V = size
    return rng.normal(size=(L, T, D)), rng.uniform(0.5, 2, size=D), rng.normal(size=(V, D)), rng.normal(size=(D, V))


def _large_logits(rng):
    """Logits with a common part of thousands."""
    return [(np.abs(x), gain, E, U + 3000) for x, gain, E, U in _streams((3, 3, 4, 5))(rng)]


SMALL_STREAM = (
    np.array([[[3.0, 4.0]], [[0.0, 2.0]]]), np.ones(2), np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]),
    np.array([[1.0, 0.0, 1.0], [0.0, 1.0, -1.0]]),
)  # fmt: skip


@checks("16.interpretability.logit_lens")
def _(c):
    c.values(3, _streams((2, 1, 3, 4), (3, 4, 5, 6)), public=[SMALL_STREAM], name="right probabilities")
    c.values(1, _large_logits, name="large logits")


@each
def _writes(rng, size):
    """Writes so large that an answer without ε which also makes a known mistake is still recognised."""
    n, D, V = size
    return 10 * rng.normal(size=(n, D)), rng.uniform(0.5, 2, size=D), rng.normal(size=(D, V)), int(rng.integers(V))


CANCELLING = (
    np.array([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0]]), np.ones(2), np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5]]), 2,
)  # fmt: skip


THREE_FOUR = (np.array([[1.0, 3.0], [0.0, 4.0]]), np.array([1.0, 2.0]), np.array([[1.0, 0.0], [1.0, 1.0]]), 1)


@checks("16.interpretability.attribution")
def _(c):
    c.values(3, _writes((2, 3, 4), (5, 4, 3)), public=[THREE_FOUR], name="right shares")
    c.values(1, public=[CANCELLING], name="two writes that cancel")


@each
def _heads(rng, size):
    """Causal weights, values and the output projection of a layer."""
    H, T, K, D = size
    return (
        ml.softmax(np.where(ml.causal_mask(T), 0, -np.inf) + rng.normal(size=(H, T, T))),
        rng.normal(size=(H, T, K)) * rng.choice([0.01, 1, 5], size=(H, T, 1)),
        rng.normal(size=(H * K, D)),
    )


TWO_HEADS = (
    np.array([[[1.0, 0.0], [0.5, 0.5]], [[1.0, 0.0], [0.8, 0.2]]]),
    np.array([[[1.0], [2.0]], [[3.0], [-1.0]]]),
    np.array([[3.0, 4.0], [0.0, 2.0]]),
)


LOUD_AND_QUIET = (
    np.array([[[1.0, 0.0], [0.9, 0.1]]]), np.array([[[0.01, 0.0], [3.0, 4.0]]]), np.array([[1.0, 0.0], [0.0, 2.0]])
)  # fmt: skip


@checks(
    "16.interpretability.what_arrives",
    expected=lambda weights, value, output: ml.interpretability.value_weighted_attention(weights, value, output),
)
def _(c):
    c.values(3, _heads((1, 3, 2, 4), (3, 4, 2, 5)), public=[TWO_HEADS], name="several heads")
    c.values(1, public=[LOUD_AND_QUIET], name="a loud token and a quiet one")


def _restored(clean, corrupted, up, down, read):
    """The metric of both runs, and for each neuron what its clean value restores in the corrupted run."""

    def metric(x, hidden):
        return ml.rms_norm(x + hidden @ down, np.ones(len(x))) @ read

    h_clean, h_corrupted = np.maximum(0, clean @ up), np.maximum(0, corrupted @ up)
    best, worst = metric(clean, h_clean), metric(corrupted, h_corrupted)
    which = np.eye(len(h_clean), dtype=bool)
    patched = np.array([metric(corrupted, np.where(neuron, h_clean, h_corrupted)) for neuron in which])
    return best, worst, (patched - worst) / (best - worst)


@each
def _two_runs(rng, size):
    D, F = size
    while True:
        clean, corrupted, read = rng.normal(size=(3, D))
        case = (clean, corrupted, rng.normal(size=(D, F)), rng.normal(size=(F, D)) / np.sqrt(F), read)
        best, worst, effects = _restored(*case)
        before = case[2].T @ np.c_[clean, corrupted]
        active = (before > 0).any(axis=1)  # in one of the runs at least
        told_apart = abs(best - worst) > 0.5 and effects.min() < -0.01  # one neuron makes things worse
        if told_apart and active.sum() >= 2 and before.min() < -0.1:
            return case


TWO_NEURONS = (
    np.array([2.0, 1.0]), np.array([1.0, 2.0]), np.array([[1.0, -1.0], [-1.0, 1.0]]), 2 * np.eye(2),
    np.array([1.0, -1.0]),
)  # fmt: skip


@checks("16.interpretability.patch")
def _(c):
    c.values(4, _two_runs((3, 2), (4, 5)), public=[TWO_NEURONS], name="right effects")
    equal = [(np.ones(2), np.ones(2), *TWO_NEURONS[2:]), (*TWO_NEURONS[:4], np.ones(2))]
    c.refuses(1, public=equal, name="refuses two runs of the same metric")


@each
def _dictionaries(rng, size, unit=False):
    """A batch and an autoencoder: x, encoder, encoder bias, decoder, decoder bias, penalty."""
    n, d, m = size
    x, decoder = rng.normal(size=(n, d)), ml.normalize(rng.normal(size=(m, d)))
    encoder, bias = rng.normal(size=(d, m)), rng.uniform(0.2, 1, size=m)
    stretch = np.ones(m) if unit else rng.choice([0.2, 0.5, 3, 10], size=m)
    rows = decoder * stretch[:, None]
    return x, encoder / stretch, bias / stretch, rows, rng.normal(size=d), float(rng.uniform(0.1, 1))


LONG_ROW = (np.array([[2.0]]), np.array([[0.5]]), np.zeros(1), np.array([[2.0]]), np.zeros(1), 0.5)
EMPTY_ROW = (np.array([[2.0, 1.0]]), np.eye(2), np.zeros(2), np.array([[1.0, 0.0], [0.0, 0.0]]), np.zeros(2), 0.5)


@checks("16.interpretability.repair_price")
def _(c):
    c.values(1, _dictionaries((3, 2, 3), (2, 4, 5), unit=True), name="rows of length 1")
    c.values(3, _dictionaries((3, 2, 3), (4, 3, 5)), public=[LONG_ROW], name="rows of other lengths")
    c.values(1, public=[EMPTY_ROW], name="a row of zeros")


def _dictionary_loss(encoder, bias, decoder, x, penalty):
    codes = np.maximum(0, x @ encoder + bias)
    error = codes @ decoder - x
    return ((error * error).sum() + penalty * codes.sum()) / len(x)


@each
def _small_dictionaries(rng, size):
    n, d, m = size
    while True:
        encoder, bias, x = rng.normal(size=(d, m)), rng.normal(size=m) / 2, rng.normal(size=(n, d))
        before = x @ encoder + bias
        bias_counts = np.any((before > 0) != (x @ encoder > 0))
        if np.abs(before).min() > 1e-3 and 0 < np.sum(before > 0) < before.size and bias_counts:
            break
    return encoder, bias, rng.normal(size=(m, d)), x, float(rng.uniform(0.2, 1)), float(rng.normal())


AT_ZERO = (np.array([[1.0, 0.0], [0.0, 0.0]]), np.zeros(2), np.eye(2), np.array([[1.0, 2.0]]), 0.5, 1.0)


@checks("16.interpretability.sae_pullback")
def _(c):
    c.gradient(4, _dictionary_loss, _small_dictionaries((2, 3, 2), (4, 2, 4)), wrt=(0, 1, 2))
    c.values(1, public=[AT_ZERO], name="a code at exactly 0")


def _look(tokens, back):
    """The places a head may look at from each place: `back` after the earlier places that hold the same token."""
    same = np.tril(tokens[:, None] == tokens, k=-1)
    return np.tril(np.pad(same, ((0, 0), (back, 0)))[:, : len(tokens)])


def _step_back(T, steps=1):
    """The place so many steps before each place."""
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
    """Tables of L layers and H heads with a circuit in them; with decoys, others that look like one.

    size: (L, H, layer of the previous-token head, layer of the induction head)
    """
    L, H, m, n = size
    tokens = np.resize(rng.permutation(15)[:5], T := 15)  # of five tokens: with fewer the heads fall together
    weights = np.array([[_table(rng, np.zeros((T, T), bool), 0) for _ in range(H)] for _ in range(L)])
    below, here, above = (_order(rng, layer, H) for layer in (m, n, n + 1))
    weights[n, here[0]] = _table(rng, _look(tokens, 1), 0.7)
    weights[m, below[0]] = _table(rng, _step_back(T), 0.7)
    weights[n, here[1]] = _table(rng, _look(tokens, 0), 0.5)  # so that a search for the same token finds a head
    if decoys:
        weights[n, here[1]] = _table(rng, _look(tokens, 0), 0.95)  # the same token
        weights[n, here[2]] = _table(rng, _look(tokens, 2), 0.95)  # one too far
        weights[n, here[3]] = _table(rng, _step_back(T), 0.9)  # at the same time
        after = _look(tokens, 1)
        once = after.sum(axis=-1, keepdims=True) == 1
        weights[n + 1, above[1]] = np.where(once, after, _table(rng, after, 0.25))  # the largest weight per place
        weights[n, here[4]] = _table(rng, after & (after.cumsum(axis=-1) == 1), 0.62)  # the first place alone
        last = after & (after[:, ::-1].cumsum(axis=-1)[:, ::-1] == 1)
        weights[n, here[5]] = _table(rng, last, 0.62)  # the last place alone
        weights[n + 1, above[0]] = _table(rng, _step_back(T), 0.98)  # too late
        weights[n + 1, above[2], -1] = after[-1] / after[-1].sum()  # from the last place alone
        weights[m, below[1]] = _table(rng, _step_back(T, 2), 0.95)  # two back
        weights[m, below[2], 1] = np.eye(T)[0]  # at one place only
    return weights, tokens


def _circuit(weights, tokens, within=0):
    targets = _look(tokens, 1)
    asked = targets.any(axis=-1)
    seen = np.sum(weights * targets, axis=-1)[..., asked].mean(axis=-1)  # (L, H)
    induction = [int(n) for n in np.unravel_index(np.argmax(seen), seen.shape)]
    before = np.sum(weights * _step_back(len(tokens)), axis=-1)[..., 1:].mean(axis=-1)
    before = before[: induction[0] + within]
    previous = [int(n) for n in np.unravel_index(np.argmax(before), before.shape)]
    return [previous, induction]


@checks("16.interpretability.find_circuit", expected=_circuit)
def _(c):
    c.values(2, _planted((4, 2, 0, 2)), name="the right heads", rtol=0)
    c.values(4, _planted((3, 6, 0, 1), (5, 6, 1, 3), decoys=True), name="among heads that look alike", rtol=0)


UNITS = np.array([
    [1, -1, -1, 1], [1, 1, 1, -2], [-2, 2, 1, 2], [-1, -1, 2, -2], [2, -1, 0, 2],
    [-1, 2, 0, 0], [0, 2, -2, 2], [-1, 2, -1, 2], [1, 1, 1, 0], [-2, 2, 0, 2],
])  # fmt: skip
BIASES, OUTPUTS = np.array([-2, 0, -2, 0, 0, -1, -2, 0, -2, -2]), np.array([-2, 1, 1, -3, -1, 2, 3, -1, 2, 0])


def _units(kept):
    kept = sorted(set(array(kept, None).tolist()))
    if not set(kept) <= set(range(10)):
        raise ValueError("the answer is a list of numbers of units, from 0 to 9")
    changed = _changed(kept)
    if changed:
        raise ValueError(f"with these units alone, the answer changes for {changed} of 16 inputs", *_wrong_units(kept))
    return len(kept)


def _changed(kept):
    """For how many of the 16 inputs the answer changes when all other units are ablated."""
    bits = np.array([[i >> k & 1 for k in (3, 2, 1, 0)] for i in range(16)])
    effects = np.maximum(bits @ UNITS.T + BIASES, 0) * OUTPUTS
    return int(np.sum((effects.sum(axis=1) > 0) != (effects[:, np.array(kept, int)].sum(axis=1) > 0)))


def _wrong_units(kept):
    """The sentence of the known mistake that gives these units."""
    others = [unit for unit in range(10) if unit not in kept]
    if kept and not _changed(others):
        return ["You gave the units that can be ablated. Give the other ones, which are kept."]
    if kept and min(kept) > 0 and not _changed([int(unit) - 1 for unit in kept]):
        return ["You counted the units from 1. Count them from 0."]
    if kept == [unit for unit in range(10) if _changed([n for n in range(10) if n != unit])]:
        return ["These are the units that cannot be ablated alone. Together they are not sufficient: test whole sets."]
    return []


@checks("16.interpretability.smallest_circuit")
def _(c):
    c.scored("units", _units, {3: 1, 5: 2 / 3, 7: 1 / 3})
