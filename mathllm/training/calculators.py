"""What will it cost? Memory, operations, days, and how to share a budget between a larger model and more text."""

import math
from typing import NamedTuple

import numpy as np

from ..exponentials import log_sum_exp
from ..softmax import softmax


def approximate_parameters(layers: int, width: int) -> int:
    """The rule of thumb for a transformer's size: 4D² for attention and 8D² for the network, in each layer.

        N ≈ 12 L D²                                                                 (13.8)

    Embeddings, biases and norms are left out; `parameter_count` counts them. GPT-3 has 96 layers of width 12,288: that
    makes 174 billion, and the 175 of its name only with the embeddings (erratum A10).
    Raises: ValueError for sizes below 1.
    Source: 004, memory estimation; 001, §8.2.

    >>> approximate_parameters(layers=32, width=4096)
    6442450944
    """
    if layers < 1 or width < 1:
        raise ValueError(f"approximate_parameters() needs sizes of at least 1, got {layers} and {width}")
    return 12 * layers * width * width


class TrainingMemory(NamedTuple):
    """Bytes that the state of a model takes while it is trained, by what they hold; activations come on top."""

    weights: float
    master_weights: float
    moments: float
    gradients: float

    @property
    def total(self) -> float:
        """All of it, in bytes."""
        return sum(self)


def training_memory(parameters: float, *, mixed: bool = True, gradients: bool = True) -> TrainingMemory:
    """Bytes for a model and its Adam: what each parameter needs beside itself.

        mixed precision    2 (bf16 weight) + 4 (float32 master) + 8 (two moments) + 4 (gradient) = 18   (13.9)
        float32            4 (weight)                           + 8               + 4            = 16

    The 18 of 004 count a float32 gradient, although the text says parameters and optimiser states only: those are 14
    (`gradients=False`, erratum E7). And 18 is more than 16: mixed precision saves time and activations, not state
    (erratum E8).
    Raises: ValueError for a negative number.
    Source: 004, memory estimation; Rajbhandari et al. 2020, §3.1, who keep the gradient in 2 bytes and get 16.

    >>> training_memory(7e9).total / 1e9, training_memory(7e9, gradients=False).total / 1e9
    (126.0, 98.0)
    """
    if parameters < 0:
        raise ValueError(f"training_memory() needs a number of parameters, got {parameters}")
    each = (2, 4, 8, 4 * gradients) if mixed else (4, 0, 8, 4 * gradients)
    return TrainingMemory(*(parameters * size for size in each))


def devices_needed(memory: float, device_memory: float) -> int:
    """The smallest number of devices whose memory together holds so much: ⌈memory / device memory⌉.

    Raises: ValueError for a device without memory.

    >>> devices_needed(126e9, 80e9)
    2
    """
    if device_memory <= 0 or memory < 0:
        raise ValueError(f"devices_needed() needs sizes above 0, got {memory} and {device_memory}")
    return math.ceil(memory / device_memory)


def training_steps(tokens: float, batch_tokens: float) -> int:
    """The number of updates that read so many tokens once: ⌈tokens / tokens in a batch⌉.

    Raises: ValueError for a batch without tokens.
    Source: 004, exercise (b) on training.

    >>> training_steps(2e12, 4e6)
    500000
    """
    if batch_tokens <= 0 or tokens < 0:
        raise ValueError(f"training_steps() needs numbers of tokens above 0, got {tokens} and {batch_tokens}")
    return math.ceil(tokens / batch_tokens)


def training_flops(parameters, tokens):
    """Floating-point operations of a training run: two for each parameter and token forward, four backward.

        C ≈ 6 N D                                                                   (13.10)

    Source: 001, §9.2; Kaplan et al. 2020, §2.1. `forward_flops` counts what this leaves out.

    >>> f"{training_flops(175e9, 300e9):.3g}"
    '3.15e+23'
    """
    return 6 * np.multiply(parameters, tokens, dtype=np.float64)  # large runs are beyond any integer of the machine


def training_seconds(flops: float, devices: int, peak: float, utilization: float = 0.4) -> float:
    """How long a run takes on devices of a given peak (operations per second), of which a share is reached.

        t = C / (devices · peak · utilization)                                      (13.11)

    Raises: ValueError for a utilization outside (0, 1].

    >>> days = training_seconds(3.15e23, devices=1024, peak=312e12, utilization=0.4) / 86400
    >>> round(days, 1)
    28.5
    """
    if not 0 < utilization <= 1 or devices < 1 or peak <= 0:
        raise ValueError(f"training_seconds() needs devices, a peak and a utilization in (0, 1], got {utilization}")
    return flops / (devices * peak * utilization)


