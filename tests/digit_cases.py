"""Where digits are counted: for each public primitive its formula in exact.py, and arguments that are hard for it.

FORMULAS has the exact formula for the arguments that primitive_cases.py draws. HARD has points at which a formula that
is written down directly loses digits: results near 0 that are differences of large numbers, the ends of the range of a
dtype, and saturated functions.
"""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import NamedTuple

import exact
import numpy as np
from exact import dot, exp, log, mean, norm, relu, softmax, softplus, sqrt
from mpmath import mp, mpf
from primitive_cases import ALL, CASES, MASK, angles, fixed, signs

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


def lower_right(queries, keys):
    return np.arange(keys) <= np.arange(queries)[:, None] + keys - queries


def kept(x):
    """What dropout multiplies x by in its case: 0, or 1 / (1 − rate)."""
    (case,) = [case for case in CASES[9] if case.name == "dropout"]
    return (case.call(np.ones(x.shape)) != 0) / mpf("0.7")


def scattered(x, rows, size):
    table = exact.exactly(np.zeros((size, *x.shape[1:])))
    table[rows] = x
    return table


# Where exact.py has a function of the same name, it is the formula; but a case may call it with other arguments.
FORMULAS = {case.name: getattr(exact, case.name) for case in ALL if hasattr(exact, case.name)} | {
    "normalize": lambda x: x / norm(x)[..., None],
    "distance": lambda a, b: norm(a - b),
    "frobenius_norm": lambda W: norm(W.reshape(*W.shape[:-2], -1)),
    "embedding": lambda table, ids: table[ids],
    "cosine_similarity": lambda a, b: dot(a, b) / (norm(a) * norm(b)),
    "mean_pool": lambda x: (x[..., 0, :] + x[..., 2, :]) / 2,
    "negative_sampling_loss": lambda centre, context, negatives: mean(
        softplus(-dot(context, centre)) + softplus(dot(negatives, centre[:, None, :])).sum(axis=1)
    ),
    "matrix_vector_product": lambda W, x: dot(W, x[..., None, :]),
    "linear": lambda x, W, b: x @ W + b,
    "lora_linear": lambda x, A, B: x @ exact.constant(fixed(x.shape[-1], 4)) + (x @ A) @ B * 2,
    "lora_merge": lambda W, A, B: W + A @ B * 2,
    "log_product": lambda p: log(p).sum(axis=-1),
    "log_sum_exp": lambda x: log(exp(x).sum(axis=-1)),
    "log_add_exp": lambda a, b: log(exp(a) + exp(b)),
    "log_sigmoid": lambda x: -softplus(-x),
    "bernoulli_log_likelihood": lambda theta: 3 * log(theta) + 7 * log(1 - theta),
    "expectation": lambda x, z: exact.expectation(x, softmax(z)),
    "variance": lambda x, z: exact.variance(x, softmax(z)),
    "normal_log_density": lambda x, mean, sigma: (
        -(x - mean) * (x - mean) / (2 * sigma * sigma) - log(sigma) - mp.log(2 * mp.pi) / 2
    ),
    "surprise": lambda p: -log(p),
    "entropy": lambda z: exact.entropy(softmax(z)),
    "cross_entropy_between": lambda z, w: exact.cross_entropy_between(softmax(z), softmax(w)),
    "kl_divergence": lambda z, w: exact.kl_divergence(softmax(z), softmax(w)),
    "mutual_information": lambda z: exact.mutual_information(exp(z) / exp(z).sum()),
    "cross_entropy": lambda z, labels: mean(-np.take_along_axis(exact.log_softmax(z), labels[..., None], axis=-1)),
    "gelu": lambda x: x * (1 + exact.erf(x / mp.sqrt(2))) / 2,
    "gelu_tanh": lambda x: x * (1 + exact.tanh(mp.sqrt(2 / mp.pi) * (x + mpf("0.044715") * x * x * x))) / 2,
    "swiglu": lambda gate, value: exact.silu(gate) * value,
    "dropout": lambda x: x * kept(x),
    "attention_weights": lambda q, k: exact.attention_weights(q, k, MASK),
    "attention": lambda q, k, v: exact.attention(q, k, v, MASK),
    "flash_attention": lambda q, k, v: exact.attention(q, k, v, lower_right(q.shape[-2], k.shape[-2])),
    "positive_features": lambda x: relu(x) + exp(-relu(-x)),
    "rotate": lambda x: exact.rotate(x, angles(x)),
    "binary_cross_entropy": lambda z, y: mean(y * softplus(-z) + (1 - y) * softplus(z)),
    "rms_norm": lambda x, gain: x / sqrt(exact.rows(x * x) / x.shape[-1] + mpf("1e-5")) * gain,
    "batch_norm": lambda x, gain, bias: exact.layer_norm(x, gain, bias, axis=0),
    "scatter": lambda x: scattered(x, rows=np.arange(len(x))[::-1] * 2, size=2 * len(x)),
    "clipped_surrogate": lambda r: exact.clipped_surrogate(r, exact.constant(signs(r.shape))),
    "kl_estimate": lambda old, new: exp(new - old) - 1 - (new - old),
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


FIRST = np.array([0])
EVEN = [0.25, 0.5, 0.25]
CANCELLING = [[100.1, 1.3, -100.2], [1.7, 2.1, 1.7]]  # 170.17 + 2.73 − 170.34
BUMP = 2.0**-9
QUERY, KEYS, VALUES = [[99.0, 100.0]], [[100.0, 0.0], [0.0, 99.0], [50.0, 49.53125]], [[1.0], [2.0], [4.0]]
# (name, where, arguments)
PLACES = [
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
    ("bernoulli_log_likelihood", "near the best θ: 0.3 + 1/256", numbers(0.3 + 1 / 256)),
    ("bernoulli_log_likelihood", "θ near 1", lambda limits: [np.array([1 - float(limits.epsneg)])]),
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
    ("attention_weights", "scores of 7000", arrays(QUERY, KEYS)),
    ("attention", "scores of 7000", arrays(QUERY, KEYS, VALUES)),
    ("flash_attention", "scores of 7000", arrays(QUERY, KEYS, VALUES)),
    ("positive_features", "far below 0", far(-1)),
    ("rotate", "components that cancel", arrays([[[1.0, 1.0]]])),
    ("binary_cross_entropy", "confident and right: z = 8, y = 1", arrays([8.0], np.array([1]))),
    ("binary_cross_entropy", "confident and wrong: z = −1000, y = 1", arrays([-1000.0], np.array([1]))),
    ("layer_norm", "numbers around 1000", with_gain(1000.1, 1001.3, 1003.7, 1003.3)),
    ("layer_norm", "near 0: numbers of 1/1000", with_gain(0.001, 0.002, -0.001, 0.0005)),
    ("rms_norm", "numbers of 10⁴", arrays([[1e4, 2e4, -5e3]], np.ones(3))),
    ("batch_norm", "numbers around 1000", arrays([[1000.1], [1001.3], [1003.7]], np.ones(1), np.zeros(1))),
]

# What these functions need besides; others are called with nothing but the arguments.
OPTIONS = {"bernoulli_log_likelihood": {"successes": 3, "trials": 10}, "rotate": {"angles": np.array([[0.785]])}}
PLAIN = {**vars(exact), "rotate": lambda x: exact.rotate(x, OPTIONS["rotate"]["angles"])}

HARD = [
    Point(
        name, where, draw, partial(function_named(name), **OPTIONS.get(name, {})), PLAIN.get(name, FORMULAS.get(name))
    )
    for name, where, draw in PLACES
]
