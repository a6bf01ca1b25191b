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
from .grading import Graded, course_key, grade_submission
from .inert import INERT_FILES
from .workers import Result, Task

__all__ = ["Run", "alone", "grade", "open_course", "table"]

GRADER = "mathllm_grading.autograde.Grader"
UNFINISHED = ".grading-"  # folders of runs, in autograded/


def open_course():
    """The course whose settings are in force here: its folder, and the settings.

    Raises: ValueError outside a course, or where its settings would grade without the trusted grader.
    """
    app = AutogradeApp(log_level="ERROR")  # a missing nbgrader_config.py is explained here
    app.initialize([], root="")
    app.log.setLevel("WARNING")
    directory = CourseDirectory(parent=app)
    if app.config.Autograde.get("exporter_class") != GRADER:
        raise ValueError(
            f"{directory.root} is not the folder of this course: there is no nbgrader_config.py with the trusted grader"
        )
    return directory, app.config


def grade(task):
    """Grade one learner; never raises, and writes nothing."""
    try:
        return Result(task.learner, graded=grade_submission(task.folder, task.learner, task.assignment))
    except Exception as error:
        return _failed(task.learner, error)


def _write(graded, folder):
    """What is kept of a submission, as files that nobody changes by accident; of other files, those that are inert."""
    files = {path: content for path, content in graded.files.items() if Path(path).suffix.lower() in INERT_FILES}
    notebooks = {}
    for name, notebook in graded.notebooks.items():
        text = json.dumps(notebook, ensure_ascii=False, indent=1, sort_keys=True)
        notebooks[f"{name}.ipynb"] = f"{text}\n".encode()
    for path, content in submission.beside(files, notebooks).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
        (folder / path).chmod(0o444)


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
        self._autograded = Path(self.root, self.directory.autograded_directory)
        if scheduler and gradebook.sqlite_file(self.directory.db_url):
            raise ValueError(
                "a cluster needs a gradebook that it can reach: set MATHLLM_GRADEBOOK to the address of a PostgreSQL "
                "database, as in postgresql+psycopg://instructor@host/gradebook"
            )
        if not gradebook.exists(self.directory.db_url):
            raise ValueError(f"there is no gradebook yet: nbgrader generate_assignment {assignment} makes it")
        with gradebook.opened(self.directory) as book:
            generated = gradebook.assignment_called(book, assignment)
            recorded = {entry.student_id for entry in generated.submissions}
            self.assignment, self.tasks = self._asked(generated), []
        if sandbox.required() and sandbox.problem():
            raise ValueError(f"{sandbox.problem()} Or say --unsandboxed.")
        self.learners = self._chosen(students)
        self.graded = [name for name in self.learners if not force and name in recorded and self._is_graded(name)]

    # ---------------------------------------------------------------------------------------- what there is to grade

    def _asked(self, generated):
        """The assignment as it was generated. Raises: ValueError if its points have changed since."""
        name, notebooks, ignored = generated.name, gradebook.asked(generated), tuple(self.directory.ignore)
        gradebook.check_points(generated)
        exchange = Exchange(coursedir=self.directory, config=self.config).root
        return submission.Assignment(
            name, notebooks, ignored=ignored,
            files=submission.read_submission(Path(self.root, self.directory.source_directory, name), ignored).files,
            key=course_key(Path(self.root, ".course_key")), hidden=(self.root, exchange),
            limits=sandbox.Limits(config=self.config).as_plain(), sandboxed=sandbox.required(),
        )  # fmt: skip

    def _chosen(self, students):
        name = self.assignment.name
        folders = Path(self.root, self.directory.submitted_directory).glob(f"*/{name}")
        there = {path.parent.name for path in folders} - set(self.directory.student_id_exclude.split(","))
        if not there:
            raise ValueError(f"nobody has handed in {name}: nbgrader collect {name}")
        for learner in students:
            if learner not in there:
                raise ValueError(f"{learner!r} has not handed in {name}{suggest(learner, there)}")
        if not students and not any(map(self._holds, there)):  # the folder is the wrong one: no learner is to blame
            names = " or ".join(f"{notebook}.ipynb" for notebook in self.assignment.notebooks)
            raise ValueError(
                f"none of the {len(there)} submissions holds {names}: nobody is graded; to give them 0 all the same, "
                "name them with --student"
            )
        return sorted(students or there)

    def _holds(self, learner):
        """Whether there is a notebook where a learner's should be, of whatever kind it is."""
        folder = self._place("submitted_directory", learner)
        places = [folder / f"{name}.ipynb" for name in self.assignment.notebooks]
        return not submission.linked(folder) and any(os.path.lexists(at) and not at.is_dir() for at in places)

    def _place(self, step, learner):
        return Path(self.directory.format_path(getattr(self.directory, step), learner, self.assignment.name))

    def _is_graded(self, learner):
        """Whether graded work is there and nothing newer was handed in, which is how nbgrader decides it, too."""
        places = [self._place(step, learner) for step in ("autograded_directory", "submitted_directory")]
        graded, submitted = map(submission.timestamp, places)
        return places[0].exists() and not (graded and submitted and submitted > graded)

    # ------------------------------------------------------------------------------------------------------- the run

    def __enter__(self):
        with contextlib.ExitStack() as cleanup:
            cleanup.enter_context(alone(self.root))
            for left in self._autograded.glob(f"{UNFINISHED}*"):  # by a run that was killed
                shutil.rmtree(left, ignore_errors=True)
            self.tasks = [self._task(name) for name in self.learners if name not in self.graded]
            if self.tasks:
                gradebook.back_up(self.directory.db_url, self.root, self._pause)
                self._autograded.mkdir(exist_ok=True)
                self._book = cleanup.enter_context(gradebook.opened(self.directory))
            self._late = AssignLatePenalties(config=self.config)
            self._late.init_plugin()
            self._cleanup = cleanup.pop_all()
        return self

    def __exit__(self, *_):
        self._cleanup.close()

    def _task(self, learner):
        folder = self._place("submitted_directory", learner)
        time = folder / submission.TIME
        if not submission.linked(folder) and os.path.lexists(time) and submission.timestamp(folder) is None:
            with contextlib.suppress(OSError):  # Formgrader would stop at it; the name is one that is free
                time.rename(time.with_name(f"timestamp-unreadable-{os.urandom(4).hex()}.txt"))
        return Task(learner, self.assignment, str(folder))

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
        """Record what was graded and put the folder in its place. The result without files, or with an error."""
        if result.error:
            return result
        learner, graded, name = result.learner, result.graded, self.assignment.name
        try:
            if graded.missing and self._holds(learner):
                raise FileNotFoundError("the worker does not see what was handed in: it needs the course's folder")
            final = self._place("autograded_directory", learner)
            moment = submission.timestamp(self._place("submitted_directory", learner))
            same, penalty = _unchanged(final, graded), self._late.plugin_inst.late_submission_penalty
            with tempfile.TemporaryDirectory(dir=self._autograded, prefix=UNFINISHED) as folder:
                new = Path(folder, "new")
                _write(graded, new)
                with gradebook.recorded(self._book, name, learner, graded, moment, same, penalty):
                    if final.exists():  # were it there after a failure from here on, nobody would grade this again
                        os.rename(final, Path(folder, "before"))
                final.parent.mkdir(parents=True, exist_ok=True)
                os.rename(new, final)
        except Exception as error:
            return _failed(learner, error)
        return Result(learner, graded=Graded(graded.grades))


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
    with gradebook.opened(run.directory) as book:
        entries = {entry.student_id: entry for entry in book.assignment_submissions(run.assignment.name)}
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
