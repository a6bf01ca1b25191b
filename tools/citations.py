"""Citations of a chapter: {cite}`KEY` becomes authors and year, linked to the paper.

    {cite}`vaswani2017attention`       (Vaswani et al., 2017)
    {cite:t}`vaswani2017attention`     Vaswani et al. (2017)

Several keys are separated by commas; references.bib has the keys.
"""

import functools
import re
from pathlib import Path

from pybtex.database import parse_file
from pybtex.richtext import Text

CITATION = re.compile(r"\{cite(:[pt])?\}`([^`]*)`")
PLACES = {"url": "{}", "doi": "https://doi.org/{}", "eprint": "https://arxiv.org/abs/{}"}


@functools.cache
def entries(path: Path) -> dict:
    """The entries of a bibliography by key."""
    return parse_file(path).entries if path.exists() else {}


def cited(path: Path, role: str | None, keys: str) -> str:
    """The Markdown that stands for a role of a text. Raises: LookupError for a key that is not in the bibliography."""
    papers = [entry(path, key.strip()) for key in keys.split(",")]
    if role == ":t":
        return ", ".join(linked(paper, f"{authors(paper)} ({paper.fields['year']})") for paper in papers)
    return "(" + "; ".join(linked(paper, f"{authors(paper)}, {paper.fields['year']}") for paper in papers) + ")"


def entry(path: Path, key: str):
    """The entry of this key. Raises: LookupError."""
    if key not in entries(path):
        raise LookupError(f"{path.name} has no entry {key!r}")
    return entries(path)[key]


def linked(paper, words: str) -> str:
    """Words as a link to the paper, with its title as the tooltip; without an address, the words alone.

    >>> from pybtex.database import Entry
    >>> print(linked(Entry("misc", {"title": 'Notes "on" it', "url": "https://ada.org"}), "Ada"))
    [Ada](https://ada.org "Notes 'on' it")
    >>> linked(Entry("misc", {"title": "Notes"}), "Ada")
    'Ada'
    """
    for field, address in PLACES.items():
        if field in paper.fields:
            title = str(Text.from_latex(paper.fields["title"])).replace('"', "'")
            return f'[{words}]({address.format(paper.fields[field])} "{title}")'
    return words


def authors(paper) -> str:
    """Whom a text names: one author, two, or the first of many."""
    first, *more = paper.persons["author"]
    if not more:
        return last_name(first)
    if len(more) == 1 and more[0].last_names != ["others"]:
        return f"{last_name(first)} & {last_name(more[0])}"
    return f"{last_name(first)} et al."


def last_name(person) -> str:
    return " ".join(map(str, person.rich_prelast_names + person.rich_last_names))
