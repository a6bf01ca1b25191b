"""The figure of chapter 14 keeps the tokens that generate() keeps."""

import numpy as np
import pytest
from test_widgets import SAME, run_js

import mathllm as ml
from mathllm.figures.widgets import SamplingFilters


def _settings():
    rng = np.random.default_rng(1)
    for _ in range(60):
        logits = np.sort(rng.normal(size=12) * 3)[::-1]
        yield logits, float(rng.uniform(0.1, 3)), int(rng.integers(1, 13)), float(rng.uniform(0.05, 1))
    yield np.zeros(12), 1.0, 12, 0.5  # ties, and a sum that reaches p exactly
    yield np.array([9.0, 0.0, 0.0]), 1.0, 3, 1.0


def test_the_bars_are_the_distribution_that_is_sampled_from():
    settings = list(_settings())
    bars = run_js("sampling_filters.js", "filtered", [[z.tolist(), T, k, p] for z, T, k, p in settings])
    for (z, T, k, p), bar in zip(settings, bars, strict=True):
        kept = ml.softmax(ml.inference.reshape_logits(z, T, min(k, len(z)), p, None))
        if np.ptp(z) == 0:  # of equal logits mathllm and the figure may keep different ones, but as many
            kept = np.sort(kept)[::-1]
        np.testing.assert_allclose(bar, kept, atol=SAME)


def test_the_nucleus_is_the_smallest_that_reaches_p():
    P = [0.629, 0.231, 0.14]
    assert run_js("sampling_filters.js", "nucleusSize", [[P, p] for p in (0.5, 0.8, 0.9, 1.0)]) == [1, 2, 3, 3]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"tokens": ["a"], "logits": [1.0, 0.0]}, "got tokens 1, logits 2"),
        ({"tokens": ["a", "b"], "logits": [0.0, 1.0]}, "falling"),
    ],
)
def test_the_figure_refuses_what_it_cannot_draw(wrong, words):
    with pytest.raises(ValueError, match=words):
        SamplingFilters(**wrong)
