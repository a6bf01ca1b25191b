"""Token after token: compute the logits of the next one, choose it, append it, and stop at the end."""

from __future__ import annotations  # NumPy loads its random numbers when they are used

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..attention import padding_mask
from ..autodiff import ArrayLike
from ..errors import ShapeError, within
from ..softmax import log_softmax
from ..transformer import Transformer
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
    length = max(map(len, prompts))
    tokens = np.full((len(prompts), length), pad_token_id)
    mask = np.zeros((len(prompts), length), int)
    for row, prompt in enumerate(prompts):
        tokens[row, length - len(prompt) :] = prompt
        mask[row, length - len(prompt) :] = 1
    return tokens, mask


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
    rng: np.random.Generator | None = None, *, temperature: float = 1.0, top_k: int | None = None,
    top_p: float | None = None, min_p: float | None = None, repetition_penalty: float = 1.0,
    logits_processor: Callable | None = None,
) -> Callable:  # fmt: skip
    """How the next token is chosen: a function (logits, tokens, attention_mask) -> tokens (B,).

    Without `rng` it is the most probable token (greedy decoding). With it the token is drawn, after `temperature`,
    `top_k`, `top_p` and `min_p` in this order. In both cases `repetition_penalty` and then
    `logits_processor(tokens, logits)` change the logits before.

    Raises: ValueError for a temperature of 0, which means greedy decoding, and for options of sampling without `rng`.

    >>> choose = sampler()
    >>> choose(np.array([[2.0, 1.0, 0.5]]), np.array([[0]]), np.array([[1]]))
    array([0])
    """
    reshaping = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p}
    if temperature == 0:
        raise ValueError("temperature 0 divides by zero: for greedy decoding leave out temperature and rng")
    if rng is None and reshaping != {"temperature": 1.0, "top_k": None, "top_p": None, "min_p": None}:
        raise ValueError(
            "temperature, top_k, top_p and min_p are for sampling: give rng=np.random.default_rng(seed), "
            "or leave them out for greedy decoding"
        )

    def choose(logits, tokens, attention_mask):
        if repetition_penalty != 1:
            logits = penalize_repetition(logits, tokens, repetition_penalty, attention_mask)
        if logits_processor is not None:
            logits = logits_processor(tokens, logits)
        return greedy(logits) if rng is None else sample_token(reshape_logits(logits, **reshaping), rng)

    return choose


def continuation(
    model: Transformer, params: dict, tokens: ArrayLike, choose: Callable | None = None, *,
    attention_mask: ArrayLike | None = None, max_new_tokens: int | None = None,
    eos_token_id: int | Sequence[int] | None = None, pad_token_id: int | None = None, use_cache: bool = True,
    window: int | None = None, num_return_sequences: int = 1, **source: ArrayLike,
) -> Iterator[np.ndarray]:  # fmt: skip
    """Yields the next token of each prompt, (B,), then the one after it, and so on.

        x_(t+1) ~ P(· | x₁, …, xₜ), appended, until an end token or a limit is reached

    tokens: (B, T) int   choose: of `sampler`, greedy if not given   attention_mask: (B, T), 0 for padding, on the left

    It ends after `max_new_tokens` (the rest of the context, if not given), or when every row has had one of
    `eos_token_id`; a row that has ended yields `pad_token_id` (the end token, if not given). `use_cache=False` computes
    everything again for each token: the same result with more work. `window` lets each token attend only to so many
    (see `KVCache`). `num_return_sequences` continues each prompt so many times, and reads it once. `source` and
    `source_mask`: the text for a model with an encoder.

    Raises: ValueError for padding on the right; ShapeError for more tokens than the model's context.

    >>> from mathllm.transformer import Config
    >>> model = Transformer(Config(vocabulary=10, width=8, layers=2, heads=2))
    >>> params = model.init(np.random.default_rng(0))
    >>> for token in continuation(model, params, [[1, 2]], max_new_tokens=3):
    ...     print(token)
    [5]
    [5]
    [5]
    """
    tokens, marks = _checked_prompts(tokens, attention_mask)
    limit = model.config.context - tokens.shape[1] if max_new_tokens is None else max_new_tokens
    use_cache = _checked_lengths(model.config, marks, limit, use_cache, window)
    capacity, cache = tokens.shape[1] + limit, None
    if use_cache and len(tokens):
        cache = KVCache(model.config, len(tokens), capacity, params["embedding"].dtype, window)
    ends = _ends(eos_token_id, pad_token_id)
    return _continued(
        model, params, tokens, marks, choose or sampler(), limit, cache, num_return_sequences, source, *ends
    )


