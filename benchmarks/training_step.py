"""One training step in float32, beside PyTorch, and beside its own matrix products.

    python benchmarks/training_step.py                          (where torch is installed: .venv-parity/bin/python)
    python benchmarks/training_step.py --size 128,4,64,32       (width, layers, tokens, batch; may be repeated)
    python benchmarks/training_step.py --shape gpt2             (LayerNorm, GELU, biases, learned positions)
    python benchmarks/training_step.py --sides fast,eager       (the first call shows all sides)

    fast       mathllm.fast: its model, and its train() with two worker processes
    readable   mathllm: the model of chapter 12, and train() of chapter 13 with two processes
    eager      the same model as PyTorch's users write it: fused AdamW, scaled_dot_product_attention, two threads
    compiled   the same under torch.compile, where a C++ compiler exists
    products   the matrix products of the step by themselves, in two threads that do nothing else: no operand is in the
               cache, so a step that keeps its own there can come close to it

Each side is a process of its own. They take turns, some steps each, so that other work on the machine slows all of
them; the median of the turns counts. All begin with the same weights and learn the same batches: the losses after the
last step are printed to show it.
"""

import argparse
import contextlib
import json
import math
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
WORKERS = 2
SIDES = ("fast", "readable", "eager", "compiled", "products")
RATIOS = (("eager", "fast"), ("compiled", "fast"), ("eager", "readable"), ("products", "fast"))
BLOCK = 64  # queries at a time; keys that come later are left out


class Size(NamedTuple):
    """Letters of the book: width D, layers L, tokens T, batch B; vocabulary V, width of a head K; and the shape."""

    width: int
    layers: int
    length: int
    batch: int
    vocabulary: int = 256
    head_width: int = 32
    shape: str = "llama"

    @property
    def hidden(self):
        """F: 4 times the width for GPT-2; 8/3 of it, up to a multiple of 32, for LLaMA with its two matrices."""
        return 4 * self.width if self.shape == "gpt2" else -(-self.width * 8 // 3 // 32) * 32

    @property
    def heads(self):
        return self.width // self.head_width


SIZES = (Size(64, 2, 64, 16), Size(128, 4, 64, 32), Size(128, 4, 128, 16), Size(256, 6, 128, 16))
RATE = {"learning_rate": 1e-3, "weight_decay": 0.1}


def our_config(size):
    import mathllm as ml

    make = {"llama": ml.llama_config, "gpt2": ml.gpt2_config}[size.shape]
    return make(
        vocabulary=size.vocabulary, width=size.width, layers=size.layers, heads=size.heads, hidden=size.hidden,
        context=size.length,
    )  # fmt: skip


def our_params(size):
    import mathllm as ml

    return ml.Transformer(our_config(size)).init(np.random.default_rng(0), np.float32)


def our_batch(size, rng):
    import mathllm as ml

    return ml.next_token_pairs(rng.integers(size.vocabulary, size=(size.batch, size.length + 1)))


# --------------------------------------------------------------------- the sides: each yields seconds and the last loss


def fast(size):
    from mathllm import fast

    return trained(size, fast.Transformer, fast.train)


def readable(size):
    import mathllm as ml

    return trained(size, ml.Transformer, ml.train)


def trained(size, transformer, train, **options):
    """The steps of a `train`: the time of a step is that between two calls of `progress`."""
    import mathllm as ml

    model = transformer(our_config(size))
    state = ml.training_state(our_params(size), np.random.default_rng(1))

    def loss(params, batch):
        return model.next_token_loss(params, *batch)

    wanted = yield
    while True:
        ended = []
        state, history = train(
            state, loss, lambda rng: our_batch(size, rng), state.step + wanted + 1, workers=WORKERS,
            progress=lambda _, ended=ended: ended.append(time.perf_counter()), **RATE, **options,
        )  # fmt: skip
        wanted = yield np.diff(ended).tolist(), float(history[-1].loss)


def compiled(size):
    return eager(size, compiled=True)


def eager(size, compiled=False):
    import torch

    torch.set_num_threads(WORKERS)
    model = {"llama": torch_llama, "gpt2": torch_gpt2}[size.shape](size)
    loss_of = torch.compile(model) if compiled else model
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=RATE["learning_rate"], weight_decay=RATE["weight_decay"], fused=True
    )
    rng = np.random.default_rng(1)
    wanted = yield
    while True:
        ended = []
        for _ in range(wanted + 1):
            inputs, targets = (torch.from_numpy(part) for part in our_batch(size, rng))
            loss = loss_of(inputs, targets)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            value = loss.item()
            ended.append(time.perf_counter())
        wanted = yield np.diff(ended).tolist(), value


