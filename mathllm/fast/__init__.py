"""The same numbers sooner, by name: `from mathllm.fast import Transformer, train, generate`.

These take the arguments of `mathllm.Transformer`, `mathllm.train` and `mathllm.generate` and give their results up to
rounding; tests hold each of them to the readable form. The command line and the long runs of the book use them. What
each device saves is measured by benchmarks/ablation.py and stands in benchmarks/README.md.

    block.py     the sublayers of GPT-2 and LLaMA, forward and backward, in few passes over memory
    model.py     the training loss as one primitive
    decoding.py  one token of one sequence
    training.py  AdamW on one vector, in place
"""

from typing import Any

import numpy as np

from ..autodiff import ArrayLike
from ..inference import generate as _generate
from .model import Transformer
from .training import train

__all__ = ["Transformer", "generate", "train"]


def generate(model: Transformer, params: dict, tokens: ArrayLike, **options: Any) -> np.ndarray:
    """`mathllm.generate`, with the decoding step of `mathllm.fast.Transformer`, whichever of the two the model is.

    >>> from mathllm.transformer import gpt2_config
    >>> model = Transformer(gpt2_config(vocabulary=10, width=8, layers=2, heads=2))
    >>> generate(model, model.init(np.random.default_rng(0)), [[1, 2]], max_new_tokens=3).shape
    (1, 5)
    """
    fast = model if isinstance(model, Transformer) else Transformer(model.config)
    return _generate(fast, params, tokens, **options)
