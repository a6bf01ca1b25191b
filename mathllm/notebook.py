"""Help for notebooks: show the package's own source where the text explains it, so that no listing is ever a copy."""

import ast
import inspect
import textwrap

__all__ = ["show_source"]


def show_source(function, docstring=True):
    """Show the source of a function or class of the package, as a highlighted listing.

    Primitives are shown as they are written, with value and pullback. `docstring=False` leaves the docstrings out, to
    set a formula and its code side by side. Outside a notebook the source is printed.

    Raises ValueError for what has no Python source.

    >>> from mathllm.errors import suggest
    >>> show_source(suggest, docstring=False)
    # mathllm/errors.py
    def suggest(name: str, candidates: Iterable[str], n: int = 3) -> str:
        near = difflib.get_close_matches(name, list(candidates), n=n, cutoff=0.6)
        return f"; did you mean {' or '.join(near)}?" if near else ""
    """
    listing = _listing(function, docstring)
    if not _in_a_notebook():
        print(listing)
        return
    from IPython.display import display

    fence = "```"
    display({"text/markdown": f"{fence}python\n{listing}\n{fence}", "text/plain": listing}, raw=True)


def _listing(function, docstring):
    function = inspect.unwrap(function)
    try:
        source = textwrap.dedent(inspect.getsource(function)).rstrip()
    except (TypeError, OSError):
        raise ValueError(f"{function!r} has no Python source to show") from None
    if not docstring:
        source = _without_docstrings(source)
    module = function.__module__
    where = "" if module == "__main__" else f"# {module.replace('.', '/')}.py\n"
    return where + source


def _without_docstrings(source):
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) and len(node.body) > 1:
            text = node.body[0]
            lines[text.lineno - 1 : text.end_lineno] = [None] * (text.end_lineno - text.lineno + 1)
    return "\n".join(line for line in lines if line is not None)


def _in_a_notebook():
    from .plots import _in_a_notebook

    return _in_a_notebook()
