"""Two distributions over three words: how surprised is each at the other's world?"""

import traitlets

from .base import Figure, module

__all__ = ["TwoDistributions"]

_WEIGHTS = traitlets.Float(min=0, max=10)


class TwoDistributions(Figure):
    """Sliders for a true and a predicted distribution; bars for entropy, cross-entropy and KL.

    labels: three words   p, q: one weight each, from 0 to 10, divided by their sum   unit: "nats" or "bits"

    Raises: ValueError for another number of weights than labels, or for weights that are all zero.

    >>> TwoDistributions(unit="bits").unit
    'bits'
    """

    _esm = module("two_distributions.js")
    labels = traitlets.List(traitlets.Unicode(), ["the", "a", "an"]).tag(sync=True)
    p = traitlets.List(_WEIGHTS, [6.0, 3.0, 1.0]).tag(sync=True)
    q = traitlets.List(_WEIGHTS, [7.0, 2.0, 1.0]).tag(sync=True)
    unit = traitlets.Enum(["nats", "bits"], "nats").tag(sync=True)

    def __init__(self, **traits):
        super().__init__(**traits)
        if not len(self.labels) == len(self.p) == len(self.q):
            raise ValueError(f"one weight for each label, got {len(self.labels)}, {len(self.p)} and {len(self.q)}")
        if not (sum(self.p) > 0 and sum(self.q) > 0):
            raise ValueError("a distribution needs a weight that is not zero")
