"""What is left to draw from: a distribution over the next token, made sharper or flatter, then cut."""

import traitlets

from .base import Figure, module

__all__ = ["SamplingFilters"]


class SamplingFilters(Figure):
    """Bars for tokens; sliders for temperature, top-k and top-p say which stay.

    tokens: their texts   logits: one for each, in falling order   temperature: from 0.1 to 3   top_k: from 1 to all
    top_p: from 0.05 to 1

    Raises: ValueError where the numbers of tokens and logits differ, or the logits rise.

    >>> SamplingFilters(tokens=["yes", "no"], logits=[1.0, 0.0]).top_k
    2
    """

    _esm = module("sampling_filters.js")
    tokens = traitlets.List(traitlets.Unicode(), minlen=1).tag(sync=True)
    logits = traitlets.List(traitlets.Float(), minlen=1).tag(sync=True)
    temperature = traitlets.Float(1.0, min=0.1, max=3).tag(sync=True)
    top_k = traitlets.Int(1, min=1).tag(sync=True)
    top_p = traitlets.Float(1.0, min=0.05, max=1).tag(sync=True)

    def __init__(self, tokens, logits, **traits):
        if len(tokens) != len(logits):
            raise ValueError(f"SamplingFilters needs a token for each logit, got {len(tokens)} and {len(logits)}")
        if sorted(logits, reverse=True) != list(logits):
            raise ValueError("SamplingFilters needs logits in falling order")
        super().__init__(tokens=tokens, logits=logits, **{"top_k": len(logits)} | traits)
