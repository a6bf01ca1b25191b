"""Chapter 11: layers, errors that travel back, and what becomes of them."""

import itertools
import math
import operator

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import mathllm as ml
from mathllm import backpropagation
from mathllm.exhibits import backpropagation as exhibits

TOLERANCE = 1e-6  # central differences in float64 are good to about 1e-10; a wrong formula is off by percents
FLOATS = [np.float16, np.float32, np.float64]
ACTIVATIONS = {"relu": ml.relu, "sigmoid": ml.sigmoid, "tanh": ml.tanh, "gelu": ml.gelu}
numbers = st.floats(-5, 5, allow_subnormal=False)
logits = hnp.arrays(np.float64, 4, elements=st.floats(-50, 50, allow_subnormal=False))
targets = hnp.arrays(np.float64, 4, elements=st.floats(0, 1, allow_subnormal=False))


def read_only(tree):
    """The same arrays, which raise when somebody writes to them."""
    tree = ml.tree_map(np.array, tree)
    for leaf in ml.tree_leaves(tree):
        leaf.flags.writeable = False
    return tree


def post_norm(x):
    return ml.layer_norm(x, np.ones(3), np.zeros(3), epsilon=0)


# ------------------------------------------------------------------------------------- the recurrence and autodiff


def example(activation, rng, dtype=np.float64):
    layers = backpropagation.mlp_init(rng, [3, 5, 4, 2], dtype=dtype)
    layers = [{**layer, "bias": rng.normal(size=layer["bias"].shape).astype(dtype)} for layer in layers]
    x = rng.normal(size=(6, 3)).astype(dtype)
    return x, layers, rng.integers(0, 2, size=(6, 2)).astype(float)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_the_recurrence_and_autodiff_agree_on_every_gradient(name):
    activation = ACTIVATIONS[name]
    x, layers, y = example(name, np.random.default_rng(1))

    def loss(params):
        return backpropagation.binary_cross_entropy(
            backpropagation.mlp_forward(params["x"], params["layers"], activation=activation), y
        )

    _, gradient = ml.value_and_grad(loss)({"x": x, "layers": layers})
    forward = backpropagation.forward_pass(x, layers, activation=activation)
    backward = backpropagation.backward_pass(
        (ml.sigmoid(forward.logits) - y) / y.size, forward, layers, activation=activation
    )
    for ours, theirs in zip(ml.tree_leaves(backward.gradient), ml.tree_leaves(gradient["layers"]), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(backward.dx, gradient["x"], rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_gradients_of_networks_hold_against_differences(name):
    x, layers, _ = example(name, np.random.default_rng(2))
    network = lambda x, layers: backpropagation.mlp_forward(x, layers, activation=ACTIVATIONS[name])  # noqa: E731
    assert ml.check_gradient(network, x, layers).error < TOLERANCE


def test_an_error_of_a_layer_is_the_gradient_of_its_pre_activation():
    """δₗ = ∂L/∂zₗ: nudging the bias of one layer is nudging its z for all examples together."""
    x, layers, y = example("tanh", np.random.default_rng(3))
    forward = backpropagation.forward_pass(x, layers, activation=ml.tanh)
    backward = backpropagation.backward_pass(forward.logits - y, forward, layers, activation=ml.tanh)
    for l, error in enumerate(backward.errors):

        def loss(b, l=l):
            moved = [*layers[:l], {**layers[l], "bias": b}, *layers[l + 1 :]]
            return 0.5 * np.sum((backpropagation.mlp_forward(x, moved, activation=ml.tanh) - y) ** 2)

        np.testing.assert_allclose(error.sum(axis=0), ml.numerical_gradient(loss, layers[l]["bias"]), rtol=1e-7)


def test_passes_return_what_the_network_is_made_of():
    x, layers, _ = example("relu", np.random.default_rng(4))
    forward = backpropagation.forward_pass(x, layers)
    np.testing.assert_array_equal(forward.logits, backpropagation.mlp_forward(x, layers))
    assert [h.shape for h in forward.inputs] == [(6, 3), (6, 5), (6, 4)]
    assert [z.shape for z in forward.pre_activations] == [(6, 5), (6, 4), (6, 2)]
    assert forward.pre_activations[-1] is forward.logits


@pytest.mark.parametrize("dtype", FLOATS)
def test_dtype_is_kept_and_nothing_is_changed_in_place(dtype):
    x, layers, y = read_only(list(example("relu", np.random.default_rng(5), dtype)))
    forward = backpropagation.forward_pass(x, layers)
    backward = backpropagation.backward_pass(forward.logits, forward, layers)
    loss = backpropagation.binary_cross_entropy(forward.logits, y)
    arrays = [*forward.inputs, *forward.pre_activations, *ml.tree_leaves(backward.gradient), backward.dx, loss]
    assert {array.dtype for array in arrays} == {np.dtype(dtype)}
    assert ml.grad(lambda z: backpropagation.binary_cross_entropy(z, y))(forward.logits).dtype == dtype
    stack = backpropagation.deep_network(np.random.default_rng(0), 3, 4, kind="residual")
    assert backpropagation.depth_profile(stack, x[:, :1] * np.ones(4), np.ones((6, 4))).signal.shape == (4,)


def test_an_empty_batch_has_an_empty_answer_and_a_gradient_of_zero():
    _, layers, _ = example("relu", np.random.default_rng(6))
    forward = backpropagation.forward_pass(np.zeros((0, 3)), layers)
    assert forward.logits.shape == (0, 2)
    gradient = backpropagation.backward_pass(forward.logits, forward, layers).gradient
    assert all(not np.any(leaf) for leaf in ml.tree_leaves(gradient))


# ------------------------------------------------------------------------------------------ binary cross-entropy


@given(logits, targets)
def test_the_gradient_of_binary_cross_entropy_is_prediction_minus_truth(z, y):
    gradient = ml.grad(lambda z: backpropagation.binary_cross_entropy(z, y, reduction="sum"))(z)
    np.testing.assert_allclose(gradient, ml.sigmoid(z) - y, rtol=1e-12, atol=1e-15)  # sigmoid(11) − 1 cancels


@given(hnp.arrays(np.float64, 4, elements=numbers))
def test_binary_cross_entropy_is_cross_entropy_of_two_classes(z):
    pair = np.stack([np.zeros(4), z], axis=-1)
    for y in (0, 1):
        two = ml.cross_entropy(pair, np.full(4, y))
        np.testing.assert_allclose(backpropagation.binary_cross_entropy(z, np.full(4, y)), two, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("dtype", FLOATS)
def test_extreme_logits_give_finite_losses_and_gradients(dtype):
    z = np.array([-1e4, 1e4, -1e4, 1e4], dtype)
    loss, gradient = ml.value_and_grad(lambda z: backpropagation.binary_cross_entropy(z, np.array([0, 0, 1, 1])))(z)
    assert loss == 5000
    np.testing.assert_array_equal(gradient, np.array([0, 0.25, -0.25, 0], dtype))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: backpropagation.binary_cross_entropy([1.0], [1, 0]), "one target for each logit"),
        (lambda: backpropagation.binary_cross_entropy(np.zeros(0), np.zeros(0)), "at least one label .*got none"),
        (lambda: backpropagation.binary_cross_entropy([1.0], [1.0], reduction="max"), "reduction"),
        (lambda: backpropagation.mlp_init(np.random.default_rng(0), [3]), "input and output"),
        (lambda: backpropagation.mlp_forward([[1.0]], []), "at least one layer"),
        (lambda: backpropagation.forward_pass([[1.0]], []), "at least one layer"),
        (lambda: backpropagation.dense_layer([[1.0]], np.eye(2), np.zeros(2)), "n is 1 in x, 2 in W"),
        (lambda: exhibits.trace_network(b1=[0.35]), "b1"),
        (lambda: backpropagation.initial_weights(np.random.default_rng(0), 2, 2, scheme="lecun"), "schemes are"),
        (lambda: backpropagation.jacobian_product([]), "at least one Jacobian"),
        (lambda: backpropagation.jacobian_product([np.eye(2), np.eye(3)]), "n is 3 in A, 2 in B"),
        (lambda: backpropagation.jacobian_product([np.eye(2) * 1e200] * 2), "explodes"),
        (lambda: backpropagation.deep_network(np.random.default_rng(0), 2, 2, kind="tanh"), "kinds are"),
        (lambda: backpropagation.hat_network(np.sin, 1, 1, 3), r"b in \(1, ∞\), got 1"),
        (lambda: backpropagation.perturbation_gradient(lambda w: math.inf, np.zeros(2)), "finite"),
        (lambda: backpropagation.gradient_cost([3]), "number_of_sizes in .*got 1"),
        (lambda: exhibits.train_xor(epochs=0), "number epochs in .*got 0"),
    ],
)
def test_what_cannot_be_right_is_refused_in_words(call, words):
    with np.errstate(invalid="ignore"), pytest.raises(ValueError, match=words):
        call()


