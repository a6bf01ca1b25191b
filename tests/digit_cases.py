"""Where digits are counted: for each public primitive its formula in exact.py, and arguments that are hard for it.

FORMULAS has the exact formula for the arguments that primitive_cases.py draws. HARD has points at which a formula that
is written down directly loses digits: results near 0 that are differences of large numbers, the ends of the range of a
dtype, and saturated functions.
"""

from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple

import exact
import numpy as np
from primitive_cases import CASES, MASK, angles, fixed, signs

from mathllm.errors import CHAPTERS


class Point(NamedTuple):
    """Arguments for one primitive: `draw(limits)` makes them for the dtype with these `np.finfo`.

    where: in words, as the table of the book says it
    """

    name: str
    where: str
    draw: Callable
    call: Callable
    formula: Callable


def function_named(name):
    """The function of this name, from the first chapter that has it."""
    modules = (import_module(f"mathllm.{chapter}") for chapter in CHAPTERS)
    return next(getattr(module, name) for module in modules if hasattr(module, name))


def composed(formula, *parts):
    """The formula of a case whose arguments are first mapped by `parts`, None for an argument taken as it is."""

    def apply(*arguments):
        return formula(*[part(x) if part else x for part, x in zip(parts, arguments, strict=True)])

    return apply


def lower_right(queries, keys):
    return np.arange(keys) <= np.arange(queries)[:, None] + keys - queries


def kept(x):
    """What dropout multiplies x by in its case: 0, or 1 / (1 − rate)."""
    (case,) = [case for case in CASES[9] if case.name == "dropout"]
    return (case.call(np.ones(x.shape)) != 0) / exact.mpf("0.7")


FORMULAS = {
    # 1
    "norm": exact.norm,
    "normalize": exact.normalize,
    "distance": exact.distance,
    "frobenius_norm": exact.frobenius_norm,
    "embedding": exact.embedding,
    # 2
    "dot": exact.dot,
    "cosine_similarity": exact.cosine_similarity,
    "mean_pool": lambda x: exact.mean_pool(x, np.tile([1, 0, 1], (len(x), 1))),
    "sigmoid": exact.sigmoid,
    "negative_sampling_loss": exact.negative_sampling_loss,
    # 3
    "matrix_vector_product": exact.matrix_vector_product,
    "linear": exact.linear,
    "singular_values": exact.singular_values,
    "lora_linear": lambda x, A, B: exact.lora_linear(x, exact.constant(fixed(x.shape[-1], 4)), A, B, scale=2),
    "lora_merge": lambda W, A, B: exact.lora_merge(W, A, B, scale=2),
    # 4
    "exp": exact.exp,
    "log": exact.log,
    "log_product": exact.log_product,
    "log_sum_exp": exact.log_sum_exp,
    "log_add_exp": exact.log_add_exp,
    "log1m_exp": exact.log1m_exp,
    "softplus": exact.softplus,
    "log_sigmoid": exact.log_sigmoid,
    # 5
    "bernoulli_log_likelihood": lambda p: exact.bernoulli_log_likelihood(p, successes=3, trials=10),
    "expectation": composed(exact.expectation, None, exact.softmax),
    "variance": composed(exact.variance, None, exact.softmax),
    "normal_log_density": exact.normal_log_density,
    # 6
    "softmax": exact.softmax,
    "log_softmax": exact.log_softmax,
    "tanh": exact.tanh,
    # 7
    "surprise": exact.surprise,
    "entropy": composed(exact.entropy, exact.softmax),
    "cross_entropy_between": composed(exact.cross_entropy_between, exact.softmax, exact.softmax),
    "kl_divergence": composed(exact.kl_divergence, exact.softmax, exact.softmax),
    "mutual_information": lambda z: exact.mutual_information(exact.exp(z) / exact.exp(z).sum()),
    "cross_entropy": exact.cross_entropy,
    # 8
    "relu": exact.relu,
    "leaky_relu": lambda x: exact.leaky_relu(x, slope=exact.mpf("0.01")),
    "erf": exact.erf,
    "gelu": exact.gelu,
    "gelu_tanh": exact.gelu_tanh,
    "silu": exact.silu,
    "swiglu": exact.swiglu,
    # 9
    "dropout": lambda x: x * kept(x),
    # 10
    "attention_weights": lambda q, k: exact.attention_weights(q, k, MASK),
    "attention": lambda q, k, v: exact.attention(q, k, v, MASK),
    "flash_attention": lambda q, k, v: exact.attention(q, k, v, lower_right(q.shape[-2], k.shape[-2])),
    "positive_features": exact.positive_features,
    "rotate": lambda x: exact.rotate(x, angles(x)),
    # 11
    "binary_cross_entropy": exact.binary_cross_entropy,
    # 12
    "layer_norm": exact.layer_norm,
    "rms_norm": exact.rms_norm,
    "batch_norm": exact.batch_norm,
    "scatter": lambda x: exact.scatter(x, rows=np.arange(len(x))[::-1] * 2, size=2 * len(x)),
    # 15
    "clipped_surrogate": lambda r: exact.clipped_surrogate(r, exact.constant(signs(r.shape))),
    "kl_estimate": exact.kl_estimate,
}

