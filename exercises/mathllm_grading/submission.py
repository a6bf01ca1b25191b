"""What was handed in: read without trusting it, and its graded cells put back in order. Nothing in the folder changes.

None of this raises for a bad submission. What cannot be read becomes a notebook without answers whose graded cells come
from the assignment: it earns nothing and is marked for review.
"""

import contextlib
import copy
import fnmatch
import json
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

from nbgrader.utils import parse_utc

from .inert import picture, plain

__all__ = ["Assignment", "Submission", "read_notebook", "read_submission", "restored", "timestamp"]

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
    """An assignment as it was generated: what is asked, whatever was handed in.

    notebooks: {name: {"kernelspec": dict, "cells": {grade id: cell}}}, in the order of the notebook
    files: {path: bytes} of what belongs to it besides; ignored: patterns of names that count for nothing
    """

    name: str
    notebooks: dict
    files: dict = field(default_factory=dict)
    ignored: tuple = ()


@dataclass
class Submission:
    """notebooks: {name: bytes, or what is wrong}; files: {path: bytes}; room: how many bytes of files may follow."""

    notebooks: dict = field(default_factory=dict)
    files: dict = field(default_factory=dict)
    room: int = field(default_factory=lambda: MAX_ALL_FILES)


def read_submission(folder, ignored=()):
    """The plain files of a folder that was handed in: not too many, not too deep, and no link is followed."""
    found, folder = Submission(), Path(folder)
    if folder.is_symlink() or folder.parent.is_symlink() or not folder.is_dir():  # a link to another's work, say
        return found
    for here, folders, names, descriptor in os.fwalk(folder, onerror=lambda error: None, follow_symlinks=False):
        inside = Path(here).relative_to(folder)
        deep = len(inside.parts) + 1 >= MAX_DEPTH
        folders[:] = [name for name in sorted(folders) if not deep and not _ignored(name, ignored)]
        for name in sorted(names, key=lambda name: (not name.endswith(".ipynb"), name)):
            if not _ignored(name, ignored):
                _take(found, str(inside / name), name, descriptor)
    return found


def _ignored(name, patterns):
    return any(fnmatch.fnmatch(name, pattern) for pattern in patterns)


def _take(found, path, name, folder):
    """Read one file, if it is one: what is in the folder is its owner's, and may be a link or a pipe."""
    notebook = path == name and name.endswith(".ipynb")
    try:
        content = _content(name, folder, MAX_BYTES if notebook else found.room)
    except (OSError, ValueError) as error:
        if notebook:
            found.notebooks[name.removesuffix(".ipynb")] = str(error) if type(error) is ValueError else _cannot(error)
        return
    if notebook:
        found.notebooks[name.removesuffix(".ipynb")] = content
    elif len(found.files) < MAX_FILES and not name.endswith(".ipynb") and _is_text(path):
        found.files[path] = content
        found.room -= len(content)


def _is_text(path):
    with contextlib.suppress(UnicodeEncodeError):
        return bool(path.encode())
    return False


def _content(name, folder, most):
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    if not stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        raise ValueError("the notebook is not a regular file")
    with open(os.open(name, flags, dir_fd=folder), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("the notebook is not a regular file")
        content = file.read(most + 1)
    if len(content) > most:
        raise ValueError(f"the notebook is larger than {most // 1_000_000} MB")
    return content


def _cannot(error):
    return f"the notebook cannot be read ({type(error).__name__})"


def timestamp(folder):
    """When a folder was handed in, by nbgrader's timestamp.txt in UTC; None if it does not say so."""
    path = Path(folder, TIME)
    try:
        moment = parse_utc(path.read_text(encoding="utf-8").strip()) if path.is_file() else None
        return moment if moment and 1970 < moment.year < 2500 else None
    except (OSError, ValueError, OverflowError, AttributeError, TypeError):
        return None


def read_notebook(content):
    """The cells of a notebook file, plain, and what was wrong with it (None if nothing was)."""
    try:
        data = json.loads(content.decode())
        if type(data["nbformat"]) is not int or data["nbformat"] != 4:
            return [], f"the notebook is in format {data['nbformat']!r:.20}, not in format 4"
        if len(data["cells"]) > MAX_CELLS:
            return [], f"the notebook has more than {MAX_CELLS} cells"
        cells = [_cell(cell, number) for number, cell in enumerate(data["cells"])]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, MemoryError) as error:
        return [], _cannot(error)
    if sum(len(cell["source"]) for cell in cells) > MAX_ALL_SOURCES:
        return [], f"the notebook has more than {MAX_ALL_SOURCES} characters"
    return cells, None


def _cell(data, number):
    """One cell with nothing but its type, its source, its grade id, and the pictures of a text."""
    kind = data["cell_type"]
    source = data["source"] if isinstance(data["source"], str) else "".join(data["source"])
    if len(source) > MAX_SOURCE[kind]:
        source = f"{source[: MAX_SOURCE[kind]]}\n\n... cut here: the cell has more than {MAX_SOURCE[kind]} characters"
    cell = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": plain(source)}
    name = _from_dict(_from_dict(data.get("metadata")).get("nbgrader")).get("grade_id")
    if isinstance(name, str):
        cell["metadata"] = {"nbgrader": {"grade_id": name}}
    if kind == "code":
        cell |= {"outputs": [], "execution_count": None}
    if kind == "markdown" and data.get("attachments"):
        cell["attachments"] = {
            plain(name, 200): {form: content for form, content in bundle.items() if picture(form, content)}
            for name, bundle in data["attachments"].items()
        }
    return cell


def _from_dict(value):
    return value if isinstance(value, dict) else {}


def restored(cells, known):
    """The cells with the assignment's own in their places, each once and none missing; whether none of them was there.

    Of an answer the source is the learner's. Of several cells with one grade id the last is the one that counts.
    """
    result, seen = [], set()
    for cell in reversed(cells):
        name, cell = grade_id(cell), cell | {"metadata": {}}
        if name in known and name not in seen:
            seen.add(name)
            cell = _filled(known[name], cell)
        result.insert(0, cell)
    foreign = not seen
    for name, cell in known.items():
        if name not in seen and (cell["metadata"]["nbgrader"]["grade"] or cell["metadata"]["nbgrader"]["task"]):
            names = [grade_id(cell) for cell in result]
            after = names.index(f"{name}-answer") + 1 if f"{name}-answer" in names else len(names)
            result.insert(after, copy.deepcopy(cell))
    return result, foreign


def _filled(ours, theirs):
    ours = copy.deepcopy(ours)
    if not ours["metadata"]["nbgrader"]["locked"]:
        ours["source"] = theirs["source"]
        if ours["cell_type"] == "markdown" and "attachments" in theirs:
            ours["attachments"] = theirs["attachments"]
    return ours


def grade_id(cell):
    """The name by which nbgrader knows a cell, or None."""
    return cell["metadata"].get("nbgrader", {}).get("grade_id")
