"""One grading run: what is there to grade, who is graded already, what is recorded, and the table at the end."""

import contextlib
import fcntl
import json
import os
import shutil
import signal
import tempfile
import time
import traceback
from datetime import timedelta
from pathlib import Path

from nbgrader.coursedir import CourseDirectory
from nbgrader.exchange.default import Exchange
from nbgrader.preprocessors import AssignLatePenalties
from nbgrader.utils import rmtree
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from mathllm.errors import suggest

from . import gradebook, sandbox, submission, workers
from .autograde import course
from .grading import course_key, grade_submission
from .inert import put_aside, rename_active_files
from .workers import Result, Task

__all__ = ["Run", "alone", "assignment_called", "grade", "open_course", "table"]

GRADER = "mathllm_grading.autograde.Grader"
UNFINISHED = ".grading-"  # folders of runs, in autograded/


def open_course(directory=None, config=None):
    """The course whose settings are in force here: its folder, and the settings.

    Raises: ValueError outside a course, or where its settings would grade without the trusted grader.
    """
    if directory is None:
        app = course()
        directory, config = CourseDirectory(parent=app), app.config
    root = directory.root
    if config.Autograde.get("exporter_class") != GRADER:
        raise ValueError(
            f"{root} is not the folder of this course: there is no nbgrader_config.py with the trusted grader"
        )
    if not Path(root, directory.source_directory).is_dir():
        raise ValueError(f"{root} is no course yet: it has no folder {directory.source_directory!r}")
    return directory, config


def assignment_called(directory, name):
    """The assignment of a course that is meant: "03" is short for "03_matrices"."""
    sources = Path(directory.root, directory.source_directory)
    return gradebook.assignment_called(name, [path.name for path in sources.iterdir() if path.is_dir()])


def grade(task):
    """Grade one learner into the folder of the run; never raises, and records nothing."""
    started = time.monotonic()
    try:
        if not Path(task.run).exists():
            raise FileNotFoundError(f"{task.run} is not there: every worker needs the course's folder")
        if task.unsandboxed:
            os.environ[sandbox.UNSANDBOXED] = "yes"
        graded = grade_submission(task.folder, task.learner, task.assignment, task.key, task.limits, task.hidden)
        folder = tempfile.mkdtemp(dir=task.run)
        _write(graded, Path(folder))
    except Exception as error:
        return _failed(task.learner, time.monotonic() - started, error)
    return Result(task.learner, time.monotonic() - started, graded.review, graded=graded, folder=folder)


def _write(graded, folder):
    """What is kept of a submission, as files that nobody changes by accident."""
    for path, content in graded.files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    rename_active_files(folder)
    if submission.timestamp(folder) is None and (folder / submission.TIME).exists():
        put_aside(folder / submission.TIME, "timestamp-unreadable")
    for name, notebook in graded.notebooks.items():
        text = json.dumps(notebook, ensure_ascii=False, indent=1, sort_keys=True)
        (folder / f"{name}.ipynb").write_text(text + "\n", encoding="utf-8")
    for path in folder.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o444)
    folder.chmod(0o755)


def _failed(learner, seconds, error):
    """The result of a failure. Where the database refuses (full disk, lock), its own words say all that helps."""
    if isinstance(error, OperationalError):
        return Result(learner, seconds, error=f"the gradebook cannot be written to: {_of_the_database(error)}")
    reason = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    return Result(learner, seconds, error=reason, log=traceback.format_exc())


def _of_the_database(error):
    """What the database itself says of an error of SQLAlchemy, in one line."""
    return str(getattr(error, "orig", error)).strip().splitlines()[0]


