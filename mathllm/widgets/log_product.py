"""Many probabilities multiplied: which number type arrives at zero first, and what do the logarithms say meanwhile?"""

import traitlets

from .base import Figure, module

__all__ = ["LogProduct"]


class LogProduct(Figure):
    """A product of equal probabilities in three number types, and its logarithm.

    probability: of each factor, from 0.01 to 0.99   factors: how many, from 1 to 1000

    >>> LogProduct(factors=30).factors
    30
    """

    _esm = module("log_product.js")
    probability = traitlets.Float(0.5, min=0.01, max=0.99).tag(sync=True)
    factors = traitlets.Int(20, min=1, max=1000).tag(sync=True)
