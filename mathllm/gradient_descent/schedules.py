"""Learning-rate schedules: how long each step is, as a function of the step t = 0, 1, 2, …

Each schedule counts as its formula does: t = 0 is before the first step.
"""

import math

from ..errors import within


def warmup_cosine(step: int, *, peak: float, total: int, warmup: int = 0, floor: float = 0.0) -> float:
    """Linear warmup to the peak, then half a cosine down to the floor, as in the training of language models.

        η(t) = η_max t/t_w                                             t ≤ t_w      (9.12)
        η(t) = η_min + ½ (η_max − η_min) (1 + cos(π (t − t_w)/(t_e − t_w)))    t > t_w

    step: t   peak: η_max   total: t_e, after which the rate stays at the floor   warmup: t_w ≤ t_e   floor: η_min
    ->   η(t)

    Raises: ValueError for a negative step, a warmup longer than the training, or a floor above the peak.

    >>> [warmup_cosine(t, peak=1.0, total=1000, warmup=100, floor=0.1) for t in (50, 100, 550, 1000)]
    [0.5, 1.0, 0.55, 0.1]
    """
    _check("warmup_cosine", step, peak, floor, total=total)
    within("warmup_cosine", f"[0, {total}]", warmup=warmup)
    if warmup and step <= warmup:
        return peak * (step / warmup)
    return _half_cosine(peak, floor, (step - warmup) / max(total - warmup, 1))


def cosine_restarts(step: int, *, peak: float, period: int, growth: float = 1, floor: float = 0.0) -> float:
    """Cosine decay with restarts: each half cosine begins at the peak, and is `growth` times as long as the last.

        η(t) = η_min + ½ (η_max − η_min) (1 + cos(π t_i/T_i)),      T_{i+1} = growth · T_i

    step: t   period: T₀ of the first half cosine   ->   η(t), with t_i steps since the last restart

    Raises: ValueError for a negative step, a period below 1, a growth below 1, or a floor above the peak.
    Source: Loshchilov and Hutter 2017, eq. 5.

    >>> [round(cosine_restarts(t, peak=1.0, period=2, growth=2), 2) for t in range(7)]
    [1.0, 0.5, 1.0, 0.85, 0.5, 0.15, 1.0]
    """
    _check("cosine_restarts", step, peak, floor, period=period, growth=growth)
    while growth > 1 and step >= period:
        step, period = step - period, period * growth
    return _half_cosine(peak, floor, step % period / period)


def polynomial_decay(step: int, *, peak: float, total: int, power: float = 1.0, floor: float = 0.0) -> float:
    """Decay to the floor along a power of the remaining time: a straight line for power 1.

        η(t) = η_min + (η_max − η_min) (1 − t/t_e)ᵖ

    step: t   total: t_e, after which the rate stays at the floor   power: p > 0   ->   η(t)

    Raises: ValueError for a negative step, a power that is not positive, or a floor above the peak.

    >>> [polynomial_decay(t, peak=1.0, total=10, power=2) for t in (0, 5, 10)]
    [1.0, 0.25, 0.0]
    """
    _check("polynomial_decay", step, peak, floor, total=total)
    within("polynomial_decay", "(0, ∞)", power=power)
    return min(floor + (peak - floor) * (1 - min(step / total, 1)) ** power, peak)  # rounding may step over the peak


def _half_cosine(peak, floor, elapsed):
    rate = floor + 0.5 * (peak - floor) * (1 + math.cos(math.pi * min(elapsed, 1)))
    return min(rate, peak)  # rounding may step over the peak


def _check(name, step, peak, floor, **at_least_one):
    within(name, "[0, ∞)", step=step, peak=peak)
    within(name, f"[0, {peak}]", floor=floor)
    within(name, "[1, ∞)", **at_least_one)
