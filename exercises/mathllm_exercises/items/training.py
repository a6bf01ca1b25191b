"""Chapter 13, the training run: tokens, fingerprints, costs, short numbers, shared work, a model of one's own."""

from collections import Counter
from itertools import pairwise

import numpy as np

import mathllm as ml

from ..cases import each
from ..compare import numeric, show
from ..item import Check, Item, Mistake, gradient, keeps_dtype, leaves_inputs, quick, values

# Warm-up ------------------------------------------------------------------------------------------------------------

_STEMS = ("low", "newer", "lower", "slow", "sower", "wider", "lowest", "wide", "west", "towel", "rower", "widow")


def _joined(words, merges=3):
    return [left + right for left, right, _ in ml.learn_merges(words, merges)]


def _types_only(words):
    return _joined(dict.fromkeys(words, 1))


def _never_counted_again(words):
    pairs = Counter()
    for word, repeats in words.items():
        for pair in pairwise(word):
            pairs[pair] += repeats
    return [left + right for (left, right), _ in pairs.most_common(3)]


def _clear_corpus(rng):
    """Four words whose first three merges have no ties, and on which the known mistakes lead elsewhere."""
    while True:
        chosen = rng.choice(_STEMS, size=4, replace=False)
        words = {str(word): int(count) for word, count in zip(chosen, rng.integers(2, 9, size=4), strict=True)}
        same = {tuple(_joined_by(words, ties)) for ties in ("first appearance", "lexicographic")}
        right = _joined(words)
        wrong = (_types_only(words), _never_counted_again(words), right[::-1])
        if len(same) == 1 and right not in wrong and len({*map(tuple, wrong)}) == 3 and _no_ties(words):
            return {"words": words}


def _joined_by(words, ties):
    return [left + right for left, right, _ in ml.learn_merges(words, 3, ties=ties)]


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


OWN_MERGES = Item(
    id="13.training.own_merges",
    kind="value",
    title="Three merges by hand",
    difficulty=1,
    minutes=8,
    source="Part II (004), tokenization in detail",
    answer="merged",
    task="""
`mine.words` says how often each of four words occurs. Run byte-pair encoding from single letters, by hand: which
symbol does each of the first three merges make? Give three strings in a list, `merged`. (No ties occur.)
""",
    numbers=_clear_corpus,
    expected=_joined,
    checks=(values(2),),
    mistakes=(
        Mistake(_types_only, "You counted each word once. A pair counts as often as its word occurs."),
        Mistake(_never_counted_again, "These are the commonest pairs of the start. Count again after each merge."),
        Mistake(
            lambda words: _joined(words)[::-1], "The right symbols in the wrong order: the first merge comes first."
        ),
        Mistake(
            lambda words: [[left, right] for left, right, _ in ml.learn_merges(words, 3)],
            'These are the pairs. Give the symbol that each makes, both letters in one string: `"ab"`.',
        ),
    ),
    hints=(
        "Make a table of all pairs of neighbours, each weighted by its word.",
        "Join, write the words anew, count again.",
    ),
    references=("part2.bpe.merge1", "part2.bpe.merge2", "part2.bpe.counts"),
)

SEVEN_BILLION = Item(
    id="13.training.seven_billion",
    kind="value",
    title="The rule and the real model",
    difficulty=2,
    minutes=10,
    source="Part II (004), training exercises (a)",
    answer="sizes",
    task="""
A model has $L = 32$ blocks and $D = 4096$. Give three numbers in a list, `sizes`: the estimate $12LD^2$; the exact
number of LLaMA-7B (32 blocks of width 4096; four square projections; a gated network of three matrices with
$F = 11008$; two norms of $D$ numbers per block and one at the end; **two** tables of 32,000 rows; no biases); and
the first divided by the second, right to four decimals.
""",
    expected=lambda: [6442450944, 6738415616, 6442450944 / 6738415616],
    checks=(values(3, decimals=4),),
    mistakes=(
        Mistake(
            lambda: [6442450944, 6738415616 - 32000 * 4096, 6442450944 / (6738415616 - 32000 * 4096)],
            "One table of 32,000 rows is missing: LLaMA does not tie embedding and unembedding.",
        ),
        Mistake(
            lambda: [6442450944, 6738415616 - 65 * 4096, 6442450944 / (6738415616 - 65 * 4096)],
            "The norms are missing: two vectors per block and one at the end.",
        ),
        Mistake(
            lambda: [6442450944, 6738415616 - 4096, 6442450944 / (6738415616 - 4096)],
            "Nearly: the norm at the end is missing, 4096 numbers.",
        ),
        Mistake(
            lambda: [6442450944, 6738415616 - 2 * 32000 * 4096, 6442450944 / (6738415616 - 2 * 32000 * 4096)],
            "The blocks are right. The two tables of 32,000 rows of width 4096 are missing.",
        ),
        Mistake(
            lambda: [6442450944, 6738415616 - 32 * 4096 * 11008, 6442450944 / (6738415616 - 32 * 4096 * 11008)],
            "A gated network has three matrices, not two.",
        ),
        Mistake(lambda: [6442450944, 6738415616, 6738415616 / 6442450944], "The quotient is the other way round."),
    ),
    hints=("Block: 4 D² + 3 D F + 2 D.", "Tables: 2 · 32,000 · 4096. Last norm: 4096."),
    references=("part2.trainq.a_params", "part2.trainq.a_llama", "part2.trainq.a_ratio"),
)

