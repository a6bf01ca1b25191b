"""The whole model: embeddings, L blocks, an unembedding; one function for training, reading and inference."""

from __future__ import annotations  # NumPy loads its random numbers when they are used

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..attention.heads import multi_head_attention
from ..attention.positions import alibi_bias, relative_buckets, rotary_angles, rotate, sinusoidal_positions
from ..attention.scaled_dot_product import causal_mask, padding_mask
from ..autodiff import Array, ArrayLike
from ..cross_entropy import IGNORED, cross_entropy
from ..errors import ShapeError
from ..matrices import linear
from ..shapes import contract
from ..trees import rebuild, walk
from ..vectors import embedding
from .config import Config
from .feed_forward import ACTIVATIONS, feed_forward, mixture_of_experts
from .norms import layer_norm, rms_norm
from .parameters import parameter_table
from .taps import same_shape, under

Marks = ArrayLike | None  # 1 for a token and 0 for padding; None where nothing is padding


class Transformer:
    """A transformer of the given shape. It holds no weights: `init` makes them, and every call takes them.

        x₀ = E[tokens] + positions,      xₗ = blockₗ(xₗ₋₁),      logits = norm(x_L) Eᵀ (12.1)

    config: see `Config`. Parameters are nested dictionaries, `params["blocks"][0]["attention"]["query"]`.
    Source: Vaswani et al. 2017.

    >>> model = Transformer(Config(vocabulary=10, width=8, layers=2, heads=2))
    >>> params = model.init(np.random.default_rng(0))
    >>> model(params, np.array([[1, 2, 3]])).shape
    (1, 3, 10)
    """

    def __init__(self, config: Config):
        self.config = config

    def init(self, rng: np.random.Generator | int, dtype: type = np.float64) -> dict:
        """Random parameters, as `parameter_table` describes them."""
        table = parameter_table(self.config)
        rng = np.random.default_rng(rng)
        fresh = (parameter.initial(self.config.layers, rng).astype(dtype) for _, parameter in walk(table))
        return rebuild(table, fresh)

    def __call__(
        self, params: dict, tokens: ArrayLike, attention_mask: Marks = None, *,
        tap: Callable | None = None, **options: Any,
    ) -> np.ndarray:  # fmt: skip
        """Logits for every position.

        tokens: (B, T) int   attention_mask: (B, T), 1 for a token and 0 for padding   ->   logits: (B, T, V)
        options: segments (B, T) int; source and source_mask, (B, S), for a model with an encoder; cache, a `KVCache` of
        chapter 14 with the keys and values of the tokens of earlier calls: tokens and attention_mask are then those
        that come next, and the source need not be read again

        `tap(name, value)` sees every intermediate and returns what is used in its place: "embeddings",
        "blocks.0.attention.weights" (B, H, T, T), "blocks.0.attention.output", "blocks.0.feed_forward.hidden",
        "blocks.0.feed_forward.output", "blocks.0.output", "final_norm", "logits", and so on; those of an encoder begin
        with "encoder.", as in "encoder.0.output".

        Padding may stand on either side: a learned or sinusoidal position is the number of tokens before it that are no
        padding; with the other kinds only distances matter.

        Raises: ShapeError for tokens that are not (B, T), or for learned positions beyond the context; ValueError for
        ids outside the vocabulary, for a missing source, for a source or segments that the model does not read, and for
        a cache with a model that is not causal.
        """
        logits = self.unembed(params, self.hidden(params, tokens, attention_mask, tap=tap, **options))
        return same_shape(tap)("logits", logits)

    @contract("_, _, B T+, B T -> B T D")
    def hidden(
        self, params: dict, tokens: ArrayLike, attention_mask: Marks = None, *, segments: ArrayLike | None = None,
        source: ArrayLike | None = None, source_mask: Marks = None, cache: Any = None, tap: Callable | None = None,
    ) -> np.ndarray:  # fmt: skip
        """The last vector of every position, from which the logits are computed. Takes what a call takes."""
        if source is not None and not self.config.encoder_layers:
            raise ValueError("this model has no encoder that could read a source")
        tap, encoded = same_shape(tap), None if cache is None else cache.source
        if self.config.encoder_layers and encoded is None:
            encoded = self.encode(params, source, source_mask, tap=tap)
        positions = _positions(tokens, attention_mask) + (0 if cache is None else cache.counts[:, None])
        x = tap("embeddings", self.embed(params, tokens, positions, segments))
        if cache is None:
            mask = _mask(tokens, attention_mask, self.config.causal)
        else:
            mask, cache.source = cache.advance(tokens.shape, attention_mask), encoded
        x = self._blocks(params, "blocks", x, tap, cache, mask=mask, encoded=encoded)
        return tap("final_norm", self.norm(x, params["final_norm"]) if "final_norm" in params else x)

    @contract("_, _, B S+, B S")
    def encode(
        self, params: dict, source: ArrayLike | None = None, source_mask: Marks = None, *, tap: Callable
    ) -> tuple:
        """What the decoder attends to of a source text: its last vectors (B, S, D), and its padding mask."""
        if source is None:
            raise ValueError("this model has an encoder: give it source=tokens of the text to read")
        mask = _mask(source, source_mask, causal=False)
        x = tap("encoder.embeddings", self.embed(params, source, _positions(source, source_mask)))
        x = self._blocks(params, "encoder", x, tap, mask=mask)
        return tap("encoder.final_norm", self.norm(x, params["encoder_norm"])), mask

    def embed(
        self, params: dict, tokens: np.ndarray, positions: np.ndarray, segments: ArrayLike | None = None
    ) -> np.ndarray:
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
        elif segments is not None:
            raise ValueError("this model has no embeddings of segments")
        return self.norm(x, params["embedding_norm"]) if "embedding_norm" in params else x

    def block(
        self, x: Array, block: dict, *, tap: Callable, encoded: tuple | None = None, **options: Any
    ) -> np.ndarray:
        """One block: attention between the tokens, then a network for each token, each added to the residual stream.

            x ← x + attention(norm(x)),      x ← x + network(norm(x)) (12.1)

        This is pre-norm; for post-norm see `sublayer`. With an encoder, cross-attention comes between the two.
        encoded: what `encode` gives   options: mask, bias, rotation and cache, as `multi_head_attention` takes them
        """
        c = self.config
        heads = functools.partial(multi_head_attention, heads=c.heads, kv_heads=c.kv_heads, scale=c.score_scale)
        attend = functools.partial(heads, **options)
        network = functools.partial(mixture_of_experts, used=c.experts_used) if c.experts else feed_forward
        network = functools.partial(network, activation=c.activation)
        x = self.sublayer(x, attend, block["attention"], block["attention_norm"], under(tap, "attention"))
        if "cross_attention" in block:
            read = functools.partial(heads, context=encoded[0], mask=encoded[1])
            x = self.sublayer(x, read, block["cross_attention"], block["cross_norm"], under(tap, "cross_attention"))
        x = self.sublayer(x, network, block["feed_forward"], block["feed_forward_norm"], under(tap, "feed_forward"))
        return tap("output", x)

    def sublayer(self, x: Array, function: Callable, params: dict, norm: dict, tap: Callable) -> np.ndarray:
        """x + f(norm(x)) for pre-norm, norm(x + f(x)) for post-norm (12.11)."""
        if self.config.norm_order == "pre":
            return x + tap("output", function(self.norm(x, norm), params, tap=tap))
        return self.norm(x + tap("output", function(x, params, tap=tap)), norm)

    def norm(self, x: Array, params: dict) -> np.ndarray:
        """The norm of this model: RMS norm or layer norm."""
        if self.config.norm == "rms":
            return rms_norm(x, params["gain"], epsilon=self.config.norm_epsilon)
        return layer_norm(x, params["gain"], params["bias"], epsilon=self.config.norm_epsilon)

    def unembed(self, params: dict, x: Array) -> np.ndarray:
        """Logits (..., V) from the last vectors (..., D)."""
        if self.config.t5:
            x = x * self.config.t5.output_scale
        if head := params.get("head", {}):
            x = ACTIVATIONS[self.config.activation](linear(x, head["transform"], head["transform_bias"]))
            x = self.norm(x, head["norm"])
        matrix = params["embedding"].T if self.config.tied else params["unembedding"]
        return linear(x, matrix, head.get("bias"))

    def last_logits(
        self, params: dict, tokens: ArrayLike, attention_mask: Marks = None, *, count: int = 1, **options: Any
    ) -> np.ndarray:
        """Logits after the last `count` tokens, (B, count, V): only these are multiplied by the unembedding."""
        return self.unembed(params, self.hidden(params, tokens, attention_mask, **options)[:, -count:])

    @contract("_, _, B T+, B T+, B T")
    def loss(
        self, params: dict, tokens: ArrayLike, labels: ArrayLike, attention_mask: Marks = None, **options: Any
    ) -> np.ndarray:
        """Mean cross-entropy in nats, with labels as transformers takes them.

        A decoder is given labels = tokens and shifts them itself: position t predicts label t + 1. An encoder, and a
        decoder with a source, predict the label at the same place. Labels of −100 do not count.

        tokens, labels: int   ->   one number
        """
        labels = labels.astype(np.int64) if labels.dtype.kind == "u" else labels  # −100 has a sign
        if self.config.causal and not self.config.encoder_layers:
            labels = np.concatenate([labels[:, 1:], np.full_like(labels[:, :1], IGNORED)], axis=1)
        return self.next_token_loss(params, tokens, labels, attention_mask, **options)

    def next_token_loss(
        self, params: dict, tokens: ArrayLike, targets: ArrayLike, attention_mask: Marks = None, **options: Any
    ) -> np.ndarray:
        """Mean cross-entropy in nats, where the targets stand in the places of the tokens they follow.

        tokens, targets: (B, T) int, as of a batch of next_token_pairs(); targets of −100 do not count   ->   one number

        >>> from mathllm.transformer import llama_config
        >>> model = Transformer(llama_config(vocabulary=10, width=8, layers=2, heads=2, hidden=16))
        >>> params = model.init(np.random.default_rng(0))
        >>> round(float(model.next_token_loss(params, [[1, 2, 3]], [[2, 3, 4]])), 1)  # ln 10
        2.3
        """
        return cross_entropy(self(params, tokens, attention_mask, **options), targets)

    def _blocks(self, params, stack, x, tap, cache=None, **options):
        """All blocks of a stack, "blocks" or "encoder"; the cache, if there is one, has made room for x."""
        c, new = self.config, x.shape[1]
        start, keys = (0, new) if cache is None else (cache.length - new, cache.visible)
        if c.positions == "rotary":
            angles = rotary_angles(start + np.arange(new), c.head_width, c.rope_base, c.rope_scaling)
            options["rotation"] = functools.partial(rotate, angles=angles, pairing=c.pairing)
        elif c.positions == "alibi":
            options["bias"] = alibi_bias(c.heads, new, keys)  # (H, T, S)
        elif c.positions == "relative":
            table = params["positions" if stack == "blocks" else "encoder_positions"]
            sorting = {"buckets": c.t5.buckets, "farthest": c.t5.farthest, "causal": stack == "blocks"}
            buckets = relative_buckets(new, keys, **sorting)
            options["bias"] = embedding(table, buckets).transpose(2, 0, 1)
        for number, block in enumerate(params[stack]):
            layer = None if cache is None else cache.layer(number)
            x = self.block(x, block, cache=layer, tap=under(tap, f"{stack}.{number}"), **options)
        return x


def _positions(tokens, attention_mask):
    """The position of each new token, (1 or B, T): the number of new tokens before it that are no padding."""
    marks = np.ones((1, tokens.shape[1]), bool) if attention_mask is None else padding_mask(attention_mask)[:, 0, 0]
    return np.maximum(np.cumsum(marks, axis=1) - 1, 0)


def _mask(tokens, attention_mask, causal):
    """Which tokens may attend to which, where nothing is cached; None where all may."""
    mask = None if attention_mask is None else padding_mask(attention_mask)
    if not causal:
        return mask
    return causal_mask(tokens.shape[1]) & (True if mask is None else mask)
