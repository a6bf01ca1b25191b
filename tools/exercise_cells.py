"""Exercises as cells: the card, the learner's answer, the graded check — with the metadata nbgrader reads.

One card serves both sides: in the chapter it carries the folded solution, in the assignment it is a locked cell.
"""

import re
import sys
from pathlib import Path

import exercise_text
from exercise_text import released, solution
from mathllm_exercises import bank
from nbformat.v4 import new_code_cell, new_markdown_cell
from notebook_text import Cell, SourceError, name_parts

import mathllm.exhibits.transformer  # noqa: F401  a card names what it forbids, the exhibits included


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
    if forbidden := [f"`{name}`" for name in entry.masked if _of_mathllm(name)]:
        parts.append(f"*Not in this exercise:* {', '.join(forbidden)} of `mathllm`.")
    parts += [_folded(f"Hint {n}", hint) for n, hint in enumerate(entry.hints, 1)]
    parts += [_folded("Solution", solution)] if solution else []
    return "\n\n".join(parts)


def _of_mathllm(name):
    return any(name in vars(module) for path, module in sys.modules.items() if path.split(".")[0] == "mathllm")


def _folded(summary, text):
    # Underlined, because JupyterLab's MyST takes the triangle away and leaves no sign that there is something to open.
    return f"<details>\n<summary><u>{summary}</u></summary>\n\n{text.strip()}\n\n</details>"


def chapter_cards(assignment: Path) -> list:
    """The cells that stand for {{exercise_cards}}: a card per exercise, and the way to the assignment."""
    name = assignment.stem
    number = name_parts(assignment)[0]
    cells, read = [], read_assignment(assignment)
    figures = {cell.options["figure"]: cell for cell in read if "figure" in cell.options}
    for cell, entry in answers(assignment):
        if entry.id in figures:
            cells.append(_figure(figures[entry.id], f"{number}-exercise-{_short(entry)}-figure"))
        cells.append(new_markdown_cell(card(entry, shown_solution(cell)), id=f"{number}-exercise-{_short(entry)}"))
    link = f"[practice notebook {number}](../exercises/practice/{name}.ipynb)"
    closing = f"Work on them in {link}. In a course, work in the assignment you fetched, and hand it in."
    return [*cells, new_markdown_cell(closing, id=f"{number}-exercise-notebook")]


def _figure(cell, id, **metadata):
    """The cell that draws the figure of a choice, with its code folded."""
    return new_code_cell(cell.source, id=id, metadata={"jupyter": {"source_hidden": True}, **metadata})


def _short(entry):
    return entry.id.split(".")[-1].replace("_", "-")


def read_assignment(path: Path) -> list[Cell]:
    """The cells of an assignment's text; the answers among them have the option `item`, the exercise's id.

    Raises: SourceError with file and line.
    """
    return exercise_text.read(path).cells


def entries(path: Path) -> dict:
    """The items of an assignment's text by their ids. Raises: SourceError."""
    made = {}
    for id, exercise in exercise_text.read(path).exercises.items():
        try:
            made[id] = bank.make(exercise.record)
        except ValueError as error:
            raise SourceError(path, exercise.line, str(error)) from None
    return made


def shown_solution(cell) -> str:
    """The solution as Markdown, for a card."""
    if "shown" in cell.options:
        return cell.options["shown"]
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
        elif "figure" in cell.options:
            id = f"{cell.options['figure'].replace('.', '-')}-figure"
            cells.append(_figure(cell, id, **_metadata(id, locked=True), **tags))
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
        elif "figure" in cell.options:
            cells.append(_figure(cell, f"{cell.options['figure'].replace('.', '-')}-figure"))
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
