"""The figures: always with words, always the same bytes, never in the way of a plain `import mathllm`."""

import base64
import io
import itertools
import re
from xml.etree import ElementTree

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from IPython.utils.capture import capture_output
from PIL import Image

from mathllm.figures import plots


@pytest.fixture(autouse=True)
def _own_settings():
    with matplotlib.rc_context():
        matplotlib.use("agg")
        yield
    plt.close("all")


@pytest.fixture
def published(shell):
    """What a notebook would store: run a function inside an IPython shell and return its display outputs."""

    def run(function, *args, **kwargs):
        with capture_output() as captured:
            function(*args, **kwargs)
        return [(output.data, output.metadata) for output in captured.outputs]

    return run


def parabola():
    fig, axes = plt.subplots()
    axes.plot(np.arange(5), np.arange(5) ** 2)
    return fig


@pytest.fixture
def stored(published):
    """What a notebook stores for a parabola in the style of the book: data and metadata, and the picture."""
    plots.use_style()
    [(data, metadata)] = published(plots.show, parabola(), alt="A parabola\n  through the origin.")
    return data, metadata, Image.open(io.BytesIO(base64.b64decode(data["image/png"])))


def test_show_publishes_a_png_once_with_its_alternative_text_where_each_reader_looks(stored):
    data, metadata, image = stored
    assert image.format == "PNG"
    assert data["text/plain"] == "Figure: A parabola through the origin."
    assert metadata["image/png"]["alt"] == "A parabola through the origin."
    assert metadata["needs_background"] == metadata["image/png"]["needs_background"] == "light"
    assert plt.get_fignums() == []  # it is closed, so that it is not shown twice


@pytest.mark.parametrize("alt", ["", "  \n", None, 3])
def test_show_refuses_a_figure_without_alternative_text(alt):
    with pytest.raises(ValueError, match="alternative text"):
        plots.show(parabola(), alt=alt)
    with pytest.raises(TypeError, match="alt"):
        plots.show(parabola())


def test_the_same_figure_gives_the_same_bytes_without_date_or_version_at_twice_the_width_shown(stored, published):
    data, metadata, image = stored
    [(again, _)] = published(plots.show, parabola(), alt="A parabola.")
    assert again["image/png"] == data["image/png"]
    assert set(image.info) == {"dpi"}
    assert image.width == 2 * metadata["image/png"]["width"]


def test_a_figure_has_a_solid_white_paper_and_readable_ink(stored):
    *paper, opacity = stored[2].convert("RGBA").getpixel((0, 0))
    assert opacity == 255  # legible whatever the page behind it
    assert min(paper) > 200
    ink = matplotlib.colors.to_rgb(matplotlib.rcParams["text.color"])
    assert contrast(ink, np.array(paper) / 255) > 7


def contrast(one, other):
    """The contrast ratio of WCAG 2.1."""

    def luminance(colour):
        colour = np.asarray(colour)
        linear = np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4)
        return linear @ [0.2126, 0.7152, 0.0722]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_lines_take_the_colours_of_okabe_and_ito_in_order():
    plots.use_style()
    _, axes = plt.subplots()
    drawn = [axes.plot([0, 1])[0].get_color() for _ in plots.COLOURS]
    assert drawn == list(plots.COLOURS)
    assert {plots.BLUE, plots.ORANGE, plots.GREEN} <= set(drawn[:3])


def rectangles(svg):
    """Each box of the map, by its text, with the colour that fills it."""
    space = "{http://www.w3.org/2000/svg}"
    found = {}

    def visit(element, fill):
        fill = element.get("fill", fill)
        for box, text in itertools.pairwise(element):
            if (box.tag, text.tag) == (f"{space}rect", f"{space}text"):
                found[text.text] = box.get("fill", fill)
        for child in element:
            visit(child, fill)

    visit(ElementTree.fromstring(svg), None)
    return found


def test_the_map_needs_no_style_sheet_and_its_text_can_be_read_on_its_boxes():
    svg = plots.transformer_map(["attention", "residual"]).svg
    assert not re.search(r"<style|style=|var\(|<script|href", svg)  # what renderers of notebooks remove
    [ink] = set(re.findall(r'<text [^>]*fill="([^"]+)"', svg))
    fills = set(rectangles(svg).values())
    assert len(fills) == 2
    for fill in fills:
        assert contrast(matplotlib.colors.to_rgb(ink), matplotlib.colors.to_rgb(fill)) > 7
    for line in set(re.findall(r'stroke="(#[^"]+)"', svg)):  # on a white page and on JupyterLab's dark one
        assert min(contrast(matplotlib.colors.to_rgb(line), page) for page in ((1, 1, 1), (0.07, 0.07, 0.07))) > 3


def test_the_map_highlights_any_part_and_any_list_of_parts():
    assert plots.transformer_map(["tokens", "sampling"]).words.endswith("Highlighted: tokens, sampling.")
    assert plots.transformer_map("residual").words.endswith("Highlighted: residual stream.")
    assert plots.transformer_map("norm").svg.count('class="lit ') == 3
    assert plots.transformer_map([]).words.endswith("Highlighted: nothing.")


def test_the_map_refuses_an_unknown_part_and_lists_the_known():
    with pytest.raises(ValueError, match=r"it has \['alignment', 'attention'"):
        plots.transformer_map("zzz")
