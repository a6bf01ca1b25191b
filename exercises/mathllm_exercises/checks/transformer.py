"""Chapter 12, the transformer: norms and their gradients, counting, three families, and one block from scratch."""

import numpy as np

import mathllm as ml

from ..cases import each, normals
from ..scoring import array, named
from . import checks, draws


@draws("12.transformer.own_layer_norm")
def _four_numbers(rng):
    """Four whole numbers whose mean is whole and not zero, and that are not all equal."""
    while True:
        x = rng.integers(-6, 10, size=4)
        if x.sum() % 4 == 0 and x.sum() != 0 and x.std() > 1:
            return {"x": x.tolist()}


@draws("12.transformer.own_targets")
def _some_ids(rng):
    return {"ids": rng.permutation(20)[:6].tolist()}


@each
def _norm_cases(rng, shape, dtype=float):
    D = shape[-1] if isinstance(shape, tuple) else shape
    x = rng.normal(size=shape) + 3
    return tuple(part.astype(dtype) for part in (x, rng.normal(size=D), rng.normal(size=D)))


FOUR = np.array([1.0, 2.0, 3.0, 4.0])


@checks("12.transformer.layer_norm", expected=ml.layer_norm)
def _(c):
    c.values(2, _norm_cases(4, 7), public=[(FOUR, np.ones(4), np.zeros(4))], name="one vector")
    c.values(2, _norm_cases((3, 5), (2, 3, 4), (3, 3)), name="a batch of texts")
    c.values(1, public=[(np.full(3, 7.0), np.ones(3), np.array([1.0, 2.0, 3.0]))], name="equal components")
    c.keeps_dtype(1, _norm_cases((2, 6), dtype=np.float32))
    c.refuses(
        1,
        public=[(FOUR, np.ones(1), np.zeros(4)), (FOUR, np.ones(4), np.zeros(1)), (FOUR, np.ones(1), np.zeros(1))],
        name="refuses other widths",
    )


@each
def _gain_and_slope(rng, D, one=False):
    x = 2 * rng.permutation(D) + rng.uniform(size=D)  # so far apart that ε counts for nothing here
    return x, np.full(D, rng.uniform(0.5, 2)) if one else rng.normal(size=D), rng.normal(size=D)


@checks("12.transformer.repair_gradient")
def _(c):
    c.gradient(
        3,
        lambda x, gain: ml.layer_norm(x, gain, np.zeros_like(gain)),
        _gain_and_slope(3, 5),
        public=[(np.array([0.5, -1.2, 2.0, 0.3]), np.array([0.2, -0.4, 0.1, 0.7]), np.array([0.7, -0.3, 0.9, 0.4]))],
        name="a gain vector",
        rtol=1e-4,  # coarse enough to let ε pass: it has a check of its own
    )
    c.values(1, _gain_and_slope(4, one=True), name="one gain for all", rtol=1e-4, atol=1e-4)
    c.values(
        2,
        lambda rng: [(1e-3 * rng.normal(size=4), rng.normal(size=4), rng.normal(size=4)) for _ in range(2)],
        name="a small vector, where ε counts",
    )


def _gpt_sizes(rng):
    return [tuple(int(n) for n in (rng.integers(10, 60_000), 8 * rng.integers(1, 200), rng.integers(1, 60), 128))] * 2


@checks("12.transformer.parameter_count")
def _(c):
    c.values(2, public=[(50257, 768, 12, 1024)], name="GPT-2 small", rtol=0)
    c.values(3, _gpt_sizes, public=[(10, 2, 1, 4), (50257, 12288, 96, 2048)], name="other sizes", rtol=0)


def _texts(rng):
    cases = []
    for shape in [(2, 8), (3, 20)]:
        tokens = rng.integers(100, size=shape)
        chosen = rng.random(size=shape) < 0.4
        cases.append((tokens, chosen, rng.random(size=shape), rng.integers(100, size=shape), 103))
    return cases


SMALL_TEXT = (
    np.array([[5, 6, 7, 8]]), np.array([[True, True, True, False]]), np.array([[0.1, 0.8, 0.9, 0.5]]),
    np.array([[1, 2, 3, 4]]), 103,
)  # fmt: skip


