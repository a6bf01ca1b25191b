"""Four numbers and a plane: what does a matrix do to every point at once?"""

import traitlets

from .base import Figure, module

__all__ = ["GridDeformation"]


class GridDeformation(Figure):
    """Sliders set a 2 × 2 matrix; the plane's grid and a circle follow.

    w11, w12, w21, w22: the entries, from −2 to 2   amount: from 0 (the plane as it was) to 1 (all of the matrix)

    >>> GridDeformation(w12=1.0).w12
    1.0
    """

    _esm = module("grid_deformation.js")
    w11 = traitlets.Float(1.0, min=-2, max=2).tag(sync=True)
    w12 = traitlets.Float(0.0, min=-2, max=2).tag(sync=True)
    w21 = traitlets.Float(0.0, min=-2, max=2).tag(sync=True)
    w22 = traitlets.Float(1.0, min=-2, max=2).tag(sync=True)
    amount = traitlets.Float(1.0, min=0, max=1).tag(sync=True)
