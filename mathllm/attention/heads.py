"""Many small attentions side by side, each with its own idea of what fits; and fewer keys than queries."""

from ..errors import ShapeError
from .positions import rotate
from .scaled_dot_product import attention, attention_weights


def split_heads(x, heads: int):
    """Cut the width into heads.

    x: (..., T, H·K)   ->   (..., H, T, K)

    Raises: ShapeError if the width is no multiple of the number of heads.
    Source: 003, exercise 21.

    >>> import numpy as np
    >>> split_heads(np.ones((2, 5, 768)), 12).shape
    (2, 12, 5, 64)
    """
    if heads < 1 or x.ndim < 2 or x.shape[-1] % heads:
        raise ShapeError(f"split_heads() cannot cut an array of shape {x.shape} into {heads} heads (see chapter 10)")
    return x.reshape(*x.shape[:-1], heads, x.shape[-1] // heads).swapaxes(-2, -3)


def merge_heads(x):
    """Put the heads side by side again: the inverse of `split_heads`.

    x: (..., H, T, K)   ->   (..., T, H·K)

    >>> import numpy as np
    >>> merge_heads(np.ones((2, 12, 5, 64))).shape
    (2, 5, 768)
    """
    x = x.swapaxes(-2, -3)
    return x.reshape(*x.shape[:-2], x.shape[-2] * x.shape[-1])


def multi_head_attention(
    x, params, *, heads: int, kv_heads: int | None = None,
    context=None, mask=None, bias=None, angles=None, pairing="half", scale=None, record=None, cache=None,
):  # fmt: skip
    """Multi-head attention with learned projections.

        head_h = Attention(x W_q^h, c W_k^h, c W_v^h),      y = [head₁ … head_H] W_o (10.7)

    x: (..., T, D)   params: {"query": (D, H·K), "key": (D, G·K), "value": (D, G·K), "output": (H·K, D)}, each with an
    optional bias under "query_bias" …   context: c (..., S, D), x itself if not given   ->   (..., T, D)

    With `kv_heads` G < H, groups of H/G query heads share a key and value head (grouped-query attention; multi-query
    for G = 1), which makes the cache of keys and values H/G times smaller. `angles` rotates queries and keys (RoPE).
    `scale` replaces 1/√K.
    `record(name, value)`, if given, is told "query", "key", "value", "weights" and "mixed", each with a head axis.
    `cache(key, value)`, if given, is handed the keys and values of x and returns them with those of all tokens before,
    (..., G, S, K); `mask` and `bias` then are (..., T, S).
    Raises: ShapeError if the sizes do not fit.
    Source: 001, §7.2; 003, ch. X; Vaswani et al. 2017, §3.2.2; Ainslie et al. 2023.

    >>> import numpy as np
    >>> params = {name: np.eye(4) for name in ("query", "key", "value", "output")}
    >>> multi_head_attention(np.ones((3, 4)), params, heads=2)[0]
    array([1., 1., 1., 1.])
    """
    kv_heads = heads if kv_heads is None else kv_heads
    if kv_heads < 1 or heads % kv_heads:
        raise ShapeError(f"{heads} query heads cannot share {kv_heads} key and value heads evenly (see chapter 10)")
    context = x if context is None else context
    query = split_heads(_project(x, params, "query"), heads)  # (..., H, T, K)
    key = split_heads(_project(context, params, "key"), kv_heads)  # (..., G, S, K)
    value = split_heads(_project(context, params, "value"), kv_heads)
    if angles is not None:
        query, key = (rotate(part, angles=angles, pairing=pairing) for part in (query, key))
    if cache is not None:
        key, value = cache(key, value)
    groups = heads // kv_heads
    if groups > 1:
        query = query.reshape(*query.shape[:-3], kv_heads, groups, *query.shape[-2:])  # (..., G, H/G, T, K)
        key, value = (p.reshape(*p.shape[:-2], 1, *p.shape[-2:]) for p in (key, value))  # (..., G, 1, S, K)
        mask, bias = (m if m is None or m.ndim < 3 else _grouped(m, kv_heads, groups) for m in (mask, bias))
    mixed = attention(query, key, value, mask, bias, scale=scale)
    if record is not None:
        weights = attention_weights(query, key, mask, bias, scale=scale)
        parts = {"query": query, "key": key, "value": value, "weights": weights, "mixed": mixed}
        for name, part in parts.items():
            record(name, part if groups == 1 else part.reshape(*part.shape[:-4], -1, *part.shape[-2:]))
    if groups > 1:
        mixed = mixed.reshape(*mixed.shape[:-4], heads, *mixed.shape[-2:])
    return _project(merge_heads(mixed), params, "output")


def _project(x, params, name):
    if x.ndim < 2 or x.shape[-1] != params[name].shape[0]:
        wanted = f"(..., T, {params[name].shape[0]}) for its matrix {name!r}"
        raise ShapeError(f"multi_head_attention() needs {wanted}, got shape {x.shape} (see chapter 10)")
    y = x @ params[name]
    return y + params[f"{name}_bias"] if f"{name}_bias" in params else y


def _grouped(mask, kv_heads, groups):
    """A mask with a head axis, (..., H or 1, T, S), for grouped queries: (..., G or 1, H/G or 1, T, S)."""
    heads = mask.shape[-3]
    shape = (1, 1) if heads == 1 else (kv_heads, groups)
    return mask.reshape(*mask.shape[:-3], *shape, *mask.shape[-2:])
