"""Weights under their Hugging Face names: there and back unchanged, and nothing left out in silence."""

import json
from dataclasses import replace

import numpy as np
import pytest

from mathllm import transformer
from mathllm.attention import RotaryScaling
from mathllm.errors import ShapeError
from mathllm.pretrained.files import save_tensors
from mathllm.pretrained.gguf_model import gguf_to_hf
from mathllm.pretrained.huggingface import from_hf, load_pretrained, save_pretrained, to_hf
from mathllm.pretrained.settings import to_hf_config
from mathllm.training import train_tokenizer
from mathllm.transformer import BertParts, Config, T5Parts, Transformer, bert_config, gpt2_config, llama_config
from mathllm.trees import tree_map, walk

SIZES = {"vocabulary": 11, "width": 8, "layers": 2, "heads": 4, "context": 6}
GATED = {"hidden": 12, "gated": True, "activation": "gelu_tanh"}
STRETCHED = {
    "evenly": RotaryScaling("linear", 2.0),
    "by YaRN": RotaryScaling("yarn", 4.0),
    "by its own YaRN": RotaryScaling("yarn", 4.0, trained=3, turns=(2, 16), whole_pairs=False, attention_factor=1.25),
    "as it grows": RotaryScaling("dynamic", 2.0),
    "by Llama 3's rule": RotaryScaling("llama3", 8.0, trained=4, turns=(1, 3)),
    "by a number for each pair": RotaryScaling("longrope", 2.0, trained=3, short=(1.0,), long=(2.5,)),
    "by sharper numbers": RotaryScaling("longrope", short=(1.5,), long=(2.5,), attention_factor=1.25),
}
CONFIGS = {
    "gpt2": gpt2_config(**SIZES),
    "gpt2 untied, ReLU": gpt2_config(**SIZES, tied=False, hidden=10, activation="relu"),
    "llama": llama_config(**SIZES, hidden=12),
    "llama grouped, tied": llama_config(**SIZES, hidden=12, kv_heads=2, tied=True, rope_base=1e5, norm_epsilon=1e-5),
    "llama one key head": llama_config(**SIZES, hidden=12, kv_heads=1, head_width=6),
    **{
        f"llama, stretched {how}": llama_config(**SIZES, hidden=12, rope_scaling=scaling)
        for how, scaling in STRETCHED.items()
    },
    "mixtral": transformer.mixtral_config(**SIZES, hidden=12, kv_heads=2, experts=3),
    "bert": bert_config(**SIZES, hidden=12),
    "bert without head": bert_config(**SIZES, hidden=12, bert=BertParts(segments=1, head=False)),
    "t5": transformer.t5_config(**SIZES, head_width=3, hidden=12, t5=T5Parts(6, 5, output_scale=8**-0.5)),
    "t5 1.1": transformer.t5_config(**SIZES, **GATED, encoder_layers=1, tied=False),
    "t5 1.1 tied": transformer.t5_config(**SIZES, **GATED, t5=T5Parts()),
    "bert untied": bert_config(**SIZES, hidden=12, tied=False),
}
KINDS = {name: name.replace(",", "").split()[0] for name in CONFIGS}


def some(config, dtype=np.float64, seed=0):
    """Parameters in which no two numbers are alike, so that a wrong place cannot hide."""
    rng = np.random.default_rng(seed)
    return tree_map(lambda w: rng.normal(size=w.shape).astype(dtype), Transformer(config).init(rng))


def assert_same(a, b):
    """The same numbers of the same dtypes at the same places."""
    places = [{place: (w.dtype, w.tolist()) for place, w in walk(tree)} for tree in (a, b)]
    assert places[0] == places[1]


# Other spellings of the names; that these are those of the published checkpoints, parity/test_checkpoints.py proves


def test_large_matrices_are_views_not_copies():
    config = CONFIGS["llama"]
    tensors = to_hf(config, some(config))
    _config, params = from_hf(to_hf_config(config), tensors)
    assert np.shares_memory(params["blocks"][0]["feed_forward"]["up"], tensors["model.layers.0.mlp.up_proj.weight"])


def without(prefix):
    return lambda tensors: {name.removeprefix(prefix): array for name, array in tensors.items()}


