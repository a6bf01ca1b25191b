"""The figure of chapter 11: every number on the graph is that of mathllm, and the words say the same."""

import numpy as np
import pytest
from test_widgets import SAME, run_js

from mathllm.exhibits import backpropagation as exhibits

NAMES = {
    "z1": "z1", "a1": "a1", "z2": "z2", "prediction": "prediction", "loss": "loss", "delta2": "delta2", "da1": "da1",
    "derivative": "relu_slope", "delta1": "delta1", "dW1": "dW1", "predictionAfter": "prediction_after",
    "lossAfter": "loss_after",
}  # fmt: skip


@pytest.mark.parametrize("target", [0, 1])
def test_every_number_of_the_figure_is_that_of_mathllm(target):
    rng = np.random.default_rng(1)
    drawn = [[rng.normal(size=shape) for shape in (2, (2, 2), 2, 2, (), ())] for _ in range(20)]
    cases = [
        [x.tolist(), target, {"W1": W1.tolist(), "b1": b1.tolist(), "W2": W2.tolist(), "b2": float(b2)}, float(rate)]
        for x, W1, b1, W2, b2, rate in drawn
    ]
    for (x, W1, b1, W2, b2, rate), shown in zip(drawn, run_js("backprop_stepper.js", "trace", cases), strict=True):
        ours = exhibits.trace_network(x, W1, b1, [W2], [b2], target, learning_rate=rate)
        for theirs, name in NAMES.items():
            np.testing.assert_allclose(shown[theirs], getattr(ours, name), atol=SAME)
        np.testing.assert_allclose(shown["dW2"], ours.dW2[0], atol=SAME)
        for name, after in shown["after"].items():
            np.testing.assert_allclose(np.ravel(after), np.ravel(getattr(ours, name)), atol=SAME)


def test_the_words_hold_the_right_numbers():
    steps = run_js("backprop_stepper.js", "words", [[step, [1.0, 0.5], 1] for step in range(1, 9)])
    assert steps[0][0] == "A: z = 0.15·1 + 0.2·0.5 + 0.35 = 0.6,  a = max(0, z) = 0.6"
    assert steps[3] == ["δ = ŷ − y = 0.7645 − 1 = −0.2355"]
    assert steps[5][0].endswith("= −0.0942")
    assert steps[7][1] == "ŷ: 0.7645 → 0.8202,  loss: 0.2685 → 0.1982"


def test_an_inactive_unit_is_named():
    (lines,) = run_js("backprop_stepper.js", "words", [[6, [-2.0, -2.0], 1]])
    assert ["the unit is inactive" in line for line in lines] == [True, True]


def test_the_loss_is_finite_for_scores_of_any_size():
    assert run_js("backprop_stepper.js", "softplus", [[1000.0], [-1000.0]]) == [1000.0, 0.0]
