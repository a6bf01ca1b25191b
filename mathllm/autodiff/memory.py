"""Where the large arrays of a step lie: memory that the step before has done with, instead of fresh pages each time."""

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

_buffers = ContextVar("buffers", default=None)


@contextmanager
def _reused_memory(buffers: dict) -> Iterator[None]:
    """While it lasts, `_empty` keeps its arrays in `buffers` and hands them out again when nobody refers to them.

    Fresh memory comes from the operating system page by page, which takes as long as writing the array once more.
    `buffers`, at first empty, is for one thread at a time; its memory is given back with it.
    """
    before = _buffers.set(buffers)
    try:
        yield
    finally:
        _buffers.reset(before)


def _empty(shape, dtype) -> np.ndarray:
    """As `np.empty`. Every view of an array refers to the buffer behind it: no reference left means it is free."""
    buffers = _buffers.get()
    if buffers is None:
        return np.empty(shape, dtype)
    size = math.prod(shape) * np.dtype(dtype).itemsize
    alike = buffers.setdefault(size, [])
    for number in range(len(alike)):
        if _references(alike, number) == _UNUSED:
            break
    else:
        number = len(alike)
        alike.append(np.empty(size, np.uint8))
    return alike[number].view(dtype).reshape(shape)


def _references(buffers, number):
    return sys.getrefcount(buffers[number])


_UNUSED = _references([np.empty(0)], 0)
