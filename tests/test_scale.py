"""Chapter 13, large runs on paper and in simulation: memory, compute, the scaling law, 16-bit numbers, many workers."""

import functools
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusing import refusing

import mathllm as ml
from mathllm import scale

LAW = scale.CHINCHILLA
# ------------------------------------------------------------------------------------------------------ the scaling law

constants, exponents = st.floats(10, 1000), st.floats(0.2, 0.8)
laws = st.builds(scale.ScalingLaw, st.floats(0.5, 3), constants, constants, exponents, exponents)


@given(laws, st.floats(15, 26))
def test_no_other_share_of_the_budget_does_better(law, exponent):
    C = 10.0**exponent
    best = scale.compute_optimal(C, law)
    assert scale.training_flops(best.parameters, best.tokens) == pytest.approx(C)
    others = best.parameters * np.geomspace(0.1, 10, 41)
    assert np.all(scale.scaling_loss(others, C / 6 / others, law) >= best.loss * (1 - 1e-12))


# ------------------------------------------------------------------------------------------------------------ precision


def test_float16_is_rounded_as_numpy_rounds_it():
    draw = np.random.default_rng(0)
    x = draw.normal(size=50_000) * 10.0 ** draw.uniform(-10, 6, size=50_000)
    ties = np.arange(2**15 - 2**10 - 1, dtype=np.uint16).view(np.float16).astype(float)
    x = np.concatenate([x, (ties[1:] + ties[:-1]) / 2, [65519.99, 65520, -65520, 0.0, -0.0, np.inf, -np.inf, np.nan]])
    with np.errstate(over="ignore"):
        expected = x.astype(np.float16).astype(float)
    np.testing.assert_array_equal(scale.round_to(x, format=scale.FLOAT16), expected)


def test_bfloat16_is_the_upper_half_of_a_float32_rounded_to_even():
    bits = np.random.default_rng(3).integers(2**32, size=100_000, dtype=np.uint32)
    bits[:1000] = (bits[:1000] & 0xFFFF0000) | 0x8000  # ties
    x = bits.view(np.float32)
    bits = x.view(np.uint32)[np.isfinite(x)]
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)  # the well-known trick
    np.testing.assert_array_equal(scale.round_to(bits.view(np.float32)), rounded.view(np.float32))
    ends = np.array([0x7F7F0000, 0x00010000], np.uint32).view(np.float32)
    assert (scale.BFLOAT16.largest, scale.BFLOAT16.smallest) == tuple(ends.astype(float))


def test_nan_of_any_kind_stays_nan_without_a_warning():
    signalling = np.array([0x7F800001], np.uint32).view(np.float32)
    assert np.isnan(scale.round_to(signalling))
    assert scale.round_to(np.array([1e30], np.float64), format=scale.FLOAT16) == np.inf


def test_the_gradient_passes_straight_through_and_is_rounded():
    gradient = ml.grad(lambda x: (scale.round_to(x) * np.array([1.0, 1.001, 1e-3])).sum())(np.array([0.1, 0.2, 0.3]))
    np.testing.assert_array_equal(gradient, scale.round_to(np.array([1.0, 1.001, 1e-3])))
    assert gradient[1] == 1


def test_a_scale_that_is_too_large_is_noticed_and_comes_down():
    master, state = {"w": np.ones(3)}, scale.LossScale(2.0**24)
    tried = []
    while True:
        result = scale.mixed_precision_gradient(lambda p: (p["w"] * 3.0).sum(), master, scale=state.scale)
        tried.append(state.scale)
        state = scale.update_loss_scale(state, result.finite)
        if result.finite:
            break
    assert len(tried) > 3
    assert tried[-1] * 3 <= scale.FLOAT16.largest < tried[-2] * 3
    np.testing.assert_array_equal(result.gradient["w"], [3, 3, 3])
    assert result.loss == 9


# ---------------------------------------------------------------------------------------------------------- parallelism

