"""Questions on the page: a Markdown cell that asks, and a cell without visible code that holds the folded answer.

    :::{predict} What is the cosine of *cat* and *dog*?       :::{choose} Which vector is longer?
    :answer: ml.cosine_similarity(cat, dog)                   :answer: 1 if ml.norm(cat) > ml.norm(dog) else 2
    :format: .3f                                              :option: *cat*
    The lengths are divided out.                              :option: *dog*
    :::                                                       :::

What stands before the options belongs to the question, what stands behind them says why. The answer is computed where
the question stands: it cannot drift from what the chapter shows.
"""

import ast
import re

from nbformat.v4 import new_code_cell, new_markdown_cell
from notebook_text import SourceError

KINDS = {"predict": {"answer", "format", "tolerance"}, "choose": {"answer", "option"}}
OPTION = re.compile(r":([a-z]+):\s*(.*)")
HIDDEN = {"jupyter": {"source_hidden": True}, "tags": ["remove-input"]}


def cells(path, cell, id, prose) -> list:
    """The two cells of a question; `prose` resolves what a text refers to. Raises: SourceError."""
    asked, options, why = parts(path, cell)
    choices = [prose(choice) for choice in options.get("option", [])]
    question = f"**{cell.kind.capitalize()}.** {prose(asked)}"
    if choices:
        question += "\n\n" + "\n".join(f"{n}. {choice}" for n, choice in enumerate(choices, 1))
    given = {"why": prose(why), "form": options.get("format", [""])[0], "options": choices}
    call = ", ".join([options["answer"][0], *(f"{name}={value!r}" for name, value in given.items() if value)])
    code = f"from mathllm.figures.questions import answer\n\nanswer({call})"
    metadata = HIDDEN | ({"tolerance": options["tolerance"][0]} if "tolerance" in options else {})
    return [new_markdown_cell(question, id=id), new_code_cell(code, id=f"{id}-answer", metadata=metadata)]


def parts(path, cell):
    """The question, its options (each a list of what its lines say), and the reason."""
    lines = cell.source.splitlines()
    found = [OPTION.fullmatch(line) for line in lines]
    places = [n for n, match in enumerate(found) if match]
    options = {}
    for n in places:
        options.setdefault(found[n][1], []).append(found[n][2])
    if not places or places != list(range(places[0], places[-1] + 1)) or "answer" not in options:
        raise SourceError(path, cell.line, "a question has its words, then `:answer: EXPRESSION` and other options")
    if options.keys() - KINDS[cell.kind] or (cell.kind == "choose" and len(options.get("option", [])) < 2):
        raise SourceError(path, cell.line, "a prediction may have :format:, a choice has :option: twice or more")
    try:
        ast.parse(f"({options['answer'][0]})", mode="eval")
    except SyntaxError:
        raise SourceError(path, cell.line, f"the answer {options['answer'][0]!r} is no expression") from None
    asked, why = "\n".join(lines[: places[0]]).strip(), "\n".join(lines[places[-1] + 1 :]).strip()
    if not asked:
        raise SourceError(path, cell.line, "a question needs words")
    return asked, options, why
