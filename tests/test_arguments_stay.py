"""No public function changes what it is given: each is watched while its own example runs."""

import functools

import numpy as np
import pytest
from examples import FUNCTIONS, run_example

from mathllm.autodiff import Tensor

IN_PLACE = {"adamw", "softmax_in_place"}  # whose docstring says so


def seen(thing):
    """What can be told of an argument afterwards: the hashed bytes of its arrays, in their structure."""
    if isinstance(thing, Tensor):
        thing = thing.value
    if isinstance(thing, np.ndarray):
        return thing.dtype, thing.shape, repr(thing.tolist()) if thing.dtype == object else hash(thing.tobytes())
    if isinstance(thing, dict):
        return {key: seen(value) for key, value in thing.items()}
    if isinstance(thing, list | tuple):
        return [seen(part) for part in thing]
    return repr(thing) if isinstance(thing, float) else thing if isinstance(thing, str | bytes | int) else type(thing)


def watched(name, function, calls):
    """The function, and after each call a look at its arguments.

    >>> watched("doubled", lambda x: x["deep"].__imul__(2), calls := [])({"deep": np.ones(2)})
    array([2., 2.])
    >>> watched("kept", lambda x: x["deep"] * 2, calls)({"deep": np.ones(2)}), calls
    (array([2., 2.]), [('doubled', True), ('kept', False)])
    """

    @functools.wraps(function)
    def call(*args, **options):
        before = seen((args, options))
        result = function(*args, **options)
        calls.append((name, seen((args, options)) != before))
        return result

    return call


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_example_leaves_its_arguments_alone(name):
    calls = []
    run_example(name, lambda place, function: watched(place, function, calls))
    assert {called for called, changed in calls if changed} <= IN_PLACE
