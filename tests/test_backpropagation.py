"""Chapter 11: layers, errors that travel back, and what becomes of them."""
# ruff: noqa: I001 (the names of the chapter are one paragraph)

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusing import refusing

import mathllm as ml
from mathllm import backpropagation
from mathllm.backpropagation import (
    backward_pass, binary_cross_entropy, forward_pass, gradient_bounds, hat_network, initial_weights, jacobian_product,
    mlp_forward,
)  # fmt: skip
from mathllm.exhibits import backpropagation as exhibits

rng = np.random.default_rng(11)


def example():
    """Inputs, layers and targets, which raise when somebody writes to them."""
    rng = np.random.default_rng(1)
    layers = backpropagation.mlp_init([3, 5, 4, 2], rng)
    layers = [layer | {"bias": rng.normal(size=layer["bias"].shape)} for layer in layers]
    tree = [rng.normal(size=(6, 3)), layers, rng.integers(0, 2, size=(6, 2))]
    for leaf in ml.tree_leaves(tree):
        leaf.flags.writeable = False
    return tree


@pytest.mark.parametrize("activation", [ml.relu, ml.sigmoid, ml.tanh, ml.gelu])
def test_the_recurrence_and_autodiff_agree_on_every_gradient(activation):
    x, layers, y = example()

    def loss(x, layers):
        return binary_cross_entropy(mlp_forward(x, layers, activation=activation), y)

    _, pullback = ml.vjp(loss, x, layers)
    forward = forward_pass(x, layers, activation=activation)
    backward = backward_pass((ml.sigmoid(forward.logits) - y) / y.size, forward, layers, activation=activation)
    ours, theirs = ml.tree_leaves([backward.dx, backward.gradient]), ml.tree_leaves(pullback(1.0))
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-14)


def test_an_empty_batch_has_an_empty_answer_and_a_gradient_of_zero():
    _, layers, _ = example()
    forward = forward_pass(np.zeros((0, 3)), layers)
    assert forward.logits.shape == (0, 2)
    assert all(not np.any(leaf) for leaf in ml.tree_leaves(backward_pass(forward.logits, forward, layers).gradient))


ONE = [{"weight": np.eye(1), "bias": np.zeros(1)}]


test_what_cannot_be_right_is_refused_in_words = refusing(
    (lambda: binary_cross_entropy(np.zeros(0), np.zeros(0)), ValueError, "at least one label .*got none"),
    (lambda: binary_cross_entropy([1.0], [1.0], reduction="max"), ValueError, "reduction"),
    (lambda: backpropagation.mlp_init([3], np.random.default_rng(0)), ValueError, "input and output"),
    (lambda: mlp_forward([[1.0]], []), ValueError, "at least one layer"),
    (lambda: forward_pass([[1.0]], []), ValueError, "at least one layer"),
    (lambda: backward_pass(np.zeros(2), forward_pass([[1.0]], ONE), ONE), ValueError, "shape of the logits"),
    (lambda: exhibits.trace_network(b1=[0.35]), ValueError, "b1"),
    (lambda: initial_weights(2, 2, np.random.default_rng(0), scheme="lecun"), ValueError, "no scheme .lecun.; choices"),
    (lambda: jacobian_product([]), ValueError, "at least one Jacobian"),
    (lambda: jacobian_product([np.eye(2) * 1e200] * 2), ValueError, "explodes"),
    (lambda: backpropagation.deep_network(2, 2, np.random.default_rng(0), kind="tanh"), ValueError, "no kind .tanh."),
    (lambda: hat_network(np.sin, 1, 1, 3), ValueError, r"b in \(1, ∞\), got 1"),
    (lambda: backpropagation.perturbation_gradient(lambda w: math.inf, np.zeros(2)), ValueError, "finite"),
    (lambda: backpropagation.gradient_cost([3]), ValueError, "number_of_sizes in .*got 1"),
    (lambda: exhibits.train_xor(epochs=0), ValueError, "number epochs in .*got 0"),
)


@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 99))
def test_orthogonal_weights_stretch_nothing(n, m, seed):
    W = initial_weights(n, m, np.random.default_rng(seed), scheme="orthogonal", scale=1.5)
    assert W.shape == (n, m)
    np.testing.assert_allclose(ml.singular_values(W), 1.5, rtol=1e-9)


