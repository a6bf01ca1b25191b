"""Checkpoints of the Hugging Face hub: the same weights and settings under other names.

A checkpoint is a folder with config.json, the settings, and model.safetensors, the tensors by name. `from_hf` turns
both into our `Config` and parameters, `to_hf` goes back. Every step renames, transposes, cuts or joins, so both
functions apply to gradients as well. What our model cannot express is an error: a checkpoint that loads gives the
numbers of the original.

Files in the format safetensors are read and written with the library of this name (extra `pretrained`).
"""

import contextlib
import json
import math
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path

import numpy as np

from ..errors import ShapeError, suggest
from ..training import Tokenizer
from ..transformer import Config, parameter_table
from ..trees import rebuild, walk
from .settings import read_settings, to_hf_config

__all__ = [
    "from_hf",
    "load_pretrained",
    "load_tensors",
    "read_json",
    "save_pretrained",
    "save_tensors",
    "to_hf",
    "written_whole",
]

_DTYPES = {  # of safetensors; NumPy has none of the last three, whose bits are read as whole numbers
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "C64": "<c8", "BOOL": "?", "I64": "<i8", "I32": "<i4", "I16": "<i2",
    "I8": "i1", "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BF16": "<u2", "F8_E5M2": "u1", "F8_E4M3": "u1",
}  # fmt: skip


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

    >>> from mathllm.transformer import Transformer, gpt2_config
    >>> config = gpt2_config(vocabulary=5, width=4, layers=1, heads=2, context=3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_pretrained(folder, config, Transformer(config).init(np.random.default_rng(0)))
    ...     load_pretrained(folder)[0] == config
    True
    """
    directory = Path(directory)
    config, index = read_json(directory / "config.json"), directory / "model.safetensors.index.json"
    files = {"model.safetensors"}
    if index.is_file():
        files = set(read_json(index).get("weight_map", {}).values())
    tensors = {name: array for file in sorted(files) for name, array in load_tensors(directory / file).items()}
    return from_hf(config, tensors)


def save_pretrained(
    directory: str | PathLike, config: Config, params: Mapping, tokenizer: Tokenizer | None = None,
    *, end: str = "<|endoftext|>",
) -> None:
    """Write a model to a folder as transformers reads it: config.json, model.safetensors, and its tokenizer if given.

    tokenizer: of chapter 13; `end`, if it is one of its special tokens, ends generated text

    Files appear in the folder when all of them are complete, config.json last.
    Raises: ValueError as `to_hf`, before anything is written; ImportError without safetensors.

    >>> from mathllm.transformer import Transformer, gpt2_config
    >>> config = gpt2_config(vocabulary=5, width=4, layers=1, heads=2, context=3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_pretrained(folder, config, Transformer(config).init(np.random.default_rng(0)))
    ...     sorted(file.name for file in Path(folder).iterdir())
    ['config.json', 'model.safetensors']
    """  # fmt: skip
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


@contextlib.contextmanager
def written_whole(directory: str | PathLike, last: str = "") -> Iterator[Path]:
    """A folder to write files into, which then move to `directory`: either all of them are written, or none appears.

    last: the name of the file that moves last, so that its presence says that the others are there

    >>> with tempfile.TemporaryDirectory() as place:
    ...     with written_whole(place) as folder:
    ...         _ = (folder / "note.txt").write_text("complete")
    ...         print(os.listdir(place) == [folder.name])
    ...     os.listdir(place)
    True
    ['note.txt']
    """
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory, prefix=".partial-") as folder:
        yield Path(folder)
        for file in sorted(Path(folder).iterdir(), key=lambda file: file.name == last):
            os.replace(file, directory / file.name)


def read_json(path: str | PathLike) -> dict:
    """The table in a JSON file.

    Raises: FileNotFoundError; ValueError that names the file if it is damaged or holds no table.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "config.json").write_text('{"n_layer": 12}')
    ...     read_json(Path(folder, "config.json"))
    {'n_layer': 12}
    """
    try:
        table = json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from None
    if not isinstance(table, dict):
        raise ValueError(f"{path} is damaged: it holds no table of names and values")
    return table


def _write_json(path, table):
    path.write_text(json.dumps(table, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


# Files in the format safetensors


def load_tensors(path: str | PathLike) -> dict[str, np.ndarray]:
    """The arrays of a safetensors file, in the order of their bytes. They are read-only views of the mapped file.

    bfloat16 and the 8-bit floats, which NumPy does not have, become float32.

    Raises: ValueError for a file that is cut off or inconsistent, and for a type that is not known; ImportError without
    safetensors.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_tensors(Path(folder) / "small.safetensors", {"x": np.array([1.0, 2.0])})
    ...     load_tensors(Path(folder) / "small.safetensors")["x"].tolist()
    [1.0, 2.0]
    """
    library = _safetensors()
    try:
        with library.safe_open(path, "numpy") as file:  # this checks the header and the length of the file
            parts = {name: file.get_slice(name) for name in file.offset_keys()}
            entries = {name: (part.get_dtype(), part.get_shape()) for name, part in parts.items()}
    except library.SafetensorError as error:
        raise ValueError(f"{path} is not a whole safetensors file: {error}") from None
    content = np.memmap(path, np.uint8, "r")
    start = 8 + int(content[:8].view("<u8")[0])  # the arrays follow the length of the header and the header
    tensors = {}
    for name, (kind, shape) in entries.items():
        if kind not in _DTYPES:
            raise ValueError(f"load_tensors() does not know the type {kind} of {name!r} in {path}")
        end = start + math.prod(shape) * np.dtype(_DTYPES[kind]).itemsize
        tensors[name] = _widened(kind, content[start:end].view(np.ndarray).view(_DTYPES[kind])).reshape(shape)
        tensors[name].flags.writeable = False
        start = end
    return tensors


def _widened(kind, bits):
    """The numbers of a type that NumPy does not have, as float32."""
    if kind == "BF16":  # the upper half of a float32
        return (bits.astype(np.uint32) << 16).view(np.float32)
    if kind == "F8_E5M2":  # the upper half of a float16
        return (bits.astype(np.uint16) << 8).view(np.float16).astype(np.float32)
    if kind == "F8_E4M3":  # 4 bits of exponent with bias 7, 3 of fraction: as the bits of a float16, with bias 15
        half = (bits & 0x80).astype(np.uint16) << 8 | (bits & 0x7F).astype(np.uint16) << 7
        return np.where(bits & 0x7F == 0x7F, np.nan, half.view(np.float16) * np.float32(2**8)).astype(np.float32)
    return bits


def save_tensors(
    path: str | PathLike, tensors: Mapping[str, np.ndarray], metadata: Mapping[str, str] | None = None
) -> None:
    """Write arrays to a safetensors file. Either the whole file appears, or none.

    tensors: name -> array of any shape and strides   metadata: texts to store beside them

    Raises: ValueError for a dtype that the format does not have, and for names or metadata that are not texts;
    ImportError without safetensors.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_tensors(Path(folder) / "small.safetensors", {"x": np.eye(2, dtype=np.float32).T})
    ...     (Path(folder) / "small.safetensors").stat().st_size % 8
    0
    """
    library, path = _safetensors(), Path(path)
    arrays = {name: np.asarray(array, order="C") for name, array in tensors.items()}  # the library ignores strides
    with written_whole(path.parent) as folder:
        new = folder / path.name
        new.touch()
        mode = new.stat().st_mode  # the library replaces the file by one that only its owner can read
        try:
            if "__metadata__" in arrays:
                raise TypeError("no array can be called __metadata__")
            library.numpy.save_file(arrays, new, dict(metadata) if metadata else None)
        except (library.SafetensorError, TypeError) as error:
            raise ValueError(f"save_tensors() cannot write {path}: {error}") from None
        new.chmod(mode)


def _safetensors():
    try:
        import safetensors.numpy
    except ModuleNotFoundError:
        needs = "files in the format safetensors need the library of this name"
        raise ImportError(f"{needs}: pip install 'mathllm[pretrained]'") from None
    return safetensors
