"""Chapter 14, inference: cutting a distribution, following beams, keeping keys and values, guessing ahead."""

from itertools import pairwise

import numpy as np

import mathllm as ml

from ..cases import each, refusing
from ..item import Item, Mistake, gradient, leaves_inputs, quick, refuses, values

EXAMPLE = np.array([0.629, 0.231, 0.140])  # softmax of [2, 1, 0.5], as 003 and 004 use it


# Warm-up ------------------------------------------------------------------------------------------------------------


def _sorted_shares(rng):
    """Four probabilities in falling order, in hundredths, and k = 2."""
    while True:
        shares = np.sort(rng.multinomial(80, [0.4, 0.3, 0.2, 0.1]) + 5)[::-1]
        if len(set(shares.tolist())) == 4:
            return {"P": (shares / 100).tolist()}


def _renormalised(P, k):
    P = np.array(P)
    return np.where(np.arange(len(P)) < k, P, 0) / P[:k].sum()


OWN_TOP_K = Item(
    id="14.inference.own_top_k",
    kind="value",
    title="Two of four",
    difficulty=1,
    minutes=4,
    source="Foundations (001), section 10.2.2; Part II (004), top-k sampling",
    answer="kept",
    task="""
`mine.P` holds the probabilities of four tokens, largest first. Top-k sampling with $k = 2$: what are the four
probabilities then? Give four numbers in `kept`, right to three decimals.
""",
    numbers=_sorted_shares,
    expected=lambda P: _renormalised(P, 2),
    checks=(values(2, decimals=3),),
    mistakes=(
        Mistake(lambda P: [P[0], P[1], 0, 0], "What is kept has to add up to one again: divide by the kept mass."),
        Mistake(lambda P: _renormalised(P, 3), "Three tokens stayed. k is 2."),
        Mistake(lambda P: [0.5, 0.5, 0, 0], "The two keep their ratio: divide both by their sum."),
        Mistake(
            lambda P: _renormalised(P, 2)[:2],
            "The two kept ones are right. Four numbers were asked for, zeros included.",
        ),
        Mistake(lambda P: 100 * _renormalised(P, 2), "These are per cent. Probabilities add up to 1."),
        Mistake(
            lambda P: [*ml.softmax(np.array(P[:2])), 0, 0],
            "A softmax makes probabilities of *logits*. These are probabilities already: divide by their sum.",
        ),
    ),
    hints=("Set the last two to zero.", "Divide the first two by their sum."),
    references=("foundations.topk.renorm",),
)

NUCLEUS_SIZES = Item(
    id="14.inference.nucleus_sizes",
    kind="value",
    title="How many reach it?",
    difficulty=1,
    minutes=5,
    source="Foundations (001), section 10.2.3; Part II (004), top-p sampling",
    answer="sizes",
    task="""
$P = [0.629, 0.231, 0.140]$. How many tokens are in the nucleus, the smallest set of most probable tokens whose mass
is **at least** $p$, for $p = 0.5$, $0.8$ and $0.9$? And for $P = [0.5, 0.3, 0.2]$ with $p = 0.5$? Give four whole
numbers in a list, `sizes`.
""",
    expected=lambda: [1, 2, 3, 1],
    checks=(values(2, rtol=0),),
    mistakes=(
        Mistake(
            lambda: [0, 1, 2, 1],
            "You kept the sums *below* p, as one document prints. The token that reaches p stays, too.",
        ),
        Mistake(
            lambda: [1, 2, 3, 2], "At least p is reached already by the first token: 0.5 ≥ 0.5. “Exceeds” would be two."
        ),
        Mistake(
            lambda: [2, 3, 3, 2], "One too many, but for the third: the token that reaches p is the last one to stay."
        ),
        Mistake(lambda: [1, 1, 2, 1], "0.629 is below 0.8, and 0.860 is below 0.9: one more each."),
    ),
    hints=("Sums from the top: 0.629, 0.860, 1.", "The first sum that is not below p decides."),
    references=("foundations.topp.right", "part2.topp.ge", "part2.topp.gt"),
)


def _model_sizes(rng):
    return {
        "layers": int(rng.choice([16, 24, 32, 40])),
        "kv_heads": int(rng.choice([3, 5, 6])),
        "head_width": int(rng.choice([64, 128])),
        "tokens": int(rng.choice([1024, 4096, 8192])),
    }


def _mebibytes(layers, kv_heads, head_width, tokens):
    return (
        ml.inference.kv_cache_bytes(
            layers=layers, kv_heads=kv_heads, head_width=head_width, tokens=tokens, bytes_per_number=2
        )
        / 2**20
    )


