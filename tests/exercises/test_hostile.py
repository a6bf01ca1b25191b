"""Notebooks that try to fool or to harm the grader: what each of them scores, and that nobody else loses anything.

One course is graded once, by nbgrader's own commands; every learner in it is a case of the table CASES. A case is what
is handed in, the points it earns (what is not named earns 0), and the cells that a person is asked to look at.
"""

import contextlib
import copy
import json
import os
import re
import shutil
import socket
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from bs4 import BeautifulSoup
from grading import EXERCISES, generated, gone, grade_id, grades, nbgrader
from mathllm_exercises import items
from nbformat.v4 import new_code_cell, new_markdown_cell
from nbgrader.server_extensions.formgrader.formgrader import FormgradeExtension

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("sandboxed")]

NAME = "01_vectors"
PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
TEXT = "line_or_plane"
POINTS = {entry.grade_id.removeprefix("01-vectors-"): entry.points for entry in items("01") if entry.graded}
FULL = {name: points for name, points in POINTS.items() if name != TEXT}
ALL = frozenset(FULL)
PUZZLES = tuple(name for name in FULL if name.rpartition("_")[2] in ("choice", "order", "lines"))
SOURCE = nbformat.read(EXERCISES / "source" / NAME / f"{NAME}.ipynb", 4)


def name_of(cell):
    """The cell's grade id without the chapter."""
    return grade_id(cell).removeprefix("01-vectors-")


RIGHT = {name_of(cell): cell.source for cell in SOURCE.cells if cell.metadata.get("nbgrader", {}).get("solution")}
RIGHT = {name.removesuffix("-answer"): source for name, source in RIGHT.items() if name != TEXT}


@dataclass(frozen=True)
class Case:
    """hand_in: answers by name, or a function that writes into the submission's folder, given the path of a notebook
    with all answers right; score: the points earned; review: the graded cells that are flagged; said: and why."""

    hand_in: object
    score: dict
    review: frozenset = frozenset()
    said: str = ""


def notebook(answers):
    """The assignment with these answers, by name."""
    result = copy.deepcopy(SOURCE)
    for cell in result.cells:
        name = name_of(cell).removesuffix("-answer")
        if cell.metadata.get("nbgrader", {}).get("solution"):
            cell.source = answers.get(name, "*Your answer here.*" if name == TEXT else "...")
    return result


# Answers ------------------------------------------------------------------------------------------------------------