# Rounding is what it is for: it has no digits to keep.
WITHOUT_FORMULA = {"round_to"}


def numbers(*values):
    """The same numbers for every dtype, one argument of one axis."""
    return lambda limits: [np.array(values, float)]


def arrays(*values):
    """The same arguments for every dtype."""
    return lambda limits: [np.array(value) for value in values]


def near_largest(*shapes):
    return lambda limits: [np.array(shape) * (float(limits.max) / 16) for shape in shapes]


def near_smallest(*shapes):
    return lambda limits: [np.array(shape) * float(limits.smallest_normal) for shape in shapes]


def below_normal(*shapes):
    return lambda limits: [np.array(shape) * float(limits.smallest_subnormal) for shape in shapes]


def far(sign, share=0.8):
    """Numbers whose exponential is near the smallest normal number, or its reciprocal."""
    return lambda limits: [sign * np.array([share]) * -float(np.log(limits.smallest_normal.astype(float)))]


def with_gain(*vector):
    """A vector, a gain of ones and a bias of zeros."""
    return arrays([vector], np.ones(len(vector)), np.zeros(len(vector)))


def three_of_ten(theta):
    return function_named("bernoulli_log_likelihood")(theta, successes=3, trials=10)


FIRST = np.array([0])
EVEN = [0.25, 0.5, 0.25]
CANCELLING = [[100.1, 1.3, -100.2], [1.7, 2.1, 1.7]]  # 170.17 + 2.73 − 170.34
BUMP = 2.0**-9
QUERY, KEYS, VALUES = [[99.0, 100.0]], [[100.0, 0.0], [0.0, 99.0], [50.0, 49.53125]], [[1.0], [2.0], [4.0]]
ALL_ALLOWED = np.ones((1, 3), bool)

