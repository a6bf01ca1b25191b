"""Chapter 17, training at scale: memory, short numbers, gradients of shards, the step of Muon."""

from itertools import pairwise

import numpy as np

from . import checks, draws


@draws("17.scale.own_memory")
def _fleet(rng):
    return {
        "billions": int(rng.choice([3, 7, 13, 30, 70])),
        "workers": int(rng.choice([8, 16, 64])),
        "stage": int(rng.integers(1, 3)),
    }


def _short_numbers(rng):
    return [
        (np.exp2(rng.uniform(-20, 20, size=n)).astype(np.float32) * rng.choice([-1, 1], size=n).astype(np.float32),)
        for n in (1, 9, 40)
    ]


@checks("17.scale.round_bfloat16")
def _(c):
    c.values(2, _short_numbers, public=[(np.array([1.0, 3.14159, -0.1], np.float32),)], name="right values", rtol=1e-7)
    c.values(
        2,
        public=[(np.array([1 + 1 / 256, 1 + 3 / 256, -(2 + 1 / 128)], np.float32),)],
        name="halfway to the even one",
        rtol=1e-7,
    )
    c.values(
        1,
        public=[(np.zeros(2, np.float32),), (np.array([1e30, -1e-30], np.float32),)],
        name="zero, large and small",
        rtol=1e-7,
    )
    c.keeps_dtype(1, _short_numbers)


def _shares_of_batch(rng):
    cases = []
    for counts in ([3, 5], [7, 1, 4], [2, 0, 6]):
        cases.append(([rng.normal(size=(2, 3)) for _ in counts], [int(n) for n in counts]))
    return cases


@checks("17.scale.repair_mean")
def _(c):
    c.values(3, _shares_of_batch, public=[([np.array([1.0]), np.array([4.0])], [3, 1])], name="unequal shares")
    c.values(1, public=[([np.array([1.0, 2.0]), np.array([3.0, 6.0])], [5, 5])], name="equal shares")


@checks("17.scale.polar_factor")
def _(c):
    c.values(
        3,
        lambda rng: [(rng.normal(size=shape), rounds) for shape, rounds in [((3, 3), 4), ((2, 5), 6), ((4, 2), 2)]],
        public=[(np.diag([3.0, 4.0]), 1)],
        name="right values",
        rtol=1e-6,
    )


PASSES = sorted(f"{way}{n}" for way in "FB" for n in range(1, 9))


def _stored(schedule):
    if not isinstance(schedule, (list, tuple)) or len(schedule) != 4 or not all(isinstance(s, str) for s in schedule):
        raise ValueError('the answer is a list of four texts such as "F1 F2 B1 B2"')
    waiting = [text.split() for text in schedule]
    if any(sorted(passes) != PASSES for passes in waiting):
        raise ValueError("each device has the passes F1 to F8 and B1 to B8, each once", *_other_passes(waiting))
    done, stored, most, slots = set(), [0] * 4, [0] * 4, 0
    while any(waiting):
        ready = [d for d, passes in enumerate(waiting) if passes and _needs(d, passes[0]) <= done]
        if not ready:
            reason = f"after {slots} slots, no device can go on"
            raise ValueError(reason, *(_too_early(waiting, done) or _each_other(waiting)))
        for d in ready:
            stored[d] += 1 if waiting[d][0][0] == "F" else -1
            most[d] = max(most[d], stored[d])
        done |= {(d, waiting[d].pop(0)) for d in ready}
        slots += 1
    if slots > 22:
        raise ValueError(f"the batch is ready after {slots} slots; 22 are enough", *_slow(schedule, most))
    return sum(most)


def _slow(schedule, most):
    """The sentence of the known mistake that takes too many slots."""
    if max(most) == 1:
        return ["Every device stores one microbatch at a time, so the others wait. Begin with more forward passes."]
    if len({tuple(text.split()) for text in schedule}) == 1:
        return ["All devices have the same order. The first one must do more forward passes ahead than the last one."]
    return []


def _other_passes(waiting):
    """A sentence about the first device whose passes are not those of the task."""
    if any("F0" in passes for passes in waiting):
        return ["You counted the microbatches from 0. Count them from 1 to 8."]
    device, passes = next((d, p) for d, p in enumerate(waiting, 1) if sorted(p) != PASSES)
    if other := [name for name in passes if name not in PASSES]:
        said = f"Device {device} has `{other[0][:10]}`, which is no pass."
        return [f"{said} Write passes such as F1 or B1 with blanks between; waiting follows by itself."]
    if twice := [name for name in PASSES if passes.count(name) > 1]:
        return [f"Device {device} has {twice[0]} more than once."]
    return [f"Device {device} lacks {next(name for name in PASSES if name not in passes)}."]


def _each_other(waiting):
    """A sentence about two neighbours that wait for each other."""
    for d, (one, other) in enumerate(pairwise(waiting), 1):
        if one and other and one[0][0] == "B" and other[0][0] == "F":
            waits = f"Device {d} waits for {one[0]} of device {d + 1}, which waits for {other[0]} of device {d}."
            return [f"{waits} On device {d}, put {other[0]} before {one[0]}."]
    return []


def _too_early(waiting, done):
    """A sentence about a device that begins a backward pass before its own forward pass."""
    for device, passes in enumerate(waiting):
        if passes and passes[0][0] == "B" and (device, f"F{passes[0][1:]}") not in done:
            return [f"Device {device + 1} has {passes[0]} before F{passes[0][1:]}. The forward pass comes first."]
    return []


def _needs(device, step):
    """The passes that must be done before this one: {(device, pass)}."""
    if step[0] == "F":
        return {(device - 1, step)} if device > 0 else set()
    return {(device, "F" + step[1:])} | ({(device + 1, step)} if device < 3 else set())


@checks("17.scale.pipeline_schedule")
def _(c):
    c.scored("stored microbatches", _stored, {10: 1, 16: 2 / 3, 32: 1 / 3})
