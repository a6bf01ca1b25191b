"""Every primitive keeps the same promises: its gradient, its dtype, its arguments, and sizes of nothing and of one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from primitive_cases import ALL, VARIANTS, arguments, extreme_arguments, public_primitives

import mathllm as ml
from mathllm import matrices, probability

every = pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
every_variant = pytest.mark.parametrize("case", ALL + VARIANTS, ids=lambda case: case.name)
TOLERANCE = 1e-6  # central differences in float64 are good to about 1e-10; a wrong formula is off by percents


def value_and_gradients(case, args, seed=0):
    """The value, and the gradients for a random cotangent."""
    value, pullback = ml.vjp(case.call, *args)
    cotangent = np.random.default_rng(seed).normal(size=value.shape).astype(value.dtype)
    return value, [g for g, a in zip(pullback(cotangent), args, strict=True) if a.dtype.kind == "f"]


def test_every_public_primitive_has_a_case():
    names = [case.name for case in ALL]
    assert len(set(names)) == len(names)
    primitives = {case.name for case in ALL if not case.composed}
    assert {name for name in primitives if not name.startswith("_")} == set(public_primitives())


@given(st.sampled_from([case for case in ALL if not case.straight_through]), st.integers(0, 2**32 - 1))
def test_the_pullback_agrees_with_central_differences(case, seed):
    args = arguments(case, seed=seed)
    assert ml.check_gradient(case.call, *args, entries=20).error < TOLERANCE


@every_variant
def test_each_pullback_agrees_with_central_differences_at_every_entry(case):
    if case.straight_through:
        args = arguments(case)
        value, (slope,) = value_and_gradients(case, args)
        assert np.allclose(value, args[0], rtol=2**-8)
        np.testing.assert_allclose(slope, np.random.default_rng(0).normal(size=value.shape), rtol=2**-8)
    else:
        assert ml.check_gradient(case.call, *arguments(case)).error < TOLERANCE


@every_variant
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_dtype_is_kept_by_value_and_gradient(case, dtype):
    args = arguments(case, dtype)
    value, gradients = value_and_gradients(case, args)
    assert value.dtype == dtype
    assert {g.dtype for g in gradients} == {np.dtype(dtype)}
    exact, slopes = value_and_gradients(case, [a.astype(float) if a.dtype.kind == "f" else a for a in args])
    within = 60 * np.finfo(dtype).eps  # a few roundings of numbers of this size
    for ours, right in zip([value, *gradients], [exact, *slopes], strict=True):
        assert np.abs(ours - right).max() <= within * max(np.abs(right).max(), 1)


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
    "value_weighted_attention": lambda p: ml.interpretability.value_weighted_attention(p[None], p[None]),
}


@pytest.mark.parametrize("name", WITHOUT_PULLBACK)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_dtype_is_kept_by_what_has_no_pullback(name, dtype):
    assert WITHOUT_PULLBACK[name](np.array([[0.5, 0.5], [0.25, 0.75]], dtype)).dtype == dtype


@every
def test_an_empty_batch_gives_an_empty_result_or_is_refused_in_words(case):
    args = arguments(case, n=0)
    if "empty" in case.refuses:
        with pytest.raises(ValueError, match="needs"):
            case.call(*args)
    else:
        value, gradients = value_and_gradients(case, args)
        assert value.size == 0
        assert [g.shape for g in gradients] == [a.shape for a in args if a.dtype.kind == "f"]
        assert not any(np.any(g) for g in gradients)  # nothing depends on the weights, either


@every
def test_vectors_of_one_component_are_vectors(case):
    args = arguments(case, d=1)
    value, gradients = value_and_gradients(case, args)
    assert np.all(np.isfinite(value))
    assert [g.shape for g in gradients] == [a.shape for a in args if a.dtype.kind == "f"]
    if not case.straight_through:
        assert ml.check_gradient(case.call, *args).error < TOLERANCE


@every
def test_one_example_gives_what_it_gives_among_others(case):
    if case.name == "batch_norm":
        with pytest.raises(ml.ShapeError, match="at least 2"):
            case.call(*arguments(case, n=1))
        return
    value, gradients = value_and_gradients(case, arguments(case, n=1))
    assert np.all(np.isfinite(value))
    assert all(np.all(np.isfinite(g)) for g in gradients)


def test_no_primitive_is_left_out_of_the_extremes():
    assert [case.name for case in ALL if case.wild == (case.extreme is not None)] == []


@every
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_extreme_numbers_give_finite_values_and_gradients(case, dtype):
    """Up to ±10⁴: infinite is only what is beyond the largest number of the dtype, and nothing is NaN."""
    for args in extreme_arguments(case, dtype):
        with np.errstate(over="ignore" if dtype == np.float16 else "warn"):
            value, gradients = value_and_gradients(case, args)
        wide = [a.astype(float) if a.dtype.kind == "f" else a for a in args]
        exact, slopes = value_and_gradients(case, wide)
        for ours, right in zip([value, *gradients], [exact, *slopes], strict=True):
            assert np.all(np.isfinite(right))
            assert not np.any(np.isnan(ours))
            assert np.all(np.isfinite(ours) | (np.abs(right) > 0.99 * np.finfo(dtype).max))


@pytest.mark.parametrize("name", ["layer_norm", "rms_norm", "batch_norm", "softmax", "log_softmax", "attention"])
def test_large_numbers_of_float16_are_as_good_as_any(name):
    """Where every value is representable, it is also right: squares and products beyond float16 stay inside."""
    (case,) = [case for case in ALL if case.name == name]
    args = [np.float16(300) * a if i == 0 else a for i, a in enumerate(arguments(case, np.float16))]
    value, gradients = value_and_gradients(case, args)
    exact, slopes = value_and_gradients(case, [a.astype(float) for a in args])
    for ours, right in zip([value, *gradients], [exact, *slopes], strict=True):
        assert np.abs(ours - right).max() <= 60 * np.finfo(np.float16).eps * max(np.abs(right).max(), 1)


@every_variant
def test_arguments_are_not_changed(case):
    args = arguments(case)
    for a in args:
        a.flags.writeable = False
    value, pullback = ml.vjp(case.call, *args)
    cotangent = np.ones_like(value)
    cotangent.flags.writeable = False
    pullback(cotangent)


@every
def test_the_way_back_can_be_gone_twice(case):
    args = arguments(case)
    value, pullback = ml.vjp(case.call, *args)
    first, second = pullback(np.ones_like(value)), pullback(np.ones_like(value))
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)
