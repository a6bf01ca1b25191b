"""Checkpoints go both ways: what transformers has is read, and what we write transformers loads."""

import gguf
import numpy as np
import pytest
import safetensors.torch
import torch
import transformers
from peers import CONTEXT, MODELS, VOCABULARY, fresh, named
from test_pretrained_gguf import LAYOUT, random_blocks

import mathllm as ml
from mathllm.pretrained.files import load_tensors
from mathllm.pretrained.gguf import dequantize
from mathllm.pretrained.huggingface import load_pretrained, save_pretrained


@pytest.mark.parametrize("what", MODELS)
def test_a_saved_model_of_transformers_becomes_the_configuration_and_parameters_of_the_model_in_memory(what, tmp_path):
    peer = MODELS[what]()
    model = fresh(peer)
    model.save_pretrained(tmp_path)
    config, params = load_pretrained(tmp_path)
    assert config == peer.our_config
    np.testing.assert_equal(params, peer.params(named(model)))


@pytest.mark.parametrize("what", MODELS)
def test_transformers_loads_what_we_save_and_gives_the_same_logits(agree, what, tmp_path):
    config = MODELS[what]().our_config
    ours, rng = ml.Transformer(config), np.random.default_rng(0)
    params = ours.init(rng)
    save_pretrained(tmp_path, config, params)
    auto = transformers.AutoModelForMaskedLM if what == "BERT" else transformers.AutoModelForCausalLM
    options = {"experts_implementation": "eager"} if what.startswith("Mixtral") else {}
    model, found = auto.from_pretrained(tmp_path, output_loading_info=True, **options)
    assert not any(found.values()), found
    assert model.dtype == torch.float64
    tokens = rng.integers(0, VOCABULARY, size=(2, CONTEXT))
    within = 1e-5 if MODELS[what]().casts else 1e-9  # RMS norm and RoPE in float32
    agree(f"{what}, saved by us", "logits", ours(params, tokens), model(torch.tensor(tokens)).logits, within=within)


def test_a_tokenizer_of_single_characters_cuts_alike_in_transformers(tmp_path):
    text = "To be, or not to be:\n  that is the question; 42 — no more.\n"
    seen = sorted(set(text.encode()))
    tokenizer = ml.Tokenizer({bytes([byte]): i for i, byte in enumerate(seen)}, [], {"<|endoftext|>": len(seen)})
    config = ml.llama_config(vocabulary=len(tokenizer), width=8, layers=1, heads=2, hidden=8, context=128)
    save_pretrained(tmp_path, config, ml.Transformer(config).init(np.random.default_rng(0)), tokenizer)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert theirs(text)["input_ids"] == tokenizer.encode(text)
    assert len(tokenizer.encode(text)) == len(text.encode())
    assert theirs.decode(tokenizer.encode(text)) == text


@pytest.mark.parametrize("kind", LAYOUT)
def test_blocks_of_gguf_become_the_weights_that_its_own_library_makes_of_them(kind):
    blocks = random_blocks(kind, 1000, np.random.default_rng(0))
    theirs = gguf.quants.dequantize(blocks, gguf.GGMLQuantizationType[kind])
    ours = dequantize(blocks.ravel(), kind, theirs.shape)
    assert ours.dtype == np.float32
    # each float32 operation rounds by 2⁻²⁴ of its result, and of the minimum that is added
    np.testing.assert_allclose(ours, theirs, rtol=2.0**-22, atol=2.0**-22 * np.abs(theirs).max())


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_8_bit_floats_are_those_of_pytorch(dtype, tmp_path):
    theirs = torch.arange(256).to(torch.uint8).view(dtype)
    safetensors.torch.save_file({"x": theirs}, tmp_path / "x.safetensors")
    np.testing.assert_array_equal(load_tensors(tmp_path / "x.safetensors")["x"], theirs.float().numpy())
