"""The promises the project makes about itself: the reading order, the public names, and what no file may contain."""

import ast
import doctest
import importlib
import inspect
import json
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "mathllm"

# The reading order. A module may import what stands before it, and nothing that comes after.
FOUNDATION = ["errors", "shapes", "trees", "autodiff", "reference", "data"]
CHAPTERS = [
    "vectors", "similarity", "matrices", "exponentials", "probability", "softmax", "cross_entropy", "gradients",
    "gradient_descent", "attention", "backpropagation", "transformer", "training", "inference", "alignment",
    "interpretability",
]  # fmt: skip
ABOVE = ["pretrained", "plots", "notebook", "widgets", "cli", "__main__"]
PLACE = {name: place for place, name in enumerate(FOUNDATION + CHAPTERS)} | dict.fromkeys(ABOVE, 100)


# The import graph


def imported_parts(source, module):
    """The parts of mathllm (its top-level modules) that this source of `module`, a dotted name, imports anywhere.

    >>> sorted(imported_parts("from .vectors import norm", "mathllm.similarity"))
    ['vectors']
    >>> sorted(imported_parts("from ..errors import ShapeError; from .pool import mean", "mathllm.similarity.base"))
    ['errors', 'similarity']
    >>> sorted(imported_parts("import numpy; import mathllm.plots; from mathllm import data", "mathllm.softmax"))
    ['data', 'plots']
    """
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parents = module.split(".")[: -node.level] if node.level else []
            base = ".".join([*parents, *filter(None, [node.module])])
            names = [f"{base}.{alias.name}" for alias in node.names] if base == "mathllm" else [base]
        else:
            continue
        for name in names:
            top, _, rest = name.partition(".")
            if top == "mathllm":
                found.add(rest.partition(".")[0] or "mathllm")
            elif top == "mathllm_exercises":
                found.add(top)
    return found


def forward_arrows(source, module):
    """The imports of `module` that the reading order forbids."""
    part = module.split(".")[1]
    allowed = {other for other, place in PLACE.items() if place < PLACE[part]} | {part}
    if part in ABOVE:
        allowed |= {*ABOVE, "mathllm"}
    return imported_parts(source, module) - allowed


def sources():
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        # A package's own file stands where its modules stand, so `from .` means the same in both.
        yield ".".join(parts), path


@pytest.mark.parametrize(("module", "path"), [(m, p) for m, p in sources() if m != "mathllm.__init__"])
def test_imports_follow_the_reading_order(module, path):
    arrows = forward_arrows(path.read_text(encoding="utf-8"), module)
    assert not arrows, f"{module} imports {arrows}, which the reader has not met yet"


def test_the_package_itself_imports_no_more_than_foundation_and_chapters():
    parts = imported_parts((PACKAGE / "__init__.py").read_text(encoding="utf-8"), "mathllm.__init__")
    assert parts <= {*FOUNDATION, *CHAPTERS}


@pytest.mark.parametrize(
    ("module", "source", "arrow"),
    [
        ("mathllm.vectors", "from .similarity import dot", "similarity"),
        ("mathllm.vectors", "def f():\n    from mathllm.softmax import softmax", "softmax"),
        ("mathllm.similarity.pooling", "from ..attention import attention", "attention"),
        ("mathllm.similarity.__init__", "from .. import plots", "plots"),
        ("mathllm.similarity", "import mathllm", "mathllm"),
        ("mathllm.autodiff", "from . import vectors", "vectors"),
        ("mathllm.plots", "import mathllm_exercises", "mathllm_exercises"),
    ],
)
def test_an_arrow_that_points_forward_is_found(module, source, arrow):
    assert forward_arrows(source, module) == {arrow}


def test_chapters_have_one_name_in_the_book_in_the_package_and_in_the_exercises():
    numbered = {f"{number:02}_{slug}" for number, slug in enumerate(CHAPTERS, 1)}
    for folder, pattern in [("book", "[0-9]*.md"), ("notebooks", "[0-9]*.ipynb"), ("exercises/assignments", "*.md")]:
        stems = {path.stem for path in (ROOT / folder).glob(pattern)} - {"00_start"}
        assert stems
        assert stems <= numbered, f"{folder}: {stems - numbered}"
    modules = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert modules - {"__init__"} <= set(PLACE)


# Public names


def parts_of(name):
    """The source files of a module; a package of the foundation or of a chapter speaks with one voice."""
    folder = ROOT.joinpath(*name.split("."))
    if not folder.is_dir():
        return [folder.with_suffix(".py")]
    return sorted(folder.glob("*.py")) if folder.name in FOUNDATION + CHAPTERS else [folder / "__init__.py"]


def modules_with_public_names():
    for module, _path in sources():
        name = module.removesuffix(".__init__")
        inside = name.count(".") > 1 and name.split(".")[1] in FOUNDATION + CHAPTERS
        if name != "mathllm" and not inside and any(defined_names(part) for part in parts_of(name)):
            yield name


