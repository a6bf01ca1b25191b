"""The cells of a chapter's notebook: what the text says, and what its options ask for.

    :caption: WORDS                  the words below a figure, whose number and label (fig-…) they carry (labels.py)
    :tolerance: 1e-3                 how closely the stored and a fresh output of the cell must agree (tolerance.py)
    :evidence: ROW = EXPRESSION      compares a printed value with ours, in a folded cell behind this one

In the prose, references to equations and figures get their numbers, and citations their authors (citations.py). The
directive `:::{notation}` with nothing in it stands for the table of the chapter's symbols (book/_ext/registry.py), and
`:::{predict}` and `:::{choose}` are questions to the reader (questions.py).
"""

import ast
import functools
import re
import sys
from pathlib import Path

import citations
import labels
import questions
import tolerance
from exercise_cells import chapter_cards
from nbformat.v4 import new_code_cell, new_markdown_cell
from notebook_text import SourceError, name_parts, read_cells

from mathllm import reference

sys.path.append(str(Path(__file__).resolve().parents[1] / "book" / "_ext"))
import registry

NOTATION = re.compile(r"^:::\{notation\}\n:::$", re.MULTILINE)
OPTIONS = {"caption", "evidence", "label", "mystnb", "tags", "tolerance"}
EVIDENCE = re.compile(r"([\w.]+) = (.+?)(?: if ((?:(?! else ).)+))?")
FOLDED = {  # for JupyterLab, and for the site
    "jupyter": {"outputs_hidden": True, "source_hidden": True},
    "mystnb": {"code_prompt_hide": "Evidence", "code_prompt_show": "Evidence"},
    "tags": ["hide-cell"],
}


def chapter_cells(path: Path, assignment: Path) -> tuple[list, dict]:
    """The cells of the notebook, without outputs, and the line in the text where each begins (id -> line).

    Raises: SourceError with file and line.
    """
    number = name_parts(path)[0]
    cells, lines = [], {}
    for n, cell in enumerate(read_cells(path, OPTIONS), 1):
        id = f"{number}-{cell.options.get('label', n)}"
        if cell.kind == "cards":
            made = cards(path, cell, assignment)
        elif cell.kind in questions.KINDS:
            made = questions.cells(path, cell, id, functools.partial(prose, path, cell))
        else:
            made = text_cells(path, cell, id)
        lines |= {one.id: cell.line for one in made if one.id.startswith(id)}
        cells += made
    return cells, lines


def cards(path, cell, assignment):
    """The cells that stand for {{exercise_cards}}."""
    if not assignment.exists():
        where = "/".join(assignment.parts[-3:])
        raise SourceError(path, cell.line, f"there is no {where} to take the exercises from")
    return chapter_cards(assignment)


def text_cells(path, cell, id):
    """A cell of the text, and those that its options put behind it."""
    label, words, evidence = (cell.options.pop(name, None) for name in ("label", "caption", "evidence"))
    if cell.kind == "markdown":
        return [new_markdown_cell(prose(path, cell, cell.source), id=id, metadata=cell.options)]
    check_tolerance(path, cell)
    cells = [new_code_cell(cell.source, id=id, metadata=cell.options)]
    if words or (label or "").startswith("fig-"):
        cells.append(new_markdown_cell(caption(path, cell, label, words), id=f"{id}-caption"))
    if evidence:
        kept = {key: cell.options[key] for key in ("tolerance",) if key in cell.options}
        cells.append(new_code_cell(evidence_source(path, cell, evidence), id=f"{id}-evidence", metadata=FOLDED | kept))
    return cells


def prose(path, cell, text):
    """A text with its numbers and citations."""

    def resolved(find, match):
        try:
            return find(*match.groups())
        except LookupError as error:
            line = cell.line + text.count("\n", 0, match.start())
            raise SourceError(path, line, error.args[0]) from None

    cite = functools.partial(citations.cited, path.with_name("references.bib"))
    text = citations.CITATION.sub(functools.partial(resolved, cite), text)
    text = labels.REFERENCE.sub(functools.partial(resolved, functools.partial(labels.referred, path)), text)
    text = NOTATION.sub(lambda match: resolved(functools.partial(notation, path), match), text)
    return labels.with_numbers(path, text)


def notation(path):
    """The folded table of the symbols of a chapter. Raises: LookupError if it has none."""
    number = name_parts(path)[0]
    rows = [row for row in registry.symbols(path.parent) if number in row.chapters]
    if not rows:
        raise LookupError(f"notation.toml has no symbol of chapter {number}")
    return f"<details>\n<summary><u>Symbols</u></summary>\n\n{registry.notation_table(rows)}\n\n</details>"


def caption(path, cell, label, words):
    """The caption of a figure, from the lines of the option."""
    if not words or not (label or "").startswith("fig-"):
        raise SourceError(path, cell.line, "a figure has both a label fig-… and a caption")
    return labels.caption(path, label, prose(path, cell, " ".join(words)))


def check_tolerance(path, cell):
    """See that the tolerance is one; in the notebook it is a text, however YAML read it."""
    if "tolerance" in cell.options:
        cell.options["tolerance"] = str(cell.options["tolerance"])
        try:
            tolerance.read(cell.options["tolerance"])
        except ValueError as error:
            raise SourceError(path, cell.line, str(error)) from None


def evidence_source(path, cell, lines):
    """The code of an evidence cell.

    Each line is `ROW = EXPRESSION`, or `ROW = EXPRESSION if CONDITION` for a value that is only there with its data.
    """
    code = ["# Evidence: what the sources print, and what this chapter computes", "from mathllm import reference", ""]
    for line in lines:
        match = EVIDENCE.fullmatch(line)
        try:
            row, expression, condition = match.groups()
            reference.row(row)
            for part in (expression, condition):
                ast.parse(f"({part})", mode="eval")
        except (AttributeError, SyntaxError):
            raise SourceError(path, cell.line, f"evidence is `ROW = EXPRESSION`, not {line!r}") from None
        except KeyError as error:
            raise SourceError(path, cell.line, str(error)) from None
        check = f'reference.check("{row}", {expression})'
        code += [f"if {condition}:", f"    {check}"] if condition else [check]
    return "\n".join(code)
