"""A learner's own numbers: drawn from the learner's id and the item's id, so always the same and no secret."""

import getpass
import hashlib
import os

import numpy as np

from .item import namespace
from .registry import item

__all__ = ["learner", "numbers", "own_numbers"]


def learner():
    """The learner's id: MATHLLM_LEARNER, else the JupyterHub user, else the name of the account."""
    for variable in ("MATHLLM_LEARNER", "JUPYTERHUB_USER"):
        if os.environ.get(variable):
            return os.environ[variable]
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # no accounts, as in the browser
        return "reader"


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
