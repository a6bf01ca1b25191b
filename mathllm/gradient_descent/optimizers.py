"""SGD, momentum, RMSProp, Adam and AdamW: each `…_init(params)` makes the state that its `…_step` updates.

All parameters are one vector θ, and so are their gradient and what the optimiser remembers: a rule for one number is a
rule for all. Every step returns new parameters and a new state, in the dtype of the parameters (float16: the state in
float32), and leaves its arguments unchanged. Where PyTorch has the optimiser, the result is PyTorch's.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import ShapeError, one_of, within
from ..shapes import floating, real_array
from ..trees import flatten, tree_map


def sgd_init(params: Any) -> dict:
    """The state of plain gradient descent: nothing.

    >>> sgd_init({"weight": np.ones(2)})
    {}
    """
    return {}


def sgd_step(
    params: Any, gradient: Any, state: dict, *, learning_rate: float, weight_decay: Any = 0.0
) -> tuple[Any, dict]:
    """One step of gradient descent, with the gradient of all examples or of a minibatch.

        θ ← θ (1 − ηω) − η g                                                        (9.1)

    params, gradient: nested arrays of one structure   learning_rate: η   weight_decay: ω, one number or a number for
    each parameter   ->   params, state

    The decay is the same as adding ωθ to the gradient, that is (ω/2)‖θ‖² to the loss (9.17).
    Raises: ShapeError if params and gradient differ; ValueError for a negative or infinite rate, or a gradient that is
    not finite.

    >>> params, state = sgd_step(3.0, 4.0, sgd_init(3.0), learning_rate=0.1)
    >>> float(params)
    2.6
    """
    theta, g, restore = _vectors("sgd_step", params, gradient, learning_rate)
    decay = decay_of_entries("sgd_step", params, weight_decay=weight_decay)
    return restore(theta - learning_rate * (g + decay * theta)), state


def momentum_init(params: Any) -> dict:
    """The state of momentum: a velocity of zero for every parameter.

    >>> momentum_init({"weight": np.ones(2)})
    {'velocity': {'weight': array([0., 0.])}}
    """
    return {"velocity": _zeros("momentum_init", params)}


def momentum_step(
    params: Any, gradient: Any, state: dict, *,
    learning_rate: float, beta: float = 0.9, form: str = "heavy-ball", weight_decay: Any = 0.0,
) -> tuple[Any, dict]:  # fmt: skip
    """One step with momentum: the velocity is a sum of past gradients whose weights decrease geometrically.

        heavy-ball   u ← βu + g,              θ ← θ − ηu      gain 1/(1−β)          (9.6)
        average      u ← βu + (1−β)g,         θ ← θ − ηu      gain 1                (9.7)

    params, gradient: nested arrays   state: of momentum_init() or the last step   ->   params, state
    weight_decay: ω, added to the gradient as ωθ

    Both remember about the last 1/(1−β) gradients. The average with the rate η/(1−β) takes the same path as the heavy
    ball with the rate η; at an equal rate its first step is 1−β times as long. PyTorch's SGD is the heavy ball.
    Raises: as sgd_step(); ValueError for a β outside [0, 1) or an unknown form.
    Source: Polyak 1964; Sutskever et al. 2013.

    >>> w, state = 0.0, momentum_init(0.0)
    >>> for _ in range(3):
    ...     w, state = momentum_step(w, 1.0, state, learning_rate=1.0, beta=0.5)
    >>> float(state["velocity"]), float(w)  # 1, 1 + ½, 1 + ½ + ¼
    (1.75, -4.25)
    """
    one_of("momentum_step", ("heavy-ball", "average"), form=form)
    within("momentum_step", "[0, 1)", beta=beta)
    theta, g, restore = _vectors("momentum_step", params, gradient, learning_rate)
    g = g + decay_of_entries("momentum_step", params, weight_decay=weight_decay) * theta
    v, views = _memory(state["velocity"])
    v = beta * v + (g if form == "heavy-ball" else (1 - beta) * g)
    return restore(theta - learning_rate * v), {"velocity": views(v)}


def rmsprop_init(params: Any) -> dict:
    """The state of RMSProp: a moving average of squared gradients, at first zero.

    >>> rmsprop_init(np.ones(2))
    {'square': array([0., 0.])}
    """
    return {"square": _zeros("rmsprop_init", params)}


def rmsprop_step(
    params: Any, gradient: Any, state: dict, *,
    learning_rate: float = 1e-2, beta: float = 0.99, epsilon: float = 1e-8,
) -> tuple[Any, dict]:  # fmt: skip
    """One step of RMSProp: each entry of the gradient is divided by its root mean square.

        v ← βv + (1−β)g²,      θ ← θ − η g / (√v + ε)                               (9.8)

    params, gradient: nested arrays   state: of rmsprop_init() or the last step   learning_rate: η   epsilon: ε
    ->   params, state

    Raises: as sgd_step(); ValueError for a β outside [0, 1).
    Source: Hinton 2012 (lecture notes).

    >>> params, state = rmsprop_step([1.0, 1.0], [100.0, 0.01], rmsprop_init([1.0, 1.0]), beta=0.0)
    >>> params.round(4)  # gradients of very different size, steps of the same size
    array([0.99, 0.99])
    """
    within("rmsprop_step", "[0, 1)", beta=beta)
    theta, g, restore = _vectors("rmsprop_step", params, gradient, learning_rate)
    s, views = _memory(state["square"])
    s = beta * s + (1 - beta) * g * g
    return restore(theta - learning_rate * g / (np.sqrt(s) + epsilon)), {"square": views(s)}


def bias_correction(beta: float, step: int) -> float:
    """The factor that corrects a moving average that began at zero, after so many steps.

        1 / (1 − βᵗ)                                                                (9.10)

    Raises: ValueError for a step before the first, or a β outside [0, 1).
    Source: Kingma and Ba 2015, §3.

    >>> round(bias_correction(0.9, 1), 9), round(bias_correction(0.9, 100), 4)
    (10.0, 1.0)
    """
    within("bias_correction", "whole [1, ∞)", step=step)
    within("bias_correction", "[0, 1)", beta=beta)
    return 1 / (1 - float(beta) ** step)


def adam_init(params: Any) -> dict:
    """The state of Adam and AdamW: moving averages of the gradient and of its square, and the number of steps.

    >>> adam_init({"weight": np.ones(2)})
    {'step': 0, 'mean': {'weight': array([0., 0.])}, 'square': {'weight': array([0., 0.])}}
    """
    return {"step": 0, "mean": _zeros("adam_init", params), "square": _zeros("adam_init", params)}


def adamw_init(params: Any) -> dict:
    """The state of AdamW, which is that of Adam.

    >>> adamw_init(3.0)["step"]
    0
    """
    return adam_init(params)


def adamw(
    theta: np.ndarray, g: np.ndarray, m: np.ndarray, v: np.ndarray, t: int, *,
    learning_rate: float, weight_decay: Any = 0.01, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8,
) -> None:  # fmt: skip
    """AdamW on vectors, in place: θ, m and v are overwritten.

        m ← β₁m + (1−β₁)g,      v ← β₂v + (1−β₂)g²                                  (9.9)
        m̂ = m/(1−β₁ᵗ),      v̂ = v/(1−β₂ᵗ)                                          (9.10)
        θ ← θ − η (m̂ / (√v̂ + ε) + ωθ)                                              (9.11), (9.18)

    theta, g, m, v: (n,)   t: the step, 1, 2, …   learning_rate: η   weight_decay: ω, a number or (n,)   beta1: β₁
    beta2: β₂   epsilon: ε

    As in PyTorch, ω is multiplied by η; the paper multiplies it by the schedule only, not by the peak rate.
    Source: Kingma and Ba 2015, algorithm 1; Loshchilov and Hutter 2019, algorithm 2.

    >>> theta, m, v = np.ones(1), np.zeros(1), np.zeros(1)
    >>> adamw(theta, np.array([0.1]), m, v, 1, learning_rate=0.01, weight_decay=0.1)
    >>> theta.round(6)
    array([0.989])
    """
    m += (1 - beta1) * (g - m)
    v += (1 - beta2) * (g * g - v)
    step = m * bias_correction(beta1, t) / (np.sqrt(v * bias_correction(beta2, t)) + epsilon)
    theta -= learning_rate * (step + weight_decay * theta)


def adam_step(
    params: Any, gradient: Any, state: dict, *,
    learning_rate: float = 1e-3, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8, l2: Any = 0.0,
) -> tuple[Any, dict]:  # fmt: skip
    """One step of Adam: momentum, divided by the root mean square of each entry of the gradient: `adamw` without decay.

    params, gradient: nested arrays   state: of adam_init() or the last step   ->   params, state

    v is the mean of g² itself, not a variance: a constant gradient has v̂ = g² and no variance. The first step has a
    length of about η for every parameter whose gradient is much larger than ε. `l2` adds ωθ to the gradient, before the
    division: weights with large gradients hardly shrink. Use adamw_step() for weight decay.
    Raises: as sgd_step(); ValueError for a β outside [0, 1).
    Source: Kingma and Ba 2015, algorithm 1.

    >>> params, state = adam_step([1.0, 1.0], [1000.0, -0.001], adam_init([1.0, 1.0]), learning_rate=0.1)
    >>> params.round(4), state["step"]
    (array([0.9, 1.1]), 1)
    """
    if np.any(strength := decay_of_entries("adam_step", params, l2=l2)):
        theta, g, restore = _vectors("adam_step", params, gradient, 0.0)
        gradient = restore(g + strength * theta)
    options = {"beta1": beta1, "beta2": beta2, "epsilon": epsilon}
    return adamw_step(params, gradient, state, learning_rate=learning_rate, weight_decay=0.0, **options)


def adamw_step(
    params: Any, gradient: Any, state: dict, *,
    learning_rate: float = 1e-3, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8,
    weight_decay: Any = 0.01,
) -> tuple[Any, dict]:  # fmt: skip
    """One step of AdamW: `adamw` on copies of params and state. The decay is not divided by √v̂.

    params, gradient: nested arrays   state: of adamw_init() or the last step   weight_decay: ω, one number or a number
    for each parameter   ->   params, state

    If only the matrices are to decay, and not the gains and biases:
    `weight_decay=tree_map(lambda p: 0.1 * (p.ndim > 1), params)`.
    Raises: as adam_step().
    Source: Loshchilov and Hutter 2019, algorithm 2.

    >>> params, _ = adamw_step([1.0], [0.1], adamw_init([1.0]), learning_rate=0.01, weight_decay=0.1)
    >>> params.round(6)
    array([0.989])
    """
    theta, g, restore = _vectors("adamw_step", params, gradient, learning_rate)
    (m, views), (v, _), t = _memory(state["mean"]), _memory(state["square"]), state["step"] + 1
    decay = decay_of_entries("adamw_step", params, weight_decay=weight_decay)
    adamw(theta, g, m, v, t, learning_rate=learning_rate, weight_decay=decay, beta1=beta1, beta2=beta2, epsilon=epsilon)
    return restore(theta), {"step": t, "mean": views(m), "square": views(v)}


def checked_gradient(gradient: Any, params: Any) -> Any:
    """The gradient as floating-point arrays, each of the shape of its parameter.

    Raises: ShapeError that names the parameter whose gradient has another shape.

    >>> checked_gradient({"weight": [1, 2]}, {"weight": np.ones(2)})
    {'weight': array([1., 2.])}
    """

    def checked(g, p):
        if np.shape(g) != np.shape(p):
            raise ShapeError(f"a gradient needs the shape of its parameter, {np.shape(p)}, got {np.shape(g)}")
        return _as_float("checked_gradient", g)

    return tree_map(checked, gradient, params)


def _vectors(function, params, gradient, learning_rate):
    """θ and g as vectors, at least in float32, and the function that gives such a vector the form of the parameters."""
    within(function, "[0, ∞)", learning_rate=learning_rate)
    params = tree_map(functools.partial(_as_float, function), params)
    (theta, views), (g, _) = _memory(params), _memory(checked_gradient(gradient, params))
    if not np.all(np.isfinite(g)):
        raise ValueError(
            f"{function}() needs a finite gradient, got NaN or infinity: a smaller learning rate or clipping?"
        )
    return theta, g, lambda vector: tree_map(lambda new, old: new.astype(old.dtype), views(vector), params)


def _memory(tree) -> tuple[np.ndarray, Callable]:
    """`flatten`, at least in float32: ε = 10⁻⁸ is 0 in float16."""
    vector, views = flatten(tree)
    return vector.astype(np.promote_types(vector.dtype, np.float32), copy=False), views


def _zeros(function, params):
    return tree_map(lambda p: np.zeros(np.shape(p), np.promote_types(_as_float(function, p).dtype, np.float32)), params)


def decay_of_entries(function: str, params: Any, **given: Any) -> Any:
    """The strength of decay for every entry of the vector of parameters, for the function of this name.

    given: one strength under its name, a number or a number for each parameter   ->   the number, or (n,)

    Raises: ValueError for a negative or infinite strength.

    >>> params = {"W": np.ones(2), "b": np.ones(1)}
    >>> decay_of_entries("adamw_step", params, weight_decay={"W": 0.1, "b": 0.0})
    array([0.1, 0.1, 0. ])
    """
    ((name, strength),) = given.items()
    if not isinstance(strength, dict | list | tuple):
        within(function, "[0, ∞)", **given)
        return strength

    def repeated(p, number):
        within(function, "[0, ∞)", **{name: number})
        return np.full(np.shape(p), number, _as_float(function, p).dtype)

    return _memory(tree_map(repeated, params, strength))[0]


def _as_float(function, leaf):
    return floating(np.asarray(real_array(function, leaf)))
