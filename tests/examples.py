"""The examples in the docstrings of all public functions, run with something in place of the functions they call."""

import doctest
import importlib
import inspect
from collections.abc import Callable

import pytest
from package import MODULES, described
from real_data import absence_for

from mathllm.errors import CHAPTERS

PARTS = ["errors", "trees", "autodiff", *CHAPTERS, "pretrained"]


def public_functions():
    """Every public function of these parts of the package: its dotted name, it, and the module of its example."""
    for module in MODULES:
        if module != "mathllm" and module.split(".")[1] in PARTS:
            for name, value in described(module):
                if inspect.isroutine(value) and name.count(".") == module.count(".") + 1:  # no method
                    yield name, value, importlib.import_module(module)


FUNCTIONS = {name.removeprefix("mathllm."): (function, module) for name, function, module in public_functions()}


def run_example(name: str, wrapped: Callable) -> None:
    """Run the example of a function with `wrapped(name, f)` in place of each function f that it can call by name."""
    function, module = FUNCTIONS[name]
    places = dict(vars(module))
    for place, thing in vars(module).items():
        if callable(thing) and not inspect.isclass(thing) and not place.startswith("_"):
            places[place] = wrapped(place, thing)
    tests = doctest.DocTestFinder(recurse=False).find(inspect.unwrap(function), name, module, globs=places)
    source = "".join(example.source for test in tests for example in test.examples)
    assert source
    if reason := absence_for(source):
        pytest.skip(reason)
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    for test in tests:
        assert runner.run(test).failed == 0
