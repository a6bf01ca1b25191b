"""A reward to gain and a price for straying: how far does the best policy go, and is the reward to be trusted?"""

import math

import traitlets

from .base import Figure, module

__all__ = ["KLLeash"]


class KLLeash(Figure):
    """Bars for answers; a slider for β moves the best policy under reward minus β times KL.

    answers: their names   reference: π_ref, a distribution   reward: what is maximised   truth: what was meant, both
    one number for each answer   beta: from 0.1 to 10

    Raises: ValueError where the numbers of entries differ, or the reference does not sum to 1 or has a zero.

    >>> KLLeash().beta
    10.0
    """

    _esm = module("kl_leash.js")
    answers = traitlets.List(traitlets.Unicode(), ["plain", "rude", "friendly", "☺☺☺☺"], minlen=2).tag(sync=True)
    reference = traitlets.List(traitlets.Float(), [0.5, 0.3, 0.199, 0.001]).tag(sync=True)
    reward = traitlets.List(traitlets.Float(), [1.0, 0.0, 2.0, 4.0]).tag(sync=True)
    truth = traitlets.List(traitlets.Float(), [1.0, 0.0, 2.0, -2.0]).tag(sync=True)
    beta = traitlets.Float(10.0, min=0.1, max=10).tag(sync=True)

    def __init__(self, **traits):
        super().__init__(**traits)
        sizes = [len(self.answers), len(self.reference), len(self.reward), len(self.truth)]
        if len(set(sizes)) > 1:
            raise ValueError(f"KLLeash needs as many probabilities and rewards as answers, got {sizes}")
        if min(self.reference) <= 0 or not math.isclose(sum(self.reference), 1, abs_tol=1e-6):
            raise ValueError(f"KLLeash needs a distribution without zeros as reference, got {self.reference}")
