"""Chapter 06: from logits to probabilities."""

import numpy as np
import pytest

import mathllm as ml
from mathllm.softmax import softmax_gradient, softmax_in_place

rng = np.random.default_rng(6)


def test_a_masked_logit_gets_nothing_and_gives_no_gradient():
    z = np.array([[1.0, -np.inf, 2.0], [-np.inf, -np.inf, 0.0]])
    np.testing.assert_allclose(ml.softmax(z)[0, [0, 2]], ml.softmax([1.0, 2.0]))
    assert ml.softmax(z)[1].tolist() == [0, 0, 1]
    assert ml.log_softmax(z)[1].tolist() == [-np.inf, -np.inf, 0]
    assert ml.softmax(z, temperature=0.5)[0, 1] == 0
    gradient = ml.grad(lambda z: (ml.softmax(z) * np.array([1.0, 2.0, 3.0])).sum())(z)
    assert gradient[:, 1].tolist() == [0, 0]
    assert np.all(np.isfinite(gradient))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_the_softmax_in_place_is_the_softmax(dtype, axis):
    for scale in (1e-4, 1, 1e4):
        scores = (scale * np.clip(rng.normal(size=(3, 4, 5)), -1, 1)).astype(dtype)
        expected = ml.softmax(scores, axis=axis)
        assert softmax_in_place(scores, axis=axis) is scores
        np.testing.assert_allclose(scores, expected, rtol=4 * np.finfo(dtype).eps, atol=4 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_in_place_a_row_that_is_masked_throughout_becomes_zeros(dtype):
    scores = np.array([[-np.inf, -np.inf], [1e4, -np.inf], [-1e4, -1e4]], dtype)
    assert softmax_in_place(scores).tolist() == [[0, 0], [1, 0], [0.5, 0.5]]
    long = np.zeros(100_000, dtype)  # the sum of the exponentials is more than the largest float16
    np.testing.assert_allclose(softmax_in_place(long).astype(float).sum(), 1, rtol=1e-2)
    assert softmax_in_place(np.empty((0, 3), dtype)).shape == (0, 3)


def test_the_pullback_of_softmax_is_a_product_with_its_jacobian():
    z, w = rng.normal(size=4), rng.normal(size=4)
    _, pullback = ml.vjp(lambda z: ml.softmax(z, temperature=0.7), z)
    np.testing.assert_allclose(pullback(w)[0], ml.softmax_jacobian(z, temperature=0.7) @ w)
    np.testing.assert_allclose(softmax_gradient(ml.softmax(z), w), ml.softmax_jacobian(z) @ w)


@pytest.mark.parametrize("function", [ml.softmax, ml.log_softmax, ml.softmax_jacobian])
@pytest.mark.parametrize(
    ("logits", "options", "error", "words"),
    [
        ([1.0, np.nan], {}, ValueError, "NaN"),
        ([1.0, np.inf], {}, ValueError, r"\+∞"),
        ([[1.0, 2.0], [-np.inf, -np.inf]], {}, ValueError, "row where all are masked"),
        ([1.0, 2.0], {"temperature": 0}, ValueError, "argmax.*got 0"),
        ([1.0, 2.0], {"temperature": np.nan}, ValueError, "got nan"),
        ([1.0, 2.0], {"temperature": np.inf}, ValueError, "got inf"),
        ([1.0, 2.0], {"temperature": np.array([1.0, 2.0])}, ValueError, r"temperature.*got \[1. 2.\]"),
        ([], {}, ml.ShapeError, r"at least one logit.*\(0,\)"),
        (3.0, {}, ml.ShapeError, r"at least one logit.*got shape \(\)"),
        (["a"], {}, TypeError, "real numbers"),
    ],
)
def test_what_cannot_be_right_is_refused_in_words(function, logits, options, error, words):
    with pytest.raises(error, match=words):
        function(logits, **options)


@pytest.mark.parametrize("order", ["C", "F"])
def test_many_float32_probabilities_sum_to_1_along_every_axis_and_in_every_order_of_memory(order):
    z = np.full((3, 49_152), -5, np.float32)
    z[:, 0] = 12  # a large term, to which many small ones are added
    for axis, logits in ((1, np.asarray(z, order=order)), (0, np.asarray(z.T, order=order))):
        q, ln_q = ml.softmax(logits, axis=axis), ml.log_softmax(logits, axis=axis)
        np.testing.assert_allclose(q.sum(axis=axis, dtype=np.float64), 1, rtol=0, atol=1e-6)
        np.testing.assert_allclose(np.exp(ln_q, dtype=np.float64).sum(axis=axis), 1, rtol=0, atol=1e-6)
        exact = ml.log_sum_exp(logits.astype(np.float64), axis=axis)
        np.testing.assert_allclose(ml.log_sum_exp(logits, axis=axis), exact, rtol=1e-7, atol=0)


def test_an_axis_that_is_not_there_is_refused_in_words():
    with pytest.raises(ml.ShapeError, match=r"axis 2.*\(1, 2\)"):
        ml.softmax([[1.0, 2.0]], axis=2)
