"""The group of all commands, and the one place where an error becomes a sentence instead of a traceback."""

import click

import mathllm as ml

from .doctor import _doctor
from .generate import _chat, _generate
from .models import _models
from .train import _train


class _Commands(click.Group):
    """Errors that the package explains in words end a command with exit code 1; click's own, of usage, with 2."""

    def invoke(self, context):
        try:
            return super().invoke(context)
        except BrokenPipeError:
            raise  # somebody read enough: click ends in silence
        except (ValueError, OSError, ArithmeticError, ImportError, MemoryError) as error:
            raise click.ClickException(str(error) or type(error).__name__) from error


@click.group(
    "mathllm", cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(ml.__version__, message="mathllm %(version)s")
def _mathllm():
    """Train language models, let them write, and talk to them: the book's own NumPy code, from the command line."""


for _command in (_train, _generate, _chat, _models, _doctor):
    _mathllm.add_command(_command)
