"""Whole models: a tiny GPT-2, LLaMA, Mixtral and BERT of transformers with random weights, and ours with the same.

Every number of the peer is used, gains and biases are not left at one and zero, and all gradients are compared.

transformers computes some steps in float32 even in a float64 model: RMS norm, the angles of RoPE, Mixtral's router, and
the logits inside the loss of a decoder. So we are held against it twice: as it is, to 10⁻⁵ where such a step is
involved, and with these casts lifted (its own code, in which float32 means float64), to 10⁻⁹.
"""

import importlib
from typing import NamedTuple

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import transformers

import mathllm as ml
from mathllm.gradient_descent import tree_leaves

VOCABULARY, WIDTH, HEADS, LAYERS, HIDDEN, CONTEXT = 31, 24, 4, 2, 40, 12
TIGHT, FLOAT32 = 1e-9, 1e-5


@pytest.fixture(params=["as it is", "casts lifted"])
def casts(request, monkeypatch):
    """The peer as it is, or with float32 read as float64 in its models and its loss."""
    if request.param == "casts lifted":
        for name in ("models.llama.modeling_llama", "models.mixtral.modeling_mixtral", "modeling_rope_utils"):
            monkeypatch.setattr(importlib.import_module(f"transformers.{name}"), "torch", _Wide())
        monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.double)
    return request.param


class _Wide:
    float = float32 = torch.float64

    def __getattr__(self, name):
        return getattr(torch, name)


# The same weights under our names. Each mapping is linear, so it takes gradients to gradients, too.


def linear(tensors, name, ours):
    """A torch.nn.Linear keeps its matrix transposed."""
    found = {ours: tensors[f"{name}.weight"].T}
    return found | ({f"{ours}_bias": tensors[f"{name}.bias"]} if f"{name}.bias" in tensors else {})


def norm(tensors, name):
    gain = {"gain": tensors[f"{name}.weight"]}
    return gain | ({"bias": tensors[f"{name}.bias"]} if f"{name}.bias" in tensors else {})


def from_gpt2(t):
    def block(b):
        parts = {}
        for kind in ("weight", "bias"):  # three matrices side by side, not transposed
            for part, x in zip(("query", "key", "value"), np.split(t[f"{b}.attn.c_attn.{kind}"], 3, -1), strict=True):
                parts[part if kind == "weight" else f"{part}_bias"] = x
        parts |= {"output": t[f"{b}.attn.c_proj.weight"], "output_bias": t[f"{b}.attn.c_proj.bias"]}
        network = {"up": "c_fc.weight", "up_bias": "c_fc.bias", "down": "c_proj.weight", "down_bias": "c_proj.bias"}
        return {
            "attention_norm": norm(t, f"{b}.ln_1"), "attention": parts, "feed_forward_norm": norm(t, f"{b}.ln_2"),
            "feed_forward": {ours: t[f"{b}.mlp.{theirs}"] for ours, theirs in network.items()},
        }  # fmt: skip

    params = {
        "embedding": t["transformer.wte.weight"], "positions": t["transformer.wpe.weight"],
        "blocks": [block(f"transformer.h.{i}") for i in range(LAYERS)], "final_norm": norm(t, "transformer.ln_f"),
    }  # fmt: skip
    return params | ({"unembedding": t["lm_head.weight"].T} if "lm_head.weight" in t else {})


