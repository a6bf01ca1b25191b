"""Chapter 16: the stream as a sum, heads, probes, patches, superposition, circuits, dictionaries."""

import itertools

import numpy as np
import pytest
from refusing import refusing
from test_inference import SIZES, model_of

import mathllm as ml
from mathllm import interpretability as interp
from mathllm.transformer import record_to

TOLERANCE = 1e-6  # central differences in float64 are good to about 1e-10; a wrong formula is off by percents
MODELS = ["gpt2", "llama, grouped and tied", "mixtral", "translator", "t5"]
DECODERS = MODELS[:3]
TOKENS = np.array([[1, 2, 3, 4, 1], [7, 0, 7, 0, 10]])


def run(name):
    """Model, parameters, the record of a run, and its logits."""
    (model, params, options), record = model_of(name), {}
    return model, params, record, model(params, TOKENS, tap=record_to(record), **{name: TOKENS for name in options})


@pytest.mark.parametrize("name", MODELS)
def test_the_stream_is_the_sum_of_what_was_written_and_the_logits_that_of_the_attributions(name):
    model, params, record, logits = run(name)
    contributions = interp.residual_contributions(record)
    assert len(contributions) == 1 + 2 * (2 + (name not in DECODERS))
    np.testing.assert_allclose(sum(contributions.values()), record["blocks.1.output"], atol=1e-12)
    parts = interp.logit_attribution(model, params, record)
    np.testing.assert_allclose(sum(parts.values()), logits, atol=1e-12)  # rounding of a sum of seven
    assert ("bias" in parts) == (model.config.norm == "layer")
    few = interp.logit_attribution(model, params, record, tokens=[3, 5])
    np.testing.assert_allclose(few["embeddings"], parts["embeddings"][..., [3, 5]])
    one = interp.logit_attribution(model, params, record, tokens=5)
    np.testing.assert_allclose(one["embeddings"], parts["embeddings"][..., [5]])


