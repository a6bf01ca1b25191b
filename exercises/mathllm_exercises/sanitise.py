"""Before anything of a submission runs: read it without trusting it, and put its graded cells back in order.

None of these steps raises for a bad submission. What cannot be read becomes an empty notebook whose graded cells are
restored from the gradebook: it earns nothing and is marked for review, and the next learner's turn comes as usual.
"""

import json
import stat
from datetime import UTC, datetime
from pathlib import Path

from nbconvert.exporters import NotebookExporter
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_raw_cell
from nbgrader.api import Gradebook
from nbgrader.preprocessors import NbGraderPreprocessor

__all__ = ["Reader", "Restore", "prepare_submission", "read_notebook"]

MAX_BYTES = 20_000_000
MAX_CELLS = 1_000
MAX_SOURCE = 200_000  # characters in one cell
NEW_CELL = {"code": new_code_cell, "markdown": new_markdown_cell, "raw": new_raw_cell}


def prepare_submission(assignment, student, notebooks):
    """nbgrader's pre-convert hook for one submission: drop what is no regular file, list notebooks that are missing.

    nbgrader copies a submission's other files before it looks at them, and would follow a link out of the course.
    A missing notebook is read as an empty one, so that its grades are 0 and never NULL.
    """
    folder = Path(notebooks[0]).parent
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            path.unlink()
    present = {Path(notebook).name for notebook in notebooks}
    source = sorted(Path("source", folder.name).glob("*.ipynb"))
    notebooks.extend(str(folder / path.name) for path in source if path.name not in present)


def read_notebook(path):
    """A notebook file as a notebook of plain cells, and what was wrong with it (None if nothing was)."""
    try:
        if not stat.S_ISREG(Path(path).lstat().st_mode):
            return new_notebook(), "the notebook is not a regular file"
        if Path(path).stat().st_size > MAX_BYTES:
            return new_notebook(), f"the notebook is larger than {MAX_BYTES // 1_000_000} MB"
        data = json.loads(Path(path).read_text(encoding="utf-8"))
        if data["nbformat"] != 4:
            return new_notebook(), f"the notebook is in format {data['nbformat']!r}, not in format 4"
        if len(data["cells"]) > MAX_CELLS:
            return new_notebook(), f"the notebook has more than {MAX_CELLS} cells"
        notebook = new_notebook(cells=[_cell(cell, number) for number, cell in enumerate(data["cells"])])
        notebook.metadata.update(_from_dict(data.get("metadata")))
    except FileNotFoundError:
        return new_notebook(), "the notebook is missing"
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        return new_notebook(), f"the notebook cannot be read ({type(error).__name__})"
    return notebook, None


def _cell(data, number):
    """One cell with nothing but its type, source, metadata, and the pictures of a text."""
    source = data["source"] if isinstance(data["source"], str) else "".join(data["source"])
    cell = NEW_CELL[data["cell_type"]](source[:MAX_SOURCE], id=f"cell-{number}")
    cell.metadata.update(_from_dict(data.get("metadata")))
    if data["cell_type"] == "markdown" and data.get("attachments"):
        cell.attachments = {
            str(name): {str(kind): str(content) for kind, content in bundle.items()}
            for name, bundle in data["attachments"].items()
        }
    return cell


def _from_dict(value):
    return value if isinstance(value, dict) else {}


class Reader(NotebookExporter):
    """nbgrader's way in, for `Autograde.exporter_class`: reads a submission by read_notebook(), whatever it is."""

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


class Restore(NbGraderPreprocessor):
    """The first sanitising step: nbgrader's metadata as the gradebook has it, each cell once, none missing."""

    def preprocess(self, nb, resources):
        """Rebuild the metadata of every cell from the gradebook; add the graded cells that are missing."""
        names = resources["nbgrader"]
        with Gradebook(names["db_url"]) as gradebook:
            source = gradebook.find_notebook(names["notebook"], names["assignment"])
            known = {cell.name: _restored(cell, source) for cell in source.source_cells}
            graded = [cell.name for cell in [*source.grade_cells, *source.task_cells]]
        problem = resources.get("mathllm_problem")
        if problem:
            self.log.error("%s/%s: %s", names["student"], names["notebook"], problem)
            nb.cells.append(
                new_markdown_cell(f"*This submission was not graded automatically: {problem}.*", id="problem")
            )
        nb.metadata = {"mathllm": {"review": problem}} if problem else {}
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
