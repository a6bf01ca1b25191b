"""The interactive figures of chapters 3 to 15 compute in JavaScript what mathllm computes, on random settings."""

import numpy as np
import pytest
from test_widgets import SAME, run_js

import mathllm as ml
from mathllm.figures.widgets import KLPenalty, MergeStepper, ParameterCalculator, RankSlider


@pytest.fixture
def rng():
    return np.random.default_rng(1)


# Chapter 3: the rank slider


@pytest.mark.parametrize("shape", [(6, 6), (4, 9), (9, 4), (1, 5)])
def test_the_picture_is_the_low_rank_approximation_and_its_error(rng, shape):
    W = rng.random(shape)
    U, sizes, Vt = ml.matrices.svd(W)
    ranks = range(min(shape) + 1)
    pictures = run_js("rank_slider.js", "approximate", [[U.T.tolist(), sizes.tolist(), Vt.tolist(), r] for r in ranks])
    expected = [ml.matrices.low_rank_approximation(W, rank) for rank in ranks]
    np.testing.assert_allclose(pictures, expected, atol=SAME * 10)
    errors = run_js("rank_slider.js", "relativeError", [[sizes.tolist(), rank] for rank in ranks])
    expected = [ml.matrices.low_rank_error(W, rank) / ml.frobenius_norm(W) for rank in ranks]
    np.testing.assert_allclose(errors, expected, atol=SAME * 10)
    counts = run_js("rank_slider.js", "factorSize", [[*shape, rank] for rank in ranks])
    assert counts == [rank * sum(shape) for rank in ranks]


def test_all_singular_values_together_give_the_picture_back(rng):
    picture = rng.random((12, 20))
    figure = RankSlider(picture, rank=12)
    (ours,) = run_js("rank_slider.js", "approximate", [[figure.columns, figure.sizes, figure.rows, 12]])
    np.testing.assert_allclose(ours, picture, atol=1e-3)  # the factors travel with five decimals


# Chapter 4: products of probabilities

TYPES = {"float16": np.float16, "float32": np.float32, "float64": np.float64}
draw = np.random.default_rng(1)
FACTORS = [(float(draw.integers(1, 100)) / 100, int(n)) for n in draw.integers(1, 1001, size=60)]
FACTORS += [(0.5, 24), (0.5, 25)]


def test_float16_is_rounded_as_numpy_rounds_it(rng):
    numbers = np.concatenate([10.0 ** rng.uniform(-9, 1, size=500), [0.0, 2.0**-24, 2.0**-25, 1.5 * 2.0**-24, 1.0]])
    ours = run_js("log_product.js", "toHalf", [[x] for x in numbers.tolist()])
    np.testing.assert_array_equal(ours, numbers.astype(np.float16).astype(float))


@pytest.mark.parametrize("name", TYPES)
def test_the_product_is_that_of_the_number_type_bit_by_bit(name):
    with np.errstate(under="ignore"):
        wanted = [float(np.multiply.accumulate(np.full(n, p, TYPES[name]))[-1]) for p, n in FACTORS]
    assert run_js("log_product.js", "product", [[p, factors, name] for p, factors in FACTORS]) == wanted
    assert 0 in wanted
    assert max(wanted) > 0


def test_the_sum_of_logarithms_is_that_of_mathllm():
    ours = run_js("log_product.js", "logSum", [list(case) for case in FACTORS])
    np.testing.assert_allclose(ours, [ml.exponentials.log_product(np.full(n, p)) for p, n in FACTORS], rtol=SAME)


@pytest.mark.parametrize("name", TYPES)
def test_the_track_ends_where_the_type_ends(name):
    (ours,) = run_js("log_product.js", "lowest", [[name]])
    assert ours == pytest.approx(ml.exponentials.exponent_range(TYPES[name]).lowest, rel=SAME)


def test_small_numbers_are_written_with_powers_of_ten():
    shown = run_js("log_product.js", "format", [[0], [0.25], [1e-100], [3.4567e-12]])
    assert shown == ["0", "0.2500", "1.000 × 10⁻¹⁰⁰", "3.457 × 10⁻¹²"]


# Chapter 6: the bars of a softmax


@pytest.fixture
def logits(rng):
    """Logits of four candidates within the sliders, the ends among them."""
    return np.vstack([rng.uniform(-5, 10, size=(50, 4)), [[-5, -5, -5, -5], [10, -5, -5, 10]]])


def test_the_ratio_below_the_bars_is_that_of_the_probabilities(logits):
    ratios = run_js("softmax_bars.js", "ratio", [[row[0], row[1], 2.0] for row in logits.tolist()])
    p = ml.softmax(logits, temperature=2.0)
    np.testing.assert_allclose(ratios, p[:, 0] / p[:, 1], rtol=SAME)


