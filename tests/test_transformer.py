"""Chapter 12: norms, blocks, and one model that is GPT-2, LLaMA, Mixtral, BERT or a translator."""

import numpy as np
import pytest
from refusing import refusing
from test_inference import CONFIGS as DECODERS
from test_inference import SIZES
from test_inference import model_of as small_model

import mathllm as ml
from mathllm import transformer
from mathllm.transformer import Config, Transformer, bert_config, feed_forward

rng = np.random.default_rng(12)
CONFIGS = DECODERS | {"bert": bert_config(**SIZES)}
TOKENS = rng.integers(0, 11, size=(2, 5))
MARKS = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
for array in (TOKENS, MARKS):
    array.flags.writeable = False  # a write would raise, as to the parameters


def model_of(name):
    model, params, options = small_model(CONFIGS[name])
    return model, params, {"source": TOKENS[:, ::-1]} if options else {}


@pytest.mark.parametrize("name", CONFIGS)
def test_parameter_counts_agree_with_counting(name):
    model, params, _ = model_of(name)
    assert transformer.count_parameters(params) == transformer.parameters_by_part(model.config)["total"]


@pytest.mark.parametrize(
    ("name", "attention", "network"),
    [
        ("gpt2", 4 * 8 * 8, 2 * 8 * 12),
        # two of four heads have keys and values; two experts of three matrices, and the router for all four
        ("mixtral", 2 * 8 * 8 + 2 * 8 * 4, 2 * 3 * 8 * 12 + 4 * 8),
    ],
)
def test_operations_agree_with_counting_the_products(name, attention, network):
    by_hand = 2 * (attention + network) + 11 * 8  # two layers, and the logits
    assert transformer.forward_flops(CONFIGS[name], 16) == 2 * 16 * by_hand + 2 * 2 * 2 * 16 * 16 * 8


@pytest.mark.parametrize("name", CONFIGS)
def test_all_gradients_of_the_loss_agree_with_central_differences(name):
    model, params, options = model_of(name)
    labels = np.where(MARKS == 1, TOKENS, -100)
    check = ml.check_gradient(lambda p: model.loss(p, TOKENS, labels, MARKS, **options), params, entries=60)
    assert check.error < 1e-6  # central differences are good to about 1e-10; a wrong formula is off by percents


@pytest.mark.parametrize("name", CONFIGS)
def test_a_decoder_does_not_look_ahead_and_an_encoder_does(name):
    model, params, options = model_of(name)
    changed = TOKENS.copy()
    changed[:, 3:] = (changed[:, 3:] + 1) % 11
    before, after = model(params, TOKENS, **options), model(params, changed, **options)
    assert np.allclose(before[:, :3], after[:, :3], rtol=1e-7, atol=1e-12) == CONFIGS[name].causal
    assert not np.allclose(before[:, 3:], after[:, 3:])


@pytest.mark.parametrize("name", CONFIGS)
def test_no_text_at_all_gives_no_logits(name):
    model, params, options = model_of(name)
    none = np.zeros((0, 5), int)
    assert model(params, none, **({"source": none} if options else {})).shape == (0, 5, 11)


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize(("left", "right"), [(0, 2), (3, 0), (1, 1)])
def test_padding_changes_nothing(name, left, right):
    """A token's position is the number of tokens before it, padding not counted."""
    model, params, options = model_of(name)
    padded, mask = (np.pad(rows, [(0, 0), (left, right)]) for rows in (TOKENS, np.ones_like(TOKENS)))
    logits = model(params, padded, mask, **options)[:, left : left + 5]
    np.testing.assert_allclose(logits, model(params, TOKENS, **options), atol=1e-12 if left == 0 else 1e-10)


