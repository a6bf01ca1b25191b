"""Every primitive of mathllm, and attention, with arguments to try them on: what the generic tests, the comparison with
PyTorch and the table of checked gradients share.

A case draws its arguments for n examples of width d, so that an empty batch and a width of 1 can be tried, too. Integer
arrays (ids, labels, masks) have no gradient. What has to be a distribution is the softmax of an argument.
"""

import ast
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

import mathllm as ml
from mathllm import alignment, exponentials, gradient_descent, similarity
from mathllm.alignment import kl_estimate
from mathllm.attention import linear_attention
from mathllm.autodiff import arithmetic
from mathllm.backpropagation import binary_cross_entropy
from mathllm.exponentials import log1m_exp, log_add_exp, log_product
from mathllm.gradient_descent import negative_sampling_loss
from mathllm.gradients import gelu_tanh, swiglu
from mathllm.interpretability import sparse_autoencoder_loss, superposition_loss
from mathllm.matrices import lora_linear, lora_merge, matrix_product, matrix_vector_product, transpose
from mathllm.probability import bernoulli_log_likelihood, expectation, normal_density, normal_log_density, variance
from mathllm.transformer.feed_forward import scatter


class Case(NamedTuple):
    """A primitive's name; how it is called; `draw(rng, n, d)`, its arguments; and what it cannot take.

    extreme: draws the largest and smallest arguments; without it, any number up to ±10⁴ is a good one
    half: the largest in float16, where products are added up that would be more than the largest float16
    refuses: "empty", the mean over nothing
    straight_through: the gradient is not a slope, on purpose
    composed: not a primitive itself, but a function of primitives
    """

    name: str
    call: Callable
    draw: Callable
    refuses: tuple[str, ...] = ()
    straight_through: bool = False
    extreme: Callable | None = None
    half: float = 1e4
    composed: bool = False


def normal(*sizes):
    """A draw of normal numbers; "n" and "d" in the sizes stand for the number of examples and the width."""

    def draw(rng, n, d):
        return [rng.normal(size=shaped(size, n, d)) for size in sizes]

    return draw


def uniform(low, high, *sizes):
    return lambda rng, n, d: [rng.uniform(low, high, size=shaped(size, n, d)) for size in sizes]


def shaped(size, n, d):
    return tuple({"n": n, "d": d, "2d": 2 * d}.get(axis, axis) for axis in size)


def with_integers(draw, low, high, *size):
    """The arguments of `draw`, and an array of integers from low to below high (a number, or "d")."""
    return lambda rng, n, d: [*draw(rng, n, d), rng.integers(low, d if high == "d" else high, size=shaped(size, n, d))]


def positive_divisor(rng, n, d):
    return [rng.normal(size=(n, d)), rng.uniform(0.5, 2, size=(n, d))]


def fixed(*shape):
    """A matrix that is not trained."""
    return np.cos(np.arange(np.prod(shape)) + 1.0).reshape(shape)


def signs(shape):
    return np.where(np.arange(np.prod(shape)) % 2, 1.5, -1.5).reshape(shape)


def far_apart(low, high, *sizes):
    """Numbers of every size between two positive ones, evenly in their logarithms."""
    return lambda rng, n, d: [np.exp(rng.uniform(np.log(low), np.log(high), size=shaped(s, n, d))) for s in sizes]


def both(*draws):
    return lambda rng, n, d: [argument for draw in draws for argument in draw(rng, n, d)]


WIDE = normal(("n", "d"))
PAIR = normal(("n", "d"), ("n", "d"))
LARGE = uniform(-1e4, 1e4, ("n", "d"))
RULING_OUT_NOTHING = uniform(-4, 4, ("n", "d"))  # logits whose softmax has no zero in any dtype
QUERY_KEY = normal(("n", 3, "d"), ("n", 4, "d"))
QUERY_KEY_VALUE = normal(("n", 3, "d"), ("n", 4, "d"), ("n", 4, 2))
NORMED = normal(("n", "d"), ("d",), ("d",))
MASK = np.array([[True, True, False, True], [True, False, True, True], [True, True, True, True]])
ANGLES = 0.7


def lora_of_a_frozen_matrix(x, A, B):
    return lora_linear(x, fixed(x.shape[-1], B.shape[-1]), A, B, scale=2.0)


def matrix_information(z, base=np.e):
    return ml.mutual_information(ml.softmax(z.reshape(-1)).reshape(z.shape), base=base)