def from_llama(t):
    def network(b):
        if f"{b}.mlp.gate.weight" not in t:
            names = {"gate": "gate_proj", "up": "up_proj", "down": "down_proj"}
            return {ours: t[f"{b}.mlp.{theirs}.weight"].T for ours, theirs in names.items()}
        experts = []  # Mixtral: gates and ups of an expert lie in one array
        for both, down in zip(t[f"{b}.mlp.experts.gate_up_proj"], t[f"{b}.mlp.experts.down_proj"], strict=True):
            gate, up = np.split(both, 2)
            experts.append({"gate": gate.T, "up": up.T, "down": down.T})
        return {"router": t[f"{b}.mlp.gate.weight"].T, "experts": experts}

    def block(b):
        names = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "o_proj"}
        return {
            "attention_norm": norm(t, f"{b}.input_layernorm"),
            "attention": {ours: t[f"{b}.self_attn.{theirs}.weight"].T for ours, theirs in names.items()},
            "feed_forward_norm": norm(t, f"{b}.post_attention_layernorm"), "feed_forward": network(b),
        }  # fmt: skip

    params = {
        "embedding": t["model.embed_tokens.weight"], "blocks": [block(f"model.layers.{i}") for i in range(LAYERS)],
        "final_norm": norm(t, "model.norm"),
    }  # fmt: skip
    return params | ({"unembedding": t["lm_head.weight"].T} if "lm_head.weight" in t else {})


def from_bert(t):
    def block(b):
        attention = {}
        for part in ("query", "key", "value"):
            attention |= linear(t, f"{b}.attention.self.{part}", part)
        network = linear(t, f"{b}.intermediate.dense", "up") | linear(t, f"{b}.output.dense", "down")
        return {
            "attention": attention | linear(t, f"{b}.attention.output.dense", "output"),
            "attention_norm": norm(t, f"{b}.attention.output.LayerNorm"),
            "feed_forward": network, "feed_forward_norm": norm(t, f"{b}.output.LayerNorm"),
        }  # fmt: skip

    table, head = "bert.embeddings", "cls.predictions"
    return {
        "embedding": t[f"{table}.word_embeddings.weight"], "positions": t[f"{table}.position_embeddings.weight"],
        "segments": t[f"{table}.token_type_embeddings.weight"], "embedding_norm": norm(t, f"{table}.LayerNorm"),
        "blocks": [block(f"bert.encoder.layer.{i}") for i in range(LAYERS)],
        "head": linear(t, f"{head}.transform.dense", "transform")
        | {"norm": norm(t, f"{head}.transform.LayerNorm"), "bias": t[f"{head}.bias"]},
    }  # fmt: skip


# The models


class Peer(NamedTuple):
    theirs: type
    their_config: object
    our_config: ml.Config
    params: object
    casts: bool = True


SIZES = {"vocabulary": VOCABULARY, "width": WIDTH, "heads": HEADS, "layers": LAYERS, "context": CONTEXT}
THEIR_SIZES = {
    "vocab_size": VOCABULARY, "hidden_size": WIDTH, "num_attention_heads": HEADS, "num_hidden_layers": LAYERS,
    "intermediate_size": HIDDEN, "max_position_embeddings": CONTEXT, "bos_token_id": None, "eos_token_id": None,
}  # fmt: skip


def gpt2(tied=True):
    sizes = {"n_embd": WIDTH, "n_head": HEADS, "n_layer": LAYERS, "n_positions": CONTEXT}
    config = transformers.GPT2Config(
        vocab_size=VOCABULARY, bos_token_id=None, eos_token_id=None, tie_word_embeddings=tied, **sizes
    )
    return Peer(transformers.GPT2LMHeadModel, config, ml.gpt2_config(tied=tied, **SIZES), from_gpt2, casts=False)


def llama(kv_heads=HEADS, tied=False, head_width=None, rope=None, **choices):
    config = transformers.LlamaConfig(
        **THEIR_SIZES, num_key_value_heads=kv_heads, tie_word_embeddings=tied, rms_norm_eps=1e-6,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0} | (rope or {}),
        **({"head_dim": head_width} if head_width else {}),
    )  # fmt: skip
    sizes = SIZES | {"kv_heads": kv_heads, "hidden": HIDDEN, "head_width": head_width}
    return Peer(transformers.LlamaForCausalLM, config, ml.llama_config(tied=tied, **sizes, **choices), from_llama)


