"""Plain data across a border: what may leave a learner's process, and how.

Numbers, strings, None, `...`, NumPy arrays and scalars, and tuples, lists and dicts of them become JSON; floats travel
as hex strings, so every bit arrives. Nothing else is encoded. Decoding is strict and bounded: text from a hostile
process yields plain data or a CodecError, never a call into anything.
"""

import json
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np

__all__ = ["MAX_TEXT", "CodecError", "decode", "dumps", "encode", "loads"]

MAX_TEXT = 4_000_000  # characters of JSON in one message
MAX_ENTRIES = 200_000  # numbers and strings in one value
MAX_DEPTH = 8
DTYPES = {name: np.dtype(name) for name in ("bool", "float16", "float32", "float64")} | {
    f"{sign}int{bits}": np.dtype(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)
}


class CodecError(ValueError):
    """A value that is not plain data, is too large, or is malformed."""


def encode(value, depth=0):
    """Plain data as a JSON-able structure.

    >>> encode((1, 0.5)), encode(np.ones(2, np.float32))
    (['tuple', 1, ['float', '0x1.0000000000000p-1']], ['array', 'float32', [2], ['0x1.0000000000000p+0', \
'0x1.0000000000000p+0']])
    """
    if depth > MAX_DEPTH:
        raise CodecError(f"nested more than {MAX_DEPTH} deep")
    if value is None or isinstance(value, (bool, str)):
        return value if not isinstance(value, str) else str(value)[:MAX_ENTRIES]
    if value is Ellipsis:
        return ["ellipsis"]
    if isinstance(value, (Fraction, Decimal)):
        return ["float", float(value).hex()]
    if isinstance(value, (np.ndarray, np.generic)):
        return _encode_array(value, depth)
    if isinstance(value, int):
        if abs(value) >= 2**63:
            raise CodecError("an integer of more than 64 bits")
        return int(value)
    if isinstance(value, float):
        return ["float", float(value).hex()]
    if isinstance(value, (list, tuple, dict)):
        if len(value) > MAX_ENTRIES:
            raise CodecError(f"more than {MAX_ENTRIES} entries")
        if isinstance(value, dict):
            return ["dict", *([encode(k, depth + 1), encode(v, depth + 1)] for k, v in value.items())]
        return ["tuple" if isinstance(value, tuple) else "list", *(encode(v, depth + 1) for v in value)]
    if isinstance(value, complex):
        raise CodecError("a complex number; if its imaginary part is 0, take `.real`")
    if isinstance(value, (set, frozenset)):
        raise CodecError("a set, which has no order; use a list")
    raise CodecError(
        f"an object of type {type(value).__name__}; a number, a string, an array, or a list of them can be compared"
    )


def _encode_array(value, depth):
    array = np.asarray(value)
    name = str(array.dtype)
    if array.dtype.kind in "UO":  # strings, or numbers that are Python objects
        return encode(array.tolist(), depth + 1)
    if array.dtype.kind == "c":
        raise CodecError("complex numbers; if their imaginary parts are 0, take `.real`")
    if name not in DTYPES:
        raise CodecError(f"an array of dtype {name}; use float64, float32, integers or booleans")
    if array.size > MAX_ENTRIES:
        raise CodecError(f"an array of more than {MAX_ENTRIES} entries")
    flat = array.ravel().tolist()
    if array.dtype.kind == "f":
        flat = [number.hex() for number in flat]
    kind = "scalar" if isinstance(value, np.generic) else "array"
    return [kind, name, list(array.shape), flat]


def decode(data, depth=0):
    """The value that `encode` encoded. Raises CodecError for anything that `encode` cannot have made."""
    if depth > MAX_DEPTH:
        raise CodecError(f"nested more than {MAX_DEPTH} deep")
    if data is None or isinstance(data, (bool, str)):
        return data
    if isinstance(data, int):
        if abs(data) >= 2**63:
            raise CodecError("an integer of more than 64 bits")
        return data
    if not isinstance(data, list) or not data or not isinstance(data[0], str) or len(data) > MAX_ENTRIES + 1:
        raise CodecError("malformed value")
    kind, *rest = data
    if kind == "ellipsis" and not rest:
        return Ellipsis
    if kind == "float" and len(rest) == 1:
        return _float(rest[0])
    if kind in ("list", "tuple"):
        return {"list": list, "tuple": tuple}[kind](decode(entry, depth + 1) for entry in rest)
    if kind == "dict":
        if not all(isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], (str, int)) for pair in rest):
            raise CodecError("malformed dict")
        return {key: decode(entry, depth + 1) for key, entry in rest}
    if kind in ("array", "scalar") and len(rest) == 3:
        return _decode_array(kind, *rest)
    raise CodecError(f"malformed value of kind {kind[:20]!r}")


def _decode_array(kind, name, shape, flat):
    if not isinstance(name, str) or name not in DTYPES or not isinstance(shape, list) or not isinstance(flat, list):
        raise CodecError("malformed array")
    dtype = DTYPES[name]
    right = all(type(size) is int and 0 <= size <= MAX_ENTRIES for size in shape) and len(shape) <= 32
    if not right or math.prod(shape) != len(flat) or len(flat) > MAX_ENTRIES or (kind == "scalar" and shape):
        raise CodecError("malformed array: the shape does not fit the entries")
    wanted = {"f": str, "b": bool}.get(dtype.kind, int)
    if any(type(entry) is not wanted for entry in flat):
        raise CodecError(f"malformed array: entries do not fit {name}")
    try:
        array = np.array([_float(e) for e in flat] if wanted is str else flat, dtype=dtype).reshape(shape)
    except (OverflowError, ValueError) as error:
        raise CodecError(f"malformed array of {name}") from error
    return array[()] if kind == "scalar" else array


def _float(text):
    if not isinstance(text, str) or len(text) > 40:
        raise CodecError("malformed float")
    try:
        return float.fromhex(text)
    except (ValueError, OverflowError) as error:
        raise CodecError("malformed float") from error


def dumps(data):
    """A JSON-able structure as text, of bounded length."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    if len(text) > MAX_TEXT:
        raise CodecError(f"more than {MAX_TEXT} characters of data")
    return text


def loads(text):
    """The JSON-able structure in a text. Raises CodecError if there is none, or it is too long or too deep."""
    if not isinstance(text, str) or len(text) > MAX_TEXT:
        raise CodecError("no text, or too much of it")
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise CodecError("malformed JSON") from error


def _no_constant(name):
    raise CodecError(f"{name} is not JSON")
