"""AdamW for a training run: every number of `adamw_step`, written over the old ones in parts that fit the cache."""

import math

import numpy as np

from .optimizers import _per_parameter, _rate, _share, bias_correction
from .trees import tree_map

_PART = 1 << 16  # numbers of each of the six arrays at a time, 1.5 MB in float32


def _own_copy(tree):
    """The same structure with arrays of its own, each in one piece of memory."""
    return tree_map(lambda leaf: np.array(leaf, order="C") if isinstance(leaf, np.ndarray) else leaf, tree)


def _adamw_in_place(
    params, gradient, state, *,
    learning_rate=1e-3, beta1=0.9, beta2=0.999, epsilon=1e-8, weight_decay=0.01, spread=map,
):  # fmt: skip
    """`adamw_step` to the last bit, but params and the means in `state` are overwritten; the new state is returned.

    params, gradient, state["mean"], state["square"]: nested arrays of one structure, finite, of `_own_copy`
    spread: as `map`, may let several threads work
    """
    name, step = "adamw_step", state["step"] + 1
    rate = _rate(name, "learning_rate", learning_rate)
    beta1, beta2 = _share(name, "beta1", beta1), _share(name, "beta2", beta2)
    enlarge_mean, enlarge_root = bias_correction(beta1, step), math.sqrt(bias_correction(beta2, step))
    decay = _per_parameter(name, params, weight_decay)

    def update(part):
        p, g, m, v, strength = part
        scaled = (1 - beta1) * g  # m = β₁m + (1−β₁)g
        m *= beta1
        m += scaled
        np.multiply(1 - beta2, g, out=scaled)  # v = β₂v + (1−β₂)g²
        scaled *= g
        v *= beta2
        v += scaled
        root = np.sqrt(v)  # the step: m̂ / (√v̂ + ε)
        root *= enlarge_root
        root += epsilon
        np.multiply(enlarge_mean, m, out=scaled)
        scaled /= root
        scaled *= rate
        p *= 1 - rate * strength
        p -= scaled

    list(spread(update, _parts(params, gradient, state["mean"], state["square"], decay)))
    return state | {"step": step}


def _parts(*trees):
    """All parameters cut into parts, with their gradients, means and decays."""
    parts = []

    def cut(*arrays_and_strength):
        *arrays, strength = arrays_and_strength
        flat = [array.reshape(-1) for array in arrays]
        for start in range(0, flat[0].size, _PART):
            parts.append((*(array[start : start + _PART] for array in flat), strength))

    tree_map(cut, *trees)
    return parts
