"""NumPy expressions as data: a small language that is read and computed here, and never executed as Python.

The lines of a derivation are strings of the learner. The grader computes them in its own process, so a line may be
arithmetic, functions of a list, `.T`, indices and sums of named arrays, and nothing else: no attribute, name or call
beyond those is known, arrays stay small, and every node is checked when it is computed.
"""

import ast
import warnings
from copy import deepcopy
from dataclasses import dataclass, field

import numpy as np

import mathllm as ml

__all__ = ["Computed", "ExpressionError", "compute", "parse", "same"]

MAX_LENGTH = 400  # characters of one expression
MAX_NODES = 200
MAX_ENTRIES = 1_000  # of one array

FUNCTIONS = {
    f"np.{name}": getattr(np, name)
    for name in (
        "abs", "argmax", "concatenate", "cos", "cumsum", "diag", "dot", "exp", "expm1", "eye", "log", "log1p",
        "logaddexp", "max", "maximum", "mean", "min", "minimum", "multiply", "ones", "outer", "prod", "reshape", "sign",
        "sin", "sqrt", "square", "sum", "tanh", "trace", "transpose", "var", "where", "zeros",
    )
} | {"np.linalg.norm": np.linalg.norm, "np.linalg.inv": np.linalg.inv, "len": len}  # fmt: skip
FUNCTIONS |= {f"ml.{name}": getattr(ml, name) for name in ("log_softmax", "log_sum_exp", "norm", "sigmoid", "softmax")}
CONSTANTS = {"np.pi": np.pi, "np.e": np.e, "np.inf": np.inf, "np.newaxis": None}
METHODS = ("dot", "max", "mean", "min", "prod", "reshape", "sum", "trace", "transpose", "var")
KEYWORDS = ("axis", "keepdims")
OPERATORS = {
    ast.Add: np.add, ast.Sub: np.subtract, ast.Mult: np.multiply, ast.Div: np.true_divide, ast.MatMult: np.matmul,
    ast.USub: np.negative, ast.UAdd: np.positive,
}  # fmt: skip
COMPARISONS = {ast.Lt: np.less, ast.LtE: np.less_equal, ast.Gt: np.greater, ast.GtE: np.greater_equal, ast.Eq: np.equal}


class ExpressionError(ValueError):
    """A line that cannot be read or computed; the message says why, to follow the number of the line."""


@dataclass
class Computed:
    """The value of an expression, and the values of all its parts."""

    value: np.ndarray
    parts: list = field(default_factory=list)


