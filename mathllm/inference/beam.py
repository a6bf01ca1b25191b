"""Beam search: several continuations grow at once, and the one with the best score is chosen at the end."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..autodiff import ArrayLike
from ..errors import within
from ..shapes import Contract, contract


class Hypothesis(NamedTuple):
    """One continuation: its tokens without the prompt, ln P of them, and the score it is ranked by."""

    tokens: tuple[int, ...]
    log_probability: float
    score: float


@contract("t+")
def sequence_score(log_probabilities: ArrayLike, length_penalty: float = 1.0) -> float:
    """The score of a sequence of t tokens, from their log-probabilities.

        score = (1/t^α) Σᵢ ln P(xᵢ | x_<i)                                          (14.8)

    length_penalty: α; 0 ranks by probability, 1 by the mean, above 1 prefers long sequences

    Ranking by the mean is not ranking by probability: three tokens at 0.6 each (P = 0.216) beat one at 0.4.
    Source: Wu et al. 2016, §7.

    >>> one, three = np.log([0.4]), np.log([0.6, 0.6, 0.6])
    >>> [round(sequence_score(s), 3) for s in (one, three)], [round(sequence_score(s, 0), 3) for s in (one, three)]
    ([-0.916, -0.511], [-0.916, -1.532])
    """
    within("sequence_score", "(-∞, ∞)", length_penalty=length_penalty)
    return float(log_probabilities.sum() / len(log_probabilities) ** length_penalty)


def beam_search(
    next_log_probabilities: Callable, *, num_beams: int, max_new_tokens: int,
    length_penalty: float = 1.0, eos_token_id: int | tuple[int, ...] | None = None,
) -> list[Hypothesis]:  # fmt: skip
    """The best continuations that are found if after each token only the `num_beams` most probable ones are kept.

    next_log_probabilities: a function of (sequences, parents) that gives ln P of the next token, (K, V).
    sequences: (K, t) int, the continuations so far   parents: (K,) int, which sequence of the last call each continues
    (a cache has to follow)   ->   up to `num_beams` hypotheses, best score first

    A hypothesis that ends with `eos_token_id` is set aside. The search stops when `num_beams` have ended and no running
    one has a better score at its present length, as in transformers. A hypothesis that is dropped never returns, so the
    best sequence can be missed.
    Raises: ValueError for no beam, a negative number of tokens, NaN or +∞ among the log-probabilities, or if every
    token has probability 0; ShapeError for log-probabilities that are not (K, V).
    Source: Wu et al. 2016, §7.

    >>> table = np.log([[0.1, 0.4, 0.5], [0.9, 0.05, 0.05], [0.4, 0.3, 0.3]])  # after token 0, 1, 2; it begins with 0
    >>> after = lambda sequences, parents: table[sequences[:, -1] if sequences.size else [0]]
    >>> for beams in (1, 2):
    ...     best = beam_search(after, num_beams=beams, max_new_tokens=2)[0]
    ...     print(best.tokens, round(float(np.exp(best.log_probability)), 2))
    (2, 0) 0.2
    (1, 0) 0.36
    """
    within("beam_search", "whole [1, ∞)", num_beams=num_beams)
    within("beam_search", "whole [0, ∞)", max_new_tokens=max_new_tokens)
    within("beam_search", "(-∞, ∞)", length_penalty=length_penalty)
    ends = set(np.atleast_1d([] if eos_token_id is None else eos_token_id).tolist())
    running, parents, finished = [Hypothesis((), 0.0, 0.0)], [0], []
    for _ in range(max_new_tokens):
        totals = _log_probabilities(next_log_probabilities, running, parents)
        running, parents, ended = _extended(running, totals, ends, num_beams, length_penalty)
        finished = _best(finished + ended, num_beams)
        if not running or (len(finished) == num_beams and finished[-1].score >= running[0].score):
            break
    found = _best(finished + running, num_beams)
    if not found:
        raise ValueError("beam_search() found no continuation: every next token has probability 0")
    return found


def _log_probabilities(function, running, parents):
    """ln P of each running hypothesis with each next token, (K, V)."""
    sequences = np.array([hypothesis.tokens for hypothesis in running], int).reshape(len(running), -1)
    steps = np.asarray(function(sequences, np.array(parents)), float)
    Contract(f"{len(running)} V+").check("beam_search", ["log-probabilities"], [steps])
    if not np.all(steps < np.inf):  # False for NaN, too
        raise ValueError("beam_search() needs log-probabilities, finite or −∞, got NaN or +∞")
    return steps + np.array([hypothesis.log_probability for hypothesis in running])[:, None]


def _extended(running, totals, ends, num_beams, length_penalty):
    """The best continuations by one token: those that run on, which hypothesis each of them continues, those that end.

    At most num_beams · len(ends) continuations end, so num_beams of the best num_beams · (1 + len(ends)) run on. Only
    those that end among the best num_beams count.
    """
    longer, parents, ended = [], [], []
    for rank, place in enumerate(_largest(totals.ravel(), num_beams * (1 + len(ends)))):
        parent, token = divmod(int(place), totals.shape[1])
        total = float(totals[parent, token])
        if total == -np.inf or len(longer) == num_beams:
            break
        tokens = (*running[parent].tokens, token)
        hypothesis = Hypothesis(tokens, total, total / len(tokens) ** length_penalty)
        if token not in ends:
            longer.append(hypothesis)
            parents.append(parent)
        elif rank < num_beams:
            ended.append(hypothesis)
    return longer, parents, ended


def _best(hypotheses, count):
    return sorted(hypotheses, key=lambda hypothesis: -hypothesis.score)[:count]


def _largest(x, count):
    """The places of the largest numbers, the largest first, equal ones from left to right; only these are sorted."""
    count = min(count, len(x))
    candidates = np.flatnonzero(x >= np.partition(x, -count)[-count])
    return candidates[np.argsort(-x[candidates], kind="stable")][:count]
