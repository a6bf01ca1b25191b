"""What the functions of chapters 09 to 17 promise, each with the hard arguments it is tried on."""
# ruff: noqa: I001 (the names of one chapter are one paragraph)

import numpy as np

import exact
import hard_numbers as hard
from conditions import (
    ONE, Promise, falling, gradient, keeps_digits, near, nearly_within, precise, rising, sums_to_one,
    within,
)  # fmt: skip
from mathllm.alignment import (
    bradley_terry_loss, clipped_surrogate, completion_log_probabilities, dpo_loss, group_advantages,
    ipo_loss, kl_estimate, kl_optimal_policy, kto_loss,
)  # fmt: skip
from mathllm.attention import (
    attention, attention_weights, causal_mask, linear_attention,
    positive_features, relative_buckets,
)  # fmt: skip
from mathllm.backpropagation import (
    binary_cross_entropy, gradient_bounds, jacobian_product, mlp_forward, sawtooth_network, spectral_radius,
)  # fmt: skip
from mathllm.gradient_descent import (
    adamw_init, adamw_step, bias_correction, clip_gradient, cosine_restarts, dropout,
    global_norm, polynomial_decay, warmup_cosine,
)  # fmt: skip
from mathllm.gradients import relu
from mathllm.inference import (
    acceptance_probability, apply_temperature, detect_watermark, greedy, keep_min_p, keep_top_k,
    keep_top_p, penalize_repetition, residual_distribution, sample_token,
)  # fmt: skip
from mathllm.interpretability import (
    direction_correlations, feature_dimensions, induction_score, neuron_correlations,
    previous_token_score, random_directions, recovery, sparse_decoding_limit,
    welch_bound,
)  # fmt: skip
from mathllm.matrices import singular_values
from mathllm.scale import FLOAT16, FLOAT32, ring_all_reduce, round_to
from mathllm.similarity import cosine_similarity_matrix
from mathllm.softmax import softmax
from mathllm.training import band_probability, bootstrap_interval, entropy_rate
from mathllm.transformer import batch_norm, layer_norm, mixture_of_experts, rms_norm

# Chapter 9


def warmup_cosine_stays_between(peak, floor, total, warmup):
    for step in range(total + 3):
        rate = warmup_cosine(step, peak=peak, floor=floor, total=total, warmup=warmup)
        yield within(floor if step >= warmup else 0, rate, peak)


def cosine_restarts_stay_between(peak, floor, period, _):
    for growth in (1, 1.5, 2):
        for step in range(3 * period):
            yield within(floor, cosine_restarts(step, peak=peak, floor=floor, period=period, growth=growth), peak)


def polynomial_decay_stays_between(peak, floor, total, _):
    for power in (0.5, 1, 2):
        rates = [polynomial_decay(t, peak=peak, floor=floor, total=total, power=power) for t in range(total + 2)]
        yield np.append(within(floor, rates, peak), falling(rates))


def dropout_enlarges_what_it_keeps(x):
    for rate in (0.1, 0.5):
        y = dropout(x, rate=rate, rng=hard.generator())
        yield (y == 0) | keeps_digits(y, x.astype(float) / (1 - rate))


GRADIENT_DESCENT = [
    Promise("warmup_cosine lies in [0, peak], after the warmup in [floor, peak]", hard.schedules,
            warmup_cosine_stays_between, ONE),
    Promise("cosine_restarts lies in [floor, peak]", hard.schedules, cosine_restarts_stay_between, ONE),
    Promise("polynomial_decay lies in [floor, peak] and falls", hard.schedules, polynomial_decay_stays_between, ONE),
    Promise("bias_correction is at least 1", hard.probabilities,
            lambda p: [bias_correction(beta, t) >= 1 for beta in p[p < 1] for t in (1, 2, 10**9)]),
    Promise("global_norm is at least every component", hard.vectors,
            lambda g: global_norm({"a": g, "b": [g, g]}) >= np.abs(g).max()),
    Promise("clip_gradient leaves a short gradient as it is", hard.vectors,
            lambda g: clip_gradient(g, 2 * global_norm(g) + 1)[0] == g),
    Promise("dropout gives 0 or x / (1 - rate)", hard.moderate, dropout_enlarges_what_it_keeps),
    Promise("adamw_step of a gradient of 0 is finite", hard.moderate,
            lambda x: np.isfinite(adamw_step(x, 0 * x, adamw_init(x))[0])),
]  # fmt: skip