def test_orthogonal_weights_are_drawn_from_all_turns_and_mirrors_alike():
    rng = np.random.default_rng(0)
    signs = [initial_weights(1, 1, rng, scheme="orthogonal").item() for _ in range(400)]
    assert set(np.round(signs, 9)) == {-1, 1}
    assert abs(np.mean(signs)) < 0.2  # four standard errors


@pytest.mark.parametrize(
    ("scheme", "deviation"), [("normal", 0.3), ("he", math.sqrt(2 / 300)), ("xavier", math.sqrt(2 / 500)), ("zeros", 0)]
)
def test_weights_have_the_spread_of_their_scheme(scheme, deviation):
    W = initial_weights(300, 200, np.random.default_rng(0), scheme=scheme, scale=0.3)
    assert np.std(W) == pytest.approx(deviation, rel=0.01)  # 60,000 draws: the standard error is 0.3 %
    assert initial_weights(3, 2, np.random.default_rng(0), scheme=scheme, dtype=np.float32).dtype == np.float32


def test_norms_by_depth_are_those_of_the_product_of_jacobians():
    rng = np.random.default_rng(3)
    x, cotangent = rng.normal(size=8), rng.normal(size=8)
    stack = backpropagation.deep_network(6, 8, rng, kind="sigmoid")
    states = list(itertools.accumulate(stack[:-1], lambda h, layer: layer(h), initial=x))
    profile = backpropagation.depth_profile(stack, x, cotangent)
    product = jacobian_product([ml.jacobian(layer, h) for layer, h in zip(stack, states, strict=True)])
    np.testing.assert_allclose(profile.gradient_norms[0], np.linalg.norm(product.T @ cotangent), rtol=1e-9)
    whole, floating = (backpropagation.depth_profile(stack, np.arange(8).astype(t), cotangent) for t in (int, float))
    np.testing.assert_array_equal(whole, floating)


def test_the_lower_bound_is_zero_where_the_error_meets_fewer_units():
    J = np.array([[1.0], [1.0]])  # two outputs from one input: an error (1, −1) is lost
    assert gradient_bounds([J])[0] == 0
    assert gradient_bounds([J.T])[0] == pytest.approx(math.sqrt(2))
    with np.errstate(over="raise"):
        assert gradient_bounds([np.eye(2) * 0.5] * 2000) == (0.0, 0.0)


def test_a_constant_is_a_curve_too():
    for network, activation in [(backpropagation.bump_network, ml.sigmoid), (hat_network, ml.relu)]:
        y = mlp_forward([[0.2], [0.9]], network(lambda x: 3.0, 0, 1, 4), activation=activation)
        np.testing.assert_allclose(y, 3, rtol=1e-9)


@given(st.lists(st.integers(1, 20), min_size=2, max_size=5), st.integers(1, 8))
def test_costs_are_counted_from_the_products(sizes, batch):
    cost = backpropagation.gradient_cost(sizes, batch)
    layers = backpropagation.mlp_init(sizes, np.random.default_rng(0))
    assert cost.parameters == sum(leaf.size for leaf in ml.tree_leaves(layers))
    assert cost.forward == batch * sum(layer["weight"].size for layer in layers)
    assert cost.backward == 2 * cost.forward
    assert cost.reverse_mode == 3 * cost.forward
    assert cost.forward_differences == (cost.parameters + 1) * cost.forward
    assert cost.central_differences == 2 * cost.parameters * cost.forward


def every_operator(a, b, exp, log, relu):
    """Numbers that are used many times over."""
    c = 2 - a / (b * b + 1) + a * b - (-b)
    d = exp(c * 0.1) - 1 / (c * c + 1) + log(a * a + 1) + relu(c) + relu(-c) + 3 / (b * b)
    return d**2 * c + a


def test_the_scalar_engine_agrees_with_autodiff():
    def tensors(x):
        return every_operator(x[0], x[1], ml.exp, ml.exponentials.log, ml.relu)

    for start in rng.normal(size=(20, 2)):
        a, b = map(backpropagation.Value, start)
        loss = every_operator(a, b, backpropagation.Value.exp, backpropagation.Value.log, backpropagation.Value.relu)
        loss.backward()
        value, gradient = ml.value_and_grad(tensors)(start)
        np.testing.assert_allclose([loss.data, a.grad, b.grad], [value, *gradient], rtol=1e-9, atol=1e-12)


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
