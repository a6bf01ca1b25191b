"""Two arrows, their angle and their lengths: which of them does the cosine notice, and which the dot product?"""

import traitlets

from .base import Figure, module

__all__ = ["AngleCosine"]


class AngleCosine(Figure):
    """Two arrows: sliders turn and stretch them, cosine and dot product respond.

    angle: degrees from 0 to 180   length_a, length_b: from 0.5 to 4

    >>> AngleCosine(angle=60).angle
    60.0
    """

    _esm = module("angle_cosine.js")
    angle = traitlets.Float(35.0, min=0, max=180).tag(sync=True)
    length_a = traitlets.Float(3.0, min=0.5, max=4).tag(sync=True)
    length_b = traitlets.Float(2.0, min=0.5, max=4).tag(sync=True)
