"""From observations to points: the one way by which an answer is judged, for the learner and for the grader.

draw() makes the cases of an item, read() turns what came back into observations, mark() applies the checks and looks
through the bank of known mistakes. None of it runs or touches the answer.
"""

import copy
from dataclasses import dataclass
from itertools import repeat

from . import codec, kernel_side
from .compare import agree, numeric, rounded, show
from .item import Check, Failure, Item, Observation
from .verdict import UNANSWERED, AssessedCheck, Verdict

__all__ = [
    "Marks", "Outcome", "advice", "details", "draw", "known_mistakes", "mark", "nothing", "observe_all", "points_line",
    "read", "text",
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
    remarks: tuple[str, ...] = ()  # what is said of a right answer

    @property
    def points(self):
        """The points earned, between 0 and the item's points."""
        return float(sum(outcome.points for outcome in self.outcomes))


def draw(item, rng):
    """The cases of an item, one list for each check; [None] for a value item, which is looked at and not called."""
    return [check.draw(rng) if item.calls else [None] for check in item.checks]


def observe_all(answer, cases):
    """Evaluate an answer on drawn cases in this process: what the kernel does when a submission is graded."""
    flat = [case for group in cases for case in group]
    return kernel_side.observe(answer, None if None in flat else flat)


def read(encoded, cases):
    """Decode observations, in the grouping of the cases. What cannot be decoded becomes an error observation."""
    encoded = iter(encoded)
    return [[_observation(next(encoded, None)) for _ in group] for group in cases]


def _observation(data):
    try:
        if isinstance(data, dict) and "error" in data:
            names, message = data["error"], data.get("message", "")
            if isinstance(names, list) and names and all(isinstance(name, str) for name in [*names, message]):
                return Observation(error=tuple(name[:80] for name in names[:20]), message=_one_line(message))
        elif isinstance(data, dict) and "value" in data:
            after = codec.decode(data.get("after", ["list"]))
            return Observation(value=codec.decode(data["value"]), inputs_after=tuple(after))
    except (codec.CodecError, TypeError, ValueError) as error:
        return Observation(error=("CodecError",), message=_one_line(str(error)))
    return Observation(error=("CodecError",), message="no value came back")


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
    failed = {i for i, outcome in enumerate(outcomes) if outcome.failure}
    mistakes = _named(observations, failed, item, bank or known_mistakes(item, cases, numbers)) if failed else ()
    return Marks(item, outcomes, mistakes, answered)


def known_mistakes(item, cases, numbers=None):
    """What each of an item's known mistakes does with drawn cases: (sentence, observations, which checks it fails)."""
    numbers, found = numbers or {}, []
    if isinstance(item.checks[0], AssessedCheck):  # these name their mistakes themselves
        return [(m.sentence, read(observe_all(m.make(), cases), cases), {0}) for m in item.mistakes]
    for mistake in item.mistakes:
        theirs = read(observe_all(mistake.make if item.calls else mistake.make(**numbers), cases), cases)
        outcomes = _outcomes(item, cases, theirs, numbers)
        found.append((mistake.sentence, theirs, {i for i, outcome in enumerate(outcomes) if outcome.failure}))
    return found


def _assessed(item, observation):
    """The marks of an answer that is assessed as a whole."""
    (check,) = item.checks
    if observation.error:
        verdict = Verdict(0, f"raised {observation.error[0]}: {observation.message}")
    else:
        verdict = check.assess(observation.value)
    failure = Failure(verdict.reason) if verdict.reason else None
    outcome = Outcome(check, failure, verdict.share)
    answered = not _unanswered(observation) and verdict.reason != UNANSWERED
    said = {"mistakes": verdict.replies} if failure else {"remarks": verdict.replies}
    return Marks(item, (outcome,), answered=answered, **said)


def _unanswered(observation):
    return observation.error[0] == "NotImplementedError" if observation.error else _empty(observation.value)


def _empty(value):
    return value is None or value is Ellipsis


def _outcomes(item, cases, observations, numbers):
    failures = [
        _first_failure(item.expected, check, group, seen, numbers)
        for check, group, seen in zip(item.checks, cases, observations, strict=True)
    ]
    for i, check in enumerate(item.checks):
        others = [o for j, group in enumerate(observations) if j != i for o in group]
        if check.needs_value and failures[i] is None and all(o.error or _empty(o.value) for o in others):
            failures[i] = Failure("does not count, because the answer returns no value for any good input")
    return tuple(Outcome(check, failure) for check, failure in zip(item.checks, failures, strict=True))


def _first_failure(expected, check, cases, observations, numbers):
    for number, (case, observation) in enumerate(zip(cases, observations, strict=True)):
        call = (lambda: expected(**numbers)) if case is None else (lambda c=case: expected(*copy.deepcopy(c)))
        reason = check.judge(call, case, observation)
        if reason is None:
            continue
        public = case is not None and number < len(check.public)
        if case is None:  # a value is not given away by its check
            reason = _value_reason(observation, reason, rounded(call(), observation.value, check.atol))
        return Failure(reason, case, public)
    return None


def _value_reason(observation, reason, too_few_decimals):
    if observation.error:
        return f"{observation.error[0]}: {observation.message}"
    if _empty(observation.value):
        return "no answer yet"
    if reason.startswith("expected shape"):
        return reason
    verdict = "right, but has too few decimals" if too_few_decimals else "not the answer"
    return f"{show(observation.value)} is {verdict}"


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


def _alike(a, b, check):
    """Whether two observations are the same behaviour. An int may stand for a float; float32 and float64 differ."""
    if a.error or b.error:
        return a.error[:1] == b.error[:1]
    rtol = max(check.rtol, 1e-6) if check.rtol else 0.0  # a check that counts decimals has an absolute tolerance
    same = agree(b.value, a.value, rtol, max(check.atol, 1e-9))
    floats = {str(array.dtype) for o in (a, b) if (array := numeric(o.value)) is not None and array.dtype.kind == "f"}
    return same and len(floats) < 2 and agree(list(b.inputs_after), list(a.inputs_after), 1e-6, 1e-9)


def text(marks, private=False):
    """A report as plain text. private=True shows no case but the public ones: for grades, whose cases are secret."""
    item = marks.item
    lines = [f"{item.title} ({item.id}){f': {points_line(marks)}' if item.graded else ''}"]
    if not marks.answered:
        return f"{lines[0]}\n  {nothing(marks)}"
    for outcome, detail in details(marks, private):
        earned = f" ({outcome.points:g} of {outcome.check.points:g})" if item.graded else ""
        lines.append(f"  {'✗' if outcome.failure else '✓'} {outcome.check.name}{earned}")
        lines += [f"      {line}" for line in detail]
    return "\n".join([*lines, *(f"  → {sentence}" for sentence in [*marks.mistakes, *advice(marks)])])


def nothing(marks):
    """What is said of an answer that is not there."""
    return f"no answer yet{' (nothing was returned)' if marks.item.calls else ''}"


def advice(marks):
    """What to do about failures that are shown without an explanation and are no known mistake."""
    if marks.remarks:
        return list(marks.remarks)
    failures = sum(outcome.failure is not None for outcome in marks.outcomes)
    return ["Begin with the first ✗: the others often go with it."] if failures > 1 and not marks.mistakes else []


def points_line(marks):
    """The points earned, in words."""
    total = marks.item.points
    return f"{marks.points:g} of {total:g} point{'' if total == 1 else 's'}"


def details(marks, private=False):
    """Each outcome with its lines of explanation: the first failure is explained, one thing at a time."""
    first = next((outcome for outcome in marks.outcomes if outcome.failure), None)
    for outcome in marks.outcomes:
        yield outcome, _explain(outcome.failure, marks.item, private) if outcome is first else []


def _explain(failure, item, private):
    """A failure in a line or two: the call, and what was wrong with its result."""
    if private and failure.case is not None and not failure.public:
        return ["fails for inputs that were drawn for you alone"]
    call = [] if failure.case is None else [f"{item.answer}({', '.join(show(part) for part in failure.case)})"]
    return [*call, failure.reason]