# Small whole numbers: sums of their products are exact in float64, so every order of additions gives the same bits.


def whole(*shape, seed=0):
    return np.random.default_rng(seed).integers(-4, 5, size=shape).astype(float)


@given(st.integers(1, 7), st.integers(0, 20), st.integers(0, 99))
def test_every_worker_ends_with_the_sum_and_sends_less_than_twice_its_array(workers, size, seed):
    parts = [whole(size, seed=seed + w) for w in range(workers)]
    results, sent = scale.ring_all_reduce(parts)
    for result in results:
        np.testing.assert_array_equal(result, np.sum(parts, axis=0))
    assert sum(sent) == 2 * (workers - 1) * size  # each chunk travels around the ring, twice
    assert max(sent) <= 2 * (workers - 1) * math.ceil(size / workers)


def network(params, x, t):
    hidden = ml.relu(ml.linear(x, params["up"], params["bias"]))
    return ((ml.linear(hidden, params["down"]) - t) ** 2).mean()


def example(batch=8):
    params = {"up": whole(3, 4), "bias": whole(4, seed=1), "down": whole(4, 2, seed=2)}
    return params, whole(batch, 3, seed=3), whole(batch, 2, seed=4)


@pytest.mark.parametrize("workers", [1, 2, 4, 8])
def test_data_parallel_workers_find_the_gradient_of_one(workers):
    params, x, t = example()
    loss, gradient = ml.value_and_grad(network)(params, x, t)
    parallel_loss, parallel = scale.data_parallel_gradient(network, params, (x, t), workers)
    assert parallel_loss == loss
    for name in params:
        np.testing.assert_array_equal(parallel[name], gradient[name])


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("activation", [ml.relu, ml.gelu])
def test_tensor_parallel_workers_compute_the_network_and_the_gradients_of_one(workers, activation):
    arguments = whole(2, 5, 3), whole(3, 8, seed=1), whole(8, 3, seed=2)
    alone, expected = ml.vjp(lambda x, up, down: ml.linear(activation(ml.linear(x, up)), down), *arguments)
    divided = functools.partial(scale.tensor_parallel_network, workers=workers, activation=activation)
    together, found = ml.vjp(divided, *arguments)
    tolerance = 0 if activation is ml.relu else 1e-12  # order of additions
    for ours, theirs in zip([together, *found(2 * alone)], [alone, *expected(2 * alone)], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


STAGES = [
    lambda p, x: ml.embedding(p, x),
    lambda p, x: ml.relu(ml.linear(x, p["W"], p["b"])),
    lambda p, x: ml.linear(x, p),
]


@pytest.mark.parametrize("microbatches", [1, 2, 4, 8])
def test_a_pipeline_finds_the_gradient_of_one_machine(microbatches):
    params = [whole(9, 3), {"W": whole(3, 4, seed=1), "b": whole(4, seed=2)}, whole(4, 2, seed=3)]
    tokens, targets = np.arange(8) % 5, whole(8, 2, seed=4)

    def mean_square(y, t):
        return ((y - t) ** 2).mean()

    def whole_model(params):
        x = tokens
        for stage, own in zip(STAGES, params, strict=True):
            x = stage(own, x)
        return mean_square(x, targets)

    loss, gradient = ml.value_and_grad(whole_model)(params)
    found_loss, found = scale.pipeline_gradient(STAGES, params, mean_square, tokens, targets, microbatches)
    assert found_loss == loss
    for ours, theirs in zip(ml.tree_leaves(found), ml.tree_leaves(gradient), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@given(st.integers(1, 6), st.integers(1, 8))
def test_a_schedule_respects_what_needs_what_and_waits_as_long_as_the_formula_says(stages, microbatches):
    tasks = scale.pipeline_schedule(stages, microbatches)
    when = {task[1:]: task.time for task in tasks}
    assert len({(task.time, task.stage) for task in tasks}) == len(tasks) == 2 * stages * microbatches
    for m in range(microbatches):
        order = [(s, m, True) for s in range(stages)] + [(s, m, False) for s in reversed(range(stages))]
        assert all(when[a] < when[b] for a, b in itertools.pairwise(order))
    duration = max(when.values()) + 1
    assert 1 - len(tasks) / (stages * duration) == pytest.approx(scale.pipeline_bubble(stages, microbatches))


@pytest.mark.parametrize("workers", [1, 2, 3, 5])
def test_zero_takes_the_steps_of_one_worker_bit_by_bit(workers):
    params, *_ = example()
    alone, state = params, ml.adamw_init(params)
    together, states = params, scale.zero_init(params, workers)
    for i in range(4):
        seeds = range(10 * i, 10 * i + workers)
        gradients = [ml.tree_map(lambda p, seed=seed: whole(*p.shape, seed=seed), params) for seed in seeds]
        mean = ml.tree_map(lambda *parts: sum(parts[1:], parts[0]) / workers, *gradients)
        alone, state = ml.adamw_step(alone, mean, state, learning_rate=0.1)
        together, states = scale.zero_step(together, gradients, states, learning_rate=0.1)
        for name in params:
            np.testing.assert_array_equal(together[name], alone[name])
    sizes = [s["mean"].size for s in states]
    assert sum(sizes) == sum(p.size for p in params.values())
    assert max(sizes) - min(sizes) <= 1


def test_zero_serves_any_optimiser_that_treats_each_number_by_itself():
    params, gradients = {"W": whole(2, 3)}, [{"W": whole(2, 3, seed=w)} for w in range(2)]
    init, step = ml.gradient_descent.sgd_init, ml.gradient_descent.sgd_step
    new, _ = scale.zero_step(params, gradients, scale.zero_init(params, 2, init), step, learning_rate=0.5)
    np.testing.assert_array_equal(new["W"], params["W"] - 0.25 * (gradients[0]["W"] + gradients[1]["W"]))


def square(params, x):
    return (ml.linear(x, params["W"]) ** 2).mean()


def test_the_loss_scale_grows_after_enough_good_steps_and_only_then():
    state, scales = scale.LossScale(4.0), []
    for finite in [True, True, True, False, True, True, True]:
        state = scale.update_loss_scale(state, finite, interval=3)
        scales.append(state.scale)
    assert scales == [4, 4, 8, 4, 4, 4, 8]


def runs(n):
    return np.arange(1.0, n + 1), np.arange(1.0, n + 1), np.ones(n)


test_what_cannot_be_right_is_refused_in_words = refusing(
    (lambda: scale.optimal_exponents(LAW._replace(beta=0)), ValueError, r"beta in \(0, ∞\), got 0"),
    (lambda: scale.fit_scaling_law(*runs(4)), ValueError, r"runs in \[5, ∞\), got 4"),
    (lambda: scale.fit_scaling_law(np.ones(5), *runs(5)[1:]), ValueError, "several sizes"),
    (lambda: scale.ring_all_reduce([[1.0], [1.0, 2.0]]), ml.ShapeError, r"got \(1,\), \(2,\)"),
    (lambda: scale.ring_all_reduce([]), ml.ShapeError, "got none"),
    (lambda: scale.data_parallel_gradient(square, 1.0, [np.ones(5)], 2), ml.ShapeError, "5 entries into 2 equal parts"),
    (lambda: scale.tensor_parallel_network(*whole(3, 3, 3), workers=2), ml.ShapeError, "3 entries into 2 equal parts"),
    (lambda: scale.pipeline_gradient(STAGES, [1.0], None, [1], [1], 1), ml.ShapeError, "each of 3 stages, got 1"),
    (lambda: scale.zero_step([1.0], [[1.0]], scale.zero_init([1.0], 2)), ml.ShapeError, "each of 2 workers, got 1"),
    (lambda: scale.zero_step([1.0], [[1.0, 2.0]], scale.zero_init([1.0], 1)), ml.ShapeError, "shape of its parameter"),
)
