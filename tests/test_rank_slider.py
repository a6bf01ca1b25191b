"""The picture in chapter 3 is rebuilt as mathllm's low-rank approximation is."""

import numpy as np
import pytest
from test_widgets import SAME, run_js

import mathllm as ml
from mathllm.figures.widgets import RankSlider

FILE = "rank_slider.js"
rng = np.random.default_rng(1)


@pytest.mark.parametrize("shape", [(6, 6), (4, 9), (9, 4), (1, 5)])
def test_the_picture_is_the_low_rank_approximation_and_its_error(shape):
    W = rng.random(shape)
    U, sizes, Vt = ml.matrices.svd(W)
    ranks = range(min(shape) + 1)
    arguments = [[U.T.tolist(), sizes.tolist(), Vt.tolist(), rank] for rank in ranks]
    for rank, ours in zip(ranks, run_js(FILE, "approximate", arguments), strict=True):
        np.testing.assert_allclose(ours, ml.matrices.low_rank_approximation(W, rank), atol=SAME * 10)
    errors = run_js(FILE, "relativeError", [[sizes.tolist(), rank] for rank in ranks])
    wanted = [ml.matrices.low_rank_error(W, rank) / ml.frobenius_norm(W) for rank in ranks]
    np.testing.assert_allclose(errors, wanted, atol=SAME * 10)
    counts = run_js(FILE, "factorSize", [[*shape, rank] for rank in ranks])
    assert counts == [rank * sum(shape) for rank in ranks]


def test_all_singular_values_together_give_the_picture_back():
    picture = rng.random((12, 20))
    figure = RankSlider(picture, rank=12)
    (ours,) = run_js(FILE, "approximate", [[figure.columns, figure.sizes, figure.rows, 12]])
    np.testing.assert_allclose(ours, picture, atol=1e-3)  # the factors travel with five decimals


@pytest.mark.parametrize("picture", [np.full((3, 3), 2.0), np.full((2, 2), np.nan), np.ones(4), np.ones((65, 2))])
def test_the_figure_refuses_what_is_no_small_picture(picture):
    with pytest.raises(ValueError, match=r"RankSlider(\(\))? needs"):
        RankSlider(picture)


def test_the_figure_refuses_a_rank_that_the_picture_cannot_have():
    with pytest.raises(ValueError, match=r"rank in \[0, 3\], got 4"):
        RankSlider(np.eye(3), rank=4)
