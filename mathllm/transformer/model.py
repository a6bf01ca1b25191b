"""The whole model: embeddings, L blocks, an unembedding; one function for training, reading and inference."""

from __future__ import annotations  # numpy.random is loaded when it is used

import numpy as np

from ..attention import (
    alibi_bias,
    causal_mask,
    multi_head_attention,
    padding_mask,
    relative_buckets,
    rotary_angles,
    sinusoidal_positions,
)
from ..autodiff import Tensor
from ..cross_entropy import cross_entropy
from ..errors import ShapeError, suggest
from ..gradient_descent import tree_leaves
from ..vectors import embedding
from .config import Config
from .feed_forward import _ACTIVATIONS, feed_forward, mixture_of_experts
from .fused import _attention_sublayer, _feed_forward_sublayer, _surprise_at, _token_vectors
from .norms import layer_norm, rms_norm


class Transformer:
    """A transformer of the given shape. It holds no weights: `init` makes them, and every call takes them.

        x₀ = E[tokens] + positions,      xₗ = blockₗ(xₗ₋₁),      logits = norm(x_L) Eᵀ (12.7)

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

        Biases start at zero, gains at one.  Source: Radford et al. 2018, §4.1 (0.02), and 2019, §2.3 (the √(2L)).
        """
        c = self.config

        def normal(*shape, scale=0.02):
            return (scale * rng.standard_normal(shape)).astype(dtype)

        params = {"embedding": normal(c.vocabulary, c.width)}
        if c.positions == "learned":
            params["positions"] = normal(c.context, c.width)
        if c.positions == "relative":
            params["positions"] = normal(c.position_buckets, c.heads)
        if c.segments:
            params["segments"] = normal(c.segments, c.width)
        if c.embedding_norm:
            params["embedding_norm"] = self._init_norm(dtype)
        if c.encoder_layers:
            params["encoder"] = [self._init_block(normal, dtype) for _ in range(c.encoder_layers)]
            params["encoder_norm"] = self._init_norm(dtype)
            if c.positions == "relative":
                params["encoder_positions"] = normal(c.position_buckets, c.heads)
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
        self, params, tokens, attention_mask=None, *,
        segments=None, source=None, source_mask=None, record=None, replace=None, cache=None,
    ):  # fmt: skip
        """Logits for every position.

        tokens: (B, T) int   attention_mask: (B, T), 1 for a token and 0 for padding   segments: (B, T) int
        source, source_mask: (B, S), for a model with an encoder   ->   logits: (B, T, V)

        `record`, an empty dictionary, is filled with every intermediate under its name: "embeddings",
        "blocks.0.attention.weights" (B, H, T, T), "blocks.0.attention.output", "blocks.0.feed_forward.hidden",
        "blocks.0.feed_forward.output", "blocks.0.output", "final_norm", "logits", and so on; those of an encoder begin
        with "encoder.", as in "encoder.0.output". Without it nothing is kept.

        `replace` maps such names, of what is (B, T, D), to arrays or to functions of the value: the run goes on with
        those instead.

        `cache`, a `KVCache` of chapter 14, holds the keys and values of the tokens of earlier calls: tokens and
        attention_mask are then those that come next, and the source need not be read again.

        Padding may stand on either side: a token's position is the number of tokens before it that are no padding.

        Raises: ShapeError for tokens that are not (B, T), or longer than the context; ValueError for ids outside the
        vocabulary, and for a cache where the model looks ahead.
        """
        x = self.hidden(
            params, tokens, attention_mask,
            segments=segments, source=source, source_mask=source_mask, record=record, replace=replace, cache=cache,
        )  # fmt: skip
        logits = self._unembed(params, x)
        _Recorder(record)("logits", logits)
        return logits

    def hidden(
        self, params, tokens, attention_mask=None, *,
        segments=None, source=None, source_mask=None, record=None, replace=None, cache=None,
    ):  # fmt: skip
        """The last vector of every position, from which the logits are read: (B, T, D). Takes what a call takes."""
        tokens = self._checked(tokens)
        if cache is not None and not self.config.causal:
            raise ValueError("an encoder looks at all tokens at once: only a causal model can use a cache")
        if cache is not None and self.config.outgrown_by(cache.length + tokens.shape[1]):
            limit = f"longer than {self.config.rope_limit} tokens"
            raise ValueError(f"these rotary positions turn all keys anew in a text {limit}: read it without a cache")
        if cache is not None and len(tokens) != cache.batch:
            raise ShapeError(f"the cache is for {cache.batch} sequences, got tokens of shape {tokens.shape}")
        memory, memory_mask = (None, None) if cache is None else cache.source
        if self.config.encoder_layers and memory is None:
            if source is None:
                raise ValueError("this model has an encoder: give it source=tokens of the text to read")
            memory, memory_mask = self._encode(params, self._checked(source), source_mask, _Recorder(record))
        x = self._embed(params, tokens, segments, self._positions(tokens, attention_mask, cache))
        if cache is not None:
            cache.source = memory, memory_mask
        keep = _Recorder(record, replace=self._replaceable(replace))
        x = keep("embeddings", x)
        inside = keep.under("blocks.")
        context = params.get("positions"), memory, memory_mask, cache
        x = self._blocks(params["blocks"], x, attention_mask, self.config.causal, inside, *context)
        if "final_norm" in params:
            x = self._norm(x, params["final_norm"])
        return keep("final_norm", x)

    def loss(self, params, tokens, labels, attention_mask=None, **options):
        """Mean cross-entropy in nats, with labels as transformers takes them.

        A decoder is given labels = tokens and shifts them itself: position t predicts label t + 1. An encoder, and a
        decoder with a source, predict the label at the same place. Labels of −100 do not count.

        tokens, labels: (B, T) int   ->   one number
        """
        labels = np.asarray(labels)
        labels = labels.astype(np.int64) if labels.dtype.kind == "u" else labels
        if self.config.causal and not self.config.encoder_layers:
            labels = np.concatenate([labels[:, 1:], np.full_like(labels[:, :1], _IGNORED)], axis=1)
        return self.next_token_loss(params, tokens, labels, attention_mask, **options)

    def next_token_loss(self, params, tokens, targets, attention_mask=None, **options):
        """Mean cross-entropy in nats, where the targets stand in the places of the tokens they follow.

        That is `cross_entropy(model(params, tokens), targets)`, as of a batch of next_token_pairs(), in fewer passes.

        tokens, targets: (B, T) int, targets of −100 do not count   ->   one number

        >>> from mathllm.transformer import llama_config
        >>> model = Transformer(llama_config(vocabulary=10, width=8, layers=2, heads=2, hidden=16))
        >>> params = model.init(np.random.default_rng(0))
        >>> round(float(model.next_token_loss(params, [[1, 2, 3]], [[2, 3, 4]])), 1)  # ln 10
        2.3
        """
        targets = np.asarray(targets)
        fusible = options.get("record") is None and "head" not in params and targets.shape == np.shape(tokens)
        if fusible and isinstance(params["embedding"], Tensor) and params["embedding"].dtype in _PRECISE:
            x = self._scaled(self.hidden(params, tokens, attention_mask, **options))
            return _surprise_at(x, params["embedding"].T if self.config.tied else params["unembedding"], targets)
        return cross_entropy(self(params, tokens, attention_mask, **options), targets)

    def _checked(self, tokens):
        tokens = np.asarray(tokens)
        if tokens.ndim != 2 or tokens.shape[1] == 0:
            raise ShapeError(f"the model needs tokens of shape (B, T) with T ≥ 1, got {tokens.shape}")
        return tokens

    def _replaceable(self, replace):
        parts = ["attention", "feed_forward", *["cross_attention"] * bool(self.config.encoder_layers)]
        written = [f"{part}.output" for part in parts] + ["output"]
        names = [f"blocks.{n}.{part}" for n in range(self.config.layers) for part in written]
        for name in replace or ():
            if name not in (known := ["embeddings", *names, "final_norm"]):
                raise ValueError(f"this model cannot replace {name!r}{suggest(name, known)}")
        return replace

    def _positions(self, tokens, attention_mask, cache=None):
        """Where each token stands in its text, (T,) or (B, T): the number of tokens before it that are no padding."""
        past = 0 if cache is None else cache.counts[:, None]
        here = np.arange(tokens.shape[1])
        if attention_mask is not None:
            here = np.maximum(np.cumsum(padding_mask(attention_mask)[:, 0, 0], axis=1) - 1, 0)
            if here.shape != tokens.shape:
                raise ShapeError(f"the model needs a mark for each token, {tokens.shape}, got {here.shape}")
        positions = past + here
        if self.config.positions == "learned" and positions.size and positions.max() >= self.config.context:
            raise ShapeError(f"the model's context is {self.config.context} tokens, got {positions.max() + 1}")
        return positions

    def _embed(self, params, tokens, segments, positions):
        c = self.config
        look_up = _token_vectors if isinstance(params["embedding"], Tensor) else embedding
        x = look_up(params["embedding"], tokens)  # (B, T, D)
        if c.positions == "learned":
            x = x + embedding(params["positions"], positions)
        elif c.positions == "sinusoidal":
            length = positions.max(initial=0) + 1
            x = x + sinusoidal_positions(length, c.width).astype(x.dtype)[positions]
        if c.segments:
            x = x + embedding(params["segments"], np.zeros_like(tokens) if segments is None else np.asarray(segments))
        return self._norm(x, params["embedding_norm"]) if c.embedding_norm else x

    def _encode(self, params, source, source_mask, keep):
        x = self._embed(params, source, None, self._positions(source, source_mask))
        keep("encoder.embeddings", x)
        table = params.get("encoder_positions")
        x = self._blocks(params["encoder"], x, source_mask, False, keep.under("encoder."), table)
        mask = None if source_mask is None else padding_mask(source_mask)
        return keep("encoder.final_norm", self._norm(x, params["encoder_norm"])), mask

    def _blocks(self, blocks, x, attention_mask, causal, keep, table, memory=None, memory_mask=None, cache=None):
        c, length = self.config, x.shape[1]
        past, keys = 0, length
        alone = attention_mask is None and memory is None and cache is None and not keep.asked
        fusible = causal and alone and all(self._has_fused_form(x, block) for block in blocks)
        if cache is not None:
            past = cache.length
            mask = cache.advance(length, attention_mask)  # (B, 1, T, S) or (T, S): S keys, the last T of them new
            keys = cache.visible
        else:
            mask = causal_mask(length) if causal and not fusible else None
            if attention_mask is not None:
                seen = padding_mask(attention_mask)
                mask = seen if mask is None else mask & seen
        options = {"heads": c.heads, "kv_heads": c.kv_heads, "mask": mask, "scale": c.score_scale}
        if c.positions == "rotary":
            scaling = {"scaling": c.rope_scaling, "factor": c.rope_factor, "trained": c.context}
            options |= {"angles": rotary_angles(np.arange(past, past + length), c.head_width, c.rope_base, **scaling)}
            options["pairing"] = c.pairing
        if c.positions == "alibi":
            options["bias"] = alibi_bias(c.heads, length, keys)
        if c.positions == "relative":
            classes = {"buckets": c.position_buckets, "farthest": c.farthest_position, "causal": causal}
            bias = embedding(table, relative_buckets(length, keys, **classes))  # (T, S, H)
            options["bias"] = bias.transpose(2, 0, 1)
        cross = {"heads": c.heads, "kv_heads": c.kv_heads, "mask": memory_mask, "context": memory}
        cross |= {} if c.scaled_scores else {"scale": 1.0}
        for number, block in enumerate(blocks):
            if fusible:
                x = self._fused_block(x, block, options)
                continue
            if cache is not None:
                options["cache"] = cache.layer(number)
            x = self._block(x, block, options, cross, keep.under(f"{number}."))
        return x

    def _block(self, x, block, options, cross, keep):
        """One block: tokens talk (attention), then each thinks (feed-forward), each time added to what was there."""
        c = self.config

        def recorder(name):
            return keep.under(f"{name}.") if keep.record is not None else None

        def attend(h):
            return multi_head_attention(h, block["attention"], record=recorder("attention"), **options)

        def attend_to_source(h):
            return multi_head_attention(h, block["cross_attention"], record=recorder("cross_attention"), **cross)

        def think(h):
            choices = {"activation": c.activation, "record": recorder("feed_forward")}
            if c.experts:
                return mixture_of_experts(h, block["feed_forward"], used=c.experts_used, **choices)
            return feed_forward(h, block["feed_forward"], **choices)

        x = self._sublayer(x, block["attention_norm"], attend, keep, "attention")
        if "cross_attention" in block:
            x = self._sublayer(x, block["cross_norm"], attend_to_source, keep, "cross_attention")
        x = self._sublayer(x, block["feed_forward_norm"], think, keep, "feed_forward")
        return keep("output", x)

    def _has_fused_form(self, x, block):
        """Whether this block, in training, is one of LLaMA's, for which `fused.py` has a shorter way."""
        c, leaves = self.config, tree_leaves(block)
        chosen = (c.positions, c.norm, c.norm_order, c.activation) == ("rotary", "rms", "pre", "silu")
        usual = [set(_LLAMA[part]) == set(block[part]) for part in _LLAMA if part in block] == [True, True]
        traced = any(isinstance(leaf, Tensor) for leaf in (x, *leaves))
        alike = {leaf.dtype for leaf in (x, *leaves)} in ({precise} for precise in _PRECISE)
        return chosen and usual and traced and alike

    def _fused_block(self, x, block, options):
        """`_block` in training, sublayer by sublayer, without names for what lies between."""
        norms = (block[f"{part}_norm"]["gain"] for part in _LLAMA)
        attention, network = ([block[part][name] for name in names] for part, names in _LLAMA.items())
        rotation = {name: options[name] for name in ("heads", "angles", "pairing", "scale")}
        x = _attention_sublayer(x, next(norms), *attention, **rotation, epsilon=self.config.norm_epsilon)
        return _feed_forward_sublayer(x, next(norms), *network, epsilon=self.config.norm_epsilon)

    def _sublayer(self, x, norm, function, keep, name):
        """x + f(norm(x)) for pre-norm, norm(x + f(x)) for post-norm (12.5)."""
        before = self.config.norm_order == "pre"
        written = keep(f"{name}.output", function(self._norm(x, norm) if before else x))
        return x + written if before else self._norm(x + written, norm)

    def _norm(self, x, params):
        epsilon = self.config.norm_epsilon
        if self.config.norm == "rms":
            return rms_norm(x, params["gain"], epsilon=epsilon)
        return layer_norm(x, params["gain"], params["bias"], epsilon=epsilon)

    def _scaled(self, x):
        return x if self.config.output_scale == 1 else x * self.config.output_scale

    def _unembed(self, params, x):
        x = self._scaled(x)
        if "head" in params:
            head = params["head"]
            x = _ACTIVATIONS[self.config.activation](x @ head["transform"] + head["transform_bias"])
            x = self._norm(x, head["norm"])
        logits = x @ (params["embedding"].T if self.config.tied else params["unembedding"])
        return logits + params["head"]["bias"] if "head" in params else logits


# The parts of a block of LLaMA, and the matrices in them
_LLAMA = {"attention": ("query", "key", "value", "output"), "feed_forward": ("gate", "up", "down")}


_PRECISE = (np.dtype(np.float32), np.dtype(np.float64))  # sums in float16 need the care of the readable forms
_IGNORED = -100  # a target that counts for nothing


class _Recorder:
    """Keeps intermediates under their names and hands on what stands in their place, or does nothing."""

    def __init__(self, record, prefix="", replace=None):
        self.record, self.prefix, self.replace = record, prefix, replace

    def __call__(self, name, value):
        name = self.prefix + name
        if self.replace and name in self.replace:
            value = _replaced(name, value, self.replace[name])
        if self.record is not None:
            self.record[name] = getattr(value, "value", value)
        return value

    @property
    def asked(self):
        return self.record is not None or bool(self.replace)

    def under(self, prefix):
        return _Recorder(self.record, self.prefix + prefix, self.replace)


def _replaced(name, value, new):
    new = new(value) if callable(new) else np.asarray(new, value.dtype)
    if new.shape != value.shape:
        raise ShapeError(f"{name!r} has shape {value.shape}, its replacement {new.shape}")
    return new
