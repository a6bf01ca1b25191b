"""Bounds, sums of one, symmetries and orders that the formulas promise also hold after rounding.

Each row of the tables in promises_of_functions.py and promises_of_models.py is one promise: what is promised, the hard
arguments it is tried on (hard_numbers.py), and the promise as a condition (conditions.py). An identity holds up to a
few roundings. A bound holds exactly, because the next function refuses a probability above 1 or a negative loss.
"""

from collections.abc import Iterator

import numpy as np
import promises_of_functions as functions
import promises_of_models as models
import pytest
from conditions import ONE

PROMISES = {
    1: functions.VECTORS, 2: functions.SIMILARITY, 3: functions.MATRICES, 4: functions.EXPONENTIALS,
    5: functions.PROBABILITY, 6: functions.SOFTMAX, 7: functions.CROSS_ENTROPY, 8: functions.GRADIENTS,
    9: models.GRADIENT_DESCENT, 10: models.ATTENTION, 11: models.BACKPROPAGATION, 12: models.TRANSFORMER,
    13: models.TRAINING, 14: models.INFERENCE, 15: models.ALIGNMENT, 16: models.INTERPRETABILITY,
}  # fmt: skip

# Promises that are broken: why, and for which dtypes. A row goes when the function is repaired: then its test fails.
BROKEN = {
    "normalize() divides by a length that overflows, or is rounded below the smallest normal number": {
        "01 normalize gives length 1": "float16 float32 float64",
        "02 cosine_similarity with itself is 1": "float16 float32 float64",
        "02 cosine_similarity with the opposite is -1": "float16 float32 float64",
        "02 cosine_similarity does not depend on lengths": "float16 float32 float64",
    },
    "a matrix of cosines is not clipped, and rounding steps over 1": {
        "02 cosine_similarity_matrix lies in [-1, 1]": "float16 float32 float64",
        "02 interpret_cosine takes every cosine of a matrix": "float16 float32",
        "02 retrieve gives cosines in [-1, 1]": "float16 float32 float64",
        "16 recovery lies in [-1, 1]": "float16 float32 float64",
    },
    "WordVectors squares float32 components in float32": {
        "02 WordVectors.nearest does not depend on lengths": "float32",
    },
    "rows that sum to 1 up to rounding are multiplied thousands of times, and their sums drift away from 1": {
        "03 repeated_attention keeps rows that sum to 1": "float16 float32 float64",
    },
    "floor + (peak - floor) and peak * step / step are rounded, up to one step above the peak": {
        "09 warmup_cosine lies in [0, peak], after the warmup in [floor, peak]": "",
        "09 cosine_restarts lies in [floor, peak]": "",
        "09 polynomial_decay lies in [floor, peak] and falls": "",
    },
    "the factor that shortens a gradient is rounded in the dtype of the gradient": {
        "09 clip_gradient gives at most the limit": "float32",
    },
    "the mean of squares and epsilon overflow or vanish in float16": {
        "09 adam_step first moves each parameter by the rate": "float16",
        "09 adam_step first moves no parameter by more than the rate": "float16",
        "09 adamw_step of a gradient of 0 is finite": "float16",
        "09 rmsprop_step is finite": "float16",
        "09 rmsprop_step moves no parameter by more than ten times the rate": "float16",
    },
    "queries are scaled in float16 before their scores are computed in float32": {
        "10 attention_weights of equal scores are equal": "float16",
    },
    "ln of the sum is lost beside a large maximum: the weights of the backward pass do not sum to 1": {
        "10 flash_attention has the gradient of attention": "float32 float64",
    },
    "all features underflow: 0 divided by 0": {
        "10 linear_attention of very negative features is finite": "",
    },
    "the mean of large equal numbers is rounded, and the rounding is divided by epsilon": {
        "12 layer_norm of equal components is the bias": "float32",
        "12 batch_norm of equal examples is the bias": "float32",
    },
    "squares are larger than the largest number: the result is 0 without a word": {
        "12 layer_norm of large numbers has size 1 or is refused": "",
        "12 rms_norm of large numbers has size 1 or is refused": "",
    },
    "1 - (1 - J^r)^b loses its digits where J^r is small": {
        "13 band_probability keeps its digits": "",
    },
    "np.quantile() interpolates between infinities": {
        "13 perplexity_interval has its ends in order": "",
    },
    "rewards divided by a tiny beta are infinite, and infinity minus infinity is no number": {
        "15 kl_optimal_policy takes the highest reward as beta falls": "",
    },
    "exp(d) - d - 1 loses its digits where d is small, and may be negative": {
        "15 kl_estimate is at least 0": "float16 float32 float64",
        "15 kl_estimate is about half the square of a small difference": "",
    },
    "the mean of equal rewards is rounded, and the rounding is divided by epsilon": {
        "15 group_advantages have mean 0": "",
        "15 group_advantages of equal rewards are 0": "",
    },
    "correlations are not clipped, and rounding steps over 1": {
        "16 neuron_correlations lie in [-1, 1]": "",
    },
    "squares of lengths overflow or vanish: 0 divided by 0": {
        "16 feature_dimensions of a single feature are 1": "float16 float32 float64",
        "16 feature_dimensions do not depend on the size": "",
    },
}
KNOWN = {
    name + (f" [{dtype}]" if dtype else ""): reason
    for reason, promises in BROKEN.items()
    for name, dtypes in promises.items()
    for dtype in dtypes.split() or [""]
}


def cases():
    """Every promise for every dtype it is made for, under the name `NN words [dtype]`."""
    for chapter, promises in PROMISES.items():
        for promise in promises:
            for dtype in promise.dtypes:
                name = f"{chapter:02} {promise.words}" + f" [{np.dtype(dtype)}]" * (promise.dtypes is not ONE)
                marks = [pytest.mark.xfail(reason=KNOWN[name])] if name in KNOWN else []
                yield pytest.param(promise, dtype, id=name, marks=marks)


@pytest.mark.parametrize(("promise", "dtype"), [*cases()])
def test_the_promise_holds_at_hard_points(promise, dtype):
    with np.errstate(over="ignore", divide="ignore"):  # an infinity is an answer here; NaN breaks every promise
        for arguments in promise.points(dtype):
            held = promise.holds(*arguments)
            parts = held if isinstance(held, list | Iterator) else [held]
            assert all(np.all(part) for part in parts), arguments


def test_every_broken_promise_is_a_promise():
    assert {*KNOWN} <= {case.id for case in cases()}
