"""From MyST text to cells: the one place that knows how a chapter or an assignment is written.

jupytext does the parsing. Here the text is looked over first, so that a mistake in it is named with its line, and forms
of our own are translated: `:::{answer} ID` … `:::` becomes a Markdown cell with the option `item`, `:::{predict} …` and
`:::{choose} …` become a cell of the kind "predict" or "choose" that begins with the words behind the brace, a line
`{{exercise_cards}}` becomes a cell of the kind "cards", and the options `:caption:` and `:evidence:` of a code cell,
which are no YAML and may stand on several lines, become one option with a list.
"""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from jupytext.myst import MystMetadataParsingError, myst_to_notebook
from nbformat import ValidationError

FILE_NAME = re.compile(r"(\d\d)_([a-z][a-z0-9_]*)")
LABEL = re.compile(r"[a-z][a-z0-9-]*")
CARDS = "{{exercise_cards}}"
_FENCE = re.compile(r"(\s*)(`{3,}|~{3,}|:{3,})(.*)")
_ANSWER = re.compile(r":{3,}\{answer\}\s*(.*)")
_QUESTION = re.compile(r":{3,}\{(predict|choose)\}\s*(.*)")
_FREE_OPTION = re.compile(r":(caption|evidence):\s*(.*)")
_EQUATION_LABEL = re.compile(r"\$\$\s*\(([^()\s]+)\)\s*$")


class SourceError(Exception):
    """Something is wrong with a text; the message starts with file and line."""

    def __init__(self, path, line, message):
        super().__init__(f"{path.parent.name}/{path.name}:{line}: {message}")


@dataclass
class Cell:
    """A cell as the text has it.

    kind: "markdown", "code", "cards", "predict" or "choose"   line: where it starts in the text
    """

    kind: str
    source: str
    line: int
    options: dict = field(default_factory=dict)


def name_parts(path: Path) -> tuple[str, str]:
    """Number and slug of a text: 01_vectors.md -> ("01", "vectors")."""
    return FILE_NAME.fullmatch(path.stem).groups()


def read_lines(path: Path) -> list[str]:
    """The lines of a text. Raises: SourceError where it is not UTF-8."""
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise SourceError(path, path.read_bytes()[: error.start].count(b"\n") + 1, "this is not UTF-8") from None


def read_cells(path: Path, allowed_options: set[str], lines=None) -> list[Cell]:
    """The cells of a text, or of these lines of it.

    Raises: SourceError with file and line for front matter, directives, options, labels that cannot be right.
    """
    lines = read_lines(path) if lines is None else lines
    _check_front_matter(path, lines)
    lines = _quote_free_options(_translate_cells(path, lines))
    try:
        notebook = myst_to_notebook("\n".join(lines), add_source_map=True)
    except (MystMetadataParsingError, ValidationError, yaml.YAMLError) as error:
        line = re.search(r"at line (\d+)", str(error))
        raise SourceError(path, line[1] if line else 1, " ".join(str(error).split())) from None
    cells = []
    for parsed, line in zip(notebook.cells, notebook.metadata["source_map"], strict=True):
        if parsed.cell_type == "code":
            cells.append(Cell("code", parsed.source, line, _gathered(parsed.metadata)))
        else:
            line += 1 + _leading_blank_lines(lines[line:])
            cells += _markdown(Cell("markdown", parsed.source, line, dict(parsed.metadata)))
    for cell in cells:
        _check_options(path, cell, allowed_options)
    _check_labels(path, lines, cells)
    if not cells or not cells[0].source.startswith("# "):
        raise SourceError(path, cells[0].line if cells else len(lines), 'the text must open with its title, "# …"')
    return cells


def _check_front_matter(path, lines):
    end = next((n for n, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), None)
    if not lines or lines[0].rstrip() != "---" or end is None:
        raise SourceError(path, 1, "the front matter is missing: it stands between two lines '---' at the top")
    try:
        matter = yaml.safe_load("\n".join(lines[1:end]))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 2 if mark else 1
        raise SourceError(path, line, f"the front matter is not YAML: {getattr(error, 'problem', error)}") from None
    matter = matter if isinstance(matter, dict) else {}
    slug = name_parts(path)[1]
    for key, wanted in (("kernelspec", {"name": "python3"}), ("mathllm", {"slug": slug})):
        got = matter.get(key)
        (name, value), *_ = wanted.items()
        if not isinstance(got, dict) or got.get(name) != value:
            raise SourceError(path, 1, f"the front matter needs {key}: {{{name}: {value}}}")
    if not isinstance(matter.get("title"), str):
        raise SourceError(path, 1, "the front matter needs a title")


