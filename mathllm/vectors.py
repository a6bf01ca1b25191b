"""How long is a vector, how far apart are two of them, and how does a token become one?

A vector is an ordered list of numbers, and a language model turns every token into one. This chapter adds the length of
a vector, the distance of two, and the table that turns token ids into vectors. What takes vectors acts on the last
axis: an array of shape (..., d) holds many vectors of d components.
"""

import numpy as np

from .autodiff import Array, ArrayLike, WithPullback, primitive
from .errors import all_within, within
from .shapes import contract, floating


@contract("d+ -> d")
def vector(components: ArrayLike) -> np.ndarray:
    """A vector with the given components: one axis, at least one entry, finite real numbers.

        v = [v₁, v₂, …, v_d] ∈ ℝᵈ                                                   (1.1)

    Raises: ShapeError for an empty list or for rows of numbers; ValueError for NaN or infinity; TypeError for
    what is no real number.

    >>> vector([3, 7])
    array([3., 7.])
    """
    v = np.array(floating(components))
    all_within("vector", "(-∞, ∞)", components=v)
    return v


@primitive(shapes="... d+ -> ...")
def norm(x: Array) -> WithPullback:
    """Length (L2 norm, magnitude) of each vector.

        ‖x‖ = √(x₁² + x₂² + … + x_d²)                                               (1.2)
        ∂‖x‖/∂xᵢ = xᵢ / ‖x‖

    At the zero vector, where the length has no derivative, the pullback gives zero.
    Components are divided by the largest absolute value first, so that no square overflows and not all of them vanish.

    >>> float(norm([3, 4])), float(norm([6, 2, 3]))
    (5.0, 7.0)
    """
    largest = np.abs(x).max(axis=-1, keepdims=True)
    scale = np.where((largest > 0) & np.isfinite(largest), largest, 1).astype(x.dtype)
    length = scale[..., 0] * np.sqrt(np.sum((x / scale) ** 2, axis=-1))

    def pullback(dlength):
        return dlength[..., None] * (x / np.where(length > 0, length, 1)[..., None])

    return length, pullback


@primitive(shapes="... d+ -> ... d")
def normalize(x: Array) -> WithPullback:
    """The unit vector in the direction of each vector.

        u = x / ‖x‖,      dx = (du − u (u·du)) / ‖x‖                                (1.4)

    The pullback removes the part of du along u, because a change of x in its own direction does not change u.

    Raises: ValueError for a zero vector, which has no direction.

    >>> normalize([3, 4])
    array([0.6, 0.8])
    """
    largest = np.abs(x).max(axis=-1, keepdims=True)
    if np.any(largest == 0):
        raise ValueError("normalize() needs a vector with a direction, got a zero vector (see chapter 01)")
    exponent = np.frexp(largest)[1]
    scaled = np.ldexp(x, -exponent)  # divided by a power of two, exactly: the length neither overflows nor vanishes
    length = norm(scaled)[..., None]
    unit = scaled / length

    def pullback(du):
        return np.ldexp((du - unit * np.sum(unit * du, axis=-1, keepdims=True)) / length, -exponent)

    return unit, pullback


@primitive(shapes="... d+, ... d -> ...")
def distance(a: Array, b: Array) -> WithPullback:
    """Euclidean distance between two points: the length of the arrow from one to the other.

        dist(a, b) = ‖a − b‖,    ∂dist/∂a = (a − b) / dist,    ∂dist/∂b = −∂dist/∂a (1.5)

    For equal points, where the distance has no derivative, the pullback gives zero.

    >>> float(distance([3, 4], [0, 0]))
    5.0
    """
    arrow = a - b
    length = norm(arrow)

    def pullback(dlength):
        da = dlength[..., None] * (arrow / np.where(length > 0, length, 1)[..., None])
        return da, -da

    return length, pullback


@contract("... m+ n+ -> ...")
def frobenius_norm(W: Array) -> np.ndarray:
    """Length of a matrix whose entries are read as one long vector.

        ‖W‖_F = √(Σᵢ Σⱼ Wᵢⱼ²) = √tr(WᵀW),      ∂‖W‖_F/∂W = W / ‖W‖_F                (1.9)

    >>> float(frobenius_norm([[1, 2], [2, 4]]))
    5.0
    """
    return norm(W.reshape(*W.shape[:-2], W.shape[-2] * W.shape[-1]))


@contract("... -> ... V")
def one_hot(ids: ArrayLike, size: int) -> np.ndarray:
    """For each token id a vector of zeros with a single 1, at the place of the id.

        e_id = [0, …, 0, 1, 0, …, 0]                                                (1.6)

    size: V, the number of tokens in the vocabulary

    Raises: ValueError for an id outside 0 … V−1, or a V below 1; TypeError for ids that are not integers.

    >>> one_hot([2, 0], 3)
    array([[0., 0., 1.],
           [1., 0., 0.]])
    """
    within("one_hot", "whole [1, ∞)", size=size)
    return (token_ids("one_hot", ids, size)[..., None] == np.arange(size)).astype(np.float64)


@primitive(nondiff=("ids",), shapes="V d, ... -> ... d")
def embedding(table: Array, ids: Array) -> WithPullback:
    """Look up the vector of each token: row `id` of the embedding table.

        x = e_id E = E[id]                                                          (1.7)

    The gradient goes back to the rows that were looked up; a row used twice collects both.

    Raises: ValueError for an id outside the table; TypeError for ids that are not integers.

    >>> embedding([[0.2, 0.1], [-0.1, 0.4], [0.3, -0.2]], [2, 0])
    array([[ 0.3, -0.2],
           [ 0.2,  0.1]])
    """
    ids = token_ids("embedding", ids, len(table))

    def pullback(dx):
        dtable = np.zeros(table.shape, table.dtype)
        places = np.ravel_multi_index((ids[..., None], np.arange(table.shape[1])), table.shape)
        np.add.at(dtable.reshape(-1), places.reshape(-1), dx.reshape(-1))  # NumPy adds single numbers faster than rows
        return dtable, None

    return table[ids], pullback


def token_ids(function: str, ids: ArrayLike, size: int = np.iinfo(np.int64).max) -> np.ndarray:
    """The ids as an array of integers, or an error in the name of `function` if one is not in 0 … size − 1.

    Raises: ValueError for an id outside 0 … size − 1; TypeError for ids that are not integers.

    >>> token_ids("embedding", [0, 2, 1], 3)
    array([0, 2, 1])
    """
    ids = np.asarray(ids)
    if not ids.size:
        return ids.astype(int)  # an empty list has no type of its own
    if ids.dtype.kind not in "iu":
        raise TypeError(f"{function}() needs integer token ids, got {ids.dtype} values")
    if ids.min() < 0 or ids.max() >= size:
        wrong = ids[(ids < 0) | (ids >= size)][0]
        raise ValueError(f"{function}() needs ids from 0 to {size - 1}, got {wrong}")
    return ids
