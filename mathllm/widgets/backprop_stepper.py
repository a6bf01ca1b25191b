"""One step of training on the smallest network, every number in its place on the graph."""

import traitlets

from .base import Figure, module

__all__ = ["BackpropStepper"]


class BackpropStepper(Figure):
    """Backpropagation step by step: value and gradient in every node of a 2-2-1 network.

    inputs: two numbers from −2 to 2   target: 0 or 1   step: 1 to 8, as document 004 counts them

    Raises: ValueError for more or fewer than two inputs.

    >>> BackpropStepper().inputs
    [1.0, 0.5]
    """

    _esm = module("backprop_stepper.js")
    inputs = traitlets.List(traitlets.Float(min=-2, max=2), [1.0, 0.5]).tag(sync=True)
    target = traitlets.Enum([0, 1], 1).tag(sync=True)
    step = traitlets.Int(1, min=1, max=8).tag(sync=True)

    def __init__(self, **traits):
        super().__init__(**traits)
        if len(self.inputs) != 2:
            raise ValueError(f"BackpropStepper needs two inputs, got {len(self.inputs)}")
