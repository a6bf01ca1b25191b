"""What the functions of chapters 01 to 08 promise, each with the hard arguments it is tried on."""
# ruff: noqa: I001 (the names of one chapter are one paragraph)

import numpy as np

import exact
import hard_numbers as hard
from conditions import (
    ONE, Promise, falling, gradient, near, nearly_within, precise, sums_to_one, within,
)  # fmt: skip
from mathllm.autodiff import vjp
from mathllm.cross_entropy import (
    arithmetic_decode, arithmetic_encode, code_length, cross_entropy, cross_entropy_between, entropy,
    info_nce, kl_divergence, mutual_information, surprise,
)  # fmt: skip
from mathllm.exponentials import (
    exponent_range, log, log1m_exp, log_add_exp, log_product, log_sigmoid, log_sum_exp, sigmoid, softplus,
)  # fmt: skip
from mathllm.gradients import erf, gelu, gelu_tanh, relu, silu
from mathllm.matrices import (
    attention_focus, low_rank_approximation, low_rank_error, singular_values,
    spectral_gap, stationary_distribution,
)  # fmt: skip
from mathllm.probability import (
    bernoulli_log_likelihood, distribution_from_counts, is_distribution,
    normal_density, normal_log_density, posterior, sample, sequential_posterior, variance,
)  # fmt: skip
from mathllm.similarity import (
    WordVectors, cosine_similarity, cosine_similarity_matrix, dot, retrieve,
)  # fmt: skip
from mathllm.softmax import log_softmax, softmax, softmax_jacobian, tanh
from mathllm.vectors import distance, frobenius_norm, norm, normalize

# Chapter 1


VECTORS = [
    Promise("norm is at least every component", hard.vectors, lambda x: norm(x) >= np.abs(x).max()),
    Promise("norm does not depend on signs", hard.vectors, lambda x: norm(np.abs(x)) == norm(x)),
    Promise("norm of a single component is its absolute value", hard.numbers, lambda x: norm(x[:, None]) == np.abs(x)),
    Promise("distance from a vector to itself is 0", hard.vectors, lambda x: distance(x, x) == 0),
    Promise("distance is symmetric", hard.vector_pairs, lambda a, b: distance(a, b) == distance(b, a)),
    Promise("normalize gives components in [-1, 1]", hard.directions, lambda x: within(-1, normalize(x), 1)),
]  # fmt: skip


# Chapter 2


def nearest_does_not_depend_on_lengths(X):
    names = [str(number) for number in range(len(X))]
    expected = WordVectors(names, X).nearest(X[0].astype(float), k=3)
    for size in (1e-30, 1e25):
        found = WordVectors(names, X * X.dtype.type(size)).nearest(X[0].astype(float) * size, k=3)
        yield near([cosine for _, cosine in found], [cosine for _, cosine in expected], 2**30)


SIMILARITY = [
    Promise("dot is symmetric", hard.moderate_pairs, lambda a, b: dot(a, b) == dot(b, a)),
    Promise("cosine_similarity lies in [-1, 1]", hard.direction_pairs,
            lambda a, b: within(-1, cosine_similarity(a, b), 1)),
    Promise("cosine_similarity is symmetric", hard.direction_pairs,
            lambda a, b: cosine_similarity(a, b) == cosine_similarity(b, a)),
    Promise("cosine_similarity_matrix lies in [-1, 1]", hard.row_matrices,
            lambda X: within(-1, cosine_similarity_matrix(X, X), 1)),
    Promise("retrieve gives cosines in [-1, 1]", hard.row_matrices,
            lambda X: [within(-1, retrieve(x, X, k=9)[1], 1) for x in X]),
    Promise("retrieve gives the best document first", hard.row_matrices, lambda X: falling(retrieve(X[0], X, k=99)[1])),
    Promise("WordVectors.similarity lies in [-1, 1]", hard.row_matrices,
            lambda X: [within(-1, WordVectors("ab", X[[0, i]]).similarity("a", "b"), 1) for i in range(1, len(X))]),
    Promise("WordVectors.nearest does not depend on lengths", hard.row_matrices, nearest_does_not_depend_on_lengths,
            (np.float32, np.float64)),
    Promise("info_nce is at least 0", hard.row_matrices, lambda X: info_nce(X, X[::-1], 0.01) >= 0),
    Promise("sigmoid lies in [0, 1]", hard.numbers, lambda x: within(0, sigmoid(x), 1)),
    Promise("sigmoid(-x) = 1 - sigmoid(x)", hard.numbers, lambda x: near(sigmoid(-x), 1 - sigmoid(x), 2)),
    Promise("sigmoid has a derivative in [0, 1/4]", hard.numbers, lambda x: within(0, gradient(sigmoid, x), 0.25)),
]  # fmt: skip


