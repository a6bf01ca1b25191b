"""What the stored notebooks promise.

That they are what their texts say is proven by `make check-source`, that they show it again by nbval.
"""

import os
import re

import build_notebooks as builder
import nbformat
import pytest
from kernel_managers import AsyncKernelManager
from nbclient import NotebookClient
from package import ROOT

from mathllm.figures import widgets

TEXTS = builder.texts(ROOT)
CHAPTERS = sorted((ROOT / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_the_stored_figures_are_those_of_mathllm_today(path):
    notebook = nbformat.read(path, as_version=4)
    models = notebook.metadata.get("widgets", {}).get(builder.WIDGETS, {}).get("state", {}).values()
    for state in (model["state"] for model in models if "_esm" in model["state"]):
        name = state["_anywidget_id"].split(".")[-1]
        figure = getattr(widgets, name)
        assert state["_esm"] == figure._esm, f"{name} has changed: build this chapter again"
        assert state["_css"] == figure._css, "the style sheet has changed: build this chapter again"


@pytest.mark.nightly
@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_runs_through_where_no_data_is_installed(path, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    options = {"timeout": 600, "extra_arguments": ["--log-level=ERROR"], "kernel_manager_class": AsyncKernelManager}
    client = NotebookClient(notebook, resources={"metadata": {"path": str(path.parent)}}, **options)
    client.execute(env=os.environ | builder.ENVIRONMENT | {"MATHLLM_DATA": str(tmp_path)})
    outputs = [(cell.id, output) for cell in notebook.cells for output in cell.get("outputs", ())]
    assert outputs
    assert [(id, output.text) for id, output in outputs if output.get("name") == "stderr"] == []


def test_cells_print_what_they_measured_and_seldom_only_whether_it_agrees():
    verdicts = 0
    for path in CHAPTERS:
        for cell in nbformat.read(path, as_version=4).cells:
            for output in cell.get("outputs", ()):
                text = output.get("text") or output.get("data", {}).get("text/plain", "")
                verdicts += len(re.findall(r"\b(?:True|False)$", text, re.MULTILINE))
    assert verdicts <= 20
