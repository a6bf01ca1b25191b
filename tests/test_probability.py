"""Chapter 05: distributions, expectations, what data say about parameters, and language models made by counting."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from refusing import refusing

import mathllm as ml
from mathllm import probability

shares = hnp.arrays(np.float64, st.integers(1, 6), elements=st.floats(0.01, 1)).map(lambda w: w / w.sum())
rng = np.random.default_rng(5)
coins = probability.bernoulli_log_likelihood


def sentence(p):
    """Log-probabilities of a sentence whose tokens have these conditional probabilities."""
    return probability.sequence_log_probabilities(list(range(len(p))), lambda token, before: p[token])


# ------------------------------------------------------------------------------------------------------- distributions


@given(shares, st.floats(0.001, 1))
def test_shares_of_a_whole_are_a_distribution_and_nothing_else_is(p, error):
    assert probability.is_distribution(p)
    assert probability.distribution(p) is probability.distribution(p, dtype=np.float64) is p
    assert not probability.is_distribution(p + error / len(p))
    assert not probability.is_distribution(np.append(p, [error, -error]))


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_a_distribution_in_any_dtype_is_one_for_every_function_of_the_package(dtype):
    p = ml.softmax(np.random.default_rng(3).normal(size=(50, 50)).astype(dtype))
    x, draw = np.arange(50.0), np.random.default_rng(0)
    wide = probability.distribution(p, dtype=float)
    assert wide.dtype == float
    np.testing.assert_allclose(wide.sum(axis=-1), 1, rtol=1e-14)  # 50 roundings of 1.1e-16 at most, and those of p
    np.testing.assert_allclose(wide, p, rtol=50 * np.finfo(dtype).eps)
    for values in [
        probability.expectation(x, p), probability.variance(x, p), probability.posterior(p, p),
        ml.sample(p, draw), ml.entropy(p),
        ml.kl_divergence(p, p[::-1]), ml.cross_entropy_between(p, p[::-1]), ml.mutual_information(p / dtype(50)),
        probability.sequential_posterior(p[0], p), ml.sample_markov_chain(p, 5, draw), ml.stationary_distribution(p),
        ml.training.entropy_rate(p), ml.alignment.kl_optimal_policy(p, np.ones((50, 50)), beta=1.0),
        ml.inference.accept_drafts([1, 2], p[:2], p[:3], draw)[0], ml.inference.accept_drafts([], [], p[:1], draw)[0],
        ml.code_length([1, 2], lambda seen: p[len(seen)]),
    ]:  # fmt: skip
        assert np.all(np.isfinite(values))


def test_rounded_sums_of_probabilities_do_not_make_both_more_frequent_than_one():
    both = 0.1 + 0.2  # 0.30000000000000004
    assert probability.conditional_probability(both, 0.3) == 1
    assert probability.conditional_probability([[1], [2]], [4, 8]).tolist() == [[0.25, 0.125], [0.5, 0.25]]


def test_a_text_without_a_pair_has_no_bigram():
    assert probability.bigram_counts([], 3).sum() == probability.bigram_counts([1], 3).sum() == 0


def test_added_counts_make_a_distribution_of_no_counts_at_all():
    assert ml.distribution_from_counts([[0, 0], [1, 0]], add=0.5).tolist() == [[0.5, 0.5], [0.75, 0.25]]


class Darts(np.random.Generator):
    """A generator that draws one number, `dart`, again and again."""

    def random(self, size):
        return np.full(size, self.dart)


@pytest.mark.parametrize("dart", [0.0, np.nextafter(1, 0)])
def test_a_dart_at_the_very_edge_hits_nothing_impossible(dart):
    generator = Darts(np.random.PCG64())
    generator.dart = dart
    for p in ([0.0, 0.1, 0.2, 0.7, 0.0], [0.0, *[0.1] * 10, 0.0]):
        p = np.array(p) * (1 - 1e-10)  # sums to one only roughly
        assert p[ml.sample(p, generator)] > 0
        assert np.all(p[ml.sample(np.stack([p, p]), generator, size=3)] > 0)


def test_every_row_of_a_batch_is_drawn_from_by_itself():
    p = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    assert ml.sample(p, np.random.default_rng(0)).tolist() == [0, 2]
    drawn = ml.sample(np.array([[0.9, 0.1], [0.2, 0.8]]), np.random.default_rng(0), size=20_000)
    assert drawn.shape == (20_000, 2)
    np.testing.assert_allclose(drawn.mean(axis=0), [0.1, 0.8], atol=0.012)  # four standard errors
    assert ml.sample([1.0], np.random.default_rng(0), size=(2, 3)).shape == (2, 3)


# --------------------------------------------------------------------------------------------- expectation and density


def test_values_whose_squares_are_no_float16_have_a_variance():
    x, p = np.float16([1e4, 1e4 + 80, -1e4]), np.float16([0.5, 0.5, 0])
    value, slope = ml.value_and_grad(lambda x: probability.variance(x, p))(x)
    assert value == 1600
    assert slope.tolist() == [-40, 40, 0]


def test_parabolas_make_the_integral_exact_for_cubics():
    assert probability.integral(lambda x: 4 * x**3 - x, -1, 3, panels=2) == pytest.approx(76)
    assert probability.integral(np.cos, 1, 1) == 0


# ------------------------------------------------------------------------------------------------------- from data to θ


def test_a_candidate_that_rules_the_data_out_is_never_chosen():
    likelihood = lambda theta: coins(theta, successes=1, trials=2)  # noqa: E731
    assert likelihood(np.array([0.0, 1.0])).tolist() == [-np.inf, -np.inf]
    assert probability.maximum_likelihood(likelihood, [0.0, 0.1, 1.0]) == 0.1
    with pytest.raises(ValueError, match="no candidate under which"):
        probability.maximum_likelihood(likelihood, [0.0, 1.0])


def test_products_with_the_prior_do_not_underflow():
    assert probability.posterior([0.5, 0.5], [0.0, 5e-324]).tolist() == [0, 1]
    np.testing.assert_allclose(probability.posterior([1 - 1e-9, 1e-9], [1e-310, 1e-301]), [0.5, 0.5], rtol=1e-6)
    assert probability.posterior([[1.0, 0.0], [0.5, 0.5]], [0.2, 0.8]).tolist() == [[1, 0], [0.2, 0.8]]
    assert probability.sequential_posterior([0.5, 0.5], [[0.0, 1.0], [0.5, 0.5]])[-1].tolist() == [0, 1]


@pytest.mark.parametrize(("noise", "prior"), [(1.0, 1.0), (0.1, 5.0), (3.0, 0.2)])
def test_the_most_plausible_weights_are_those_of_ridge_regression(noise, prior):
    X, y = rng.normal(size=(12, 3)), rng.normal(size=12)
    w = probability.map_linear_regression(X, y, noise=noise, prior=prior)
    normal_equations = np.linalg.solve(X.T @ X + (noise / prior) ** 2 * np.eye(3), X.T @ y)
    np.testing.assert_allclose(w, normal_equations)


def test_without_a_penalty_ridge_regression_is_least_squares_also_with_too_few_data():
    X, y = rng.normal(size=(8, 3)), rng.normal(size=8)
    np.testing.assert_allclose(probability.ridge_regression(X, y, 0), np.linalg.lstsq(X, y, rcond=None)[0])
    shortest = probability.ridge_regression(X[:2], y[:2], 0)
    np.testing.assert_allclose(X[:2] @ shortest, y[:2])
    np.testing.assert_allclose(shortest, probability.ridge_regression(X[:2], y[:2], 1e-8), atol=1e-6)


def test_least_squares_fits_several_targets_at_once():
    X, Y = rng.normal(size=(8, 3)), rng.normal(size=(8, 2))
    np.testing.assert_allclose(probability.least_squares(X, Y), np.linalg.pinv(X) @ Y)
    np.testing.assert_allclose(probability.least_squares(X, Y)[:, 0], probability.ridge_regression(X, Y[:, 0], 0))


# ----------------------------------------------------------------------------------------------------------- sequences


def test_an_impossible_token_makes_the_sentence_impossible_and_no_token_costs_nothing():
    assert sentence([0.5, 0.0])[1] == -np.inf
    assert sentence([]).sum() == 0


@given(st.text(alphabet="abcdé ", min_size=1))
def test_a_vocabulary_gives_back_what_it_was_given(text):
    vocabulary = ml.Vocabulary(text)
    ids = vocabulary.encode(text)
    assert "".join(vocabulary.decode(ids)) == text
    assert np.all(np.diff(np.bincount(ids)) <= 0)  # the most frequent first


def test_rare_words_share_one_token():
    vocabulary = ml.Vocabulary(["to", "be", "or", "not", "to", "be"], min_count=2, unknown="<unk>")
    assert vocabulary.tokens == ["be", "to", "<unk>"]
    assert vocabulary.encode(["to", "question", "be"]).tolist() == [1, 2, 0]
    assert "to" in vocabulary
    assert "question" not in vocabulary


# ------------------------------------------------------------------------------------------------------- n-gram models


def by_the_book(ids, n, V, smoothing, add, history):
    """The formulas (5.17)–(5.19), one history at a time, with dictionaries."""
    text = tuple(ids)

    def grams(k):
        return Counter(text[i : i + k] for i in range(len(text) - k + 1))

    def counts(k):
        if smoothing == "kneser-ney" and k < n:
            return Counter(gram[1:] for gram in grams(k + 1))
        return grams(k)

    def distribution(history):
        k = len(history) + 1
        lower = distribution(history[1:]) if k > 1 else np.full(V, 1 / V)
        lower = np.full(V, 1 / V) if smoothing == "add-k" else lower
        count = counts(k)
        after = np.array([count[(*history, w)] for w in range(V)], float)
        if after.sum() == 0:
            return lower
        kinds = np.sum(after > 0)
        if smoothing == "add-k":
            return (after + add) / (after.sum() + add * V)
        if smoothing == "witten-bell":
            return (after + kinds * lower) / (after.sum() + kinds)
        once, twice = (sum(c == i for c in count.values()) for i in (1, 2))
        discount = once / (once + 2 * twice) if once and twice else 0.5
        return (np.maximum(after - discount, 0) + discount * kinds * lower) / after.sum()

    return distribution(tuple(history)[max(0, len(history) - n + 1) :])


texts = st.lists(st.integers(0, 3), min_size=1, max_size=30)
smoothings = st.sampled_from(["kneser-ney", "witten-bell", "add-k"])


@given(texts, st.integers(1, 4), smoothings, st.sampled_from([0, 0.3]), st.lists(st.integers(0, 4), max_size=5))
def test_predictions_are_those_of_the_formulas_and_nothing_is_impossible(text, n, smoothing, add, context):
    model = ml.train_ngram(text, n, vocabulary_size=5, smoothing=smoothing, add=add)
    expected, found = by_the_book(text, n, 5, smoothing, add, context), model.next_probabilities(context)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert np.all(found <= 1)
    assert np.all(found > 0) or (smoothing, add) == ("add-k", 0)


@given(texts, st.integers(1, 4), smoothings, st.lists(st.integers(0, 4), max_size=12))
def test_a_whole_text_is_scored_as_token_by_token(text, n, smoothing, other):
    model = ml.train_ngram(text, n, vocabulary_size=5, smoothing=smoothing)
    one_by_one = [math.log(model.next_probabilities(other[:t])[token]) for t, token in enumerate(other)]
    np.testing.assert_allclose(found := model.log_probabilities(other), one_by_one, atol=1e-12)
    assert np.all(found <= 0)


def test_without_smoothing_what_never_occurred_is_impossible():
    model = ml.train_ngram([0, 1, 0, 1], 2, vocabulary_size=3, smoothing="add-k", add=0)
    assert model.log_probabilities([0, 2])[1] == -np.inf


def test_ids_up_to_millions_are_counted_as_small_ones_are():
    ids = rng.integers(0, 5, 200)
    ids.flags.writeable = False  # training and scoring leave the text alone: a write would raise
    few = ml.train_ngram(ids, 3, smoothing="add-k", add=0)
    many = ml.train_ngram(ids * 1_000_000, 3, smoothing="add-k", add=0)  # keys of twenty digits
    np.testing.assert_array_equal(few.log_probabilities(ids)[2:], many.log_probabilities(ids * 1_000_000)[2:])


def test_what_a_model_writes_follows_its_predictions():
    model = ml.train_ngram([0, 1, 2] * 50, 2, smoothing="add-k", add=0)
    assert model.sample(6, np.random.default_rng(0), context=[0]).tolist() == [1, 2, 0, 1, 2, 0]
    written = ml.train_ngram(ml.train_ngram([0, 0, 1] * 30, 1).sample(5000, np.random.default_rng(0)), 1)
    np.testing.assert_allclose(written.next_probabilities([]), [2 / 3, 1 / 3], atol=0.03)  # four standard errors


test_what_cannot_be_right_is_refused_in_words = refusing(
    (lambda: probability.distribution([[0.5, 0.5], [0.5, -0.5]]), ValueError, "no negative entries, got -0.5"),
    (lambda: probability.distribution([np.nan, 1]), ValueError, "got nan"),
    (lambda: probability.distribution(np.float32([0.5, 0.6]), dtype=float), ValueError, r"this one to 1\.1"),
    (lambda: probability.distribution([]), ml.ShapeError, r"\(\.\.\., n\), got shape \(0,\): n is 0"),
    (lambda: probability.conditional_probability(0.5, 0.4), ValueError, "cannot occur more often"),
    (lambda: probability.bigram_counts([0, 5], 3), ValueError, "0 to 2, got 5"),
    (lambda: probability.bigram_counts([[0, 1]], 3), ml.ShapeError, r"one sequence of ids, got shape \(1, 2\)"),
    (lambda: ml.distribution_from_counts([[1, 2], [0, 0]]), ValueError, "without a single count"),
    (lambda: ml.sample([0.5, 0.6], rng), ValueError, "sums to 1"),
    (lambda: probability.variance([1, 2], [0.5, 0.6]), ValueError, "sums to 1"),
    (lambda: probability.integral(np.cos, 0, 1, panels=3), ValueError, "even number of panels, got 3"),
    (lambda: probability.integral(lambda x: 1.0, 0, 1), ValueError, "one finite value"),
    (lambda: coins(0.5, successes=3, trials=2), ValueError, r"successes in \[0, 2\], got 3"),
    (lambda: probability.maximum_likelihood(np.sin, []), ValueError, "at least one candidate"),
    (lambda: probability.maximum_likelihood(np.sum, [1, 2]), ml.ShapeError, r"one score for each.*got shape \(\)"),
    (lambda: probability.posterior([0.5, 0.5], [0, 0]), ValueError, "evidence"),
    (lambda: probability.posterior([1.0, 0.0], [0, 1]), ValueError, "evidence"),
    (lambda: probability.sequential_posterior([0.5, 0.5], [[0, 0]]), ValueError, "none is left"),
    (lambda: probability.Beta(0, 1), ValueError, r"a in \(0, ∞\), got 0"),
    (lambda: probability.Beta(1, 1).update(-1, 0), ValueError, r"successes in \[0, ∞\), got -1"),
    (lambda: probability.Beta(1, 1).mode, ValueError, "no single highest point"),
    (lambda: probability.Beta(1, 1).density([0.0]), ValueError, r"theta in \(0, 1\), got 0"),
    (lambda: sentence([0.5, 1.5]), ValueError, r"conditional in \[0, 1\], got 1\.5"),
    (lambda: ml.sample_markov_chain(np.eye(2), 3, rng, start=2), ValueError, r"start in \[0, 2\), got 2"),
    (lambda: ml.Vocabulary("ab", min_count=2), ValueError, "at least 2 times"),
    (lambda: ml.Vocabulary(["king", "queen"]).encode(["quen"]), ml.UnknownWordError, "'quen'; did you mean queen"),
    (lambda: ml.Vocabulary("ab").decode([2]), ValueError, "0 to 1"),
    (lambda: ml.Vocabulary("ab").decode([0.7]), TypeError, "integer token ids, got float64"),
    (lambda: ml.train_ngram([], 2), ValueError, "at least one token"),
    (lambda: ml.train_ngram([0, 7], 2, vocabulary_size=5), ValueError, "0 to 4, got 7"),
    (lambda: ml.train_ngram([0, 1], 2, smoothing="good-turing"), ValueError, "kneser-ney, witten-bell, add-k"),
    (lambda: ml.train_ngram([0.5, 1], 2), TypeError, "integer token ids"),
    (lambda: ml.train_ngram(["a"], 2), TypeError, "integer token ids"),
    (lambda: ml.train_ngram([0, 1], 2).sample(-1, rng), ValueError, r"length in \[0, ∞\), got -1"),
    (lambda: ml.train_ngram([0, 1], 2).next_probabilities([5]), ValueError, "0 to 1, got 5"),
    (lambda: ml.train_ngram([0, 1], 2).log_probabilities([-1]), ValueError, "got -1"),
)
