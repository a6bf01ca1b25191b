"""Chapter 15: shown, compared, rewarded; and kept near the reference."""
# ruff: noqa: I001 (the names of the chapter are one paragraph)

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusing import refusing

import mathllm as ml
from mathllm.alignment import (
    advantages, bradley_terry_loss, completion_labels, completion_log_probabilities, dpo_loss,
    grpo_loss, ipo_loss, kl_estimate, kl_optimal_policy, kto_loss, lora_adapters, with_adapters,
)  # fmt: skip
from mathllm.gradient_descent import adam_init, adam_step

rng = np.random.default_rng(15)


@given(st.integers(0, 2**32 - 1), st.floats(0.01, 5))
def test_preferences_do_not_see_what_both_answers_share(seed, beta):
    """The prompt's normaliser cancels: a constant added to both answers of policy or reference changes nothing."""
    draw = np.random.default_rng(seed)
    policy_w, policy_l, old_w, old_l, shift = draw.normal(size=(5, 4))
    for loss in (dpo_loss, ipo_loss):
        expected = loss(policy_w, policy_l, old_w, old_l, beta=beta)
        assert loss(policy_w + shift, policy_l + shift, old_w, old_l, beta=beta) == pytest.approx(expected)
        assert loss(policy_w, policy_l, old_w - shift, old_l - shift, beta=beta) == pytest.approx(expected)


def test_kto_weighs_losses_and_gains_as_it_is_told():
    policy, reference, marks = rng.normal(size=4), rng.normal(size=4), [True, False, True, False]
    slopes = ml.grad(lambda p: kto_loss(p, reference, marks))(policy)
    weighed = ml.grad(lambda p: kto_loss(p, reference, marks, gain=2.0, loss_aversion=3.0))(policy)
    np.testing.assert_allclose(weighed, slopes * [2, 3, 2, 3])


def test_advantages_agree_with_their_sums():
    rewards, values = rng.normal(size=(2, 6)), rng.normal(size=(2, 6))
    gamma, lam = 0.9, 0.7
    following = np.pad(values, ((0, 0), (0, 1)))[:, 1:]
    delta = rewards + gamma * following - values
    expected = [[sum((gamma * lam) ** k * d[t + k] for k in range(6 - t)) for t in range(6)] for d in delta]
    np.testing.assert_allclose(advantages(rewards, values, discount=gamma, decay=lam), expected)


def test_the_penalty_of_grpo_has_the_value_and_the_gradient_of_the_divergence():
    """Over all actions, each counted as often as the old policy takes it."""
    old, reference = np.array([0.2, 0.5, 0.3]), np.array([0.5, 0.3, 0.2])
    theta, actions = np.log([0.25, 0.05, 0.7]), np.repeat(np.arange(3), [2, 5, 3])

    def penalty(theta):
        terms = [np.log(x)[actions] for x in (old, reference)]
        return grpo_loss(ml.log_softmax(theta)[actions], *terms, np.zeros(10), beta=1.0)

    def divergence(theta):
        return ml.kl_divergence(ml.softmax(theta), reference)

    assert penalty(theta) == pytest.approx(divergence(theta))
    np.testing.assert_allclose(ml.grad(penalty)(theta), ml.gradients.numerical_gradient(divergence, theta), atol=1e-6)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64, np.int8, np.int64])
def test_labels_of_any_integer_tokens_are_signed(dtype):
    tokens = np.array([[5, 6, 7, 8]], dtype)
    np.testing.assert_array_equal(completion_labels(tokens, [2], ignore_index=-200), [[-200, -200, 7, 8]])
    assert completion_labels(tokens, [2]).dtype == np.int64


def test_an_outcome_that_the_reference_rules_out_stays_ruled_out():
    assert kl_optimal_policy([0.5, 0.5, 0.0], [0.0, 0.0, 1e6], beta=1.0).tolist() == [0.5, 0.5, 0.0]


def test_rewards_may_be_unsigned_integers():
    assert bradley_terry_loss(np.uint8([1]), np.uint8([2])) == bradley_terry_loss([1.0], [2.0])


def test_labels_of_the_prompt_do_not_count():
    model = ml.Transformer(ml.Config(vocabulary=7, width=8, layers=1, heads=2, context=8))
    params, tokens = model.init(rng), rng.integers(0, 7, size=(3, 6))
    labels = completion_labels(tokens, [2, 3, 5])
    log_p = completion_log_probabilities(model(params, tokens), labels)
    by_hand = ml.log_softmax(model(params, tokens))
    expected = [sum(by_hand[b, t - 1, tokens[b, t]] for t in range(n, 6)) for b, n in enumerate([2, 3, 5])]
    np.testing.assert_allclose(log_p, expected)
    np.testing.assert_allclose(-log_p.sum() / 8, model.loss(params, tokens, labels))  # 4 + 3 + 1 tokens


def test_lora_begins_as_the_model_it_adapts_learns_and_merges():
    model = ml.Transformer(ml.llama_config(vocabulary=7, width=8, layers=2, heads=2, hidden=12, context=8))
    params, tokens = model.init(rng), rng.integers(0, 7, size=(4, 8))
    adapters = lora_adapters(params, ["query", "value"], 2, rng)
    before = model(params, tokens)
    np.testing.assert_array_equal(model(with_adapters(params, adapters), tokens), before)
    loss = lambda a: model.loss(with_adapters(params, a), tokens, tokens)  # noqa: E731
    start, state = loss(adapters), adam_init(adapters)
    for _ in range(60):
        adapters, state = adam_step(adapters, ml.grad(loss)(adapters), state, learning_rate=0.05)
    assert loss(adapters) < start - 0.05
    np.testing.assert_array_equal(model(params, tokens), before)  # the frozen weights have not moved
    merged = with_adapters(params, adapters)
    update = merged["blocks"][1]["attention"]["query"] - params["blocks"][1]["attention"]["query"]
    assert np.linalg.matrix_rank(update) == 2
    assert merged["blocks"][1]["attention"]["key"] is params["blocks"][1]["attention"]["key"]


test_what_cannot_be_right_is_refused_in_words = refusing(
    (lambda: kl_optimal_policy([0.5, 0.6], [1.0, 2.0], beta=1), ValueError, "distribution"),
    (lambda: kl_estimate([-800.0], [0.0]), OverflowError, r"e\^800 is more than float64"),
    (lambda: kl_estimate(np.float32([-90]), np.float32([0])), OverflowError, r"e\^90 is more than float32"),
    (lambda: grpo_loss([0.0], [-800.0], [0.0], [1.0]), OverflowError, "exp"),
    (lambda: completion_labels([[1, 2]], [3]), ValueError, "from 0 to 2"),
    (lambda: completion_labels([[1, 2]], [0.5]), ValueError, "from 0 to 2"),
    (lambda: completion_labels([[1.5, 2]], [1]), TypeError, "integer token ids, got float64"),
    (lambda: completion_log_probabilities(np.zeros((1, 2, 4)), [[1, 4]]), ValueError, "labels from 0 to 3.*got 4"),
    (lambda: completion_log_probabilities(np.zeros((1, 2, 4)), [[1.0, 1.0]]), TypeError, "integer labels"),
    (lambda: lora_adapters({"key": np.eye(2)}, ["query"], 1, rng), ValueError, "no matrix called query"),
    (lambda: lora_adapters({"gain": np.ones(2)}, ["gain"], 1, rng), ValueError, "no matrix called gain"),
    (lambda: with_adapters({"key": np.eye(2)}, {"query": {"A": 1.0, "B": 1.0}}), ml.ShapeError, "query"),
)