# Chapter 10


def attention_does_not_see_the_future(q, k, v, _):
    later = np.arange(4)[:, None] > 1  # the first query sees two keys
    changed = attention(q, np.where(later, -k, k), np.where(later, 1 - v, v), causal_mask(3, 4))
    return changed[0] == attention(q, k, v, causal_mask(3, 4))[0]


def linear_attention_is_finite():
    for x in (np.full((2, 3), -60, np.float32), np.full((2, 3), -400.0)):
        yield np.isfinite(linear_attention(x, x, np.ones((2, 1), x.dtype)))


def relative_buckets_are_in_range():
    for buckets, farthest in ((32, 128), (8, 10), (4, 1000)):
        for causal in (True, False):
            yield within(0, relative_buckets(300, buckets=buckets, farthest=farthest, causal=causal), buckets - 1)


ATTENTION = [
    Promise("attention_weights sum to 1", hard.queries_keys_values,
            lambda q, k, v, mask: sums_to_one(attention_weights(q, k, mask)[:2])),
    Promise("attention_weights are 0 where the mask forbids", hard.queries_keys_values,
            lambda q, k, v, mask: attention_weights(q, k, mask)[~mask] == 0),
    Promise("attention of a query that may see nothing is 0", hard.queries_keys_values,
            lambda q, k, v, mask: attention(q, k, v, mask)[2] == 0),
    Promise("attention does not see behind a causal mask", hard.queries_keys_values, attention_does_not_see_the_future),
    Promise("positive_features are at least 0", hard.numbers, lambda x: positive_features(x) >= 0),
    Promise("linear_attention of very negative features is finite", hard.once, linear_attention_is_finite, ONE),
    Promise("relative_buckets lie in 0 ... B - 1", hard.once, relative_buckets_are_in_range, ONE),
]  # fmt: skip


# Chapter 11


def binary_losses(z, target):
    return binary_cross_entropy(z, np.full(np.shape(z), target), reduction="none")


def gradient_bounds_are_bounds(A):
    low, high = gradient_bounds([A, A.T, A])
    found = singular_values(jacobian_product([A, A.T, A]))
    return [nearly_within(low, found[0], high, 64), nearly_within(low, found[-1], high, 64)]


BACKPROPAGATION = [
    Promise("binary_cross_entropy is at least 0", hard.numbers,
            lambda z: [binary_losses(z, target) >= 0 for target in (0, 0.5, 1)]),
    Promise("binary_cross_entropy of (z, 1) is that of (-z, 0)", hard.numbers,
            lambda z: binary_losses(z, 1.0) == binary_losses(-z, 0.0)),
    Promise("binary_cross_entropy has derivatives in [-1, 1]", hard.numbers,
            lambda z: [within(-1, gradient(lambda z, y=target: binary_losses(z, y), z), 1) for target in (0, 0.5, 1)]),
    Promise("spectral_radius is at most the largest singular value", hard.square_matrices,
            lambda A: nearly_within(0, A.dtype.type(spectral_radius(A)), singular_values(A)[0], 64)),
    Promise("gradient_bounds hold the singular values between them", hard.square_matrices, gradient_bounds_are_bounds),
    Promise("sawtooth_network lies in [0, 1]", hard.probabilities,
            lambda p: within(0, mlp_forward(p.astype(float)[:, None], sawtooth_network(20)), 1)),
]  # fmt: skip


# Chapter 12


def layer_normed(x):
    return layer_norm(x, np.ones_like(x), np.zeros_like(x))


def rms_normed(x):
    return rms_norm(x, np.ones_like(x))


def mean_square(x):
    return np.mean(x.astype(float) ** 2).astype(x.dtype)