def test_an_attribution_is_the_change_of_the_logits_while_the_norm_keeps_its_scale():
    model, params, record, logits = run("llama")
    name = "blocks.0.feed_forward"
    stream, write = record["blocks.1.output"], record[f"{name}.output"]
    scale = 1 / np.sqrt(np.mean(stream**2, axis=-1, keepdims=True) + model.config.norm_epsilon)
    without = (scale * (stream - write) * params["final_norm"]["gain"]) @ params["unembedding"]
    np.testing.assert_allclose(interp.logit_attribution(model, params, record)[name], logits - without, atol=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_the_lens_ends_with_the_logits_and_begins_with_the_embeddings(name):
    model, params, record, logits = run(name)
    lens = interp.logit_lens(model, params, record)
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
    assert interp.logit_lens(model, params, record).dtype == np.float32
    assert {part.dtype for part in interp.logit_attribution(model, params, record).values()} == {np.dtype(np.float32)}


def test_the_lens_reads_a_post_norm_model_too_but_its_stream_is_no_sum():
    model = ml.Transformer(ml.transformer.bert_config(**SIZES))
    params, record = model.init(np.random.default_rng(0)), {}
    logits = model(params, TOKENS, tap=record_to(record))
    np.testing.assert_allclose(interp.logit_lens(model, params, record)[-1], logits, atol=1e-12)
    with pytest.raises(ValueError, match="pre-norm"):
        interp.logit_attribution(model, params, record)


def test_a_probe_does_not_care_in_what_unit_the_activations_are():
    x = np.random.default_rng(2).normal(size=(200, 24))
    small, large = (interp.train_probe(scale * x, (x[:, 0] > 0).astype(int), steps=50) for scale in (1e-4, 1e4))
    np.testing.assert_allclose(1e-4 * small["weight"], 1e4 * large["weight"], rtol=1e-9)


def test_a_larger_penalty_makes_the_weights_of_a_probe_smaller():
    x, labels = np.array([[-2.0], [-1.0], [1.0], [2.0]]), [0, 0, 1, 1]
    free, small = (interp.train_probe(x, labels, l2=l2)["weight"] for l2 in (0.0, 0.1))
    assert np.abs(small).max() < 0.5 * np.abs(free).max()


def test_probes_count_equal_labels_and_classes_that_do_not_occur_and_a_control_task_has_all():
    probe = interp.train_probe(np.ones((3, 2)), [1, 1, 1], classes=4, steps=5)
    assert probe["weight"].shape == (2, 4)
    assert interp.probe_accuracy(probe, np.ones((1, 2)), [1]) == 1
    assert {*interp.control_labels(np.arange(99), 3, np.random.default_rng(0)).tolist()} == {0, 1, 2}


def test_a_replacement_by_the_value_itself_changes_nothing_and_by_zero_removes_the_part():
    model, params, record, logits = run("gpt2")
    for name in record:
        np.testing.assert_array_equal(model(params, TOKENS, tap=interp.replace_with({name: record[name]})), logits)
    ablated = interp.replace_with(
        {f"blocks.1.{part}.output": lambda x: 0 * x for part in ("attention", "feed_forward")}
    )
    keep = record_to(again := {})
    without = model(params, TOKENS, tap=lambda name, value: keep(name, ablated(name, value)))
    np.testing.assert_array_equal(again["blocks.1.output"], record["blocks.0.output"])
    np.testing.assert_allclose(without, interp.logit_lens(model, params, record)[1], atol=1e-12)


@pytest.mark.parametrize("name", DECODERS)
def test_the_whole_stream_of_the_clean_run_brings_back_the_whole_answer(name):
    model, params, _, _ = run(name)
    corrupted = TOKENS.copy()
    corrupted[:, 1] = 9
    metric = lambda logits: float(logits[:, -1, 2].mean() - logits[:, -1, 9].mean())  # noqa: E731
    names = ["embeddings", "blocks.0.output", "blocks.1.output", "final_norm"]
    effects = [interp.patch_effect(model, params, TOKENS, corrupted, name, metric) for name in names]
    np.testing.assert_allclose(effects, 1, atol=1e-9)
    for position, effect in ((0, 0), (1, 1)):
        alone = interp.patch_effect(model, params, TOKENS, corrupted, "embeddings", metric, positions=[position])
        assert alone == pytest.approx(effect)


def test_a_gradient_passes_through_a_replaced_run():
    model, params, record, _ = run("llama, grouped and tied")
    steer = np.linspace(-1, 1, 8)
    loss = lambda p: model.loss(p, TOKENS, TOKENS, tap=interp.replace_with({"blocks.0.output": lambda x: x + steer}))  # noqa: E731
    assert ml.check_gradient(loss, params, entries=30).error < TOLERANCE
    frozen = interp.replace_with({"blocks.0.output": record["blocks.0.output"]})
    gradient = ml.grad(lambda p: model.loss(p, TOKENS, TOKENS, tap=frozen))(params)
    assert not gradient["blocks"][0]["attention"]["query"].any()
    assert gradient["blocks"][1]["attention"]["query"].any()


@pytest.mark.parametrize("name", DECODERS)
def test_a_map_holds_the_effects_of_all_positions_and_nothing_before_the_first_difference(name):
    model, params, _, _ = run(name)
    clean, corrupted = TOKENS[:1], TOKENS[:1].copy()
    corrupted[0, 2] = 9
    metric = lambda logits: float(logits[0, -1, 2] - logits[0, -1, 9])  # noqa: E731
    names = ["blocks.0.output", "blocks.1.attention.output"]
    effects = interp.patch_map(model, params, clean, corrupted, names, metric)
    for row, part in zip(effects, names, strict=True):
        alone = [interp.patch_effect(model, params, clean, corrupted, part, metric, [t]) for t in range(5)]
        np.testing.assert_allclose(row, alone, atol=1e-12)
    assert not effects[:, :2].any()


@pytest.mark.parametrize("name", ["gpt2", "llama, grouped and tied"])
def test_a_silenced_head_is_the_run_without_its_share(name):
    model, params, record, _ = run(name)
    silenced = interp.without_heads(model, params, [(1, 0), (1, 2)])
    weights, value = (record[f"blocks.1.attention.{what}"] for what in ("weights", "value"))
    shares = interp.head_contributions(weights, value, params["blocks"][1]["attention"]["output"])
    cut = {"blocks.1.attention.output": record["blocks.1.attention.output"] - shares[:, 0] - shares[:, 2]}
    np.testing.assert_allclose(model(silenced, TOKENS), model(params, TOKENS, tap=interp.replace_with(cut)), atol=1e-12)
    assert silenced["blocks"][0] is params["blocks"][0]
    assert params["blocks"][1]["attention"]["output"][:2].all()


def test_a_neuron_that_never_changes_tells_nothing():
    correlations = interp.neuron_correlations(np.full((4, 1), 1e4 / 3), np.arange(4.0)[:, None])
    assert correlations.tolist() == [[0]]


@pytest.mark.parametrize("vocabulary", [4, 9, 30])
def test_the_hand_built_heads_predict_what_came_after(vocabulary):
    model, params = interp.induction_model(vocabulary, 24)
    tokens = np.random.default_rng(vocabulary).integers(0, vocabulary, size=(40, 24))
    logits = model(params, tokens)
    for text, scores in zip(tokens, logits, strict=True):
        for t in range(24):
            successors = [text[i] for i in range(1, t + 1) if text[i - 1] == text[t]]
            if successors:
                counts = np.bincount(successors, minlength=vocabulary)
                np.testing.assert_array_equal(np.isclose(scores[t], scores[t].max()), counts == counts.max())


def test_texts_follow_their_own_successors():
    for text in interp.successor_texts(20, 30, 6, np.random.default_rng(0), noise=0.0).tolist():
        pairs = set(itertools.pairwise(text))
        assert len({first for first, _ in pairs}) == len(pairs)
    noisy = interp.successor_texts(2000, 2, 6, np.random.default_rng(0), noise=1.0)
    counts = np.bincount(noisy[:, 0] * 6 + noisy[:, 1], minlength=36)
    assert counts.max() < 100 < 2 * counts.min() + 100  # 56 ± 7 each


def test_random_directions_and_the_rows_of_a_trained_dictionary_have_length_1():
    rng = np.random.default_rng(0)
    np.testing.assert_allclose(np.linalg.norm(interp.random_directions(30, 7, rng), axis=1), 1)
    params = interp.train_sparse_autoencoder(interp.sparse_features(200, 6, 0.2, rng), 8, rng, steps=20)
    np.testing.assert_allclose(np.linalg.norm(params["decoder"], axis=1), 1)


def test_large_activations_give_no_infinities():
    x = np.array([[1e4, -1e4, 0.0]])
    params = interp.sparse_autoencoder_init(3, 4, np.random.default_rng(0))
    assert np.isfinite(interp.sparse_autoencoder_loss(params, x))
    probe = interp.train_probe(np.concatenate([x, -x]), [0, 1], steps=20)
    assert np.all(np.isfinite(probe["weight"]))


def replaced(name, value):
    model, params, _, _ = run("gpt2")
    return model(params, TOKENS, tap=interp.replace_with({name: value}))


test_what_cannot_be_right_is_refused_in_words = refusing(
    (lambda: interp.train_probe([[1.0]], [2], classes=2), ValueError, r"labels in \[0, 1\], got 2"),
    (lambda: interp.residual_contributions({}), ValueError, "record of a run"),
    (lambda: interp.logit_lens(None, {}, {}), ValueError, "record of a run"),
    (lambda: replaced("blocks.0.atention.output", 0), ValueError, "did you mean blocks.0.attention"),
    (lambda: replaced("blocks.2.output", 0), ValueError, "no intermediate 'blocks.2.output'; did you mean blocks"),
    (lambda: replaced("blocks.1.output", np.ones(3)), ml.ShapeError, r"\(2, 5, 8\).*\(3,\)"),
    (
        lambda: interp.patch_effect(*run("gpt2")[:2], TOKENS, TOKENS, "embeddings", lambda z: z[0, 0, 0]),
        ValueError, "different values of the metric",
    ),
    (
        lambda: interp.patch_effect(*run("gpt2")[:2], TOKENS, TOKENS[:, ::-1], "blocks.1.atention.output", np.sum),
        ValueError, "no intermediate 'blocks.1.atention.output'; did you mean blocks.1.attention.output",
    ),
    (lambda: interp.without_heads(*run("gpt2")[:2], [(2, 0)]), IndexError, r"2 blocks of 4 heads, got \(2, 0\)"),
    (lambda: interp.value_weighted_attention(np.ones((3, 2, 2)), np.ones((2, 2, 4))), ml.ShapeError, "3 heads and 2"),
    (
        lambda: interp.value_weighted_attention(np.ones((1, 2, 2)), np.ones((1, 2, 4)), np.ones((3, 2))),
        ml.ShapeError, "1 · 4 rows",
    ),
    (lambda: interp.logit_attribution(*run("gpt2")[:3], tokens=[-1]), ValueError, "ids from 0 to 10, got -1"),
    (lambda: interp.train_probe(np.ones((1, 3)), [0.5]), TypeError, "whole numbers"),
    (lambda: interp.sparse_decoding_limit(10, 8), ValueError, r"d in \[1, 7.357.*got 8"),
    (lambda: interp.simulate_read_out(np.eye(3), 3, None), ValueError, r"active in \[1, 2\], got 3"),
    (lambda: interp.direction_correlations(np.ones((1, 1)), np.ones((1, 1))), ml.ShapeError, "two examples"),
    (lambda: interp.repeated_tokens(1, 5, 4, None), ValueError, r"period in \[1, 4\], got 5"),
    (lambda: interp.induction_score(np.ones((1, 1, 4, 4)), 4), ValueError, r"period in \[1, 3\], got 4"),
    (lambda: interp.previous_token_score(np.ones((1, 1, 1, 1))), ValueError, r"tokens in \[2, ∞\), got 1"),
)  # fmt: skip
