"""Chapter 15: shown, compared, rewarded; and kept near the reference."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mathllm as ml
from mathllm.alignment import (
    advantages,
    bradley_terry_loss,
    clipped_surrogate,
    completion_labels,
    completion_log_probabilities,
    dpo_loss,
    group_advantages,
    grpo_loss,
    ipo_loss,
    kl_estimate,
    kl_optimal_policy,
    kto_loss,
    lora_adapters,
    with_adapters,
)
from mathllm.gradient_descent import adam_init, adam_step

rng = np.random.default_rng(15)
zero = np.zeros(1)


def test_the_closed_form_is_the_maximum_of_reward_minus_divergence():
    policy, reward, beta = np.array([0.5, 0.3, 0.2]), np.array([1.0, 0.0, 2.0]), 0.5

    def objective(p):
        return p @ reward - beta * ml.kl_divergence(p, policy)

    best = kl_optimal_policy(policy, reward, beta=beta)
    others = rng.dirichlet(np.ones(3), size=2000)
    assert all(objective(best) >= objective(p) for p in others)
    near = kl_optimal_policy(policy, reward, beta=1e6), kl_optimal_policy(policy, reward, beta=1e-3)
    np.testing.assert_allclose(near[0], policy, atol=1e-5)
    np.testing.assert_allclose(near[1], [0, 0, 1], atol=1e-12)


def test_dpo_finds_the_closed_form_when_preferences_are_bradley_terry():
    """One prompt, three answers: minimise the expected DPO loss over all pairs, and meet π_ref e^(R/β)/Z."""
    policy, reward, beta = np.array([0.5, 0.3, 0.2]), np.array([1.0, 0.0, 2.0]), 0.5
    pairs = np.array([(w, l) for w in range(3) for l in range(3) if w != l])
    share = ml.sigmoid(reward[pairs[:, 0]] - reward[pairs[:, 1]])

    def loss(logits):
        log_p, ref = ml.log_softmax(logits), np.log(policy)
        margin = (log_p[pairs[:, 0]] - ref[pairs[:, 0]]) - (log_p[pairs[:, 1]] - ref[pairs[:, 1]])
        return -(ml.log_sigmoid(margin * beta) * share).sum()

    params = {"logits": np.zeros(3)}
    state = adam_init(params)
    for _ in range(800):
        gradient = ml.grad(lambda p: loss(p["logits"]))(params)
        params, state = adam_step(params, gradient, state, learning_rate=0.05)
    found = ml.softmax(params["logits"])
    np.testing.assert_allclose(found, kl_optimal_policy(policy, reward, beta=beta), atol=1e-3)  # 800 steps of 0.05


@pytest.mark.slow
def test_a_reward_model_recovers_the_differences_that_made_the_preferences():
    truth = np.array([0.0, 1.0, -0.5, 2.0])
    pairs = np.array([(w, l) for w in range(4) for l in range(4) if w != l])
    share = ml.sigmoid(truth[pairs[:, 0]] - truth[pairs[:, 1]])
    reward = np.zeros(4)
    for _ in range(4000):
        slope = ml.grad(lambda r: -(ml.log_sigmoid(r[pairs[:, 0]] - r[pairs[:, 1]]) * share).sum())(reward)
        reward = reward - 0.2 * slope
    np.testing.assert_allclose(reward - reward[0], truth - truth[0], atol=1e-3)


seeds = st.integers(0, 2**32 - 1)


@given(seeds, st.floats(0.01, 5))
def test_preferences_do_not_see_what_both_answers_share(seed, beta):
    """The prompt's normaliser cancels: a constant added to both answers of policy or reference changes nothing."""
    draw = np.random.default_rng(seed)
    policy_w, policy_l, old_w, old_l, shift = draw.normal(size=(5, 4))
    for loss in (dpo_loss, ipo_loss):
        expected = loss(policy_w, policy_l, old_w, old_l, beta=beta)
        assert loss(policy_w + shift, policy_l + shift, old_w, old_l, beta=beta) == pytest.approx(expected)
        assert loss(policy_w, policy_l, old_w - shift, old_l - shift, beta=beta) == pytest.approx(expected)