def angles(x):
    return ANGLES * np.arange(1, x.shape[-2] + 1)[:, None] / np.arange(1, x.shape[-1] // 2 + 1)


def with_reach(rng, n, d):
    """Ratios on both sides of PPO's clipping, none at its corners."""
    return [rng.choice([0.5, 0.9, 1.1, 1.6], size=(n, d)) + rng.uniform(-0.05, 0.05, size=(n, d))]


CASES = {
    0: [
        Case("_add", arithmetic._add, PAIR),
        Case("_subtract", arithmetic._subtract, PAIR),
        Case("_multiply", arithmetic._multiply, PAIR),
        Case("_divide", arithmetic._divide, positive_divisor, extreme=both(LARGE, far_apart(1, 1e4, ("n", "d")))),
        Case("_power", lambda x: arithmetic._power(x, exponent=3), WIDE),
        Case("_matmul", arithmetic._matmul, normal(("n", 3, "d"), ("n", "d", 2))),
        Case("_sum", lambda x: arithmetic._sum(x, axis=-1), WIDE),
        Case("_reshape", lambda x: arithmetic._reshape(x, shape=(x.shape[1], x.shape[0])), WIDE),
        Case("_transpose", arithmetic._transpose, WIDE),
        Case("_getitem", lambda x: arithmetic._getitem(x, index=(slice(None), [0, 0, -1])), WIDE),
    ],
    1: [
        Case("norm", ml.norm, WIDE),
        Case("normalize", ml.normalize, WIDE),
        Case("distance", ml.distance, PAIR),
        Case("frobenius_norm", ml.frobenius_norm, normal(("n", 3, "d")), composed=True),
        Case("embedding", ml.embedding, with_integers(normal((5, "d")), 0, 5, "n", 2)),
    ],
    2: [
        Case("dot", ml.dot, PAIR, half=100),
        Case("cosine_similarity", ml.cosine_similarity, PAIR),
        Case(
            "mean_pool", lambda x: similarity.mean_pool(x, np.tile([1, 0, 1], (x.shape[0], 1))), normal(("n", 3, "d")),
        ),
    ],
    3: [
        Case("matrix_vector_product", matrix_vector_product, normal(("n", 4, "d"), ("n", "d"))),
        Case("linear", ml.linear, normal(("n", "d"), ("d", 4), (4,))),
        Case("singular_values", ml.singular_values, normal(("n", 3, "d"))),
        Case("lora_linear", lora_of_a_frozen_matrix, normal(("n", "d"), ("d", 2), (2, 4)), half=10),
        Case("lora_merge", partial(lora_merge, scale=2.0), normal(("n", "d"), ("n", 2), (2, "d")), half=100),
    ],
    4: [
        Case("exp", ml.exp, WIDE, extreme=uniform(-1e4, 9, ("n", "d"))),  # e¹⁰ is within float16, e¹² is not
        Case("log", exponentials.log, uniform(0.1, 4, ("n", "d")), extreme=far_apart(1e-4, 1e4, ("n", "d"))),
        Case("log_product", log_product, uniform(0.1, 1, ("n", "d")), extreme=far_apart(1e-4, 1, ("n", "d"))),
        Case("log_sum_exp", ml.log_sum_exp, WIDE),
        Case("log_add_exp", log_add_exp, PAIR),
        Case("log1m_exp", log1m_exp, uniform(-3, -0.1, ("n", "d")), extreme=uniform(-1e4, -1e-3, ("n", "d"))),
        Case("softplus", exponentials.softplus, WIDE),
        Case("log_sigmoid", ml.log_sigmoid, WIDE),
        Case("sigmoid", ml.sigmoid, WIDE),
    ],
    5: [
        Case(
            "bernoulli_log_likelihood", partial(bernoulli_log_likelihood, successes=3, trials=10),
            uniform(0.1, 0.9, ("n", "d")), extreme=far_apart(1e-3, 0.999, ("n", "d")),
        ),
        Case("expectation", lambda x, z: expectation(x, ml.softmax(z)), PAIR),
        Case(
            "variance", lambda x, z: variance(x, ml.softmax(z)), PAIR,
            extreme=both(uniform(-50, 50, ("n", "d")), LARGE),  # squares of more have no place in float16
        ),
        Case(
            "normal_log_density", normal_log_density,
            lambda rng, n, d: [*PAIR(rng, n, d), rng.uniform(0.5, 2, size=(n, d))],
            extreme=both(uniform(-50, 50, ("n", "d"), ("n", "d")), far_apart(0.5, 1e4, ("n", "d"))),
        ),
    ],
    6: [
        Case("softmax", ml.softmax, WIDE),
        Case("log_softmax", ml.log_softmax, WIDE),
        Case("tanh", ml.tanh, WIDE),
    ],
    7: [
        Case("surprise", ml.surprise, uniform(0.1, 0.9, ("n", "d")), extreme=far_apart(1e-4, 1, ("n", "d"))),
        Case("entropy", lambda z: ml.entropy(ml.softmax(z)), WIDE),
        Case(
            "cross_entropy_between", lambda z, w: ml.cross_entropy_between(ml.softmax(z), ml.softmax(w)), PAIR,
            extreme=both(LARGE, RULING_OUT_NOTHING),
        ),
        Case(
            "kl_divergence", lambda z, w: ml.kl_divergence(ml.softmax(z), ml.softmax(w)), PAIR,
            extreme=both(LARGE, RULING_OUT_NOTHING),
        ),
        Case("mutual_information", matrix_information, WIDE, refuses=("empty",)),
        Case("cross_entropy", ml.cross_entropy, with_integers(WIDE, 0, "d", "n"), ("empty",)),
    ],
    8: [
        Case("relu", ml.relu, WIDE),
        Case("erf", ml.erf, WIDE),
        Case("gelu", ml.gelu, WIDE),
        Case("gelu_tanh", gelu_tanh, WIDE),
        Case("silu", ml.silu, WIDE),
        Case("swiglu", swiglu, PAIR),
    ],
    9: [
        Case("dropout", lambda x: gradient_descent.dropout(x, rate=0.3, rng=np.random.default_rng(0)), WIDE),
        Case(
            "negative_sampling_loss", negative_sampling_loss, normal(("n", "d"), ("n", "d"), ("n", 4, "d")),
            refuses=("empty",),
        ),
    ],
    10: [
        Case("attention_weights", lambda q, k: ml.attention_weights(q, k, MASK), QUERY_KEY),
        Case("attention", partial(ml.attention, mask=MASK), QUERY_KEY_VALUE, composed=True),
        Case("flash_attention", partial(ml.flash_attention, causal=True, block_size=2), QUERY_KEY_VALUE, half=100),
        Case("positive_features", ml.positive_features, WIDE),
        Case("rotate", lambda x: ml.rotate(x, angles=angles(x)), normal(("n", 3, "2d"))),
    ],
    11: [Case("binary_cross_entropy", binary_cross_entropy, with_integers(WIDE, 0, 2, "n", "d"), ("empty",))],
    12: [
        Case("layer_norm", ml.layer_norm, NORMED),
        Case("rms_norm", ml.rms_norm, normal(("n", "d"), ("d",))),
        Case("batch_norm", ml.transformer.batch_norm, NORMED, ("empty",)),
        Case("scatter", lambda x: scatter(x, rows=np.arange(len(x))[::-1] * 2, size=2 * len(x)), WIDE),
    ],
    15: [
        Case(
            "clipped_surrogate", lambda r: alignment.clipped_surrogate(r, signs(r.shape)), with_reach,
            extreme=far_apart(1e-4, 1e4, ("n", "d")),
        ),
        Case("kl_estimate", kl_estimate, PAIR, extreme=uniform(-4, 4, ("n", "d"), ("n", "d"))),  # e⁸ is in float16
    ],
    17: [Case("round_to", ml.scale.round_to, WIDE, straight_through=True)],
}  # fmt: skip
ALL = [case for cases in CASES.values() for case in cases]


def masked(x):
    """The mean of each text's own tokens: two texts of three, the second with one token only."""
    return similarity.mean_pool(x, np.array([[1, 1, 0], [1, 0, 0]]))


def shares(w):
    """Weights as shares: a change of one probability must change the others, or the sum is no longer one."""
    return w / w.sum(axis=-1, keepdims=True)


def loss_of(labels, **options):
    return lambda z: ml.cross_entropy(z, np.array(labels), **options)


def in_bits(function):
    """A function of distributions, with logits in their place and two as its base."""
    return lambda *logits: function(*map(ml.softmax, logits), base=2)


def policy_loss(policy, old, reference):
    return alignment.grpo_loss(policy, old, reference, np.array([1.0, -1.0, 0.5]), epsilon=0.9)


DICTIONARY = ("encoder", "encoder_bias", "decoder", "decoder_bias")
ALLOWED = np.tri(3, 5, 2, dtype=bool)  # the last three of five tokens see what came before
ROWS_OF_THREE, PAIR_OF_ROWS, POSITIVE = normal((2, 3)), normal((2, 3), (3,)), uniform(0.1, 1, (2, 3))

# Settings, axes and broadcasting that a case above does not try, and functions that are made of primitives
VARIANTS = [
    Case("distance, one for all", ml.distance, PAIR_OF_ROWS),
    Case("cosine_similarity, one for all", ml.cosine_similarity, normal((1,), (2, 1))),
    Case("cosine_similarity_matrix", ml.cosine_similarity_matrix, normal((2, 3), (4, 3))),
    Case("mean_pool, a mask for each", masked, normal((2, 3, 4))),
    Case("contextual_embeddings", similarity.contextual_embeddings, normal((2, 3, 4))),
    Case("matrix_vector_product, one matrix", matrix_vector_product, normal((3, 4), (2, 5, 4))),
    Case("linear, one vector", ml.linear, normal((4,), (4, 3))),
    Case("linear, any axes", ml.linear, normal((2, 5, 4), (4, 3), (3,))),
    Case("matrix_product, one for all", lambda A, B: matrix_product(transpose(A), B), normal((5, 4, 3), (4, 2))),
    *[
        Case(f"lora_linear, {len(shape)} axes", lora_of_a_frozen_matrix, normal(shape, (4, 2), (2, 3)))
        for shape in [(4,), (2, 3, 4)]
    ],
    Case("log, base 7", lambda p: exponentials.log(p, base=7), POSITIVE),
    Case("log_product, all axes", lambda p: log_product(p, axis=None), POSITIVE),
    Case("log_sum_exp, axes kept", lambda x: ml.log_sum_exp(x, axis=(0, 2), keepdims=True), normal((2, 3, 4))),
    Case("log_sum_exp, all axes", lambda x: ml.log_sum_exp(x, axis=None), ROWS_OF_THREE),
    Case("log_add_exp, one for all", log_add_exp, PAIR_OF_ROWS),
    Case("expectation, shares", lambda x, w: expectation(x, shares(w)), both(ROWS_OF_THREE, POSITIVE)),
    Case("variance, one for all", lambda x, w: variance(x, shares(w)), both(ROWS_OF_THREE, uniform(0.1, 1, (3,)))),
    Case("normal_log_density, one for all", normal_log_density, both(PAIR_OF_ROWS, uniform(0.5, 2, (3,)))),
    Case("normal_density", lambda x: normal_density(x, 0.3, 1.7), ROWS_OF_THREE),
    Case(
        "bernoulli_log_likelihood, no success", partial(bernoulli_log_likelihood, successes=0, trials=5),
        uniform(0.1, 0.9, (2, 3)),
    ),
    Case("softmax, axis and temperature", lambda z: ml.softmax(z, axis=0, temperature=0.7), normal((2, 3, 4))),
    Case("log_softmax, axis and temperature", lambda z: ml.log_softmax(z, axis=1, temperature=3), normal((2, 3, 4))),
    Case("softmax_jacobian", ml.softmax_jacobian, ROWS_OF_THREE),
    Case("surprise in bits", in_bits(ml.surprise), ROWS_OF_THREE),
    Case("entropy in bits", in_bits(ml.entropy), ROWS_OF_THREE),
    Case("cross_entropy_between in bits", in_bits(ml.cross_entropy_between), normal((2, 3), (2, 3))),
    Case("kl_divergence in bits", in_bits(ml.kl_divergence), normal((2, 3), (2, 3))),
    Case("mutual_information in bits", partial(matrix_information, base=2), ROWS_OF_THREE),
    Case("cross_entropy, ignored labels", loss_of([[0, -100, 2], [-100, -100, 3]]), normal((2, 3, 5))),
    Case("cross_entropy, sum", loss_of([[0, -100, 2], [-100, -100, 3]], reduction="sum"), normal((2, 3, 5))),
    Case("cross_entropy, each", loss_of([[0, -100, 2], [-100, -100, 3]], reduction="none"), normal((2, 3, 5))),
    Case("info_nce", lambda a, b: ml.info_nce(a, b, 0.3), normal((4, 3), (4, 3))),
    Case("silu, beta", lambda x: ml.silu(x, beta=1.7), ROWS_OF_THREE),
    Case("l2_penalty", lambda w: gradient_descent.l2_penalty({"w": w, "b": [w * 2.0]}, 0.3), ROWS_OF_THREE),
    Case(
        "attention_weights, bias", lambda q, k, bias: ml.attention_weights(q, k, None, bias),
        normal((2, 3, 4), (5, 4), (2, 3, 5)),
    ),
    Case(
        "attention, mask and bias", lambda q, k, v, bias: ml.attention(q, k, v, ALLOWED, bias),
        normal((2, 3, 4), (5, 4), (2, 5, 2), (3, 5)),
    ),
    Case(
        "attention, a query that may see nothing", partial(ml.attention, mask=np.tri(3, 5, -1, dtype=bool)),
        normal((3, 4), (5, 4), (5, 2)),
    ),
    Case("linear_attention", linear_attention, normal((3, 4), (5, 4), (5, 2))),
    Case("linear_attention, causal", partial(linear_attention, causal=True), normal((3, 4), (3, 4), (3, 4))),
    Case("rotate, neighbours", lambda x: ml.rotate(x, angles=angles(x), pairing="adjacent"), normal((2, 3, 4))),
    Case("merge_heads and split_heads", lambda x: ml.merge_heads(ml.split_heads(x, 2)) * 2.0, normal((3, 4))),
    *[
        Case(
            f"binary_cross_entropy, {how}",
            lambda z, how=how: binary_cross_entropy(z, (fixed(2, 3) + 1) / 2, reduction=how), ROWS_OF_THREE,
        )
        for how in ("sum", "none")
    ],
    Case(
        "sparse_autoencoder_loss",
        lambda x, *weights: sparse_autoencoder_loss(dict(zip(DICTIONARY, weights, strict=True)), x),
        normal((7, 5), (5, 9), (9,), (9, 5), (5,)),
    ),
    Case(
        "superposition_loss",
        lambda x, w, b: superposition_loss({"weight": w, "bias": b}, x, np.arange(1.0, 7.0)),
        normal((8, 6), (6, 3), (6,)),
    ),
    Case("layer_norm, any axes", ml.layer_norm, normal((2, 3, 4), (4,), (4,))),
    Case("layer_norm, large epsilon", lambda x, g, b: ml.layer_norm(x, g, b, epsilon=0.5), normal((2, 4), (4,), (4,))),
    Case("grpo_loss", policy_loss, normal((3,), (3,), (3,))),
]  # fmt: skip

# Losses of chapter 15, which take any numbers, too
PREFERENCES = [
    Case("bradley_terry_loss", alignment.bradley_terry_loss, normal((3,), (3,))),
    Case("dpo_loss", alignment.dpo_loss, normal((3,), (3,), (3,), (3,))),
    Case("ipo_loss", alignment.ipo_loss, normal((3,), (3,), (3,), (3,))),
    Case(
        "kto_loss",
        partial(alignment.kto_loss, desirable=[True, False, True], divergence=0.3, gain=1.5),
        normal((3,), (3,)),
    ),
]


def public_primitives():
    """The names of all functions in mathllm that are decorated with @primitive and do not begin with an underscore."""
    for path in sorted(Path(ml.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                decorators = [getattr(d, "func", d) for d in node.decorator_list]
                if any(getattr(d, "id", getattr(d, "attr", "")) == "primitive" for d in decorators):
                    yield node.name


def arguments(case, dtype=np.float64, n=4, d=5, seed=0):
    """The arguments of a case, floating-point ones in this dtype."""
    drawn = case.draw(np.random.default_rng([seed, 2]), n, d)  # not the numbers that a checker draws from `seed`
    return in_dtype(drawn, dtype)


def extreme_arguments(case, dtype, n=4, d=5, seed=0):
    """Several sets of arguments at the edges of what the case can take."""
    rng = np.random.default_rng([seed, 3])
    if case.extreme is not None:
        return [in_dtype(case.extreme(rng, n, d), dtype) for _ in range(3)]
    drawn, most = case.draw(rng, n, d), case.half if dtype == np.float16 else 1e4
    return [
        in_dtype([np.clip(scale * x, -most, most) if x.dtype.kind == "f" else x for x in drawn], dtype)
        for scale in (1e-4, 1e4, 1e8)
    ]


def in_dtype(arrays, dtype):
    return [np.asarray(x, dtype) if x.dtype.kind == "f" else x for x in arrays]
