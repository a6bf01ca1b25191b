"""How wrong is a prediction?

As wrong as it is surprised by what comes next. The surprise at something of probability p is −log p; its mean is the
entropy where the probabilities are right and the cross-entropy where they are a model's. Training makes this one number
small, and the same number says how short the text becomes when the model compresses it.

    information.py  surprise, entropy, divergence, mutual information, perplexity, and the base they are counted in
    loss.py         the training loss, from logits, with the simplest gradient of all: prediction minus truth
    contrastive.py  the loss of choosing the right partner among all of a batch: InfoNCE
    compression.py  an arithmetic coder that turns predictions into short files and back
"""

# What the modules define, written by tools/build_exports.py
from .compression import arithmetic_decode, arithmetic_encode, code_length
from .contrastive import info_nce
from .information import (
    convert_information, cross_entropy_between, entropy, kl_divergence, loss_table, mutual_information, perplexity,
    surprise,
)  # fmt: skip
from .loss import IGNORED, cross_entropy

__all__ = [
    "IGNORED", "arithmetic_decode", "arithmetic_encode", "code_length", "convert_information", "cross_entropy",
    "cross_entropy_between", "entropy", "info_nce", "kl_divergence", "loss_table", "mutual_information", "perplexity",
    "surprise",
]  # fmt: skip
