"""Keep the numbers of equations in the package's docstrings right: `(13.30)` follows the equation that it names.

book/equation_numbers.json holds the number of each label as it was at the last build. Where a label has another number
now, all docstrings that name the old one get the new one. --check only says what is out of date.
"""

import json
import re
import sys
from pathlib import Path

import click
import labels

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "book" / "equation_numbers.json"
NUMBER = re.compile(r"(?<=\s)\(([1-9]\d?\.[1-9]\d?)\)(?!\d)")


def numbers(root: Path) -> dict[str, str]:
    """The number of every equation of the book by its label."""
    found = labels.places(root / "book")
    return {label: place.number for label, place in found.items() if not label.startswith("fig-")}


def files(root: Path) -> list[Path]:
    """What speaks of equations by their numbers."""
    return sorted((root / "mathllm").rglob("*.py"))


def renumbered(text: str, old: dict, new: dict) -> tuple[str, list[str]]:
    """The text with today's numbers, and the numbers that belong to no equation any more."""
    labels_of, missing = {number: label for label, number in old.items()}, []

    def today(match):
        number = new.get(labels_of.get(match[1]))
        if number is None:
            missing.append(match[1])
        return match[0] if number is None else f"({number})"

    return NUMBER.sub(today, text), missing


@click.command(help="Renumber the equations that docstrings name.")
@click.option("--check", "check_only", is_flag=True, help="Only say what is out of date.")
def main(check_only):
    old, new, problems = json.loads(KEPT.read_text(encoding="utf-8")), numbers(ROOT), []
    for path in files(ROOT):
        text = path.read_text(encoding="utf-8")
        changed, missing = renumbered(text, old, new)
        problems += [f"{path.relative_to(ROOT)}: no equation has the number ({number}) any more" for number in missing]
        if changed != text and check_only:
            problems.append(f"{path.relative_to(ROOT)}: numbers of equations are out of date")
        elif changed != text:
            path.write_text(changed, encoding="utf-8")
    if old != new and check_only:
        problems.append("book/equation_numbers.json is not what the chapters say")
    elif not problems:
        KEPT.write_text(json.dumps(new, indent=1) + "\n", encoding="utf-8")
    sys.exit("\n".join([*problems, "run tools/build_equation_numbers.py"]) if problems else 0)


if __name__ == "__main__":
    main()
