"""Word vectors learned from plain text by gradient descent: skip-gram with negative sampling (word2vec).

A word and one that occurs near it are a true pair; the word and one drawn at random are a false pair. Descent makes the
dot product of true pairs large and that of false pairs small. Words that occur in the same contexts get similar
gradients, and so their vectors become neighbours.
"""

from __future__ import annotations  # numpy.random is loaded when it is used

from collections import Counter
from collections.abc import Sequence

import numpy as np

from ..autodiff import Array, ArrayLike, WithPullback, grad, primitive
from ..errors import within
from ..exponentials import sigmoid
from ..probability import token_sequence
from ..similarity import WordVectors
from ..vectors import embedding
from .optimizers import sgd_init, sgd_step


def skip_gram_pairs(
    ids: ArrayLike, window: int, rng: np.random.Generator | int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """All pairs (centre, context) of words at most `window` places apart.

    ids: (T,) int   ->   centres (n,), contexts (n,)

    With `rng` each centre draws its own window from 1 … `window`, so that nearer words count more (as word2vec does).

    Raises: ValueError for a window below 1; ShapeError and TypeError if ids is not one sequence of integers.
    Source: Mikolov et al. 2013, "Efficient estimation of word representations in vector space", §3.2.

    >>> centres, contexts = skip_gram_pairs([7, 8, 9], window=1)
    >>> sorted(zip(centres.tolist(), contexts.tolist()))
    [(7, 8), (8, 7), (8, 9), (9, 8)]
    """
    within("skip_gram_pairs", "whole [1, ∞)", window=window)
    ids = token_sequence("skip_gram_pairs", ids)
    reach = np.full(len(ids), window) if rng is None else np.random.default_rng(rng).integers(1, window + 1, len(ids))
    centres, contexts = [ids[:0]], [ids[:0]]
    for offset in range(1, min(window, len(ids) - 1) + 1):
        left, right = ids[:-offset], ids[offset:]
        sees_right, sees_left = reach[:-offset] >= offset, reach[offset:] >= offset
        centres += [left[sees_right], right[sees_left]]
        contexts += [right[sees_right], left[sees_left]]
    return np.concatenate(centres), np.concatenate(contexts)


@primitive(shapes="B+ d, B d, B K d")
def negative_sampling_loss(centre: Array, context: Array, negatives: Array) -> WithPullback:
    """Tell the true neighbour from words drawn at random: the mean loss of a batch of pairs.

        L = (1/B) Σᵢ [ −ln σ(aᵢ·bᵢ) − Σⱼ ln σ(−aᵢ·nᵢⱼ) ]                            (9.14)
        ∂(−ln σ(s))/∂s = σ(s) − 1,      ∂(−ln σ(−s))/∂s = σ(s)                      (9.15)

    centre: a   context: b   negatives: n, K for each pair   ->   one number

    Source: Mikolov et al. 2013, "Distributed representations of words and phrases", eq. 4.

    >>> round(float(negative_sampling_loss([[1, 0]], [[1, 0]], [[[-1, 0], [0, 1]]])), 4)
    1.3197
    """
    true_scores = np.einsum("bd,bd->b", context, centre)
    noise_scores = np.einsum("bkd,bd->bk", negatives, centre)
    loss = np.logaddexp(0, -true_scores) + np.logaddexp(0, noise_scores).sum(axis=1)

    def pullback(dloss):
        dtrue = -dloss / len(centre) * sigmoid(-true_scores)  # (B,); σ − 1 would lose digits
        dnoise = dloss / len(centre) * sigmoid(noise_scores)  # (B, K)
        dcentre = dtrue[:, None] * context + np.einsum("bk,bkd->bd", dnoise, negatives)
        return dcentre, dtrue[:, None] * centre, dnoise[:, :, None] * centre[:, None, :]

    return loss.mean(), pullback


def train_word2vec(
    tokens: Sequence[str], rng: np.random.Generator | int, *,
    size: int = 32, window: int = 4, negatives: int = 5, min_count: int = 20, frequent: float = 1e-3,
    epochs: int = 1, batch_size: int = 500, learning_rate: float = 0.1,
) -> WordVectors:  # fmt: skip
    """Learn word vectors from a text by skip-gram with negative sampling.

        a ← a − η ∂L/∂a   for the centre words,   b ← b − η ∂L/∂b   for true and random neighbours

    tokens: the words of the text in order. Words seen fewer than `min_count` times are left out; a word that makes up a
    fraction f > `frequent` of the text is skipped with probability 1 − √(`frequent`/f), since little is learned from
    one more "the"; for each pair, `negatives` random words are drawn with probability ∝ count^¾. In `epochs` passes
    through the text the step falls linearly to zero. The same `rng` gives the same vectors. `window` is that of
    skip_gram_pairs().

    Raises: ValueError if fewer than two different words remain, if the steps were too large, or for a size or batch
    size below 1.
    Source: Mikolov et al. 2013, "Distributed representations of words and phrases", §2.2–2.3.

    >>> text = "the king rules the land and the queen rules the land".split() * 50
    >>> train_word2vec(text, np.random.default_rng(0), size=8)
    WordVectors(6 words, 8 components)
    """
    within("train_word2vec", "whole [1, ∞)", size=size, batch_size=batch_size)
    words, counts, ids = _vocabulary(tokens, min_count)
    rng = np.random.default_rng(rng)
    params = {
        "centre": ((rng.random((len(words), size)) - 0.5) / size).astype(np.float32),
        "context": np.zeros((len(words), size), np.float32),
    }
    state = sgd_init(params)
    batch_size = min(batch_size, len(words))  # a larger batch would add up many steps of the same word
    for *pairs, done in _batches(ids, counts, rng, window, negatives, frequent, epochs, batch_size):
        rate = learning_rate * (1 - done) * len(pairs[0])  # each pair makes a whole step; the loss is their mean
        params, state = sgd_step(params, grad(_loss)(params, *pairs), state, learning_rate=rate)
    return WordVectors(words, params["centre"])


def _vocabulary(tokens, min_count):
    """The words that are frequent enough, their counts, and the text as ids of these words."""
    counts = {word: count for word, count in Counter(tokens).most_common() if count >= min_count}
    within("train_word2vec", "[2, ∞)", number_of_frequent_words=len(counts))
    row = {word: i for i, word in enumerate(counts)}
    ids = np.array([row[token] for token in tokens if token in row])
    return list(counts), np.array(list(counts.values()), float), ids


def _batches(ids, counts, rng, window, negatives, frequent, epochs, batch_size):
    """For each step: ids of centres (b,), contexts (b,) and negatives (b, K), and the fraction of the training done."""
    keep = np.sqrt(np.minimum(1, frequent * counts.sum() / counts))
    noise = counts**0.75 / np.sum(counts**0.75)
    for epoch in range(epochs):
        kept = ids[rng.random(len(ids)) < keep[ids]]
        pairs = rng.permutation(np.stack(skip_gram_pairs(kept, window, rng), axis=1))
        for start in range(0, len(pairs), batch_size):
            centre, context = pairs[start : start + batch_size].T
            drawn = rng.choice(len(counts), size=(len(centre), negatives), p=noise)
            yield centre, context, drawn, (epoch + start / len(pairs)) / epochs


def _loss(params, centre, context, drawn):
    vectors = embedding(params["centre"], centre)
    return negative_sampling_loss(vectors, embedding(params["context"], context), embedding(params["context"], drawn))
