"""Perplexity of held-out text, and confidence intervals: a score on a test set is itself a random number."""

from __future__ import annotations  # numpy.random is loaded when it is used

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..autodiff import ArrayLike
from ..cross_entropy import convert_information, perplexity
from ..errors import ShapeError, all_within, within
from ..shapes import Contract, real_array


class Interval(NamedTuple):
    """A measured value with the lower and upper end of its confidence interval."""

    low: float
    estimate: float
    high: float


def bootstrap_interval(
    values: ArrayLike, rng: np.random.Generator | int, *,
    statistic: Callable[[np.ndarray], float] = np.mean, level: float = 0.95, samples: int = 1000,
) -> Interval:  # fmt: skip
    """The bootstrap confidence interval of a statistic: evaluate it again on resampled test sets.

        draw n of the n values with replacement, compute the statistic, repeat;
        low, high = the quantiles (1 − level)/2 and (1 + level)/2 of the results     (13.10)

    values: (n, ...), one row for each independent test case   ->   low, estimate, high

    Rows must be independent. For text resample documents, not tokens, because the losses of tokens in one text are
    correlated.
    Raises: ShapeError without values; ValueError for a level outside (0, 1), no samples, or values that are NaN or
    infinite.
    Source: Efron & Tibshirani 1993, ch. 13 (the percentile interval).

    >>> correct = np.array([1] * 80 + [0] * 20)
    >>> low, accuracy, high = bootstrap_interval(correct, np.random.default_rng(0))
    >>> round(low, 2), accuracy, round(high, 2)
    (0.72, 0.8, 0.88)
    """
    within("bootstrap_interval", "(0, 1)", level=level)
    within("bootstrap_interval", "whole [1, ∞)", samples=samples)
    values = np.asarray(real_array("bootstrap_interval", values))
    if values.ndim == 0 or len(values) == 0:
        raise ShapeError(f"bootstrap_interval() needs at least one value, got shape {values.shape}")
    all_within("bootstrap_interval", "(-∞, ∞)", values=values)
    n = len(values)
    rng = np.random.default_rng(rng)
    results = [statistic(values[rng.integers(n, size=n)]) for _ in range(samples)]
    method = "linear" if np.all(np.isfinite(results)) else "nearest"  # there is nothing between two infinities
    low, high = np.quantile(results, [(1 - level) / 2, (1 + level) / 2], method=method)
    return Interval(float(low), float(statistic(values)), float(high))


def held_out_perplexity(log_probabilities: ArrayLike, tokens: ArrayLike | None = None) -> float:
    """The perplexity of a text, from the log-probabilities that a model gave to its tokens.

        PPL = exp(−(1/T) Σ ln q_t)                                                  (13.8)

    log_probabilities: ln q of every token; or, with `tokens`, sums over pieces of text and how many tokens each has

    Raises: ValueError for a log-probability above 0 or NaN, or for no tokens; ShapeError for sums and numbers of tokens
    of different lengths.

    >>> round(held_out_perplexity(np.log([0.5, 0.25, 0.125])), 6)
    4.0
    >>> round(held_out_perplexity([np.log(0.5), np.log(0.25 * 0.125)], tokens=[1, 2]), 6)
    4.0
    """
    return float(perplexity(_mean_loss(_totals("held_out_perplexity", log_probabilities, tokens)), base=np.e))


def perplexity_interval(
    log_probabilities: ArrayLike, tokens: ArrayLike, rng: np.random.Generator | int, *,
    level: float = 0.95, samples: int = 1000,
) -> Interval:  # fmt: skip
    """A confidence interval of the perplexity, by resampling whole documents.

    log_probabilities: (n,), Σ ln q of each document   tokens: (n,), its length   ->   low, estimate, high

    The interval is that of the mean loss; its ends are exponentiated last, because the perplexities themselves may
    overflow to ∞.
    Raises: as `held_out_perplexity` and `bootstrap_interval`; ValueError for a document without tokens.

    >>> log_p = np.log([0.5, 0.25, 0.2, 0.4]) * 10
    >>> low, estimate, high = perplexity_interval(log_p, [10] * 4, np.random.default_rng(0))
    >>> low < estimate < high
    True
    """
    totals = _totals("perplexity_interval", log_probabilities, tokens)
    within("perplexity_interval", "[1, ∞)", tokens=totals[:, 1].min())
    losses = bootstrap_interval(totals, rng, statistic=_mean_loss, level=level, samples=samples)
    return Interval(*map(float, perplexity(losses, base=np.e)))


def bits_per_byte(log_probabilities: ArrayLike, size: int) -> float:
    """The code length of a text under a model, in bits per byte; it can be compared between tokenizers.

        −(1/size) Σ log₂ q_t                                                        (13.9)

    log_probabilities: ln q of every token, or sums of them   size: the bytes of the text

    Raises: ValueError for a log-probability above 0 or NaN, or for a text without bytes.

    >>> round(bits_per_byte(np.log([0.5, 0.25]), size=6), 6)
    0.5
    """
    within("bits_per_byte", "whole [1, ∞)", size=size)
    total = _totals("bits_per_byte", log_probabilities, None)[:, 0].sum()
    return float(convert_information(-total, from_base=np.e, to_base=2)) / size


def _totals(function, log_probabilities, tokens):
    """The sum of log-probabilities and the number of tokens of each piece of text, (n, 2)."""
    total = np.asarray(real_array(function, log_probabilities), float).ravel()
    count = np.ones(total.shape) if tokens is None else np.asarray(tokens, float).ravel()
    Contract("n, n").check(function, ["log_probabilities", "tokens"], [total, count])
    all_within(function, "[-∞, 0]", log_probabilities=total)
    all_within(function, "[0, ∞)", tokens=count)
    within(function, "(0, ∞)", tokens=count.sum())
    return np.stack([total, count], axis=1)


def _mean_loss(totals):
    log_probability, tokens = totals.sum(axis=0)
    return -log_probability / tokens
