"""The table of chapter 07 in which a document lists losses and perplexities for five probabilities."""

from collections.abc import Iterable

import numpy as np

from ..cross_entropy import perplexity, surprise


def loss_table(probabilities: Iterable[float]) -> list[tuple[float, float, float]]:
    """The rows of the loss and perplexity table: probability of the correct token, loss in nats, perplexity.

    Raises: ValueError for a number that is no probability.

    >>> for p, loss, choices in loss_table([0.5, 0.1]):
    ...     print(f"{p:.2f}  {loss:.2f}  {choices:.2f}")
    0.50  0.69  2.00
    0.10  2.30  10.00
    """
    losses = [(float(p), float(surprise(p))) for p in probabilities]
    return [(p, loss, float(perplexity(loss, base=np.e))) for p, loss in losses]
