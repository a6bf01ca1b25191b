"""Chapter 13, the loop: what it computes, how it stops, how it goes on, and where it ends."""

import io
import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
import threadpoolctl
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from refusing import refusing

import mathllm as ml
from mathllm import gradient_descent, training


def line(params, batch):
    """The squared error of a straight line."""
    x, y = batch
    return ((x * params["slope"] + params["offset"] - y) ** 2).mean()


def points(rng):
    x = rng.uniform(-1, 1, 16)
    return x, 3 * x - 1 + 0.1 * rng.standard_normal(16)


def fresh(seed=0, dtype=np.float64, **options):
    params = {"slope": np.zeros(1, dtype), "offset": np.zeros(1, dtype)}
    return ml.training_state(params, np.random.default_rng(seed), **options)


def losses(history):
    return [now.loss for now in history]


def equal(a, b):
    """The same structure, the same dtypes, the same bits."""
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return type(a) is type(b) and (a == b or a != a)


@pytest.fixture(scope="module")
def character_model():
    """A small transformer over five symbols, its loss, and a stream of symbols."""
    model = ml.Transformer(ml.Config(vocabulary=5, width=16, layers=1, heads=2, context=8))
    stream = np.random.default_rng(3).integers(5, size=400)

    def loss(params, batch):
        return ml.cross_entropy(model(params, batch.inputs), batch.targets)

    return model, loss, stream


# ---------------------------------------------------------------------------------------------------------------- steps


def test_the_loop_is_the_four_lines_it_claims_to_be():
    state, history = ml.train(fresh(), line, points, 20, learning_rate=0.1, max_norm=1.0, weight_decay=0.1)
    rng, params = np.random.default_rng(0), fresh().params
    memory, expected = ml.adamw_init(params), []
    for _ in range(20):
        value, gradient = ml.value_and_grad(line)(params, points(rng))
        gradient, length = ml.clip_gradient(gradient, 1.0)
        params, memory = ml.adamw_step(params, gradient, memory, learning_rate=0.1, weight_decay=0.1)
        expected.append((value, length))
    assert [(now.loss, now.gradient_norm) for now in history] == expected
    assert equal(state.params, params)
    assert equal(state.optimizer, memory)
    assert state.step == 20


def test_the_schedule_is_followed_step_by_step():
    def schedule(t):
        return ml.warmup_cosine(t, peak=0.1, total=30, warmup=10, floor=0.01)

    seen = []

    def recording(*args, learning_rate):
        seen.append(learning_rate)
        return gradient_descent.sgd_step(*args, learning_rate=learning_rate)

    start = fresh(init=gradient_descent.sgd_init)
    state, first = ml.train(start, line, points, 12, learning_rate=schedule, step=recording)
    _, second = ml.train(state, line, points, 30, learning_rate=schedule, step=recording)
    assert seen == [schedule(t) for t in range(1, 31)]
    assert [now.learning_rate for now in first + second] == seen
    assert [now.step for now in first + second] == [*range(1, 31)]


# ----------------------------------------------------------------------------------------------------------- validation


def test_the_validation_loss_is_measured_every_n_steps_and_at_the_end():
    held_out = [points(np.random.default_rng(9))]
    snapshots = {}

    def keep(params, gradient, state, **options):
        params, state = ml.adamw_step(params, gradient, state, **options)
        snapshots[state["step"]] = params
        return params, state

    settings = {"learning_rate": 0.1, "step": keep, "validation": iter(held_out), "validate_every": 3}
    _, history = ml.train(fresh(), line, points, 8, **settings)
    measured = [None, None, *[float(line(snapshots[t], held_out[0])) for t in (3, 3, 3, 6, 6, 8)]]
    assert [now.validation_loss for now in history] == measured


def test_the_mean_loss_weighs_batches_by_the_targets_that_count(character_model):
    model, loss, stream = character_model
    params = model.init(np.random.default_rng(0))
    whole = training.mean_loss(loss, params, training.validation_batches(stream, 1000, 8))
    pieces = list(training.validation_batches(stream, 3, 8))
    assert {training.target_count(batch) for batch in pieces} == {24, 15}  # 399 targets: the last batch has fewer
    assert training.mean_loss(loss, params, pieces) == pytest.approx(whole, rel=1e-12)  # another order of additions


# ------------------------------------------------------------------------------------------------------------- progress


