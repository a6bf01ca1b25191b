"""Scores on sliders, probabilities as bars: what does a shift change, and what does a temperature?"""

import traitlets

from .base import Figure, module

__all__ = ["SoftmaxBars"]


class SoftmaxBars(Figure):
    """Sliders for some scores and a temperature; bars show the softmax probabilities.

    labels: the candidates' names   logits: one score each, from −5 to 10   temperature: from 0.1 to 10

    Raises: ValueError where the numbers of labels and logits differ, or there is none.

    >>> SoftmaxBars(labels=["yes", "no"], logits=[1.0, 0.0]).temperature
    1.0
    """

    _esm = module("softmax_bars.js")
    labels = traitlets.List(traitlets.Unicode(), ["a", "b", "c"]).tag(sync=True)
    logits = traitlets.List(traitlets.Float(min=-5, max=10), [2.0, 1.0, 0.5]).tag(sync=True)
    temperature = traitlets.Float(1.0, min=0.1, max=10).tag(sync=True)

    def __init__(self, **traits):
        super().__init__(**traits)
        if len(self.labels) != len(self.logits) or not self.labels:
            raise ValueError(f"SoftmaxBars needs one label per logit, got {len(self.labels)} and {len(self.logits)}")
