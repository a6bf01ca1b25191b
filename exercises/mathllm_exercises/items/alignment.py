"""Chapter 15, alignment: preferred answers, a policy on a leash, clipped steps, and preferences learned directly."""

import numpy as np

import mathllm as ml

from ..cases import each
from ..compare import numeric, show
from ..item import Check, Item, Mistake, gradient, leaves_inputs, quick, values

# Warm-up ------------------------------------------------------------------------------------------------------------


def _own_pairs(rng):
    """Rewards of four pairs of answers, in tenths: some in the right order, some not, none equal."""
    while True:
        chosen, rejected = rng.integers(-20, 31, size=(2, 4)) / 10
        margin = chosen - rejected
        if 0 < np.sum(margin > 0) < 4 and np.abs(margin).min() > 0.25 and abs(margin.mean()) > 0.1:
            return {"chosen": chosen.tolist(), "rejected": rejected.tolist()}


def _judged(chosen, rejected):
    margin = np.array(chosen) - np.array(rejected)
    return [np.mean(margin > 0), np.mean(np.log1p(np.exp(-margin)))]


def _margin_first(chosen, rejected):
    share, _ = _judged(chosen, rejected)
    return [share, np.log1p(np.exp(-np.mean(np.array(chosen) - np.array(rejected))))]


OWN_PREFERENCES = Item(
    id="15.alignment.own_preferences",
    kind="value",
    title="Four comparisons",
    difficulty=1,
    minutes=6,
    source="Foundations (001), section 11.2",
    answer="judged",
    task="""
People compared four pairs of answers. A reward model gives the preferred answers the rewards `mine.chosen` and the
others `mine.rejected`. Compute two numbers and put them into a list, `judged`, right to three decimals:

1. the share of the pairs in which the preferred answer has the higher reward;
2. the loss of the reward model, the mean of $-\\ln\\sigma(R_w - R_l)$ over the four pairs.
""",
    numbers=_own_pairs,
    expected=_judged,
    checks=(values(2, decimals=3),),
    mistakes=(
        Mistake(
            lambda chosen, rejected: _judged(rejected, chosen),
            "Winner and loser are swapped: the difference is preferred minus other.",
        ),
        Mistake(
            lambda chosen, rejected: [_judged(chosen, rejected)[0], -_judged(chosen, rejected)[1]],
            "A surprise is never negative: the minus sign in front of the logarithm is missing.",
        ),
        Mistake(
            lambda chosen, rejected: [_judged(chosen, rejected)[0], 4 * _judged(chosen, rejected)[1]],
            "This is the sum over the pairs. The loss is their mean.",
        ),
        Mistake(
            lambda chosen, rejected: [_judged(chosen, rejected)[0], _judged(chosen, rejected)[1] / np.log(2)],
            "This is in bits. The loss takes the natural logarithm.",
        ),
        Mistake(
            lambda chosen, rejected: [_judged(chosen, rejected)[0], _judged(chosen, rejected)[1] / np.log(10)],
            "This takes the logarithm to base 10. The loss takes the natural one.",
        ),
        Mistake(
            lambda chosen, rejected: [
                _judged(chosen, rejected)[0],
                -np.log(np.mean(1 / (1 + np.exp(np.array(rejected) - np.array(chosen))))),
            ],
            "You took the logarithm of the mean probability. Take the four logarithms first, then their mean.",
        ),
        Mistake(
            _margin_first,
            "You took the loss of the mean difference. Take the four losses first, then their mean.",
        ),
        Mistake(
            lambda chosen, rejected: [4 * _judged(chosen, rejected)[0], _judged(chosen, rejected)[1]],
            "The loss is right. The first number is a share: divide the count by four.",
        ),
        Mistake(
            lambda chosen, rejected: _judged(chosen, rejected)[::-1],
            "Both numbers are right, in the wrong order: the share comes first.",
        ),
        Mistake(
            lambda chosen, rejected: [
                _judged(chosen, rejected)[0],
                np.mean(1 / (1 + np.exp(np.array(chosen) - np.array(rejected)))),
            ],
            "This is the mean probability of the opposite choice. The loss is the mean of −ln σ.",
        ),
    ),
    hints=("σ(x) = 1/(1 + e⁻ˣ), so −ln σ(x) = ln(1 + e⁻ˣ).", "Four differences, four losses, one mean."),
    references=("foundations.rm.loss0", "foundations.rm.loss2"),
)


def _own_beta(rng):
    return {
        "beta": float(rng.choice([0.4, 0.6, 0.8, 1.25, 1.5, 2.0])),
        "R": [float(r) for r in rng.permutation([0, 1, 2, 3])[:3]],
    }


_REFERENCE = np.array([0.5, 0.3, 0.2])  # of the documents' row on the closed form


def _normalised(weights):
    weights = np.asarray(weights, float)
    return weights / weights.sum()


OWN_POLICY = Item(
    id="15.alignment.own_policy",
    kind="value",
    title="A leash of your own",
    difficulty=1,
    minutes=5,
    source="Foundations (001), section 11.3",
    answer="policy",
    task="""
A model gives three answers with the probabilities $\\pi_{\\text{ref}} = [0.5, 0.3, 0.2]$; their rewards are `mine.R`.
Which policy has the largest $E_\\pi[R] - \\beta\\,\\mathrm{KL}(\\pi\\|\\pi_{\\text{ref}})$ for your $\\beta$,
`mine.beta`? Give its three probabilities in `policy`, right to three decimals.
""",
    numbers=_own_beta,
    expected=lambda beta, R: _normalised(_REFERENCE * np.exp(np.array(R) / beta)),
    checks=(values(2, decimals=3),),
    mistakes=(
        Mistake(
            lambda beta, R: _normalised(_REFERENCE * np.exp(np.array(R) * beta)),
            "You multiplied the reward by β. Divide: a large β is a short leash.",
        ),
        Mistake(
            lambda beta, R: _normalised(np.exp(np.array(R) / beta)),
            "The reference is missing: each e^(R/β) is multiplied by what the model did before.",
        ),
        Mistake(
            lambda beta, R: _normalised(_REFERENCE * np.exp(np.array(R))),
            "β is missing: the reward is divided by it.",
        ),
        Mistake(
            lambda beta, R: _normalised(_REFERENCE * np.exp(-np.array(R) / beta)),
            "The sign is wrong: what is rewarded becomes more probable.",
        ),
        Mistake(
            lambda beta, R: _REFERENCE * np.exp(np.array(R) / beta),
            "These are the weights. Divide them by their sum.",
        ),
        Mistake(
            lambda beta, R: _normalised(np.exp(_REFERENCE + np.array(R) / beta)),
            "The reference belongs outside the exponential (or its logarithm inside).",
        ),
        Mistake(
            lambda beta, R: _normalised((_REFERENCE * np.exp(np.array(R))) ** (1 / beta)),
            "Only the reward is divided by β, not the logarithm of the reference.",
        ),
    ),
    hints=("Weights: π_ref · e^(R/β).", "Divided by their sum, they are probabilities."),
    references=("foundations.rlhf.closed_form",),
)