def test_progress_is_told_after_every_step_and_nothing_is_printed(capfd):
    told = []

    def batches(rng):
        time.sleep(0.002)
        return points(rng)

    _, history = ml.train(fresh(), line, batches, 10, learning_rate=0.1, progress=told.append)
    assert told == history
    assert all(0 < now.tokens_per_second < 16 / 0.002 for now in told)  # 16 points in each batch
    assert all(now.seconds_left >= 0.002 * (10 - now.step) for now in told)
    assert told[-1].seconds_left == 0
    assert capfd.readouterr() == ("", "")


def test_the_progress_bar_shows_loss_speed_and_time_left():
    screen = io.StringIO()
    with training.progress_bar(file=screen) as progress:
        progress(training.TrainingProgress(25, 100, 2.34567, 0.1, None, 2.5, 12345.6, 75.0))
        time.sleep(0.15)  # it is redrawn ten times a second
        progress(training.TrainingProgress(50, 100, 2.0, 0.1, None, None, 12345.6, 50.0))
        progress(training.TrainingProgress(100, 100, 1.5, 0.1, None, 1.75, 12345.6, 0.0))
    *drawn, last = screen.getvalue().split("\r")
    half = next(line for line in drawn if line.startswith(" 50%|"))
    assert "| step 50 of 100, loss 2.0000, 12,346 tokens/s, 0:50 left" in half
    assert last.startswith("100%|")
    assert last.endswith("| step 100 of 100, loss 1.5000, validation 1.7500, 12,346 tokens/s, 0:00 left\n")


@pytest.mark.parametrize("terminal", [False, True])
def test_the_progress_bar_appears_by_itself_in_a_terminal_only(monkeypatch, terminal):
    screen = io.StringIO()
    screen.isatty = lambda: terminal
    monkeypatch.setattr(sys, "stderr", screen)
    with training.progress_bar() as progress:
        ml.train(fresh(), line, points, 3, learning_rate=0.1, progress=progress)
    assert ("| step 3 of 3, loss " in screen.getvalue()) == bool(screen.getvalue()) == terminal


def test_the_progress_bar_says_what_it_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with pytest.raises(ImportError, match=r"mathllm\[train\]"), training.progress_bar():
        pass


# -------------------------------------------------------------------------------------------------- an end in bad times


@ml.primitive
def vertical(x):
    """A value like any other, with an infinite slope."""
    return x * 0.0, lambda dy: dy * np.inf


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda value, params: value * np.nan, "the loss is nan"),
        (lambda value, params: value * np.inf, "the loss is inf"),
        (lambda value, params: value + vertical(params["slope"]).sum(), "the gradient is not finite"),
        (lambda value, params: value + ml.log_softmax(params["slope"] * np.nan).sum(), "got NaN"),
    ],
)
@pytest.mark.parametrize("workers", [1, 2])
def test_a_loss_that_is_no_number_ends_the_run_and_names_the_step(tmp_path, spoil, message, workers):
    path = tmp_path / "run.npz"

    def batches(rng):
        x, y = points(rng)
        batches.drawn += 1
        return x, y, np.full(16, batches.drawn)

    def loss(params, batch):
        x, y, number = batch
        value = line(params, (x, y))
        return spoil(value, params) if number[0] == 8 else value

    batches.drawn = 0
    settings = {"learning_rate": 0.1, "checkpoint": path, "save_every": 3, "workers": workers}
    with pytest.raises(training.TrainingStopped, match=f"step 8 of 20: .*{message}.* that of step 6, .*run.npz"):
        ml.train(fresh(), loss, batches, 20, **settings)
    good = ml.load_checkpoint(path, ml.TrainingState)
    expected, _ = ml.train(fresh(), line, points, 6, learning_rate=0.1, workers=workers)
    assert equal(tuple(good), tuple(expected))


def test_without_a_checkpoint_the_message_still_names_the_step_and_a_remedy():
    with pytest.raises(training.TrainingStopped, match=r"step 1 of 3: the loss is nan \(a smaller learning rate"):
        ml.train(fresh(), lambda params, batch: line(params, batch) * np.nan, points, 3, learning_rate=0.1)


