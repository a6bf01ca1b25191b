"""Where the exercises are found."""

import importlib
import pkgutil
from functools import cache

from mathllm.errors import UnknownReferenceError, suggest

from . import bank
from .item import Item

__all__ = ["item", "items"]


@cache
def _all():
    """Every item by its id, in the order of the chapters and of their texts."""
    found = {record["id"]: bank.make(record) for record in bank.records()}
    package = importlib.import_module(f"{__package__}.items")
    for module in pkgutil.iter_modules(package.__path__):
        found |= {entry.id: entry for entry in importlib.import_module(f"{package.__name__}.{module.name}").ITEMS}
    return dict(sorted(found.items(), key=lambda pair: pair[1].chapter))


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
