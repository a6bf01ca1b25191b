"""What a graded notebook may carry into somebody's browser: text, and pictures that are nothing but pictures.

The formgrader shows learners' notebooks on the instructor's own Jupyter server, where a script could do all that the
instructor can. So nothing active survives grading: outputs are rebuilt from plain text and bitmaps, what a text answer
renders to is cleaned, and files that a browser would open as a page are not put beside the notebook.
"""

import html
import re

import nh3
from jinja2 import pass_context
from nbconvert.filters import Highlight2HTML, strip_ansi
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbformat import NotebookNode

__all__ = ["INERT_FILES", "highlight_code", "inert_outputs", "markdown2html", "picture", "plain"]

PICTURES = ("image/png", "image/jpeg", "image/gif")
MAX_OUTPUT = 200_000  # characters of text shown from one cell
MAX_OUTPUTS = 500
MAX_LINES = 1_000
MAX_LINE = 1_000  # characters of a line of code that is shown in colours
CUT = "... the rest of the output is left out ...\n"
NOT_SHOWN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # control characters, but for the tab and the newline
ATTRIBUTES = {"a": {"href", "title"}, "img": {"src", "alt", "title"}, "ol": {"start"}}
ATTRIBUTES |= {"div": {"class"}, "span": {"class"}}  # of coloured code
INERT_FILES = {"", ".csv", ".json", ".md", ".npy", ".npz", ".py", ".toml", ".tsv", ".txt"}
INERT_FILES |= {".gif", ".jpeg", ".jpg", ".png"}


def plain(text, limit=None):
    """Text without escape sequences, control characters and lone surrogates; "" for what is no text.

    >>> plain("\\x1b[31mred\\x1b[0m \\ud800\\x00"), plain(5)
    ('red ?', '')
    """
    if not isinstance(text, str):
        return ""
    return NOT_SHOWN.sub("", strip_ansi(text[:limit])).encode("utf-8", "replace").decode()


def picture(kind, data):
    """Whether this is a bitmap in base64 (an SVG may contain a script)."""
    return kind in PICTURES and isinstance(data, str) and re.fullmatch(r"[A-Za-z0-9+/=\s]*", data) is not None


def inert_outputs(outputs):
    """The outputs of a cell rebuilt from text and bitmaps alone, whatever a kernel sent, up to a limit."""
    rebuilt, room = [], MAX_OUTPUT
    for output in outputs[:MAX_OUTPUTS]:
        rebuilt.append(_inert_output(output, room))
        room -= len(str({kind: part for kind, part in rebuilt[-1].items() if kind != "data"}))
        room -= len(rebuilt[-1].get("data", {}).get("text/plain", ""))
        if room <= 0:
            break
    if room <= 0 or len(outputs) > MAX_OUTPUTS:
        rebuilt.append(NotebookNode(output_type="stream", name="stdout", text=CUT))
    return rebuilt


def _inert_output(output, room):
    kind = output.get("output_type")
    if kind == "stream":
        name = "stderr" if output.get("name") == "stderr" else "stdout"
        text = plain(output.get("text"), room)
        if text.count("\n") > MAX_LINES:
            text = "\n".join(text.split("\n")[:MAX_LINES]) + f"\n{CUT}"
        return NotebookNode(output_type="stream", name=name, text=text)
    if kind == "error":
        lines = output.get("traceback")
        lines = [plain(line, room) for line in lines[:100]] if isinstance(lines, list) else []
        name, value = plain(output.get("ename"), 200), plain(output.get("evalue"), 2_000)
        return NotebookNode(output_type="error", ename=name, evalue=value, traceback=lines)
    data = output.get("data") if isinstance(output.get("data"), dict) else {}
    shown = {kind: content for kind, content in data.items() if picture(kind, content)}
    shown["text/plain"] = plain(data.get("text/plain"), room)
    return NotebookNode(output_type="display_data", data=shown, metadata={})


class _Renderer(IPythonRenderer):
    """HTML in a text is shown as text where it holds a tag that may not stay."""

    def block_html(self, html):
        return super().block_html(_as_text(html))

    def inline_html(self, html):
        return super().inline_html(_as_text(html))


def _as_text(source):
    names = re.findall(r"<[/!?\s]*([a-z][^\s/>]*)", source, re.IGNORECASE)
    return source if nh3.ALLOWED_TAGS.issuperset(map(str.lower, names)) else html.escape(source)


@pass_context
def markdown2html(context, source):
    """nbconvert's filter of this name, with a clean result: no script, no style, no form, no picture from elsewhere."""
    attachments = context.get("cell", {}).get("attachments", {})
    try:
        renderer = _Renderer(escape=False, attachments=attachments, exclude_anchor_links=True)
        rendered = MarkdownWithMath(renderer=renderer).render(source)
    except Exception:  # a picture that is not attached, nesting without end
        rendered = f"<pre>{html.escape(source)}</pre>"
    schemes = {"http", "https", "mailto", "data"}
    return nh3.clean(rendered, attributes=ATTRIBUTES, attribute_filter=_kept, url_schemes=schemes, link_rel=None)


def _kept(tag, name, value):
    """The value of an attribute that may stay, else None."""
    if name == "href":
        may_stay = re.match(r"https?://|mailto:|#", value)
    elif name == "src":
        kind, _, data = value.removeprefix("data:").partition(";base64,")
        may_stay = value.startswith("data:") and picture(kind, data)
    else:
        may_stay = name != "class" or re.fullmatch("highlight|[a-z][a-z0-9]?", value)
    return value if may_stay else None


def highlight_code(source, metadata=None):
    """nbconvert's filter of this name; where a line or a gap is long, without colours: they take time as its square."""
    if max(map(len, source.split("\n"))) > MAX_LINE or re.search(r"\s{100}", source):
        return f"<pre>{html.escape(source)}</pre>"
    return Highlight2HTML()(source, metadata=metadata)
