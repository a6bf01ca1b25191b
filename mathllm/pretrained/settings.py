"""The settings in config.json of the Hugging Face hub, and our `Config`: the same choices and sizes under other names.

Reading is strict. A setting that our model cannot express is an error, so that a checkpoint that loads gives the
numbers of the original.
"""

import math
from collections.abc import Mapping

from ..attention import RotaryScaling
from ..transformer import BertParts, Config, T5Parts
from .names import FAMILIES, NEEDED, Family

_ACTIVATIONS = {  # theirs: ours; the last name of each of ours is the one that is written
    "gelu_fast": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "gelu_new": "gelu_tanh", "gelu": "gelu",
    "relu": "relu", "swish": "silu", "silu": "silu",
}  # fmt: skip
_THEIR_ACTIVATION = {ours: theirs for theirs, ours in _ACTIVATIONS.items()}
_RELATIVE = (("relative_attention_num_buckets", 32), ("relative_attention_max_distance", 128))
_TURNS = {"yarn": ("beta_slow", "beta_fast"), "llama3": ("low_freq_factor", "high_freq_factor")}
_SCALINGS = {  # the scalings of rotary positions, and the settings that each needs
    "linear": ("factor",), "dynamic": ("factor",), "yarn": (), "longrope": ("short_factor", "long_factor"),
    "llama3": ("factor", *_TURNS["llama3"]),
}  # fmt: skip


def to_hf_config(config: Config) -> dict:
    """The content of config.json for a model, as transformers reads it; `from_hf` gives the same `Config` back.

    An encoder is written as bert, an encoder with a decoder as t5, a decoder with experts as mixtral, one with RMS norm
    as llama, any other as gpt2. Special tokens are None, because a `Config` has none, and dropout is 0.

    Raises: ValueError for a configuration that the family cannot express, with the fields that differ.

    >>> from mathllm.transformer import llama_config
    >>> to_hf_config(llama_config(layers=4))["num_hidden_layers"]
    4
    """
    family = _family_for(config)
    table = {"model_type": family.name} | dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id"))
    table |= {**family.only, **family.written, **_written(family, config)}
    head = config.bert is None or config.bert.head
    ours, back = vars(config), vars(read_settings(table, head=head)[1])
    if fields := [name for name in ours if ours[name] != back[name]]:
        differ = ", ".join(f"{name}={ours[name]!r} (it has {back[name]!r})" for name in fields)
        raise ValueError(f"a {family.name} of Hugging Face cannot express {differ}")
    return table


def read_settings(table: Mapping, *, head: bool = True) -> tuple[Family, Config]:
    """The family and our configuration for the content of a config.json; None counts as an absent setting.

    head: whether a BERT has the head that fills in masked words

    Raises: ValueError for settings that are missing or that our model does not have.

    >>> from mathllm.transformer import gpt2_config
    >>> read_settings(to_hf_config(gpt2_config()))[1] == gpt2_config()
    True
    """
    if (name := table.get("model_type")) not in FAMILIES:
        raise ValueError(f"from_hf() knows the model types {', '.join(FAMILIES)}; got {name!r}")
    family = FAMILIES[name]
    given = dict(family.settings.values()) | {name: value for name, value in table.items() if value is not None}
    if missing := [name for name, value in given.items() if value is NEEDED]:
        raise ValueError(f"from_hf() needs {missing[0]!r} in the configuration of a {family.name}")
    for name, only in family.only.items():
        if given.get(name, only) != only:
            raise ValueError(f"from_hf() does not support {name}={given[name]!r}; it knows only {only!r}")
    fields = _read(family, given, head)
    return family, family.preset(**{name: value for name, value in fields.items() if value is not None})


def _family_for(config):
    if not config.causal:
        return FAMILIES["bert"]
    if config.encoder_layers:
        return FAMILIES["t5"]
    if config.experts:
        return FAMILIES["mixtral"]
    return FAMILIES["llama" if config.norm == "rms" else "gpt2"]


def _read(family, given, head):
    """Our fields. Some are more than another name for a number."""
    fields = {ours: given[theirs] for ours, (theirs, _) in family.settings.items()}
    gated, _, activation = str(fields["activation"]).rpartition("-")
    activation = "gelu_new" if gated and activation == "gelu" else activation  # this is what "gated-gelu" means in T5
    if activation not in _ACTIVATIONS or (gated and (family.name, gated) != ("t5", "gated")):
        known = ", ".join(_ACTIVATIONS)
        raise ValueError(f"from_hf() does not support the activation {fields['activation']!r}; it knows {known}")
    fields["activation"] = _ACTIVATIONS[activation]
    if family.name == "bert":
        fields["bert"] = BertParts(given.get("type_vocab_size", 2), head)
        fields["tied"] = fields["tied"] or not head  # without a head there is no unembedding
    if family.name == "t5":
        buckets, farthest = (given.get(name, default) for name, default in _RELATIVE)
        scaled = given.get("scale_decoder_outputs", fields["tied"])
        fields["t5"] = T5Parts(buckets, farthest, fields["width"] ** -0.5 if scaled else 1.0)
        fields |= {"gated": bool(gated), "layers": fields["layers"] or fields["encoder_layers"]}
    if "rope_base" in fields:
        return fields | _read_rotary(given)
    if "head_width" not in fields and fields["width"] % fields["heads"]:
        raise ValueError(f"from_hf() cannot cut a width of {fields['width']} into {fields['heads']} heads")
    return fields


