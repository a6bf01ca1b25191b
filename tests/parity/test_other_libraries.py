"""The calls of the page "From this book to PyTorch …", as they are printed there: both sides give the same numbers."""

import tomllib
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import mathllm as ml

CALLS = tomllib.loads((Path(__file__).parents[2] / "book" / "other_libraries.toml").read_text(encoding="utf-8"))["call"]


def arrays(seed):
    """The letters of the table: sizes B, T, D, V, H = 2, 5, 8, 7, 4."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 7, size=(2, 5))
    labels[0, :2] = -100
    return {
        "u": rng.normal(size=(5, 8)), "v": rng.normal(size=(5, 8)), "s": rng.uniform(0.1, 0.9, size=(5, 8)),
        "x": rng.normal(size=(2, 5, 8)), "W": rng.normal(size=(8, 6)), "b": rng.normal(size=6),
        "A": rng.normal(size=(8, 2)), "B": rng.normal(size=(2, 6)), "table": rng.normal(size=(7, 8)),
        "ids": rng.integers(0, 7, size=(2, 5)), "z": 3 * rng.normal(size=(2, 5, 7)), "labels": labels,
        "p": rng.dirichlet(np.ones(7), size=5), "q": rng.dirichlet(np.ones(7), size=5),
        "Q": rng.normal(size=(2, 4, 5, 6)), "K": rng.normal(size=(2, 4, 5, 6)), "V": rng.normal(size=(2, 4, 5, 6)),
        "gain": rng.normal(size=8), "bias": rng.normal(size=8),
    }  # fmt: skip


def f(x):
    """A function to differentiate, of what the tensors of both can do."""
    return (x * x * x).sum()


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call["ours"])
def test_both_sides_of_a_row_give_the_same_numbers(agree, call):
    shared = {"ml": ml, "np": np, "torch": torch, "F": F, "f": f}
    for seed in range(3):
        given = arrays(seed)
        ours = eval(call["ours"], shared | given)
        theirs = eval(call["theirs"], shared | {name: torch.from_numpy(array) for name, array in given.items()})
        agree("page of libraries", "value, float64", np.asarray(ours), theirs, within=1e-12)


def test_samples_of_both_have_the_same_frequencies():
    p, draws = np.array([0.5, 0.3, 0.15, 0.05]), 20_000
    torch.manual_seed(0)
    theirs = torch.multinomial(torch.from_numpy(p), draws, replacement=True).numpy()
    for drawn in (ml.sample(p, np.random.default_rng(0), draws), theirs):
        share = np.bincount(drawn, minlength=4) / draws
        assert np.abs(share - p).max() < 4 * np.sqrt(0.25 / draws)  # four standard errors of the largest
