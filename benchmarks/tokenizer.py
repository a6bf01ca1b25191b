"""A megabyte of Shakespeare: learning 1,000 merges and encoding, beside the library `tokenizers` if it is installed.

    python benchmarks/tokenizer.py

Both learn from the same text and take turns; the merges are compared, then the ids. (The peer is written in Rust.)
"""

import json
import platform
import statistics
import time

import mathllm as ml
from mathllm import data

MERGES = 1000
RUNS = 5


def ours(text):
    start = time.perf_counter()
    tokenizer = ml.training.train_tokenizer(text, 256 + MERGES, special_tokens=(), ties="lowest ids")
    learned = time.perf_counter()
    ids = tokenizer.encode(text)
    return learned - start, time.perf_counter() - learned, [*map(b"".join, tokenizer.merges)], ids


def theirs(text):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=256 + MERGES, initial_alphabet=alphabet, show_progress=False)
    start = time.perf_counter()
    tokenizer.train_from_iterator([text], trainer)
    learned = time.perf_counter()
    ids = tokenizer.encode(text).ids
    ended = time.perf_counter()
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    return learned - start, ended - learned, [tokenizer.decoder.decode(pair).encode() for pair in merges], ids


def main():
    text = data.shakespeare().train.encode()[:1_000_000].decode(errors="ignore")
    sides = {"ours": ours}
    try:
        import tokenizers

        sides[f"tokenizers {tokenizers.__version__}"] = theirs
    except ImportError:
        print("the library tokenizers is not installed: ours alone")
    ml.training.pre_tokenize("")  # the pattern is compiled once
    results = {name: [] for name in sides}
    for _ in range(RUNS):
        for name, side in sides.items():
            results[name].append(side(text))
    print(f"{platform.machine()}, Python {platform.python_version()}; {len(text):,} characters, {MERGES:,} merges")
    medians = []
    for name, runs in results.items():
        learning, encoding = (statistics.median(run[i] for run in runs) for i in (0, 1))
        medians.append((learning, encoding))
        print(f"{name:20} learning {learning:6.2f} s   encoding {len(text.encode()) / encoding / 1e3:8,.0f} kB/s")
    if len(medians) == 2:
        print("ours / peer          learning {:6.2f} x   encoding {:8.2f} x the time".format(
            *(a / b for a, b in zip(*medians, strict=True))))  # fmt: skip
        (*_, merges, ids), (*_, their_merges, their_ids) = (runs[-1] for runs in results.values())
        print(f"same merges: {merges == their_merges}, same ids: {ids == their_ids}")


if __name__ == "__main__":
    main()
