"""Derivatives of polynomials by the power rule, as on paper."""

import ast
from collections import Counter
from itertools import product


def partial_derivative(polynomial: str, variable: str) -> str:
    """The partial derivative of a polynomial with respect to one of its variables.

        ∂(c xᵃ yᵇ)/∂x = c a xᵃ⁻¹ yᵇ,      term by term                              (8.2)

    polynomial: written as in Python, with + − * ** and brackets   ->   the same, higher powers first

    Raises: ValueError for anything that is not a polynomial.

    >>> partial_derivative("x**2 + 3*x*y", "x"), partial_derivative("x**3", "x")
    ('2*x + 3*y', '3*x**2')
    """
    try:
        tree = ast.parse(polynomial, mode="eval").body
    except SyntaxError:
        raise ValueError(f"partial_derivative() cannot read {polynomial!r}") from None
    names = sorted({node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} | {variable})
    x = names.index(variable)
    derivative = {}
    for powers, coefficient in _terms(tree, names).items():
        lowered = (*powers[:x], powers[x] - 1, *powers[x + 1 :])
        derivative[lowered] = coefficient * powers[x]
    return _written(derivative, names)


def _terms(node, names):
    """A polynomial as {exponents of the variables: coefficient}: 3·x²·y is {(2, 1): 3}."""
    match node:
        case ast.Constant(value=int() | float() as number):
            return {(0,) * len(names): number}
        case ast.Name(id=name):
            return {tuple(int(name == other) for other in names): 1}
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _product({(0,) * len(names): -1}, _terms(operand, names))
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _sum(_terms(left, names), _terms(right, names))
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return _sum(_terms(left, names), _terms(ast.UnaryOp(ast.USub(), right), names))
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _product(_terms(left, names), _terms(right, names))
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int() as power)) if power >= 0:
            result = {(0,) * len(names): 1}
            for _ in range(power):
                result = _product(result, _terms(left, names))
            return result
    raise ValueError(f"partial_derivative() needs a polynomial, got {ast.unparse(node)!r} in it")


def _sum(a, b):
    return {exponents: a.get(exponents, 0) + b.get(exponents, 0) for exponents in {**a, **b}}


def _product(a, b):
    result = Counter()
    for (powers_a, c), (powers_b, d) in product(a.items(), b.items()):
        result[tuple(map(sum, zip(powers_a, powers_b, strict=True)))] += c * d
    return result


def _written(terms, names):
    text = ""
    for exponents, coefficient in sorted(terms.items(), reverse=True):
        if coefficient == 0:
            continue
        powers = [n if e == 1 else f"{n}**{e}" for n, e in zip(names, exponents, strict=True) if e]
        size = abs(coefficient)
        number = str(size) if isinstance(size, int) else f"{size:.12g}"
        factors = powers if size == 1 and powers else [number, *powers]
        sign = " - " if coefficient < 0 else " + "
        text += (sign if text else sign.strip(" +")) + "*".join(factors)
    return text or "0"
