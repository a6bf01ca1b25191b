"""Where the large arrays of a step lie: memory that the step before has done with, instead of fresh pages each time."""

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

_SLAB = 1 << 25  # bytes asked of the system at a time: enough for it to give large pages
_LINE = 64  # bytes: where a line of the cache begins, vector instructions are up to twice as fast

_current = ContextVar("memory", default=None)


class _Memory:
    """Buffers by size, for one thread at a time. A buffer is free when nothing refers to it but its list here."""

    def __init__(self):
        self.buffers, self.slab, self.used = {}, np.empty(0, np.uint8), 0

    def buffer(self, size):
        alike = self.buffers.setdefault(size, [])
        references = _references(alike)
        if _UNUSED in references:
            return alike[references.index(_UNUSED)]
        alike.append(self._new(size))
        return alike[-1]

    def _new(self, size):
        if self.used + size > self.slab.size:
            self.slab = np.empty(max(size, _SLAB) + _LINE, np.uint8)
            self.used = -self.slab.ctypes.data % _LINE
        start, self.used = self.used, self.used - (-size // _LINE * _LINE)
        return np.frombuffer(memoryview(self.slab), np.uint8, size, start)


@contextmanager
def _reused_memory(memory: _Memory) -> Iterator[None]:
    """While it lasts, `_empty` takes its arrays from `memory`, which goes back to the system when it goes itself.

    Fresh memory comes from the operating system page by page, which takes as long as writing the array once more.
    """
    before = _current.set(memory)
    try:
        yield
    finally:
        _current.reset(before)


def _empty(shape, dtype) -> np.ndarray:
    """As `np.empty`, in memory that is free again if there is some: every view of an array refers to its buffer."""
    memory = _current.get()
    if memory is None or 0 in shape:
        return np.empty(shape, dtype)
    return memory.buffer(math.prod(shape) * np.dtype(dtype).itemsize).view(dtype).reshape(shape)


def _references(buffers):
    return list(map(sys.getrefcount, buffers))


_UNUSED = _references([np.empty(0)])[0]
