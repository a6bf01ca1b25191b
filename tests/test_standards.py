"""The promises the project makes about itself: the reading order, the public names, and what no file may contain."""

import ast
import doctest
import functools
import importlib
import inspect
import json
import re
import subprocess

import pytest
from package import MODULES, PACKAGE, ROOT, build_exports, described, public_objects, size

from mathllm.errors import CHAPTERS

# The reading order. A module may import what stands before it, and nothing that comes after.
FOUNDATION = ["errors", "shapes", "trees", "autodiff", "reference", "data"]
ABOVE = ["fast", "exhibits", "pretrained", "figures", "cli", "__main__"]  # after all chapters
PLACE = {name: place for place, name in enumerate([*FOUNDATION, *CHAPTERS, *ABOVE])}
ONLY_SHOWN = "exhibits"  # the book, the exercises and the tests import it; no other part of mathllm does


# The import graph


def imports(source, module):
    """The parts of mathllm (its top-level modules) that this source of `module`, a dotted name, imports, and names.

    >>> sorted(imports("from .vectors import norm", "mathllm.similarity"))
    [('vectors', 'norm')]
    >>> sorted(imports("from ..errors import ShapeError; from .pool import mean", "mathllm.similarity.base"))
    [('errors', 'ShapeError'), ('similarity', 'mean')]
    >>> sorted(imports("import numpy; import mathllm.figures.plots; from mathllm import data", "mathllm.softmax"))
    [('data', 'data'), ('figures', 'plots')]
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parents = module.split(".")[: -node.level] if node.level else []
            base = ".".join([*parents, *filter(None, [node.module])])
            found = [f"{base}.{alias.name}" for alias in node.names]
        else:
            continue
        for top, *rest in (name.split(".") for name in found):
            if top == "mathllm":
                yield (rest[0], rest[-1]) if rest else ("mathllm", "mathllm")
            elif top == "mathllm_exercises":
                yield top, top


def forward_arrows(source, module):
    """The imports of `module` that the reading order forbids.

    >>> forward_arrows("from .similarity import dot", "mathllm.vectors")
    {'similarity'}
    >>> forward_arrows("import mathllm", "mathllm.similarity")
    {'mathllm'}
    >>> forward_arrows("from . import vectors", "mathllm.autodiff")
    {'vectors'}
    >>> sorted(forward_arrows("import mathllm_exercises; from ..exhibits import softmax", "mathllm.figures.plots"))
    ['exhibits', 'mathllm_exercises']
    """
    part = module.split(".")[1]
    allowed = {other for other in PLACE if PLACE[other] < PLACE[part]} - {ONLY_SHOWN} | {part}
    if part in ABOVE:
        allowed |= {"mathllm"}
    return {other for other, _ in imports(source, module)} - allowed


def private_imports(source, module):
    """The names with a leading underscore that `module` takes from another part of the package.

    >>> private_imports("from ..softmax import _hidden as seen; from .mask import _own", "mathllm.attention.heads")
    {'_hidden'}
    """
    part = module.split(".")[1]
    return {
        name
        for other, name in imports(source, module)
        if other != part and name.startswith("_") and not name.startswith("__")
    }


def sources():
    """The dotted name of every module and its text; a package's own file is `package.__init__`, beside its modules."""
    for path in sorted(PACKAGE.rglob("*.py")):
        yield ".".join(path.relative_to(ROOT).with_suffix("").parts), path.read_text(encoding="utf-8")


SOURCES = {module: source for module, source in sources() if module != "mathllm.__init__"}


@pytest.mark.parametrize("module", SOURCES)
def test_imports_follow_the_reading_order(module):
    arrows = forward_arrows(SOURCES[module], module)
    assert not arrows, f"{module} imports {arrows}, which comes later in the reading order"


@pytest.mark.parametrize("module", SOURCES)
def test_private_names_stay_in_their_part_of_the_package(module):
    assert not private_imports(SOURCES[module], module)


def test_the_package_itself_imports_no_more_than_foundation_and_chapters():
    source = (PACKAGE / "__init__.py").read_text(encoding="utf-8")
    assert {part for part, _ in imports(source, "mathllm.__init__")} <= {*FOUNDATION, *CHAPTERS}


