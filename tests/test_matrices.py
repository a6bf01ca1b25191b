"""Chapter 03: products and their cost, eigenvalues, attention as a walk, singular values, low-rank updates."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from refusing import refusing

import mathllm as ml
from mathllm import matrices

ROUNDING = 1e-9  # float64 rounding of a few sums of products below 1e4, with much room
numbers = st.floats(-100, 100, allow_subnormal=False)
sizes = st.integers(1, 5)
rng = np.random.default_rng(3)


@st.composite
def chains(draw, length):
    """`length` matrices that can be multiplied in this order."""
    ends = draw(st.lists(sizes, min_size=length + 1, max_size=length + 1))
    return [draw(hnp.arrays(np.float64, shape, elements=numbers)) for shape in itertools.pairwise(ends)]


def attention_matrix(n, seed=0, causal=False):
    """Random rows that sum to one, all entries positive except under a causal mask."""
    A = np.random.default_rng(seed).random((n, n)) + 0.05
    A = np.tril(A) if causal else A
    return A / A.sum(axis=1, keepdims=True)


attention_matrices = st.builds(attention_matrix, st.integers(2, 8), st.integers(0, 10_000))


def uniform(n):
    return np.full((n, n), 1 / n)


# ------------------------------------------------------------------------------------------------------------ products


@given(chains(2))
def test_three_loops_and_the_operator_agree(chain):
    A, B = chain
    by_hand = matrices.matrix_product_by_hand(A, B)
    np.testing.assert_allclose(by_hand, matrices.matrix_product(A, B), atol=ROUNDING)
    assert by_hand.shape == matrices.product_shape(A.shape, B.shape)


def test_the_cost_counts_what_the_loops_do():
    A, B = rng.normal(size=(3, 4)), rng.normal(size=(4, 5))
    assert ml.multiply_adds(A.shape, B.shape) == 3 * 5 * 4
    assert ml.multiply_adds((3, 4)) == 0
    # (AB)x costs more than A(Bx)
    assert ml.multiply_adds((9, 9), (9, 9), (9, 1)) > 2 * ml.multiply_adds((9, 9), (9, 1))


def test_symmetric_means_equal_to_the_transpose():
    W = rng.normal(size=(4, 4))
    assert matrices.is_symmetric(W @ W.T)
    assert not matrices.is_symmetric(W)
    assert not matrices.is_symmetric(np.ones((2, 3)))
    assert matrices.is_symmetric([[True, False], [False, True]])


# --------------------------------------------------------------------------------------------------------- eigenvalues


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


def test_power_iteration_finds_negative_eigenvalues_and_the_zero_of_a_zero_matrix():
    assert matrices.power_iteration([[-5, 1], [0, 2]], np.random.default_rng(0))[0] == pytest.approx(-5)
    assert matrices.power_iteration([[-4]], np.random.default_rng(0))[0] == -4
    assert matrices.power_iteration(np.zeros((3, 3)), np.random.default_rng(0))[0] == 0


@pytest.mark.parametrize("A", [[[0, -1], [1, 0]], [[1, 0], [0, -1]]], ids=["quarter turn", "mirror"])
def test_power_iteration_says_when_no_direction_wins(A):
    with pytest.raises(ValueError, match="did not settle in 500 steps"):
        matrices.power_iteration(A, np.random.default_rng(0), max_steps=500)


def test_eigenvalues_come_largest_first_and_complex_only_if_they_must():
    assert matrices.eigenvalues([[1, 5, 7], [0, -4, 2], [0, 0, 3]]).tolist() == [-4, 3, 1]
    turning = matrices.eigenvalues([[0, -2, 0], [2, 0, 0], [0, 0, 1]])
    np.testing.assert_allclose(turning, [2j, -2j, 1])


# ------------------------------------------------------------------------------------------------- attention as a walk


@given(attention_matrices)
def test_repeated_attention_forgets_where_it_started(A):
    pi = ml.stationary_distribution(A)
    np.testing.assert_allclose(np.linalg.matrix_power(A, 400), np.tile(pi, (len(A), 1)), atol=1e-9)


@given(st.integers(0, 10_000))
def test_the_gap_is_the_speed_of_forgetting(seed):
    W = np.random.default_rng(seed).random((5, 5))
    A = W + W.T + 10 * np.diag(np.arange(5))
    shares = A / A.sum(axis=1, keepdims=True)  # a walk on a weighted graph: real eigenvalues, rate without detours
    rate = 1 - matrices.spectral_gap(shares)
    pi = ml.stationary_distribution(shares)
    far = [np.abs(np.linalg.matrix_power(shares, k) - pi).max() for k in (20, 40)]
    assert far[1] <= 5 * rate**20 * far[0] + 1e-13  # the constant is at most √(max π / min π)


@pytest.mark.parametrize("n", [2, 5, 16])
def test_the_gap_says_nothing_about_focus(n):
    everybody_on_one = np.eye(n)[np.zeros(n, int)]
    assert matrices.spectral_gap(uniform(n)) == pytest.approx(1)
    assert matrices.spectral_gap(everybody_on_one) == pytest.approx(1)
    assert matrices.spectral_gap(np.eye(n)) == pytest.approx(0)
    assert matrices.attention_focus(uniform(n)) == pytest.approx(1 / n)
    assert matrices.attention_focus(everybody_on_one) == matrices.attention_focus(np.eye(n)) == 1


@pytest.mark.parametrize("n", [2, 6, 30])
def test_under_a_causal_mask_the_first_token_gets_everything(n):
    A = attention_matrix(n, causal=True)
    np.testing.assert_allclose(ml.stationary_distribution(A), np.eye(n)[0], atol=1e-9)
    np.testing.assert_allclose(np.sort(matrices.eigenvalues(A)), np.sort(np.diag(A)))


def test_a_stationary_distribution_that_is_not_unique_is_refused_in_every_precision():
    two_groups = np.kron(np.eye(2), attention_matrix(3))
    for dtype in (np.float32, np.float64):
        with pytest.raises(ValueError, match="not unique"):
            ml.stationary_distribution(two_groups.astype(dtype))


def test_a_single_token_attends_to_itself():
    assert ml.stationary_distribution([[1.0]]).tolist() == [1]
    assert matrices.spectral_gap([[1.0]]) == 1


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_rows_that_were_rounded_to_their_dtype_still_sum_to_one(dtype):
    A = attention_matrix(300).astype(dtype)
    assert matrices.is_row_stochastic(A)
    assert not matrices.is_row_stochastic(A * dtype(1.1))
    assert not matrices.is_row_stochastic(np.where(np.eye(300, dtype=bool), dtype(-0.1), A))


# ----------------------------------------------------------------------------------------------------- singular values


any_matrix = hnp.arrays(np.float64, st.tuples(sizes, sizes), elements=numbers)


@given(any_matrix, st.data())
def test_no_matrix_of_this_rank_is_nearer_than_the_approximation(W, data):
    rank = data.draw(st.integers(0, min(W.shape)))
    best = matrices.low_rank_approximation(W, rank)
    error = ml.frobenius_norm(W - best)
    assert np.linalg.matrix_rank(best, tol=1e-6) <= rank
    draw, (U, s, Vt) = np.random.default_rng(0), matrices.svd(W)
    for size in (0.001, 0.1, 10):
        left = U[:, :rank] * s[:rank] + size * draw.normal(size=(W.shape[0], rank))
        right = Vt[:rank] + size * draw.normal(size=(rank, W.shape[1]))
        assert ml.frobenius_norm(W - left @ right) >= error - 1e-9


def test_decompositions_take_batches():
    W = rng.normal(size=(2, 3, 4, 5))
    one_by_one = [[matrices.low_rank_approximation(matrix, 2) for matrix in row] for row in W]
    np.testing.assert_allclose(matrices.low_rank_approximation(W, 2), one_by_one, atol=1e-12)
    assert matrices.low_rank_error(W, 2).shape == matrices.low_rank_error(W, 4).shape == (2, 3)


# ---------------------------------------------------------------------------------------------------------------- LoRA


def test_lora_begins_as_the_model_it_adapts_and_can_leave_at_once():
    x, W = rng.normal(size=(5, 6)), rng.normal(size=(6, 4))
    params = matrices.lora_init(np.random.default_rng(0), 6, 4, rank=2)
    assert np.array_equal(matrices.lora_linear(x, W, params["A"], params["B"]), ml.linear(x, W))
    gradient = ml.grad(lambda p: (matrices.lora_linear(x, W, p["A"], p["B"]) ** 2).sum())(params)
    assert np.all(gradient["A"] == 0)  # because B = 0
    assert np.all(np.abs(gradient["B"]) > 0)


@given(st.integers(1, 4), st.floats(-4, 4))
def test_a_merged_model_answers_as_the_adapted_one(rank, scale):
    x, W = rng.normal(size=(3, 5, 6)), rng.normal(size=(6, 4))
    A, B = rng.normal(size=(6, rank)), rng.normal(size=(rank, 4))
    merged = ml.lora_merge(W, A, B, scale=scale)
    np.testing.assert_allclose(matrices.lora_linear(x, W, A, B, scale=scale), ml.linear(x, merged), atol=1e-10)
    assert np.linalg.matrix_rank(merged - W, tol=1e-9) <= rank


def test_a_merged_matrix_keeps_its_dtype_beside_wider_factors():
    assert ml.lora_merge(np.eye(2, dtype=np.float32), np.ones((2, 1)), np.ones((1, 2))).dtype == np.float32


def test_a_frozen_matrix_gets_no_gradient():
    x, W, A, B = rng.normal(size=(2, 3)), rng.normal(size=(3, 2)), rng.normal(size=(3, 1)), rng.normal(size=(1, 2))
    gradient = ml.grad(lambda p: matrices.lora_linear(x, p["W"], p["A"], p["B"]).sum())({"W": W, "A": A, "B": B})
    assert not gradient["W"].any()
    assert gradient["A"].any()


@pytest.mark.parametrize(
    "function",
    [matrices.eigenvalues, ml.stationary_distribution, matrices.spectral_gap, matrices.attention_focus],
)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_half_precision_is_read_and_input_left_alone(function, dtype):
    A = np.array([[0.5, 0.5], [0.25, 0.75]], dtype)
    A.flags.writeable = False
    expected = {
        matrices.eigenvalues: [1, 0.25],
        ml.stationary_distribution: [1 / 3, 2 / 3],
        matrices.spectral_gap: 0.75,
    }
    np.testing.assert_allclose(function(A), expected.get(function, 0.625), atol=1e-6)


test_what_cannot_be_right_is_refused_in_words = refusing(
    (lambda: matrices.product_shape((2, 3, 4), (4, 5)), ml.ShapeError, "two sizes"),
    (lambda: matrices.product_shape(), ml.ShapeError, "two sizes"),
    (lambda: ml.multiply_adds((2, 3), (2, 3)), ml.ShapeError, "3 columns meet 2 rows"),
    (lambda: matrices.eigenvalues([[1, np.nan], [0, 1]]), ValueError, r"entries in \(-∞, ∞\), got nan"),
    (lambda: ml.stationary_distribution([[0.5, 0.6], [0.5, 0.5]]), ValueError, "sum to 1"),
    (lambda: matrices.spectral_gap([[1.5, -0.5], [0.5, 0.5]]), ValueError, "non-negative"),
    (lambda: matrices.attention_focus([[0.5, 0.6]]), ValueError, "sum to 1"),
    (lambda: matrices.svd([[np.inf]]), ValueError, r"entries in \(-∞, ∞\), got inf"),
    (lambda: matrices.low_rank_approximation(np.eye(3), 4), ValueError, r"rank in \[0, 3\], got 4"),
    (lambda: matrices.low_rank_error(np.eye(3), -1), ValueError, r"rank in \[0, 3\], got -1"),
    (lambda: matrices.lora_init(rng, 3, 3, 0), ValueError, r"rank in \[1, 3\], got 0"),
    (lambda: matrices.lora_init(rng, 3, 2, 3), ValueError, r"rank in \[1, 2\], got 3"),
)
