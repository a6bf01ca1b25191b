"""The figure of chapter 5 updates a Beta prior as mathllm does."""

import numpy as np
import pytest
from test_widgets import SAME, run_js

import mathllm as ml


@pytest.fixture
def settings():
    """Prior a, prior b, heads, tails: random ones, and the ends of the sliders."""
    random = np.random.default_rng(1).integers([1, 1, 0, 0], 51, size=(100, 4))
    return np.vstack([random, [[1, 1, 0, 0], [50, 50, 50, 50], [1, 50, 50, 0]]])


def posteriors(settings):
    return [ml.probability.Beta(int(a), int(b)).update(int(heads), int(tails)) for a, b, heads, tails in settings]


def test_throws_change_the_prior_as_in_mathllm(settings):
    after = run_js("beta_posterior.js", "update", settings.tolist())
    assert after == [[posterior.a, posterior.b] for posterior in posteriors(settings)]


def test_the_curves_are_the_densities_of_mathllm(settings):
    theta = np.random.default_rng(2).uniform(0.01, 0.99, len(settings))
    cases = [[t, posterior.a, posterior.b] for t, posterior in zip(theta, posteriors(settings), strict=True)]
    ours = [float(posterior.density(t)) for t, posterior in zip(theta, posteriors(settings), strict=True)]
    # exponents of up to 500 magnify the last digit of their logarithms
    np.testing.assert_allclose(run_js("beta_posterior.js", "betaDensity", cases), ours, rtol=1000 * SAME, atol=1e-300)


def test_the_numbers_below_the_curves_are_those_of_mathllm(settings):
    shown = run_js("beta_posterior.js", "summary", [[posterior.a, posterior.b] for posterior in posteriors(settings)])
    for numbers, posterior in zip(shown, posteriors(settings), strict=True):
        assert numbers["mean"] == pytest.approx(posterior.mean, rel=SAME)
        assert numbers["deviation"] == pytest.approx(np.sqrt(posterior.variance), rel=10 * SAME)
        assert numbers["mode"] == (None if posterior.a + posterior.b == 2 else pytest.approx(posterior.mode, rel=SAME))
