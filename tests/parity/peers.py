"""Tiny models of transformers with random weights, and the same models as ours: a configuration and its parameters."""

from typing import NamedTuple

import numpy as np
import torch
import transformers

import mathllm as ml
from mathllm.pretrained.huggingface import from_hf

VOCABULARY, WIDTH, HEADS, LAYERS, HIDDEN, CONTEXT = 31, 24, 4, 2, 40, 12


def published(tensors):
    """The tensors of a model under the names of its checkpoint, where each expert of Mixtral has three of its own."""
    found = {}
    for name, x in tensors.items():
        block, experts, part = name.partition(".mlp.experts.")
        if not experts:
            found[name.replace(".mlp.gate.", ".block_sparse_moe.gate.")] = x
            continue
        parts = {"gate_up_proj": ("w1", "w3"), "down_proj": ("w2",)}[part]
        for number, expert in enumerate(x):
            for own, matrix in zip(parts, np.split(expert, len(parts)), strict=True):
                found[f"{block}.block_sparse_moe.experts.{number}.{own}.weight"] = matrix
    return found


class Peer(NamedTuple):
    theirs: type
    their_config: object
    our_config: ml.Config
    casts: bool = True

    def params(self, tensors):
        """Their tensors, or the gradients of these, as our parameters."""
        return from_hf(self.their_config.to_dict(), published(tensors))[1]


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
    return Peer(transformers.GPT2LMHeadModel, config, ml.gpt2_config(tied=tied, **SIZES), casts=False)


def llama(kv_heads=HEADS, tied=False, head_width=None, rope=None, context=CONTEXT, **choices):
    config = transformers.LlamaConfig(
        **THEIR_SIZES | {"max_position_embeddings": context},
        num_key_value_heads=kv_heads, tie_word_embeddings=tied, rms_norm_eps=1e-6,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0} | (rope or {}),
        **({"head_dim": head_width} if head_width else {}),
    )  # fmt: skip
    sizes = SIZES | {"kv_heads": kv_heads, "hidden": HIDDEN, "head_width": head_width, "context": context}
    return Peer(transformers.LlamaForCausalLM, config, ml.llama_config(tied=tied, **sizes, **choices))


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
    return Peer(transformers.MixtralForCausalLM, config, ml.transformer.mixtral_config(**sizes))


def bert():
    config = transformers.BertConfig(**THEIR_SIZES, pad_token_id=None)  # else its row would get no gradient
    return Peer(transformers.BertForMaskedLM, config, ml.transformer.bert_config(hidden=HIDDEN, **SIZES), casts=False)


MODELS = {
    "GPT-2": gpt2,
    "GPT-2, untied": lambda: gpt2(tied=False),
    "LLaMA, multi-head": llama,
    "LLaMA, grouped-query": lambda: llama(kv_heads=2),
    "LLaMA, grouped-query, tied": lambda: llama(kv_heads=2, tied=True),
    "LLaMA, multi-query": lambda: llama(kv_heads=1),
    "LLaMA, wide heads": lambda: llama(kv_heads=2, head_width=10),
    "LLaMA, RoPE of base 500,000, stretched": lambda: llama(
        rope={"rope_type": "linear", "factor": 4.0, "rope_theta": 5e5}, rope_base=5e5,
        rope_scaling=ml.RotaryScaling("linear", 4.0),
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
