"""How many numbers does a model hold, and where? Five sizes on sliders, the count by parts."""

import traitlets

from .base import Figure, module

__all__ = ["ParameterCalculator"]

# V, D, L, F, key/value heads in parts of D, and: gated, biases, learned positions, tied, BERT's extras
_MODELS = {
    "GPT-2": {"vocabulary": 50257, "width": 768, "layers": 12, "hidden": 3072, "context": 1024},
    "GPT-3": {"vocabulary": 50257, "width": 12288, "layers": 96, "hidden": 49152, "context": 2048},
    "LLaMA-7B": {"vocabulary": 32000, "width": 4096, "layers": 32, "hidden": 11008, "context": 0,
                 "gated": True, "bias": False, "tied": False},
    "SmolLM2": {"vocabulary": 49152, "width": 576, "layers": 30, "hidden": 1536, "context": 0,
                "gated": True, "bias": False, "key_width": 192},
}  # fmt: skip


class ParameterCalculator(Figure):
    """Sliders for the sizes of a transformer; bars show where its parameters are, and how many.

    model: the one to begin with, "GPT-2", "GPT-3", "LLaMA-7B" or "SmolLM2"

    Raises: ValueError for another model.

    >>> ParameterCalculator(model="GPT-3").model
    'GPT-3'
    """

    _esm = module("parameter_calculator.js")
    models = traitlets.Dict(_MODELS).tag(sync=True)
    model = traitlets.Unicode("GPT-2").tag(sync=True)

    def __init__(self, **traits):
        super().__init__(**traits)
        if self.model not in _MODELS:
            raise ValueError(f"ParameterCalculator knows {', '.join(_MODELS)}, got {self.model!r}")
