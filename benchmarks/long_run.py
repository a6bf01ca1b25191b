"""A run of about half an hour: a language model of Shakespeare's plays, character by character, that beats counting.

It writes into the folder it is given: log.jsonl (loss, held-out loss and learning rate), samples.txt (what the model
writes at some steps), model.safetensors with config.json and tokenizer.json, and scores.json: the loss on the held-out
passages, with a sliding window, beside the n-grams of chapter 5 with two smoothings on the same passages. Started
again, an interrupted run goes on from its last checkpoint, with the same result.

    PYTHONPATH=. OPENBLAS_NUM_THREADS=1 .venv/bin/python benchmarks/long_run.py FOLDER
"""

import argparse
import json
from pathlib import Path

import numpy as np

import mathllm as ml
from mathllm import data, fast
from mathllm.pretrained.huggingface import save_pretrained
from mathllm.training import TrainingState, bootstrap_interval, load_checkpoint, save_checkpoint, validation_batches

STEPS, LEG, BATCH, CONTEXT = 2_500, 250, 16, 256
PEAK, FLOOR, WARMUP = 3e-3, 1e-4, 200
PASSAGES, PASSAGE = 48, 2048
SAMPLED = (250, 500, 1_000, STEPS)
END = "<|endoftext|>"


def configuration(vocabulary):
    """The model: LLaMA's choices, 1.2 million parameters."""
    return ml.llama_config(vocabulary=vocabulary, width=128, layers=6, heads=4, hidden=352, context=CONTEXT, tied=True)


def character_tokenizer(text):
    """A token for each byte that occurs, and one that ends a text."""
    seen = sorted(set(text.encode()))
    return ml.Tokenizer({bytes([byte]): i for i, byte in enumerate(seen)}, [], {END: len(seen)})


def trained(folder, model, tokens, held_out, tokenizer):
    """The parameters after the whole run; logs, samples and checkpoints go into the folder."""

    def loss(params, batch):
        return model.next_token_loss(params, batch.inputs, batch.targets)

    def batches(rng):
        return ml.random_batch(tokens, BATCH, CONTEXT, rng)

    def rate(step):
        return ml.warmup_cosine(step, peak=PEAK, total=STEPS, warmup=WARMUP, floor=FLOOR)

    checkpoint = folder / "checkpoint.npz"
    rng = np.random.default_rng(0)
    state = ml.training_state(model.init(rng, np.float32), rng)
    if checkpoint.exists():
        state = load_checkpoint(checkpoint, TrainingState)
    while state.step < STEPS:
        state, history = fast.train(
            state, loss, batches, state.step + LEG, learning_rate=rate, max_norm=1.0, weight_decay=0.1, workers=2,
            validation=validation_batches(held_out, BATCH, CONTEXT), validate_every=LEG,
        )  # fmt: skip
        last = history[-1]
        entry = {"step": state.step, "loss": float(np.mean([now.loss for now in history])),
                 "gradient_norm": float(np.mean([now.gradient_norm for now in history])),
                 "learning_rate": last.learning_rate, "held_out": last.validation_loss}  # fmt: skip
        save_checkpoint(checkpoint, state)
        with (folder / "log.jsonl").open("a") as log:
            log.write(json.dumps(entry) + "\n")
        print(entry, flush=True)
        if state.step in SAMPLED:
            write_sample(folder, model, state, tokenizer)
    return state.params


def write_sample(folder, model, state, tokenizer):
    prompt = [tokenizer.encode("ROMEO:\n")]
    tokens = fast.generate(
        model, state.params, prompt, max_new_tokens=200, temperature=0.8, rng=np.random.default_rng(0)
    )
    with (folder / "samples.txt").open("a") as file:
        file.write(f"--- step {state.step}\n{tokenizer.decode(tokens[0])}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where log, samples and model are written")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    plays = data.shakespeare()
    tokenizer = character_tokenizer("".join(plays))
    tokens, held_out = (np.array(tokenizer.encode(text)) for text in plays)
    model = fast.Transformer(configuration(len(tokenizer)))
    params = trained(folder, model, tokens, held_out[: 16 * CONTEXT * 4 + 1], tokenizer)
    save_pretrained(folder, model.config, params, tokenizer)
    (folder / "scores.json").write_text(json.dumps(scores(model, params, tokens, held_out), indent=1) + "\n")


def sliding_log_probabilities(model, params, tokens, stride=64):
    """ln p of every token but the first, each read with at least CONTEXT − stride tokens before it, where there are."""
    found = np.empty(len(tokens) - 1)
    for start in range(0, len(tokens) - 1, stride):
        end = min(start + stride, len(tokens) - 1)
        begin = max(0, end - CONTEXT)
        log_p = ml.log_softmax(model(params, tokens[None, begin:end]).astype(float))[0]
        asked = np.arange(start, end)
        found[asked] = log_p[asked - begin, tokens[asked + 1]]
    return found


def scores(model, params, tokens, held_out):
    """Nats per character on the held-out passages, and the difference to each n-gram with its 95 % interval."""
    passages = held_out[: PASSAGES * PASSAGE + 1]
    ours = sliding_log_probabilities(model, params, passages).reshape(PASSAGES, PASSAGE)
    result = {"transformer": float(-ours.mean())}
    rivals = [(n, "witten-bell") for n in range(1, 8)] + [(n, "kneser-ney") for n in (4, 5, 6, 7)]
    for n, smoothing in rivals:
        counted = ml.train_ngram(tokens, n, model.config.vocabulary, smoothing)
        log_p = counted.log_probabilities(passages)[1:].reshape(PASSAGES, PASSAGE)
        low, difference, high = bootstrap_interval((log_p - ours).mean(1), np.random.default_rng(0))
        name = f"{n}-gram" if smoothing == "witten-bell" else f"{n}-gram, Kneser–Ney"
        result[name] = {"nats": float(-log_p.mean()), "transformer minus n-gram": [low, difference, high]}
        print(name, result[name], flush=True)
    return result


if __name__ == "__main__":
    main()
