"""What happens between fresh weights and a model? A few hundred times the same four lines.

    batch = batches(rng)
    value, gradient = value_and_grad(loss)(params, batch)
    gradient, length = clip_gradient(gradient, max_norm)
    params, optimizer = adamw_step(params, gradient, optimizer, learning_rate=…)

The rest of this file sees to it that a long run can be watched, stopped, and taken up again as if nothing had happened.
"""

from __future__ import annotations  # numpy.random is loaded when it is used

import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

import numpy as np

from ..errors import ShapeError
from ..gradient_descent import adamw_init, adamw_step, clip_gradient, tree_leaves
from ..gradient_descent.in_place import _adamw_in_place, _own_copy
from .checkpoints import save_checkpoint
from .data_parallel import _crew, _divided_gradient, _hands, target_count
from .processes import _shared_like

_LARGE = 1 << 18  # parameters from which on it pays that several threads sum gradients and take the step


class TrainingState(NamedTuple):
    """All that a run needs to go on: parameters, what the optimiser remembers, steps done, state of the random numbers.

    `save_checkpoint` writes it, `load_checkpoint(path, TrainingState)` reads it.
    """

    params: dict
    optimizer: dict
    step: int
    rng: dict


class TrainingProgress(NamedTuple):
    """How a run stands after a step; printed, it is one line.

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


def training_state(params, rng: np.random.Generator, init: Callable = adamw_init) -> TrainingState:
    """The beginning of a run.

    params: nested arrays   rng: its state is copied, it is not used   init: of the optimiser   ->   the state at step 0

    >>> state = training_state({"weight": np.zeros(2)}, np.random.default_rng(0))
    >>> state.step, state.optimizer["mean"], state.rng["bit_generator"]
    (0, {'weight': array([0., 0.])}, 'PCG64')
    """
    return TrainingState(params, init(params), 0, rng.bit_generator.state)


def train(
    state: TrainingState, loss: Callable, batches: Callable, steps: int, *,
    learning_rate, step: Callable = adamw_step, max_norm: float | None = None,
    validation: Iterable | None = None, validate_every: int = 100, checkpoint=None, save_every: int = 100,
    progress: Callable | None = None, workers: int = 1, processes: bool = False, count: Callable = target_count,
    **options,
) -> tuple[TrainingState, list[TrainingProgress]]:  # fmt: skip
    """Train until `steps` steps are done, counted from the beginning of the run.

        gₜ = ∇ (1/n) Σ loss over batch t,      θₜ = step(θₜ₋₁, clip(gₜ), η(t)),      t = 1, 2, …  (13.30)

    state: of training_state(), of an earlier call, or of a checkpoint   loss: loss(params, batch) -> one number, of
    primitives   batches: batches(rng) -> batch, for instance `lambda rng: random_batch(tokens, 32, 64, rng)`
    learning_rate: a number, or a function of the step 1, 2, …   step: of the optimiser that made state.optimizer
    max_norm: longest gradient   validation: batches for mean_loss(), every `validate_every` steps and at the end
    checkpoint: path of a file, written at the start, every `save_every` steps, and at the end   progress: called with a
    TrainingProgress after each step: see progress_bar(), or `print`
    workers, processes, count: see parallel_value_and_grad()
    options: for `step`, such as weight_decay   ->   the new state, a TrainingProgress for each step

    Nothing is changed in place and nothing is printed. To go on after an interruption, call it again with the state
    `load_checkpoint(checkpoint, TrainingState)` and the same arguments: the losses are, to the last bit, those of a run
    without interruption (if what is random in the loss comes with its batch). A state is written only when the loss
    has been computed with it and is finite: a run that diverges cannot overwrite its last good checkpoint.
    Raises: TrainingStopped for a loss or gradient that is not finite, or a loss that cannot be computed;
    ValueError for fewer steps than are done, or `validate_every`, `save_every` below 1.
    Source: 002, training loop; 003, ch. IX; 001, §9.3 (clipping).

    >>> loss = lambda params, x: ((params["centre"] - x) ** 2).mean()
    >>> state = training_state({"centre": np.zeros(1)}, np.random.default_rng(0))
    >>> state, history = train(state, loss, lambda rng: rng.normal(3, 1, (50, 1)), 100, learning_rate=0.1)
    >>> state.step, state.params["centre"].round(1)
    (100, array([3.]))
    """
    _check_numbers(state.step, steps, validate_every, save_every)
    rate = learning_rate if callable(learning_rate) else lambda t: learning_rate
    rng = _generator(state.rng)
    validation = None if validation is None else list(validation)
    history, length, validation_loss = [], None, None
    clock, guard = _Clock(state.step, steps), _Guard(state.step, steps, checkpoint)

    with _tools(state, step, loss, workers, processes, count) as (state, step, value_and_gradient):
        for number in range(state.step + 1, steps + 1):
            guard.step, batch = number, batches(rng)
            value, gradient = guard.computed(value_and_gradient, state.params, batch)
            guard.require_finite(value, gradient)
            if checkpoint is not None and (state.step % save_every == 0 or state.step == clock.first):
                guard.save(state)
            if max_norm is not None:
                gradient, length = clip_gradient(gradient, max_norm)
            eta = rate(number)
            params, optimizer = step(state.params, gradient, state.optimizer, learning_rate=eta, **options)
            del gradient  # its memory serves the next one
            state = TrainingState(params, optimizer, number, rng.bit_generator.state)
            if validation is not None and (number % validate_every == 0 or number == steps):
                validation_loss = guard.computed(mean_loss, loss, params, validation, count)
                guard.require_finite(validation_loss, what="validation loss")
            speed, left = clock.tell(number, count(batch))
            history.append(TrainingProgress(number, steps, float(value), eta, length, validation_loss, speed, left))
            if progress is not None:
                progress(history[-1])
    if checkpoint is not None and history:
        value = guard.computed(loss, state.params, batch)  # no next step will tell whether this one was good
        guard.require_finite(value, what="loss after the step")
        guard.save(state)
    return state, history


def _check_numbers(done, steps, validate_every, save_every):
    if steps < done or validate_every < 1 or save_every < 1:
        raise ValueError(
            f"train() needs steps ≥ {done}, which are done, and validate_every and save_every of at least 1, "
            f"got {steps}, {validate_every} and {save_every}"
        )


@contextmanager
def _tools(state, step, loss, workers, processes, count):
    """For one run: the state in memory that it may overwrite, the step that does, and value_and_gradient."""
    with ExitStack() as stack:
        large = sum(np.size(leaf) for leaf in tree_leaves(state.params)) >= _LARGE
        hands = stack.enter_context(_hands(workers))
        spread = hands if large else map
        copy = _shared_like if processes else _own_copy
        state, step, overwritten = _with_memory_of_its_own(state, step, copy, spread)
        gradients = stack.enter_context(_crew(loss, workers, hands, processes, overwritten))
        yield state, step, _divided_gradient(gradients, workers, count, spread)


def _with_memory_of_its_own(state, step, copy, spread):
    """The same state in arrays that AdamW may overwrite, AdamW so, and its parameters; any other optimiser as it is."""
    arrays = tree_leaves([state.params, state.optimizer.get("mean"), state.optimizer.get("square")])
    alike = len({getattr(array, "dtype", None) for array in arrays}) == 1
    if step is not adamw_step or not alike or not all(isinstance(array, np.ndarray) for array in arrays):
        return state, step, None
    params, optimizer = copy(state.params), _own_copy(state.optimizer)

    def overwrite(params, gradient, optimizer, **options):
        return params, _adamw_in_place(params, gradient, optimizer, spread=spread, **options)

    return state._replace(params=params, optimizer=optimizer), overwrite, params


class _Clock:
    """How fast a run is, from the mean speed since it began here."""

    def __init__(self, first, steps):
        self.first, self.steps, self.tokens, self.began = first, steps, 0, time.perf_counter()

    def tell(self, number, tokens):
        """After a step: tokens per second, and the seconds that are left."""
        self.tokens += tokens
        seconds = time.perf_counter() - self.began
        return self.tokens / seconds, seconds / (number - self.first) * (self.steps - number)


class _Guard:
    """Ends a run in words where its numbers cease to be numbers, and knows its last good checkpoint."""

    def __init__(self, step, steps, checkpoint):
        self.step, self.steps, self.checkpoint, self.saved = step, steps, checkpoint, None

    def computed(self, function, *args):
        try:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # an overflow is looked for afterwards
                return function(*args)
        except ShapeError:
            raise  # a mistake of the program, not of the run
        except (ValueError, ArithmeticError) as error:
            raise self._stopped(f"the loss cannot be computed, {error}") from error

    def require_finite(self, value, gradient=(), what="loss"):
        if not math.isfinite(value):
            raise self._stopped(f"the {what} is {value}")
        if not _finite(gradient):
            raise self._stopped(f"the gradient is not finite, the {what} is {value:.6g}")

    def save(self, state):
        save_checkpoint(self.checkpoint, state)
        self.saved = state.step

    def _stopped(self, reason):
        where = f"step {self.step} of {self.steps}: {reason}"
        if self.saved is None:
            return TrainingStopped(f"{where} (a smaller learning rate or clipping?)")
        return TrainingStopped(f"{where}; the last good checkpoint is that of step {self.saved}, {self.checkpoint}")


def mean_loss(loss: Callable, params, batches: Iterable, count: Callable = target_count) -> float:
    """The loss over several batches, each weighted by what counts in it: the mean over all tokens.

        L = Σ_b (n_b/n) L_b                                                         (13.31)

    loss: loss(params, batch) -> mean over what counts   batches: for instance of validation_batches()
    count: count(batch) -> n_b

    Raises: ValueError if nothing counts.
    Source: 001, §2.2.3.

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
def progress_bar(file=None) -> Iterator[Callable]:
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
    silent = None if file is None else False  # None asks whether it is a terminal
    layout = "{percentage:3.0f}%|{bar}| {desc}"
    bar = tqdm(total=0, file=file or sys.stderr, disable=silent, bar_format=layout, miniters=1)

    def show(now: TrainingProgress):
        bar.total = now.steps
        bar.set_description_str(str(now), refresh=False)
        bar.update(now.step - bar.n)

    try:
        yield show
    finally:
        bar.close()


def _finite(tree):
    """Whether all numbers are finite; where the sum of their squares is, there is no need to look at each."""
    return all(math.isfinite(np.vdot(leaf, leaf)) or np.isfinite(leaf).all() for leaf in tree_leaves(tree))


def _generator(state):
    """A generator of its own that goes on where `state` stands."""
    kind = getattr(np.random, str(state.get("bit_generator")), None)
    if not (isinstance(kind, type) and issubclass(kind, np.random.BitGenerator)):
        raise ValueError(f"the state of the random numbers is of no known generator: {state.get('bit_generator')!r}")
    bits = kind(0)
    bits.state = state
    return np.random.Generator(bits)
