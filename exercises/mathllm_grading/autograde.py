"""One learner's submission through nbgrader's own Autograde, by itself: all of its grades are recorded, or none.

nbgrader sanitises a submission, runs it and writes its grades step by step, where everybody else's are. Here it is
sanitised and run in a folder of its own, with the gradebook closed. When all notebooks are done, one transaction
records the grades, and the folder moves to its place.
"""

import contextlib
import functools
import logging
import os
import signal
import tempfile
import threading
import time
import traceback
from io import StringIO
from pathlib import Path

import nbformat
from nbgrader.apps.autogradeapp import AutogradeApp
from nbgrader.converters import Autograde, BaseConverter
from nbgrader.coursedir import CourseDirectory
from nbgrader.utils import rmtree

from . import gradebook
from .sanitise import asked_for
from .workers import Result

__all__ = ["OPEN", "course", "grade"]

OPEN = ".open"  # in the folder of a run: gone when the run is called off

_course = functools.cache(lambda root: course(root))
_one_at_a_time = threading.Lock()  # nbgrader changes the folder and the environment of its process


def course(root=""):
    """nbgrader's application with the settings of a course: of the folder we are in, or of `root`."""
    app = AutogradeApp(log_level="ERROR")  # a missing nbgrader_config.py is explained by somebody else
    app.initialize([], root=root)
    app.log.setLevel("WARNING")
    app.log.propagate = False
    return app


def grade(task):
    """Grade one learner; never raises, and leaves either all of the grades or none."""
    started, log = time.monotonic(), StringIO()
    with _one_at_a_time:
        try:
            if not Path(task.run, OPEN).exists():
                raise FileNotFoundError(f"{task.run} is not there: every worker needs the course's folder")
            with _environment(task.environment), _logging_to(log, _course(task.root)) as app:
                review = _grade(task, app)
        except Exception as error:
            log.write(traceback.format_exc())
            return Result(task.learner, time.monotonic() - started, error=_line(error), log=log.getvalue())
    return Result(task.learner, time.monotonic() - started, review, log=log.getvalue())


def _grade(task, app):
    folder = tempfile.mkdtemp(dir=task.run)
    settings = {"student_id": task.learner, "assignment_id": task.assignment, "db_url": task.db_url, "root": task.root}
    final = CourseDirectory(parent=app, **settings)
    relative = os.path.relpath(folder, final.root)
    grading = Learner(coursedir=CourseDirectory(parent=app, autograded_directory=relative, **settings), parent=app)
    grading.final = Path(final.format_path(final.autograded_directory, task.learner, task.assignment))
    grading.still_wanted = Path(task.run, OPEN).exists
    try:
        grading.start()
    finally:
        rmtree(folder)
    return grading.review


def _line(error):
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


@contextlib.contextmanager
def _environment(variables):
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextlib.contextmanager
def _logging_to(log, app):
    """What nbgrader, and traitlets for it, has to say goes into `log`, from warnings upward."""
    handler = logging.StreamHandler(log)
    handler.setLevel(logging.WARNING)
    loggers = app.log, logging.getLogger("traitlets")
    before = [logger.handlers for logger in loggers]
    for logger in loggers:
        logger.handlers = [handler]
    try:
        yield app
    finally:
        for logger, handlers in zip(loggers, before, strict=True):
            logger.handlers = handlers


class _CopiesOnce(BaseConverter):
    """Autograde.init_assignment() copies a submission's files by its next of kin: this one, and only before the run."""

    copied = False

    def init_assignment(self, assignment_id, student_id):
        if not self.copied:
            super().init_assignment(assignment_id, student_id)
        self.copied = True


class Learner(Autograde, _CopiesOnce):
    """nbgrader's Autograde for one learner: everything runs first and is recorded afterwards, at once."""

    final = None  # the folder where graded work belongs
    still_wanted = staticmethod(lambda: True)

    def init_notebooks(self):
        """The notebooks that were handed in; the expected ones if none was, which then are found missing."""
        folder = Path(self._format_source(self.coursedir.assignment_id, self.coursedir.student_id))
        asked = asked_for(self.coursedir, self.coursedir.assignment_id)
        found = sorted(folder.glob("*.ipynb")) or [folder / name for name in asked]
        self.assignments = {str(folder): list(map(str, found))}

    def convert_notebooks(self):
        """Sanitise and run all notebooks, record all grades, put the folder in its place."""
        ((_, self.notebooks),) = self.assignments.items()
        names = self.coursedir.assignment_id, self.coursedir.student_id
        db_url, self.review = self.coursedir.db_url, {}
        running, recording = self._steps()
        self.run_pre_convert_hook()
        with gradebook.transaction(db_url, keep=False):  # a rehearsal: it copies files and finds what cannot be graded
            self.init_assignment(*names)
        self.autograde_preprocessors = running
        ran = [self._run(notebook) for notebook in self.notebooks]
        self.autograde_preprocessors = recording
        with _undisturbed():
            with gradebook.transaction(db_url):
                self.init_assignment(*names)
                for output, resources in ran:
                    self._record(output, resources)
                self.set_permissions(*names)
                if not self.still_wanted():
                    raise InterruptedError("the run was called off")
                if self.final.exists():
                    rmtree(self.final)  # were it there after a failure from here on, nobody would grade this again
            self.final.parent.mkdir(parents=True, exist_ok=True)
            os.rename(self._format_dest(*names), self.final)
        self.run_post_convert_hook()

    def _steps(self):
        """The preprocessors that run a notebook, and those from SaveAutoGrades on, which record its grades."""
        steps = list(self.autograde_preprocessors)
        first = [getattr(step, "__name__", step).rpartition(".")[2] for step in steps].index("SaveAutoGrades")
        return steps[:first], steps[first:]

    def _run(self, notebook):
        self.convert_single_notebook(notebook)
        return self._written

    def write_single_notebook(self, output, resources):
        """Write a notebook; keep it and its resources for the steps to come."""
        super().write_single_notebook(output, resources)
        self._written = output, resources

    def _record(self, output, resources):
        self._sanitizing = False
        self._init_preprocessors()
        output, resources = self.exporter.from_notebook_node(nbformat.reads(output, 4), resources)
        self.write_single_notebook(output, resources)
        self._sanitizing = True
        self.review.update(resources.get("mathllm_review", {}))


@contextlib.contextmanager
def _undisturbed():
    """Signals that would end this process wait until the grades are recorded."""
    held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)