OWN_CACHE = Item(
    id="14.inference.own_cache",
    kind="value",
    title="Room for a chat",
    difficulty=1,
    minutes=5,
    source="Foundations (001), section 10.3; Part II (004), the KV cache",
    answer="mebibytes",
    task="""
A model has `mine.layers` layers and `mine.kv_heads` heads of keys and values, each of width `mine.head_width`. How
many MiB ($2^{20}$ bytes) does the cache for one chat of `mine.tokens` tokens take, in numbers of 2 bytes? Put it into
`mebibytes`.
""",
    numbers=_model_sizes,
    expected=_mebibytes,
    checks=(values(2),),
    mistakes=(
        Mistake(lambda **n: _mebibytes(**n) / 2, "Keys *and* values: the factor 2 in front."),
        Mistake(lambda **n: _mebibytes(**n) * 2, "Two bytes per number, and two for keys and values: 4, not 8."),
        Mistake(lambda **n: _mebibytes(**n) / 4, "Two factors are missing: keys *and* values, and 2 bytes per number."),
        Mistake(
            lambda **n: _mebibytes(**n) / n["kv_heads"],
            "This is one head. Each head has its own keys and values, of width `mine.head_width`.",
        ),
        Mistake(lambda **n: _mebibytes(**n) / 1024, "These are GiB. A MiB has 2²⁰ bytes."),
        Mistake(lambda **n: _mebibytes(**n) * 2**20 / 1e6, "These are megabytes, 10⁶ bytes. A MiB has 2²⁰."),
        Mistake(
            lambda **n: _mebibytes(**n) / n["layers"], "This is one layer. Every layer has its own keys and values."
        ),
        Mistake(lambda **n: _mebibytes(**n) * 2**20, "These are bytes. Divide by 2²⁰."),
    ),
    hints=(
        "Per token and layer: two vectors of kv_heads · head_width numbers.",
        "Times layers, tokens, 2 bytes; then / 2²⁰.",
    ),
    references=("foundations.kv.per_token", "foundations.kv.70b_gqa"),
)


# Core ---------------------------------------------------------------------------------------------------------------


@each
def _distributions(rng, n):
    """A random distribution and p, which is kept away from the partial sums."""
    P = ml.softmax(2 * rng.normal(size=n))
    sums = np.concatenate([[0], np.cumsum(np.sort(P)[::-1])])
    i = int(rng.integers(n))
    return P, float((sums[i] + sums[i + 1]) / 2)


def _nucleus(P, p):
    order = np.argsort(-P, kind="stable")
    kept = np.zeros(P.shape, bool)
    kept[order[: np.searchsorted(np.cumsum(P[order]), p * (1 - 1e-12)) + 1]] = True
    return np.where(kept, P, 0) / P[kept].sum()


_careful = refusing(lambda P, p: not 0 < p <= 1)


def _sorted_sums(P, rule, order=None):
    """The tokens for whose sum up to here, and up to before, the rule holds; and their mass."""
    order = np.argsort(-P, kind="stable") if order is None else order
    sums, kept = np.cumsum(P[order]), np.zeros(P.shape, bool)
    kept[order] = rule(sums, sums - P[order])
    return np.where(kept, P, 0), P[kept].sum()


def _kept(rule, order=None):
    """A nucleus by rule(sum with the token, sum before it, p), divided by the kept mass."""

    def nucleus(P, p):
        kept, mass = _sorted_sums(P, lambda sums, before: rule(sums, before, p), order and order(P))
        with np.errstate(invalid="ignore", divide="ignore"):
            return kept / mass

    return nucleus


def _as_printed(P, p):
    return _sorted_sums(P, lambda sums, before: sums <= p)[0] / p


def _mask_left_sorted(P, p):
    largest_first = -np.sort(-P)
    kept = np.cumsum(largest_first) - largest_first < p
    return np.where(kept, P, 0) / P[kept].sum()


def _unsorted(P, p):
    size = int(np.searchsorted(np.cumsum(P), p)) + 1
    kept = np.arange(len(P)) < size
    return np.where(kept, P, 0) / P[kept].sum()


def _threshold(P, p):
    kept = p * P.max() <= P
    return np.where(kept, P, 0) / P[kept].sum()


def _returned_sorted(P, p):
    return np.sort(_nucleus(P, p))[::-1]


