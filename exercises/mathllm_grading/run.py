"""One grading run: what is there to grade, who is graded already, and the table at the end."""

import contextlib
import fcntl
import os
import shutil
import tempfile
from datetime import timedelta
from pathlib import Path

from nbgrader.api import Gradebook
from nbgrader.coursedir import CourseDirectory
from sqlalchemy.exc import SQLAlchemyError

from mathllm.errors import suggest

from . import gradebook, sandbox, workers
from .autograde import OPEN, course, grade
from .sanitise import asked_for
from .workers import Task

__all__ = ["Run", "alone", "open_course", "table"]

TRUSTED = "mathllm_grading.grader.TrustedExecute"
PASSED_ON = ("MATHLLM_COURSE_KEY", "MATHLLM_UNSANDBOXED")  # what a worker on another machine must know
UNFINISHED = ".grading-"  # folders of runs, in autograded/


def open_course():
    """The course whose settings are in force here.

    Raises: ValueError outside a course, or where its settings would grade without the trusted grader.
    """
    app = course()
    directory = CourseDirectory(parent=app)
    root = directory.root
    if TRUSTED not in map(str, app.config.Autograde.get("autograde_preprocessors", [])):
        raise ValueError(
            f"{root} is not the folder of this course: there is no nbgrader_config.py with the trusted grader"
        )
    if not Path(root, directory.source_directory).is_dir():
        raise ValueError(f"{root} is no course yet: it has no folder {directory.source_directory!r}")
    return directory


class Run:
    """A grading run: `tasks` says who is to be graded, `graded` who is graded already."""

    def __init__(self, assignment, students=(), force=False, scheduler=None):
        self.directory, self.assignment, self.scheduler = open_course(), assignment, scheduler
        self.db_url, self.root = self.directory.db_url, self.directory.root
        if scheduler and gradebook.sqlite_file(self.db_url):
            raise ValueError(
                "a cluster needs a gradebook that it can reach: set MATHLLM_GRADEBOOK to the address of a PostgreSQL "
                "database, as in postgresql+psycopg://instructor@host/gradebook"
            )
        self._must_be_generated()
        file = gradebook.sqlite_file(self.db_url)
        for place in [file, file.parent] if file else []:
            if not os.access(place, os.W_OK):
                raise ValueError(f"{place} cannot be written to, so no grade can be recorded")
        if sandbox.required() and sandbox.problem():
            raise ValueError(f"{sandbox.problem()} Or say --unsandboxed.")
        self.learners = self._chosen(students)
        self._must_hold_notebooks(students)
        recorded = {row["student"] for row in self.rows()}
        self.graded = [name for name in self.learners if not force and name in recorded and self._is_graded(name)]
        self.tasks = []

    # ---------------------------------------------------------------------------------------- what there is to grade

    def _must_be_generated(self):
        source = {path.name for path in Path(self.root, self.directory.source_directory).iterdir() if path.is_dir()}
        if self.assignment not in source:
            raise ValueError(f"there is no assignment {self.assignment!r}{suggest(self.assignment, source)}")
        file = gradebook.sqlite_file(self.db_url)
        known = file is None or file.exists()
        with self._gradebook() if known else contextlib.nullcontext() as book:
            if not known or self.assignment not in {entry.name for entry in book.assignments}:
                raise ValueError(
                    f"{self.assignment} has not been generated: nbgrader generate_assignment {self.assignment}"
                )
            notebooks = book.find_assignment(self.assignment).notebooks
            cells = [cell for notebook in notebooks for cell in notebook.grade_cells]
            gradebook.check_points({cell.name: cell.max_score for cell in cells}, self.assignment)

    def _chosen(self, students):
        submitted = self.directory.submitted_directory
        folders = Path(self.root).glob(self.directory.directory_structure.format(
            nbgrader_step=submitted, student_id="*", assignment_id=self.assignment
        ))  # fmt: skip
        there = {path.parent.name for path in folders}
        there -= set(self.directory.student_id_exclude.split(","))
        if not there:
            raise ValueError(f"nobody has handed in {self.assignment}: nbgrader collect {self.assignment}")
        for name in students:
            if name not in there:
                raise ValueError(f"{name!r} has not handed in {self.assignment}{suggest(name, there)}")
        return sorted(students or there)

    def _must_hold_notebooks(self, students):
        """Where nobody's notebook is found, the folder is the wrong one: no learner is to blame, unless named."""
        names = asked_for(self.directory, self.assignment)
        folders = [Path(self.root, self.directory.format_path(
            self.directory.submitted_directory, learner, self.assignment
        )) for learner in self.learners]  # fmt: skip
        if not students and not any(os.path.lexists(folder / name) for folder in folders for name in names):
            raise ValueError(
                f"none of the {len(folders)} submissions holds {' or '.join(names)}: nobody is graded; to give "
                "them 0 all the same, name them with --student"
            )

    def _is_graded(self, learner):
        """Whether graded work is there and nothing newer was handed in, which is how nbgrader decides it, too."""
        paths = [
            self.directory.format_path(step, learner, self.assignment)
            for step in (self.directory.autograded_directory, self.directory.submitted_directory)
        ]
        graded, submitted = map(self.directory.get_existing_timestamp, paths)
        newer = None not in (graded, submitted) and submitted > graded
        return os.path.exists(paths[0]) and not newer

    # ------------------------------------------------------------------------------------------------------- the run

    def __enter__(self):
        self._cleanup = contextlib.ExitStack()
        self._cleanup.enter_context(alone(self.root))
        for left in self._folder.glob(f"{UNFINISHED}*"):  # by a run that was killed
            shutil.rmtree(left, ignore_errors=True)
        wanted = [name for name in self.learners if name not in self.graded]
        if wanted:
            gradebook.back_up(self.db_url, self.root)
            self._folder.mkdir(exist_ok=True)
            run = tempfile.mkdtemp(dir=self._folder, prefix=UNFINISHED)
            self._cleanup.callback(shutil.rmtree, run, ignore_errors=True)
            Path(run, OPEN).touch()
            self._cleanup.callback(Path(run, OPEN).unlink)
            known = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
            self.tasks = [Task(name, self.assignment, self.root, self.db_url, run, known) for name in wanted]
        return self

    def __exit__(self, *_):
        self._cleanup.close()

    @property
    def _folder(self):
        return Path(self.root, self.directory.autograded_directory)

    def results(self, jobs):
        """Results as they come, from processes here or from the cluster."""
        if self.scheduler and self.tasks:
            return workers.on_cluster(self.tasks, grade, self.scheduler)
        return workers.on_this_machine(self.tasks, grade, jobs)

    def rows(self):
        """What the gradebook holds for this assignment: a dict for each learner, as nbgrader makes it, and `late`."""
        with self._gradebook() as book:  # late: seconds, and points lost for them
            late = {
                submission.student_id: (submission.total_seconds_late, submission.late_submission_penalty or 0.0)
                for submission in book.assignment_submissions(self.assignment)
            }
            return [row | {"late": late[row["student"]]} for row in book.submission_dicts(self.assignment)]

    @contextlib.contextmanager
    def _gradebook(self):
        try:
            gradebook.check_encoding(self.db_url)
            with Gradebook(self.db_url, self.directory.course_id) as book:
                yield book
        except SQLAlchemyError as error:
            reason = str(getattr(error, "orig", error)).strip().splitlines()[0]
            raise ValueError(
                f"the gradebook cannot be read ({reason}); after an update: nbgrader db upgrade; if it is damaged: "
                "python -m mathllm_grading restore"
            ) from error


