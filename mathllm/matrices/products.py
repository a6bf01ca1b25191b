"""A matrix is a linear map from vectors to vectors, and one linear map after another is again one linear map."""

import itertools
import math

import numpy as np

from ..autodiff import Array, ArrayLike, WithPullback, primitive
from ..errors import ShapeError, all_within
from ..shapes import contract, floating


@primitive(shapes="... m n, ... n -> ... m")
def matrix_vector_product(W: Array, x: Array) -> WithPullback:
    """Multiply a matrix by a vector: each output is the dot product of one row with the vector.

        y = Wx,      yᵢ = Σⱼ Wᵢⱼ xⱼ                                                 (3.1)
        dW = dy xᵀ,      dx = Wᵀ dy

    This is how mathematics books write a layer. In code rows are examples and the matrix is on the right: `linear`.

    >>> matrix_vector_product([[1, 0, 2], [0, 3, 1]], [3, 1, 4])
    array([11.,  7.])
    """

    def pullback(dy):
        return dy[..., :, None] * x[..., None, :], (np.swapaxes(W, -1, -2) @ dy[..., None])[..., 0]

    return (W @ x[..., None])[..., 0], pullback


@primitive(shapes="... n, n m, m -> ... m")
def linear(x: Array, W: Array, b: Array | None = None) -> WithPullback:
    """A linear layer: every row of x is multiplied by the same matrix, and b is added.

        y = xW + b                                                                  (3.4)
        dx = dy Wᵀ,      dW = xᵀ dy,      db = Σ dy                                 (8.15)

    The same map as y = Wx in column notation, with the transposed matrix: (xW)ᵀ = Wᵀxᵀ.

    >>> linear([[3, 1, 4]], [[1, 0], [0, 3], [2, 1]], [0.5, 0.0])
    array([[11.5,  7. ]])
    """
    rows = x.reshape(math.prod(x.shape[:-1]), x.shape[-1])  # one large product instead of many small ones
    y = rows @ W
    if b is not None:
        y = y + b

    def pullback(dy):
        dy = dy.reshape(len(rows), W.shape[1])
        return (dy @ W.T).reshape(x.shape), rows.T @ dy, None if b is None else dy.sum(axis=0)

    return y.reshape(*x.shape[:-1], W.shape[1]), pullback


@contract("... m n, ... n p -> ... m p")
def matrix_product(A: ArrayLike, B: ArrayLike) -> np.ndarray:
    """Multiply two matrices: entry (i, j) is the dot product of row i of A and column j of B.

        C = AB,      Cᵢⱼ = Σₖ Aᵢₖ Bₖⱼ,      dA = dC Bᵀ,      dB = Aᵀ dC              (3.5)

    The pullback is that of the operator `@`.

    >>> matrix_product([[1, 2], [0, 1]], [[1, 0], [3, 1]])
    array([[7., 2.],
           [3., 1.]])
    """
    return floating(A) @ floating(B)


@contract("m n, n p -> m p")
def matrix_product_by_hand(A: ArrayLike, B: ArrayLike) -> np.ndarray:
    """The definition (3.5) as three loops: m·n·p multiplications, one at a time. For reading and for small matrices.

    >>> matrix_product_by_hand([[1, 2], [0, 1]], [[1, 0], [3, 1]])
    array([[7., 2.],
           [3., 1.]])
    """
    A, B = floating(A), floating(B)
    (m, n), p = A.shape, B.shape[1]
    C = np.zeros((m, p), np.result_type(A, B))
    for i in range(m):
        for j in range(p):
            for k in range(n):
                C[i, j] += A[i, k] * B[k, j]
    return C


def product_shape(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of a product of matrices: inner sizes must match, the outer ones remain.

        (m × n)(n × p) = m × p                                                      (3.6)

    shapes: pairs (rows, columns), from left to right   ->   (rows, columns)

    Raises: ShapeError that names the two sizes that do not match.

    >>> product_shape((3, 4), (4, 2))
    (3, 2)
    >>> product_shape((4, 2), (3, 4))
    Traceback (most recent call last):
    mathllm.errors.ShapeError: a (4 × 2) matrix times a (3 × 4) matrix: 2 columns meet 3 rows (see chapter 03)
    """
    if not shapes or any(len(shape) != 2 for shape in shapes):
        raise ShapeError(f"product_shape() needs shapes of two sizes, rows and columns, got {list(shapes)}")
    for (m, n), (rows, p) in itertools.pairwise(shapes):
        if n != rows:
            raise ShapeError(
                f"a ({m} × {n}) matrix times a ({rows} × {p}) matrix: {n} columns meet {rows} rows (see chapter 03)"
            )
    return shapes[0][0], shapes[-1][1]


def multiply_adds(*shapes: tuple[int, ...]) -> int:
    """How many multiplications (each with its addition) a product costs, computed from left to right.

        cost of (m × n)(n × p) = m · n · p                                          (3.7)

    The result of a chain does not depend on the order in which its products are computed, A(BC) = (AB)C; the cost does.

    Raises: ShapeError if the product is not defined.

    >>> multiply_adds((2048, 4096), (4096, 4096))
    34359738368
    >>> multiply_adds((100, 100), (100, 100), (100, 1)), multiply_adds((100, 100), (100, 1)) * 2
    (1010000, 20000)
    """
    rows, _ = product_shape(*shapes)
    return sum(rows * inner * columns for inner, columns in shapes[1:])


@contract("... m n -> ... n m")
def transpose(W: ArrayLike) -> np.ndarray:
    """Rows become columns.

        (Wᵀ)ᵢⱼ = Wⱼᵢ,      (AB)ᵀ = BᵀAᵀ,      (Wᵀ)ᵀ = W                             (3.8)

    >>> transpose([[1, 2, 3], [4, 5, 6]])
    array([[1., 4.],
           [2., 5.],
           [3., 6.]])
    """
    return floating(W).swapaxes(-1, -2)


def _for_lapack(function, W):
    """An array of finite numbers in a precision that LAPACK, the library behind np.linalg, can compute with."""
    W = floating(W)
    all_within(function, "(-∞, ∞)", entries=W)
    return W.astype(np.float32 if W.dtype.itemsize <= 4 else np.float64, copy=False)
