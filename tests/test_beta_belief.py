"""The figure of chapter 5 turns beliefs and throws into beliefs as mathllm does."""

import numpy as np
import pytest
import traitlets
from test_widgets import SAME, run_js

import mathllm as ml
from mathllm.widgets import BetaBelief


@pytest.fixture
def settings():
    """Prior a, prior b, heads, tails: random ones, and the ends of the sliders."""
    random = np.random.default_rng(1).integers([1, 1, 0, 0], 51, size=(100, 4))
    return np.vstack([random, [[1, 1, 0, 0], [50, 50, 50, 50], [1, 50, 50, 0]]])


def beliefs(settings):
    return [ml.Beta(int(a), int(b)).update(int(heads), int(tails)) for a, b, heads, tails in settings]


def test_throws_change_the_belief_as_in_mathllm(settings):
    after = run_js("beta_belief.js", "update", settings.tolist())
    assert after == [[belief.a, belief.b] for belief in beliefs(settings)]


def test_the_curves_are_the_densities_of_mathllm(settings):
    theta = np.random.default_rng(2).uniform(0.01, 0.99, len(settings))
    cases = [[t, belief.a, belief.b] for t, belief in zip(theta, beliefs(settings), strict=True)]
    ours = [float(belief.density(t)) for t, belief in zip(theta, beliefs(settings), strict=True)]
    # exponents of up to 500 magnify the last digit of their logarithms
    np.testing.assert_allclose(run_js("beta_belief.js", "betaDensity", cases), ours, rtol=1000 * SAME, atol=1e-300)


def test_the_numbers_below_the_curves_are_those_of_mathllm(settings):
    shown = run_js("beta_belief.js", "summary", [[belief.a, belief.b] for belief in beliefs(settings)])
    for numbers, belief in zip(shown, beliefs(settings), strict=True):
        assert numbers["mean"] == pytest.approx(belief.mean, rel=SAME)
        assert numbers["deviation"] == pytest.approx(np.sqrt(belief.variance), rel=10 * SAME)
        assert numbers["mode"] == (None if belief.a + belief.b == 2 else pytest.approx(belief.mode, rel=SAME))


@pytest.mark.parametrize("outside", [{"prior_a": 0}, {"prior_b": 51}, {"heads": -1}, {"tails": 51}])
def test_the_figure_refuses_settings_off_its_sliders(outside):
    with pytest.raises(traitlets.TraitError):
        BetaBelief(**outside)
