"""The interactive figures of chapters 2 to 16 compute in JavaScript what mathllm computes."""

import numpy as np
import pytest
from test_widgets import SAME, run_js, same

import mathllm as ml
from mathllm.exhibits import backpropagation as exhibits
from mathllm.figures.widgets import AttentionStepper, KLPenalty, MergeStepper, ParameterCalculator, RankSlider

# Chapter 2: the angle between two arrows


def test_the_arrows_have_the_lengths_and_the_angle_of_the_sliders(rng):
    drawn = rng.uniform([0, 0.5, 0.5], [180, 4, 4], size=(100, 3))
    settings = np.vstack([drawn, [[0, 4, 4], [180, 0.5, 4], [90, 1, 1]]])  # the ends of the sliders among them
    a, b = np.array(run_js("angle_cosine.js", "arrows", settings)).swapaxes(0, 1)
    np.testing.assert_allclose(ml.norm(a), settings[:, 1], rtol=SAME)
    np.testing.assert_allclose(ml.norm(b), settings[:, 2], rtol=SAME)
    bearing = np.degrees(np.arctan2(b[:, 1], b[:, 0]) - np.arctan2(a[:, 1], a[:, 0]))
    np.testing.assert_allclose(bearing, settings[:, 0], atol=1e-12)  # degrees, from radians of size one


def test_the_numbers_below_the_arrows_are_those_of_mathllm(rng):
    pairs = rng.normal(size=(100, 2, 5))
    same("angle_cosine.js", "dot", pairs, ml.dot(*pairs.swapaxes(0, 1)))
    same("angle_cosine.js", "cosineSimilarity", pairs, ml.cosine_similarity(*pairs.swapaxes(0, 1)))


# Chapter 3: a grid moved by a matrix


DRAWN = np.random.default_rng(1).uniform(-2, 2, size=(100, 2, 2))
MATRICES = np.vstack([DRAWN, np.zeros((1, 2, 2)), np.eye(2)[None], -np.eye(2)[None]])


def test_a_point_goes_where_the_matrix_sends_it_and_the_radii_of_the_ellipse_are_the_singular_values(rng):
    points = rng.normal(size=(len(MATRICES), 2))
    wanted = ml.matrices.matrix_vector_product(MATRICES, points)
    same("grid_deformation.js", "apply", zip(MATRICES, points, strict=True), wanted)
    same("grid_deformation.js", "singularValues", MATRICES[:, None], ml.singular_values(MATRICES))


def test_the_eigenvalues_are_the_real_ones_and_none_for_a_rotation():
    rotation = [[0, -1], [1, 0]]
    *found, last = run_js("grid_deformation.js", "eigenvalues", [*MATRICES[:, None], [rotation]])
    for W, ours in zip(MATRICES, found, strict=True):
        values = ml.matrices.eigenvalues(W)
        wanted = [] if np.iscomplexobj(values) else values
        np.testing.assert_allclose(sorted(ours), sorted(wanted), atol=1e-6)  # roots of nearly equal values: √1e-16
    assert 10 < sum(not ours for ours in found) < 90  # both kinds were tried
    assert last == []


def test_the_amount_leads_from_the_identity_to_the_matrix(rng):
    amounts = rng.uniform(size=len(MATRICES))
    wanted = np.eye(2) + amounts[:, None, None] * (MATRICES - np.eye(2))
    same("grid_deformation.js", "blend", zip(MATRICES, amounts, strict=True), wanted, atol=SAME)


# Chapter 3: the rank slider


@pytest.mark.parametrize("shape", [(6, 6), (4, 9), (9, 4), (1, 5)])
def test_the_picture_is_the_low_rank_approximation_and_its_error(rng, shape):
    W = rng.random(shape)
    U, sizes, Vt = ml.matrices.svd(W)
    ranks = range(min(shape) + 1)
    pictures = [ml.matrices.low_rank_approximation(W, rank) for rank in ranks]
    same("rank_slider.js", "approximate", [[U.T, sizes, Vt, rank] for rank in ranks], pictures)
    errors = [ml.matrices.low_rank_error(W, rank) / ml.frobenius_norm(W) for rank in ranks]
    same("rank_slider.js", "relativeError", [[sizes, rank] for rank in ranks], errors)
    counts = run_js("rank_slider.js", "factorSize", [[*shape, rank] for rank in ranks])
    assert counts == [rank * sum(shape) for rank in ranks]


def test_all_singular_values_together_give_the_picture_back(rng):
    picture = rng.random((12, 20))
    figure = RankSlider(picture, rank=12)
    args = [[figure.columns, figure.sizes, figure.rows, 12]]
    same("rank_slider.js", "approximate", args, [picture], atol=1e-3)  # the factors travel with five decimals


