"""The figure of chapter 2 computes the cosine and the dot product of the arrows it draws."""

import numpy as np
import pytest
from test_widgets import SAME, run_js

import mathllm as ml

rng = np.random.default_rng(1)


def test_the_arrows_have_the_lengths_and_the_angle_of_the_sliders():
    drawn = rng.uniform([0, 0.5, 0.5], [180, 4, 4], size=(100, 3))
    settings = np.vstack([drawn, [[0, 4, 4], [180, 0.5, 4], [90, 1, 1]]])  # the ends of the sliders among them
    a, b = np.array(run_js("angle_cosine.js", "arrows", settings.tolist())).swapaxes(0, 1)
    np.testing.assert_allclose(ml.norm(a), settings[:, 1], rtol=SAME)
    np.testing.assert_allclose(ml.norm(b), settings[:, 2], rtol=SAME)
    bearing = np.degrees(np.arctan2(b[:, 1], b[:, 0]) - np.arctan2(a[:, 1], a[:, 0]))
    np.testing.assert_allclose(bearing, settings[:, 0], atol=1e-12)  # degrees, from radians of size one


@pytest.mark.parametrize(("name", "function"), [("dot", ml.dot), ("cosineSimilarity", ml.cosine_similarity)])
def test_the_numbers_below_the_arrows_are_those_of_mathllm(name, function):
    pairs = rng.normal(size=(100, 2, 5))
    shown = run_js("angle_cosine.js", name, pairs.tolist())
    np.testing.assert_allclose(shown, function(pairs[:, 0], pairs[:, 1]), rtol=0, atol=SAME * 10)
