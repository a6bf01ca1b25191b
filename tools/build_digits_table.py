"""Count how many digits every primitive keeps, in its value and in its gradient: the second table of the book's page.

    python tools/build_digits_table.py            measure, and write book/_data/digits.json
    python tools/build_digits_table.py --check    say which primitive is missing, or keeps fewer digits than stated

The numbers it compares with have at least fifty digits: see tests/exact.py. Every function is called with arguments in
float64, float32 and float16, and the exact formula gets the same arguments, after their rounding.
"""

import argparse
import json
import math
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import numpy as np  # noqa: E402
from digit_cases import FORMULAS, HARD, WITHOUT_FORMULA  # noqa: E402
from exact import DIGITS, MANY_DIGITS, value_and_gradients  # noqa: E402
from mpmath import mp, mpf  # noqa: E402
from primitive_cases import CASES, arguments, in_dtype, public_primitives  # noqa: E402

from mathllm.autodiff import vjp  # noqa: E402

TABLE = ROOT / "book" / "_data" / "digits.json"
DTYPES = ("float64", "float32", "float16")
ORDINARY = "ordinary"
MARGIN = 1.0  # digits: on another processor exp, log and sums round otherwise, up to ten times as much


def most_digits(dtype):
    """The digits of a correctly rounded number: half the distance between neighbours is the largest error.

    >>> [round(most_digits(dtype), 2) for dtype in DTYPES]
    [15.95, 7.22, 3.31]
    """
    return -math.log10(np.finfo(dtype).eps / 2)


def digits_of(computed, right, each):
    """The correct digits of the worst entry, relative to that entry if `each`, else to the largest entry of the array.

    A result below the smallest normal number is held to that number, and one above the largest may be infinite.

    >>> ours, right = np.array([1.0, 0.0010001]), [mpf(1), mpf("0.001")]
    >>> digits_of(ours, right, each=True), digits_of(ours, right, each=False)
    (4.0, 7.0)
    """
    limits = np.finfo(computed.dtype)
    right = [clipped(x, float(limits.max)) for x in np.ravel(right)]
    sizes = [max(abs(x), mpf(float(limits.smallest_normal))) for x in right]
    scale = sizes if each else len(sizes) * [max(sizes, default=1)]
    worst = 0.0
    for x, y, size in zip(np.ravel(computed), right, scale, strict=True):
        error = abs(mpf(float(clipped(x, float(limits.max)))) - y) / size
        worst = max(worst, float(error)) if mp.isfinite(error) else math.inf
    kept = most_digits(computed.dtype) if worst == 0 else min(-math.log10(worst), most_digits(computed.dtype))
    return math.floor(10 * max(kept, 0) + 1e-9) / 10


def clipped(x, largest):
    return min(max(x, -largest), largest)


def kept_digits(call, formula, args, each, seed=0):
    """The digits of the value and of the gradients for a random cotangent: [15.9, 15.2]."""
    with np.errstate(over="ignore", under="ignore"):
        value, pullback = vjp(call, *args)
        cotangent = np.random.default_rng(seed).normal(size=value.shape).astype(value.dtype)
        gradients = [g for g, a in zip(pullback(cotangent), args, strict=True) if a.dtype.kind == "f"]
    right, slopes = value_and_gradients(formula, args, cotangent)
    return [
        digits_of(value, right, each),
        min(digits_of(ours, exact, each) for ours, exact in zip(gradients, slopes, strict=True)),
    ]


def ordinary_digits(case):
    """The digits for the arguments that primitive_cases.py draws, relative to the largest entry of each result."""
    with mp.workdps(DIGITS):
        formula = FORMULAS[case.name]
        return {dtype: kept_digits(case.call, formula, arguments(case, dtype, n=3), each=False) for dtype in DTYPES}


def hard_digits(point):
    """The digits at a hard point, relative to each entry by itself."""
    found = {}
    with mp.workdps(MANY_DIGITS):
        for dtype in DTYPES:
            args = in_dtype(point.draw(np.finfo(dtype)), dtype)
            found[dtype] = kept_digits(point.call, point.formula, args, each=True)
    return found


def measured():
    """The rows of the table: for each primitive its ordinary arguments, then the hard ones."""
    rows = []
    for chapter, cases in CASES.items():
        for case in (case for case in cases if case.name in FORMULAS):
            place = {"name": case.name, "chapter": chapter}
            rows.append(place | {"where": ORDINARY} | ordinary_digits(case))
            points = [point for point in HARD if point.name == case.name]
            rows += [place | {"where": point.where} | hard_digits(point) for point in points]
    return rows


def problems(rows, now):
    """What is wrong with the rows of the table, given what is measured now: sentences, none if all is well."""
    for name in sorted({*public_primitives()} - {*FORMULAS} - WITHOUT_FORMULA):
        yield f"{name} is a primitive without a formula in tests/digit_cases.py"
    stated = {(row["name"], row["where"]): row for row in rows}
    if [*stated] != [(row["name"], row["where"]) for row in now]:
        yield "the rows are not those of tests/digit_cases.py"
    for found in now:
        bounds = stated.get((found["name"], found["where"]), found)
        for dtype in DTYPES:
            for what, kept, least in zip(("value", "gradient"), found[dtype], bounds[dtype], strict=True):
                if kept < least - MARGIN:
                    place = f"{found['name']}, {found['where']}, {what} in {dtype}"
                    yield f"{place}: {kept} digits, where the table says {least}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the table does not hold")
    check = parser.parse_args().check
    now = measured()
    if check:
        rows = json.loads(TABLE.read_text(encoding="utf-8"))
        if found := list(problems(rows, now)):
            command = "python tools/build_digits_table.py"
            sys.exit("\n".join([*found, f"the table of digits does not hold: {command} measures again"]))
        return
    lines = ",\n".join("  " + json.dumps(row, ensure_ascii=False) for row in now)
    TABLE.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    print(f"{len(now)} rows are in {TABLE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
