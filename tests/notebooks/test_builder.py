"""What tools/build_notebooks.py promises, on small books of its own.

How a cell of the text becomes cells of a notebook is proven on the whole book, which `make check-source` compares.
"""

import json
import shutil
from pathlib import Path

import build_equation_numbers as equation_numbers
import build_notebooks as builder
import nbformat
import pytest
import scores
from click.testing import CliRunner
from mathllm_exercises import bank, checks

KERNEL = "kernelspec: {name: python3, display_name: Python 3}\n"


def front(slug):
    return f"---\ntitle: {slug}\n{KERNEL}mathllm: {{slug: {slug}}}\n---\n\n# {slug}\n\n"


CHAPTER = (
    front("vectors")
    + """\
```{code-cell} python
:label: setup
import helper, mathllm
print(helper.greeting, {"a", "b"} == {"b", "a"})
```

```{code-cell} python
:label: figure
:tags: [hide-input]
import matplotlib.pyplot as plt
from mathllm.figures import plots

fig, axes = plt.subplots()
axes.plot([1, 2])
plots.show(fig, alt="A rising line.")
```

```{code-cell} python
:label: moving
import anywidget, traitlets

class Slider(anywidget.AnyWidget):
    _esm = "export default {render({model, el}) { el.textContent = model.get('angle') }}"
    angle = traitlets.Int(1).tag(sync=True)

    def __repr__(self):
        return "Slider"

Slider(angle=30)
```

```{code-cell} python
:tags: [raises-exception]
print("before")
[][1]
```

The end.
"""
)
ASSIGNMENT = (
    front("vectors")
    + """\
```{code-cell} python
import numpy as np
```

Warm up.

:::{exercise} 01.vectors.double
### Twice
★☆☆ · 5 min · Primer

Write `double`.

- hint: Add.
- hint: Add x.
```{code-cell} python
def double(x):
    \"\"\"Twice x.\"\"\"
    return 2 * x
```
- (0) `2 * x` -> `3 * x`: That is thrice x.
:::

:::{exercise} 01.vectors.seven
### Seven
★★☆ · 3 min · ours

What is 3 + 4?
```{code-cell} python
seven = 3 + 4
```
:::

:::{exercise} 01.vectors.why
### Why?
★★★ · 9 min · ours

Explain it.

- rubric 3: names the sum
:::
:::{answer}
Because $2x = x + x$.
:::

Well done.
"""
)
CELL = "```{code-cell} python\n"
END = CHAPTER.count("\n")


@pytest.fixture(autouse=True)
def small_checks(monkeypatch):
    """The checks of the small book stand in for the real ones."""

    def write(c):
        c.values(2, public=[(1.0,)])

    known = {"01.vectors.double": checks.Rules(write)}
    monkeypatch.setattr(bank, "rules", lambda id: known.get(id, checks.Rules()))


def write(root, chapter=None, assignment=None, name="01_vectors"):
    for folder, text in (("book", chapter), ("exercises/assignments", assignment)):
        if text is not None:
            (root / folder).mkdir(parents=True, exist_ok=True)
            (root / folder / f"{name}.md").write_text(text, encoding="utf-8")


