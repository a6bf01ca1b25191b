"""What the page of feedback says beside nbgrader's numbers: titles, what has not been read yet, where solutions are.

The rubric is for the grader; the page leaves it out.
"""

import os

from mathllm_exercises.registry import items
from nbconvert.preprocessors import Preprocessor
from nbgrader.api import Gradebook

from .grading import RUBRIC_TAG

__all__ = ["Describe"]


class Describe(Preprocessor):
    """After GetGrades: gives templates/feedback the title of each graded cell, and whether a person has yet to read it.

    The address of the built site, in MATHLLM_SITE, makes a link of the place where the solutions are.
    """

    enabled = True

    def preprocess(self, nb, resources):
        """Write `title` and `waiting` into the metadata of the graded cells, `solutions` into the resources."""
        nb.cells = [cell for cell in nb.cells if RUBRIC_TAG not in cell.metadata.get("tags", ())]
        names, titles = resources["nbgrader"], {entry.grade_id: entry.title for entry in items()}
        graded = [cell.metadata.nbgrader for cell in nb.cells if cell.metadata.get("nbgrader", {}).get("grade")]
        with Gradebook(names["db_url"]) as gradebook:
            for found in graded:
                place = found["grade_id"], names["notebook"], names["assignment"], names["student"]
                found["title"] = titles.get(found["grade_id"], found["grade_id"])
                found["waiting"] = bool(gradebook.find_grade(*place).needs_manual_grade)
        names["waiting"] = sum(found["waiting"] for found in graded)
        names["solutions"] = _solutions(names["assignment"])
        return nb, resources


def _solutions(assignment):
    where = f"the exercises at the end of chapter {assignment[:2]}"
    if site := os.environ.get("MATHLLM_SITE"):
        where = f'<a href="{site.rstrip("/")}/notebooks/{assignment}.html">{where}</a>'
    return f"The solution of each exercise unfolds on its card in {where}."