def test_an_output_error_of_another_shape_is_refused():
    x, layers, _ = example("relu", np.random.default_rng(8))
    with pytest.raises(ml.ShapeError, match="shape of the logits"):
        backpropagation.backward_pass(np.zeros(2), backpropagation.forward_pass(x, layers), layers)


# ------------------------------------------------------------------------------------------------------- the trace


vectors = hnp.arrays(np.float64, 2, elements=numbers)
matrices = hnp.arrays(np.float64, (2, 2), elements=numbers)


@given(vectors, matrices, vectors, vectors, st.sampled_from([0, 1]))
def test_the_trace_of_any_network_agrees_with_autodiff(x, W1, b1, w2, y):
    W2, b2 = w2[None], np.array([0.6])
    step = exhibits.trace_network(x, W1, b1, W2, b2, y)
    assume(np.abs(step.z1).min() > 1e-9)  # on the bend itself rounding decides which slope is taken
    layers = [{"weight": W1.T, "bias": b1}, {"weight": W2.T, "bias": b2}]  # erratum D5: transposed in code

    def loss(layers):
        return backpropagation.binary_cross_entropy(backpropagation.mlp_forward(x[None], layers), [[y]])

    value, (first, second) = ml.value_and_grad(loss)(layers)
    assert step.loss == pytest.approx(value, rel=1e-9)
    pairs = [(step.dW1.T, first["weight"]), (step.db1, first["bias"]), (step.dW2.T, second["weight"])]
    for ours, theirs in [*pairs, (step.db2, second["bias"])]:
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


