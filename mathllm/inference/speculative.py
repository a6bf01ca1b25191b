"""A cheap draft proposes several tokens, the model checks them all at once: the same distribution in fewer passes."""

from __future__ import annotations  # NumPy loads its random numbers when they are used

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ..autodiff import ArrayLike
from ..errors import within
from ..probability import distribution, sample
from ..shapes import Contract, contract
from ..softmax import softmax
from ..transformer import Transformer
from ..vectors import one_hot, token_ids
from .cache import KVCache
from .filters import greedy
from .generation import _ends, _prompts, _uses_cache, reshape_logits, sampler


class Speculation(NamedTuple):
    """Tokens (1, T + n) with the prompt; how many passes the model made; how many tokens were drafted and accepted."""

    tokens: np.ndarray
    passes: int
    drafted: int
    accepted: int


@contract("... V, ... V -> ... V")
def acceptance_probability(target: ArrayLike, draft: ArrayLike) -> np.ndarray:
    """The probability with which a proposed token is accepted.

        min(1, p(x) / q(x)),      and 1 where q(x) = 0, which is never proposed     (14.18)

    target: p, draft: q. The fraction accepted overall is Σₓ min(p, q).
    Source: Leviathan et al. 2023, §2.3; Chen et al. 2023.

    >>> acceptance_probability([0.5, 0.3, 0.2], [0.25, 0.6, 0.15])
    array([1. , 0.5, 1. ])
    """
    dtype = np.result_type(target, draft, 1.0)
    target, draft = np.asarray(target, float), np.asarray(draft, float)
    more = target >= draft
    return np.where(more, 1.0, target / np.where(more, 1.0, draft)).astype(dtype)


@contract("... V, ... V -> ... V")
def residual_distribution(target: ArrayLike, draft: ArrayLike) -> np.ndarray:
    """The distribution to draw from after a rejection: the mass by which the target exceeds the draft.

        r(x) = max(p − q, 0) / Σ max(p − q, 0)                                      (14.19)

    Then q(x) min(1, p/q) + P(rejected) r(x) = min(p, q) + max(p − q, 0) = p(x): the draft does not change the result.
    target: p, draft: q   ->   p itself where p = q, when nothing is ever rejected
    Source: Leviathan et al. 2023, §2.3 and appendix A.1.

    >>> residual_distribution([0.5, 0.3, 0.2], [0.25, 0.6, 0.15]).round(3)
    array([0.833, 0.   , 0.167])
    """
    dtype = np.result_type(target, draft, 1.0)
    target, draft = np.asarray(target, float), np.asarray(draft, float)
    more = np.maximum(target - draft, 0)
    total = more.sum(axis=-1, keepdims=True)
    return np.where(total > 0, more / np.where(total > 0, total, 1), target).astype(dtype)


def accept_drafts(
    drafted: ArrayLike, draft: ArrayLike, target: ArrayLike, rng: np.random.Generator | int
) -> tuple[np.ndarray, int]:
    """Accept proposed tokens from the left up to the first rejection, and add one token from the target's distribution.

    drafted: (g,) tokens   draft: (g, V) the distributions they were drawn from   target: (g + 1, V)
    ->   the tokens to append, one more than were accepted; and how many were accepted

    Raises: ShapeError if the sizes do not fit; ValueError for tokens outside the vocabulary, and for numbers that are
    no distribution.
    Source: Leviathan et al. 2023, algorithm 1.

    >>> accept_drafts([1, 0], [[0.0, 1.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]], np.random.default_rng(0))
    (array([1, 1]), 1)
    """
    target = distribution(target, dtype=float)
    drafted = token_ids("accept_drafts", drafted, target.shape[-1])
    draft = distribution(draft, dtype=float) if len(drafted) else target[:0]
    needed = Contract(f"{len(drafted)} V, {len(drafted) + 1} V")
    needed.check("accept_drafts", ["draft", "target"], [draft, target], __name__)
    rng = np.random.default_rng(rng)
    for place, token in enumerate(drafted):
        if rng.random() >= acceptance_probability(target[place], draft[place])[token]:
            instead = sample(residual_distribution(target[place], draft[place]), rng)
            return np.append(drafted[:place], instead), place
    return np.append(drafted, sample(target[-1], rng)), len(drafted)


class ModelDraft:
    """Drafts of a smaller model: it generates the next tokens by itself.

    Raises: as `KVCache`; ShapeError for a text longer than learned positions allow.

    >>> from mathllm.transformer import Config
    >>> model = Transformer(Config(vocabulary=10, width=8, layers=2, heads=2))
    >>> draft = ModelDraft(model, model.init(np.random.default_rng(0)))
    >>> tokens, probabilities = draft(np.array([1, 2]), 3, softmax, np.random.default_rng(0))
    >>> tokens.shape, probabilities.shape
    ((3,), (3, 10))
    """

    def __init__(self, model: Transformer, params: dict):
        self.model, self.params, self.text = model, params, np.empty(0, int)
        self.cache = KVCache(model.config, 1, dtype=params["embedding"].dtype)

    def __call__(
        self, text: np.ndarray, count: int, distributions: Callable, rng: np.random.Generator | int
    ) -> tuple[np.ndarray, np.ndarray]:
        """`count` tokens that may follow the text, and the distributions (count, V) they were drawn from."""
        start, probabilities = len(text), np.empty((count, self.model.config.vocabulary))
        rng = np.random.default_rng(rng)
        for place in range(count):
            probabilities[place] = distributions(self._logits(text))
            text = np.append(text, sample(probabilities[place], rng))
        return text[start:], probabilities

    def _logits(self, text):
        """The logits after the text (V,); what the cache holds of another continuation is dropped."""
        known = min(self.cache.length, len(text) - 1)
        different = np.flatnonzero(self.text[:known] != text[:known])
        self.cache.crop(int(different[0]) if len(different) else known)
        if len(text) > self.cache.capacity:  # rotary positions go on beyond the context
            self.cache = KVCache(self.model.config, 1, 2 * len(text), self.cache.keys.dtype)
        self.text = text
        new = text[None, self.cache.length :]
        return self.model.last_logits(self.params, new, cache=self.cache)[0, 0]


