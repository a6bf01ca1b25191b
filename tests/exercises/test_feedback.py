"""The page of feedback: titles, what has not been read yet, and where the solutions are."""

import os
from importlib.util import find_spec
from pathlib import Path

import nbformat
import pytest
from mathllm_grading import feedback
from nbconvert.exporters import HTMLExporter
from traitlets.config import Config


def cell(kind, **found):
    made = nbformat.v4.new_markdown_cell if kind == "markdown" else nbformat.v4.new_code_cell
    return made("an answer", metadata={"nbgrader": {"grade": True, "solution": kind == "markdown", **found}})


@pytest.fixture(scope="module")
def page():
    ours, theirs = (Path(find_spec(name).origin).parent for name in ("mathllm_grading", "nbgrader"))
    config = Config()
    config.HTMLExporter.template_name = "feedback"
    folders = ours / "templates", theirs / "server_extensions" / "formgrader" / "templates"
    config.HTMLExporter.extra_template_basedirs = [str(folder) for folder in folders]
    styles = next(root for root, _, files in os.walk(theirs) if "bootstrap.min.css" in files)
    config.HTMLExporter.extra_template_paths = [styles]
    waiting = cell("markdown", grade_id="w", title="Why?", waiting=True, score=0, points=5, comment="No response.")
    graded = cell("code", grade_id="x", title="Twice", waiting=False, score=1, points=2)
    names = {"notebook": "n", "score": 1, "max_score": 7, "late_penalty": 0, "waiting": 1, "solutions": "See there."}
    notebook = nbformat.v4.new_notebook(cells=[waiting, graded])
    return HTMLExporter(config=config).from_notebook_node(notebook, resources={"nbgrader": names})[0]


def test_cells_go_by_the_titles_of_their_exercises(page):
    assert '<a href="#x">Twice</a>: 1.0 of 2.0' in page
    assert "Test cell" not in page


def test_what_no_person_has_read_is_no_zero_and_no_missing_response(page):
    assert '<a href="#w">Why?</a>: not read yet, of 5.0' in page
    assert "1 written answer not read yet" in page
    assert "No response" not in page


def test_solutions_are_linked_where_the_site_is_known(page, monkeypatch):
    assert "See there." in page
    monkeypatch.delenv("MATHLLM_SITE", raising=False)
    assert "at the end of chapter 06" in feedback._solutions("06_softmax")
    monkeypatch.setenv("MATHLLM_SITE", "https://example.org/book/")
    assert 'href="https://example.org/book/notebooks/06_softmax.html"' in feedback._solutions("06_softmax")
