"""Chapter 15, alignment: preferred answers, a policy on a leash, clipped steps, and preferences learned directly."""

import numpy as np

import mathllm as ml

from ..cases import each
from ..compare import numeric, show
from ..scoring import array, named
from . import checks, draws


@draws("15.alignment.own_preferences")
def _own_pairs(rng):
    """Rewards of four pairs of answers, in tenths: some in the right order, some not, none equal."""
    while True:
        chosen, rejected = rng.integers(-20, 31, size=(2, 4)) / 10
        margin = chosen - rejected
        if 0 < np.sum(margin > 0) < 4 and np.abs(margin).min() > 0.25 and abs(margin.mean()) > 0.1:
            return {"chosen": chosen.tolist(), "rejected": rejected.tolist()}


@draws("15.alignment.own_policy")
def _own_beta(rng):
    return {
        "beta": float(rng.choice([0.4, 0.6, 0.8, 1.25, 1.5, 2.0])),
        "R": [float(r) for r in rng.permutation([0, 1, 2, 3])[:3]],
    }


_REFERENCE = np.array([0.5, 0.3, 0.2])  # of the documents' row on the closed form


def _normalised(weights):
    weights = np.asarray(weights, float)
    return weights / weights.sum()


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


@checks("15.alignment.completion_log_p")
def _(c):
    c.values(
        3,
        _texts,
        public=[(np.zeros((1, 3, 4)), np.array([[-100, 1, 2]])), (np.zeros((1, 3, 4)), np.full((1, 3), -100))],
    )
    c.values(
        1,
        _sure_texts,
        public=[(np.array([[[0.0, 900.0], [900.0, 0.0], [0.0, 0.0]]]), np.array([[-100, 0, 0]]))],
        name="a model that is very sure",
    )


def _rewarded(rng):
    return [(ml.softmax(rng.normal(size=n)), 2 * rng.normal(size=n), float(rng.uniform(0.2, 3))) for n in (2, 4, 9)]


