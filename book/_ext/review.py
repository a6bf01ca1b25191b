"""The cards of the page "Review", made of the chapters: their questions, and the rows of their formula sheets.

The page shows all of them; review.js asks what is due. The same cards are a file that Anki reads: cards.txt.
"""

import hashlib
import itertools
import json
import re
from pathlib import Path

import landing
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

SHEET = re.compile(r"^\| formula \| in words \| in code \|\n\|[-|]+\|\n((?:\|.*\n?)+)", re.MULTILINE)
CELL = re.compile(r"(?<!\\)\|")
LINK = re.compile(r"\[([^\]\[]*)\]\([^)\s]*\)")  # on a card, its words are enough
FOLD = re.compile(r"</?details[^>]*>|<summary>.*?</summary>")
ASKED = re.compile(r"\*\*(?:Predict|Choose)\.\*\* ")
PAGE = "cards.txt"
ABOUT = "#separator:tab\n#html:true\n#deck:The Mathematics of Large Language Models\n#tags column:3\n"
# Anki sets what stands in \( … \) and \[ … \].
FOR_ANKI = MarkdownIt("commonmark").use(
    dollarmath_plugin, renderer=lambda formula, mode: rf"\[{formula}\]" if mode["display_mode"] else rf"\({formula}\)"
)


def cards(book: Path) -> list[dict]:
    """All cards in the order of the book: chapter, id, front and back, in Markdown."""
    made = []
    for chapter in (found for found in landing.chapters(book) if not found["name"].startswith("00_")):
        notebook = json.loads((book / "notebooks" / f"{chapter['name']}.ipynb").read_text(encoding="utf-8"))
        for sides in [*questions(notebook), *formulas(notebook)]:
            front, back = (LINK.sub(r"\1", side) for side in sides)
            id = f"{chapter['name'][:2]}-{hashlib.sha256(front.encode()).hexdigest()[:8]}"
            made.append({"chapter": chapter, "id": id, "front": front, "back": back})
    return made


def questions(notebook: dict) -> list[tuple[str, str]]:
    """The questions on the page of a chapter, with the answers that its run computed."""
    found = []
    for asked, answer in itertools.pairwise(notebook["cells"]):
        if ASKED.match("".join(asked["source"])) and answer["cell_type"] == "code":
            (output,) = answer["outputs"]
            question, folded = "".join(asked["source"]), "".join(output["data"]["text/markdown"])
            found.append((ASKED.sub("", question, count=1), FOLD.sub("", folded).strip()))
    return found


def formulas(notebook: dict) -> list[tuple[str, str]]:
    """The rows of a chapter's formula sheet: the words ask for the formula."""
    text = "\n\n".join("".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "markdown")
    found = []
    for row in (row for sheet in SHEET.findall(text) for row in sheet.splitlines()):
        formula, words, code = (cell.strip() for cell in CELL.split(row)[1:4])
        found.append((f"Write the formula: {words}", formula + (f"\n\nIn code: {code}" if code else "")))
    return found


def fill(app, docname, source):
    """Put the cards into their page, chapter by chapter."""
    if docname != "review":
        return
    made, parts, last = cards(Path(app.srcdir)), [], None
    for card in made:
        chapter = card["chapter"]
        if chapter is not last:
            parts.append(f"## [{int(chapter['name'][:2])}. {chapter['title']}](notebooks/{chapter['name']}.ipynb)")
            last = chapter
        sides = (f"::::{{container}} book-{side}\n{card[side]}\n::::" for side in ("front", "back"))
        parts.append("\n".join([":::::{container} book-card", f":name: card-{card['id']}", *sides, ":::::"]))
    source[0] = source[0].replace("{{count}}", str(len(made))).replace("{{cards}}", "\n\n".join(parts))


def add_script(app, pagename, templatename, context, doctree):
    """What asks the cards, for this page alone: it sets their formulas, too."""
    if pagename == "review":
        app.add_js_file(None, body="window.MathJax.startup = { typeset: false };", priority=900)
        app.add_js_file("review.js", defer="defer", priority=900)  # after those of every page


def write_deck(app, exception):
    """The same cards as a file to import into Anki."""
    if exception is None:
        lines = []
        for card in cards(Path(app.srcdir)):
            sides = (FOR_ANKI.render(card[side]).replace("\t", " ").replace("\n", " ") for side in ("front", "back"))
            lines.append("\t".join([*sides, card["chapter"]["name"]]))
        (Path(app.outdir) / PAGE).write_text(ABOUT + "\n".join(lines) + "\n", encoding="utf-8")


def setup(app):
    app.connect("source-read", fill)
    app.connect("html-page-context", add_script)
    app.connect("build-finished", write_deck)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
