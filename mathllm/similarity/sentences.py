"""From the vectors of words to vectors of words in their sentence, of whole sentences, and to a search among them."""

import numpy as np

from ..autodiff import Array, ArrayLike, WithPullback, primitive
from ..errors import all_within, within
from ..shapes import contract
from .cosine import cosine_similarity_matrix


@contract("... T+ d -> ... T d")
def contextual_embeddings(x: ArrayLike, mix: float = 0.5) -> np.ndarray:
    """Mix each word of a sentence with the mean of the sentence: the simplest vector that depends on context.

        yₜ = (1 − λ) xₜ + λ · (1/T) Σᵢ xᵢ                                            (2.13)

    mix: λ in [0, 1]

    The same word gets different vectors in different sentences. Attention (chapter 10) computes the weights of such a
    mixture from the words instead of giving each word 1/T.
    Raises: ValueError for a λ outside [0, 1].

    >>> contextual_embeddings([[1.0, 0.0], [0.0, 1.0]], mix=0.5)
    array([[0.75, 0.25],
           [0.25, 0.75]])
    """
    within("contextual_embeddings", "[0, 1]", mix=mix)
    mean = mean_pool(x).reshape(*x.shape[:-2], 1, x.shape[-1])
    return x * (1 - mix) + mean * mix


@primitive(nondiff=("mask",), shapes="... T+ d, ... T -> ... d")
def mean_pool(x: Array, mask: Array | None = None) -> WithPullback:
    """One vector for a sentence: the mean of its token vectors, padding left out.

        s = Σₜ mₜ xₜ / Σₜ mₜ,      dxₜ = mₜ ds / Σₜ mₜ                               (2.14)

    mask: 1 for a token and 0 for padding

    Raises: ValueError for a sentence that is all padding, or a mask with other values than 0 and 1.

    >>> mean_pool([[1, 2], [3, 4], [9, 9]], mask=[1, 1, 0])
    array([2., 3.])
    """
    wide = np.promote_types(x.dtype, np.float32)  # a float16 sum over many tokens would stop growing
    mask = np.ones(x.shape[:-1], wide) if mask is None else mask.astype(wide)
    all_within("mean_pool", "{0, 1}", mask=mask)
    tokens = mask.sum(axis=-1)[..., None]
    all_within("mean_pool", "[1, ∞)", tokens_beside_padding=tokens)
    weights = mask[..., None] / tokens[..., None]  # (..., T, 1)

    def pullback(ds):
        return weights * ds[..., None, :], None

    real = np.where(mask[..., None] == 1, x, 0)  # the vectors of padding have no influence, not even NaN
    return np.sum(weights * real, axis=-2).astype(x.dtype), pullback


@contract("d+, n d")
def retrieve(query: ArrayLike, documents: ArrayLike, k: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """The `k` documents whose vectors are most similar to the query: the search step of retrieval.

    ->   indices (k,), cosines (k,), best first

    Raises: ValueError for k < 1, a zero vector, NaN or infinity.

    >>> indices, cosines = retrieve([1, 0], [[0, 1], [2, 0], [1, 1]], k=2)
    >>> indices, cosines.round(3)
    (array([1, 2]), array([1.   , 0.707]))
    """
    within("retrieve", "whole [1, ∞)", k=k)
    all_within("retrieve", "(-∞, ∞)", query=query, documents=documents)
    cosines = cosine_similarity_matrix(query[None, :], documents)[0]
    best = np.argsort(-cosines, kind="stable")[:k]
    return best, cosines[best]
