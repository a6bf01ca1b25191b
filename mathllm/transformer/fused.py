"""The two sublayers of LLaMA, each as one primitive: the same numbers in fewer passes over memory.

A step of a small model spends as long on carrying numbers to and fro as on its matrix products. Here matrices with one
input are one product; the gain of the norm is multiplied into the weights, of which there are fewer than activations;
where one pass over an array follows another, a part of it is taken through all of them while it lies in the cache; and
nothing is computed for keys that the causal mask hides. The readable forms are `rms_norm`, `multi_head_attention`,
`feed_forward`, `embedding` and `cross_entropy`.
"""

import functools

import numpy as np

from ..attention.causal import _causal_sums, _row_sums
from ..autodiff import primitive
from ..autodiff.memory import _empty
from ..cross_entropy import cross_entropy
from ..cross_entropy.loss import _require_labels
from ..vectors import embedding
from .products import _product, _transposed_product

_IGNORED = -100  # a target that counts for nothing

_CACHE = 1 << 18  # numbers that are worked on at a time: fewer fit the cache better, but cost more turns


@primitive
def _attention_sublayer(x, gain, query, key, value, output, *, heads, angles, pairing, scale, epsilon):
    """Attention with norm before and residual sum after: `_attention_sublayer(x, gain, W_q, W_k, W_v, W_o)` equals

        x + multi_head_attention(rms_norm(x, gain), {"query": W_q, …}, mask=causal_mask(T), …)

    x: (B, T, D)   gain: (D,)   query: (D, H·K)   key, value: (D, G·K)   output: (H·K, D)   angles: (T, K/2)
    ->   (B, T, D)
    """
    (B, T, _), K = x.shape, query.shape[1] // heads
    G, dtype = key.shape[1] // K, x.dtype
    ends = [heads * K, (heads + G) * K]  # of the queries and of the keys among the columns
    joined = _side_by_side(query, key, value, K, pairing)
    weights = _times_gain(gain, joined)  # (D, (H + 2G) K)
    turn = _turns(np.asarray(angles, np.float64).tobytes(), K, scale, heads, G, dtype)  # (T, (H + G) K/2) complex
    one_per_head = _one_per_head(heads, K, dtype)
    by_head, total_by_head = (functools.partial(_by_head, kv_heads=G, width=width) for width in (K, 1))

    unit, inverse = _normalise(x, epsilon)
    projected = _product(unit, weights)
    _rotate(projected, turn)
    mixed, total = _empty((B, T, heads * K), dtype), _empty((B, T, heads), dtype)
    views = [*map(by_head, np.split(projected, ends, axis=-1)), by_head(mixed), total_by_head(total)]
    parts = list(_parts(B, heads * T * T))
    pullbacks = [_causal_sums(*(view[part] for view in views)) for part in parts]
    mixed /= (divisors := _product(total, one_per_head))
    y = _product(mixed, output)
    y += x

    def pullback(dy):
        dmixed, dprojected = _product(dy, output.T), _empty(projected.shape, dtype)
        dmixed /= divisors
        along = np.multiply(dmixed, mixed, out=_empty(mixed.shape, dtype))
        dtotal = _product(along, -one_per_head.T)
        views = [*map(by_head, np.split(dprojected, ends, axis=-1)), by_head(dmixed), total_by_head(dtotal)]
        for part, sums_pullback in zip(parts, pullbacks, strict=True):
            sums_pullback(*(view[part] for view in views))
        _rotate(dprojected, turn.conj())
        dx = _normalise_pullback(_product(dprojected, weights.T), unit, inverse)
        dx += dy
        dgain, djoined = _through_gain(gain, joined, _transposed_product(unit, dprojected))
        dquery, dkey, dvalue = np.split(djoined, ends, axis=1)
        dquery, dkey = (_reordered(part, K, "adjacent", pairing) for part in (dquery, dkey))
        return dx, dgain, dquery, dkey, dvalue, _transposed_product(mixed, dy)

    return y, pullback


