"""A matrix as a picture: how many of its directions does it take to recognise it?"""

import numpy as np
import traitlets

from ..matrices import svd
from .base import Figure, module

__all__ = ["RankSlider"]


class RankSlider(Figure):
    """A picture rebuilt from its largest singular values; a slider sets how many.

    picture: a matrix (m, n) of numbers from 0 (paper) to 1 (ink), at most 64 on each side   rank: how many directions

    Raises: ValueError for numbers outside of 0 to 1, or a picture of another size.

    >>> RankSlider([[0.0, 1.0], [1.0, 0.0]], rank=2).sizes
    [1.0, 1.0]
    """

    _esm = module("rank_slider.js")
    columns = traitlets.List().tag(sync=True)  # u_i, one list for each direction
    sizes = traitlets.List().tag(sync=True)  # σ_i, the largest first
    rows = traitlets.List().tag(sync=True)  # v_i
    rank = traitlets.Int(1, min=0).tag(sync=True)

    def __init__(self, picture, **traits):
        picture = np.asarray(picture, dtype=float)
        if picture.ndim != 2 or not 1 <= min(picture.shape) <= max(picture.shape) <= 64:
            raise ValueError(f"RankSlider needs a matrix of at most 64 × 64 entries, got shape {picture.shape}")
        if not np.all((picture >= 0) & (picture <= 1)):
            raise ValueError("RankSlider needs entries from 0 (paper) to 1 (ink)")
        U, sizes, Vt = svd(picture)
        digits = 5  # enough for the eye; the page stays small
        columns, rows = U.T.round(digits).tolist(), Vt.round(digits).tolist()
        super().__init__(columns=columns, sizes=sizes.round(digits).tolist(), rows=rows, **traits)
        if self.rank > len(sizes):
            raise ValueError(f"RankSlider needs a rank from 0 to {len(sizes)}, got {self.rank}")
