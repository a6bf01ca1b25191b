"""Chapter 13, the training run: tokens, fingerprints, the gradient of the loss, intervals, a model of one's own."""

from collections import Counter
from itertools import pairwise

import numpy as np

import mathllm as ml

from ..cases import each
from ..compare import numeric, show
from . import checks, draws

_STEMS = ("low", "newer", "lower", "slow", "sower", "wider", "lowest", "wide", "west", "towel", "rower", "widow")


def _joined(words, ties="first appearance"):
    return [left + right for left, right, _ in ml.learn_merges(words, 3, ties=ties)]


def _types_only(words):
    return _joined(dict.fromkeys(words, 1))


def _never_counted_again(words):
    pairs = Counter()
    for word, repeats in words.items():
        for pair in pairwise(word):
            pairs[pair] += repeats
    return [left + right for (left, right), _ in pairs.most_common(3)]


@draws("13.training.own_merges")
def _clear_corpus(rng):
    """Four words whose first three merges have no ties, and on which the known mistakes lead elsewhere."""
    while True:
        chosen = rng.choice(_STEMS, size=4, replace=False)
        words = {str(word): int(count) for word, count in zip(chosen, rng.integers(2, 9, size=4), strict=True)}
        same = {tuple(_joined(words, ties)) for ties in ("first appearance", "lexicographic")}
        right = _joined(words)
        wrong = (_types_only(words), _never_counted_again(words), right[::-1])
        if len(same) == 1 and right not in wrong and len({*map(tuple, wrong)}) == 3 and _no_ties(words):
            return {"words": words}


def _no_ties(words):
    """The winner of each of the first three rounds stands alone."""
    merges = ml.learn_merges(words, 3)
    for done in range(3):
        ranks, counts = ml.training.merge_ranks(merges[:done]), {}
        for word, repeats in words.items():
            symbols = ml.training.apply_merges(word, ranks) if done else list(word)
            for pair in pairwise(symbols):
                counts[pair] = counts.get(pair, 0) + repeats
        best = sorted(counts.values())[-2:]
        if best[0] == best[1]:
            return False
    return True


def _some_words(rng):
    """Words with one commonest pair, which is another one if words count once, and the same across their borders."""
    cases = []
    for letters, count in [("abc", 4), ("abcd", 5), ("abcdef", 6)]:
        while True:
            words = ["".join(rng.choice(list(letters), size=rng.integers(2, 7))) for _ in range(count)]
            words = [list(word) for word in dict.fromkeys(words)]
            case = words, [int(n) for n in rng.integers(1, 8, size=len(words))]
            best = _best_pair(*case)
            same = best == _best_pair(*case, ties="last") == _across_words(*case) == _across_neighbours(*case)
            if same and best != _best_pair(*case, weigh=False):
                cases.append(case)
                break
    return cases


def _best_pair(words, repeats, weigh=True, ties="first", pairs=pairwise):
    counts = {}
    for symbols, n in zip(words, repeats, strict=True):
        for pair in pairs(symbols):
            counts[pair] = counts.get(pair, 0) + (n if weigh else 1)
    if ties == "last":
        best = max(reversed(list(counts)), key=counts.get)
    elif ties == "smallest":
        best = min(counts, key=lambda pair: (-counts[pair], pair))
    elif ties == "largest":
        best = max(counts, key=lambda pair: (counts[pair], pair))
    else:
        best = max(counts, key=counts.get)
    return [*best, counts[best]]


def _apart(symbols):
    """The pairs of neighbours, without those that overlap an equal pair before them."""
    last = None
    for place, pair in enumerate(pairwise(symbols)):
        if last != (place - 1, pair):
            last = place, pair
            yield pair


def _across_words(words, repeats):
    line = [symbol for symbols, n in zip(words, repeats, strict=True) for _ in range(n) for symbol in symbols]
    return _best_pair([line], [1])


def _across_neighbours(words, repeats):
    joints = [[word[-1], following[0]] for word, following in pairwise(words)]
    return _best_pair([*words, *joints], [*repeats, *repeats[:-1]])


LOW = ([list("low"), list("lowest"), list("newer"), list("wider")], [5, 2, 3, 2])


# Pairs of equal counts: the first to appear is neither the smallest nor the last, and the last is not the largest.
TIED = ([["b", "c"], ["a", "b"], ["x", "y"]], [2, 2, 2])
TIED_AGAIN = ([["b", "c"], ["x", "y"], ["m", "n"]], [2, 2, 2])