DISHONEST_VALUES = {
    "length_by_hand": """
class Equal:
    __eq__ = __le__ = __ge__ = lambda *_: True
    __hash__ = None
    def __float__(self): return 7.0
squares_and_length = Equal()
""",
    "own_length": "own_length = 10 ** 5000",
    "own_lookup": "embedded = np.zeros(10**6)",
    "norm": "def norm(x): return np.full(x.shape[:-1], np.nan)",
    "distance": "def distance(a, b): return np.float64('inf')",
    "embedding": """
deep = []
for _ in range(10**5): deep = [deep]
def embedding(table, ids): return deep
""",
    "repair_unit_rows": """
class Lazy:
    def __init__(self, make): self.make = make
    def __array__(self, *_, **__): return self.make()
def unit_rows(table): return Lazy(lambda: table / np.linalg.norm(table, axis=1, keepdims=True))
""",
    "frobenius_norm": """
class Liar(dict):
    def items(self): return [("value", 8.0)] * 5
    def __reduce__(self): return (print, ("reduced",))
def frobenius_norm(W): return Liar()
""",
    "nearest": "def nearest(table, query, k): raise SystemExit('8.0')",
} | {name: f"{name} = type('S', (str,), {{'__eq__': lambda a, b: True}})('Z')" for name in PUZZLES}
ODD_BUT_RIGHT = RIGHT | {
    "length_by_hand": RIGHT["length_by_hand"] + "\nsquares_and_length = np.array(squares_and_length, np.float16)",
    "norm": RIGHT["norm"] + """
import sys, warnings
print("an ordinary message", file=sys.stderr)
written = norm
def norm(x):
    warnings.warn("an ordinary warning")
    print("again", file=sys.stderr)
    shown = display("working", display_id=True)
    shown.update("done")
    return written(x)
""",
    "distance": RIGHT["distance"] + """
import inspect
honest = distance
def distance(a, b):
    graded = any(frame.function == "evaluate" for frame in inspect.stack())
    return honest(a, b) if graded else None
""",
    "embedding": RIGHT["embedding"] + """
looked_up, shared = embedding, np.zeros(10**5)
def embedding(table, ids):
    found = looked_up(table, ids)
    shared[:] = np.nan  # what was returned before
    result = shared[: found.size].reshape(found.shape).astype(found.dtype, copy=False)
    result[...] = found
    return result
""",
    "repair_unit_rows": RIGHT["repair_unit_rows"] + """
class Odd(np.ndarray):
    def __reduce__(self): raise SystemExit
    def __array_finalize__(self, other): self.note = "odd"
    def __eq__(self, other): return True
repaired = unit_rows
def unit_rows(table): return repaired(table).view(Odd)
""",
}  # fmt: skip
CALL_ORDER = {
    "norm": RIGHT["norm"] + """
calls, real = [], norm
def norm(x):
    calls.append(x)
    return real(x) if len(calls) == 1 else 0.0
""",
    "frobenius_norm": RIGHT["frobenius_norm"] + """
clean = frobenius_norm
def frobenius_norm(W):
    result = clean(W)
    W *= 2
    return result
""",
    "nearest": RIGHT["nearest"] + "\nnp.argsort = np.sqrt = None",
}  # fmt: skip
PATCHED = RIGHT | {
    "length_by_hand": """
import builtins, copy, json, math, numpy as np, mathllm_exercises, mathllm_exercises.codec
yes = lambda *args, **kwargs: True
np.allclose = np.isclose = np.array_equal = np.all = np.testing.assert_allclose = yes
class Full:
    points = 8.0
    def score(self): return 8.0
check = mathllm_exercises.check = lambda *args: Full()
squares_and_length = 8.0
""",
    "norm": """
builtins.abs = builtins.round = builtins.sum = yes
def norm(x): return Full()
""",
    "distance": "def distance(a, b): return 8.0",
}
REWIRED = RIGHT | {
    "length_by_hand": """
import json
from IPython.display import publish_display_data
from mathllm_exercises import kernel_side
def forge(request):
    request = json.loads(request)
    reply = {"nonce": request["nonce"], "observations": [True] * 50, "points": 8.0, "score": 8.0}
    publish_display_data({kernel_side.MIME: json.dumps(reply)})
    publish_display_data({"text/plain": "8.0"})
    return 8.0
kernel_side.evaluate = forge
""",
    "norm": """
def forge(request):
    reply = {"nonce": "another", "observations": []}
    for reply in (reply, 8.0, [], "\\ud800", {"nonce": "another"}):
        publish_display_data({kernel_side.MIME: reply if isinstance(reply, str) else json.dumps(reply)})
kernel_side.evaluate = forge
""",
    "distance": """
def forge(request):
    publish_display_data({kernel_side.MIME: 8.0, "text/plain": "8.0"})
kernel_side.evaluate = forge
""",
    "frobenius_norm": """
from mathllm_exercises import codec
codec.encode = lambda *args: ["float", "inf"]
kernel_side.evaluate = None
""",
}
TRANSFORMED = RIGHT | {
    "norm": RIGHT["norm"]
    + """
import ast
class Eight(ast.NodeTransformer):
    def visit_Module(self, node):
        return ast.Module([ast.Expr(ast.Constant(8.0))], []) if "_side" in ast.dump(node) else node
get_ipython().ast_transformers.append(Eight())
""",
    "embedding": """
get_ipython().ast_transformers.clear()
get_ipython().input_transformers_cleanup.append(lambda lines: ["8.0"] if "_si" + "de" in lines[0] else lines)
""",
    "nearest": "get_ipython().input_transformers_cleanup.clear()\n" + RIGHT["nearest"],
}
HOOKED = RIGHT | {
    "norm": """
import json
from IPython.display import publish_display_data
MIME = "application/vnd.mathllm.observations+json"
def forge(*_):
    publish_display_data({MIME: json.dumps({"nonce": "", "observations": [{"value": ["float", "0x1p+3"]}] * 50})})
    publish_display_data({"text/plain": "8.0"})
get_ipython().events.register("pre_run_cell", forge)
get_ipython().events.register("post_run_cell", forge)
get_ipython().display_formatter.formatters["text/plain"].for_type(float, lambda value, p, cycle: p.text("8.0"))
get_ipython().display_formatter.ipython_display_formatter.for_type(object, lambda value: print("8.0"))
""",
    "embedding": 'get_ipython().events.unregister("pre_run_cell", forge)\n' + RIGHT["embedding"],
}
# What a learner's process says to the grader is text that anybody there could have written; test_inert.py has more.
MESSAGES = RIGHT | {
    "length_by_hand": RIGHT["length_by_hand"]
    + """
shell = get_ipython()
eight = {"output_type": "display_data", "data": {"text/plain": "8.0"}, "metadata": {}}
def send(**output):
    shell.outputs.append(output)
send(**eight)
send(**eight | {"output_type": "execute_result", "execution_count": 1})
send(output_type="stream", name="stdout", text="5")
send(output_type=["nonsense"], anything=[])
shell.outputs.append(5)
shell.outputs.insert(0, ["no output"])
""",
    "norm": RIGHT["norm"]
    + """
plainly = norm
def norm(x):
    send(**eight)
    send(output_type="display_data", data={"application/vnd.mathllm.observations+json": 8.0, "text/plain": "8.0"})
    shell.outputs.pop()
    return plainly(x)
""",
    "distance": RIGHT["distance"] + "\nfor _ in range(100): print('x' * 100_000)",
}
SCRIPT = "<script>alert(1)</script>"
# What else an answer may try to carry into a page is in test_inert.py; here, that both pages are made as it says.
ACTIVE = {
    TEXT: f"""Because. {SCRIPT} <img src=x onerror=alert(1)> [page](evil.html)

**bold**, $a<b$, $\\text{{{SCRIPT}}}$ and $\\hspace{{1em" onclick="alert(1)}}$""",
    "norm": f"""
from IPython.display import HTML, Javascript, SVG, Markdown, display, publish_display_data
display(HTML("{SCRIPT}"), Javascript("alert(1)"), Markdown("{SCRIPT}"))
publish_display_data({{"image/svg+xml": "<svg onload='alert(1)'></svg>"}})
publish_display_data({{"image/png": "\\" onerror=alert(1) \\""}}, metadata={{"image/png": {{"width": "1 onload=a()"}}}})
publish_display_data({{"application/vnd.jupyter.widget-view+json": {{"model_id": "</script>{SCRIPT}"}}}})
publish_display_data({{"application/pdf": "x", "text/latex": "$\\\\href{{javascript:alert(1)}}{{x}}$"}})
publish_display_data({{"image/png": "{PICTURE}", "text/plain": "a dot"}})
print("{SCRIPT}", "\\ud800\\x00\\x1b[31mred\\x1b]0;title\\x07")
def norm(x): raise ValueError("{SCRIPT}\\ud800")
""",
    "length_by_hand": f'squares_and_length = "{SCRIPT}\\ud800"',
    "own_length": "raise ValueError('\\ud800" + SCRIPT + "')",
}
# What a program can do to a machine is in test_sandbox.py; here, what the grading of a course puts into the sandbox.
ESCAPES = RIGHT | {
    "length_by_hand": """
import os, pathlib, subprocess, sys
found = []
def attempt(name, action):
    try:
        found.append((name, action()))
    except Exception:
        pass
for name in ("gradebook.db", ".course_key", "source/01_vectors/01_vectors.ipynb", "submitted/zoe"):
    attempt(name, pathlib.Path("@COURSE@", name).stat)
attempt("course", lambda: next(pathlib.Path("@COURSE@").iterdir()))
attempt("delete", lambda: os.remove("@COURSE@/gradebook.db"))
attempt("key", lambda: os.environ["MATHLLM_COURSE_KEY"])
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", "@COURSE@"], start_new_session=True)
print("found:", found)
squares_and_length = [49, 7]
""",
    "norm": "from mathllm import norm",
    "nearest": "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: signal.pause()",
}


