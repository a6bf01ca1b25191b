"""How does a token find out what the others know?

It asks. Every token sends out a query, shows a key, and offers a value; where a query and a key agree, the value flows.
That one equation is the heart of the transformer, and this chapter holds its variations: masked, in many heads, tiled,
linear, and told about positions.

    scaled_dot_product.py  the equation, its weights and its masks
    heads.py               many heads, and keys shared by groups of heads
    positions.py           sinusoids, rotation (RoPE), distance penalties (ALiBi), classes of distances (T5)
    flash.py               the same result without the T × S table
    linear.py              without the softmax
    causal.py              in training: without the half that a causal mask hides
"""

# What the modules define, written by tools/build_exports.py
from .flash import flash_attention
from .heads import merge_heads, multi_head_attention, project, split_heads
from .linear import linear_attention, linear_attention_recurrent, positive_features
from .positions import alibi_bias, relative_buckets, rotary_angles, rotate, sinusoidal_positions
from .rope_scaling import RotaryScaling
from .scaled_dot_product import (
    additive_mask, attention, attention_weights, causal_mask, padding_mask, scaled_scores, sliding_window_mask,
)  # fmt: skip

__all__ = [
    "RotaryScaling", "additive_mask", "alibi_bias", "attention", "attention_weights", "causal_mask", "flash_attention",
    "linear_attention", "linear_attention_recurrent", "merge_heads", "multi_head_attention", "padding_mask",
    "positive_features", "project", "relative_buckets", "rotary_angles", "rotate", "scaled_scores",
    "sinusoidal_positions", "sliding_window_mask", "split_heads",
]  # fmt: skip
