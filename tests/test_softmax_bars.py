"""The figure of chapter 6 draws the probabilities of its sliders, and its buttons change none of them."""

import numpy as np
import pytest
from test_widgets import SAME, run_js

import mathllm as ml
from mathllm.figures.widgets import SoftmaxBars


@pytest.fixture
def logits():
    """Logits of four candidates within the sliders, the ends among them."""
    random = np.random.default_rng(1).uniform(-5, 10, size=(50, 4))
    return np.vstack([random, [[-5, -5, -5, -5], [10, -5, -5, 10]]])


def test_the_ratio_below_the_bars_is_that_of_the_probabilities(logits):
    ratios = run_js("softmax_bars.js", "ratio", [[row[0], row[1], 2.0] for row in logits.tolist()])
    p = ml.softmax(logits, temperature=2.0)
    np.testing.assert_allclose(ratios, p[:, 0] / p[:, 1], rtol=SAME)


def test_raising_all_logits_changes_no_probability(logits):
    moved = np.array(run_js("softmax_bars.js", "raised", [[row, 1, [-5, 10]] for row in logits.tolist()]))
    np.testing.assert_allclose(ml.softmax(moved), ml.softmax(logits), atol=SAME)
    assert moved.max() <= 10
    assert np.any(moved != logits)


def test_the_figure_refuses_labels_that_do_not_fit_the_logits():
    with pytest.raises(ValueError, match="got labels 1, logits 3"):
        SoftmaxBars(labels=["alone"])
