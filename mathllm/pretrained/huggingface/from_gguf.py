"""A LLaMA in a GGUF file, under the names of a Hugging Face checkpoint."""

import math
import re
from collections.abc import Mapping

import numpy as np

from ...errors import ShapeError
from ..gguf import GGUF

__all__ = ["gguf_to_hf"]

_ROPE_FACTORS = r"rope_(freqs|factors_short|factors_long)\.weight"
_SIZES = {
    "num_hidden_layers": "block_count", "max_position_embeddings": "context_length",
    "hidden_size": "embedding_length", "intermediate_size": "feed_forward_length",
    "num_attention_heads": "attention.head_count", "rms_norm_eps": "attention.layer_norm_rms_epsilon",
}  # fmt: skip
_PARTS = {
    "token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head",
    "attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}  # fmt: skip


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
    config = _settings(file)
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    tensors = {}
    for name in file:
        if re.fullmatch(_ROPE_FACTORS, name):
            continue  # told in the settings
        layer, part = re.fullmatch(r"(?:blk\.(\d+)\.)?(.*)\.weight|.*", name).groups()
        array = (arrays or file)[name]
        if part in heads and array.ndim == 2:
            array = _halves_together(array, heads[part])
        prefix = f"model.layers.{layer}." if layer else ""
        tensors[f"{prefix}{_PARTS[part]}.weight" if part in _PARTS else name] = array
    return config, tensors


def _settings(file):
    """What config.json would hold."""
    told = {name.removeprefix("llama."): value for name, value in file.metadata.items()}
    for name in _SIZES.values():
        if name not in told:
            raise ValueError(f"gguf_to_hf() needs llama.{name}, which {file.path} does not tell")
    sizes = {theirs: told[name] for theirs, name in _SIZES.items()}
    width, heads = sizes["hidden_size"], sizes["num_attention_heads"]
    return sizes | {
        "model_type": "llama",
        "rms_norm_eps": float(str(np.float32(sizes["rms_norm_eps"]))),  # 1e-05, where the float32 says 9.99…e-06
        "num_key_value_heads": told.get("attention.head_count_kv", heads),
        "head_dim": told.get("attention.key_length", width // heads),
        "rope_theta": told.get("rope.freq_base", 10000.0),
        "rope_scaling": _rope_scaling(file, told, sizes["max_position_embeddings"]),
        "vocab_size": file.tensors["token_embd.weight"].shape[0] if "token_embd.weight" in file else 0,
        "tie_word_embeddings": "output.weight" not in file,
    }


def _rope_scaling(file, told, context):
    """How rotary positions are stretched; a tensor, if there is one, tells the number of each pair.

    LLaMA 3.1 has its numbers in rope_freqs, whatever the length of the text: "longrope" without a difference.
    """
    told = {name.removeprefix("rope.scaling."): value for name, value in told.items()}
    kind, factor, sharper = told.get("type", "none"), told.get("factor", 1.0), told.get("attn_factor", 1.0)
    rope = {"rope_type": kind, "factor": factor, "original_max_position_embeddings": context}
    if "original_context_length" in told:
        rope["original_max_position_embeddings"] = told["original_context_length"]
    numbers = {name: np.asarray(file[name]).tolist() for name in file if re.fullmatch(_ROPE_FACTORS, name)}
    if kind == "none" and "rope_freqs.weight" in numbers:
        both = dict.fromkeys(("short_factor", "long_factor"), numbers["rope_freqs.weight"])
        return rope | both | {"rope_type": "longrope", "attention_factor": 1.0}
    if kind == "longrope" and "rope_factors_long.weight" in numbers:
        short, long = (numbers.get(f"rope_factors_{length}.weight") for length in ("short", "long"))
        return rope | {"short_factor": short, "long_factor": long, "attention_factor": sharper}
    if numbers or kind not in ("none", "linear", "yarn"):
        found = f"{kind!r} with {', '.join(numbers) or 'no numbers'}"
        raise ValueError(f"gguf_to_hf() does not read the rotary positions of {file.path}, {found}")
    if kind == "yarn":
        betas = {f"beta_{end}": told.get(f"yarn_beta_{end}") for end in ("fast", "slow")}
        return rope | betas | {"attention_factor": sharper * (1 + 0.1 * math.log(factor))}
    return rope if kind == "linear" else None


def _halves_together(array, heads):
    """Rows (H, K/2, 2) -> rows (H, 2, K/2): components that rotate together, from neighbours to halves."""
    rows, columns = array.shape
    if rows % (2 * heads):
        raise ShapeError(f"{rows} rows cannot be cut into {heads} heads of pairs")
    return array.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)
