"""The interactive figures compute in JavaScript what the chapters compute with mathllm, to the last digit but one."""

import itertools

import numpy as np
import pytest
from test_widgets import run_js

import mathllm as ml
from mathllm.exhibits import backpropagation as exhibits
from mathllm.figures.widgets import AttentionStepper, KLPenalty, MergeStepper, ParameterCalculator, RankSlider

SAME = 1e-12  # two implementations of one float64 formula may round differently, in the last digits
TYPES = {"float16": np.float16, "float32": np.float32, "float64": np.float64}
CURVES = {"square": lambda x: x * x, "cube": lambda x: x**3, "exponential": np.exp, "kink": lambda x: np.maximum(x, 0)}
HEIGHTS = {
    "narrow valley": lambda v: 0.5 * (v[0] ** 2 + 20 * v[1] ** 2),
    "saddle point": lambda v: 0.5 * (v[0] ** 2 - v[1] ** 2) + 0.25 * v[1] ** 4,
    "two minima": lambda v: 0.5 * (v[0] ** 2 - 1) ** 2 + 0.3 * v[0] + v[1] ** 2,
}


# One function in both languages: what it is tried on, and what mathllm gives


def angles(rng):
    """An angle and two lengths, the ends of the sliders among them."""
    return np.vstack([rng.uniform([0, 0.5, 0.5], [180, 4, 4], size=(100, 3)), [[0, 4, 4], [180, 0.5, 4], [90, 1, 1]]])


def two_arrows(angle, a, b):
    theta = np.radians(angle)
    return [[a, 0], [b * np.cos(theta), b * np.sin(theta)]]


def matrices(rng):
    """Matrices, each with a point and an amount."""
    drawn = [*rng.uniform(-2, 2, size=(100, 2, 2)), np.zeros((2, 2)), np.eye(2), -np.eye(2)]
    return [(W, rng.normal(size=2), rng.uniform()) for W in drawn]


def decompositions(rng):
    """Matrices of several shapes, in three parts, with each rank."""
    for shape in ((6, 6), (4, 9), (9, 4), (1, 5)):
        U, sizes, Vt = ml.matrices.svd(rng.random(shape))
        yield from ([U.T, sizes, Vt, rank] for rank in range(len(sizes) + 1))


def factors(rng):
    """A probability, how often it is a factor, and the type of the numbers."""
    drawn = [(int(k) / 100, int(n)) for k, n in rng.integers(1, [100, 1001], size=(60, 2))]
    return [[p, n, name] for p, n in [*drawn, (0.5, 24), (0.5, 25)] for name in TYPES]


def half_precision(rng):
    numbers = [*10.0 ** rng.uniform(-9, 1, size=500), 0.0, 2.0**-24, 2.0**-25, 1.5 * 2.0**-24, 1.0]
    return [[x] for x in numbers]


def updates(rng):
    """Prior a, prior b, heads and tails, the ends of the sliders among them."""
    ends = [[1, 1, 0, 0], [50, 50, 50, 50], [1, 50, 50, 0]]
    return [*rng.integers([1, 1, 0, 0], 51, size=(100, 4)).tolist(), *ends]


def posterior(a, b, heads, tails):
    after = ml.probability.Beta(a, b).update(heads, tails)
    return [after.a, after.b]


def densities(rng):
    return [[rng.uniform(0.01, 0.99), *posterior(*update)] for update in updates(rng)]


def logits(rng):
    """Logits of four candidates within the sliders, the ends among them."""
    return np.vstack([rng.uniform(-5, 10, size=(50, 4)), [[-5, -5, -5, -5], [10, -5, -5, 10]]])


def distributions(rng):
    """Two distributions over three words, and a base; in the first pair, one outcome is certain."""
    weights = rng.uniform(0.1, 10, size=(2, 60, 3))
    weights[0, 0] = [0, 10, 0]
    P, Q = weights / weights.sum(axis=-1, keepdims=True)
    return [[p, q, base] for p, q in zip(P, Q, strict=True) for base in (np.e, 2.0)]