UPDATES = Item(
    id="13.training.updates",
    kind="value",
    title="How many steps?",
    difficulty=1,
    minutes=4,
    source="Part II (004), training exercises (b) and optimizer exercises (c)",
    answer="steps",
    task="""
A 7B model is trained on 2 trillion tokens with 4 million tokens in a batch, and the warm-up takes 2 % of the run. Give
two whole numbers in a list, `steps`: all updates, and those of the warm-up.
""",
    expected=lambda: [500_000, 10_000],
    checks=(values(2, rtol=0),),
    mistakes=(
        Mistake(lambda: [500, 10], "A trillion is 10¹², a million 10⁶: the quotient is 0.5 · 10⁶."),
        Mistake(lambda: [500_000, 1_000_000], "2 % is 0.02, not 2."),
        Mistake(lambda: [500_000, 100], "2 % is 0.02: two in a hundred, not two in ten thousand."),
        Mistake(
            lambda: [1_000_000, 20_000], "Documents speak of millions of steps; these numbers give half a million."
        ),
        Mistake(lambda: [500_000, 490_000], "The second number is the warm-up itself, not what comes after it."),
    ),
    hints=("Tokens divided by tokens per step.", "Then 2 % of it."),
    references=("part2.trainq.b_updates", "part2.optq.c_total", "part2.optq.c_warmup", "part2.tf.steps_vs_millions"),
)


def _fleet(rng):
    return {
        "billions": int(rng.choice([3, 7, 13, 30, 70])),
        "workers": int(rng.choice([8, 16, 64])),
        "stage": int(rng.integers(1, 3)),
    }


OWN_MEMORY = Item(
    id="13.training.own_memory",
    kind="value",
    title="What one machine must hold",
    difficulty=2,
    minutes=6,
    source="Part II (004), memory estimation; Foundations (001), section 9.4",
    answer="gigabytes",
    task="""
A model of `mine.billions` billion parameters is trained in mixed precision (2 bytes of weight, 4 of master copy, 8 of
moments, 4 of gradient) on `mine.workers` machines, with ZeRO stage `mine.stage` (1: master copy and moments are
divided; 2: gradients as well). Give two numbers in a list, `gigabytes`: what the state takes on **one** machine without
ZeRO, and with it, in GB of 10⁹ bytes, right to two decimals.
""",
    numbers=_fleet,
    expected=lambda billions, workers, stage: [
        18.0 * billions,
        ml.training.zero_memory(billions * 1e9, workers, stage).total / 1e9,
    ],
    checks=(values(2, decimals=2),),
    mistakes=(
        Mistake(
            lambda billions, workers, stage: [18.0 * billions, 18.0 * billions / workers],
            "Not everything is divided: below stage 3 each machine keeps all the 16-bit weights.",
        ),
        Mistake(
            lambda billions, workers, stage: [
                18.0 * billions,
                ml.training.zero_memory(billions * 1e9, workers, 3 - stage).total / 1e9,
            ],
            "Stages 1 and 2 have changed places: only stage 2 divides the gradients.",
        ),
        Mistake(
            lambda billions, workers, stage: [14.0 * billions, (2 + 12 / workers) * billions],
            "14 bytes leave out the gradient (as a document does). With it there are 18.",
        ),
        Mistake(
            lambda billions, workers, stage: [18.0 * billions, (10 + 8 / workers) * billions],
            "Only the moments are divided here. Stage 1 divides the master copy as well.",
        ),
        Mistake(
            lambda billions, workers, stage: [
                18e9 * billions / 2**30,
                ml.training.zero_memory(billions * 1e9, workers, stage).total / 2**30,
            ],
            "These are GiB, of 2³⁰ bytes. Asked for are GB, of 10⁹.",
        ),
    ),
    hints=(
        "Without ZeRO: 18 bytes each.",
        "Divide 4 + 8 (and in stage 2 another 4) by the number of machines; keep the rest.",
    ),
    references=("part2.mem.7b", "part2.mem.no_grad"),
)


# Core ---------------------------------------------------------------------------------------------------------------

TWO_ANSWERS = Item(
    id="13.training.rule_and_format",
    kind="text",
    title="A rule of thumb and a format",
    difficulty=1,
    minutes=10,
    source="Part II (004), training exercises (a) and (c)",
    task="""
Answer in three to five sentences each. (a) For 32 blocks of width 4096, how does $12LD^2$ compare with the real
LLaMA-7B, and what does the rule leave out? (b) Why is bfloat16 preferred to float16 for training large models, what
does it cost, and why is the cost bearable?
""",
    rubric=(
        (1, "(a) 6.44 billion against 6.74 billion: within about 5 %."),
        (1, "(a) Embeddings (here two tables) and norms are left out."),
        (1, "(b) bfloat16 has the 8 exponent bits of float32, so the same range, about 1e−38 to 3e38."),
        (1, "(b) float16 overflows at 65,504 and loses gradients below 6e−8, so it needs loss scaling."),
        (1, "(b) The price is precision, 7 bits of mantissa: tolerable with 32-bit master weights."),
    ),
    hints=(
        "Your numbers of the exercise *The rule and the real model* help in (a).",
        "Count the bits of both exponents.",
    ),
    references=("part2.trainq.a_compare", "part2.trainq.c_bf16"),
)