def mixtral(used=2):
    config = transformers.MixtralConfig(
        **THEIR_SIZES, num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=used, rms_norm_eps=1e-5,
        rope_parameters={"rope_type": "default", "rope_theta": 1e6},
        experts_implementation="eager",  # the grouped kernel has no float64
    )  # fmt: skip
    sizes = SIZES | {"kv_heads": 2, "hidden": HIDDEN, "experts": 4, "experts_used": used}
    return Peer(transformers.MixtralForCausalLM, config, ml.mixtral_config(**sizes), from_llama)


def bert():
    config = transformers.BertConfig(**THEIR_SIZES, pad_token_id=None)  # else its row would get no gradient
    return Peer(transformers.BertForMaskedLM, config, ml.bert_config(hidden=HIDDEN, **SIZES), from_bert, casts=False)


MODELS = {
    "GPT-2": gpt2,
    "GPT-2, untied": lambda: gpt2(tied=False),
    "LLaMA, multi-head": llama,
    "LLaMA, multi-head, tied": lambda: llama(tied=True),
    "LLaMA, grouped-query": lambda: llama(kv_heads=2),
    "LLaMA, grouped-query, tied": lambda: llama(kv_heads=2, tied=True),
    "LLaMA, multi-query": lambda: llama(kv_heads=1),
    "LLaMA, multi-query, tied": lambda: llama(kv_heads=1, tied=True),
    "LLaMA, wide heads": lambda: llama(kv_heads=2, head_width=10),
    "LLaMA, RoPE of base 500,000": lambda: llama(rope={"rope_theta": 5e5}, rope_base=5e5),
    "LLaMA, RoPE stretched": lambda: llama(
        rope={"rope_type": "linear", "factor": 4.0}, rope_scaling="linear", rope_factor=4.0
    ),
    "Mixtral": mixtral,
    "Mixtral, one expert": lambda: mixtral(used=1),
    "BERT": bert,
}


def fresh(peer, seed=0):
    """The peer in float64 with random parameters, all of them, large enough that every step bends."""
    rng = np.random.default_rng(seed)
    model = peer.theirs(peer.their_config).to(torch.float64).eval()
    randomise(model, rng)
    return model


def randomise(model, rng):
    with torch.no_grad():
        for name, p in model.named_parameters():
            gain = p.ndim < 2 and "bias" not in name
            scale = 0.3 if p.ndim < 2 else p.shape[-1] ** -0.5
            p.copy_(torch.tensor(scale * rng.normal(size=tuple(p.shape)) + gain))


def named(model, gradients=False):
    return {n: (p.grad if gradients else p).detach().numpy().copy() for n, p in model.named_parameters()}


def text(side="right"):
    """Three sequences of 12, 9 and 2 tokens, padded on one side: tokens, marks, labels (−100 at the padding)."""
    tokens = np.random.default_rng(0).integers(0, VOCABULARY, size=(3, CONTEXT))
    marks = np.arange(CONTEXT) < np.array([[CONTEXT], [CONTEXT - 3], [2]])
    marks = marks if side == "right" else marks[:, ::-1]
    return tokens, marks.astype(np.int64), np.where(marks, tokens, -100)


def compared(agree, what, peer, tokens, marks, labels, within, segments=None):
    """Logits at every token, loss, and the gradient of every parameter."""
    model = fresh(peer)
    ours, params = ml.Transformer(peer.our_config), peer.params(named(model))
    assert sum(leaf.size for leaf in tree_leaves(params)) == sum(p.numel() for p in model.parameters())
    theirs = {"attention_mask": marks, "labels": labels} | ({} if segments is None else {"token_type_ids": segments})
    answer = model(torch.tensor(tokens), **{name: torch.tensor(value) for name, value in theirs.items()})
    seen = marks.astype(bool)
    logits = ours(params, tokens, marks, segments=segments)
    agree(what, "logits", logits[seen], answer.logits[torch.tensor(seen)], within=within)

    shift = peer.our_config.causal  # the loss once more, where the peer takes it in float32
    predicted, wanted = (answer.logits[:, :-1], labels[:, 1:]) if shift else (answer.logits, labels)
    loss = F.cross_entropy(predicted.flatten(0, 1), torch.tensor(wanted).flatten())
    loss.backward()
    our_loss, slopes = ml.value_and_grad(lambda p: ours.loss(p, tokens, labels, marks, segments=segments))(params)
    agree(what, "loss", our_loss, loss, within=within)
    agree(what, "its own loss", our_loss, answer.loss.double(), within=max(within, FLOAT32))
    their_slopes = tree_leaves(peer.params(named(model, gradients=True)))
    for ours_, theirs_ in zip(tree_leaves(slopes), their_slopes, strict=True):
        agree(what, "gradients", ours_, theirs_, within=within)


