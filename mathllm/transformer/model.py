"""The whole model: embeddings, L blocks, an unembedding; one function for training, reading and inference."""

from __future__ import annotations  # NumPy loads its random numbers when they are used

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..attention import (
    alibi_bias,
    causal_mask,
    multi_head_attention,
    padding_mask,
    relative_buckets,
    rotary_angles,
    rotate,
    sinusoidal_positions,
)
from ..autodiff import Array, ArrayLike, Tensor
from ..cross_entropy import IGNORED, cross_entropy
from ..errors import ShapeError
from ..matrices import linear
from ..trees import rebuild, walk
from ..vectors import embedding
from .config import Config
from .feed_forward import ACTIVATIONS, feed_forward, mixture_of_experts
from .norms import layer_norm, rms_norm
from .parameters import parameter_table


def record_to(record: dict) -> Callable:
    """A tap that stores every intermediate of a run: `model(params, tokens, tap=record_to(record := {}))`.

    >>> tap = record_to(record := {})
    >>> tap("embeddings", np.ones(2)) is record["embeddings"]
    True
    """

    def tap(name, value):
        record[name] = value.value if isinstance(value, Tensor) else value
        return value

    return tap


class Transformer:
    """A transformer of the given shape. It holds no weights: `init` makes them, and every call takes them.

        x₀ = E[tokens] + positions,      xₗ = blockₗ(xₗ₋₁),      logits = norm(x_L) Eᵀ (12.7)

    config: see `Config`. Parameters are nested dictionaries, `params["blocks"][0]["attention"]["query"]`.
    Source: Vaswani et al. 2017.

    >>> model = Transformer(Config(vocabulary=10, width=8, layers=2, heads=2))
    >>> params = model.init(np.random.default_rng(0))
    >>> model(params, np.array([[1, 2, 3]])).shape
    (1, 3, 10)
    """

    def __init__(self, config: Config):
        self.config = config

    def init(self, rng: np.random.Generator, dtype: type = np.float64) -> dict:
        """Fresh parameters, each as its row of `parameter_table` says."""
        table = parameter_table(self.config)
        fresh = (parameter.initial(rng, self.config.layers).astype(dtype) for _, parameter in walk(table))
        return rebuild(table, fresh)

    def __call__(
        self, params: dict, tokens: ArrayLike, attention_mask: ArrayLike | None = None, *,
        tap: Callable | None = None, **options: Any,
    ) -> Array:  # fmt: skip
        """Logits for every position.

        tokens: (B, T) int   attention_mask: (B, T), 1 for a token and 0 for padding   ->   logits: (B, T, V)
        options: segments (B, T) int; source and source_mask, (B, S), for a model with an encoder; cache, a `KVCache` of
        chapter 14 with the keys and values of the tokens of earlier calls: tokens and attention_mask are then those
        that come next, and the source need not be read again

        `tap(name, value)` sees every intermediate and returns what is used in its place: "embeddings",
        "blocks.0.attention.weights" (B, H, T, T), "blocks.0.attention.output", "blocks.0.feed_forward.hidden",
        "blocks.0.feed_forward.output", "blocks.0.output", "final_norm", "logits", and so on; those of an encoder begin
        with "encoder.", as in "encoder.0.output".

        Padding may stand on either side: a token's position is the number of tokens before it that are no padding.

        Raises: ShapeError for tokens that are not (B, T), or longer than the context; ValueError for ids outside the
        vocabulary, and for a cache with a model that is not causal.
        """
        logits = self.unembed(params, self.hidden(params, tokens, attention_mask, tap=tap, **options))
        return logits if tap is None else tap("logits", logits)

    def hidden(
        self, params: dict, tokens: ArrayLike, attention_mask: ArrayLike | None = None, *,
        segments: ArrayLike | None = None, source: ArrayLike | None = None, source_mask: ArrayLike | None = None,
        cache: Any = None, tap: Callable | None = None,
    ) -> Array:  # fmt: skip
        """The last vector of every position, from which the logits are computed: (B, T, D). Takes what a call takes."""
        tap = _checked_tap(tap)
        tokens = _checked_tokens(tokens)
        encoded = None if cache is None else cache.source
        if self.config.encoder_layers and encoded is None:
            encoded = self.encode(params, source, source_mask, tap)
        past = np.zeros((1, 1), int) if cache is None else cache.counts[:, None]
        x = self.embed(params, tokens, past + self._positions(tokens, attention_mask), segments)
        start = 0 if cache is None else cache.length
        if cache is None:
            mask = self._mask(tokens, attention_mask)
        else:
            mask = cache.advance(tokens.shape, attention_mask)
            cache.source = encoded
        bias = self._bias(params.get("positions"), tokens.shape[1], tokens.shape[1] if cache is None else cache.visible)
        x, attention = tap("embeddings", x), {"mask": mask, "bias": bias, "encoded": encoded}
        x = self._blocks(params["blocks"], x, start, "blocks", tap, cache=cache, **attention)
        return tap("final_norm", self.norm(x, params["final_norm"]) if "final_norm" in params else x)

    def encode(self, params: dict, source: ArrayLike, source_mask: ArrayLike | None, tap: Callable) -> tuple:
        """What the decoder attends to of a source text (B, S): its last vectors (B, S, D), and its padding mask."""
        if source is None:
            raise ValueError("this model has an encoder: give it source=tokens of the text to read")
        source = _checked_tokens(source)
        mask = None if source_mask is None else padding_mask(source_mask)
        bias = self._bias(params.get("encoder_positions"), source.shape[1], source.shape[1], causal=False)
        x = tap("encoder.embeddings", self.embed(params, source, self._positions(source, source_mask)))
        x = self._blocks(params["encoder"], x, 0, "encoder", tap, mask=mask, bias=bias)
        return tap("encoder.final_norm", self.norm(x, params["encoder_norm"])), mask

    def embed(
        self, params: dict, tokens: np.ndarray, positions: np.ndarray, segments: ArrayLike | None = None
    ) -> Array:
        """The vectors (B, T, D) that the first block reads, from tokens (B, T) and positions (1 or B, T)."""
        c, x = self.config, embedding(params["embedding"], tokens)
        if c.positions == "learned":
            if positions.max(initial=0) >= c.context:
                raise ShapeError(f"the model's context is {c.context} tokens, got {positions.max() + 1}")
            x = x + embedding(params["positions"], positions)
        elif c.positions == "sinusoidal":
            x = x + sinusoidal_positions(positions.max(initial=0) + 1, c.width).astype(x.dtype)[positions]
        if "segments" in params:
            x = x + embedding(params["segments"], np.zeros_like(tokens) if segments is None else segments)
        return self.norm(x, params["embedding_norm"]) if "embedding_norm" in params else x

    def block(
        self, x: Array, block: dict, *, tap: Callable, mask: np.ndarray | None = None, bias: Array | None = None,
        rotation: Callable | None = None, cache: Callable | None = None, encoded: tuple | None = None,
    ) -> Array:  # fmt: skip
        """One block: attention between the tokens, then a network for each token, each added to the residual stream.

            x ← x + attention(norm(x)),      x ← x + network(norm(x))
        """
        c = self.config
        heads = {"heads": c.heads, "kv_heads": c.kv_heads, "scale": c.score_scale}

        def attend(h):
            here = {"mask": mask, "bias": bias, "rotation": rotation, "cache": cache, "tap": under(tap, "attention")}
            return multi_head_attention(h, block["attention"], **heads, **here)

        def attend_to_source(h):
            there = {"context": encoded[0], "mask": encoded[1], "tap": under(tap, "cross_attention")}
            return multi_head_attention(h, block["cross_attention"], **heads, **there)

        def network(h):
            if c.experts:
                options = {"used": c.experts_used, "activation": c.activation, "tap": under(tap, "feed_forward")}
                return mixture_of_experts(h, block["feed_forward"], **options)
            return feed_forward(h, block["feed_forward"], activation=c.activation, tap=under(tap, "feed_forward"))

        x = self.sublayer(x, attend, block["attention_norm"], under(tap, "attention"))
        if "cross_attention" in block:
            x = self.sublayer(x, attend_to_source, block["cross_norm"], under(tap, "cross_attention"))
        x = self.sublayer(x, network, block["feed_forward_norm"], under(tap, "feed_forward"))
        return tap("output", x)

    def sublayer(self, x: Array, function: Callable, norm: dict, tap: Callable) -> Array:
        """x + f(norm(x)) for pre-norm, norm(x + f(x)) for post-norm (12.5)."""
        if self.config.norm_order == "pre":
            return x + tap("output", function(self.norm(x, norm)))
        return self.norm(x + tap("output", function(x)), norm)

    def norm(self, x: Array, params: dict) -> Array:
        """The norm of this model: RMS norm or layer norm."""
        if self.config.norm == "rms":
            return rms_norm(x, params["gain"], epsilon=self.config.norm_epsilon)
        return layer_norm(x, params["gain"], params["bias"], epsilon=self.config.norm_epsilon)

    def unembed(self, params: dict, x: Array) -> Array:
        """Logits (..., V) from the last vectors (..., D)."""
        if self.config.t5:
            x = x * self.config.t5.output_scale
        if "head" in params:
            head = params["head"]
            x = ACTIVATIONS[self.config.activation](linear(x, head["transform"], head["transform_bias"]))
            x = self.norm(x, head["norm"])
        logits = linear(x, params["embedding"].T if self.config.tied else params["unembedding"])
        return logits + params["head"]["bias"] if "head" in params else logits

    def last_logits(
        self, params: dict, tokens: ArrayLike, attention_mask: ArrayLike | None = None,
        *, count: int = 1, **options: Any,
    ) -> Array:  # fmt: skip
        """Logits after the last `count` tokens, (B, count, V): only these are multiplied by the unembedding."""
        return self.unembed(params, self.hidden(params, tokens, attention_mask, **options)[:, -count:])

    def loss(
        self, params: dict, tokens: ArrayLike, labels: ArrayLike, attention_mask: ArrayLike | None = None,
        **options: Any,
    ) -> Array:  # fmt: skip
        """Mean cross-entropy in nats, with labels as transformers takes them.

        A decoder is given labels = tokens and shifts them itself: position t predicts label t + 1. An encoder, and a
        decoder with a source, predict the label at the same place. Labels of −100 do not count.

        tokens, labels: (B, T) int   ->   one number
        """
        labels = _checked_tokens(labels)
        labels = labels.astype(np.int64) if labels.dtype.kind == "u" else labels  # −100 has a sign
        if self.config.causal and not self.config.encoder_layers:
            labels = np.concatenate([labels[:, 1:], np.full_like(labels[:, :1], IGNORED)], axis=1)
        return self.next_token_loss(params, tokens, labels, attention_mask, **options)

    def next_token_loss(
        self, params: dict, tokens: ArrayLike, targets: ArrayLike, attention_mask: ArrayLike | None = None,
        **options: Any,
    ) -> Array:  # fmt: skip
        """Mean cross-entropy in nats, where the targets stand in the places of the tokens they follow.

        tokens, targets: (B, T) int, as of a batch of next_token_pairs(); targets of −100 do not count   ->   one number

        >>> from mathllm.transformer import llama_config
        >>> model = Transformer(llama_config(vocabulary=10, width=8, layers=2, heads=2, hidden=16))
        >>> params = model.init(np.random.default_rng(0))
        >>> round(float(model.next_token_loss(params, [[1, 2, 3]], [[2, 3, 4]])), 1)  # ln 10
        2.3
        """
        return cross_entropy(self(params, tokens, attention_mask, **options), targets)

    def _blocks(self, blocks, x, start, name, tap, cache=None, **attention):
        """All blocks of a stack, the first of whose tokens stands at the position `start`."""
        c = self.config
        if c.positions == "rotary":
            angles = rotary_angles(start + np.arange(x.shape[1]), c.head_width, c.rope_base, c.rope_scaling)
            attention["rotation"] = functools.partial(rotate, angles=angles, pairing=c.pairing)
        for number, block in enumerate(blocks):
            layer = None if cache is None else cache.layer(number)
            x = self.block(x, block, cache=layer, tap=under(tap, f"{name}.{number}"), **attention)
        return x

    def _mask(self, tokens, attention_mask):
        """Which tokens may attend to which, where nothing is cached."""
        causal = causal_mask(tokens.shape[1]) if self.config.causal else None
        if attention_mask is None:
            return causal
        return padding_mask(attention_mask) if causal is None else causal & padding_mask(attention_mask)

    def _positions(self, tokens, attention_mask):
        """The position of each new token in its text, (1 or B, T): the tokens before it that are no padding."""
        if attention_mask is None:
            return np.arange(tokens.shape[1])[None]
        marks = padding_mask(attention_mask)[:, 0, 0]
        if marks.shape != tokens.shape:
            raise ShapeError(f"the model needs a mark for each token, {tokens.shape}, got {marks.shape}")
        return np.maximum(np.cumsum(marks, axis=1) - 1, 0)

    def _bias(self, table, queries, keys, causal=True):
        """What is added to the scores for the distances between tokens, (H, T, S), or None."""
        c = self.config
        if c.positions == "alibi":
            return alibi_bias(c.heads, queries, keys)
        if c.positions != "relative":
            return None
        buckets = relative_buckets(queries, keys, buckets=c.t5.buckets, farthest=c.t5.farthest, causal=causal)
        return embedding(table, buckets).transpose(2, 0, 1)


def under(tap: Callable, prefix: str) -> Callable:
    """The same tap for names that begin with a prefix and a dot.

    >>> under(lambda name, value: name, "blocks.0")("output", 1.0)
    'blocks.0.output'
    """
    return lambda name, value: tap(f"{prefix}.{name}", value)


def _checked_tap(tap):
    """The tap, or one that changes nothing; what it returns must have the shape of what it saw."""
    if tap is None:
        return lambda name, value: value

    def checked(name, value):
        new = tap(name, value)
        if np.shape(new) != value.shape:
            raise ShapeError(f"{name!r} has shape {value.shape}, the tap returned {np.shape(new)}")
        return new

    return checked


def _checked_tokens(tokens):
    tokens = np.asarray(tokens)
    if tokens.ndim != 2 or tokens.shape[1] == 0:
        raise ShapeError(f"the model needs tokens of shape (B, T) with T ≥ 1, got {tokens.shape}")
    return tokens