def test_raising_all_logits_changes_no_probability(logits):
    moved = np.array(run_js("softmax_bars.js", "raised", [[row, 1, [-5, 10]] for row in logits.tolist()]))
    np.testing.assert_allclose(ml.softmax(moved), ml.softmax(logits), atol=SAME)
    assert moved.max() <= 10
    assert np.any(moved != logits)


# Chapter 7: two distributions

BASES = (np.e, 2.0)


@pytest.fixture
def pairs(rng):
    """Pairs of distributions over three words, a certain outcome among the first of them."""
    weights = rng.uniform(0.1, 10, size=(2, 60, 3))
    weights[0, 0] = [0, 10, 0]
    return weights / weights.sum(axis=-1, keepdims=True)


def test_weights_become_probabilities(pairs):
    ours = run_js("two_distributions.js", "normalized", [[w] for w in (7 * pairs[0]).tolist()])
    np.testing.assert_allclose(ours, pairs[0], rtol=SAME)


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize(
    ("name", "function"), [("crossEntropy", ml.cross_entropy_between), ("klDivergence", ml.kl_divergence)]
)
def test_the_bars_are_those_of_mathllm(pairs, name, function, base):
    shown = run_js("two_distributions.js", name, [[p, q, base] for p, q in zip(*pairs.tolist(), strict=True)])
    np.testing.assert_allclose(shown, function(*pairs, base=base), rtol=0, atol=SAME * 10)


@pytest.mark.parametrize("base", BASES)
def test_entropy_and_perplexity_are_those_of_mathllm(pairs, base):
    H = run_js("two_distributions.js", "entropy", [[p, base] for p in pairs[0].tolist()])
    np.testing.assert_allclose(H, ml.entropy(pairs[0], base=base), rtol=0, atol=SAME * 10)
    choices = run_js("two_distributions.js", "perplexity", [[h, base] for h in H])
    np.testing.assert_allclose(choices, ml.perplexity(np.array(H), base=base), rtol=SAME * 10)


def test_probability_zero_for_what_happens_costs_infinitely_much():
    for name in ("crossEntropy", "klDivergence"):
        assert run_js("two_distributions.js", name, [[[0.5, 0.5, 0], [1, 0, 0]]]) == [None]  # JSON has no infinity
        assert run_js("two_distributions.js", name, [[[1, 0, 0], [0.5, 0.5, 0]]])[0] == pytest.approx(np.log(2))


def test_the_last_weight_does_not_go_to_zero():
    assert run_js("two_distributions.js", "changed", [[[0, 3, 0], 1, 0], [[1, 3, 0], 1, 0]]) == [[0, 3, 0], [1, 0, 0]]


# Chapter 8: secant and tangent

CURVES = {"square": lambda x: x * x, "cube": lambda x: x**3, "exponential": np.exp, "kink": lambda x: np.maximum(x, 0)}


@pytest.mark.parametrize("curve", CURVES)
def test_secant_and_tangent_have_the_slopes_that_mathllm_gives(rng, curve):
    x, h = rng.uniform(-1.5, 1.5, size=100), rng.choice([-1, 1], size=100) * rng.uniform(0.01, 1, size=100)
    slopes = run_js("secant_tangent.js", "secantSlope", [[curve, *pair] for pair in np.transpose([x, h]).tolist()])
    np.testing.assert_allclose(slopes, ml.gradients.secant_slope(CURVES[curve], x, h), rtol=1e-9, atol=SAME)
    slopes = run_js("secant_tangent.js", "slope", [[curve, at] for at in x.tolist()])
    # Central differences are right to about ten digits.
    np.testing.assert_allclose(slopes, ml.numerical_derivative(CURVES[curve], x), rtol=1e-8, atol=1e-8)


def test_one_point_makes_no_line_and_a_corner_no_tangent():
    assert run_js("secant_tangent.js", "secantSlope", [["square", 0.5, 0]]) == [None]
    assert run_js("secant_tangent.js", "slope", [["kink", 0]]) == [None]


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
        ours = ml.parameter_count(config)
        assert parts == {name: ours[name] for name in parts}
        assert sum(parts.values()) == ours["total"]


def test_the_models_have_their_published_sizes():
    figure = ParameterCalculator()
    counts = run_js("parameter_calculator.js", "parameterCount", [[sizes] for sizes in figure.models.values()])
    totals = dict(zip(figure.models, [sum(parts.values()) for parts in counts], strict=True))
    gpt3 = ml.gpt2_config(width=12288, layers=96, heads=96, context=2048)
    assert totals["GPT-2"] == ml.parameter_count(ml.gpt2_config())["total"]
    assert totals["GPT-3"] == ml.parameter_count(gpt3)["total"]
    assert totals["LLaMA-7B"] == ml.parameter_count(ml.llama_config())["total"]
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


