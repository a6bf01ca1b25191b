"""WordPiece between a text and ids. That it cuts as BERT was trained to see words, parity/test_bpe.py proves."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusing import refusing

from mathllm.pretrained.wordpiece import WordPiece, basic_tokens

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]


@pytest.fixture(scope="module")
def small():
    return WordPiece([*SPECIAL, "un", "##aff", "##able", "able", "##a", "a", "##b", ",", "runn", "##ing", "run"])


def test_a_text_stands_between_two_special_tokens(small):
    assert small.encode("unaffable, a") == [2, 4, 5, 6, 11, 9, 3]
    assert small.encode("") == [2, 3]
    assert small.encode("[CLS]") == [2, 1, 1, 1, 3]  # words that look like special tokens are none


def test_what_is_too_long_is_cut_at_its_end(small):
    assert small.encode("a a a a a", longest=4) == [2, 9, 9, 3]
    assert small.encode("a", longest=2) == [2, 3]
    with pytest.raises(ValueError, match=r"longest in \[2, ∞\), got 1"):
        small.encode("a", longest=1)


def test_ids_become_readable_text(small):
    assert small.decode([2, 4, 5, 6, 11, 9, 3, 0]) == "unaffable , a"
    with pytest.raises(ValueError, match="ids from 0 to 14, got 15"):
        small.decode([15])
    with pytest.raises(ValueError, match="got -1"):
        small.decode([-1])
    with pytest.raises(TypeError, match="integer token ids, got float64"):
        small.decode([4.5])


test_a_vocabulary_that_cannot_work_is_refused = refusing(
    (lambda: WordPiece(["[PAD]", "[UNK]", "[CLS]"]), ValueError, r"lacks \[SEP\]"),
    (lambda: WordPiece([*SPECIAL, "a", "a"]), ValueError, "has a token twice"),
)


def test_a_vocabulary_is_read_one_token_a_line(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join([*SPECIAL, "é\u2028e", "a"]) + "\n", encoding="utf-8")
    tokenizer = WordPiece.load(tmp_path / "vocab.txt")
    assert len(tokenizer) == 6
    assert tokenizer.vocabulary["a"] == 5


@given(st.text())
def test_any_text_can_be_encoded_and_cutting_is_stable(text):
    tokenizer = WordPiece([*SPECIAL, *"abcdefgh", *("##" + c for c in "abcdefgh"), "##ab", "cd", ",", "."])
    ids = tokenizer.encode(text)
    assert ids[0] == 2
    assert ids[-1] == 3
    assert all(0 <= i < len(tokenizer) for i in ids)
    pieces = tokenizer.tokens(text)
    assert "".join(pieces).count("[UNK]") == ids.count(1)
    if 1 not in ids:  # then nothing of the words is lost
        assert "".join(piece.removeprefix("##") for piece in pieces) == "".join(basic_tokens(text))