def secants(rng):
    """A curve, a place, and a step to the left or to the right."""
    steps = rng.choice([-1, 1], size=400) * rng.uniform(0.01, 1, size=400)
    return [[curve, x, h] for curve, x, h in zip([*CURVES] * 100, rng.uniform(-1.5, 1.5, size=400), steps, strict=True)]


def surfaces(rng):
    return [[surface, rng.uniform(-2, 2, size=2)] for surface in HEIGHTS for _ in range(50)]


def turned_pairs(rng):
    """Two pairs of components, two positions, and a rate."""
    return [[*rng.normal(size=(2, 2)), *rng.integers(0, 31, size=2), rng.uniform()] for _ in range(50)]


def turned_score(a, b, m, n, rate):
    return ml.dot(ml.rotate(a[None], angles=[[m * rate]]), ml.rotate(b[None], angles=[[n * rate]]))[0]


def training_runs(rng):
    """Numbers of parameters and of tokens."""
    return 10 ** rng.uniform([7, 9], [12, 14], size=(30, 2))


def rewarded(rng):
    """A reference, a reward, the true reward, and β."""
    return [
        [rng.dirichlet(np.ones(n)), rng.normal(size=n) * 3, rng.normal(size=n), beta]
        for n in (2, 4, 7)
        for beta in 10 ** rng.uniform(-1, 1, size=20)
    ]


def results_of_the_best(p, reward, truth, betas):
    best = [ml.alignment.kl_optimal_policy(p, reward, beta=beta) for beta in betas]
    return [[ml.kl_divergence(policy, p), policy @ reward, policy @ truth] for policy in best]


EXACTLY, CLOSELY, BY_SIZE = {"atol": 0}, {"atol": SAME}, {"rtol": SAME, "atol": 0}

