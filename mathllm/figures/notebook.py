"""Outputs of notebooks: listings of the package's own source, and a loss curve that grows during a training run."""

import ast
import base64
import inspect
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .plots import _in_a_notebook, _png, _publish


def show_source(function: Callable, docstring: bool = True) -> None:
    """Show the source of a function or class of the package, as a highlighted listing.

    Primitives are shown as they are written, with value and pullback. `docstring=False` leaves the docstrings out.
    Outside a notebook the source is printed.

    Raises: ValueError for an object without Python source.

    >>> from mathllm.errors import suggest
    >>> show_source(suggest, docstring=False)
    # mathllm/errors.py
    def suggest(name: str, candidates: Iterable[str], n: int = 3) -> str:
        near = difflib.get_close_matches(name, list(candidates), n=n, cutoff=0.6)
        return f"; did you mean {' or '.join(near)}?" if near else ""
    """
    listing = _listing(function, docstring)
    fence = "```"
    _publish({"text/markdown": f"{fence}python\n{listing}\n{fence}"}, listing)


@contextmanager
def live_curve(every: int = 10, seconds: float = 1.0) -> Iterator[Callable[[Any], None]]:
    """A curve of the loss that grows while `train(progress=…)` runs, and is removed when the run is over.

    every: a picture only at multiples of this step   seconds: the shortest time between them

    The stored notebook holds a line of text in its place. Outside a notebook nothing is drawn.

    >>> with live_curve() as progress:
    ...     progress(None)
    """
    if not _in_a_notebook():
        yield lambda now: None
        return
    from IPython.display import display

    words = {"text/plain": "(While this cell runs in a notebook, the loss is drawn here.)"}
    handle = display(words, raw=True, display_id=True)
    history, drawn = [], time.monotonic()

    def progress(now):
        nonlocal drawn
        history.append(now)
        if now.step % every == 0 and time.monotonic() - drawn > seconds:
            handle.update(_curve(history), raw=True)
            drawn = time.monotonic()

    yield progress
    handle.update(words, raw=True)


def _curve(history):
    """The losses of a run so far, as an output of the notebook."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 2.6))
    axes = figure.subplots()
    axes.plot([now.step for now in history], [now.loss for now in history], linewidth=1, label="batch")
    measured = [now for now in history if now.validation_loss is not None]
    if measured:
        axes.plot([now.step for now in measured], [now.validation_loss for now in measured], label="held out")
    axes.set(xlabel="step", ylabel="loss, nats per token", xlim=(0, history[-1].steps))
    axes.legend()
    return {"image/png": base64.b64encode(_png(figure)[0]).decode(), "text/plain": str(history[-1])}


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
