"""Which pieces of words deserve a number of their own? Those that occur most: join the commonest pair, and repeat.

Byte-pair encoding starts from single symbols and merges the most frequent pair of neighbours again and again. What is
learned is the list of merges; replayed in their order on any word, they cut it into tokens.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple

_TIE_RULES = ("first appearance", "lexicographic", "lowest ids")


class Merge(NamedTuple):
    """One merge: the two symbols, and how often they stood side by side when they were joined."""

    left: str | bytes
    right: str | bytes
    count: int


def pair_counts(words: Iterable[str | bytes] | Mapping[str | bytes, int]) -> Counter:
    """How often each pair of neighbouring symbols occurs; pairs do not reach across words.

    words: words, or a table word -> number of occurrences   ->   {(left, right): count}, in order of first appearance

    Source: 004, tokenization in detail.

    >>> pair_counts(["low", "low", "owl"]).most_common(2)
    [(('o', 'w'), 3), (('l', 'o'), 2)]
    """
    counts = Counter()
    for word, repeats in Counter(words).items():
        for pair in pairwise(_symbols(word)):
            counts[pair] += repeats
    return counts


def learn_merges(
    words: Iterable[str | bytes] | Mapping[str | bytes, int],
    merges: int | None = None,
    *,
    ties: str = "first appearance",
    min_count: int = 1,
) -> list[Merge]:
    """Learn the merges of byte-pair encoding: join the most frequent pair of neighbours, and repeat.

        (a, b) ← argmax count(a, b),      a b → ab                                  (13.1)

    words: str (symbols are characters) or bytes (symbols are bytes), as a sequence or as a table word -> occurrences
    merges: at most so many; None for as many as there are   ->   the merges in their order

    Which of several equally frequent pairs is joined, is a convention, and it changes the vocabulary. `ties` says:
    "first appearance", the pair that stands first in the words in their order, which reproduces the run of 004
    (erratum C7); "lexicographic", the smallest pair; "lowest ids", the pair whose symbols are oldest, in the order
    GPT-2 gives the bytes and then the merges, as the library `tokenizers` does. Learning ends when no pair occurs
    `min_count` times.

    After a merge only the words that hold the pair are counted again, and a heap yields the next pair; an entry whose
    count has fallen since is put back where it belongs now.

    Raises: ValueError for a negative number of merges or an unknown rule for ties.
    Source: 004, tokenization in detail; Sennrich, Haddow & Birch 2016, algorithm 1.

    >>> corpus = "low low low low low lowest lowest newer newer newer wider wider".split()
    >>> [left + right for left, right, count in learn_merges(corpus, 5)]
    ['lo', 'low', 'er', 'ne', 'new']
    """
    if merges is not None and merges < 0:
        raise ValueError(f"learn_merges() needs a number of merges of at least 0, got {merges}")
    if ties not in _TIE_RULES:
        raise ValueError(f"learn_merges() knows the tie rules {', '.join(_TIE_RULES)}; got {ties!r}")
    pieces = _Pieces(Counter(words), ties)
    queue = [(pieces.place(pair), pair) for pair in pieces.counts]
    heapq.heapify(queue)
    learned = []
    while queue and (merges is None or len(learned) < merges):
        key, pair = heapq.heappop(queue)
        if pieces.counts[pair] < max(min_count, 1):
            continue
        if key != (now := pieces.place(pair)):
            heapq.heappush(queue, (now, pair))  # it has become rarer, or appears later, since it was queued
            continue
        learned.append(Merge(*pair, pieces.counts[pair]))
        for new in pieces.join(pair):
            heapq.heappush(queue, (pieces.place(new), new))
    return learned


class _Pieces:
    """Words cut into symbols, and the pairs of neighbours in them: how many there are, and in which words."""

    def __init__(self, table, ties):
        self.ties = ties
        self.symbols = [_symbols(word) for word in table]  # in order of first appearance
        self.repeats = list(table.values())
        self.counts, self.where = pair_counts(table), defaultdict(set)
        for word, symbols in enumerate(self.symbols):
            for pair in pairwise(symbols):
                self.where[pair].add(word)
        alphabet = sorted({symbol for symbols in self.symbols for symbol in symbols}, key=_byte_order)
        self.age = {symbol: i for i, symbol in enumerate(alphabet)}

    def place(self, pair):
        """The key of the heap: frequent pairs first, ties by the rule."""
        if self.ties == "lexicographic":
            return -self.counts[pair], pair
        if self.ties == "lowest ids":
            return -self.counts[pair], (self.age[pair[0]], self.age[pair[1]])
        word = min(self.where[pair])
        letters = 0  # before the pair: a measure that merging other symbols does not change
        for other in pairwise(self.symbols[word]):
            if other == pair:
                break
            letters += len(other[0])
        return -self.counts[pair], (word, letters)

    def join(self, pair):
        """Make one symbol of the pair wherever it stands; the pairs that come about by it."""
        joined, changed = pair[0] + pair[1], set()
        self.age.setdefault(joined, len(self.age))
        for word in tuple(self.where[pair]):
            before, after = self.symbols[word], _join(self.symbols[word], pair)
            for old in pairwise(before):
                self.counts[old] -= self.repeats[word]
                self.where[old].discard(word)
            for new in pairwise(after):
                self.counts[new] += self.repeats[word]
                self.where[new].add(word)
                if joined in new:
                    changed.add(new)
            self.symbols[word] = after
        return changed


def apply_merges(word: str | bytes, ranks: Mapping[tuple, int]) -> list:
    """Cut a word into tokens: of all pairs of neighbours join the one that was learned first, and repeat.

    ranks: {(left, right): place in the list of merges}; see `merge_ranks`   ->   the symbols, which add up to the word

    A heap finds the next pair, so that even a word of a million letters takes n log n steps.
    Source: 004, tokenization in detail; Sennrich, Haddow & Birch 2016, §3.2.

    >>> apply_merges("lowest", {("l", "o"): 0, ("lo", "w"): 1, ("e", "s"): 2})
    ['low', 'es', 't']
    """
    symbols = _symbols(word)
    size = len(symbols)
    before, after = list(range(-1, size - 1)), list(range(1, size + 1))  # the neighbours that are left
    queue = [(ranks[pair], i) for i, pair in enumerate(pairwise(symbols)) if pair in ranks]
    heapq.heapify(queue)
    while queue:
        rank, i = heapq.heappop(queue)
        j = after[i]
        if j == size or ranks.get((symbols[i], symbols[j])) != rank:
            continue  # one of the two has been joined to another symbol
        symbols[i], symbols[j] = symbols[i] + symbols[j], None
        after[i] = after[j]
        if after[i] < size:
            before[after[i]] = i
        for left, right in ((before[i], i), (i, after[i])):
            if left >= 0 and right < size and (symbols[left], symbols[right]) in ranks:
                heapq.heappush(queue, (ranks[symbols[left], symbols[right]], left))
    return [symbol for symbol in symbols if symbol is not None]


def merge_ranks(merges: Iterable[tuple]) -> dict[tuple, int]:
    """The place of every pair in a list of merges, as `apply_merges` wants it.

    >>> merge_ranks([Merge("l", "o", 7), Merge("lo", "w", 7)])
    {('l', 'o'): 0, ('lo', 'w'): 1}
    """
    ranks = {}
    for left, right, *_count in merges:
        ranks.setdefault((left, right), len(ranks))
    return ranks


def _symbols(word):
    return [word[i : i + 1] for i in range(len(word))]


def _join(symbols, pair):
    """The symbols with every occurrence of the pair joined, from the left."""
    left, right = pair
    joined, i = [], 0
    while i < len(symbols):
        if symbols[i] == left and i + 1 < len(symbols) and symbols[i + 1] == right:
            joined.append(left + right)
            i += 2
        else:
            joined.append(symbols[i])
            i += 1
    return joined


def _byte_order(symbol):
    """GPT-2 numbers the printable bytes first; characters stand in the order of Unicode."""
    return (0, symbol) if isinstance(symbol, str) else (not _is_printable(symbol[0]), symbol)


def _is_printable(byte):
    return 33 <= byte <= 126 or 161 <= byte <= 172 or byte >= 174
