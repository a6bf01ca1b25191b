"""nbgrader's gradebook: backed up before each run, restored when asked, and written one learner at a time.

A learner's grades are recorded in one transaction, so that a run that is killed leaves all of them or none, and
several processes can share a SQLite file: each waits until the one before it is done.
"""

import contextlib
import os
import shutil
import sqlite3
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path

from mathllm_exercises.registry import items
from nbgrader.api import Gradebook
from nbgrader.converters import Autograde
from nbgrader.converters.base import NbGraderException
from sqlalchemy import create_engine, event, make_url
from sqlalchemy.orm import scoped_session, sessionmaker
from sqlalchemy.pool import NullPool
from traitlets.log import get_logger

__all__ = [
    "back_up", "back_up_before", "backups", "check_encoding", "check_points", "is_gradebook", "restore", "sqlite_file",
    "transaction",
]  # fmt: skip

KEPT = 20  # backups
PATIENCE = 300  # seconds that a process waits for others to finish writing
OFTEN = 3600  # seconds: a server that grades one learner at a time makes no backup for each

_made = {}  # gradebook: when this process backed it up


def sqlite_file(db_url):
    """The file that holds a gradebook, or None if a database server does."""
    url = make_url(db_url)
    return Path(url.database) if url.get_backend_name() == "sqlite" and url.database else None


def check_encoding(db_url):
    """Raises: ValueError for a PostgreSQL database that cannot hold every character."""
    if make_url(db_url).get_backend_name() != "postgresql":
        return
    try:
        with create_engine(db_url, poolclass=NullPool).connect():
            return
    except TypeError:  # from such a database all text comes as bytes, also the version that SQLAlchemy asks for
        name = make_url(db_url).database
        raise ValueError(
            f"the database {name} is encoded as SQL_ASCII, which cannot hold what learners write: make it anew with "
            f"createdb -E UTF8 -T template0 {name}"
        ) from None


def check_points(points, assignment):
    """Compare the points of the graded cells, by grade id, with those of their exercises.

    Raises: ValueError, which says what to run, where the assignment was made from another edition of the exercises.
    """
    ours = {item.grade_id: item.points for item in items()}
    wrong = [name for name in points if name in ours and points[name] != ours[name]]
    if wrong:
        shown = ", ".join(f"{name} ({ours[name]:g}, in the assignment {points[name]:g})" for name in wrong[:5])
        raise ValueError(
            f"the points of these exercises have changed since {assignment} was generated: {shown}. Say make "
            f"notebooks in the checkout, then nbgrader generate_assignment {assignment} --force and "
            f"nbgrader release_assignment {assignment} --force, and grade with --force"
        )


# Backups


def backups(folder):
    """The backups in a course's folder, oldest first."""
    return sorted(Path(folder, "backups").glob("gradebook-*Z.*"))


def back_up(db_url, folder, kept=KEPT):
    """Copy the gradebook to backups/gradebook-<UTC time>.db; only the newest `kept` stay. The path, None without one.

    A SQLite file is copied as it was at one moment, whoever writes to it meanwhile. A PostgreSQL gradebook is dumped by
    pg_dump, where that is installed.
    """
    file = sqlite_file(db_url)
    if file is None and shutil.which("pg_dump") is None:
        get_logger().warning("The gradebook is not backed up: pg_dump is not installed")
        return None
    if file is not None and not file.exists():
        return None
    suffix = ".db" if file else ".dump"
    path = Path(folder, "backups", f"gradebook-{datetime.now(UTC):%Y%m%dT%H%M%S.%f}Z{suffix}")
    path.parent.mkdir(mode=0o700, exist_ok=True)
    partial = path.with_suffix(".partial")
    os.close(os.open(partial, os.O_CREAT | os.O_WRONLY, 0o600))
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
    return path


def back_up_before(autograde):
    """The backup before nbgrader's own Autograde runs: one in a process, or in an hour of a server's.

    Raises: NbGraderException, after logging why there can be none.
    """
    if type(autograde) is not Autograde:  # a run of ours has made its backup
        return
    db_url, root = autograde.coursedir.db_url, autograde.coursedir.root
    if time.monotonic() - _made.get(db_url, -OFTEN) >= OFTEN:
        try:
            back_up(db_url, root)
        except (OSError, RuntimeError) as error:
            autograde.log.error("The gradebook is not backed up, so nobody is graded: %s", error)
            raise NbGraderException(str(error)) from error
        _made[db_url] = time.monotonic()


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
        file.rename(Path(backup).with_name(f"damaged-{datetime.now(UTC):%Y%m%dT%H%M%S.%f}Z{file.suffix}"))
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
        raise RuntimeError(done.stderr.strip() or "pg_dump failed")


# Writing


@contextlib.contextmanager
def transaction(db_url, keep=True):
    """All that nbgrader writes meanwhile is recorded at the end, at once; with keep=False, or after an error, nothing.

    nbgrader opens the gradebook anew for each step and commits each grade by itself. Here these gradebooks share one
    connection, and what they commit stays within its transaction.
    """
    engine = _engine(db_url)
    stock = Gradebook.__init__, Gradebook.close
    with engine.connect() as connection, connection.begin() as whole:

        def join(gradebook, db_url, course_id="default_course", authenticator=None):
            gradebook.engine, gradebook.course_id, gradebook.authenticator = engine, course_id, authenticator
            gradebook.db = scoped_session(sessionmaker(bind=connection, join_transaction_mode="rollback_only"))
            gradebook.check_course(course_id=course_id)

        Gradebook.__init__, Gradebook.close = join, lambda gradebook: gradebook.db.remove()
        try:
            yield
            if not keep:
                whole.rollback()
        finally:
            Gradebook.__init__, Gradebook.close = stock


def _engine(db_url):
    """A database whose transactions begin where they say so; Python's sqlite3 would begin with the first change."""
    if sqlite_file(db_url) is None:
        return create_engine(db_url, poolclass=NullPool)
    engine = create_engine(db_url, poolclass=NullPool, connect_args={"timeout": PATIENCE, "isolation_level": None})
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    return engine