class PromptLookup:
    """Drafts without a model: the tokens that followed the latest earlier occurrence of the text's last n tokens.

    Copies, code, and answers that repeat parts of a prompt are drafted well. Where the last n tokens have not occurred
    before, nothing is drafted.

    length: n. A pass of the model over several tokens takes longer than over one, so rejected drafts cost time. A large
    n makes few wrong drafts: with 8, SmolLM2 copies from its prompt 1.8 times as fast and writes ordinary prose as fast
    as without drafts (benchmarks/README.md).
    Source: Saxena 2023, "Prompt lookup decoding".

    >>> tokens, _ = PromptLookup(2)(np.array([5, 6, 7, 8, 5, 6]), 3, softmax)
    >>> tokens
    array([7, 8, 5])
    """

    def __init__(self, length: int = 8):
        within("PromptLookup", "whole [1, ∞)", length=length)
        self.length = length

    def __call__(
        self, text: np.ndarray, count: int, distributions: Callable, rng: np.random.Generator | int | None = None
    ) -> tuple[np.ndarray, None]:
        """Up to `count` tokens; None means that each was proposed with probability 1."""
        n = self.length
        if len(text) <= n:
            return text[:0], None
        earlier = np.lib.stride_tricks.sliding_window_view(text, n)[:-1]
        places = np.flatnonzero((earlier == text[-n:]).all(axis=1))
        start = places[-1] + n if len(places) else len(text)
        return text[start : start + count], None


def speculative_generate(
    model: Transformer, params: dict, tokens: ArrayLike, draft: Callable, *,
    max_new_tokens: int = 20, num_drafts: int = 4, eos_token_id: int | Sequence[int] | None = None,
    rng: np.random.Generator | int | None = None, temperature: float = 1.0, top_k: int | None = None,
    top_p: float | None = None, min_p: float | None = None,
) -> Speculation:  # fmt: skip
    """Generate as `generate` would, with one pass of the model for up to `num_drafts` + 1 tokens.

    The tokens have exactly the distribution of the model, reshaped by temperature, top_k, top_p and min_p; without
    `rng` they are its greedy tokens. A good draft only saves time.
    tokens: (1, T) int   draft: a `ModelDraft` or `PromptLookup`, called with the text, the number of tokens, the
    function from logits to distributions, and `rng`

    Raises: ShapeError for more than one prompt; ValueError for a draft of another vocabulary, fewer than one draft, and
    what `generate` refuses.
    Source: Leviathan et al. 2023; Chen et al. 2023.

    >>> from mathllm.transformer import Config
    >>> model = Transformer(Config(vocabulary=10, width=8, layers=2, heads=2))
    >>> params = model.init(np.random.default_rng(0))
    >>> result = speculative_generate(model, params, [[1, 2]], ModelDraft(model, params), max_new_tokens=10)
    >>> result.tokens.shape, result.passes, result.accepted  # a perfect draft: five tokens with each pass
    ((1, 12), 2, 8)
    """
    tokens, marks = _prompts(model.config, tokens)
    Contract("1 T").check("speculative_generate", ["tokens"], [tokens])
    within("speculative_generate", "whole [1, ∞)", num_drafts=num_drafts)
    reshaping = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p}
    sampler(rng, **reshaping)  # refuses what does not fit together
    chance = np.random.default_rng(0 if rng is None else rng)  # greedy: every probability is 0 or 1
    _uses_cache(model.config, marks, max_new_tokens, needing="speculative_generate()")

    def distributions(logits):
        logits = logits.astype(np.float64, copy=False)
        if rng is None:
            return one_hot(greedy(logits), logits.shape[-1])
        return softmax(reshape_logits(logits, **reshaping))

    def accept(guesses, proposed, logits):
        if rng is None:
            return _accept_greedy(guesses, proposed, logits)
        proposed = one_hot(guesses, logits.shape[-1]) if proposed is None else proposed
        return accept_drafts(guesses, proposed, distributions(logits), chance)

    text, end, ends = tokens[0], tokens.shape[1] + max_new_tokens, _ends(eos_token_id, None)[0]
    cache = KVCache(model.config, 1, end, params["embedding"].dtype)
    passes = drafted = accepted = 0
    while len(text) < end and not (passes and text[-1] in ends):
        guesses, proposed = draft(text, min(num_drafts, end - len(text) - 1), distributions, chance)
        new = np.append(text, guesses)[None, cache.length :]
        logits = model.last_logits(params, new, count=len(guesses) + 1, cache=cache)[0]
        chosen, kept = accept(guesses, proposed, logits)
        cache.crop(len(text) + kept)
        first_end = np.flatnonzero(np.isin(chosen, ends))[:1]
        text = np.append(text, chosen[: first_end[0] + 1] if first_end.size else chosen)
        passes, drafted, accepted = passes + 1, drafted + len(guesses), accepted + kept
    return Speculation(text[None], passes, drafted, accepted)


def _accept_greedy(drafted, draft, logits):
    """`accept_drafts` without chance, from logits (g + 1, V): a token is accepted where it is the most probable one."""
    Contract(f"{len(drafted)} {logits.shape[-1]}").check("speculative_generate", ["draft probabilities"], [draft])
    best = greedy(logits)
    kept = int(np.argmin(np.append(drafted == best[:-1], False)))
    return best[: kept + 1], kept
