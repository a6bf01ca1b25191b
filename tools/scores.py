"""The rows of the scoreboard: taken from the notebook of a chapter, kept beside mathllm/figures/scoreboard.py.

`python tools/scores.py` prints the table so far.
"""

import json
from pathlib import Path

PLACE = "mathllm/figures/scoreboard.json"


def kept(root: Path) -> list:
    """The rows that are kept: [chapter, model, nats per character], in the order of the book."""
    path = root / PLACE
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else []


def shown(notebook) -> list | None:
    """The rows of the table that a notebook shows, or None if it shows none."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    tables = [output.metadata["scoreboard"] for output in outputs if "scoreboard" in output.get("metadata", {})]
    return [list(row) for row in tables[-1]] if tables else None


def keep(root: Path, number: str, notebook) -> None:
    """Put the rows of a chapter, as its notebook shows them, in the place of the old ones."""
    own = [row for row in shown(notebook) or [] if row[0] == number]
    rows = sorted([row for row in kept(root) if row[0] != number] + own, key=lambda row: row[0])
    if rows != kept(root):
        path = root / PLACE
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = ",\n".join(f" {json.dumps(row, ensure_ascii=False)}" for row in rows)
        path.write_text(f"[\n{lines}\n]\n" if rows else "[]\n", encoding="utf-8")


def drift(root: Path, number: str, notebook) -> str | None:
    """How the table of a notebook differs from the rows that are kept, or None."""
    rows, table = [row for row in kept(root) if row[0] <= number], shown(notebook)
    if table is None and not any(row[0] == number for row in rows):
        return None
    return None if table == rows else f"the scoreboard is not that of {PLACE}"


if __name__ == "__main__":
    for chapter, model, nats in kept(Path(__file__).resolve().parents[1]):
        print(f"{chapter}  {nats:.3f}  {model}")
