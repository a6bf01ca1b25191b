"""What is a transformer, when every part of it is already known?

Embeddings from chapter 01, attention from chapter 10, a small network for each token, norms that keep the numbers
tame, and sums that let every block write into one stream. One configuration record tells GPT-2 from LLaMA, Mixtral,
BERT and T5; one class runs them all.

    config.py        the sizes and choices of a model
    norms.py         layer norm, RMS norm, batch norm
    feed_forward.py  the position-wise network, gated networks, mixtures of experts
    model.py         the model
    parameters.py    one table of all parameters: how they begin, how many there are, how many operations they cost
"""

# What the modules define, written by tools/build_exports.py
from .config import BertParts, Config, T5Parts, bert_config, gpt2_config, llama_config, mixtral_config, t5_config
from .feed_forward import ACTIVATIONS, feed_forward, mixture_of_experts, scatter
from .model import Transformer, record_to, under
from .norms import batch_norm, layer_norm, rms_norm, running_statistics
from .parameters import Parameter, count_parameters, forward_flops, parameter_count, parameter_table

__all__ = [
    "ACTIVATIONS", "BertParts", "Config", "Parameter", "T5Parts", "Transformer", "batch_norm", "bert_config",
    "count_parameters", "feed_forward", "forward_flops", "gpt2_config", "layer_norm", "llama_config", "mixtral_config",
    "mixture_of_experts", "parameter_count", "parameter_table", "record_to", "rms_norm", "running_statistics",
    "scatter", "t5_config", "under",
]  # fmt: skip
