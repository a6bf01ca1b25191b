"""Compile exercises/assignments/NN_slug.md into exercises/mathllm_exercises/bank.json, which check() reads.

--check only says what does not belong together. --update first computes what each known mistake earns, and writes it
into the text.
"""

import json
import re
import sys
from pathlib import Path

import click
import exercise_text
import numpy as np
from exercise_cells import entries
from mathllm_exercises import bank, marking
from mathllm_exercises.checks import rules_without_text
from mathllm_exercises.own_numbers import own_numbers
from notebook_text import FILE_NAME, SourceError

ROOT = Path(__file__).resolve().parents[1]
SEEDS = range(3)


def texts(root: Path) -> list[Path]:
    """The texts of the assignments, in the order of the book."""
    found = sorted((root / "exercises" / "assignments").glob("*.md"))
    return [path for path in found if FILE_NAME.fullmatch(path.stem)]


def compiled(root: Path) -> str:
    """The content of bank.json. Raises: SourceError with file and line."""
    records = []
    for text in map(exercise_text.read, texts(root)):
        answers = {cell.options["item"]: cell for cell in text.cells if "item" in cell.options and cell.kind == "code"}
        stubs = {id: {"stub": exercise_text.released(cell.source)} for id, cell in answers.items()}
        records += [exercise.record | stubs.get(id, {}) for id, exercise in text.exercises.items()]
    if extra := rules_without_text({record["id"] for record in records}):
        raise SourceError(bank.BANK, 1, f"there are checks for {extra[0]!r}, but no text has this exercise")
    return json.dumps(records, ensure_ascii=False, indent=1) + "\n"


def update(path: Path):
    """Write into the text what each known mistake of a function earns. Raises: SourceError."""
    exercises, lines = exercise_text.read(path).exercises, path.read_text(encoding="utf-8").splitlines()
    for id, entry in entries(path).items():
        if not entry.calls:
            continue
        for line, earned in zip(exercises[id].mistake_lines, _points(entry), strict=True):
            if len(earned) > 1:
                raise SourceError(path, line, f"this mistake earns now {min(earned):g}, now {max(earned):g} points")
            lines[line - 1] = re.sub(r"^- (\([\d.]+\) )?", f"- ({min(earned):g}) ", lines[line - 1])
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _points(entry):
    """What each known mistake earns, as a set over several draws of the cases."""
    earned = [set() for _ in entry.mistakes]
    for seed in SEEDS:
        cases, own = marking.draw(entry, np.random.default_rng(seed)), own_numbers(entry, "reader")
        known = marking.known_mistakes(entry, cases, own)
        for found, (_, observations, _) in zip(earned, known[: len(earned)], strict=True):
            found.add(marking.mark(entry, cases, observations, own, known).points)
    return earned


@click.command(help="Compile the exercises' texts into bank.json.")
@click.argument("names", nargs=-1, metavar="[SLUG]...")
@click.option("--check", "check_only", is_flag=True, help="Only say whether bank.json is what the texts say.")
@click.option("--update", "update_points", is_flag=True, help="Compute what known mistakes earn.")
def main(names, check_only, update_points):
    try:
        for path in texts(ROOT) if update_points else ():
            if not names or path.stem[3:] in names:
                update(path)
        new = compiled(ROOT)
    except SourceError as error:
        raise click.ClickException(str(error)) from None
    if check_only:
        old = bank.BANK.read_text(encoding="utf-8") if bank.BANK.exists() else ""
        sys.exit("bank.json is not what the texts say: run tools/build_exercises.py" if old != new else 0)
    bank.BANK.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