# A pair that is commonest only if words are run together.
APART = ([["q", "a"], ["z", "q"], ["z", "q", "r"]], [3, 1, 1])
COPIES = ([["a", "b"], ["b", "a", "c"]], [5, 3])
NEIGHBOURS = ([["a", "b"], ["c", "d"], ["a", "b"], ["c", "e"], ["b", "c"]], [5, 1, 1, 1, 4])


# A pair that occurs twice in a word.
TWICE = ([list("banana"), list("xy")], [2, 3])
OVERLAPPING = ([list("aaa"), list("xy")], [2, 3])


# A pair in many rare words, and one in a frequent word.
RARE = ([["a", "b"], ["a", "b", "c"], ["x", "y"]], [1, 1, 9])


@checks("13.training.most_frequent_pair", expected=_best_pair)
def _(c):
    c.values(2, _some_words, public=[LOW, TWICE, OVERLAPPING], name="the right pair")
    c.values(1, public=[TIED, TIED_AGAIN], name="ties go to the first")
    c.values(1, public=[APART, COPIES, NEIGHBOURS], name="not across words")
    c.values(1, public=[RARE, ([["lo", "w"], ["ne", "w"]], [1, 4])], name="words count as often as they occur")


def _to_merge(rng):
    return [
        ([str(s) for s in rng.choice(list("abc"), size=n)], *pair) for n in (5, 12) for pair in [("a", "b"), ("b", "a")]
    ]


@checks("13.training.repair_merge")
def _(c):
    c.values(1, _to_merge, public=[(list("banana"), "a", "n")], name="ordinary words")
    c.values(2, public=[(["a"] * n, "a", "a") for n in (2, 3, 4, 5)], name="pairs of equal symbols")
    c.values(
        1,
        public=[(["xa", "b", "a", "b"], "a", "b"), (["a", "nb"], "an", "b"), (["a"], "a", "a")],
        name="long symbols and short words",
    )


