"""The blocks of an order, of lines and of a choice in a text: mistakes in them, and the examples of the guide.

The cells that they become are compared by `make check-source`, on all exercises of the book.
"""

import exercise_cells
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


def test_what_no_exercise_has_at_present_is_shown_too(tmp_path):
    order = exercise_cells.entries(write(tmp_path))["01.vectors.sum_order"]
    assert "One line does not belong to it." in order.task
    assert any("<em>sum</em>" in line["shown"] for line in order.checks[0].assess.args[0])


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
