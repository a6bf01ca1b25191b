"""What the office does to a course: learners in, grades out, extensions, and collecting what was uploaded."""

import contextlib
import os
import re
import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from mathllm_grading import gradebook
from mathllm_grading.inert import plain
from mathllm_grading.run import alone, open_course
from nbgrader.api import Gradebook, Student
from nbgrader.coursedir import CourseDirectory

from mathllm.errors import suggest

from . import platform, report

__all__ = ["Office", "make_course", "opened_office"]

UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def make_course(folder):
    """Make a course of the book's assignments: its settings and sources, in a folder that nobody else can look into.

    Raises: FileExistsError if there is something in the folder already.
    """
    folder = Path(folder)
    if folder.exists() and any(folder.iterdir()):
        raise FileExistsError(f"{folder} is not empty: name a folder that is not there yet")
    here = Path(__file__).parent
    shipped = here / "course" if (here / "course").exists() else here.parent  # of a wheel, or of a checkout
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
    shutil.copy(shipped / "nbgrader_config.py", folder)
    shutil.copytree(shipped / "source", folder / "source", ignore=shutil.ignore_patterns(".*"))


@contextlib.contextmanager
def opened_office():
    """The office of the course we are in; no grading run meets it."""
    directory, _ = open_course()
    with alone(directory.root), gradebook.opened(directory) as book:
        yield Office(directory, book)


@dataclass
class Office:
    """A course, as the office sees it."""

    directory: CourseDirectory
    book: Gradebook

    def enrol(self, learners):
        """Add learners, or bring what is known of them up to date; nobody is removed. How many are new."""
        known = {student.id for student in self.book.students}
        for learner, row in learners.by_id.items():
            student = self.book.db.get(Student, learner) or Student(id=learner)
            for name, value in platform.details(row).items():
                setattr(student, name, value or getattr(student, name))
            self.book.db.add(student)
        self.book.db.commit()
        return len(learners.by_id.keys() - known)

    def points(self, assignments, items=False):
        """({learner: {column: points}}, {column: points possible}, learners whose texts are not graded yet).

        A column is an assignment or, with items, an item of it. Points lost for lateness are taken off an assignment.
        """
        points, possible, unread = {}, {}, set()
        for name in assignments or [assignment.name for assignment in self.book.assignments]:
            assignment = gradebook.assignment_called(self.book, name)
            name = assignment.name
            cells = [
                cell for notebook in assignment.notebooks for cell in [*notebook.grade_cells, *notebook.task_cells]
            ]
            possible |= (
                {f"{name}: {cell.name}": cell.max_score for cell in cells} if items else {name: assignment.max_score}
            )
            for entry in assignment.submissions:
                grades = [grade for notebook in entry.notebooks for grade in notebook.grades]
                if all(grade.auto_score is None and grade.manual_score is None for grade in grades):
                    continue  # not graded yet
                read = [grade for grade in grades if grade.auto_score is not None or not grade.needs_manual_grade]
                found = {f"{name}: {grade.cell.name}": grade.score for grade in read}
                whole = {name: max(0.0, entry.score - (entry.late_submission_penalty or 0.0))}
                points.setdefault(entry.student_id, {}).update(found if items else whole)
                if entry.needs_manual_grade:
                    unread.add(entry.student_id)
        return points, possible, unread

    def questions(self, assignments):
        """Numbers about the items of assignments: a list of report.Question, and {assignment: {day: hand-ins}}."""
        found, days = [], {}
        folder = Path(self.directory.root, self.directory.autograded_directory)
        for given in assignments:
            assignment = gradebook.assignment_called(self.book, given)
            name = assignment.name
            points, _, _ = self.points([name], items=True)
            mine = {
                learner: {key.partition(": ")[2]: value for key, value in given.items()}
                for learner, given in points.items()
            }
            if not mine:
                raise ValueError(f"nobody is graded in {name}: python -m mathllm_grading grade {name}")
            found += report.questions(name, mine, folder)
            moments = [entry.timestamp for entry in assignment.submissions if entry.timestamp]
            days[name] = dict(sorted(Counter(f"{moment:%Y-%m-%d}" for moment in moments).items()))
        return found, days

    def extend(self, learner, assignment, time):
        """Give a learner more time, "2d" or "12h"; "0d" takes it back. The new deadline, in UTC.

        Raises: ValueError for a name that is not there, an assignment without a deadline, a time in other words.
        """
        entry = gradebook.assignment_called(self.book, assignment)
        self._learner(learner)
        length = re.fullmatch(r"(\d+)([mhdw])", time)
        if length is None:
            raise ValueError(f"{time!r} is no length of time: say 30m, 12h, 2d or 1w, and 0d for none")
        if entry.duedate is None:
            raise ValueError(f"{entry.name} has no deadline: set one in Formgrader first")
        extension = timedelta(**{UNITS[length[2]]: int(length[1])})
        theirs = gradebook.entry_of(self.book, entry.name, learner)
        theirs.extension = extension or None
        self.book.db.commit()
        return theirs.duedate

    def collect(self, folder, assignment):
        """Take the notebooks of a platform's download into the course.

        Returns: {learner: what was done}, and the files for which no learner is known
        """
        entry = gradebook.assignment_called(self.book, assignment)
        assignment, notebooks = entry.name, [notebook.name for notebook in entry.notebooks]
        students = self.book.students
        names, ids = {}, {student.lms_user_id: student.id for student in students if student.lms_user_id}
        for student in students:
            names.setdefault(f"{student.first_name} {student.last_name}".casefold(), []).append(student.id)
        theirs, done, unknown = {}, {}, []
        for upload in platform.uploads(folder):
            candidates = names.get(upload.name.casefold(), [])
            learner = ids.get(upload.lms_user_id) or (candidates[0] if len(candidates) == 1 else None)
            if learner is None:
                unknown.append(plain(str(upload.path.relative_to(Path(folder).resolve()))))
            else:
                theirs.setdefault(learner, []).append(upload)
        for learner, uploads in theirs.items():
            if len({upload.number for upload in uploads}) > 1:
                done[learner] = "not taken: two participants have this name, and one of them may have taken it over"
                continue
            for upload in uploads:
                done[learner] = self._take(upload.path, learner, assignment, notebooks)
        return done, unknown

    def _take(self, path, learner, assignment, notebooks):
        named = [name for name in notebooks if name in path.stem] or notebooks
        if len(named) != 1:
            return f"not taken: {plain(path.name)} is none of {', '.join(notebooks)}"
        if path.stat().st_size > 1000 * self.directory.max_dir_size:
            return "not taken: it is larger than CourseDirectory.max_dir_size"
        place = Path(self.directory.format_path(self.directory.submitted_directory, learner, assignment))
        content, target = path.read_bytes(), place / f"{named[0]}.ipynb"
        if target.exists() and target.read_bytes() == content:
            return "there already"
        moment = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent) as new:
            fresh = Path(new, assignment)
            if place.exists():
                shutil.copytree(place, fresh)  # another notebook of the assignment, taken before
            fresh.mkdir(exist_ok=True)
            (fresh / target.name).write_bytes(content)
            (fresh / "timestamp.txt").write_text(f"{moment:%Y-%m-%d %H:%M:%S.%f} UTC", encoding="utf-8")
            if place.exists():
                os.rename(place, Path(new, "before"))
            os.rename(fresh, place)
        return f"taken, handed in {moment:%Y-%m-%d %H:%M} UTC"

    def _learner(self, name):
        known = [student.id for student in self.book.students]
        if name not in known:
            raise ValueError(f"there is no learner {name!r}{suggest(name, known)}")
