"""The block of GPT-2 and LLaMA, forward and backward, with fewer passes over memory than its readable form.

Much of a step of a small model is not matrix products (benchmarks/README.md), and fresh memory comes from the operating
system page by page. Each function of this module equals functions of chapters 8 to 12 up to rounding, and returns its
value and its pullback as they do. What it saves is measured in benchmarks/README.md:

    joined     the matrices of queries, keys and values become one
    pairs      two components that rotate together are one complex number
    in place   elementwise functions overwrite their arguments, or leave their derivatives there
    memory     arrays have names, and the next step uses them again
"""

import functools
import math
from collections.abc import Callable

import numpy as np

from ..attention import rotary_angles
from ..transformer import Config

LARGE = 50.0  # sums of exponentials between e^−50 and e^50 neither overflow nor vanish in float32


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


def joined_linear(
    x: np.ndarray, params: dict, names: list[str], memory: Memory, place: object, order: object = slice(None)
) -> tuple:
    """`linear` with several matrices at once: y = x [W₁ W₂ …] + [b₁ b₂ …]; pullback(dy) -> dx, gradient by name.

    x: (N, D)   names: of the matrices (D, n₁), (D, n₂) …   order: an index of the columns of several matrices
    ->   (N, n₁ + n₂ + …)

    >>> params = {"query": np.eye(2), "key": np.ones((2, 1))}
    >>> joined_linear(np.array([[3.0, 4.0]]), params, ["query", "key"], Memory(), "y", np.arange(3))[0]
    array([[3., 4., 7.]])
    """
    biases = [f"{name}_bias" for name in names if f"{name}_bias" in params]
    matrix = joined(params, names, order)
    y = memory.product((place, *names), x, matrix)
    if biases:
        y += joined(params, biases, order)

    def pullback(dy):
        gradient = _separate(x.T @ dy, params, names, order)
        if biases:
            gradient |= _separate(_column_sums(dy), params, biases, order)
        return memory.product(("dx", *names), dy, matrix.T), gradient

    return y, pullback


def joined(params: dict, names: list[str], order: object = slice(None)) -> np.ndarray:
    """The columns of one matrix, or those of several in this order.

    >>> joined({"query": np.eye(2), "key": np.ones((2, 1))}, ["query", "key"])
    array([[1., 0., 1.],
           [0., 1., 1.]])
    """
    if len(names) == 1:
        return params[names[0]]
    return np.concatenate([params[name] for name in names], axis=-1)[..., order]


def _separate(whole, params, names, order):
    """By name what `joined` has joined."""
    if len(names) == 1:
        return {names[0]: whole}
    ends = np.cumsum([params[name].shape[-1] for name in names])[:-1]
    return dict(zip(names, np.split(whole[..., np.argsort(order)], ends, axis=-1), strict=True))


def block(
    x: np.ndarray, params: dict, config: Config, factors: np.ndarray, sizes: tuple, memory: Memory, layer: int
) -> tuple:
    """`Transformer.block` with a causal mask; pullback(dy) -> dx, the gradient of the parameters of the block.

    x: (B·T, D)   sizes: (B, T)   factors: `query_key_factors` of T positions
    layer: the number of the block, for the names of its arrays   ->   (B·T, D)

    >>> from mathllm.attention import causal_mask
    >>> from mathllm.transformer import Transformer, gpt2_config
    >>> model = Transformer(gpt2_config(vocabulary=10, width=8, layers=1, heads=2))
    >>> params, x = model.init(np.random.default_rng(0))["blocks"][0], np.random.default_rng(1).normal(size=(3, 8))
    >>> y, pullback = block(x, params, model.config, query_key_factors(3, model.config, float), (1, 3), Memory(), 0)
    >>> np.allclose(y, model.block(x, params, mask=causal_mask(3), tap=lambda name, value: value))
    True
    """
    attend = functools.partial(_attention, factors=factors, sizes=sizes)
    sublayer = functools.partial(_sublayer, params=params, config=config, memory=memory, layer=layer)
    order = column_order(config)
    x, attention_pullback = sublayer(x, attend, "attention", [["query", "key", "value"]], "output", order)
    network = [["gate"], ["up"]] if config.gated else [["up"]]
    y, network_pullback = sublayer(x, _activated, "feed_forward", network, "down")

    def pullback(dy):
        dx, dnetwork = network_pullback(dy)
        dx, dattention = attention_pullback(dx)
        return dx, dattention | dnetwork

    return y, pullback


