"""`mathllm train`: from text to a folder that `mathllm generate`, and transformers, can read.

The folder holds run.json (the settings), tokenizer.json and checkpoint.npz from the start, which is all that `--resume`
needs, and config.json and model.safetensors at the end. Each file is written beside its place and then renamed.
"""

import hashlib
import json
import os
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path

import click
import numpy as np

from .. import data
from ..errors import suggest
from ..gradient_descent import warmup_cosine
from ..pretrained.huggingface import save_pretrained
from ..training import (
    Tokenizer,
    TrainingState,
    load_checkpoint,
    progress_bar,
    random_batch,
    token_stream,
    train,
    train_tokenizer,
    training_state,
    validation_batches,
)
from ..transformer import Transformer, count_parameters, gpt2_config, llama_config

_END = "<|endoftext|>"
_HELD_OUT = 10  # the last tenth of a text is for validation
_CORPORA = ("shakespeare", "names")
_COUNT = click.IntRange(1)
_CHECKPOINT, _RUN, _TOKENIZER = "checkpoint.npz", "run.json", "tokenizer.json"


def _option(*names, **settings):
    metavar = {"IntRange": "N", "FloatRange": "X"}.get(type(settings["type"]).__name__)
    return click.option(*names, show_default=True, metavar=metavar, **settings)


@click.command("train")
@click.argument("texts", nargs=-1, metavar="[TEXT]...")
@click.option("-o", "--output", type=click.Path(file_okay=False, path_type=Path), required=True, help="Folder.")
@click.option("--resume", is_flag=True, help="Go on with the run in --output, with its own settings.")
@_option("--tokenizer", type=click.Choice(["char", "bpe"]), default="bpe", help="A token for each character, or BPE.")
@_option("--vocabulary-size", type=click.IntRange(257), default=1000, help="Tokens of BPE.")
@_option("--model-type", type=click.Choice(["gpt2", "llama"]), default="llama", help="The choices of which model.")
@_option("--width", type=_COUNT, default=128, help="D: components of a token's vector.")
@_option("--layers", type=_COUNT, default=4, help="L: blocks.")
@_option("--heads", type=_COUNT, default=4, help="H: attention heads.")
@_option("--hidden", type=_COUNT, help="F: width inside the feed-forward network.  [default: 4 D, llama 8/3 D]")
@_option("--context", type=_COUNT, default=128, help="T: tokens of a training window.")
@_option("--batch", type=_COUNT, default=16, help="B: windows of a step.")
@_option("--steps", type=_COUNT, default=1000, help="Steps of the whole run.")
@_option("--learning-rate", type=click.FloatRange(0, min_open=True), default=1e-3, help="Highest rate of AdamW.")
@_option("--warmup", type=click.IntRange(0), default=50, help="Steps until it is reached; then half a cosine down.")
@_option("--weight-decay", type=click.FloatRange(0), default=0.1, help="Of AdamW.")
@_option("--max-norm", type=click.FloatRange(0, min_open=True), default=1.0, help="Longest gradient.")
@_option("--seed", type=click.IntRange(0), default=0, help="Of the first weights and the batches.")
@_option("--workers", type=_COUNT, default=1, help="How many share a batch, with one BLAS thread each.")
@click.option("--processes", is_flag=True, help="Workers are processes, not threads: faster, but not on Windows.")
@_option("--validate-every", type=_COUNT, default=100, help="Steps between two looks at the held-out text.")
@_option("--save-every", type=_COUNT, default=100, help="Steps between two checkpoints.")
def _train(texts, output, resume, **settings):
    """Train a language model.

    TEXT is a text file, or one of the book's corpora: shakespeare, names. Several are one corpus; the last tenth of
    each is held out for validation. A run that was killed goes on with

        mathllm train --resume --output FOLDER

    and ends with the same weights as if nothing had happened.
    """
    texts = [str(Path(name).resolve()) if Path(name).is_file() else name for name in texts]
    settings = {"texts": texts} | settings
    settings = _resumed(output, settings) if resume else _begun(output, settings)
    parts = _parts(settings["texts"], settings["seed"])
    fingerprint = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
    if resume:
        if fingerprint != settings["sha256"]:
            raise click.UsageError(f"the text of {', '.join(settings['texts'])} has changed since the run began")
        tokenizer = Tokenizer.load(output / _TOKENIZER)
    else:
        tokenizer = _new_tokenizer(settings, parts)
    config = _config(settings, len(tokenizer))
    streams = [_stream(tokenizer, texts, settings["context"]) for texts in zip(*parts, strict=True)]
    if not resume:
        output.mkdir(parents=True, exist_ok=True)
        _write(output / _TOKENIZER, tokenizer.save)
        table = json.dumps(settings | {"sha256": fingerprint}, indent=1, ensure_ascii=False) + "\n"
        _write(output / _RUN, lambda path: path.write_text(table, encoding="utf-8"))
    state, history = _run(settings, config, streams, output)
    _save(output, config, state.params, tokenizer)
    last = f", validation loss {history[-1].validation_loss:.4f}" if history else ""
    click.echo(f"{output}: {count_parameters(state.params):,} parameters, {state.step} steps{last}")


