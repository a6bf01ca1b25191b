"""What came after this, the last time? A circuit of two heads that knows, by hand; and scores to find it elsewhere."""

from __future__ import annotations  # numpy.random is loaded when it is used

import numpy as np

from ..autodiff import value_and_grad
from ..cross_entropy import IGNORED
from ..errors import ShapeError
from ..gradient_descent import adamw_init, adamw_step, clip_gradient
from ..transformer import Config, Transformer
from ..trees import tree_map


def induction_model(vocabulary: int, context: int, *, strength: float = 1000.0, confidence: float = 20.0):
    """A transformer whose weights are written down: [A][B] … [A] → [B], in two attention heads, exactly.

        layer 1:  query = position − 1, key = position, value = token:      "before me stood …"
        layer 2:  query = token, key = what stood before, value = token:    "after such a token came …"  (16.23)

    The stream has four compartments: the token, its position, the token before, and the prediction. Scores are 0 or
    `strength`, so large that the softmax is exact; the feed-forward networks write zeros. Where the token has occurred
    several times, the predictions are averaged: the frequencies of its successors. Where it has not, all tokens but the
    first are: their frequencies in the text.

    vocabulary: V   context: longest sequence T   confidence: size of the logits   ->   (model, params), D = 3V + T

    Raises: ValueError for sizes below 1.
    Source: 004, circuits; Elhage et al. 2021; Olsson et al. 2022.

    >>> model, params = induction_model(vocabulary=5, context=8)
    >>> model(params, [[3, 1, 4, 2, 3]])[0, -1].argmax()  # after the 3 came the 1
    np.int64(1)
    """
    if vocabulary < 1 or context < 1:
        raise ValueError(f"induction_model() needs sizes of at least 1, got {vocabulary} and {context}")
    V, T = vocabulary, context
    D, K = 3 * V + T, max(V + 1, T)
    token, position, before, prediction = np.split(np.eye(D), [V, V + T, 2 * V + T])  # rows of a compartment: (V, D) …
    config = Config(
        vocabulary=V, width=D, layers=2, heads=1, head_width=K, hidden=1, context=T, norm="rms", norm_epsilon=1e-12,
        bias=False, tied=False,
    )  # fmt: skip
    sharp = np.sqrt(strength * np.sqrt(K))  # of query and of key; scores are divided by √K

    def head(query, key, value, output):
        """Compartment to head width for queries, keys and values, and from there to the compartment written to."""
        widened = [np.pad(matrix, ((0, 0), (0, K - matrix.shape[1]))) for matrix in (query, key, value, output.T)]
        query, key, value, output = widened
        return {"query": sharp * query, "key": sharp * key, "value": value, "output": output.T}

    # Rows of the stream have length √2 before layer 1 and √3 before layer 2; the gains undo the norms.
    def gain(length):
        return {"gain": np.full(D, length / np.sqrt(D))}

    previous = np.eye(T, k=-1)  # position i asks for position i − 1
    first = head(position.T @ previous, position.T, token.T, before)
    # What stood before the first token is itself, because it sees nothing else: a constant query counts against it.
    everywhere, start = position.sum(axis=0)[:, None], position[0][:, None]
    second = head(np.c_[token.T, everywhere], np.c_[before.T, -start], token.T, prediction)
    idle = {"up": np.zeros((D, 1)), "down": np.zeros((1, D))}
    blocks = [
        {"attention_norm": gain(np.sqrt(2)), "attention": first, "feed_forward_norm": gain(1.0), "feed_forward": idle},
        {"attention_norm": gain(np.sqrt(3)), "attention": second, "feed_forward_norm": gain(1.0), "feed_forward": idle},
    ]
    params = {
        "embedding": token, "positions": position, "blocks": blocks,
        "final_norm": gain(2.0), "unembedding": confidence * prediction.T,
    }  # fmt: skip
    return Transformer(config), params


def repeated_tokens(examples: int, period: int, vocabulary: int, rng: np.random.Generator) -> np.ndarray:
    """Random tokens, all different, and then the same again: only what was read can predict the second half.

    ->   (B, 2·period) int   Raises: ValueError for a period above the vocabulary, or below 1.
    Source: Olsson et al. 2022.

    >>> tokens = repeated_tokens(1, 3, 9, np.random.default_rng(0))
    >>> bool(np.all(tokens[:, :3] == tokens[:, 3:]))
    True
    """
    if not 1 <= period <= vocabulary:
        raise ValueError(f"repeated_tokens() needs a period from 1 to {vocabulary}, got {period}")
    half = rng.permuted(np.tile(np.arange(vocabulary), (examples, 1)), axis=1)[:, :period]
    return np.concatenate([half, half], axis=1)


def successor_texts(examples: int, length: int, vocabulary: int, rng: np.random.Generator, noise: float = 0.2):
    """Texts in which every token has a successor of its own, in this text only; now and then a random token instead.

    ->   (B, T) int   noise: share of random tokens, so that places in the text tell nothing

    Raises: ValueError for sizes below 1 or a noise outside [0, 1].
    Source: Bietti et al. 2023.

    >>> successor_texts(1, 6, 3, np.random.default_rng(0), noise=0.0)  # 0 → 2 → 1 → 0 in this text
    array([[0, 2, 1, 0, 2, 1]])
    """
    if min(examples, length, vocabulary) < 1 or not 0 <= noise <= 1:
        raise ValueError(f"successor_texts() needs sizes ≥ 1 and a noise from 0 to 1, got noise {noise}")
    successor = rng.permuted(np.tile(np.arange(vocabulary), (examples, 1)), axis=1)
    tokens = rng.integers(0, vocabulary, size=(examples, length))
    follows = rng.random((examples, length)) >= noise
    for t in range(1, length):
        expected = successor[np.arange(examples), tokens[:, t - 1]]
        tokens[:, t] = np.where(follows[:, t], expected, tokens[:, t])
    return tokens


