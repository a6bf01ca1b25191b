"""The blocks of an order, of lines and of a choice in a text: the cells that they become, and mistakes in them."""

import exercise_cells
import exercise_text
import pytest
from notebook_text import SourceError
from package import ROOT

TEXT = """\
---
title: A small assignment
kernelspec: {name: python3, display_name: Python 3}
mathllm: {slug: vectors}
---

# Small

:::{exercise} 01.vectors.sum_order
### A sum
★☆☆ · 6 min · ours

Put it in order.

- hint: Begin with $a$.
:::
:::{order}
1. $a$ is a number
2. (first) so is $b$
3. (after 1, 2) so is $a + b$, a *sum*
- so is $a / b$
  Not if b is 0.
:::

Next.

:::{exercise} 01.vectors.square_lines
### A square
★☆☆ · 5 min · ours

Derive it.
:::
:::{lines}
- x: (n,)
- s: = np.sum(x)
- between: 1
```
s * np.sum(x)
s * s
s**2
```
- `s * s` -> `2 * s`: A square is no double.
- `s`: Once is not twice.
:::

:::{exercise} 01.vectors.bar_choice
### A bar
★☆☆ · 5 min · ours

The figure above shows a bar.
```{code-cell} python
print("a figure")
```
:::
:::{choice}
- [ ] It is short
  It is longer than that.
- [x] It is long
  So it is.
:::

:::{exercise} 01.vectors.size_choice
### A size
★☆☆ · 5 min · ours

How long?
:::
:::{choice}
- 0 to 2
  Longer.
- [x] 2 to 5
  Yes.
:::
"""


def write(folder, text=TEXT):
    path = folder / "assignments" / "01_vectors.md"
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    return path


def test_a_block_becomes_card_answer_and_check_and_a_figure_stands_above_its_card(tmp_path):
    cells = exercise_cells.assignment_cells(write(tmp_path))
    by_id = {cell.id: cell for cell in cells}
    assert [id for id in by_id if "card" in id or "figure" in id] == [
        "01-vectors-sum_order-card", "01-vectors-square_lines-card", "01-vectors-bar_choice-figure",
        "01-vectors-bar_choice-card", "01-vectors-size_choice-card",
    ]  # fmt: skip
    answer = by_id["01-vectors-sum_order-answer"].source
    assert answer.startswith('arrange("01.vectors.sum_order")\nsum_order = ...\n### BEGIN SOLUTION\nsum_order = "')
    assert by_id["01-vectors-sum_order"].source == 'check("01.vectors.sum_order", sum_order).score()'
    assert by_id["01-vectors-bar_choice-answer"].source.endswith('bar_choice = "B"\n### END SOLUTION')
    figure = by_id["01-vectors-bar_choice-figure"].metadata
    assert figure["jupyter"] == {"source_hidden": True}
    assert figure["nbgrader"]["locked"]
    assert [by_id[f"01-vectors-{name}"].metadata.nbgrader["points"] for name in ("sum_order", "size_choice")] == [3, 2]


def test_what_a_learner_finds_has_the_first_and_the_last_line_and_no_solution(tmp_path):
    answers = {cell.id: cell.source for cell in exercise_cells.practice_cells(write(tmp_path)) if "answer" in cell.id}
    assert answers["01-vectors-square_lines-answer"] == (
        'square_lines = """\ns * np.sum(x)\n...\ns**2\n"""\n# your code here'
    )
    assert answers["01-vectors-bar_choice-answer"] == "bar_choice = ...\n# your code here"


def test_a_card_lists_lines_options_and_arrays(tmp_path):
    tasks = {id.split(".")[2]: entry.task for id, entry in exercise_cells.entries(write(tmp_path)).items()}
    order = tasks["sum_order"]
    assert "One line does not belong to it." in order
    assert [line[:8] for line in order.splitlines() if line.startswith("- ")] == [f"- **{x}** " for x in "ABCD"]
    assert "- **B** It is long" in tasks["bar_choice"]
    assert "Give one number from 0 to 5." in tasks["size_choice"]
    assert "- `x`: shape (n,)\n- `s`: short for `np.sum(x)`" in tasks["square_lines"]
    asked = "Begin with `s * np.sum(x)`, end with `s**2`, and write at least one line between them."
    assert asked in tasks["square_lines"]


