"""Token after token: read what is there, reshape the distribution, choose, append, and stop at the end."""

from __future__ import annotations  # numpy.random is loaded when it is used

from collections.abc import Callable, Sequence

import numpy as np

from ..errors import ShapeError
from ..softmax import log_softmax
from .beam import beam_search
from .cache import KVCache
from .decoding import Reader
from .filters import apply_temperature, greedy, keep_min_p, keep_top_k, keep_top_p, penalize_repetition, sample_token


def left_pad(prompts: Sequence, pad_token_id: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Prompts of different lengths in one array, aligned at their ends, where generation goes on.

    prompts: B sequences of token ids   ->   tokens (B, T), attention_mask (B, T) with 0 for padding

    Raises: ValueError for no prompt, or an empty one.

    >>> left_pad([[5, 6, 7], [8]])
    (array([[5, 6, 7],
           [0, 0, 8]]), array([[1, 1, 1],
           [0, 0, 1]]))
    """
    prompts = [np.asarray(prompt) for prompt in prompts]
    if not prompts or any(prompt.ndim != 1 or prompt.size == 0 for prompt in prompts):
        raise ValueError("left_pad() needs at least one prompt, and in each at least one token")
    length = max(map(len, prompts))
    tokens = np.full((len(prompts), length), pad_token_id)
    mask = np.zeros((len(prompts), length), int)
    for row, prompt in enumerate(prompts):
        tokens[row, length - len(prompt) :] = prompt
        mask[row, length - len(prompt) :] = 1
    return tokens, mask


def generate(
    model, params, tokens, *,
    max_new_tokens: int = 20, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None,
    min_p: float | None = None, repetition_penalty: float = 1.0, num_beams: int = 1, length_penalty: float = 1.0,
    eos_token_id: int | Sequence[int] | None = None, pad_token_id: int | None = None, attention_mask=None,
    rng: np.random.Generator | None = None, streamer: Callable | None = None,
    logits_processor: Callable | None = None, use_cache: bool = True, window: int | None = None,
    source=None, source_mask=None,
) -> np.ndarray:  # fmt: skip
    """Continue each prompt, with the arguments of transformers' `generate`.

        x_(t+1) ~ P(· | x₁, …, xₜ), appended, until an end token or a limit is reached

    tokens: (B, T) int   attention_mask: (B, T), 0 for padding, which stands on the left   ->   (B, T + n) with the
    prompts, n ≤ max_new_tokens; after its end token a row holds `pad_token_id` (the end token, if not given)

    Without `rng` the decoding is greedy, or beam search for `num_beams` > 1; with it tokens are drawn, after
    `temperature`, `top_k`, `top_p` and `min_p` in this order. `logits_processor(tokens, logits)`, and before it
    `repetition_penalty`, act in all three. `streamer` is called with each new column (B,), not with beams.
    `use_cache=False` reads the whole text again for every token: same result, more work; so does a text that outgrows
    "dynamic" or "longrope" rotary positions, whose keys all turn anew. `window` lets each token see only so many before
    it (see `KVCache`). `source` and `source_mask`: the text for a model with an encoder.

    Raises: ValueError for a temperature of 0 (that is greedy decoding, erratum B18), for options of sampling without
    `rng`, for beams with it, for padding on the right; ShapeError for more tokens than the model's context.
    Source: 004, autoregressive generation; 001, §10.2.

    >>> from mathllm.transformer import Config, Transformer
    >>> model = Transformer(Config(vocabulary=10, width=8, layers=2, heads=2))
    >>> params = model.init(np.random.default_rng(0))
    >>> generate(model, params, [[1, 2], [3, 4]], max_new_tokens=3, top_k=5, rng=np.random.default_rng(0)).shape
    (2, 5)
    """
    tokens, marks = _checked_prompts(tokens, attention_mask)
    _check_choices(rng, temperature, top_k, top_p, min_p, num_beams, streamer)
    _check_lengths(model.config, marks, max_new_tokens, use_cache, window)
    use_cache = use_cache and not model.config.outgrown_by(tokens.shape[1] + max_new_tokens)
    if len(tokens) == 0 or max_new_tokens == 0:
        return tokens.copy()
    ends = np.atleast_1d([] if eos_token_id is None else eos_token_id).astype(int)
    pad = pad_token_id if pad_token_id is not None else int(ends[0]) if ends.size else 0

    def processed(tokens, marks, logits):
        if repetition_penalty != 1:
            logits = penalize_repetition(logits, tokens, repetition_penalty, marks)
        return logits if logits_processor is None else logits_processor(tokens, logits)

    def choose(logits):
        if rng is None:
            return greedy(logits)
        return sample_token(reshape_logits(logits, temperature, top_k, top_p, min_p), rng)

    def reader(rows):
        cache, capacity = None, tokens.shape[1] + max_new_tokens
        if use_cache:
            cache = KVCache(model.config, len(tokens[rows]), capacity, params["embedding"].dtype, window)
        given = {"source": source, "source_mask": source_mask}
        options = {name: np.asarray(value)[rows] for name, value in given.items() if value is not None}
        return Reader(model, params, cache, **options)

    if num_beams == 1:
        return _continued(tokens, marks, reader(slice(None)), processed, choose, max_new_tokens, ends, pad, streamer)
    search = {"num_beams": num_beams, "max_new_tokens": max_new_tokens, "length_penalty": length_penalty}
    return _best_of_beams(tokens, marks, reader, processed, pad, eos_token_id=tuple(ends.tolist()), **search)


def reshape_logits(logits, temperature: float = 1.0, top_k=None, top_p=None, min_p=None) -> np.ndarray:
    """Temperature, then top-k, top-p and min-p, each where it is asked for: the order of transformers.

    logits: (..., V)   ->   (..., V)   Raises: what the four refuse.

    >>> reshape_logits([2.0, 1.0, 0.5], temperature=0.5, top_k=2)
    array([  4.,   2., -inf])
    """
    logits = apply_temperature(logits, temperature)
    for keep, amount in ((keep_top_k, top_k), (keep_top_p, top_p), (keep_min_p, min_p)):
        logits = logits if amount is None else keep(logits, amount)
    return logits


def _continued(tokens, marks, read, processed, choose, limit, ends, pad, streamer):
    """Read, choose, append; a row that has ended is padded, and when all have, or at the limit, the text is done."""
    done = np.zeros(len(tokens), bool)
    for _ in range(limit):
        logits = read(tokens, None if np.all(marks) else marks, last=True)[:, 0]  # (B, V)
        new = np.where(done, pad, choose(processed(tokens, marks, logits)))
        tokens, marks = np.column_stack([tokens, new]), np.column_stack([marks, ~done])
        if streamer is not None:
            streamer(new)
        done = done | np.isin(new, ends)
        if done.all():
            break
    return tokens


def _best_of_beams(tokens, marks, reader, processed, pad, **options):
    """For each prompt by itself the best continuation that beam search finds, padded to the longest."""
    best = []
    for row in range(len(tokens)):
        prompt = tokens[row : row + 1, marks[row] == 1]
        read = _beam_reader(reader(slice(row, row + 1)), prompt, processed)
        best.append(beam_search(read, **options)[0].tokens)
    longest = max(map(len, best))
    return np.hstack([tokens, [[*row, *[pad] * (longest - len(row))] for row in best]])


def _beam_reader(read, prompt, processed):
    """What beam search asks: ln P of the next token after each continuation of one prompt."""
    options = read.options

    def next_log_probabilities(continuations, parents):
        tokens = np.hstack([np.repeat(prompt, len(continuations), axis=0), continuations])
        read.options = {name: np.repeat(value, len(continuations), axis=0) for name, value in options.items()}
        if read.cache is not None:
            read.cache.select(parents)
        logits = read(tokens, last=True)[:, 0]
        return processed(tokens, np.ones(tokens.shape, int), log_softmax(logits.astype(np.float64, copy=False)))

    return next_log_probabilities


def _checked_prompts(tokens, attention_mask):
    tokens = np.asarray(tokens)
    if tokens.ndim != 2 or tokens.shape[1] == 0:
        raise ShapeError(f"generate() needs tokens of shape (B, T) with T ≥ 1, got {tokens.shape}; see left_pad()")
    marks = np.ones(tokens.shape, int) if attention_mask is None else np.asarray(attention_mask)
    _check_marks(tokens, marks)
    return tokens, marks


def _check_marks(tokens, marks):
    if marks.shape != tokens.shape:
        raise ShapeError(f"generate() needs a mark for each token, {tokens.shape}, got {marks.shape}")
    if marks.size and (np.any(np.diff(marks.astype(int), axis=1) < 0) or not np.all(marks[:, -1] == 1)):
        raise ValueError("generate() goes on where the text ends: padding must stand on the left, see left_pad()")


def _check_choices(rng, temperature, top_k, top_p, min_p, num_beams, streamer):
    if temperature == 0:
        raise ValueError(
            "temperature 0 is a limit and no temperature: for greedy decoding, the most probable token each time, "
            "leave out temperature and rng"
        )
    if rng is None and (temperature, top_k, top_p, min_p) != (1.0, None, None, None):
        raise ValueError(
            "temperature, top_k, top_p and min_p are for sampling: give rng=np.random.default_rng(seed), "
            "or leave them out for greedy decoding"
        )
    if num_beams < 1:
        raise ValueError(f"generate() needs num_beams of at least 1, got {num_beams}")
    if num_beams > 1 and (rng is not None or streamer is not None):
        raise ValueError("beam search draws nothing, and knows its tokens only at the end: no rng and no streamer")


def _check_lengths(config, marks, max_new_tokens, use_cache, window):
    if max_new_tokens < 0:
        raise ValueError(f"generate() needs max_new_tokens of at least 0, got {max_new_tokens}")
    if window is not None and not use_cache:
        raise ValueError("generate() keeps the window in the cache: window needs use_cache=True")
    needed = int(marks.sum(axis=1).max(initial=0)) + max_new_tokens - 1  # the last token is not read again
    if window is not None and config.outgrown_by(needed):
        raise ValueError(f"these rotary positions turn all keys anew beyond {config.rope_limit} tokens: no window")
    if config.positions == "learned" and max_new_tokens and needed > config.context:
        raise ShapeError(
            f"the model's context is {config.context} tokens, but a prompt and max_new_tokens need {needed}"
        )
