"""Every parameter once: its name, its shape and how it begins. Initialising, counting and renaming read this table."""

from __future__ import annotations  # NumPy loads its random numbers when they are used

import math
from dataclasses import dataclass

import numpy as np

from ..trees import tree_leaves, walk
from .config import Config


@dataclass(frozen=True)
class Parameter:
    """A row of the table: the kind of a parameter ("weight", "residual", "bias" or "gain") and its shape.

    >>> Parameter("weight", (2, 3)).size
    6
    """

    kind: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of entries."""
        return math.prod(self.shape)

    def initial(self, layers: int, rng: np.random.Generator | int) -> np.ndarray:
        """Fresh values: weights N(0, 0.02²), those into the residual stream N(0, 0.02²/2L), biases 0, gains 1.

        Source: Radford et al. 2018 (0.02), and 2019 (the √(2L)).
        """
        if self.kind in ("bias", "gain"):
            return np.full(self.shape, float(self.kind == "gain"))
        return 0.02 / math.sqrt(2 * layers if self.kind == "residual" else 1) * rng.standard_normal(self.shape)


def parameter_table(config: Config) -> dict:
    """The parameters of a model: nested dictionaries and lists, as the model takes them, of a `Parameter` each.

    >>> parameter_table(Config(vocabulary=10, width=8, layers=2, heads=2))["blocks"][0]["attention"]["query"]
    Parameter(kind='weight', shape=(8, 8))
    """
    c, D = config, config.width
    norm = {"gain": Parameter("gain", (D,))} | ({} if c.norm == "rms" else {"bias": Parameter("bias", (D,))})
    positions = {"learned": (c.context, D)} if c.t5 is None else {"relative": (c.t5.buckets, c.heads)}
    position = c.positions in positions and Parameter("weight", positions[c.positions])
    head = {
        "transform": Parameter("weight", (D, D)), "transform_bias": Parameter("bias", (D,)),
        "norm": norm, "bias": Parameter("bias", (c.vocabulary,)),
    }  # fmt: skip
    table = {
        "embedding": Parameter("weight", (c.vocabulary, D)),
        "positions": position,
        "segments": c.bert and c.bert.segments and Parameter("weight", (c.bert.segments, D)),
        "embedding_norm": c.bert and norm,
        "encoder": [_block(c, norm) for _ in range(c.encoder_layers)],
        "encoder_norm": c.encoder_layers and norm,
        "encoder_positions": c.encoder_layers and c.positions == "relative" and position,
        "blocks": [_block(c, norm, cross_attention=c.encoder_layers > 0) for _ in range(c.layers)],
        "final_norm": c.norm_order == "pre" and norm,
        "head": c.bert and c.bert.head and head,
        "unembedding": not c.tied and Parameter("weight", (D, c.vocabulary)),
    }
    return {name: part for name, part in table.items() if part}


def _block(c, norm, cross_attention=False):
    D, F, queries, keys = c.width, c.hidden, c.heads * c.head_width, c.kv_heads * c.head_width
    attention = _linear(c, query=(D, queries), key=(D, keys), value=(D, keys), output=(queries, D))
    network = _linear(c, **({"gate": (D, F)} if c.gated else {}), up=(D, F), down=(F, D))
    experts = {"router": Parameter("weight", (D, c.experts)), "experts": [network] * c.experts}
    return {
        "attention_norm": norm, "attention": attention,
        **({"cross_norm": norm, "cross_attention": attention} if cross_attention else {}),
        "feed_forward_norm": norm, "feed_forward": experts if c.experts else network,
    }  # fmt: skip


def _linear(c, **sizes):
    """Matrices (in, out) by name, and where the model has biases, one for each but the gate."""
    kinds = {"output": "residual", "down": "residual"}  # these write into the residual stream
    matrices = {name: Parameter(kinds.get(name, "weight"), size) for name, size in sizes.items()}
    biases = {f"{name}_bias": Parameter("bias", size[1:]) for name, size in sizes.items() if name != "gate"}
    return matrices | (biases if c.bias else {})


def parameters_by_part(config: Config) -> dict[str, int]:
    """Number of parameters by part, from the configuration alone; "total" adds them up.

        embedding V·D,   attention 4D² (less with shared keys),   feed-forward 8D² (F = 4D),   so about 12 L D² (12.14)

    A tied unembedding counts once.

    >>> from mathllm.transformer import gpt2_config
    >>> parameters_by_part(gpt2_config())["total"]
    124439808
    """
    parts = ("embedding", "positions", "segments", "attention", "feed_forward", "norms", "head", "unembedding")
    counts = dict.fromkeys(parts, 0)
    for path, parameter in walk(parameter_table(config)):
        counts[_part(path)] += parameter.size
    return counts | {"total": sum(counts.values())}


def _part(path):
    names = [name for name in path if isinstance(name, str)]
    if names[0] == "head":
        return "head"
    if any(name.endswith("_norm") for name in names):
        return "norms"
    return names[1 if len(names) > 1 else 0].removeprefix("cross_").removeprefix("encoder_")


def count_parameters(params: dict) -> int:
    """Number of parameters in nested dictionaries and lists of arrays, by counting.

    >>> count_parameters({"weight": np.ones((2, 3)), "blocks": [{"bias": np.ones(4)}]})
    10
    """
    return sum(int(np.size(leaf)) for leaf in tree_leaves(params))


def forward_flops(config: Config, length: int) -> int:
    """Floating-point operations of one forward pass over a sequence, matrix products only (2 per multiply-add).

        2·T·(weights that multiply) + 4·L·T²·H·K   (scores and their use; no saving by the causal mask) (12.15)

    Training costs three times as much: the backward pass is two products for each one forward.
    Raises: ValueError for a model with an encoder of its own, which reads a second sequence.

    >>> from mathllm.transformer import gpt2_config
    >>> f"{forward_flops(gpt2_config(), 1024):.3g}"
    '2.92e+11'
    """
    c = config
    if c.encoder_layers:
        raise ValueError("forward_flops() counts one sequence; a model with an encoder reads two")
    per_token = c.vocabulary * c.width  # the unembedding
    for path, parameter in walk(parameter_table(c)):
        active = "experts" not in path or path[path.index("experts") + 1] < c.experts_used
        if path[0] in ("blocks", "head") and len(parameter.shape) == 2 and active:
            per_token += parameter.size
    return 2 * length * per_token + 4 * c.layers * length * length * c.heads * c.head_width
