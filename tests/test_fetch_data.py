"""Fetching real data: whole and verified or not there at all, one line for each failure, and never a failed set-up."""

import hashlib
import os
import re
import shutil
import time
import zipfile
from dataclasses import replace

import fetch_data as tool
import pytest
from package import ROOT
from test_data import toy_package

from mathllm import data

pytestmark = pytest.mark.slow

CONTENT = b"mary 1\njames 2\n"


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def make_wheel(folder, name, content=CONTENT):
    """A wheel `name` 1.0 whose module holds one file, names.txt; its sha256."""
    module, about = name.replace("-", "_"), f"{name.replace('-', '_')}-1.0.dist-info"
    files = {
        f"{module}/__init__.py": b"raise RuntimeError('data packages are never imported')\n",
        f"{module}/names.txt": content,
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\nRequires-Dist: torch\n".encode(),
        f"{about}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{about}/RECORD"] = "".join(f"{path},,\n" for path in (*files, f"{about}/RECORD")).encode()
    wheel = folder / f"{module}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, body in files.items():
            archive.writestr(zipfile.ZipInfo(path), body)
    return sha256(wheel.read_bytes())


def row(name, distribution, content=CONTENT):
    return replace(toy_package(content), name=name, package=f"{name}-data", sha256=distribution, module=f"{name}_data")