# (name, where, arguments): at these the function is called with nothing but the arguments
PLAIN = [
    ("norm", "near the largest number", near_largest([3.0, 4.0, 5.0])),
    ("norm", "near the smallest normal number", near_smallest([3.0, 4.0, 5.0])),
    ("normalize", "near the largest number", near_largest([13.0, 14.0, 15.0])),
    ("normalize", "near the smallest normal number", near_smallest([3.0, 4.0, 5.0])),
    ("normalize", "below the smallest normal number", below_normal([1.0, 1.0, 2.0])),
    ("distance", "points that nearly agree", arrays([1.0, 2.0, 3.0], [1.0, 2.0 + BUMP, 3.0 - BUMP])),
    ("frobenius_norm", "near the largest number", near_largest([[3.0, 4.0], [5.0, 6.0]])),
    ("dot", "terms that cancel", arrays(*CANCELLING)),
    ("cosine_similarity", "vectors that are nearly parallel", arrays([1.0, 2.0, 3.0], [1.0, 2.0, 3.0 + BUMP])),
    ("cosine_similarity", "vectors that are nearly perpendicular", arrays([1.0, 1.0], [1.0, BUMP - 1])),
    ("cosine_similarity", "near the largest number", near_largest([13.0, 14.0, 15.0], [15.0, -13.0, 11.0])),
    ("sigmoid", "x = 8 and −8", numbers(8, -8)),
    ("sigmoid", "far below 0", far(-1)),
    (
        "negative_sampling_loss",
        "confident and right: scores of 8 and −8",
        arrays([[2.0, 2.0]], [[2.0, 2.0]], [[[-2.0, -2.0]]]),
    ),
    ("matrix_vector_product", "terms that cancel", arrays([CANCELLING[0]], CANCELLING[1])),
    ("linear", "terms that cancel", arrays([CANCELLING[0]], np.array([CANCELLING[1]]).T, [0.0])),
    ("singular_values", "one of them a thousand times smaller", arrays([[1.0, 1.0], [1.0, 1.0 + BUMP]])),
    ("exp", "near the largest result", far(1, 0.95)),
    ("exp", "near the smallest normal result", far(-1, 0.95)),
    ("log", "near 1", lambda limits: [np.array([1 - limits.epsneg, 1 + limits.eps], float)]),
    ("log", "near the smallest normal number", near_smallest([1.0, 1.5])),
    ("log_product", "probabilities near 1", lambda limits: [np.array([1 - limits.epsneg, 1 - 3 * limits.eps], float)]),
    ("log_sum_exp", "one term far above the others: 0, −8", numbers(0, -8)),
    ("log_sum_exp", "terms of ±1000", numbers(1000, 999, -1000)),
    ("log_add_exp", "one term far above the other: 0, −8", arrays([0.0], [-8.0])),
    ("log_add_exp", "terms of 1000", arrays([1000.0], [999.0])),
    ("log1m_exp", "near 0", lambda limits: [-np.array([1.0, 3.0]) * float(limits.eps) ** 0.9]),
    ("log1m_exp", "far below 0", far(-1)),
    ("softplus", "x = −8", numbers(-8)),
    ("softplus", "far below 0", far(-1)),
    ("log_sigmoid", "x = 8 and −8", numbers(8, -8)),
    ("log_sigmoid", "far above 0", far(1)),
    ("variance", "values around 1000", arrays([1000.1, 1001.3, 1003.7], EVEN)),
    ("expectation", "terms that cancel", arrays([100.1, 1.3, -100.2], EVEN)),
    ("normal_log_density", "density near 1", arrays([0.25], [0.0], [0.375])),
    ("normal_log_density", "x = 100 σ", arrays([100.0], [0.0], [1.0])),
    ("softmax", "one logit far above the others: 0, −8, −9", numbers(0, -8, -9)),
    ("softmax", "small probabilities", lambda limits: [np.array([0.0, *far(-1)(limits)[0]])]),
    ("softmax", "logits of ±1000", numbers(1000, 999, -1000)),
    ("log_softmax", "one logit far above the others: 0, −8, −9", numbers(0, -8, -9)),
    ("log_softmax", "logits of ±1000", numbers(1000, 999, -1000)),
    ("tanh", "near 0", near_smallest([3.0, -5.0])),
    ("tanh", "x = 8", numbers(8)),
    ("surprise", "probabilities near 1", lambda limits: [np.array([1 - limits.epsneg, 1 - 3 * limits.eps], float)]),
    ("surprise", "probabilities near 0", near_smallest([1.0, 1.5])),
    ("entropy", "one outcome nearly certain", arrays([1 - BUMP, BUMP])),
    ("cross_entropy_between", "one outcome nearly certain", arrays([1 - BUMP, BUMP], [1 - 2 * BUMP, 2 * BUMP])),
    ("kl_divergence", "p near q", arrays([0.5, 0.5], [0.5 + BUMP, 0.5 - BUMP])),
    ("kl_divergence", "small probabilities", arrays([1 - BUMP, BUMP], [BUMP, 1 - BUMP])),
    ("cross_entropy", "confident and right: 0, −8, −9", arrays([[0.0, -8.0, -9.0]], FIRST)),
    ("cross_entropy", "confident and wrong: 0, 1000, −5", arrays([[0.0, 1000.0, -5.0]], FIRST)),
    ("kl_estimate", "policies that nearly agree", arrays([0.5], [0.5 + BUMP])),
    ("erf", "near 0", near_smallest([3.0, -5.0])),
    ("erf", "x = 3", numbers(3)),
    ("gelu", "x = −4", numbers(-4)),
    ("gelu", "x = 4", numbers(4)),
    ("gelu_tanh", "x = −4", numbers(-4)),
    ("silu", "x = −8", numbers(-8)),
    ("silu", "far below 0", far(-1)),
    ("swiglu", "gate = −8", arrays([-8.0], [3.0])),
    ("positive_features", "far below 0", far(-1)),
    ("binary_cross_entropy", "confident and right: z = 8, y = 1", arrays([8.0], np.array([1]))),
    ("binary_cross_entropy", "confident and wrong: z = −1000, y = 1", arrays([-1000.0], np.array([1]))),
    ("layer_norm", "numbers around 1000", with_gain(1000.1, 1001.3, 1003.7, 1003.3)),
    ("layer_norm", "near 0: numbers of 1/1000", with_gain(0.001, 0.002, -0.001, 0.0005)),
    ("rms_norm", "numbers of 10⁴", arrays([[1e4, 2e4, -5e3]], np.ones(3))),
    ("batch_norm", "numbers around 1000", arrays([[1000.1], [1001.3], [1003.7]], np.ones(1), np.zeros(1))),
]

# The same for functions that need something besides: (name, where, arguments, function, formula)
SPECIAL = [
    (
        "bernoulli_log_likelihood", "near the best θ: 0.3 + 1/256", numbers(0.3 + 1 / 256), three_of_ten,
        FORMULAS["bernoulli_log_likelihood"],
    ),
    (
        "bernoulli_log_likelihood", "θ near 1", lambda limits: [np.array([1 - float(limits.epsneg)])], three_of_ten,
        FORMULAS["bernoulli_log_likelihood"],
    ),
    (
        "attention_weights", "scores of 7000", arrays(QUERY, KEYS), function_named("attention_weights"),
        lambda q, k: exact.attention_weights(q, k, ALL_ALLOWED),
    ),
    (
        "attention", "scores of 7000", arrays(QUERY, KEYS, VALUES), function_named("attention"),
        lambda q, k, v: exact.attention(q, k, v, ALL_ALLOWED),
    ),
    (
        "flash_attention", "scores of 7000", arrays(QUERY, KEYS, VALUES), function_named("flash_attention"),
        lambda q, k, v: exact.attention(q, k, v, ALL_ALLOWED),
    ),
    (
        "rotate", "components that cancel", arrays(np.array([[[1.0, 1.0]]])),
        lambda x: function_named("rotate")(x, angles=np.array([[0.785]])),
        lambda x: exact.rotate(x, np.array([[0.785]])),
    ),
]  # fmt: skip

HARD = [Point(name, where, draw, function_named(name), getattr(exact, name)) for name, where, draw in PLAIN]
HARD += [Point(*special) for special in SPECIAL]
