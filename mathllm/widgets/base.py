"""What all interactive figures share: their files, their style sheet, and the words that stand in for them."""

import inspect
from importlib import resources

import anywidget

__all__ = ["Figure", "module", "read"]


def read(name: str) -> str:
    """A file that lies beside the widgets: an ES module or the style sheet.

    >>> "export default" in read("vector_length.js")
    True
    """
    return (resources.files(__package__) / name).read_text(encoding="utf-8")


def module(name: str) -> str:
    """The ES module of a figure, with `elements.js` in front of it: a static page can import nothing.

    >>> module("vector_length.js").count("function svg(")
    1
    """
    return read("elements.js") + "\n" + read(name)


class Figure(anywidget.AnyWidget):
    """An interactive figure. A subclass sets `_esm = module("its_module.js")` and its traits.

    The first line of its docstring is what is shown where the figure cannot be: it describes the figure to readers.
    """

    _css = read("widgets.css")

    def __repr__(self):
        return f"Interactive figure: {inspect.getdoc(type(self)).splitlines()[0]}"
