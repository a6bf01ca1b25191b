"""One vector for a word in its sentence, one vector for the whole sentence, and a loss that teaches both."""

import numpy as np

from ..autodiff import primitive
from ..errors import ShapeError
from .cosine import cosine_similarity_matrix


def contextual_embeddings(x, mix: float = 0.5):
    """Mix each word of a sentence with the mean of the sentence: the simplest vector that depends on context.

        yₜ = (1 − λ) xₜ + λ · (1/T) Σₛ xₛ                                            (2.11)

    x: (..., T, d)   mix: λ in [0, 1]   ->   y: (..., T, d)

    The same word gets different vectors in different sentences. A transformer learns the weights of this mixture
    (chapter 10) instead of giving each word 1/T.
    Raises: ShapeError for an empty sentence; ValueError for a mix outside [0, 1].
    Source: 004, static against contextual embeddings.

    >>> contextual_embeddings(np.array([[1.0, 0.0], [0.0, 1.0]]), mix=0.5)
    array([[0.75, 0.25],
           [0.25, 0.75]])
    """
    x = x if hasattr(x, "ndim") else np.asarray(x, float)
    if x.ndim < 2 or x.shape[-2] == 0:
        raise ShapeError(f"contextual_embeddings() needs a sentence of shape (T, d) with T ≥ 1, got {x.shape}")
    if not 0 <= mix <= 1:
        raise ValueError(f"contextual_embeddings() needs a mix between 0 and 1, got {mix}")
    mean = mean_pool(x).reshape(*x.shape[:-2], 1, x.shape[-1])
    return x * (1 - mix) + mean * mix


@primitive(nondiff=("mask",))
def mean_pool(x, mask=None):
    """One vector for a sentence: the mean of its token vectors, padding left out.

        s = Σₜ mₜ xₜ / Σₜ mₜ,      dxₜ = mₜ ds / Σₜ mₜ                               (2.12)

    x: (..., T, d)   mask: (..., T), 1 for a token and 0 for padding   ->   s: (..., d)

    Raises: ShapeError for an empty sentence or a mask of another shape; ValueError for a sentence that is all padding,
    or a mask with other values than 0 and 1.
    Source: 004, sentence and document embeddings.

    >>> mean_pool([[1, 2], [3, 4], [9, 9]], mask=[1, 1, 0])
    array([2., 3.])
    """
    if x.ndim < 2 or x.shape[-2] == 0:
        raise ShapeError(f"mean_pool() needs a sentence of shape (T, d) with T ≥ 1, got {x.shape}")
    mask = np.ones(x.shape[:-1], x.dtype) if mask is None else mask.astype(x.dtype)
    if mask.shape != x.shape[:-1]:
        raise ShapeError(f"mean_pool() needs a mask of shape {x.shape[:-1]}, one entry per token, got {mask.shape}")
    if not np.all((mask == 0) | (mask == 1)):
        raise ValueError("mean_pool() needs a mask of zeros and ones")
    tokens = mask.sum(axis=-1)[..., None]
    if np.any(tokens == 0):
        raise ValueError("mean_pool() needs at least one token that is not padding in each sentence")
    weights = mask[..., None] / tokens[..., None]  # (..., T, 1)

    def pullback(ds):
        return weights * ds[..., None, :], None

    real = np.where(mask[..., None] == 1, x, 0)  # what stands in the padding does not matter, not even NaN
    return np.sum(weights * real, axis=-2), pullback


def info_nce(queries, keys, temperature: float = 0.07):
    """Contrastive loss: each query should be nearer to its own key than to every other key of the batch.

        L = −(1/n) Σᵢ ln( exp(Sᵢᵢ/τ) / Σⱼ exp(Sᵢⱼ/τ) ),      S = cosines, n × n      (2.13)

    queries, keys: (n, d), row i of one belongs to row i of the other   temperature: τ > 0   ->   one number

    Raises: ShapeError if the numbers of rows differ; ValueError for a temperature that is not positive.
    Source: 004, contrastive objectives; van den Oord et al. 2018, eq. 4.

    >>> round(float(info_nce([[1, 0], [0, 1]], [[1, 0], [0, 1]], temperature=1.0)), 4)
    0.3133
    """
    if not temperature > 0:
        raise ValueError(f"info_nce() needs a positive temperature, got {temperature}")
    return _cross_entropy_of_diagonal(cosine_similarity_matrix(queries, keys) / temperature)


@primitive
def _cross_entropy_of_diagonal(scores):
    """−(1/n) Σᵢ ln pᵢᵢ with p = exp(scores)/row sums; the gradient is (p − I)/n, derived in chapter 07."""
    n = len(scores)
    if scores.shape != (n, n) or n == 0:
        raise ShapeError(f"info_nce() needs as many keys as queries, at least one, got {n} and {scores.shape[1]}")
    shifted = scores - scores.max(axis=1, keepdims=True)
    log_p = shifted - np.log(np.sum(np.exp(shifted), axis=1, keepdims=True))

    def pullback(dloss):
        return dloss * (np.exp(log_p) - np.eye(n, dtype=scores.dtype)) / n

    return -np.mean(np.diagonal(log_p)), pullback


def retrieve(query, documents, k: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """The `k` documents whose vectors are most similar to the query: the search step of retrieval.

    query: (d,)   documents: (n, d)   ->   indices: (k,), cosines: (k,), best first

    Raises: ShapeError if the sizes differ; ValueError for k < 1 or a zero vector.
    Source: 004, semantic search and retrieval-augmented generation.

    >>> indices, cosines = retrieve([1, 0], [[0, 1], [2, 0], [1, 1]], k=2)
    >>> indices, cosines.round(3)
    (array([1, 2]), array([1.   , 0.707]))
    """
    if k < 1:
        raise ValueError(f"retrieve() needs k of at least 1, got {k}")
    cosines = cosine_similarity_matrix(np.asarray(query)[None, :], documents)[0]
    best = np.argsort(-cosines, kind="stable")[:k]
    return best, cosines[best]
