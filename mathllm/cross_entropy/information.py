"""Information is counted in logarithms: base e gives nats, base 2 gives bits, and one sum keeps to one base.

Every function here takes the base as a keyword and uses it for all of its terms. `perplexity()` has no default base: it
must be told the base in which its argument was counted, since exp of a number of bits is not a perplexity.
"""

from collections.abc import Iterable

import numpy as np

from ..autodiff import primitive
from ..errors import ShapeError
from ..probability import distribution


@primitive
def surprise(p, *, base=np.e):
    """How surprising is an event of probability p? Not at all if it is certain, infinitely if it was ruled out.

        I(p) = −log_b p,      dp = −dI / (p ln b)                                   (7.1)

    p: any shape, in [0, 1]   base: b > 1   ->   the same shape, in nats (b = e) or bits (b = 2)

    Raises: ValueError for what is no probability, or a base that is not above 1.
    Source: 003, ch. VII.

    >>> surprise([1.0, 0.5, 0.1]).round(3), float(surprise(0.5, base=2))
    (array([0.   , 0.693, 2.303]), 1.0)
    """
    nats = _nats(base, "surprise")
    if not np.all((p >= 0) & (p <= 1 + 4 * np.finfo(p.dtype).eps)):
        raise ValueError(f"surprise() needs probabilities between 0 and 1, got {_first(p, ~((p >= 0) & (p <= 1)))}")
    with np.errstate(divide="ignore"):
        amount = 0 - np.log(p) / nats

    def pullback(damount):
        with np.errstate(divide="ignore"):
            return -damount / (p * nats)

    return amount, pullback


@primitive
def entropy(p, *, base=np.e):
    """Mean surprise of an outcome drawn from p: how uncertain it is.

        H(p) = −Σₓ p(x) log_b p(x),      dp = −dH (ln p + 1) / ln b                 (7.2)

    p: (..., n), a distribution along the last axis   base: b > 1   ->   (...)

    0 log 0 is 0, and what cannot happen gets no gradient. The entropy is 0 where one outcome is certain, and at most
    log_b n, where all are equally likely.
    Raises: ValueError for what is no distribution, or a base that is not above 1; ShapeError where there is no outcome.
    Source: 001, §2.2.1; 002, why cross-entropy.

    >>> float(entropy([0.5, 0.5], base=2)), round(float(entropy(np.full(6, 1 / 6), base=2)), 2)
    (1.0, 2.58)
    """
    nats = _nats(base, "entropy")
    distribution(p)
    log_p = _log(p)

    def pullback(dH):
        return np.where(p > 0, -dH[..., None] * (log_p + 1) / nats, 0)

    return 0 - np.sum(p * log_p, axis=-1) / nats, pullback


@primitive
def cross_entropy_between(p, q, *, base=np.e):
    """Mean surprise of someone who believes q, when outcomes are drawn from p.

        H(p, q) = −Σₓ p(x) log_b q(x) = H(p) + KL(p‖q)                              (7.3)
        dp = −dH ln q / ln b,      dq = −dH p / (q ln b)

    p, q: (..., n), distributions along the last axis   base: b > 1   ->   (...)

    Infinite where p allows what q rules out. With p = 1 at the correct token this is the surprise at that token, and
    `cross_entropy()` computes its mean straight from logits.
    Raises: ValueError for what is no distribution, or a base that is not above 1; ShapeError if the sizes differ.
    Source: 003, ch. VII; 001, §2.2.2; 002, why cross-entropy.

    >>> round(float(cross_entropy_between([1, 0, 0], [0.7, 0.2, 0.1])), 3)
    0.357
    """
    nats = _nats(base, "cross_entropy_between")
    _require_same_outcomes("cross_entropy_between", p, q)
    log_q = _log(q)

    def pullback(dH):
        dH = dH[..., None] / nats
        return -dH * log_q, -dH * _share(p, q)

    return _infinite_where_ruled_out(p, q, 0 - np.sum(p * log_q, axis=-1) / nats), pullback


@primitive
def kl_divergence(p, q, *, base=np.e):
    """How much more surprised is someone who believes q than someone who knows p?

        KL(p‖q) = Σₓ p(x) log_b (p(x)/q(x)) ≥ 0                                     (7.4)
        dp = dK (ln (p/q) + 1) / ln b,      dq = −dK p / (q ln b)

    p, q: (..., n), distributions along the last axis   base: b > 1   ->   (...)

    Zero only where p = q, infinite where p allows what q rules out, and not symmetric.
    Raises: as cross_entropy_between().
    Source: 001, §2.2.2; 002, why cross-entropy.

    >>> p, q = [0.9, 0.1], [0.5, 0.5]
    >>> round(float(kl_divergence(p, q)), 5), round(float(kl_divergence(q, p)), 5), float(kl_divergence(p, p))
    (0.36806, 0.51083, 0.0)
    """
    nats = _nats(base, "kl_divergence")
    _require_same_outcomes("kl_divergence", p, q)
    log_ratio = np.where(p > 0, _log(p) - _log(q), 0)
    divergence = np.maximum(np.sum(p * log_ratio, axis=-1) / nats, 0)  # rounding may step below zero

    def pullback(dK):
        dK = dK[..., None] / nats
        return np.where(p > 0, dK * (log_ratio + 1), 0), -dK * _share(p, q)

    return _infinite_where_ruled_out(p, q, divergence), pullback


