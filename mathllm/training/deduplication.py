"""Which of a billion pages say the same? Comparing all pairs would never end; comparing fingerprints does.

A page is the set of its shingles (a few words in a row). A MinHash signature keeps, for each of many hash functions,
only the smallest value: two sets have the same minimum with just the probability of their Jaccard similarity. Cut
into bands and used as keys of a table, signatures bring the similar pages together without comparing any two others.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from itertools import combinations

import numpy as np

from ..errors import ShapeError

_NOTHING = np.uint64(2**64 - 1)  # the minimum over an empty set


def shingles(text: str, size: int = 5) -> set[str]:
    """The runs of `size` words in a text, in lower case and without punctuation; a shorter text is one shingle.

    Raises: ValueError for a size below 1.
    Source: Broder 1997.

    >>> sorted(shingles("The cat sat. The cat sat!", size=3))
    ['cat sat the', 'sat the cat', 'the cat sat']
    """
    if size < 1:
        raise ValueError(f"shingles() needs a size of at least 1, got {size}")
    words = re.findall(r"\w+", text.lower())
    return {" ".join(words[i : i + size]) for i in range(max(len(words) - size, 0) + 1)} if words else set()


def jaccard_similarity(a: Collection, b: Collection) -> float:
    """How much two sets have in common: 1 for equal sets, 0 for disjoint ones.

        J(A, B) = |A ∩ B| / |A ∪ B|                                                 (13.4)

    Two empty sets are equal.
    Source: 004, data preparation (MinHash).

    >>> jaccard_similarity({"a", "b", "c"}, {"b", "c", "d"})
    0.5
    """
    a, b = set(a), set(b)
    return len(a & b) / len(a | b) if a or b else 1.0


def minhash_signature(items: Iterable[str], hashes: int = 128, seed: int = 0) -> np.ndarray:
    """A fingerprint of a set: for each of several hash functions the smallest hash of any item.

        h_k(A) = min over a ∈ A of hash_k(a),      P(h_k(A) = h_k(B)) = J(A, B)     (13.5)

    The smallest hash of A ∪ B belongs to each of its items with equal probability, and the minima agree just if that
    item is in both. An item is hashed once; the k-th function then scrambles its 64 bits with the k-th key.

    items: strings   ->   (hashes,) uint64; the same seed on every machine gives the same signature

    Raises: ValueError for fewer than one hash function.
    Source: 004, data preparation; Broder 1997.

    >>> a, b = ({str(i) for i in range(low, low + 100)} for low in (0, 50))
    >>> jaccard_similarity(a, b), float(np.mean(minhash_signature(a, 1000) == minhash_signature(b, 1000)))
    (0.3333333333333333, 0.334)
    """
    if hashes < 1:
        raise ValueError(f"minhash_signature() needs at least one hash function, got {hashes}")
    import hashlib  # here and not above: `import mathllm` stays quick

    digests = b"".join(hashlib.blake2b(item.encode("utf-8", "surrogatepass"), digest_size=8).digest() for item in items)
    keys = np.random.default_rng(seed).integers(2**64, size=hashes, dtype=np.uint64)
    smallest = np.full(hashes, _NOTHING)
    for part in np.array_split(
        np.frombuffer(digests, "<u8"), max(len(digests) // 2**13, 1)
    ):  # fewer than 2,048 items at a time
        if len(part):
            smallest = np.minimum(smallest, _scramble(part[:, None] ^ keys).min(axis=0))  # (items, hashes) -> (hashes,)
    return smallest


def _scramble(x):
    """A bijection of 64 bits that makes close numbers look unrelated (the finaliser of splitmix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def estimated_similarity(a, b) -> float:
    """The share of places in which two signatures agree: an unbiased estimate of the Jaccard similarity.

        Ĵ = (1/K) Σ_k [h_k(A) = h_k(B)],      standard error √(J(1 − J)/K)

    Raises: ShapeError for signatures of different lengths.

    >>> estimated_similarity(minhash_signature({"x", "y"}), minhash_signature({"y", "x"}))
    1.0
    """
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or a.ndim != 1 or len(a) == 0:
        raise ShapeError(f"estimated_similarity() needs two signatures of one length, got {a.shape} and {b.shape}")
    return float(np.mean(a == b))


def band_probability(similarity, bands: int, rows: int):
    """The probability that two pages of a given similarity share at least one whole band: an S-shaped curve.

        P = 1 − (1 − J^r)^b,      steepest near J = (1/b)^(1/r)                     (13.6)

    similarity: any shape, J from 0 to 1   bands: b   rows: r, the hashes of a band   ->   the same shape

    Raises: ValueError for a similarity outside [0, 1], or bands or rows below 1.
    Source: Leskovec, Rajaraman & Ullman 2014, §3.4.

    >>> band_probability(np.array([0.3, 0.5, 0.8]), bands=20, rows=5).round(3)
    array([0.047, 0.47 , 1.   ])
    """
    J = np.asarray(similarity, float)
    if bands < 1 or rows < 1 or not np.all((J >= 0) & (J <= 1)):
        raise ValueError(f"band_probability() needs similarities from 0 to 1, bands and rows; got {bands} and {rows}")
    with np.errstate(divide="ignore"):  # J = 1: ln 0 = −∞
        return -np.expm1(bands * np.log1p(-(J**rows)))  # 1 − (1 − J^r)^b, with the digits of a small J^r


def candidate_pairs(signatures: Sequence, bands: int) -> set[tuple[int, int]]:
    """The pairs of pages whose signatures agree in at least one whole band (locality-sensitive hashing).

    signatures: (n, K)   bands: a divisor of K   ->   pairs (i, j) with i < j

    Raises: ShapeError if the bands do not divide the signature evenly.
    Source: Leskovec, Rajaraman & Ullman 2014, §3.4.

    >>> pages = ["one two three four", "one two three four", "quite another page"]
    >>> candidate_pairs([minhash_signature(shingles(page, 2), 12) for page in pages], bands=4)
    {(0, 1)}
    """
    table = np.asarray(signatures)
    if len(table) == 0:
        return set()
    if table.ndim != 2 or bands < 1 or table.shape[1] % bands:
        raise ShapeError(
            f"candidate_pairs() needs bands that divide the signatures evenly, got {bands} for {table.shape}"
        )
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
    """The pages to keep: of pages that say nearly the same, the first.

    texts: pages   threshold: the Jaccard similarity of shingles from which on two pages count as one   size: words in a
    shingle   ->   indices of the pages that stay, in order

    Texts of equal words are found first and for certain. Among the rest the bands find candidates, and each
    candidate's true similarity is computed, so no page goes without being similar to one that stays; with the
    probability 1 − P of (13.6) a copy is overlooked.
    Raises: ValueError for a threshold outside (0, 1].
    Source: 004, data preparation (exact and fuzzy deduplication); Lee et al. 2022.

    >>> deduplicate(["The cat sat on the mat today.", "the cat sat on the MAT today", "A dog barks."])
    [0, 2]
    """
    if not 0 < threshold <= 1:
        raise ValueError(f"deduplicate() needs a threshold in (0, 1], got {threshold}")
    first = {}
    for i, text in enumerate(texts):
        first.setdefault(" ".join(re.findall(r"\w+", text.lower())) or text, i)
    different = list(first.values())
    sets = [shingles(texts[i], size) for i in different]
    pairs = candidate_pairs([minhash_signature(items, bands * rows, seed) for items in sets], bands)
    dropped = set()
    for earlier, later in sorted(pairs):
        unsettled = sets[earlier] and dropped.isdisjoint((earlier, later))
        if unsettled and jaccard_similarity(sets[earlier], sets[later]) >= threshold:
            dropped.add(later)
    return [i for place, i in enumerate(different) if place not in dropped]
