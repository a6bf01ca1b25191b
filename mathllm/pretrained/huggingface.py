"""Checkpoints of the Hugging Face hub: the same weights and settings under other names.

A checkpoint is a folder with config.json, the settings, and model.safetensors, the tensors by name. `from_hf` turns
both into our `Config` and parameters, `to_hf` goes back. Every step renames, transposes, cuts or joins, so both
functions apply to gradients as well. What our model cannot express is an error: a checkpoint that loads gives the
numbers of the original.

files.py reads and writes the single files.
"""

import json
import re
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..errors import ShapeError, suggest
from ..training import Tokenizer
from ..transformer import Config, Transformer, parameter_table
from ..trees import rebuild, walk
from .files import load_tensors, read_json, save_tensors, written_whole
from .settings import read_settings, to_hf_config
from .wordpiece import WordPiece


class Pretrained(NamedTuple):
    """A model, its parameters (float32, read-only) and its tokenizer."""

    model: Transformer
    params: dict
    tokenizer: Tokenizer | WordPiece


# Names


def from_hf(config: Mapping, tensors: Mapping[str, np.ndarray]) -> tuple[Config, dict]:
    """Our configuration and parameters for a checkpoint of type gpt2, llama, mixtral, bert or t5.

    config: the content of config.json   tensors: arrays by their names there   ->   (Config, params)

    The parameters are views of the tensors, transposed where necessary. Names may lack the prefix of the body ("h.0…"
    for "transformer.h.0…"). A BERT without cls.predictions has no head. Tensors that no logit depends on are ignored:
    the pooler of BERT, constants such as position_ids.

    Raises: ValueError for missing or unexpected tensors and for settings that our model does not have; ShapeError for
    a tensor of another shape than the configuration says.

    >>> from mathllm.transformer import Transformer, gpt2_config
    >>> config = gpt2_config(vocabulary=5, width=4, layers=1, heads=2, context=3)
    >>> tensors = to_hf(config, Transformer(config).init(np.random.default_rng(0)))
    >>> from_hf(to_hf_config(config), tensors)[0] == config
    True
    """
    head = any(name.startswith("cls.predictions.") for name in tensors)
    family, ours = read_settings(config, head=head)
    found = _distinct(family, ours.tied, tensors)
    table = parameter_table(ours)
    shapes = _shapes(table)
    names = family.names(ours, shapes)
    _require_all(f"from_hf(), for a {family.name} of {ours.layers} layers,", wanted=names, found=found)
    parts = {}
    for name, (places, transposed) in names.items():
        parts |= zip(places, _cut(name, found[name], [shapes[place] for place in places], transposed), strict=True)
    return ours, rebuild(table, iter([parts[place] for place in shapes]))


def to_hf(config: Config, params: Mapping) -> dict[str, np.ndarray]:
    """Parameters, or gradients, under the names of a Hugging Face checkpoint: the inverse of `from_hf`.

    config, params: as of `Transformer`   ->   name -> array, for the model type in `to_hf_config(config)`

    Raises: ValueError for a model that is none of gpt2, llama, mixtral, bert and t5, and for missing or unexpected
    parameters; ShapeError for a parameter of another shape than the configuration says.

    >>> from mathllm.transformer import Transformer, llama_config
    >>> config = llama_config(vocabulary=5, width=4, layers=1, heads=2, hidden=6)
    >>> to_hf(config, Transformer(config).init(np.random.default_rng(0)))["model.layers.0.mlp.up_proj.weight"].shape
    (6, 4)
    """
    family, _ = read_settings(to_hf_config(config))
    shapes, leaves = _shapes(parameter_table(config)), {_place(path): np.asarray(leaf) for path, leaf in walk(params)}
    _require_all(f"to_hf(), for a {family.name} of {config.layers} layers,", wanted=shapes, found=leaves)
    for place, shape in shapes.items():
        if leaves[place].shape != shape:
            raise ShapeError(f"to_hf() needs {place} of shape {shape}, got {leaves[place].shape}")
    tensors = {}
    for name, (places, transposed) in family.names(config, shapes).items():
        parts = [leaves[place] for place in places]
        joined = np.concatenate(parts, axis=-1) if len(parts) > 1 else parts[0]
        if config.bert and not config.bert.head:
            name = name.removeprefix("bert.")  # a BertModel without a head has no prefix
        tensors[name] = joined.T if transposed else joined
    return tensors


def _place(path):
    return ".".join(map(str, path))


def _shapes(table):
    return {_place(path): parameter.shape for path, parameter in walk(table)}


