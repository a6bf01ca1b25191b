"""T5: an encoder and a decoder, with one table of relative positions each, in the first block.

The first T5 divides the vectors by √D before the tied unembedding; 1.1 does not, and has gated networks.
"""

from ...transformer import t5_config
from .kinds import _THEIR_ACTIVATION, _Kind, _our_sizes

_NAMES = """
    shared.weight                                         = embedding
    encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight = encoder_positions
    encoder.block.{l}.layer.0.layer_norm.weight           = encoder.{l}.attention_norm.gain
    encoder.block.{l}.layer.0.SelfAttention.q.weight      = encoder.{l}.attention.query ᵀ
    encoder.block.{l}.layer.0.SelfAttention.k.weight      = encoder.{l}.attention.key ᵀ
    encoder.block.{l}.layer.0.SelfAttention.v.weight      = encoder.{l}.attention.value ᵀ
    encoder.block.{l}.layer.0.SelfAttention.o.weight      = encoder.{l}.attention.output ᵀ
    encoder.block.{l}.layer.1.layer_norm.weight           = encoder.{l}.feed_forward_norm.gain
    encoder.final_layer_norm.weight                       = encoder_norm.gain
    decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight = positions
    decoder.block.{l}.layer.0.layer_norm.weight           = blocks.{l}.attention_norm.gain
    decoder.block.{l}.layer.0.SelfAttention.q.weight      = blocks.{l}.attention.query ᵀ
    decoder.block.{l}.layer.0.SelfAttention.k.weight      = blocks.{l}.attention.key ᵀ
    decoder.block.{l}.layer.0.SelfAttention.v.weight      = blocks.{l}.attention.value ᵀ
    decoder.block.{l}.layer.0.SelfAttention.o.weight      = blocks.{l}.attention.output ᵀ
    decoder.block.{l}.layer.1.layer_norm.weight           = blocks.{l}.cross_norm.gain
    decoder.block.{l}.layer.1.EncDecAttention.q.weight    = blocks.{l}.cross_attention.query ᵀ
    decoder.block.{l}.layer.1.EncDecAttention.k.weight    = blocks.{l}.cross_attention.key ᵀ
    decoder.block.{l}.layer.1.EncDecAttention.v.weight    = blocks.{l}.cross_attention.value ᵀ
    decoder.block.{l}.layer.1.EncDecAttention.o.weight    = blocks.{l}.cross_attention.output ᵀ
    decoder.block.{l}.layer.2.layer_norm.weight           = blocks.{l}.feed_forward_norm.gain
    decoder.final_layer_norm.weight                       = final_norm.gain
"""
_PLAIN = """
    encoder.block.{l}.layer.1.DenseReluDense.wi.weight   = encoder.{l}.feed_forward.up ᵀ
    encoder.block.{l}.layer.1.DenseReluDense.wo.weight   = encoder.{l}.feed_forward.down ᵀ
    decoder.block.{l}.layer.2.DenseReluDense.wi.weight   = blocks.{l}.feed_forward.up ᵀ
    decoder.block.{l}.layer.2.DenseReluDense.wo.weight   = blocks.{l}.feed_forward.down ᵀ
"""
_GATED = """
    encoder.block.{l}.layer.1.DenseReluDense.wi_0.weight = encoder.{l}.feed_forward.gate ᵀ
    encoder.block.{l}.layer.1.DenseReluDense.wi_1.weight = encoder.{l}.feed_forward.up ᵀ
    encoder.block.{l}.layer.1.DenseReluDense.wo.weight   = encoder.{l}.feed_forward.down ᵀ
    decoder.block.{l}.layer.2.DenseReluDense.wi_0.weight = blocks.{l}.feed_forward.gate ᵀ
    decoder.block.{l}.layer.2.DenseReluDense.wi_1.weight = blocks.{l}.feed_forward.up ᵀ
    decoder.block.{l}.layer.2.DenseReluDense.wo.weight   = blocks.{l}.feed_forward.down ᵀ
"""


def _read(given):
    width, layers = given["d_model"], given.get("num_decoder_layers", given["num_layers"])
    *gated, activation = given.get("feed_forward_proj", "relu").split("-")
    activation = "gelu_new" if gated and activation == "gelu" else activation  # what "gated-gelu" means
    sizes = _our_sizes(given, width, given["num_heads"], layers, activation, tied=True)
    scaled = given.get("scale_decoder_outputs", sizes["tied"])
    return t5_config(
        **sizes, encoder_layers=given["num_layers"], head_width=given["d_kv"], hidden=given["d_ff"], gated=bool(gated),
        context=given.get("n_positions", 512), norm_epsilon=given.get("layer_norm_epsilon", 1e-6),
        position_buckets=given.get("relative_attention_num_buckets", 32),
        farthest_position=given.get("relative_attention_max_distance", 128),
        output_scale=width**-0.5 if scaled else 1.0,
    )  # fmt: skip


def _write(config):
    return {
        "architectures": ["T5ForConditionalGeneration"], "is_encoder_decoder": True, "d_model": config.width,
        "d_kv": config.head_width, "d_ff": config.hidden, "num_layers": config.encoder_layers,
        "num_decoder_layers": config.layers, "num_heads": config.heads, "n_positions": config.context,
        "feed_forward_proj": ("gated-" if config.gated else "") + _THEIR_ACTIVATION[config.activation],
        "relative_attention_num_buckets": config.position_buckets,
        "relative_attention_max_distance": config.farthest_position, "layer_norm_epsilon": config.norm_epsilon,
        "scale_decoder_outputs": config.output_scale != 1, "dropout_rate": 0.0,
    }  # fmt: skip


_T5 = _Kind(
    "t5", names=lambda config: _NAMES + (_GATED if config.gated else _PLAIN), read=_read, write=_write,
    body="", embedding="shared.weight", only={"is_encoder_decoder": True},
    copies={f"{stack}.embed_tokens.weight": "shared.weight" for stack in ("encoder", "decoder")},
    no_part=r"\.EncDecAttention\.relative_attention_bias\.weight$",
)  # fmt: skip
