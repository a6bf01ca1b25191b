"""What is a transformer, when every part of it is already known?

Embeddings from chapter 01, attention from chapter 10, a small network for each token, norms that keep the numbers
tame, and sums that let every block write into one stream. One configuration record tells GPT-2 from LLaMA, Mixtral,
BERT and T5; one class runs them all.

    config.py        the sizes and choices of a model
    norms.py         layer norm, RMS norm, batch norm
    feed_forward.py  the position-wise network, gated networks, mixtures of experts
    model.py         the model
    fused.py         in training: LLaMA's sublayers in fewer passes over memory
    counting.py      parameters and operations
"""

# What the modules define, written by tools/build_exports.py
from .config import Config, bert_config, gpt2_config, llama_config, mixtral_config, t5_config
from .counting import count_parameters, forward_flops, parameter_count
from .feed_forward import feed_forward, mixture_of_experts
from .model import Transformer
from .norms import batch_norm, layer_norm, layer_norm_gradient_as_printed, rms_norm, running_statistics

__all__ = [
    "Config", "Transformer", "batch_norm", "bert_config", "count_parameters", "feed_forward", "forward_flops",
    "gpt2_config", "layer_norm", "layer_norm_gradient_as_printed", "llama_config", "mixtral_config",
    "mixture_of_experts", "parameter_count", "rms_norm", "running_statistics", "t5_config",
]  # fmt: skip