REPAIR_NUCLEUS = Item(
    id="14.inference.repair_nucleus",
    kind="repair",
    title="Mend it: a nucleus that is empty",
    difficulty=2,
    minutes=12,
    source="Foundations (001), section 10.2.3",
    answer="nucleus",
    masked=("keep_top_p", "reshape_logits"),
    task="""
This is nucleus sampling as one document prints it, for probabilities `P` of shape `(V,)` in any order:

```python
def nucleus(P, p):
    order = np.argsort(-P)
    kept = np.zeros(len(P), bool)
    kept[order] = np.cumsum(P[order]) <= p
    return np.where(kept, P, 0) / p
```

For `P = [0.629, 0.231, 0.140]` it returns nothing at $p = 0.5$, and numbers that add up to 0.956 at $p = 0.9$. Mend
both. What comes back is a distribution over the same tokens in the same order. A $p$ outside $(0, 1]$ is refused with
`ValueError`; $p = 1$ keeps all tokens.
""",
    expected=_careful(_nucleus),
    checks=(
        values(
            3,
            _distributions(3, 10, 200),
            public=[(EXAMPLE, 0.5), (EXAMPLE, 0.8), (EXAMPLE, 0.9), (EXAMPLE[::-1].copy(), 0.7)],
            name="right distribution",
        ),
        values(1, public=[(np.array([0.5, 0.3, 0.2]), 0.5), (EXAMPLE, 1.0)], name="at equality"),
        leaves_inputs(1, _distributions(20, 50)),
        refuses(1, public=[(EXAMPLE, 0.0), (EXAMPLE, 1.5)], name="refuses p outside (0, 1]"),
    ),
    mistakes=(
        Mistake(
            _careful(_as_printed),
            "Still as printed: the token that crosses p is missing, and p is not what was kept.",
            score=2,
        ),
        Mistake(
            _careful(_kept(lambda sums, before, p: sums <= p)),
            "You divide by the kept mass now. The token that crosses p is still missing, and the set may be empty.",
            score=2,
        ),
        Mistake(
            _careful(_kept(lambda sums, before, p: sums < p)),
            "Only tokens whose sum stays below p are kept. The one that reaches p belongs to the nucleus.",
            score=1,
        ),
        Mistake(
            _careful(_kept(lambda sums, before, p: before <= p)),
            "One too many at equality: where the sum before a token is p already, it is not needed (`<`, not `<=`).",
            score=5,
        ),
        Mistake(
            _careful(_kept(lambda sums, before, p: before < p, np.argsort)),
            "`np.argsort(P)` sorts upwards: you begin with the *least* probable token.",
            score=1,
        ),
        Mistake(
            _careful(_mask_left_sorted),
            "Your mask is in sorted order and P is not: write `kept[order] = …`.",
            score=2,
        ),
        Mistake(
            _careful(lambda P, p: np.where(_nucleus(P, p) > 0, P, 0) / p),
            "The right tokens stay. Divide by their mass, which is at least p, not by p.",
            score=2,
        ),
        Mistake(_careful(_unsorted), "The tokens have to be sorted by probability before the sums.", score=2),
        Mistake(_careful(_threshold), "This is min-p: compared with the best token. Top-p adds up a mass.", score=1),
        Mistake(
            _careful(_returned_sorted),
            "The probabilities come back sorted: nobody knows any more which token is which.",
            score=2,
        ),
        Mistake(_nucleus, "A p outside (0, 1] is accepted. Refuse it with `ValueError`.", score=5),
    ),
    hints=(
        "The sum *before* a token decides: as long as it is below p, the token is needed.",
        "`np.cumsum(P[order]) - P[order] < p` says which of the sorted tokens stay.",
        "Divide by `P[kept].sum()`.",
    ),
    references=("foundations.topp.mass_as_printed", "foundations.topp.empty"),
)


@each
def _beam_worlds(rng, beams):
    """A world of five tokens in which greedy decoding, two beams and a comparison of all texts find three texts."""
    while True:
        first, second = ml.softmax(0.3 * rng.normal(size=5)), ml.softmax(2 * rng.normal(size=(5, 5)))
        found = [rule(first, second, 2) for rule in (_greedy_steps, _two_steps, _exhaustive)]
        if len({*map(tuple, found)}) == 3:
            return first, second, beams


def _two_steps(first, second, beams, joint=np.multiply):
    begin = np.argsort(-first, kind="stable")[:beams]
    scores = joint(first[begin, None], second[begin])
    i, j = np.unravel_index(np.argmax(scores), scores.shape)
    return [int(begin[i]), int(j)]


def _summed(first, second, beams):
    return _two_steps(first, second, beams, np.add)


