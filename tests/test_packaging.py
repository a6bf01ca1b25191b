"""What a reader installs: the lock, the conda environment, the wheel, and the script that puts them in place."""

import os
import re
import shutil
import subprocess
import sys
import textwrap
import tomllib
import venv
import zipfile
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
import yaml
from package import ROOT, outside
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

pytestmark = pytest.mark.slow

EXERCISES = ROOT / "exercises"
PACKAGES = ROOT / "mathllm", *(EXERCISES / f"mathllm_{name}" for name in ("course", "exercises", "grading"))
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT, GROUPS = PYPROJECT["project"], PYPROJECT["dependency-groups"]
LOCK = [Requirement(line) for line in (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()]
PARITY = ROOT / "tests" / "parity"
PEER_LINES = (PARITY / "requirements.txt").read_text(encoding="utf-8").splitlines()
PEERS = [Requirement(line) for line in PEER_LINES if line and not line.startswith("#")]
ENVIRONMENT = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
CONDA = [entry for entry in ENVIRONMENT["dependencies"] if isinstance(entry, str)]
PIP = next(entry["pip"] for entry in ENVIRONMENT["dependencies"] if isinstance(entry, dict))


def applies(requirement, extra=""):
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})


def asked_for():
    """The requirements that pyproject.toml names, with those of the extras and of the groups."""
    lists = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values(), *GROUPS.values()]
    return [Requirement(entry) for entries in lists for entry in entries]


# The lock


def test_every_line_of_the_lock_is_one_exact_pin():
    for pin in LOCK:
        assert pin.url is None
        assert [specifier.operator for specifier in pin.specifier] == ["=="], pin


@pytest.mark.parametrize("requirement", asked_for(), ids=str)
def test_the_lock_pins_what_pyproject_asks_for(requirement):
    pins = [pin for pin in LOCK if canonicalize_name(pin.name) == canonicalize_name(requirement.name)]
    assert pins
    for pin in pins:
        version = next(iter(pin.specifier)).version
        assert requirement.specifier.contains(version), f"{pin} is outside {requirement}"


def test_the_installed_packages_are_the_locked_ones():
    for pin in filter(applies, LOCK):
        assert pin.specifier.contains(metadata.version(pin.name)), pin


def test_the_peers_of_make_parity_are_pinned_once():
    """Either in the lock, which is pip's constraint there, or by themselves."""
    locked = {canonicalize_name(pin.name) for pin in LOCK}
    for peer in PEERS:
        pinned = [specifier.operator for specifier in peer.specifier] == ["=="]
        assert pinned != (canonicalize_name(peer.name) in locked), peer


def test_every_package_that_is_imported_is_named_in_pyproject():
    """The peers of `make parity` have a list of their own."""
    named = {canonicalize_name(requirement.name) for requirement in asked_for()}
    programs = [path for name in ("mathllm", "exercises", "tools", "tests") for path in (ROOT / name).rglob("*.py")]
    programs += [ROOT / "book" / "conf.py", *(ROOT / "book" / "_ext").glob("*.py")]
    ours = {path.stem for pattern in ("t*/**/*.py", "book/_ext/*.py") for path in ROOT.glob(pattern)}
    ours |= {folder.name for folder in PACKAGES}
    distributions = metadata.packages_distributions()
    for package, path in outside([path for path in programs if PARITY not in path.parents], ours).items():
        assert named & set(map(canonicalize_name, distributions[package])), f"{package}, imported in {path}"


# conda


def test_conda_and_pyproject_agree_on_python_and_extras():
    ours = SpecifierSet(PROJECT["requires-python"])
    python = SpecifierSet(next(spec.removeprefix("python ") for spec in CONDA if spec.startswith("python ")))
    for minor in range(8, 30):
        if python.contains(f"3.{minor}.0"):
            assert ours.contains(f"3.{minor}.0")
    assert python.contains("3.11.0")
    assert python.contains(".".join(map(str, sys.version_info[:3])))
    assert PIP[0] == "--requirement requirements.lock"
    extras = re.fullmatch(r"--editable \.\[(.*)\]", PIP[1]).group(1).split(",")
    assert sorted(extras) == sorted(PROJECT["optional-dependencies"])


# The wheel

