"""How good is a model, and how sure can one be? A score on a test set is itself a random number."""

from __future__ import annotations  # numpy.random is loaded when it is used

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..cross_entropy import convert_information, perplexity
from ..errors import ShapeError


class Interval(NamedTuple):
    """A measured value, and the range in which it would lie on most other test sets of the same kind."""

    low: float
    estimate: float
    high: float


def bootstrap_interval(
    values,
    rng: np.random.Generator,
    *,
    statistic: Callable = np.mean,
    level: float = 0.95,
    samples: int = 1000,
) -> Interval:
    """A confidence interval without any formula for the distribution: evaluate again on resampled test sets.

        draw n of the n values with replacement, compute the statistic, repeat;
        low, high = the quantiles (1 − level)/2 and (1 + level)/2 of the results     (13.28)

    values: (n, ...), one row for each independent test case   ->   low, estimate, high

    Rows must be independent: for text resample documents, not tokens, since tokens of one text rise and fall together.
    Raises: ShapeError without values; ValueError for a level outside (0, 1), no samples, or NaN among the values.
    Source: 000, summary of evaluation; Efron & Tibshirani 1993, ch. 13 (the percentile interval).

    >>> correct = np.array([1] * 80 + [0] * 20)
    >>> low, accuracy, high = bootstrap_interval(correct, np.random.default_rng(0))
    >>> round(low, 2), accuracy, round(high, 2)
    (0.72, 0.8, 0.88)
    """
    values = np.asarray(values)
    if values.ndim == 0 or len(values) == 0:
        raise ShapeError(f"bootstrap_interval() needs at least one value, got shape {values.shape}")
    if not 0 < level < 1 or samples < 1:
        raise ValueError(f"bootstrap_interval() needs a level between 0 and 1 and samples, got {level} and {samples}")
    if values.dtype.kind == "f" and np.isnan(values).any():
        raise ValueError("bootstrap_interval() needs numbers, got NaN")
    n = len(values)
    results = [statistic(values[rng.integers(n, size=n)]) for _ in range(samples)]
    method = "linear" if np.all(np.isfinite(results)) else "nearest"  # there is nothing between two infinities
    low, high = np.quantile(results, [(1 - level) / 2, (1 + level) / 2], method=method)
    return Interval(float(low), float(statistic(values)), float(high))


def held_out_perplexity(log_probabilities, tokens=None) -> float:
    """The perplexity of a text from the log-probabilities a model gave it.

        PPL = exp(−(1/T) Σ ln p_t)                                                  (13.26)

    log_probabilities: ln p of every token; or, with `tokens`, sums over pieces of text and how many tokens each has

    Raises: ValueError for a log-probability above 0 or NaN, or for no tokens; ShapeError if the two do not belong
    together.
    Source: 001, §2.2.3; 003, ch. VII.

    >>> round(held_out_perplexity(np.log([0.5, 0.25, 0.125])), 6)
    4.0
    >>> round(held_out_perplexity([np.log(0.5), np.log(0.25 * 0.125)], tokens=[1, 2]), 6)
    4.0
    """
    total, count = _totals("held_out_perplexity", log_probabilities, tokens)
    return float(perplexity(-total.sum() / count.sum(), base=np.e))


def perplexity_interval(
    log_probabilities, tokens, rng: np.random.Generator, *, level: float = 0.95, samples: int = 1000
) -> Interval:
    """A confidence interval of the perplexity, by resampling whole documents.

    log_probabilities: (n,), Σ ln p of each document   tokens: (n,), its length   ->   low, estimate, high

    Raises: as `held_out_perplexity` and `bootstrap_interval`.

    >>> log_p = np.log([0.5, 0.25, 0.2, 0.4]) * 10
    >>> low, estimate, high = perplexity_interval(log_p, [10] * 4, np.random.default_rng(0))
    >>> low < estimate < high
    True
    """
    table = np.stack(_totals("perplexity_interval", log_probabilities, tokens), axis=1)

    def statistic(rows):
        return float(perplexity(-rows[:, 0].sum() / rows[:, 1].sum(), base=np.e))

    return bootstrap_interval(table, rng, statistic=statistic, level=level, samples=samples)


def bits_per_byte(log_probabilities, size: int) -> float:
    """The length of the code a model gives a text, per byte of the text: comparable between tokenizers.

        −(1/size) Σ log₂ p_t                                                        (13.27)

    log_probabilities: ln p of every token, or sums of them   size: the bytes of the text

    Raises: ValueError for a log-probability above 0 or NaN, or for a text without bytes.

    >>> round(bits_per_byte(np.log([0.5, 0.25]), size=6), 6)
    0.5
    """
    if size < 1:
        raise ValueError(f"bits_per_byte() needs a text of at least one byte, got {size}")
    total, _ = _totals("bits_per_byte", log_probabilities, None)
    return float(convert_information(-total.sum(), from_base=np.e, to_base=2)) / size


def _totals(name, log_probabilities, tokens):
    """Sums of log-probabilities and the number of tokens in each, as arrays of one shape."""
    total = np.asarray(log_probabilities, float).ravel()
    count = np.ones(total.shape) if tokens is None else np.asarray(tokens, float).ravel()
    if total.shape != count.shape:
        raise ShapeError(f"{name}() needs one number of tokens for each sum, got {len(total)} sums and {len(count)}")
    if not np.all(total <= 0):
        raise ValueError(f"{name}() needs logarithms of probabilities, at most 0, got {total[~(total <= 0)][0]}")
    if np.any(count < 0) or count.sum() <= 0:
        raise ValueError(f"{name}() needs at least one token")
    return total, count