def norms_of_large_numbers_are_right_or_refused(normed):
    """The squares of these numbers are larger than the largest number."""
    for size in (np.float32(1e20), np.float64(1e200)):
        try:
            yield near(mean_square(normed(size * np.array([1, -1, 1, -1], size.dtype))), 1)
        except ValueError as refusal:
            yield "_norm() needs" in str(refusal)


def experts_that_agree_are_one(x):
    expert = {"up": np.eye(1, dtype=x.dtype), "down": np.eye(1, dtype=x.dtype)}
    params = {"router": np.array([[1, -2, 0.5]], x.dtype), "experts": 3 * [expert]}
    return near(mixture_of_experts(x[:, None], params, activation="relu")[:, 0], relu(x))


TRANSFORMER = [
    Promise("layer_norm of equal components is the bias", hard.equal_components,
            lambda x: np.abs(layer_normed(x)) <= 0.01),
    Promise("layer_norm of large numbers has size 1 or is refused", hard.once,
            lambda: norms_of_large_numbers_are_right_or_refused(layer_normed), ONE),
    Promise("rms_norm of large numbers has size 1 or is refused", hard.once,
            lambda: norms_of_large_numbers_are_right_or_refused(rms_normed), ONE),
    Promise("batch_norm of equal examples is the bias", hard.equal_components,
            lambda x: np.abs(batch_norm(x[:, None], np.ones(1, x.dtype), np.zeros(1, x.dtype))) <= 0.01),
    Promise("mixture_of_experts of equal experts is one of them", hard.moderate, experts_that_agree_are_one),
]  # fmt: skip


# Chapter 13


def band_probability_keeps_its_digits(p):
    def formula(J):
        return 1 - exact.power(1 - exact.power(J, 8), 16)

    return keeps_digits(band_probability(p, bands=16, rows=8), precise(p, formula), 64)


TRAINING = [
    Promise("band_probability lies in [0, 1]", hard.probabilities, lambda p: within(0, band_probability(p, 16, 8), 1)),
    Promise("band_probability never falls", hard.probabilities, lambda p: rising(band_probability(p, 16, 8), 2)),
    Promise("band_probability keeps its digits", hard.probabilities, band_probability_keeps_its_digits, ONE),
    Promise("bootstrap_interval of equal values is that value", hard.equal_components,
            lambda x: np.ptp(bootstrap_interval(x, hard.generator(), samples=20)) == 0),
    Promise("entropy_rate lies in [0, ln V]", hard.transitions,
            lambda A: nearly_within(0, A.dtype.type(entropy_rate(A)), np.log(len(A)))),
]  # fmt: skip


# Chapter 14


def temperature_of_the_logits_is_that_of_softmax(z):
    for temperature in (0.5, 1, 2, 1e6):
        rounding = np.ptp(np.clip(z, -1e4, 1e4).astype(float)) / temperature  # of the quotients, before exp
        ours = softmax(apply_temperature(z, temperature))
        yield near(ours, softmax(z, temperature=temperature), 8 + 2 * rounding, size=1)


def kept_masses(z):
    """For each p, and for each kept set: its probabilities, in float64."""
    p_of_token = softmax(z.astype(np.float64))
    for p in (1e-6, 0.1, 0.5, 0.9, 0.999, 1.0):
        yield p, p_of_token[np.isfinite(keep_top_p(z, p))]


def accepted_or_drawn_again_is_the_target(p, q):
    p, q = (x.astype(np.float64) / x.sum(dtype=np.float64) for x in (p, q))
    accepted = q * acceptance_probability(p, q)
    return near(accepted + (1 - accepted.sum()) * residual_distribution(p, q), p)


