"""The step that generation repeats, for one sequence and one token: vectors in place of batches, nothing else changed.

For a single token every weight is read once and used once: matrix times vector, and the time of a step is the time to
fetch the weights from memory. What a model does besides for a batch (masks, checks, a tape for gradients) would cost a
small one more than its arithmetic, so it is left out here.
"""

import math

import numpy as np

from ..attention import rotary_angles
from ..attention.positions import _joined, _pairs
from ..transformer import Config
from ..transformer.feed_forward import _ACTIVATIONS
from ..vectors import embedding
from .cache import KVCache


class DecodingStep:
    """Read one token: the logits that `model(params, [[token]], cache=cache)` gives, several times sooner.

        x ← x + W_o Attention(q, [K; k], [V; v]),      x ← x + FFN(norm(x)),      logits = E norm(x_L)

    cache: of one sequence, which may hold a text already, read by the model   ->   a function of a token id: (V,)

    The weights stay where they are, none is copied. Where queries, keys and values (or gate and up) lie side by side in
    memory, as `lay_side_by_side` leaves them, they are read as one matrix.
    Raises: ValueError for a model that does not fit (`DecodingStep.fits` tells), or a cache of several sequences.
    Source: 001, §10.3; 004, the KV cache.

    >>> from mathllm.transformer import Transformer, llama_config
    >>> model = Transformer(llama_config(vocabulary=10, width=8, layers=2, heads=2, hidden=16))
    >>> params = model.init(np.random.default_rng(0))
    >>> step = DecodingStep(model, params, KVCache(model.config, capacity=3))
    >>> np.allclose([step(token) for token in (1, 2, 3)], model(params, [[1, 2, 3]])[0])
    True
    """

    def __init__(self, model, params: dict, cache: KVCache):
        c = model.config
        if not self.fits(c, params) or cache.batch != 1:
            raise ValueError(
                "DecodingStep reads one sequence with a plain decoder (norms first, no experts, learned, rotary or no "
                "positions, float32 or float64); for others call the model itself"
            )
        self.config, self.params, self.cache = c, params, cache
        self.layers = [_Layer(block) for block in params["blocks"]]
        self.scale = c.score_scale
        self.unembedding = params["embedding"].T if c.tied else params["unembedding"]
        self.bend = _silu if c.activation == "silu" else _ACTIVATIONS[c.activation]
        self.norm = _rms_norm if c.norm == "rms" else _layer_norm
        if c.positions == "rotary":
            scaling = {"scaling": c.rope_scaling, "factor": c.rope_factor, "trained": c.context}
            self.angles = rotary_angles([1], c.head_width, c.rope_base, **scaling)[0]  # (K/2,) from token to token
            first, second = _pairs(np.arange(c.head_width), c.pairing)
            self.partners = _joined(second, first, c.pairing)  # which component each one is turned with, (K,)

    @staticmethod
    def fits(config: Config, params: dict) -> bool:
        """Whether a model can be read so: LLaMA and GPT-2 from float32 on, but no experts, no encoder and no BERT."""
        c = config
        extras = (c.encoder_layers, c.experts, c.segments, c.embedding_norm, c.head_transform)
        plain = c.causal and c.norm_order == "pre" and c.positions in ("learned", "rotary", "none")
        return plain and not any(extras) and params["embedding"].dtype != np.float16

    def __call__(self, token: int) -> np.ndarray:
        c, params, cache = self.config, self.params, self.cache
        if not 0 <= token < c.vocabulary:
            raise ValueError(f"the model knows tokens from 0 to {c.vocabulary - 1}, got {token}")
        x = params["embedding"][token]  # (D,)
        if c.positions == "learned":
            x = x + embedding(params["positions"], cache.counts[0])
        rotation = self._rotation(cache.length, x.dtype) if c.positions == "rotary" else None
        mask = cache.advance(1)  # None where all that is stored may be seen, else (1, 1, 1, S)
        for number, layer in enumerate(self.layers):
            h = self.norm(x, layer.attention_norm, c.norm_epsilon)
            heads = layer.projections(h).reshape(-1, c.head_width)  # (H + 2G, K): queries, keys, values
            query, key, value = self._turned(heads, rotation)
            keys, values = cache.layer(number)(key, value)  # (1, G, S, K)
            x = x + layer.output(self._attention(query, keys[0], values[0], mask))
            h = self.norm(x, layer.feed_forward_norm, c.norm_epsilon)
            x = x + layer.down(self._bent(layer.widening(h)))
        return self.norm(x, params["final_norm"], c.norm_epsilon) @ self.unembedding  # (V,)

    def _rotation(self, position, dtype):
        """cos θ for each component, and sin θ with the sign that its partner has in (10.14)."""
        cosine, sine = np.cos(position * self.angles), np.sin(position * self.angles)
        pairing = self.config.pairing
        return _joined(cosine, cosine, pairing).astype(dtype), _joined(-sine, sine, pairing).astype(dtype)

    def _turned(self, heads, rotation):
        """Queries (H, K), keys (G, 1, K) and values (G, 1, K): the first two turned by the angle of their position."""
        queries, keys = self.config.heads, self.config.kv_heads
        turned = heads[: queries + keys]
        if rotation is not None:
            cosine, sine = rotation
            turned = turned * cosine + turned.take(self.partners, axis=1) * sine
        return turned[:queries], turned[queries:, None], heads[queries + keys :, None]

    def _attention(self, query, keys, values, mask):
        """What one query of each head sees: query (H, K), keys and values (G, S, K)  ->  (H·K,)"""
        query = query.reshape(len(keys), -1, query.shape[-1]) * self.config.score_scale
        scores = query @ keys.swapaxes(1, 2)  # (G, H/G, S)
        if mask is not None:
            scores = np.where(mask[0], scores, -np.inf).astype(scores.dtype)
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        return (weights @ values).ravel()

    def _bent(self, wide):
        if not self.config.gated:
            return self.bend(wide)
        gate, up = wide[: self.config.hidden], wide[self.config.hidden :]
        return self.bend(gate) * up


