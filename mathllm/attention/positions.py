"""Attention does not depend on the order of its tokens; these are the ways to add their positions."""

import math

import numpy as np

from ..autodiff import Array, ArrayLike, WithPullback, primitive
from ..errors import ShapeError, one_of, within
from ..shapes import contract, real_array
from .rope_scaling import RotaryScaling
from .scaled_dot_product import distances


def sinusoidal_positions(length: int, width: int, base: float = 10000.0) -> np.ndarray:
    """One vector of sines and cosines per position, to be added to the embeddings.

        P[t, 2i] = sin(t / base^(2i/D)),      P[t, 2i+1] = cos(t / base^(2i/D))     (10.8)

    length: T   width: D, even   ->   (T, D)

    Raises: ValueError for an odd width, or a base that is not positive.
    Source: Vaswani et al. 2017, §3.5.

    >>> sinusoidal_positions(2, 4).round(4)
    array([[0.    , 1.    , 0.    , 1.    ],
           [0.8415, 0.5403, 0.01  , 1.    ]])
    """
    angles = np.arange(length)[:, None] * _frequencies("sinusoidal_positions", width, base)  # (T, D/2)
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(length, width)


@contract("T -> T K/2")
def rotary_angles(
    positions: ArrayLike, width: int, base: float = 10000.0, scaling: RotaryScaling | None = None
) -> np.ndarray:
    """The angle by which each pair of components is rotated at each position.

        θ[t, i] = t · base^(−2i/K)                                                  (10.10)

    width: K, even   scaling: how to read texts longer than those of the training, see `RotaryScaling`

    Raises: ValueError for an odd width, or a base that is not positive.
    Source: Su et al. 2021, §3.2.2.

    >>> rotary_angles([0, 1, 2], 4)[:, 0]
    array([0., 1., 2.])
    """
    frequencies = _frequencies("rotary_angles", width, base)
    if scaling is not None:
        frequencies = scaling.stretched(frequencies, base, length=positions.max(initial=0) + 1)
    return positions[:, None] * frequencies


@primitive(shapes="... T K -> ... T K")
def rotate(x: Array, *, angles: ArrayLike, pairing: str = "half") -> WithPullback:
    """Rotary position embedding (RoPE): rotate each pair of components by its angle.

        (x₁, x₂) → (x₁ cos θ − x₂ sin θ,  x₁ sin θ + x₂ cos θ)                      (10.11)
        (R_m q)·(R_n k) = q·R_(n−m) k: only the distance counts;   dx = R(−θ) dy

    angles: (T, K/2)   pairing: which components form a pair, "half" (i with i + K/2, as Hugging Face has it for LLaMA)
    or "adjacent" (2i with 2i + 1, as in the paper and in GGUF files of LLaMA)

    Raises: ShapeError if the angles do not fit; ValueError for an unknown pairing.
    Source: Su et al. 2021, §3.4.

    >>> rotate(np.array([[1.0, 0.0]]), angles=np.array([[np.pi / 2]])).round(3)
    array([[0., 1.]])
    """
    one_of("rotate", ("adjacent", "half"), pairing=pairing)
    angles = real_array("rotate", angles, np.float64)
    if angles.shape != (x.shape[-2], x.shape[-1] // 2) or x.shape[-1] % 2:
        raise ShapeError(f"rotate() needs x (..., T, K) and angles (T, K/2), got shapes {x.shape} and {angles.shape}")
    cosine, sine = np.cos(angles).astype(x.dtype), np.sin(angles).astype(x.dtype)

    def rotated(x, sine):
        first, second = (x[..., 0::2], x[..., 1::2]) if pairing == "adjacent" else np.split(x, 2, axis=-1)
        first, second = first * cosine - second * sine, first * sine + second * cosine
        if pairing == "half":
            return np.concatenate([first, second], axis=-1)
        return np.stack([first, second], axis=-1).reshape(x.shape)

    return rotated(x, sine), lambda dy: rotated(dy, -sine)


def alibi_bias(heads: int, queries: int, keys: int | None = None) -> np.ndarray:
    """ALiBi: no position vectors, but a penalty on the scores that grows with the distance, at a rate of each head.

        bias_rij = −β_r |i − j|,      β_r = 2^(−8r/H), r = 1 … H                    (10.13)

    ->   (H, T, S), to be given to `attention` as `bias`

    The paper combines it with a causal mask, so that only j ≤ i counts. Without a mask, a key after the query has the
    same penalty as a key at the same distance before it.

    Raises: ValueError unless the number of heads is a power of two.
    Source: Press et al. 2022, §3.

    >>> alibi_bias(8, 2)[0]
    array([[-0. , -0.5],
           [-0.5, -0. ]])
    """
    if heads < 1 or heads & (heads - 1):
        raise ValueError(f"alibi_bias() needs a power of two as the number of heads, got {heads}")
    slopes = 2.0 ** (-8 * np.arange(1, heads + 1) / heads)
    return -slopes[:, None, None] * np.abs(distances(queries, keys))


def relative_buckets(
    queries: int, keys: int | None = None, *, buckets: int = 32, farthest: int = 128, causal: bool = True
) -> np.ndarray:
    """The bucket of distances to which each query and key belong: T5 learns one number for each bucket and head.

        b(n) = n below E = B/2,      E + ⌊(B − E) ln(n/E) / ln(F/E)⌋ from there on, at most B − 1

    Each short distance n has a bucket of its own. Longer distances share buckets whose limits grow geometrically, and
    all distances from F = `farthest` on share the last. With `causal`, later keys are in bucket 0; without, half of the
    buckets are for them, and B is the other half.

    ->   (T, S) int, where the last T of S keys are the queries

    Raises: ValueError for fewer than two buckets to a side, or if the last would begin within the first half.
    Source: Raffel et al. 2020, §2.1.

    >>> relative_buckets(12, buckets=8, farthest=10)[-1]
    array([7, 7, 7, 7, 6, 5, 4, 4, 3, 2, 1, 0])
    """
    distance = distances(queries, keys)
    later = distance < 0
    side = buckets if causal else buckets // 2
    near = side // 2
    if near < 1 or farthest <= near:
        raise ValueError(f"relative_buckets() cannot sort distances up to {farthest} into {buckets} buckets")
    distance = np.maximum(distance, 0) if causal else np.abs(distance)
    ratio = np.log(np.maximum(distance, near).astype(np.float32) / near) / math.log(farthest / near)  # as T5 rounds it
    far = np.minimum(near + (ratio * (side - near)).astype(int), side - 1)
    return np.where(distance < near, distance, far) + (0 if causal else side * later)


def _frequencies(function, width, base):
    if width < 2 or width % 2:
        raise ValueError(f"{function}() needs pairs of components: the width must be even, got {width}")
    within(function, "(0, ∞)", base=base)
    return base ** (-np.arange(0, width, 2) / width)  # (K/2,)
