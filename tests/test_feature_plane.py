"""The figure of chapter 16 adds and reads features as the toy model of mathllm does."""

import numpy as np
import pytest
from test_widgets import SAME, run_js

import mathllm as ml
from mathllm.figures.widgets import FeaturePlane


def _settings():
    rng = np.random.default_rng(1)
    for _ in range(60):
        n = int(rng.integers(2, 9))
        active = (np.flatnonzero(rng.random(n) < 0.5) + 1).tolist()
        yield n, active, float(rng.uniform(-1, 0))


SETTINGS = list(_settings())


def test_the_directions_are_unit_vectors_spread_evenly():
    for n in range(2, 9):
        [directions] = run_js("feature_plane.js", "directions", [[n]])
        np.testing.assert_allclose(ml.norm(directions), 1, atol=SAME)
        neighbours = ml.cosine_similarity(directions, np.roll(directions, 1, axis=0))
        np.testing.assert_allclose(neighbours, np.cos(2 * np.pi / n), atol=SAME)


def test_the_outputs_and_their_error_are_those_of_the_toy_model():
    directions = dict(
        zip(range(2, 9), run_js("feature_plane.js", "directions", [[n] for n in range(2, 9)]), strict=True)
    )
    errors = run_js("feature_plane.js", "squaredError", SETTINGS)
    outputs = run_js("feature_plane.js", "outputs", SETTINGS)
    for (n, active, bias), error, output in zip(SETTINGS, errors, outputs, strict=True):
        W, x = np.array(directions[n]), np.zeros(n)
        x[np.array(active, int) - 1] = 1
        assert error == pytest.approx(
            ml.interpretability.superposition_loss({"weight": W, "bias": np.full(n, bias)}, x[None]), abs=SAME
        )
        np.testing.assert_allclose(output, ml.relu(x @ W @ W.T + bias), atol=SAME)


def test_the_figure_refuses_a_feature_that_is_not_there():
    with pytest.raises(ValueError, match=r"from 1 to 3, got \[4\]"):
        FeaturePlane(features=3, active=[4])
