"""What happens inside, and how would one find out?

A transformer is a sum of things that were written into one stream, so one may ask of each what it wrote, of each head
where it looked, and of every vector what can be read from it. And one may interfere: put one run's numbers into another
and see what changes. The methods of this chapter need nothing but the intermediates that the model gives by name.

    residual_stream.py      the stream as a sum; what each write adds to the logits; the logit lens
    attention_patterns.py   attention weights, corrected for what is at the other end
    probes.py               linear probes, and the control task that keeps them honest
    patching.py             numbers of one run put into another
    superposition.py        more features than dimensions: how many, and at what price
    neurons.py              a feature read from one neuron, and from a direction
    induction.py            [A][B] … [A] → [B]: a circuit built by hand, and how to find one
    sparse_autoencoder.py   finding the features again
"""

# What the modules define, written by tools/build_exports.py
from .attention_patterns import head_contributions, value_weighted_attention
from .induction import (
    induction_model, induction_score, previous_token_score, repeated_tokens, successor_texts, train_induction_model,
)  # fmt: skip
from .neurons import direction_correlations, features_per_neuron, neuron_correlations
from .patching import patch_effect, patch_effects, patch_map, replace_with, without_heads
from .probes import control_labels, probe_accuracy, selectivity, train_probe
from .residual_stream import logit_attribution, logit_lens, residual_contributions
from .sparse_autoencoder import (
    recovery, sparse_autoencoder_init, sparse_autoencoder_loss, sparse_codes, train_sparse_autoencoder,
)  # fmt: skip
from .superposition import (
    feature_dimensions, largest_overlap, random_directions, simulate_read_out, sparse_decoding_limit, sparse_features,
    superposition_loss, threshold_read_out_limit, train_superposition, typical_overlap, welch_bound, worst_case_limit,
)  # fmt: skip

__all__ = [
    "control_labels", "direction_correlations", "feature_dimensions", "features_per_neuron", "head_contributions",
    "induction_model", "induction_score", "largest_overlap", "logit_attribution", "logit_lens", "neuron_correlations",
    "patch_effect", "patch_effects", "patch_map", "previous_token_score", "probe_accuracy", "random_directions",
    "recovery", "repeated_tokens", "replace_with", "residual_contributions", "selectivity", "simulate_read_out",
    "sparse_autoencoder_init", "sparse_autoencoder_loss", "sparse_codes", "sparse_decoding_limit", "sparse_features",
    "successor_texts", "superposition_loss", "threshold_read_out_limit", "train_induction_model", "train_probe",
    "train_sparse_autoencoder", "train_superposition", "typical_overlap", "value_weighted_attention", "welch_bound",
    "without_heads", "worst_case_limit",
]  # fmt: skip
