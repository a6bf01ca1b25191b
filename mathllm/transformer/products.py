"""Matrix products of all tokens with one matrix, in blocks that the library multiplies as they lie."""

import functools
import math

import numpy as np

from ..autodiff.memory import _empty

_SMALL = 10**6  # multiplications up to which OpenBLAS packs nothing first, where the processor has AVX-512
_CACHE = 1 << 16  # numbers of the matrix, which comes by once for every block of rows


def _product(x, weights):
    """x @ weights, the rows of all sequences in one product.   x: (..., m)   weights: (m, n)   ->   (..., n)"""
    y = _empty((*x.shape[:-1], weights.shape[1]), x.dtype)
    a, out = x.reshape(-1, x.shape[-1]), y.reshape(-1, y.shape[-1])
    (m, k), n = a.shape, weights.shape[1]
    if 2 * weights.size <= _CACHE:  # worth a copy, if it is a transpose
        weights = np.ascontiguousarray(weights)
    rows, columns = _block(m, k, n) if weights.flags.c_contiguous else (m or 1, n)
    blocks = out.reshape(m // rows, rows, n // columns, columns).swapaxes(1, 2)
    np.matmul(a.reshape(m // rows, 1, rows, k), weights.reshape(k, -1, columns).swapaxes(0, 1), out=blocks)
    return y


def _transposed_product(x, dy):
    """xᵀ dy: the gradient of the weights in y = x @ weights.   x: (..., m)   dy: (..., n)   ->   (m, n)"""
    rows, columns = x.reshape(-1, x.shape[-1]), dy.reshape(-1, dy.shape[-1])
    return np.matmul(rows.T, columns, out=_empty((rows.shape[1], columns.shape[1]), x.dtype))


@functools.cache
def _block(m, k, n):
    """Rows and columns of the blocks of an (m, k) @ (k, n) product: the whole where small ones are no faster."""
    columns = 64 if n % 64 == 0 else n
    rows = math.gcd(m, 64)
    while rows * k * columns > _SMALL:
        rows //= 2
    return (rows, columns) if rows >= 8 and k * n <= _CACHE and _has_avx512() else (m or 1, n)


def _has_avx512():
    try:
        from numpy._core._multiarray_umath import __cpu_features__ as features
    except ImportError:
        return False
    return features.get("AVX512_SKX", False)
