"""The interactive figures of chapters 2, 3, 5, 9, 10, 11 and 16 compute in JavaScript what mathllm computes."""

import numpy as np
import pytest
from test_widgets import SAME, run_js

import mathllm as ml
from mathllm.exhibits import backpropagation as exhibits
from mathllm.figures.widgets import AttentionStepper, FeaturePlane, RotaryPair

SHORT = {"name": "short", "tokens": ["a", "b"], "query": [[1.0]], "key": [[1.0], [2.0]], "value": []}


@pytest.fixture
def rng():
    return np.random.default_rng(1)


@pytest.mark.parametrize(
    ("figure", "wrong", "words"),
    [
        (AttentionStepper, {"examples": [SHORT]}, "one row per token"),
        (AttentionStepper, {"row": 3}, "no row 3"),
        (RotaryPair, {"query_position": 31}, "query_position"),
        (FeaturePlane, {"features": 3, "active": [4]}, r"from 1 to 3, got \[4\]"),
    ],
)
def test_a_figure_refuses_what_it_cannot_show(figure, wrong, words):
    with pytest.raises(Exception, match=words):
        figure(**wrong)


# Chapter 2: the angle between two arrows


def test_the_arrows_have_the_lengths_and_the_angle_of_the_sliders(rng):
    drawn = rng.uniform([0, 0.5, 0.5], [180, 4, 4], size=(100, 3))
    settings = np.vstack([drawn, [[0, 4, 4], [180, 0.5, 4], [90, 1, 1]]])  # the ends of the sliders among them
    a, b = np.array(run_js("angle_cosine.js", "arrows", settings.tolist())).swapaxes(0, 1)
    np.testing.assert_allclose(ml.norm(a), settings[:, 1], rtol=SAME)
    np.testing.assert_allclose(ml.norm(b), settings[:, 2], rtol=SAME)
    bearing = np.degrees(np.arctan2(b[:, 1], b[:, 0]) - np.arctan2(a[:, 1], a[:, 0]))
    np.testing.assert_allclose(bearing, settings[:, 0], atol=1e-12)  # degrees, from radians of size one


@pytest.mark.parametrize(("name", "function"), [("dot", ml.dot), ("cosineSimilarity", ml.cosine_similarity)])
def test_the_numbers_below_the_arrows_are_those_of_mathllm(rng, name, function):
    pairs = rng.normal(size=(100, 2, 5))
    shown = run_js("angle_cosine.js", name, pairs.tolist())
    np.testing.assert_allclose(shown, function(pairs[:, 0], pairs[:, 1]), rtol=0, atol=SAME * 10)


# Chapter 3: a grid moved by a matrix


DRAWN = np.random.default_rng(1).uniform(-2, 2, size=(100, 2, 2))
MATRICES = np.vstack([DRAWN, np.zeros((1, 2, 2)), np.eye(2)[None], -np.eye(2)[None]])


def js(name, *arguments):
    """The exported function, called once for each matrix of the list."""
    return run_js("grid_deformation.js", name, [list(one) for one in zip(*arguments, strict=True)])


def test_a_point_goes_where_the_matrix_sends_it(rng):
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


def test_the_amount_leads_from_the_identity_to_the_matrix(rng):
    amounts = rng.uniform(size=len(MATRICES))
    blended = js("blend", MATRICES.tolist(), amounts.tolist())
    wanted = np.eye(2) + amounts[:, None, None] * (MATRICES - np.eye(2))
    np.testing.assert_allclose(blended, wanted, atol=SAME)


# Chapter 5: a Beta posterior


@pytest.fixture
def updates(rng):
    """Settings of prior a, prior b, heads and tails, the ends of the sliders among them; each with its posterior."""
    ends = [[1, 1, 0, 0], [50, 50, 50, 50], [1, 50, 50, 0]]
    settings = [*rng.integers([1, 1, 0, 0], 51, size=(100, 4)).tolist(), *ends]
    return [(one, ml.probability.Beta(*one[:2]).update(*one[2:])) for one in settings]


def test_throws_change_the_prior_as_in_mathllm(updates):
    after = run_js("beta_posterior.js", "update", [setting for setting, _ in updates])
    assert after == [[posterior.a, posterior.b] for _, posterior in updates]


