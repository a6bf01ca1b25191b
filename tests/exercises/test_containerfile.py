"""The recipe of the container that grades, read line by line: building it would need a network and rights."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

from package import ROOT, outside
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

RECIPE = ROOT / "exercises" / "Containerfile"
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT, WHEEL = PYPROJECT["project"], PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
CHAPTER = (ROOT / "book" / "teaching.md").read_text(encoding="utf-8")


def instructions():
    """The instructions of the recipe in their order: (its name, its words)."""
    text = re.sub(r"^#.*\n", "", RECIPE.read_text(encoding="utf-8"), flags=re.MULTILINE).replace("\\\n", " ")
    return [(name, words.split()) for name, _, words in (line.partition(" ") for line in text.splitlines() if line)]


def copied():
    """{where it is in the image: what is copied there from the checkout}."""
    found = {}
    for *sources, target in (words for name, words in instructions() if name == "COPY"):
        for source in sources:
            found[Path(target, source) if target.endswith("/") else Path(target)] = ROOT / source
    return found


def installed():
    """Where the package is installed from, and with which extras."""
    word = re.search(r'"(/\S+)\[([\w,-]+)\]"', " ".join(line for _, words in instructions() for line in words))
    return Path(word[1]), set(word[2].split(","))


def test_the_recipe_copies_what_the_package_is_built_from_and_installs_the_pinned_versions():
    assert [source for source in copied().values() if not source.exists()] == []
    named = ["pyproject.toml", PROJECT["readme"], *PROJECT["license-files"]]
    for path in [*named, *WHEEL["packages"], *WHEEL["force-include"]]:
        place = Path(installed()[0], path)
        assert {place, *place.parents} & copied().keys(), path
    lock = installed()[0] / "requirements.lock"
    assert copied()[lock] == ROOT / "requirements.lock"
    assert f"--constraint {lock}" in RECIPE.read_text(encoding="utf-8")


def test_the_extras_that_the_recipe_installs_hold_all_that_the_packages_of_the_course_import():
    extras = [PROJECT["optional-dependencies"][extra] for extra in installed()[1]]
    asked = [Requirement(entry) for entry in sum(extras, PROJECT["dependencies"])]
    asked += [Requirement(entry) for each in asked for entry in metadata.requires(each.name) or ()]
    there = {canonicalize_name(each.name) for each in asked if each.marker is None}
    providers = metadata.packages_distributions()
    folders = [ROOT / folder for folder in WHEEL["packages"] if folder.startswith("exercises/")]
    ours = {"mathllm", *(folder.name for folder in folders)}
    for package in outside([path for folder in folders for path in folder.rglob("*.py")], ours):
        assert there & set(map(canonicalize_name, providers[package])), package


def test_the_recipe_has_a_tested_python_and_ends_without_the_rights_of_root():
    (_, (image,)), *rest = instructions()
    version = re.fullmatch(r"python:(\d+\.\d+)-slim", image)[1]
    assert f"Programming Language :: Python :: {version}" in PROJECT["classifiers"]
    assert [words for name, words in rest if name == "USER"][-1] != ["root"]


def test_the_chapter_builds_this_recipe_and_mounts_the_course_where_it_works():
    assert f"podman build --file {RECIPE.relative_to(ROOT)} --tag mathllm-grader ." in CHAPTER
    workdir = next(words[0] for name, words in instructions() if name == "WORKDIR")
    assert f":{workdir}" in re.search(r"podman run .*", CHAPTER)[0]
