"""Chapter 04: exponentials, logarithms, and how not to leave the range of the computer's numbers."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusing import refusing

import mathllm as ml
from mathllm import exponentials

rng = np.random.default_rng(4)


@given(st.floats(1e-100, 1e100), st.sampled_from([2, 10, 0.5, math.e, 7.3]))
def test_another_base_is_another_unit(x, base):
    np.testing.assert_allclose(exponentials.log(x, base=base), math.log(x) / math.log(base), rtol=1e-12, atol=1e-12)


def test_infinities_pass_through_and_one_impossible_token_makes_the_sentence_impossible():
    assert ml.exp([-np.inf, np.inf]).tolist() == [0, np.inf]
    assert exponentials.log(np.inf) == np.inf
    assert exponentials.log_product([0.5, 0.0, 0.9]) == -np.inf


def test_log_sum_exp_of_nothing_is_minus_infinity():
    assert ml.log_sum_exp([]) == -np.inf
    assert ml.log_sum_exp([-np.inf, -np.inf]) == -np.inf
    assert ml.log_sum_exp([-np.inf, 3.0]) == 3
    assert ml.log_sum_exp([np.inf, 3.0]) == np.inf
    assert np.isnan(ml.log_sum_exp([np.nan, 3.0]))
    assert ml.log_sum_exp(np.empty((0, 3))).shape == (0,)
    gradient = ml.grad(lambda x: ml.log_sum_exp(x).sum())
    assert gradient(np.array([[-np.inf, -np.inf], [-np.inf, 1.0]])).tolist() == [[0, 0], [0, 1]]


def test_sums_and_products_take_the_axes_of_numpy():
    x = rng.normal(size=(2, 3, 4))
    for axis in (0, 1, -1, (0, 2), None):
        for keepdims in (False, True):
            expected = np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims))
            np.testing.assert_allclose(ml.log_sum_exp(x, axis=axis, keepdims=keepdims), expected, strict=True)
        np.testing.assert_allclose(exponentials.log_product(np.exp(x), axis=axis), x.sum(axis=axis), atol=1e-12)


def test_a_sum_beyond_the_largest_float16_has_a_logarithm_all_the_same():
    assert ml.log_sum_exp(np.zeros(100_000, np.float16)) == np.float16(math.log(100_000))
    assert ml.log_sum_exp(2.0, axis=None) == 2


def test_many_float16_factors_are_summed_in_float32_along_every_axis():
    p = np.full((4000, 2), 0.9, np.float16)  # ln 0.9 = −0.105: in float16, a sum below −256 would no longer change
    for axis, factors in ((0, p), (-1, p.T)):
        total = exponentials.log_product(factors, axis=axis)
        assert total.dtype == np.float16
        np.testing.assert_allclose(total, exponentials.log_product(p.astype(float), axis=0), rtol=1e-3)


def test_adding_nothing_in_log_space_changes_nothing():
    assert exponentials.log_add_exp(-np.inf, 2.0) == 2
    assert exponentials.log_add_exp(-np.inf, -np.inf) == -np.inf
    assert ml.grad(lambda a: exponentials.log_add_exp(a, a))(-np.inf) == 0
    assert ml.vjp(exponentials.log_add_exp, np.array(40.0), np.array(0.0))[1](1.0)[1] == pytest.approx(math.exp(-40))
    assert exponentials.log_add_exp([1e4, -1e4], 0.0).tolist() == [1e4, 0]


def test_nothing_is_left_beside_what_is_certain():
    assert exponentials.log1m_exp(0.0) == -np.inf
    assert ml.grad(exponentials.log1m_exp)(0.0) == -np.inf


test_what_cannot_be_right_is_refused_in_words = refusing(
    (lambda: ml.exp([1, 710]), OverflowError, r"exp\(710\) is more than float64.*exp\(709.8\).*chapter 04"),
    (lambda: ml.exp(np.float32(89)), OverflowError, r"float32.*exp\(88.72\)"),
    (lambda: exponentials.log(2, base=1), ValueError, "base other than 1, got 1"),
)
