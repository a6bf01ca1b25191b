"""A language model in one GGUF file: its weights, its settings, and its tokenizer.

Models of the architecture llama are read, with a byte-level BPE that splits text as GPT-2 or SmolLM2 does. Weights of
any supported type become float32.
"""

import math
import os
import re

import numpy as np

from ..training import Tokenizer
from ..transformer import Transformer
from ..trees import tree_leaves
from .gguf import GGUF
from .huggingface import Pretrained, from_hf

_NEEDED = {
    "num_hidden_layers": "block_count", "max_position_embeddings": "context_length",
    "hidden_size": "embedding_length", "intermediate_size": "feed_forward_length",
    "num_attention_heads": "attention.head_count", "rms_norm_eps": "attention.layer_norm_rms_epsilon",
}  # fmt: skip
_OPTIONAL = {
    "num_key_value_heads": "attention.head_count_kv",
    "head_dim": "attention.key_length",
    "rope_theta": "rope.freq_base",
}
_TENSORS = {
    "token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head",
    "attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}  # fmt: skip
_ROPE_FACTORS = r"rope_(freqs|factors_short|factors_long)\.weight"
_SPECIAL, _UNUSED = (3, 4), 5  # types of tokens in GGUF: control tokens and those of the user; unused ids
_SINGLE_DIGITS = {"gpt-2": False, "smollm": True}  # how text is split before BPE: whether each digit is separate


def load_gguf(file: GGUF | str | os.PathLike) -> Pretrained:
    """The language model in a GGUF file: `model, params, tokenizer = load_gguf("SmolLM2.gguf")`.

    file: a path, or an open file

    Raises: ValueError for a file that is not whole, another architecture than llama, or a tokenizer of another kind.

    >>> from mathllm import data
    >>> if data.available("smollm2"):
    ...     print(load_gguf(next(data.path("smollm2").glob("*.gguf"))).model.config.layers)
    30
    """
    file = file if isinstance(file, GGUF) else GGUF(file)
    config, params = from_hf(*gguf_to_hf(file))
    for array in tree_leaves(params):
        array.flags.writeable = False  # later calls may return the same arrays
    return Pretrained(Transformer(config), params, gguf_tokenizer(file))


def gguf_to_hf(file: GGUF) -> tuple[dict, dict[str, np.ndarray]]:
    """The settings and tensors of a LLaMA in a GGUF file, under the names of a Hugging Face checkpoint.

    GGUF orders the rows of query and key so that neighbours are rotated together. Here they are put back into two
    halves: row 2i of a head becomes row i, and row 2i + 1 becomes row i + K/2.
    Raises: ValueError for another architecture, or a file without the sizes of its model.

    >>> from mathllm import data
    >>> if data.available("smollm2"):
    ...     gguf_to_hf(GGUF(next(data.path("smollm2").glob("*.gguf"))))[0]["num_hidden_layers"]
    30
    """
    if (architecture := file.metadata.get("general.architecture")) != "llama":
        raise ValueError(f"gguf_to_hf() reads the architecture llama; {file.path} holds {architecture!r}")
    config = _settings(file)
    heads = {"attn_q": config["num_attention_heads"]}
    heads["attn_k"] = config["num_key_value_heads"] or heads["attn_q"]
    names = [name for name in file if not re.fullmatch(_ROPE_FACTORS, name)]  # those are among the settings
    parts = {name: re.fullmatch(r"(?:blk\.(\d+)\.)?(.*)\.weight|.*", name).groups() for name in names}

    def order(name):  # layer by layer, with those side by side that multiply the same vectors
        layer, part = parts[name]
        return int(layer or -1), list(_TENSORS).index(part) if part in _TENSORS else -1

    tensors = {}
    for name, array in file.read(sorted(names, key=order)).items():
        layer, part = parts[name]
        prefix = f"model.layers.{layer}." if layer else ""
        if part in heads and array.ndim == 2:
            array[:] = _in_halves(array, heads[part])
        tensors[f"{prefix}{_TENSORS[part]}.weight" if part in _TENSORS else name] = array
    return config, tensors


def gguf_tokenizer(file: GGUF) -> Tokenizer:
    """The tokenizer alone, without reading the weights.

    Raises: ValueError for a file without a vocabulary, or with another one than a byte-level BPE that splits text as
    GPT-2 or SmolLM2 does ("tokenizer.ggml.pre").

    >>> from mathllm import data
    >>> if data.available("smollm2"):
    ...     print(len(gguf_tokenizer(GGUF(next(data.path("smollm2").glob("*.gguf"))))))
    49152
    """
    metadata = {name.removeprefix("tokenizer.ggml."): value for name, value in file.metadata.items()}
    kind, split = metadata.get("model", "gpt2"), metadata.get("pre", "gpt-2")
    if kind != "gpt2" or split not in _SINGLE_DIGITS:
        known = " or ".join(_SINGLE_DIGITS)
        raise ValueError(f"{file.path} has a tokenizer {kind!r}, splitting as {split!r}; read are gpt2, as {known}")
    if missing := [name for name in ("tokens", "token_type", "merges") if name not in metadata]:
        raise ValueError(f"{file.path} has no tokenizer.ggml.{missing[0]}")
    kinds = list(zip(metadata["tokens"], metadata["token_type"], strict=True))
    vocabulary = {token: i for i, (token, kind) in enumerate(kinds) if kind != _UNUSED}
    special = {token: i for i, (token, kind) in enumerate(kinds) if kind in _SPECIAL}
    merges, unknown = metadata["merges"], metadata.get("unknown_token_id")
    return Tokenizer.from_strings(vocabulary, merges, special, single_digits=_SINGLE_DIGITS[split], unknown=unknown)


def gguf_ends(file: GGUF, tokenizer: Tokenizer) -> tuple[int, ...]:
    """The ids that end a text: those that the file names, and <|endoftext|> if the tokenizer has it.

    >>> from mathllm import data
    >>> if data.available("smollm2"):
    ...     file = GGUF(next(data.path("smollm2").glob("*.gguf")))
    ...     print(gguf_ends(file, gguf_tokenizer(file)))
    (2, 0)
    """
    named = [file.metadata.get(f"tokenizer.ggml.{name}_token_id") for name in ("eos", "eot")]
    ends = [*named, tokenizer.special_tokens.get("<|endoftext|>")]
    return tuple(dict.fromkeys(i for i in ends if i is not None))


def _settings(file):
    """The content of config.json."""
    given = {name.removeprefix("llama."): value for name, value in file.metadata.items()}
    if missing := [name for name in _NEEDED.values() if name not in given]:
        raise ValueError(f"gguf_to_hf() needs llama.{missing[0]}, which {file.path} does not have")
    config = {theirs: given.get(name) for theirs, name in (_NEEDED | _OPTIONAL).items()}
    return config | {
        "model_type": "llama",
        "rms_norm_eps": float(str(np.float32(config["rms_norm_eps"]))),  # 1e-05, where the float32 is 9.99…e-06
        "rope_scaling": _rope_scaling(file, given, config["max_position_embeddings"]),
        "vocab_size": file.tensors["token_embd.weight"].shape[0] if "token_embd.weight" in file else 0,
        "tie_word_embeddings": "output.weight" not in file,
    }


def _rope_scaling(file, given, context):
    """The scaling of rotary positions; a tensor of the file may hold a factor for each pair.

    LLaMA 3.1 has its factors in rope_freqs, for texts of any length: a "longrope" whose short and long factors agree.
    """
    given = {name.removeprefix("rope.scaling."): value for name, value in given.items()}
    kind, factor, sharpness = given.get("type", "none"), given.get("factor", 1.0), given.get("attn_factor", 1.0)
    trained = given.get("original_context_length", context)
    rope = {"rope_type": kind, "factor": factor, "original_max_position_embeddings": trained}
    factors = {name: np.asarray(file[name]).tolist() for name in file if re.fullmatch(_ROPE_FACTORS, name)}
    match kind, *sorted(factors):
        case ["none"]:
            return None
        case ["linear"]:
            return rope
        case ["yarn"]:
            betas = {f"beta_{end}": given.get(f"yarn_beta_{end}") for end in ("fast", "slow")}
            return rope | betas | {"attention_factor": sharpness * (1 + 0.1 * math.log(factor))}
        case ["none", "rope_freqs.weight" as name]:
            both = dict.fromkeys(("short_factor", "long_factor"), factors[name])
            return rope | both | {"rope_type": "longrope", "attention_factor": 1.0}
        case ["longrope", "rope_factors_long.weight" as long, "rope_factors_short.weight" as short]:
            both = {"short_factor": factors[short], "long_factor": factors[long]}
            return rope | both | {"attention_factor": sharpness}
    found = f"{kind!r} with {', '.join(factors) or 'no factors'}"
    raise ValueError(f"gguf_to_hf() does not read the rotary positions of {file.path}, {found}")


def _in_halves(array, heads):
    """Rows (H, K/2, 2) -> rows (H, 2, K/2): the two components of a pair move from neighbouring rows to two halves."""
    return array.reshape(heads, -1, 2, array.shape[1]).swapaxes(1, 2).reshape(array.shape)