# Chapter 3


def low_rank_error_is_the_distance(W):
    for rank in range(min(W.shape) + 1):
        distance = frobenius_norm(W - low_rank_approximation(W, rank))
        yield near(low_rank_error(W, rank), distance, 64, size=np.abs(W).max())


def low_rank_errors(W):
    return [float(low_rank_error(W, rank)) for rank in range(min(W.shape) + 1)]


MATRICES = [
    Promise("singular_values are at least 0", hard.matrices, lambda W: singular_values(W) >= 0),
    Promise("singular_values fall", hard.matrices, lambda W: falling(singular_values(W))),
    Promise("low_rank_error is the distance to the approximation", hard.matrices, low_rank_error_is_the_distance),
    Promise("low_rank_error falls with the rank", hard.matrices, lambda W: falling(low_rank_errors(W))),
    Promise("low_rank_error is 0 at full rank", hard.matrices, lambda W: low_rank_errors(W)[-1] == 0),
    Promise("stationary_distribution sums to 1", hard.transitions, lambda A: sums_to_one(stationary_distribution(A))),
    Promise("stationary_distribution is not changed by the matrix", hard.transitions,
            lambda A: near(stationary_distribution(A) @ A, stationary_distribution(A).astype(A.dtype))),
    Promise("spectral_gap lies in [0, 1]", hard.transitions, lambda A: within(0, spectral_gap(A), 1)),
    Promise("attention_focus lies in [1/n, 1]", hard.transitions,
            lambda A: nearly_within(1 / len(A), A.dtype.type(attention_focus(A)), 1)),
]  # fmt: skip


# Chapter 4


def exponent_range_is_right(x):
    low, high = (x.dtype.type(0.999 * end) for end in exponent_range(x.dtype))
    return [np.exp(low) > 0, np.isfinite(np.exp(high)), np.exp(low * x.dtype.type(1.1)) == 0]


EXPONENTIALS = [
    Promise("exponent_range is where exp is neither 0 nor infinite", hard.numbers, exponent_range_is_right),
    Promise("log to base 2 is exact at powers of 2", hard.once,
            lambda: log(2.0 ** np.arange(-1000, 1000), base=2) == np.arange(-1000, 1000), ONE),
    Promise("log to base 10 is exact at powers of 10", hard.once,
            lambda: log(10.0 ** np.arange(16), base=10) == np.arange(16), ONE),
    Promise("log_product of nothing is 0", hard.once, lambda: log_product(np.ones(0)) == 0, ONE),
    Promise("log_sum_exp is at least the largest", hard.logits, lambda z: log_sum_exp(z) >= z.max()),
    Promise("log_sum_exp of one number is that number", hard.numbers, lambda x: log_sum_exp(x[:, None]) == x),
    Promise("log_add_exp is at least the larger", hard.number_pairs,
            lambda a, b: log_add_exp(a, b) >= np.maximum(a, b)),
    Promise("log_add_exp is symmetric", hard.number_pairs, lambda a, b: log_add_exp(a, b) == log_add_exp(b, a)),
    Promise("log_add_exp has derivatives in [0, 1]", hard.number_pairs,
            lambda a, b: within(0, gradient(log_add_exp, a, b), 1)),
    Promise("log1m_exp is at most 0", hard.logarithms, lambda x: log1m_exp(x) <= 0),
    Promise("softplus is at least max(x, 0)", hard.numbers, lambda x: softplus(x) >= np.maximum(x, 0)),
    Promise("softplus has a derivative in [0, 1]", hard.numbers, lambda x: within(0, gradient(softplus, x), 1)),
    Promise("log_sigmoid is at most 0", hard.numbers, lambda x: log_sigmoid(x) <= 0),
]  # fmt: skip