def _some_words(rng):
    """Words with one commonest pair, which is another one if words count once, and the same across their borders."""
    cases = []
    for letters, count in [("abc", 4), ("abcd", 5), ("abcdef", 6)]:
        while True:
            words = ["".join(rng.choice(list(letters), size=rng.integers(2, 7))) for _ in range(count)]
            words = [list(word) for word in dict.fromkeys(words)]
            case = words, [int(n) for n in rng.integers(1, 8, size=len(words))]
            best = _best_pair(*case)
            if best == _best_pair(*case, ties="last") == _across_words(*case) != _best_pair(*case, weigh=False):
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
    else:
        best = max(counts, key=counts.get)
    return [*best, counts[best]]


def _across_words(words, repeats):
    line = [symbol for symbols, n in zip(words, repeats, strict=True) for _ in range(n) for symbol in symbols]
    return _best_pair([line], [1])


LOW = ([list("low"), list("lowest"), list("newer"), list("wider")], [5, 2, 3, 2])
# Pairs of equal counts: the first to appear is neither the smallest nor the last.
TIED = ([["b", "c"], ["a", "b"], ["x", "y"]], [2, 2, 2])
# A pair that is commonest only if words are run together.
APART = ([["q", "a"], ["z", "q"], ["z", "q", "r"]], [3, 1, 1])
# A pair that occurs twice in a word.
TWICE = ([list("banana"), list("xy")], [2, 3])
# A pair in many rare words, and one in a frequent word.
RARE = ([["a", "b"], ["a", "b", "c"], ["x", "y"]], [1, 1, 9])

MOST_FREQUENT_PAIR = Item(
    id="13.training.most_frequent_pair",
    kind="function",
    title="Which pair is next?",
    difficulty=2,
    minutes=10,
    source="Part II (004), tokenization in detail",
    answer="most_frequent_pair",
    masked=("most_frequent_pair", "learn_merges", "train_tokenizer"),
    task="""
Write `most_frequent_pair(words, repeats)`. `words` is a list of words, each a list of symbols (strings of one letter or
more); `repeats` says how often each word occurs. Return a list of three: the two symbols of the pair of neighbours that
occurs most often, and its count.

- Pairs do not reach across words.
- Of equally frequent pairs the one that is met **first** wins, reading words in their order from the left.
""",
    expected=_best_pair,
    checks=(
        values(2, _some_words, public=[LOW, TWICE], name="the right pair"),
        values(1, public=[TIED], name="ties go to the first"),
        values(1, public=[APART], name="not across words"),
        values(1, public=[RARE, ([["lo", "w"], ["ne", "w"]], [1, 4])], name="words count as often as they occur"),
    ),
    mistakes=(
        Mistake(
            lambda words, repeats: _best_pair(words, repeats, weigh=False),
            "Each word was counted once. A pair counts `repeats` times.",
            score=0,
        ),
        Mistake(
            lambda words, repeats: _best_pair(words, repeats, pairs=lambda symbols: dict.fromkeys(pairwise(symbols))),
            "A pair that occurs twice in a word was counted once: *banana* holds `a n` twice.",
            score=3,
        ),
        Mistake(
            lambda words, repeats: [tuple(_best_pair(words, repeats)[:2]), _best_pair(words, repeats)[2]],
            "The right pair and count. Asked for are three entries: `[left, right, count]`.",
            score=0,
        ),
        Mistake(
            lambda words, repeats: _best_pair(words, repeats, ties="smallest"),
            "Ties went to the smallest pair in the alphabet. Here the first one met wins.",
            score=4,
        ),
        Mistake(
            lambda words, repeats: _best_pair(words, repeats, ties="last"),
            "Ties went to the last pair. `max(counts, key=counts.get)` takes the first of equals.",
            score=2,
        ),
        Mistake(_across_words, "Pairs were counted across the borders of words.", score=4),
    ),
    hints=(
        "A dictionary keeps the order in which its keys were met.",
        "`zip(symbols, symbols[1:])` gives the pairs of neighbours.",
    ),
    references=("part2.bpe.merge1", "part2.bpe.merge4", "part2.bpe.tie_break"),
)


def _merge(symbols, left, right):
    joined, i = [], 0
    while i < len(symbols):
        if i + 1 < len(symbols) and symbols[i] == left and symbols[i + 1] == right:
            joined.append(left + right)
            i += 2
        else:
            joined.append(symbols[i])
            i += 1
    return joined


def _overlapping(symbols, left, right):
    joined = []
    for i, symbol in enumerate(symbols):
        if i + 1 < len(symbols) and symbol == left and symbols[i + 1] == right:
            joined.append(left + right)
        elif i == 0 or symbols[i - 1] != left or symbol != right:
            joined.append(symbol)
    return joined


def _only_once(symbols, left, right):
    for i in range(len(symbols) - 1):
        if symbols[i] == left and symbols[i + 1] == right:
            return [*symbols[:i], left + right, *symbols[i + 2 :]]
    return list(symbols)


def _by_text(symbols, left, right):
    text = " ".join(symbols).replace(f"{left} {right}", left + right)
    return text.split(" ")


def _to_merge(rng):
    return [
        ([str(s) for s in rng.choice(list("abc"), size=n)], *pair) for n in (5, 12) for pair in [("a", "b"), ("b", "a")]
    ]