def _translate_cells(path, lines):
    """Check that every fence is closed; give answers and questions the form jupytext knows, on the same lines."""
    translated, opened = list(lines), []  # opened: (marker, line number, is it a cell)
    for n, line in enumerate(lines):
        match = _FENCE.match(line)
        inside_code = opened and opened[-1][0][0] in "`~"
        if not match:
            if opened and not inside_code and line.startswith("+++"):
                raise SourceError(path, n + 1, f"a cell ends inside the directive of line {opened[-1][1]}")
            if line.startswith(":tags:") and not line[6:].strip().startswith("["):
                raise SourceError(path, n + 1, "tags are a list: `:tags: [hide-input]`")
            continue
        indent, marker, rest = match.groups()
        rest = rest.strip()
        if opened and not rest and marker[0] == opened[-1][0][0] and len(marker) >= len(opened[-1][0]):
            if opened.pop()[2]:
                translated[n] = "+++"
        elif inside_code:
            continue
        elif marker[0] == ":" and not rest:
            raise SourceError(path, n + 1, f"{marker} closes a directive, but none is open")
        elif marker[0] == ":" and not rest.startswith("{"):
            continue  # prose that happens to start with colons
        else:
            in_cell = rest.startswith("{code-cell}")
            if in_cell and (opened or indent):
                where = f"inside the directive of line {opened[-1][1]}" if opened else "indented"
                raise SourceError(path, n + 1, f"a code cell must stand on its own, but this one is {where}")
            cell = _cell_of(path, n + 1, line.strip(), stands_alone=not (opened or indent))
            translated[n] = cell or line
            opened.append((marker, n + 1, cell is not None))
    if opened:
        raise SourceError(path, opened[-1][1], f"the directive {lines[opened[-1][1] - 1].strip()!r} is not closed")
    return translated


def _cell_of(path, n, line, stands_alone):
    """The line by which jupytext begins the cell of an answer or a question; None for another directive."""
    answer, question = _ANSWER.fullmatch(line), _QUESTION.fullmatch(line)
    if not (answer or question):
        return None
    if not stands_alone:
        kind = "an answer" if answer else "a question"
        raise SourceError(path, n, f"{kind} must stand on its own, not inside another directive")
    if question:
        return f"+++ {json.dumps({'question': question[1], 'asked': question[2]}, ensure_ascii=False)}"
    if not re.fullmatch(r"[\w.]+", answer[1].strip()):
        raise SourceError(path, n, "an answer names its exercise: :::{answer} 01.vectors.proof")
    return f'+++ {{"item": "{answer[1].strip()}"}}'


def _quote_free_options(lines):
    """Each line of a free option at the head of a code cell gets a key of its own, and its text becomes YAML."""
    quoted, at_head = [], False
    for n, line in enumerate(lines):
        at_head = line.startswith("```{code-cell}") or (at_head and line.startswith(":"))
        option = _FREE_OPTION.fullmatch(line) if at_head else None
        quoted.append(f":{option[1]}-{n}: {json.dumps(option[2], ensure_ascii=False)}" if option else line)
    return quoted


def _gathered(metadata):
    """The options of a cell, those that stood on several lines as a list."""
    options = {}
    for key, value in metadata.items():
        name = re.sub(r"-\d+$", "", key)
        if name == key:
            options[key] = value
        else:
            options.setdefault(name, []).append(value)
    return options


def _markdown(cell):
    """A Markdown cell as what it is: a question, or prose, in which a line may stand for the cards of the exercises."""
    if "question" in cell.options:
        kind, asked = cell.options["question"], cell.options["asked"]
        return [Cell(kind, f"{asked}\n{cell.source}", cell.line - 1)]
    return _split_at_cards(cell)


def _split_at_cards(cell):
    lines = cell.source.splitlines()
    if CARDS not in map(str.strip, lines):
        return [cell]
    at = [line.strip() for line in lines].index(CARDS)
    before, after = "\n".join(lines[:at]).strip("\n"), "\n".join(lines[at + 1 :])
    parts = [Cell("markdown", before, cell.line, cell.options)] if before.strip() else []
    parts.append(Cell("cards", "", cell.line + at))
    line = cell.line + at + 1 + _leading_blank_lines(lines[at + 1 :])
    return parts + ([Cell("markdown", after.strip("\n"), line)] if after.strip() else [])


def _leading_blank_lines(lines):
    return next((n for n, line in enumerate(lines) if line.strip()), 0)


def _check_options(path, cell, allowed):
    for name, value in cell.options.items():
        if name not in allowed:
            raise SourceError(path, cell.line, f"unknown cell option {name!r}; known are {', '.join(sorted(allowed))}")
        if name == "label" and not (isinstance(value, str) and LABEL.fullmatch(value)):
            raise SourceError(path, cell.line, f"the label {value!r} must be lower-case words joined by hyphens")
    for line, text in enumerate(cell.source.splitlines() if cell.kind != "code" else (), cell.line):
        if re.search(r"!\[\s*\]\(", text):
            raise SourceError(path, line, "a picture has no alternative text: ![what it shows](…)")


def _check_labels(path, lines, cells):
    labels = [(f"cell label {cell.options['label']!r}", cell.line) for cell in cells if "label" in cell.options]
    equations = ((n, _EQUATION_LABEL.search(line)) for n, line in enumerate(lines, 1))
    labels += [(f"equation label {match[1]!r}", n) for n, match in equations if match]
    labels += [(CARDS, cell.line) for cell in cells if cell.kind == "cards"]
    first = {}
    for label, line in labels:
        if label in first:
            raise SourceError(path, line, f"the {label} is used twice, first in line {first[label]}")
        first[label] = line
