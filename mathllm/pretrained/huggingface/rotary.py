"""How a checkpoint tells its rotary positions: their base, and how they are stretched for a longer context."""

import math

from ...attention import RotaryScaling
from .kinds import _some

_SCALINGS = {  # and what each of them needs to be told
    "linear": ("factor",), "dynamic": ("factor",), "yarn": (), "longrope": ("short_factor", "long_factor"),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor"),
}  # fmt: skip


def _our_rotary(given, base, context):
    """The base and scaling of rotary positions; newer files keep both in `rope_parameters`."""
    rope = given.get("rope_parameters") or given.get("rope_scaling") or {}
    rope = {name: value for name, value in rope.items() if value is not None}
    rope = {name: given[name] for name in ("partial_rotary_factor", "rope_theta") if name in given} | rope
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind not in ("default", *_SCALINGS) or rope.get("partial_rotary_factor", 1) != 1:
        known = f"default, {', '.join(_SCALINGS)}, of whole heads"
        raise ValueError(f"from_hf() does not support the rotary positions {rope}; it knows {known}")
    ours = {"rope_base": rope.get("rope_theta", base)}
    if kind == "default":
        return ours
    trained = given.get("original_max_position_embeddings", rope.get("original_max_position_embeddings", context))
    if lacking := [name for name in _SCALINGS[kind] if name not in rope]:
        raise ValueError(f"from_hf() needs {_some(lacking)} in the rotary positions {rope}")
    rope.setdefault("factor", context / trained)
    return ours | {"rope_scaling": RotaryScaling(kind, **_settings(kind, rope, trained)), "rope_factor": rope["factor"]}


def _settings(kind, rope, trained):
    """What a kind of scaling has besides its factor."""
    if kind == "llama3":
        return {"trained": trained, "turns": (rope["low_freq_factor"], rope["high_freq_factor"])}
    if kind == "longrope":
        short, long = tuple(rope["short_factor"]), tuple(rope["long_factor"])
        return {"trained": trained, "short": short, "long": long, "sharpness": rope.get("attention_factor")}
    if kind == "yarn":
        turns = rope.get("beta_slow") or 1, rope.get("beta_fast") or 32
        whole = rope.get("truncate", True)
        return {"trained": trained, "turns": turns, "whole_pairs": whole, "sharpness": _sharpness(rope)}
    return {}


def _sharpness(rope):
    """YaRN's factor on queries and keys, where it is not the usual one."""
    part, whole = rope.get("mscale"), rope.get("mscale_all_dim")
    stretch = 0.1 * math.log(rope["factor"])
    inferred = (1 + part * stretch) / (1 + whole * stretch) if part and whole else 1 + stretch
    found = rope.get("attention_factor", inferred)
    return None if found == 1 + stretch else found


def _their_scaling(config):
    """`rope_scaling` as config.json has it: what `_our_rotary` reads."""
    scaling = config.rope_scaling
    scaling = RotaryScaling(scaling) if isinstance(scaling, str) else scaling
    if scaling is None or scaling.kind not in _SCALINGS:
        return None
    rope = {"rope_type": scaling.kind, "factor": config.rope_factor}
    if scaling.kind in ("yarn", "longrope", "llama3"):
        rope["original_max_position_embeddings"] = scaling.trained or config.context
    if scaling.turns is not None:
        slow, fast = ("beta_slow", "beta_fast") if scaling.kind == "yarn" else ("low_freq_factor", "high_freq_factor")
        rope |= dict(zip((slow, fast), scaling.turns, strict=True))
    if scaling.kind == "longrope":
        rope |= {"short_factor": list(scaling.short), "long_factor": list(scaling.long)}
    if scaling.sharpness is not None:
        rope["attention_factor"] = float(scaling.sharpness)
    return rope if scaling.whole_pairs else rope | {"truncate": False}
