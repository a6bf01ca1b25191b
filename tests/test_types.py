"""The annotations of the package, as a type checker applies them to a program that uses it.

The program is the examples of the docstrings: every public function has one.
"""

import ast
import doctest
import importlib
import subprocess
import sys

import pytest
from package import MODULES, ROOT

pytestmark = pytest.mark.slow
OPTIONS = [
    "--follow-imports=silent",  # only the program is judged: within the package a value may be an array or a tensor
    "--implicit-reexport",  # an example uses the names of its module, also imported ones
    "--disable-error-code=var-annotated",  # {} and [] need no annotation
    "--disable-error-code=attr-defined",  # mathllm imports its parts when they are used
    "--disable-error-code=func-returns-value",  # an example may show that nothing is returned
]


def program(module, examples):
    """The source of a function that imports what the examples need from their module, and runs them."""
    source = "".join(example.source for example in examples)
    names = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)]
    own = {name.id for name in names if isinstance(name.ctx, ast.Store)}
    needed = sorted({name.id for name in names} & vars(module).keys() - own - {"__name__"})
    lines = [f"from {module.__name__} import {', '.join(needed)}"] if needed else []
    return lines + source.splitlines()


def examples():
    """A function for each docstring with examples."""
    for name in MODULES:
        if name.startswith("mathllm.autodiff"):
            continue  # the operators of a tensor are primitives, bound when the package is imported
        module = importlib.import_module(name)
        for test in doctest.DocTestFinder(exclude_empty=True).find(module, name):
            if test.examples:
                yield program(module, test.examples)


def test_the_examples_of_the_docstrings_fit_the_annotations_and_a_wrong_type_is_found(tmp_path):
    wrong = ["import mathllm as ml", "ml.softmax_jacobian('a').ravel() + ml.generate(1, {}, [[0]], max_new_tokens=1)"]
    bodies = [*examples(), wrong]
    assert len(bodies) > 400
    functions = [[f"def example_{i}() -> None:", *(f"    {line}" for line in body)] for i, body in enumerate(bodies)]
    file = tmp_path / "examples.py"
    file.write_text("\n".join(line for lines in functions for line in lines), encoding="utf-8")
    command = [sys.executable, "-m", "mypy", *OPTIONS, "--cache-dir", ROOT / ".cache" / "mypy", file]
    found = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
    assert len(found) == 3, found
    assert 'Argument 1 to "softmax_jacobian" has incompatible type "str"' in found[0]
    assert 'Argument 1 to "generate" has incompatible type "int"' in found[1]
    assert found[2].startswith("Found 2 errors in 1 file")
