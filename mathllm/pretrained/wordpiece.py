"""WordPiece: BERT's tokenizer, which cuts a word into the longest pieces that its vocabulary has, from the left.

Before that the text loses what the model was trained without: capitals, accents, control characters. Encoding is
therefore one-way, unlike that of chapter 13. Pieces inside a word begin with ##; a word that cannot be cut is [UNK].
"""

import functools
import unicodedata
from collections.abc import Iterable
from pathlib import Path

__all__ = ["WordPiece", "basic_tokens"]

_LONGEST_WORD = 100  # letters; beyond that BERT gives up
_IDEOGRAPHS = (  # each a word of its own
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)  # fmt: skip


def basic_tokens(text: str) -> list[str]:
    """Words and punctuation marks of a text, in lower case and without accents.

    Source: Devlin et al. 2019, the code released with BERT.

    >>> basic_tokens("Naïve café, isn't it?")
    ['naive', 'cafe', ',', 'isn', "'", 't', 'it', '?']
    """
    text = "".join([_spaced(character) for character in text])
    text = unicodedata.normalize("NFD", text)
    # Letter by letter: of a whole text str.lower() would make the Greek Σ at the end of a word a ς.
    text = "".join([c.lower() for c in text if unicodedata.category(c) != "Mn"])
    return "".join([f" {c} " if _is_punctuation(c) else c for c in text]).split()


class WordPiece:
    """BERT's tokenizer with the vocabulary of an uncased model.

    vocabulary: tokens in the order of their ids, among them [UNK], [CLS], [SEP] and [PAD]

    Raises: ValueError for a vocabulary without those, or with a token twice.
    Source: Devlin et al. 2019, §3; Wu et al. 2016, §4.1.

    >>> tokenizer = WordPiece(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "car", "##bure", "##tor", "a"])
    >>> tokenizer.tokens("A carburetor"), tokenizer.encode("a car")
    (['a', 'car', '##bure', '##tor'], [2, 7, 4, 3])
    """

    def __init__(self, vocabulary: Iterable[str]):
        self._tokens = list(vocabulary)
        self.vocabulary = {token: i for i, token in enumerate(self._tokens)}
        missing = [token for token in ("[PAD]", "[UNK]", "[CLS]", "[SEP]") if token not in self.vocabulary]
        if missing or len(self.vocabulary) < len(self._tokens):
            problem = f"lacks {', '.join(missing)}" if missing else "has a token twice"
            raise ValueError(f"WordPiece() needs distinct tokens, BERT's special ones among them; this list {problem}")
        self._pieces = functools.lru_cache(maxsize=1 << 16)(self._cut)

    @classmethod
    def load(cls, path) -> "WordPiece":
        """Read a vocab.txt: one token a line. Raises: FileNotFoundError; ValueError as the class."""
        return cls(Path(path).read_text(encoding="utf-8").removesuffix("\n").split("\n"))

    def __len__(self) -> int:
        """The size of the vocabulary."""
        return len(self._tokens)

    def __repr__(self):
        return f"WordPiece({len(self):,} tokens)"

    def tokens(self, text: str) -> list[str]:
        """The pieces of a text; special tokens are not recognised in it, so that no text can forge one."""
        return [piece for word in basic_tokens(text) for piece in self._pieces(word)]

    def encode(self, text: str, *, longest: int | None = None) -> list[int]:
        """The ids of a text between [CLS] and [SEP], at most `longest` of them: what is too long is cut at the end.

        Raises: ValueError for a `longest` below 2, which would leave no room for the two.
        """
        if longest is not None and longest < 2:
            raise ValueError(f"encode() needs room for [CLS] and [SEP], got longest={longest}")
        pieces = self.tokens(text)
        pieces = pieces if longest is None else pieces[: longest - 2]
        return [self.vocabulary[piece] for piece in ["[CLS]", *pieces, "[SEP]"]]

    def decode(self, ids: Iterable[int]) -> str:
        """A readable text for ids: words with spaces between, special tokens left out.

        Raises: ValueError for an id outside the vocabulary.
        """
        tokens = []
        for i in ids:
            if not 0 <= i < len(self):
                raise ValueError(f"decode() needs ids from 0 to {len(self) - 1:,}, got {i}")
            tokens.append(self._tokens[i])
        return " ".join([token for token in tokens if token not in ("[PAD]", "[CLS]", "[SEP]")]).replace(" ##", "")

    def _cut(self, word):
        if len(word) > _LONGEST_WORD:
            return ["[UNK]"]
        pieces, start = [], 0
        while start < len(word):
            before = "##" if start else ""
            ends = range(len(word), start, -1)
            end = next((end for end in ends if before + word[start:end] in self.vocabulary), None)
            if end is None:
                return ["[UNK]"]
            pieces.append(before + word[start:end])
            start = end
        return pieces


def _spaced(character):
    """Control characters go, every kind of space becomes one, an ideograph stands alone."""
    if character in "\t\n\r" or unicodedata.category(character) == "Zs":
        return " "
    if character == "\ufffd" or unicodedata.category(character) in ("Cc", "Cf", "Co", "Cs"):
        return ""
    if any(first <= ord(character) <= last for first, last in _IDEOGRAPHS):
        return f" {character} "
    return character


def _is_punctuation(character):
    """Punctuation for Unicode, and all of ASCII that is neither letter nor digit: $, +, ^ and their like."""
    ascii_sign = "!" <= character <= "~" and not character.isalnum()
    return ascii_sign or unicodedata.category(character).startswith("P")
