"""How does a token get information from the other tokens?

Every token has a query, a key and a value. It receives the average of all values, weighted by how well its query
agrees with each key. This chapter contains attention and its variants: with masks, in many heads, in tiles, without
the softmax, and with positions.

    scaled_dot_product.py  scaled dot-product attention, its weights and its masks
    heads.py               many heads, and keys shared by groups of heads
    positions.py           sinusoids, rotation (RoPE), distance penalties (ALiBi), buckets of distances (T5)
    rope_scaling.py        rotary positions for texts longer than those of the training
    flash.py               the same result without the T × S table
    linear.py              attention without the softmax
"""

# What the modules define, written by tools/build_exports.py
from .flash import flash_attention
from .heads import merge_heads, multi_head_attention, project, split_heads
from .linear import linear_attention, positive_features
from .positions import alibi_bias, relative_buckets, rotary_angles, rotate, sinusoidal_positions
from .rope_scaling import RotaryScaling
from .scaled_dot_product import (
    additive_mask, attention, attention_weights, causal_mask, distances, padding_mask, scaled_scores,
    sliding_window_mask,
)  # fmt: skip

__all__ = [
    "RotaryScaling", "additive_mask", "alibi_bias", "attention", "attention_weights", "causal_mask", "distances",
    "flash_attention", "linear_attention", "merge_heads", "multi_head_attention", "padding_mask", "positive_features",
    "project", "relative_buckets", "rotary_angles", "rotate", "scaled_scores", "sinusoidal_positions",
    "sliding_window_mask", "split_heads",
]  # fmt: skip
