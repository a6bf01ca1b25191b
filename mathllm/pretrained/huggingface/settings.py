"""config.json and our configuration: the same choices and sizes, each under the names of its type."""

import dataclasses
from collections.abc import Mapping

from ...transformer import Config
from .bert import _BERT
from .gpt2 import _GPT2
from .kinds import _Given, _Kind
from .llama import _LLAMA, _MIXTRAL
from .t5 import _T5

__all__ = ["to_hf_config"]

_KINDS = {kind.name: kind for kind in (_GPT2, _LLAMA, _MIXTRAL, _BERT, _T5)}


def to_hf_config(config: Config) -> dict:
    """The table config.json of a model, as transformers wants it; `from_hf` makes the same `Config` of it.

    An encoder is a bert, an encoder with a decoder a t5, a decoder with experts a mixtral, one with RMS norm a llama,
    any other a gpt2. Special tokens are not set, for a `Config` knows none, and dropout is 0.

    Raises: ValueError for a configuration that the Hugging Face type cannot express, with the fields that differ.

    >>> from mathllm.transformer import llama_config
    >>> to_hf_config(llama_config(layers=4))["num_hidden_layers"]
    4
    """
    kind = _kind_for(config)
    table = {"model_type": kind.name, "vocab_size": config.vocabulary, "tie_word_embeddings": config.tied}
    table |= dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id")) | kind.write(config)
    ours, back = vars(config), vars(_read_config(table, head=config.head_transform))
    if fields := [name for name in ours if ours[name] != back[name]]:
        differ = ", ".join(f"{name}={ours[name]!r} (it has {back[name]!r})" for name in fields)
        raise ValueError(f"a {kind.name} of Hugging Face cannot express {differ}")
    return table


def _kind_for(config: Config) -> _Kind:
    if not config.causal:
        return _BERT
    if config.encoder_layers:
        return _T5
    if config.experts:
        return _MIXTRAL
    return _LLAMA if config.norm == "rms" else _GPT2


def _kind_of(table: Mapping) -> _Kind:
    if (name := table.get("model_type")) not in _KINDS:
        raise ValueError(f"from_hf() knows the model types {', '.join(_KINDS)}; got {name!r}")
    return _KINDS[name]


def _read_config(table: Mapping, *, head: bool) -> Config:
    """Our configuration for a config.json; a setting of None counts as not set.   head: whether a BERT has its own"""
    kind = _kind_of(table)
    given = _Given(kind.name, {name: value for name, value in table.items() if value is not None})
    for name, only in kind.only.items():
        if given.get(name, only) != only:
            raise ValueError(f"from_hf() does not support {name}={given[name]!r}; it knows {only!r} alone")
    config = kind.read(given)
    if config.head_transform and not head:
        return dataclasses.replace(config, head_transform=False, tied=True)  # without a head there is nothing to tie
    return config
