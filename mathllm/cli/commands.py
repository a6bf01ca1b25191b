"""The commands of `mathllm` as one group, with what its help says and its version."""

import click

import mathllm as ml

from .doctor import _doctor
from .generate import _chat, _generate
from .group import Commands
from .models import _models
from .train import _train


@click.group("mathllm", cls=Commands, commands=[_train, _generate, _chat, _models, _doctor])
@click.version_option(ml.__version__, message="mathllm %(version)s")
def _mathllm():
    """Train language models, generate text and chat, with the book's own NumPy code."""
