"""Surprisal and its means: entropy, cross-entropy, KL divergence, mutual information and perplexity.

Information is measured in logarithms: base e gives nats, base 2 gives bits. Every function takes the base as a keyword
and uses it for all of its terms. `perplexity()` has no default base, because it must be the base in which its argument
was measured.
"""

import numpy as np

from ..autodiff import Array, ArrayLike, WithPullback, primitive
from ..errors import all_within, within
from ..probability import distribution
from ..shapes import real_array


@primitive(shapes="... -> ...")
def surprise(p: Array, *, base: float = np.e) -> WithPullback:
    """The surprisal of an event of probability p: zero if it is certain, infinite if it is impossible.

        h(p) = −log_b p,      dp = −dh / (p ln b)                                   (7.1)

    p: in [0, 1]   base: b > 1; e gives nats, 2 gives bits

    Raises: ValueError for numbers that are no probabilities, or a base that is not above 1.

    >>> surprise([1.0, 0.5, 0.1]).round(3), float(surprise(0.5, base=2))
    (array([0.   , 0.693, 2.303]), 1.0)
    """
    nats = _nats("surprise", base)
    p = np.where(p <= 1 + 4 * np.finfo(p.dtype).eps, np.minimum(p, 1), p)  # a sum of 1 may be rounded up
    all_within("surprise", "[0, 1]", p=p)

    def pullback(damount):
        with np.errstate(divide="ignore", over="ignore"):
            return -damount / (p * nats)

    return (0 - _log(p) / nats).astype(p.dtype), pullback


@primitive(shapes="... n+ -> ...")
def entropy(p: Array, *, base: float = np.e) -> WithPullback:
    """Entropy: the mean surprisal of an outcome drawn from p, a measure of uncertainty.

        H(p) = −Σₓ p(x) log_b p(x),      dp = −dH (ln p + 1) / ln b                 (7.2)

    p: a distribution along the last axis   base: b > 1

    0 log 0 is 0, and an impossible outcome has gradient 0. The entropy is 0 where one outcome is certain, and at most
    log_b n, where all are equally likely.
    Raises: ValueError if p is no distribution, or for a base that is not above 1.
    Source: Shannon 1948, §6.

    >>> float(entropy([0.5, 0.5], base=2)), round(float(entropy(np.full(6, 1 / 6), base=2)), 2)
    (1.0, 2.58)
    """
    nats = _nats("entropy", base)
    log_p = _log(distribution(p))
    H = np.clip(_mean(p, 0 - log_p), 0, np.log(p.shape[-1])) / nats  # rounding may step beyond these bounds
    return H.astype(p.dtype), lambda dH: -dH[..., None] / nats * _possible(p, log_p + 1)


@primitive(shapes="... n+, ... n -> ...")
def cross_entropy_between(p: Array, q: Array, *, base: float = np.e) -> WithPullback:
    """Cross-entropy: the mean surprisal under the prediction q, when outcomes are drawn from p.

        H(p, q) = −Σₓ p(x) log_b q(x) = H(p) + KL(p‖q)                              (7.3)
        dp = −dH ln q / ln b,      dq = −dH p / (q ln b)

    p, q: distributions along the last axis   base: b > 1

    Infinite where q gives probability 0 to an outcome that is possible under p. If p gives probability 1 to the correct
    token, this is the surprisal of that token, and `cross_entropy()` computes its mean from logits.
    Raises: ValueError if p or q is no distribution, or for a base that is not above 1.

    >>> round(float(cross_entropy_between([1, 0, 0], [0.7, 0.2, 0.1])), 3)
    0.357
    """
    nats = _nats("cross_entropy_between", base)
    log_q = _log(distribution(q))
    H = np.maximum(_mean(distribution(p), 0 - log_q), 0) / nats

    def pullback(dH):
        dH = dH[..., None] / nats
        return -dH * _possible(q, log_q), -dH * _ratio(p, q)

    return H.astype(np.result_type(p, q)), pullback


