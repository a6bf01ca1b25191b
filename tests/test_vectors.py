"""Chapter 01: lengths, distances, and the table that turns ids into vectors."""

import numpy as np
import pytest
from refusing import refusing

import mathllm as ml
from mathllm import vectors


@pytest.mark.parametrize(
    "function", [ml.norm, lambda x: ml.distance(x, np.zeros(2, x.dtype)), lambda x: ml.frobenius_norm(x[None])]
)
@pytest.mark.parametrize(
    ("dtype", "size", "slope"), [(np.float16, 100, 1000), (float, 1e200, 1e150), (float, 1e-310, 1)]
)
def test_gradient_of_a_length_neither_overflows_nor_vanishes(function, dtype, size, slope):
    _, pullback = ml.vjp(function, np.array([3, 4], dtype) * dtype(size))
    np.testing.assert_allclose(pullback(slope)[0], np.array([0.6, 0.8]) * slope, rtol=1e-3)


def test_infinite_components_give_an_infinite_length_and_nan_stays_nan():
    assert ml.norm([1, -np.inf]) == np.inf
    assert np.isnan(ml.norm([1, np.nan]))


def test_no_ids_give_no_vectors():
    assert ml.embedding(np.ones((5, 3)), []).shape == (0, 3)
    assert ml.one_hot([], 5).shape == (0, 5)


def test_gradient_of_the_norm_at_zero_is_zero_and_not_nan():
    assert ml.grad(lambda x: ml.norm(x))([0.0, 0.0]).tolist() == [0, 0]


test_what_cannot_be_right_is_refused_in_words = refusing(
    (lambda: vectors.vector([[1], [2, 3]]), ml.ShapeError, "unequal length"),
    (lambda: ml.normalize([0, 0]), ValueError, "zero vector"),
    (lambda: ml.one_hot([0, 5], 5), ValueError, "0 to 4, got 5"),
    (lambda: ml.one_hot([-1], 5), ValueError, "got -1"),
    (lambda: ml.embedding(np.ones((5, 2)), [0.5]), TypeError, "integer token ids, got float64"),
    (lambda: ml.embedding(np.ones((5, 2)), 7), ValueError, "0 to 4, got 7"),
)
