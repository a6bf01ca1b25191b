"""Several attentions side by side, each with projections of its own; and fewer heads of keys than of queries."""

from collections.abc import Callable

import numpy as np

from ..autodiff import Array, ArrayLike
from ..errors import ShapeError
from ..matrices import linear
from ..shapes import contract
from .scaled_dot_product import attention


@contract("... T W -> ... H T K")
def split_heads(x: ArrayLike, heads: int) -> np.ndarray:
    """Cut vectors of width W = H·K into H heads of width K.

    Raises: ShapeError if the width is no multiple of the number of heads.
    Source: Vaswani et al. 2017, §3.2.2.

    >>> import numpy as np
    >>> split_heads(np.ones((2, 5, 768)), 12).shape
    (2, 12, 5, 64)
    """
    if heads < 1 or x.shape[-1] % heads:
        raise ShapeError(f"split_heads() cannot cut a width of {x.shape[-1]} into {heads} heads (see chapter 10)")
    return x.reshape(*x.shape[:-1], heads, x.shape[-1] // heads).swapaxes(-2, -3)


@contract("... H T K -> ... T W")
def merge_heads(x: ArrayLike) -> np.ndarray:
    """Put the heads side by side again: the inverse of `split_heads`.

    >>> import numpy as np
    >>> merge_heads(np.ones((2, 12, 5, 64))).shape
    (2, 5, 768)
    """
    x = x.swapaxes(-2, -3)
    return x.reshape(*x.shape[:-2], x.shape[-2] * x.shape[-1])


@contract("... T D -> ... T D")
def multi_head_attention(
    x: ArrayLike, params: dict, *, heads: int, kv_heads: int | None = None,
    context: ArrayLike | None = None, mask: ArrayLike | None = None, bias: ArrayLike | None = None,
    rotation: Callable | None = None, scale: float | None = None, tap: Callable | None = None,
    cache: Callable | None = None,
) -> np.ndarray:  # fmt: skip
    """Multi-head attention with learned projections.

        head_r = Attention(x W_Q^r, c W_K^r, c W_V^r),      y = [head₁ … head_H] W_O (10.14)

    params: {"query": (D, H·K), "key": (D, G·K), "value": (D, G·K), "output": (H·K, D)}, each with an optional bias
    under "query_bias" …   context: c (..., S, D), x itself if not given

    With `kv_heads` G < H, groups of H/G query heads share a key and value head (grouped-query attention; multi-query
    for G = 1), which makes the cache of keys and values H/G times smaller. `rotation(heads)` rotates queries and keys
    by their positions: see `rotate`. `scale` replaces 1/√K.
    `tap(name, value)`, if given, sees "query", "key", "value", "weights" and "mixed", each with a head axis, and
    returns what is used in its place. `cache(key, value)`, if given, receives the keys and values of x and returns
    them with those of all earlier tokens, (..., G, S, K); `mask` and `bias` then are (..., T, S).
    Raises: ShapeError if the sizes do not fit.
    Source: Vaswani et al. 2017, §3.2.2; Ainslie et al. 2023.

    >>> import numpy as np
    >>> params = {name: np.eye(4) for name in ("query", "key", "value", "output")}
    >>> multi_head_attention(np.ones((3, 4)), params, heads=2)[0]
    array([1., 1., 1., 1.])
    """
    kv_heads = heads if kv_heads is None else kv_heads
    if kv_heads < 1 or heads % kv_heads:
        raise ShapeError(f"{heads} query heads cannot share {kv_heads} key and value heads evenly (see chapter 14)")
    tap = (lambda name, value: value) if tap is None else tap
    context = x if context is None else context
    query = split_heads(project(x, params, "query"), heads)  # (..., H, T, K)
    key = split_heads(project(context, params, "key"), kv_heads)  # (..., G, S, K)
    value = split_heads(project(context, params, "value"), kv_heads)
    if rotation is not None:
        query, key = rotation(query), rotation(key)
    if cache is not None:
        key, value = cache(key, value)
    query, key, value = tap("query", query), tap("key", key), tap("value", value)
    mixed = tap("mixed", _grouped_attention(query, key, value, mask, bias, scale, tap))
    return project(merge_heads(mixed), params, "output")


def project(x: Array, params: dict, name: str) -> np.ndarray:
    """x W + b with the matrix of this name among the parameters, and its bias, if it has one.

    >>> import numpy as np
    >>> project(np.ones(2), {"up": np.eye(2), "up_bias": np.ones(2)}, "up")
    array([2., 2.])
    """
    return linear(x, params[name], params.get(f"{name}_bias"))


def _grouped_attention(query, key, value, mask, bias, scale, tap):
    """Attention of H query heads to G key and value heads: head h attends to the keys of head ⌊h G/H⌋."""
    heads, kv_heads = query.shape[-3], key.shape[-3]
    if heads == kv_heads:
        return attention(query, key, value, mask, bias, scale=scale, tap=tap)

    def merged(x):  # (..., G, R, T, ·) -> (..., H, T, ·)
        return x.reshape(*x.shape[:-4], heads, *x.shape[-2:])

    def grouped(x):  # (..., H, T, ·) -> (..., G, R, T, ·); one head for all stays one
        groups = (kv_heads, heads // kv_heads) if x.shape[-3] == heads else (x.shape[-3], 1)
        return x.reshape(*x.shape[:-3], *groups, *x.shape[-2:])

    def tap_heads(name, weights):
        return grouped(tap(name, merged(weights)))

    mask, bias = (m if m is None or np.ndim(m) < 3 else grouped(m) for m in (mask, bias))
    return merged(attention(grouped(query), grouped(key), grouped(value), mask, bias, scale=scale, tap=tap_heads))
