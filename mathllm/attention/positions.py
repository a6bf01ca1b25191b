"""Attention does not know the order of its tokens; here are the ways to tell it."""

import math
from dataclasses import dataclass

import numpy as np

from ..autodiff import primitive
from ..errors import ShapeError, suggest

_PAIRINGS = ("adjacent", "half")
_SCALINGS = ("linear", "ntk", "dynamic", "yarn", "longrope", "llama3")
_SETTINGS = {  # of a `RotaryScaling`, and who has them
    "trained": ("yarn", "longrope", "llama3"), "turns": ("yarn", "llama3"), "whole_pairs": ("yarn",),
    "sharpness": ("yarn", "longrope"), "short": ("longrope",), "long": ("longrope",),
}  # fmt: skip
_TURNS = {"yarn": (1, 32), "llama3": (1, 4)}  # stretched below the first, kept above the second


def sinusoidal_positions(length: int, width: int, base: float = 10000.0) -> np.ndarray:
    """One vector of sines and cosines per position, to be added to the embeddings.

        P[t, 2i] = sin(t / base^(2i/d)),      P[t, 2i+1] = cos(t / base^(2i/d))     (10.12)

    length: T   width: d, even   ->   (T, d)

    Raises: ValueError for an odd width.
    Source: 001, §6.2.1; Vaswani et al. 2017, §3.5.

    >>> sinusoidal_positions(2, 4).round(4)
    array([[0.    , 1.    , 0.    , 1.    ],
           [0.8415, 0.5403, 0.01  , 1.    ]])
    """
    angles = np.arange(length)[:, None] * _frequencies(width, base)  # (T, d/2)
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(length, width)


@dataclass(frozen=True)
class RotaryScaling:
    """A scaling of rotary positions with settings of its own, for `rotary_angles` and `Config`.

    kind: a name that `rotary_angles` knows; all settings are for "yarn", "longrope" and "llama3"
    trained: the length that the model was trained with, if it is not the context
    turns: "yarn" and "llama3" stretch a pair that turns less often in that length, and keep one that turns more often;
    (1, 32) and (1, 4)
    whole_pairs: whether "yarn" rounds these limits to whole pairs
    short, long: by what "longrope" stretches each pair, in a text of the trained length and in a longer one
    sharpness: by what "yarn" and "longrope" multiply queries and keys, if not as usual (see `Config.score_scale`)

    Raises: ValueError for an unknown kind, and for settings that the kind does not have or cannot use.
    Source: Peng et al. 2023, §3; Grattafiori et al. 2024, §3.2; Ding et al. 2024, §3.

    >>> RotaryScaling("llama3", trained=8192).turns
    (1, 4)
    """

    kind: str
    trained: int | None = None
    turns: tuple[float, float] | None = None
    whole_pairs: bool = True
    sharpness: float | None = None
    short: tuple[float, ...] | None = None
    long: tuple[float, ...] | None = None

    def __post_init__(self):
        if self.kind not in _SCALINGS:
            hint = suggest(str(self.kind), _SCALINGS) or f"; there are {', '.join(_SCALINGS)}"
            raise ValueError(f"unknown scaling {self.kind!r}{hint}")
        for name, kinds in _SETTINGS.items():
            if self.kind not in kinds and getattr(self, name) != getattr(RotaryScaling, name):
                raise ValueError(f"RotaryScaling() has {name} for {' and '.join(kinds)}, not for {self.kind}")
        if self.kind == "longrope" and (not self.short or not self.long or len(self.short) != len(self.long)):
            raise ValueError(f"longrope needs a number for each pair, short and long, got {self.short} and {self.long}")
        if self.turns is None:
            object.__setattr__(self, "turns", _TURNS.get(self.kind))
        if self.turns is not None and not 0 < self.turns[0] < self.turns[1]:
            raise ValueError(f"RotaryScaling() needs two numbers of turns, the smaller one first, got {self.turns}")
        if (self.trained is not None and self.trained < 1) or (self.sharpness is not None and not self.sharpness > 0):
            raise ValueError(f"RotaryScaling() needs a length of at least 1 and a positive sharpness, got {self}")


