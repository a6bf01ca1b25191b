"""The trusted grader: a function from a submission to its grades. Only values leave the learner's process.

A submission's cells run in a shell of its own (`shell`). In place of each graded cell this module asks that shell for
the values of the answer on private inputs (`kernel_side.evaluate`), and judges them here with `marking`. Nothing is
recorded here, and nobody else's work is seen.
"""

import contextlib
import hashlib
import hmac
import os
import secrets
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
from mathllm_exercises import codec, marking
from mathllm_exercises.kernel_side import MIME
from mathllm_exercises.own_numbers import own_numbers
from mathllm_exercises.registry import items

from . import submission
from .inert import inert_outputs, plain
from .shell import Gone, Shell

__all__ = ["Grade", "Graded", "course_key", "grade_submission", "private_rng", "run_cells", "verdict"]

FORMAT = {"nbformat": 4, "nbformat_minor": 5}
RUBRIC_TAG = "mathllm-rubric"
PROBE = "import mathllm_exercises.kernel_side as _side; _side.{}; del _side"


@dataclass(frozen=True)
class Grade:
    """What one cell earns. points: None if a person has to read it; review: why a person should look at it, or None."""

    points: float | None
    text: str = ""
    review: str | None = None


@dataclass(frozen=True)
class Graded:
    """A submission's grades {notebook: {grade id: Grade}}, and what is kept of it.

    notebooks: {name: the notebook as it ran, fit to be looked at}; files: {path: bytes}; blank: grade ids of answers
    that nobody has touched; missing: whether not one of the notebooks was handed in
    """

    grades: dict = field(default_factory=dict)
    notebooks: dict = field(default_factory=dict)
    files: dict = field(default_factory=dict)
    blank: frozenset = frozenset()
    missing: bool = False

    @property
    def review(self):
        """Why a person should look at it: each reason once."""
        reasons = [grade.review for grades in self.grades.values() for grade in grades.values() if grade.review]
        return list(dict.fromkeys(reasons))


def course_key(path=".course_key"):
    """The secret from which private cases are drawn: MATHLLM_COURSE_KEY, else a file, made on first use (mode 0600)."""
    if os.environ.get("MATHLLM_COURSE_KEY"):
        return os.environ["MATHLLM_COURSE_KEY"].encode()
    with contextlib.suppress(FileExistsError), open(path, "x", opener=partial(os.open, mode=0o600)) as file:
        file.write(secrets.token_hex(32))
    key = Path(path).read_bytes().strip()
    if len(key) < 32:
        raise ValueError(f"the course key in {path} is too short; delete the file and a new one will be made")
    return key


def private_rng(key, assignment, student, item_id):
    """The generator of one learner's private cases for one item: from HMAC(course key, assignment, learner, item)."""
    digest = hmac.new(key, "\n".join((assignment, student, item_id)).encode(), hashlib.sha256).digest()
    return np.random.default_rng(int.from_bytes(digest, "big"))


def verdict(item, cases, reply, student, nonce):
    """Judge a shell's reply to a request: Marks, or None if no reply came that can be read."""
    try:
        data = codec.loads(reply)
    except codec.CodecError:
        return None
    if not isinstance(data, dict) or data.get("nonce") != nonce or not isinstance(data.get("observations"), list):
        return None
    return marking.mark(item, cases, marking.read(data["observations"], cases), own_numbers(item, student))


def grade_submission(folder, learner, assignment):
    """The grades of what lies in a folder: Graded. A bad submission raises nothing; it earns nothing and says why."""
    found = submission.read_submission(folder, assignment.ignored, assignment.notebooks)
    files = submission.beside(found.files, assignment.files)
    grades, notebooks, blank = {}, {}, set()
    for name, asked in assignment.notebooks.items():
        cells, problem = found.notebooks.get(name) or ([], _missing(found))
        foreign = not asked["cells"].keys() & set(map(submission.grade_id, cells))
        if problem:
            text = f"*This submission was not graded automatically: {problem}.*"
            cells = [{"cell_type": "markdown", "id": "problem", "metadata": {}, "source": text}]
        cells = submission.restored(cells, asked["cells"])
        blank |= {id for cell in cells if (id := submission.grade_id(cell)) and _blank(cell, asked["cells"][id])}
        marks, missing = ({}, problem) if problem else run_cells(cells, learner, assignment, files)
        earned = any(isinstance(mark, marking.Marks) and mark.points for mark in marks.values())
        if foreign and not problem and not earned:
            marks, missing = {}, "the notebook holds nothing of this assignment"
        graded = filter(submission.is_graded, cells)
        grades[name] = {submission.grade_id(cell): _grade(cell, marks, missing, blank) for cell in graded}
        metadata = {"kernelspec": asked["kernelspec"]}
        notebooks[name] = FORMAT | {"cells": _shown(cells, grades[name]), "metadata": metadata}
    return Graded(grades, notebooks, files, frozenset(blank), missing=not found.notebooks)


