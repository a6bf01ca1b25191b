"""Chapter 07: surprise, its means, the training loss, and files as short as the predictions are good."""

import inspect

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from package import MODULES, described

import mathllm as ml
from mathllm.errors import CHAPTERS

rng = np.random.default_rng(7)
sizes = st.integers(1, 6)
logits = hnp.arrays(np.float64, sizes, elements=st.floats(-20, 20))
bases = st.sampled_from([2, np.e, 3.0, 10])


# --------------------------------------------------------------------------------------------------------- information


@given(logits, bases, bases)
def test_bases_differ_by_a_constant_factor_and_perplexity_by_nothing(z, b, c):
    p = ml.softmax(z)
    H = ml.entropy(p, base=b)
    np.testing.assert_allclose(
        ml.entropy(p, base=c), ml.convert_information(H, from_base=b, to_base=c), rtol=1e-9, atol=1e-12
    )
    np.testing.assert_allclose(ml.perplexity(H, base=b), ml.perplexity(ml.entropy(p, base=c), base=c), rtol=1e-9)


def test_perplexity_must_be_told_the_base():
    with pytest.raises(TypeError, match="base"):
        ml.perplexity(2.0)


def test_what_cannot_happen_adds_nothing_and_what_was_ruled_out_costs_everything():
    assert ml.entropy([1.0, 0.0]) == 0
    assert ml.surprise(0.0) == np.inf
    assert ml.cross_entropy_between([1.0, 0.0], [1.0, 0.0]) == 0
    assert ml.cross_entropy_between([0.5, 0.5], [1.0, 0.0]) == np.inf
    assert ml.kl_divergence([0.5, 0.5], [1.0, 0.0]) == np.inf
    assert ml.kl_divergence([1.0, 0.0], [0.5, 0.5], base=2) == 1
    assert ml.perplexity(np.inf, base=2) == np.inf
    assert ml.perplexity(1e4, base=np.e) == np.inf


def hard_distributions(dtype):
    """Distributions at the edges of a dtype: ties, certainty, subnormal probabilities, logits up to ±10⁴."""
    least = np.finfo(dtype).smallest_subnormal
    yield from (np.array(p, dtype) for p in ([1], [1, 0, 0], [0.5, 0.5], [1, least, least], [1 + np.finfo(dtype).eps]))
    yield from (np.full(n, 1 / n, dtype) for n in (3, 7, 50))
    yield ml.softmax(np.array([1e4, -1e4, 0, 1e4], dtype))
    for _ in range(20):
        z = 10 ** rng.uniform(-4, 4) * rng.uniform(-1, 1, size=rng.integers(1, 40))
        yield ml.softmax(z.astype(dtype))
    yield ml.softmax(rng.normal(size=50_000).astype(dtype))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_no_gradient_is_nan_at_the_edges_of_a_dtype(dtype):
    for p in hard_distributions(dtype):
        for function in (ml.kl_divergence, ml.cross_entropy_between):
            assert not any(np.any(np.isnan(slope)) for slope in ml.vjp(function, p, rng.permutation(p))[1](dtype(1)))


@pytest.mark.parametrize(("dtype", "rare"), [(np.float16, 1e-5), (np.float32, 1e-30), (np.float64, 1e-200)])
def test_pairs_so_rare_that_the_product_of_their_probabilities_is_no_number_give_finite_information(dtype, rare):
    joint = np.array([[rare, 0], [0, 1]], dtype)
    assert joint[0, 0] * joint[0, 0] == 0
    information = ml.mutual_information(joint)
    assert 0 < information < 1
    np.testing.assert_allclose(information, -float(joint[0, 0]) * np.log(float(joint[0, 0])), rtol=2e-2)
    assert np.all(np.isfinite(ml.grad(ml.mutual_information)(joint)))


def test_a_surprise_of_rounding_is_none():
    assert ml.surprise(1 + 2e-16) == 0
    assert ml.cross_entropy_between([1.0], [1 + 1e-10]) == 0
    assert not np.signbit(ml.surprise(1.0))
    assert not np.signbit(ml.entropy([1.0, 0.0]))


