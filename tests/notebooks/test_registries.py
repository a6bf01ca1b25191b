"""The registries of symbols and terms: one meaning for a letter in a chapter, no term before its chapter; questions."""

import re
from itertools import chain
from pathlib import Path

import pytest
import registry

BOOK = Path(__file__).resolve().parents[2] / "book"
SYMBOLS, TERMS = registry.symbols(BOOK), registry.terms(BOOK)
TEXTS = {path.stem[:2]: path.read_text(encoding="utf-8") for path in sorted(BOOK.glob("[0-9][0-9]_*.md"))}
WITH_TABLE = [number for number, text in TEXTS.items() if ":::{notation}" in text]
PAPER = re.compile(r"^## Reading a paper$.*?(?=^## )", re.DOTALL | re.MULTILINE)  # with the letters of the paper


def prose(text):
    """The text of a chapter without front matter and code."""
    text = text.split("---\n", 2)[2]
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE))


def used_letters(text):
    """The letters of the formulas of a text."""
    formulas = re.findall(r"\$\$(.*?)\$\$|\$([^$]+)\$", PAPER.sub("", prose(text)), re.DOTALL)
    return set().union(*(registry.letters(display or inline) for display, inline in formulas))


def registered(number):
    return list(chain.from_iterable(row.letters for row in SYMBOLS if number in row.chapters))


@pytest.mark.parametrize(
    ("formula", "letters"),
    [
        (r"\lVert v\rVert = \sqrt d", {"v", "d"}),
        (r"e_{\text{id}}^{\mathsf T} E", {"e", "E"}),
        (r"dx_j = \sum_i du_i\,\partial u_i/\partial x_j", {"x", "u", "i", "j"}),
        (r"v \in \mathbb{R}^n, \mathcal L", {"v", "n", r"\mathbb{R}", r"\mathcal{L}"}),
        (r"\operatorname{dist}(a, b) \tag{1.2}", {"a", "b"}),
        (r"\begin{aligned} \tau &= \ell \end{aligned}", {r"\tau", r"\ell"}),
    ],
)
def test_the_letters_of_a_formula_are_found(formula, letters):
    assert registry.letters(formula) == letters


@pytest.mark.parametrize("number", TEXTS)
def test_a_chapter_asks_at_least_five_questions(number):
    assert len(re.findall(r"^:{3,}\{(predict|choose)\}", TEXTS[number], re.MULTILINE)) >= 5


@pytest.mark.parametrize("number", TEXTS)
def test_no_letter_has_two_meanings_in_a_chapter(number):
    letters = registered(number)
    assert {letter for letter in letters if letters.count(letter) > 1} == set()


@pytest.mark.parametrize("number", WITH_TABLE)
def test_a_chapter_uses_the_letters_that_are_registered_for_it_and_no_others(number):
    used, known = used_letters(TEXTS[number]), {*registered(number)}
    assert used - known == set(), "not in notation.toml"
    assert known - used == set(), "in notation.toml, but not in the chapter"


def test_a_letter_that_is_not_registered_is_noticed():
    assert used_letters("---\n---\nIf $q = 1$, then `$r$`.\n```\n$s$\n```\n## Reading a paper\n$t$\n## End\n") == {"q"}


def test_symbols_and_terms_are_whole():
    for row in SYMBOLS:
        assert row.read, row
        assert row.means, row
        assert row.chapters == tuple(sorted(row.chapters)), row
        assert {*row.chapters} <= {*TEXTS}, row
    for row in TERMS:
        assert row.chapter in TEXTS, row
        assert row.means.endswith("."), row
    names = [name.lower() for row in TERMS for name in (row.term, *row.also)]
    assert {name for name in names if names.count(name) > 1} == set()


@pytest.mark.parametrize("row", [row for row in TERMS if row.chapter in WITH_TABLE], ids=lambda row: row.term)
def test_a_term_is_introduced_in_bold_in_its_chapter(row):
    assert re.search(rf"\*\*{re.escape(row.term)}s?\*\*", " ".join(TEXTS[row.chapter].split()), re.IGNORECASE)


@pytest.mark.parametrize("number", WITH_TABLE)
def test_a_chapter_uses_no_term_of_a_later_one_unless_it_names_the_chapter(number):
    paragraphs = PAPER.sub("", prose(TEXTS[number])).split("\n\n")
    paragraphs = [text for text in paragraphs if not text.startswith("**Further reading.**")]  # titles of papers
    for row in TERMS:
        early = [text for text in paragraphs if re.search(rf"\b{re.escape(row.term)}s?\b", text, re.IGNORECASE)]
        named = re.compile(rf"chapters? {int(row.chapter)}\b", re.IGNORECASE)
        assert row.chapter <= number or all(named.search(text) for text in early), row.term