def _distinct(family, tied, tensors):
    """The tensors under their full names, without those that are ignored and those that repeat another one."""
    complete = (family.body, "lm_head.", "cls.")
    found = {name if name.startswith(complete) else family.body + name: array for name, array in tensors.items()}
    if len(found) < len(tensors):
        raise ValueError(f"from_hf() got a tensor twice, with {family.body!r} before its name and without")
    named = {ours[0]: theirs for theirs, ours, _ in family.lines()}
    copies = family.copies | ({named["unembedding"]: named["embedding"]} if tied else {})
    for copy, original in copies.items():
        if copy in found:
            array = found.pop(copy)
            if not np.array_equal(array, found.setdefault(original, array), equal_nan=True):
                raise ValueError(f"from_hf() needs {copy} to equal {original}, to which the configuration ties it")
    return {name: array for name, array in found.items() if not re.search(family.ignored, name)}


def _require_all(whose, *, wanted, found):
    """Nothing is missing, and nothing is left over."""
    missing, extra = [name for name in wanted if name not in found], [name for name in found if name not in wanted]
    if missing or extra:
        problems = [f"misses {_some(missing)}"] * bool(missing) + [f"does not expect {_some(extra)}"] * bool(extra)
        hint = suggest(missing[0], extra) if missing else ""
        raise ValueError(f"{whose} {' and '.join(problems)}{hint}")


def _some(names, most=4):
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _cut(name, array, shapes, transposed):
    """Their tensor as our parameters, which it may hold side by side."""
    array, columns = np.asarray(array), np.cumsum([shape[-1] for shape in shapes])
    expected = (*shapes[0][:-1], int(columns[-1]))
    expected = expected[::-1] if transposed else expected
    if array.shape != expected:
        raise ShapeError(f"from_hf() needs {name} of shape {expected}, got {array.shape}")
    return np.split(array.T if transposed else array, columns[:-1], axis=-1)


# Folders


def load_pretrained(directory: str | PathLike) -> tuple[Config, dict]:
    """A checkpoint from a folder with config.json and model.safetensors (or several such files, with their index).

    Raises: FileNotFoundError; ValueError as `from_hf` and `load_tensors`; ImportError without safetensors.

    >>> from tempfile import TemporaryDirectory
    >>> from mathllm.transformer import Transformer, gpt2_config
    >>> config = gpt2_config(vocabulary=5, width=4, layers=1, heads=2, context=3)
    >>> with TemporaryDirectory() as folder:
    ...     save_pretrained(folder, config, Transformer(config).init(np.random.default_rng(0)))
    ...     load_pretrained(folder)[0] == config
    True
    """
    directory, tensors = Path(directory), {}
    for file in weight_files(directory):
        tensors |= load_tensors(directory / file)
    return from_hf(read_json(directory / "config.json"), tensors)


def weight_files(directory: str | PathLike) -> list[str]:
    """The names of the files with the tensors of a checkpoint: those that its index lists, or model.safetensors.

    Raises: ValueError for a damaged index.

    >>> weight_files("folder")
    ['model.safetensors']
    """
    index = Path(directory) / "model.safetensors.index.json"
    if not index.is_file():
        return ["model.safetensors"]
    files = read_json(index).get("weight_map")
    if not isinstance(files, dict) or not files:
        raise ValueError(f"{index} is damaged: it has no weight_map with the file of each tensor")
    return sorted(set(files.values()))


def save_pretrained(
    directory: str | PathLike,
    config: Config,
    params: Mapping,
    tokenizer: Tokenizer | None = None,
    *,
    end: str = "<|endoftext|>",
) -> None:
    """Write a model to a folder as transformers reads it: config.json, model.safetensors, and its tokenizer if given.

    tokenizer: of chapter 13; `end`, if it is one of its special tokens, ends generated text

    Files appear in the folder when all of them are complete, config.json last.
    Raises: ValueError as `to_hf`, before anything is written; ImportError without safetensors.

    >>> from tempfile import TemporaryDirectory
    >>> from mathllm.transformer import Transformer, gpt2_config
    >>> config = gpt2_config(vocabulary=5, width=4, layers=1, heads=2, context=3)
    >>> with TemporaryDirectory() as folder:
    ...     save_pretrained(folder, config, Transformer(config).init(np.random.default_rng(0)))
    ...     sorted(file.name for file in Path(folder).iterdir())
    ['config.json', 'model.safetensors']
    """
    tensors, table = to_hf(config, params), to_hf_config(config)
    table["dtype"] = table["torch_dtype"] = str(next(iter(tensors.values())).dtype)
    with written_whole(directory, last="config.json") as folder:
        if tokenizer is not None:
            tokenizer.save(folder / "tokenizer.json")
            settings = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": config.context}
            if end in tokenizer.special_tokens:
                settings["eos_token"], table["eos_token_id"] = end, tokenizer.special_tokens[end]
            _write_json(folder / "tokenizer_config.json", settings)
        _write_json(folder / "config.json", table)
        save_tensors(folder / "model.safetensors", tensors, {"format": "pt"})


def _write_json(path, table):
    path.write_text(json.dumps(table, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
