"""From observations to points: the one way by which an answer is judged, for the learner and for the grader.

draw() makes the cases of an item, read() turns what came back into observations, mark() applies the checks and looks
through the bank of known mistakes. None of these touches the learner's answer: check() runs it by observe_all().
"""

import copy
import re
from dataclasses import dataclass
from itertools import repeat

import numpy as np

from . import codec, kernel_side
from .compare import agree, agreed_decimals, form, is_rounded, other_brackets, show, tolerance, which_wrong
from .item import Check, Failure, Item, NotYet, Observation, raised
from .verdict import UNANSWERED, AssessedCheck, Verdict

__all__ = [
    "Marks", "Outcome", "advice", "calls", "details", "draw", "known_mistakes", "mark", "not_yet", "nothing",
    "observe_all", "points_line", "read", "sign", "text",
]  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """One check's result: passed, or the first failure."""

    check: Check
    failure: Failure | None
    share: float = 0.0  # of the points, for a failure that earns some

    @property
    def points(self):
        """The points earned."""
        return round(float(self.check.points) * (self.share if self.failure else 1.0), 2)


@dataclass(frozen=True)
class Marks:
    """The result of all checks of an item, and the sentences of the known mistakes it behaves like."""

    item: Item
    outcomes: tuple[Outcome, ...]
    mistakes: tuple[str, ...] = ()
    answered: bool = True
    unchanged: bool = False  # a repair that does what the printed function does
    remarks: tuple[str, ...] = ()  # what is said of a right answer

    @property
    def points(self):
        """The points earned, between 0 and the item's points."""
        return 0.0 if self.unchanged else float(sum(outcome.points for outcome in self.outcomes))


def draw(item, rng):
    """The cases of an item, one list for each check; [None] for a value item, which is looked at and not called.

    Checks that name the same cases share one list: the answer is called once on each case, and each check judges that.
    """
    drawn = {}
    for check in item.checks:
        if check.source not in drawn:
            drawn[check.source] = check.draw(rng) if item.calls else [None]
    return [drawn[check.source] for check in item.checks]


def calls(cases):
    """The drawn cases in a row, those that checks share only once."""
    return [case for group in _distinct(cases) for case in group]


def _distinct(cases):
    return {id(group): group for group in cases}.values()


def observe_all(answer, cases, limit=True):
    """Evaluate an answer on drawn cases in this process: what the kernel does when a submission is graded."""
    flat = calls(cases)
    return kernel_side.observe(answer, None if None in flat else flat, limit)


def read(encoded, cases):
    """Decode observations, in the grouping of the cases. What cannot be decoded becomes an error observation."""
    encoded = iter(encoded)
    seen = {id(group): [_observation(next(encoded, None)) for _ in group] for group in _distinct(cases)}
    return [seen[id(group)] for group in cases]


def _observation(data):
    try:
        if isinstance(data, dict) and "error" in data:
            names, message = data["error"], data.get("message", "")
            if isinstance(names, list) and names and all(isinstance(name, str) for name in [*names, message]):
                error = tuple(_one_line(name)[:80] for name in names[:20])
                return Observation(error=error, message=_one_line(message), **_beside(data))
        elif isinstance(data, dict) and "value" in data:
            after = codec.decode(data.get("after", ["list"]))
            return Observation(value=codec.decode(data["value"]), inputs_after=tuple(after), **_beside(data))
    except (codec.CodecError, TypeError, ValueError) as error:
        return Observation(error=("CodecError",), message=_one_line(str(error)))
    return Observation(error=("CodecError",), message="no value came back")


def _beside(data):
    """What came with a value or an error: where and how it was raised, what was printed, what was called."""
    line, printed, calls = data.get("line", ""), data.get("printed", ""), data.get("calls", [])
    return {
        "line": _one_line(line) if isinstance(line, str) else "",
        "own": data.get("own") is True,
        "printed": printed[:300] if isinstance(printed, str) else "",
        "calls": tuple(_one_line(str(name))[:80] for name in calls[:20]) if isinstance(calls, list) else (),
    }