INFERENCE = [
    Promise("apply_temperature gives the softmax of that temperature", hard.logits,
            temperature_of_the_logits_is_that_of_softmax),
    Promise("greedy finds the most probable token", hard.logits, lambda z: softmax(z)[greedy(z)] == softmax(z).max()),
    Promise("sample_token never draws a masked token", hard.logits,
            lambda z: [z[sample_token(z, np.random.default_rng(seed))] > -np.inf for seed in range(20)]),
    Promise("keep_top_k keeps k tokens", hard.finite_logits,
            lambda z: [np.isfinite(keep_top_k(z, k)).sum() >= min(k, len(z)) for k in (1, 2, 5)]),
    Promise("keep_top_k keeps the largest", hard.logits,
            lambda z: [keep_top_k(z, k).max() == z.max() for k in (1, 2, 5)]),
    Promise("keep_top_p keeps a mass of p", hard.logits,
            lambda z: [kept.sum() >= p - 1e-8 for p, kept in kept_masses(z)]),
    Promise("keep_top_p keeps no token that is not needed", hard.logits,
            lambda z: [len(kept) == 1 or kept.sum() - kept.min() <= p + 1e-8 for p, kept in kept_masses(z)]),
    Promise("keep_top_p of 1 keeps every possible token", hard.logits,
            lambda z: np.isfinite(keep_top_p(z, 1.0))[softmax(z.astype(np.float64)) > 0]),
    Promise("keep_min_p keeps the largest and its ties", hard.logits,
            lambda z: [np.isfinite(keep_min_p(z, p))[z == z.max()] for p in (0, 0.1, 1)]),
    Promise("penalize_repetition never raises a logit", hard.logits,
            lambda z: [penalize_repetition(z[None], [[0]], penalty)[0] <= z for penalty in (1, 1.2, 1e3)]),
    Promise("acceptance_probability lies in [0, 1]", hard.distribution_pairs,
            lambda p, q: within(0, acceptance_probability(p, q), 1)),
    Promise("residual_distribution sums to 1", hard.ordinary_distribution_pairs,
            lambda p, q: np.array_equal(p, q) or sums_to_one(residual_distribution(p, q))),
    Promise("what is accepted or drawn again has the distribution of the target", hard.distribution_pairs,
            accepted_or_drawn_again_is_the_target),
    Promise("detect_watermark has a p-value in [0, 1]", hard.once,
            lambda: [within(0, detect_watermark(np.arange(n) * 7 % 50, 50).p_value, 1) for n in (2, 3, 50, 2000)], ONE),
]  # fmt: skip


# Chapter 15


def kl_optimal_policy_sums_to_one(p, reward):
    for beta in (1e-3, 1, 1e6):
        found = kl_optimal_policy(p, reward, beta=beta)
        yield within(0, found, 1 + 1e-9).all() and near(found.sum(), 1, 8 + 8 / beta)


ALIGNMENT = [
    Promise("completion_log_probabilities are at most 0", hard.labelled_logits,
            lambda z, labels: completion_log_probabilities(z[None], labels[None]) <= 0),
    Promise("bradley_terry_loss is at least 0", hard.number_pairs, lambda a, b: bradley_terry_loss(a, b) >= 0),
    Promise("dpo_loss is at least 0", hard.moderate, lambda x: dpo_loss(x, -x, 0 * x, 0 * x) >= 0),
    Promise("ipo_loss is at least 0", hard.moderate, lambda x: ipo_loss(x, -x, 0 * x, 0 * x) >= 0),
    Promise("kto_loss lies in [0, 1]", hard.moderate,
            lambda x: [within(0, kto_loss([r], [0.0], [good]), 1) for r in x for good in (True, False)]),
    Promise("clipped_surrogate is at most the ratio times the advantage", hard.positive,
            lambda r: [clipped_surrogate(r, 0 * r + A) <= r * r.dtype.type(A) for A in (-1.5, -1e-3, 0, 1e-3, 1.5)]),
    Promise("clipped_surrogate of a gain is at most (1 + epsilon) A", hard.positive,
            lambda r: nearly_within(0, clipped_surrogate(r, 0 * r + 1.5), 1.8)),
    Promise("kl_optimal_policy sums to 1", hard.ordinary_distribution_pairs, kl_optimal_policy_sums_to_one),
    Promise("kl_optimal_policy takes the highest reward as beta falls", hard.once,
            lambda: near(kl_optimal_policy([0.5, 0.5], [1.0, 2.0], beta=1e-308), [0, 1]), ONE),
    Promise("kl_estimate is at least 0", hard.log_ratios, lambda p, r: kl_estimate(p, r) >= 0),
    Promise("group_advantages have mean 0", hard.rewards, lambda R: near(group_advantages(R).mean(), 0, 64), ONE),
    Promise("group_advantages of equal rewards are 0", hard.rewards,
            lambda R: np.ptp(R) > 0 or near(group_advantages(R), 0), ONE),
    Promise("group_advantages have a standard deviation of at most 1", hard.rewards,
            lambda R: nearly_within(0, group_advantages(R).std(), 1), ONE),
]  # fmt: skip


