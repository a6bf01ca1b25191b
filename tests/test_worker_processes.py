"""Workers that are processes: the same numbers as threads, and every way they can end."""

import multiprocessing
import os
import signal

import numpy as np
import pytest

import mathllm as ml
from mathllm.training import loop

pytestmark = pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="the system cannot fork")


@pytest.fixture
def language_model():
    model = ml.Transformer(ml.llama_config(vocabulary=11, width=8, layers=1, heads=2, hidden=16, context=8))
    params = model.init(np.random.default_rng(0), np.float32)
    stream = np.random.default_rng(1).integers(11, size=400)
    return params, lambda params, batch: model.next_token_loss(params, *batch), stream


def square(params, x):
    return ((params["weight"] * x) ** 2).mean()


def equal(ours, theirs):
    pairs = zip(ml.tree_leaves(ours), ml.tree_leaves(theirs), strict=True)
    return all(np.array_equal(a, b) and np.asarray(a).dtype == np.asarray(b).dtype for a, b in pairs)


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_processes_compute_what_threads_compute_to_the_last_bit(language_model, workers):
    params, loss, stream = language_model
    rng = np.random.default_rng(2)
    with (
        ml.parallel_value_and_grad(loss, workers) as threads,
        ml.parallel_value_and_grad(loss, workers, processes=True) as processes,
    ):
        for _ in range(3):
            batch = ml.random_batch(stream, 5, 8, rng)
            assert equal(processes(params, batch), threads(params, batch))
            params = ml.tree_map(lambda p: p * np.float32(1.1), params)  # other arrays of the same shapes
    assert not multiprocessing.active_children()


def test_each_share_but_the_first_is_computed_in_a_process_of_its_own():
    def loss(params, x):
        return (params["weight"] * 0).sum() + float(os.getpid())

    with ml.parallel_value_and_grad(loss, 3, count=lambda share: 1, processes=True) as divided:
        mean_of_numbers, _ = divided({"weight": np.ones(1)}, np.ones(3))
        children = [process.pid for process in multiprocessing.active_children()]
    assert len(children) == 2
    assert float(mean_of_numbers) == pytest.approx((os.getpid() + sum(children)) / 3)


def test_a_run_is_the_same_with_processes_and_leaves_its_first_state_alone(language_model):
    params, loss, stream = language_model
    start = ml.training_state(params, np.random.default_rng(3))
    before = ml.tree_map(np.copy, params)
    runs = [
        ml.train(start, loss, lambda rng: ml.random_batch(stream, 4, 8, rng), 6, learning_rate=1e-2, max_norm=1.0,
                 workers=2, processes=processes, step=step)
        for step in (ml.adamw_step, lambda *a, **o: ml.adamw_step(*a, **o))  # overwriting its parameters, and not
        for processes in (False, True)
    ]  # fmt: skip
    for state, history in runs[1:]:
        assert [h.loss for h in history] == [h.loss for h in runs[0][1]]
        assert equal(state.params, runs[0][0].params)
    assert equal(params, before)


@pytest.mark.parametrize("processes", [False, True])
def test_several_threads_take_the_step_that_one_takes(language_model, monkeypatch, processes):
    params, loss, stream = language_model
    start = ml.training_state(params, np.random.default_rng(3))
    states = []
    for large in (1, 10**9):  # from how many parameters on the sum and the step are divided
        monkeypatch.setattr(loop, "_LARGE", large)
        state, _ = ml.train(start, loss, lambda rng: ml.random_batch(stream, 6, 8, rng), 5, learning_rate=1e-2,
                            max_norm=1.0, workers=3, processes=processes)  # fmt: skip
        states.append((state.params, state.optimizer["mean"], state.optimizer["square"]))
    assert equal(*states)


def test_parameters_of_other_shapes_get_processes_of_their_own():
    x = np.arange(12.0).reshape(4, 3)
    with ml.parallel_value_and_grad(square, 2, processes=True) as divided:
        for weight in (np.ones(3), np.float32([2.0]), np.full((1, 3), 0.5)):
            value, gradient = divided({"weight": weight}, x)
            expected, slope = ml.value_and_grad(square)({"weight": weight}, x)
            assert float(value) == pytest.approx(float(expected), rel=1e-6)
            np.testing.assert_allclose(gradient["weight"], slope["weight"], rtol=1e-6)
            assert gradient["weight"].dtype == weight.dtype


def test_an_error_in_another_process_is_raised_here_and_the_next_batch_is_computed():
    def loss(params, x):
        if (x < 0).any():
            raise ml.ShapeError("no negative numbers")
        return square(params, x)

    params = {"weight": np.ones(1)}
    with ml.parallel_value_and_grad(loss, 2, processes=True) as divided:
        for bad in ([1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]):
            with pytest.raises(ml.ShapeError, match="no negative numbers"):
                divided(params, np.array(bad))
        assert float(divided(params, np.array([1.0, 3.0]))[0]) == 5.0


def test_a_process_that_is_killed_is_reported_not_waited_for():
    parent = os.getpid()

    def loss(params, x):
        if os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        return square(params, x)

    with (
        ml.parallel_value_and_grad(loss, 2, processes=True) as divided,
        pytest.raises(RuntimeError, match=r"ended before its time \(exit code -9\)"),
    ):
        divided({"weight": np.ones(1)}, np.ones(4))
    assert not multiprocessing.active_children()


def test_where_a_system_cannot_fork_it_says_so(monkeypatch):
    monkeypatch.setattr(multiprocessing, "get_all_start_methods", lambda: ["spawn"])
    with pytest.raises(ValueError, match="use threads"), ml.parallel_value_and_grad(square, 2, processes=True):
        pass
