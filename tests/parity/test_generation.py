"""Generation, token for token with transformers: the filters of logits, greedy decoding, and beam search."""

import numpy as np
import pytest
import torch
from peers import MODELS, VOCABULARY, fresh, named
from transformers import GenerationConfig
from transformers.generation import logits_process as theirs

import mathllm as ml
from mathllm import inference

# The filters


FILTERS = [
    ("temperature 0.7", lambda z: inference.apply_temperature(z, 0.7), theirs.TemperatureLogitsWarper(0.7)),
    ("top-k 1", lambda z: inference.keep_top_k(z, 1), theirs.TopKLogitsWarper(1)),
    ("top-k 5", lambda z: inference.keep_top_k(z, 5), theirs.TopKLogitsWarper(5)),
    ("top-k above V", lambda z: inference.keep_top_k(z, 99), theirs.TopKLogitsWarper(99)),
    ("top-p 0.1", lambda z: inference.keep_top_p(z, 0.1), theirs.TopPLogitsWarper(0.1)),
    ("top-p 0.9", lambda z: inference.keep_top_p(z, 0.9), theirs.TopPLogitsWarper(0.9)),
    ("min-p 0.1", lambda z: inference.keep_min_p(z, 0.1), theirs.MinPLogitsWarper(0.1)),
]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("name", "ours", "peer"), FILTERS, ids=[case[0] for case in FILTERS])
def test_filters_keep_the_tokens_that_transformers_keeps(agree, name, ours, peer, dtype):
    for seed in range(20):
        logits = (3 * np.random.default_rng(seed).normal(size=(4, 19))).astype(dtype)
        kept = peer(None, torch.tensor(logits))
        agree(f"filter: {name}", f"value, {dtype}", ours(logits), kept, within=1e-6 if dtype == "float32" else 1e-15)


# Whole texts


def generated(what, seed, tokens, **options):
    """The same continuation asked of both: ours, theirs."""
    peer = MODELS[what]()
    model = fresh(peer, seed)
    params, shared = peer.params(named(model)), {"pad_token_id": 1} | options
    ours = ml.generate(ml.Transformer(peer.our_config), params, tokens, **shared)
    settings = GenerationConfig(do_sample=False, bos_token_id=None, early_stopping=False, **shared)
    tokens = torch.tensor(tokens)
    answer = model.generate(tokens, attention_mask=torch.ones_like(tokens), generation_config=settings)
    return ours.tolist(), answer.tolist()


def prompts(seed, batch=3, length=4):
    return np.random.default_rng(seed).integers(6, VOCABULARY, size=(batch, length))


DECODERS = ["GPT-2", "LLaMA, grouped-query", "LLaMA, multi-query", "Mixtral"]


@pytest.mark.parametrize("what", DECODERS)
@pytest.mark.parametrize("seed", range(3))
def test_greedy_texts_are_the_same(what, seed):
    ours, peers = generated(what, seed, prompts(seed), max_new_tokens=8)
    assert ours == peers
    ours, peers = generated(what, seed, prompts(seed), max_new_tokens=8, repetition_penalty=1.5)
    assert ours == peers


@pytest.mark.parametrize("what", DECODERS)
@pytest.mark.parametrize("num_beams", [2, 4])
@pytest.mark.parametrize("length_penalty", [0.0, 1.0, 2.0])
def test_beam_search_finds_the_same_texts(what, num_beams, length_penalty):
    for seed in range(3):
        for ends in ({}, {"eos_token_id": [5, 6, 7]}):
            ours, peers = generated(
                what, seed, prompts(seed), max_new_tokens=6, num_beams=num_beams, length_penalty=length_penalty, **ends
            )
            assert ours == peers
