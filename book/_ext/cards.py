"""Cards that explain a symbol, a term or an equation where it is used; cards.js shows them.

A formula says which symbols of its chapter it uses (data-symbols). A term is a link to the glossary at its first use
in a section, in the chapters after the one that introduces it. All texts of the cards stand in one script, which a page
loads when the first card is wanted.
"""

import html
import json
import re
from pathlib import Path

import registry
from docutils import nodes

FORMULA = re.compile(r'(<(?:span|div) class="math notranslate nohighlight"[^>]*)>([^<]*)<')
MOST = 8  # symbols on a card
EVERYDAY = {"component", "contextual", "density", "dimension", "distance", "independent", "nucleus", "parameter",
            "penalty", "symmetric", "tangent", "trace", "truncation", "velocity"}  # fmt: skip
NO_PROSE = (nodes.title, nodes.reference, nodes.strong, nodes.literal, nodes.math, nodes.caption, nodes.literal_block)


def slug(term: str) -> str:
    """The anchor of a term on the page of the glossary.

    >>> slug("Kullback–Leibler divergence")
    'term-kullback-leibler-divergence'
    """
    return "term-" + re.sub(r"[^\w]+", "-", term.lower().replace("$", "")).strip("-")


def names(row: registry.Term) -> list[str]:
    """The names of a term that can mean nothing else: several words, a capital, or a long word of its own."""
    long = [row.term] if len(row.term) > 6 and row.term not in EVERYDAY else []
    return long + [name for name in (row.term, *row.also) if re.search(r"[A-Z -]", name) and "$" not in name]


def pattern(rows: list[registry.Term]) -> tuple[re.Pattern, dict[str, registry.Term]]:
    """What finds the terms in a text, and whose name it found. Abbreviations are found as they are written."""
    owners = {name if re.search("[A-Z]", name) else name.lower(): row for row in rows for name in names(row)}
    longest = sorted(map(re.escape, owners), key=len, reverse=True)
    return re.compile(rf"(?<![\w-])({'|'.join(longest)})s?(?![\w-])"), owners


def used(formula: str, symbols: dict[int, registry.Symbol]) -> list[int]:
    """The numbers of the symbols that a formula uses: W_Q is a symbol of its own, and not also a W and a Q."""
    rest, found = bare(formula), set()
    forms = [(bare(form), number) for number, row in symbols.items() for form in re.split(r",(?:\\ |\s)+", row.latex)]
    for form, number in sorted(forms, key=lambda pair: -len(pair[0])):
        if len(form) > 1 and form in rest:
            found.add(number)
            rest = rest.replace(form, " ")
    letters = registry.letters(rest)
    found |= {number for number, row in symbols.items() if letters & {*row.letters}}
    return sorted(found)[:MOST]


def bare(formula):
    """A formula without the spaces that do not matter."""
    return re.sub(r"(?<![A-Za-z])\s+|\s+(?![A-Za-z])", "", formula)


def link_terms(app, doctree, docname):
    """Give the glossary anchors, and lead to them from the first use of each term in each section of a chapter."""
    if docname == "glossary":
        rows = {row.term: row for row in registry.terms(Path(app.srcdir))}
        for strong in doctree.findall(nodes.strong):
            if strong.astext() in rows:
                strong["ids"].append(slug(strong.astext()))
    elif chapter := re.match(r"notebooks/(\d\d)_", docname):
        known = [row for row in registry.terms(Path(app.srcdir)) if row.chapter < chapter[1]]
        search, owners = pattern(known)
        for section in [node for node in doctree.findall(nodes.section) if known and _depth(node) == 2]:
            link_terms_of(section, search, owners)


def link_terms_of(section, search, owners):
    seen = set()
    for text in [text for text in section.findall(nodes.Text) if _is_prose(text)]:
        parts, place = [], 0
        for match in search.finditer(text):
            row = owners[match[1]]
            if row.term not in seen:
                seen.add(row.term)
                link = nodes.reference("", match[0], refuri=f"../glossary.html#{slug(row.term)}", classes=["book-term"])
                parts += [nodes.Text(text[place : match.start()]), link]
                place = match.end()
        if parts:
            text.parent.replace(text, [*parts, nodes.Text(text[place:])])


def _depth(node):
    return isinstance(node, nodes.section) + _depth(node.parent) if node.parent else 0


def _is_prose(text):
    node = text.parent
    if not isinstance(node, nodes.paragraph | nodes.emphasis):
        return False
    while node.parent:
        if isinstance(node, NO_PROSE) or "cell" in node.get("classes", ()):
            return False
        node = node.parent
    return True


def name_symbols(app, pagename, templatename, context, doctree):
    """Write the symbols that each formula uses next to it, and keep the equations for their cards."""
    if chapter := re.match(r"notebooks/(\d\d)_", pagename):
        rows = enumerate(registry.symbols(Path(app.srcdir)))
        here = {number: row for number, row in rows if chapter[1] in row.chapters}

        def with_symbols(match):
            numbers = " ".join(map(str, used(html.unescape(match[2]), here)))
            return f'{match[1]} data-symbols="{numbers}">{match[2]}<' if numbers else match[0]

        context["body"] = FORMULA.sub(with_symbols, context["body"])
        blocks = doctree.findall(nodes.math_block)
        app.book_equations |= {f"equation-{node['label']}": node.astext() for node in blocks if node.get("label")}


def write(app, exception):
    """Write the texts of all cards."""
    if exception is None and app.builder.format == "html":
        book = Path(app.srcdir)
        data = {
            "symbols": [[row.latex, row.means, row.shape, row.code] for row in registry.symbols(book)],
            "terms": {slug(row.term): [row.term, row.means, row.also, row.chapter] for row in registry.terms(book)},
            "equations": app.book_equations,
        }
        text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
        (Path(app.outdir) / "_static" / "cards_data.js").write_text(f"bookCards = {text};\n", encoding="utf-8")


def start(app):
    app.book_equations = {}


def setup(app):
    app.connect("builder-inited", start)
    app.connect("doctree-resolved", link_terms)
    app.connect("html-page-context", name_symbols, priority=600)  # after all that looks for formulas
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": False}
