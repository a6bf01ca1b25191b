"""What does a model compute inside, and how can we find out?

The residual stream of a transformer is a sum, so we can ask what each sublayer adds to it, where each attention head
attends, and what can be read from each vector. To find causes we intervene: we replace an intermediate of one run by
that of another and see how the answer changes. Reading and replacing use one hook of the model, the tap, which sees
every intermediate under its name and returns what is used in its place.

    residual_stream.py      the stream as a sum: contributions, direct logit attribution, the logit lens
    attention_patterns.py   attention weights, weighted by the values that they move
    probes.py               linear probes, and control tasks to compare them with
    patching.py             activation patching, and the ablation of attention heads
    superposition.py        more features than dimensions: bounds, read-out, and a toy autoencoder
    neurons.py              how well a feature can be read from one neuron, and from a direction
    induction.py            induction heads: a circuit written by hand, one found by training, scores
    sparse_autoencoder.py   sparse autoencoders, which recover features from activations
"""

# What the modules define, written by tools/build_exports.py
from .attention_patterns import head_contributions, value_weighted_attention
from .induction import (
    induction_model, induction_score, previous_token_score, repeated_tokens, successor_texts, train_induction_model,
)  # fmt: skip
from .neurons import direction_correlations, neuron_correlations
from .patching import patch_effect, patch_map, replace_with, without_heads
from .probes import control_labels, probe_accuracy, selectivity, train_probe
from .residual_stream import logit_attribution, logit_lens, residual_contributions
from .sparse_autoencoder import (
    recovery, sparse_autoencoder_init, sparse_autoencoder_loss, sparse_codes, train_sparse_autoencoder,
)  # fmt: skip
from .superposition import (
    feature_dimensions, random_directions, simulate_read_out, sparse_decoding_limit, sparse_features,
    superposition_loss, train_superposition, welch_bound,
)  # fmt: skip

__all__ = [
    "control_labels", "direction_correlations", "feature_dimensions", "head_contributions", "induction_model",
    "induction_score", "logit_attribution", "logit_lens", "neuron_correlations", "patch_effect", "patch_map",
    "previous_token_score", "probe_accuracy", "random_directions", "recovery", "repeated_tokens", "replace_with",
    "residual_contributions", "selectivity", "simulate_read_out", "sparse_autoencoder_init", "sparse_autoencoder_loss",
    "sparse_codes", "sparse_decoding_limit", "sparse_features", "successor_texts", "superposition_loss",
    "train_induction_model", "train_probe", "train_sparse_autoencoder", "train_superposition",
    "value_weighted_attention", "welch_bound", "without_heads",
]  # fmt: skip
