"""The site: Sphinx renders the text of book/ and the executed notebooks, and executes nothing itself."""

import base64
import json
import os
import re
import struct
import sys
import tomllib
from pathlib import Path

from mathllm_exercises import bank
from mathllm_exercises.compare import show
from myst_nb.core.render import NbElementRenderer

import mathllm
from mathllm import reference

sys.path.append(str(Path(__file__).parent / "_ext"))
import citations  # of tools/, which tools/build_site.py puts into the path
import portable
import registry

project = "The Mathematics of Large Language Models"
author = ""
language = "en"

extensions = ["myst_nb", "sphinx_copybutton", "sphinx_design", "sphinxcontrib.bibtex"]
edition = tags.has("edition")  # a book to print or to load: tools/build_editions.py  # noqa: F821
extensions += ["landing", *(["edition"] if edition else ["cards", "head", "icons", "review", "search"])]  # of _ext
exclude_patterns = ["[0-9][0-9]_*.md", "web", "lite"]  # of the chapters, the notebooks are rendered

# Text and notebooks.
nb_execution_mode = "off"
nb_output_stderr = "error"
nb_merge_streams = True
nb_render_markdown_format = "myst"  # an answer may hold formulas
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
myst_links_external_new_tab = False
numfig = True
math_numfig = True
math_eqref_format = "({number})"
bibtex_bibfiles = ["references.bib"]
bibtex_default_style = "plain"
bibtex_reference_style = "author_year"
copybutton_exclude = ".linenos, .gp, .go"

# Pages. Everything they load is their own: tools/build_site.py brings vendor/.
html_theme = "sphinx_book_theme"
html_title = project
address = os.environ.get("MATHLLM_SITE", "").rstrip("/")  # where the site will stand: book/_ext/head.py
html_baseurl = address and f"{address}/"
book_repository = os.environ.get("MATHLLM_REPOSITORY", "")
html_favicon = "_static/vector.svg"
html_logo = "_static/vector.svg"
html_static_path = ["_static"]
html_scaled_image_link = False
html_use_index = epub_use_index = False
templates_path = ["_templates"]
html_css_files = ["book.css"]
html_js_files = [
    (f"{name}.js", {"defer": "defer"}) for name in ("element", "formulas", "paper", "questions", "cards", "progress")
]
html_context = {"default_mode": "auto"}  # as the reader's system has it, until they choose
html_show_copyright = False
html_show_sphinx = False
html_theme_options = {
    "extra_footer": "<p>Text under CC BY 4.0, code under the MIT licence.</p>",
    "footer_content_items": ["extra-footer"],
    "logo": {"text": project, "alt_text": ""},
    "navbar_center": [],
    "navbar_end": [],
    "navbar_persistent": [],
    "navbar_start": [],
    "pygments_dark_style": "a11y-high-contrast-dark",
    "pygments_light_style": "a11y-high-contrast-light",
    "search_bar_text": "Search the book",
    "show_toc_level": 2,
    "use_download_button": True,
    "use_fullscreen_button": False,
}
mathjax_path = "vendor/mathjax/tex-chtml.js"
mathjax3_config = {"chtml": {"scale": 0.96}}
nb_ipywidgets_js = {"widgets.js": {"defer": "defer"}}  # loads the rest when a figure comes near

if edition:
    html_theme, html_theme_options, templates_path, html_sidebars = "basic", {}, [], {"**": []}
    version = release = mathllm.__version__
    pygments_style = "a11y-high-contrast-light"
    copybutton_selector = "none"  # nothing to press
    html_static_path, html_css_files, html_js_files, html_favicon, html_logo = ["_edition"], ["edition.css"], [], "", ""
    html_math_renderer = "mathml" if tags.has("epub") else "mathjax"  # noqa: F821
    epub_title = project
    epub_author = epub_publisher = "The authors of The Mathematics of Large Language Models"
    epub_description = "The mathematics inside a language model, derived, computed and tried."
    epub_copyright = "Text under CC BY 4.0, code under the MIT licence."
    epub_scheme, epub_identifier, epub_uid = "name", "mathllm-textbook", "mathllm-textbook"
    epub_css_files, epub_tocdepth, epub_show_urls = ["edition.css"], 2, "no"


SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def with_alternative_text(render_image):
    """Give each figure the text that mathllm.figures.plots.show stored with it; one without text stops the build."""

    def render(self, data):
        alt = data.output_metadata.get(data.mime_type, {}).get("alt", "")
        if not alt.strip():
            self.logger.warning("a figure without alternative text", subtype="image", line=data.line)
        images = render_image(self, data)
        for image in images:
            image["alt"], image["loading"] = alt, "eager" if edition else "lazy"  # paper has no reader who scrolls
            if data.mime_type == "image/png":  # room is kept for it: its size stands at the head of the file
                head = base64.b64decode(data.string[:64])
                image["width"], image["height"] = map(str, struct.unpack(">II", head[16:24]))
        return images

    return render


