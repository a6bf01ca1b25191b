"""The step that generation repeats, for one sequence and one token: vectors in place of batches, nothing else changed.

For a single token every weight is read once and used once: matrix times vector, and the time of a step is the time to
fetch the weights from memory. What a model does besides for a batch (masks, checks, a tape for gradients) would cost a
small one more than its arithmetic, so it is left out here.
"""

import math

import numpy as np

from ..attention import rotary_angles, rotate
from ..gradient_descent import tree_leaves
from ..transformer import Config
from ..transformer.feed_forward import _ACTIVATIONS
from ..vectors import embedding
from .cache import KVCache

_BLOCK = 16  # positions whose rotations are computed at a time
_HALF = np.array(0.5, np.float32)


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
        self.dtype = np.result_type(cache.keys, *{leaf.dtype for leaf in tree_leaves(params)})
        self.heads, self.neurons = _Heads(c, self.dtype), _Neurons(c, self.dtype)
        self.layers = [_Layer(block) for block in params["blocks"]]
        self.norm = (_rms_norm if c.norm == "rms" else _layer_norm)(self.dtype)
        self.unembedding = params["embedding"].T if c.tied else params["unembedding"]

    @staticmethod
    def fits(config: Config, params: dict) -> bool:
        """Whether a model can be read so: LLaMA and GPT-2 from float32 on, but no experts, no encoder and no BERT."""
        c = config
        extras = (c.encoder_layers, c.experts, c.segments, c.embedding_norm, c.head_transform)
        plain = c.causal and c.norm_order == "pre" and c.positions in ("learned", "rotary", "none")
        return plain and c.output_scale == 1 and not any(extras) and params["embedding"].dtype != np.float16

    def __call__(self, token: int) -> np.ndarray:
        c, norm, heads, neurons, cache = self.config, self.norm, self.heads, self.neurons, self.cache
        if not 0 <= token < c.vocabulary:
            raise ValueError(f"the model knows tokens from 0 to {c.vocabulary - 1}, got {token}")
        if c.outgrown_by(cache.length + 1):
            raise ValueError(f"these rotary positions turn all keys anew beyond {c.rope_limit} tokens: no cache then")
        x = self.params["embedding"][token].astype(self.dtype, copy=False)  # (D,)
        if c.positions == "learned":
            x = x + embedding(self.params["positions"], cache.counts[0])
        heads.move_to(cache.length)
        mask = cache.advance(1)  # None where all that is stored may be seen, else (1, 1, 1, S)
        for layer, keys, values in zip(self.layers, *cache.of_one_sequence(), strict=True):
            layer.projections(norm(x, layer.attention_norm, c.norm_epsilon), heads.projected)
            heads.turn()
            keys[..., -1], values[:, -1] = heads.key, heads.value
            x = x + layer.output(_attention(heads.query, keys, values, mask))
            layer.widening(norm(x, layer.feed_forward_norm, c.norm_epsilon), neurons.widened)
            x = x + layer.down(neurons.bent())
        return norm(x, self.params["final_norm"], c.norm_epsilon).dot(self.unembedding)  # (V,)


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
    """The parameters of one block, sorted by what is read together: products are functions of (vector, out=None)."""

    def __init__(self, block):
        attention, feed_forward = block["attention"], block["feed_forward"]
        self.attention_norm, self.feed_forward_norm = block["attention_norm"], block["feed_forward_norm"]
        self.projections = _products(attention, "query", "key", "value")
        self.output = _products(attention, "output")
        self.widening = _products(feed_forward, *[name for name in ("gate", "up") if name in feed_forward])
        self.down = _products(feed_forward, "down")


def _products(params, *names):
    """x -> [x W₁ + b₁, x W₂ + b₂, …] as one vector: one product, where the matrices lie side by side in memory."""
    matrices = [params[name] for name in names]
    biases = [params[f"{name}_bias"] for name in names if f"{name}_bias" in params]
    whole, bias = _adjoining(matrices), np.concatenate(biases) if biases else None
    if whole is not None and bias is None:
        return whole.T.dot  # Wᵀx is x W

    def products(x, out=None):
        y = np.concatenate([x.dot(matrix) for matrix in matrices], out=out) if whole is None else x.dot(whole, out)
        return y if bias is None else np.add(y, bias, out)

    return products


