"""What tensors can do: the operators and methods of arrays, each a primitive with its pullback."""

import numpy as np

from ..errors import ShapeError, require_broadcasting
from .tensor import Array, Tensor, WithPullback, primitive, sum_to


@primitive
def _add(a, b):
    """a + b; both arguments get the gradient unchanged."""
    require_broadcasting("a + b", a.shape, b.shape)
    return a + b, lambda dy: (dy, dy)


@primitive
def _subtract(a, b):
    """a − b; the gradient of b changes sign."""
    require_broadcasting("a - b", a.shape, b.shape)
    return a - b, lambda dy: (dy, -dy)


@primitive
def _multiply(a, b):
    """a · b, entry by entry; each factor's gradient is scaled by the other factor."""
    require_broadcasting("a * b", a.shape, b.shape)
    return a * b, lambda dy: (dy * b, dy * a)


@primitive
def _divide(a, b):
    """a / b, entry by entry: da = dy / b, db = −dy · a / b²."""
    require_broadcasting("a / b", a.shape, b.shape)
    y = a / b
    return y, lambda dy: (dy / b, -dy * y / b)


@primitive
def _power(x, *, exponent):
    """xⁿ for a fixed number n: dx = n · xⁿ⁻¹ · dy."""
    return x**exponent, lambda dy: dy * exponent * x ** (exponent - 1 if exponent else 0)


@primitive
def _matmul(a, b):
    """a @ b:   da = dy @ bᵀ,   db = aᵀ @ dy, summed over batch axes that were broadcast."""
    if not a.ndim or not b.ndim or a.shape[-1] != b.shape[-2 if b.ndim > 1 else 0]:
        raise ShapeError(f"a @ b needs as many columns in a as rows in b, got shapes {a.shape} and {b.shape}")
    require_broadcasting("a @ b", a.shape, b.shape, skipped=2)

    if a.ndim > 2 and b.ndim == 2:  # one matrix for all: the rows of all batches are one product
        y, flat_pullback = _matmul.__wrapped__(a.reshape(-1, a.shape[-1]), b)

        def pullback(dy):
            da, db = flat_pullback(dy.reshape(-1, dy.shape[-1]))
            return da.reshape(a.shape), db

        return y.reshape(*a.shape[:-1], b.shape[1]), pullback

    def pullback(dy):
        rows, columns = np.atleast_2d(a), b if b.ndim > 1 else b[:, None]
        dy = dy if b.ndim > 1 else np.expand_dims(dy, -1)
        dy = dy if a.ndim > 1 else np.expand_dims(dy, -2)
        da, db = dy @ columns.swapaxes(-1, -2), rows.swapaxes(-1, -2) @ dy
        return sum_to(da, rows.shape).reshape(a.shape), sum_to(db, columns.shape).reshape(b.shape)

    return a @ b, pullback


@primitive
def _sum(x, *, axis=None, keepdims=False):
    """Σ x over `axis`; every summand gets the gradient of the sum."""
    return x.sum(axis=axis, keepdims=keepdims), lambda dy: _repeated(dy, x.shape, axis, keepdims)


@primitive
def _mean(x, *, axis=None, keepdims=False):
    """The mean over `axis`; every entry gets its share of the gradient."""
    y = x.mean(axis=axis, keepdims=keepdims)
    share = x.dtype.type(y.size / x.size)
    return y, lambda dy: _repeated(dy * share, x.shape, axis, keepdims)


def _repeated(dy, shape, axis, keepdims):
    """The gradient of a sum or mean, once for each of its terms."""
    if axis is not None and not keepdims:
        dy = np.expand_dims(dy, axis)
    return np.broadcast_to(dy, shape)


@primitive
def _reshape(x, *, shape):
    """The same entries in another shape; the gradient takes the old shape again."""
    return x.reshape(shape), lambda dy: dy.reshape(x.shape)


@primitive
def _transpose(x: Array, *, axes: tuple[int, ...] | None = None) -> WithPullback:
    """Axes in another order (negative ones count from the end); the gradient's axes go back."""
    back = None if axes is None else np.argsort([axis % x.ndim for axis in axes])
    return x.transpose(axes), lambda dy: dy.transpose(back)


@primitive
def _getitem(x, *, index):
    """x[index]; entries picked twice collect both gradients, the others get zero."""

    def pullback(dy):
        dx = np.zeros_like(x)
        np.add.at(dx, index, dy)
        return dx

    return x[index], pullback


# The primitives as operators and methods of tensors, under the names that arrays use


def _total(x: Tensor, axis: int | tuple | None = None, keepdims: bool = False) -> Tensor:
    """The sum over some axes, or all."""
    return _sum(x, axis=axis, keepdims=keepdims)


def _average(x: Tensor, axis: int | tuple | None = None, keepdims: bool = False) -> Tensor:
    """The mean over some axes, or all."""
    return _mean(x, axis=axis, keepdims=keepdims)


def _reshaped(x: Tensor, *shape: int | tuple) -> Tensor:
    """The same entries in another shape."""
    return _reshape(x, shape=shape[0] if len(shape) == 1 else shape)


def _transposed(x: Tensor, *axes: int | tuple) -> Tensor:
    """The axes in another order, or reversed."""
    return _transpose(x, axes=(axes[0] if np.ndim(axes) == 2 else axes) or None)


def _swapaxes(x: Tensor, a: int, b: int) -> Tensor:
    """Two axes exchanged."""
    axes = list(range(x.ndim))
    axes[a], axes[b] = axes[b], axes[a]
    return _transpose(x, axes=tuple(axes))


Tensor.__add__ = _add
Tensor.__radd__ = lambda x, other: _add(other, x)
Tensor.__sub__ = _subtract
Tensor.__rsub__ = lambda x, other: _subtract(other, x)
Tensor.__mul__ = _multiply
Tensor.__rmul__ = lambda x, other: _multiply(other, x)
Tensor.__truediv__ = _divide
Tensor.__rtruediv__ = lambda x, other: _divide(other, x)
Tensor.__matmul__ = _matmul
Tensor.__rmatmul__ = lambda x, other: _matmul(other, x)
Tensor.__neg__ = lambda x: _multiply(x, -1)
Tensor.__pow__ = lambda x, exponent: _power(x, exponent=exponent)
Tensor.__getitem__ = lambda x, index: _getitem(x, index=index)
Tensor.sum = _total
Tensor.mean = _average
Tensor.reshape = _reshaped
Tensor.transpose = _transposed
Tensor.swapaxes = _swapaxes
Tensor.T = property(_transposed)