def _run(settings, config, streams, output):
    """The loop of chapter 13, with its checkpoints; an interruption says how to go on."""
    model, checkpoint = Transformer(config), output / _CHECKPOINT
    rng = np.random.default_rng(settings["seed"])
    if checkpoint.exists():
        state = load_checkpoint(checkpoint, TrainingState)
    else:
        state = training_state(model.init(rng, np.float32), rng)
    tokens, held_out = streams
    size, length, steps = settings["batch"], settings["context"], settings["steps"]

    def loss(params, batch):
        return model.next_token_loss(params, batch.inputs, batch.targets)

    def rate(step):
        return warmup_cosine(
            step, peak=settings["learning_rate"], total=steps, warmup=min(settings["warmup"], steps - 1),
            floor=settings["learning_rate"] / 10,
        )  # fmt: skip

    size_of = f"{count_parameters(state.params):,} parameters, {len(tokens):,} tokens"
    click.echo(f"{size_of}, {state.step} of {steps} steps done")
    try:
        with _progress(settings["validate_every"]) as progress:
            return train(
                state, loss, lambda rng: random_batch(tokens, size, length, rng), steps, learning_rate=rate,
                max_norm=settings["max_norm"], weight_decay=settings["weight_decay"], workers=settings["workers"],
                processes=settings["processes"],
                validation=validation_batches(held_out, size, length), validate_every=settings["validate_every"],
                checkpoint=checkpoint, save_every=settings["save_every"], progress=progress,
            )  # fmt: skip
    except KeyboardInterrupt:
        stopped = click.ClickException(f"interrupted; mathllm train --resume --output {output} goes on")
        stopped.exit_code = 130  # as the shell counts a program that Ctrl-C ended
        raise stopped from None


def _progress(every):
    """A bar in a terminal; elsewhere, in a log, a line now and then."""
    if sys.stderr.isatty():
        return progress_bar()

    def show(now):
        if now.step % every == 0 or now.step == now.steps:
            click.echo(str(now))

    return nullcontext(show)


def _begun(output, settings):
    """The settings of a new run, which must not overwrite another."""
    if not settings["texts"]:
        raise click.UsageError(f"no text to learn from: name files, or one of {', '.join(_CORPORA)}")
    for name in (_RUN, "config.json"):
        if (output / name).exists():
            raise click.UsageError(f"{output} holds the {name} of a run: --resume goes on with it")
    return settings


