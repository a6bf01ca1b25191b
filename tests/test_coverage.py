"""Every number the documents print is recomputed in its chapter; every question in words is asked as an exercise.

The executed chapters compare each number with its row of the table: nbval runs their evidence cells again.
"""

import ast
import re
from fnmatch import fnmatchcase

import pytest
from mathllm_exercises import items
from package import ROOT

from mathllm import reference

CHAPTERS = {path.stem[:2]: path for path in sorted((ROOT / "book").glob("[0-9]*.md")) if path.stem[:2] != "00"}
CODE = re.compile(r"^```\{code-cell\}.*?^```$", re.DOTALL | re.MULTILINE)
EVIDENCE = re.compile(r"^:evidence: (\S+) = (.*)$", re.MULTILINE)
QUOTED = re.compile(r"""["']([a-z0-9]+(?:\.[A-Za-z0-9_{}]+)+)["']""")
IDS = {row.id for row in reference.rows()}


def ids_in_code(text):
    r"""The ids of reference values that a chapter's code cells or their evidence name.

    Prose does not count; {…} is anything.

    >>> ids_in_code('"run.step2.rows"\n```{code-cell} python\nreference.check("run.step1.shape", (4,))\n```')
    {'run.step1.shape'}
    >>> len(ids_in_code('```{code-cell} python\nreference.check(f"primer.ch02.table.band{n}", label)\n```'))
    5
    >>> ids_in_code('```{code-cell} python\n:evidence: run.step1.shape = (4,)\nx\n```')
    {'run.step1.shape'}
    """
    cells = CODE.findall(text)
    names = {re.sub(r"\{\w+\}", "*", name) for cell in cells for name in QUOTED.findall(cell)}
    named = {id for id in IDS if any(fnmatchcase(id, name) for name in names)}
    return named | {id for cell in cells for id, _ in EVIDENCE.findall(cell)}


RECOMPUTED = {number: ids_in_code(path.read_text(encoding="utf-8")) for number, path in CHAPTERS.items()}


@pytest.mark.parametrize("number", CHAPTERS)
def test_every_value_of_a_written_chapter_is_recomputed_in_a_chapter(number):
    done = set().union(*RECOMPUTED.values())
    missing = [row.id for row in reference.rows(number) if row.kind != "text" and row.id not in done]
    assert not missing


def is_quoted(expression):
    """Whether an expression is a number or a word, or a list of them, and computes nothing.

    >>> is_quoted("[0.7, 1.0]"), is_quoted("3072 * 768"), is_quoted("ml.norm([3, 4])")
    (True, False, False)
    """
    try:
        return ast.literal_eval(expression) is not None
    except ValueError:
        return False


@pytest.mark.parametrize("number", CHAPTERS)
def test_only_what_others_measured_or_chose_is_quoted(number):
    evidence = EVIDENCE.findall(CHAPTERS[number].read_text(encoding="utf-8"))
    quoted = {id for id, expression in evidence if is_quoted(expression)}
    assert {reference.row(id).basis for id in quoted} <= {"literature", "setting"}


@pytest.mark.parametrize("number", CHAPTERS)
def test_every_question_in_words_of_a_written_chapter_is_an_exercise(number):
    asked = {id for item in items() if item.kind == "text" for id in item.references}
    missing = [row.id for row in reference.rows(number) if row.kind == "text" and row.id not in asked]
    assert not missing


def test_items_rest_on_rows_that_exist():
    assert {id for item in items() for id in item.references} <= IDS