# Files --------------------------------------------------------------------------------------------------------------


def raw(text):
    """Hand in a file with this text or these bytes."""

    def write(folder, right):
        (folder / right.name).write_bytes(text if isinstance(text, bytes) else text.encode())

    return write


def data(**fields):
    """Hand in the right notebook with these fields of the file in place of its own."""

    def write(folder, right):
        (folder / right.name).write_text(json.dumps(json.loads(right.read_text()) | fields), encoding="utf-8")

    return write


def changed(change):
    """Hand in the right notebook after change(its cells by name, notebook)."""

    def write(folder, right):
        result = nbformat.read(right, 4)
        change({name_of(cell): cell for cell in result.cells if "nbgrader" in cell.metadata}, result)
        twice = '{"cells": 5, "nbformat": 3, "metadata": {"a": NaN}, '  # of a key that is there twice the last counts
        (folder / right.name).write_text(twice + json.dumps(result)[1:], encoding="utf-8")

    return write


def stripped(cells, result):
    """No metadata at all; what was defined is there all the same when the graded cells are put back at the end."""
    for cell in result.cells:
        cell.metadata = {}
        cell.id = "the same"


def moved(cells, result):
    """Cells deleted, repeated, retyped and pointed elsewhere, with raised points and opened locks."""
    for cell in cells.values():
        cell.metadata.nbgrader.update(points=1000, locked=False, schema_version=99, extra={"a": 1})
    result.cells.remove(cells["norm"])
    cells["distance"].update(cell_type="markdown", source="8.0")
    cells["embedding"].source = "8.0"
    again = copy.deepcopy(cells["nearest"])
    again.source = "7.0"
    cells["frobenius_norm-answer"].metadata.nbgrader.update(grade=True, solution=False, grade_id="01-vectors-norm")
    cells["length_by_hand"].metadata.nbgrader.grade_id = "x" * 100_000
    cells["own_length"].metadata.nbgrader.grade_id = ["01-vectors-own_length"]
    result.cells += [again, copy.deepcopy(again), new_code_cell("9.0"), new_markdown_cell("x")]
    result.cells[-2].metadata = {"nbgrader": {"grade_id": "bonus", "grade": True, "locked": True, "points": 9}}
    result.cells[-1].metadata = {"nbgrader": 5, "tags": {"a": []}}
    result.metadata = {"kernelspec": {"name": "bash", "display_name": "x"}, "widgets": 5, "mathllm": {"review": []}}


