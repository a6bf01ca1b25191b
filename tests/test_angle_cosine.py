"""The figure of chapter 2 computes the cosine and the dot product of the arrows it draws."""

import numpy as np
import pytest
from test_widgets import SAME, run_js

import mathllm as ml


@pytest.fixture
def settings(rng):
    """Angles in degrees and two lengths, the ends of the sliders among them."""
    random = rng.uniform([0, 0.5, 0.5], [180, 4, 4], size=(100, 3))
    return np.vstack([random, [[0, 4, 4], [180, 0.5, 4], [90, 1, 1]]])


@pytest.fixture
def rng():
    return np.random.default_rng(1)


def test_the_arrows_have_the_lengths_and_the_angle_of_the_sliders(settings):
    a, b = np.array(run_js("angle_cosine.js", "arrows", settings.tolist())).swapaxes(0, 1)
    np.testing.assert_allclose(ml.norm(a), settings[:, 1], rtol=SAME)
    np.testing.assert_allclose(ml.norm(b), settings[:, 2], rtol=SAME)
    bearing = np.degrees(np.arctan2(b[:, 1], b[:, 0]) - np.arctan2(a[:, 1], a[:, 0]))
    np.testing.assert_allclose(bearing, settings[:, 0], atol=1e-12)  # degrees, from radians of size one


@pytest.mark.parametrize(("name", "function"), [("dot", ml.dot), ("cosineSimilarity", ml.cosine_similarity)])
def test_the_numbers_below_the_arrows_are_those_of_mathllm(rng, name, function):
    a, b = rng.normal(size=(2, 100, 5))
    pairs = [[x, y] for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    np.testing.assert_allclose(run_js("angle_cosine.js", name, pairs), function(a, b), rtol=0, atol=SAME * 10)


def test_a_length_slider_moves_the_dot_product_and_not_the_cosine(settings):
    stretched = settings * [1, 1.7, 0.6]
    before, after = (run_js("angle_cosine.js", "arrows", s.tolist()) for s in (settings, stretched))
    cosines = [run_js("angle_cosine.js", "cosineSimilarity", pairs) for pairs in (before, after)]
    np.testing.assert_allclose(*cosines, atol=SAME)
    dots = [run_js("angle_cosine.js", "dot", pairs) for pairs in (before, after)]
    np.testing.assert_allclose(np.multiply(dots[0], 1.7 * 0.6), dots[1], atol=SAME * 10)