def run(root, *arguments):
    result = CliRunner().invoke(builder.main, ["--root", str(root), *arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    return result


def built(root, chapter=None, assignment=None):
    """The cells of the chapter, once these texts are built."""
    write(root, chapter, assignment)
    assert run(root).exit_code == 0
    return chapter_of(root).cells


def refused(root, *arguments):
    """What is said when something is wrong."""
    result = run(root, *arguments)
    assert result.exit_code == 1
    return result.output


def chapter_of(root):
    return nbformat.read(root / "notebooks" / "01_vectors.ipynb", as_version=4)


def everything(root):
    """Every file under a folder, and its bytes."""
    return {path: path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def built_once(tmp_path_factory):
    root = tmp_path_factory.mktemp("book").resolve()
    write(root, CHAPTER)
    (root / "requirements.lock").write_text("numpy==2\n")
    (root / "notebooks").mkdir()
    (root / "notebooks" / "helper.py").write_text('greeting = "hello"\n')
    assert run(root).exit_code == 0
    return root


@pytest.fixture
def book(built_once, tmp_path):
    """A small book whose one chapter is built."""
    return shutil.copytree(built_once, tmp_path / "book").resolve()


@pytest.fixture
def executions(monkeypatch):
    """The chapters that are executed again: nothing is run, the outputs stay empty."""
    names = []
    monkeypatch.setattr(builder, "_execute", lambda text, notebook: names.append(text.name) or [])
    return names


# Building


def test_building_twice_changes_no_byte_and_leaves_no_drift(book):
    before = everything(book)
    assert "built in" in run(book, "--force").output
    assert everything(book) == before
    checked = run(book, "--check")
    assert (checked.exit_code, checked.output) == (0, "")


def test_an_executed_notebook_holds_outputs_and_no_trace_of_when_or_where(book):
    notebook = chapter_of(book)
    setup, figure, moving, error = (cell for cell in notebook.cells if cell.cell_type == "code")
    assert setup.outputs[0].text == "hello True\n"
    assert figure.outputs[0].metadata["image/png"]["alt"] == "A rising line."
    assert figure.metadata == {"tags": ["hide-input"]}
    assert [output.output_type for output in error.outputs] == ["stream", "error"]
    assert error.outputs[1].traceback == ["IndexError: list index out of range"]
    state = notebook.metadata.widgets[builder.WIDGETS].state
    shown = moving.outputs[0].data["application/vnd.jupyter.widget-view+json"].model_id
    assert state[shown].state.angle == 30
    assert state[shown].state.layout.removeprefix("IPY_MODEL_") in state
    assert setup.metadata == {}
    assert "version" not in notebook.metadata.language_info


def test_widgets_of_two_chapters_never_share_an_id(book):
    first, second = chapter_of(book), chapter_of(book)
    builder._name_widgets(builder.Text(book, Path("book/02_similarity.md")), second)
    ids = [{*notebook.metadata.widgets[builder.WIDGETS].state} for notebook in (first, second)]
    assert ids[0].isdisjoint(ids[1])


def cell(code, options=":label: broken\n"):
    return f"{CELL}{options}{code}\n```\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (cell("1 / 0"), "broken failed: ZeroDivisionError: division by zero"),
        (cell("import os\nos._exit(3)"), "broken failed: Kernel died"),
        (cell("import warnings\nwarnings.warn('careful')"), "broken wrote to stderr"),
        (cell("object()"), "broken shows an object address"),
        (cell("import os\nprint(os.getcwd())"), "broken shows a path of this machine"),
        (cell("import matplotlib.pyplot as plt\nplt.plot([1])\nplt.show()"), "without alternative text"),
        (cell("from IPython.display import HTML\nHTML('<img src=\"a.png\">')"), "without alternative text"),
        (cell('if data.available("glove"): print(1)'), "broken needs the data package 'glove'"),
        (cell("1", ":evidence: primer.ch02.ex2.cosine = 0.5\n"), "2-evidence failed: ReferenceMismatchError"),
        (":::{choose} Which?\n:answer: 'cat'\n:option: 1\n:option: 2\n:::\n", "the answer 'cat' is none"),
    ],
)
def test_a_cell_that_fails_is_named_and_leaves_the_old_notebook(book, monkeypatch, tmp_path, text, message):
    monkeypatch.setenv("MATHLLM_DATA", str(tmp_path / "no data"))
    before = everything(book / "notebooks")
    write(book, front("vectors") + text)
    said = refused(book)
    assert "book/01_vectors.md:9: cell 01-" in said
    assert message in said
    assert everything(book / "notebooks") == before


def test_a_chapter_that_fails_does_not_stop_the_others(book, executions):
    write(book, "no front matter")
    write(book, front("similarity"), name="02_similarity")
    refused(book)
    assert executions == ["02_similarity"]
    assert (book / "notebooks" / "02_similarity.ipynb").exists()


def test_an_interrupted_write_leaves_the_old_notebook_and_nothing_else(book, monkeypatch):
    before = everything(book / "notebooks")

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(builder.os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        builder._write(book / "notebooks" / "01_vectors.ipynb", "half")
    assert everything(book / "notebooks") == before


# Building only what changed


@pytest.mark.parametrize("changed", ["requirements.lock", "notebooks/01_vectors.ipynb", "book/01_vectors.md"])
def test_a_chapter_is_executed_again_where_a_file_has_changed(book, executions, changed):
    path = book / changed
    path.write_text(path.read_text(encoding="utf-8").replace("The end.", "The very end.").replace("==2", "==3"))
    run(book)
    assert executions == ["01_vectors"]


def test_an_unchanged_chapter_is_not_executed_again_even_without_the_cache(book, executions):
    assert "unchanged" in run(book).output
    shutil.rmtree(book / ".cache")
    assert "unchanged" in run(book).output
    assert executions == []


def test_a_changed_module_of_mathllm_is_noticed(book, executions):
    cache = book / ".cache" / "notebooks" / "01_vectors.json"
    known = json.loads(cache.read_text())
    (plots,) = (path for path in known if path.endswith("mathllm/figures/plots.py"))
    assert any(path.endswith("mathllm/reference_values.toml") for path in known)
    assert not any("helper.py" in path for path in known)
    cache.write_text(json.dumps(known | {plots: "another"}))
    run(book)
    assert executions == ["01_vectors"]


def test_a_chapter_is_chosen_by_number_or_slug(book, executions):
    write(book, front("similarity"), name="02_similarity")
    for name in ("1", "01", "vectors", "01_vectors"):
        assert run(book, "--force", name).exit_code == 0
    assert executions == ["01_vectors"] * 4
    assert "there is no text 'vektors'; there are 01_vectors, 02_similarity" in refused(book, "vektors")


def test_what_no_chapter_asks_for_at_present_is_built_too(book):
    asked = cell("words = None", ":evidence: primer.ch02.ex2.cosine_2dp = words if words\n")
    asked += ":::{predict} How long?\n:answer: 5\n:tolerance: 1e-6\nBy Pythagoras.\n:::\n"
    evidence, _, answer = built(book, front("vectors") + asked)[-3:]
    assert evidence.source.endswith('if words:\n    reference.check("primer.ch02.ex2.cosine_2dp", words)')
    assert answer.metadata.tolerance == "1e-6"


# The scoreboard

RECORD = """\
```{code-cell} python
from mathllm.figures import scoreboard
scoreboard.record("01", {"first": 25.0, "second": 20.0}, characters=10)
```
"""


def test_the_rows_of_a_chapter_are_kept_and_a_table_that_is_not_theirs_is_found(book):
    shown = built(book, front("vectors") + RECORD)[-1].outputs[0].data["text/markdown"]
    place = book / scores.PLACE
    assert json.loads(place.read_text()) == [["01", "first", 2.5], ["01", "second", 2.0]]
    assert "| 01 | **first** | 2.500 | 3.607 |" in shown
    assert run(book, "--check").exit_code == 0
    before = place.read_text()
    place.write_text(before.replace("2.5", "2.6"))
    assert "notebooks/01_vectors.ipynb: the scoreboard is not that of" in run(book, "--check").output
    assert "built" in run(book).output
    assert place.read_text() == before
    built(book, front("vectors"))
    assert json.loads(place.read_text()) == []


def test_a_later_chapter_leaves_the_rows_of_others_alone(tmp_path):
    place = tmp_path / scores.PLACE
    place.parent.mkdir(parents=True)
    place.write_text('[["01", "a", 2.5], ["02", "old", 2.2], ["03", "c", 2.0]]')
    output = nbformat.v4.new_output("display_data", metadata={"scoreboard": [["01", "a", 2.5], ["02", "new", 2.1]]})
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("", outputs=[output])])
    assert scores.drift(tmp_path, "02", notebook) is not None
    scores.keep(tmp_path, "02", notebook)
    assert scores.kept(tmp_path) == [["01", "a", 2.5], ["02", "new", 2.1], ["03", "c", 2.0]]
    assert scores.drift(tmp_path, "02", notebook) is None
    assert scores.drift(tmp_path, "03", notebook) is not None


