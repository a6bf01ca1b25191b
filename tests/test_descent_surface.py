"""The figure of chapter 9 takes the steps of the optimisers of mathllm, on the surface it draws."""

import numpy as np
import pytest
from test_widgets import run_js

import mathllm as ml

HEIGHTS = {
    "narrow valley": lambda v: 0.5 * (v[0] ** 2 + 20 * v[1] ** 2),
    "saddle point": lambda v: 0.5 * (v[0] ** 2 - v[1] ** 2) + 0.25 * v[1] ** 4,
    "two minima": lambda v: 0.5 * (v[0] ** 2 - 1) ** 2 + 0.3 * v[0] + v[1] ** 2,
}
MOMENTUM = {"init": ml.gradient_descent.momentum_init, "step": ml.gradient_descent.momentum_step}
METHODS = {
    "gradient descent": lambda beta: {},
    "momentum": lambda beta: MOMENTUM | {"beta": beta},
    "Adam": lambda beta: {"init": ml.adam_init, "step": ml.adam_step, "beta1": beta},
}
# The same arithmetic in another order: rounding grows along the path, most where it is steep, but stays far below this.
NEAR = 1e-7


@pytest.mark.parametrize("surface", HEIGHTS)
def test_the_gradient_is_that_of_the_height(surface):
    height, places = HEIGHTS[surface], np.random.default_rng(1).uniform(-2, 2, size=(50, 2))
    cases = [[surface, place] for place in places.tolist()]
    shown = run_js("descent_surface.js", "height", cases)
    np.testing.assert_allclose(shown, [height(place) for place in places], rtol=1e-12, atol=1e-12)
    slopes = run_js("descent_surface.js", "gradient", cases)
    np.testing.assert_allclose(slopes, [ml.grad(height)(place) for place in places], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("beta", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("surface", HEIGHTS)
def test_the_path_is_that_of_the_optimiser(surface, method, beta):
    (visited,) = run_js("descent_surface.js", "path", [[surface, method, 0.03, beta, 40]])
    path = ml.gradient_descent.descent_path(
        HEIGHTS[surface], visited[0], 40, learning_rate=0.03, **METHODS[method](beta)
    )
    np.testing.assert_allclose(visited, path, rtol=NEAR, atol=NEAR)


def test_a_descent_that_diverges_stops():
    (visited,) = run_js("descent_surface.js", "path", [["narrow valley", "gradient descent", 0.5, 0.0, 100]])
    assert len(visited) < 20
    assert np.abs(visited[-1]).max() >= 1e6 > np.abs(visited[-2]).max()


@pytest.mark.parametrize("surface", HEIGHTS)
def test_a_contour_line_keeps_its_height(surface):
    level = 1.3
    (pieces,) = run_js("descent_surface.js", "contour", [[surface, level, [-2.6, 2.6], [-1.7, 1.7]]])
    assert len(pieces) > 20
    heights = [HEIGHTS[surface](point) for piece in pieces for point in piece]
    # Straight lines across cells 0.09 wide, on a surface of curvature up to 20: a little off.
    np.testing.assert_allclose(heights, level, atol=0.05)
