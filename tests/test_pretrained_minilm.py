"""MiniLM gives like sentences like vectors, whatever stands beside them in a batch."""

import numpy as np
import pytest

import mathllm as ml
from mathllm import data
from mathllm.errors import MissingDataError
from mathllm.pretrained import minilm

SENTENCES = [
    "The cat sleeps on the sofa.",
    "A kitten is napping on the couch.",
    "Interest rates rose by half a percent.",
    "The central bank made borrowing more expensive.",
]


@pytest.fixture
def vectors(needs):
    needs("minilm")
    return minilm.embed(SENTENCES)


@pytest.mark.parametrize("batch_size", [1, 2, 3])
def test_a_sentence_does_not_depend_on_its_batch(vectors, batch_size):
    sentences = [SENTENCES[0], "word " * 40, SENTENCES[1], "", SENTENCES[2], SENTENCES[3]]
    found = minilm.embed(sentences, batch_size=batch_size)[[0, 2, 4, 5]]
    np.testing.assert_allclose(found, vectors, atol=2e-6)  # other sizes, other order of float32 sums


def test_one_text_gives_one_vector_and_no_text_none(vectors):
    np.testing.assert_allclose(minilm.embed(SENTENCES[2]), vectors[2], atol=2e-6)
    assert minilm.embed([]).shape == (0, 384)


def test_a_damaged_file_is_a_clear_error(monkeypatch, tmp_path, needs):
    place = needs("minilm") / "model"
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_bytes((place / "config.json").read_bytes())
    (folder / "model.safetensors").write_bytes((place / "model.safetensors").read_bytes()[:1000])
    monkeypatch.setattr(data, "path", lambda name: tmp_path)
    with pytest.raises(MissingDataError, match=r"minilm is damaged: .*not a whole safetensors file"):
        minilm.load()


def test_the_mean_of_the_token_vectors_is_the_vector_of_the_sentence(needs):
    needs("minilm")
    _, vectors = minilm.token_vectors(SENTENCES[0])
    np.testing.assert_allclose(ml.normalize(vectors.mean(axis=0)), minilm.embed(SENTENCES[0]), atol=2e-6)