class _Heads:
    """What one token's heads ask, show and tell, in places of their own: views made once serve all layers and tokens.

    projected (H·K + 2G·K,): a layer's queries, keys and values, as its matrix gives them
    query (G, H/G, K), key (G, K): turned by the angle of their position, the query times the scale of scores as well
    value (G, K)
    """

    def __init__(self, config, dtype):
        c, keys = config, config.kv_heads
        self.projected = np.empty((c.heads + 2 * keys) * c.head_width, dtype)
        heads = self.projected.reshape(-1, c.head_width)
        self.queries, self.keys, self.value = np.split(heads, [c.heads, c.heads + keys])
        self.turned, self.key = np.empty_like(self.queries), np.empty_like(self.keys)
        self.query = self.turned.reshape(keys, -1, c.head_width)
        self.config, self.block = c, None

    def move_to(self, position):
        """The rotation there as a matrix R (K, K): by (10.14) x R is x turned."""
        block, place = divmod(position, _BLOCK)
        if block != self.block:
            self.block, self.rotations = block, self._rotations(block * _BLOCK + np.arange(_BLOCK))
            self.scaled_rotations = self.config.score_scale * self.rotations
        self.scaled_rotation, self.rotation = self.scaled_rotations[place], self.rotations[place]

    def turn(self):
        self.queries.dot(self.scaled_rotation, self.turned)
        self.keys.dot(self.rotation, self.key)

    def _rotations(self, positions):
        """Of each position T the matrix whose rows are the unit vectors, turned: (T, K, K)."""
        c, units = self.config, np.eye(self.config.head_width, dtype=self.key.dtype)
        units = np.repeat(units[:, None], len(positions), axis=1)  # (K, T, K)
        if c.positions == "rotary":
            scaling = {"scaling": c.rope_scaling, "factor": c.rope_factor, "trained": c.context}
            angles = rotary_angles([1], c.head_width, c.rope_base, **scaling)  # (1, K/2) from token to token
            units = rotate(units, angles=positions[:, None] * angles, pairing=c.pairing)
        return np.ascontiguousarray(units.swapaxes(0, 1))


class _Neurons:
    """The neurons of one token, before and after they are bent; widened: (2F,), gates first, or (F,) without gates."""

    def __init__(self, config, dtype):
        self.widened = np.empty((1 + config.gated) * config.hidden, dtype)
        self.gate, self.up = self.widened[: config.hidden], self.widened[config.hidden :]
        self.bend = _silu if config.activation == "silu" else _ACTIVATIONS[config.activation]

    def bent(self):
        return self.bend(self.gate) * self.up if self.up.size else self.bend(self.gate)


def lay_side_by_side(params: dict) -> None:
    """Move the matrices of each block into one piece of memory, as a `DecodingStep` reads them: one after the other.

        [q k v] = h [W_q W_k W_v],      [g u] = h [W_gate W_up]

    Those that multiply one vector stand side by side, as one matrix. And a large piece of memory comes in large pages,
    which the processor finds sooner than many small ones.

    params: of a model, changed in place: same names, same numbers and no more memory, for each matrix becomes a view.

    >>> from mathllm.transformer import Transformer, llama_config
    >>> params = Transformer(llama_config(vocabulary=10, width=8, layers=1, heads=2)).init(np.random.default_rng(0))
    >>> lay_side_by_side(params)
    >>> gate, up = (params["blocks"][0]["feed_forward"][name] for name in ("gate", "up"))
    >>> gate.base is up.base
    True
    """
    for block in params["blocks"]:
        groups = list(_read_together(block))
        matrices = [part[name] for part, names in groups for name in names]
        memory = np.empty(sum(matrix.size for matrix in matrices), np.result_type(*matrices))
        for part, names in groups:
            rows, ends = len(part[names[0]]), np.cumsum([part[name].shape[1] for name in names])
            place, memory = np.split(memory, [rows * ends[-1]])
            by_rows = part[names[0]].flags.c_contiguous
            whole = place.reshape(rows, -1) if by_rows else place.reshape(-1, rows).T  # (D, outputs), as they were
            np.concatenate([part[name] for name in names], axis=1, out=whole)
            part |= zip(names, np.split(whole, ends[:-1], axis=1), strict=True)


def _read_together(block):
    """(attention or network, names of matrices that multiply the same vector), in the order in which they do."""
    groups = (("attention", "query", "key", "value"), ("attention", "output"),
              ("feed_forward", "gate", "up"), ("feed_forward", "down"))  # fmt: skip
    for part, *names in groups:
        names = [name for name in names if name in block[part]]
        if names:
            yield block[part], names


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


def _attention(query, keys, values, mask):
    """What one query of each head sees: query (G, H/G, K), keys (G, K, S), values (G, S, K)  ->  (H·K,)"""
    scores = query @ keys  # (G, H/G, S)
    if mask is not None:
        scores = np.where(mask[0], scores, -np.inf).astype(scores.dtype)
    weights = np.exp(scores - np.maximum.reduce(scores, axis=-1, keepdims=True))
    seen = weights @ values / np.add.reduce(weights, axis=-1, keepdims=True)
    return seen.ravel()


def _rms_norm(dtype):
    """`rms_norm` (12.3) of one vector."""
    scale = np.empty((), dtype)  # an array multiplies sooner than a number, which becomes one each time

    def norm(x, params, epsilon):
        scale[()] = 1 / math.sqrt(float(x.dot(x)) / len(x) + epsilon)
        return x * scale * params["gain"]

    return norm


def _layer_norm(dtype):
    """`layer_norm` (12.1) of one vector."""
    rms_norm = _rms_norm(dtype)

    def norm(x, params, epsilon):
        return rms_norm(x - x.sum() / x.dtype.type(len(x)), params, epsilon) + params["bias"]

    return norm


def _silu(x):
    """`silu` (8.14) without a tape: x σ(x) = x (1 + tanh ½x)/2."""
    half = _HALF * x
    return half + half * np.tanh(half)
