"""Two points of a curve and the line through them: what becomes of its slope when they meet?"""

import traitlets

from .base import Figure, module

__all__ = ["SecantTangent"]


class SecantTangent(Figure):
    """A curve, two of its points, and the line through them: a secant that becomes a tangent.

    curve: "square", "cube", "exponential" or "kink" (max(0, x))   x: from −1.5 to 1.5   h: from −1 to 1, the distance
    to the second point

    >>> SecantTangent(curve="cube", x=1.0).h
    1.0
    """

    _esm = module("secant_tangent.js")
    curve = traitlets.Enum(["square", "cube", "exponential", "kink"], "square").tag(sync=True)
    x = traitlets.Float(0.5, min=-1.5, max=1.5).tag(sync=True)
    h = traitlets.Float(1.0, min=-1, max=1).tag(sync=True)