# File and function of the figure, the arguments, mathllm's function, and how near the two are, if not to 10 SAME
COMPARED = [
    ("vector_length.js", "norm", lambda rng: rng.normal(size=(100, 1, 5)), ml.norm, BY_SIZE),
    ("vector_length.js", "snap", lambda rng: rng.uniform(-12, 12, size=(100, 1, 2)),  # on halves, within the picture
     lambda point: np.clip(np.round(point * 2) / 2, -8, 8), EXACTLY),
    ("word_map.js", "distances", lambda rng: [[rng.normal(size=(20, 6)), i] for i in range(20)],
     lambda points, i: ml.distance(points[i], points), BY_SIZE),
    ("word_map.js", "neighbours", lambda rng: [[rng.normal(size=(20, 6)), i] for i in range(20)],
     lambda points, i: np.argsort(ml.distance(points[i], points))[1:], EXACTLY),
    ("angle_cosine.js", "arrows", angles, two_arrows, {}),
    ("angle_cosine.js", "dot", lambda rng: rng.normal(size=(100, 2, 5)), ml.dot, {}),
    ("angle_cosine.js", "cosineSimilarity", lambda rng: rng.normal(size=(100, 2, 5)), ml.cosine_similarity, {}),
    ("grid_deformation.js", "apply", lambda rng: [[W, x] for W, x, _ in matrices(rng)],
     ml.matrices.matrix_vector_product, {}),
    ("grid_deformation.js", "singularValues", lambda rng: [[W] for W, *_ in matrices(rng)], ml.singular_values, {}),
    ("grid_deformation.js", "blend", lambda rng: [[W, amount] for W, _, amount in matrices(rng)],
     lambda W, amount: np.eye(2) + amount * (W - np.eye(2)), CLOSELY),
    ("rank_slider.js", "approximate", decompositions,
     lambda U, s, Vt, rank: ml.matrices.low_rank_approximation(U.T * s @ Vt, rank), {}),
    ("rank_slider.js", "relativeError", lambda rng: [[s, rank] for _, s, _, rank in decompositions(rng)],
     lambda s, rank: ml.matrices.low_rank_error(np.diag(s), rank) / ml.norm(s), {}),
    ("log_product.js", "toHalf", half_precision, lambda x: float(np.float16(x)), EXACTLY),
    ("log_product.js", "product", factors,
     lambda p, n, name: float(np.multiply.accumulate(np.full(n, p, TYPES[name]))[-1]), EXACTLY),
    ("log_product.js", "logSum", lambda rng: [[p, n] for p, n, _ in factors(rng)],
     lambda p, n: ml.exponentials.log_product(np.full(n, p)), BY_SIZE),
    ("log_product.js", "lowest", lambda rng: [[name] for name in TYPES],
     lambda name: ml.exponentials.exponent_range(TYPES[name]).lowest, BY_SIZE),
    ("beta_posterior.js", "betaDensity", densities, lambda theta, a, b: ml.probability.Beta(a, b).density(theta),
     {"rtol": 1000 * SAME, "atol": 1e-300}),  # exponents of up to 500 magnify the last digit of their logarithms
    ("beta_posterior.js", "update", updates, posterior, EXACTLY),
    ("word_map.js", "softmax", lambda rng: [[z, T] for z in logits(rng) for T in (0.1, 1.0, 10.0)],
     lambda z, T: ml.softmax(z, temperature=T), CLOSELY),
    ("softmax_bars.js", "ratio", lambda rng: [[*z[:2], 2.0] for z in logits(rng)],
     lambda a, b, T: np.divide(*ml.softmax([a, b], temperature=T)), BY_SIZE),
    ("two_distributions.js", "crossEntropy", distributions,
     lambda p, q, base: ml.cross_entropy_between(p, q, base=base), {}),
    ("two_distributions.js", "klDivergence", distributions, lambda p, q, base: ml.kl_divergence(p, q, base=base), {}),
    ("two_distributions.js", "entropy", lambda rng: [[p, base] for p, _, base in distributions(rng)],
     lambda p, base: ml.entropy(p, base=base), {}),
    ("two_distributions.js", "perplexity", lambda rng: [[H, base] for H in rng.uniform(0, 2, 60) for base in (np.e, 2)],
     lambda H, base: ml.perplexity(H, base=base), {"rtol": 10 * SAME, "atol": 0}),
    ("two_distributions.js", "normalized", lambda rng: rng.uniform(0.1, 10, size=(60, 1, 3)),
     lambda weights: weights / weights.sum(), BY_SIZE),
    ("secant_tangent.js", "secantSlope", secants, lambda curve, x, h: ml.gradients.secant_slope(CURVES[curve], x, h),
     {"rtol": 1e-9, "atol": SAME}),
    ("secant_tangent.js", "slope", lambda rng: [[curve, x] for curve, x, _ in secants(rng)],
     lambda curve, x: ml.numerical_derivative(CURVES[curve], x), {"rtol": 1e-8, "atol": 1e-8}),  # right to ten digits
    ("descent_surface.js", "height", surfaces, lambda surface, place: HEIGHTS[surface](place), {"rtol": 1e-12}),
    ("descent_surface.js", "gradient", surfaces, lambda surface, place: ml.grad(HEIGHTS[surface])(place),
     {"rtol": 1e-10, "atol": 1e-10}),
    ("rotary_pair.js", "score", turned_pairs, turned_score, CLOSELY),
    ("training_budget.js", "flops", training_runs, ml.scale.training_flops, BY_SIZE),
    ("training_budget.js", "days", lambda rng: [[C, 1024] for C in ml.scale.training_flops(*training_runs(rng).T)],
     lambda C, devices: C / (devices * 312e12 * 0.4) / 86400, BY_SIZE),
    ("training_budget.js", "loss", training_runs, ml.scale.scaling_loss, BY_SIZE),
    ("training_budget.js", "zeroMemory",
     lambda rng: [[N, 2**k, stage] for N, _ in training_runs(rng) for k in range(10) for stage in range(4)],
     ml.scale.zero_memory, BY_SIZE),
    ("training_budget.js", "bubble", lambda rng: [[s, m] for s in (1, 2, 8, 32) for m in (1, 5, 128)],
     ml.scale.pipeline_bubble, {}),
    ("kl_penalty.js", "optimum", lambda rng: [[p, reward, beta] for p, reward, _, beta in rewarded(rng)],
     lambda p, reward, beta: ml.alignment.kl_optimal_policy(p, reward, beta=beta), CLOSELY),
    ("kl_penalty.js", "path", lambda rng: [[*case, [beta, 1.0]] for *case, beta in rewarded(rng)],
     results_of_the_best, {"atol": 1e-11}),  # sums of up to seven terms of size 20
]  # fmt: skip