def generate(
    model: Transformer, params: dict, tokens: ArrayLike, *,
    max_new_tokens: int = 20, rng: np.random.Generator | None = None, temperature: float = 1.0,
    top_k: int | None = None, top_p: float | None = None, eos_token_id: int | Sequence[int] | None = None,
    attention_mask: ArrayLike | None = None, num_return_sequences: int = 1, **options: Any,
) -> np.ndarray:  # fmt: skip
    """Continue each prompt, with the arguments of transformers' `generate`: greedy without `rng`, else by sampling.

    tokens: (B, T) int   attention_mask: (B, T), 0 for padding, on the left   options: those of `sampler` and of
    `continuation`   ->   the prompts and what follows, (B·num_return_sequences, T + n), n ≤ max_new_tokens

    To see each token as it is chosen, write `for token in continuation(…)`. `num_beams` above 1 searches with beams:
    see `generate_with_beams`.
    Raises: as `sampler` and `continuation`; ValueError for beams with options of sampling.

    >>> from mathllm.transformer import Config
    >>> model = Transformer(Config(vocabulary=10, width=8, layers=2, heads=2))
    >>> params = model.init(np.random.default_rng(0))
    >>> generate(model, params, [[1, 2], [3, 4]], max_new_tokens=3, top_k=5, rng=np.random.default_rng(0)).shape
    (2, 5)
    """
    options |= {"attention_mask": attention_mask, "max_new_tokens": max_new_tokens, "eos_token_id": eos_token_id}
    if options.setdefault("num_beams", 1) != 1:
        if (rng, temperature, top_k, top_p, num_return_sequences) != (None, 1.0, None, None, 1):
            raise ValueError("beam search draws nothing: no rng, no options of sampling, one sequence for each prompt")
        return generate_with_beams(model, params, tokens, **options)
    del options["num_beams"]
    more = {name: options.pop(name) for name in ("min_p", "repetition_penalty", "logits_processor") if name in options}
    choose = sampler(rng, temperature=temperature, top_k=top_k, top_p=top_p, **more)
    columns = continuation(model, params, tokens, choose, num_return_sequences=num_return_sequences, **options)
    return np.column_stack([np.repeat(np.asarray(tokens), num_return_sequences, axis=0), *columns])