def test_chapters_have_one_name_in_the_book_in_the_package_and_in_the_exercises():
    numbered = {f"{number:02}_{slug}" for number, slug in enumerate([*CHAPTERS, "capstone"], 1)}  # 18 is a project
    for folder, pattern in [("book", "[0-9]*.md"), ("notebooks", "[0-9]*.ipynb"), ("exercises/assignments", "*.md")]:
        stems = {path.stem for path in (ROOT / folder).glob(pattern)} - {"00_start"}
        assert stems
        assert stems <= numbered, f"{folder}: {stems - numbered}"
    modules = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert modules - {"__init__"} <= set(PLACE)
    assert {path.stem for path in (PACKAGE / "exhibits").glob("[a-z]*.py")} <= set(CHAPTERS)


def test_the_start_page_calls_each_chapter_by_its_title():
    start = (ROOT / "book/00_start.md").read_text(encoding="utf-8")
    for path in (ROOT / "book").glob("[01][0-9]_*.md"):
        title = re.search(r"^# (.+)", path.read_text(encoding="utf-8"), re.MULTILINE)[1]
        assert path.stem == "00_start" or f"[{title}]({path.stem}.ipynb)" in start


# Public names: those without a leading underscore that a module's own statements define


def listed_by_hand(path):
    """Whether a file has an `__all__` that no program writes."""
    text = path.read_text(encoding="utf-8")
    return re.search(r"^__all__\b", text, re.MULTILINE) is not None and build_exports.MARK not in text


def test_only_what_gathers_the_names_of_others_lists_them():
    found = {name for name, path in MODULES.items() if listed_by_hand(path)}
    assert found == {"mathllm", "mathllm.fast"}


def test_the_lists_of_foundation_and_chapters_are_written_by_a_tool():
    """That they hold what their modules define is proven by `make check-source`."""
    packages = [PACKAGE / part / "__init__.py" for part in [*FOUNDATION, *CHAPTERS] if (PACKAGE / part).is_dir()]
    assert all(build_exports.MARK in path.read_text(encoding="utf-8") for path in packages)


@pytest.mark.parametrize("name", ["mathllm", "mathllm.fast"])
def test_what_is_listed_by_hand_is_what_is_bound(name):
    package = importlib.import_module(name)
    assert len(set(package.__all__)) == len(package.__all__)
    bound = {public for public, value in vars(package).items() if not public.startswith("_")}
    assert set(package.__all__) <= bound


def test_the_package_offers_names_of_foundation_and_chapters_and_no_others():
    package = importlib.import_module("mathllm")
    values = {public: value for public, value in vars(package).items() if not public.startswith("_")}
    bound = {public for public, value in values.items() if not inspect.ismodule(value)}
    assert {public for public in package.__all__ if not inspect.ismodule(values[public])} == bound
    assert {public for public in package.__all__ if inspect.ismodule(values[public])} <= {*FOUNDATION, *CHAPTERS}
    parts = [name for name in MODULES if "." in name and name.split(".")[1] in FOUNDATION + CHAPTERS]
    defined = {(public, id(value)) for name in parts for public, value in public_objects(name)}
    assert not [public for public in sorted(bound) if (public, id(values[public])) not in defined]


# What every module and every public name says about itself


@pytest.mark.parametrize("name", MODULES)
def test_every_module_opens_with_an_essay(name):
    module = importlib.import_module(name)
    assert module.__doc__
    assert len(module.__doc__.split()) >= 8


@pytest.mark.parametrize("name", MODULES)
def test_every_public_name_is_documented(name):
    for public, value in described(name):
        first_line = (value.__doc__ or "").strip().partition("\n")[0]
        assert first_line.endswith((".", ":", "?")), f"{public} needs a first line that is a sentence"


@pytest.mark.parametrize("name", MODULES)
def test_every_public_function_shows_an_example(name):
    parser = doctest.DocTestParser()
    functions = {public: value for public, value in public_objects(name) if inspect.isroutine(value)}
    assert not [public for public, value in functions.items() if not parser.get_examples(inspect.getdoc(value) or "")]


