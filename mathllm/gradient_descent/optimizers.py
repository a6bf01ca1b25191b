"""One step downhill, in five ways: each `…_init(params)` makes the memory that its `…_step` carries along.

Every step returns new parameters and a new state, in the dtype of the parameters, and leaves what it was given as it
was. Where PyTorch has the optimiser, the arithmetic is PyTorch's.
"""

import math

import numpy as np

from .trees import _as_float, _matched, tree_leaves, tree_map


def sgd_init(params) -> dict:
    """The memory of plain gradient descent: nothing.

    >>> sgd_init({"weight": np.ones(2)})
    {}
    """
    return {}


def sgd_step(params, gradient, state, *, learning_rate: float, weight_decay=0.0):
    """One step of gradient descent, on the gradient of all examples or of a minibatch.

        θ ← θ (1 − ηλ) − η g                                                        (9.1)

    params, gradient: nested arrays of one structure   learning_rate: η   weight_decay: λ, one number or a number for
    each parameter   ->   params, state

    The decay is the same as adding λθ to the gradient, that is (λ/2)‖θ‖² to the loss (9.14).
    Raises: ShapeError if params and gradient differ; ValueError for a negative or infinite rate, or a gradient that is
    not finite.
    Source: 003, ch. IX, example 9; 001, §3.2.1; 004, L2 regularization.

    >>> params, state = sgd_step(3.0, 4.0, sgd_init(3.0), learning_rate=0.1)
    >>> float(params)
    2.6
    """
    params, gradient = _prepared("sgd_step", params, gradient)
    return _descend("sgd_step", params, gradient, learning_rate, weight_decay), state


def momentum_init(params) -> dict:
    """The memory of momentum: a velocity of zero for every parameter.

    >>> momentum_init({"weight": np.ones(2)})
    {'velocity': {'weight': array([0., 0.])}}
    """
    return {"velocity": _zeros(params)}


def momentum_step(
    params, gradient, state, *, learning_rate: float, beta: float = 0.9, form: str = "heavy-ball", weight_decay=0.0
):
    """One step with momentum: a ball that keeps its direction.

        heavy-ball   v ← βv + g,              θ ← θ − ηv      gain 1/(1−β)          (9.3)
        average      v ← βv + (1−β)g,         θ ← θ − ηv      gain 1                (9.4)

    params, gradient: nested arrays   state: of momentum_init() or the last step   ->   params, state
    weight_decay: λ, added to the gradient as λθ

    Both average the last 1/(1−β) gradients or so. Under a constant gradient the heavy ball becomes 1/(1−β) times as
    fast, the average never faster than plain descent: it smooths, and does not accelerate (erratum B12). PyTorch's SGD
    is the heavy ball.
    Raises: as sgd_step(); ValueError for a β outside [0, 1) or an unknown form.
    Source: 001, §3.2.2; 004, SGD with momentum (both print the average).

    >>> w, state = 0.0, momentum_init(0.0)
    >>> for _ in range(3):
    ...     w, state = momentum_step(w, 1.0, state, learning_rate=1.0, beta=0.5)
    >>> float(state["velocity"]), float(w)  # 1, 1 + ½, 1 + ½ + ¼
    (1.75, -4.25)
    """
    if form not in ("heavy-ball", "average"):
        raise ValueError(f'momentum_step() needs the form "heavy-ball" or "average", got {form!r}')
    beta = _share("momentum_step", "beta", beta)
    params, gradient = _prepared("momentum_step", params, gradient)
    gradient = _with_l2("momentum_step", gradient, params, weight_decay)
    weight = 1.0 if form == "heavy-ball" else 1 - beta
    velocity = tree_map(lambda v, g: beta * v + weight * g, state["velocity"], gradient)
    return _descend("momentum_step", params, velocity, learning_rate), {"velocity": velocity}


