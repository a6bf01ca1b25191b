"""check(): immediate feedback for the learner, in JupyterLab, on the command line and in the browser."""

import html
import json
import os
import re
import sys

import numpy as np

from . import kernel_side, marking
from .own_numbers import learner, own_numbers
from .registry import item

__all__ = ["Report", "check"]

_generator = np.random.default_rng  # of the cases that check() draws: others each time

STYLE = """
.mathllm-report { border-left: 4px solid #888; padding: .4em .9em; margin: .3em 0; max-width: 50em; }
.mathllm-report.mathllm-pass { border-color: #2a9d4e; }
.mathllm-report.mathllm-fail { border-color: #d1603d; }
.mathllm-report.mathllm-report ul { list-style: none; margin: .4em 0; padding: 0; }
.mathllm-report.mathllm-report pre { margin: .2em 0 .4em 1.5em; white-space: pre-wrap; word-break: normal;
  overflow-wrap: anywhere; background: rgba(128, 128, 128, .13); color: inherit; padding: .3em .5em; }
.mathllm-report .mathllm-mistake { margin: .4em 0 0; font-weight: 600; }
"""


class Report:
    """What check() found. It shows itself as the last line of a cell; .score() shows it and gives the points."""

    def __init__(self, marks):
        self.marks = marks

    @property
    def passed(self):
        """Whether every check passed."""
        return bool(self.marks.outcomes) and all(outcome.failure is None for outcome in self.marks.outcomes)

    @property
    def mistakes(self):
        """The sentences of the known mistakes that the answer behaves like."""
        return self.marks.mistakes

    @property
    def case(self):
        """The inputs on which the answer failed, those that the report shows; () if there are none."""
        failures = [outcome.failure for outcome in self.marks.outcomes if outcome.failure]
        return next((failure.case for failure in failures if failure.case and not failure.pending), ())

    def score(self):
        """Show the report and return the points as a plain float.

        nbgrader's Validate quotes stderr, and calls anything else below full points "partial credit": so it is told.
        """
        if os.environ.get("NBGRADER_VALIDATING") and not self.passed:
            print(self, file=sys.stderr)
            return self.marks.points
        try:
            from IPython.display import display
        except ImportError:
            print(self)
        else:
            display(self)
        return self.marks.points

    def __repr__(self):
        return marking.text(self.marks)

    def _repr_html_(self):
        marks, entry = self.marks, self.marks.item
        state = "mathllm-pass" if self.passed else "mathllm-fail" if marks.answered else "mathllm-open"
        points = f" · {marking.points_line(marks)}" if entry.graded else ""
        parts = [f"<strong>{html.escape(entry.title)}</strong>{points}"]
        if not marks.answered:
            parts.append(f"<br>{marking.nothing(marks)}")
        else:
            parts.append(f"<ul>{''.join(_row(outcome, lines) for outcome, lines in marking.details(marks))}</ul>")
            parts += [f'<p class="mathllm-mistake">{_prose(sentence)}</p>' for sentence in marks.mistakes]
            parts += [f"<p>{_prose(sentence)}</p>" for sentence in marking.advice(marks)]
        return f'<style>{STYLE}</style><div class="mathllm-report {state}">{"".join(parts)}</div>'


def _row(outcome, lines):
    detail = f"<pre>{html.escape(chr(10).join(lines))}</pre>" if lines else ""
    return f"<li>{marking.sign(outcome)} {html.escape(outcome.check.name)}{marking.not_yet(outcome)}{detail}</li>"


def _prose(sentence):
    return re.sub("`([^`]+)`", r"<code>\1</code>", html.escape(sentence))


def check(id, answer):
    """Try an answer on the documents' numbers and on fresh random ones, and say what holds and what does not.

        check("01.vectors.norm", norm)

    A wrong answer is explained, never raised; no score is kept.

    Raises: UnknownReferenceError for an id that no exercise has, ValueError for a text exercise.
    """
    entry = item(id)
    if entry.kind == "text":
        raise ValueError(f"{id!r} is a written answer: a person grades it, so check() cannot test it")
    if entry.calls and (answer is None or answer is Ellipsis):
        answer = kernel_side.NOT_DEFINED
    elif entry.calls and not callable(answer):
        answer = _refusal(TypeError(f"the answer should be a function, but its type is {type(answer).__name__}"))
    elif entry.calls and kernel_side.is_ours(answer):
        answer = _refusal(RuntimeError(f"this is mathllm's own {entry.answer}; the exercise is to write it yourself"))
    cases = marking.draw(entry, _generator())
    with kernel_side.asking(entry.masked):
        observations = marking.read(marking.observe_all(answer, cases), cases)
    report = Report(marking.mark(entry, cases, observations, own_numbers(entry, learner())))
    check.case = report.case
    if os.environ.get("MATHLLM_FEEDBACK") and report.marks.answered and not report.passed:
        _note(report)
    return report


check.case = ()  # the inputs on which an answer failed last


def _note(report):
    """Append what went wrong to the learner's own file, which the learner may choose to send; nothing sends it."""
    marks = report.marks
    failed = next(outcome for outcome in marks.outcomes if outcome.failure)
    note = {"item": marks.item.id, "check": failed.check.name, "sentences": list(marks.mistakes)}
    if not marks.mistakes:
        note["unknown"] = failed.failure.reason
    with open(os.environ["MATHLLM_FEEDBACK"], "a", encoding="utf-8") as file:
        file.write(json.dumps(note, ensure_ascii=False) + "\n")


def _refusal(error):
    """A function in place of an answer that cannot be one: it says so."""

    def stand_in(*_):
        raise error

    return stand_in