def test_the_curves_are_the_densities_of_mathllm(rng, updates):
    cases = [(rng.uniform(0.01, 0.99), posterior) for _, posterior in updates]
    shown = run_js(
        "beta_posterior.js", "betaDensity", [[theta, posterior.a, posterior.b] for theta, posterior in cases]
    )
    ours = [float(posterior.density(theta)) for theta, posterior in cases]
    # exponents of up to 500 magnify the last digit of their logarithms
    np.testing.assert_allclose(shown, ours, rtol=1000 * SAME, atol=1e-300)


def test_the_numbers_below_the_curves_are_those_of_mathllm(updates):
    shown = run_js("beta_posterior.js", "summary", [[posterior.a, posterior.b] for _, posterior in updates])
    for numbers, (_, posterior) in zip(shown, updates, strict=True):
        assert numbers["mean"] == pytest.approx(posterior.mean, rel=SAME)
        assert numbers["deviation"] == pytest.approx(np.sqrt(posterior.variance), rel=10 * SAME)
        assert numbers["mode"] == (None if posterior.a + posterior.b == 2 else pytest.approx(posterior.mode, rel=SAME))


# Chapter 9: descent on a surface


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
def test_the_gradient_is_that_of_the_height(rng, surface):
    height, places = HEIGHTS[surface], rng.uniform(-2, 2, size=(50, 2))
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


# Chapter 10: attention step by step, and a rotated pair


MASKS = {"none": None, "causal": ml.causal_mask(4), "window": ml.sliding_window_mask(4, 2)}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("scaled", [True, False])
def test_every_matrix_of_the_figure_is_that_of_mathllm(rng, mask, scaled):
    cases = [[*(rng.normal(size=(4, 3)).tolist() for _ in range(3)), mask, scaled] for _ in range(10)]
    shown = run_js("attention_stepper.js", "attention", cases)
    for (query, key, value, *_), ours in zip(cases, shown, strict=True):
        query, key = np.array(query), np.array(key)
        scale = 1 / np.sqrt(3) if scaled else 1.0
        weights = ml.attention_weights(query, key, MASKS[mask], scale=scale)
        np.testing.assert_allclose(ours["raw"], query @ key.T, atol=SAME)
        np.testing.assert_allclose(ours["scores"], scale * query @ key.T, atol=SAME)
        np.testing.assert_allclose(ours["weights"], weights, atol=SAME)
        output = ml.attention(query, key, value, MASKS[mask], scale=scale)
        np.testing.assert_allclose(ours["output"], output, atol=SAME)


def test_the_first_example_is_explained_in_words():
    three = AttentionStepper().examples[0]
    lines = run_js("attention_stepper.js", "words", [[step, 0, three, "none", True] for step in (1, 4, 5)])
    assert lines[0][0] == "with key “1”: 1·1 + 0·1 = 1"
    assert lines[1][1].endswith("= 0.401")
    assert lines[2][-1] == "= [6.02, 3.98]"


def test_a_masked_key_is_named_in_words():
    three = AttentionStepper().examples[0]
    (lines,) = run_js("attention_stepper.js", "words", [[3, 0, three, "causal", True]])
    assert ["masked" in line for line in lines] == [False, True, True]


def test_an_example_without_values_ends_with_the_weights():
    cat = AttentionStepper().examples[1]
    (ours,) = run_js("attention_stepper.js", "attention", [[cat["query"], cat["key"], [], "none", True]])
    np.testing.assert_allclose(ours["weights"], ml.attention_weights(cat["query"], cat["key"]), atol=SAME)
    assert ours["output"] is None


def test_the_rotated_score_is_that_of_rotate(rng):
    cases = [[*rng.normal(size=(2, 2)).tolist(), *rng.integers(0, 31, 2).tolist(), rng.uniform()] for _ in range(50)]
    for (query, key, m, n, rate), score in zip(cases, run_js("rotary_pair.js", "score", cases), strict=True):
        a, b = (ml.rotate(np.array([x]), angles=np.array([[t * rate]]))[0] for x, t in ((query, m), (key, n)))
        assert score == pytest.approx(a @ b, abs=SAME)


