"""The first figure of chapter 8 draws the lines whose slopes mathllm computes."""

import numpy as np
import pytest
from test_widgets import SAME, run_js

import mathllm as ml

CURVES = {
    "square": lambda x: x * x,
    "cube": lambda x: x**3,
    "exponential": np.exp,
    "kink": lambda x: np.maximum(x, 0),
}


@pytest.fixture
def places():
    """Places and steps on the sliders, without a step of zero."""
    rng = np.random.default_rng(1)
    return rng.uniform(-1.5, 1.5, size=100), rng.choice([-1, 1], size=100) * rng.uniform(0.01, 1, size=100)


@pytest.mark.parametrize("curve", CURVES)
def test_the_line_through_two_points_has_the_slope_that_mathllm_gives(curve, places):
    x, h = places
    slopes = run_js("secant_tangent.js", "secantSlope", [[curve, *pair] for pair in np.transpose(places).tolist()])
    np.testing.assert_allclose(slopes, ml.gradients.secant_slope(CURVES[curve], x, h), rtol=1e-9, atol=SAME)


@pytest.mark.parametrize("curve", CURVES)
def test_the_tangent_has_the_slope_of_the_curve(curve, places):
    x = places[0]
    slopes = run_js("secant_tangent.js", "slope", [[curve, at] for at in x.tolist()])
    # Central differences are right to about ten digits.
    np.testing.assert_allclose(slopes, ml.numerical_derivative(CURVES[curve], x), rtol=1e-8, atol=1e-8)


def test_one_point_makes_no_line_and_a_corner_no_tangent():
    assert run_js("secant_tangent.js", "secantSlope", [["square", 0.5, 0]]) == [None]
    assert run_js("secant_tangent.js", "slope", [["kink", 0]]) == [None]
