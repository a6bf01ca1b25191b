"""Exercises as cells: the card, the learner's answer, the graded check — with the metadata nbgrader reads.

One card serves both sides: in the chapter it carries the folded solution, in the assignment it is a locked cell.
"""

import ast
import re
from pathlib import Path

import exercise_text
from exercise_text import BEGIN, END, released, solution
from mathllm_exercises import bank, item, items
from nbformat.v4 import new_code_cell, new_markdown_cell
from notebook_text import Cell, SourceError, name_parts, read_cells


def card(entry, solution=None) -> str:
    """The Markdown of an exercise card: title, facts, task, hints that unfold one by one, the solution if given."""
    facts = (
        f"{'★' * entry.difficulty}{'☆' * (3 - entry.difficulty)}",
        f"{entry.minutes} min",
        f"{entry.points:g} point{'' if entry.points == 1 else 's'}",
        entry.source,
        f"`{entry.id}`",
    )
    parts = [f"### {entry.title}", " · ".join(facts), entry.task.strip()]
    parts += [_folded(f"Hint {n}", hint) for n, hint in enumerate(entry.hints, 1)]
    parts += [_folded("Solution", solution)] if solution else []
    return "\n\n".join(parts)


def _folded(summary, text):
    # Underlined, because JupyterLab's MyST takes the triangle away and leaves no sign that there is something to open.
    return f"<details>\n<summary><u>{summary}</u></summary>\n\n{text.strip()}\n\n</details>"


def chapter_cards(assignment: Path) -> list:
    """The cells that stand for {{exercise_cards}}: a card per exercise, and the way to the assignment."""
    name = assignment.stem
    number = name_parts(assignment)[0]
    cells = []
    for cell, entry in answers(assignment):
        cells.append(new_markdown_cell(card(entry, shown_solution(cell)), id=f"{number}-exercise-{_short(entry)}"))
    link = f"[practice notebook {number}](../exercises/practice/{name}.ipynb)"
    closing = f"Work on them in {link}. In a course, work in the assignment you fetched, and hand it in."
    return [*cells, new_markdown_cell(closing, id=f"{number}-exercise-notebook")]


def _short(entry):
    return entry.id.split(".")[-1].replace("_", "-")


def read_assignment(path: Path) -> list[Cell]:
    """The cells of an assignment's text; the answers among them have the option `item`, the exercise's id.

    Raises: SourceError with file and line.
    """
    if not exercise_text.has_blocks(path):
        return _read_old(path)
    return exercise_text.read(path).cells


def entries(path: Path) -> dict:
    """The items of an assignment's text by their ids. Raises: SourceError."""
    if not exercise_text.has_blocks(path):
        return {entry.id: entry for entry in items(name_parts(path)[0])}
    made = {}
    for id, exercise in exercise_text.read(path).exercises.items():
        try:
            made[id] = bank.make(exercise.record)
        except ValueError as error:
            raise SourceError(path, exercise.line, str(error)) from None
    return made


def _read_old(path: Path) -> list[Cell]:
    """The cells of an assignment's text, checked against the items.

    Raises: SourceError with file and line.
    """
    cells = read_cells(path, {"item", "label", "tags"})
    number = name_parts(path)[0]
    seen = {}
    for cell in cells:
        if cell.kind == "cards":
            raise SourceError(path, cell.line, "an assignment has its cards: {{exercise_cards}} is for chapters")
        id = cell.options.get("item")
        if id is None:
            if BEGIN in cell.source or END in cell.source:
                raise SourceError(path, cell.line, "a cell with a solution needs `:item: 01.vectors.name`")
            continue
        if id in seen:
            raise SourceError(path, cell.line, f"the exercise {id!r} is answered twice, first in line {seen[id]}")
        seen[id] = cell.line
        try:
            entry = item(id)
        except KeyError as error:
            raise SourceError(path, cell.line, str(error)) from None
        _check_answer(path, cell, entry)
    wanted = {entry.id: entry for entry in items(number) if entry.graded}
    for id in seen.keys() - wanted.keys():
        raise SourceError(path, seen[id], f"the exercise {id!r} is not a graded item of chapter {number}")
    if missing := wanted.keys() - seen.keys():
        last = len(path.read_text(encoding="utf-8").splitlines())
        raise SourceError(path, last, f"no answer for the graded exercise{'s'[: len(missing) - 1]} "
                                      f"{', '.join(id for id in wanted if id in missing)}")  # fmt: skip
    return cells