@each
def _hash_cases(rng, kind):
    """Two sets that share half of their items, and 2·size functions that tell the estimate from known mistakes.

    kind: (size, whether the two sets have their smallest item in common)
    """
    (size, common), K = kind, 2 * kind[0]
    small, large = np.arange(1, 10_000), np.arange(10_008, 20_000)  # a multiple of 10007 has the hash s for every m
    while True:
        items = np.sort(rng.choice(small, size=size, replace=False))
        items = np.append(rng.permutation(items[1:]), items[0])[:: -1 if common else 1]
        other = np.concatenate([items[: size // 2], rng.choice(large, size=size // 2, replace=False)])
        case = (items, other, rng.integers(1, 10_007, size=K), rng.integers(10_007, size=K))
        wrong = _estimate(*case, how=np.max), _jaccard(*case), _share_of_first(*case), _smallest_together(*case)
        alike = _minima_sorted(*case), *(_misplaced_shift(*case, late=late) for late in (True, False))
        if _estimate(*case) not in (0, *wrong, *alike) and len({*alike}) == 3:
            return case


def _signature(items, multipliers, shifts, how=np.min):
    return how((items[:, None] * multipliers + shifts) % 10_007, axis=0)


def _estimate(a, b, multipliers, shifts, how=np.min):
    return float(np.mean(_signature(a, multipliers, shifts, how) == _signature(b, multipliers, shifts, how)))


def _jaccard(a, b, *_):
    return len({*a.tolist()} & {*b.tolist()}) / len({*a.tolist()} | {*b.tolist()})


def _share_of_first(a, b, multipliers, shifts):
    return float(
        np.mean(np.isin((a[:, None] * multipliers + shifts) % 10_007, (b[:, None] * multipliers + shifts) % 10_007))
    )


def _smallest_together(a, b, multipliers, shifts):
    smallest = [np.sort((x[:, None] * multipliers + shifts) % 10_007, axis=None)[: len(shifts)] for x in (a, b)]
    return float(np.mean(smallest[0] == smallest[1]))


def _minima_sorted(a, b, multipliers, shifts):
    return float(np.mean(np.sort(_signature(a, multipliers, shifts)) == np.sort(_signature(b, multipliers, shifts))))


def _misplaced_shift(a, b, multipliers, shifts, late):
    """The shift added after the remainder, or reduced by itself: `%` binds more tightly than `+`."""
    first, second = (x[:, None] * multipliers for x in (a, b))
    minima = [(x % 10_007 + shifts if late else x + shifts % 10_007).min(axis=0) for x in (first, second)]
    return float(np.mean(minima[0] == minima[1]))


# One case for everybody, on which the estimate and thirteen wrong ways to it have fourteen different values.
FIXED_HASHES = _hash_cases((20, True))(np.random.default_rng(25))[0]


@checks("13.training.minhash", expected=_estimate)
def _(c):
    c.values(3, _hash_cases((4, True), (12, False)), public=[FIXED_HASHES], name="right values", rtol=1e-6)
    c.values(
        1,
        public=[
            (np.array([5, 5, 9]), np.array([9, 5]), np.array([3, 7, 11]), np.array([0, 1, 2])),
            (np.array([1, 2]), np.array([1, 2, 3, 4]), np.array([1, 9, 27, 81]), np.array([5, 4, 3, 2])),
        ],
        name="sets, not lists",
    )


def _logits_and_targets(rng):
    cases = []
    for B, T, V in [(1, 3, 4), (2, 4, 5)]:
        targets = rng.integers(V, size=(B, T))
        targets[0, 0] = -100
        cases.append((rng.normal(size=(B, T, V)), targets, float(rng.normal())))
    return cases


@checks("13.training.loss_pullback")
def _(c):
    c.gradient(3, ml.cross_entropy, _logits_and_targets, rtol=1e-5)
    c.values(
        2,
        public=[(np.array([[[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]]), np.array([[1, -100, 0]]), 1.0)],
        name="a target that does not count",
    )


def _draws(rng):
    return [(rng.normal(size=n) + 3, rng.integers(n, size=(B, n))) for n, B in [(5, 40), (30, 100)]]


@checks("13.training.bootstrap")
def _(c):
    c.values(3, _draws, name="right values")
    c.values(1, public=[(np.array([1.0, 2.0, 6.0]), np.array([[0, 0, 1], [2, 2, 2], [1, 1, 1]]))], name="by hand")


_V = 6
_SOURCE = ml.training.markov_source(_V, 2, np.random.default_rng(2), concentration=0.25)


def _lesson(rng):
    text = ml.training.sample_source(_SOURCE, 4000, rng)
    exam = ml.training.sample_source(_SOURCE, 2400, rng).reshape(-1, 8)
    return [(text, exam, _V)]


def _truth(tokens, contexts, vocabulary):
    return _SOURCE[contexts[:, -2], contexts[:, -1]]


def _counted(order):
    """A model that counts, as a function of the task's arguments."""

    def model(tokens, contexts, vocabulary):
        table = np.full((vocabulary,) * order, 0.1)
        np.add.at(table, tuple(tokens[i : len(tokens) - order + 1 + i] for i in range(order)), 1)
        table = table / table.sum(axis=-1, keepdims=True)
        return (
            table[tuple(contexts[:, i - order + 1 :][:, 0] for i in range(order - 1))]
            if order > 1
            else np.tile(table, (len(contexts), 1))
        )

    return model


def _surprise(predictions, contexts):
    """The expected loss under the true source, without any noise of a test set."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(_truth(None, contexts, _V) > 0, _truth(None, contexts, _V) * np.log(predictions), 0)
    return -terms.sum(axis=-1).mean()


def _problem(case, observation):
    """What is wrong with predictions, apart from their quality; else None and the array."""
    p = numeric(observation.value)
    wanted = (len(case[1]), case[2])
    if p is None or p.shape != wanted:
        got = show(observation.value) if p is None else f"shape {p.shape}"
        return f"expected probabilities of shape {wanted}, one row for each context, got {got}", None
    if not np.all(np.isfinite(p)) or p.min() < 0 or np.abs(p.sum(axis=-1) - 1).max() > 1e-3:
        logs = np.all(p <= 0) and np.allclose(np.exp(p).sum(axis=-1), 1)
        more = "; these are log-probabilities, so return their exponentials" if logs else ""
        return f"each row must be a distribution: no number below 0, and the sum 1{more}", None
    return None, p.astype(float)


def _ignored(p, contexts):
    """What of the contexts the predictions do not depend on, or in which way they misread them, in words."""
    if np.ptp(p, axis=0).max() < 1e-9:
        return "; all rows are equal, so the context has no effect"
    last = [p[contexts[:, -1] == token] for token in range(_V)]
    if all(np.ptp(rows, axis=0).max() < 1e-9 for rows in last if len(rows)):
        return "; rows with the same last token are equal, so only this token has an effect"
    readings = {
        "the predictions fit contexts with the last two tokens exchanged": [-1, -2],
        "the predictions fit contexts in reverse order": [1, 0],
        "the predictions use the first two tokens of each context": [0, 1],
        "the predictions are those of the last token of each context, not of the token after it": [-3, -2],
    }
    for words, places in readings.items():
        read = contexts[:, places]
        if _surprise(p, read) < _surprise(_truth(None, read, _V), read) + 0.1:
            return f"; {words}"
    return ""


def _below(words, rival):
    """A judge: the loss lies at least 0.05 nats below a rival's."""

    def judge(expected, case, observation):
        problem, p = _problem(case, observation)
        if problem:
            return problem
        loss, bar = _surprise(p, case[1]), _surprise(rival(*case), case[1]) - 0.05
        if np.isinf(loss):
            return "the loss is infinite: a token that can come was given the probability 0"
        return None if loss < bar else f"loss {loss:.3f} nats; {words} is less than {bar:.3f}{_ignored(p, case[1])}"

    return judge


def _near_entropy(expected, case, observation):
    problem, p = _problem(case, observation)
    if problem:
        return problem
    loss, bar = _surprise(p, case[1]), _surprise(expected(), case[1]) + 0.1
    return None if loss < bar else f"loss {loss:.3f} nats; the entropy of this text plus 0.1 is {bar:.3f}"


@checks("13.training.own_model", expected=_truth)
def _(c):
    c.judge("beats the frequencies", 2, _lesson, _below("needed", _counted(1)))
    c.judge("beats pairs", 3, _lesson, _below("needed", _counted(2)))
    c.judge("comes near the entropy", 3, _lesson, _near_entropy)


WORDS = {"tenant": 6, "antenna": 8, "tennis": 5, "nab": 9, "band": 4}


def _tokens(merges):
    listed = isinstance(merges, (list, tuple))
    pairs = listed and all(isinstance(pair, (list, tuple)) for pair in merges)
    if not pairs or [len(pair) for pair in merges] != [2] * 4 or not all(isinstance(s, str) for p in merges for s in p):
        reason = "the answer must be a list of four pairs of symbols, two strings each, such as ('a', 'n')"
        raise ValueError(reason, *_other_form(merges if listed else [], pairs))
    merges = [tuple(pair) for pair in merges]
    found = _left(merges)
    if found > 98:
        for n, (left, right) in enumerate(merges):
            if _left(merges[: n + 1]) == _left(merges[:n]):
                raise ValueError(
                    f"your merges leave {found} tokens: merge {n + 1}, of {left!r} and {right!r}, joins nothing: "
                    "the words do not contain this pair when its turn comes",
                    *_made_later(merges, n),
                )
    return found


def _other_form(merges, pairs):
    """The sentence of a known slip in the form of the answer."""
    if merges and all(isinstance(pair, str) for pair in merges):
        return ["You gave each merge as one string. Give the two symbols that it joins, as a pair."]
    if pairs and any(len(pair) > 2 for pair in merges):
        if not all(isinstance(symbol, str) for pair in merges for symbol in pair):
            return ["Give only the two symbols of each merge, without its count."]
        return ["A merge joins two symbols. A piece of three letters takes two merges, such as `a n`, then `an t`."]
    if pairs and merges and len(merges) != 4:
        return [f"You gave {len(merges)} merge{'s' if len(merges) > 1 else ''}. Give four."]
    return []


def _made_later(merges, n):
    """The sentence for a merge that needs a symbol which only a later merge makes."""
    made = [left + right for left, right in merges]
    late = [symbol for symbol in merges[n] if len(symbol) > 1 and symbol not in made[:n] and symbol in made[n:]]
    return [f"Only a later merge makes `{late[0]}`. Put that merge first."] if late else []


def _left(merges):
    """The number of tokens after the merges, each carried out once on all words, in their order."""
    tokens = 0
    for word, count in WORDS.items():
        symbols = list(word)
        for pair in merges:
            symbols = _after(symbols, pair)
        tokens += len(symbols) * count
    return tokens


def _after(symbols, pair):
    """The symbols of a word after one merge."""
    joined = []
    for symbol in symbols:
        if joined and (joined[-1], symbol) == pair:
            joined[-1] += symbol
        else:
            joined.append(symbol)
    return joined


@checks("13.training.fewest_tokens")
def _(c):
    c.scored("tokens", _tokens, {92: 1, 94: 2 / 3, 98: 1 / 3})