# Drift


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda nb: nb.cells[1].update(source="1"), "the source of cell 01-setup"),
        (lambda nb: nb.cells[2].update(id="other"), "the id of cell 01-figure"),
        (lambda nb: nb.cells[2].metadata.clear(), "the metadata of cell 01-figure"),
        (lambda nb: nb.cells.pop(), "has 5 cells"),
        (lambda nb: nb.cells.append(nbformat.v4.new_markdown_cell("more")), "has 7 cells"),
        (lambda nb: nb.metadata.update(author="me"), "the metadata of the notebook"),
        (lambda nb: nb.cells[2].outputs[0].metadata.clear(), "cell 01-figure shows a picture"),
    ],
)
def test_a_notebook_edited_by_hand_is_found_and_named(book, edit, message):
    path = book / "notebooks" / "01_vectors.ipynb"
    notebook = chapter_of(book)
    edit(notebook)
    nbformat.write(notebook, path)
    said = refused(book, "--check")
    assert "notebooks/01_vectors.ipynb" in said
    assert message in said


def test_text_without_notebook_notebook_without_text_and_a_file_that_is_no_notebook_are_found(book):
    write(book, front("similarity"), name="02_similarity")
    (book / "notebooks" / "01_vectors.ipynb").rename(book / "notebooks" / "03_matrices.ipynb")
    (book / "notebooks" / "01_vectors.ipynb").write_text("{")
    no_notebook, *rest = run(book, "--check").output.splitlines()
    assert "notebooks/01_vectors.ipynb is not a notebook" in no_notebook
    assert rest == [
        "book/02_similarity.md has no notebook notebooks/02_similarity.ipynb",
        "notebooks/03_matrices.ipynb has no text",
    ]