def _check_answer(path, cell, entry):
    if (entry.kind == "text") != (cell.kind == "markdown"):
        form = ":::{answer}" if entry.kind == "text" else "a code cell"
        raise SourceError(path, cell.line, f"{entry.id!r} is a {entry.kind} item: its answer is {form}")
    if entry.kind == "text":
        return
    markers = re.findall(f"^ *({BEGIN}|{END})$", cell.source, re.MULTILINE)
    if markers != [BEGIN, END]:
        raise SourceError(path, cell.line, f"an answer cell has one region from {BEGIN!r} to {END!r}")
    for what, source in (("the answer", cell.source), ("what the learner gets of the answer", released(cell.source))):
        try:
            names = _defined(ast.parse(source))
        except SyntaxError as error:
            raise SourceError(path, cell.line, f"{what} is not Python: {error.msg} (line {error.lineno} of the cell; "
                                               "a function keeps its docstring)") from None  # fmt: skip
        if entry.answer not in names:
            raise SourceError(path, cell.line, f"{what} does not define {entry.answer!r}")


def _defined(tree):
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    targets = [target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
    return functions | {target.id for target in targets if isinstance(target, ast.Name)}


def shown_solution(cell) -> str:
    """The solution as Markdown, for a card."""
    return cell.source if cell.kind == "markdown" else f"```python\n{solution(cell.source)}\n```"


def answers(path: Path) -> list:
    """(cell, item) for every answer of an assignment, in the order of the text."""
    known = entries(path)
    return [(cell, known[cell.options["item"]]) for cell in read_assignment(path) if "item" in cell.options]


def assignment_cells(path: Path) -> list:
    """All cells of an assignment's notebook: prose, locked cards, answers with their solutions, locked checks."""
    number, known = name_parts(path)[0], entries(path)
    cells = []
    for n, cell in enumerate(read_assignment(path), 1):
        id = f"{number}-{cell.options.get('label', n)}"
        tags = {"tags": cell.options["tags"]} if "tags" in cell.options else {}
        if "item" in cell.options:
            cells += _exercise(cell, known[cell.options["item"]], tags)
        elif cell.kind == "code":
            cells.append(_code(cell.source, id, locked=True, **tags))
        else:
            cells.append(new_markdown_cell(cell.source, id=id, metadata=tags))
    return cells


def practice_cells(path: Path) -> list:
    """All cells of the edition for working alone: cards with folded solutions, empty answers, checks.

    What the text says about handing in (the paragraph "**How to hand in.** …") is left out.
    """
    number, known = name_parts(path)[0], entries(path)
    cells = []
    for n, cell in enumerate(read_assignment(path), 1):
        if "item" in cell.options:
            cells += _practice(cell, known[cell.options["item"]])
        else:
            new = new_code_cell if cell.kind == "code" else new_markdown_cell
            cells.append(new(_for_practice(cell), id=f"{number}-{cell.options.get('label', n)}"))
    return cells


def _for_practice(cell):
    if cell.kind == "code":
        return cell.source
    paragraphs = [part for part in cell.source.split("\n\n") if not part.startswith("**How to hand in.**")]
    return re.sub(r"^# Assignment\b", "# Practice", "\n\n".join(paragraphs))


def _practice(cell, entry):
    id = entry.id.replace(".", "-")
    cards = [new_markdown_cell(card(entry, shown_solution(cell)), id=f"{id}-card")]
    if entry.kind == "text":
        return [*cards, new_markdown_cell("*Your answer here.*", id=f"{id}-answer")]
    answer = new_code_cell(released(cell.source), id=f"{id}-answer")
    return [*cards, answer, new_code_cell(f'check("{entry.id}", {entry.answer})', id=id)]


def _exercise(cell, entry, tags):
    id = entry.id.replace(".", "-")
    cells = [new_markdown_cell(card(entry), id=f"{id}-card", metadata=_metadata(f"{id}-card", locked=True))]
    if entry.kind == "text":  # graded by hand: nbgrader puts its stub in place of the whole cell
        metadata = _metadata(id, grade=True, solution=True, points=entry.points) | tags
        return [*cells, new_markdown_cell(cell.source, id=id, metadata=metadata)]
    graded = f'check("{entry.id}", {entry.answer}).score()'
    return [
        *cells,
        _code(cell.source, f"{id}-answer", solution=True, **tags),
        _code(graded, id, grade=True, locked=True, points=entry.points),
    ]


def _code(source, id, tags=(), **flags):
    metadata = _metadata(id, **flags) | ({"tags": tags} if tags else {})
    return new_code_cell(source, id=id, metadata=metadata)


def _metadata(id, grade=False, locked=False, solution=False, points=None):
    flags = {"schema_version": 3, "grade_id": id, "grade": grade, "locked": locked, "solution": solution, "task": False}
    return {"nbgrader": flags | ({"points": points} if points is not None else {})}
