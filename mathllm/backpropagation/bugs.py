"""Six common bugs, each as a pair: a broken twin that shows the symptom, and its mended version.

The broken twins run. That is what makes these bugs common: most of them say nothing, and only the numbers are wrong.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..attention import attention, attention_weights, padding_mask
from ..autodiff import value_and_grad
from ..gradient_descent import adam_init, adam_step, warmup_cosine
from ..matrices import linear
from ..softmax import log_softmax, softmax


class CommonBug(NamedTuple):
    """A row of document 004's table, with both twins.

    >>> [bug.name for bug in COMMON_BUGS][:2]
    ['gradients not zeroed', 'softmax over the wrong axis']
    """

    name: str
    symptom: str
    fix: str
    broken: Callable
    mended: Callable


def descent_without_zeroing(loss: Callable, start, steps: int = 50, learning_rate: float = 0.1) -> np.ndarray:
    """Gradients that are never set to zero: each step follows the sum of all gradients so far.

    loss: built from primitives, one number   ->   losses (steps + 1,)

    Symptom: the loss falls, then rises above its start, and so forever: this is momentum without friction.
    Source: 004, common bugs.

    >>> descent_without_zeroing(lambda w: (w * w).sum(), [1.0], steps=8).round(2)
    array([1.  , 0.64, 0.19, 0.  , 0.21, 0.66, 1.01, 0.99, 0.62])
    """
    return _descend(loss, start, steps, learning_rate, forget=False)


def descent_with_zeroing(loss: Callable, start, steps: int = 50, learning_rate: float = 0.1) -> np.ndarray:
    """Mended: each step follows its own gradient, here because a gradient is a return value and not a store.

    loss: built from primitives, one number   ->   losses (steps + 1,)

    Source: 004, common bugs.

    >>> descent_with_zeroing(lambda w: (w * w).sum(), [1.0], steps=4).round(2)
    array([1.  , 0.64, 0.41, 0.26, 0.17])
    """
    return _descend(loss, start, steps, learning_rate, forget=True)


def _descend(loss, start, steps, learning_rate, forget):
    w = np.array(start, np.float64)
    store, losses = np.zeros_like(w), []
    for _ in range(steps + 1):
        value, gradient = value_and_grad(loss)(w)
        losses.append(value)
        store = gradient if forget else store + gradient
        w = w - learning_rate * store
    return np.array(losses)


def softmax_over_queries(query, key) -> np.ndarray:
    """Softmax along the wrong axis: it is the columns that sum to 1.

    query: (T, K)   key: (T, K)   ->   (T, T)

    Symptom: the weights of one query do not sum to 1, and no shape complains, for the scores are square.
    Source: 004, common bugs.

    >>> softmax_over_queries([[1.0], [3.0]], [[1.0], [0.0]]).sum(axis=-1).round(2)
    array([0.62, 1.38])
    """
    query, key = np.asarray(query, float), np.asarray(key, float)
    return softmax(query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1]), axis=-2)


def softmax_over_keys(query, key) -> np.ndarray:
    """Mended: every query shares one unit of attention among the keys, along the last axis.

    query: (T, K)   key: (T, K)   ->   (T, T), rows sum to 1

    Source: 004, common bugs.

    >>> softmax_over_keys([[1.0], [3.0]], [[1.0], [0.0]]).sum(axis=-1)
    array([1., 1.])
    """
    return attention_weights(query, key)


def log_probabilities_unstable(logits) -> np.ndarray:
    """Exponentials of the logits as they are, and the logarithm afterwards.

    logits: (..., n)   ->   (..., n)

    Symptom: above 709 an exponential is ∞, and ∞/∞ is NaN; far below the largest logit a probability is 0, and its
    logarithm −∞. NumPy warns; the warning is switched off here to let the symptom through.
    Source: 004, common bugs.

    >>> log_probabilities_unstable([1000.0, 0.0]), log_probabilities_unstable([0.0, -1000.0])
    (array([ nan, -inf]), array([  0., -inf]))
    """
    with np.errstate(all="ignore"):
        exponentials = np.exp(np.asarray(logits, float))
        return np.log(exponentials / exponentials.sum(axis=-1, keepdims=True))


def log_probabilities_stable(logits) -> np.ndarray:
    """Mended: the largest logit is subtracted first, and the logarithm is taken before a probability can vanish.

    logits: (..., n)   ->   (..., n)

    The table's other advice, a small ε inside the logarithm, avoids the −∞ but not the NaN, and caps the loss at −ln ε.
    Source: 004, common bugs.

    >>> log_probabilities_stable([1000.0, 0.0])
    array([    0., -1000.])
    """
    return log_softmax(logits)


def linear_transposed(x, W):
    """A layer that multiplies by the transposed matrix, as if W were (out, in).

    x: (..., n)   W: (n, m)   ->   only for n = m a result, and then the wrong one

    Symptom: a shape error if the matrix is not square; a silent error if it is.
    Source: 004, common bugs.

    >>> linear_transposed([[1.0, 0.0]], [[1.0, 2.0], [3.0, 4.0]])
    array([[1., 3.]])
    """
    return linear(x, np.asarray(W).T)


def linear_in_order(x, W):
    """Mended: rows times W, with W of shape (in, out).

    x: (..., n)   W: (n, m)   ->   (..., m)

    Source: 004, common bugs.

    >>> linear_in_order([[1.0, 0.0]], [[1.0, 2.0], [3.0, 4.0]])
    array([[1., 2.]])
    """
    return linear(x, W)


def attention_to_padding(query, key, value, attention_mask):
    """Attention that is given the marks of the padding and forgets to use them.

    query, key, value: (B, H, T, K)   attention_mask: (B, T), 1 for a token, 0 for padding   ->   (B, H, T, K)

    Symptom: what stands in the padding changes the answer.
    Source: 004, common bugs.

    >>> x, garbage = np.zeros((1, 1, 2, 1)), np.array([[[[1.0], [99.0]]]])
    >>> attention_to_padding(x, x, garbage, [[1, 0]])[0, 0, 0]
    array([50.])
    """
    return attention(query, key, value)


def attention_without_padding(query, key, value, attention_mask):
    """Mended: the scores of padding are −∞ before the softmax, and its weights exactly 0.

    query, key, value: (B, H, T, K)   attention_mask: (B, T), 1 for a token, 0 for padding   ->   (B, H, T, K)

    Source: 004, common bugs.

    >>> x, garbage = np.zeros((1, 1, 2, 1)), np.array([[[[1.0], [99.0]]]])
    >>> attention_without_padding(x, x, garbage, [[1, 0]])[0, 0, 0]
    array([1.])
    """
    return attention(query, key, value, padding_mask(attention_mask))


def descent_too_fast(loss: Callable, start, steps: int = 20, learning_rate: float = 1.1) -> np.ndarray:
    """Gradient descent with steps so long that each one lands further up the other side.

    loss: built from primitives, one number   ->   losses (steps + 1,)

    Symptom: the loss swings or explodes; on a bowl of curvature c as soon as the rate is above 2/c.
    Source: 004, common bugs.

    >>> descent_too_fast(lambda w: (w * w).sum(), [1.0], steps=3).round(2)
    array([1.  , 1.44, 2.07, 2.99])
    """
    return descent_with_zeroing(loss, start, steps, learning_rate)


def descent_with_warmup(loss: Callable, start, steps: int = 20, learning_rate: float = 3e-4) -> np.ndarray:
    """Mended: Adam, whose steps are about as long as the rate whatever the gradient, beginning with small ones.

    loss: built from primitives, one number   ->   losses (steps + 1,)

    A tenth of the steps is warmup. The rate of 3·10⁻⁴ is where to begin for a language model; a toy bowl may take more.
    Source: 004, common bugs; 004, learning-rate scheduling.

    >>> losses = descent_with_warmup(lambda w: (w * w).sum(), [1.0], steps=100, learning_rate=0.03)
    >>> bool(np.all(np.diff(losses[:40]) < 0)), round(float(losses[0] / losses[-1])) > 100
    (True, True)
    """
    w, losses = np.array(start, np.float64), []
    state = adam_init(w)
    for step in range(steps + 1):
        value, gradient = value_and_grad(loss)(w)
        losses.append(value)
        rate = warmup_cosine(step + 1, peak=learning_rate, total=steps + 1, warmup=max(1, steps // 10))
        w, state = adam_step(w, gradient, state, learning_rate=rate)
    return np.array(losses)


COMMON_BUGS = (
    CommonBug(
        "gradients not zeroed",
        "the loss rises again",
        "start every backward pass from gradients of zero",
        descent_without_zeroing,
        descent_with_zeroing,
    ),
    CommonBug(
        "softmax over the wrong axis",
        "the attention weights of a query do not sum to 1",
        "softmax along the keys, the last axis",
        softmax_over_queries,
        softmax_over_keys,
    ),
    CommonBug(
        "unstable exponentials",
        "NaN or −∞ in softmax and logarithm",
        "subtract the largest logit; take the logarithm of the softmax in one step",
        log_probabilities_unstable,
        log_probabilities_stable,
    ),
    CommonBug(
        "transposed weights",
        "shapes do not fit, or a square matrix is silently the wrong one",
        "output = input × W, W: (in, out)",
        linear_transposed,
        linear_in_order,
    ),
    CommonBug(
        "padding not masked",
        "the model attends to garbage",
        "scores of −∞ at padding, before the softmax",
        attention_to_padding,
        attention_without_padding,
    ),
    CommonBug(
        "learning rate too high",
        "the loss swings or explodes",
        "begin with 3·10⁻⁴ for Adam, and with warmup",
        descent_too_fast,
        descent_with_warmup,
    ),
)
