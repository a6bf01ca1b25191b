"""The block of GPT-2 and LLaMA, forward and backward, with fewer passes over memory than its readable form.

Much of a step of a small model is not matrix products (benchmarks/README.md), and fresh memory comes from the operating
system page by page. Each function of this module equals functions of chapters 8 to 12 up to rounding, and returns its
value and its pullback as they do. What it saves is measured in benchmarks/README.md:

    joined     matrices that multiply the same vectors become one
    causal     scores are computed in blocks of queries, up to the last key that a block may attend to
    in place   elementwise functions overwrite their arguments, or leave their derivatives there
    memory     arrays have names, and the next step uses them again
"""

import functools
import math
from collections.abc import Callable

import numpy as np

from ..softmax import softmax_in_place
from ..transformer import Config

_BLOCK = 64  # queries whose scores are computed at a time
_CACHE = 1 << 18  # scores that are computed at a time


class Memory:
    """Arrays by name, used again in each step: fresh memory comes from the operating system page by page.

    >>> memory = Memory()
    >>> memory("scores", (2, 3), np.float32) is memory("scores", (2, 3), np.float32)
    True
    """

    def __init__(self):
        self.arrays = {}

    def __call__(self, name: object, shape: tuple[int, ...], dtype: type | np.dtype) -> np.ndarray:
        """The array of this name, with whatever it holds."""
        array = self.arrays.get(name)
        if array is None or array.shape != shape or array.dtype != dtype:
            array = self.arrays[name] = np.empty(shape, dtype)
        return array

    def product(self, name: object, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """a @ b, in the array of this name."""
        return np.matmul(a, b, out=self(name, (len(a), b.shape[1]), a.dtype))


def normalise(x: np.ndarray, params: dict, epsilon: float, centred: bool, memory: Memory, name: object) -> tuple:
    """`rms_norm`, or `layer_norm` if centred: y = γ ⊙ x̂ + β; pullback(dy) -> dx, in dy's place, and dγ and dβ.

        x̂ = c / s,   s = √(mean(c²) + ε),   c = x or x − mean(x);      dx = (u − x̂ mean(u ⊙ x̂) [− mean(u)]) / s

    with u = γ ⊙ dy; the code calls x̂ `unit`.

    x: (N, D)   ->   (N, D)

    >>> normalise(np.array([[3.0, 3.0, -3.0]]), {"gain": np.array([1, 1, 2])}, 0.0, False, Memory(), "norm")[0]
    array([[ 1.,  1., -2.]])
    """
    unit, gain, width = memory(name, x.shape, x.dtype), params["gain"], x.shape[1]
    if centred:
        x = np.subtract(x, _row_means(x), out=unit)
    inverse = (1 / np.sqrt(np.vecdot(x, x) / width + epsilon))[:, None].astype(x.dtype)
    np.multiply(x, inverse, out=unit)
    y = np.multiply(unit, gain, out=memory((name, "y"), x.shape, x.dtype))
    if "bias" in params:
        y += params["bias"]

    def pullback(dy):
        gradient = {"gain": np.einsum("nd, nd -> d", dy, unit)}
        if "bias" in params:
            gradient["bias"] = _column_sums(dy)
        dy *= gain
        dy -= np.multiply(unit, np.vecdot(dy, unit)[:, None] / width, out=memory("scratch", unit.shape, unit.dtype))
        if centred:
            dy -= _row_means(dy)
        dy *= inverse
        return dy, gradient

    return y, pullback


def _row_means(x):
    """The mean of each row, (N, 1): as a product it is several times as fast as with `mean`."""
    return x.dot(np.full(x.shape[1], 1 / x.shape[1], x.dtype))[:, None]


def _column_sums(x):
    """The sum of each column, (n,), as a product."""
    return np.ones(len(x), x.dtype).dot(x)


def joined_linear(x: np.ndarray, params: dict, names: list[str], memory: Memory, place: object) -> tuple:
    """`linear` with several matrices at once: y = x [W₁ W₂ …] + [b₁ b₂ …]; pullback(dy) -> dx, dW₁, dW₂ … db₁, db₂ ….

    x: (N, D)   names: of the matrices (D, n₁), (D, n₂) …   ->   (N, n₁ + n₂ + …)

    >>> params = {"query": np.eye(2), "key": np.ones((2, 1))}
    >>> joined_linear(np.array([[3.0, 4.0]]), params, ["query", "key"], Memory(), "y")[0]
    array([[3., 4., 7.]])
    """
    matrix = np.concatenate([params[name] for name in names], axis=1)
    ends = np.cumsum([params[name].shape[1] for name in names])[:-1]
    y = memory.product(place, x, matrix)

    def parts(joined):
        return zip(names, np.split(joined, ends, axis=-1), strict=True)

    for name, part in parts(y):
        if f"{name}_bias" in params:
            part += params[f"{name}_bias"]

    def pullback(dy):
        gradient = dict(parts(x.T @ dy))
        biases = {f"{name}_bias" for name in names} & params.keys()
        if biases:
            gradient |= {f"{name}_bias": part for name, part in parts(_column_sums(dy)) if f"{name}_bias" in biases}
        return memory.product(("dx", names[0]), dy, matrix.T), gradient

    return y, pullback


def block(
    x: np.ndarray, params: dict, config: Config, rotation: tuple | None, sizes: tuple, memory: Memory, layer: int
) -> tuple:
    """`Transformer.block` with a causal mask; pullback(dy) -> dx, the gradient of the parameters of the block.

    x: (B·T, D)   sizes: (B, T)   rotation: `rotation_factors` of the positions, or None
    layer: the number of the block, for the names of its arrays   ->   (B·T, D)

    >>> from mathllm.attention import causal_mask
    >>> from mathllm.transformer import Transformer, gpt2_config
    >>> model = Transformer(gpt2_config(vocabulary=10, width=8, layers=1, heads=2))
    >>> params, x = model.init(np.random.default_rng(0))["blocks"][0], np.random.default_rng(1).normal(size=(3, 8))
    >>> y, pullback = block(x, params, model.config, None, (1, 3), Memory(), 0)
    >>> np.allclose(y, model.block(x, params, mask=causal_mask(3), tap=lambda name, value: value))
    True
    """
    attend = functools.partial(_attention, rotation=rotation, sizes=sizes)
    sublayer = functools.partial(_sublayer, params=params, config=config, memory=memory, layer=layer)
    x, attention_pullback = sublayer(x, attend, "attention", ["query", "key", "value"], "output")
    network = ["gate", "up"] if config.gated else ["up"]
    y, network_pullback = sublayer(x, _activated, "feed_forward", network, "down")

    def pullback(dy):
        dx, dnetwork = network_pullback(dy)
        dx, dattention = attention_pullback(dx)
        return dx, dattention | dnetwork

    return y, pullback


def _sublayer(x, function, name, kinds, output, params, config, memory, layer):
    """x + f(norm(x) W) W_out + b_out with f = `function`; pullback(dy) -> dx, the gradient of this part."""
    own, norm, place, bias = params[name], params[f"{name}_norm"], (name, layer), f"{output}_bias"
    h, norm_pullback = normalise(x, norm, config.norm_epsilon, config.norm == "layer", memory, ("norm", *place))
    wide, wide_pullback = joined_linear(h, own, kinds, memory, ("wide", *place))
    hidden, hidden_pullback = function(wide, config, memory, layer)
    y = memory.product(("sum", *place), hidden, own[output])
    y += x
    if bias in own:
        y += own[bias]

    def pullback(dy):
        gradient = {output: hidden.T @ dy} | ({bias: _column_sums(dy)} if bias in own else {})
        dhidden = memory.product(("dx", output), dy, own[output].T)
        dh, more = wide_pullback(hidden_pullback(dhidden))
        dx, dnorm = norm_pullback(dh)
        dx += dy
        return dx, {f"{name}_norm": dnorm, name: gradient | more}

    return y, pullback


def _attention(projected, config, memory, layer, rotation, sizes):
    """The mixed values of all heads, (B·T, H·K), from queries, keys and values side by side, (B·T, (H + 2G) K)."""
    c, (B, T), dtype = config, sizes, projected.dtype
    split = functools.partial(_heads, sizes=sizes, kv_heads=c.kv_heads, width=c.head_width)
    ends = np.cumsum([c.heads, c.kv_heads]) * c.head_width
    mixed = memory(("mixed", layer), (B * T, c.heads * c.head_width), dtype)
    projected[:, : ends[0]] *= c.score_scale
    if rotation is not None:
        _rotate(projected[:, : ends[1]].reshape(B, T, -1), *rotation, c)
    query, key, value, out = map(split, (*np.split(projected, ends, axis=1), mixed))
    tiles = []  # queries, the keys that they see, and their weights
    for rows, seen in _causal_tiles(B, c.heads, T):
        place, shape = ("weights", layer, len(tiles)), (*query[rows].shape[:-1], key[seen].shape[-2])
        weights = np.matmul(query[rows], key[seen].swapaxes(-1, -2), out=memory(place, shape, dtype))
        weights[..., -shape[-2] :] += np.triu(np.full((shape[-2],) * 2, -np.inf, dtype), 1)
        softmax_in_place(weights)
        np.matmul(weights, value[seen], out=out[rows])
        tiles.append((rows, seen, weights))

    def pullback(dmixed):
        dprojected = memory("dprojected", projected.shape, dtype)
        dprojected[...] = 0
        dquery, dkey, dvalue, dout = map(split, (*np.split(dprojected, ends, axis=1), dmixed))
        for rows, seen, weights in tiles:
            dscores = memory("dscores", weights.shape, dtype)
            np.matmul(dout[rows], value[seen].swapaxes(-1, -2), out=dscores)
            dscores -= np.vecdot(dscores, weights)[..., None]  # dS = A ⊙ (dA − rowsum(dA ⊙ A)), as in (10.16)
            dscores *= weights
            np.matmul(dscores, key[seen], out=dquery[rows])
            dkey[seen] += _summed(dscores, query[rows])
            dvalue[seen] += _summed(weights, dout[rows])
        if rotation is not None:
            cosine, sine = rotation
            _rotate(dprojected[:, : ends[1]].reshape(B, T, -1), cosine, -sine, c)
        dprojected[:, : ends[0]] *= c.score_scale
        return dprojected

    return mixed, pullback


def _activated(wide, config, memory, layer):
    """φ(gate) ⊙ up, or φ(up), (N, F); its derivatives by gate and up take their places in `wide`."""
    function, parts = ACTIVATIONS[config.activation], wide.shape[1] // config.hidden
    hidden = memory(("hidden", layer), (len(wide), config.hidden), wide.dtype)
    z, *up = np.split(wide, parts, axis=1)
    value, slope = function(z)
    np.multiply(value, up[0] if up else 1, out=hidden)
    np.multiply(slope, up[0] if up else 1, out=z)
    for factor in up:
        factor[...] = value

    def pullback(dhidden):
        for part in np.split(wide, parts, axis=1):
            part *= dhidden
        return wide

    return hidden, pullback


def _silu(z):
    """`silu` and its derivative: z σ and σ + z σ (1 − σ), with σ = 1/(1 + e^(−z))."""
    return _gated(z, -z, None)


def _gelu_tanh(z):
    """`gelu_tanh` and its derivative: z σ and σ + z σ (1 − σ) w′, with σ = 1/(1 + e^(−w)), w = 2s (z + 0.044715 z³).

    It has (1 + tanh(w/2))/2 = σ, with s = √(2/π).
    """
    twice, square = 2 * math.sqrt(2 / math.pi), z * z
    minus_w = square * (-0.044715 * twice)
    minus_w -= twice
    minus_w *= z
    square *= 3 * 0.044715 * twice
    square += twice
    return _gated(z, minus_w, square)


def _gated(z, minus_w, dw):
    """z σ(w) and its derivative; minus_w is overwritten, and dw = w′ is 1 if not given."""
    with np.errstate(over="ignore"):  # σ is 0 then
        sigma = np.exp(minus_w, out=minus_w)
    sigma += 1
    np.divide(1, sigma, out=sigma)
    value = z * sigma
    slope = 1 - sigma
    slope *= value
    if dw is not None:
        slope *= dw
    slope += sigma
    return value, slope


ACTIVATIONS: dict[str, Callable] = {"silu": _silu, "gelu_tanh": _gelu_tanh}


def rotation_factors(angles: np.ndarray, config: Config, dtype: type | np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """What `_rotate` multiplies queries and keys and their partners with: cos θ, and −sin θ or sin θ; see (10.11).

    angles: (T, K/2)   ->   (T, (H + G) K), (T, (H + G) K)

    >>> from mathllm.transformer import llama_config
    >>> config = llama_config(vocabulary=10, width=4, layers=1, heads=1)  # one head of queries, one of keys
    >>> _, sine = rotation_factors(np.array([[np.pi / 2, np.pi / 6]]), config, np.float32)
    >>> sine
    array([[-1. , -0.5,  1. ,  0.5, -1. , -0.5,  1. ,  0.5]], dtype=float32)
    """
    _, axis = _pairs(config)

    def wide(first, second):
        pairs = np.stack([first, second], axis).reshape(len(angles), -1)
        return np.tile(pairs, config.heads + config.kv_heads).astype(dtype)

    cosine, sine = np.cos(angles), np.sin(angles)
    return wide(cosine, cosine), wide(-sine, sine)


def _rotate(x, cosine, sine, config):
    """`rotate`, in place, of (B, T, (H + G) K)."""
    shape, axis = _pairs(config)
    partner = np.flip(x.reshape(*x.shape[:2], -1, *shape), axis).reshape(x.shape)
    partner *= sine
    x *= cosine
    x += partner


def _pairs(config):
    """The shape in which a head's pairs are told apart, and the axis of the two partners."""
    half = config.head_width // 2
    return ((half, 2), -1) if config.pairing == "adjacent" else ((2, half), -2)


def _heads(x, sizes, kv_heads, width):
    """A view with head axes: (B·T, G·R·width) -> (B, G, R, T, width), R query heads for each key head."""
    return x.reshape(*sizes, kv_heads, -1, width).transpose(0, 2, 3, 1, 4)


def _causal_tiles(texts, heads, length):
    """Indices of (B, G, R, T, K): queries whose scores fit into the cache, and the keys up to the last they see."""
    count = max(1, _CACHE // (heads * length * min(_BLOCK, length)))
    for first in range(0, texts, count):
        for start in range(0, length, _BLOCK):
            stop = min(start + _BLOCK, length)
            yield np.s_[first : first + count, ..., start:stop, :], np.s_[first : first + count, ..., :stop, :]


def _summed(weights, vectors):
    """weightsᵀ vectors, summed over the query heads that share a key head."""
    product = weights.swapaxes(-1, -2) @ vectors
    return product if product.shape[-3] == 1 else product.sum(axis=-3, keepdims=True)