@pytest.mark.parametrize("base", [np.e, 2])
def test_partial_derivatives_are_those_of_the_formulas(base):
    """Along a softmax, what a gradient has in common for all outcomes cannot be seen; here it can."""
    p, q = ml.softmax(rng.normal(size=(2, 4)))
    formulas = {
        ml.surprise: lambda p, q: -np.log(p),
        ml.entropy: lambda p, q: -np.sum(p * np.log(p)),
        ml.cross_entropy_between: lambda p, q: -np.sum(p * np.log(q)),
        ml.kl_divergence: lambda p, q: np.sum(p * np.log(p / q)),
    }
    for function, formula in formulas.items():
        both = (p, q)[: 1 if function in (ml.surprise, ml.entropy) else 2]
        value, pullback = ml.vjp(lambda *pq, f=function: f(*pq, base=base), *both)
        slopes = pullback(np.ones_like(value))
        for n, slope in enumerate(slopes):
            moved = lambda x, n=n, f=formula: np.sum(f(*[x if i == n else (p, q)[i] for i in (0, 1)]))  # noqa: E731
            np.testing.assert_allclose(slope, ml.numerical_gradient(moved, (p, q)[n]) / np.log(base), rtol=1e-6)


def test_the_gradient_at_a_masked_outcome_is_zero_and_not_nan():
    z = np.array([1.0, -np.inf, 0.5])
    for function in (ml.entropy, lambda p: ml.kl_divergence(p, ml.softmax([0.0, 1.0, 2.0]))):
        gradient = ml.grad(lambda z, f=function: f(ml.softmax(z)))(z)
        assert gradient[1] == 0
        assert np.all(np.isfinite(gradient))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("size", [1, 3, 50_000])
def test_what_softmax_gives_is_a_distribution_in_every_dtype(dtype, size):
    for z in (np.zeros(size), rng.normal(size=size), np.linspace(-1e4, 1e4, size)):
        p = ml.softmax(z.astype(dtype))
        assert 0 <= ml.entropy(p) <= np.log(size) * 1.01


# -------------------------------------------------------------------------------------------------------- the loss


def test_the_gradient_is_prediction_minus_truth():
    z, labels = rng.normal(size=(4, 3)), np.array([0, 2, 1, 1])
    _, gradient = ml.value_and_grad(lambda z: ml.cross_entropy(z, labels))(z)
    np.testing.assert_allclose(gradient, (ml.softmax(z) - np.eye(3)[labels]) / 4)


def test_ignored_labels_count_neither_in_the_sum_nor_in_the_mean():
    z = rng.normal(size=(4, 3))
    assert ml.IGNORED == -100
    assert ml.cross_entropy(z, [0, -100, 2, -100]) == ml.cross_entropy(z[[0, 2]], [0, 2])
    assert ml.cross_entropy(z, [0, -1, 2, -1], ignore_index=-1) == ml.cross_entropy(z[[0, 2]], [0, 2])
    losses = ml.cross_entropy(z, [0, -100, 2, -100], reduction="none")
    assert losses[[1, 3]].tolist() == [0, 0]
    np.testing.assert_allclose(losses.sum(), ml.cross_entropy(z, [0, -100, 2, -100], reduction="sum"))
    gradient = ml.grad(lambda z: ml.cross_entropy(z, np.array([0, -100, 2, -100])))(z)
    assert not gradient[[1, 3]].any()


def test_an_empty_batch_has_no_mean_loss_but_a_sum_of_zero():
    with pytest.raises(ValueError, match="at least one label that counts, got none"):
        ml.cross_entropy(np.zeros((0, 3)), [])
    with pytest.raises(ValueError, match="at least one label that counts, got none"):
        ml.cross_entropy(np.zeros((2, 3)), [-100, -100])
    assert ml.cross_entropy(np.zeros((0, 3)), [], reduction="sum") == 0
    assert ml.cross_entropy(np.zeros((0, 3)), [], reduction="none").shape == (0,)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_extreme_logits_give_a_large_loss_and_no_nan(dtype):
    z = np.array([[1e4, -1e4], [1e4, -1e4]], dtype)
    z.flags.writeable = False  # a write would raise
    loss, gradient = ml.value_and_grad(lambda z: ml.cross_entropy(z, np.array([0, 1])))(z)
    assert loss == 1e4
    assert loss.dtype == gradient.dtype == dtype
    assert gradient.tolist() == [[0, 0], [0.5, -0.5]]
    assert ml.cross_entropy([[0.0, -np.inf]], [1]) == np.inf  # ruled out, and yet it came


