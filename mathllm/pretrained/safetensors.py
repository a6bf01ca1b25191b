"""safetensors: arrays under their names in one file, with nothing in it that could be executed.

The file is the length of a header (8 bytes), the header (JSON: type, shape and place of each array), and the bytes of
the arrays, one after the other. Arrays of a type that NumPy has are views of the mapped file: opening a gigabyte costs
nothing until it is read, and the views cannot be written. bfloat16 and the 8-bit floats, which NumPy does not have,
become float32.
"""

import json
import math
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

__all__ = ["load", "metadata", "save"]

_NUMPY = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "C64": "<c8", "BOOL": "?",
    "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1",
}  # fmt: skip
_NAMES = {np.dtype(dtype): name for name, dtype in _NUMPY.items()}
_WIDENED = {"BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1}  # bytes of what becomes float32
_LONGEST_HEADER = 100_000_000


def load(path) -> dict[str, np.ndarray]:
    """All arrays of a safetensors file, in the order of their bytes; they cannot be written (copy them to do so).

    Raises: ValueError for a file that is cut off or contradicts itself, and for a type that is not known.
    Source: the format description of the project safetensors.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(Path(folder) / "small.safetensors", {"x": np.array([1.0, 2.0])})
    ...     load(Path(folder) / "small.safetensors")["x"].tolist()
    [1.0, 2.0]
    """
    content, start, header = _open(path)
    return {name: _array(content, start, entry) for name, entry in header.items() if name != "__metadata__"}


def metadata(path) -> dict[str, str]:
    """The texts that a safetensors file carries beside its arrays.

    Raises: ValueError as `load`.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(Path(folder) / "small.safetensors", {}, {"format": "np"})
    ...     metadata(Path(folder) / "small.safetensors")
    {'format': 'np'}
    """
    return _open(path)[2].get("__metadata__", {})


def save(path, tensors: Mapping[str, np.ndarray], metadata: Mapping[str, str] | None = None) -> None:
    """Write arrays to a safetensors file. The file appears whole or not at all, even if the program is killed.

    tensors: name -> array of any shape and strides   metadata: texts to carry along

    Raises: ValueError for a dtype that the format does not have, or metadata that are no texts.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(Path(folder) / "small.safetensors", {"x": np.eye(2, dtype=np.float32).T})
    ...     (Path(folder) / "small.safetensors").stat().st_size % 8
    0
    """
    arrays = {name: np.asarray(array) for name, array in tensors.items()}
    header, place = {}, 0
    if metadata:
        if not all(isinstance(text, str) for item in metadata.items() for text in item):
            raise ValueError("save() carries metadata from text to text only")
        header["__metadata__"] = dict(metadata)
    # The widest types first, so that every array begins at a multiple of its own item size.
    for name in sorted(arrays, key=lambda name: -arrays[name].dtype.itemsize):
        array = arrays[name]
        kind = _NAMES.get(array.dtype.newbyteorder("<"))
        if kind is None or not isinstance(name, str) or name == "__metadata__":
            raise ValueError(f"save() cannot write {name!r} of dtype {array.dtype}; it knows {', '.join(_NUMPY)}")
        end = place + array.nbytes
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [place, end]}
        place = end
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path = Path(path)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(len(text).to_bytes(8, "little") + text)
            for name in header:
                if name != "__metadata__":
                    little = arrays[name].astype(_NUMPY[header[name]["dtype"]], copy=False)
                    stream.write(little.reshape(-1).view(np.uint8).data)
            stream.flush()
            os.fsync(stream.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)  # a temporary file is its owner's alone; this one is to be like others
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _open(path):
    """The bytes of the file, the place where the arrays begin, and the header, whose every statement was checked."""

    def error(problem):
        return ValueError(f"{os.fspath(path)} is not a whole safetensors file: {problem}")

    size = os.path.getsize(path)
    if size < 8:
        raise error(f"it has {size} bytes, and the length of its header alone takes 8")
    content = np.memmap(path, np.uint8, "r")
    length = int.from_bytes(content[:8].tobytes(), "little")
    if length > min(size - 8, _LONGEST_HEADER):
        raise error(f"its header should have {length:,} bytes, and the file has {size:,}")
    try:
        header = json.loads(content[8 : 8 + length].tobytes(), object_pairs_hook=_unique)
    except (ValueError, RecursionError) as problem:
        raise error(f"its header is no JSON: {problem}") from None
    texts = header.get("__metadata__", {}) if isinstance(header, dict) else None
    if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
        raise error("its header is not a table of arrays and texts")
    entries = {name: entry for name, entry in header.items() if name != "__metadata__"}
    for name, entry in entries.items():
        if problem := _problem(entry):
            raise error(f"{name!r} {problem}")
    place = 0
    ordered = dict(sorted(entries.items(), key=lambda item: item[1]["data_offsets"]))
    for name, entry in ordered.items():
        if entry["data_offsets"][0] != place:
            raise error(f"{name!r} begins at byte {entry['data_offsets'][0]:,}, where {place:,} was due")
        place = entry["data_offsets"][1]
    if 8 + length + place != size:
        raise error(f"its arrays end at byte {8 + length + place:,}, and the file at {size:,}")
    return content, 8 + length, {"__metadata__": texts} | ordered


def _unique(pairs):
    table = dict(pairs)
    if len(table) < len(pairs):
        raise ValueError("a name occurs twice")
    return table


def _problem(entry):
    """What is wrong with the header's entry of one array, or None."""
    if not isinstance(entry, dict) or not {"dtype", "shape", "data_offsets"} <= set(entry):
        return "lacks dtype, shape or data_offsets"
    kind, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if kind not in [*_NUMPY, *_WIDENED]:
        return f"is of type {kind!r}, which is not known here"
    for numbers in (shape, offsets):
        if not isinstance(numbers, list) or not all(type(n) is int and n >= 0 for n in numbers):
            return f"has a shape or a place that is no list of natural numbers: {numbers}"
    if len(offsets) != 2 or offsets[1] - offsets[0] != math.prod(shape) * _item_size(kind):
        return f"of shape {tuple(shape)} and type {kind} does not fill the bytes {offsets}"
    return None


def _item_size(kind):
    return _WIDENED.get(kind) or np.dtype(_NUMPY[kind]).itemsize


def _array(content, start, entry):
    first, end = entry["data_offsets"]
    raw, kind = content[start + first : start + end].view(np.ndarray), entry["dtype"]
    if kind in _NUMPY:
        values = raw.view(_NUMPY[kind])
    elif kind == "BF16":  # the upper half of a float32
        values = (raw.view("<u2").astype(np.uint32) << 16).view(np.float32)
    elif kind == "F8_E5M2":  # the upper half of a float16
        values = (raw.astype(np.uint16) << 8).view(np.float16).astype(np.float32)
    else:
        values = _e4m3()[raw]
    values = values.reshape(entry["shape"])
    values.flags.writeable = False
    return values


def _e4m3():
    """The 256 numbers of sign, 4 bits of exponent (bias 7) and 3 of fraction; without infinity, two are no number."""
    bits = np.arange(128)
    exponent, fraction = bits >> 3, bits & 7
    size = np.where(exponent == 0, fraction / 8 * 2.0**-6, (1 + fraction / 8) * 2.0 ** (exponent - 7.0))
    size[127] = np.nan
    return np.concatenate([size, -size]).astype(np.float32)
