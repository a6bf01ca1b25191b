"""How are the parameters of a model trained? By the same four lines, a hundred or a million times.

    batch = batches(rng)
    value, gradient = value_and_grad(loss)(params, batch)
    gradient, length = clip_gradient(gradient, max_norm)
    params, optimizer = adamw_step(params, gradient, optimizer, learning_rate=…)

The rest of this file makes it possible to watch a long run, to stop it, and to continue it with the same losses as a
run without interruption.
"""

from __future__ import annotations  # NumPy loads its random numbers when they are used

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TextIO

import numpy as np

from ..autodiff import value_and_grad
from ..errors import ShapeError, within
from ..gradient_descent import adamw_init, adamw_step, clip_gradient
from ..trees import flatten
from .checkpoints import save_checkpoint
from .data_parallel import parallel_value_and_grad, shared, target_count, usable_workers


class TrainingState(NamedTuple):
    """All that a run needs to continue: parameters, state of the optimiser, steps done, state of the random numbers.

    `save_checkpoint` writes it, `load_checkpoint(path, TrainingState)` reads it.
    """

    params: dict
    optimizer: dict
    step: int
    rng: dict


class TrainingProgress(NamedTuple):
    """The state of a run after a step, in numbers; printed, it is one line.

    loss: of the step's batch, before the step   gradient_norm: before clipping, None without   validation_loss: the
    latest, None before the first   tokens_per_second, seconds_left: from the mean speed since the start of the call

    >>> print(TrainingProgress(25, 100, 2.34567, 0.1, None, 2.5, 12345.6, 3675.0))
    step 25 of 100, loss 2.3457, validation 2.5000, 12,346 tokens/s, 1:01:15 left
    """

    step: int
    steps: int
    loss: float
    learning_rate: float
    gradient_norm: float | None
    validation_loss: float | None
    tokens_per_second: float
    seconds_left: float

    def __str__(self):
        validation = "" if self.validation_loss is None else f" validation {self.validation_loss:.4f},"
        minutes, seconds = divmod(round(self.seconds_left), 60)
        clock = f"{minutes // 60}:{minutes % 60:02}:{seconds:02}" if minutes >= 60 else f"{minutes}:{seconds:02}"
        return (
            f"step {self.step} of {self.steps}, loss {self.loss:.4f},{validation} "
            f"{self.tokens_per_second:,.0f} tokens/s, {clock} left"
        )


class TrainingStopped(ArithmeticError):
    """A loss or gradient is not finite. The message names the step and the last good checkpoint."""


def training_state(params: dict, rng: np.random.Generator | int, init: Callable = adamw_init) -> TrainingState:
    """The beginning of a run.

    params: nested arrays   rng: its state is copied, it is not used   init: of the optimiser   ->   the state at step 0

    >>> state = training_state({"weight": np.zeros(2)}, np.random.default_rng(0))
    >>> state.step, state.optimizer["mean"], state.rng["bit_generator"]
    (0, {'weight': array([0., 0.])}, 'PCG64')
    """
    return TrainingState(params, init(params), 0, np.random.default_rng(rng).bit_generator.state)