# Chapter 4: products of probabilities

TYPES = {"float16": np.float16, "float32": np.float32, "float64": np.float64}
draw = np.random.default_rng(1)
FACTORS = [(float(draw.integers(1, 100)) / 100, int(n)) for n in draw.integers(1, 1001, size=60)]
FACTORS += [(0.5, 24), (0.5, 25)]


def test_float16_is_rounded_as_numpy_rounds_it(rng):
    numbers = np.concatenate([10.0 ** rng.uniform(-9, 1, size=500), [0.0, 2.0**-24, 2.0**-25, 1.5 * 2.0**-24, 1.0]])
    same("log_product.js", "toHalf", numbers[:, None], numbers.astype(np.float16).astype(float), atol=0)


@pytest.mark.parametrize("name", TYPES)
def test_the_product_is_that_of_the_number_type_bit_by_bit(name):
    with np.errstate(under="ignore"):
        wanted = [float(np.multiply.accumulate(np.full(n, p, TYPES[name]))[-1]) for p, n in FACTORS]
    assert run_js("log_product.js", "product", [[p, factors, name] for p, factors in FACTORS]) == wanted
    assert 0 in wanted
    assert max(wanted) > 0


def test_the_sum_of_logarithms_is_that_of_mathllm_and_its_track_ends_where_the_type_ends():
    sums = [ml.exponentials.log_product(np.full(n, p)) for p, n in FACTORS]
    same("log_product.js", "logSum", FACTORS, sums, rtol=SAME, atol=0)
    ends = [ml.exponentials.exponent_range(dtype).lowest for dtype in TYPES.values()]
    same("log_product.js", "lowest", [[name] for name in TYPES], ends, rtol=SAME, atol=0)


def test_small_numbers_are_written_with_powers_of_ten():
    shown = run_js("log_product.js", "format", [[0], [0.25], [1e-100], [3.4567e-12]])
    assert shown == ["0", "0.2500", "1.000 × 10⁻¹⁰⁰", "3.457 × 10⁻¹²"]


# Chapter 5: a Beta posterior


@pytest.fixture
def updates(rng):
    """Settings of prior a, prior b, heads and tails, the ends of the sliders among them; each with its posterior."""
    ends = [[1, 1, 0, 0], [50, 50, 50, 50], [1, 50, 50, 0]]
    settings = [*rng.integers([1, 1, 0, 0], 51, size=(100, 4)).tolist(), *ends]
    return [(one, ml.probability.Beta(*one[:2]).update(*one[2:])) for one in settings]


def test_the_curves_are_the_densities_of_mathllm(rng, updates):
    cases = [(rng.uniform(0.01, 0.99), posterior) for _, posterior in updates]
    args = [[theta, posterior.a, posterior.b] for theta, posterior in cases]
    wanted = [posterior.density(theta) for theta, posterior in cases]
    # exponents of up to 500 magnify the last digit of their logarithms
    same("beta_posterior.js", "betaDensity", args, wanted, rtol=1000 * SAME, atol=1e-300)


def test_throws_change_the_prior_and_the_numbers_below_the_curves_as_in_mathllm(updates):
    after = [[posterior.a, posterior.b] for _, posterior in updates]
    assert run_js("beta_posterior.js", "update", [setting for setting, _ in updates]) == after
    for numbers, (_, posterior) in zip(run_js("beta_posterior.js", "summary", after), updates, strict=True):
        assert numbers["mean"] == pytest.approx(posterior.mean, rel=SAME)
        assert numbers["deviation"] == pytest.approx(np.sqrt(posterior.variance), rel=10 * SAME)
        assert numbers["mode"] == (None if posterior.a + posterior.b == 2 else pytest.approx(posterior.mode, rel=SAME))


# Chapter 6: the bars of a softmax


@pytest.fixture
def logits(rng):
    """Logits of four candidates within the sliders, the ends among them."""
    return np.vstack([rng.uniform(-5, 10, size=(50, 4)), [[-5, -5, -5, -5], [10, -5, -5, 10]]])


def test_the_ratio_below_the_bars_is_that_of_the_probabilities(logits):
    p = ml.softmax(logits, temperature=2.0)
    args = [[row[0], row[1], 2.0] for row in logits]
    same("softmax_bars.js", "ratio", args, p[:, 0] / p[:, 1], rtol=SAME, atol=0)