def test_the_trace_does_not_change_what_it_is_given():
    W1, W2, x = read_only([np.eye(2), np.ones((1, 2)), np.ones(2)])
    step = exhibits.trace_network(x, W1, np.zeros(2), W2, np.zeros(1), 0)
    assert step.delta2 > 0  # an over-prediction: the weights go down
    assert np.all(step.W2 < W2)


# -------------------------------------------------------------------------------------------- where descent begins


@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 99))
def test_orthogonal_weights_stretch_nothing(n, m, seed):
    W = backpropagation.initial_weights(np.random.default_rng(seed), n, m, scheme="orthogonal", scale=1.5)
    assert W.shape == (n, m)
    np.testing.assert_allclose(ml.singular_values(W), 1.5, rtol=1e-9)


def test_orthogonal_weights_are_drawn_from_all_turns_and_mirrors_alike():
    rng = np.random.default_rng(0)
    signs = [backpropagation.initial_weights(rng, 1, 1, scheme="orthogonal").item() for _ in range(400)]
    assert set(np.round(signs, 9)) == {-1, 1}
    assert abs(np.mean(signs)) < 0.2  # four standard errors


@pytest.mark.parametrize(
    ("scheme", "deviation"), [("normal", 0.3), ("he", math.sqrt(2 / 300)), ("xavier", math.sqrt(2 / 500)), ("zeros", 0)]
)
def test_weights_have_the_spread_of_their_scheme(scheme, deviation):
    W = backpropagation.initial_weights(np.random.default_rng(0), 300, 200, scheme=scheme, scale=0.3)
    assert np.std(W) == pytest.approx(deviation, rel=0.01)  # 60,000 draws: the standard error is 0.3 %
    assert (
        backpropagation.initial_weights(np.random.default_rng(0), 3, 2, scheme=scheme, dtype=np.float32).dtype
        == np.float32
    )


