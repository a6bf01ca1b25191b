"""Chapter 08: slopes measured, slopes worked out, and the bends between the layers."""

import numpy as np
import pytest
from refusing import refusing

import mathllm as ml
from mathllm import gradients

rng = np.random.default_rng(8)


def test_the_central_difference_of_a_quadratic_is_exact_in_every_direction():
    x, v = np.array([1.0, -2.0]), np.array([0.5, 2.0])
    assert ml.autodiff.central_difference(lambda x: x @ x, x, v, 0.25) == 2 * x @ v
    assert ml.autodiff.central_difference(np.square, np.array([1.0, 4.0]), 1.0, np.array([0.5, 2.0])).tolist() == [2, 8]


def test_gradient_of_an_array_of_any_shape():
    W = rng.normal(size=(2, 3, 2))
    np.testing.assert_allclose(ml.numerical_gradient(lambda W: np.sum(W**2), W), 2 * W, rtol=1e-7)
    np.testing.assert_allclose(ml.numerical_gradient(lambda w: w**2, 3.0), 6)
    assert ml.numerical_gradient(lambda v: 0.0, np.zeros(0)).shape == (0,)


def test_jacobians_of_arrays_have_the_axes_of_the_value_and_then_of_the_argument():
    X = rng.normal(size=(2, 3))
    for function in (ml.jacobian, ml.numerical_jacobian):
        J = function(lambda X: X.T, X)
        assert J.shape == (3, 2, 2, 3)
        np.testing.assert_allclose(J.reshape(6, 6).sum(axis=1), 1, rtol=1e-9)
    assert ml.jacobian(lambda x: x * x, X.astype(np.float32)).dtype == np.float32


def test_the_hessian_is_symmetric_to_the_last_bit_where_its_steps_differ():
    H = gradients.numerical_hessian(lambda v: np.sin(v[0] * v[1]) + np.exp(v[0] - v[2] / 50), [1.3, -7.0, 100.0])
    assert np.array_equal(H, H.T)
    x, y = 1.3, -7.0
    exact = np.cos(x * y) - x * y * np.sin(x * y)
    np.testing.assert_allclose(H[0, 1], exact, rtol=1e-4)


@pytest.mark.parametrize(
    ("polynomial", "variable", "slope"),
    [
        ("7", "x", "0"),
        ("x", "x", "1"),
        ("-x", "x", "-1"),
        ("y**2", "x", "0"),
        ("x*y - x*y", "x", "0"),
        ("(x + 1)**2", "x", "2*x + 2"),
        ("-(x - y)*(x + y)", "y", "2*y"),
        ("0.5*x**2 - x**0", "x", "x"),
        ("1.5*x**4*y - 2*x", "x", "6*x**3*y - 2"),
        ("1000001*x**2 + 0.1234567*x", "x", "2000002*x + 0.1234567"),
    ],
)
def test_the_power_rule(polynomial, variable, slope):
    assert gradients.partial_derivative(polynomial, variable) == slope


@pytest.mark.parametrize(
    ("gradient", "hessian", "kind"),
    [
        ([0, 0], [[2, 0], [0, 2]], "minimum"),
        ([0, 0], [[-2, 0], [0, -6]], "maximum"),
        ([0, 0], [[2, 3], [3, 0]], "saddle point"),
        ([0, 0, 0], np.diag([1, 0, -1]), "saddle point"),
        ([0, 2e-3], [[2, 0], [0, 2]], "not a critical point"),
        ([0, 0], [[1, 0], [0, 0]], "undecided"),
        ([0], [[0]], "undecided"),
    ],
)
def test_kinds_of_places(gradient, hessian, kind):
    assert gradients.classify_critical_point(gradient, hessian) == kind


def test_silu_turns_from_half_the_line_into_relu_as_beta_grows():
    x = np.linspace(-50, 50, 101)
    np.testing.assert_array_equal(ml.silu(x, beta=0), 0.5 * x)
    np.testing.assert_allclose(ml.silu(x, beta=1e6), ml.relu(x), atol=1e-6)


test_what_cannot_be_right_is_refused_in_words = refusing(
    (lambda: gradients.secant_slope(np.exp, 1.0, 0.0), ValueError, "h = 0"),
    (lambda: ml.numerical_derivative(np.exp, 1.0, h=-1), ValueError, "positive step .*got -1"),
    (lambda: ml.numerical_derivative(np.exp, 1.0, h=1e-20), ValueError, "large enough to change x, got 1e-20"),
    (lambda: ml.numerical_derivative(lambda x: np.where(x > 1, np.inf, x), 1.0), ValueError, "around_x in .*got"),
    (lambda: ml.numerical_gradient(lambda x: x * x, [1.0, 2.0]), ml.ShapeError, "one number as its value"),
    (lambda: gradients.numerical_hessian(lambda x: x**2, [1.0, 2.0]), ml.ShapeError, "one number as its value"),
    (lambda: gradients.partial_derivative("sin(x)", "x"), ValueError, r"polynomial, got 'sin\(x\)'"),
    (lambda: gradients.partial_derivative("x**y", "x"), ValueError, "polynomial"),
    (lambda: gradients.partial_derivative("2x", "x"), ValueError, "cannot read '2x'"),
    (lambda: gradients.classify_critical_point([0, 0], [[1, 2], [0, 1]]), ValueError, "symmetric"),
)
