"""Before anything of a submission runs: read it without trusting it, and put its graded cells back in order.

None of these steps raises for a bad submission. What cannot be read becomes an empty notebook whose graded cells are
restored from the gradebook: it earns nothing and is marked for review, and the next learner's turn comes as usual.
"""

import functools
import glob
import json
import os
import shutil
import stat
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from nbconvert.exporters import NotebookExporter
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_raw_cell
from nbgrader.api import Gradebook
from nbgrader.converters import Autograde
from nbgrader.preprocessors import NbGraderPreprocessor
from nbgrader.utils import parse_utc
from traitlets.log import get_logger

from . import gradebook, sandbox
from .inert import picture, plain

__all__ = ["Reader", "Restore", "asked_for", "prepare_submission", "read_notebook"]

MAX_BYTES = 20_000_000
MAX_CELLS = 1_000
MAX_SOURCE = {"code": 200_000, "markdown": 20_000, "raw": 20_000}  # characters of one cell that are read
MAX_ALL_SOURCES = 2_000_000  # characters in all cells together
MAX_FILES = 1_000
MAX_DEPTH = 10  # folders in folders
NEW_CELL = {"code": new_code_cell, "markdown": new_markdown_cell, "raw": new_raw_cell}


def prepare_submission(assignment, student, notebooks):
    """nbgrader's pre-convert hook for one submission: plain files only, and the notebooks that are asked for.

    nbgrader copies a submission's other files before it looks at them, and would follow a link out of the course.
    A missing notebook is read as an empty one, so that its grades are 0 and never NULL; others are left alone.
    """
    folder = Path(notebooks[0]).parent
    for place in (folder.parent, folder):  # another learner's work, say
        if place.is_symlink():
            get_logger().warning("%s is a link; it is taken away", place)
            place.unlink()
        place.mkdir(exist_ok=True)
    try:
        _tidy(folder)
    except (OSError, RecursionError) as error:
        get_logger().error("%r cannot be read (%s): it is put aside", str(folder), type(error).__name__)
        folder.rename(tempfile.mkdtemp(prefix=f"{folder.name}-unreadable-", dir=folder.parent))
        folder.mkdir()
    _check_timestamp(folder / "timestamp.txt")
    source = sorted(Path("source", folder.name).glob("*.ipynb"))
    if source:
        notebooks[:] = [str(folder / path.name) for path in source]


def _tidy(folder):
    """Leave nothing but plain files and folders, readable, not too many and not too deep.

    Raises: OSError if something stays that should not.
    """
    kept, waiting = [], [(folder, 1)]
    while waiting:
        here, depth = waiting.pop()
        here.chmod(here.stat().st_mode | stat.S_IRWXU)
        for entry in sorted(here.iterdir()):
            mode = entry.lstat().st_mode
            if stat.S_ISDIR(mode) and depth < MAX_DEPTH:
                waiting.append((entry, depth + 1))
            elif stat.S_ISREG(mode):
                entry.chmod(mode | stat.S_IRUSR | stat.S_IWUSR)
                kept.append(entry)
            else:
                _leave_out(entry)
    for entry in sorted(kept, key=lambda path: path.suffix != ".ipynb")[MAX_FILES:]:
        _leave_out(entry)


def _leave_out(entry):
    get_logger().warning("%r is left out of the submission", str(entry))
    if entry.is_dir() and not entry.is_symlink():
        shutil.rmtree(entry)  # step by step from folder to folder: a path may be too long for the system
    else:
        entry.unlink()


def _check_timestamp(path):
    """Put a time of submission that nbgrader cannot read out of its way."""
    if not os.path.lexists(path):
        return
    try:
        readable = 1970 < parse_utc(path.read_text(encoding="utf-8").strip()).year < 2500
    except (OSError, ValueError, OverflowError, AttributeError, TypeError):
        readable = False
    if not readable:
        get_logger().warning("%s holds no time that can be read; the submission counts as handed in on time", path)
        path.rename(path.with_name("timestamp-unreadable.txt"))