# Chapter 16


def attention_scores_lie_between_0_and_1(A):
    weights = A[None, None]
    return [nearly_within(0, previous_token_score(weights), 1), nearly_within(0, induction_score(weights, 2), 1)]


def feature_dimensions_do_not_depend_on_size():
    pair_and_one = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]])
    return [near(feature_dimensions(s * pair_and_one), [0.5, 0.5, 1]) for s in (1e-200, 1e-5, 1, 1e200)]


def welch_bound_is_a_bound():
    for features, d in ((2, 1), (3, 2), (50, 7), (8, 8)):
        overlaps = np.abs(cosine_similarity_matrix(*2 * [random_directions(features, d, hard.generator())]))
        yield overlaps[~np.eye(features, dtype=bool)].max() >= welch_bound(features, d) * (1 - 1e-12)


def sparse_decoding_limit_solves_its_equation():
    for features, d in ((10, 1), (1000, 10), (10**5, 4096), (10**9, 1)):
        k = sparse_decoding_limit(features, d)
        yield near(2 * k * np.log(features / k), d, 64)


INTERPRETABILITY = [
    Promise("induction and previous-token scores lie in [0, 1]", hard.transitions,
            attention_scores_lie_between_0_and_1),
    Promise("neuron_correlations lie in [-1, 1]", hard.activations,
            lambda x, f: within(-1, neuron_correlations(x, f), 1), ONE),
    Promise("direction_correlations lie in [0, 1]", hard.activations,
            lambda x, f: within(0, direction_correlations(x, f), 1), ONE),
    Promise("direction_correlations are at least those of every neuron", hard.activations, lambda x, f: nearly_within(
        np.abs(neuron_correlations(x, f)).max(axis=1), direction_correlations(x, f), 1, 64), ONE),
    Promise("recovery lies in [-1, 1]", hard.row_matrices, lambda X: within(-1, recovery(X, X), 1)),
    Promise("feature_dimensions lie in [0, 1]", hard.row_matrices, lambda X: within(0, feature_dimensions(X), 1)),
    Promise("feature_dimensions of a single feature are 1", hard.directions,
            lambda x: near(feature_dimensions(x[None]), 1) & within(0, feature_dimensions(x[None]), 1)),
    Promise("feature_dimensions do not depend on the size", hard.once, feature_dimensions_do_not_depend_on_size, ONE),
    Promise("welch_bound is a bound", hard.once, welch_bound_is_a_bound, ONE),
    Promise("welch_bound lies in [0, 1]", hard.once,
            lambda: [within(0, welch_bound(N, d), 1) for N in (2, 3, 10**12) for d in (1, 2, 10**9)], ONE),
    Promise("sparse_decoding_limit solves its equation", hard.once, sparse_decoding_limit_solves_its_equation, ONE),
]  # fmt: skip


# Chapter 17


def limits_of(name):
    limits = np.finfo(name)
    return tuple(float(x) for x in (limits.max, limits.smallest_subnormal, limits.smallest_normal, limits.eps))


def ring_all_reduce_agrees(X):
    results = ring_all_reduce(list(X)).results
    return [result == results[0] for result in results]


SCALE = [
    Promise("round_to twice is round_to once", hard.numbers, lambda x: round_to(round_to(x)) == round_to(x)),
    Promise("formats have NumPy's limits", hard.once, lambda: [
        (f.largest, f.smallest, f.smallest_normal, f.epsilon) == limits_of(f.name) for f in (FLOAT16, FLOAT32)], ONE),
    Promise("ring_all_reduce gives every worker the same sum", hard.matrices, ring_all_reduce_agrees),
]  # fmt: skip