def test_a_last_step_into_nowhere_is_not_saved(tmp_path):
    path = tmp_path / "run.npz"
    settings = {"learning_rate": lambda t: 1e200 if t == 7 else 0.1, "checkpoint": path, "save_every": 5}
    start = fresh(init=gradient_descent.sgd_init)
    message = r"step 7 of 7: the loss after the step is inf; .* that of step 5"
    with pytest.raises(training.TrainingStopped, match=message):
        ml.train(start, line, points, 7, step=gradient_descent.sgd_step, **settings)
    assert ml.load_checkpoint(path, ml.TrainingState).step == 5


def test_a_run_that_goes_on_and_fails_at_once_names_the_checkpoint_it_came_from(tmp_path):
    path = tmp_path / "run.npz"
    ml.train(fresh(), line, points, 7, learning_rate=0.1, checkpoint=path)
    state = ml.load_checkpoint(path, ml.TrainingState)
    with pytest.raises(training.TrainingStopped, match=r"step 9 of 20: .* that of step 7"):
        ml.train(state, line, points, 20, learning_rate=lambda t: 1e200, checkpoint=path)


def test_a_validation_loss_that_is_no_number_ends_the_run_too():
    held_out = [(np.array([np.nan]), np.array([1.0]))]
    with pytest.raises(training.TrainingStopped, match="step 2 of 4: the validation loss is nan"):
        ml.train(fresh(), line, points, 4, learning_rate=0.1, validation=held_out, validate_every=2)


# ---------------------------------------------------------------------------------------------------------- checkpoints

ARRAYS = hnp.arrays(
    st.sampled_from([np.float16, np.float32, np.float64, np.int64, np.uint8, np.bool_]),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0),
)
VALUES = st.none() | st.booleans() | st.integers(-(2**130), 2**130) | st.floats() | st.text()
TREES = st.recursive(
    ARRAYS | VALUES | st.floats(width=32).map(np.float32),
    lambda t: st.lists(t) | st.lists(t).map(tuple) | st.dictionaries(st.text(), t),
    max_leaves=8,
)


@given(tree=TREES)
def test_a_checkpoint_gives_back_every_bit(tmp_path_factory, tree):
    path = tmp_path_factory.getbasetemp() / "tree.npz"
    assert equal(ml.load_checkpoint(ml.save_checkpoint(path, tree)), tree)


def test_arrays_that_would_have_one_name_stay_apart(tmp_path):
    tree = {"a/b": np.zeros(1), "a": {"b": np.ones(1)}, "file": np.full(1, 2.0), "json": np.full(1, 3.0)}
    assert equal(ml.load_checkpoint(ml.save_checkpoint(tmp_path / "x.npz", tree)), tree)


def test_a_checkpoint_refuses_what_it_could_not_give_back(tmp_path):
    for wrong in ({1: 2}, {"f": print}, np.array([None]), {"z": 1j}):
        with pytest.raises(TypeError, match="save_checkpoint"):
            ml.save_checkpoint(tmp_path / "run.npz", wrong)
    assert not list(tmp_path.iterdir())


