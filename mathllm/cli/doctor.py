"""`mathllm doctor`: what is installed, and whether it is in order."""

import importlib.metadata
import os
import platform
import shutil
import sys

import click
import numpy as np

import mathllm as ml

from .. import data

_OPTIONAL = {  # distribution: its purpose
    "matplotlib": "figures", "jupyterlab": "notebooks", "anywidget": "interactive figures",
    "nbgrader": "handing in exercises", "tqdm": "progress bars", "threadpoolctl": "one BLAS thread for each worker",
    "safetensors": "model files of the Hugging Face hub", "huggingface-hub": "models of the Hugging Face hub",
}  # fmt: skip
_PROGRAMS = {
    "make": "setting up", "bwrap": "grading in a sandbox", "chromium": "testing pages", "node": "testing widgets",
}  # fmt: skip


@click.command("doctor")
def _doctor():
    """Print what is installed, and report problems.

    It prints versions, BLAS and its threads, cores, data packages and programs, and the purpose of each. The exit code
    is 1 if data is damaged: the sha256 of every file is compared.
    """
    _line("mathllm", ml.__version__, f"in {os.path.dirname(os.path.dirname(__file__))}")
    _line("Python", platform.python_version(), sys.executable)
    _line("NumPy", np.__version__)
    for name, purpose in _OPTIONAL.items():
        _line(name, _version(name), f"({purpose})")
    _line("BLAS", *_blas())
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    _line("cores", cores, platform.machine())
    click.echo()
    states = {name: data.status(name, full=True) for name in data.packages()}
    for name, (state, text) in states.items():
        note = text if state == "complete" else f"({data.packages()[name].contents})"
        _line(name, state.replace("complete", "verified"), note)
    click.echo()
    for program, purpose in _PROGRAMS.items():
        _line(program, shutil.which(program) or "absent", f"({purpose})")
    click.echo()
    if damaged := [text for state, text in states.values() if state == "damaged"]:
        raise click.ClickException("; ".join(damaged))
    click.echo("OK: everything required is installed")


def _line(name, value, note=""):
    click.echo(f"{name:<16}  {value:<12}  {note}".rstrip())


def _version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "absent"


def _blas():
    """The library that multiplies the matrices of NumPy, and its threads, which only threadpoolctl can count."""
    name = np.show_config(mode="dicts")["Build Dependencies"]["blas"].get("name", "unknown")
    try:
        from threadpoolctl import threadpool_info
    except ImportError:
        return name, "threads: unknown without threadpoolctl"
    threads = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    return name, f"threads: {max(threads, default='unknown')}"
