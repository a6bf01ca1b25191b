"""Byte-pair encoding and WordPiece, merge for merge and piece for piece with the library `tokenizers`."""

import json

import numpy as np
import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import decoders, models, pre_tokenizers, trainers

from mathllm.pretrained.wordpiece import WordPiece
from mathllm.training import Tokenizer, gpt2_tokenizer, pre_tokenize, train_tokenizer
from mathllm.training.tokenizer import _hide, _show

# Without what is no character, and what is younger than this Python's tables of Unicode: the library's are newer
KNOWN = st.characters(exclude_categories=["Cs", "Cn"])
SENTENCES = [
    "It's 2026, isn't it?  We'll see: naïve café, 3.14159 — 中文字 и русский;\n\n\tdef f(x):  # x² ≤ ½\n    return x\n",
    "They'd say 'twas the 1st of 1,000 nights, weren't they're…  🙂👩‍👩‍👧  I'VE\r\n\x00 \xa0 end ",
]


def invented_text(seed, words=3000):
    """Words of a few syllables, some far more frequent than others, among numbers and punctuation."""
    rng = np.random.default_rng(seed)
    syllables = ["the", "lo", "we", "ré", "na", "ing", "st", "o", "q", "ни", "中"]
    lexicon = ["".join(rng.choice(syllables, size=rng.integers(1, 5))) for _ in range(300)]
    lexicon += [*map(str, range(2020, 2030)), ",", "...", "\n", "  ", "'s", "—"]
    return " ".join(rng.choice(lexicon, size=words, p=rng.dirichlet(np.full(len(lexicon), 0.3))))


def splitting(single_digits):
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level]) if single_digits else (
        byte_level
    )  # fmt: skip


def trained_by_the_library(text, size, *, single_digits=False, min_count=2):
    peer = tokenizers.Tokenizer(models.BPE())
    peer.pre_tokenizer, peer.decoder = splitting(single_digits), decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=size, min_frequency=min_count, initial_alphabet=alphabet, show_progress=False
    )
    peer.train_from_iterator([text], trainer)
    return peer


@pytest.mark.parametrize("single_digits", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_merges_and_ids_are_those_of_the_library(seed, single_digits):
    text, options = invented_text(seed), {"single_digits": single_digits, "min_count": 2}
    peer = trained_by_the_library(text, 700, **options)
    ours = train_tokenizer(text, 700, special_tokens=(), ties="lowest ids", **options)
    merges = [tuple(pair) for pair in json.loads(peer.to_str())["model"]["merges"]]
    assert len(merges) > 100
    assert [(_show(left), _show(right)) for left, right in ours.merges] == merges
    assert {_show(token): i for token, i in ours.vocabulary.items()} == peer.get_vocab()
    for sentence in [text, *SENTENCES]:
        ids = peer.encode(sentence).ids
        assert ours.encode(sentence) == ids
        assert ours.decode(ids) == peer.decode(ids) == sentence


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """Our tokenizer, and the library's, read from the file that ours has written."""
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    special = ("<|endoftext|>", "<|im_start|>")
    ours = train_tokenizer(invented_text(0), 600, special_tokens=special, ties="lowest ids", single_digits=True)
    ours.save(path)
    return ours, tokenizers.Tokenizer.from_file(str(path))


@given(text=st.text(KNOWN, max_size=60) | st.text("ab1² '’s\n\t.,é中😀", max_size=60))
def test_the_library_reads_our_file_and_gives_every_text_the_same_ids(pair, text):
    ours, peer = pair
    assert ours.encode(text) == peer.encode(text, add_special_tokens=False).ids


def test_special_tokens_are_found_in_a_text_as_the_library_finds_them(pair):
    ours, peer = pair
    for text in ["<|im_start|>user\nlo<|endoftext|>", "<|endoftext|><|endoftext|> <|im_start|", " <|im_start|>1"]:
        ids = peer.encode(text).ids
        assert ours.encode(text) == ids
        assert ours.decode(ids) == peer.decode(ids, skip_special_tokens=False) == text


def test_our_class_reads_the_file_of_the_library(tmp_path):
    peer = trained_by_the_library(invented_text(1), 500)
    peer.add_special_tokens(["<|endoftext|>"])
    peer.save(str(tmp_path / "tokenizer.json"))
    ours = Tokenizer.load(tmp_path / "tokenizer.json")
    for text in [invented_text(2), *SENTENCES, "lo<|endoftext|>we"]:
        assert ours.encode(text) == peer.encode(text).ids


@given(st.text(KNOWN, max_size=60) | st.text("ab1²½ '’s\n\t\r\x1c\x85\xa0\u2003\u200b_.,é中ª😀", max_size=60))
def test_text_is_cut_where_the_pattern_of_gpt2_cuts_it(text):
    splitter = splitting(single_digits=False)
    pieces = [bytes(_hide(piece)).decode(errors="surrogateescape") for piece, _ in splitter.pre_tokenize_str(text)]
    assert pre_tokenize(text) == pieces


def test_the_vocabulary_of_gpt2_gives_every_text_the_same_ids_as_the_library(needs):
    place = needs("gpt2-tokenizer") / "data"
    peer = tokenizers.ByteLevelBPETokenizer(str(place / "encoder.json"), str(place / "vocab.bpe"))
    ours = gpt2_tokenizer()
    for text in [invented_text(3), *SENTENCES]:
        assert ours.encode(text) == peer.encode(text).ids


PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "un", "##aff", "##able", "able", "runn", "##ing", "run"]
PIECES += [start + character for character in "abefilnrsu,'$^¿«…東ßσς" for start in ("", "##")]
SMALL = WordPiece(PIECES), tokenizers.BertWordPieceTokenizer({piece: i for i, piece in enumerate(PIECES)})


# The library's table of combining signs beyond 0xFFFF is older than Python's.
@given(
    st.text(st.characters(exclude_categories=["Cs", "Cn"], max_codepoint=0xFFFF), max_size=30)
    | st.text("ab,unfleri AÉß東\t\n\xa0\xad\u200b\0\ufffd'$^¿«…İΣς", max_size=40)  # blanks, controls, accents
    | st.lists(st.sampled_from(["un", "aff", "able", "run", "runn", "ing", "a", "x", " "])).map("".join)
    | st.text("ab", min_size=95, max_size=105)  # around the longest word
)
def test_words_are_cut_into_the_pieces_of_the_library(text):
    ours, peer = SMALL
    assert ours.tokens(text) == peer.encode(text, add_special_tokens=False).tokens
