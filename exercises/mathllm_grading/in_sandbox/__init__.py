"""mathllm_exercises as a kernel sees it while a submission is graded; the sandbox puts this file in place of the
package's own.

There is no item bank here, so no expected value and no known mistake. `learner()` and `numbers()` give what they give
at home; `check()` has no verdict to give: that falls in the grader's process.
"""

import os
from types import SimpleNamespace

from mathllm_exercises import kernel_side

__all__ = ["Report", "arrange", "check", "item", "items", "learner", "numbers", "start_again"]


class Report:
    """Stands in for a report. It counts as passed, so that a notebook which stops at a failed check goes on."""

    passed = True
    mistakes = ()

    def score(self):
        """No points are given here."""
        return 0.0

    def __repr__(self):
        return "This answer is being graded; the result will be in the feedback."


def arrange(id):
    """No lines are shown: there is no screen."""


def start_again(id):
    """Nothing is brought back: what was handed in is graded."""


def check(id, answer):
    """No verdict, whatever the answer."""
    return Report()


check.case = ()


def learner():
    """The learner's id."""
    return os.environ["MATHLLM_LEARNER"]


def numbers(id):
    """Your own numbers for an exercise, as attributes, the same as at home.

    Raises: ValueError for an exercise that draws none.
    """
    if id not in kernel_side.own_numbers:
        raise ValueError(f"there is no exercise {id!r} that draws numbers of your own")
    return SimpleNamespace(**kernel_side.own_numbers[id])


def item(id):
    """The exercises themselves are not here. Raises: RuntimeError."""
    raise RuntimeError("the exercises cannot be looked up while a submission is graded")


def items(chapter=None):
    """The exercises themselves are not here. Raises: RuntimeError."""
    return item(chapter)
