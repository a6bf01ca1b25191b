"""Chapter 07: the contrastive loss of a batch of pairs."""

import numpy as np
import pytest

import mathllm as ml

rng = np.random.default_rng(2)


def test_info_nce_is_the_log_of_the_batch_size_when_all_pairs_look_alike():
    same = np.ones((8, 3))
    assert ml.info_nce(same, same) == pytest.approx(np.log(8))


def test_info_nce_survives_a_temperature_near_zero():
    queries = np.eye(3)
    assert ml.info_nce(queries, queries, temperature=1e-4) == 0
    assert ml.info_nce(queries, queries[::-1], temperature=1e-4) == pytest.approx(2 / 3 * 1e4)


def test_the_loss_is_the_cross_entropy_of_the_diagonal():
    queries, keys = rng.normal(size=(2, 4, 3))
    scores = ml.cosine_similarity_matrix(queries, keys) / 0.5
    shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(ml.info_nce(queries, keys, temperature=0.5), -np.log(np.diagonal(shares)).mean())


def test_gradient_agrees_with_central_differences():
    # central differences in float64 are good to about 1e-10; a wrong formula is off by percents
    loss = lambda q, k: ml.info_nce(q, k, temperature=0.5)  # noqa: E731
    assert ml.check_gradient(loss, rng.normal(size=(4, 3)), rng.normal(size=(4, 3))).error < 1e-6


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_dtype_is_kept_and_input_left_alone(dtype):
    x = np.array([[1, 2], [3, 4]], dtype)
    x.flags.writeable = False  # a write would raise
    assert ml.info_nce(x, x).dtype == dtype


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: ml.info_nce(np.ones((2, 3)), np.ones((3, 3))), ml.ShapeError, "n is 2 in queries, 3 in keys"),
        (lambda: ml.info_nce(np.ones((0, 3)), np.ones((0, 3))), ml.ShapeError, "n is 0 in queries"),
        (lambda: ml.info_nce(np.ones((2, 3)), np.ones((2, 3)), temperature=0), ValueError, "temperature in"),
    ],
)
def test_what_cannot_be_right_is_refused_in_words(call, error, words):
    with pytest.raises(error, match=words):
        call()
