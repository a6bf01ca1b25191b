"""Chapter 15 from end to end on a tiny transformer: shown, compared, rewarded, each time with what it should raise.

Prompts are three tokens, completions three more. The examples to imitate repeat the prompt backwards; the people who
compare like the token 5, and so does the reward.
"""

import numpy as np
import pytest

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
    kl_estimate,
    lora_adapters,
    with_adapters,
)
from mathllm.interpretability import replace_with
from mathllm.transformer import record_to

pytestmark = pytest.mark.slow

V, PROMPT, LENGTH, LIKED = 8, 3, 6, 5
MODEL = ml.Transformer(ml.llama_config(vocabulary=V, width=16, layers=1, heads=2, hidden=32, context=LENGTH))


def prompts(count, rng):
    return rng.integers(0, V, size=(count, PROMPT))


def trained(loss, params, steps, learning_rate, *batch):
    """Adam on loss(params, …); a batch may be a function that draws one."""
    state = ml.adam_init(params)
    for _ in range(steps):
        arguments = [part() if callable(part) else part for part in batch]
        params, state = ml.adam_step(params, ml.grad(loss)(params, *arguments), state, learning_rate=learning_rate)
    return params


def sampled(params, count, rng):
    return ml.generate(MODEL, params, prompts(count, rng), max_new_tokens=LENGTH - PROMPT, rng=rng)


def reward(tokens):
    return (tokens[:, PROMPT:] == LIKED).sum(axis=1).astype(float)


def log_p(params, tokens):
    """ln π of each token of the completions, (B, LENGTH − PROMPT)."""
    rows, places = np.indices(tokens[:, PROMPT:].shape)
    return ml.log_softmax(MODEL(params, tokens)[:, PROMPT - 1 : -1])[rows, places, tokens[:, PROMPT:]]


def whole_log_p(params, tokens):
    return completion_log_probabilities(MODEL(params, tokens), completion_labels(tokens, [PROMPT] * len(tokens)))


def examples(count, rng):
    start = prompts(count, rng)
    return np.concatenate([start, start[:, ::-1]], axis=1)


def sft_loss(params, tokens):
    return MODEL.loss(params, tokens, completion_labels(tokens, [PROMPT] * len(tokens)))


@pytest.fixture(scope="module")
def fine_tuned():
    rng = np.random.default_rng(0)
    start = MODEL.init(rng)
    return start, trained(sft_loss, start, 400, 0.01, lambda: examples(32, rng))


@pytest.fixture(scope="module")
def preferences(fine_tuned):
    """Pairs of completions of the same prompt, and which of the two a Bradley–Terry judge prefers."""
    rng = np.random.default_rng(1)
    start = prompts(2000, rng)
    first, second = (
        ml.generate(MODEL, fine_tuned[1], start, max_new_tokens=LENGTH - PROMPT, temperature=1.5, rng=rng)
        for _ in range(2)
    )
    likes_first = rng.uniform(size=2000) < ml.sigmoid(3 * (reward(first) - reward(second)))
    chosen, rejected = (np.where(likes_first[:, None] == won, first, second) for won in (True, False))
    different = reward(first) != reward(second)
    return chosen[different], rejected[different]


def test_fine_tuning_raises_the_probability_of_the_examples(fine_tuned):
    start, tuned = fine_tuned
    unseen = examples(200, np.random.default_rng(9))
    assert np.exp(whole_log_p(start, unseen)).mean() < 1e-2  # about 8⁻³
    assert np.exp(whole_log_p(tuned, unseen)).mean() > 0.1
    assert sft_loss(tuned, unseen) < 0.6 * sft_loss(start, unseen)