@pytest.mark.parametrize(
    ("file", "function", "draw", "ours", "tolerance"), COMPARED, ids=[" ".join(row[:2]) for row in COMPARED]
)
def test_a_function_of_a_figure_gives_what_mathllm_gives(rng, file, function, draw, ours, tolerance):
    args = [*draw(rng)]
    for one, found in zip(args, run_js(file, function, args), strict=True):
        np.testing.assert_allclose(np.array(found, float), ours(*one), **{"rtol": 0, "atol": 10 * SAME, **tolerance})


# Small cases, whose values one can read. JSON has no infinity, and null stands in its place.
SPELLED = [
    ("word_map.js", "fixed", [(-6e-17, 3), (-0.004, 2), (-1.5, 2), (2, 0)], ["0.000", "0.00", "−1.50", "2"]),
    ("word_map.js", "short", [(-6e-17, 3), (-3.5, 2), (4, 4), (0.12345, 4)], ["0", "−3.5", "4", "0.1235"]),
    ("word_map.js", "inWords", [(7.02e9,), (1e12,), (124439808,), (9500,), (12,), (0.031,)],
     ["7.02 billion", "1 trillion", "124 million", "9.5 thousand", "12", "0.031"]),
    ("vector_length.js", "formula", [([3, 4],), ([-3, 4],), ([0.5, 0],)],
     ["√(3² + 4²) = √25", "√((−3)² + 4²) = √25", "√(0.5² + 0²) = √0.25"]),
    ("grid_deformation.js", "eigenvalues", [([[0, -1], [1, 0]],)], [[]]),  # of a rotation
    ("rank_slider.js", "factorSize", [(6, 6, 0), (4, 9, 3)], [0, 39]),
    ("log_product.js", "format", [(0,), (0.25,), (1e-100,), (3.4567e-12,)],
     ["0", "0.2500", "1.000 × 10⁻¹⁰⁰", "3.457 × 10⁻¹²"]),
    ("two_distributions.js", "crossEntropy", [([0.5, 0.5, 0], [1, 0, 0], 2), ([1, 0, 0], [0.5, 0.5, 0], 2)], [None, 1]),
    ("two_distributions.js", "klDivergence", [([0.5, 0.5, 0], [1, 0, 0], 2), ([1, 0, 0], [0.5, 0.5, 0], 2)], [None, 1]),
    ("two_distributions.js", "changed", [([0, 3, 0], 1, 0), ([1, 3, 0], 1, 0)], [[0, 3, 0], [1, 0, 0]]),  # one stays
    ("secant_tangent.js", "secantSlope", [("square", 0.5, 0)], [None]),  # one point makes no line
    ("secant_tangent.js", "slope", [("kink", 0)], [None]),  # and a corner has no tangent
    ("backprop_stepper.js", "softplus", [(1000.0,), (-1000.0,)], [1000, 0]),
    ("merge_stepper.js", "join", [(["a"] * 3, "a", "a"), (["a"] * 4, "a", "a")], [["aa", "a"], ["aa", "aa"]]),
    ("sampling_filters.js", "nucleusSize", [([0.629, 0.231, 0.14], p) for p in (0.5, 0.8, 0.9, 1.0)], [1, 2, 3, 3]),
    ("kl_penalty.js", "optimum", [([0.5, 0.5], [1000.0, 0.0], 0.1)], [[1, 0]]),
]  # fmt: skip


@pytest.mark.parametrize(("file", "function", "args", "wanted"), SPELLED, ids=[" ".join(row[:2]) for row in SPELLED])
def test_a_function_of_a_figure_gives_what_is_written_here(file, function, args, wanted):
    assert run_js(file, function, args) == wanted