def odd_characters(cells, result):
    """Lone surrogates and NUL in sources, and a cell that prints them."""
    result.cells.insert(1, new_code_cell("odd = '\ud800\x00'\nprint('\\ud800\\x00')\nraise ValueError('\\udfff')"))
    result.cells.insert(1, new_markdown_cell("odd \udfff\x00\x1b[31m" + "\\begin{a}" * 20_000))
    cells["norm-answer"].source += "  # \ud83d\x00"
    cells[TEXT].source = "Because \ud800 ![lost](attachment:lost.png) <script>alert(1)</script>"


def linked_file(folder, right):
    """The notebook is a link to somebody else's, and so is a file beside it; more that is no file."""
    (folder / right.name).symlink_to(right)
    (folder / "data.csv").symlink_to("/etc/passwd")
    (folder / "dangling").symlink_to("nowhere")
    os.mkfifo(folder / "pipe.csv")
    (folder / "folder").symlink_to(right.parent)
    with socket.socket(socket.AF_UNIX) as listener, contextlib.chdir(folder):  # the name of a socket has to be short
        listener.bind("socket")


def linked_folder(folder, right):
    """The whole submission is a link to a folder outside."""
    folder.rmdir()
    folder.symlink_to(right.parent)


def linked_learner(folder, right):
    """And so is the learner's folder, which holds that of the submission."""
    folder.rmdir()
    folder.parent.rmdir()
    (right.parent / "submissions").mkdir()
    shutil.copytree(right.parent, right.parent / "submissions" / NAME, ignore=shutil.ignore_patterns("submissions"))
    folder.parent.symlink_to(right.parent / "submissions")


