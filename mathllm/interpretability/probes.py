"""Can it be read with a ruler? A linear classifier on frozen activations, and what it must be held against."""

from __future__ import annotations  # numpy.random is loaded when it is used

import numpy as np

from ..autodiff import value_and_grad
from ..cross_entropy import cross_entropy
from ..errors import ShapeError
from ..gradient_descent import adam_init, adam_step, l2_penalty


def train_probe(x, labels, *, classes: int | None = None, steps: int = 200, learning_rate=0.1, l2: float = 1e-3):
    """A linear classifier on activations that are not changed: softmax regression from zero, on all examples at once.

        p(y | x) = softmax(x W + b),      L = −mean ln p(y|x) + (λ/2)‖W‖²           (16.6)

    x: (n, D)   labels: (n,) int   classes: C, largest label + 1 if not given   l2: λ
    ->   {"weight": (D, C), "bias": (C,)}

    The activations are divided by their root mean square first, and the weights by it afterwards, so that one learning
    rate serves every layer. High accuracy says that the information is there and linear; not that the model uses it.
    Raises: ShapeError if there is not one label for each vector; ValueError for labels outside 0 … C − 1.
    Source: 004, probing classifiers; Alain & Bengio 2017.

    >>> x, labels = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([0, 0, 1, 1])
    >>> probe_accuracy(train_probe(x, labels), x, labels)
    1.0
    """
    x, labels = _examples("train_probe", x, labels)
    classes = int(labels.max()) + 1 if classes is None else classes
    if np.any((labels < 0) | (labels >= classes)):
        raise ValueError(f"train_probe() needs labels from 0 to {classes - 1}")
    scale = float(np.sqrt(np.mean(x * x))) or 1.0

    def loss(probe):
        logits = (x / scale) @ probe["weight"] + probe["bias"]
        return cross_entropy(logits, labels) + l2_penalty({"weight": probe["weight"]}, l2)

    probe = {"weight": np.zeros((x.shape[1], classes)), "bias": np.zeros(classes)}
    state = adam_init(probe)
    for _ in range(steps):
        _, gradient = value_and_grad(loss)(probe)
        probe, state = adam_step(probe, gradient, state, learning_rate=learning_rate)
    return probe | {"weight": probe["weight"] / scale}


def probe_accuracy(probe, x, labels) -> float:
    """Share of the vectors whose label has the highest score.

    probe: of train_probe()   x: (n, D), vectors it has not seen   labels: (n,)   ->   0 … 1

    Raises: ShapeError if there is not one label for each vector.

    >>> probe_accuracy({"weight": np.eye(2), "bias": np.zeros(2)}, [[3.0, 1.0], [0.0, 1.0]], [0, 0])
    0.5
    """
    x, labels = _examples("probe_accuracy", x, labels)
    return float(np.mean((x @ probe["weight"] + probe["bias"]).argmax(axis=-1) == labels))


def control_labels(tokens, classes: int, rng: np.random.Generator) -> np.ndarray:
    """A task without meaning: every word gets one of the classes by lot, and keeps it wherever it occurs.

    tokens: (...) int   ->   (...) int, 0 … C − 1

    Nothing about such labels can be in the model; a probe that learns them has memorised words.
    Raises: ValueError for fewer than two classes.
    Source: 004, probing classifiers; Hewitt & Liang 2019, §2.

    >>> labels = control_labels([5, 9, 5, 7], 3, np.random.default_rng(0))
    >>> bool(labels[0] == labels[2])
    True
    """
    if classes < 2:
        raise ValueError(f"control_labels() needs at least 2 classes, got {classes}")
    words, places = np.unique(np.asarray(tokens), return_inverse=True)
    return rng.integers(0, classes, size=len(words))[places.reshape(np.shape(tokens))]


def selectivity(accuracy: float, control_accuracy: float) -> float:
    """How much better a probe is at its task than at the control task: what it read rather than memorised.

        selectivity = accuracy on the task − accuracy on the control task           (16.7)

    Raises: ValueError for what is no accuracy.
    Source: Hewitt & Liang 2019, §2.

    >>> round(selectivity(0.95, 0.70), 2)
    0.25
    """
    if not (0 <= accuracy <= 1 and 0 <= control_accuracy <= 1):
        raise ValueError(f"selectivity() needs two accuracies from 0 to 1, got {accuracy} and {control_accuracy}")
    return accuracy - control_accuracy


def _examples(name, x, labels):
    x, labels = np.asarray(x, float), np.asarray(labels)
    if x.ndim != 2 or labels.shape != x.shape[:1] or not len(x):
        raise ShapeError(f"{name}() needs vectors (n, D) and n labels, n ≥ 1, got shapes {x.shape} and {labels.shape}")
    if labels.dtype.kind not in "iub":
        raise ValueError(f"{name}() needs whole numbers as labels, got {labels.dtype}")
    return x, labels.astype(int)