CLIP_BY_HAND = Item(
    id="15.alignment.clip_by_hand",
    kind="value",
    title="Four corners",
    difficulty=1,
    minutes=8,
    source="Foundations (001), section 11.3",
    answer="table",
    task="""
PPO maximises $\\min(rA, \\operatorname{clip}(r, 1-\\epsilon, 1+\\epsilon)A)$, here with $\\epsilon = 0.2$.
Four actions have $(r, A) = (1.5, 1)$, $(0.5, 1)$, $(1.5, -1)$ and $(0.5, -1)$. Give two lists of four numbers in
`table`: first the objective of each action, then its slope with respect to $r$.

Before you compute: in which two of the four corners should nothing pull any more?
""",
    expected=lambda: [[1.2, 0.5, -1.5, -0.8], [0, 1, -1, 0]],
    checks=(values(2),),
    mistakes=(
        Mistake(
            lambda: [[1.5, 0.8, -1.2, -0.5], [1, 0, 0, -1]],
            "You took the larger of the two. The smaller one counts: the objective is never better than it is safe.",
        ),
        Mistake(
            lambda: [[1.2, 0.8, -1.2, -0.8], [0, 0, 0, 0]],
            "You took the clipped one everywhere. Where r has moved the wrong way, rA is smaller, and it pulls back.",
        ),
        Mistake(
            lambda: [[1.5, 0.5, -1.5, -0.5], [1, 1, -1, -1]], "Nothing is clipped here: 1.5 and 0.5 leave 1 ± 0.2."
        ),
        Mistake(
            lambda: [[1.2, 0.5, -1.5, -0.5], [0, 1, -1, -1]],
            "For A < 0 the lower end is clipped: at r = 0.5 compare −0.5 with −0.8.",
        ),
        Mistake(
            lambda: [[1.2, 0.5, -1.2, -0.5], [0, 1, 0, -1]],
            "For A < 0 the smaller of two numbers is the more negative one: −1.5, not −1.2.",
        ),
        Mistake(
            lambda: [[1.2, 0.5, -1.5, -0.8], [0, 1, 1, 0]],
            "Nearly: where rA is chosen the slope is A, and A is −1 in the third corner.",
        ),
        Mistake(
            lambda: [[1.2, 0.5, -1.5, -0.8], [1, 1, -1, -1]],
            "The objectives are right. Where the clipped one is the smaller, r has no influence: slope 0.",
        ),
        Mistake(
            lambda: [1.2, 0.5, -1.5, -0.8],
            "The objectives are right. Asked for are two lists: the four slopes as well.",
        ),
    ),
    hints=(
        "clip(1.5) = 1.2 and clip(0.5) = 0.8. Compare rA with clip(r)A, four times.",
        "Where rA is chosen its slope is A; where the clipped one is chosen it is 0.",
    ),
    references=("foundations.ppo.clip",),
)


# Core ---------------------------------------------------------------------------------------------------------------


def _labels(rng, B, T, V):
    """Labels with a prompt in front and padding behind, of different lengths."""
    labels = rng.integers(V, size=(B, T))
    begin, end = rng.integers(2, T - 2, size=B), rng.integers(T - 1, T + 1, size=B)
    places = np.arange(T)
    labels[(places < begin[:, None]) | (places >= end[:, None])] = -100
    return labels


def _texts(rng):
    return [(2 * rng.normal(size=(B, T, V)), _labels(rng, B, T, V)) for B, T, V in ((1, 5, 3), (3, 6, 5), (4, 9, 7))]


def _sure_texts(rng):
    return [(1000 * rng.normal(size=(5, 7, 9)), _labels(rng, 5, 7, 9))]


def _log_p_of(logits, labels, shifted=True, counted=None, log_p=ml.log_softmax):
    """Sum of the chosen log-probabilities; the arguments are the places where it is done wrongly."""
    scores = log_p(logits)
    if shifted:
        scores, labels = scores[:, :-1], labels[:, 1:]
    counts = labels != -100 if counted is None else counted(labels)
    chosen = np.take_along_axis(scores, np.where(labels == -100, 0, labels)[..., None], axis=-1)[..., 0]
    return np.sum(chosen * counts, axis=-1)


def _length(labels):
    return np.maximum(np.sum(labels[:, 1:] != -100, axis=-1), 1)


COMPLETION = Item(
    id="15.alignment.completion_log_p",
    kind="function",
    title="How likely is this answer?",
    difficulty=2,
    minutes=12,
    source="Foundations (001), sections 11.1 and 11.4",
    answer="completion_log_p",
    masked=("completion_log_probabilities", "dpo_loss"),
    task="""
Everything in this chapter asks how probable a model finds an answer. Write `completion_log_p(logits, labels)`. `logits`
has the shape `(B, T, V)`; those at position $t$ predict the token at $t + 1$. `labels`, `(B, T)`, holds the token ids,
and −100 wherever a token belongs to the prompt or is padding.

Return $\\ln\\pi(y|x)$ of each completion, `(B,)`: the sum of the log-probabilities of its tokens. A text without any
completion has $\\ln 1 = 0$.
""",
    expected=_log_p_of,
    checks=(
        values(
            3,
            _texts,
            public=[(np.zeros((1, 3, 4)), np.array([[-100, 1, 2]])), (np.zeros((1, 3, 4)), np.full((1, 3), -100))],
        ),
        values(
            1,
            _sure_texts,
            public=[(np.array([[[0.0, 900.0], [900.0, 0.0], [0.0, 0.0]]]), np.array([[-100, 0, 0]]))],
            name="a model that is very sure",
        ),
        leaves_inputs(1, _texts),
    ),
    mistakes=(
        Mistake(
            lambda logits, labels: _log_p_of(logits, labels, shifted=False),
            "One place off: the logits at t predict the token at t + 1.",
        ),
        Mistake(
            lambda logits, labels: _log_p_of(logits[:, ::-1], labels[:, ::-1]),
            "The shift goes the wrong way: `logits[:, :-1]` belong to `labels[:, 1:]`.",
        ),
        Mistake(
            lambda logits, labels: np.exp(_log_p_of(logits, labels)),
            "These are the probabilities themselves. Leave the sum of the logarithms as it is.",
        ),
        Mistake(
            lambda logits, labels: _log_p_of(logits, labels).sum(),
            "This is one number for the whole batch. Each row is an answer of its own: sum along the last axis.",
        ),
        Mistake(
            lambda logits, labels: _log_p_of(logits, labels) / _length(labels),
            "This is the mean per token. The probability of an answer is a product, so its logarithm is a sum.",
        ),
        Mistake(
            lambda logits, labels: _log_p_of(logits, labels, counted=lambda labels: np.ones(labels.shape)),
            "Labels of −100 are counted as token 0. What belongs to the prompt or the padding adds nothing.",
        ),
        Mistake(
            lambda logits, labels: _log_p_of(logits, labels, log_p=lambda logits: logits),
            "You added up logits. They become log-probabilities by `ml.log_softmax`.",
        ),
        Mistake(
            lambda logits, labels: _log_p_of(logits, labels, log_p=lambda logits: np.log(ml.softmax(logits))),
            "A softmax gives very small probabilities as 0, and ln 0 = −∞. `ml.log_softmax` keeps them.",
            score=4,
        ),
    ),
    hints=(
        "`logits[:, :-1]` goes with `labels[:, 1:]`.",
        "`counted = labels[:, 1:] != -100`, and 0 in place of −100 makes an index of every label.",
        "`np.take_along_axis(log_p, ids[..., None], axis=-1)[..., 0]` picks one entry from each row.",
    ),
)