# Chapter 5


def counted_distributions_sum_to_one():
    for counts in ([3, 1, 0], [10**15, 1, 1], [1] * 999, np.array([200, 255], np.uint8)):
        for add in (0, 0.1, 1):
            yield sums_to_one(distribution_from_counts(counts, add=add))


def posterior_sums_to_one(prior, likelihood):
    possible = np.any((prior > 0) & (likelihood > 0))
    return not possible or sums_to_one(posterior(prior, likelihood))


PROBABILITY = [
    Promise("is_distribution knows every softmax", hard.logits, lambda z: is_distribution(softmax(z))),
    Promise("distribution_from_counts sums to 1", hard.once, counted_distributions_sum_to_one, ONE),
    Promise("distribution_from_counts of the largest numbers sums to 1", hard.positive,
            lambda x: sums_to_one(distribution_from_counts(np.repeat(x[-2:], 2))), (np.float16, np.float32)),
    Promise("sample never draws what has probability 0", hard.distributions,
            lambda p: p[sample(p, hard.generator(), 2000)] > 0),
    Promise("variance is at least 0", hard.valued_distributions, lambda x, p: variance(x, p) >= 0),
    Promise("normal_density is symmetric", hard.moderate, lambda x: normal_density(x) == normal_density(-x)),
    Promise("normal_log_density is largest at the mean", hard.moderate,
            lambda x: normal_log_density(x, 0.0, 1.0) <= normal_log_density(0 * x, 0.0, 1.0)),
    Promise("bernoulli_log_likelihood is at most 0", hard.probabilities,
            lambda p: bernoulli_log_likelihood(p, successes=3, trials=10) <= 0),
    Promise("bernoulli_log_likelihood of what is certain is 0", hard.once,
            lambda: bernoulli_log_likelihood(1.0, successes=5, trials=5) == 0, ONE),
    Promise("posterior sums to 1", hard.distribution_pairs, posterior_sums_to_one),
    Promise("sequential_posterior sums to 1", hard.once,
            lambda: near(sequential_posterior([0.5, 0.5], [[0.9, 0.3]] * 3000).sum(axis=1), 1, 1e4), ONE),
]  # fmt: skip


# Chapter 6


def softmax_ignores_a_common_shift(z):
    z = np.round(z) % 100  # differences of such numbers are exact in every dtype
    return softmax(z) == softmax(z - 50)


SOFTMAX = [
    Promise("softmax sums to 1 at every temperature", hard.logits,
            lambda z: [sums_to_one(softmax(z, temperature=T)) for T in (1e-6, 0.5, 1, 2, 1e9)]),
    Promise("softmax gives equal logits equal probabilities", hard.logits,
            lambda z: np.ptp(softmax(np.stack([z, z])), axis=0) == 0),
    Promise("softmax does not depend on a common shift", hard.finite_logits, softmax_ignores_a_common_shift),
    Promise("softmax of a masked logit is 0", hard.logits, lambda z: softmax(z)[np.isneginf(z)] == 0),
    Promise("log_softmax is at most 0 at every temperature", hard.logits,
            lambda z: [log_softmax(z, temperature=T) <= 0 for T in (1e-6, 1, 1e9)]),
    Promise("softmax_jacobian is symmetric", hard.finite_logits,
            lambda z: softmax_jacobian(z[:50]) == softmax_jacobian(z[:50]).T),
    Promise("softmax_jacobian lies in [-1/4, 1/4]", hard.finite_logits,
            lambda z: within(-0.25, softmax_jacobian(z[:50]), 0.25)),
    Promise("tanh lies in [-1, 1]", hard.numbers, lambda x: within(-1, tanh(x), 1)),
    Promise("tanh is odd", hard.numbers, lambda x: tanh(-x) == -tanh(x)),
    Promise("tanh has a derivative in [0, 1]", hard.numbers, lambda x: within(0, gradient(tanh, x), 1)),
]  # fmt: skip


