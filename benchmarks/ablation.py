"""What does each device of mathllm.fast save? Each is switched off in turn, and the step is timed again.

    python benchmarks/ablation.py                               (needs NumPy alone)
    python benchmarks/ablation.py --size 128,4,64,32            (width, layers, tokens, batch; may be repeated)
    python benchmarks/ablation.py --shape gpt2                  (default: llama; may be repeated)
    python benchmarks/ablation.py --devices memory,block        (the first table shows all of them)

The package has no switches: this program replaces a function of mathllm.fast by its plain equivalent, in a process of
its own for each device. All compute the same loss, which is checked. The processes take turns, some steps each.
The Makefile's settings of memory are left out, as in a program of your own: with them, new arrays cost less.
"saves" is the part of the time without the device that the device saves, 1 − with/without, the median of the turns.
Savings do not add up: without one device, another may matter more or less.
"""

import argparse
import json
import math
import os
import statistics
import sys
import time

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"  # before NumPy is imported

import numpy as np
from training_step import ROOT, SIZES, Side, Size, machine, our_config, title, trained

sys.path.insert(0, str(ROOT))

# ------------------------------------------------------------------------ training: devices and their plain equivalents


def without_memory():
    """New arrays in every step."""
    from mathllm.fast.block import Memory

    Memory.__call__ = lambda self, name, shape, dtype: np.empty(shape, dtype)


def nothing():
    pass


# name: what replaces the device in the table, and the replacement
DEVICES = {
    "memory": ("new arrays in every step", without_memory),
    "block": ("the block of chapter 12", nothing),
    "adamw in place": ("adamw_step of chapter 9", nothing),
    "two workers": ("one worker", nothing),
}


def steps_without(device, size):
    """The training steps of `fast.train`, without this device; with all of them for "all"."""
    import mathllm as ml
    from mathllm import fast

    def adamw_step(*args, **options):  # fast.train overwrites only for adamw_step itself
        return ml.adamw_step(*args, **options)

    def train(state, loss, batches, steps, *, workers, **options):
        if device == "two workers":
            workers = 1
        if device == "adamw in place":
            options["step"] = adamw_step
        return fast.train(state, loss, batches, steps, workers=workers, **options)

    if device != "all":
        DEVICES[device][1]()
    transformer = ml.Transformer if device == "block" else fast.Transformer
    return trained(size, transformer, train)


# ------------------------------------------------------------------------------------------------------------ decoding


def decoding(width, layers, length=128, texts=20):
    """Milliseconds for a token of one sequence: with the decoding step, and without its devices."""
    import mathllm as ml
    from mathllm import fast

    config = our_config(Size(width, layers, 2 * length, 1))
    params = fast.Transformer(config).init(np.random.default_rng(0), np.float32)
    tokens = np.random.default_rng(1).integers(config.vocabulary, size=length).tolist()

    def by_model(transformer):
        model, cache = transformer(config), ml.KVCache(config, capacity=length, dtype=np.float32)
        return lambda token: model.last_logits(params, [[token]], cache=cache)[0, 0]

    def by_rotate():
        return with_rotate()(config, params, ml.KVCache(config, capacity=length, dtype=np.float32))

    sides = {
        "all": lambda: by_model(fast.Transformer),
        "decoding step": lambda: by_model(ml.Transformer),
        "rotation as a matrix": by_rotate,
    }
    seconds, logits = {name: [] for name in sides}, {}
    for _ in range(texts):
        for name, side in sides.items():
            step, rows = side(), []
            for token in tokens:
                start = time.perf_counter()
                rows.append(step(token))
                seconds[name].append(time.perf_counter() - start)
            logits[name] = np.array(rows)
    apart = max(np.abs(found - logits["all"]).max() for found in logits.values())
    print(f"\ndecoding, d {width}, L {layers}, {length} tokens, one thread; logits at most {apart:.0e} apart")
    replaced = {"decoding step": "last_logits of chapter 12", "rotation as a matrix": "rotate() of chapter 10"}
    print_savings(seconds, replaced)


