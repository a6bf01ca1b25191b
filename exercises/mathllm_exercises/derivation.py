"""The kind `lines`: a derivation, written line by line as NumPy expressions of named arrays.

Each line must equal the line before it on random inputs of random sizes. Different letters of the shapes are always
different sizes, and none is 1, so that nothing fits by accident. The first false step is named. If its value is that of
a known slip, the slip's sentence follows. First and last line are given, and something must stand between them.
"""

import hashlib
from functools import partial

import numpy as np

from .compare import show
from .expressions import ExpressionError, compute, parse, same
from .verdict import UNANSWERED, AssessedCheck, Verdict

__all__ = ["assess", "check", "contains", "draw", "steps"]

NAME = "every line equals the one before"
DRAWS = 12  # so that a number of either sign is among them
MAX_LINES = 40
RTOL = 1e-8


def check(record, slips=()) -> AssessedCheck:
    """The check of an exercise with this record of bank.json. slips: (lines, sentence) of the known mistakes."""
    return AssessedCheck(NAME, record["points"], None, None, assess=partial(assess, record["derivation"], slips))


def steps(value) -> list[str] | None:
    """The lines of an answer, a text or a list of strings; empty lines and comments are left out.

    >>> steps("a + b\\n\\n# commutes\\nb + a"), steps(["a"]), steps(3)
    (['a + b', 'b + a'], ['a'], None)
    """
    if isinstance(value, str):
        value = value.splitlines()
    if not isinstance(value, (list, tuple)) or not all(isinstance(line, str) for line in value):
        return None
    return [line.strip() for line in value if line.strip() and not line.strip().startswith("#")]


def assess(derivation, slips, value) -> Verdict:
    """The verdict on an answer.

    derivation: of bank.json: arrays (name -> what it is), first, last, through (expressions), between (a number)
    """
    lines = steps(value)
    if not lines:
        return Verdict(0, "the answer is a text with one expression on each line, or a list of strings")
    if "..." in lines:
        return Verdict(0, UNANSWERED)
    if len(lines) > MAX_LINES:
        return Verdict(0, f"the answer has {len(lines)} lines; {MAX_LINES} are enough")
    inputs = _inputs(derivation, lines)
    try:
        trees = [_parsed(number, line) for number, line in enumerate(lines, 1)]
    except ExpressionError as error:
        return Verdict(0, str(error))
    values = [_values(tree, inputs) for tree in trees]
    if not same(trees[0], parse(derivation["first"])):
        return Verdict(0, f"line 1 must be `{derivation['first']}`, as the card says")
    false = _first_false(values)
    if false is not None:
        return Verdict(0, _reason(false, values, inputs), _named(trees[false], values[false], slips, inputs))
    reason = _complete(derivation, trees, values, inputs)
    return Verdict(0, reason) if reason else Verdict(1.0)


def _parsed(number, line):
    try:
        return parse(line)
    except ExpressionError as error:
        raise ExpressionError(f"line {number} {error}") from None


def _values(tree, inputs):
    """The values of a line, one for each input, or the error that it makes."""
    try:
        return [compute(tree, names) for names in inputs]
    except ExpressionError as error:
        return error


def _inputs(derivation, lines):
    """Random inputs, which depend on the answer: no expression can be made for them."""
    digest = hashlib.sha256("\n".join([derivation["first"], *lines]).encode("utf-8", "replace")).digest()
    rng = np.random.default_rng(int.from_bytes(digest, "big"))
    return [draw(derivation["arrays"], rng) for _ in range(DRAWS)]


def draw(arrays, rng) -> dict:
    """Values for the named arrays: {name: array}, and the sizes by their letters.

    arrays: {name: (shape, kind)}, in order; a shape is a list of letters, a kind one of `KINDS` or an expression
    """
    letters = sorted({letter for shape, _ in arrays.values() for letter in shape})
    sizes = dict(zip(letters, (int(n) for n in rng.permutation(np.arange(2, 8))), strict=False))
    values = {}
    for name, (shape, kind) in arrays.items():
        known = values | sizes
        size = tuple(sizes[letter] for letter in shape)
        values[name] = KINDS[kind](rng, size) if kind in KINDS else compute(parse(kind), known).value
        if isinstance(values[name], np.ndarray):
            values[name].flags.writeable = False  # no line may change what the next one reads
    return values | {letter: size for letter, size in sizes.items() if letter not in values}


