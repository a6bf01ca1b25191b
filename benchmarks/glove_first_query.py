"""From nothing to the first neighbours in GloVe: how long does a fresh process take, against reading the table whole?

    python benchmarks/glove_first_query.py

Both sides start a new Python, load 400,000 vectors and print the words nearest to "king"; they take turns.
"""

import platform
import statistics
import subprocess
import sys
import time

OURS = 'from mathllm.pretrained import glove; print([w for w, _ in glove.load().nearest("king", 3)])'
WHOLE = """
import numpy as np
from mathllm import data
place = data.path("glove") / "data"
vectors = np.load(next(place.glob("*.npy")))
words = np.array((place / "words.txt").read_text(encoding="utf-8").split("\\n")[: len(vectors)])
unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
print(words[np.argsort(-unit @ unit[list(words).index("king")])[1:4]].tolist())
"""
RUNS = 5


def seconds(program):
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return time.perf_counter() - start, done.stdout.strip()


def main():
    times = {"memory-mapped": [], "read whole": []}
    for _ in range(RUNS):
        for name, program in (("memory-mapped", OURS), ("read whole", WHOLE)):
            took, answer = seconds(program)
            times[name].append(took)
    print(f"{platform.machine()}, Python {platform.python_version()}; nearest to king: {answer}")
    ours, whole = (statistics.median(times[name]) for name in times)
    print(f"memory-mapped {ours:.2f} s   read whole {whole:.2f} s   ratio {whole / ours:.2f}")


if __name__ == "__main__":
    main()