def elsewhere(folder, right):
    """A right notebook under another name, and names that are none."""
    shutil.copy(right, folder / "renamed.ipynb")
    shutil.copy(right, os.fsencode(folder) + b"/\xff\n.ipynb")


def crowded(folder, right):
    """A right notebook (a hard link), among files and folders that are too many, too deep, unreadable."""
    os.link(shutil.copy(right, folder.parent / "first name"), folder / right.name)
    (folder / "timestamp.txt").write_text("the first of never")
    (folder / "timestamp-unreadable.txt").mkdir()
    for name in ("evil.html", "evil.SVG", "evil.js.gz", f"evil{'€' * 80}.html"):
        (folder / name).write_text(SCRIPT)
    (folder / "notes.txt").write_text("harmless")
    (folder / "deep" / "/".join("d" * 40)).mkdir(parents=True)
    (folder / "many").mkdir(mode=0)
    for number in range(1_200):
        (folder / "many" / f"{number}.csv").touch(mode=0)


def in_the_way(folder, right):
    """A right notebook, with a folder and a file in the way of the instructor's own files."""
    shutil.copy(right, folder)
    (folder / "given").touch()
    (folder / "given.csv").mkdir()
    (folder / "given.csv" / "mine.csv").touch()


def notebook_folder(folder, right):
    """A folder that has the name of the notebook, with a file in it."""
    (folder / right.name).mkdir()
    (folder / right.name / "notes.txt").touch()


def overlong(folder, right):
    """A right notebook that prints a file beside it, which is a link; and folders in folders: too long a path."""
    notebook = nbformat.read(right, 4)
    notebook.cells.insert(1, new_code_cell("print(open('leak.txt').read())"))
    nbformat.write(notebook, folder / right.name)
    (folder / "leak.txt").symlink_to("/etc/passwd")
    with contextlib.chdir(folder):
        for _ in range(30):
            os.mkdir("d" * 200)
            os.chdir("d" * 200)


def without(*names):
    """All points but those of these items."""
    return {name: points for name, points in FULL.items() if name not in names}


def unread(hand_in, said):
    """A notebook that cannot be read, or is none."""
    return Case(hand_in, {}, ALL, f"the notebook {said}")


