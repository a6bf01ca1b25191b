"""Chapter 07: surprise, its means, the training loss, and files as short as the predictions are good."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from refusing import refusing

import mathllm as ml

rng = np.random.default_rng(7)


def test_what_cannot_happen_adds_nothing_and_what_was_ruled_out_costs_everything():
    assert ml.entropy([1.0, 0.0]) == 0
    assert ml.surprise(0.0) == np.inf
    assert ml.cross_entropy_between([1.0, 0.0], [1.0, 0.0]) == 0
    assert ml.cross_entropy_between([0.5, 0.5], [1.0, 0.0]) == np.inf
    assert ml.kl_divergence([0.5, 0.5], [1.0, 0.0]) == np.inf
    assert ml.kl_divergence([1.0, 0.0], [0.5, 0.5], base=2) == 1
    assert ml.perplexity(np.inf, base=2) == np.inf
    assert ml.perplexity(1e4, base=np.e) == np.inf
    assert ml.cross_entropy([[0.0, -np.inf]], [1]) == np.inf


@pytest.mark.parametrize(("dtype", "rare"), [(np.float16, 1e-5), (np.float32, 1e-30), (np.float64, 1e-200)])
def test_pairs_so_rare_that_the_product_of_their_probabilities_is_no_number_give_finite_information(dtype, rare):
    joint = np.array([[rare, 0], [0, 1]], dtype)
    assert joint[0, 0] * joint[0, 0] == 0
    information = ml.mutual_information(joint)
    assert 0 < information < 1
    np.testing.assert_allclose(information, -float(joint[0, 0]) * np.log(float(joint[0, 0])), rtol=2e-2)
    assert np.all(np.isfinite(ml.grad(ml.mutual_information)(joint)))


def test_the_partial_derivatives_of_mutual_information_are_those_of_its_formula():
    """Along a softmax, what a gradient has in common for all outcomes cannot be seen; here it can."""
    joint = ml.softmax(rng.normal(size=6)).reshape(2, 3)
    formula = lambda p: np.sum(p * np.log(p / (p.sum(axis=1, keepdims=True) * p.sum(axis=0, keepdims=True))))  # noqa: E731
    np.testing.assert_allclose(ml.grad(ml.mutual_information)(joint), ml.numerical_gradient(formula, joint), rtol=1e-6)


def test_a_surprise_of_rounding_is_none():
    assert ml.cross_entropy_between([1.0], [1 + 1e-10]) == 0
    assert not np.signbit(ml.surprise(1.0))
    assert not np.signbit(ml.entropy([1.0, 0.0]))


def test_the_gradient_at_a_masked_outcome_is_zero_and_not_nan():
    z = np.array([1.0, -np.inf, 0.5])
    for function in (ml.entropy, lambda p: ml.kl_divergence(p, ml.softmax([0.0, 1.0, 2.0]))):
        gradient = ml.grad(lambda z, f=function: f(ml.softmax(z)))(z)
        assert gradient[1] == 0
        assert np.all(np.isfinite(gradient))


def test_ignored_labels_count_neither_in_the_sum_nor_in_the_mean():
    z, labels = rng.normal(size=(4, 3)), np.array([0, -100, 2, -100])
    assert ml.cross_entropy(z, labels) == ml.cross_entropy(z[[0, 2]], [0, 2])
    assert ml.cross_entropy(z, [0, -1, 2, -1], ignore_index=-1) == ml.cross_entropy(z[[0, 2]], [0, 2])
    losses, pullback = ml.vjp(lambda z: ml.cross_entropy(z, labels, reduction="none"), z)
    assert not losses[[1, 3]].any()
    assert not pullback(np.ones(4))[0][[1, 3]].any()
    np.testing.assert_allclose(losses.sum(), ml.cross_entropy(z, labels, reduction="sum"))


def test_an_empty_batch_has_no_mean_loss_but_a_sum_of_zero():
    with pytest.raises(ValueError, match="at least one label that counts, got none"):
        ml.cross_entropy(np.zeros((2, 3)), [-100, -100])
    assert ml.cross_entropy(np.zeros((0, 3)), [], reduction="sum") == 0
    assert ml.cross_entropy(np.zeros((0, 3)), [], reduction="none").shape == (0,)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_softmax_of_50000_logits_is_a_distribution_in_every_dtype(dtype):
    for z in (np.zeros(50_000), rng.normal(size=50_000), np.linspace(-1e4, 1e4, 50_000)):
        assert 0 <= ml.entropy(ml.softmax(z.astype(dtype))) <= np.log(50_000) * 1.01


@pytest.mark.parametrize("order", ["C", "F"])
def test_the_layout_and_the_integers_of_the_arguments_do_not_matter(order):
    z, labels = rng.normal(size=(3, 4, 5)).astype(np.float32), np.array([[0, 4, 2, 1], [1, 1, 0, 3], [2, 2, 2, 2]])
    loss, gradient = ml.value_and_grad(lambda z: ml.cross_entropy(z, labels))(z)
    for dtype in (np.uint8, np.int16, np.uint64):
        other = np.asarray(z.swapaxes(0, 1), order=order).swapaxes(0, 1)
        again, slopes = ml.value_and_grad(lambda z, y: ml.cross_entropy(z, y))(other, labels.astype(dtype))
        assert loss == again
        np.testing.assert_array_equal(gradient, slopes)
    assert ml.cross_entropy([3.0, 3.0], 0) == np.log(2)  # one position alone


def test_the_mean_over_many_float16_losses_does_not_overflow():
    z = np.tile(np.array([0, 1e4], np.float16), (1000, 1))
    assert ml.cross_entropy(z, np.zeros(1000, int)) == 1e4


def test_info_nce_survives_a_temperature_near_zero():
    assert ml.info_nce(np.eye(3), np.eye(3), temperature=1e-4) == 0
    assert ml.info_nce(np.eye(3), np.eye(3)[::-1], temperature=1e-4) == pytest.approx(2 / 3 * 1e4)


@given(hnp.arrays(np.float64, st.integers(1, 5), elements=st.floats(-40, 5)), st.lists(st.integers(0, 4), max_size=40))
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


test_what_cannot_be_right_is_refused_in_words = refusing(
    (lambda: ml.entropy([0.5, 0.4]), ValueError, "sums to 1, this one to 0.9"),
    (lambda: ml.entropy([1.5, -0.5]), ValueError, "no negative entries, got -0.5"),
    (lambda: ml.kl_divergence([0.5, 0.5], [0.5, 0.6]), ValueError, "sums to 1, this one to 1.1"),
    (lambda: ml.perplexity("a", base=2), TypeError, "real numbers, got <U1"),
    (lambda: ml.cross_entropy(np.zeros((2, 3)), [0, 3]), ValueError, "0 to 2.*got 3"),
    (lambda: ml.cross_entropy(np.zeros((2, 3)), [0, -1]), ValueError, "-100 to ignore.*got -1"),
    (lambda: ml.cross_entropy(np.zeros((2, 3)), [0.0, 1.0]), TypeError, "integer labels, got float64"),
    (lambda: ml.cross_entropy(np.zeros((2, 3)), [0]), ml.ShapeError, r"\(2, 3\) and \(1,\)"),
    (lambda: ml.cross_entropy([[np.nan, 1.0]], [0]), ValueError, r"cross_entropy\(\) needs finite.*NaN"),
    (lambda: ml.cross_entropy([[-np.inf, -np.inf]], [0]), ValueError, "all are masked"),
    (lambda: ml.cross_entropy(np.zeros((1, 0)), [-100], reduction="sum"), ml.ShapeError, "at least one logit"),
    (lambda: ml.cross_entropy([[0.0, 1.0]], [0], reduction="max"), ValueError, "'max'"),
    (lambda: ml.arithmetic_encode([2], lambda seen: [0.5, 0.5]), ValueError, "0 to 1, got 2"),
    (lambda: ml.arithmetic_encode(np.array([2**63], np.uint64), lambda seen: [0.5, 0.5]), ValueError, str(2**63)),
    (lambda: ml.arithmetic_encode([0.5], lambda seen: [0.5, 0.5]), TypeError, "float64"),
    (lambda: ml.arithmetic_encode([[0]], lambda seen: [0.5, 0.5]), ml.ShapeError, r"\(1, 1\)"),
    (lambda: ml.arithmetic_encode([0], lambda seen: [0.5, 0.6]), ValueError, "sums to 1, this one to 1.1"),
    (lambda: ml.arithmetic_encode([0], lambda seen: [[1.0]]), ml.ShapeError, r"\(V,\), got shape \(1, 1\)"),
    (lambda: ml.code_length([1], lambda seen: [1.0]), ValueError, "0 to 0, got 1"),
)
