"""Make the book a file: a PDF to print, or an EPUB with MathML, from the sources of the site.

Chromium sets the formulas, draws the interactive figures as pictures and prints the pages.

    python tools/build_editions.py pdf|epub [--output FILE] [--chapters 01 02]
"""

import argparse
import base64
import json
import os
import re
import sys
import tempfile
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path

import build_site
import formulas

ROOT = build_site.ROOT
VIEW, STATE = (f"application/vnd.jupyter.widget-{what}+json" for what in ("view", "state"))
SCRIPT = '<div class="figure"><script type="{}">{}</script></div>'
WIDE = 720  # pixels of a picture, as figures on the site
OFFER = re.compile(r"^## .*?(?=^```\{toctree\})", re.DOTALL | re.MULTILINE)  # what the site shows on its first page
OPF = "{http://www.idpf.org/2007/opf}"
XHTML, MATH, SVG = (f"{{http://www.w3.org/{name}}}" for name in ("1999/xhtml", "1998/Math/MathML", "2000/svg"))
COLUMN = {"width": 627, "height": 940}  # pixels of the text on A4, with the margins of edition.css
PAPER = {"prefer_css_page_size": True, "print_background": True, "tagged": True, "outline": True}
BARE = re.compile(r"<(br|hr|img|input|col|wbr)((?:\s[^<>]*?)?)\s*/?>")  # elements that HTML does not close


# --- What is the same for both


def prepare(folder, chapters, browser):
    """A copy of the book for paper, with the chapters of these numbers, or all."""
    book = folder / "book"
    build_site.copy_book(book)
    index = (book / "index.md").read_text(encoding="utf-8")
    index = OFFER.sub("", index, count=1).replace(":hidden:\n:caption: Chapters", ":caption: Chapters")
    (book / "index.md").write_text(index.replace("\nreview\n", "\n"), encoding="utf-8")
    (book / "review.md").unlink()  # nothing to press
    if chapters:
        leave_out(book, [path for path in book.glob("notebooks/*") if not path.name.startswith(("00", *chapters))])
    for path in sorted((book / "notebooks").glob("*.ipynb")):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        for_paper(notebook, path.stem, stills(notebook, browser))
        path.write_text(json.dumps(notebook, ensure_ascii=False), encoding="utf-8")
    return book


def leave_out(book, paths):
    """Delete these notebooks; a link to one of them becomes its words."""
    names = "|".join(path.stem for path in paths)
    for path in paths:
        path.unlink()
    for path in [*book.glob("*.md"), *book.glob("notebooks/*.ipynb")]:
        text = path.read_text(encoding="utf-8")
        text = re.sub(rf"\[([^\]\[]*)\]\((?:notebooks/)?(?:{names})\.ipynb[^)]*\)", r"\1", text)
        path.write_text(text, encoding="utf-8")


def for_paper(notebook, name, pictures):
    """Leave out what is folded, and put pictures where figures move; what `check` says before an answer goes, too."""
    notebook["cells"] = [cell for cell in notebook["cells"] if "hide-cell" not in cell["metadata"].get("tags", [])]
    notebook["metadata"].pop("widgets", None)
    for cell in notebook["cells"]:
        tags = cell["metadata"].get("tags", [])
        cell["metadata"]["tags"] = ["remove-input" if tag == "hide-input" else tag for tag in tags]
        outputs = [output for output in cell.get("outputs", []) if not is_report(output)]
        if "outputs" in cell:
            cell["outputs"] = [each for output in outputs for each in still(output, name, pictures)]


def is_report(output):
    return "mathllm-report" in "".join(output.get("data", {}).get("text/html", ""))


def still(output, name, pictures):
    """An interactive figure as its picture, and a sentence that says where it moves."""
    data = output.get("data", {})
    if VIEW not in data:
        return [output]
    alt = "".join(data["text/plain"])
    picture = {"image/png": pictures[data[VIEW]["model_id"]], "text/plain": alt}
    words = f"{alt} You can move it in `notebooks/{name}.ipynb`." if alt.endswith(".") else alt
    return [
        {"output_type": "display_data", "data": picture, "metadata": {"image/png": {"alt": alt}}},
        {"output_type": "display_data", "data": {"text/markdown": f"*{words}*", "text/plain": words}, "metadata": {}},
    ]


def stills(notebook, browser):
    """A picture of each interactive figure, as its first reader sees it: PNG in base64, by the name of its model."""
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", [])]
    views = [output["data"][VIEW] for output in outputs if VIEW in output.get("data", {})]
    if not views:
        return {}
    page = formulas.open_page(browser, device_scale_factor=2, viewport={"width": WIDE, "height": 900})
    state = json.dumps(notebook["metadata"]["widgets"][STATE]).replace("</", "<\\/")
    page.set_content("".join([SCRIPT.format(STATE, state), *(SCRIPT.format(VIEW, json.dumps(view)) for view in views)]))
    page.add_style_tag(content=".mathllm-widget button { display: none; }")  # nothing to press on paper
    page.add_script_tag(url=f"{formulas.HOST}/vendor/require.js")
    page.evaluate(f"requirejs.config({{paths: {{anywidget: '{formulas.HOST}/vendor/anywidget'}}}})")
    page.add_script_tag(url=f"{formulas.HOST}/vendor/embed-amd.js")
    boxes = page.locator(f'.figure:has(script[type="{VIEW}"])')
    pictures = {}
    for view, box in zip(views, boxes.all(), strict=True):
        box.locator(".mathllm-widget, .widget-subarea > *").first.wait_for()
        pictures[view["model_id"]] = base64.b64encode(box.screenshot()).decode()
    page.close()
    return pictures


