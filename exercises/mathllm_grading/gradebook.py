"""nbgrader's gradebook: backed up before each run, restored when asked, and written one learner at a time.

A learner's grades are recorded in one transaction, so that a run that is killed leaves all of them or none, and
several processes can share a SQLite file: each waits until the one before it is done.
"""

import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

from mathllm_exercises.registry import items
from nbgrader.api import Comment, Grade, Gradebook, Student, SubmittedAssignment, SubmittedNotebook
from sqlalchemy import make_url
from sqlalchemy.exc import SQLAlchemyError
from traitlets.log import get_logger

from mathllm.errors import suggest

__all__ = [
    "asked", "assignment_called", "back_up", "backups", "check_points", "entry_of", "exists", "is_gradebook",
    "opened", "recorded", "restore", "said", "sqlite_file",
]  # fmt: skip

KEPT = 20  # backups
TIME = "%Y%m%dT%H%M%S.%fZ"
PATIENCE = 300  # seconds that a process waits for others to finish writing


def sqlite_file(db_url):
    """The file that holds a gradebook, or None if a database server does."""
    url = make_url(db_url)
    return Path(url.database) if url.get_backend_name() == "sqlite" and url.database else None


def exists(db_url):
    """Whether there is a gradebook: nbgrader makes one where it opens none. On a server, there is taken to be one."""
    file = sqlite_file(db_url)
    return file is None or file.exists()


def assignment_called(book, name):
    """The assignment of a gradebook that is meant: "03" is short for "03_matrices".

    Raises: ValueError if it is none of them, or short for several.
    """
    known = {assignment.name: assignment for assignment in book.assignments}
    meant = {name} & known.keys() or {long for long in known if long.startswith(f"{name}_")}
    if len(meant) != 1:
        more = f"; it is short for {' and '.join(sorted(meant))}" if meant else suggest(name, known)
        raise ValueError(f"the gradebook has no assignment {name!r}: nbgrader generate_assignment puts it there{more}")
    return known[meant.pop()]


def check_points(assignment):
    """Compare the points of an assignment's graded cells with those of their exercises.

    Raises: ValueError, which says what to run, where the assignment was made from another edition of the exercises.
    """
    ours = {item.grade_id: item.points for item in items()}
    cells = [cell for notebook in assignment.notebooks for cell in [*notebook.grade_cells, *notebook.task_cells]]
    changed = [cell for cell in cells if ours.get(cell.name, cell.max_score) != cell.max_score]
    if changed:
        wrong = [f"{cell.name} ({ours[cell.name]:g}, in the assignment {cell.max_score:g})" for cell in changed[:5]]
        raise ValueError(
            f"the points of these exercises have changed since {assignment.name} was generated: {', '.join(wrong)}. "
            f"Say make notebooks in the checkout, then nbgrader generate_assignment {assignment.name} --force and "
            f"nbgrader release_assignment {assignment.name} --force, and grade with --force"
        )


# Backups


def backups(folder):
    """The backups in a course's folder, oldest first."""
    return sorted(Path(folder, "backups").glob("gradebook-*Z.*"))


