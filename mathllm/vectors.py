"""What can a list of numbers know?

A vector is an ordered list of numbers, and a language model turns every word into one. This chapter adds the two
things that can be asked of a vector by itself or of a pair, its length and their distance, and the table that turns
token ids into vectors. Everything acts on the last axis: an array of shape (..., d) holds many vectors of d components.
"""

import numpy as np

from .autodiff import primitive
from .errors import ShapeError

__all__ = ["distance", "embedding", "frobenius_norm", "norm", "normalize", "one_hot", "vector"]


def vector(components) -> np.ndarray:
    """A vector with the given components: one axis, at least one entry, finite real numbers.

        v = [v₁, v₂, …, v_d] ∈ ℝᵈ                                                   (1.1)

    components: d numbers   ->   v: (d,)

    Raises: ShapeError for an empty list or for rows of numbers; ValueError for NaN, infinity, or what is no number.
    Source: 003, ch. I; 001, §1.1.

    >>> vector([3, 7])
    array([3., 7.])
    """
    try:
        v = np.asarray(components)
    except ValueError:
        raise ShapeError("vector() needs one list of numbers, got rows of unequal length") from None
    if v.ndim != 1 or v.size == 0:
        raise ShapeError(f"vector() needs one list of at least one number, got an array of shape {v.shape}")
    if v.dtype.kind not in "fiub":
        raise ValueError(f"vector() needs real numbers, got {components!r}")
    v = np.array(v, v.dtype if v.dtype.kind == "f" else np.float64)
    if not np.all(np.isfinite(v)):
        raise ValueError(f"vector() needs finite components, got {v[~np.isfinite(v)][0]} (see chapter 01)")
    return v


@primitive
def norm(x):
    """Length (L2 norm, magnitude) of each vector.

        ‖x‖ = √(x₁² + x₂² + … + x_d²)                                               (1.2)
        ∂‖x‖/∂xᵢ = xᵢ / ‖x‖      (zero for the zero vector, where no slope exists)    (1.5)

    x: (..., d)   ->   (...)

    Components are divided by the largest one first, so that no square overflows or vanishes.
    Raises: ShapeError for a vector without components.
    Source: 003, ch. I, example 1; 001, §1.4.

    >>> float(norm([3, 4])), float(norm([6, 2, 3]))
    (5.0, 7.0)
    """
    _require_components("norm", x)
    largest = np.abs(x).max(axis=-1, keepdims=True)
    scale = np.where((largest > 0) & np.isfinite(largest), largest, 1).astype(x.dtype)
    length = scale[..., 0] * np.sqrt(np.sum((x / scale) ** 2, axis=-1))

    def pullback(dlength):
        return dlength[..., None] * (x / np.where(length > 0, length, 1)[..., None])

    return length, pullback


@primitive
def normalize(x):
    """The unit vector in the direction of each vector.

        u = x / ‖x‖,      dx = (du − u (u·du)) / ‖x‖                                (1.6)

    The pullback removes the part of du along u: growing longer does not turn a vector.
    x: (..., d)   ->   u: (..., d)

    Raises: ValueError for a zero vector, which has no direction; ShapeError for a vector without components.
    Source: 001, §1.1.1.

    >>> normalize([3, 4])
    array([0.6, 0.8])
    """
    _require_components("normalize", x)
    length = norm(x)[..., None]
    if np.any(length == 0):
        raise ValueError("normalize() needs a vector with a direction, got a zero vector (see chapter 01)")
    unit = x / length

    def pullback(du):
        return (du - unit * np.sum(unit * du, axis=-1, keepdims=True)) / length

    return unit, pullback