def with_another(name):
    return lambda tensors: tensors | {name: np.ones(3)}


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("gpt2", without("transformer.")),
        ("llama grouped, tied", without("model.")),
        ("bert", without("bert.")),
        # what no logit depends on
        ("gpt2", with_another("h.0.attn.bias")),
        ("gpt2", with_another("transformer.h.1.attn.masked_bias")),
        ("llama", with_another("model.layers.0.self_attn.rotary_emb.inv_freq")),
        ("bert", with_another("bert.pooler.dense.weight")),
        ("bert", with_another("cls.seq_relationship.bias")),
        ("bert without head", with_another("embeddings.position_ids")),
        ("t5", with_another("decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight")),
        # tied tensors: twice, and under their second name alone
        ("gpt2", lambda t: t | {"lm_head.weight": t["transformer.wte.weight"]}),
        ("bert", lambda t: t | {"cls.predictions.decoder.bias": t.pop("cls.predictions.bias")}),
    ],
)
def test_a_checkpoint_in_another_spelling_is_the_same_model(name, change):
    config = CONFIGS[name]
    params = some(config)
    assert_same(from_hf(to_hf_config(config), change(to_hf(config, params)))[1], params)


# Refusals


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda t: t.pop("transformer.ln_f.bias"), ValueError, r"misses transformer\.ln_f\.bias"),
        (lambda t: t.update({"transformer.h.2.ln_1.weight": 1}), ValueError, r"not expect transformer\.h\.2\.ln_1"),
        (lambda t: t.update({"transformer.ln_g.bias": t.pop("transformer.ln_f.bias")}), ValueError, "mean .*ln_g"),
        (lambda t: t.update({"transformer.wpe.weight": np.ones((5, 8))}), ShapeError, r"wpe.* \(6, 8\), got \(5, 8\)"),
        (lambda t: t.update({"transformer.wpe.weight": np.ones((8, 6))}), ShapeError, r"got \(8, 6\)"),
        (lambda t: t.update({"wpe.weight": np.ones((6, 8))}), ValueError, "got a tensor twice"),
        (lambda t: t.update({"lm_head.weight": np.ones((11, 8))}), ValueError, r"lm_head\.weight to equal .*wte"),
    ],
)
def test_tensors_that_do_not_fit_are_refused_by_name(change, error, message):
    tensors = to_hf(CONFIGS["gpt2"], some(CONFIGS["gpt2"]))
    change(tensors)
    with pytest.raises(error, match=message):
        from_hf(to_hf_config(CONFIGS["gpt2"]), tensors)


@pytest.mark.parametrize("name", CONFIGS)
def test_every_tensor_is_needed(name):
    config = CONFIGS[name]
    tensors = to_hf(config, some(config))
    for missing in tensors:
        with pytest.raises(ValueError, match="misses"):
            from_hf(to_hf_config(config), {key: t for key, t in tensors.items() if key != missing})


