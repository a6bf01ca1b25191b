"""`mathllm doctor`: is everything in place, and what is it that is in place?"""

import os
import platform
import shutil
import sys
from importlib import metadata

import click
import numpy as np

import mathllm as ml

from .. import data
from ..errors import MissingDataError

_OPTIONAL = {  # distribution: what it is for
    "matplotlib": "figures",
    "jupyterlab": "notebooks",
    "anywidget": "interactive figures",
    "nbgrader": "exercises that are handed in",
    "tqdm": "progress bars",
    "threadpoolctl": "one BLAS thread for each worker",
    "huggingface-hub": "models of the Hugging Face hub",
}
_PROGRAMS = {
    "make": "setting up",
    "bwrap": "grading in a sandbox",
    "chromium": "testing pages",
    "node": "testing widgets",
}


@click.command("doctor")
def _doctor():
    """Say what is here, and what is wrong.

    Versions, BLAS and its threads, cores, real data, programs: what is absent is named with what it would be for. The
    exit code is 1 if something is wrong: NumPy is too old, or data is damaged (every file is hashed).
    """
    wrong = []
    _line("mathllm", ml.__version__, f"in {os.path.dirname(os.path.dirname(__file__))}")
    _line("Python", platform.python_version(), sys.executable)
    _line("NumPy", np.__version__, "")
    if int(np.__version__.split(".")[0]) < 2:
        wrong.append(f"NumPy {np.__version__} is older than 2.0")
    for name, purpose in _OPTIONAL.items():
        _line(name, _version(name) or "absent", f"({purpose})")
    blas, threads = _blas()
    _line("BLAS", blas, threads)
    _line("cores", str(_cores()), platform.machine())
    click.echo()
    for name, package in data.packages().items():
        try:
            _line(name, "verified", str(data.verify(name)))
        except MissingDataError as error:
            damaged = "is damaged" in str(error)
            wrong += [str(error)] * damaged
            _line(name, "damaged" if damaged else "absent", f"({package.contents})")
    click.echo()
    for program, purpose in _PROGRAMS.items():
        _line(program, shutil.which(program) or "absent", f"({purpose})")
    click.echo()
    if wrong:
        raise click.ClickException("; ".join(wrong))
    click.echo("everything that is needed is here")


def _line(name, value, note):
    click.echo(f"{name:<16}  {value:<12}  {note}".rstrip())


def _version(name):
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _blas():
    """The library that multiplies NumPy's matrices, and its threads, which only threadpoolctl can ask it for."""
    built = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    try:
        from threadpoolctl import threadpool_info
    except ImportError:
        return built.get("name", "unknown"), "threads: unknown without threadpoolctl"
    loaded = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    if not loaded:
        return built.get("name", "unknown"), ""
    pool = loaded[0]
    threads = pool["num_threads"]
    return f"{pool['internal_api']} {pool['version'] or ''}".strip(), f"{threads} thread{'s' * (threads != 1)}"


def _cores():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
