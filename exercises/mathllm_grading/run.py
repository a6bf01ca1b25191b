"""One grading run: what is there to grade, who is graded already, what is recorded, and the table at the end."""

import contextlib
import fcntl
import json
import os
import shutil
import tempfile
import traceback
from datetime import timedelta
from pathlib import Path

from nbgrader.apps.autogradeapp import AutogradeApp
from nbgrader.coursedir import CourseDirectory
from nbgrader.exchange.default import Exchange
from nbgrader.preprocessors import AssignLatePenalties
from sqlalchemy.exc import SQLAlchemyError

from mathllm.errors import suggest

from . import gradebook, sandbox, submission, workers
from .grading import course_key, grade_submission
from .inert import put_aside, rename_active_files
from .workers import Result, Task

__all__ = ["Run", "alone", "assignment_called", "grade", "open_course", "table"]

GRADER = "mathllm_grading.autograde.Grader"
UNFINISHED = ".grading-"  # folders of runs, in autograded/


def open_course():
    """The course whose settings are in force here: its folder, and the settings.

    Raises: ValueError outside a course, or where its settings would grade without the trusted grader.
    """
    app = AutogradeApp(log_level="ERROR")  # a missing nbgrader_config.py is explained here
    app.initialize([], root="")
    app.log.setLevel("WARNING")
    app.log.propagate = False
    directory = CourseDirectory(parent=app)
    if app.config.Autograde.get("exporter_class") != GRADER:
        raise ValueError(
            f"{directory.root} is not the folder of this course: there is no nbgrader_config.py with the trusted grader"
        )
    if not Path(directory.root, directory.source_directory).is_dir():
        raise ValueError(f"{directory.root} is no course yet: it has no folder {directory.source_directory!r}")
    return directory, app.config


def assignment_called(directory, name):
    """The assignment of a course that is meant: "03" is short for "03_matrices"."""
    sources = Path(directory.root, directory.source_directory)
    return gradebook.assignment_called(name, [path.name for path in sources.iterdir() if path.is_dir()])


def grade(task):
    """Grade one learner into the folder of the run; never raises, and records nothing."""
    try:
        if not Path(task.run).exists():
            raise FileNotFoundError(f"{task.run} is not there: every worker needs the course's folder")
        if task.unsandboxed:
            os.environ[sandbox.UNSANDBOXED] = "yes"
        graded = grade_submission(task.folder, task.learner, task.assignment)
        folder = tempfile.mkdtemp(dir=task.run)
        _write(graded, Path(folder))
    except Exception as error:
        return _failed(task.learner, error)
    return Result(task.learner, graded=graded, folder=folder)


def _write(graded, folder):
    """What is kept of a submission, as files that nobody changes by accident."""
    for path, content in graded.files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    rename_active_files(folder)
    for name, notebook in graded.notebooks.items():
        text = json.dumps(notebook, ensure_ascii=False, indent=1, sort_keys=True)
        (folder / f"{name}.ipynb").write_text(text + "\n", encoding="utf-8")
    for path in folder.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o444)
    folder.chmod(0o755)


def _failed(learner, error):
    """The result of a failure. Where the database refuses (full disk, lock), its own words say all that helps."""
    if isinstance(error, SQLAlchemyError):
        return Result(learner, f"the gradebook cannot be written to: {gradebook.said(error)}")
    return Result(learner, f"{type(error).__name__}: {' '.join(str(error).split())[:300]}", traceback.format_exc())