@pytest.mark.parametrize("name", CONFIGS)
def test_every_intermediate_has_a_name_and_fits_to_the_others(name):
    model, params, options = model_of(name)
    c, record = model.config, {}
    logits = model(params, TOKENS, tap=ml.record_to(record), **options)
    np.testing.assert_array_equal(record["logits"], logits)
    for n, block in enumerate(params["blocks"]):
        for attention in ["attention"] + ["cross_attention"] * bool(c.encoder_layers):
            part = {kind: record[f"blocks.{n}.{attention}.{kind}"] for kind in ("weights", "value", "mixed", "output")}
            assert part["weights"].shape == (2, c.heads, 5, 5)
            value = np.repeat(part["value"], c.heads // c.kv_heads, axis=1)
            np.testing.assert_allclose(part["mixed"], part["weights"] @ value, atol=1e-12)
            output = ml.merge_heads(part["mixed"]) @ block[attention]["output"]
            np.testing.assert_allclose(output + block[attention].get("output_bias", 0), part["output"], atol=1e-12)
        network = block["feed_forward"]
        if c.experts:
            gates = record[f"blocks.{n}.feed_forward.gates"]
            np.testing.assert_allclose(gates.sum(axis=-1), 1)
            assert np.all(np.sum(gates > 0, axis=-1) == c.experts_used)
        else:
            written = record[f"blocks.{n}.feed_forward.hidden"] @ network["down"] + network.get("down_bias", 0)
            np.testing.assert_allclose(written, record[f"blocks.{n}.feed_forward.output"], atol=1e-12)
    if c.encoder_layers:
        read = record["encoder.final_norm"]
        assert read.shape == record["encoder.1.output"].shape == (2, 5, c.width)
        cross = params["blocks"][0]["cross_attention"]
        key = ml.split_heads(read @ cross["key"] + cross.get("key_bias", 0), c.heads)
        np.testing.assert_allclose(record["blocks.0.cross_attention.key"], key, atol=1e-12)


@pytest.mark.parametrize("name", CONFIGS)
def test_float32_parameters_give_float32_logits_and_gradients(name):
    model = Transformer(CONFIGS[name])
    params = model.init(np.random.default_rng(0), np.float32)
    options = {"source": TOKENS} if model.config.encoder_layers else {}
    value, gradient = ml.value_and_grad(lambda p: model.loss(p, TOKENS, TOKENS, **options))(params)
    assert model(params, TOKENS, **options).dtype == value.dtype == gradient["embedding"].dtype == np.float32
    assert abs(value - np.log(11)) < 0.1  # small weights: all tokens look alike


test_what_cannot_be_right_is_refused_in_words = refusing(
    (lambda: Config(**SIZES | {"heads": 0}), ValueError, "whole number heads in"),
    (lambda: Config(**SIZES, kv_heads=3), ValueError, "4 heads cannot share 3"),
    (lambda: Config(**SIZES | {"heads": 3}), ValueError, "width of 8 is no multiple of 3 heads"),
    (lambda: Config(**SIZES, experts=-1), ValueError, r"experts in .*got -1"),
    (lambda: Config(**SIZES, encoder_layers=1.5), ValueError, r"whole number encoder_layers in .*got 1.5"),
    (lambda: Config(**SIZES, norm_epsilon=np.nan), ValueError, r"norm_epsilon in .*got nan"),
    (lambda: Config(**SIZES, positions="rotari"), ValueError, "did you mean rotary"),
    (lambda: Config(**SIZES, norm="batch"), ValueError, "choices are layer, rms"),
    (lambda: Config(**SIZES, experts=2, experts_used=3), ValueError, r"experts_used in \[1, 2\], got 3"),
    (lambda: Config(**SIZES | {"width": 12}, positions="rotary"), ValueError, "even head_width, got 3"),
    (lambda: Config(**SIZES, encoder_layers=1, causal=False), ValueError, "causal decoder"),
    (lambda: model_of("gpt2")[0](model_of("gpt2")[1], [1, 2]), ml.ShapeError, r"\(B, T\).*\(2,\)"),
    (lambda: model_of("gpt2")[0](model_of("gpt2")[1], np.zeros((1, 25), int)), ml.ShapeError, "24 tokens, got 25"),
    (lambda: model_of("gpt2")[0](model_of("gpt2")[1], [[11]]), ValueError, "0 to 10, got 11"),
    (lambda: model_of("gpt2")[0](model_of("gpt2")[1], [[1]], [[1, 1]]), ml.ShapeError, "T is 1 in tokens, 2"),
    (lambda: model_of("translator")[0](model_of("translator")[1], TOKENS), ValueError, "source=tokens"),
    (lambda: model_of("gpt2")[0](model_of("gpt2")[1], TOKENS, source=TOKENS), ValueError, "no encoder"),
    (lambda: model_of("gpt2")[0](model_of("gpt2")[1], TOKENS, segments=TOKENS), ValueError, "no embeddings of seg"),
    (lambda: transformer.forward_flops(CONFIGS["translator"], 8), ValueError, "one sequence"),
    (lambda: feed_forward(np.ones(2), {"up": np.eye(2), "down": np.eye(2)}, activation="x"), ValueError, "gelu"),
    (lambda: transformer.mixture_of_experts(np.ones(2), {"router": 0, "experts": [{}]}, used=2), ValueError, "got 2"),
)