def train(
    state: TrainingState, loss: Callable, batches: Callable, steps: int, *,
    learning_rate: float | Callable, step: Callable = adamw_step, workers: int = 1, count: Callable = target_count,
    **options: Any,
) -> tuple[TrainingState, list[TrainingProgress]]:  # fmt: skip
    """Train until `steps` steps are done, counted from the beginning of the run.

        gₜ = ∇ (1/n) Σ loss over batch t,      θₜ = step(θₜ₋₁, clip(gₜ), η(t)),      t = 1, 2, …  (13.11)

    state: of training_state(), of an earlier call, or of a checkpoint   loss: loss(params, batch) -> one number, built
    from primitives   batches: batches(rng) -> batch, for instance `lambda rng: random_batch(tokens, 32, 64, rng)`
    learning_rate: a number, or a function of the step 1, 2, …   step: of the optimiser that made state.optimizer
    workers, count: see parallel_value_and_grad()
    options: max_norm, validation, checkpoint, progress and others, see training_loop(); the rest, such as weight_decay,
    is for `step`   ->   the new state, a TrainingProgress for each step

    Nothing is changed in place and nothing is printed. To continue after an interruption, call it again with the state
    `load_checkpoint(checkpoint, TrainingState)` and the same arguments: the losses are, to the last bit, those of a run
    without interruption (if what is random in the loss comes with its batch).
    Raises: TrainingStopped for a loss or gradient that is not finite, or a loss that cannot be computed;
    ValueError for fewer steps than are done, `validate_every`, `save_every` below 1, or no batch for validation.

    >>> loss = lambda params, x: ((params["centre"] - x) ** 2).mean()
    >>> state = training_state({"centre": np.zeros(1)}, np.random.default_rng(0))
    >>> state, history = train(state, loss, lambda rng: rng.normal(3, 1, (50, 1)), 100, learning_rate=0.1)
    >>> state.step, state.params["centre"].round(1)
    (100, array([3.]))
    """
    options |= {"learning_rate": learning_rate, "step": step, "count": count}
    workers = usable_workers(state.params, workers)
    if workers == 1:
        return training_loop(state, loss, value_and_grad(loss), batches, steps, **options)
    params, _ = shared(state.params)
    with parallel_value_and_grad(params, loss, workers, count) as value_and_gradient:
        return training_loop(state, loss, value_and_gradient, batches, steps, **options)


def training_loop(
    state: TrainingState, loss: Callable, value_and_gradient: Callable, batches: Callable, steps: int, *,
    learning_rate: float | Callable, step: Callable = adamw_step, count: Callable = target_count,
    max_norm: float | None = None, validation: Iterable | None = None, validate_every: int = 100,
    checkpoint: str | None = None, save_every: int = 100, progress: Callable | None = None, **options: Any,
) -> tuple[TrainingState, list[TrainingProgress]]:  # fmt: skip
    """The loop of `train`, for any function value_and_gradient(params, batch) -> loss, gradient.

    max_norm: longest gradient, see clip_gradient()   validation: batches for mean_loss(), every `validate_every` steps
    and at the end   checkpoint: path of a file, written at the start, every `save_every` steps, and at the end
    progress: called with a TrainingProgress after each step, see progress_bar(), or `print`

    A state is written only when the loss has been computed with it and is finite: a run that diverges cannot overwrite
    its last good checkpoint.

    >>> state = training_state({"x": np.ones(1)}, np.random.default_rng(0))
    >>> square = lambda params, batch: (float(params["x"][0] ** 2), {"x": 2 * params["x"]})
    >>> state, history = training_loop(state, square, square, lambda rng: np.zeros(1), 2, learning_rate=0.1)
    >>> len(history), history[0].loss
    (2, 1.0)
    """
    within("train", f"whole [{state.step}, ∞)", steps=steps)
    within("train", "whole [1, ∞)", validate_every=validate_every, save_every=save_every)
    rate = learning_rate if callable(learning_rate) else lambda t: learning_rate
    rng = _generator(state.rng)
    validation = None if validation is None else list(validation)
    within("train", "[1, ∞)", validation_batches=1 if validation is None else len(validation))
    history, length, validation_loss = [], None, None
    guard, first, tokens, began = _Guard(steps, checkpoint), state.step, 0, time.perf_counter()
    for number in range(first + 1, steps + 1):
        batch = batches(rng)
        value, gradient = guard.finite(number, "loss", value_and_gradient, state.params, batch)
        if checkpoint is not None and (state.step % save_every == 0 or state.step == first):
            guard.save(state)
        if max_norm is not None:
            gradient, length = clip_gradient(gradient, max_norm)
        eta = rate(number)
        params, optimizer = step(state.params, gradient, state.optimizer, learning_rate=eta, **options)
        state = TrainingState(params, optimizer, number, rng.bit_generator.state)
        if validation is not None and (number % validate_every == 0 or number == steps):
            validation_loss = guard.finite(number, "validation loss", mean_loss, loss, params, validation, count)
        tokens += count(batch)
        seconds = max(time.perf_counter() - began, 1e-6)  # in a browser the clock may stand still for some steps
        speed, left = tokens / seconds, seconds / (number - first) * (steps - number)
        history.append(TrainingProgress(number, steps, float(value), eta, length, validation_loss, speed, left))
        if progress is not None:
            progress(history[-1])
    if checkpoint is not None and history:  # no next step will compute the loss of this state
        guard.finite(steps, "loss after the step", loss, state.params, batch)
        guard.save(state)
    return state, history


