"""The stream is a sum, and the logits are almost linear in it: ask each summand what it adds."""

import numpy as np

from ..errors import ShapeError

_PARTS = ("attention", "cross_attention", "feed_forward")


def residual_writes(record) -> dict[str, np.ndarray]:
    """Everything that was added to the residual stream, in the order in which it was written.

        x_L = x₀ + Σₗ (attentionₗ + feed-forwardₗ)                                  (16.1)

    record: of a run of a pre-norm model, `model(params, tokens, record=record)`
    ->   {"embeddings": (B, T, D), "blocks.0.attention": (B, T, D), "blocks.0.feed_forward": …}

    Raises: ValueError for a record without embeddings.
    Source: 004, the residual stream view; 001, §8.3; Elhage et al. 2021.

    >>> from mathllm.interpretability import induction_model
    >>> model, params = induction_model(4, 6)
    >>> record = {}
    >>> logits = model(params, [[1, 2, 3, 1]], record=record)
    >>> list(residual_writes(record))[:3]
    ['embeddings', 'blocks.0.attention', 'blocks.0.feed_forward']
    """
    if "embeddings" not in record:
        raise ValueError("residual_writes() needs the record of a run: model(params, tokens, record=record)")
    writes, number = {"embeddings": record["embeddings"]}, 0
    while f"blocks.{number}.output" in record:
        for part in _PARTS:
            if (name := f"blocks.{number}.{part}") + ".output" in record:
                writes[name] = record[f"{name}.output"]
        number += 1
    return writes


def logit_attribution(model, params, record, tokens=None) -> dict[str, np.ndarray]:
    """What each write into the stream adds to the logits, with the scale of the final norm held at its value.

        logits = Σ_w (s · c(w) ∘ γ) U + β U,      s = 1/√(σ² + ε) of the whole stream    (16.2)

    c takes the mean out (layer norm) or nothing (RMS norm, where s is 1 over the root mean square); γ, β: gain and bias
    of the final norm; U: the unembedding. The sum over all entries is the logits, up to rounding only; that s depends
    on all writes together is what keeps an entry from being the effect of a write.

    model, params, record: of one run of a pre-norm model   tokens: the n tokens to keep, all V if not given
    ->   {"embeddings": (B, T, n), "blocks.0.attention": (B, T, n), …}, with "bias" for a layer norm

    Raises: ValueError for a post-norm model, whose stream is not a sum; IndexError for tokens outside the vocabulary.
    Source: 004, the residual stream view; 001, §8.3.

    >>> from mathllm.interpretability import induction_model
    >>> model, params = induction_model(4, 6)
    >>> record = {}
    >>> logits = model(params, [[1, 2, 3, 1]], record=record)
    >>> parts = logit_attribution(model, params, record)
    >>> bool(np.allclose(sum(parts.values()), logits)), max(parts, key=lambda name: parts[name][0, -1, 2])
    (True, 'blocks.1.attention')
    """
    if model.config.norm_order != "pre":
        raise ValueError("logit_attribution() needs a pre-norm model: after a norm, the stream is not a sum any more")
    norm = params["final_norm"]
    unembedding = _unembedding(params) if tokens is None else _unembedding(params)[:, np.asarray(tokens)]
    writes = residual_writes(record)
    stream = sum(writes.values())
    centred = _centred(stream, model.config.norm)
    square = np.mean(centred * centred, axis=-1, keepdims=True)
    scale = 1 / np.sqrt(square + stream.dtype.type(model.config.norm_epsilon))
    parts = {
        name: (scale * _centred(write, model.config.norm) * norm["gain"]) @ unembedding
        for name, write in writes.items()
    }
    if "bias" in norm:
        parts["bias"] = np.broadcast_to(norm["bias"] @ unembedding, parts["embeddings"].shape)
    return parts


def logit_lens(model, params, record) -> np.ndarray:
    """What the model would say if it ended after each block: the final norm and the unembedding, applied early.

        lensₗ = norm(xₗ) U,      l = 0 … L;   lens_L = logits                       (16.3)

    model, params, record: of one run   ->   (L + 1, B, T, V); entry 0 reads the embeddings

    Source: 004, the residual stream view; nostalgebraist 2020.

    >>> from mathllm.interpretability import induction_model
    >>> model, params = induction_model(4, 6)
    >>> record = {}
    >>> logits = model(params, [[1, 2, 3, 1]], record=record)
    >>> logit_lens(model, params, record)[:, 0, -1].argmax(axis=-1)  # nothing is known before the last block
    array([0, 0, 2])
    """
    if "embeddings" not in record:
        raise ValueError("logit_lens() needs the record of a run: model(params, tokens, record=record)")
    streams = [record["embeddings"]] + [record[f"blocks.{n}.output"] for n in range(model.config.layers)]
    if "final_norm" in params:
        streams = [model._norm(x, params["final_norm"]) for x in streams]
    return np.stack([model._unembed(params, x) for x in streams])


def _unembedding(params):
    return params["unembedding"] if "unembedding" in params else params["embedding"].T


def _centred(x, norm):
    if x.ndim != 3:
        raise ShapeError(f"the residual stream needs shape (B, T, D), got {x.shape}")
    return x if norm == "rms" else x - x.mean(axis=-1, keepdims=True)