def unannotated(public, function):
    """The parameters of a function without an annotation, and "return"; the first parameter of a method has none.

    >>> sorted(unannotated("bare", lambda self, x: x))
    ['return', 'x']
    """
    signature = inspect.signature(function)
    missing = {name for name, p in signature.parameters.items() if p.annotation is p.empty} - {"self", "cls"}
    if signature.return_annotation is signature.empty and not public.endswith(".__init__"):
        missing.add("return")
    return missing


@pytest.mark.parametrize("name", MODULES)
def test_every_parameter_and_result_of_a_public_function_is_annotated(name):
    functions = {public: value for public, value in described(name, init=True) if not inspect.isclass(value)}
    found = {public: unannotated(public, value) for public, value in functions.items()}
    assert not {public: missing for public, missing in found.items() if missing}


# The size of the code: what a reader has to read

WRITTEN_BY_A_TOOL = "# What the modules define, written by tools/build_exports.py\n"  # lists of names follow


@pytest.fixture(scope="module")
def sizes():
    return {path: size(path.read_text("utf-8").partition(WRITTEN_BY_A_TOOL)[0]) for path in PACKAGE.rglob("*.py")}


def test_neither_the_package_nor_its_fast_part_grows(sizes):
    assert sum(each.lines for each in sizes.values()) <= 8000
    assert sum(each.lines for path, each in sizes.items() if path.parent.name == "fast") <= 450


def test_shapes_and_intervals_are_declared_and_not_checked_by_hand(sizes):
    assert sum(each.raises for each in sizes.values()) < 320


def test_functions_are_short(sizes):
    lengths = sorted(lines for each in sizes.values() for _, lines in each.functions)
    assert lengths[len(lengths) * 9 // 10] <= 15
    assert not [name for each in sizes.values() for name, lines in each.functions if lines > 40]


# What no file may contain. The patterns are written so that this file does not contain them either.

FORBIDDEN = {  # what it is: its pattern, and a line in which the pattern is found
    "a path of one machine": (r"(?<![\w.:/-])/(root|work|home|Users)/\w", "open('/{}/ada/book.txt')".format("home")),
    "the address of a registry": (
        r"\b(pypi[.]org|pythonhosted[.]org|npmjs[.](org|com)|anaconda[.]org)\b", "https://{}.org/x".format("pypi"),
    ),
    "an index address": (
        r"(?i)(index|find)[-_](url|links)[= ]+[\"']?(https?|file):", "--index-{} https://mirror".format("url"),
    ),
    "a mark of unfinished work": (r"\b(TO[D]O|FI[X]ME|X[X]X|lorem[ ]ipsum)\b", "# {}: finish".format("TO" + "DO")),
    "the rest of a merge": (r"^(<{7}|>{7}) ", "<" * 7 + " ours"),
}  # fmt: skip


@functools.cache
def tracked_texts():
    """The name and the text of each file that is tracked."""
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z"]  # whoever the folder belongs to
    listing = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    paths = [path for name in listing.split("\0") if (path := ROOT / name).is_file() and not path.is_symlink()]
    contents = {path: path.read_bytes() for path in paths}
    return {path.relative_to(ROOT): data.decode() for path, data in contents.items() if b"\0" not in data}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_tracked_file_contains(what):
    pattern, line = re.compile(FORBIDDEN[what][0], re.MULTILINE), FORBIDDEN[what][1]
    assert pattern.search(line)
    found = [(name, match[0]) for name, text in tracked_texts().items() if (match := pattern.search(text))]
    assert not found


def test_no_stored_output_is_an_error():
    """That none shows an address, a path or a warning is proven by `make check-source`."""
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            assert all(output["output_type"] != "error" for output in cell.get("outputs", [])), (path.name, cell["id"])


# Skips

SKIP = re.compile(r"\bpytest[.](?:mark[.])?(?:skip|skipif|xfail|importorskip)\b")


def test_every_skip_has_its_row_and_every_row_its_skip():
    paths = [path for path in (ROOT / "tests").rglob("*.py") if SKIP.search(path.read_text(encoding="utf-8"))]
    skipping = {path.relative_to(ROOT).as_posix() for path in paths}
    table = (ROOT / "tests" / "QUARANTINE.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `([^`]+\.py)`", table, re.MULTILINE)) == skipping