def test_raising_all_logits_changes_no_probability(logits):
    moved = np.array(run_js("softmax_bars.js", "raised", [[row, 1, [-5, 10]] for row in logits]))
    np.testing.assert_allclose(ml.softmax(moved), ml.softmax(logits), atol=SAME)
    assert moved.max() <= 10
    assert np.any(moved != logits)


# Chapter 7: two distributions


@pytest.fixture
def pairs(rng):
    """Pairs of distributions over three words, a certain outcome among the first of them."""
    weights = rng.uniform(0.1, 10, size=(2, 60, 3))
    weights[0, 0] = [0, 10, 0]
    return weights / weights.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize("base", [np.e, 2.0])
def test_the_bars_entropy_and_perplexity_are_those_of_mathllm(pairs, base):
    p, q = pairs
    both, H = [[*pair, base] for pair in zip(p, q, strict=True)], ml.entropy(p, base=base)
    same("two_distributions.js", "crossEntropy", both, ml.cross_entropy_between(p, q, base=base))
    same("two_distributions.js", "klDivergence", both, ml.kl_divergence(p, q, base=base))
    same("two_distributions.js", "entropy", [[one, base] for one in p], H)
    perplexity = ml.perplexity(H, base=base)
    same("two_distributions.js", "perplexity", [[h, base] for h in H], perplexity, rtol=10 * SAME, atol=0)


def test_probability_zero_for_what_happens_costs_infinitely_much():
    for name in ("crossEntropy", "klDivergence"):
        assert run_js("two_distributions.js", name, [[[0.5, 0.5, 0], [1, 0, 0]]]) == [None]  # JSON has no infinity
        assert run_js("two_distributions.js", name, [[[1, 0, 0], [0.5, 0.5, 0]]])[0] == pytest.approx(np.log(2))


def test_weights_become_probabilities_and_the_last_does_not_go_to_zero(pairs):
    same("two_distributions.js", "normalized", 7 * pairs[0][:, None], pairs[0], rtol=SAME, atol=0)
    assert run_js("two_distributions.js", "changed", [[[0, 3, 0], 1, 0], [[1, 3, 0], 1, 0]]) == [[0, 3, 0], [1, 0, 0]]


# Chapter 8: secant and tangent

CURVES = {"square": lambda x: x * x, "cube": lambda x: x**3, "exponential": np.exp, "kink": lambda x: np.maximum(x, 0)}


@pytest.mark.parametrize("curve", CURVES)
def test_secant_and_tangent_have_the_slopes_that_mathllm_gives(rng, curve):
    x, h = rng.uniform(-1.5, 1.5, size=100), rng.choice([-1, 1], size=100) * rng.uniform(0.01, 1, size=100)
    args, secants = [[curve, *pair] for pair in zip(x, h, strict=True)], ml.gradients.secant_slope(CURVES[curve], x, h)
    same("secant_tangent.js", "secantSlope", args, secants, rtol=1e-9, atol=SAME)
    tangents = ml.numerical_derivative(CURVES[curve], x)  # central differences are right to about ten digits
    same("secant_tangent.js", "slope", [[curve, at] for at in x], tangents, rtol=1e-8, atol=1e-8)


def test_one_point_makes_no_line_and_a_corner_no_tangent():
    assert run_js("secant_tangent.js", "secantSlope", [["square", 0.5, 0]]) == [None]
    assert run_js("secant_tangent.js", "slope", [["kink", 0]]) == [None]


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
    args = [[surface, place] for place in places]
    same("descent_surface.js", "height", args, [height(place) for place in places], rtol=1e-12, atol=1e-12)
    slopes = [ml.grad(height)(place) for place in places]
    same("descent_surface.js", "gradient", args, slopes, rtol=1e-10, atol=1e-10)


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


def test_the_rotated_score_is_that_of_rotate(rng):
    pairs, places, rates = rng.normal(size=(50, 2, 2)), rng.integers(0, 31, size=(50, 2)), rng.uniform(size=50)
    a, b = (ml.rotate(pairs[:, i], angles=(places[:, i] * rates)[:, None]) for i in range(2))
    args = [[*pair, *place, rate] for pair, place, rate in zip(pairs, places, rates, strict=True)]
    same("rotary_pair.js", "score", args, ml.dot(a, b), atol=SAME)


# Chapter 11: backpropagation step by step


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


def test_the_loss_is_finite_for_scores_of_any_size():
    assert run_js("backprop_stepper.js", "softplus", [[1000.0], [-1000.0]]) == [1000.0, 0.0]


# Chapter 12: the calculator of parameters


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


# Chapter 13: merges, and the cost of a training run