IMPORT_WITH_NUMPY_ALONE = """
    import sys

    class Refuse:
        def find_spec(self, name, path=None, target=None):
            top = name.partition(".")[0]
            if top not in sys.stdlib_module_names and top not in {"mathllm", "numpy"}:
                raise ModuleNotFoundError(f"{name} is neither Python's, NumPy's nor ours")

    sys.meta_path.insert(0, Refuse())
    import mathllm
    from mathllm import data
    from mathllm.figures import notebook, plots
    from mathllm.pretrained import glove
    data.packages()
    data.clean_play("")
    print(mathllm.__file__, mathllm.norm([3, 4]))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (path,) = folder.iterdir()
    return path


def test_the_wheel_holds_every_file_of_the_packages_and_nothing_else(wheel):
    assert wheel.name == f"mathllm-{PROJECT['version']}-py3-none-any.whl"
    files = [path for folder in PACKAGES for path in folder.rglob("*.*")]
    here = {path.relative_to(EXERCISES if path.is_relative_to(EXERCISES) else ROOT).as_posix() for path in files}
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    sources = {path.relative_to(EXERCISES).as_posix() for path in (EXERCISES / "source").rglob("*.ipynb")}
    here |= {f"mathllm_course/course/{name}" for name in {"nbgrader_config.py", *sources}}
    assert held == {name for name in here if "__pycache__" not in name}
    suffixes = {Path(name).suffix for name in held}
    assert suffixes >= {".py", ".typed", ".toml", ".js", ".css", ".svg", ".mplstyle"}
    assert suffixes.isdisjoint({".so", ".pyd", ".dylib"})


def test_the_wheel_runs_in_an_empty_environment_with_numpy_alone(wheel, tmp_path):
    home = tmp_path / "empty"
    venv.create(home, with_pip=False)
    python = home / ("Scripts" if os.name == "nt" else "bin") / "python"
    install = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--offline", "--no-cache", "--no-deps"]
    subprocess.run([*install, "--python", python, wheel], check=True)
    purelib = Path(next(home.glob("**/mathllm/__init__.py"))).parents[1]
    numpy = Path(np.__file__).parent
    for part in filter(Path.is_dir, (numpy, numpy.with_name("numpy.libs"))):
        (purelib / part.name).symlink_to(part, target_is_directory=True)
    program = textwrap.dedent(IMPORT_WITH_NUMPY_ALONE)
    done = subprocess.run([python, "-I", "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    where, answer = done.stdout.split()
    assert Path(where).is_relative_to(purelib)
    assert float(answer) == 5.0

    (purelib / "mathllm" / "__init__.py").write_text("import yaml\n", encoding="utf-8")
    refused = subprocess.run([python, "-I", "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert "yaml is neither Python's, NumPy's nor ours" in refused.stderr


# make


def test_help_says_in_a_line_what_each_target_does():
    command = ["make", "--no-print-directory", "help"]
    shown = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    targets = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)[1].split()
    assert sorted(line.split()[0] for line in shown) == sorted(targets)
    assert all(len(line.split()) > 3 and len(line) <= 120 for line in shown)


# The set-up script, on its own in a folder, with stand-ins for Python where it must fail

OLD_PYTHON = '#!/bin/sh\n[ "$1" = --version ] && echo "Python 3.9.2"\nexit 1\n'
PYTHON_WITHOUT_VENV = '#!/bin/sh\n[ "$1 $2" != "-m venv" ] || { echo "ensurepip is not available"; exit 1; }\n'
PYTHON_WITHOUT_NETWORK = (
    "#!/bin/sh\n"
    '[ "$1 $2" != "-m venv" ] || { mkdir -p .venv/bin; cp "$0" .venv/bin/python; }\n'
    '[ "$1 $2 $3" != "-m pip install" ] || { echo "no route" >&2; exit 1; }\n'
)


@pytest.fixture
def checkout(tmp_path):
    for name in ("pyproject.toml", "requirements.lock", "tools/set_up.sh"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def set_up(checkout, program, name="python"):
    python = checkout / "stand-in" / name
    python.parent.mkdir(exist_ok=True)
    python.write_text(program, encoding="utf-8")
    python.chmod(0o755)
    return subprocess.run(["sh", "tools/set_up.sh"], cwd=checkout, capture_output=True, text=True,
                          env=os.environ | {"PYTHON": str(python)})  # fmt: skip


@pytest.mark.parametrize(
    ("program", "words"),
    [(OLD_PYTHON, "older than Python 3.11"), (PYTHON_WITHOUT_VENV, "apt-get install python3-venv")],
    ids=["an old Python", "Debian's Python"],
)
def test_set_up_says_what_it_lacks_and_leaves_nothing_behind(checkout, program, words):
    done = set_up(checkout, program)
    assert done.returncode != 0
    assert words in done.stderr
    assert not (checkout / ".venv").exists()


def test_a_set_up_that_was_interrupted_is_not_taken_for_a_finished_one(checkout):
    for _ in range(2):
        done = set_up(checkout, PYTHON_WITHOUT_NETWORK)
        assert done.returncode != 0
        assert "Creating .venv" in done.stdout
        assert "could not be fetched" in done.stderr
        assert not (checkout / ".venv" / ".ready").exists()
