"""The same weights under two sets of names: ours, and those of the checkpoints on the Hugging Face hub.

A checkpoint is a table `config.json` and tensors by name. `from_hf` turns both into our `Config` and parameters,
`to_hf` goes back; each undoes the other, and since every step is a renaming, a transposition or a cut, both do for
gradients what they do for weights. What our model cannot express is refused, never left out in silence: a checkpoint
that loads gives the numbers of the original.
"""

import dataclasses
import json
import math
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ..attention import RotaryScaling
from ..errors import ShapeError, suggest
from ..transformer import Config, bert_config, gpt2_config, llama_config, mixtral_config
from . import safetensors
from .gguf import GGUF

__all__ = ["from_hf", "gguf_to_hf", "load_pretrained", "save_pretrained", "to_hf", "to_hf_config"]

# Their name = our path. "ᵀ": they keep (out, in), we (in, out). "+": they keep side by side what we keep apart.

_GPT2 = """
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
_LLAMA_ATTENTION = """
    model.embed_tokens.weight                  = embedding
    model.layers.{l}.input_layernorm.weight    = blocks.{l}.attention_norm.gain
    model.layers.{l}.self_attn.q_proj.weight   = blocks.{l}.attention.query ᵀ
    model.layers.{l}.self_attn.k_proj.weight   = blocks.{l}.attention.key ᵀ
    model.layers.{l}.self_attn.v_proj.weight   = blocks.{l}.attention.value ᵀ
    model.layers.{l}.self_attn.o_proj.weight   = blocks.{l}.attention.output ᵀ
    model.layers.{l}.post_attention_layernorm.weight = blocks.{l}.feed_forward_norm.gain
    model.norm.weight                          = final_norm.gain
"""
_LLAMA = _LLAMA_ATTENTION + """
    model.layers.{l}.mlp.gate_proj.weight      = blocks.{l}.feed_forward.gate ᵀ
    model.layers.{l}.mlp.up_proj.weight        = blocks.{l}.feed_forward.up ᵀ
    model.layers.{l}.mlp.down_proj.weight      = blocks.{l}.feed_forward.down ᵀ
"""  # fmt: skip
_MIXTRAL = _LLAMA_ATTENTION + """
    model.layers.{l}.block_sparse_moe.gate.weight           = blocks.{l}.feed_forward.router ᵀ
    model.layers.{l}.block_sparse_moe.experts.{e}.w1.weight = blocks.{l}.feed_forward.experts.{e}.gate ᵀ
    model.layers.{l}.block_sparse_moe.experts.{e}.w3.weight = blocks.{l}.feed_forward.experts.{e}.up ᵀ
    model.layers.{l}.block_sparse_moe.experts.{e}.w2.weight = blocks.{l}.feed_forward.experts.{e}.down ᵀ