@primitive(shapes="... n+, ... n -> ...")
def kl_divergence(p: Array, q: Array, *, base: float = np.e) -> WithPullback:
    """Kullback–Leibler divergence: the mean surprisal under the prediction q, minus that under p itself.

        KL(p‖q) = Σₓ p(x) log_b (p(x)/q(x)) ≥ 0                                (7.5, 7.6)
        dp = dK (ln (p/q) + 1) / ln b,      dq = −dK p / (q ln b)

    p, q: distributions along the last axis   base: b > 1

    Zero only where p = q, infinite where q gives probability 0 to an outcome that is possible under p, and not
    symmetric.
    Raises: as cross_entropy_between().
    Source: Kullback and Leibler 1951.

    >>> p, q = [0.9, 0.1], [0.5, 0.5]
    >>> round(float(kl_divergence(p, q)), 5), round(float(kl_divergence(q, p)), 5), float(kl_divergence(p, p))
    (0.36806, 0.51083, 0.0)
    """
    nats = _nats("kl_divergence", base)
    log_p, log_q = _log(distribution(p)), _log(distribution(q))
    with np.errstate(invalid="ignore"):  # where both are 0, −∞ minus −∞ is NaN, and is left out of the mean
        log_ratio = log_p - log_q
    divergence = np.maximum(_mean(p, log_ratio), 0) / nats

    def pullback(dK):
        dK = dK[..., None] / nats
        return dK * _possible(np.minimum(p, q), log_ratio + 1), -dK * _ratio(p, q)

    return divergence.astype(np.result_type(p, q)), pullback


@primitive(shapes="m n ->")
def mutual_information(joint: Array, *, base: float = np.e) -> WithPullback:
    """Mutual information: how much one variable tells about another, as the divergence from independence.

        I(A; B) = Σ p(a, b) log_b ( p(a, b) / (p(a) p(b)) ) = KL(p(a, b) ‖ p(a) p(b))  (7.14)
        dp = dI (ln ( p(a, b) / (p(a) p(b)) ) − 1) / ln b

    joint: probabilities of all pairs   base: b > 1

    Zero where the two are independent, and symmetric.
    Raises: ValueError if the probabilities are no distribution, or for a base that is not above 1.

    >>> float(mutual_information([[0.5, 0.0], [0.0, 0.5]], base=2))
    1.0
    """
    nats = _nats("mutual_information", base)
    distribution(joint.reshape(-1))
    wide = joint.astype(np.promote_types(joint.dtype, np.float32))
    with np.errstate(invalid="ignore"):  # the logarithms are subtracted, because p(x) p(y) might be rounded to 0
        log_ratio = _log(wide) - _log(wide.sum(axis=1, keepdims=True)) - _log(wide.sum(axis=0, keepdims=True))
    information = np.maximum(_mean(wide.reshape(-1), log_ratio.reshape(-1)), 0) / nats
    return information.astype(joint.dtype), lambda dI: dI / nats * _possible(joint, log_ratio - 1)


def perplexity(cross_entropy: ArrayLike, *, base: float) -> np.ndarray:
    """Perplexity: the number of equally likely tokens that would give the same cross-entropy.

        PPL = b^H,      2^(H in bits) = e^(H in nats)                              (7.10)

    cross_entropy: any shape   base: in which it was measured; np.e for losses, 2 for bits   ->   the same shape, ≥ 1

    There is no default base on purpose: e to the power of a number of bits is no perplexity.
    Raises: ValueError for a negative cross-entropy or NaN, or a base that is not above 1.

    >>> round(float(perplexity(1.204, base=np.e)), 2), float(perplexity(3.0, base=2))
    (3.33, 8.0)
    """
    H = np.asarray(real_array("perplexity", cross_entropy))
    all_within("perplexity", "[0, ∞]", cross_entropy=H)
    _nats("perplexity", base)
    with np.errstate(over="ignore"):
        return np.power(float(base), H)


def convert_information(amount: ArrayLike, *, from_base: float, to_base: float) -> np.ndarray:
    """The same information in the unit of another base.

        H_c = H_b · ln b / ln c,      1 nat = 1.4427 bits                          (7.11)

    amount: H_b, any shape   from_base: b   to_base: c   ->   H_c, the same shape

    Raises: ValueError for a base that is not above 1.

    >>> round(float(convert_information(1.0, from_base=np.e, to_base=2)), 4)
    1.4427
    """
    ratio = _nats("convert_information", from_base, "from_base") / _nats("convert_information", to_base, "to_base")
    return np.asarray(real_array("convert_information", amount)) * ratio


def _nats(function, base, name="base"):
    """The nats in one unit of information of this base: 1 for e, 0.693 for 2."""
    within(function, "(1, ∞)", **{name: base})
    return float(np.log(base))


def _log(p):
    """ln p, −∞ where p is 0; at least in float32, where sums over many outcomes keep their digits."""
    with np.errstate(divide="ignore"):
        return np.log(p, dtype=np.promote_types(p.dtype, np.float32))


def _possible(p, amount):
    """The amount of each outcome, 0 for an impossible one: thus 0 log 0 is 0."""
    return np.where(p > 0, amount, 0)


def _mean(p, amount):
    """Σₓ p(x) · amount(x) over the possible outcomes."""
    return np.sum(p * _possible(p, amount), axis=-1)


def _ratio(p, q):
    """p/q, and 0 where q is 0."""
    with np.errstate(over="ignore"):
        return np.where(q > 0, p / np.where(q > 0, q, 1), 0)
