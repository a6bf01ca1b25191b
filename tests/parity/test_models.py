"""Whole models: a tiny GPT-2, LLaMA, Mixtral and BERT of transformers with random weights, and ours with the same.

Every number of the peer is used, gains and biases are not left at one and zero, and all gradients are compared.

transformers computes some steps in float32 even in a float64 model: RMS norm, the angles of RoPE, Mixtral's router, and
the logits inside the loss of a decoder. So we are held against it twice: as it is, to 10⁻⁵ where such a step is
involved, and with these casts lifted (its own code, in which float32 means float64), to 10⁻⁹.
"""

import importlib

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import transformers
from peers import CONTEXT, HEADS, HIDDEN, LAYERS, MODELS, SIZES, VOCABULARY, WIDTH, Peer, bert, fresh, llama, named

import mathllm as ml
from mathllm.pretrained.huggingface import from_hf, load_pretrained, save_pretrained
from mathllm.transformer import T5Parts
from mathllm.trees import tree_leaves

TIGHT, FLOAT32 = 1e-9, 1e-5


@pytest.fixture(params=["as it is", "casts lifted"])
def casts(request, monkeypatch):
    """The peer as it is, or with float32 read as float64 in its models and its loss."""
    if request.param == "casts lifted":
        models = (f"models.{name}.modeling_{name}" for name in ("llama", "mixtral", "t5"))
        for name in (*models, "modeling_rope_utils"):
            monkeypatch.setattr(importlib.import_module(f"transformers.{name}"), "torch", _Wide())
        monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.double)
        torch.set_default_dtype(torch.float64)  # a quotient of whole numbers, as the growing RoPE has it
    yield request.param
    torch.set_default_dtype(torch.float32)


class _Wide:
    float = float32 = torch.float64

    def __getattr__(self, name):
        return getattr(torch, name)


def text():
    """Three sequences of 12, 9 and 2 tokens, padded behind: tokens, marks, labels (−100 at the padding)."""
    tokens = np.random.default_rng(0).integers(0, VOCABULARY, size=(3, CONTEXT))
    marks = np.arange(CONTEXT) < np.array([[CONTEXT], [CONTEXT - 3], [2]])
    return tokens, marks.astype(np.int64), np.where(marks, tokens, -100)


def compared(agree, what, peer, tokens, marks, labels, within, segments=None):
    """Logits at every token, loss, and the gradient of every parameter."""
    model = fresh(peer)
    theirs = {"input_ids": tokens, "attention_mask": marks, "labels": labels}
    theirs |= {} if segments is None else {"token_type_ids": segments}
    answer = model(**{name: torch.tensor(value) for name, value in theirs.items()})
    given = {"attention_mask": marks, "segments": segments}
    our_loss = trained_alike(agree, what, peer, model, answer.logits, (tokens, labels), within, marks > 0, given)
    agree(what, "its own loss", our_loss, answer.loss.double(), within=max(within, FLOAT32))


def trained_alike(agree, what, peer, model, logits, texts, within, seen, given):
    """Logits where tokens are seen, loss and gradients, with the logits of the peer; our loss."""
    (tokens, labels), ours, params = texts, ml.Transformer(peer.our_config), peer.params(named(model))
    assert sum(leaf.size for leaf in tree_leaves(params)) == sum(p.numel() for p in model.parameters())
    agree(what, "logits", ours(params, tokens, **given)[seen], logits[torch.tensor(seen)], within=within)
    shift = peer.our_config.causal and not peer.our_config.encoder_layers
    predicted, wanted = (logits[:, :-1], labels[:, 1:]) if shift else (logits, labels)
    loss = F.cross_entropy(predicted.flatten(0, 1), torch.tensor(wanted).flatten())  # the peer takes it in float32
    loss.backward()
    our_loss, slopes = ml.value_and_grad(lambda p: ours.loss(p, tokens, labels, **given))(params)
    agree(what, "loss", our_loss, loss, within=within)
    their_slopes = tree_leaves(peer.params(named(model, gradients=True)))
    for ours_, theirs_ in zip(tree_leaves(slopes), their_slopes, strict=True):
        agree(what, "gradients", ours_, theirs_, within=within)
    return our_loss


