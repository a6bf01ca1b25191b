"""Chapter 11: the 2-2-1 network traced, a listing with two bugs, exclusive or, and six common bugs, each with its fix.

The broken versions run: most of these bugs raise no error, and only the numbers are wrong.
"""

from __future__ import annotations  # numpy.random is loaded when it is used

from collections.abc import Callable
from itertools import pairwise
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from ..autodiff import ArrayLike
from ..backpropagation import activation_derivative, binary_cross_entropy, he_scale
from ..errors import within
from ..exponentials import exp, sigmoid
from ..gradient_descent import descend
from ..gradients import numerical_gradient, relu
from ..matrices import linear
from ..shapes import Contract
from ..softmax import softmax
from ..trees import flatten

# The spectral radius of each factor decides nothing about the product.
EXPLODING_PAIR = (((0.0, 2.0), (0.0, 0.0)), ((0.0, 0.0), (2.0, 0.0)))  # radius 0 each, yet ‖(J₁J₂)ᵏ‖ = 4ᵏ
VANISHING_PAIR = (((2.0, 0.0), (0.0, 0.1)), ((0.1, 0.0), (0.0, 2.0)))  # radius 2 each, yet J₁J₂ = 0.2 I


# The trace


def trace_network(
    x: ArrayLike = (1.0, 0.5), W1: ArrayLike = ((0.15, 0.20), (0.25, 0.30)), b1: ArrayLike = (0.35, 0.35),
    W2: ArrayLike = ((0.40, 0.45),), b2: ArrayLike = (0.60,), y: float = 1, *, learning_rate: float = 0.5,
) -> SimpleNamespace:  # fmt: skip
    """One step of training of a network with one hidden ReLU layer and one sigmoid output: every number by its name.

        δ² = ŷ − y,   dW² = δ² a¹ᵀ,   δ¹ = W²ᵀδ² ⊙ relu′(z¹),   dW¹ = δ¹ xᵀ,   W ← W − η dW   (11.5)

    x: (n,)   W1: (h, n)   b1: (h,)   W2: (1, h)   b2: (1,)   y: 0 or 1   learning_rate: η   ->   z1, a1, z2_terms, z2,
    exp_neg_z2, prediction ŷ, loss; delta2, dW2, db2, da1, relu_slope, delta1, dW1, db1; W1, b1, W2, b2,
    prediction_after, loss_after. Matrices are (out, in) and vectors columns: z = Wx + b.

    Without arguments it is the printed network, where e^−1.1775 is rounded to 0.3083 instead of 0.3080.

    >>> step = trace_network()
    >>> step.z1, round(step.loss, 4), round(step.loss_after, 4)
    (array([0.6 , 0.75]), 0.2685, 0.1982)
    >>> round(step.delta2, 4), step.dW2.round(4), step.dW1.round(4)
    (-0.2355, array([[-0.1413, -0.1766]]), array([[-0.0942, -0.0471],
           [-0.106 , -0.053 ]]))
    """
    x, W1, b1, W2, b2 = arrays = [np.asarray(array, np.float64) for array in (x, W1, b1, W2, b2)]
    Contract("n, h n, h, 1 h, 1").check("trace_network", ["x", "W1", "b1", "W2", "b2"], arrays)
    step = _forward(x, W1, b1, W2, b2, y)
    step.exp_neg_z2 = float(exp(-step.z2))
    step.delta2 = step.prediction - y
    step.dW2, step.db2 = np.outer(step.delta2, step.a1), np.array([step.delta2])
    step.da1 = W2[0] * step.delta2
    step.relu_slope = activation_derivative(relu, step.z1)
    step.delta1 = step.da1 * step.relu_slope
    step.dW1, step.db1 = np.outer(step.delta1, x), step.delta1
    step.W1, step.b1 = W1 - learning_rate * step.dW1, b1 - learning_rate * step.db1
    step.W2, step.b2 = W2 - learning_rate * step.dW2, b2 - learning_rate * step.db2
    after = _forward(x, step.W1, step.b1, step.W2, step.b2, y)
    step.prediction_after, step.loss_after = after.prediction, after.loss
    return step