@checks("15.alignment.best_policy")
def _(c):
    c.values(
        3,
        _rewarded,
        public=[
            (_REFERENCE, np.array([1.0, 0.0, 2.0]), 0.5),
            (np.array([0.5, 0.5, 0.0]), np.array([0.0, 1.0, 3.0]), 1.0),
        ],
    )
    c.values(
        2,
        public=[
            (_REFERENCE, np.array([5000.0, 4999.0, 5001.0]), 1.0),
            (np.array([0.25, 0.75]), np.array([-4000.0, -4001.0]), 0.5),
            (np.array([0.5, 0.5, 0.0]), np.array([0.0, 1.0, 5000.0]), 1.0),
            (np.array([0.25, 0.75]), np.array([0.0, 3000.0]), 1.0),
        ],
        name="huge rewards",
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
    advantage = rng.uniform(1.2, 2, size=6) * np.tile([1, -1], 3)  # of both signs, no r A below r
    return [(old + rng.uniform(-0.09, 0.09, size=6), old, advantage, 0.2)]


@checks("15.alignment.clipped_gain")
def _(c):
    c.values(3, _all_corners, public=[_CORNERS], name="beyond the range")
    c.values(1, _inside, name="inside the range")


@each
def _walks(rng, T, ends=True):
    """Rewards, values and ends of a walk; γ and λ are different."""
    done = np.zeros(T, bool)
    if ends:
        done[rng.integers(1, T - 1)] = done[-1] = True
    discount, decay = rng.uniform(0.9, 0.99), rng.uniform(0.3, 0.8)
    return rng.normal(size=T), rng.normal(size=T + 1), done, float(discount), float(decay)


@checks("15.alignment.gae")
def _(c):
    c.values(
        2,
        _walks(4, 9, ends=False),
        public=[(np.array([0.0, 0.0, 1.0]), np.array([0.5, 0.5, 0.5, 0.0]), np.zeros(3, bool), 1.0, 1.0)],
        name="no end inside",
    )
    c.values(2, _walks(4, 9), name="ends inside")


def _groups(rng):
    """Rewards of groups, none of them so close together that 10⁻⁸ in the variance would show."""
    cases = []
    for size in ((2, 3), (4, 8)):
        while (rewards := rng.normal(size=size) * rng.uniform(0.5, 3, size=(size[0], 1)) + 2).std(axis=-1).min() < 0.2:
            pass
        cases.append((rewards,))
    return cases


@checks("15.alignment.repair_groups")
def _(c):
    c.values(3, _groups, public=[(np.array([[1.0, 0.0, 1.0, 0.0], [9.0, 9.0, 9.0, 5.0]]),)], rtol=1e-6, atol=1e-6)
    c.values(
        1,
        public=[
            (np.array([[1.0, 1.0, 1.0], [0.0, 1.0, 2.0]]),),
            (np.array([[0.1, 0.1, 0.1]]),),
            (np.array([[0.5, 0.5001, 0.5, 0.5001]]),),
        ],
        name="equal and nearly equal rewards",
        rtol=1e-6,
        atol=1e-6,
    )


@each
def _answers(rng, size, padded=True):
    """Log-probabilities of the tokens of n pairs of answers; padding holds numbers that mean nothing."""
    n, T = size
    policy, reference = -rng.uniform(0.2, 4, size=(2, 2, n, T))
    lengths = rng.integers(1, T, size=(2, n)) if padded else np.full((2, n), T)
    return policy, reference, np.arange(T) < lengths[..., None], float(rng.uniform(0.05, 0.9))


def _hopeless(rng):
    """Three pairs, of which the policy orders two the wrong way, so far that a mean over the tokens overflows, too."""
    moved = np.array([0.1, 300.0, 2000.0])[:, None] * rng.uniform(0.5, 1, size=(2, 3, 5))
    likely = -rng.uniform(0.2, 4, size=(2, 3, 5))
    unlikely = likely - moved
    policy, reference = np.stack([unlikely[0], likely[1]]), np.stack([likely[0], unlikely[1]])
    return [(policy, reference, np.ones((2, 3, 5), bool), 0.9)]


_SAMPLE = (
    np.array([[[-1.0]], [[-4.0]]]),
    np.array([[[-3.0]], [[-3.0]]]),
    np.ones((2, 1, 1), bool),
    0.1,
)  # log-ratios +2 and −1, as in the documents' row
_TWELVE = (np.array([[[-13.0]], [[-1.0]]]), np.full((2, 1, 1), -1.0), np.ones((2, 1, 1), bool), 1.0)  # margin −12


@checks("15.alignment.repair_dpo")
def _(c):
    c.values(
        2,
        _answers((2, 4), (3, 7), padded=False),
        public=[_SAMPLE, (_SAMPLE[0], _SAMPLE[0], *_SAMPLE[2:])],
        name="equal lengths",
    )
    c.values(2, _answers((2, 4), (3, 7)), name="different lengths")
    c.values(1, _hopeless, public=[_TWELVE], name="far on the wrong side")


def _pairs_and_slope(rng):
    """Four rows of log-probabilities of whole answers, β and dy."""
    return [(*(-rng.uniform(1, 9, size=(4, n))), float(rng.uniform(0.1, 0.9)), float(rng.normal())) for n in (1, 4)]


def _loss_of_pairs(policy_w, policy_l, reference_w, reference_l, beta):
    return ml.alignment.dpo_loss(policy_w, policy_l, reference_w, reference_l, beta=beta)


_START = (np.array([-3.0, -5.0]), np.array([-4.0, -2.0]), np.array([-3.0, -5.0]), np.array([-4.0, -2.0]), 0.1, 1.0)


@checks("15.alignment.dpo_pullback")
def _(c):
    c.gradient(3, _loss_of_pairs, _pairs_and_slope, wrt=(0, 1))
    c.values(1, public=[_START], name="at the start, policy = reference")


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


def _policy_of(case, observation):
    """What is wrong with a policy as such or with its divergence; else None and the policy."""
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


@checks(
    "15.alignment.align", expected=lambda reference, wins, budget: _best_within(reference, _taste(reference), budget)
)
def _(c):
    c.judge("gains within the budget", 2, _worlds, _buys(0.1))
    c.judge("half of what it can buy", 2, _worlds, _buys(0.5))
    c.judge("95 % of what it can buy", 3, _worlds, _buys(0.95))


# The reference's probabilities of six answers, and their rewards.
SIX_ANSWERS = np.array([0.40, 0.25, 0.15, 0.10, 0.07, 0.03]), np.array([0.0, 1, 1, 2, 3, 5])


def _divergence(policy):
    policy, (reference, R) = array(policy, 6), SIX_ANSWERS
    if np.any(policy < 0):
        raise ValueError(f"the six probabilities are at least 0; one of yours is {policy.min():.6g}")
    if abs(policy.sum() - 1) > 1e-6:
        raise ValueError(f"the six probabilities sum to 1; yours sum to {policy.sum():.6g}")
    if policy @ R < 3 - 1e-6:
        reason = f"the mean reward of this policy is {policy @ R:.6g}; at least 3 is asked for"
        tilts = {
            "This is the reference itself. Multiply it by e^(R/β), and divide by the sum.": reference,
            "You multiplied the reference by the rewards. Multiply it by e^(R/β).": _normalised(reference * R),
            "This is a uniform policy, which leaves out the reference. Multiply the reference by e^(R/β).": np.full(
                6, 1 / 6
            ),
        }
        raise ValueError(reason, *named(policy, tilts))
    return np.sum(policy * np.log(np.where(policy > 0, policy, 1) / reference))


def _closer(policy):
    """The sentence for a policy that reaches the reward at too high a cost, if it is a known one."""
    reference, R = SIX_ANSWERS
    slips = {
        "All probability is on one answer. Reaching the reward 3 by several answers costs less.": np.eye(6)[5],
        "All probability is on the one answer of reward 3. Give every answer some probability.": np.eye(6)[4],
        "This is the policy for β = 1. Its mean reward is above 3: a larger β costs less.": _normalised(
            reference * np.exp(R)
        ),
        "This is the softmax of the rewards, without the reference. Multiply the reference by e^(R/β).": _normalised(
            np.exp(R)
        ),
        "Only the two best answers have a probability. Multiply the reference by e^(R/β), which keeps all six.": (
            np.array([0, 0, 0, 0, 0.7, 0.3])
        ),
    }
    return named(array(policy, 6), slips)


@checks("15.alignment.cheapest_policy")
def _(c):
    c.scored("nats", _divergence, {0.967: 1, 1.146: 2 / 3, 2.31: 1 / 3}, _closer)
