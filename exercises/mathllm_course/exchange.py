"""Collecting what was handed in, and giving feedback back: nbgrader's own way, made safe from what it finds.

`ExchangeFactory` in nbgrader_config.py names the classes.

The drop box is open to all: there may be a folder under another learner's name, a link to a file that only the
instructor can read, a pipe, a folder too large for the disk. nbgrader would take the first, copy what the second points
to, and stop at the others, for everybody.
"""

import glob
import os
import shutil
import stat
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import nbformat
from mathllm_grading import gradebook
from mathllm_grading.submission import timestamp
from nbformat.v4 import new_markdown_cell
from nbgrader.exchange.default.collect import ExchangeCollect
from nbgrader.exchange.default.release_assignment import ExchangeReleaseAssignment
from nbgrader.exchange.default.release_feedback import ExchangeReleaseFeedback
from nbgrader.plugins import LateSubmissionPlugin
from nbgrader.utils import find_owner

__all__ = ["Collect", "ReleaseAssignment", "ReleaseFeedback", "exchange_problem"]

ENTRY = 4096  # bytes that a file or a folder takes beside its content
GRACE = timedelta(minutes=10)  # from the time that a learner's program writes to the end of its copying
NOBODY = {"username": None, "timestamp": datetime.min}


def exchange_problem(root, course_id):
    """Why learners could take the exchange over, with the remedy in a sentence; None if they cannot."""
    mode = os.stat(root).st_mode
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        return f"everybody can rename what others put into {root}: say chmod 1777 {root}"
    folder = Path(root, course_id)
    if os.path.lexists(folder) and (folder.is_symlink() or folder.stat().st_uid != os.geteuid()):
        return f"{folder} was put up by {find_owner(str(folder))}: its owner can read all that is handed in; remove it"
    return None


class _Checked:
    """An exchange that is not used while learners could take it over."""

    def ensure_root(self):
        """Stop if it is missing, or others can do in it what they should not."""
        super().ensure_root()
        problem = exchange_problem(self.root, self.coursedir.course_id)
        if problem:
            self.fail(problem)


class ReleaseAssignment(_Checked, ExchangeReleaseAssignment):
    """Releases into an exchange in which everybody can put up folders, and nobody can rename another's."""

    def ensure_root(self):
        """Make the exchange if there is none; nbgrader would let everybody rename what is in it."""
        if not os.path.exists(self.root):
            os.makedirs(self.root)
            os.chmod(self.root, 0o1777)
        super().ensure_root()

    def do_copy(self, src, dest, log=None):
        """Copy the assignment; each notebook, and a file in the list of files, say until when it may be handed in."""
        super().do_copy(src, dest, log)
        moment = self._deadline()
        if moment is None:
            return
        nothing = LateSubmissionPlugin(parent=self).penalty_method == "zero"
        late = f"Later work {'earns nothing' if nothing else 'is marked as late'}."
        until = f"Hand in by {moment:%A, %-d %B %Y, %H:%M} UTC."
        Path(dest, f"hand in by {moment:%Y-%m-%d %H.%M} UTC.txt").write_text(f"{until} {late}\n", encoding="utf-8")
        for path in Path(dest).glob("*.ipynb"):
            notebook = nbformat.read(path, 4)
            notebook.cells.insert(0, new_markdown_cell(f"**{until}** {late}"))
            nbformat.write(notebook, path)

    def _deadline(self):
        if not gradebook.exists(self.coursedir.db_url):
            return None
        with gradebook.opened(self.coursedir) as book:
            known = {assignment.name: assignment.duedate for assignment in book.assignments}
        return known.get(self.coursedir.assignment_id)


class Collect(_Checked, ExchangeCollect):
    """Collects plain files from folders that belong to the learner they are named after."""

    def _path_to_record(self, path):
        """A folder's learner and time; a folder that is not what its name says is nobody's."""
        try:
            record = super()._path_to_record(path)
            if Path(path).is_symlink() or not Path(path).is_dir() or record["username"].startswith("."):
                raise ValueError("it is no folder of a learner")
            if self.check_owner and find_owner(path) != record["username"]:
                raise ValueError(f"it belongs to {find_owner(path)} (ExchangeCollect.check_owner = False accepts it)")
        except Exception as error:
            self.log.error("%r is not collected: %s", path, error)
            return NOBODY | {"filename": Path(path).name}
        return record

    def copy_files(self):
        """Copy each submission; one that fails stops no other."""
        self.src_records = [record for record in self.src_records if record["username"] is not None]
        super().copy_files()

    def do_copy(self, src, dest, log=None):
        """Copy plain files, and only them, before nbgrader does what it does."""
        with tempfile.TemporaryDirectory() as folder:
            self._room, self._changed = 1000 * self.coursedir.max_dir_size, os.stat(src).st_ctime
            try:
                plain = shutil.copytree(src, Path(folder, "plain"), ignore=self._left, copy_function=self._copy_file)
                self._compare_times(src, plain)
                super().do_copy(str(plain), dest, log)
            except Exception as error:
                self.log.error("%r is not collected: %s", src, str(error)[:300])
                shutil.rmtree(dest, ignore_errors=True)

    def _copy_file(self, src, dest):
        """Copy one file if it is one; the drop box is its owner's, who may put a link in its place meanwhile."""
        descriptor = os.open(src, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        with open(descriptor, "rb") as source:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                self.log.warning("%r is no file and is not collected", src)
                return
            self._changed = max(self._changed, found.st_ctime)
            self._take_room(found.st_size)
            Path(dest).write_bytes(source.read(found.st_size))

    def _left(self, folder, names):
        """Links are left where they are. Every other entry takes room, even an empty file or folder."""
        links = [name for name in names if os.path.islink(os.path.join(folder, name))]
        self._take_room(ENTRY * (len(names) - len(links)))
        return links

    def _take_room(self, size):
        self._room -= size
        if self._room < 0:
            raise RuntimeError("it is larger than CourseDirectory.max_dir_size")

    def _compare_times(self, src, folder):
        """Warn where files are younger than the time of hand-in, which the learner's own program has written."""
        said = timestamp(folder)
        changed = datetime.fromtimestamp(self._changed, UTC).replace(tzinfo=None)
        if said and changed - said > GRACE:
            self.log.warning("%r says %s UTC, but was changed at %s UTC", src, f"{said:%F %R}", f"{changed:%F %R}")


class ReleaseFeedback(_Checked, ExchangeReleaseFeedback):
    """Releases feedback; work that came by another way than `nbgrader submit` has no way back, and stops nobody's."""

    def copy_files(self):
        """Release the feedback of all who can fetch it: its place is said by two files that nbgrader submit writes."""
        for folder in sorted(glob.glob(self.src_path)):
            self.src_path = glob.escape(folder)
            try:
                super().copy_files()
            except (FileNotFoundError, IsADirectoryError, ValueError, AssertionError):  # as learners may leave them
                self.log.warning("%s was not handed in by nbgrader submit: hand this feedback over yourself", folder)
