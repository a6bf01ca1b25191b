"""The nucleus of top-p sampling as one source prints it; `mathllm.keep_top_p` is the fixed version."""

import numpy as np

from ..autodiff import ArrayLike
from ..probability import distribution
from ..shapes import contract


@contract("V+ -> V")
def nucleus_as_printed(probabilities: ArrayLike, p: float) -> np.ndarray:
    """The nucleus with the inequality reversed: a set whose mass stays at or below p, divided by p.

        V_p = {t : Σ_{v sorted} P(v) ≤ p},      P′ = P/p

    The result is no distribution, and it is zero everywhere if the first token alone has more than p.

    Raises: ValueError if the probabilities are no distribution.

    >>> P = [0.629, 0.231, 0.14]
    >>> round(float(nucleus_as_printed(P, 0.9).sum()), 4), float(nucleus_as_printed(P, 0.5).sum())
    (0.9556, 0.0)
    """
    probabilities = distribution(probabilities)
    order = np.argsort(-probabilities, kind="stable")
    kept = np.zeros(probabilities.shape, bool)
    kept[order] = np.cumsum(probabilities[order]) <= p
    return np.where(kept, probabilities, 0) / p
