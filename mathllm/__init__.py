"""The mathematics of large language models in NumPy: the formulas of the book, many with their gradients beside them.

>>> import mathllm as ml
>>> float(ml.norm([3, 4]))
5.0

Every other public name of a chapter is found under its module, as `ml.interpretability.welch_bound`. Three functions
have the name of their chapter: `ml.softmax`, `ml.cross_entropy` and `ml.attention` are the functions, because they are
called far more often than the modules are named. The public names of these three chapters are all here; what only
other modules need is imported with `from mathllm.attention import …`.

What is random takes `rng`: a generator, as of `np.random.default_rng(0)`, or a seed, which stands for a new generator.
"""

from . import (
    alignment, autodiff, backpropagation, errors, exponentials, gradient_descent, gradients, inference,
    interpretability, matrices, probability, scale, similarity, training, transformer, trees, vectors,
)  # fmt: skip
from .attention import (
    RotaryScaling, additive_mask, alibi_bias, attention, attention_weights, causal_mask, flash_attention,
    linear_attention, merge_heads, multi_head_attention, padding_mask, positive_features, relative_buckets,
    rotary_angles, rotate, sinusoidal_positions, sliding_window_mask, split_heads,
)  # fmt: skip
from .autodiff import Tensor, check_gradient, grad, primitive, value_and_grad, vjp
from .backpropagation import xavier_scale
from .cross_entropy import (
    IGNORED, arithmetic_decode, arithmetic_encode, code_length, convert_information, cross_entropy,
    cross_entropy_between, entropy, info_nce, kl_divergence, mutual_information, perplexity, surprise,
)  # fmt: skip
from .errors import MissingDataError, ShapeError, UnknownReferenceError, UnknownWordError
from .exponentials import exp, log_sigmoid, log_sum_exp, sigmoid
from .gradient_descent import (
    adam_init, adam_step, adamw, adamw_init, adamw_step, clip_gradient, global_norm, warmup_cosine,
)  # fmt: skip
from .gradients import erf, gelu, jacobian, numerical_derivative, numerical_gradient, numerical_jacobian, relu, silu
from .inference import KVCache, continuation, generate, sampler
from .matrices import linear, lora_merge, multiply_adds, singular_values, stationary_distribution
from .probability import Vocabulary, distribution_from_counts, sample, sample_markov_chain, train_ngram
from .similarity import cosine_similarity, cosine_similarity_matrix, dot
from .softmax import log_softmax, softmax, softmax_jacobian, tanh
from .training import (
    Tokenizer, TrainingState, learn_merges, load_checkpoint, next_token_pairs, random_batch, save_checkpoint, train,
    training_state,
)  # fmt: skip
from .transformer import (
    Config, Transformer, count_parameters, feed_forward, gpt2_config, layer_norm, llama_config, parameters_by_part,
    record_to, rms_norm,
)  # fmt: skip
from .trees import flatten, tree_leaves, tree_map
from .vectors import distance, embedding, frobenius_norm, norm, normalize, one_hot

__version__ = "1.0.0"
__all__ = [
    "IGNORED", "Config", "KVCache", "MissingDataError", "RotaryScaling", "ShapeError", "Tensor", "Tokenizer",
    "TrainingState", "Transformer", "UnknownReferenceError", "UnknownWordError", "Vocabulary", "adam_init", "adam_step",
    "adamw", "adamw_init", "adamw_step", "additive_mask", "alibi_bias", "alignment", "arithmetic_decode",
    "arithmetic_encode", "attention", "attention_weights", "autodiff", "backpropagation", "causal_mask",
    "check_gradient", "clip_gradient", "code_length", "continuation", "convert_information", "cosine_similarity",
    "cosine_similarity_matrix", "count_parameters", "cross_entropy", "cross_entropy_between", "distance",
    "distribution_from_counts", "dot", "embedding", "entropy", "erf", "errors", "exp", "exponentials", "feed_forward",
    "flash_attention", "flatten", "frobenius_norm", "gelu", "generate", "global_norm", "gpt2_config", "grad",
    "gradient_descent", "gradients", "inference", "info_nce", "interpretability", "jacobian", "kl_divergence",
    "layer_norm", "learn_merges", "linear", "linear_attention", "llama_config", "load_checkpoint", "log_sigmoid",
    "log_softmax", "log_sum_exp", "lora_merge", "matrices", "merge_heads", "multi_head_attention", "multiply_adds",
    "mutual_information", "next_token_pairs", "norm", "normalize", "numerical_derivative", "numerical_gradient",
    "numerical_jacobian", "one_hot", "padding_mask", "parameters_by_part", "perplexity", "positive_features",
    "primitive", "probability", "random_batch", "record_to", "relative_buckets", "relu", "rms_norm", "rotary_angles",
    "rotate", "sample", "sample_markov_chain", "sampler", "save_checkpoint", "scale", "sigmoid", "silu", "similarity",
    "singular_values", "sinusoidal_positions", "sliding_window_mask", "softmax", "softmax_jacobian", "split_heads",
    "stationary_distribution", "surprise", "tanh", "train", "train_ngram", "training", "training_state", "transformer",
    "tree_leaves", "tree_map", "trees", "value_and_grad", "vectors", "vjp", "warmup_cosine", "xavier_scale",
]  # fmt: skip