"""  # fmt: skip
_BERT = """
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
_BERT_HEAD = """
    cls.predictions.transform.dense.weight     = head.transform ᵀ
    cls.predictions.transform.dense.bias       = head.transform_bias
    cls.predictions.transform.LayerNorm.weight = head.norm.gain
    cls.predictions.transform.LayerNorm.bias   = head.norm.bias
    cls.predictions.bias                       = head.bias
"""
_TABLES = {"gpt2": _GPT2, "llama": _LLAMA, "mixtral": _MIXTRAL, "bert": _BERT}
_BODY = {"gpt2": "transformer.", "llama": "model.", "mixtral": "model.", "bert": "bert."}
_UNEMBEDDING = {"bert": "cls.predictions.decoder.weight"}  # others: lm_head.weight
_EMBEDDING = {
    "gpt2": "transformer.wte.weight",
    "bert": "bert.embeddings.word_embeddings.weight",
    "llama": "model.embed_tokens.weight",
    "mixtral": "model.embed_tokens.weight",
}
_NO_PART = {  # what checkpoints carry that no logit depends on: constants, and heads for other tasks
    "gpt2": r"\.attn\.(masked_)?bias$",
    "llama": r"\.rotary_emb\.inv_freq$",
    "mixtral": r"\.rotary_emb\.inv_freq$",
    "bert": r"\.position_ids$|^bert\.pooler\.|^cls\.seq_relationship\.",
}
_ONLY = {  # settings that our model knows one value of
    "gpt2": {"add_cross_attention": False, "scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False},
    "llama": {"attention_bias": False, "mlp_bias": False},
    "mixtral": {"attention_bias": False},
    "bert": {"is_decoder": False, "add_cross_attention": False, "position_embedding_type": "absolute"},
}
_ROPE_SCALINGS = ("linear", "dynamic", "yarn", "llama3")
_ACTIVATIONS = {
    "gelu_new": "gelu_tanh", "gelu": "gelu", "relu": "relu", "silu": "silu",
    "gelu_pytorch_tanh": "gelu_tanh", "gelu_fast": "gelu_tanh", "swish": "silu",
}  # fmt: skip
_THEIR_ACTIVATION = {ours: theirs for theirs, ours in reversed(_ACTIVATIONS.items())}


def from_hf(config: Mapping, tensors: Mapping[str, np.ndarray]) -> tuple[Config, dict]:
    """Our configuration and parameters for a checkpoint of type gpt2, llama, mixtral or bert.

    config: what config.json holds   tensors: arrays by their names there   ->   (Config, params)

    The parameters are views of the tensors, transposed where they have to be. Names may lack the prefix of the body
    ("h.0…" for "transformer.h.0…"). A BERT without cls.predictions has no head. What no logit depends on is passed
    over: BERT's pooler, constants such as position_ids.

    Raises: ValueError for missing or unexpected tensors and for settings that our model does not have; ShapeError for
    a tensor of another shape than the configuration says.

    >>> from mathllm.transformer import Transformer
    >>> config = gpt2_config(vocabulary=5, width=4, layers=1, heads=2, context=3)
    >>> tensors = to_hf(config, Transformer(config).init(np.random.default_rng(0)))
    >>> from_hf(to_hf_config(config), tensors)[0] == config
    True
    """
    kind = _model_type(config)
    found = {_with_body(kind, name): name for name in tensors}
    if len(found) < len(tensors):
        raise ValueError(f"from_hf() got a tensor twice, with {_BODY[kind]!r} before its name and without")
    head = any(name.startswith("cls.predictions.") for name in found)
    ours = _read_config(config, head=head)
    names = _names(ours, kind)
    copies = _copies(ours, kind)
    for copy, original in copies.items():
        if copy in found and original not in found:
            found[original] = found.pop(copy)
    missing = [name for name in names if name not in found]
    extra = [n for n in found if n not in names and n not in copies and not re.search(_NO_PART[kind], n)]
    if missing or extra:
        problems = [f"misses {_some(missing)}"] * bool(missing) + [f"does not expect {_some(extra)}"] * bool(extra)
        hint = suggest(missing[0], extra) if missing else ""
        raise ValueError(f"from_hf(), for a {kind} of {ours.layers} layers, {' and '.join(problems)}{hint}")
    params = {}
    for name, (paths, transposed) in names.items():
        array = np.asarray(tensors[found[name]])
        shapes = [_shape(ours, path) for path in paths]
        expected = (*shapes[0][:-1], sum(shape[-1] for shape in shapes))
        expected = expected[::-1] if transposed else expected
        if array.shape != expected:
            raise ShapeError(f"from_hf() needs {name} of shape {expected}, got {array.shape}")
        parts = np.split(array.T if transposed else array, np.cumsum([s[-1] for s in shapes])[:-1], axis=-1)
        for path, part in zip(paths, parts, strict=True):
            _put(params, path.split("."), part)
    for copy, original in copies.items():
        if copy in found and not np.array_equal(tensors[found[copy]], tensors[found[original]], equal_nan=True):
            raise ValueError(f"from_hf() needs {copy} to equal {original}, to which the configuration ties it")
    return ours, params


def to_hf(config: Config, params: Mapping) -> dict[str, np.ndarray]:
    """Parameters, or gradients, under the names of a Hugging Face checkpoint: the inverse of `from_hf`.

    config, params: as of `Transformer`   ->   name -> array, for the model type that `to_hf_config` tells

    Raises: ValueError for a model that is none of gpt2, llama, mixtral and bert, and for missing or unexpected
    parameters; ShapeError for a parameter of another shape than the configuration says.

    >>> from mathllm.transformer import Transformer
    >>> config = llama_config(vocabulary=5, width=4, layers=1, heads=2, hidden=6)
    >>> to_hf(config, Transformer(config).init(np.random.default_rng(0)))["model.layers.0.mlp.up_proj.weight"].shape
    (6, 4)
    """
    kind = to_hf_config(config)["model_type"]
    leaves = dict(_leaves(params))
    names = _names(config, kind)
    wanted = {path for paths, _transposed in names.values() for path in paths}
    missing, extra = [path for path in wanted if path not in leaves], [path for path in leaves if path not in wanted]
    if missing or extra:
        problems = [f"misses {_some(sorted(missing))}"] * bool(missing)
        problems += [f"does not expect {_some(extra)}"] * bool(extra)
        raise ValueError(f"to_hf(), for a {kind} of {config.layers} layers, {' and '.join(problems)}")
    for path, array in leaves.items():
        if np.shape(array) != _shape(config, path):
            raise ShapeError(f"to_hf() needs {path} of shape {_shape(config, path)}, got {np.shape(array)}")
    tensors = {}
    for name, (paths, transposed) in names.items():
        parts = [np.asarray(leaves[path]) for path in paths]
        joined = np.concatenate(parts, axis=-1) if len(parts) > 1 else parts[0]
        if kind == "bert" and not config.head_transform:
            name = name.removeprefix("bert.")  # so it is called in a BertModel without a head
        tensors[name] = joined.T if transposed else joined
    return tensors


def to_hf_config(config: Config) -> dict:
    """The table config.json of a model, as transformers wants it; `from_hf` makes the same `Config` of it.

    An encoder is a bert, a decoder with experts a mixtral, one with RMS norm a llama, any other a gpt2. Special tokens
    are not set, for a `Config` knows none, and dropout is 0.

    Raises: ValueError for a configuration that the Hugging Face type cannot express, with the fields that differ.

    >>> to_hf_config(llama_config(layers=4))["num_hidden_layers"]
    4
    """
    c = config
    kind = "mixtral" if c.experts else "llama" if c.norm == "rms" else "gpt2" if c.causal else "bert"
    table = {"model_type": kind, "vocab_size": c.vocabulary, "tie_word_embeddings": c.tied}
    table |= dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id"))
    if kind == "gpt2":
        table |= {
            "architectures": ["GPT2LMHeadModel"], "n_positions": c.context, "n_embd": c.width, "n_layer": c.layers,
            "n_head": c.heads, "n_inner": c.hidden, "activation_function": _THEIR_ACTIVATION[c.activation],
            "layer_norm_epsilon": c.norm_epsilon, "attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0,
        }  # fmt: skip
    else:
        table |= {
            "hidden_size": c.width, "num_hidden_layers": c.layers, "num_attention_heads": c.heads,
            "intermediate_size": c.hidden, "hidden_act": _THEIR_ACTIVATION[c.activation],
            "max_position_embeddings": c.context,
        }  # fmt: skip
    if kind == "bert":
        table |= {
            "architectures": ["BertForMaskedLM" if c.head_transform else "BertModel"],
            "layer_norm_eps": c.norm_epsilon, "type_vocab_size": c.segments, "hidden_dropout_prob": 0.0,
            "attention_probs_dropout_prob": 0.0,
        }  # fmt: skip
    elif kind != "gpt2":
        table |= {
            "architectures": [f"{kind.capitalize()}ForCausalLM"], "num_key_value_heads": c.kv_heads,
            "head_dim": c.head_width, "rms_norm_eps": c.norm_epsilon, "rope_theta": c.rope_base,
            "rope_scaling": _their_scaling(c), "attention_bias": False,
        }  # fmt: skip
        experts = {"num_local_experts": c.experts, "num_experts_per_tok": c.experts_used, "sliding_window": None}
        table |= experts if kind == "mixtral" else {"mlp_bias": False}
    back = _read_config(table, head=c.head_transform)
    fields = [field.name for field in dataclasses.fields(c) if getattr(back, field.name) != getattr(c, field.name)]
    if fields:
        differ = ", ".join(f"{name}={getattr(c, name)!r} (it has {getattr(back, name)!r})" for name in fields)
        raise ValueError(f"a {kind} of Hugging Face cannot express {differ}")
    return table


def gguf_to_hf(file: GGUF, arrays: Mapping[str, np.ndarray] | None = None) -> tuple[dict, dict[str, np.ndarray]]:
    """The configuration and tensors of a LLaMA in a GGUF file, as a Hugging Face checkpoint would hold them.

    In GGUF the rows of query and key are ordered so that neighbours are rotated together; here they are put back into
    two halves: row 2i of a head to row i, row 2i + 1 to row i + K/2. `arrays`, if given, are the file's tensors, read
    already.

    Raises: ValueError for another architecture, or a file without the sizes of its model.

    >>> from mathllm import data
    >>> if data.available("smollm2"):
    ...     gguf_to_hf(GGUF(next(data.path("smollm2").glob("*.gguf"))))[0]["num_hidden_layers"]
    30
    """
    if (architecture := file.metadata.get("general.architecture")) != "llama":
        raise ValueError(f"gguf_to_hf() reads the architecture llama; {file.path} holds {architecture!r}")
    names = {
        "num_hidden_layers": "block_count", "max_position_embeddings": "context_length",
        "hidden_size": "embedding_length", "intermediate_size": "feed_forward_length",
        "num_attention_heads": "attention.head_count", "rms_norm_eps": "attention.layer_norm_rms_epsilon",
    }  # fmt: skip
    for theirs in names.values():
        if f"llama.{theirs}" not in file.metadata:
            raise ValueError(f"gguf_to_hf() needs llama.{theirs}, which {file.path} does not tell")
    sizes = {key: file.metadata[f"llama.{theirs}"] for key, theirs in names.items()}
    heads = sizes["num_attention_heads"]
    kv_heads = file.metadata.get("llama.attention.head_count_kv", heads)
    if file.metadata.get("llama.rope.scaling.type", "none") != "none" or "rope_freqs.weight" in file:
        raise ValueError(f"gguf_to_hf() does not read scaled rotary positions, which {file.path} has")
    config = sizes | {
        "model_type": "llama",
        "rms_norm_eps": float(str(np.float32(sizes["rms_norm_eps"]))),  # 1e-05, where the float32 says 9.99…e-06
        "num_key_value_heads": kv_heads,
        "head_dim": file.metadata.get("llama.attention.key_length", sizes["hidden_size"] // heads),
        "rope_theta": file.metadata.get("llama.rope.freq_base", 10000.0),
        "vocab_size": file.tensors["token_embd.weight"].shape[0] if "token_embd.weight" in file else 0,
        "tie_word_embeddings": "output.weight" not in file,
    }
    parts = {
        "token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head",
        "attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
        "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "ffn_norm": "post_attention_layernorm",
        "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
    }  # fmt: skip
    tensors = {}
    for name in file:
        layer, part = re.fullmatch(r"(?:blk\.(\d+)\.)?(.*)\.weight|.*", name).groups()
        prefix = f"model.layers.{layer}." if layer else ""
        array = (arrays or file)[name]
        if part in ("attn_q", "attn_k") and array.ndim == 2:
            array = _halves_together(array, heads if part == "attn_q" else kv_heads)
        tensors[f"{prefix}{parts[part]}.weight" if part in parts else name] = array
    return config, tensors


def load_pretrained(directory) -> tuple[Config, dict]:
    """A checkpoint from a folder with config.json and model.safetensors (or several, with their index).

    Raises: FileNotFoundError; ValueError as `from_hf` and `safetensors.load`.

    >>> import tempfile
    >>> from mathllm.transformer import Transformer
    >>> config = gpt2_config(vocabulary=5, width=4, layers=1, heads=2, context=3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_pretrained(folder, config, Transformer(config).init(np.random.default_rng(0)))
    ...     load_pretrained(folder)[0] == config
    True
    """
    directory = Path(directory)
    config = json.loads((directory / "config.json").read_text(encoding="utf-8"))
    index = directory / "model.safetensors.index.json"
    files = ["model.safetensors"]
    if index.is_file():
        files = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
    tensors = {}
    for file in files:
        tensors |= safetensors.load(directory / file)
    return from_hf(config, tensors)


def save_pretrained(directory, config: Config, params: Mapping, tokenizer=None, *, end: str = "<|endoftext|>") -> None:
    """Write a model to a folder as transformers reads it: config.json, model.safetensors, and its tokenizer if given.

    tokenizer: of chapter 13; `end`, where it is a special token of its own, ends generated text

    Raises: ValueError as `to_hf`, before anything is written.

    >>> import tempfile
    >>> from mathllm.transformer import Transformer
    >>> config = gpt2_config(vocabulary=5, width=4, layers=1, heads=2, context=3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_pretrained(folder, config, Transformer(config).init(np.random.default_rng(0)))
    ...     sorted(file.name for file in Path(folder).iterdir())
    ['config.json', 'model.safetensors']
    """
    tensors, table = to_hf(config, params), to_hf_config(config)
    table["dtype"] = table["torch_dtype"] = str(next(iter(tensors.values())).dtype)
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    if tokenizer is not None:
        tokenizer.save(directory / "tokenizer.json")
        settings = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": config.context}
        if end in tokenizer.special_tokens:
            settings["eos_token"], table["eos_token_id"] = end, tokenizer.special_tokens[end]
        _write_json(directory / "tokenizer_config.json", settings)
    _write_json(directory / "config.json", table)
    safetensors.save(directory / "model.safetensors", tensors, {"format": "pt"})


def _write_json(path, table):
    path.write_text(json.dumps(table, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _model_type(config):
    kind = config.get("model_type")
    if kind not in _TABLES:
        raise ValueError(f"from_hf() knows the model types {', '.join(_TABLES)}; got {kind!r}")
    return kind


def _read_config(config, *, head):
    """Our configuration for a config.json; a setting of None counts as not set."""
    kind = _model_type(config)
    given = _Given(kind, {key: value for key, value in config.items() if value is not None})
    for key, only in _ONLY[kind].items():
        if given.get(key, only) != only:
            raise ValueError(f"from_hf() does not support {key}={given[key]!r}; it knows {only!r} alone")
    if kind == "gpt2":
        return gpt2_config(**_gpt2_sizes(given))
    if kind == "bert":
        return bert_config(**_bert_sizes(given, head))
    return mixtral_config(**_mixtral_sizes(given)) if kind == "mixtral" else llama_config(**_llama_sizes(given))


class _Given(dict):
    """The settings of a config.json; one that is needed and not there has its name in the error."""

    def __init__(self, kind, settings):
        super().__init__(settings)
        self.kind = kind

    def __missing__(self, key):
        raise ValueError(f"from_hf() needs {key!r} in the configuration of a {self.kind}")


def _gpt2_sizes(given):
    width = given["n_embd"]
    return _common_sizes(
        given, width, given["n_head"], given["n_layer"], given.get("activation_function", "gelu_new"), tied=True
    ) | {
        "hidden": given.get("n_inner", 4 * width), "context": given.get("n_positions", 1024),
        "norm_epsilon": given.get("layer_norm_epsilon", 1e-5),
    }  # fmt: skip


def _bert_sizes(given, head):
    sizes = _hidden_sizes(given, "gelu", tied=True) | {
        "context": given.get("max_position_embeddings", 512), "segments": given.get("type_vocab_size", 2),
        "norm_epsilon": given.get("layer_norm_eps", 1e-12), "head_transform": head,
    }  # fmt: skip
    return sizes if head else sizes | {"tied": True}  # without a head there is nothing to tie


def _llama_sizes(given, *, context=2048, kv_heads=None, epsilon=1e-6, base=1e4):
    sizes = _hidden_sizes(given, "silu", tied=False)
    context = given.get("max_position_embeddings", context)
    if given.get("sliding_window", context) < context:
        raise ValueError(f"from_hf() does not support a sliding_window of {given['sliding_window']} tokens")
    return sizes | _rotary(given, base, context) | {
        "context": context, "kv_heads": given.get("num_key_value_heads", kv_heads or sizes["heads"]),
        "head_width": given.get("head_dim", sizes["width"] // sizes["heads"]),
        "norm_epsilon": given.get("rms_norm_eps", epsilon),
    }  # fmt: skip


def _mixtral_sizes(given):
    experts = {"experts": given.get("num_local_experts", 8), "experts_used": given.get("num_experts_per_tok", 2)}
    return _llama_sizes(given, context=131072, kv_heads=8, epsilon=1e-5, base=1e6) | experts


def _hidden_sizes(given, activation, *, tied):
    """What all but GPT-2 name alike."""
    width, heads, layers = given["hidden_size"], given["num_attention_heads"], given["num_hidden_layers"]
    sizes = _common_sizes(given, width, heads, layers, given.get("hidden_act", activation), tied=tied)
    return sizes | {"hidden": given["intermediate_size"]}


def _common_sizes(given, width, heads, layers, activation, *, tied):
    if activation not in _ACTIVATIONS:
        raise ValueError(f"from_hf() does not support the activation {activation!r}; it knows {_some(_ACTIVATIONS)}")
    if given.kind in ("gpt2", "bert") and width % heads:
        raise ValueError(f"from_hf() cannot cut a width of {width} into {heads} heads")
    return {
        "vocabulary": given["vocab_size"], "width": width, "heads": heads, "layers": layers,
        "activation": _ACTIVATIONS[activation], "tied": given.get("tie_word_embeddings", tied),
    }  # fmt: skip


def _rotary(given, base, context):
    """The base and scaling of rotary positions; newer files keep both in `rope_parameters`."""
    rope = given.get("rope_parameters") or given.get("rope_scaling") or {}
    rope = {name: value for name, value in rope.items() if value is not None}
    rope = {name: given[name] for name in ("partial_rotary_factor", "rope_theta") if name in given} | rope
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind not in ("default", *_ROPE_SCALINGS) or rope.get("partial_rotary_factor", 1) != 1:
        known = f"default, {', '.join(_ROPE_SCALINGS)}, of whole heads"
        raise ValueError(f"from_hf() does not support the rotary positions {rope}; it knows {known}")
    ours = {"rope_base": rope.get("rope_theta", base)}
    if kind == "default":
        return ours
    trained = given.get("original_max_position_embeddings", rope.get("original_max_position_embeddings", context))
    wanted = {"llama3": ("factor", "low_freq_factor", "high_freq_factor"), "yarn": ()}.get(kind, ("factor",))
    if lacking := [name for name in wanted if name not in rope]:
        raise ValueError(f"from_hf() needs {_some(lacking)} in the rotary positions {rope}")
    settings = {}
    if kind in ("yarn", "llama3"):
        settings["trained"] = trained
    if kind == "llama3":
        settings["turns"] = rope["low_freq_factor"], rope["high_freq_factor"]
    if kind == "yarn":
        rope.setdefault("factor", context / trained)
        settings["turns"] = rope.get("beta_slow") or 1, rope.get("beta_fast") or 32
        settings |= {"whole_pairs": rope.get("truncate", True), "sharpness": _sharpness(rope)}
    return ours | {"rope_scaling": RotaryScaling(kind, **settings), "rope_factor": rope["factor"]}


def _sharpness(rope):
    """YaRN's factor on queries and keys, where it is not the usual one."""
    part, whole = rope.get("mscale"), rope.get("mscale_all_dim")
    stretch = 0.1 * math.log(rope["factor"])
    inferred = (1 + part * stretch) / (1 + whole * stretch) if part and whole else 1 + stretch
    found = rope.get("attention_factor", inferred)
    return None if found == 1 + stretch else found


def _their_scaling(config):
    """`rope_scaling` as config.json has it: what `_rotary` reads."""
    scaling = config.rope_scaling
    scaling = RotaryScaling(scaling) if isinstance(scaling, str) else scaling
    if scaling is None or scaling.kind not in _ROPE_SCALINGS:
        return None
    rope = {"rope_type": scaling.kind, "factor": config.rope_factor}
    if scaling.kind in ("yarn", "llama3"):
        slow, fast = ("beta_slow", "beta_fast") if scaling.kind == "yarn" else ("low_freq_factor", "high_freq_factor")
        rope |= {"original_max_position_embeddings": scaling.trained or config.context}
        rope |= dict(zip((slow, fast), scaling.turns, strict=True))
    if scaling.sharpness is not None:
        rope["attention_factor"] = float(scaling.sharpness)
    return rope if scaling.whole_pairs else rope | {"truncate": False}


def _names(config, kind):
    """Their name -> (our paths, whether it is to be transposed)."""
    lines = _TABLES[kind] + (_BERT_HEAD if config.head_transform else "")
    lines += "" if config.tied else f"{_UNEMBEDDING.get(kind, 'lm_head.weight')} = unembedding ᵀ"
    names = {}
    for line in filter(None, map(str.strip, lines.splitlines())):
        theirs, _, ours = line.partition(" = ")
        first, *others = ours.removesuffix("ᵀ").split(" + ")
        paths = [first.strip(), *(first.rpartition(".")[0] + other.strip() for other in others)]
        for l in range(config.layers if "{l}" in line else 1):
            for e in range(config.experts if "{e}" in line else 1):
                names[theirs.strip().format(l=l, e=e)] = [p.format(l=l, e=e) for p in paths], ours.endswith("ᵀ")
    return names


def _copies(config, kind):
    """Names under which a checkpoint may repeat another tensor, which is then tied to it."""
    copies = {"cls.predictions.decoder.bias": "cls.predictions.bias"} if config.head_transform else {}
    if config.tied:
        copies[_UNEMBEDDING.get(kind, "lm_head.weight")] = _EMBEDDING[kind]
    return copies


def _with_body(kind, name):
    body = _BODY[kind]
    return name if name.startswith((body, "lm_head.", "cls.")) else body + name


def _shape(config, path):
    """The shape of the parameter at `path`."""
    c, (*above, name) = config, path.split(".")
    queries, keys = c.heads * c.head_width, c.kv_heads * c.head_width
    if above == ["head"] and name == "bias":
        return (c.vocabulary,)
    return {
        "embedding": (c.vocabulary, c.width), "unembedding": (c.width, c.vocabulary),
        "positions": (c.context, c.width), "segments": (c.segments, c.width),
        "gain": (c.width,), "bias": (c.width,), "transform": (c.width, c.width), "transform_bias": (c.width,),
        "query": (c.width, queries), "key": (c.width, keys), "value": (c.width, keys), "output": (queries, c.width),
        "query_bias": (queries,), "key_bias": (keys,), "value_bias": (keys,), "output_bias": (c.width,),
        "gate": (c.width, c.hidden), "up": (c.width, c.hidden), "down": (c.hidden, c.width),
        "up_bias": (c.hidden,), "down_bias": (c.width,), "router": (c.width, c.experts),
    }[name]  # fmt: skip


def _put(tree, path, value):
    """Store a value in nested dictionaries and lists; a path's number is the place in a list."""
    name, *rest = path
    if isinstance(tree, list):
        name = int(name)
        tree += [None] * (name + 1 - len(tree))
    if not rest:
        tree[name] = value
        return
    if (tree[name] if isinstance(tree, list) else tree.get(name)) is None:
        tree[name] = [] if rest[0].isdigit() else {}
    _put(tree[name], rest, value)


def _leaves(tree, path=""):
    for name, value in tree.items() if isinstance(tree, Mapping) else enumerate(tree):
        if isinstance(value, Mapping | list | tuple):
            yield from _leaves(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", value


def _halves_together(array, heads):
    """Rows (H, K/2, 2) -> rows (H, 2, K/2): components that rotate together, from neighbours to halves."""
    rows, columns = array.shape
    if rows % (2 * heads):
        raise ShapeError(f"{rows} rows cannot be cut into {heads} heads of pairs")
    return array.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)


def _some(names, most=4):
    names = list(names)
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