def _written(family, config):
    """The same fields as they are in config.json."""
    table = {theirs: getattr(config, ours) for ours, (theirs, _) in family.settings.items()}
    gated = "gated-" if family.name == "t5" and config.gated else ""
    table[family.settings["activation"][0]] = gated + _THEIR_ACTIVATION[config.activation]
    if config.bert:
        model = "BertForMaskedLM" if config.bert.head else "BertModel"
        table |= {"architectures": [model], "type_vocab_size": config.bert.segments}
    if config.t5:
        table |= zip((name for name, _ in _RELATIVE), (config.t5.buckets, config.t5.farthest), strict=True)
        table["scale_decoder_outputs"] = config.t5.output_scale != 1
    if "rope_base" in family.settings:
        table["rope_scaling"] = _written_scaling(config.rope_scaling)
    return table


# Rotary positions, scaled for a longer context or not


def _read_rotary(given):
    """Our base and scaling of rotary positions; newer files keep both in `rope_parameters`."""
    context = given["max_position_embeddings"]
    if given.get("sliding_window", context) < context:
        raise ValueError(f"from_hf() does not support a sliding_window of {given['sliding_window']} tokens")
    rope = given.get("rope_parameters") or given.get("rope_scaling") or {}
    rope = {name: value for name, value in rope.items() if value is not None}
    rope = {name: given[name] for name in ("partial_rotary_factor", "rope_theta") if name in given} | rope
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind not in ("default", *_SCALINGS) or rope.get("partial_rotary_factor", 1) != 1:
        known = f"default, {', '.join(_SCALINGS)}, of whole heads"
        raise ValueError(f"from_hf() does not support the rotary positions {rope}; it knows {known}")
    base = {"rope_base": rope["rope_theta"]}
    if kind == "default":
        return base
    if lacking := [name for name in _SCALINGS[kind] if name not in rope]:
        raise ValueError(f"from_hf() needs {', '.join(lacking)} in the rotary positions {rope}")
    trained = given.get("original_max_position_embeddings", rope.get("original_max_position_embeddings", context))
    rope.setdefault("factor", context / trained)
    return base | {"rope_scaling": _scaling(kind, rope, trained)}


def _scaling(kind, rope, trained):
    settings = {"factor": rope["factor"], "trained": None if kind in ("linear", "dynamic") else trained}
    if kind in _TURNS:
        slow, fast = map(rope.get, _TURNS[kind])
        settings["turns"] = slow or 1, fast or 32
    if kind == "yarn":
        settings |= {"whole_pairs": rope.get("truncate", True), "attention_factor": _attention_factor(rope)}
    if kind == "longrope":
        settings |= {"short": tuple(rope["short_factor"]), "long": tuple(rope["long_factor"])}
        settings["attention_factor"] = rope.get("attention_factor")
    return RotaryScaling(kind, **settings)


def _attention_factor(rope):
    """The factor of YaRN on queries and keys, or None for that of the paper."""
    part, whole = rope.get("mscale"), rope.get("mscale_all_dim")
    growth = 0.1 * math.log(rope["factor"])
    inferred = (1 + part * growth) / (1 + whole * growth) if part and whole else 1 + growth
    found = rope.get("attention_factor", inferred)
    return None if found == 1 + growth else found


def _written_scaling(scaling):
    """The content of `rope_scaling`, which `_read_rotary` reads."""
    if scaling is None or scaling.kind not in _SCALINGS:
        return None
    rope = {"rope_type": scaling.kind, "factor": scaling.factor}
    if scaling.kind not in ("linear", "dynamic"):
        rope["original_max_position_embeddings"] = scaling.trained
    rope |= zip(_TURNS.get(scaling.kind, ()), scaling.turns or (), strict=True)
    if scaling.kind == "longrope":
        rope |= {"short_factor": list(scaling.short), "long_factor": list(scaling.long)}
    if scaling.attention_factor is not None:
        rope["attention_factor"] = float(scaling.attention_factor)
    return rope if scaling.whole_pairs else rope | {"truncate": False}