@pytest.mark.parametrize("left", [".transform.dense.weight", ".transform.LayerNorm.bias", ".bias"])
def test_a_head_of_bert_is_there_whole_or_not_at_all(left):
    config = CONFIGS["bert"]
    tensors = to_hf(config, some(config))
    tensors = {k: t for k, t in tensors.items() if not k.startswith("cls.") or k == f"cls.predictions{left}"}
    with pytest.raises(ValueError, match="misses"):
        from_hf(to_hf_config(config), tensors)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("gpt2", {"model_type": "gpt_neo"}, "model types gpt2, llama, mixtral, bert, t5; got 'gpt_neo'"),
        ("gpt2", {"model_type": None}, "got None"),
        ("gpt2", {"n_layer": None}, "needs 'n_layer' in the configuration of a gpt2"),
        ("gpt2", {"n_head": 3}, "a width of 8 into 3 heads"),
        ("gpt2", {"activation_function": "tanh"}, "activation 'tanh'"),
        ("gpt2", {"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx=True"),
        ("gpt2", {"add_cross_attention": True}, "add_cross_attention=True"),
        ("llama", {"attention_bias": True}, "attention_bias=True; it knows only False"),
        ("llama", {"mlp_bias": True}, "mlp_bias=True"),
        ("llama", {"rope_scaling": {"type": "axial", "factor": 2.0}}, "positions .*axial.*dynamic, yarn,"),
        ("llama", {"rope_scaling": {"type": "longrope", "long_factor": [2.0]}}, "needs short_factor in the rotary"),
        ("llama", {"rope_scaling": {"type": "linear"}}, "needs factor in the rotary positions"),
        ("llama", {"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, "low_freq_factor, high_freq_factor in the"),
        ("llama", {"rope_parameters": {"rope_theta": 1e4, "partial_rotary_factor": 0.5}}, "of whole heads"),
        ("llama", {"partial_rotary_factor": 0.5}, "of whole heads"),
        ("mixtral", {"sliding_window": 4}, "sliding_window of 4 tokens"),
        ("bert", {"position_embedding_type": "relative_key"}, "position_embedding_type='relative_key'"),
        ("bert", {"is_decoder": True}, "is_decoder=True"),
        ("t5", {"feed_forward_proj": "gated-tanh"}, "activation 'gated-tanh'"),
        ("llama", {"hidden_act": "gated-silu"}, "activation 'gated-silu'"),
        ("t5", {"d_kv": None}, "needs 'd_kv' in the configuration of a t5"),
    ],
)
def test_settings_that_our_model_does_not_have_are_refused(name, settings, message):
    config = CONFIGS[name]
    with pytest.raises(ValueError, match=message):
        from_hf(to_hf_config(config) | settings, to_hf(config, some(config)))


@pytest.mark.parametrize(
    ("name", "settings", "field", "value"),
    [
        ("llama", {"rope_parameters": {"rope_type": "default", "rope_theta": 5e5}}, "rope_base", 5e5),
        ("llama", {"num_key_value_heads": None}, "kv_heads", 4),
        ("llama", {"head_dim": None}, "head_width", 2),
        ("llama", {"rms_norm_eps": None}, "norm_epsilon", 1e-6),
        ("mixtral", {"rope_theta": None}, "rope_base", 1e6),
        ("mixtral", {"sliding_window": 6}, "context", 6),
        ("gpt2", {"activation_function": "gelu_pytorch_tanh"}, "activation", "gelu_tanh"),
        ("bert", {"layer_norm_eps": None}, "norm_epsilon", 1e-12),
        ("t5", {"scale_decoder_outputs": None, "num_decoder_layers": None}, "t5", T5Parts(6, 5, 8**-0.5)),
        ("t5 1.1", {"scale_decoder_outputs": None, "feed_forward_proj": "gated-gelu"}, "activation", "gelu_tanh"),
    ],
)
def test_settings_in_their_several_spellings_are_read(name, settings, field, value):
    config = CONFIGS[name]
    found, _params = from_hf(to_hf_config(config) | settings, to_hf(config, some(config)))
    assert getattr(found, field) == value


TRAINED = {"original_max_position_embeddings": 3}


@pytest.mark.parametrize(
    ("settings", "beside", "scaling"),
    [
        ({"type": "linear", "factor": 4.0}, {}, RotaryScaling("linear", 4.0, 6)),
        ({"type": "yarn", "factor": 4.0}, TRAINED, RotaryScaling("yarn", 4.0, 3)),
        ({"type": "yarn", "factor": None} | TRAINED, {}, RotaryScaling("yarn", 2.0, 3)),
        (
            {"type": "longrope", "short_factor": [1.0], "long_factor": [2.0]}, TRAINED,
            RotaryScaling("longrope", 2.0, 3, short=(1.0,), long=(2.0,)),
        ),
    ],
)  # fmt: skip
def test_scaled_positions_in_older_spellings_are_read(settings, beside, scaling):
    config, settings = CONFIGS["llama"], {"rope_scaling": settings} | beside
    found, _params = from_hf(to_hf_config(config) | settings, to_hf(config, some(config)))
    assert found.rope_scaling == scaling


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (llama_config(**SIZES, pairing="adjacent"), r"llama .* cannot express pairing='adjacent' \(it has 'half'\)"),
        (llama_config(**SIZES, bias=True), "bias=True"),
        (llama_config(**SIZES, rope_scaling=RotaryScaling("ntk", 2.0)), "rope_scaling=.*'ntk'"),
        (gpt2_config(**SIZES, positions="alibi"), "gpt2 .* positions='alibi'"),
        (gpt2_config(**SIZES, norm_order="post"), "norm_order='post'"),
        (gpt2_config(**SIZES, head_width=4), "cannot express head_width=4"),
        (bert_config(**SIZES, bert=None), "bert .* bert=None"),
        (Config(**SIZES, encoder_layers=2), r"t5 .* cannot express positions='learned' \(it has 'relative'\)"),
        (transformer.t5_config(**SIZES, activation="gelu", gated=True), "activation='gelu'"),
    ],
)
def test_a_model_of_another_kind_is_refused_with_the_fields_that_differ(config, message):
    with pytest.raises(ValueError, match=message):
        to_hf_config(config)


