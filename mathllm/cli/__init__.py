"""What can the package do without a line of Python? Train a model, let it write, talk to it, and say how things stand.

    train.py     text in, a model out that transformers can read
    generate.py  a model goes on with a text, or talks: `generate` and `chat`
    models.py    which models are here, whole, or to be fetched
    doctor.py    versions, threads, data, programs

The commands are built on click, which the extra "cli" installs; this file alone can be imported without it.
"""

import sys

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Run one command, with the words after `python -m mathllm` unless others are given; the exit code.

    0: done   1: it could not be done   2: the command was not understood

    >>> main(["--version"])
    mathllm 0.1.0
    0
    """
    try:
        import click  # noqa: F401
    except ModuleNotFoundError:
        print("the command line of mathllm needs click: pip install 'mathllm[cli]'", file=sys.stderr)
        return 1
    from .commands import _mathllm

    try:
        _mathllm.main(arguments, prog_name="mathllm")
    except SystemExit as done:
        return done.code or 0
    return 0