def rmsprop_init(params) -> dict:
    """The memory of RMSProp: a running mean of squared gradients, at first zero.

    >>> rmsprop_init(np.ones(2))
    {'square': array([0., 0.])}
    """
    return {"square": _zeros(params)}


def rmsprop_step(
    params, gradient, state, *, learning_rate: float = 1e-2, beta: float = 0.99, epsilon: float = 1e-8
):
    """One step of RMSProp: divide each slope by its usual size.

        s ← βs + (1−β)g²,      θ ← θ − η g / (√s + ε)                               (9.5)

    params, gradient: nested arrays   state: of rmsprop_init() or the last step   ->   params, state

    Raises: as sgd_step(); ValueError for a β outside [0, 1).
    Source: 004, RMSProp.

    >>> params, state = rmsprop_step([1.0, 1.0], [100.0, 0.01], rmsprop_init([1.0, 1.0]), beta=0.0)
    >>> params.round(4)  # slopes of very different size, steps of the same size
    array([0.99, 0.99])
    """
    beta = _share("rmsprop_step", "beta", beta)
    params, gradient = _prepared("rmsprop_step", params, gradient)
    square = tree_map(lambda s, g: beta * s + (1 - beta) * g * g, state["square"], gradient)
    direction = tree_map(lambda g, s: g / (np.sqrt(s) + epsilon), gradient, square)
    return _descend("rmsprop_step", params, direction, learning_rate), {"square": square}


def bias_correction(beta: float, step: int) -> float:
    """How much a running mean that began at zero must be enlarged after so many steps.

        1 / (1 − βᵗ)                                                                (9.7)

    Raises: ValueError for a step before the first, or a β outside [0, 1).
    Source: 001, §3.2.3; 004, Adam.

    >>> round(bias_correction(0.9, 1), 9), round(bias_correction(0.9, 100), 4)
    (10.0, 1.0)
    """
    if step < 1:
        raise ValueError(f"bias_correction() counts steps from 1, got {step}")
    return 1 / (1 - _share("bias_correction", "beta", beta) ** step)


def adam_init(params) -> dict:
    """The memory of Adam and AdamW: running means of the gradient and of its square, and the number of steps.

    >>> adam_init({"weight": np.ones(2)})
    {'step': 0, 'mean': {'weight': array([0., 0.])}, 'square': {'weight': array([0., 0.])}}
    """
    return {"step": 0, "mean": _zeros(params), "square": _zeros(params)}


def adamw_init(params) -> dict:
    """The memory of AdamW, which is that of Adam.

    >>> adamw_init(3.0)["step"]
    0
    """
    return adam_init(params)


def adam_step(
    params, gradient, state, *,
    learning_rate: float = 1e-3, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8, l2=0.0,
):  # fmt: skip
    """One step of Adam: momentum, divided by the usual size of the gradient, each parameter for itself.

        m ← β₁m + (1−β₁)g,      v ← β₂v + (1−β₂)g²                                  (9.6)
        m̂ = m/(1−β₁ᵗ),      v̂ = v/(1−β₂ᵗ),      θ ← θ − η m̂ / (√v̂ + ε)          (9.8)

    params, gradient: nested arrays   state: of adam_init() or the last step   ->   params, state

    v is the mean of g² itself, not a variance: a constant gradient has v̂ = g² and no variance (erratum B11). The first
    step has length η for every parameter, whatever its gradient. `l2` adds λθ to the gradient, before the division that
    undoes most of it: weights with large gradients hardly shrink. Use adamw_step() for weight decay.
    Raises: as sgd_step(); ValueError for a β outside [0, 1).
    Source: Kingma and Ba 2015, algorithm 1 (η = 0.001, not the 0.0003 of 001, §3.2.3, and 004: erratum D15).

    >>> params, state = adam_step([1.0, 1.0], [1000.0, -0.001], adam_init([1.0, 1.0]), learning_rate=0.1)
    >>> params.round(4), state["step"]
    (array([0.9, 1.1]), 1)
    """
    params, gradient = _prepared("adam_step", params, gradient)
    gradient = _with_l2("adam_step", gradient, params, l2)
    direction, state = _adam_direction("adam_step", gradient, state, beta1, beta2, epsilon)
    return _descend("adam_step", params, direction, learning_rate), state


