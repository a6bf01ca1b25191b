"""A coin, a belief about it, and some throws: how much do the throws change the belief?"""

import traitlets

from .base import Figure, module

__all__ = ["BetaBelief"]


class BetaBelief(Figure):
    """Sliders for a belief about a coin and for throws; curves of the belief before and after.

    prior_a, prior_b: parameters of the Beta distribution believed beforehand, from 1 to 50
    heads, tails: what was thrown, from 0 to 50

    >>> BetaBelief(heads=7, tails=3).heads
    7
    """

    _esm = module("beta_belief.js")
    prior_a = traitlets.Int(1, min=1, max=50).tag(sync=True)
    prior_b = traitlets.Int(1, min=1, max=50).tag(sync=True)
    heads = traitlets.Int(7, min=0, max=50).tag(sync=True)
    tails = traitlets.Int(3, min=0, max=50).tag(sync=True)
