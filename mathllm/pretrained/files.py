"""The single files of a checkpoint: JSON, and arrays in the format safetensors, with the library of this name.

The library belongs to the extra `pretrained`. Files are written beside their place and renamed when they are complete.
"""

import contextlib
import json
import math
import os
import tempfile
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path

import numpy as np

_DTYPES = {  # of safetensors; NumPy has none of the last three, whose bits are read as whole numbers
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "C64": "<c8", "BOOL": "?", "I64": "<i8", "I32": "<i4", "I16": "<i2",
    "I8": "i1", "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BF16": "<u2", "F8_E5M2": "u1", "F8_E4M3": "u1",
}  # fmt: skip


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
