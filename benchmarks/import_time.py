"""What `import mathllm` costs beyond NumPy, and which modules it is made of.

    python benchmarks/import_time.py

Fresh processes take turns: one imports NumPy, the other NumPy and mathllm; each tells how long its imports took.
"""

import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
os.environ["PYTHONPATH"] = str(ROOT)
PROGRAM = "import time; start = time.perf_counter(); import {}; print(time.perf_counter() - start)"
RUNS = 20


def seconds(modules):
    done = subprocess.run([sys.executable, "-c", PROGRAM.format(modules)], capture_output=True, text=True, check=True)
    return float(done.stdout)


def costliest(count):
    """The modules with the longest times of their own, in ms, that NumPy alone does not import."""
    command = [sys.executable, "-X", "importtime", "-c", "import numpy; import mathllm"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stderr.splitlines()
    rows = [line.removeprefix("import time:").split("|") for line in lines if "|" in line and "self" not in line]
    names = [name.strip() for _, _, name in rows]
    rows = rows[names.index("numpy") + 1 :]
    return sorted(((int(own) / 1e3, name.strip()) for own, _, name in rows), reverse=True)[:count]


def main():
    seconds("numpy, mathllm")  # compiled once
    alone, both = zip(*((seconds("numpy"), seconds("numpy, mathllm")) for _ in range(RUNS)), strict=True)
    beyond = statistics.median(b - a for a, b in zip(alone, both, strict=True))
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}; median of {RUNS} pairs")
    print(f"NumPy {statistics.median(alone) * 1e3:.1f} ms   with mathllm {statistics.median(both) * 1e3:.1f} ms")
    print(f"beyond NumPy {beyond * 1e3:.1f} ms   fastest of each {(min(both) - min(alone)) * 1e3:.1f} ms")
    print("most of it:", ", ".join(f"{name} {own:.1f}" for own, name in costliest(6)))


if __name__ == "__main__":
    main()