def test_units_that_begin_at_one_value_stay_alike():
    """With the same start for every unit of a layer, its units get the same gradient and never differ."""
    layers = [
        {"weight": np.full((2, 3), 0.5), "bias": np.zeros(3)},
        {"weight": np.full((3, 1), 0.5), "bias": np.zeros(1)},
    ]
    forward = backpropagation.forward_pass(np.array(exhibits.XOR_INPUTS), layers)
    gradient = backpropagation.backward_pass(forward.logits - 1, forward, layers).gradient
    assert np.ptp(gradient[0]["weight"], axis=1).max() == 0
    zeros = backpropagation.mlp_init(np.random.default_rng(0), [2, 3, 1], scheme="zeros")
    forward = backpropagation.forward_pass(np.array(exhibits.XOR_INPUTS), zeros)
    gradient = backpropagation.backward_pass(forward.logits - 1, forward, zeros).gradient
    assert not np.any(gradient[0]["weight"])  # with zeros not even that: only the last bias learns


def test_he_keeps_the_size_of_a_signal_through_many_relu_layers():
    rng = np.random.default_rng(1)
    x, cotangent = rng.normal(size=(8, 256)), rng.normal(size=(8, 256))
    he = backpropagation.depth_profile(backpropagation.deep_network(rng, 30, 256), x, cotangent)
    small = backpropagation.depth_profile(
        backpropagation.deep_network(rng, 30, 256, scheme="normal", scale=0.05), x, cotangent
    )
    large = backpropagation.depth_profile(
        backpropagation.deep_network(rng, 30, 256, scheme="normal", scale=0.2), x, cotangent
    )
    assert 0.3 < he.signal[-1] / he.signal[0] < 3
    assert small.signal[-1] < 1e-6 * small.signal[0]  # a factor of 0.05 √(256/2) = 0.57 for each layer
    assert large.signal[-1] > 1e6 * large.signal[0]  # a factor of 0.2 √(256/2) = 2.3


# ------------------------------------------------------------------------------------- vanishing and exploding


def norms_by_depth(kind, depth=30, width=64):
    rng = np.random.default_rng(2)
    stack = backpropagation.deep_network(rng, depth, width, kind=kind)
    return backpropagation.depth_profile(stack, rng.normal(size=width), rng.normal(size=width)).gradient_norms


def test_gradients_vanish_through_sigmoids_and_survive_relus_and_residual_sums():
    sigmoid, relu, residual = map(norms_by_depth, ("sigmoid", "relu", "residual"))
    assert sigmoid[0] < 1e-10 * sigmoid[-1]
    assert 0.01 < relu[0] / relu[-1] < 100
    assert 0.5 < residual[0] / residual[-1] < 10


def test_norms_by_depth_are_those_of_the_product_of_jacobians():
    rng = np.random.default_rng(3)
    x, cotangent = rng.normal(size=8), rng.normal(size=8)
    stack = backpropagation.deep_network(rng, 6, 8, kind="sigmoid")
    states = list(itertools.accumulate(stack[:-1], lambda h, layer: layer(h), initial=x))
    profile = backpropagation.depth_profile(stack, x, cotangent)
    product = backpropagation.jacobian_product([ml.jacobian(layer, h) for layer, h in zip(stack, states, strict=True)])
    np.testing.assert_allclose(profile.gradient_norms[0], np.linalg.norm(product.T @ cotangent), rtol=1e-9)

    def network(x):
        for layer in stack:
            x = layer(x)
        return x

    np.testing.assert_allclose(product, ml.jacobian(network, x), rtol=1e-9, atol=1e-18)


squares = hnp.arrays(np.float64, (3, 3), elements=numbers)


@given(st.lists(squares, min_size=1, max_size=5), hnp.arrays(np.float64, 3, elements=numbers))
def test_singular_values_of_the_layers_bound_the_gradient(jacobians, error):
    lowest, highest = backpropagation.gradient_bounds(jacobians)
    back = np.linalg.norm(backpropagation.jacobian_product(jacobians).T @ error)
    size = np.linalg.norm(error)
    slack = 1e-9 * max(1.0, highest) * size
    assert lowest * size - slack <= back <= highest * size + slack


def test_the_lower_bound_is_zero_where_the_error_meets_fewer_units():
    J = np.array([[1.0], [1.0]])  # two outputs from one input: an error (1, −1) is lost
    assert backpropagation.gradient_bounds([J])[0] == 0
    assert backpropagation.gradient_bounds([J.T])[0] == pytest.approx(math.sqrt(2))


