"""The contrastive loss: the cross-entropy of choosing, for each query, its own key among all keys of the batch."""

import numpy as np

from ..autodiff import ArrayLike
from ..errors import within
from ..shapes import contract
from ..similarity import cosine_similarity_matrix
from .loss import cross_entropy


@contract("B+ d, B d")
def info_nce(queries: ArrayLike, keys: ArrayLike, temperature: float = 0.07) -> np.ndarray:
    """In-batch contrastive loss: each query should be nearer to its own key than to every other key of the batch.

        L = −(1/B) Σᵢ ln( exp(cos(aᵢ, bᵢ)/τ) / Σⱼ exp(cos(aᵢ, bⱼ)/τ) )              (9.16)

    queries: a   keys: b, of which row i belongs to row i of the queries   temperature: τ > 0   ->   one number

    Raises: ValueError for a temperature that is not positive, or a zero vector.
    Source: van den Oord et al. 2018, eq. 4.

    >>> round(float(info_nce([[1, 0], [0, 1]], [[1, 0], [0, 1]], temperature=1.0)), 4)
    0.3133
    """
    within("info_nce", "(0, ∞)", temperature=temperature)
    scores = cosine_similarity_matrix(queries, keys) / temperature
    return cross_entropy(scores, np.arange(len(scores)))
