"""arrange(): the lines of an order with buttons that move them, in JupyterLab and in the browser edition.

What counts is the answer cell, where the letters are typed; the card above it shows the same lines without buttons.
"""

from functools import cache
from importlib import resources

from . import kernel_side
from .registry import item

__all__ = ["arrange", "in_a_notebook"]


def arrange(id) -> None:
    """Show the lines of an order with buttons, and the letters to be written into the answer cell.

        arrange("06.softmax.shift")

    Without anywidget or outside a notebook it does nothing: the card shows the lines.

    Raises: UnknownReferenceError for an id that no exercise has, ValueError for an exercise that is no order.
    """
    entry = item(id)
    if entry.kind != "order":
        raise ValueError(f"{id!r} has no lines to put in order")
    if kernel_side.own_numbers or not in_a_notebook():  # a submission is graded: no screen shows it
        return
    try:
        figure = _figure()
    except ImportError:
        return
    from IPython.display import display

    lines = entry.checks[0].assess.args[0]
    shown = [{"label": line["label"], "shown": line["shown"]} for line in lines]
    display(figure(title=entry.title, name=entry.answer, lines=shown))


def in_a_notebook() -> bool:
    """Whether this runs in IPython, which can show figures."""
    try:
        from IPython import get_ipython
    except ImportError:
        return False
    return get_ipython() is not None


@cache
def _figure():
    """The class of the figure, made at first use: only a notebook has anywidget."""
    import anywidget
    import traitlets

    from mathllm.figures import widgets

    own = resources.files(__package__)

    class Arranging(anywidget.AnyWidget):
        _esm = widgets.read("elements.js") + "\n" + (own / "arranging.js").read_text(encoding="utf-8")
        _css = widgets.read("widgets.css") + (own / "arranging.css").read_text(encoding="utf-8")
        title = traitlets.Unicode().tag(sync=True)
        name = traitlets.Unicode().tag(sync=True)
        lines = traitlets.List().tag(sync=True)
        order = traitlets.List(traitlets.Unicode()).tag(sync=True)

        def __repr__(self):
            return f"Lines to put in order: {self.title}"

    return Arranging
