"""The tokenizer: any text to ids and back without loss, because its alphabet is the 256 bytes."""

import functools
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from operator import index
from pathlib import Path
from typing import Any

from ..errors import within
from .bpe import _BYTES, _PRINTABLE, apply_merges, learn_merges, merge_ranks

_SPACE = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"  # Unicode's; \s adds four control codes
# GPT-2 writes a printable byte as the character of this number, and the other 68 bytes as the characters from 256 on
_CHARACTERS = {byte[0]: chr(n) for byte, n in zip(_BYTES, [*_PRINTABLE, *range(256, 324)], strict=True)}
_NUMBERS = {character: byte for byte, character in _CHARACTERS.items()}


@functools.cache
def _patterns() -> tuple[re.Pattern, re.Pattern]:
    r"""GPT-2's pattern, and one that splits at digits, written for Python's `re`, which has no \p{L} and \p{N}.

    There \w matches letters, numbers and "_", and \d matches decimal digits only. The other numbers (², ½, Ⅷ …), which
    all lie below 0x20000, are therefore listed: \p{L} is \w without \d, "_" and these, \p{N} is \d with these. Letters
    newer than Python's tables of Unicode count as punctuation.
    """
    others = "".join(c for c in map(chr, range(0x20000)) if unicodedata.category(c) in ("Nl", "No"))
    letter, number = rf"[^\W\d_{others}]", rf"[\d{others}]"
    words = re.compile(
        rf"'s|'t|'re|'ve|'m|'ll|'d| ?{letter}+| ?{number}+| ?(?:[^\w{_SPACE}]|_)+"
        rf"|[{_SPACE}]+(?![^{_SPACE}])|[{_SPACE}]+"
    )
    return words, re.compile(rf"{number}|[^\d{others}]+")


def pre_tokenize(text: str, *, single_digits: bool = False) -> list[str]:
    r"""Cut a text into words with the space before them, numbers, punctuation and spaces; no token reaches across.

    `single_digits` makes every digit a piece of its own, as SmolLM2 does. The pieces add up to the text.
    Source: Radford et al. 2019, §2.2, and the code of GPT-2:

        's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+

    >>> pre_tokenize("It's 2026, isn't it?")
    ['It', "'s", ' 2026', ',', ' isn', "'t", ' it', '?']
    """
    words, digits = _patterns()
    if single_digits:
        return [word for part in digits.findall(text) for word in words.findall(part)]
    return words.findall(text)