def test_a_reward_model_learns_from_comparisons_what_the_judge_likes(fine_tuned, preferences):
    chosen, rejected = preferences
    half = len(chosen) // 2

    def rewards(params, tokens):
        return MODEL.hidden(params["body"], tokens)[:, -1] @ params["head"]

    def loss(params, chosen, rejected):
        return bradley_terry_loss(rewards(params, chosen), rewards(params, rejected))

    params = {"body": fine_tuned[1], "head": np.zeros(MODEL.config.width)}
    assert loss(params, chosen, rejected) == pytest.approx(np.log(2))
    params = trained(loss, params, 60, 0.005, chosen[:half], rejected[:half])
    unseen = chosen[half:], rejected[half:]
    assert loss(params, *unseen) < 0.75 * np.log(2)
    assert np.mean(rewards(params, unseen[0]) > rewards(params, unseen[1])) > 0.85
    new = sampled(fine_tuned[1], 300, np.random.default_rng(5))
    assert np.corrcoef(rewards(params, new), reward(new))[0, 1] > 0.8  # what it learned is the judge's taste


def test_dpo_raises_the_chosen_over_the_rejected_and_with_them_the_reward(fine_tuned, preferences):
    reference = fine_tuned[1]
    chosen, rejected = (tokens[:300] for tokens in preferences)
    half = 150
    at_reference = [whole_log_p(reference, tokens) for tokens in (chosen, rejected)]

    def loss(params, part):
        policy = [whole_log_p(params, tokens[part]) for tokens in (chosen, rejected)]
        return dpo_loss(*policy, *(log_probability[part] for log_probability in at_reference), beta=0.3)

    seen, unseen = slice(half), slice(half, None)
    assert loss(reference, unseen) == pytest.approx(np.log(2))
    before = ml.tree_map(np.copy, reference)
    policy = trained(loss, reference, 60, 0.003, seen)
    assert loss(policy, unseen) < 0.75 * np.log(2)
    margin = [whole_log_p(policy, tokens) - old for tokens, old in zip((chosen, rejected), at_reference, strict=True)]
    assert np.mean((margin[0] - margin[1])[unseen] > 0) > 0.85
    rng = np.random.default_rng(2)
    assert reward(sampled(policy, 400, rng)).mean() > reward(sampled(reference, 400, rng)).mean() + 0.5
    assert all(map(np.array_equal, ml.tree_leaves(reference), ml.tree_leaves(before)))


def ppo(reference, price, rounds=12, epochs=4, size=128, epsilon=0.2):
    """Proximal policy optimisation: reward at the end, a price per token for leaving the reference, a value for GAE."""
    rng = np.random.default_rng(3)
    params = {"policy": reference, "value": np.zeros(MODEL.config.width)}
    state, ratios = ml.adam_init(params), []

    def values(params, tokens):
        return MODEL.hidden(params["policy"], tokens)[:, PROMPT - 1 : -1] @ params["value"]

    def loss(params, tokens, old, advantage, target):
        ratio = ml.exp(log_p(params["policy"], tokens) - old)
        ratios.append(ratio.value)
        return ((values(params, tokens) - target) ** 2).mean() * 0.5 - clipped_surrogate(
            ratio, advantage, epsilon=epsilon
        ).mean()

    for _ in range(rounds):
        tokens = sampled(params["policy"], size, rng)
        old = log_p(params["policy"], tokens)
        rewards = -price * (old - log_p(reference, tokens))
        rewards[:, -1] += reward(tokens)
        expected = values(params, tokens)
        advantage = advantages(rewards, expected)
        target = advantage + expected
        advantage = (advantage - advantage.mean()) / advantage.std()
        for _ in range(epochs):
            gradient = ml.grad(loss)(params, tokens, old, advantage, target)
            params, state = ml.adam_step(params, gradient, state, learning_rate=0.005)
    return params["policy"], ratios[::epochs], ratios[epochs - 1 :: epochs]


def divergence(policy, reference, count=400):
    tokens = sampled(policy, count, np.random.default_rng(4))
    return kl_estimate(log_p(policy, tokens), log_p(reference, tokens)).sum(axis=1).mean()