@contextlib.contextmanager
def alone(root):
    """One run at a time in a course."""
    with open(Path(root, ".grading.lock"), "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError("another run is grading in this course: wait until it is done") from None
        yield


def table(run, results):
    """A line for each learner: what the gradebook holds now, and how the run went."""
    rows, went = {row["student"]: row for row in run.rows()}, {result.learner: result for result in results}
    width = max(map(len, ("learner", *run.learners)))
    lines = [f"{'learner':<{width}}  {'score':>7}  {'max':>6}  {'seconds':>7}"]
    for learner in run.learners:
        row, result = rows.get(learner), went.get(learner)
        seconds = f"{result.seconds:7.1f}" if result else f"{'–':>7}"
        notes = "; ".join(filter(None, [_note(row, result, learner in run.graded), _late(row)]))
        lines.append(f"{learner:<{width}}  {_points(row)}  {seconds}  {notes}".rstrip())
    failed = sum(result.error is not None for result in results)
    summary = f"{len(results) - failed} graded, {len(run.graded)} graded before, {failed} failed"
    left = len(run.learners) - len(results) - len(run.graded)
    return "\n".join([*lines, summary + f", {left} not begun or not finished" * bool(left)])


def _points(row):
    if row is None:
        return f"{'–':>7}  {'–':>6}"
    return f"{max(0.0, row['score'] - row['late'][1]):7.2f}  {row['max_score']:6.2f}"


def _reasons(review):
    """Why there is something to review: each reason once, with the exercises where these are few."""
    for reason in dict.fromkeys(review.values()):
        names = [name for name in review if review[name] == reason]
        yield reason if len(names) > 3 else f"{', '.join(names)}: {reason}"


def _note(row, result, before):
    if result is None:
        return "graded before" if before else "not graded"
    if result.error:
        return f"FAILED: {result.error}"
    if result.review:
        return f"for review: {'; '.join(_reasons(result.review))}"
    return "to be read in Formgrader" if row and row["needs_manual_grade"] else ""


def _late(row):
    seconds, penalty = row["late"] if row else (0, 0.0)
    lost = f", {penalty:g} points lost" if penalty else ""
    return f"late by {timedelta(seconds=round(seconds))}{lost}" if seconds else ""
