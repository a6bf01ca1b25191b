"""The command line of mathllm: train a model, generate text, chat, and check what is installed.

    train.py     train a model on text; transformers can read the result
    generate.py  continue a text, or chat: `generate` and `chat`
    models.py    list, fetch and verify models and data
    doctor.py    versions, threads, data, programs

The commands are written with click, which the extra "cli" installs; this file can be imported without it.
"""

import importlib.util
import sys


def main(arguments: list[str] | None = None) -> int:
    """Run one command; return the exit code.

    arguments: the words after `python -m mathllm`; those of this process if None

    0: done   1: it could not be done   2: the command was not understood

    >>> main(["--version"])
    mathllm 1.0.0
    0
    """
    if not importlib.util.find_spec("click"):
        print("the command line of mathllm needs click: pip install 'mathllm[cli]'", file=sys.stderr)
        return 1
    from .commands import _mathllm

    try:
        _mathllm.main(arguments, prog_name="mathllm")
    except SystemExit as done:
        return done.code or 0
    return 0