# Malformed texts


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("# Vectors\n", 1, "front matter is missing"),
        ("---\ntitle: [\n---\n# A\n", 2, "front matter is not YAML"),
        (front("similarity"), 1, "the front matter needs mathllm: {slug: vectors}"),
        ("---\nmathllm: {slug: vectors}\n---\n# A\n", 1, "the front matter needs kernelspec"),
        ("---\n" + KERNEL + "mathllm: {slug: vectors}\n---\n# A\n", 1, "needs a title"),
        (front("vectors").replace("# vectors", "vectors"), 7, "must open with its title"),
        (CHAPTER + CELL + "1\n", END + 1, "is not closed"),
        (CHAPTER + ":::{note}\nHear!\n", END + 1, "the directive ':::{note}' is not closed"),
        (CHAPTER + ":::{note}\n" + CELL + "1\n```\n:::\n", END + 2, f"inside the directive of line {END + 1}"),
        (CHAPTER + "- a\n\n  " + CELL + "  1\n  ```\n", END + 3, "must stand on its own"),
        (CHAPTER + "\n:::\n", END + 2, "none is open"),
        (CHAPTER + CELL + ":label: setup\n1\n```\n", END + 1, "'setup' is used twice, first in line 9"),
        (CHAPTER + "$$\na\n$$ (one)\n\n$$\nb\n$$ (one)\n", END + 7, f"'one' is used twice, first in line {END + 3}"),
        (CHAPTER + CELL + ":label: Two Words\n1\n```\n", END + 1, "must be lower-case words"),
        (CHAPTER + CELL + ":lable: two\n1\n```\n", END + 1, "unknown cell option 'lable'"),
        (CHAPTER + CELL + ":tolerance: small\n1\n```\n", END + 1, "the tolerance 'small' is not of the form"),
        (CHAPTER + CELL + ":evidence: primer.ch02.ex2.cosine\n1\n```\n", END + 1, "evidence is `ROW = EXPRESSION`"),
        (CHAPTER + CELL + ":evidence: primer.ch02.ex2.dot = 2 +\n1\n```\n", END + 1, "evidence is `ROW = EXPRESSION`"),
        (CHAPTER + CELL + ":evidence: primer.dot = 2\n1\n```\n", END + 1, "no reference value 'primer.dot'"),
        (CHAPTER + "A\n{eq}`eq-none`\n", END + 2, "no equation of the book has the label 'eq-none'"),
        (CHAPTER + CELL + ":label: fig-a\n1\n```\n", END + 1, "a figure has both a label fig-… and a caption"),
        (CHAPTER + CELL + ":caption: a\n1\n```\n", END + 1, "a figure has both a label fig-… and a caption"),
        (CHAPTER + "$$\na\n$$ (one)\n\n{numref}`one`\n", END + 5, "no figure of the book has the label 'one'"),
        (CHAPTER + ":::{notation}\n:::\n", END + 1, "notation.toml has no symbol of chapter 01"),
        (CHAPTER + ":::{predict} How?\nBecause.\n:::\n", END + 1, "a question has its words, then `:answer:"),
        (CHAPTER + ":::{predict} How?\n:answer: 1 +\n:::\n", END + 1, "the answer '1 +' is no expression"),
        (CHAPTER + ":::{predict} How?\n:answer: 1\n:option: 1\n:::\n", END + 1, "a prediction may have :format:"),
        (CHAPTER + ":::{choose} How?\n:answer: 1\n:option: 1\n:::\n", END + 1, "a choice has :option: twice"),
        (CHAPTER + ":::{choose}\n:answer: 1\n:option: 1\n:option: 2\n:::\n", END + 1, "a question needs words"),
        (CHAPTER + "::::{note}\n:::{choose} How?\n:::\n::::\n", END + 2, "a question must stand on its own"),
        (CHAPTER + "{cite}`nobody1900`\n", END + 1, "references.bib has no entry 'nobody1900'"),
        (CHAPTER + CELL + ":tags: hide-input\n1\n```\n", END + 2, "tags are a list"),
        (CHAPTER + CELL + ":tags: [\n1\n```\n", END + 1, "Invalid YAML"),
        (CHAPTER + "![](picture.png)\n", END + 1, "a picture has no alternative text"),
        (CHAPTER + "\n{{exercise_cards}}\n", END + 2, "there is no exercises/assignments/01_vectors.md"),
    ],
)
def test_a_malformed_chapter_is_refused_with_file_and_line(book, executions, text, line, message):
    before = everything(book / "notebooks")
    write(book, text)
    for said in (refused(book), refused(book, "--check")):
        assert f"book/01_vectors.md:{line}: " in said
        assert message in said
    assert executions == []
    assert everything(book / "notebooks") == before


