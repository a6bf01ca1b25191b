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
from .block import joined

_POSITIONS = 32  # positions whose rotations are computed at a time


class DecodingStep:
    """Read one token: the logits that `model(params, [[token]], cache=cache)` gives.

        x ← x + Attention(q, [K; k], [V; v]) W_o,      x ← x + FFN(norm(x)),      logits = norm(x_L) Eᵀ

    where q, k and v are computed from norm(x).

    cache: of one sequence, which may hold a text already   blocks: those of another step for the same parameters
    ->   a function of a token id: (V,)

    The matrices of queries, keys and values are copied into one, since small products are slow. So a step, like its
    cache, is for parameters that do not change.

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
        self.scale = self.dtype.type(config.score_scale)
        self.ones = np.ones(max(config.width, cache.capacity), self.dtype)
        self.first, self.rotations = 0, ()  # of the positions from the first on
        parts = ("attention", "feed_forward")
        self.blocks = blocks or [
            [(block[f"{part}_norm"], _linears(block[part])) for part in parts] for block in params["blocks"]
        ]

    def __call__(self, token: int) -> np.ndarray:
        """The logits after one more token."""
        c, cache, params = self.config, self.cache, self.params
        if not 0 <= token < c.vocabulary:
            raise ValueError(f"the model has tokens from 0 to {c.vocabulary - 1}, got {token}")
        x = params["embedding"][token].astype(self.dtype, copy=False)  # (D,)
        if c.positions == "learned":
            x = x + params["positions"][cache.counts[0]]
        self._rotate_to(cache.length, 1)
        mask = cache.advance((1, 1))  # None where all that is stored is visible, else (1, 1, 1, S)
        x = self._layers(x, zip(*cache.new_token(), strict=True), mask)
        return x.dot(params["embedding"].T if c.tied else params["unembedding"])  # (V,)

    def _layers(self, x, stored, mask):
        """The vectors after the last norm; stored: of the cache, for each layer."""
        activation = _ACTIVATIONS[self.config.activation]
        with np.errstate(over="ignore"):  # in an activation, whose value is 0 then
            for ((norm, attention), (network_norm, network)), layer in zip(self.blocks, stored, strict=True):
                x = x + self._attention(self._norm(x, norm), attention, layer, mask)
                h = self._norm(x, network_norm)
                gated = "gate" in network
                hidden = activation(network["gate"](h)) * network["up"](h) if gated else activation(network["up"](h))
                x = x + network["down"](hidden)
            return self._norm(x, self.params["final_norm"])

    def _attention(self, x, linears, layer, mask):
        """layer: keys and values (G, S, K), of which the last are to be written."""
        (keys, values), width, H, G = layer, self.config.head_width, self.config.heads, self.config.kv_heads
        heads = linears["query key value"](x).reshape(-1, width)
        turned = heads[: H + G] if self.rotation is None else heads[: H + G].dot(self.rotation[0])
        keys[:, -1], values[:, -1] = turned[H:], heads[H + G :]
        query = turned[:H] * self.scale
        scores = query.reshape(len(keys), -1, width) @ keys.swapaxes(1, 2)  # (G, H/G, S)
        if mask is not None:
            scores = np.where(mask[0], scores, -np.inf).astype(scores.dtype)
        scores -= np.maximum.reduce(scores, axis=-1, keepdims=True)
        np.exp(scores, out=scores)
        mixed = scores @ values
        mixed /= scores.dot(self.ones[: scores.shape[-1]])[..., None]
        return linears["output"](mixed.reshape(-1))

    def _norm(self, x, params):
        """`rms_norm` (12.3) or `layer_norm` (12.2) of each vector."""
        if self.config.norm == "layer":
            x = x - self._mean(x, self.ones[: x.shape[-1]])
        y = x * (self._mean(x, x) + self.config.norm_epsilon) ** -0.5 * params["gain"]
        return y + params["bias"] if "bias" in params else y

    def _mean(self, a, b):
        """The mean of a ⊙ b."""
        return a.dot(b) / len(b)

    def _rotate_to(self, start, count):
        """The rotations of the next `count` positions as matrices R (count, K, K): the rotated x is x R, by (10.11)."""
        c = self.config
        if c.positions == "rotary" and not self.first <= start <= self.first + len(self.rotations) - count:
            # Some positions more than needed, but none beyond which all frequencies change.
            ahead = count if c.outgrown_by(start + _POSITIONS) else max(count, _POSITIONS)
            angles = rotary_angles(start + np.arange(ahead), c.head_width, c.rope_base, c.rope_scaling)
            units = np.repeat(np.eye(c.head_width, dtype=self.dtype)[:, None], ahead, axis=1)  # (K, positions, K)
            rotated = rotate(units, angles=angles, pairing=c.pairing).swapaxes(0, 1)
            self.first, self.rotations = start, np.ascontiguousarray(rotated)
        self.rotation = self.rotations[start - self.first :][:count] if c.positions == "rotary" else None


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
        self._rotate_to(cache.length, T)
        mask = cache.advance((B, T))  # None where all that is stored is visible, else (T, S) or (B, 1, T, S)
        if mask is not None:
            mask = mask.reshape(-1, 1, 1, *mask.shape[-2:])
        x = x.astype(self.dtype, copy=False).reshape(B * T, D)
        return self._layers(x, map(cache.layer, range(self.config.layers)), mask).reshape(B, T, D)

    def _attention(self, x, linears, layer, mask):
        """layer: stores the new keys and values and returns all (B, G, S, K)."""
        (B, T), width, H, G = self.rows, self.config.head_width, self.config.heads, self.config.kv_heads
        heads = linears["query key value"](x).reshape(B, T, -1, width)
        turned = heads[:, :, : H + G] if self.rotation is None else heads[:, :, : H + G] @ self.rotation
        new = turned[:, :, H:].swapaxes(1, 2), heads[:, :, H + G :].swapaxes(1, 2)
        keys, values = (x[:, :, None] for x in layer(*new))  # (B, G, 1, S, K)
        query = turned[:, :, :H].reshape(B, T, G, -1, width).transpose(0, 2, 3, 1, 4)  # (B, G, H/G, T, K)
        mixed = attention(query, keys, values, mask=mask, scale=self.scale).transpose(0, 3, 1, 2, 4)
        return linears["output"](mixed.reshape(B * T, -1))

    def _mean(self, a, b):
        """The mean of a ⊙ b along the last axis, (B·T, 1)."""
        return np.vecdot(a, b)[:, None] / b.shape[-1]


def _linears(params):
    """For each matrix of a sublayer the function x -> x W + b; those of queries, keys and values are one."""
    network = [[name] for name in ("gate", "up", "down") if name in params]
    groups = network or [["query", "key", "value"], ["output"]]
    return {" ".join(names): _linear(params, names) for names in groups}


def _linear(params, names):
    W = joined(params, names)
    b = joined(params, [f"{name}_bias" for name in names]) if f"{names[0]}_bias" in params else None
    return (lambda x: x.dot(W)) if b is None else lambda x: x.dot(W) + b


def _silu(z):
    return z / (1 + np.exp(-z))


def _gelu_tanh(z):
    """z (1 + tanh u)/2 = z / (1 + e⁻²ᵘ) with u = √(2/π) (z + 0.044715 z³)."""
    return z / (1 + np.exp(z * (-2 * _ROOT - 2 * _ROOT * 0.044715 * (z * z))))


_ROOT = math.sqrt(2 / math.pi)
_ACTIVATIONS = {"silu": _silu, "gelu_tanh": _gelu_tanh}