def _sublayer(x, function, name, groups, output, order=slice(None), *, params, config, memory, layer):
    """x + f(norm(x) W) W_out + b_out with f = `function`; pullback(dy) -> dx, the gradient of this part."""
    own, norm = params[name], params[f"{name}_norm"]
    h, norm_pullback = normalise(x, norm, config.norm_epsilon, config.norm == "layer", memory, ("norm", name, layer))
    wide, wide_pullbacks = zip(*(joined_linear(h, own, names, memory, layer, order) for names in groups), strict=True)
    hidden, hidden_pullback = function(wide, config, memory, layer)
    y, output_pullback = joined_linear(hidden, own, [output], memory, layer)
    y += x

    def pullback(dy):
        (dhidden, gradient), dh = output_pullback(dy), None
        for wide_pullback, dwide in zip(wide_pullbacks, hidden_pullback(dhidden), strict=True):
            part, more = wide_pullback(dwide)
            dh = part if dh is None else np.add(dh, part, out=part)
            gradient |= more
        dx, dnorm = norm_pullback(dh)
        dx += dy
        return dx, {f"{name}_norm": dnorm, name: gradient}

    return y, pullback


def _attention(wide, config, memory, layer, factors, sizes):
    """The mixed values of all heads, (B·T, H·K), from queries, keys and values side by side, (B·T, (H + 2G) K)."""
    (projected,), c, (B, T) = wide, config, sizes
    dtype = projected.dtype
    split = functools.partial(_heads, sizes=sizes, kv_heads=c.kv_heads, width=c.head_width)
    ends = np.cumsum([c.heads, c.kv_heads]) * c.head_width
    mixed = memory(("mixed", layer), (B * T, c.heads * c.head_width), dtype)
    _multiply(projected[:, : ends[1]], factors, sizes)
    query, key, value, out = map(split, (*np.split(projected, ends, axis=1), mixed))
    weights = np.matmul(query, key.swapaxes(-1, -2), out=memory(("weights", layer), (*query.shape[:-1], T), dtype))
    _causal_softmax(weights)
    np.matmul(weights, value, out=out)

    def pullback(dmixed):
        dprojected = memory("dprojected", projected.shape, dtype)
        dquery, dkey, dvalue, dout = map(split, (*np.split(dprojected, ends, axis=1), dmixed))
        dscores = np.matmul(dout, value.swapaxes(-1, -2), out=memory("dscores", weights.shape, dtype))
        dscores -= np.vecdot(dout, out)[..., None]  # dS = A ⊙ (dA − rowsum(dO ⊙ O)), as in (10.16)
        dscores *= weights
        np.matmul(dscores, key, out=dquery)
        _sum_of_heads(dscores, query, out=dkey)
        _sum_of_heads(weights, dout, out=dvalue)
        _multiply(dprojected[:, : ends[1]], factors.conj(), sizes)
        return [dprojected]

    return mixed, pullback


def _causal_softmax(scores):
    """`softmax` in place of the scores (..., T, T), with a causal mask.

    The largest score of a row is subtracted only where there are large scores: it changes no weight.
    """
    large = max(scores.max(), -scores.min()) > LARGE
    scores += np.triu(np.full(scores.shape[-2:], -np.inf, scores.dtype), 1)
    if large:
        scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= (scores @ np.ones(scores.shape[-1], scores.dtype))[..., None]


def _activated(wide, config, memory, layer):
    """φ(gate) ⊙ up, or φ(up), (N, F); the derivatives take the place of what is not needed any more."""
    z, *up = wide
    value = memory(("value", layer), z.shape, z.dtype)
    ACTIVATIONS[config.activation](z, value)  # z becomes φ′(z)
    for factor in up:
        z *= factor
        factor *= value
    hidden, derivatives = (up[0], [z, value]) if up else (value, [z])

    def pullback(dhidden):
        for derivative in derivatives:
            derivative *= dhidden
        return derivatives

    return hidden, pullback