@pytest.fixture
def runs(rng):
    """Parameters and tokens of training runs."""
    return 10 ** rng.uniform([7, 9], [12, 14], size=(30, 2))


def test_the_bars_are_the_memory_of_each_worker(runs):
    budgets = [(N, 2**k, stage) for N in runs[:, 0].tolist() for k in range(10) for stage in range(4)]
    bars = run_js("training_budget.js", "zeroMemory", budgets)
    np.testing.assert_allclose(bars, [ml.scale.zero_memory(*budget) for budget in budgets], rtol=SAME)


def test_operations_days_and_loss_are_those_of_the_package(runs):
    operations = np.array(run_js("training_budget.js", "flops", runs.tolist()), float)  # whole numbers written out
    np.testing.assert_allclose(operations, ml.scale.training_flops(*runs.T), rtol=SAME)
    losses = run_js("training_budget.js", "loss", runs.tolist())
    np.testing.assert_allclose(losses, ml.scale.scaling_loss(*runs.T), rtol=SAME)
    days = run_js("training_budget.js", "days", [[C, 1024] for C in operations.tolist()])
    np.testing.assert_allclose(days, operations / (1024 * 312e12 * 0.4) / 86400, rtol=SAME)


def test_the_bubble_of_the_pipeline_is_that_of_the_package():
    stages = [[stages, many] for stages in (1, 2, 8, 32) for many in (1, 5, 128)]
    bubbles = run_js("training_budget.js", "bubble", stages)
    np.testing.assert_allclose(bubbles, [ml.scale.pipeline_bubble(*pair) for pair in stages])


# Chapter 14: the filters before a draw


def test_the_bars_are_the_distribution_that_is_sampled_from(rng):
    settings = [
        (np.sort(rng.normal(size=12) * 3)[::-1], rng.uniform(0.1, 3), rng.integers(1, 13), rng.uniform(0.05, 1))
        for _ in range(60)
    ]
    settings.append((np.zeros(12), 1.0, 12, 0.5))  # ties, and a sum that reaches p exactly
    settings.append((np.array([9.0, 0.0, 0.0]), 1.0, 3, 1.0))
    bars = run_js("sampling_filters.js", "filtered", [[z.tolist(), T, int(k), p] for z, T, k, p in settings])
    for (z, T, k, p), bar in zip(settings, bars, strict=True):
        kept = ml.softmax(ml.inference.reshape_logits(z, T, min(int(k), len(z)), p, None))
        if np.ptp(z) == 0:  # of equal logits mathllm and the figure may keep different ones, but as many
            kept = np.sort(kept)[::-1]
        np.testing.assert_allclose(bar, kept, atol=SAME)


def test_the_nucleus_is_the_smallest_that_reaches_p():
    P = [0.629, 0.231, 0.14]
    assert run_js("sampling_filters.js", "nucleusSize", [[P, p] for p in (0.5, 0.8, 0.9, 1.0)]) == [1, 2, 3, 3]


# Chapter 15: a reward with a penalty


@pytest.fixture
def preferences(rng):
    """Reference, reward, true reward and β."""
    return [
        (rng.dirichlet(np.ones(n)), rng.normal(size=n) * 3, rng.normal(size=n), float(beta))
        for n in (2, 4, 7)
        for beta in 10 ** rng.uniform(-1, 1, size=20)
    ]


def test_the_bars_are_the_best_policy(preferences):
    arguments = [[p.tolist(), reward.tolist(), beta] for p, reward, _, beta in preferences]
    for (p, reward, _, beta), bars in zip(preferences, run_js("kl_penalty.js", "optimum", arguments), strict=True):
        np.testing.assert_allclose(bars, ml.alignment.kl_optimal_policy(p, reward, beta=beta), atol=SAME)


def test_the_curves_are_divergence_reward_and_true_reward(preferences):
    arguments = [[p.tolist(), reward.tolist(), truth.tolist(), [beta, 1.0]] for p, reward, truth, beta in preferences]
    for (p, reward, truth, beta), points in zip(preferences, run_js("kl_penalty.js", "path", arguments), strict=True):
        for coefficient, point in zip([beta, 1.0], points, strict=True):
            best = ml.alignment.kl_optimal_policy(p, reward, beta=coefficient)
            expected = [ml.kl_divergence(best, p), best @ reward, best @ truth]
            np.testing.assert_allclose(point, expected, atol=1e-11)  # sums of up to seven terms of size 20


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
