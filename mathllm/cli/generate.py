"""`mathllm generate` and `mathllm chat`: generate text, shown token by token."""

import codecs
import contextlib
import sys

import click
import numpy as np

from ..fast import Transformer, generate
from ..inference import continuation, sampler
from ..pretrained.hub import load
from ..pretrained.smollm2 import chat_prompt
from .group import _option

_FROM, _TO = "<|im_start|>", "<|im_end|>"  # around each message of a chat
_POSITIVE = click.FloatRange(0, min_open=True)
_SAMPLING = [  # named as in transformers
    _option("--max-new-tokens", type=click.IntRange(0), default=200, help="Generate at most N tokens."),
    _option("--temperature", type=_POSITIVE, help="Divide logits by X: below 1 safer, above 1 more varied."),
    _option("--top-k", type=click.IntRange(1), help="Sample from the N most probable tokens."),
    _option(
        "--top-p", type=click.FloatRange(0, 1, min_open=True), help="Sample from the fewest with total probability X."
    ),
    _option("--min-p", type=click.FloatRange(0, 1), help="Leave out tokens below X times the largest probability."),
    _option(
        "--repetition-penalty", type=_POSITIVE, default=1.0, help="Above 1: make tokens of the text less probable."
    ),
    _option("--seed", type=click.IntRange(0), help="Sample with this random seed."),
]


def _sampling(command):
    """Add the options that both commands have."""
    for option in reversed(_SAMPLING):
        command = option(command)
    return command


@click.command("generate")
@click.argument("model")
@click.argument("prompt", required=False)
@_sampling
@_option("--num-beams", type=click.IntRange(1), default=1, help="Beam search with N beams.")
def _generate(model, prompt, num_beams, seed, **options):
    """Continue a text.

    The text is PROMPT, or the standard input if there is none.

    MODEL is a folder, a .gguf file, a model in the cache of the Hugging Face hub, or a data package: see
    `mathllm models`.

    The most probable token is chosen each time, unless --temperature, --top-k, --top-p, --min-p, --seed or --num-beams
    is given.
    """
    rng = _generator(seed, options)
    if rng is not None and num_beams > 1:
        raise click.UsageError(
            "beam search does not sample: use --num-beams without --temperature, --top-k, --top-p, --min-p and --seed"
        )
    prompt = sys.stdin.read().removesuffix("\n") if prompt is None else prompt
    loaded = _load(model)
    ids = loaded.tokenizer.encode(prompt) or list(loaded.ends[-1:])  # an empty text starts where the last one ended
    if not ids:
        raise click.UsageError("the prompt is empty, and the model has no token to start with")
    click.echo(prompt, nl=False)
    _answer(loaded, ids, rng, num_beams=num_beams, **options)
    click.echo()


@click.command("chat")
@click.argument("model", default="smollm2")
@click.option("--system", metavar="TEXT", help="Instructions for the model, in place of its own system prompt.")
@_sampling
def _chat(model, system, seed, **options):
    """Chat with a model.

    MODEL, by default smollm2, reads the whole conversation at each answer.

    /new starts a new conversation, /exit or the end of the input ends the program, Ctrl-C stops an answer.
    """
    rng = _generator(seed, options)
    loaded = _load(model)
    if not {_FROM, _TO} <= set(getattr(loaded.tokenizer, "special_tokens", ())):
        raise click.UsageError(f"{model} was not made for conversations: its tokenizer has no {_FROM} and {_TO}")
    start = [{"role": "system", "content": system}] if system else []
    messages = start
    while (message := _read_message()) is not None:
        if message == "/new":
            messages = start
        elif message:
            messages = _conversation(loaded, messages, message, rng, options)


def _conversation(loaded, messages, message, rng, options):
    """Answer one message: the conversation with both, or as it was if the message cannot be answered."""
    longer = [*messages, {"role": "user", "content": message}]
    ids, longest = loaded.tokenizer.encode(chat_prompt(longer)), loaded.model.config.context
    if special := [text for text in loaded.tokenizer.special_tokens if text in message]:
        click.echo(f"a message cannot contain {special[0]}, which separates messages", err=True)
    elif len(ids) + options["max_new_tokens"] > longest:
        needed = f"{len(ids)} tokens and an answer of up to {options['max_new_tokens']}"
        click.echo(f"{needed} do not fit into the model's {longest}: /new starts a new conversation", err=True)
    else:
        answer = _answer(loaded, ids, rng, **options)
        click.echo()
        return [*longer, {"role": "assistant", "content": answer.strip()}]
    return messages


def _read_message():
    """The next message of the user, or None at the end."""
    terminal = sys.stdin.isatty()
    with contextlib.suppress(ImportError):
        if terminal:
            import readline  # noqa: F401 — input() can then be edited
    try:
        message = input("> " if terminal else "").strip()
    except (EOFError, KeyboardInterrupt):
        click.echo()
        return None
    return None if message == "/exit" else message


def _generator(seed, options):
    """A random generator if one of the options needs sampling, None for greedy decoding."""
    samples = seed is not None or any(options[name] is not None for name in ("temperature", "top_k", "top_p", "min_p"))
    options["temperature"] = 1.0 if options["temperature"] is None else options["temperature"]
    return np.random.default_rng(seed) if samples else None


def _load(name):
    try:
        loaded = load(name)
    except ValueError as error:  # of usage; an absent model is another error
        raise click.BadParameter(str(error), param_hint="MODEL") from error
    if loaded.model.config.causal and loaded.tokenizer is not None:
        return loaded
    problem = "has no tokenizer" if loaded.model.config.causal else "fills in masked words and cannot continue a text"
    raise click.BadParameter(f"{name} {problem}", param_hint="MODEL")


def _answer(loaded, ids, rng, **options):
    """Show the generated text as it appears; Ctrl-C stops it. Returns the text."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")  # a character may consist of several tokens
    pieces = []
    try:
        for i in _tokens(loaded, ids, rng, **options):
            if i not in loaded.ends:
                pieces.append(decoder.decode(loaded.tokenizer.decode_bytes([i])))
                click.echo(pieces[-1], nl=False)
    except KeyboardInterrupt:
        click.echo(" …", nl=False)
    pieces.append(decoder.decode(b"", final=True))
    click.echo(pieces[-1], nl=False)
    return "".join(pieces)


def _tokens(loaded, ids, rng, *, num_beams=1, max_new_tokens, **options):
    """Yields the ids of the answer, one after the other."""
    limits = {"max_new_tokens": max_new_tokens, "eos_token_id": loaded.ends or None}
    model = Transformer(loaded.model.config)
    if num_beams > 1:
        text = generate(model, loaded.params, [ids], num_beams=num_beams, **options, **limits)
        yield from text[0, len(ids) :].tolist()
    else:
        for column in continuation(model, loaded.params, [ids], sampler(rng, **options), **limits):
            yield int(column[0])