def rotary_angles(
    positions, width: int, base: float = 10000.0, scaling: str | RotaryScaling | None = None, factor: float = 1.0,
    trained: int = 2048,
) -> np.ndarray:  # fmt: skip
    """The angle by which each pair of components turns at each position.

        θ[t, i] = t · base^(−2i/d)                                                  (10.13)

    Beyond the trained length a model reads the angles of a context `factor` times as long through one of
      "linear":  t/factor (every wavelength stretched alike),
      "ntk":     base · factor^(d/(d−2)) (slow pairs stretched, fast ones kept),
      "dynamic": the same with the factor that the text needs, factor · length/trained − (factor − 1) and at least 1,
      "yarn":    stretched where a pair turns less than once in the `trained` length, kept where it turns 32 times,
                 and from the one to the other a little more with each pair, as in the authors' code (their factor
                 (1 + 0.1 ln factor)² on the scores is no matter of angles: see `Config.score_scale`),
      "llama3":  stretched below one turn, kept above four, and between them in proportion to the turns.
    A `RotaryScaling` in place of a name sets other numbers of turns, and another trained length; one of the kind
    "longrope" stretches each pair by a number of its own, `short` up to the trained length and `long` beyond.

    positions: (T,)   width: d, even   ->   (T, d/2)

    Raises: ValueError for an odd width, an unknown scaling or a factor below 1; ShapeError for "longrope" with other
    than d/2 numbers.
    Source: 001, §6.2.2; Su et al. 2021, §3.4; Chen et al. 2023; Peng et al. 2023, §3; Grattafiori et al. 2024, §3.2;
    Ding et al. 2024, §3.

    >>> rotary_angles([0, 1, 2], 4)[:, 0]
    array([0., 1., 2.])
    """
    if factor < 1:
        raise ValueError(f"rotary_angles() needs a factor of at least 1, got {factor}")
    positions, frequencies = np.asarray(positions), _frequencies(width, base)
    scaling = RotaryScaling(scaling) if isinstance(scaling, str) else scaling
    if scaling is None:
        return positions[:, None] * frequencies
    trained = trained if scaling.trained is None else scaling.trained
    if scaling.kind in ("ntk", "dynamic"):
        if scaling.kind == "dynamic":
            factor = max(factor * (positions.max(initial=0) + 1) / trained - (factor - 1), 1)
        frequencies = _frequencies(width, base * factor ** (width / max(width - 2, 1)))
    elif scaling.kind == "longrope":
        stretch = np.array(scaling.short if positions.max(initial=0) < trained else scaling.long)
        if stretch.shape != frequencies.shape:
            raise ShapeError(f"rotary_angles() has {len(frequencies)} pairs, longrope numbers for {len(stretch)}")
        frequencies = frequencies / stretch
    else:
        kept = 0 if scaling.kind == "linear" else _kept(scaling, frequencies, base, trained)
        frequencies = kept * frequencies + (1 - kept) * frequencies / factor
    return positions[:, None] * frequencies


def _kept(scaling, frequencies, base, trained):
    """How much of each pair's frequency a longer context leaves as it is: 1 for fast pairs, 0 for slow ones, (d/2,)."""
    slow, fast = scaling.turns
    if scaling.kind == "llama3":
        return np.clip((trained * frequencies / (2 * np.pi) - slow) / (fast - slow), 0, 1)
    width = 2 * len(frequencies)
    first, last = (width * np.log(trained / (2 * np.pi * turns)) / (2 * np.log(base)) for turns in (fast, slow))
    if scaling.whole_pairs:
        first, last = np.floor(first), np.ceil(last)
    first, last = max(first, 0), min(last, width - 1)  # numbers of pairs
    return 1 - np.clip((np.arange(len(frequencies)) - first) / max(last - first, 1e-3), 0, 1)