def changed(old, new=""):
    assert old in ASSIGNMENT
    return ASSIGNMENT.replace(old, new)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (changed("    return 2", "    ### BEGIN SOLUTION\n    return 2"), 23, "one region"),
        (changed('    """Twice x."""\n'), 23, "a function keeps its docstring"),
        (changed("seven = 3 + 4", "print(3 + 4)"), 36, "not Python"),
        (changed("3 + 4\n```", "3 +\n```"), 36, "the answer is not Python"),
        (changed("vectors.seven", "vectors.double"), 31, "stands here twice, first in line 15"),
        (changed("vectors.seven", "matrices.seven"), 31, "is called 01.vectors.name"),
        (changed("- rubric 3: names the sum\n", ""), 41, "has an :::{answer}"),
        (changed("- hint: Add.", "- hind: Add."), 21, "unknown field 'hind'"),
        (changed("★☆☆", "★"), 17, "three stars"),
        (changed("3 min", "3 min · 2 points"), 33, "none are written"),
        (changed("`2 * x` ->", "`4 * x` ->"), 28, "the solution does not contain `4 * x`"),
        (changed("`3 * x`:", "`3 *`:"), 28, "not Python"),
        (changed(": That is thrice x.", ""), 28, "the sentence that names it"),
        (changed(":::{answer}", ":::{solution}"), 49, "a block is {exercise} or {quick}"),
        (ASSIGNMENT + "{{exercise_cards}}\n", 54, "for chapters"),
    ],
)
def test_a_malformed_assignment_is_refused_with_file_and_line(tmp_path, text, line, message):
    write(tmp_path, assignment=text)
    said = refused(tmp_path)
    assert f"assignments/01_vectors.md:{line}: " in said
    assert message in said
    assert not (tmp_path / "exercises" / "source").exists()


def test_an_assignment_becomes_two_notebooks_and_nothing_is_executed(tmp_path, executions):
    write(tmp_path, assignment=ASSIGNMENT)
    assert run(tmp_path).exit_code == run(tmp_path, "--check").exit_code == 0
    assert executions == []
    made = {path.relative_to(tmp_path / "exercises").as_posix() for path in tmp_path.rglob("*.ipynb")}
    assert made == {"source/01_vectors/01_vectors.ipynb", "practice/01_vectors.ipynb"}


def test_a_docstring_follows_its_equation_to_another_number():
    old, new = {"eq-norm": "1.2", "eq-dot": "2.1", "eq-gone": "2.2"}, {"eq-norm": "1.3", "eq-dot": "1.2"}
    text = "‖x‖ = √Σxᵢ²   (1.2), a·b (2.1), f(1.2), lost (2.2)"
    changed, missing = equation_numbers.renumbered(text, old, new)
    assert changed == "‖x‖ = √Σxᵢ²   (1.3), a·b (1.2), f(1.2), lost (2.2)"
    assert missing == ["2.2"]