def allowed(peer, casts):
    return FLOAT32 if peer.casts and casts == "as it is" else TIGHT


def title(what, casts):
    return what if casts == "as it is" else f"{what}, all float64"


@pytest.mark.parametrize("what", MODELS)
def test_logits_loss_and_all_gradients_are_those_of_transformers(agree, casts, what):
    peer = MODELS[what]()
    compared(agree, title(what, casts), peer, *text(), allowed(peer, casts))


def test_bert_fills_in_masked_tokens_of_two_segments(agree):
    tokens, marks, _ = text()
    masked = np.random.default_rng(1).random(tokens.shape) < 0.4
    labels = np.where(masked & (marks == 1), tokens, -100)
    segments = np.broadcast_to(np.arange(CONTEXT) >= 5, tokens.shape).astype(np.int64)
    compared(agree, "BERT, masked tokens", bert(), np.where(masked, 3, tokens), marks, labels, TIGHT, segments)


@pytest.mark.parametrize("what", ["GPT-2", "LLaMA, grouped-query", "BERT"])
def test_recorded_intermediates_are_those_of_transformers(agree, casts, what):
    peer = MODELS[what]()
    peer.their_config._attn_implementation = "eager"  # the fused kernel never forms the weights
    model, (tokens, _, _) = fresh(peer), text()
    theirs = model(torch.tensor(tokens), output_attentions=True, output_hidden_states=True)
    record, within = {}, FLOAT32 if casts == "as it is" and what.startswith("LLaMA") else TIGHT
    ml.Transformer(peer.our_config)(peer.params(named(model)), tokens, tap=ml.record_to(record))
    outputs = [record[f"blocks.{layer}.output"] for layer in range(LAYERS - 1)] + [record["final_norm"]]
    for ours, their_output in zip([record["embeddings"], *outputs], theirs.hidden_states, strict=True):
        agree(title(what, casts), "residual stream", ours, their_output, within=within)
    for layer, weights in enumerate(theirs.attentions):
        ours = record[f"blocks.{layer}.attention.weights"]
        agree(title(what, casts), "weights", ours, weights, within=within)


# T5: an encoder and a decoder, with tables of relative positions


def t5(what):
    """The first T5, or 1.1, which does not scale its last vectors; both see classes of distances up to 9."""
    first = what == "T5"
    sizes = {"d_model": WIDTH, "d_kv": 5, "d_ff": HIDDEN, "num_layers": LAYERS, "num_heads": HEADS}
    config = transformers.T5Config(
        vocab_size=VOCABULARY, **sizes, dropout_rate=0.0, feed_forward_proj="relu" if first else "gated-gelu",
        relative_attention_num_buckets=8, relative_attention_max_distance=9, tie_word_embeddings=first,
        pad_token_id=None, eos_token_id=None, decoder_start_token_id=0,
    )  # fmt: skip
    network = {} if first else {"activation": "gelu_tanh", "gated": True}
    parts = T5Parts(buckets=8, farthest=9, output_scale=WIDTH**-0.5 if first else 1.0)
    ours = ml.transformer.t5_config(**SIZES | {"context": 512}, head_width=5, hidden=HIDDEN, t5=parts, **network)
    return Peer(transformers.T5ForConditionalGeneration, config, ours)


@pytest.mark.parametrize("what", ["T5", "T5 1.1"])
def test_an_encoder_and_a_decoder_are_those_of_t5(agree, casts, what):
    peer, rng = t5(what), np.random.default_rng(0)
    theirs, what, within = fresh(peer), title(what, casts), allowed(peer, casts)  # RMS norm in float32
    (source, marks, _), target = text(), rng.integers(0, VOCABULARY, size=(3, 11))
    labels = np.where(rng.random(target.shape) < 0.8, rng.integers(0, VOCABULARY, size=target.shape), -100)
    inputs = {"input_ids": source, "attention_mask": marks, "decoder_input_ids": target}
    logits = theirs(**{name: torch.tensor(value) for name, value in inputs.items()}).logits
    given, seen = {"source": source, "source_mask": marks}, np.ones(target.shape, bool)
    trained_alike(agree, what, peer, theirs, logits, (target, labels), within, seen, given)


