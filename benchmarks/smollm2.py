"""SmolLM2 writes: tokens per second in float32, beside transformers, and beside the speed of memory.

    python benchmarks/smollm2.py      (where transformers is installed: .venv-parity/bin/python)

Both sides continue the same prompt greedily with `generate` and a cache, with as many threads as there are cores. They
take turns in one process. The bound: every token needs every weight once, from memory. "reading alone" reads them, each
thread its own share, and nothing waits for anything; "products alone" multiplies the same matrices with vectors.
(On a busy machine two threads of a BLAS wait for one another: run this alone.)
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = str(os.cpu_count())  # before NumPy is imported

import argparse
import platform
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import mathllm as ml
from mathllm import data
from mathllm.pretrained import smollm2

THREADS = os.cpu_count()
PROMPT = "Once upon a time, in a village by the sea,"


def ours(tokens, count):
    model, params, _ = smollm2.load()
    return lambda: ml.generate(model, params, tokens, max_new_tokens=count)


def theirs(tokens, count):
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    os.environ["TQDM_DISABLE"] = "1"
    torch.set_num_threads(THREADS)
    folder = data.path("smollm2")
    file = next(folder.glob("*.gguf")).name
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, gguf_file=file, dtype=torch.float32).eval()
    model.generation_config.eos_token_id = None  # go on to the last token, as ours does
    tokens = torch.tensor(tokens)
    mask = torch.ones_like(tokens)
    options = {"max_new_tokens": count, "do_sample": False, "use_cache": True}
    return lambda: model.generate(tokens, attention_mask=mask, **options).numpy()


def products(tokens, count):
    """The matrix–vector products of `count` tokens, each over all weights."""
    model, params, _ = smollm2.load()
    c, step = model.config, ml.DecodingStep(model, params, ml.KVCache(model.config, dtype=np.float32, capacity=1))
    inputs = [np.ones(size, np.float32) for size in (c.width, c.heads * c.head_width, c.width, c.hidden)]

    def multiply():
        for _ in range(count):
            for layer in step.layers:
                layer.projections(inputs[0])
                layer.output(inputs[1])
                layer.widening(inputs[2])
                layer.down(inputs[3])
            step.unembedding.T.dot(inputs[0])

    return multiply


def reading(tokens, count):
    """All weights, read as often as `count` tokens need them: every thread sums the squares of a share of its own."""
    _, params, _ = smollm2.load()
    parts = [block["attention"]["query"].base for block in params["blocks"]]  # all matrices of a block
    pieces = [piece for part in [*parts, params["embedding"].ravel()] for piece in np.array_split(part, _pieces(part))]

    def read(thread):
        for piece in pieces[thread::THREADS]:
            piece.dot(piece)

    def read_all():
        with ThreadPoolExecutor(THREADS) as pool:
            for _ in range(count):
                list(pool.map(read, range(THREADS)))

    return read_all


def _pieces(part):
    return part.nbytes // 2**22 + 1  # of at most 4 MB


def main():
    options = argparse.ArgumentParser(description="SmolLM2: tokens per second")
    options.add_argument("--tokens", type=int, default=32, help="how many each turn generates")
    options.add_argument("--turns", type=int, default=7)
    options = options.parse_args()
    tokens = np.array([smollm2.load_tokenizer().encode(PROMPT)])
    sides = {"mathllm": ours(tokens, options.tokens)}
    sides |= {"products alone": products(tokens, options.tokens), "reading alone": reading(tokens, options.tokens)}
    try:
        import transformers

        peer = f"transformers {transformers.__version__}"
        sides[peer] = theirs(tokens, options.tokens)
    except ImportError:
        peer = None
        print("transformers is not installed: ours alone")
    rates, texts = {name: [] for name in sides}, {}
    for turn in range(options.turns + 1):
        for name, side in sides.items():
            start = time.perf_counter()
            texts[name] = side()
            if turn:  # the first warms up
                rates[name].append(options.tokens / (time.perf_counter() - start))
    print(f"{platform.machine()}, {THREADS} cores, Python {platform.python_version()}, NumPy {np.__version__}")
    work = f"reads {tokens.shape[1]} tokens and writes {options.tokens}"
    print(f"SmolLM2-135M, float32, {work}, median of {options.turns} turns")
    medians = {name: statistics.median(found) for name, found in rates.items()}
    for name, found in rates.items():
        spread = f"({min(found):.1f} … {max(found):.1f})"
        ratio = medians["mathllm"] / medians[name]
        print(f"{name:22} {medians[name]:6.1f} tokens/s   {spread:15}   ours / this {ratio:.2f}")
    if peer is not None:
        most = medians["reading alone"] / medians[peer]
        print(f"nothing that reads each weight once per token can be more than {most:.2f} times as fast as {peer} here")
    written = [text.tolist() for name, text in texts.items() if text is not None]
    print(f"same text: {all(text == written[0] for text in written)}")


if __name__ == "__main__":
    main()