def read_notebook(path):
    """A notebook file as a notebook of plain cells, and what was wrong with it (None if nothing was)."""
    try:
        if not stat.S_ISREG(Path(path).lstat().st_mode):
            return new_notebook(), "the notebook is not a regular file"
        if Path(path).stat().st_size > MAX_BYTES:
            return new_notebook(), f"the notebook is larger than {MAX_BYTES // 1_000_000} MB"
        data = json.loads(Path(path).read_text(encoding="utf-8"))
        if type(data["nbformat"]) is not int or data["nbformat"] != 4:
            return new_notebook(), f"the notebook is in format {data['nbformat']!r:.20}, not in format 4"
        if len(data["cells"]) > MAX_CELLS:
            return new_notebook(), f"the notebook has more than {MAX_CELLS} cells"
        notebook = new_notebook(cells=[_cell(cell, number) for number, cell in enumerate(data["cells"])])
        if sum(len(cell.source) for cell in notebook.cells) > MAX_ALL_SOURCES:
            return new_notebook(), f"the notebook has more than {MAX_ALL_SOURCES} characters"
        metadata = _from_dict(data.get("metadata"))
        kept = {name: _flat(metadata.get(name)) for name in ("kernelspec", "mathllm")}
        notebook.metadata.update({name: entries for name, entries in kept.items() if entries})
    except FileNotFoundError:
        return new_notebook(), _missing(Path(path))
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError, MemoryError) as error:
        return new_notebook(), f"the notebook cannot be read ({type(error).__name__})"
    return notebook, None


def _missing(path):
    others = sorted(" ".join(plain(other.name, 60).split()) for other in path.parent.glob("*.ipynb"))
    return "the notebook is missing" + bool(others) * f"; there is {', '.join(others[:3])}"


def _cell(data, number):
    """One cell with nothing but its type, its source, its nbgrader metadata, and the pictures of a text."""
    kind = data["cell_type"]
    source = data["source"] if isinstance(data["source"], str) else "".join(data["source"])
    if len(source) > MAX_SOURCE[kind]:
        source = f"{source[: MAX_SOURCE[kind]]}\n\n... cut here: the cell has more than {MAX_SOURCE[kind]} characters"
    cell = NEW_CELL[kind](plain(source), id=f"cell-{number}")
    ours = _flat(_from_dict(data.get("metadata")).get("nbgrader"))
    if ours:
        cell.metadata["nbgrader"] = ours
    if kind == "markdown" and data.get("attachments"):
        cell.attachments = {
            plain(name, 200): {form: content for form, content in bundle.items() if picture(form, content)}
            for name, bundle in data["attachments"].items()
        }
    return cell


def _from_dict(value):
    return value if isinstance(value, dict) else {}


def _flat(value):
    """The entries of a dict that are no structures themselves."""
    return {name: entry for name, entry in _from_dict(value).items() if isinstance(entry, (str, int, float))}


