"""You shall know a word by the company it keeps: word vectors learned from nothing but neighbours in text.

Skip-gram with negative sampling turns plain text into a guessing game. Take a word and one that stands near it, and a
few words drawn at random; the dot product with the true neighbour should be large, with the random words small. Words
that keep the same company are pushed the same way, and end up as neighbours.
"""

from __future__ import annotations  # numpy.random is loaded when it is used

from collections import Counter
from collections.abc import Sequence

import numpy as np

from ..autodiff import grad, primitive
from ..errors import ShapeError
from .words import WordVectors


def skip_gram_pairs(ids, window: int, rng: np.random.Generator | None = None) -> tuple[np.ndarray, np.ndarray]:
    """All pairs (centre, context) of words at most `window` places apart.

    With `rng` each centre draws its own window from 1 … `window`, so that nearer words count more (as word2vec does).

    ids: (T,) int   ->   centres: (n,), contexts: (n,)

    Raises: ValueError for a window below 1; ShapeError if ids is not one sequence.
    Source: Mikolov et al. 2013, "Efficient estimation of word representations in vector space", §3.2.

    >>> centres, contexts = skip_gram_pairs([7, 8, 9], window=1)
    >>> sorted(zip(centres.tolist(), contexts.tolist()))
    [(7, 8), (8, 7), (8, 9), (9, 8)]
    """
    ids = np.asarray(ids)
    if ids.ndim != 1:
        raise ShapeError(f"skip_gram_pairs() needs one sequence of ids, got shape {ids.shape}")
    if window < 1:
        raise ValueError(f"skip_gram_pairs() needs a window of at least 1, got {window}")
    reach = np.full(len(ids), window) if rng is None else rng.integers(1, window + 1, size=len(ids))
    centres, contexts = [], []
    for offset in range(1, min(window, len(ids) - 1) + 1):
        left, right = ids[:-offset], ids[offset:]
        sees_right, sees_left = reach[:-offset] >= offset, reach[offset:] >= offset
        centres += [left[sees_right], right[sees_left]]
        contexts += [right[sees_right], left[sees_left]]
    empty = [np.empty(0, ids.dtype)]
    return np.concatenate(centres or empty), np.concatenate(contexts or empty)


@primitive
def sigmoid(x):
    """Squeeze a score into (0, 1): the probability that it means "yes".

        σ(x) = 1 / (1 + e⁻ˣ) = ½ (1 + tanh ½x),      σ′ = σ (1 − σ) ≤ ¼

    x: any shape   ->   the same shape. The second form never overflows.
    Source: 001, §4.2.2; 004, listing of the XOR network.

    >>> sigmoid([0.0, 2.0, -1000.0]).round(3)
    array([0.5  , 0.881, 0.   ])
    """
    s = 0.5 * (1 + np.tanh(0.5 * x))
    return s, lambda dy: dy * s * (1 - s)


@primitive
def negative_sampling_loss(centre, context, negatives):
    """Tell the true neighbour from words drawn at random: the loss of a batch of pairs.

        L = (1/B) Σ_b [ −ln σ(u_b·v_b) − Σ_k ln σ(−n_bk·v_b) ]                     (2.14)
        ∂(−ln σ(s))/∂s = σ(s) − 1,      ∂(−ln σ(−s))/∂s = σ(s)

    centre: v (B, d)   context: u (B, d)   negatives: n (B, K, d)   ->   one number

    Raises: ShapeError if the sizes do not fit.
    Source: Mikolov et al. 2013, "Distributed representations of words and phrases", eq. 4; 001, §6.1.

    >>> round(float(negative_sampling_loss([[1, 0]], [[1, 0]], [[[-1, 0], [0, 1]]])), 4)
    1.3197
    """
    if centre.shape != context.shape or negatives.ndim != 3 or negatives.shape[::2] != centre.shape or not len(centre):
        raise ShapeError(
            "negative_sampling_loss() needs centre and context of shape (B, d), B ≥ 1, and negatives (B, K, d), "
            f"got {centre.shape}, {context.shape} and {negatives.shape}"
        )
    true_scores = np.einsum("bd,bd->b", context, centre)
    noise_scores = np.einsum("bkd,bd->bk", negatives, centre)
    loss = np.logaddexp(0, -true_scores) + np.logaddexp(0, noise_scores).sum(axis=1)

    def pullback(dloss):
        dtrue = dloss / len(centre) * (sigmoid(true_scores) - 1)  # (B,)
        dnoise = dloss / len(centre) * sigmoid(noise_scores)  # (B, K)
        dcentre = dtrue[:, None] * context + np.einsum("bk,bkd->bd", dnoise, negatives)
        return dcentre, dtrue[:, None] * centre, dnoise[:, :, None] * centre[:, None, :]

    return loss.mean(), pullback


