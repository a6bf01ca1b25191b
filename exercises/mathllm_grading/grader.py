"""The trusted grader: nbgrader preprocessors that let only values leave the learner's process.

`nbgrader autograde` runs a submission's cells in a kernel. In place of each graded cell this module asks that kernel
for the values of the answer on private inputs (`kernel_side.evaluate`), judges them here with `marking`, and once the
kernel is gone writes the score into the cell's output, from where nbgrader's own SaveAutoGrades records it.

The kernel is started in a sandbox by `TrustedExecute.kernel_manager_class`, a setting of nbclient; see `sandbox`.
"""

import contextlib
import hashlib
import hmac
import os
import secrets
import time
from pathlib import Path

import numpy as np
from mathllm_exercises import codec, marking
from mathllm_exercises.kernel_side import MIME
from mathllm_exercises.own_numbers import own_numbers
from mathllm_exercises.registry import items
from nbclient.exceptions import CellControlSignal, DeadKernelError
from nbconvert.preprocessors import Preprocessor
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output
from nbgrader import utils
from nbgrader.api import Gradebook
from nbgrader.preprocessors import Execute, NbGraderPreprocessor
from traitlets import Integer, Unicode

from . import sandbox
from .inert import inert_outputs, plain, rename_active_files

__all__ = ["FlagForReview", "HideRubric", "ShowRubric", "TrustedExecute", "course_key", "private_rng", "verdict"]

RUBRIC_TAG = "mathllm-rubric"


def course_key(path=".course_key"):
    """The secret from which private cases are drawn: MATHLLM_COURSE_KEY, else a file, made on first use (mode 0600)."""
    if os.environ.get("MATHLLM_COURSE_KEY"):
        return os.environ["MATHLLM_COURSE_KEY"].encode()
    with (
        contextlib.suppress(FileExistsError),
        open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as f,
    ):
        f.write(secrets.token_hex(32))
    key = Path(path).read_bytes().strip()
    if len(key) < 32:
        raise ValueError(f"the course key in {path} is too short; delete the file and a new one will be made")
    return key


def private_rng(key, assignment, student, item_id):
    """The generator of one learner's private cases for one item: from HMAC(course key, assignment, learner, item)."""
    digest = hmac.new(key, "\n".join((assignment, student, item_id)).encode(), hashlib.sha256).digest()
    return np.random.default_rng(int.from_bytes(digest, "big"))


def verdict(item, cases, reply, student, nonce):
    """Judge a kernel's reply to a request: Marks, or None if no reply came that can be read."""
    try:
        data = codec.loads(reply)
        genuine = isinstance(data, dict) and data.get("nonce") == nonce and isinstance(data.get("observations"), list)
    except codec.CodecError:
        genuine = False
    if not genuine:
        return None
    return marking.mark(item, cases, marking.read(data["observations"], cases), own_numbers(item, student))


class TrustedExecute(Execute):
    """Runs a submission; graded cells give values, which are judged in this process."""

    shutdown_kernel = "immediate"
    course_key_file = Unicode(".course_key", help="The file with the course key, from the course's root.").tag(
        config=True
    )
    iopub_timeout = Integer(20, help="Seconds for the last output of a cell that has ended.").tag(config=True)
    notebook_timeout = Integer(180, help="Seconds for all cells of a notebook together.").tag(config=True)
    max_output = Integer(5_000_000, help="Characters of output taken from one notebook.").tag(config=True)

    def __init__(self, **kwargs):
        kwargs.setdefault("kernel_manager_class", sandbox.kernel_manager_class())
        super().__init__(**kwargs)

    def preprocess(self, nb, resources, km=None):
        """Run all cells; then, with the kernel gone, write the verdicts. A failure costs points, never the batch."""
        self._names = resources["nbgrader"]
        self._marks, self._taken = {}, 0
        self._deadline = time.monotonic() + self.notebook_timeout
        self._by_grade_id = {item.grade_id: item for item in items() if item.kind != "text"}
        found = nb.metadata.get("mathllm", {})
        unread = found.get("review")
        missing = "no values came back from the notebook"
        self._key = course_key(self.course_key_file)  # without one nobody is graded: no learner is to blame
        try:
            if not unread:
                nb, resources = super().preprocess(nb, resources, km)
        except Exception as error:
            missing = f"the notebook did not run to its end ({type(error).__name__})"
            self.log.error("%s: %s: %r", self._names["student"], missing, str(error)[:500])
        if found.get("foreign") and not any(marks.points for marks in self._marks.values()):
            unread = "the notebook holds nothing of this assignment"
        _make_inert(nb, resources)
        review = resources["mathllm_review"] = {}
        for cell in nb.cells:
            if self._is_ours(cell):
                name = cell.metadata.nbgrader["grade_id"]
                marks = self._marks.get(name)
                if unread or marks is None:
                    review[name] = unread or missing
                _write(cell, marks, review.get(name))
        return nb, resources

    def preprocess_cell(self, cell, resources, index):
        """Run one cell, or ask for the values of an answer in place of a graded cell."""
        if index == 0:
            self._run(f"begin({self._beginning()!r})", index)
        if time.monotonic() > self._deadline:
            return cell, resources
        if not self._is_ours(cell):
            return super().preprocess_cell(cell, resources, index)
        name = cell.metadata.nbgrader["grade_id"]
        try:
            self._marks[name] = self._judge(self._by_grade_id[name], index)
        except DeadKernelError:
            raise
        except Exception:
            self.log.exception("%s: %s could not be judged", self._names["student"], name)
        return cell, resources

    def _beginning(self):
        """What a kernel is told before the first cell: names to mask, and the learner's own numbers."""
        drawn = {item.id: own_numbers(item, self._names["student"]) for item in items() if item.numbers}
        masked = [name for item in self._by_grade_id.values() for name in item.masked]
        return codec.dumps({"masked": masked, "numbers": {id: codec.encode(drawn[id]) for id in drawn}})

    def _is_ours(self, cell):
        return (
            cell.cell_type == "code"
            and utils.is_grade(cell)
            and cell.metadata.nbgrader["grade_id"] in self._by_grade_id
        )

    def _judge(self, item, index):
        """Send an item's inputs to the kernel and judge what comes back."""
        student, nonce = self._names["student"], secrets.token_hex(8)
        cases = marking.draw(item, private_rng(self._key, self._names["assignment"], student, item.id))
        sent = [codec.encode(case) for group in cases for case in group] if item.calls else None
        request = {"nonce": nonce, "answer": item.answer, "masked": list(item.masked), "cases": sent}
        outputs = self._run(f"evaluate({codec.dumps(request)!r})", index)
        replies = [output.data[MIME] for output in outputs if MIME in output.get("data", {})]
        return verdict(item, cases, replies[0] if replies else None, student, nonce)

    def _run(self, call, index):
        """Run a call of kernel_side in the kernel, in a cell of its own; its outputs."""
        probe = new_code_cell(f"import mathllm_exercises.kernel_side as _side; _side.{call}; del _side")
        cell, taken = self.nb.cells[index], self._taken
        self.nb.cells[index], self._taken = probe, 0  # where nbclient looks for outputs that are updated
        try:
            return self.execute_cell(probe, index, store_history=False).outputs
        finally:
            self.nb.cells[index], self._taken = cell, taken
            self.clear_display_id_mapping(index)

    def start_new_kernel(self, **kwargs):
        """Start the kernel with the learner's id in its environment, and without the course key."""
        kwargs["env"] = {**sandbox.environment(), "MATHLLM_LEARNER": self._names["student"]}
        super().start_new_kernel(**kwargs)

    def process_message(self, msg, cell, cell_index):
        """Take a message from the kernel: no widgets, outputs up to a limit, and what is malformed is nothing."""
        kind = msg["msg_type"]
        self._taken += len(str(msg["content"]))
        if kind.startswith("comm") or (kind != "status" and self._taken > self.max_output):
            return None
        try:
            return super().process_message(msg, cell, cell_index)
        except CellControlSignal:  # the cell has ended
            raise
        except Exception:
            return None