# Chapter 11: backpropagation step by step


NAMES = {
    "z1": "z1", "a1": "a1", "z2": "z2", "prediction": "prediction", "loss": "loss", "delta2": "delta2", "da1": "da1",
    "derivative": "relu_slope", "delta1": "delta1", "dW1": "dW1", "predictionAfter": "prediction_after",
    "lossAfter": "loss_after",
}  # fmt: skip


@pytest.mark.parametrize("target", [0, 1])
def test_every_number_of_the_figure_is_that_of_mathllm(rng, target):
    drawn = [[rng.normal(size=shape) for shape in (2, (2, 2), 2, 2, (), ())] for _ in range(20)]
    cases = [
        [x.tolist(), target, {"W1": W1.tolist(), "b1": b1.tolist(), "W2": W2.tolist(), "b2": float(b2)}, float(rate)]
        for x, W1, b1, W2, b2, rate in drawn
    ]
    for (x, W1, b1, W2, b2, rate), shown in zip(drawn, run_js("backprop_stepper.js", "trace", cases), strict=True):
        ours = exhibits.trace_network(x, W1, b1, [W2], [b2], target, learning_rate=rate)
        for theirs, name in NAMES.items():
            np.testing.assert_allclose(shown[theirs], getattr(ours, name), atol=SAME)
        np.testing.assert_allclose(shown["dW2"], ours.dW2[0], atol=SAME)
        for name, after in shown["after"].items():
            np.testing.assert_allclose(np.ravel(after), np.ravel(getattr(ours, name)), atol=SAME)


def test_the_words_hold_the_right_numbers():
    steps = run_js("backprop_stepper.js", "words", [[step, [1.0, 0.5], 1] for step in range(1, 9)])
    assert steps[0][0] == "A: z = 0.15·1 + 0.2·0.5 + 0.35 = 0.6,  a = max(0, z) = 0.6"
    assert steps[3] == ["δ = ŷ − y = 0.7645 − 1 = −0.2355"]
    assert steps[5][0].endswith("= −0.0942")
    assert steps[7][1] == "ŷ: 0.7645 → 0.8202,  loss: 0.2685 → 0.1982"


def test_an_inactive_unit_is_named():
    (lines,) = run_js("backprop_stepper.js", "words", [[6, [-2.0, -2.0], 1]])
    assert ["the unit is inactive" in line for line in lines] == [True, True]


def test_the_loss_is_finite_for_scores_of_any_size():
    assert run_js("backprop_stepper.js", "softplus", [[1000.0], [-1000.0]]) == [1000.0, 0.0]


# Chapter 16: features in a plane


@pytest.fixture
def directions():
    sizes = range(2, 9)
    shown = run_js("feature_plane.js", "directions", [[n] for n in sizes])
    return {n: np.array(W) for n, W in zip(sizes, shown, strict=True)}


def test_the_directions_are_unit_vectors_spread_evenly(directions):
    for n, W in directions.items():
        np.testing.assert_allclose(ml.norm(W), 1, atol=SAME)
        neighbours = ml.cosine_similarity(W, np.roll(W, 1, axis=0))
        np.testing.assert_allclose(neighbours, np.cos(2 * np.pi / n), atol=SAME)


def test_the_outputs_and_their_error_are_those_of_the_toy_model(rng, directions):
    inputs = [(rng.random(n) < 0.5).astype(float) for n in rng.integers(2, 9, size=60)]
    settings = [[len(x), (np.flatnonzero(x) + 1).tolist(), rng.uniform(-1, 0)] for x in inputs]
    errors, outputs = (run_js("feature_plane.js", name, settings) for name in ("squaredError", "outputs"))
    for x, (n, _, bias), error, output in zip(inputs, settings, errors, outputs, strict=True):
        W, params = directions[n], {"weight": directions[n], "bias": np.full(n, bias)}
        assert error == pytest.approx(ml.interpretability.superposition_loss(params, x[None]), abs=SAME)
        np.testing.assert_allclose(output, ml.relu(x @ W @ W.T + bias), atol=SAME)
