"""An exercise made of its two halves: the text, which the builder compiles into bank.json, and the checks in `checks/`.

A record of bank.json has what the text says: card, hints, rubric, solution, and each known mistake as an edit of the
solution (`edits`), as another program (`code`) or as a value (`value`). All of it is run as a cell of a notebook is.
"""

import json
import warnings
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

import mathllm as ml

from . import choosing, derivation, ordering, recorded
from .checks import Checks, module, rules
from .item import Item, Mistake, namespace, values

__all__ = ["BANK", "edited", "effort", "make", "records", "shared_out"]

BANK = Path(__file__).with_name("bank.json")
SMALL = (1e-12, 1e-15, 1e-10, 1e-9, 1e-8, 1e-6)  # what learners add where a number may be 0
CARD = ("id", "title", "task", "difficulty", "minutes", "source", "answer", "hints", "references", "masked", "graded")


def records():
    """What the texts say of every exercise, in the order of the book."""
    return json.loads(BANK.read_text(encoding="utf-8"))


def make(record) -> Item:
    """The exercise with this record."""
    if "solution" not in record:  # in the learners' edition
        return recorded.make(record)
    rule = rules(record["id"])
    checks = _checks(record, rule)
    kind = "gradient" if record["kind"] == "function" and checks.of_gradient else record["kind"]
    card = {name: record[name] for name in CARD}
    checks = _assessed(record) or checks
    points = effort(record["difficulty"], record["minutes"])
    earned = shared_out(points, [check.points for check in checks])
    criteria = [criterion for _, criterion in record["rubric"]]
    right = rule.expected or (_answer(record, record.get("expected", record["solution"])) if kind != "text" else None)
    return Item(
        kind=kind,
        expected=right,
        checks=tuple(replace(check, points=part) for check, part in zip(checks, earned, strict=True)),
        mistakes=tuple(_mistake(record, entry) for entry in record["mistakes"]),
        numbers=rule.numbers,
        rubric=list(zip(shared_out(points, [weight for weight, _ in record["rubric"]]), criteria, strict=True)),
        broken=_answer(record, record["broken"]) if record.get("broken") else None,
        **card,
    )


def effort(stars, minutes):
    """The points of an exercise: half a point for each minute, more with each further star.

    >>> effort(1, 4), effort(2, 10), effort(3, 30)
    (2, 6, 22)
    """
    return max(1, round(minutes * (3 + stars) / 8))


def shared_out(points, weights):
    """Whole points for parts of these weights, at least one for each.

    >>> shared_out(6, [2, 2, 2, 1, 1]), shared_out(2, [1, 1, 1])
    ([2, 1, 1, 1, 1], [1, 1, 1])
    """
    parts = [1 for _ in weights]
    for _ in range(points - len(parts) if parts else 0):
        owed = [weight * points / sum(weights) - part for weight, part in zip(weights, parts, strict=True)]
        parts[owed.index(max(owed))] += 1
    return parts


def _checks(record, rule):
    checks = Checks()
    if rule.write:
        rule.write(checks)
        if record["kind"] != "value":
            checks.leaves_inputs(1, checks[0].cases, public=checks[0].public, rtol=1e-6)
    elif record["kind"] == "value":
        checks.append(values(1, **record["precision"]))
    return checks


def _assessed(record):
    """The check of a kind whose answers are assessed as a whole, or None."""
    if record["kind"] == "lines":
        slips = [(_mistake(record, entry).make(), entry["sentence"]) for entry in record["mistakes"]]
        return [derivation.check(record, slips)]
    kinds = {"order": ordering, "choice": choosing}
    return [kinds[record["kind"]].check(record)] if record["kind"] in kinds else None


def _mistake(record, entry):
    code = entry.get("code") or edited(record["solution"], entry.get("edits", ()))
    if "value" in entry:
        code = f"{record['answer']} = {entry['value']}"
    numbers = SMALL if "EPSILON" in code else SMALL[:1]
    make, *others = [_answer(record, code.replace("EPSILON", str(number))) for number in numbers]
    return Mistake(make, entry["sentence"], entry["points"], tuple(others))


def edited(source, edits):
    """The source with each (old, new) replaced in turn, wherever it occurs."""
    for old, new in edits:
        source = source.replace(old, new)
    return source


def _answer(record, code):
    """What the code gives: a function to be called, or for a value a function of the learner's own numbers."""
    if record["kind"] in ("value", "order", "lines", "choice"):
        return lambda **own: _run(record, code, own)
    defined = cache(lambda: _run(record, code, {}))

    def answer(*args):
        with np.errstate(all="ignore"):
            return defined()(*args)

    return answer


def _run(record, code, own):
    """Run the code, and return what it gives to the name of the answer."""
    mine = namespace(own)
    names = dict(vars(module(record["id"].split(".")[1]) or object))
    names |= {"np": np, "ml": ml, "mine": mine, "numbers": lambda id: mine, "print": lambda *shown: None, **own}
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(code, record["id"], "exec"), names)
    return names[record["answer"]]
