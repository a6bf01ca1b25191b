"""The book's figures: one style, colours that colour-blind readers can tell apart, and words for those who cannot see.

A chapter calls `use_style()` once, draws with matplotlib, and ends a figure with `show(fig, alt="…")`, which publishes
it together with its alternative text. `transformer_map(lit=…)` draws the same small map in every chapter, with the part
that the chapter explains lit. matplotlib is imported at first use, so that `import mathllm` needs NumPy alone.
"""

import base64
import io
import sys

from ..errors import suggest

__all__ = [
    "BLACK", "BLUE", "COLOURS", "DIVERGING", "GREEN", "GREY", "MAP_PARTS", "ORANGE", "PURPLE", "SEQUENTIAL", "SKY_BLUE",
    "VERMILION", "YELLOW", "show", "transformer_map", "use_style",
]  # fmt: skip

# The eight colours of Okabe & Ito (2008), "Color Universal Design", and a grey for what stays in the background.
BLACK = "#000000"
ORANGE = "#E69F00"
SKY_BLUE = "#56B4E9"
GREEN = "#009E73"
YELLOW = "#F0E442"
BLUE = "#0072B2"
VERMILION = "#D55E00"
PURPLE = "#CC79A7"
GREY = "#8A8F98"

COLOURS = (BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY_BLUE, GREY)  # the order in which lines are drawn
SEQUENTIAL = "viridis"  # for weights and probabilities: from nothing to much
DIVERGING = "PuOr_r"  # for signed values, with zero in the middle

_THEMES = {
    "light": {"paper": "#ffffff", "ink": "#1f2328", "line": "#8a8f98", "grid": "#e3e6ea", "box": "#f1f3f5"},
    "dark": {"paper": "#14181e", "ink": "#e6e8eb", "line": "#9aa1ab", "grid": "#2f3640", "box": "#232a33"},
}
_TONES = {  # what a theme's tones are for
    "paper": ("axes.facecolor", "figure.facecolor", "patch.edgecolor"),
    "ink": ("axes.labelcolor", "text.color", "xtick.labelcolor", "ytick.labelcolor"),
    "line": ("axes.edgecolor", "xtick.color", "ytick.color"),
    "grid": ("grid.color",),
}
_CSS_PIXELS_PER_INCH = 96
_DPI = 2 * _CSS_PIXELS_PER_INCH  # two stored pixels for each shown one: sharp on fine screens
_STYLE = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.unicode_minus": True,
    "figure.constrained_layout.use": True,
    "figure.dpi": _CSS_PIXELS_PER_INCH,
    "figure.figsize": (6.4, 3.6),
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same letters on every machine
    "font.size": 10,
    "grid.linewidth": 0.8,
    "image.cmap": SEQUENTIAL,
    "legend.frameon": False,
    "lines.linewidth": 2,
    "lines.markersize": 6,
    "mathtext.fontset": "dejavusans",
    "savefig.facecolor": "auto",
}


def use_style(theme="light"):
    """Set matplotlib's defaults to the book's style, for a white page or ("dark") for a dark one.

    >>> use_style("drak")
    Traceback (most recent call last):
    ValueError: no theme 'drak'; did you mean dark?
    """
    if theme not in _THEMES:
        raise ValueError(f"no theme {theme!r}{suggest(str(theme), _THEMES) or '; there are light and dark'}")
    import matplotlib
    from cycler import cycler

    tones = {setting: _THEMES[theme][tone] for tone, settings in _TONES.items() for setting in settings}
    matplotlib.rcParams.update(_STYLE | tones | {"axes.prop_cycle": cycler(color=COLOURS)})


def show(fig, alt):
    """Show a figure with its alternative text, and close it. Use it in place of `plt.show()`.

    The text goes into the output's metadata, from where the site puts it into the page, and is the output's plain text.
    It says what a reader who cannot see the figure would miss: what is drawn, and what follows from it.

    Raises ValueError if `alt` is empty. Outside a notebook the text is printed.

    >>> import matplotlib.figure
    >>> show(matplotlib.figure.Figure(), alt="An empty square.")
    Figure: An empty square.
    """
    if not isinstance(alt, str) or not alt.strip():
        raise ValueError("show() needs alternative text: show(fig, alt=\"what a reader who cannot see would miss\")")
    alt = " ".join(alt.split())
    png, width = _png(fig)
    if "matplotlib.pyplot" in sys.modules:
        import matplotlib.pyplot as plt

        plt.close(fig)
    if not _in_a_notebook():
        print(f"Figure: {alt}")
        return
    from IPython.display import display

    background = "light" if _is_light(fig.get_facecolor()) else "dark"
    display(
        {"image/png": base64.b64encode(png).decode(), "text/plain": f"Figure: {alt}"},
        metadata={
            "image/png": {"alt": alt, "width": width, "needs_background": background},  # as nbconvert reads them
            "needs_background": background,  # as JupyterLab reads it
        },
        raw=True,
    )


