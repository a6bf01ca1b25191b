"""The book's labels and literature: every reference finds what it refers to, every entry is referred to."""

import re
from pathlib import Path

import build_notebooks as builder
import citations
import labels
import pytest
from pybtex.database import parse_file

ROOT = Path(__file__).resolve().parents[2]
BOOK = ROOT / "book"
CHAPTERS = sorted(BOOK.glob("[0-9][0-9]_*.md"))
TEXTS = {path.stem: path.read_text(encoding="utf-8") for path in CHAPTERS}
ENTRIES = parse_file(BOOK / "references.bib").entries
ROLES = [keys for text in TEXTS.values() for _, keys in citations.CITATION.findall(text)]
CITED = {key.strip() for keys in ROLES for key in keys.split(",")}


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_no_role_is_left_unresolved_in_the_cells_of_a_chapter(path):
    text = next(text for text in builder.texts(ROOT) if text.source == path)
    prose = [cell.source for cell in text.cells() if cell.cell_type == "markdown"]
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
