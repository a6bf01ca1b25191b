"""More features than dimensions: directions that share a plane, switched on, added up and read back."""

import traitlets

from .base import Figure, module

__all__ = ["FeaturePlane"]


class FeaturePlane(Figure):
    """Features share a plane: switch some on, and see which come back, and which only seem to.

    features: 2 to 8 directions, evenly spread   active: those that are on, counted from 1   bias: from −1 to 0

    Raises: ValueError for an active feature that is not there.

    >>> FeaturePlane(features=3, active=[2]).bias
    0.0
    """

    _esm = module("feature_plane.js")
    features = traitlets.Int(5, min=2, max=8).tag(sync=True)
    active = traitlets.List(traitlets.Int(), default_value=[1]).tag(sync=True)
    bias = traitlets.Float(0.0, min=-1, max=0).tag(sync=True)

    def __init__(self, **traits):
        super().__init__(**traits)
        if not set(self.active) <= set(range(1, self.features + 1)):
            raise ValueError(f"FeaturePlane needs active features from 1 to {self.features}, got {self.active}")