@pytest.fixture
def index(monkeypatch, tmp_path):
    """A folder of distributions is all that pip can reach, and the data folder is a temporary one."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("MATHLLM_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("MODELS", raising=False)
    return wheels


@pytest.fixture
def use(monkeypatch):
    """`use(row, ...)` replaces the table of packages."""
    return lambda *rows: monkeypatch.setattr(data, "packages", lambda: {package.name: package for package in rows})


@pytest.fixture
def toy(index, use):
    """One package that can be had."""
    package = row("toy", make_wheel(index, "toy-data"))
    use(package)
    return package


@pytest.fixture
def offline(monkeypatch):
    """`offline()`: from now on, starting a process fails the test."""
    return lambda: monkeypatch.setattr(tool.subprocess, "run", lambda *_, **__: pytest.fail("started a process"))


def left_behind():
    return sorted(path.name for path in data.folder().iterdir()) if data.folder().exists() else []


# Fetching


def test_a_package_is_fetched_without_its_dependencies_and_a_second_run_starts_no_process(toy, offline, capsys):
    assert tool.main([]) == 0
    assert re.fullmatch(r".*toy.*0\.1 MB.*verified.*\n", capsys.readouterr().out)
    assert (data.path("toy") / "names.txt").read_bytes() == CONTENT
    assert left_behind() == ["toy"]
    assert not list((data.folder() / "toy").glob("torch*"))
    offline()
    for _ in range(2):
        assert tool.main([]) == 0
        assert capsys.readouterr().out == "real data: here (toy)\n"
        os.utime(data.path("toy") / "names.txt", ns=(0, 0))


def test_a_name_that_is_not_in_the_table_is_refused(toy, capsys):
    with pytest.raises(SystemExit) as stopped:
        tool.main(["tyo"])
    assert stopped.value.code == 2
    assert "tyo" in capsys.readouterr().err


def test_models_no_is_one_line_and_touches_nothing(toy, offline, monkeypatch, capsys):
    monkeypatch.setenv("MODELS", "no")
    offline()
    assert tool.main([]) == 0
    assert capsys.readouterr().out.count("\n") == 1
    assert not data.folder().exists()


def test_the_lock_has_what_builds_the_one_source_distribution():
    """`names` has no wheel, and is built without isolation by the pinned setuptools."""
    assert "\nsetuptools==" in (ROOT / "requirements.lock").read_text(encoding="utf-8")


# Failures: one line, exit code 0, nothing half-written


def failed_line(capsys):
    """Run, and give the one line printed."""
    assert tool.main([]) == 0
    printed = capsys.readouterr().out
    assert printed.count("\n") == 1
    assert "make data" in printed
    assert "not fetched" in printed
    return printed


def test_a_package_that_cannot_be_had_is_one_line_and_the_others_still_come(index, use, capsys):
    use(row("absent", "0" * 64), row("toy", make_wheel(index, "toy-data")))
    assert tool.main([]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert "absent" in first
    assert "not fetched" in first
    assert "Could not find a version" in first
    assert "verified" in second
    assert left_behind() == ["toy"]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"sha256": "0" * 64}, "hash"),
        ({"files": (data.File("names.txt", len(CONTENT), "0" * 64),)}, "names.txt does not have the sha256"),
        ({"files": (data.File("others.txt", 1, "0" * 64),)}, "others.txt is missing"),
    ],
)
def test_a_distribution_that_is_not_what_the_table_says_is_refused(toy, use, capsys, wrong, words):
    use(replace(toy, **wrong))
    assert words in failed_line(capsys).lower()
    assert left_behind() == []


def test_a_folder_that_cannot_be_made_is_one_line(toy, capsys):
    data.folder().write_text("a file stands where the folder should be")
    assert "data" in failed_line(capsys)


def test_an_interrupted_run_leaves_nothing(toy, monkeypatch):
    def interrupt(package, target, *rest):
        (target / package.module).mkdir(parents=True)
        raise KeyboardInterrupt

    monkeypatch.setattr(tool, "install", interrupt)
    with pytest.raises(KeyboardInterrupt):
        tool.main([])
    assert left_behind() == []


def test_what_a_killed_run_left_is_never_taken_for_the_package_and_goes_after_a_while(toy):
    killed, running = data.folder() / ".partial-killed", data.folder() / ".partial-running"
    for folder in (killed, running):
        (folder / "new" / "toy_data").mkdir(parents=True)
        (folder / "new" / "toy_data" / "names.txt").write_bytes(CONTENT[:5])
    long_ago = time.time() - 2 * tool.ABANDONED
    os.utime(killed, (long_ago, long_ago))
    assert not data.available("toy")
    tool.main([])
    assert left_behind() == [".partial-running", "toy"]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("WARNING: Retrying (Retry(total=4))\nERROR: Could not find a", "the package registry cannot be reached"),
        ("WARNING: odd\nERROR: No matching distribution\n[notice] A new release of pip", "No matching distribution"),
        ("No module named pip", "No module named pip"),
        ("", "pip failed without a message"),
        ("ERROR: " + "x" * 201, "x" * 199 + "…"),
    ],
)
def test_many_lines_of_an_installer_become_one_that_is_not_long(said, told):
    assert tool.reason(said) == told


# Damage and repair


@pytest.mark.parametrize("damage", [CONTENT[:5], b"mary 9\njames 2\n"], ids=["truncated", "changed"])
def test_a_damaged_file_is_found_and_fetched_again(toy, damage, capsys):
    tool.main([])
    file = data.path("toy") / "names.txt"
    file.write_bytes(damage)
    os.utime(file, ns=(0, 0))
    assert tool.main(["--check"]) == 1
    assert "damaged: names.txt" in capsys.readouterr().out
    assert tool.main([]) == 0
    assert file.read_bytes() == CONTENT
    assert tool.main(["--check"]) == 0
    assert left_behind() == ["toy"]


def test_a_failed_repair_leaves_what_was_there(toy, index, capsys):
    tool.main([])
    file = data.path("toy") / "names.txt"
    file.write_bytes(CONTENT[:5])
    shutil.rmtree(index)
    index.mkdir()
    capsys.readouterr()
    failed_line(capsys)
    assert file.read_bytes() == CONTENT[:5]
    assert left_behind() == ["toy"]


def test_changing_a_fetched_file_does_not_change_the_installers_cache(toy):
    tool.main([])
    with (data.path("toy") / "names.txt").open("r+b") as file:
        file.write(b"anna")
    shutil.rmtree(data.folder())
    tool.main([])
    assert (data.path("toy") / "names.txt").read_bytes() == CONTENT


def test_only_what_is_asked_for_is_fetched_and_check_says_what_is_here_and_fetches_nothing(index, use, offline, capsys):
    use(row("toy", make_wheel(index, "toy-data")), row("other", "0" * 64))
    assert tool.main(["toy"]) == 0
    assert left_behind() == ["toy"]
    capsys.readouterr()
    offline()
    assert tool.main(["--check"]) == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [["toy", "verified"], ["other", "absent"]]
