"""Formulas in the formgrader and the feedback: MathML in the page itself, no script, nobody else asked."""

import re

import nbformat
import pytest
from mathllm_grading.formulas import markdown2html, mathml
from package import ROOT

SOURCE = ROOT / "exercises" / "source"
ASSIGNMENTS = sorted(path.stem for path in SOURCE.glob("*/*.ipynb"))


def page(markdown):
    return markdown2html({"cell": {}}, markdown)


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_every_formula_of_an_assignment_becomes_mathml(name):
    notebook = nbformat.read(SOURCE / name / f"{name}.ipynb", 4)
    texts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    formulas = sum(len(re.findall(r"\$\$.+?\$\$|\$[^$]+\$", re.sub("`[^`]*`", "", text), re.DOTALL)) for text in texts)
    assert "".join(map(page, texts)).count("<math") == formulas > 0


def test_formulas_stand_in_their_sentence_and_display_ones_alone():
    aligned = r"$$\begin{aligned}c &= d \\ e &= \tfrac12\end{aligned}$$"
    shown = page(f"Let $a<b$.\n\n{aligned}\n\n" + r"\begin{align}x &= 1\end{align}")
    assert re.search(r"Let <math[^>]*>\s*<mi>a</mi>\s*<mo>&lt;</mo>\s*<mi>b</mi>\s*</math>\.", shown)
    assert shown.count('display="block"') == 2
    assert "$" not in shown


def test_code_and_escaped_dollars_are_no_formulas():
    shown = page("`$x$` costs \\$3 or \\$4\n\n```python\ny = '$x$'\n```")
    assert "<math" not in shown
    assert re.sub("<[^>]*>", "", shown).split("\n") == ["$x$ costs $3 or $4", "y = '$x$'", "", ""]


@pytest.mark.parametrize("tex", [r"\nothing{x}", "}" * 3, "{" * 5_000, r"\text{<b>"])
def test_what_is_no_formula_is_shown_as_it_was_written(tex):
    text = mathml(tex)
    assert text.startswith("<code>")
    assert tex.replace("<", "&lt;").replace(">", "&gt;") in text


def test_a_formula_brings_no_tag_of_its_own():
    shown = page(r"$\text{<script>alert(1)</script>}$ $\href{javascript:alert(1)}{x}$ $\mathrm{<img src=x onerror=y>}$")
    tags = set(re.findall(r"<([a-z]+)", shown))
    assert tags <= {"code", "math", "mi", "mn", "mo", "mrow", "mstyle", "mtext", "p"}
    assert "href=" not in shown


def test_hints_unfold():
    shown = page("<details>\n<summary><u>Hint 1</u></summary>\n\nTry $n = 1$.\n\n</details>")
    assert re.search(r"<details>\s*<summary><u>Hint 1</u></summary>.*<math.*</details>", shown, re.DOTALL)


def test_a_nested_formula_makes_no_large_page():
    tex = r"\frac{" * 330
    text = mathml(tex)
    assert "<mfrac>" in text
    assert len(text) < 10 * len(tex)
