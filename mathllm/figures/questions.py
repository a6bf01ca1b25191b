"""Questions that a reader answers on the page, without Python: the answer, computed in the notebook, is folded."""

from collections.abc import Sequence
from html import escape
from typing import Any

from .plots import _publish


def answer(value: Any, why: str = "", *, form: str = "", options: Sequence[str] = ()) -> None:
    """Show the folded answer of a question: `value` as it was just computed, and why.

    form: how the value is written, ".3f" for three decimals; else a number has four significant digits
    options: what the question offers to choose from; `value` is then the number of one of them, from 1, or its text

    On the page, book/_static/questions.js puts a field or buttons in front of it. Outside a notebook it is printed.

    Raises: ValueError if no option is right.

    >>> answer(28 / 870**0.5, "The lengths are divided out.", form=".3f")
    Answer: 0.949. The lengths are divided out.
    >>> answer("dog", options=["cat", "dog"])
    Answer: (2) dog.
    >>> answer(1, "It is read later.", options=["It may.", "It may not."])
    Answer: (1) It may. It is read later.
    """
    number = _chosen(value, options) if options else None
    shown = options[number - 1] if options else _written(value, form)
    stop = "" if shown.endswith((".", "!", "?")) else "."
    result = f"({number}) {shown}" if options else shown
    plain = f"Answer: {result}{stop} {why}".strip()
    expected = f'data-choice="{number}"' if options else f'data-answer="{escape(shown)}"'
    text = f"**{result}**{stop} {why}".strip()
    folded = f'<details class="book-answer" {expected}>\n<summary><u>Answer</u></summary>\n\n{text}\n\n</details>'
    _publish({"text/markdown": folded}, plain)


def _chosen(value, options):
    """The number, from 1, of the right option."""
    if value in options:
        return options.index(value) + 1
    if isinstance(value, int) and 1 <= value <= len(options):
        return value
    raise ValueError(f"the answer {value!r} is none of the options {list(options)}")


def _written(value, form):
    try:
        return format(value, form or ".4g")
    except (TypeError, ValueError):
        return str(value)
