"""The most memory that a training run ever held, ours and PyTorch's, beyond what each holds before the first step.

    python benchmarks/training_memory.py                        (where torch is installed: .venv-parity/bin/python)
    python benchmarks/training_memory.py --size 128,4,64,32     (width, layers, tokens, batch; may be repeated)

The same models and batches as in training_step.py, each side in a process of its own that takes a few steps. Printed
are the peak of the whole process, and what training added to a process that has imported everything and made its
parameters. The system counts the peak (the largest resident set); what our second worker, a process, holds beyond what
it was born with is added.
"""

import argparse
import resource
import subprocess
import sys

from training_step import SIZES, WORKERS, Size, available, eager, environment, machine, ours

STEPS = 4


def peak_megabytes(of=resource.RUSAGE_SELF):
    return resource.getrusage(of).ru_maxrss / (1024 if sys.platform != "darwin" else 1024**2)


def measure(side, size):
    """In a process of its own: the peak before the first step, and after the last."""
    steps = {"ours": ours, "eager": eager}[side](size)
    next(steps)
    before = peak_megabytes()
    steps.send(STEPS)
    added = max(0, peak_megabytes(resource.RUSAGE_CHILDREN) - before) * (WORKERS - 1)
    print(before, peak_megabytes() + added)


def peaks(side, size):
    command = [sys.executable, __file__, "--side", side, "--size", ",".join(map(str, size))]
    done = subprocess.run(command, env=environment(side), stdout=subprocess.PIPE, text=True, check=True)
    return map(float, done.stdout.split())


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", action="append", type=lambda text: Size(*map(int, text.split(","))))
    parser.add_argument("--side", choices=("ours", "eager"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        return measure(options.side, options.size[0])
    print(machine())
    sides = [side for side in available() if side in ("ours", "eager")]
    for size in options.size or SIZES:
        print(f"\nd {size.width}, L {size.layers}, T {size.length}, B {size.batch}")
        found = {}
        for side in sides:
            before, peak = peaks(side, size)
            found[side] = peak, peak - before
            print(f"  {side:9} peak {peak:7.0f} MB   of training {peak - before:7.0f} MB")
        if len(found) == 2:
            whole, training = (a / b for a, b in zip(found["ours"], found["eager"], strict=True))
            print(f"  ours / eager   {whole:.2f}               {training:.2f}")


if __name__ == "__main__":
    main()
