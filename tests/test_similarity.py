"""Chapter 02: dot products, angles, neighbours, and sentences."""

import numpy as np
import pytest
from refusing import refusing

import mathllm as ml
from mathllm import similarity
from mathllm.exhibits.similarity import interpret_cosine

rng = np.random.default_rng(2)


# ------------------------------------------------------------------------------------------------- dot and cosine


def test_the_lower_edge_belongs_to_the_band():
    bands = {0.9: "Near-identical", 0.7: "Strongly related", 0.4: "Some relationship", 0.0: "Weak or no relation"}
    assert {edge: interpret_cosine(edge) for edge in bands} == bands
    below = [interpret_cosine(np.nextafter(edge, -1)) for edge in bands]
    assert below == [*list(bands.values())[1:], "Opposing (rare)"]


# ------------------------------------------------------------------------------------------------------------ words


@pytest.fixture
def animals():
    return similarity.WordVectors(["cat", "dog", "stone", "nothing"], [[2, 5, 1], [3, 4, 2], [-5, 1, 0], [0, 0, 0]])


def test_a_word_without_direction_is_nobodys_neighbour(animals):
    assert [word for word, _ in animals.nearest("cat", k=10)] == ["dog", "stone"]


@pytest.mark.parametrize("dtype", [int, np.int8, np.float16, np.float32])
def test_small_types_of_vectors_neither_overflow_nor_cut_off_the_query(dtype):
    few = similarity.WordVectors(["flat", "steep"], np.array([[120, 90], [90, 120]], dtype))
    (word, cosine), (_, other) = few.nearest([0.8, 0.6], k=2)
    assert word == "flat"
    np.testing.assert_allclose([cosine, other], [1, 0.96], rtol=1e-6)
    np.testing.assert_allclose(few.nearest("flat", k=1)[0][1], 0.96, rtol=1e-6)


def test_query_words_are_left_out_of_an_analogy_unless_asked_for():
    vectors = [[1, 0, 0], [0.9, 0.1, 0], [1, 0, 3], [0.6, 0.4, 3]]
    toy = similarity.WordVectors(["man", "woman", "king", "queen"], vectors)
    assert toy.analogy("man", "king", "woman", k=1)[0][0] == "queen"
    assert toy.analogy("man", "king", "woman", k=1, exclude_query=False)[0][0] != "queen"


def test_a_word_is_left_out_by_its_name_not_by_its_letters(animals):
    assert animals.nearest("cat", exclude="dog") == animals.nearest("cat", exclude=["dog"])
    assert [word for word, _ in animals.nearest("cat", exclude="dog")] == ["stone"]


def test_nearest_does_not_change_the_table(animals):
    before = animals.vectors.copy()
    animals.vectors.flags.writeable = False
    animals.nearest("cat")
    animals.vector("cat")[0] = 99
    assert np.array_equal(animals.vectors, before)


# -------------------------------------------------------------------------------------------------------- sentences


def test_padding_changes_nothing_in_a_pooled_sentence():
    sentence = rng.normal(size=(3, 4))
    padded = np.concatenate([sentence, [[99.0] * 4, [np.nan] * 4]])
    np.testing.assert_allclose(similarity.mean_pool(padded, [1, 1, 1, 0, 0]), similarity.mean_pool(sentence))


def test_one_mask_serves_all_sentences_of_a_batch():
    sentences = rng.normal(size=(2, 3, 4))
    np.testing.assert_allclose(similarity.mean_pool(sentences, [1, 1, 0]), similarity.mean_pool(sentences[:, :2]))


def test_the_mean_of_many_tokens_is_right_in_float16():
    assert similarity.mean_pool(np.full((4000, 2), 60_000, np.float16)).tolist() == [60_000, 60_000]


KING = similarity.WordVectors(["king"], [[1, 2]])


test_what_cannot_be_right_is_refused_in_words = refusing(
    (lambda: ml.cosine_similarity([1, 2], [0, 0]), ValueError, "zero vector"),
    (lambda: ml.cosine_similarity_matrix([[1, 2]], [[3, 4], [0, 0]]), ValueError, "zero vector"),
    (lambda: interpret_cosine(1.2), ValueError, r"cosine in \[-1, 1\], got 1.2"),
    (lambda: similarity.WordVectors(["a"], np.ones((2, 3))), ml.ShapeError, "1 words"),
    (lambda: similarity.WordVectors(["a", "b"], [[1, 2], [3]]), ml.ShapeError, "unequal length"),
    (lambda: similarity.WordVectors(["a"], [[1j, 2]]), TypeError, "real numbers, got complex128"),
    (lambda: similarity.WordVectors(["a"], [[1, 2]]).nearest([1j, 2]), TypeError, "real numbers"),
    (lambda: similarity.WordVectors(["a", "a"], np.ones((2, 3))), ValueError, "twice"),
    (lambda: KING.vector("kin"), ml.UnknownWordError, "did you mean king"),
    (lambda: KING.vector("King"), ml.UnknownWordError, "lower case: try 'king'"),
    (lambda: KING.nearest([1, 2, 3]), ml.ShapeError, "2 components"),
    (lambda: KING.nearest([0, 0]), ValueError, "zero vector"),
    (lambda: KING.nearest([np.nan, 0]), ValueError, "query in .*got nan"),
    (lambda: KING.nearest("king", k=0), ValueError, "whole number k"),
    (lambda: similarity.mean_pool(np.ones((2, 3)), [0, 0]), ValueError, "padding"),
)
