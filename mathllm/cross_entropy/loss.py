"""The training loss: the mean surprisal of the correct tokens under the model."""

import numpy as np

from ..autodiff import Array, WithPullback, primitive
from ..errors import ShapeError, one_of
from ..softmax import shifted_logits

IGNORED = -100  # the label of a token that does not count


@primitive(nondiff=("labels",))
def cross_entropy(
    logits: Array, labels: np.ndarray, *, ignore_index: int = IGNORED, reduction: str = "mean"
) -> WithPullback:
    """Mean surprisal, in nats, of the correct tokens, computed from logits.

        L = −(1/T) Σₜ ln softmax(zₜ)[yₜ]                                            (7.8)
        dzₜ = (qₜ − one_hot(yₜ)) / T · dL      predicted probability minus target

    logits: (..., V)   labels: (...) int, in 0 … V−1 or `ignore_index`   ->   one number; (...) with reduction="none"

    Labels equal to `ignore_index` (padding, prompts) count neither in the sum nor in T. The loss is the mean over
    tokens; with reduction "sum" it is their sum, with "none" it is one loss per token, 0 where the label is ignored.
    Raises: ValueError for a label outside the vocabulary, for a mean over no label, and for logits that softmax()
    refuses; TypeError for labels that are not integers; ShapeError if the shapes do not fit.

    >>> round(float(cross_entropy([[2.0, 1.0, 0.5]], [0])), 4)
    0.4644
    >>> from mathllm import grad
    >>> grad(lambda z: cross_entropy(z, np.array([0])))(np.array([[2.0, 1.0, 0.5]])).round(4)
    array([[-0.3715,  0.2312,  0.1402]])
    """
    labels = _checked_labels(logits, labels, ignore_index)
    counted = labels != ignore_index
    n = divisor("cross_entropy", reduction, int(np.count_nonzero(counted)))
    place = np.where(counted, labels, 0)[..., None]  # (..., 1)
    terms = shifted_logits("cross_entropy", logits)  # z − max z, (..., V), in an array of its own
    z_label = np.take_along_axis(terms, place, axis=-1)
    np.exp(terms, out=terms)
    total = terms.sum(axis=-1, keepdims=True)
    losses = np.where(counted, (np.log(total) - z_label)[..., 0], 0)

    def pullback(dloss):
        weights = np.where(counted, dloss / n, 0)[..., None]
        dlogits = terms * (weights / total)  # terms / total = q
        np.put_along_axis(dlogits, place, np.take_along_axis(dlogits, place, axis=-1) - weights, axis=-1)
        return dlogits, None

    value = losses if reduction == "none" else losses.sum() / n
    return value.astype(logits.dtype), pullback


def divisor(function: str, reduction: str, terms: int) -> int:
    """The number by which a sum of so many terms is divided: their number for a mean, else 1.

    function: its name, for the messages   reduction: "mean", "sum" or "none"

    Raises: ValueError for another reduction, or for the mean of nothing.

    >>> divisor("cross_entropy", "mean", 20), divisor("cross_entropy", "sum", 20)
    (20, 1)
    """
    one_of(function, ("mean", "sum", "none"), reduction=reduction)
    if reduction == "mean" and terms == 0:
        raise ValueError(f"{function}() needs at least one label that counts, got none")
    return terms if reduction == "mean" else 1


def _checked_labels(logits, labels, ignore_index):
    if labels.dtype.kind not in "iu" and labels.size:
        raise TypeError(f"cross_entropy() needs integer labels, got {labels.dtype} values")
    if logits.ndim == 0 or labels.shape != logits.shape[:-1]:
        shapes = f"{logits.shape} and {labels.shape}"
        raise ShapeError(f"cross_entropy() needs logits (..., V) and a label for each row, got shapes {shapes}")
    size = logits.shape[-1]
    wrong = labels[((labels < 0) | (labels >= size)) & (labels != ignore_index)]
    if wrong.size:
        valid = f"labels from 0 to {size - 1} (or {ignore_index} to ignore)"
        raise ValueError(f"cross_entropy() needs {valid}, got {wrong[0]} (see chapter 07)")
    return labels.astype(np.int64)
