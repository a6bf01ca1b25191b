"""Chapter 17, training at scale: memory, short numbers, gradients of shards, the step of Muon."""

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
