"""Induction heads, [A][B] … [A] → [B]: a circuit written by hand, one found by training, and scores of a head."""

from __future__ import annotations  # NumPy loads its random numbers when they are used

import numpy as np

from ..autodiff import ArrayLike
from ..cross_entropy import IGNORED
from ..errors import within
from ..gradient_descent import adamw_init, adamw_step, clip_gradient, descend
from ..shapes import contract
from ..transformer import Config, Transformer, record_to
from ..trees import tree_map


def induction_model(vocabulary: int, context: int) -> tuple[Transformer, dict]:
    """A transformer with weights written by hand: [A][B] … [A] → [B], exactly, in two attention heads.

        layer 1:  query = position − 1, key = position, value = token:           writes "the token before"
        layer 2:  query = token, key = the token before, value = token:          writes the prediction  (16.23)

    The residual stream has four parts: the token, its position, the token before, and the prediction. Scores are 0 or
    1000, so large that the softmax is exact; the feed-forward networks write zeros. If the token has occurred
    several times, the predictions are the frequencies of its successors. If it is new, they are the frequencies of all
    tokens but the first; a single token predicts itself.

    vocabulary: V   context: longest sequence T   ->   (model, params), D = 3V + T

    Raises: ValueError for sizes below 1.
    Source: Elhage et al. 2021; Olsson et al. 2022.

    >>> model, params = induction_model(vocabulary=5, context=8)
    >>> model(params, [[3, 1, 4, 2, 3]])[0, -1].argmax()  # after the 3 came the 1
    np.int64(1)
    """
    within("induction_model", "whole [1, ∞)", vocabulary=vocabulary, context=context)
    V, T = vocabulary, context
    D = 3 * V + T
    token, position, before, prediction = np.split(np.eye(D), [V, V + T, 2 * V + T])  # the rows of a part: (V, D) …
    previous = np.eye(T, k=-1)  # position i attends to position i − 1
    first = position.T @ previous @ position, position.T @ position, token.T @ before
    # "The token before" the first token is itself, because it sees nothing else: a constant query rules it out.
    everywhere, start = np.outer(position.sum(axis=0), position[0]), np.outer(position[0], position[0])
    second = token.T @ token + everywhere, before.T @ token - start, token.T @ prediction
    params = {
        "embedding": token, "positions": position,
        "blocks": [_block(*first, np.sqrt(2)), _block(*second, np.sqrt(3))],
        "final_norm": {"gain": np.full(D, 2 / np.sqrt(D))}, "unembedding": 20 * prediction.T,
    }  # fmt: skip
    choices = {"norm": "rms", "norm_epsilon": 1e-12, "bias": False, "tied": False}
    return Transformer(Config(V, D, layers=2, heads=1, hidden=1, context=T, **choices)), params


def _block(query, key, value, length):
    """A block with one head, whose scores are 0 or 1000, and a feed-forward network that writes zeros.

    The rows of the stream have this length before the block; the gain of the norm restores it.
    """
    D = len(query)
    sharpness = np.sqrt(1000 * np.sqrt(D))  # of query and of key; scores are divided by √D
    return {
        "attention_norm": {"gain": np.full(D, length / np.sqrt(D))},
        "attention": {"query": sharpness * query, "key": sharpness * key, "value": value, "output": np.eye(D)},
        "feed_forward_norm": {"gain": np.ones(D)},
        "feed_forward": {"up": np.zeros((D, 1)), "down": np.zeros((1, D))},
    }


def repeated_tokens(examples: int, period: int, vocabulary: int, rng: np.random.Generator | int) -> np.ndarray:
    """Random tokens, all different, then the same again: the second half can be predicted only from the first.

    ->   (B, 2·period) int   Raises: ValueError for a period above the vocabulary, or below 1.
    Source: Olsson et al. 2022.

    >>> tokens = repeated_tokens(1, 3, 9, np.random.default_rng(0))
    >>> bool(np.all(tokens[:, :3] == tokens[:, 3:]))
    True
    """
    within("repeated_tokens", f"whole [1, {vocabulary}]", period=period)
    half = np.random.default_rng(rng).permuted(np.tile(np.arange(vocabulary), (examples, 1)), axis=1)[:, :period]
    return np.concatenate([half, half], axis=1)


def successor_texts(
    examples: int, length: int, vocabulary: int, rng: np.random.Generator | int, noise: float = 0.2
) -> np.ndarray:
    """Texts in which every token has one successor, drawn anew for each text; some tokens are random instead.

    ->   (B, T) int   noise: probability of a random token, which keeps positions from predicting tokens

    Raises: ValueError for sizes below 1 or a noise outside [0, 1].
    Source: Bietti et al. 2023.

    >>> successor_texts(1, 6, 3, np.random.default_rng(0), noise=0.0)  # 0 → 2 → 1 → 0 in this text
    array([[0, 2, 1, 0, 2, 1]])
    """
    within("successor_texts", "whole [1, ∞)", examples=examples, length=length, vocabulary=vocabulary)
    within("successor_texts", "[0, 1]", noise=noise)
    rng = np.random.default_rng(rng)
    successor = rng.permuted(np.tile(np.arange(vocabulary), (examples, 1)), axis=1)
    tokens = rng.integers(0, vocabulary, size=(examples, length))
    follows = rng.random((examples, length)) >= noise
    for t in range(1, length):
        expected = successor[np.arange(examples), tokens[:, t - 1]]
        tokens[:, t] = np.where(follows[:, t], expected, tokens[:, t])
    return tokens


