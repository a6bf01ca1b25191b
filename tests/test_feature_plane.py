"""The figure of chapter 16 adds and reads features as the toy model of mathllm does."""

import numpy as np
import pytest
from test_widgets import SAME, run_js

import mathllm as ml
from mathllm.figures.widgets import FeaturePlane

rng = np.random.default_rng(1)


@pytest.fixture(scope="module")
def directions():
    sizes = range(2, 9)
    shown = run_js("feature_plane.js", "directions", [[n] for n in sizes])
    return {n: np.array(W) for n, W in zip(sizes, shown, strict=True)}


def test_the_directions_are_unit_vectors_spread_evenly(directions):
    for n, W in directions.items():
        np.testing.assert_allclose(ml.norm(W), 1, atol=SAME)
        neighbours = ml.cosine_similarity(W, np.roll(W, 1, axis=0))
        np.testing.assert_allclose(neighbours, np.cos(2 * np.pi / n), atol=SAME)


def test_the_outputs_and_their_error_are_those_of_the_toy_model(directions):
    inputs = [(rng.random(n) < 0.5).astype(float) for n in rng.integers(2, 9, size=60)]
    settings = [[len(x), (np.flatnonzero(x) + 1).tolist(), rng.uniform(-1, 0)] for x in inputs]
    errors, outputs = (run_js("feature_plane.js", name, settings) for name in ("squaredError", "outputs"))
    for x, (n, _, bias), error, output in zip(inputs, settings, errors, outputs, strict=True):
        W, params = directions[n], {"weight": directions[n], "bias": np.full(n, bias)}
        assert error == pytest.approx(ml.interpretability.superposition_loss(params, x[None]), abs=SAME)
        np.testing.assert_allclose(output, ml.relu(x @ W @ W.T + bias), atol=SAME)


def test_the_figure_refuses_a_feature_that_is_not_there():
    with pytest.raises(ValueError, match=r"from 1 to 3, got \[4\]"):
        FeaturePlane(features=3, active=[4])