# --- The PDF


def pdf(output, chapters=()):
    """Write the PDF: printed once to learn on which page a chapter begins, and once more with these numbers."""
    with tempfile.TemporaryDirectory(dir=ROOT / ".cache") as folder, formulas.browser() as browser:
        book, pages = prepare(Path(folder), chapters, browser), Path(folder) / "pages"
        build_site.run_sphinx("singlehtml", book, pages, ["edition"])
        page = formulas.open_page(browser, pages, viewport=COLUMN)
        page.emulate_media(media="print")
        page.goto(f"{formulas.HOST}/index.html", wait_until="load")
        page.evaluate("MathJax.startup.promise")
        page.add_script_tag(path=Path(__file__).with_name("edition.js"))
        page.evaluate("arrange()")
        page.evaluate("(pages) => number(pages)", beginnings(page.pdf(**PAPER)))
        if clipped := page.evaluate("tooWide().map((box) => box.textContent.slice(0, 80))"):
            raise build_site.BuildError(f"wider than the page: {clipped}")
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_bytes(page.pdf(**PAPER))


def beginnings(document):
    """The page on which each target of a link stands, counted from 1, from the plain objects of Chromium's PDF."""
    objects = {int(name): body for name, body in re.findall(rb"\n(\d+) 0 obj\n(<<.*?)\nendobj", document, re.DOTALL)}
    catalog = next(body for body in objects.values() if b"/Type /Catalog" in body)
    leaves = list(leaves_of(objects, reference(catalog, b"Pages")))
    targets = re.findall(rb"/(\S+) \[(\d+) 0 R /XYZ", objects[reference(catalog, b"Dests")])
    return {unescaped(name): leaves.index(int(leaf)) + 1 for name, leaf in targets}


def reference(body, key):
    """The number of the object that an entry names."""
    return int(re.search(rb"/%s (\d+) 0 R" % key, body)[1])


def leaves_of(objects, number):
    """The numbers of the pages below a node of the tree of pages, in order."""
    kids = re.search(rb"/Kids \[(.*?)\]", objects[number], re.DOTALL)
    if kids is None:
        yield number
    else:
        for kid in re.findall(rb"(\d+) 0 R", kids[1]):
            yield from leaves_of(objects, int(kid))


def unescaped(name):
    """A name of a PDF, in which # and two digits stand for a byte.

    >>> unescaped(b"on#20top")
    'on top'
    """
    return re.sub(rb"#([0-9a-fA-F]{2})", lambda code: bytes.fromhex(code[1].decode()), name).decode(errors="replace")


# --- The EPUB


def epub(output, chapters=()):
    """Write the EPUB."""
    with tempfile.TemporaryDirectory(dir=ROOT / ".cache") as folder, formulas.browser() as browser:
        book, pages = prepare(Path(folder), chapters, browser), Path(folder) / "pages"
        build_site.run_sphinx("epub", book, pages, ["edition", "epub"])
        for path in pages.glob("**/*.xhtml"):
            path.write_text(well_formed(path.read_text(encoding="utf-8")), encoding="utf-8")
        declare(pages)
        pack(pages, output)


def well_formed(text):
    """HTML of the notebooks as XML: each element is closed, and no style sheet is named that is not there.

    >>> well_formed("a<br><svg>")
    'a<br/><svg xmlns="http://www.w3.org/2000/svg">'
    """
    text = BARE.sub(r"<\1\2/>", text)
    text = re.sub(r"<svg(?![^>]*xmlns)", f'<svg xmlns="{SVG.strip("{}")}"', text)
    return re.sub(r'<link [^>]*href="[^"]*/?mystnb[^"]*"[^>]*/>', "", text)


def declare(pages):
    """Say in the list of files which pages have MathML or SVG in them, as EPUB 3 wants it."""
    ET.register_namespace("", OPF.strip("{}"))
    ET.register_namespace("dc", "http://purl.org/dc/elements/1.1/")
    listed = ET.parse(pages / "content.opf")
    for item in listed.iter(f"{OPF}item"):
        if item.get("href").endswith(".xhtml"):
            tags = {element.tag for element in ET.parse(pages / item.get("href")).iter()}
            has = [name for name, tag in (("mathml", f"{MATH}math"), ("svg", f"{SVG}svg")) if tag in tags]
            properties = [*item.get("properties", "").split(), *has]
            if properties:
                item.set("properties", " ".join(properties))
    listed.write(pages / "content.opf", encoding="utf-8", xml_declaration=True)


def pack(pages, output):
    """Put the listed files into the archive, the type first and uncompressed."""
    listed = [item.get("href") for item in ET.parse(pages / "content.opf").iter(f"{OPF}item")]
    output.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(pages / "mimetype", "mimetype", zipfile.ZIP_STORED)
        for name in ["META-INF/container.xml", "content.opf", *listed]:
            archive.write(pages / name, name)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("edition", choices=["pdf", "epub"])
    parser.add_argument("--output", type=Path, help="the file (default: _editions/mathllm.pdf or .epub)")
    parser.add_argument("--chapters", nargs="*", default=[], metavar="NN", help="only chapters of these numbers")
    options = parser.parse_args()
    output = (options.output or ROOT / "_editions" / f"mathllm.{options.edition}").resolve()
    try:
        build_site.fetch()
        {"epub": epub, "pdf": pdf}[options.edition](output, tuple(options.chapters))
    except (build_site.BuildError, FileNotFoundError) as error:
        sys.exit(str(error))
    print(f"The book is in {os.path.relpath(output)}.")


if __name__ == "__main__":
    main()
