"""A group of commands that turns errors into messages, so that no command ends with a traceback."""

import click

__all__ = ["Commands"]


class Commands(click.Group):
    """An error that is explained in words ends a command with its message and exit code 1.

    For errors of usage click has code 2.
    """

    def __init__(self, *args, **options):
        settings = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
        super().__init__(*args, context_settings=settings, **options)

    def invoke(self, context):
        """Run the command that was asked for. Raises: click.ClickException for an error with an explanation."""
        try:
            return super().invoke(context)
        except BrokenPipeError:
            raise  # the reader of a pipe has stopped, and click ends without a message
        except (ValueError, OSError, ArithmeticError, ImportError, MemoryError) as error:
            raise click.ClickException(str(error) or type(error).__name__) from error
