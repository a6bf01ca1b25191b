"""`mathllm train`: train a model on text, and write a folder that `mathllm generate` and transformers can read.

The folder holds run.json (the settings), tokenizer.json and checkpoint.npz from the start, which `--resume` needs, and
config.json and model.safetensors at the end. Each file appears when it is complete.
"""

import hashlib
import importlib.util
import json
import sys
from contextlib import nullcontext
from pathlib import Path

import click
import numpy as np

from .. import data, training
from ..errors import suggest
from ..fast import Transformer, train
from ..gradient_descent import warmup_cosine
from ..pretrained.files import read_json, written_whole
from ..pretrained.huggingface import save_pretrained
from ..transformer import count_parameters, gpt2_config, llama_config
from .group import _option

_END = "<|endoftext|>"
_HELD_OUT = 10  # the last tenth of a file is for validation
_CORPORA = ("shakespeare", "names")
_COUNT = click.IntRange(1)
_CHECKPOINT, _RUN, _TOKENIZER = "checkpoint.npz", "run.json", "tokenizer.json"


@click.command("train")
@click.argument("texts", nargs=-1, metavar="[TEXT]...")
@click.option("-o", "--output", type=click.Path(file_okay=False, path_type=Path), required=True, help="Output folder.")
@click.option("--resume", is_flag=True, help="Continue the run in the output folder, with its settings.")
@_option("--tokenizer", type=click.Choice(["char", "bpe"]), default="bpe", help="One token for each byte, or BPE.")
@_option("--vocabulary-size", type=click.IntRange(257), default=1000, help="Number of tokens of BPE.")
@_option("--model-type", type=click.Choice(["gpt2", "llama"]), default="llama", help="Architecture of the model.")
@_option("--width", type=_COUNT, default=128, help="Width D of the vectors.")
@_option("--layers", type=_COUNT, default=4, help="Number L of blocks.")
@_option("--heads", type=_COUNT, default=4, help="Number H of attention heads.")
@_option("--hidden", type=_COUNT, help="Width F inside the feed-forward network.  [default: 4 D, llama 8/3 D]")
@_option("--context", type=_COUNT, default=128, help="Length T of the training windows in tokens.")
@_option("--batch", type=_COUNT, default=16, help="Number B of windows in each step.")
@_option("--steps", type=_COUNT, default=1000, help="Number of steps of the whole run.")
@_option("--learning-rate", type=click.FloatRange(0, min_open=True), default=1e-3, help="Peak learning rate of AdamW.")
@_option("--warmup", type=click.IntRange(0), default=50, help="Steps up to the peak; a cosine decay follows.")
@_option("--weight-decay", type=click.FloatRange(0), default=0.1, help="Weight decay of AdamW.")
@_option("--max-norm", type=click.FloatRange(0, min_open=True), default=1.0, help="Clip gradients to this norm.")
@_option("--seed", type=click.IntRange(0), default=0, help="Random seed for the initial weights and the batches.")
@_option("--workers", type=_COUNT, default=1, help="Number of processes that share a batch (on Windows always 1).")
@_option("--validate-every", type=_COUNT, default=100, help="Steps between two validations on the held-out text.")
@_option("--save-every", type=_COUNT, default=100, help="Steps between two checkpoints.")
def _train(texts, output, resume, **settings):
    """Train a language model.

    TEXT is a text file, or one of the book's corpora: shakespeare, names. Several texts form one corpus. A part is held
    out for validation: the last tenth of each file, a tenth of the names at random, four plays of Shakespeare. A run
    that was interrupted continues with

        mathllm train --resume --output FOLDER

    and ends with the same weights as without the interruption.
    """
    if not importlib.util.find_spec("safetensors"):  # better now than after hours of training
        raise ImportError("a trained model is saved with safetensors: pip install 'mathllm[cli]'")
    texts = [str(Path(name).resolve()) if Path(name).is_file() else name for name in texts]
    settings = _saved_settings(output, texts, settings) if resume else _new_settings(output, texts, settings)
    parts = [_split(name, settings["seed"]) for name in settings["texts"]]
    if not all(map(all, parts)):
        raise click.UsageError(f"too little text to train on and to hold out: {', '.join(settings['texts'])}")
    sha256 = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
    if settings.setdefault("sha256", sha256) != sha256:
        raise click.UsageError(f"the text of {', '.join(settings['texts'])} has changed since the run began")
    tokenizer = training.Tokenizer.load(output / _TOKENIZER) if resume else _new_tokenizer(settings, parts)
    config = _config(settings, len(tokenizer))
    streams = [_stream(tokenizer, texts, settings["context"]) for texts in zip(*parts, strict=True)]
    if not resume:
        with written_whole(output, last=_RUN) as folder:
            tokenizer.save(folder / _TOKENIZER)
            (folder / _RUN).write_text(json.dumps(settings, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    state, history = _run(settings, config, streams, output)
    save_pretrained(output, config, state.params, tokenizer)
    loss = f", validation loss {history[-1].validation_loss:.4f}" if history else ""
    click.echo(f"{output}: {count_parameters(state.params):,} parameters, {state.step} steps{loss}")


def _new_settings(output, texts, settings):
    """The settings of a new run, which must not overwrite another."""
    if not texts:
        raise click.UsageError(f"no text to train on: name files, or one of {', '.join(_CORPORA)}")
    if settings["width"] % settings["heads"]:
        raise click.UsageError("--width {width} cannot be divided among --heads {heads}".format(**settings))
    if found := [name for name in (_RUN, "config.json") if (output / name).exists()]:
        raise click.UsageError(f"{output} holds the {found[0]} of a run: --resume continues it")
    return {"texts": texts} | settings


def _saved_settings(output, texts, settings):
    """The settings with which the run began; a setting that is given again must be the same."""
    if not (output / _RUN).is_file():
        raise click.UsageError(f"there is no run to continue: {output / _RUN} is missing")
    saved, given = read_json(output / _RUN), {"texts": texts} | settings
    if missing := [name for name in [*given, "sha256"] if name not in saved]:
        raise ValueError(f"{output / _RUN} is damaged: {missing[0]} is missing")
    for name, value in given.items():
        source = click.get_current_context().get_parameter_source(name)
        if value and value != saved[name] and source == click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError(f"the run in {output} began with {name} {saved[name]}, not {value}; leave it out")
    return saved


def _split(name, seed):
    """The training part and the validation part of a text."""
    if Path(name).is_file():
        try:
            parts = Path(name).read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            problem = f"{name} is not text in UTF-8: {error.reason} at byte {error.start}"
            raise click.BadParameter(problem, param_hint="TEXT") from None
    elif name == "shakespeare":
        return list(data.shakespeare())
    elif name == "names":  # shuffled, because the last tenth of the alphabetical list has the names from T to Z
        parts = [f"{name}\n" for name in np.random.default_rng(seed).permutation(data.names())]
    else:
        hint = suggest(name, _CORPORA) or f"; built in are {', '.join(_CORPORA)}"
        raise click.BadParameter(f"there is no file {name!r}{hint}", param_hint="TEXT")
    cut = len(parts) - len(parts) // _HELD_OUT
    return ["".join(parts[:cut]), "".join(parts[cut:])]


def _new_tokenizer(settings, parts):
    if settings["tokenizer"] == "bpe":
        texts = [text for text, _ in parts]
        click.echo(f"learning {settings['vocabulary_size']} tokens from {sum(map(len, texts)):,} characters ...")
        return training.train_tokenizer(texts, settings["vocabulary_size"], special_tokens=[_END])
    # all bytes that occur, held out or not, because a byte without a token cannot be encoded
    seen = sorted({byte for part in parts for text in part for byte in set(text.encode())})
    return training.Tokenizer({bytes([byte]): i for i, byte in enumerate(seen)}, [], {_END: len(seen)})


def _config(settings, vocabulary):
    sizes = {name: settings[name] for name in ("width", "layers", "heads", "context")}
    if settings["model_type"] == "gpt2":
        return gpt2_config(vocabulary=vocabulary, hidden=settings["hidden"] or 4 * sizes["width"], **sizes)
    return llama_config(vocabulary=vocabulary, hidden=settings["hidden"] or 8 * sizes["width"] // 3, tied=True, **sizes)


def _stream(tokenizer, texts, context):
    documents = [tokenizer.encode(text, special=False) for text in texts]
    stream = training.token_stream(documents, tokenizer.special_tokens[_END])
    if len(stream) < context + 1:
        found = f"the text, or its held-out part, has {len(stream)}"
        raise click.UsageError(f"--context {context} needs {context + 1} tokens, and {found}")
    return stream


def _run(settings, config, streams, output):
    """The training loop of chapter 13 in its fast form. After an interruption, the message says how to continue."""
    model, rng = Transformer(config), np.random.default_rng(settings["seed"])
    if (output / _CHECKPOINT).exists():
        state = training.load_checkpoint(output / _CHECKPOINT, training.TrainingState)
    else:
        state = training.training_state(model.init(rng, np.float32), rng)
    (tokens, held_out), steps, peak = streams, settings["steps"], settings["learning_rate"]
    shape = settings["batch"], settings["context"]
    options = {name: settings[name] for name in ("max_norm", "weight_decay", "workers", "validate_every", "save_every")}
    schedule = {"peak": peak, "total": steps, "warmup": min(settings["warmup"], steps - 1), "floor": peak / 10}
    size = f"{count_parameters(state.params):,} parameters, {len(tokens):,} tokens"
    click.echo(f"{size}, {state.step} of {steps} steps done")
    try:
        with _progress(settings["validate_every"]) as progress:
            return train(
                state, lambda params, batch: model.next_token_loss(params, batch.inputs, batch.targets),
                lambda rng: training.random_batch(tokens, *shape, rng), steps,
                learning_rate=lambda step: warmup_cosine(step, **schedule), checkpoint=output / _CHECKPOINT,
                validation=training.validation_batches(held_out, *shape), progress=progress, **options,
            )  # fmt: skip
    except KeyboardInterrupt:
        click.echo(f"Error: interrupted; mathllm train --resume --output {output} continues the run", err=True)
        raise click.exceptions.Exit(130) from None  # the code of the shell for a program that Ctrl-C ended


def _progress(every):
    """A bar in a terminal; elsewhere, such as in a log, one line for every `every` steps."""
    if sys.stderr.isatty():
        return training.progress_bar()

    def show(now):
        if now.step % every == 0 or now.step == now.steps:
            click.echo(str(now))

    return nullcontext(show)