def back_up(db_url, folder, pause=timedelta(), kept=KEPT):
    """Copy the gradebook to backups/gradebook-<UTC time>.db, unless this has been done within the pause.

    Only the newest `kept` stay. A SQLite file is copied as it was at one moment, whoever writes to it meanwhile. A
    PostgreSQL gradebook is dumped by pg_dump, where that is installed.
    """
    file, now = sqlite_file(db_url), datetime.now(UTC)
    if file is None and shutil.which("pg_dump") is None:
        get_logger().warning("The gradebook is not backed up: pg_dump is not installed")
        return
    if any(path.name > f"gradebook-{now - pause:{TIME}}" for path in backups(folder)):
        return
    path = Path(folder, "backups", f"gradebook-{now:{TIME}}{'.db' if file else '.dump'}")
    path.parent.mkdir(mode=0o700, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.touch(0o600)
    try:
        if file:
            _copy(file, partial)
        else:
            _dump(make_url(db_url), partial)
        partial.rename(path)
    finally:
        partial.unlink(missing_ok=True)
    for old in backups(folder)[:-kept]:
        old.unlink()


def restore(backup, db_url):
    """Put a backup in the gradebook's place; what is there is backed up first or, if it is damaged, put aside.

    Raises: ValueError if the backup is no gradebook, or a database server holds the gradebook; OSError if somebody is
    writing to it, or if the copy fails.
    """
    file = sqlite_file(db_url)
    if file is None:
        raise ValueError("a database server holds this gradebook: restore it with pg_restore --clean")
    if not is_gradebook(backup):
        raise ValueError(f"{backup} is no backup of a gradebook, or is damaged")
    if file.exists() and is_gradebook(file):
        back_up(db_url, file.parent, kept=KEPT + 1)  # the backup that is being restored may be the oldest
    elif file.exists():
        file.rename(Path(backup).with_name(f"damaged-{datetime.now(UTC):{TIME}}.db"))
    _copy(backup, file)


def _copy(source, target):
    try:
        with (
            contextlib.closing(sqlite3.connect(f"file:{source}?mode=ro", uri=True, timeout=PATIENCE)) as here,
            contextlib.closing(sqlite3.connect(target, timeout=PATIENCE)) as there,
        ):
            here.backup(there)
    except sqlite3.Error as error:
        raise OSError(f"{source} cannot be copied to {target}: {error}") from error


def is_gradebook(path):
    """Whether a SQLite file is a gradebook and undamaged. Raises: OSError while somebody writes to it."""
    try:
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=PATIENCE)) as database:
            database.execute("SELECT auto_score FROM grade LIMIT 1")
            return database.execute("PRAGMA quick_check").fetchall() == [("ok",)]
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
            raise OSError(f"{path} is in use: wait until it is no longer written to") from error
        return False


def _dump(url, target):
    address = url.set(drivername="postgresql", password=None).render_as_string(hide_password=False)
    secret = {"PGPASSWORD": url.password} if url.password else {}
    command = ["pg_dump", "--format=custom", f"--file={target}", f"--dbname={address}"]
    done = subprocess.run(command, env=os.environ | secret, capture_output=True, text=True)
    if done.returncode:
        raise OSError(done.stderr.strip() or "pg_dump failed")


# Reading and writing


@contextlib.contextmanager
def opened(directory):
    """nbgrader's gradebook of a course, which waits while others write to it.

    Raises: ValueError, with the remedy, where it cannot be read or written to.
    """
    file, url = sqlite_file(directory.db_url), make_url(directory.db_url)
    if file:
        url = url.update_query_dict({"timeout": str(PATIENCE)})
    for place in (file, file.parent) if file and file.exists() else ():
        if not os.access(place, os.W_OK):
            raise ValueError(f"{place} cannot be written to: chown it to the account that grades")
    try:
        with _gradebook(url, directory.course_id) as book:
            yield book
    except SQLAlchemyError as error:
        raise ValueError(
            f"the gradebook cannot be used ({said(error)}); after an update: nbgrader db upgrade; if it is damaged: "
            "python -m mathllm_grading restore"
        ) from error


def _gradebook(url, course_id):
    try:
        return Gradebook(url.render_as_string(hide_password=False), course_id)
    except TypeError:  # from such a database all text comes as bytes, also the version that SQLAlchemy asks for
        raise ValueError(
            f"the database {url.database} is encoded as SQL_ASCII, which cannot hold what learners write: make it anew "
            f"with createdb -E UTF8 -T template0 {url.database}"
        ) from None


def said(error):
    """What the database itself says of an error of SQLAlchemy, in one line."""
    return str(getattr(error, "orig", error)).strip().splitlines()[0]