def mutual_information(joint, *, base: float = np.e):
    """How much does one of two things tell about the other? The divergence from independence.

        I(X; Y) = Σₓᵧ p(x, y) log_b ( p(x, y) / (p(x) p(y)) ) = KL(p(x, y) ‖ p(x) p(y)) (7.11)

    joint: (m, n), probabilities of all pairs   base: b > 1   ->   one number

    Zero where the two are independent; symmetric. (Attention weights are neither symmetric nor an estimate of it:
    errata E11.)
    Raises: ShapeError if joint is no matrix; ValueError for what is no distribution.
    Source: 002, mutual information and attention.

    >>> float(mutual_information([[0.5, 0.0], [0.0, 0.5]], base=2))
    1.0
    """
    joint = joint if hasattr(joint, "ndim") else np.asarray(joint, float)
    if joint.ndim != 2:
        raise ShapeError(f"mutual_information() needs a matrix of probabilities of pairs, got shape {joint.shape}")
    independent = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    return kl_divergence(joint.reshape(-1), independent.reshape(-1), base=base)


def perplexity(cross_entropy, *, base: float):
    """Among how many equally likely tokens would someone be as uncertain? The base is that of the cross-entropy.

        PPL = b^H,      2^(H in bits) = e^(H in nats)                               (7.5)

    cross_entropy: any shape, counted in base `base`: np.e for losses, 2 for bits   ->   the same shape, at least 1

    There is no default base on purpose: exp of bits, which is what reading two documents side by side suggests, is no
    perplexity (erratum B10).
    Raises: ValueError for a negative cross-entropy or NaN, or a base that is not above 1.
    Source: 003, ch. VII; 001, §2.2.3; 002, perplexity.

    >>> round(float(perplexity(1.204, base=np.e)), 2), float(perplexity(3.0, base=2))
    (3.33, 8.0)
    """
    H = np.asarray(cross_entropy) if not isinstance(cross_entropy, np.ndarray) else cross_entropy
    if not np.all(H >= 0):
        raise ValueError(f"perplexity() needs a cross-entropy of at least 0, got {_first(H, ~(H >= 0))}")
    _nats(base, "perplexity")
    with np.errstate(over="ignore"):
        return np.power(float(base), H)


def convert_information(amount, *, from_base: float, to_base: float):
    """The same information counted in another base.

        H_c = H_b · ln b / ln c,      1 nat = 1.4427 bits                           (7.6)

    Raises: ValueError for a base that is not above 1.

    >>> round(float(convert_information(1.0, from_base=np.e, to_base=2)), 4)
    1.4427
    """
    name = "convert_information"
    return np.asarray(amount) * (_nats(from_base, name) / _nats(to_base, name))


def loss_table(probabilities: Iterable[float]) -> list[tuple[float, float, float]]:
    """The rows of the loss and perplexity table: probability of the correct token, loss in nats, perplexity.

    Raises: ValueError for what is no probability.
    Source: 003, ch. VII, reference table.

    >>> for p, loss, choices in loss_table([0.5, 0.1]):
    ...     print(f"{p:.2f}  {loss:.2f}  {choices:.2f}")
    0.50  0.69  2.00
    0.10  2.30  10.00
    """
    losses = [float(surprise(p)) for p in probabilities]
    return [
        (float(p), loss, float(perplexity(loss, base=np.e))) for p, loss in zip(probabilities, losses, strict=True)
    ]


def _nats(base, name):
    """The nats in one unit of information counted in this base: 1 for e, 0.693 for 2."""
    if not 1 < base < np.inf:
        raise ValueError(f"{name}() needs a base above 1 (2 for bits, np.e for nats), got {base} (see chapter 07)")
    return float(np.log(base))


def _log(p):
    """ln p, and 0 where p is 0."""
    return np.log(p, out=np.zeros_like(p), where=p > 0)


def _share(p, q):
    """p/q, and 0 where q is 0."""
    p, q = np.broadcast_arrays(p, q)
    return np.divide(p, q, out=np.zeros_like(q), where=q > 0)


def _infinite_where_ruled_out(p, q, value):
    return np.where(np.any((p > 0) & (q == 0), axis=-1), np.inf, value)[()]


def _require_same_outcomes(name, p, q):
    distribution(p), distribution(q)
    if p.shape[-1] != q.shape[-1]:
        raise ShapeError(
            f"{name}() needs two distributions over the same outcomes, got {p.shape[-1]} and {q.shape[-1]} outcomes"
        )


def _first(values, wrong):
    return np.asarray(values)[np.asarray(wrong)].flat[0]
