"""Chapter 13, from text to ids: byte-pair encoding, and what a tokenizer promises of every text."""

import itertools
import json
import re
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusing import refusing

import mathllm as ml
from mathllm import training
from mathllm.training.tokenizer import _patterns

SENTENCES = "The king's men, 2026: it's low, lower, lowest!\n\n  The queen's men?  Newer and wider.\n" * 5
text_of_any_kind = st.text(max_size=60) | st.text(alphabet=" \t\n's2²½Ⅷ_a\x1c\x85\u3000é中😀\u0301", max_size=60)


# ------------------------------------------------------------------------------------------------------ learning merges


# That they are the right ones is proven by the figure of chapter 13, which counts everything again, and by the library.
words = st.lists(st.text(alphabet="abcd", min_size=1, max_size=12), max_size=12)


@given(words)
def test_after_all_merges_every_word_of_the_corpus_is_one_token(words):
    ranks = training.merge_ranks(ml.learn_merges(words))
    assert all(training.apply_merges(word, ranks) == [word] for word in words)


def test_pairs_do_not_reach_across_words_and_learning_ends_in_time():
    assert ml.learn_merges(["a", "b"]) == []
    assert ml.learn_merges([]) == []
    assert ml.learn_merges(["ab", "cd"], min_count=2) == []
    assert ml.learn_merges(["aaa"], 1) == [("a", "a", 2)]


def test_a_very_long_word_is_cut_in_little_more_than_its_length():
    word = "".join(np.random.default_rng(0).choice([*"abcdefgh"], size=100_000))
    ranks = training.merge_ranks([(a, b) for a in "abcdefgh" for b in "abcdefgh"])
    found = training.apply_merges(word, ranks)  # scanning the word after each of its 40,000 joins would take an hour
    assert "".join(found) == word
    assert len(found) < 0.7 * len(word)


# ----------------------------------------------------------------------------------------------------- pre-tokenisation


@given(text_of_any_kind)
def test_the_pieces_add_up_to_the_text(text):
    assert "".join(training.pre_tokenize(text)) == text
    assert "".join(training.pre_tokenize(text, single_digits=True)) == text


def test_letters_and_numbers_are_those_of_unicode():
    words, _ = _patterns()
    for c in map(chr, [*range(0xD800), *range(0xE000, 0x11000), *range(0x16A00, 0x20000, 7)]):
        assert words.fullmatch("a" + c) is not None or unicodedata.category(c)[0] != "L"
        alone = [m.group() for m in words.finditer("a1" + c)]
        joins = {"L": ["a", "1", c], "N": ["a", "1" + c]}.get(unicodedata.category(c)[0], ["a", "1", c])
        assert alone == joins, hex(ord(c))


def test_white_space_is_that_of_unicode():
    space = {c for c in map(chr, range(0x10000)) if len(training.pre_tokenize(f"{c}{c}!")) == 3 and c != "'"}
    python = {c for c in map(chr, range(0x10000)) if c.isspace()}
    assert {c for c in space if not c.isalnum()} == python - {*" \x1c\x1d\x1e\x1f"}  # " " joins what follows


# -------------------------------------------------------------------------------------------------------- the tokenizer


@pytest.fixture(scope="module")
def tokenizer():
    return training.train_tokenizer(SENTENCES, 300, special_tokens=["<|end|>", "<|endless|>", "<|e"])


@given(text=text_of_any_kind)
def test_every_text_survives_the_round_trip(tokenizer, text):
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.decode(tokenizer.encode(text, special=False)) == text
    assert "".join(tokenizer.tokens(text)) == text or not text.isascii()


def test_special_tokens_are_never_cut_and_the_longest_wins(tokenizer):
    assert tokenizer.encode("<|end|><|endless|>") == [297, 298]
    assert tokenizer.encode("<|en") == [299, *tokenizer.encode("n")]
    assert set(tokenizer.encode("<|end|>", special=False)).isdisjoint({297, 298, 299})


def test_more_merges_make_shorter_sequences(tokenizer):
    lengths = [len(tokenizer.truncated(n).encode(SENTENCES)) for n in range(0, 42, 3)]
    assert lengths[0] == len(SENTENCES)
    assert all(longer > shorter for longer, shorter in itertools.pairwise(lengths))
    assert tokenizer.truncated(41).encode(SENTENCES) == tokenizer.encode(SENTENCES)
    assert len(tokenizer.truncated(10)) == 256 + 10 + 3