def _one_line(message):
    return " ".join(message[:300].split())


def mark(item, cases, observations, numbers=None, bank=None):
    """Judge observations of an answer by the item's checks.

    numbers: the learner's own numbers, for a value item that draws them   bank: known_mistakes(item, cases, numbers),
    where several answers are judged by the same cases
    """
    if isinstance(item.checks[0], AssessedCheck):
        return _assessed(item, observations[0][0])
    numbers = numbers or {}
    answered = any(not _unanswered(seen) for group in observations for seen in group)
    outcomes = _outcomes(item, cases, observations, numbers)
    failed = _failed(outcomes)
    mistakes = ()
    if failed and answered:  # an answer that is not there yet has no mistake
        bank = bank or known_mistakes(item, cases, numbers)
        mistakes = _named(observations, failed, item, bank)
        if not mistakes and not item.calls:
            mistakes = _rounded(observations[0][0], item, bank, numbers)
    return Marks(item, outcomes, mistakes, answered, bool(failed) and _unchanged(item, cases, observations))


def _unchanged(item, cases, observations):
    if item.broken is None:
        return False
    printed = read(observe_all(item.broken, cases, limit=False), cases)
    return all(
        all(map(_alike, *parts, repeat(check)))
        for *parts, check in zip(observations, printed, item.checks, strict=True)
    )


def known_mistakes(item, cases, numbers=None):
    """What each of an item's known mistakes does with drawn cases: (sentence, observations, which checks it fails).

    Behind them stand the same mistakes with other numbers for EPSILON.
    """
    numbers, found = numbers or {}, []
    if isinstance(item.checks[0], AssessedCheck):  # these name their mistakes themselves
        return [(m.sentence, read(observe_all(m.make(), cases), cases), {0}) for m in item.mistakes]
    makes = [(m.sentence, m.make) for m in item.mistakes] + [(m.sentence, o) for m in item.mistakes for o in m.others]
    for sentence, make in makes:
        theirs = read(observe_all(make if item.calls else make(**numbers), cases, limit=False), cases)
        outcomes = _outcomes(item, cases, theirs, numbers)
        found.append((sentence, theirs, _failed(outcomes)))
    return found


def _failed(outcomes):
    return {i for i, outcome in enumerate(outcomes) if sign(outcome) == "✗"}


def _assessed(item, observation):
    """The marks of an answer that is assessed as a whole."""
    (check,) = item.checks
    verdict = Verdict(0, _unfit(observation)) if observation.error else check.assess(observation.value)
    failure = Failure(verdict.reason) if verdict.reason else None
    outcome = Outcome(check, failure, verdict.share)
    answered = not _unanswered(observation) and verdict.reason != UNANSWERED
    said = {"mistakes": verdict.replies} if failure else {"remarks": verdict.replies}
    return Marks(item, (outcome,), answered=answered, **said)


def _unfit(observation):
    """Why an answer that is looked at, and not called, is no value."""
    return f"the answer is {observation.message}" if observation.error[0] == "Unreadable" else raised(observation)


def _unanswered(observation):
    return observation.error[0] == "NotImplementedError" if observation.error else _empty(observation.value)


def _empty(value):
    return value is None or value is Ellipsis


def _outcomes(item, cases, observations, numbers):
    failures = [
        _first_failure(item.expected, check, group, seen, numbers)
        for check, group, seen in zip(item.checks, cases, observations, strict=True)
    ]
    right = any(f is None and check.about == "value" for f, check in zip(failures, item.checks, strict=True))
    for i, check in enumerate(item.checks):
        others = [o for j, group in enumerate(observations) if j != i for o in group]
        if failures[i] and failures[i].pending and right and not any(map(_no_value, observations[i])):
            failures[i] = None
        elif check.about == "refusal" and failures[i] is None and all(map(_no_value, others)):
            failures[i] = Failure("the answer returns no value for any good input", pending=True)
    return tuple(Outcome(check, failure) for check, failure in zip(item.checks, failures, strict=True))


def _no_value(observation):
    return bool(observation.error) or _empty(observation.value)


