"""How do attention and small networks become a transformer?

A transformer consists of embeddings (chapter 01), attention (chapter 10), a small network for each token, norms that
keep the sizes of the numbers, and sums: every block adds its output to the residual stream. One configuration record
distinguishes GPT-2, LLaMA, Mixtral, BERT and T5; one class computes them all.

    config.py        the sizes and choices of a model
    norms.py         layer norm, RMS norm, batch norm
    feed_forward.py  the position-wise network, gated networks, mixtures of experts
    model.py         the model
    taps.py          functions that see every intermediate of the model, and may replace it
    parameters.py    one table of all parameters: how they begin, how many there are, how many operations they cost
"""

# What the modules define, written by tools/build_exports.py
from .config import BertParts, Config, T5Parts, bert_config, gpt2_config, llama_config, mixtral_config, t5_config
from .feed_forward import ACTIVATIONS, feed_forward, mixture_of_experts, scatter
from .model import Marks, Transformer
from .norms import batch_norm, layer_norm, rms_norm
from .parameters import Parameter, count_parameters, forward_flops, parameter_table, parameters_by_part
from .taps import record_to, same_shape, under

__all__ = [
    "ACTIVATIONS", "BertParts", "Config", "Marks", "Parameter", "T5Parts", "Transformer", "batch_norm", "bert_config",
    "count_parameters", "feed_forward", "forward_flops", "gpt2_config", "layer_norm", "llama_config", "mixtral_config",
    "mixture_of_experts", "parameter_table", "parameters_by_part", "record_to", "rms_norm", "same_shape", "scatter",
    "t5_config", "under",
]  # fmt: skip