def train_induction_model(
    rng: np.random.Generator | int, *, steps: int = 300, every: int = 50
) -> tuple[Transformer, dict, list[tuple[int, float, float, float]]]:
    """A small transformer that learns the induction circuit from texts whose rules change with every text.

    ->   (model, params, history): two layers of one head each, trained on successor_texts(), where only those tokens
    count that can be predicted, because the same pair has occurred before; and after every so many steps an entry of
    the history, (step, loss, previous-token score of layer 1, induction score of layer 2)

    For a while the loss hardly falls; then the induction score jumps, and the previous-token score follows.
    Source: Olsson et al. 2022; Bietti et al. 2023.

    >>> model, params, history = train_induction_model(np.random.default_rng(0), steps=2, every=1)
    >>> [step for step, *_ in history]
    [1, 2]
    """
    vocabulary, length, choices = 8, 24, {"norm": "rms", "bias": False, "tied": False}
    model = Transformer(Config(vocabulary, width=32, layers=2, heads=1, hidden=4, context=length, **choices))
    rng = np.random.default_rng(rng)
    params = start = tree_map(_rescaled, model.init(rng, np.float32))
    test, history = repeated_tokens(64, vocabulary, vocabulary, rng), []

    def step(params, gradient, state, **options):
        return adamw_step(params, clip_gradient(gradient, 1.0)[0], state, **options)

    texts = (successor_texts(32, length, vocabulary, rng, noise=0.3) for _ in range(steps))
    batches = ((tokens, _predictable(tokens)) for tokens in texts)
    optimiser = {"init": adamw_init, "step": step, "learning_rate": lambda number: 0.015 * min(1, number / 20)}
    for number, params, loss in descend(model.loss, start, batches, **optimiser):
        if number % every == 0:
            model(params, test, tap=record_to(record := {}))
            previous = previous_token_score(record["blocks.0.attention.weights"])
            found = induction_score(record["blocks.1.attention.weights"], vocabulary)
            history.append((number, float(loss), float(previous[0]), float(found[0])))
    return model, params, history


def _predictable(tokens):
    """Labels that count only tokens that can be predicted, because the same pair of tokens has occurred before."""
    pairs = tokens[:, :-1] * (tokens.max() + 1) + tokens[:, 1:]  # (B, T − 1)
    again = np.tril(pairs[:, :, None] == pairs[:, None, :], k=-1).any(axis=-1)
    return np.pad(np.where(again, tokens[:, 1:], IGNORED), ((0, 0), (1, 0)), constant_values=IGNORED)


def _rescaled(weight):
    """Weights with standard deviation 0.8/√(inputs): the usual 0.02 is too small for so narrow a model."""
    return weight if weight.ndim == 1 else weight * np.float32(0.8 / (len(weight) ** 0.5 * max(weight.std(), 1e-9)))


@contract("B+ H T T -> H")
def induction_score(weights: ArrayLike, period: int) -> np.ndarray:
    """How much each head attends, in the second half of repeated tokens, to what followed the same token before.

        score_h = mean over texts and i ≥ P of A_h[i, i − P + 1]                    (16.24)

    weights: "blocks.1.attention.weights" of a run on repeated_tokens()   period: P   ->   0 … 1

    Raises: ValueError for a period outside 1 … T − 1.
    Source: Olsson et al. 2022, "prefix matching score".

    >>> model, params = induction_model(6, 8)
    >>> logits = model(params, repeated_tokens(2, 4, 6, np.random.default_rng(0)), tap=record_to(record := {}))
    >>> [float(induction_score(record[f"blocks.{n}.attention.weights"], 4)[0]) for n in (0, 1)]
    [0.0, 1.0]
    """
    length = weights.shape[-1]
    within("induction_score", f"whole [1, {length - 1}]", period=period)
    here = np.arange(period, length)
    return weights[:, :, here, here - period + 1].mean(axis=(0, 2))


@contract("B+ H T T -> H")
def previous_token_score(weights: ArrayLike) -> np.ndarray:
    """How much each head attends to the token just before.

        score_h = mean over texts and i ≥ 1 of A_h[i, i − 1]                        (16.25)

    weights: "blocks.0.attention.weights" of a run of at least two tokens   ->   0 … 1

    Raises: ValueError for fewer than two tokens.
    Source: Olsson et al. 2022.

    >>> previous_token_score(np.eye(3, k=-1)[None, None])
    array([1.])
    """
    within("previous_token_score", "[2, ∞)", tokens=weights.shape[-1])
    here = np.arange(1, weights.shape[-1])
    return weights[:, :, here, here - 1].mean(axis=(0, 2))
