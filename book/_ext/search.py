"""The data of the search: every section of every page, with its title, its words, and the terms that it introduces.

They stand in a script, not in a file of JSON, so that the search also works on pages opened without a server. Sphinx's
own index, which knows whole pages only, is not made.
"""

import json
import re
from pathlib import Path

import registry
from docutils import nodes

LETTERS = {"alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "eta": "η", "theta": "θ",
           "lambda": "λ", "mu": "μ", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "phi": "φ", "nabla": "∇",
           "cdot": "·", "times": "×", "approx": "≈", "le": "≤", "ge": "≥", "neq": "≠", "infty": "∞", "sum": "Σ",
           "partial": "∂", "odot": "⊙", "top": "ᵀ", "to": "→", "in": "∈", "pm": "±", "ldots": "…", "dots": "…",
           "ln": "ln", "exp": "exp", "log": "log", "max": "max", "min": "min", "cos": "cos"}  # fmt: skip
REST = ("values", "gradients_checked", "bibliography")  # lists of everything: found, but last
UNREAD = (nodes.math_block, nodes.literal_block, nodes.comment, nodes.raw, nodes.image, nodes.title, nodes.target)


def plain(formula: str) -> str:
    """A short formula as a line of text.

    >>> plain(r"\\sqrt{d_k}"), plain(r"\\hat p_i \\le \\tfrac12\\ln N"), plain(r"\\frac{QK^\\top}{\\sqrt{d_k}}")
    ('√d_k', 'p_i ≤ 1/2 ln N', 'QK^ ᵀ /√d_k')
    """
    text = re.sub(r"\\sqrt\s*", "√", formula)
    text = re.sub(r"\\[td]?frac\s*(\w|{[^{}]*})\s*", r"\1/", text)
    text = re.sub(r"\\([A-Za-z]+)", lambda match: f" {LETTERS.get(match[1], '')} ", text)
    text = re.sub(r"\\(.)|[{}]", lambda match: " " if match[1] else "", text)
    return " ".join(text.split())


def words(node: nodes.Node) -> str:
    """The text of a node, without code, what it printed, and displayed formulas."""
    if isinstance(node, nodes.Text):
        return node.astext()
    if isinstance(node, nodes.math):
        return plain(node.astext())
    if isinstance(node, UNREAD) or "cell" in node.get("classes", ()):
        return ""
    between = "" if isinstance(node, nodes.TextElement) else " "
    return between.join(filter(None, map(words, node.children)))


def sections(page: str, doctree: nodes.document, glossary: dict[str, registry.Term]) -> list[dict]:
    """The sections of a page: address, title, title of the page, words, and the terms that it introduces."""
    found, title = [], ""
    for section in doctree.findall(nodes.section):
        heading = words_of_title(section)
        title = title or heading
        own = [child for child in section.children if not isinstance(child, nodes.section)]
        text = " ".join(" ".join(filter(None, map(words, own))).split())
        bold = [strong.astext() for child in own for strong in child.findall(nodes.strong)]
        terms = [name for name in bold for name in introduced(name, page, glossary)]
        address = f"{page}.html" + f"#{section['ids'][0]}" * bool(found)
        row = {"at": address, "title": heading, "page": title, "text": text, "terms": " | ".join(terms)}
        found.append(row | {"weight": weight(page) * (0.4 if "exercises" in section.parent.get("ids", ()) else 1)})
    return found


def introduced(bold, page, glossary):
    """The names of what stands in bold; none where the glossary says that another chapter introduces it."""
    row = glossary.get(bold.lower())
    if row is None:
        return [bold]
    return [row.term, *row.also] if page.startswith(f"notebooks/{row.chapter}_") else []


def words_of_title(section):
    return " ".join("".join(map(words, section.next_node(nodes.title).children)).split())


def weight(page):
    """How much a result counts for where it stands: a chapter teaches, a list only mentions."""
    return 1 if page.startswith("notebooks/") else 0.1 if page in REST else 0.4


def leave_out_the_usual_index(app):
    app.builder.search = False
    app.book_sections = []
    rows = registry.terms(Path(app.srcdir))
    app.book_glossary = {name.lower(): row for row in rows for name in (row.term, *row.also)}


def add_page(app, pagename, templatename, context, doctree):
    if doctree is not None and pagename != "review":  # its cards stand in their chapters, too
        app.book_sections += sections(pagename, doctree, app.book_glossary)


def search_page(app):
    return [("search", {"title": "Search"}, "search.html")] if app.builder.format == "html" else []


def write(app, exception):
    """Write the sections next to the scripts."""
    if exception is None and app.builder.format == "html":
        rows = sorted(app.book_sections, key=lambda row: row["at"])
        data = json.dumps(rows, ensure_ascii=False, separators=(",", ":"))
        (Path(app.outdir) / "_static" / "search_data.js").write_text(f"bookSections = {data};\n", encoding="utf-8")


def setup(app):
    app.connect("builder-inited", leave_out_the_usual_index)
    app.connect("html-page-context", add_page)
    app.connect("html-collect-pages", search_page)
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": False}