def _rewarded(rng):
    return [(ml.softmax(rng.normal(size=n)), 2 * rng.normal(size=n), float(rng.uniform(0.2, 3))) for n in (2, 4, 9)]


def _tilted(reference, reward, beta):
    with np.errstate(divide="ignore"):
        return ml.softmax(np.log(reference) + reward / beta)


def _tilted_from_largest(reference, reward, beta):
    return _normalised(reference * np.exp((reward - reward.max()) / beta))


BEST_POLICY = Item(
    id="15.alignment.best_policy",
    kind="function",
    title="The best policy on a leash",
    difficulty=2,
    minutes=12,
    source="Foundations (001), section 11.3; Rafailov et al. 2023, section 4",
    answer="best_policy",
    masked=("kl_optimal_policy",),
    task="""
Write `best_policy(reference, reward, beta)`: the policy that maximises
$E_\\pi[R] - \\beta\\,\\mathrm{KL}(\\pi\\|\\pi_{\\text{ref}})$,

$$\\pi(y) = \\frac{\\pi_{\\text{ref}}(y)\\,e^{R(y)/\\beta}}{Z} .$$

`reference` and `reward` have the shape `(n,)`, and so has the result.

Rewards may be in the thousands. And an answer that the reference rules out, $\\pi_{\\text{ref}}(y) = 0$, stays ruled
out, however high its reward.
""",
    expected=_tilted,
    checks=(
        values(
            3,
            _rewarded,
            public=[
                (_REFERENCE, np.array([1.0, 0.0, 2.0]), 0.5),
                (np.array([0.5, 0.5, 0.0]), np.array([0.0, 1.0, 3.0]), 1.0),
            ],
        ),
        values(
            2,
            public=[
                (_REFERENCE, np.array([5000.0, 4999.0, 5001.0]), 1.0),
                (np.array([0.25, 0.75]), np.array([-4000.0, -4001.0]), 0.5),
                (np.array([0.5, 0.5, 0.0]), np.array([0.0, 1.0, 5000.0]), 1.0),
            ],
            name="huge rewards",
        ),
        leaves_inputs(1, _rewarded),
    ),
    mistakes=(
        Mistake(
            lambda reference, reward, beta: ml.softmax(reward / beta),
            "The reference is missing: this is the best policy for a model that gave all answers alike.",
        ),
        Mistake(
            lambda reference, reward, beta: _tilted(reference, reward, 1 / beta),
            "You multiplied the reward by β. Divide: a large β is a short leash.",
        ),
        Mistake(
            lambda reference, reward, beta: reference * np.exp(reward / beta),
            "The weights do not add up to one: divide by their sum.",
        ),
        Mistake(
            lambda reference, reward, beta: ml.softmax((np.log(reference) + reward) / beta),
            "Only the reward is divided by β, not the logarithm of the reference.",
        ),
        Mistake(
            lambda reference, reward, beta: _tilted(reference, reward, 1.0),
            "β is missing: the reward is divided by it.",
        ),
        Mistake(
            lambda reference, reward, beta: ml.softmax(np.log(reference + 1e-12) + reward / beta),
            "What you add inside the logarithm brings ruled-out answers back: here ln 0 = −∞ is right.",
            score=1,
        ),
        Mistake(
            lambda reference, reward, beta: _normalised(reference * np.exp(reward / beta)),
            "The right formula, but e^(R/β) overflows (or all of them vanish). Subtract a common number first.",
            score=4,
        ),
        Mistake(
            _tilted_from_largest,
            "You subtract the largest of all rewards. If its answer is ruled out, all the others vanish: take the "
            "largest reward of a possible answer, or let softmax do it in logarithms.",
            score=4,
        ),
    ),
    hints=(
        "In logarithms: ln π = ln π_ref + R/β − ln Z. This is a softmax.",
        '`np.log(0)` gives −∞ and a warning, and e^(−∞) = 0 is right: `with np.errstate(divide="ignore"):`.',
    ),
    references=("foundations.rlhf.closed_form",),
)

_CORNERS = (np.log([0.75, 0.25, 0.75, 0.25]), np.log(np.full(4, 0.5)), np.array([1.0, 1.0, -1.0, -1.0]), 0.2)


