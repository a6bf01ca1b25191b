"""What the commands of `python -m mathllm_grading` and `python -m mathllm_course` have in common."""

import click

__all__ = ["Commands"]


class Commands(click.Group):
    """Errors that are explained in words end a command with exit code 1; click's own, of usage, with 2."""

    def invoke(self, context):
        """Run the command that was asked for. Raises: click.ClickException for an error with an explanation."""
        try:
            return super().invoke(context)
        except click.exceptions.Exit:  # after --help
            raise
        except (ValueError, OSError, ImportError, RuntimeError) as error:
            raise click.ClickException(str(error) or type(error).__name__) from error
