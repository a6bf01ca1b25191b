"""The mechanism under every gradient: tensors record, pullbacks carry back, the checker finds what is wrong."""

import gc
import operator
import weakref
from typing import NamedTuple

import numpy as np
import pytest
from refusing import refusing

import mathllm as ml

rng = np.random.default_rng(0)
TOLERANCE = 1e-6  # central differences in float64 are good to about 1e-10; a wrong formula is off by percents


def array(*shape):
    return rng.normal(size=shape) + 0.1


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (operator.add, (array(2, 3), array(3))),
        (operator.sub, (array(2, 1), array(1, 3))),
        (operator.mul, (array(4, 2, 3), array(2, 1))),
        (operator.truediv, (array(2, 3), np.abs(array(2, 3)) + 0.5)),
        (lambda x: 1 - 2 / x + (3 + x) * -x, (np.abs(array(2, 3)) + 0.5,)),
        (lambda x: x**0.5, (np.abs(array(4)) + 0.5,)),
        *[(operator.matmul, (array(*left), array(3))) for left in [(3,), (2, 3), (5, 2, 3)]],
        *[(operator.matmul, (array(3), array(*right))) for right in [(3, 4), (5, 3, 4)]],
        *[(operator.matmul, pair) for pair in [(array(5, 2, 3), array(3, 4)), (array(2, 3), array(5, 3, 4))]],
        (lambda x: x.sum(axis=(0, -1), keepdims=True), (array(2, 3, 4),)),
        (lambda x: x.mean(axis=0), (array(2, 3),)),
        (lambda x: x.reshape((3, -1)), (array(2, 6),)),
        (lambda x: x.swapaxes(0, -1), (array(2, 3, 4),)),
        (lambda x: -x[0, ..., 1], (array(3, 2),)),
        (lambda x: x[1:, None], (array(3, 2),)),
    ],
)
def test_pullback_agrees_with_central_differences(function, args):
    assert ml.check_gradient(function, *args).error < TOLERANCE


@pytest.mark.parametrize("axes", [(2, 0, 1), (-1, 0, 1), (-2, 0, -1), ((1, -1, 0),), ()])
def test_gradient_of_a_transposition_goes_back_however_the_axes_are_counted(axes):
    weights = np.arange(8.0).reshape(2, 2, 2)  # all axes alike: a wrong order keeps the shape
    x = np.random.default_rng(0).normal(size=(2, 2, 2))
    assert ml.check_gradient(lambda x: x.transpose(*axes) * weights, x).error < 1e-7


def test_the_power_zero_has_no_slope_not_even_at_zero():
    assert ml.grad(lambda x: (x**0).sum())(np.array([0.0, 2.0])).tolist() == [0, 0]


def test_an_argument_without_a_gradient_stops_the_way_back():
    fixed = ml.primitive(lambda x, y: (x * y, lambda dy: (None, dy * x)))
    gradient = ml.grad(lambda p: fixed(p["x"] * 2, p["y"]))({"x": 3.0, "y": 4.0})
    assert {name: float(slope) for name, slope in gradient.items()} == {"x": 0, "y": 6}


def test_a_long_chain_needs_no_recursion():
    def chain(x):
        for _ in range(5000):
            x = x * 1.0
        return x

    assert ml.grad(chain)(2.0) == 1


def test_each_pullback_runs_once_however_many_paths_lead_to_it():
    runs = []

    @ml.primitive
    def counted(x):
        return x * 2, lambda dy: runs.append(1) or dy * 2

    def doubled_many_times(x):
        x = counted(x)
        for _ in range(30):
            x = x + x  # 2³⁰ paths
        return x

    assert ml.grad(doubled_many_times)(1.0) == 2.0**31
    assert len(runs) == 1


def test_gradient_has_the_structure_of_the_parameters():
    params = {"blocks": [{"weight": array(2, 2)}, {"weight": array(2, 2)}], "pair": (array(2), array(1)), "unused": 1.0}

    def loss(params, x):
        for block in params["blocks"]:
            x = x @ block["weight"]
        return (x * params["pair"][0] + params["pair"][1]).sum()

    value, gradient = ml.value_and_grad(loss)(params, np.ones((3, 2)))
    assert np.ndim(value) == 0
    assert gradient["blocks"][1]["weight"].shape == (2, 2)
    assert isinstance(gradient["pair"], tuple)
    assert gradient["pair"][1] == [6]
    assert gradient["unused"] == 0
    assert ml.check_gradient(lambda p: loss(p, np.ones((3, 2))), params).error < TOLERANCE


class Layer(NamedTuple):
    weight: np.ndarray
    bias: np.ndarray | None


