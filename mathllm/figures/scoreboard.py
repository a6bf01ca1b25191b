"""The scoreboard: the language models that the reader has met or built so far, measured on the same held-out page.

Each chapter records what its models score; the builder of the notebooks keeps it in `scoreboard.json`, and the next
chapter continues the table.
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from ..data import shakespeare
from .plots import _publish

PAGE = 3000  # characters


class Score(NamedTuple):
    """What a model of a chapter ("05" … "13") scores: nats per character, the fewer the better."""

    chapter: str
    model: str
    nats: float


def page() -> str:
    """The page: the first 3,000 characters of the held-out plays, without the last line where it is cut off.

    Raises: MissingDataError.

    >>> from mathllm import data
    >>> if data.available("shakespeare"):
    ...     page()[:10], page()[-1], 2900 < len(page()) <= 3000
    ('DUKE ORSIN', '\\n', True)
    """
    text = shakespeare().validation[:PAGE]
    return text[: text.rindex("\n") + 1]


def scores() -> list[Score]:
    """The rows that the chapters have recorded, in the order of the book.

    >>> all(row.nats > 0 for row in scores())
    True
    """
    return [Score(*row) for row in json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))]


def record(chapter: str, nats: Mapping[str, float], characters: int | None = None) -> None:
    """Show the table so far: the rows of earlier chapters, and this chapter's. Call it once in a chapter.

    nats: for each model, minus the logarithm of the probability it gives to the whole of `page()`
    characters: how many the page has; None counts those of `page()`

    Raises: MissingDataError; ValueError for a loss that is no positive number.

    >>> record("00", {"every letter alike": 10 * math.log(27)}, characters=10)
    | chapter | model | nats per character | bits |
    |---|---|---:|---:|
    | 00 | **every letter alike** | 3.296 | 4.755 |
    """
    characters = characters or len(page())
    if not all(0 < total < math.inf for total in nats.values()):
        raise ValueError(f"record() needs losses above 0, got {dict(nats)}")
    rows = [row for row in scores() if row.chapter < chapter]
    rows += [Score(chapter, model, round(float(total) / characters, 4)) for model, total in nats.items()]
    table = _table(rows, chapter)
    _publish({"text/markdown": table}, table, {"scoreboard": rows})


def _table(rows, chapter):
    lines = ["| chapter | model | nats per character | bits |", "|---|---|---:|---:|"]
    for row in rows:
        model = f"**{row.model}**" if row.chapter == chapter else row.model
        lines.append(f"| {row.chapter} | {model} | {row.nats:.3f} | {row.nats / math.log(2):.3f} |")
    return "\n".join(lines)
