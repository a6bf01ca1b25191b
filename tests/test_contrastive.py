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
