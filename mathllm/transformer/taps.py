"""What a run computes on its way: a tap, a function (name, value), sees every intermediate and returns what is used."""

from collections.abc import Callable

import numpy as np

from ..autodiff import Tensor
from ..errors import ShapeError


def record_to(record: dict) -> Callable:
    """A tap that stores every intermediate of a run: `model(params, tokens, tap=record_to(record := {}))`.

    >>> tap = record_to(record := {})
    >>> tap("embeddings", np.ones(2)) is record["embeddings"]
    True
    """

    def tap(name, value):
        record[name] = value.value if isinstance(value, Tensor) else value
        return value

    return tap


def under(tap: Callable, prefix: str) -> Callable:
    """The same tap for names that begin with a prefix and a dot.

    >>> under(lambda name, value: name, "blocks.0")("output", 1.0)
    'blocks.0.output'
    """
    return lambda name, value: tap(f"{prefix}.{name}", value)


def same_shape(tap: Callable | None) -> Callable:
    """The tap, held to the shapes of what it sees; without one, a tap that changes nothing.

    >>> same_shape(None)("output", 1.0)
    1.0
    """

    def checked(name, value):
        new = value if tap is None else tap(name, value)
        if np.shape(new) != np.shape(value):
            raise ShapeError(f"{name!r} has shape {np.shape(value)}, the tap returned {np.shape(new)}")
        return new

    return checked
