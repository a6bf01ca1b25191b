"""A vector of two components and its length, with Pythagoras' triangle drawn under the arrow."""

import traitlets

from .base import Figure, module

__all__ = ["VectorLength"]


class VectorLength(Figure):
    """A vector as an arrow: two components are the sides of a triangle, its length the third.

    components: where the arrow starts out, two numbers between −8 and 8

    >>> VectorLength(components=[6, 8]).components
    [6.0, 8.0]
    """

    _esm = module("vector_length.js")
    components = traitlets.List(traitlets.Float(), default_value=[2.0, 2.0], minlen=2, maxlen=2).tag(sync=True)

    @traitlets.validate("components")
    def _fit_on_the_plane(self, proposal):
        if not all(-8 <= component <= 8 for component in proposal["value"]):
            raise traitlets.TraitError(f"components must lie between -8 and 8, got {proposal['value']}")
        return proposal["value"]