@pytest.mark.parametrize("order", ["C", "F"])
def test_the_layout_and_the_integers_of_the_arguments_do_not_matter(order):
    z, labels = rng.normal(size=(3, 4, 5)).astype(np.float32), np.array([[0, 4, 2, 1], [1, 1, 0, 3], [2, 2, 2, 2]])
    loss, gradient = ml.value_and_grad(lambda z: ml.cross_entropy(z, labels))(z)
    for dtype in (np.uint8, np.int16, np.uint64):
        other = np.asarray(z.swapaxes(0, 1), order=order).swapaxes(0, 1)
        again, slopes = ml.value_and_grad(lambda z, y: ml.cross_entropy(z, y))(other, labels.astype(dtype))
        assert loss == again
        np.testing.assert_array_equal(gradient, slopes)


def test_one_token_in_the_vocabulary_and_one_position():
    assert ml.cross_entropy([[3.0]], [0]) == 0
    assert ml.cross_entropy([3.0, 3.0], 0) == np.log(2)


def test_the_mean_over_many_float16_losses_does_not_overflow():
    z = np.tile(np.array([0, 1e4], np.float16), (1000, 1))
    assert ml.cross_entropy(z, np.zeros(1000, int)) == 1e4


# -------------------------------------------------------------------------------------------------------- compression

PAGE = "\n".join(inspect.getdoc(getattr(ml, name)) for name in ("softmax", "norm", "normalize", "cosine_similarity"))
SYMBOLS = sorted(set(PAGE))
TEXT = np.array([SYMBOLS.index(character) for character in PAGE])


def adaptive_bigrams(seen):
    """A model that learns while it reads: counts of what followed the last symbol, and one more of each."""
    followers = seen[1:][seen[:-1] == seen[-1]] if len(seen) else seen
    counts = np.bincount(followers, minlength=len(SYMBOLS)) + 0.1
    return counts / counts.sum()


def adaptive_bigrams_in_float32(seen):
    return adaptive_bigrams(seen).astype(np.float32)


@pytest.mark.parametrize("model", [adaptive_bigrams, adaptive_bigrams_in_float32])
def test_a_page_of_text_shrinks_to_the_models_cross_entropy_and_comes_back(model):
    code = ml.arithmetic_encode(TEXT, model)
    ideal = ml.code_length(TEXT, model)
    assert len(TEXT) > 2000
    assert 8 * len(code) < 1.01 * ideal
    assert len(code) < 0.6 * len(PAGE.encode())
    assert ml.arithmetic_decode(code, model, len(TEXT)).tolist() == TEXT.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("smoothing", ["kneser-ney", "witten-bell"])
def test_an_n_gram_model_compresses_a_page_it_has_not_seen(smoothing):
    chapters = [module for module in MODULES if set(module.split(".")) & set(CHAPTERS)]
    public = [value for module in chapters for _, value in described(module) if value not in (ml.softmax, ml.norm)]
    book = "\n".join(inspect.getdoc(value) for value in public)
    unseen = "\n".join(inspect.getdoc(value) for value in (ml.softmax, ml.norm))
    symbols = sorted({*book, *unseen})
    ids, page = ([symbols.index(character) for character in text] for text in (book, unseen))
    model = ml.train_ngram(ids, n=4, vocabulary_size=len(symbols), smoothing=smoothing)
    code = ml.arithmetic_encode(page, model.next_probabilities)
    loss = -model.log_probabilities(page).mean()  # nats per character
    bits = ml.convert_information(loss, from_base=np.e, to_base=2) * len(page)
    assert abs(8 * len(code) - bits) < 0.01 * bits
    assert len(code) < 0.5 * len(unseen.encode())
    assert ml.arithmetic_decode(code, model.next_probabilities, len(page)).tolist() == page


def test_code_length_is_tokens_times_cross_entropy():
    model = lambda seen: [0.7, 0.2, 0.1]  # noqa: E731
    symbols = [0, 2, 1, 0, 0]
    loss = ml.cross_entropy(np.log(np.tile([0.7, 0.2, 0.1], (5, 1))), symbols)
    np.testing.assert_allclose(ml.code_length(symbols, model, base=np.e), 5 * loss)


@given(
    hnp.arrays(np.float64, st.integers(1, 5), elements=st.floats(-40, 5)),
    st.lists(st.integers(0, 4), max_size=40),
)
def test_any_message_comes_back_and_is_at_most_a_byte_too_long(z, message):
    p = ml.softmax(z)
    model = lambda seen: np.roll(p, len(seen))  # noqa: E731
    message = [symbol % len(p) for symbol in message]
    code = ml.arithmetic_encode(message, model)
    assert ml.arithmetic_decode(code, model, len(message)).tolist() == message
    if ml.code_length(message, model) < 20 * max(len(message), 1):  # beyond, shares are rounded to whole numbers
        assert 8 * len(code) <= ml.code_length(message, model) * (1 + 1e-3) + 8