def asked(assignment):
    """{notebook: {"kernelspec": dict, "cells": {grade id: cell}}} of an assignment, as it was generated."""
    return {
        notebook.name: {"kernelspec": json.loads(notebook.kernelspec or "{}"), "cells": _cells(notebook)}
        for notebook in assignment.notebooks
    }


def _cells(notebook):
    points = {cell.name: cell.max_score for cell in [*notebook.grade_cells, *notebook.task_cells]}
    kinds = {"grade": notebook.grade_cells, "solution": notebook.solution_cells, "task": notebook.task_cells}
    found = {}
    for cell in notebook.source_cells:
        flags = {kind: cell.name in [other.name for other in cells] for kind, cells in kinds.items()}
        flags |= {"schema_version": 3, "grade_id": cell.name, "locked": bool(cell.locked)}
        flags |= {"points": points[cell.name]} if cell.name in points else {}
        shown = {"cell_type": cell.cell_type, "id": cell.name[:60], "source": cell.source}
        shown |= {"outputs": [], "execution_count": None} if cell.cell_type == "code" else {}
        found[cell.name] = shown | {"metadata": {"nbgrader": flags}}
    return found


@contextlib.contextmanager
def recorded(book, assignment, learner, graded, timestamp, unchanged, penalty):
    """Write all of a learner's grades in one transaction; the block runs when nothing but its commit is left.

    timestamp: when the work was handed in, or None   unchanged: grade ids of texts that are as they were when they were
    graded   penalty(learner, score, seconds late): points lost, or None
    """
    try:
        entry = entry_of(book, assignment, learner)
        entry.timestamp = timestamp or entry.timestamp
        for notebook in entry.notebooks:
            for row in notebook.grades:
                _write(row, graded.grades[notebook.name][row.cell.name], row.cell.name in unchanged)
            for row in notebook.comments:
                row.auto_comment = "No response." if row.cell.name in graded.blank else None
            notebook.late_submission_penalty = None
            if entry.total_seconds_late > 0:
                book.db.flush()
                book.db.expire(notebook, ["score"])
                lost = penalty(learner, notebook.score, entry.total_seconds_late)
                notebook.late_submission_penalty = lost if lost is None else min(max(lost, 0), notebook.score)
        book.db.flush()
        yield
        book.db.commit()
    except Exception:  # an interrupt may come amid a commit, from which there is no way back: it ends the run
        book.db.rollback()
        raise


def entry_of(book, assignment, learner):
    """A learner's entry for an assignment, with a row for each of its cells; what is not there yet is made."""
    whole = book.find_assignment(assignment)
    student = book.db.get(Student, learner) or Student(id=learner)
    query = book.db.query(SubmittedAssignment).filter_by(assignment_id=whole.id, student_id=learner)
    with book.db.no_autoflush:
        entry = query.one_or_none() or SubmittedAssignment(assignment=whole, student=student)
        there = {notebook.notebook_id: notebook for notebook in entry.notebooks}
        for notebook in whole.notebooks:
            mine = there.get(notebook.id) or SubmittedNotebook(notebook=notebook, assignment=entry)
            _make(Grade, mine, mine.grades, [*notebook.grade_cells, *notebook.task_cells])
            _make(Comment, mine, mine.comments, [*notebook.solution_cells, *notebook.task_cells])
            book.db.add(mine)  # with all that belongs to it
        book.db.add_all([student, entry])
    book.db.flush()
    return entry


def _make(kind, notebook, rows, cells):
    known = {row.cell_id for row in rows}
    for cell in cells:
        if cell.id not in known:
            kind(cell_id=cell.id, notebook=notebook)


def _write(row, grade, unchanged):
    """One grade. What a person has graded stays, and is flagged only if there is something new to look at."""
    settled = row.manual_score is not None and not row.needs_manual_grade
    same = unchanged if grade.points is None else grade.points == row.auto_score
    row.auto_score = grade.points
    by_hand = grade.points is None or row.manual_score is not None
    row.needs_manual_grade = grade.review is not None or (by_hand and not (settled and same))