# What takes more than one comparison


def test_the_eigenvalues_are_the_real_ones(rng):
    drawn = [W for W, *_ in matrices(rng)]
    found = run_js("grid_deformation.js", "eigenvalues", [[W] for W in drawn])
    for W, ours in zip(drawn, found, strict=True):
        values = ml.matrices.eigenvalues(W)
        wanted = [] if np.iscomplexobj(values) else values
        np.testing.assert_allclose(sorted(ours), sorted(wanted), atol=1e-6)  # roots of nearly equal values: √1e-16
    assert 10 < sum(not ours for ours in found) < 90  # both kinds were tried


def test_all_singular_values_together_give_the_picture_back(rng):
    picture = rng.random((12, 20))
    figure = RankSlider(picture, rank=12)
    (shown,) = run_js("rank_slider.js", "approximate", [[figure.columns, figure.sizes, figure.rows, 12]])
    np.testing.assert_allclose(shown, picture, atol=1e-3)  # the factors travel with five decimals


def test_the_numbers_below_the_curves_of_a_posterior_are_those_of_mathllm(rng):
    after = [ml.probability.Beta(*posterior(*update)) for update in updates(rng)]
    shown = run_js("beta_posterior.js", "summary", [[one.a, one.b] for one in after])
    for numbers, one in zip(shown, after, strict=True):
        assert numbers["mean"] == pytest.approx(one.mean, rel=SAME)
        assert numbers["deviation"] == pytest.approx(np.sqrt(one.variance), rel=10 * SAME)
        assert numbers["mode"] == (None if one.a + one.b == 2 else pytest.approx(one.mode, rel=SAME))


def test_raising_all_logits_changes_no_probability(rng):
    before = logits(rng)
    moved = np.array(run_js("softmax_bars.js", "raised", [[row, 1, [-5, 10]] for row in before]))
    np.testing.assert_allclose(ml.softmax(moved), ml.softmax(before), atol=SAME)
    assert moved.max() <= 10
    assert np.any(moved != before)


MOMENTUM = {"init": ml.gradient_descent.momentum_init, "step": ml.gradient_descent.momentum_step}
METHODS = {
    "gradient descent": lambda beta: {},
    "momentum": lambda beta: MOMENTUM | {"beta": beta},
    "Adam": lambda beta: {"init": ml.adam_init, "step": ml.adam_step, "beta1": beta},
}
# The same arithmetic in another order: rounding grows along the path, most where it is steep, but stays far below this.
NEAR = 1e-7


def test_the_path_is_that_of_the_optimiser():
    settings = [[*choice[:2], 0.03, choice[2], 40] for choice in itertools.product(HEIGHTS, METHODS, (0.0, 0.5, 0.9))]
    for (surface, method, rate, beta, steps), visited in zip(
        settings, run_js("descent_surface.js", "path", settings), strict=True
    ):
        options = METHODS[method](beta) | {"learning_rate": rate}
        path = ml.gradient_descent.descent_path(HEIGHTS[surface], visited[0], steps, **options)
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


MASKS = {"none": None, "causal": ml.causal_mask(4), "window": ml.sliding_window_mask(4, 2)}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("scaled", [True, False])
def test_every_matrix_of_the_figure_is_that_of_mathllm(rng, mask, scaled):
    cases = [[*rng.normal(size=(3, 4, 3)), mask, scaled] for _ in range(10)]
    shown = run_js("attention_stepper.js", "attention", cases)
    for (query, key, value, *_), ours in zip(cases, shown, strict=True):
        scale = 1 / np.sqrt(3) if scaled else 1.0
        weights = ml.attention_weights(query, key, MASKS[mask], scale=scale)
        np.testing.assert_allclose(ours["raw"], query @ key.T, atol=SAME)
        np.testing.assert_allclose(ours["scores"], scale * query @ key.T, atol=SAME)
        np.testing.assert_allclose(ours["weights"], weights, atol=SAME)
        output = ml.attention(query, key, value, MASKS[mask], scale=scale)
        np.testing.assert_allclose(ours["output"], output, atol=SAME)


