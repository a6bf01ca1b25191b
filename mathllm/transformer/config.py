"""The sizes and choices that distinguish one transformer from another, in one record."""

import math
from dataclasses import dataclass, replace
from typing import Any

from ..attention import RotaryScaling
from ..errors import one_of, within

_CHOICES = {
    "positions": ("learned", "rotary", "sinusoidal", "alibi", "relative", "none"),
    "norm": ("layer", "rms"),
    "norm_order": ("pre", "post"),
    "activation": ("gelu", "gelu_tanh", "relu", "silu"),
    "pairing": ("half", "adjacent"),
}


@dataclass(frozen=True)
class BertParts:
    """What BERT adds: embeddings of `segments`, a norm after the embeddings, and with `head` a layer before the logits.

    >>> BertParts().segments
    2
    """

    segments: int = 2
    head: bool = True


@dataclass(frozen=True)
class T5Parts:
    """What T5 changes: a bias for each bucket of distances, scores without 1/√K, and a factor on the last vectors.

    buckets, farthest: as `relative_buckets` takes them   output_scale: the factor

    >>> T5Parts().buckets
    32
    """

    buckets: int = 32
    farthest: int = 128
    output_scale: float = 1.0


@dataclass(frozen=True)
class Config:
    """The shape of a transformer and the choices inside it.

    Sizes, with their letters in shapes: `vocabulary` V, `width` D, `layers` L, `heads` H (h in chapter 12), `kv_heads`
    (H unless keys and values are shared), `head_width` K (d_k in chapter 12; D/H), `hidden` F (4D), `context` the
    longest sequence (a limit if `positions` are learned).

    Choices: `positions`; `norm` and its place (`norm_order`: "pre" before each sublayer, "post" after the residual
    sum); `activation`, `gated` (SwiGLU and its variants: activation(x W_gate) ⊙ x W_up); `bias`; `tied` (the
    unembedding is the embedding, transposed); `causal` (a decoder, which predicts the next token) or not (an encoder,
    which predicts masked ones); `experts`, of which `experts_used` are active for each token; `encoder_layers` for a
    model that reads a source text first; `rope_scaling`, see `RotaryScaling`, and `pairing`, see `rotate`; `bert` and
    `t5`, what only these have.

    Raises: ValueError for sizes that do not fit and for unknown choices.
    Source: Vaswani et al. 2017; Radford et al. 2019; Devlin et al. 2019; Raffel et al. 2020; Touvron et al. 2023.

    >>> Config(vocabulary=50257, width=768, layers=12, heads=12).head_width
    64
    """

    vocabulary: int
    width: int
    layers: int
    heads: int
    kv_heads: int | None = None
    head_width: int | None = None
    hidden: int | None = None
    context: int = 1024
    positions: str = "learned"
    rope_base: float = 10000.0
    rope_scaling: RotaryScaling | None = None
    pairing: str = "half"
    norm: str = "layer"
    norm_order: str = "pre"
    norm_epsilon: float = 1e-5
    activation: str = "gelu_tanh"
    gated: bool = False
    bias: bool = True
    tied: bool = True
    causal: bool = True
    experts: int = 0
    experts_used: int = 2
    encoder_layers: int = 0
    bert: BertParts | None = None
    t5: T5Parts | None = None

    def __post_init__(self):
        rest = self.width % max(self.heads, 1) if self.head_width is None else 0
        defaults = {"kv_heads": self.heads, "head_width": self.width // max(self.heads, 1), "hidden": 4 * self.width}
        for name, value in defaults.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        for name, choices in _CHOICES.items():
            one_of("Config", choices, **{name: getattr(self, name)})
        sizes = ("vocabulary", "width", "layers", "heads", "kv_heads", "head_width", "hidden", "context")
        within("Config", "whole [1, ∞)", **{name: getattr(self, name) for name in sizes})
        within("Config", "whole [0, ∞)", experts=self.experts, encoder_layers=self.encoder_layers)
        within("Config", "[0, ∞)", norm_epsilon=self.norm_epsilon)
        if self.rope_scaling is not None and self.rope_scaling.trained is None:
            object.__setattr__(self, "rope_scaling", replace(self.rope_scaling, trained=self.context))
        if self.experts:
            within("Config", f"whole [1, {self.experts}]", experts_used=self.experts_used)
        uneven, odd = self.heads % self.kv_heads, self.positions == "rotary" and self.head_width % 2
        misfits = {
            f"a width of {self.width} is no multiple of {self.heads} heads: give it a head_width": rest,
            f"{self.heads} heads cannot share {self.kv_heads} kv_heads evenly": uneven,
            f"rotary positions need an even head_width, got {self.head_width}": odd,
            "a model with an encoder of its own has a causal decoder": self.encoder_layers and not self.causal,
            "relative positions and t5=T5Parts() belong together": (self.positions == "relative") != bool(self.t5),
        }
        if found := [message for message, wrong in misfits.items() if wrong]:
            raise ValueError(f"Config: {found[0]}")

    @property
    def score_scale(self) -> float:
        """What scores are multiplied by before the softmax: 1/√K (T5: 1), times the factor of a scaled context."""
        factor = self.rope_scaling.score_factor if self.rope_scaling else 1.0
        return factor / (1 if self.t5 else math.sqrt(self.head_width))

    def outgrown_by(self, tokens: int) -> bool:
        """Whether a text of so many tokens changes the rotation of all keys: it is then read without a cache."""
        limit = self.rope_scaling.limit if self.rope_scaling else None
        return limit is not None and tokens > limit


def gpt2_config(**sizes: Any) -> Config:
    """The choices of GPT-2: learned positions, pre-norm, GELU (tanh form), biases, tied. Sizes of GPT-2 small.

    >>> gpt2_config().layers
    12
    """
    return Config(**{"vocabulary": 50257, "width": 768, "layers": 12, "heads": 12} | sizes)


def llama_config(**sizes: Any) -> Config:
    """The choices of LLaMA: rotary positions, RMS norm, SwiGLU, no biases, untied. Sizes of LLaMA-7B.

    >>> llama_config().hidden
    11008
    """
    choices = {
        "positions": "rotary", "norm": "rms", "norm_epsilon": 1e-6, "activation": "silu", "gated": True,
        "bias": False, "tied": False, "context": 2048,
    }  # fmt: skip
    return Config(**{"vocabulary": 32000, "width": 4096, "layers": 32, "heads": 32, "hidden": 11008} | choices | sizes)


def mixtral_config(**sizes: Any) -> Config:
    """The choices of Mixtral: LLaMA with grouped queries and eight experts, two of them active. Sizes of Mixtral 8x7B.

    >>> mixtral_config().experts
    8
    """
    choices = {"kv_heads": 8, "hidden": 14336, "experts": 8, "experts_used": 2, "rope_base": 1e6, "norm_epsilon": 1e-5}
    return llama_config(**choices | {"context": 32768} | sizes)


def bert_config(**sizes: Any) -> Config:
    """The choices of BERT: an encoder with post-norm, exact GELU, segments and a layer in the head. Sizes of BERT-base.

    >>> bert_config().causal
    False
    """
    choices = {
        "norm_order": "post", "norm_epsilon": 1e-12, "activation": "gelu", "causal": False, "context": 512,
        "bert": BertParts(),
    }  # fmt: skip
    return Config(**{"vocabulary": 30522, "width": 768, "layers": 12, "heads": 12} | choices | sizes)


def t5_config(**sizes: Any) -> Config:
    """The choices of T5: an encoder and a decoder, relative positions, RMS norm, ReLU, no biases. Sizes of T5-small.

    >>> t5_config().encoder_layers
    6
    """
    scale = sizes.get("width", 512) ** -0.5 if sizes.get("tied", True) else 1.0
    choices = {
        "positions": "relative", "norm": "rms", "norm_epsilon": 1e-6, "activation": "relu", "bias": False,
        "context": 512, "head_width": 64, "hidden": 2048, "encoder_layers": sizes.get("layers", 6),
        "t5": T5Parts(output_scale=scale),
    }  # fmt: skip
    return Config(**{"vocabulary": 32128, "width": 512, "layers": 6, "heads": 8} | choices | sizes)