REPAIR_MERGE = Item(
    id="13.training.repair_merge",
    kind="repair",
    title="Mend it: a merge that loses letters",
    difficulty=2,
    minutes=10,
    source="after Part II (004), tokenization in detail",
    answer="merge",
    masked=("merge", "apply_merges"),
    task="""
This function should join every occurrence of a pair in a word. For `["b", "a", "n", "a", "n", "a"]` and the pair `a n`
it works. Try it with `["a", "a", "a"]` and the pair `a a`; then with a word without the pair.

```python
def merge(symbols, left, right):
    joined = []
    for i, symbol in enumerate(symbols):
        if i + 1 < len(symbols) and symbol == left and symbols[i + 1] == right:
            joined.append(left + right)
        elif i == 0 or symbols[i - 1] != left or symbol != right:
            joined.append(symbol)
    return joined
```

Occurrences are joined from the left and do not overlap; the symbols of the result add up to the word. Symbols may be
longer than a letter, and the list handed in is left as it was.
""",
    expected=_merge,
    checks=(
        values(1, _to_merge, public=[(list("banana"), "a", "n")], name="ordinary words"),
        values(2, public=[(["a"] * n, "a", "a") for n in (2, 3, 4, 5)], name="pairs of equal symbols"),
        values(1, public=[(["xa", "b", "a", "b"], "a", "b"), (["a"], "a", "a")], name="long symbols and short words"),
        leaves_inputs(1, public=[(list("banana"), "a", "n")]),
    ),
    mistakes=(
        Mistake(_overlapping, "Still as given: after a merge the next symbol is used up. Move on by two.", score=3),
        Mistake(_only_once, "Only the first occurrence was joined.", score=1),
        Mistake(
            _by_text, "Joining text finds pairs inside longer symbols: `xa b` holds `a b` only as letters.", score=4
        ),
    ),
    hints=("A `while` loop can move on by one or by two.", "Compare symbols as wholes, not as text."),
)