def test_the_record_has_graph_replies_and_points_of_each_mistake(tmp_path):
    exercises = exercise_text.read(write(tmp_path)).exercises
    records = {id.split(".")[2]: exercise.record for id, exercise in exercises.items()}
    lines = {line["place"]: line for line in records["sum_order"]["lines"]}
    assert lines[3]["needs"] == [lines[1]["label"], lines[2]["label"]]
    assert lines[2]["needs"] == []
    assert "<math" in lines[3]["shown"]
    assert "<em>sum</em>" in lines[3]["shown"]
    assert [(m["sentence"], m["points"]) for m in records["sum_order"]["mistakes"]] == [("Not if b is 0.", 2.0)]
    assert records["square_lines"]["derivation"]["arrays"] == {"x": [["n"], "real"], "s": [[], "np.sum(x)"]}
    assert records["square_lines"]["mistakes"][1]["value"] == repr("s * np.sum(x)\ns\ns**2")
    assert [m["value"] for m in records["bar_choice"]["mistakes"]] == ["'A'"]
    assert [m["value"] for m in records["size_choice"]["mistakes"]] == ["1.0"]


def test_a_solution_is_shown_as_a_list_of_lines_or_with_its_reply(tmp_path):
    shown = [exercise_cells.shown_solution(cell) for cell, _ in exercise_cells.answers(write(tmp_path))]
    assert shown[0].startswith("1. **")
    assert "so is $a + b$, a *sum*" in shown[0]
    assert shown[1:] == ["```python\ns * np.sum(x)\ns * s\ns**2\n```", "- **B** It is long — So it is.", *shown[3:]]
    assert shown[3] == "From 2 to 5. Yes."


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("2. (first)", "4. (first)", 18, "numbered 1., 2., 3."),
        ("(after 1, 2)", "(after 3)", 20, "line 3 can need only lines above it"),
        ("  Not if b is 0.\n", "", 21, "says below it why"),
        ("1. $a$ is", "1. $\\frob{a}$ is", 18, "cannot be shown as MathML"),
        ("so is $b$\n", "so is $b$\nand more\n", 20, "this is no entry of the block: 'and more'"),
        ("s * s\n", "s * t\n", 39, "`s * t` uses `t`"),
        ("- x: (n,)\n", "- x: (n,) royal\n", 34, "the kinds are real, positive, distribution"),
        ("- between: 1\n", "- through: `s * np.sum(x)`\n", 34, "the first line already contains"),
        ("s * s\n", "", 34, "three expressions or more"),
        ("  It is longer than that.\n", "", 56, "below it stands the reply"),
        ("- [x] It is long", "- [ ] It is long", 56, "one of them right"),
        ("[x] 2 to 5", "[x] 3 to 5", 69, "follow each other"),
        (":::\n\nNext.", ":::\n:::{order}\n1. a\n2. b\n:::\n\nNext.", 24, "has one block {order}"),
        ("`s * s` ->", "`t * t` ->", 42, "the solution does not contain `t * t`"),
    ],
)
def test_a_mistake_in_a_block_is_one_sentence_with_file_and_line(tmp_path, old, new, line, message):
    assert TEXT.count(old) >= 1
    with pytest.raises(SourceError) as caught:
        exercise_cells.entries(write(tmp_path, TEXT.replace(old, new, 1)))
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"assignments/01_vectors.md:{line}: ")
    assert "\n" not in str(caught.value)


def test_the_examples_of_the_contributors_guide_are_exercises(tmp_path):
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = guide.partition("### Derivations and choices")[2].partition("````")[2].partition("````")[0]
    text = TEXT[: TEXT.index(":::{exercise}")]
    for kind, block in zip(("order", "lines", "choice"), section.strip().split("\n\n"), strict=True):
        head = f":::{{exercise}} 01.vectors.an_{kind}\n### T\n★☆☆ · 5 min · ours\n\nDo it.\n:::\n"
        text += f"{head}{block}\n\n"
    for id, entry in exercise_cells.entries(write(tmp_path, text)).items():
        (check,) = entry.checks
        assert check.assess(entry.expected()).share == 1, id
        for mistake in entry.mistakes:
            assert mistake.sentence in check.assess(mistake.make()).replies