class Pickled:
    """An object whose pickle makes a file when it is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_a_checkpoint_with_a_pickled_object_is_refused_and_runs_nothing(tmp_path):
    path, made = ml.save_checkpoint(tmp_path / "run.npz", fresh()), tmp_path / "made"
    with np.load(path) as arrays:
        content = dict(arrays) | {"state/params/slope": np.array([Pickled(made)])}
    np.savez(path, **content)
    with pytest.raises(ValueError, match=r"run\.npz is damaged or no checkpoint"):
        ml.load_checkpoint(path)
    assert not made.exists()
    with np.load(path, allow_pickle=True) as arrays:  # the control: the pickle does what it says
        arrays["state/params/slope"]
    assert made.exists()


DAMAGED = {
    "empty": lambda content: b"",
    "cut early": lambda content: content[: 3 * len(content) // 10],
    "cut late": lambda content: content[: 999 * len(content) // 1000],
    "with a flipped bit": lambda content: content.replace(bytes(100), bytes(99) + b"\1", 1),
    "of another kind": lambda content: content.replace(b"json.npy", b"text.npy"),
    "for a later unzip": lambda content: re.sub(rb"(?s)(PK\x01\x02..)..", rb"\1ff", content),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_file_is_refused_in_words(tmp_path, damage):
    path = ml.save_checkpoint(tmp_path / "run.npz", {"weight": np.zeros(1000)})
    path.write_bytes(DAMAGED[damage](path.read_bytes()))
    with pytest.raises(ValueError, match=r"run\.npz is damaged or no checkpoint"):
        ml.load_checkpoint(path)


def test_a_checkpoint_of_another_structure_is_refused_in_words(tmp_path):
    path = ml.save_checkpoint(tmp_path / "run.npz", {"weight": np.zeros(1)})
    with pytest.raises(ValueError, match=r"run\.npz is .*TrainingState"):
        ml.load_checkpoint(path, ml.TrainingState)


def test_a_file_of_an_earlier_version_is_read_and_its_run_goes_on_to_the_same_losses():
    """checkpoint_format_1.npz was written by commit a2b9aa8: a network of 17 parameters after 6 steps of AdamW.

    The file .json beside it holds what that program had in memory at this step, and its losses of 12 steps in one run.
    """

    def loss(params, batch):
        first, last = params["layers"]
        hidden = ml.relu(ml.linear(batch[0], first["weight"], first["bias"]))
        return ((ml.linear(hidden, last["weight"], last["bias"]) - batch[1]) ** 2).mean()

    def batches(rng):
        x = rng.uniform(-1, 1, (16, 2))
        return x, x[:, :1] * x[:, 1:]

    folder = Path(__file__).parent / "data"
    expected = json.loads((folder / "checkpoint_format_1.json").read_text(encoding="utf-8"))
    state = ml.load_checkpoint(folder / "checkpoint_format_1.npz", ml.TrainingState)
    assert state.step == state.optimizer["step"] == expected["step"] == 6
    for found, stored in [(state.params, expected["params"]), (state.optimizer, expected["optimizer"])]:
        ml.tree_map(np.testing.assert_array_equal, found, stored)
    _, history = ml.train(state, loss, batches, 12, learning_rate=0.05, max_norm=1.0)
    np.testing.assert_allclose(losses(history), expected["losses"][6:], rtol=1e-13)  # sums may be rounded differently


CHILD = """
    import sys, time
    import numpy as np
    from numpy.lib import format
    import mathllm as ml
    from mathllm.training import checkpoints
    from test_training_loop import fresh, line, points

    def hang(*args, **options):
        print("writing", flush=True)
        time.sleep(600)

    def before_step_10(now):
        if now.step == 10:
            {fault}

    settings = dict(learning_rate=0.1, checkpoint=sys.argv[1], save_every=5, progress=before_step_10)
    ml.train(fresh(), line, points, 20, **settings)
