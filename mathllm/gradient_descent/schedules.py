"""A learning rate need not stay: first careful steps, then long ones, then short ones to settle.

Each schedule is a function of the step t, counted as the formulas do: t = 0 is before the first step.
"""

import math


def warmup_cosine(step: int, *, peak: float, total: int, warmup: int = 0, floor: float = 0.0) -> float:
    """A straight line up to the peak, then half a cosine down to the floor: how language models are trained.

        η(t) = η_max t/T_w                                             t ≤ T_w      (9.9)
        η(t) = η_min + ½ (η_max − η_min) (1 + cos(π (t − T_w)/(T − T_w)))    t > T_w

    step: t   peak: η_max   total: T, from where on the floor stays   warmup: T_w ≤ T   floor: η_min   ->   η(t)

    Raises: ValueError for a negative step, a warmup longer than the training, or a floor above the peak.
    Source: 004, learning rate scheduling; 001, §3.2.4.

    >>> [warmup_cosine(t, peak=1.0, total=1000, warmup=100, floor=0.1) for t in (50, 100, 550, 1000)]
    [0.5, 1.0, 0.55, 0.1]
    """
    _require_schedule("warmup_cosine", step, peak, floor, total)
    if not 0 <= warmup <= total:
        raise ValueError(f"warmup_cosine() needs a warmup between 0 and total = {total}, got {warmup}")
    if warmup and step <= warmup:
        return peak * step / warmup
    return _half_cosine(peak, floor, (step - warmup) / max(total - warmup, 1))


def cosine_restarts(step: int, *, peak: float, period: int, growth: float = 1, floor: float = 0.0) -> float:
    """Half a cosine down, and up again with a jump, each time `growth` times as long.

        η(t) = η_min + ½ (η_max − η_min) (1 + cos(π t_i/T_i)),      T_{i+1} = growth · T_i (9.10)

    step: t   period: T₀ of the first descent   ->   η(t), with t_i steps since the last jump

    Raises: ValueError for a negative step, a period below 1, a growth below 1, or a floor above the peak.
    Source: 001, §3.2.4; Loshchilov and Hutter 2017, eq. 5.

    >>> [round(cosine_restarts(t, peak=1.0, period=2, growth=2), 2) for t in range(7)]
    [1.0, 0.5, 1.0, 0.85, 0.5, 0.15, 1.0]
    """
    _require_schedule("cosine_restarts", step, peak, floor, period)
    if not growth >= 1:
        raise ValueError(f"cosine_restarts() needs a growth of at least 1, got {growth}")
    while growth > 1 and step >= period:
        step, period = step - period, period * growth
    return _half_cosine(peak, floor, step % period / period)


def polynomial_decay(step: int, *, peak: float, total: int, power: float = 1.0, floor: float = 0.0) -> float:
    """Down to the floor along a power of the time that is left: a straight line for power 1.

        η(t) = η_min + (η_max − η_min) (1 − t/T)ᵖ                                   (9.11)

    step: t   total: T, from where on the floor stays   power: p > 0   ->   η(t)

    Raises: ValueError for a negative step, a power that is not positive, or a floor above the peak.
    Source: 001, §3.2.4.

    >>> [polynomial_decay(t, peak=1.0, total=10, power=2) for t in (0, 5, 10)]
    [1.0, 0.25, 0.0]
    """
    _require_schedule("polynomial_decay", step, peak, floor, total)
    if not power > 0:
        raise ValueError(f"polynomial_decay() needs a positive power, got {power}")
    return floor + (peak - floor) * (1 - min(step / total, 1)) ** power


def inverse_square_root(step: int, *, peak: float, warmup: int) -> float:
    """A straight line up to the peak, then down with the square root of the time: no end has to be known.

        η(t) = η_max min(t/T_w, √(T_w/t))                                           (9.12)

    step: t   warmup: T_w ≥ 1   ->   η(t)

    Raises: ValueError for a negative step or a warmup below 1.
    Source: Vaswani et al. 2017, §5.3; 002, convergence (1/√t).

    >>> [inverse_square_root(t, peak=1.0, warmup=100) for t in (50, 100, 400)]
    [0.5, 1.0, 0.5]
    """
    _require_schedule("inverse_square_root", step, peak, 0.0, warmup)
    return peak * (step / warmup if step <= warmup else math.sqrt(warmup / step))


def _half_cosine(peak, floor, share):
    return floor + 0.5 * (peak - floor) * (1 + math.cos(math.pi * min(share, 1)))


def _require_schedule(name, step, peak, floor, length):
    if not step >= 0:
        raise ValueError(f"{name}() counts steps from 0, got {step}")
    if not length >= 1:
        raise ValueError(f"{name}() needs at least one step, got {length}")
    if not 0 <= floor <= peak < math.inf:
        raise ValueError(f"{name}() needs 0 ≤ floor ≤ peak, got floor {floor} and peak {peak}")