def _first_failure(expected, check, cases, observations, numbers):
    """The first case that is judged wrong; if there is none, the first that cannot be judged yet."""
    pending = None
    for case, observation in zip(cases, observations, strict=True):
        call = (lambda: expected(**numbers)) if case is None else (lambda c=case: expected(*copy.deepcopy(c)))
        reason = check.judge(call, case, observation)
        if reason is None:
            continue
        if case is None:  # a value is not given away by its check
            return _wrong_value(call(), observation, check)
        if not isinstance(reason, NotYet):
            return Failure(reason, case, observation=observation)
        pending = pending or Failure(reason, case, pending=True, observation=observation)
    return pending


def _wrong_value(expected, observation, check):
    if observation.error:
        return Failure(_unfit(observation), observation=observation)
    if _empty(observation.value):
        return Failure("no answer yet", observation=observation)
    return Failure(f"{show(observation.value)} is not the answer", more=_near_miss(expected, observation.value, check))


def _near_miss(expected, got, check):
    """What is right about a wrong value, in words."""
    rtol = tolerance(check.rtol, got)
    if other_brackets(expected, got, rtol, check.atol):
        if isinstance(expected, str):
            return "the text is right, but give it without brackets"
        brackets = {0: "one number, without brackets", 1: "one flat list"}.get(
            np.ndim(expected), "the brackets of the card"
        )
        return f"the numbers are right, but not the brackets: give {brackets}"
    if decimals := agreed_decimals(expected, got, check.atol):
        return f"it agrees with the answer to {decimals} decimals; give more of them"
    if wrong := which_wrong(expected, got, rtol, check.atol):
        return wrong
    return f"expected {form(expected)}, got {form(got)}" if form(got) != form(expected) else ""


def _named(observations, failed, item, bank):
    """The sentences of the known mistakes that explain the failures, in the order of the checks.

    A mistake can explain them if every check it fails has failed too. It explains those on which it gives what the
    answer gave: all of them, or at least the first failure, since a second mistake may have its part in the others.
    While the first failure is unexplained, nothing is said of the others: they may be its consequences.
    """
    explaining = []
    for sentence, theirs, wrong in bank:
        if wrong and wrong <= failed:
            same = {i for i in wrong if all(map(_alike, observations[i], theirs[i], repeat(item.checks[i])))}
            explaining.append((same != wrong, same, sentence))
    explained, sentences = set(), []
    for partly, same, sentence in sorted(explaining, key=lambda entry: (entry[0], -len(entry[1]))):
        if (min(failed) in same - explained) if partly else not same <= explained:
            sentences.append((min(same), sentence))
            explained |= same
    return tuple(sentence for _, sentence in sorted(sentences)) if min(failed) in explained else ()


def _rounded(observation, item, bank, numbers):
    """The sentence of the mistake whose value is the answer, rounded; () where other values could be meant."""
    known = [(None, item.expected(**numbers)), *((sentence, theirs[0][0].value) for sentence, theirs, _ in bank)]
    meant = {sentence for sentence, value in known if is_rounded(observation.value, value)}
    return tuple(meant) if len(meant) == 1 and None not in meant else ()


def _alike(a, b, check):
    """Whether two observations are the same behaviour. An int may stand for a float; float32 and float64 differ.

    Two errors are the same if both come from a `raise` of the answers, or if NumPy or Python says the same of both.
    """
    if a.error or b.error:
        words = [re.findall("[a-z]+", observation.message) for observation in (a, b)]  # without sizes
        return a.error[:1] == b.error[:1] and a.own == b.own and (a.own or words[0] == words[1])
    rtol = max(check.rtol, 1e-6) if check.rtol else 0.0  # a check that counts decimals has an absolute tolerance
    atol = max(check.atol, 1e-9) if check.atol else 0.0  # a check of tiny numbers has none
    same = agree(b.value, a.value, rtol, atol)
    floats = {_float_type(o.value) for o in (a, b)} - {None}
    if check.about == "dtype" and _float_type(a.value) != _float_type(b.value):
        return False
    return same and len(floats) < 2 and agree(list(b.inputs_after), list(a.inputs_after), 1e-6, 1e-9)