class Tokenizer:
    """Byte-level BPE: from text to ids and back to the same text, for every text if all 256 bytes have an id.

    vocabulary: {bytes: id}; merges: pairs of bytes in their order; special_tokens: {text: id}, recognised before
    anything else and never cut; unknown: the id that replaces a byte without an id. (SmolLM2 lacks 21 bytes, among them
    those that UTF-8 never uses. Without `unknown` such text is refused.)

    Raises: ValueError for a vocabulary that lacks the result of a merge, or that uses an id twice.

    >>> tokenizer = train_tokenizer("low lower lowest " * 9, 262)
    >>> tokenizer.encode("lowest!"), tokenizer.decode([257, 0])
    ([257, 68, 82, 83, 0], 'low!')
    """

    def __init__(
        self,
        vocabulary: Mapping[bytes, int], merges: Iterable[tuple[bytes, bytes]],
        special_tokens: Mapping[str, int] | None = None, *, single_digits: bool = False, unknown: int | None = None,
    ):  # fmt: skip
        self.vocabulary = dict(vocabulary)
        self.merges = [(left, right) for left, right, *_count in merges]
        self.special_tokens = dict(special_tokens or {})
        self.single_digits, self.unknown = single_digits, unknown
        self._check()
        self._ranks = merge_ranks(self.merges)
        self._bytes = {i: token for token, i in self.vocabulary.items()}
        self._bytes |= {i: token.encode() for token, i in self.special_tokens.items()}
        longest_first = sorted(self.special_tokens, key=len, reverse=True)
        self._special = re.compile("(" + "|".join(map(re.escape, longest_first)) + ")") if longest_first else None
        self._word_ids = functools.lru_cache(maxsize=1 << 16)(self._encode_word)

    def _check(self):
        if missing := [left + right for left, right in self.merges if left + right not in self.vocabulary]:
            raise ValueError(f"Tokenizer() needs an id for {missing[0]!r}, which its merges produce")
        ids = [*self.vocabulary.values(), *self.special_tokens.values()]
        if len(set(ids)) < len(ids):
            ((twice, _count),) = Counter(ids).most_common(1)
            raise ValueError(f"Tokenizer() needs one token per id, but id {twice} stands for several")

    def __len__(self) -> int:
        """The size V that an embedding table needs: one more than the largest id."""
        return max(self._bytes) + 1

    def __repr__(self):
        return f"Tokenizer({len(self):,} tokens, {len(self.merges):,} merges)"

    def encode(self, text: str, *, special: bool = True) -> list[int]:
        """The ids of a text. With `special=False`, right for text from users, special tokens are ordinary text.

        Raises: ValueError for half of a surrogate pair, which is no character and has no bytes, and for a byte that is
        not in the vocabulary, unless there is an id for unknown bytes.
        """
        try:
            text.encode()
        except UnicodeEncodeError as error:
            at = error.start
            raise ValueError(f"encode() needs text, got {text[at]!r} at {at}, half of a surrogate pair") from None
        ids = []
        for part in self._special.split(text) if special and self._special else [text]:
            if special and part in self.special_tokens:
                ids.append(self.special_tokens[part])
                continue
            for word in pre_tokenize(part, single_digits=self.single_digits):
                ids += self._word_ids(word)
        return ids

    def _encode_word(self, word: str) -> list[int]:
        ids = [self.vocabulary.get(token, self.unknown) for token in apply_merges(word.encode(), self._ranks)]
        if None in ids:
            raise ValueError(f"encode() got {word!r}, which has a byte that is not in the vocabulary (see chapter 13)")
        return ids

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """The bytes of a sequence of ids; a character may be spread over several tokens.

        Raises: ValueError for an id that is not in the vocabulary; TypeError for one that is no integer.
        """
        try:
            return b"".join([self._bytes[index(i)] for i in ids])
        except KeyError as error:
            raise ValueError(f"decode() needs ids from 0 to {len(self) - 1:,} that have a token, got {error}") from None

    def decode(self, ids: Iterable[int]) -> str:
        """The text of a sequence of ids; bytes that do not form a character become �."""
        return self.decode_bytes(ids).decode(errors="replace")

    def tokens(self, text: str) -> list[str]:
        """The tokens of a text as strings; a token that is not a whole character is shown as �."""
        return [self.decode([i]) for i in self.encode(text)]

    def truncated(self, merges: int) -> "Tokenizer":
        """The tokenizer with its first merges only: a smaller vocabulary, longer sequences.

        The special tokens get new ids, after those of the merges.
        Raises: ValueError for more merges than there are.
        """
        within("truncated", f"whole [0, {len(self.merges)}]", merges=merges)
        return _numbered(self.merges[:merges], self.special_tokens, self.single_digits)

    def save(self, path: str | Path) -> None:
        """Write one JSON file in the format of the library `tokenizers`, by convention called tokenizer.json."""
        byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
        both = {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, byte_level]}
        flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False) | {"special": True}
        special = sorted(self.special_tokens.items(), key=lambda item: item[1])
        content = {
            "version": "1.0",
            **dict.fromkeys(("truncation", "padding", "normalizer", "post_processor")),
            "added_tokens": [{"id": i, "content": token, **flags} for token, i in special],
            "pre_tokenizer": both if self.single_digits else byte_level,
            "decoder": byte_level,
            "model": {
                "type": "BPE",
                "unk_token": next((token for token, i in special if i == self.unknown), None),
                "vocab": {_show(token): i for token, i in self.vocabulary.items()} | self.special_tokens,
                "merges": [[_show(left), _show(right)] for left, right in self.merges],
            },
        }
        Path(path).write_text(json.dumps(content, ensure_ascii=False, indent=1), encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> "Tokenizer":
        """Read a tokenizer.json: what `save` wrote, or any byte-level BPE of the Hugging Face hub.

        Raises: ValueError for a file of another kind of tokenizer; FileNotFoundError.
        """
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        content = content if isinstance(content, dict) else {}
        model, cutting = content.get("model", {}), content.get("pre_tokenizer") or {}
        kinds = {part.get("type") for part in cutting.get("pretokenizers", [cutting])}
        if "merges" not in model or not {"ByteLevel"} <= kinds <= {"ByteLevel", "Digits"}:
            raise ValueError(f"Tokenizer.load() reads byte-level BPE with GPT-2's pattern; {path} is something else")
        special = {token["content"]: token["id"] for token in content.get("added_tokens", [])}
        unknown = (model["vocab"] | special).get(model.get("unk_token"))
        digits = "Digits" in kinds
        return cls.from_strings(model["vocab"], model["merges"], special, single_digits=digits, unknown=unknown)

    @classmethod
    def from_strings(
        cls, vocabulary: Mapping[str, int], merges: Iterable[str | Sequence[str]],
        special_tokens: Mapping[str, int] | None = None, **options: Any,
    ) -> "Tokenizer":  # fmt: skip
        """A tokenizer from tokens in GPT-2's alphabet, which writes every byte as a visible character (the space as Ġ).

        The files of GPT-2 and SmolLM2 are written in this alphabet. merges: pairs, or texts such as "Ġ t"
        options: single_digits, unknown
        Raises: ValueError for a token with a character that is not in this alphabet.
        """
        ordinary = {_hide(token): i for token, i in vocabulary.items() if token not in (special_tokens or {})}
        split = [merge.split(" ") if isinstance(merge, str) else merge for merge in merges]
        return cls(ordinary, [(_hide(left), _hide(right)) for left, right in split], special_tokens, **options)

    @classmethod
    def from_gpt2(cls, vocabulary: Mapping[str, int], merges: str) -> "Tokenizer":
        """A tokenizer from the content of GPT-2's two files, the table of vocab.json and the text of merges.txt.

        Its only special token is <|endoftext|>, if the vocabulary has it.
        Raises: as `from_strings`.
        """
        lines = [line for line in merges.split("\n") if line and not line.startswith("#version")]
        special = {token: i for token, i in vocabulary.items() if token == "<|endoftext|>"}
        return cls.from_strings(vocabulary, lines, special)


def train_tokenizer(
    text: str | Iterable[str], vocabulary_size: int, *, special_tokens: Iterable[str] = ("<|endoftext|>",),
    single_digits: bool = False, ties: str = "first appearance", min_count: int = 2,
) -> Tokenizer:  # fmt: skip
    """Learn a byte-level BPE tokenizer from a text or from several.

        V = 256 bytes + merges + special tokens;      GPT-2: 256 + 50,000 + 1 = 50,257   (13.2)

    Ids are given in this order. Learning stops early if no pair occurs `min_count` times. `ties`: see `learn_merges`.

    Raises: ValueError for a vocabulary too small for the bytes and the special tokens.
    Source: Radford et al. 2019, §2.2.

    >>> tokenizer = train_tokenizer("the cat sat on the mat, the cat!", 270)
    >>> tokenizer.tokens("the cat sat")
    ['the', ' cat', ' ', 's', 'at']
    """
    special_tokens = list(dict.fromkeys(special_tokens))
    least = 256 + len(special_tokens)
    within("train_tokenizer", f"[{least}, ∞)", vocabulary_size=vocabulary_size)
    words = Counter()
    for part in [text] if isinstance(text, str) else text:
        words.update(pre_tokenize(part, single_digits=single_digits))
    table = {word.encode(): count for word, count in words.items()}
    merges = learn_merges(table, vocabulary_size - least, ties=ties, min_count=min_count)
    return _numbered(merges, special_tokens, single_digits)


def gpt2_tokenizer() -> Tokenizer:
    """GPT-2's own tokenizer: 50,257 tokens.

    Raises: MissingDataError if the data package "gpt2-tokenizer" is not installed.
    Source: Radford et al. 2019.

    >>> from mathllm import data
    >>> if data.available("gpt2-tokenizer"):
    ...     gpt2_tokenizer().tokens("unprecedented tokenizers")
    ['un', 'pre', 'cedented', ' token', 'izers']
    """
    from .. import data  # imported here, so that `import mathllm` stays quick

    place = data.path("gpt2-tokenizer") / "data"
    vocabulary = json.loads((place / "encoder.json").read_text(encoding="utf-8"))
    return Tokenizer.from_gpt2(vocabulary, (place / "vocab.bpe").read_text(encoding="utf-8"))


def _numbered(merges, special_tokens, single_digits):
    """A tokenizer with ids for the bytes, the merges and the special tokens, in this order."""
    tokens = dict.fromkeys(_BYTES + [left + right for left, right, *_count in merges])  # each once
    vocabulary = {token: i for i, token in enumerate(tokens)}
    special = {token: i for i, token in enumerate(special_tokens, start=len(vocabulary))}
    return Tokenizer(vocabulary, merges, special, single_digits=single_digits)


def _show(token: bytes) -> str:
    return "".join([_CHARACTERS[byte] for byte in token])


def _hide(token: str) -> bytes:
    try:
        return bytes([_NUMBERS[character] for character in token])
    except KeyError as error:
        raise ValueError(f"a token is written in GPT-2's alphabet of 256 characters; {token!r} holds {error}") from None
