"""Challenges: an answer that is scored by its cost, in counted operations or in nats; the lower, the better.

    @checks("03.matrices.fewest_multiplications")
    def _(c):
        c.scored("multiplications", cost, {7: 1, 8: 1 / 3})

`cost(answer)` is a number; for an answer that does not do what is asked it raises ValueError with the reason. The share
of the points is that of the lowest bound that the cost does not exceed. The answer is plain data; nothing of it is run.
A cost is often the number of operations in a program of lines such as `s = a * b + c`, which `operations` counts.
`advice(answer)` gives sentences that say how an answer that does not earn all points can be improved.
"""

import ast
import hashlib
from collections import Counter
from functools import partial

import numpy as np

from .compare import numeric
from .derivation import steps
from .expressions import ExpressionError, compute, parse
from .verdict import UNANSWERED, AssessedCheck, Verdict

__all__ = ["array", "check", "named", "operations"]

NAMES = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
ALLOWED = (ast.BinOp, ast.UnaryOp, ast.Call, ast.Name, ast.Constant, ast.Attribute)
ALLOWED += (ast.operator, ast.unaryop, ast.expr_context)
DRAWS = 4
MAX_LINES = 100
RTOL = 1e-8


def check(unit, cost, shares, advice=None) -> AssessedCheck:
    """The one check of a challenge. unit: what is counted   shares: {highest cost: share of the points}"""
    return AssessedCheck(f"few {unit}", 1, None, None, assess=partial(_assess, unit, cost, shares, advice))


def _assess(unit, cost, shares, advice, value) -> Verdict:
    if value is None or value is Ellipsis:
        return Verdict(0, UNANSWERED)
    try:
        found = cost(value)
    except ExpressionError as error:
        return Verdict(0, f"the answer {error}")
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        if type(error) is not ValueError or not error.args:
            return Verdict(0, "this is not in the form that the card asks for")
        reason, *replies = error.args  # the sentence of a known mistake may follow the reason
        return Verdict(0, str(reason), tuple(replies))
    best, share = min(shares), max((share for bound, share in shares.items() if found <= bound), default=0)
    said = f"your answer costs {found:.6g} {unit}"
    if share == 1:
        return Verdict(1.0, "", (f"{said.capitalize()}.",))
    return Verdict(share, f"{said}; aim at {best:.6g}", tuple(advice(value)) if advice else ())


def array(value, *shape) -> np.ndarray:
    """An answer as an array of finite numbers of this shape; None stands for any size up to 50. Raises: ValueError."""
    found = numeric(value)
    fits = found is not None and found.ndim == len(shape) and np.all(np.isfinite(found))
    if not fits or any(n > 50 if m is None else n != m for n, m in zip(found.shape, shape, strict=True)):
        size = "" if shape[0] is None else f"{shape[0]} "
        asked = f"a list of {size}finite numbers" if len(shape) == 1 else f"finite numbers in the shape {shape}"
        raise ValueError(f"the answer needs {asked.replace('None', 'any number')}")
    return found.astype(float)


def operations(program, inputs, results, functions=(), positive=(), slips=None) -> Counter:
    """How often each operation occurs in a program, which is proven on random numbers first.

    program: a text with one `name = expression` of numbers on each line, or a list of such strings
    inputs:  the names that it starts from   results: results(**inputs) -> {name: value} that it must compute
    functions: what a line may call, such as "np.exp"   positive: the inputs that are no negative numbers
    slips:   slips(**inputs) -> {name: {sentence: wrong value}}, the known mistakes of a result
    Returns: {"+": …, "-": …, "*": …, "/": …, "np.exp": …}; a change of sign is free.

    >>> operations("s = a + b\\nsquare = s * s", "ab", lambda a, b: {"square": (a + b) ** 2})
    Counter({'+': 1, '*': 1})

    Raises: ValueError, with the line that is wrong, and the sentence of the slip that computes it.
    """
    lines = steps(program)
    if not lines or len(lines) > MAX_LINES:
        raise ValueError(f"the answer is a text of at most {MAX_LINES} lines `name = expression`")
    rng = np.random.default_rng(int.from_bytes(hashlib.sha256("\n".join(lines).encode("utf-8", "replace")).digest()))
    draws = [{x: rng.uniform(0.5, 2) * (x in positive or rng.choice([-1, 1])) for x in inputs} for _ in range(DRAWS)]
    known, count = [dict(draw) for draw in draws], Counter()
    for number, line in enumerate(lines, 1):
        try:
            name, tree = _assignment(line, inputs)
            nodes = [node for node in ast.walk(tree) if isinstance(node, (ast.BinOp, ast.Call))]
            count.update(_operation(node, functions) for node in nodes)
            for names in known:
                names[name] = compute(tree, names).value
        except ExpressionError as error:
            raise ValueError(f"line {number} {error}") from None
    for draw, names in zip(draws, known, strict=True):
        for name, wanted in results(**draw).items():
            if name not in names:
                raise ValueError(f"no line computes `{name}`")
            if not _close(names[name], wanted):
                shown = ", ".join(f"{key} = {value:.3g}" for key, value in draw.items())
                reason = f"`{name}` is {float(names[name]):.4g} and should be {wanted:.4g} for {shown}"
                raise ValueError(reason, *_named(name, draws, known, slips))
    return count


def named(value, slips):
    """The first sentence of {sentence: wrong value} whose value this is, in a list; an empty list if there is none.

    >>> named([1.0, 2.0], {"You added.": [3.0, 2.0], "You divided.": [1.0, 2.0]})
    ['You divided.']
    """
    return [sentence for sentence, wrong in slips.items() if np.allclose(value, wrong)][:1]


def _named(name, draws, known, slips):
    """The sentence of the slip that has the value of this result in every draw."""
    wrong = [slips(**draw).get(name, {}) for draw in draws] if slips else [{}]
    for sentence in wrong[0]:
        if all(_close(names[name], values[sentence]) for names, values in zip(known, wrong, strict=True)):
            return [sentence]
    return []


def _close(a, b):
    return np.allclose(a, b, rtol=RTOL, atol=RTOL)


def _assignment(line, inputs):
    name, equals, expression = line.partition("=")
    if not equals or not name.strip().isidentifier() or name.strip() in inputs:
        raise ExpressionError("is not of the form `name = expression`, with a name that is no input")
    tree = parse(expression)
    for node in ast.walk(tree):
        if not isinstance(node, ALLOWED) or (isinstance(node, ast.Attribute) and ast.unparse(node.value) != "np"):
            raise ExpressionError(f"uses `{ast.unparse(node)[:40]}`, which a line may not contain")
    return name.strip(), tree


def _operation(node, functions):
    name = ast.unparse(node.func) if isinstance(node, ast.Call) else NAMES.get(type(node.op))
    if name not in (*functions, *NAMES.values()):
        may = f" and {', '.join(functions)}" if functions else ""
        raise ExpressionError(f"uses `{ast.unparse(node)[:40]}`; a line may use + - * /{may}")
    return name