def test_the_first_example_is_explained_in_words_that_name_a_masked_key():
    three = AttentionStepper().examples[0]
    args = [*([step, 0, three, "none", True] for step in (1, 4, 5)), [3, 0, three, "causal", True]]
    *lines, masked = run_js("attention_stepper.js", "words", args)
    assert lines[0][0] == "with key “1”: 1·1 + 0·1 = 1"
    assert lines[1][1].endswith("= 0.401")
    assert lines[2][-1] == "= [6.02, 3.98]"
    assert ["masked" in line for line in masked] == [False, True, True]


def test_an_example_without_values_ends_with_the_weights():
    cat = AttentionStepper().examples[1]
    (ours,) = run_js("attention_stepper.js", "attention", [[cat["query"], cat["key"], [], "none", True]])
    np.testing.assert_allclose(ours["weights"], ml.attention_weights(cat["query"], cat["key"]), atol=SAME)
    assert ours["output"] is None


NAMES = {
    "z1": "z1", "a1": "a1", "z2": "z2", "prediction": "prediction", "loss": "loss", "delta2": "delta2", "da1": "da1",
    "derivative": "relu_slope", "delta1": "delta1", "dW1": "dW1", "predictionAfter": "prediction_after",
    "lossAfter": "loss_after",
}  # fmt: skip


@pytest.mark.parametrize("target", [0, 1])
def test_every_number_of_the_figure_is_that_of_mathllm(rng, target):
    drawn = [[rng.normal(size=shape) for shape in (2, (2, 2), 2, 2, (), ())] for _ in range(20)]
    cases = [[x, target, {"W1": W1, "b1": b1, "W2": W2, "b2": float(b2)}, rate] for x, W1, b1, W2, b2, rate in drawn]
    for (x, W1, b1, W2, b2, rate), shown in zip(drawn, run_js("backprop_stepper.js", "trace", cases), strict=True):
        ours = exhibits.trace_network(x, W1, b1, [W2], [b2], target, learning_rate=rate)
        for theirs, name in NAMES.items():
            np.testing.assert_allclose(shown[theirs], getattr(ours, name), atol=SAME)
        np.testing.assert_allclose(shown["dW2"], ours.dW2[0], atol=SAME)
        for name, after in shown["after"].items():
            np.testing.assert_allclose(np.ravel(after), np.ravel(getattr(ours, name)), atol=SAME)


def test_the_words_hold_the_right_numbers_and_name_an_inactive_unit():
    args = [*([step, [1.0, 0.5], 1] for step in range(1, 9)), [6, [-2.0, -2.0], 1]]
    *steps, inactive = run_js("backprop_stepper.js", "words", args)
    assert steps[0][0] == "A: z = 0.15·1 + 0.2·0.5 + 0.35 = 0.6,  a = max(0, z) = 0.6"
    assert steps[3] == ["δ = ŷ − y = 0.7645 − 1 = −0.2355"]
    assert steps[5][0].endswith("= −0.0942")
    assert steps[7][1] == "ŷ: 0.7645 → 0.8202,  loss: 0.2685 → 0.1982"
    assert ["the unit is inactive" in line for line in inactive] == [True, True]


def configs(rng):
    """Random sizes, with every choice that the calculator knows."""
    for _ in range(30):
        heads, kv_heads = [(4, 4), (4, 2), (4, 1)][rng.integers(3)]
        width = 4 * int(rng.integers(1, 40)) * 2
        yield ml.Config(
            vocabulary=int(rng.integers(10, 60_000)), width=width, layers=int(rng.integers(1, 40)), heads=heads,
            kv_heads=kv_heads, hidden=int(rng.integers(8, 4000)), context=int(rng.integers(1, 3000)),
            positions=str(rng.choice(["learned", "none"])), gated=bool(rng.integers(2)), tied=bool(rng.integers(2)),
            **({"norm": "layer", "bias": True} if rng.integers(2) else {"norm": "rms", "bias": False}),
        )  # fmt: skip


