"""GGUF: one file with the sizes of a model, its vocabulary and its weights, most of them rounded to four bits or so.

A quantised tensor is a sequence of blocks. Each block stores small integers q and one or two numbers that turn them
back into weights: x = d·q, or x = d·q + m. The file is mapped into memory. A tensor becomes float32 when it is read, a
slice of blocks at a time, so that the slice stays in the cache of the processor.

    type    block  bits per weight   x
    Q4_0       32        4.5         d (q − 8)
    Q4_1       32        5           d q + m
    Q5_0       32        5.5         d (q − 16)
    Q5_1       32        6           d q + m
    Q8_0       32        8.5         d q
    Q4_K      256        4.5         d s q − d' m,     a scale s and a minimum m of 6 bits for every 32 weights
    Q5_K      256        5.5         d s q − d' m
    Q6_K      256        6.5625      d s (q − 32),     a scale s of 8 bits for every 16 weights
"""

import functools
import math
import os
import struct
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from ..errors import suggest

# The types of metadata: numbers, in the codes of struct and NumPy, texts, and arrays
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _ARRAY = 8, 9
_SLICE = 1 << 17  # weights that are dequantised at a time: 512 kB of float32


class TensorInfo(NamedTuple):
    """The header's entry of a tensor: its shape (rows first), its type, and the place of its bytes in the file."""

    shape: tuple[int, ...]
    type: str
    start: int
    bytes: int


class GGUF(Mapping):
    """An open GGUF file, version 2 or 3: `.metadata`, and tensors by name, which become float32 when they are read.

    `.tensors` has the shape and type of each without reading it. Shapes are in the order of NumPy; the file lists the
    axis that varies fastest first.

    Raises: ValueError for a file that is not GGUF, is cut off, or is inconsistent; KeyError for an unknown tensor.
    Source: the GGUF specification of the project ggml.

    >>> from mathllm import data
    >>> if data.available("smollm2"):
    ...     file = GGUF(next(data.path("smollm2").glob("*.gguf")))
    ...     print(file.metadata["llama.block_count"], file.tensors["token_embd.weight"][:2])
    30 ((49152, 576), 'Q8_0')
    """

    def __init__(self, path: str | os.PathLike):
        self.path = os.fspath(path)
        try:
            self._bytes = np.memmap(self.path, np.uint8, "r")
            self.metadata, self.tensors = _read_header(self._bytes)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{self.path} is not a whole GGUF file: {error}") from None

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self.tensors:
            raise KeyError(f"{self.path} has no tensor {name!r}{suggest(str(name), self.tensors)}")
        info = self.tensors[name]
        return dequantize(self._bytes[info.start : info.start + info.bytes], info.type, info.shape)

    def read(self, names: Iterable[str]) -> dict[str, np.ndarray]:
        """Several tensors, which become parts of one array, in this order.

        A large array has large pages, which the processor finds sooner: SmolLM2 needs 6 % less time for a token.
        """
        shapes = {name: self.tensors[name].shape for name in names}
        sizes = [math.prod(shape) for shape in shapes.values()]
        parts = np.split(np.empty(sum(sizes), np.float32), np.cumsum(sizes)[:-1])
        arrays = {name: part.reshape(shapes[name]) for name, part in zip(shapes, parts, strict=True)}
        with ThreadPoolExecutor(2) as pool:  # NumPy dequantises two tensors at a time
            list(pool.map(lambda name: np.copyto(arrays[name], self[name]), arrays))
        return arrays

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)

    def __len__(self) -> int:
        return len(self.tensors)

    def __repr__(self):
        return f"GGUF({os.path.basename(self.path)}: {len(self)} tensors)"


