"""A language model in one GGUF file: its weights, and the vocabulary that it brings along.

Read here are models of the architecture llama with a byte-level BPE that cuts text as GPT-2 or SmolLM2 does. Weights of
any supported type become float32; the file itself is left as it is.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from ..inference import lay_side_by_side
from ..training import Tokenizer
from ..transformer import Transformer
from .gguf import GGUF
from .huggingface import from_hf, gguf_to_hf

__all__ = ["GGUFModel", "gguf_ends", "gguf_tokenizer", "load_gguf"]

_SPECIAL, _UNUSED = (3, 4), 5  # types of tokens in GGUF: control and user-defined ones, and places that are free
_SINGLE_DIGITS = {"gpt-2": False, "smollm": True}  # how a text is cut before BPE: whether every digit stands alone


class GGUFModel(NamedTuple):
    """The model, its parameters (float32, not to be written) and its tokenizer."""

    model: Transformer
    params: dict
    tokenizer: Tokenizer


def load_gguf(file: GGUF | str | os.PathLike) -> GGUFModel:
    """The language model in a GGUF file: `model, params, tokenizer = load_gguf("SmolLM2.gguf")`.

    file: a path, or an open file

    Raises: ValueError for a file that is not whole, another architecture than llama, or a tokenizer of another kind.

    >>> from mathllm import data
    >>> if data.available("smollm2"):
    ...     print(load_gguf(next(data.path("smollm2").glob("*.gguf"))).model.config.layers)
    30
    """
    file = file if isinstance(file, GGUF) else GGUF(file)
    with ThreadPoolExecutor(2) as pool:  # NumPy lets two threads dequantise at a time
        arrays = dict(zip(file, pool.map(file.__getitem__, file), strict=True))
    config, params = from_hf(*gguf_to_hf(file, arrays))
    del arrays  # so that each matrix goes when its copy stands beside its neighbours
    lay_side_by_side(params)
    _lock(params)
    return GGUFModel(Transformer(config), params, gguf_tokenizer(file))


def gguf_tokenizer(file: GGUF) -> Tokenizer:
    """The tokenizer alone, without reading the weights.

    Raises: ValueError for a file without a vocabulary, or with one of another kind than byte-level BPE, cut before as
    GPT-2 or SmolLM2 cuts ("tokenizer.ggml.pre").

    >>> from mathllm import data
    >>> if data.available("smollm2"):
    ...     print(len(gguf_tokenizer(GGUF(next(data.path("smollm2").glob("*.gguf"))))))
    49152
    """
    metadata = {name.removeprefix("tokenizer.ggml."): value for name, value in file.metadata.items()}
    if metadata.get("model", "gpt2") != "gpt2":
        raise ValueError(f"{file.path} has a tokenizer of the kind {metadata['model']!r}; gpt2 is read here")
    for name in ("tokens", "token_type", "merges"):
        if name not in metadata:
            raise ValueError(f"{file.path} does not tell its tokenizer.ggml.{name}")
    if (cut := metadata.get("pre", "gpt-2")) not in _SINGLE_DIGITS:
        known = " and ".join(_SINGLE_DIGITS)
        raise ValueError(f"{file.path} cuts text as {cut!r} does before its merges; {known} are known here")
    kinds = list(zip(metadata["tokens"], metadata["token_type"], strict=True))
    vocabulary = {token: i for i, (token, kind) in enumerate(kinds) if kind != _UNUSED}
    special = {token: i for i, (token, kind) in enumerate(kinds) if kind in _SPECIAL}
    merges = [tuple(merge.split(" ")) for merge in metadata["merges"]]
    unknown = metadata.get("unknown_token_id")
    return Tokenizer.from_strings(vocabulary, merges, special, single_digits=_SINGLE_DIGITS[cut], unknown=unknown)


def gguf_ends(file: GGUF, tokenizer: Tokenizer) -> tuple[int, ...]:
    """The ids that end a text: what the file says, and <|endoftext|> where the tokenizer has it.

    >>> from mathllm import data
    >>> if data.available("smollm2"):
    ...     file = GGUF(next(data.path("smollm2").glob("*.gguf")))
    ...     print(gguf_ends(file, gguf_tokenizer(file)))
    (2, 0)
    """
    told = [file.metadata.get(f"tokenizer.ggml.{name}_token_id") for name in ("eos", "eot")]
    ends = [*told, tokenizer.special_tokens.get("<|endoftext|>")]
    return tuple(dict.fromkeys(i for i in ends if i is not None))


def _lock(tree):
    """Nobody shall change weights that a later call of `load` gives to somebody else."""
    for value in tree.values() if isinstance(tree, dict) else tree:
        if isinstance(value, dict | list):
            _lock(value)
        else:
            value.flags.writeable = False
