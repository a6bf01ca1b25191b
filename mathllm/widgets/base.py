"""What all interactive figures share: their files, their style sheet, and the words that stand in for them."""

import inspect
from importlib import resources

import anywidget

__all__ = ["Figure", "read"]


def read(name: str) -> str:
    """A file that lies beside the widgets: an ES module or the style sheet.

    >>> "export default" in read("vector_length.js")
    True
    """
    return (resources.files(__package__) / name).read_text(encoding="utf-8")


class Figure(anywidget.AnyWidget):
    """An interactive figure. A subclass sets `_esm = read("its_module.js")` and its traits.

    The first line of its docstring is what is shown where the figure cannot be: it describes the figure to readers.
    """

    _css = read("widgets.css")

    def __repr__(self):
        return f"Interactive figure: {inspect.getdoc(type(self)).splitlines()[0]}"