class Reader:
    """A model with its cache, for texts that grow: reads what it has not read yet, a single token by a `DecodingStep`.

    cache: a `KVCache`, or None to read everything each time   options: what the model is given besides, as its source

    >>> from mathllm.transformer import Transformer
    >>> model = Transformer(Config(vocabulary=10, width=8, layers=2, heads=2))
    >>> read = Reader(model, model.init(np.random.default_rng(0)), KVCache(model.config))
    >>> read(np.array([[1, 2, 3]])).shape, read(np.array([[1, 2, 3, 4]])).shape
    ((1, 3, 10), (1, 1, 10))
    """

    def __init__(self, model, params: dict, cache: KVCache | None, **options):
        self.model, self.params, self.cache, self.options = model, params, cache, options
        single = cache is not None and cache.batch == 1 and DecodingStep.fits(model.config, params)
        self.step = DecodingStep(model, params, cache) if single else None

    def __call__(self, tokens: np.ndarray, marks: np.ndarray | None = None, last: bool = False) -> np.ndarray:
        """Logits after each new token: tokens (B, T), with 0 in marks for padding  ->  (B, new, V)

        With `last` only the last of them, (B, 1, V): the largest matrix, the unembedding, then multiplies one vector.
        With a window the text is read in pieces no longer than it, and the logits are those of the last piece.
        """
        cache, end = self.cache, tokens.shape[1]
        if cache is None:
            return self._logits(tokens, marks, last)
        if self.step is not None and cache.batch == 1 and cache.length == end - 1:
            return self.step(int(tokens[0, -1]))[None, None]
        while cache.length < end:
            new = slice(cache.length, min(cache.length + (cache.window or end), end))
            here = None if marks is None else marks[:, new]
            logits = self._logits(tokens[:, new], here, last)
        return logits

    def _logits(self, tokens, marks, last):
        if not last:
            return self.model(self.params, tokens, marks, cache=self.cache, **self.options)
        vectors = self.model.hidden(self.params, tokens, marks, cache=self.cache, **self.options)  # (B, T, D)
        return self.model._unembed(self.params, vectors[:, -1:])