def torch_llama(size):
    import torch
    from torch import nn
    from torch.nn import functional as F

    D, H, K = size.width, size.heads, size.head_width

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention_norm, self.feed_forward_norm = (nn.RMSNorm(D, eps=1e-6) for _ in range(2))
            self.query, self.key, self.value, self.output = (nn.Linear(D, D, bias=False) for _ in range(4))
            self.gate, self.up = (nn.Linear(D, size.hidden, bias=False) for _ in range(2))
            self.down = nn.Linear(size.hidden, D, bias=False)

        def forward(self, x, cosine, sine):
            h = self.attention_norm(x)
            q, k, v = (part(h).view(*x.shape[:2], H, K).transpose(1, 2) for part in (self.query, self.key, self.value))
            q, k = (part * cosine + rotate_half(part) * sine for part in (q, k))
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.output(mixed.transpose(1, 2).reshape(x.shape))
            h = self.feed_forward_norm(x)
            return x + self.down(F.silu(self.gate(h)) * self.up(h))

    def rotate_half(x):
        first, second = x.chunk(2, dim=-1)
        return torch.cat((-second, first), dim=-1)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(size.vocabulary, D)
            self.blocks = nn.ModuleList(Block() for _ in range(size.layers))
            self.final_norm = nn.RMSNorm(D, eps=1e-6)
            self.unembedding = nn.Linear(D, size.vocabulary, bias=False)
            angles = torch.outer(torch.arange(size.length), 10000.0 ** (-torch.arange(0, K, 2) / K)).repeat(1, 2)
            self.register_buffer("cosine", angles.cos())
            self.register_buffer("sine", angles.sin())

        def forward(self, inputs, targets):
            x = self.embedding(inputs)
            for block in self.blocks:
                x = block(x, self.cosine, self.sine)
            logits = self.unembedding(self.final_norm(x))
            return F.cross_entropy(logits.flatten(0, 1), targets.flatten())

    model, params = Model(), our_params(size)
    copy(model.embedding.weight, params["embedding"])
    copy(model.unembedding.weight, params["unembedding"].T)
    for theirs, block in zip(model.blocks, params["blocks"], strict=True):
        for name, array in (block["attention"] | block["feed_forward"]).items():
            copy(getattr(theirs, name).weight, array.T)
    return model


def torch_gpt2(size):
    import torch
    from torch import nn
    from torch.nn import functional as F

    D, H, K = size.width, size.heads, size.head_width

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention_norm, self.feed_forward_norm = nn.LayerNorm(D), nn.LayerNorm(D)
            self.projections, self.output = nn.Linear(D, 3 * D), nn.Linear(D, D)
            self.up, self.down = nn.Linear(D, size.hidden), nn.Linear(size.hidden, D)

        def forward(self, x):
            joined = self.projections(self.attention_norm(x))
            q, k, v = (part.view(*x.shape[:2], H, K).transpose(1, 2) for part in joined.split(D, dim=2))
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.output(mixed.transpose(1, 2).reshape(x.shape))
            return x + self.down(F.gelu(self.up(self.feed_forward_norm(x)), approximate="tanh"))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(size.vocabulary, D)
            self.positions = nn.Embedding(size.length, D)
            self.blocks = nn.ModuleList(Block() for _ in range(size.layers))
            self.final_norm = nn.LayerNorm(D)
            self.register_buffer("places", torch.arange(size.length))

        def forward(self, inputs, targets):
            x = self.embedding(inputs) + self.positions(self.places)
            for block in self.blocks:
                x = block(x)
            logits = F.linear(self.final_norm(x), self.embedding.weight)
            return F.cross_entropy(logits.flatten(0, 1), targets.flatten())

    model, params = Model(), our_params(size)
    copy(model.embedding.weight, params["embedding"])
    copy(model.positions.weight, params["positions"])
    for theirs, block in zip(model.blocks, params["blocks"], strict=True):
        parts = block["attention"] | block["feed_forward"]
        parts["projections"] = np.hstack([parts[name] for name in ("query", "key", "value")])
        for name in ("projections", "output", "up", "down"):
            copy(getattr(theirs, name).weight, parts[name].T)
            getattr(theirs, name).bias.data.zero_()  # as ours begin
    return model


