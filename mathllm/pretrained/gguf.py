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

import math
import os
import struct
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from ..errors import suggest

# The types of metadata: numbers, in the codes of struct and NumPy, texts, and arrays
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _ARRAY = 8, 9
_TYPES = {  # of tensors: name, weights in a block, bytes of a block
    0: ("F32", 1, 4), 1: ("F16", 1, 2), 2: ("Q4_0", 32, 18), 3: ("Q4_1", 32, 20), 6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24), 8: ("Q8_0", 32, 34), 9: ("Q8_1", 32, 36), 10: ("Q2_K", 256, 84), 11: ("Q3_K", 256, 110),
    12: ("Q4_K", 256, 144), 13: ("Q5_K", 256, 176), 14: ("Q6_K", 256, 210), 24: ("I8", 1, 1), 25: ("I16", 1, 2),
    26: ("I32", 1, 4), 27: ("I64", 1, 8), 28: ("F64", 1, 8), 30: ("BF16", 1, 2),
}  # fmt: skip
_SIZES = {name: (weights, size) for name, weights, size in _TYPES.values()}
_PLAIN = {"F32": "<f4", "F16": "<f2", "F64": "<f8", "I8": "<i1", "I16": "<i2", "I32": "<i4", "I64": "<i8"}
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
        self._bytes = np.memmap(self.path, np.uint8, "r") if os.path.getsize(self.path) else np.zeros(0, np.uint8)
        try:
            self.metadata, self.tensors = _read_header(self._bytes)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{self.path} is not a whole GGUF file: {error}") from None

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self.tensors:
            raise KeyError(f"{self.path} has no tensor {name!r}{suggest(str(name), self.tensors)}")
        info = self.tensors[name]
        return dequantize(self._bytes[info.start : info.start + info.bytes], info.type, info.shape)

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
    entries = {name: info._replace(start=start + info.start) for name, info in entries.items()}
    for name, info in entries.items():
        if info.start + info.bytes > len(content):
            end = info.start + info.bytes
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
        length = int.from_bytes(self.take(8), "little")
        return str(self.take(length), "utf-8")

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
        kind, weights, size = _TYPES[kind]
        if weights > 1 and (not shape or shape[-1] % weights):
            raise ValueError(f"rows of {name} {shape} are no multiple of the {weights} weights in a block of {kind}")
        return name, TensorInfo(shape, kind, start, math.prod(shape) // weights * size)


def dequantize(raw: bytes | np.ndarray, type: str, shape: int | tuple[int, ...]) -> np.ndarray:
    """The float32 weights in the bytes of a tensor, by the formula of its type in the table above.

    raw: bytes or (n,) uint8   type: "F32", "Q4_1", …   shape: of the result   ->   float32 array, writable

    Raises: ValueError for a type that is not supported, or another number of bytes than the shape needs.
    Source: the definitions of the blocks in ggml's ggml-common.h.

    >>> scale_and_minimum = np.array([0.5, -1.0], np.float16).tobytes()
    >>> dequantize(scale_and_minimum + bytes(range(16)), "Q4_1", (32,))[:4]
    array([-1. , -0.5,  0. ,  0.5], dtype=float32)
    """
    raw = np.frombuffer(np.ascontiguousarray(raw) if isinstance(raw, np.ndarray) else raw, np.uint8)
    if type not in (known := [*_PLAIN, "BF16", *_DEQUANTIZE]):
        raise ValueError(f"dequantize() does not support the type {type!r}; it supports {', '.join(known)}")
    weights, size = _SIZES[type]
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    count = math.prod(shape)
    if min(shape, default=0) < 0 or count % weights or len(raw) != count // weights * size:
        raise ValueError(
            f"dequantize() needs {size} bytes for every {weights} weights of {type}, got {len(raw)} for shape {shape}"
        )
    if type in _PLAIN:
        return raw.view(_PLAIN[type]).astype(np.float32).reshape(shape)
    if type == "BF16":  # the upper half of a float32
        return (raw.view("<u2").astype(np.uint32) << 16).view(np.float32).reshape(shape)
    blocks, step = raw.reshape(-1, size), _SLICE // weights
    out = np.empty((len(blocks), weights), np.float32)
    for i in range(0, len(blocks), step):
        _DEQUANTIZE[type](blocks[i : i + step], out[i : i + step])
    return out.reshape(shape)


# One function for each type: blocks (N, bytes) uint8 -> out (N, weights) float32, written in place


def _halves(blocks, start):
    """The float16 at byte `start` of each block, as a column of float32."""
    return np.ascontiguousarray(blocks[:, start : start + 2]).view("<f2").astype(np.float32)  # (N, 1)


def _nibbles(packed, out):
    """The lower four bits of n bytes go to the first n places, the upper four to the other n."""
    n = packed.shape[-1]
    out[..., :n] = packed & 15
    out[..., n:] = packed >> 4


def _fifth_bits(packed, out):
    """Add 16 where the fifth bit of a weight is set: 32 bits for 32 weights, lowest first."""
    out += np.unpackbits(packed, axis=-1, bitorder="little") * np.uint8(16)


def _q4_0(blocks, out):
    _nibbles(blocks[:, 2:], out)
    out -= 8
    out *= _halves(blocks, 0)


def _q4_1(blocks, out):
    _nibbles(blocks[:, 4:], out)
    out *= _halves(blocks, 0)
    out += _halves(blocks, 2)


def _q5_0(blocks, out):
    _nibbles(blocks[:, 6:], out)
    _fifth_bits(blocks[:, 2:6], out)
    out -= 16
    out *= _halves(blocks, 0)


def _q5_1(blocks, out):
    _nibbles(blocks[:, 8:], out)
    _fifth_bits(blocks[:, 4:8], out)
    out *= _halves(blocks, 0)
    out += _halves(blocks, 2)


def _q8_0(blocks, out):
    np.multiply(blocks[:, 2:].view(np.int8), _halves(blocks, 0), out=out)


def _q4_k(blocks, out):
    out = out.reshape(-1, 4, 64)
    _nibbles(blocks[:, 16:].reshape(-1, 4, 32), out)  # (N, 4, 64)
    _scale_and_shift_k(blocks, out)


def _q5_k(blocks, out):
    out = out.reshape(-1, 4, 64)
    _nibbles(blocks[:, 48:].reshape(-1, 4, 32), out)  # (N, 4, 64)
    bits = blocks[:, None, 16:48] >> np.arange(8, dtype=np.uint8)[:, None] & 1  # (N, 8, 32)
    out += bits.reshape(out.shape) * np.uint8(16)
    _scale_and_shift_k(blocks, out)


def _scale_and_shift_k(blocks, out):
    """x = d s q − d' m, with s and m of 6 bits for each of the 8 groups of 32 weights, packed into 12 bytes."""
    first, second, third = blocks[:, 4:8], blocks[:, 8:12], blocks[:, 12:16]
    scales = np.concatenate([first & 63, third & 15 | first >> 6 << 4], axis=1)  # (N, 8)
    minima = np.concatenate([second & 63, third >> 4 | second >> 6 << 4], axis=1)  # (N, 8)
    groups = out.reshape(-1, 8, 32)
    groups *= (_halves(blocks, 0) * scales)[..., None]
    groups -= (_halves(blocks, 2) * minima)[..., None]


def _q6_k(blocks, out):
    low = blocks[:, :128].reshape(-1, 2, 1, 64)  # two halves of 128 weights
    high = blocks[:, 128:192].reshape(-1, 2, 1, 32)
    four = np.concatenate([low & 15, low >> 4], axis=2).reshape(-1, 2, 4, 32)
    two = high >> np.arange(0, 8, 2, dtype=np.uint8)[:, None] & 3  # (N, 2, 4, 32)
    scales = _halves(blocks, 208) * blocks[:, 192:208].view(np.int8)  # (N, 16)
    groups = out.reshape(-1, 16, 16)
    groups[...] = (four | two << 4).reshape(groups.shape)
    groups -= 32
    groups *= scales[..., None]


_DEQUANTIZE = {
    "Q4_0": _q4_0, "Q4_1": _q4_1, "Q5_0": _q5_0, "Q5_1": _q5_1, "Q8_0": _q8_0,
    "Q4_K": _q4_k, "Q5_K": _q5_k, "Q6_K": _q6_k,
}  # fmt: skip
