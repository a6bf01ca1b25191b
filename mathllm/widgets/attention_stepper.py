"""Every number of an attention layer, one step at a time, on examples small enough for paper."""

import traitlets

from .base import Figure, module

__all__ = ["AttentionStepper"]

_EXAMPLES = [
    {
        "name": "three tokens (primer)",
        "tokens": ["1", "2", "3"],
        "query": [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]],
        "key": [[1.0, 1.0], [0.0, 1.0], [1.0, 0.0]],
        "value": [[10.0, 0.0], [0.0, 10.0], [5.0, 5.0]],
    },
    {
        "name": "The cat sat",  # no values are given: the source stops at the weights
        "tokens": ["The", "cat", "sat"],
        "query": [[1.0, 0.5], [0.3, 0.8], [0.1, 0.9]],
        "key": [[0.9, 0.2], [0.4, 0.7], [0.2, 0.8]],
        "value": [],
    },
]


class AttentionStepper(Figure):
    """Attention step by step: compare, scale, mask, share out, blend, with every number.

    examples: dictionaries with name, tokens, query, key and value (a list of rows each; value may be empty)
    example, step, row: where the figure begins   mask: "none", "causal" or "window"   scaled: divide by √d_k?

    Raises: ValueError for an example whose matrices do not have one row per token.

    >>> AttentionStepper(step=4).examples[1]["name"]
    'The cat sat'
    """

    _esm = module("attention_stepper.js")
    examples = traitlets.List(traitlets.Dict(), _EXAMPLES, minlen=1).tag(sync=True)
    example = traitlets.Int(0, min=0).tag(sync=True)
    step = traitlets.Int(1, min=1, max=5).tag(sync=True)
    row = traitlets.Int(0, min=0).tag(sync=True)
    mask = traitlets.Enum(["none", "causal", "window"], "none").tag(sync=True)
    scaled = traitlets.Bool(True).tag(sync=True)

    def __init__(self, **traits):
        super().__init__(**traits)
        for example in self.examples:
            lengths = [len(example[name]) for name in ("tokens", "query", "key", "value") if len(example[name])]
            if len(set(lengths)) != 1 or len(lengths) < 3:
                raise ValueError(f"AttentionStepper needs one row per token, got {lengths} in {example['name']!r}")
        if self.example >= len(self.examples) or self.row >= len(self.examples[self.example]["tokens"]):
            raise ValueError(f"AttentionStepper has no row {self.row} in an example {self.example}")