def _read_header(content):
    """The metadata, and a TensorInfo for each tensor."""
    if (magic := bytes(content[:4])) != b"GGUF":
        raise ValueError(f"it begins with {magic!r} instead of b'GGUF'")
    head = _Cursor(content, 4)
    version = head.number("I")
    if version not in (2, 3):
        hint = "; its numbers may be big-endian" if version & 0xFFFF == 0 else ""
        raise ValueError(f"versions 2 and 3 can be read, and this is version {version}{hint}")
    tensors, pairs = head.number("Q"), head.number("Q")
    metadata = _distinct("key", ((head.text(), head.value(head.number("I"))) for _ in range(pairs)))
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or alignment < 1:
        raise ValueError(f"it has an alignment of {alignment!r} bytes")
    entries = _distinct("tensor", (head.entry() for _ in range(tensors)))
    start = -(-head.place // alignment) * alignment  # the first byte of the tensors
    for name, info in entries.items():
        entries[name] = info._replace(start=start + info.start)
        if (end := start + info.start + info.bytes) > len(content):
            raise ValueError(f"{name} ends at byte {end:,}, but the file has {len(content):,} bytes")
    return metadata, entries


def _distinct(what, pairs):
    table = {}
    for name, value in pairs:
        if name in table:
            raise ValueError(f"the {what} {name!r} occurs twice")
        table[name] = value
    return table


class _Cursor:
    """Reads one value of the header after the other."""

    def __init__(self, source, place):
        self.source, self.place = memoryview(source), place

    def take(self, length):
        if length > len(self.source) - self.place:
            raise ValueError(f"its header ends at byte {len(self.source):,}, and {length:,} more are needed")
        self.place += length
        return self.source[self.place - length : self.place]

    def number(self, code):
        return struct.unpack("<" + code, self.take(struct.calcsize("<" + code)))[0]

    def text(self):
        return str(self.take(self.number("Q")), "utf-8")

    def value(self, kind):
        if kind in _NUMBERS:
            return self.number(_NUMBERS[kind])
        if kind == _TEXT:
            return self.text()
        if kind != _ARRAY:
            raise ValueError(f"a value is of type number {kind}, which is not known")
        inner, count = self.number("I"), self.number("Q")
        if inner in _NUMBERS:
            dtype = np.dtype("<" + _NUMBERS[inner])
            return np.frombuffer(self.take(count * dtype.itemsize), dtype).tolist()
        return [self.value(inner) for _ in range(count)]

    def entry(self):
        """The name of a tensor, and its TensorInfo with a start that counts from the first byte of the tensors."""
        name, axes = self.text(), self.number("I")
        if axes > 8:
            raise ValueError(f"{name} has {axes} axes")
        shape = tuple(self.number("Q") for _ in range(axes))[::-1]
        kind, start = self.number("I"), self.number("Q")
        if kind not in _TYPES:
            raise ValueError(f"{name} is of type number {kind}, which is not known")
        kind, weights, block, _ = _TYPES[kind]
        if weights > 1 and (not shape or shape[-1] % weights):
            raise ValueError(f"rows of {name} {shape} are no multiple of the {weights} weights in a block of {kind}")
        return name, TensorInfo(shape, kind, start, math.prod(shape) // weights * block.itemsize)


def dequantize(raw: bytes | np.ndarray, type: str, shape: int | tuple[int, ...]) -> np.ndarray:
    """The float32 weights in the bytes of a tensor, by the formula of its type in the table above.

    raw: bytes or (n,) uint8   type: "F32", "Q4_1", …   shape: of the result   ->   float32 array, writable

    Raises: ValueError for a type that is not supported, or another number of bytes than the shape needs.
    Source: the definitions of the blocks in ggml's ggml-common.h.

    >>> scale_and_minimum = np.array([0.5, -1.0], np.float16).tobytes()
    >>> dequantize(scale_and_minimum + bytes(range(16)), "Q4_1", (32,))[:4]
    array([-1. , -0.5,  0. ,  0.5], dtype=float32)
    """
    known = {name: (weights, block, read) for name, weights, block, read in _TYPES.values() if read}
    if type not in known:
        raise ValueError(f"dequantize() does not support the type {type!r}; it supports {', '.join(known)}")
    weights, block, read = known[type]
    raw = np.ascontiguousarray(memoryview(raw))
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    blocks = math.prod(shape) // weights
    if min(shape, default=0) < 0 or (math.prod(shape), len(raw)) != (blocks * weights, blocks * block.itemsize):
        needed = f"{block.itemsize} bytes for every {weights} weights of {type}"
        raise ValueError(f"dequantize() needs {needed}, got {len(raw)} for shape {shape}")
    out, step = np.empty((blocks, weights), np.float32), _SLICE // weights
    for i in range(0, blocks, step):
        read(raw.view(block)[i : i + step], out[i : i + step])
    return out.reshape(shape)


# The types of tensors. A function reads N blocks into `out`, (N, weights) float32


def _plain(blocks, out):
    out[:, 0] = blocks


def _bfloat16(blocks, out):
    out.view(np.uint32)[:, 0] = blocks.astype(np.uint32) << 16  # the upper half of a float32


def _column(numbers):
    """One float16 of each block, as a column of float32."""
    return numbers.astype(np.float32)[:, None]  # (N, 1)


def _nibbles(packed, out):
    """The lower four bits of n bytes go to the first n places, the upper four to the other n."""
    n = packed.shape[-1]
    out[..., :n] = packed & 15
    out[..., n:] = packed >> 4


def _q8_0(blocks, out):
    np.multiply(blocks["q"], _column(blocks["d"]), out=out)


def _of_32(blocks, out, zero=0):
    """x = d (q − zero), or d q + m. Q5 keeps the fifth bits of the 32 weights in `high`, lowest first."""
    _nibbles(blocks["q"], out)
    if "high" in blocks.dtype.names:
        out += np.unpackbits(blocks["high"], axis=-1, bitorder="little") * np.uint8(16)
    if zero:
        out -= zero
    out *= _column(blocks["d"])
    if "m" in blocks.dtype.names:
        out += _column(blocks["m"])


def _of_256(blocks, out):
    """x = d s q − m s', with s and s' of 6 bits for each of the 8 groups of 32 weights, packed into 12 bytes."""
    quarters = out.reshape(-1, 4, 64)
    _nibbles(blocks["q"], quarters)
    if "high" in blocks.dtype.names:
        bits = blocks["high"][:, None] >> np.arange(8, dtype=np.uint8)[:, None] & 1  # (N, 8, 32)
        quarters += bits.reshape(quarters.shape) * np.uint8(16)
    first, second, third = np.split(blocks["scales"], 3, axis=1)
    scales = np.concatenate([first & 63, third & 15 | first >> 6 << 4], axis=1)  # (N, 8)
    minima = np.concatenate([second & 63, third >> 4 | second >> 6 << 4], axis=1)  # (N, 8)
    groups = out.reshape(-1, 8, 32)
    groups *= (_column(blocks["d"]) * scales)[..., None]
    groups -= (_column(blocks["m"]) * minima)[..., None]


def _q6_k(blocks, out):
    low, high = blocks["low"], blocks["high"]  # two halves of 128 weights
    four = np.concatenate([low & 15, low >> 4], axis=2).reshape(-1, 2, 4, 32)
    two = high >> np.arange(0, 8, 2, dtype=np.uint8)[:, None] & 3  # (N, 2, 4, 32)
    scales = _column(blocks["d"]) * blocks["scales"]  # (N, 16)
    groups = out.reshape(-1, 16, 16)
    groups[...] = (four | two << 4).reshape(groups.shape)
    groups -= 32
    groups *= scales[..., None]


_D, _M, _HIGH, _Q32 = ("d", "<f2"), ("m", "<f2"), ("high", "u1", 4), ("q", "u1", 16)
_SCALES, _Q256 = ("scales", "u1", 12), ("q", "u1", (4, 32))
_TYPES = {  # by number: name, weights in a block, the fields of its bytes, the function; the last three are not read
    number: (name, weights, np.dtype(fields), function)
    for number, name, weights, fields, function in [
        (0, "F32", 1, "<f4", _plain), (1, "F16", 1, "<f2", _plain), (28, "F64", 1, "<f8", _plain),
        (24, "I8", 1, "<i1", _plain), (25, "I16", 1, "<i2", _plain), (26, "I32", 1, "<i4", _plain),
        (27, "I64", 1, "<i8", _plain), (30, "BF16", 1, "<u2", _bfloat16),
        (2, "Q4_0", 32, [_D, _Q32], functools.partial(_of_32, zero=8)),
        (3, "Q4_1", 32, [_D, _M, _Q32], _of_32),
        (6, "Q5_0", 32, [_D, _HIGH, _Q32], functools.partial(_of_32, zero=16)),
        (7, "Q5_1", 32, [_D, _M, _HIGH, _Q32], _of_32),
        (8, "Q8_0", 32, [_D, ("q", "i1", 32)], _q8_0),
        (12, "Q4_K", 256, [_D, _M, _SCALES, _Q256], _of_256),
        (13, "Q5_K", 256, [_D, _M, _SCALES, ("high", "u1", 32), _Q256], _of_256),
        (14, "Q6_K", 256, [("low", "u1", (2, 1, 64)), ("high", "u1", (2, 1, 32)), ("scales", "i1", 16), _D], _q6_k),
        (9, "Q8_1", 32, "V36", None), (10, "Q2_K", 256, "V84", None), (11, "Q3_K", 256, "V110", None),
    ]
}  # fmt: skip
