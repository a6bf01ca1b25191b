"""Reading one token, or a few: no checks and no records between the products.

For few tokens a step takes about as long as reading the weights from memory. What a model does besides (to check its
input, to record derivatives, to show intermediates) would cost a small one more time than its arithmetic.
"""

import math

import numpy as np

from ..attention import attention, rotary_angles, rotate
from ..inference import KVCache
from ..transformer import Config
from ..trees import tree_leaves
from .block import LARGE, joined

_POSITIONS = 32  # positions whose rotations are computed at a time


class DecodingStep:
    """Read one token: the logits that `model(params, [[token]], cache=cache)` gives.

        x ← x + Attention(q, [K; k], [V; v]) W_o,      x ← x + FFN(norm(x)),      logits = norm(x_L) Eᵀ

    where q, k and v are computed from norm(x).

    cache: of one sequence, which may hold a text already   blocks: those of another step for the same parameters
    ->   a function of a token id: (V,)

    The matrices of queries, keys and values become one, since small products are slow. They are copied for it, unless
    they are neighbours in memory. So a step, like its cache, is for parameters that do not change.

    >>> from mathllm.transformer import Transformer, llama_config
    >>> model = Transformer(llama_config(vocabulary=10, width=8, layers=2, heads=2, hidden=16))
    >>> params = model.init(np.random.default_rng(0))
    >>> step = DecodingStep(model.config, params, KVCache(model.config, capacity=3))
    >>> np.allclose([step(token) for token in (1, 2, 3)], model(params, [[1, 2, 3]])[0])
    True
    """

    def __init__(self, config: Config, params: dict, cache: KVCache, blocks: list | None = None):
        self.config, self.params, self.cache = config, params, cache
        self.dtype = np.result_type(cache.keys, *{leaf.dtype for leaf in tree_leaves(params)})
        self.ones = np.ones(cache.capacity, self.dtype)
        self.mean = np.full(config.width, 1 / config.width, self.dtype)  # x · mean is the mean of x
        self.first, self.rotations = 0, ()  # of the positions from the first on
        self.blocks = blocks or [_Block(block) for block in params["blocks"]]
        self.unembedding = _times(params["embedding"].T if config.tied else params["unembedding"])

    def __call__(self, token: int) -> np.ndarray:
        """The logits after one more token."""
        c, cache, params = self.config, self.cache, self.params
        if not 0 <= token < c.vocabulary:
            raise ValueError(f"the model has tokens from 0 to {c.vocabulary - 1}, got {token}")
        x = params["embedding"][token].astype(self.dtype, copy=False)  # (D,)
        if c.positions == "learned":
            x = x + params["positions"][cache.counts[0]]
        self.query_rotation, self.key_rotation = self._rotations(cache.length)[0]
        mask = cache.advance((1, 1))  # None where all that is stored is visible, else (1, 1, 1, S)
        return self.unembedding(self._layers(x, zip(*cache.new_token(), strict=True), mask))  # (V,)

    def _layers(self, x, stored, mask):
        """The vectors after the last norm; stored: of the cache, for each layer."""
        norm, attention, activation = self._norm, self._attention, _ACTIVATIONS[self.config.activation]
        for block, layer in zip(self.blocks, stored, strict=True):
            x = x + attention(norm(x, block.attention_norm), block, layer, mask)
            h = norm(x, block.feed_forward_norm)
            hidden = activation(block.gate(h)) * block.up(h) if block.gate else activation(block.up(h))
            x = x + block.down(hidden)
        return norm(x, self.params["final_norm"])

    def _attention(self, x, block, layer, mask):
        """layer: keys and values (G, S, K), of which the last are to be written."""
        (keys, values), (G, S, K), H = layer, layer[0].shape, self.config.heads
        heads = block.queries_keys_values(x).reshape(-1, K)
        keys[:, -1], values[:, -1] = heads[H : H + G].dot(self.key_rotation), heads[H + G :]
        scores = heads[:H].dot(self.query_rotation).reshape(G, -1, K) @ keys.swapaxes(1, 2)  # (G, H/G, S)
        if mask is not None:
            scores = np.where(mask[0], scores, -np.inf).astype(scores.dtype)
        if not -LARGE < scores.item(scores.argmin()) <= scores.item(scores.argmax()) < LARGE:  # max() is slower for few
            scores -= np.maximum.reduce(scores, axis=-1, keepdims=True)
        np.exp(scores, out=scores)
        mixed = scores @ values
        mixed /= scores.dot(self.ones[:S])[..., None]
        return block.output(mixed.reshape(-1))

    def _norm(self, x, params):
        """`rms_norm` (12.3), or where there is a bias `layer_norm` (12.2), of each vector."""
        x = x - x.dot(self.mean) if "bias" in params else x
        y = x * (1 / math.sqrt(float(x.dot(x)) / len(x) + self.config.norm_epsilon)) * params["gain"]
        return y + params["bias"] if "bias" in params else y

    def _rotations(self, start, count=1):
        """Two matrices for each position from `start` on, (count or more, 2, K, K): one for queries, one for keys.

        The rotated x is x R, by (10.11). R of a query contains the scale of scores.
        """
        c = self.config
        if not self.first <= start <= self.first + len(self.rotations) - count:
            # Some positions more than needed, but none beyond which all frequencies change.
            ahead = count if c.outgrown_by(start + _POSITIONS) else max(count, _POSITIONS)
            R = np.repeat(np.eye(c.head_width, dtype=self.dtype)[:, None], ahead, axis=1)  # (K, positions, K)
            if c.positions == "rotary":
                angles = rotary_angles(start + np.arange(ahead), c.head_width, c.rope_base, c.rope_scaling)
                R = rotate(R, angles=angles, pairing=c.pairing)
            self.first, self.rotations = start, np.stack([c.score_scale * R, R]).transpose(2, 0, 1, 3).copy()
        return self.rotations[start - self.first :]


