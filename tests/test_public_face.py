"""What a stranger meets first: workflows, the container, Binder, one version and one title in all places.

The linter of workflows, which is part of `make lint`, demands that each action is pinned to a commit.
"""

import json
import re
import tomllib
from types import SimpleNamespace

import head
import pytest
import yaml
from package import ROOT
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from pybtex.database import parse_string

import mathllm as ml

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOWS = {path.stem: path for path in sorted((ROOT / ".github" / "workflows").glob("*.yml"))}
CONTAINER = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8"))
each_workflow = pytest.mark.parametrize("name", WORKFLOWS)
WRITES = {("pages", "deploy"): {"pages", "id-token"}, ("release", "publish"): {"id-token"}}


def targets(makefile):
    """The names that a Makefile gives to rules."""
    return {name for line in re.findall(r"^([\w -]+):(?!=)", makefile, re.MULTILINE) for name in line.split()}


TARGETS = targets((ROOT / "Makefile").read_text(encoding="utf-8"))


def called_targets(command):
    """The targets that the calls of make in a shell's text ask for.

    >>> sorted(called_targets("make quick dist MODELS=no && echo made\\nmake site"))
    ['dist', 'quick', 'site']
    """
    calls = re.findall(r"(?:^|[;&|(]\s*)make\b([^;&|\n]*)", command, re.MULTILINE)
    return {word for call in calls for word in call.split() if "=" not in word and not word.startswith("-")}


def workflow(name):
    return yaml.safe_load(WORKFLOWS[name].read_text(encoding="utf-8"))


def steps(name):
    return [step for job in workflow(name)["jobs"].values() for step in job["steps"]]


def pythons(name):
    """The versions of Python that a workflow's matrix names."""
    matrices = [job["strategy"]["matrix"] for job in workflow(name)["jobs"].values() if "strategy" in job]
    return [version for matrix in matrices for version in matrix.get("python", [])]


# Workflows


@each_workflow
def test_every_target_that_a_workflow_makes_is_in_the_makefile(name):
    called = set().union(*(called_targets(step.get("run", "")) for step in steps(name)))
    assert called
    assert called <= TARGETS


@each_workflow
def test_a_job_has_no_more_rights_than_it_needs(name):
    content = workflow(name)
    assert content["permissions"] == {}
    for label, job in content["jobs"].items():
        assert {right for right, level in job["permissions"].items() if level == "write"} == WRITES.get(
            (name, label), set()
        )
        assert set(job["permissions"]) <= {"contents", "pages", "id-token"}


def test_an_action_is_pinned_to_the_same_commit_everywhere_with_the_version_beside_it():
    texts = [path.read_text(encoding="utf-8") for path in WORKFLOWS.values()]
    used = [line for text in texts for line in re.findall(r"^ *-? *uses: (.*)$", text, re.MULTILINE)]
    assert len(used) == sum("uses" in step for name in WORKFLOWS for step in steps(name))
    assert all(re.search(r" # v\d+\.\d+\.\d+$", action) for action in used)
    assert len({action.partition("@")[0] for action in used}) == len({*used})


def test_every_python_that_is_promised_is_tested():
    prefix = "Programming Language :: Python :: 3."
    promised = ["3." + line.removeprefix(prefix) for line in PROJECT["classifiers"] if line.startswith(prefix)]
    assert pythons("quick") == promised
    assert all(SpecifierSet(PROJECT["requires-python"]).contains(version) for version in promised)


# The container and Binder


def test_the_container_makes_targets_that_exist():
    called = called_targets(CONTAINER["postCreateCommand"])
    assert called
    assert called <= TARGETS


def test_container_and_binder_have_a_python_that_is_tested():
    assert CONTAINER["image"].rpartition(":")[2] in pythons("quick")
    runtime = (ROOT / ".binder" / "runtime.txt").read_text(encoding="utf-8").strip()
    assert runtime.removeprefix("python-") in pythons("quick")


def test_binder_installs_the_lock_and_extras_that_exist():
    lock, package = (ROOT / ".binder" / "requirements.txt").read_text(encoding="utf-8").splitlines()[-2:]
    assert (ROOT / ".binder" / lock.removeprefix("--requirement ")).resolve() == ROOT / "requirements.lock"
    extras = Requirement(package.removeprefix("--editable .").join(["mathllm", ""])).extras
    assert extras
    assert extras <= set(PROJECT["optional-dependencies"])
    program = (ROOT / ".binder" / "postBuild").read_text(encoding="utf-8")
    assert (ROOT / re.search(r"python (\S+\.py)", program)[1]).exists()


def test_where_the_repository_is_known_a_page_leads_to_its_text_and_to_binder():
    app = SimpleNamespace(config=SimpleNamespace(book_repository="https://github.com/us/book"))
    context = {"header_buttons": []}
    head.offer_source(app, "notebooks/06_softmax", "page.html", context, "a page")
    text, notebook = (button["url"] for button in context["header_buttons"])
    assert (ROOT / text.removeprefix("https://github.com/us/book/edit/main/")).samefile(ROOT / "book/06_softmax.md")
    there = "https://mybinder.org/v2/gh/us/book/main?urlpath=lab/tree/"
    assert (ROOT / notebook.removeprefix(there)).samefile(ROOT / "notebooks/06_softmax.ipynb")


# The version and the title


def test_package_project_list_of_changes_and_citation_name_one_version_and_one_title():
    versions = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    file = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert ml.__version__ == PROJECT["version"] == versions[0] == file["version"]
    page = (ROOT / "book" / "citing.md").read_text(encoding="utf-8")
    printed = re.search(r"```bibtex\n(.*?)```", page, re.DOTALL)[1]
    fields, book = parse_string(printed, "bibtex").entries["mathllm2026"].fields, file["preferred-citation"]
    assert (book["title"], str(book["year"]), book["notes"]) == (fields["title"], fields["year"], fields["note"])
    assert book["title"] == file["title"]
    assert ml.__version__ in book["notes"]
    assert f"{{{{{book['authors'][0]['name']}}}}}" in page
