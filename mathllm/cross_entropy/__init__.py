"""How wrong is a prediction?

The surprisal of an event of probability q is −log q: the less probable, the larger. Its mean over the data is the
entropy if q is the distribution of the data, p, and the cross-entropy if q is the prediction of a model. Training makes
the cross-entropy small, and with it the length of the text after compression with the model.

    contrastive.py  the loss of choosing the right partner among all of a batch: InfoNCE
    information.py  surprisal, entropy, divergence, mutual information, perplexity, and the base in which they are given
    loss.py         the training loss from logits; its gradient is predicted probability minus target
    compression.py  an arithmetic coder that turns predictions into short files and back
"""

# What the modules define, written by tools/build_exports.py
from .compression import arithmetic_decode, arithmetic_encode, code_length
from .contrastive import info_nce
from .information import (
    convert_information, cross_entropy_between, entropy, kl_divergence, mutual_information, perplexity, surprise,
)  # fmt: skip
from .loss import IGNORED, cross_entropy, divisor

__all__ = [
    "IGNORED", "arithmetic_decode", "arithmetic_encode", "code_length", "convert_information", "cross_entropy",
    "cross_entropy_between", "divisor", "entropy", "info_nce", "kl_divergence", "mutual_information", "perplexity",
    "surprise",
]  # fmt: skip