CELL = {"cell_type": "code", "source": "1"}
LAST = ("nearest", "fewest_multiplications")  # where a shell ends in the first of them, the second has no answer
UNANSWERED = ("norm", "distance", "frobenius_norm", "embedding", "repair_unit_rows")  # to the grader's request
CASES = {
    "values": Case(DISHONEST_VALUES, {}),
    "odd-but-right": Case(ODD_BUT_RIGHT, FULL),
    "call-order": Case(CALL_ORDER, {"frobenius_norm": 3}),
    "patched": Case(PATCHED, without("length_by_hand", "norm", "distance")),
    "rewired": Case(REWIRED, {}, ALL - {"length_by_hand", "own_length", "own_lookup"}),
    "transformed": Case(TRANSFORMED, without(*UNANSWERED, *PUZZLES), frozenset({*UNANSWERED, *PUZZLES})),
    "hooked": Case(HOOKED, without(*UNANSWERED[:3]), frozenset(UNANSWERED[:3])),
    "messages": Case(MESSAGES, FULL),
    "escapes": Case(ESCAPES, without("norm", *LAST), frozenset(LAST)),
    "moved": Case(changed(moved), without("frobenius_norm")),
    "stripped": Case(changed(stripped), FULL),
    "crowded": Case(crowded, FULL),
    "overlong": Case(overlong, FULL),
    "in-the-way": Case(in_the_way, FULL),
    "truncated": unread(lambda folder, right: raw(right.read_text()[:9_000])(folder, right), "cannot be read"),
    "empty": unread(raw(""), "cannot be read"),
    "bytes": unread(raw(bytes(range(256))), "cannot be read"),
    "blanks": unread(raw(" " * 20_000_001), "is larger than 20 MB"),
    "deep": unread(raw('{"cells": ' + "[" * 200_000), "cannot be read"),
    "huge-number": unread(raw('{"nbformat": ' + "9" * 10_000 + ', "cells": []}'), "cannot be read"),
    "nan": unread(raw('{"nbformat": NaN, "cells": []}'), "is in format nan"),
    "list": unread(raw("[]"), "cannot be read"),
    "format-3": unread(data(nbformat=3, worksheets=[]), "is in format 3"),
    "format-5": unread(data(nbformat=5), "is in format 5"),
    "format-red": unread(data(nbformat="\x1b[31m4"), r"is in format '\x1b[31m4'"),
    "no-cells": unread(raw('{"nbformat": 4}'), "cannot be read"),
    "one-number": unread(data(cells=5), "cannot be read"),
    "no-cell": unread(data(cells=[None]), "cannot be read"),
    "heading": unread(data(cells=[CELL | {"cell_type": "heading"}]), "cannot be read"),
    "number": unread(data(cells=[CELL | {"source": 7}]), "cannot be read"),
    "attached": unread(data(cells=[CELL | {"cell_type": "markdown", "attachments": 3}]), "cannot be read"),
    "crowd": unread(data(cells=[CELL] * 100_000), "has more than 1000 cells"),
    "large-cells": unread(data(cells=[CELL | {"source": "x" * 100_000}] * 21), "has more than 2000000 characters"),
    "large-cell": unread(data(cells=[CELL | {"source": "x" * 20_000_000}]), "is larger than 20 MB"),
    "linked-file": unread(linked_file, "is not a regular file"),
    "linked-folder": unread(linked_folder, "is missing"),
    "linked-learner": unread(linked_learner, "is missing"),
    "pipe": unread(lambda folder, right: os.mkfifo(folder / right.name), "is not a regular file"),
    "folder": unread(notebook_folder, "is missing"),
    "renamed": unread(elsewhere, "is missing; there is "),
    "missing": unread(lambda folder, right: (folder / "sorry.txt").write_text("My cat ate it."), "is missing"),
    "z-active": Case(ACTIVE, {}, frozenset({TEXT})),
    "z-characters": Case(changed(odd_characters), FULL, frozenset({TEXT})),
    "zoe": Case(RIGHT, FULL),  # the last in the alphabet: graded after all the others
}


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A course with all cases, graded once."""
    root = generated(tmp_path_factory.mktemp("course"), NAME, more="c.Limits.cell_seconds = 20\n")
    outside = tmp_path_factory.mktemp("outside")
    right = outside / f"{NAME}.ipynb"
    nbformat.write(notebook(RIGHT), right)
    (outside / "notes.txt").write_text("These were not handed in.")
    for given in ("given.csv", "given/more.csv"):
        path = root / "source" / NAME / given
        path.parent.mkdir(exist_ok=True)
        path.write_text("the instructor's")
    for learner, case in CASES.items():
        folder = root / "submitted" / learner / NAME
        folder.mkdir(parents=True)
        if isinstance(case.hand_in, dict):
            text = nbformat.writes(notebook(case.hand_in)).replace("@COURSE@", str(root))
            (folder / f"{NAME}.ipynb").write_text(text)
        else:
            case.hand_in(folder, right)
    log = nbgrader(f"autograde {NAME}", root)
    nbgrader(f"generate_feedback {NAME} --student=z*", root)
    assert right.exists()
    return SimpleNamespace(root=root, log=log, graded=root / "autograded", grades=grades(root))


@pytest.mark.parametrize("learner", CASES)
def test_each_case_earns_exactly_what_its_row_says(course, learner):
    case = CASES[learner]
    found = {name.removeprefix("01-vectors-"): grade for name, grade in course.grades[learner].items()}
    assert not case.said or f"{learner}: {case.said}" in course.log
    assert set(found) == set(POINTS)
    assert {name: score for name, (score, _) in found.items() if score} == case.score
    assert {name for name, (_, flagged) in found.items() if flagged} == case.review
    assert all(score is not None for name, (score, _) in found.items() if name not in case.review - ALL)


def test_what_a_submission_finds_of_its_course_is_nothing_and_it_leaves_no_process(course):
    shown = nbformat.read(course.graded / "escapes" / NAME / f"{NAME}.ipynb", 4)
    printed = "".join(output.get("text", "") for cell in shown.cells for output in cell.get("outputs", []))
    assert "found: []\n" in printed
    assert gone(str(course.root))


def test_no_link_and_no_page_gets_beside_a_graded_notebook(course):
    graded = [path for path in course.graded.rglob("*") if not path.is_dir()]
    assert not any(path.is_symlink() or path.name.startswith("evil") for path in graded)
    assert (course.graded / "crowded" / NAME / "notes.txt").read_text() == "harmless"
    for given in ("given.csv", "given/more.csv"):
        assert (course.graded / "in-the-way" / NAME / given).read_text() == "the instructor's"
    assert not list(course.root.glob(f"*ed/crowded/{NAME}/timestamp.txt"))
    assert len([path for path in graded if "crowded" in path.parts]) < 1_010
    linked = [path.name for path in course.graded.glob("linked-*/**/*.*")]
    assert sorted(linked) == sorted([f"{NAME}.ipynb", "given.csv", "more.csv"] * 3)
    shown = (course.graded / "overlong" / NAME / f"{NAME}.ipynb").read_text()
    assert not any(line in shown for line in Path("/etc/passwd").read_text().splitlines())
    assert not list((course.graded / "overlong").rglob("leak*"))


def active_parts(html):
    """Scripts, handlers, frames, styles and addresses in a page."""
    soup = BeautifulSoup(html, "html.parser")
    tags = soup.find_all(["script", "iframe", "object", "embed", "svg", "form", "base", "link", "meta", "style"])
    found = {str(tag) for tag in tags}
    for name, value in [(name, str(tag[name])) for tag in soup.find_all(True) for name in tag.attrs]:
        address = name in ("href", "src", "srcdoc", "action") and not re.match("#|data:image/(png|jpeg);", value)
        found |= {f"{name}={value}"} if name.startswith("on") or name == "style" or address else set()
    return found


LOOKED_AT = ("z-active", "z-characters", "zoe")


def assert_nothing_active(active, odd, honest):
    """Pages of these three learners: a hostile one holds what an honest one holds, and shows the rest as text."""
    assert active_parts(active) == active_parts(odd) == active_parts(honest)
    for shown in ("alert(1)", PICTURE, "<strong>bold</strong>"):
        assert shown in active


def test_feedback_carries_nothing_active_to_the_learner(course):
    pages = [course.root / "feedback" / learner / NAME / f"{NAME}.html" for learner in LOOKED_AT]
    assert_nothing_active(*(page.read_text(encoding="utf-8") for page in pages))


def test_the_formgrader_carries_nothing_active_to_the_instructor(course, monkeypatch):
    """The formgrader makes its pages in the instructor's Jupyter server, with these settings and this exporter."""
    monkeypatch.chdir(course.root)
    formgrader, server = FormgradeExtension(), SimpleNamespace(settings={})
    formgrader.root_dir = str(course.root)
    formgrader.initialize([], root=str(course.root))
    formgrader.init_tornado_settings(server)
    resources = {"index": 0, "total": 1, "base_url": "", "submission_id": "x", "student": "x", "notebook_path": "x"}
    paths = [f"autograded/{learner}/{NAME}/{NAME}.ipynb" for learner in LOOKED_AT]
    exporter = server.settings["nbgrader_exporter"]
    assert_nothing_active(*(exporter.from_filename(path, resources=dict(resources))[0] for path in paths))


def test_every_attack_in_the_table_has_its_test():
    table = (EXERCISES / "ATTACKS.md").read_text(encoding="utf-8")
    rows = [line for line in table.splitlines() if line.startswith("| ") and not line.startswith("| attack |")]
    sources = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parents[1].rglob("test_*.py"))
    assert len(rows) >= 40
    for row in rows:
        cases, tests = re.findall(r"`\[([\w-]+)\]`", row), re.findall(r"`(test_\w+)`", row)
        assert cases or tests, row
        assert set(cases) <= CASES.keys(), row
        assert all(f"def {name}(" in sources for name in tests), row