@given(seeds)
def test_two_judgements_of_a_pair_are_certain_to_be_one_or_the_other(seed):
    chosen, rejected = np.random.default_rng(seed).normal(0, 3, size=(2, 1))
    both = np.exp(-bradley_terry_loss(chosen, rejected)) + np.exp(-bradley_terry_loss(rejected, chosen))
    assert both == pytest.approx(1)


@given(seeds, st.floats(0.05, 0.9))
def test_clipping_only_takes_gains_away_and_nothing_near_the_old_policy(seed, epsilon):
    draw = np.random.default_rng(seed)
    ratio, advantage = np.exp(draw.normal(size=20)), draw.normal(size=20)
    clipped = clipped_surrogate(ratio, advantage, epsilon=epsilon)
    assert np.all(clipped <= ratio * advantage)
    near = np.abs(ratio - 1) < epsilon
    np.testing.assert_array_equal(clipped[near], (ratio * advantage)[near])
    assert np.all(clipped <= (1 + epsilon) * np.abs(advantage) + 1e-12)  # the most that can be gained


@given(seeds, st.integers(2, 6), st.floats(0.05, 20))
def test_a_higher_reward_never_makes_an_outcome_less_likely(seed, outcomes, beta):
    draw = np.random.default_rng(seed)
    reference, reward = draw.dirichlet(np.ones(outcomes)), draw.normal(size=outcomes)
    policy = kl_optimal_policy(reference, reward, beta=beta)
    assert policy.sum() == pytest.approx(1)
    order = np.argsort(reward)
    gains = np.log(np.maximum(policy, 1e-300) / reference)[order]
    assert np.all(np.diff(gains) >= -1e-9)


@pytest.mark.parametrize("size", [1e4, -1e4])
def test_log_probabilities_of_ten_thousand_give_finite_losses_and_gradients(size):
    far = np.array([size, 0.0])
    near = np.zeros(2)
    for loss in (
        lambda p: dpo_loss(p, near, near, near),
        lambda p: ipo_loss(p, near, near, near),
        lambda p: bradley_terry_loss(p, near),
        lambda p: kto_loss(p, near, [True, False]),
    ):
        value, slope = ml.value_and_grad(loss)(far)
        assert np.isfinite(value)
        assert np.all(np.isfinite(slope))


def test_ipo_stops_where_dpo_goes_on():
    slope = ml.grad(lambda h: ipo_loss(h, zero, zero, zero, beta=0.1))(np.array([5.0]))
    assert slope == 0
    assert ml.grad(lambda h: dpo_loss(h, zero, zero, zero, beta=0.1))(np.array([5.0])) < 0


def test_kto_raises_what_is_good_and_lowers_what_is_bad():
    slope = ml.grad(lambda p: kto_loss(p, np.zeros(2), [True, False]))(np.zeros(2))
    assert slope[0] < 0 < slope[1]


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


def test_group_advantages_have_mean_zero_and_spread_one_and_are_zero_for_equal_rewards():
    result = group_advantages(rng.normal(size=(5, 8)))
    np.testing.assert_allclose(result.mean(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(result.std(axis=1), 1, rtol=1e-6)
    assert not np.any(group_advantages([3.0, 3.0, 3.0]))


def test_the_kl_estimate_has_the_right_mean():
    p, q = np.array([0.6, 0.3, 0.1]), np.array([0.2, 0.5, 0.3])
    estimate = kl_estimate(np.log(p), np.log(q))
    assert np.all(estimate >= 0)
    assert p @ estimate == pytest.approx(ml.kl_divergence(p, q))


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


def floats_of(dtype, rng):
    """Numbers of every size: the floats next to 0, those next to the powers of two, and random bit patterns."""
    bits = np.dtype(f"u{np.dtype(dtype).itemsize}")
    powers = np.exp2(np.arange(np.finfo(dtype).minexp, 11), dtype=dtype).view(bits)
    near = (powers[:, None] + np.arange(-8, 9).astype(bits)).ravel()
    anywhere = rng.integers(0, np.iinfo(bits).max, size=20_000, dtype=bits)
    found = np.concatenate([np.arange(5000, dtype=bits), near, anywhere]).view(dtype)
    found = np.concatenate([found, -found])
    return found[np.isfinite(found) & (found < np.log(np.finfo(dtype).max) * 0.99)]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_kl_estimate_is_never_negative(dtype):
    difference = floats_of(dtype, np.random.default_rng(0))
    estimate = kl_estimate(np.zeros_like(difference), difference)
    assert estimate.dtype == dtype
    assert np.all(estimate >= 0)
    every = np.arange(2**16, dtype=np.uint16).view(np.float16)
    assert np.all(kl_estimate(np.zeros_like(every[every < 11]), every[every < 11]) >= 0)


def test_the_kl_estimate_keeps_its_digits_near_zero_and_no_difference_has_no_gradient():
    small = np.array([1e-4, -1e-5])
    np.testing.assert_allclose(kl_estimate(np.zeros(2), small), small**2 / 2, rtol=1e-4)  # the next term is d³/6
    assert not np.any(ml.grad(lambda p: kl_estimate(p, np.log([0.3, 0.7])).sum())(np.log([0.3, 0.7])))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64, np.int8, np.int64])