def word_counts(rng):
    yield from MergeStepper().corpora.values()
    for _ in range(25):
        yield {"".join(rng.choice(list("abc"), size=rng.integers(1, 8))): int(rng.integers(1, 5)) for _ in range(5)}


@pytest.mark.parametrize("ties", ["first appearance", "lexicographic"])
def test_the_figure_learns_the_merges_of_mathllm(rng, ties):
    tables = list(word_counts(rng))
    found = run_js("merge_stepper.js", "run", [[words, ties] for words in tables])
    for words, states in zip(tables, found, strict=True):
        assert [tuple(state["pairs"][0]) for state in states[:-1]] == ml.learn_merges(words, ties=ties)


def test_the_figure_joins_overlapping_pairs_from_the_left():
    joined = run_js("merge_stepper.js", "join", [[["a"] * n, "a", "a"] for n in range(1, 8)])
    assert joined == [ml.training.apply_merges("a" * n, {("a", "a"): 0}) for n in range(1, 8)]


def test_memory_operations_days_loss_and_bubble_of_a_run_are_those_of_the_package(rng):
    runs = 10 ** rng.uniform([7, 9], [12, 14], size=(30, 2))  # parameters and tokens
    operations, many = ml.scale.training_flops(*runs.T), {"rtol": SAME, "atol": 0}
    shown = np.array(run_js("training_budget.js", "flops", runs), float)  # whole numbers written out
    np.testing.assert_allclose(shown, operations, rtol=SAME)
    days = operations / (1024 * 312e12 * 0.4) / 86400
    same("training_budget.js", "days", [[C, 1024] for C in operations], days, **many)
    same("training_budget.js", "loss", runs, ml.scale.scaling_loss(*runs.T), **many)
    budgets = [(N, 2**k, stage) for N in runs[:, 0] for k in range(10) for stage in range(4)]
    same("training_budget.js", "zeroMemory", budgets, [ml.scale.zero_memory(*budget) for budget in budgets], **many)
    stages = [[stages, batches] for stages in (1, 2, 8, 32) for batches in (1, 5, 128)]
    same("training_budget.js", "bubble", stages, [ml.scale.pipeline_bubble(*pair) for pair in stages])


# Chapter 14: the filters before a draw


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


def test_the_nucleus_is_the_smallest_that_reaches_p():
    P = [0.629, 0.231, 0.14]
    assert run_js("sampling_filters.js", "nucleusSize", [[P, p] for p in (0.5, 0.8, 0.9, 1.0)]) == [1, 2, 3, 3]


# Chapter 15: a reward with a penalty


def test_the_bars_are_the_best_policy_and_the_curves_its_divergence_reward_and_true_reward(rng):
    cases = [
        (rng.dirichlet(np.ones(n)), rng.normal(size=n) * 3, rng.normal(size=n), beta)
        for n in (2, 4, 7)
        for beta in 10 ** rng.uniform(-1, 1, size=20)
    ]
    bars = run_js("kl_penalty.js", "optimum", [[p, reward, beta] for p, reward, _, beta in cases])
    points = run_js("kl_penalty.js", "path", [[p, reward, truth, [beta, 1.0]] for p, reward, truth, beta in cases])
    for (p, reward, truth, beta), bar, curve in zip(cases, bars, points, strict=True):
        best = [ml.alignment.kl_optimal_policy(p, reward, beta=coefficient) for coefficient in (beta, 1.0)]
        np.testing.assert_allclose(bar, best[0], atol=SAME)
        wanted = [[ml.kl_divergence(policy, p), policy @ reward, policy @ truth] for policy in best]
        np.testing.assert_allclose(curve, wanted, atol=1e-11)  # sums of up to seven terms of size 20


def test_a_reward_a_thousand_times_beta_overflows_nothing():
    (bars,) = run_js("kl_penalty.js", "optimum", [[[0.5, 0.5], [1000.0, 0.0], 0.1]])
    assert bars == [1, 0]


def test_with_the_numbers_of_the_figure_the_reward_rises_as_beta_falls_and_the_true_reward_turns():
    figure = KLPenalty()
    reference, reward, truth = (np.array(values) for values in (figure.reference, figure.reward, figure.true_reward))
    policies = [ml.alignment.kl_optimal_policy(reference, reward, beta=beta) for beta in np.geomspace(10, 0.1, 50)]
    assert np.all(np.diff([p @ reward for p in policies]) > 0)
    worth = np.array([p @ truth for p in policies])
    assert 5 < worth.argmax() < 45
    assert worth[-1] < worth[0] < worth.max() - 0.3


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
