"""The names of tensors and settings in checkpoints of the Hugging Face hub, beside ours: five families of models.

`tensors` has two columns, their name and the place of ours among the parameters, and is read in both directions. "ᵀ":
their matrix is (out, in), ours is (in, out). "+": their tensor holds several of our parameters side by side. {l} is the
number of a block, {e} that of an expert. A line applies to models that have the parameters on its right side.

`settings` does the same for config.json: the field of our `Config`, and their name of it.
"""

import dataclasses
import itertools
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

from ..transformer import Config, bert_config, gpt2_config, llama_config, mixtral_config, t5_config

__all__ = ["FAMILIES", "Family"]


@dataclass(frozen=True)
class Family:
    """The names of one family of models: of one `model_type` in config.json.

    preset: our configuration with the choices of the family   settings: our field -> their name in config.json
    defaults: what transformers assumes for a setting that is absent; None if it follows from other settings
    only: settings of which our model supports one value   constants: settings that we write and do not read
    body: how the names of most tensors begin; some checkpoints leave it out
    ignored: a pattern for tensors that no logit depends on   copies: names of tensors that may repeat another one
    """

    name: str
    preset: Callable[..., Config]
    body: str
    ignored: str
    tensors: str
    settings: Mapping[str, str]
    defaults: Mapping
    only: Mapping
    constants: Mapping
    copies: Mapping[str, str] = field(default_factory=dict)

    def lines(self) -> Iterator[tuple[str, list[str], bool]]:
        """The lines of `tensors`: their name, our places, and whether their matrix is transposed.

        >>> next(FAMILIES["llama"].lines())
        ('model.embed_tokens.weight', ['embedding'], False)
        """
        for line in self.tensors.strip().splitlines():
            theirs, _, ours = map(str.strip, line.partition(" = "))
            first, *others = ours.removesuffix(" ᵀ").split(" + ")
            group = first.rpartition(".")[0]
            yield theirs, [first, *(group + other for other in others)], ours.endswith("ᵀ")

    def names(self, config: Config, places: Collection[str]) -> dict[str, tuple[list[str], bool]]:
        """Their name -> (our places, whether their matrix is transposed), for a model with parameters at `places`.

        >>> FAMILIES["llama"].names(llama_config(layers=1), ["embedding", "blocks.0.attention.query"])
        {'model.embed_tokens.weight': (['embedding'], False),
         'model.layers.0.self_attn.q_proj.weight': (['blocks.0.attention.query'], True)}
        """
        blocks, experts = max(config.layers, config.encoder_layers), max(config.experts, 1)
        up = "wi_1" if config.gated else "wi"  # the name depends on the model in T5 alone
        found = {}
        for (theirs, ours, transposed), l, e in itertools.product(self.lines(), range(blocks), range(experts)):
            ours = [place.format(l=l, e=e) for place in ours]
            if all(place in places for place in ours):
                found[theirs.format(l=l, e=e, up=up)] = ours, transposed
        return found


_COMMON = {"vocabulary": "vocab_size", "tied": "tie_word_embeddings"}
_HIDDEN = _COMMON | {
    "width": "hidden_size", "layers": "num_hidden_layers", "heads": "num_attention_heads",
    "hidden": "intermediate_size", "context": "max_position_embeddings", "activation": "hidden_act",
}  # fmt: skip
_DECODER = _HIDDEN | {
    "kv_heads": "num_key_value_heads", "head_width": "head_dim", "norm_epsilon": "rms_norm_eps",
    "rope_base": "rope_theta",
}  # fmt: skip