@each
def _hash_cases(rng, size):
    """Two sets that share half of their items, and 2·size functions that tell the estimate from known mistakes."""
    items, K = rng.choice(10_000, size=size, replace=False), 2 * size
    other = np.concatenate([items[: size // 2], rng.choice(np.arange(10_000, 20_000), size=size // 2, replace=False)])
    while True:
        case = (items, other, rng.integers(1, 10_007, size=K), rng.integers(10_007, size=K))
        wrong = _estimate(*case, how=np.max), _jaccard(*case), _share_of_first(*case), _smallest_together(*case)
        if _estimate(*case) not in (0, *wrong):
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


MINHASH = Item(
    id="13.training.minhash",
    kind="function",
    title="Fingerprints",
    difficulty=2,
    minutes=12,
    source="Part II (004), data preparation (MinHash)",
    answer="estimated_jaccard",
    masked=("minhash_signature", "jaccard_similarity"),
    task="""
Two sets of whole numbers come as arrays `a` and `b`. There are $K$ hash functions,
$h_k(x) = (m_k x + s_k) \\bmod 10007$, whose numbers stand in the arrays `multipliers` and `shifts`. Write
`estimated_jaccard(a, b, multipliers, shifts)`: the share of the $K$ functions for which the **smallest** hash of `a`
equals the smallest hash of `b`. Duplicates in `a` or `b` change nothing, and neither does their order.
""",
    expected=_estimate,
    checks=(
        values(3, _hash_cases(4, 12), name="right values"),
        values(
            1,
            public=[
                (np.array([5, 5, 9]), np.array([9, 5]), np.array([3, 7, 11]), np.array([0, 1, 2])),
                (np.array([1, 2]), np.array([1, 2, 3, 4]), np.array([1, 9, 27, 81]), np.array([5, 4, 3, 2])),
            ],
            name="sets, not lists",
        ),
        leaves_inputs(1, _hash_cases(6)),
    ),
    mistakes=(
        Mistake(_jaccard, "This is the true Jaccard similarity. Asked for is its estimate from the minima.", score=0),
        Mistake(
            _smallest_together,
            "These are the smallest hashes of all functions together. Each function has its own minimum.",
            score=0,
        ),
        Mistake(
            lambda *case: _estimate(*case, how=np.max),
            "These are the largest hashes. The smallest were asked for.",
            score=0,
        ),
        Mistake(
            lambda a, b, multipliers, shifts: _estimate(a, b, multipliers, shifts) * len(shifts),
            "This is the number of functions that agree. Divide by K: a share was asked for.",
            score=0,
        ),
        Mistake(_share_of_first, "You looked for hashes that both have. Compare the minima only.", score=1),
    ),
    hints=("`(a[:, None] * multipliers + shifts) % 10007` has the shape (items, K).", "The minimum runs along axis 0."),
)


def _short_numbers(rng):
    return [
        (np.exp2(rng.uniform(-20, 20, size=n)).astype(np.float32) * rng.choice([-1, 1], size=n).astype(np.float32),)
        for n in (1, 9, 40)
    ]


def _rounded(x, bits=7, exponent=lambda x: np.frexp(x)[1] - 1, to_whole=np.rint):
    """The task's formula; the arguments are the places where it is done wrongly."""
    with np.errstate(all="ignore"):
        spacing = np.exp2(exponent(x) - np.float32(bits))
        return (spacing * to_whole(x / spacing)).astype(np.float32)


def _as_bfloat16(x):
    return ml.training.round_to(x, format=ml.training.BFLOAT16)


def _bits_cut(x):
    return (x.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)


def _half_up(x):
    with np.errstate(over="ignore"):
        bits = x.view(np.uint32) + np.uint32(0x8000)
    return (bits & np.uint32(0xFFFF0000)).view(np.float32)


def _as_float16(x):
    with np.errstate(over="ignore"):
        return x.astype(np.float16).astype(np.float32)


ROUND_BFLOAT16 = Item(
    id="13.training.round_bfloat16",
    kind="function",
    title="Seven bits of mantissa",
    difficulty=3,
    minutes=15,
    source="Foundations (001), section 9.3; Part II (004), mixed precision training",
    answer="round_bfloat16",
    masked=("round_to", "round_bfloat16", "mixed_precision_gradient"),
    task="""
Write `round_bfloat16(x)` for an array of `float32` numbers that are zero or between $2^{-100}$ and $2^{100}$ in size:
the nearest number with 7 bits of mantissa, still as `float32`.

$$q = 2^{\\lfloor\\log_2|x|\\rfloor - 7}, \\qquad y = q\\cdot\\operatorname{round}(x/q)$$

- Halfway cases go to the **even** multiple of $q$ (as `np.rint` does). Zero stays zero.
- Take $\\lfloor\\log_2|x|\\rfloor$ exactly: `np.frexp(x)[1] - 1` does.
- The input is left as it was.
""",
    expected=_as_bfloat16,
    checks=(
        values(
            2, _short_numbers, public=[(np.array([1.0, 3.14159, -0.1], np.float32),)], name="right values", rtol=1e-7
        ),
        values(
            2,
            public=[(np.array([1 + 1 / 256, 1 + 3 / 256, -(2 + 1 / 128)], np.float32),)],
            name="halfway to the even one",
            rtol=1e-7,
        ),
        values(
            1,
            public=[(np.zeros(2, np.float32),), (np.array([1e30, -1e-30], np.float32),)],
            name="zero, large and small",
            rtol=1e-7,
        ),
        keeps_dtype(1, _short_numbers),
        leaves_inputs(1, _short_numbers),
    ),
    mistakes=(
        Mistake(_bits_cut, "The bits were cut off, not rounded: that always goes towards zero.", score=0),
        Mistake(_half_up, "Halfway cases went away from zero. They go to the even multiple: `np.rint`.", score=5),
        Mistake(
            lambda x: _rounded(x, to_whole=lambda r: np.floor(r + 0.5)),
            "Halfway cases went up. They go to the even multiple: `np.rint`.",
            score=5,
        ),
        Mistake(
            lambda x: _rounded(x, exponent=lambda x: np.frexp(x)[1]),
            "The spacing is twice too wide: `np.frexp` gives a mantissa between ½ and 1, so take its exponent − 1.",
            score=3,
        ),
        Mistake(
            lambda x: _rounded(x, bits=8),
            "This keeps 8 bits: bfloat16 has 8 bits of exponent, and 7 of mantissa.",
            score=1,
        ),
        Mistake(
            lambda x: _rounded(x, exponent=lambda x: np.floor(np.log2(np.abs(x)))),
            "Right but for zero, which has no logarithm: log₂ 0 = −∞, and the result is NaN.",
            score=6,
        ),
        Mistake(_as_float16, "This is float16: more digits, less range. bfloat16 has 7 bits of mantissa.", score=0),
        Mistake(lambda x: _as_bfloat16(x.astype(float)), "Right, but float32 became float64 on the way.", score=6),
    ),
    hints=(
        "`np.ldexp(1.0, exponent - 7)` is the spacing q.",
        "For zero, frexp gives the exponent 0: then 0/q is 0, and all is well.",
    ),
    references=("foundations.bf16.mantissa_bits", "foundations.bf16.eps"),
)


def _shares_of_batch(rng):
    cases = []
    for counts in ([3, 5], [7, 1, 4], [2, 0, 6]):
        cases.append(([rng.normal(size=(2, 3)) for _ in counts], [int(n) for n in counts]))
    return cases


def _weighted(gradients, counts):
    total = sum(counts)
    return sum(n / total * g for g, n in zip(gradients, counts, strict=True))


def _added_in_place(gradients, counts):
    total = sum(counts)
    for g, n in zip(gradients, counts, strict=True):
        g *= n / total
    return sum(gradients)


REPAIR_MEAN = Item(
    id="13.training.repair_mean",
    kind="repair",
    title="Mend it: the mean of means",
    difficulty=2,
    minutes=8,
    source="after Part II (004), table of parallelism; Foundations (001), section 9.4",
    answer="combine",
    masked=("combine", "parallel_value_and_grad"),
    task="""
A batch is cut into shares, and each worker returns the gradient of the **mean** loss over its own targets. This code
combines them:

```python
def combine(gradients, counts):
    return sum(gradients) / len(gradients)
```

`gradients` is a list of arrays of one shape, `counts` the number of targets of each share (padding does not count; a
share may have none). Mend it, so that the result is the gradient of the mean over all targets. Leave the arrays handed
in as they were.
""",
    expected=_weighted,
    checks=(
        values(3, _shares_of_batch, public=[([np.array([1.0]), np.array([4.0])], [3, 1])], name="unequal shares"),
        values(1, public=[([np.array([1.0, 2.0]), np.array([3.0, 6.0])], [5, 5])], name="equal shares"),
        leaves_inputs(1, _shares_of_batch),
    ),
    mistakes=(
        Mistake(
            lambda gradients, counts: sum(gradients) / len(gradients),
            "Still the mean of means: a target in a small share counts more than one in a large share.",
            score=1,
        ),
        Mistake(lambda gradients, counts: sum(gradients), "These are summed, not averaged.", score=0),
        Mistake(
            lambda gradients, counts: sum(n * g for g, n in zip(gradients, counts, strict=True)),
            "Weighted by the counts, but not divided by their sum.",
            score=0,
        ),
        Mistake(
            lambda gradients, counts: _weighted(gradients, counts) * sum(counts) / len(counts),
            "Weighted by the counts, but divided by the number of shares. Divide by the sum of the counts.",
            score=0,
        ),
        Mistake(_added_in_place, "Right, but `g *= …` overwrote the workers' gradients.", score=4),
    ),
    hints=("From a mean back to a sum: multiply by the count.", "Weights n_w / n, with n the sum of all counts."),
)


def _logits_and_targets(rng):
    cases = []
    for B, T, V in [(1, 3, 4), (2, 4, 5)]:
        targets = rng.integers(V, size=(B, T))
        targets[0, 0] = -100
        cases.append((rng.normal(size=(B, T, V)), targets, float(rng.normal())))
    return cases


def _loss_slopes(logits, targets, dy, ignore=True, number=None):
    counted = targets != -100 if ignore else np.ones(targets.shape, bool)
    slopes = ml.softmax(logits) - ml.one_hot(np.where(targets == -100, 0, targets), logits.shape[-1])
    return slopes * counted[..., None] * dy / (counted.sum() if number is None else number)


LOSS_PULLBACK = Item(
    id="13.training.loss_pullback",
    kind="gradient",
    title="Where training begins",
    difficulty=3,
    minutes=15,
    source="Part II (004), transformer trace, step 8; Pillars (002), gradient of cross-entropy",
    answer="loss_pullback",
    masked=("vjp", "grad", "value_and_grad", "check_gradient"),
    task="""
The loss of a batch is the mean of $-\\ln p(\\text{target})$ over the targets that count; a target of −100 does not
count. Derive its gradient with respect to the logits of shape `(B, T, V)`, and write
`loss_pullback(logits, targets, dy)`, which returns the gradient times the number `dy`, in the shape of the logits.
""",
    expected=_loss_slopes,
    checks=(
        gradient(3, ml.cross_entropy, _logits_and_targets, rtol=1e-5),
        values(
            2,
            public=[(np.array([[[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]]), np.array([[1, -100, 0]]), 1.0)],
            name="a target that does not count",
        ),
        leaves_inputs(1, _logits_and_targets),
    ),
    mistakes=(
        Mistake(
            lambda logits, targets, dy: _loss_slopes(logits, targets, dy, ignore=False),
            "Targets of −100 were counted: they have no gradient, and they are not in the mean.",
        ),
        Mistake(
            lambda logits, targets, dy: _loss_slopes(logits, targets, dy, ignore=False, number=(targets != -100).sum()),
            "The number of targets is right. But those of −100 still have a gradient: it must be 0.",
        ),
        Mistake(
            lambda logits, targets, dy: _loss_slopes(logits, targets, dy, number=1),
            "This is the gradient of the sum. Divide by the number of targets that count.",
        ),
        Mistake(
            lambda logits, targets, dy: _loss_slopes(logits, targets, dy, number=targets.size),
            "You divided by all positions. Only those count whose target is not −100.",
        ),
        Mistake(
            lambda logits, targets, dy: _loss_slopes(logits, targets, 1.0),
            "`dy` has been left out: every slope is multiplied by it.",
            score=2,
        ),
        Mistake(lambda logits, targets, dy: -_loss_slopes(logits, targets, dy), "The sign is wrong: p − y, not y − p."),
    ),
    hints=(
        "For one target the gradient is p − y (chapter 7).",
        "`np.where(targets == -100, 0, targets)` makes an index of each.",
    ),
)


def _draws(rng):
    return [(rng.normal(size=n) + 3, rng.integers(n, size=(B, n))) for n, B in [(5, 40), (30, 100)]]


def _interval(values_, draws, low=0.025, high=0.975):
    means = values_[draws].mean(axis=1)
    return [*np.quantile(means, [low]), values_.mean(), *np.quantile(means, [high])]


BOOTSTRAP = Item(
    id="13.training.bootstrap",
    kind="function",
    title="How sure?",
    difficulty=2,
    minutes=10,
    source="Putting it together (000), summary of evaluation",
    answer="bootstrap",
    masked=("bootstrap_interval", "perplexity_interval"),
    task="""
Write `bootstrap(values, draws)`: a 95 % interval for the mean of `values`, an array of $n$ numbers, one per document.
Chance comes from outside: each row of `draws`, of shape `(R, n)`, holds the $n$ places of one draw with replacement.
Return a list of three numbers: the 2.5 % quantile (`np.quantile`) of the $R$ means, the mean of the values themselves,
and the 97.5 % quantile.
""",
    expected=_interval,
    checks=(
        values(3, _draws, name="right values"),
        values(1, public=[(np.array([1.0, 2.0, 6.0]), np.array([[0, 0, 1], [2, 2, 2], [1, 1, 1]]))], name="by hand"),
        leaves_inputs(1, _draws),
    ),
    mistakes=(
        Mistake(
            lambda v, draws: [
                v.mean() - 1.96 * v.std() / len(v) ** 0.5,
                v.mean(),
                v.mean() + 1.96 * v.std() / len(v) ** 0.5,
            ],
            "This is the formula for a normal distribution. Use the quantiles of the resampled means.",
        ),
        Mistake(
            lambda v, draws: [*np.quantile(v, [0.025]), v.mean(), *np.quantile(v, [0.975])],
            "These are quantiles of the values. Asked for are quantiles of their resampled means.",
        ),
        Mistake(
            lambda v, draws: _interval(v, draws, 0.05, 0.95),
            "5 % at either end leave 90 %. Leave out 2.5 % on each side.",
        ),
        Mistake(
            lambda v, draws: [_interval(v, draws)[0], v[draws].mean(), _interval(v, draws)[2]],
            "In the middle stands the mean of the values themselves, not that of the draws.",
        ),
        Mistake(
            lambda v, draws: [
                np.quantile(v[draws].mean(axis=0), 0.025),
                v.mean(),
                np.quantile(v[draws].mean(axis=0), 0.975),
            ],
            "The means run the wrong way: each *row* of `draws` is a draw, so `axis=1`.",
        ),
        Mistake(
            lambda v, draws: [_interval(v, draws)[i] for i in (0, 2, 1)],
            "The right numbers in another order: lower end, mean, upper end.",
        ),
        Mistake(
            lambda v, draws: _interval(v, draws, 0.00025, 0.00975),
            "`np.percentile` counts in per cent: 2.5 and 97.5. `np.quantile` takes 0.025 and 0.975.",
        ),
    ),
    hints=(
        "`values[draws]` has the shape (R, n).",
        "Means along the last axis, then `np.quantile(means, [0.025, 0.975])`.",
    ),
)


# Proof --------------------------------------------------------------------------------------------------------------

BEST_SIZE = Item(
    id="13.training.best_size",
    kind="text",
    title="The best use of a budget",
    difficulty=3,
    minutes=20,
    source="Foundations (001), section 9.2; Hoffmann et al. 2022, equation 4",
    task="""
Let $L(N, D) = E + A N^{-\\alpha} + B D^{-\\beta}$ and $C = 6ND$.

1. Show that at the best $N$ for a fixed $C$ the two prices satisfy $\\alpha A N^{-\\alpha} = \\beta B D^{-\\beta}$.
2. Derive $N_{\\text{opt}} \\propto C^{\\beta/(\\alpha+\\beta)}$ and
   $D_{\\text{opt}} \\propto C^{\\alpha/(\\alpha+\\beta)}$.
3. Show that the ratio $D_{\\text{opt}}/N_{\\text{opt}}$ is the same for all budgets exactly if
   $\\alpha = \\beta$. What happens to it as $C$ grows with $\\alpha = 0.34$, $\\beta = 0.28$?
""",
    rubric=(
        (1, "1: D = C/(6N) put in (or a multiplier), and the derivative with respect to N (or ln N) set to zero."),
        (1, "1: since D moves like 1/N, dD^{−β}/d ln N = +β D^{−β}: the two prices with their exponents are equal."),
        (1, "2: N^{α+β} = (αA/βB)(C/6)^β, hence N ∝ C^{β/(α+β)}; D = C/(6N) gives the other exponent."),
        (1, "3: D/N ∝ C^{(α−β)/(α+β)}: constant exactly if α = β."),
        (1, "3: with 0.34 and 0.28 the exponent is positive (about 0.097): tokens per parameter grow with the budget."),
    ),
    hints=("Use u = ln N: then N^{−α} = e^{−αu}, and ln D = ln(C/6) − u.", "For 3 subtract the two exponents."),
    references=("foundations.chinchilla.opt_exponent", "foundations.chinchilla.opt_exponent_paper"),
)


# Project ------------------------------------------------------------------------------------------------------------

_V = 6
_SOURCE = ml.training.markov_source(_V, 2, np.random.default_rng(2), concentration=0.25)


def _lesson(rng):
    text = ml.training.sample_source(_SOURCE, 6000, rng)
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
    if observation.error:
        return f"raised {observation.error[0]}: {observation.message}", None
    p = numeric(observation.value)
    wanted = (len(case[1]), case[2])
    if p is None or p.shape != wanted:
        return f"expected probabilities of shape {wanted}, got {show(observation.value)}", None
    if not np.all(np.isfinite(p)) or p.min() < 0 or np.abs(p.sum(axis=-1) - 1).max() > 1e-3:
        return "each row must be a distribution: no number below 0, and the sum 1", None
    return None, p.astype(float)


def _below(words, rival):
    """A judge: the loss lies at least 0.05 nats below a rival's."""

    def judge(expected, case, observation):
        problem, p = _problem(case, observation)
        if problem:
            return problem
        loss, bar = _surprise(p, case[1]), _surprise(rival(*case), case[1]) - 0.05
        if np.isinf(loss):
            return "the loss is infinite: a token that can come was given the probability 0"
        return None if loss < bar else f"loss {loss:.3f} nats; {words} is less than {bar:.3f}"

    return judge


def _near_entropy(expected, case, observation):
    problem, p = _problem(case, observation)
    if problem:
        return problem
    loss, bar = _surprise(p, case[1]), _surprise(expected(), case[1]) + 0.1
    return None if loss < bar else f"loss {loss:.3f} nats; the entropy of this text plus 0.1 is {bar:.3f}"


def _one_too_early(tokens, contexts, vocabulary):
    return _counted(3)(tokens, contexts[:, :-1], vocabulary)


PROJECT = Item(
    id="13.training.own_model",
    kind="function",
    title="A model of your own",
    difficulty=3,
    minutes=45,
    source="ours; after Putting it together (000)",
    answer="train_my_model",
    masked=("train_my_model", "train_ngram"),
    task="""
Write `train_my_model(tokens, contexts, vocabulary)`. `tokens` is a training text, an array of a few thousand ids below
`vocabulary`; `contexts`, of shape `(n, 8)`, holds pieces of *other* text from the same source. Train a model on
`tokens`, whatever model you like, and return an array of shape `(n, vocabulary)`: for each context the probabilities of
the token that comes next.

What counts is the loss, computed on text you do not see, without noise:

- at least 0.05 nats below the model that knows only how frequent each token is;
- at least 0.05 nats below the model that knows only the last token;
- within 0.1 nats of the source's entropy, which no model can undercut.

Choose your seed yourself (two calls should give the same), and be done in about two seconds. A table of logits trained
by Adam, a small network on the last few tokens, or a tiny transformer: each can do it.
""",
    expected=_truth,
    checks=(
        Check("beats the frequencies", 2, _lesson, _below("needed", _counted(1))),
        Check("beats pairs", 3, _lesson, _below("needed", _counted(2))),
        Check("comes near the entropy", 3, _lesson, _near_entropy),
    ),
    mistakes=(
        Mistake(
            _counted(1), "Your model gives the same answer in every context: it knows the frequencies alone.", score=0
        ),
        Mistake(_counted(2), "Your model looks at the last token only. More than the last one decides here.", score=2),
        Mistake(
            _one_too_early,
            "Your prediction is for the token that *ends* the context. Asked for is the one after it.",
            score=0,
        ),
        Mistake(
            lambda tokens, contexts, vocabulary: np.log(_counted(3)(tokens, contexts, vocabulary)),
            "These are logarithms (or logits). Return probabilities: `ml.softmax` of them.",
            score=0,
        ),
        Mistake(
            lambda tokens, contexts, vocabulary: _counted(3)(tokens, contexts[:, ::-1], vocabulary),
            "You read the contexts backwards: the token that ends a row came last.",
            score=0,
        ),
    ),
    hints=(
        "How many tokens back must the model look? Try one, two, three, and compare the loss on a part you hold out.",
        "logits = table[token before last, last]; minimise `ml.cross_entropy(logits, following)` by `ml.adam_step`.",
        "With many steps on few tokens a model learns by heart: stop early, or add a little to each count.",
    ),
)


# Check yourself (in the chapter, not graded) ------------------------------------------------------------------------

QUICK = [
    quick(
        "13.training.quick_minima",
        "Equal minima",
        "Part II (004), data preparation",
        "Two sets have 30 elements in common and 120 in their union. With which probability do their minima agree?",
        lambda: 0.25,
        (
            Mistake(lambda: 30 / 90, "The union has all 120 elements: 30/120."),
            Mistake(lambda: 30, "A probability: the common elements divided by the union."),
        ),
    ),
    quick(
        "13.training.quick_vocabulary",
        "Bytes, merges, specials",
        "Part II (004), tokenization",
        "A vocabulary has 256 bytes, 1,000 merges and 2 special tokens. How large is it?",
        lambda: 1258,
        (
            Mistake(lambda: 1002, "The 256 bytes belong to it, too."),
            Mistake(lambda: 1256, "Special tokens have ids as well."),
        ),
    ),
    quick(
        "13.training.quick_bytes",
        "The price of learning",
        "Part II (004), memory estimation",
        "How many bytes does a parameter take while it learns in mixed precision, gradient included?",
        lambda: 18,
        (
            Mistake(lambda: 14, "14 leave out the gradient: 4 bytes more."),
            Mistake(lambda: 2, "That is the weight alone; learning takes a master copy, two moments and a gradient."),
            Mistake(lambda: 16, "That is plain 32-bit training. Mixed precision adds a second copy of the weight."),
        ),
    ),
    quick(
        "13.training.quick_bubble",
        "Waiting",
        "Foundations (001), section 9.4",
        "A pipeline has 8 stages and 8 microbatches. Which share of the time does a machine wait?",
        lambda: 7 / 15,
        (
            Mistake(lambda: 7 / 8, "This would be the share with one microbatch. Divide by S + M − 1 = 15."),
            Mistake(lambda: 0.5, "Close: (S − 1)/(S + M − 1), not S/(S + M)."),
            Mistake(lambda: 8 / 15, "This is the share in which it works."),
        ),
    ),
    quick(
        "13.training.quick_flops",
        "The bill",
        "Foundations (001), section 9.2",
        "What is 6ND for a billion parameters and 20 billion tokens?",
        lambda: 6 * 1e9 * 20e9,
        (
            Mistake(lambda: 2e19, "This is ND. Six operations for each parameter and token."),
            Mistake(lambda: 4e19, "This is the forward pass alone: 2ND. The backward pass costs twice as much."),
            Mistake(lambda: 1.2e19, "A power of ten is missing: 6 · 10⁹ · 2 · 10¹⁰."),
        ),
        check=values(1, rtol=1e-6),
    ),
]

ITEMS = [
    OWN_MERGES,
    UPDATES,
    SEVEN_BILLION,
    OWN_MEMORY,
    TWO_ANSWERS,
    MOST_FREQUENT_PAIR,
    REPAIR_MERGE,
    MINHASH,
    ROUND_BFLOAT16,
    REPAIR_MEAN,
    LOSS_PULLBACK,
    BOOTSTRAP,
    BEST_SIZE,
    PROJECT,
    *QUICK,
]