def name_files_outside(app, docname, source):
    """A link to a practice notebook opens it in the browser, or becomes its name where the site cannot.

    In the table of chapters, which has no room for names, it then leads to the chapter's cards; paper has no link.
    """
    if docname.startswith("notebooks/"):
        if app.tags.has("lite"):  # single quotes, since these lines stand in a file of JSON
            link = r"<a href='../lite/notebooks/index.html?path=\2'>\1</a>"
            source[0] = re.sub(r"\[([^\]\[]*)\]\(\.\./(exercises/practice/[^)\s]+)\)", link, source[0])
        cards = "" if edition else r" ([exercises](\1#exercises))"
        source[0] = re.sub(r" \(\[exercises\]\(\.\./exercises/practice/([^)\s]+)\)\)", cards, source[0])
        source[0] = re.sub(r"\[([^\]\[]*)\]\(\.\./([^)\s]+)\)", r"\1 (`\2`)", source[0])


def keep_formulas_together(app, pagename, templatename, context, doctree):
    """No line ends before the full stop after a formula, or after the bracket in front of it."""
    formula = r'[(“‘]*<span class="math [^"]*">[^<]*</span>[^\s<]*'
    if "body" in context:
        context["body"] = re.sub(formula, r'<span class="book-together">\g<0></span>', context["body"])


def name_things_as_they_read(app, pagename, templatename, context, doctree):
    """A folded cell is called what is written on it, and the entries of the bibliography are items of their list."""
    for unfit, fit in ((' aria-label="Toggle hidden content"', ""), (' role="doc-biblioentry"', ' role="listitem"')):
        context["body"] = context.get("body", "").replace(unfit, fit)


def list_values(app, docname, source):
    """Put what the documents print, and what is right, into the page of sources: values by chapter, and the errata."""
    if docname == "values":
        notebooks = sorted((Path(app.srcdir) / "notebooks").glob("[0-9][0-9]_*.ipynb"))
        tables = [values_table(path.stem) for path in notebooks if not path.stem.startswith("00")]
        errata = tomllib.loads((Path(app.srcdir) / "errata.toml").read_text(encoding="utf-8"))["erratum"]
        source[0] = source[0].replace("{{errata}}", errata_table(errata)).replace("{{values}}", "\n\n".join(tables))


def values_table(notebook):
    lines = [f"## [Chapter {notebook[:2]}](notebooks/{notebook}.ipynb)", ""]
    lines += ["| what | printed | computed | verdict |", "|---|---|---|---|"]
    for row in reference.rows(notebook[:2]):
        printed, computed = reference.shown(row, row.expected), reference.shown(row, row.computed)
        verdict = "✓" if row.agrees else f"✗ {row.note}" + f" (erratum {row.erratum})" * bool(row.erratum)
        cells = [f"{row.statement} ({row.document}, {row.section})", printed if row.printed else f"<em>{printed}</em>"]
        cells += ["graded by hand" if row.kind == "text" else computed, verdict]
        if row.basis == "setting":
            cells[2:] = ["", reference.CHOICE]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def errata_table(errata):
    lines = ["| code | source | what it says | what is right |", "|---|---|---|---|"]
    lines += [f"| {each['code']} | {each['source']} | {each['says']} | {each['right']} |" for each in errata]
    return "\n".join(lines)


def list_symbols_and_terms(app, docname, source):
    """Put the registries of symbols and terms into their pages."""
    if docname == "notation":
        table = registry.notation_table(registry.symbols(Path(app.srcdir)), with_chapters=True)
        source[0] = source[0].replace("{{symbols}}", table)
    if docname == "glossary":
        source[0] = source[0].replace("{{glossary}}", registry.glossary(registry.terms(Path(app.srcdir))))


def list_gradients(app, docname, source):
    """Put the measured errors of every gradient, and the digits that are kept, into their page."""
    if docname == "gradients_checked":
        for name, table in (("gradients", gradients_table), ("digits", digits_table)):
            rows = json.loads((Path(app.srcdir) / "_data" / f"{name}.json").read_text(encoding="utf-8"))
            source[0] = source[0].replace(f"{{{{{name}}}}}", table(rows))