def test_parameters_may_be_named_tuples_hold_none_and_be_typed_by_hand():
    gradient = ml.grad(lambda p: (p["layer"].weight * p["scale"]).sum())({"layer": Layer([1, 2], None), "scale": 3})
    assert gradient["layer"].weight.tolist() == [3, 3]
    assert gradient["layer"].bias is None
    assert gradient["scale"] == 3
    assert ml.check_gradient(lambda p: p.weight**2, Layer([1, 2], None)).error < TOLERANCE


def test_integer_arrays_pass_through_without_a_gradient():
    table, ids = array(3, 2), np.array([0, 2])
    _, pullback = ml.vjp(lambda p: p["table"][p["ids"]], {"table": table, "ids": ids})
    gradient = pullback(np.ones((2, 2)))[0]
    assert gradient["ids"] is None
    assert gradient["table"].tolist() == [[1, 1], [0, 0], [1, 1]]
    assert ml.check_gradient(lambda table, ids: table[ids] ** 2, table, ids).error < TOLERANCE


def test_auxiliary_results_come_back_as_arrays():
    (value, aux), gradient = ml.value_and_grad(lambda x: ((x * x).sum(), {"twice": x * 2}), has_aux=True)([1.0, 2.0])
    assert value == 5
    assert aux["twice"].tolist() == [2, 4]
    assert gradient.tolist() == [2, 4]


def test_a_mean_is_that_of_numpy_even_where_the_sum_overflows():
    x = np.ones(70_000, np.float16)
    value, pullback = ml.vjp(lambda x: x.mean(), x)
    assert value == x.mean() == 1
    assert pullback(1.0)[0].dtype == np.float16
    rows = np.random.default_rng(0).normal(size=(7, 9))
    for options in ({}, {"axis": 1}, {"axis": (0, 1), "keepdims": True}):
        np.testing.assert_array_equal(ml.vjp(lambda x, o=options: x.mean(**o), rows)[0], rows.mean(**options))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_value_and_gradient_keep_the_dtype(dtype):
    value, gradient = ml.value_and_grad(lambda x: (x * 2.5 / np.sqrt(2.0) - 1).sum())(np.ones(3, dtype))
    assert value.dtype == gradient.dtype == dtype


def test_a_gradient_shares_memory_with_no_parameter_and_no_other_gradient():
    params = {"a": np.ones(2), "b": np.ones(2)}
    gradient = ml.grad(lambda p: (p["a"] + p["b"]).sum())(params)
    gradient["a"] += 1
    assert gradient["b"].tolist() == params["a"].tolist() == params["b"].tolist() == [1, 1]


def test_the_record_is_freed_when_nobody_holds_it():
    class Marker(np.ndarray):
        pass

    def differentiate():
        marked = np.ones(2).view(Marker)
        ml.grad(lambda x: (x * marked).sum())(np.ones(2))
        return weakref.ref(marked)

    seen = differentiate()
    gc.collect()
    assert seen() is None


def test_a_tensor_is_true_where_its_array_is():
    assert [bool(ml.Tensor(value)) for value in (1.0, 0.0, [0.0])] == [True, False, False]
    with pytest.raises(ValueError, match="ambiguous"):
        bool(ml.Tensor([0.0, 1.0]))


def test_an_option_given_by_position_is_refused_in_the_name_of_the_function():
    with pytest.raises(TypeError, match=r"^softmax\(\) takes 1 positional argument but 2 were given"):
        ml.softmax([1.0, 2.0], 0)


def test_keyword_arguments_are_differentiated_too():
    assert ml.grad(lambda x: ml.distance(b=np.zeros(1), a=x).sum())(np.array([2.0])) == 1


