"""GloVe opens at once, answers as published, and refuses a table that is not whole."""

import subprocess
import sys
import textwrap

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from mathllm import data
from mathllm.errors import MissingDataError
from mathllm.pretrained import glove

# The real table


def test_glove_has_400000_words_of_50_components_in_float32(needs):
    needs("glove")
    wv = glove.load()
    assert len(wv) == 400_000
    assert wv.vectors.shape == (400_000, 50)
    assert wv.vectors.dtype == np.float32


def test_the_table_is_mapped_and_cannot_be_written(needs):
    needs("glove")
    vectors = glove.load().vectors
    assert isinstance(vectors.base, np.memmap)
    assert not vectors.flags.writeable


@pytest.mark.parametrize(("a", "b", "cosine"), [("king", "queen", 0.784), ("king", "carburetor", -0.249)])
def test_cosines_are_the_known_ones_to_three_decimals(needs, a, b, cosine):
    needs("glove")
    assert round(glove.load().similarity(a, b), 3) == cosine


@pytest.mark.parametrize(
    ("a", "b", "c", "answer"),
    [
        ("man", "king", "woman", "queen"),
        ("man", "brother", "woman", "daughter"),  # wrong: the sister is missed
    ],
)
def test_analogies_succeed_and_fail_as_they_do_in_the_real_table(needs, a, b, c, answer):
    needs("glove")
    assert glove.load().analogy(a, b, c, k=1)[0][0] == answer


def test_without_leaving_out_the_query_the_king_is_his_own_answer(needs):
    needs("glove")
    assert glove.load().analogy("man", "king", "woman", k=1, exclude_query=False)[0][0] == "king"


def test_loading_twice_gives_the_same_table(needs):
    needs("glove")
    assert glove.load() is glove.load()


def test_the_first_query_needs_numpy_alone(needs):
    needs("glove")
    program = textwrap.dedent("""
        import sys
        sys.modules["pyarrow"] = None
        from mathllm.pretrained import glove
        print(glove.load().nearest("king", k=1)[0][0])
        print(sorted(sys.modules.keys() & {"matplotlib", "pandas", "IPython", "anywidget"}))
    """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["prince", "[]"]


def test_the_plain_words_are_those_of_the_parquet_file_in_its_order(needs):
    place = needs("glove")
    table = parquet.read_table(place / "data" / "glove_6B_index.parquet")
    assert glove.read_words(place) == table["index"].to_pylist()


# A small table of the same form


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


def test_words_and_rows_belong_together(toy):
    wv = glove.load()
    table = np.load(toy / "glove_6B_50d_emb.npy")
    assert all(np.array_equal(wv.vector(word), table[row]) for row, word in enumerate(["king", "queen", "car"]))


def test_a_word_list_of_another_length_than_the_table_is_refused(toy):
    np.save(toy / "glove_6B_50d_emb.npy", np.zeros((4, 50), np.float32))
    with pytest.raises(MissingDataError, match=r"3 words.*\(4, 50\)"):
        glove.load()


def test_vectors_of_another_type_are_refused(toy):
    np.save(toy / "glove_6B_50d_emb.npy", np.zeros((3, 50), np.float64))
    with pytest.raises(MissingDataError, match="float64"):
        glove.load()


@pytest.mark.parametrize("content", [b"", b"no array", "half"])
def test_a_truncated_or_foreign_array_file_is_a_clear_error(toy, content):
    file = toy / "glove_6B_50d_emb.npy"
    file.write_bytes(file.read_bytes()[:300] if content == "half" else content)
    with pytest.raises(MissingDataError, match="glove is damaged"):
        glove.load()


def test_a_truncated_word_list_is_a_clear_error(toy):
    (toy / "words.txt").write_bytes(b"king\nque")
    with pytest.raises(MissingDataError, match=r"2 words for \(3, 50\)"):
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
