"""The first page: a figure that runs a model, the map, the chapters with their questions, counts of what is checked.

What a chapter says of itself (title, question, time) is read from its notebook, and every count from its registry.
"""

import base64
import html
import json
import re
import tomllib
from pathlib import Path

from docutils.nodes import make_id
from docutils.utils.smartquotes import smartyPants
from mathllm_exercises import bank

from mathllm import reference
from mathllm.figures import widgets

QUESTION = re.compile(r"^\*([^*]+)\*$", re.MULTILINE)
TIME = re.compile(r"\b(?:Plan|Reading\s+time:|Time:)\s+([^.;]+)[.;]")
PART = re.compile(r'<g data-name="[^"]+" class="([^"]+)">.*?</g>', re.DOTALL)
# Where a part of the map leads, if not to the first chapter of its own list in map.svg
LEADS = {"loss": "cross_entropy", "feed_forward": "transformer", "unembedding": "similarity", "sampling": "inference"}
LEADS |= {"position": "attention", "tokens": "training"}
FIRST = {"word": "mar", "layer": 0, "head": 0, "shown": "weights"}


def chapters(book: Path) -> list[dict]:
    """Name, title, question and time of each notebook, as its first cells say them."""
    found = []
    for path in sorted((book / "notebooks").glob("[0-9][0-9]_*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"][:3]
        text = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
        parts = {"title": re.search(r"^# (.+)$", text, re.MULTILINE), "question": QUESTION.search(text)}
        parts["time"] = TIME.search(text)
        found.append({"name": path.stem} | {key: " ".join(m[1].split()) if m else "" for key, m in parts.items()})
    return found


def contents(listed: list[dict]) -> str:
    """The chapters as a list: title, question, time."""
    items = []
    for chapter in listed:
        number, title = chapter["name"][:2], html.escape(chapter["title"])
        question = html.escape(smartyPants(chapter["question"]), quote=False)
        items.append(
            f'<li><span class="book-number">{int(number)}</span><div>'
            f'<a class="book-chapter" href="notebooks/{chapter["name"]}.html">{title}</a>'
            f"<p>{question}</p><small>{chapter['time']}</small></div></li>"
        )
    return f'<ol class="book-chapters">{"".join(items)}</ol>'


def exercises(listed: list[dict]) -> str:
    """The exercises that answer, chapter by chapter, for the script that finds the next one (progress.js)."""
    answering = [card for card in bank.records() if card["graded"] and card["kind"] != "text"]
    found = []
    for chapter in listed:
        cards = [
            {"id": card["id"], "title": card["title"], "place": make_id(card["title"])}
            for card in answering
            if card["id"].startswith(chapter["name"][:2])
        ]
        found.append({"name": chapter["name"], "cards": cards})
    text = json.dumps(found).replace("<", r"\u003c")
    return f'<script type="application/json" id="book-exercises">{text}</script>'


def linked_map(listed: list[dict]) -> str:
    """The map of a language model, each part a link to the chapter that explains it."""
    pages = {chapter["name"][3:]: chapter["name"] for chapter in listed}

    def link(part):
        keys = part[1].split()
        slug = LEADS.get(keys[0]) or next((key for key in keys if key in pages), "")
        return f'<a href="notebooks/{pages[slug]}.html">{part[0]}</a>' if slug in pages else part[0]

    linked = PART.sub(link, widgets.read("map.svg")).replace('role="img"', 'role="group"')
    return f'<div class="book-map">{linked}</div>'


def figure(book: Path) -> str:
    """The names model as one ES module within the page, because a page opened as a file cannot import one."""
    weights = base64.b64encode((book / "_data" / "names_model.bin").read_bytes()).decode()
    start = f"names.render({{ model: standing({{ weights, ...{json.dumps(FIRST)} }}), "
    start += 'el: document.getElementById("names-model") });'
    return (
        f'<style>{widgets.read("widgets.css")}</style><div id="names-model"><noscript>The model runs in JavaScript, '
        f'which this browser does not run.</noscript></div><script type="module">{widgets.module("names_model.js")}\n'
        f'const weights = "{weights}";\n{start}</script>'
    )


def counts(book: Path) -> dict:
    """How many exercises there are, and how much of what was checked."""
    calls = tomllib.loads((book / "other_libraries.toml").read_text(encoding="utf-8"))
    rows, exercises = reference.rows(), bank.records()
    return {
        "values": len(rows),
        "wrong": sum(not row.agrees for row in rows),
        "gradients": len(json.loads((book / "_data" / "gradients.json").read_text(encoding="utf-8"))),
        "calls": len(calls["call"]) + len(calls["part"]),
        "exercises": sum(record["graded"] for record in exercises),
        "checked": sum(record["kind"] != "text" for record in exercises),
    }


def raw(text: str) -> str:
    """HTML as a block of MyST."""
    return f"````{{raw}} html\n{text}\n````"


def fill(app, docname, source):
    """Put all of this into the first page."""
    if docname != "index":
        return
    book = Path(app.srcdir)
    start, listed = [], []
    for chapter in chapters(book):
        (start if chapter["name"].startswith("00_") else listed).append(chapter)
    here = "*Run* at the top of a chapter opens that chapter in this browser, with nothing to install."
    there = "`make lab` opens all chapters in JupyterLab, with real word vectors and texts."
    parts = {
        "start": "\n".join(f"notebooks/{chapter['name']}" for chapter in start),
        "chapters": "\n".join(f"notebooks/{chapter['name']}" for chapter in listed),
        "run": here if app.tags.has("lite") else there,
        "figure": raw(figure(book)),
        "map": raw(linked_map(listed)),
        "contents": raw(contents(listed) + exercises(listed)),
        **{name: f"{count:,}" for name, count in counts(book).items()},
    }
    source[0] = re.sub(r"\{\{(\w+)\}\}", lambda mark: parts[mark[1]], source[0])


def setup(app):
    app.connect("source-read", fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