@checks("12.transformer.mask_tokens")
def _(c):
    c.values(3, _texts, public=[SMALL_TEXT], name="inputs and labels", rtol=0)
    c.values(
        1,
        public=[(np.array([[4, 2]]), np.zeros((1, 2), bool), np.zeros((1, 2)), np.ones((1, 2), int), 9)],
        name="nothing chosen",
        rtol=0,
    )


def _logits_and_tokens(rng):
    return [
        (rng.normal(size=(B, T, V)) * 2, rng.integers(V, size=(B, T))) for B, T, V in [(1, 2, 3), (2, 5, 4), (3, 8, 11)]
    ]


@checks("12.transformer.repair_shift")
def _(c):
    c.values(2, _logits_and_tokens, name="right values")
    c.values(1, public=[(np.array([[[0.0, 9.0], [1.0, 0.0]]]), np.array([[0, 1]]))], name="a text of two tokens")


@checks("12.transformer.rms_pullback")
def _(c):
    first = np.array([1.0, 0.0, 0.0, 0.0])
    public = [(FOUR, np.ones(4), first), (FOUR / 100, np.ones(4), first)]
    c.gradient(4, ml.rms_norm, normals(2, 5, count=3), public=public, wrt=(0, 1))


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


@checks("12.transformer.block")
def _(c):
    c.values(3, _block_cases((4, 8, 1), (1, 4, 1)), name="one head")
    c.values(3, _block_cases((5, 8, 2), (3, 12, 4)), name="several heads")


def _weights_of_a_maximum(blocks):
    if not isinstance(blocks, (list, tuple)) or [len(block) for block in blocks] != [2, 2]:
        raise ValueError("the answer is a list of two pairs (W_up, W_down)")
    start, count = np.random.default_rng(0).normal(size=(500, 4)), 0
    stream, largest = start, start.max(axis=1)
    for up, down in blocks:
        up = array(up, 4, None)
        down = array(down, up.shape[1], 4)
        if up.shape[1] > 16:
            raise ValueError(f"a block has {up.shape[1]} hidden units; at most 16 are allowed")
        stream = stream + np.maximum(stream @ up, 0) @ down
        count += np.count_nonzero(up) + np.count_nonzero(down)
    wrong = np.abs(stream[:, 0] - largest) > 1e-6
    if np.any(wrong):
        reason = f"component 0 is not the largest number for {wrong.mean():.0%} of 500 random inputs"
        raise ValueError(reason, *_wrong_maximum(start, stream[:, 0]))
    return count


def _wrong_maximum(x, found):
    """The sentence of the known mistake that leaves this in component 0."""
    slips = {
        "Component 0 holds the larger of a and b only. Compare it in the second block with the component that holds "
        "the larger of c and d.": x[:, :2].max(axis=1),
        "Component 0 holds the larger of a and c only. First find the larger of a and b, and the larger of c and d.":
            x[:, ::2].max(axis=1),
        "Component 0 holds the largest of a, b and c. In the second block read the larger of c and d.":
            x[:, :3].max(axis=1),
        "Component 0 holds the largest of a, b and d. In the second block read the larger of c and d.":
            x[:, [0, 1, 3]].max(axis=1),
        "Component 0 holds the smallest number. Reverse the sign of the differences: max(a, b) = a + ReLU(b − a).":
            x.min(axis=1),
        "Component 0 holds a plus the largest number. The residual connection already brings a: add differences only.":
            x[:, 0] + x.max(axis=1),
        "You added all three differences to a. The units of a block read the same input: compare two pairs first.":
            x[:, 0] + np.maximum(x[:, 1:] - x[:, :1], 0).sum(axis=1),
        "Component 0 still holds a. Write the outputs of the last hidden units into component 0.": x[:, 0],
    }  # fmt: skip
    return named(found, slips)


@checks("12.transformer.maximum")
def _(c):
    c.scored("weights", _weights_of_a_maximum, {9: 1, 12: 2 / 3, 21: 1 / 3})
