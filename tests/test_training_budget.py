"""The costs in the figure of chapter 13 are those of mathllm."""

import numpy as np
import pytest
from test_widgets import SAME, run_js

import mathllm as ml

RNG = np.random.default_rng(3)
SIZES = 10 ** RNG.uniform(7, 12, size=30)
TOKENS = 10 ** RNG.uniform(9, 14, size=30)


@pytest.mark.parametrize("stage", range(4))
def test_the_bars_are_the_memory_of_each_worker(stage):
    workers = [2**k for k in range(10)]
    bars = run_js("training_budget.js", "zeroMemory", [[float(N), n, stage] for N in SIZES for n in workers])
    expected = [ml.scale.zero_memory(N, n, stage) for N in SIZES for n in workers]
    np.testing.assert_allclose(bars, expected, rtol=SAME)


def test_operations_days_and_loss_are_those_of_the_package():
    runs = [[float(N), float(D)] for N, D in zip(SIZES, TOKENS, strict=True)]
    operations = np.array(run_js("training_budget.js", "flops", runs), float)  # JavaScript writes whole numbers out
    np.testing.assert_allclose(operations, ml.scale.training_flops(SIZES, TOKENS), rtol=SAME)
    np.testing.assert_allclose(
        run_js("training_budget.js", "loss", runs), ml.scale.scaling_loss(SIZES, TOKENS), rtol=SAME
    )
    days = run_js("training_budget.js", "days", [[float(C), 1024] for C in operations])
    expected = [C / (1024 * 312e12 * 0.4) / 86400 for C in operations]
    np.testing.assert_allclose(days, expected, rtol=SAME)


def test_the_bubble_of_the_pipeline_is_that_of_the_package():
    sizes = [[stages, many] for stages in (1, 2, 8, 32) for many in (1, 5, 128)]
    np.testing.assert_allclose(
        run_js("training_budget.js", "bubble", sizes), [ml.scale.pipeline_bubble(*s) for s in sizes]
    )
