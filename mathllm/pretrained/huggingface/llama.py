"""LLaMA, and Mixtral, in which experts take the place of the feed-forward network."""

from ...transformer import llama_config, mixtral_config
from .kinds import _Kind, _our_hidden_sizes, _their_hidden_sizes
from .rotary import _our_rotary, _their_scaling

_ATTENTION = """
    model.embed_tokens.weight                  = embedding
    model.layers.{l}.input_layernorm.weight    = blocks.{l}.attention_norm.gain
    model.layers.{l}.self_attn.q_proj.weight   = blocks.{l}.attention.query ᵀ
    model.layers.{l}.self_attn.k_proj.weight   = blocks.{l}.attention.key ᵀ
    model.layers.{l}.self_attn.v_proj.weight   = blocks.{l}.attention.value ᵀ
    model.layers.{l}.self_attn.o_proj.weight   = blocks.{l}.attention.output ᵀ
    model.layers.{l}.post_attention_layernorm.weight = blocks.{l}.feed_forward_norm.gain
    model.norm.weight                          = final_norm.gain
"""
_NETWORK = """
    model.layers.{l}.mlp.gate_proj.weight      = blocks.{l}.feed_forward.gate ᵀ
    model.layers.{l}.mlp.up_proj.weight        = blocks.{l}.feed_forward.up ᵀ
    model.layers.{l}.mlp.down_proj.weight      = blocks.{l}.feed_forward.down ᵀ
"""
_EXPERTS = """
    model.layers.{l}.block_sparse_moe.gate.weight           = blocks.{l}.feed_forward.router ᵀ
    model.layers.{l}.block_sparse_moe.experts.{e}.w1.weight = blocks.{l}.feed_forward.experts.{e}.gate ᵀ
    model.layers.{l}.block_sparse_moe.experts.{e}.w3.weight = blocks.{l}.feed_forward.experts.{e}.up ᵀ
    model.layers.{l}.block_sparse_moe.experts.{e}.w2.weight = blocks.{l}.feed_forward.experts.{e}.down ᵀ
"""


def _our_decoder(given, *, context, kv_heads=None, epsilon, base):
    sizes = _our_hidden_sizes(given, "silu", tied=False)
    context = given.get("max_position_embeddings", context)
    if given.get("sliding_window", context) < context:
        raise ValueError(f"from_hf() does not support a sliding_window of {given['sliding_window']} tokens")
    return sizes | _our_rotary(given, base, context) | {
        "context": context, "kv_heads": given.get("num_key_value_heads", kv_heads or sizes["heads"]),
        "head_width": given.get("head_dim", sizes["width"] // sizes["heads"]),
        "norm_epsilon": given.get("rms_norm_eps", epsilon),
    }  # fmt: skip


def _their_decoder(config):
    return _their_hidden_sizes(config) | {
        "num_key_value_heads": config.kv_heads, "head_dim": config.head_width, "rms_norm_eps": config.norm_epsilon,
        "rope_theta": config.rope_base, "rope_scaling": _their_scaling(config), "attention_bias": False,
    }  # fmt: skip


def _read_llama(given):
    return llama_config(**_our_decoder(given, context=2048, epsilon=1e-6, base=1e4))


def _write_llama(config):
    return _their_decoder(config) | {"architectures": ["LlamaForCausalLM"], "mlp_bias": False}


def _read_mixtral(given):
    decoder = _our_decoder(given, context=131072, kv_heads=8, epsilon=1e-5, base=1e6)
    experts, used = given.get("num_local_experts", 8), given.get("num_experts_per_tok", 2)
    return mixtral_config(**decoder, experts=experts, experts_used=used)


def _write_mixtral(config):
    return _their_decoder(config) | {
        "architectures": ["MixtralForCausalLM"], "num_local_experts": config.experts,
        "num_experts_per_tok": config.experts_used, "sliding_window": None,
    }  # fmt: skip


_SHARED = {
    "body": "model.", "embedding": "model.embed_tokens.weight", "no_part": r"\.rotary_emb\.inv_freq$",
}  # fmt: skip
_LLAMA = _Kind(
    "llama", names=lambda config: _ATTENTION + _NETWORK, read=_read_llama, write=_write_llama,
    only={"attention_bias": False, "mlp_bias": False}, **_SHARED,
)  # fmt: skip
_MIXTRAL = _Kind(
    "mixtral", names=lambda config: _ATTENTION + _EXPERTS, read=_read_mixtral, write=_write_mixtral,
    only={"attention_bias": False}, **_SHARED,
)  # fmt: skip
