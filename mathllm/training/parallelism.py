"""How do a thousand machines train one model without changing what it learns?

Each way of dividing the work is an identity of sums, shown here on simulated workers: a worker is an entry of a list,
and what it sends is counted. Data parallelism splits the batch, tensor parallelism the matrices, pipeline parallelism
the layers, and ZeRO what the optimiser remembers. The result is always that of one worker, up to the order of
additions.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ..autodiff import value_and_grad, vjp
from ..errors import ShapeError
from ..gradient_descent import adamw_init, adamw_step
from ..gradients import relu
from ..matrices import linear
from ..trees import tree_leaves, tree_map
from .calculators import TrainingMemory, training_memory


class Reduced(NamedTuple):
    """The sum as each worker has it, and how many numbers each worker sent."""

    results: list[np.ndarray]
    sent: list[int]


def ring_all_reduce(parts: Sequence) -> Reduced:
    """Give every worker the sum of all workers' arrays; each speaks to its neighbour in a ring only.

        y = Σ_w x_w,      numbers sent by a worker: 2 (n − 1)/n · size              (13.15)

    parts: n arrays of one shape   ->   the sum, n times, and the numbers sent

    Each array is cut into n chunks. In n − 1 rounds every chunk travels once around the ring and collects the others;
    in n − 1 more the finished chunks travel on. What a worker sends does not grow with the number of workers.
    Raises: ShapeError without workers or for arrays of different shapes.
    Source: 004, table of parallelism (gradients are averaged); Patarasuk & Yuan 2009.

    >>> ring_all_reduce([[1.0, 2.0], [10.0, 20.0]])
    Reduced(results=[array([11., 22.]), array([11., 22.])], sent=[2, 2])
    """
    arrays = [np.asarray(part) for part in parts]
    if not arrays or any(array.shape != arrays[0].shape for array in arrays):
        shapes = ", ".join(str(array.shape) for array in arrays)
        raise ShapeError(f"ring_all_reduce() needs arrays of one shape, one for each worker, got {shapes or 'none'}")
    n = len(arrays)
    chunks = [np.array_split(array.ravel(), n) for array in arrays]
    sent = [0] * n
    for round in range(2 * (n - 1)):
        collecting = round < n - 1
        moving = [(w - round) % n for w in range(n)]  # the chunk that worker w passes on
        for w, value in enumerate([chunks[w][moving[w]] for w in range(n)]):  # all send at the same time
            neighbour, c = chunks[(w + 1) % n], moving[w]
            neighbour[c] = neighbour[c] + value if collecting else value
            sent[w] += value.size
    return Reduced([np.concatenate(own).reshape(arrays[0].shape) for own in chunks], sent)


def data_parallel_gradient(loss: Callable, params, batch: Sequence, workers: int):
    """Loss and gradient of a batch that is divided among workers, each with a copy of the model.

        ∇L = (1/n) Σ_w ∇L_w                                                         (13.16)

    loss: loss(params, *batch) -> mean over the examples   batch: arrays (B, ...) that are divided along B
    ->   loss, gradient: those of the undivided batch

    The mean of means is the mean only if all shares are equal.
    Raises: ShapeError if B is not divisible by the number of workers.
    Source: 004, table of parallelism; 001, §9.4.

    >>> loss = lambda w, x: ((w * x) ** 2).mean()
    >>> x = np.array([[1.0], [2.0], [3.0], [4.0]])
    >>> [[float(g[0]) for _, g in [data_parallel_gradient(loss, np.ones(1), [x], n)]] for n in (1, 2, 4)]
    [[15.0], [15.0], [15.0]]
    """
    shares = [_shares("data_parallel_gradient", np.asarray(array), workers) for array in batch]
    results = [value_and_grad(loss)(params, *share) for share in zip(*shares, strict=True)]
    losses, gradients = zip(*results, strict=True)
    average = tree_map(lambda *parts: ring_all_reduce(parts).results[0] / workers, *gradients)
    return sum(losses) / workers, average


def column_parallel(x, W, workers: int) -> list:
    """A linear layer divided by outputs: every worker has all of x and some columns of W.

        x [W₁ W₂ …] = [xW₁  xW₂ …]                                                  (13.17)

    x: (..., n)   W: (n, m)   ->   for each worker (..., m / workers); nothing has to be sent

    Raises: ShapeError if m is not divisible by the number of workers.
    Source: 001, §9.4; Shoeybi et al. 2019 (Megatron), §3.

    >>> column_parallel([1.0, 2.0], [[1.0, 0.0], [0.0, 3.0]], workers=2)
    [array([1.]), array([6.])]
    """
    W = _as_array(W)
    return [linear(x, W[:, columns]) for columns in _slices("column_parallel", W.shape[1], workers)]


def row_parallel(parts: Sequence, W):
    """A linear layer divided by inputs: every worker has some components of x and the rows of W for them.

        [x₁ x₂ …] [W₁; W₂; …] = Σ_w x_w W_w                                         (13.18)

    parts: for each worker (..., n / workers)   W: (n, m)   ->   (..., m); the sum is one all-reduce

    Raises: ShapeError if n is not divisible by the number of workers.
    Source: 001, §9.4; Shoeybi et al. 2019 (Megatron), §3.

    >>> row_parallel([[1.0], [6.0]], [[1.0, 1.0], [0.0, 2.0]])
    array([ 1., 13.])
    """
    W = _as_array(W)
    rows = _slices("row_parallel", W.shape[0], len(parts))
    total, *others = [linear(part, W[own]) for part, own in zip(parts, rows, strict=True)]
    for other in others:
        total = total + other
    return total


def tensor_parallel_network(x, W_up, W_down, *, workers: int, activation: Callable = relu):
    """The two layers of a transformer's network on several workers, with a single exchange.

        f(xW₁) W₂ = Σ_w f(x W₁[:, w]) W₂[w, :]                                      (13.19)

    x: (..., D)   W_up: (D, F)   W_down: (F, D)   ->   (..., D), as on one worker

    The first matrix is divided by columns and the second by rows: f acts on each component by itself, so between the
    two nobody needs anybody. Attention is divided by heads in the same way.
    Raises: ShapeError if F is not divisible by the number of workers.
    Source: 001, §9.4; Shoeybi et al. 2019 (Megatron), §3.

    >>> tensor_parallel_network([1.0, -2.0], np.eye(2), [[1.0, 2.0], [3.0, 4.0]], workers=2)
    array([1., 2.])
    """
    return row_parallel([activation(hidden) for hidden in column_parallel(x, W_up, workers)], W_down)


class Task(NamedTuple):
    """What a stage of the pipeline does at a time: the forward or backward pass of one microbatch."""

    time: int
    stage: int
    microbatch: int
    forward: bool


def pipeline_schedule(stages: int, microbatches: int) -> list[Task]:
    """Who works when, if the layers lie on different machines and the batch is cut into microbatches (GPipe).

    Microbatch m reaches stage s at time s + m; when all have passed, the gradients come back the other way. A pass
    takes one unit of time, so that everything is done after 2(S + M − 1).

    Raises: ValueError for fewer than one stage or microbatch.
    Source: 001, §9.4; Huang et al. 2019 (GPipe).

    >>> for task in pipeline_schedule(stages=2, microbatches=1):
    ...     print(task.time, "forward" if task.forward else "backward", "on stage", task.stage)
    0 forward on stage 0
    1 forward on stage 1
    2 backward on stage 1
    3 backward on stage 0
    """
    if stages < 1 or microbatches < 1:
        raise ValueError(f"pipeline_schedule() needs stages and microbatches, got {stages} and {microbatches}")
    forward = [Task(s + m, s, m, True) for s in range(stages) for m in range(microbatches)]
    end = 2 * (stages + microbatches - 1) - 1
    return sorted(forward + [Task(end - task.time, task.stage, task.microbatch, False) for task in forward])


def pipeline_bubble(stages: int, microbatches: int) -> float:
    """The share of the time in which a machine of the pipeline waits.

        (S − 1) / (S + M − 1)                                                       (13.20)

    Raises: ValueError for fewer than one stage or microbatch.
    Source: Huang et al. 2019 (GPipe), §2.3.

    >>> pipeline_bubble(4, 1), pipeline_bubble(4, 12)
    (0.75, 0.2)
    """
    if stages < 1 or microbatches < 1:
        raise ValueError(f"pipeline_bubble() needs stages and microbatches, got {stages} and {microbatches}")
    return (stages - 1) / (stages + microbatches - 1)


def pipeline_gradient(stages: Sequence[Callable], params: Sequence, loss: Callable, inputs, targets, microbatches: int):
    """Loss and gradient of a model whose stages lie on different machines, in the order of the schedule.

    stages: functions stage(params, x) -> x   params: those of each stage   loss: loss(x, targets) -> mean over the
    examples   inputs, targets: (B, ...)   ->   loss, the gradient of each stage: as on one machine

    Only activations travel forward and their gradients back; each stage sums the gradients of its own parameters.
    Raises: ShapeError if B is not divisible by the microbatches, or if there is not one set of parameters per stage.
    Source: 001, §9.4; Huang et al. 2019 (GPipe).

    >>> double, square = lambda w, x: w * x, lambda w, x: w * x * x
    >>> args = ([2.0, 3.0], lambda y, t: (y - t).mean(), np.array([1.0, 2.0]), np.zeros(2))
    >>> value, gradient = pipeline_gradient([double, square], *args, microbatches=2)
    >>> float(value), [float(g) for g in gradient]
    (30.0, [30.0, 10.0])
    """
    if len(stages) != len(params) or not stages:
        raise ShapeError(f"pipeline_gradient() needs parameters for each of {len(stages)} stages, got {len(params)}")
    name, last = "pipeline_gradient", len(stages) - 1
    arriving = {(0, m): x for m, x in enumerate(_shares(name, np.asarray(inputs), microbatches))}
    answers = _shares(name, np.asarray(targets), microbatches)
    pullbacks, returning, losses, totals = {}, {}, [], [None] * len(stages)
    for _, s, m, forward in pipeline_schedule(len(stages), microbatches):
        if forward:
            value, pullbacks[s, m] = vjp(stages[s], params[s], arriving.pop((s, m)))
            if s < last:
                arriving[s + 1, m] = value
                continue
            value, to_output = vjp(lambda y, m=m: loss(y, answers[m]), value)
            losses.append(value)
            (returning[s, m],) = to_output(1.0)
        else:
            gradient, returning[s - 1, m] = pullbacks.pop((s, m))(returning.pop((s, m)))
            totals[s] = gradient if totals[s] is None else tree_map(np.add, totals[s], gradient)
    return sum(losses) / microbatches, [tree_map(lambda g: g / microbatches, total) for total in totals]


def zero_memory(parameters: float, workers: int, stage: int) -> TrainingMemory:
    """Bytes on each worker if what data parallelism keeps many times is divided among the workers (ZeRO).

        stage 1: moments and master weights / n,   stage 2: gradients / n, too,   stage 3: weights / n, too   (13.21)

    stage 0: nothing is divided.
    Raises: ValueError for a stage other than 0 … 3 or fewer than one worker.
    Source: 001, §9.4; 004, table of parallelism; Rajbhandari et al. 2020, §5.

    >>> [round(zero_memory(7e9, workers=8, stage=stage).total / 1e9, 2) for stage in range(4)]
    [126.0, 52.5, 28.0, 15.75]
    """
    if stage not in range(4) or workers < 1:
        raise ValueError(f"zero_memory() needs a stage from 0 to 3 and workers, got {stage} and {workers}")
    weights, master, moments, gradients = training_memory(parameters)
    share = [workers if stage >= first else 1 for first in (3, 1, 1, 2)]
    return TrainingMemory(weights / share[0], master / share[1], moments / share[2], gradients / share[3])


def zero_init(params, workers: int, init: Callable = adamw_init) -> list:
    """What each worker has to remember for ZeRO: the state of the optimiser for its own share of the parameters.

    params: nested arrays   init: of an optimiser that treats each number by itself   ->   a state for each worker

    Raises: ValueError for fewer than one worker.

    >>> [state["mean"].size for state in zero_init({"W": np.ones((2, 3)), "b": np.ones(3)}, workers=2)]
    [5, 4]
    """
    if workers < 1:
        raise ValueError(f"zero_init() needs at least one worker, got {workers}")
    return [init(part) for part in np.array_split(_flat(params), workers)]


def zero_step(params, gradients: Sequence, states: Sequence, step: Callable = adamw_step, **options):
    """One step of an optimiser whose state is divided among workers (ZeRO, stage 2).

    Every worker gets the mean gradient of its own share of the parameters (reduce-scatter), takes the step for it, and
    the new shares are collected (all-gather). An optimiser that treats each number by itself cannot tell the
    difference.

    params: nested arrays   gradients: one for each worker   states: of `zero_init` or the last step   options: for the
    optimiser, numbers only   ->   params, states

    Raises: ShapeError if there is not one gradient and one state for each worker.
    Source: 001, §9.4; Rajbhandari et al. 2020, §5.

    >>> params, gradients = {"W": np.ones(3)}, [{"W": np.full(3, 1.0)}, {"W": np.full(3, 3.0)}]
    >>> new, states = zero_step(params, gradients, zero_init(params, 2), learning_rate=0.1, weight_decay=0.0)
    >>> new["W"].round(6), len(states)
    (array([0.9, 0.9, 0.9]), 2)
    """
    workers = len(states)
    if len(gradients) != workers or not workers:
        raise ShapeError(f"zero_step() needs one gradient for each of {workers} workers, got {len(gradients)}")
    own = np.array_split(_flat(params), workers)
    shares = [np.array_split(_flat(gradient), workers) for gradient in gradients]
    if any(len(part) != len(p) for share in shares for part, p in zip(share, own, strict=True)):
        raise ShapeError("zero_step() needs gradients of the shape of the parameters")
    new_parts, new_states = [], []
    for worker, state in enumerate(states):
        total = shares[0][worker]
        for share in shares[1:]:
            total = total + share[worker]
        part, state = step(own[worker], total / workers, state, **options)
        new_parts.append(part)
        new_states.append(state)
    return _unflat(np.concatenate(new_parts), params), new_states


def _shares(name, array, workers):
    """Equal shares along the first axis."""
    if workers < 1 or array.size == 0 or array.ndim == 0 or len(array) % workers:
        raise ShapeError(f"{name}() cannot divide shape {array.shape} evenly among {workers} (see chapter 13)")
    return np.split(array, workers)


def _slices(name, size, workers):
    if workers < 1 or size % workers:
        raise ShapeError(f"{name}() cannot divide {size} evenly among {workers} workers (see chapter 13)")
    width = size // workers
    return [slice(w * width, (w + 1) * width) for w in range(workers)]


def _as_array(W):
    return W if hasattr(W, "ndim") else np.asarray(W, float)


def _flat(tree):
    return np.concatenate([np.ravel(leaf) for leaf in tree_leaves(tree)])


def _unflat(vector, like):
    """The vector in the shape of a nested structure."""
    done = 0

    def take(leaf):
        nonlocal done
        done += np.size(leaf)
        return vector[done - np.size(leaf) : done].reshape(np.shape(leaf)).astype(np.asarray(leaf).dtype)

    return tree_map(take, like)
