"""Let a small model guess ahead and the large one check all guesses at once: same distribution, fewer readings."""

from __future__ import annotations  # numpy.random is loaded when it is used

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ..errors import ShapeError
from ..probability import distribution, sample
from ..softmax import softmax
from .cache import KVCache
from .decoding import Reader
from .filters import greedy
from .generation import _check_choices, _check_lengths, reshape_logits


class Speculation(NamedTuple):
    """Tokens (1, T + n) with the prompt; how often the large model read; how many guesses it got and accepted."""

    tokens: np.ndarray
    readings: int
    drafted: int
    accepted: int


def acceptance_probability(target, draft) -> np.ndarray:
    """With which probability each token is accepted, if the draft proposes it.

        min(1, p(x) / q(x)),      and 1 where q(x) = 0, which is never proposed     (14.13)

    target: p, draft: q, both (..., V)   ->   (..., V)   The share accepted overall is Σₓ min(p, q).
    Source: Leviathan et al. 2023, §2.3; Chen et al. 2023.

    >>> acceptance_probability([0.5, 0.3, 0.2], [0.25, 0.6, 0.15])
    array([1. , 0.5, 1. ])
    """
    target, draft = np.asarray(target, float), np.asarray(draft, float)
    more = target >= draft
    return np.where(more, 1.0, target / np.where(more, 1.0, draft))


def residual_distribution(target, draft) -> np.ndarray:
    """What to draw from after a rejection: what the target has more than the draft.

        r(x) = max(p − q, 0) / Σ max(p − q, 0)                                      (14.14)

    Then q(x) min(1, p/q) + P(rejected) r(x) = min(p, q) + max(p − q, 0) = p(x): nobody can tell that there was a draft.
    target: p, draft: q, both (..., V)   ->   (..., V); p itself where p = q, when nothing is ever rejected
    Source: Leviathan et al. 2023, §2.3 and appendix A.1.

    >>> residual_distribution([0.5, 0.3, 0.2], [0.25, 0.6, 0.15]).round(3)
    array([0.833, 0.   , 0.167])
    """
    target, draft = np.asarray(target, float), np.asarray(draft, float)
    more = np.maximum(target - draft, 0)
    total = more.sum(axis=-1, keepdims=True)
    return np.where(total > 0, more / np.where(total > 0, total, 1), target)


def accept_drafts(drafted, draft, target, rng: np.random.Generator) -> tuple[np.ndarray, int]:
    """Accept guesses from the left up to the first rejection, and add one token that the target itself chooses.

    drafted: (g,) tokens   draft: (g, V) the distributions they were drawn from   target: (g + 1, V)
    ->   the tokens to append, one more than were accepted; and how many were accepted

    Raises: ShapeError if the sizes do not fit.
    Source: Leviathan et al. 2023, algorithm 1.

    >>> accept_drafts([1, 0], [[0.0, 1.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]], np.random.default_rng(0))
    (array([1, 1]), 1)
    """
    drafted, target = np.asarray(drafted, int), np.asarray(target)
    draft = np.asarray(draft).reshape(len(drafted), -1 if len(drafted) else target.shape[-1])
    if target.shape != (len(drafted) + 1, draft.shape[1]):
        raise ShapeError(
            f"accept_drafts() needs target ({len(drafted) + 1}, V) for draft {draft.shape}, got {target.shape}"
        )
    draft, target = distribution(draft, dtype=float), distribution(target, dtype=float)
    for place, token in enumerate(drafted):
        if rng.random() >= acceptance_probability(target[place], draft[place])[token]:
            instead = sample(residual_distribution(target[place], draft[place]), rng)
            return np.append(drafted[:place], instead), place
    return np.append(drafted, sample(target[-1], rng)), len(drafted)


