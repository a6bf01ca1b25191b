"""Everything that tells one transformer from another, in one record."""

import math
from dataclasses import dataclass, replace

from ..attention import RotaryScaling
from ..errors import suggest

_CHOICES = {
    "positions": ("learned", "rotary", "sinusoidal", "alibi", "relative", "none"),
    "norm": ("layer", "rms"),
    "norm_order": ("pre", "post"),
    "activation": ("gelu", "gelu_tanh", "relu", "silu"),
    "pairing": ("half", "adjacent"),
}


@dataclass(frozen=True)
class Config:
    """The shape of a transformer and the choices inside it.

    Sizes, with the letters of the book: `vocabulary` V, `width` D, `layers` L, `heads` H, `kv_heads` (H unless keys
    and values are shared), `head_width` K (D/H), `hidden` F (4D), `context` the longest sequence.

    Choices: `positions`; `norm` and where it stands (`norm_order`: "pre" before each sublayer, "post" after the
    residual sum); `activation`, `gated` (SwiGLU and its kin: activation(x W_gate) ∘ x W_up); `bias`; `tied` (the
    unembedding is the embedding, transposed); `causal` (a decoder, which predicts the next token) or not (an encoder,
    which fills in masked ones); `experts`, of which `experts_used` work on each token; `encoder_layers` for a model
    that reads a source text first; `rope_scaling` with `rope_factor` as `rotary_angles` takes them (a name, or a
    `RotaryScaling` with settings of its own). `segments`, `embedding_norm` and `head_transform` are what BERT adds;
    T5 has "relative" positions, a bias learned for each of `position_buckets` distances up to `farthest_position` (see
    `relative_buckets`), scores without 1/√K (`scaled_scores`), and an `output_scale` on the last vectors.

    Raises: ValueError for sizes that do not fit and for unknown choices.
    Source: 001, §8; 004, BERT against GPT, the knowledge stack.

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
    rope_scaling: str | RotaryScaling | None = None
    rope_factor: float = 1.0
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
    segments: int = 0
    embedding_norm: bool = False
    head_transform: bool = False
    position_buckets: int = 32
    farthest_position: int = 128
    scaled_scores: bool = True
    output_scale: float = 1.0

    @property
    def score_scale(self) -> float:
        """What scores are multiplied by before the softmax: 1/√K (if at all), sharpened for a stretched context.

            (1 + 0.1 ln factor)² / √K     "yarn"
            (1 + ln factor / ln trained) / √K     "longrope"

        Source: Peng et al. 2023, eq. 22; Ding et al. 2024, §4.
        """
        sharper, scaling = 1.0, self.rope_scaling
        kind = getattr(scaling, "kind", scaling)
        if kind == "yarn":
            sharper = 1 + 0.1 * math.log(self.rope_factor)
        if kind == "longrope":
            sharper = math.sqrt(1 + math.log(self.rope_factor) / math.log(scaling.trained or self.context))
        sharper = getattr(scaling, "sharpness", None) or sharper
        return sharper**2 / (math.sqrt(self.head_width) if self.scaled_scores else 1)

    @property
    def rope_limit(self) -> int | None:
        """The number of tokens beyond which keys turn anew, all of them: "dynamic" and "longrope" have one."""
        scaling = self.rope_scaling
        if getattr(scaling, "kind", None) == "longrope" and scaling.short != scaling.long:
            return scaling.trained or self.context
        return self.context if scaling == "dynamic" else None

    def outgrown_by(self, tokens: int) -> bool:
        """Whether a text of so many tokens is beyond the `rope_limit`: it is then read without a cache."""
        return self.rope_limit is not None and tokens > self.rope_limit

    def _usual(self, scaling):
        """The name alone of a scaling whose settings are the usual ones: two equal configurations compare as equal."""
        scaling = RotaryScaling(scaling) if isinstance(scaling, str) else scaling
        if scaling.trained == self.context:
            scaling = replace(scaling, trained=None)
        return scaling.kind if scaling.kind != "longrope" and scaling == RotaryScaling(scaling.kind) else scaling

    def __post_init__(self):
        defaults = {"kv_heads": self.heads, "head_width": self.width // max(self.heads, 1), "hidden": 4 * self.width}
        for name, value in defaults.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if value not in choices:
                known = [choice for choice in choices if choice]
                hint = suggest(str(value), known) or f"; choices are {', '.join(known)}"
                raise ValueError(f"Config: unknown {name} {value!r}{hint}")
        if self.rope_scaling is not None:
            object.__setattr__(self, "rope_scaling", self._usual(self.rope_scaling))
        for name in ("vocabulary", "width", "layers", "heads", "kv_heads", "head_width", "hidden", "context"):
            if getattr(self, name) < 1:
                raise ValueError(f"Config: {name} must be at least 1, got {getattr(self, name)}")
        if self.heads % self.kv_heads:
            raise ValueError(f"Config: {self.heads} heads cannot share {self.kv_heads} kv_heads evenly")
        if self.experts and not 1 <= self.experts_used <= self.experts:
            raise ValueError(f"Config: experts_used must be 1 … {self.experts}, got {self.experts_used}")
        if self.positions == "rotary" and self.head_width % 2:
            raise ValueError(f"Config: rotary positions need an even head_width, got {self.head_width}")
        if self.encoder_layers and not self.causal:
            raise ValueError("Config: a model with an encoder of its own has a causal decoder")


def gpt2_config(**sizes) -> Config:
    """The choices of GPT-2: learned positions, pre-norm, GELU (tanh form), biases, tied. Sizes of GPT-2 small.

    >>> gpt2_config().layers
    12
    """
    return Config(**{"vocabulary": 50257, "width": 768, "layers": 12, "heads": 12} | sizes)


def llama_config(**sizes) -> Config:
    """The choices of LLaMA: rotary positions, RMS norm, SwiGLU, no biases, untied. Sizes of LLaMA-7B.

    >>> llama_config().hidden
    11008
    """
    choices = {
        "positions": "rotary", "norm": "rms", "norm_epsilon": 1e-6, "activation": "silu", "gated": True,
        "bias": False, "tied": False, "context": 2048,
    }  # fmt: skip
    return Config(**{"vocabulary": 32000, "width": 4096, "layers": 32, "heads": 32, "hidden": 11008} | choices | sizes)


def mixtral_config(**sizes) -> Config:
    """The choices of Mixtral: LLaMA with grouped queries and eight experts, two at work. Sizes of Mixtral 8x7B.

    >>> mixtral_config().experts
    8
    """
    choices = {"kv_heads": 8, "hidden": 14336, "experts": 8, "experts_used": 2, "rope_base": 1e6, "norm_epsilon": 1e-5}
    return llama_config(**choices | {"context": 32768} | sizes)


def bert_config(**sizes) -> Config:
    """The choices of BERT: an encoder with post-norm, exact GELU, segments and a transforming head. Sizes of BERT-base.

    >>> bert_config().causal
    False
    """
    choices = {
        "norm_order": "post", "norm_epsilon": 1e-12, "activation": "gelu", "causal": False, "context": 512,
        "segments": 2, "embedding_norm": True, "head_transform": True,
    }  # fmt: skip
    return Config(**{"vocabulary": 30522, "width": 768, "layers": 12, "heads": 12} | choices | sizes)


def t5_config(**sizes) -> Config:
    """The choices of T5: an encoder and a decoder, relative positions, RMS norm, ReLU, no biases. Sizes of T5-small.

    >>> t5_config().encoder_layers
    6
    """
    choices = {
        "positions": "relative", "scaled_scores": False, "norm": "rms", "norm_epsilon": 1e-6, "activation": "relu",
        "bias": False, "context": 512, "head_width": 64, "hidden": 2048, "encoder_layers": sizes.get("layers", 6),
    }  # fmt: skip
    if sizes.get("tied", True):
        choices["output_scale"] = sizes.get("width", 512) ** -0.5
    return Config(**{"vocabulary": 32128, "width": 512, "layers": 6, "heads": 8} | choices | sizes)