def generate_with_beams(
    model: Transformer, params: dict, tokens: ArrayLike, *,
    num_beams: int, max_new_tokens: int = 20, length_penalty: float = 1.0,
    eos_token_id: int | Sequence[int] | None = None, pad_token_id: int | None = None,
    attention_mask: ArrayLike | None = None, repetition_penalty: float = 1.0,
    logits_processor: Callable | None = None, use_cache: bool = True, **source: ArrayLike,
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
    tokens, marks = _checked_prompts(tokens, attention_mask)
    use_cache = _checked_lengths(model.config, marks, max_new_tokens, use_cache, None)
    ends, pad = _ends(eos_token_id, pad_token_id)

    def reader(prompt, source):
        capacity = prompt.shape[1] + max_new_tokens
        cache = KVCache(model.config, 1, capacity, params["embedding"].dtype) if use_cache else None

        def next_log_probabilities(continuations, parents):
            text = np.hstack([np.repeat(prompt, len(continuations), axis=0), continuations])
            sources = {name: np.repeat(value, len(continuations), axis=0) for name, value in source.items()}
            if cache is not None:
                cache.select(parents)
            logits = log_softmax(_read(model, params, text, None, cache, sources).astype(np.float64, copy=False))
            if repetition_penalty != 1:
                logits = penalize_repetition(logits, text, repetition_penalty)
            return logits if logits_processor is None else logits_processor(text, logits)

        return next_log_probabilities

    best = []
    for row in range(len(tokens)):
        sources = {name: np.asarray(value)[row : row + 1] for name, value in source.items() if value is not None}
        read = reader(tokens[row : row + 1, marks[row] == 1], sources)
        options = {"num_beams": num_beams, "max_new_tokens": max_new_tokens, "length_penalty": length_penalty}
        best.append(beam_search(read, eos_token_id=tuple(ends.tolist()), **options)[0].tokens)
    longest = max(map(len, best), default=0)
    padded = [[*row, *[pad] * (longest - len(row))] for row in best]
    return np.hstack([tokens, np.array(padded, int).reshape(len(tokens), longest)])


def _continued(model, params, tokens, marks, choose, limit, cache, copies, source, ends, pad):
    done = np.zeros(len(tokens) * copies, bool)
    for number in range(limit if len(tokens) else 0):
        logits = _read(model, params, tokens, marks, cache, source)  # (B, V)
        if number == 0 and copies > 1:  # from here on every prompt has several continuations
            rows = np.repeat(np.arange(len(tokens)), copies)
            tokens, marks, logits = tokens[rows], marks[rows], logits[rows]
            source = {name: None if value is None else np.asarray(value)[rows] for name, value in source.items()}
            if cache is not None:
                cache.select(rows)
        new = np.where(done, pad, choose(logits, tokens, marks))
        tokens, marks = np.column_stack([tokens, new]), np.column_stack([marks, ~done])
        yield new
        done = done | np.isin(new, ends)
        if done.all():
            return


def _read(model, params, tokens, marks, cache, source):
    """Logits after the last token of each text, (B, V), from the tokens that the cache does not hold yet.

    With a window a text is read in pieces that are no longer than it.
    """
    start, end, logits = 0 if cache is None else cache.length, tokens.shape[1], None
    padded = marks is not None and not np.all(marks)
    while start < end:
        stop = end if cache is None or cache.window is None else min(start + cache.window, end)
        here = marks[:, start:stop] if padded else None
        logits = model.last_logits(params, tokens[:, start:stop], here, cache=cache, **source)
        start = stop
    return logits[:, 0]


def _ends(eos_token_id, pad_token_id):
    """The end tokens, and the token of a row that has ended."""
    ends = np.atleast_1d([] if eos_token_id is None else eos_token_id).astype(int)
    return ends, pad_token_id if pad_token_id is not None else int(ends[0]) if ends.size else 0


def _checked_prompts(tokens, attention_mask):
    try:
        tokens = np.asarray(tokens)
    except ValueError:
        raise ShapeError("generate() needs prompts of one length: see left_pad()") from None
    if tokens.ndim != 2 or tokens.shape[1] == 0:
        raise ShapeError(f"generate() needs tokens of shape (B, T) with T ≥ 1, got {tokens.shape}; see left_pad()")
    if tokens.dtype.kind not in "iu":
        raise TypeError(f"generate() needs integer token ids, got {tokens.dtype} values")
    marks = np.ones(tokens.shape, bool) if attention_mask is None else padding_mask(attention_mask)[:, 0, 0]
    if marks.shape != tokens.shape:
        raise ShapeError(f"generate() needs a mark for each token, {tokens.shape}, got {marks.shape}")
    if marks.size and (np.any(marks[:, :-1] & ~marks[:, 1:]) or not np.all(marks[:, -1])):
        raise ValueError("generate() continues at the end of the text: padding must stand on the left, see left_pad()")
    return tokens.astype(np.int64, copy=False), marks


def _checked_lengths(config, marks, limit, use_cache, window):
    """Whether a cache is used: not by rotary positions that change all keys of so long a text."""
    within("generate", "whole [0, ∞)", max_new_tokens=limit)
    if window is not None and not use_cache:
        raise ValueError("generate() keeps the window in the cache: window needs use_cache=True")
    needed = int(marks.sum(axis=1).max(initial=0)) + limit - 1  # the last token is not read again
    if window is not None and config.outgrown_by(needed):
        raise ValueError(f"these rotary positions change all keys beyond {config.rope_scaling.limit} tokens: no window")
    if config.positions == "learned" and limit and needed > config.context:
        raise ShapeError(f"the context is {config.context} tokens, but a prompt and max_new_tokens need {needed}")
    return use_cache and not config.outgrown_by(marks.shape[1] + limit)
