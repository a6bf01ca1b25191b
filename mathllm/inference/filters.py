"""Filters of the next token's distribution: functions from logits to logits, with −∞ for a token that is ruled out."""

from __future__ import annotations  # numpy.random is loaded when it is used

import numpy as np

from ..autodiff import ArrayLike
from ..errors import all_within, within
from ..exponentials import subtract_maximum
from ..probability import sample
from ..shapes import contract, floating
from ..softmax import shifted_logits, softmax
from ..vectors import token_ids


@contract("... V+ -> ...")
def greedy(logits: ArrayLike) -> np.ndarray:
    """The most probable token; the first of them if several are equally probable.

        x = argmaxᵢ zᵢ                                                              (14.2)

    Raises: ValueError for NaN, +∞, or a row of −∞ alone.

    >>> int(greedy([2.0, 1.0, 0.5]))
    0
    """
    return np.argmax(_checked("greedy", logits), axis=-1)


@contract("... V+ -> ...")
def sample_token(logits: ArrayLike, rng: np.random.Generator | int) -> np.ndarray:
    """A token drawn at random from the softmax of the logits.

        x ~ softmax(z)                                                              (14.1)

    Raises: ValueError for NaN, +∞, or a row of −∞ alone.

    >>> sample_token([[0.0, -np.inf], [-np.inf, 0.0]], np.random.default_rng(0))
    array([0, 1])
    """
    return sample(softmax(logits), rng)


@contract("... V+ -> ... V")
def apply_temperature(logits: ArrayLike, temperature: float) -> np.ndarray:
    """Logits divided by a temperature: below 1 their differences grow (sharper), above 1 they shrink (flatter).

        z′ = z / τ      (so that softmax(z′) is the softmax (6.1) of z at temperature τ) (14.3)

    temperature: τ > 0

    τ → 0 approaches the greedy choice, but τ = 0 itself would divide by zero, and between equal logits the limit does
    not choose.
    Raises: ValueError for a temperature that is not positive and finite; for NaN, +∞, or a row of −∞ alone.

    >>> apply_temperature([2.0, 1.0, 0.5], 0.5)
    array([4., 2., 1.])
    """
    within("apply_temperature", "[0, ∞)", temperature=temperature)
    if temperature == 0:
        raise ValueError("apply_temperature() cannot divide by 0: for the most probable token use greedy decoding")
    logits = _checked("apply_temperature", logits)
    with np.errstate(over="ignore"):
        scaled = (logits / np.float64(temperature)).astype(logits.dtype)
        if np.any(scaled == np.inf):  # only differences matter: with the largest logit at 0 none overflows upwards
            scaled = (subtract_maximum(logits)[0] / np.float64(temperature)).astype(logits.dtype)
    return scaled


@contract("... V+ -> ... V")
def keep_top_k(logits: ArrayLike, k: int) -> np.ndarray:
    """The k largest logits, and those equal to the k-th; −∞ for the others.

        q′ᵢ = qᵢ / Σ_{j ∈ top-k} qⱼ for i in the top k, 0 otherwise                   (14.4)

    Raises: ValueError unless k is a whole number of at least 1; for NaN, +∞, or a row of −∞ alone.
    Source: Fan et al. 2018.

    >>> softmax(keep_top_k(np.log([0.629, 0.231, 0.14]), 2)).round(4)
    array([0.7314, 0.2686, 0.    ])
    """
    within("keep_top_k", "whole [1, ∞)", k=k)
    logits = _checked("keep_top_k", logits)
    k = min(int(k), logits.shape[-1])
    kth = np.partition(logits, -k, axis=-1)[..., -k, None]
    return np.where(logits < kth, -np.inf, logits)


