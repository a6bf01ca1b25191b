"""The package as its source files: the modules, the names they define for others, and the size of their code."""

import ast
import importlib
import inspect
import io
import sys
import tokenize
from pathlib import Path
from typing import NamedTuple

import build_exports

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "mathllm"

MODULES = {  # dotted name -> file; the file of a package has the name of the package
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
    if path.name != "__main__.py"  # that is a program
}


def outside(paths, ours):
    """The packages that these files import, without Python's and ours; each with a file that imports it."""
    found = {}
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module]
            found |= {name.partition(".")[0]: path for name in names}
    return {name: path for name, path in found.items() if name not in {*ours, *sys.stdlib_module_names}}


def public_objects(name):
    """What a module defines for others: pairs of a name without underscore and its value."""
    module = importlib.import_module(name)
    return [(public, getattr(module, public)) for public in build_exports.defined_names(MODULES[name])]


def described(name, init=False):
    """What needs a description: the public functions, classes and methods that a module defines, by dotted name.

    Also `__call__`, and `__init__` if asked for: a class has its docstring in place of that of `__init__`.

    >>> names = [name.rpartition("Transformer")[2] for name, _ in described("mathllm.transformer.model", init=True)]
    >>> {"", ".init", ".__init__"} <= {*names}
    True
    """
    special = {"__call__", "__init__"} if init else {"__call__"}
    for public, value in public_objects(name):
        if callable(value) and getattr(value, "__module__", None) == name:
            yield f"{name}.{public}", value
            for method, member in vars(value).items() if inspect.isclass(value) else ():
                function = getattr(member, "fget", None) or getattr(member, "__func__", member)
                written_here = inspect.isfunction(function) and function.__module__.startswith("mathllm")
                if written_here and (method in special or not method.startswith("_")):
                    yield f"{name}.{public}.{method}", function


class Size(NamedTuple):
    """The size of a source: its lines of code, its `raise` statements, and the lines of code of each function."""

    lines: int
    raises: int
    functions: list[tuple[str, int]]


# Comments, and the tokens that divide lines and blocks, are no code.
NO_CODE = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER,
}  # fmt: skip


def size(source):
    """The size of a source. A line counts if it holds code other than a docstring.

    >>> size("def f(x):\\n    'Twice x.'\\n\\n    # A comment.\\n    raise ValueError(\\n        x)\\n")
    Size(lines=3, raises=1, functions=[('f', 3)])
    """
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    lines = {n for t in tokens if t.type not in NO_CODE for n in range(t.start[0], t.end[0] + 1)}
    nodes = list(ast.walk(ast.parse(source)))
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    for node in [*functions, *(node for node in nodes if isinstance(node, ast.Module | ast.ClassDef))]:
        if ast.get_docstring(node) is not None:
            lines -= {*range(node.body[0].lineno, node.body[0].end_lineno + 1)}
    counted = [(f.name, sum(f.lineno <= line <= f.end_lineno for line in lines)) for f in functions]
    return Size(len(lines), sum(isinstance(node, ast.Raise) for node in nodes), counted)