@pytest.mark.parametrize("what", ["T5", "T5 1.1"])
def test_checkpoints_of_t5_go_both_ways(agree, tmp_path, what):
    peer = t5(what)
    theirs = fresh(peer)
    theirs.save_pretrained(tmp_path / "theirs")
    config, params = load_pretrained(tmp_path / "theirs")
    assert config == peer.our_config
    save_pretrained(tmp_path / "ours", config, params)
    again, found = type(theirs).from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not any(found.values()), found
    tokens = np.random.default_rng(0).integers(0, VOCABULARY, size=(2, 2, CONTEXT))
    source, target = map(torch.tensor, tokens)
    logits = ml.Transformer(config)(params, tokens[1], source=tokens[0])
    agree(f"{what}, saved by us", "logits", logits, again(source, decoder_input_ids=target).logits, within=FLOAT32)


# Rotary positions by themselves


@pytest.mark.parametrize("pairing", ["half", "adjacent"])
def test_rotations_are_those_of_llama_and_of_gpt_j(agree, pairing):
    from transformers.models.gptj.modeling_gptj import apply_rotary_pos_emb as turn_adjacent
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb as turn_half

    rng = np.random.default_rng(0)
    x, angles = rng.normal(size=(2, 3, 9, 8)), ml.rotary_angles(np.arange(9), 8)
    tensor, turns = torch.tensor(x, requires_grad=True), torch.tensor(angles)
    if pairing == "half":
        both = torch.cat([turns, turns], dim=-1)[None]
        value, _ = turn_half(tensor, tensor, both.cos(), both.sin())
    else:  # GPT-J has the heads behind the positions
        value = turn_adjacent(tensor.transpose(1, 2), turns.sin()[None], turns.cos()[None]).transpose(1, 2)
    cotangent = rng.normal(size=x.shape)
    value.backward(torch.tensor(cotangent))
    our_value, pullback = ml.vjp(lambda x: ml.rotate(x, angles=angles, pairing=pairing), x)
    agree(f"rotate, {pairing}", "value, float64", our_value, value, within=1e-12)
    agree(f"rotate, {pairing}", "gradients, float64", pullback(cotangent)[0], tensor.grad, within=1e-12)


SHORT, LONG = (np.linspace(1, end, 8).tolist() for end in (1.5, 6.0))


@pytest.mark.parametrize(
    "settings",
    [
        {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 4096},
        {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 32768, "rope_theta": 1e6},
        {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8, "beta_fast": 4.0, "beta_slow": 0.5},
        {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8, "truncate": False},
        {"rope_type": "yarn", "factor": 40.0, "original_max_position_embeddings": 8, "attention_factor": 0.8},
        {"rope_type": "yarn", "factor": 40.0, "original_max_position_embeddings": 8, "mscale": 0.7},
        {"rope_type": "yarn", "factor": 40.0, "mscale": 0.7, "mscale_all_dim": 1.2},
        {"rope_type": "longrope", "original_max_position_embeddings": 6, "short_factor": SHORT, "long_factor": LONG},
        {
            "rope_type": "longrope", "original_max_position_embeddings": 6, "short_factor": SHORT, "long_factor": LONG,
            "factor": 3.0, "attention_factor": 1.3,
        },
        {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0},
        {
            "rope_type": "llama3", "factor": 32.0, "low_freq_factor": 0.1, "high_freq_factor": 1.5,
            "original_max_position_embeddings": 8,
        },
    ],
    ids=lambda settings: ", ".join(f"{name} {value}" for name, value in settings.items() if name != "rope_type"),
)  # fmt: skip
def test_settings_of_rotary_positions_are_read_as_transformers_reads_them(agree, casts, settings):
    model = fresh(llama(rope=settings, head_width=16))
    config, _params = from_hf(model.config.to_dict(), named(model))
    angles, theirs = ml.rotary_angles([1], 16, config.rope_base, config.rope_scaling)[0], model.model.rotary_emb
    what, within = title(f"rotary_angles, {settings['rope_type']}", casts), FLOAT32 if casts == "as it is" else 1e-12
    agree(what, "value, float64", angles, theirs.inv_freq.double(), within=within)
    assert config.score_scale * np.sqrt(16) == pytest.approx(theirs.attention_scaling**2, rel=1e-12)