def allowed(peer, casts):
    return FLOAT32 if peer.casts and casts == "as it is" else TIGHT


def title(what, casts):
    return what if casts == "as it is" else f"{what}, all float64"


@pytest.mark.parametrize("what", MODELS)
def test_logits_loss_and_all_gradients_are_those_of_transformers(agree, casts, what):
    peer = MODELS[what]()
    compared(agree, title(what, casts), peer, *text(), allowed(peer, casts))


@pytest.mark.parametrize("what", ["LLaMA, grouped-query", "Mixtral"])
def test_padding_on_the_left_changes_nothing_where_positions_are_distances(agree, casts, what):
    peer = MODELS[what]()
    compared(agree, title(f"{what}, padded left", casts), peer, *text("left"), allowed(peer, casts))


def test_bert_fills_in_masked_tokens_of_two_segments(agree):
    tokens, marks, _ = text()
    masked = np.random.default_rng(1).random(tokens.shape) < 0.4
    labels = np.where(masked & (marks == 1), tokens, -100)
    segments = np.broadcast_to(np.arange(CONTEXT) >= 5, tokens.shape).astype(np.int64)
    compared(agree, "BERT, masked tokens", bert(), np.where(masked, 3, tokens), marks, labels, TIGHT, segments)


@pytest.mark.parametrize("what", ["GPT-2", "LLaMA, grouped-query", "Mixtral", "BERT"])
def test_a_single_token_is_a_text_too(agree, casts, what):
    peer = MODELS[what]()
    model, tokens = fresh(peer), np.array([[7]])
    logits = ml.Transformer(peer.our_config)(peer.params(named(model)), tokens)
    theirs = model(torch.tensor(tokens)).logits
    agree(title(f"{what}, one token", casts), "logits", logits, theirs, within=allowed(peer, casts))


@pytest.mark.parametrize("what", ["GPT-2", "LLaMA, grouped-query", "BERT"])
def test_recorded_intermediates_are_those_of_transformers(agree, casts, what):
    peer = MODELS[what]()
    peer.their_config._attn_implementation = "eager"  # the fused kernel never forms the weights
    model, (tokens, _, _) = fresh(peer), text()
    theirs = model(torch.tensor(tokens), output_attentions=True, output_hidden_states=True)
    record, within = {}, FLOAT32 if casts == "as it is" and what.startswith("LLaMA") else TIGHT
    ml.Transformer(peer.our_config)(peer.params(named(model)), tokens, record=record)
    outputs = [record[f"blocks.{layer}.output"] for layer in range(LAYERS - 1)] + [record["final_norm"]]
    for ours, their_output in zip([record["embeddings"], *outputs], theirs.hidden_states, strict=True):
        agree(title(what, casts), "residual stream", ours, their_output, within=within)
    for layer, weights in enumerate(theirs.attentions):
        ours = record[f"blocks.{layer}.attention.weights"]
        agree(title(what, casts), "weights", ours, weights, within=within)


# An encoder and a decoder: PyTorch's own, between our embedding and unembedding


