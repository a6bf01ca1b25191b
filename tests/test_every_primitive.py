"""Every primitive keeps the same promises: its gradient, its dtype, its arguments, and sizes of nothing and of one."""

import numpy as np
import pytest
from primitive_cases import ALL, PREFERENCES, VARIANTS, arguments, extreme_arguments, public_primitives

import mathllm as ml
from mathllm import matrices, probability
from mathllm.backpropagation import backward_pass, forward_pass

every = pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
every_variant = pytest.mark.parametrize("case", ALL + PREFERENCES + VARIANTS, ids=lambda case: case.name)
every_float = pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
TOLERANCE = 1e-6  # central differences in float64 are good to about 1e-10; a wrong formula is off by percents


def value_and_gradients(case, args):
    """The value, and the gradients for a random cotangent."""
    value, pullback = ml.vjp(case.call, *args)
    cotangent = np.random.default_rng(0).normal(size=value.shape).astype(value.dtype)
    return [value, *(g for g, a in zip(pullback(cotangent), args, strict=True) if a.dtype.kind == "f")]


def beside_float64(case, args):
    """The value and each gradient, beside what float64 gives for the same numbers."""
    wide = [a.astype(float) if a.dtype.kind == "f" else a for a in args]
    return zip(value_and_gradients(case, args), value_and_gradients(case, wide), strict=True)


def test_every_public_primitive_has_a_case():
    names = [case.name for case in ALL]
    assert len(set(names)) == len(names)
    primitives = {case.name for case in ALL if not case.composed}
    assert {name for name in primitives if not name.startswith("_")} == set(public_primitives())


@every_variant
def test_each_pullback_agrees_with_central_differences_at_every_entry(case):
    if case.straight_through:
        args = arguments(case)
        value, slope = value_and_gradients(case, args)
        assert np.allclose(value, args[0], rtol=2**-8)
        np.testing.assert_allclose(slope, np.random.default_rng(0).normal(size=value.shape), rtol=2**-8)
    else:
        assert ml.check_gradient(case.call, *arguments(case)).error < TOLERANCE


@every_variant
@every_float
def test_the_dtype_is_kept_by_value_and_gradient(case, dtype):
    within = 60 * np.finfo(dtype).eps  # a few roundings of numbers of this size
    for ours, right in beside_float64(case, arguments(case, dtype)):
        assert ours.dtype == dtype
        assert np.abs(ours - right).max() <= within * max(np.abs(right).max(), 1)


@every
def test_the_digits_of_float16_do_not_depend_on_the_order_in_memory(case):
    """NumPy adds up rows of float16 in float32, but columns in float16, where a sum of 2000 numbers has two digits."""
    args = arguments(case, np.float16, n=3, d=2000)
    found = (value_and_gradients(case, args), value_and_gradients(case, [np.asfortranarray(a) for a in args]))
    for row_by_row, column_by_column in zip(*found, strict=True):
        np.testing.assert_array_equal(row_by_row, column_by_column)


def layers(p):
    return [{"weight": p, "bias": p[0]}] * 2


def mean_square(p, x):
    return (ml.linear(x, p) ** 2).mean()