@primitive
def _feed_forward_sublayer(x, gain, gate, up, down, *, epsilon):
    """SwiGLU with norm before and residual sum after: `_feed_forward_sublayer(x, gain, W_g, W_u, W_d)` equals

        x + feed_forward(rms_norm(x, gain), {"gate": W_g, "up": W_u, "down": W_d}, activation="silu")

    x: (B, T, D)   gain: (D,)   gate, up: (D, F)   down: (F, D)   ->   (B, T, D)
    """
    weights = _times_gain(gain, gate), _times_gain(gain, up)
    unit, inverse = _normalise(x, epsilon)
    slope_of_up, slope_of_gate = (_product(unit, w) for w in weights)  # (B, T, F)
    hidden = _swiglu(slope_of_up, slope_of_gate)
    y = _product(hidden, down)
    y += x

    def pullback(dy):
        dhidden = _product(dy, down.T)
        dgate = np.multiply(dhidden, slope_of_gate, out=_empty(hidden.shape, hidden.dtype))
        dup = np.multiply(dhidden, slope_of_up, out=dhidden)
        dunit = _product(dgate, weights[0].T)
        dunit += _product(dup, weights[1].T)
        dx = _normalise_pullback(dunit, unit, inverse)
        dx += dy
        dgain, dgate = _through_gain(gain, gate, _transposed_product(unit, dgate))
        more, dup = _through_gain(gain, up, _transposed_product(unit, dup))
        return dx, dgain + more, dgate, dup, _transposed_product(hidden, dy)

    return y, pullback


@primitive(nondiff=("targets",))
def _surprise_at(x, unembedding, targets):
    """`cross_entropy(x @ unembedding, targets)`: the gradient of the logits takes their place while they are at hand.

    x: (B, T, D)   unembedding: (D, V)   targets: (B, T) int, −100 where there is none   ->   one number
    """
    logits = _product(x, unembedding)
    targets = _require_labels(logits, targets, _IGNORED)
    usual = np.any(targets != _IGNORED) and np.isfinite(logits.max()) and np.isfinite(logits.min())
    if usual:
        loss, dlogits = _become_gradient(logits, targets), logits
    else:  # the readable form says what is wrong, or knows what to do
        loss, logits_pullback = cross_entropy.__wrapped__(logits, targets)
        dlogits, _ = logits_pullback(np.ones_like(loss))

    def pullback(dloss):
        return _product(dlogits, unembedding.T * dloss), _transposed_product(x, dlogits) * dloss, None

    return loss, pullback


@primitive(nondiff=("ids",))
def _token_vectors(table, ids):
    """`embedding(table, ids)`, whose gradient sorts the tokens first: equal ids then stand together and are summed."""
    vectors = embedding(table, ids)

    def pullback(dx):
        dtable = np.zeros_like(table)
        order = np.argsort(ids, axis=None, kind="stable")
        found, starts = np.unique(ids.reshape(-1)[order], return_index=True)
        dtable[found] = np.add.reduceat(dx.reshape(-1, dx.shape[-1])[order], starts, axis=0)
        return dtable, None

    return vectors, pullback


# The pieces


