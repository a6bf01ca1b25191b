"""What was handed in: read without trusting it, and its graded cells put back in order. Nothing in the folder changes.

None of this raises for a bad submission. What cannot be read becomes a notebook without answers whose graded cells come
from the assignment: it earns nothing and is marked for review.
"""

import contextlib
import copy
import json
import os
import shutil
import stat
from dataclasses import dataclass, field
from pathlib import Path

from nbgrader.utils import parse_utc

from .inert import picture, plain
from .sandbox import Limits

__all__ = ["Assignment", "Submission", "Unreadable", "read_notebook", "read_submission", "restored", "timestamp"]

MAX_BYTES = 20_000_000
MAX_CELLS = 1_000
MAX_SOURCE = {"code": 200_000, "markdown": 20_000, "raw": 20_000}  # characters of one cell that are read
MAX_ALL_SOURCES = 2_000_000  # characters in all cells together
MAX_FILES = 1_000
MAX_DEPTH = 10  # folders in folders
MAX_ALL_FILES = 100_000_000  # bytes
TIME = "timestamp.txt"


@dataclass(frozen=True)
class Assignment:
    """An assignment as it was generated: what is asked, whatever was handed in; and how submissions of it are graded.

    notebooks: {name: {"kernelspec": dict, "cells": {grade id: cell}}}, in the order of the notebook
    files: {path: bytes} of what belongs to it besides; ignored: patterns of names that count for nothing
    key: of the course, see grading.course_key
    hidden: folders that a learner's program must not see; sandboxed: whether it runs in the sandbox
    """

    name: str
    notebooks: dict
    key: bytes = field(repr=False)
    limits: Limits
    files: dict = field(default_factory=dict)
    ignored: tuple = ()
    hidden: tuple = ()
    sandboxed: bool = True


class Unreadable(ValueError):
    """What is wrong with a notebook, in words."""


@dataclass
class Submission:
    """What was found.

    notebooks: {name: (its cells, what is wrong or None)} of those that are asked for
    others: file names of further notebooks; files: {path: bytes}
    """

    notebooks: dict = field(default_factory=dict)
    others: list = field(default_factory=list)
    files: dict = field(default_factory=dict)


def read_submission(folder, ignored=(), asked=()):
    """The plain files of a folder that was handed in: not too many, not too deep, and no link is followed.

    asked: names of notebooks; others are not read
    """
    found, folder = Submission(), Path(folder)
    if linked(folder) or not folder.is_dir():
        return found
    without = shutil.ignore_patterns(*ignored)
    for here, folders, names, descriptor in os.fwalk(folder, follow_symlinks=False):
        inside = Path(here).relative_to(folder)
        folders[:] = sorted(set(folders) - without(here, folders)) if len(inside.parts) + 1 < MAX_DEPTH else []
        for name in sorted(set(names) - without(here, names)):
            path = str(inside / name)
            if not name.endswith(".ipynb") or path.removesuffix(".ipynb") in asked:
                _take(found, path, name, descriptor)
            elif path == name:
                found.others.append(name)
    return found


def beside(theirs, ours):
    """A submission's files and ours, by their paths: where both cannot be, ours."""
    kept = {path: content for path, content in theirs.items() if not any(_in_the_way(path, other) for other in ours)}
    return kept | ours


def _in_the_way(path, other):
    return Path(path).is_relative_to(other) or Path(other).is_relative_to(path)


def linked(folder):
    """Whether a folder that was handed in, or the learner's folder that holds it, is a link: to another's work, say."""
    return folder.is_symlink() or folder.parent.is_symlink()


def _take(found, path, name, folder):
    """Read one file, if it is one: what is in the folder is its owner's, and may be a link or a pipe."""
    notebook, cells, problem = name.endswith(".ipynb"), [], None
    most = MAX_BYTES if notebook else MAX_ALL_FILES - sum(map(len, found.files.values()))
    try:
        path.encode()  # a name that is no text is none
        if not stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            raise Unreadable("the notebook is not a regular file")
        with open(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder), "rb") as file:
            content = file.read(most + 1)
        if len(content) > most:
            raise Unreadable(f"the notebook is larger than {most // 1_000_000} MB")
        if notebook:
            cells = read_notebook(content)
        elif len(found.files) < MAX_FILES:
            found.files[path] = content
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError, MemoryError) as error:
        known = isinstance(error, Unreadable)
        problem = str(error) if known else f"the notebook cannot be read ({type(error).__name__})"
    if notebook:
        found.notebooks[name.removesuffix(".ipynb")] = cells, problem