def _last_alone(first, second, beams):
    return _two_steps(first, second, beams, lambda before, after: after)


def _places_in_beam(first, second, beams):
    begin = np.argsort(-first, kind="stable")[:beams]
    return [begin.tolist().index(_two_steps(first, second, beams)[0]), _two_steps(first, second, beams)[1]]


def _greedy_steps(first, second, beams):
    i = int(np.argmax(first))
    return [i, int(np.argmax(second[i]))]


def _exhaustive(first, second, beams):
    joint = first[:, None] * second
    return [int(n) for n in np.unravel_index(np.argmax(joint), joint.shape)]


TRAP = (
    np.array([0.36, 0.33, 0.31]),
    np.array([[0.40, 0.30, 0.30], [0.50, 0.30, 0.20], [0.04, 0.93, 0.03]]),
)
# Sum, product and second probability alone each prefer another text; tokens are not sorted.
WEIGHED = (np.array([0.2, 0.5, 0.3]), np.array([[0.85, 0.1, 0.05], [0.5, 0.3, 0.2], [0.8, 0.1, 0.1]]))

BEAM = Item(
    id="14.inference.beam",
    kind="function",
    title="Two steps with a beam",
    difficulty=2,
    minutes=15,
    source="Foundations (001), section 10.2.4",
    answer="beam_two_steps",
    masked=("beam_search",),
    task="""
Write `beam_two_steps(first, second, beams)`: beam search for texts of two tokens. `first`, `(V,)`, holds the
probabilities of the first token, row $i$ of `second`, `(V, V)`, those of the second token after token $i$. Keep the
`beams` best first tokens, extend them, and return the best text that was seen as a list of two token ids.

With one beam this is greedy decoding; with $V$ beams it finds the most probable text; in between it may miss it.
""",
    expected=_two_steps,
    checks=(
        values(2, public=[(*TRAP, 1), (*TRAP, 2), (*TRAP, 3)], name="the world of the chapter", rtol=0),
        values(3, _beam_worlds(2, 1, 5, 2), public=[(*WEIGHED, 3)], name="other worlds", rtol=0),
        leaves_inputs(1, _beam_worlds(2, 5), public=[(*WEIGHED, 3)]),
    ),
    mistakes=(
        Mistake(_greedy_steps, "This is greedy decoding: only the best first token is followed.", score=0),
        Mistake(
            _exhaustive, "You compared all texts. Beam search forgets beginnings that are not among the best.", score=0
        ),
        Mistake(
            lambda first, second, beams: _two_steps(-first, -second, beams),
            "You kept the *least* probable beginnings: `np.argsort` sorts upwards.",
        ),
        Mistake(
            _last_alone,
            "You compared the second probabilities alone. A text has the *product* of both.",
            score=2,
        ),
        Mistake(_summed, "You added the two probabilities. The probability of both is their product.", score=2),
        Mistake(
            _places_in_beam,
            "The first number is a place among the kept beginnings. Look up the token there: `begin[i]`.",
            score=2,
        ),
    ),
    hints=(
        "`np.argsort(-first)[:beams]` are the beginnings that survive.",
        "`first[begin, None] * second[begin]` holds the probability of each extended text.",
    ),
    references=("foundations.beam.norm_vs_prob",),
)


def _growing(rng):
    """Keys, values and queries of a short text, one head."""
    return [tuple(rng.normal(size=(3, T, K))) for T, K in ((2, 2), (4, 3), (7, 8))]


def _shifted_keys(rng):
    """Keys with a large common part: scores are huge, their differences are not."""
    queries, keys, values_ = rng.normal(size=(3, 5, 4))
    return [(queries, keys + 2000.0, values_)]


def _cached_attention(queries, keys, values_):
    return ml.attention(queries, keys, values_, mask=ml.causal_mask(len(queries)))


def _no_mask(queries, keys, values_):
    return ml.attention(queries, keys, values_)


def _only_last(queries, keys, values_):
    return values_ * 1.0


def _off_by_one(queries, keys, values_):
    out = np.zeros_like(values_)
    for t in range(1, len(queries)):
        out[t] = ml.attention(queries[t : t + 1], keys[:t], values_[:t])[0]
    return out


def _overflowing(queries, keys, values_):
    with np.errstate(all="ignore"):
        powers = np.exp(queries @ keys.T / np.sqrt(queries.shape[-1])) * np.tri(len(queries))
        return powers / powers.sum(axis=-1, keepdims=True) @ values_


