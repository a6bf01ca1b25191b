"""BERT: an encoder, with or without the head that fills in masked words."""

from ...transformer import bert_config
from .kinds import _Kind, _our_hidden_sizes, _require_whole_heads, _their_hidden_sizes

_NAMES = """
    bert.embeddings.word_embeddings.weight       = embedding
    bert.embeddings.position_embeddings.weight   = positions
    bert.embeddings.token_type_embeddings.weight = segments
    bert.embeddings.LayerNorm.weight             = embedding_norm.gain
    bert.embeddings.LayerNorm.bias               = embedding_norm.bias
    bert.encoder.layer.{l}.attention.self.query.weight       = blocks.{l}.attention.query ᵀ
    bert.encoder.layer.{l}.attention.self.query.bias         = blocks.{l}.attention.query_bias
    bert.encoder.layer.{l}.attention.self.key.weight         = blocks.{l}.attention.key ᵀ
    bert.encoder.layer.{l}.attention.self.key.bias           = blocks.{l}.attention.key_bias
    bert.encoder.layer.{l}.attention.self.value.weight       = blocks.{l}.attention.value ᵀ
    bert.encoder.layer.{l}.attention.self.value.bias         = blocks.{l}.attention.value_bias
    bert.encoder.layer.{l}.attention.output.dense.weight     = blocks.{l}.attention.output ᵀ
    bert.encoder.layer.{l}.attention.output.dense.bias       = blocks.{l}.attention.output_bias
    bert.encoder.layer.{l}.attention.output.LayerNorm.weight = blocks.{l}.attention_norm.gain
    bert.encoder.layer.{l}.attention.output.LayerNorm.bias   = blocks.{l}.attention_norm.bias
    bert.encoder.layer.{l}.intermediate.dense.weight         = blocks.{l}.feed_forward.up ᵀ
    bert.encoder.layer.{l}.intermediate.dense.bias           = blocks.{l}.feed_forward.up_bias
    bert.encoder.layer.{l}.output.dense.weight               = blocks.{l}.feed_forward.down ᵀ
    bert.encoder.layer.{l}.output.dense.bias                 = blocks.{l}.feed_forward.down_bias
    bert.encoder.layer.{l}.output.LayerNorm.weight           = blocks.{l}.feed_forward_norm.gain
    bert.encoder.layer.{l}.output.LayerNorm.bias             = blocks.{l}.feed_forward_norm.bias
"""
_HEAD = """
    cls.predictions.transform.dense.weight     = head.transform ᵀ
    cls.predictions.transform.dense.bias       = head.transform_bias
    cls.predictions.transform.LayerNorm.weight = head.norm.gain
    cls.predictions.transform.LayerNorm.bias   = head.norm.bias
    cls.predictions.bias                       = head.bias
"""


def _read(given):
    sizes = _our_hidden_sizes(given, "gelu", tied=True)
    _require_whole_heads(sizes["width"], sizes["heads"])
    return bert_config(
        **sizes, context=given.get("max_position_embeddings", 512), segments=given.get("type_vocab_size", 2),
        norm_epsilon=given.get("layer_norm_eps", 1e-12),
    )  # fmt: skip


def _write(config):
    return _their_hidden_sizes(config) | {
        "architectures": ["BertForMaskedLM" if config.head_transform else "BertModel"],
        "layer_norm_eps": config.norm_epsilon, "type_vocab_size": config.segments, "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    }  # fmt: skip


_BERT = _Kind(
    "bert", names=lambda config: _NAMES + (_HEAD if config.head_transform else ""), read=_read, write=_write,
    body="bert.", embedding="bert.embeddings.word_embeddings.weight", unembedding="cls.predictions.decoder.weight",
    copies={"cls.predictions.decoder.bias": "cls.predictions.bias"},
    no_part=r"\.position_ids$|^bert\.pooler\.|^cls\.seq_relationship\.",
    only={"is_decoder": False, "add_cross_attention": False, "position_embedding_type": "absolute"},
)  # fmt: skip