def _silu(z, value):
    """value ← silu(z) = z σ and z ← its derivative σ + z σ (1 − σ), with σ = 1/(1 + e^(−z))."""
    _gated(z, -z, 1, value)


def _gelu_tanh(z, value):
    """value ← gelu_tanh(z) = z σ and z ← σ + z σ (1 − σ) w′, with σ = 1/(1 + e^(−w)), w = 2s (z + 0.044715 z³).

    It has (1 + tanh(w/2))/2 = σ, with s = √(2/π).
    """
    twice, square = 2 * math.sqrt(2 / math.pi), z * z
    minus_w = square * (-0.044715 * twice)
    minus_w -= twice
    minus_w *= z
    square *= 3 * 0.044715 * twice
    square += twice
    _gated(z, minus_w, square, value)


def _gated(z, minus_w, dw, value):
    """value ← z σ(w) and z ← its derivative σ + z σ (1 − σ) w′, where dw is w′; minus_w is overwritten."""
    with np.errstate(over="ignore"):  # σ is 0 then
        sigma = np.exp(minus_w, out=minus_w)
    sigma += 1
    np.divide(1, sigma, out=sigma)
    np.multiply(z, sigma, out=value)
    np.subtract(1, sigma, out=z)
    z *= value
    z *= dw
    z += sigma


ACTIVATIONS: dict[str, Callable] = {"silu": _silu, "gelu_tanh": _gelu_tanh}


def query_key_factors(length: int, config: Config, dtype: type | np.dtype) -> np.ndarray:
    """What queries and keys are multiplied with: e^(iθ) for each pair (10.11), times the scale of scores for queries.

    ->   (T, (H + G) K/2), complex; without rotary positions (1, (H + G) K)

    >>> from mathllm.transformer import llama_config
    >>> config = llama_config(vocabulary=10, width=4, layers=1, heads=1)  # two pairs of a query, two of a key
    >>> query_key_factors(1, config, np.float32)
    array([[0.5+0.j, 0.5+0.j, 1. +0.j, 1. +0.j]], dtype=complex64)
    """
    c, turn = config, np.ones((1, config.head_width), dtype)
    if c.positions == "rotary":
        turn = np.exp(1j * rotary_angles(np.arange(length), c.head_width, c.rope_base, c.rope_scaling))
        turn = turn.astype(np.result_type(dtype, np.complex64))
    return np.concatenate([turn * turn.dtype.type(c.score_scale)] * c.heads + [turn] * c.kv_heads, axis=1)


def column_order(config: Config) -> np.ndarray:
    """An index of the columns of queries, keys and values that makes the two components of a pair neighbours.

    ->   ((H + 2G) K,)

    >>> from mathllm.transformer import llama_config
    >>> column_order(llama_config(vocabulary=10, width=4, layers=1, heads=1))
    array([ 0,  2,  1,  3,  4,  6,  5,  7,  8,  9, 10, 11])
    """
    c = config
    order = np.arange((c.heads + 2 * c.kv_heads) * c.head_width)
    if c.positions == "rotary" and c.pairing == "half":
        turned = order[: (c.heads + c.kv_heads) * c.head_width]
        turned[:] = turned.reshape(-1, 2, c.head_width // 2).swapaxes(1, 2).reshape(-1)
    return order


def _multiply(x, factors, sizes):
    """x ⊙ factors, in place, of x (B·T, n); if the factors are complex, each pair of neighbours is one number."""
    pairs = x.view(factors.dtype).reshape(*sizes, -1)
    pairs *= factors


def _heads(x, sizes, kv_heads, width):
    """A view with head axes: (B·T, G·R·width) -> (B, G, R, T, width), R query heads for each key head."""
    return x.reshape(*sizes, kv_heads, -1, width).transpose(0, 2, 3, 1, 4)


def _sum_of_heads(weights, vectors, out):
    """out ← weightsᵀ vectors, summed over the query heads that share a key head."""
    if weights.shape[-3] == 1:
        np.matmul(weights.swapaxes(-1, -2), vectors, out=out)
    else:
        np.sum(weights.swapaxes(-1, -2) @ vectors, axis=-3, keepdims=True, out=out)
