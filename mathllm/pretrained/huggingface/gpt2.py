"""GPT-2: one matrix for queries, keys and values side by side, and none of them transposed."""

from ...transformer import gpt2_config
from .kinds import _THEIR_ACTIVATION, _Kind, _our_sizes, _require_whole_heads

_NAMES = """
    transformer.wte.weight                     = embedding
    transformer.wpe.weight                     = positions
    transformer.h.{l}.ln_1.weight              = blocks.{l}.attention_norm.gain
    transformer.h.{l}.ln_1.bias                = blocks.{l}.attention_norm.bias
    transformer.h.{l}.attn.c_attn.weight       = blocks.{l}.attention.query + .key + .value
    transformer.h.{l}.attn.c_attn.bias         = blocks.{l}.attention.query_bias + .key_bias + .value_bias
    transformer.h.{l}.attn.c_proj.weight       = blocks.{l}.attention.output
    transformer.h.{l}.attn.c_proj.bias         = blocks.{l}.attention.output_bias
    transformer.h.{l}.ln_2.weight              = blocks.{l}.feed_forward_norm.gain
    transformer.h.{l}.ln_2.bias                = blocks.{l}.feed_forward_norm.bias
    transformer.h.{l}.mlp.c_fc.weight          = blocks.{l}.feed_forward.up
    transformer.h.{l}.mlp.c_fc.bias            = blocks.{l}.feed_forward.up_bias
    transformer.h.{l}.mlp.c_proj.weight        = blocks.{l}.feed_forward.down
    transformer.h.{l}.mlp.c_proj.bias          = blocks.{l}.feed_forward.down_bias
    transformer.ln_f.weight                    = final_norm.gain
    transformer.ln_f.bias                      = final_norm.bias
"""


def _read(given):
    width, heads = given["n_embd"], given["n_head"]
    _require_whole_heads(width, heads)
    activation = given.get("activation_function", "gelu_new")
    return gpt2_config(
        **_our_sizes(given, width, heads, given["n_layer"], activation, tied=True),
        hidden=given.get("n_inner", 4 * width), context=given.get("n_positions", 1024),
        norm_epsilon=given.get("layer_norm_epsilon", 1e-5),
    )  # fmt: skip


def _write(config):
    return {
        "architectures": ["GPT2LMHeadModel"], "n_positions": config.context, "n_embd": config.width,
        "n_layer": config.layers, "n_head": config.heads, "n_inner": config.hidden,
        "activation_function": _THEIR_ACTIVATION[config.activation], "layer_norm_epsilon": config.norm_epsilon,
        "attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0,
    }  # fmt: skip


_GPT2 = _Kind(
    "gpt2", names=lambda config: _NAMES, read=_read, write=_write,
    body="transformer.", embedding="transformer.wte.weight", no_part=r"\.attn\.(masked_)?bias$",
    only={"add_cross_attention": False, "scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False},
)  # fmt: skip
