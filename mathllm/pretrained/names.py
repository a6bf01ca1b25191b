"""The names of tensors and settings in checkpoints of the Hugging Face hub, beside ours: five families of models.

`tensors` has two columns, their name and the place of ours among the parameters, and is read in both directions:

    ᵀ        their matrix is (out, in), ours is (in, out); a bias stays as it is
    +        their tensor holds several of our parameters side by side
    {a,b}    one line for each: x.{a,b} = y.{c,d} stands for x.a = y.c and x.b = y.d
    {l} {e}  the number of a block and that of an expert

A line applies to models that have the parameters on its right side. `settings` does the same for config.json: the field
of our `Config`, their name, and what transformers assumes if it is absent (None: it follows from other settings).
"""

import dataclasses
import itertools
import re
from collections.abc import Callable, Collection, Iterator, Mapping

from ..transformer import Config, bert_config, gpt2_config, llama_config, mixtral_config, t5_config

NEEDED = object()
"""In place of a default: config.json must have this setting."""


@dataclasses.dataclass(frozen=True)
class Family:
    """The names of one family of models: of one `model_type` in config.json.

    preset: our configuration with the choices of the family   settings: our field -> (their name, default)
    body: how the names of most tensors begin; some checkpoints leave it out
    ignored: a pattern for tensors that no logit depends on   copies: names of tensors that may repeat another one
    only: settings of which our model supports one value   written: settings that we write and do not read
    """

    name: str
    preset: Callable[..., Config]
    body: str
    ignored: str
    settings: Mapping[str, tuple]
    only: Mapping
    written: Mapping
    tensors: str
    copies: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def lines(self) -> Iterator[tuple[str, list[str], bool]]:
        """The lines of `tensors`: their name, our places, and whether their matrix is transposed.

        >>> [theirs for theirs, ours, transposed in FAMILIES["gpt2"].lines()][:2]
        ['transformer.wte.weight', 'transformer.wpe.weight']
        """
        for line in self.tensors.strip().splitlines():
            for theirs, ours in zip(*map(_expanded, line.split(" = ")), strict=True):
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


def _expanded(text):
    """The lines for which {a,b} stands.

    >>> _expanded("{q,k}.{weight,bias}")
    ['q.weight', 'q.bias', 'k.weight', 'k.bias']
    """
    if not (group := re.search(r"\{([^{}]*,[^{}]*)\}", text)):
        return [text.strip()]
    return [line for part in group[1].split(",") for line in _expanded(text.replace(group[0], part))]


