"""Two inputs, two hidden units, one output: every number of one step of training, by name."""

from dataclasses import dataclass

import numpy as np

from ..errors import ShapeError
from ..exponentials import exp, sigmoid
from ..gradients import relu
from ..matrices import matrix_vector_product
from .logistic import binary_cross_entropy
from .networks import activation_slope


@dataclass(frozen=True)
class Trace:
    """Every value of a forward pass, a backward pass and an update, in the order in which they are computed.

    Matrices stand as in document 004, (out, in), and vectors are columns: z = Wx + b.

    >>> step = trace_network()
    >>> step.z1, round(step.loss, 4), round(step.loss_after, 4)
    (array([0.6 , 0.75]), 0.2685, 0.1982)
    """

    # forward
    z1: np.ndarray  # W¹x + b¹
    a1: np.ndarray  # relu(z¹)
    z2_terms: np.ndarray  # W²₁a¹₁, W²₂a¹₂, b²
    z2: float
    exp_neg_z2: float
    prediction: float  # ŷ = σ(z²)
    loss: float
    # backward
    delta2: float  # ŷ − y
    dW2: np.ndarray
    db2: np.ndarray
    da1: np.ndarray  # W²ᵀδ², the error before the bend
    relu_slope: np.ndarray
    delta1: np.ndarray
    dW1: np.ndarray
    db1: np.ndarray
    # after the update
    W1: np.ndarray
    b1: np.ndarray
    W2: np.ndarray
    b2: np.ndarray
    prediction_after: float
    loss_after: float


def trace_network(
    x=(1.0, 0.5),
    W1=((0.15, 0.20), (0.25, 0.30)),
    b1=(0.35, 0.35),
    W2=((0.40, 0.45),),
    b2=(0.60,),
    y: float = 1,
    *,
    learning_rate: float = 0.5,
) -> Trace:
    """One step of training of a network with one hidden ReLU layer and one sigmoid output, with nothing left out.

        δ² = ŷ − y,   dW² = δ² a¹ᵀ,   δ¹ = W²ᵀδ² ⊙ relu′(z¹),   dW¹ = δ¹ xᵀ,   W ← W − η dW   (11.5)

    x: (n,)   W1: (h, n)   b1: (h,)   W2: (1, h)   b2: (1,)   y: 0 or 1   learning_rate: η   ->   Trace

    Without arguments it is the network of document 004. The document rounds e^−1.1775 to 0.3083 where it is 0.3080,
    and most of its later numbers inherit the slip (errata A1 to A5).
    Raises: ShapeError if the sizes do not fit.
    Source: 004, backpropagation trace, steps 1 to 8.

    >>> step = trace_network()
    >>> round(step.delta2, 4), step.dW2.round(4), step.dW1.round(4)
    (-0.2355, array([[-0.1413, -0.1766]]), array([[-0.0942, -0.0471],
           [-0.106 , -0.053 ]]))
    """
    x, W1, b1, W2, b2 = (np.asarray(array, np.float64) for array in (x, W1, b1, W2, b2))
    if W1.ndim != 2 or W2.shape != (1, len(W1)) or b1.shape != W1.shape[:1] or b2.shape != (1,):
        raise ShapeError(
            "trace_network() needs W1 (h, n), b1 (h,), W2 (1, h), b2 (1,), "
            f"got {W1.shape}, {b1.shape}, {W2.shape}, {b2.shape}"
        )

    z1, a1, z2, prediction, loss = _forward(x, W1, b1, W2, b2, y)

    delta2 = prediction - y
    dW2 = np.outer(delta2, a1)  # (1, h)
    da1 = W2[0] * delta2
    slope = activation_slope(relu, z1)
    delta1 = da1 * slope
    dW1 = np.outer(delta1, x)  # (h, n)
    db1, db2 = delta1, np.array([delta2])

    after = [p - learning_rate * g for p, g in ((W1, dW1), (b1, db1), (W2, dW2), (b2, db2))]
    *_, prediction_after, loss_after = _forward(x, *after, y)
    return Trace(
        z1, a1, np.append(W2[0] * a1, b2), z2, float(exp(-z2)), prediction, loss,
        delta2, dW2, db2, da1, slope, delta1, dW1, db1,
        *after, prediction_after, loss_after,
    )  # fmt: skip


def _forward(x, W1, b1, W2, b2, y):
    z1 = matrix_vector_product(W1, x) + b1
    a1 = relu(z1)
    z2 = float((matrix_vector_product(W2, a1) + b2)[0])
    return z1, a1, z2, float(sigmoid(z2)), float(binary_cross_entropy(z2, y))