def _missing(found):
    others = [" ".join(plain(name, 60).split()) for name in found.others[:3]]
    return "the notebook is missing" + bool(others) * f"; there is {', '.join(others)}"


def _blank(cell, asked):
    return submission.flags(asked)["solution"] and cell["source"] == asked["source"]


def _grade(cell, marks, missing, blank):
    """The grade of one cell. Points lie within [0, max]."""
    name, ours = submission.grade_id(cell), submission.flags(cell)
    if ours["task"] or ours["solution"]:
        return Grade(0.0 if name in blank else None)
    mark = marks.get(name)
    if isinstance(mark, marking.Marks):
        return Grade(min(max(mark.points, 0.0), float(ours["points"])), marking.text(mark))
    return Grade(0.0, review=mark or missing)


def run_cells(cells, learner, assignment, files):
    """Run a notebook's cells and judge its answers: {grade id: Marks, or why there are none}, and why others miss.

    The outputs of the other code cells are put into them. files: {path: bytes} of what lies beside the notebook
    """
    asked, limits = set(map(submission.grade_id, cells)), assignment.limits
    judged = {item.grade_id: item for item in items() if item.kind != "text" and item.grade_id in asked}
    marks, missing = {}, "no values came back from the notebook"
    end = time.monotonic() + limits.notebook_seconds
    try:
        with Shell(learner, limits, assignment.hidden, assignment.sandboxed) as shell:
            for path, content in files.items():
                shell.keep(path, content)
            shell.run(PROBE.format(f"begin({_beginning(cells, judged.values(), learner)!r})"), counts=False)
            for cell in cells:
                if cell["cell_type"] != "code":
                    continue
                if time.monotonic() > end:
                    raise Gone(f"the notebook took more than {limits.notebook_seconds} seconds")
                name = submission.grade_id(cell)
                if submission.is_graded(cell):
                    marks[name] = _judge(shell, judged.get(name), learner, assignment) or missing
                else:
                    cell["outputs"] = shell.run(cell["source"])
    except Gone as error:
        missing = f"the notebook did not run to its end: {error}"
    return marks, missing


def _beginning(cells, judged, learner):
    """What a shell is told before the first cell: names to mask, and the learner's own numbers.

    These are the numbers of the chapters of the exercises that are judged, and of others that the notebook names.
    """
    text, chapters = "\n".join(cell["source"] for cell in cells), {item.chapter for item in judged}
    used = [item for item in items() if item.numbers and (item.chapter in chapters or item.id in text)]
    drawn = {item.id: codec.encode(own_numbers(item, learner)) for item in used}
    return codec.dumps({"masked": [name for item in judged for name in item.masked], "numbers": drawn})


def _judge(shell, item, learner, assignment):
    """Send an item's inputs to the shell and judge what comes back: Marks, None, or what went wrong. Raises: Gone."""
    if item is None:
        return "there is no exercise of this name"
    try:
        cases = marking.draw(item, private_rng(assignment.key, assignment.name, learner, item.id))
        sent = [codec.encode(case) for case in marking.calls(cases)] if item.calls else None
        request = {"nonce": secrets.token_hex(8), "answer": item.answer, "masked": list(item.masked), "cases": sent}
        outputs = shell.run(PROBE.format(f"evaluate({codec.dumps(request)!r})"), counts=False)
        replies = [output["data"][MIME] for output in outputs if MIME in (output.get("data") or {})]
        return verdict(item, cases, replies[0] if replies else None, learner, request["nonce"])
    except Gone:
        raise
    except Exception as error:  # whatever an answer did to the judge, the other answers count
        return f"the answer could not be judged ({type(error).__name__})"


def _shown(cells, grades):
    """The cells as they ran, with their verdicts and rubrics, fit to be looked at: see `inert`."""
    rubrics = {item.grade_id: item.rubric for item in items() if item.kind == "text"}
    shown = []
    for cell in cells:
        name = submission.grade_id(cell)
        if cell["cell_type"] == "code":
            cell |= _written(grades[name]) if name in grades else {"outputs": inert_outputs(cell["outputs"])}
        shown.append(cell)
        if name in rubrics:
            rows = "\n".join(f"- **{points:g}** {criterion}" for points, criterion in rubrics[name])
            tags, text = {"tags": [RUBRIC_TAG]}, f"**Rubric**\n\n{rows}"
            shown.append({"cell_type": "markdown", "id": f"{name[:57]}-rubric", "metadata": tags, "source": text})
    return shown


def _written(grade):
    """What a graded cell puts out: the feedback as text, the score as a plain float."""
    lines = [grade.text] * bool(grade.text) + [f"Marked for review: {grade.review}."] * bool(grade.review)
    text, score = plain("\n".join(lines) + "\n"), {"text/plain": repr(grade.points)}
    outputs = [
        {"output_type": "stream", "name": "stdout", "text": text},
        {"output_type": "execute_result", "data": score, "metadata": {}, "execution_count": 1},
    ]
    return {"outputs": outputs, "execution_count": 1}
