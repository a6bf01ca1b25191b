"""Reshape the distribution before drawing from it: each step takes logits and gives logits back, −∞ for what is out."""

from __future__ import annotations  # numpy.random is loaded when it is used

import numpy as np

from ..errors import ShapeError
from ..probability import distribution, sample
from ..softmax import softmax


def greedy(logits) -> np.ndarray:
    """The most probable token; of several, the first.

        x = argmaxᵢ zᵢ                                                              (14.2)

    logits: (..., V)   ->   (...) int   Raises: ShapeError without a logit; ValueError for NaN.
    Source: 001, §10.2; 002, decoding.

    >>> int(greedy([2.0, 1.0, 0.5]))
    0
    """
    return np.argmax(_checked("greedy", logits), axis=-1)


def sample_token(logits, rng: np.random.Generator) -> np.ndarray:
    """Draw a token from the softmax of its logits.

        x ~ softmax(z)                                                              (14.1)

    logits: (..., V)   ->   (...) int   Raises: as softmax().
    Source: 004, autoregressive generation.

    >>> sample_token([[0.0, -np.inf], [-np.inf, 0.0]], np.random.default_rng(0))
    array([0, 1])
    """
    return sample(softmax(_checked("sample_token", logits).astype(np.float64, copy=False)), rng)


def apply_temperature(logits, temperature: float) -> np.ndarray:
    """Divide the logits: below 1 the differences grow (sharper), above 1 they shrink (flatter).

        z′ = z / T      (so that softmax(z′) is the softmax (6.1) of z at temperature T) (14.3)

    logits: (..., V)   temperature: T > 0   ->   (..., V)

    T → 0 approaches the greedy choice, but 0 itself is no temperature: nothing can be divided by it, and between equal
    logits the limit does not choose (erratum B18).
    Raises: ValueError for a temperature that is not positive and finite.
    Source: 001, §10.2.1; 004, temperature.

    >>> apply_temperature([2.0, 1.0, 0.5], 0.5)
    array([4., 2., 1.])
    """
    logits = _checked("apply_temperature", logits)
    if temperature == 0:
        raise ValueError("temperature 0 is a limit and no temperature: for the most probable token use greedy decoding")
    if not 0 < temperature < np.inf:
        raise ValueError(f"apply_temperature() needs a positive, finite temperature, got {temperature}")
    with np.errstate(over="ignore"):
        scaled = (logits / np.float64(temperature)).astype(logits.dtype)
        if np.any(scaled == np.inf):  # only the differences matter: with the largest at 0 none overflows upwards
            scaled = (_shifted(logits) / np.float64(temperature)).astype(logits.dtype)
    return scaled


def keep_top_k(logits, k: int) -> np.ndarray:
    """Keep the k largest logits, and those equal to the k-th.

        P′(xᵢ) = P(xᵢ) / Σ_{j ∈ top-k} P(xⱼ) for i in the top k, 0 otherwise         (14.4)

    logits: (..., V)   k ≥ 1   ->   (..., V), −∞ for the others   Raises: ValueError for k below 1.
    Source: 001, §10.2.2; 004, top-k sampling; Fan et al. 2018.

    >>> softmax(keep_top_k(np.log([0.629, 0.231, 0.14]), 2)).round(4)
    array([0.7314, 0.2686, 0.    ])
    """
    logits = _checked("keep_top_k", logits)
    if k < 1 or k != int(k):
        raise ValueError(f"keep_top_k() needs a whole number k of at least 1, got {k}")
    if k >= logits.shape[-1]:
        return logits.copy()
    kth = np.partition(logits, -int(k), axis=-1)[..., -int(k), None]
    return np.where(logits < kth, -np.inf, logits).astype(logits.dtype)


def keep_top_p(logits, p: float) -> np.ndarray:
    """Keep the nucleus: the smallest set of most probable tokens whose mass reaches p.

        smallest k with Σᵢ₌₁ᵏ P(x₍ᵢ₎) ≥ p,   P(x₍₁₎) ≥ P(x₍₂₎) ≥ …                    (14.5)

    logits: (..., V)   0 < p ≤ 1   ->   (..., V), −∞ for the others; at least one token stays

    004 says "exceeds p" and writes ≥: they differ where a sum hits p exactly (erratum B2), here up to rounding. 001
    prints a set that may be empty, see `nucleus_as_printed` (erratum B1).
    Raises: ValueError for p outside (0, 1].
    Source: 004, top-p sampling; Holtzman et al. 2020, §3.1.

    >>> [int(np.isfinite(keep_top_p(np.log([0.629, 0.231, 0.14]), p)).sum()) for p in (0.5, 0.8, 0.9)]
    [1, 2, 3]
    """
    logits = _checked("keep_top_p", logits)
    if not 0 < p <= 1:
        raise ValueError(f"keep_top_p() needs a probability mass 0 < p ≤ 1, got {p}")
    order = np.argsort(-logits, axis=-1, kind="stable")
    ranked = np.take_along_axis(softmax(logits.astype(np.float64)), order, axis=-1)
    tail = np.cumsum(ranked[..., ::-1], axis=-1)[..., ::-1]  # the mass of this token and of all less probable ones
    out = tail <= (1 - p) * (1 + 1e-9)  # without them p is reached; summed from the small ones, p = 1 keeps all
    out[..., 0] = False
    removed = np.zeros_like(out)
    np.put_along_axis(removed, order, out, axis=-1)
    return np.where(removed, -np.inf, logits).astype(logits.dtype)