class Run:
    """A grading run: `tasks` says who is to be graded, `graded` who is graded already."""

    backs_up = True

    def __init__(self, assignment, students=(), force=False, scheduler=None, directory=None, config=None):
        self.directory, self.config = open_course(directory, config)
        self.db_url, self.root, self.scheduler = self.directory.db_url, self.directory.root, scheduler
        if scheduler and gradebook.sqlite_file(self.db_url):
            raise ValueError(
                "a cluster needs a gradebook that it can reach: set MATHLLM_GRADEBOOK to the address of a PostgreSQL "
                "database, as in postgresql+psycopg://instructor@host/gradebook"
            )
        self.asked, self.tasks = self._asked(assignment), []
        self.assignment = self.asked.name
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

    # ---------------------------------------------------------------------------------------- what there is to grade

    def _asked(self, name):
        """The assignment as it was generated. Raises: ValueError if it was not, or its points have changed since."""
        name = assignment_called(self.directory, name)
        file = gradebook.sqlite_file(self.db_url)
        known = file is None or file.exists()
        with self._gradebook() if known else contextlib.nullcontext() as book:
            if not known or name not in {entry.name for entry in book.assignments}:
                raise ValueError(f"{name} has not been generated: nbgrader generate_assignment {name}")
            notebooks = gradebook.asked(book, name)
        gradebook.check_points(notebooks, name)
        ignored = tuple(self.directory.ignore)
        files = submission.read_submission(Path(self.root, self.directory.source_directory, name), ignored).files
        return submission.Assignment(name, notebooks, files, ignored)

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
        if not students and not any(map(self._holds, self.learners)):
            names = " or ".join(f"{name}.ipynb" for name in self.asked.notebooks)
            raise ValueError(
                f"none of the {len(self.learners)} submissions holds {names}: nobody is graded; to give them 0 all the "
                "same, name them with --student"
            )

    def _holds(self, learner):
        """Whether there is a notebook where a learner's should be, of whatever kind it is."""
        folder = self._place("submitted_directory", learner)
        if folder.is_symlink() or folder.parent.is_symlink():
            return False
        places = [folder / f"{name}.ipynb" for name in self.asked.notebooks]
        return any(os.path.lexists(place) and not place.is_dir() for place in places)

    def _place(self, step, learner):
        return Path(self.directory.format_path(getattr(self.directory, step), learner, self.assignment))

    def _is_graded(self, learner):
        """Whether graded work is there and nothing newer was handed in, which is how nbgrader decides it, too."""
        places = [self._place(step, learner) for step in ("autograded_directory", "submitted_directory")]
        graded, submitted = map(submission.timestamp, places)
        return places[0].exists() and not (graded and submitted and submitted > graded)

    # ------------------------------------------------------------------------------------------------------- the run

    def __enter__(self):
        with contextlib.ExitStack() as cleanup:
            cleanup.enter_context(alone(self.root))
            for left in self._folder.glob(f"{UNFINISHED}*"):  # by a run that was killed
                shutil.rmtree(left, ignore_errors=True)
            wanted = [name for name in self.learners if name not in self.graded]
            if wanted:
                if self.backs_up:
                    gradebook.back_up(self.db_url, self.root)
                self._folder.mkdir(exist_ok=True)
                run = tempfile.mkdtemp(dir=self._folder, prefix=UNFINISHED)
                cleanup.callback(shutil.rmtree, run, ignore_errors=True)
                self.tasks = [self._task(name, run) for name in wanted]
                self._book = cleanup.enter_context(self._gradebook())
            self._cleanup = cleanup.pop_all()
        return self

    def __exit__(self, *_):
        self._cleanup.close()

    def _task(self, learner, run):
        folder = self._place("submitted_directory", learner)
        theirs = folder.is_symlink() or folder.parent.is_symlink()
        if not theirs and os.path.lexists(folder / submission.TIME) and submission.timestamp(folder) is None:
            with contextlib.suppress(OSError):
                put_aside(folder / submission.TIME, "timestamp-unreadable")  # Formgrader would stop at it
        exchange = Exchange(coursedir=self.directory, config=self.config).root
        limits, key = sandbox.Limits(config=self.config), course_key(Path(self.root, ".course_key"))
        return Task(
            learner=learner, assignment=self.asked, folder=str(folder), run=run,
            key=key, limits=limits.as_plain(), hidden=(self.root, exchange), unsandboxed=not sandbox.required(),
        )  # fmt: skip

    @property
    def _folder(self):
        return Path(self.root, self.directory.autograded_directory)

    def results(self, jobs=None):
        """Results as they come and are recorded: from this process, from `jobs` others, or from the cluster."""
        if self.scheduler and self.tasks:
            results = workers.on_cluster(self.tasks, grade, self.scheduler)
        else:
            results = workers.on_this_machine(self.tasks, grade, jobs) if jobs else map(grade, self.tasks)
        with contextlib.closing(results) if hasattr(results, "close") else contextlib.nullcontext():
            for result in results:
                yield self._recorded(result)

    def _recorded(self, result):
        """Record what was graded and put the folder in its place. The result, with an error if that failed."""
        if result.error:
            return result
        try:
            if result.graded.missing and self._holds(result.learner):
                raise FileNotFoundError("the worker does not see what was handed in: it needs the course's folder")
            with _undisturbed():
                self._record(result.learner, result.graded, Path(result.folder))
        except (ValueError, OSError, SQLAlchemyError) as error:
            return _failed(result.learner, result.seconds, error)
        return result

    def _record(self, learner, graded, folder):
        final = self._place("autograded_directory", learner)

        def make_room():
            if final.exists():
                rmtree(final)  # were it there after a failure from here on, nobody would grade this again

        moment = submission.timestamp(self._place("submitted_directory", learner))
        unchanged = _unchanged(final, graded)
        gradebook.record(
            self._book, self.assignment, learner, graded, moment, unchanged, self._penalty, before=make_room
        )
        final.parent.mkdir(parents=True, exist_ok=True)
        os.rename(folder, final)

    def _penalty(self, learner, score, seconds):
        step = AssignLatePenalties(config=self.config)
        step.init_plugin()
        return step.plugin_inst.late_submission_penalty(learner, score, seconds)

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
            with gradebook.opened(self.db_url, self.directory.course_id) as book:
                yield book
        except SQLAlchemyError as error:
            raise ValueError(
                f"the gradebook cannot be read ({_of_the_database(error)}); after an update: nbgrader db upgrade; "
                "if it is damaged: python -m mathllm_grading restore"
            ) from error


def _unchanged(folder, graded):
    """The grade ids of the cells whose source is what it was when this learner was graded before."""
    same = set()
    for name, notebook in graded.notebooks.items():
        with contextlib.suppress(OSError, ValueError):
            before = json.loads((folder / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
            sources = {submission.grade_id(cell): cell["source"] for cell in before}
            same |= {id for cell in notebook["cells"] if sources.get(id := submission.grade_id(cell)) == cell["source"]}
    return same


@contextlib.contextmanager
def _undisturbed():
    """Signals that would end this process wait until the grades are recorded."""
    held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)


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