def sizes(config):
    kept = ("vocabulary", "width", "layers", "hidden", "gated", "bias", "tied")
    context = config.context if config.positions == "learned" else 0
    key_width = config.kv_heads * config.head_width
    return {name: getattr(config, name) for name in kept} | {"context": context, "key_width": key_width}


def test_every_part_is_counted_as_mathllm_counts_it(rng):
    drawn = list(configs(rng))
    counted = run_js("parameter_calculator.js", "parameterCount", [[sizes(config)] for config in drawn])
    for config, parts in zip(drawn, counted, strict=True):
        ours = ml.parameters_by_part(config)
        assert parts == {name: ours[name] for name in parts}
        assert sum(parts.values()) == ours["total"]


def test_the_models_have_their_published_sizes():
    figure = ParameterCalculator()
    counts = run_js("parameter_calculator.js", "parameterCount", [[sizes] for sizes in figure.models.values()])
    totals = dict(zip(figure.models, [sum(parts.values()) for parts in counts], strict=True))
    gpt3 = ml.gpt2_config(width=12288, layers=96, heads=96, context=2048)
    assert totals["GPT-2"] == ml.parameters_by_part(ml.gpt2_config())["total"]
    assert totals["GPT-3"] == ml.parameters_by_part(gpt3)["total"]
    assert totals["LLaMA-7B"] == ml.parameters_by_part(ml.llama_config())["total"]
    assert totals["SmolLM2"] == 134_515_008  # the numbers in its file


def word_counts(rng):
    yield from MergeStepper().corpora.values()
    yield {"babbacb": 1, "bab": 1, "badadbacc": 1, "aadaccb": 1}  # a pair moves forward by merges before it
    for words in rng.integers(1, 12, size=100):
        sizes = rng.integers(1, 12, size=words)
        yield {"".join(rng.choice(list("abcd"), size=size)): int(rng.integers(1, 5)) for size in sizes}


@pytest.mark.parametrize("ties", ["first appearance", "lexicographic"])
def test_the_figure_learns_the_merges_of_mathllm(rng, ties):
    tables = list(word_counts(rng))
    found = run_js("merge_stepper.js", "run", [[words, ties] for words in tables])
    for words, states in zip(tables, found, strict=True):
        assert [tuple(state["pairs"][0]) for state in states[:-1]] == ml.learn_merges(words, ties=ties)


def test_the_bars_are_the_distribution_that_is_sampled_from(rng):
    settings = [
        (np.sort(rng.normal(size=12) * 3)[::-1], rng.uniform(0.1, 3), rng.integers(1, 13), rng.uniform(0.05, 1))
        for _ in range(60)
    ]
    settings.append((np.zeros(12), 1.0, 12, 0.5))  # ties, and a sum that reaches p exactly
    settings.append((np.array([9.0, 0.0, 0.0]), 1.0, 3, 1.0))
    bars = run_js("sampling_filters.js", "filtered", settings)
    for (z, T, k, p), bar in zip(settings, bars, strict=True):
        kept = ml.softmax(ml.inference.reshape_logits(z, T, min(k, len(z)), p, None))
        if np.ptp(z) == 0:  # of equal logits mathllm and the figure may keep different ones, but as many
            kept = np.sort(kept)[::-1]
        np.testing.assert_allclose(bar, kept, atol=SAME)


def test_with_the_numbers_of_the_figure_the_reward_rises_as_beta_falls_and_the_true_reward_turns():
    figure = KLPenalty()
    reference, reward, truth = (np.array(values) for values in (figure.reference, figure.reward, figure.true_reward))
    policies = [ml.alignment.kl_optimal_policy(reference, reward, beta=beta) for beta in np.geomspace(10, 0.1, 50)]
    assert np.all(np.diff([p @ reward for p in policies]) > 0)
    worth = np.array([p @ truth for p in policies])
    assert 5 < worth.argmax() < 45
    assert worth[-1] < worth[0] < worth.max() - 0.3


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
