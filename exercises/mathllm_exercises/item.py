"""An exercise is an item: one record that serves practice, grading and the site.

An item asks for one *answer* — a value, a function or a text — and knows how to judge it: by named checks that
carry points, and by a bank of known mistakes, each with the sentence that names it. A judge never touches the
answer itself. It sees *observations*: what the answer gave for each case, as plain data. So the same judge
serves the learner, whose answer runs next to it, and the grader, whose process no learner's code ever enters.

    Item(
        id="01.vectors.norm", kind="function", title="The length of a vector", difficulty=1, minutes=5,
        source="Primer, chapter 2", answer="norm",
        task="Write `norm(x)`: the length of a vector, and of each row of a stack of vectors.",
        expected=mathllm.norm,
        checks=(
            values(2, lambda rng: [(rng.normal(size=n),) for n in (1, 3, 50)], public=[(np.array([3.0, 4.0]),)]),
            values(1, lambda rng: [(rng.normal(size=(2, 3)),)], name="a stack of vectors"),
            keeps_dtype(1, public=[(np.ones(3, np.float32),)]),
        ),
        mistakes=(Mistake(lambda x: np.sum(x * x, axis=-1), "You forgot the square root.", score=0), ...),
        hints=("Pythagoras: square, add up, …",),
    )
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np

from .compare import difference, numeric, show, tolerance

__all__ = [
    "KINDS", "Check", "Failure", "Item", "Mistake", "NotYet", "Observation",
    "gradient", "keeps_dtype", "leaves_inputs", "raised", "refuses", "shape", "values",
]  # fmt: skip

KINDS = ("value", "function", "repair", "gradient", "text", "order", "lines", "choice")


@dataclass(frozen=True)
class Observation:
    """What an answer gave for one case: a value or an error, and the inputs as they were after the call."""

    value: object = None
    error: tuple[str, ...] = ()  # the exception's class and its base classes, by name
    message: str = ""
    inputs_after: tuple = ()
    line: str = ""  # of the learner's code, where it raised
    own: bool = False  # whether the learner's code raised the error on purpose
    printed: str = ""
    calls: tuple[str, ...] = ()  # names of the notebook's other functions that the answer calls


class NotYet(str):
    """Why a check cannot be judged while the values are wrong. It counts as soon as other values are right."""


@dataclass(frozen=True)
class Check:
    """A named check: it earns its points when every one of its cases is judged right.

    cases:  called with a random generator, returns a list of argument tuples, fresh at every call
    public: argument tuples that are always included and may be shown (the documents' own numbers)
    judge:  judge(expected, case, observation) -> None if right, else the reason in words; `expected()` computes
            the expected value of the case
    rtol, atol: when two values count as the same
    about:  "value"; "dtype", "inputs" and "refusal" say nothing of an answer that gives no right value elsewhere
    """

    name: str
    points: float
    cases: Callable | None
    judge: Callable
    public: Sequence[tuple] = ()
    rtol: float = 1e-9
    atol: float = 1e-12
    about: str = "value"

    @property
    def source(self):
        """Where its cases come from: the same for checks that are judged by the same calls of the answer."""
        return self.cases, id(self.public)

    def draw(self, rng):
        """All cases of the check, the public ones first. Every array is a fresh copy."""
        drawn = list(self.public) + (list(self.cases(rng)) if self.cases else [])
        return copy.deepcopy([tuple(case) for case in drawn])


@dataclass(frozen=True)
class Mistake:
    """A known mistake: a function that makes it, the sentence that names it, and the points it still earns.

    make has the answer's own signature; for a value item it is called with the item's numbers (or with nothing).
    others: functions that make it with other numbers for EPSILON (`bank.SMALL`)
    """

    make: Callable
    sentence: str
    score: float = 0.0
    others: tuple[Callable, ...] = ()


@dataclass(frozen=True)
class Failure:
    """Why a check failed: the reason in words and the case it failed on (None for a value item).

    pending:     the check is not judged yet, because the values are wrong
    observation: what the answer gave
    more:        what can be said as well, if no known mistake is named
    """

    reason: str
    case: tuple | None = None
    pending: bool = False
    observation: Observation | None = None
    more: str = ""


@dataclass(frozen=True)
class Item:
    """One exercise.

    id:         "NN.slug.name", chapter first
    kind:       "value", "function", "repair", "gradient" or "text"; "order", "lines" or "choice" (see `verdict`)
    task:       what is asked, in Markdown
    difficulty: 1, 2 or 3
    source:     document and section the exercise comes from ("ours" if it is ours)
    answer:     the name the learner defines
    expected:   the right function; for a value item a function of its numbers (as keywords) that returns the value
    checks:     built with values(), shape(), keeps_dtype(), leaves_inputs(), refuses(), gradient(); a value item has
                exactly one, so that no part of a value earns credit alone
    mistakes:   the bank of known mistakes
    hints:      up to three, unfolded one by one
    references: ids in reference_values.toml that the item rests on
    numbers:    numbers(rng) -> dict: the learner's own numbers, drawn from the learner's id
    rubric:     a text item's (points, criterion) pairs; shown to the grader alone
    masked:     names in mathllm that may not be called by the answer (by default the answer's own name)
    graded:     False for an item that is practised but not handed in
    broken:     what a repair begins with: an answer that does the same earns nothing
    own:        the numbers of the learners of a class under their digests, in place of `numbers` (see `recorded`)
    """

    id: str
    kind: str
    title: str
    task: str
    difficulty: int
    minutes: int
    source: str
    answer: str = ""
    expected: Callable | None = None
    checks: Sequence[Check] = ()
    mistakes: Sequence[Mistake] = ()
    hints: Sequence[str] = ()
    references: Sequence[str] = ()
    numbers: Callable | None = None
    rubric: Sequence[tuple[float, str]] = ()
    masked: Sequence[str] | None = None
    graded: bool = True
    broken: Callable | None = None
    own: Mapping | None = None

    def __post_init__(self):
        problem = _problem(self)
        if problem:
            raise ValueError(f"item {self.id!r}: {problem}")
        if self.masked is None:
            object.__setattr__(self, "masked", (self.answer,) if self.calls else ())

    @property
    def chapter(self):
        """The chapter's two digits."""
        return self.id.split(".")[0]

    @property
    def grade_id(self):
        """The id in nbgrader's spelling: hyphens for dots."""
        return self.id.replace(".", "-")

    @property
    def calls(self):
        """Whether the answer is a function to be called."""
        return self.kind in ("function", "repair", "gradient")

    @property
    def points(self):
        """The most the item earns."""
        parts = (points for points, _ in self.rubric) if self.kind == "text" else (c.points for c in self.checks)
        return float(sum(parts))

    def own_numbers(self, rng):
        """The numbers drawn with this generator, as a dict (empty if the item has none); lists of numbers as arrays."""
        drawn = self.numbers(rng) if self.numbers else {}
        return {name: _as_array(value) for name, value in drawn.items()}


def _as_array(value):
    array = numeric(value) if isinstance(value, list) else None
    return value if array is None else array


def _problem(item):
    """What is wrong with an item's record, or None."""
    names = [check.name for check in item.checks]
    if len(item.id.split(".")) != 3 or not item.id[:2].isdigit():
        return 'the id must read "NN.slug.name"'
    if item.kind not in KINDS:
        return f"kind {item.kind!r} is none of {', '.join(KINDS)}"
    if item.difficulty not in (1, 2, 3):
        return "difficulty is 1, 2 or 3"
    if len(item.hints) > 3:
        return "at most three hints"
    if item.kind == "text":
        return None if item.rubric and not item.checks else "a text item has a rubric and no checks"
    if not item.answer.isidentifier():
        return "answer must be the name the learner defines"
    if item.expected is None or not item.checks:
        return "expected and checks are needed"
    if len(set(names)) < len(names):
        return "two checks have the same name; give one of them name=…"
    if not item.calls and len(names) != 1:
        return f"an item of kind {item.kind} has exactly one check"
    if item.calls and any(check.cases is None and not check.public for check in item.checks):
        return "every check of a function needs cases"
    return None


# The factories. `cases` is a function of a random generator, `public` a list; both give argument tuples.


def values(points, cases=None, *, public=(), name="right values", rtol=1e-9, atol=1e-12, decimals=None):
    """The answer gives the expected values: to a relative tolerance, or at the `decimals` a document prints.

    For a value item: `values(2, decimals=3)` or `values(1)`, without cases.
    """
    if decimals is not None:
        rtol, atol = 0.0, 0.5 * 10.0**-decimals * (1 + 1e-9) + 1e-12

    def judge(expected, case, observation):
        close = tolerance(rtol, observation.value) if case is None else rtol
        return raised(observation) or difference(expected(), observation.value, close, atol)

    return Check(name, points, cases, judge, public, rtol, atol)


def shape(points, cases=None, *, public=(), name="right shape"):
    """The answer has the expected shape, whatever its values (all zeros in place of an answer do not count)."""

    def judge(expected, case, observation):
        wanted, got = numeric(expected()), numeric(observation.value)
        if raised(observation) or got is None:
            return raised(observation) or f"expected an array of shape {wanted.shape}, got {show(observation.value)}"
        if got.shape != wanted.shape:
            return f"expected shape {wanted.shape}, got shape {got.shape}"
        if not np.all(np.isfinite(got)) and np.all(np.isfinite(wanted)):
            return "the shape is right, but the values are not finite"
        return "the shape is right, but every entry is zero" if np.any(wanted) and not np.any(got) else None

    return Check(name, points, cases, judge, public)


def keeps_dtype(points, cases=None, *, public=(), name="keeps the dtype", rtol=1e-3):
    """float32 in, float32 out. Judged by itself; the points are given once values are right."""

    def judge(expected, case, observation):
        if reason := raised(observation):
            return NotYet(reason)
        wanted, got = np.asarray(expected()).dtype, getattr(observation.value, "dtype", None)
        if got is None:
            return f"expected an array of dtype {wanted}, got a {type(observation.value).__name__}"
        reason = difference(expected(), observation.value, rtol, 1e-6)
        if got != wanted:
            made = "; `np.sqrt(3)` and `np.zeros(3)` are float64, `3**0.5` is not" if got == np.float64 else ""
            return f"expected dtype {wanted}, got {got}{made}"
        return NotYet(reason) if reason else None

    return Check(name, points, cases, judge, public, rtol, 1e-6, about="dtype")


def leaves_inputs(points, cases=None, *, public=(), name="leaves its inputs alone", rtol=1e-9):
    """The answer changes none of its inputs. Judged by itself; the points are given once values are right."""

    def judge(expected, case, observation):
        if reason := raised(observation):
            return NotYet(reason)
        if difference(list(case), list(observation.inputs_after), 0.0, 0.0):
            return (
                "an input was changed by the call: `x += 1` and `x[0] = 1` write into the caller's array, "
                "also through its view `x[:]`; `x + 1` and `x.copy()` are new arrays"
            )
        reason = difference(expected(), observation.value, rtol)
        return NotYet(reason) if reason else None

    return Check(name, points, cases, judge, public, rtol, about="inputs")


def refuses(points, cases=None, error=ValueError, *, public=(), name="refuses bad input"):
    """Input that cannot be right is refused with `error` (or a class derived from it)."""

    def judge(expected, case, observation):
        if error.__name__ in observation.error:
            return None
        got = f"{observation.error[0]} was raised" if observation.error else f"you returned {show(observation.value)}"
        if observation.error[:1] == ("TooLong",):
            got = f"it {observation.message}"
        return f"this input should be refused with {error.__name__}, but {got}"

    return Check(name, points, cases, judge, public, about="refusal")


def gradient(
    points, function, cases=None, *, public=(), wrt=0, only=None, name="agrees with finite differences", rtol=1e-6
):
    """The answer is the pullback of `function`: it agrees with central differences.

    A case is (*inputs, dy) for an answer pullback(*inputs, dy) -> gradient of ⟨dy, function(*inputs)⟩ by inputs[wrt].
    wrt: a position, or a tuple of positions for an answer that returns a tuple.
    only: the one entry of that tuple which this check looks at.
    rtol: central differences in float64 carry a relative error of about 1e-9; 1e-6 leaves room for cancellation.
    """

    def judge(expected, case, observation):
        *inputs, dy = case
        value, wrong = observation.value, raised(observation)
        if only is not None and not wrong:
            if not isinstance(value, (list, tuple)) or len(value) != len(wrt):
                return f"expected {len(wrt)} entries, got {show(value)}"
            value = value[only]
        positions = np.atleast_1d(wrt if only is None else wrt[only])
        slopes = [_central_differences(function, inputs, dy, position) for position in positions]
        wanted = tuple(slopes) if np.ndim(wrt) and only is None else slopes[0]
        return wrong or difference(wanted, value, rtol, rtol)

    return Check(name, points, cases, judge, public, rtol, rtol)


def raised(observation):
    """The reason to give when the answer raised, or returned nothing."""
    if not observation.error:
        return "returned nothing (None)" if observation.value is None else None
    kind, message = observation.error[0], observation.message
    if kind == "Unreadable":
        return f"returned {message}"
    said = message if kind == "TooLong" else f"raised {kind}: {message or 'this input should be accepted'}"
    return f"{said}, in {observation.line}" if observation.line else said


def _central_differences(function, inputs, dy, position, step=1e-6):
    """Gradient of ⟨dy, function(*inputs)⟩ with respect to inputs[position], entry by entry."""
    x = np.array(inputs[position], dtype=float)
    slope = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        h = step * max(1.0, abs(float(x[index])))
        ends = []
        for moved in (x[index] + h, x[index] - h):
            shifted = x.copy()
            shifted[index] = moved
            ends.append(np.sum(dy * np.asarray(function(*inputs[:position], shifted, *inputs[position + 1 :]))))
        slope[index] = (ends[0] - ends[1]) / (2 * h)
    noise = 1e-8 * max(1.0, np.abs(slope).max(initial=0.0))
    return np.where(np.abs(slope) < noise, 0.0, slope)  # a gradient of zero is shown as zero


def namespace(numbers):
    """Numbers as attributes: `mine.v`."""
    return SimpleNamespace(**numbers)
