"""Write what each package of mathllm offers: the names without an underscore that its modules define.

Below the line that names this program, an `__init__.py` holds nothing but imports and `__all__`. With --check nothing
is written, and a list that was not rebuilt is an error.
"""

import ast
import sys
import textwrap
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "mathllm"
MARK = "# What the modules define, written by tools/build_exports.py\n"


def defined_names(path):
    """The names without a leading underscore that a module's own statements define, sorted."""
    names = []
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.append(node.name)
        elif isinstance(node, ast.Assign):
            targets = [e for t in node.targets for e in (t.elts if isinstance(t, ast.Tuple) else [t])]
            names += [target.id for target in targets if isinstance(target, ast.Name)]
        elif isinstance(node, ast.AnnAssign):
            names.append(node.target.id)
    return sorted({name for name in names if not name.startswith("_")})


def exports(package):
    """The imports and the `__all__` of a package: the names of each of its modules."""
    offered = {path.stem: defined_names(path) for path in sorted(package.glob("[a-z]*.py"))}
    statements = [_wrapped(f"from .{module} import ", names) for module, names in offered.items() if names]
    every = sorted(name for names in offered.values() for name in names)
    return "\n".join([*statements, "", "__all__ = [", _filled([f'"{name}"' for name in every]), "]  # fmt: skip\n"])


def _wrapped(start, names):
    line = start + ", ".join(names)
    return line if len(line) <= 120 else f"{start}(\n{_filled(names)}\n)  # fmt: skip"


def _filled(names):
    return textwrap.fill(", ".join(names), 119, initial_indent="    ", subsequent_indent="    ") + ","


def main(arguments):
    stale = []
    for path in sorted(PACKAGE.rglob("__init__.py")):
        text = path.read_text(encoding="utf-8")
        head, mark, _ = text.partition(MARK)
        if mark and text != (new := head + mark + exports(path.parent)):
            stale.append(path)
            if "--check" not in arguments:
                path.write_text(new, encoding="utf-8")
    if stale and "--check" in arguments:
        names = ", ".join(str(path.relative_to(PACKAGE.parent)) for path in stale)
        sys.exit(f"{names}: run `python tools/build_exports.py`")


if __name__ == "__main__":
    main(sys.argv[1:])