"""
FAULTS = {
    "among the arrays": "checkpoints.np.savez = lambda file, **a: (file.write(b'PK' * 999), file.flush(), hang())",
    "before it is on the disk": "checkpoints.os.fsync = hang",
    "before it has its name": "checkpoints.os.replace = hang",
}


@pytest.mark.slow
@pytest.mark.parametrize("moment", FAULTS)
def test_a_run_killed_while_it_writes_goes_on_as_if_nothing_had_happened(tmp_path, moment):
    path = tmp_path / "run.npz"
    command = [sys.executable, "-c", textwrap.dedent(CHILD).format(fault=FAULTS[moment]), path]
    with subprocess.Popen(command, text=True, cwd=Path(__file__).parent, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == "writing\n"
        process.kill()
    assert {file.name for file in tmp_path.iterdir()} == {"run.npz", "run.npz.partial"}

    state = ml.load_checkpoint(path, ml.TrainingState)
    assert state.step == 5
    finished, history = ml.train(state, line, points, 20, learning_rate=0.1, checkpoint=path, save_every=5)
    undisturbed, expected = ml.train(fresh(), line, points, 20, learning_rate=0.1)
    assert losses(history) == losses(expected[5:])
    assert equal(tuple(finished), tuple(undisturbed))
    assert equal(tuple(ml.load_checkpoint(path, ml.TrainingState)), tuple(undisturbed))
    assert [file.name for file in tmp_path.iterdir()] == ["run.npz"]  # what was left over is cleared away


@pytest.mark.parametrize("bits", [np.random.PCG64, np.random.MT19937, np.random.Philox, np.random.SFC64])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_resumed_run_has_the_same_losses_to_the_last_bit(tmp_path, character_model, bits, workers):
    model, loss, stream = character_model

    def batches(rng):
        return ml.random_batch(stream, 4, 8, rng)

    settings = {"learning_rate": lambda t: 1e-2 / t, "max_norm": 0.5, "workers": workers}
    rng = np.random.Generator(bits(7))
    rng.standard_normal(3)  # somewhere in the middle of its numbers
    start = ml.training_state(model.init(np.random.default_rng(0), np.float32), rng)
    whole, expected = ml.train(start, loss, batches, 9, **settings)
    path = tmp_path / "run.npz"
    _, first = ml.train(start, loss, batches, 4, checkpoint=path, **settings)
    state = ml.load_checkpoint(path, ml.TrainingState)
    finished, second = ml.train(state, loss, batches, 9, **settings)
    assert losses(first + second) == losses(expected)
    assert equal(tuple(finished), tuple(whole))


# ----------------------------------------------------------------------------------------------------- data parallelism


def parallel(params, loss, workers):
    return training.parallel_value_and_grad(training.shared(params)[0], loss, workers)


@pytest.mark.slow
@settings(max_examples=12)  # each starts processes
@given(rows=st.integers(1, 9), workers=st.integers(1, 3), seed=st.integers(0, 99))
def test_workers_agree_with_one_worker_whatever_is_ignored(character_model, rows, workers, seed):
    model, loss, _ = character_model
    rng = np.random.default_rng(seed)
    targets = rng.integers(5, size=(rows, 8))
    targets[rng.random((rows, 8)) < 0.6] = ml.IGNORED
    targets[rng.random(rows) < 0.3] = ml.IGNORED  # whole rows, and so perhaps whole shares
    targets[0, 0] = 1
    batch = training.Batch(rng.integers(5, size=(rows, 8)), targets)
    params = model.init(rng)
    value, gradient = ml.value_and_grad(loss)(params, batch)
    with parallel(params, loss, workers) as divided:
        ours, slopes = divided(params, batch)
    assert ours == pytest.approx(value, rel=1e-13)  # float64, another order of additions
    for slope, expected in zip(ml.tree_leaves(slopes), ml.tree_leaves(gradient), strict=True):
        np.testing.assert_allclose(slope, expected, rtol=1e-9, atol=1e-14)  # sums over tokens of up to 1 may cancel


def test_workers_keep_float32(character_model):
    model, loss, stream = character_model
    params = model.init(np.random.default_rng(0), np.float32)
    with parallel(params, loss, 2) as divided:
        found = divided(params, ml.random_batch(stream, 5, 8, np.random.default_rng(1)))
    assert {leaf.dtype for leaf in ml.tree_leaves(found)} == {np.dtype(np.float32)}


def test_the_shards_are_computed_at_the_same_time_by_processes_of_their_own():
    together = multiprocessing.get_context("fork").Barrier(3, timeout=600)  # passes only if three wait at once

    def loss(params, batch):
        together.wait()
        return line(params, batch)

    with parallel(fresh().params, loss, 3) as divided:
        value, _ = divided(fresh().params, points(np.random.default_rng(0)))
    assert value == pytest.approx(line(fresh().params, points(np.random.default_rng(0))), rel=1e-12)
    assert not multiprocessing.active_children()


def test_an_error_in_a_worker_is_raised_in_the_parent():
    def loss(params, x):
        if (x < 0).any():
            raise ml.ShapeError("no negative numbers")
        return (params["weight"] * x).sum()

    state = ml.training_state({"weight": np.ones(1)}, np.random.default_rng(0))
    for bad in ([1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]):
        with pytest.raises(ml.ShapeError, match="no negative numbers"):
            ml.train(state, loss, lambda rng, bad=bad: np.array(bad), 1, learning_rate=0.1, workers=2)
    assert not multiprocessing.active_children()


def test_a_worker_that_is_killed_is_reported_amid_a_batch_and_before_the_next():
    parent = os.getpid()

    def loss(params, batch):
        if os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        return line(params, batch)

    with parallel(fresh().params, loss, 2) as divided:
        for _ in range(2):
            with pytest.raises(RuntimeError, match=r"ended too early \(exit code -9\)"):
                divided(fresh().params, points(np.random.default_rng(0)))
    assert not multiprocessing.active_children()


def test_a_clock_that_stands_still_stops_no_run(monkeypatch):
    monkeypatch.setattr(time, "perf_counter", lambda: 7.0)
    assert np.isfinite(run()[1][-1].tokens_per_second)


def test_after_an_error_the_next_batch_gets_its_own_answers():
    parent = os.getpid()

    def loss(params, batch):
        if os.getpid() == parent and batch[0][0] == 0:
            raise ValueError("not this batch")
        return line(params, batch)

    x, y = points(np.random.default_rng(0))
    expected = ml.value_and_grad(line)(fresh().params, (x, y))[0]
    with parallel(fresh().params, loss, 2) as divided:
        with pytest.raises(ValueError, match="not this batch"):
            divided(fresh().params, (0 * x, y + 100))
        assert divided(fresh().params, (x, y))[0] == pytest.approx(expected, rel=1e-12)


def test_batches_may_be_arrays_tuples_and_dictionaries():
    x, y = points(np.random.default_rng(0))
    value, _ = ml.value_and_grad(line)(fresh().params, (x, y))
    for batch, loss in [
        ({"x": x, "y": y}, lambda p, b: line(p, (b["x"], b["y"]))),
        ([x, (y, None, 0.5)], lambda p, b: line(p, (b[0], b[1][0] + 0.5 - b[1][2]))),
        (np.stack([x, y], axis=1), lambda p, b: line(p, b.T)),
    ]:
        with parallel(fresh().params, loss, 3) as divided:
            assert divided(fresh().params, batch)[0] == pytest.approx(value, rel=1e-12)


def test_workers_have_one_blas_thread_each_and_give_the_others_back():
    def threads():
        return [library["num_threads"] for library in threadpoolctl.threadpool_info() if library["user_api"] == "blas"]

    inside = []

    def loss(params, batch):
        inside.extend(threads())
        return line(params, batch)

    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        before = threads()
        with parallel(fresh().params, loss, 2) as divided:
            divided(fresh().params, points(np.random.default_rng(0)))
        assert threads() == before
    assert set(inside) == {1}


def test_without_threadpoolctl_the_result_is_the_same(monkeypatch):
    batch = points(np.random.default_rng(0))
    with parallel(fresh().params, line, 2) as divided:
        expected = divided(fresh().params, batch)
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    with parallel(fresh().params, line, 2) as divided:
        assert equal(divided(fresh().params, batch), expected)


# -------------------------------------------------------------------------------------- loss -> entropy rate, and names


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_text_of_a_source_surprises_one_who_knows_it_by_the_entropy_rate(order):
    rng = np.random.default_rng(order)
    source = training.markov_source(3, order, rng)
    text = training.sample_source(source, 20_000, rng)
    contexts = [text[i : len(text) - order + i] for i in range(order + 1)]
    surprise = -np.log(source[tuple(contexts)])
    # Four standard errors of a mean of 20,000, doubled because neighbours are not independent.
    assert surprise.mean() == pytest.approx(training.entropy_rate(source), abs=8 * surprise.std() / np.sqrt(20_000))


def run(loss=line, **options):
    return ml.train(fresh(), loss, points, **{"steps": 3, "learning_rate": 0.1} | options)


def rows_that_do_not_match():
    with parallel(fresh().params, line, 2) as divided:
        divided(fresh().params, (np.ones(2), np.ones(3)))


def of_no_known_generator():
    state = fresh()._replace(rng={"bit_generator": "seed"})
    ml.train(state, line, points, 1, learning_rate=0.1)


test_what_cannot_be_right_is_refused_in_words = refusing(
    (lambda: run(validation=[]), ValueError, "validation_batches in .*got 0"),
    (lambda: run(lambda params, batch: batch[0] * params["slope"]), ml.ShapeError, r"the loss has shape \(16,\)"),
    (lambda: run(lambda params, batch: ml.dot(params["slope"], batch[0])), ml.ShapeError, "d is 1 in a, 16 in b"),
    (of_no_known_generator, ValueError, "no known generator: 'seed'"),
    (rows_that_do_not_match, ml.ShapeError, "got 2 and 3"),
    (lambda: training.mean_loss(line, fresh().params, []), ValueError, "at least one target"),
    (lambda: ml.load_checkpoint("absent.npz"), FileNotFoundError, "absent"),
    (lambda: training.entropy_rate(np.full((2, 3), 1 / 3)), ml.ShapeError, "got shape"),
    (lambda: training.entropy_rate(np.ones((2, 2))), ValueError, "distribution"),
)