def adamw_step(
    params, gradient, state, *,
    learning_rate: float = 1e-3, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8, weight_decay=0.01,
):  # fmt: skip
    """One step of AdamW: Adam, and beside it a decay of the weights that no gradient can weaken.

        θ ← θ (1 − ηλ) − η m̂ / (√v̂ + ε)                                           (9.15)

    params, gradient: nested arrays   state: of adamw_init() or the last step   weight_decay: λ, one number or a number
    for each parameter   ->   params, state

    Usually only matrices decay, gains and biases do not:
    `weight_decay=tree_map(lambda p: 0.1 * (p.ndim > 1), params)`.
    Raises: as adam_step().
    Source: 004, AdamW; Loshchilov and Hutter 2019, algorithm 2.

    >>> params, _ = adamw_step([1.0], [0.1], adamw_init([1.0]), learning_rate=0.01, weight_decay=0.1)
    >>> params.round(6)
    array([0.989])
    """
    params, gradient = _prepared("adamw_step", params, gradient)
    direction, state = _adam_direction("adamw_step", gradient, state, beta1, beta2, epsilon)
    return _descend("adamw_step", params, direction, learning_rate, weight_decay), state


def _adam_direction(name, gradient, state, beta1, beta2, epsilon):
    beta1, beta2 = _share(name, "beta1", beta1), _share(name, "beta2", beta2)
    step = state["step"] + 1
    mean = tree_map(lambda m, g: beta1 * m + (1 - beta1) * g, state["mean"], gradient)
    square = tree_map(lambda v, g: beta2 * v + (1 - beta2) * g * g, state["square"], gradient)
    more_mean, more_square = bias_correction(beta1, step), bias_correction(beta2, step)
    root = math.sqrt(more_square)
    direction = tree_map(lambda m, v: more_mean * m / (np.sqrt(v) * root + epsilon), mean, square)
    return direction, {"step": step, "mean": mean, "square": square}


def _descend(name, params, direction, learning_rate, weight_decay=0.0):
    """θ(1 − ηλ) − η · direction."""
    rate = _rate(name, "learning_rate", learning_rate)
    if isinstance(weight_decay, int | float) and not weight_decay:
        return tree_map(lambda p, d: p - rate * d, params, direction)
    decay = _per_parameter(name, params, weight_decay)
    return tree_map(lambda p, d, strength: p * (1 - rate * strength) - rate * d, params, direction, decay)


def _with_l2(name, gradient, params, l2):
    if isinstance(l2, int | float) and not l2:
        return gradient
    return tree_map(lambda g, p, strength: g + strength * p, gradient, params, _per_parameter(name, params, l2))


def _per_parameter(name, params, strength):
    if not isinstance(strength, dict | list | tuple):
        strength = _rate(name, "weight decay", strength)
        return tree_map(lambda p: strength, params)
    return tree_map(lambda p, s: _rate(name, "weight decay", s), params, strength)


def _prepared(name, params, gradient):
    params, gradient = _matched(params, gradient)
    if not all(np.all(np.isfinite(g)) for g in tree_leaves(gradient)):
        raise ValueError(f"{name}() needs a finite gradient, got NaN or infinity: a smaller learning rate or clipping?")
    return params, gradient


def _zeros(params):
    return tree_map(lambda p: np.zeros_like(_as_float(p)), params)


def _rate(name, what, value):
    if not 0 <= value < math.inf:
        raise ValueError(f"{name}() needs a {what} that is finite and not negative, got {value}")
    return float(value)


def _share(name, what, value):
    if not 0 <= value < 1:
        raise ValueError(f"{name}() needs {what} from 0 to below 1, got {value}")
    return float(value)
