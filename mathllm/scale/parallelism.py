"""Training on many devices: data, tensor and pipeline parallelism, and ZeRO, simulated in one process.

Each way of dividing the work is an identity of sums. A worker is an entry of a list, and the numbers that it sends are
counted. Data parallelism divides the batch, tensor parallelism the matrices, pipeline parallelism the layers, and ZeRO
the state of the optimiser. The result is always that of one worker, up to the order of additions.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..autodiff import ArrayLike, value_and_grad, vjp
from ..errors import ShapeError, within
from ..gradient_descent import adamw_init, adamw_step, checked_gradient
from ..gradients import relu
from ..matrices import linear
from ..shapes import contract
from ..trees import flatten, tree_map
from .cost import TrainingMemory, training_memory


class Reduced(NamedTuple):
    """The sum as each worker has it, and how many numbers each worker sent."""

    results: list[np.ndarray]
    sent: list[int]


def ring_all_reduce(parts: Sequence[ArrayLike]) -> Reduced:
    """All-reduce: every worker gets the sum of all workers' arrays, and sends only to its neighbour in a ring.

        y = Σ_w x_w,      numbers sent by a worker: 2 (n − 1)/n · size              (17.11)

    parts: n arrays of one shape   ->   the sum, n times, and the numbers sent

    Each array is cut into n chunks. In n − 1 rounds every chunk travels around the ring and is added up on its way. In
    n − 1 more rounds the finished chunks travel on to all workers. However many workers there are, each sends less than
    twice its array.
    Raises: ShapeError without workers or for arrays of different shapes.
    Source: Patarasuk & Yuan 2009.

    >>> ring_all_reduce([[1.0, 2.0], [10.0, 20.0]])
    Reduced(results=[array([11., 22.]), array([11., 22.])], sent=[2, 2])
    """
    arrays = [np.asarray(part) for part in parts]
    n, shape = len(arrays), _common_shape(arrays)
    chunks = [np.array_split(array.ravel(), n) for array in arrays]  # chunks[w][c]: chunk c of worker w
    sent = [0] * n
    for round in range(2 * (n - 1)):
        messages = [chunks[w][(w - round) % n] for w in range(n)]  # all workers send at the same time
        for w, message in enumerate(messages):
            neighbour, c = chunks[(w + 1) % n], (w - round) % n
            neighbour[c] = neighbour[c] + message if round < n - 1 else message
            sent[w] += message.size
    return Reduced([np.concatenate(own).reshape(shape) for own in chunks], sent)


def data_parallel_gradient(loss: Callable, params: Any, batch: Sequence[ArrayLike], workers: int) -> tuple[float, Any]:
    """Loss and gradient of a batch that is divided among workers, each with a copy of the model.

        ∇L = (1/n) Σ_w ∇L_w                                                         (17.10)

    loss: loss(params, *batch) -> mean over the examples   batch: arrays (B, ...) that are divided along B
    ->   loss, gradient: those of the undivided batch

    The mean of the shards' means is the mean of the batch only if all shards have the same size.
    Raises: ShapeError if B is not divisible by the number of workers.

    >>> loss = lambda w, x: ((w * x) ** 2).mean()
    >>> x = np.array([[1.0], [2.0], [3.0], [4.0]])
    >>> [[float(g[0]) for _, g in [data_parallel_gradient(loss, np.ones(1), [x], n)]] for n in (1, 2, 4)]
    [[15.0], [15.0], [15.0]]
    """
    shards = [_shards("data_parallel_gradient", array, workers) for array in batch]
    results = [value_and_grad(loss)(params, *shard) for shard in zip(*shards, strict=True)]
    losses, gradients = zip(*results, strict=True)
    mean = tree_map(lambda *parts: ring_all_reduce(parts).results[0] / workers, *gradients)
    return sum(losses) / workers, mean


@contract("... D, D F, F M")
def tensor_parallel_network(
    x: ArrayLike, W_up: ArrayLike, W_down: ArrayLike, *, workers: int, activation: Callable = relu
) -> np.ndarray:
    """The two layers of a feed-forward network on several workers, with one communication step.

        by columns     x [U₁ U₂ …] = [xU₁  xU₂ …]                                   (17.12)
        by rows        [h₁ h₂ …] [V₁; V₂; …] = Σ_w h_w V_w                          (17.13)
        together       f(xU) V = Σ_w f(x U_w) V_w                                   (17.14)

    W_up: U   W_down: V   activation: f   ->   (..., M), as on one worker

    The first matrix is divided by columns and the second by rows. The activation f acts on each component separately,
    so the workers do not have to communicate between the two layers; the sum is one all-reduce. Attention is divided by
    heads in the same way.
    Raises: ShapeError if F is not divisible by the number of workers.
    Source: Shoeybi et al. 2019 (Megatron), §3.

    >>> tensor_parallel_network([1.0, -2.0], np.eye(2), [[1.0, 2.0], [3.0, 4.0]], workers=2)
    array([1., 2.])
    """
    parts = _slices("tensor_parallel_network", W_up.shape[1], workers)
    products = [linear(activation(linear(x, W_up[:, part])), W_down[part]) for part in parts]
    return sum(products[1:], products[0])


class Task(NamedTuple):
    """One unit of work of a pipeline stage: the forward or backward pass of one microbatch."""

    time: int
    stage: int
    microbatch: int
    forward: bool


def pipeline_schedule(stages: int, microbatches: int) -> list[Task]:
    """The schedule of a pipeline: the layers are divided into stages on different devices, the batch into microbatches.

    Microbatch m reaches stage s at time s + m. After all forward passes the gradients take the opposite way. A pass
    takes one unit of time, so the whole batch takes 2(P + M − 1) for P stages and M microbatches.

    Raises: ValueError for fewer than one stage or microbatch.
    Source: Huang et al. 2019 (GPipe).

    >>> for task in pipeline_schedule(stages=2, microbatches=1):
    ...     print(task.time, "forward" if task.forward else "backward", "on stage", task.stage)
    0 forward on stage 0
    1 forward on stage 1
    2 backward on stage 1
    3 backward on stage 0
    """
    within("pipeline_schedule", "whole [1, ∞)", stages=stages, microbatches=microbatches)
    forward = [Task(s + m, s, m, True) for s in range(stages) for m in range(microbatches)]
    end = 2 * (stages + microbatches - 1) - 1
    return sorted(forward + [Task(end - task.time, task.stage, task.microbatch, False) for task in forward])


def pipeline_bubble(stages: int, microbatches: int) -> float:
    """The pipeline bubble: the fraction of the time in which a device of the pipeline is idle.

        (P − 1) / (P + M − 1)                                                       (17.15)

    for P stages that take equally long and M microbatches

    Raises: ValueError for fewer than one stage or microbatch.
    Source: Huang et al. 2019 (GPipe), §2.3.

    >>> pipeline_bubble(4, 1), pipeline_bubble(4, 12)
    (0.75, 0.2)
    """
    within("pipeline_bubble", "whole [1, ∞)", stages=stages, microbatches=microbatches)
    return (stages - 1) / (stages + microbatches - 1)


def pipeline_gradient(
    stages: Sequence[Callable], params: Sequence, loss: Callable, inputs: ArrayLike, targets: ArrayLike,
    microbatches: int,
) -> tuple[float, list]:  # fmt: skip
    """Loss and gradient of a model whose stages are on different devices, computed in the order of the schedule.

    stages: functions stage(params, x) -> x   params: those of each stage   loss: loss(x, targets) -> mean over the
    examples   inputs, targets: (B, ...)   ->   loss, the gradient of each stage: as on one device

    Activations are sent forward and their gradients back. Each stage takes the mean over the microbatches of the
    gradients of its own parameters.
    Raises: ShapeError if B is not divisible by the microbatches, or if there is not one set of parameters per stage.
    Source: Huang et al. 2019 (GPipe).

    >>> double, square = lambda w, x: w * x, lambda w, x: w * x * x
    >>> args = ([2.0, 3.0], lambda y, t: (y - t).mean(), np.array([1.0, 2.0]), np.zeros(2))
    >>> value, gradient = pipeline_gradient([double, square], *args, microbatches=2)
    >>> float(value), [float(g) for g in gradient]
    (30.0, [30.0, 10.0])
    """
    if len(stages) != len(params) or not stages:
        raise ShapeError(f"pipeline_gradient() needs parameters for each of {len(stages)} stages, got {len(params)}")
    x = dict(enumerate(_shards("pipeline_gradient", inputs, microbatches)))  # the activation of each microbatch
    answers = _shards("pipeline_gradient", targets, microbatches)
    pullbacks, dx, losses, gradients = {}, {}, [], [[] for _ in stages]
    for _, s, m, forward in pipeline_schedule(len(stages), microbatches):
        if forward:
            x[m], pullbacks[s, m] = vjp(stages[s], params[s], x[m])
        else:
            if s == len(stages) - 1:
                value, pullback = vjp(lambda y, m=m: loss(y, answers[m]), x[m])
                losses.append(value)
                (dx[m],) = pullback(1.0)
            gradient, dx[m] = pullbacks.pop((s, m))(dx[m])
            gradients[s].append(gradient)
    mean = [tree_map(lambda *parts: sum(parts[1:], parts[0]) / microbatches, *stage) for stage in gradients]
    return sum(losses) / microbatches, mean


def zero_memory(parameters: float, workers: int, stage: int) -> TrainingMemory:
    """Bytes on each worker if ZeRO divides among n workers what data parallelism keeps n times.

        stage 1: moments and master weights / n,   stage 2: gradients / n, too,   stage 3: weights / n, too   (17.16)

    stage 0: nothing is divided.
    Raises: ValueError for a stage other than 0 … 3 or fewer than one worker.
    Source: Rajbhandari et al. 2020, §5.

    >>> [round(zero_memory(7e9, workers=8, stage=stage).total / 1e9, 2) for stage in range(4)]
    [126.0, 52.5, 28.0, 15.75]
    """
    within("zero_memory", "whole [0, 3]", stage=stage)
    within("zero_memory", "whole [1, ∞)", workers=workers)
    first_stages = TrainingMemory(weights=3, master_weights=1, moments=1, gradients=2)
    parts = zip(training_memory(parameters), first_stages, strict=True)
    return TrainingMemory(*(part / workers if stage >= first else part for part, first in parts))


def zero_init(params: Any, workers: int, init: Callable = adamw_init) -> list:
    """The state of the optimiser, divided for ZeRO: each worker keeps the state for its shard of the parameter vector.

    params: nested arrays   init: of an optimiser that treats each number separately   ->   a state for each worker

    Raises: ValueError for fewer than one worker.

    >>> [state["mean"].size for state in zero_init({"W": np.ones((2, 3)), "b": np.ones(3)}, workers=2)]
    [5, 4]
    """
    within("zero_init", "whole [1, ∞)", workers=workers)
    theta, _ = flatten(params)
    return [init(shard) for shard in np.array_split(theta, workers)]


def zero_step(
    params: Any, gradients: Sequence, states: Sequence, step: Callable = adamw_step, **options: float
) -> tuple[Any, list]:
    """One step of an optimiser whose state is divided among workers (ZeRO, stage 2).

    All parameters form one vector θ, of which worker w owns a shard. It receives the mean gradient of this shard
    (reduce-scatter) and takes the step for it. Then the new shards are joined (all-gather). An optimiser that treats
    each number separately takes the same step as on one worker.

    params: nested arrays   gradients: one for each worker   states: of `zero_init` or the last step   options: of the
    optimiser, numbers only   ->   params, states

    Raises: ShapeError if there is not one gradient and one state for each worker, or for gradients of other shapes.
    Source: Rajbhandari et al. 2020, §5.

    >>> params, gradients = {"W": np.ones(3)}, [{"W": np.full(3, 1.0)}, {"W": np.full(3, 3.0)}]
    >>> new, states = zero_step(params, gradients, zero_init(params, 2), learning_rate=0.1, weight_decay=0.0)
    >>> new["W"].round(6), len(states)
    (array([0.9, 0.9, 0.9]), 2)
    """
    workers = len(states)
    if len(gradients) != workers or not workers:
        raise ShapeError(f"zero_step() needs one gradient for each of {workers} workers, got {len(gradients)}")
    theta, views = flatten(params)
    mean = sum(flatten(checked_gradient(gradient, params))[0] for gradient in gradients) / workers
    shards = zip(np.array_split(theta, workers), np.array_split(mean, workers), states, strict=True)
    stepped = [step(shard, gradient, state, **options) for shard, gradient, state in shards]
    new = views(np.concatenate([shard for shard, _ in stepped]))
    return tree_map(lambda new, old: new.astype(np.asarray(old).dtype), new, params), [state for _, state in stepped]


def _shards(function, array, parts):
    """Equal parts along the first axis."""
    array = np.asarray(array)
    return [array[rows] for rows in _slices(function, len(array) if array.ndim else 0, parts)]


def _slices(function, size, parts):
    if size == 0 or parts < 1 or size % parts:
        raise ShapeError(f"{function}() cannot divide {size} entries into {parts} equal parts (see chapter 17)")
    width = size // parts
    return [slice(start, start + width) for start in range(0, size, width)]


def _common_shape(arrays):
    shapes = [array.shape for array in arrays]
    if len(set(shapes)) != 1:
        found = ", ".join(map(str, shapes)) or "none"
        raise ShapeError(f"ring_all_reduce() needs arrays of one shape, one for each worker, got {found}")
    return shapes[0]
