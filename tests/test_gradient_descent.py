"""Chapter 09: steps downhill, their length, and what they remember."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import mathllm as ml
from mathllm import gradient_descent

numbers = st.floats(-10, 10, allow_subnormal=False)
vectors = hnp.arrays(np.float64, 4, elements=numbers)
rng = np.random.default_rng(9)

OPTIMIZERS = {
    "sgd": (gradient_descent.sgd_init, gradient_descent.sgd_step, {"learning_rate": 0.1}),
    "sgd with decay": (
        gradient_descent.sgd_init,
        gradient_descent.sgd_step,
        {"learning_rate": 0.1, "weight_decay": 0.01},
    ),
    "heavy ball": (gradient_descent.momentum_init, gradient_descent.momentum_step, {"learning_rate": 0.02}),
    "average": (
        gradient_descent.momentum_init,
        gradient_descent.momentum_step,
        {"learning_rate": 0.1, "form": "average"},
    ),
    "rmsprop": (gradient_descent.rmsprop_init, gradient_descent.rmsprop_step, {"learning_rate": 0.02}),
    "adam": (ml.adam_init, ml.adam_step, {"learning_rate": 0.05}),
    "adam with l2": (ml.adam_init, ml.adam_step, {"learning_rate": 0.05, "l2": 0.01}),
    "adamw": (ml.adamw_init, ml.adamw_step, {"learning_rate": 0.05}),
}


def after(steps, init, step, start, gradient, **options):
    """Parameters and state after some steps with one and the same gradient."""
    params, state = start, init(start)
    for _ in range(steps):
        params, state = step(params, gradient, state, **options)
    return params, state


def nested(dtype=np.float64):
    return {
        "blocks": [{"weight": np.array([[1, 2], [3, 4]], dtype)}, {"weight": np.array([[5]], dtype)}],
        "bias": np.array([0.5, -0.5], dtype),
        "scale": np.array(2, dtype),
    }


SCHEDULE = {"peak": 3e-4, "floor": 3e-5, "warmup": 100, "total": 1000}


# --------------------------------------------------------------------------------------------------------- optimisers


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimiser_finds_the_bottom_of_a_bowl(name):
    init, step, options = OPTIMIZERS[name]
    centre = np.array([1.0, -2.0])
    loss = lambda w: (((w - centre) * np.array([1.0, 3.0])) ** 2).sum()  # noqa: E731
    path = gradient_descent.descent_path(loss, [0.0, 0.0], 400, init=init, step=step, **options)
    assert np.abs(path[-1] - centre).max() < 0.05  # decay keeps a little away from the centre


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_nested_parameters_move_like_single_arrays(name):
    init, step, options = OPTIMIZERS[name]
    params, gradient = nested(), ml.tree_map(lambda p: p * p - 1, nested())
    moved, _ = after(3, init, step, params, gradient, **options)
    leaves = zip(*map(ml.tree_leaves, (params, gradient, moved)), strict=True)
    for leaf, slope, together in leaves:
        alone, _ = after(3, init, step, leaf, slope, **options)
        np.testing.assert_allclose(together, alone, rtol=1e-12)


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_dtype_is_kept_and_nothing_is_changed_in_place(name, dtype):
    init, step, options = OPTIMIZERS[name]
    params, gradient = nested(dtype), nested(dtype)
    for leaf in ml.tree_leaves([params, gradient]):
        leaf.flags.writeable = False  # a write would raise
    state = init(params)
    options = {**options, "learning_rate": np.float64(options["learning_rate"])}  # as a schedule on arrays gives it
    first, second = step(params, gradient, state, **options), step(params, gradient, state, **options)
    for a, b in zip(ml.tree_leaves(first[0]), ml.tree_leaves(second[0]), strict=True):
        assert np.array_equal(a, b)  # the state was not changed either
    after_one, state = first
    assert {np.asarray(leaf).dtype for leaf in ml.tree_leaves(after_one)} == {np.dtype(dtype)}
    remembered = [leaf for key, tree in state.items() if key != "step" for leaf in ml.tree_leaves(tree)]
    wide = np.promote_types(dtype, np.float32)  # in float16 squares of small gradients and ε would be 0
    assert {np.asarray(leaf).dtype for leaf in remembered} <= {wide}


def test_adam_takes_a_step_in_float16():
    one = np.ones(2, np.float16)
    moved, _ = ml.adamw_step(one, np.array([1e-3, 0], np.float16), ml.adamw_init(one), learning_rate=0.1)
    np.testing.assert_allclose(moved, [0.899, 0.999], atol=1e-3)


@given(vectors, vectors)
def test_momentum_without_memory_is_plain_descent(w, g):
    plain = gradient_descent.sgd_step(w, g, {}, learning_rate=0.1)[0]
    for form in ("heavy-ball", "average"):
        moved, _ = after(
            1,
            gradient_descent.momentum_init,
            gradient_descent.momentum_step,
            w,
            g,
            learning_rate=0.1,
            beta=0.0,
            form=form,
        )
        np.testing.assert_allclose(moved, plain)


@given(vectors, st.floats(0, 0.99), st.integers(1, 20))
def test_the_heavy_ball_is_the_average_with_a_larger_learning_rate(g, beta, steps):
    """Erratum B12: the two forms differ by the factor 1/(1−β) in speed, and in nothing else."""
    ball, _ = after(
        steps,
        gradient_descent.momentum_init,
        gradient_descent.momentum_step,
        np.zeros(4),
        g,
        learning_rate=0.1,
        beta=beta,
    )
    rate = 0.1 / (1 - beta)
    average, _ = after(
        steps,
        gradient_descent.momentum_init,
        gradient_descent.momentum_step,
        np.zeros(4),
        g,
        learning_rate=rate,
        beta=beta,
        form="average",
    )
    np.testing.assert_allclose(ball, average, rtol=1e-9, atol=1e-9)


def test_the_heavy_ball_crosses_a_narrow_valley_faster_than_plain_descent():
    loss = lambda w: (np.array([0.5, 50.0]) * w * w).sum()  # noqa: E731
    plain = gradient_descent.descent_path(loss, [10.0, 1.0], 100, learning_rate=0.018)
    ball = gradient_descent.descent_path(
        loss,
        [10.0, 1.0],
        100,
        init=gradient_descent.momentum_init,
        step=gradient_descent.momentum_step,
        learning_rate=0.018,
        beta=0.8,
    )
    assert loss(ball[-1]) < 1e-3 * loss(plain[-1])


def test_adam_agrees_with_its_definition_step_by_step():
    gradients = rng.normal(size=(20, 3))
    theta, m, v = np.ones(3), np.zeros(3), np.zeros(3)
    params, state = np.ones(3), ml.adamw_init(np.ones(3))
    for t, g in enumerate(gradients, 1):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        m_hat, v_hat = m / (1 - 0.9**t), v / (1 - 0.999**t)
        theta = theta - 0.01 * (m_hat / (np.sqrt(v_hat) + 1e-8) + 0.1 * theta)
        params, state = ml.adamw_step(params, g, state, learning_rate=0.01, weight_decay=0.1)
        np.testing.assert_allclose(params, theta, rtol=1e-12)
    assert state["step"] == 20


def test_momentum_and_rmsprop_agree_with_their_definitions_step_by_step():
    theta, v, rms_theta, s = np.ones(3), np.zeros(3), np.ones(3), np.zeros(3)
    params, state = np.ones(3), gradient_descent.momentum_init(np.ones(3))
    rms_params, rms_state = np.ones(3), gradient_descent.rmsprop_init(np.ones(3))
    for g in rng.normal(size=(20, 3)):
        v = 0.9 * v + (g + 0.1 * theta)  # the decay as PyTorch has it: in the gradient
        theta = theta - 0.01 * v
        params, state = gradient_descent.momentum_step(params, g, state, learning_rate=0.01, weight_decay=0.1)
        np.testing.assert_allclose(params, theta, rtol=1e-12)
        s = 0.99 * s + 0.01 * g**2
        rms_theta = rms_theta - 0.01 * g / (np.sqrt(s) + 0.1)
        rms_params, rms_state = gradient_descent.rmsprop_step(rms_params, g, rms_state, epsilon=0.1)
        np.testing.assert_allclose(rms_params, rms_theta, rtol=1e-12)


@given(vectors, vectors, st.floats(0, 0.5))
def test_under_plain_descent_decay_and_penalty_are_the_same(w, g, strength):
    slope = g + ml.grad(lambda w: gradient_descent.l2_penalty(w, strength))(w)
    decayed = gradient_descent.sgd_step(w, g, {}, learning_rate=0.1, weight_decay=strength)[0]
    np.testing.assert_allclose(decayed, gradient_descent.sgd_step(w, slope, {}, learning_rate=0.1)[0], atol=1e-12)


def test_a_penalty_of_adam_is_a_gradient_like_any_other():
    p, g = np.array([2.0, -3.0]), np.array([0.5, 0.1])
    penalised, state = ml.adam_step(p, g, ml.adam_init(p), l2=0.3)
    plain, expected = ml.adam_step(p, g + 0.3 * p, ml.adam_init(p))
    np.testing.assert_array_equal(penalised, plain)
    np.testing.assert_array_equal(state["mean"], expected["mean"])


def test_under_adam_a_penalty_hardly_shrinks_weights_with_large_gradients_and_decay_does():
    sizes = np.array([0.01, 1.0, 100.0])
    signs = np.where(np.arange(200) % 2, 1, -1)  # gradients that cancel: all that is left is the shrinking
    shrunk = {}
    for name, step, options in (("l2", ml.adam_step, {"l2": 0.1}), ("decay", ml.adamw_step, {"weight_decay": 0.1})):
        params, state = np.ones(3), ml.adam_init(np.ones(3))
        for sign in signs:
            params, state = step(params, sign * sizes, state, learning_rate=0.01, **options)
        shrunk[name] = 1 - params
    assert shrunk["l2"][0] > 50 * shrunk["l2"][2]
    np.testing.assert_allclose(shrunk["decay"], 1 - 0.999**200, rtol=0.1)


def test_each_parameter_may_have_its_own_decay():
    params = {"weight": np.ones((2, 2)), "bias": np.ones(2)}
    zero = ml.tree_map(np.zeros_like, params)
    matrices_only = ml.tree_map(lambda p: 0.5 * (p.ndim > 1), params)
    for init, step, _ in (OPTIMIZERS["sgd"], OPTIMIZERS["adamw"]):
        moved, _ = step(params, zero, init(params), learning_rate=0.1, weight_decay=matrices_only)
        np.testing.assert_allclose(moved["weight"], 0.95)
        assert moved["bias"].tolist() == [1, 1]


def test_a_step_too_long_diverges_and_says_so():
    with np.errstate(over="ignore", invalid="ignore"), pytest.raises(ValueError, match="finite gradient"):
        gradient_descent.descent_path(lambda w: (w**4).sum(), [10.0], 50, learning_rate=1.0)


def test_the_training_loop_gives_each_batch_to_the_loss_and_the_loss_before_each_step_back():
    def loss(params, x, y):
        return ((x * params["weight"] - y) ** 2).sum()

    batches = [(np.array([1.0]), np.array([2.0])), (np.array([3.0]), np.array([0.0]))]
    steps = list(gradient_descent.descend(loss, {"weight": np.array([0.0])}, iter(batches), learning_rate=0.25))
    assert [(number, float(value)) for number, _, value in steps] == [(1, 4.0), (2, 9.0)]
    assert [params["weight"].tolist() for _, params, _ in steps] == [[1.0], [-3.5]]  # 0 + 4/4, 1 − 18/4


def test_no_steps_leave_the_parameters_as_they_were():
    start = {"weight": np.ones(2)}
    assert gradient_descent.minimize(lambda p: p["weight"].sum(), start, 0, learning_rate=1.0) is start
    assert gradient_descent.minimize(lambda p: p["weight"].sum(), start, 2, learning_rate=1.0)["weight"].tolist() == [
        -1,
        -1,
    ]


def test_descents_follow_a_schedule():
    path = gradient_descent.descent_path(lambda w: w.sum(), [0.0], 3, learning_rate=lambda t: 1 / t)
    np.testing.assert_allclose(path.ravel(), [0, -1, -1.5, -1.5 - 1 / 3])
    assert gradient_descent.descent_path(lambda w: w.sum(), [1.0], 0, learning_rate=1).tolist() == [[1]]


# ---------------------------------------------------------------------------------------------------------- schedules


def test_warmup_cosine_rises_to_the_peak_then_falls_to_the_floor_and_stays():
    rates = [ml.warmup_cosine(t, **SCHEDULE) for t in range(1200)]
    assert rates[0] == 0
    assert rates[100] == max(rates) == 3e-4
    assert np.all(np.diff(rates[:101]) > 0)
    assert np.all(np.diff(rates[100:1001]) < 0)
    np.testing.assert_allclose(rates[1000:], 3e-5)
    assert ml.warmup_cosine(0, peak=1.0, total=10) == 1
    assert ml.warmup_cosine(10, peak=1.0, total=10, warmup=10) == 1


@given(st.integers(1, 50), st.integers(0, 400))
def test_restarts_repeat_themselves(period, step):
    rate = lambda t: gradient_descent.cosine_restarts(t, peak=1.0, period=period)  # noqa: E731
    assert rate(step) == rate(step % period)
    assert rate(period * step) == 1


def test_restarts_with_growth_begin_where_the_last_cosine_ended():
    rates = [gradient_descent.cosine_restarts(t, peak=1.0, period=10, growth=2) for t in range(150)]
    assert [t for t, rate in enumerate(rates) if rate == 1] == [0, 10, 30, 70]


def test_polynomial_decay_falls_with_a_power_of_the_time_that_is_left():
    rates = [gradient_descent.polynomial_decay(t, peak=1.0, floor=0.2, total=4, power=2.0) for t in range(6)]
    np.testing.assert_allclose(rates, [1.0, 0.65, 0.4, 0.25, 0.2, 0.2])


def test_inverse_square_root_is_continuous_and_halves_in_four_times_the_time():
    rates = [gradient_descent.inverse_square_root(t, peak=1.0, warmup=10) for t in range(200)]
    assert rates[0] == 0
    assert rates[10] == max(rates) == 1
    np.testing.assert_allclose(rates[160], 0.25)
    np.testing.assert_allclose(rates[40], 2 * rates[160])


# ------------------------------------------------------------------------------------------- clipping, decay, dropout


@given(hnp.arrays(np.float64, (3, 2), elements=st.floats(-1e3, 1e3)), st.floats(1e-3, 1e3))
def test_clipping_keeps_the_direction_and_limits_the_length(g, limit):
    tree = {"a": g[:1], "b": [g[1:]]}
    clipped, length = ml.clip_gradient(tree, limit)
    np.testing.assert_allclose(length, np.sqrt(np.sum(g * g)), rtol=1e-12, atol=1e-150)
    assert ml.global_norm(clipped) <= limit * (1 + 1e-12)
    flat = np.concatenate([clipped["a"], clipped["b"][0]])
    if length <= limit:
        assert np.array_equal(flat, g)
    else:
        np.testing.assert_allclose(flat / limit, g / length, rtol=1e-9, atol=1e-12)


def test_clipping_survives_gradients_whose_squares_overflow_and_gradients_of_zero():
    clipped, length = ml.clip_gradient({"a": np.array([3e38, 0], np.float32), "b": np.array(4e38)}, 5.0)
    np.testing.assert_allclose(length, 5e38, rtol=1e-6)
    np.testing.assert_allclose([clipped["a"][0], clipped["b"]], [3, 4], rtol=1e-6)
    assert clipped["a"].dtype == np.float32
    assert ml.clip_gradient([np.zeros(3), np.zeros((0, 2))], 1.0)[1] == 0
    assert ml.global_norm({}) == 0


def test_gradient_of_the_penalty_with_and_without_the_half():
    params = {"weight": rng.normal(size=(2, 3)), "bias": None}
    half = ml.grad(lambda p: gradient_descent.l2_penalty(p, 0.3))(params)
    whole = ml.grad(lambda p: gradient_descent.l2_penalty(p, 0.3, half=False))(params)
    np.testing.assert_allclose(half["weight"], 0.3 * params["weight"])
    np.testing.assert_allclose(whole["weight"], 2 * half["weight"])
    assert gradient_descent.l2_penalty({"a": 2.0, "b": [1, 2]}, 2.0) == 9
    assert gradient_descent.l2_penalty({}, 2.0) == 0


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5])
def test_dropout_keeps_the_mean_and_enlarges_what_is_left(rate):
    x = np.full(200_000, 3.0)
    y = gradient_descent.dropout(x, rate=rate, rng=np.random.default_rng(1))
    np.testing.assert_allclose(np.unique(y[y != 0]), 3 / (1 - rate))
    deviation = 3 * np.sqrt(rate / (1 - rate) / len(x))
    assert abs(y.mean() - 3) <= 5 * deviation
    assert abs(np.mean(y == 0) - rate) <= 5 * np.sqrt(rate * (1 - rate) / len(x))


def test_dropout_passes_the_gradient_where_it_passed_the_value():
    x = rng.normal(size=(3, 4))
    y, pullback = ml.vjp(lambda x: gradient_descent.dropout(x, rate=0.4, rng=np.random.default_rng(2)), x)
    assert np.array_equal(pullback(np.ones_like(x))[0] == 0, y == 0)


# --------------------------------------------------------------------------------------------------------- minibatches


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("replacement", [True, False])
def test_the_noise_of_a_minibatch_found_by_enumerating_all_of_them(size, replacement):
    gradients = rng.normal(size=(5, 2))
    draws = itertools.product(range(5), repeat=size) if replacement else itertools.combinations(range(5), size)
    means = np.array([gradients[list(draw)].mean(axis=0) for draw in draws])
    np.testing.assert_allclose(means.mean(axis=0), gradients.mean(axis=0), atol=1e-12)
    predicted = gradient_descent.minibatch_variance(gradients, size, replacement=replacement)
    np.testing.assert_allclose(means.var(axis=0), predicted, atol=1e-12)


# -------------------------------------------------------------------------------------------------------------- trees


def test_maps_keep_the_structure_and_pass_none_by():
    tree = {"a": [1.0, None], "b": (2.0, {"c": 3.0})}
    assert ml.tree_map(lambda x: 2 * x, tree) == {"a": [2.0, None], "b": (4.0, {"c": 6.0})}
    assert ml.tree_leaves({}) == []


def test_a_gradient_that_would_stretch_its_parameter_is_refused_and_the_place_named():
    """Erratum C2: (m,) and (m, 1) silently make (m, m)."""
    params = {"blocks": [{"bias": np.zeros((3, 1))}]}
    with pytest.raises(ml.ShapeError, match=r"params\['blocks'\]\[0\]\['bias'\].*\(3, 1\), got \(3,\)"):
        gradient_descent.sgd_step(params, {"blocks": [{"bias": np.zeros(3)}]}, {}, learning_rate=0.1)


# ----------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: gradient_descent.sgd_step(1.0, np.nan, {}, learning_rate=0.1), ValueError, "finite gradient"),
        (
            lambda: gradient_descent.sgd_step({"a": 1.0}, {"b": 1.0}, {}, learning_rate=0.1),
            ml.ShapeError,
            "no counterpart",
        ),
        (
            lambda: gradient_descent.sgd_step([np.ones(1)], [np.ones(1)] * 2, {}, learning_rate=0.1),
            ml.ShapeError,
            "no counterpart",
        ),
        (
            lambda: gradient_descent.sgd_step({"a": 1.0}, {"a": None}, {}, learning_rate=0.1),
            ml.ShapeError,
            r"params\['a'\]",
        ),
        (
            lambda: gradient_descent.momentum_step(1.0, 1.0, {}, learning_rate=1, form="nesterov"),
            ValueError,
            "'nesterov'",
        ),
        (lambda: after(1, ml.adam_init, ml.adam_step, 1.0, 1.0, beta2=1.0), ValueError, "beta.*got 1.0"),
        (lambda: ml.clip_gradient([np.inf], 1), ValueError, "length_of_the_gradient in .*got inf"),
        (lambda: ml.warmup_cosine(1, peak=1.0, total=10, warmup=11), ValueError, "got 11"),
        (lambda: ml.warmup_cosine(1, peak=1.0, total=10, floor=2.0), ValueError, r"floor in \[0, 1.0\], got 2.0"),
        (
            lambda: gradient_descent.minibatch_variance([1.0, 2.0], 3, replacement=False),
            ValueError,
            r"size in \[1, 2\], got 3",
        ),
        (lambda: gradient_descent.minibatch_variance([], 1), ml.ShapeError, r"\(0,\)"),
        (lambda: gradient_descent.descent_path(lambda w: w.sum(), [1.0], -1, learning_rate=1), ValueError, "got -1"),
    ],
)
def test_what_cannot_be_right_is_refused_in_words(call, error, words):
    with pytest.raises(error, match=words):
        call()
