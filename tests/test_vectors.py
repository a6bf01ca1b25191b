"""Chapter 01: lengths, distances, and the table that turns ids into vectors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import mathllm as ml
from mathllm import vectors

numbers = st.floats(-1e6, 1e6, allow_subnormal=False)
batches = hnp.arrays(np.float64, hnp.array_shapes(min_dims=1, max_dims=3, max_side=4), elements=numbers)
rng = np.random.default_rng(1)


@pytest.mark.parametrize(("v", "length"), [([3, 4], 5), ([6, 2, 3], 7), ([0.0], 0), ([-2], 2), ([0, 0, 0], 0)])
def test_norm_of_the_documents_vectors(v, length):
    assert ml.norm(v) == length


@given(batches)
def test_norm_agrees_with_numpy(x):
    # numpy's squares underflow below 1e-150
    np.testing.assert_allclose(ml.norm(x), np.linalg.norm(x, axis=-1), rtol=1e-12, atol=1e-150)


@given(batches, st.floats(-100, 100))
def test_norm_scales_with_the_vector(x, factor):
    np.testing.assert_allclose(ml.norm(factor * x), abs(factor) * ml.norm(x), rtol=1e-9, atol=1e-9)


@given(hnp.arrays(np.float64, (2, 3, 4), elements=numbers))
def test_a_detour_is_never_shorter(points):
    a, b, via = points[0], points[1], points[1][::-1]
    assert np.all(ml.distance(a, b) <= (ml.distance(a, via) + ml.distance(via, b)) * (1 + 1e-12))


@pytest.mark.parametrize(("dtype", "large"), [(np.float16, 3e4), (np.float32, 1e38), (np.float64, 1e308)])
def test_norm_neither_overflows_nor_vanishes(dtype, large):
    assert ml.norm(np.array([large, 0], dtype)) == dtype(large)
    tiny = np.finfo(dtype).smallest_normal * 4
    np.testing.assert_allclose(ml.norm(np.array([3, 4], dtype) * tiny), 5 * tiny, rtol=1e-3)


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


@given(batches)
def test_unit_vectors_have_length_one_and_the_old_direction(x):
    x = x[np.linalg.norm(x, axis=-1) > 0] if x.ndim > 1 else x
    if x.size == 0 or not np.all(np.linalg.norm(x, axis=-1)):
        with pytest.raises(ValueError, match="zero vector"):
            ml.normalize(np.zeros(3))
        return
    unit = ml.normalize(x)
    np.testing.assert_allclose(ml.norm(unit), 1)
    np.testing.assert_allclose(unit * ml.norm(x)[..., None], x, rtol=1e-12, atol=1e-300)


@given(hnp.arrays(np.float64, hnp.array_shapes(min_dims=2, max_dims=3, max_side=4), elements=numbers))
def test_both_forms_of_the_frobenius_norm_agree(W):
    # the trace's squares underflow below 1e-150
    trace = np.trace(np.swapaxes(W, -1, -2) @ W, axis1=-2, axis2=-1)
    np.testing.assert_allclose(ml.frobenius_norm(W), np.sqrt(trace), rtol=1e-9, atol=1e-150)


@given(st.lists(st.integers(0, 4), max_size=6))
def test_looking_up_a_row_is_a_matrix_product_with_a_one_hot_vector(ids):
    ids, table = np.array(ids, int), rng.normal(size=(5, 3))
    assert np.array_equal(ml.embedding(table, ids), ml.one_hot(ids, 5) @ table)


def test_embedding_keeps_the_shape_of_the_ids_and_the_dtype_of_the_table():
    table = rng.normal(size=(5, 3)).astype(np.float32)
    assert ml.embedding(table, 4).shape == (3,)
    assert ml.embedding(table, [[0, 1], [2, 3]]).shape == (2, 2, 3)
    assert ml.embedding(table, np.empty(0, int)).shape == (0, 3)
    assert ml.embedding(table, [1]).dtype == np.float32


def test_an_empty_text_is_an_empty_list_of_vectors():
    assert ml.embedding(np.ones((5, 2)), []).shape == (0, 2)
    assert ml.one_hot([], 5).shape == (0, 5)


def test_a_row_looked_up_twice_collects_both_gradients():
    gradient = ml.grad(lambda table: ml.embedding(table, [1, 1, 0]).sum())(np.zeros((3, 2)))
    assert gradient.tolist() == [[1, 1], [2, 2], [0, 0]]


def test_gradient_of_the_norm_at_zero_is_zero_and_not_nan():
    assert ml.grad(lambda x: ml.norm(x))([0.0, 0.0]).tolist() == [0, 0]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: vectors.vector([[1], [2, 3]]), ml.ShapeError, "unequal length"),
        (lambda: ml.normalize([0, 0]), ValueError, "zero vector"),
        (lambda: ml.one_hot([0, 5], 5), ValueError, "0 to 4, got 5"),
        (lambda: ml.one_hot([-1], 5), ValueError, "got -1"),
        (lambda: ml.embedding(np.ones((5, 2)), [0.5]), TypeError, "integer token ids, got float64"),
        (lambda: ml.embedding(np.ones((5, 2)), 7), ValueError, "0 to 4, got 7"),
    ],
)
def test_what_cannot_be_right_is_refused_in_words(call, error, words):
    with pytest.raises(error, match=words):
        call()