class ReadingStep(DecodingStep):
    """Read a few tokens of each of a few sequences: `model.hidden(params, tokens, cache=cache)`.

    cache: of B sequences   ->   a function of the tokens' embeddings (B, T, D): (B, T, D)

    >>> from mathllm.transformer import Transformer, llama_config
    >>> model = Transformer(llama_config(vocabulary=10, width=8, layers=2, heads=2, hidden=16))
    >>> params = model.init(np.random.default_rng(0))
    >>> step = ReadingStep(model.config, params, KVCache(model.config, capacity=3))
    >>> x = model.embed(params, np.array([[1, 2, 3]]), np.arange(3))
    >>> np.allclose(step(x), model.hidden(params, [[1, 2, 3]]))
    True
    """

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """The last vectors of these tokens, whose keys and values are stored."""
        cache, (B, T, D) = self.cache, x.shape
        self.rows = B, T
        self.rotation = self._rotations(cache.length, T)[:T, 1]  # (T, K, K)
        mask = cache.advance((B, T))  # None where all that is stored is visible, else (T, S) or (B, 1, T, S)
        if mask is not None:  # it is the same for the H/G heads that share a key head
            mask = np.tile(mask.reshape(-1, 1, *mask.shape[-2:]), (self.config.heads // self.config.kv_heads, 1))
        x = x.astype(self.dtype, copy=False).reshape(B * T, D)
        return self._layers(x, map(cache.layer, range(self.config.layers)), mask).reshape(B, T, D)

    def _attention(self, x, block, layer, mask):
        """layer: stores the new keys and values and returns all (B, G, S, K); heads that share them form one matrix."""
        (B, T), width, H, G = self.rows, self.config.head_width, self.config.heads, self.config.kv_heads
        heads = block.queries_keys_values(x).reshape(B, T, -1, width)
        turned = heads[:, :, : H + G] @ self.rotation if self.config.positions == "rotary" else heads[:, :, : H + G]
        new = turned[:, :, H:].swapaxes(1, 2), heads[:, :, H + G :].swapaxes(1, 2)
        query = turned[:, :, :H].reshape(B, T, G, -1, width).transpose(0, 2, 3, 1, 4).reshape(B, G, -1, width)
        mixed = attention(query, *layer(*new), mask=mask, scale=self.config.score_scale)  # (B, G, H/G·T, K)
        return block.output(mixed.reshape(B, G, -1, T, width).transpose(0, 3, 1, 2, 4).reshape(B * T, -1))

    def _norm(self, x, params):
        """`rms_norm` or `layer_norm` of each row."""
        x = x - x.dot(self.mean)[:, None] if "bias" in params else x
        y = x * (np.vecdot(x, x)[:, None] / x.shape[1] + self.config.norm_epsilon) ** -0.5 * params["gain"]
        return y + params["bias"] if "bias" in params else y


class _Block:
    """The norms of a block, and for each matrix the function x -> x W + b; queries, keys and values are one matrix."""

    def __init__(self, params):
        attention, network = params["attention"], params["feed_forward"]
        self.attention_norm, self.feed_forward_norm = params["attention_norm"], params["feed_forward_norm"]
        self.queries_keys_values = _linear(attention, "query", "key", "value")
        self.output = _linear(attention, "output")
        self.gate = "gate" in network and _linear(network, "gate")
        self.up, self.down = _linear(network, "up"), _linear(network, "down")


def _linear(params, *names):
    times = _times(_as_one(params, names))
    b = joined(params, [f"{name}_bias" for name in names]) if f"{names[0]}_bias" in params else None
    return times if b is None else lambda x: times(x) + b


def _times(W):
    """x -> x W. Where the columns of W lie together in memory, OpenBLAS needs less time for Wᵀ xᵀ if x has few rows."""
    return (lambda x: x.dot(W)) if W.flags.c_contiguous else lambda x: np.ascontiguousarray(W.T.dot(x.T).T)


def _as_one(params, names):
    """The matrices as one; without a copy if their columns follow one another in memory."""
    matrices = [params[name] for name in names]
    first, places = matrices[0], [matrix.ctypes.data for matrix in matrices]
    ends = [place + matrix.nbytes for place, matrix in zip(places, matrices, strict=True)]
    together = all(matrix.flags.f_contiguous and matrix.base is first.base is not None for matrix in matrices)
    if together and places[1:] == ends[:-1] and {matrix.dtype for matrix in matrices} == {first.dtype}:
        shape = len(first), sum(matrix.shape[1] for matrix in matrices)
        return np.lib.stride_tricks.as_strided(first, shape, first.strides, writeable=False)
    return joined(params, names)


def _silu(z):
    """z (1 + tanh(z/2))/2"""
    half = _HALF * z
    return half + half * np.tanh(half)


def _gelu_tanh(z):
    """z (1 + tanh u)/2 with u = √(2/π) (z + 0.044715 z³)."""
    half = _HALF * z
    return half + half * np.tanh(z * (_ROOT + _ROOT * 0.044715 * (z * z)))


_HALF, _ROOT = np.array(0.5, np.float32), math.sqrt(2 / math.pi)  # NumPy would turn a number into an array each time
_ACTIVATIONS = {"silu": _silu, "gelu_tanh": _gelu_tanh}