def from_pytorch(t, layers):
    def attention(name):
        parts = {"output": t[f"{name}.out_proj.weight"].T, "output_bias": t[f"{name}.out_proj.bias"]}
        for kind, ending in (("weight", ""), ("bias", "_bias")):
            both = np.split(t[f"{name}.in_proj_{kind}"], 3)
            parts |= {f"{part}{ending}": x.T for part, x in zip(("query", "key", "value"), both, strict=True)}
        return parts

    def block(b, cross):
        found = {"attention_norm": norm(t, f"{b}.norm1"), "attention": attention(f"{b}.self_attn")}
        if cross:
            found |= {"cross_norm": norm(t, f"{b}.norm2"), "cross_attention": attention(f"{b}.multihead_attn")}
        network = linear(t, f"{b}.linear1", "up") | linear(t, f"{b}.linear2", "down")
        return found | {"feed_forward_norm": norm(t, f"{b}.norm{3 if cross else 2}"), "feed_forward": network}

    return {
        "encoder": [block(f"encoder.layers.{i}", cross=False) for i in range(layers)],
        "encoder_norm": norm(t, "encoder.norm"), "final_norm": norm(t, "decoder.norm"),
        "blocks": [block(f"decoder.layers.{i}", cross=True) for i in range(layers)],
    }  # fmt: skip


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")
def test_an_encoder_and_a_decoder_are_those_of_pytorch(agree):
    rng = np.random.default_rng(0)
    theirs = torch.nn.Transformer(
        WIDTH, HEADS, LAYERS, LAYERS, HIDDEN, dropout=0.0, activation="gelu", batch_first=True, norm_first=True,
        dtype=torch.float64,
    )  # fmt: skip
    randomise(theirs, rng)
    table = torch.tensor(rng.normal(size=(VOCABULARY, WIDTH)), requires_grad=True)
    config = ml.Config(**SIZES, hidden=HIDDEN, positions="none", activation="gelu", encoder_layers=LAYERS)
    (source, marks, _), target = text(), rng.integers(0, VOCABULARY, size=(3, 7))
    labels = np.where(rng.random(target.shape) < 0.8, rng.integers(0, VOCABULARY, size=target.shape), -100)
    padding = torch.tensor(marks == 0)
    logits = theirs(
        F.embedding(torch.tensor(source), table), F.embedding(torch.tensor(target), table),
        tgt_mask=torch.triu(torch.ones(7, 7, dtype=torch.bool), 1),
        src_key_padding_mask=padding, memory_key_padding_mask=padding,
    ) @ table.T  # fmt: skip
    loss = F.cross_entropy(logits.flatten(0, 1), torch.tensor(labels).flatten())
    loss.backward()

    ours, given = ml.Transformer(config), {"source": source, "source_mask": marks}
    params = from_pytorch(named(theirs), LAYERS) | {"embedding": table.detach().numpy().copy()}
    agree("encoder and decoder", "logits", ours(params, target, **given), logits, within=TIGHT)
    our_loss, slopes = ml.value_and_grad(lambda p: ours.loss(p, target, labels, **given))(params)
    agree("encoder and decoder", "loss", our_loss, loss, within=TIGHT)
    expected = from_pytorch(named(theirs, gradients=True), LAYERS) | {"embedding": table.grad.numpy()}
    for ours_, theirs_ in zip(tree_leaves(slopes), tree_leaves(expected), strict=True):
        agree("encoder and decoder", "gradients", ours_, theirs_, within=TIGHT)


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


def test_angles_of_a_longer_context_are_those_of_transformers(agree, casts):
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    within = FLOAT32 if casts == "as it is" else 1e-12
    for kind, ours in (("linear", "linear"), ("dynamic", "ntk")):
        rope = {"rope_type": kind, "factor": 4.0, "rope_theta": 1e4}
        config = transformers.LlamaConfig(**THEIR_SIZES | {"max_position_embeddings": 64}, rope_parameters=rope)
        # "dynamic" stretches as the text grows: (factor · length/trained − factor + 1) is 4 at this length
        frequencies, _ = ROPE_INIT_FUNCTIONS[kind](config, device="cpu", seq_len=64 * 7 // 4)
        angles = ml.rotary_angles([1], WIDTH // HEADS, scaling=ours, factor=4.0)[0]
        agree(title(f"rotary_angles, {ours}", casts), "value, float64", angles, frequencies.double(), within=within)
