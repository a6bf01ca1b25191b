"""Token after token: compute the logits of the next one, choose it, append it, and stop at the end."""

from __future__ import annotations  # NumPy loads its random numbers when they are used

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..attention import padding_mask
from ..autodiff import ArrayLike
from ..errors import ShapeError, within
from ..shapes import Contract, real_array
from ..softmax import log_softmax
from ..transformer import Transformer
from ..vectors import token_ids
from .beam import beam_search
from .cache import KVCache
from .filters import apply_temperature, greedy, keep_min_p, keep_top_k, keep_top_p, penalize_repetition, sample_token


def left_pad(prompts: Sequence, pad_token_id: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Prompts of different lengths in one array, aligned at their ends, where generation continues.

    prompts: B sequences of token ids   ->   tokens (B, T), attention_mask (B, T) with 0 for padding

    Raises: ValueError for no prompt, or an empty one; TypeError for ids that are not integers.

    >>> left_pad([[5, 6, 7], [8]])
    (array([[5, 6, 7],
           [0, 0, 8]]), array([[1, 1, 1],
           [0, 0, 1]]))
    """
    prompts = [np.asarray(prompt) for prompt in prompts]
    if not prompts or any(prompt.ndim != 1 or prompt.size == 0 for prompt in prompts):
        raise ValueError("left_pad() needs at least one prompt, and in each at least one token")
    if wrong := [prompt.dtype for prompt in prompts if prompt.dtype.kind not in "iu"]:
        raise TypeError(f"left_pad() needs integer token ids, got {wrong[0]} values")
    lengths = np.array([len(prompt) for prompt in prompts])
    mask = np.arange(-lengths.max(), 0) >= -lengths[:, None]
    tokens = np.full(mask.shape, pad_token_id)
    tokens[mask] = np.concatenate(prompts)
    return tokens, mask.astype(int)


_UNCHANGED = {"temperature": 1.0, "top_k": None, "top_p": None, "min_p": None}


def reshape_logits(
    logits: ArrayLike, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None,
    min_p: float | None = None,
) -> np.ndarray:  # fmt: skip
    """Temperature, then top-k, top-p and min-p, each if it is given: the order of transformers.

    logits: (..., V)   ->   (..., V)   Raises: as the four do.

    >>> reshape_logits([2.0, 1.0, 0.5], temperature=0.5, top_k=2)
    array([  4.,   2., -inf])
    """
    logits = apply_temperature(logits, temperature)
    for keep, amount in ((keep_top_k, top_k), (keep_top_p, top_p), (keep_min_p, min_p)):
        logits = logits if amount is None else keep(logits, amount)
    return logits


def sampler(
    rng: np.random.Generator | int | None = None, *, temperature: float = 1.0, top_k: int | None = None,
    top_p: float | None = None, min_p: float | None = None, repetition_penalty: float = 1.0,
    logits_processor: Callable | None = None,
) -> Callable:  # fmt: skip
    """How the next token is chosen: a function (logits, tokens, attention_mask) -> tokens (B,).

    Without `rng` it is the most probable token (greedy decoding). With it the token is drawn, after `temperature`,
    `top_k`, `top_p` and `min_p` in this order. In both cases `repetition_penalty` and then
    `logits_processor(tokens, logits)` change the logits before.

    Raises: ValueError for options of sampling without `rng`, and what `reshape_logits` refuses, as temperature 0.

    >>> choose = sampler()
    >>> choose(np.array([[2.0, 1.0, 0.5]]), np.array([[0]]), np.array([[1]]))
    array([0])
    """
    reshaping = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p}
    if rng is not None:
        rng = np.random.default_rng(rng)
        reshape_logits([0.0], **reshaping)  # refuses now what it would refuse after the first pass
    elif reshaping != _UNCHANGED:
        raise ValueError(
            "temperature, top_k, top_p and min_p are for sampling: give rng=0 or another seed, "
            "or for greedy decoding leave them out"
        )

    def choose(logits, tokens, attention_mask):
        logits = _changed(logits, tokens, attention_mask, repetition_penalty, logits_processor)
        return greedy(logits) if rng is None else sample_token(reshape_logits(logits, **reshaping), rng)

    return choose


def _changed(logits, tokens, attention_mask, repetition_penalty, logits_processor):
    """The logits after the penalty for repetitions and the processor, if there are any."""
    if repetition_penalty != 1:
        logits = penalize_repetition(logits, tokens, repetition_penalty, attention_mask)
    return logits if logits_processor is None else logits_processor(tokens, logits)


def continuation(
    model: Transformer, params: dict, tokens: ArrayLike, choose: Callable | None = None, *,
    attention_mask: ArrayLike | None = None, max_new_tokens: int | None = None,
    eos_token_id: int | Sequence[int] | None = None, pad_token_id: int | None = None, use_cache: bool = True,
    window: int | None = None, num_return_sequences: int = 1, source: ArrayLike | None = None,
    source_mask: ArrayLike | None = None,
) -> Iterator[np.ndarray]:  # fmt: skip
    """Yields the next token of each prompt, (B,), then the one after it, and so on.

        x_(t+1) ~ P(· | x₁, …, xₜ), appended, until an end token or a limit is reached

    tokens: (B, T) int   choose: of `sampler`, greedy if not given   attention_mask: (B, T), 0 for padding, on the left

    It ends after `max_new_tokens` (the rest of the context, if not given), or when every row has had one of
    `eos_token_id`; a row that has ended yields `pad_token_id` (the end token, if not given). `use_cache=False` computes
    everything again for each token: the same result with more work. `window` lets each token attend only to so many
    (see `KVCache`). `num_return_sequences` continues each prompt so many times, and reads it once. `source` and
    `source_mask`: the text for a model with an encoder.

    Raises: ValueError for padding on the right; ShapeError for more tokens than learned positions allow.

    >>> from mathllm.transformer import Config
    >>> model = Transformer(Config(vocabulary=10, width=8, layers=2, heads=2))
    >>> params = model.init(np.random.default_rng(0))
    >>> for token in continuation(model, params, [[1, 2]], max_new_tokens=3):
    ...     print(token)
    [5]
    [5]
    [5]
    """
    tokens, marks = _prompts(model.config, tokens, attention_mask)
    limit = model.config.context - tokens.shape[1] if max_new_tokens is None else max_new_tokens
    cache, cached = None, _uses_cache(model.config, marks, limit, use_cache, "" if window is None else "window")
    if cached and len(tokens):
        cache = KVCache(model.config, len(tokens), tokens.shape[1] + limit, params["embedding"].dtype, window)
    read = _Reader(model, params, _given(source=source, source_mask=source_mask), cache)
    ends = _ends(eos_token_id, pad_token_id)
    return _continued(read, tokens, marks, choose or sampler(), limit, num_return_sequences, *ends)


def generate(
    model: Transformer, params: dict, tokens: ArrayLike, *,
    max_new_tokens: int = 20, rng: np.random.Generator | int | None = None, num_return_sequences: int = 1,
    **options: Any,
) -> np.ndarray:  # fmt: skip
    """Continue each prompt, with the arguments of transformers' `generate`: greedy without `rng`, else by sampling.

    tokens: (B, T) int   options: those of `sampler` (temperature, top_k, top_p, min_p …) and of `continuation`
    (attention_mask, eos_token_id …)   ->   the prompts and what follows, (B·num_return_sequences, T + n),
    n ≤ max_new_tokens

    To see each token as it is chosen, write `for token in continuation(…)`. `num_beams` above 1 searches with beams:
    see `generate_with_beams`.
    Raises: as `sampler` and `continuation`; ValueError for beams with options of sampling.

    >>> from mathllm.transformer import Config
    >>> model = Transformer(Config(vocabulary=10, width=8, layers=2, heads=2))
    >>> params = model.init(np.random.default_rng(0))
    >>> generate(model, params, [[1, 2], [3, 4]], max_new_tokens=3, top_k=5, rng=np.random.default_rng(0)).shape
    (2, 5)
    """
    beams, options = options.pop("num_beams", 1), options | {"max_new_tokens": max_new_tokens}
    reshaping = {name: options.pop(name) for name in _UNCHANGED if name in options}
    if beams != 1:
        if (_UNCHANGED | reshaping, rng, num_return_sequences) != (_UNCHANGED, None, 1):
            raise ValueError("beam search draws nothing: no rng, no options of sampling, one sequence for each prompt")
        return generate_with_beams(model, params, tokens, num_beams=beams, **options)
    changing = {name: options.pop(name) for name in ("repetition_penalty", "logits_processor") if name in options}
    choose = sampler(rng, **reshaping, **changing)
    columns = continuation(model, params, tokens, choose, num_return_sequences=num_return_sequences, **options)
    return np.column_stack([np.repeat(np.asarray(tokens, np.int64), num_return_sequences, axis=0), *columns])


def generate_with_beams(
    model: Transformer, params: dict, tokens: ArrayLike, *,
    num_beams: int, max_new_tokens: int = 20, length_penalty: float = 1.0,
    eos_token_id: int | Sequence[int] | None = None, pad_token_id: int | None = None,
    attention_mask: ArrayLike | None = None, repetition_penalty: float = 1.0,
    logits_processor: Callable | None = None, use_cache: bool = True, source: ArrayLike | None = None,
    source_mask: ArrayLike | None = None,
) -> np.ndarray:  # fmt: skip
    """Continue each prompt with the best continuation that `beam_search` finds for it.

    tokens: (B, T) int   ->   (B, T + n), shorter ones padded at the end

    Raises: as `beam_search` and `continuation`.
    Source: Wu et al. 2016, §7.

    >>> from mathllm.transformer import Config
    >>> model = Transformer(Config(vocabulary=10, width=8, layers=2, heads=2))
    >>> generate_with_beams(model, model.init(np.random.default_rng(0)), [[1, 2]], num_beams=2, max_new_tokens=3).shape
    (1, 5)
    """
    tokens, marks = _prompts(model.config, tokens, attention_mask)
    cached = _uses_cache(model.config, marks, max_new_tokens, use_cache)
    (ends, pad), capacity = _ends(eos_token_id, pad_token_id), tokens.shape[1] + max_new_tokens
    given = _given(source=source, source_mask=source_mask)

    def best_continuation(row):
        prompt = tokens[row : row + 1, marks[row]]
        cache = KVCache(model.config, 1, capacity, params["embedding"].dtype) if cached else None
        read = _Reader(model, params, _rows(given, [row]), cache)

        def next_log_probabilities(continuations, parents):
            read.select(parents)
            text = np.hstack([np.repeat(prompt, len(continuations), axis=0), continuations])
            logits = log_softmax(read(text, None).astype(np.float64, copy=False))
            return _changed(logits, text, None, repetition_penalty, logits_processor)

        options = {"num_beams": num_beams, "max_new_tokens": max_new_tokens, "length_penalty": length_penalty}
        return beam_search(next_log_probabilities, eos_token_id=tuple(ends.tolist()), **options)[0].tokens

    best = [best_continuation(row) for row in range(len(tokens))]
    longest = max(map(len, best), default=0)
    padded = [[*row, *[pad] * (longest - len(row))] for row in best]
    return np.hstack([tokens, np.array(padded, int).reshape(len(tokens), longest)])


def _continued(read, tokens, marks, choose, limit, copies, ends, pad):
    done = np.zeros(len(tokens) * copies, bool)
    for number in range(limit if len(tokens) else 0):
        logits = read(tokens, marks)  # (B, V)
        if number == 0 and copies > 1:  # every prompt has several continuations after the first pass
            rows = np.repeat(np.arange(len(tokens)), copies)
            tokens, marks, logits = tokens[rows], marks[rows], logits[rows]
            read.select(rows)
        new = np.where(done, pad, choose(logits, tokens, marks))
        tokens, marks = np.column_stack([tokens, new]), np.column_stack([marks, ~done])
        yield new
        done = done | np.isin(new, ends)
        if done.all():
            return


class _Reader:
    """Reads texts: their tokens that the cache does not hold yet, in pieces no longer than its window."""

    def __init__(self, model, params, source, cache):
        self.model, self.params, self.source, self.cache = model, params, source, cache

    def __call__(self, tokens, marks):
        """Logits after the last token of each text, (B, V)."""
        start, length = 0 if self.cache is None else self.cache.length, tokens.shape[1]
        piece = length if self.cache is None or self.cache.window is None else self.cache.window
        padded = marks is not None and not np.all(marks)
        for first in range(start, length, piece):
            part = slice(first, first + piece)
            options = {"attention_mask": marks[:, part] if padded else None, "cache": self.cache, **self.source}
            logits = self.model.last_logits(self.params, tokens[:, part], **options)
        return logits[:, 0]

    def select(self, rows):
        """Go on with these texts, each of which may occur several times."""
        self.source = _rows(self.source, rows)
        if self.cache is not None:
            self.cache.select(rows)


def _given(**arrays):
    return {name: np.asarray(array) for name, array in arrays.items() if array is not None}


def _rows(arrays, rows):
    return {name: array[rows] for name, array in arrays.items()}


def _ends(eos_token_id, pad_token_id):
    """The end tokens, and the token of a row that has ended."""
    ends = token_ids("generate", np.atleast_1d([] if eos_token_id is None else eos_token_id))
    padding = ends[:1] if pad_token_id is None else token_ids("generate", [pad_token_id])
    return ends, int(padding[0]) if padding.size else 0


def _prompts(config, tokens, attention_mask=None):
    """The tokens, and True for each that is no padding."""
    try:
        tokens, marks = real_array("generate", tokens), None
        if attention_mask is not None:
            marks = padding_mask(attention_mask)[:, 0, 0]
        Contract("B T+, B T").check("generate", ["tokens", "attention_mask"], [tokens, marks])
    except ShapeError as error:
        raise ShapeError(f"{error}; left_pad() aligns prompts of different lengths") from None
    marks = np.ones(tokens.shape, bool) if marks is None else marks
    if np.any(marks[:, :-1] & ~marks[:, 1:]) or not np.all(marks[:, -1]):
        raise ValueError("generate() continues at the end of the text: padding must stand on the left, see left_pad()")
    return token_ids("generate", tokens, config.vocabulary).astype(np.int64, copy=False), marks


def _uses_cache(config, marks, limit, use_cache=True, needing=""):
    """Whether a cache is used: not by rotary positions that change all keys of so long a text.

    needing: what cannot do without one
    """
    within("generate", "whole [0, ∞)", max_new_tokens=limit)
    needed = int(marks.sum(axis=1).max(initial=0)) + limit - 1  # the last token is not read again
    if config.positions == "learned" and limit and needed > config.context:
        raise ShapeError(f"the context is {config.context} tokens, but a prompt and max_new_tokens need {needed}")
    cached = use_cache and not config.outgrown_by(marks.shape[1] + limit)
    if needing and not cached:
        reason = "these rotary positions change all keys of so long a text" if use_cache else "give use_cache=True"
        raise ValueError(f"no {needing} without a cache: {reason}")
    return cached
