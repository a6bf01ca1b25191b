"""Memory: attention over a long text, tiled and whole, and SmolLM2's file becoming float32.

    python benchmarks/memory.py

Attention in float32, one head of width 64, causal. What is counted is what NumPy allocates at the peak (tracemalloc),
beside queries, keys and values. The file is loaded in processes of their own: wall time from the call on, and
the largest memory that the process ever held.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
os.environ["PYTHONPATH"] = str(ROOT)
HEADS, WIDTH = 1, 64

LOAD = """
import json, resource, sys, time
import mathllm, mathllm.pretrained.smollm2 as smollm2
before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
loaded = smollm2.load()
took = time.perf_counter() - start
weights = sum(leaf.nbytes for leaf in mathllm.tree_leaves(loaded.params))
unit = 1 if sys.platform == "darwin" else 1024
print(json.dumps([took, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit, weights]))
"""


def peak(attend, length):
    """Bytes at the peak, and seconds."""
    rng = np.random.default_rng(0)
    query, key, value = rng.standard_normal((3, HEADS, length, WIDTH), np.float32)
    tracemalloc.start()
    start = time.perf_counter()
    attend(query, key, value)
    took, size = time.perf_counter() - start, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return size, took


def attention_memory(lengths):
    import mathllm as ml

    def whole(query, key, value):
        return ml.attention(query, key, value, ml.causal_mask(query.shape[-2]))

    def tiled(query, key, value):
        return ml.flash_attention(query, key, value, causal=True)

    print(f"attention, float32, {HEADS} head of width {WIDTH}, causal: memory at the peak beside the inputs")
    for length in lengths:
        (ours, seconds), (table, whole_seconds) = peak(tiled, length), peak(whole, length)
        print(
            f"T {length:6,}   tiled {ours / 1e6:8.2f} MB, {seconds:6.2f} s   "
            f"whole {table / 1e6:8.1f} MB, {whole_seconds:6.2f} s   1/{table / ours:.0f}   "
            f"{ours / length:,.0f} bytes per token tiled"
        )


def loading(runs):
    from mathllm import data

    if not data.available("smollm2"):
        return
    found = []
    for _ in range(runs):
        done = subprocess.run([sys.executable, "-c", LOAD], capture_output=True, text=True, check=True)
        found.append(json.loads(done.stdout))
    took, most, weights = (statistics.median(column) for column in zip(*found, strict=True))
    print(
        f"SmolLM2 from its file: {took:.2f} s (fastest {min(found)[0]:.2f}), {most / 1e6:.0f} MB at the peak of the "
        f"process, {weights / 1e6:.0f} MB of them weights in float32"
    )


def main():
    options = argparse.ArgumentParser(description="memory of attention and of loading a model")
    options.add_argument("--lengths", type=int, nargs="*", default=[2048, 4096, 8192])
    options.add_argument("--runs", type=int, default=5, help="how often the model is loaded")
    options = options.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, NumPy {np.__version__}")
    attention_memory(options.lengths)
    loading(options.runs)


if __name__ == "__main__":
    main()