def test_parameters_that_do_not_fit_the_configuration_are_refused_by_name():
    config = CONFIGS["llama"]
    params = some(config)
    with pytest.raises(ValueError, match=r"misses unembedding and does not expect extra\.gain"):
        to_hf(config, {k: v for k, v in params.items() if k != "unembedding"} | {"extra": {"gain": 1}})
    with pytest.raises(ShapeError, match=r"embedding of shape \(11, 8\), got \(3,\)"):
        to_hf(config, params | {"embedding": np.ones(3)})


# Folders


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_saved_model_comes_back(tmp_path, name, dtype):
    config = CONFIGS[name]
    params = some(config, dtype)
    save_pretrained(tmp_path / "new", config, params)
    again, back = load_pretrained(tmp_path / "new")
    assert again == config
    assert json.loads((tmp_path / "new" / "config.json").read_text())["model_type"] == KINDS[name]
    assert_same(back, params)


def test_a_saved_model_brings_its_tokenizer_and_the_token_that_ends_a_text(tmp_path):
    tokenizer = train_tokenizer("low lower lowest " * 9, 262)
    config = gpt2_config(**SIZES | {"vocabulary": len(tokenizer)})
    save_pretrained(tmp_path, config, some(config), tokenizer)
    assert json.loads((tmp_path / "config.json").read_text())["eos_token_id"] == tokenizer.encode("<|endoftext|>")[0]
    assert type(tokenizer).load(tmp_path / "tokenizer.json").encode("lowest") == tokenizer.encode("lowest")
    assert json.loads((tmp_path / "tokenizer_config.json").read_text())["eos_token"] == "<|endoftext|>"


def test_a_checkpoint_in_several_files_is_read_through_its_index(tmp_path):
    config = CONFIGS["llama"]
    params = some(config)
    tensors = to_hf(config, params)
    (tmp_path / "config.json").write_text(json.dumps(to_hf_config(config)))
    files = {name: f"model-{i % 2}.safetensors" for i, name in enumerate(tensors)}
    for file in set(files.values()):
        save_tensors(tmp_path / file, {name: tensors[name] for name in tensors if files[name] == file})
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": files}))
    assert_same(load_pretrained(tmp_path)[1], params)


@pytest.mark.parametrize("index", ['{"weight_map": ["model.safetensors"]}', '{"weight_map": {}}', "{}"])
def test_an_index_without_its_table_of_files_is_named_as_damaged(tmp_path, index):
    (tmp_path / "model.safetensors.index.json").write_text(index)
    with pytest.raises(ValueError, match="is damaged: it has no weight_map"):
        load_pretrained(tmp_path)


# LLaMA in GGUF


class FakeGGUF(dict):
    """What `gguf_to_hf` asks of a file: tensors by name, metadata, shapes."""

    path = "model.gguf"
    metadata: dict
    tensors = property(lambda self: {name: array for name, array in self.items()})

    def read(self, names):
        return {name: self[name].copy() for name in names}


def as_gguf(config, params):
    """The model as llama.cpp would store it: its names, and rows of query and key that turn together side by side."""
    parts = {
        "attn_norm": ("attention_norm", "gain"), "attn_q": ("attention", "query"), "attn_k": ("attention", "key"),
        "attn_v": ("attention", "value"), "attn_output": ("attention", "output"),
        "ffn_norm": ("feed_forward_norm", "gain"), "ffn_gate": ("feed_forward", "gate"),
        "ffn_up": ("feed_forward", "up"), "ffn_down": ("feed_forward", "down"),
    }  # fmt: skip
    file = FakeGGUF({"token_embd.weight": params["embedding"], "output_norm.weight": params["final_norm"]["gain"]})
    if not config.tied:
        file["output.weight"] = params["unembedding"].T
    for l, block in enumerate(params["blocks"]):
        for name, (group, leaf) in parts.items():
            array = block[group][leaf].T
            if name in ("attn_q", "attn_k"):
                half = config.head_width // 2
                array = array.reshape(-1, 2, half, config.width).swapaxes(1, 2).reshape(array.shape)
            file[f"blk.{l}.{name}.weight"] = array
    file.metadata = {
        "general.architecture": "llama", "llama.block_count": config.layers, "llama.context_length": config.context,
        "llama.embedding_length": config.width, "llama.feed_forward_length": config.hidden,
        "llama.attention.head_count": config.heads, "llama.attention.head_count_kv": config.kv_heads,
        "llama.attention.layer_norm_rms_epsilon": float(np.float32(config.norm_epsilon)),
        "llama.rope.freq_base": config.rope_base, "llama.attention.key_length": config.head_width,
    }  # fmt: skip
    return file