CACHE = Item(
    id="14.inference.cache",
    kind="function",
    title="One token at a time",
    difficulty=2,
    minutes=15,
    source="Foundations (001), section 10.3; Part II (004), the KV cache",
    answer="attend_step_by_step",
    masked=(
        "attention",
        "attention_weights",
        "multi_head_attention",
        "causal_mask",
        "flash_attention",
    ),
    task="""
Write `attend_step_by_step(queries, keys, values)`, all of shape `(T, K)`: the outputs of causal attention for one
head, computed as at inference. For each $t$ append row $t$ of keys and values to what is kept, then let query $t$
attend to all that is kept, with $1/\\sqrt K$ and softmax. The result, `(T, K)`, is the same as with a causal mask; no
mask is needed here. Why not?
""",
    expected=_cached_attention,
    checks=(
        values(3, _growing, name="right outputs"),
        values(1, _shifted_keys, name="large scores", rtol=1e-6),
        leaves_inputs(1, _growing),
    ),
    mistakes=(
        Mistake(_no_mask, "Tokens see what comes after them: query t may use the keys 0 … t only.", score=0),
        Mistake(_only_last, "Each query uses only its own key. It attends to all that is kept.", score=0),
        Mistake(_off_by_one, "Query t does not see its own key: append first, then attend.", score=0),
        Mistake(
            lambda queries, keys, values_: _cached_attention(queries * np.sqrt(queries.shape[-1]), keys, values_),
            "The division by √K is missing.",
            score=0,
        ),
        Mistake(
            lambda queries, keys, values_: _cached_attention(queries / np.sqrt(queries.shape[-1]), keys, values_),
            "The scores are divided by K. Take its root.",
            score=0,
        ),
        Mistake(
            _overflowing,
            "Right, until e to a large score is inf. `ml.softmax` subtracts the largest first.",
            score=4,
        ),
        Mistake(
            lambda queries, keys, values_: _cached_attention(queries, keys, values_)[-1],
            "This is the last token's output alone. Collect one row for each t.",
            score=0,
        ),
    ),
    hints=(
        "A loop over t with `keys[: t + 1]` and `values[: t + 1]`.",
        "Scores of query t: `keys[: t + 1] @ queries[t] / np.sqrt(K)`; `ml.softmax` of them; weights times values.",
    ),
    references=("part2.kv.step_list",),
)


@each
def _pairs(rng, n):
    return ml.softmax(rng.normal(size=n)), ml.softmax(rng.normal(size=n))


def _residual(p, q):
    more = np.maximum(p - q, 0)
    return more / more.sum()


RESIDUAL = Item(
    id="14.inference.residual",
    kind="function",
    title="What the guesser left",
    difficulty=2,
    minutes=10,
    source="Leviathan et al. 2023",
    answer="accept_and_residual",
    masked=("acceptance_probability", "residual_distribution", "accept_drafts"),
    task="""
Write `accept_and_residual(p, q)` for two distributions of shape `(V,)`, the large model's $p$ and the guesser's $q$
(all entries positive, $p \\ne q$). Return a pair:

- for each token the probability with which it is accepted if it was guessed, `(V,)`;
- the distribution that is drawn from after a rejection, `(V,)`.
""",
    expected=lambda p, q: (np.minimum(1, p / q), _residual(p, q)),
    checks=(
        values(3, _pairs(2, 5, 50), public=[(np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5]))]),
        leaves_inputs(1, _pairs(4)),
    ),
    mistakes=(
        Mistake(
            lambda p, q: (np.minimum(1, q / p), _residual(p, q)),
            "p/q, not q/p: what the large model likes less is accepted less.",
        ),
        Mistake(lambda p, q: (p / q, _residual(p, q)), "A probability above 1: take the smaller of 1 and p/q."),
        Mistake(
            lambda p, q: (np.minimum(1, p / q), p),
            "Drawing from p again would favour what both like. Draw from what p has more than q.",
        ),
        Mistake(
            lambda p, q: (np.minimum(1, p / q), np.maximum(p - q, 0)),
            "The residual does not add up to one: divide by its sum.",
        ),
        Mistake(
            lambda p, q: (np.minimum(1, p / q), np.abs(p - q) / np.abs(p - q).sum()),
            "Only where p is larger than q is something missing: max(p − q, 0), not |p − q|.",
        ),
        Mistake(
            lambda p, q: (np.minimum(1, p / q), _residual(q, p)),
            "The residual is what p has more than q, not what q has more than p.",
        ),
        Mistake(
            lambda p, q: (np.minimum(p, q), _residual(p, q)),
            "min(p, q) is the probability to be guessed *and* accepted. If it was guessed: divide by q.",
        ),
    ),
    hints=("`np.minimum(1, p / q)`.", "`np.maximum(p - q, 0)`, divided by its sum."),
)


