"""The EPUB edition: formulas become MathML, each with its words for those who listen."""

import re
from html import escape

import formulas  # of tools/
from docutils import nodes
from sphinx.util.math import get_node_equation_number


def tex(node: nodes.Node) -> str:
    """The formula of a node; the lines of a displayed one stand below each other, as on the site.

    >>> tex(nodes.math_block("", "a&=b\\\\\\\\ c&=d"))
    '\\\\begin{split}a&=b\\\\\\\\ c&=d\\\\end{split}'
    """
    text = node.astext()
    if not isinstance(node, nodes.math_block) or node.get("no-wrap", node.get("nowrap", False)):
        return text
    parts = [part for part in text.split("\n\n") if part.strip()]
    parts = [rf"\begin{{split}}{part}\end{{split}}" if r"\\" in part else part for part in parts]
    if len(parts) == 1:
        return parts[0]
    return r"\begin{align}\begin{aligned}" + r"\\".join(parts) + r"\end{aligned}\end{align}"


def convert(app, env):
    """Convert the formulas of all pages at once."""
    if app.builder.name != "epub":
        return
    found = {}
    for name in env.found_docs:
        for node in env.get_doctree(name).findall(lambda node: isinstance(node, (nodes.math, nodes.math_block))):
            found[tex(node), isinstance(node, nodes.math_block)] = None
    with formulas.browser() as browser:
        pairs = formulas.converted(formulas.open_page(browser), list(found))
    app.builder.book_formulas = dict(zip(found, pairs, strict=True))


def mathml(writer, node):
    """The MathML of a formula, with its words."""
    text, words = writer.builder.book_formulas[tex(node), isinstance(node, nodes.math_block)]
    text = re.sub(r"\s*\n\s*", "", re.sub(r' data-[\w-]+="[^"]*"', "", text))
    return text.replace("<math ", f'<math alttext="{escape(words)}" ', 1)


def visit_inline(writer, node):
    writer.body.append(writer.starttag(node, "span", "", CLASS="math") + mathml(writer, node) + "</span>")
    raise nodes.SkipNode


def visit_displayed(writer, node):
    number = f'<span class="eqno">({get_node_equation_number(writer, node)})</span>' if node.get("number") else ""
    writer.body.append(writer.starttag(node, "div", "", CLASS="math") + number + mathml(writer, node) + "</div>\n")
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_displayed, None))
    app.connect("env-updated", convert)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
