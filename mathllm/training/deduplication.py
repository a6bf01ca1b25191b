"""Near-duplicate pages: shingles, MinHash signatures, and bands that find similar pages without comparing all pairs.

A page is the set of its shingles, the runs of a few words. A MinHash signature keeps, for each of many hash functions,
only the smallest value. Two sets have the same minimum with a probability equal to their Jaccard similarity. Signatures
are cut into bands, and only pages that share a band are compared (locality-sensitive hashing).
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from itertools import combinations

import numpy as np

from ..autodiff import ArrayLike
from ..errors import ShapeError, all_within, within
from ..shapes import real_array

_CHUNK = 2048  # items hashed at a time: bounds the memory of their (items, hashes) values


def shingles(text: str, size: int = 5) -> set[str]:
    """The runs of `size` words in a text, in lower case and without punctuation; a shorter text is one shingle.

    Raises: ValueError for a size below 1.
    Source: Broder 1997.

    >>> sorted(shingles("The cat sat. The cat sat!", size=3))
    ['cat sat the', 'sat the cat', 'the cat sat']
    """
    within("shingles", "whole [1, ∞)", size=size)
    words = _words(text)
    return {" ".join(words[i : i + size]) for i in range(max(len(words) - size, 0) + 1)} if words else set()


def jaccard_similarity(a: Collection, b: Collection) -> float:
    """The Jaccard similarity of two sets: 1 for equal sets, 0 for disjoint sets.

        J(A, B) = |A ∩ B| / |A ∪ B|                                                 (13.4)

    Two empty sets are equal.

    >>> jaccard_similarity({"a", "b", "c"}, {"b", "c", "d"})
    0.5
    """
    a, b = set(a), set(b)
    return len(a & b) / len(a | b) if a or b else 1.0


def minhash_signature(items: Iterable[str], hashes: int = 128, seed: int = 0) -> np.ndarray:
    """The MinHash signature of a set: for each of several hash functions the smallest hash of any item.

        h_k(A) = min over a ∈ A of hash_k(a),      P(h_k(A) = h_k(B)) = J(A, B)     (13.5)

    Every item of A ∪ B is equally likely to have the smallest hash, and the two minima agree exactly if this item is in
    both sets. An item is hashed once; the k-th hash is this hash combined with the k-th key and scrambled.

    items: strings   ->   (hashes,) uint64; the same seed gives the same signature on every machine

    Raises: ValueError for fewer than one hash function.
    Source: Broder 1997.

    >>> a, b = ({str(i) for i in range(low, low + 100)} for low in (0, 50))
    >>> jaccard_similarity(a, b), float(np.mean(minhash_signature(a, 1000) == minhash_signature(b, 1000)))
    (0.3333333333333333, 0.334)
    """
    within("minhash_signature", "whole [1, ∞)", hashes=hashes)
    import hashlib  # imported here, so that `import mathllm` stays quick

    digests = b"".join(hashlib.blake2b(item.encode("utf-8", "surrogatepass"), digest_size=8).digest() for item in items)
    values = np.frombuffer(digests, "<u8")
    keys = np.random.default_rng(seed).integers(2**64, size=hashes, dtype=np.uint64)
    smallest = np.full(hashes, 2**64 - 1, np.uint64)  # the minimum over an empty set
    for start in range(0, len(values), _CHUNK):
        hashed = _scrambled(values[start : start + _CHUNK, None] ^ keys)  # (items, hashes)
        smallest = np.minimum(smallest, hashed.min(axis=0))
    return smallest


def _scrambled(x):
    """A bijection of 64 bits that makes close numbers look unrelated (the last step of splitmix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def band_probability(similarity: ArrayLike, bands: int, rows: int) -> np.ndarray:
    """The probability that two pages of a given similarity share at least one whole band, an S-shaped curve.

        P = 1 − (1 − J^r)^b,      steepest near J = (1/b)^(1/r)                     (13.6)

    similarity: any shape, J from 0 to 1   bands: b   rows: r, the hashes of a band   ->   the same shape

    Raises: ValueError for a similarity outside [0, 1], or bands or rows below 1.
    Source: Leskovec, Rajaraman & Ullman 2014, §3.4.

    >>> band_probability(np.array([0.3, 0.5, 0.8]), bands=20, rows=5).round(3)
    array([0.047, 0.47 , 1.   ])
    """
    within("band_probability", "whole [1, ∞)", bands=bands, rows=rows)
    J = real_array("band_probability", similarity, float)
    all_within("band_probability", "[0, 1]", similarity=J)
    with np.errstate(divide="ignore"):  # J = 1: ln 0 = −∞
        return -np.expm1(bands * np.log1p(-(J**rows)))  # 1 − (1 − J^r)^b, with the digits of a small J^r


def candidate_pairs(signatures: Sequence[ArrayLike], bands: int) -> set[tuple[int, int]]:
    """The pairs of pages whose signatures agree in at least one whole band (locality-sensitive hashing).

    signatures: (n, K)   bands: a divisor of K   ->   pairs (i, j) with i < j

    Raises: ShapeError if the bands do not divide the signature evenly.
    Source: Leskovec, Rajaraman & Ullman 2014, §3.4.

    >>> pages = ["one two three four", "one two three four", "quite another page"]
    >>> candidate_pairs([minhash_signature(shingles(page, 2), 12) for page in pages], bands=4)
    {(0, 1)}
    """
    if len(signatures) == 0:
        return set()
    table = np.asarray(signatures)
    if table.ndim != 2 or bands < 1 or table.shape[1] % bands:
        raise ShapeError(f"candidate_pairs() cannot cut signatures of shape {table.shape} evenly into {bands} bands")
    pairs = set()
    for band in np.split(table, bands, axis=1):
        buckets = defaultdict(list)
        for page, row in enumerate(np.ascontiguousarray(band)):
            buckets[row.tobytes()].append(page)
        for pages in buckets.values():
            pairs.update(combinations(pages, 2))
    return pairs


def deduplicate(
    texts: Sequence[str], *, threshold: float = 0.8, size: int = 5, bands: int = 16, rows: int = 8, seed: int = 0
) -> list[int]:
    """The pages to keep: those that are no near-duplicate of an earlier page that is kept.

    texts: pages   threshold: pages with at least this Jaccard similarity are near-duplicates   size: words in a shingle
    bands, rows: of the signatures   ->   indices of the pages to keep, in order

    Texts with equal words are always found. Among the others the bands find candidates, and the similarity of each
    candidate pair is computed exactly. So every dropped page is similar to a page that is kept, and a pair of
    near-duplicates is missed with probability 1 − P of (13.6).
    Raises: ValueError for a threshold outside (0, 1].
    Source: Lee et al. 2022.

    >>> deduplicate(["The cat sat on the mat today.", "the cat sat on the MAT today", "A dog barks."])
    [0, 2]
    """
    within("deduplicate", "(0, 1]", threshold=threshold)
    first = {}
    for i, text in enumerate(texts):
        first.setdefault(" ".join(_words(text)) or text, i)
    different = list(first.values())
    sets = [shingles(texts[i], size) for i in different]
    pairs = candidate_pairs([minhash_signature(items, bands * rows, seed) for items in sets], bands)
    dropped = set()
    for earlier, later in sorted(pairs):
        both_kept = dropped.isdisjoint((earlier, later)) and sets[earlier]
        if both_kept and jaccard_similarity(sets[earlier], sets[later]) >= threshold:
            dropped.add(later)
    return [i for place, i in enumerate(different) if place not in dropped]


def _words(text):
    return re.findall(r"\w+", text.lower())