def _float_type(value):
    dtype = getattr(value, "dtype", None)
    return str(dtype) if dtype is not None and dtype.kind == "f" else None


def text(marks):
    """A report as plain text."""
    item = marks.item
    lines = [f"{item.title} ({item.id}){f': {points_line(marks)}' if item.graded else ''}"]
    if not marks.answered:
        return f"{lines[0]}\n  {nothing(marks)}"
    for outcome, detail in details(marks):
        earned = f" ({outcome.points:g} of {outcome.check.points:g})" if item.graded and not marks.unchanged else ""
        lines.append(f"  {sign(outcome)} {outcome.check.name}{earned}{not_yet(outcome)}")
        lines += [f"      {line}" for line in detail]
    return "\n".join([*lines, *(f"  → {sentence}" for sentence in [*marks.mistakes, *advice(marks)])])


def sign(outcome):
    """✓ for a check that is passed, ✗ for one that is not, – for one that cannot be judged yet."""
    if outcome.failure is None:
        return "✓"
    return "–" if outcome.failure.pending else "✗"


def not_yet(outcome):
    """What stands beside a check that cannot be judged yet."""
    return ": not judged yet, the values come first" if sign(outcome) == "–" else ""


def nothing(marks):
    """What is said of an answer that is not there."""
    if not marks.item.calls:
        return "no answer yet"
    seen = [outcome.failure.observation for outcome in marks.outcomes if outcome.failure]
    printed = any(observation and observation.printed for observation in seen)
    return f"no answer yet (nothing was returned{'; return the result, printing it is not enough' if printed else ''})"


def advice(marks):
    """What to do about failures that are shown without an explanation and are no known mistake."""
    if marks.remarks:
        return list(marks.remarks)
    failed = [outcome.failure for outcome in marks.outcomes if sign(outcome) == "✗"]
    said = ["This still does what the printed function does, so it earns nothing yet."] if marks.unchanged else []
    if len(failed) > 1 and not marks.mistakes:
        said.append("Begin with the first ✗: the others may have the same cause.")
    calls = failed[0].observation.calls if failed and failed[0].observation else ()
    if calls and not marks.mistakes:
        named = ", ".join(f"`{name}`" for name in calls)
        said.append(f"It calls your own {named}. If the mistake may be there, try it with mathllm's function instead.")
    return said


def points_line(marks):
    """The points earned, in words."""
    total = marks.item.points
    return f"{marks.points:g} of {total:g} point{'' if total == 1 else 's'}"


def details(marks):
    """Each outcome with its lines of explanation: the first failure is explained, one thing at a time."""
    failed = [outcome for outcome in marks.outcomes if outcome.failure]
    first = min(failed, key=lambda outcome: outcome.failure.pending, default=None)
    for outcome in marks.outcomes:
        yield outcome, _explain(outcome.failure, marks) if outcome is first else []


def _explain(failure, marks):
    """A failure in a few lines: the call, what was wrong with its result, and what the answer printed."""
    more = f": {failure.more}" if failure.more and not marks.mistakes else ""
    lines = [] if failure.case is None else _call(marks.item.answer, failure.case)
    lines.append(failure.reason + more)
    if failure.observation and failure.observation.printed:
        cut = "…" if len(failure.observation.printed) >= kernel_side.MAX_MESSAGE else ""
        lines += ["your function printed:", *(failure.observation.printed + cut).splitlines()]
    return lines


def _call(name, case):
    """The call as one line; long inputs are named by their shape, and can be had from `check.case`."""
    shown = [show(part) for part in case]
    if sum(map(len, shown)) <= 160 and not any("..." in part or "…" in part for part in shown):
        return [f"{name}({', '.join(shown)})"]
    shapes = [
        f"<shape {part.shape}>" if isinstance(part, np.ndarray) and part.size > 3 else show(part, 40) for part in case
    ]
    return [f"{name}({', '.join(shapes)}); try it: {name}(*check.case)"]
