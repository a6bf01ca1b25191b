"""A matrix is a machine: numbers in, numbers out, and two machines in a row are one machine again."""

import math

import numpy as np

from ..autodiff import Tensor, primitive
from ..errors import ShapeError


@primitive
def matrix_vector_product(W, x):
    """Send a vector through a matrix: each output is the dot product of one row with the vector.

        y = Wx,      yᵢ = Σⱼ Wᵢⱼ xⱼ                                                 (3.1)
        dW = dy xᵀ,      dx = Wᵀ dy                                                 (3.2)

    W: (..., m, n)   x: (..., n)   ->   y: (..., m)

    This is how most books write a layer. In code rows are examples and the matrix stands on the right: `linear`.
    Raises: ShapeError if the matrix has not as many columns as the vector has components.
    Source: 003, ch. III, figure 4 and example 3; 001, §1.2.

    >>> matrix_vector_product([[1, 0, 2], [0, 3, 1]], [3, 1, 4])
    array([11.,  7.])
    """
    if W.ndim < 2 or x.ndim < 1 or W.shape[-1] != x.shape[-1]:
        raise ShapeError(
            "matrix_vector_product() needs as many columns in W as components in x, "
            f"got shapes {W.shape} and {x.shape} (see chapter 03)"
        )

    def pullback(dy):
        return dy[..., :, None] * x[..., None, :], (np.swapaxes(W, -1, -2) @ dy[..., None])[..., 0]

    return (W @ x[..., None])[..., 0], pullback


@primitive
def linear(x, W, b=None):
    """A linear layer: every row of x goes through the same matrix, and b is added.

        y = xW + b,      dx = dy Wᵀ,      dW = xᵀ dy,      db = Σ dy                (3.3)

    x: (..., n)   W: (n, m)   b: (m,) or None   ->   y: (..., m)

    The same map as y = Wx in column notation, with the transposed matrix: (xW)ᵀ = Wᵀxᵀ.
    Raises: ShapeError if W has not as many rows as x has components, or b not as many entries as W has columns.
    Source: 000, step 3; 003, ch. X; 004, table of shape errors.

    >>> linear([[3, 1, 4]], [[1, 0], [0, 3], [2, 1]], [0.5, 0.0])
    array([[11.5,  7. ]])
    """
    if x.ndim < 1 or W.ndim != 2 or x.shape[-1] != W.shape[0]:
        raise ShapeError(
            "linear() needs a matrix with as many rows as x has components, "
            f"got x {x.shape} and W {W.shape} (see chapter 03)"
        )
    if b is not None and b.shape != W.shape[1:]:
        raise ShapeError(f"linear() needs a bias of shape {W.shape[1:]}, got {b.shape} (see chapter 03)")
    rows = x.reshape(math.prod(x.shape[:-1]), x.shape[-1])  # one large product instead of many small ones
    y = rows @ W
    if b is not None:
        y = y + b

    def pullback(dy):
        dy = dy.reshape(len(rows), W.shape[1])
        return (dy @ W.T).reshape(x.shape), rows.T @ dy, None if b is None else dy.sum(axis=0)

    return y.reshape(*x.shape[:-1], W.shape[1]), pullback


def matrix_product(A, B):
    """Apply one matrix after the other: row i of A meets column j of B.

        C = AB,      Cᵢⱼ = Σₖ Aᵢₖ Bₖⱼ,      dA = dC Bᵀ,      dB = Aᵀ dC              (3.4)

    A: (..., m, n)   B: (..., n, p)   ->   C: (..., m, p)

    The pullback is that of the operator `@`.
    Raises: ShapeError if the inner sizes differ.
    Source: 001, §1.2.1.

    >>> matrix_product([[1, 2], [0, 1]], [[1, 0], [3, 1]])
    array([[7., 2.],
           [3., 1.]])
    """
    A, B = _matrix(A), _matrix(B)
    product_shape(A.shape[-2:], B.shape[-2:])
    return A @ B


def matrix_product_by_hand(A, B) -> np.ndarray:
    """The definition (3.4) as three loops: m·n·p multiplications, one at a time. For reading and for small matrices.

    A: (m, n)   B: (n, p)   ->   (m, p)

    Raises: ShapeError if the inner sizes differ.
    Source: 001, §1.2.1.

    >>> matrix_product_by_hand([[1, 2], [0, 1]], [[1, 0], [3, 1]])
    array([[7., 2.],
           [3., 1.]])
    """
    A, B = _matrix(A), _matrix(B)
    m, p = product_shape(A.shape, B.shape)
    C = np.zeros((m, p), np.result_type(A, B))
    for i in range(m):
        for j in range(p):
            for k in range(A.shape[1]):
                C[i, j] += A[i, k] * B[k, j]
    return C


