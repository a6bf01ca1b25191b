"""A landscape seen from above, and the way an optimiser takes through it."""

import traitlets

from .base import Figure, module

__all__ = ["DescentSurface"]


class DescentSurface(Figure):
    """A map of heights, and the path that plain descent, momentum or Adam takes on it.

    surface: "valley", ½(x² + 20y²); "pass", ½(x² − y²) + ¼y⁴; "two bowls", ½(x² − 1)² + 0.3x + y²
    method: "plain", "momentum" (heavy ball) or "Adam"   rate: the learning rate η, from 0.001 to 1, kept as its
    logarithm to base 10   beta: β of momentum, β₁ of Adam   steps: from 0 to 100

    >>> DescentSurface(surface="pass", method="Adam").steps
    20
    """

    _esm = module("descent_surface.js")
    surface = traitlets.Enum(["valley", "pass", "two bowls"], "valley").tag(sync=True)
    method = traitlets.Enum(["plain", "momentum", "Adam"], "plain").tag(sync=True)
    log_rate = traitlets.Float(-1.3, min=-3, max=0).tag(sync=True)
    beta = traitlets.Float(0.9, min=0, max=0.99).tag(sync=True)
    steps = traitlets.Int(20, min=0, max=100).tag(sync=True)
