"""Numbers of equations and figures, and references to them: each chapter counts its own.

    $$ … $$ (eq-norm)        an equation with a label          {eq}`eq-norm`         (1.2), with a link
    :label: fig-arrows       a cell with a label and           {numref}`fig-arrows`  Figure 1.1, with a link
    :caption: …              a caption

A notebook is read in JupyterLab, in Colab, on a page of GitHub: there, the label becomes an anchor in front of the
formula or caption, and the number a \\tag. book/_ext/portable.py turns these back into what Sphinx numbers itself.
"""

import functools
import re
from dataclasses import dataclass
from pathlib import Path

from notebook_text import FILE_NAME, name_parts

EQUATION = re.compile(r"^\$\$\n((?:(?!\$\$).)*?)\n\$\$ *\(([\w-]+)\) *$", re.DOTALL | re.MULTILINE)
HEADER = re.compile(r"^```\{code-cell\}.*\n((?::.*\n)+)", re.MULTILINE)
FIGURE = re.compile(r"^:label: *(fig-[\w-]+) *$", re.MULTILINE)
REFERENCE = re.compile(r"\{(eq|numref)\}`([^`]*)`")


@dataclass(frozen=True)
class Place:
    """Where a label stands: the chapter's file name without ending, and the number it has there."""

    chapter: str
    number: str


def places(book: Path) -> dict[str, Place]:
    """Every label of the book; a test sees to it that no two chapters have the same."""
    chapters = [path for path in sorted(book.glob("*.md")) if FILE_NAME.fullmatch(path.stem)]
    return {label: place for path in chapters for label, place in numbered(path).items()}


def numbered(path: Path) -> dict[str, Place]:
    """The labels of one chapter: its equations and its figures, each counted from 1."""
    return _numbered(path, path.stat().st_mtime_ns)


@functools.cache
def _numbered(path, when):
    text, chapter = path.read_text(encoding="utf-8"), int(name_parts(path)[0])
    equations = [label for _, label in EQUATION.findall(text)]
    headers = [header for header in HEADER.findall(text) if ":caption:" in header]
    figures = [label for header in headers for label in FIGURE.findall(header)]
    counted = [*enumerate(equations, 1), *enumerate(figures, 1)]
    return {label: Place(path.stem, f"{chapter}.{n}") for n, label in counted}


def with_numbers(path: Path, text: str) -> str:
    """The text with a number in each labelled equation."""
    here = numbered(path)

    def tagged(match):
        body, label = match.groups()
        return f'<a id="{label}"></a>\n\n$$\n{body}\n\\tag{{{here[label].number}}}\n$$'

    return EQUATION.sub(tagged, text)


def referred(path: Path, role: str, label: str) -> str:
    """The Markdown that stands for a reference. Raises: LookupError for a label that is none."""
    place = places(path.parent).get(label)
    if place is None or (role == "numref") != label.startswith("fig-"):
        kind = "figure" if role == "numref" else "equation"
        raise LookupError(f"no {kind} of the book has the label {label!r}")
    words = f"Figure {place.number}" if role == "numref" else f"({place.number})"
    return f"[{words}]({place.chapter}.ipynb#{label})"  # with the file's name, or JupyterLab looks for a heading


def caption(path: Path, label: str, words: str) -> str:
    """The Markdown of a figure's caption, with its number and its anchor."""
    return f'<a id="{label}"></a>\n\n**Figure {numbered(path)[label].number}.** {words}'
