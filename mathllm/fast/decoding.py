"""One token of one sequence: vectors in place of batches, and no checks, masks or records between the products.

For a single token each weight is read once and used once, so a step takes as long as reading the weights from memory.
What a model does besides for a batch would cost a small one more time than its arithmetic.
"""

import numpy as np

from ..attention import rotary_angles, rotate
from ..transformer import Config
from ..trees import tree_leaves
from .block import ACTIVATIONS

_POSITIONS = 16  # positions whose rotations are computed at a time


class DecodingStep:
    """Read one token: the logits that `model(params, [[token]], cache=cache)` gives.

        x ← x + W_o Attention(q, [K; k], [V; v]),      x ← x + FFN(norm(x)),      logits = E norm(x_L)

    cache: of one sequence, which may hold a text already   ->   a function of a token id: (V,)

    >>> from mathllm.inference import KVCache
    >>> from mathllm.transformer import Transformer, llama_config
    >>> model = Transformer(llama_config(vocabulary=10, width=8, layers=2, heads=2, hidden=16))
    >>> params = model.init(np.random.default_rng(0))
    >>> step = DecodingStep(model.config, params, KVCache(model.config, capacity=3))
    >>> np.allclose([step(token) for token in (1, 2, 3)], model(params, [[1, 2, 3]])[0])
    True
    """

    def __init__(self, config: Config, params: dict, cache):
        self.config, self.params, self.cache = config, params, cache
        self.dtype = np.result_type(cache.keys, *{leaf.dtype for leaf in tree_leaves(params)})
        self.unembedding = params["embedding"].T if config.tied else params["unembedding"]
        self.first = None

    def __call__(self, token: int) -> np.ndarray:
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
            angles = rotary_angles(first + np.arange(_POSITIONS), c.head_width, c.rope_base, c.rope_scaling)
            units = np.repeat(np.eye(c.head_width, dtype=self.dtype)[:, None], _POSITIONS, axis=1)  # (K, positions, K)
            rotated = rotate(units, angles=angles, pairing=c.pairing)
            self.first, self.rotations = first, np.ascontiguousarray(rotated.swapaxes(0, 1))
            self.scaled_rotations = self.scale * self.rotations
        self.rotation, self.scaled_rotation = self.rotations[place], self.scaled_rotations[place]


def _linear(x, params, name):
    y = x.dot(params[name])
    bias = params.get(f"{name}_bias")
    return y if bias is None else y + bias