# Chapter 7


def no_slope_is_nan(p):
    slopes = [vjp(loss, p, p[::-1])[1](p.dtype.type(1)) for loss in (kl_divergence, cross_entropy_between)]
    return [~np.isnan(slope) for pair in slopes for slope in pair]


def token_losses(z, labels):
    return cross_entropy(z, labels, reduction="none")


def token_gradients(z, labels):
    return gradient(lambda z: cross_entropy(z, labels, reduction="sum"), z)


def code_gives_back_the_message(p):
    message = [0, len(p) - 1, 0]
    return arithmetic_decode(arithmetic_encode(message, lambda seen: p), lambda seen: p, 3) == message


CROSS_ENTROPY = [
    Promise("surprise is at least 0", hard.probabilities, lambda p: surprise(p) >= 0),
    Promise("surprise of what is certain up to rounding is at least 0", hard.distributions, lambda p: surprise(p) >= 0),
    Promise("entropy is at least 0", hard.distributions, lambda p: entropy(p) >= 0),
    Promise("cross_entropy_between is at least 0", hard.distribution_pairs,
            lambda p, q: cross_entropy_between(p, q) >= 0),
    Promise("kl_divergence is at least 0", hard.distribution_pairs, lambda p, q: kl_divergence(p, q) >= 0),
    Promise("kl_divergence from itself is 0", hard.distributions, lambda p: kl_divergence(p, p) == 0),
    Promise("kl_divergence and cross_entropy_between have gradients without NaN", hard.distributions, no_slope_is_nan),
    Promise("mutual_information is at least 0", hard.ordinary_distribution_pairs,
            lambda p, q: mutual_information(np.outer(p, q)) >= 0),
    Promise("cross_entropy is at least 0", hard.labelled_logits, lambda z, y: token_losses(z, y) >= 0),
    Promise("cross_entropy has gradients in [-1, 1]", hard.labelled_logits,
            lambda z, y: within(-1, token_gradients(z, y), 1)),
    Promise("code_length is at least 0", hard.distributions,
            lambda p: code_length([np.argmax(p)] * 3, lambda seen: p) >= 0),
    Promise("arithmetic_decode gives back the message", hard.distributions, code_gives_back_the_message),
]  # fmt: skip


# Chapter 8


def erf_is_right(x):
    x = np.clip(x, -40, 40)
    right = precise(x, exact.erf)
    return np.abs(erf(x) - right) <= np.clip(4e-15 * np.abs(right), 1e-323, 6e-16)


GRADIENTS = [
    Promise("erf lies in [-1, 1]", hard.numbers, lambda x: within(-1, erf(x), 1)),
    Promise("erf is odd", hard.numbers, lambda x: erf(-x) == -erf(x)),
    Promise("erf is right to 4e-15 relative and to 6e-16 absolute", hard.numbers, erf_is_right, ONE),
    Promise("gelu(x) - gelu(-x) = x", hard.moderate, lambda x: near(gelu(x) - gelu(-x), x)),
    Promise("gelu lies between -0.17 and relu", hard.numbers, lambda x: within(-0.17, gelu(x), relu(x))),
    Promise("gelu has a derivative in [-0.13, 1.13]", hard.numbers, lambda x: within(-0.13, gradient(gelu, x), 1.13)),
    Promise("gelu_tanh(x) - gelu_tanh(-x) = x", hard.moderate, lambda x: near(gelu_tanh(x) - gelu_tanh(-x), x)),
    Promise("gelu_tanh lies between -0.18 and relu", hard.numbers, lambda x: within(-0.18, gelu_tanh(x), relu(x))),
    Promise("silu(x) - silu(-x) = x", hard.moderate, lambda x: near(silu(x) - silu(-x), x)),
    Promise("silu lies between -0.279 and relu", hard.numbers, lambda x: within(-0.279, silu(x), relu(x))),
]  # fmt: skip