def _forward(x, W1, b1, W2, b2, y):
    z1 = W1 @ x + b1
    a1 = relu(z1)
    z2 = float((W2 @ a1 + b2)[0])
    prediction, loss = float(sigmoid(z2)), float(binary_cross_entropy(z2, y))
    return SimpleNamespace(z1=z1, a1=a1, z2_terms=np.append(W2[0] * a1, b2), z2=z2, prediction=prediction, loss=loss)


# The listing with two bugs: columns are examples, z = Wx + b with W (m, n), b (m, 1)


def listing_forward_as_printed(x: np.ndarray, layers: list[tuple]) -> tuple[list, list]:
    """The printed forward pass: ReLU after every layer, also after the last.

    x: (n, B)   layers: [(W (m, n), b (m, 1)), …]   ->   activations h₀ … h_L, pre-activations z₁ … z_L

    Symptom: an output below zero becomes 0, and the printed backward pass, which leaves out this ReLU, is wrong.

    >>> activations, _ = listing_forward_as_printed(np.ones((1, 1)), [(np.array([[-2.0]]), np.zeros((1, 1)))])
    >>> activations[-1] + 0.0
    array([[0.]])
    """
    activations, pre_activations = [x], []
    for W, b in layers:
        z = W @ activations[-1] + b
        pre_activations.append(z)
        activations.append(relu(z))
    return activations, pre_activations


def listing_backward_as_printed(
    loss_grad: np.ndarray, activations: list, pre_activations: list, layers: list[tuple]
) -> list[tuple]:
    """The printed backward pass, which sums the bias gradient over the batch and loses an axis.

    loss_grad: ∂L/∂output (m, B)   ->   [(dW, db), …], db of shape (m,) for a bias of shape (m, 1)

    Symptom: b − η·db broadcasts (m, 1) against (m,) to an (m, m) matrix, without an error; b −= η·db raises.

    >>> x, layers = np.ones((2, 3)), [(np.eye(2), np.zeros((2, 1)))]
    >>> [(_, db)] = listing_backward_as_printed(x, *listing_forward_as_printed(x, layers), layers)
    >>> db.shape, (layers[0][1] - 0.1 * db).shape
    ((2,), (2, 2))
    """
    delta, gradients = loss_grad, []
    for l in reversed(range(len(layers))):
        W, _ = layers[l]
        gradients.insert(0, (delta @ activations[l].T, delta.sum(axis=1)))
        if l > 0:
            delta = (W.T @ delta) * activation_derivative(relu, pre_activations[l - 1])
    return gradients


def listing_forward_fixed(x: np.ndarray, layers: list[tuple]) -> tuple[list, list]:
    """The fixed forward pass: the last layer is linear, and ∂L/∂output is ∂L/∂z_L.

    >>> activations, _ = listing_forward_fixed(np.ones((1, 1)), [(np.array([[-2.0]]), np.zeros((1, 1)))])
    >>> activations[-1]
    array([[-2.]])
    """
    activations, pre_activations = listing_forward_as_printed(x, layers)
    return [*activations[:-1], pre_activations[-1]], pre_activations


def listing_backward_fixed(
    loss_grad: np.ndarray, activations: list, pre_activations: list, layers: list[tuple]
) -> list[tuple]:
    """The fixed backward pass: the bias gradient keeps its second axis, db (m, 1).

    >>> x, layers = np.ones((2, 3)), [(np.eye(2), np.zeros((2, 1)))]
    >>> [(_, db)] = listing_backward_fixed(x, *listing_forward_fixed(x, layers), layers)
    >>> db.shape
    (2, 1)
    """
    printed = listing_backward_as_printed(loss_grad, activations, pre_activations, layers)
    return [(dW, db[:, None]) for dW, db in printed]  # the same as sum(axis=1, keepdims=True)


def listing_problem(
    sizes: tuple[int, ...], rng: np.random.Generator | int, batch_size: int = 6
) -> tuple[list, np.ndarray, np.ndarray]:
    """A random network in the layout of the listing, with inputs and targets.

    ->   layers, x: (n, B), target: (m, B)

    >>> layers, x, target = listing_problem((3, 5, 4), rng=1)
    >>> [W.shape for W, b in layers], x.shape, target.shape
    ([(5, 3), (4, 5)], (3, 6), (4, 6))
    """
    rng = np.random.default_rng(rng)
    layers = [(rng.normal(size=(m, n)), rng.normal(size=(m, 1))) for n, m in pairwise(sizes)]
    return layers, rng.normal(size=(sizes[0], batch_size)), rng.normal(size=(sizes[-1], batch_size))


