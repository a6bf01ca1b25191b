"""The group of all commands. It turns errors into messages, so that no command ends with a traceback."""

import click

import mathllm as ml

from .doctor import _doctor
from .generate import _chat, _generate
from .models import _models
from .train import _train


class _Commands(click.Group):
    """An error of the package ends a command with its message and exit code 1. For errors of usage click has code 2."""

    def invoke(self, context):
        try:
            return super().invoke(context)
        except BrokenPipeError:
            raise  # the reader of a pipe has stopped, and click ends without a message
        except (ValueError, OSError, ArithmeticError, ImportError, MemoryError) as error:
            raise click.ClickException(str(error) or type(error).__name__) from error


@click.group(
    "mathllm", cls=_Commands, commands=[_train, _generate, _chat, _models, _doctor],
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)  # fmt: skip
@click.version_option(ml.__version__, message="mathllm %(version)s")
def _mathllm():
    """Train language models, generate text and chat, with the book's own NumPy code."""
