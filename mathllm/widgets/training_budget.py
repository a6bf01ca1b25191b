"""What does a run cost? Parameters, tokens and machines on sliders; memory, operations and days as bars and numbers."""

import traitlets

from .base import Figure, module

__all__ = ["TrainingBudget"]


class TrainingBudget(Figure):
    """Sliders for a training run; memory of each device as bars, operations and days.

    parameters, tokens: powers of ten, 7 to 12 and 9 to 14   devices: a power of two, 0 to 13   zero: stage of ZeRO
    stages, microbatches: of the pipeline, for the share of waiting

    >>> TrainingBudget(parameters=9.0).zero
    0
    """

    _esm = module("training_budget.js")
    parameters = traitlets.Float(9.8451, min=7, max=12).tag(sync=True)
    tokens = traitlets.Float(12.3, min=9, max=14).tag(sync=True)
    devices = traitlets.Int(3, min=0, max=13).tag(sync=True)
    zero = traitlets.Int(0, min=0, max=3).tag(sync=True)
    stages = traitlets.Int(1, min=1, max=32).tag(sync=True)
    microbatches = traitlets.Int(8, min=1, max=128).tag(sync=True)
