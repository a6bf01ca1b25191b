"""How many numbers does a model hold, and how many multiplications does a token cost?"""

import numpy as np

from ..gradient_descent import tree_leaves
from .config import Config


def parameter_count(config: Config) -> dict[str, int]:
    """Number of parameters by part, from the configuration alone; "total" adds them up.

        embedding V·D,   attention 4D² (less with shared keys),   feed-forward 8D² (F = 4D),   so about 12 L D² (12.9)

    A tied unembedding counts once.  Source: 001, §8.2.

    >>> from mathllm.transformer import gpt2_config
    >>> parameter_count(gpt2_config())["total"]
    124439808
    """
    c = config
    norm = c.width * (1 if c.norm == "rms" else 2)
    queries, keys = c.heads * c.head_width, c.kv_heads * c.head_width
    attention = c.width * (2 * queries + 2 * keys) + (queries + 2 * keys + c.width if c.bias else 0)
    network = c.width * c.hidden * (3 if c.gated else 2) + (c.hidden + c.width if c.bias else 0)
    feed_forward = c.experts * network + c.width * c.experts if c.experts else network
    relative = c.position_buckets * c.heads * (2 if c.encoder_layers else 1)
    positions = {"learned": c.context * c.width, "relative": relative}
    counts = {
        "embedding": c.vocabulary * c.width,
        "positions": positions.get(c.positions, 0),
        "segments": c.segments * c.width,
        "attention": c.layers * attention * (2 if c.encoder_layers else 1) + c.encoder_layers * attention,
        "feed_forward": (c.layers + c.encoder_layers) * feed_forward,
        "norms": norm * (c.layers * (3 if c.encoder_layers else 2) + 2 * c.encoder_layers + bool(c.encoder_layers)
                         + (c.norm_order == "pre") + c.embedding_norm),
        "head": c.width * c.width + c.width + norm + c.vocabulary if c.head_transform else 0,
        "unembedding": 0 if c.tied else c.vocabulary * c.width,
    }  # fmt: skip
    return counts | {"total": sum(counts.values())}


def count_parameters(params) -> int:
    """Number of parameters in nested dictionaries and lists of arrays, by counting.

    >>> count_parameters({"weight": np.ones((2, 3)), "blocks": [{"bias": np.ones(4)}]})
    10
    """
    return sum(int(np.size(leaf)) for leaf in tree_leaves(params))


def forward_flops(config: Config, length: int) -> int:
    """Floating-point operations of one forward pass over a sequence, matrix products only (2 per multiply-add).

        2·T·(weights that multiply) + 4·L·T²·H·K   (scores and their use; no saving by the causal mask) (12.10)

    Training costs three times as much: the backward pass is two products for each one forward.
    Raises: ValueError for a model with an encoder of its own, which reads a second sequence.
    Source: 001, §7.4 and 9.2.

    >>> from mathllm.transformer import gpt2_config
    >>> f"{forward_flops(gpt2_config(), 1024):.3g}"
    '2.92e+11'
    """
    c = config
    if c.encoder_layers:
        raise ValueError("forward_flops() counts one sequence; a model with an encoder reads two")
    queries, keys = c.heads * c.head_width, c.kv_heads * c.head_width
    network = c.width * c.hidden * (3 if c.gated else 2)
    if c.experts:
        network = c.experts_used * network + c.width * c.experts
    per_token = c.layers * (c.width * (2 * queries + 2 * keys) + network) + c.vocabulary * c.width
    per_token += c.width * c.width if c.head_transform else 0
    return 2 * length * per_token + 4 * c.layers * length * length * queries