def gradients_table(rows):
    columns = [f"{what}, {dtype}" for dtype in ("float64", "float32") for what in ("value", "gradient")]
    lines = ["| chapter | primitive | differences | " + " | ".join(f"PyTorch: {column}" for column in columns) + " |"]
    lines.append("|---" * (3 + len(columns)) + "|")
    for row in rows:
        chapter = f"{row['chapter']:02}" if row["chapter"] else "tensors"
        errors = [row["differences"]] + [(row["pytorch"] or {}).get(column) for column in columns]
        shown = ["–" if error is None else f"10{str(error).translate(SUPERSCRIPTS)}" for error in errors]
        lines.append("| " + " | ".join([chapter, f"`{row['name']}`", *shown]) + " |")
    return "\n".join(lines)


def digits_table(rows):
    dtypes = ("float64", "float32", "float16")
    lines = ["| chapter | primitive | arguments | " + " | ".join(dtypes) + " |", "|---" * (3 + len(dtypes)) + "|"]
    for row in rows:
        kept = [" / ".join(f"{digits:.1f}" for digits in row[dtype]) for dtype in dtypes]
        lines.append("| " + " | ".join([f"{row['chapter']:02}", f"`{row['name']}`", row["where"], *kept]) + " |")
    return "\n".join(lines)


def list_other_libraries(app, docname, source):
    """Put functions and their counterparts in other libraries into their page."""
    if docname == "other_libraries":
        tables = tomllib.loads((Path(app.srcdir) / "other_libraries.toml").read_text(encoding="utf-8"))
        for name, rows in tables.items():
            for library in dict.fromkeys(row.get("library", "") for row in rows):
                chosen = [row for row in rows if row.get("library", "") == library]
                source[0] = source[0].replace(f"{{{{{name}{library}}}}}", libraries_table(chosen))


def libraries_table(rows):
    lines = [":::{table}", ":class: book-calls", ""]
    lines += ["| chapter | this book, and below it the other library | differences |", "|:--:|---|---|"]
    for row in rows:
        checked = f" (`{row['test'].split('::')[0]}`)" if "test" in row else ""
        lines.append(f"| {row['chapter']} | `{row['ours']}`<br>`{row['theirs']}` | {row['differs']}{checked} |")
    return "\n".join([*lines, ":::"])


def list_answers(app, docname, source):
    """Put the questions of *Check yourself* that a code cell checks into their page, with folded answers."""
    if docname == "answers":
        parts = []
        for path in sorted((Path(app.srcdir) / "notebooks").glob("[0-9][0-9]_*.ipynb")):
            number, subject = path.stem.split("_", 1)
            asked = [each for each in bank.records() if each["id"].startswith(f"{number}.{subject}.quick_")]
            parts += [f"## [Chapter {number}](notebooks/{path.name})", questions_with_answers(asked)] if asked else []
        source[0] = source[0].replace("{{answers}}", "\n\n".join(parts))


def questions_with_answers(records):
    questions = [f"1. {record['task']}" for record in records]
    answers = [f"1. {answer_in_words(bank.make(record).expected())}" for record in records]
    return "\n".join([*questions, "", ":::{dropdown} Answers", *answers, ":::"])


def answer_in_words(right):
    if isinstance(right, (str, list, tuple)) or getattr(right, "ndim", 0):
        return right if isinstance(right, str) else show(right)
    return f"{round(float(right), 4):.10g}"


def cite_as_notebooks_do(app, docname, source):
    """A citation on a page that is no notebook: authors and year, linked to the paper."""
    papers = Path(app.srcdir) / "references.bib"
    source[0] = citations.CITATION.sub(lambda role: citations.cited(papers, role[1], role[2]), source[0])


def offer_to_run(app, pagename, templatename, context, doctree):
    """A button that opens the very notebook in the edition that runs in the browser, where that is part of the site."""
    if app.tags.has("lite") and pagename.startswith("notebooks/"):
        address = f"../lite/notebooks/index.html?path={pagename}.ipynb"
        button = {"type": "link", "text": "Run", "icon": "fas fa-play", "url": address, "label": "run-button"}
        context["header_buttons"].insert(0, button | {"tooltip": "Run this chapter here, in the browser"})


def setup(app):
    NbElementRenderer.render_image = with_alternative_text(NbElementRenderer.render_image)
    app.connect("source-read", list_values)
    app.connect("source-read", list_symbols_and_terms)
    app.connect("source-read", list_gradients)
    app.connect("source-read", list_other_libraries)
    app.connect("source-read", list_answers)
    app.connect("source-read", cite_as_notebooks_do)
    app.connect("source-read", name_files_outside)
    app.connect("source-read", portable.read_notebook)
    app.connect("html-page-context", keep_formulas_together)
    app.connect("html-page-context", name_things_as_they_read)
    app.connect("html-page-context", offer_to_run, priority=502)  # when the theme has made its own buttons
