"""GloVe opens at once, answers as published, and refuses a table that is not whole."""

import sys

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from mathllm import data
from mathllm.errors import MissingDataError
from mathllm.pretrained import glove


def test_glove_has_400000_words_of_50_components_in_float32_mapped_once_and_not_to_be_written(needs):
    needs("glove")
    wv = glove.load()
    assert len(wv) == 400_000
    assert (wv.vectors.shape, wv.vectors.dtype) == ((400_000, 50), np.float32)
    assert isinstance(wv.vectors.base, np.memmap)
    assert not wv.vectors.flags.writeable
    assert glove.load() is wv


def test_the_plain_words_are_those_of_the_parquet_file_in_its_order(needs):
    place = needs("glove")
    table = parquet.read_table(place / "data" / "glove_6B_index.parquet")
    assert glove.read_words(place) == table["index"].to_pylist()


@pytest.fixture
def toy(monkeypatch, tmp_path):
    """Three words with vectors in the files of the real package; what is in them can be spoilt."""
    words = b"king\nqueen\ncar\n"
    table = np.random.default_rng(1).normal(size=(3, 50)).astype(np.float32)
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "words.txt").write_bytes(words)
    np.save(folder / "glove_6B_50d_emb.npy", table)
    monkeypatch.setattr(data, "path", lambda name: tmp_path)
    return folder


def test_words_and_rows_belong_together_and_without_pyarrow(toy, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    wv = glove.load()
    table = np.load(toy / "glove_6B_50d_emb.npy")
    assert all(np.array_equal(wv.vector(word), table[row]) for row, word in enumerate(["king", "queen", "car"]))


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda words, table: np.save(table, np.zeros((4, 50), np.float32)), r"3 words.*\(4, 50\)"),
        (lambda words, table: np.save(table, np.zeros((3, 50), np.float64)), "float64"),
        (lambda words, table: table.write_bytes(table.read_bytes()[:300]), "glove is damaged"),
        (lambda words, table: table.write_bytes(b"no array"), "glove is damaged"),
        (lambda words, table: table.write_bytes(b""), "glove is damaged"),
        (lambda words, table: words.write_bytes(b"king\nque"), r"2 words for \(3, 50\)"),
    ],
)
def test_a_table_that_is_not_whole_is_a_clear_error(toy, spoil, words):
    spoil(toy / "words.txt", toy / "glove_6B_50d_emb.npy")
    with pytest.raises(MissingDataError, match=words):
        glove.load()


def test_without_the_plain_list_the_words_come_from_the_parquet_file(toy):
    (toy / "words.txt").unlink()
    parquet.write_table(pyarrow.table({"index": ["king", "queen", "car"]}), toy / "glove_6B_index.parquet")
    assert glove.load().words == ["king", "queen", "car"]


def test_without_the_plain_list_and_without_pyarrow_the_error_says_what_to_do(toy, monkeypatch):
    (toy / "words.txt").unlink()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingDataError, match="make data"):
        glove.load()