def _positive(rng, size):
    return rng.uniform(0.2, 3.0, size)


def _distribution(rng, size):
    weights = _positive(rng, size)
    return weights / weights.sum(axis=-1, keepdims=True)


def _unit(rng, size):
    x = rng.normal(size=size)
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def _orthogonal(rng, size):
    return np.linalg.qr(rng.normal(size=(size[0], size[0])))[0]


def _one_hot(rng, size):
    return np.eye(size[-1])[rng.integers(size[-1], size=size[:-1])]


def _index(rng, size):
    return int(rng.integers(2))  # no size is smaller than 2


def _whole(rng, size):
    return int(rng.integers(2, 8))


def _real(rng, size):
    return rng.normal(size=size)


KINDS = {
    "real": _real, "positive": _positive, "distribution": _distribution, "unit": _unit, "orthogonal": _orthogonal,
    "one-hot": _one_hot, "index": _index, "whole": _whole, "probability": lambda rng, size: rng.uniform(0.1, 0.9, size),
}  # fmt: skip


def _equal(a, b):
    """Whether two values are the same: the same shape, and no entry differs by more than rounding."""
    if a.shape != b.shape or not (np.all(np.isfinite(a)) and np.all(np.isfinite(b))):
        return False
    scale = max(np.abs(a).max(initial=0.0), np.abs(b).max(initial=0.0))
    return bool(np.abs(a - b).max(initial=0.0) <= RTOL * max(scale, 1e-3))


def _all_equal(a, b):
    if isinstance(a, ExpressionError) or isinstance(b, ExpressionError):
        return False
    return all(_equal(one.value, other.value) for one, other in zip(a, b, strict=True))


def _first_false(values):
    return next((n for n in range(1, len(values)) if not _all_equal(values[n - 1], values[n])), None)


def _reason(false, values, inputs):
    """The first false step, and an input that shows it."""
    if isinstance(values[false], ExpressionError):
        return f"line {false + 1} {values[false]}"
    pairs = zip(values[false - 1], values[false], inputs, strict=True)
    before, after, names = next(pair for pair in pairs if not _equal(pair[0].value, pair[1].value))
    step = f"line {false + 1} is not equal to line {false}"
    if before.value.shape != after.value.shape:
        sizes = ", ".join(f"{name} = {value}" for name, value in names.items() if isinstance(value, int))
        return f"{step}: it has shape {after.value.shape}, line {false} has {before.value.shape} ({sizes})"
    return f"{step}: for one random input it is {show(after.value, 60)}, line {false} is {show(before.value, 60)}"


def _named(tree, false, slips, inputs):
    """The sentence of the known slip whose first false line is this one, or has its value."""
    for lines, sentence in slips:
        trees = [parse(line) for line in steps(lines)]
        values = [_values(slip, inputs) for slip in trees]
        n = _first_false(values)
        if n is not None and (same(trees[n], tree) or _all_equal(values[n], false)):
            return (sentence,)
    return ()


def _complete(derivation, trees, values, inputs):
    """What a derivation lacks whose lines are all equal, or None."""
    if not same(trees[-1], parse(derivation["last"])):
        return f"all lines are equal, but the last must be `{derivation['last']}`, as the card says"
    for n in range(1, len(trees)):
        if same(trees[n - 1], trees[n]):
            return f"line {n + 1} only repeats line {n}"
    between, wanted = len(trees) - 2, derivation["between"]
    if between < wanted:
        return f"all lines are equal, but {wanted} must stand between the first and the last, not {between}"
    for expression in derivation["through"]:
        wanted = [compute(parse(expression), names).value for names in inputs]
        if not any(all(map(contains, line, wanted)) for line in values[1:-1]):
            return f"all lines are equal, but no line between the first and the last contains `{expression}`"
    return None


def contains(computed, value) -> bool:
    """Whether a part of a computed line has this value."""
    return any(_equal(np.asarray(part, float), value) for part in computed.parts)