_SIZES = {
    "vocabulary": ("vocab_size", NEEDED), "width": ("hidden_size", NEEDED), "layers": ("num_hidden_layers", NEEDED),
    "heads": ("num_attention_heads", NEEDED), "hidden": ("intermediate_size", NEEDED),
    "tied": ("tie_word_embeddings", True),
}  # fmt: skip
_GPT2 = Family(
    "gpt2", gpt2_config, body="transformer.", ignored=r"\.attn\.(masked_)?bias$",
    settings=_SIZES | {
        "width": ("n_embd", NEEDED), "layers": ("n_layer", NEEDED), "heads": ("n_head", NEEDED),
        "hidden": ("n_inner", None), "context": ("n_positions", 1024), "norm_epsilon": ("layer_norm_epsilon", 1e-5),
        "activation": ("activation_function", "gelu_new"),
    },
    only={"add_cross_attention": False, "scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False},
    written={"architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0},
    tensors="""
    transformer.wte.weight                      = embedding
    transformer.wpe.weight                      = positions
    transformer.h.{l}.ln_1.{weight,bias}        = blocks.{l}.attention_norm.{gain,bias}
    transformer.h.{l}.attn.c_attn.{weight,bias} = blocks.{l}.attention.query{,_bias} + .key{,_bias} + .value{,_bias}
    transformer.h.{l}.attn.c_proj.{weight,bias} = blocks.{l}.attention.output{,_bias}
    transformer.h.{l}.ln_2.{weight,bias}        = blocks.{l}.feed_forward_norm.{gain,bias}
    transformer.h.{l}.mlp.c_fc.{weight,bias}    = blocks.{l}.feed_forward.up{,_bias}
    transformer.h.{l}.mlp.c_proj.{weight,bias}  = blocks.{l}.feed_forward.down{,_bias}
    transformer.ln_f.{weight,bias}              = final_norm.{gain,bias}
    lm_head.weight                              = unembedding ᵀ
    """,
)  # fmt: skip

_LLAMA = Family(
    "llama", llama_config, body="model.", ignored=r"\.rotary_emb\.inv_freq$",
    settings=_SIZES | {
        "kv_heads": ("num_key_value_heads", None), "head_width": ("head_dim", None), "rope_base": ("rope_theta", 1e4),
        "context": ("max_position_embeddings", 2048), "norm_epsilon": ("rms_norm_eps", 1e-6),
        "activation": ("hidden_act", "silu"), "tied": ("tie_word_embeddings", False),
    },
    only={"attention_bias": False, "mlp_bias": False},
    written={"architectures": ["LlamaForCausalLM"]},
    tensors="""
    model.embed_tokens.weight                                     = embedding
    model.layers.{l}.input_layernorm.weight                       = blocks.{l}.attention_norm.gain
    model.layers.{l}.self_attn.{q,k,v,o}_proj.weight              = blocks.{l}.attention.{query,key,value,output} ᵀ
    model.layers.{l}.post_attention_layernorm.weight              = blocks.{l}.feed_forward_norm.gain
    model.layers.{l}.mlp.{gate,up,down}_proj.weight               = blocks.{l}.feed_forward.{gate,up,down} ᵀ
    model.layers.{l}.block_sparse_moe.gate.weight                 = blocks.{l}.feed_forward.router ᵀ
    model.layers.{l}.block_sparse_moe.experts.{e}.w{1,3,2}.weight = blocks.{l}.feed_forward.experts.{e}.{gate,up,down} ᵀ
    model.norm.weight                                             = final_norm.gain
    lm_head.weight                                                = unembedding ᵀ
    """,
)  # fmt: skip

_MIXTRAL = dataclasses.replace(  # LLaMA with experts in place of the feed-forward network
    _LLAMA, name="mixtral", preset=mixtral_config, only={"attention_bias": False},
    settings=_LLAMA.settings | {
        "kv_heads": ("num_key_value_heads", 8), "context": ("max_position_embeddings", 131072),
        "norm_epsilon": ("rms_norm_eps", 1e-5), "rope_base": ("rope_theta", 1e6),
        "experts": ("num_local_experts", 8), "experts_used": ("num_experts_per_tok", 2),
    },
    written={"architectures": ["MixtralForCausalLM"], "sliding_window": None},
)  # fmt: skip

_BERT = Family(
    "bert", bert_config, body="bert.", ignored=r"\.position_ids$|^bert\.pooler\.|^cls\.seq_relationship\.",
    settings=_SIZES | {
        "context": ("max_position_embeddings", 512), "norm_epsilon": ("layer_norm_eps", 1e-12),
        "activation": ("hidden_act", "gelu"),
    },
    only={"is_decoder": False, "add_cross_attention": False, "position_embedding_type": "absolute"},
    written={"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0},
    copies={"cls.predictions.decoder.bias": "cls.predictions.bias"},
    tensors="""
    bert.embeddings.{word,position,token_type}_embeddings.weight    = {embedding,positions,segments}
    bert.embeddings.LayerNorm.{weight,bias}                         = embedding_norm.{gain,bias}
    bert.encoder.layer.{l}.attention.self.{query,key,value}.weight  = blocks.{l}.attention.{query,key,value} ᵀ
    bert.encoder.layer.{l}.attention.self.{query,key,value}.bias    = blocks.{l}.attention.{query,key,value}_bias
    bert.encoder.layer.{l}.attention.output.dense.{weight,bias}     = blocks.{l}.attention.output{,_bias} ᵀ
    bert.encoder.layer.{l}.attention.output.LayerNorm.{weight,bias} = blocks.{l}.attention_norm.{gain,bias}
    bert.encoder.layer.{l}.intermediate.dense.{weight,bias}         = blocks.{l}.feed_forward.up{,_bias} ᵀ
    bert.encoder.layer.{l}.output.dense.{weight,bias}               = blocks.{l}.feed_forward.down{,_bias} ᵀ
    bert.encoder.layer.{l}.output.LayerNorm.{weight,bias}           = blocks.{l}.feed_forward_norm.{gain,bias}
    cls.predictions.transform.dense.{weight,bias}                   = head.transform{,_bias} ᵀ
    cls.predictions.transform.LayerNorm.{weight,bias}               = head.norm.{gain,bias}
    cls.predictions.bias                                            = head.bias
    cls.predictions.decoder.weight                                  = unembedding ᵀ
    """,
)  # fmt: skip

# The first T5 divides the last vectors by √D before the tied unembedding; T5 1.1 does not, and its networks are gated.
_T5 = Family(
    "t5", t5_config, body="", ignored=r"\.EncDecAttention\.relative_attention_bias\.weight$",
    settings=_SIZES | {
        "width": ("d_model", NEEDED), "head_width": ("d_kv", NEEDED), "hidden": ("d_ff", NEEDED),
        "heads": ("num_heads", NEEDED), "context": ("n_positions", 512), "norm_epsilon": ("layer_norm_epsilon", 1e-6),
        "layers": ("num_decoder_layers", None), "encoder_layers": ("num_layers", NEEDED),
        "activation": ("feed_forward_proj", "relu"),
    },
    only={"is_encoder_decoder": True},
    written={"architectures": ["T5ForConditionalGeneration"], "dropout_rate": 0.0},
    copies={f"{stack}.embed_tokens.weight": "shared.weight" for stack in ("encoder", "decoder")},
    tensors="""
    shared.weight                                              = embedding
    encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight = encoder_positions
    encoder.block.{l}.layer.{0,1}.layer_norm.weight            = encoder.{l}.{attention,feed_forward}_norm.gain
    encoder.block.{l}.layer.0.SelfAttention.{q,k,v,o}.weight   = encoder.{l}.attention.{query,key,value,output} ᵀ
    encoder.block.{l}.layer.1.DenseReluDense.{wi_0,wo}.weight  = encoder.{l}.feed_forward.{gate,down} ᵀ
    encoder.block.{l}.layer.1.DenseReluDense.{up}.weight       = encoder.{l}.feed_forward.up ᵀ
    encoder.final_layer_norm.weight                            = encoder_norm.gain
    decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight = positions
    decoder.block.{l}.layer.{0,1,2}.layer_norm.weight          = blocks.{l}.{attention,cross,feed_forward}_norm.gain
    decoder.block.{l}.layer.0.SelfAttention.{q,k,v,o}.weight   = blocks.{l}.attention.{query,key,value,output} ᵀ
    decoder.block.{l}.layer.1.EncDecAttention.{q,k,v,o}.weight = blocks.{l}.cross_attention.{query,key,value,output} ᵀ
    decoder.block.{l}.layer.2.DenseReluDense.{wi_0,wo}.weight  = blocks.{l}.feed_forward.{gate,down} ᵀ
    decoder.block.{l}.layer.2.DenseReluDense.{up}.weight       = blocks.{l}.feed_forward.up ᵀ
    decoder.final_layer_norm.weight                            = final_norm.gain
    lm_head.weight                                             = unembedding ᵀ
    """,
)  # fmt: skip

FAMILIES = {family.name: family for family in (_GPT2, _LLAMA, _MIXTRAL, _BERT, _T5)}
"""The families by the `model_type` in config.json."""
