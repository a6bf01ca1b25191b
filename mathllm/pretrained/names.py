"""The names of tensors and settings in checkpoints of the Hugging Face hub: the tables of families.toml.

Each family of models, such as gpt2 or llama, has one table with their names beside ours; the file explains it.
"""

import dataclasses
import itertools
import re
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path

from ..transformer import Config, bert_config, gpt2_config, llama_config, mixtral_config, t5_config

NEEDED = object()
"""In place of a default: config.json must have this setting."""

_PRESETS = {
    "gpt2": gpt2_config, "llama": llama_config, "mixtral": mixtral_config, "bert": bert_config, "t5": t5_config,
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Family:
    """The names of one family of models: of one `model_type` in config.json.

    preset: our configuration with the choices of the family   settings: our field -> (their name, default)
    body, ignored, only, written, tensors, copies: as families.toml explains them
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


def _family(name, settings, written, like=None, null=(), **others):
    """The family of one table in families.toml. What the table does not say is as in the family that it is `like`."""
    inherited = _TABLES[like] if like else {"settings": {}}
    settings = {ours: _setting(entry) for ours, entry in (inherited["settings"] | settings).items()}
    own = {"name": name, "preset": _PRESETS[name], "settings": settings, "written": written | dict.fromkeys(null)}
    return Family(**inherited | others | own)


def _setting(entry):
    """The name of a setting and its default, from "needed", ["optional"] or ["optional", default]."""
    return (entry, NEEDED) if isinstance(entry, str) else (*entry, None)[:2]


_TABLES = tomllib.loads(Path(__file__).with_name("families.toml").read_text(encoding="utf-8"))
FAMILIES = {name: _family(name, **table) for name, table in _TABLES.items()}
"""The families by the `model_type` in config.json."""