def _make_inert(nb, resources):
    """What was run, made fit to be looked at: see inert."""
    nb.metadata = {name: nb.metadata[name] for name in ("kernelspec", "mathllm") if name in nb.metadata}
    for cell in nb.cells:
        if cell.cell_type == "code":
            cell.outputs = inert_outputs(cell.outputs)
            cell.execution_count = None
        cell.metadata = {"nbgrader": cell.metadata["nbgrader"]} if "nbgrader" in cell.metadata else {}
    rename_active_files(resources["metadata"]["path"])


def _write(cell, marks, review):
    """Put a verdict into a graded cell: the feedback as text, the score as a plain float within [0, max]."""
    points = min(max(marks.points, 0.0), float(cell.metadata.nbgrader["points"])) if marks else 0.0
    lines = [marking.text(marks)] if marks else []
    lines += [f"Marked for review: {review}."] if review else []
    cell.outputs = [
        new_output("stream", name="stdout", text=plain("\n".join(lines) + "\n")),
        new_output("execute_result", data={"text/plain": repr(points)}, execution_count=1),
    ]
    cell.execution_count = 1


class ShowRubric(NbGraderPreprocessor):
    """Puts the rubric of a text item below its answer, for the grader; HideRubric keeps it out of the feedback."""

    def preprocess(self, nb, resources):
        """Insert one Markdown cell after each answer that is graded by hand."""
        rubrics = {item.grade_id: item.rubric for item in items() if item.kind == "text"}
        cells = []
        for cell in nb.cells:
            cells.append(cell)
            name = cell.metadata.get("nbgrader", {}).get("grade_id")
            if name in rubrics:
                rows = "\n".join(f"- **{points:g}** {criterion}" for points, criterion in rubrics[name])
                shown = new_markdown_cell(f"**Rubric**\n\n{rows}", id=f"{name[:57]}-rubric")
                shown.metadata["tags"] = [RUBRIC_TAG]
                cells.append(shown)
        nb.cells = cells
        return nb, resources


class HideRubric(Preprocessor):
    """Takes the rubrics out again, before feedback is written for the learner."""

    enabled = True

    def preprocess(self, nb, resources):
        """Drop the cells that ShowRubric inserted."""
        nb.cells = [cell for cell in nb.cells if RUBRIC_TAG not in cell.metadata.get("tags", [])]
        return nb, resources


class FlagForReview(NbGraderPreprocessor):
    """After SaveAutoGrades: grades that a person should look at are flagged."""

    def preprocess(self, nb, resources):
        """Set nbgrader's own "needs manual grading" for the graded cells that could not be judged."""
        names, review = resources["nbgrader"], resources.get("mathllm_review", {})
        with Gradebook(names["db_url"]) as gradebook:
            for grade_id in review:
                grade = gradebook.find_grade(grade_id, names["notebook"], names["assignment"], names["student"])
                grade.needs_manual_grade = True
            gradebook.db.commit()
        return nb, resources
