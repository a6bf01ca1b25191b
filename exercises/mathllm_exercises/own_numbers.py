"""A learner's own numbers: drawn from the learner's id and the item's id, so always the same and no secret."""

import copy
import hashlib
import os

import numpy as np

from . import recorded
from .compare import agree
from .item import namespace
from .registry import item

__all__ = ["learner", "numbers", "own_numbers"]

MAX_DRAWS = 1_000


def learner():
    """The learner's id: MATHLLM_LEARNER, else the name under which nbgrader hands in.

    That is the name of the account, or the JupyterHub user where every learner's account is called "jovyan".
    """
    account = _account()
    hub = os.environ.get("JUPYTERHUB_USER", account) if account == "jovyan" else account
    return os.environ.get("MATHLLM_LEARNER") or hub


def _account():
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_name
    except (ImportError, KeyError, AttributeError):  # Windows, an account without a name, the browser
        return os.environ.get("USERNAME") or "reader"


def own_numbers(entry, student):
    """The numbers an item draws for one learner, as a dict: such that no known mistake gives the right answer.

    Raises: ValueError if no such numbers are found.
    """
    if entry.own is not None:
        return _of_the_class(entry, student)
    digest = hashlib.sha256(f"{student}\n{entry.id}".encode()).digest()
    rng = np.random.default_rng(int.from_bytes(digest, "big"))
    for _ in range(MAX_DRAWS):
        numbers = entry.own_numbers(rng)
        if not numbers or _tell_apart(entry, numbers):
            return numbers
    raise ValueError(
        f"the exercise {entry.id!r} has drawn own numbers {MAX_DRAWS:,} times, and each time a known mistake gave the"
        " right answer or the value of another mistake: change the numbers or the mistakes"
    )


def _of_the_class(entry, student):
    key = recorded.digest(student, entry.id)
    if key not in entry.own:
        raise ValueError(
            f"this edition was made for a class, and {student!r} is not in it: set MATHLLM_LEARNER to the name under"
            " which you are enrolled, and restart the kernel"
        )
    return copy.deepcopy(entry.own[key])


def _tell_apart(entry, numbers):
    """Whether the answers of all known mistakes are wrong with these numbers, and differ from one another."""
    check = entry.checks[0]
    answers = [make(**copy.deepcopy(numbers)) for make in (entry.expected, *(m.make for m in entry.mistakes))]
    pairs = [(a, b) for i, a in enumerate(answers) for b in answers[:i]]
    return not any(agree(a, b, 4 * check.rtol, 4 * check.atol) for a, b in pairs)


def numbers(id):
    """Your own numbers for an exercise, as attributes: `mine = numbers("01.vectors.own_length"); mine.v`.

    Raises: UnknownReferenceError for an unknown id, ValueError for an exercise that draws none.
    """
    entry = item(id)
    if entry.numbers is None and entry.own is None:
        raise ValueError(f"the exercise {id!r} has the same numbers for everybody; it draws none of your own")
    return namespace(own_numbers(entry, learner()))
