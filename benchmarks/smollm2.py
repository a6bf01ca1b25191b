"""SmolLM2 writes: tokens per second in float32, beside transformers, and beside the speed of memory.

    python benchmarks/smollm2.py      (where transformers is installed: .venv-parity/bin/python)

Both sides continue the same prompt greedily with `generate` and a cache, with as many threads as there are cores. They
take turns in one process. The bound: every token needs every weight once, so a third side multiplies the same matrices
with vectors and does nothing else. (On a busy machine two threads of a BLAS wait for one another: run this alone.)
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = str(os.cpu_count())  # before NumPy is imported

import argparse
import platform
import statistics
import sys
import time
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
    step = ml.DecodingStep(model, params, ml.KVCache(model.config, dtype=np.float32, capacity=1))
    matrices = [p.whole for part in step.layers for p in (part.projections, part.output, part.widening, part.down)]
    matrices.append(step.unembedding)
    vectors = {rows: np.ones(rows, np.float32) for rows in {len(matrix) for matrix in matrices}}

    def multiply():
        for _ in range(count):
            for matrix in matrices:
                vectors[len(matrix)] @ matrix

    return multiply


def main():
    options = argparse.ArgumentParser(description="SmolLM2: tokens per second")
    options.add_argument("--tokens", type=int, default=32, help="how many each turn generates")
    options.add_argument("--turns", type=int, default=7)
    options = options.parse_args()
    tokens = np.array([smollm2.load_tokenizer().encode(PROMPT)])
    sides = {"mathllm": ours(tokens, options.tokens)}
    sides["products alone"] = products(tokens, options.tokens)
    try:
        import transformers

        sides[f"transformers {transformers.__version__}"] = theirs(tokens, options.tokens)
    except ImportError:
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
    written = [text.tolist() for name, text in texts.items() if text is not None]
    print(f"same text: {all(text == written[0] for text in written)}")


if __name__ == "__main__":
    main()