def listing_gradient_gap(
    forward: Callable, backward: Callable, layers: list[tuple], x: np.ndarray, target: np.ndarray
) -> float:
    """The largest error of a listing's gradient of L = ½ Σ (output − target)², against central differences.

    >>> problem = listing_problem((3, 5, 4), rng=1)
    >>> round(listing_gradient_gap(listing_forward_as_printed, listing_backward_as_printed, *problem), 5)
    7.3681
    >>> listing_gradient_gap(listing_forward_fixed, listing_backward_fixed, *problem) < 1e-7
    True
    """
    activations, pre_activations = forward(x, layers)
    gradient, _ = flatten(backward(activations[-1] - target, activations, pre_activations, layers))
    theta, views = flatten(layers)

    def loss(theta):
        return 0.5 * np.sum((forward(x, views(theta))[0][-1] - target) ** 2)

    return float(np.abs(gradient - numerical_gradient(loss, theta)).max())


# Exclusive or

XOR_INPUTS = ((0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0))
XOR_TARGETS = ((0.0,), (1.0,), (1.0,), (0.0,))


class XorRun(NamedTuple):
    """The result of a training run: the loss before every epoch, the last predictions, and the weights.

    >>> train_xor(epochs=1).losses.round(4)
    array([0.8147])
    """

    losses: np.ndarray  # (epochs, ...)
    predictions: np.ndarray  # (..., 4)
    params: dict[str, np.ndarray]


def xor_init(seed: int = 42) -> dict[str, np.ndarray]:
    """The initial weights of the listing: NumPy's old generator, He's scale, biases of zero.

    >>> xor_init()["W1"].round(4)
    array([[ 0.4967, -0.1383,  0.6477,  1.523 ],
           [-0.2342, -0.2341,  1.5792,  0.7674]])
    """
    old = np.random.RandomState(seed)
    W1, W2 = old.standard_normal((2, 4)) * he_scale(2), old.standard_normal((4, 1)) * he_scale(4)
    return {"W1": W1, "b1": np.zeros((1, 4)), "W2": W2, "b2": np.zeros((1, 1))}


def train_xor(seed: ArrayLike = 42, *, epochs: int = 10_000, learning_rate: float = 0.5) -> XorRun:
    """Train a network of one hidden layer of four ReLU units on exclusive or, with the gradients of the listing.

        dz₂ = ŷ − y,   dW₂ = a₁ᵀdz₂/4,   dz₁ = dz₂W₂ᵀ ⊙ [z₁ > 0],   dW₁ = Xᵀdz₁/4

    seed: one number, or many to train as many networks side by side   ->   losses (epochs, ...), predictions (..., 4),
    params

    The printed seed 42 solves the problem. With 3,000 epochs, 72 of the seeds 0 … 199 leave an error above a quarter.
    Of these, 60 have two or more of their four ReLU units inactive for every input; XOR needs two active units.

    >>> run = train_xor(epochs=2001)
    >>> run.losses[[0, 2000]].round(4), run.predictions.round(1)
    (array([0.8147, 0.0021]), array([0., 1., 1., 0.]))
    """
    within("train_xor", "whole [1, ∞)", epochs=epochs)
    X, y = np.array(XOR_INPUTS), np.array(XOR_TARGETS)
    starts = [xor_init(int(s)) for s in np.ravel(seed)]
    W1, b1, W2, b2 = (np.stack([start[name] for start in starts]) for name in ("W1", "b1", "W2", "b2"))
    losses = []
    for _ in range(epochs):
        z1 = X @ W1 + b1  # (seeds, 4, 4)
        a1 = np.maximum(z1, 0)
        a2 = sigmoid(a1 @ W2 + b2)  # (seeds, 4, 1)
        losses.append(-np.mean(y * np.log(a2 + 1e-8) + (1 - y) * np.log(1 - a2 + 1e-8), axis=(1, 2)))
        dz2 = a2 - y
        dz1 = (dz2 @ W2.mT) * (z1 > 0)
        W2 = W2 - learning_rate * (a1.mT @ dz2 / 4)
        b2 = b2 - learning_rate * dz2.mean(axis=1, keepdims=True)
        W1 = W1 - learning_rate * (X.T @ dz1 / 4)
        b1 = b1 - learning_rate * dz1.mean(axis=1, keepdims=True)
    shape = np.shape(seed)
    params = {"W1": W1, "b1": b1, "W2": W2, "b2": b2}
    params = {name: p.reshape(*shape, *p.shape[1:]) for name, p in params.items()}
    return XorRun(np.array(losses).reshape(epochs, *shape), a2.reshape(*shape, 4), params)