def _resumed(output, settings):
    """The settings that the run began with; one that was given again has to be the same."""
    if not (output / _RUN).is_file():
        raise click.UsageError(f"there is no run to go on with: {output / _RUN} is missing")
    try:
        saved = json.loads((output / _RUN).read_text(encoding="utf-8"))
        if missing := [name for name in [*settings, "sha256"] if name not in saved]:
            raise ValueError(f"it does not tell {missing[0]}")
    except ValueError as error:
        raise ValueError(f"{output / _RUN} is damaged: {error}") from None
    for name, value in settings.items():
        given = click.get_current_context().get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE
        if given and value and value != saved[name]:
            raise click.UsageError(f"the run in {output} began with {name} {saved[name]}, not {value}; leave it out")
    return saved


def _parts(names, seed):
    """For each text its training part and its validation part."""
    parts = [_split(name, seed) for name in names]
    if not all(all(part) for part in parts):
        raise click.UsageError(f"too little text to learn from and to hold out: {', '.join(names)}")
    return parts


def _split(name, seed):
    path = Path(name)
    if not path.is_file():
        if name == "shakespeare":
            return list(data.shakespeare())
        if name == "names":  # in alphabetical order: the last tenth would be those from R to Z
            names = np.random.default_rng(seed).permutation(data.names()).tolist()
            cut = len(names) - len(names) // _HELD_OUT
            return ["\n".join(names[:cut]) + "\n", "\n".join(names[cut:]) + "\n"]
        hint = suggest(name, _CORPORA) or f"; built in are {', '.join(_CORPORA)}"
        raise click.BadParameter(f"there is no file {name!r}{hint}", param_hint="TEXT")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        problem = f"{name} is not text in UTF-8: {error.reason} at byte {error.start}"
        raise click.BadParameter(problem, param_hint="TEXT") from None
    cut = len(text) - len(text) // _HELD_OUT
    return [text[:cut], text[cut:]]


def _new_tokenizer(settings, parts):
    learnt = [train for train, _held_out in parts]
    if settings["tokenizer"] == "bpe":
        click.echo(f"learning {settings['vocabulary_size']} tokens from {sum(map(len, learnt)):,} characters ...")
        return train_tokenizer(learnt, settings["vocabulary_size"], special_tokens=[_END])
    # the bytes that occur, held out or not, since a byte without a token cannot be read
    seen = sorted({byte for part in parts for text in part for byte in set(text.encode())})
    return Tokenizer({bytes([byte]): i for i, byte in enumerate(seen)}, [], {_END: len(seen)})


def _config(settings, vocabulary):
    sizes = {name: settings[name] for name in ("width", "layers", "heads", "context")}
    if sizes["width"] % sizes["heads"]:
        raise click.UsageError("--width {width} cannot be divided among --heads {heads}".format(**sizes))
    if settings["model_type"] == "gpt2":
        return gpt2_config(vocabulary=vocabulary, hidden=settings["hidden"] or 4 * sizes["width"], **sizes)
    hidden = settings["hidden"] or 8 * sizes["width"] // 3
    return llama_config(vocabulary=vocabulary, hidden=hidden, tied=True, **sizes)


def _stream(tokenizer, texts, context):
    documents = [tokenizer.encode(text, special=False) for text in texts]
    stream = token_stream(documents, tokenizer.special_tokens[_END])
    if len(stream) < context + 1:
        needs = f"--context {context} needs {context + 1} tokens"
        raise click.UsageError(f"{needs}, and the text, or what is held out of it, has {len(stream)}")
    return stream


def _save(output, config, params, tokenizer):
    """config.json comes last: a folder that has it has everything."""
    with tempfile.TemporaryDirectory(dir=output, prefix=".partial-") as folder:
        save_pretrained(folder, config, params, tokenizer)
        for file in sorted(Path(folder).iterdir(), key=lambda file: file.name == "config.json"):
            os.replace(file, output / file.name)


def _write(path, write):
    partial = path.with_name(path.name + ".partial")
    write(partial)
    os.replace(partial, path)
