"""What `order`, `lines`, `choice` and challenges share: a verdict on plain data: a share of the points, and replies.

Their answers are strings and numbers that the learner types. Nothing of the learner is run to judge them: the verdict
follows from the data alone, in the learner's session as in the grader.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from .item import Check

__all__ = ["UNANSWERED", "AssessedCheck", "Verdict", "letters", "shown"]

UNANSWERED = "no answer yet"


@dataclass(frozen=True)
class Verdict:
    """What an answer deserves.

    share:   of the points, from 0 to 1   reason: what is wrong first, in words; "" if nothing is
    replies: sentences for the learner, on a right answer as well
    """

    share: float = 0.0
    reason: str = ""
    replies: tuple[str, ...] = ()


@dataclass(frozen=True)
class AssessedCheck(Check):
    """The one check of an answer that is assessed as a whole: `assess(value)` returns a Verdict."""

    assess: Callable | None = None


def letters(value) -> list[str] | None:
    """The letters of an answer such as "C A D", "CAD" or ["c", "a", "d"]; None if it is something else.

    >>> letters("C, a D"), letters(["C", "A"]), letters("") , letters(3), letters("C or A")
    (['C', 'A', 'D'], ['C', 'A'], [], None, None)
    """
    if isinstance(value, (list, tuple)) and all(isinstance(part, str) for part in value):
        value = " ".join(value)
    if not isinstance(value, str) or re.search(r"[^A-Za-z\s,;>→.-]", value):
        return None
    parts = re.findall("[A-Za-z]+", value)
    if len(parts) > 1 and any(len(part) > 1 and part.islower() for part in parts):  # words, such as "or"
        return None
    return [letter.upper() for letter in "".join(parts)]


def shown(labels) -> str:
    """Letters as they are written in an answer.

    >>> shown(["C", "A"])
    'C A'
    """
    return " ".join(labels)