def speculative_generate(
    model, params, draft_model, draft_params, tokens, *, max_new_tokens: int = 20, num_drafts: int = 4,
    temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None, min_p: float | None = None,
    eos_token_id: int | Sequence[int] | None = None, rng: np.random.Generator | None = None,
    streamer: Callable | None = None,
) -> Speculation:  # fmt: skip
    """Generate as `generate` would, reading with the large model once for up to `num_drafts` + 1 tokens.

    The tokens have exactly the distribution of the large model, reshaped by temperature and the filters; without `rng`
    they are its greedy tokens. A good draft only saves time. `streamer` is called with each new token.
    tokens: (1, T) int

    Raises: ShapeError for more than one prompt; ValueError for models of different vocabularies, fewer than one draft,
    and what `generate` refuses.
    Source: Leviathan et al. 2023; Chen et al. 2023.

    >>> from mathllm.transformer import Config, Transformer
    >>> model = Transformer(Config(vocabulary=10, width=8, layers=2, heads=2))
    >>> params = model.init(np.random.default_rng(0))
    >>> result = speculative_generate(model, params, model, params, [[1, 2]], max_new_tokens=10)
    >>> result.tokens.shape, result.readings, result.accepted  # a perfect draft: five tokens with each reading
    ((1, 12), 2, 8)
    """
    tokens = np.asarray(tokens)
    _check_models(model.config, draft_model.config, tokens, num_drafts)
    _check_choices(rng, temperature, top_k, top_p, min_p, 1, None)
    for config in (model.config, draft_model.config):
        _check_lengths(config, np.ones(tokens.shape, int), max_new_tokens, True, None)
        if config.outgrown_by(tokens.shape[1] + max_new_tokens):
            raise ValueError("speculative_generate() needs a cache, which these rotary positions outgrow here")

    def distributions(logits):
        if rng is None:
            return np.eye(logits.shape[-1])[greedy(logits)]  # all the mass on the best token
        return softmax(reshape_logits(logits, temperature, top_k, top_p, min_p))

    text, end = tokens[0].tolist(), tokens.shape[1] + max_new_tokens
    target = _Predictor(model, params, end, distributions)
    draft = _Predictor(draft_model, draft_params, end, distributions)
    chance = np.random.default_rng(0) if rng is None else rng  # greedy: every probability is 0 or 1
    ends = np.atleast_1d([] if eos_token_id is None else eos_token_id).tolist()
    readings = drafted = accepted = 0
    ended = False
    while len(text) < end and not ended:
        guesses = min(num_drafts, end - len(text) - 1)
        new, kept = _guess_and_check(target, draft, text, guesses, chance)
        readings, drafted, accepted = readings + 1, drafted + guesses, accepted + kept
        for token in _up_to_end(new, ends):
            text.append(token)
            if streamer is not None:
                streamer(token)
        ended = text[-1] in ends
    return Speculation(np.array([text]), readings, drafted, accepted)


class _Predictor:
    """A model that reads what it has not read of a text, and tells the distribution after each new token, (new, V)."""

    def __init__(self, model, params, capacity, distributions):
        cache = KVCache(model.config, 1, capacity, params["embedding"].dtype)
        self.read, self.distributions = Reader(model, params, cache), distributions

    def __call__(self, text):
        return self.distributions(self.read(np.array([text]))[0].astype(np.float64, copy=False))

    def forget(self, length):
        cache = self.read.cache
        cache.crop(min(cache.length, length))


def _guess_and_check(target, draft, text, guesses, rng):
    """One reading of the large model: what is appended to the text, and how many of the guesses were accepted."""
    drafted, guessed = [], []
    for _ in range(guesses):
        guessed.append(draft(text + drafted)[-1])
        drafted.append(int(sample(guessed[-1], rng)))
    new, accepted = accept_drafts(drafted, guessed, target(text + drafted)[-guesses - 1 :], rng)
    for model in (target, draft):  # what was read of rejected guesses
        model.forget(len(text) + accepted)
    return new.tolist(), accepted


def _up_to_end(tokens, ends):
    for place, token in enumerate(tokens):
        if token in ends:
            return tokens[: place + 1]
    return tokens


def _check_models(config, draft_config, tokens, num_drafts):
    if tokens.ndim != 2 or tokens.shape[0] != 1 or tokens.shape[1] == 0:
        raise ShapeError(f"speculative_generate() needs one prompt, tokens of shape (1, T), got {tokens.shape}")
    if config.vocabulary != draft_config.vocabulary or num_drafts < 1:
        raise ValueError(
            f"speculative_generate() needs models of one vocabulary and at least one draft, got vocabularies "
            f"{config.vocabulary} and {draft_config.vocabulary}, and {num_drafts} drafts"
        )
