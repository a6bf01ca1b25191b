"""Leave a trace in the choice of words that no reader sees and a count reveals."""

import math
from typing import NamedTuple

import numpy as np

from ..errors import ShapeError
from .filters import _checked


class WatermarkTest(NamedTuple):
    """Green tokens among those counted, how far that is above chance in standard deviations, and how improbable."""

    green: int
    counted: int
    z: float
    p_value: float


def green_list(previous: int, vocabulary: int, *, fraction: float = 0.5, key: int = 0) -> np.ndarray:
    """The tokens that are favoured after a given one: a random part of the vocabulary, which only the key tells.

    previous: token id   vocabulary: V   fraction: γ, the green share   key: the secret   ->   (V,) bool

    Raises: ValueError for a fraction that leaves no green or no red token, or a negative token or key.
    Source: Kirchenbauer et al. 2023, algorithm 2.

    >>> green_list(7, 6), green_list(7, 6, key=1)
    (array([ True, False, False, False,  True,  True]), array([False,  True, False, False,  True,  True]))
    """
    size = round(fraction * vocabulary)
    if not 0 < size < vocabulary:
        raise ValueError(f"green_list() needs green and red tokens, got {size} green of {vocabulary}")
    if previous < 0 or key < 0:
        raise ValueError(f"green_list() needs a token and a key of at least 0, got {previous} and {key}")
    green = np.zeros(vocabulary, bool)
    green[np.random.default_rng([key, int(previous)]).permutation(vocabulary)[:size]] = True
    return green


def watermark_logits(logits, tokens, *, strength: float = 2.0, fraction: float = 0.5, key: int = 0) -> np.ndarray:
    """Raise the logits of the green tokens.

        zᵢ′ = zᵢ + δ for i in the green list of the last token                       (14.15)

    logits: (B, V)   tokens: (B, T), the text so far   strength: δ   ->   (B, V). Where one token is certain the mark
    gives way; where many will do it decides. For `generate`: logits_processor=lambda t, z: watermark_logits(z, t).

    Raises: ShapeError if the sizes do not fit; what green_list() refuses.
    Source: Kirchenbauer et al. 2023, algorithm 2.

    >>> watermark_logits(np.zeros((1, 6)), [[7]], strength=2.0)
    array([[2., 0., 0., 0., 2., 2.]])
    """
    logits, tokens = _checked("watermark_logits", logits), np.asarray(tokens)
    if logits.ndim != 2 or tokens.ndim != 2 or len(tokens) != len(logits) or tokens.shape[1] == 0:
        raise ShapeError(
            f"watermark_logits() needs logits (B, V) and tokens (B, T), got {logits.shape} and {tokens.shape}"
        )
    lists = [green_list(last, logits.shape[1], fraction=fraction, key=key) for last in tokens[:, -1]]
    return logits + strength * np.array(lists, logits.dtype).reshape(logits.shape)


def detect_watermark(tokens, vocabulary: int, *, fraction: float = 0.5, key: int = 0) -> WatermarkTest:
    """Does a text have more green tokens than chance would give it?

        z = (g − γn) / √(n γ(1−γ)),      p = ½ erfc(z/√2)                            (14.16)

    tokens: (T,) int   ->   the test with g green of n counted tokens. Each pair of neighbours counts once: a pair that
    is repeated says nothing new, and text that repeats itself would else look marked. γ is the green share itself,
    ⌊γV⌉/V. The p-value is that of the normal approximation, the chance of such a z in text that knows nothing of the
    key.

    Raises: ShapeError for fewer than two tokens; ValueError for tokens outside the vocabulary.
    Source: Kirchenbauer et al. 2023.

    >>> text = [0]
    >>> for _ in range(20):
    ...     text.append(int(np.flatnonzero(green_list(text[-1], 100, key=5))[len(text)]))  # always green
    >>> found = detect_watermark(text, 100, key=5)
    >>> round(found.z, 4), f"{found.p_value:.2e}", detect_watermark(text, 100, key=6).z < 2
    (4.4721, '3.87e-06', True)
    """
    tokens = np.asarray(tokens)
    if tokens.ndim != 1 or len(tokens) < 2:
        raise ShapeError(f"detect_watermark() needs a text of at least two tokens, got shape {tokens.shape}")
    if not 0 <= tokens.min() <= tokens.max() < vocabulary:
        raise ValueError(f"detect_watermark() needs tokens from 0 to {vocabulary - 1}")
    pairs = np.unique(np.stack([tokens[:-1], tokens[1:]], axis=1), axis=0)  # (n, 2), in the order of the first
    lists = {before: green_list(before, vocabulary, fraction=fraction, key=key) for before in np.unique(pairs[:, 0])}
    green = int(sum(lists[before][token] for before, token in pairs))
    share = round(fraction * vocabulary) / vocabulary
    z = (green - share * len(pairs)) / math.sqrt(len(pairs) * share * (1 - share))
    return WatermarkTest(green, len(pairs), z, 0.5 * math.erfc(z / math.sqrt(2)))
