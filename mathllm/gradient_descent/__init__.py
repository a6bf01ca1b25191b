"""In which direction does a loss fall, and how far should a step go?

The gradient gives the direction, the learning rate scales the step. Momentum adds up recent gradients, Adam
scales the step of every parameter separately, a schedule changes the learning rate over time, clipping limits the
gradient, and weight decay and dropout reduce overfitting. An optimiser is two small functions,

    state = adamw_init(params)
    params, state = adamw_step(params, gradient, state, learning_rate=…)

where params, gradient and state are nested dicts of arrays, and nothing is changed in place; `adamw` is the same rule
on vectors, in place.

    optimizers.py      SGD, momentum, RMSProp, Adam, AdamW
    schedules.py       learning rates that change: warmup, cosine, restarts, polynomial, inverse square root
    regularization.py  clipping, the L2 penalty, dropout
    stochastic.py      the noise of minibatches, and the path of a descent
    word2vec.py        word vectors learned from text: skip-gram with negative sampling
"""

# What the modules define, written by tools/build_exports.py
from .optimizers import (
    adam_init, adam_step, adamw, adamw_init, adamw_step, bias_correction, checked_gradient, decay_of_entries,
    momentum_init, momentum_step, rmsprop_init, rmsprop_step, sgd_init, sgd_step,
)  # fmt: skip
from .regularization import clip_gradient, dropout, global_norm, l2_penalty
from .schedules import cosine_restarts, polynomial_decay, warmup_cosine
from .stochastic import descend, descent_path, minibatch_variance, minimize
from .word2vec import negative_sampling_loss, skip_gram_pairs, train_word2vec

__all__ = [
    "adam_init", "adam_step", "adamw", "adamw_init", "adamw_step", "bias_correction", "checked_gradient",
    "clip_gradient", "cosine_restarts", "decay_of_entries", "descend", "descent_path", "dropout", "global_norm",
    "l2_penalty", "minibatch_variance", "minimize", "momentum_init", "momentum_step", "negative_sampling_loss",
    "polynomial_decay", "rmsprop_init", "rmsprop_step", "sgd_init", "sgd_step", "skip_gram_pairs", "train_word2vec",
    "warmup_cosine",
]  # fmt: skip