def test_ppo_raises_the_reward_in_small_steps_and_a_price_keeps_it_near_the_reference(fine_tuned):
    reference = fine_tuned[1]
    rng = np.random.default_rng(6)
    before = reward(sampled(reference, 400, rng)).mean()
    free, first, last = ppo(reference, price=0.0)
    held, _, _ = ppo(reference, price=0.5)
    for ratio in first:
        np.testing.assert_allclose(ratio, 1, atol=1e-9)  # nothing has moved yet
    assert np.mean([np.mean(np.abs(ratio - 1) < 0.3) for ratio in last]) > 0.8  # clipping: few leave 1 ± ε by far
    assert reward(sampled(free, 400, rng)).mean() > before + 1
    assert reward(sampled(held, 400, rng)).mean() > before + 0.2
    assert divergence(held, reference) < divergence(free, reference) / 2


def test_grpo_raises_the_reward_without_a_value_model(fine_tuned):
    reference = policy = fine_tuned[1]
    rng, state, group = np.random.default_rng(7), ml.adam_init(policy), 8

    def loss(params, tokens, old, advantage):
        flat = [(log_p(params, tokens)).reshape(-1), old.reshape(-1), log_p(reference, tokens).reshape(-1)]
        return grpo_loss(*flat, advantage, beta=0.04)

    for _ in range(12):
        start = np.repeat(prompts(16, rng), group, axis=0)
        tokens = ml.generate(MODEL, policy, start, max_new_tokens=LENGTH - PROMPT, rng=rng)
        advantage = group_advantages(reward(tokens).reshape(-1, group)).reshape(-1)
        old, advantage = log_p(policy, tokens), np.repeat(advantage, LENGTH - PROMPT)
        for _ in range(3):
            gradient = ml.grad(loss)(policy, tokens, old, advantage)
            policy, state = ml.adam_step(policy, gradient, state, learning_rate=0.005)
    assert reward(sampled(policy, 400, rng)).mean() > reward(sampled(reference, 400, rng)).mean() + 1


def test_lora_learns_a_new_task_with_a_frozen_model_and_merges_into_plain_weights(fine_tuned):
    frozen, rng = fine_tuned[1], np.random.default_rng(8)
    names, scale = ["query", "value", "up", "down"], 2.0

    def copied(count):
        start = prompts(count, rng)
        return np.concatenate([start, start], axis=1)  # the new task: the prompt again, forwards

    def loss(adapters, tokens):
        return sft_loss(with_adapters(frozen, adapters, scale), tokens)

    before, unseen = ml.tree_map(np.copy, frozen), copied(200)
    adapters = lora_adapters(frozen, names, 4, rng)
    assert loss(adapters, unseen) == sft_loss(frozen, unseen)
    adapters = trained(loss, adapters, 80, 0.01, lambda: copied(32))
    assert loss(adapters, unseen) < 0.6 * sft_loss(frozen, unseen)
    assert ml.count_parameters(adapters) < ml.count_parameters(frozen) / 2
    assert all(map(np.array_equal, ml.tree_leaves(frozen), ml.tree_leaves(before)))

    merged = with_adapters(frozen, adapters, scale)
    assert ml.count_parameters(merged) == ml.count_parameters(frozen)
    block, old = merged["blocks"][0], frozen["blocks"][0]
    for part, name in [("attention", "query"), ("attention", "value"), ("feed_forward", "up")]:
        pair = adapters["blocks"][0][part][name]
        np.testing.assert_array_equal(block[part][name], ml.lora_merge(old[part][name], **pair, scale=scale))
    logits = MODEL(merged, unseen, tap=record_to(record := {}))
    norm = ml.rms_norm(record["embeddings"], old["attention_norm"]["gain"], epsilon=MODEL.config.norm_epsilon)
    pair = adapters["blocks"][0]["attention"]["value"]
    beside = ml.matrices.lora_linear(
        norm, old["attention"]["value"], pair["A"], pair["B"], scale=scale
    )  # x W + s (x A) B
    np.testing.assert_allclose(ml.split_heads(beside, 2), record["blocks.0.attention.value"], atol=1e-12)
    whole = ml.split_heads(beside, 2)
    weights = record["blocks.0.attention.weights"]
    through = ml.merge_heads(weights @ whole) @ old["attention"]["output"]
    patched = MODEL(merged, unseen, tap=replace_with({"blocks.0.attention.output": through}))
    np.testing.assert_allclose(patched, logits, atol=1e-12)