def copy(parameter, array):
    import torch

    parameter.data.copy_(torch.from_numpy(array))


def products(size):
    threads = ThreadPoolExecutor(WORKERS)
    rounds = [product_list(size, size.batch // WORKERS) for _ in range(WORKERS)]

    def once(worker):
        for a, b, out in rounds[worker]:
            np.matmul(a, b, out=out)

    wanted = yield
    while True:
        seconds = []
        for _ in range(wanted):
            began = time.perf_counter()
            list(threads.map(once, range(WORKERS)))
            seconds.append(time.perf_counter() - began)
        wanted = yield seconds, None


def product_list(size, batch):
    """The operands of every product of a step of one worker, and where the result goes.

    Projections of one input count as one product; of the scores, those that lie before the diagonal or in its blocks.
    """
    rng = np.random.default_rng(2)
    D, F, H, K, T = size.width, size.hidden, size.heads, size.head_width, size.length

    def array(*shape):
        return rng.standard_normal(shape, np.float32)

    def projection(rows, n_in, n_out):
        x, weight, dy = array(rows, n_in), array(n_in, n_out), array(rows, n_out)
        return [(x, weight, np.empty_like(dy)), (dy, weight.T, np.empty_like(x)), (x.T, dy, np.empty_like(weight))]

    def scores():
        query, key, value, out, dout = (array(batch, T, H, K).swapaxes(1, 2) for _ in range(5))
        weights, dweights = (array(batch, H, T, T) for _ in range(2))
        for start in range(0, T, BLOCK):
            rows, seen, later = slice(start, start + BLOCK), slice(0, start + BLOCK), slice(start, T)
            part, dpart = (w[:, :, rows, seen] for w in (weights, dweights))
            columns, dcolumns = (w[:, :, later, rows].swapaxes(-1, -2) for w in (weights, dweights))
            yield query[:, :, rows], key[:, :, seen].swapaxes(-1, -2), part
            yield part, value[:, :, seen], out[:, :, rows]
            yield dout[:, :, rows], value[:, :, seen].swapaxes(-1, -2), dpart
            yield dpart, key[:, :, seen], out[:, :, rows]
            yield dcolumns, query[:, :, later], out[:, :, rows]
            yield columns, dout[:, :, later], out[:, :, rows]

    N, wide = batch * T, F if size.shape == "gpt2" else 2 * F
    found = projection(N, D, size.vocabulary)
    for _ in range(size.layers):
        found += projection(N, D, 3 * D) + projection(N, D, D) + projection(N, D, wide) + projection(N, F, D)
        found += scores()
    return found


# ------------------------------------------------------------------------------------------------------- taking turns


def serve(side, size):
    """In a process of its own: for each number on the standard input, so many steps, and what they took."""
    makers = {"fast": fast, "readable": readable, "eager": eager, "compiled": compiled, "products": products}
    steps = makers[side](size)
    next(steps)
    for line in sys.stdin:
        print(json.dumps(steps.send(int(line))), flush=True)


def environment(side):
    """Two threads for the peer; one for each of our two workers. The package is that of this checkout."""
    threads = str(WORKERS) if side in ("eager", "compiled") else "1"
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return os.environ | {"OMP_NUM_THREADS": str(WORKERS), "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": threads}


class Side:
    """The process of a side, the median seconds of a step in each of its turns, and its last loss."""

    def __init__(self, name, size, program=__file__):
        sizes = ",".join(map(str, size[:-1]))
        command = [sys.executable, program, "--side", name, "--size", sizes, "--shape", size.shape]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment(name)
        )
        self.seconds, self.loss = [], None

    def turn(self, steps):
        """Whether the side took its turn: False if its process ended."""
        try:
            print(steps, file=self.process.stdin, flush=True)
        except BrokenPipeError:
            return False
        answer = self.process.stdout.readline()
        if not answer:
            return False
        seconds, self.loss = json.loads(answer)
        self.seconds.append(statistics.median(seconds))
        return True

    def close(self):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()


def compare(size, names, turns, steps):
    """The sides after all turns; a side whose process ends early is reported and left out."""
    started = {name: Side(name, size) for name in names}
    sides = dict(started)
    try:
        for number in range(turns + 1):
            for name, side in list(sides.items()):
                if not side.turn(steps):
                    print(f"  {name} ended early, its error is above; it is left out")
                    del sides[name]
                elif number == 0:  # this turn warms up and compiles
                    side.seconds.clear()
    finally:
        for side in started.values():
            side.close()
    return sides


def report(size, sides):
    """Print milliseconds and losses of one size; returns the ratios."""
    print(f"\n{title(size)}   (H {size.heads}, F {size.hidden}, V {size.vocabulary})")
    middle = {name: statistics.median(side.seconds) for name, side in sides.items()}
    for name, side in sides.items():
        loss = "" if side.loss is None else f"   loss {side.loss:.5f}"
        print(f"  {name:9} median {1e3 * middle[name]:8.2f} ms   min {1e3 * min(side.seconds):8.2f} ms{loss}")
    ratios = {}
    for over, under in RATIOS:
        if over in sides and under in sides:
            pairs = [a / b for a, b in zip(sides[over].seconds, sides[under].seconds, strict=True)]
            ratios[over, under] = middle[over] / middle[under]
            spread = f"(turns: {min(pairs):.2f} to {max(pairs):.2f})"
            print(f"  {over + ' / ' + under:19} {ratios[over, under]:5.2f}   {spread}")
    sys.stdout.flush()
    return ratios


def title(size):
    return f"{size.shape} d {size.width}, L {size.layers}, T {size.length}, B {size.batch}"


def table(found):
    """All ratios, a line for each size."""
    columns = [pair for pair in RATIOS if any(pair in ratios for ratios in found.values())]
    print("\n" + " " * 32 + "".join(f"{over + ' / ' + under:>19}" for over, under in columns))
    for size, ratios in found.items():
        numbers = (f"{ratios[pair]:19.2f}" if pair in ratios else " " * 18 + "-" for pair in columns)
        print(f"{title(size):32}{''.join(numbers)}")


def machine():
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        name = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        name = platform.processor() or platform.machine()
    return f"{name}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"


def available():
    try:
        print(f"NumPy {np.__version__}, PyTorch {metadata.version('torch')}")
    except metadata.PackageNotFoundError:
        print(f"NumPy {np.__version__}; PyTorch is not installed: mathllm alone")
        return ["fast", "readable", "products"]
    compiler = any(map(shutil.which, (os.environ.get("CXX", "c++"), "g++", "clang++")))
    return [name for name in SIDES if name != "compiled" or compiler]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", action="append", type=lambda text: Size(*map(int, text.split(","))))
    parser.add_argument("--shape", action="append", choices=("llama", "gpt2"), help="default: llama; may be repeated")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--steps", type=int, help="in each turn (default: as many as take about a second)")
    parser.add_argument("--sides", type=lambda text: text.split(","), help=f"some of {','.join(SIDES)}")
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    shapes = options.shape or ["llama"]
    sizes = [size._replace(shape=shape) for shape in shapes for size in options.size or SIZES]
    if options.side:
        return serve(options.side, sizes[0])
    if unknown := set(options.sides or ()) - set(SIDES):
        parser.error(f"there is no side {', '.join(unknown)}; choose from {', '.join(SIDES)}")
    print(machine())
    names, found = options.sides or available(), {}
    for size in sizes:
        work = size.layers * size.batch * size.length * size.width**2
        steps = options.steps or max(5, math.ceil(2e9 / work))
        found[size] = report(size, compare(size, names, options.turns, steps))
    table(found)


if __name__ == "__main__":
    main()