class _Guard:
    """Stops a run whose numbers are not finite, with a message that names the last good checkpoint."""

    def __init__(self, steps, checkpoint):
        self.steps, self.checkpoint, self.advice = steps, checkpoint, " (a smaller learning rate or clipping?)"

    def save(self, state):
        save_checkpoint(self.checkpoint, state)
        self.advice = f"; the last good checkpoint is that of step {state.step}, {self.checkpoint}"

    def finite(self, number, what, function, *args):
        """What a function computes in the step of this number: a loss, or a loss and its gradient, all finite."""
        where = f"step {number} of {self.steps}:"
        try:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # an overflow is looked for afterwards
                result = function(*args)
        except ShapeError:
            raise  # a mistake of the program, not of the run
        except (ValueError, ArithmeticError) as error:
            raise TrainingStopped(f"{where} the loss cannot be computed, {error}{self.advice}") from error
        value, gradient = result if isinstance(result, tuple) else (result, ())
        if not np.isfinite(value):
            raise TrainingStopped(f"{where} the {what} is {value}{self.advice}")
        if not np.all(np.isfinite(flatten(gradient)[0])):
            raise TrainingStopped(f"{where} the gradient is not finite, the {what} is {value:.6g}{self.advice}")
        return result


def mean_loss(loss: Callable, params: Any, batches: Iterable, count: Callable = target_count) -> float:
    """The loss over several batches, each weighted by the number of its targets: the mean over all tokens.

        L = Σ_i (n_i/n) L_i                                                         (13.12)

    loss: loss(params, batch) -> mean over what counts   batches: for instance of validation_batches()
    count: count(batch) -> n_i

    Raises: ValueError if no target counts.

    >>> mean_loss(lambda w, x: (w * x).mean(), 2.0, [np.array([1.0, 2.0, 3.0]), np.array([6.0])])
    6.0
    """
    total, seen = 0.0, 0
    for batch in batches:
        if n := count(batch):
            total, seen = total + n * float(loss(params, batch)), seen + n
    if not seen:
        raise ValueError("mean_loss() needs at least one target that counts, got none")
    return total / seen


@contextmanager
def progress_bar(file: TextIO | None = None) -> Iterator[Callable]:
    """A line at the foot of the terminal for `train(progress=…)`: loss, tokens per second, time left.

    file: where to show it; without it, standard error, and only if that is a terminal: a notebook or a log stays clean

    Raises: ImportError without tqdm, which the extra "train" installs.

    >>> import io
    >>> screen = io.StringIO()
    >>> with progress_bar(screen) as progress:
    ...     progress(TrainingProgress(4, 4, 2.5, 0.1, None, None, 1000.0, 0.0))
    >>> screen.getvalue().rpartition("| ")[2]
    'step 4 of 4, loss 2.5000, 1,000 tokens/s, 0:00 left\\n'
    """
    try:
        from tqdm import tqdm
    except ImportError:
        raise ImportError("progress_bar() needs tqdm: pip install 'mathllm[train]'") from None
    silent = None if file is None else False  # with None, tqdm is silent unless the file is a terminal
    layout = "{percentage:3.0f}%|{bar}| {desc}"
    with tqdm(total=0, file=file or sys.stderr, disable=silent, bar_format=layout, miniters=1) as bar:

        def show(now: TrainingProgress):
            bar.total = now.steps
            bar.set_description_str(str(now), refresh=False)
            bar.update(now.step - bar.n)

        yield show


def _generator(state):
    """A new generator that continues from `state`."""
    kind = getattr(np.random, str(state.get("bit_generator")), None)
    if not (isinstance(kind, type) and issubclass(kind, np.random.BitGenerator)):
        raise ValueError(f"the state of the random numbers is of no known generator: {state.get('bit_generator')!r}")
    bits = kind(0)
    bits.state = state
    return np.random.Generator(bits)
