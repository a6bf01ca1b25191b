"""The page and the file that say how to cite the book agree with each other and with the package."""

import re
from pathlib import Path

import yaml
from pybtex import database

import mathllm

ROOT = Path(__file__).resolve().parents[1]


def test_page_and_file_name_the_same_book_and_the_version_of_the_package():
    file = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    page = (ROOT / "book" / "citing.md").read_text(encoding="utf-8")
    printed = re.search(r"```bibtex\n(.*?)```", page, re.DOTALL)[1]
    entry = database.parse_string(printed, "bibtex").entries["mathllm2026"]
    book = file["preferred-citation"]
    assert file["version"] == mathllm.__version__
    assert book["title"] == file["title"] == entry.fields["title"]
    assert str(book["year"]) == entry.fields["year"]
    assert book["notes"] == entry.fields["note"]
    assert mathllm.__version__ in book["notes"]
    assert f"{{{{{book['authors'][0]['name']}}}}}" in page
