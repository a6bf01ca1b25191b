"""Byte-pair encoding: learning which neighbouring symbols to merge, and replaying the merges on a word.

Byte-pair encoding starts from single symbols and merges the most frequent pair of neighbours again and again. The
result of learning is the list of merges. Replayed in their order on any word, they cut it into tokens.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

from ..errors import one_of, within

# GPT-2 numbers the printable bytes first
_PRINTABLE = [*range(33, 127), *range(161, 173), *range(174, 256)]
_BYTES = [bytes([byte]) for byte in [*_PRINTABLE, *sorted({*range(256)} - {*_PRINTABLE})]]
_PLACE = {symbol: place for place, symbol in enumerate(_BYTES)}


class Merge(NamedTuple):
    """One merge: the two symbols, and how often they were neighbours when they were merged."""

    left: Any  # str or bytes
    right: Any
    count: int


def learn_merges(
    words: Iterable[str | bytes] | Mapping[str | bytes, int], merges: int | None = None, *,
    ties: str = "first appearance", min_count: int = 1,
) -> list[Merge]:  # fmt: skip
    """Learn the merges of byte-pair encoding: merge the most frequent pair of neighbours, and repeat.

        (a, b) ← argmax count(a, b),      a b → ab                                  (13.1)

    words: str (symbols are characters) or bytes (symbols are bytes), as a sequence or as a table word -> occurrences
    merges: the largest number of merges, None for no limit   min_count: learning ends when no pair is as frequent
    ->   the merges in their order

    Which of several equally frequent pairs is merged is a convention, and it changes the vocabulary. `ties` chooses it:
    "first appearance", the pair that occurs first in the words in their order; "lexicographic", the smallest pair;
    "lowest ids", the pair whose symbols have the smallest ids: characters or bytes first, then merges in their order.
    The last rule is that of the library `tokenizers`.

    The chapter's loop counts all pairs again after each merge. Here only the words that hold the merged pair are
    counted again, which gives the same merges.
    Raises: ValueError for a negative number of merges or an unknown rule for ties.
    Source: Sennrich, Haddow & Birch 2016, algorithm 1.

    >>> corpus = "low low low low low lowest lowest newer newer newer wider wider".split()
    >>> [left + right for left, right, count in learn_merges(corpus, 5)]
    ['lo', 'low', 'er', 'ne', 'new']
    """
    corpus = _Corpus(Counter(words))
    rules = {"first appearance": corpus.first_appearance, "lexicographic": min, "lowest ids": corpus.lowest_ids}
    one_of("learn_merges", rules, ties=ties)
    if merges is not None:
        within("learn_merges", "whole [0, ∞)", merges=merges)
    learned = []
    while merges is None or len(learned) < merges:
        count = max(corpus.by_count, default=0)
        if count < max(min_count, 1):
            break
        pair = rules[ties](corpus.by_count[count])
        learned.append(Merge(*pair, count))
        corpus.merge(pair)
    return learned


class _Corpus:
    """Words cut into symbols; how often each pair of neighbours occurs, and in which words."""

    def __init__(self, table):
        self.cuts, self.repeats = [[] for _ in table], list(table.values())
        self.counts, self.by_count, self.words = Counter(), defaultdict(set), defaultdict(set)
        self._cut({word: _symbols(text) for word, text in enumerate(table)})
        alphabet = {symbol for symbols in self.cuts for symbol in symbols}
        self.ids = {s: i for i, s in enumerate(sorted(alphabet, key=lambda s: _PLACE.get(s, s)))}

    def merge(self, pair):
        """Make one symbol of the pair wherever it occurs."""
        self.ids.setdefault(pair[0] + pair[1], len(self.ids))
        self._cut({word: _joined(self.cuts[word], pair) for word in self.words[pair]})

    def _cut(self, cuts):
        """Give some words new symbols, and count the pairs in these words again."""
        change = Counter()
        for word, symbols in cuts.items():
            for pair in pairwise(self.cuts[word]):
                change[pair] -= self.repeats[word]
                self.words[pair].discard(word)
            for pair in pairwise(symbols):
                change[pair] += self.repeats[word]
                self.words[pair].add(word)
            self.cuts[word] = symbols
        for pair, number in change.items():
            self.by_count[self.counts[pair]].discard(pair)
            if not self.by_count[self.counts[pair]]:
                del self.by_count[self.counts[pair]]
            self.counts[pair] += number
            self.by_count[self.counts[pair]].add(pair)

    def first_appearance(self, tied):
        word = min(min(self.words[pair]) for pair in tied)
        return next(pair for pair in pairwise(self.cuts[word]) if pair in tied)

    def lowest_ids(self, tied):
        return min(tied, key=lambda pair: (self.ids[pair[0]], self.ids[pair[1]]))


def apply_merges(word: str | bytes, ranks: Mapping[tuple, int]) -> list[str | bytes]:
    """Cut a word into tokens: of all pairs of neighbours merge the one that was learned first, and repeat.

    ranks: {(left, right): place in the list of merges}; see `merge_ranks`   ->   the symbols, which add up to the word

    A heap yields the next pair, so that even a word of a million letters takes n log n steps.
    Source: Sennrich, Haddow & Birch 2016, §3.2.

    >>> apply_merges("lowest", {("l", "o"): 0, ("lo", "w"): 1, ("e", "s"): 2})
    ['low', 'es', 't']
    """
    symbols = _symbols(word)
    size = len(symbols)
    before, after = list(range(-1, size - 1)), list(range(1, size + 1))  # the positions of the neighbours
    queue = [(ranks[pair], i) for i, pair in enumerate(pairwise(symbols)) if pair in ranks]
    heapq.heapify(queue)
    while queue:
        rank, i = heapq.heappop(queue)
        j = after[i]
        if j == size or ranks.get((symbols[i], symbols[j])) != rank:
            continue  # one of the two symbols has been merged with another neighbour since the pair was queued
        symbols[i], symbols[j] = symbols[i] + symbols[j], None
        after[i] = after[j]
        if after[i] < size:
            before[after[i]] = i
        for left, right in ((before[i], i), (i, after[i])):
            if left >= 0 and right < size and (symbols[left], symbols[right]) in ranks:
                heapq.heappush(queue, (ranks[symbols[left], symbols[right]], left))
    return [symbol for symbol in symbols if symbol is not None]


def merge_ranks(merges: Iterable[tuple]) -> dict[tuple, int]:
    """The place of every pair in a list of merges, as `apply_merges` needs it.

    >>> merge_ranks([Merge("l", "o", 7), Merge("lo", "w", 7)])
    {('l', 'o'): 0, ('lo', 'w'): 1}
    """
    pairs = dict.fromkeys((left, right) for left, right, *_count in merges)  # each once
    return {pair: rank for rank, pair in enumerate(pairs)}


def _symbols(word):
    return [word[i : i + 1] for i in range(len(word))]


def _joined(symbols, pair):
    """The symbols with every occurrence of the pair merged, from the left."""
    (left, right), joined, i = pair, [], 0
    while i < len(symbols):
        here = symbols[i] == left and symbols[i + 1 : i + 2] == [right]
        joined.append(left + right if here else symbols[i])
        i += 2 if here else 1
    return joined