def test_spectral_radii_of_the_factors_say_nothing_of_the_product():
    """Erratum B7, in both directions."""
    for pair, radius, norm in [(exhibits.EXPLODING_PAIR, 0.0, 4.0), (exhibits.VANISHING_PAIR, 2.0, 0.2)]:
        assert [backpropagation.spectral_radius(J) for J in pair] == [radius, radius]
        J1, J2 = pair
        for k in (1, 5, 10):
            largest = ml.singular_values(backpropagation.jacobian_product([J2, J1] * k))[0]
            assert largest == pytest.approx(norm**k, rel=1e-9)
    with np.errstate(over="raise"):
        assert backpropagation.gradient_bounds([np.eye(2) * 0.5] * 2000) == (0.0, 0.0)


@given(squares)
def test_repeating_one_matrix_is_decided_by_its_spectral_radius(A):
    """What is true of the statement: ρ(A) ≤ σ_max(A), and one repeated matrix vanishes if ρ < 1."""
    assert backpropagation.spectral_radius(A) <= ml.singular_values(A)[0] * (1 + 1e-9) + 1e-9
    shrunk = A * (0.5 / max(backpropagation.spectral_radius(A), 0.5))
    assert np.abs(backpropagation.jacobian_product([shrunk] * 200)).max() < 1e-6


def test_a_residual_sum_keeps_its_identity_only_without_a_norm_after_it():
    """Erratum D6."""
    silent = lambda x: x * 0.0  # noqa: E731
    x = np.array([0.3, -1.0, 2.0])
    for block in (
        lambda x: backpropagation.residual(x, silent),
        lambda x: backpropagation.residual(x, silent, before=post_norm),
    ):
        np.testing.assert_array_equal(ml.jacobian(block, x), np.eye(3))
    J = ml.jacobian(lambda x: backpropagation.residual(x, silent, after=post_norm), x)
    np.testing.assert_allclose(J, ml.jacobian(post_norm, x))
    assert np.linalg.matrix_rank(J, tol=1e-9) == 1  # the norm forgets mean and length of three numbers


# --------------------------------------------------------------------------------------------------- approximation


def test_bars_get_better_with_width_and_straight_pieces_faster():
    curve = lambda x: np.sin(3 * x) + x  # noqa: E731
    networks = [backpropagation.bump_network(curve, -1, 2, n) for n in (20, 40, 80)]
    bars = [backpropagation.approximation_error(curve, net, -1, 2, activation=ml.sigmoid) for net in networks]
    pieces = [
        backpropagation.approximation_error(curve, backpropagation.hat_network(curve, -1, 2, n), -1, 2)
        for n in (20, 40, 80)
    ]
    for i in (0, 1):
        assert bars[i] / bars[i + 1] == pytest.approx(2, rel=0.1)
        assert pieces[i] / pieces[i + 1] == pytest.approx(4, rel=0.1)
    assert pieces[0] <= (3 / 20) ** 2 * 9 / 8  # w² max|f″|/8