def test_documents_given_one_by_one_teach_the_same():
    cut = SENTENCES.index(" lower")  # between two pieces
    again = training.train_tokenizer(iter([SENTENCES[:cut], SENTENCES[cut:]]), 300)
    assert again.merges == training.train_tokenizer(SENTENCES, 300).merges


@pytest.mark.parametrize("single_digits", [False, True])
def test_saved_and_loaded_it_is_the_same_tokenizer(tmp_path, single_digits):
    tokenizer = training.train_tokenizer(SENTENCES + "²é中", 300, single_digits=single_digits)
    tokenizer.save(tmp_path / "tokenizer.json")
    again = ml.Tokenizer.load(tmp_path / "tokenizer.json")
    assert again.vocabulary == tokenizer.vocabulary
    assert again.merges == tokenizer.merges
    assert again.special_tokens == tokenizer.special_tokens
    text = SENTENCES + "1234 ²é中<|endoftext|>"
    assert again.encode(text) == tokenizer.encode(text)


def test_merges_written_as_one_string_are_read_too(tmp_path, tokenizer):
    tokenizer.save(tmp_path / "a.json")
    content = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    content["model"]["merges"] = [" ".join(pair) for pair in content["model"]["merges"]]
    (tmp_path / "a.json").write_text(json.dumps(content), encoding="utf-8")
    assert ml.Tokenizer.load(tmp_path / "a.json").merges == tokenizer.merges


def test_a_character_may_be_spread_over_tokens(tokenizer):
    ids = tokenizer.encode("中")
    assert len(ids) == 3
    assert tokenizer.decode(ids[:2]) == "�"
    assert tokenizer.decode_bytes(ids[:2]) + tokenizer.decode_bytes(ids[2:]) == "中".encode()
    assert tokenizer.tokens("a中") == ["a", "�", "�", "�"]


def test_a_byte_without_an_id_becomes_the_unknown_token_if_there_is_one(tmp_path):
    tokenizer = ml.Tokenizer({b"a": 0, b"b": 1, b"ab": 2}, [(b"a", b"b")], {"<unk>": 3}, unknown=3)
    assert tokenizer.encode("abcé") == [2, 3, 3, 3]
    assert tokenizer.decode([2, 3]) == "ab<unk>"
    tokenizer.save(tmp_path / "tokenizer.json")
    assert ml.Tokenizer.load(tmp_path / "tokenizer.json").encode("cab") == [3, 2]


def alphabet():
    return {bytes([b]): b for b in range(256)}


def bytes_alone():
    return ml.Tokenizer(alphabet(), [])


test_what_cannot_be_right_is_refused_in_words = refusing(
    (lambda: ml.learn_merges(["ab"], ties="coin"), ValueError, "no ties 'coin'; choices are first appearance"),
    (lambda: training.train_tokenizer("text", 256), ValueError, r"vocabulary_size in \[257, ∞\), got 256"),
    (lambda: bytes_alone().encode("a\ud800"), ValueError, "at 1, half of a surrogate pair"),
    (lambda: bytes_alone().decode([3, 900]), ValueError, "from 0 to .* got 900"),
    (lambda: bytes_alone().decode(np.array([3.5])), TypeError, "float64' object cannot be interpreted as an integer"),
    (lambda: bytes_alone().truncated(9), ValueError, r"whole number merges in \[0, 0\], got 9"),
    (lambda: ml.Tokenizer({b"a": 0}, []).encode("ab"), ValueError, "'ab', which has a byte that is not in"),
    (lambda: ml.Tokenizer(alphabet(), [(b"a", b"b")]), ValueError, "id for b'ab'"),
    (lambda: ml.Tokenizer(alphabet() | {b"ab": 7}, []), ValueError, "id 7 stands for several"),
    (lambda: ml.Tokenizer.from_strings({"中": 0}, []), ValueError, "alphabet of 256 characters"),
)


@pytest.mark.parametrize("content", ["[]", "{}", '{"model": {"type": "WordPiece", "vocab": {}}}'])
def test_another_kind_of_tokenizer_is_refused_in_words(tmp_path, content):
    (tmp_path / "other.json").write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=re.escape("other.json is something else")):
        ml.Tokenizer.load(tmp_path / "other.json")
