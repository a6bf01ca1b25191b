"""Reading one token, or a few: no checks and no records between the products.

For few tokens a step takes about as long as reading the weights from memory. What a model does besides (to check its
input, to record derivatives, to show intermediates) would cost a small one more time than its arithmetic.
"""

import numpy as np

from ..attention import rotary_angles, rotate
from ..inference import KVCache
from ..transformer import Config
from ..trees import tree_leaves
from .block import ACTIVATIONS

_POSITIONS = 16  # positions whose rotations are computed at a time


class DecodingStep:
    """Read one token: the logits that `model(params, [[token]], cache=cache)` gives.

        x ← x + W_o Attention(q, [K; k], [V; v]),      x ← x + FFN(norm(x)),      logits = E norm(x_L)

    cache: of one sequence, which may hold a text already   ->   a function of a token id: (V,)

    >>> from mathllm.transformer import Transformer, llama_config
    >>> model = Transformer(llama_config(vocabulary=10, width=8, layers=2, heads=2, hidden=16))
    >>> params = model.init(np.random.default_rng(0))
    >>> step = DecodingStep(model.config, params, KVCache(model.config, capacity=3))
    >>> np.allclose([step(token) for token in (1, 2, 3)], model(params, [[1, 2, 3]])[0])
    True
    """

    def __init__(self, config: Config, params: dict, cache: KVCache):
        self.config, self.params, self.cache = config, params, cache
        self.dtype = np.result_type(cache.keys, *{leaf.dtype for leaf in tree_leaves(params)})
        self.unembedding = params["embedding"].T if config.tied else params["unembedding"]
        self.first = None

    def __call__(self, token: int) -> np.ndarray:
        """The logits after one more token."""
        c, cache, params = self.config, self.cache, self.params
        if not 0 <= token < c.vocabulary:
            raise ValueError(f"the model has tokens from 0 to {c.vocabulary - 1}, got {token}")
        x = params["embedding"][token].astype(self.dtype, copy=False)  # (D,)
        if c.positions == "learned":
            x = x + params["positions"][cache.counts[0]]
        self._rotate_to(cache.length)
        mask = cache.advance((1, 1))  # None where all that is stored is visible, else (1, 1, 1, S)
        for block, keys, values in zip(params["blocks"], *cache.new_token(), strict=True):
            x = x + self._attention(self._norm(x, block["attention_norm"]), block["attention"], keys, values, mask)
            x = x + self._network(self._norm(x, block["feed_forward_norm"]), block["feed_forward"])
        return self._norm(x, params["final_norm"]).dot(self.unembedding)  # (V,)

    def _attention(self, x, params, keys, values, mask):
        """keys, values: (G, S, K), of which the last are to be written."""
        width = self.config.head_width
        query = _linear(x, params, "query").reshape(-1, width)
        key = _linear(x, params, "key").reshape(-1, width)
        values[:, -1] = _linear(x, params, "value").reshape(-1, width)
        keys[:, -1] = key if self.rotation is None else key.dot(self.rotation)
        query = query * self.scale if self.rotation is None else query.dot(self.scaled_rotation)
        scores = query.reshape(len(keys), -1, width) @ keys.swapaxes(1, 2)  # (G, H/G, S)
        if mask is not None:
            scores = np.where(mask[0], scores, -np.inf).astype(scores.dtype)
        scores -= np.maximum.reduce(scores, axis=-1, keepdims=True)
        np.exp(scores, out=scores)
        mixed = scores @ values / np.add.reduce(scores, axis=-1, keepdims=True)
        return _linear(mixed.reshape(-1), params, "output")

    def _network(self, x, params):
        function, up = ACTIVATIONS[self.config.activation], _linear(x, params, "up")
        hidden = function(_linear(x, params, "gate"))[0] * up if "gate" in params else function(up)[0]
        return _linear(hidden, params, "down")

    def _norm(self, x, params):
        """`rms_norm` (12.3) or `layer_norm` (12.1) of one vector."""
        if self.config.norm == "layer":
            x = x - x.sum() / x.dtype.type(len(x))
        scale = x.dtype.type((float(x.dot(x)) / len(x) + self.config.norm_epsilon) ** -0.5)
        y = x * scale * params["gain"]
        return y + params["bias"] if "bias" in params else y

    def _rotate_to(self, position):
        """The rotation of this position as a matrix R (K, K): the rotated x is x R, by (10.14)."""
        c = self.config
        self.scale, self.rotation = self.dtype.type(c.score_scale), None
        if c.positions != "rotary":
            return
        first, place = position - position % _POSITIONS, position % _POSITIONS
        if first != self.first:
            self.first, self.rotations = first, _rotations(c, first + np.arange(_POSITIONS), self.dtype)
            self.scaled_rotations = self.scale * self.rotations
        self.rotation, self.scaled_rotation = self.rotations[place], self.scaled_rotations[place]


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
        c, cache, (B, T, D), start = self.config, self.cache, x.shape, self.cache.length
        self.scale, self.rotation = self.dtype.type(c.score_scale), None
        if c.positions == "rotary":
            self.rotation = _rotations(c, start + np.arange(T), self.dtype)  # (T, K, K)
        mask = cache.advance((B, T))  # None where all that is stored is visible, else (T, S) or (B, 1, T, S)
        if mask is not None:
            mask = mask.reshape(-1, 1, 1, *mask.shape[-2:])
        self.rows, x = (B, T), x.astype(self.dtype, copy=False).reshape(B * T, D)
        for number, block in enumerate(self.params["blocks"]):
            h = self._norm(x, block["attention_norm"])
            x = x + self._attention(h, block["attention"], cache.layer(number), mask)
            x = x + self._network(self._norm(x, block["feed_forward_norm"]), block["feed_forward"])
        return self._norm(x, self.params["final_norm"]).reshape(B, T, D)

    def _attention(self, x, params, extend, mask):
        """extend: of the cache, stores the new keys and values and returns all (B, G, S, K)."""
        (B, T), G, width = self.rows, self.config.kv_heads, self.config.head_width
        query, key, value = (_linear(x, params, name).reshape(B, T, -1, width) for name in ("query", "key", "value"))
        if self.rotation is not None:
            query, key = query @ self.rotation, key @ self.rotation
        keys, values = extend(key.swapaxes(1, 2), value.swapaxes(1, 2))
        query = (query * self.scale).reshape(B, T, G, -1, width).transpose(0, 2, 3, 1, 4).reshape(B, G, -1, width)
        scores = (query @ keys.swapaxes(2, 3)).reshape(B, G, -1, T, keys.shape[2])  # (B, G, H/G, T, S)
        if mask is not None:
            scores = np.where(mask, scores, -np.inf).astype(scores.dtype, copy=False)
        scores -= scores.max(axis=-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=-1, keepdims=True)
        mixed = scores.reshape(B, G, -1, keys.shape[2]) @ values  # (B, G, H/G · T, K)
        mixed = mixed.reshape(B, G, -1, T, width).transpose(0, 3, 1, 2, 4)
        return _linear(mixed.reshape(B * T, -1), params, "output")

    def _norm(self, x, params):
        """`rms_norm` or `layer_norm` of each row."""
        if self.config.norm == "layer":
            x = x - x.mean(axis=1, keepdims=True)
        scale = (np.vecdot(x, x) / x.shape[1] + self.config.norm_epsilon) ** -0.5
        y = x * scale[:, None].astype(x.dtype, copy=False) * params["gain"]
        return y + params["bias"] if "bias" in params else y


def _rotations(config, positions, dtype):
    """The rotations of these positions as matrices (T, K, K)."""
    c = config
    angles = rotary_angles(positions, c.head_width, c.rope_base, c.rope_scaling)
    units = np.repeat(np.eye(c.head_width, dtype=dtype)[:, None], len(positions), axis=1)  # (K, T, K)
    return np.ascontiguousarray(rotate(units, angles=angles, pairing=c.pairing).swapaxes(0, 1))


def _linear(x, params, name):
    y = x.dot(params[name])
    bias = params.get(f"{name}_bias")
    return y if bias is None else y + bias
