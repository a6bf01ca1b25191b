"""Chapter 03: products and their cost, eigenvalues, attention as a walk, singular values, low-rank updates."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusing import refusing

import mathllm as ml
from mathllm import matrices

rng = np.random.default_rng(3)


def attention_matrix(n):
    """Random rows that sum to one, all entries positive."""
    A = np.random.default_rng(0).random((n, n)) + 0.05
    return A / A.sum(axis=1, keepdims=True)


@pytest.mark.slow
@given(st.integers(1, 6), st.integers(0, 10_000), st.sampled_from([1e-9, 1.0, 1e9]))
def test_power_iteration_finds_the_eigenvalue_that_was_planted(n, seed, size):
    turn = np.linalg.qr(np.random.default_rng(seed).normal(size=(n, n)))[0]
    A = size * turn @ np.diag(1.0 + np.arange(n)) @ turn.T
    value, vector = matrices.power_iteration(A, np.random.default_rng(0))
    assert value == pytest.approx(n * size, rel=1e-9)
    assert abs(ml.dot(vector, turn[:, -1])) == pytest.approx(1, rel=1e-9)
    assert vector @ A @ vector == pytest.approx(value, rel=1e-12)
    assert vector[np.argmax(np.abs(vector))] > 0


def test_power_iteration_finds_negative_eigenvalues_and_the_zero_of_a_nilpotent_one():
    assert matrices.power_iteration([[-5, 1], [0, 2]], np.random.default_rng(0))[0] == pytest.approx(-5)
    assert matrices.power_iteration([[-4]], np.random.default_rng(0))[0] == -4
    value, vector = matrices.power_iteration([[0, 1], [0, 0]], np.random.default_rng(0))
    assert value == 0
    np.testing.assert_array_equal(vector, [1, 0])


def test_a_single_token_attends_to_itself():
    assert ml.stationary_distribution([[1.0]]).tolist() == [1]
    assert matrices.spectral_gap([[1.0]]) == 1
    assert matrices.attention_focus([[1.0, 0.0], [1.0, 0.0]]) == 1


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_rows_that_were_rounded_to_their_dtype_still_sum_to_one(dtype):
    A = attention_matrix(300).astype(dtype)
    assert matrices.is_row_stochastic(A)
    assert not matrices.is_row_stochastic(A * dtype(1.1))
    assert not matrices.is_row_stochastic(np.where(np.eye(300, dtype=bool), dtype(-0.1), A))


def test_decompositions_take_numbers_that_lapack_does_not_have():
    W = np.array([[3, 0], [0, 4]])
    for dtype in (np.float16, np.longdouble):
        assert matrices.svd(W.astype(dtype)).singular_values.dtype == dtype
        assert matrices.eigenvalues(W.astype(dtype)).tolist() == [4, 3]


def test_decompositions_take_batches():
    W = rng.normal(size=(2, 3, 4, 5))
    one_by_one = [[matrices.low_rank_approximation(matrix, 2) for matrix in row] for row in W]
    np.testing.assert_allclose(matrices.low_rank_approximation(W, 2), one_by_one, atol=1e-12)
    assert matrices.low_rank_error(W, 2).shape == matrices.low_rank_error(W, 4).shape == (2, 3)


def test_a_frozen_matrix_gets_no_gradient():
    x, W, A, B = rng.normal(size=(2, 3)), rng.normal(size=(3, 2)), rng.normal(size=(3, 1)), rng.normal(size=(1, 2))
    gradient = ml.grad(lambda p: matrices.lora_linear(x, p["W"], p["A"], p["B"]).sum())({"W": W, "A": A, "B": B})
    assert not gradient["W"].any()
    assert gradient["A"].any()


TWO_GROUPS = np.kron(np.eye(2), attention_matrix(3))
TURN, MIRROR = [[0, -1], [1, 0]], [[1, 0], [0, -1]]

test_what_cannot_be_right_is_refused_in_words = refusing(
    (lambda: matrices.power_iteration(TURN, rng, max_steps=500), ValueError, "did not settle in 500 steps"),
    (lambda: matrices.power_iteration(MIRROR, rng, max_steps=500), ValueError, "did not settle in 500 steps"),
    (lambda: ml.stationary_distribution(TWO_GROUPS), ValueError, "not unique"),
    (lambda: ml.stationary_distribution(TWO_GROUPS.astype(np.float32)), ValueError, "not unique"),
    (lambda: matrices.product_shape((2, 3, 4), (4, 5)), ml.ShapeError, "two sizes"),
    (lambda: matrices.product_shape(), ml.ShapeError, "two sizes"),
    (lambda: matrices.eigenvalues([[1, np.nan], [0, 1]]), ValueError, r"entries in \(-∞, ∞\), got nan"),
    (lambda: ml.stationary_distribution([[0.5, 0.6], [0.5, 0.5]]), ValueError, "sum to 1"),
    (lambda: matrices.spectral_gap([[1.5, -0.5], [0.5, 0.5]]), ValueError, "non-negative"),
    (lambda: matrices.attention_focus([[0.5, 0.6]]), ValueError, "sum to 1"),
    (lambda: matrices.svd([[np.inf]]), ValueError, r"entries in \(-∞, ∞\), got inf"),
    (lambda: matrices.low_rank_approximation(np.eye(3), 4), ValueError, r"rank in \[0, 3\], got 4"),
    (lambda: matrices.low_rank_error(np.eye(3), -1), ValueError, r"rank in \[0, 3\], got -1"),
    (lambda: matrices.lora_init(3, 3, 0, rng), ValueError, r"rank in \[1, 3\], got 0"),
    (lambda: matrices.lora_init(3, 2, 3, rng), ValueError, r"rank in \[1, 2\], got 3"),
)