class _Layer:
    """The parameters of one block, sorted by what is read together."""

    def __init__(self, block):
        attention, feed_forward = block["attention"], block["feed_forward"]
        self.attention_norm, self.feed_forward_norm = block["attention_norm"], block["feed_forward_norm"]
        self.projections = _Products(attention, "query", "key", "value")
        self.output = _Products(attention, "output")
        self.widening = _Products(feed_forward, *[name for name in ("gate", "up") if name in feed_forward])
        self.down = _Products(feed_forward, "down")


class _Products:
    """[x W₁ + b₁, x W₂ + b₂, …] as one vector: one product, where the matrices lie side by side in memory."""

    def __init__(self, params, *names):
        self.matrices = [params[name] for name in names]
        self.whole = self.matrices[0] if len(names) == 1 else _adjoining(self.matrices)
        biases = [params[f"{name}_bias"] for name in names if f"{name}_bias" in params]
        self.bias = np.concatenate(biases) if biases else None

    def __call__(self, x):
        y = np.concatenate([x @ matrix for matrix in self.matrices]) if self.whole is None else x @ self.whole
        return y if self.bias is None else y + self.bias


def lay_side_by_side(params: dict) -> None:
    """Move the matrices that are read together next to each other, so that a `DecodingStep` reads them as one.

        [q k v] = h [W_q W_k W_v],      [g u] = h [W_gate W_up]

    params: of a model, changed in place: same names, same numbers and no more memory, for each matrix becomes a view of
    a larger one.

    >>> from mathllm.transformer import Transformer, llama_config
    >>> params = Transformer(llama_config(vocabulary=10, width=8, layers=1, heads=2)).init(np.random.default_rng(0))
    >>> lay_side_by_side(params)
    >>> gate, up = (params["blocks"][0]["feed_forward"][name] for name in ("gate", "up"))
    >>> gate.base is up.base
    True
    """
    for block in params["blocks"]:
        for part, names in ((block["attention"], ("query", "key", "value")), (block["feed_forward"], ("gate", "up"))):
            if all(name in part for name in names):
                joined = np.concatenate([part[name] for name in names], axis=1)  # (D, outputs), rows or columns first
                ends = np.cumsum([part[name].shape[1] for name in names])[:-1]
                part |= zip(names, np.split(joined, ends, axis=1), strict=True)


def _adjoining(matrices):
    """The matrices (D, n₁), (D, n₂) … as one view (D, n₁ + n₂ + …), or None if they do not lie side by side."""
    first, place = matrices[0], matrices[0].ctypes.data
    for matrix in matrices:
        together = matrix.base is not None and matrix.base is first.base and matrix.strides == first.strides
        if not together or matrix.ctypes.data != place:
            return None
        place += matrix.shape[1] * matrix.strides[1]
    shape = (len(first), sum(matrix.shape[1] for matrix in matrices))
    return np.lib.stride_tricks.as_strided(first, shape, first.strides, writeable=False)


def _rms_norm(x, params, epsilon):
    """`rms_norm` (12.3) of one vector."""
    return x * (1 / math.sqrt(x @ x / len(x) + epsilon)) * params["gain"]


def _layer_norm(x, params, epsilon):
    """`layer_norm` (12.1) of one vector."""
    centred = x - x.sum() / x.dtype.type(len(x))
    return _rms_norm(centred, params, epsilon) + params["bias"]


def _silu(x):
    """`silu` (8.14) without a tape: x σ(x) = x (1 + tanh ½x)/2."""
    half = 0.5 * x
    return half + half * np.tanh(half)