def _texts_to_penalise(rng):
    return [(rng.normal(size=8) * 3, rng.integers(8, size=5), float(rng.uniform(1.1, 2))) for _ in range(3)]


def _penalised(z, text, theta, once=True, sign=True):
    z = z.copy()
    for i in np.unique(text) if once else text:
        z[i] = z[i] / theta if (z[i] >= 0 or not sign) else z[i] * theta
    return z


def _as_given(z, text, theta):
    for i in text:
        z[i] = z[i] / theta
    return z


REPAIR_PENALTY = Item(
    id="14.inference.repair_penalty",
    kind="repair",
    title="Mend it: a penalty that rewards",
    difficulty=2,
    minutes=8,
    source="Keskar et al. 2019; Foundations (001), section 10.2",
    answer="penalise",
    masked=("penalize_repetition",),
    task="""
To avoid repetitions, the logits of tokens that have occurred are divided by $\\theta > 1$:

```python
def penalise(z, text, theta):
    for i in text:
        z[i] = z[i] / theta
    return z
```

Three things are wrong. A token with a *negative* logit becomes more likely. A token that occurred five times is
punished five times. And the caller's logits are changed. Mend all three: `z` has shape `(V,)`, `text` holds token ids.
""",
    expected=_penalised,
    checks=(
        values(2, _texts_to_penalise, name="negative logits"),
        values(1, public=[(np.array([2.0, 1.0, 3.0]), np.array([0, 0, 0, 2]), 2.0)], name="punished once"),
        leaves_inputs(1, _texts_to_penalise),
    ),
    mistakes=(
        Mistake(
            lambda z, text, theta: _penalised(z, text, theta, once=False, sign=False),
            "Still as printed (on a copy): a negative logit divided by θ comes closer to 0, and is likelier.",
        ),
        Mistake(_as_given, "This is the function as it was given: all three faults are still there."),
        Mistake(
            lambda z, text, theta: _penalised(z, np.arange(z.size), theta),
            "All tokens are punished. Only those that have occurred should be.",
        ),
        Mistake(
            lambda z, text, theta: _penalised(z, text, theta, sign=False),
            "Each token is punished once. A negative logit divided by θ comes closer to 0: multiply it.",
            score=1,
        ),
        Mistake(
            lambda z, text, theta: _penalised(z, text, theta, once=False),
            "The sign is right. A token that occurs several times is punished once: `np.unique(text)`.",
        ),
        Mistake(
            lambda z, text, theta: np.where(np.isin(np.arange(z.size), text), z - np.log(theta), z),
            "This subtracts the same from all. Wanted is z/θ for positive and z·θ for negative logits.",
        ),
    ),
    hints=(
        "`np.unique(text)` holds each token once.",
        "Divide if the logit is not negative, multiply if it is.",
        "`z.copy()`.",
    ),
)


# Derivation and proof -----------------------------------------------------------------------------------------------


def _tempered_slopes(z, T, dp):
    return ml.vjp(lambda z: ml.softmax(z, temperature=T), z)[1](dp)[0]


@each
def _temperature_cases(rng, n):
    return rng.normal(size=n), float(rng.uniform(0.3, 3)), rng.normal(size=n)


def _pullback(rule):
    def function(z, T, dp):
        p = ml.softmax(z, temperature=T)
        return rule(p, T, dp)

    return function


TEMPERATURE_PULLBACK = Item(
    id="14.inference.temperature_pullback",
    kind="gradient",
    title="Slopes at a temperature",
    difficulty=2,
    minutes=12,
    source="ours; Part II (004), temperature",
    answer="temperature_pullback",
    masked=("vjp", "grad", "value_and_grad", "softmax_jacobian", "softmax_gradient"),
    task="""
Distillation trains through a temperature. Let $p = \\operatorname{softmax}(z/T)$ for one row of logits, and let the
slopes $dp$ of a loss be known. Write `temperature_pullback(z, T, dp)`, which returns $dz$, `(n,)`. How do the slopes
shrink when $T$ grows?
""",
    expected=_tempered_slopes,
    checks=(
        gradient(3, lambda z, T: ml.softmax(z, temperature=T), _temperature_cases(2, 4, 6)),
        leaves_inputs(1, _temperature_cases(3)),
    ),
    mistakes=(
        Mistake(
            _pullback(lambda p, T, dp: p * (dp - np.sum(p * dp))),
            "The factor 1/T is missing: z enters as z/T (chain rule).",
        ),
        Mistake(
            lambda z, T, dp: ml.vjp(ml.softmax, z)[1](dp)[0],
            "T does not appear: the probabilities are those at T, and the chain rule brings a factor 1/T.",
        ),
        Mistake(
            _pullback(lambda p, T, dp: p * (dp - np.sum(p * dp)) * T), "Divide by T, do not multiply: d(z/T)/dz = 1/T."
        ),
        Mistake(
            lambda z, T, dp: ml.vjp(ml.softmax, z)[1](dp)[0] / T,
            "The probabilities must be those at temperature T, not at 1.",
        ),
        Mistake(_pullback(lambda p, T, dp: p * dp / T), "The weighted average Σ pᵢ dpᵢ has to be subtracted."),
    ),
    hints=("Chapter 6's gradient through softmax, then one more factor.", "dz = p ⊙ (dp − Σ pᵢ dpᵢ) / T."),
)

