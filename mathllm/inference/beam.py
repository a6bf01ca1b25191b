"""Follow several continuations at once, and choose among them at the end: better than greedy, and still no argmax."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..errors import ShapeError


class Hypothesis(NamedTuple):
    """One continuation: its tokens without the prompt, ln P of them, and the score it is ranked by."""

    tokens: tuple[int, ...]
    log_probability: float
    score: float


def sequence_score(log_probabilities, length_penalty: float = 1.0) -> float:
    """The score of a sequence from the log-probabilities of its tokens.

        score = (1/t^α) Σᵢ ln P(xᵢ | x_<i)                                          (14.8)

    log_probabilities: (t,)   length_penalty: α; 0 ranks by probability, 1 by the mean, above 1 prefers long sequences

    001 prints α = 1 and calls it probability: it is another objective, by which three tokens at 0.6 each (P = 0.216)
    beat one at 0.4 (erratum B9).
    Raises: ShapeError for no token, or more than one sequence.
    Source: 001, §10.2.4; Wu et al. 2016, §7.

    >>> one, three = np.log([0.4]), np.log([0.6, 0.6, 0.6])
    >>> [round(sequence_score(s), 3) for s in (one, three)], [round(sequence_score(s, 0), 3) for s in (one, three)]
    ([-0.916, -0.511], [-0.916, -1.532])
    """
    logs = np.asarray(log_probabilities, float)
    if logs.ndim != 1 or logs.size == 0:
        raise ShapeError(f"sequence_score() needs the log-probabilities of one sequence, got shape {logs.shape}")
    return float(logs.sum() / len(logs) ** length_penalty)


def beam_search(
    next_log_probabilities: Callable, *, num_beams: int, max_new_tokens: int,
    length_penalty: float = 1.0, eos_token_id: int | tuple[int, ...] | None = None,
) -> list[Hypothesis]:  # fmt: skip
    """Keep the `num_beams` best beginnings, extend each by every token, keep the best again.

    next_log_probabilities: a function of (sequences, parents) that gives ln P of the next token, (K, V).
    sequences: (K, t) int, the continuations so far   parents: (K,) int, which sequence of the last call each continues
    (a cache has to follow)   ->   up to `num_beams` hypotheses, best score first

    A sequence that ends with `eos_token_id` waits; the search ends when `num_beams` have ended and none that still runs
    has a better score at its present length, as in transformers. A beginning that is dropped never returns, so the best
    sequence can be missed: this is a heuristic, exact only with as many beams as there are sequences (erratum B9).
    Raises: ValueError for no beam, or a negative number of tokens.
    Source: 001, §10.2.4; Wu et al. 2016, §7.

    >>> table = np.log([[0.1, 0.4, 0.5], [0.9, 0.05, 0.05], [0.4, 0.3, 0.3]])  # after token 0, 1, 2; it begins with 0
    >>> after = lambda sequences, parents: table[sequences[:, -1] if sequences.size else [0]]
    >>> for beams in (1, 2):
    ...     best = beam_search(after, num_beams=beams, max_new_tokens=2)[0]
    ...     print(best.tokens, round(float(np.exp(best.log_probability)), 2))
    (2, 0) 0.2
    (1, 0) 0.36
    """
    if num_beams < 1 or max_new_tokens < 0:
        raise ValueError(f"beam_search() needs a beam and tokens to find, got {num_beams} and {max_new_tokens}")
    ends = set(np.atleast_1d([] if eos_token_id is None else eos_token_id).tolist())
    beams, parents = [((), 0.0)], [0]
    finished: list[Hypothesis] = []

    def scored(tokens, total):
        return Hypothesis(tokens, total, total / max(len(tokens), 1) ** length_penalty)

    for length in range(1, max_new_tokens + 1):
        sequences = np.array([tokens for tokens, _ in beams], int).reshape(len(beams), length - 1)
        steps = np.asarray(next_log_probabilities(sequences, np.array(parents)), float)
        totals = steps + np.array([total for _, total in beams])[:, None]  # (K, V)
        ranked = _largest(totals.ravel(), num_beams * (1 + max(len(ends), 1)))  # enough, however many of them end
        running, parents = [], []
        for rank, place in enumerate(ranked):
            beam, token = divmod(int(place), totals.shape[1])
            total = float(totals[beam, token])
            if total == -np.inf or len(running) == num_beams:
                break
            tokens = (*beams[beam][0], token)
            if token not in ends:
                running.append((tokens, total))
                parents.append(beam)
            elif rank < num_beams:
                finished.append(scored(tokens, total))
        finished = sorted(finished, key=lambda h: -h.score)[:num_beams]
        beams = running
        if not beams or (len(finished) == num_beams and finished[-1].score >= scored(*beams[0]).score):
            return finished
    return sorted(finished + [scored(*beam) for beam in beams], key=lambda h: -h.score)[:num_beams]


def _largest(x, count):
    """Where the largest numbers stand, in falling order, equal ones from left to right; only they are sorted."""
    count = min(count, len(x))
    candidates = np.flatnonzero(x >= np.partition(x, -count)[-count])
    return candidates[np.argsort(-x[candidates], kind="stable")][:count]
