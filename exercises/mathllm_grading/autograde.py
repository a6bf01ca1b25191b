"""What nbgrader finds in its settings: its own commands and buttons grade as `python -m mathllm_grading grade` does.

`nbgrader autograde` and Formgrader's button make one exporter, by `Autograde.exporter_class`, when they know what to
grade and before they touch any of it. This exporter grades and records all of it, and leaves nbgrader nothing to do.
"""

from datetime import timedelta

from nbconvert.exporters import NotebookExporter
from nbgrader.converters import Autograde
from nbgrader.converters.base import NbGraderException

from .run import Run

__all__ = ["Grader"]

PAUSE = timedelta(hours=1)  # a server that grades one learner at a time makes no backup for each


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
        with Run(course.assignment_id, students, converter.force, None, (course, converter.config), PAUSE) as run:
            for result in run.results():
                if result.error:
                    failed.append(f"{result.learner}: {result.error}")
                    continue
                converter.log.info("graded %s", result.learner)
                for reason in result.graded.review:
                    converter.log.warning("%s: %s", result.learner, reason)
    except (ValueError, OSError) as error:
        failed.append(str(error))
    if failed:
        for reason in failed:
            converter.log.error("not graded: %s", reason)
        raise NbGraderException("; ".join(failed)[:1000])