SPECULATION_PROOF = Item(
    id="14.inference.speculation_proof",
    kind="text",
    title="Why nobody can tell",
    difficulty=3,
    minutes=15,
    source="Leviathan et al. 2023",
    task="""
A guess $x$, drawn from $q$, is accepted with probability $\\min(1, p(x)/q(x))$; after a rejection a token is drawn from

$$r(x) = \\frac{\\max(p(x)-q(x),0)}{\\sum_y\\max(p(y)-q(y),0)} .$$

1. With which probability is a guess accepted at all? Express it by $p$ and $q$.
2. Prove that the token that comes out has exactly the distribution $p$.
3. Which guesser $q$ is never rejected, and which is always? What does a bad guesser cost, and what not?
""",
    rubric=(
        (1, "Σ q(x) min(1, p(x)/q(x)) = Σ min(p(x), q(x))."),
        (2, "Two ways add up: min(p,q) + P(rejected)·r, and P(rejected) = Σ max(p − q, 0) cancels the sum in r."),
        (1, "min(p,q) + max(p − q, 0) = p in both cases, p ≥ q and p < q."),
        (1, "q = p is never rejected; disjoint supports always. A bad guess costs time, not quality."),
    ),
    hints=("q · min(1, p/q) = min(q, p).", "1 − Σ min(p, q) = Σ (p − min(p, q))."),
)


# Project ------------------------------------------------------------------------------------------------------------


