"""What a course needs before a class is graded, looked at one by one: what is wrong, and how to mend it."""

import os
import shutil
from pathlib import Path

from mathllm_grading import gradebook, sandbox
from mathllm_grading.grading import course_key
from nbgrader.exchange.default import Exchange

from .exchange import exchange_problem

__all__ = ["examine"]


def examine(directory, config):
    """{what was looked at: what is wrong and how to mend it, or None}."""
    looks = {
        "sandbox": sandbox.problem,
        "exchange": lambda: _exchange(Exchange(coursedir=directory, config=config).root, directory.course_id),
        "permissions": lambda: _permissions(Path(directory.root)),
        "course key": lambda: _key(Path(directory.root, ".course_key")),
        "gradebook": lambda: _gradebook(directory),
        "programs": _programs,
    }
    return {name: _found(look) for name, look in looks.items()}


def _found(look):
    try:
        return look()
    except (OSError, ValueError) as error:
        return str(error)


def _exchange(root, course_id):
    if not os.path.isdir(root):
        return f"there is no folder {root}: sudo mkdir -p -m 1777 {root}, or name another with MATHLLM_EXCHANGE"
    if not os.access(root, os.W_OK | os.X_OK):
        return f"{root} cannot be written to: sudo chmod 1777 {root}"
    return exchange_problem(root, course_id)


def _permissions(root):
    if root.stat().st_mode & 0o077:
        return f"others can look into {root}, where solutions and grades are: chmod 700 {root}"
    return None


def _key(path):
    if not path.exists():
        return None  # the first run makes one
    course_key(path)
    return f"others can read {path}: chmod 600 {path}" if path.stat().st_mode & 0o077 else None


def _gradebook(directory):
    if not gradebook.exists(directory.db_url):
        return None  # nbgrader's first command makes one
    file = gradebook.sqlite_file(directory.db_url)
    with gradebook.opened(directory):
        healthy = file is None or gradebook.is_gradebook(file)
    return None if healthy else f"{file} is damaged: python -m mathllm_grading restore"


def _programs():
    if shutil.which("alembic") is None:
        return "nbgrader calls alembic by its name, and PATH does not lead to it: . .venv/bin/activate"
    return None
