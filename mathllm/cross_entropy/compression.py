"""Arithmetic coding: the predictions of a model compress a message to about as many bits as its surprisals add up to.

The whole message becomes one number between 0 and 1. Each symbol narrows the interval in which that number lies, in
proportion to the symbol's probability. After n symbols the interval is as wide as the product of their probabilities,
and −log₂ of this width, rounded up, is a sufficient number of binary places. The decoder calls the same model on the
symbols decoded so far and follows the number through the same intervals.
"""

from collections.abc import Callable

import numpy as np

from ..autodiff import ArrayLike
from ..errors import ShapeError, within
from ..probability import distribution, token_sequence
from .information import surprise

_PLACES = 64  # binary places in which the width of the interval is counted
_SHARES = 2**32  # the number of parts into which each interval is divided


def code_length(symbols: ArrayLike, model: Callable, *, base: float = 2) -> float:
    """The ideal code length of a message under a model: the sum of its surprisals.

        ℓ = −Σₜ log_b q(xₜ | x₁ … xₜ₋₁)                                             (7.12)

    symbols: (T,) int   model: maps the symbols so far, (t,) int, to the probabilities of the next, (V,)
    base: 2 counts bits   ->   one number; divided by T it is the model's cross-entropy on the message

    Raises: as arithmetic_encode().

    >>> code_length([0, 1, 1, 0], lambda seen: [0.5, 0.5])
    4.0
    """
    symbols = token_sequence("code_length", symbols)
    p = np.array([_predicted(model, symbols, t)[symbol] for t, symbol in enumerate(symbols)], float)
    return float(surprise(np.minimum(p, 1), base=base).sum())  # the largest probability may be 1 up to rounding


def arithmetic_encode(symbols: ArrayLike, model: Callable) -> bytes:
    """Compress a sequence of symbols to about as many bits as its surprisals under the model add up to.

        low ← low + width · Σ_{x′<x} q(x′),      width ← width · q(x)               (7.13)

    symbols: (T,) int   model: maps the symbols so far, (t,) int, to the probabilities of the next, (V,)   ->   bytes

    The result is at most 8 bits longer than `code_length()`: 1 to identify a number in the interval, 7 to fill a byte
    (apart from the rounding of probabilities to multiples of 2⁻³²). A symbol of probability 0 costs about 32 bits.
    Raises: ValueError for a symbol outside the model's predictions, or predictions that are no distribution;
    ShapeError and TypeError if `symbols` is not one sequence of integers.
    Source: Witten, Neal and Cleary 1987, "Arithmetic coding for data compression".

    >>> mostly_zero = lambda seen: [0.99, 0.01]
    >>> len(arithmetic_encode([0] * 1000, mostly_zero))  # 1000 · 0.0145 bits
    2
    """
    symbols = token_sequence("arithmetic_encode", symbols)
    low, width, places = 0, 1 << _PLACES, _PLACES  # the interval [low, low + width) / 2^places
    for t, symbol in enumerate(symbols):
        start, width, zoom = _narrowed(width, _edges(_predicted(model, symbols, t)), symbol)
        low, places = (low + start) << zoom, places + zoom
    spare = width.bit_length() - 1  # places that may be left out: 2^spare ≤ width
    number, length = -(-low >> spare), places - spare  # the first multiple of 2^spare from low on
    padding = -length % 8
    return (number << padding).to_bytes((length + padding) // 8, "big")


def arithmetic_decode(code: bytes, model: Callable, length: int) -> np.ndarray:
    """Read `length` symbols back from a code, with the model that wrote it.

    code: bytes of arithmetic_encode()   model: the same function   length: T   ->   symbols: (T,) int

    The model must make the same predictions: on another machine, rounding may differ and make the rest of the message
    wrong.
    Raises: ValueError for a negative length or predictions that are no distribution.

    >>> model = lambda seen: [0.6, 0.3, 0.1]
    >>> arithmetic_decode(arithmetic_encode([0, 2, 1, 0], model), model, 4)
    array([0, 2, 1, 0])
    """
    within("arithmetic_decode", "whole [0, ∞)", length=length)
    symbols = np.zeros(length, np.int64)
    width, read = 1 << _PLACES, _PLACES
    ahead = _bits(code, 0, _PLACES)  # how far the number lies above the low end of the interval
    for t in range(length):
        edges = _edges(_predicted(model, symbols, t))
        share = ((ahead + 1) * int(edges[-1]) - 1) // width  # the last one that begins at or below the number
        symbols[t] = np.searchsorted(edges, share, side="right") - 1
        start, width, zoom = _narrowed(width, edges, symbols[t])
        ahead = (ahead - start) << zoom | _bits(code, read, zoom)
        read += zoom
    return symbols


def _predicted(model, symbols, t):
    """The model's distribution of symbol t after those before it, in which symbol t must be."""
    seen = symbols[:t]
    seen.flags.writeable = False  # a model that changed the message could not decode it
    p = distribution(model(seen))
    if p.ndim != 1:
        raise ShapeError(f"a model must give one probability for each symbol, (V,), got shape {p.shape}")
    if symbols[t] >= len(p):
        raise ValueError(f"the model knows symbols from 0 to {len(p) - 1}, got {symbols[t]}")
    return p


def _edges(p):
    """Where the part of each symbol begins, in whole numbers; every part has a width of at least 1."""
    shares = np.floor(p.astype(np.float64) * (_SHARES - len(p))).astype(np.int64) + 1
    return np.concatenate([[0], np.cumsum(shares)])


def _narrowed(width, edges, symbol):
    """The part of a symbol in an interval of this width: its start, its width, and the places added to both."""
    start, end = (width * int(edge) // int(edges[-1]) for edge in edges[symbol : symbol + 2])
    zoom = _PLACES + 1 - (end - start).bit_length()
    return start, (end - start) << zoom, zoom


def _bits(code, start, count):
    """`count` binary places of the code from place `start` on; beyond its end they are zeros."""
    first, last = start // 8, (start + count + 7) // 8
    window = int.from_bytes(code[first:last].ljust(last - first, b"\0"), "big")
    return window >> (8 * last - start - count) & ((1 << count) - 1)