def keep_min_p(logits, p: float) -> np.ndarray:
    """Keep the tokens that are at least p times as probable as the most probable one.

        P(xᵢ) ≥ p · max P,      that is  zᵢ ≥ max z + ln p                           (14.6)

    logits: (..., V)   0 ≤ p ≤ 1   ->   (..., V), −∞ for the others   Raises: ValueError for p outside [0, 1].
    Source: Nguyen et al. 2024.

    >>> np.isfinite(keep_min_p(np.log([0.629, 0.231, 0.14]), 0.3))
    array([ True,  True, False])
    """
    logits = _checked("keep_min_p", logits)
    if not 0 <= p <= 1:
        raise ValueError(f"keep_min_p() needs a share 0 ≤ p ≤ 1, got {p}")
    if p == 0:
        return logits.copy()
    return np.where(_shifted(logits) < np.log(p), -np.inf, logits).astype(logits.dtype)


def penalize_repetition(logits, tokens, penalty: float, attention_mask=None) -> np.ndarray:
    """Make tokens that have occurred less attractive.

        zᵢ′ = zᵢ/θ for zᵢ ≥ 0,   zᵢ·θ for zᵢ < 0,   if token i is in the text         (14.7)

    logits: (B, V)   tokens, attention_mask: (B, T)   penalty: θ, above 1 to avoid repetitions   ->   (B, V)

    The sign decides, so the result depends on a common shift of the logits, unlike the softmax. Padding (marks of 0)
    does not count as text.
    Raises: ValueError for a penalty that is not positive and finite, or a token outside the vocabulary; ShapeError if
    the sizes do not fit.
    Source: Keskar et al. 2019, §4.1; the two signs as in transformers.

    >>> penalize_repetition([[2.0, -1.0, 0.5]], [[0, 1, 0]], 2.0)
    array([[ 1. , -2. ,  0.5]])
    """
    logits, tokens = _checked("penalize_repetition", logits), np.asarray(tokens)
    if not 0 < penalty < np.inf:
        raise ValueError(f"penalize_repetition() needs a positive, finite penalty, got {penalty}")
    if logits.ndim != 2 or tokens.ndim != 2 or len(tokens) != len(logits):
        raise ShapeError(
            f"penalize_repetition() needs logits (B, V) and tokens (B, T), got {logits.shape} and {tokens.shape}"
        )
    marks = np.ones(tokens.shape, bool) if attention_mask is None else np.asarray(attention_mask, bool)
    if tokens.size and not 0 <= tokens.min() <= tokens.max() < logits.shape[-1]:
        raise ValueError(f"penalize_repetition() needs tokens from 0 to {logits.shape[-1] - 1}")
    occurred = np.zeros(logits.shape, bool)
    rows, places = np.nonzero(marks)
    occurred[rows, tokens[rows, places]] = True
    with np.errstate(over="ignore"):  # a penalty may push a logit to −∞
        penalized = np.where(logits < 0, logits * penalty, logits / penalty)
    return np.where(occurred, penalized, logits).astype(logits.dtype)


def nucleus_as_printed(probabilities, p: float) -> np.ndarray:
    """The nucleus of 001, kept to show its error: a set that stays *below* p, divided by p instead of by its mass.

        V_p = {t : Σ_{v sorted} P(v) ≤ p},      P′ = P/p

    What comes out is no distribution, and nothing at all where the first token alone is above p (erratum B1).
    probabilities: (V,)   ->   (V,)   Raises: ValueError if they are no distribution.
    Source: 001, §10.2.3. `keep_top_p` is right.

    >>> P = [0.629, 0.231, 0.14]
    >>> round(float(nucleus_as_printed(P, 0.9).sum()), 4), float(nucleus_as_printed(P, 0.5).sum())
    (0.9556, 0.0)
    """
    probabilities = distribution(probabilities)
    order = np.argsort(-probabilities, kind="stable")
    kept = np.zeros(probabilities.shape, bool)
    kept[order] = np.cumsum(probabilities[order]) <= p
    return np.where(kept, probabilities, 0) / p


def _checked(name, logits):
    logits = np.asarray(logits)
    logits = logits if logits.dtype.kind == "f" else logits.astype(np.float64)
    if logits.ndim == 0 or logits.shape[-1] == 0:
        raise ShapeError(f"{name}() needs at least one logit, got shape {logits.shape} (see chapter 14)")
    if np.any(np.isnan(logits)) or np.any(logits == np.inf):
        raise ValueError(f"{name}() needs finite logits (or −∞ for a mask), got NaN or +∞ (see chapter 14)")
    return logits


def _shifted(logits):
    """The largest logit of each row taken to 0; a row that is all −∞ is refused."""
    largest = logits.max(axis=-1, keepdims=True)
    if logits.size and np.any(largest == -np.inf):
        raise ValueError("every logit of a row is −∞: no token is left to choose from (see chapter 14)")
    with np.errstate(over="ignore"):  # a distance beyond the largest float is −∞
        return logits - largest