def parse(line) -> ast.expr:
    """The expression in a line of text, with an "=" in front of it allowed.

    >>> same(parse("= a+b"), parse("(a + b)"))
    True

    Raises: ExpressionError for a line that is no expression.
    """
    line = line.strip().removeprefix("=").strip()
    if len(line) > MAX_LENGTH:
        raise ExpressionError(f"has more than {MAX_LENGTH} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(line, mode="eval").body
    except SyntaxError as error:
        raise ExpressionError(f"is no expression of NumPy ({error.msg})") from None
    except (ValueError, RecursionError, MemoryError):
        raise ExpressionError("cannot be read") from None
    if sum(1 for _ in ast.walk(tree)) > MAX_NODES:
        raise ExpressionError("is too long")
    return tree


def same(a, b) -> bool:
    """Whether two expressions are written alike, but for spaces, brackets, and what changes nothing: + 0 and 1 *.

    >>> same(parse("+(x + 0)"), parse("1 * x")), same(parse("x + y"), parse("y + x"))
    (True, False)
    """
    return ast.dump(_Plain().visit(deepcopy(a))) == ast.dump(_Plain().visit(deepcopy(b)))


class _Plain(ast.NodeTransformer):
    """Leaves out what changes nothing: +x, −(−x), x + 0, 0 + x, x − 0, 1 * x, x * 1, x / 1, x ** 1."""

    def visit_UnaryOp(self, node):
        self.generic_visit(node)
        inner = node.operand
        if isinstance(node.op, ast.USub) and isinstance(inner, ast.UnaryOp) and isinstance(inner.op, ast.USub):
            return inner.operand
        return inner if isinstance(node.op, ast.UAdd) else node

    def visit_BinOp(self, node):
        self.generic_visit(node)
        neutral = 0 if isinstance(node.op, (ast.Add, ast.Sub)) else 1
        if isinstance(node.right, ast.Constant) and node.right.value == neutral:
            return node.left
        commutes = isinstance(node.op, (ast.Add, ast.Mult))
        return node.right if commutes and isinstance(node.left, ast.Constant) and node.left.value == neutral else node


def compute(tree, names) -> Computed:
    """The value of an expression of these named arrays and numbers.

    >>> float(compute(parse("np.sum(x * x) / len(x)"), {"x": np.array([3.0, 1.0])}).value)
    5.0

    Raises: ExpressionError for a name, function or operation that is not known, and for shapes that do not fit.
    """
    walker = _Walker(names)
    try:
        with np.errstate(all="ignore"):
            return Computed(np.asarray(walker.visit(tree), float), walker.parts)
    except ExpressionError:
        raise
    except RecursionError:
        raise ExpressionError("is nested too deeply") from None
    except Exception as error:
        raise ExpressionError(f"cannot be computed: {' '.join(str(error).split())[:160]}") from None


class _Walker:
    """Computes an expression node by node."""

    def __init__(self, names):
        self.names, self.parts = names, []

    def visit(self, node):
        method = getattr(self, f"visit_{type(node).__name__}", None)
        if method is None:
            raise ExpressionError(f"uses `{ast.unparse(node)[:40]}`, which a line may not contain")
        value = method(node)
        if isinstance(value, np.ndarray):
            _limit(max(size, 1) for size in value.shape)  # without entries it could become large when it is summed
        if isinstance(value, (np.ndarray, np.number, float, int)):
            self.parts.append(np.asarray(value))
        return value

    def visit_Constant(self, node):
        if node.value is None or node.value is Ellipsis or isinstance(node.value, bool):
            return node.value
        if isinstance(node.value, (int, float)) and abs(node.value) < 1e9:
            return node.value
        raise ExpressionError(f"uses {str(node.value)[:40]!r}, which is no number")

    def visit_Name(self, node):
        if node.id in self.names:
            return self.names[node.id]
        raise ExpressionError(f"uses `{node.id}`; the names are {', '.join(self.names)}, and functions of NumPy")

    def visit_Attribute(self, node):
        name = ast.unparse(node)
        if name in CONSTANTS:
            return CONSTANTS[name]
        if node.attr in ("T", "size"):
            value = np.asarray(self.visit(node.value))
            return value.T if node.attr == "T" else value.size
        raise ExpressionError(f"uses `{name[:40]}`, which a line may not contain")

    def visit_BinOp(self, node):
        left, right = self.visit(node.left), self.visit(node.right)
        if isinstance(node.op, ast.Pow):
            return np.power(np.asarray(left, float), right)
        return self._operator(node)(left, right)

    def visit_UnaryOp(self, node):
        value = self.visit(node.operand)
        if isinstance(node.op, ast.USub) and isinstance(value, int):
            return -value  # an index stays a whole number
        return self._operator(node)(value)

    def _operator(self, node):
        if type(node.op) not in OPERATORS:
            raise ExpressionError(f"uses an operator in `{ast.unparse(node)[:40]}` that a line may not contain")
        return OPERATORS[type(node.op)]

    def visit_Compare(self, node):
        if len(node.ops) != 1 or type(node.ops[0]) not in COMPARISONS:
            raise ExpressionError(f"uses the comparison `{ast.unparse(node)[:40]}`")
        return COMPARISONS[type(node.ops[0])](self.visit(node.left), self.visit(node.comparators[0])).astype(float)

    def visit_Tuple(self, node):
        return tuple(self.visit(part) for part in node.elts)

    def visit_List(self, node):
        return np.array([self.visit(part) for part in node.elts])

    def visit_Slice(self, node):
        return slice(*(part and self.visit(part) for part in (node.lower, node.upper, node.step)))

    def visit_Subscript(self, node):
        value, index = np.asarray(self.visit(node.value)), self.visit(node.slice)
        if isinstance(index, tuple):
            _limit(np.broadcast_shapes(*(part.shape for part in index if isinstance(part, np.ndarray))))
        return value[index]

    def visit_Call(self, node):
        name = ast.unparse(node.func)
        arguments = [self.visit(part) for part in node.args]
        options = {option.arg: self.visit(option.value) for option in node.keywords}
        if unknown := [option for option in options if option not in KEYWORDS]:
            raise ExpressionError(f"gives `{name}` the option {unknown[0]!r}; known are {' and '.join(KEYWORDS)}")
        if name in FUNCTIONS:
            return self._called(FUNCTIONS[name], name, arguments, options)
        if isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
            owner = np.asarray(self.visit(node.func.value))
            return self._called(getattr(owner, node.func.attr), name, arguments, options)
        instead = f"; write `np.{name}`" if f"np.{name}" in FUNCTIONS else ""
        raise ExpressionError(f"calls `{name[:40]}`, which a line may not contain{instead}")

    def _called(self, function, name, arguments, options):
        if name in ("np.eye", "np.ones", "np.zeros"):
            _limit(np.ravel(arguments))
        elif name == "np.where":
            _limit(np.broadcast_shapes(*map(np.shape, arguments)))
        return function(*arguments, **options)


def _limit(shape):
    """Refuse an array of this shape if it is too large. Two that are not make one of a million entries at most."""
    if abs(np.prod(list(shape), dtype=float)) > MAX_ENTRIES:
        raise ExpressionError(f"makes an array of more than {MAX_ENTRIES} entries")
