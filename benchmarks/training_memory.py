"""The most memory that a training run holds, ours and PyTorch's, beyond what each holds before the first step.

    python benchmarks/training_memory.py                        (where torch is installed: .venv-parity/bin/python)
    python benchmarks/training_memory.py --size 128,4,64,32     (width, layers, tokens, batch; may be repeated)

The models, batches and sides are those of training_step.py, each in a process of its own that takes a few steps.
Printed are the peak of the whole process, and what training added to a process that has imported everything and made
its parameters. The system counts the peak (the largest resident set). For the worker process of "fast", what it holds
beyond what it inherited is added.
"""

import argparse
import resource
import subprocess
import sys

from training_step import SIZES, WORKERS, Size, available, eager, environment, fast, machine, readable

STEPS = 4
SIDES = {"fast": fast, "readable": readable, "eager": eager}


def peak_megabytes(of=resource.RUSAGE_SELF):
    return resource.getrusage(of).ru_maxrss / (1024 if sys.platform != "darwin" else 1024**2)


def measure(side, size):
    """In a process of its own: the peak before the first step, and after the last."""
    steps = SIDES[side](size)
    next(steps)
    before = peak_megabytes()
    steps.send(STEPS)
    added = max(0, peak_megabytes(resource.RUSAGE_CHILDREN) - before) * (WORKERS - 1)
    print(before, peak_megabytes() + added)


def peaks(side, size):
    command = [sys.executable, __file__, "--side", side, "--size", ",".join(map(str, size[:-1]))]
    done = subprocess.run(command, env=environment(side), stdout=subprocess.PIPE, text=True, check=True)
    return map(float, done.stdout.split())


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", action="append", type=lambda text: Size(*map(int, text.split(","))))
    parser.add_argument("--side", choices=tuple(SIDES), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        return measure(options.side, options.size[0])
    print(machine())
    sides = [side for side in available() if side in SIDES]
    for size in options.size or SIZES:
        print(f"\nd {size.width}, L {size.layers}, T {size.length}, B {size.batch}")
        found = {}
        for side in sides:
            before, peak = peaks(side, size)
            found[side] = peak, peak - before
            print(f"  {side:9} peak {peak:7.0f} MB   of training {peak - before:7.0f} MB")
        for side in ("fast", "readable") if "eager" in found else ():
            whole, training = (a / b for a, b in zip(found[side], found["eager"], strict=True))
            print(f"  {side + ' / eager':16} {whole:5.2f}               {training:8.2f}")


if __name__ == "__main__":
    main()
