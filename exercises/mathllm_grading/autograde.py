"""What nbgrader finds in its settings: its own commands and buttons grade as `python -m mathllm_grading grade` does.

`nbgrader autograde` and Formgrader's button make one exporter, by `Autograde.exporter_class`, when they know what to
grade and before they touch any of it. This exporter grades and records all of it, and leaves nbgrader nothing to do.
"""

import time

from nbconvert.exporters import NotebookExporter
from nbconvert.preprocessors import Preprocessor
from nbgrader.converters import Autograde
from nbgrader.converters.base import NbGraderException

from .grading import RUBRIC_TAG
from .run import Run

__all__ = ["Grader", "HideRubric"]

OFTEN = 3600  # seconds: a server that grades one learner at a time makes no backup for each

_backed_up = {}  # gradebook: when this process made a backup


class Grader(NotebookExporter):
    """`Autograde.exporter_class`: grades in place of nbgrader's steps, each of which would work on unchecked files."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        if isinstance(self.parent, Autograde):
            _grade(self.parent)
            self.parent.assignments = {}


def _grade(converter):
    """Grade what a converter was asked to. Raises: NbGraderException, after logging why, if somebody is not graded."""
    course, failed = converter.coursedir, []
    try:
        students = () if course.student_id == "*" else (course.student_id,)
        run = Run(course.assignment_id, students, converter.force, course=(course, converter.config))
        run.backs_up = time.monotonic() - _backed_up.get(course.db_url, -OFTEN) >= OFTEN
        with run:
            if run.backs_up:
                _backed_up[course.db_url] = time.monotonic()
            for result in run.results():
                if result.error:
                    failed.append(f"{result.learner}: {result.error}")
                    continue
                converter.log.info("graded %s", result.learner)
                for reason in result.graded.review:
                    converter.log.warning("%s: %s", result.learner, reason)
    except (ValueError, OSError, RuntimeError) as error:
        failed.append(str(error))
    if failed:
        for reason in failed:
            converter.log.error("not graded: %s", reason)
        raise NbGraderException("; ".join(failed)[:1000])


class HideRubric(Preprocessor):
    """Takes the rubrics out again, before feedback is written for the learner."""

    enabled = True

    def preprocess(self, nb, resources):
        """Drop the cells that show a rubric to the grader."""
        nb.cells = [cell for cell in nb.cells if RUBRIC_TAG not in cell.metadata.get("tags", [])]
        return nb, resources
