"""A learner's own numbers: drawn from the learner's id and the item's id, so always the same and no secret."""

import hashlib
import os

import numpy as np

from .item import namespace
from .registry import item

__all__ = ["learner", "numbers", "own_numbers"]


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
    """The numbers an item draws for one learner, as a dict."""
    digest = hashlib.sha256(f"{student}\n{entry.id}".encode()).digest()
    return entry.own_numbers(np.random.default_rng(int.from_bytes(digest, "big")))


def numbers(id):
    """Your own numbers for an exercise, as attributes: `mine = numbers("01.vectors.own_length"); mine.v`.

    Raises: UnknownReferenceError for an unknown id, ValueError for an exercise that draws none.
    """
    entry = item(id)
    if entry.numbers is None:
        raise ValueError(f"the exercise {id!r} has the same numbers for everybody; it draws none of your own")
    return namespace(own_numbers(entry, learner()))