def _parts(length, numbers):
    """Parts of a first axis of this length: as many entries at a time as fit the cache, if each holds so many."""
    size = max(1, _CACHE // numbers)
    return (slice(start, start + size) for start in range(0, length, size))


def _normalise(x, epsilon):
    """x / rms(x) and 1 / rms(x)                                                    (12.3)"""
    mean_square = np.vecdot(x, x)[..., None] / x.dtype.type(x.shape[-1])
    inverse = 1 / np.sqrt(mean_square + x.dtype.type(epsilon))
    return np.multiply(x, inverse, out=_empty(x.shape, x.dtype)), inverse


def _normalise_pullback(dunit, unit, inverse):
    """dx = (dunit − unit mean(dunit ∘ unit)) / rms(x), in the place of dunit."""
    shared = np.vecdot(dunit, unit)[..., None] / unit.dtype.type(unit.shape[-1])
    dunit -= np.multiply(unit, shared, out=_empty(unit.shape, unit.dtype))
    dunit *= inverse
    return dunit


def _times_gain(gain, weights):
    """gain[:, None] * weights: the gain of a norm can as well be that of the matrix that comes next."""
    return np.multiply(gain[:, None], weights, out=_empty(weights.shape, weights.dtype))


def _through_gain(gain, weights, dproduct):
    """The gradients of gain and weights from that of their product, gain[:, None] * weights."""
    dgain = np.vecdot(dproduct, weights)
    dproduct *= gain[:, None]
    return dgain, dproduct


def _swiglu(gate, up):
    """silu(g) ∘ u, while g and u become its slopes along u and along g: silu(g) and u silu′(g).

    s = σ(g) = (1 + tanh(g/2))/2,   silu(g) = g s,   u silu′(g) = h + s (u − h)   with h = u silu(g)
    """
    hidden, half = _empty(gate.shape, gate.dtype), gate.dtype.type(0.5)
    arrays = [array.reshape(-1) for array in (gate, up, hidden)]
    for part in _parts(gate.size, 4):  # g, u, h and s
        g, u, h = (array[part] for array in arrays)
        s = np.multiply(g, half, out=_empty(g.shape, g.dtype))
        np.tanh(s, out=s)
        s += 1
        s *= half
        g *= s
        np.multiply(g, u, out=h)
        u -= h
        u *= s
        u += h
    return hidden


def _become_gradient(logits, targets):
    """The mean surprise at the targets, in nats; the logits become its gradient, (p − one_hot(target)) / n.    (7.8)"""
    rows, targets = logits.reshape(-1, logits.shape[-1]), targets.reshape(-1)
    counted = targets != _IGNORED
    share = counted[:, None] / rows.dtype.type(np.count_nonzero(counted))  # 1/n, or 0
    loss = 0.0
    for part in _parts(*rows.shape):
        z = rows[part]
        at_target = np.arange(len(z)), np.where(counted[part], targets[part], 0)
        z -= z.max(axis=1, keepdims=True)
        z_target = z[at_target][:, None]
        np.exp(z, out=z)
        total = _row_sums(z)
        loss += np.sum((np.log(total) - z_target) * share[part], dtype=np.float64)
        z *= share[part] / total
        z[at_target] -= share[part][:, 0]
    return rows.dtype.type(loss)


def _side_by_side(query, key, value, width, pairing):
    """The three matrices as one, in which components of a query or key that turn together are neighbours."""
    sizes = [part.shape[1] for part in (query, key, value)]
    joined = _empty((len(query), sum(sizes)), query.dtype)
    queries, keys, values = np.split(joined, np.cumsum(sizes)[:2], axis=1)
    _reordered(query, width, pairing, "adjacent", out=queries)
    _reordered(key, width, pairing, "adjacent", out=keys)
    values[...] = value
    return joined


def _reordered(matrix, width, pairing, other, out=None):
    """The same columns, where heads with one pairing of their components get another.   matrix: (D, H·K)   width: K"""
    out = _empty(matrix.shape, matrix.dtype) if out is None else out
    _pairs(out, width, other)[...] = _pairs(matrix, width, pairing)
    return out


def _pairs(matrix, width, pairing):
    """A view of what turns together: (D, H·K) -> (D, H, K/2, 2)"""
    if pairing == "half":
        return matrix.reshape(len(matrix), -1, 2, width // 2).swapaxes(2, 3)
    return matrix.reshape(len(matrix), -1, width // 2, 2)


@functools.cache
def _one_per_head(heads, width, dtype):
    """(H, H·K): a product with it repeats a head's number for each of its components, with its transpose sums these."""
    return np.kron(np.eye(heads), np.ones(width)).astype(dtype)


@functools.lru_cache(maxsize=4)
def _turns(angles, width, scale, heads, kv_heads, dtype):
    """Rotation by an angle is multiplication by e^(iθ); the scale of the scores goes with that of the queries.

    angles: the bytes of (T, K/2) float64, the same for every block   width: K
    """
    turn = np.exp(1j * np.frombuffer(angles).reshape(-1, width // 2))  # (T, K/2)
    turns = np.concatenate([scale * turn] * heads + [turn] * kv_heads, axis=1)  # (T, (H + G) K/2)
    return turns.astype(np.result_type(dtype, np.complex64))


def _rotate(projected, turn):
    """Queries and keys, the first columns of `projected`, turn in their place; each pair is one complex number."""
    pairs = projected.view(turn.dtype)[..., : turn.shape[1]]
    pairs *= turn


def _by_head(x, kv_heads, width):
    """A view with head axes: (B, T, G·R·width) -> (B, G, R, T, width), R heads beside each other for each key head."""
    B, T, columns = x.shape
    return x.reshape(B, T, kv_heads, columns // (kv_heads * width), width).transpose(0, 2, 3, 1, 4)