def defined_names(path):
    """The names without a leading underscore that a module's own statements define."""
    names = []
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.append(node.name)
        elif isinstance(node, ast.Assign):
            names += [name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)]
        elif isinstance(node, ast.AnnAssign):
            names.append(node.target.id)
    return {name for name in names if not name.startswith("_")}


MODULES = sorted(modules_with_public_names())


@pytest.mark.parametrize("name", MODULES)
def test_all_names_exactly_what_a_module_offers(name):
    module = importlib.import_module(name)
    public = set().union(*map(defined_names, parts_of(name)))
    assert len(set(module.__all__)) == len(module.__all__)
    assert set(module.__all__) == public, "a name that nobody outside should use begins with an underscore"


def test_the_package_offers_the_names_of_errors_autodiff_and_every_chapter():
    package = importlib.import_module("mathllm")
    offered = {n for n, value in vars(package).items() if not n.startswith("_") and not inspect.ismodule(value)}
    modules = [importlib.import_module(n) for n in MODULES if n.split(".")[1] in ["errors", "autodiff", *CHAPTERS]]
    assert offered == {name for module in modules for name in module.__all__}


def public_objects(name):
    """The functions and classes that this module offers under names of its own; its values have no docstrings."""
    module = importlib.import_module(name)
    for public in module.__all__:
        if callable(getattr(module, public)):
            yield f"{name}.{public}", getattr(module, public)


@pytest.mark.parametrize("name", MODULES)
def test_every_module_opens_with_an_essay(name):
    module = importlib.import_module(name)
    assert module.__doc__
    assert len(module.__doc__.split()) >= 8


@pytest.mark.parametrize("name", MODULES)
def test_every_public_name_is_documented(name):
    for public, value in public_objects(name):
        first_line = (inspect.getdoc(value) or "").partition("\n")[0]
        assert first_line.endswith((".", ":", "?")), f"{public} needs a first line that is a sentence"


@pytest.mark.parametrize("name", MODULES)
def test_every_public_function_shows_an_example(name):
    parser = doctest.DocTestParser()
    functions = {public: value for public, value in public_objects(name) if not inspect.isclass(value)}
    assert not [public for public, value in functions.items() if not parser.get_examples(inspect.getdoc(value) or "")]


# What no file may contain. The patterns are written so that this file does not contain them either.

FORBIDDEN = {
    "a path of one machine": r"(?<![\w.:/-])/(root|work|home|Users)/\w",
    "the address of a registry": r"\b(pypi[.]org|pythonhosted[.]org|npmjs[.](org|com)|anaconda[.]org)\b",
    "an index address": r"(?i)(index|find)[-_](url|links)[= ]+[\"']?(https?|file):",
    "a mark of unfinished work": r"\b(TO[D]O|FI[X]ME|X[X]X|lorem[ ]ipsum)\b",
    "the rest of a merge": r"^(<{7}|>{7}) ",
}


def tracked_texts():
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z"]  # whoever the folder belongs to
    listing = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listing.split("\0")):
        path = ROOT / name
        if path.is_file() and not path.is_symlink():
            data = path.read_bytes()
            if b"\0" not in data:
                yield name, data.decode("utf-8")


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_tracked_file_contains(what):
    pattern = re.compile(FORBIDDEN[what], re.MULTILINE)
    found = [(name, match[0]) for name, text in tracked_texts() if (match := pattern.search(text))]
    assert not found


@pytest.mark.parametrize(
    ("what", "line"),
    [
        ("a path of one machine", "open('/{}/ada/book.txt')".format("home")),
        ("the address of a registry", "from https://{}.org/simple".format("pypi")),
        ("an index address", "--index-{} https://mirror.example".format("url")),
        ("a mark of unfinished work", "# {}: finish".format("TO" + "DO")),
        ("the rest of a merge", "<" * 7 + " ours"),
    ],
)
def test_the_patterns_find_what_they_look_for(what, line):
    assert re.search(FORBIDDEN[what], line)


NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb")) + sorted((ROOT / "exercises" / "source").rglob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_stored_outputs_hold_no_addresses_no_errors_and_nothing_on_stderr(path):
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        for output in cell.get("outputs", []):
            assert output["output_type"] != "error", cell["id"]
            assert output.get("name") != "stderr", cell["id"]
            texts = [output.get("text", ""), output.get("data", {}).get("text/plain", "")]
            assert not re.search(r"\b0x[0-9a-f]{6,}", "".join(map("".join, texts))), cell["id"]


# Skips


SKIPS = {"skip", "skipif", "xfail", "importorskip"}


def test_every_skip_has_its_row_and_every_row_its_skip():
    skipping = set()
    for path in (ROOT / "tests").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if any(isinstance(node, ast.Attribute) and node.attr in SKIPS for node in ast.walk(tree)):
            skipping.add(path.relative_to(ROOT).as_posix())
    table = (ROOT / "tests" / "QUARANTINE.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `([^`]+\.py)`", table, re.MULTILINE)) == skipping