def product_shape(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of a product of matrices: inner sizes must match, the outer ones remain.

        (m × n)(n × p) = m × p                                                      (3.5)

    shapes: pairs (rows, columns), from left to right   ->   (rows, columns)

    Raises: ShapeError that names the two sizes that do not match.
    Source: 003, ch. III, shape rule and exercise 7.

    >>> product_shape((3, 4), (4, 2))
    (3, 2)
    >>> product_shape((4, 2), (3, 4))
    Traceback (most recent call last):
    mathllm.errors.ShapeError: a (4 × 2) matrix times a (3 × 4) matrix: 2 columns meet 3 rows (see chapter 03)
    """
    shapes = [tuple(shape) for shape in shapes]
    if not shapes or any(len(shape) != 2 for shape in shapes):
        raise ShapeError(f"product_shape() needs shapes of two sizes, rows and columns, got {shapes}")
    rows, columns = shapes[0]
    for shape in shapes[1:]:
        if columns != shape[0]:
            raise ShapeError(
                f"a ({rows} × {columns}) matrix times a ({shape[0]} × {shape[1]}) matrix: "
                f"{columns} columns meet {shape[0]} rows (see chapter 03)"
            )
        columns = shape[1]
    return rows, columns


def is_product_defined(*shapes: tuple[int, ...]) -> bool:
    """Do the inner sizes match, so that matrices of these shapes can be multiplied in this order?

    Source: 003, ch. III, exercise 7.

    >>> is_product_defined((3, 4), (4, 2)), is_product_defined((4, 2), (3, 4))
    (True, False)
    """
    try:
        product_shape(*shapes)
    except ShapeError:
        return False
    return True


def multiply_adds(*shapes: tuple[int, ...]) -> int:
    """How many multiplications (each with its addition) a product costs, computed from left to right.

        cost of (m × n)(n × p) = m · n · p                                          (3.6)

    The result of a chain does not depend on where it is cut, its cost does: A(BC) = (AB)C, at different prices.
    Raises: ShapeError if the product is not defined.
    Source: 001, §1.2.1.

    >>> multiply_adds((2048, 4096), (4096, 4096))
    34359738368
    >>> multiply_adds((100, 100), (100, 100), (100, 1)), multiply_adds((100, 100), (100, 1)) * 2
    (1010000, 20000)
    """
    rows, _ = product_shape(*shapes)
    return sum(rows * inner * columns for inner, columns in map(tuple, shapes[1:]))


def transpose(W):
    """Rows become columns.

        (Wᵀ)ᵢⱼ = Wⱼᵢ,      (AB)ᵀ = BᵀAᵀ,      (Wᵀ)ᵀ = W                             (3.7)

    W: (..., m, n)   ->   (..., n, m)

    Raises: ShapeError for fewer than two axes: a vector has no rows and columns to exchange.
    Source: 001, §1.2.2.

    >>> transpose([[1, 2, 3], [4, 5, 6]])
    array([[1., 4.],
           [2., 5.],
           [3., 6.]])
    """
    return _matrix(W).swapaxes(-1, -2)


def is_symmetric(W, tolerance: float = 1e-12) -> bool:
    """Is the matrix its own transpose, W = Wᵀ, up to `tolerance` times its largest entry?

    Source: 001, §1.2.2.

    >>> is_symmetric([[2, 1], [1, 3]]), is_symmetric([[2, 1], [0, 3]])
    (True, False)
    """
    W = np.asarray(W)
    if W.ndim != 2 or W.shape[0] != W.shape[1]:
        return False
    return bool(np.all(np.abs(W - W.T) <= tolerance * np.abs(W).max(initial=0)))


def compose(*matrices):
    """Several linear maps in a row are one linear map, whose matrix is their product.

        ((x W₁) W₂) … W_L = x (W₁ W₂ … W_L)                                         (3.8)

    matrices: (n₀, n₁), (n₁, n₂), …, in the order in which a row x meets them   ->   (n₀, n_L)

    So layers without a nonlinearity between them are no deeper than one layer.
    Raises: ShapeError if two neighbours do not fit.
    Source: 003, ch. III; 000, step 3; 001, §4.1.

    >>> compose([[1, 2], [0, 1]], [[1, 0], [3, 1]], [[1], [1]])
    array([[9.],
           [4.]])
    """
    if not matrices:
        raise ShapeError("compose() needs at least one matrix")
    result = _matrix(matrices[0])
    for W in matrices[1:]:
        result = matrix_product(result, W)
    return result


def _matrix(W):
    """An array (or tensor) of floating-point numbers with rows and columns."""
    if not isinstance(W, Tensor):
        W = np.asarray(W)
        W = W if W.dtype.kind == "f" else W.astype(np.float64)
    if W.ndim < 2:
        raise ShapeError(f"a matrix has rows and columns; got an array of shape {W.shape} (see chapter 03)")
    return W
