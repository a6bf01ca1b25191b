"""The training loss: the mean surprise of the model at what really came next."""

import numpy as np

from ..autodiff import primitive
from ..errors import ShapeError
from ..softmax import log_softmax

IGNORED = -100


@primitive(nondiff=("labels",))
def cross_entropy(logits, labels, *, ignore_index=-100, reduction="mean"):
    """Mean surprise, in nats, at the correct tokens, computed from logits.

        L = −(1/n) Σₜ ln softmax(zₜ)[yₜ]                                            (7.7)
        dzₜ = (pₜ − one_hot(yₜ)) / n · dL      prediction minus truth               (7.8)

    logits: (..., V)   labels: (...) int, in 0 … V−1 or `ignore_index`   ->   one number; (...) with reduction="none"

    Labels equal to `ignore_index` (padding, prompts) do not count, neither in the sum nor in n. The loss is the mean
    over tokens; "sum" adds them up, "none" keeps one loss per token, 0 where it is ignored.
    Raises: ValueError for a label outside the vocabulary, or a mean over no label; TypeError for labels that are not
    integers; ShapeError if the shapes do not fit; what log_softmax() refuses.
    Source: 003, ch. VII, example 7; 002, derivation of the cross-entropy and softmax gradient.

    >>> round(float(cross_entropy([[2.0, 1.0, 0.5]], [0])), 4)
    0.4644
    >>> from mathllm import grad
    >>> grad(lambda z: cross_entropy(z, np.array([0])))(np.array([[2.0, 1.0, 0.5]])).round(4)
    array([[-0.3715,  0.2312,  0.1402]])
    """
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f'cross_entropy() needs reduction "mean", "sum" or "none", got {reduction!r}')
    labels = _require_labels(logits, labels, ignore_index)
    counted = labels != ignore_index
    n = np.count_nonzero(counted)
    if n == 0 and reduction == "mean":
        raise ValueError(f"cross_entropy() needs at least one label to take a mean, got none but {ignore_index}")
    picked = np.where(counted, labels, 0)[..., None]  # (..., 1)
    log_p = log_softmax(logits) if logits.size else logits
    losses = np.where(counted, 0 - np.take_along_axis(log_p, picked, axis=-1)[..., 0], 0)

    def pullback(dloss):
        weights = np.where(counted, dloss / n if reduction == "mean" else dloss, 0)[..., None]
        dlogits = np.exp(log_p) * weights
        np.put_along_axis(dlogits, picked, np.take_along_axis(dlogits, picked, axis=-1) - weights, axis=-1)
        return dlogits, None

    if reduction == "none":
        return losses, pullback
    total = losses.sum(dtype=np.promote_types(losses.dtype, np.float32))
    return losses.dtype.type(total / n if reduction == "mean" else total), pullback


def _require_labels(logits, labels, ignore_index):
    if labels.dtype.kind not in "iu" and labels.size:
        raise TypeError(f"cross_entropy() needs integer labels, got {labels.dtype} values")
    if logits.ndim == 0 or labels.shape != logits.shape[:-1]:
        raise ShapeError(
            "cross_entropy() needs logits of shape (..., V) and one label for each row, "
            f"got shapes {logits.shape} and {labels.shape} (see chapter 07)"
        )
    wrong = ((labels < 0) | (labels >= logits.shape[-1])) & (labels != ignore_index)
    if np.any(wrong):
        raise ValueError(
            f"cross_entropy() needs labels from 0 to {logits.shape[-1] - 1} (or {ignore_index} to ignore), "
            f"got {labels[wrong].flat[0]}"
        )
    return labels.astype(np.int64)
