"""The registries of the book's symbols and terms (notation.toml, glossary.toml), and the tables that are made of them.

A symbol has, in one chapter, one meaning: `letters` are those that a formula of its chapters may use in this meaning.
"""

import functools
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

GREEK = (
    "alpha|beta|gamma|delta|(?:var)?epsilon|zeta|eta|theta|kappa|lambda|mu|nu|xi|pi|rho|sigma|tau|(?:var)?phi|chi|psi|"
    "omega|ell|Gamma|Delta|Theta|Lambda|Xi|Pi|Sigma|Phi|Psi|Omega"
)
LETTER = re.compile(
    r"\\(?P<style>math(?:bb|cal|frak))\s*\{?(?P<styled>[A-Za-z])\}?"  # a letter of its own: the set ℝ is no variable R
    r"|\\(?:text|operatorname|mathrm|mathsf|mathbf|tag|begin|end)\*?\s*(?:\{[^{}]*\}|[A-Za-z])"  # words
    rf"|(?P<greek>\\(?:{GREEK})(?![A-Za-z]))"
    r"|\\[A-Za-z]+"
    rf"|d(?=[a-z](?![a-z])|\\(?:{GREEK})(?![A-Za-z]))"  # the d of dx
    r"|(?P<latin>[A-Za-z])"
)


@dataclass(frozen=True)
class Symbol:
    """A row of notation.toml."""

    latex: str
    letters: tuple[str, ...]
    read: str
    means: str
    chapters: tuple[str, ...]
    shape: str = ""
    code: str = ""


@dataclass(frozen=True)
class Term:
    """A row of glossary.toml: the standard term, other names of the same, and where it is introduced."""

    term: str
    chapter: str
    means: str
    also: tuple[str, ...] = ()


def symbols(book: Path) -> list[Symbol]:
    """The symbols, in the order of the file."""
    return [Symbol(**row) for row in _rows(book / "notation.toml", "symbol")]


def terms(book: Path) -> list[Term]:
    """The terms, in alphabetical order."""
    return sorted((Term(**row) for row in _rows(book / "glossary.toml", "term")), key=lambda row: row.term.lower())


_parsed = functools.cache(tomllib.loads)  # the builders ask for the same table again and again


def _rows(path, kind):
    rows = _parsed(path.read_text(encoding="utf-8"))[kind] if path.exists() else []
    return [{key: tuple(value) if isinstance(value, list) else value for key, value in row.items()} for row in rows]


def letters(formula: str) -> set[str]:
    """The letters that a formula uses as symbols. Words are none, and in dx only x is.

    >>> sorted(letters(r"\\lVert v\\rVert = \\max_i |v_i| \\in \\mathbb{R}, \\text{if } d\\theta < dx"))
    ['\\\\mathbb{R}', '\\\\theta', 'i', 'v', 'x']
    """
    found = set()
    for match in LETTER.finditer(formula):
        if match["styled"]:
            found.add(f"\\{match['style']}{{{match['styled']}}}")
        elif letter := match["greek"] or match["latin"]:
            found.add(letter)
    return found


def notation_table(rows: list[Symbol], with_chapters: bool = False) -> str:
    """A table of symbols in Markdown."""
    head = ["symbol", "read", "meaning", "shape", "in code"] + ["chapters"] * with_chapters
    lines = ["| " + " | ".join(head) + " |", "|:--:" + "|---" * (len(head) - 1) + "|"]
    for row in rows:
        code = f"`{row.code}`" if row.code else ""
        cells = [f"${row.latex}$", row.read, row.means, row.shape, code] + [", ".join(row.chapters)] * with_chapters
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def glossary(rows: list[Term]) -> str:
    """A list of terms in Markdown, each with its meaning, its other names and its chapter."""
    entries = []
    for row in rows:
        also = f" Also called: {', '.join(row.also)}." if row.also else ""
        entries.append(f"**{row.term}**\n: {row.means}{also} (Chapter {int(row.chapter)})")
    return "\n\n".join(entries)