WIDE_HEADS = llama_config(**SIZES | {"width": 24}, hidden=12, kv_heads=2, tied=True)  # three pairs in each head


@pytest.mark.parametrize("config", [WIDE_HEADS, CONFIGS["llama"], CONFIGS["llama grouped, tied"]])
def test_a_llama_in_gguf_is_the_model_it_was(config):
    params = some(config)
    again, back = from_hf(*gguf_to_hf(as_gguf(config, params)))
    assert again == config
    assert_same(back, params)


LONGROPE = {"short": (1.0, 1.25, 1.5), "long": (2.0, 3.0, 4.0)}


@pytest.mark.parametrize(
    ("metadata", "numbers", "scaling"),
    [
        ({"type": "linear", "factor": 4.0}, {}, RotaryScaling("linear", 4.0)),
        ({"type": "yarn", "factor": 4.0}, {}, RotaryScaling("yarn", 4.0)),
        (
            {"type": "yarn", "factor": 4.0, "original_context_length": 3, "yarn_beta_fast": 16.0, "attn_factor": 2.0},
            {}, RotaryScaling("yarn", 4.0, trained=3, turns=(1, 16.0), attention_factor=2 * (1 + 0.1 * np.log(4))),
        ),
        (
            {"type": "longrope", "factor": 2.0, "original_context_length": 3, "attn_factor": 1.5},
            {f"rope_factors_{length}": numbers for length, numbers in LONGROPE.items()},
            RotaryScaling("longrope", 2.0, trained=3, attention_factor=1.5, **LONGROPE),
        ),
        (
            {}, {"rope_freqs": (1.0, 2.0, 8.0)},
            RotaryScaling("longrope", attention_factor=1.0, short=(1.0, 2.0, 8.0), long=(1.0, 2.0, 8.0)),
        ),
    ],
    ids=["linear", "yarn", "yarn with settings", "longrope", "llama 3.1"],
)  # fmt: skip
def test_scaled_rotary_positions_in_gguf_are_read(metadata, numbers, scaling):
    params = some(WIDE_HEADS)
    file = as_gguf(WIDE_HEADS, params)
    file.metadata |= {f"llama.rope.scaling.{name}": value for name, value in metadata.items()}
    file |= {f"{name}.weight": np.array(values) for name, values in numbers.items()}
    config, back = from_hf(*gguf_to_hf(file))
    assert config == replace(WIDE_HEADS, rope_scaling=scaling)
    assert_same(back, params)


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"general.architecture": "phi3"}, "reads the architecture llama; model.gguf holds 'phi3'"),
        ({"llama.rope.scaling.type": "other"}, "rotary positions of model.gguf, 'other' with no factors"),
        ({"llama.rope.scaling.type": "longrope"}, "rotary positions of model.gguf, 'longrope' with no factors"),
        ({"llama.block_count": None}, r"needs llama\.block_count"),
    ],
)
def test_another_architecture_in_gguf_is_refused(metadata, message):
    file = as_gguf(CONFIGS["llama"], some(CONFIGS["llama"]))
    file.metadata = {key: value for key, value in (file.metadata | metadata).items() if value is not None}
    with pytest.raises(ValueError, match=message):
        gguf_to_hf(file)


def test_an_unknown_tensor_in_gguf_is_refused_by_name():
    file = as_gguf(CONFIGS["llama"], some(CONFIGS["llama"]))
    file["blk.0.attn_q_norm.weight"] = np.ones(2)
    with pytest.raises(ValueError, match=r"not expect model\.blk\.0\.attn_q_norm\.weight"):
        from_hf(*gguf_to_hf(file))
