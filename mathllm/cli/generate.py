"""`mathllm generate` and `mathllm chat`: token after token, shown as they come."""

import codecs
import sys

import click
import numpy as np

from ..errors import MissingDataError
from ..inference import generate
from ..pretrained.locate import load
from ..pretrained.smollm2 import chat_prompt

_FROM, _TO = "<|im_start|>", "<|im_end|>"  # around each message of a chat


def _option(name, metavar, kind, words, default=None):
    return click.option(name, metavar=metavar, type=kind, help=words, default=default, show_default=default is not None)


def _sampling(command):
    """The options that both commands share, named as in transformers."""
    count, positive = click.IntRange(1), click.FloatRange(0, min_open=True)
    options = [
        _option("--max-new-tokens", "N", click.IntRange(0), "How many at most.", default=200),
        _option("--temperature", "X", positive, "Below 1 safer, above 1 wilder."),
        _option("--top-k", "N", count, "Draw from the N most probable tokens."),
        _option("--top-p", "X", click.FloatRange(0, 1, min_open=True), "Draw from the fewest that have probability X."),
        _option("--min-p", "X", click.FloatRange(0, 1), "Leave out what is below X times the most probable."),
        _option("--repetition-penalty", "X", positive, "Above 1: what is there is less probable.", default=1.0),
        _option("--seed", "N", click.IntRange(0), "Draw tokens, with these random numbers."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


@click.command("generate")
@click.argument("model")
@click.argument("prompt", required=False)
@_sampling
@_option("--num-beams", "N", click.IntRange(1), "Beam search with N beams.", default=1)
def _generate(model, prompt, num_beams, seed, **options):
    """Let a model go on with a text.

    The text is PROMPT, or the standard input if there is none.

    MODEL is a folder, a .gguf file, a model in the cache of the Hugging Face hub, or a data package: see
    `mathllm models`.

    The most probable token is taken each time, unless --temperature, --top-k, --top-p, --min-p or --seed asks to draw.
    """
    rng = _generator(seed, options)
    if rng is not None and num_beams > 1:
        raise click.UsageError("beam search draws nothing: --num-beams goes with no --temperature, --top-*, or --seed")
    if prompt is None:
        prompt = sys.stdin.read().removesuffix("\n")
    loaded = _load(model)
    ids = loaded.tokenizer.encode(prompt)
    if not ids:
        if not loaded.ends:
            raise click.UsageError("there is nothing to go on with: the prompt is empty")
        ids = [loaded.ends[-1]]  # as between two texts: a new one begins
    click.echo(prompt, nl=False)
    _answer(loaded, ids, rng, num_beams=num_beams, **options)
    click.echo()


@click.command("chat")
@click.argument("model", default="smollm2")
@click.option("--system", metavar="TEXT", help="How the model is to behave, in place of its own system prompt.")
@_sampling
def _chat(model, system, seed, **options):
    """Talk to a model.

    MODEL, smollm2 if none is named, sees all that was said before.

    /new begins a new conversation, /exit or the end of the input ends the program, Ctrl-C an answer that is too long.
    """
    rng = _generator(seed, options)
    loaded = _load(model)
    if not {_FROM, _TO} <= set(getattr(loaded.tokenizer, "special_tokens", ())):
        raise click.UsageError(f"{model} was not made for conversations: its tokenizer has no {_FROM} and {_TO}")
    beginning = [{"role": "system", "content": system}] if system else []
    messages = list(beginning)
    while (said := _listen()) is not None:
        if said == "/new":
            messages = list(beginning)
        elif special := [text for text in loaded.tokenizer.special_tokens if text in said]:
            click.echo(f"a message cannot contain {special[0]}, which separates messages", err=True)
        elif said:
            asked = [*messages, {"role": "user", "content": said}]
            ids = loaded.tokenizer.encode(chat_prompt(asked))
            if len(ids) + options["max_new_tokens"] > loaded.model.config.context:
                longest = loaded.model.config.context
                click.echo(f"that makes {len(ids)} tokens, and {longest} are the most: /new begins anew", err=True)
                continue
            answer = _answer(loaded, ids, rng, **options)
            click.echo()
            messages = [*asked, {"role": "assistant", "content": answer.strip()}]


def _listen():
    """What the user says next, or None at the end."""
    try:
        if sys.stdin.isatty():
            import readline  # noqa: F401 — input() can then be edited
    except ImportError:
        pass
    try:
        said = input("> " if sys.stdin.isatty() else "").strip()
    except (EOFError, KeyboardInterrupt):
        click.echo()
        return None
    return None if said == "/exit" else said


def _generator(seed, options):
    """Random numbers if one of the options asks to draw, None for greedy decoding."""
    draws = seed is not None or any(options[name] is not None for name in ("temperature", "top_k", "top_p", "min_p"))
    options["temperature"] = 1.0 if options["temperature"] is None else options["temperature"]
    return np.random.default_rng(seed) if draws else None


def _load(name):
    try:
        loaded = load(name)
    except MissingDataError:
        raise
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="MODEL") from error
    if loaded.tokenizer is None or not loaded.model.config.causal:
        lacking = "has no tokenizer" if loaded.model.config.causal else "fills in masked words, it does not go on"
        raise click.BadParameter(f"{name} {lacking}", param_hint="MODEL")
    return loaded


def _answer(loaded, ids, rng, *, num_beams=1, **options):
    """Show what the model says as it says it; Ctrl-C stops it. What was said."""
    text = codecs.getincrementaldecoder("utf-8")("replace")  # a character may take several tokens
    said = []

    def show(new, final=False):
        new = [i for i in new if i not in loaded.ends]
        said.append(text.decode(loaded.tokenizer.decode_bytes(new), final))
        click.echo(said[-1], nl=False)
        sys.stdout.flush()

    if num_beams > 1:
        options["num_beams"] = num_beams
    else:
        options["streamer"] = lambda column: show([int(column[0])])
    try:
        tokens = generate(loaded.model, loaded.params, [ids], rng=rng, eos_token_id=loaded.ends or None, **options)
        if num_beams > 1:
            show(tokens[0, len(ids) :].tolist())
    except KeyboardInterrupt:
        click.echo(" …", nl=False)
    show([], final=True)
    return "".join(said)
