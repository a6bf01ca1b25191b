"""The figure of chapter 3 moves the plane as mathllm's matrices do."""

import numpy as np
from test_widgets import SAME, run_js

import mathllm as ml

rng = np.random.default_rng(1)
MATRICES = np.vstack([rng.uniform(-2, 2, size=(100, 2, 2)), np.zeros((1, 2, 2)), np.eye(2)[None], -np.eye(2)[None]])


def js(name, *arguments):
    """The exported function, called once for each matrix of the list."""
    return run_js("grid_deformation.js", name, [list(one) for one in zip(*arguments, strict=True)])


def test_a_point_goes_where_the_matrix_sends_it():
    points = rng.normal(size=(len(MATRICES), 2))
    moved = js("apply", MATRICES.tolist(), points.tolist())
    np.testing.assert_allclose(moved, ml.matrices.matrix_vector_product(MATRICES, points), atol=SAME * 10)


def test_the_radii_of_the_ellipse_are_the_singular_values():
    np.testing.assert_allclose(js("singularValues", MATRICES.tolist()), ml.singular_values(MATRICES), atol=SAME * 10)


def test_the_eigenvalues_are_the_real_ones_and_none_for_a_rotation():
    found = js("eigenvalues", MATRICES.tolist())
    for W, ours in zip(MATRICES, found, strict=True):
        values = ml.matrices.eigenvalues(W)
        wanted = [] if np.iscomplexobj(values) else values
        np.testing.assert_allclose(sorted(ours), sorted(wanted), atol=1e-6)  # roots of nearly equal values: √1e-16
    assert 10 < sum(not ours for ours in found) < 90  # both kinds were tried
    assert js("eigenvalues", [[[0, -1], [1, 0]]]) == [[]]


def test_the_amount_leads_from_the_identity_to_the_matrix():
    amounts = rng.uniform(size=len(MATRICES))
    blended = js("blend", MATRICES.tolist(), amounts.tolist())
    wanted = np.eye(2) + amounts[:, None, None] * (MATRICES - np.eye(2))
    np.testing.assert_allclose(blended, wanted, atol=SAME)
