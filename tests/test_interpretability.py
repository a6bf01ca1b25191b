"""Chapter 16: the stream as a sum, heads, probes, patches, superposition, circuits, dictionaries."""

import numpy as np
import pytest

import mathllm as ml
from mathllm.interpretability import (
    control_labels,
    direction_correlations,
    feature_dimensions,
    head_contributions,
    induction_model,
    induction_score,
    logit_attribution,
    logit_lens,
    neuron_correlations,
    patch_effect,
    patch_map,
    previous_token_score,
    probe_accuracy,
    random_directions,
    recovery,
    repeated_tokens,
    replace_with,
    residual_contributions,
    selectivity,
    simulate_read_out,
    sparse_autoencoder_init,
    sparse_autoencoder_loss,
    sparse_codes,
    sparse_decoding_limit,
    sparse_features,
    successor_texts,
    superposition_loss,
    train_induction_model,
    train_probe,
    train_sparse_autoencoder,
    train_superposition,
    value_weighted_attention,
    welch_bound,
    without_heads,
)
from mathllm.transformer import record_to

TOLERANCE = 1e-6  # central differences in float64 are good to about 1e-10; a wrong formula is off by percents
SIZES = {"vocabulary": 11, "width": 8, "layers": 2, "heads": 4, "hidden": 12, "context": 16}
MODELS = {
    "gpt2": ml.gpt2_config(**SIZES),
    "llama, grouped": ml.llama_config(**SIZES, kv_heads=2),
    "mixtral": ml.transformer.mixtral_config(**SIZES | {"kv_heads": 2, "experts": 4}),
    "translator": ml.Config(**SIZES, encoder_layers=1),
    "t5": ml.transformer.t5_config(**SIZES),
}
DECODERS = ["gpt2", "llama, grouped", "mixtral"]
TOKENS = np.array([[1, 2, 3, 4, 1], [7, 0, 7, 0, 10]])


def run(name, seed=0):
    """Model, parameters large enough that every part matters, the record of a run, and its logits."""
    rng = np.random.default_rng(seed)
    model = ml.Transformer(MODELS[name])
    params = ml.tree_map(lambda w: w + 0.3 * rng.normal(size=w.shape), model.init(rng))
    options = {"source": TOKENS} if model.config.encoder_layers else {}
    record = {}
    return model, params, record, model(params, TOKENS, tap=record_to(record), **options)


# residual stream