def train_word2vec(
    tokens: Sequence[str],
    rng: np.random.Generator,
    *,
    size: int = 32,
    window: int = 4,
    negatives: int = 5,
    min_count: int = 20,
    frequent: float = 1e-3,
    epochs: int = 1,
    batch: int = 500,
    learning_rate: float = 0.1,
) -> WordVectors:
    """Learn word vectors from a text by skip-gram with negative sampling.

        v ← v − η ∂L/∂v   for the centre words,   u ← u − η ∂L/∂u   for true and random neighbours

    tokens: the words of the text in order. Words seen fewer than `min_count` times are left out; a word with share f of
    the text is skipped with probability 1 − √(`frequent`/f), since the tenth "the" teaches nothing new; random words
    are drawn with probability ∝ count^¾. The step falls linearly to zero. The same `rng` gives the same vectors.

    Raises: ValueError if fewer than two different words remain, or if the steps were too large.
    Source: Mikolov et al. 2013, "Distributed representations of words and phrases", §2.2–2.3.

    >>> text = "the king rules the land and the queen rules the land".split() * 50
    >>> train_word2vec(text, np.random.default_rng(0), size=8)
    WordVectors(6 words, 8 components)
    """
    counts = Counter(tokens)
    words = [word for word, count in counts.most_common() if count >= min_count]
    if len(words) < 2:
        raise ValueError(f"train_word2vec() needs two words that occur at least {min_count} times, got {len(words)}")
    row = {word: i for i, word in enumerate(words)}
    ids = np.array([row[token] for token in tokens if token in row])
    count = np.array([counts[word] for word in words], float)
    keep = np.sqrt(np.minimum(1, frequent * count.sum() / count))
    noise = np.cumsum(count**0.75) / np.sum(count**0.75)

    params = {
        "centre": ((rng.random((len(words), size)) - 0.5) / size).astype(np.float32),
        "context": np.zeros((len(words), size), np.float32),
    }
    for epoch in range(epochs):
        kept = ids[rng.random(len(ids)) < keep[ids]]
        pairs = np.stack(skip_gram_pairs(kept, window, rng), axis=1)
        rng.shuffle(pairs)
        batch = min(batch, len(words))  # in a larger batch the steps of one word would pile up
        for start in range(0, len(pairs), batch):
            centre, context = pairs[start : start + batch].T
            drawn = np.searchsorted(noise, rng.random((len(centre), negatives)))
            done = (epoch + start / len(pairs)) / epochs
            _step(params, centre, context, drawn, learning_rate * (1 - done))
        if not np.isfinite(params["centre"]).all():
            raise ValueError(f"train_word2vec() diverged; try a learning_rate below {learning_rate}")
    return WordVectors(words, params["centre"])


def _step(params, centre, context, drawn, learning_rate):
    """One step of gradient descent on the rows of this batch; every pair moves its words by the whole step."""
    rows = (params["centre"][centre], params["context"][context], params["context"][drawn])
    gradient = grad(lambda rows: negative_sampling_loss(*rows))(rows)
    step = np.float32(learning_rate * len(centre))  # the loss is a mean over the pairs
    np.subtract.at(params["centre"], centre, step * gradient[0])
    np.subtract.at(params["context"], context, step * gradient[1])
    np.subtract.at(params["context"], drawn, step * gradient[2])