def _all_corners(rng):
    """Ratios on both sides of the clipping range, for advantages of both signs, shuffled."""
    cases = []
    for n in (4, 20):
        away = rng.uniform(0.5, 1.5, size=n) * np.tile([1, -1, 1, -1], n // 4)
        old = -rng.uniform(1.6, 5, size=n)
        advantage = rng.uniform(0.3, 2, size=n) * np.tile([1, 1, -1, -1], n // 4)
        order = rng.permutation(n)
        cases.append(((old + away)[order], old[order], advantage[order], float(rng.uniform(0.1, 0.3))))
    return cases


def _inside(rng):
    old = -rng.uniform(0.5, 4, size=6)
    return [(old + rng.uniform(-0.09, 0.09, size=6), old, rng.normal(size=6), 0.2)]


def _gain(new, old, advantage, epsilon, ratio=lambda new, old: np.exp(new - old), choose=np.minimum):
    r = ratio(new, old)
    return choose(r * advantage, np.clip(r, 1 - epsilon, 1 + epsilon) * advantage)


def _gain_above_only(new, old, advantage, epsilon):
    r = np.exp(new - old)
    return np.minimum(r * advantage, np.minimum(r, 1 + epsilon) * advantage)


CLIPPED_GAIN = Item(
    id="15.alignment.clipped_gain",
    kind="function",
    title="Small steps only",
    difficulty=2,
    minutes=10,
    source="Foundations (001), section 11.3; Schulman et al. 2017",
    answer="clipped_gain",
    masked=("clipped_surrogate", "grpo_loss"),
    task="""
Write `clipped_gain(new, old, advantage, epsilon)`: PPO's objective for each action. `new` and `old` are the
log-probabilities of the actions under the policy that learns and under the one that acted, `advantage` says how much
better than expected they turned out; all three have the shape `(n,)`, and so has the result. It is to be *maximised*:

$$\\min\\bigl(r A,\\ \\operatorname{clip}(r, 1-\\epsilon, 1+\\epsilon)\\,A\\bigr),\\qquad
r = \\frac{\\pi_{\\text{new}}(a)}{\\pi_{\\text{old}}(a)}.$$
""",
    expected=_gain,
    checks=(
        values(3, _all_corners, public=[_CORNERS], name="beyond the range"),
        values(1, _inside, name="inside the range"),
        leaves_inputs(1, _all_corners),
    ),
    mistakes=(
        Mistake(
            lambda new, old, advantage, epsilon: _gain(new, old, advantage, epsilon, choose=np.maximum),
            "You took the larger of the two: then it pays to leave the range. The smaller one is wanted.",
            score=1,
        ),
        Mistake(
            lambda new, old, advantage, epsilon: _gain(
                new, old, advantage, epsilon, choose=lambda free, clipped: clipped
            ),
            "You took the clipped one everywhere: an action that moved the wrong way is never pulled back.",
            score=1,
        ),
        Mistake(
            lambda new, old, advantage, epsilon: np.exp(new - old) * advantage,
            "Nothing is clipped: this is r A alone.",
            score=1,
        ),
        Mistake(
            lambda new, old, advantage, epsilon: np.minimum(np.exp(new - old), 1 + epsilon) * advantage,
            "You took the smaller *ratio*. Compare r A with clip(r) A: for A < 0 the order turns round.",
            score=1,
        ),
        Mistake(
            lambda new, old, advantage, epsilon: _gain(new, old, advantage, epsilon, ratio=np.divide),
            "You divided two logarithms. The ratio of the probabilities is `np.exp(new - old)`.",
        ),
        Mistake(
            _gain_above_only,
            "Only the upper end is clipped. A bad action (A < 0) may not be pushed below 1 − ε either.",
            score=1,
        ),
        Mistake(
            lambda new, old, advantage, epsilon: _gain(old, new, advantage, epsilon),
            "The ratio is upside down: new over old.",
        ),
        Mistake(
            lambda new, old, advantage, epsilon: _gain(new, old, advantage, epsilon, ratio=np.subtract),
            "new − old is the logarithm of the ratio: take `np.exp` of it.",
        ),
        Mistake(
            lambda new, old, advantage, epsilon: -_gain(new, old, advantage, epsilon),
            "This is a loss, to be minimised. Asked for is the objective itself.",
        ),
    ),
    hints=("`ratio = np.exp(new - old)`.", "`np.minimum(ratio * advantage, np.clip(…) * advantage)`."),
    references=("foundations.ppo.clip",),
)


@each
def _walks(rng, T, ends=True):
    """Rewards, values and ends of a walk; γ and λ are different."""
    done = np.zeros(T, bool)
    if ends:
        done[rng.integers(1, T - 1)] = done[-1] = True
    discount, decay = rng.uniform(0.9, 0.99), rng.uniform(0.3, 0.8)
    return rng.normal(size=T), rng.normal(size=T + 1), done, float(discount), float(decay)


def _gae(
    rewards, values_, done, discount, decay,
    in_surprise=True, in_sum=True, cut_after=False, forwards=False, sum_factor=None,
):  # fmt: skip
    """Generalised advantage estimation; the arguments are the places where it is done wrongly."""
    goes_on = 1.0 - done
    surprise = rewards + discount * values_[1:] * (goes_on if in_surprise else 1) - values_[:-1]
    carried_on = np.append(goes_on[1:], 1) if cut_after else goes_on if in_sum else np.ones(len(rewards))
    factor = (discount * decay if sum_factor is None else sum_factor) * carried_on
    result, carried = np.zeros(len(rewards)), 0.0
    for t in range(len(rewards)) if forwards else reversed(range(len(rewards))):
        carried = surprise[t] + factor[t] * carried
        result[t] = carried
    return result


GAE = Item(
    id="15.alignment.gae",
    kind="function",
    title="Whose merit was it?",
    difficulty=3,
    minutes=20,
    source="Foundations (001), section 11.3; Schulman et al. 2016",
    answer="gae",
    masked=("advantages",),
    task="""
The reward often comes at the end; which steps deserve it? Write `gae(rewards, values, done, discount, decay)`, the
generalised advantages of $T$ steps, `(T,)`:

$$\\begin{aligned}
\\delta_t &= R_t + \\gamma\\,v_{t+1} - v_t,\\\\
A_t &= \\delta_t + \\gamma\\lambda\\,A_{t+1},\\qquad A_T = 0.
\\end{aligned}$$

`rewards` has the shape `(T,)`; `values`, `(T + 1,)`, holds the expected rewards $v_0 \\dots v_T$, the last one for the
state after the last step; `discount` is $\\gamma$, `decay` is $\\lambda$. `done`, `(T,)`, is true where an episode (a
text) ended with step $t$: the next step then belongs to another one. Neither its value $v_{t+1}$ nor its advantage
$A_{t+1}$ may count.
""",
    expected=_gae,
    checks=(
        values(
            2,
            _walks(4, 9, ends=False),
            public=[(np.array([0.0, 0.0, 1.0]), np.array([0.5, 0.5, 0.5, 0.0]), np.zeros(3, bool), 1.0, 1.0)],
            name="no end inside",
        ),
        values(2, _walks(4, 9), name="ends inside"),
        leaves_inputs(1, _walks(4, 9)),
    ),
    mistakes=(
        Mistake(
            lambda *case: _gae(*case, in_surprise=False, in_sum=False),
            "`done` has no effect. Past an end neither the next value nor the next advantage counts: times (1 − done).",
            score=2,
        ),
        Mistake(
            lambda *case: _gae(*case, in_sum=False),
            "Right in δ. The sum, too, has to begin anew at an end: γλ(1 − done) A.",
            score=2,
        ),
        Mistake(
            lambda *case: _gae(*case, in_surprise=False),
            "Right in the sum. In δ, too, there is no next value after an end: γ(1 − done) v.",
            score=2,
        ),
        Mistake(
            lambda *case: _gae(*case, sum_factor=0.0),
            "These are the δ alone. A step is also praised for the surprises that follow: add γλ A of the next step.",
        ),
        Mistake(
            lambda rewards, values_, done, discount, decay: _gae(rewards, values_, done, discount, 1.0),
            "λ is missing: each step back multiplies what is carried by γλ.",
        ),
        Mistake(
            lambda rewards, values_, done, discount, decay: _gae(
                rewards, values_, done, 1.0, decay, sum_factor=discount * decay
            ),
            "γ is missing in δ: the next value is discounted, too.",
        ),
        Mistake(
            lambda *case: _gae(*case, cut_after=True),
            "One step too early: an end at t cuts what comes from t + 1, not what goes on to t − 1.",
            score=2,
        ),
        Mistake(
            lambda *case: _gae(*case, forwards=True),
            "The sum runs the wrong way: a step is praised for what comes *after* it. Begin at the last step.",
        ),
        Mistake(
            lambda rewards, values_, done, discount, decay: _gae(
                rewards, values_, done, discount, decay, sum_factor=decay
            ),
            "In the sum stands γλ, not λ alone.",
        ),
        Mistake(
            lambda rewards, values_, done, discount, decay: (
                _gae(rewards, values_, done, discount, decay) + values_[:-1]
            ),
            "These are the returns A + v, what the value model should learn. Asked for is A.",
        ),
    ),
    hints=(
        "`goes_on = 1 - done`, and then δ for all steps at once with `values[1:]` and `values[:-1]`.",
        "A loop over `reversed(range(T))` that carries A along, 0 at the beginning.",
    ),
)


def _groups(rng):
    return [(rng.normal(size=(n, G)) * rng.uniform(0.5, 3, size=(n, 1)) + 2,) for n, G in ((2, 3), (4, 8))]


def _scores(rewards, mean_axis=-1, spread_axis=-1, epsilon=1e-8, ddof=0):
    centred = rewards - rewards.mean(axis=mean_axis, keepdims=True)
    return centred / (rewards.std(axis=spread_axis, keepdims=True, ddof=ddof) + epsilon)


def _group_scores(rewards):
    return np.where(rewards.std(axis=-1, keepdims=True) < 1e-12, 0, _scores(rewards))


def _scores_unless_equal(rewards):
    spread = rewards.std(axis=-1, keepdims=True)
    return np.where(spread == 0, 0, _scores(rewards, epsilon=0))


REPAIR_GROUPS = Item(
    id="15.alignment.repair_groups",
    kind="repair",
    title="Mend it: everybody against everybody",
    difficulty=2,
    minutes=8,
    source="Shao et al. 2024, section 4.1",
    answer="group_scores",
    masked=("group_advantages",),
    task="""
GRPO needs no model of values: it compares an answer with the other answers to the *same* prompt. Row $i$ of `rewards`,
`(n, G)`, holds the rewards of $G$ answers to prompt $i$.

```python
def group_scores(rewards):
    return (rewards - rewards.mean()) / rewards.std()
```

So an easy prompt makes all of its answers look good. And where all rewards are equal the result is NaN, or a large
number that means nothing, in place of 0. Mend both: for each prompt $(R - \\text{mean})/(\\text{std} + 10^{-8})$, with
the standard deviation `np.std` gives.
""",
    expected=_group_scores,
    checks=(
        values(3, _groups, public=[(np.array([[1.0, 0.0, 1.0, 0.0], [9.0, 9.0, 9.0, 5.0]]),)], rtol=1e-6, atol=1e-6),
        values(
            1,
            public=[(np.array([[1.0, 1.0, 1.0], [0.0, 1.0, 2.0]]),), (np.array([[0.1, 0.1, 0.1]]),)],
            name="a group of equals",
            rtol=1e-6,
            atol=1e-6,
        ),
        leaves_inputs(1, _groups, rtol=1e-6),
    ),
    mistakes=(
        Mistake(
            lambda rewards: _scores(rewards, mean_axis=None, spread_axis=None),
            "Still all against all: mean and standard deviation are those of each prompt's own answers (`axis=-1`).",
        ),
        Mistake(
            lambda rewards: _scores(rewards, spread_axis=None),
            "The mean is the group's. The standard deviation must be, too.",
        ),
        Mistake(
            lambda rewards: _scores(rewards, mean_axis=0, spread_axis=0),
            "You compared the answers in a column, which belong to different prompts: `axis=-1`.",
        ),
        Mistake(
            lambda rewards: _scores(rewards, ddof=1),
            "You divided by G − 1 in the variance. `np.std` as it is divides by G.",
        ),
        Mistake(
            lambda rewards: rewards - rewards.mean(axis=-1, keepdims=True),
            "The mean is taken off. The division by the standard deviation is missing.",
        ),
        Mistake(
            lambda rewards: (
                (rewards - rewards.mean(axis=-1, keepdims=True)) / (rewards.var(axis=-1, keepdims=True) + 1e-8)
            ),
            "You divided by the variance. The standard deviation is its root.",
        ),
        Mistake(
            lambda rewards: _scores(rewards, epsilon=0),
            "A group of equals has the standard deviation 0: add 10⁻⁸ before you divide.",
            score=4,
        ),
        Mistake(
            _scores_unless_equal,
            "The mean of 0.1, 0.1, 0.1 is not quite 0.1 in floating point, so the test for 0 misses it. Add 10⁻⁸.",
            score=4,
        ),
    ),
    hints=("`rewards.mean(axis=-1, keepdims=True)`.", "The same for `std`, plus `1e-8`."),
)


@each
def _answers(rng, size, padded=True):
    """Log-probabilities of the tokens of n pairs of answers; padding holds numbers that mean nothing."""
    n, T = size
    policy, reference = -rng.uniform(0.2, 4, size=(2, 2, n, T))
    lengths = rng.integers(1, T, size=(2, n)) if padded else np.full((2, n), T)
    return policy, reference, np.arange(T) < lengths[..., None], float(rng.uniform(0.05, 0.9))


def _hopeless(rng):
    """Three pairs, of which the policy orders two the wrong way, by hundreds of nats."""
    moved = np.array([0.1, 300.0, 500.0])[:, None] * rng.uniform(0.5, 1, size=(2, 3, 5))
    likely = -rng.uniform(0.2, 4, size=(2, 3, 5))
    unlikely = likely - moved
    policy, reference = np.stack([unlikely[0], likely[1]]), np.stack([likely[0], unlikely[1]])
    return [(policy, reference, np.ones((2, 3, 5), bool), 0.9)]


def _summed(x, mask):
    return np.sum(x * mask, axis=-1)


def _dpo(policy, reference, mask, beta, log_ratio=lambda p, r, mask: _summed(p - r, mask), loss=None):
    ratio = log_ratio(policy, reference, mask)
    margin = ratio[0] - ratio[1]
    return np.mean(np.logaddexp(0, -beta * margin)) if loss is None else loss(margin, beta)


_SAMPLE = (
    np.array([[[-1.0]], [[-4.0]]]),
    np.array([[[-3.0]], [[-3.0]]]),
    np.ones((2, 1, 1), bool),
    0.1,
)  # log-ratios +2 and −1, as in the documents' row

REPAIR_DPO = Item(
    id="15.alignment.repair_dpo",
    kind="repair",
    title="Mend it: the longer answer loses",
    difficulty=3,
    minutes=18,
    source="Foundations (001), section 11.4; Rafailov et al. 2023, section 4",
    answer="dpo",
    masked=("dpo_loss",),
    task="""
The loss of direct preference optimisation, for $n$ pairs of answers of up to $T$ tokens. `policy` and `reference`,
`(2, n, T)`, hold the log-probabilities of their tokens under the two models: `[0]` belongs to the preferred answers,
`[1]` to the others. `mask`, `(2, n, T)`, is true for the tokens of the answer and false for padding, where the numbers
mean nothing.

```python
def dpo(policy, reference, mask, beta):
    log_ratio = (policy - reference).mean(axis=-1)
    margin = log_ratio[0] - log_ratio[1]
    return -np.log(1 / (1 + np.exp(-beta * margin))).mean()
```

Three things are wrong. Padding is counted. The log-ratio of an *answer* is not the mean over its tokens, which makes
every token of a long answer count less. And for a pair that is far on the wrong side the loss is infinite. Mend all
three.
""",
    expected=_dpo,
    checks=(
        values(
            2,
            _answers((2, 4), (3, 7), padded=False),
            public=[_SAMPLE, (_SAMPLE[0], _SAMPLE[0], *_SAMPLE[2:])],
            name="equal lengths",
        ),
        values(2, _answers((2, 4), (3, 7)), name="different lengths"),
        values(1, _hopeless, name="far on the wrong side"),
        leaves_inputs(1, _answers((2, 4), (3, 7))),
    ),
    mistakes=(
        Mistake(
            lambda *case: _dpo(*case, log_ratio=lambda p, r, mask: (p - r).sum(axis=-1)),
            "A sum, as it should be; but padding is still in it. `mask` says which tokens count.",
            score=3,
        ),
        Mistake(
            lambda *case: _dpo(*case, log_ratio=lambda p, r, mask: _summed(p - r, mask) / mask.sum(axis=-1)),
            "Padding is out, but this is a mean over the tokens. The probability of an answer is a product: sum the "
            "logarithms.",
        ),
        Mistake(
            lambda *case: _dpo(*case, log_ratio=lambda p, r, mask: (p - r).mean(axis=-1)),
            "Still the mean over all places, padding included. Sum over the tokens that `mask` marks.",
        ),
        Mistake(
            lambda *case: _dpo(*case, log_ratio=lambda p, r, mask: _summed(p, mask)),
            "The reference is missing: what counts is how far the policy has moved away from it.",
        ),
        Mistake(
            lambda *case: _dpo(*case, loss=lambda m, beta: np.mean(np.logaddexp(0, beta * m))),
            "The sign is wrong: this loss falls when the *rejected* answer becomes more probable.",
        ),
        Mistake(
            lambda *case: _dpo(*case, loss=lambda m, beta: np.mean(-np.log(np.maximum(ml.sigmoid(beta * m), 1e-12)))),
            "A floor under σ caps the loss, and a pair far on the wrong side pulls no more: use `ml.log_sigmoid`.",
            score=5,
        ),
        Mistake(
            lambda *case: _dpo(*case, loss=lambda m, beta: np.logaddexp(0, -beta * np.mean(m))),
            "This is the loss of the mean margin. Take the loss of each pair first, then their mean.",
        ),
        Mistake(
            lambda *case: _dpo(*case, loss=lambda m, beta: np.mean(-np.log(1 / (1 + np.exp(-beta * m))))),
            "Only the overflow is left: `-ml.log_sigmoid(x)` and `np.logaddexp(0, -x)` are safe forms of −ln σ(x).",
            score=5,
        ),
    ),
    hints=(
        "`((policy - reference) * mask).sum(axis=-1)` has the shape (2, n).",
        "−ln σ(x) is `-ml.log_sigmoid(x)`.",
    ),
    references=("foundations.dpo.loss0", "foundations.dpo.sample"),
)


# Derivation and proof -----------------------------------------------------------------------------------------------


def _pairs_and_slope(rng):
    """Four rows of log-probabilities of whole answers, β and dy."""
    return [(*(-rng.uniform(1, 9, size=(4, n))), float(rng.uniform(0.1, 0.9)), float(rng.normal())) for n in (1, 4)]


def _loss_of_pairs(policy_w, policy_l, reference_w, reference_l, beta):
    return ml.alignment.dpo_loss(policy_w, policy_l, reference_w, reference_l, beta=beta)


def _slopes(policy_w, policy_l, reference_w, reference_l, beta, dy, weight=None):
    margin = (policy_w - reference_w) - (policy_l - reference_l)
    miss = ml.sigmoid(-beta * margin) if weight is None else weight(margin, beta)
    slope = -dy * beta * miss / len(margin)
    return slope, -slope


def _scaled(factor):
    """The right slopes times factor(case)."""

    def pullback(*case):
        return tuple(factor(*case) * slope for slope in _slopes(*case))

    return pullback


_START = (np.array([-3.0, -5.0]), np.array([-4.0, -2.0]), np.array([-3.0, -5.0]), np.array([-4.0, -2.0]), 0.1, 1.0)

DPO_PULLBACK = Item(
    id="15.alignment.dpo_pullback",
    kind="gradient",
    title="What DPO pulls at",
    difficulty=3,
    minutes=15,
    source="Foundations (001), section 11.4; Rafailov et al. 2023, section 4",
    answer="dpo_pullback",
    masked=("vjp", "grad", "value_and_grad", "check_gradient"),
    task="""
Let $L = -\\frac1n\\sum\\ln\\sigma(\\beta h)$ with
$h = \\ln\\frac{\\pi(y_w|x)}{\\pi_{\\text{ref}}(y_w|x)} - \\ln\\frac{\\pi(y_l|x)}{\\pi_{\\text{ref}}(y_l|x)}$.
Derive the gradient with respect to the log-probabilities of the policy and write
`dpo_pullback(policy_w, policy_l, reference_w, reference_l, beta, dy)`: four arrays of log-probabilities of whole
answers, `(n,)`, and two numbers. It returns a pair, the slopes times `dy` for `policy_w` and for `policy_l`, each
`(n,)`.

Which pairs pull hardest: those that the policy has right already, or those that it has wrong?
""",
    expected=_slopes,
    checks=(
        gradient(3, _loss_of_pairs, _pairs_and_slope, wrt=(0, 1)),
        values(1, public=[_START], name="at the start, policy = reference"),
        leaves_inputs(1, _pairs_and_slope),
    ),
    mistakes=(
        Mistake(
            _scaled(lambda *case: -1),
            "Both signs are wrong: the loss falls when the preferred answer becomes more probable.",
        ),
        Mistake(
            lambda *case: (_slopes(*case)[0], _slopes(*case)[0]),
            "Right for the preferred answer. The other one enters h with a minus: its slope is the opposite.",
        ),
        Mistake(_scaled(lambda *case: 1 / case[4]), "A factor β is missing: h enters as βh (chain rule)."),
        Mistake(_scaled(lambda *case: len(case[0])), "These are the slopes of the sum. Divide by the number of pairs."),
        Mistake(
            lambda *case: _slopes(*case, weight=lambda h, beta: ml.sigmoid(beta * h)),
            "The derivative of ln σ(x) is σ(−x): pairs that are *wrong* pull hardest.",
            score=1,
        ),
        Mistake(
            lambda *case: _slopes(*case, weight=lambda h, beta: ml.sigmoid(-h)),
            "β is missing inside the sigmoid: the pull is σ(−βh).",
            score=1,
        ),
        Mistake(
            lambda w, l, reference_w, reference_l, beta, dy: _slopes(w, l, 0 * reference_w, 0 * reference_l, beta, dy),
            "The reference is missing in h: the pull depends on how far the policy has moved away from it.",
        ),
        Mistake(
            lambda *case: _slopes(*case[:5], 1.0),
            "`dy` is missing: every slope is multiplied by the slope that comes from behind (chain rule).",
            score=1,
        ),
    ),
    hints=(
        "d ln σ(x)/dx = 1 − σ(x) = σ(−x).",
        "dL/dh = −β σ(−βh)/n; and h grows with `policy_w` and falls with `policy_l`.",
    ),
    references=("foundations.dpo.loss0", "foundations.dpo.sample"),
)

DERIVE_DPO = Item(
    id="15.alignment.derive_dpo",
    kind="text",
    title="Your model is secretly a reward model",
    difficulty=3,
    minutes=25,
    source="Foundations (001), section 11.4; Rafailov et al. 2023, section 4",
    task="""
Let $\\pi^*(y) = \\pi_{\\text{ref}}(y)\\,e^{R(y)/\\beta}/Z$ with
$Z = \\sum_y\\pi_{\\text{ref}}(y)\\,e^{R(y)/\\beta}$, for one prompt $x$ that is left out in the notation.

1. Show for every policy $\\pi$ that $E_\\pi[R] - \\beta\\,\\mathrm{KL}(\\pi\\|\\pi_{\\text{ref}})$ is the same as
   $\\beta\\ln Z - \\beta\\,\\mathrm{KL}(\\pi\\|\\pi^*)$. Why is $\\pi^*$ therefore the only maximum?
2. Solve the definition of $\\pi^*$ for $R(y)$, put it into the Bradley–Terry model
   $P(y_w \\text{ preferred})$ $= \\sigma(R(y_w) - R(y_l))$, and arrive at the loss of DPO. Where does $Z$, which nobody
   can compute, go?
3. One document calls DPO "mathematically equivalent" to a reward model followed by reinforcement learning. Name two
   conditions for this. What does DPO do with a pair in which the same answer is preferred every time?
""",
    rubric=(
        (1, "1: ln π* = ln π_ref + R/β − ln Z put into KL(π‖π*) (or R/β replaced in the objective), and rearranged."),
        (1, "1: ln Z does not depend on π; KL ≥ 0 with equality only for π = π* (Gibbs), so π* is the only maximum."),
        (1, "2: R(y) = β ln(π*(y)/π_ref(y)) + β ln Z."),
        (1, "2: Z depends on the prompt alone and cancels in R(y_w) − R(y_l); −ln σ, with π for π*, is the loss."),
        (1, "3: two of: Bradley–Terry preferences, a policy able to express π*, exact minimum (enough data)."),
        (1, "3: h → ∞ lowers the loss for ever, whatever β: the rejected answer's probability goes to 0."),
    ),
    hints=(
        "KL(π‖π*) = Σ π ln π − Σ π ln π*; put in ln π*.",
        "From π* = π_ref e^(R/β)/Z follows e^(R/β) = Z π*/π_ref.",
        "For 3: is −ln σ(βh) ever at its minimum?",
    ),
    references=("foundations.rlhf.closed_form", "foundations.dpo.loss0"),
)


# Project ------------------------------------------------------------------------------------------------------------

_ANSWERS, _COMPARISONS = 8, 4000


def _taste(reference):
    """The hidden rewards of the answers: the judge finds them again by the reference, which is their seed."""
    return np.random.default_rng(reference.view(np.uint32)).normal(size=reference.size)


def _kl(policy, reference):
    """KL(policy‖reference), along the last axis."""
    return np.sum(np.where(policy > 0, policy * np.log(np.maximum(policy, 1e-300) / reference), 0), axis=-1)


def _spent(family, reference, budget):
    """The boldest policy of a family that keeps the budget; family(boldness) for a column of numbers from 0 to 1."""
    low, high = 0.0, 1.0
    for _ in range(5):
        boldness = np.linspace(low, high, 65)
        last = np.flatnonzero(_kl(family(boldness[:, None]), reference) <= budget)[-1]
        low, high = boldness[last], boldness[min(last + 1, 64)]
    return family(np.array([[low]]))[0]


def _best_within(reference, reward, budget):
    """π_ref e^(R/β)/Z with the smallest β that the budget allows; boldness b is β = 1/(50 b)."""

    def family(boldness):
        scores = np.log(reference) + 50 * boldness * reward
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return weights / weights.sum(axis=-1, keepdims=True)

    return _spent(family, reference, budget)


def _mixture(reference, best, budget):
    return _spent(lambda b: (1 - b) * reference + b * np.eye(reference.size)[best], reference, budget)


def _bought(policy, reference, budget):
    """The gain in expected reward, as a share of the largest that the budget allows."""
    reward = _taste(reference)
    return float((policy - reference) @ reward / ((_best_within(reference, reward, budget) - reference) @ reward))


def _worlds(rng):
    """A reference, comparisons of its answers and a budget; in all worlds the known mistakes cost about as much."""
    return [_one_world(rng), _one_world(rng)]


def _one_world(rng):
    while True:
        reference, budget = ml.softmax(0.7 * rng.normal(size=_ANSWERS)), float(rng.uniform(0.2, 0.5))
        reward = _taste(reference)
        best, second = np.sort(reward)[[-1, -2]]
        if best - second < 0.4 or -np.log(reference[np.argmax(reward)]) < 1.1 * budget:
            continue
        if 0.57 < _bought(_mixture(reference, int(np.argmax(reward)), budget), reference, budget) < 0.9:
            break
    games = rng.multinomial(_COMPARISONS, np.full(28, 1 / 28))
    wins = np.zeros((_ANSWERS, _ANSWERS), int)
    i, j = np.triu_indices(_ANSWERS, 1)
    wins[i, j] = rng.binomial(games, ml.sigmoid(reward[i] - reward[j]))
    wins[j, i] = games - wins[i, j]
    return reference, wins, budget


def _fitted(wins):
    """The rewards under which the comparisons are most probable (Bradley–Terry), with mean 0: Newton's method."""
    games, reward = wins + wins.T, np.zeros(_ANSWERS)
    for _ in range(8):
        p = 1 / (1 + np.exp(reward - reward[:, None]))  # (i, j): i beats j
        slope = (wins - games * p).sum(axis=1)
        curvature = games * p * (1 - p)
        curvature = np.diag(curvature.sum(axis=1)) - curvature
        reward = reward + np.linalg.pinv(curvature) @ slope
    return reward


def _most_preferred(wins):
    return int(np.argmax(_fitted(wins)))


def _policy_of(case, observation):
    """What is wrong with a policy as such or with its divergence; else None and the policy."""
    if observation.error:
        return f"raised {observation.error[0]}: {observation.message}", None
    reference, _, budget = case
    p = numeric(observation.value)
    if p is None or p.shape != reference.shape:
        return f"expected probabilities of shape {reference.shape}, got {show(observation.value)}", None
    if not np.all(np.isfinite(p)) or p.min() < 0 or abs(p.sum() - 1) > 1e-6:
        return "this is no distribution: no number may be below 0, and the sum is 1", None
    divergence = _kl(p.astype(float), reference)
    if divergence > budget + 1e-6:
        return f"KL(policy‖reference) is {divergence:.4f} nats; the budget is {budget:.4f}", None
    return None, p.astype(float)


def _buys(share):
    """A judge: within the budget, and the expected reward has risen by this share of what the budget can buy."""

    def judge(expected, case, observation):
        problem, policy = _policy_of(case, observation)
        if problem:
            return problem
        bought = _bought(policy, case[0], case[2])
        if bought >= share:
            return None
        if bought <= 0:
            return "within the budget, but the expected reward did not rise"
        return f"within the budget, but only {bought:.1%} of what it can buy were gained; {share:.0%} are needed"

    return judge


PROJECT = Item(
    id="15.alignment.align",
    kind="function",
    title="Align a model of your own",
    difficulty=3,
    minutes=45,
    source="ours; after Foundations (001), sections 11.2 to 11.4",
    answer="align",
    masked=("kl_optimal_policy",),
    task="""
A very small language model knows one prompt and eight answers: `reference`, of shape `(8,)`, holds their probabilities.
Four thousand times people were shown two of them. `wins`, `(8, 8)`, holds at `[i, j]` how often they preferred answer
$i$ to answer $j$. Their taste you do not see. It follows the Bradley–Terry model: $i$ is preferred to $j$ with
probability $\\sigma(R_i - R_j)$.

Write `align(reference, wins, budget)`. It returns the probabilities of a better model, `(8,)`, with
$\\mathrm{KL}(\\pi\\|\\pi_{\\text{ref}})$ not above `budget` nats. What counts is the expected reward under the true,
hidden taste. Let 100 % be what the best policy within the budget gains over the reference:

- the budget is kept and something is gained, 10 % at least;
- half of what the budget can buy;
- 95 % of it.

Fit a reward model and use the closed form, or train the eight logits by DPO, or reward samples by PPO: the road is
yours, and `ml.adam_step` and `ml.grad` may be used. Choose your seed yourself, if you need one, and be done in about
two seconds.
""",
    expected=lambda reference, wins, budget: _best_within(reference, _taste(reference), budget),
    checks=(
        Check("gains within the budget", 2, _worlds, _buys(0.1)),
        Check("half of what it can buy", 2, _worlds, _buys(0.5)),
        Check("95 % of what it can buy", 3, _worlds, _buys(0.95)),
    ),
    mistakes=(
        Mistake(
            lambda reference, wins, budget: reference,
            "This is the reference. Nothing is gained without moving away from it.",
        ),
        Mistake(
            lambda reference, wins, budget: np.eye(_ANSWERS)[_most_preferred(wins)],
            "All on the best answer: this is what β → 0 gives, far beyond the budget.",
        ),
        Mistake(
            lambda reference, wins, budget: _best_within(reference, -_fitted(wins), budget),
            "Winners and losers are swapped: in `wins[i, j]` it is i that was preferred.",
        ),
        Mistake(
            lambda reference, wins, budget: _mixture(reference, _most_preferred(wins), budget),
            "You mix the reference with the one best answer. The second best is good, too: e^(R/β) raises both.",
            score=4,
        ),
    ),
    hints=(
        "Rewards first: minimise −Σ wins[i, j] ln σ(r_i − r_j). `r[:, None] - r` holds all the differences.",
        "The closed form π_ref e^(R/β)/Z gains most for its divergence. Which β spends exactly the budget? Halve an "
        "interval until you know.",
        "DPO leaves you with β ln(π/π_ref), which is a reward up to a constant: then as before.",
    ),
    references=("foundations.rlhf.closed_form",),
)


# Check yourself (in the chapter, not graded) ------------------------------------------------------------------------

QUICK = [
    quick(
        "15.alignment.quick_labels",
        "What is learned from",
        "Foundations (001), section 11.1",
        "A prompt of 5 tokens and its answer make 12 tokens; the batch is padded to 16. How many targets of this text "
        "count in fine-tuning?",
        lambda: 7,
        (
            Mistake(lambda: 12, "The prompt is given, not learned: leave its 5 tokens out."),
            Mistake(lambda: 11, "Padding is no answer: 12 − 5, not 16 − 5."),
            Mistake(lambda: 6, "The first token of the answer counts as well: the last of the prompt predicts it."),
            Mistake(lambda: 16, "Neither the prompt nor the padding counts."),
        ),
    ),
    quick(
        "15.alignment.quick_preference",
        "Two points ahead",
        "Foundations (001), section 11.2",
        "Two answers have the rewards 3 and 1. With which probability is the first one preferred (Bradley–Terry)?",
        lambda: 1 / (1 + np.exp(-2)),
        (
            Mistake(lambda: 0.75, "Not the share of the rewards: σ of their difference."),
            Mistake(lambda: 1 / (1 + np.exp(2)), "This is the probability for the second one."),
            Mistake(lambda: np.log1p(np.exp(-2)), "This is the loss, −ln σ(2). The probability is σ(2)."),
            Mistake(lambda: 1 / (1 + np.exp(-3)), "Only the difference counts: 3 − 1."),
        ),
    ),
    quick(
        "15.alignment.quick_start",
        "The first step",
        "Foundations (001), section 11.4",
        "DPO begins with the policy equal to the reference. What is the loss then, for β = 0.1?",
        lambda: np.log(2),
        (
            Mistake(lambda: 0, "The margin is 0, and −ln σ(0) is not."),
            Mistake(lambda: 0.5, "σ(0) = ½ is the probability. The loss is −ln ½."),
            Mistake(lambda: 0.1 * np.log(2), "β stands inside the sigmoid, and 0.1 · 0 = 0."),
        ),
    ),
    quick(
        "15.alignment.quick_k3",
        "Divergence from one sample",
        "Schulman 2020",
        "A sampled answer has π = 0.5 and π_ref = 0.25. What is the estimate e^d − d − 1 of the divergence, "
        "d = ln π_ref − ln π?",
        lambda: 0.5 - np.log(0.5) - 1,
        (
            Mistake(lambda: 2 - np.log(2) - 1, "The ratio is upside down: d = ln(0.25/0.5)."),
            Mistake(lambda: np.log(2), "This is −d alone: right on average, but it can be negative."),
            Mistake(lambda: 0.5 - np.log(0.5), "The −1 is missing: for equal policies the estimate is 0."),
        ),
    ),
    quick(
        "15.alignment.quick_group",
        "One of four",
        "Shao et al. 2024, section 4.1",
        "Four answers to one prompt have the rewards 1, 0, 0, 0. What is the GRPO advantage of the first?",
        lambda: np.sqrt(3),
        (
            Mistake(lambda: 0.75, "This is the distance from the mean. Divide by the standard deviation."),
            Mistake(lambda: 1.5, "The variance is divided by 4 here, not by 3."),
            Mistake(lambda: 4, "You divided by the variance, 0.1875. Its root is wanted."),
            Mistake(lambda: 1 / np.sqrt(3 / 16), "The mean, 0.25, has to be subtracted first."),
        ),
    ),
]

ITEMS = [
    OWN_PREFERENCES,
    OWN_POLICY,
    CLIP_BY_HAND,
    COMPLETION,
    BEST_POLICY,
    CLIPPED_GAIN,
    GAE,
    REPAIR_GROUPS,
    REPAIR_DPO,
    DPO_PULLBACK,
    DERIVE_DPO,
    PROJECT,
    *QUICK,
]