def _png(fig):
    """The figure's PNG bytes, free of dates and versions, and its width on the page in CSS pixels."""
    buffer = io.BytesIO()
    fig.savefig(buffer, format="png", dpi=_DPI, metadata={"Software": None}, pil_kwargs={"optimize": True})
    return buffer.getvalue(), round(fig.get_figwidth() * _CSS_PIXELS_PER_INCH)


def _in_a_notebook():
    """Whether there is an IPython shell that can take a picture."""
    if "IPython" not in sys.modules:
        return False
    from IPython import get_ipython

    return get_ipython() is not None


def _is_light(colour):
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.5  # relative luminance, without the gamma


# The map: where each part stands (centre x, centre y, width, in units of its own), and what is written in it.
_BOXES = {
    "tokens": (0.75, 2.3, 1.2, "Tokens"),
    "embedding": (2.45, 2.3, 1.4, "Embedding"),
    "position": (2.45, 3.1, 1.4, "Position"),
    "attention": (5.35, 3.1, 1.35, "Attention"),
    "feed_forward": (7.85, 3.1, 1.6, "Feed-forward"),
    "norm": (8.35, 1.25, 1.2, "Norm"),
    "unembedding": (6.55, 1.25, 1.7, "Unembedding"),
    "softmax": (4.55, 1.25, 1.2, "Softmax"),
    "probability": (2.6, 1.25, 1.6, "Probabilities"),
    "sampling": (0.75, 1.25, 1.2, "Sampling"),
    "reward": (0.75, 0.3, 1.2, "Reward"),
    "loss": (2.6, 0.3, 1.6, "Loss"),
    "gradients": (4.8, 0.3, 1.4, "Gradients"),
    "update": (6.95, 0.3, 1.4, "Update"),
}
MAP_PARTS = (*_BOXES, "residual")
_CHAPTERS = {
    "vectors": ("embedding",),
    "similarity": ("attention", "unembedding"),
    "matrices": ("embedding", "attention", "feed_forward", "unembedding"),
    "exponentials": ("softmax", "loss"),
    "probability": ("probability", "sampling"),
    "softmax": ("softmax",),
    "cross_entropy": ("loss",),
    "gradients": ("gradients",),
    "gradient_descent": ("update",),
    "attention": ("attention",),
    "backpropagation": ("loss", "gradients"),
    "transformer": ("embedding", "position", "attention", "feed_forward", "norm", "residual", "unembedding"),
    "training": ("loss", "gradients", "update"),
    "inference": ("tokens", "softmax", "probability", "sampling"),
    "alignment": ("reward", "loss"),
    "interpretability": ("residual", "attention", "feed_forward"),
}


def transformer_map(lit="embedding"):
    """Show the small map of a language model that opens each chapter, with one part lit.

    lit: a part of `MAP_PARTS`, a chapter's slug ("cross_entropy": the parts that chapter explains), or a list of parts.

    Raises ValueError for a name the map does not have.

    >>> transformer_map(lit="atention")
    Traceback (most recent call last):
    ValueError: the map has no part 'atention'; did you mean attention?
    """
    lit = _lit_parts(lit)
    sheet = _Sheet(lit)
    _draw_blocks(sheet)
    _draw_way_round(sheet)
    for part, (x, y, width, label) in _BOXES.items():
        sheet.box(x, y, width, label, lit=part in lit)
    names = ", ".join(_BOXES[part][3].lower() if part in _BOXES else "residual stream" for part in lit)
    show(sheet.figure, alt=f"Map of a language model: {_IN_WORDS} Lit in this chapter: {names}.")