class Run:
    """A grading run: `tasks` says who is to be graded, `graded` who is graded already."""

    def __init__(self, assignment, students=(), force=False, scheduler=None, course=None, pause=timedelta()):
        self.directory, self.config = course or open_course()
        self.root, self.scheduler, self._pause = self.directory.root, scheduler, pause
        if scheduler and gradebook.sqlite_file(self.directory.db_url):
            raise ValueError(
                "a cluster needs a gradebook that it can reach: set MATHLLM_GRADEBOOK to the address of a PostgreSQL "
                "database, as in postgresql+psycopg://instructor@host/gradebook"
            )
        self.asked, self.tasks = self._asked(assignment), []
        self.assignment = self.asked.name
        if sandbox.required() and sandbox.problem():
            raise ValueError(f"{sandbox.problem()} Or say --unsandboxed.")
        self.learners = self._chosen(students)
        with self.gradebook() as book:
            recorded = {entry.student_id for entry in book.assignment_submissions(self.assignment)}
        self.graded = [name for name in self.learners if not force and name in recorded and self._is_graded(name)]

    def gradebook(self):
        """The course's gradebook, to be used in a `with` statement."""
        return gradebook.opened(self.directory.db_url, self.directory.course_id)

    # ---------------------------------------------------------------------------------------- what there is to grade

    def _asked(self, name):
        """The assignment as it was generated. Raises: ValueError if it was not, or its points have changed since."""
        name = assignment_called(self.directory, name)
        missing = ValueError(f"{name} has not been generated: nbgrader generate_assignment {name}")
        if not gradebook.exists(self.directory.db_url):
            raise missing
        with self.gradebook() as book:
            if name not in {entry.name for entry in book.assignments}:
                raise missing
            notebooks = gradebook.asked(book, name)
        gradebook.check_points(notebooks, name)
        ignored = tuple(self.directory.ignore)
        exchange = Exchange(coursedir=self.directory, config=self.config).root
        return submission.Assignment(
            name, notebooks, ignored=ignored,
            files=submission.read_submission(Path(self.root, self.directory.source_directory, name), ignored).files,
            key=course_key(Path(self.root, ".course_key")), hidden=(self.root, exchange),
            limits=sandbox.Limits(config=self.config).as_plain(),
        )  # fmt: skip

    def _chosen(self, students):
        folders = Path(self.root, self.directory.submitted_directory).glob(f"*/{self.assignment}")
        there = {path.parent.name for path in folders} - set(self.directory.student_id_exclude.split(","))
        if not there:
            raise ValueError(f"nobody has handed in {self.assignment}: nbgrader collect {self.assignment}")
        for name in students:
            if name not in there:
                raise ValueError(f"{name!r} has not handed in {self.assignment}{suggest(name, there)}")
        if not students and not any(map(self._holds, there)):  # the folder is the wrong one: no learner is to blame
            names = " or ".join(f"{name}.ipynb" for name in self.asked.notebooks)
            raise ValueError(
                f"none of the {len(there)} submissions holds {names}: nobody is graded; to give them 0 all the same, "
                "name them with --student"
            )
        return sorted(students or there)

    def _holds(self, learner):
        """Whether there is a notebook where a learner's should be, of whatever kind it is."""
        folder = self._place("submitted_directory", learner)
        places = [folder / f"{name}.ipynb" for name in self.asked.notebooks]
        return not submission.linked(folder) and any(os.path.lexists(at) and not at.is_dir() for at in places)

    def _place(self, step, learner):
        return Path(self.directory.format_path(getattr(self.directory, step), learner, self.assignment))

    def _is_graded(self, learner):
        """Whether graded work is there and nothing newer was handed in, which is how nbgrader decides it, too."""
        places = [self._place(step, learner) for step in ("autograded_directory", "submitted_directory")]
        graded, submitted = map(submission.timestamp, places)
        return places[0].exists() and not (graded and submitted and submitted > graded)

    # ------------------------------------------------------------------------------------------------------- the run

    def __enter__(self):
        autograded = Path(self.root, self.directory.autograded_directory)
        with contextlib.ExitStack() as cleanup:
            cleanup.enter_context(alone(self.root))
            for left in autograded.glob(f"{UNFINISHED}*"):  # by a run that was killed
                shutil.rmtree(left, ignore_errors=True)
            wanted = [name for name in self.learners if name not in self.graded]
            if wanted:
                gradebook.back_up(self.directory.db_url, self.root, self._pause)
                autograded.mkdir(exist_ok=True)
                run = tempfile.mkdtemp(dir=autograded, prefix=UNFINISHED)
                cleanup.callback(shutil.rmtree, run, ignore_errors=True)
                self.tasks = [self._task(name, run) for name in wanted]
                self._book = cleanup.enter_context(self.gradebook())
            self._cleanup = cleanup.pop_all()
        return self

    def __exit__(self, *_):
        self._cleanup.close()

    def _task(self, learner, run):
        folder = self._place("submitted_directory", learner)
        time = folder / submission.TIME
        if not submission.linked(folder) and os.path.lexists(time) and submission.timestamp(folder) is None:
            with contextlib.suppress(OSError):
                put_aside(time, "timestamp-unreadable")  # Formgrader would stop at it
        return Task(learner, self.asked, str(folder), run, unsandboxed=not sandbox.required())

    def results(self, jobs=None):
        """Results as they come and are recorded: from this process, from `jobs` others, or from the cluster."""
        if self.scheduler and self.tasks:
            results = workers.on_cluster(self.tasks, grade, self.scheduler)
        elif jobs:
            results = workers.on_this_machine(self.tasks, grade, jobs)
        else:
            results = (grade(task) for task in self.tasks)
        with contextlib.closing(results):
            for result in results:
                yield self._recorded(result)

    def _recorded(self, result):
        """Record what was graded and put the folder in its place. The result, with an error if that failed."""
        if result.error:
            return result
        learner, graded = result.learner, result.graded
        try:
            if graded.missing and self._holds(learner):
                raise FileNotFoundError("the worker does not see what was handed in: it needs the course's folder")
            final = self._place("autograded_directory", learner)
            moment = submission.timestamp(self._place("submitted_directory", learner))
            same = _unchanged(final, graded)
            with gradebook.recorded(self._book, self.assignment, learner, graded, moment, same, self._penalty):
                if final.exists():  # were it there after a failure from here on, nobody would grade this again
                    os.rename(final, f"{result.folder}-before")
            final.parent.mkdir(parents=True, exist_ok=True)
            os.rename(result.folder, final)
        except (ValueError, OSError, SQLAlchemyError) as error:
            return _failed(learner, error)
        return result

    def _penalty(self, learner, score, seconds):
        """The points that the course takes from a learner who is late."""
        late = AssignLatePenalties(config=self.config)
        late.init_plugin()
        return late.plugin_inst.late_submission_penalty(learner, score, seconds)


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
    went, width = {result.learner: result for result in results}, max(map(len, ("learner", *run.learners)))
    lines = [f"{'learner':<{width}}  {'score':>7}  {'max':>6}"]
    with run.gradebook() as book:
        entries = {entry.student_id: entry for entry in book.assignment_submissions(run.assignment)}
        for learner in run.learners:
            points, late = _points_and_delay(entries.get(learner))
            note = _note(went[learner], entries.get(learner)) if learner in went else "not graded"
            notes = "graded before" if learner in run.graded else note, late
            lines.append(f"{learner:<{width}}  {points}  {'; '.join(filter(None, notes))}".rstrip())
    failed = sum(result.error is not None for result in results)
    summary = f"{len(results) - failed} graded, {len(run.graded)} graded before, {failed} failed"
    left = len(run.learners) - len(results) - len(run.graded)
    return "\n".join([*lines, summary + f", {left} not begun or not finished" * bool(left)])


def _points_and_delay(entry):
    """The points of a learner as the table shows them, and how late the work was."""
    if entry is None:
        return f"{'–':>7}  {'–':>6}", ""
    lost = entry.late_submission_penalty
    late = f"late by {timedelta(seconds=round(entry.total_seconds_late))}" + f", {lost:g} points lost" * bool(lost)
    points = f"{max(0.0, entry.score - lost):7.2f}  {entry.max_score:6.2f}"
    return points, late if entry.total_seconds_late else ""


def _note(result, entry):
    if result.error:
        return f"FAILED: {result.error}"
    if result.graded.review:
        return f"for review: {'; '.join(result.graded.review)}"
    return "to be read in Formgrader" if entry.needs_manual_grade else ""