# Six common bugs, and the fixed version where it is not simply a function of the package


def descent_with_zeroing(
    loss: Callable, start: ArrayLike, steps: int = 50, learning_rate: float = 0.1, **optimiser: Callable
) -> np.ndarray:
    """Fixed: each step follows its own gradient, because a gradient is a return value that is never added to a store.

    loss: built from primitives, one number   optimiser: init and step, as for descend()   ->   losses (steps + 1,)

    >>> descent_with_zeroing(lambda w: (w * w).sum(), [1.0], steps=4).round(2)
    array([1.  , 0.64, 0.41, 0.26, 0.17])
    """
    path = descend(loss, np.asarray(start, np.float64), steps + 1, learning_rate=learning_rate, **optimiser)
    return np.array([value for _, _, value in path])


def descent_without_zeroing(
    loss: Callable, start: ArrayLike, steps: int = 50, learning_rate: float = 0.1
) -> np.ndarray:
    """Gradients that are never set to zero: each step follows the sum of all gradients so far.

    loss: built from primitives, one number   ->   losses (steps + 1,)

    Symptom: the loss falls, then rises above its start, again and again: this is momentum without friction.

    >>> descent_without_zeroing(lambda w: (w * w).sum(), [1.0], steps=8).round(2)
    array([1.  , 0.64, 0.19, 0.  , 0.21, 0.66, 1.01, 0.99, 0.62])
    """

    def step(params, gradient, store, *, learning_rate):
        return params - learning_rate * (store + gradient), store + gradient

    return descent_with_zeroing(loss, start, steps, learning_rate, init=np.zeros_like, step=step)


def softmax_over_queries(query: ArrayLike, key: ArrayLike) -> np.ndarray:
    """Softmax along the wrong axis: the columns sum to 1. Fixed: attention_weights().

    query: (T, K)   key: (T, K)   ->   (T, T)

    Symptom: the weights of one query do not sum to 1, and no shape is wrong, because the scores are square.

    >>> softmax_over_queries([[1.0], [3.0]], [[1.0], [0.0]]).sum(axis=-1).round(2)
    array([0.62, 1.38])
    """
    query, key = np.asarray(query, float), np.asarray(key, float)
    return softmax(query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1]), axis=-2)


def log_probabilities_unstable(logits: ArrayLike) -> np.ndarray:
    """Exponentials of the logits without subtracting the maximum, and the logarithm afterwards. Fixed: log_softmax().

    logits: (..., n)   ->   (..., n)

    Symptom: above 709.8 an exponential is ∞, and ∞/∞ is NaN; far below the largest logit a probability is 0, and its
    logarithm −∞. NumPy warns; the warning is switched off to show the result.

    >>> log_probabilities_unstable([1000.0, 0.0]), log_probabilities_unstable([0.0, -1000.0])
    (array([ nan, -inf]), array([  0., -inf]))
    """
    with np.errstate(all="ignore"):
        exponentials = np.exp(np.asarray(logits, float))
        return np.log(exponentials / exponentials.sum(axis=-1, keepdims=True))


def linear_transposed(x: ArrayLike, W: ArrayLike) -> np.ndarray:
    """A layer that multiplies by the transposed matrix, as if W were (out, in). Fixed: linear().

    x: (..., n)   W: (n, m)   ->   only for n = m a result, and then the wrong one

    Symptom: a shape error if the matrix is not square; no error if it is.

    >>> linear_transposed([[1.0, 0.0]], [[1.0, 2.0], [3.0, 4.0]])
    array([[1., 3.]])
    """
    return linear(x, np.asarray(W).T)