WITHOUT_PULLBACK = {
    "svd": lambda p: matrices.svd(p).U,
    "low_rank_approximation": lambda p: matrices.low_rank_approximation(p, 1),
    "low_rank_error": lambda p: matrices.low_rank_error(p, 1),
    "matrix_product_by_hand": lambda p: matrices.matrix_product_by_hand(p, p),
    "distribution": probability.distribution,
    "distribution_from_counts": ml.distribution_from_counts,
    "posterior": lambda p: probability.posterior(p, p),
    "perplexity": lambda p: ml.perplexity(p, base=2),
    "convert_information": lambda p: ml.convert_information(p, from_base=2, to_base=3),
    "kl_optimal_policy": lambda p: ml.alignment.kl_optimal_policy(p, p, beta=0.5),
    "stationary_distribution": ml.stationary_distribution,
    "clip_gradient": lambda p: ml.clip_gradient(p, np.float64(0.5))[0],  # as a schedule might give the limit
    "value_weighted_attention": lambda p: ml.interpretability.value_weighted_attention(p[None], p[None]),
    "lora_merge": lambda p: ml.lora_merge(p, np.ones((2, 1)), np.ones((1, 2))),  # factors in float64
    "ridge_regression": lambda p: probability.ridge_regression(p, p[0], 1.0),
    "sequential_posterior": lambda p: probability.sequential_posterior(p[0], p),
    "acceptance_probability": lambda p: ml.inference.acceptance_probability(p[0], p[1]),
    "residual_distribution": lambda p: ml.inference.residual_distribution(p[0], p[1]),
    "neuron_correlations": lambda p: ml.interpretability.neuron_correlations(p, p),
    "direction_correlations": lambda p: ml.interpretability.direction_correlations(p, p),
    "feature_dimensions": ml.interpretability.feature_dimensions,
    "forward_pass": lambda p: forward_pass(p, layers(p)).logits,
    "backward_pass": lambda p: backward_pass(p, forward_pass(p, layers(p)), layers(p)).gradient[0]["weight"],
    "ring_all_reduce": lambda p: ml.scale.ring_all_reduce([p, p]).results[0],
    "data_parallel_gradient": lambda p: ml.scale.data_parallel_gradient(mean_square, p, [p], 2)[1],
    "mixed_precision_gradient": lambda p: ml.scale.mixed_precision_gradient(mean_square, p, p, scale=8.0).gradient,
    "tensor_parallel_network": lambda p: ml.scale.tensor_parallel_network(p, p, p, workers=2),
    "pipeline_gradient": lambda p: ml.scale.pipeline_gradient([mean_square], [p], lambda y, t: y, p, p, 2)[1][0],
    "zero_step": lambda p: ml.scale.zero_step(p, [p, p], ml.scale.zero_init(p, 2))[0],
}


@pytest.mark.parametrize("name", WITHOUT_PULLBACK)
@every_float
def test_the_dtype_is_kept_by_what_has_no_pullback(name, dtype):
    assert WITHOUT_PULLBACK[name](np.array([[0.5, 0.5], [0.25, 0.75]], dtype)).dtype == dtype


@every
def test_an_empty_batch_gives_an_empty_result_or_is_refused_in_words(case):
    args = arguments(case, n=0)
    if "empty" in case.refuses:
        with pytest.raises(ValueError, match="needs"):
            case.call(*args)
    else:
        value, *gradients = value_and_gradients(case, args)
        assert value.size == 0
        assert [g.shape for g in gradients] == [a.shape for a in args if a.dtype.kind == "f"]
        assert not any(np.any(g) for g in gradients)  # nothing depends on the weights, either


@every
@pytest.mark.parametrize("size", [{"n": 1}, {"d": 1}], ids=["example", "component"])
def test_one_is_enough(case, size):
    args = arguments(case, **size)
    if case.name == "batch_norm" and "n" in size:
        with pytest.raises(ml.ShapeError, match="at least 2"):
            case.call(*args)
        return
    found = value_and_gradients(case, args)
    assert all(np.all(np.isfinite(array)) for array in found)
    assert [g.shape for g in found[1:]] == [a.shape for a in args if a.dtype.kind == "f"]
    if not case.straight_through:
        assert ml.check_gradient(case.call, *args).error < TOLERANCE


@pytest.mark.parametrize("case", ALL + PREFERENCES, ids=lambda case: case.name)
@every_float
def test_extreme_numbers_give_finite_values_and_gradients(case, dtype):
    """Up to ±10⁴: infinite is only what is beyond the largest number of the dtype, and nothing is NaN."""
    for args in extreme_arguments(case, dtype):
        with np.errstate(over="ignore" if dtype == np.float16 else "warn"):
            found = [*beside_float64(case, args)]
        for ours, right in found:
            assert np.all(np.isfinite(right))
            assert not np.any(np.isnan(ours))
            assert np.all(np.isfinite(ours) | (np.abs(right) > 0.99 * np.finfo(dtype).max))


@every_variant
def test_neither_the_arguments_nor_the_value_are_changed_and_the_way_back_can_be_gone_twice(case):
    args = arguments(case)
    for a in args:
        a.flags.writeable = False  # a write would raise
    value, pullback = ml.vjp(case.call, *args)
    kept, cotangent = value.copy(), np.ones_like(value)
    cotangent.flags.writeable = False
    for first, second in zip(pullback(cotangent), pullback(cotangent), strict=True):
        np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(value, kept)