@primitive
def rotate(x, *, angles, pairing: str = "half"):
    """Rotary position embedding (RoPE): turn each pair of components by its angle.

        (x₁, x₂) → (x₁ cos θ − x₂ sin θ,  x₁ sin θ + x₂ cos θ)                      (10.14)
        (R_m q)·(R_n k) = q·R_(n−m) k: only the distance counts;   dx = R(−θ) dy

    x: (..., T, K)   angles: (T, K/2)   ->   (..., T, K)

    `pairing` says which components form a pair: "half" (i with i + K/2, as in Hugging Face checkpoints) or "adjacent"
    (2i with 2i + 1, as in the paper and in GGUF files).
    Raises: ShapeError if the angles do not fit; ValueError for an unknown pairing.
    Source: 000, step 1; 001, §6.2.2.

    >>> rotate(np.array([[1.0, 0.0]]), angles=np.array([[np.pi / 2]])).round(3)
    array([[0., 1.]])
    """
    if pairing not in _PAIRINGS:
        raise ValueError(f"unknown pairing {pairing!r}; pairings are {' and '.join(_PAIRINGS)}")
    angles = np.asarray(angles)
    if x.ndim < 2 or angles.shape != (x.shape[-2], x.shape[-1] // 2) or x.shape[-1] % 2:
        raise ShapeError(f"rotate() needs x (..., T, K) and angles (T, K/2), got shapes {x.shape} and {angles.shape}")
    cosine, sine = np.cos(angles).astype(x.dtype), np.sin(angles).astype(x.dtype)

    def turn(x, sine):
        first, second = _pairs(x, pairing)
        return _joined(first * cosine - second * sine, first * sine + second * cosine, pairing)

    return turn(x, sine), lambda dy: turn(dy, -sine)


def alibi_bias(heads: int, queries: int, keys: int | None = None) -> np.ndarray:
    """ALiBi: no position vectors, but a penalty on the scores that grows with the distance, at each head's own rate.

        bias_hij = −m_h |i − j|,      m_h = 2^(−8h/H), h = 1 … H                    (10.15)

    ->   (H, T, S), to be given to `attention` as `bias`

    The paper has a causal mask beside it, where only j ≤ i counts. Without one, what comes later is as far away as
    what came before.

    Raises: ValueError unless the number of heads is a power of two.
    Source: Press et al. 2022, §3.

    >>> alibi_bias(8, 2)[0]
    array([[-0. , -0.5],
           [-0.5, -0. ]])
    """
    if heads < 1 or heads & (heads - 1):
        raise ValueError(f"alibi_bias() needs a power of two as the number of heads, got {heads}")
    keys = queries if keys is None else keys
    slopes = 2.0 ** (-8 * np.arange(1, heads + 1) / heads)
    distance = np.abs(np.arange(queries)[:, None] + keys - queries - np.arange(keys))
    return -slopes[:, None, None] * distance


def relative_buckets(
    queries: int, keys: int | None = None, *, buckets: int = 32, farthest: int = 128, causal: bool = True
) -> np.ndarray:
    """Which class of distances each query and key belong to: T5 learns one number for each class and head.

        b(n) = n below E = B/2,      E + ⌊(B − E) ln(n/E) / ln(F/E)⌋ from there on, at most B − 1

    Near distances n have a class each; farther ones share ever wider classes, and all from F = `farthest` on share the
    last. With `causal`, keys that come later are in class 0; without, half of the B classes are for them.

    ->   (T, S) int, where the last T of S keys are the queries

    Raises: ValueError for fewer than two classes to a side, or if the last would begin within the first half.
    Source: Raffel et al. 2020, §2.1.

    >>> relative_buckets(12, buckets=8, farthest=10)[-1]
    array([7, 7, 7, 7, 6, 5, 4, 4, 3, 2, 1, 0])
    """
    keys = queries if keys is None else keys
    back = np.arange(queries)[:, None] + keys - queries - np.arange(keys)  # (T, S), how far back the key lies
    side = buckets if causal else buckets // 2
    near = side // 2
    if near < 1 or farthest <= near:
        raise ValueError(f"relative_buckets() cannot sort distances up to {farthest} into {buckets} classes")
    distance = np.maximum(back, 0) if causal else np.abs(back)
    share = np.log(np.maximum(distance, near).astype(np.float32) / near) / math.log(farthest / near)  # as T5 rounds it
    far = np.minimum(near + (share * (side - near)).astype(int), side - 1)
    return np.where(distance < near, distance, far) + (0 if causal else side * (back < 0))


def _frequencies(width, base):
    if width < 2 or width % 2:
        raise ValueError(f"positions are told by pairs of components: the width must be even, got {width}")
    return base ** (-np.arange(0, width, 2) / width)  # (d/2,)


def _pairs(x, pairing):
    return (x[..., 0::2], x[..., 1::2]) if pairing == "adjacent" else np.split(x, 2, axis=-1)


def _joined(first, second, pairing):
    if pairing == "half":
        return np.concatenate([first, second], axis=-1)
    return np.stack([first, second], axis=-1).reshape(*first.shape[:-1], 2 * first.shape[-1])
