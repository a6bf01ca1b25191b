"""Exercises of the learners' edition: without solutions, with results of the model solution on the cases of the cards.

A record of such an exercise has, in place of the solution and the known mistakes,

    results: for each check of a function what it asks and, case by case, what the model solution returns, or the form
             of it, where several results are right
    form:    for a value, what can be said of it without saying it: "a number", "an array or list of shape (3,)"
    own:     the numbers of each learner of the class, under a digest of learner and exercise

So check() compares a function on the known cases only, and judges the form of a value. Grading judges the rest.
"""

import builtins
import hashlib
from dataclasses import replace
from functools import partial

import numpy as np

from . import choosing, codec, derivation, item
from .compare import form, show
from .item import Check, Item
from .verdict import UNANSWERED, AssessedCheck, Verdict, letters

__all__ = ["digest", "make", "record"]

CARD = ("id", "kind", "title", "task", "difficulty", "minutes", "source", "answer", "hints", "references", "masked")
COMPARED = ("values", "shape", "keeps_dtype", "leaves_inputs", "refuses")
LATER = "The form is right. Grading tells whether it is the answer, after you have handed it in."


def digest(learner, id):
    """The key of a learner's own numbers: it does not show who the learner is."""
    return hashlib.sha256(f"own numbers\n{learner}\n{id}".encode()).hexdigest()[:16]


# For the instructor: from an exercise with a solution to a record without one.


def record(full, entry, own):
    """The record for the learners' edition.

    full: the record in the bank   entry: its item   own: {learner's id: the learner's own numbers}
    """
    kept = {name: full[name] for name in CARD} | {"stub": full.get("stub"), "points": entry.points}
    kept |= {"masked": list(entry.masked), "kind": entry.kind}
    if entry.numbers:
        kept["own"] = {digest(learner, entry.id): codec.encode(numbers) for learner, numbers in own.items()}
    if entry.kind == "lines":
        return kept | {"derivation": full["derivation"]}
    if entry.kind == "order":
        return kept | {"lines": [{name: line[name] for name in ("label", "shown")} for line in full["lines"]]}
    if entry.kind == "choice":
        return kept | {"form": "a number" if choosing.on_a_scale(full["options"]) else "letters"}
    if entry.kind == "text":
        return kept
    if entry.calls:
        return kept | {"results": [found for check in entry.checks if (found := _results(entry, check))["cases"]]}
    return kept | {"form": form(entry.expected(**entry.own_numbers(np.random.default_rng(0))))}


def _results(entry, check):
    kind = {"gradient": "values"}.get(asked := check.judge.__qualname__.partition(".")[0], asked)
    kind = kind if kind in COMPARED else "form"
    drawn = check.draw(np.random.default_rng(0))[: len(check.public) or 2]
    results = [(codec.encode(list(case)), _result(entry.expected, case, kind)) for case in drawn]
    kept = [(case, result) for case, result in results if ("error" in result) == (kind == "refuses")]
    about = {"check": kind, "name": check.name, "points": check.points, "tolerance": [check.rtol, check.atol]}
    return about | {"cases": kept}


def _result(function, case, kind):
    try:
        value = function(*case)
    except Exception as error:
        known = (kind.__name__ for kind in type(error).__mro__ if hasattr(builtins, kind.__name__))
        return {"error": next(known)}
    return {"form": form(value)} if kind == "form" else {"value": codec.encode(value)}


# For the learner: from such a record to an item that check() can use.


def make(record):
    """The exercise with this record."""
    card = {name: record[name] for name in CARD} | {"graded": False}  # check() gives no points
    if record["kind"] == "text":
        return Item(rubric=[(record["points"], "")], **card)
    own = {key: codec.decode(numbers) for key, numbers in record["own"].items()} if "own" in record else None
    if "results" in record:
        return Item(checks=_compared(record), expected=_lookup(record["results"]), own=own, **card)
    check = AssessedCheck("the form", record["points"], None, None, assess=_judge(record))
    return Item(checks=(check,), expected=lambda **mine: None, own=own, **card)


def _compared(record):
    rest = record["points"] - sum(found["points"] for found in record["results"])
    checks = [_check(found) for found in record["results"]]
    return [replace(checks[0], points=checks[0].points + rest), *checks[1:]]


def _check(found):
    (rtol, atol), kind = found["tolerance"], found["check"]
    options = {"public": [tuple(codec.decode(case)) for case, _ in found["cases"]], "name": found["name"]}
    if kind == "form":
        forms = {codec.dumps(case): result["form"] for case, result in found["cases"]}
        return Check(found["name"], found["points"], None, partial(_same_form, forms), options["public"])
    if kind == "refuses":
        options["error"] = getattr(builtins, found["cases"][0][1]["error"])
    elif kind != "shape":
        options["rtol"] = rtol
    return replace(getattr(item, kind)(found["points"], **options), atol=atol)


def _same_form(forms, expected, case, observation):
    wanted, got = forms[_key(case)], form(observation.value)
    reason = None if got == wanted else f"expected {wanted}, got {got}: {show(observation.value)}"
    return item.raised(observation) or reason


def _key(case):
    return codec.dumps(codec.encode(list(case)))


def _lookup(results):
    """The model solution on the known cases."""
    known = {codec.dumps(case): result for found in results for case, result in found["cases"] if "value" in result}
    return lambda *case: codec.decode(known[_key(case)]["value"])


def _judge(record):
    if record["kind"] == "lines":
        return partial(derivation.assess, record["derivation"], ())
    if record["kind"] == "order" or record["form"] == "letters":
        return partial(_of_letters, record.get("lines", ()))
    return partial(_of_form, record["form"])


def _of_letters(lines, value):
    answer, known = letters(value), [line["label"] for line in lines]
    if not answer:
        return Verdict(0, UNANSWERED if value is ... else "the answer is letters in a string")
    if known and (unknown := [label for label in answer if label not in known]):
        return Verdict(0, f"there is no line {unknown[0]}")
    return Verdict(1.0, "", (LATER,))


def _of_form(wanted, value):
    if form(value) == wanted:
        return Verdict(1.0, "", (LATER,))
    reason = f"expected {wanted}, got {form(value)}: {show(value)}"
    return Verdict(0, UNANSWERED if value is ... or value is None else reason)
