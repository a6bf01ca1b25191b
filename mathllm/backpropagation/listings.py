"""The listing of document 001 as it is printed, with its two errors, and mended.

Columns are examples here and weights stand on the left, as in the document: z = Wx + b with W (m, n), b (m, 1).
"""

from __future__ import annotations  # numpy.random is loaded when it is used

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from ..gradients import numerical_gradient, relu
from .networks import activation_slope


def listing_forward_as_printed(x, layers) -> tuple[list, list]:
    """The printed forward pass: ReLU after every layer, also after the last (erratum C1).

    x: (n, B)   layers: [(W (m, n), b (m, 1)), …]   ->   activations h₀ … h_L, pre-activations z₁ … z_L

    Symptom: an output below zero is cut off, and the gradient of listing_backward_as_printed(), which knows nothing of
    that bend, is wrong: by 7.4 in the largest entry on the problem of listing_problem().
    Source: 001, §4.4.

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


def listing_backward_as_printed(loss_grad, activations, pre_activations, layers) -> list[tuple]:
    """The printed backward pass, which sums the bias gradient over the batch and loses an axis (erratum C2).

    loss_grad: ∂L/∂output (m, B)   ->   [(dW, db), …], db of shape (m,) for a bias of shape (m, 1)

    Symptom: b − η·db broadcasts (m, 1) against (m,) to an (m, m) matrix, without a word; b −= η·db raises.
    Source: 001, §4.4.

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
            delta = (W.T @ delta) * activation_slope(relu, pre_activations[l - 1])
    return gradients


def listing_forward(x, layers) -> tuple[list, list]:
    """The forward pass, mended: the last layer is linear, and ∂L/∂output is ∂L/∂z_L.

    x: (n, B)   layers: [(W (m, n), b (m, 1)), …]   ->   activations h₀ … h_L, pre-activations z₁ … z_L

    Source: 001, §4.4, with erratum C1.

    >>> activations, _ = listing_forward(np.ones((1, 1)), [(np.array([[-2.0]]), np.zeros((1, 1)))])
    >>> activations[-1]
    array([[-2.]])
    """
    activations, pre_activations = listing_forward_as_printed(x, layers)
    return [*activations[:-1], pre_activations[-1]], pre_activations


def listing_backward(loss_grad, activations, pre_activations, layers) -> list[tuple]:
    """The backward pass, mended: the bias gradient keeps its second axis.

    loss_grad: ∂L/∂z_L (m, B)   ->   [(dW (m, n), db (m, 1)), …]

    Source: 001, §4.4, with erratum C2.

    >>> x, layers = np.ones((2, 3)), [(np.eye(2), np.zeros((2, 1)))]
    >>> [(_, db)] = listing_backward(x, *listing_forward(x, layers), layers)
    >>> db.shape
    (2, 1)
    """
    printed = listing_backward_as_printed(loss_grad, activations, pre_activations, layers)
    return [(dW, db[:, None]) for dW, db in printed]  # what sum(axis=1, keepdims=True) gives at once


def listing_problem(rng: np.random.Generator, sizes=(3, 5, 4), batch: int = 6) -> tuple[list, np.ndarray, np.ndarray]:
    """A random network in the layout of the listing, with inputs and targets, to try the twins on.

    ->   layers, x: (n, B), target: (m, B)

    Source: 001, §4.4.

    >>> layers, x, target = listing_problem(np.random.default_rng(1))
    >>> [W.shape for W, b in layers], x.shape, target.shape
    ([(5, 3), (4, 5)], (3, 6), (4, 6))
    """
    layers = [(rng.normal(size=(m, n)), rng.normal(size=(m, 1))) for n, m in pairwise(sizes)]
    return layers, rng.normal(size=(sizes[0], batch)), rng.normal(size=(sizes[-1], batch))


def listing_gradient_gap(forward: Callable, backward: Callable, layers, x, target) -> float:
    """The largest error of a listing's gradient, held against central differences of L = ½ Σ (output − target)².

    forward, backward: a pair of the functions above   ->   one number

    Source: 001, §4.4.

    >>> problem = listing_problem(np.random.default_rng(1))
    >>> round(listing_gradient_gap(listing_forward_as_printed, listing_backward_as_printed, *problem), 5)
    7.3681
    >>> listing_gradient_gap(listing_forward, listing_backward, *problem) < 1e-7
    True
    """
    activations, pre_activations = forward(x, layers)
    gradients = backward(activations[-1] - target, activations, pre_activations, layers)

    def error(l, part):
        def loss(moved):
            changed = [list(layer) for layer in layers]
            changed[l][part] = moved
            return 0.5 * np.sum((forward(x, changed)[0][-1] - target) ** 2)

        ours = gradients[l][part].reshape(layers[l][part].shape)
        return np.abs(ours - numerical_gradient(loss, layers[l][part])).max()

    return float(max(error(l, part) for l in range(len(layers)) for part in (0, 1)))
