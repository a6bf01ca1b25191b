"""What the texts of the book keep to: letters, terms, labels, literature, questions, and the hours of each path."""

import re
from itertools import chain

import citations
import labels
import nbformat
import pytest
import registry
from mathllm_exercises import items
from package import ROOT
from pybtex.database import parse_file

BOOK = ROOT / "book"
CHAPTERS = sorted(BOOK.glob("[0-9][0-9]_*.md"))
SYMBOLS, TERMS = registry.symbols(BOOK), registry.terms(BOOK)
TEXTS = {path.stem[:2]: path.read_text(encoding="utf-8") for path in CHAPTERS}
WITH_TABLE = [number for number, text in TEXTS.items() if ":::{notation}" in text]
PAPER = re.compile(r"^## Reading a paper$.*?(?=^## )", re.DOTALL | re.MULTILINE)  # with the letters of the paper


# One meaning for a letter in a chapter, no term before its chapter


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
    for row in (row for row in TERMS if row.chapter > number):
        early = [text for text in paragraphs if re.search(rf"\b{re.escape(row.term)}s?\b", text, re.IGNORECASE)]
        named = re.compile(rf"chapters? {int(row.chapter)}\b", re.IGNORECASE)
        assert all(named.search(text) for text in early), row.term


# Every reference finds what it refers to, every entry is referred to

ENTRIES = parse_file(BOOK / "references.bib").entries
ROLES = [keys for text in TEXTS.values() for _, keys in citations.CITATION.findall(text)]
CITED = {key.strip() for keys in ROLES for key in keys.split(",")}


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_no_role_is_left_unresolved_in_the_cells_of_a_chapter(path):
    cells = nbformat.read(ROOT / "notebooks" / f"{path.stem}.ipynb", as_version=4).cells
    prose = [cell.source for cell in cells if cell.cell_type == "markdown"]
    assert [match[0] for source in prose for match in re.finditer(r"\{[a-z:]+\}`[^`]*`", source)] == []


def test_no_two_chapters_have_the_same_label():
    owners = [label for path in CHAPTERS for label in labels.numbered(path)]
    assert len(owners) > 200
    assert {label for label in owners if owners.count(label) > 1} == set()


def test_papers_are_cited_by_their_keys_and_not_typed():
    typed = r"([A-Z][\w-]+)(?: et al\.| & [A-Z][\w-]+),? \(?((?:19|20)\d\d)\b"
    assert [name for name, text in TEXTS.items() if re.search(typed, " ".join(text.split()))] == []


def test_every_entry_is_cited_or_listed_as_further_reading():
    further = {key for key, entry in ENTRIES.items() if entry.fields.get("keywords") == "further reading"}
    assert ENTRIES.keys() - CITED - further == set()


def test_every_entry_has_an_address_and_what_a_reference_needs():
    for key, entry in ENTRIES.items():
        assert entry.persons["author"], key
        assert entry.fields["title"], key
        assert re.fullmatch(r"(19|20)\d\d", entry.fields["year"]), key
        assert {*citations.PLACES} & {*entry.fields}, key


# The hours of the three paths on the start page are the sums of what the chapters and the exercises state

TIME = re.compile(r"\bTime:\s+([^.;]+)[.;]")
WORDS = {"one": 1, "two": 2, "three": 3, "half": 0.5}
PATHS = {
    "Everything": [*range(1, 18)],
    "To the paper": [*range(1, 9), 10, 12],
    "From the model on": [10, *range(12, 18)],
}


def hours(words):
    """75 minutes -> 1.25; two and a half hours -> 2.5."""
    number = re.match(r"(\d+) minutes", words)
    return int(number[1]) / 60 if number else sum(WORDS.get(word, 0) for word in words.split())


@pytest.mark.parametrize("path", PATHS)
def test_the_hours_of_a_path_are_those_of_its_chapters_and_exercises(path):
    text = sum(hours(TIME.search(TEXTS[f"{number:02}"])[1]) for number in PATHS[path])
    work = sum(entry.minutes for number in PATHS[path] for entry in items(f"{number:02}") if entry.graded) / 60
    row = next(line for line in TEXTS["00"].splitlines() if line.startswith(f"| **{path}**"))
    assert re.findall(r"(\d+) hours", row) == [f"{text:.0f}", f"{text + work:.0f}"]
