"""RoPE on one pair of components: two arrows turn with their positions, and the score knows the distance alone."""

import traitlets

from .base import Figure, module

__all__ = ["RotaryPair"]


class RotaryPair(Figure):
    """A query and a key, turned by their positions: the score knows the distance alone.

    query_position, key_position: from 0 to 30   query_angle, key_angle: directions before turning, in degrees
    rate: radians per position

    >>> RotaryPair(query_position=7).key_position
    3
    """

    _esm = module("rotary_pair.js")
    query_position = traitlets.Int(5, min=0, max=30).tag(sync=True)
    key_position = traitlets.Int(3, min=0, max=30).tag(sync=True)
    query_angle = traitlets.Float(20.0).tag(sync=True)
    key_angle = traitlets.Float(80.0).tag(sync=True)
    rate = traitlets.Float(0.3, min=0.01, max=1.0).tag(sync=True)
