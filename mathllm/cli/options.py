"""How the commands declare their options: the help names N for a whole number, X for any other, and the default."""

from collections.abc import Callable

import click


def _option(*names: str, **settings) -> Callable:
    metavar = {"IntRange": "N", "FloatRange": "X"}.get(type(settings["type"]).__name__)
    return click.option(*names, show_default=True, metavar=metavar, **settings)
