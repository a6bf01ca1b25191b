"""What a graded notebook may carry into a browser: text and bitmaps, whatever its kernel sent and its author wrote."""

import nbformat
import pytest
from bs4 import BeautifulSoup
from mathllm_grading.inert import highlight_code, inert_outputs, markdown2html, plain
from nbformat.v4 import new_code_cell, new_notebook

DOT = "iVBORw0KGgo="


def rendered(source, attachments=None):
    return markdown2html({"cell": {"attachments": attachments or {}}}, source)


@pytest.mark.parametrize(
    "output",
    [
        {},
        {"output_type": "stream"},
        {"output_type": "stream", "name": 5, "text": ["x"]},
        {"output_type": "stream", "name": ["stdout"], "text": ["a"]},
        {"output_type": "nonsense"},
        {"output_type": ["nonsense"], "anything": []},
        {"output_type": "error", "ename": 5, "evalue": None, "traceback": 7},
        {"output_type": "error", "ename": "\ud800", "evalue": "\x00", "traceback": ["\x1b[31m\ud800", 5]},
        {"output_type": "display_data", "data": "text/plain", "metadata": 5},
        {"output_type": "execute_result", "execution_count": "x", "data": {"text/plain": 5, "image/png": "<script>"}},
        {"output_type": "display_data", "data": {"text/html": "<script", "application/json": [[]], "image/svg+xml": 5}},
    ],
)
def test_what_a_kernel_sends_becomes_a_valid_output_without_anything_active(output):
    notebook = new_notebook(cells=[new_code_cell(outputs=inert_outputs([output]))])
    nbformat.validate(notebook)
    assert "script" not in nbformat.writes(notebook)
    assert "\\u001b" not in nbformat.writes(notebook)


def test_no_control_character_of_a_terminal_stays():
    """U+009B begins an escape sequence, as ESC and [ do."""
    controls = "".join(map(chr, [*range(32), *range(127, 160)]))
    assert plain(f"{controls}red") == "\t\nred"


def test_code_is_shown_in_colours_unless_a_line_would_take_minutes():
    assert "<span" in highlight_code("x = 1")
    assert highlight_code("y<z\n" + "a." * 100_000).startswith("<pre>y&lt;z\na.a.")
    assert highlight_code("y<z\n" + 1_000 * (" " * 190 + "\n") + "a").startswith("<pre>y&lt;z\n  ")


def test_text_and_bitmaps_stay():
    data = {"text/plain": "a dot", "text/html": "<b>", "image/png": DOT}
    outputs = [
        {"output_type": "stream", "name": "stderr", "text": "careful"},
        {"output_type": "display_data", "data": data},
    ]
    stream, shown = inert_outputs(outputs)
    assert (stream.name, stream.text) == ("stderr", "careful")
    assert shown.data == {"text/plain": "a dot", "image/png": DOT}


def test_outputs_without_end_have_one():
    long = {"output_type": "stream", "text": "x" * 150_000}
    assert len(str(inert_outputs([long] * 100))) < 300_000
    many = inert_outputs([{"output_type": "stream", "text": "x"}] * 80_000)
    assert len(many) < 1_000
    assert "left out" in many[-1].text


@pytest.mark.parametrize(
    "source",
    [
        "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "<svg onload=alert(1)></svg>",
        "<b onclick='a()'>x</b>", "[x](javascript:alert(1))", "[x](JAVA&#83;cript:alert(1))",
        "[x](data:text/html,<script>)", "[x](page.html)", "![x](https://example.org/seen.png)",
        "![x](data:image/svg+xml;base64,PHN2Zz4=)", "<a href='//example.org'>x</a>", "<iframe src='x'></iframe>",
        "<form action='/'><input></form>", "<style>*{}</style>", "<p style='color: red'>x</p>",
        "<math><mtext></form><form><mglyph><style></math><img src onerror=a()>",
        "<noscript><p title='</noscript><img src=x>'>",
    ],
)  # fmt: skip
def test_a_text_renders_to_nothing_active(source):
    page = BeautifulSoup(rendered(f"one\n\n{source}\n\ntwo"), "html.parser")
    assert not page.find_all(["script", "svg", "iframe", "form", "input", "style", "math", "noscript"])
    assert {name for tag in page.find_all(True) for name in tag.attrs} <= {"alt"}
    assert page.find("p").text == "one"


def test_an_ordinary_text_stays_as_it_is():
    page = rendered("# Why\n\n**bold**, `a<b`, [here](https://example.org) and $a<b$\n\n| a |\n|---|\n| 1 |\n\n> said")
    for part in ("<h1>", "<strong>bold", "<code>a&lt;b</code>", 'href="https://example.org"', "$a&lt;b$", "<td>1"):
        assert part in page


def test_what_looks_like_a_tag_is_shown_as_text():
    assert rendered("if x<y then z>w").strip() == "<p>if x&lt;y then z&gt;w</p>"
    assert rendered("a list<int> of <b>ids</b>").strip() == "<p>a list&lt;int&gt; of <b>ids</b></p>"
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in rendered("<script>alert(1)</script>")


def test_a_picture_that_is_attached_is_shown_and_one_that_is_not_is_text():
    assert f'src="data:image/png;base64,{DOT}"' in rendered("![dot](attachment:d.png)", {"d.png": {"image/png": DOT}})
    assert "![dot](attachment:d.png)" in rendered("![dot](attachment:d.png)")