@pytest.mark.parametrize("name", MODELS)
def test_the_stream_is_the_sum_of_what_was_written(name):
    _, _, record, _ = run(name)
    contributions = residual_contributions(record)
    assert len(contributions) == 1 + 2 * (2 + (name not in DECODERS))
    np.testing.assert_allclose(sum(contributions.values()), record["blocks.1.output"], atol=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_attributions_add_up_to_the_logits(name):
    model, params, record, logits = run(name)
    parts = logit_attribution(model, params, record)
    np.testing.assert_allclose(sum(parts.values()), logits, atol=1e-12)  # rounding of a sum of seven
    assert ("bias" in parts) == (model.config.norm == "layer")
    few = logit_attribution(model, params, record, tokens=[3, 5])
    np.testing.assert_allclose(few["embeddings"], parts["embeddings"][..., [3, 5]])


def test_an_attribution_is_the_change_of_the_logits_while_the_norm_keeps_its_scale():
    model, params, record, logits = run("llama, grouped")
    name = "blocks.0.feed_forward"
    stream, write = record["blocks.1.output"], record[f"{name}.output"]
    scale = 1 / np.sqrt(np.mean(stream**2, axis=-1, keepdims=True) + model.config.norm_epsilon)
    without = (scale * (stream - write) * params["final_norm"]["gain"]) @ params["unembedding"]
    np.testing.assert_allclose(logit_attribution(model, params, record)[name], logits - without, atol=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_the_lens_ends_with_the_logits_and_begins_with_the_embeddings(name):
    model, params, record, logits = run(name)
    lens = logit_lens(model, params, record)
    assert lens.shape == (3, *logits.shape)
    np.testing.assert_allclose(lens[-1], logits, atol=1e-12)
    cut = {**params, "blocks": []}
    empty = ml.Transformer(model.config)
    options = {"source": TOKENS} if model.config.encoder_layers else {}
    np.testing.assert_allclose(lens[0], empty(cut, TOKENS, **options), atol=1e-12)


def test_lens_and_attributions_keep_the_dtype():
    model, params, record, _ = run("gpt2")
    params = ml.tree_map(np.float32, params)
    model(params, TOKENS, tap=record_to(record := {}))
    assert logit_lens(model, params, record).dtype == np.float32
    assert {part.dtype for part in logit_attribution(model, params, record).values()} == {np.dtype(np.float32)}


def test_the_lens_reads_a_post_norm_model_too_but_its_stream_is_no_sum():
    model = ml.Transformer(ml.transformer.bert_config(**SIZES))
    params, record = model.init(np.random.default_rng(0)), {}
    logits = model(params, TOKENS, tap=record_to(record))
    np.testing.assert_allclose(logit_lens(model, params, record)[-1], logits, atol=1e-12)
    with pytest.raises(ValueError, match="pre-norm"):
        logit_attribution(model, params, record)


# attention


def test_a_high_weight_on_a_value_near_zero_moves_nothing():
    """The document's example: the head looks hardest at the token that gives it least."""
    weights, value = np.array([[[0.9, 0.1]]]), np.array([[[1e-3, 0.0], [0.0, 5.0]]])
    weighted = value_weighted_attention(weights, value)
    assert weights.argmax(axis=-1).item() == 0
    assert weighted.argmax(axis=-1).item() == 1


@pytest.mark.parametrize("name", ["gpt2", "llama, grouped"])
def test_the_heads_shares_add_up_to_the_output_of_the_sublayer(name):
    _, params, record, _ = run(name)
    part = params["blocks"][1]["attention"]
    weights, value = (record[f"blocks.1.attention.{what}"] for what in ("weights", "value"))
    total = head_contributions(weights, value, part["output"]).sum(axis=-3) + part.get("output_bias", 0)
    np.testing.assert_allclose(total, record["blocks.1.attention.output"], atol=1e-12)


def test_weighted_attention_through_the_output_is_the_length_of_each_position_s_part():
    _, params, record, _ = run("llama, grouped")
    output = params["blocks"][0]["attention"]["output"]
    weights, value = (record[f"blocks.0.attention.{what}"] for what in ("weights", "value"))
    weighted = value_weighted_attention(weights, value, output)
    one = np.zeros_like(weights)
    one[..., 3, 1] = weights[..., 3, 1]
    alone = head_contributions(one, value, output)[..., 3, :]  # what position 1 brings to position 3
    np.testing.assert_allclose(weighted[..., 3, 1], np.linalg.norm(alone, axis=-1))


def test_lists_are_taken_as_arrays():
    weights, value, output = [[[1.0, 0.0], [0.5, 0.5]]], [[[1.0], [2.0]]], [[3.0, 4.0]]
    np.testing.assert_array_equal(head_contributions(weights, value, output), [[[3.0, 4.0], [4.5, 6.0]]])
    np.testing.assert_array_equal(value_weighted_attention(weights, value, output), [[[5.0, 0.0], [2.5, 5.0]]])
    assert previous_token_score([weights]) == induction_score([weights], 1) == [0.5]
    dictionary = {"encoder": np.eye(2), "encoder_bias": np.zeros(2), "decoder": np.eye(2), "decoder_bias": np.zeros(2)}
    assert sparse_codes(dictionary, [2, -3]).tolist() == [2, 0]
    assert sparse_autoencoder_loss(dictionary, [[2, -3]]) == pytest.approx(9.2)


# probes


def words_with_a_part_of_speech(rng, examples=1200, words=300, width=24):
    """Vectors of words, each with a direction of its own and, weakly, one that says whether it is a verb."""
    tokens = rng.integers(0, words, size=examples)
    verb = rng.integers(0, 2, size=words)
    table = rng.normal(size=(words, width)) + np.outer(2 * verb - 1, 2 * ml.normalize(rng.normal(size=width)))
    return tokens, table[tokens] + 0.1 * rng.normal(size=(examples, width)), verb[tokens]


def test_a_probe_finds_what_is_there_and_the_control_task_shows_what_it_memorised():
    rng = np.random.default_rng(0)
    tokens, x, verb = words_with_a_part_of_speech(rng)
    half = 600
    nonsense = control_labels(tokens, 2, rng)
    assert all(len(set(nonsense[tokens == word])) == 1 for word in tokens)  # one label for a word, wherever it stands
    found, control = (
        probe_accuracy(train_probe(x[:half], labels[:half]), x[half:], labels[half:]) for labels in (verb, nonsense)
    )
    assert found > 0.9
    assert control < 0.7  # a few words of the second half are known from the first
    assert selectivity(found, control) > 0.25


def test_layers_are_told_apart_by_how_readable_they_are():
    """The exercise: much better at a layer where the same information stands in a direction of its own."""
    rng = np.random.default_rng(1)
    early = rng.normal(size=(1000, 8))
    verb = (early[:, 0] * early[:, 1] > 0).astype(int)  # there, but not linear
    later = np.c_[early, (2 * verb - 1) + 0.3 * rng.normal(size=1000)]
    accuracies = [probe_accuracy(train_probe(x[:500], verb[:500]), x[500:], verb[500:]) for x in (early, later)]
    assert accuracies[0] < 0.6
    assert accuracies[1] > 0.95


def test_a_probe_does_not_care_in_what_unit_the_activations_are():
    rng = np.random.default_rng(2)
    _, x, verb = words_with_a_part_of_speech(rng, examples=200)
    small, large = (train_probe(scale * x, verb, steps=50) for scale in (1e-4, 1e4))
    np.testing.assert_allclose(1e-4 * small["weight"], 1e4 * large["weight"], rtol=1e-9)


def test_probes_count_equal_labels_and_classes_that_do_not_occur():
    probe = train_probe(np.ones((3, 2)), [1, 1, 1], classes=4, steps=5)
    assert probe["weight"].shape == (2, 4)
    assert probe_accuracy(probe, np.ones((1, 2)), [1]) == 1


# patching


def test_a_replacement_by_the_value_itself_changes_nothing_and_by_zero_removes_the_part():
    model, params, record, logits = run("gpt2")
    for name in record:
        np.testing.assert_array_equal(model(params, TOKENS, tap=replace_with({name: record[name]})), logits)
    ablated = replace_with({f"blocks.1.{part}.output": lambda x: 0 * x for part in ("attention", "feed_forward")})
    keep = record_to(again := {})
    without = model(params, TOKENS, tap=lambda name, value: keep(name, ablated(name, value)))
    np.testing.assert_array_equal(again["blocks.1.output"], record["blocks.0.output"])
    np.testing.assert_allclose(without, logit_lens(model, params, record)[1], atol=1e-12)


@pytest.mark.parametrize("name", DECODERS)
def test_the_whole_stream_of_the_clean_run_brings_back_the_whole_answer(name):
    model, params, _, _ = run(name)
    corrupted = TOKENS.copy()
    corrupted[:, 1] = 9
    metric = lambda logits: float(logits[:, -1, 2].mean() - logits[:, -1, 9].mean())  # noqa: E731
    names = ["embeddings", "blocks.0.output", "blocks.1.output", "final_norm"]
    effects = [patch_effect(model, params, TOKENS, corrupted, name, metric) for name in names]
    np.testing.assert_allclose(effects, 1, atol=1e-9)
    assert patch_effect(model, params, TOKENS, corrupted, "embeddings", metric, positions=[0]) == pytest.approx(0)
    assert patch_effect(model, params, TOKENS, corrupted, "embeddings", metric, positions=[1]) == pytest.approx(1)


def test_a_gradient_passes_through_a_replaced_run():
    model, params, record, _ = run("llama, grouped")
    steer = np.linspace(-1, 1, 8)
    loss = lambda p: model.loss(p, TOKENS, TOKENS, tap=replace_with({"blocks.0.output": lambda x: x + steer}))  # noqa: E731
    assert ml.check_gradient(loss, params, entries=30).error < TOLERANCE
    frozen = replace_with({"blocks.0.output": record["blocks.0.output"]})
    gradient = ml.grad(lambda p: model.loss(p, TOKENS, TOKENS, tap=frozen))(params)
    assert not gradient["blocks"][0]["attention"]["query"].any()
    assert gradient["blocks"][1]["attention"]["query"].any()


def test_patching_the_induction_circuit_shows_who_does_what():
    """[A][B] … [A]: only the previous-token head at B's position and the induction head at the end can bring B back."""
    model, params = induction_model(8, 8)
    clean, corrupted = [[5, 2, 3, 1, 5]], [[4, 2, 3, 1, 5]]  # the corrupted text has no earlier 5
    metric = lambda logits: float(logits[0, -1, 2] - logits[0, -1, 3])  # noqa: E731
    effect = {
        (layer, position): patch_effect(
            model, params, clean, corrupted, f"blocks.{layer}.attention.output", metric, [position]
        )
        for layer in (0, 1)
        for position in range(5)
    }
    assert {place for place, size in effect.items() if abs(size) > 1e-9} == {(0, 1), (1, 4)}
    assert effect[0, 1] == pytest.approx(1)
    assert effect[1, 4] == pytest.approx(1)


@pytest.mark.parametrize("name", DECODERS)
def test_a_map_holds_the_effects_of_all_positions_and_nothing_before_the_first_difference(name):
    model, params, _, _ = run(name)
    clean, corrupted = TOKENS[:1], TOKENS[:1].copy()
    corrupted[0, 2] = 9
    metric = lambda logits: float(logits[0, -1, 2] - logits[0, -1, 9])  # noqa: E731
    names = ["blocks.0.output", "blocks.1.attention.output"]
    effects = patch_map(model, params, clean, corrupted, names, metric)
    model(params, clean, tap=record_to(record := {}))
    best, worst = (metric(model(params, tokens)) for tokens in (clean, corrupted))

    def by_hand(part, t):
        def tap(name, x):
            return np.where(np.arange(5)[:, None] == t, record[part], x) if name == part else x

        return (metric(model(params, corrupted, tap=tap)) - worst) / (best - worst)

    for row, part in zip(effects, names, strict=True):
        alone = [patch_effect(model, params, clean, corrupted, part, metric, [t]) for t in range(5)]
        np.testing.assert_allclose(row, alone, atol=1e-12)
        np.testing.assert_allclose(row, [by_hand(part, t) for t in range(5)], atol=1e-9)
    assert not effects[:, :2].any()


@pytest.mark.parametrize("name", ["gpt2", "llama, grouped"])
def test_a_silenced_head_is_the_run_without_its_share(name):
    model, params, record, _ = run(name)
    silenced = without_heads(model, params, [(1, 0), (1, 2)])
    weights, value = (record[f"blocks.1.attention.{what}"] for what in ("weights", "value"))
    shares = head_contributions(weights, value, params["blocks"][1]["attention"]["output"])
    cut = {"blocks.1.attention.output": record["blocks.1.attention.output"] - shares[:, 0] - shares[:, 2]}
    np.testing.assert_allclose(model(silenced, TOKENS), model(params, TOKENS, tap=replace_with(cut)), atol=1e-12)
    assert silenced["blocks"][0] is params["blocks"][0]
    assert params["blocks"][1]["attention"]["output"][:2].all()


# superposition


def test_random_directions_overlap_as_the_formulas_say():
    rng = np.random.default_rng(0)
    directions = random_directions(3000, 256, rng)
    overlaps = directions @ directions.T
    np.testing.assert_allclose(np.diag(overlaps), 1)
    overlaps = np.abs(overlaps[~np.eye(3000, dtype=bool)])
    assert np.sqrt(np.mean(overlaps**2)) == pytest.approx(1 / np.sqrt(256), rel=0.01)
    largest = np.sqrt(4 * np.log(3000) / 256)
    assert welch_bound(3000, 256) < overlaps.max() < largest
    assert overlaps.max() > 0.85 * largest  # the formula is the leading term


def test_interference_grows_with_the_root_of_the_active_features():
    rng = np.random.default_rng(0)
    directions = random_directions(4000, 400, rng)
    for active in (4, 16, 64):
        spread, _ = simulate_read_out(directions, active, rng)
        assert spread == pytest.approx(np.sqrt(active / 400), rel=0.05)


def test_about_as_many_features_can_be_active_as_the_limit_says():
    """The exercise, simulated at a small size; the limit is a leading term, good to a factor of two."""
    rng = np.random.default_rng(0)
    features, d = 4000, 256
    limit = d / (8 * np.log(features))
    right = [simulate_read_out(random_directions(features, d, rng), int(k), rng)[1] for k in (limit / 2, 2 * limit)]
    assert right[1] < 0.5 < right[0]  # the fraction of the trials in which every feature is read rightly
    assert 2 * limit < np.sqrt(d) < sparse_decoding_limit(features, d)


@pytest.mark.slow
def test_the_toy_model_keeps_two_dense_features_and_all_five_sparse_ones():
    rng, importance = np.random.default_rng(0), 0.7 ** np.arange(5)
    dense = train_superposition(5, 2, 1.0, rng, importance=importance, steps=1000)
    lengths = np.linalg.norm(dense["weight"], axis=1)
    np.testing.assert_allclose(lengths, [1, 1, 0, 0, 0], atol=0.1)  # the two that matter most
    np.testing.assert_allclose(feature_dimensions(dense["weight"])[:2], 1, atol=0.05)
    sparse = train_superposition(5, 2, 0.05, rng, steps=1000)
    assert np.linalg.norm(sparse["weight"], axis=1).min() > 0.9
    np.testing.assert_allclose(feature_dimensions(sparse["weight"]), 2 / 5, atol=0.03)  # a pentagon
    angles = np.sort(np.arctan2(*sparse["weight"].T))
    np.testing.assert_allclose(np.diff(angles), 2 * np.pi / 5, atol=0.15)


# neurons


def test_a_feature_in_superposition_is_read_from_a_direction_and_not_from_a_neuron():
    rng = np.random.default_rng(0)
    features = sparse_features(4000, 30, 0.05, rng)
    activations = features @ random_directions(30, 30, rng)  # no axis is special
    best_neuron = np.abs(neuron_correlations(activations, features)).max(axis=1)
    np.testing.assert_allclose(direction_correlations(activations, features), 1, atol=1e-6)
    assert best_neuron.max() < 0.75
    followed = [np.sum(np.abs(neuron_correlations(x, features)) > 0.2, axis=0) for x in (activations, features)]
    assert followed[0].mean() > 5  # polysemantic
    assert followed[1].tolist() == [1] * 30  # monosemantic: each neuron is a feature


def test_a_neuron_that_never_changes_tells_nothing():
    correlations = neuron_correlations(np.full((4, 1), 1e4 / 3), np.arange(4.0)[:, None])
    assert correlations.tolist() == [[0]]


# induction heads


@pytest.mark.parametrize("vocabulary", [4, 9, 30])
def test_the_hand_built_heads_predict_what_came_after(vocabulary):
    model, params = induction_model(vocabulary, 24)
    tokens = np.random.default_rng(vocabulary).integers(0, vocabulary, size=(40, 24))
    logits = model(params, tokens)
    for text, scores in zip(tokens, logits, strict=True):
        for t in range(24):
            successors = [text[i] for i in range(1, t + 1) if text[i - 1] == text[t]]
            if successors:
                expected = np.bincount(successors, minlength=vocabulary)
                assert set(np.flatnonzero(np.isclose(scores[t], scores[t].max()))) == set(
                    np.flatnonzero(expected == expected.max())
                )


def test_their_attention_is_exact():
    model, params = induction_model(6, 12)
    tokens, record = repeated_tokens(5, 6, 6, np.random.default_rng(0)), {}
    probabilities = ml.softmax(model(params, tokens, tap=record_to(record)))
    weights = [record[f"blocks.{n}.attention.weights"] for n in (0, 1)]
    assert previous_token_score(weights[0]) == 1
    assert induction_score(weights[1], 6) == 1
    assert previous_token_score(weights[1]) < 0.3
    assert induction_score(weights[0], 6) == 0
    right = np.take_along_axis(probabilities[:, 6:-1], tokens[:, 7:, None], axis=-1)
    assert right.min() > 0.999


def test_logits_and_attributions_tell_that_the_second_head_answers():
    model, params = induction_model(6, 12)
    tokens, record = repeated_tokens(1, 6, 6, np.random.default_rng(1)), {}
    logits = model(params, tokens, tap=record_to(record))
    lens = logit_lens(model, params, record)
    assert not lens[:2].any()  # nothing is predicted before the second layer
    np.testing.assert_allclose(logit_attribution(model, params, record)["blocks.1.attention"], logits, atol=1e-9)


def test_the_weights_work_in_float32_too():
    model, params = induction_model(5, 8)
    params = ml.tree_map(lambda w: w.astype(np.float32), params)
    logits = model(params, [[3, 1, 4, 2, 3]])
    assert logits.dtype == np.float32
    assert logits[0, -1].argmax() == 1


def test_texts_follow_their_own_successors():
    texts = successor_texts(20, 30, 6, np.random.default_rng(0), noise=0.0)
    for text in texts:
        pairs = set(zip(text[:-1].tolist(), text[1:].tolist(), strict=True))
        assert len({first for first, _ in pairs}) == len(pairs)
    noisy = successor_texts(2000, 2, 6, np.random.default_rng(0), noise=1.0)
    counts = np.bincount(noisy[:, 0] * 6 + noisy[:, 1], minlength=36)
    assert counts.max() < 100 < 2 * counts.min() + 100  # 56 ± 7 each


@pytest.mark.nightly
def test_a_trained_model_finds_the_same_two_heads():
    model, params, history = train_induction_model(np.random.default_rng(0))
    _, first_loss, *before = history[0]
    _, last_loss, previous, found = history[-1]
    assert max(before) < 0.4
    assert min(previous, found) > 0.7
    assert last_loss < first_loss / 2
    tokens = repeated_tokens(50, 8, 8, np.random.default_rng(1))
    logits = model(params, tokens)
    assert np.mean(logits[:, 8:-1].argmax(axis=-1) == tokens[:, 9:]) > 0.9


# sparse autoencoder


def planted(rng, features=40, d=16, examples=4000):
    directions = random_directions(features, d, rng)
    return directions, sparse_features(examples, features, 0.05, rng) @ directions


@pytest.mark.nightly
def test_a_sparse_autoencoder_finds_the_planted_features():
    rng = np.random.default_rng(0)
    directions, x = planted(rng)
    params = train_sparse_autoencoder(x, 60, rng)
    np.testing.assert_allclose(np.linalg.norm(params["decoder"], axis=1), 1)
    found = recovery(directions, params["decoder"])
    assert found.mean() > 0.95
    assert np.mean(found > 0.9) > 0.9
    assert recovery(directions, random_directions(60, 16, rng)).mean() < 0.7  # what chance finds
    axes = np.concatenate([np.eye(16), -np.eye(16)])
    assert recovery(directions, axes).mean() < 0.7  # and what single neurons say
    assert sparse_autoencoder_loss(params, x) < 0.5 * np.mean(np.sum(x * x, axis=1))


def test_a_larger_penalty_makes_fewer_codes():
    rng = np.random.default_rng(0)
    _, x = planted(rng)
    counts = [
        np.mean(np.sum(sparse_codes(train_sparse_autoencoder(x, 40, rng, penalty=penalty, steps=300), x) > 0, axis=1))
        for penalty in (0.02, 0.5)
    ]
    assert counts[1] < counts[0] / 2


# gradients, dtypes, inputs, errors


def test_gradients_agree_with_central_differences():
    rng = np.random.default_rng(0)
    params = sparse_autoencoder_init(rng, 5, 9) | {"encoder_bias": rng.normal(size=9)}
    x = rng.normal(size=(7, 5))
    assert ml.check_gradient(sparse_autoencoder_loss, params, x).error < TOLERANCE
    toy = {"weight": rng.normal(size=(6, 3)), "bias": rng.normal(size=6)}
    x = rng.uniform(size=(8, 6))
    assert ml.check_gradient(lambda p: superposition_loss(p, x, np.arange(1.0, 7.0)), toy).error < TOLERANCE


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_dtype_is_kept(dtype):
    params = ml.tree_map(lambda w: w.astype(dtype), sparse_autoencoder_init(np.random.default_rng(0), 3, 4))
    x = np.ones((2, 3), dtype)
    assert sparse_codes(params, x).dtype == sparse_autoencoder_loss(params, x).dtype == dtype
    toy = {"weight": np.ones((3, 2), dtype), "bias": np.zeros(3, dtype)}
    assert superposition_loss(toy, x, np.ones(3)).dtype == dtype
    assert value_weighted_attention(np.ones((1, 2, 2), dtype), np.ones((1, 2, 3), dtype)).dtype == dtype


def test_large_activations_give_no_infinities():
    x = np.array([[1e4, -1e4, 0.0]])
    params = sparse_autoencoder_init(np.random.default_rng(0), 3, 4)
    assert np.isfinite(sparse_autoencoder_loss(params, x))
    probe = train_probe(np.concatenate([x, -x]), [0, 1], steps=20)
    assert np.all(np.isfinite(probe["weight"]))


def replaced(name, value):
    model, params, _, _ = run("gpt2")
    return model(params, TOKENS, tap=replace_with({name: value}))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: residual_contributions({}), ValueError, "record of a run"),
        (lambda: logit_lens(None, {}, {}), ValueError, "record of a run"),
        (lambda: replaced("blocks.0.atention.output", 0), ValueError, "did you mean blocks.0.attention"),
        (lambda: replaced("blocks.2.output", 0), ValueError, "no intermediate 'blocks.2.output'; did you mean blocks"),
        (lambda: replaced("blocks.1.output", np.ones(3)), ml.ShapeError, r"\(2, 5, 8\).*\(3,\)"),
        (
            lambda: patch_effect(*run("gpt2")[:2], TOKENS, TOKENS, "embeddings", lambda z: z[0, 0, 0]),
            ValueError, "different values of the metric",
        ),
        (lambda: without_heads(*run("gpt2")[:2], [(2, 0)]), IndexError, r"2 blocks of 4 heads, got \(2, 0\)"),
        (lambda: value_weighted_attention(np.ones((3, 2, 2)), np.ones((2, 2, 4))), ml.ShapeError, "3 heads and 2"),
        (
            lambda: value_weighted_attention(np.ones((1, 2, 2)), np.ones((1, 2, 4)), np.ones((3, 2))),
            ml.ShapeError, "1 · 4 rows",
        ),
        (lambda: logit_attribution(*run("gpt2")[:3], tokens=[-1]), ValueError, "ids from 0 to 10, got -1"),
        (lambda: logit_attribution(*run("gpt2")[:3], tokens=[11]), ValueError, "ids from 0 to 10, got 11"),
        (lambda: train_probe(np.ones((2, 3)), [0, 2], classes=2), ValueError, r"largest_label in \[0, 1\], got 2"),
        (lambda: train_probe(np.ones((1, 3)), [0.5]), TypeError, "whole numbers"),
        (lambda: welch_bound(2, 0), ValueError, r"d in \[1, ∞\), got 0"),
        (lambda: sparse_decoding_limit(10, 8), ValueError, r"d in \[1, 7.357.*got 8"),
        (lambda: simulate_read_out(np.eye(3), 3, None), ValueError, r"active in \[1, 2\], got 3"),
        (lambda: direction_correlations(np.ones((1, 1)), np.ones((1, 1))), ml.ShapeError, "two examples"),
        (lambda: repeated_tokens(1, 5, 4, None), ValueError, r"period in \[1, 4\], got 5"),
        (lambda: induction_score(np.ones((1, 1, 4, 4)), 4), ValueError, r"period in \[1, 3\], got 4"),
        (lambda: previous_token_score(np.ones((1, 1, 1, 1))), ValueError, r"tokens in \[2, ∞\), got 1"),
        (lambda: direction_correlations([[1.0], [np.nan]], [[1.0], [2.0]]), ValueError, r"activations in.* got nan"),
        (lambda: neuron_correlations([[1.0], [2.0]], [[1.0], [np.inf]]), ValueError, r"features in.* got inf"),
    ],
)  # fmt: skip
def test_what_cannot_be_right_is_refused_in_words(call, error, words):
    with pytest.raises(error, match=words):
        call()