_GPT2 = Family(
    "gpt2", gpt2_config, body="transformer.", ignored=r"\.attn\.(masked_)?bias$",
    settings=_COMMON | {
        "width": "n_embd", "layers": "n_layer", "heads": "n_head", "hidden": "n_inner", "context": "n_positions",
        "activation": "activation_function", "norm_epsilon": "layer_norm_epsilon",
    },
    defaults={
        "n_inner": None, "n_positions": 1024, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5,
        "tie_word_embeddings": True,
    },
    only={"add_cross_attention": False, "scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False},
    constants={"architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0},
    tensors="""
        transformer.wte.weight                = embedding
        lm_head.weight                        = unembedding ᵀ
        transformer.wpe.weight                = positions
        transformer.h.{l}.ln_1.weight         = blocks.{l}.attention_norm.gain
        transformer.h.{l}.ln_1.bias           = blocks.{l}.attention_norm.bias
        transformer.h.{l}.attn.c_attn.weight  = blocks.{l}.attention.query + .key + .value
        transformer.h.{l}.attn.c_attn.bias    = blocks.{l}.attention.query_bias + .key_bias + .value_bias
        transformer.h.{l}.attn.c_proj.weight  = blocks.{l}.attention.output
        transformer.h.{l}.attn.c_proj.bias    = blocks.{l}.attention.output_bias
        transformer.h.{l}.ln_2.weight         = blocks.{l}.feed_forward_norm.gain
        transformer.h.{l}.ln_2.bias           = blocks.{l}.feed_forward_norm.bias
        transformer.h.{l}.mlp.c_fc.weight     = blocks.{l}.feed_forward.up
        transformer.h.{l}.mlp.c_fc.bias       = blocks.{l}.feed_forward.up_bias
        transformer.h.{l}.mlp.c_proj.weight   = blocks.{l}.feed_forward.down
        transformer.h.{l}.mlp.c_proj.bias     = blocks.{l}.feed_forward.down_bias
        transformer.ln_f.weight               = final_norm.gain
        transformer.ln_f.bias                 = final_norm.bias
    """,
)  # fmt: skip

_LLAMA = Family(
    "llama", llama_config, body="model.", ignored=r"\.rotary_emb\.inv_freq$", settings=_DECODER,
    defaults={
        "max_position_embeddings": 2048, "num_key_value_heads": None, "head_dim": None, "rms_norm_eps": 1e-6,
        "hidden_act": "silu", "tie_word_embeddings": False, "rope_theta": 1e4,
    },
    only={"attention_bias": False, "mlp_bias": False},
    constants={"architectures": ["LlamaForCausalLM"], "attention_bias": False, "mlp_bias": False},
    tensors="""
        model.embed_tokens.weight                               = embedding
        lm_head.weight                                          = unembedding ᵀ
        model.layers.{l}.input_layernorm.weight                 = blocks.{l}.attention_norm.gain
        model.layers.{l}.self_attn.q_proj.weight                = blocks.{l}.attention.query ᵀ
        model.layers.{l}.self_attn.k_proj.weight                = blocks.{l}.attention.key ᵀ
        model.layers.{l}.self_attn.v_proj.weight                = blocks.{l}.attention.value ᵀ
        model.layers.{l}.self_attn.o_proj.weight                = blocks.{l}.attention.output ᵀ
        model.layers.{l}.post_attention_layernorm.weight        = blocks.{l}.feed_forward_norm.gain
        model.layers.{l}.mlp.gate_proj.weight                   = blocks.{l}.feed_forward.gate ᵀ
        model.layers.{l}.mlp.up_proj.weight                     = blocks.{l}.feed_forward.up ᵀ
        model.layers.{l}.mlp.down_proj.weight                   = blocks.{l}.feed_forward.down ᵀ
        model.layers.{l}.block_sparse_moe.gate.weight           = blocks.{l}.feed_forward.router ᵀ
        model.layers.{l}.block_sparse_moe.experts.{e}.w1.weight = blocks.{l}.feed_forward.experts.{e}.gate ᵀ
        model.layers.{l}.block_sparse_moe.experts.{e}.w3.weight = blocks.{l}.feed_forward.experts.{e}.up ᵀ
        model.layers.{l}.block_sparse_moe.experts.{e}.w2.weight = blocks.{l}.feed_forward.experts.{e}.down ᵀ
        model.norm.weight                                       = final_norm.gain
    """,
)  # fmt: skip

_MIXTRAL = dataclasses.replace(  # LLaMA with experts in place of the feed-forward network
    _LLAMA, name="mixtral", preset=mixtral_config,
    settings=_DECODER | {"experts": "num_local_experts", "experts_used": "num_experts_per_tok"},
    defaults=_LLAMA.defaults | {
        "max_position_embeddings": 131072, "num_key_value_heads": 8, "rms_norm_eps": 1e-5, "rope_theta": 1e6,
        "num_local_experts": 8, "num_experts_per_tok": 2,
    },
    only={"attention_bias": False},
    constants={"architectures": ["MixtralForCausalLM"], "attention_bias": False, "sliding_window": None},
)  # fmt: skip

_BERT = Family(
    "bert", bert_config, body="bert.", ignored=r"\.position_ids$|^bert\.pooler\.|^cls\.seq_relationship\.",
    settings=_HIDDEN | {"norm_epsilon": "layer_norm_eps"},
    defaults={
        "max_position_embeddings": 512, "type_vocab_size": 2, "layer_norm_eps": 1e-12, "hidden_act": "gelu",
        "tie_word_embeddings": True,
    },
    only={"is_decoder": False, "add_cross_attention": False, "position_embedding_type": "absolute"},
    constants={"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0},
    copies={"cls.predictions.decoder.bias": "cls.predictions.bias"},
    tensors="""
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
        cls.predictions.transform.dense.weight                   = head.transform ᵀ
        cls.predictions.transform.dense.bias                     = head.transform_bias
        cls.predictions.transform.LayerNorm.weight               = head.norm.gain
        cls.predictions.transform.LayerNorm.bias                 = head.norm.bias
        cls.predictions.bias                                     = head.bias
        cls.predictions.decoder.weight                           = unembedding ᵀ
    """,
)  # fmt: skip

# The first T5 divides the last vectors by √D before the tied unembedding; T5 1.1 does not, and its networks are gated.
_T5 = Family(
    "t5", t5_config, body="", ignored=r"\.EncDecAttention\.relative_attention_bias\.weight$",
    settings=_COMMON | {
        "width": "d_model", "head_width": "d_kv", "hidden": "d_ff", "heads": "num_heads",
        "layers": "num_decoder_layers", "encoder_layers": "num_layers", "context": "n_positions",
        "norm_epsilon": "layer_norm_epsilon",
    },
    defaults={
        "num_decoder_layers": None, "n_positions": 512, "relative_attention_num_buckets": 32,
        "relative_attention_max_distance": 128, "layer_norm_epsilon": 1e-6, "feed_forward_proj": "relu",
        "tie_word_embeddings": True,
    },
    only={"is_encoder_decoder": True},
    constants={"architectures": ["T5ForConditionalGeneration"], "is_encoder_decoder": True, "dropout_rate": 0.0},
    copies={f"{stack}.embed_tokens.weight": "shared.weight" for stack in ("encoder", "decoder")},
    tensors="""
        shared.weight                                         = embedding
        lm_head.weight                                        = unembedding ᵀ
        encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight = encoder_positions
        encoder.block.{l}.layer.0.layer_norm.weight           = encoder.{l}.attention_norm.gain
        encoder.block.{l}.layer.0.SelfAttention.q.weight      = encoder.{l}.attention.query ᵀ
        encoder.block.{l}.layer.0.SelfAttention.k.weight      = encoder.{l}.attention.key ᵀ
        encoder.block.{l}.layer.0.SelfAttention.v.weight      = encoder.{l}.attention.value ᵀ
        encoder.block.{l}.layer.0.SelfAttention.o.weight      = encoder.{l}.attention.output ᵀ
        encoder.block.{l}.layer.1.layer_norm.weight           = encoder.{l}.feed_forward_norm.gain
        encoder.block.{l}.layer.1.DenseReluDense.wi_0.weight  = encoder.{l}.feed_forward.gate ᵀ
        encoder.block.{l}.layer.1.DenseReluDense.{up}.weight  = encoder.{l}.feed_forward.up ᵀ
        encoder.block.{l}.layer.1.DenseReluDense.wo.weight    = encoder.{l}.feed_forward.down ᵀ
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
        decoder.block.{l}.layer.2.DenseReluDense.wi_0.weight  = blocks.{l}.feed_forward.gate ᵀ
        decoder.block.{l}.layer.2.DenseReluDense.{up}.weight  = blocks.{l}.feed_forward.up ᵀ
        decoder.block.{l}.layer.2.DenseReluDense.wo.weight    = blocks.{l}.feed_forward.down ᵀ
        decoder.final_layer_norm.weight                       = final_norm.gain
    """,
)  # fmt: skip

FAMILIES = {family.name: family for family in (_GPT2, _LLAMA, _MIXTRAL, _BERT, _T5)}
"""The families by the `model_type` in config.json."""