def test_even_what_the_model_rules_out_can_be_written():
    model = lambda seen: [1.0, 0.0]  # noqa: E731
    code = ml.arithmetic_encode([0, 1, 0, 1], model)
    assert ml.arithmetic_decode(code, model, 4).tolist() == [0, 1, 0, 1]
    assert 64 <= 8 * len(code) <= 72
    assert ml.code_length([1], model) == np.inf
    assert ml.code_length([], model) == ml.code_length([0], lambda seen: [1 + 5e-10, 0]) == 0


def test_messages_of_no_and_of_sure_symbols_need_no_bytes():
    assert ml.arithmetic_encode([], lambda seen: [0.5, 0.5]) == b""
    assert ml.arithmetic_encode([0] * 100, lambda seen: [1.0]) == b""
    assert ml.arithmetic_decode(b"", lambda seen: [1.0], 3).tolist() == [0, 0, 0]


def test_a_large_vocabulary_costs_no_more_than_its_uniform_surprise():
    V = 50_000
    uniform = np.full(V, 1 / V)
    message = rng.integers(0, V, 30)
    code = ml.arithmetic_encode(message, lambda seen: uniform)
    assert 8 * len(code) <= 30 * np.log2(V) * 1.0001 + 8
    assert ml.arithmetic_decode(code, lambda seen: uniform, 30).tolist() == message.tolist()


def test_a_model_cannot_change_the_message():
    def model(seen):
        seen[:] = 0
        return [0.5, 0.5]

    with pytest.raises(ValueError, match="read-only"):
        ml.arithmetic_encode([1, 1], model)


# -------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: ml.entropy([0.5, 0.4]), ValueError, "sums to 1, this one to 0.9"),
        (lambda: ml.entropy([1.5, -0.5]), ValueError, "no negative entries, got -0.5"),
        (lambda: ml.entropy([np.nan, 1]), ValueError, "got nan"),
        (lambda: ml.kl_divergence([0.5, 0.5], [0.5, 0.6]), ValueError, "sums to 1, this one to 1.1"),
        (lambda: ml.convert_information(1.0, from_base=1, to_base=2), ValueError, "got 1"),
        (lambda: ml.cross_entropy(np.zeros((2, 3)), [0, 3]), ValueError, "0 to 2.*got 3"),
        (lambda: ml.cross_entropy(np.zeros((2, 3)), [0, -1]), ValueError, "-100 to ignore.*got -1"),
        (lambda: ml.cross_entropy(np.zeros((2, 3)), [0.0, 1.0]), TypeError, "integer labels, got float64"),
        (lambda: ml.cross_entropy(np.zeros((2, 3)), [0]), ml.ShapeError, r"\(2, 3\) and \(1,\)"),
        (lambda: ml.cross_entropy([[np.nan, 1.0]], [0]), ValueError, r"cross_entropy\(\) needs finite.*NaN"),
        (lambda: ml.cross_entropy([[-np.inf, -np.inf]], [0]), ValueError, "all are masked"),
        (lambda: ml.cross_entropy(np.zeros((1, 0)), [-100], reduction="sum"), ml.ShapeError, "at least one logit"),
        (lambda: ml.mutual_information(np.empty((0, 2))), ml.ShapeError, "n is 0"),
        (lambda: ml.cross_entropy([[0.0, 1.0]], [0], reduction="max"), ValueError, "'max'"),
        (lambda: ml.arithmetic_encode([2], lambda seen: [0.5, 0.5]), ValueError, "0 to 1, got 2"),
        (lambda: ml.arithmetic_encode([-1], lambda seen: [0.5, 0.5]), ValueError, "got -1"),
        (lambda: ml.arithmetic_encode([0.5], lambda seen: [0.5, 0.5]), TypeError, "float64"),
        (lambda: ml.arithmetic_encode([[0]], lambda seen: [0.5, 0.5]), ml.ShapeError, r"\(1, 1\)"),
        (lambda: ml.arithmetic_encode([0], lambda seen: [0.5, 0.6]), ValueError, "sums to 1, this one to 1.1"),
        (lambda: ml.arithmetic_encode([0], lambda seen: [[1.0]]), ml.ShapeError, r"\(V,\), got shape \(1, 1\)"),
        (lambda: ml.code_length([1], lambda seen: [1.0]), ValueError, "0 to 0, got 1"),
    ],
)
def test_what_cannot_be_right_is_refused_in_words(call, error, words):
    with pytest.raises(error, match=words):
        call()
