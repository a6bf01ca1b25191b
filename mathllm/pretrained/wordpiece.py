"""WordPiece, the tokenizer of BERT: each word is cut into the longest pieces that the vocabulary has, from the left.

Before that the text is cleaned as for the training of the model: lower case, no accents, no control characters. The
text can therefore not be restored from its tokens, unlike with the byte-level BPE of chapter 13. Pieces inside a word
begin with ##. A word that cannot be cut completely becomes [UNK].
"""

import functools
import unicodedata
from collections.abc import Iterable
from os import PathLike
from pathlib import Path

from ..errors import within
from ..probability import token_sequence

_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
_LONGEST_WORD = 100  # characters; BERT's tokenizer turns longer words into [UNK]
_IDEOGRAPHS = (  # each is a word of its own
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)  # fmt: skip


def basic_tokens(text: str) -> list[str]:
    """Words and punctuation marks of a text, in lower case and without accents.

    Source: Devlin et al. 2019, the code released with BERT.

    >>> basic_tokens("Naïve café, isn't it?")
    ['naive', 'cafe', ',', 'isn', "'", 't', 'it', '?']
    """
    text = unicodedata.normalize("NFD", "".join([_cleaned(character) for character in text]))
    # Each character is lowered by itself: of a whole text, str.lower() turns the Σ at the end of a Greek word into ς.
    text = "".join([c.lower() for c in text if unicodedata.category(c) != "Mn"])
    return "".join([f" {c} " if _is_punctuation(c) else c for c in text]).split()


class WordPiece:
    """The tokenizer of BERT with the vocabulary of an uncased model.

    vocabulary: tokens in the order of their ids, among them [PAD], [UNK], [CLS] and [SEP]

    Raises: ValueError for a vocabulary without those, or with a token twice.
    Source: Devlin et al. 2019, §3; Wu et al. 2016, §4.1.

    >>> tokenizer = WordPiece(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "car", "##bure", "##tor", "a"])
    >>> tokenizer.tokens("A carburetor"), tokenizer.encode("a car")
    (['a', 'car', '##bure', '##tor'], [2, 7, 4, 3])
    """

    def __init__(self, vocabulary: Iterable[str]):
        self._tokens = list(vocabulary)
        self.vocabulary = {token: i for i, token in enumerate(self._tokens)}
        missing = [token for token in _SPECIAL if token not in self.vocabulary]
        if missing or len(self.vocabulary) < len(self._tokens):
            problem = f"lacks {', '.join(missing)}" if missing else "has a token twice"
            raise ValueError(f"WordPiece() needs distinct tokens and {', '.join(_SPECIAL)}; this vocabulary {problem}")
        self._pieces = functools.lru_cache(maxsize=1 << 16)(self._cut)

    @classmethod
    def load(cls, path: str | PathLike) -> "WordPiece":
        """Read a vocab.txt with one token in each line. Raises: FileNotFoundError; ValueError as the class."""
        return cls(Path(path).read_text(encoding="utf-8").removesuffix("\n").split("\n"))

    def __len__(self) -> int:
        """The size of the vocabulary."""
        return len(self._tokens)

    def __repr__(self):
        return f"WordPiece({len(self):,} tokens)"

    def tokens(self, text: str) -> list[str]:
        """The pieces of a text. The name of a special token in the text is cut like any other word."""
        return [piece for word in basic_tokens(text) for piece in self._pieces(word)]

    def encode(self, text: str, *, longest: int | None = None) -> list[int]:
        """The ids of a text between [CLS] and [SEP], at most `longest` of them: a longer text loses its end.

        Raises: ValueError for a `longest` below 2, which leaves no room for [CLS] and [SEP].
        """
        pieces = self.tokens(text)
        if longest is not None:
            within("encode", "whole [2, ∞)", longest=longest)
            pieces = pieces[: longest - 2]
        return [self.vocabulary[piece] for piece in ["[CLS]", *pieces, "[SEP]"]]

    def decode(self, ids: Iterable[int]) -> str:
        """A readable text for ids: words with spaces between them, without special tokens.

        Raises: ValueError for an id outside the vocabulary; TypeError for ids that are not integers.
        """
        tokens = [self._tokens[i] for i in token_sequence("decode", list(ids), len(self))]
        return " ".join([token for token in tokens if token not in ("[PAD]", "[CLS]", "[SEP]")]).replace(" ##", "")

    def _cut(self, word):
        if len(word) > _LONGEST_WORD:
            return ["[UNK]"]
        pieces, start = [], 0
        while start < len(word):
            prefix = "##" if start else ""
            ends = range(len(word), start, -1)
            end = next((end for end in ends if prefix + word[start:end] in self.vocabulary), None)
            if end is None:
                return ["[UNK]"]
            pieces.append(prefix + word[start:end])
            start = end
        return pieces


def _cleaned(character):
    """What replaces a character: a space for white space, nothing for a control character, spaces around an ideograph.

    >>> [_cleaned(character) for character in "a\\t\\x00京"]
    ['a', ' ', '', ' 京 ']
    """
    category = unicodedata.category(character)
    if character in "\t\n\r" or category == "Zs":
        return " "
    if character == "\ufffd" or category in ("Cc", "Cf", "Co", "Cs"):
        return ""
    return f" {character} " if any(low <= ord(character) <= high for low, high in _IDEOGRAPHS) else character


def _is_punctuation(character):
    """Punctuation as in Unicode, and every other ASCII sign, such as $, + and ^."""
    ascii_sign = "!" <= character <= "~" and not character.isalnum()
    return ascii_sign or unicodedata.category(character).startswith("P")