@primitive
def distance(a, b):
    """Euclidean distance between two points: the length of the arrow from one to the other.

        d(a, b) = ‖a − b‖,      ∂d/∂a = (a − b) / d,      ∂d/∂b = −∂d/∂a            (1.3)

    a, b: (..., d)   ->   (...)

    Raises: ShapeError if the vectors have different numbers of components, or none.
    Source: 003, ch. I (semantic distance).

    >>> float(distance([3, 4], [0, 0]))
    5.0
    """
    _require_components("distance", a)
    _require_components("distance", b)
    if a.shape[-1] != b.shape[-1]:
        raise ShapeError(
            f"distance() needs two vectors of one size, got {a.shape[-1]} and {b.shape[-1]} components (see chapter 01)"
        )
    arrow = a - b
    length = norm(arrow)

    def pullback(dlength):
        da = dlength[..., None] * (arrow / np.where(length > 0, length, 1)[..., None])
        return da, -da

    return length, pullback


@primitive
def frobenius_norm(W):
    """Length of a matrix read as one long vector.

        ‖W‖_F = √(Σᵢ Σⱼ Wᵢⱼ²) = √tr(WᵀW),      ∂‖W‖_F/∂W = W / ‖W‖_F                (1.4)

    W: (..., m, n)   ->   (...)

    Raises: ShapeError for fewer than two axes or none of the entries.
    Source: 001, §1.4.

    >>> float(frobenius_norm([[1, 2], [2, 4]]))
    5.0
    """
    if W.ndim < 2 or 0 in W.shape[-2:]:
        raise ShapeError(f"frobenius_norm() needs a matrix with at least one entry, got shape {W.shape}")
    length = norm(W.reshape(*W.shape[:-2], W.shape[-2] * W.shape[-1]))

    def pullback(dlength):
        return dlength[..., None, None] * (W / np.where(length > 0, length, 1)[..., None, None])

    return length, pullback


def one_hot(ids, size: int) -> np.ndarray:
    """For each token id a vector of zeros with a single 1, at the place of the id.

        e_id = [0, …, 0, 1, 0, …, 0]                                                (1.7)

    ids: (...) int   size: V   ->   (..., V)

    Raises: ValueError for an id outside 0 … V−1; TypeError for ids that are not integers.
    Source: 000, step 1.

    >>> one_hot([2, 0], 3)
    array([[0., 0., 1.],
           [1., 0., 0.]])
    """
    ids = _require_ids("one_hot", ids, size)
    return (ids[..., None] == np.arange(size)).astype(np.float64)


@primitive(nondiff=("ids",))
def embedding(table, ids):
    """Look up the vector of each token: row `id` of the embedding table.

        x = e_idᵀ E = E[id]                                                         (1.8)

    table: (V, d)   ids: (...) int   ->   x: (..., d)

    The gradient goes back to the rows that were looked up; a row used twice collects both.
    Raises: ValueError for an id outside the table; TypeError for ids that are not integers; ShapeError for a table
    that is no matrix.
    Source: 000, step 1; 001, §6.1; 004, trace step 1.

    >>> embedding([[0.2, 0.1], [-0.1, 0.4], [0.3, -0.2]], [2, 0])
    array([[ 0.3, -0.2],
           [ 0.2,  0.1]])
    """
    if table.ndim != 2:
        raise ShapeError(f"embedding() needs a table of shape (V, d), got {table.shape}")
    ids = _require_ids("embedding", ids, len(table))

    def pullback(dx):
        dtable = np.zeros_like(table)
        np.add.at(dtable, ids, dx)
        return dtable, None

    return table[ids], pullback


def _require_components(name, x):
    if x.ndim == 0:
        raise ShapeError(f"{name}() needs a vector, got the single number {x} (see chapter 01)")
    if x.shape[-1] == 0:
        raise ShapeError(f"{name}() needs vectors with at least one component, got shape {x.shape} (see chapter 01)")


def _require_ids(name, ids, size):
    ids = np.asarray(ids)
    if not ids.size:
        return ids.astype(int)  # an empty list has no type of its own
    if ids.dtype.kind not in "iu":
        raise TypeError(f"{name}() needs integer token ids, got {ids.dtype} values")
    if ids.min() < 0 or ids.max() >= size:
        wrong = ids[(ids < 0) | (ids >= size)][0]
        raise ValueError(f"{name}() needs ids from 0 to {size - 1}, got {wrong}")
    return ids
