"""Train the model of the first page, the one of the README, and write its weights  ->  book/_data/names_model.bin.

    python tools/build_names_model.py

One minute. The seed is fixed; another processor may round differently, and the weights then differ a little.
The file holds the parameters in the order of `order`, as float16: 200 kB. mathllm/figures/names_model.js reads it.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from mathllm.pretrained.huggingface import load_pretrained
from mathllm.transformer import Config, llama_config

PLACE = Path(__file__).resolve().parent.parent / "book" / "_data" / "names_model.bin"
SIZES = {"width": 64, "layers": 2, "heads": 4, "context": 32}
OPTIONS = ["--tokenizer", "char", "--batch", "32", "--steps", "1000"]
ATTENTION, NETWORK = ("query", "key", "value", "output"), ("gate", "up", "down")


def config() -> Config:
    """The choices that `mathllm train names` makes for these sizes."""
    return llama_config(vocabulary=28, hidden=8 * SIZES["width"] // 3, tied=True, **SIZES)


def order(params: dict) -> list[np.ndarray]:
    """The parameters in the order of the file."""
    arrays = [params["embedding"]]
    for block in params["blocks"]:
        arrays += [block["attention_norm"]["gain"], *(block["attention"][name] for name in ATTENTION)]
        arrays += [block["feed_forward_norm"]["gain"], *(block["feed_forward"][name] for name in NETWORK)]
    return [*arrays, params["final_norm"]["gain"]]


def read(params: dict) -> None:
    """Put the weights of the file into the parameters, in place."""
    numbers, start = np.fromfile(PLACE, "<f2"), 0
    for array in order(params):
        array[...] = numbers[start : start + array.size].reshape(array.shape)
        start += array.size
    if start != numbers.size:
        raise ValueError(f"{PLACE.name} needs {start} numbers, got {numbers.size}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        sizes = [text for name, size in SIZES.items() for text in (f"--{name}", str(size))]
        command = [sys.executable, "-m", "mathllm", "train", "names", *sizes, *OPTIONS, "-o", folder]
        subprocess.run(command, check=True)
        _, params = load_pretrained(folder)
    np.concatenate([array.ravel() for array in order(params)]).astype("<f2").tofile(PLACE)


if __name__ == "__main__":
    main()