def with_rotate():
    """The decoding step with `rotate` for each query and key."""
    import mathllm as ml
    from mathllm.fast import decoding

    class Step(decoding.DecodingStep):
        def _rotations(self, start, count=1):
            c = self.config
            self.angles = ml.rotary_angles(np.array([start]), c.head_width, c.rope_base, c.rope_scaling)
            return [(None, None)]

        def _attention(self, x, block, layer, mask):
            (keys, values), width = layer, self.config.head_width
            heads = block.queries_keys_values(x).reshape(-1, 1, width)
            query, key, value = np.split(heads, np.cumsum([self.config.heads, self.config.kv_heads]))
            query, key = (ml.rotate(part, angles=self.angles, pairing=self.config.pairing) for part in (query, key))
            keys[:, -1], values[:, -1] = key[:, 0], value[:, 0]
            query = query * self.dtype.type(self.config.score_scale)
            scores = query.reshape(len(keys), -1, width) @ keys.swapaxes(1, 2)
            scores -= np.maximum.reduce(scores, axis=-1, keepdims=True)
            np.exp(scores, out=scores)
            mixed = scores @ values / scores.dot(self.ones[: scores.shape[-1]])[..., None]
            return block.output(mixed.reshape(-1))

    return Step


# ------------------------------------------------------------------------------------------------------- taking turns


def print_savings(seconds, replaced):
    """A line for each device: the median of its turns, each beside the turn of "all" before it."""
    print(f"  {'device':22}{'ms per step':>12}{'saves':>8}   without it")
    print(f"  {'all':22}{1e3 * statistics.median(seconds['all']):12.3f}")
    for name, text in replaced.items():
        if name in seconds:
            saved = statistics.median(1 - a / b for a, b in zip(seconds["all"], seconds[name], strict=True))
            print(f"  {name:22}{1e3 * statistics.median(seconds[name]):12.3f}{saved:8.1%}   {text}")
    sys.stdout.flush()


def training(size, devices, turns, steps):
    sides = {name: Side(name, size, __file__) for name in ["all", *devices]}
    try:
        for number in range(turns + 1):
            for name, side in list(sides.items()):
                if not side.turn(steps):
                    raise SystemExit(f"the process without {name!r} ended early; its error is above")
                if number == 0:  # this turn warms up
                    side.seconds.clear()
    finally:
        for side in sides.values():
            side.close()
    losses = [side.loss for side in sides.values()]
    apart = max(losses) - min(losses)
    print(f"\ntraining, {title(size)}, two workers; losses at most {apart:.0e} apart")
    if apart > 5e-3:
        print("  these are not the same computation:", {name: side.loss for name, side in sides.items()})
    replaced = {name: text for name, (text, _) in DEVICES.items()}
    print_savings({name: side.seconds for name, side in sides.items()}, replaced)


def serve(device, size):
    """In a process of its own: for each number on the standard input, so many steps, and what they took."""
    steps = steps_without(device, size)
    next(steps)
    for line in sys.stdin:
        print(json.dumps(steps.send(int(line))), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", action="append", type=lambda text: Size(*map(int, text.split(","))))
    parser.add_argument("--shape", action="append", choices=("llama", "gpt2"), help="default: llama; may be repeated")
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--steps", type=int, help="in each turn (default: as many as take about half a second)")
    parser.add_argument("--devices", type=lambda text: text.split(","), help=f"some of {','.join(DEVICES)}")
    parser.add_argument("--no-decoding", action="store_true", help="training alone")
    parser.add_argument("--side", choices=["all", *DEVICES], help=argparse.SUPPRESS)
    options = parser.parse_args()
    shapes = options.shape or ["llama"]
    sizes = [size._replace(shape=shape) for shape in shapes for size in options.size or SIZES]
    if options.side:
        return serve(options.side, sizes[0])
    if unknown := set(options.devices or ()) - set(DEVICES):
        parser.error(f"there is no device {', '.join(unknown)}; choose from {', '.join(DEVICES)}")
    print(machine())
    for setting in ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"):
        os.environ.pop(setting, None)
    for size in sizes:
        work = size.layers * size.batch * size.length * size.width**2
        steps = options.steps or max(3, math.ceil(1e9 / work))
        training(size, options.devices or list(DEVICES), options.turns, steps)
    if not options.no_decoding:
        for width, layers in ((64, 2), (128, 4), (256, 6)):
            decoding(width, layers)


if __name__ == "__main__":
    main()
