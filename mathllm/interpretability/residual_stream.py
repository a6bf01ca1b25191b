"""The residual stream as a sum: what each sublayer adds to it and to the logits, and the logit lens."""

import re

import numpy as np

from ..autodiff import ArrayLike
from ..transformer import Transformer
from ..vectors import token_ids


def residual_contributions(record: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Everything that was added to the residual stream, in the order in which it was added.

        x_L = x₀ + Σₗ (aₗ + fₗ)                                                     (16.2)

    a, f: the outputs of attention and feed-forward network
    record: of a run of a pre-norm model, `model(params, tokens, tap=record_to(record := {}))`
    ->   {"embeddings": (B, T, D), "blocks.0.attention": (B, T, D), "blocks.0.feed_forward": …}

    Raises: ValueError for a record without embeddings.
    Source: Elhage et al. 2021.

    >>> from mathllm.interpretability import induction_model
    >>> from mathllm.transformer import record_to
    >>> model, params = induction_model(4, 6)
    >>> logits = model(params, [[1, 2, 3, 1]], tap=record_to(record := {}))
    >>> list(residual_contributions(record))[:3]
    ['embeddings', 'blocks.0.attention', 'blocks.0.feed_forward']
    """
    embeddings = _embeddings("residual_contributions", record)
    outputs = [name for name in record if re.fullmatch(r"blocks\.\d+\.\w+\.output", name)]
    return {"embeddings": embeddings} | {name.removesuffix(".output"): record[name] for name in outputs}


def logit_attribution(
    model: Transformer, params: dict, record: dict[str, np.ndarray], tokens: ArrayLike | None = None
) -> dict[str, np.ndarray]:
    """Direct logit attribution: what each contribution to the residual stream adds to the logits.

        logits = Σ_k (center(c_k)/s ⊙ γ) U + β U,      s = √(σ² + ε) of the whole stream    (16.3)

    c_k: a contribution; center subtracts its mean (layer norm) or nothing (RMS norm, where σ² is the mean square); γ,
    β: gain and bias of the final norm; U: the unembedding. The sum over all entries is the logits, up to rounding. The
    divisor s depends on all contributions together and is held at its value; so an entry is not what would change
    without it.

    model, params, record: of one run of a pre-norm model   tokens: the n tokens to keep, or one; all V if not given
    ->   {"embeddings": (B, T, n), "blocks.0.attention": (B, T, n), …}, with "bias" for a layer norm

    Raises: ValueError for a post-norm model, whose stream is not a sum, or for tokens outside the vocabulary.

    >>> from mathllm.interpretability import induction_model
    >>> from mathllm.transformer import record_to
    >>> model, params = induction_model(4, 6)
    >>> logits = model(params, [[1, 2, 3, 1]], tap=record_to(record := {}))
    >>> parts = logit_attribution(model, params, record)
    >>> bool(np.allclose(sum(parts.values()), logits)), max(parts, key=lambda name: parts[name][0, -1, 2])
    (True, 'blocks.1.attention')
    """
    if model.config.norm_order != "pre" or "head" in params:
        raise ValueError("logit_attribution() needs a pre-norm model, whose logits are a sum once the scale is fixed")
    contributions, norm = residual_contributions(record), params["final_norm"]
    stream = _centred(model, sum(contributions.values()))
    square = np.mean(stream * stream, axis=-1, keepdims=True)
    factor = norm["gain"] / np.sqrt(square + model.config.norm_epsilon)
    few = params if tokens is None else _for_tokens(model, params, tokens)
    parts = {name: model.unembed(few, factor * _centred(model, x)) for name, x in contributions.items()}
    if "bias" in norm:
        parts["bias"] = np.broadcast_to(model.unembed(few, norm["bias"]), parts["embeddings"].shape)
    return parts


def logit_lens(model: Transformer, params: dict, record: dict[str, np.ndarray]) -> np.ndarray:
    """The logits if the model ended after each block: the final norm and the unembedding, applied early.

        zₗ = norm(xₗ) U,      l = 0 … L;      z_L = logits                          (16.1)

    model, params, record: of one run   ->   (L + 1, B, T, V); entry 0 reads the embeddings

    Raises: ValueError for a record without embeddings.
    Source: nostalgebraist 2020.

    >>> from mathllm.interpretability import induction_model
    >>> from mathllm.transformer import record_to
    >>> model, params = induction_model(4, 6)
    >>> logits = model(params, [[1, 2, 3, 1]], tap=record_to(record := {}))
    >>> logit_lens(model, params, record)[:, 0, -1].argmax(axis=-1)  # nothing is predicted before the last block
    array([0, 0, 2])
    """
    streams = [_embeddings("logit_lens", record)]
    streams += [record[f"blocks.{n}.output"] for n in range(model.config.layers)]
    if "final_norm" in params:
        streams = [model.norm(x, params["final_norm"]) for x in streams]
    return np.stack([model.unembed(params, x) for x in streams])


def _embeddings(name, record):
    if "embeddings" not in record:
        raise ValueError(f"{name}() needs the record of a run: model(params, tokens, tap=record_to(record := {{}}))")
    return record["embeddings"]


def _centred(model, x):
    return x if model.config.norm == "rms" else x - x.mean(axis=-1, keepdims=True)


def _for_tokens(model, params, tokens):
    """The parameters with an unembedding for these tokens alone."""
    tokens = np.atleast_1d(token_ids("logit_attribution", tokens, model.config.vocabulary))
    if model.config.tied:
        return params | {"embedding": params["embedding"][tokens]}
    return params | {"unembedding": params["unembedding"][:, tokens]}