def train_induction_model(
    rng: np.random.Generator, *, vocabulary: int = 8, length: int = 24, width: int = 32, noise: float = 0.3,
    steps: int = 300, batch: int = 32, learning_rate: float = 0.015, every: int = 50,
):  # fmt: skip
    """A small transformer that finds the circuit by itself, from texts whose rules change with every text.

    ->   (model, params, history): two layers of one head each, trained on successor_texts(), where only tokens count
    that can be known because the same pair has stood before; and a line of the history, (step, loss, previous-token
    score of layer 1, induction score of layer 2), every so many steps

    For a while nothing is learned; then both scores rise together, and the loss falls.
    Source: 004, circuits; Olsson et al. 2022; Bietti et al. 2023.

    >>> model, params, history = train_induction_model(np.random.default_rng(0), steps=2, every=1)
    >>> [step for step, *_ in history]
    [1, 2]
    """
    config = Config(
        vocabulary=vocabulary, width=width, layers=2, heads=1, hidden=4, context=length, norm="rms", bias=False,
        tied=False,
    )  # fmt: skip
    model = Transformer(config)
    params = tree_map(_wider, model.init(rng, np.float32))
    state, history = adamw_init(params), []
    test = repeated_tokens(64, min(length // 2, vocabulary), vocabulary, rng)
    for step in range(1, steps + 1):
        tokens = successor_texts(batch, length, vocabulary, rng, noise)
        loss, gradient = value_and_grad(model.loss)(params, tokens, _answerable(tokens))
        gradient, _ = clip_gradient(gradient, 1.0)
        params, state = adamw_step(params, gradient, state, learning_rate=learning_rate * min(1, step / 20))
        if step % every == 0:
            model(params, test, record=(record := {}))
            previous = previous_token_score(record["blocks.0.attention.weights"])
            found = induction_score(record["blocks.1.attention.weights"], test.shape[1] // 2)
            history.append((step, float(loss), float(previous[0]), float(found[0])))
    return model, params, history


def _answerable(tokens):
    """Labels that count only where the same pair has stood before: the token that follows could be known."""
    pairs = tokens[:, :-1] * (tokens.max() + 1) + tokens[:, 1:]  # (B, T − 1)
    again = np.tril(pairs[:, :, None] == pairs[:, None, :], k=-1).any(axis=-1)
    return np.pad(np.where(again, tokens[:, 1:], IGNORED), ((0, 0), (1, 0)), constant_values=IGNORED)


def _wider(weight):
    """Weights of size 1/√(inputs): with those of a deep model, 0.02, so small a one begins too slowly."""
    return weight if weight.ndim == 1 else weight * np.float32(0.8 / (len(weight) ** 0.5 * max(weight.std(), 1e-9)))


def induction_score(weights, period: int) -> np.ndarray:
    """How much each head, in the second half of repeated tokens, looks at what came after the same token before.

        score_h = mean over texts and i ≥ P of A_h[i, i − P + 1]                    (16.24)

    weights: (B, H, T, T), "blocks.1.attention.weights" of a run on repeated_tokens()   period: P   ->   (H,), 0 … 1

    Raises: ShapeError for weights that are not (B, H, T, T) with T > P.
    Source: Olsson et al. 2022, "prefix matching score".

    >>> model, params = induction_model(6, 8)
    >>> record = {}
    >>> logits = model(params, repeated_tokens(2, 4, 6, np.random.default_rng(0)), record=record)
    >>> [float(induction_score(record[f"blocks.{n}.attention.weights"], 4)[0]) for n in (0, 1)]
    [0.0, 1.0]
    """
    length = _length("induction_score", weights)
    if not 1 <= period < length:
        raise ShapeError(f"induction_score() needs more tokens than the period {period}, got {length}")
    here = np.arange(period, length)
    return weights[:, :, here, here - period + 1].mean(axis=(0, 2))


def previous_token_score(weights) -> np.ndarray:
    """How much each head looks at the token just before.

        score_h = mean over texts and i ≥ 1 of A_h[i, i − 1]                        (16.25)

    weights: (B, H, T, T)   ->   (H,), 0 … 1

    Raises: ShapeError for weights that are not (B, H, T, T) with T ≥ 2.
    Source: 004, circuits; Olsson et al. 2022.

    >>> previous_token_score(np.eye(3, k=-1)[None, None])
    array([1.])
    """
    length = _length("previous_token_score", weights)
    if length < 2:
        raise ShapeError("previous_token_score() needs at least two tokens")
    here = np.arange(1, length)
    return weights[:, :, here, here - 1].mean(axis=(0, 2))


def _length(name, weights):
    if weights.ndim != 4 or weights.shape[-1] != weights.shape[-2]:
        raise ShapeError(f"{name}() needs attention weights (B, H, T, T), got shape {weights.shape}")
    return weights.shape[-1]
