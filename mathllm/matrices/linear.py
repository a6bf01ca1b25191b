"""The linear layer: one matrix for every vector of a batch."""

from ..autodiff import Array, WithPullback, primitive


@primitive(shapes="... m, m n, n -> ... n")
def linear(x: Array, weight: Array, bias: Array | None = None) -> WithPullback:
    """Multiply each vector by a matrix from the right, and add a bias if there is one.

        y = x W + b
        dx = dy Wᵀ,      dW = Σ xᵀ dy,      db = Σ dy      (sums over all vectors of the batch)

    All vectors of the batch are the rows of one matrix, so each of the three is a single matrix product or sum.

    >>> import numpy as np
    >>> linear([1.0, 2.0], [[1.0, 0.0, 3.0], [0.0, 1.0, 0.0]], [0.5, 0.5, 0.5])
    array([1.5, 2.5, 3.5])
    """
    rows = x.reshape(-1, x.shape[-1])  # (N, m)
    y = rows @ weight  # (N, n)
    if bias is not None:
        y += bias

    def pullback(dy):
        drows = dy.reshape(-1, dy.shape[-1])
        return (drows @ weight.T).reshape(x.shape), rows.T @ drows, drows.sum(axis=0)

    return y.reshape(*x.shape[:-1], weight.shape[1]), pullback
