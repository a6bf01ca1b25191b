"""Linear probes: classifiers on frozen activations, and the control task that they are compared with."""

from __future__ import annotations  # NumPy loads its random numbers when they are used

import numpy as np

from ..autodiff import ArrayLike
from ..cross_entropy import cross_entropy
from ..errors import all_within, within
from ..gradient_descent import adam_init, adam_step, l2_penalty, minimize
from ..matrices import linear
from ..shapes import contract


@contract("n+ D, n")
def train_probe(
    x: ArrayLike, labels: ArrayLike, *, classes: int | None = None, steps: int = 200, l2: float = 1e-3
) -> dict[str, np.ndarray]:
    """A linear classifier on activations that are not changed: softmax regression from zero, on all examples at once.

        p(y | x) = softmax(x W + b)_y,    L = −mean ln p(y|x) + (λ/2)‖W‖²           (16.6)

    classes: C, largest label + 1 if not given   l2: λ   ->   {"weight": (D, C), "bias": (C,)}

    The activations are divided by their root mean square first, and the weights by it afterwards, so that one learning
    rate serves every layer. High accuracy says that a linear map reads the labels, not that the model uses them.
    Raises: ValueError for labels outside 0 … C − 1; TypeError for labels that are not integers.
    Source: Alain & Bengio 2017.

    >>> x, labels = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([0, 0, 1, 1])
    >>> probe_accuracy(train_probe(x, labels), x, labels)
    1.0
    """
    x, labels = np.asarray(x, float), _whole("train_probe", labels)
    classes = int(labels.max()) + 1 if classes is None else classes
    all_within("train_probe", f"[0, {classes - 1}]", labels=labels)
    scale = float(np.sqrt(np.mean(x * x))) or 1.0
    scaled = x / scale

    def loss(probe):
        logits = linear(scaled, probe["weight"], probe["bias"])
        return cross_entropy(logits, labels) + l2_penalty({"weight": probe["weight"]}, l2)

    probe = {"weight": np.zeros((x.shape[1], classes)), "bias": np.zeros(classes)}
    probe = minimize(loss, probe, steps, init=adam_init, step=adam_step, learning_rate=0.1)
    return probe | {"weight": probe["weight"] / scale}


@contract("_, n+ D, n")
def probe_accuracy(probe: dict[str, np.ndarray], x: ArrayLike, labels: ArrayLike) -> float:
    """The fraction of the vectors whose label has the highest score.

    probe: of train_probe()   x: vectors that it was not trained on   ->   0 … 1

    Raises: TypeError for labels that are not integers; ShapeError for vectors of another width.

    >>> probe_accuracy({"weight": np.eye(2), "bias": np.zeros(2)}, [[3.0, 1.0], [0.0, 1.0]], [0, 0])
    0.5
    """
    labels = _whole("probe_accuracy", labels)
    return float(np.mean(linear(x, probe["weight"], probe["bias"]).argmax(axis=-1) == labels))


def control_labels(tokens: ArrayLike, classes: int, rng: np.random.Generator | int) -> np.ndarray:
    """Labels of a control task: each word gets a class at random, and keeps it wherever it occurs.

    tokens: (...) int   ->   (...) int, 0 … C − 1

    Nothing about such labels can be in the model; a probe that learns them has memorised words.
    Raises: ValueError for fewer than two classes.
    Source: Hewitt & Liang 2019, §2.

    >>> labels = control_labels([5, 9, 5, 7], 3, np.random.default_rng(0))
    >>> bool(labels[0] == labels[2])
    True
    """
    within("control_labels", "whole [2, ∞)", classes=classes)
    words, places = np.unique(np.asarray(tokens), return_inverse=True)
    return np.random.default_rng(rng).integers(0, classes, size=len(words))[places.reshape(np.shape(tokens))]


def selectivity(accuracy: float, control_accuracy: float) -> float:
    """How much better a probe is at its task than at the control task: what it read rather than memorised.

        selectivity = accuracy on the task − accuracy on the control task           (16.7)

    Raises: ValueError for an accuracy outside [0, 1].
    Source: Hewitt & Liang 2019, §2.

    >>> round(selectivity(0.95, 0.70), 2)
    0.25
    """
    within("selectivity", "[0, 1]", accuracy=accuracy, control_accuracy=control_accuracy)
    return accuracy - control_accuracy


def _whole(name, labels):
    if labels.dtype.kind not in "iub":
        raise TypeError(f"{name}() needs whole numbers as labels, got {labels.dtype}")
    return labels.astype(int)