def timestamp(folder):
    """When a folder was handed in, by nbgrader's timestamp.txt in UTC; None if it does not say so."""
    path = Path(folder, TIME)
    try:
        short = path.is_file() and path.stat().st_size < 100
        moment = parse_utc(path.read_text(encoding="utf-8").strip()) if short else None
        return moment if moment and 1970 < moment.year < 2500 else None
    except Exception:  # a stranger wrote it, and the parser raises errors of many kinds
        return None


def read_notebook(content):
    """The cells of a notebook file, plain. Raises: Unreadable, or what Python raises for a file that is no notebook."""
    data = json.loads(content.decode())
    if data["nbformat"] != 4:
        raise Unreadable(f"the notebook is in format {data['nbformat']!r:.20}, not in format 4")
    if len(data["cells"]) > MAX_CELLS:
        raise Unreadable(f"the notebook has more than {MAX_CELLS} cells")
    cells = [_cell(cell, number) for number, cell in enumerate(data["cells"])]
    if sum(len(cell["source"]) for cell in cells) > MAX_ALL_SOURCES:
        raise Unreadable(f"the notebook has more than {MAX_ALL_SOURCES} characters")
    return cells


def _cell(data, number):
    """One cell with nothing but its type, its source, its grade id, and the pictures of a text."""
    kind = data["cell_type"]
    source = data["source"] if isinstance(data["source"], str) else "".join(data["source"])
    if len(source) > MAX_SOURCE[kind]:
        source = f"{source[: MAX_SOURCE[kind]]}\n\n... cut here: the cell has more than {MAX_SOURCE[kind]} characters"
    cell = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": plain(source)}
    with contextlib.suppress(LookupError, TypeError):  # of a cell that has no grade id
        if isinstance(name := data["metadata"]["nbgrader"]["grade_id"], str):
            cell["metadata"] = {"nbgrader": {"grade_id": name}}
    if kind == "code":
        cell |= {"outputs": [], "execution_count": None}
    if kind == "markdown" and data.get("attachments"):
        cell["attachments"] = {
            plain(name, 200): {form: content for form, content in bundle.items() if picture(form, content)}
            for name, bundle in data["attachments"].items()
        }
    return cell


def restored(cells, known):
    """The cells with the assignment's own in their places, each once and none missing.

    Of an answer the source is the learner's. Of several cells with one grade id the last is the one that counts.
    """
    result, seen = [], set()
    for cell in reversed(cells):
        name, cell = grade_id(cell), cell | {"metadata": {}}
        if name in known and name not in seen:
            seen.add(name)
            cell = _filled(known[name], cell)
        result.insert(0, cell)
    for name, cell in known.items():
        if name not in seen and is_graded(cell):
            names = [grade_id(cell) for cell in result]
            after = names.index(f"{name}-answer") + 1 if f"{name}-answer" in names else len(names)
            result.insert(after, copy.deepcopy(cell))
    return result


def _filled(ours, theirs):
    ours = copy.deepcopy(ours)
    if not flags(ours)["locked"]:
        kept = ("source", "attachments") if ours["cell_type"] == "markdown" else ("source",)
        ours |= {key: theirs[key] for key in kept if key in theirs}
    return ours


def flags(cell):
    """What nbgrader knows of a cell."""
    return cell["metadata"].get("nbgrader", {})


def grade_id(cell):
    """The name by which nbgrader knows a cell, or None."""
    return flags(cell).get("grade_id")


def is_graded(cell):
    """Whether a cell earns points, by the grader or from a person."""
    return flags(cell).get("grade") or flags(cell).get("task")