class ScalingLaw(NamedTuple):
    """The five constants of L(N, D) = E + A/N^α + B/D^β."""

    E: float
    A: float
    B: float
    alpha: float
    beta: float


# Hoffmann et al. 2022, approach 3. 001 prints β ≈ 0.34 (erratum E1); a replication finds the fit itself in doubt.
CHINCHILLA = ScalingLaw(E=1.69, A=406.4, B=410.7, alpha=0.34, beta=0.28)


def scaling_loss(parameters, tokens, law: ScalingLaw = CHINCHILLA):
    """The loss that a scaling law predicts for a model of N parameters after D tokens.

        L(N, D) = E + A/N^α + B/D^β                                                 (13.22)

    E is the entropy of the text, which nothing can undercut; A/N^α is the price of a small model, B/D^β that of
    little text. Nats per token, for the tokenizer and the text of the fitted runs.
    Raises: ValueError unless N and D are above 0.
    Source: 001, §9.2; Hoffmann et al. 2022, eq. 2.

    >>> [round(float(scaling_loss(*run)), 4) for run in [(175e9, 300e9), (70e9, 1.4e12)]]  # GPT-3, Chinchilla
    [2.0023, 1.9366]
    """
    N, D = np.asarray(parameters, float), np.asarray(tokens, float)
    if not (np.all(N > 0) and np.all(D > 0)):
        raise ValueError("scaling_loss() needs numbers of parameters and tokens above 0")
    return law.E + law.A / N**law.alpha + law.B / D**law.beta


class Allocation(NamedTuple):
    """How a budget is spent: parameters, tokens, and the loss that the law promises for them."""

    parameters: float
    tokens: float
    loss: float


def optimal_exponents(law: ScalingLaw = CHINCHILLA) -> tuple[float, float]:
    """How fast the best model and the best amount of text grow with the budget.

        N_opt ∝ C^(β/(α+β)),      D_opt ∝ C^(α/(α+β))                               (13.23)

    Raises: ValueError unless both exponents are above 0.
    Source: 001, §9.2; Hoffmann et al. 2022, eq. 4. Equal exponents, 001's ½ and ½, need α = β (erratum E1).

    >>> [round(exponent, 4) for exponent in optimal_exponents()]
    [0.4516, 0.5484]
    """
    if law.alpha <= 0 or law.beta <= 0:
        raise ValueError(f"optimal_exponents() needs alpha and beta above 0, got {law.alpha} and {law.beta}")
    return law.beta / (law.alpha + law.beta), law.alpha / (law.alpha + law.beta)


def compute_optimal(flops: float, law: ScalingLaw = CHINCHILLA) -> Allocation:
    """The model size and the number of tokens that make the loss smallest for a budget C = 6ND.

        N = G (C/6)^(β/(α+β)),      D = G⁻¹ (C/6)^(α/(α+β)),      G = (αA / βB)^(1/(α+β))      (13.24)

    At the optimum one per cent more model would gain as much as one per cent more text: αA/N^α = βB/D^β.
    Raises: ValueError for a budget that is not above 0.
    Source: 001, §9.2; Hoffmann et al. 2022, eq. 4.

    >>> best = compute_optimal(5.88e23)
    >>> f"{best.parameters:.2e} parameters, {best.tokens:.2e} tokens, loss {best.loss:.4f}"
    '3.25e+10 parameters, 3.02e+12 tokens, loss 1.9300'
    """
    if flops <= 0:
        raise ValueError(f"compute_optimal() needs a budget above 0, got {flops}")
    a, b = optimal_exponents(law)
    G = (law.alpha * law.A / (law.beta * law.B)) ** (1 / (law.alpha + law.beta))
    N, D = G * float(flops / 6) ** a, float(flops / 6) ** b / G
    return Allocation(N, D, float(scaling_loss(N, D, law)))