class Reader(NotebookExporter):
    """nbgrader's way in, for `Autograde.exporter_class`: reads a submission by read_notebook(), whatever it is."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        sandbox.require()
        gradebook.back_up_before(self.parent)

    def from_filename(self, filename, resources=None, **kwargs):
        """Read and convert one file."""
        notebook, problem = read_notebook(filename)
        resources = resources if resources is not None else {}
        resources["metadata"] = {
            "name": Path(filename).stem,
            "path": str(Path(filename).parent),
            "modified_date": datetime.now(UTC).strftime("%B %d, %Y"),
        }
        resources["mathllm_problem"] = problem
        return super().from_notebook_node(notebook, resources=resources, **kwargs)


def asked_for(course, assignment):
    """The names of the notebooks that an assignment consists of."""
    source = Path(course.root, course.format_path(course.source_directory, ".", assignment))
    return sorted(path.name for path in source.glob("*.ipynb"))


def _with_those_that_miss_notebooks(stock):
    """nbgrader passes over a submission without any notebook; here it is one whose notebooks are missing."""

    @functools.wraps(stock)
    def init_notebooks(autograde):
        course = autograde.coursedir
        pattern = course.format_path(course.submitted_directory, course.student_id, course.assignment_id)
        folders = [folder for folder in map(Path, glob.glob(pattern)) if course.notebook_id == "*"]
        asked = asked_for(course, course.assignment_id)
        bare = {str(f): [str(f / name) for name in asked] for f in folders if asked and not any(f.glob("*.ipynb"))}
        autograde.assignments, autograde.notebooks = {}, []
        if not bare or len(bare) < len(folders):
            stock(autograde)
        autograde.assignments |= bare

    return init_notebooks


Autograde.init_notebooks = _with_those_that_miss_notebooks(Autograde.init_notebooks)  # nbgrader has no setting for it


class Restore(NbGraderPreprocessor):
    """The first sanitising step: nbgrader's metadata as the gradebook has it, each cell once, none missing."""

    def preprocess(self, nb, resources):
        """Rebuild the metadata of every cell from the gradebook; add the graded cells that are missing."""
        names = resources["nbgrader"]
        with Gradebook(names["db_url"]) as book:
            source = book.find_notebook(names["notebook"], names["assignment"])
            known = {cell.name: _restored(cell, source) for cell in source.source_cells}
            graded = [cell.name for cell in [*source.grade_cells, *source.task_cells]]
        problem = resources.get("mathllm_problem")
        if problem:
            self.log.error("%s/%s: %s", names["student"], names["notebook"], problem)
            nb.cells.append(
                new_markdown_cell(f"*This submission was not graded automatically: {problem}.*", id="problem")
            )
        foreign = not any(_grade_id(cell) in known for cell in nb.cells)
        nb.metadata = {"mathllm": {"review": problem} if problem else {"foreign": foreign}}
        nb.cells = self._in_order(nb.cells, known)
        for name in graded:
            if name not in {_grade_id(cell) for cell in nb.cells}:
                self.log.warning("Graded cell %s is missing; it is put back", name)
                ids = [_grade_id(cell) for cell in nb.cells]
                after = ids.index(f"{name}-answer") + 1 if f"{name}-answer" in ids else len(ids)
                nb.cells.insert(after, known[name])
        return nb, resources

    def _in_order(self, cells, known):
        """The cells with trusted metadata. Of several cells with one grade id the last is the one that counts."""
        seen, result = set(), []
        for cell in reversed(cells):
            name = _grade_id(cell)
            cell.metadata = {}
            if name in known and name not in seen:
                seen.add(name)
                ours = known[name]
                if not ours.metadata["nbgrader"]["locked"]:
                    ours.source = cell.source
                    if ours.cell_type == "markdown" and "attachments" in cell:
                        ours.attachments = cell.attachments
                cell = ours
            result.append(cell)
        return result[::-1]


def _grade_id(cell):
    name = _from_dict(cell.metadata.get("nbgrader")).get("grade_id")
    return name if isinstance(name, str) else None


def _restored(cell, source):
    """A cell as the gradebook knows it."""
    points = {entry.name: entry.max_score for entry in [*source.grade_cells, *source.task_cells]}
    metadata = {
        "schema_version": 3,
        "grade_id": cell.name,
        "grade": cell.name in {entry.name for entry in source.grade_cells},
        "solution": cell.name in {entry.name for entry in source.solution_cells},
        "task": cell.name in {entry.name for entry in source.task_cells},
        "locked": cell.locked,
        "cell_type": cell.cell_type,
        "checksum": cell.checksum,
    }
    if cell.name in points:
        metadata["points"] = points[cell.name]
    node = NEW_CELL[cell.cell_type](cell.source, id=f"{cell.name[:60]}")
    node.metadata["nbgrader"] = metadata
    return node
