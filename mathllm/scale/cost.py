"""The cost of a training run: parameters, bytes of memory, and floating-point operations."""

from typing import NamedTuple

import numpy as np

from ..autodiff import ArrayLike
from ..errors import within


def approximate_parameters(layers: int, width: int) -> int:
    """The rule of thumb for a transformer's size: 4d² for attention and 8d² for the feed-forward network of each layer.

        N ≈ 12 L d²                                                                 (17.1)

    Embeddings, biases and norms are left out; `parameters_by_part` counts them. GPT-3 has 96 layers of width 12,288,
    which gives 174 billion parameters; with the embeddings it has 175 billion.
    Raises: ValueError for sizes below 1.

    >>> approximate_parameters(layers=32, width=4096)
    6442450944
    """
    within("approximate_parameters", "whole [1, ∞)", layers=layers, width=width)
    return 12 * layers * width * width


class TrainingMemory(NamedTuple):
    """Bytes for the state of a model during training, by what they hold; activations come on top."""

    weights: float
    master_weights: float
    moments: float
    gradients: float

    @property
    def total(self) -> float:
        """The sum, in bytes."""
        return sum(self)


def training_memory(parameters: float, *, mixed: bool = True, gradients: bool = True) -> TrainingMemory:
    """Bytes for the weights of a model, their gradient and the state of Adam.

        mixed precision    2 (bf16 weight) + 4 (float32 master) + 8 (two moments) + 4 (gradient) = 18   (17.7)
        float32            4 (weight)                           + 8               + 4            = 16

    Without the gradient (`gradients=False`) mixed precision needs 14 bytes for each parameter. Mixed precision does not
    reduce these bytes: it saves time, and memory for activations.
    Raises: ValueError for a negative number.
    Source: Rajbhandari et al. 2020, §3.1, where the gradient has 2 bytes, 16 in all.

    >>> training_memory(7e9).total / 1e9, training_memory(7e9, gradients=False).total / 1e9
    (126.0, 98.0)
    """
    within("training_memory", "[0, ∞)", parameters=parameters)
    each = (2, 4, 8, 4 * gradients) if mixed else (4, 0, 8, 4 * gradients)
    return TrainingMemory(*(parameters * size for size in each))


def training_flops(parameters: ArrayLike, tokens: ArrayLike) -> np.ndarray:
    """Floating-point operations of a training run: for each parameter and token two forward and four backward.

        C ≈ 6 N D                                                                   (17.2)

    `forward_flops` counts what this leaves out.
    Source: Kaplan et al. 2020, §2.1.

    >>> f"{training_flops(175e9, 300e9):.3g}"
    '3.15e+23'
    """
    return 6 * np.multiply(parameters, tokens, dtype=np.float64)  # N·D of large runs overflows 64-bit integers