@given(st.integers(1, 30), st.floats(0.1, 3))
def test_straight_pieces_meet_the_curve_at_every_bend(n, slope):
    curve = lambda x: np.abs(x) ** slope  # noqa: E731
    x = np.linspace(-1, 2, n + 1)
    network = backpropagation.mlp_forward(x[:, None], backpropagation.hat_network(curve, -1, 2, n))[:, 0]
    np.testing.assert_allclose(network, curve(x), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("depth", [1, 2, 5, 8])
def test_teeth_double_with_every_layer_and_a_flat_network_needs_a_unit_for_each_side(depth):
    deep = backpropagation.sawtooth_network(depth)
    flat = backpropagation.hat_network(lambda x: backpropagation.mlp_forward(x[:, None], deep)[:, 0], 0, 1, 2**depth)
    x = np.linspace(0, 1, 4 * 2**depth + 1)[:, None]
    y = backpropagation.mlp_forward(x, deep)[:, 0]
    np.testing.assert_allclose(backpropagation.mlp_forward(x, flat)[:, 0], y, atol=1e-9)
    assert np.sum(np.abs(np.diff(y, 2)) > 1e-9) == 2**depth - 1  # a bend between every two sides
    assert len(flat[0]["bias"]) == 2**depth
    assert sum(len(layer["bias"]) for layer in deep[:-1]) == 2 * depth


def test_a_constant_is_a_curve_too():
    for network, activation in [
        (backpropagation.bump_network, ml.sigmoid),
        (backpropagation.hat_network, ml.relu),
    ]:
        y = backpropagation.mlp_forward([[0.2], [0.9]], network(lambda x: 3.0, 0, 1, 4), activation=activation)
        np.testing.assert_allclose(y, 3, rtol=1e-9)


def test_a_bar_stands_where_it_should_and_is_flat_elsewhere():
    layers = backpropagation.bump_network(lambda x: np.where((x > 1) & (x < 2), 5.0, 0.0), 0, 3, 3)
    y = backpropagation.mlp_forward([[0.5], [1.5], [2.5]], layers, activation=ml.sigmoid)
    np.testing.assert_allclose(y.ravel(), [0, 5, 0], atol=1e-9)


# -------------------------------------------------------------------------------------------------------------- xor


def test_the_gradient_of_the_listing_is_that_of_the_loss_it_prints():
    start = exhibits.xor_init()
    after = exhibits.train_xor(epochs=1).params
    layers = [{"weight": start["W1"], "bias": start["b1"][0]}, {"weight": start["W2"], "bias": start["b2"][0]}]

    def loss(layers):
        return backpropagation.binary_cross_entropy(
            backpropagation.mlp_forward(exhibits.XOR_INPUTS, layers), exhibits.XOR_TARGETS
        )

    first, second = ml.grad(loss)(layers)
    for name, gradient in [("W1", first["weight"]), ("b1", first["bias"]), ("W2", second["weight"])]:
        np.testing.assert_allclose((start[name] - after[name]) / 0.5, gradient.reshape(start[name].shape), atol=1e-12)


def test_networks_trained_side_by_side_are_those_trained_alone():
    together = exhibits.train_xor([42, 7], epochs=50)
    alone = exhibits.train_xor(7, epochs=50)
    assert together.losses.shape == (50, 2)
    np.testing.assert_allclose(together.losses[:, 1], alone.losses, rtol=1e-12)
    np.testing.assert_allclose(together.params["W1"][1], alone.params["W1"], rtol=1e-12)


@pytest.mark.slow
def test_many_seeds_do_not_learn_xor():
    """Erratum C5: 72 of 200."""
    run = exhibits.train_xor(range(200), epochs=3000)
    wrong = np.abs(run.predictions - np.ravel(exhibits.XOR_TARGETS)).max(axis=1) > 0.25
    assert wrong.sum() == 72
    assert not wrong[42]
    inputs = np.array(exhibits.XOR_INPUTS) @ run.params["W1"] + run.params["b1"]  # (200, 4, 4)
    dead = np.array([np.all(z <= 0, axis=0).sum() for z in inputs])
    assert np.all(wrong[dead > 2])  # with one unit there is no XOR
    assert np.sum(dead[wrong] >= 2) == 60


# ------------------------------------------------------------------------------------------ listings and common bugs


def test_the_fixed_listing_agrees_with_the_recurrence():
    layers, x, target = exhibits.listing_problem(np.random.default_rng(1))
    activations, pre_activations = exhibits.listing_forward_fixed(x, layers)
    listing = exhibits.listing_backward_fixed(activations[-1] - target, activations, pre_activations, layers)
    rows = [{"weight": W.T, "bias": b[:, 0]} for W, b in layers]
    forward = backpropagation.forward_pass(x.T, rows)
    backward = backpropagation.backward_pass(forward.logits - target.T, forward, rows)
    for (dW, db), gradient in zip(listing, backward.gradient, strict=True):
        np.testing.assert_allclose(dW.T, gradient["weight"], rtol=1e-12, atol=1e-12)  # sums of six terms below 100,
        np.testing.assert_allclose(db[:, 0], gradient["bias"], rtol=1e-12, atol=1e-12)  # which may cancel


def bowl(w):
    return (w * w).sum()


def test_gradients_that_add_up_bring_the_loss_back_up():
    broken, fixed = (
        exhibits.descent_without_zeroing(bowl, [1.0, -2.0]),
        exhibits.descent_with_zeroing(bowl, [1.0, -2.0]),
    )
    assert broken[1:].max() > broken[0]
    assert broken[-10:].max() > 0.5 * broken[0]  # no sign of settling
    assert np.all(np.diff(fixed) < 0)


@given(hnp.arrays(np.float64, (3, 2), elements=numbers), hnp.arrays(np.float64, (3, 2), elements=numbers))
def test_softmax_over_queries_shares_the_columns_and_over_keys_the_rows(query, key):
    np.testing.assert_allclose(exhibits.softmax_over_queries(query, key).sum(axis=0), 1)
    np.testing.assert_allclose(ml.attention_weights(query, key).sum(axis=1), 1)


def test_softmax_over_queries_breaks_the_rows():
    rng = np.random.default_rng(4)
    rows = exhibits.softmax_over_queries(rng.normal(size=(4, 3)), rng.normal(size=(4, 3))).sum(axis=1)
    assert np.abs(rows - 1).max() > 0.1


@given(hnp.arrays(np.float64, 3, elements=numbers))
def test_stable_and_unstable_agree_where_both_can_compute(z):
    np.testing.assert_allclose(exhibits.log_probabilities_unstable(z), ml.log_softmax(z), rtol=1e-9, atol=1e-12)


def test_only_the_stable_one_survives_large_logits():
    z = [1e4, -1e4]
    assert not np.any(np.isfinite(exhibits.log_probabilities_unstable(z)))
    np.testing.assert_array_equal(ml.log_softmax(z), [0, -2e4])


def test_a_transposed_matrix_is_noticed_only_if_it_is_not_square():
    with pytest.raises(ml.ShapeError, match="n is 3 in x, 2 in W"):
        exhibits.linear_transposed(np.ones((1, 3)), np.ones((3, 2)))
    W = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert exhibits.linear_transposed([[1.0, 1.0]], W).shape == ml.linear([[1.0, 1.0]], W).shape
    assert np.any(exhibits.linear_transposed([[1.0, 1.0]], W) != ml.linear([[1.0, 1.0]], W))


def test_what_stands_in_the_padding_matters_only_to_the_broken_version():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(2, 1, 4, 3))
    garbage = x.copy()
    mask = np.array([[1, 1, 1, 0], [1, 1, 0, 0]])
    garbage[:, 0][mask == 0] = 100
    seen = (mask == 1)[:, None, :, None]
    fixed = (ml.attention, ml.padding_mask(mask), True)
    for attend, marks, same in [(exhibits.attention_to_padding, mask, False), fixed]:
        outputs = [np.where(seen, attend(x, keys, keys, marks), 0) for keys in (x, garbage)]
        assert np.allclose(*outputs) == same