@contract("... V+ -> ... V")
def keep_top_p(logits: ArrayLike, p: float) -> np.ndarray:
    """The logits of the nucleus: the smallest set of most probable tokens whose mass reaches p; −∞ for the others.

        smallest k with Σᵢ₌₁ᵏ q₍ᵢ₎ ≥ p,   q₍₁₎ ≥ q₍₂₎ ≥ …                            (14.5)

    p: mass, 0 < p ≤ 1. At least one token is kept. A sum counts as p if it is p up to rounding.

    Raises: ValueError for p outside (0, 1]; for NaN, +∞, or a row of −∞ alone.
    Source: Holtzman et al. 2020, §3.1.

    >>> [int(np.isfinite(keep_top_p(np.log([0.629, 0.231, 0.14]), p)).sum()) for p in (0.5, 0.8, 0.9)]
    [1, 2, 3]
    """
    within("keep_top_p", "(0, 1]", p=p)
    logits = _checked("keep_top_p", logits)
    order = np.argsort(-logits, axis=-1, kind="stable")  # tokens from the most probable to the least
    ranked = np.take_along_axis(softmax(logits.astype(np.float64)), order, axis=-1)
    tail = np.cumsum(ranked[..., ::-1], axis=-1)[..., ::-1]  # the mass of a token and of all less probable ones
    cut = tail <= (1 - p) * (1 + 1e-9)  # without them p is reached; summed from the small ones, p = 1 keeps all
    cut[..., 0] = False
    removed = np.empty_like(cut)
    np.put_along_axis(removed, order, cut, axis=-1)
    return np.where(removed, -np.inf, logits)


@contract("... V+ -> ... V")
def keep_min_p(logits: ArrayLike, p: float) -> np.ndarray:
    """The logits of tokens that are at least p times as probable as the most probable one; −∞ for the others.

        qᵢ ≥ p · max q,      that is  zᵢ ≥ max z + ln p                           (14.6)

    Raises: ValueError for p outside [0, 1]; for NaN, +∞, or a row of −∞ alone.
    Source: Nguyen et al. 2024.

    >>> np.isfinite(keep_min_p(np.log([0.629, 0.231, 0.14]), 0.3))
    array([ True,  True, False])
    """
    within("keep_min_p", "[0, 1]", p=p)
    logits = _checked("keep_min_p", logits)
    with np.errstate(divide="ignore"):  # ln 0 = −∞ keeps all
        return np.where(subtract_maximum(logits)[0] < np.log(p), -np.inf, logits)


@contract("B V+, B T, _, B T -> B V")
def penalize_repetition(
    logits: ArrayLike, tokens: ArrayLike, penalty: float, attention_mask: ArrayLike | None = None
) -> np.ndarray:
    """Lower logits for tokens that have occurred in the text.

        zᵢ′ = zᵢ/θ for zᵢ ≥ 0,   zᵢ·θ for zᵢ < 0,   if token i is in the text         (14.7)

    penalty: θ, above 1 to avoid repetitions   attention_mask: 0 for padding, which does not count as text

    The result depends on the signs of the logits. Adding a constant to all logits changes it, unlike the softmax.
    Raises: ValueError for a penalty that is not positive and finite, marks other than 0 and 1, or a token outside the
    vocabulary.
    Source: Keskar et al. 2019, §4.1; the two signs as in transformers.

    >>> penalize_repetition([[2.0, -1.0, 0.5]], [[0, 1, 0]], 2.0)
    array([[ 1. , -2. ,  0.5]])
    """
    within("penalize_repetition", "(0, ∞)", penalty=penalty)
    logits = _checked("penalize_repetition", logits)
    tokens = token_ids("penalize_repetition", tokens, logits.shape[1])
    attention_mask = np.ones(tokens.shape) if attention_mask is None else attention_mask
    all_within("penalize_repetition", "{0, 1}", attention_mask=attention_mask)
    rows, places = np.nonzero(attention_mask)
    occurred = np.zeros(logits.shape, bool)
    occurred[rows, tokens[rows, places]] = True
    with np.errstate(over="ignore"):  # a penalty may lower a logit to −∞
        penalized = np.where(logits < 0, logits * penalty, logits / penalty)
    return np.where(occurred, penalized, logits)


def _checked(name, logits):
    """The logits as floating-point numbers, if none is NaN or +∞ and one in each row is not −∞."""
    logits = floating(logits)
    shifted_logits(name, logits)  # raises the errors of softmax
    return logits