def _marked_texts(rng):
    """Texts with lists: green[a] says which tokens are green after a. In the first, fewer than half are green."""
    cases = []
    for n, V in ((30, 10), (200, 20)):
        text, green = rng.integers(V, size=n), np.zeros((V, V), bool)
        for row in green:
            row[rng.permutation(V)[: V // 2]] = True
        cases.append((text, ~green if not cases and green[text[:-1], text[1:]].mean() > 0.5 else green))
    return cases


def _hits(text, green):
    """Which of the tokens that have one before them are green; a text without any is refused."""
    if len(text) < 2:
        raise ValueError("too short")
    return np.array([green[before, after] for before, after in pairwise(text)])


def _z_score(text, green, count=None, deviation=True):
    hits = _hits(text, green)
    n = len(hits) if count is None else count(text)
    return (int(hits.sum()) - n / 2) / (np.sqrt(n / 4) if deviation else n / 4)


ALTERNATING = (np.array([0, 1, 0, 1, 0]), np.array([[False, True], [True, False]]))

DETECT = Item(
    id="14.inference.detect",
    kind="function",
    title="Find the mark",
    difficulty=3,
    minutes=25,
    source="Foundations (001), references; Kirchenbauer et al. 2023",
    answer="z_score",
    masked=("detect_watermark", "green_list"),
    task="""
Write `z_score(text, green)`. `text` holds token ids, `(T,)` with $T \\ge 2$; `green` is a table of booleans, `(V,
V)`: `green[a, b]` says whether token $b$ is on the green list after token $a$. Half of each row is green.

Count how many of the $n = T - 1$ tokens that have one before them are green, $g$, and return how many standard
deviations this is above what chance gives:

$$\\frac{g - n/2}{\\sqrt{n/4}} .$$

A text with fewer than two tokens is refused with `ValueError`. Afterwards mark a text of SmolLM2 yourself with
`ml.inference.watermark_logits` and see how many tokens it takes until the score passes 4.
""",
    expected=_z_score,
    checks=(
        values(2, public=[ALTERNATING, (np.array([0, 0, 0]), ALTERNATING[1])], name="all green, none green"),
        values(3, _marked_texts, name="random texts"),
        refuses(1, public=[(np.array([1]), ALTERNATING[1])], name="refuses a text of one token"),
    ),
    mistakes=(
        Mistake(
            lambda text, green: _z_score(text, green, count=len),
            "The first token has no list: n = T − 1 tokens are counted, not T.",
            score=1,
        ),
        Mistake(
            lambda text, green: _z_score(text, green, deviation=False),
            "You divided by the variance n/4. The standard deviation is its root.",
            score=1,
        ),
        Mistake(
            lambda text, green: _z_score(text[::-1].copy(), green),
            "You asked for the list of the *next* token. It is the token before that decides: `green[before, after]`.",
            score=3,
        ),
        Mistake(
            lambda text, green: _z_score(text, green) / 2,
            "You divided by √n. The standard deviation of n coins is √(n/4), half of it.",
            score=1,
        ),
        Mistake(
            lambda text, green: abs(_z_score(text, green)),
            "Fewer green tokens than by chance give a *negative* score: leave the sign.",
            score=1,
        ),
        Mistake(
            lambda text, green: float(_hits(text, green).mean()),
            "This is the share of green tokens. How surprising it is depends on n as well.",
            score=1,
        ),
    ),
    hints=("`green[text[:-1], text[1:]]` looks up all pairs at once.", "Its sum is g, its length n."),
)


# Check yourself (in the chapter, not graded) ------------------------------------------------------------------------

QUICK = [
    quick(
        "14.inference.quick_nucleus",
        "Reach 0.8",
        "Part II (004), top-p sampling",
        "P = [0.5, 0.25, 0.15, 0.1]. How many tokens are in the nucleus for p = 0.8?",
        lambda: 3,
        (
            Mistake(lambda: 2, "Two hold 0.75, which is below 0.8: one more."),
            Mistake(lambda: 4, "Three hold 0.9 already: the smallest set was asked for."),
        ),
    ),
    quick(
        "14.inference.quick_top_k",
        "Two stay",
        "Part II (004), top-k sampling",
        "P = [0.5, 0.25, 0.15, 0.1] with k = 2: what is the new probability of the first token?",
        lambda: 0.5 / 0.75,
        (
            Mistake(lambda: 0.5, "The others are gone: divide by what was kept, 0.75."),
            Mistake(lambda: 0.75, "This is the kept mass. Divide by it."),
        ),
    ),
    quick(
        "14.inference.quick_cache",
        "Bytes per token",
        "Foundations (001), section 10.3",
        "A model with 24 layers and 4 key/value heads of width 64 stores its cache in 2-byte numbers. Bytes per token?",
        lambda: 2 * 24 * 4 * 64 * 2,
        (
            Mistake(
                lambda: 2 * 24 * 4 * 64, "A factor 2 is missing: keys *and* values, and two bytes for each number."
            ),
            Mistake(lambda: 24 * 4 * 64, "Two factors are missing: keys and values, and two bytes for each number."),
            Mistake(lambda: 2 * 4 * 64 * 2, "This is one layer; there are 24."),
        ),
    ),
    quick(
        "14.inference.quick_accept",
        "Will it stand?",
        "Leviathan et al. 2023",
        "p = [0.6, 0.4], q = [0.9, 0.1]. With which probability is a guess of the first token accepted?",
        lambda: 0.6 / 0.9,
        (
            Mistake(lambda: 0.6, "min(1, p/q) = 0.6/0.9."),
            Mistake(lambda: 1, "Here q > p: it is accepted only with p/q."),
            Mistake(lambda: 1.5, "p/q, not q/p."),
        ),
    ),
    quick(
        "14.inference.quick_z_score",
        "Seventy of a hundred",
        "Kirchenbauer et al. 2023",
        "Of 100 tokens 70 are green, the green share is ½. What is the z-score?",
        lambda: (70 - 50) / np.sqrt(100 * 0.25),
        (
            Mistake(lambda: 20, "So many too many. Divide by the standard deviation, √(100 · ¼) = 5."),
            Mistake(lambda: 0.8, "Divide by the root of 25, not by 25."),
        ),
    ),
]

ITEMS = [
    OWN_TOP_K,
    NUCLEUS_SIZES,
    OWN_CACHE,
    REPAIR_NUCLEUS,
    BEAM,
    CACHE,
    RESIDUAL,
    REPAIR_PENALTY,
    TEMPERATURE_PULLBACK,
    SPECULATION_PROOF,
    DETECT,
    *QUICK,
]