def test_a_rate_beyond_two_over_the_curvature_explodes_and_warmup_with_adam_does_not():
    curvature = 2.0
    for rate, explodes in [(2 / curvature * 1.01, True), (2 / curvature * 0.99, False)]:
        losses = exhibits.descent_with_zeroing(bowl, [1.0], 20, learning_rate=rate)
        assert (losses[-1] > losses[0]) == explodes
    for steps in (0, 1, 20):
        schedule = {"peak": 3e-4, "total": steps + 1, "warmup": max(1, steps // 10)}
        losses = exhibits.descent_with_zeroing(
            bowl,
            [1.0],
            steps,
            lambda step: ml.warmup_cosine(step, **schedule),  # noqa: B023
            init=ml.adam_init,
            step=ml.adam_step,
        )
        assert len(losses) == steps + 1
        assert np.all(np.diff(losses) < 0)


# ----------------------------------------------------------------------------------------- perturbation and its price


@pytest.mark.parametrize("central", [False, True])
def test_trying_finds_the_gradient_that_the_pullback_computes(central):
    x, layers, y = example("tanh", np.random.default_rng(9))
    shape = layers[0]["weight"].shape

    def loss(W):
        changed = [{**layers[0], "weight": W}, *layers[1:]]
        return backpropagation.binary_cross_entropy(backpropagation.mlp_forward(x, changed, activation=ml.tanh), y)

    found = backpropagation.perturbation_gradient(loss, layers[0]["weight"], central=central)
    assert found.passes == (2 * math.prod(shape) if central else math.prod(shape) + 1)
    # forward differences are good to √ε, about 1e-8; central ones to ε^⅔, about 1e-10
    np.testing.assert_allclose(found.gradient, ml.grad(loss)(layers[0]["weight"]), atol=1e-9 if central else 1e-6)


@given(st.lists(st.integers(1, 20), min_size=2, max_size=5), st.integers(1, 8))
def test_costs_are_counted_from_the_products(sizes, batch):
    cost = backpropagation.gradient_cost(sizes, batch)
    layers = backpropagation.mlp_init(np.random.default_rng(0), sizes)
    assert cost.parameters == sum(leaf.size for leaf in ml.tree_leaves(layers))
    assert cost.forward == batch * sum(layer["weight"].size for layer in layers)
    assert cost.backward == 2 * cost.forward
    assert cost.reverse_mode == 3 * cost.forward
    assert cost.forward_differences == (cost.parameters + 1) * cost.forward
    assert cost.central_differences == 2 * cost.parameters * cost.forward


# --------------------------------------------------------------------------------------------------------- the engine


BINARY = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": lambda a, b: a / (b * b + 1.0)}
UNARY = {
    "exp": (lambda v: (v * 0.1).exp(), lambda t: ml.exp(t * 0.1)),
    "log": (lambda v: (v * v + 1).log(), lambda t: ml.exponentials.log(t * t + 1)),
    "relu": (lambda v: v.relu(), ml.relu),
    "square": (lambda v: v**2, lambda t: t**2),
    "from": (lambda v: 2 - 1 / (v * v + 1), lambda t: 2 - 1 / (t * t + 1)),
    "negative": (lambda v: -v, lambda t: -t),
}
programs = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(sorted(BINARY)), st.integers(0, 9), st.integers(0, 9)),
        st.tuples(st.sampled_from(sorted(UNARY)), st.integers(0, 9), st.just(0)),
    ),
    min_size=1,
    max_size=7,
)


