"""What there is to know of a type of model before its checkpoints can be read and written."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ...transformer import Config

_ACTIVATIONS = {
    "gelu_new": "gelu_tanh", "gelu": "gelu", "relu": "relu", "silu": "silu",
    "gelu_pytorch_tanh": "gelu_tanh", "gelu_fast": "gelu_tanh", "swish": "silu",
}  # fmt: skip
_THEIR_ACTIVATION = {ours: theirs for theirs, ours in reversed(_ACTIVATIONS.items())}


@dataclass(frozen=True)
class _Kind:
    """One type: the `model_type` of config.json.

    names(config): lines "their name = our path". "ᵀ": they keep (out, in), we (in, out). "+": they keep side by side
    what we keep apart. {l} stands for the number of a block, {e} for that of an expert
    read(given), write(config): our configuration from their settings, their settings from it
    body: how their names begin; some checkpoints leave it out   embedding, unembedding: the two that may be tied
    copies: names under which a checkpoint may repeat another tensor
    no_part: a pattern of what no logit depends on: constants, and heads for other tasks
    only: settings that our model knows one value of
    """

    name: str
    names: Callable[[Config], str]
    read: Callable[[dict], Config]
    write: Callable[[Config], dict]
    body: str
    embedding: str
    no_part: str
    only: Mapping
    unembedding: str = "lm_head.weight"
    copies: Mapping = field(default_factory=dict)


class _Given(dict):
    """The settings of a config.json; one that is needed and not there has its name in the error."""

    def __init__(self, kind, settings):
        super().__init__(settings)
        self.kind = kind

    def __missing__(self, key):
        raise ValueError(f"from_hf() needs {key!r} in the configuration of a {self.kind}")


def _our_sizes(given, width, heads, layers, activation, *, tied):
    """What every type tells, each under names of its own."""
    if activation not in _ACTIVATIONS:
        raise ValueError(f"from_hf() does not support the activation {activation!r}; it knows {_some(_ACTIVATIONS)}")
    return {
        "vocabulary": given["vocab_size"], "width": width, "heads": heads, "layers": layers,
        "activation": _ACTIVATIONS[activation], "tied": given.get("tie_word_embeddings", tied),
    }  # fmt: skip


def _our_hidden_sizes(given, activation, *, tied):
    """What LLaMA and BERT name alike."""
    width, heads, layers = given["hidden_size"], given["num_attention_heads"], given["num_hidden_layers"]
    sizes = _our_sizes(given, width, heads, layers, given.get("hidden_act", activation), tied=tied)
    return sizes | {"hidden": given["intermediate_size"]}


def _their_hidden_sizes(config):
    """The same, written."""
    return {
        "hidden_size": config.width, "num_hidden_layers": config.layers, "num_attention_heads": config.heads,
        "intermediate_size": config.hidden, "hidden_act": _THEIR_ACTIVATION[config.activation],
        "max_position_embeddings": config.context,
    }  # fmt: skip


def _require_whole_heads(width, heads):
    if width % heads:
        raise ValueError(f"from_hf() cannot cut a width of {width} into {heads} heads")


def _some(names, most=4):
    names = list(names)
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
