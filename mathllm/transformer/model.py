"""The whole model: embeddings, L blocks, an unembedding; one function for training, reading and inference."""

import numpy as np

from ..attention import (
    alibi_bias,
    causal_mask,
    multi_head_attention,
    padding_mask,
    rotary_angles,
    sinusoidal_positions,
)
from ..cross_entropy import cross_entropy
from ..errors import ShapeError
from ..vectors import embedding
from .config import Config
from .feed_forward import _ACTIVATIONS, feed_forward, mixture_of_experts
from .norms import layer_norm, rms_norm


class Transformer:
    """A transformer of the given shape. It holds no weights: `init` makes them, and every call takes them.

        x₀ = E[tokens] + positions,      xₗ = blockₗ(xₗ₋₁),      logits = norm(x_L) Eᵀ (12.5)

    config: see `Config`. Parameters are nested dictionaries, `params["blocks"][0]["attention"]["query"]`.
    Source: 001, §8; 004, trace; Vaswani et al. 2017.

    >>> model = Transformer(Config(vocabulary=10, width=8, layers=2, heads=2))
    >>> params = model.init(np.random.default_rng(0))
    >>> model(params, np.array([[1, 2, 3]])).shape
    (1, 3, 10)
    """

    def __init__(self, config: Config):
        self.config = config

    # ------------------------------------------------------------------------------------------------------ weights

    def init(self, rng: np.random.Generator, dtype=np.float64) -> dict:
        """Fresh parameters: weights N(0, 0.02²), those that write into the residual stream smaller by √(2L).

        Biases start at zero, gains at one.  Source: Radford et al. 2019, §2.3.
        """
        c = self.config

        def normal(*shape, scale=0.02):
            return (scale * rng.standard_normal(shape)).astype(dtype)

        params = {"embedding": normal(c.vocabulary, c.width)}
        if c.positions == "learned":
            params["positions"] = normal(c.context, c.width)
        if c.segments:
            params["segments"] = normal(c.segments, c.width)
        if c.embedding_norm:
            params["embedding_norm"] = self._init_norm(dtype)
        if c.encoder_layers:
            params["encoder"] = [self._init_block(normal, dtype) for _ in range(c.encoder_layers)]
            params["encoder_norm"] = self._init_norm(dtype)
        params["blocks"] = [self._init_block(normal, dtype, cross=bool(c.encoder_layers)) for _ in range(c.layers)]
        if c.norm_order == "pre":
            params["final_norm"] = self._init_norm(dtype)
        if c.head_transform:
            params["head"] = {
                "transform": normal(c.width, c.width), "transform_bias": np.zeros(c.width, dtype),
                "norm": self._init_norm(dtype), "bias": np.zeros(c.vocabulary, dtype),
            }  # fmt: skip
        if not c.tied:
            params["unembedding"] = normal(c.width, c.vocabulary)
        return params

    def _init_norm(self, dtype):
        gain = {"gain": np.ones(self.config.width, dtype)}
        return gain if self.config.norm == "rms" else gain | {"bias": np.zeros(self.config.width, dtype)}

    def _init_block(self, normal, dtype, cross=False):
        block = {"attention_norm": self._init_norm(dtype), "attention": self._init_attention(normal, dtype)}
        if cross:
            block |= {"cross_norm": self._init_norm(dtype), "cross_attention": self._init_attention(normal, dtype)}
        return block | {
            "feed_forward_norm": self._init_norm(dtype),
            "feed_forward": self._init_feed_forward(normal, dtype),
        }

    def _residual_scale(self):
        return 0.02 / np.sqrt(2 * self.config.layers)

    def _init_attention(self, normal, dtype):
        c = self.config
        sizes = {"query": c.heads * c.head_width, "key": c.kv_heads * c.head_width, "value": c.kv_heads * c.head_width}
        attention = {name: normal(c.width, size) for name, size in sizes.items()}
        attention["output"] = normal(c.heads * c.head_width, c.width, scale=self._residual_scale())
        if c.bias:
            sizes["output"] = c.width
            attention |= {f"{name}_bias": np.zeros(size, dtype) for name, size in sizes.items()}
        return attention

    def _init_feed_forward(self, normal, dtype):
        c = self.config

        def network():
            params = {"gate": normal(c.width, c.hidden)} if c.gated else {}
            params |= {"up": normal(c.width, c.hidden), "down": normal(c.hidden, c.width, scale=self._residual_scale())}
            biases = {"up_bias": np.zeros(c.hidden, dtype), "down_bias": np.zeros(c.width, dtype)} if c.bias else {}
            return params | biases

        if not c.experts:
            return network()
        return {"router": normal(c.width, c.experts), "experts": [network() for _ in range(c.experts)]}

    # ------------------------------------------------------------------------------------------------------ forward

    def __call__(
        self, params, tokens, attention_mask=None, *, segments=None, source=None, source_mask=None, record=None
    ):
        """Logits for every position.

        tokens: (B, T) int   attention_mask: (B, T), 1 for a token and 0 for padding   segments: (B, T) int
        source, source_mask: (B, S), for a model with an encoder   ->   logits: (B, T, V)

        `record`, an empty dictionary, is filled with every intermediate under its name: "embeddings",
        "blocks.0.attention.weights" (B, H, T, T), "blocks.0.attention.output", "blocks.0.feed_forward.output",
        "blocks.0.output", "final_norm", "logits". Without it nothing is kept.

        Raises: ShapeError for tokens that are not (B, T), or longer than the context; ValueError for ids outside the
        vocabulary.
        """
        tokens = self._checked(tokens)
        memory, memory_mask = None, None
        if self.config.encoder_layers:
            if source is None:
                raise ValueError("this model has an encoder: give it source=tokens of the text to read")
            memory, memory_mask = self._encode(params, self._checked(source), source_mask)
        x = self._embed(params, tokens, segments)
        keep = _Recorder(record)
        keep("embeddings", x)
        x = self._blocks(params["blocks"], x, attention_mask, self.config.causal, keep, memory, memory_mask)
        if "final_norm" in params:
            x = self._norm(x, params["final_norm"])
        keep("final_norm", x)
        logits = self._unembed(params, x)
        keep("logits", logits)
        return logits

    def loss(self, params, tokens, labels, attention_mask=None, **options):
        """Mean cross-entropy in nats, with labels as transformers takes them.

        A decoder is given labels = tokens and shifts them itself: position t predicts label t + 1. An encoder, and a
        decoder with a source, predict the label at the same place. Labels of −100 do not count.

        tokens, labels: (B, T) int   ->   one number
        """
        logits = self(params, tokens, attention_mask, **options)
        labels = np.asarray(labels)
        if self.config.causal and not self.config.encoder_layers:
            logits, labels = logits[:, :-1], labels[:, 1:]
        return cross_entropy(logits, labels)

    def _checked(self, tokens):
        tokens = np.asarray(tokens)
        if tokens.ndim != 2 or tokens.shape[1] == 0:
            raise ShapeError(f"the model needs tokens of shape (B, T) with T ≥ 1, got {tokens.shape}")
        if self.config.positions == "learned" and tokens.shape[1] > self.config.context:
            raise ShapeError(f"the model's context is {self.config.context} tokens, got {tokens.shape[1]}")
        return tokens

    def _embed(self, params, tokens, segments):
        c = self.config
        x = embedding(params["embedding"], tokens)  # (B, T, D)
        length = tokens.shape[1]
        if c.positions == "learned":
            x = x + params["positions"][:length]
        elif c.positions == "sinusoidal":
            x = x + sinusoidal_positions(length, c.width).astype(x.dtype)
        if c.segments:
            x = x + embedding(params["segments"], np.zeros_like(tokens) if segments is None else np.asarray(segments))
        return self._norm(x, params["embedding_norm"]) if c.embedding_norm else x

    def _encode(self, params, source, source_mask):
        x = self._blocks(params["encoder"], self._embed(params, source, None), source_mask, False, _Recorder(None))
        mask = None if source_mask is None else padding_mask(source_mask)
        return self._norm(x, params["encoder_norm"]), mask

    def _blocks(self, blocks, x, attention_mask, causal, keep, memory=None, memory_mask=None):
        c, length = self.config, x.shape[1]
        mask = causal_mask(length) if causal else None
        if attention_mask is not None:
            seen = padding_mask(attention_mask)
            mask = seen if mask is None else mask & seen
        options = {"heads": c.heads, "kv_heads": c.kv_heads, "mask": mask}
        if c.positions == "rotary":
            scaling = {"scaling": c.rope_scaling, "factor": c.rope_factor, "trained": c.context}
            options |= {"angles": rotary_angles(np.arange(length), c.head_width, c.rope_base, **scaling)}
            options |= {"pairing": c.pairing}
        if c.positions == "alibi":
            options |= {"bias": alibi_bias(c.heads, length)}
        cross = {"heads": c.heads, "kv_heads": c.kv_heads, "mask": memory_mask, "context": memory}
        for number, block in enumerate(blocks):
            x = self._block(x, block, options, cross, keep.under(f"blocks.{number}."))
        return x

    def _block(self, x, block, options, cross, keep):
        """One block: tokens talk (attention), then each thinks (feed-forward), each time added to what was there."""
        c = self.config

        def attend(h):
            record = keep.under("attention.") if keep.record is not None else None
            return multi_head_attention(h, block["attention"], record=record, **options)

        def attend_to_source(h):
            return multi_head_attention(h, block["cross_attention"], **cross)

        def think(h):
            if c.experts:
                return mixture_of_experts(h, block["feed_forward"], used=c.experts_used, activation=c.activation)
            return feed_forward(h, block["feed_forward"], activation=c.activation)

        x = self._sublayer(x, block["attention_norm"], attend, keep, "attention")
        if "cross_attention" in block:
            x = self._sublayer(x, block["cross_norm"], attend_to_source, keep, "cross_attention")
        x = self._sublayer(x, block["feed_forward_norm"], think, keep, "feed_forward")
        keep("output", x)
        return x

    def _sublayer(self, x, norm, function, keep, name):
        """x + f(norm(x)) for pre-norm, norm(x + f(x)) for post-norm (12.8)."""
        before = self.config.norm_order == "pre"
        written = function(self._norm(x, norm) if before else x)
        keep(f"{name}.output", written)
        return x + written if before else self._norm(x + written, norm)

    def _norm(self, x, params):
        epsilon = self.config.norm_epsilon
        if self.config.norm == "rms":
            return rms_norm(x, params["gain"], epsilon=epsilon)
        return layer_norm(x, params["gain"], params["bias"], epsilon=epsilon)

    def _unembed(self, params, x):
        if "head" in params:
            head = params["head"]
            x = _ACTIVATIONS[self.config.activation](x @ head["transform"] + head["transform_bias"])
            x = self._norm(x, head["norm"])
        logits = x @ (params["embedding"].T if self.config.tied else params["unembedding"])
        return logits + params["head"]["bias"] if "head" in params else logits


class _Recorder:
    """Keeps intermediates under their names, or does nothing."""

    def __init__(self, record, prefix=""):
        self.record, self.prefix = record, prefix

    def __call__(self, name, value):
        if self.record is not None:
            self.record[self.prefix + name] = getattr(value, "value", value)

    def under(self, prefix):
        return _Recorder(self.record, self.prefix + prefix)
