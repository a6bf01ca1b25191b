"""Measure how far every pullback is from the differences of its function, and from PyTorch: the table of the book.

    python tools/build_gradient_table.py            measure, and write book/_data/gradients.json
    python tools/build_gradient_table.py --check    say which primitive is missing, or which error is larger than stated

Errors are written as powers of ten, rounded up, and not below what rounding alone makes, so that another machine finds
the same. Where PyTorch is not installed, the errors measured against it stay as they are: `.venv-parity/bin/python`
has it.
"""

import argparse
import importlib.util
import json
import math
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "parity")]

import numpy as np  # noqa: E402
from primitive_cases import CASES, arguments, public_primitives  # noqa: E402

import mathllm as ml  # noqa: E402

TABLE = ROOT / "book" / "_data" / "gradients.json"
SEEDS = range(3)
FLOORS = {"differences": -9, "float64": -15, "float32": -6}  # what rounding makes of an exact formula


def exponent(error, kind):
    """The power of ten above an error: 3e-12 -> −11.

    >>> exponent(3e-12, "float64"), exponent(0.0, "float64")
    (-11, -15)
    """
    return max(math.ceil(math.log10(error)) if error else FLOORS[kind], FLOORS[kind])


def against_differences(case):
    """The worst relative error of the pullback against central differences, in float64; None where it is no slope."""
    if case.straight_through:
        return None
    errors = [ml.check_gradient(case.call, *arguments(case, seed=seed)).error for seed in SEEDS]
    return exponent(max(errors), "differences")


def against_pytorch(case):
    """The worst relative errors of value and gradients in float64 and float32; None where PyTorch has no such thing."""
    from twins import TWINS, both_ways

    if case.name not in TWINS:
        return None
    errors = {}
    for dtype in ("float64", "float32"):
        worst = {"value": 0.0, "gradient": 0.0}
        for seed in SEEDS:
            arrays = arguments(case, dtype, n=12, d=7, seed=seed)
            pairs = both_ways(case.call, TWINS[case.name], arrays, np.random.default_rng(seed))
            for number, (ours, theirs) in enumerate(pairs):
                what, theirs = "gradient" if number else "value", theirs.detach().numpy()
                error = np.abs(ours - theirs).max() / max(np.abs(theirs).max(), 1e-2)
                worst[what] = max(worst[what], float(error))
        errors |= {f"{what}, {dtype}": exponent(error, dtype) for what, error in worst.items()}
    return errors


def measured(old=()):
    """The rows of the table; errors against PyTorch are those of the old rows where it is not installed."""
    known = {row["name"]: row["pytorch"] for row in old}
    has_pytorch = importlib.util.find_spec("torch") is not None
    return [
        {
            "name": case.name,
            "chapter": chapter,
            "differences": against_differences(case),
            "pytorch": against_pytorch(case) if has_pytorch else known.get(case.name),
        }
        for chapter, cases in CASES.items()
        for case in cases
    ]


def problems(rows, now):
    """What is wrong with the rows of the table, given what is measured now: sentences, none if all is well."""
    stated = {row["name"]: row for row in rows}
    for name in sorted(set(public_primitives()) - {row["name"] for row in now}):
        yield f"{name} is a primitive without a case in tests/primitive_cases.py"
    if [row["name"] for row in rows] != [row["name"] for row in now]:
        missing = [row["name"] for row in now if row["name"] not in stated]
        yield f"the rows are not those of tests/primitive_cases.py; missing: {', '.join(missing) or 'none'}"
    for row in now:
        bounds = numbers(stated.get(row["name"], row))
        for what, found in numbers(row).items():
            if found > bounds.get(what, -math.inf) + 1:  # the next power of ten may be another machine's
                yield f"{row['name']}, {what}: 1e{found}, where the table says 1e{bounds.get(what)}"


def numbers(row):
    """The errors of a row that are there: method -> exponent."""
    found = {"differences": row["differences"]} | (row["pytorch"] or {})
    return {what: error for what, error in found.items() if error is not None}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the table does not hold")
    check = parser.parse_args().check
    rows = json.loads(TABLE.read_text(encoding="utf-8")) if TABLE.exists() else []
    now = measured(rows)
    if check:
        if found := list(problems(rows, now)):
            command = ".venv-parity/bin/python tools/build_gradient_table.py"
            sys.exit("\n".join([*found, f"the table of gradients does not hold: {command} measures again"]))
        return
    TABLE.parent.mkdir(exist_ok=True)
    lines = ",\n".join("  " + json.dumps(row) for row in now)
    TABLE.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    print(f"{len(now)} primitives are in {TABLE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
