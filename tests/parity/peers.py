"""Tiny models of transformers with random weights, and what makes them ours: a configuration and a mapping of names."""

from typing import NamedTuple

import numpy as np
import torch
import transformers

import mathllm as ml

VOCABULARY, WIDTH, HEADS, LAYERS, HIDDEN, CONTEXT = 31, 24, 4, 2, 40, 12


# The same weights under our names, written out by hand. The mappings are linear: they take gradients to gradients.


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
            "feed_forward_norm": norm(t, f"{b}.post_attention_layernorm"),
            "feed_forward": network(b),
        }

    params = {
        "embedding": t["model.embed_tokens.weight"],
        "blocks": [block(f"model.layers.{i}") for i in range(LAYERS)],
        "final_norm": norm(t, "model.norm"),
    }
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
            "feed_forward": network,
            "feed_forward_norm": norm(t, f"{b}.output.LayerNorm"),
        }

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


def llama(kv_heads=HEADS, tied=False, head_width=None, rope=None, context=CONTEXT, **choices):
    config = transformers.LlamaConfig(
        **THEIR_SIZES | {"max_position_embeddings": context},
        num_key_value_heads=kv_heads, tie_word_embeddings=tied, rms_norm_eps=1e-6,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0} | (rope or {}),
        **({"head_dim": head_width} if head_width else {}),
    )  # fmt: skip
    sizes = SIZES | {"kv_heads": kv_heads, "hidden": HIDDEN, "head_width": head_width, "context": context}
    return Peer(transformers.LlamaForCausalLM, config, ml.llama_config(tied=tied, **sizes, **choices), from_llama)


def longrope(trained):
    short, long = [1.0, 1.25, 1.5], [2.0, 3.0, 5.0]
    rope = {"rope_type": "longrope", "factor": 4.0, "original_max_position_embeddings": trained}
    scaling = ml.RotaryScaling("longrope", 4.0, trained=trained, short=tuple(short), long=tuple(long))
    return llama(rope=rope | {"short_factor": short, "long_factor": long}, rope_scaling=scaling)


def mixtral(used=2):
    config = transformers.MixtralConfig(
        **THEIR_SIZES, num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=used, rms_norm_eps=1e-5,
        rope_parameters={"rope_type": "default", "rope_theta": 1e6},
        experts_implementation="eager",  # the grouped kernel has no float64
    )  # fmt: skip
    sizes = SIZES | {"kv_heads": 2, "hidden": HIDDEN, "experts": 4, "experts_used": used}
    return Peer(transformers.MixtralForCausalLM, config, ml.transformer.mixtral_config(**sizes), from_llama)


def bert():
    config = transformers.BertConfig(**THEIR_SIZES, pad_token_id=None)  # else its row would get no gradient
    return Peer(
        transformers.BertForMaskedLM, config, ml.transformer.bert_config(hidden=HIDDEN, **SIZES), from_bert, casts=False
    )


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
        rope={"rope_type": "linear", "factor": 4.0}, rope_scaling=ml.RotaryScaling("linear", 4.0)
    ),
    "LLaMA, RoPE stretched by YaRN": lambda: llama(
        rope={"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": CONTEXT},
        rope_scaling=ml.RotaryScaling("yarn", 4.0),
    ),
    "LLaMA, RoPE stretched by a YaRN with settings": lambda: llama(
        rope={
            "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 5, "beta_fast": 2.0,
            "beta_slow": 0.1, "truncate": False, "attention_factor": 1.5,
        },
        rope_scaling=ml.RotaryScaling(
            "yarn", 4.0, trained=5, turns=(0.1, 2.0), whole_pairs=False, attention_factor=1.5
        ),
    ),
    "LLaMA, RoPE stretched by Llama 3's rule": lambda: llama(
        rope={
            "rope_type": "llama3", "factor": 4.0, "original_max_position_embeddings": 8, "low_freq_factor": 0.05,
            "high_freq_factor": 1.0,
        },
        rope_scaling=ml.RotaryScaling("llama3", 4.0, trained=8, turns=(0.05, 1.0)),
    ),
    "LLaMA, RoPE that stretches as the text grows": lambda: llama(
        rope={"rope_type": "dynamic", "factor": 4.0}, rope_scaling=ml.RotaryScaling("dynamic", 4.0), context=5
    ),
    "LLaMA, RoPE with a number for each pair": lambda: longrope(trained=CONTEXT),
    "LLaMA, RoPE with others for long texts": lambda: longrope(trained=5),
    "Mixtral": mixtral,
    "Mixtral, one expert": lambda: mixtral(used=1),
    "BERT": bert,
}  # fmt: skip


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
