"""A watermark: generated text prefers the tokens of secret green lists, and a test counts them."""

import math
from typing import NamedTuple

import numpy as np

from ..autodiff import ArrayLike
from ..errors import within
from ..shapes import contract
from ..vectors import token_ids
from .filters import _checked


class WatermarkTest(NamedTuple):
    """Green tokens among those counted, how far that is above chance in standard deviations, and the p-value."""

    green: int
    counted: int
    z: float
    p_value: float


def green_list(previous: int, vocabulary: int, *, fraction: float = 0.5, key: int = 0) -> np.ndarray:
    """The tokens that are favoured after a given one: a random part of the vocabulary that depends on a secret key.

    previous: token id   vocabulary: V   fraction: γ, the fraction of green tokens   key: the secret   ->   (V,) bool

    Raises: ValueError for a fraction that leaves no green or no red token, or a negative token or key.
    Source: Kirchenbauer et al. 2023, algorithm 2.

    >>> green_list(7, 6), green_list(7, 6, key=1)
    (array([ True, False, False, False,  True,  True]), array([False,  True, False, False,  True,  True]))
    """
    within("green_list", "whole [0, ∞)", previous=previous, key=key)
    within("green_list", "[0, 1]", fraction=fraction)
    size = round(fraction * vocabulary)
    if not 0 < size < vocabulary:
        raise ValueError(f"green_list() needs green and red tokens, got {size} green of {vocabulary}")
    green = np.zeros(vocabulary, bool)
    green[np.random.default_rng([int(key), int(previous)]).permutation(vocabulary)[:size]] = True
    return green


@contract("B V+, B T+ -> B V")
def watermark_logits(
    logits: ArrayLike, tokens: ArrayLike, *, strength: float = 2.0, fraction: float = 0.5, key: int = 0
) -> np.ndarray:
    """Logits raised for the green tokens.

        zᵢ′ = zᵢ + δ for i in the green list of the last token                       (14.26)

    tokens: the text so far   strength: δ

    Where one token is nearly certain, the text hardly changes; where several are about equally probable, the green ones
    gain most. For `generate`: logits_processor=lambda t, z: watermark_logits(z, t).
    Raises: what green_list() refuses; ValueError for a strength that is not finite, and for NaN, +∞, or a row of −∞
    alone among the logits.
    Source: Kirchenbauer et al. 2023, algorithm 2.

    >>> watermark_logits(np.zeros((1, 6)), [[7]], strength=2.0)
    array([[2., 0., 0., 0., 2., 2.]])
    """
    within("watermark_logits", "(-∞, ∞)", strength=strength)
    logits = _checked("watermark_logits", logits)
    lists = [green_list(last, logits.shape[1], fraction=fraction, key=key) for last in tokens[:, -1]]
    return logits + strength * np.array(lists, logits.dtype).reshape(logits.shape)


@contract("T++")
def detect_watermark(tokens: ArrayLike, vocabulary: int, *, fraction: float = 0.5, key: int = 0) -> WatermarkTest:
    """A one-sided test: does a text have more green tokens than chance would give it?

        z = (k − γn) / √(n γ(1−γ)),      p = ½ erfc(z/√2)                            (14.27)

    Of n counted tokens, k are green. Each pair of neighbours counts once: a repeated pair is no new evidence, and a
    text that repeats itself would otherwise seem to be marked. γ is the exact fraction of green tokens, a whole number
    divided by V. The p-value, by the normal approximation, is the probability of so large a z in a text that does not
    depend on the key.

    Raises: ShapeError for fewer than two tokens; ValueError for tokens outside the vocabulary.
    Source: Kirchenbauer et al. 2023.

    >>> text = [0]
    >>> for _ in range(20):
    ...     text.append(int(np.flatnonzero(green_list(text[-1], 100, key=5))[len(text)]))  # always green
    >>> found = detect_watermark(text, 100, key=5)
    >>> round(found.z, 4), f"{found.p_value:.2e}", detect_watermark(text, 100, key=6).z < 2
    (4.4721, '3.87e-06', True)
    """
    tokens = token_ids("detect_watermark", tokens, vocabulary)
    pairs = np.unique(np.stack([tokens[:-1], tokens[1:]], axis=1), axis=0)  # (n, 2), sorted by the first token
    lists = {before: green_list(before, vocabulary, fraction=fraction, key=key) for before in np.unique(pairs[:, 0])}
    green = int(sum(lists[before][token] for before, token in pairs))
    gamma = round(fraction * vocabulary) / vocabulary
    z = (green - gamma * len(pairs)) / math.sqrt(len(pairs) * gamma * (1 - gamma))
    return WatermarkTest(green, len(pairs), z, 0.5 * math.erfc(z / math.sqrt(2)))