def fit_scaling_law(parameters, tokens, losses) -> ScalingLaw:
    """The constants of (13.22) that fit measured runs best, by least squares on the logarithm of the loss.

        min Σᵢ [ln(E + A/Nᵢ^α + B/Dᵢ^β) − ln Lᵢ]²                                   (13.25)

    parameters, tokens, losses: (n,) of n runs; sizes and lengths must both vary, and a few times each, or the
    constants are not determined. E, A and B come out above 0.

    For fixed exponents the law is linear in E, A, B: a grid of exponents, each solved by linear least squares, gives
    the start; the method of Levenberg and Marquardt does the rest on the logarithms of the constants.
    Raises: ValueError for fewer than five runs, for runs of one size or one length, or for losses that are not above 0.
    Source: Hoffmann et al. 2022, §3.3 (there with Huber's loss instead of the square).

    >>> N, D = np.array([1, 1, 1, 3, 3, 3, 9, 9, 9]) * 1e5, np.array([1, 4, 16] * 3) * 1e6
    >>> law = fit_scaling_law(N, D, scaling_loss(N, D, ScalingLaw(1.5, 60.0, 300.0, 0.4, 0.5)))
    >>> [round(float(constant), 3) for constant in law]
    [1.5, 60.0, 300.0, 0.4, 0.5]
    """
    N, D, L = (np.asarray(values, float).ravel() for values in (parameters, tokens, losses))
    if not len(N) == len(D) == len(L) >= 5:
        raise ValueError(
            f"fit_scaling_law() needs at least 5 runs, got {len(N)} sizes, {len(D)} lengths, {len(L)} losses"
        )
    if not (np.all(N > 0) and np.all(D > 0) and np.all(L > 0) and np.all(np.isfinite(L))):
        raise ValueError("fit_scaling_law() needs sizes, lengths and losses above 0")
    if np.ptp(N) == 0 or np.ptp(D) == 0:
        raise ValueError("fit_scaling_law() needs runs of several sizes and of several lengths")
    logs = np.stack([np.zeros_like(N), -np.log(N), -np.log(D)])
    logs -= logs.mean(axis=1, keepdims=True)  # measured from the middle of the runs, the constants hang together less
    target = np.log(L)

    def predict(theta):
        """ln of the three summands for theta = (ln E, ln A′, ln B′, ln α, ln β)."""
        return theta[:3, None] + np.exp([-np.inf, theta[3], theta[4]])[:, None] * logs

    best = min(
        (_levenberg_marquardt(theta, logs, target, predict) for theta in _starts(logs, L)), key=lambda fit: fit[0]
    )
    lnE, lnA, lnB = best[1][:3]
    alpha, beta = np.exp(best[1][3:])
    middle = np.log(N).mean(), np.log(D).mean()
    return ScalingLaw(
        *map(float, (np.exp(lnE), np.exp(lnA + alpha * middle[0]), np.exp(lnB + beta * middle[1]), alpha, beta))
    )


def _starts(logs, L, keep=6):
    """The best of a grid of exponents, each with its E, A, B by linear least squares relative to the loss."""
    found = []
    for alpha in np.geomspace(0.05, 2, 12):
        for beta in np.geomspace(0.05, 2, 12):
            columns = np.exp(np.array([0, alpha, beta])[:, None] * logs) / L  # (3, n): 1, N^−α, D^−β
            solution = np.linalg.lstsq(columns.T, np.ones_like(L), rcond=None)[0]
            solution = np.maximum(solution, 1e-3 * L.min())
            error = np.sum((solution @ columns - 1) ** 2)
            found.append((error, [*np.log(solution), np.log(alpha), np.log(beta)]))
    return [np.array(theta) for _, theta in sorted(found, key=lambda item: item[0])[:keep]]


def _levenberg_marquardt(theta, logs, target, predict, steps=300):
    """Least squares between Gauss–Newton and gradient descent, whichever makes progress."""

    def errors(theta):
        return log_sum_exp(predict(theta), axis=0) - target

    residual = errors(theta)
    cost, damping = residual @ residual, 1e-3
    for _ in range(steps):
        terms = predict(theta)
        share = softmax(terms, axis=0)  # (3, n): ∂ ln Σ / ∂ ln term
        J = np.vstack([share, share[1:] * np.exp(theta[3:])[:, None] * logs[1:]]).T  # (n, 5)
        normal = J.T @ J
        step = np.linalg.solve(normal + damping * np.diag(np.diag(normal) + 1e-12), -J.T @ residual)
        trial = theta + np.clip(step, -1, 1)
        new = errors(trial)
        if new @ new < cost:
            done = cost - new @ new < 1e-16 * cost + 1e-30
            theta, residual, cost, damping = trial, new, new @ new, damping / 5
            if done:
                break
        else:
            damping *= 4
            if damping > 1e12:
                break
    return cost, theta