test_what_cannot_be_right_is_refused_in_words = refusing(
    (lambda: ml.grad(lambda x: x * 2)(np.ones(3)), ValueError, r"single number.*\(3,\)"),
    (lambda: ml.grad(lambda n: n**n)(3.0), TypeError, "exponent"),
    (lambda: ml.check_gradient(lambda x: x * 2, np.ones(0)), ValueError, "at least one floating-point argument"),
    (lambda: ml.grad(lambda x: x.sum())(np.arange(3)), TypeError, "floating-point"),
    (lambda: ml.grad(lambda x: None)(1.0), TypeError, "return numbers, got None"),
    (lambda: ml.grad(lambda x: ml.grad(ml.norm)(x).sum())(np.ones(2)), TypeError, "hessian_vector_product"),
    (lambda: ml.grad(lambda x: (x * (x == 1)).sum())(np.ones(2)), TypeError, "cannot be compared"),
    (lambda: ml.grad(lambda x: np.exp(x))(1.0), TypeError, "ufunc"),
    (lambda: ml.grad(lambda x: np.asarray(x))(1.0), TypeError, "do not record"),
    (lambda: ml.grad(np.sum)([1.0, 2.0]), TypeError, r"np\.sum\(\) records no gradient: use a primitive"),
    (lambda: ml.grad(lambda x: np.mean(x * x))([1.0, 2.0]), TypeError, r"np\.mean\(\) records no gradient"),
    (lambda: ml.grad(lambda x: ml.norm([x, x]))(1.0), TypeError, "list of tensors"),
    (lambda: ml.autodiff.sum_to(np.ones((2, 3)), (4,)), ml.ShapeError, r"\(2, 3\).*\(4,\)"),
    (lambda: ml.norm([[1, 2], [3]]), ml.ShapeError, "unequal length"),
    (lambda: ml.norm([1], [2]), TypeError, "positional argument"),
    (lambda: ml.grad(lambda x: (x @ x).sum())(np.ones((2, 3))), ml.ShapeError, r"\(2, 3\) and \(2, 3\)"),
    (lambda: ml.vjp(lambda x: x @ np.ones((3, 4, 5)), np.ones((2, 3, 4))), ml.ShapeError, r"a @ b .* axis -3"),
    (lambda: ml.vjp(lambda x: x * 2, np.ones(3))[1](np.ones(2)), ml.ShapeError, r"\(3,\), got \(2,\)"),
    (lambda: ml.check_gradient(lambda x: x * np.inf, np.ones(1)), ValueError, "finite"),
    (lambda: ml.autodiff.hessian_vector_product(ml.norm, np.ones(2), np.ones(3)), ml.ShapeError, "direction"),
)


@pytest.mark.parametrize("operation", [operator.add, operator.sub, operator.mul, operator.truediv])
def test_operands_that_do_not_fit_are_named_by_shape_and_axis(operation):
    symbol = {"add": "+", "sub": "-", "mul": "*", "truediv": "/"}[operation.__name__]
    words = rf"a [{symbol}] b needs shapes that fit, got \(2, 1, 4\) and \(3, 5\): sizes \[4, 5\] along axis -1"
    with pytest.raises(ml.ShapeError, match=words):
        ml.vjp(lambda x: operation(x, np.ones((3, 5))), np.ones((2, 1, 4)))


def test_the_checker_names_the_parameter_and_the_entry_that_is_wrong():
    @ml.primitive
    def broken(x):
        wrong = np.array([1, 1.01, 1])  # one entry is one percent off
        return x * x, lambda dy: 2 * x * dy * wrong

    check = ml.check_gradient(broken, np.array([1.0, 2.0, 3.0]))
    assert check.error > 1e-3
    assert check.where == "argument 0, entry (1,)"
    check = ml.check_gradient(lambda p: p["a"] * broken(p["b"][0]), {"a": np.ones(3), "b": [np.ones(3)]})
    assert check.where == "argument 0['b'][0], entry (1,)"


@pytest.mark.parametrize("function", [ml.positive_features, ml.exponentials.log1m_exp, ml.scale.round_to, ml.norm])
def test_a_value_without_axes_is_a_number(function):
    assert type(function(np.float32([-0.5] if function is ml.norm else -0.5))) is np.float32


@pytest.mark.parametrize("value", [np.array([3, 4j]), [3, 4j], 3 + 4j, np.complex64(1)])
def test_complex_numbers_are_refused_by_primitives_and_gradients(value):
    for call in (ml.softmax, lambda z: ml.autodiff.hessian_vector_product(ml.norm, z, z), ml.grad(ml.norm)):
        with pytest.raises(TypeError, match="complex"):
            call(value)


@pytest.mark.parametrize(
    "call",
    [
        lambda z: ml.rotate(np.ones((1, 2)), angles=z),
        lambda z: ml.additive_mask(z),
        lambda z: ml.check_gradient(ml.norm, z),
        lambda z: ml.adamw_init(z),
        lambda z: ml.adamw_step(np.ones(1), z, ml.adamw_init(np.ones(1))),
        lambda z: ml.adamw_step(z, np.ones(1), ml.adamw_init(np.ones(1))),
        lambda z: ml.gradient_descent.sgd_step(z, np.ones(1), {}, learning_rate=0.1),
        lambda z: ml.gradient_descent.minibatch_variance(z, 1),
        lambda z: ml.numerical_gradient(np.sum, z),
        lambda z: ml.backpropagation.gradient_bounds([z[None]]),
        lambda z: ml.backpropagation.perturbation_gradient(np.sum, z),
        lambda z: ml.training.band_probability(z, 1, 1),
    ],
)
def test_the_imaginary_part_is_never_dropped(call):
    with pytest.raises(TypeError, match="real numbers, got complex128"):
        call(np.array([0.5 + 1j]))