def test_labels_of_any_integer_tokens_are_signed(dtype):
    tokens = np.array([[5, 6, 7, 8]], dtype)
    np.testing.assert_array_equal(completion_labels(tokens, [2], ignore_index=-200), [[-200, -200, 7, 8]])
    assert completion_labels(tokens, [2]).dtype == np.int64


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_optimal_policy_takes_distributions_of_any_dtype(dtype):
    reference = ml.softmax(rng.normal(size=(5, 50)).astype(dtype))
    policy = kl_optimal_policy(reference, rng.normal(size=(5, 50)).astype(dtype), beta=0.5)
    assert policy.dtype == dtype
    assert ml.probability.is_distribution(policy)


def test_an_outcome_that_the_reference_rules_out_stays_ruled_out():
    assert kl_optimal_policy([0.5, 0.5, 0.0], [0.0, 0.0, 1e6], beta=1.0).tolist() == [0.5, 0.5, 0.0]


def test_lists_are_taken_as_arrays():
    assert completion_log_probabilities([[[0.0, 0.0], [0.0, 0.0]]], [[0, 1]]) == pytest.approx(-np.log(2))
    assert grpo_loss([0, -1], [0, -1], [0, -1], [1, 1]) == -1
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


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: clipped_surrogate([1.0], [1.0, 2.0]), ml.ShapeError, r"one shape, got \(1,\) and \(2,\)"),
        (lambda: kl_optimal_policy([0.5, 0.6], [1.0, 2.0], beta=1), ValueError, "distribution"),
        (lambda: group_advantages([1.0]), ml.ShapeError, "two answers"),
        (lambda: kl_estimate(np.zeros((5, 3)), np.zeros(3)), ml.ShapeError, r"\(5, 3\) and \(3,\)"),
        (lambda: kl_estimate([-800.0], [0.0]), OverflowError, r"e\^800 is more than float64"),
        (lambda: kl_estimate(np.float32([-90]), np.float32([0])), OverflowError, r"e\^90 is more than float32"),
        (lambda: kl_estimate([-np.inf], [0.0]), OverflowError, r"e\^inf"),
        (lambda: grpo_loss([0.0], [-800.0], [0.0], [1.0]), OverflowError, "exp"),
        (lambda: completion_labels([[1, 2]], [3]), ValueError, "from 0 to 2"),
        (lambda: completion_labels([[1, 2]], [0.5]), ValueError, "from 0 to 2"),
        (lambda: completion_labels([[1.5, 2]], [1]), TypeError, "integer token ids, got float64"),
        (lambda: completion_log_probabilities(np.zeros((1, 2, 4)), [[1, 4]]), ValueError, "labels from 0 to 3.*got 4"),
        (lambda: completion_log_probabilities(np.zeros((1, 2, 4)), [[1, -1]]), ValueError, "from 0 to 3.*got -1"),
        (lambda: completion_log_probabilities(np.zeros((1, 2, 4)), [[1.0, 1.0]]), TypeError, "integer labels"),
        (lambda: lora_adapters({"key": np.eye(2)}, ["query"], 1, rng), ValueError, "no matrix called query"),
        (lambda: lora_adapters({"gain": np.ones(2)}, ["gain"], 1, rng), ValueError, "no matrix called gain"),
        (lambda: with_adapters({"key": np.eye(2)}, {"query": {"A": 1.0, "B": 1.0}}), ml.ShapeError, "query"),
    ],
)
def test_what_cannot_be_right_is_refused_in_words(call, error, words):
    with pytest.raises(error, match=words):
        call()
