"""Quality and language of web pages, from counts of words, lines and trigrams of letters.

Lists, menus, error messages and generated text differ from prose in simple counts: stop words, repeated lines, symbols
per word. The frequencies of trigrams, runs of three characters of a word with a space on either side, are enough to
guess the language of a text.
"""

import functools
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..errors import within
from ..softmax import softmax

_STOP_WORDS = frozenset(["the", "be", "to", "of", "and", "that", "have", "with"])

# Signal: (lower limit, upper limit, the problem of a page outside them). The first seven follow rules of Gopher.
QUALITY_RULES = {
    "words": (50, 100_000, "too few or too many words"),
    "mean_word_length": (3, 10, "words too short or too long"),
    "symbols_per_word": (0, 0.1, "too many # and …"),
    "bullet_lines": (0, 0.9, "a list"),
    "cut_lines": (0, 0.3, "lines that are cut off with …"),
    "words_with_letters": (0.8, 1, "too few words with letters"),
    "stop_words": (2, np.inf, "no English sentences"),
    "repeated_lines": (0, 0.3, "the same lines again and again"),
    "repeated_words": (0, 0.2, "the same three words again and again"),
}


def quality_signals(text: str) -> dict[str, float]:
    """Counts that describe a page: the quality signals of `QUALITY_RULES`.

    words: their number   mean_word_length: in characters   symbols_per_word: "#" and "…"   bullet_lines, cut_lines: the
    fractions of lines that begin with a bullet or end with "…"   words_with_letters: their fraction   stop_words: how
    many of eight frequent English words occur   repeated_lines: the fraction of lines that repeat an earlier line
    repeated_words: the words in the most frequent trigram of words, if it occurs twice, divided by all words

    Source: Rae et al. 2021 (Gopher), appendix A.1.

    >>> signals = quality_signals("To be, or not to be: that is the question.")
    >>> signals["words"], signals["stop_words"], signals["repeated_lines"]
    (10, 4, 0.0)
    """
    words = text.split()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    plain = re.findall(r"\w+", text.lower())
    trigrams = Counter(zip(plain, plain[1:], plain[2:], strict=False))
    largest = max(trigrams.values(), default=0)
    return {
        "words": len(words),
        "mean_word_length": _fraction(sum(map(len, words)), words),
        "symbols_per_word": _fraction(text.count("#") + text.count("...") + text.count("…"), words),
        "bullet_lines": _fraction(sum(line.startswith(("•", "-", "*", "·", "‣")) for line in lines), lines),
        "cut_lines": _fraction(sum(line.endswith(("...", "…")) for line in lines), lines),
        "words_with_letters": _fraction(sum(any(map(str.isalpha, word)) for word in words), words),
        "stop_words": len(_STOP_WORDS & {*plain}),
        "repeated_lines": _fraction(len(lines) - len({*lines}), lines),
        "repeated_words": _fraction(3 * largest, plain) if largest > 1 else 0.0,
    }


def quality_problems(text: str) -> list[str]:
    """The problems of a page by `QUALITY_RULES`: one for each signal outside its limits.

    A page without problems may still be a bad page.

    >>> quality_problems("click here " * 40)
    ['no English sentences', 'the same three words again and again']
    """
    signals = quality_signals(text)
    return [problem for name, (low, high, problem) in QUALITY_RULES.items() if not low <= signals[name] <= high]


class LanguageGuess(NamedTuple):
    """A language, or None for a text too short or too unlike all samples, and its probability among the known ones."""

    language: str | None
    probability: float


class LanguageModel(NamedTuple):
    """For each language the log-probability of every trigram of its sample, and of a trigram that is not in it."""

    trigrams: dict[str, dict[str, float]]
    unseen: dict[str, float]


def train_language_model(samples: Mapping[str, str]) -> LanguageModel:
    """The probabilities of trigrams of letters, estimated from a sample of each language.

        ln P(abc | language) = ln (count(abc) + ½) / (total + ½ (different + 1))     (13.3)

    This is the smoothed estimate with ½ added to each count, so that a trigram that is not in the sample is unlikely,
    not impossible.
    Raises: ValueError for fewer than two languages or a sample without letters.

    >>> sorted(train_language_model({"en": "the cat", "de": "die Katze"}).trigrams["en"])
    [' ca', ' th', 'at ', 'cat', 'he ', 'the']
    """
    within("train_language_model", "[2, ∞)", languages=len(samples))
    counts = {language: Counter(_trigrams(text)) for language, text in samples.items()}
    if empty := [language for language, count in counts.items() if not count]:
        raise ValueError(f"train_language_model() needs letters in the sample of {empty[0]!r}")
    different = len(set().union(*counts.values()))
    trigrams, unseen = {}, {}
    for language, count in counts.items():
        total = count.total() + 0.5 * (different + 1)
        trigrams[language] = {trigram: float(np.log((n + 0.5) / total)) for trigram, n in count.items()}
        unseen[language] = float(np.log(0.5 / total))
    return LanguageModel(trigrams, unseen)


def guess_language(text: str, model: LanguageModel | None = None, *, min_letters: int = 20) -> LanguageGuess:
    """The language under which the trigrams of a text are most probable (naive Bayes).

        argmax over languages of Σ ln P(abc | language)

    The built-in model is trained on a paragraph and frequent words of Dutch, English, French, German, Italian,
    Portuguese and Spanish. It makes mistakes on short texts and names, and may assign another language in Latin letters
    to one of the seven. The language is None for a text with fewer than `min_letters` letters, or if less than a
    quarter of its trigrams occur in any one sample. Naive Bayes takes the n trigrams as independent. Neighbouring
    trigrams overlap, so the sum is divided by √n before the softmax that gives the probability; otherwise the
    probability would be too close to 1.

    >>> guess_language("The model reads a sentence and guesses which word is next.").language
    'en'
    >>> guess_language("Das Modell liest einen Satz und errät, welches Wort als nächstes kommt.").language
    'de'
    >>> guess_language("Модель читает предложение и угадывает слово.").language is None
    True
    """
    model = model or _built_in()
    trigrams = _trigrams(text)
    seen = max((sum(t in table for t in trigrams) for table in model.trigrams.values()), default=0)
    if not seen or seen < len(trigrams) / 4 or sum(map(str.isalpha, text)) < min_letters:
        return LanguageGuess(None, 0.0)
    scores = [sum(table.get(t, model.unseen[name]) for t in trigrams) for name, table in model.trigrams.items()]
    probability = softmax(np.array(scores) / len(trigrams) ** 0.5)
    best = int(np.argmax(probability))
    return LanguageGuess([*model.trigrams][best], float(probability[best]))


def _fraction(number, items):
    return number / len(items) if items else 0.0


def _trigrams(text):
    """The trigrams of a text in order; each word has a space on either side."""
    words = re.findall(r"[^\W\d_]+", text.lower())
    return [f" {word} "[i : i + 3] for word in words for i in range(len(word))]


@functools.cache
def _built_in():
    import tomllib  # imported here, so that `import mathllm` stays quick

    return train_language_model(tomllib.loads(Path(__file__).with_name("languages.toml").read_text(encoding="utf-8")))
