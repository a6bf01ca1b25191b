"""Chapter 09: steps downhill, their length, and what they remember."""
# ruff: noqa: I001 (the names of the chapter are one paragraph)

import itertools

import numpy as np
import pytest
from refusing import refusing

import mathllm as ml
from mathllm import gradient_descent
from mathllm.gradient_descent import (
    descent_path, l2_penalty, minibatch_variance, momentum_init, momentum_step, rmsprop_init, rmsprop_step, sgd_init,
    sgd_step,
)  # fmt: skip

rng = np.random.default_rng(9)

OPTIMIZERS = {
    "sgd": (sgd_init, sgd_step, {"learning_rate": 0.1, "weight_decay": 0.01}),
    "heavy ball": (momentum_init, momentum_step, {"learning_rate": 0.02}),
    "average": (momentum_init, momentum_step, {"learning_rate": 0.1, "form": "average"}),
    "rmsprop": (rmsprop_init, rmsprop_step, {"learning_rate": 0.02}),
    "adam": (ml.adam_init, ml.adam_step, {"learning_rate": 0.05, "l2": 0.01}),
    "adamw": (ml.adamw_init, ml.adamw_step, {"learning_rate": 0.05}),
}


def nested(dtype=np.float64):
    return {
        "blocks": [{"weight": np.array([[1, 2], [3, 4]], dtype)}, {"weight": np.array([[5]], dtype)}],
        "bias": np.array([0.5, -0.5], dtype),
        "scale": np.array(2, dtype),
    }


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_dtype_is_kept_and_what_is_remembered_has_more_digits(name, dtype):
    init, step, options = OPTIMIZERS[name]
    params, gradient = nested(dtype), nested(dtype)
    options = {**options, "learning_rate": np.float64(options["learning_rate"])}  # as a schedule on arrays gives it
    after_one, state = step(params, gradient, init(params), **options)
    assert {np.asarray(leaf).dtype for leaf in ml.tree_leaves(after_one)} == {np.dtype(dtype)}
    remembered = [leaf for key, tree in state.items() if key != "step" for leaf in ml.tree_leaves(tree)]
    wide = np.promote_types(dtype, np.float32)  # in float16 squares of small gradients and ε would be 0
    assert {np.asarray(leaf).dtype for leaf in remembered} <= {wide}


def test_each_parameter_may_have_its_own_decay():
    params = {"weight": np.ones((2, 2)), "bias": np.ones(2)}
    zero = ml.tree_map(np.zeros_like, params)
    matrices_only = ml.tree_map(lambda p: 0.5 * (p.ndim > 1), params)
    for init, step, _ in (OPTIMIZERS["sgd"], OPTIMIZERS["adamw"]):
        moved, _ = step(params, zero, init(params), learning_rate=0.1, weight_decay=matrices_only)
        np.testing.assert_allclose(moved["weight"], 0.95)
        assert moved["bias"].tolist() == [1, 1]


def test_a_step_too_long_diverges_and_says_so():
    with np.errstate(over="ignore", invalid="ignore"), pytest.raises(ValueError, match="finite gradient"):
        descent_path(lambda w: (w**4).sum(), [10.0], 50, learning_rate=1.0)


def test_descents_follow_a_schedule_and_no_steps_leave_the_parameters_as_they_were():
    path = descent_path(lambda w: w.sum(), [0.0], 3, learning_rate=lambda t: 1 / t)
    np.testing.assert_allclose(path.ravel(), [0, -1, -1.5, -1.5 - 1 / 3])
    assert descent_path(lambda w: w.sum(), [1.0], 0, learning_rate=1).tolist() == [[1]]
    start = {"weight": np.ones(2)}
    assert gradient_descent.minimize(lambda p: p["weight"].sum(), start, 0, learning_rate=1.0) is start


def test_without_a_warmup_the_cosine_begins_at_its_peak_and_a_warmup_may_take_all_steps():
    assert ml.warmup_cosine(0, peak=1.0, total=10) == 1
    assert ml.warmup_cosine(10, peak=1.0, total=10, warmup=10) == 1


def test_clipping_survives_gradients_whose_squares_overflow_and_gradients_of_zero():
    clipped, length = ml.clip_gradient({"a": np.array([3e38, 0], np.float32), "b": np.array(4e38)}, 5.0)
    np.testing.assert_allclose(length, 5e38, rtol=1e-6)
    np.testing.assert_allclose([clipped["a"][0], clipped["b"]], [3, 4], rtol=1e-6)
    assert clipped["a"].dtype == np.float32
    assert ml.clip_gradient([np.zeros(3), np.zeros((0, 2))], 1.0)[1] == 0
    assert ml.global_norm({}) == l2_penalty({}, 2.0) == 0


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("replacement", [True, False])
def test_the_noise_of_a_minibatch_found_by_enumerating_all_of_them(size, replacement):
    gradients = rng.normal(size=(5, 2))
    draws = itertools.product(range(5), repeat=size) if replacement else itertools.combinations(range(5), size)
    means = np.array([gradients[list(draw)].mean(axis=0) for draw in draws])
    np.testing.assert_allclose(means.mean(axis=0), gradients.mean(axis=0), atol=1e-12)
    predicted = minibatch_variance(gradients, size, replacement=replacement)
    np.testing.assert_allclose(means.var(axis=0), predicted, atol=1e-12)


def one_step(params, gradient, step=sgd_step, init=sgd_init, **options):
    return step(params, gradient, init(params), learning_rate=0.1, **options)


test_what_cannot_be_right_is_refused_in_words = refusing(
    (lambda: one_step(1.0, np.nan), ValueError, "finite gradient"),
    (lambda: one_step({"a": 1.0}, {"b": 1.0}), ml.ShapeError, "no counterpart"),
    (lambda: one_step([np.ones(1)], [np.ones(1)] * 2), ml.ShapeError, "no counterpart"),
    (lambda: one_step(1.0, {"a": 1.0}), ml.ShapeError, "there is one array instead"),
    (lambda: one_step({"a": 1.0}, {"a": None}), ml.ShapeError, r"params\['a'\]"),
    (lambda: one_step({"b": [np.zeros((3, 1))]}, {"b": [np.zeros(3)]}), ml.ShapeError, r"\['b'\]\[0\].*got \(3,\)"),
    (lambda: one_step(1.0, 1.0, momentum_step, momentum_init, form="nesterov"), ValueError, "'nesterov'"),
    (lambda: ml.clip_gradient([np.inf], 1), ValueError, "length_of_the_gradient in .*got inf"),
    (lambda: ml.warmup_cosine(1, peak=1.0, total=10, warmup=11), ValueError, "got 11"),
    (lambda: ml.warmup_cosine(1, peak=1.0, total=10, floor=2.0), ValueError, r"floor in \[0, 1.0\], got 2.0"),
    (lambda: minibatch_variance([1.0, 2.0], 3, replacement=False), ValueError, r"batch_size in \[1, 2\], got 3"),
    (lambda: minibatch_variance([], 1), ml.ShapeError, r"\(0,\)"),
    (lambda: descent_path(lambda w: w.sum(), [1.0], -1, learning_rate=1), ValueError, "got -1"),
)
