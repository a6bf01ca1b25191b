"""Chapter 09: word vectors learned from text by descent: pairs of neighbours, negative sampling, the training run."""

import numpy as np
import pytest

import mathllm as ml
from mathllm import gradient_descent

pytestmark = pytest.mark.slow

rng = np.random.default_rng(2)


def test_a_drawn_window_keeps_the_nearest_neighbours_and_drops_some_far_ones():
    ids = np.arange(1000)
    centres, contexts = gradient_descent.skip_gram_pairs(ids, 4, np.random.default_rng(0))
    share = [np.mean(np.abs(centres - contexts) == d) * len(centres) / (2 * len(ids)) for d in (1, 2, 3, 4)]
    np.testing.assert_allclose(share, [1, 0.75, 0.5, 0.25], atol=0.05)  # P(window ≥ d), 1000 draws


def test_a_text_shorter_than_the_window_has_fewer_pairs():
    assert [part.tolist() for part in gradient_descent.skip_gram_pairs([3], 5)] == [[], []]
    assert gradient_descent.skip_gram_pairs([3, 4], 5)[0].tolist() == [3, 4]


def test_negative_sampling_loss_without_negatives_is_that_of_the_true_pair():
    v, u = rng.normal(size=(2, 3, 4))
    expected = np.mean(-np.log(ml.sigmoid(ml.dot(u, v))))
    np.testing.assert_allclose(gradient_descent.negative_sampling_loss(v, u, np.ones((3, 0, 4))), expected)


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
def test_training_that_diverges_says_so():
    with pytest.raises(ValueError, match="learning rate"):
        gradient_descent.train_word2vec(["a", "b", "c"] * 300, np.random.default_rng(0), learning_rate=1e6, epochs=20)


def test_rare_words_are_left_out():
    text = ["a", "b", "c"] * 30 + ["once"]
    assert "once" not in gradient_descent.train_word2vec(text, np.random.default_rng(5), size=4)


def test_a_text_of_one_frequent_word_is_refused_in_words():
    with pytest.raises(ValueError, match=r"number_of_frequent_words in .*got 1"):
        gradient_descent.train_word2vec(["a"] * 50, rng)
