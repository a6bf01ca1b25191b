"""Checkpoints go both ways: what transformers has is read, and what we write transformers loads."""

import numpy as np
import pytest
import torch
import transformers
from peers import CONTEXT, MODELS, VOCABULARY, fresh, named

import mathllm as ml
from mathllm.pretrained.huggingface import load_pretrained, save_pretrained
from mathllm.training import train_tokenizer


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


@pytest.mark.parametrize("what", ["GPT-2", "LLaMA, grouped-query"])
def test_a_model_with_its_tokenizer_writes_the_same_greedy_text_in_transformers(what, tmp_path):
    text = "the cat sat on the mat, and the dog sat on the cat; " * 4
    tokenizer = train_tokenizer(text, 300)
    choices = {"vocabulary": len(tokenizer), "width": 24, "heads": 4, "layers": 2, "context": 64, "hidden": 40}
    config = (ml.gpt2_config if what == "GPT-2" else ml.llama_config)(**choices)
    rng = np.random.default_rng(0)
    model = ml.Transformer(config)
    params = model.init(rng)
    params["embedding"] *= 50  # far from uniform
    save_pretrained(tmp_path, config, params, tokenizer)

    their_tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path)
    prompt = "the dog sat"
    inputs = their_tokenizer(prompt, return_tensors="pt")
    assert inputs["input_ids"].tolist() == [tokenizer.encode(prompt)]
    answer = theirs.generate(**inputs, max_new_tokens=30, do_sample=False)[0]
    end = tokenizer.special_tokens["<|endoftext|>"]
    ours = ml.generate(model, params, [tokenizer.encode(prompt)], max_new_tokens=30, eos_token_id=end)[0]
    assert ours.tolist() == answer.tolist()
    assert tokenizer.decode(ours) == their_tokenizer.decode(answer, clean_up_tokenization_spaces=False)


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