class _Sheet:
    """The paper on which the map is drawn: lines, notes and boxes in the colours of the theme."""

    def __init__(self, lit):
        import matplotlib
        from matplotlib.figure import Figure

        self.lit = lit
        self.tone = _THEMES["light" if _is_light(matplotlib.rcParams["figure.facecolor"]) else "dark"]
        self.figure = Figure(figsize=(6.6, 2.75), facecolor=self.tone["paper"], layout="none")
        self.axes = self.figure.add_axes((0, 0, 1, 1))
        self.axes.set(xlim=(-0.05, 9.35), ylim=(-0.12, 3.8))
        self.axes.axis("off")

    def line(self, *points, colour=None, width=1.3, style="-"):
        """An arrow along these points."""
        x, y = zip(*points, strict=True)
        colour = colour or self.tone["line"]
        self.axes.plot(x[:-1], y[:-1], style, color=colour, linewidth=width, zorder=1)
        look = {"arrowstyle": "-|>,head_width=0.22,head_length=0.4", "color": colour, "linewidth": width}
        look |= {"shrinkA": 0, "shrinkB": 0, "linestyle": style}
        self.axes.annotate("", xy=points[-1], xytext=points[-2], arrowprops=look, zorder=1)

    def note(self, x, y, text, **options):
        look = {"fontsize": 7.5, "color": self.tone["line"], "ha": "center", "va": "center"}
        self.axes.text(x, y, text, **look | options)

    def rectangle(self, corner, width, height, rounding, zorder, **look):
        from matplotlib.patches import FancyBboxPatch

        style = f"round,pad=0,rounding_size={rounding}"
        patch = FancyBboxPatch(corner, width, height, boxstyle=style, zorder=zorder)
        patch.set(linewidth=1, **look)
        self.axes.add_patch(patch)

    def box(self, x, y, width, label, lit):
        fill, edge = (ORANGE, ORANGE) if lit else (self.tone["box"], self.tone["line"])
        self.rectangle((x - width / 2, y - 0.24), width, 0.48, 0.1, 2, facecolor=fill, edgecolor=edge)
        colour, weight = (BLACK, "bold") if lit else (self.tone["ink"], "normal")
        self.note(x, y - 0.01, label, fontsize=8.8, color=colour, weight=weight, zorder=3)


def _draw_blocks(sheet):
    """The L blocks, and the residual stream that runs through them."""
    tone, lit = sheet.tone, "residual" in sheet.lit
    look = {"facecolor": tone["paper"], "edgecolor": tone["line"], "linestyle": (0, (4, 3))}
    sheet.rectangle((4.05, 1.88), 5.0, 1.75, 0.15, 0, **look)
    sheet.note(4.2, 2.07, "× L", fontsize=10, color=tone["ink"], ha="left")
    sheet.line((1.35, 2.3), (1.75, 2.3))
    sheet.line((2.45, 2.86), (2.45, 2.54))
    stream = {"colour": ORANGE, "width": 3.2} if lit else {"width": 1.6}
    sheet.line((3.15, 2.3), (9.2, 2.3), (9.2, 1.25), (8.95, 1.25), **stream)
    words = {"color": tone["ink"], "weight": "bold"} if lit else {"weight": "normal"}
    sheet.note(3.6, 2.14, "residual", **words)
    for x, half in ((5.35, 0.675), (7.85, 0.8)):
        up, down = x - half - 0.3, x + half + 0.22
        sheet.line((up, 2.3), (up, 3.1), (x - half, 3.1))
        sheet.line((x + half, 3.1), (down, 3.1), (down, 2.42))
        edge = ORANGE if lit else tone["line"]
        sheet.axes.plot(down, 2.3, "o", markersize=10, color=tone["paper"], zorder=3, markeredgecolor=edge)
        sheet.note(down, 2.3, "+", fontsize=9, color=tone["ink"], zorder=4)
        fill, edge, ink = (ORANGE, ORANGE, BLACK) if "norm" in sheet.lit else (tone["box"], tone["line"], tone["ink"])
        frame = {"facecolor": fill, "edgecolor": edge, "boxstyle": "round,pad=0.25", "linewidth": 0.8}
        sheet.note(up, 2.7, "norm", fontsize=7, color=ink, bbox=frame, zorder=3)


def _draw_way_round(sheet):
    """Out of the blocks: scores, probabilities, a token, and around again; below, training back to the weights."""
    for start, end in ((7.75, 7.4), (5.7, 5.15), (3.95, 3.4), (1.8, 1.35)):
        sheet.line((start, 1.25), (end, 1.25))
    sheet.line((0.75, 1.49), (0.75, 2.06), style="--")
    sheet.note(0.85, 1.78, "append", ha="left")
    sheet.line((2.6, 1.01), (2.6, 0.54))
    for start, end in ((1.35, 1.8), (3.4, 4.1), (5.5, 6.25)):
        sheet.line((start, 0.3), (end, 0.3))
    sheet.line((7.65, 0.3), (9.2, 0.3), (9.2, 0.85), style="--")
    sheet.note(8.42, 0.14, "new weights")


_IN_WORDS = (
    "tokens become embeddings plus positions; L blocks, each of attention and feed-forward with a norm before and a "
    "residual connection around; a last norm, unembedding, softmax, probabilities, sampling; the token is appended. "
    "Training goes from the probabilities, or a reward, to the loss, its gradients, and an update of the weights."
)


def _lit_parts(lit):
    if not isinstance(lit, str):
        return tuple(dict.fromkeys(part for one in lit for part in _lit_parts(one)))
    if lit in _CHAPTERS:
        return _CHAPTERS[lit]
    if lit in MAP_PARTS:
        return (lit,)
    names = dict.fromkeys([*MAP_PARTS, *_CHAPTERS])
    raise ValueError(f"the map has no part {lit!r}{suggest(lit, names) or '; its parts are ' + ', '.join(MAP_PARTS)}")
