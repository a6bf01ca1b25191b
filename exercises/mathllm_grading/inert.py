"""What a graded notebook may carry into somebody's browser: text, and pictures that are nothing but pictures.

The formgrader shows learners' notebooks on the instructor's own Jupyter server, where a script could do all that the
instructor can. So nothing active survives grading: outputs are rebuilt from plain text and bitmaps, what a text answer
renders to is cleaned, and files that a browser would open as a page are renamed.
"""

import html
import re
from pathlib import Path

import bleach
from jinja2 import pass_context
from nbconvert.filters import strip_ansi
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbformat import NotebookNode

__all__ = ["inert_outputs", "markdown2html", "picture", "plain", "rename_active_files"]

PICTURES = ("image/png", "image/jpeg", "image/gif")
MAX_OUTPUT = 200_000  # characters of text shown from one cell
MAX_OUTPUTS = 500
MAX_LINES = 1_000
CUT = "... the rest of the output is left out ...\n"
NOT_SHOWN = re.compile("[\x00-\x08\x0b-\x1f\x7f]")  # control characters, but for the tab and the newline
TAGS = bleach.ALLOWED_TAGS | {
    "br", "dd", "del", "details", "div", "dl", "dt", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "img", "p", "pre",
    "span", "sub", "summary", "sup", "table", "tbody", "td", "th", "thead", "tr", "u",
}  # fmt: skip
INERT_FILES = {
    "", ".csv", ".gif", ".ipynb", ".jpeg", ".jpg", ".json", ".md", ".npy", ".npz", ".png", ".py", ".toml", ".tsv",
    ".txt",
}  # fmt: skip


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


@pass_context
def markdown2html(context, source):
    """nbconvert's filter of this name, with a clean result: no script, no style, no form, no picture from elsewhere."""
    attachments = context.get("cell", {}).get("attachments", {})
    try:
        renderer = IPythonRenderer(escape=False, attachments=attachments, exclude_anchor_links=True)
        rendered = MarkdownWithMath(renderer=renderer).render(source)
    except Exception:  # a picture that is not attached, nesting without end
        rendered = f"<pre>{html.escape(source)}</pre>"
    return bleach.clean(rendered, tags=TAGS, attributes=_allowed, protocols=["http", "https", "mailto", "data"])


def _allowed(tag, name, value):
    """Whether an attribute may stay."""
    if (tag, name) == ("a", "href"):
        return re.match(r"https?://|mailto:|#", value) is not None
    if (tag, name) == ("img", "src"):
        kind, _, data = value.removeprefix("data:").partition(";base64,")
        return value.startswith("data:") and picture(kind, data)
    if (tag, name) in {("div", "class"), ("span", "class")}:  # coloured code
        return re.fullmatch("highlight|[a-z][a-z0-9]?", value) is not None
    return (tag, name) in {("a", "title"), ("img", "alt"), ("img", "title"), ("ol", "start")}


def rename_active_files(folder):
    """Give every file of a submission that a browser would open as a page (HTML, SVG, …) the ending .txt as well."""
    renamed = []
    for path in sorted(Path(folder).rglob("*")):
        if path.is_file() and path.suffix.lower() not in INERT_FILES:
            renamed.append(path.rename(path.with_name(path.name[:200] + ".txt")))
    return renamed