def run(program, inputs, which):
    """Each instruction takes two earlier numbers and adds a new one; so numbers are used many times over."""
    made = list(inputs)
    for name, i, j in program:
        a, b = made[i % len(made)], made[j % len(made)]
        made.append(BINARY[name](a, b) if name in BINARY else UNARY[name][which](a))
        size = getattr(made[-1], "data", getattr(made[-1], "value", 0.0))
        if abs(float(size)) > 1e3:  # keep the numbers of long programs in a range where both round alike
            made[-1] = made[-1] * 1e-6
    return made[-1] + sum(inputs[1:], inputs[0])


@given(programs, hnp.arrays(np.float64, 3, elements=numbers))
def test_the_scalar_engine_agrees_with_autodiff_on_any_program(program, x):
    values = [backpropagation.Value(number) for number in x]
    loss = run(program, values, 0)
    loss.backward()
    value, gradient = ml.value_and_grad(lambda x: run(program, [x[i] for i in range(3)], 1))(x)
    assert loss.data == pytest.approx(float(value), rel=1e-9, abs=1e-12)
    largest = max(1.0, np.abs(gradient).max())
    np.testing.assert_allclose([v.grad for v in values], gradient, rtol=1e-9, atol=1e-12 * largest)


def test_the_scalar_engine_finds_every_gradient_of_the_trace():
    W1 = [[backpropagation.Value(w) for w in row] for row in ((0.15, 0.20), (0.25, 0.30))]
    b1, W2, b2 = (
        [backpropagation.Value(0.35), backpropagation.Value(0.35)],
        [backpropagation.Value(0.40), backpropagation.Value(0.45)],
        backpropagation.Value(0.60),
    )
    hidden = [(row[0] * 1.0 + row[1] * 0.5 + b).relu() for row, b in zip(W1, b1, strict=True)]
    z = W2[0] * hidden[0] + W2[1] * hidden[1] + b2
    loss = -(1 / (1 + (-z).exp())).log()
    loss.backward()
    step = exhibits.trace_network()
    assert loss.data == pytest.approx(step.loss)
    np.testing.assert_allclose([[w.grad for w in row] for row in W1], step.dW1)
    np.testing.assert_allclose([b.grad for b in b1], step.db1)
    np.testing.assert_allclose([[w.grad for w in W2]], step.dW2)
    assert b2.grad == pytest.approx(step.db2[0])


def test_a_second_backward_pass_does_not_add_to_the_first():
    a = backpropagation.Value(3.0)
    loss = a * a
    loss.backward()
    loss.backward()
    assert a.grad == 6


def test_a_chain_of_twenty_thousand_steps_needs_no_recursion():
    start = end = backpropagation.Value(1.0)
    for _ in range(20_000):
        end = end + 1e-5
    end.backward()
    assert start.grad == 1
