"""Where the exercises are found."""

from functools import cache

from mathllm.errors import UnknownReferenceError, suggest

from . import bank
from .item import Item

__all__ = ["item", "items"]


@cache
def _all():
    """Every item by its id, in the order of the chapters and of their texts."""
    return {record["id"]: bank.make(record) for record in bank.records()}


def item(id) -> Item:
    """The item with this id.

    Raises: UnknownReferenceError, with the nearest ids.
    """
    if id not in _all():
        raise UnknownReferenceError(f"there is no exercise {id!r}{suggest(str(id), _all())}")
    return _all()[id]


def items(chapter=None) -> list[Item]:
    """All items, or those of one chapter: `items("01")` or `items("vectors")`."""
    return [entry for entry in _all().values() if chapter is None or chapter in entry.id.split(".")[:2]]
