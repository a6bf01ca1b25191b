"""What the commands share: errors become messages, and the help of an option names its number and its default."""

from collections.abc import Callable
from typing import Any

import click


class Commands(click.Group):
    """An error that is explained in words ends a command with its message and exit code 1.

    For errors of usage click has code 2.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        settings = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
        super().__init__(*args, context_settings=settings, **options)

    def invoke(self, context: click.Context) -> Any:
        """Run the command that was asked for. Raises: click.ClickException for an error with an explanation."""
        try:
            return super().invoke(context)
        except BrokenPipeError:
            raise  # the reader of a pipe has stopped, and click ends without a message
        except (ValueError, OSError, ArithmeticError, ImportError, MemoryError) as error:
            raise click.ClickException(str(error) or type(error).__name__) from error


def _option(*names: str, **settings: Any) -> Callable:
    """`click.option` that calls a whole number N and any other X, and shows the default."""
    metavar = {"IntRange": "N", "FloatRange": "X"}.get(type(settings["type"]).__name__)
    return click.option(*names, show_default=True, metavar=metavar, **settings)
