"""A checkpoint in a folder: config.json, model.safetensors, and the tokenizer beside them."""

import json
from collections.abc import Mapping
from pathlib import Path

from ...transformer import Config
from .. import safetensors
from .settings import to_hf_config
from .weights import from_hf, to_hf

__all__ = ["load_pretrained", "save_pretrained"]


def load_pretrained(directory) -> tuple[Config, dict]:
    """A checkpoint from a folder with config.json and model.safetensors (or several, with their index).

    Raises: FileNotFoundError; ValueError as `from_hf` and `safetensors.load`.

    >>> import tempfile
    >>> import numpy as np
    >>> from mathllm.transformer import Transformer, gpt2_config
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
    >>> import numpy as np
    >>> from mathllm.transformer import Transformer, gpt2_config
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
