"""The figures of the book: one style, colours that colour-blind readers can tell apart, and alternative text.

A chapter calls `use_style()` once, draws with matplotlib, and ends a figure with `show(fig, alt="…")`, which publishes
it together with its alternative text. `transformer_map("softmax")` is the map that opens every chapter, with the parts
that the chapter explains highlighted. matplotlib is imported at first use.
"""

import base64
import io
import re
import sys
from collections.abc import Iterable
from importlib import resources
from typing import TYPE_CHECKING

from ..errors import suggest

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The colours of Okabe & Ito (2008), "Color Universal Design", without their yellow, and a grey.
BLACK = "#000000"
ORANGE = "#E69F00"
SKY_BLUE = "#56B4E9"
GREEN = "#009E73"
BLUE = "#0072B2"
VERMILION = "#D55E00"
PURPLE = "#CC79A7"
GREY = "#8A8F98"

COLOURS = (BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY_BLUE, GREY)  # the order in which lines are drawn
SEQUENTIAL = "viridis"  # for weights and probabilities, from 0 upwards
DIVERGING = "PuOr_r"  # for signed values, with zero in the middle

_CSS_PIXELS_PER_INCH = 96
_DPI = 2 * _CSS_PIXELS_PER_INCH  # two stored pixels for each CSS pixel: sharp on screens of high resolution


def use_style() -> None:
    """Set matplotlib's defaults to the book's style: those of book.mplstyle, and the colours above.

    >>> use_style()
    >>> import matplotlib
    >>> matplotlib.rcParams["text.color"]
    '#1f2328'
    """
    import matplotlib.style
    from cycler import cycler

    colours = {"axes.prop_cycle": cycler(color=COLOURS), "image.cmap": SEQUENTIAL}
    matplotlib.style.use([resources.files(__package__) / "book.mplstyle", colours])


def show(fig: "Figure", alt: str) -> None:
    """Show a figure with its alternative text, and close it. Use it in place of `plt.show()`.

    alt: the kind of chart, its axes, the values that matter, and what follows from them. It is stored in the metadata
    of the output, from where the site puts it into the page, and is printed outside a notebook.

    Raises: ValueError if `alt` is empty.

    >>> import matplotlib.figure
    >>> show(matplotlib.figure.Figure(), alt="An empty square.")
    Figure: An empty square.
    """
    if not isinstance(alt, str) or not alt.strip():
        raise ValueError('show() needs alternative text: show(fig, alt="what the figure shows")')
    alt = " ".join(alt.split())
    png, width = _png(fig)
    if "matplotlib.pyplot" in sys.modules:
        import matplotlib.pyplot as plt

        plt.close(fig)
    background = {"needs_background": "light"}  # as JupyterLab reads it, and for the image as nbconvert does
    metadata = {"image/png": {"alt": alt, "width": width} | background} | background
    _publish({"image/png": base64.b64encode(png).decode()}, f"Figure: {alt}", metadata)


def _publish(data, words, metadata=None):
    """Display data in a notebook, with words as their plain text. Print the words where there is no notebook."""
    if not _in_a_notebook():
        print(words)
        return
    from IPython.display import display

    display(data | {"text/plain": words}, metadata=metadata, raw=True)


def _png(fig):
    """The figure's PNG bytes, free of dates and versions, and its width on the page in CSS pixels."""
    buffer = io.BytesIO()
    fig.savefig(buffer, format="png", dpi=_DPI, metadata={"Software": None}, pil_kwargs={"optimize": True})
    return buffer.getvalue(), round(fig.get_figwidth() * _CSS_PIXELS_PER_INCH)


def _in_a_notebook():
    """Whether there is an IPython shell that can display an image."""
    if "IPython" not in sys.modules:
        return False
    from IPython import get_ipython

    return get_ipython() is not None


class TransformerMap:
    """The map of a language model, as a notebook shows it: an SVG image, and the same in words."""

    def __init__(self, svg: str, words: str):
        self.svg, self.words = svg, words

    def __repr__(self) -> str:
        return self.words

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"image/svg+xml": self.svg, "text/plain": self.words}, {"image/svg+xml": {"alt": self.words}}


# A part of map.svg: its name in words; its own key, and the slugs of the chapters that explain it
_PART = re.compile(r'<g data-name="([^"]+)" class="([^"]+)"')
_SAME_PARTS = {"scale": "training"}  # chapter 17 trains the same model on many machines
_LIT = f'fill="{ORANGE}" stroke="#b35900" stroke-width="2.5"'


def transformer_map(lit: str | Iterable[str]) -> TransformerMap:
    """The map of a language model that opens each chapter, with the parts that the chapter explains highlighted.

    lit: a part ("attention"), a chapter's slug ("cross_entropy"), or several of them

    Raises: ValueError for a name that the map does not have.

    >>> transformer_map("loss").words.rpartition(": ")[2]
    'loss.'
    >>> transformer_map("atention")
    Traceback (most recent call last):
    ValueError: the map has no part 'atention'; did you mean attention?
    """
    svg = resources.files(__package__).joinpath("map.svg").read_text(encoding="utf-8")
    wanted = {_SAME_PARTS.get(name, name) for name in ([lit] if isinstance(lit, str) else lit)}
    parts = {match[0]: (match[1], set(match[2].split())) for match in _PART.finditer(svg)}
    known = set().union(*(keys for _, keys in parts.values()))
    for name in sorted(wanted - known):
        raise ValueError(f"the map has no part {name!r}{suggest(name, known) or f'; it has {sorted(known)}'}")
    chosen = {tag: name for tag, (name, keys) in parts.items() if wanted & keys}
    for tag in chosen:
        svg = svg.replace(tag, tag.replace('class="', f'{_LIT} class="lit '))
    [label] = re.findall(r'aria-label="([^"]+)"', svg)
    words = f"{label} Highlighted: {', '.join(dict.fromkeys(chosen.values())) or 'nothing'}."
    return TransformerMap(svg.replace(label, words), words)
